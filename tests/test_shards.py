"""Corpora in shards: written from streams, read block by block, the same bytes as in memory, and what is damaged."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from lasca import formats, simulate
from lasca.corpus import CrowdCorpus
from lasca.corpus.sharding import write_shards
from lasca.corpus.shards import ShardedCorpus, is_sharded
from lasca.corpus.votes import Votes, cut_into_blocks
from lasca.errors import CorpusError, FormatError, LascaError, ModelError, StoreError
from lasca.files import write_sums
from lasca.formats.base import SourceFile
from lasca.formats.stream import _text_pieces, read_pieces
from lasca.pipeline.sharded import aggregate_shards
from lasca.records import read_record, write_record
from lasca.truth import MODEL_NAMES, Truth, model_class, supporting
from lasca.truth.base import Posterior, TruthModel
from process_engine import Processes
from shard_cases import OPTIONS, in_pieces, parts_of, small_blocks
from test_learners import rich_crowd
from truth_cases import crowd

SHARDED = supporting("shards")


def with_documents(n: int = 40, per_document: int = 3) -> CrowdCorpus:
    corpus = crowd(n_sequences=n, n_annotators=4)
    documents = [f"d{i // per_document}" for i in range(n)]
    return CrowdCorpus(**{**vars_of(corpus), "metadata": {"document": documents}})


def vars_of(corpus: CrowdCorpus) -> dict[str, Any]:
    return {name: getattr(corpus, name) for name in corpus.__dataclass_fields__}


# --- writing and reading ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [7, 20, 1000])
def test_a_sharded_corpus_is_the_corpus_it_was_made_of(size: int, tmp_path: Path) -> None:
    corpus = rich_crowd()
    sharded = write_shards(in_pieces(corpus, size), tmp_path / "c", votes=3000)
    assert sharded.n_shards == 5
    assert sharded.whole() == corpus
    assert formats.read(tmp_path / "c") == corpus
    assert is_sharded(tmp_path / "c")
    assert not is_sharded(tmp_path)
    assert "5 shards" in repr(sharded)


def test_shards_of_other_labels_and_people_share_one_order_of_all(tmp_path: Path) -> None:
    one = CrowdCorpus.from_sequences([["a", "b"]], {"zoe": [["Z", "A"]]}, sequence_ids=["s1"])
    other = CrowdCorpus.from_sequences([["c"]], {"ann": [["M"]], "zoe": [["A"]]}, sequence_ids=["s2"])
    sharded = write_shards([one, other], tmp_path / "c", votes=1)
    assert sharded.n_shards == 2
    assert (sharded.labels, sharded.annotators) == (("A", "M", "Z"), ("ann", "zoe"))
    truth = aggregate_shards(sharded, tmp_path / "truth", model_class("mv")())
    assert truth.label_names == ("A", "M", "Z")


def test_where_shards_end_does_not_depend_on_the_pieces(tmp_path: Path) -> None:
    corpus = with_documents()
    made = [write_shards(in_pieces(corpus, n), tmp_path / str(n), votes=200) for n in (3, 11, 40)]
    files = [(sharded.folder / "SHA256SUMS").read_text() for sharded in made]
    assert files[0] == files[1] == files[2]
    assert made[0].n_shards > 3
    documents = [
        {made[0].whole().metadata["document"][i] for i in range(a, b)}
        for a, b in zip(made[0].begins("sequences")[:-1], made[0].begins("sequences")[1:])
    ]
    assert sum(len(d) for d in documents) == len(set.union(*documents))  # no document is cut


@pytest.mark.parametrize("by_tokens", [False, True])
@pytest.mark.parametrize("documents", [False, True])
def test_blocks_on_disk_are_those_in_memory(by_tokens: bool, documents: bool, tmp_path: Path) -> None:
    corpus = with_documents() if documents else crowd(n_sequences=40, unlabelled=5)
    sharded = write_shards(in_pieces(corpus, 9), tmp_path / "c", votes=150)
    for target in (20, 90, 10_000):
        here = cut_into_blocks(Votes.of(corpus), target, by_tokens=by_tokens)
        there = cut_into_blocks(sharded.crowd_votes(), target, by_tokens=by_tokens)
        assert [(b.first, b.last) for b in here] == [(b.first, b.last) for b in there]
        for one, other in zip(here, there):
            alone, loaded = one.alone().votes, other.load().votes
            for name in ("start", "annotator", "label", "offsets"):
                assert getattr(alone, name).tobytes() == getattr(loaded, name).tobytes()


def test_those_who_do_not_vote_are_kept_apart(tmp_path: Path) -> None:
    corpus = crowd(n_sequences=30, n_annotators=5)
    corpus = corpus.with_voters(corpus.annotators[1:4])
    sharded = write_shards(in_pieces(corpus, 8), tmp_path / "c", votes=200)
    assert sharded.whole() == corpus
    votes = sharded.crowd_votes()
    assert (votes.n_hard, votes.n_tokens) == (Votes.of(corpus).n_hard, corpus.n_tokens)
    one, other = model_class("ds")().fit(corpus), model_class("ds")().fit(sharded)
    assert one.annotators.equals(other.annotators)
    assert other.annotators.column("n").to_pylist() == np.bincount(corpus.annotation_annotator).tolist()


def test_documents_that_do_not_stand_together_are_refused(tmp_path: Path) -> None:
    corpus = with_documents()
    names = list(corpus.metadata["document"])
    names[-1] = names[0]
    scattered = CrowdCorpus(**{**vars_of(corpus), "metadata": {"document": names}})
    with pytest.raises(CorpusError, match="the sequences of a document do not stand together"):
        write_shards(in_pieces(scattered, 5), tmp_path / "c", votes=100)
    assert not list(tmp_path.iterdir())


def test_two_sequences_of_one_id_are_refused(tmp_path: Path) -> None:
    corpus = crowd(n_sequences=20)
    with pytest.raises(CorpusError, match="two sequences have the same id"):
        write_shards([*in_pieces(corpus, 5), corpus.select(sequences=[0])], tmp_path / "c", votes=60)
    with pytest.raises(CorpusError, match="nothing to write"):
        write_shards([], tmp_path / "c")
    assert not list(tmp_path.iterdir())


# --- streams ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "file"), [("table", "c.csv"), ("table", "c.parquet"), ("jsonl", "c.jsonl"), ("conll", "c.conll")]
)
def test_streams_give_what_the_whole_file_gives(format: str, file: str, tmp_path: Path) -> None:
    corpus = with_documents(n=60) if format == "jsonl" else crowd(n_sequences=60, n_annotators=4)
    if file == "c.parquet":
        pq.write_table(corpus.to_table(), tmp_path / file, row_group_size=50)
    else:
        formats.write(corpus, tmp_path / file, format)
    whole = formats.read(tmp_path / file)
    pieces = list(read_pieces([tmp_path / file], size=2000))
    assert len(pieces) > 3
    sharded = write_shards(read_pieces([tmp_path / file], size=2000), tmp_path / "c", votes=200)
    again = sharded.whole()
    assert again.load_report.format == whole.load_report.format == format
    whole = whole.select(sequences=list(again.sequence_ids))
    assert again.sequence_ids == whole.sequence_ids
    assert again == whole
    assert sharded.n_shards > 2


def test_documents_of_conll_are_numbered_through(tmp_path: Path) -> None:
    text = "token ann ben\n\n" + "".join(
        "-DOCSTART-\n\n" + "".join(f"w{d}{s} A B\nx A A\n\n" for s in range(4)) for d in range(6)
    )
    (tmp_path / "c.conll").write_text(text, encoding="utf-8")
    whole = formats.read(tmp_path / "c.conll")
    for size in (60, 100, 10_000):
        folder = tmp_path / str(size)
        again = write_shards(read_pieces([tmp_path / "c.conll"], size=size), folder, votes=20).whole()
        assert again == whole
        assert again.load_report.counts == whole.load_report.counts


def test_rows_of_a_sequence_that_are_apart_are_refused(tmp_path: Path) -> None:
    rows = [f"s{i % 9},{i // 9},w,ann,A" for i in range(90)]
    (tmp_path / "c.csv").write_text("\n".join(["sequence,position,token,annotator,label", *rows]) + "\n")
    with pytest.raises(LascaError, match="two sequences have the same id"):
        write_shards(read_pieces([tmp_path / "c.csv"], size=300), tmp_path / "c", votes=20)
    (tmp_path / "bad.csv").write_text("sequence,position,token,annotator,label\ns1,0,w,ann\n")
    with pytest.raises(FormatError, match=r"bad\.csv"):
        list(read_pieces([tmp_path / "bad.csv"]))


# --- the same bytes out of core -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHARDED)
def test_out_of_core_gives_the_bytes_of_memory(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)
    rich = rich_crowd()
    corpus = rich if "soft" in model_class(name).supports else rich.select(annotators=rich.annotators[:-1])
    corpus = corpus if "known" in model_class(name).supports else corpus.with_known(None)
    truth = model_class(name)(**OPTIONS[name]).fit(corpus)
    for n, votes in enumerate((900, 5000, 10**6)):
        sharded = write_shards(in_pieces(corpus, 50), tmp_path / f"c{n}", votes=votes)
        again = model_class(name)(**OPTIONS[name]).fit(sharded)
        for field in ("labels", "proba", "confusion", "trace", "voted", "offsets"):
            assert getattr(truth, field).tobytes() == getattr(again, field).tobytes(), field
        assert truth.annotators.equals(again.annotators)
        assert (truth.warnings, truth.sequence_ids) == (again.warnings, again.sequence_ids)
        model = model_class(name)(**OPTIONS[name])
        written = aggregate_shards(sharded, tmp_path / f"out{n}", model)
        assert written.confusion.tobytes() == truth.confusion.tobytes()
        table = parts_of(tmp_path / f"out{n}")
        proba = table.column("proba").combine_chunks().flatten().to_numpy()
        assert proba.tobytes() == truth.proba.tobytes()
        assert table.column("label").to_pylist() == [
            truth.label_names[t] if said else None for t, said in zip(truth.labels, truth.voted)
        ]
        assert table.column("token").to_pylist() == list(corpus.tokens)
    sums = [(tmp_path / f"out{n}/labels/part-00003.parquet").read_bytes() for n in range(3)]
    assert sums[0] == sums[1] == sums[2]


@pytest.mark.parametrize("name", ["hc-seq", "robust"])
def test_what_processes_write_beside_blocks_is_beside_theirs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every process counts its own blocks from 0; files are called by the blocks of the corpus."""
    small_blocks(monkeypatch)
    sharded = write_shards(in_pieces(rich_crowd(), 50), tmp_path / "c", votes=5000)
    usual, other = (model_class(name)(**OPTIONS[name], text=False) for _ in range(2))
    other.engine = Processes(3)
    assert usual.fit(sharded).proba.tobytes() == other.fit(sharded).proba.tobytes()


def test_every_model_reads_blocks_and_models_of_others_the_whole(tmp_path: Path) -> None:
    corpus = crowd(n_sequences=30)
    sharded = write_shards(in_pieces(corpus, 8), tmp_path / "c", votes=200)
    assert set(MODEL_NAMES) == set(SHARDED)
    models = [OfSomebody() for _ in range(2)]
    assert models[0].fit(sharded).proba.tobytes() == models[1].fit(corpus).proba.tobytes()
    with pytest.raises(ModelError, match=r"ours needs the whole corpus in memory.*ds"):
        aggregate_shards(sharded, tmp_path / "out", models[0])


class OfSomebody(TruthModel):
    """A model that is no learner."""

    name = "ours"

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Any) -> Posterior:
        return Posterior(np.full((corpus.n_tokens, corpus.n_labels), 1 / corpus.n_labels))


@pytest.mark.parametrize("most", [10**6, 900])
def test_hc_with_sequences_and_draws_out_of_core_gives_the_bytes_of_memory(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sampler of chains, and a text that is learned from a sample."""
    small_blocks(monkeypatch)
    monkeypatch.setattr("lasca.truth.sequence_clusters.MOST_TRAINED", most)
    rich = rich_crowd()
    corpus = rich.select(annotators=rich.annotators[:-1])
    parts = {**OPTIONS["hc-seq"], "inference": "gibbs", "n_warmup": 1, "n_samples": 3}
    sharded = write_shards(in_pieces(corpus, 50), tmp_path / "c", votes=5000)
    one, other = (model_class("hc")(sequence=parts).fit(taken) for taken in (corpus, sharded))
    written = aggregate_shards(sharded, tmp_path / "out", model_class("hc")(sequence=parts))
    for field in ("labels", "proba", "confusion", "trace"):
        assert getattr(one, field).tobytes() == getattr(other, field).tobytes(), field
    assert one.annotators.equals(other.annotators)
    assert one.annotators.equals(written.annotators)
    proba = parts_of(tmp_path / "out").column("proba").combine_chunks().flatten().to_numpy()
    assert proba.tobytes() == one.proba.tobytes()
    assert [word["name"] for word in one.diagnostics["rounds"]][-1] == "text 1"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "out"]


def test_what_was_learned_of_shards_is_a_history(tmp_path: Path) -> None:
    corpus = crowd(n_sequences=60)
    sharded = write_shards([corpus.select(sequences=np.arange(40))], tmp_path / "c")
    aggregate_shards(sharded, tmp_path / "out", model_class("ds")())
    history = Truth.load(tmp_path / "out" / "truth")
    new = corpus.select(sequences=np.arange(40, 60))
    before = model_class("ds")().fit(corpus.select(sequences=np.arange(40)))
    assert (
        model_class("ds")().fit(new, history=history).proba.tobytes()
        == model_class("ds")().fit(new, history=before).proba.tobytes()
    )


# --- checkpoints --------------------------------------------------------------------------------------------------


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("name", [name for name in SHARDED if name not in ("mv", "hc")])
def test_a_run_that_was_stopped_goes_on(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)
    rich = rich_crowd()
    corpus = rich.select(annotators=rich.annotators[:-1])
    corpus = corpus if "known" in model_class(name).supports else corpus.with_known(None)
    sharded = write_shards([corpus], tmp_path / "c", votes=5000)
    options = {**OPTIONS[name], "max_iter": 7, "tol": 0.0}
    told: list[str] = []
    aggregate_shards(
        sharded, tmp_path / "whole", model_class(name)(**options), progress=lambda share, words: told.append(words)
    )
    seen: list[str] = []

    def progress(share: float, words: str) -> None:
        seen.append(words)
        if len(seen) == 5 or (len(seen) in (11, 26) and len(told) > 13):
            raise StoppedError

    for _ in range(4):
        try:
            aggregate_shards(
                sharded, tmp_path / "out", model_class(name)(**options), every=2, resume=True, progress=progress
            )
            break
        except StoppedError:
            assert not (tmp_path / "out").exists()
    assert (tmp_path / "out/SHA256SUMS").read_text() == (tmp_path / "whole/SHA256SUMS").read_text()
    assert len(seen) < 2 * len(told)
    assert any("million votes/s" in words for words in seen)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "out", "whole"]


def test_a_sampler_that_was_stopped_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)
    sharded = write_shards([crowd(n_sequences=200)], tmp_path / "c", votes=500)
    aggregate_shards(sharded, tmp_path / "whole", model_class("hc")(**OPTIONS["hc"]))

    def stop(share: float, words: str) -> None:
        if share > 0.8:
            raise StoppedError

    with pytest.raises(StoppedError):
        aggregate_shards(sharded, tmp_path / "out", model_class("hc")(**OPTIONS["hc"]), progress=stop)
    aggregate_shards(sharded, tmp_path / "out", model_class("hc")(**OPTIONS["hc"]), resume=True)
    assert (tmp_path / "out/SHA256SUMS").read_text() == (tmp_path / "whole/SHA256SUMS").read_text()


def test_a_sampler_of_chains_that_was_stopped_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)
    sharded = write_shards([crowd(n_sequences=60)], tmp_path / "c", votes=500)
    options = {**OPTIONS["hc-seq"], "inference": "gibbs", "n_warmup": 1, "n_samples": 2, "text": False}
    aggregate_shards(sharded, tmp_path / "whole", model_class("hc-seq")(**options))

    def stop(share: float, words: str) -> None:
        if words == "calibration":  # all is drawn
            raise StoppedError

    with pytest.raises(StoppedError):
        aggregate_shards(sharded, tmp_path / "out", model_class("hc-seq")(**options), progress=stop)
    aggregate_shards(sharded, tmp_path / "out", model_class("hc-seq")(**options), resume=True)
    assert (tmp_path / "out/SHA256SUMS").read_text() == (tmp_path / "whole/SHA256SUMS").read_text()


def test_words_of_rounds_that_nobody_reads_any_more_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch)
    sharded = write_shards([crowd(n_sequences=120)], tmp_path / "c", votes=500)
    kept: dict[str, set[str]] = {}

    def look(share: float, words: str) -> None:
        files = (tmp_path / ".out.lasca-run/scratch").glob("*-?????")
        kept[words] = {file.name.rsplit("-", 1)[0] for file in files}

    options = {**OPTIONS["hc-seq"], "rounds": 2}
    truth = aggregate_shards(sharded, tmp_path / "out", model_class("hc-seq")(**options), progress=look)
    assert [word["name"] for word in truth.diagnostics["rounds"]][-1] == "text 2"
    assert kept["clusters"] == set()
    assert [len(kept[words]) for words in ("text, round 1", "text, round 2", "calibration")] == [1, 1, 1]


def test_a_run_of_other_parameters_is_not_taken_up(tmp_path: Path) -> None:
    sharded = write_shards([crowd(n_sequences=30)], tmp_path / "c")

    def stop(share: float, words: str) -> None:
        if "iteration 2" in words:
            raise StoppedError

    with pytest.raises(StoppedError):
        aggregate_shards(sharded, tmp_path / "out", model_class("ds")(), every=1, progress=stop)
    with pytest.raises(StoreError, match="cannot resume: the run that was stopped differs in parameters"):
        aggregate_shards(sharded, tmp_path / "out", model_class("ds")(smoothing=0.1), resume=True)
    other = write_shards([crowd(n_sequences=31)], tmp_path / "c", overwrite=True)
    with pytest.raises(StoreError, match="cannot resume: the run that was stopped differs in input"):
        aggregate_shards(other, tmp_path / "out", model_class("ds")(), resume=True)
    sharded = write_shards([crowd(n_sequences=30)], tmp_path / "c", overwrite=True)
    aggregate_shards(sharded, tmp_path / "out", model_class("ds")(), resume=True)


def test_records_come_back_bit_by_bit(tmp_path: Path) -> None:
    state = model_class("ds")(max_iter=1)
    learner = state._learner(Votes.of(crowd(n_sequences=5)))  # type: ignore[attr-defined]
    votes = Votes.of(crowd(n_sequences=5))
    made = learner.start(learner.summarise(cut_into_blocks(votes, 10**9)[0]), np.random.default_rng(0))
    write_record(made, tmp_path / "r")
    again = read_record(tmp_path / "r")
    assert type(again) is type(made)
    assert again.log_psi.tobytes() == made.log_psi.tobytes()
    assert again.penalty == made.penalty
    with pytest.raises(TypeError, match="cannot hold a set"):
        write_record({1}, tmp_path / "s")
    (tmp_path / "r").write_bytes((tmp_path / "r").read_bytes()[:-40])
    with pytest.raises(StoreError, match="damaged"):
        read_record(tmp_path / "r")


# --- damage -------------------------------------------------------------------------------------------------------


def test_a_damaged_or_missing_shard_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    corpus = crowd(n_sequences=60)
    for number, (name, words) in enumerate(
        [
            ("shards/00001/annotations.arrow", "a shard is damaged: shards/00001/annotations.arrow has changed"),
            ("shards/00002/starts.arrow", "a shard is missing: shards/00002/starts.arrow"),
            ("corpus.json", "corpus.json has changed"),
        ]
    ):
        sharded = write_shards(in_pieces(corpus, 10), tmp_path / f"c{number}", votes=100)
        file = sharded.folder / name
        if "missing" in words:
            file.unlink()
        else:
            data = bytearray(file.read_bytes())
            data[len(data) // 2] ^= 1
            file.write_bytes(data)
        with pytest.raises(StoreError, match=words):
            aggregate_shards(ShardedCorpus.open(sharded.folder), tmp_path / "out", model_class("ds")())
        assert sorted(path.name for path in tmp_path.iterdir()) == [f"c{i}" for i in range(number + 1)]


def test_a_manifest_that_says_no_sizes_is_damaged(tmp_path: Path) -> None:
    folder = write_shards(in_pieces(crowd(n_sequences=60), 10), tmp_path / "c", votes=100).folder
    header = json.loads((folder / "corpus.json").read_text())
    sizes = header["shards"]
    for shards in (
        {},
        7,
        {"votes": [3]},
        sizes | {"tokens": [1]},
        sizes | {"votes": [-n for n in sizes["votes"]]},
        sizes | {"votes": [10**40 for _ in sizes["votes"]]},
    ):
        (folder / "corpus.json").write_text(json.dumps(header | {"shards": shards}))
        write_sums(folder)
        with pytest.raises(StoreError, match="damaged"):
            ShardedCorpus.open(folder)
    (folder / "corpus.json").write_text("[" * 99_999)
    write_sums(folder)
    with pytest.raises(StoreError, match="damaged"):
        ShardedCorpus.open(folder)


def test_a_corpus_that_was_written_anew_is_another_one(tmp_path: Path) -> None:
    sharded = write_shards([crowd(n_sequences=30)], tmp_path / "c")
    block = cut_into_blocks(sharded.crowd_votes(), 100)[0]
    write_shards([crowd(n_sequences=31)], tmp_path / "c", overwrite=True)
    with pytest.raises(StoreError, match="another one than when the work began"):
        block.load()


def test_simulated_shards_share_their_annotators(tmp_path: Path) -> None:
    pieces = simulate.big_shards(3, 3000, n_annotators=400, seed=1)
    sharded = write_shards(pieces, tmp_path / "c", votes=1000)
    assert (sharded.n_shards, sharded.n_annotators, int(sharded.sizes["votes"].sum())) == (3, 400, 3000)
    whole = sharded.whole()
    assert all(
        (np.diff(whole.annotation_annotator[a:b]) > 0).all() for a, b in zip(whole.token_start, whole.token_start[1:])
    )
    again = write_shards(simulate.big_shards(3, 3000, n_annotators=400, seed=1), tmp_path / "d", votes=1000)
    assert (again.folder / "SHA256SUMS").read_text() == (sharded.folder / "SHA256SUMS").read_text()
    assert json.loads((sharded.folder / "corpus.json").read_text())["lasca"] == "shards"


def test_pieces_of_text_end_behind_the_last_border_and_say_which_they_are() -> None:
    data = b"a\n\nbb\n\r\nc\n\nd"
    head = SourceFile("x.conll", "in/x.conll", data)
    for size, expected in ((12, [b"a\n\nbb\n\r\nc\n\n", b"d"]), (9, [b"a\n\nbb\n\r\n", b"c\n\n", b"d"]), (99, None)):
        found = list(_text_pieces(io.BytesIO(data), head, size, (b"\n\n", b"\n\r\n")))
        assert b"".join(piece.data for piece in found) == data
        if expected:
            assert [piece.data for piece in found] == expected
        assert [piece.shown for piece in found] == ["in/x.conll", "in/x.conll (piece 2)", "in/x.conll (piece 3)"][
            : len(found)
        ]

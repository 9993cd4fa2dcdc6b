"""A CRF that learns from blocks, and taggers on corpora in shards: the bytes of the corpus in memory."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import lasca.cli.commands  # noqa: F401  registers the verbs
from lasca import simulate
from lasca.cli.app import app
from lasca.corpus import CrowdCorpus, store
from lasca.corpus.sharding import write_shards
from lasca.corpus.shards import ShardedCorpus
from lasca.crf import training
from lasca.crf.extract import Extractor
from lasca.errors import ModelError, ParameterError, StoreError
from lasca.pipeline.sharded import aggregate_shards, ambiguity_in_shards, tag_shards, train_in_shards
from lasca.pipeline.way import run_shards
from lasca.tagger import CrfTagger
from lasca.truth import Truth, model_class
from shard_cases import in_pieces, small_blocks


def block_size(monkeypatch: pytest.MonkeyPatch, tokens: int) -> None:
    monkeypatch.setattr("lasca.tagger.prepare.BLOCK_TOKENS", tokens)


@pytest.fixture(scope="module")
def corpus() -> CrowdCorpus:
    crowd = simulate.demo_crowd()
    keep = np.flatnonzero(np.arange(crowd.n_annotations) % 3 != 0)  # sentences without a vote among them
    bare = (crowd.token_sequence[crowd.annotation_token[keep]] % 17) != 0
    names = ("tokens", "offsets", "labels", "annotators", "sequence_ids", "golds")
    keep = keep[bare]
    return CrowdCorpus.from_codes(
        **{name: getattr(crowd, name) for name in names},
        annotation_token=crowd.annotation_token[keep],
        annotation_annotator=crowd.annotation_annotator[keep],
        annotation_label=crowd.annotation_label[keep],
    )


@pytest.fixture(scope="module")
def places(corpus: CrowdCorpus, tmp_path_factory: pytest.TempPathFactory) -> tuple[ShardedCorpus, Path, Truth]:
    place = tmp_path_factory.mktemp("shards")
    with pytest.MonkeyPatch.context() as patch:
        small_blocks(patch)
        sharded = write_shards(in_pieces(corpus, 70), place / "c", votes=3000)
        aggregate_shards(sharded, place / "truth", model_class("ds")(max_iter=5))
        return sharded, place / "truth", model_class("ds")(max_iter=5).fit(corpus)


@pytest.mark.parametrize("templates", ["ner", "pos", "bias word[-1]|word[0] any:lower[-4..-1] shape[0]"])
@pytest.mark.parametrize("options", [{}, {"min_count": 3}, {"hash_bits": 14}])
def test_a_dictionary_in_two_passes_is_the_one_of_all_tokens(
    templates: str, options: dict[str, Any], corpus: CrowdCorpus
) -> None:
    tokens, offsets = list(corpus.tokens), corpus.offsets
    whole, parts = (Extractor(templates=templates, **options) for _ in range(2))
    features = whole.fit(tokens, offsets)
    ends = [0, 50, 51, 200, corpus.n_sequences]
    pieces = [(tokens[offsets[a] : offsets[b]], offsets[a : b + 1] - offsets[a]) for a, b in pairwise(ends)]
    parts.know(list(dict.fromkeys(tokens)))
    counted = parts.count(*pieces[0])
    for piece in pieces[1:]:
        counted += parts.count(*piece)
    parts.settle(counted)
    assert whole.dictionary is not None
    assert parts.dictionary is not None
    assert whole.dictionary.values == parts.dictionary.values
    assert [k.tobytes() for k in whole.dictionary.keys] == [k.tobytes() for k in parts.dictionary.keys]
    again = parts.transform(tokens, offsets)
    for name in ("slots", "bundle_start", "bundle_feature"):
        assert getattr(features, name).tobytes() == getattr(again, name).tobytes(), name


OPTIONS = [
    {},
    {"soft": True},
    {"certain": 0.8, "states": "all", "min_count": 2},
    {"objective": "cost-sensitive"},
    {"l1": 0.1, "hash_bits": 12},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("size", [300, 10**6])
def test_training_on_shards_gives_the_bytes_of_memory(
    size: int, options: dict[str, Any], corpus: CrowdCorpus, places: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    block_size(monkeypatch, size)
    _, folder, truth = places
    CrfTagger(max_iter=6, **options).fit(corpus, truth).save(tmp_path / "memory")
    train_in_shards(folder, tmp_path / "shards", CrfTagger(max_iter=6, **options))
    for name in ("weights.safetensors", "tagger.json", "SHA256SUMS"):
        assert (tmp_path / "memory" / name).read_bytes() == (tmp_path / "shards" / name).read_bytes(), name
    assert sorted(path.name for path in tmp_path.iterdir()) == ["memory", "shards"]


def test_blocks_learn_what_the_whole_does(corpus: CrowdCorpus, places: Any, monkeypatch: Any) -> None:
    whole = CrfTagger(max_iter=30).fit(corpus, places[2])
    block_size(monkeypatch, 300)
    blocks = CrfTagger(max_iter=30).fit(corpus, places[2])
    assert whole.trace[:5] != blocks.trace[:5]  # other sums
    np.testing.assert_allclose(whole.trace, blocks.trace, rtol=1e-6)


def test_a_gold_of_shards_is_learned_from(corpus: CrowdCorpus, places: Any, tmp_path: Path, monkeypatch: Any) -> None:
    block_size(monkeypatch, 500)
    sharded, _, _ = places
    gold = next(iter(corpus.golds))
    CrfTagger(max_iter=5).fit(corpus, gold).save(tmp_path / "memory")
    train_in_shards(sharded.folder, tmp_path / "shards", CrfTagger(max_iter=5), gold=gold)
    assert (tmp_path / "memory/SHA256SUMS").read_text() == (tmp_path / "shards/SHA256SUMS").read_text()
    with pytest.raises(ModelError, match="before its truth is inferred"):
        train_in_shards(sharded.folder, tmp_path / "no", CrfTagger())
    with pytest.raises(ParameterError, match="L-BFGS on all sequences"):
        train_in_shards(sharded.folder, tmp_path / "no", CrfTagger(optimiser="perceptron"), gold=gold)
    assert not (tmp_path / "no").exists()


def test_tagging_shards_gives_the_labels_of_memory(
    corpus: CrowdCorpus, places: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    tagger = CrfTagger(max_iter=5).fit(corpus, places[2])
    tagger.save(tmp_path / "tagger")
    sentences = [corpus.sequence(i) for i in range(corpus.n_sequences)]
    expected = [name for row in tagger.predict(sentences) for name in row]
    proba = np.concatenate(tagger.predict_proba(sentences))
    for size in (300, 10**6):
        monkeypatch.setattr("lasca.tagger.shards.TAG_TOKENS", size)
        tag_shards(tmp_path / "tagger", places[0].folder, tmp_path / str(size), proba=True)
        tables = [pq.read_table(file) for file in sorted((tmp_path / str(size) / "labels").glob("*.parquet"))]
        assert (len(tables) > 5) == (size == 300)
        assert [x for table in tables for x in table.column("label").to_pylist()] == expected
        assert [x for table in tables for x in table.column("token").to_pylist()] == list(corpus.tokens)
        code = [tagger.labels.index(name) for name in expected]
        chosen = np.concatenate([table.column("probability").to_numpy() for table in tables])
        assert chosen.tobytes() == proba[np.arange(len(code)), code].tobytes()


def test_a_full_disk_is_one_clear_error(places: Any, tmp_path: Path, monkeypatch: Any) -> None:
    write = training.write_record
    monkeypatch.setattr(training, "write_record", lambda record, path: write(record, Path("/dev/full")))
    with pytest.raises(StoreError, match="cannot write: No space left on device"):
        train_in_shards(places[1], tmp_path / "tagger", CrfTagger(max_iter=2))
    assert not list(tmp_path.iterdir())
    CrfTagger(max_iter=2).fit(places[0].part(0, 497), "gold").save(tmp_path / "tagger")
    whole = store.whole_file
    monkeypatch.setattr(store, "whole_file", lambda path: whole("/dev/full"))
    with pytest.raises(StoreError, match="cannot write: No space left on device"):
        tag_shards(tmp_path / "tagger", places[0].folder, tmp_path / "tagged")
    with pytest.raises(StoreError, match="cannot write: No space left on device"):
        ambiguity_in_shards(places[1], tmp_path / "ambiguous", max_iter=2)
    assert [path.name for path in tmp_path.iterdir()] == ["tagger"]


# --- the commands ---------------------------------------------------------------------------------------------------


def lasca_(*words: object) -> Any:
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.output if done.exception is None else f"{done.output}{done.exception}"


def test_every_verb_takes_a_corpus_in_shards(places: Any, tmp_path: Path, monkeypatch: Any) -> None:
    block_size(monkeypatch, 500)
    shards = places[0].folder
    few = ("-p", "max_iter=3")
    tagger = ("--tagger", "max_iter=3")
    code, said = lasca_("run", shards, "-m", "ds", *few, *tagger, "-o", tmp_path / "run")
    assert (code, said[-200:]) == (0, said[-200:])
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "SHA256SUMS", "aggregate", "ambiguous", "run.json", "tagger",
    ]  # fmt: skip
    assert lasca_("aggregate", shards, "-m", "ds", *few, "-o", tmp_path / "truth")[0] == 0
    assert lasca_("ambiguity", tmp_path / "truth", "-o", tmp_path / "ambiguous", "--top", 2)[0] == 0
    assert lasca_("train", tmp_path / "truth", "--objective", "softmax-margin", *few, "-o", tmp_path / "tagger")[0] == 0
    for name in ("aggregate", "ambiguous", "tagger"):
        alone = {"aggregate": "truth"}.get(name, name)
        one, other = ((place / "SHA256SUMS").read_text() for place in (tmp_path / "run" / name, tmp_path / alone))
        same = [line for line in one.splitlines() if "aggregate.json" not in line and "tagger.json" not in line]
        assert same == [x for x in other.splitlines() if "aggregate.json" not in x and "tagger.json" not in x]
    assert lasca_("tag", tmp_path / "tagger", shards, "-o", tmp_path / "tagged", "--proba")[0] == 0
    assert (tmp_path / "tagged/labels/part-00000.parquet").exists()
    for words, error in (
        (("tag", tmp_path / "tagger", shards), "a folder, without --text or --spans"),
        (("ambiguity", tmp_path / "truth"), "a folder for a corpus in shards"),
        (("ambiguity", tmp_path / "truth", "--method", "rank-1", "-o", tmp_path / "x"), "two-truths for a corpus"),
        (("run", shards, "-m", "ds", "--compare", "-o", tmp_path / "x"), "left out for a corpus in shards"),
        (("run", shards, "-m", "ds", "--tagger", "kind=hmm", "-o", tmp_path / "x"), "the tagger must be crf"),
        (("train", tmp_path / "truth", "--check", "-o", tmp_path / "x"), "it gets no model card"),
    ):
        code, said = lasca_(*words)
        assert code != 0
        assert error in said
    assert not (tmp_path / "x").exists()
    assert not list(tmp_path.glob(".*"))


def test_a_run_on_shards_that_was_stopped_goes_on(places: Any, tmp_path: Path, monkeypatch: Any) -> None:
    options: dict[str, Any] = {"model": "ds", "params": {"max_iter": 3}, "tagger": {"max_iter": 2}}
    with pytest.raises(ParameterError, match="preset must be default for a corpus in shards"):
        run_shards(places[0].folder, tmp_path / "whole", preset="la-sca", **options)  # its tokens are found by rank-1
    run_shards(places[0].folder, tmp_path / "whole", **options)

    def stop(share: float, words: str) -> None:
        if "tagger" in words:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_shards(places[0].folder, tmp_path / "out", progress=stop, **options)
    assert [path.name for path in tmp_path.iterdir() if path.name != "whole"] == [".out.lasca-run"]
    seen: list[str] = []
    run_shards(places[0].folder, tmp_path / "out", resume=True, progress=lambda _, said: seen.append(said), **options)
    assert not any("truth" in words for words in seen)
    for name in ("aggregate", "ambiguous", "tagger"):
        assert (tmp_path / "out" / name / "SHA256SUMS").read_text() == (
            tmp_path / "whole" / name / "SHA256SUMS"
        ).read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "whole"]

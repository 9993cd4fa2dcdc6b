"""The corpus: what it refuses, what its parts are, and that it comes back from a folder as it was."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import time
from dataclasses import FrozenInstanceError
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lasca.arrays import borders, followers
from lasca.corpus import CrowdCorpus, LoadReport, SoftVotes, Strings
from lasca.errors import CorpusError, ParameterError, StoreError
from lasca.files import write_sums


def small() -> CrowdCorpus:
    return CrowdCorpus.from_sequences(
        [["Ada", "runs"], ["New", "York", "."], [], ["hm"]],
        {
            "eve": [["PER", "O"], None, [], ["O"]],
            "bob": [["PER", None], ["LOC", "LOC", "O"], [], None],
        },
        golds={"gold": [["PER", "O"], ["LOC", "LOC", None], [], None]},
        sequence_ids=["a", "b", "c", "d"],
        metadata={"document": ["x", "x", "y", "y"]},
        roles=("annotator", "model"),
    )


label = st.sampled_from(["A", "B", "C", None])


@st.composite
def corpora(draw: st.DrawFn) -> CrowdCorpus:
    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=5))
    row = lambda n: st.one_of(st.none(), st.lists(label, min_size=n, max_size=n))  # noqa: E731
    column = st.tuples(*(row(n) for n in lengths)).map(list)
    return CrowdCorpus.from_sequences(
        [[f"w{i}\u00e9😊" for i in range(n)] for n in lengths],
        draw(st.dictionaries(st.sampled_from("pqrs"), column, max_size=4)),
        golds=draw(st.dictionaries(st.sampled_from(["gold1", "gold2"]), column, max_size=2)),
        labels=["A", "B", "C"],
    )


def test_a_sequence_that_is_not_there_is_no_empty_one() -> None:
    corpus = CrowdCorpus.from_sequences([["a", "b"], ["c"]], {})
    assert corpus.sequence(1) == corpus.sequence("1") == ["c"]
    for number in (-1, 2, -5):
        with pytest.raises(CorpusError, match=r"sequences are numbered 0\.\.1"):
            corpus.sequence(number)


def test_annotations_are_sorted_by_token_then_annotator() -> None:
    corpus = small()
    assert corpus.annotators == ("bob", "eve")
    assert corpus.labels == ("LOC", "O", "PER")
    assert corpus.token_start.tolist() == [0, 2, 3, 4, 5, 6, 7]
    assert corpus.annotation_token.tolist() == [0, 0, 1, 2, 3, 4, 5]
    assert corpus.annotation_annotator.tolist() == [0, 1, 1, 0, 0, 0, 1]
    assert corpus.annotation_label.tolist() == [2, 2, 1, 0, 0, 1, 1]
    assert corpus.golds["gold"].tolist() == [2, 1, 0, 0, -1, -1]
    assert corpus.annotated_sequences.tolist() == [True, True, False, True]
    assert corpus.label_names(corpus.golds["gold"])[1] == ["LOC", "LOC", None]
    assert corpus.annotation_annotator.dtype == np.int32
    assert corpus.annotation_label.dtype == np.int16


def test_frozen() -> None:
    corpus = small()
    with pytest.raises(FrozenInstanceError):
        corpus.labels = ()  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        corpus.annotation_label[0] = 1
    with pytest.raises(TypeError):
        corpus.golds["x"] = corpus.golds["gold"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": np.array([0, 3, 2, 5, 6])}, "offsets must rise"),
        ({"offsets": np.array([0, 2, 5, 5])}, "offsets must rise"),
        ({"sequence_ids": ["a", "b", "c", "a"]}, "same id"),
        ({"sequence_ids": ["a"]}, "as many sequence ids"),
        ({"labels": ("LOC", "O", "O")}, "same name"),
        ({"labels": ("LOC", "O")}, r"annotation_label must lie in 0\.\.1"),
        ({"annotators": ("bob", "")}, "non-empty"),
        ({"annotation_annotator": np.array([1, 0, 1, 0, 0, 0, 1])}, "sorted by token and annotator"),
        ({"annotation_annotator": np.array([0, 0, 1, 0, 0, 0, 1])}, "one for each pair"),
        ({"annotation_label": np.array([0.0] * 7)}, "whole numbers"),
        ({"golds": {"gold": np.array([1, 2])}}, "must have 6 entries"),
        ({"golds": {"gold": np.array([-2, 0, 0, 0, 0, 0])}}, "must lie in -1"),
        ({"kinds": ("person", "boss")}, "kinds must be"),
        ({"families": ("", None)}, "families must be"),
        ({"votes": (True,)}, "votes must be"),
        ({"known": np.zeros((6, 3), bool)}, "no label is allowed"),
        ({"known": np.zeros((2, 3), bool)}, "known labels are"),
        ({"token_metadata": {"pos": ["x"]}}, "one entry per token"),
        ({"metadata": {"document": ["x"]}}, "one entry per sequence"),
        ({"token_chars": np.zeros((2, 2))}, "token_chars"),
    ],
)
def test_what_is_refused(change: dict[str, object], message: str) -> None:
    corpus = small()
    fields = {name: getattr(corpus, name) for name in corpus.__dataclass_fields__} | change
    with pytest.raises(CorpusError, match=message):
        CrowdCorpus(**fields)


def test_a_repeated_pair_is_an_error_whatever_the_order() -> None:
    triples = {"annotation_token": [1, 0, 1], "annotation_annotator": [0, 0, 0], "annotation_label": [0, 1, 1]}
    with pytest.raises(CorpusError, match="token 1"):
        CrowdCorpus.from_codes(
            tokens=["a", "b"], offsets=[0, 2], labels=["A", "B"], annotators=["x"], sequence_ids=["s"], **triples
        )


def test_ragged_lists_name_annotator_and_sequence() -> None:
    with pytest.raises(CorpusError, match=r"sequence 0: the tokens must be a list .* no string \(got: ab\)"):
        CrowdCorpus.from_sequences(["ab"], {"eve": [["X", "Y"]]})
    with pytest.raises(CorpusError, match=r"sequence 0: what gold 'g' says must be a list .* \(got: XY\)"):
        CrowdCorpus.from_sequences([["a", "b"]], {}, golds={"g": ["XY"]})
    with pytest.raises(CorpusError, match=r"sequence 1: annotator 'eve' has 1 labels for 2 tokens"):
        CrowdCorpus.from_sequences([["a"], ["b", "c"]], {"eve": [["A"], ["B"]]})


def test_select_by_index_mask_id_and_annotator() -> None:
    corpus = small()
    part = corpus.select(sequences=[3, 1])
    assert list(part.sequence_ids) == ["d", "b"]
    assert list(part.tokens) == ["hm", "New", "York", "."]
    assert part.annotation_annotator.tolist() == [1, 0, 0, 0]
    assert part == corpus.select(sequences=["d", "b"])
    mask = np.array([False, True, False, True])
    assert list(corpus.select(sequences=mask).sequence_ids) == ["b", "d"]
    only = corpus.select(annotators=["eve"])
    assert only.annotators == ("eve",)
    assert only.roles == ("model",)
    assert only.token_start.tolist() == [0, 1, 2, 2, 2, 2, 3]
    assert corpus.crowd().annotators == ("bob",)
    assert corpus.select(sequences=[]).n_tokens == 0
    with pytest.raises(CorpusError, match="no annotator"):
        corpus.select(annotators=["mallory"])
    with pytest.raises(CorpusError, match="no sequence"):
        corpus.select(sequences=["zzz"])
    with pytest.raises(CorpusError, match="must lie in"):
        corpus.select(sequences=[4])


@given(corpora())
@settings(max_examples=50, deadline=None)
def test_parts_put_together_are_the_whole(corpus: CrowdCorpus) -> None:
    parts = [corpus.select(sequences=[i]) for i in range(corpus.n_sequences)]
    assert CrowdCorpus.concat(parts) == corpus


def test_concat_matches_by_name() -> None:
    one = CrowdCorpus.from_sequences([["a"]], {"x": [["B"]]}, golds={"gold": [["B"]]}, sequence_ids=["1"])
    two = CrowdCorpus.from_sequences([["b"]], {"w": [["A"]], "x": [["C"]]}, sequence_ids=["2"])
    both = CrowdCorpus.concat([one, two])
    table = both.to_table().to_pylist()
    assert [(r["sequence"], r["annotator"], r["label"]) for r in table] == [
        ("1", "x", "B"),
        ("2", "w", "A"),
        ("2", "x", "C"),
    ]
    assert both.label_names(both.golds["gold"]) == [["B"], [None]]
    with pytest.raises(CorpusError, match="same id"):
        CrowdCorpus.concat([one, one])


def test_columns_from_files_replace_none_of_a_table() -> None:
    corpus = CrowdCorpus.from_sequences(
        [["a", "b"]], {"ann": [["token", "X"]]}, golds={"token": [["X", None]], "by": [["token", "X"]]},
        token_metadata={"position": ["here", "there"], "by": ["c", "d"]},
    )  # fmt: skip
    assert corpus.to_table("tokens").to_pydict() == {
        "sequence": ["0", "0"], "position": [0, 1], "token": ["a", "b"], "metadata position": ["here", "there"],
        "by": ["c", "d"], "gold token": ["X", None], "gold by": ["token", "X"],
    }  # fmt: skip
    soft = corpus.with_soft("llm", [[0.25, 0.75], [0.5, 0.5]]).to_table("soft").to_pydict()
    assert (soft["token"], soft["X"], soft["label token"]) == (["a", "b"], [0.25, 0.5], [0.75, 0.5])


def test_split_is_a_partition_and_keeps_documents_together() -> None:
    corpus = CrowdCorpus.from_sequences(
        [["a"]] * 100, {"x": [["A"]] * 100}, metadata={"document": [str(i // 10) for i in range(100)]}
    )
    parts = corpus.split(0.6, 0.2, seed=1)
    assert [p.n_sequences for p in parts] == [60, 20, 20]
    assert sorted(i for p in parts for i in p.sequence_ids) == sorted(corpus.sequence_ids)
    assert list(corpus.split(0.6, seed=1)[0].sequence_ids) == list(corpus.split(0.6, 0.4, seed=1)[0].sequence_ids)
    assert list(corpus.split(0.6, seed=2)[0].sequence_ids) != list(corpus.split(0.6, seed=1)[0].sequence_ids)
    train, test = corpus.split(0.5, seed=3, by="document")
    assert not set(train.metadata["document"]) & set(test.metadata["document"])
    with pytest.raises(ParameterError, match="adding up to at most 1"):
        corpus.split(0.8, 0.4)
    with pytest.raises(ParameterError, match="a metadata column"):
        corpus.split(0.8, by="author")


@pytest.mark.parametrize("backend", ["pyarrow", "pandas", "polars"])
def test_tables(backend: str) -> None:
    corpus = small()
    table = corpus.to_table(backend=backend)
    assert type(table).__module__.split(".")[0] == backend
    assert len(table) == corpus.n_annotations
    tokens = small().to_table("tokens", "pyarrow").to_pylist()
    assert tokens[4] == {"sequence": "b", "position": 2, "token": ".", "gold": None}


@given(corpora(), st.sampled_from(["arrow", "parquet"]))
@settings(max_examples=20, deadline=None)
def test_saved_and_loaded_is_the_same(tmp_path_factory: pytest.TempPathFactory, corpus: CrowdCorpus, fmt: str) -> None:
    folder = tmp_path_factory.mktemp("corpus") / "c"
    corpus.save(folder, format=fmt)
    assert CrowdCorpus.load(folder) == corpus


def test_load_report_roles_and_chars_survive(tmp_path: object) -> None:
    corpus = CrowdCorpus.from_sequences(
        [["a"]],
        {"x": [["A"]]},
        roles=("model",),
        token_chars=[[2, 3]],
        load_report=LoadReport("f.json", "doccano", {"skipped": 2}, {"skipped": ("f.json:3",)}, ("note",)),
    )
    corpus.save(f"{tmp_path}/c")
    back = CrowdCorpus.load(f"{tmp_path}/c")
    assert back == corpus
    assert back.load_report == corpus.load_report


def test_a_damaged_folder_is_one_clear_error(tmp_path: object) -> None:
    small().save(f"{tmp_path}/c")
    with pytest.raises(StoreError, match="not empty"):
        small().save(f"{tmp_path}/c")
    with pytest.raises(StoreError, match="no corpus to load"):
        CrowdCorpus.load(f"{tmp_path}/nothing")
    for name in ("tokens.arrow", "annotations.arrow", "corpus.json"):
        small().save(f"{tmp_path}/d", overwrite=True)
        path = f"{tmp_path}/d/{name}"
        with open(path, "rb") as file:
            data = file.read()
        with open(path, "wb") as file:
            file.write(data[: len(data) // 2])
        with pytest.raises(StoreError):
            CrowdCorpus.load(f"{tmp_path}/d")


def test_ten_million_annotations_load_in_seconds(tmp_path: object) -> None:
    n = 2_000_000
    start = np.arange(n, dtype=np.int64) * 5
    corpus = CrowdCorpus(
        tokens=Strings([f"w{i % 5000}" for i in range(n)]),
        offsets=np.arange(0, n + 1, 20),
        labels=tuple("ABCDEFGHI"),
        annotators=tuple(f"a{i:02d}" for i in range(47)),
        annotation_annotator=((start[:, None] // 5 * 3) % 40 + np.arange(5)).ravel(),
        annotation_label=(np.arange(5 * n) % 9).astype(np.int16),
        token_start=np.append(start, 5 * n),
        sequence_ids=Strings([str(i) for i in range(n // 20)]),
    )
    corpus.save(f"{tmp_path}/big", format="parquet")
    begin = time.process_time()
    back = CrowdCorpus.load(f"{tmp_path}/big")
    assert time.process_time() - begin < 5
    assert back == corpus


class TestStrings:
    def test_like_a_list(self) -> None:
        values = ["a", "😊", "", "a"]
        strings = Strings(values)
        assert list(strings) == values
        assert strings[1] == "😊"
        assert strings[-1] == "a"
        assert strings[1:3] == ["😊", ""]
        assert strings[::-2] == ["a", "😊"]
        assert strings == values
        with pytest.raises(IndexError):
            strings[4]

    def test_codes(self) -> None:
        codes, words = Strings(["b", "a", "b"]).codes()
        assert codes.tolist() == [0, 1, 0]
        assert list(words) == ["b", "a"]

    def test_refuses_what_is_no_string(self) -> None:
        for bad in ([1], ["a", None], ["\ud800"]):
            with pytest.raises(CorpusError):
                Strings(bad)


def rich() -> CrowdCorpus:
    """A corpus with every kind of evidence: a rule, a model that votes, soft votes, known labels, columns of tokens."""
    corpus = CrowdCorpus.from_sequences(
        [["Ada", "runs"], ["New", "York", "."], ["hm"]],
        {"ann": [["PER", "O"], None, ["O"]], "rule": [["PER", None], ["LOC", "LOC", "O"], None]},
        labels=["LOC", "O", "PER"],
        kinds=("person", "rule"),
        families=(None, "lexica"),
        metadata={"document": ["x", "y", "y"], "page": [1, 2, None]},
        token_metadata={"pos": ["N", "V", "N", "N", ".", "I"]},
    )
    proba = np.full((6, 3), np.nan)
    proba[[1, 2, 5]] = [[0.2, 0.5, 0.3], [1, 0, 0], [1 / 3, 1 / 3, 1 / 3]]
    known = np.ones((6, 3), bool)
    known[0] = [False, False, True]
    known[3] = [True, False, True]
    return corpus.with_soft("bert", proba, family="bert").with_known(known)


def test_kinds_families_and_votes() -> None:
    corpus = rich()
    assert corpus.kinds == ("person", "rule", "model")
    assert corpus.roles == ("annotator", "annotator", "model")
    assert corpus.families == (None, "lexica", "bert")
    assert corpus.votes == (True, True, True)  # a model that was added on purpose votes
    assert list(corpus.metadata["page"]) == ["1", "2", ""]
    quiet = corpus.with_voters(["ann"])
    assert quiet.votes == (True, False, False)
    assert quiet.crowd().annotators == ("ann",)
    assert quiet.crowd().soft is None
    assert quiet != corpus
    assert small().votes == (True, False)  # a model that came with the export does not
    with pytest.raises(CorpusError, match="no annotator"):
        corpus.with_voters(["mallory"])


def test_soft_votes_go_where_their_tokens_and_annotators_go() -> None:
    corpus = rich()
    assert corpus.soft is not None
    assert corpus.soft.token.tolist() == [1, 2, 5]
    assert corpus.soft.annotator.tolist() == [2, 2, 2]
    assert corpus.soft.proba.dtype == np.float32
    part = corpus.select(sequences=[2, 0])
    assert part.soft is not None
    assert part.soft.token.tolist() == [0, 2]
    assert part.soft.proba[1].tolist() == corpus.soft.proba[0].tolist()
    only = corpus.select(annotators=["bert"])
    assert only.soft is not None
    assert only.soft.annotator.tolist() == [0, 0, 0]
    assert corpus.select(annotators=["ann"]).soft is None
    table = corpus.to_table("soft").to_pylist()
    assert [(row["token"], row["annotator"], row["LOC"]) for row in table][1] == ("New", "bert", 1.0)
    assert corpus.annotated_sequences.all()


def test_known_labels_are_codes_or_flags() -> None:
    corpus = rich()
    assert corpus.known is not None
    assert corpus.known.token.tolist() == [0, 3]
    assert corpus.known.codes(6).tolist() == [2, -1, -1, -1, -1, -1]
    assert corpus.known.mask(6).sum(axis=1).tolist() == [1, 3, 3, 2, 3, 3]
    part = corpus.select(sequences=["1"])
    assert part.known is not None
    assert part.known.token.tolist() == [1]
    assert corpus.to_table("tokens").column("known").to_pylist()[:4] == [["PER"], None, None, ["LOC", "PER"]]
    codes = np.array([2, -1, -1, 0, -1, 1])
    again = corpus.with_known(codes)
    assert again.known is not None
    assert again.known.codes(6).tolist() == codes.tolist()
    assert corpus.with_known(np.full(6, -1)).known is None
    assert corpus.with_known(None).known is None
    for bad in (np.full(6, 3), np.zeros(5, int), np.zeros((6, 3))):
        with pytest.raises(CorpusError, match="known"):
            corpus.with_known(bad)


def test_all_evidence_survives_folders_parts_and_copies(tmp_path: object) -> None:
    corpus = rich()
    for fmt in ("arrow", "parquet"):
        corpus.save(f"{tmp_path}/{fmt}", format=fmt)
        assert CrowdCorpus.load(f"{tmp_path}/{fmt}") == corpus
    parts = [corpus.select(sequences=[i]) for i in range(3)]
    joined = CrowdCorpus.concat(parts)
    assert joined.select(annotators=corpus.annotators) == CrowdCorpus.concat([corpus])
    assert joined.soft is not None
    assert joined.soft.token.tolist() == [1, 2, 5]
    assert joined.known is not None
    assert joined.known.allowed.tolist() == corpus.known.allowed.tolist()  # type: ignore[union-attr]
    copied = pickle.loads(pickle.dumps(corpus))  # noqa: S301
    assert copied == corpus
    assert copied.load_report == corpus.load_report
    assert copy.deepcopy(corpus) == corpus
    for change in ({"known": None}, {"soft": None}, {"families": (None, None, None)}, {"token_metadata": {}}):
        assert dataclasses.replace(corpus, **change) != corpus  # type: ignore[arg-type]


def test_concat_recodes_soft_votes_and_known_labels() -> None:
    one = CrowdCorpus.from_sequences([["a"]], {"x": [["B"]]}, sequence_ids=["1"], labels=["B", "C"])
    one = one.with_soft("m", [[0.25, 0.75]]).with_known([1])
    two = CrowdCorpus.from_sequences([["b"]], {"x": [["A"]]}, sequence_ids=["2"])
    both = CrowdCorpus.concat([two, one])
    assert both.labels == ("A", "B", "C")
    assert both.soft is not None
    assert both.soft.proba.tolist() == [[0, 0.25, 0.75]]
    assert both.soft.token.tolist() == [1]
    assert both.known is not None
    assert both.known.codes(2).tolist() == [-1, 2]
    with pytest.raises(CorpusError, match="annotator 'x' is"):
        CrowdCorpus.concat([one, dataclasses.replace(two, kinds=("rule",))])


@pytest.mark.parametrize(
    ("token", "annotator", "proba", "message"),
    [
        ([0], [0], [[0.5, 0.5, 0]], "both a label and probabilities"),
        ([1], [5], [[0.5, 0.5, 0]], "annotators of soft votes"),
        ([9], [0], [[0.5, 0.5, 0]], "tokens of soft votes"),
        ([3], [0], [[0.5, 0.4, 0]], "add up to 1"),
        ([3], [0], [[1.5, -0.5, 0]], "at least 0"),
        ([3], [0], [[float("nan"), 0.5, 0.5]], "add up to 1"),
        ([3], [0], [[0.5, 0.5]], "3 probabilities"),
        ([3, 2], [0, 0], [[1, 0, 0], [1, 0, 0]], "sorted by token"),
        ([3, 3], [0, 0], [[1, 0, 0], [1, 0, 0]], "one for each pair"),
    ],
)
def test_soft_votes_that_are_refused(token: list[int], annotator: list[int], proba: object, message: str) -> None:
    corpus = small()
    soft = SoftVotes(np.array(token), np.array(annotator), np.array(proba, float))
    with pytest.raises(CorpusError, match=message):
        dataclasses.replace(corpus, soft=soft)


def test_a_folder_of_version_1_is_read(tmp_path: object) -> None:
    """What 0.1.0 saved: `roles`, and nothing of what came later."""
    corpus = small()
    corpus.save(f"{tmp_path}/c")
    header = json.loads(Path(f"{tmp_path}/c/corpus.json").read_text(encoding="utf-8"))
    for name in ("kinds", "families", "votes", "token_metadata", "soft", "known"):
        del header[name]
    header |= {"version": 1, "roles": ["annotator", "model"]}
    _rewrite(f"{tmp_path}/c", header)
    assert CrowdCorpus.load(f"{tmp_path}/c") == corpus
    _rewrite(f"{tmp_path}/c", header | {"version": 77})
    with pytest.raises(StoreError, match="lasca convert"):
        CrowdCorpus.load(f"{tmp_path}/c")


def _rewrite(folder: str, header: dict[str, object]) -> None:
    with open(f"{folder}/corpus.json", "w", encoding="utf-8") as file:
        json.dump(header, file)
    write_sums(Path(folder))


def test_codes_without_ids_number_the_sequences() -> None:
    corpus = CrowdCorpus.from_codes(
        tokens=["Ada", "ran", "off"],
        offsets=[0, 2, 3],
        labels=["A", "B"],
        annotators=["ann"],
        annotation_token=[0, 2],
        annotation_annotator=[0, 0],
        annotation_label=[1, 0],
    )
    assert list(corpus.sequence_ids) == ["0", "1"]
    assert corpus.n_annotations == 2


@pytest.mark.parametrize("lengths", [[], [0], [1], [3], [2, 0, 3], [0, 1, 2, 0], [4, 4]])
def test_followers_have_a_token_before_them_in_their_sequence(lengths: list[int]) -> None:
    offsets = borders(lengths)
    wanted = [i for a, b in pairwise(offsets.tolist()) for i in range(a + 1, b)]
    assert followers(offsets).tolist() == wanted


def test_codes_that_do_not_fit_are_refused_and_never_cut_down() -> None:
    """Label 65536 was label 0, annotator 0.7 annotator 0."""
    texts: dict[str, Any] = {"tokens": ["a", "b"], "offsets": [0, 2], "labels": ["N", "V"], "annotators": ["x"]}
    for name, codes in (
        ("annotation_label", [65536, 1]), ("annotation_annotator", [2**32, 0]), ("annotation_annotator", [0.7, 0.0]),
        ("annotation_token", [0.0, 1.0]), ("annotation_label", ["N", "V"]),
    ):  # fmt: skip
        given: dict[str, Any] = {"annotation_token": [0, 1], "annotation_annotator": [0, 0], "annotation_label": [0, 1]}
        with pytest.raises(CorpusError, match=name):
            CrowdCorpus.from_codes(**texts, **given | {name: codes})


def test_lists_that_do_not_fit_are_refused() -> None:
    words = [str(i) for i in range(2**15)]
    with pytest.raises(CorpusError, match="at most 32767 labels"):
        CrowdCorpus.from_sequences([words], {"a": [words]})
    for s in (1, -1):
        with pytest.raises(CorpusError, match="sequence that is not there"):
            CrowdCorpus.from_sequences([["a"]], {"x": {s: ["N"]}})
    with pytest.raises(CorpusError, match="no text that can be written"):
        CrowdCorpus.from_sequences([["a"]], {"x": [["\ud800"]]})

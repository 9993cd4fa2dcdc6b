"""Tag schemes: detection, transitions, spans and tags, conversion, repair, on lists and on corpora."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from lasca import schemes
from lasca.corpus import CrowdCorpus
from lasca.errors import CorpusError, ParameterError

IOB2 = ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]
BIOES = ["B-X", "E-X", "I-X", "O", "S-X", "B-Y", "E-Y", "I-Y", "S-Y"]
NASTY = st.lists(
    st.sampled_from(["O", "B-A", "I-A", "E-A", "S-A", "B-BB", "I-BB", "E-BB", "S-BB", "B-x-y", "I-x-y"]), max_size=12
)
TAGS = st.lists(st.one_of(st.none(), st.sampled_from(["O", "B-A", "I-A", "B-C", "I-C"])), max_size=8)


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        (IOB2, "IOB2"),
        (["O", "B", "I"], "IOB2"),
        (["O", "B-X"], "IOB2"),
        (["O", "I-X"], "IO"),
        (["O"], "IO"),
        (BIOES, "BIOES"),
        (["S-X", "O"], "BIOES"),
        (["B-X", "L-X", "U-X", "I-X", "O"], "BILOU"),
        (["B-X", "M-X", "E-X", "S-X", "O"], "BMES"),
        (["NOUN", "VERB", "."], None),
        (["NOUN", "O"], None),
        (["B-X", "I-X", "O", "FLAG"], None),
        (["-LRB-", "I-", "B-"], None),
        (["B-X", "L-X", "E-X"], None),
        ([], None),
    ],
)
def test_detect_by_labels(labels: list[str], scheme: str | None) -> None:
    assert schemes.detect(labels) == scheme


def test_detect_iob1_by_its_use() -> None:
    iob1 = [["I-X", "B-X", "I-X", "O"], ["I-Y"]]
    labels = {label for row in iob1 for label in row}
    assert schemes.detect(labels, iob1) == "IOB1"
    assert schemes.detect(labels, [*iob1, ["O", "B-X"]]) == "IOB2"
    assert schemes.detect(labels, [[None, "I-X", "B-X"]]) == "IOB1"
    corpus = CrowdCorpus.from_sequences([["a"] * 4, ["b"]], {"w": iob1}, golds={"g": iob1})
    assert schemes.detect_corpus(corpus) == "IOB1"
    assert schemes.detect_corpus(schemes.convert_corpus(corpus, "IOB2")) == "IOB2"


@pytest.mark.parametrize("scheme", ["IO", "IOB1", "IOB2", "BIOES"])
def test_transitions_allow_exactly_the_legal_sequences(scheme: str) -> None:
    labels = schemes.complete_labels(["B-X", "I-Y"], scheme)
    start, allowed, end = schemes.transitions(labels, scheme)
    n_legal = 0
    for length in (1, 2, 3):
        for path in product(range(len(labels)), repeat=length):
            by_table = start[path[0]] and end[path[-1]] and all(allowed[a, b] for a, b in pairwise(path))
            row = [labels[i] for i in path]
            # a path is legal iff writing down what is read from it gives the same path
            assert bool(by_table) == schemes.is_legal(row, scheme), row
            n_legal += bool(by_table)
    assert n_legal > 20


def test_transitions_of_parts_of_speech_allow_all() -> None:
    start, allowed, end = schemes.transitions(["NOUN", "VERB"])
    assert start.all()
    assert allowed.all()
    assert end.all()
    assert allowed.shape == (2, 2)
    assert schemes.transitions([])[1].shape == (0, 0)


def test_transitions_always_leave_a_path() -> None:
    start, allowed, end = schemes.transitions(["B-X", "E-X"])
    assert start.all()
    assert allowed.all()
    assert end.all()
    start, allowed, _ = schemes.transitions(["B-X", "E-X", "O"])
    assert start.tolist() == [True, False, True]
    assert not allowed[0, 0]


@settings(max_examples=500, deadline=None)
@given(NASTY)
def test_spans_are_those_of_seqeval(labels: list[str]) -> None:
    expected = [(start, stop + 1, type_) for type_, start, stop in get_entities(labels)]
    assert schemes.spans(labels) == expected


@settings(max_examples=300, deadline=None)
@given(NASTY, st.sampled_from(["IOB1", "IOB2", "BIOES", "BILOU", "BMES"]))
def test_writing_keeps_the_spans_and_is_legal(labels: list[str], scheme: str) -> None:
    found = schemes.spans(labels)
    written = schemes.tags(found, len(labels), scheme)
    assert schemes.spans(written) == found
    assert schemes.is_legal(written, scheme)
    fixed, n = schemes.repair(written, scheme)
    assert (fixed, n) == (written, 0)


def test_io_merges_neighbours_of_one_type() -> None:
    assert schemes.tags([(0, 1, "X"), (1, 2, "X")], 3, "IO") == ["I-X", "I-X", "O"]
    assert schemes.tags([(0, 1, "X"), (1, 2, "X")], 3, "IOB1") == ["I-X", "B-X", "O"]
    assert schemes.tags([(0, 1, ""), (1, 3, "")], 3, "BIOES") == ["S", "B", "E"]


@pytest.mark.parametrize("found", [[(0, 2, "X"), (1, 3, "X")], [(1, 1, "X")], [(2, 4, "X")], [(-1, 1, "X")]])
def test_impossible_spans_are_refused(found: list[tuple[int, int, str]]) -> None:
    with pytest.raises(CorpusError, match="spans must lie"):
        schemes.tags(found, 3)


def test_repair_counts_and_leaves_missing_alone() -> None:
    assert schemes.repair(["I-X", None, "I-X", "I-Y"], "IOB2") == (["B-X", None, "B-X", "B-Y"], 3)
    assert schemes.repair(["B-X", "O", "E-X"], "BIOES") == (["S-X", "O", "S-X"], 2)


def test_unknown_names_are_named() -> None:
    with pytest.raises(ParameterError, match="scheme must be one of"):
        schemes.tags([], 2, "BIO")
    with pytest.raises(ParameterError, match="NOUN"):
        schemes.spans(["NOUN"])
    corpus = CrowdCorpus.from_sequences([["a"]], {"w": [["NOUN"]]})
    with pytest.raises(CorpusError, match="of no tag scheme"):
        schemes.convert_corpus(corpus, "IOB2")
    assert schemes.repair_corpus(corpus) is corpus


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(TAGS, TAGS, TAGS), min_size=1, max_size=4), st.sampled_from(["IO", "IOB1", "IOB2", "BIOES"]))
def test_corpora_are_converted_like_lists(rows: list[tuple[list, list, list]], scheme: str) -> None:
    sequences = [[(r + [None] * 8)[: max(len(one) for one in row)] for r in row] for row in rows]
    corpus = CrowdCorpus.from_sequences(
        [["t"] * len(row[0]) for row in sequences],
        {"v": [row[0] for row in sequences], "w": [row[1] for row in sequences]},
        golds={"g": [row[2] for row in sequences]},
        labels=["O"],
    )
    done = schemes.convert_corpus(corpus, scheme)
    for a, name in enumerate(("v", "w", "g")):
        if name == "g":
            codes = done.golds["g"]
        else:
            codes = np.full(done.n_tokens, -1)
            mine = done.annotation_annotator == done.annotators.index(name)
            codes[done.annotation_token[mine]] = done.annotation_label[mine]
        assert done.label_names(codes) == [schemes.convert(row[a], scheme) for row in sequences]
    if scheme == "IOB2" and schemes.detect(corpus.labels) == "IOB2":
        changed = [sum(x != y for x, y in zip(r, schemes.convert(r, scheme))) for row in sequences for r in row]
        assert sum(schemes.count_illegal(corpus)) == sum(changed)
        assert schemes.count_illegal(schemes.repair_corpus(corpus)) == (0, 0)


def crowd(**said: list[str]) -> CrowdCorpus:
    return CrowdCorpus.from_sequences([["t"] * 6], {name: [labels] for name, labels in said.items()})


IOB2 = ["B-X", "I-X", "O", "B-Y", "O", "B-X"]
BIOES = ["B-X", "E-X", "O", "S-Y", "O", "S-X"]
IO = ["I-X", "I-X", "O", "I-Y", "O", "I-X"]


def test_annotators_with_different_schemes_are_told() -> None:
    assert schemes.mixed_schemes(crowd(a=IOB2, b=BIOES, c=IOB2)) == {"IOB2": ["a", "c"], "BIOES or BMES": ["b"]}
    assert schemes.mixed_schemes(crowd(a=IOB2, b=IO)) == {"IOB2": ["a"], "IO or IOB1": ["b"]}
    plain, lower = [label[2:] or "O" for label in IOB2], [label.lower() for label in IOB2]
    mixed = schemes.mixed_schemes(crowd(a=IOB2, b=plain, c=lower))
    assert mixed == {"IOB2": ["a"], "no B- and I-": ["b"], "lower case": ["c"]}
    bilou = [label.replace("E-", "L-").replace("S-", "U-") for label in BIOES]
    assert schemes.mixed_schemes(crowd(a=BIOES, b=bilou)) == {"BIOES or BMES": ["a"], "BILOU": ["b"]}
    gold = CrowdCorpus.from_sequences([["t"] * 6], {"a": [BIOES]}, golds={"g": [IOB2]})
    assert schemes.mixed_schemes(gold) == {"BIOES or BMES": ["a"], "IOB2": ["gold g"]}


def test_annotators_whose_labels_fit_one_scheme_are_left_alone() -> None:
    few, none = ["I-X", *"OOOOO"], ["O"] * 6
    careless = ["I-X", "O", "B-X", "O", "B-Y", "O"]
    assert schemes.mixed_schemes(crowd(a=IOB2, b=few, c=none, d=careless)) == {}
    assert schemes.mixed_schemes(crowd(a=BIOES, b=["S-X", *"OOOOO"], c=none, d=["B-Y", "I-Y", "E-Y", *"OOO"])) == {}
    assert schemes.mixed_schemes(crowd(a=IO, b=["I-X", "B-X", "I-Y", "O", "I-X", "O"])) == {}
    assert schemes.mixed_schemes(crowd(a=list("ABCBSO"), b=list("BSBSBO"), c=list("NNNVVO"))) == {}
    assert schemes.mixed_schemes(crowd(a=["NOUN", "VERB", "NOUN", "X", "O", "O"], b=["noun"] * 6)) == {}


def test_mixed_schemes_become_one() -> None:
    bilou = [label.replace("E-", "L-").replace("S-", "U-") for label in BIOES]
    done = schemes.convert_corpus(crowd(a=IOB2, b=BIOES, c=bilou), "IOB2")
    assert done.to_table(backend="pandas").groupby("annotator")["label"].agg(list).tolist() == [IOB2] * 3
    assert schemes.mixed_schemes(done) == {}


def test_repair_is_reported() -> None:
    corpus = CrowdCorpus.from_sequences([["a", "b"]], {"w": [["I-X", "O"]]}, golds={"g": [["B-X", "I-Y"]]})
    counts = schemes.repair_corpus(corpus).load_report.counts
    assert dict(counts) == {"repaired": 1, "repaired in golds": 1}

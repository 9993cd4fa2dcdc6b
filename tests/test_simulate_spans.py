"""Errors in entities: each kind of slip against its definition, and the result is always legal IOB2."""

from __future__ import annotations

import numpy as np
import pytest

from lasca import evaluate, simulate
from lasca.corpus import CrowdCorpus
from lasca.errors import ParameterError
from lasca.simulate import slips

SURE = {"sure": (1.0, 1.0)}
NEVER = {"never": (0.0, 0.0)}


@pytest.fixture(scope="module")
def corpus() -> CrowdCorpus:
    return simulate.big(30_000, per_token=1, seed=3).select(annotators=[])


def columns(made: CrowdCorpus) -> np.ndarray:
    return np.asarray(made.annotation_label).reshape(made.n_tokens, made.n_annotators).T


def assert_legal(codes: np.ndarray, corpus: CrowdCorpus) -> None:
    lenient = evaluate.find_spans(codes, corpus.offsets, corpus.labels)
    strict = evaluate.find_spans(codes, corpus.offsets, corpus.labels, mode="strict", scheme="iob2")
    np.testing.assert_array_equal(lenient[0], strict[0])
    np.testing.assert_array_equal(lenient[1], strict[1])


def span_set(codes: np.ndarray, corpus: CrowdCorpus) -> set[tuple[int, int, str]]:
    start, end, kind, types = evaluate.find_spans(codes, corpus.offsets, corpus.labels)
    return {(int(a), int(b), types[k]) for a, b, k in zip(start, end, kind)}


def test_the_generator_makes_legal_gold(corpus: CrowdCorpus) -> None:
    assert_legal(corpus.golds["gold"], corpus)
    lengths = {b - a for a, b, _ in span_set(corpus.golds["gold"], corpus)}
    assert lengths == {1, 2, 3}


def test_reading_spans_equals_the_scorer(corpus: CrowdCorpus) -> None:
    rng = np.random.default_rng(0)
    read = slips.SpanLabels.of(corpus.labels).read
    for codes in (corpus.golds["gold"], rng.integers(0, 9, corpus.n_tokens).astype(np.int16)):
        found = read.spans(codes, corpus.offsets)
        ours = {(int(a), int(b), read.types[k]) for a, b, k in zip(found.start, found.stop, found.kind)}
        assert ours == span_set(codes, corpus)


@pytest.mark.parametrize("kind", ["miss", "short", "long", "type"])
def test_each_kind_of_error(corpus: CrowdCorpus, kind: str) -> None:
    made = simulate.crowd(
        corpus, groups={"never": 1}, ranges=NEVER, errors="spans", span_errors={kind: 1.0}, false_spans=0, seed=1
    )
    codes = columns(made)[0]
    assert_legal(codes, corpus)
    gold, found = span_set(corpus.golds["gold"], corpus), span_set(codes, corpus)
    assert not gold & found
    if kind == "miss":
        assert not found
    elif kind == "type":
        assert {(a, b) for a, b, _ in found} == {(a, b) for a, b, _ in gold}
        assert len({t for _, _, t in found}) == 4
    elif kind == "short":
        allowed = {x for a, b, t in gold for x in ((a + 1, b, t), (a, b - 1, t)) if b - a > 1}
        assert found <= allowed
        assert len(found) == sum(b - a > 1 for a, b, _ in gold)
    else:
        longer = {x for a, b, t in gold for x in ((a - 1, b, t), (a, b + 1, t))}
        shorter = {x for a, b, t in gold for x in ((a + 1, b, t), (a, b - 1, t))}
        assert found <= longer | shorter
        assert len(found & longer) > 0.7 * len(gold)
        sequence = corpus.token_sequence
        assert all(sequence[a] == sequence[b - 1] for a, b, _ in found)


def test_precision_is_the_share_of_spans_kept(corpus: CrowdCorpus) -> None:
    settings = simulate.CrowdSettings(groups={"medium": 3}, errors="spans", false_spans=0, seed=4)
    made = simulate.simulation(corpus, settings)
    gold = span_set(corpus.golds["gold"], corpus)
    for codes, precision in zip(columns(made.corpus), made.precision[:, 0]):
        assert_legal(codes, corpus)
        kept = len(gold & span_set(codes, corpus)) / len(gold)
        assert abs(kept - precision) < 4.5 * np.sqrt(precision * (1 - precision) / len(gold))


def test_false_spans(corpus: CrowdCorpus) -> None:
    made = simulate.crowd(
        corpus, groups={"never": 1}, ranges=NEVER, errors="spans", span_errors={"miss": 1}, false_spans=0.2, seed=1
    )
    found, gold = span_set(columns(made)[0], corpus), span_set(corpus.golds["gold"], corpus)
    assert len(found) == pytest.approx(0.2 * len(gold), rel=0.15)
    perfect = simulate.crowd(corpus, groups={"sure": 2}, ranges=SURE, errors="spans", false_spans=5)
    assert (columns(perfect) == corpus.golds["gold"]).all()


def test_hard_cases_are_taken_whole() -> None:
    tokens = [["the", "Union", "of", "Oslo", "won"]] * 400
    first = [["O", "B-ORG", "I-ORG", "I-ORG", "O"]] * 400
    second = [["O", "B-ORG", "O", "B-LOC", "O"]] * 400
    corpus = CrowdCorpus.from_sequences(tokens, {}, golds={"gold": first, "gold2": second}, labels=["I-LOC"])
    made = simulate.crowd(
        corpus, groups={"sure": 1}, ranges=SURE, errors="spans", hard_cases=0.3, second_gold="gold2", seed=1
    )
    rows = [tuple(row) for row in made.label_names(columns(made)[0])]
    assert set(rows) == {tuple(first[0]), tuple(second[0])}
    assert rows.count(tuple(second[0])) / 400 == pytest.approx(0.3, abs=0.1)


def test_cases_join_what_a_span_of_either_gold_holds_together() -> None:
    labels = ("B-X", "I-X", "O")
    tables = slips.SpanLabels.of(labels)
    first, second = np.array([0, 1, 2, 2, 0, 2], np.int16), np.array([2, 0, 1, 2, 0, 2], np.int16)
    case, differ = slips.cases(first, second, np.array([0, 4, 6]), tables)
    np.testing.assert_array_equal(case, [0, 0, 0, 1, 2, 3])
    np.testing.assert_array_equal(differ, [True, False, False, False])


def test_labels_must_be_iob2() -> None:
    for labels in (["B-X", "I-X"], ["B-X", "I-X", "S-X", "O"], ["B-X", "O"]):
        corpus = CrowdCorpus.from_sequences([["a"]], {}, golds={"gold": [["B-X"]]}, labels=labels)
        with pytest.raises(ParameterError):
            simulate.crowd(corpus, errors="spans")


def test_per_label_and_habits_work_with_spans(corpus: CrowdCorpus) -> None:
    for wrong in simulate.WRONG:
        made = simulate.crowd(corpus, groups="ca1", errors="spans", wrong=wrong, per_label=True, common=0.01, seed=2)
        for codes in columns(made):
            assert_legal(codes, corpus)

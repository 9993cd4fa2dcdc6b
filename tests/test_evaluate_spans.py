"""Span scores equal seqeval's, default and strict, on random and nasty labels; and they are fast."""

from __future__ import annotations

import random
import time
import warnings

import numpy as np
import pytest
import seqeval.metrics.v1
import seqeval.scheme
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities, precision_recall_fscore_support

from lasca import evaluate
from lasca.errors import CorpusError, LascaError, ParameterError

SEQEVAL = {
    "iob1": seqeval.scheme.IOB1,
    "iob2": seqeval.scheme.IOB2,
    "ioe2": seqeval.scheme.IOE2,
    "bioes": seqeval.scheme.IOBES,
    "bilou": seqeval.scheme.BILOU,
}
NASTY = ["B", "I", "E", "S", "B-", "I--X", "B-A-B", "I-A-B", "X-PER", "U-PER", "L-PER", ".", "NOUN", "I-_", "O-X"]


def labels_of(prefixes: str, types: tuple[str, ...] = ("PER", "LOC", "A-B")) -> list[str]:
    return ["O"] + [f"{p}-{t}" for p in prefixes for t in types]


def draw(rng: random.Random, labels: list[str], n_sequences: int, longest: int = 12) -> list[list[str]]:
    """Draw label sequences that stick to a type for a while, so that spans are long enough to differ."""
    rows = []
    for _ in range(n_sequences):
        row: list[str] = []
        for _ in range(rng.randrange(longest)):
            row.append(rng.choice(labels) if not row or rng.random() < 0.6 else rng.choice([row[-1], "O", *labels]))
        rows.append(row)
    return rows


def disturbed(rng: random.Random, rows: list[list[str]], labels: list[str]) -> list[list[str]]:
    return [[label if rng.random() < 0.7 else rng.choice(labels) for label in row] for row in rows]


def assert_same(ours: evaluate.SpanScores, per_type: tuple, micro: tuple, names: list[str]) -> None:
    assert list(ours.per_type) == names
    for i, name in enumerate(names):
        p = ours.per_type[name]
        np.testing.assert_allclose((p.precision, p.recall, p.f1), [x[i] for x in per_type[:3]], rtol=1e-12, atol=0)
        assert p.n_gold == per_type[3][i]
    np.testing.assert_allclose((ours.precision, ours.recall, ours.f1), micro[:3], rtol=1e-12, atol=0)
    assert ours.n_gold == micro[3]


def compare(gold: list[list[str]], predicted: list[list[str]], scheme: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # seqeval warns about odd labels and empty denominators
        if scheme is None:
            per_type = precision_recall_fscore_support(gold, predicted, average=None)
            micro = precision_recall_fscore_support(gold, predicted, average="micro")
            found = get_entities(gold) + get_entities(predicted) if gold else []
            names = sorted({kind for kind, _, _ in found})
            ours = evaluate.spans(gold, predicted)
        else:
            score = seqeval.metrics.v1.precision_recall_fscore_support
            per_type = score(gold, predicted, average=None, scheme=SEQEVAL[scheme])
            micro = score(gold, predicted, average="micro", scheme=SEQEVAL[scheme])
            names = seqeval.metrics.v1.unique_labels(gold, predicted, SEQEVAL[scheme])
            ours = evaluate.spans(gold, predicted, mode="strict", scheme=scheme)
    assert_same(ours, per_type, micro, names)


@pytest.mark.parametrize("prefixes", ["BI", "I", "BIES", "BILU", "EI", "nasty"])
def test_lenient_equals_seqeval_default(prefixes: str) -> None:
    rng = random.Random(prefixes)
    labels = labels_of("BIES", ("PER", "LOC")) + NASTY if prefixes == "nasty" else labels_of(prefixes)
    for _ in range(2000 // 6 + 1):
        gold = draw(rng, labels, rng.randrange(1, 5))
        compare(gold, disturbed(rng, gold, labels), None)


@pytest.mark.parametrize("scheme", list(SEQEVAL))
def test_strict_equals_seqeval_strict(scheme: str) -> None:
    rng = random.Random(scheme)
    prefixes = evaluate.SCHEMES[scheme][0].replace("O", "")
    labels = labels_of(prefixes) + list(prefixes) + [f"{p}--X-" for p in prefixes]
    for _ in range(400):
        gold = draw(rng, labels, rng.randrange(1, 5))
        compare(gold, disturbed(rng, gold, labels), scheme)


def test_auto_scheme_is_seqevals() -> None:
    rng = random.Random(0)
    for prefixes, scheme in (("BI", "iob2"), ("EI", "ioe2"), ("BIES", "bioes"), ("BILU", "bilou")):
        gold = [labels_of(prefixes), *draw(rng, labels_of(prefixes), 20)]
        assert evaluate.spans(gold, gold, mode="strict").scheme == scheme
        assert seqeval.scheme.auto_detect(gold) is SEQEVAL[scheme]
    assert evaluate.spans([["I-PER", "I-PER"]], [["I-PER", "I-PER"]], mode="strict").f1 == 1.0


def test_macro_and_weighted_equal_seqeval() -> None:
    rng = random.Random(5)
    gold = draw(rng, labels_of("BI"), 50)
    predicted = disturbed(rng, gold, labels_of("BI"))
    ours = evaluate.spans(gold, predicted)
    for average, value in (("macro", ours.macro_f1), ("weighted", ours.weighted_f1)):
        assert value == pytest.approx(precision_recall_fscore_support(gold, predicted, average=average)[2], rel=1e-12)


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from(labels_of("BIES") + NASTY), max_size=8), min_size=1, max_size=4), st.data())
def test_any_labels_equal_seqeval(gold: list[list[str]], data: st.DataObject) -> None:
    predicted = [data.draw(st.permutations(row)) for row in gold]
    compare(gold, [list(row) for row in predicted], None)


def test_worked_example() -> None:
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG", "I-ORG"]]
    predicted = [["I-PER", "I-PER", "O", "B-ORG"], ["O", "B-ORG", "O"]]
    ours = evaluate.spans(gold, predicted)
    assert (ours.n_gold, ours.n_predicted, ours.n_correct) == (3, 3, 1)
    assert ours.per_type["PER"].f1 == 1.0
    assert ours.per_type["LOC"] == evaluate.Prf(0.0, 0.0, 0.0, 1, 0, 0)
    strict = evaluate.spans(gold, predicted, mode="strict", scheme="iob2")
    assert (strict.n_predicted, strict.n_correct) == (2, 0)


def test_find_spans_are_half_open_token_indices() -> None:
    labels = ["O", "B-PER", "I-PER"]
    start, end, kind, types = evaluate.find_spans([1, 2, 0, 2, 1], [0, 3, 3, 5], labels)
    assert list(zip(start.tolist(), end.tolist())) == [(0, 2), (3, 4), (4, 5)]
    assert [types[k] for k in kind] == ["PER"] * 3
    strict = evaluate.find_spans([1, 2, 0, 2, 1], [0, 3, 3, 5], labels, mode="strict", scheme="IOB2")
    assert list(zip(strict[0].tolist(), strict[1].tolist())) == [(0, 2), (4, 5)]
    with pytest.raises(ParameterError, match="scheme must be"):
        evaluate.find_spans([1], [0, 1], labels, mode="strict", scheme="auto")


def test_missing_gold_and_masks_are_left_out_and_counted() -> None:
    labels = ["B-PER", "I-PER", "O"]
    gold, predicted = np.array([0, 1, -1, 2, 0, 2]), np.array([0, 1, 2, 2, -1, 2])
    scores = evaluate.spans_from_codes(gold, predicted, [0, 2, 4, 6], labels)
    assert (scores.n_sequences, scores.left_out_sequences, scores.left_out_tokens) == (2, 1, 2)
    assert (scores.n_gold, scores.n_correct, scores.unpredicted_tokens) == (2, 1, 1)
    chosen = evaluate.spans_from_codes(gold, predicted, [0, 2, 4, 6], labels, sequences=[0])
    assert (chosen.f1, chosen.n_sequences, chosen.left_out_tokens) == (1.0, 1, 4)
    masked = evaluate.spans_from_codes(gold, predicted, [0, 2, 4, 6], labels, sequences=np.array([False, True, True]))
    assert (masked.n_gold, masked.n_correct) == (1, 0)
    named = evaluate.spans([["B-PER"], ["O", None]], [["B-PER"], ["O", "O"]])
    assert (named.f1, named.left_out_sequences) == (1.0, 1)


def test_mask_equals_scoring_the_part_alone() -> None:
    rng = random.Random(11)
    gold = draw(rng, labels_of("BI"), 60)
    predicted = disturbed(rng, gold, labels_of("BI"))
    kept = [i for i in range(60) if i % 3]
    part = evaluate.spans([gold[i] for i in kept], [predicted[i] for i in kept])
    assert evaluate.spans(gold, predicted, sequences=kept).per_type == part.per_type


def test_nothing_to_score() -> None:
    for rows in ([], [[]], [["O", "O"]]):
        scores = evaluate.spans(rows, rows)
        assert (scores.f1, scores.n_gold, dict(scores.per_type)) == (0.0, 0, {})
    assert evaluate.spans([["O"]], [["O"]], mode="strict").f1 == 0.0


def test_to_dict_is_plain() -> None:
    import json

    scores = evaluate.spans([["B-PER", "O"]], [["B-PER", "O"]])
    assert json.loads(json.dumps(scores.to_dict()))["per_type"]["PER"]["f1"] == 1.0


@pytest.mark.parametrize(
    ("gold", "predicted", "options", "message"),
    [
        ([["O"]], [["O", "O"]], {}, "sequence 0: gold has 1 labels and the prediction 2"),
        ([["O"]], [], {}, "another number"),
        ([["O"]], [[""]], {}, "not empty"),
        ([["B-X"]], [["S-X"]], {"mode": "strict", "scheme": "iob2"}, "does not belong to the scheme iob2"),
        ([["ORG"]], [["ORG"]], {"mode": "strict", "scheme": "iob2"}, "does not belong"),
        ([["Q-X", "B-X"]], [["O", "O"]], {"mode": "strict"}, "no scheme has the prefixes"),
        ([["O"]], [["O"]], {"mode": "loose"}, "mode must be"),
        ([["O"]], [["O"]], {"scheme": "iob3"}, "scheme must be"),
        ([["O"]], [["O"]], {"sequences": [4]}, "sequence indices"),
        ([["O"]], [["O"]], {"sequences": [True, False]}, "mask of 1"),
    ],
)
def test_errors_say_what_is_wrong(gold: list, predicted: list, options: dict, message: str) -> None:
    with pytest.raises(LascaError, match=message):
        evaluate.spans(gold, predicted, **options)


def test_codes_are_checked() -> None:
    with pytest.raises(CorpusError, match=r"must lie in -1\.\.1"):
        evaluate.spans_from_codes([0, 2], [0, 0], [0, 2], ["O", "B-X"])
    with pytest.raises(CorpusError, match="offsets must rise"):
        evaluate.spans_from_codes([0, 1], [0, 0], [0, 3], ["O", "B-X"])
    with pytest.raises(CorpusError, match="one label code per token"):
        evaluate.spans_from_codes([0.5, 1], [0, 0], [0, 2], ["O", "B-X"])
    with pytest.raises(ParameterError):
        evaluate.spans_from_codes([0], [0], [0, 1], ["O"], mode="strict", scheme="x")


def test_a_million_tokens_in_well_under_a_second() -> None:
    rng = np.random.default_rng(0)
    labels = labels_of("BI", ("PER", "LOC", "ORG", "MISC"))
    gold = np.where(rng.random(1_000_000) < 0.8, 0, rng.integers(0, len(labels), 1_000_000)).astype(np.int16)
    predicted = np.where(rng.random(len(gold)) < 0.9, gold, 0).astype(np.int16)
    offsets = np.append(np.arange(0, len(gold), 14), len(gold))
    for options in ({}, {"mode": "strict"}):
        spent = []
        for _ in range(3):
            began = time.process_time()
            evaluate.spans_from_codes(gold, predicted, offsets, labels, **options)
            spent.append(time.process_time() - began)
        assert min(spent) < 0.8

"""Token scores, calibration, ambiguity scores: against scikit-learn where it is there, and against plain loops."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from lasca import evaluate
from lasca.errors import CorpusError, ParameterError

LABELS = ["ADJ", "NOUN", "PRON", "VERB", "X"]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_tokens_equal_sklearn(rng: np.random.Generator) -> None:
    gold = rng.integers(0, 4, 3000)
    predicted = np.where(rng.random(3000) < 0.7, gold, rng.integers(0, 5, 3000))
    ours = evaluate.tokens_from_codes(gold, predicted, LABELS)
    assert ours.accuracy == pytest.approx((gold == predicted).mean(), rel=1e-12)
    for average, value in (("macro", ours.macro_f1), ("weighted", ours.weighted_f1)):
        assert value == pytest.approx(sklearn.metrics.f1_score(gold, predicted, average=average), rel=1e-12)
    np.testing.assert_array_equal(ours.confusion, sklearn.metrics.confusion_matrix(gold, predicted, labels=range(5)))
    assert ours.per_label["X"].n_gold == 0
    assert ours.per_label["X"].n_predicted > 0


def test_labels_that_never_occur_do_not_pull_macro_f1_down() -> None:
    scores = evaluate.tokens_from_codes([0, 1], [0, 1], LABELS)
    assert (scores.macro_f1, list(scores.per_label)) == (1.0, ["ADJ", "NOUN"])


def test_tokens_from_names_and_missing() -> None:
    gold = [["NOUN", "VERB", None], ["ADJ"]]
    predicted = [["NOUN", None, "X"], ["NOUN"]]
    scores = evaluate.tokens(gold, predicted)
    assert (scores.n_tokens, scores.n_correct, scores.left_out_tokens, scores.unpredicted_tokens) == (3, 1, 1, 1)
    assert scores.per_label["VERB"].n_gold == 1
    assert scores.confusion.sum() == 2
    assert json.loads(json.dumps(scores.to_dict()))["n_correct"] == 1
    assert evaluate.tokens(gold, predicted, sequences=[1]).n_tokens == 1
    assert evaluate.tokens([], []).accuracy == 0.0


def test_tokens_errors() -> None:
    with pytest.raises(CorpusError, match="Give offsets"):
        evaluate.tokens_from_codes([0], [0], LABELS, sequences=[0])
    with pytest.raises(CorpusError, match="one label per token"):
        evaluate.tokens_from_codes([0], [0, 1], LABELS)
    with pytest.raises(CorpusError, match="another number"):
        evaluate.confusion_counts([0], [0, 1], 2)
    for flat in (["NOUN", "VERB"], np.array([0, 1])):  # characters are no labels
        for score in (evaluate.tokens, evaluate.spans):
            with pytest.raises(CorpusError, match=r"one list per sequence.*tokens_from_codes"):
                score(flat, flat)


def naive_calibration(proba: np.ndarray, gold: np.ndarray, n_bins: int, clip: float) -> tuple[float, float, float]:
    entropy = brier = 0.0
    bins: dict[int, list[tuple[float, bool]]] = {}
    rows = [i for i in range(len(gold)) if gold[i] >= 0]
    for i in rows:
        entropy -= math.log(max(proba[i, gold[i]], clip))
        brier += sum((p - (t == gold[i])) ** 2 for t, p in enumerate(proba[i]))
        best = max(range(proba.shape[1]), key=lambda t: proba[i, t])
        bins.setdefault(math.ceil(proba[i, best] * n_bins - 1e-12), []).append((proba[i, best], best == gold[i]))
    ece = sum(abs(sum(p for p, _ in b) - sum(r for _, r in b)) for b in bins.values()) / len(rows)
    return entropy / len(rows), brier / len(rows), ece


def test_calibration_equals_a_plain_loop(rng: np.random.Generator) -> None:
    proba = rng.dirichlet(np.full(5, 0.3), 700)
    gold = rng.integers(-1, 5, 700)
    for n_bins in (1, 10, 15):
        ours = evaluate.calibration(proba, gold, n_bins=n_bins)
        expected = naive_calibration(proba, gold, n_bins, 1e-7)
        np.testing.assert_allclose((ours.cross_entropy, ours.brier, ours.ece), expected, rtol=1e-10)
        assert ours.bin_count.sum() == ours.n_tokens == (gold >= 0).sum()
        assert ours.left_out_tokens == (gold < 0).sum()


def test_perfectly_calibrated_probabilities_have_small_ece(rng: np.random.Generator) -> None:
    proba = rng.dirichlet(np.ones(4), 100_000)
    gold = (proba.cumsum(axis=1) < rng.random((100_000, 1))).sum(axis=1).clip(max=3)
    assert evaluate.calibration(proba, gold).ece < 0.01
    sharpened = proba**4 / (proba**4).sum(axis=1, keepdims=True)
    assert evaluate.calibration(sharpened, gold).ece > 0.1


def test_calibration_clips_and_says_so() -> None:
    proba = np.array([[1.0, 0.0], [0.25, 0.75], [0.5, 0.5]], np.float32)
    scores = evaluate.calibration(proba, [1, 1, -1], clip=1e-3)
    assert scores.cross_entropy == pytest.approx(-(math.log(1e-3) + math.log(0.75)) / 2)
    assert (scores.clipped_tokens, scores.left_out_tokens, scores.n_tokens) == (1, 1, 2)
    masked = evaluate.calibration(proba, [1, 1, -1], mask=[False, True, True])
    assert (masked.n_tokens, masked.clipped_tokens) == (1, 0)
    assert json.loads(json.dumps(scores.to_dict()))["bin_accuracy"][0] is None
    nobody = evaluate.calibration(proba, [-1, -1, -1])
    assert (nobody.cross_entropy, nobody.ece, nobody.n_tokens) == (0.0, 0.0, 0)


@pytest.mark.parametrize(
    ("proba", "gold", "options", "error", "message"),
    [
        ([[0.5, 0.6]], [0], {}, CorpusError, "token 0"),
        ([[1.0, 0.0], [1.5, -0.5]], [0, 0], {}, CorpusError, "token 1"),
        ([[np.nan, 0.5]], [0], {}, CorpusError, "token 0"),
        ([0.5], [0], {}, CorpusError, "n_tokens, n_labels"),
        ([[0.5, 0.5]], [2], {}, CorpusError, "must lie in"),
        ([[0.5, 0.5]], [0], {"mask": [1]}, CorpusError, "one bool per token"),
        ([[0.5, 0.5]], [0], {"n_bins": 0}, ParameterError, "n_bins"),
        ([[0.5, 0.5]], [0], {"clip": 0}, ParameterError, "clip"),
    ],
)
def test_calibration_errors(proba: list, gold: list, options: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        evaluate.calibration(proba, gold, **options)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.5, 0.5000001, 1.0, -3.0]), st.booleans()), min_size=2))
def test_ranking_scores_equal_sklearn_with_ties(pairs: list[tuple[float, bool]]) -> None:
    score, positive = np.array([s for s, _ in pairs]), np.array([p for _, p in pairs])
    if positive.any():
        expected = sklearn.metrics.average_precision_score(positive, score)
        assert evaluate.average_precision(score, positive) == pytest.approx(expected, rel=1e-12)
    else:
        assert math.isnan(evaluate.average_precision(score, positive))
    if positive.any() and not positive.all():
        expected = sklearn.metrics.roc_auc_score(positive, score)
        assert evaluate.auroc(score, positive) == pytest.approx(expected, rel=1e-12)
    else:
        assert math.isnan(evaluate.auroc(score, positive))


def test_unknown_scores_stand_last() -> None:
    score, positive = [math.nan, 0.5, -math.inf, math.nan], [True, True, False, False]
    expected_auroc = (0 + 0.5 + 1 + 1) / 4  # pairs: (nan, -inf) lost, (nan, nan) tied, both pairs of 0.5 won
    assert evaluate.auroc(score, positive) == pytest.approx(expected_auroc)
    assert evaluate.average_precision(score, positive) == pytest.approx((1 + 2 / 4) / 2)


def test_ambiguity_scores() -> None:
    gold, second = np.array([0, 0, 1, 1, 2, -1]), np.array([0, 1, 0, 1, 1, 2])
    score = np.array([0.1, 0.9, 0.8, 0.7, np.nan, 1.0])
    ours = evaluate.ambiguity(score, gold, second, tokens=[1, 2, 3, 5], candidates=[{0, 1}, (1, 2), [0, 1], {0}])
    assert (ours.acc1, ours.acc2) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert ours.precision == pytest.approx(2 / 3)
    assert (ours.n_differing, ours.n_tokens, ours.n_unranked, ours.left_out_tokens) == (3, 5, 1, 1)
    assert ours.average_precision == pytest.approx((1 + 1 + 3 / 5) / 3)
    assert evaluate.ambiguity(score, gold, second).acc1 == 0.0
    with pytest.raises(CorpusError, match="needs its candidates"):
        evaluate.ambiguity(score, gold, second, tokens=[1, 2], candidates=[{0}])
    with pytest.raises(CorpusError, match="flagged tokens"):
        evaluate.ambiguity(score, gold, second, tokens=[9])
    with pytest.raises(CorpusError, match="one entry per token"):
        evaluate.ambiguity(score[:2], gold, second)


def test_a_confidence_on_a_border_belongs_to_the_lower_bin() -> None:
    proba = np.array([[0.5, 0.5], [0.75, 0.25], [1.0, 0.0]])
    assert evaluate.calibration(proba, [0, 0, 0], n_bins=4).bin_count.tolist() == [0, 1, 1, 1]


def test_a_token_can_be_flagged_once() -> None:
    with pytest.raises(CorpusError, match="flagged twice"):
        evaluate.ambiguity([0.5, 0.2, 0.1], [0, 0, 0], [1, 0, 0], tokens=[0, 0])

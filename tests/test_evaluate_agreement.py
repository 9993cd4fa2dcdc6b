"""Agreement coefficients equal published worked examples and slow, obvious versions."""

from __future__ import annotations

import json
import math
from itertools import combinations

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from lasca import evaluate
from lasca.corpus import CrowdCorpus
from lasca.errors import CorpusError
from lasca.evaluate import agreement_scores

# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", section C: 4 coders, 12 units, nominal alpha
# 0.743. The same table is cac.raw4raters in Gwet's irrCAC, whose overview gives p_a 0.8181818, AC1 0.77544,
# Fleiss' kappa 0.76117, Krippendorff's alpha 0.74342.
RELIABILITY = {
    "A": [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    "B": [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    "C": [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    "D": [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
}


def corpus_of(table: dict[str, list[int | None]]) -> CrowdCorpus:
    """One sequence per unit would do as well: the sequence plays no part in agreement."""
    n = len(next(iter(table.values())))
    rows = {name: [[None if x is None else str(x) for x in column]] for name, column in table.items()}
    return CrowdCorpus.from_sequences([[f"unit{i}" for i in range(n)]], rows)


def test_published_example() -> None:
    scores = evaluate.agreement(corpus_of(RELIABILITY))
    assert scores.krippendorff_alpha == pytest.approx(0.74342, abs=5e-6)
    assert scores.gwet_ac1 == pytest.approx(0.77544, abs=5e-6)
    assert scores.fleiss_kappa == pytest.approx(0.76117, abs=5e-6)
    assert scores.percent == pytest.approx(0.8181818, abs=5e-8)
    assert (scores.n_tokens, scores.n_single, scores.n_missing, scores.n_labels) == (11, 1, 0, 5)
    assert evaluate.krippendorff_alpha(corpus_of(RELIABILITY)) == scores.krippendorff_alpha


def test_published_example_of_two_observers() -> None:
    """Krippendorff (2011), section B: Ben and Gerry, 12 units, five values, nominal alpha 0.692."""
    table = {"Ben": [ord(x) for x in "aabbdcccedda"], "Gerry": [ord(x) for x in "babbbccceddd"]}
    assert evaluate.agreement(corpus_of(table)).krippendorff_alpha == pytest.approx(0.692, abs=5e-4)


def naive(table: list[list[int]]) -> tuple[float, float, float, float]:
    """p_a, alpha, AC1, kappa from lists of labels per unit, by pairs."""
    pairable = [unit for unit in table if len(unit) >= 2]
    shares = [np.mean([a == b for a, b in combinations(unit, 2)]) for unit in pairable]
    percent = float(np.mean(shares))
    pool = [x for unit in pairable for x in unit]
    # observed disagreement: each unit's pairs, weighed by its number of values; expected: all pairs of the pool
    observed = sum(len(u) * (1 - s) for u, s in zip(pairable, shares)) / len(pool)
    different = sum(a != b for a, b in combinations(pool, 2))
    expected = different / (len(pool) * (len(pool) - 1) / 2)
    given_labels = sorted({x for unit in table for x in unit})
    rated = [unit for unit in table if unit]
    pi = [np.mean([unit.count(q) / len(unit) for unit in rated]) for q in given_labels]
    chance_ac1 = sum(p * (1 - p) for p in pi) / (len(pi) - 1)
    chance_kappa = sum(p * p for p in pi)
    return (
        percent,
        1 - observed / expected,
        (percent - chance_ac1) / (1 - chance_ac1),
        (percent - chance_kappa) / (1 - chance_kappa),
    )


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_equal_to_definitions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, (5, 30))
    given_mask = rng.random((5, 30)) < 0.6
    table = {f"a{a}": [int(x) if there else None for x, there in zip(values[a], given_mask[a])] for a in range(5)}
    corpus = corpus_of(table)
    units = [[table[f"a{a}"][i] for a in range(5) if table[f"a{a}"][i] is not None] for i in range(30)]
    ours = evaluate.agreement(corpus)
    np.testing.assert_allclose(
        (ours.percent, ours.krippendorff_alpha, ours.gwet_ac1, ours.fleiss_kappa), naive(units), rtol=1e-10, atol=1e-12
    )


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluate.agreement(corpus_of(RELIABILITY))
    for size in (1, 2, 7):
        monkeypatch.setattr(agreement_scores, "BLOCK", size)
        parts = evaluate.agreement(corpus_of(RELIABILITY))
        assert parts.krippendorff_alpha == pytest.approx(whole.krippendorff_alpha, rel=1e-12)
        assert parts.gwet_ac1 == pytest.approx(whole.gwet_ac1, rel=1e-12)


def test_extremes() -> None:
    perfect = evaluate.agreement(corpus_of({"A": [1, 2, 1], "B": [1, 2, 1]}))
    assert (perfect.percent, perfect.krippendorff_alpha, perfect.gwet_ac1, perfect.fleiss_kappa) == (1, 1, 1, 1)
    one_label = evaluate.agreement(corpus_of({"A": [1, 1], "B": [1, 1]}))
    assert math.isnan(one_label.krippendorff_alpha)
    assert math.isnan(one_label.fleiss_kappa)
    assert one_label.gwet_ac1 == 1.0
    alone = evaluate.agreement(corpus_of({"A": [1, 2], "B": [None, None]}))
    assert math.isnan(alone.percent)
    assert (alone.n_tokens, alone.n_single) == (0, 2)
    assert json.loads(json.dumps(alone.to_dict()))["percent"] is None
    nobody = evaluate.agreement(CrowdCorpus.from_sequences([["a", "b"]], {}, golds={"gold": [["X", "Y"]]}))
    assert (nobody.n_missing, nobody.n_labels) == (2, 0)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_adjusted_rand_index_equals_sklearn(pairs: list[tuple[int, int]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    assert evaluate.adjusted_rand_index(a, b) == pytest.approx(sklearn.metrics.adjusted_rand_score(a, b), abs=1e-12)


def test_adjusted_rand_index_takes_names() -> None:
    assert evaluate.adjusted_rand_index(["high", "high", "low"], [1, 1, 0]) == 1.0
    with pytest.raises(CorpusError, match="one cluster for each thing"):
        evaluate.adjusted_rand_index([1], [1, 2])

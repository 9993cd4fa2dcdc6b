"""Majority vote."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from lasca.corpus import CrowdCorpus
from lasca.errors import ParameterError
from lasca.truth.majority import MajorityVote
from truth_cases import crowd, triples


def tied() -> CrowdCorpus:
    """Votes: A A B | A B | C B | none; B is the most frequent label, then A."""
    return CrowdCorpus.from_sequences(
        [["w", "x", "y", "z", "v"]],
        {
            "ann": [["A", "A", "C", None, "B"]],
            "bob": [["A", "B", "B", None, "B"]],
            "cy": [["B", None, None, None, None]],
        },
    )


def test_ties_by_frequency_then_label_order() -> None:
    truth = MajorityVote().fit(tied())
    assert truth.sequences() == [["A", "B", "B", "B", "B"]]
    assert truth.diagnostics["ties"] == 2
    assert truth.diagnostics["tokens_without_votes"] == 1


def test_ties_by_label_order() -> None:
    assert MajorityVote(ties="first").fit(tied()).sequences() == [["A", "A", "B", "B", "B"]]


def test_ties_go_to_a_label_of_ones_choice() -> None:
    assert MajorityVote(ties="C").fit(tied()).sequences() == [["A", "A", "C", "B", "B"]]


def test_equal_frequencies_fall_back_to_label_order() -> None:
    corpus = CrowdCorpus.from_sequences([["x"]], {"ann": [["B"]], "bob": [["A"]]})
    assert MajorityVote().fit(corpus).sequences() == [["A"]]


def test_probabilities_are_the_shares_of_the_votes() -> None:
    truth = MajorityVote().fit(tied())
    np.testing.assert_allclose(truth.proba[0], [2 / 3, 1 / 3, 0], rtol=1e-6)
    np.testing.assert_allclose(truth.proba[3], np.array([3, 5, 1]) / 9, rtol=1e-6)


def test_against_counting() -> None:
    corpus = crowd(seed=3)
    truth = MajorityVote(ties="first").fit(corpus)
    for token in range(corpus.n_tokens):
        given = [s for i, _, s in triples(corpus) if i == token]
        if given:
            assert truth.labels[token] == max(range(3), key=lambda t: (given.count(t), -t))


def test_reliability_counts_agreement() -> None:
    corpus = CrowdCorpus.from_sequences([["x"] * 20], {n: [["A"] * 20] for n in "abc"} | {"d": [["B"] * 20]})
    table = MajorityVote().fit(corpus).annotators.to_pydict()
    assert table["reliability"][0] > 0.7
    assert table["reliability"][3] < 0.3
    for low, middle, high in zip(table["reliability_low"], table["reliability"], table["reliability_high"]):
        assert low <= middle <= high


def test_the_tie_rule_is_checked() -> None:
    with pytest.raises(ParameterError, match="ties must be one of 'frequency', 'first', 'A', 'B', 'C'"):
        MajorityVote(ties="coin").fit(tied())


def test_reliability_is_the_mean_and_interval_of_jeffreys() -> None:
    rows = {"x": [list("NNVV")], "y": [list("NNVV")], "z": [list("NNVN")]}
    truth = MajorityVote().fit(CrowdCorpus.from_sequences([["a"] * 4], rows))
    right = float(sum(truth.proba[i, "NV".index(label)] for i, label in enumerate("NNVN")))
    found = truth.annotators.to_pylist()[2]
    assert found["reliability"] == pytest.approx((right + 0.5) / 5, rel=1e-6)
    low, high = beta.ppf([0.025, 0.975], right + 0.5, 4 - right + 0.5)
    assert found["reliability_low"] == pytest.approx(low, rel=1e-6)
    assert found["reliability_high"] == pytest.approx(high, rel=1e-6)


def test_ties_and_tokens_without_votes_are_counted() -> None:
    said = {"p": [["A", "A", "B", None, "A"]], "q": [["B", "A", "A", None, None]]}
    corpus = CrowdCorpus.from_sequences([["w"] * 5], said)
    found = MajorityVote().fit(corpus).diagnostics
    assert (found["ties"], found["tokens_without_votes"]) == (2, 1)

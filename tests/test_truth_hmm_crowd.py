"""HmmCrowd: both crowd components, by EM and variational EM, against enumeration; and nasty crowds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import naive
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block
from lasca.errors import ParameterError
from lasca.schemes import is_legal, transitions
from lasca.truth.base import Votes
from lasca.truth.dawid_skene import DawidSkene
from lasca.truth.hmm_crowd import HmmCrowd
from lasca.truth.starts import dawid_skene_start
from test_truth_bayesian_sequence import LABELS, tiny
from truth_cases import big_crowd, crowd, start_evidence


@pytest.mark.parametrize("kind", ["vector", "matrix"])
@pytest.mark.parametrize("variational", [True, False])
@pytest.mark.parametrize("labels", [LABELS, ("NOUN", "VERB", "X")])
def test_objective_and_posterior_equal_enumeration(kind: str, variational: bool, labels: tuple[str, ...]) -> None:
    corpus = tiny(5, labels)
    start = start_evidence(corpus, hard=True)
    q, trace = naive.hmm_crowd(corpus, kind, variational, start, transitions(labels), 0.7, 0.4, 0.3, steps=5)
    model = HmmCrowd(
        crowd=kind, variational=variational, smoothing=0.7, transition_prior=0.4, word_prior=0.3, max_iter=4, tol=0
    )
    truth = model.fit(corpus)
    np.testing.assert_allclose(truth.proba, q, rtol=1e-5, atol=1e-6)
    # what is left out of the priors is constant: the steps are equal, if not the levels
    np.testing.assert_allclose(np.diff(truth.trace), np.diff(trace[:4]), rtol=1e-7, atol=1e-9)
    assert np.diff(truth.trace).min() >= -1e-9


@pytest.mark.parametrize("kind", ["vector", "matrix"])
def test_soft_votes_equal_enumeration_of_what_they_may_have_been(kind: str) -> None:
    corpus = tiny(5)
    proba = np.random.default_rng(2).dirichlet(np.ones(5), corpus.n_tokens)
    proba[::3] = np.nan
    rich = corpus.with_soft("soft", proba)
    votes = Votes.of(rich)
    assert votes.soft is not None
    soft = [(int(i), int(a), p / p.sum()) for i, a, p in zip(votes.soft.token, votes.soft.annotator, votes.soft.proba)]
    start = start_evidence(rich, hard=True)
    q, trace = naive.hmm_crowd(rich, kind, True, start, transitions(LABELS), 0.7, 0.4, 0.3, steps=5, soft=soft)
    truth = HmmCrowd(crowd=kind, smoothing=0.7, transition_prior=0.4, word_prior=0.3, max_iter=4, tol=0).fit(rich)
    np.testing.assert_allclose(truth.proba, q, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.diff(truth.trace), np.diff(trace[:4]), rtol=1e-6, atol=1e-9)
    assert np.diff(truth.trace).min() >= -1e-9


@pytest.mark.parametrize("kind", ["vector", "matrix"])
@pytest.mark.parametrize("options", [{}, {"variational": False}, {"words": False}, {"decode": "marginal"}])
def test_the_objective_never_falls_and_results_are_probabilities(kind: str, options: dict[str, Any]) -> None:
    truth = HmmCrowd(crowd=kind, tol=1e-8, **options).fit(crowd(unlabelled=2))
    assert len(truth.trace) > 2
    assert np.diff(truth.trace).min() >= -1e-8 * abs(truth.trace[-1])
    np.testing.assert_allclose(truth.proba.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(truth.confusion.sum(axis=2), 1, rtol=1e-5)
    assert all(is_legal(sequence, "IOB2") for sequence in truth.sequences())


def test_the_confusion_is_that_of_the_simulated_annotators() -> None:
    corpus = crowd(300, 8, accuracy=np.linspace(0.5, 0.9, 8), seed=1)
    gold = corpus.golds["gold"][corpus.annotation_token]
    for kind, tolerance in {"matrix": 0.12, "vector": 0.12}.items():
        truth = HmmCrowd(crowd=kind).fit(corpus)
        for a in range(8):
            own = corpus.annotation_annotator == a
            for t in range(3):
                right = (corpus.annotation_label[own & (gold == t)] == t).mean()
                assert truth.confusion[a, t, t] == pytest.approx(right, abs=tolerance)


def test_it_beats_a_model_without_neighbours_and_words() -> None:
    corpus = crowd(200, accuracy=0.6, seed=4)
    gold = corpus.golds["gold"]
    sequence, token = ((m.fit(corpus).labels == gold).mean() for m in (HmmCrowd(), DawidSkene()))
    assert sequence > token + 0.02


def test_without_the_scheme_illegal_moves_are_possible() -> None:
    corpus = CrowdCorpus.from_sequences(
        [["x", "y"]] * 20, {a: [["O", "I-X"]] * 20 for a in "abc"}, labels=("B-X", "I-X", "O")
    )
    free = HmmCrowd(constrained=False).fit(corpus)
    assert free.sequences() == [["O", "I-X"]] * 20
    assert all(is_legal(sequence, "IOB2") for sequence in HmmCrowd().fit(corpus).sequences())


def test_threads_do_not_change_a_byte() -> None:
    corpus = big_crowd()
    one, two = (HmmCrowd(max_iter=4, n_threads=n).fit(corpus) for n in (1, 2))
    for name in ("proba", "labels", "confusion", "trace"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()


@pytest.mark.parametrize("kind", ["vector", "matrix"])
@pytest.mark.parametrize("variational", [True, False])
def test_nasty_crowds_get_an_answer(kind: str, variational: bool) -> None:
    words = [["a", "b", "c"], ["a"], ["d", "e"]]
    cases: dict[str, dict[str, Any]] = {
        "one annotator": {"a": [["B-X", "I-X", "O"], ["O"], None]},
        "one label": {"a": [["O", "O", "O"], None, None], "b": [["O", "O", "O"], ["O"], None]},
        "nobody agrees": {"a": [["O"] * 3, ["O"], ["O"] * 2], "b": [["B-X"] * 3, ["B-X"], ["B-X"] * 2]},
        "all illegal": {"a": [["I-X", "O", "I-X"], ["I-X"], ["O", "I-X"]], "b": [["I-X", "O", "I-X"], None, None]},
    }
    for name, given in cases.items():
        truth = HmmCrowd(crowd=kind, variational=variational).fit(CrowdCorpus.from_sequences(words, given))
        assert np.isfinite(truth.proba).all(), name
        assert np.isfinite(truth.confusion).all(), name
        assert np.diff(truth.trace).min(initial=0) >= -1e-9, name


def test_parameters_are_checked_and_named() -> None:
    corpus = crowd(5)
    bad: dict[str, Any] = {"crowd": "cm", "smoothing": 0, "transition_prior": 0, "word_prior": -1, "decode": None}
    for name, value in bad.items():
        with pytest.raises(ParameterError, match=name):
            HmmCrowd(**{name: value}).fit(corpus)


@pytest.mark.parametrize("lone", [False, True])
def test_lone_votes_teach_the_start_only_if_they_are_asked_to(lone: bool) -> None:
    """`lone_votes=True` is the start of the paper (and of 0.1.0)."""
    votes = Votes.of(crowd(n_annotators=2, seed=3))
    prior = {"variational": True, "diagonal": 2.0, "off_diagonal": 1.0 / votes.n_labels}
    short = DawidSkene(**prior, max_iter=10, tol=0, lone_votes=lone).fit(crowd(n_annotators=2, seed=3))
    start = dawid_skene_start(HmmCrowd(lone_votes=lone), votes, hard=False)
    found = np.exp(start.labels(Block(votes, 0, votes.n_tokens)))
    np.testing.assert_allclose(found, short.proba, atol=1e-6)
    other = DawidSkene(**prior, max_iter=10, tol=0, lone_votes=not lone).fit(crowd(n_annotators=2, seed=3))
    assert not np.allclose(found, other.proba, atol=1e-3)

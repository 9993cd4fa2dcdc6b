from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lasca
import naive
from lasca.ambiguity import find_ambiguity
from lasca.ambiguity.baselines import rank1, reliable_annotators
from lasca.corpus import CrowdCorpus
from lasca.truth import Clusters
from lasca.truth.base import Votes
from test_ambiguity import crowd


def corpus_of(labels: np.ndarray, lengths: list[int]) -> CrowdCorpus:
    """Make a corpus from labels (annotator, token), -1 = missing."""
    who, token = np.nonzero(labels >= 0)
    return CrowdCorpus.from_codes(
        tokens=["w"] * labels.shape[1],
        offsets=np.concatenate(([0], np.cumsum(lengths))),
        labels=[f"L{t}" for t in range(4)],
        annotators=[f"a{a}" for a in range(len(labels))],
        annotation_token=token,
        annotation_annotator=who,
        annotation_label=labels[who, token],
        sequence_ids=[str(s) for s in range(len(lengths))],
    )


def with_clusters(truth: lasca.Truth, assignment: list[int], reliable: int = 0) -> lasca.Truth:
    n = max(assignment) + 1
    shared = np.zeros((n, truth.proba.shape[1], truth.proba.shape[1]), np.float32)
    proba = np.eye(n, dtype=np.float32)[assignment]
    clusters = Clusters(np.array(assignment, np.int32), proba, shared, reliable)
    return lasca.Truth(**{**truth.__dict__, "clusters": clusters})


def draw(rng: np.random.Generator, n_annotators: int, n_tokens: int, missing: float = 0.0) -> np.ndarray:
    gold = rng.integers(0, 4, n_tokens)
    labels = np.where(rng.random((n_annotators, n_tokens)) < 0.7, gold, rng.integers(0, 4, (n_annotators, n_tokens)))
    return np.where(rng.random(labels.shape) < missing, -1, labels)


@pytest.mark.parametrize("scaling", ["corrected", "paper"])
def test_equals_the_singular_value_decomposition(scaling: str) -> None:
    rng = np.random.default_rng(0)
    lengths = [1, 5, 17, 40]
    labels = draw(rng, 6, sum(lengths))
    corpus = corpus_of(labels, lengths)
    truth = with_clusters(lasca.MajorityVote().fit(corpus), [0, 0, 1, 0, 0, 0])  # annotator 2 is not reliable
    found = find_ambiguity(corpus, truth, "rank-1", scaling=scaling)
    share = scaling == "corrected"
    for first, last in zip(corpus.offsets[:-1], corpus.offsets[1:]):
        A = naive.rank1_matrix(np.delete(labels, 2, axis=0)[:, first:last], share=share)
        omega, mu = naive.rank1_svd(A, share=share)
        assert found.unambiguity is not None
        np.testing.assert_allclose(found.unambiguity[first:last], mu, rtol=1e-7)
        ranking = rank1(Votes.of(corpus), truth, scaling, 1, 1000)
        scores = ranking.label_scores(np.arange(first, last))
        for j in range(last - first):
            for t in range(4):
                gave = np.delete(labels, 2, axis=0)[:, first + j] == t
                expected = omega[gave].mean() if gave.any() else -np.inf
                np.testing.assert_allclose(scores[j, t], expected, rtol=1e-7)
    np.testing.assert_array_equal(found.score, -np.asarray(found.unambiguity))


def test_corrected_scaling_does_not_depend_on_the_length_and_the_papers_does() -> None:
    rng = np.random.default_rng(1)
    block = draw(rng, 5, 8)
    labels = np.concatenate([block, np.tile(block, 8)], axis=1)  # the same sequence, and eight of them as one
    corpus = corpus_of(labels, [8, 64])
    truth = with_clusters(lasca.MajorityVote().fit(corpus), [0] * 5)
    corrected = find_ambiguity(corpus, truth, "rank-1").score
    np.testing.assert_allclose(np.tile(corrected[:8], 8), corrected[8:], rtol=1e-7)
    paper = find_ambiguity(corpus, truth, "rank-1", scaling="paper").score
    np.testing.assert_allclose(np.tile(paper[:8], 8) * 8**-0.25, paper[8:], rtol=1e-7)


def test_missing_cells_are_not_disagreement() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        labels = draw(rng, 6, 15, missing=0.4)
        corpus = corpus_of(labels, [15])
        truth = with_clusters(lasca.MajorityVote().fit(corpus), [0] * 6)
        mu = find_ambiguity(corpus, truth, "rank-1").unambiguity
        assert mu is not None
        n = (labels >= 0).sum(axis=0)
        np.testing.assert_array_equal(np.isnan(mu), n < 2)
        ranked = n >= 2
        A = naive.rank1_matrix(labels[:, ranked], share=True)
        A = A[~np.isnan(A).all(axis=1)]
        seen = ~np.isnan(A)
        omega = np.nansum(A * mu[ranked], axis=1) / (seen * mu[ranked] ** 2).sum(axis=1)
        np.testing.assert_allclose(omega.mean(), 1, rtol=1e-6)
        best = naive.rank1_error(A, omega, mu[ranked])
        for _ in range(30):  # no nearby fit is better
            near = naive.rank1_error(
                A, omega * rng.normal(1, 0.01, len(omega)), mu[ranked] * rng.normal(1, 0.01, ranked.sum())
            )
            assert near >= best - 1e-9


def test_too_few_reliable_annotators() -> None:
    corpus = crowd(100)
    truth = with_clusters(lasca.MajorityVote().fit(corpus), [0] + [1] * 11)
    found = find_ambiguity(corpus, truth, "rank-1")
    assert np.isnan(found.score).all()
    assert len(found.tokens) == 0 == len(found.candidates)
    assert found.unranked["fewer than two reliable annotators"] == 100
    assert "1 annotator" in found.warnings[0]


@pytest.mark.parametrize(
    ("precision", "expected"),
    [([0.9] * 7 + [0.3] * 5, [True] * 7 + [False] * 5), ([0.8] * 12, [True] * 12)],
)
def test_without_clusters_a_split_of_the_reliabilities(precision: Any, expected: list[bool]) -> None:
    corpus = crowd(1500, precision=precision)
    truth = lasca.DawidSkene().fit(corpus)
    assert truth.clusters is None
    assert reliable_annotators(truth, Votes.of(corpus)).tolist() == expected

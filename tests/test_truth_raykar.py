"""Raykar against sums over labels, token by token."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import naive
from lasca.corpus import CrowdCorpus
from lasca.errors import ParameterError
from lasca.truth.raykar import Raykar, RaykarLearner
from test_truth_sembler import Trial, small
from truth_cases import crowd, triples

L2 = 0.3


PRIOR = np.full((3, 3), 0.1) + 0.4 * np.eye(3)


def trial_of(corpus: CrowdCorpus) -> Trial:
    return Trial.of(RaykarLearner(3, 3, L2, 5, PRIOR), corpus)


@pytest.mark.parametrize("seed", range(4))
def test_a_step_equals_sums_over_labels(seed: int) -> None:
    corpus = small(seed)
    trial = trial_of(corpus)
    rng = np.random.default_rng(seed)
    state = trial.learner.start(trial.work.summary(), rng)
    state = replace(state, theta=0.5 * rng.standard_normal(trial.learner.size))
    psi = np.exp(state.annotators.log_psi).transpose(0, 2, 1)
    ids: list[list[int]] = [[] for _ in range(corpus.n_tokens)]
    for i, row in zip(sorted(set(corpus.annotation_token.tolist())), trial.ids):
        ids[i] = row
    mu, counts, total = naive.raykar(triples(corpus), ids, trial.weights(state.theta).state(), psi)
    np.testing.assert_allclose(trial.expect(state)[1], mu, atol=1e-7)
    following, objective = trial.step(state)
    penalty = L2 * float(state.theta @ state.theta)
    assert objective == pytest.approx(total + float((PRIOR * np.log(psi)).sum()) - penalty, rel=1e-12)
    raised = counts + PRIOR
    found = np.exp(following.annotators.log_psi).transpose(0, 2, 1)
    np.testing.assert_allclose(found, raised / raised.sum(axis=2, keepdims=True), atol=1e-12)


def test_the_first_start_believes_the_shares_of_the_votes() -> None:
    corpus = small(2)
    trial = trial_of(corpus)
    following, _ = trial.step(trial.learner.start(trial.work.summary(), None))
    counts = np.tile(PRIOR, (3, 1, 1))
    for i, a, s in triples(corpus):
        for j, _, t in triples(corpus):
            if i == j:
                counts[a, t, s] += 1 / np.diff(corpus.token_start)[i]
    found = np.exp(following.annotators.log_psi).transpose(0, 2, 1)
    np.testing.assert_allclose(found, counts / counts.sum(axis=2, keepdims=True), atol=1e-12)
    assert np.abs(following.theta).max() > 0.01


def test_the_classifier_climbs_the_expected_log_likelihood() -> None:
    """Its value and slope at other weights, and that it falls, against direct sums."""
    trial = trial_of(small(1))
    rng = np.random.default_rng(0)
    state = trial.learner.start(trial.work.summary(), rng)
    correction, *_ = trial.work.sum(state)
    assert not correction.any()  # tokens are independent
    ids, mu = trial.ids, trial.expect(state)[1].astype(np.float64)

    def expected(theta: np.ndarray) -> float:
        weights = trial.weights(theta).state()
        value = L2 * float(theta @ theta)
        for row, p in zip(ids, mu):
            scores = weights[row].sum(axis=0)
            value -= float(p @ (scores - np.logaddexp.reduce(scores)))
        return value

    theta = 0.3 * rng.standard_normal(trial.learner.size)
    gradient = np.empty_like(theta)
    assert trial.learner.loss(correction, trial.work)(theta, gradient) == pytest.approx(expected(theta), rel=1e-6)
    for k in range(0, len(theta), 5):
        step = np.zeros_like(theta)
        step[k] = 1e-5
        assert gradient[k] == pytest.approx((expected(theta + step) - expected(theta - step)) / 2e-5, abs=1e-4)
    assert expected(trial.learner.climbed(theta, correction, trial.work)) < expected(theta)


def test_the_text_speaks_where_the_crowd_is_silent() -> None:
    corpus = crowd(n_sequences=60, unlabelled=5)
    truth = Raykar().fit(corpus)
    silent = np.diff(corpus.token_start) == 0
    assert (truth.labels == corpus.golds["gold"])[silent].mean() > 0.9


@pytest.mark.parametrize("wrong", [{"l2": 0}, {"smoothing": 0}, {"agreement": -1}, {"crf_iter": 0}])
def test_wrong_parameters_are_named(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        Raykar(**wrong).fit(crowd(n_sequences=3))  # type: ignore[arg-type]

"""Raykar against sums over labels, token by token."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from lasca import crf
from lasca.corpus import CrowdCorpus
from lasca.errors import ParameterError
from lasca.truth.base import Votes
from lasca.truth.raykar import Learner, Raykar, State, _tokens_alone
from test_truth_sembler import feature_ids, small
from truth_cases import crowd, triples

L2 = 0.3


def learner_of(corpus: CrowdCorpus) -> Learner:
    votes = Votes.of(corpus)
    features = crf.Extractor(templates="word[-1..1] bias").fit(corpus.tokens, corpus.offsets)
    prior = np.full((3, 3), 0.1) + 0.4 * np.eye(3)
    voted = np.flatnonzero(np.diff(votes.start))
    return Learner(_tokens_alone(features, voted), votes, voted, prior, l2=L2, crf_iter=5, n_threads=1)


@pytest.mark.parametrize("seed", range(4))
def test_a_step_equals_sums_over_labels(seed: int) -> None:
    corpus = small(seed)
    learner = learner_of(corpus)
    rng = np.random.default_rng(seed)
    psi = rng.dirichlet(np.ones(3), size=(3, 3))
    state = State(0.5 * rng.standard_normal(learner.space.size), psi)
    weights = crf.Weights(learner.space, state.theta).state()
    ids: list[list[int]] = [[] for _ in range(corpus.n_tokens)]
    for i, row in zip(sorted(set(corpus.annotation_token.tolist())), feature_ids(learner.features)):
        ids[i] = row
    mu, counts, total = naive.raykar(triples(corpus), ids, weights, psi)
    found, value = learner.posterior(state)
    np.testing.assert_allclose(found, mu, atol=1e-12)
    assert value == pytest.approx(total, rel=1e-12)
    following, objective = learner.step(state)
    penalty = L2 * float(state.theta @ state.theta)
    assert objective == pytest.approx(total + float((learner.prior * np.log(psi)).sum()) - penalty, rel=1e-12)
    raised = counts + learner.prior
    np.testing.assert_allclose(following.psi, raised / raised.sum(axis=2, keepdims=True), atol=1e-12)


def test_the_classifier_climbs_the_expected_log_likelihood() -> None:
    """Its value at other weights, and that it falls, against direct sums."""
    learner = learner_of(small(1))
    rng = np.random.default_rng(0)
    mu = rng.dirichlet(np.ones(3), size=learner.features.n_tokens)
    ids = feature_ids(learner.features)

    def loss(theta: np.ndarray) -> float:
        weights = crf.Weights(learner.space, theta).state()
        value = L2 * float(theta @ theta)
        for row, p in zip(ids, mu):
            scores = weights[row].sum(axis=0)
            value -= float(p @ (scores - np.logaddexp.reduce(scores)))
        return value

    theta = 0.3 * rng.standard_normal(learner.space.size)
    gradient = np.empty_like(theta)
    function = crf.Objective(learner.features, mu.astype(np.float32), learner.space, l2=L2)
    assert function(theta, gradient) == pytest.approx(loss(theta), rel=1e-6)
    for k in range(0, len(theta), 5):
        step = np.zeros_like(theta)
        step[k] = 1e-5
        assert gradient[k] == pytest.approx((loss(theta + step) - loss(theta - step)) / 2e-5, abs=1e-4)
    assert loss(learner.classifier(mu, theta)) < loss(theta)


def test_the_text_speaks_where_the_crowd_is_silent() -> None:
    corpus = crowd(n_sequences=60, unlabelled=5)
    truth = Raykar().fit(corpus)
    silent = np.diff(corpus.token_start) == 0
    assert (truth.labels == corpus.golds["gold"])[silent].mean() > 0.9


@pytest.mark.parametrize("wrong", [{"l2": 0}, {"smoothing": 0}, {"agreement": -1}, {"crf_iter": 0}])
def test_wrong_parameters_are_named(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        Raykar(**wrong).fit(crowd(n_sequences=3))  # type: ignore[arg-type]

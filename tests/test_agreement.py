"""Plank's loss: the objective against enumeration, the perceptron against a plain one, the weights against counting."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import naive
from lasca import crf
from lasca.confusion import disagreement
from lasca.corpus import CrowdCorpus
from lasca.crf.features import ParameterSpace, Weights
from lasca.errors import CorpusError, ModelError, ParameterError
from lasca.tagger import CrfTagger
from test_crf_objective import Problem
from truth_cases import crowd

Array = np.ndarray[Any, Any]


def loss(problem: Problem, vector: Array) -> float:
    weights, total = Weights(problem.space, vector), 0.0
    for s, ids in enumerate(problem.ids):
        if problem.counted(s):
            target = problem.targets[problem.offsets[s] : problem.offsets[s + 1]]
            one = naive.agreement_loss(weights.state(), weights.transitions, ids, target, problem.costs)
            total += problem.sequence_weights[s] * one
    return total


@pytest.mark.parametrize("kind", ["hard", "partial"])
@pytest.mark.parametrize("n_labels", [2, 3, 4])
def test_value_and_gradient_equal_the_formula(kind: str, n_labels: int) -> None:
    for seed in range(3):
        problem = Problem(seed, n_labels, kind, scale=(0.1, 1.0, 3.0)[seed], longest=4)
        rng = np.random.default_rng(seed)
        problem.costs = crf.cost_matrix(rng.random((n_labels, n_labels)), n_labels)  # not symmetric, as F1's are not
        gradient = np.full(problem.space.size, np.nan)
        value = problem.fast("agreement", l2=0.0)(problem.vector, gradient)
        assert value == pytest.approx(loss(problem, problem.vector), rel=1e-10)
        for k in range(0, problem.space.size, 3):
            step = np.zeros(problem.space.size)
            step[k] = 1e-5
            slope = (loss(problem, problem.vector + step) - loss(problem, problem.vector - step)) / 2e-5
            assert gradient[k] == pytest.approx(slope, abs=1e-6, rel=1e-6)


def test_full_agreement_is_likelihood() -> None:
    problem = Problem(1, 3, "hard")
    problem.costs = crf.cost_matrix(None, 3)
    gradients = [np.zeros(problem.space.size) for _ in range(2)]
    values = [problem.fast(o, 0.1)(problem.vector, g) for o, g in zip(("likelihood", "agreement"), gradients)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)
    np.testing.assert_allclose(*gradients, atol=1e-12)


def test_it_bounds_the_loss_of_the_paper() -> None:
    """max over label sequences of Σ_k γ (s_k(z') − s_k(z)) + moves, which is 0 at the right one, is never larger."""
    for seed in range(4):
        problem = Problem(seed, 3, "hard", longest=4)
        weights = Weights(problem.space, problem.vector)
        state, moves = weights.state(), weights.transitions
        worst = 0.0
        for s, ids in enumerate(problem.ids):
            y = problem.targets[problem.offsets[s] : problem.offsets[s + 1]]
            scores = [[sum(state[f, t] for f in token) for t in range(3)] for token in ids]
            right = sum(moves[a, b] for a, b in itertools.pairwise(y))
            worst += problem.sequence_weights[s] * max(
                sum(problem.costs[t, u] * (row[t] - row[u]) for t, u, row in zip(path, y, scores))
                + sum(moves[a, b] for a, b in itertools.pairwise(path))
                - right
                for path in naive.crf_paths(3, len(ids))
            )
        assert 0 <= worst <= loss(problem, problem.vector)


def test_the_perceptron_moves_by_gamma() -> None:
    for seed in range(3):
        problem = Problem(seed, 3, "hard", longest=4)
        gamma = np.random.default_rng(seed).random((3, 3))
        rng = np.random.default_rng(5)
        chosen = [s for s in range(len(problem.ids)) if problem.ids[s]]
        orders = [rng.permutation(chosen).tolist() for _ in range(2)]
        labels = [problem.targets[a:b].tolist() for a, b in itertools.pairwise(problem.offsets)]
        state, moves = naive.weighed_perceptron(orders, problem.ids, labels, gamma, problem.n_features)
        found = crf.perceptron(
            problem.features, problem.targets, 3, epochs=2, states="all", gamma=gamma, seed=5
        )  # fmt: skip
        if len(found.trace) < 2:
            continue  # nothing was wrong in the first pass
        np.testing.assert_allclose(found.state(), state, atol=1e-12)
        np.testing.assert_allclose(found.transitions, moves, atol=1e-12)
        plain = crf.perceptron(problem.features, problem.targets, 3, epochs=2, states="all", seed=5)
        assert not np.allclose(plain.vector, found.vector)


def pairs_by_hand(corpus: CrowdCorpus) -> list[tuple[int, int]]:
    rows = [corpus.annotation_label[a:b].tolist() for a, b in itertools.pairwise(corpus.token_start)]
    return [pair for row in rows for pair in itertools.permutations(row, 2)]


def test_disagreement_of_annotators_by_counting() -> None:
    corpus = crowd(n_sequences=20, n_annotators=4)
    pairs = pairs_by_hand(corpus)
    confusion, f1 = disagreement(corpus), disagreement(corpus, "f1")
    for i, j in itertools.product(range(3), repeat=2):
        given = [a for a, b in pairs if b == j]
        back = [a for a, b in pairs if b == i]
        mean = (given.count(i) / len(given) + back.count(j) / len(back)) / 2
        assert confusion[i, j] == pytest.approx(0.0 if i == j else mean)
        n = sum(a == j for a, _ in pairs) + sum(b == j for _, b in pairs)
        assert f1[i, j] == pytest.approx(1 - 2 * sum(a == b == j for a, b in pairs) / n)


def test_disagreement_of_two_golds_by_counting() -> None:
    corpus = CrowdCorpus.from_sequences(
        [list("abcde")],
        {},
        golds={"one": [["N", "N", "V", "N", "V"]], "two": [["N", "V", "V", "V", None]]},
        labels=("N", "V", "X"),
    )
    found = disagreement(corpus, golds=("one", "two"))
    # P(one N | two V) = 2/3, P(two V | one N) = 2/3, the converses 0
    assert found[0, 1] == found[1, 0] == pytest.approx((2 / 3 + 0 + 2 / 3 + 0) / 4)
    np.testing.assert_array_equal(found[2], 0)
    f1 = disagreement(corpus, "f1", golds=("one", "two"))
    np.testing.assert_allclose(f1[0], [1 - 2 * 1 / (3 + 1), 1 - 2 * 1 / (1 + 3), 0])
    with pytest.raises(CorpusError, match="no gold of that name"):
        disagreement(corpus, golds=("one", "three"))
    with pytest.raises(CorpusError, match="two people"):
        disagreement(corpus)
    with pytest.raises(ParameterError, match="kappa"):
        disagreement(corpus, "kappa")


@pytest.mark.parametrize(
    ("objective", "optimiser"), [("agreement", "lbfgs"), ("agreement", "perceptron"), ("agreement-f1", "perceptron")]
)
def test_the_tagger_takes_it(objective: str, optimiser: str) -> None:
    corpus = crowd(n_sequences=30)
    gamma = disagreement(corpus, "f1" if objective == "agreement-f1" else "confusion")
    tagger = CrfTagger(objective=objective, confusion=gamma, optimiser=optimiser).fit(corpus, "gold")
    sentences = [corpus.sequence(s) for s in range(corpus.n_sequences)]
    right = [
        a == b
        for x, y in zip(tagger.predict(sentences), corpus.label_names(corpus.golds["gold"]))
        for a, b in zip(x, y)
    ]
    assert np.mean(right) > 0.95


def test_soft_targets_are_refused() -> None:
    space = ParameterSpace.full(6, 3)
    problem = Problem(0, 3, "soft")
    with pytest.raises(ModelError, match="soft=False"):
        crf.Objective(problem.features, problem.targets, space, objective="agreement", costs=problem.costs)


def test_f1_is_for_the_perceptron() -> None:
    """The log-loss does not weigh moves: weights that differ much between right labels spoil it."""
    with pytest.raises(ParameterError, match="perceptron"):
        CrfTagger(objective="agreement-f1").fit(crowd(n_sequences=3), "gold")

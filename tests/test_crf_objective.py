"""The CRF objectives and their gradients against enumeration of all label paths, and against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import naive
from crf_cases import from_csr
from lasca import crf
from lasca.crf.features import ParameterSpace, Weights
from lasca.crf.objective import Objective, allowed_labels, chunks_of

KINDS = ("hard", "partial", "allowed", "soft")
OBJECTIVES = ("likelihood", "cost-sensitive", "softmax-margin")


class Problem:
    """Random sequences small enough to enumerate."""

    def __init__(self, seed: int, n_labels: int, kind: str, scale: float = 1.0, longest: int = 5) -> None:
        rng = np.random.default_rng(seed)
        lengths = [1, 2, 0, 3, longest]
        self.n_features, self.n_labels = 6, n_labels
        self.ids = [[list(rng.choice(self.n_features, size=rng.integers(0, 4))) for _ in range(n)] for n in lengths]
        self.offsets = np.concatenate([[0], np.cumsum(lengths)])
        n_tokens = int(self.offsets[-1])
        flat = [token for sequence in self.ids for token in sequence]
        self.features = from_csr(
            np.concatenate([[0], np.cumsum([len(t) for t in flat])]),
            np.array([f for t in flat for f in t], dtype=np.int32),
            self.offsets,
            self.n_features,
        )
        self.targets: np.ndarray[Any, Any] = rng.integers(0, n_labels, n_tokens).astype(np.int16)
        if kind == "partial":
            self.targets[[0, 2, 4]] = -1
            self.targets[-4:] = -1
            self.targets[-1] = 1
        elif kind == "allowed":
            self.targets = rng.random((n_tokens, n_labels)) < 0.4
            self.targets[np.arange(n_tokens), rng.integers(0, n_labels, n_tokens)] = True
        elif kind == "soft":
            self.targets = (rng.multinomial(16, np.full(n_labels, 1 / n_labels), n_tokens) / 16).astype(np.float32)
        confusion = rng.random((n_labels, n_labels)) * 0.8
        self.costs = crf.cost_matrix((confusion + confusion.T) / 2 * (1 - np.eye(n_labels)), n_labels)
        self.space = ParameterSpace.full(self.n_features, n_labels)
        self.vector = rng.normal(size=self.space.size) * scale
        self.sequence_weights = rng.random(len(lengths)) + 0.5

    def counted(self, s: int) -> bool:
        """Whether a sequence has any token that says something."""
        target = self.targets[self.offsets[s] : self.offsets[s + 1]]
        if target.ndim == 1:
            return bool((target >= 0).any())
        return bool(len(target)) and not (target.dtype == np.bool_ and target.all())

    def naive(self, objective: str, l2: float) -> tuple[float, np.ndarray[Any, Any]]:
        weights = Weights(self.space, self.vector)
        value, state, moves = 0.0, np.zeros((self.n_features, self.n_labels)), np.zeros(self.space.move.shape)
        for s, ids in enumerate(self.ids):
            if self.counted(s):
                target = self.targets[self.offsets[s] : self.offsets[s + 1]]
                one = naive.crf_objective(objective, weights.state(), weights.transitions, ids, target, self.costs)
                value, state, moves = (
                    old + self.sequence_weights[s] * new for old, new in zip((value, state, moves), one)
                )
        gradient = -np.concatenate([state.ravel(), moves.ravel()]) + 2 * l2 * self.vector
        return -value + l2 * float(self.vector @ self.vector), gradient

    def fast(self, objective: str, l2: float, threads: int = 1) -> Objective:
        return Objective(
            self.features, self.targets, self.space, objective=objective, costs=self.costs, l2=l2,
            sequence_weights=self.sequence_weights, n_threads=threads,
        )  # fmt: skip


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_labels", [2, 3, 4])
def test_value_and_gradient_equal_enumeration(objective: str, kind: str, n_labels: int) -> None:
    for seed in range(3):
        problem = Problem(seed, n_labels, kind, scale=(0.1, 1.0, 3.0)[seed])
        gradient = np.full(problem.space.size, np.nan)
        value = problem.fast(objective, l2=0.3)(problem.vector, gradient)
        expected_value, expected = problem.naive(objective, l2=0.3)
        assert value == pytest.approx(expected_value, rel=1e-10)
        np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("against", [0.0, 8.0])
def test_a_long_sequence_equals_the_plain_sum_in_logs(against: float) -> None:
    """Sums are scaled on the way: words and moves that contradict each other make them tiny, others make them large."""
    n, n_labels = 300, 3
    word = np.arange(n) % 2
    features = from_csr(np.arange(n + 1), word.astype(np.int32), np.array([0, n]), 2)
    state = np.array([[against, 0.0, 0.1], [0.0, against, 0.2]])
    moves = against * np.eye(n_labels) + np.arange(9).reshape(3, 3) / 10
    targets = np.random.default_rng(0).integers(0, n_labels, n).astype(np.int16)
    total = state[word[0]]
    for i in range(1, n):
        total = np.logaddexp.reduce(total[:, None] + moves, axis=0) + state[word[i]]
    path = state[word, targets].sum() + moves[targets[:-1], targets[1:]].sum()
    space = ParameterSpace.full(2, n_labels)
    vector = np.concatenate([state.ravel(), moves.ravel()])
    value = Objective(features, targets, space, objective="likelihood", l2=0.0)(vector, np.zeros(space.size))
    assert value == pytest.approx(np.logaddexp.reduce(total) - path, rel=1e-10)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", KINDS)
def test_gradient_equals_finite_differences(objective: str, kind: str) -> None:
    problem = Problem(7, 3, kind)
    function = problem.fast(objective, l2=0.1)
    gradient, scratch = np.zeros(problem.space.size), np.zeros(problem.space.size)
    function(problem.vector, gradient)

    def value(i: int, h: float) -> float:
        moved = problem.vector.copy()
        moved[i] += h
        return function(moved, scratch)

    for i in range(problem.space.size):
        h = 1e-3
        slope = (8 * (value(i, h) - value(i, -h)) - (value(i, 2 * h) - value(i, -2 * h))) / (12 * h)
        assert gradient[i] == pytest.approx(slope, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("kind", ["hard", "partial"])
def test_cost_sensitive_where_the_model_is_sure(kind: str) -> None:
    """Other labels have probabilities below 1e-60 there: scaled numbers will not do, the log-space pass takes over."""
    problem = Problem(3, 3, kind, scale=60.0, longest=4)
    best = crf.viterbi(problem.features, Weights(problem.space, problem.vector))
    problem.targets = np.where(problem.targets >= 0, best, -1).astype(np.int16)
    gradient = np.zeros(problem.space.size)
    value = problem.fast("cost-sensitive", l2=0.3)(problem.vector, gradient)
    expected_value, expected = problem.naive("cost-sensitive", l2=0.3)
    likelihood = problem.fast("likelihood", l2=0.3)(problem.vector, np.zeros_like(gradient))
    assert value < likelihood - 138  # some sequence has an expected cost below 1e-60
    assert value == pytest.approx(expected_value, rel=1e-9)
    np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("objective", ["softmax-margin", "cost-sensitive"])
@pytest.mark.parametrize("true", [0, 1])
def test_costs_need_not_be_symmetric(objective: str, true: int) -> None:
    costs = np.array([[0.0, 0.9], [0.2, 0.0]])
    one = from_csr(np.array([0, 1]), np.array([0], np.int32), np.array([0, 1]), 1)
    space = ParameterSpace.full(1, 2)
    function = Objective(one, np.array([true], np.int16), space, objective=objective, costs=costs, l2=1.0)
    cost = costs[1 - true, true]
    expected = np.log(1 + np.exp(cost)) if objective == "softmax-margin" else np.log(cost)
    assert function(np.zeros(space.size), np.zeros(space.size)) == pytest.approx(expected, rel=1e-12)


def test_labels_that_are_allowed_by_hand() -> None:
    yes, no = True, False
    known = allowed_labels(np.array([1, -1, 0]), 2)
    assert known.tolist() == [[no, yes], [no, no], [yes, no]]
    some = np.array([[yes, yes, no], [yes, yes, yes], [no, no, yes]])
    assert allowed_labels(some, 3).tolist() == [[yes, yes, no], [no, no, no], [no, no, yes]]
    shares = np.array([[0.2, 0.8], [0.01, 0.99]])
    assert allowed_labels(shares, 2, 0.05).tolist() == [[yes, yes], [no, yes]]


def test_chunks_have_about_as_many_tokens_each() -> None:
    offsets = np.array([0, 10, 10, 20, 50, 60, 70, 80])
    assert [c.tolist() for c in chunks_of(np.arange(7), offsets, 2)] == [[0, 1, 2], [3, 4, 5, 6]]
    assert [c.tolist() for c in chunks_of(np.array([6, 0, 3]), offsets, 2)] == [[6, 0], [3]]
    assert [c.tolist() for c in chunks_of(np.array([], int), offsets, 2)] == [[], []]

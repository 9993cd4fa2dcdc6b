"""Forward–backward, the best path and drawn paths against the enumeration of all paths; tables of rows."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import naive
from lasca.kernels import lattice, rows


def chain(rng: np.random.Generator, width: float, forbid: float = 0.3) -> tuple[np.ndarray, ...]:
    """Random sequences of up to five tokens; label 0 may always follow itself, so that there is a path."""
    T = int(rng.integers(1, 5))
    offsets = np.concatenate(([0], np.cumsum(rng.integers(0, 6, size=4))))
    evidence = rng.normal(size=(offsets[-1], T)) * width
    evidence[:, 1:][rng.random((offsets[-1], T - 1)) < 0.1] = -np.inf
    start, move, end = rng.random(T), rng.random((T, T)), rng.random(T)
    for weights in (start, move, end):
        weights[rng.random(weights.shape) < forbid] = 0.0
    start[0] = move[0, 0] = end[0] = 0.5
    return offsets, evidence, start, move, end


def sums(offsets: np.ndarray, evidence: np.ndarray, *weights: np.ndarray) -> tuple[float, np.ndarray, ...]:
    T = evidence.shape[1]
    out, starts, moves = np.full(evidence.shape, np.nan), np.zeros(T), np.zeros((T, T))
    log_sum = lattice.marginals(offsets, evidence, *weights, out, starts, moves)
    return log_sum, out, starts, moves


# 200 nats are near the border beyond which a sequence is done in logs, 2000 far behind it.
@pytest.mark.parametrize("width", [0.0, 1.0, 50.0, 200.0, 2000.0])
@pytest.mark.parametrize("seed", range(6))
def test_marginals_moves_and_sums_equal_enumeration(seed: int, width: float) -> None:
    offsets, evidence, *weights = chain(np.random.default_rng([seed, int(width)]), width)
    T = evidence.shape[1]
    log_sum, out, starts, moves = sums(offsets, evidence, *weights)
    expected = [0.0, np.zeros_like(out), np.zeros(T), np.zeros((T, T))]
    best = 0.0
    for lo, hi in pairwise(offsets):
        if lo < hi:
            paths = naive.chain_paths(evidence[lo:hi], *weights)
            part, expected[1][lo:hi], pairs = naive.chain_sums(paths, T)
            expected[0] += part
            expected[2] += expected[1][lo]
            expected[3] += pairs
            best += max(paths.values())
    assert log_sum == pytest.approx(expected[0], rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(out, expected[1], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(starts, expected[2], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(moves, expected[3], rtol=1e-8, atol=1e-12)
    path = np.empty(offsets[-1], np.int16)
    assert lattice.viterbi(offsets, evidence, *weights, path) == pytest.approx(best, rel=1e-10, abs=1e-10)
    for lo, hi in pairwise(offsets):
        if lo < hi:
            paths = naive.chain_paths(evidence[lo:hi], *weights)
            assert paths[tuple(path[lo:hi].tolist())] == pytest.approx(max(paths.values()), rel=1e-10, abs=1e-10)


def test_a_wide_token_leaves_the_doubts_of_others_as_they_are() -> None:
    """All of its sequence is done in logs, and the rows of the others are probabilities all the same."""
    rng = np.random.default_rng(0)
    evidence, weights = rng.normal(size=(4, 3)), (rng.random(3), rng.random((3, 3)), rng.random(3))
    evidence[1, 0] = 2000.0
    log_sum, out, starts, moves = sums(np.array([0, 4]), evidence, *weights)
    expected, marginals, pairs = naive.chain_sums(naive.chain_paths(evidence, *weights), 3)
    assert log_sum == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(out, marginals, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(starts, marginals[0], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(moves, pairs, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("width", [2.0, 2000.0])
def test_marginals_may_replace_the_evidence(width: float) -> None:
    offsets, evidence, *weights = chain(np.random.default_rng(1), width)
    expected = sums(offsets, evidence, *weights)
    T = evidence.shape[1]
    starts, moves = np.zeros(T), np.zeros((T, T))
    assert lattice.marginals(offsets, evidence, *weights, evidence, starts, moves) == expected[0]
    np.testing.assert_array_equal(evidence, expected[1])
    np.testing.assert_array_equal(moves, expected[3])


def test_a_narrow_chain_survives_a_state_the_evidence_rules_out() -> None:
    """The label the evidence wants cannot be reached; the others are 250 nats behind: no 0 / 0."""
    offsets, one = np.array([0, 2]), np.ones(2)
    evidence = np.array([[0.0, 0.0], [0.0, 250.0]])
    move = np.array([[1.0, 0.0], [1.0, 0.0]])
    log_sum, out, _, _ = sums(offsets, evidence, one, move, one)
    assert log_sum == pytest.approx(math.log(2))
    np.testing.assert_allclose(out, [[0.5, 0.5], [1.0, 0.0]], rtol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_no_path_gives_minus_infinity_and_no_numbers(scale: float) -> None:
    offsets, one = np.array([0, 2, 3]), np.ones(2)
    evidence = np.array([[0.0, scale], [0.0, 0.0], [0.0, 0.0]])
    log_sum, out, _, _ = sums(offsets, evidence, one, np.zeros((2, 2)), one)
    assert log_sum == -np.inf
    assert np.isnan(out[:2]).all()
    np.testing.assert_allclose(out[2], 0.5)
    path = np.empty(3, np.int16)
    lattice.sample_paths(offsets, evidence, one, np.zeros((2, 2)), one, np.full(3, 0.5), path)
    assert path[:2].tolist() == [-1, -1]


def test_of_equal_paths_the_lower_labels_win() -> None:
    path = np.empty(4, np.int16)
    one = np.ones(3)
    lattice.viterbi(np.array([0, 4]), np.zeros((4, 3)), one, np.ones((3, 3)), one, path)
    assert path.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("width", [1.0, 700.0])
def test_drawn_paths_are_as_frequent_as_they_are_probable(width: float) -> None:
    rng = np.random.default_rng(5)
    T, length, n = 3, 3, 20_000
    evidence = rng.normal(size=(length, T))
    if width > 1:  # a label far behind at one token takes the sequence to the logs and changes little
        evidence[1, 2] -= width
    start, move, end = rng.random(T), rng.random((T, T)), rng.random(T)
    move[0, 1] = 0.0
    weights = naive.chain_paths(evidence, start, move, end)
    log_sum, _, _ = naive.chain_sums(weights, T)
    offsets, path = np.arange(n + 1) * length, np.empty(n * length, np.int16)
    total = lattice.sample_paths(offsets, np.tile(evidence, (n, 1)), start, move, end, rng.random(n * length), path)
    assert total == pytest.approx(n * log_sum, rel=1e-10)
    drawn, counts = np.unique(path.reshape(n, length), axis=0, return_counts=True)
    found = dict(zip(map(tuple, drawn.tolist()), counts / n))
    assert set(found) <= set(weights)
    for one, weight in weights.items():
        p = math.exp(weight - log_sum)
        assert abs(found.get(one, 0.0) - p) < 5 * math.sqrt(p * (1 - p) / n) + 1e-9


def test_the_last_label_with_weight_takes_rounding_errors() -> None:
    """A uniform number next to 1 must not draw a label of weight 0."""
    path = np.empty(1, np.int16)
    weights = np.array([1.0, 0.0])
    lattice.sample_paths(
        np.array([0, 1]), np.zeros((1, 2)), weights, np.ones((2, 2)), np.ones(2), np.array([1.0]), path
    )
    assert path[0] == 0


def test_previous_labels_follow_the_annotator_within_the_sequence() -> None:
    rng = np.random.default_rng(2)
    offsets = np.array([0, 4, 4, 9, 10])
    given = [{a: int(rng.integers(4)) for a in range(5) if rng.random() < 0.6} for _ in range(10)]
    start = np.concatenate(([0], np.cumsum([len(g) for g in given])))
    annotator = np.array([a for g in given for a in sorted(g)], np.int32)
    label = np.array([g[a] for g in given for a in sorted(g)], np.int16)
    out = np.empty(len(label), np.int16)
    rows.previous_labels(offsets, start, annotator, label, np.int16(9), out)
    expected = [9 if i in offsets else given[i - 1].get(a, 9) for i, g in enumerate(given) for a in sorted(g)]
    assert out.tolist() == expected


def test_rows_add_up_and_count_back() -> None:
    rng = np.random.default_rng(3)
    n, T, R = 7, 3, 4
    start = np.concatenate(([0], np.cumsum(rng.integers(0, 4, n))))
    row = rng.integers(0, R, start[-1]).astype(np.int32)
    table, proba = rng.normal(size=(R, T)), rng.random((n, T))
    nothing = np.empty(0)  # all weights are 1
    for weight in (nothing, rng.random(len(row))):
        each = weight if len(weight) else np.ones(len(row))
        for first, last in ((0, n), (2, 5)):
            own, part = start[first : last + 1], slice(start[first], start[last])
            out, counts = np.zeros((last - first, T)), np.zeros((R, T))
            rows.add_view(own, row[part], weight[part], table, out)
            rows.count_view(own, row[part], weight[part], proba[first:last], counts)
            evidence, expected = np.zeros_like(out), np.zeros((R, T))
            for i in range(first, last):
                for j in range(start[i], start[i + 1]):
                    evidence[i - first] += each[j] * table[row[j]]
                    expected[row[j]] += each[j] * proba[i]
            np.testing.assert_allclose(out, evidence, rtol=1e-12)
            np.testing.assert_allclose(counts, expected, rtol=1e-12)
    single = np.zeros((n, T))
    rows.add_view(np.empty(0, np.int64), np.array([0, 1, 2, 3, 0, 1, 2], np.int32), nothing, table, single)
    np.testing.assert_array_equal(single, table[[0, 1, 2, 3, 0, 1, 2]])

"""The CRF by enumeration of all label paths, its features by their plain meaning, and Sembler on top of it."""

from __future__ import annotations

import itertools
import math

import numpy as np


def crf_paths(n_labels: int, length: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(n_labels), repeat=length))


def crf_score(state: np.ndarray, moves: np.ndarray, ids: list[list[int]], path: tuple[int, ...]) -> float:
    """θ·f of one path: `state` (n_features, n_labels), `ids` the features of each token."""
    node = sum(state[f, t] for token, t in zip(ids, path) for f in token)
    return float(node + sum(moves[a, b] for a, b in itertools.pairwise(path)))


def crf_counts(
    ids: list[list[int]], path: tuple[int, ...], n_features: int, n_labels: int
) -> tuple[np.ndarray, np.ndarray]:
    state, moves = np.zeros((n_features, n_labels)), np.zeros((n_labels, n_labels))
    for token, t in zip(ids, path):
        for f in token:
            state[f, t] += 1
    for a, b in itertools.pairwise(path):
        moves[a, b] += 1
    return state, moves


def crf_target(target: np.ndarray, path: tuple[int, ...]) -> float:
    """How much a path belongs to the target: hard labels (−1 = any), allowed labels (bool), or a distribution."""
    if target.ndim == 1:
        return float(all(t in (-1, p) for t, p in zip(target, path)))
    return float(np.prod([row[p] for row, p in zip(target, path)]))


def crf_cost(target: np.ndarray, path: tuple[int, ...], costs: np.ndarray) -> float:
    """Sum over positions of the cost of the path's label where the target is right; costs[j, t]."""
    total = 0.0
    for k, p in enumerate(path):
        if target.ndim == 1:
            total += 0.0 if target[k] < 0 else costs[p, target[k]]
        elif target.dtype == np.bool_:
            total += 0.0 if target[k, p] else min(costs[p, t] for t in np.flatnonzero(target[k]))
        else:
            total += sum(float(target[k, t]) * costs[p, t] for t in range(len(costs)))
    return total


def crf_objective(
    objective: str, state: np.ndarray, moves: np.ndarray, ids: list[list[int]], target: np.ndarray, costs: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Value of one sequence's objective and its gradient with regard to state and moves."""
    paths = crf_paths(state.shape[1], len(ids))
    scores = np.array([crf_score(state, moves, ids, p) for p in paths])
    counts = [crf_counts(ids, p, *state.shape) for p in paths]
    belongs = np.array([crf_target(target, p) for p in paths])
    cost = np.array([crf_cost(target, p, costs) for p in paths])
    if objective == "cost-sensitive":
        weights = np.exp(scores) * cost / len(ids)
    elif objective == "softmax-margin":
        weights = np.exp(scores + cost)
    else:
        weights = np.exp(scores)
    if target.ndim == 2 and target.dtype != np.bool_:
        value, inside = float(belongs @ scores), belongs
    else:
        value, inside = float(np.log(belongs @ np.exp(scores))), belongs * np.exp(scores) / (belongs @ np.exp(scores))
    value -= float(np.log(weights.sum()))
    share = inside - weights / weights.sum()
    return (
        value,
        sum(s * c[0] for s, c in zip(share, counts)),
        sum(s * c[1] for s, c in zip(share, counts)),
    )


def crf_attributes(templates: list[str], sentence: list[str], i: int) -> list[str]:
    """Feature texts of one token by the plain meaning of `field[offset]`, `a[0]|b[1]`, `any:field[a..b]`, `bias`."""

    def value(field: str, at: int) -> str | None:
        if at < 0 or at >= len(sentence):
            return "<s>" if at < 0 else "</s>"
        word = sentence[at]
        if field == "word":
            return word
        if field == "lower":
            return word.lower()
        if field == "shape":
            return "".join("X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word)
        n = int(field[-1])
        if len(word) < n:
            return None
        return word[:n] if field.startswith("prefix") else word[-n:]

    out = []
    for name in templates:
        if name == "bias":
            out.append("bias")
        elif name.startswith("any:"):
            field, window = name[4:-1].split("[")
            low, high = (int(x) for x in window.split(".."))
            places = [i + o for o in range(low, high + 1) if 0 <= i + o < len(sentence)]
            out += [f"{name}={v}" for v in (value(field, p) for p in places) if v is not None]
        else:
            parts = [part[:-1].split("[") for part in name.split("|")]
            values = [value(field, i + int(offset)) for field, offset in parts]
            if all(v is not None for v in values):
                out.append(f"{name}={'|'.join(v for v in values if v is not None)}")
    return out


def sembler(
    votes: list[tuple[int, int, int]],
    offsets: list[int],
    ids: list[list[int]],
    state: np.ndarray,
    moves: np.ndarray,
    rho: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Marginals, expected moves and Σ ln p(y | x): paths through labels somebody gave, against all paths."""
    T = state.shape[1]
    proba, expected, total = np.zeros((offsets[-1], T)), np.zeros((T, T)), 0.0
    for first, last in itertools.pairwise(offsets):
        if first == last:
            continue
        scores, joint = [], {}
        for path in crf_paths(T, last - first):
            score = crf_score(state, moves, ids[first:last], path)
            scores.append(score)
            for i, z in enumerate(path, first):
                given = [(a, s) for j, a, s in votes if j == i]
                if given and z not in [s for _, s in given]:
                    break
                score += sum(math.log(rho[a] if s == z else (1 - rho[a]) / (T - 1)) for a, s in given)
            else:
                joint[path] = score
        evidence = np.logaddexp.reduce(list(joint.values()))
        total += evidence - np.logaddexp.reduce(scores)
        for path, score in joint.items():
            p = math.exp(score - evidence)
            for i, z in enumerate(path, first):
                proba[i, z] += p
            for pair in itertools.pairwise(path):
                expected[pair] += p
    return proba, expected, float(total)


def agreement_loss(
    state: np.ndarray, moves: np.ndarray, ids: list[list[int]], target: np.ndarray, gamma: np.ndarray
) -> float:
    """log Σ_z' exp Σ_k γ(z'_k, z_k) (s_k(z'_k) − s_k(z_k)) + moves of z' and of z; tokens of unknown label are free."""
    T = state.shape[1]
    scores = np.array([[sum(state[f, t] for f in token) for t in range(T)] for token in ids])

    def weighed(path: tuple[int, ...]) -> float:
        total = sum(moves[a, b] for a, b in itertools.pairwise(path))
        for k, (t, y) in enumerate(zip(path, target)):
            total += scores[k, t] if y < 0 else gamma[t, y] * (scores[k, t] - scores[k, y])
        return float(total)

    paths = crf_paths(T, len(ids))
    every = np.logaddexp.reduce([weighed(p) for p in paths])
    right = np.logaddexp.reduce([weighed(p) for p in paths if all(y in (-1, t) for t, y in zip(p, target))])
    return float(every - right)


def weighed_perceptron(
    orders: list[list[int]], ids: list[list[list[int]]], labels: list[list[int]], gamma: np.ndarray, n_features: int
) -> tuple[np.ndarray, np.ndarray]:
    """Averaged weights of features and moves: every wrong token moves them by γ(predicted, right)."""
    T = len(gamma)
    state, moves = np.zeros((n_features, T)), np.zeros((T, T))
    totals, steps = (np.zeros_like(state), np.zeros_like(moves)), 0
    for order in orders:
        for s in order:
            if not ids[s]:
                continue
            best = max(crf_paths(T, len(ids[s])), key=lambda p: crf_score(state, moves, ids[s], p))
            for k, (t, y) in enumerate(zip(best, labels[s])):
                rate = gamma[t, y] if t != y else 1.0
                for f in ids[s][k]:
                    state[f, y] += rate if t != y else 0.0
                    state[f, t] -= rate if t != y else 0.0
                if k:
                    moves[labels[s][k - 1], y] += rate
                    moves[best[k - 1], t] -= rate
            totals[0][:] += state
            totals[1][:] += moves
            steps += 1
    return totals[0] / (steps + 1), totals[1] / (steps + 1)

"""Models with a tagger inside: posteriors and objectives by enumeration of all label paths."""

from __future__ import annotations

import itertools
import math

import numpy as np

from naive.crf import crf_paths, crf_score


def crf_ma(
    votes: list[tuple[int, int, int]],
    offsets: list[int],
    ids: list[list[int]],
    state: np.ndarray,
    moves: np.ndarray,
    pi: np.ndarray,
    temper: float,
    background: float,
) -> tuple[dict[tuple[int, int], float], np.ndarray, np.ndarray, float]:
    """q of (sequence, annotator), marginals, expected moves, and Σ_i ln Σ_r p(z_i = r) (p(y_i^r | x_i) / p0)^temper."""
    T = state.shape[1]
    given = {(i, a): s for i, a, s in votes}
    share = {t: sum(s == t for _, _, s in votes) / len(votes) for t in range(T)}
    q, proba, expected, total = {}, np.zeros((offsets[-1], T)), np.zeros((T, T)), 0.0
    for number, (first, last) in enumerate(itertools.pairwise(offsets)):
        people = sorted({a for i, a, _ in votes if first <= i < last})
        if not people:
            continue
        weight = {p: math.exp(crf_score(state, moves, ids[first:last], p)) for p in crf_paths(T, last - first)}
        everything = sum(weight.values())
        ways = {
            a: [p for p in weight if all(given.get((i, a), z) == z for i, z in enumerate(p, first))] for a in people
        }
        random = {a: math.prod(share[s] for i, b, s in votes if b == a and first <= i < last) for a in people}
        right = {
            a: pi[a]
            / sum(pi[b] for b in people)
            * (sum(weight[p] for p in ways[a]) / everything / random[a] ** background) ** temper
            for a in people
        }
        total += math.log(sum(right.values()))
        for a in people:
            q[number, a] = right[a] / sum(right.values())
            own = sum(weight[p] for p in ways[a])
            for path in ways[a]:
                part = q[number, a] * weight[path] / own
                for i, z in enumerate(path, first):
                    proba[i, z] += part
                for pair in itertools.pairwise(path):
                    expected[pair] += part
    return q, proba, expected, total


def raykar(
    votes: list[tuple[int, int, int]], ids: list[list[int]], state: np.ndarray, psi: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """μ of the tokens that have votes, expected counts (annotator, true, given), and Σ ln Σ_t p(t | x) Π Ψ."""
    T = state.shape[1]
    tokens = sorted({i for i, _, _ in votes})
    mu, counts, total = np.zeros((len(tokens), T)), np.zeros(psi.shape), 0.0
    for row, i in enumerate(tokens):
        scores = [math.exp(sum(state[f, t] for f in ids[i])) for t in range(T)]
        joint = [scores[t] / sum(scores) * math.prod(psi[a, t, s] for j, a, s in votes if j == i) for t in range(T)]
        total += math.log(sum(joint))
        mu[row] = np.array(joint) / sum(joint)
        for j, a, s in votes:
            if j == i:
                counts[a, :, s] += mu[row]
    return mu, counts, total

"""Chains of labels by enumeration of all paths."""

from __future__ import annotations

import itertools
import math

import numpy as np


def chain_paths(
    evidence: np.ndarray, start: np.ndarray, move: np.ndarray, end: np.ndarray
) -> dict[tuple[int, ...], float]:
    """The log weight of every path of positive weight."""
    weights = {}
    for path in itertools.product(range(len(start)), repeat=len(evidence)):
        factors = [start[path[0]], end[path[-1]], *(move[a, b] for a, b in itertools.pairwise(path))]
        log_evidence = [evidence[i, t] for i, t in enumerate(path)]
        if min(factors) > 0 and min(log_evidence) > -math.inf:
            weights[path] = sum(math.log(f) for f in factors) + sum(log_evidence)
    return weights


def chain_sums(weights: dict[tuple[int, ...], float], T: int) -> tuple[float, np.ndarray, np.ndarray]:
    """The log of the sum of all weights, each token's marginals, the expected moves."""
    best = max(weights.values())
    log_sum = best + math.log(math.fsum(math.exp(w - best) for w in weights.values()))
    marginals, moves = np.zeros((len(next(iter(weights))), T)), np.zeros((T, T))
    for path, weight in weights.items():
        p = math.exp(weight - log_sum)
        for i, t in enumerate(path):
            marginals[i, t] += p
        for a, b in itertools.pairwise(path):
            moves[a, b] += p
    return log_sum, marginals, moves

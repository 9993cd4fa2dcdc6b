"""Ambiguity: direct sums over explanations, a singular value decomposition per sequence, CrowdTruth by vectors."""

from __future__ import annotations

import itertools
import math

import numpy as np


def two_truths_token(
    votes: list[tuple[int, int]],
    pairs: list[tuple[int, int]],
    psi: np.ndarray,
    kinds: np.ndarray,
    levels: np.ndarray,
    gamma: np.ndarray,
    kappa: np.ndarray,
    rho: np.ndarray,
    pi: np.ndarray,
) -> dict[str, dict[tuple, float]]:
    """Weight × likelihood of every explanation of one token; votes are (annotator, label), psi[l, d, t, s]."""
    made: dict[str, dict[tuple, float]] = {"one": {}, "two": {}}
    for d, weight in enumerate(levels):
        for t in range(len(gamma)):
            made["one"][d, t] = kinds[0] * weight * gamma[t] * math.prod(psi[who, d, t, s] for who, s in votes)
        for a, b in pairs:
            for k, p in enumerate(pi):
                likelihood = math.prod(p * psi[who, d, a, s] + (1 - p) * psi[who, d, b, s] for who, s in votes)
                made["two"][d, a, b, k] = kinds[1] * weight * kappa[a, b] * rho[k] * likelihood
    return made


def rank1_matrix(labels: np.ndarray, *, share: bool) -> np.ndarray:
    """A(l, j) of one sequence from labels (annotator, token), -1 = missing; nan where l did not label j."""
    A = np.full(labels.shape, np.nan)
    for who in range(labels.shape[0]):
        for j in range(labels.shape[1]):
            if labels[who, j] >= 0:
                same = int((labels[:, j] == labels[who, j]).sum())
                A[who, j] = same / int((labels[:, j] >= 0).sum()) if share else same
    return A


def rank1_svd(A: np.ndarray, *, share: bool) -> tuple[np.ndarray, np.ndarray]:
    """ω and μ of a complete matrix: the leading singular triplet, signs made positive, then scaled."""
    U, S, V = np.linalg.svd(A, full_matrices=False)
    omega, mu = np.abs(U[:, 0]) * math.sqrt(S[0]), np.abs(V[0]) * math.sqrt(S[0])
    return (omega / omega.mean(), mu * omega.mean()) if share else (omega, mu)


def rank1_error(A: np.ndarray, omega: np.ndarray, mu: np.ndarray) -> float:
    """Squared error of a rank-1 fit on the observed cells."""
    return float(np.nansum((A - np.outer(omega, mu)) ** 2))


def crowdtruth_step(
    votes: list[dict[int, int]], unit: np.ndarray, worker: np.ndarray, quality: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One update of unit, worker and label quality by vectors and cosines; votes[i] maps annotators to labels."""
    L, T = len(worker), len(quality)
    vector = [{a: np.eye(T)[s] for a, s in given.items()} for given in votes]

    def cosine(x: np.ndarray, y: np.ndarray) -> float:
        return float((quality * x * y).sum() / math.sqrt((quality * x * x).sum() * (quality * y * y).sum()))

    new_unit = np.full(len(votes), np.nan)
    for i, v in enumerate(vector):
        pairs = list(itertools.combinations(v, 2))
        if pairs:
            above = sum(cosine(v[a], v[b]) * worker[a] * worker[b] for a, b in pairs)
            new_unit[i] = above / sum(worker[a] * worker[b] for a, b in pairs)
    new_worker = np.zeros(L)
    for a in range(L):
        mine = [i for i, v in enumerate(vector) if a in v and len(v) > 1]
        if not mine:
            continue
        with_all = sum(unit[i] * cosine(vector[i][a], sum(vector[i].values()) - vector[i][a]) for i in mine)
        others = [(i, b) for i in mine for b in vector[i] if b != a]
        with_each = sum(unit[i] * worker[b] * cosine(vector[i][a], vector[i][b]) for i, b in others)
        below = sum(unit[i] * worker[b] for i, b in others)
        new_worker[a] = with_all / sum(unit[i] for i in mine) * with_each / below
    new_quality = np.ones(T)
    for t in range(T):
        above = below = 0.0
        for a, b in itertools.permutations(range(L), 2):
            shared = [i for i, v in enumerate(vector) if a in v and b in v]
            given = sum(unit[i] * vector[i][b][t] for i in shared)
            if given > 0:
                both = sum(unit[i] * vector[i][a][t] * vector[i][b][t] for i in shared)
                above += worker[a] * worker[b] * both / given
                below += worker[a] * worker[b]
        if below > 0:
            new_quality[t] = max(above / below, 1e-4)
    return new_unit, new_worker, new_quality

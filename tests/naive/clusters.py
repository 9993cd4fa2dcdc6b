"""Hierarchical clusters: the joint density term by term, and draws from it."""

from __future__ import annotations

from math import lgamma, log

import numpy as np


def hc_counts(
    votes: list[tuple[int, int, int]], z: np.ndarray, n_annotators: int, n_labels: int, n_states: int
) -> np.ndarray:
    """n_lts from triples (token, annotator, label); z are states: labels, then (with levels) labels of hard tokens."""
    counts = np.zeros((n_annotators, n_states, n_labels), int)
    for i, annotator, label in votes:
        counts[annotator, z[i], label] += 1
    return counts


def hc_log_joint(
    votes: list[tuple[int, int, int]],
    z: np.ndarray,
    c: np.ndarray,
    beta: np.ndarray,
    eta: np.ndarray,
    alpha: np.ndarray,
    rate: float,
    epsilon_nu: float,
    epsilon_gamma: float,
    hard: np.ndarray,
) -> float:
    """The log joint of maths.md, section 1, term by term; the ε are those of the whole vector (ε/C, ε/S each).

    `hard` (T, T), or (0, T) for none: the Dirichlet parameters of everybody's rows at hard tokens, states T..2T-1.
    """
    (C, T), S = eta.shape, eta.shape[1] + len(hard)
    counts = hc_counts(votes, z, len(c), T, S)
    total = sum(lgamma(int((c == k).sum()) + epsilon_nu / C) for k in range(C))
    total += sum(lgamma(int((z == t).sum()) + epsilon_gamma / S) for t in range(S))
    for annotator, k in enumerate(c):
        for t in range(S):
            urn = eta[k, t] * beta[k, t] if t < T else hard[t - T]
            total += lgamma(urn.sum()) - lgamma(counts[annotator, t].sum() + urn.sum())
            for s in range(T):
                total += lgamma(counts[annotator, t, s] + urn[s]) - lgamma(urn[s])
    for k in range(C):
        for t in range(T):
            total += -rate * eta[k, t] + sum((alpha[t, j] - 1) * log(beta[k, t, j]) for j in range(T))
    return total


def hc_state_probabilities(
    votes: list[tuple[int, int, int]], psi: np.ndarray, gamma: np.ndarray, n_tokens: int
) -> np.ndarray:
    """p(z_i | Ψ, γ, votes), (n_tokens, S), in logs: Ψ is (annotator, state, given)."""
    logs = [[log(g) for g in gamma] for _ in range(n_tokens)]
    for i, annotator, label in votes:
        for t in range(len(gamma)):
            logs[i][t] += log(psi[annotator, t, label])
    weights = np.exp(np.array(logs) - np.max(logs, axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def hc_draw_labels(
    pairs: list[tuple[int, int]],
    z: np.ndarray,
    c: np.ndarray,
    beta: np.ndarray,
    eta: np.ndarray,
    hard: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw the label of every (token, annotator) given all else, Ψ integrated out: Pólya's urn."""
    T = eta.shape[1]
    seen = [[*((eta[k, t] * beta[k, t]).tolist() for t in range(T)), *hard.tolist()] for k in c]
    labels = np.empty(len(pairs), np.int16)
    uniforms = rng.random(len(pairs))
    for n, (i, annotator) in enumerate(pairs):
        urn = seen[annotator][z[i]]
        rest, s = uniforms[n] * sum(urn), 0
        while s < T - 1 and rest >= urn[s]:
            rest -= urn[s]
            s += 1
        urn[s] += 1
        labels[n] = s
    return labels


def hc_draw_prior(
    n_tokens: int, n_annotators: int, alpha: np.ndarray, rate: float, epsilon_nu: float, epsilon_gamma: float, C: int,
    n_states: int, rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Draw z, c, β, η from their prior."""
    (T, _), S = alpha.shape, n_states
    z = rng.choice(S, n_tokens, p=rng.dirichlet(np.full(S, epsilon_gamma / S))).astype(np.int16)
    c = rng.choice(C, n_annotators, p=rng.dirichlet(np.full(C, epsilon_nu / C))).astype(np.int32)
    beta = np.stack([[rng.dirichlet(row) for row in alpha] for _ in range(C)])
    return z, c, beta, rng.exponential(1 / rate, (C, T))

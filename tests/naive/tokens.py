"""Dawid–Skene, IBCC, MACE and GLAD by plain loops over (token, annotator, label) triples."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import digamma, gammaln


def _shares(votes: list[tuple[int, int, int]], n: int, T: int) -> list[list[float]]:
    mine = [[y for i, _, y in votes if i == token] for token in range(n)]
    return [[ys.count(t) / len(ys) if ys else 0.0 for t in range(T)] for ys in mine]


def ds_counts(
    votes: list[tuple[int, int, int]], proba: list[list[float]], L: int, T: int
) -> tuple[np.ndarray, np.ndarray]:
    """Expected counts n[a, t, s] and n[t]; tokens without votes do not count."""
    counts, totals = np.zeros((L, T, T)), np.zeros(T)
    for i, a, s in votes:
        for t in range(T):
            counts[a, t, s] += proba[i][t]
    for i in {i for i, _, _ in votes}:
        totals += np.array(proba[i])
    return counts, totals


def ds_posterior(
    votes: list[tuple[int, int, int]], psi: np.ndarray, gamma: np.ndarray, n: int
) -> tuple[list[list[float]], float]:
    """p(z_i = t | y) ∝ γ_t Π_l Ψ_l[t, y_il] and Σ_i ln Σ_t of it, by the formula."""
    proba, evidence = [], 0.0
    for token in range(n):
        weights = [gamma[t] * math.prod(psi[a, t, s] for i, a, s in votes if i == token) for t in range(len(gamma))]
        proba.append([w / sum(weights) for w in weights])
        evidence += math.log(sum(weights)) if any(i == token for i, _, _ in votes) else 0.0
    return proba, evidence


def dawid_skene(
    votes: list[tuple[int, int, int]], n: int, L: int, T: int, smoothing: float, agreement: float, steps: int
) -> tuple[np.ndarray, list[float]]:
    """EM from the shares of the votes: posterior after `steps` M steps, and the log posterior after each."""
    proba, trace = _shares(votes, n, T), []
    for _ in range(steps):
        counts, totals = ds_counts(votes, proba, L, T)
        prior = smoothing + agreement * np.eye(T)
        psi = (counts + prior) / (counts + prior).sum(axis=2, keepdims=True)
        gamma = (totals + smoothing) / (totals + smoothing).sum()
        proba, evidence = ds_posterior(votes, psi, gamma, n)
        trace.append(evidence + (prior * np.log(psi)).sum() + smoothing * np.log(gamma).sum())
    return np.array(proba), trace


def ibcc(
    votes: list[tuple[int, int, int]], n: int, L: int, T: int, prior: np.ndarray, class_prior: float, steps: int
) -> tuple[np.ndarray, list[float]]:
    """Variational Bayes from the shares of the votes; the ELBO as E_q[ln p(y, z, Ψ, γ)] − E_q[ln q], term by term."""
    proba, trace = _shares(votes, n, T), []
    for _ in range(steps):
        counts, totals = ds_counts(votes, proba, L, T)
        alpha, nu = counts + prior, totals + class_prior
        e_psi = digamma(alpha) - digamma(alpha.sum(axis=2, keepdims=True))
        e_gamma = digamma(nu) - digamma(nu.sum())
        proba, _ = ds_posterior(votes, np.exp(e_psi), np.exp(e_gamma), n)
        elbo = dirichlet_expectation(prior, alpha) - dirichlet_expectation(alpha, alpha)
        elbo += dirichlet_expectation(np.full(T, class_prior), nu) - dirichlet_expectation(nu, nu)
        for i, a, s in votes:
            elbo += sum(proba[i][t] * e_psi[a, t, s] for t in range(T))
        for i in {i for i, _, _ in votes}:
            elbo += sum(p * (e_gamma[t] - math.log(p)) for t, p in enumerate(proba[i]) if p > 0)
        trace.append(float(elbo))
    return np.array(proba), trace


def dirichlet_expectation(density: np.ndarray, under: np.ndarray) -> float:
    """E[ln Dir(p; density)] for p ~ Dir(under), summed over rows."""
    density = np.broadcast_to(density, under.shape)
    e_log = digamma(under) - digamma(under.sum(axis=-1, keepdims=True))
    rows = gammaln(density.sum(axis=-1)) - gammaln(density).sum(axis=-1) + ((density - 1) * e_log).sum(axis=-1)
    return float(np.sum(rows))


def mace_e_step(
    votes: list[tuple[int, int, int]], n: int, theta: np.ndarray, xi: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """MACE by enumeration of truth and of each vote's coin: p(z), counts of (guessed, known), of guesses, evidence."""
    L, T = xi.shape
    proba, coins, guesses, evidence = np.zeros((n, T)), np.zeros((L, 2)), np.zeros((L, T)), 0.0
    for token in range(n):
        mine = [(a, s) for i, a, s in votes if i == token]
        joint: dict[tuple[int, tuple[int, ...]], float] = {}
        for z in range(T):
            for known in itertools.product((0, 1), repeat=len(mine)):
                p = 1 / T
                for (a, s), k in zip(mine, known):
                    p *= theta[a, 1] * float(s == z) if k else theta[a, 0] * xi[a, s]
                joint[z, known] = p
        total = sum(joint.values())
        evidence += math.log(total)
        for (z, known), p in joint.items():
            proba[token, z] += p / total
            for (a, s), k in zip(mine, known):
                coins[a, k] += p / total
                guesses[a, s] += (1 - k) * p / total
    return proba, coins, guesses, evidence


def mace(
    votes: list[tuple[int, int, int]],
    n: int,
    theta: np.ndarray,
    xi: np.ndarray,
    steps: int,
    *,
    variational: bool,
    theta_prior: tuple[float, float] = (0.5, 0.5),
    xi_prior: float = 10.0,
) -> tuple[np.ndarray, list[float]]:
    """The way of the original program: E, then `steps` times M and E. Returns p(z) and the evidence of each E step."""
    proba, coins, guesses, evidence = mace_e_step(votes, n, theta, xi)
    trace = [evidence]
    for _ in range(steps):
        a, b = coins + np.array(theta_prior), guesses + xi_prior
        if variational:
            theta = np.exp(digamma(a) - digamma(a.sum(axis=1, keepdims=True)))
            xi = np.exp(digamma(b) - digamma(b.sum(axis=1, keepdims=True)))
        else:
            theta, xi = a / a.sum(axis=1, keepdims=True), b / b.sum(axis=1, keepdims=True)
        proba, coins, guesses, evidence = mace_e_step(votes, n, theta, xi)
        trace.append(evidence)
    return proba, trace


def glad_log_posterior(
    votes: list[tuple[int, int, int]],
    ability: np.ndarray,
    log_ease: np.ndarray,
    gamma: np.ndarray,
    smoothing: float,
    mean: tuple[float, float] = (1.0, 1.0),
    sd: tuple[float, float] = (1.0, 1.0),
    known: dict[int, int] | None = None,
) -> float:
    """ln p(y, α, ln β, γ) of GLAD up to a constant, by the formula; `known`: the true labels of some tokens."""
    T, total = len(gamma), 0.0
    for token in sorted({i for i, _, _ in votes}):
        evidence = 0.0
        for t in range(T) if known is None or token not in known else [known[token]]:
            p = gamma[t]
            for i, a, s in votes:
                if i == token:
                    x = ability[a] * math.exp(log_ease[i])
                    p *= 1 / (1 + math.exp(-x)) if s == t else 1 / (1 + math.exp(x)) / (T - 1)
            evidence += p
        total += math.log(evidence) - (log_ease[token] - mean[1]) ** 2 / (2 * sd[1] ** 2)
    total -= sum((a - mean[0]) ** 2 for a in ability) / (2 * sd[0] ** 2)
    return total + smoothing * float(np.log(gamma).sum())


def ds_with_soft(votes, soft, psi, gamma, n_tokens):
    """Return counts (annotator, true, given), label counts and log evidence of Dawid–Skene, soft votes summed over."""
    T = len(gamma)
    counts, totals, evidence = np.zeros_like(psi), np.zeros(T), 0.0
    for i in range(n_tokens):
        hard = [(a, s) for j, a, s in votes if j == i]
        mine = [(a, p / p.sum()) for j, a, p in ((j, a, np.asarray(p, float)) for j, a, p in soft) if j == i]
        if not hard and not mine:
            continue
        weight = np.array(gamma)
        for t in range(T):
            for a, s in hard:
                weight[t] *= psi[a, t, s]
            for a, p in mine:
                weight[t] *= sum(p[s] * psi[a, t, s] for s in range(T))
        evidence += np.log(weight.sum())
        q = weight / weight.sum()
        totals += q
        for t in range(T):
            for a, s in hard:
                counts[a, t, s] += q[t]
            for a, p in mine:
                given = np.array([p[s] * psi[a, t, s] for s in range(T)])
                counts[a, t] += q[t] * given / given.sum()
    return counts, totals, evidence


def incremental_ds(votes, old_counts, old_totals, n_tokens, n_steps, *, smoothing, agreement):
    """Run incremental EM: the old counts (annotator, true, given) stay, E and M steps are over the new tokens alone.

    The first posterior is the shares of the new votes; returned is the posterior after `n_steps` M steps.
    """
    T = len(old_totals)
    q = np.zeros((n_tokens, T))
    for i, _, s in votes:
        q[i, s] += 1
    voted = q.sum(axis=1) > 0
    q[voted] /= q[voted].sum(axis=1, keepdims=True)
    for _ in range(n_steps + 1):
        psi = old_counts + smoothing + agreement * np.eye(T)
        for i, a, s in votes:
            psi[a, :, s] += q[i]
        psi = psi / psi.sum(axis=2, keepdims=True)
        gamma = old_totals + smoothing + q[voted].sum(axis=0)
        gamma = gamma / gamma.sum()
        q = np.tile(np.log(gamma), (n_tokens, 1))
        for i, a, s in votes:
            q[i] += np.log(psi[a, :, s])
        q = np.exp(q - q.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
    return q

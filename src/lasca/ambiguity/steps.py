"""The two-truths model, step by step: parameters, the E step in chunks and threads, the M steps of both stages.

The model is in `lasca.ambiguity.two_truths`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, xlogy

from lasca.ambiguity.ranking import Floats
from lasca.engine import run_ordered
from lasca.kernels import ambiguity as kernels
from lasca.truth.base import Votes

__all__ = [
    "PI",
    "Expected",
    "Parameters",
    "Passes",
    "Prior",
    "integrated",
    "own_step",
    "pooled_step",
    "shares",
    "strengths",
]

PI = np.array([0.5, 0.6, 0.7, 0.8])
HARD_MIX = 0.5
TOP_PAIRS = 5
STRENGTHS = 10.0 ** np.arange(0, 4.1, 0.5)
# what the priors add to the expected counts: kinds (one, hard, two), γ, ν, ρ, θ (knows, does not)
KINDS = np.array([9.0, 1.0, 1.0])
LABELS, NOISE, GRID, COMPETENCE = 0.1, 1.0, 1.0, 1.0
PAIRS, ROWS = 1.0, 10.0
"""Per label: what κ and a shared confusion row get, spread half evenly, half by label frequency."""


@dataclass(frozen=True)
class Parameters:
    """What an E step needs, and the log prior (up to a constant) of it."""

    psi: Floats
    """(annotator, given label, true label)."""
    kinds: Floats
    gamma: Floats
    kappa: Floats
    rho: Floats
    noise: Floats
    theta: Floats
    rows: Floats
    log_prior: float


@dataclass(frozen=True)
class Expected:
    """What an E step finds: expected counts and the log evidence."""

    counts: Floats
    one: Floats
    hard: Floats
    pairs: Floats
    noise: Floats
    evidence: float


@dataclass(frozen=True)
class Prior:
    """The fixed part of the prior: for κ (T, T), for the shared rows (T, T), and for own rows (L, given, true)."""

    kappa: Floats
    rows: Floats
    own: Floats | None = None


class Passes:
    """E steps over some tokens, in chunks and threads; the result does not depend on either."""

    def __init__(self, votes: Votes, tokens: npt.NDArray[np.int64], near: Any, n_threads: int, chunk_size: int) -> None:
        self.votes, self.tokens, self.near, self.n_threads = votes, tokens, near, n_threads
        borders = [*range(0, len(tokens), chunk_size), len(tokens)]
        self.chunks = list(pairwise(borders))

    def _arguments(self, p: Parameters) -> tuple[Any, ...]:
        weights = (p.kinds[0] * p.gamma, p.kinds[1] * p.gamma, p.kinds[2] * p.kappa[:, :, None] * p.rho)
        votes = (self.votes.start, self.votes.annotator, self.votes.label, self.near)
        return (*votes, np.ascontiguousarray(p.psi), *weights, p.noise, HARD_MIX, PI)

    def run(self, p: Parameters, learn: bool = True) -> tuple[Expected, Floats]:
        """Return expected counts (zero unless `learn`) and the probability of two truths of each token."""
        L, T = self.votes.n_annotators, self.votes.n_labels
        arguments = self._arguments(p)
        evidence, proba = np.empty(len(self.tokens)), np.empty(len(self.tokens))
        e_step: Any = kernels.two_truths_pass
        shapes = ((L, T, T), (T,), (T,), (T, T, kernels.GRID), (T,))

        def work(mine: list[tuple[int, int]]) -> list[npt.NDArray[np.int64]]:
            sums = [np.zeros(shape, np.int64) for shape in shapes]
            for lo, hi in mine:
                e_step(lo, hi, self.tokens, *arguments, learn, *sums, evidence, proba)
            return sums

        parts = run_ordered(work, [self.chunks[k :: self.n_threads] for k in range(self.n_threads)], self.n_threads)
        totals = [np.sum([part[k] for part in parts], axis=0) / kernels.SCALE for k in range(len(shapes))]
        counts, one, hard, pairs, noise = totals
        return Expected(counts, one, hard, pairs, noise, float(evidence.sum())), proba

    def pairs(self, p: Parameters, tokens: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
        """Return the most probable pairs of the tokens, given that they are ambiguous."""
        label = np.empty((len(tokens), TOP_PAIRS, 2), np.int16)
        proba, share = np.empty((len(tokens), TOP_PAIRS)), np.empty((len(tokens), TOP_PAIRS))
        find: Any = kernels.two_truths_pairs
        find(0, len(tokens), tokens, *self._arguments(p), label, proba, share)
        return {"pair_label": label, "pair_proba": proba, "pair_share": share}


def shares(counts: Floats) -> Floats:
    """Return counts divided by their sum."""
    return np.asarray(counts / counts.sum())


def mixture(e: Expected, prior: Prior) -> tuple[dict[str, Floats], float]:
    """Return the M step of the weights (kinds, γ, κ, ρ, ν) and their log prior."""
    added = {
        "kinds": KINDS,
        "gamma": np.full(len(e.one), LABELS),
        "kappa": prior.kappa,
        "rho": np.full(kernels.GRID, GRID),
        "noise": np.full(len(e.noise), NOISE),
    }
    counts = {
        "kinds": np.array([e.one.sum(), e.hard.sum(), e.pairs.sum()]),
        "gamma": e.one + e.hard,
        "kappa": e.pairs.sum(axis=2),
        "rho": e.pairs.sum(axis=(0, 1)),
        "noise": e.noise,
    }
    new = {name: shares(counts[name] + added[name]) for name in counts}
    return new, float(sum(xlogy(added[name], new[name]).sum() for name in new))


def pooled_rows(theta: Floats, rows: Floats) -> Floats:
    """Return Ψ of the first stage as (annotator, given, true)."""
    own = np.multiply.outer(theta, np.eye(len(rows)))
    return np.asarray(own + np.multiply.outer(1 - theta, rows.T))


def pooled_step(e: Expected, prior: Prior, theta: Floats, rows: Floats) -> Parameters:
    """M step of stage 1: a few inner steps over who knew and who guessed, from where θ and r were."""
    diagonal = np.einsum("ltt->lt", e.counts)
    n = e.counts.sum(axis=(1, 2))
    for _ in range(3):
        knows = theta[:, None] / (theta[:, None] + (1 - theta)[:, None] * np.diag(rows)) * diagonal
        guessed = e.counts.sum(axis=0).T - np.diag(knows.sum(axis=0))
        theta = (knows.sum(axis=1) + COMPETENCE) / (n + 2 * COMPETENCE)
        rows = guessed + prior.rows
        rows = rows / rows.sum(axis=1, keepdims=True)
    log_prior = COMPETENCE * (np.log(theta) + np.log1p(-theta)).sum() + xlogy(prior.rows, rows).sum()
    new, more = mixture(e, prior)
    return Parameters(pooled_rows(theta, rows), **new, theta=theta, rows=rows, log_prior=float(log_prior + more))


def own_step(e: Expected, prior: Prior, old: Parameters) -> Parameters:
    """M step of stage 2: each annotator's rows, with the pooled ones as prior."""
    assert prior.own is not None
    psi = e.counts + prior.own
    psi /= psi.sum(axis=1, keepdims=True)
    new, more = mixture(e, prior)
    return replace(old, psi=psi, **new, log_prior=float(xlogy(prior.own, psi).sum() + more))


def strengths(counts: Floats, pooled: Floats) -> Floats:
    """Return, per true label, how strongly own rows are drawn to the pooled ones: the best on a grid by evidence."""
    total = counts.sum(axis=1)
    found = []
    for s in STRENGTHS:
        alpha = s * pooled
        value = (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=(0, 1))
        found.append(value + (gammaln(s) - gammaln(total + s)).sum(axis=0))
    return np.asarray(STRENGTHS[np.argmax(found, axis=0)])


def integrated(e: Expected, p: Parameters, prior: Prior) -> float:
    """Return ln p(votes) with Ψ integrated out, as Cheeseman & Stutz approximate it from one E step."""
    assert prior.own is not None
    n, alpha = e.counts, prior.own
    rows = gammaln(alpha.sum(axis=1)) - gammaln((n + alpha).sum(axis=1))
    counted = float((gammaln(n + alpha) - gammaln(alpha)).sum() + rows.sum())
    return e.evidence - float(xlogy(n, p.psi).sum()) + counted

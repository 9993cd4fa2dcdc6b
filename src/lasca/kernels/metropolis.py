"""Moves of β and η, the clusters' Dirichlet parameters in the hierarchical clusters model: Metropolis–Hastings.

Arrays, symbols and the joint density that every move leaves invariant are those of `lasca.kernels.gibbs`; β and η are
changed in place. Of the states only the first T, the easy level, depend on them.
"""

from __future__ import annotations

import math

import numpy as np

from lasca.kernels import random as rnd
from lasca.kernels.compiled import inner, kernel
from lasca.kernels.gibbs import rising

__all__ = ["beta_gain", "move_beta", "move_eta", "refresh_empty", "row_score"]


@inner(allocates=True)
def _members_of(k, c):  # type: ignore[no-untyped-def]
    """Return the annotators of a cluster."""
    return np.flatnonzero(c == k)


@kernel(allocates=True)
def move_beta(c, counts, beta, eta, alpha, rng):  # type: ignore[no-untyped-def]
    """Move every β_tj with β_tt once, the other entries held (eq. 9). Returns the share of accepted moves.

    τ = β_tj + β_tt is fixed (E1: eq. 12 prints the complement). E4: the paper calls its proposal U(0, min{2x, 1})
    symmetric; it is not, and it may leave the simplex. Here x' ~ U(0, min(2x, τ)); a move that cannot come back
    (x > min(2x', τ)) is refused, and the ratio carries min(2x, τ) / min(2x', τ).
    """
    C, T, _ = beta.shape
    accepted = 0
    for k in range(C):
        group = _members_of(k, c)
        for t in range(T):
            for j in range(T):
                if j != t:
                    accepted += _move_pair(group, counts, t, j, beta[k, t], eta[k, t], alpha[t], rng)
            beta[k, t] /= beta[k, t].sum()  # the sum drifts by 1e-16 per move
    return accepted / max(1, C * T * (T - 1))


@kernel
def beta_gain(group, counts, t, j, row, eta, alpha, new):  # type: ignore[no-untyped-def]
    """Return the log ratio of the joint when β_tj becomes `new` and β_tt the rest of their sum (eq. 9)."""
    old, old_own = row[j], row[t]
    new_own = old + old_own - new
    gain = (alpha[j] - 1.0) * math.log(new / old) + (alpha[t] - 1.0) * math.log(new_own / old_own)
    for m in group:
        if counts[m, t, j]:
            gain += rising(eta * new, counts[m, t, j]) - rising(eta * old, counts[m, t, j])
        if counts[m, t, t]:
            gain += rising(eta * new_own, counts[m, t, t]) - rising(eta * old_own, counts[m, t, t])
    return gain


@inner
def _move_pair(group, counts, t, j, row, eta, alpha, rng):  # type: ignore[no-untyped-def]
    """Propose a new β_tj (and with it β_tt) and accept or refuse it; returns 1 or 0."""
    old = row[j]
    tau = old + row[t]
    bound = min(2.0 * old, tau)
    new = rnd.uniform(rng) * bound
    u = rnd.uniform(rng)
    back = min(2.0 * new, tau)
    if old > back or new <= 0.0 or tau - new <= 0.0:
        return 0
    if math.log(u) < math.log(bound / back) + beta_gain(group, counts, t, j, row, eta, alpha, new):
        row[j], row[t] = new, tau - new
        return 1
    return 0


@kernel
def row_score(group, counts, rows, t, row, eta):  # type: ignore[no-untyped-def]
    """Return the part of the joint that depends on η_t of a cluster, without its prior (E3: Γ(ηβ_tj), not Γ(ηβ_t))."""
    total = 0.0
    for m in group:
        if rows[m, t]:
            total -= rising(eta, rows[m, t])
            for s in range(len(row)):
                if counts[m, t, s]:
                    total += rising(eta * row[s], counts[m, t, s])
    return total


@kernel(allocates=True)
def move_eta(c, counts, rows, beta, eta, rate, step, gain_rate, rng):  # type: ignore[no-untyped-def]
    """Move every η_t^c by a log-normal step on (0, ∞) (eq. 10; E4: the paper's bound 1 is dropped). Returns the rate.

    The factor η'/η is the Jacobian of the walk on ln η. `step` (C, T) is tuned towards 44 % accepted moves with
    gain `gain_rate`, which must be 0 outside the warm-up.
    """
    C, T = eta.shape
    accepted = 0
    for k in range(C):
        group = _members_of(k, c)
        for t in range(T):
            old = eta[k, t]
            new = old * math.exp(step[k, t] * rnd.normal(rng))
            u = rnd.uniform(rng)
            gain = math.log(new / old) - rate * (new - old)
            gain += row_score(group, counts, rows, t, beta[k, t], new)
            gain -= row_score(group, counts, rows, t, beta[k, t], old)
            taken = math.log(u) < gain
            if taken:
                eta[k, t] = new
                accepted += 1
            if gain_rate > 0.0:
                step[k, t] = min(max(step[k, t] * math.exp(gain_rate * ((1.0 if taken else 0.0) - 0.44)), 0.01), 5.0)
    return accepted / (C * T)


@kernel(allocates=True)
def refresh_empty(c, rows, beta, eta, alpha, rate, rng):  # type: ignore[no-untyped-def]
    """Draw β_t^c, η_t^c from their prior where no annotator of cluster c saw label t: there it is the conditional."""
    C, T = eta.shape
    for k in range(C):
        seen = np.zeros(T, np.int64)
        for m in _members_of(k, c):
            seen += rows[m, :T]
        for t in range(T):
            if seen[t] == 0:
                rnd.dirichlet(rng, alpha[t], beta[k, t])
                eta[k, t] = rnd.exponential(rng, rate)

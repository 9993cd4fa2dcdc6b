"""Sweeps of the hierarchical clusters model (HC): z given Ψ and γ, c given counts; other moves are in `metropolis`.

Symbols as in the paper: z true labels, c clusters of annotators, β (C, T, T) and η (C, T) the clusters' Dirichlet
parameters, counts[l, t, s] = n_lts how often annotator l said s where t is true, rows[l, t] = n_lt, totals[t] = n_t,
members[c] = n_c, alpha[t, j] = a_tj the Dirichlet parameter of β_t. With Ψ, ν, γ integrated out every step but the one
of z, which is drawn given Ψ and γ (these are drawn given all else just before), leaves

    Σ_c lnΓ(n_c + ε_ν/C) + Σ_t lnΓ(n_t + ε_γ/T)
    + Σ_l Σ_t [lnΓ(η) − lnΓ(n_lt + η) + Σ_s (lnΓ(n_lts + ηβ_s) − lnΓ(ηβ_s))] + Σ_c Σ_t [−λ_η η + Σ_j (a_tj − 1) ln β_tj]

invariant. A token's state is its label t or, with levels of difficulty, h·T + t: counts (L, S, T), rows (L, S) and
totals (S,) have S = T or S = 2T states. Clusters tell the first T states apart (the easy level); rows of the hard level
have fixed pseudo-counts d (`hard`, (S − T, T)), the same for everybody, and add to the joint

    Σ_l Σ_{t > T} [lnΓ(Σ_s d_ts) − lnΓ(n_lt + Σ_s d_ts) + Σ_s (lnΓ(n_lts + d_ts) − lnΓ(d_ts))].

All arrays are changed in place; `rng` is a state of `lasca.kernels.random`. Where the paper's printed
formulas differ (E1, E3, E4 of the project's notes) the place says so.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lasca.kernels import random as rnd
from lasca.kernels.compiled import inner, kernel
from lasca.kernels.simd import load, mul, store

__all__ = ["annotator_score", "count", "draw_rows", "draw_states", "log_joint", "padded", "rising", "swap", "sweep_c"]

_ONE_BLOCK = (0,)
TINY = 1e-200
"""Products below this are computed again in logs."""


def padded(n_states: int) -> int:
    """Return the width of a row of states in the tables of `draw_states`: a multiple of 4."""
    return (n_states + 3) // 4 * 4


@kernel
def rising(x: float, n: int) -> float:
    """Return lnΓ(x + n) − lnΓ(x): exact for few counts, where the difference of two lnΓ would cancel."""
    if n <= 12:
        product = 1.0
        for k in range(n):
            product *= x + k
        return math.log(product)
    return math.lgamma(x + n) - math.lgamma(x)


@kernel
def count(first, last, start, annotator, label, z, counts, totals):  # type: ignore[no-untyped-def]
    """Add tokens first..last to n_lts and n_t; `z` begins with token `first`."""
    for i in range(first, last):
        t = z[i - first]
        totals[t] += 1
        for k in range(start[i], start[i + 1]):
            counts[annotator[k], t, label[k]] += 1


@kernel
def draw_rows(counts, pseudo, c, totals, epsilon, rng, log_psi, log_gamma):  # type: ignore[no-untyped-def]
    """Draw ln Ψ_lt ~ Dir(n_lt + pseudo of l's cluster) and ln γ ~ Dir(n + ε); `pseudo` is (C, S, T).

    In logs, where a gamma of shape x < 1 is one of shape x + 1 times u^(1/x): rows nobody voted in have small shapes.
    """
    for m in range(len(c)):
        for t in range(counts.shape[1]):
            for s in range(counts.shape[2]):
                log_psi[m, t, s] = _log_gamma_draw(rng, counts[m, t, s] + pseudo[c[m], t, s])
            _normalise(log_psi[m, t])
    for t in range(len(totals)):
        log_gamma[t] = _log_gamma_draw(rng, totals[t] + epsilon)
    _normalise(log_gamma)


@inner
def _log_gamma_draw(rng, shape):  # type: ignore[no-untyped-def]
    if shape >= 1.0:
        return math.log(rnd.gamma(rng, shape))
    return math.log(rnd.gamma(rng, shape + 1.0)) + math.log(rnd.uniform(rng)) / max(shape, 1e-300)


@inner
def _normalise(logs):  # type: ignore[no-untyped-def]
    top, total = -np.inf, 0.0
    for s in range(len(logs)):
        top = max(top, logs[s])
    for s in range(len(logs)):
        total += math.exp(logs[s] - top)
    for s in range(len(logs)):
        logs[s] -= top + math.log(total)


@inner
def _in_logs(first, last, annotator, label, log_table, log_prior, n_labels, weight):  # type: ignore[no-untyped-def]
    """Fill `weight` with what `draw_states` multiplies, computed in logs: the largest is 1, or all are 0."""
    width, top = len(weight), -np.inf
    for t in range(width):
        weight[t] = log_prior[t] if weight[t] >= 0.0 else -np.inf
        for k in range(first, last):
            weight[t] += log_table[(np.int64(annotator[k]) * n_labels + label[k]) * width + t]
        top = max(top, weight[t])
    for t in range(width):
        weight[t] = math.exp(weight[t] - top)


@kernel
def draw_states(  # type: ignore[no-untyped-def]
    first, last, start, annotator, label, table, log_table, prior, log_prior, special, allowed, rng, weight, z, proba,
):  # fmt: skip
    """Draw z_i of tokens first..last given Ψ and γ (eq. 8); add its probabilities to `proba` if that has rows.

    `table` holds Ψ as rows of all pairs (annotator, given label) behind each other, an entry per state, each row scaled
    to a largest entry of 1; `prior` is γ; both, and their logs, are padded with zeros to a multiple of 4 states.
    `weight` is room for a row. `proba` has a column per label and gets the sums over levels; `z`, `proba` and `special`
    begin with token `first`. special[i] is the row of `allowed` (1 or 0 per label) of a token of which something is
    known, else -1; it is empty where nothing is known of any token.
    """
    n_labels, width = proba.shape[1], len(weight)
    for i in range(first, last):
        a, b = start[i], start[i + 1]
        for q in range(0, width, 4):
            row: Any = load(prior, q, _ONE_BLOCK)  # type: ignore[call-arg]
            for k in range(a, b):
                place = (np.int64(annotator[k]) * n_labels + label[k]) * width + q
                row = mul(row, load(table, place, _ONE_BLOCK))
            store(weight, q, row)
        at = special[i - first] if len(special) > 0 else -1
        total = 0.0
        for t in range(width):
            if at >= 0 and allowed[at, t % n_labels] == 0.0:
                weight[t] = -1.0  # so that it is told from what underflowed
            else:
                total += weight[t]
        if total < TINY:
            _in_logs(a, b, annotator, label, log_table, log_prior, n_labels, weight)
            total = 0.0
            for t in range(width):
                total += weight[t]
        if len(proba) > 0:
            for t in range(width):
                if weight[t] > 0.0:
                    proba[i - first, t % n_labels] += weight[t] / total
        rest, new = rnd.uniform(rng) * total, -1
        for t in range(width):
            if weight[t] > 0.0:
                new = t
                rest -= weight[t]
                if rest < 0.0:
                    break
        z[i - first] = new


@kernel
def annotator_score(counts, rows, beta, eta):  # type: ignore[no-untyped-def]
    """Return ln p(labels of one annotator | states, β, η of a cluster): the bracket of the joint, for η's states."""
    total = 0.0
    for t in range(len(eta)):
        if rows[t]:
            total -= rising(eta[t], rows[t])
            for s in range(counts.shape[1]):
                if counts[t, s]:
                    total += rising(eta[t] * beta[t, s], counts[t, s])
    return total


@kernel(allocates=True)
def sweep_c(c, members, counts, rows, beta, eta, epsilon, rng, proba):  # type: ignore[no-untyped-def]
    """Draw every c_l from its conditional (eq. 7); `epsilon` is ε_ν/C. Fills `proba` (L, C) with the conditionals."""
    C = len(members)
    for m in range(len(c)):
        members[c[m]] -= 1
        top = -np.inf
        for k in range(C):
            proba[m, k] = math.log(members[k] + epsilon) + annotator_score(counts[m], rows[m], beta[k], eta[k])
            top = max(top, proba[m, k])
        total = 0.0
        for k in range(C):
            proba[m, k] = math.exp(proba[m, k] - top)
            total += proba[m, k]
        rest = rnd.uniform(rng) * total
        new = 0
        while new < C - 1 and rest >= proba[m, new]:
            rest -= proba[m, new]
            new += 1
        proba[m] /= total
        c[m] = new
        members[new] += 1


@kernel
def swap(c, counts, rows, beta, eta, rng, n_tries):  # type: ignore[no-untyped-def]
    """Try to exchange the clusters of two annotators; n_c stays, so only the two brackets count. Returns successes."""
    done = 0
    for _ in range(n_tries):
        a, b = rnd.below(rng, len(c)), rnd.below(rng, len(c))
        u = rnd.uniform(rng)
        ka, kb = c[a], c[b]
        if ka == kb:
            continue
        gain = (
            annotator_score(counts[a], rows[a], beta[kb], eta[kb])
            + annotator_score(counts[b], rows[b], beta[ka], eta[ka])
            - annotator_score(counts[a], rows[a], beta[ka], eta[ka])
            - annotator_score(counts[b], rows[b], beta[kb], eta[kb])
        )
        if math.log(u) < gain:
            c[a], c[b] = kb, ka
            done += 1
    return done


@inner(allocates=True)
def _hard_score(counts, rows, hard):  # type: ignore[no-untyped-def]
    """Return ln p(labels of one annotator at hard tokens): the part of the joint that no move but that of z changes."""
    T, total = counts.shape[1], 0.0
    for t in range(len(hard)):
        if rows[T + t]:
            total -= rising(hard[t].sum(), rows[T + t])
            for s in range(T):
                if counts[T + t, s]:
                    total += rising(hard[t, s], counts[T + t, s])
    return total


@kernel(allocates=True)
def log_joint(c, members, counts, rows, totals, beta, eta, hard, alpha, rate, epsilon_nu, epsilon_gamma):  # type: ignore[no-untyped-def]
    """Return the log joint above, without its constant; the ε are those per cluster and per state."""
    total = 0.0
    for k in range(len(members)):
        total += math.lgamma(members[k] + epsilon_nu)
    for t in range(len(totals)):
        total += math.lgamma(totals[t] + epsilon_gamma)
    for m in range(len(c)):
        total += annotator_score(counts[m], rows[m], beta[c[m]], eta[c[m]])
        total += _hard_score(counts[m], rows[m], hard)
    for k in range(len(members)):
        for t in range(len(alpha)):
            total -= rate * eta[k, t]
            for j in range(len(alpha)):
                total += (alpha[t, j] - 1.0) * math.log(beta[k, t, j])
    return total

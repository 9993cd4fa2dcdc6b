"""Sweeps of the hierarchical clusters model (HC): collapsed Gibbs for z and c; β and η are moved in `metropolis`.

Symbols as in the paper: z true labels, c clusters of annotators, β (C, T, T) and η (C, T) the clusters' Dirichlet
parameters, counts[l, t, s] = n_lts how often annotator l said s where t is true, rows[l, t] = n_lt, totals[t] = n_t,
members[c] = n_c, alpha[t, j] = a_tj the Dirichlet parameter of β_t. Ψ, ν, γ are integrated out; every step leaves

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

__all__ = [
    "annotator_score",
    "count",
    "log_joint",
    "padded",
    "rising",
    "swap",
    "sweep_c",
    "sweep_z",
]

_ONE_BLOCK = (0,)
_VOTES_AT_ONCE = 8  # the product of so many ratios stays far above the smallest float64


def padded(n_states: int) -> int:
    """Return the width of a row of states in the tables of `sweep_z`: a multiple of 4."""
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


@kernel(allocates=True)
def count(start, annotator, label, z, counts, rows, totals):  # type: ignore[no-untyped-def]
    """Count n_lts, n_lt and n_t from scratch."""
    counts[:] = 0
    rows[:] = 0
    totals[:] = 0
    for i in range(len(z)):
        t = z[i]
        totals[t] += 1
        for k in range(start[i], start[i + 1]):
            counts[annotator[k], t, label[k]] += 1
            rows[annotator[k], t] += 1


@inner
def _fill_tables(counts, rows, c, pseudo, mass, table, inverse, width):  # type: ignore[no-untyped-def]
    """Write n_lts + ηβ as (l, s, t) and 1 / (n_lt + η) as (l, t), rows padded with zeros."""
    L, S, T = counts.shape
    for m in range(L):
        k = c[m]
        for t in range(S):
            inverse[m * width + t] = 1.0 / (rows[m, t] + mass[k, t])
            for s in range(T):
                table[(m * T + s) * width + t] = counts[m, t, s] + pseudo[k, t, s]


@inner
def _weigh(first, last, old, annotator, label, counts, rows, c, pseudo, mass, table, inverse, weight):  # type: ignore[no-untyped-def]
    """Multiply `weight` by the ratios of the votes first..last-1; the token itself is taken out of column `old`."""
    T, width = counts.shape[2], len(weight)
    own, below = weight[old], 1.0
    for k in range(first, last):
        m, s = annotator[k], label[k]
        own *= (counts[m, old, s] - 1) + pseudo[c[m], old, s]
        below *= (rows[m, old] - 1) + mass[c[m], old]
    for b in range(0, width, 4):
        row: Any = load(weight, b, _ONE_BLOCK)  # type: ignore[call-arg]
        for k in range(first, last):
            m = np.int64(annotator[k])
            above = load(table, (m * T + label[k]) * width + b, _ONE_BLOCK)
            row = mul(row, mul(above, load(inverse, m * width + b, _ONE_BLOCK)))
        store(weight, b, row)
    weight[old] = own / below


@inner
def _rescale(weight):  # type: ignore[no-untyped-def]
    """Divide by the largest weight."""
    top = 0.0
    for t in range(len(weight)):
        top = max(top, weight[t])
    for t in range(len(weight)):
        weight[t] /= top


@inner
def _move_token(first, last, old, new, annotator, label, counts, rows, c, pseudo, mass, table, inverse, width):  # type: ignore[no-untyped-def]
    """Give a token another state: counts and tables follow."""
    T = counts.shape[2]
    for k in range(first, last):
        m, s = np.int64(annotator[k]), label[k]
        for t, change in ((old, -1), (new, 1)):
            counts[m, t, s] += change
            rows[m, t] += change
            table[(m * T + s) * width + t] = counts[m, t, s] + pseudo[c[m], t, s]
            inverse[m * width + t] = 1.0 / (rows[m, t] + mass[c[m], t])


@kernel(allocates=True)
def sweep_z(  # type: ignore[no-untyped-def]
    start, annotator, label, z, c, pseudo, mass, counts, rows, totals, epsilon, table, inverse, weight, proba, rng,
    special, allowed,
):  # fmt: skip
    """Draw every z_i from its conditional (eq. 8) and add the conditional to `proba` (if it has rows): Rao–Blackwell.

    `pseudo` (C, S, T) are the Dirichlet parameters of all states' rows – ηβ, or those of the hard level – and `mass`
    (C, S) their sums; `epsilon` is ε_γ/S; `table` (L·T·width), `inverse` (L·width) and `weight` (width) are room to
    work in. `proba` has a column per state, or per label: then it gets the sums over levels. Returns how many states
    changed. The tables hold numerators and reciprocal denominators for all states at once; a token that keeps its
    state – nearly all do – writes nothing. special[i] is the row of `allowed` (1 or 0 per label) of a token of which
    something is known, else -1; it is empty where nothing is known of any token.
    """
    S, width, columns = counts.shape[1], len(weight), proba.shape[1]
    _fill_tables(counts, rows, c, pseudo, mass, table, inverse, width)
    prior = np.zeros(width)
    for t in range(S):
        prior[t] = totals[t] + epsilon
    changed = 0
    for i in range(len(z)):
        first, last, old = start[i], start[i + 1], np.int64(z[i])
        for t in range(width):
            weight[t] = prior[t]
        weight[old] -= 1.0
        for k in range(first, last, _VOTES_AT_ONCE):
            if k > first:
                _rescale(weight)
            _weigh(k, min(k + _VOTES_AT_ONCE, last), old, annotator, label, counts, rows, c, pseudo, mass, table, inverse, weight)  # fmt: skip  # noqa: E501
        at = special[i] if len(special) > 0 else -1
        if at >= 0:
            for t in range(S):
                weight[t] *= allowed[at, t % allowed.shape[1]]
        total = 0.0
        for t in range(S):
            total += weight[t]
        if len(proba):
            scale = 1.0 / total
            for level in range(0, S, columns):
                for t in range(columns):
                    proba[i, t] += weight[level + t] * scale
        rest = rnd.uniform(rng) * total
        new = 0
        while new < S - 1 and rest >= weight[new]:
            rest -= weight[new]
            new += 1
        if at >= 0 and weight[new] == 0.0:  # rounding
            new = int(old)
        if new != old:
            changed += 1
            z[i] = new
            totals[old] -= 1
            totals[new] += 1
            prior[old] = totals[old] + epsilon
            prior[new] = totals[new] + epsilon
            _move_token(first, last, old, new, annotator, label, counts, rows, c, pseudo, mass, table, inverse, width)
    return changed


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

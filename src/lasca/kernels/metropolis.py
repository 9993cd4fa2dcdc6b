"""Metropolis–Hastings moves of the hierarchical clusters model: of β and η, and of whole clusters, split or merged.

Arrays, symbols and the joint density that every move leaves invariant are those of `lasca.kernels.gibbs`; what moves is
changed in place. Of the states only the first T, the easy level, depend on β and η, the clusters' Dirichlet parameters.

*Splitting a cluster in two, or merging two*, with new β and η for both, is one move. Two annotators i, j are drawn. In
one cluster a: propose a split, j goes to an empty cluster b (one of E), both clusters get new parameters θ = (β, η)
from q(θ | counts of i) and q(θ | counts of j), and the other annotators choose between them one by one. In two clusters
a and b: propose to merge b into a, with θ_a from q(θ | counts of all) and θ_b, now unused, from the prior. Each is the
other's way back, so the acceptance ratio of a split is

    p(split) / p(merged) · q(θ_a | all) p(θ_b) / [q(θ_a' | i) q(θ_b' | j) p(choices) / E]

and that of a merge its reciprocal. q draws β_t ~ Dir(a_t + w_t), w_t = Σ_l n_lts min(1, WEIGHT / n_lt), and
ln η_t ~ N(CENTRE, SPREAD²): near the posterior, wider than it. The paper has no such move (E6: it needs one).
"""

from __future__ import annotations

import math

import numpy as np

from lasca.kernels import random as rnd
from lasca.kernels.compiled import inner, kernel
from lasca.kernels.gibbs import annotator_score, rising

__all__ = ["beta_gain", "move_beta", "move_eta", "refresh_empty", "row_score", "split_or_merge"]

WEIGHT = 20.0
CENTRE, SPREAD = math.log(20.0), 1.0


# --- β and η ----------------------------------------------------------------------------------------------------------


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


# --- clusters, split or merged ----------------------------------------------------------------------------------------


@inner
def _add_evidence(m, counts, rows, shape):  # type: ignore[no-untyped-def]
    """Add an annotator to the Dirichlet parameters (T, T) of q(β | counts)."""
    T = len(shape)
    for t in range(T):
        if rows[m, t]:
            factor = min(1.0, WEIGHT / rows[m, t])
            for s in range(T):
                shape[t, s] += factor * counts[m, t, s]


@inner
def _propose(shape, beta, eta, rng):  # type: ignore[no-untyped-def]
    """Fill β and η with a draw from q."""
    for t in range(len(eta)):
        rnd.dirichlet(rng, shape[t], beta[t])
        eta[t] = math.exp(CENTRE + SPREAD * rnd.normal(rng))


@inner
def _proposal_density(shape, beta, eta):  # type: ignore[no-untyped-def]
    """Return ln q(β, η)."""
    total = 0.0
    for t in range(len(eta)):
        total += _dirichlet_density(shape[t], beta[t])
        d = (math.log(eta[t]) - CENTRE) / SPREAD
        total -= 0.5 * d * d + math.log(SPREAD * eta[t]) + 0.5 * math.log(2.0 * math.pi)
    return total


@inner
def _dirichlet_density(shape, row):  # type: ignore[no-untyped-def]
    total, mass = 0.0, 0.0
    for s in range(len(row)):
        total += (shape[s] - 1.0) * math.log(row[s]) - math.lgamma(shape[s])
        mass += shape[s]
    return total + math.lgamma(mass)


@inner
def _prior_density(alpha, rate, beta, eta):  # type: ignore[no-untyped-def]
    """Return ln p(β, η)."""
    total = 0.0
    for t in range(len(eta)):
        total += _dirichlet_density(alpha[t], beta[t]) + math.log(rate) - rate * eta[t]
    return total


@inner
def _choose(side, i, j, counts, rows, beta, eta, epsilon, rng, draw):  # type: ignore[no-untyped-def]
    """Let annotators choose between clusters 0 and 1 (i stays in 0, j in 1), or follow `side` (-1: not concerned).

    Returns the log probability of the choices, and the log likelihood plus Σ lnΓ(n + ε) of both clusters after them.
    """
    n_a, n_b = 1.0, 1.0
    log_choice = 0.0
    log_target = annotator_score(counts[i], rows[i], beta[0], eta[0])
    log_target += annotator_score(counts[j], rows[j], beta[1], eta[1])
    for m in range(len(side)):
        if side[m] < 0 or m in (i, j):
            continue
        score_a = annotator_score(counts[m], rows[m], beta[0], eta[0])
        score_b = annotator_score(counts[m], rows[m], beta[1], eta[1])
        odds = score_b + math.log(n_b + epsilon) - score_a - math.log(n_a + epsilon)
        log_b = -math.log1p(math.exp(-odds)) if odds > 0.0 else odds - math.log1p(math.exp(odds))
        if draw:
            side[m] = 1 if math.log(rnd.uniform(rng)) < log_b else 0
        if side[m] == 1:
            log_choice += log_b
            log_target += score_b
            n_b += 1.0
        else:
            log_choice += log_b - odds
            log_target += score_a
            n_a += 1.0
    return log_choice, log_target + math.lgamma(n_a + epsilon) + math.lgamma(n_b + epsilon)


@inner
def _merged_target(side, counts, rows, beta, eta, epsilon):  # type: ignore[no-untyped-def]
    """Return the log likelihood plus Σ lnΓ(n + ε) when all concerned are in one cluster and the other is empty."""
    total, n = math.lgamma(epsilon), 0
    for m in range(len(side)):
        if side[m] >= 0:
            total += annotator_score(counts[m], rows[m], beta, eta)
            n += 1
    return total + math.lgamma(n + epsilon)


@inner
def _pick(c, members, rng):  # type: ignore[no-untyped-def]
    """Draw two annotators and, for a split, an empty cluster.

    Returns i, j, a, b and E, the number of empty clusters with b among them; E = 0: there is nowhere to split to.
    """
    i = rnd.below(rng, len(c))
    j = rnd.below(rng, len(c) - 1)
    if j >= i:
        j += 1
    n_empty = 0
    for k in range(len(members)):
        if members[k] == 0:
            n_empty += 1
    if c[i] != c[j]:
        return i, j, c[i], c[j], n_empty + 1
    b = c[i]
    skip = rnd.below(rng, max(n_empty, 1))
    for k in range(len(members)):
        if members[k] == 0:
            if skip == 0:
                b = np.int32(k)
            skip -= 1
    return i, j, c[i], b, n_empty


@inner
def _draw_parameters(split, shapes, alpha, rate, beta, eta, rng):  # type: ignore[no-untyped-def]
    """Fill β, η of both clusters: from q on each side (split), or from q on all and from the prior (merge)."""
    if split:
        _propose(shapes[0], beta[0], eta[0], rng)
        _propose(shapes[1], beta[1], eta[1], rng)
        return
    _propose(shapes[2], beta[0], eta[0], rng)
    for t in range(len(alpha)):
        rnd.dirichlet(rng, alpha[t], beta[1, t])
        eta[1, t] = rnd.exponential(rng, rate)


@kernel(allocates=True)
def split_or_merge(c, members, counts, rows, beta, eta, alpha, rate, epsilon, rng):  # type: ignore[no-untyped-def]
    """Propose one split or merge and accept or refuse it; `epsilon` is ε_ν/C. Returns 1 (split), -1 (merged) or 0."""
    L, T = len(c), len(alpha)  # of the states, those of `alpha`: the hard level is no part of a cluster
    if len(members) < 2 or L < 2:
        return 0
    i, j, a, b, n_empty = _pick(c, members, rng)
    split = c[i] == c[j]
    if n_empty == 0:
        return 0
    side = np.full(L, -1, np.int8)
    shapes = np.empty((3, T, T))  # what q knows: i, j, all
    old_beta, old_eta = np.empty((2, T, T)), np.empty((2, T))
    new_beta, new_eta = np.empty((2, T, T)), np.empty((2, T))
    for k in range(3):
        shapes[k] = alpha
    old_beta[0], old_beta[1], old_eta[0], old_eta[1] = beta[a], beta[b], eta[a], eta[b]
    _add_evidence(i, counts, rows, shapes[0])
    _add_evidence(j, counts, rows, shapes[1])
    for m in range(L):
        if c[m] == a or c[m] == b:
            side[m] = 0 if c[m] == a else 1
            _add_evidence(m, counts, rows, shapes[2])
    _draw_parameters(split, shapes, alpha, rate, new_beta, new_eta, rng)
    two_beta, two_eta = (new_beta, new_eta) if split else (old_beta, old_eta)
    one_beta, one_eta = (old_beta, old_eta) if split else (new_beta, new_eta)
    log_choice, gain = _choose(side, i, j, counts, rows, two_beta, two_eta, epsilon, rng, split)
    for k in range(2):
        gain += _prior_density(alpha, rate, two_beta[k], two_eta[k])
        gain -= _proposal_density(shapes[k], two_beta[k], two_eta[k])
    gain -= _merged_target(side, counts, rows, one_beta[0], one_eta[0], epsilon)
    gain -= _prior_density(alpha, rate, one_beta[0], one_eta[0])  # that of the unused θ_b cancels with its proposal
    gain += _proposal_density(shapes[2], one_beta[0], one_eta[0]) + math.log(n_empty) - log_choice
    if not math.log(rnd.uniform(rng)) < (gain if split else -gain):
        return 0
    members[a] = 0
    members[b] = 0
    for m in range(L):
        if side[m] >= 0:
            c[m] = b if split and (m == j or (m != i and side[m] == 1)) else a
            members[c[m]] += 1
    beta[a], beta[b], eta[a], eta[b] = new_beta[0], new_beta[1], new_eta[0], new_eta[1]
    return 1 if split else -1

"""One truth or two per token: votes as CSR arrays in, probabilities and expected counts out.

Expected counts are added up as whole numbers (multiples of 1/SCALE): sums of whole numbers do not depend on their
order, so that any cut into chunks and any number of threads give the same bytes.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import math
from typing import Any

import numpy as np

from lasca.kernels.compiled import inner, kernel

__all__ = ["GRID", "SCALE", "two_truths_pass"]

SCALE = float(2**32)
"""Expected counts are kept as multiples of 1/SCALE."""
GRID = 4
"""How many shares π of the first reading there are (the kernel's inner loop is written out for four)."""
_LEAST = 1e-5  # explanations of a token less probable than this add nothing to the expected counts of votes and pairs
_BLOCK = 16  # votes between two rescalings of the products


@inner
def _readings(first, last, label, near, seen, voted, pair_a, pair_b):
    """List the labels voted for, in order, and the ordered pairs to try: voted with voted, then voted with near."""
    n_labels = seen.shape[0]
    for t in range(n_labels):
        seen[t] = False
    for v in range(first, last):
        seen[label[v]] = True
    n_voted = 0
    for t in range(n_labels):
        if seen[t]:
            voted[n_voted] = t
            n_voted += 1
    n_pairs = 0
    for x in range(n_voted):
        a = voted[x]
        for y in range(n_voted):
            if x != y:
                pair_a[n_pairs], pair_b[n_pairs] = a, voted[y]
                n_pairs += 1
        for m in range(near.shape[1]):
            if not seen[near[a, m]]:
                pair_a[n_pairs], pair_b[n_pairs] = a, near[a, m]
                n_pairs += 1
    return n_pairs


@inner
def _rescale(one, two, n_pairs):
    """Divide all explanations by the largest one; return its logarithm."""
    n_levels, n_labels = one.shape
    top = 0.0
    for d in range(n_levels):
        for t in range(n_labels):
            top = one[d, t] if one[d, t] > top else top
        for p in range(n_pairs):
            for k in range(GRID):
                top = two[d, p, k] if two[d, p, k] > top else top
    if top == 0.0:
        return 0.0
    for d in range(n_levels):
        for t in range(n_labels):
            one[d, t] /= top
        for p in range(n_pairs):
            for k in range(GRID):
                two[d, p, k] /= top
    return math.log(top)


@inner
def _explain(first, last, annotator, label, psi, w_one, w_two, w_pair, pi, pair_a, pair_b, n_pairs, one, two, rows):
    """Fill in weight × likelihood of every explanation of one token, up to a common factor; return its logarithm."""
    n_levels, n_labels = w_one.shape
    log_scale = 0.0
    for d in range(n_levels):
        for t in range(n_labels):
            one[d, t] = w_one[d, t]
        for p in range(n_pairs):
            for k in range(GRID):
                two[d, p, k] = w_two[d] * w_pair[pair_a[p], pair_b[p], k]
    p0, p1, p2, p3 = pi[0], pi[1], pi[2], pi[3]
    for lo in range(first, last, _BLOCK):
        n = min(_BLOCK, last - lo)
        for d in range(n_levels):
            for v in range(n):
                for t in range(n_labels):
                    x = psi[annotator[lo + v], d, label[lo + v], t]
                    rows[t, v] = x
                    one[d, t] *= x
            for p in range(n_pairs):
                at_a, at_b = pair_a[p], pair_b[p]
                t0, t1, t2, t3 = two[d, p, 0], two[d, p, 1], two[d, p, 2], two[d, p, 3]
                for v in range(n):
                    b = rows[at_b, v]
                    x = rows[at_a, v] - b
                    t0 *= b + p0 * x
                    t1 *= b + p1 * x
                    t2 *= b + p2 * x
                    t3 *= b + p3 * x
                two[d, p, 0], two[d, p, 1], two[d, p, 2], two[d, p, 3] = t0, t1, t2, t3
        if n == _BLOCK:
            log_scale += _rescale(one, two, n_pairs)
    return log_scale


@inner
def _whole(x):
    """Return x as a multiple of 1/SCALE."""
    return np.int64(x * SCALE + 0.5)


@inner
def _learn(
    first, last, annotator, label, psi, pi, pair_a, pair_b, n_pairs, one, two, total,
    used, mine, counts, n_one, n_two, n_pair,
):  # fmt: skip
    """Add one token's share to the expected counts; mine[t, v]: how probably the v-th vote was cast reading t."""
    n_levels, n_labels = one.shape
    n = last - first
    p0, p1, p2, p3 = pi[0], pi[1], pi[2], pi[3]
    for d in range(n_levels):
        for t in range(n_labels):
            r = one[d, t] / total
            n_one[d, t] += _whole(r)
            used[t] = r > _LEAST
            if used[t]:
                for v in range(n):
                    mine[t, v] = r
        for p in range(n_pairs):
            r0, r1 = two[d, p, 0] / total, two[d, p, 1] / total
            r2, r3 = two[d, p, 2] / total, two[d, p, 3] / total
            r = r0 + r1 + r2 + r3
            n_two[d] += _whole(r)
            if r <= _LEAST:
                continue
            a, b = pair_a[p], pair_b[p]
            for side in range(2):
                t = a if side == 0 else b
                if not used[t]:
                    used[t] = True
                    for v in range(n):
                        mine[t, v] = 0.0
            n_pair[a, b, 0] += _whole(r0)
            n_pair[a, b, 1] += _whole(r1)
            n_pair[a, b, 2] += _whole(r2)
            n_pair[a, b, 3] += _whole(r3)
            r0, r1, r2, r3 = r0 * p0, r1 * p1, r2 * p2, r3 * p3
            for v in range(n):  # share = ψ_a × Σ_k r_k π_k / d_k, with one division
                who, said = annotator[first + v], label[first + v]
                z, y = psi[who, d, said, a], psi[who, d, said, b]
                x = z - y
                d0, d1, d2, d3 = y + p0 * x, y + p1 * x, y + p2 * x, y + p3 * x
                d01, d23 = d0 * d1, d2 * d3
                share = z * ((r0 * d1 + r1 * d0) * d23 + (r2 * d3 + r3 * d2) * d01) / (d01 * d23)
                mine[a, v] += share
                mine[b, v] += r - share if r > share else 0.0
        for t in range(n_labels):
            if used[t]:
                for v in range(n):
                    counts[annotator[first + v], d, label[first + v], t] += _whole(mine[t, v])


def two_truths_pass(
    lo: int, hi: int, chosen: Any, start: Any, annotator: Any, label: Any, near: Any, psi: Any, w_one: Any, w_two: Any,
    w_pair: Any, pi: Any, learn: bool, counts: Any, n_one: Any, n_two: Any, n_pair: Any, log_evidence: Any, proba: Any,
    weight: Any, part: Any,
) -> None:  # fmt: skip
    """E step on tokens chosen[lo:hi]: log evidence, probability of two truths, and (if `learn`) expected counts.

    psi[l, d, s, t] is the probability that annotator l gives s where t is true and the level is d; w_one[d, t] the
    weight of one truth t at level d, w_two[d] that of two truths, w_pair[a, b, k] that of the pair whose first reading
    a has the share pi[k]. Counts are int64 multiples of 1/SCALE. Unless they have no rows, `weight` gets the weight of
    each pair a < b of a token, at [token, a, b], the sum of all at [token, 0, 0]; `part` the weight times a's share.
    """
    n_levels, n_labels = w_one.shape
    size = n_labels * (n_labels - 1 + near.shape[1])
    votes = start[chosen[lo:hi] + 1] - start[chosen[lo:hi]]
    _pass(
        lo, hi, chosen, start, annotator, label, near, psi, w_one, w_two, w_pair, pi, learn, counts, n_one, n_two,
        n_pair, log_evidence, proba, weight, part, np.zeros(n_labels, np.bool_), np.zeros(n_labels, np.int64),
        np.zeros(n_labels, np.bool_), np.zeros(size, np.int64), np.zeros(size, np.int64),
        np.zeros((n_levels, n_labels)), np.zeros((n_levels, size, GRID)), np.zeros((n_labels, _BLOCK)),
        np.zeros((n_labels, votes.max(initial=0))),
    )  # fmt: skip


@kernel
def _pass(
    lo, hi, chosen, start, annotator, label, near, psi, w_one, w_two, w_pair, pi, learn, counts, n_one, n_two,
    n_pair, log_evidence, proba, weight, part, seen, voted, used, pair_a, pair_b, one, two, rows, mine,
):  # fmt: skip
    n_levels, n_labels = w_one.shape
    for c in range(lo, hi):
        first, last = start[chosen[c]], start[chosen[c] + 1]
        n_pairs = _readings(first, last, label, near, seen, voted, pair_a, pair_b)
        log_scale = _explain(
            first, last, annotator, label, psi, w_one, w_two, w_pair, pi, pair_a, pair_b, n_pairs, one, two, rows
        )
        ambiguous = 0.0
        total = 0.0
        for d in range(n_levels):
            for p in range(n_pairs):
                ambiguous += two[d, p, 0] + two[d, p, 1] + two[d, p, 2] + two[d, p, 3]
            for t in range(n_labels):
                total += one[d, t]
        total += ambiguous
        log_evidence[c] = math.log(total) + log_scale
        proba[c] = ambiguous / total
        if learn:
            _learn(
                first, last, annotator, label, psi, pi, pair_a, pair_b, n_pairs, one, two, total,
                used, mine, counts, n_one, n_two, n_pair,
            )  # fmt: skip
        if len(weight) > 0:
            _weigh(c, pi, pair_a, pair_b, n_pairs, two, weight, part)


@inner
def _weigh(c, pi, pair_a, pair_b, n_pairs, two, weight, part):
    """Add up what speaks for each pair of labels; both orders of a pair are one pair: a < b, share of a."""
    for p in range(n_pairs):
        a, b, in_order = pair_a[p], pair_b[p], True
        if b < a:
            a, b, in_order = b, a, False
        for k in range(GRID):
            share = pi[k] if in_order else 1.0 - pi[k]
            w = 0.0
            for d in range(two.shape[0]):
                w += two[d, p, k]
            weight[c, a, b] += w
            part[c, a, b] += share * w
            weight[c, 0, 0] += w

"""One truth or two per token: votes as CSR arrays in, probabilities and expected counts out.

Expected counts are added up as whole numbers (multiples of 1/SCALE): sums of whole numbers do not depend on their
order, so that any cut into chunks and any number of threads give the same bytes.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"
from __future__ import annotations

import math
from typing import Any

import numpy as np

from lasca.kernels import simd
from lasca.kernels.compiled import inner, kernel

__all__ = ["GRID", "SCALE", "two_truths_pass"]

SCALE = float(2**32)
"""Expected counts are kept as multiples of 1/SCALE."""
GRID = 4
"""How many shares π of the first reading there are: one block of `lasca.kernels.simd`."""
_FOUR = simd.block_tuple(GRID)
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
def _rescale(one, two, size, n_pairs):
    """Divide all explanations by the largest one; return its logarithm."""
    n_levels, n_labels = one.shape
    top = 0.0
    for d in range(n_levels):
        for t in range(n_labels):
            top = one[d, t] if one[d, t] > top else top
        for at in range(d * size * GRID, (d * size + n_pairs) * GRID):
            top = two[at] if two[at] > top else top
    if top == 0.0:
        return 0.0
    for d in range(n_levels):
        for t in range(n_labels):
            one[d, t] /= top
        for at in range(d * size * GRID, (d * size + n_pairs) * GRID):
            two[at] /= top
    return math.log(top)


@inner
def _explain(
    first, last, annotator, label, psi, w_one, w_two, w_pair, pi, pair_a, pair_b, n_pairs, one, two, rows, many
):  # fmt: skip
    """Fill in weight × likelihood of every explanation of one token, up to a common factor; return its logarithm."""
    n_levels, n_labels = w_one.shape
    size = len(pair_a)
    log_scale = 0.0
    shares = simd.load(pi, 0, _FOUR)
    for d in range(n_levels):
        for t in range(n_labels):
            one[d, t] = w_one[d, t]
        weight = simd.splat(w_two[d], _FOUR)
        for p in range(n_pairs):
            row = simd.load(w_pair, (pair_a[p] * n_labels + pair_b[p]) * GRID, _FOUR)
            simd.store(two, (d * size + p) * GRID, simd.mul(weight, row))
    for lo in range(first, last, _BLOCK):
        n = min(_BLOCK, last - lo)
        for d in range(n_levels):
            for v in range(n):
                at = ((annotator[lo + v] * n_levels + d) * n_labels + label[lo + v]) * n_labels
                for t in range(n_labels):
                    likelihood = simd.peek(psi, at + t)
                    rows[t, v] = likelihood
                    one[d, t] *= likelihood
            for p in range(n_pairs):
                at_a, at_b, at = pair_a[p], pair_b[p], (d * size + p) * GRID
                row = simd.load(two, at, _FOUR)
                for v in range(n):
                    b = rows[at_b, v]
                    more = simd.mul(shares, simd.splat(rows[at_a, v] - b, _FOUR))
                    row = simd.mul(row, simd.add(simd.splat(b, _FOUR), more))
                simd.store(two, at, row)
        if many is not None:  # noqa: SIM102  on its own, so that the rest need not be compiled
            if n == _BLOCK:
                log_scale += _rescale(one, two, size, n_pairs)
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
    n, size = last - first, len(pair_a)
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
            at = (d * size + p) * GRID
            r0, r1, r2, r3 = two[at] / total, two[at + 1] / total, two[at + 2] / total, two[at + 3] / total
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
            for k in range(GRID):
                n_pair[(a * n_labels + b) * GRID + k] += _whole(two[at + k] / total)
            r0, r1, r2, r3 = r0 * p0, r1 * p1, r2 * p2, r3 * p3
            for v in range(n):  # share = ψ_a × Σ_k r_k π_k / d_k, with one division
                at = ((annotator[first + v] * n_levels + d) * n_labels + label[first + v]) * n_labels
                z, y = simd.peek(psi, at + a), simd.peek(psi, at + b)
                x = z - y
                d0, d1, d2, d3 = y + p0 * x, y + p1 * x, y + p2 * x, y + p3 * x
                d01, d23 = d0 * d1, d2 * d3
                share = z * ((r0 * d1 + r1 * d0) * d23 + (r2 * d3 + r3 * d2) * d01) / (d01 * d23)
                mine[a, v] += share
                mine[b, v] += r - share if r > share else 0.0
        for t in range(n_labels):
            if used[t]:
                for v in range(n):
                    at = ((annotator[first + v] * n_levels + d) * n_labels + label[first + v]) * n_labels
                    counts[at + t] += _whole(mine[t, v])


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
    many = True if votes.max(initial=0) >= _BLOCK else None  # what is done for long products is compiled if need be
    _pass(
        lo, hi, chosen, start, annotator, label, near, psi.ravel(), w_one, w_two, w_pair.ravel(), pi, learn,
        counts.reshape(-1), n_one, n_two, n_pair.reshape(-1), log_evidence, proba, weight, part, many,
        np.zeros(n_labels, np.bool_), np.zeros(n_labels, np.int64), np.zeros(n_labels, np.bool_),
        np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros((n_levels, n_labels)),
        np.zeros(n_levels * size * GRID), np.zeros((n_labels, _BLOCK)),
        np.zeros((n_labels, votes.max(initial=0))),
    )  # fmt: skip


@kernel
def _pass(
    lo, hi, chosen, start, annotator, label, near, psi, w_one, w_two, w_pair, pi, learn, counts, n_one, n_two,
    n_pair, log_evidence, proba, weight, part, many, seen, voted, used, pair_a, pair_b, one, two, rows, mine,
):  # fmt: skip
    n_levels, n_labels = w_one.shape
    size = len(pair_a)
    for c in range(lo, hi):
        first, last = start[chosen[c]], start[chosen[c] + 1]
        n_pairs = _readings(first, last, label, near, seen, voted, pair_a, pair_b)
        log_scale = _explain(
            first, last, annotator, label, psi, w_one, w_two, w_pair, pi, pair_a, pair_b, n_pairs, one, two, rows, many,
        )  # fmt: skip
        ambiguous = 0.0
        total = 0.0
        for d in range(n_levels):
            for at in range(d * size * GRID, (d * size + n_pairs) * GRID, GRID):
                ambiguous += two[at] + two[at + 1] + two[at + 2] + two[at + 3]
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
            for at in range(p * GRID + k, len(two), len(pair_a) * GRID):
                w += two[at]
            weight[c, a, b] += w
            part[c, a, b] += share * w
            weight[c, 0, 0] += w

"""One truth or two per token: votes as CSR arrays in, probabilities and expected counts out.

Expected counts are added up as whole numbers (multiples of 1/SCALE): sums of whole numbers do not depend on their
order, so that any cut into chunks and any number of threads give the same bytes.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = ["GRID", "SCALE", "two_truths_pairs", "two_truths_pass"]

SCALE = float(2**32)
"""Expected counts are kept as multiples of 1/SCALE."""
GRID = 4
"""How many shares π of the first reading there are (the kernel's inner loop is written out for four)."""
_LEAST = 1e-5  # explanations of a token less probable than this add nothing to the annotators' counts
_RESCALE = 16  # votes between two rescalings of the products


@njit(cache=True, nogil=True)
def _readings(first, last, label, near, seen, voted, pair_a, pair_b):
    """List the labels voted for, in order, and the ordered pairs to try: voted with voted, voted with its near ones."""
    n_labels = seen.shape[0]
    seen[:] = False
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
                pair_a[n_pairs] = a
                pair_b[n_pairs] = voted[y]
                n_pairs += 1
        for m in range(near.shape[1]):
            b = near[a, m]
            if b >= 0 and not seen[b]:
                pair_a[n_pairs], pair_b[n_pairs] = a, b
                pair_a[n_pairs + 1], pair_b[n_pairs + 1] = b, a
                n_pairs += 2
    return n_pairs


@njit(cache=True, nogil=True)
def _rescale(one, n_labels, hard, two, n_two):
    """Divide all explanations by the largest one; return its logarithm."""
    top = 0.0
    for t in range(n_labels):
        top = max(top, one[t], hard[t])
    for h in range(n_two):
        top = max(top, two[h])
    if top == 0.0:
        return 0.0
    for t in range(n_labels):
        one[t] /= top
        hard[t] /= top
    for h in range(n_two):
        two[h] /= top
    return math.log(top)


@njit(cache=True, nogil=True)
def _explain(
    first, last, annotator, label, psi, w_one, w_hard, w_pair, noise, mix, pi, pair_a, pair_b, n_pairs, one, hard, two
):
    """Fill in weight × likelihood of every explanation of one token, up to a common factor; return its logarithm."""
    n_labels = one.shape[0]
    log_scale = 0.0
    for t in range(n_labels):
        one[t] = w_one[t]
        hard[t] = w_hard[t]
    for p in range(n_pairs):
        for k in range(GRID):
            two[GRID * p + k] = w_pair[pair_a[p], pair_b[p], k]
    for v in range(first, last):
        row = psi[annotator[v], label[v]]
        slip = mix * noise[label[v]]
        for t in range(n_labels):
            one[t] *= row[t]
            hard[t] *= (1.0 - mix) * row[t] + slip
        for p in range(n_pairs):
            b = row[pair_b[p]]
            d = row[pair_a[p]] - b
            two[GRID * p] *= b + pi[0] * d
            two[GRID * p + 1] *= b + pi[1] * d
            two[GRID * p + 2] *= b + pi[2] * d
            two[GRID * p + 3] *= b + pi[3] * d
        if (v - first) % _RESCALE == _RESCALE - 1:
            log_scale += _rescale(one, n_labels, hard, two, GRID * n_pairs)
    return log_scale


@njit(cache=True, nogil=True)
def two_truths_pass(
    lo,
    hi,
    chosen,
    start,
    annotator,
    label,
    near,
    psi,
    w_one,
    w_hard,
    w_pair,
    noise,
    mix,
    pi,
    learn,
    counts,
    n_one,
    n_hard,
    n_pair,
    n_noise,
    log_evidence,
    proba,
):
    """E step on tokens chosen[lo:hi]: log evidence, probability of two truths, and (if `learn`) expected counts.

    psi[l, s, t] is the probability that annotator l gives s where t is true; w_pair[a, b, k] the weight of the pair
    whose first reading a has the share pi[k]. Counts are int64 multiples of 1/SCALE.
    """
    n_labels = w_one.shape[0]
    seen, voted = np.zeros(n_labels, np.bool_), np.zeros(n_labels, np.int64)
    size = n_labels * (n_labels - 1) + 2 * n_labels * near.shape[1] + 1
    pair_a, pair_b = np.zeros(size, np.int64), np.zeros(size, np.int64)
    one, hard, two = np.zeros(n_labels), np.zeros(n_labels), np.zeros(GRID * size)
    for c in range(lo, hi):
        i = chosen[c]
        first, last = start[i], start[i + 1]
        n_pairs = _readings(first, last, label, near, seen, voted, pair_a, pair_b)
        log_scale = _explain(
            first, last, annotator, label, psi, w_one, w_hard, w_pair, noise, mix, pi,
            pair_a, pair_b, n_pairs, one, hard, two,
        )  # fmt: skip
        ambiguous = 0.0
        for h in range(GRID * n_pairs):
            ambiguous += two[h]
        total = ambiguous
        for t in range(n_labels):
            total += one[t] + hard[t]
        log_evidence[c] = math.log(total) + log_scale
        proba[c] = ambiguous / total
        if not learn:
            continue
        for t in range(n_labels):
            r = one[t] / total
            q = hard[t] / total
            n_one[t] += np.int64(r * SCALE + 0.5)
            n_hard[t] += np.int64(q * SCALE + 0.5)
            if r > _LEAST or q > _LEAST:
                for v in range(first, last):
                    x = (1.0 - mix) * psi[annotator[v], label[v], t]
                    knew = x / (x + mix * noise[label[v]])
                    counts[annotator[v], label[v], t] += np.int64((r + q * knew) * SCALE + 0.5)
                    n_noise[label[v]] += np.int64(q * (1.0 - knew) * SCALE + 0.5)
        for p in range(n_pairs):
            a, b = pair_a[p], pair_b[p]
            r0, r1 = two[GRID * p] / total, two[GRID * p + 1] / total
            r2, r3 = two[GRID * p + 2] / total, two[GRID * p + 3] / total
            n_pair[a, b, 0] += np.int64(r0 * SCALE + 0.5)
            n_pair[a, b, 1] += np.int64(r1 * SCALE + 0.5)
            n_pair[a, b, 2] += np.int64(r2 * SCALE + 0.5)
            n_pair[a, b, 3] += np.int64(r3 * SCALE + 0.5)
            r = r0 + r1 + r2 + r3
            if r > _LEAST:
                r0, r1, r2, r3 = r0 * pi[0], r1 * pi[1], r2 * pi[2], r3 * pi[3]
                for v in range(first, last):
                    row = psi[annotator[v], label[v]]
                    y = row[b]
                    d = row[a] - y
                    mine = r0 / (y + pi[0] * d) + r1 / (y + pi[1] * d) + r2 / (y + pi[2] * d) + r3 / (y + pi[3] * d)
                    share = row[a] * mine
                    counts[annotator[v], label[v], a] += np.int64(share * SCALE + 0.5)
                    counts[annotator[v], label[v], b] += np.int64(max(r - share, 0.0) * SCALE + 0.5)


@njit(cache=True, nogil=True)
def two_truths_pairs(
    lo,
    hi,
    chosen,
    start,
    annotator,
    label,
    near,
    psi,
    w_one,
    w_hard,
    w_pair,
    noise,
    mix,
    pi,
    pair_label,
    pair_proba,
    pair_share,
):
    """Find the most probable pairs of tokens chosen[lo:hi], given that two labels are true, and the first one's share.

    pair_label (n, top, 2) has the label with the larger share first; -1 where there are fewer pairs.
    """
    n_labels, top = w_one.shape[0], pair_proba.shape[1]
    seen, voted = np.zeros(n_labels, np.bool_), np.zeros(n_labels, np.int64)
    size = n_labels * (n_labels - 1) + 2 * n_labels * near.shape[1] + 1
    pair_a, pair_b = np.zeros(size, np.int64), np.zeros(size, np.int64)
    one, hard, two = np.zeros(n_labels), np.zeros(n_labels), np.zeros(GRID * size)
    weight, part = np.zeros((n_labels, n_labels)), np.zeros((n_labels, n_labels))
    for c in range(lo, hi):
        i = chosen[c]
        first, last = start[i], start[i + 1]
        n_pairs = _readings(first, last, label, near, seen, voted, pair_a, pair_b)
        _explain(
            first, last, annotator, label, psi, w_one, w_hard, w_pair, noise, mix, pi,
            pair_a, pair_b, n_pairs, one, hard, two,
        )  # fmt: skip
        total = 0.0
        for p in range(n_pairs):  # both orders of a pair are one pair: a < b, share of a
            a, b = min(pair_a[p], pair_b[p]), max(pair_a[p], pair_b[p])
            for k in range(GRID):
                share = pi[k] if a == pair_a[p] else 1.0 - pi[k]
                weight[a, b] += two[GRID * p + k]
                part[a, b] += share * two[GRID * p + k]
                total += two[GRID * p + k]
        pair_label[c] = -1
        pair_proba[c] = 0.0
        pair_share[c] = np.nan
        for rank in range(top):
            best, best_a, best_b = 0.0, -1, -1
            for p in range(n_pairs):
                a, b = min(pair_a[p], pair_b[p]), max(pair_a[p], pair_b[p])
                if weight[a, b] > best or (weight[a, b] == best and best > 0.0 and (a, b) < (best_a, best_b)):
                    best, best_a, best_b = weight[a, b], a, b
            if best_a < 0:
                break
            share = part[best_a, best_b] / best
            if share < 0.5:
                pair_label[c, rank, 0], pair_label[c, rank, 1] = best_b, best_a
                share = 1.0 - share
            else:
                pair_label[c, rank, 0], pair_label[c, rank, 1] = best_a, best_b
            pair_proba[c, rank] = best / total
            pair_share[c, rank] = share
            weight[best_a, best_b] = 0.0
        for p in range(n_pairs):
            weight[pair_a[p], pair_b[p]] = 0.0
            part[pair_a[p], pair_b[p]] = 0.0

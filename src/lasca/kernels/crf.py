"""Linear-chain CRF: sums of feature rows, scaled forward–backward, the expectation semiring, gradients.

A token's score row is a sum over *bundles*: groups of features that always occur together (all features of
one word at one offset). Bundle scores are computed once per evaluation, so a token costs a few row sums
instead of one per feature; gradients go back the same way.

Layout: float64; a row of labels is padded to `width`, a multiple of 4, and stored flat (row r starts at
r * width). `blocks` fixes the width at compile time (see `lasca.kernels.simd`). `M` is
exp(transition − largest) with zeros in the padding, `MT` its transpose. Probabilities are scaled at each
position; scores lower than the row's best by more than 300 are lifted to that bound, so that nothing
divides by zero. `mask` has ones for labels and zeros for padding.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated, import-untyped"
from __future__ import annotations

import math
from typing import Any

import numpy as np

from lasca.kernels import simd
from lasca.kernels.compiled import inner, kernel
from lasca.kernels.crf_features import exponentiate, longest, restrict, scatter_rows, score_rows
from lasca.kernels.crf_log import log_cost_pass

__all__ = [
    "AGREEMENT", "COST_SENSITIVE", "HARD", "LIKELIHOOD", "PARTIAL", "SOFT", "SOFTMAX_MARGIN", "chain_gradient",
    "chain_marginals",
]  # fmt: skip

LIKELIHOOD, COST_SENSITIVE, SOFTMAX_MARGIN, AGREEMENT = 0, 1, 2, 3
HARD, SOFT, PARTIAL, FREE = 0, 1, 2, 3

_SURE = 1e-60


@inner
def _product(x, at, M, n_labels, blocks):
    """Return x · M for one row x."""
    width = 4 * len(blocks)
    even, odd = simd.splat(0.0, blocks), simd.splat(0.0, blocks)
    for k in range(0, n_labels - 1, 2):
        even = simd.fma(simd.splat(simd.peek(x, at + k), blocks), simd.load(M, k * width, blocks), even)
        odd = simd.fma(simd.splat(simd.peek(x, at + k + 1), blocks), simd.load(M, (k + 1) * width, blocks), odd)
    if n_labels % 2 == 1:
        k = n_labels - 1
        even = simd.fma(simd.splat(simd.peek(x, at + k), blocks), simd.load(M, k * width, blocks), even)
    return simd.add(even, odd)


@inner
def _forward(e, length, n_labels, M, blocks, alpha, scale):
    """Fill alpha; return (log of the sum over all paths, sum of the last alpha row).

    Position i is scaled by `scale[i]` = 1 / sum of row i − 1: it is known while row i is computed, so that no
    sum or division stands between one row and the next.
    """
    width = 4 * len(blocks)
    row = simd.load(e, 0, blocks)
    simd.store(alpha, 0, row)
    log_z, product = 0.0, 1.0
    for i in range(1, length):
        last = simd.total(row)
        scale[i] = 1.0 / last
        product *= last
        if product < 1e-40 or product > 1e40:
            log_z += math.log(product)
            product = 1.0
        scaled = simd.mul(simd.load(e, i * width, blocks), simd.splat(scale[i], blocks))
        row = simd.mul(_product(alpha, (i - 1) * width, M, n_labels, blocks), scaled)
        simd.store(alpha, i * width, row)
    last = simd.total(row)
    return log_z + math.log(product) + math.log(last), last


@inner
def _add_pairs(alpha, u, length, n_labels, blocks, pairs):
    """pairs[k, :] += sum over positions of alpha[i - 1, k] · u[i, :]."""
    width = 4 * len(blocks)
    for k in range(0, n_labels - 1, 2):
        x, y = simd.load(pairs, k * width, blocks), simd.load(pairs, (k + 1) * width, blocks)
        for at in range(width, length * width, width):
            row = simd.load(u, at, blocks)
            x = simd.fma(simd.splat(simd.peek(alpha, at - width + k), blocks), row, x)
            y = simd.fma(simd.splat(simd.peek(alpha, at - width + k + 1), blocks), row, y)
        simd.store(pairs, k * width, x)
        simd.store(pairs, (k + 1) * width, y)
    if n_labels % 2 == 1:
        k = n_labels - 1
        x = simd.load(pairs, k * width, blocks)
        for at in range(width, length * width, width):
            x = simd.fma(simd.splat(simd.peek(alpha, at - width + k), blocks), simd.load(u, at, blocks), x)
        simd.store(pairs, k * width, x)


@inner
def _backward(e, length, n_labels, MT, blocks, alpha, scale, weight, u, pairs, out):
    """Add weight × node marginals to `out` and weight × pair marginals (without M) to `pairs`.

    `weight` already holds 1 / sum of the last alpha row.
    """
    width = 4 * len(blocks)
    b = simd.splat(weight, blocks)
    for i in range(length - 1, -1, -1):
        at = i * width
        simd.store(out, at, simd.fma(simd.load(alpha, at, blocks), b, simd.load(out, at, blocks)))
        if i > 0:
            scaled = simd.mul(simd.load(e, at, blocks), simd.splat(scale[i], blocks))
            simd.store(u, at, simd.mul(scaled, b))
            b = _product(u, at, MT, n_labels, blocks)
    _add_pairs(alpha, u, length, n_labels, blocks, pairs)


@inner
def _cost_forward(e, length, n_labels, M, blocks, alpha, scale, cost, ralpha):
    """Fill the cost part of the expectation semiring; return its last row's sum."""
    width = 4 * len(blocks)
    row = simd.mul(simd.load(alpha, 0, blocks), simd.load(cost, 0, blocks))
    simd.store(ralpha, 0, row)
    for i in range(1, length):
        at = i * width
        scaled = simd.mul(simd.load(e, at, blocks), simd.splat(scale[i], blocks))
        own = simd.mul(simd.load(alpha, at, blocks), simd.load(cost, at, blocks))
        row = simd.fma(_product(ralpha, at - width, M, n_labels, blocks), scaled, own)
        simd.store(ralpha, at, row)
    return simd.total(row)


@inner
def _cost_backward(e, length, n_labels, MT, blocks, alpha, scale, cost, ralpha, weight, u, ru, pairs, out):
    """As `_backward`, under q(z') ∝ cost(z') p(z'); `weight` already holds 1 / sum of the last ralpha row."""
    width = 4 * len(blocks)
    b, rb = simd.splat(weight, blocks), simd.splat(0.0, blocks)
    for i in range(length - 1, -1, -1):
        at = i * width
        node = simd.fma(simd.load(ralpha, at, blocks), b, simd.mul(simd.load(alpha, at, blocks), rb))
        simd.store(out, at, simd.add(simd.load(out, at, blocks), node))
        if i > 0:
            scaled = simd.mul(simd.load(e, at, blocks), simd.splat(scale[i], blocks))
            simd.store(u, at, simd.mul(scaled, b))
            simd.store(ru, at, simd.mul(scaled, simd.fma(simd.load(cost, at, blocks), b, rb)))
            b = _product(u, at, MT, n_labels, blocks)
            rb = _product(ru, at, MT, n_labels, blocks)
    _add_pairs(ralpha, u, length, n_labels, blocks, pairs)
    _add_pairs(alpha, ru, length, n_labels, blocks, pairs)


@inner
def _cost_rows(kind, hard, soft, allowed, first, length, n_labels, costs, factor, blocks, out):
    """Cost of each label at each position (`costs` holds a row per true label); an allowed label costs nothing."""
    width = 4 * len(blocks)
    scale = simd.splat(factor, blocks)
    for i in range(length):
        at = i * width
        if kind == HARD:
            simd.store(out, at, simd.mul(simd.load(costs, hard[first + i] * width, blocks), scale))
        elif kind == SOFT:
            row = simd.splat(0.0, blocks)
            for t in range(n_labels):
                share = simd.splat(np.float64(soft[first + i, t]), blocks)
                row = simd.fma(share, simd.load(costs, t * width, blocks), row)
            simd.store(out, at, simd.mul(row, scale))
        elif allowed is not None:
            for j in range(width):
                least = np.inf
                for t in range(n_labels):
                    if allowed[first + i, t]:
                        least = min(least, costs[t * width + j])
                out[at + j] = 0.0 if j >= n_labels or allowed[first + i, j] else factor * least


@inner
def _weigh_scores(hard, first, length, costs, blocks, e):
    """Turn the scores of a token with a known label y into weight(t, y) × (score(t) − score(y))."""
    width = 4 * len(blocks)
    for i in range(length):
        y = hard[first + i]
        if y >= 0:
            own = simd.splat(-e[i * width + y], blocks)
            row = simd.add(simd.load(e, i * width, blocks), own)
            simd.store(e, i * width, simd.mul(row, simd.load(costs, y * width, blocks)))


@inner
def _weigh_rows(hard, first, length, n_labels, costs, blocks, rows):
    """Turn the gradient with regard to weighed scores into that with regard to the scores themselves."""
    width = 4 * len(blocks)
    for i in range(length):
        y = hard[first + i]
        if y >= 0:
            total = 0.0
            for t in range(n_labels):
                if t != y:
                    rows[i * width + t] *= costs[y * width + t]
                    total += rows[i * width + t]
            rows[i * width + y] = -total


@inner
def _targets(kind, hard, soft, first, length, n_labels, weight, e, units, blocks, rows, moves):
    """Start the rows with −weight × targets, count target moves; return the targets' node score."""
    width = 4 * len(blocks)
    score = 0.0
    minus = simd.splat(-weight, blocks)
    for i in range(length):
        if kind == HARD:
            t = hard[first + i]
            score += e[i * width + t]
            simd.store(rows, i * width, simd.mul(simd.load(units, t * width, blocks), minus))
            if i > 0:
                moves[hard[first + i - 1] * width + t] += weight
        else:
            simd.store(rows, i * width, simd.splat(0.0, blocks))
            for t in range(n_labels if kind == SOFT else 0):
                share = np.float64(soft[first + i, t])
                score += share * e[i * width + t]
                rows[i * width + t] = -weight * share
                for s in range(n_labels if i > 0 else 0):
                    moves[s * width + t] += weight * share * np.float64(soft[first + i - 1, s])
    return score


def chain_gradient(
    objective: int, kind: int, sequences: Any, offsets: Any, slots: Any, scores: Any, M: Any, MT: Any, A: Any, AT: Any,
    shift: float, mask: Any, units: Any, costs: Any, hard: Any, soft: Any, allowed: Any, sequence_weight: Any,
    n_labels: int, blocks: tuple[int, ...], gradient: Any, pairs: Any, moves: Any, logs: bool | None,
) -> float:  # fmt: skip
    """Add up the objective of some sequences and its gradient with regard to bundle rows and moves.

    Returns the sum of weight × (node score of the target − log of the denominator). The caller adds the
    targets' move scores (`moves` · transitions) and multiplies the first half of `pairs` by M; the second half is as it
    should be. `A` and `AT` are the weights of moves and their transpose. With partial targets the
    log of the sum over allowed paths, moves included, is in the returned value. `gradient` is that of
    minus the objective. `shift` is the largest transition weight, taken out of M; `units` is an identity.

    What is rarely needed is None, and not compiled: `allowed` if no target is partial; what only the cost-sensitive
    objective or only the agreement needs; `logs`, unless a call without it gave nan: then the model is so sure of some
    sequence that its costs can be had in logs only, and all has to be done again with `logs=True`.
    """
    nothing = np.empty((0, n_labels), dtype=np.float32)
    value: float = _chain(
        objective, kind, sequences, offsets, slots, scores, M, MT, A, AT, shift, mask, units, costs, hard, soft,
        allowed, sequence_weight, n_labels, blocks, gradient, pairs, moves, logs, nothing, mask,
        True if objective == AGREEMENT else None, *_scratch(sequences, offsets, blocks, objective == COST_SENSITIVE),
    )  # fmt: skip
    return value


def chain_marginals(
    sequences: Any, offsets: Any, slots: Any, scores: Any, M: Any, MT: Any, shift: float, mask: Any, n_labels: int,
    blocks: tuple[int, ...], out: Any, log_z: Any,
) -> None:  # fmt: skip
    """Write the node marginals of some sequences to `out` (n_tokens, n_labels) and their log sums over paths.

    It is what the gradient of the likelihood has beside its targets, so there is one kernel for both.
    """
    hard, ones, pairs = np.empty(0, dtype=np.int16), np.ones(len(offsets) - 1), np.zeros(2 * n_labels * len(mask))
    _chain(
        LIKELIHOOD, FREE, sequences, offsets, slots, scores, M, MT, M, MT, shift, mask, mask, mask, hard, out, None,
        ones, n_labels, blocks, mask, pairs, mask, None, out, log_z, None, *_scratch(sequences, offsets, blocks, False),
    )  # fmt: skip


def _scratch(sequences: Any, offsets: Any, blocks: tuple[int, ...], costs: bool) -> list[Any]:
    """Return rows for each token of the longest sequence, a number, and rows for the expectation semiring or None."""
    most = longest(sequences, offsets)
    rows = [np.empty(most * 4 * len(blocks)) if k < 5 or costs else None for k in range(7)]
    return [*rows[:5], np.empty(most), *rows[5:]]


@kernel
def _chain(
    objective, kind, sequences, offsets, slots, scores, M, MT, A, AT, shift, mask, units, costs, hard, soft,
    allowed, sequence_weight, n_labels, blocks, gradient, pairs, moves, logs, marginals, log_sums,
    weighed, e, alpha, rows, u, cost, scale, ralpha, ru,
):  # fmt: skip
    width = 4 * len(blocks)
    total = 0.0
    for s in sequences:
        first, weight = offsets[s], sequence_weight[s]
        length = offsets[s + 1] - first
        if length == 0 or weight == 0.0:
            continue
        score_rows(slots, first, length, scores, blocks, e)
        value = _targets(kind, hard, soft, first, length, n_labels, weight, e, units, blocks, rows, moves)
        if weighed is not None:
            _weigh_scores(hard, first, length, costs, blocks, e)
            value = 0.0
        elif objective != LIKELIHOOD:
            factor = 1.0 / length if objective == COST_SENSITIVE else 1.0
            _cost_rows(kind, hard, soft, allowed, first, length, n_labels, costs, factor, blocks, cost)
            if objective == SOFTMAX_MARGIN:
                for i in range(0, length * width, width):
                    simd.store(e, i, simd.add(simd.load(e, i, blocks), simd.load(cost, i, blocks)))
        outside = exponentiate(e, length, mask, blocks) + (length - 1) * shift
        log_z, last = _forward(e, length, n_labels, M, blocks, alpha, scale)
        in_logs = False
        if ralpha is not None:
            expected = _cost_forward(e, length, n_labels, M, blocks, alpha, scale, cost, ralpha)
            if expected > _SURE * last:
                log_z += math.log(expected / last)
                _cost_backward(
                    e, length, n_labels, MT, blocks, alpha, scale, cost, ralpha, weight / expected,
                    u, ru, pairs, rows,
                )  # fmt: skip
            elif logs is None:
                return np.nan
            else:
                score_rows(slots, first, length, scores, blocks, e)
                direct = pairs[n_labels * width :]
                log_z = log_cost_pass(e, length, n_labels, A, AT, cost, weight, blocks, rows, direct)
                outside, in_logs = 0.0, True
        else:
            _backward(e, length, n_labels, MT, blocks, alpha, scale, weight / last, u, pairs, rows)
        log_z += outside
        if kind == FREE:
            log_sums[s] = log_z
            for i in range(length):
                for j in range(n_labels):
                    marginals[first + i, j] = rows[i * width + j]
            continue
        if allowed is not None:  # noqa: SIM102  on its own, so that the rest need not be compiled
            if kind == PARTIAL:
                if in_logs:
                    outside = exponentiate(e, length, mask, blocks) + (length - 1) * shift
                restrict(e, allowed, first, length, n_labels, width)
                value, last = _forward(e, length, n_labels, M, blocks, alpha, scale)
                _backward(e, length, n_labels, MT, blocks, alpha, scale, -weight / last, u, pairs, rows)
                value += outside
        if weighed is not None:
            _weigh_rows(hard, first, length, n_labels, costs, blocks, rows)
        scatter_rows(slots, first, length, rows, blocks, gradient)
        total += weight * (value - log_z)
    return total

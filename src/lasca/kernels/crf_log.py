"""The expectation semiring in log space: for sequences the model is so sure of that scaled numbers underflow.

The cost-sensitive objective keeps pushing after a sequence is right; at a weak penalty the labels that differ from
the target have probabilities of exp(−1000) and less, and their ratios are what the gradient is made of. Used where the
expected cost falls below 1e-60; about ten times slower than the scaled pass. −1e30 stands for the log of 0.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated, import-untyped"
from __future__ import annotations

import math

import numpy as np

from lasca.kernels import simd
from lasca.kernels.compiled import inner

__all__ = ["log_cost_pass"]

_ZERO = -1e30


@inner
def _add(a, b):
    """log(exp(a) + exp(b))."""
    top = max(a, b)
    return top if top <= 0.5 * _ZERO else top + math.log1p(math.exp(min(a, b) - top))


@inner
def _log_product(x, at, A, n_labels, blocks, best, sums):
    """best + log(sums) is the log of exp(x) · exp(A) for one row x."""
    width = 4 * len(blocks)
    top = simd.splat(_ZERO, blocks)
    for k in range(n_labels):
        top = simd.maximum(top, simd.add(simd.splat(x[at + k], blocks), simd.load(A, k * width, blocks)))
    low, row = simd.splat(-700.0, blocks), simd.splat(0.0, blocks)
    for k in range(n_labels):
        term = simd.sub(simd.add(simd.splat(x[at + k], blocks), simd.load(A, k * width, blocks)), top)
        row = simd.add(row, simd.exp(simd.maximum(term, low)))
    simd.store(best, 0, top)
    simd.store(sums, 0, row)


@inner(allocates=True)
def log_cost_pass(scores, length, n_labels, A, AT, cost, weight, blocks, rows, direct):
    """Add weight × marginals under q(z') ∝ cost(z') exp(score(z')) to `rows` and `direct`; return log of q's sum.

    `scores` are raw rows, `A` and `AT` the weights of moves and their transpose.
    """
    width = 4 * len(blocks)
    size = length * width
    alpha, ralpha, lcost = np.full(size, _ZERO), np.full(size, _ZERO), np.full(size, _ZERO)
    best, sums, rbest, rsums = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    for i in range(length):
        at = i * width
        if i > 0:
            _log_product(alpha, at - width, A, n_labels, blocks, best, sums)
            _log_product(ralpha, at - width, A, n_labels, blocks, rbest, rsums)
        for j in range(n_labels):
            if cost[at + j] > 0.0:
                lcost[at + j] = math.log(cost[at + j])
            alpha[at + j] = scores[at + j]
            if i > 0:
                alpha[at + j] += best[j] + math.log(sums[j])
                ralpha[at + j] = scores[at + j] + rbest[j] + math.log(rsums[j])
            ralpha[at + j] = max(_add(ralpha[at + j], alpha[at + j] + lcost[at + j]), _ZERO)
    log_sum = _ZERO
    for j in range(n_labels):
        log_sum = _add(log_sum, ralpha[size - width + j])
    _log_backward(scores, length, n_labels, A, AT, lcost, alpha, ralpha, log_sum, weight, blocks, rows, direct)
    return log_sum


@inner(allocates=True)
def _log_backward(scores, length, n_labels, A, AT, lcost, alpha, ralpha, log_sum, weight, blocks, rows, direct):
    width = 4 * len(blocks)
    b, rb = np.zeros(width), np.full(width, _ZERO)
    u, ru = np.full(width, _ZERO), np.full(width, _ZERO)
    best, sums = np.empty(width), np.empty(width)
    for i in range(length - 1, -1, -1):
        at = i * width
        for j in range(n_labels):
            rows[at + j] += weight * math.exp(_add(ralpha[at + j] + b[j], alpha[at + j] + rb[j]) - log_sum)
            u[j] = scores[at + j] + b[j]
            ru[j] = max(scores[at + j] + _add(rb[j], lcost[at + j] + b[j]), _ZERO)
        if i == 0:
            break
        for k in range(n_labels):
            for j in range(n_labels):
                move = A[k * width + j] - log_sum
                both = _add(ralpha[at - width + k] + u[j], alpha[at - width + k] + ru[j])
                direct[k * width + j] += weight * math.exp(both + move)
        _log_product(u, 0, AT, n_labels, blocks, best, sums)
        for k in range(n_labels):
            b[k] = best[k] + math.log(sums[k])
        _log_product(ru, 0, AT, n_labels, blocks, best, sums)
        for k in range(n_labels):
            rb[k] = max(best[k] + math.log(sums[k]), _ZERO)

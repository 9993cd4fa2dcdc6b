"""Features of a CRF: found by their keys, and their weights as rows of label scores.

Keys are found in a hash table. Weights go to bundles, then to tokens, and gradients back the same way: the layout is
described in `lasca.kernels.crf`.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated, import-untyped"
from __future__ import annotations

from typing import Any

import numpy as np

from lasca.kernels import simd
from lasca.kernels.compiled import inner, kernel

__all__ = [
    "build_table", "bundle_scores", "exponentiate", "feature_gradient", "find_keys", "longest", "restrict",
    "scatter_rows", "score_rows",
]  # fmt: skip

_FLOOR = -300.0


# --- by their keys ----------------------------------------------------------------------------------------------------


def build_table(keys: Any) -> Any:
    """Return an open-addressing table of key numbers (−1 = empty), its size a power of two above twice the keys."""
    size = 2
    while size < 2 * len(keys) + 2:
        size *= 2
    table = np.full(size, -1, dtype=np.int32)
    _fill_table(keys, table)
    return table


def find_keys(keys: Any, table: Any, wanted: Any) -> Any:
    """Return the number of each wanted key, −1 where it is not among the keys (or negative)."""
    out = np.full(len(wanted), -1, dtype=np.int64)
    _find_keys(keys, table, wanted, out)
    return out


@inner
def _place(key, mask):
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed >> np.uint64(20)) & np.uint64(mask))


@kernel
def _fill_table(keys, table):
    mask = len(table) - 1
    for number in range(len(keys)):
        at = _place(keys[number], mask)
        while table[at] >= 0:
            at = (at + 1) & mask
        table[at] = number


@kernel
def _find_keys(keys, table, wanted, out):
    mask = len(table) - 1
    for i in range(len(wanted)):
        if wanted[i] < 0:
            continue
        at = _place(wanted[i], mask)
        while table[at] >= 0:
            if keys[table[at]] == wanted[i]:
                out[i] = table[at]
                break
            at = (at + 1) & mask


# --- rows of label scores ---------------------------------------------------------------------------------------------


@kernel
def bundle_scores(lo, hi, bundle_start, bundle_feature, feature_start, feature_label, weights, blocks, scores):
    """Sum the weights of the features of bundles lo..hi into their score rows."""
    width = 4 * len(blocks)
    zero = simd.splat(0.0, blocks)
    for b in range(lo, hi):
        row = b * width
        simd.store(scores, row, zero)
        for k in range(bundle_start[b], bundle_start[b + 1]):
            f = simd.peek(bundle_feature, k)
            for p in range(simd.peek(feature_start, f), simd.peek(feature_start, f + 1)):
                at = row + simd.peek(feature_label, p)
                simd.poke(scores, at, simd.peek(scores, at) + simd.peek(weights, p))


def feature_gradient(
    lo: int, hi: int, bundle_start: Any, bundle_feature: Any, feature_start: Any, feature_label: Any, rows: Any,
    blocks: tuple[int, ...], gradient: Any,
) -> None:  # fmt: skip
    """Add the rows of bundles lo..hi, summed over chunks in order, to the gradient of their features' parameters."""
    gradient[:] = 0.0
    _feature_gradient(
        lo, hi, bundle_start, bundle_feature, feature_start, feature_label, rows.ravel(), rows.shape[1], blocks,
        np.empty(4 * len(blocks)), gradient,
    )  # fmt: skip


@kernel
def _feature_gradient(
    lo, hi, bundle_start, bundle_feature, feature_start, feature_label, rows, size, blocks, sums, gradient
):
    width = 4 * len(blocks)
    for b in range(lo, hi):
        first, last = bundle_start[b], bundle_start[b + 1]
        if first == last:
            continue
        row = simd.load(rows, b * width, blocks)
        for at in range(size + b * width, len(rows), size):
            row = simd.add(row, simd.load(rows, at, blocks))
        simd.store(sums, 0, row)
        for k in range(first, last):
            f = simd.peek(bundle_feature, k)
            for p in range(simd.peek(feature_start, f), simd.peek(feature_start, f + 1)):
                value = simd.peek(gradient, p) + simd.peek(sums, simd.peek(feature_label, p))
                simd.poke(gradient, p, value)


@inner
def score_rows(slots, first, length, scores, blocks, out):
    """Sum the bundle rows of each token of a sequence into `out`."""
    width, n_slots = 4 * len(blocks), slots.shape[1]
    for i in range(length):
        row = simd.load(scores, simd.peek(slots, (first + i) * n_slots) * width, blocks)
        for s in range((first + i) * n_slots + 1, (first + i + 1) * n_slots):
            row = simd.add(row, simd.load(scores, simd.peek(slots, s) * width, blocks))
        simd.store(out, i * width, row)


@inner
def exponentiate(e, length, mask, blocks):
    """Turn score rows into exp(score − row's best); return the sum of the rows' bests."""
    width = 4 * len(blocks)
    total = 0.0
    real = simd.load(mask, 0, blocks)
    padding = simd.mul(simd.sub(real, simd.splat(1.0, blocks)), simd.splat(1e30, blocks))
    floor = simd.splat(_FLOOR, blocks)
    for i in range(length):
        row = simd.add(simd.load(e, i * width, blocks), padding)
        best = simd.peak(row)
        total += best
        row = simd.maximum(simd.sub(row, simd.splat(best, blocks)), floor)
        simd.store(e, i * width, simd.mul(simd.exp(row), real))
    return total


@inner
def scatter_rows(slots, first, length, rows, blocks, gradient):
    """Add each token's row to the gradient rows of its bundles."""
    width, n_slots = 4 * len(blocks), slots.shape[1]
    for i in range(length):
        row = simd.load(rows, i * width, blocks)
        for s in range((first + i) * n_slots, (first + i + 1) * n_slots):
            at = simd.peek(slots, s) * width
            simd.store(gradient, at, simd.add(simd.load(gradient, at, blocks), row))


@inner
def restrict(e, allowed, first, length, n_labels, width):
    """Set to 0 what is not allowed."""
    for i in range(length):
        for j in range(n_labels):
            if not allowed[first + i, j]:
                e[i * width + j] = 0.0


def longest(sequences: Any, offsets: Any) -> int:
    """Return the length of the longest of some sequences."""
    return int((offsets[sequences + 1] - offsets[sequences]).max(initial=0))

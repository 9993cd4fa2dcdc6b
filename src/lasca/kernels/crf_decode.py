"""Best label sequences of a linear chain – one, or the n best – and the averaged perceptron that needs them.

The layout is that of `lasca.kernels.crf`: flat rows of labels, padded to 4 · len(blocks). `A` holds the weights
of moves; forbidden moves, and the padding, are −1e30. `first_row` and `last_row` are added to the
first and last token's scores (0, or −1e30 where a label cannot begin or end a sequence).
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated, import-untyped"
from __future__ import annotations

from typing import Any

import numpy as np

from lasca.kernels import simd
from lasca.kernels.compiled import inner, kernel
from lasca.kernels.crf_features import longest, score_rows

__all__ = ["n_best_paths", "perceptron_epoch", "viterbi_paths"]


@inner
def _best_path(e, length, n_labels, A, first_row, last_row, blocks, best, back, out, at):
    """Write the best labels to out[at:]; among equals the earlier label wins. Returns the score."""
    width = 4 * len(blocks)
    row = simd.add(simd.load(e, 0, blocks), simd.load(first_row, 0, blocks))
    simd.store(best, 0, row)
    for i in range(1, length):
        top = simd.add(simd.splat(best[0], blocks), simd.load(A, 0, blocks))
        who = simd.splat(0.0, blocks)
        for k in range(1, n_labels):
            candidate = simd.add(simd.splat(best[k], blocks), simd.load(A, k * width, blocks))
            who = simd.where_greater(candidate, top, simd.splat(np.float64(k), blocks), who)
            top = simd.maximum(candidate, top)
        simd.store(back, i * width, who)
        simd.store(best, 0, simd.add(top, simd.load(e, i * width, blocks)))
    label, value = 0, best[0] + last_row[0]
    for j in range(1, n_labels):
        if best[j] + last_row[j] > value:
            label, value = j, best[j] + last_row[j]
    for i in range(length - 1, -1, -1):
        out[at + i] = label
        if i > 0:
            label = int(back[i * width + label])
    return value


def viterbi_paths(
    sequences: Any, offsets: Any, slots: Any, scores: Any, A: Any, first_row: Any, last_row: Any, n_labels: int,
    blocks: tuple[int, ...], out: Any,
) -> None:  # fmt: skip
    """Write the best labels of some sequences to `out` (one per token)."""
    width = 4 * len(blocks)
    size = longest(sequences, offsets) * width
    _viterbi_paths(
        sequences, offsets, slots, scores, A, first_row, last_row, n_labels, blocks, out,
        np.empty(size), np.empty(size), np.empty(width),
    )  # fmt: skip


@kernel
def _viterbi_paths(
    sequences, offsets, slots, scores, A, first_row, last_row, n_labels, blocks, out, e, back, best
):  # fmt: skip
    for s in sequences:
        first = offsets[s]
        length = offsets[s + 1] - first
        if length > 0:
            score_rows(slots, first, length, scores, blocks, e)
            _best_path(e, length, n_labels, A, first_row, last_row, blocks, best, back, out, first)


@inner
def _offer(values, labels, ranks, n, value, label, rank):
    """Insert a candidate into a list of the n best, best first; among equals the earlier one stays first."""
    if not value > values[n - 1]:
        return
    r = n - 1
    while r > 0 and value > values[r - 1]:
        values[r], labels[r], ranks[r] = values[r - 1], labels[r - 1], ranks[r - 1]
        r -= 1
    values[r], labels[r], ranks[r] = value, label, rank


@kernel(allocates=True)
def n_best_paths(first, length, slots, scores, A, first_row, last_row, n_labels, n, blocks):
    """Return the labels (n, length) and scores of the n best paths of one sequence; missing ones score −inf."""
    width = 4 * len(blocks)
    e = np.empty(length * width)
    score_rows(slots, first, length, scores, blocks, e)
    value = np.full((length, n_labels, n), -np.inf)
    label = np.zeros((length, n_labels, n), dtype=np.int32)
    rank = np.zeros((length, n_labels, n), dtype=np.int32)
    for j in range(n_labels):
        value[0, j, 0] = e[j] + first_row[j]
    for i in range(1, length):
        for j in range(n_labels):
            for k in range(n_labels):
                for r in range(n):
                    if value[i - 1, k, r] == -np.inf:
                        break
                    v = value[i - 1, k, r] + A[k * width + j] + e[i * width + j]
                    _offer(value[i, j], label[i, j], rank[i, j], n, v, k, r)
    top, top_label, top_rank = np.full(n, -np.inf), np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
    for k in range(n_labels):
        for r in range(n):
            if value[length - 1, k, r] > -np.inf:
                _offer(top, top_label, top_rank, n, value[length - 1, k, r] + last_row[k], k, r)
    paths = np.zeros((n, length), dtype=np.int16)
    for m in range(n):
        j, r = top_label[m], top_rank[m]
        for i in range(length - 1, -1, -1):
            paths[m, i] = j
            if i > 0:
                j, r = label[i, j, r], rank[i, j, r]
    return paths, top


@inner
def _feature_rows(slots, first, length, bundle_start, bundle_feature, weights, blocks, out):
    width = 4 * len(blocks)
    for i in range(length):
        row = simd.splat(0.0, blocks)
        for s in range(slots.shape[1]):
            b = slots[first + i, s]
            for k in range(bundle_start[b], bundle_start[b + 1]):
                row = simd.add(row, simd.load(weights, bundle_feature[k] * width, blocks))
        simd.store(out, i * width, row)


@inner
def _update(slots, i, bundle_start, bundle_feature, label, amount, late, seen, width, weights, sums):
    for s in range(slots.shape[1]):
        b = slots[i, s]
        for k in range(bundle_start[b], bundle_start[b + 1]):
            p = bundle_feature[k] * width + label
            if seen[p]:
                weights[p] += amount
                sums[p] += late * amount


def perceptron_epoch(
    sequences: Any, offsets: Any, slots: Any, bundle_start: Any, bundle_feature: Any, gold: Any, seen: Any,
    seen_moves: Any, n_labels: int, blocks: tuple[int, ...], weights: Any, sums: Any, A: Any, A_sums: Any, step: float,
    gamma: Any,
) -> tuple[float, int]:  # fmt: skip
    """One pass of the averaged perceptron; `sums` collects updates × time, for the average. Returns (step, errors).

    The update of a token, and of the move to it, is multiplied by gamma[its label now, its right label].
    """
    width, most = 4 * len(blocks), longest(sequences, offsets)
    done: tuple[float, int] = _perceptron_epoch(
        sequences, offsets, slots, bundle_start, bundle_feature, gold, seen, seen_moves, n_labels, blocks,
        weights, sums, A, A_sums, step, gamma, np.empty(most * width), np.empty(most * width), np.empty(width),
        np.zeros(width), np.zeros(most, dtype=np.int16),
    )  # fmt: skip
    return done


@kernel
def _perceptron_epoch(
    sequences, offsets, slots, bundle_start, bundle_feature, gold, seen, seen_moves, n_labels, blocks,
    weights, sums, A, A_sums, step, gamma, e, back, best, zero, path,
):  # fmt: skip
    width = 4 * len(blocks)
    errors = 0
    for s in sequences:
        first = offsets[s]
        length = offsets[s + 1] - first
        step += 1.0
        _feature_rows(slots, first, length, bundle_start, bundle_feature, weights, blocks, e)
        _best_path(e, length, n_labels, A, zero, zero, blocks, best, back, path, 0)
        for i in range(length):
            right, wrong = gold[first + i], path[i]
            rate = 1.0
            if right != wrong:
                errors += 1
                at, rate = first + i, gamma[wrong, right]
                _update(slots, at, bundle_start, bundle_feature, right, rate, step, seen, width, weights, sums)
                _update(slots, at, bundle_start, bundle_feature, wrong, -rate, step, seen, width, weights, sums)
            if i > 0:
                p, q = gold[first + i - 1] * width + right, path[i - 1] * width + wrong
                if p != q:
                    if seen_moves[p]:
                        A[p] += rate
                        A_sums[p] += rate * step
                    if seen_moves[q]:
                        A[q] -= rate
                        A_sums[q] -= rate * step
    return step, errors

"""Tables of rows, one entry per state: sums of the rows that bear on a token, and expected counts of rows.

An annotation (annotator, label before, label given) or a word points at a row of a table (n_rows, S). Evidence for a
token is the sum of its rows; the expected count of a row is the sum of the posteriors of the tokens that point at it.
A vote may have a weight; `weight` None: all count as one. `start` (n_tokens + 1) may begin anywhere: `row` has what
lies between its first and its last entry; None: one row for each token.
"""

from __future__ import annotations

from lasca.kernels.compiled import kernel

__all__ = ["add_view", "count_view", "previous_labels"]


@kernel
def previous_labels(offsets, start, annotator, label, none, out):  # type: ignore[no-untyped-def]
    """Write the label the same annotator gave the token before in the sequence, or `none`, for each annotation.

    Annotations are sorted by token, then annotator, so two neighbouring tokens are merged in one walk.
    """
    for s in range(offsets.shape[0] - 1):
        for i in range(offsets[s], offsets[s + 1]):
            if i == offsets[s]:
                for j in range(start[i], start[i + 1]):
                    out[j] = none
                continue
            k, stop = start[i - 1], start[i]
            for j in range(start[i], start[i + 1]):
                while k < stop and annotator[k] < annotator[j]:
                    k += 1
                out[j] = label[k] if k < stop and annotator[k] == annotator[j] else none


@kernel
def add_view(start, row, weight, table, out):  # type: ignore[no-untyped-def]
    """Add to each token's row of `out` the rows of `table` that bear on it, each by its weight.

    Without a `start` (it is empty) each token has one row; without weights all are 1. There is one kernel for all.
    """
    T = table.shape[1]
    for i in range(out.shape[0]):
        first, last = i, i + 1
        if len(start) > 0:
            first, last = start[i] - start[0], start[i + 1] - start[0]
        for j in range(first, last):
            r, w = row[j], weight[j] if len(weight) > 0 else 1.0
            for t in range(T):
                out[i, t] += w * table[r, t]


@kernel
def count_view(start, row, weight, proba, out):  # type: ignore[no-untyped-def]
    """Add the posterior of each token to the rows of `out` that bear on it: their expected counts, token by token."""
    T = proba.shape[1]
    for i in range(proba.shape[0]):
        first, last = i, i + 1
        if len(start) > 0:
            first, last = start[i] - start[0], start[i + 1] - start[0]
        for j in range(first, last):
            r, w = row[j], weight[j] if len(weight) > 0 else 1.0
            for t in range(T):
                out[r, t] += w * proba[i, t]

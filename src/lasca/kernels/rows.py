"""Tables of rows, one entry per true label: sums of the rows that bear on a token, and expected counts of rows.

An annotation (annotator, label before, label given) or a word points at a row of a table (n_rows, T). Evidence for a
token is the sum of its rows; the expected count of a row is the sum of the posteriors of the tokens that point at it.
For the counts the tokens are listed by row, so that every row has one writer: the sums are the same bytes whatever
the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lasca.kernels.compiled import kernel

__all__ = [
    "add_row",
    "add_rows",
    "add_view",
    "add_weighted_rows",
    "count_view",
    "expected_votes",
    "group_tokens",
    "group_votes",
    "previous_labels",
    "sum_by_row",
    "sum_weighted_by_row",
]


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


def group_tokens(start: Any, row: Any, row_start: Any, tokens: Any) -> None:
    """List the tokens of each row in order: those of row r at tokens[row_start[r]:row_start[r + 1]]."""
    row_start[0] = 0
    np.cumsum(np.bincount(row, minlength=len(row_start) - 1), out=row_start[1:])
    votes = np.empty(len(row), np.int64)
    group_votes(row, row_start, votes)
    tokens[:] = np.repeat(np.arange(len(start) - 1, dtype=tokens.dtype), np.diff(start))[votes]


def group_votes(row: Any, row_start: Any, votes: Any) -> None:
    """List the votes of each row in order: those of row r at votes[row_start[r]:row_start[r + 1]]."""
    _group(row, row_start[:-1].copy(), votes)


@kernel
def _group(row, at, votes):  # type: ignore[no-untyped-def]
    for j in range(row.shape[0]):
        votes[at[row[j]]] = j
        at[row[j]] += 1


@kernel
def add_rows(first, last, start, row, table, out):  # type: ignore[no-untyped-def]
    """Add the rows of the annotations of tokens first..last to out, whose row 0 is that of token `first`."""
    T = table.shape[1]
    for i in range(first, last):
        for j in range(start[i], start[i + 1]):
            r = row[j]
            for t in range(T):
                out[i - first, t] += table[r, t]


@kernel
def add_row(first, last, row, table, out):  # type: ignore[no-untyped-def]
    """Add the one row of each of the tokens first..last to out; -1 is none."""
    T = table.shape[1]
    for i in range(first, last):
        r = row[i]
        if r >= 0:
            for t in range(T):
                out[i - first, t] += table[r, t]


@kernel
def sum_by_row(first, last, row_start, tokens, proba, out):  # type: ignore[no-untyped-def]
    """Write the sums of the posteriors of the tokens of rows first..last to `out`."""
    T = proba.shape[1]
    for r in range(first, last):
        for t in range(T):
            out[r, t] = 0.0
        for j in range(row_start[r], row_start[r + 1]):
            i = tokens[j]
            for t in range(T):
                out[r, t] += proba[i, t]


@kernel
def add_weighted_rows(first, last, start, row, weight, table, out):  # type: ignore[no-untyped-def]
    """Do as `add_rows`, every vote by its weight."""
    T = table.shape[1]
    for i in range(first, last):
        for j in range(start[i], start[i + 1]):
            r, w = row[j], weight[j]
            for t in range(T):
                out[i - first, t] += w * table[r, t]


@kernel
def sum_weighted_by_row(first, last, row_start, tokens, votes, weight, proba, out):  # type: ignore[no-untyped-def]
    """Do as `sum_by_row`, every vote by its weight; `votes` are those of `group_votes`."""
    T = proba.shape[1]
    for r in range(first, last):
        for t in range(T):
            out[r, t] = 0.0
        for j in range(row_start[r], row_start[r + 1]):
            i, w = tokens[j], weight[votes[j]]
            for t in range(T):
                out[r, t] += w * proba[i, t]


@kernel
def expected_votes(start, row, table, proba, out):  # type: ignore[no-untyped-def]
    """Write, for each vote, the expected log likelihood of its row under the posterior of its token."""
    T = table.shape[1]
    for i in range(start.shape[0] - 1):
        for j in range(start[i], start[i + 1]):
            r = row[j]
            total = 0.0
            for t in range(T):
                total += table[r, t] * proba[i, t]
            out[j] = total


@kernel
def add_view(start, row, table, out):  # type: ignore[no-untyped-def]
    """Add to each token's row of `out` the rows of `table` that bear on it; `start` None: one row for each token.

    `start` (n_tokens + 1) may begin anywhere: `row` has what lies between its first and its last entry.
    """
    T = table.shape[1]
    for i in range(out.shape[0]):
        first, last = i, i + 1
        if start is not None:
            first, last = start[i] - start[0], start[i + 1] - start[0]
        for j in range(first, last):
            r = row[j]
            for t in range(T):
                out[i, t] += table[r, t]


@kernel
def count_view(start, row, proba, out):  # type: ignore[no-untyped-def]
    """Add the posterior of each token to the rows of `out` that bear on it: their expected counts, token by token."""
    T = proba.shape[1]
    for i in range(proba.shape[0]):
        first, last = i, i + 1
        if start is not None:
            first, last = start[i] - start[0], start[i + 1] - start[0]
        for j in range(first, last):
            r = row[j]
            for t in range(T):
                out[r, t] += proba[i, t]

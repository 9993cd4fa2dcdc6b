"""Label sequences that people gave, whole or with gaps, scored by a chain: their log sums and expected counts.

A *path* is what one annotator gave one sequence: a label per token, −1 where there is a gap. Its score is the sum of
the tokens' scores of its labels and of the moves between them; gaps are summed over (forward–backward in logs).
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, import-untyped"
from __future__ import annotations

import numpy as np

from lasca.kernels.compiled import kernel

__all__ = ["path_counts", "path_scores"]


@kernel(allocates=True)
def _log_sum(row):
    top = row.max()
    if top == -np.inf:
        return top
    total = 0.0
    for x in row:
        total += np.exp(x - top)
    return top + np.log(total)


@kernel(allocates=True)
def _forward(labels, scores, moves, alpha, work):
    """Fill the rows of alpha; return the log of the sum over all ways to fill the gaps."""
    n_labels = scores.shape[1]
    for i in range(len(labels)):
        for t in range(n_labels):
            if labels[i] >= 0 and labels[i] != t:
                alpha[i, t] = -np.inf
                continue
            before = 0.0
            if i > 0:
                for s in range(n_labels):
                    work[s] = alpha[i - 1, s] + moves[s, t]
                before = _log_sum(work)
            alpha[i, t] = scores[i, t] + before
    return _log_sum(alpha[len(labels) - 1])


@kernel(allocates=True)
def path_scores(start, sequence, label, offsets, scores, moves, out):
    """Write the score of each path to `out`."""
    n_labels, longest = scores.shape[1], np.diff(offsets).max()
    alpha, work = np.empty((longest, n_labels)), np.empty(n_labels)
    for p in range(len(sequence)):
        labels = label[start[p] : start[p + 1]]
        own = scores[offsets[sequence[p]] : offsets[sequence[p] + 1]]
        if labels.min() < 0:
            out[p] = _forward(labels, own, moves, alpha, work)
            continue
        total = own[0, labels[0]]
        for i in range(1, len(labels)):
            total += own[i, labels[i]] + moves[labels[i - 1], labels[i]]
        out[p] = total


@kernel(allocates=True)
def path_counts(start, sequence, label, offsets, scores, moves, weight, proba, pairs):
    """Add weight × (expected) labels of each path to `proba`, and weight × (expected) moves to `pairs`."""
    n_labels, longest = scores.shape[1], np.diff(offsets).max()
    alpha, work = np.empty((longest, n_labels)), np.empty(n_labels)
    beta, row = np.empty(n_labels), np.empty(n_labels)
    for p in range(len(sequence)):
        first = offsets[sequence[p]]
        labels = label[start[p] : start[p + 1]]
        if labels.min() >= 0:
            for i in range(len(labels)):
                proba[first + i, labels[i]] += weight[p]
                if i > 0:
                    pairs[labels[i - 1], labels[i]] += weight[p]
            continue
        own = scores[first : offsets[sequence[p] + 1]]
        total = _forward(labels, own, moves, alpha, work)
        beta[:] = 0.0
        for i in range(len(labels) - 1, -1, -1):
            for t in range(n_labels):
                proba[first + i, t] += weight[p] * np.exp(alpha[i, t] + beta[t] - total)
            if i == 0:
                break
            for s in range(n_labels):
                for t in range(n_labels):
                    work[t] = -np.inf if labels[i] >= 0 and labels[i] != t else moves[s, t] + own[i, t] + beta[t]
                    pairs[s, t] += weight[p] * np.exp(alpha[i - 1, s] + work[t] - total)
                row[s] = _log_sum(work)
            beta[:] = row

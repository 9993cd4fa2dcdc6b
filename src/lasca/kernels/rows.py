"""Tables of rows, one entry per state: sums of the rows that bear on a token, and expected counts of rows.

An annotation (annotator, label before, label given) or a word points at a row of a table (n_rows, S). Evidence for a
token is the sum of its rows; the expected count of a row is the sum of the posteriors of the tokens that point at it.
A vote may have a weight; `weight` None: all count as one. `start` (n_tokens + 1) may begin anywhere: `row` has what
lies between its first and its last entry; None: one row for each token.

Then sums over votes for the guards of the default – who voted where, who looked, who supports what – and counts over
pairs of annotators: how often both speak of the same token, and how often they say the same.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from lasca.kernels.compiled import kernel

__all__ = [
    "add_view", "count_view", "evidence_of_silence", "number_pairs", "pair_counts", "previous_labels", "sums_of_rates",
]  # fmt: skip


@kernel
def previous_labels(offsets, start, annotator, label, none, out):
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
def add_view(start, row, weight, table, out):
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
def count_view(start, row, weight, proba, out):
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


@kernel
def number_pairs(offsets, start, annotator, seen, pair, owner):
    """Number the pairs (sequence, annotator) that occur; write the pair of each vote and the annotator of each pair.

    `seen` has a -1 for each annotator, `owner` room for as many pairs as there are votes. Returns how many there are.
    """
    n = 0
    for s in range(offsets.shape[0] - 1):
        first = n
        for j in range(start[offsets[s]] - start[0], start[offsets[s + 1]] - start[0]):
            a = annotator[j]
            if seen[a] < first:
                seen[a] = n
                owner[n] = a
                n += 1
            pair[j] = seen[a]
    return n


@kernel
def evidence_of_silence(start, row, weight, pair, silent, table, proba, out):
    """Add to each silent pair of `out` the expected log likelihood of its votes under their tokens' posteriors."""
    for i in range(proba.shape[0]):
        for j in range(start[i] - start[0], start[i + 1] - start[0]):
            if silent[pair[j]]:
                r, total = row[j], 0.0
                for t in range(table.shape[1]):
                    total += table[r, t] * proba[i, t]
                out[pair[j]] += weight[j] * total


@kernel
def sums_of_rates(start, annotator, label, kind_of, weight, expected, said, other):
    """Add up, by annotator and kind of marks, what is expected of each kind (n_tokens, K) on the tokens of votes.

    `said`: on all of them; `other`: where the vote is for a mark of another kind, for all kinds but the first, which
    are all marks. `kind_of` has the kind of each label, 0 where there is none.
    """
    K = expected.shape[1]
    for i in range(expected.shape[0]):
        for j in range(start[i] - start[0], start[i + 1] - start[0]):
            a, w, kind = annotator[j], weight[j], kind_of[label[j]]
            for k in range(K):
                said[a, k] += w * expected[i, k]
            if kind > 0:
                for k in range(1, K):
                    if k != kind:
                        other[a, k] += w * expected[i, k]


@kernel
def pair_counts(start, annotator, label, outside, knows, kind_of, asked, same, marks, near):
    """Count runs of tokens that two annotators labelled both, for each pair (a, b).

    same[a, b]: both gave the same label, which is not `outside`; marks[a, b]: a gave a label that is not `outside`
    where b voted, if each knows what the other gave. Where a marks several tokens in a row only the first one counts: a
    span is one decision, however long it is. near[a, b]: of these, those where b marks the kind somewhere in the run.
    Without a label `outside` (-1) every token is a mark, and every token counts. `asked`: a zero for each
    annotator, to count with.
    """
    n = start.shape[0] - 1
    for i in range(n):
        for j in range(start[i], start[i + 1]):
            if label[j] == outside:
                continue
            a = annotator[j]
            if outside >= 0 and i > 0:
                goes_on = False
                for k in range(start[i - 1], start[i]):
                    if annotator[k] == a and label[k] != outside:
                        goes_on = True
                if goes_on:
                    continue
            for k in range(start[i], start[i + 1]):
                b = annotator[k]
                if k != j and knows[b, label[j]] and knows[a, label[k]]:
                    marks[a, b] += 1
                    asked[b] = j + 1
                    if label[k] == label[j]:
                        same[a, b] += 1
            if outside < 0:
                continue
            at, goes_on = i, True
            while goes_on:
                goes_on = False
                for k in range(start[at], start[at + 1]):
                    b = annotator[k]
                    if asked[b] == j + 1 and label[k] != outside and kind_of[label[k]] == kind_of[label[j]]:
                        near[a, b] += 1
                        asked[b] = 0
                at += 1
                if at < n:
                    for k in range(start[at], start[at + 1]):
                        if annotator[k] == a and label[k] != outside and kind_of[label[k]] == kind_of[label[j]]:
                            goes_on = True

"""Sums over the votes of a block for the guards of the default: who voted where, who looked, who supports what.

`start` (n_tokens + 1) may begin anywhere: votes are what lies between its first and its last entry.
"""

from __future__ import annotations

from lasca.kernels.compiled import kernel

__all__ = ["evidence_of_silence", "number_pairs", "sums_of_rates"]


@kernel
def number_pairs(offsets, start, annotator, seen, pair, owner):  # type: ignore[no-untyped-def]
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
def evidence_of_silence(start, row, weight, pair, silent, table, proba, out):  # type: ignore[no-untyped-def]
    """Add to each silent pair of `out` the expected log likelihood of its votes under their tokens' posteriors."""
    for i in range(proba.shape[0]):
        for j in range(start[i] - start[0], start[i + 1] - start[0]):
            if silent[pair[j]]:
                r, total = row[j], 0.0
                for t in range(table.shape[1]):
                    total += table[r, t] * proba[i, t]
                out[pair[j]] += weight[j] * total


@kernel
def sums_of_rates(start, annotator, label, kind_of, weight, expected, said, other):  # type: ignore[no-untyped-def]
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

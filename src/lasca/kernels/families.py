"""Counts over pairs of annotators: how often both speak of the same token, and how often they say the same."""

from __future__ import annotations

from lasca.kernels.compiled import kernel

__all__ = ["pair_counts"]


@kernel
def pair_counts(start, annotator, label, outside, same, marks):  # type: ignore[no-untyped-def]
    """Count runs of tokens that two annotators labelled both, for each pair (a, b).

    same[a, b]: both gave the same label, which is not `outside`; marks[a, b]: a gave a label that is not `outside`
    where b voted. Where a marks several tokens in a row only the first one counts: a span is one decision, however
    long it is. Without a label `outside` (-1) every token is a mark, and every token counts.
    """
    for i in range(start.shape[0] - 1):
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
                if k != j:
                    b = annotator[k]
                    marks[a, b] += 1
                    if label[k] == label[j]:
                        same[a, b] += 1

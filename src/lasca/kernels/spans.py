"""Which spans to read from the probabilities that a span begins, and that it goes on, at each token.

`begin` and `inside` (n_tokens, K) are the probabilities that a span of type k begins at a token, and that one goes on
there from the token before. If going on depends on the token before alone, a span has the probability

    begin[s, k] · Π_{s < i < e} g_i · (1 − g_e),      g_i = inside[i, k] / (begin + inside)[i − 1, k]

and none goes on behind the end of a sequence. Spans that overlap exclude each other: of these one at most is likelier
than not.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from lasca.kernels.compiled import inner, kernel

__all__ = ["likely_spans"]


@inner
def _mark_likeliest(begin, inside, lo, hi, last, least, kind, begins):
    """Mark the likeliest span that begins in [lo, hi) and holds free tokens only, if it is likelier than `least`."""
    best, at, end, own = least, -1, -1, -1
    for i in range(lo, hi):
        for k in range(begin.shape[1]):
            weight = begin[i, k]
            j = i
            while weight > best and j < last and kind[j] < 0:
                goes_on, here = 0.0, begin[j, k] + inside[j, k]
                if j + 1 < last and here > 0.0:
                    goes_on = inside[j + 1, k] / here if inside[j + 1, k] < here else 1.0
                if weight * (1.0 - goes_on) > best:
                    best, at, end, own = weight * (1.0 - goes_on), i, j + 1, k
                weight *= goes_on
                j += 1
    if at >= 0:
        begins[at] = 1
        for i in range(at, end):
            kind[i] = own


@kernel
def likely_spans(offsets, begin, inside, first, kind, begins):
    """Write the type of each token's span to `kind` (-1: none), and where spans begin to `begins`.

    These are the spans that are likelier than not. `first` (n_tokens,) numbers the spans of another reading, by their
    first token (-1: none): where it has a span and there is no such, the likeliest one that begins there is taken.
    """
    for s in range(offsets.shape[0] - 1):
        last = offsets[s + 1]
        for i in range(offsets[s], last):
            kind[i], begins[i] = -1, 0
        for i in range(offsets[s], last):
            _mark_likeliest(begin, inside, i, i + 1, last, 0.5, kind, begins)
        i = offsets[s]
        while i < last:
            end, free = i + 1, kind[i] < 0
            while end < last and first[end] == first[i]:
                free = free and kind[end] < 0
                end += 1
            if free and first[i] >= 0:
                _mark_likeliest(begin, inside, i, end, last, 0.0, kind, begins)
            i = end

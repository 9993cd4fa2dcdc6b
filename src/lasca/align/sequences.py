"""Two versions of one document, each in sequences of tokens: which tokens stand for which, and what has no partner.

Sequences that are the same in both (white space and tokenisation aside) are found first, so that a version that holds
only a part of the document is laid upon that part and nowhere else. What stands between them is aligned by characters
(`words`), and only where it is the same text: at least half of the characters of the shorter side must match in runs
of `RUN` characters or more, or in runs that begin or end both sides. Single letters match in any two texts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from lasca.align.words import MAX_EDITS, characters, matches

__all__ = ["Alignment", "align_sequences"]

RUN = 5
Pair = tuple[int, int]


@dataclass(frozen=True)
class Alignment:
    """How a source lies upon a target.

    `covers`: for every target token the source tokens that cover at least half of its characters, or None. `share`: how
    many of the characters of the shorter side have a partner. `same`: both have the same characters. `part`: every
    source sequence occurs in the target as it is. `placed`: for every source sequence, whether at least half of its
    characters (or of the target sequence it reaches) have a partner; `behind`: the target sequence that it, or what
    stands before it, reaches (-1: none).
    """

    covers: list[list[int] | None]
    share: float
    same: bool
    part: bool
    placed: list[bool]
    behind: list[int]


def align_sequences(source: Sequence[Sequence[str]], target: Sequence[Sequence[str]]) -> Alignment:
    """Lay the tokens of a source upon those of a target.

    >>> align_sequences([["Bob", "ran"]], [["Ada", "saw", "Rome"], ["Bo", "bran"], ["Hi"]]).covers
    [None, None, None, [0], [0, 1], None]
    """
    left, left_owner = characters([token for tokens in source for token in tokens])
    right, right_owner = characters([token for tokens in target for token in tokens])
    left_edges, right_edges = _edges(source), _edges(target)
    same = left == right
    whole = [] if same else _same_sequences(left, left_edges, right, right_edges)
    pairs = [(i, i) for i in range(len(left))] if same else list(_pairs(left, right, whole))
    n_target = sum(map(len, target))
    shorter = min(len(left), len(right))
    placed, behind = _places(pairs, left_edges, right_edges)
    return Alignment(
        _covers(pairs, left_owner, right_owner, n_target),
        len(pairs) / shorter if shorter else float(same),
        same,
        same or sum(end - start for start, end, _ in whole) == len(left),
        placed,
        behind,
    )


def _edges(sequences: Sequence[Sequence[str]]) -> list[int]:
    """Return where each sequence begins in the characters, and where the last one ends."""
    return [0, *accumulate(len(characters(tokens)[0]) for tokens in sequences)]


def _same_sequences(left: str, left_edges: list[int], right: str, right_edges: list[int]) -> list[tuple[int, int, int]]:
    """Return the sequences both have, in order: the begin and end of each on the left, its begin on the right."""
    a = [left[i:j] for i, j in pairwise(left_edges)]
    b = [right[i:j] for i, j in pairwise(right_edges)]
    return [(left_edges[i], left_edges[i + 1], right_edges[j]) for i, j in matches(a, b, MAX_EDITS)]


def _pairs(left: str, right: str, whole: list[tuple[int, int, int]]) -> Iterator[Pair]:
    """Yield the pairs of characters: all of the sequences both have, and what fits of the text between them."""
    i = j = 0
    for start, end, other in [*whole, (len(left), len(left), len(right))]:
        yield from ((i + x, j + y) for x, y in _between(left[i:start], right[j:other]))
        yield from zip(range(start, end), range(other, other + end - start))
        i, j = end, other + end - start


def _between(left: str, right: str) -> list[Pair]:
    pairs = matches(left, right, MAX_EDITS)
    solid = run = 0
    for k, (i, j) in enumerate(pairs):
        run += 1
        if k + 1 == len(pairs) or pairs[k + 1] != (i + 1, j + 1):
            first = (i - run + 1, j - run + 1) == (0, 0)
            last = (i + 1, j + 1) == (len(left), len(right))
            solid += run if run >= RUN or first or last else 0
            run = 0
    return pairs if 2 * solid >= min(len(left), len(right)) else []


def _covers(pairs: list[Pair], left_owner: list[int], right_owner: list[int], n_target: int) -> list[list[int] | None]:
    covers: list[list[int]] = [[] for _ in range(n_target)]
    matched, size = [0] * n_target, [0] * n_target
    for token in right_owner:
        size[token] += 1
    for i, j in pairs:
        owner, token = left_owner[i], right_owner[j]
        matched[token] += 1
        if not covers[token] or covers[token][-1] != owner:
            covers[token].append(owner)
    return [cover if cover and 2 * m >= n else None for cover, m, n in zip(covers, matched, size)]


def _places(pairs: list[Pair], left_edges: list[int], right_edges: list[int]) -> tuple[list[bool], list[int]]:
    placed, behind = [], []
    at, reached = 0, -1
    for start, end in pairwise(left_edges):
        before = at
        while at < len(pairs) and pairs[at][0] < end:
            at += 1
        shorter = end - start
        if at > before:
            reached = bisect_right(right_edges, pairs[at - 1][1]) - 1
            shorter = min(shorter, right_edges[reached + 1] - right_edges[reached])
        placed.append(2 * (at - before) >= shorter)
        behind.append(reached)
    return placed, behind

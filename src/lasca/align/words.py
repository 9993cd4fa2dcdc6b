"""Two versions of one text: which tokens stand for which, and what has no partner.

*Two tokenisations of one text* (`align_tokens`): which tokens of one cover the characters of each of the other. White
space is no character here. Where both have the same characters the answer is exact and cheap. Otherwise the characters
are aligned by the shortest edit script (Myers 1986, O((n + m) d) for d edits); what has no partner there stays without
one. Texts further apart than `max_edits` are not forced onto each other: the part between their common beginning and
end stays unaligned.

*Two versions of one document, each in sequences of tokens* (`align_sequences`). Sequences that are the same in both
(white space and tokenisation aside) are found first, so that a version that holds only a part of the document is laid
upon that part and nowhere else. What stands between them is aligned by characters, and only where it is the same text:
at least half of the characters of the shorter side must match in runs of `RUN` characters or more, or in runs that
begin or end both sides. Single letters match in any two texts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from lasca.errors import ParameterError

__all__ = ["Alignment", "align_sequences", "align_tokens", "characters", "matches", "same_characters",
           "transfer_labels"]  # fmt: skip

MAX_EDITS = 1000
MAX_WORK = 50_000_000  # steps: what is further apart than this allows is not aligned
RUN = 5
Pair = tuple[int, int]


def same_characters(source: Sequence[str], target: Sequence[str]) -> bool:
    """Say whether two tokenisations have the same characters, white space aside."""
    return _squeeze("".join(source)) == _squeeze("".join(target))


def align_tokens(source: Sequence[str], target: Sequence[str], *, max_edits: int = MAX_EDITS) -> list[list[int] | None]:
    """Return, for every target token, the source tokens that cover its characters in order, or None for none.

    >>> align_tokens(["Iraq", "i", "New York"], ["Iraqi", "New", "York", "!"])
    [[0, 1], [2], [2], None]

    A target token of which only some characters have a partner gets the source tokens of those; an empty source token
    covers nothing.
    """
    left, left_owner = characters(source)
    right, right_owner = characters(target)
    covers: list[list[int] | None] = [None] * len(target)
    pairs = zip(range(len(left)), range(len(right))) if left == right else matches(left, right, max_edits)
    for i, j in pairs:
        owner, token = left_owner[i], right_owner[j]
        known = covers[token]
        if known is None:
            covers[token] = [owner]
        elif known[-1] != owner:
            known.append(owner)
    return covers


def transfer_labels(
    labels: Sequence[str | None],
    covers: Sequence[Sequence[int] | None],
    *,
    partial: str = "shrink",
    count: Callable[[str], Any] | None = None,
) -> list[str | None]:
    """Carry labels of source tokens over to the target tokens that `align_tokens` found for them.

    A target token covered by marked and unmarked (`O`) source tokens is unmarked under "shrink" (only what is
    marked as a whole counts) and marked under "expand"; `count` is then told "shrunk" or "expanded". Among several
    marks the first one counts. Where one source token covers several target tokens, a `B-` or `S-` becomes `I-` on all
    but the first. None, a missing label, is carried over only where no covering token has a label.
    """
    if partial not in ("shrink", "expand"):
        raise ParameterError("partial", partial, "'shrink' or 'expand'")
    result: list[str | None] = []
    taken = -1  # the source token whose mark the previous target token took
    for cover in covers:
        given = [(k, label) for k in cover or () if (label := labels[k]) is not None]
        marked = [(k, label) for k, label in given if label != "O"]
        if marked and len(marked) < len(given):
            if count is not None:
                count("shrunk" if partial == "shrink" else "expanded")
            if partial == "shrink":
                marked = []
        if marked:
            first, label = marked[0]
            result.append("I-" + label[2:] if first == taken and label[:2] in ("B-", "S-") else label)
            taken = marked[-1][0]
        else:
            result.append("O" if given else None)
            taken = -1
    return result


def _squeeze(text: str) -> str:
    return "".join(text.split())


def characters(tokens: Sequence[str]) -> tuple[str, list[int]]:
    """Return all characters but white space, and the token each belongs to."""
    squeezed = [_squeeze(token) for token in tokens]
    return "".join(squeezed), [k for k, token in enumerate(squeezed) for _ in token]


def matches(a: Sequence[str], b: Sequence[str], max_edits: int) -> list[tuple[int, int]]:
    """Return the pairs of equal characters (or other items) under the shortest edit script, in order."""
    shorter = min(len(a), len(b))
    head = 0
    while head < shorter and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < shorter - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    middle = _myers(a[head : len(a) - tail], b[head : len(b) - tail], max_edits)
    return [
        *((k, k) for k in range(head)),
        *((head + i, head + j) for i, j in middle),
        *((len(a) - k, len(b) - k) for k in range(tail, 0, -1)),
    ]


def _myers(a: Sequence[str], b: Sequence[str], max_edits: int) -> list[tuple[int, int]]:
    """Return the matched pairs of the greedy shortest edit script, or none if it has more than `max_edits` edits."""
    limit = min(max_edits, len(a) + len(b), MAX_WORK // (len(a) + len(b) + 1))
    if not a or not b or abs(len(a) - len(b)) > limit:
        return []
    reach: dict[int, int] = {1: 0}  # diagonal -> how far along a
    history: list[dict[int, int]] = []
    for d in range(limit + 1):
        history.append({k: reach[k] for k in range(-d - 1, d + 2, 2) if k in reach})
        for k in range(-d, d + 1, 2):
            down = k == -d or (k != d and reach[k - 1] < reach[k + 1])
            x = reach[k + 1] if down else reach[k - 1] + 1
            y = x - k
            while x < len(a) and y < len(b) and a[x] == b[y]:
                x, y = x + 1, y + 1
            reach[k] = x
            if x >= len(a) and y >= len(b):
                return _traced(history, len(a), len(b))
    return []


def _traced(history: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for d in range(len(history) - 1, -1, -1):
        reach, k = history[d], x - y
        down = k == -d or (k != d and reach[k - 1] < reach[k + 1])
        before = k + 1 if down else k - 1
        start_x = reach[before]
        start_y = start_x - before
        while x > start_x + (not down) and y > start_y + down:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = start_x, start_y
    return pairs[::-1]


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

"""Where a quote stands in a text, whatever was done to its spaces, quotation marks and dashes.

A language model that is asked to quote spans repeats them nearly word for word: it closes or opens spaces ("U.N. 's" as
"U.N.'s"), turns `` and “ into ", writes - for –, composes or decomposes accents. Both sides are brought into one plain
form without white space, with the place of every character kept; case is only given up when nothing else is found.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lasca.errors import excerpt

__all__ = ["Place", "PlainText", "Quoted", "place_quotes", "plain"]

_SAME = {'"': "“”„‟«»″〝〞＂", "'": "‘’‚‛′`´ʼ＇", "-": "‐‑‒–—―−﹘﹣－", "...": "…"}
_PLAIN = {ord(c): to for to, froms in _SAME.items() for c in froms}
_EDGES = "\"'*_<>[]()«»“”"


@dataclass(frozen=True)
class Quoted:
    """A span as an answer gives it: its words, its type, and a hint where it begins (code points), if any."""

    text: str
    label: str
    start: int | None = None


@dataclass(frozen=True)
class Place:
    """Where a quote was found: code points, half-open; `quote` is its number in the answer."""

    start: int
    end: int
    label: str
    quote: int


def plain(text: str) -> tuple[str, list[int]]:
    """Return the plain form of a text and for each of its characters the index it came from."""
    parts: list[str] = []
    source: list[int] = []
    for i, char in enumerate(text):
        if char.isspace() or unicodedata.category(char) == "Cf":
            continue
        form = _PLAIN.get(ord(char)) or unicodedata.normalize("NFKD", char)
        form = "".join(c for c in form if not c.isspace())
        parts.append(form)
        source += [i] * len(form)
    return _double_quotes("".join(parts), source)


def _double_quotes(text: str, source: list[int]) -> tuple[str, list[int]]:
    """Write two single quotation marks in a row (`` and '' of the Penn Treebank) as one double mark."""
    if "''" not in text:
        return text, source
    kept, out, i = [], [], 0
    while i < len(text):
        double = text[i : i + 2] == "''"
        out.append('"' if double else text[i])
        kept.append(source[i])
        i += 2 if double else 1
    return "".join(out), kept


@dataclass
class PlainText:
    """A text with its tokens, ready to be searched."""

    text: str
    chars: Sequence[tuple[int, int]]
    form: str = ""
    source: list[int] = field(default_factory=list)
    folded: str = ""

    def __post_init__(self) -> None:
        self.form, self.source = plain(self.text)
        folded = [(c.casefold(), i) for c, i in zip(self.form, self.source)]
        self.folded = "".join(c for c, _ in folded)
        self._folded_source = [i for c, i in folded for _ in c]
        self._starts = {start for start, _ in self.chars}
        self._ends = {end for _, end in self.chars}

    def find(self, quote: str) -> tuple[list[tuple[int, int]], bool]:
        """Return all places of a quote as (start, end), and whether case had to be given up."""
        wanted = plain(quote)[0]
        for trial in dict.fromkeys((wanted, plain(quote.strip().strip(_EDGES))[0])):
            for form, source, folds in ((self.form, self.source, False), (self.folded, self._folded_source, True)):
                found = _occurrences(form, trial.casefold() if folds else trial)
                if found:
                    return [(source[a], self._end(source, b)) for a, b in found], folds
        return [], False

    def _end(self, source: list[int], stop: int) -> int:
        """Return where a match ends: behind its last character and whatever belongs to that one."""
        last = source[stop - 1] + 1
        while last < len(self.text) and unicodedata.combining(self.text[last]):
            last += 1
        if self.text[last - 1 : last + 1] in ("``", "''"):
            last += 1
        return last

    def on_borders(self, start: int, end: int) -> bool:
        """Say whether a place begins and ends where tokens do."""
        return start in self._starts and end in self._ends


def _occurrences(text: str, wanted: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    at = text.find(wanted) if wanted else -1
    while at >= 0:
        found.append((at, at + len(wanted)))
        at = text.find(wanted, at + 1)
    return found


def place_quotes(quotes: Sequence[Quoted], text: PlainText, count: Callable[..., Any], where: str) -> list[Place]:
    """Find every quote: on token borders if it can be, behind the one before it if it can be, each place once.

    `count(kind, 1, example)` is told of quotes that are not in the text, that stand in it several times (the place was
    chosen by their order, or by the hint), that differ in case, and that were given more often than they stand there.
    """
    taken: set[tuple[int, int, str]] = set()
    placed: list[Place] = []
    cursor = 0
    for number, quote in enumerate(quotes):
        shown = f"{where}: {quote.label} {excerpt(quote.text, 60)!r}"
        found, folded = text.find(quote.text)
        if not found:
            count("quotes not in the text", 1, shown)
            continue
        free = [place for place in found if (*place, quote.label) not in taken]
        if not free:
            count("repeated quotes", 1, shown)
            continue
        if folded:
            count("quotes that differ in case", 1, shown)
        best = [place for place in free if text.on_borders(*place)] or free
        if len(best) > 1:
            count("quotes placed by their order", 1, shown)
        start, end = _nearest(best, quote.start) if quote.start is not None else _next(best, cursor)
        taken.add((start, end, quote.label))
        placed.append(Place(start, end, quote.label, number))
        cursor = start + 1
    return placed


def _nearest(places: list[tuple[int, int]], hint: int) -> tuple[int, int]:
    return min(places, key=lambda place: (abs(place[0] - hint), place))


def _next(places: list[tuple[int, int]], cursor: int) -> tuple[int, int]:
    """Return the first place behind the cursor, or the first of all."""
    at = bisect_left(places, (cursor, 0))
    return places[at] if at < len(places) else places[0]

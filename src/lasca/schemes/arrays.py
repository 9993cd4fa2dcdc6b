"""Spans in arrays of label codes; illegal tags are read as `lasca.schemes` says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lasca.arrays import Array, Bools, Ints

__all__ = ["Spans", "Tags"]


@dataclass(frozen=True)
class Spans:
    """Spans of a flat array of labels: where they begin and end in it, and the code of their type."""

    start: Ints
    stop: Ints
    kind: Ints


class Tags:
    """Letters and types of labels, by their codes; the code -1 is no label, and read as O."""

    def __init__(self, parts: Iterable[tuple[str, str]]) -> None:
        """Take letter and type of each label, as `split_label` gives them."""
        parts = [*parts, ("", "")]
        self.types = tuple(sorted({type_ for letter, type_ in parts if letter}))
        place = {type_: i for i, type_ in enumerate(self.types)}
        self.letter = np.array([letter for letter, _ in parts], "U1")
        self.kind = np.array([place[type_] if letter else -1 for letter, type_ in parts], np.int64)
        self._opens, self._closes = np.isin(self.letter, ("B", "S", "U")), np.isin(self.letter, ("E", "L", "S", "U"))

    def behind_same(self, codes: Array, joined: Bools) -> Bools:
        """Say of each label whether one of its type stands right before it; `joined`: there is its neighbour."""
        kind = self.kind[codes]
        result: Bools = joined & (kind >= 0)
        result[:1] = False
        result[1:] &= kind[1:] == kind[:-1]
        return result

    def goes_on(self, codes: Array, joined: Bools) -> Bools:
        """Say of each label whether it goes on the span of the one before it."""
        result = self.behind_same(codes, joined)
        result[1:] &= ~(self._opens[codes[1:]] | self._closes[codes[:-1]])
        return result

    def spans(self, codes: Array, offsets: Any) -> Spans:
        """Read the spans of sequences that lie behind each other."""
        joined = np.ones(len(codes) + 1, np.bool_)
        joined[np.asarray(offsets[:-1], np.int64)] = False
        goes_on = self.goes_on(codes, joined[:-1])
        start = np.flatnonzero((self.kind[codes] >= 0) & ~goes_on)
        breaks = np.append(np.flatnonzero(~goes_on), len(codes))
        return Spans(start, breaks[np.searchsorted(breaks, start, side="right")], self.kind[codes[start]])

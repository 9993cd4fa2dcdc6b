"""Tokens and the values of their fields as codes: what templates join into the keys of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lasca.crf.fields import BEGIN, END, Lexicons, cluster_values, field_values, gazetteer_places
from lasca.crf.templates import Part
from lasca.errors import ModelError

__all__ = ["Batch", "Fields"]

Array = np.ndarray[Any, Any]
_GAZETTEER = ("B", "I")


class Batch:
    """Tokens as codes of distinct words; codes 0 and 1 stand for what is before and after a sequence."""

    def __init__(self, tokens: Sequence[str], offsets: Array) -> None:
        self.tokens, self.offsets = tokens, np.asarray(offsets, dtype=np.int64)
        index: dict[str, int] = {}
        codes = [index.setdefault(token, len(index)) for token in tokens]
        self.words = list(index)
        self.codes = np.array(codes, dtype=np.int64) + 2
        if len(self.offsets) < 1 or self.offsets[0] != 0 or self.offsets[-1] != len(codes):
            raise ModelError("offsets must begin with 0 and end with the number of tokens", got=self.offsets)
        lengths = np.diff(self.offsets)
        self._start = np.repeat(self.offsets[:-1], lengths)
        self.ends = np.repeat(self.offsets[1:], lengths)
        self._shifted: dict[int, tuple[Array, Array]] = {}

    @property
    def n_words(self) -> int:
        """The number of codes."""
        return len(self.words) + 2

    def places(self, offset: int) -> tuple[Array, Array]:
        """Return the token at an offset from each token, and where that is: 0 before, 1 after, 2 in the sequence."""
        if offset not in self._shifted:
            place = np.arange(len(self.codes)) + offset
            side = np.where(place < self._start, 0, np.where(place >= self.ends, 1, 2))
            self._shifted[offset] = np.where(side == 2, place, 0), side
        return self._shifted[offset]

    def at(self, offset: int) -> Array:
        """Return the code of the word at an offset from each token."""
        if offset == 0:
            return self.codes
        place, side = self.places(offset)
        return np.where(side == 2, self.codes[place] if len(place) else self.codes, side)


class Fields:
    """Codes of field values; vocabularies grow while fitting and are fixed after."""

    def __init__(self, batch: Batch, lexicons: Lexicons, vocabularies: dict[str, dict[str, int]], grow: bool) -> None:
        self.batch, self.lexicons, self.vocabularies, self.grow = batch, lexicons, vocabularies, grow
        self._words: dict[str, Array] = {}
        self._tokens: dict[str, Array] = {}
        self._clusters: dict[str, list[str | None]] = {}
        self._listed: Array | None = None

    def words(self, name: str) -> Array:
        """Return the code of each distinct word's value, −1 for none or unknown."""
        if name not in self._words:
            if name.startswith("cluster:"):
                codes = self._cluster_codes(name)
            else:
                codes = self._codes(name, [BEGIN, END, *field_values(name, self.batch.words)])
            self._words[name] = np.array(codes, dtype=np.int64)
        return self._words[name]

    def _codes(self, name: str, values: list[str | None]) -> list[int]:
        if self.grow:
            known = self.vocabularies.setdefault(name, {})
            return [-1 if v is None else known.setdefault(v, len(known)) for v in values]
        known = self.vocabularies[name]
        return [-1 if v is None else known.get(v, -1) for v in values]

    def _cluster_codes(self, name: str) -> list[int]:
        """Words are looked up once, however many lengths of their path are asked for."""
        which, _, length = name.removeprefix("cluster:").partition(":")
        if which not in self._clusters:
            self._clusters[which] = [BEGIN, END, *cluster_values(which, self.batch.words, self.lexicons)]
        values = self._clusters[which]
        if not length:
            return self._codes(name, values)
        paths = list(dict.fromkeys(values))
        cut = [v if v is None or v in (BEGIN, END) else v[: int(length)] for v in paths]
        code = dict(zip(paths, self._codes(name, cut)))
        return [code[v] for v in values]

    def tokens(self, part: Part) -> Array:
        """Return the code of the value at an offset from each token."""
        if not part.field.startswith("gazetteer:"):
            return np.asarray(self.words(part.field)[self.batch.at(part.offset)])
        if part.field not in self._tokens:
            self._tokens[part.field] = self._gazetteer(part.field)
            self.vocabularies.setdefault(part.field, {v: i for i, v in enumerate(_GAZETTEER)})
        place, side = self.batch.places(part.offset)
        codes = self._tokens[part.field]
        return np.where(side == 2, codes[place] if len(place) else codes, -1)

    def _gazetteer(self, name: str) -> Array:
        """Return 0 for each token that begins a listed phrase, 1 inside one, −1 elsewhere."""
        batch = self.batch
        if self._listed is None:
            some = self.lexicons.listed_words
            self._listed = np.array([i for i, word in enumerate(batch.words) if word in some], dtype=np.int64)
        places, sizes = gazetteer_places(name, batch.words, self._listed, batch.codes - 2, batch.ends, self.lexicons)
        codes = np.full(len(batch.codes), -1, dtype=np.int64)
        start, size = np.array(places, dtype=np.int64), np.array(sizes, dtype=np.int64)
        codes[start] = 0
        for k in range(1, int(size.max(initial=1))):
            codes[start[size > k] + k] = 1
        return codes

    def join(self, codes: list[Array], parts: Sequence[Part]) -> Array:
        """Return one key for the codes of several parts, −1 where one of them is missing."""
        key, span = codes[0], len(self.vocabularies[parts[0].field])
        for code, part in zip(codes[1:], parts[1:]):
            radix = max(len(self.vocabularies[part.field]), 1)
            span *= radix
            if span >= 2**62:
                raise ModelError("a template joins too many different values", got="|".join(p.field for p in parts))
            key = np.where((key < 0) | (code < 0), -1, key * radix + code)
        return key

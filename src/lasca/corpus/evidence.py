"""Evidence beyond hard votes: soft votes (probabilities instead of a label) and known labels.

Both are rows over some of the tokens. A soft vote is a distribution over the labels that an annotator gives a token.
A known row says which labels are allowed at a token: one (the label is known) or several ("keep both"); a token that
has no row may be anything. A pair (token, annotator) speaks once: a hard vote or a soft one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from lasca.arrays import Array, Bools, Codes, Ints, Ints32, Proba, ranges, readonly
from lasca.errors import CorpusError

__all__ = ["KnownLabels", "SoftVotes", "known_labels"]

SUM_TOLERANCE = 1e-3  # how far the probabilities of a soft vote may be from 1 (rounded numbers); they are normalised


@dataclass(frozen=True, eq=False)
class TokenRows:
    """Rows about some of the tokens, in the order of these; the last column has an entry for each label."""

    token: Ints

    def __len__(self) -> int:
        return len(self.token)

    def within(self, first: int, last: int) -> Self:
        """Return the rows about the tokens first..last, which are numbered from 0."""
        part = slice(*np.searchsorted(self.token, (first, last)).tolist())
        return type(self)(self.token[part] - first, *(column[part] for column in self._columns()))

    def take(self, tokens: Ints) -> Self:
        """Return the rows about these tokens, which are numbered anew in their order."""
        first, last = (np.searchsorted(self.token, tokens, side=side) for side in ("left", "right"))
        rows, place = ranges(first, last), np.repeat(np.arange(len(tokens), dtype=np.int64), last - first)
        return type(self)(place, *(column[rows] for column in self._columns()))

    def only(self, stays: Bools) -> Self:
        """Return some of the rows: `stays` says of each whether it is there."""
        return type(self)(self.token[stays], *(column[stays] for column in self._columns()))

    def recoded(self, code: Array, n_labels: int) -> Self:
        """Return the rows over other labels: label t becomes code[t]; nothing is for a label that is new."""
        columns = self._columns()
        found = np.zeros((len(self), n_labels), columns[-1].dtype)
        found[:, code] = columns[-1]
        columns[-1] = found
        return type(self)(self.token, *columns)

    def _columns(self) -> list[Any]:
        """Return all columns but `token`."""
        return [getattr(self, column.name) for column in fields(self)[1:]]

    @classmethod
    def joined(cls, parts: Iterable[tuple[Self | None, int]]) -> Self | None:
        """Put rows behind each other, the tokens of each counted from a number; None if there are none."""
        found = [(rows.token + start, *rows._columns()) for rows, start in parts if rows is not None]
        return cls(*(np.concatenate(columns) for columns in zip(*found))) if found else None


@dataclass(frozen=True, eq=False)
class SoftVotes(TokenRows):
    """Distributions that annotators gave tokens, sorted by token, then annotator."""

    annotator: Ints32
    proba: Proba
    """(n, n_labels): rows sum to 1. A uniform row says nothing, a one-hot row is as good as a hard vote."""

    @classmethod
    def of(cls, token: npt.ArrayLike, annotator: npt.ArrayLike, proba: npt.ArrayLike) -> SoftVotes:
        """Sort soft votes that come in any order."""
        tokens, annotators = np.asarray(token, np.int64), np.asarray(annotator, np.int32)
        order = np.lexsort((annotators, tokens))
        return cls(tokens[order], annotators[order], np.asarray(proba)[order])

    def checked(self, n_tokens: int, n_annotators: int, n_labels: int) -> SoftVotes:
        """Return them in their exact types, or raise a CorpusError that names what is wrong."""
        token, annotator = np.asarray(self.token, np.int64), np.asarray(self.annotator, np.int32)
        proba = np.asarray(self.proba)
        if token.ndim != 1 or annotator.shape != token.shape or proba.shape != (len(token), n_labels):
            raise CorpusError(
                f"soft votes need a token, an annotator and {n_labels} probabilities each",
                got=(token.shape, annotator.shape, proba.shape),
            )
        _check_range("the tokens of soft votes", token, n_tokens)
        _check_range("the annotators of soft votes", annotator, n_annotators)
        rises = (np.diff(token) > 0) | ((np.diff(token) == 0) & (np.diff(annotator) > 0))
        if not rises.all():
            at = int(np.argmin(rises)) + 1
            raise CorpusError(
                "soft votes must be sorted by token and annotator, one for each pair",
                where=f"token {token[at]}",
                got=f"annotator {annotator[at]}",
            )
        total = proba.sum(axis=1, dtype=np.float64)
        wrong = ~(np.abs(total - 1) <= SUM_TOLERANCE) | ~(proba >= 0).all(axis=1)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise CorpusError(
                "the probabilities of a soft vote must be at least 0 and add up to 1",
                where=f"token {token[at]}",
                got=proba[at].tolist(),
            )
        if proba.dtype != np.float32:
            proba = (proba / total[:, None]).astype(np.float32)
        columns: list[Any] = [np.ascontiguousarray(column) for column in (token, annotator, proba)]
        return SoftVotes(*map(readonly, columns))

    def keep(self, code: Ints32) -> SoftVotes:
        """Return the votes of annotators whose new code is not negative."""
        kept = self.only(code[self.annotator] >= 0)
        return SoftVotes.of(kept.token, code[kept.annotator], kept.proba)


@dataclass(frozen=True, eq=False)
class KnownLabels(TokenRows):
    """What is known beforehand: the tokens (rising) of which something is known, and the labels allowed there."""

    allowed: Bools
    """(n, n_labels): at least one label of each row is allowed, and not all are."""

    def checked(self, n_tokens: int, labels: Sequence[str]) -> KnownLabels | None:
        """Return it in its exact types, None if nothing is known, or raise a CorpusError."""
        token, allowed = np.asarray(self.token, np.int64), np.asarray(self.allowed)
        if token.ndim != 1 or allowed.dtype != np.bool_ or allowed.shape != (len(token), len(labels)):
            raise CorpusError(f"known labels need a token and {len(labels)} flags each", got=allowed.shape)
        _check_range("the tokens of known labels", token, n_tokens)
        if (np.diff(token) <= 0).any():
            raise CorpusError("the tokens of known labels must rise")
        if not allowed.any(axis=1).all():
            at = int(token[~allowed.any(axis=1)][0])
            raise CorpusError("no label is allowed at a token", where=f"token {at}")
        says = ~allowed.all(axis=1) | (len(labels) == 1)
        if not says.any():
            return None
        return KnownLabels(readonly(token[says]), readonly(allowed[says]))

    def mask(self, n_tokens: int) -> Bools:
        """Return one row per token: which labels it may have (all of them where nothing is known)."""
        result = np.ones((n_tokens, self.allowed.shape[1]), np.bool_)
        result[self.token] = self.allowed
        return result

    def codes(self, n_tokens: int) -> Codes:
        """Return the label of each token where exactly one is allowed, else -1."""
        result = np.full(n_tokens, -1, np.int16)
        one = self.allowed.sum(axis=1) == 1
        result[self.token[one]] = self.allowed[one].argmax(axis=1)
        return result


def known_labels(given: Any, n_tokens: int, labels: Sequence[str]) -> KnownLabels | None:
    """Make known labels of codes (n_tokens; -1 = unknown), a mask (n_tokens, n_labels), or a record of them."""
    if given is None or isinstance(given, KnownLabels):
        return None if given is None else given.checked(n_tokens, labels)
    array = np.asarray(given)
    if array.shape == (n_tokens,) and (array.dtype.kind in "iu" or not array.size):
        if array.size and (array.min() < -1 or array.max() >= len(labels)):
            raise CorpusError(f"known codes must lie in -1..{len(labels) - 1}", got=int(array.max()))
        token = np.flatnonzero(array >= 0)
        allowed = np.zeros((len(token), len(labels)), np.bool_)
        allowed[np.arange(len(token)), array[token]] = True
        return KnownLabels(token, allowed).checked(n_tokens, labels)
    if array.shape == (n_tokens, len(labels)) and array.dtype == np.bool_:
        token = np.flatnonzero(~array.all(axis=1)) if len(labels) > 1 else np.zeros(0, np.int64)
        return KnownLabels(token, array[token]).checked(n_tokens, labels)
    raise CorpusError(
        f"known labels are {n_tokens} codes (-1 = unknown) or a mask ({n_tokens}, {len(labels)}) of what is allowed",
        got=f"{array.dtype} {array.shape}",
    )


def _check_range(what: str, values: Array, bound: int) -> None:
    if values.size and (values.min() < 0 or values.max() >= bound):
        raise CorpusError(f"{what} must lie in 0..{bound - 1}", got=int(values.max()))

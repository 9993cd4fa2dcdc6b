"""The end of a fit, block by block: what is known holds to the letter, labels are chosen, and who was right is counted.

It is done where a block is – in a thread, or on another machine – so that probabilities need not be brought together.
What is counted (`Tally`) adds up over the blocks, and is all that annotators' tables and warnings are made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lasca.arrays import Bools, Codes, Floats, Proba
from lasca.corpus.votes import Block
from lasca.errors import ModelError
from lasca.kernels.counts import tally
from lasca.truth.special import NOTHING_SPECIAL, expected_counts

__all__ = ["Finish", "Part", "Tally", "counted_confusion", "joined"]


class Tally(NamedTuple):
    """What is counted of a block; tallies add up."""

    n: Any
    """How many labels each annotator gave, those who do not vote included."""
    right: Any
    """How many of these are expected to be true."""
    own: Any
    """(n_annotators, n_labels): how often each annotator who votes gave each label."""
    true: Any
    """(n_annotators, n_labels): how often each label was inferred where they voted."""
    inferred: Any
    """How often each label was inferred where anybody voted."""
    per_token: Any
    """How many tokens have no vote, one, and more."""
    counts: Any
    """(n_annotators, n_labels, n_labels), given and true label, if they were wanted; else (0, 0, 0)."""


class Part(NamedTuple):
    """What became of a block."""

    proba: Proba | None
    labels: Codes | None
    voted: Bools | None
    """Whether anybody said anything of a token, or something is known of it."""
    tally: Tally
    statistics: tuple[Any, ...]


@dataclass(frozen=True)
class Finish:
    """Makes a part of a block's probabilities (and of its labels, if the model decodes them itself)."""

    as_said: bool = False
    """All votes are one annotator's, and the model leaves it at that: where they said something, it is the truth."""
    with_counts: bool = False
    """Whether confusions are to be counted, for models that do not give them."""

    def __call__(
        self, number: int, block: Block, proba: Proba, labels: Codes | None, statistics: tuple[Any, ...]
    ) -> Part:
        """Finish a block; `proba` may be written to."""
        if self.as_said and labels is None:
            voted = np.flatnonzero(np.diff(block.start))
            proba[voted] = 0
            proba[voted, block.votes.label[block.start[voted]]] = 1
        labels = _clamp(block, proba, labels)
        proba /= proba.sum(axis=1, keepdims=True)
        if not np.isfinite(proba.sum()):
            raise ModelError("a probability is not a number", hint="This is a bug of the model; tell who wrote it")
        chosen = np.asarray(proba.argmax(axis=1) if labels is None else labels, dtype=np.int16)
        return Part(proba, chosen, block.voted, self._tally(block, proba, chosen), statistics)

    def _tally(self, block: Block, proba: Proba, labels: Codes) -> Tally:
        votes, A, T = block.votes, block.votes.n_annotators, block.votes.n_labels

        def counted(said: Any) -> tuple[Any, ...]:
            found = np.zeros(A), *(np.zeros(shape, np.int64) for shape in ((A, T), (A, T), T, 3))
            tally(block.first, block.last, said.start, said.annotator, said.label, proba, labels, *found)
            return found

        right, own, true, inferred, per_token = counted(votes)
        n = own.sum(axis=1)
        if votes.silent is not None:
            more, silent, *_ = counted(votes.silent)
            right += more
            n += silent.sum(axis=1)
        counts = expected_counts(block, NOTHING_SPECIAL, proba)[0] if self.with_counts else np.zeros((0, 0, 0))
        return Tally(n, right, own, true, inferred, per_token, counts)


def _clamp(block: Block, proba: Proba, labels: Codes | None) -> Codes | None:
    """Make sure that what is known holds to the letter (models take it into account in their inference)."""
    known = block.known
    if known is None:
        return labels
    token, allowed = known.token, known.allowed
    inside = np.where(allowed, proba[token], 0)
    lost = inside.sum(axis=1) <= 0  # all that is allowed underflowed
    inside[lost] = allowed[lost]
    proba[token] = inside / inside.sum(axis=1, keepdims=True)
    if labels is None:
        return None
    chosen = np.array(labels)
    wrong = ~allowed[np.arange(len(token)), chosen[token]]
    chosen[token[wrong]] = proba[token[wrong]].argmax(axis=1)
    return chosen


def counted_confusion(tally: Tally) -> Floats:
    """Return how often each annotator gave each label where each is true, with a whiff of agreement added."""
    T = tally.own.shape[1]
    confusion = tally.counts.transpose(0, 2, 1) + 0.01 / T + np.eye(T) * 0.01
    return np.asarray(confusion / confusion.sum(axis=2, keepdims=True))


def joined(arrays: Sequence[Any]) -> Any:
    """Put arrays behind each other; None where they are elsewhere."""
    return None if arrays[0] is None else np.concatenate(arrays) if len(arrays) > 1 else arrays[0]

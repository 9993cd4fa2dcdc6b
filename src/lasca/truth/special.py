"""Special tokens of a block: those with soft votes, or of which something is known. Token models share this.

A token model multiplies the likelihoods of a token's hard votes. What is known and what soft votes say are more factors
of special tokens, one row each: 1 for a label that is allowed and 0 for one that is not, times what soft votes say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lasca.arrays import Array, Floats, Ints, Ints32
from lasca.corpus.votes import Block
from lasca.kernels.counts import vote_shares

__all__ = ["NOTHING_SPECIAL", "Special", "as_rows", "expected_counts", "shares_of", "special_tokens"]


@dataclass(frozen=True)
class Special:
    """The special tokens of a block, in the order of the tokens."""

    index: Ints32
    """The row of each token of the block, -1 for those that are not special; empty if none is."""
    allowed: Floats
    """(n_special, n_labels): 1 where a label is allowed, else 0."""
    place: Ints
    """The row of each soft vote."""
    annotator: Ints32
    proba: Floats
    """(n_soft, n_labels), rows that sum to 1."""
    voices: Ints
    """How many speak of each special token: votes, soft votes, and one if something is known."""

    def __len__(self) -> int:
        return len(self.allowed)


NOTHING_SPECIAL = Special(
    np.zeros(0, np.int32),
    np.zeros((0, 0)),
    np.zeros(0, np.int64),
    np.zeros(0, np.int32),
    np.zeros((0, 0)),
    np.zeros(0, np.int64),
)


def special_tokens(block: Block) -> Special:
    """Find the special tokens of a block."""
    known, soft, n_labels = block.known, block.soft, block.votes.n_labels
    if known is None and soft is None:
        return NOTHING_SPECIAL
    special = np.unique(np.concatenate([rows.token for rows in (known, soft) if rows is not None]))
    index = np.full(len(block), -1, np.int32)
    index[special] = np.arange(len(special), dtype=np.int32)
    allowed = np.ones((len(special), n_labels))
    if known is not None:
        allowed[np.searchsorted(special, known.token)] = known.allowed
    place, annotator, proba = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros((0, n_labels))
    if soft is not None:
        place = np.searchsorted(special, soft.token)
        annotator, proba = soft.annotator, soft.proba.astype(np.float64)
        proba /= proba.sum(axis=1, keepdims=True)
    voices = np.diff(block.start)[special] + np.bincount(place, minlength=len(special)) + (allowed == 0).any(axis=1)
    return Special(index, allowed, place, annotator, proba, voices)


def shares_of(block: Block, special: Special) -> Floats:
    """Return the shares of the votes of each token, soft ones by their probabilities, of what is allowed.

    Zeros where nothing is said; what is allowed in equal shares where no vote is for it.
    """
    shares = np.empty((len(block), block.votes.n_labels))
    vote_shares(block.start, block.votes.label, shares)
    if not len(special):
        return shares
    n = np.diff(block.start)[special.index >= 0].astype(np.float64)[:, None]
    sums = shares[special.index >= 0] * n
    np.add.at(sums, special.place, special.proba)
    sums *= special.allowed
    lost = sums.sum(axis=1) <= 0
    sums[lost] = special.allowed[lost]
    shares[special.index >= 0] = sums / sums.sum(axis=1, keepdims=True)
    return shares


def expected_counts(block: Block, special: Special, q: Array) -> tuple[Floats, Floats]:
    """Return counts (annotator, given, true) and totals (true) with q as the posterior of each token."""
    votes, T = block.votes, block.votes.n_labels
    token, cell = block.token, votes.annotator[block.hard].astype(np.int64) * T + votes.label[block.hard]
    counts = np.zeros((votes.n_annotators * T, T))
    for t in range(T):
        counts[:, t] = np.bincount(cell, weights=q[token, t], minlength=len(counts))
    tables = counts.reshape(votes.n_annotators, T, T)
    if len(special.place):
        at = np.flatnonzero(special.index >= 0)[special.place]
        np.add.at(tables, special.annotator, special.proba[:, :, None] * q[at][:, None, :])
    return tables, q.sum(axis=0)


def as_rows(matrix: Floats, width: int) -> Any:
    """Return rows widened to `width` with zeros, behind each other."""
    wide = np.zeros((len(matrix), width))
    wide[:, : matrix.shape[1]] = matrix
    return wide

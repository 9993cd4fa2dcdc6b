"""What speaks of tokens, as rows of tables: which rows bear on a token, and their expected counts.

A *source* is anything that says something of tokens: annotators (`annotator_models`), words, taggers (`Texts`). A vote
points at the row of (annotator, label given), with memory of (annotator, label before, label given); a token points at
the row of its word. A table (n_rows, S) holds the (expected) log likelihood of each row given each state of the chain.
Only rows that occur are kept: with 300 labels the full table of annotators with memory would not fit.

A chain learner (`chain`) asks its sources block by block: `look` at a block once, then `evidence` on its tokens and
`expected` counts of its rows, which add up; `update` makes the next table of the sum (`lasca.kernels.tables`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lasca.arrays import Codes, Floats, Ints, Ints32, Proba, readonly
from lasca.corpus.votes import Block
from lasca.kernels import rows as kernels
from lasca.kernels.tables import (
    crossed,
    dirichlet_kl,
    dirichlet_rows,
    drawn_rows,
    expected_log,
    marginal_rows,
    multinomial_rows,
    times,
)

__all__ = [
    "DrawnSource", "Floats", "RowCounts", "SoftVoices", "Source", "Texts", "View", "Words", "dirichlet_rows",
    "labels_before", "numbered",
]  # fmt: skip


def numbered(code: npt.NDArray[np.integer], n_codes: int) -> tuple[Ints, Ints32]:
    """Return the codes below `n_codes` that occur, in order, and the number of each entry's among them."""
    if n_codes > max(1 << 18, 4 * len(code)):
        kept, inverse = np.unique(code, return_inverse=True)
        return kept.astype(np.int64), np.asarray(inverse, dtype=np.int32).reshape(-1)
    present = np.zeros(n_codes, np.bool_)
    present[code] = True
    number = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(present), number[code]


def labels_before(block: Block) -> Codes:
    """Return, for each vote, the label its annotator gave the token before; n_labels if there is none."""
    votes, hard = block.votes, block.hard
    out = np.empty(block.n_votes, np.int16)
    arrays = (readonly(block.offsets), readonly(block.start - hard.start), votes.annotator[hard], votes.label[hard])
    kernels.previous_labels(*arrays, np.int16(votes.n_labels), out)
    return out


class Source(Protocol):
    """Anything that speaks about tokens."""

    def look(self, block: Block) -> Any:
        """Return what the source says of a block, as the other calls want it."""

    def evidence(self, table: Any, view: Any, out: Floats) -> None:
        """Add the (expected) log likelihood of what is said of each token, given each state, to `out`."""

    def expected(self, table: Any, view: Any, proba: Floats) -> Any:
        """Return the expected counts of what is said under the states' posteriors; `table` None: at the start."""

    def update(self, counts: Any, table: Any) -> tuple[Any, float]:
        """Return the table after these counts, made with `table`, and KL(q || p), or minus the log prior density."""


class DrawnSource(Source, Protocol):
    """A source whose table can be drawn, for Gibbs sampling."""

    def draw(self, counts: Any, rng: np.random.Generator) -> Any:
        """Return a table drawn from its posterior after these counts."""

    def log_marginal(self, counts: Any) -> float:
        """Return the log probability of what is said, the table integrated out."""


class RowCounts:
    """Expected counts of the rows that occur in a block; added up, those of the whole table."""

    __slots__ = ("n_rows", "own", "values")

    def __init__(self, n_rows: int, own: Ints | None, values: Floats) -> None:
        self.n_rows, self.own, self.values = n_rows, own, values  # own None: all rows

    def __iadd__(self, more: RowCounts) -> RowCounts:
        self.values, self.own = self.table(), None
        self.values[slice(None) if more.own is None else more.own] += more.values
        return self

    def table(self) -> Floats:
        """Return the counts of all rows."""
        if self.own is None or len(self.own) == self.n_rows:
            return self.values
        table = np.zeros((self.n_rows, self.values.shape[1]))
        table[self.own] = self.values
        return table


@dataclass(frozen=True)
class View:
    """The rows of a table that bear on the tokens of a block."""

    start: Ints | None
    """CSR by token, or None: then each token has exactly one row."""
    row: Ints32
    """Places in `own`."""
    own: Ints
    """The rows of the table that occur in the block."""
    weight: Floats | None = None
    """How much each entry of `row` counts; None: all as one."""

    def add(self, table: Floats, out: Floats) -> None:
        """Add the rows of the block's own table to the tokens they bear on."""
        kernels.add_view(*self._arrays(), table, out)

    def count(self, proba: Floats) -> Floats:
        """Return the expected counts of the block's own rows."""
        counts = np.zeros((len(self.own), proba.shape[1]))
        kernels.count_view(*self._arrays(), proba, counts)
        return counts

    def _arrays(self) -> tuple[Any, ...]:
        """Return start, row and weight as kernels take them: of one type each, so that one kernel is compiled."""
        start = np.empty(0, np.int64) if self.start is None else self.start
        weight = np.empty(0) if self.weight is None else self.weight
        return readonly(start), readonly(self.row), readonly(weight)


@dataclass(frozen=True)
class Words:
    """Labels emit words: w ~ Mult(ρ_k). Words know the kind of a state, not its level of difficulty."""

    n_words: int
    prior: float
    """Pseudo-count of each word."""
    levels: int = 1
    variational: bool = True
    """Whether ρ has a posterior under Dir(prior), or is at its mode under Dir(1 + prior)."""

    def look(self, block: Block) -> View:
        """Find the words of a block."""
        assert block.votes.words is not None
        own, row = numbered(block.votes.words[block.first : block.last], self.n_words)
        return View(None, row, own)

    def evidence(self, table: Floats, view: View, out: Floats) -> None:
        """Add the row of each token's word."""
        view.add(np.tile(table[view.own], (1, self.levels)), out)

    def expected(self, table: Floats | None, view: View, proba: Floats) -> RowCounts:
        """Count words by kind of state."""
        if self.levels > 1:
            proba = proba.reshape(len(proba), self.levels, -1).sum(axis=1)
        return RowCounts(self.n_words, view.own, view.count(proba))

    def update(self, counts: RowCounts, table: Floats | None) -> tuple[Floats, float]:
        """Add the counts to the prior."""
        return (dirichlet_rows if self.variational else multinomial_rows)(counts.table(), self.prior)

    def draw(self, counts: RowCounts, rng: np.random.Generator) -> Floats:
        """Draw ρ."""
        return drawn_rows(counts.table(), self.prior, rng)

    def log_marginal(self, counts: RowCounts) -> float:
        """Return the log probability of the words, ρ integrated out."""
        return marginal_rows(counts.table(), self.prior)


@dataclass(frozen=True)
class Texts:
    """A tagger as one more annotator, Π_s Φ_ts^{q_is}: its probabilities q are fractions of votes, Φ is learned."""

    prior: Floats
    """Pseudo-counts (true, said by the tagger)."""
    levels: int = 1

    def look(self, block: Block) -> Proba:
        """Take the tagger's probabilities of a block."""
        said: Proba = block.beside.text
        return said

    def evidence(self, table: Floats, view: Proba, out: Floats) -> None:
        """Add what the tagger's words are worth."""
        out += np.tile(times(view, np.ascontiguousarray(table.T)), (1, self.levels))

    def expected(self, table: Floats | None, view: Proba, proba: Floats) -> Floats:
        """Count (true, said)."""
        if self.levels > 1:
            proba = proba.reshape(len(proba), self.levels, -1).sum(axis=1)
        counts: Floats = crossed(proba, view)
        return counts

    def update(self, counts: Floats, table: Floats | None) -> tuple[Floats, float]:
        """Add the counts to the prior."""
        return expected_log(counts + self.prior), dirichlet_kl(counts + self.prior, self.prior)

    def draw(self, counts: Floats, rng: np.random.Generator) -> Floats:
        """Draw Φ."""
        return drawn_rows(counts.T, self.prior.T, rng).T

    def log_marginal(self, counts: Floats) -> float:
        """Return the log probability of what the tagger says, Φ integrated out."""
        return marginal_rows(counts.T, self.prior.T)


@dataclass(frozen=True)
class SoftVoices(Texts):
    """An annotator who gives soft votes, heard as a tagger is."""

    annotator: int = 0

    def look(self, block: Block) -> Proba:
        """Take what the annotator says of a block; rows of zeros where they say nothing."""
        soft, rows = block.soft, np.zeros((len(block), block.votes.n_labels), np.float32)
        if soft is not None:
            own = soft.only(soft.annotator == self.annotator)
            rows[own.token] = own.proba
        return rows

"""Evidence on tokens as rows of tables: which rows bear on a token, their expected counts, tables made of these.

An annotation points at the row of (annotator, label given), with memory of (annotator, label before, label given); a
token points at the row of its word. A table (n_rows, T) holds the (expected) log likelihood of each row given each true
label. Only rows that occur are kept: with 300 labels the full table of annotators with memory would not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, psi

from lasca.corpus import CrowdCorpus
from lasca.engine import chunks, run_ordered
from lasca.kernels import rows as kernels
from lasca.truth.base import Votes

__all__ = [
    "CHUNK",
    "Floats",
    "Rows",
    "Sources",
    "add_evidence",
    "annotation_rows",
    "context_borders",
    "dirichlet_rows",
    "expected_rows",
    "memory",
    "multinomial_rows",
    "word_rows",
]

Floats = npt.NDArray[np.float64]
CHUNK = 20_000
"""Tokens per piece of work."""


@dataclass(frozen=True)
class Rows:
    """Which rows of a table bear on each token, and which tokens each row bears on."""

    start: npt.NDArray[np.int64] | None
    """CSR by token, or None: then each token has exactly one row."""
    row: npt.NDArray[np.int32]
    by_row_start: npt.NDArray[np.int64]
    by_row: npt.NDArray[np.int32]
    code: npt.NDArray[np.int64]
    """What each row stands for; for annotations (annotator · contexts + label before) · T + label given."""

    @property
    def n_rows(self) -> int:
        """How many different rows occur."""
        return len(self.code)


def _rows(start: npt.NDArray[np.int64], code: npt.NDArray[np.int64], n_codes: int, single: bool) -> Rows:
    """Number the codes that occur, in order, and list the tokens of each."""
    if n_codes <= max(1 << 20, 4 * len(code)):
        present = np.zeros(n_codes, np.bool_)
        present[code] = True
        kept = np.flatnonzero(present)
        number = np.cumsum(present, dtype=np.int32) - np.int32(1)
        row = number[code]
    else:
        kept, inverse = np.unique(code, return_inverse=True)
        row = inverse.astype(np.int32)
    by_row_start, by_row = np.empty(len(kept) + 1, np.int64), np.empty(len(code), np.int32)
    kernels.group_tokens(start, row, by_row_start, by_row)
    return Rows(None if single else start, row, by_row_start, by_row, kept)


def memory(votes: Votes) -> npt.NDArray[np.int16]:
    """Return, for each annotation, the label its annotator gave the token before; n_labels if there is none."""
    out = np.empty(len(votes.label), np.int16)
    kernels.previous_labels(votes.offsets, votes.start, votes.annotator, votes.label, np.int16(votes.n_labels), out)
    return out


def annotation_rows(votes: Votes, previous: npt.NDArray[np.int16] | None = None) -> Rows:
    """Make rows of (annotator, label given), or with `previous` of (annotator, label before, label given)."""
    T = votes.n_labels
    code = votes.annotator.astype(np.int64)
    contexts = 1
    if previous is not None:
        contexts = T + 1
        code *= contexts
        code += previous
    code *= T
    code += votes.label
    return _rows(votes.start, code, votes.n_annotators * contexts * T, single=False)


def word_rows(corpus: CrowdCorpus) -> Rows:
    """Make a row of each different word of the corpus; every token has one."""
    word, names = corpus.tokens.codes()
    start = np.arange(corpus.n_tokens + 1, dtype=np.int64)
    return _rows(start, word.astype(np.int64), len(names), single=True)


def expected_rows(rows: Rows, proba: Floats, n_threads: int = 1) -> Floats:
    """Return the expected counts of a table's rows, (n_rows, T)."""
    out = np.empty((rows.n_rows, proba.shape[1]))

    def work(chunk: tuple[int, int]) -> None:
        kernels.sum_by_row(*chunk, rows.by_row_start, rows.by_row, proba, out)

    run_ordered(work, chunks(rows.by_row_start, 4 * CHUNK), n_threads)
    return out


Sources = Sequence[tuple[Rows, Floats]]
"""Rows with their tables."""


def add_evidence(first: int, last: int, sources: Sources, out: Floats) -> None:
    """Add the rows that bear on tokens first..last to `out`, whose row 0 is that of token `first`."""
    for rows, table in sources:
        if rows.start is None:
            kernels.add_row(first, last, rows.row, table, out)
        else:
            kernels.add_rows(first, last, rows.start, rows.row, table, out)


# --- tables from expected counts --------------------------------------------------------------------------------


def dirichlet_rows(
    counts: Floats,
    prior: Floats | float,
    prior_total: Floats | None = None,
    borders: npt.NDArray[np.int64] | None = None,
) -> tuple[Floats, float]:
    """Return E log of a table's rows under variational Bayes, and KL(q || p).

    Rows borders[c]:borders[c + 1] belong to context c; in each context every true label t has one Dirichlet over the
    rows, with pseudo-counts `prior` (n_rows, T). `prior_total` (n_contexts, T) also counts rows that never occur.
    Without these two all rows are one context, and all of it occurs (words).
    """
    prior, prior_total, borders = _context(counts, prior, prior_total, borders)
    totals = np.add.reduceat(counts, borders[:-1], axis=0) + prior_total
    alpha = counts + prior
    table = psi(alpha)
    table -= np.repeat(psi(totals), np.diff(borders), axis=0)
    kl = np.sum(gammaln(totals) - gammaln(prior_total)) + np.sum(gammaln(prior) - gammaln(alpha) + counts * table)
    return table, float(kl)


def _context(
    counts: Floats, prior: Floats | float, prior_total: Floats | None, borders: npt.NDArray[np.int64] | None
) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    prior = np.broadcast_to(prior, counts.shape)
    if borders is None:
        borders = np.array([0, len(counts)])
    if prior_total is None:
        prior_total = np.add.reduceat(prior, borders[:-1], axis=0)
    return prior, prior_total, borders


def multinomial_rows(
    counts: Floats,
    prior: Floats | float,
    prior_total: Floats | None = None,
    borders: npt.NDArray[np.int64] | None = None,
) -> tuple[Floats, float]:
    """Return the log of a table's rows at the posterior mode under Dir(1 + prior), and minus their log prior density.

    The arguments are those of `dirichlet_rows`; the density is up to a constant.
    """
    prior, prior_total, borders = _context(counts, prior, prior_total, borders)
    sizes = np.diff(borders)
    totals = np.add.reduceat(counts, borders[:-1], axis=0) + prior_total
    table = np.log(counts + prior) - np.repeat(np.log(totals), sizes, axis=0)
    absent = prior_total - np.add.reduceat(prior, borders[:-1], axis=0)
    return table, float(np.sum(absent * np.log(totals)) - np.sum(prior * table))


def context_borders(context: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return where each run of equal contexts begins, and the end."""
    return np.concatenate(([0], np.flatnonzero(np.diff(context)) + 1, [len(context)]))

"""Tables: products of tall ones, (tokens, labels), and tables of log probabilities made from expected counts.

Products are summed in one order: BLAS sums in one that depends on its threads. All is float64 inside: what comes as
float32 is copied, so that one kind is compiled and not four.

Counts and a Dirichlet prior make a table: its expected log, its mode, or a draw. Each row is one Dirichlet
(`expected_log`); or each column is one for every run of rows, a *context* (`dirichlet_rows` and those below).
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated, import-untyped"
from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, psi

from lasca.kernels.compiled import kernel

__all__ = [
    "context_borders", "crossed", "dirichlet_kl", "dirichlet_rows", "drawn_rows", "expected_log", "marginal_rows",
    "multinomial_rows", "rising", "times",
]  # fmt: skip

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


# --- products ---------------------------------------------------------------------------------------------------------


def crossed(a: Any, b: Any) -> Any:
    """Return aᵀ b, (T, S), for a (n, T) and b (n, S)."""
    out = np.zeros((a.shape[1], b.shape[1]))
    _crossed(np.ascontiguousarray(a, dtype=np.float64), np.ascontiguousarray(b, dtype=np.float64), out)
    return out


def times(a: Any, table: Any) -> Any:
    """Return a · table, (n, S), for a (n, T) and a table (T, S)."""
    out = np.zeros((a.shape[0], table.shape[1]))
    _times(np.ascontiguousarray(a, dtype=np.float64), np.ascontiguousarray(table, dtype=np.float64), out)
    return out


@kernel
def _crossed(a, b, out):
    for i in range(a.shape[0]):
        for t in range(a.shape[1]):
            weight = a[i, t]
            for s in range(b.shape[1]):
                out[t, s] += weight * b[i, s]


@kernel
def _times(a, table, out):
    for i in range(a.shape[0]):
        for t in range(a.shape[1]):
            weight = a[i, t]
            for s in range(table.shape[1]):
                out[i, s] += weight * table[t, s]


# --- tables from expected counts --------------------------------------------------------------------------------------


def expected_log(alpha: npt.ArrayLike) -> Floats:
    """Return E[ln p] under Dir(alpha), row by row: ψ(α) − ψ(Σ α)."""
    a = np.asarray(alpha, dtype=np.float64)
    return np.asarray(psi(a) - psi(a.sum(axis=-1, keepdims=True)))


def dirichlet_kl(alpha: npt.ArrayLike, prior: npt.ArrayLike) -> float:
    """Return the sum over rows of KL(Dir(alpha) || Dir(prior))."""
    a = np.asarray(alpha, dtype=np.float64)
    b = np.broadcast_to(np.asarray(prior, dtype=np.float64), a.shape)
    rows = gammaln(a.sum(axis=-1)) - gammaln(b.sum(axis=-1)) + (gammaln(b) - gammaln(a)).sum(axis=-1)
    return float(np.sum(rows + ((a - b) * expected_log(a)).sum(axis=-1)))


def dirichlet_rows(
    counts: Floats,
    prior: Floats | float,
    prior_total: Floats | None = None,
    borders: Ints | None = None,
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
    counts: Floats, prior: Floats | float, prior_total: Floats | None, borders: Ints | None
) -> tuple[Floats, Floats, Ints]:
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
    borders: Ints | None = None,
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


def drawn_rows(
    counts: Floats,
    prior: Floats | float,
    rng: np.random.Generator,
    prior_total: Floats | None = None,
    borders: Ints | None = None,
) -> Floats:
    """Draw the log of a table's rows, as `dirichlet_rows` takes them; what never occurs is one more row."""
    prior, prior_total, borders = _context(counts, prior, prior_total, borders)
    sizes = np.diff(borders)
    log = _log_gamma(counts + prior, rng)
    highest = np.maximum.reduceat(log, borders[:-1], axis=0)
    total = highest + np.log(np.add.reduceat(np.exp(log - np.repeat(highest, sizes, axis=0)), borders[:-1], axis=0))
    absent = prior_total - np.add.reduceat(prior, borders[:-1], axis=0)
    total = np.logaddexp(total, np.where(absent > 1e-9, _log_gamma(np.maximum(absent, 1e-9), rng), -np.inf))
    return np.asarray(log - np.repeat(total, sizes, axis=0))


def _log_gamma(alpha: Floats, rng: np.random.Generator) -> Floats:
    """Draw logs of Gamma(alpha) variables, without underflow for small alpha."""
    return np.asarray(np.log(rng.standard_gamma(alpha + 1.0)) + np.log(rng.random(alpha.shape)) / alpha)


def marginal_rows(
    counts: Floats,
    prior: Floats | float,
    prior_total: Floats | None = None,
    borders: Ints | None = None,
) -> float:
    """Return the log probability of counts, the table integrated out; the arguments are those of `dirichlet_rows`."""
    prior, prior_total, borders = _context(counts, prior, prior_total, borders)
    return rising(prior, counts) - rising(prior_total, np.add.reduceat(counts, borders[:-1], axis=0))


def rising(prior: Floats | float, counts: Floats | float) -> float:
    """Return the sum of ln Γ(prior + counts) / Γ(prior)."""
    return float(np.sum(gammaln(prior + counts) - gammaln(prior)))


def context_borders(context: Ints) -> Ints:
    """Return where each run of equal contexts begins, and the end."""
    return np.concatenate(([0], np.flatnonzero(np.diff(context)) + 1, [len(context)]))

"""Slips at single tokens: who is wrong where, and which wrong label is written.

An annotator l starts from a label t and keeps it with its precision p_lt; otherwise it writes s ≠ t drawn from a row
W_ts of a matrix with an empty diagonal:

- `uniform`: every other label that occurs in the gold is equally likely;
- `prior`: a label is drawn by its frequency γ in the gold; where that happens to be the right one, any other label
  evenly: W_ts = γ_s + γ_t / (T − 1);
- `annotator`: each annotator has an own row per label, drawn from a Dirichlet with equal parameters `concentration`;
- `shared`: one such row per label, the same for all annotators.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

__all__ = ["label_shares", "off_diagonal", "pick", "right", "wrong_rows"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int16]


def label_shares(gold: Codes, n_labels: int) -> Floats:
    """Return how often each label occurs among the tokens that have one."""
    count = np.bincount(gold[gold >= 0], minlength=n_labels).astype(np.float64)
    shares: Floats = count / max(count.sum(), 1.0)
    return shares


def wrong_rows(kind: str, shares: Floats, rng: np.random.Generator, *, concentration: float = 1.0) -> Floats:
    """Return W (n_labels, n_labels): rows sum to 1 with nothing on the diagonal.

    A label without any alternative (there is only one label) keeps an empty row; nobody can be wrong there.
    """
    n = len(shares)
    used = (shares > 0).astype(np.float64)
    if kind == "prior":
        even = used / max(used.sum() - 1, 1)
        return off_diagonal(shares + shares[:, None] * even)
    if kind == "uniform":
        return off_diagonal(np.tile(used, (n, 1)))
    return off_diagonal(rng.standard_gamma(concentration, (n, n)) * used + 1e-300 * used)


def off_diagonal(weights: Floats) -> Floats:
    """Return the weights without their diagonal, each row divided by its sum (an empty row stays empty)."""
    rows = weights.astype(np.float64)
    np.fill_diagonal(rows, 0.0)
    total = rows.sum(axis=1, keepdims=True)
    result: Floats = np.divide(rows, total, out=np.zeros_like(rows), where=total > 0)
    return result


def pick(rows: Floats, row: npt.NDArray[np.integer], uniform: Floats, *, keep_empty: bool = True) -> Codes:
    """Choose one column for each entry of `row`, by the probabilities in that row of `rows` and a number in [0, 1).

    An empty row gives its own number: the label stays (`keep_empty=False` says that there is none).
    """
    n_rows, n_columns = rows.shape
    cumulated = np.cumsum(rows, axis=1)
    cumulated[cumulated >= cumulated[:, -1:] * (1 - 1e-12)] = 1.0  # from the last possible column on
    flat = (cumulated + np.arange(n_rows)[:, None]).ravel()
    drawn = uniform * (1 - 1e-9)
    found = np.searchsorted(flat, row + drawn, side="right") - row.astype(np.int64) * n_columns
    if keep_empty:
        empty = rows.sum(axis=1) == 0
        if empty.any():
            found = np.where(empty[row], row, found)
    drawn_codes: Codes = found.astype(np.int16)
    return drawn_codes


def right(
    precision: Floats, difficulty: Floats | None, rho: float, rng: np.random.Generator, n: int
) -> npt.NDArray[np.bool_]:
    """Say for n tokens whether an annotator of this precision (per token) is right.

    Independent, or by a Gaussian copula over the tokens' difficulty h: Φ⁻¹(precision) > √ρ h + √(1 − ρ) ε.
    """
    if difficulty is None:
        return rng.random(n) < precision
    noise = np.sqrt(rho) * difficulty + np.sqrt(1 - rho) * rng.standard_normal(n)
    kept: npt.NDArray[np.bool_] = ndtri(precision) > noise
    return kept

"""Tables: products of tall ones, (tokens, labels), and Dirichlet terms, each row being a Dirichlet.

Products are summed in one order: BLAS sums in one that depends on its threads. All is float64 inside: what comes as
float32 is copied, so that one kind is compiled and not four.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated, import-untyped"
from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, psi

from lasca.kernels.compiled import kernel

__all__ = ["crossed", "dirichlet_kl", "expected_log", "times"]


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


def expected_log(alpha: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return E[ln p] under Dir(alpha), row by row: ψ(α) − ψ(Σ α)."""
    a = np.asarray(alpha, dtype=np.float64)
    return np.asarray(psi(a) - psi(a.sum(axis=-1, keepdims=True)))


def dirichlet_kl(alpha: npt.ArrayLike, prior: npt.ArrayLike) -> float:
    """Return the sum over rows of KL(Dir(alpha) || Dir(prior))."""
    a = np.asarray(alpha, dtype=np.float64)
    b = np.broadcast_to(np.asarray(prior, dtype=np.float64), a.shape)
    rows = gammaln(a.sum(axis=-1)) - gammaln(b.sum(axis=-1)) + (gammaln(b) - gammaln(a)).sum(axis=-1)
    return float(np.sum(rows + ((a - b) * expected_log(a)).sum(axis=-1)))

"""Special functions: a scalar one for Numba kernels, and Dirichlet terms on tables (each row is a Dirichlet)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, psi

from lasca.kernels.compiled import kernel

__all__ = ["dirichlet_kl", "expected_log", "log_sigmoid"]

Floats = npt.NDArray[np.float64]


@kernel
def log_sigmoid(x: float) -> float:
    """Return ln 1 / (1 + e^−x) without overflow."""
    if x < 0.0:
        return x - math.log1p(math.exp(x))
    return -math.log1p(math.exp(-x))


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

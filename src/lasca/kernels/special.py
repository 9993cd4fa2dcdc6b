"""Special functions: scalar ones for Numba kernels, and Dirichlet terms on whole tables for Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.special import gammaln, psi

__all__ = [
    "digamma",
    "dirichlet_kl",
    "expected_log",
    "log_dirichlet",
    "log_rising",
    "log_sigmoid",
    "log_sum_exp",
]

Floats = npt.NDArray[np.float64]


# --- for kernels -------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def digamma(x: float) -> float:
    """Return the derivative of lgamma for x > 0, to about 1e-14 (recurrence to 10, then the asymptotic series)."""
    shift = 0.0
    while x < 10.0:
        shift -= 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    series = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132 - r * (691 / 32760 - r / 12))))))
    return shift + math.log(x) - 0.5 / x - series


@njit(cache=True, nogil=True)
def log_rising(x: float, n: float) -> float:
    """Return ln Γ(x + n) − ln Γ(x): the log of x (x + 1) … (x + n − 1) for whole n."""
    return math.lgamma(x + n) - math.lgamma(x)


@njit(cache=True, nogil=True)
def log_sigmoid(x: float) -> float:
    """Return ln 1 / (1 + e^−x) without overflow."""
    if x < 0.0:
        return x - math.log1p(math.exp(x))
    return -math.log1p(math.exp(-x))


@njit(cache=True, nogil=True)
def log_sum_exp(values: Any) -> float:
    """Return ln Σ e^value of a one-dimensional array; −inf if it is empty or all −inf."""
    largest = -np.inf
    for value in values:
        largest = max(largest, value)
    if not np.isfinite(largest):
        return largest
    total = 0.0
    for value in values:
        total += math.exp(value - largest)
    return largest + math.log(total)


# --- for whole tables: every row (last axis) is one Dirichlet ------------------------------------------------------


def expected_log(alpha: npt.ArrayLike) -> Floats:
    """Return E[ln p] under Dir(alpha), row by row: ψ(α) − ψ(Σ α)."""
    a = np.asarray(alpha, dtype=np.float64)
    return np.asarray(psi(a) - psi(a.sum(axis=-1, keepdims=True)))


def log_dirichlet(log_p: npt.ArrayLike, alpha: npt.ArrayLike) -> float:
    """Return the sum over rows of the log density of Dir(alpha) at exp(log_p)."""
    a = np.asarray(alpha, dtype=np.float64)
    rows = gammaln(a.sum(axis=-1)) - gammaln(a).sum(axis=-1) + ((a - 1) * np.asarray(log_p)).sum(axis=-1)
    return float(np.sum(rows))


def dirichlet_kl(alpha: npt.ArrayLike, prior: npt.ArrayLike) -> float:
    """Return the sum over rows of KL(Dir(alpha) || Dir(prior))."""
    a = np.asarray(alpha, dtype=np.float64)
    b = np.broadcast_to(np.asarray(prior, dtype=np.float64), a.shape)
    rows = gammaln(a.sum(axis=-1)) - gammaln(b.sum(axis=-1)) + (gammaln(b) - gammaln(a)).sum(axis=-1)
    return float(np.sum(rows + ((a - b) * expected_log(a)).sum(axis=-1)))

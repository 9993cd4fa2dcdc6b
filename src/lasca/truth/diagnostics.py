"""Have the chains met, and how much are their draws worth? Split R-hat, effective sample size, Monte-Carlo errors.

All functions take draws of one quantity as (n_chains, n_draws). The definitions are those of Gelman et al., Bayesian
Data Analysis (3rd ed., 11.4 and 11.5), with Geyer's initial monotone sequence for the autocorrelations (Vehtari et al.
2021, without rank normalisation). A quantity that never moves has R-hat 1 and as many effective draws as draws; where
there are too few draws to tell (below 4 per chain), the answer is nan.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["ess", "mcse", "split_rhat", "summary"]

Floats = npt.NDArray[np.float64]


def _halves(draws: npt.ArrayLike) -> Floats:
    """Return every chain as two: (2 n_chains, n_draws // 2); an odd draw in the middle is left out."""
    x = np.atleast_2d(np.asarray(draws, dtype=np.float64))
    half = x.shape[1] // 2
    return np.concatenate((x[:, :half], x[:, x.shape[1] - half :]))


def _variances(x: Floats) -> tuple[float, float]:
    """Return the mean variance within chains and the pooled estimate of the variance."""
    n = x.shape[1]
    within = float(x.var(axis=1, ddof=1).mean())
    between = float(x.mean(axis=1).var(ddof=1)) if len(x) > 1 else 0.0
    return within, (n - 1) / n * within + between


def split_rhat(draws: npt.ArrayLike) -> float:
    """Return the split R-hat: 1 where all halves of all chains agree, above about 1.05 where they do not."""
    x = _halves(draws)
    if x.shape[1] < 2:
        return float("nan")
    within, pooled = _variances(x)
    if within <= 1e-24 * max(1.0, float(np.abs(x).max()) ** 2):
        return 1.0 if pooled <= 1e-20 * max(1.0, float(np.abs(x).max()) ** 2) else float("inf")
    return float(np.sqrt(pooled / within))


def _autocovariances(x: Floats) -> Floats:
    """Return the autocovariance of every chain at every lag, by Fourier transform."""
    n = x.shape[1]
    centred = x - x.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * n, axis=1)
    return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :n] / n)


def ess(draws: npt.ArrayLike) -> float:
    """Return how many independent draws would give the same error of the mean."""
    x = _halves(draws)
    m, n = x.shape
    if n < 2:
        return float("nan")
    within, pooled = _variances(x)
    if pooled <= 1e-24 * max(1.0, float(np.abs(x).max()) ** 2):
        return float(m * n)
    rho = 1.0 - (within - _autocovariances(x).mean(axis=0) * n / (n - 1)) / pooled
    rho[0] = 1.0
    pairs = rho[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: negative[0]] if len(negative) else pairs)
    time = max(2.0 * float(pairs.sum()) - 1.0, 1.0 / np.log10(max(m * n, 10)))
    return float(m * n / time)


def mcse(draws: npt.ArrayLike) -> float:
    """Return the Monte-Carlo standard error of the mean of all draws."""
    x = np.atleast_2d(np.asarray(draws, dtype=np.float64))
    if x.size < 2:
        return float("nan")
    return float(np.sqrt(x.var(ddof=1) / ess(x)))


def summary(draws: npt.ArrayLike) -> dict[str, float]:
    """Return the mean, its Monte-Carlo error, the effective sample size and R-hat, as plain numbers."""
    x = np.asarray(draws, dtype=np.float64)
    return {"mean": float(x.mean()), "mcse": mcse(x), "ess": ess(x), "rhat": split_rhat(x)}

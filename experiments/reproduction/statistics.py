"""Means over seeds and paired differences, as the tables show them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Mean", "Paired", "mean", "paired"]


@dataclass(frozen=True)
class Mean:
    """A mean over seeds, with the standard deviation between them (nan for one seed)."""

    value: float
    sd: float
    n: int

    def shown(self, digits: int = 2) -> str:
        """Return the mean and, with several seeds, ± the standard deviation."""
        if math.isnan(self.value):
            return "–"
        return f"{self.value:.{digits}f}".replace("-", "−") + (f" ± {self.sd:.{digits}f}" if self.n > 1 else "")


@dataclass(frozen=True)
class Paired:
    """The mean of paired differences with its 95 % interval (Student's t; nan for fewer than two pairs)."""

    value: float
    low: float
    high: float
    n: int

    def shown(self, digits: int = 2) -> str:
        """Return the difference with its sign and interval."""
        words = f"{self.value:+.{digits}f}".replace("-", "−")
        if math.isnan(self.low):
            return words
        return words + f" [{self.low:+.{digits}f}, {self.high:+.{digits}f}]".replace("-", "−")

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


def mean(values: Sequence[float]) -> Mean:
    """Return the mean of what was measured with several seeds."""
    if not values:
        return Mean(math.nan, math.nan, 0)
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    return Mean(float(np.mean(values)), sd, len(values))


def paired(first: Sequence[float], second: Sequence[float]) -> Paired:
    """Return the mean of first − second over pairs."""
    from scipy.stats import t

    gaps = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    if len(gaps) < 2:
        return Paired(float(gaps.mean()) if len(gaps) else math.nan, math.nan, math.nan, len(gaps))
    half = float(t.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / math.sqrt(len(gaps)))
    return Paired(float(gaps.mean()), float(gaps.mean()) - half, float(gaps.mean()) + half, len(gaps))

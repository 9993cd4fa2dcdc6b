"""The one chain driver: several chains side by side, warm-up, thinning; state, storage and diagnostics kept apart.

A model supplies three functions:

    initial(generators) -> states            the starts; every chain has a generator of its own, spawned from `rng`
    storage(chain) -> store                  where the kept draws of a chain go; has `add(state)`
    sweep(states, tuning, keeps) -> floats   moves all states on by one sweep, in place; returns their log joints

Chains go side by side so that one visit of the data serves all of them. `tuning` is the gain for step sizes: it falls
during the warm-up and is 0 after it, so that the kept draws come from one fixed kernel. `keeps` is True in sweeps whose
draw is kept (a sweep may then sum up conditionals, as Rao–Blackwell wants); after such a sweep the driver calls
`store.add(state)`. Chains share nothing: what one gives does not depend on the others.

*Have the chains met, and how much are their draws worth?* Split R-hat, effective sample size, Monte-Carlo errors. These
functions take draws of one quantity as (n_chains, n_draws). The definitions are those of Gelman et al., Bayesian
Data Analysis (3rd ed., 11.4 and 11.5), with Geyer's initial monotone sequence for the autocorrelations (Vehtari et al.
2021, without rank normalisation). A quantity that never moves has R-hat 1 and as many effective draws as draws; where
there are too few draws to tell (below 4 per chain), the answer is nan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from lasca.arrays import Bools, Floats
from lasca.errors import ModelError

__all__ = ["Chain", "ess", "in_range", "mcse", "run_chains", "split_rhat", "summary"]

State = TypeVar("State")
Contra = TypeVar("Contra", contravariant=True)


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


class Store(Protocol[Contra]):
    """Where the kept draws of one chain go."""

    def add(self, state: Contra, /) -> None:
        """Take what is wanted from a draw; the state goes on changing afterwards."""


AnyStore = TypeVar("AnyStore", bound=Store)  # type: ignore[type-arg]


@dataclass(frozen=True)
class Chain(Generic[State, AnyStore]):
    """One chain that has been run: where it ended, what was kept, and the log joint of every sweep."""

    state: State
    store: AnyStore
    trace: Floats
    """The log joint after each sweep, warm-up included."""
    kept: Floats
    """The log joint of the kept draws."""


def run_chains(
    initial: Callable[[list[np.random.Generator]], list[State]],
    sweep: Callable[[list[State], float, bool], Sequence[float]],
    storage: Callable[[int], AnyStore],
    *,
    rng: np.random.Generator,
    n_chains: int,
    n_warmup: int,
    n_samples: int,
    thin: int = 1,
    progress: Callable[[float, str], None] | None = None,
) -> list[Chain[State, AnyStore]]:
    """Run the chains and return them in order; `n_samples` draws of each are kept, one in `thin` sweeps."""
    n_sweeps = n_warmup + n_samples * thin
    states, stores = initial(rng.spawn(n_chains)), [storage(number) for number in range(n_chains)]
    trace, kept = np.empty((n_chains, n_sweeps)), np.zeros(n_sweeps, np.bool_)
    for i in range(n_sweeps):
        kept[i] = i >= n_warmup and (i - n_warmup + 1) % thin == 0
        trace[:, i] = sweep(states, 1.0 / np.sqrt(i + 1.0) if i < n_warmup else 0.0, bool(kept[i]))
        for number in np.flatnonzero(~np.isfinite(trace[:, i])):
            where = f"chain {number + 1}, sweep {i + 1}"
            hint = "Check that the priors are positive; if they are, this is a bug: please report it"
            raise ModelError("the log joint is not a finite number", where=where, got=trace[number, i], hint=hint)
        for state, store in zip(states, stores):
            if kept[i]:
                store.add(state)
        if progress is not None:
            progress((i + 1) / n_sweeps, f"sweep {i + 1} of {n_sweeps}")
    return [Chain(*one, trace[k], trace[k, kept]) for k, one in enumerate(zip(states, stores))]


def in_range(kept: Floats, width: float = 4.0) -> Bools:
    """Say which chains (n_chains, n_draws) have a mean log joint within `width` standard deviations of the best.

    The deviation is that of the best chain's own draws, at least 1: a chain stuck in a worse mode falls outside.
    """
    means = kept.mean(axis=1)
    best = int(means.argmax())
    spread = max(float(kept[best].std()), 1.0)
    return np.asarray(means >= means[best] - width * spread)

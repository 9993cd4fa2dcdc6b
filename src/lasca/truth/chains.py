"""The one chain driver: several chains in threads, warm-up, thinning; state, storage and diagnostics kept apart.

A model supplies three functions:

    initial(chain, rng) -> state          a start; every chain has a generator of its own, spawned from `rng`
    storage(chain) -> store               where the kept draws of a chain go; has `add(state)`
    sweep(state, tuning, store) -> float  moves the state on by one sweep, in place, and returns its log joint

`tuning` is the gain for step sizes: it falls during the warm-up and is 0 after it, so that the kept draws come from
one fixed kernel. `store` is None except in sweeps whose draw is kept (a sweep may then hand conditionals to it, as
Rao–Blackwell wants); after such a sweep the driver calls `store.add(state)`. Chains share nothing: what one gives does
not depend on how many threads there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from lasca.engine import run_ordered
from lasca.errors import ModelError

__all__ = ["Chain", "Store", "in_range", "run_chains"]

State = TypeVar("State")
Contra = TypeVar("Contra", contravariant=True)


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
    trace: npt.NDArray[np.float64]
    """The log joint after each sweep, warm-up included."""
    kept: npt.NDArray[np.float64]
    """The log joint of the kept draws."""


def run_chains(
    initial: Callable[[int, np.random.Generator], State],
    sweep: Callable[[State, float, AnyStore | None], float],
    storage: Callable[[int], AnyStore],
    *,
    rng: np.random.Generator,
    n_chains: int,
    n_warmup: int,
    n_samples: int,
    thin: int = 1,
    n_threads: int | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> list[Chain[State, AnyStore]]:
    """Run the chains and return them in order; `n_samples` draws of each are kept, one in `thin` sweeps."""
    n_sweeps = n_warmup + n_samples * thin
    lock, done = Lock(), [0]

    def report() -> None:
        if progress is not None:
            with lock:
                done[0] += 1
                progress(done[0] / (n_chains * n_sweeps), f"sweep {done[0] // n_chains} of {n_sweeps}")

    def run(job: tuple[int, np.random.Generator]) -> Chain[State, AnyStore]:
        number, own_rng = job
        state, store = initial(number, own_rng), storage(number)
        trace, kept = np.empty(n_sweeps), []
        for i in range(n_sweeps):
            keep = i >= n_warmup and (i - n_warmup + 1) % thin == 0
            tuning = 1.0 / np.sqrt(i + 1.0) if i < n_warmup else 0.0
            trace[i] = sweep(state, tuning, store if keep else None)
            if not np.isfinite(trace[i]):
                where = f"chain {number + 1}, sweep {i + 1}"
                hint = "Check that the priors are positive; if they are, this is a bug: please report it"
                raise ModelError("the log joint is not a finite number", where=where, got=trace[i], hint=hint)
            if keep:
                store.add(state)
                kept.append(trace[i])
            report()
        return Chain(state, store, trace, np.array(kept))

    return run_ordered(run, list(enumerate(rng.spawn(n_chains))), n_threads)


def in_range(kept: npt.NDArray[np.float64], width: float = 4.0) -> npt.NDArray[np.bool_]:
    """Say which chains (n_chains, n_draws) have a mean log joint within `width` standard deviations of the best.

    The deviation is that of the best chain's own draws, at least 1: a chain stuck in a worse mode falls outside.
    """
    means = kept.mean(axis=1)
    best = int(means.argmax())
    spread = max(float(kept[best].std()), 1.0)
    return np.asarray(means >= means[best] - width * spread)

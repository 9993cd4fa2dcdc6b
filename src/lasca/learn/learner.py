"""The contract of everything that learns from a crowd in rounds, and the one loop that runs it.

A learner is a small frozen record of settings with pure functions. It sees the corpus block by block:

    summarise(block) -> statistics            what the start needs; added up over the blocks
    start(summary, rng) -> state              the first state; `rng` None: the start that needs no luck, if there is one
    visit(state, block, local) -> (statistics, local)
    update(state, statistics) -> (state, objective)
    describe(state, block, local, out) -> what else there is to say of the block; `out` takes the probabilities

`state` is a small frozen record of arrays. `statistics` are tuples of arrays and numbers that add up. `local` is what
a model keeps of a block from visit to visit (None before the first): the engine holds it where the block is. An engine
(`lasca.engine`) runs visits in threads, in processes or on a cluster, and adds up in the order of the blocks: the same
bytes everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

from lasca.engine import Work
from lasca.learn.em import EmRun, LoopSettings, run_em

__all__ = ["Learner", "run_learner"]

State = TypeVar("State")


class Learner(Protocol[State]):
    """What the engine and the loop need of a model."""

    def summarise(self, block: Any) -> tuple[Any, ...]:
        """Return what the start needs of a block."""

    def start(self, summary: tuple[Any, ...], rng: np.random.Generator | None) -> State:
        """Return the first state."""

    def visit(self, state: State, block: Any, local: Any) -> tuple[tuple[Any, ...], Any]:
        """Return the statistics of a block under a state, and what the model keeps of the block."""

    def update(self, state: State, statistics: tuple[Any, ...]) -> tuple[State, float]:
        """Return the next state, and the objective of this one (or always of the next)."""

    def describe(self, state: State, block: Any, local: Any, out: Any) -> Any:
        """Write the probabilities of the block's tokens to `out`; return what else is wanted of it."""


def run_learner(
    learner: Learner[State],
    work: Work,
    loop: LoopSettings,
    *,
    scale: float,
    progress: Callable[[float, str], None] | None = None,
    lucky: bool = False,
    settle: bool = False,
) -> EmRun[State]:
    """Run EM from every start and return the best run; `work` then holds the locals of that run.

    The first start is the one that needs no luck, unless `lucky`: then all are drawn at random. `settle`: the step
    after a start does not count, for starts that have no objective.
    """
    summary = work.summary()
    best: list[float] = []

    def initial(rng: np.random.Generator) -> State:
        work.reset()
        state = learner.start(summary, rng)
        return step(state)[0] if settle else state

    def step(state: State) -> tuple[State, float]:
        return learner.update(state, work.sum(state))

    def finished(objective: float) -> None:
        if not best or objective > best[0]:
            best[:] = [objective]
            work.keep()

    first = None if lucky else learner.start(summary, None)
    run = run_em(initial, step, **loop, scale=scale, progress=progress, first=first, finished=finished)
    work.back()
    return run

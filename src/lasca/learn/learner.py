"""The contract of everything that learns from a crowd in rounds, and the one loop that runs it.

A learner is a small frozen record of settings with pure functions. It sees the corpus block by block:

    summarise(block) -> statistics            what the start needs; added up over the blocks
    start(summary, rng) -> state              the first state; `rng` None: the start that needs no luck, if there is one
    visit(state, block, local) -> (statistics, local)
    update(state, statistics) -> (state, objective)
    describe(state, block, local, out) -> (labels or None, statistics); `out` takes the probabilities

A plan whose step takes several visits has `step(state, work) -> (state, objective)` in the place of `update`.
A learner whose objective may fall has `rests(state) -> bool`, which says that a run is at its end.

`state` is a small frozen record of arrays. `statistics` are tuples of arrays and numbers that add up. `local` is what
a model keeps of a block from visit to visit (None before the first): the engine holds it where the block is, and may
let go of it unless the learner says that it `remembers` what cannot be made again from the block. An engine
(`lasca.engine`) runs visits in threads, in processes or on a cluster, and adds up in the order of the blocks: the same
bytes everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from lasca.engine import Work
from lasca.learn.em import EmRun, Halfway, LoopSettings, run_em
from lasca.records import read_record, write_record

__all__ = ["Checkpoint", "Learner", "run_learner"]

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

    def describe(self, state: State, block: Any, local: Any, out: Any) -> tuple[Any, tuple[Any, ...]]:
        """Write the probabilities of the block's tokens to `out`; return the labels if the learner decodes them itself
        (else None: the most probable ones are taken), and statistics that add up."""


def run_learner(
    learner: Learner[State],
    work: Work,
    loop: LoopSettings,
    *,
    scale: float,
    progress: Callable[[float, str], None] | None = None,
    lucky: bool = False,
    settle: bool = False,
    checkpoint: Checkpoint | None = None,
) -> EmRun[State]:
    """Run EM from every start and return the best run; `work` then holds the locals of that run.

    The first start is the one that needs no luck, unless `lucky`: then all are drawn at random. `settle`: the step
    after a start does not count, for starts that have no objective. With `checkpoint` a loop that was killed goes on.
    """
    best: list[float] = []
    summary: list[tuple[Any, ...]] = []
    began, steps = time.monotonic(), 0

    def initial(rng: np.random.Generator | None) -> State:
        work.reset()
        if not summary:
            summary.append(work.summary())
        state = learner.start(summary[0], rng)
        return step(state)[0] if settle else state

    def step(state: State) -> tuple[State, float]:
        nonlocal steps
        steps += 1
        plan: Any = getattr(learner, "step", None)
        return learner.update(state, work.sum(state)) if plan is None else plan(state, work)

    def finished(objective: float) -> None:
        if not best or objective > best[0]:
            best[:] = [objective]
            work.keep()

    def report(share: float, words: str) -> None:
        if progress is not None:
            rate = scale * max(steps, 1) / max(time.monotonic() - began, 1e-9)
            progress(share, f"{words}, {rate / 1e6:.1f} million votes/s")

    keeper = None if checkpoint is None else checkpoint.of(work, best)
    goes_on = checkpoint is not None and checkpoint.file.exists()
    first = None if lucky or goes_on else initial(None)
    rests = getattr(learner, "rests", None)
    run = run_em(
        initial, step, **loop, scale=scale, progress=report, first=first, finished=finished, keeper=keeper, rests=rests
    )
    work.back()
    return run


@dataclass(frozen=True)
class Checkpoint:
    """A file that keeps where a loop is, after every so many steps."""

    file: Path
    every: int = 10

    def of(self, work: Work, best: list[float]) -> _Keeper:
        """Return what keeps the loop of a piece of work."""
        return _Keeper(self.file, self.every, work, best)


@dataclass(frozen=True)
class _Kept:
    halfway: Halfway[Any]
    versions: tuple[int | None, int | None, int]
    """Of the locals: those of now, those that are kept, the last one."""


class _Keeper:
    """Keeps the loop and the versions of the locals in a file."""

    def __init__(self, file: Path, every: int, work: Any, best: list[float]) -> None:
        self.file, self.every, self.locals, self.best = file, every, work.locals, best

    def load(self) -> Halfway[Any] | None:
        """Return where the loop was, and take the locals it had then."""
        if not self.file.exists():
            return None
        kept: _Kept = read_record(self.file)
        self.locals.take_up(*kept.versions)
        if kept.halfway.best is not None:
            self.best[:] = [float(kept.halfway.best.trace[-1])]
        return kept.halfway

    def save(self, halfway: Halfway[Any]) -> None:
        """Keep where the loop is."""
        versions = (self.locals.now, self.locals.kept, self.locals.last)
        write_record(_Kept(halfway, versions), self.file)
        self.locals.pin()

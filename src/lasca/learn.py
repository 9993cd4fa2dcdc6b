"""How models learn: the contract of everything that learns from a crowd in rounds, and the one loop of EM and VB.

There is no model in it. A learner is a small frozen record of settings with pure functions. It sees the corpus block by
block:

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
(`lasca.engine`) runs visits in threads or on a cluster, and adds up in the order of the blocks: the same
bytes everywhere.

*The loop* (`run_em`): restarts, stopping, trace, and the best run kept. It takes two pure functions on states:

    initial(rng) -> state                 a start; each restart has a generator of its own, spawned from `rng`
    step(state) -> (state, objective)     one E and one M step; `objective` never falls from step to step

`objective` may be that of the state given (what an E step yields for free: the log posterior of EM, the ELBO of VB) or
that of the state returned, as the model likes, as long as it is always the same one. `first`, if given, is the start of
the first run (majority vote, say); the other runs start from `initial`. A run stops when the objective moves by less
than `tol` per unit of `scale` (take the number of votes), or after `max_iter` steps; `tol=0` always runs `max_iter`
steps. An objective that falls by more is no end: the run goes on. The run with the largest last objective is kept, the
first one of these where they tie. The loop is the same whatever the number of threads: threads live inside `step`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypedDict, TypeVar

import numpy as np

from lasca.arrays import Floats
from lasca.engine import Work
from lasca.errors import ModelError
from lasca.estimator import generator
from lasca.records import read_record, write_record

__all__ = [
    "Checkpoint", "EmRun", "Halfway", "Learner", "LoopSettings", "loop_settings", "run_em", "run_from", "run_learner",
]  # fmt: skip

State = TypeVar("State")
ROUNDING = 1e-12
"""The share of an objective that sums in another order may move."""


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


class LoopSettings(TypedDict):
    """The parameters of the loop that every EM model has."""

    rng: np.random.Generator
    restarts: int
    max_iter: int
    tol: float


def loop_settings(model: Any) -> LoopSettings:
    """Take the parameters of the loop from an estimator; they are checked where they are declared."""
    return {
        "rng": generator(model.seed),
        "restarts": model.restarts,
        "max_iter": model.max_iter,
        "tol": model.tol,
    }


@dataclass(frozen=True)
class EmRun(Generic[State]):
    """The best of the runs: where it ended and how it got there."""

    state: State
    trace: Floats
    """The objective of each step of this run."""
    converged: bool
    restart: int
    """Which run it was, from 0."""
    objectives: tuple[float, ...]
    """The last objective of every run."""

    def diagnostics(self) -> dict[str, Any]:
        """Return plain numbers for `Truth.diagnostics`."""
        return {
            "iterations": len(self.trace),
            "converged": self.converged,
            "objective": float(self.trace[-1]),
            "restart": self.restart,
            "objectives": list(self.objectives),
        }


@dataclass(frozen=True)
class Halfway(Generic[State]):
    """Where the loop is: all that is needed to go on from here."""

    restart: int
    """The run that is at work; the number of runs if all are at their end."""
    state: State | None
    """Its state; None before its start."""
    trace: Floats
    best: EmRun[State] | None
    """Where the best run so far ended; the objectives of all runs are below."""
    objectives: tuple[float, ...]


def run_em(
    initial: Callable[[np.random.Generator], State],
    step: Callable[[State], tuple[State, float]],
    *,
    rng: np.random.Generator,
    restarts: int = 1,
    max_iter: int,
    tol: float,
    scale: float = 1.0,
    progress: Callable[[float, str], None] | None = None,
    first: State | None = None,
    finished: Callable[[float], None] | None = None,
    keeper: Any = None,
    rests: Callable[[State], bool] | None = None,
) -> EmRun[State]:
    """Run EM from every start and return the run with the largest last objective.

    `finished` is told the last objective of each run when it ends; `keeper` (see `_Keeper`) keeps where the loop
    is, so that one that was killed goes on; `rests` says of a state that a run is at its end, in place of the rise of
    the objective.
    """
    at: Halfway[State] = Halfway(0, None, np.zeros(0), None, ())
    if keeper is not None:
        at = keeper.load() or at
    for restart, own_rng in enumerate(rng.spawn(restarts)):
        if restart < at.restart:
            continue
        state: State
        if at.state is not None:
            state = at.state
        else:
            state = first if restart == 0 and first is not None else initial(own_rng)

        def report(done: float, words: str, restart: int = restart) -> None:
            if progress is not None:
                progress((restart + done) / restarts, words if restarts == 1 else f"start {restart + 1}, {words}")

        def reached(state: State, trace: list[float], at: Halfway[State] = at) -> None:
            if keeper is not None and len(trace) % keeper.every == 0:
                keeper.save(replace(at, state=state, trace=np.array(trace)))

        state, trace, converged = _one_run(state, list(at.trace), step, max_iter, tol * scale, report, reached, rests)
        if finished is not None:
            finished(trace[-1])
        best = at.best
        if best is None or trace[-1] > best.trace[-1]:
            best = EmRun(state, np.array(trace), converged, restart, ())
        at = Halfway(restart + 1, None, np.zeros(0), best, (*at.objectives, trace[-1]))
        if keeper is not None:
            keeper.save(at)
    assert at.best is not None  # restarts >= 1, checked by the models
    return replace(at.best, objectives=at.objectives)


def run_from(
    first: State,
    step: Callable[[State], tuple[State, float]],
    *,
    max_iter: int,
    tol: float,
    scale: float,
    progress: Callable[[float, str], None] | None = None,
) -> EmRun[State]:
    """Run EM from one start that is given: nothing is drawn."""
    report = progress or (lambda done, words: None)
    state, trace, converged = _one_run(first, [], step, max_iter, tol * scale, report, lambda state, trace: None)
    return EmRun(state, np.array(trace), converged, 0, (trace[-1],))


def _one_run(
    state: State,
    trace: list[float],
    step: Callable[[State], tuple[State, float]],
    max_iter: int,
    least_rise: float,
    report: Callable[[float, str], None],
    reached: Callable[[State, list[float]], None],
    rests: Callable[[State], bool] | None = None,
) -> tuple[State, list[float], bool]:
    for iteration in range(len(trace), max_iter):
        state, objective = step(state)
        if not np.isfinite(objective):
            raise ModelError(
                "the objective is not a finite number",
                where=f"iteration {iteration + 1}",
                got=objective,
                hint="Check that the priors are positive; if they are, this is a bug: please report it",
            )
        trace.append(float(objective))
        report((iteration + 1) / max_iter, f"iteration {iteration + 1}")
        if _settled(trace, least_rise) if rests is None else rests(state):
            return state, trace, True
        reached(state, trace)
    return state, trace, False


def _settled(trace: list[float], least_rise: float) -> bool:
    """Say whether the last step moved the objective by less than `least_rise`, or by rounding."""
    if len(trace) < 2 or least_rise <= 0:
        return False
    rise = trace[-1] - trace[-2]
    return -max(least_rise, ROUNDING * abs(trace[-1])) < rise < least_rise


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

    keeper = None if checkpoint is None else _Keeper(checkpoint, work, best)
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


@dataclass(frozen=True)
class _Kept:
    halfway: Halfway[Any]
    versions: tuple[int | None, int | None, int]
    """Of the locals: those of now, those that are kept, the last one."""


class _Keeper:
    """Keeps the loop and the versions of the locals in a file."""

    def __init__(self, checkpoint: Checkpoint, work: Any, best: list[float]) -> None:
        self.file, self.every, self.locals, self.best = checkpoint.file, checkpoint.every, work.locals, best

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

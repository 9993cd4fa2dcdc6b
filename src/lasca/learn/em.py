"""The one EM/VB loop: restarts, stopping, trace, and the best run kept.

A model supplies two pure functions on a state of its own (any frozen record of arrays):

    initial(rng) -> state                 a start; each restart has a generator of its own, spawned from `rng`
    step(state) -> (state, objective)     one E and one M step; `objective` never falls from step to step

`objective` may be that of the state given (what an E step yields for free: the log posterior of EM, the ELBO of VB) or
that of the state returned, as the model likes, as long as it is always the same one. A state usually holds the
parameters *and* the posterior they were made from, so that `run.state` is all a model needs for its result.

    run = run_em(initial, step, **loop_settings(self), scale=n_votes, progress=progress, first=None)
    run.state, run.trace, run.converged, run.diagnostics()

`first`, if given, is the start of the first run (majority vote, say); the other runs start from `initial`.
A run stops when the objective rises by less than `tol` per unit of `scale` (take the number of votes), or after
`max_iter` steps; `tol=0` always runs `max_iter` steps. The run with the largest last objective is kept, the first one
of these where they tie. The loop is the same whatever the number of threads: threads live inside `step`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypedDict, TypeVar

import numpy as np
import numpy.typing as npt

from lasca.errors import ModelError
from lasca.estimator import check_int, check_number, generator

__all__ = ["EmRun", "Halfway", "Keeper", "LoopSettings", "loop_settings", "run_em", "run_from"]

State = TypeVar("State")


class LoopSettings(TypedDict):
    """The parameters of the loop that every EM model has."""

    rng: np.random.Generator
    restarts: int
    max_iter: int
    tol: float


def loop_settings(model: Any) -> LoopSettings:
    """Take the parameters of the loop from an estimator and check them."""
    return {
        "rng": generator(model.seed),
        "restarts": check_int("restarts", model.restarts, low=1),
        "max_iter": check_int("max_iter", model.max_iter, low=1),
        "tol": check_number("tol", model.tol, low=0),
    }


@dataclass(frozen=True)
class EmRun(Generic[State]):
    """The best of the runs: where it ended and how it got there."""

    state: State
    trace: npt.NDArray[np.float64]
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
class Best(Generic[State]):
    """Where the best run so far ended."""

    state: State
    trace: npt.NDArray[np.float64]
    converged: bool
    restart: int


@dataclass(frozen=True)
class Halfway(Generic[State]):
    """Where the loop is: all that is needed to go on from here."""

    restart: int
    """The run that is at work; the number of runs if all are at their end."""
    state: State | None
    """Its state; None before its start."""
    trace: npt.NDArray[np.float64]
    best: Best[State] | None
    objectives: tuple[float, ...]


class Keeper(Protocol):
    """Keeps where the loop is, so that one that was killed goes on from there."""

    every: int
    """After so many steps."""

    def load(self) -> Halfway[Any] | None:
        """Return where the loop was; None: it begins."""

    def save(self, halfway: Halfway[Any]) -> None:
        """Keep where the loop is."""


def run_em(
    initial: Callable[[np.random.Generator], State],
    step: Callable[[State], tuple[State, float]],
    *,
    rng: np.random.Generator,
    restarts: int = 1,
    max_iter: int = 100,
    tol: float = 1e-6,
    scale: float = 1.0,
    progress: Callable[[float, str], None] | None = None,
    first: State | None = None,
    finished: Callable[[float], None] | None = None,
    keeper: Keeper | None = None,
    rests: Callable[[State], bool] | None = None,
) -> EmRun[State]:
    """Run EM from every start and return the run with the largest last objective.

    `finished` is told the last objective of each run when it ends; `keeper` keeps where the loop is; `rests` says of a
    state that a run is at its end, in place of the rise of the objective.
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
            best = Best(state, np.array(trace), converged, restart)
        at = Halfway(restart + 1, None, np.zeros(0), best, (*at.objectives, trace[-1]))
        if keeper is not None:
            keeper.save(at)
    assert at.best is not None  # restarts >= 1, checked by the models
    return EmRun(at.best.state, at.best.trace, at.best.converged, at.best.restart, at.objectives)


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
        rises = not iteration or least_rise <= 0 or trace[-1] - trace[-2] >= least_rise
        if not rises if rests is None else rests(state):
            return state, trace, True
        reached(state, trace)
    return state, trace, False

"""Minimisers on flat vectors: L-BFGS, and OWL-QN where there is an L1 penalty (Andrew & Gao 2007).

The two-loop recursion runs in place over preallocated rings of steps and gradient changes: a call costs
4 · `_MEMORY` passes over the vector and allocates nothing. The line search backtracks or expands until the
weak Wolfe conditions hold; after the first iteration a step of 1 is nearly always taken at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lasca.arrays import Array
from lasca.errors import ModelError
from lasca.kernels import vectors

__all__ = ["Iteration", "Minimum", "minimise"]

Function = Callable[[Array, Array], float]

_SUFFICIENT, _CURVATURE = 1e-4, 0.9
_MEMORY = 6
"""How many pairs of steps and gradient changes are kept."""
_PERIOD = 10
"""Over so many iterations the value must fall."""


@dataclass(frozen=True)
class Iteration:
    """What is known after an iteration; `left` is a guess of the seconds still needed, nan while unknown."""

    iteration: int
    max_iter: int
    objective: float
    elapsed: float
    left: float


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where a minimiser stopped, the value after each iteration, how many evaluations, and whether it converged."""

    vector: Array
    trace: tuple[float, ...]
    n_evaluations: int
    converged: bool


Callback = Callable[[Iteration, Array], bool]


class _Clock:
    """Guess the time left from how fast the relative improvement over the last iterations falls."""

    def __init__(self, max_iter: int, tol: float) -> None:
        self.start = time.perf_counter()
        self.max_iter, self.tol = max_iter, tol

    def left(self, trace: list[float]) -> float:
        n = len(trace) - 1
        if n < _PERIOD + 1:
            return float("nan")
        per_iteration = (time.perf_counter() - self.start) / n
        now, before = improvement(trace), improvement(trace[: max(_PERIOD + 1, n // 2)])
        wanted = float(self.max_iter - n)
        if 0 < now < before and now > self.tol > 0:
            rate = np.log(before / now) / max(1, n - max(_PERIOD, n // 2))
            wanted = min(wanted, float(np.log(now / self.tol) / rate))
        return max(0.0, wanted) * per_iteration


def improvement(trace: list[float]) -> float:
    """Return the relative fall of the value over the last iterations."""
    if len(trace) <= _PERIOD:
        return float("inf")
    return (trace[-1 - _PERIOD] - trace[-1]) / max(abs(trace[-1]), 1e-12)


def _norm(x: Array) -> float:
    return float(np.sqrt(vectors.dot(x, x)))


class _History:
    """The last pairs of steps and gradient changes, in rings."""

    def __init__(self, size: int) -> None:
        self.steps, self.changes = np.zeros((_MEMORY, size)), np.zeros((_MEMORY, size))
        self.inner, self._share = np.ones(_MEMORY), np.empty(_MEMORY)
        self.newest, self.n_pairs = -1, 0

    def forget(self) -> None:
        self.n_pairs = 0

    def add(self, x: Array, new_x: Array, gradient: Array, new_gradient: Array) -> None:
        place = (self.newest + 1) % _MEMORY
        product = vectors.remember(x, new_x, gradient, new_gradient, self.steps[place], self.changes[place])
        if product > 1e-300:
            self.inner[place] = product
            self.newest, self.n_pairs = place, min(self.n_pairs + 1, _MEMORY)
        else:
            self.forget()

    def direction(self, gradient: Array, out: Array) -> float:
        ring = (self.steps, self.changes, self.inner, self.newest, self.n_pairs)
        return float(vectors.lbfgs_direction(gradient, *ring, self._share, out))


def minimise(
    function: Function,
    start: Array,
    *,
    l1: float = 0.0,
    max_iter: int = 500,
    tol: float = 1e-5,
    gradient_tol: float = 1e-5,
    callback: Callback | None = None,
) -> Minimum:
    """Minimise function + l1 · ‖x‖₁ from `start`.

    Stops when the value fell by less than `tol` (relative) over ten iterations, when ‖gradient‖ < gradient_tol · max(1,
    ‖x‖), after `max_iter` iterations, when no step improves the value, or when the callback returns True.
    """
    search = _OrthantSearch(function, start, l1) if l1 > 0 else _Search(function, start)
    if not np.isfinite(search.value):
        raise ModelError("the objective is not a number at the starting weights", got=search.value)
    trace = [search.value]
    clock = _Clock(max_iter, tol)
    converged = False
    for iteration in range(1, max_iter + 1):
        if search.slope_norm() < gradient_tol * max(1.0, _norm(search.x)) or not search.advance():
            converged = True
            break
        trace.append(search.value)
        now = Iteration(iteration, max_iter, search.value, time.perf_counter() - clock.start, clock.left(trace))
        if callback is not None and callback(now, search.x):
            break
        if improvement(trace) < tol:
            converged = True
            break
    return Minimum(search.x, tuple(trace), search.n_evaluations, converged)


class _Search:
    """L-BFGS with a bracketing line search for the weak Wolfe conditions."""

    def __init__(self, function: Function, start: Array) -> None:
        self.function = function
        self.x = np.array(start, dtype=np.float64)
        self.gradient, self._new_x = np.zeros_like(self.x), np.zeros_like(self.x)
        self._new_gradient, self._direction = np.zeros_like(self.x), np.zeros_like(self.x)
        self.history = _History(len(self.x))
        self.value = function(self.x, self.gradient)
        self.n_evaluations = 1

    def slope_norm(self) -> float:
        return _norm(self.gradient)

    def advance(self) -> bool:
        """Take one step; False if none improves the value."""
        slope = self.history.direction(self.gradient, self._direction)
        if not slope < 0:
            self.history.forget()
            slope = self.history.direction(self.gradient, self._direction)
        if self._line_search(slope):
            return True
        if self.history.n_pairs == 0:
            return False
        self.history.forget()
        return self._line_search(self.history.direction(self.gradient, self._direction))

    def _line_search(self, slope: float) -> bool:
        length = 1.0 if self.history.n_pairs else 1.0 / max(1.0, float(np.sqrt(-slope)))
        low, high = 0.0, np.inf
        for _ in range(30):
            vectors.step_to(self.x, length, self._direction, self._new_x)
            value = self.function(self._new_x, self._new_gradient)
            self.n_evaluations += 1
            new_slope = float(vectors.dot(self._direction, self._new_gradient))
            if not value <= self.value + _SUFFICIENT * length * slope:
                high = length
                length = self._shorter(low, high, value, slope)
            elif new_slope < _CURVATURE * slope:
                low = length
                length = 2.0 * length if np.isinf(high) else 0.5 * (low + high)
            else:
                self._accept(value)
                return True
        if value < self.value:
            self._accept(value)
            return True
        return False

    def _shorter(self, low: float, high: float, value: float, slope: float) -> float:
        """Interpolate by a parabola where that makes sense, else halve."""
        if low == 0.0 and np.isfinite(value):
            best = -slope * high * high / (2.0 * (value - self.value - slope * high))
            if np.isfinite(best):
                return float(np.clip(best, 0.1 * high, 0.6 * high))
        return 0.5 * (low + high)

    def _accept(self, value: float) -> None:
        self.history.add(self.x, self._new_x, self.gradient, self._new_gradient)
        self.value = value


class _OrthantSearch(_Search):
    """OWL-QN: L-BFGS on the pseudo-gradient, steps kept inside one orthant, backtracking."""

    def __init__(self, function: Function, start: Array, l1: float) -> None:
        super().__init__(function, start)
        self.l1 = l1
        self.pseudo = np.zeros_like(self.x)
        self.value += l1 * vectors.owlqn_pseudo_gradient(self.x, self.gradient, l1, self.pseudo)

    def slope_norm(self) -> float:
        return _norm(self.pseudo)

    def advance(self) -> bool:
        for _ in range(2):
            self.history.direction(self.pseudo, self._direction)
            slope = vectors.owlqn_align(self._direction, self.pseudo)
            if slope < 0 and self._line_search(slope):
                vectors.owlqn_pseudo_gradient(self.x, self.gradient, self.l1, self.pseudo)
                return True
            self.history.forget()
        return False

    def _line_search(self, slope: float) -> bool:
        length = 1.0 if self.history.n_pairs else 1.0 / max(1.0, float(np.sqrt(-slope)))
        for _ in range(40):
            norm, change = vectors.owlqn_project(self.x, self.pseudo, length, self._direction, self._new_x)
            value = self.function(self._new_x, self._new_gradient) + self.l1 * norm
            self.n_evaluations += 1
            if value <= self.value + _SUFFICIENT * change and change < 0:
                self._accept(value)
                return True
            length *= 0.5
        return False

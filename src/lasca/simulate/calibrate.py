"""Finding the parameter of a simulated crowd that gives a wanted majority-vote accuracy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lasca.corpus import CrowdCorpus
from lasca.errors import ModelError
from lasca.estimator import check_choice, check_int, check_number
from lasca.simulate.crowds import simulation
from lasca.simulate.majority import majority_accuracy
from lasca.simulate.settings import CrowdSettings

__all__ = ["Calibrated", "calibrate_to"]


@dataclass(frozen=True)
class Calibrated:
    """The value found, the accuracy it gives (mean over the seeds), and all that was tried: (value, accuracy)."""

    parameter: str
    value: float
    accuracy: float
    trace: tuple[tuple[float, float], ...]


def calibrate_to(
    corpus: CrowdCorpus,
    target: float,
    *,
    parameter: str = "rho",
    low: float = 0.0,
    high: float | None = None,
    tolerance: float = 0.002,
    n_seeds: int = 3,
    max_steps: int = 20,
    seed: int = 0,
    **options: Any,
) -> Calibrated:
    """Find `rho` (errors="difficulty") or `common` for which majority vote is right on `target` of the tokens.

    Bisection between `low` and `high` (1 for rho, 0.5 for common) over crowds with the seeds seed … seed + n_seeds − 1,
    the same random numbers at every step, until the mean accuracy is within `tolerance`. `options` are the other
    arguments of `crowd`; for rho, errors is "difficulty" unless they say otherwise.

    >>> # calibrate_to(tdga, 0.91, parameter="common", gold="gold1", wrong="prior").value
    """
    check_choice("parameter", parameter, ("rho", "common"))
    check_number("target", target, low=0, high=1)
    check_number("tolerance", tolerance, low=0, open_low=True)
    check_int("n_seeds", n_seeds, low=1)
    check_int("max_steps", max_steps, low=1)
    check_int("seed", seed, low=0)
    left = check_number("low", low, low=0, high=1)
    right = check_number("high", (1.0 if parameter == "rho" else 0.5) if high is None else high, low=left, high=1)
    base = CrowdSettings(**({"errors": "difficulty"} if parameter == "rho" else {}) | options)
    gold, _ = base.gold_codes(corpus)
    trace: list[tuple[float, float]] = []

    def accuracy(value: float) -> float:
        crowds = (
            simulation(corpus, replace(base, **{parameter: value}, seed=seed + i)).corpus  # type: ignore[arg-type]
            for i in range(n_seeds)
        )
        found = float(np.mean([majority_accuracy(made, gold) for made in crowds]))
        trace.append((value, found))
        return found

    at_left, at_right = accuracy(left), accuracy(right)
    if not min(at_left, at_right) - tolerance <= target <= max(at_left, at_right) + tolerance:
        raise ModelError(
            f"majority vote cannot be right on {target:.1%} of the tokens by changing {parameter}",
            got=f"{at_left:.1%} at {left:g}, {at_right:.1%} at {right:g}",
            hint="Choose another target, other groups or another range (low, high)",
        )
    for _ in range(max_steps):
        best = min(trace, key=lambda pair: abs(pair[1] - target))
        if abs(best[1] - target) <= tolerance:
            break
        middle = (left + right) / 2
        if (accuracy(middle) > target) == (at_left > target):
            left = middle
        else:
            right = middle
    value, reached = min(trace, key=lambda pair: abs(pair[1] - target))
    return Calibrated(parameter, value, reached, tuple(trace))

"""Finding the parameter of a simulated crowd that gives a wanted majority-vote accuracy.

The majority vote here is a plain one; `lasca.MajorityVote` is the one for users.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lasca.arrays import Codes
from lasca.corpus import CrowdCorpus
from lasca.errors import ModelError
from lasca.estimator import check_choice, check_int, check_number
from lasca.simulate.crowds import simulation
from lasca.simulate.settings import CrowdSettings

__all__ = ["Calibrated", "calibrate_to", "majority_accuracy", "majority_labels"]


def majority_labels(corpus: CrowdCorpus) -> Codes:
    """Return the label most annotators gave each token, -1 where nobody did.

    Ties go to the label that is more frequent among all votes, then to the one that comes first.
    """
    n_labels, n_tokens = corpus.n_labels, corpus.n_tokens
    if not n_labels:
        return np.full(n_tokens, -1, np.int16)
    total = np.bincount(corpus.annotation_label, minlength=n_labels)
    order = np.lexsort((np.arange(n_labels), -total))  # the label that wins a tie against all others comes first
    rank = np.empty(n_labels, np.int64)
    rank[order] = np.arange(n_labels)
    result = np.empty(n_tokens, np.int16)
    step = max(1, (1 << 22) // n_labels)
    for first in range(0, n_tokens, step):
        last = min(first + step, n_tokens)
        part = slice(int(corpus.token_start[first]), int(corpus.token_start[last]))
        token = np.repeat(np.arange(last - first), np.diff(corpus.token_start[first : last + 1]))
        key = token * n_labels + rank[corpus.annotation_label[part]]
        votes = np.bincount(key, minlength=(last - first) * n_labels).reshape(-1, n_labels)
        result[first:last] = np.where(votes.any(axis=1), order[votes.argmax(axis=1)], -1)
    return result


def majority_accuracy(corpus: CrowdCorpus, gold: Codes) -> float:
    """Return the share of the tokens with a gold label that majority vote gets right."""
    known = gold >= 0
    return float((majority_labels(corpus)[known] == gold[known]).mean()) if known.any() else float("nan")


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

"""Fit a CRF to targets, from arrays to weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lasca.crf.features import Features
from lasca.crf.objective import Objective, allowed_labels
from lasca.crf.optimise import Progress, minimise
from lasca.crf.space import ParameterSpace, Weights
from lasca.errors import ModelError
from lasca.estimator import check_choice, check_int, check_number

__all__ = ["Callback", "fit", "make_space"]

Array = np.ndarray[Any, Any]
Callback = Callable[[Progress, Weights], bool]


def fit(
    features: Features,
    targets: Array,
    n_labels: int | None = None,
    *,
    objective: str = "likelihood",
    costs: Array | None = None,
    l2: float = 1.0,
    l1: float = 0.0,
    states: str = "all",
    init: Weights | None = None,
    sequences: Array | None = None,
    sequence_weights: Array | None = None,
    max_iter: int = 500,
    tolerance: float = 1e-5,
    memory: int = 6,
    threads: int = 1,
    callback: Callback | None = None,
) -> Weights:
    """Minimise l2 · ‖θ‖² + l1 · ‖θ‖₁ − Σ weight · objective over the chosen sequences; return the weights.

    `targets`: int labels per token (−1 = unknown), bool (n_tokens, n_labels) of allowed labels, or float
    (n_tokens, n_labels) distributions. `init` starts from earlier weights, in their parameter space;
    without it the space is `states`, "all" or "observed", and the start is 0. `sequences` are the indices
    to train on (all by default); nothing is copied. The callback sees each iteration and stops training by
    returning True. See `lasca.crf.objective` for the objectives.
    """
    targets = np.asarray(targets)
    if n_labels is None:
        n_labels = targets.shape[1] if targets.ndim == 2 else _from_init(init)
    check_number("l1", l1, low=0.0)
    check_int("max_iter", max_iter, low=0)
    if init is not None:
        space, start = init.space, init.vector
    else:
        space = make_space(features, targets, n_labels, states, sequences)
        start = np.zeros(space.size)
    function = Objective(
        features, targets, space, objective=objective, costs=costs, l2=l2, sequences=sequences,
        sequence_weights=sequence_weights, threads=threads,
    )  # fmt: skip
    watch = None if callback is None else lambda now, vector: callback(now, Weights(space, vector))
    found = minimise(function, start, l1=l1, max_iter=max_iter, tolerance=tolerance, memory=memory, callback=watch)
    return Weights(space, found.vector, found.trace, found.converged)


def make_space(
    features: Features, targets: Array, n_labels: int, states: str, sequences: Array | None = None
) -> ParameterSpace:
    """Return the parameter space "all" or "observed" (with soft targets: seen with a share above 0.01)."""
    if check_choice("states", states, ("all", "observed")) == "all":
        return ParameterSpace.full(features.n_features, n_labels)
    return ParameterSpace.observed(features, allowed_labels(targets, n_labels, 0.01), n_labels, sequences)


def _from_init(init: Weights | None) -> int:
    if init is None:
        raise ModelError("hard targets do not say how many labels there are", hint="Give n_labels")
    return init.space.n_labels

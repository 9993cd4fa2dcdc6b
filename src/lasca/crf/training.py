"""Fit a CRF to targets, from arrays to weights: by its objective (`fit`) or by the averaged perceptron.

The averaged perceptron (Collins 2002): a tagger in a second, and a starting point for others. Each pass decodes every
sequence in a new random order and, where the labels are wrong, adds the features of the right labels and takes off
those of the wrong ones; the result is the average of the weights over time. With weights γ (Plank, Hovy & Søgaard 2014)
the update of a token that was taken for j where t is right is γ(j, t) times as large: their loss γ(ŷ, y) max(0,
score(ŷ) − score(y)).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lasca.crf.features import Features, ParameterSpace, Weights, padded_width
from lasca.crf.objective import Objective, allowed_labels
from lasca.crf.optimise import Iteration, minimise
from lasca.errors import ModelError
from lasca.estimator import check_choice, check_int, check_number, generator
from lasca.kernels.crf_decode import perceptron_epoch
from lasca.kernels.simd import block_tuple

__all__ = ["Callback", "fit", "make_space", "perceptron"]

Array = np.ndarray[Any, Any]
Callback = Callable[[Iteration, Weights], bool]


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


def perceptron(
    features: Features,
    labels: Array,
    n_labels: int,
    *,
    epochs: int = 10,
    states: str = "observed",
    gamma: Array | None = None,
    seed: int | np.random.Generator = 0,
    callback: Callable[[int, int], bool] | None = None,
) -> Weights:
    """Return averaged weights after some passes over the fully labelled sequences; the trace holds errors per pass.

    `gamma` (n_labels, n_labels) weighs the update of a token by [predicted label, right label]; 1 without it.
    The callback gets the pass and its number of wrong tokens, and stops training by returning True.
    """
    check_int("epochs", epochs, low=1)
    labels = np.asarray(labels, dtype=np.int16)
    if labels.shape != (features.n_tokens,):
        raise ModelError(f"labels must be {features.n_tokens} integers", got=labels.shape)
    unknown = np.concatenate([[0], np.cumsum(labels < 0)])
    offsets = features.offsets
    chosen = np.flatnonzero((unknown[offsets[1:]] == unknown[offsets[:-1]]) & (offsets[1:] > offsets[:-1]))
    space = make_space(features, labels, n_labels, states, chosen)
    run = _Run(features, space, np.ones((n_labels, n_labels)) if gamma is None else np.array(gamma, dtype=np.float64))
    rng, step, trace = generator(seed), 0.0, []
    for epoch in range(epochs):
        step, errors = run.epoch(rng.permutation(chosen), labels, step)
        trace.append(float(errors))
        if errors == 0 or (callback is not None and callback(epoch, errors)):
            break
    return Weights(space, run.average(step), tuple(trace), trace[-1] == 0 if trace else True)


class _Run:
    """Dense weights and their sums over time."""

    def __init__(self, features: Features, space: ParameterSpace, gamma: Array) -> None:
        self.features, self.space, self.gamma = features, space, gamma
        width = padded_width(space.n_labels)
        self.blocks = block_tuple(width)
        owner = np.repeat(np.arange(space.n_features, dtype=np.int64), np.diff(space.feature_start))
        self.place = owner * width + space.feature_label
        size = space.n_features * width
        self.weights, self.sums = np.zeros(size), np.zeros(size)
        self.seen = np.zeros(size, dtype=np.bool_)
        self.seen[self.place] = True
        self.moves, self.move_sums = np.zeros(space.n_labels * width), np.zeros(space.n_labels * width)
        before, after = np.nonzero(space.move >= 0)
        self.move_place = before * width + after
        self.seen_moves = np.zeros(space.n_labels * width, dtype=np.bool_)
        self.seen_moves[self.move_place] = True

    def epoch(self, order: Array, labels: Array, step: float) -> tuple[float, int]:
        f = self.features
        result = perceptron_epoch(
            order, f.offsets, f.slots, f.bundle_start, f.bundle_feature, labels, self.seen, self.seen_moves,
            self.space.n_labels, self.blocks, self.weights, self.sums, self.moves, self.move_sums, step, self.gamma,
        )  # fmt: skip
        return float(result[0]), int(result[1])

    def average(self, step: float) -> Array:
        vector = np.zeros(self.space.size)
        vector[: self.space.n_state] = (self.weights - self.sums / (step + 1.0))[self.place]
        vector[self.space.n_state :] = (self.moves - self.move_sums / (step + 1.0))[self.move_place]
        return vector

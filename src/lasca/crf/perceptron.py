"""The averaged perceptron (Collins 2002): a tagger in a second, and a starting point for others.

Each pass decodes every sequence in a new random order and, where the labels are wrong, adds the features of
the right labels and takes off those of the wrong ones; the result is the average of the weights over time.
With weights γ (Plank, Hovy & Søgaard 2014) the update of a token that was taken for j where t is right is γ(j, t) times
as large: their loss γ(ŷ, y) max(0, score(ŷ) − score(y)).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lasca.crf.features import Features
from lasca.crf.space import ParameterSpace, Weights, padded_width
from lasca.crf.training import make_space
from lasca.errors import ModelError
from lasca.estimator import check_int, generator
from lasca.kernels.crf_decode import perceptron_epoch
from lasca.kernels.simd import block_tuple

__all__ = ["perceptron"]

Array = np.ndarray[Any, Any]


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

"""Fit a CRF to targets, from arrays to weights: by its objective, in memory (`fit`) or on blocks (`fit_blocks`), or by
the averaged perceptron.

*On blocks* of text, by an engine: in threads or on a cluster, the same bytes. The dictionary of features is made in two
passes: which words there are, then which keys, and how often. A third pass turns each block into features, in a file of
its own, and sees which labels each feature occurs with. Then L-BFGS runs here, on the gradients of all blocks, added up
in their order. A gradient is as long as the weights: this is what goes from each block to the driver in every step, and
the weights are what goes back.

*The averaged perceptron* (Collins 2002): a tagger in a second, and a starting point for others. Each pass decodes every
sequence in a new random order and, where the labels are wrong, adds the features of the right labels and takes off
those of the wrong ones; the result is the average of the weights over time. With weights γ (Plank, Hovy & Søgaard 2014)
the update of a token that was taken for j where t is right is γ(j, t) times as large: their loss γ(ŷ, y) max(0,
score(ŷ) − score(y)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lasca.arrays import Array, borders
from lasca.crf.extract import Extractor
from lasca.crf.features import Features, ParameterSpace, Weights, padded_width, seen_with
from lasca.crf.objective import Objective, allowed_labels
from lasca.crf.optimise import Iteration, minimise
from lasca.engine import Engine
from lasca.errors import ModelError
from lasca.estimator import check_choice, check_int, check_number, generator
from lasca.kernels import vectors
from lasca.kernels.crf_decode import perceptron_epoch
from lasca.kernels.simd import block_tuple
from lasca.records import read_record, write_record

__all__ = ["Callback", "LabelledText", "TextBlock", "fit", "fit_blocks", "make_space", "perceptron"]

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
    tol: float = 1e-5,
    n_threads: int = 1,
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
        sequence_weights=sequence_weights, n_threads=n_threads,
    )  # fmt: skip
    watch = None if callback is None else lambda now, vector: callback(now, Weights(space, vector))
    found = minimise(function, start, l1=l1, max_iter=max_iter, tol=tol, callback=watch)
    return Weights(space, found.vector, found.trace, found.converged)


def make_space(
    features: Features, targets: Array, n_labels: int, states: str, sequences: Array | None = None
) -> ParameterSpace:
    """Return the parameter space "all" or "observed" (with soft targets: seen with a share above 0.01)."""
    if check_choice("states", states, ("all", "observed")) == "all":
        return ParameterSpace.full(features.n_features, n_labels)
    return ParameterSpace.of_seen(*seen_with(features, allowed_labels(targets, n_labels, 0.01), sequences))


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
    offsets = features.offsets
    chosen = np.flatnonzero((np.diff(borders(labels < 0)[offsets]) == 0) & (np.diff(offsets) > 0))
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


@dataclass(frozen=True, eq=False)
class LabelledText:
    """Sequences of tokens, each token with a target (see `lasca.crf.objective`)."""

    tokens: list[str]
    offsets: Array
    targets: Array
    number: int = 0
    """Which block it is."""

    def load(self) -> LabelledText:
        """Return the text: it is in memory already."""
        return self


class TextBlock(Protocol):
    """Where a text is."""

    @property
    def number(self) -> int:
        """Which block it is."""

    def load(self) -> LabelledText:
        """Read it."""


class Words(dict[str, None]):
    """Different words, in the order in which they first occur."""

    def __add__(self, other: Words) -> Words:
        return Words(self | other)


class CountWords:
    """The first pass: the words of a block."""

    def visit(self, state: None, text: LabelledText, local: Any) -> tuple[tuple[Words], None]:
        """Return the words."""
        return (Words(dict.fromkeys(text.tokens)),), None


class CountKeys:
    """The second pass: the features of a block."""

    def visit(self, extractor: Extractor, text: LabelledText, local: Any) -> tuple[tuple[Any], None]:
        """Return how often each feature occurs."""
        return (extractor.count(text.tokens, text.offsets),), None


@dataclass(frozen=True)
class Extract:
    """The third pass: features into files, and which labels they occur with."""

    folder: Path
    n_labels: int
    states: str

    def visit(self, extractor: Extractor, text: LabelledText, local: Any) -> tuple[tuple[Array, Array], None]:
        """Write the features of a block, whole or not at all."""
        features = extractor.transform(text.tokens, text.offsets)
        write_record(Extracted(features, text.targets), self.folder / f"features-{text.number:05d}")
        if self.states == "all":
            return (np.zeros((0, 0), np.bool_), np.zeros((0, 0), np.bool_)), None
        return seen_with(features, allowed_labels(text.targets, self.n_labels, 0.01)), None


@dataclass(frozen=True, eq=False)
class Extracted:
    """The features of a block and what they are to explain."""

    features: Features
    targets: Array


@dataclass(frozen=True)
class ExtractedOnDisk:
    """Where the features of a block are."""

    file: Path

    def load(self) -> Extracted:
        """Read them."""
        found: Extracted = read_record(self.file)
        return found


@dataclass(frozen=True, eq=False)
class Gradient:
    """The value of the objective on a block, without its penalty, and the gradient."""

    space: ParameterSpace
    objective: str
    costs: Array | None
    l2: float

    def visit(self, vector: Array, block: Extracted, local: Any) -> tuple[tuple[float, Array], None]:
        """Evaluate the objective at a vector of weights."""
        gradient = np.zeros(self.space.size)
        if not block.features.n_tokens:
            return (0.0, gradient), None
        names = ("feature_start", "feature_label", "move")
        own: dict[str, Any] = {name: np.array(getattr(self.space, name)) for name in names}  # not read-only
        function = Objective(
            block.features, block.targets, replace(self.space, **own), objective=self.objective, costs=self.costs,
            l2=self.l2,
        )  # fmt: skip
        function.l2 = 0.0
        return (function(np.array(vector), gradient), gradient), None


def fit_blocks(
    blocks: Sequence[TextBlock],
    extractor: Extractor,
    n_labels: int,
    *,
    engine: Engine,
    folder: Path,
    objective: str,
    costs: Array | None,
    l2: float,
    l1: float,
    states: str,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
) -> Weights:
    """Fit a CRF to the texts of all blocks; `extractor` gets its dictionary, `folder` the features of the blocks."""
    with closing(engine.open(CountWords(), blocks)) as work:
        (words,) = work.sum(None)
    extractor.know(list(words))
    with closing(engine.open(CountKeys(), blocks)) as work:
        (counted,) = work.sum(extractor)
    extractor.settle(counted)
    with closing(engine.open(Extract(folder, n_labels, states), blocks)) as work:
        seen, moves = work.sum(extractor)
    if states == "all":
        space = ParameterSpace.full(extractor.n_features, n_labels)
    else:
        space = ParameterSpace.of_seen(seen, moves)
    extracted = [ExtractedOnDisk(folder / f"features-{block.number:05d}") for block in blocks]
    with closing(engine.open(Gradient(space, objective, costs, l2), extracted)) as work:

        def function(vector: Array, gradient: Array) -> float:
            value, gradient[:] = work.sum(vector)
            return float(value + vectors.add_penalty(vector, l2, gradient)) if l2 > 0 else float(value)

        watch = None if callback is None else lambda now, vector: callback(now, Weights(space, vector))
        found = minimise(function, np.zeros(space.size), l1=l1, max_iter=max_iter, tol=tol, callback=watch)
    return Weights(space, found.vector, found.trace, found.converged)

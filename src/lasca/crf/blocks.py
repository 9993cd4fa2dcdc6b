"""Training a CRF on blocks of text, by an engine: in threads or on a cluster, the same bytes.

The dictionary of features is made in two passes: which words there are, then which keys, and how often. A third pass
turns each block into features, in a file of its own, and sees which labels each feature occurs with. Then L-BFGS runs
here, on the gradients of all blocks, added up in their order. A gradient is as long as the weights: this is what goes
from each block to the driver in every step, and the weights are what goes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lasca.crf.extract import Extractor
from lasca.crf.features import Features, ParameterSpace, Weights, seen_with
from lasca.crf.objective import Objective, allowed_labels
from lasca.crf.optimise import minimise
from lasca.crf.training import Callback
from lasca.engine import Engine, Work
from lasca.kernels import vectors
from lasca.records import read_record, write_record

__all__ = ["Text", "TextBlock", "fit_blocks"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Text:
    """Sequences of tokens, each token with a target (see `lasca.crf.objective`)."""

    tokens: list[str]
    offsets: Array
    targets: Array
    number: int = 0
    """Which block it is."""

    def load(self) -> Text:
        """Return the text: it is in memory already."""
        return self


class TextBlock(Protocol):
    """Where a text is."""

    @property
    def number(self) -> int:
        """Which block it is."""

    def load(self) -> Text:
        """Read it."""


class Words(dict[str, None]):
    """Different words, in the order in which they first occur."""

    def __add__(self, other: Words) -> Words:
        return Words(self | other)


class CountWords:
    """The first pass: the words of a block."""

    def visit(self, state: None, text: Text, local: Any) -> tuple[tuple[Words], None]:
        """Return the words."""
        return (Words(dict.fromkeys(text.tokens)),), None


class CountKeys:
    """The second pass: the features of a block."""

    def visit(self, extractor: Extractor, text: Text, local: Any) -> tuple[tuple[Any], None]:
        """Return how often each feature occurs."""
        return (extractor.count(text.tokens, text.offsets),), None


@dataclass(frozen=True)
class Extract:
    """The third pass: features into files, and which labels they occur with."""

    folder: Path
    n_labels: int
    states: str

    def visit(self, extractor: Extractor, text: Text, local: Any) -> tuple[tuple[Array, Array], None]:
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


@contextmanager
def _opened(engine: Engine, learner: Any, blocks: Sequence[Any]) -> Iterator[Work]:
    work = engine.open(learner, blocks)
    try:
        yield work
    finally:
        work.close()


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
    tolerance: float,
    callback: Callback | None = None,
) -> Weights:
    """Fit a CRF to the texts of all blocks; `extractor` gets its dictionary, `folder` the features of the blocks."""
    with _opened(engine, CountWords(), blocks) as work:
        (words,) = work.sum(None)
    extractor.know(list(words))
    with _opened(engine, CountKeys(), blocks) as work:
        (counted,) = work.sum(extractor)
    extractor.settle(counted)
    with _opened(engine, Extract(folder, n_labels, states), blocks) as work:
        seen, moves = work.sum(extractor)
    if states == "all":
        space = ParameterSpace.full(extractor.n_features, n_labels)
    else:
        space = ParameterSpace.of_seen(seen, moves)
    extracted = [ExtractedOnDisk(folder / f"features-{block.number:05d}") for block in blocks]
    with _opened(engine, Gradient(space, objective, costs, l2), extracted) as work:

        def function(vector: Array, gradient: Array) -> float:
            value, gradient[:] = work.sum(vector)
            return float(value + vectors.add_penalty(vector, l2, gradient)) if l2 > 0 else float(value)

        watch = None if callback is None else lambda now, vector: callback(now, Weights(space, vector))
        found = minimise(
            function, np.zeros(space.size), l1=l1, max_iter=max_iter, tolerance=tolerance, callback=watch
        )  # fmt: skip
    return Weights(space, found.vector, found.trace, found.converged)

"""Which parameters a CRF has, and their values.

A parameter belongs to a feature and a label, or to a move from one label to the next. They lie in one flat
vector: first the features' parameters (feature f owns `feature_start[f]` to `feature_start[f + 1]`, their
labels are in `feature_label`), then the moves (`move[s, t]` is the parameter of s → t, −1 where there is none:
its weight is 0). "all" gives every feature every label; "observed" only the labels it was seen with, as CRFsuite
does by default: seven times fewer parameters on CoNLL-2003 for the same F1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lasca.crf.features import Features
from lasca.errors import ModelError

__all__ = ["ParameterSpace", "Weights", "padded_width"]

Array = np.ndarray[Any, Any]


def padded_width(n_labels: int) -> int:
    """Return the number of labels rounded up to whole blocks of four (of eight or thirty-two for many labels)."""
    step = 4 if n_labels <= 24 else 8 if n_labels <= 64 else 32
    return -(-n_labels // step) * step


@dataclass(frozen=True, eq=False)
class ParameterSpace:
    """The parameters of a CRF over `n_features` features and `n_labels` labels."""

    n_features: int
    n_labels: int
    feature_start: Array
    feature_label: Array
    move: Array

    @property
    def size(self) -> int:
        """The number of parameters."""
        return int(len(self.feature_label) + (self.move >= 0).sum())

    @property
    def n_state(self) -> int:
        """The number of parameters that belong to features; moves come after them."""
        return len(self.feature_label)

    @classmethod
    def full(cls, n_features: int, n_labels: int) -> ParameterSpace:
        """Give every feature every label, and allow every move: the weights of features are (n_features, n_labels)."""
        start = np.arange(n_features + 1, dtype=np.int64) * n_labels
        label = np.tile(np.arange(n_labels, dtype=np.int16), n_features)
        move = np.arange(n_labels * n_labels, dtype=np.int64).reshape(n_labels, n_labels) + len(label)
        return cls(n_features, n_labels, start, label, move)

    @classmethod
    def observed(cls, features: Features, mass: Array, n_labels: int, sequences: Array | None = None) -> ParameterSpace:
        """Give a feature the labels it occurs with, and keep the moves that occur.

        `mass` is a bool array (n_tokens, n_labels): which labels a token may have.
        """
        from lasca.kernels.crf_setup import observed_pairs

        chosen = np.arange(features.n_sequences) if sequences is None else np.asarray(sequences, dtype=np.int64)
        seen, moves = observed_pairs(
            chosen, features.offsets, features.slots, features.bundle_start, features.bundle_feature,
            np.ascontiguousarray(mass, dtype=np.bool_), features.n_features,
        )  # fmt: skip
        start = np.zeros(features.n_features + 1, dtype=np.int64)
        np.cumsum(seen.sum(axis=1), out=start[1:])
        label = np.nonzero(seen)[1].astype(np.int16)
        move = np.where(moves, np.cumsum(moves.ravel()).reshape(moves.shape) - 1 + len(label), -1)
        return cls(features.n_features, n_labels, start, label, move.astype(np.int64))


@dataclass(frozen=True, eq=False)
class Weights:
    """A parameter vector in its space, with the trace of how it was found."""

    space: ParameterSpace
    vector: Array
    trace: tuple[float, ...] = field(default=())
    converged: bool = False

    def __post_init__(self) -> None:
        if self.vector.shape != (self.space.size,):
            raise ModelError(f"weights must be a vector of {self.space.size} parameters", got=self.vector.shape)

    @classmethod
    def zeros(cls, space: ParameterSpace) -> Weights:
        """Return weights that are all 0."""
        return cls(space, np.zeros(space.size))

    @classmethod
    def of_scores(cls, scores: Array, transitions: Array) -> Weights:
        """Take scores of labels per token, (n_tokens, n_labels), as weights over `Features.one_each`."""
        vector = np.concatenate([np.ravel(scores), np.ravel(transitions)]).astype(np.float64)
        return cls(ParameterSpace.full(*np.shape(scores)), vector)

    @property
    def transitions(self) -> Array:
        """The weights of moves, (n_labels, n_labels), row = label before."""
        padded = np.append(self.vector, 0.0)
        return np.asarray(padded[self.space.move])

    def state(self) -> Array:
        """Return the weights of features as a dense matrix (n_features, n_labels)."""
        dense = np.zeros((self.space.n_features, self.space.n_labels))
        rows = np.repeat(np.arange(self.space.n_features), np.diff(self.space.feature_start))
        dense[rows, self.space.feature_label] = self.vector[: self.space.n_state]
        return dense

"""What all scores share: precision and recall from counts, and which tokens take part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.errors import CorpusError

__all__ = ["Labelled", "Prf", "check_codes", "check_offsets", "encode", "ratio", "sequence_mask"]

Labelled = Sequence[Sequence[str | None]]
"""One list of label names per sequence; None where a token has no label."""


def ratio(numerator: float, denominator: float) -> float:
    """Divide; nothing out of nothing is 0 (as seqeval and scikit-learn have it)."""
    return float(numerator) / float(denominator) if denominator else 0.0


@dataclass(frozen=True)
class Prf:
    """Precision, recall and F1, with the counts they come from."""

    precision: float
    recall: float
    f1: float
    n_gold: int
    n_predicted: int
    n_correct: int

    @classmethod
    def from_counts(cls, n_gold: int, n_predicted: int, n_correct: int) -> Prf:
        """Make the scores from how many there are, how many were found, and how many of these are right."""
        precision, recall = ratio(n_correct, n_predicted), ratio(n_correct, n_gold)
        f1 = ratio(2 * precision * recall, precision + recall)
        return cls(precision, recall, f1, int(n_gold), int(n_predicted), int(n_correct))


def check_codes(name: str, codes: npt.ArrayLike, n_labels: int, n_tokens: int | None = None) -> npt.NDArray[Any]:
    """Return label codes (-1 = none) as an array, or say what is wrong with them."""
    array = np.asarray(codes)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise CorpusError(f"{name} must be one label code per token", got=f"{array.dtype} of shape {array.shape}")
    if n_tokens is not None and len(array) != n_tokens:
        raise CorpusError(f"{name} must have one label per token ({n_tokens})", got=len(array))
    if array.size and (array.min() < -1 or array.max() >= n_labels):
        raise CorpusError(f"{name} must lie in -1..{n_labels - 1}", got=f"{array.min()}..{array.max()}")
    return array if array.size else array.astype(np.int16)


def check_offsets(offsets: npt.ArrayLike, n_tokens: int) -> npt.NDArray[np.int64]:
    """Return the sequence offsets, or say that they do not fit the tokens."""
    array = np.asarray(offsets, dtype=np.int64)
    if array.ndim != 1 or not len(array) or array[0] != 0 or array[-1] != n_tokens or np.any(np.diff(array) < 0):
        raise CorpusError(f"offsets must rise from 0 to the number of tokens ({n_tokens})", got=array[:8].tolist())
    return array


def sequence_mask(sequences: npt.ArrayLike | None, n_sequences: int) -> npt.NDArray[np.bool_]:
    """Return which sequences take part: all, a mask, or indices."""
    if sequences is None:
        return np.ones(n_sequences, np.bool_)
    given = np.asarray(sequences)
    if given.dtype == np.bool_ and given.shape == (n_sequences,):
        return given
    if given.dtype == np.bool_ or (given.size and given.dtype.kind not in "iu"):
        raise CorpusError(f"sequences must be a mask of {n_sequences} entries, or indices", got=given.shape)
    if given.size and (given.min() < 0 or given.max() >= n_sequences):
        raise CorpusError(f"sequence indices must lie in 0..{n_sequences - 1}", got=f"{given.min()}..{given.max()}")
    mask = np.zeros(n_sequences, np.bool_)
    mask[given.astype(np.int64)] = True
    return mask


def encode(
    gold: Labelled, predicted: Labelled
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int64], list[str]]:
    """Turn lists of label names into codes, offsets and the sorted label names."""
    lengths = [len(row) for row in gold]
    if len(gold) != len(predicted):
        raise CorpusError(f"gold has {len(gold)} sequences and the prediction another number", got=len(predicted))
    for s, (a, b) in enumerate(zip(lengths, predicted)):
        if a != len(b):
            raise CorpusError(f"gold has {a} labels and the prediction {len(b)}", where=f"sequence {s}")
    names = {name for rows in (gold, predicted) for row in rows for name in row}
    names.discard(None)
    strange = next((name for name in names if not isinstance(name, str) or not name), None)
    if strange is not None:
        raise CorpusError("a label must be a string that is not empty", got=strange, hint="None stands for no label")
    labels = sorted(str(name) for name in names)
    code: dict[str | None, int] = {name: i for i, name in enumerate(labels)}
    code[None] = -1
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    flat = [
        np.fromiter((code[name] for name in chain.from_iterable(rows)), np.int32, int(offsets[-1]))
        for rows in (gold, predicted)
    ]
    return flat[0], flat[1], offsets, labels

"""Token scores: accuracy, F1 per label, macro and weighted, and the table of who was taken for whom.

First what all scores share: precision and recall from counts, and which tokens take part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.arrays import Array, Bools, Ints, Ints32, borders
from lasca.errors import CorpusError

__all__ = [
    "Labelled", "Plain", "Prf", "TokenScores", "check_codes", "check_offsets", "confusion_counts", "encode", "ratio",
    "sequence_mask", "tokens", "tokens_from_codes",
]  # fmt: skip

Labelled = Sequence[Sequence[str | None]]
"""One list of label names per sequence; None where a token has no label."""


def ratio(numerator: float, denominator: float) -> float:
    """Divide; nothing out of nothing is 0 (as seqeval and scikit-learn have it)."""
    return float(numerator) / float(denominator) if denominator else 0.0


class Plain:
    """The base of dataclasses that can be written as JSON."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; nan becomes None."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if isinstance(value, Plain):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: _plain(x) for name, x in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(x) for x in (value.tolist() if isinstance(value, np.ndarray) else value)]
    return None if value != value else value


@dataclass(frozen=True)
class Prf(Plain):
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


def check_codes(name: str, codes: npt.ArrayLike, n_labels: int, n_tokens: int | None = None) -> Array:
    """Return label codes (-1 = none) as an array, or say what is wrong with them."""
    array = np.asarray(codes)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise CorpusError(f"{name} must be one label code per token", got=f"{array.dtype} of shape {array.shape}")
    if n_tokens is not None and len(array) != n_tokens:
        raise CorpusError(f"{name} must have one label per token ({n_tokens})", got=len(array))
    if array.size and (array.min() < -1 or array.max() >= n_labels):
        raise CorpusError(f"{name} must lie in -1..{n_labels - 1}", got=f"{array.min()}..{array.max()}")
    return array if array.size else array.astype(np.int16)


def check_offsets(offsets: npt.ArrayLike, n_tokens: int) -> Ints:
    """Return the sequence offsets, or say that they do not fit the tokens."""
    array = np.asarray(offsets, dtype=np.int64)
    if array.ndim != 1 or not len(array) or array[0] != 0 or array[-1] != n_tokens or np.any(np.diff(array) < 0):
        raise CorpusError(f"offsets must rise from 0 to the number of tokens ({n_tokens})", got=array[:8].tolist())
    return array


def sequence_mask(sequences: npt.ArrayLike | None, n_sequences: int) -> Bools:
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


def encode(gold: Labelled, predicted: Labelled) -> tuple[Ints32, Ints32, Ints, list[str]]:
    """Turn lists of label names into codes, offsets and the sorted label names."""
    for row in chain(gold, predicted):  # letters are no labels
        if isinstance(row, str) or not hasattr(row, "__len__"):
            hint = "Codes, one per token, are scored by tokens_from_codes and spans_from_codes"
            raise CorpusError("labels must be lists of names, one list per sequence", got=row, hint=hint)
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
    offsets = borders(lengths)
    flat = [
        np.fromiter((code[name] for name in chain.from_iterable(rows)), np.int32, int(offsets[-1]))
        for rows in (gold, predicted)
    ]
    return flat[0], flat[1], offsets, labels


@dataclass(frozen=True, eq=False)
class TokenScores(Plain):
    """Accuracy and F1 over tokens that have a gold label.

    `macro_f1` is the plain mean over the labels that occur in gold or prediction (as scikit-learn has it),
    `weighted_f1` weighs them by their number in gold.
    """

    accuracy: float
    macro_f1: float
    weighted_f1: float
    per_label: Mapping[str, Prf]
    labels: tuple[str, ...]
    confusion: Ints
    """(n_labels, n_labels): tokens of gold label (row) that were predicted as (column)."""
    n_tokens: int
    n_correct: int
    left_out_tokens: int
    """Tokens without a gold label, or outside the chosen sequences."""
    unpredicted_tokens: int
    """Tokens with a gold label but no predicted one; they count as wrong and are in no column of `confusion`."""


def tokens(gold: Labelled, predicted: Labelled, *, sequences: npt.ArrayLike | None = None) -> TokenScores:
    """Compare two labellings given as lists of label names, one list per sequence; None = no label.

    >>> round(tokens([["NOUN", "VERB", "NOUN"]], [["NOUN", "NOUN", "NOUN"]]).accuracy, 3)
    0.667
    """
    gold_codes, predicted_codes, offsets, labels = encode(gold, predicted)
    return tokens_from_codes(gold_codes, predicted_codes, labels, offsets=offsets, sequences=sequences)


def tokens_from_codes(
    gold: npt.ArrayLike,
    predicted: npt.ArrayLike,
    labels: Sequence[str],
    *,
    offsets: npt.ArrayLike | None = None,
    sequences: npt.ArrayLike | None = None,
) -> TokenScores:
    """Do as `tokens` for label codes, -1 = none; `sequences` (mask or indices) needs `offsets`."""
    gold_codes = check_codes("gold", gold, len(labels))
    predicted_codes = check_codes("the prediction", predicted, len(labels), len(gold_codes))
    kept = gold_codes >= 0
    if sequences is not None:
        if offsets is None:
            raise CorpusError("a choice of sequences needs to know where they begin", hint="Give offsets")
        bounds = check_offsets(offsets, len(gold_codes))
        kept &= np.repeat(sequence_mask(sequences, len(bounds) - 1), np.diff(bounds))
    gold_codes, predicted_codes = gold_codes[kept], predicted_codes[kept]
    confusion = confusion_counts(gold_codes, predicted_codes, len(labels))
    n_gold = np.bincount(gold_codes, minlength=len(labels))
    n_predicted, n_correct = confusion.sum(axis=0), np.diagonal(confusion)
    per_label = {
        label: Prf.from_counts(int(n_gold[i]), int(n_predicted[i]), int(n_correct[i]))
        for i, label in enumerate(labels)
        if n_gold[i] or n_predicted[i]
    }
    return TokenScores(
        accuracy=ratio(int(n_correct.sum()), len(gold_codes)),
        macro_f1=ratio(sum(p.f1 for p in per_label.values()), len(per_label)),
        weighted_f1=ratio(sum(p.f1 * p.n_gold for p in per_label.values()), len(gold_codes)),
        per_label=per_label,
        labels=tuple(labels),
        confusion=confusion,
        n_tokens=len(gold_codes),
        n_correct=int(n_correct.sum()),
        left_out_tokens=int((~kept).sum()),
        unpredicted_tokens=int((predicted_codes < 0).sum()),
    )


def confusion_counts(gold: npt.ArrayLike, predicted: npt.ArrayLike, n_labels: int) -> Ints:
    """Count tokens by gold label (row) and predicted label (column); tokens where either is -1 are not counted."""
    rows, columns = check_codes("gold", gold, n_labels), check_codes("the prediction", predicted, n_labels)
    if len(rows) != len(columns):
        raise CorpusError(f"gold has {len(rows)} labels and the prediction another number", got=len(columns))
    both = (rows >= 0) & (columns >= 0)
    key = rows[both].astype(np.int64) * n_labels + columns[both]
    return np.bincount(key, minlength=n_labels * n_labels).reshape(n_labels, n_labels)

"""Token scores: accuracy, F1 per label, macro and weighted, and the table of who was taken for whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.errors import CorpusError
from lasca.evaluate.base import Labelled, Prf, check_codes, check_offsets, encode, ratio, sequence_mask

__all__ = ["TokenScores", "confusion_counts", "tokens", "tokens_from_codes"]


@dataclass(frozen=True, eq=False)
class TokenScores:
    """Accuracy and F1 over tokens that have a gold label.

    `macro_f1` is the plain mean over the labels that occur in gold or prediction (as scikit-learn has it),
    `weighted_f1` weighs them by their number in gold.
    """

    accuracy: float
    macro_f1: float
    weighted_f1: float
    per_label: Mapping[str, Prf]
    labels: tuple[str, ...]
    confusion: npt.NDArray[np.int64]
    """(n_labels, n_labels): tokens of gold label (row) that were predicted as (column)."""
    n_tokens: int
    n_correct: int
    left_out_tokens: int
    """Tokens without a gold label, or outside the chosen sequences."""
    unpredicted_tokens: int
    """Tokens with a gold label but no predicted one; they count as wrong and are in no column of `confusion`."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        per_label = {label: vars(scores) for label, scores in self.per_label.items()}
        return data | {"per_label": per_label, "labels": list(self.labels), "confusion": self.confusion.tolist()}


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


def confusion_counts(gold: npt.ArrayLike, predicted: npt.ArrayLike, n_labels: int) -> npt.NDArray[np.int64]:
    """Count tokens by gold label (row) and predicted label (column); tokens where either is -1 are not counted."""
    rows, columns = check_codes("gold", gold, n_labels), check_codes("the prediction", predicted, n_labels)
    if len(rows) != len(columns):
        raise CorpusError(f"gold has {len(rows)} labels and the prediction another number", got=len(columns))
    both = (rows >= 0) & (columns >= 0)
    key = rows[both].astype(np.int64) * n_labels + columns[both]
    return np.bincount(key, minlength=n_labels * n_labels).reshape(n_labels, n_labels)

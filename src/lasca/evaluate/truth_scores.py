"""One line for an inferred truth against a gold: tokens, spans and probabilities together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasca import schemes
from lasca.evaluate.calibration_scores import calibration
from lasca.evaluate.span_scores import spans_from_codes
from lasca.evaluate.token_scores import tokens_from_codes

__all__ = ["Scores", "truth_scores"]


@dataclass(frozen=True)
class Scores:
    """How good a truth is against a gold, on some of the sequences."""

    accuracy: float
    precision: float | None
    recall: float | None
    f1: float | None
    """Span scores, read leniently as seqeval does by default; None where the labels are not spans."""
    macro_f1: float
    cross_entropy: float
    ece: float
    n_tokens: int


def truth_scores(
    gold: npt.NDArray[np.int16],
    labels: npt.NDArray[np.int16],
    proba: npt.NDArray[np.float32],
    voted: npt.NDArray[np.bool_],
    offsets: npt.NDArray[np.int64],
    names: Sequence[str],
    sequences: npt.NDArray[np.bool_],
) -> Scores:
    """Score labels and probabilities against a gold (-1 = none) on the sequences of a mask.

    Tokens that nobody labelled have no truth: they are left out, but of spans, which need their neighbours.
    """
    asked = np.where(voted, gold, np.int16(-1))
    tokens = tokens_from_codes(asked, labels, names, offsets=offsets, sequences=sequences)
    sure = calibration(proba, asked, mask=np.repeat(sequences, np.diff(offsets)))
    spans = None
    if schemes.detect(names) is not None:
        spans = spans_from_codes(gold, labels, offsets, names, sequences=sequences)
    return Scores(
        accuracy=tokens.accuracy,
        precision=None if spans is None else spans.precision,
        recall=None if spans is None else spans.recall,
        f1=None if spans is None else spans.f1,
        macro_f1=tokens.macro_f1,
        cross_entropy=sure.cross_entropy,
        ece=sure.ece,
        n_tokens=tokens.n_tokens,
    )

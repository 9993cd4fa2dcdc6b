"""An inferred truth against a gold: whether its probabilities are worth their name, and all scores in one line.

Cross entropy is the mean of −ln p(gold) in nats; p is clipped below at `clip` (default 1e-7, about the resolution of
float32), so that one confident mistake costs at most 16.1. The Brier score is the mean of Σ_t (p_t − [t = gold])²,
between 0 and 2. The expected calibration error (Guo et al. 2017) puts tokens in `n_bins` bins of equal width by the
probability of the most probable label, ((b − 1)/n, b/n], and averages |accuracy − confidence| over the bins weighed
by their size; among equally probable labels the first counts as the predicted one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca import schemes
from lasca.errors import CorpusError
from lasca.estimator import check_int, check_number
from lasca.evaluate.span_scores import spans_from_codes
from lasca.evaluate.token_scores import check_codes, ratio, tokens_from_codes

__all__ = ["Calibration", "Scores", "calibration", "truth_scores"]

ROWS = 1 << 18  # tokens looked at together


@dataclass(frozen=True, eq=False)
class Calibration:
    """Scores of probabilities against gold, with the bins of a reliability diagram."""

    cross_entropy: float
    brier: float
    ece: float
    max_calibration_error: float
    n_tokens: int
    left_out_tokens: int
    """Tokens without a gold label."""
    clipped_tokens: int
    """Tokens whose gold label had a probability below `clip`."""
    bin_edges: npt.NDArray[np.float64]
    bin_count: npt.NDArray[np.int64]
    bin_confidence: npt.NDArray[np.float64]
    """Mean probability of the predicted label in each bin (nan in an empty one)."""
    bin_accuracy: npt.NDArray[np.float64]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; nan becomes None."""
        data: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                data[name] = [None if x != x else x for x in value.tolist()]
            else:
                data[name] = value
        return data


def calibration(
    proba: npt.ArrayLike,
    gold: npt.ArrayLike,
    *,
    n_bins: int = 15,
    clip: float = 1e-7,
    mask: npt.ArrayLike | None = None,
) -> Calibration:
    """Score probabilities (n_tokens, n_labels) against gold codes; tokens with gold -1 are left out and counted.

    `mask` (bool per token) restricts the scores further.
    """
    check_int("n_bins", n_bins, low=1)
    check_number("clip", clip, low=0, high=0.5, open_low=True)
    p = np.asarray(proba)
    if p.ndim != 2 or p.dtype.kind != "f":
        raise CorpusError("proba must be an array of probabilities (n_tokens, n_labels)", got=p.shape)
    codes = check_codes("gold", gold, p.shape[1], p.shape[0])
    kept = codes >= 0
    if mask is not None:
        given = np.asarray(mask)
        if given.dtype != np.bool_ or given.shape != codes.shape:
            raise CorpusError(f"mask must be one bool per token ({len(codes)})", got=given.shape)
        kept = kept & given
    rows = np.flatnonzero(kept)
    chosen, top, right, square = _per_token(p, codes, rows)
    edges = np.linspace(0, 1, n_bins + 1)
    bins = np.clip(np.searchsorted(edges, top, side="left") - 1, 0, n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    with np.errstate(invalid="ignore"):
        confidence = np.bincount(bins, weights=top, minlength=n_bins) / count
        accuracy = np.bincount(bins, weights=right, minlength=n_bins) / count
    gap = np.abs(np.where(count > 0, accuracy - confidence, 0.0))
    return Calibration(
        cross_entropy=ratio(float(-np.log(np.maximum(chosen, clip)).sum()), len(rows)),
        brier=ratio(float(square.sum()), len(rows)),
        ece=ratio(float((gap * count).sum()), len(rows)),
        max_calibration_error=float(gap.max()),
        n_tokens=len(rows),
        left_out_tokens=len(codes) - len(rows),
        clipped_tokens=int((chosen < clip).sum()),
        bin_edges=edges,
        bin_count=count,
        bin_confidence=confidence,
        bin_accuracy=accuracy,
    )


def _per_token(
    p: npt.NDArray[Any], gold: npt.NDArray[Any], rows: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], ...]:
    """Return p(gold), the highest p, whether its label is gold, and the squared distance, for the chosen tokens."""
    result = tuple(np.empty(len(rows)) for _ in range(4))
    for start in range(0, len(rows), ROWS):
        part = slice(start, start + ROWS)
        at = rows[part]
        block, want = p[at].astype(np.float64), gold[at].astype(np.int64)
        if not np.isfinite(block).all() or block.min(initial=0) < 0 or np.abs(block.sum(axis=1) - 1).max() > 1e-3:
            bad = int(at[np.argmin(np.isclose(block.sum(axis=1), 1, rtol=0, atol=1e-3) & (block >= 0).all(axis=1))])
            raise CorpusError("the probabilities of a token must be at least 0 and add up to 1", where=f"token {bad}")
        chosen = np.take_along_axis(block, want[:, None], axis=1)[:, 0]
        best = block.argmax(axis=1)
        result[0][part] = chosen
        result[1][part] = np.take_along_axis(block, best[:, None], axis=1)[:, 0]
        result[2][part] = best == want
        result[3][part] = np.einsum("ij,ij->i", block, block) - 2 * chosen + 1
    return result


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

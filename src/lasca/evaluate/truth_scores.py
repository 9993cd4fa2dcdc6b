"""An inferred truth against a gold: whether its probabilities are worth their name, and all scores in one line.

Cross entropy is the mean of −ln p(gold) in nats; p is clipped below at `clip` (default 1e-7, about the resolution of
float32), so that one confident mistake costs at most 16.1. The Brier score is the mean of Σ_t (p_t − [t = gold])²,
between 0 and 2. The expected calibration error (Guo et al. 2017) puts tokens in `n_bins` bins of equal width by the
probability of the most probable label, ((b − 1)/n, b/n], and averages |accuracy − confidence| over the bins weighed
by their size; among equally probable labels the first counts as the predicted one.

*How well ambiguous tokens were found*, against two golds, by threshold and by rank. A token is truly ambiguous where
two golds differ. acc1 is the share of these that were flagged, acc2 the share whose candidates hold both golds; average
precision and the area under the ROC curve look at the whole ranking. Equal scores stand for one threshold: they enter
the precision-recall curve together and count half in the ROC area.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasca import schemes
from lasca.arrays import Array, Bools, Codes, Floats, Ints, Proba
from lasca.errors import CorpusError
from lasca.estimator import check_int, check_number
from lasca.evaluate.span_scores import spans_from_codes
from lasca.evaluate.token_scores import Plain, check_codes, ratio, sequence_mask, tokens_from_codes

__all__ = [
    "AmbiguityScores", "Calibration", "Scores", "ambiguity", "auroc", "average_precision", "calibration",
    "truth_scores",
]  # fmt: skip

ROWS = 1 << 18  # tokens looked at together


@dataclass(frozen=True, eq=False)
class Calibration(Plain):
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
    bin_edges: Floats
    bin_count: Ints
    bin_confidence: Floats
    """Mean probability of the predicted label in each bin (nan in an empty one)."""
    bin_accuracy: Floats


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


def _per_token(p: Array, gold: Array, rows: Ints) -> tuple[Floats, ...]:
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
    gold: Codes,
    labels: Codes,
    proba: Proba,
    voted: Bools,
    offsets: Ints,
    names: Sequence[str],
    sequences: npt.ArrayLike,
) -> Scores:
    """Score labels and probabilities against a gold (-1 = none) on some sequences (a mask, or indices).

    Tokens that nobody labelled have no truth: they are left out, but of spans, which need their neighbours.
    """
    mask = sequence_mask(sequences, len(offsets) - 1)
    asked = np.where(voted, gold, np.int16(-1))
    tokens = tokens_from_codes(asked, labels, names, offsets=offsets, sequences=mask)
    sure = calibration(proba, asked, mask=np.repeat(mask, np.diff(offsets)))
    spans = None
    if schemes.detect(names) is not None:
        spans = spans_from_codes(gold, labels, offsets, names, sequences=mask)
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


@dataclass(frozen=True)
class AmbiguityScores(Plain):
    """Scores of a ranking and a choice of ambiguous tokens against two golds."""

    acc1: float
    acc2: float
    average_precision: float
    auroc: float
    precision: float
    """The share of the flagged tokens that are truly ambiguous."""
    n_tokens: int
    n_differing: int
    n_flagged: int
    n_unranked: int
    """Tokens whose score is nan; they stand below all others."""
    left_out_tokens: int
    """Tokens that lack one of the golds."""


def ambiguity(
    score: npt.ArrayLike,
    gold: npt.ArrayLike,
    second_gold: npt.ArrayLike,
    *,
    tokens: npt.ArrayLike = (),
    candidates: Sequence[Collection[int]] = (),
) -> AmbiguityScores:
    """Score `score` (per token, higher = more ambiguous), the flagged `tokens` and the label codes of their candidates.

    `candidates[k]` belongs to `tokens[k]`. Tokens that lack a gold are left out and counted.
    """
    first, second, values = np.asarray(gold), np.asarray(second_gold), np.asarray(score, dtype=np.float64)
    if not first.shape == second.shape == values.shape or values.ndim != 1:
        raise CorpusError(
            "score and golds must have one entry per token", got=(values.shape, first.shape, second.shape)
        )
    flagged = np.asarray(tokens, dtype=np.int64)
    if len(flagged) and (flagged.min() < 0 or flagged.max() >= len(values)):
        raise CorpusError(f"flagged tokens must lie in 0..{len(values) - 1}", got=f"{flagged.min()}..{flagged.max()}")
    if len(np.unique(flagged)) < len(flagged):
        raise CorpusError("a token was flagged twice", got=f"{len(flagged)} for {len(np.unique(flagged))} tokens")
    if len(candidates) and len(candidates) != len(flagged):
        raise CorpusError(f"every flagged token ({len(flagged)}) needs its candidates", got=len(candidates))
    known = (first >= 0) & (second >= 0)
    differ = known & (first != second)
    n_differing, found = int(differ.sum()), int(differ[flagged].sum())
    both = sum(
        differ[i] and first[i] in set(labels) and second[i] in set(labels) for i, labels in zip(flagged, candidates)
    )
    return AmbiguityScores(
        acc1=ratio(found, n_differing),
        acc2=ratio(both, n_differing),
        average_precision=average_precision(values[known], differ[known]),
        auroc=auroc(values[known], differ[known]),
        precision=ratio(found, int(known[flagged].sum())),
        n_tokens=int(known.sum()),
        n_differing=n_differing,
        n_flagged=int(known[flagged].sum()),
        n_unranked=int(np.isnan(values[known]).sum()),
        left_out_tokens=int((~known).sum()),
    )


def average_precision(score: npt.ArrayLike, positive: npt.ArrayLike) -> float:
    """Return Σ (R_k − R_{k−1}) P_k over the distinct scores from high to low; nan scores come last, as one.

    Without positives there is no answer: nan.
    """
    values, wanted = _ranked(score, positive)
    if not wanted.any():
        return float("nan")
    order = np.argsort(-values, kind="stable")
    last = np.append(np.flatnonzero(np.diff(values[order])), len(values) - 1)  # the last of each run of equal scores
    hits = np.cumsum(wanted[order])[last]
    gained = np.diff(hits, prepend=0)
    return float((gained * (hits / (last + 1))).sum() / hits[-1])


def auroc(score: npt.ArrayLike, positive: npt.ArrayLike) -> float:
    """Return the chance that a positive stands above a negative, ties counting half; nan scores come last, as one.

    Without positives or without negatives there is no answer: nan.
    """
    values, wanted = _ranked(score, positive)
    n_positive = int(wanted.sum())
    n_negative = len(wanted) - n_positive
    if not n_positive or not n_negative:
        return float("nan")
    _, at, count = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - (count - 1) / 2  # mean rank of each group of equal scores
    rank_sum = float(middle[at][wanted].sum())
    return (rank_sum - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative)


def _ranked(score: npt.ArrayLike, positive: npt.ArrayLike) -> tuple[Floats, Bools]:
    values, wanted = np.array(score, dtype=np.float64), np.asarray(positive, dtype=np.bool_)
    if values.ndim != 1 or values.shape != wanted.shape:
        raise CorpusError("score and positive must have one entry per token", got=(values.shape, wanted.shape))
    # ranks instead of values: infinities and nan need no special case afterwards
    distinct, codes = np.unique(values, return_inverse=True)
    lowest = np.where(np.isnan(distinct), -1.0, np.arange(len(distinct), dtype=np.float64))
    return lowest[codes], wanted

"""How well ambiguous tokens were found: against two golds, by threshold and by rank.

A token is truly ambiguous where two golds differ. acc1 is the share of these that were flagged, acc2 the share whose
candidates hold both golds; average precision and the area under the ROC curve look at the whole ranking. Equal scores
stand for one threshold: they enter the precision-recall curve together and count half in the ROC area.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.errors import CorpusError
from lasca.evaluate.token_scores import ratio

__all__ = ["AmbiguityScores", "ambiguity", "auroc", "average_precision"]


@dataclass(frozen=True)
class AmbiguityScores:
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

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


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


def _ranked(score: npt.ArrayLike, positive: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    values, wanted = np.array(score, dtype=np.float64), np.asarray(positive, dtype=np.bool_)
    if values.ndim != 1 or values.shape != wanted.shape:
        raise CorpusError("score and positive must have one entry per token", got=(values.shape, wanted.shape))
    # ranks instead of values: infinities and nan need no special case afterwards
    distinct, codes = np.unique(values, return_inverse=True)
    lowest = np.where(np.isnan(distinct), -1.0, np.arange(len(distinct), dtype=np.float64))
    return lowest[codes], wanted

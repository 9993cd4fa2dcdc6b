"""What all methods share: what they return, the choice of the ambiguous tokens, and their candidate labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lasca.arrays import Array, Codes, Floats, Ints, borders, ranges
from lasca.truth.base import Votes

__all__ = ["Ranking", "flagged", "pick_candidates", "vote_scores"]

LabelScores = Callable[[Ints], Floats]
"""From tokens to a score per label, (n, n_labels); -inf where a label does not compete."""


@dataclass(frozen=True)
class Ranking:
    """What a method finds out before tokens are flagged."""

    score: Floats
    label_scores: LabelScores
    unranked: Mapping[str, int]
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the `Ambiguity`."""
    pairs: Callable[[Ints], Mapping[str, Any]] | None = None
    """From flagged tokens to their pair fields; the candidates are then the best pair."""
    least: float = -np.inf
    """Tokens of this score or less are not ambiguous, whatever fraction is asked for."""


def flagged(score: Floats, entropy: Array, fraction: float | None, threshold: float, least: float = -np.inf) -> Array:
    """Return the most ambiguous tokens: a fraction of those with a score, or all whose score is above a threshold.

    A score of `least` or less is a clear no. Ties go to the larger entropy of the posterior, then to the earlier token.
    """
    ranked = np.flatnonzero(~np.isnan(score))
    if fraction is None:
        ranked = ranked[score[ranked] > threshold]
        wanted = len(ranked)
    else:
        wanted = int(fraction * len(ranked) + 0.5)
        ranked = ranked[score[ranked] > least]
    order = np.lexsort((ranked, -entropy[ranked], -score[ranked]))
    return ranked[order[:wanted]].astype(np.int64)


def vote_scores(votes: Votes, weight: Floats, *, mean: bool) -> LabelScores:
    """Score labels by the weights of the votes they got: the mean of them, or their share in the token's total.

    Votes of weight nan do not count.
    """

    def scores(tokens: Ints) -> Floats:
        at = ranges(votes.start[tokens], votes.start[tokens + 1])
        row = np.repeat(np.arange(len(tokens)), np.diff(votes.start)[tokens])
        counts = ~np.isnan(weight[at])
        cell = (row * votes.n_labels + votes.label[at])[counts]
        size = len(tokens) * votes.n_labels
        total = np.bincount(cell, weights=weight[at][counts], minlength=size).reshape(len(tokens), votes.n_labels)
        n = np.bincount(cell, minlength=size).reshape(total.shape)
        below = n if mean else np.maximum(total.sum(axis=1, keepdims=True), 1e-300)
        with np.errstate(invalid="ignore"):
            return np.where(n > 0, total / below, -np.inf)

    return scores


def pick_candidates(scores: Floats, truth: Array, best_two: Array | None = None) -> tuple[Ints, Codes, Floats]:
    """Return, as CSR arrays, the two best labels of each row and the inferred truth, best first, then by code.

    `best_two` names the two instead (-1 = none). A label that does not compete but is the truth scores 0.
    """
    n, n_labels = scores.shape
    chosen = np.zeros((n, n_labels), np.bool_)
    rows = np.arange(n)
    if best_two is None:
        best_two = np.argsort(-scores, axis=1, kind="stable")[:, :2]
        best_two = np.where(np.take_along_axis(scores, best_two, axis=1) > -np.inf, best_two, -1)
    for column in best_two.T:
        known = column >= 0
        chosen[rows[known], column[known]] = True
    chosen[rows, truth] = True
    values = np.where(chosen, np.maximum(scores, 0.0), -np.inf)
    order = np.argsort(-values, axis=1, kind="stable")
    keep = np.take_along_axis(chosen, order, axis=1)
    start = borders(chosen.sum(axis=1))
    return start, order[keep].astype(np.int16), np.take_along_axis(values, order, axis=1)[keep]

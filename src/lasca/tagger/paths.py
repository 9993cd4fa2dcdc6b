"""A truth as weighted label sequences: learning from what a crowd is unsure of without tearing spans apart.

Probabilities per token lose how labels hang together: where a span of two tokens is there with probability one half,
independent tokens give half of their weight to halves of it. So the truth is read as a chain again: among all Markov
chains with the truth's own probabilities at every token, the one closest to how labels follow each other in the truth
as a whole. With φ_k the scores at token k and ρ(s, t) = log p(s, t) / (p(s) p(t)) counted over the inferred labels
(never, where the tag scheme forbids it), the chain is ∝ exp(Σ φ_k(z_k) + Σ ρ(z_{k−1}, z_k)); φ is found by iterative
scaling: φ ← φ + log p − log of the chain's marginals. Its best few paths, with their probabilities, are what is
learned from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lasca.arrays import Array, borders, followers, ranges
from lasca.crf.decode import Constraint, marginals, n_best
from lasca.crf.features import Features, Weights

__all__ = ["Paths", "chain_of", "weighted_paths"]

_ROUNDS = 60
_FLOOR = 1e-4  # probabilities below this are raised to it
_SURE = 0.98  # sequences whose tokens are all surer than this have one path


@dataclass(frozen=True, eq=False)
class Paths:
    """Label sequences, one behind the other: whose they are, and how much each weighs (1 in all per sequence)."""

    owner: Array
    labels: Array
    offsets: Array
    weights: Array

    def repeat(self, features: Features) -> Features:
        """Return features with each sequence as often as it has paths; bundles are shared, so it costs little."""
        rows = ranges(features.offsets[self.owner], features.offsets[self.owner + 1])
        return Features(
            self.offsets, np.ascontiguousarray(features.slots[rows]), features.bundle_start, features.bundle_feature,
            features.n_features,
        )  # fmt: skip

    def followed_by(self, labels: Array, ends: Array) -> Paths:
        """Return the paths with further sequences behind them, of one path each, that end at `ends`."""
        n = int(self.owner.max(initial=-1)) + 1
        return Paths(
            np.concatenate([self.owner, n + np.arange(len(ends))]), np.concatenate([self.labels, labels]),
            np.concatenate([self.offsets, self.offsets[-1] + ends]), np.concatenate([self.weights, np.ones(len(ends))]),
        )  # fmt: skip


def chain_of(proba: Array, labels: Array, offsets: Array, constraint: Constraint | None) -> Weights:
    """Return the chain whose token probabilities are `proba`: scores of labels per token, and of moves."""
    n_labels = proba.shape[1]
    goal = np.maximum(proba, _FLOOR).astype(np.float64)
    logs = np.log(goal / goal.sum(axis=1, keepdims=True))
    moves = _association(labels, offsets, n_labels)
    if constraint is not None:
        moves = np.where(constraint.moves, moves, -30.0)
        starts = offsets[:-1][np.diff(offsets) > 0]
        logs[starts] = np.where(constraint.first, logs[starts], -30.0)
    features = Features.one_each(offsets)
    scores = logs.copy()
    place = np.arange(len(scores)) - np.repeat(offsets[:-1], np.diff(offsets))
    for turn in range(_ROUNDS):  # every third token at a time: neighbours that move together would overshoot
        found = np.maximum(marginals(features, Weights.of_scores(scores, moves)), 1e-9)
        own = place % 3 == turn % 3
        scores[own] += np.clip(logs[own] - np.log(found[own]), -5.0, 5.0)
    return Weights.of_scores(scores, moves)


def _association(labels: Array, offsets: Array, n_labels: int) -> Array:
    """Return log p(s, t) / (p(s) p(t)) of neighbours, with one half added to each count."""
    after = followers(offsets)
    after = after[(labels[after] >= 0) & (labels[after - 1] >= 0)]
    counts = np.full((n_labels, n_labels), 0.5)
    np.add.at(counts, (labels[after - 1], labels[after]), 1.0)
    share = counts / counts.sum()
    return np.asarray(np.log(share) - np.log(share.sum(axis=1))[:, None] - np.log(share.sum(axis=0))[None, :])


def weighted_paths(proba: Array, labels: Array, offsets: Array, n: int, constraint: Constraint | None = None) -> Paths:
    """Return up to n paths per sequence; `labels` are the inferred ones, −1 for tokens that have no truth.

    A token without a truth stays unknown (−1) in every path; paths that then are the same become one.
    """
    lengths = np.diff(offsets)
    unsure = np.where(labels >= 0, proba.max(axis=1) < _SURE, False)
    doubtful = np.flatnonzero(np.diff(borders(unsure)[offsets]))
    rows = np.repeat(np.isin(np.arange(len(lengths)), doubtful), lengths)
    own = borders(lengths[doubtful])
    chain = chain_of(proba[rows], labels[rows], own, constraint)
    found = dict(zip(doubtful.tolist(), n_best(Features.one_each(own), chain, n, constraint=constraint)))
    owner: list[int] = []
    parts: list[Array] = []
    weights: list[float] = []
    for s, (begin, end) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist())):
        given = labels[begin:end].astype(np.int16)
        known: dict[bytes, float] = {}
        for path, value in found.get(s, ()):
            key = np.where(given >= 0, path, -1).astype(np.int16).tobytes()
            known[key] = known.get(key, 0.0) + float(np.exp(value))
        if not known or sum(known.values()) <= 0:
            known = {given.tobytes(): 1.0}
        total = sum(known.values())
        for key, weight in known.items():
            owner.append(s)
            parts.append(np.frombuffer(key, dtype=np.int16))
            weights.append(weight / total)
    ends = borders([len(p) for p in parts])
    flat = np.concatenate([np.zeros(0, dtype=np.int16), *parts])
    return Paths(np.array(owner, dtype=np.int64), flat, ends, np.array(weights))

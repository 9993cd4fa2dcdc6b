"""What training minimises: minus the (weighted) sum of a sequence's objective, plus a quadratic penalty.

With score(z) = θ·f(x, z), the value of one sequence with target z of length K is

- likelihood: score(z) − log Σ_z' exp score(z');
- cost-sensitive (paper, eq. 18): score(z) − log Σ_z' cost(z', z) exp score(z'), where
  cost(z', z) = (1/K) Σ_k w(z'_k, z_k) [z'_k ≠ z_k]; the sums come from the expectation semiring;
- softmax-margin (Gimpel & Smith 2010): score(z) − log Σ_z' exp(score(z') + Σ_k w(z'_k, z_k) [z'_k ≠ z_k]).
  The cost is not divided by K here: it stands beside a score that grows with K;
- agreement (after Plank, Hovy & Søgaard 2014): − log Σ_z' exp Σ_k γ(z'_k, z_k) (s_k(z'_k) − s_k(z_k)) + the moves of z
  and z', where s_k are the scores of token k and γ = w: how sure people are that z'_k is not z_k. Their loss is
  γ(ŷ, y) max(0, score(ŷ) − score(y)), a perceptron's; this is the log-loss in its place (γ = 1: likelihood), and
  `perceptron(gamma=…)` has theirs as it is. Where two people often disagree a mistake moves the weights less. Moves are
  not weighed, so γ must be nearly the same for all labels: where it is not, training plays moves off against scores
  (docs/cost-sensitive.md). Tokens without a known label are not weighed; soft targets are refused.

Targets are hard labels (−1 = unknown: summed over), sets of allowed labels (bool, summed over), or soft
(a distribution per token: score(z) and the cost become expectations, tokens taken as independent).
A label that is allowed costs nothing; a sequence without any known label does not count.
The penalty is l2 · ‖θ‖², as CRFsuite's c2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lasca.arrays import Array
from lasca.crf.features import Features, ParameterSpace, padded_width
from lasca.engine import run_ordered
from lasca.errors import ModelError
from lasca.estimator import check_choice, check_number
from lasca.kernels import crf as kernels
from lasca.kernels import crf_features, vectors
from lasca.kernels.simd import block_tuple

__all__ = ["OBJECTIVES", "Objective", "Scores", "allowed_labels", "chunks_of", "cost_matrix"]


OBJECTIVES = {
    "likelihood": kernels.LIKELIHOOD,
    "cost-sensitive": kernels.COST_SENSITIVE,
    "softmax-margin": kernels.SOFTMAX_MARGIN,
    "agreement": kernels.AGREEMENT,
}
"""What the objectives are called."""
_LEAST_COST = 1e-3
"""No mistake is free: with a cost of 0 the objective would not tell two labels apart."""


def cost_matrix(confusion: Array | None, n_labels: int) -> Array:
    """Return the cost of taking one label for another: 1 − confusion, clipped to [0.001, 1], 0 on the diagonal.

    Entry [j, t] is the cost of label j where t is right. The clipping keeps the denominator of the
    cost-sensitive objective from vanishing where a confusion entry is 1.
    """
    if confusion is None:
        return 1.0 - np.eye(n_labels)
    matrix = np.asarray(confusion, dtype=np.float64)
    if matrix.shape != (n_labels, n_labels):
        raise ModelError(f"the confusion matrix must be {n_labels} x {n_labels}, one row per label", got=matrix.shape)
    if not np.all(np.isfinite(matrix)) or matrix.min() < 0 or matrix.max() > 1 + 1e-9:
        raise ModelError("the confusion matrix must hold numbers from 0 to 1", got=matrix)
    costs = np.clip(1.0 - matrix, _LEAST_COST, 1.0)
    np.fill_diagonal(costs, 0.0)
    return costs


def allowed_labels(targets: Array, n_labels: int, share: float = 0.0) -> Array:
    """Return which labels each token may have, (n_tokens, n_labels): known, unknown (none), allowed, or likely.

    A wholly unknown token counts for no label.
    """
    if targets.ndim == 1:
        allowed = np.zeros((len(targets), n_labels), dtype=np.bool_)
        known = np.flatnonzero(targets >= 0)
        allowed[known, targets[known]] = True
        return allowed
    if targets.dtype == np.bool_:
        return targets & ~targets.all(axis=1, keepdims=True)
    return np.asarray(targets > share)


def chunks_of(sequences: Array, offsets: Array, n_chunks: int) -> list[Array]:
    """Split sequences into runs with about the same number of tokens."""
    ends = np.cumsum(offsets[sequences + 1] - offsets[sequences])
    total = int(ends[-1]) if len(ends) else 0
    cuts = np.searchsorted(ends, [total * (c + 1) / n_chunks for c in range(n_chunks - 1)], side="right")
    return np.split(sequences, cuts)


def each(function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], n_threads: int) -> list[Any]:
    """Return function(*task) for each task; the tasks do not depend on the number of threads."""
    return run_ordered(lambda task: function(*task), tasks, n_threads)


class Scores:
    """Bundle scores and moves of a parameter vector, in the kernels' layout."""

    def __init__(self, features: Features, space: ParameterSpace, n_threads: int, pieces: int) -> None:
        if space.n_features != features.n_features:
            raise ModelError(f"weights over {space.n_features} features cannot score {features.n_features} features")
        self.features, self.space, self.n_threads = features, space, n_threads
        self.width = padded_width(space.n_labels)
        self.blocks = block_tuple(self.width)
        self.bundles = np.zeros(features.n_bundles * self.width)
        self.mask = (np.arange(self.width) < space.n_labels).astype(np.float64)
        self._ranges = _ranges(features.n_bundles, pieces)
        self._has_move = space.move >= 0
        self.transitions = np.zeros((space.n_labels, space.n_labels))
        self.shift = 0.0
        self.M = self.MT = self.A = self.AT = self.pad(self.transitions)

    def pad(self, matrix: Array) -> Array:
        """Return the rows of a matrix (n, n_labels) padded to the width, flat."""
        padded = np.zeros((len(matrix), self.width))
        padded[:, : matrix.shape[1]] = matrix
        return padded.ravel()

    def update(self, vector: Array) -> None:
        """Take a new parameter vector."""
        f, space = self.features, self.space
        each(
            crf_features.bundle_scores,
            [
                (lo, hi, f.bundle_start, f.bundle_feature, space.feature_start, space.feature_label,
                 vector, self.blocks, self.bundles)
                for lo, hi in self._ranges
            ],
            self.n_threads,
        )  # fmt: skip
        self.transitions[self._has_move] = vector[space.move[self._has_move]]
        self.shift = float(self.transitions.max(initial=0.0))
        moves = np.exp(np.maximum(self.transitions - self.shift, -300.0))
        self.M, self.MT = self.pad(moves), self.pad(moves.T)
        self.A, self.AT = self.pad(self.transitions), self.pad(self.transitions.T)


def _ranges(n: int, pieces: int) -> list[tuple[int, int]]:
    cuts = np.linspace(0, n, pieces + 1).astype(np.int64)
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist()))


class Objective:
    """Value and gradient at a parameter vector; `objective(vector, gradient)` fills the gradient."""

    def __init__(
        self,
        features: Features,
        targets: Array,
        space: ParameterSpace,
        *,
        objective: str = "likelihood",
        costs: Array | None = None,
        l2: float = 0.0,
        sequences: Array | None = None,
        sequence_weights: Array | None = None,
        n_threads: int = 1,
    ) -> None:
        self.kind = OBJECTIVES[check_choice("objective", objective, OBJECTIVES)]
        self.l2 = check_number("l2", l2, low=0.0)
        if objective == "cost-sensitive" and l2 == 0:
            raise ModelError(
                "the cost-sensitive objective has no optimum without a penalty", got="l2=0", hint="Give l2 > 0"
            )
        self.features, self.space = features, space
        n_tokens, n_labels = features.n_tokens, space.n_labels
        self._hard, self._soft, self._allowed = _split_targets(np.asarray(targets), n_tokens, n_labels)
        if self.kind == kernels.AGREEMENT and self._soft.size:
            raise ModelError(
                "the agreement objective needs a label per token, not probabilities", hint="Set soft=False"
            )
        chosen = np.arange(features.n_sequences) if sequences is None else np.asarray(sequences, dtype=np.int64)
        self._tasks, n_chunks = self._plan(chosen)
        self._n_threads = n_threads
        self.scores = Scores(features, space, n_threads, pieces=8)
        width = self.scores.width
        matrix = cost_matrix(None, n_labels) if costs is None else np.asarray(costs, dtype=np.float64)
        self._costs, self._units = self.scores.pad(matrix.T), self.scores.pad(np.eye(n_labels))
        self._weights = _sequence_weights(sequence_weights, features.n_sequences)
        self._bundles = np.zeros((n_chunks, features.n_bundles * width))
        self._pairs, self._moves = np.zeros((n_chunks, 2 * n_labels * width)), np.zeros((n_chunks, n_labels * width))
        self._partial = np.zeros((n_chunks, space.n_state))
        self._ranges = _ranges(features.n_bundles, n_chunks)
        self._logs: bool | None = None

    def _plan(self, sequences: Array) -> tuple[list[list[tuple[int, Array]]], int]:
        """Give each chunk its (kind of target, sequences); chunks depend on the data alone, not on the threads."""
        offsets = self.features.offsets
        sequences = sequences[offsets[sequences + 1] > offsets[sequences]]
        n_tokens = int((offsets[sequences + 1] - offsets[sequences]).sum())
        n_chunks = 1 if n_tokens < 5_000 else 2 if n_tokens < 400_000 else 4
        if self._soft.size:
            groups = [(kernels.SOFT, sequences)]
        elif not self._allowed.size:
            groups = [(kernels.HARD, sequences)]
        else:
            known: Array = np.logical_not(self._allowed.all(axis=1))
            lengths = offsets[sequences + 1] - offsets[sequences]
            some = np.array([known[offsets[s] : offsets[s + 1]].sum() for s in sequences], dtype=np.int64)
            single = np.array([self._hard[offsets[s] : offsets[s + 1]].min() >= 0 for s in sequences], dtype=np.bool_)
            full = (some == lengths) & single
            groups = [(kernels.HARD, sequences[full]), (kernels.PARTIAL, sequences[~full & (some > 0)])]
        plan: list[list[tuple[int, Array]]] = [[] for _ in range(n_chunks)]
        for kind, members in groups:
            for chunk, part in zip(plan, chunks_of(members, offsets, n_chunks)):
                if len(part):
                    chunk.append((kind, part))
        return plan, n_chunks

    def _chunk(self, c: int) -> float:
        scores, f = self.scores, self.features
        allowed = self._allowed if self._allowed.size else None
        while True:
            for buffer in (self._bundles, self._pairs, self._moves):
                buffer[c] = 0.0
            value, logs = 0.0, self._logs
            for kind, sequences in self._tasks[c]:
                value += kernels.chain_gradient(
                    self.kind, kind, sequences, f.offsets, f.slots, scores.bundles, scores.M, scores.MT,
                    scores.A, scores.AT, scores.shift, scores.mask, self._units, self._costs,
                    self._hard, self._soft, allowed, self._weights, self.space.n_labels, scores.blocks,
                    self._bundles[c], self._pairs[c], self._moves[c], logs,
                )  # fmt: skip
            if logs or self.kind != kernels.COST_SENSITIVE or not np.isnan(value):
                return value
            self._logs = True  # from now on: the model will not become less sure

    def __call__(self, vector: Array, gradient: Array) -> float:
        """Return the value to be minimised at a parameter vector and fill its gradient."""
        scores, space = self.scores, self.space
        scores.update(vector)
        value = -float(np.sum(run_ordered(self._chunk, range(len(self._tasks)), self._n_threads)))
        f = self.features
        each(
            crf_features.feature_gradient,
            [
                (lo, hi, f.bundle_start, f.bundle_feature, space.feature_start, space.feature_label,
                 self._bundles, scores.blocks, part)
                for (lo, hi), part in zip(self._ranges, self._partial)
            ],
            self._n_threads,
        )  # fmt: skip
        vectors.sum_parts(self._partial, gradient)
        T = space.n_labels
        moves = self._moves.sum(axis=0).reshape(T, -1)[:, :T]
        scaled, direct = self._pairs.sum(axis=0).reshape(2, -1)
        pairs = (scaled * scores.M + direct).reshape(T, -1)[:, :T]
        value -= float((moves * scores.transitions).sum())
        has = space.move >= 0
        gradient[space.move[has]] = (pairs - moves)[has]
        if self.l2 > 0:
            value += float(vectors.add_penalty(vector, self.l2, gradient))
        return value


def _split_targets(targets: Array, n_tokens: int, n_labels: int) -> tuple[Array, Array, Array]:
    """Return hard labels, soft targets and allowed labels; what is not used is empty."""
    hard, soft = np.zeros(0, dtype=np.int16), np.zeros((0, n_labels), dtype=np.float32)
    allowed = np.zeros((0, n_labels), dtype=np.bool_)
    if targets.shape not in ((n_tokens,), (n_tokens, n_labels)):
        raise ModelError(f"targets must be {n_tokens} labels or a matrix {n_tokens} x {n_labels}", got=targets.shape)
    if targets.ndim == 1:
        if targets.size and (targets.min() < -1 or targets.max() >= n_labels):
            raise ModelError(f"target labels must lie between -1 (unknown) and {n_labels - 1}", got=targets)
        hard = targets.astype(np.int16)
        if (hard < 0).any():
            allowed = np.ones((n_tokens, n_labels), dtype=np.bool_)
            known = hard >= 0
            allowed[known] = np.arange(n_labels) == hard[known, None]
    elif targets.dtype == np.bool_:
        if not targets.any(axis=1).all():
            raise ModelError("a token without any allowed label", where=f"token {int(np.argmin(targets.any(axis=1)))}")
        allowed = np.ascontiguousarray(targets)
        hard = np.where(targets.sum(axis=1) == 1, targets.argmax(axis=1), -1).astype(np.int16)
    else:
        soft = np.ascontiguousarray(targets, dtype=np.float32)
        if not np.all(np.isfinite(soft)) or (soft.size and soft.min() < 0):
            raise ModelError("soft targets must be probabilities")
        if soft.size and np.abs(soft.sum(axis=1) - 1.0).max() > 1e-3:
            raise ModelError("soft targets must sum to 1 for each token")
    return hard, soft, allowed


def _sequence_weights(weights: Array | None, n_sequences: int) -> Array:
    if weights is None:
        return np.ones(n_sequences)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n_sequences,) or not np.all(np.isfinite(weights)) or (weights < 0).any():
        raise ModelError(f"sequence weights must be {n_sequences} numbers of at least 0", got=weights)
    return weights

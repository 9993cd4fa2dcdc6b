"""What fitted weights say about sequences: marginal probabilities, the best labels, the n best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lasca.arrays import Array, Floats
from lasca.crf.features import Features, Weights
from lasca.crf.objective import Scores, chunks_of, each
from lasca.errors import ModelError
from lasca.estimator import check_int
from lasca.kernels.crf import chain_marginals
from lasca.kernels.crf_decode import n_best_paths, viterbi_paths

__all__ = ["Constraint", "log_partition", "marginals", "n_best", "token_scores", "viterbi"]


_NEVER = -1e30


@dataclass(frozen=True, eq=False)
class Constraint:
    """What a label scheme allows: moves (n_labels, n_labels), labels that may begin and that may end a sequence."""

    moves: Array
    first: Array
    last: Array

    @classmethod
    def none(cls, n_labels: int) -> Constraint:
        """Allow everything."""
        every = np.ones(n_labels, dtype=np.bool_)
        return cls(np.ones((n_labels, n_labels), dtype=np.bool_), every, every)

    def __post_init__(self) -> None:
        n = len(self.first)
        if self.moves.shape != (n, n) or self.last.shape != (n,):
            raise ModelError(f"a constraint over {n} labels needs {n} x {n} moves", got=self.moves.shape)
        if not self.first.any() or not self.last.any():
            raise ModelError("a constraint must let some label begin and some label end a sequence")


def _prepare(features: Features, weights: Weights, n_threads: int) -> Scores:
    scores = Scores(features, weights.space, n_threads, pieces=8 if features.n_bundles > 5_000 else 1)
    scores.update(weights.vector)
    return scores


def token_scores(features: Features, weights: Weights) -> Floats:
    """Return the sum of the weights of each token's features for each label."""
    scores, n_labels = _prepare(features, weights, 1), weights.space.n_labels
    bundles = scores.bundles.reshape(features.n_bundles, -1)[:, :n_labels]
    found = np.zeros((features.n_tokens, n_labels))
    for column in features.slots.T:
        found += bundles[column]
    return found


def _chosen(features: Features, sequences: Array | None) -> Array:
    return np.arange(features.n_sequences) if sequences is None else np.asarray(sequences, dtype=np.int64)


def _n_chunks(features: Features) -> int:
    return 1 if features.n_tokens < 5_000 else 8


def marginals(
    features: Features,
    weights: Weights,
    *,
    sequences: Array | None = None,
    n_threads: int = 1,
    out: Array | None = None,
) -> Array:
    """Return the probability of each label of each token, float32 (n_tokens, n_labels).

    Rows of sequences that were not asked for are 0, or what they were in `out`.
    """
    n_labels = weights.space.n_labels
    if out is None:
        out = np.zeros((features.n_tokens, n_labels), dtype=np.float32)
    if out.shape != (features.n_tokens, n_labels) or out.dtype != np.float32:
        raise ModelError(f"out must be float32, {features.n_tokens} x {n_labels}", got=(out.shape, out.dtype))
    _pass_over(features, weights, _chosen(features, sequences), n_threads, out)
    return out


def log_partition(features: Features, weights: Weights) -> Array:
    """Return the log of the sum of exp(score) over all label sequences, for each sequence (0 for empty ones)."""
    unused = np.zeros((features.n_tokens, weights.space.n_labels), dtype=np.float32)
    return _pass_over(features, weights, _chosen(features, None), 1, unused)


def _pass_over(features: Features, weights: Weights, chosen: Array, n_threads: int, out: Array) -> Array:
    """Write the marginals of some sequences to `out`; return the log sums of all sequences, 0 for the others."""
    scores, log_z = _prepare(features, weights, n_threads), np.zeros(features.n_sequences)
    each(
        chain_marginals,
        [
            (part, features.offsets, features.slots, scores.bundles, scores.M, scores.MT, scores.shift,
             scores.mask, scores.space.n_labels, scores.blocks, out, log_z)
            for part in chunks_of(chosen, features.offsets, _n_chunks(features))
        ],
        n_threads,
    )  # fmt: skip
    return log_z


def _decoding_rows(scores: Scores, constraint: Constraint | None) -> tuple[Array, Array, Array]:
    """Return the moves and the rows for first and last tokens, with what is forbidden at −1e30."""
    n_labels = scores.space.n_labels
    rule = Constraint.none(n_labels) if constraint is None else constraint
    if len(rule.first) != n_labels:
        raise ModelError(f"the constraint is over {len(rule.first)} labels, the weights over {n_labels}")
    moves = np.full((n_labels, scores.width), _NEVER)
    moves[:, :n_labels] = np.where(rule.moves, scores.transitions, _NEVER)
    first, last = np.zeros(scores.width), np.zeros(scores.width)
    first[:n_labels][~rule.first] = _NEVER
    last[:n_labels][~rule.last] = _NEVER
    return moves.ravel(), first, last


def viterbi(
    features: Features,
    weights: Weights,
    *,
    sequences: Array | None = None,
    constraint: Constraint | None = None,
    n_threads: int = 1,
) -> Array:
    """Return the labels of the best label sequences, int16 per token; −1 for sequences that were not asked for."""
    scores = _prepare(features, weights, n_threads)
    moves, first, last = _decoding_rows(scores, constraint)
    out = np.full(features.n_tokens, -1, dtype=np.int16)
    each(
        viterbi_paths,
        [
            (part, features.offsets, features.slots, scores.bundles, moves, first, last,
             scores.space.n_labels, scores.blocks, out)
            for part in chunks_of(_chosen(features, sequences), features.offsets, _n_chunks(features))
        ],
        scores.n_threads,
    )  # fmt: skip
    return out


def n_best(
    features: Features, weights: Weights, n: int, *, constraint: Constraint | None = None
) -> list[list[tuple[Array, float]]]:
    """Return up to n best label sequences per sequence, each with its log-probability (among all, allowed or not)."""
    check_int("n", n, low=1)
    scores, log_z = _prepare(features, weights, 1), log_partition(features, weights)
    moves, first, last = _decoding_rows(scores, constraint)
    out: list[list[tuple[Array, float]]] = []
    for s in range(features.n_sequences):
        begin, end = int(features.offsets[s]), int(features.offsets[s + 1])
        if begin == end:
            out.append([(np.zeros(0, dtype=np.int16), 0.0)])
            continue
        paths, values = n_best_paths(
            begin, end - begin, features.slots, scores.bundles, moves, first, last,
            scores.space.n_labels, n, scores.blocks,
        )  # fmt: skip
        out.append([(p, float(v - log_z[s])) for p, v in zip(paths, values) if v > 0.5 * _NEVER])
    return out

"""Steps that all sequence models share: the chain of true labels, the E step, the best path.

A sequence model has a chain of true labels (start, moves, end; moves the tag scheme forbids have weight 0) and any
number of *sources* of evidence on each token: annotations with or without memory, words, other annotators. Each
source points at rows of a table (n_rows, T) of (expected) log likelihoods given the true label. The E step is

    evidence = sum of the tables' rows  ->  forward–backward  ->  posterior, log sum, expected starts, moves, rows

and what is done with the expected counts (maximum, variational Bayes, cluster-level priors, sampling) is a model's own.
Everything here is a pure function of its arguments, in threads over chunks of sequences, summed in a fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasca.engine import chunks, run_ordered, run_summed
from lasca.errors import ModelError
from lasca.kernels import lattice
from lasca.truth.chain import Chain
from lasca.truth.evidence import CHUNK, Floats, Sources, add_evidence

__all__ = [
    "Chain",
    "ChainCounts",
    "best_paths",
    "drawn_paths",
    "marginals",
]


@dataclass(frozen=True)
class ChainCounts:
    """Expected numbers of first labels and of moves, and the log of the sum over all paths."""

    log_sum: float
    starts: Floats
    moves: Floats


def marginals(
    offsets: npt.NDArray[np.int64],
    chain: Chain,
    sources: Sources,
    out: Floats,
    n_threads: int = 1,
    evidence: npt.NDArray[np.floating] | None = None,
) -> ChainCounts:
    """Do the E step: write each token's posterior to `out`, return the log sum and the expected counts.

    `evidence` is any log evidence beside the sources, (n_tokens, T).
    """
    T = out.shape[1]

    def work(chunk: tuple[int, int]) -> tuple[float, Floats, Floats]:
        own = offsets[chunk[0] : chunk[1] + 1]
        first, last = int(own[0]), int(own[-1])
        rows = out[first:last]
        rows[:] = 0.0 if evidence is None else evidence[first:last]
        add_evidence(first, last, sources, rows)
        starts, moves = np.zeros(T), np.zeros((T, T))
        log_sum = lattice.marginals(own - first, rows, chain.start, chain.move, chain.end, rows, starts, moves)
        return log_sum, starts, moves

    log_sum, starts, moves = run_summed(work, chunks(offsets, CHUNK), n_threads)
    if log_sum == -np.inf:
        raise ModelError("the tag scheme leaves a sequence no possible path", hint="Set constrained=False")
    return ChainCounts(float(log_sum), starts, moves)


def best_paths(
    offsets: npt.NDArray[np.int64],
    chain: Chain,
    sources: Sources,
    n_threads: int = 1,
    evidence: npt.NDArray[np.floating] | None = None,
) -> npt.NDArray[np.int16]:
    """Return the labels of the best path of each sequence; the arguments are those of `marginals`."""
    path = np.empty(int(offsets[-1]), np.int16)

    def work(chunk: tuple[int, int]) -> None:
        own, first, last, rows = _gathered(chunk, offsets, sources, evidence, len(chain.start))
        lattice.viterbi(own, rows, chain.start, chain.move, chain.end, path[first:last])

    run_ordered(work, chunks(offsets, CHUNK), n_threads)
    return path


def drawn_paths(
    offsets: npt.NDArray[np.int64],
    chain: Chain,
    sources: Sources,
    uniform: Floats,
    n_threads: int = 1,
    evidence: npt.NDArray[np.floating] | None = None,
) -> npt.NDArray[np.int16]:
    """Return labels drawn from the chain's posterior, for blocked Gibbs sampling; `uniform` has a number per token."""
    path = np.empty(int(offsets[-1]), np.int16)

    def work(chunk: tuple[int, int]) -> None:
        own, first, last, rows = _gathered(chunk, offsets, sources, evidence, len(chain.start))
        weights = (chain.start, chain.move, chain.end)
        lattice.sample_paths(own, rows, *weights, uniform[first:last], path[first:last])

    run_ordered(work, chunks(offsets, CHUNK), n_threads)
    return path


def _gathered(
    chunk: tuple[int, int],
    offsets: npt.NDArray[np.int64],
    sources: Sources,
    evidence: npt.NDArray[np.floating] | None,
    n_labels: int,
) -> tuple[npt.NDArray[np.int64], int, int, Floats]:
    """Return a chunk's own offsets, its first and last token, and the log evidence on its tokens."""
    own = offsets[chunk[0] : chunk[1] + 1]
    first, last = int(own[0]), int(own[-1])
    rows = np.zeros((last - first, n_labels))
    if evidence is not None:
        rows += evidence[first:last]
    add_evidence(first, last, sources, rows)
    return own - first, first, last, rows

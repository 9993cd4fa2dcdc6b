"""Sembler: a CRF over features of the text as prior of the true sequence, times how reliable each annotator is.

Model (after Wu, Fan & Yu 2012): p(z | x) is a linear-chain CRF with weights θ over features of the text; annotator l
gives the true label with probability ρ_l, each other label with probability (1 − ρ_l) / (T − 1). The true label of a
token is one that some annotator gave it (any label where nobody did). So words that look alike speak for each other,
agreement speaks for a label, and labels that are believed speak for those who gave them.

EM to the posterior mode, objective ln p(y | x, θ, ρ) − l2 ‖θ‖² + ln p(ρ) up to a constant:
- E step: forward–backward on the CRF's scores plus the log likelihood of the votes, other labels ruled out;
- M step: ρ_l = (expected right + smoothing) / (n_l + 2 smoothing); θ climbs by `crf_iter` iterations of L-BFGS on the
  expected log likelihood, started where it was. Expected moves are those of the posterior over whole sequences. The
  expected log likelihood never falls, so neither does the objective.

Sequences nobody labelled take no part in EM and get the CRF's marginals. The CRF is trained on the labels it helps to
decide, as in the paper: it confirms errors that many tokens share. `labels` are the best path.

Differences from the paper: its instance-level weights of annotators are left out; the optimiser is L-BFGS with warm
starts; l2 is the only regulariser.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca import crf
from lasca.arrays import ranges
from lasca.corpus import CrowdCorpus
from lasca.crf.decode import log_partition
from lasca.crf.objective import Scores
from lasca.engine import available_threads, chunks, run_summed
from lasca.estimator import number, other, seeds, threads, whole
from lasca.kernels import lattice
from lasca.kernels.products import crossed
from lasca.kernels.vectors import dot
from lasca.learn.em import loop_settings, run_em
from lasca.truth.base import Posterior, Progress, TruthModel, Votes
from lasca.truth.chain import Chain

__all__ = ["Sembler", "add_scores", "expected_loss", "independent_moves"]

Floats = npt.NDArray[np.float64]


CHUNK = 20_000
"""Tokens per piece of work of a pass."""
BLOCK = 50_000
"""Tokens at a time where a pass over all of them would need much memory."""


@dataclass(frozen=True)
class State:
    """The weights of the CRF and the reliabilities of the annotators."""

    theta: Floats
    rho: Floats


@dataclass(frozen=True)
class Texts:
    """Features and votes of some sequences; EM runs on those somebody labelled."""

    features: crf.Features
    offsets: npt.NDArray[np.int64]
    cell: npt.NDArray[np.int64]
    """token · n_labels + label of each vote."""
    annotator: npt.NDArray[np.int32]
    candidates: npt.NDArray[np.bool_]
    n_threads: int

    @classmethod
    def of(cls, features: crf.Features, votes: Votes, sequences: npt.NDArray[np.int64], n_threads: int) -> Texts:
        """Take some sequences; every vote must lie in one of them."""
        lengths = np.diff(votes.offsets)[sequences]
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        tokens = ranges(votes.offsets[sequences], votes.offsets[sequences + 1])
        per_token = np.diff(votes.start)[tokens]
        cell = np.repeat(np.arange(len(tokens)) * votes.n_labels, per_token) + votes.label
        candidates = np.zeros((len(tokens), votes.n_labels), dtype=np.bool_)
        candidates.ravel()[cell] = True
        candidates[per_token == 0] = True
        if votes.known is not None:  # every token of which something is known is in one of the sequences
            candidates[np.searchsorted(tokens, votes.known.token)] = votes.known.allowed
        if len(tokens) < votes.n_tokens:
            features = crf.Features(
                offsets, features.slots[tokens], features.bundle_start, features.bundle_feature, features.n_features
            )
        return cls(features, offsets, cell, votes.annotator, candidates, n_threads)

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return int(self.candidates.shape[1])

    @cached_property
    def n_moves(self) -> int:
        """How many tokens have a predecessor."""
        return int(self.offsets[-1] - np.count_nonzero(np.diff(self.offsets)))

    def evidence(self, weights: crf.Weights, rho: Floats) -> Floats:
        """Return the CRF's scores plus Σ_l ln p(y_il | z_i), up to a constant; −inf where a label is no candidate."""
        log_odds = np.log(rho) - np.log1p(-rho) + np.log(self.n_labels - 1)
        shape = self.candidates.shape
        votes = np.bincount(self.cell, weights=log_odds[self.annotator], minlength=shape[0] * shape[1])
        found: Floats = np.asarray(votes.reshape(shape), dtype=np.float64)
        add_scores(self.features, weights, self.n_threads, found)
        found[~self.candidates] = -np.inf
        return found

    def chain(self, weights: crf.Weights) -> tuple[Chain, float]:
        """Return the CRF's moves as weights of a chain, scaled to a largest of 1, and the log of the scale."""
        every, moves = np.ones(self.n_labels), weights.transitions
        shift = float(moves.max())
        return Chain(every, np.exp(np.maximum(moves - shift, -300.0)), every), shift


class Learner:
    """The EM steps."""

    def __init__(self, texts: Texts, votes: Votes, *, l2: float, crf_iter: int, smoothing: float) -> None:
        self.texts, self.l2, self.crf_iter, self.smoothing = texts, l2, crf_iter, smoothing
        self.n_given = np.bincount(votes.annotator, minlength=votes.n_annotators)
        self.space = crf.ParameterSpace.observed(texts.features, texts.candidates, votes.n_labels)
        self.proba = np.empty(texts.candidates.shape)

    def step(self, state: State) -> tuple[State, float]:
        """Return the next state and the objective of this one."""
        texts, weights = self.texts, crf.Weights(self.space, state.theta)
        chain, shift = texts.chain(weights)
        log_sum, moves = marginals(texts, chain, texts.evidence(weights, state.rho), self.proba)
        log_wrong = np.log1p(-state.rho) - np.log(texts.n_labels - 1)
        objective = log_sum + shift * texts.n_moves + float((self.n_given * log_wrong).sum())
        objective -= float(log_partition(texts.features, weights, threads=texts.n_threads).sum())
        objective -= self.l2 * float(dot(state.theta, state.theta))
        objective += self.smoothing * float((np.log(state.rho) + np.log1p(-state.rho)).sum())
        agreed = self.proba.ravel()[texts.cell]
        right = np.bincount(texts.annotator, weights=agreed, minlength=len(self.n_given))
        rho = (np.minimum(right, self.n_given) + self.smoothing) / (self.n_given + 2 * self.smoothing)
        climbed = crf.minimise(self.expected_loss(moves), state.theta, max_iter=self.crf_iter)
        return State(np.asarray(climbed.vector), rho), objective

    def expected_loss(self, moves: Floats) -> Callable[[Any, Any], float]:
        """Return l2 ‖θ‖² − E ln p(z | x, θ) under the last posterior, whose expected moves are given."""
        texts = self.texts
        return expected_loss(texts.features, self.space, self.proba, moves, self.l2, texts.n_threads)


def marginals(texts: Texts, chain: Chain, evidence: Floats, out: Floats) -> tuple[float, Floats]:
    """Do the E step: write each token's posterior to `out`, return the log sum over all paths and expected moves."""
    T = out.shape[1]

    def work(chunk: tuple[int, int]) -> tuple[float, Floats]:
        own = texts.offsets[chunk[0] : chunk[1] + 1]
        part = slice(int(own[0]), int(own[-1]))
        starts, moves, weights = np.zeros(T), np.zeros((T, T)), (chain.start, chain.move, chain.end)
        return lattice.marginals(own - own[0], evidence[part], *weights, out[part], starts, moves), moves

    log_sum, moves = run_summed(work, chunks(texts.offsets, CHUNK), texts.n_threads)
    return float(log_sum), moves


def expected_loss(
    features: crf.Features, space: crf.ParameterSpace, proba: Floats, moves: Floats, l2: float, n_threads: int
) -> Callable[[Any, Any], float]:
    """Return l2 ‖θ‖² − E ln p(z | x, θ) under a posterior with these marginals and expected moves.

    The CRF's soft targets take tokens as independent; what that gets wrong is linear in the weights of moves.
    """
    targets = proba.astype(np.float32)
    function = crf.Objective(features, targets, space, l2=l2, threads=n_threads)
    has = space.move >= 0
    correction, at = (moves - independent_moves(targets, features.offsets))[has], space.move[has]

    def corrected(vector: Any, gradient: Any) -> float:
        value = function(vector, gradient)
        gradient[at] -= correction
        return value - float(dot(vector[at], correction))

    return corrected


def add_scores(features: crf.Features, weights: crf.Weights, n_threads: int, out: Floats) -> None:
    """Add the sum of the weights of each token's features for each label to `out`, a block of tokens at a time."""
    found = Scores(features, weights.space, n_threads, pieces=8)
    found.update(weights.vector)
    bundles = found.bundles.reshape(features.n_bundles, -1)[:, : weights.space.n_labels]
    for first in range(0, len(out), BLOCK):
        block = slice(first, first + BLOCK)
        for column in features.slots[block].T:
            out[block] += bundles[column]


def independent_moves(proba: npt.NDArray[np.float32], offsets: npt.NDArray[np.int64]) -> Floats:
    """Return Σ p_i pᵀ_{i+1} over neighbours in a sequence."""
    inner = np.ones(max(len(proba) - 1, 0), dtype=np.bool_)
    borders = offsets[1:-1]
    inner[borders[(borders > 0) & (borders < len(proba))] - 1] = False
    total = np.zeros((proba.shape[1], proba.shape[1]))
    for first in range(0, len(inner), BLOCK):
        mask = inner[first : first + BLOCK]
        rows = proba[first : first + len(mask) + 1].astype(np.float64)
        total += crossed(rows[:-1][mask], rows[1:][mask])
    return total


class Sembler(TruthModel):
    """A CRF on the text as prior of the true labels, times one reliability per annotator, by EM."""

    name = "sembler"
    summary = "Sembler: votes and a CRF fitted to them by turns"
    supports = frozenset({"known"})

    templates: str = other("features of the text", "the name of a set of templates, see `lasca.crf`", default="basic")
    l2: float = number("penalty of the CRF", default=1.0, low=0, open_low=True)
    crf_iter: int = whole("iterations of its optimiser per EM step", default=8, low=1)
    smoothing: float = number(
        "what the prior adds to an annotator's right and wrong labels", default=1.0, low=0, open_low=True
    )
    restarts: int = whole("starts: the first trusts everybody alike, the others at random", default=1, low=1)
    max_iter: int = whole("iterations of a run at most", default=20, low=1)
    tol: float = number(
        "a run stops when the objective rises by less than this per annotation; 0: never", default=1e-4, low=0
    )
    seed: int | np.random.Generator = seeds(default=0)
    n_threads: int | None = threads(default=None)

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        n_threads = available_threads(self.n_threads)
        loop = loop_settings(self)
        if votes.n_labels == 1:  # there is nothing to be wrong about
            return Posterior(np.ones((votes.n_tokens, 1), dtype=np.float32))
        features = crf.Extractor(templates=self.templates).fit(corpus.tokens, corpus.offsets)
        spoken = np.concatenate(([0], np.cumsum(votes.voted)))
        labelled = np.flatnonzero(np.diff(spoken[votes.offsets]) > 0)
        texts = Texts.of(features, votes, labelled, n_threads)
        learner = Learner(texts, votes, l2=self.l2, crf_iter=self.crf_iter, smoothing=self.smoothing)

        def start(rho: Floats) -> State:
            return State(np.zeros(learner.space.size), rho)

        def initial(rng: np.random.Generator) -> State:
            return start(rng.uniform(0.5, 0.95, votes.n_annotators))

        run = run_em(
            initial,
            learner.step,
            first=start(np.full(votes.n_annotators, 0.8)),
            **loop,
            scale=len(votes.label),
            progress=progress,
        )
        if len(labelled) < corpus.n_sequences:
            texts = Texts.of(features, votes, np.arange(corpus.n_sequences), n_threads)
            learner.proba = np.empty(texts.candidates.shape)
        return _posterior(texts, learner, run)


def _posterior(texts: Texts, learner: Learner, run: Any) -> Posterior:
    """Run the last E step over all sequences."""
    weights = crf.Weights(learner.space, run.state.theta)
    chain, _ = texts.chain(weights)
    evidence, proba = texts.evidence(weights, run.state.rho), learner.proba
    marginals(texts, chain, evidence, proba)
    labels = np.empty(len(proba), np.int16)
    lattice.viterbi(texts.offsets, evidence, chain.start, chain.move, chain.end, labels)
    rho, T = run.state.rho, texts.n_labels
    confusion = np.empty((len(rho), T, T))
    confusion[:] = ((1 - rho) / (T - 1))[:, None, None]
    confusion[:, np.arange(T), np.arange(T)] = rho[:, None]
    diagnostics = run.diagnostics() | {"rho": rho.tolist(), "n_features": learner.space.n_features}
    return Posterior(proba, confusion, labels, trace=run.trace, diagnostics=diagnostics)

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

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lasca import crf
from lasca.arrays import Bools, Floats, Ints, Ints32
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block
from lasca.crf.decode import log_partition, token_scores
from lasca.estimator import number, other, seeds, threads, tolerance, whole
from lasca.kernels import lattice
from lasca.learn import EmRun
from lasca.truth.base import Posterior
from lasca.truth.joint import JointLearner, JointModel, spoken, summed

__all__ = ["Sembler"]


@dataclass(frozen=True)
class SemblerState:
    """The weights of the CRF and the reliabilities of the annotators."""

    theta: Floats
    rho: Floats


@dataclass(frozen=True)
class VotedTexts:
    """Features and votes of some sequences."""

    features: crf.Features
    cell: Ints
    """token · n_labels + label of each vote."""
    annotator: Ints32
    candidates: Bools

    @classmethod
    def of(cls, block: Block) -> VotedTexts:
        """Take a block that stands alone."""
        votes, per_token = block.votes, np.diff(block.votes.start)
        cell = np.repeat(np.arange(len(block)) * votes.n_labels, per_token) + votes.label
        candidates = np.zeros((len(block), votes.n_labels), dtype=np.bool_)
        candidates.ravel()[cell] = True
        candidates[per_token == 0] = True
        if votes.known is not None:
            candidates[votes.known.token] = votes.known.allowed
        return cls(block.beside, cell, votes.annotator, candidates)

    def allowed(self) -> Bools:
        """Return which labels each token may have."""
        return self.candidates

    def evidence(self, weights: crf.Weights, rho: Floats) -> Floats:
        """Return the CRF's scores plus Σ_l ln p(y_il | z_i), up to a constant; −inf where a label is no candidate."""
        shape = self.candidates.shape
        log_odds = np.log(rho) - np.log1p(-rho) + np.log(shape[1] - 1)
        found = summed(self.cell, log_odds[self.annotator], self.candidates.size).reshape(shape)
        found += token_scores(self.features, weights)
        found[~self.candidates] = -np.inf
        return found


def chain_of(weights: crf.Weights) -> tuple[tuple[Floats, Floats, Floats], float]:
    """Return weights of first labels, moves and last labels, scaled to a largest of 1, and the log of the scale."""
    every, moves = np.ones(weights.space.n_labels), weights.transitions
    shift = float(moves.max())
    return (every, np.exp(np.maximum(moves - shift, -300.0)), every), shift


@dataclass(frozen=True)
class SemblerLearner(JointLearner):
    """The EM steps."""

    smoothing: float

    def summarise(self, block: Block) -> tuple[Any, ...]:
        """Return nothing: the start knows the annotators alike."""
        return ()

    def start(self, summary: tuple[Any, ...], rng: np.random.Generator | None) -> SemblerState:
        """Trust everybody alike, or at random."""
        n = self.n_annotators
        return SemblerState(np.zeros(self.size), np.full(n, 0.8) if rng is None else rng.uniform(0.5, 0.95, n))

    def view(self, block: Block) -> VotedTexts:
        """Return the sequences that are spoken of."""
        return VotedTexts.of(spoken(block)[0])

    def expect(self, state: SemblerState, view: VotedTexts) -> tuple[tuple[Any, ...], Floats, Floats]:
        """Return the log evidence, how many labels each annotator gave and how many of them right; what is believed."""
        weights, offsets, n = self.weights(state), view.features.offsets, self.n_annotators
        chain, shift = chain_of(weights)
        proba, moves = np.empty(view.candidates.shape), np.zeros((self.n_labels, self.n_labels))
        evidence = view.evidence(weights, state.rho)
        value = lattice.marginals(offsets, evidence, *chain, proba, np.zeros(self.n_labels), moves)
        value += shift * int(offsets[-1] - np.count_nonzero(np.diff(offsets)))
        value -= float(log_partition(view.features, weights).sum())
        right = summed(view.annotator, proba.ravel()[view.cell], n)
        return (value, np.bincount(view.annotator, minlength=n), right), proba, moves

    def update(self, state: SemblerState, statistics: tuple[Any, ...]) -> tuple[SemblerState, float]:
        """Return the next reliabilities."""
        value, given, right = statistics
        value += float((given * (np.log1p(-state.rho) - np.log(self.n_labels - 1))).sum())
        value += self.smoothing * float((np.log(state.rho) + np.log1p(-state.rho)).sum())
        rho = (np.minimum(right, given) + self.smoothing) / (given + 2 * self.smoothing)
        return replace(state, rho=rho), value

    def describe(self, state: SemblerState, block: Block, local: Any, out: Any) -> tuple[Any, tuple[Any, ...]]:
        """Write the posterior of all sequences; return the best paths."""
        texts, weights = VotedTexts.of(block.alone()), self.weights(state)
        chain, _ = chain_of(weights)
        evidence, offsets = texts.evidence(weights, state.rho), texts.features.offsets
        proba, labels = np.empty(evidence.shape), np.empty(len(block), np.int16)
        counts = np.zeros(self.n_labels), np.zeros((self.n_labels, self.n_labels))
        lattice.marginals(offsets, evidence, *chain, proba, *counts)
        lattice.viterbi(offsets, evidence, *chain, labels)
        out[:] = proba
        return labels, ()


class Sembler(JointModel):
    """A CRF on the text as prior of the true labels, times one reliability per annotator, by EM."""

    name = "sembler"
    summary = "Sembler: votes and a CRF fitted to them by turns"
    supports = frozenset({"known", "engine", "shards"})

    templates: str = other("features of the text", "the name of a set of templates, see `lasca.crf`", default="basic")
    l2: float = number("penalty of the CRF", default=1.0, low=0, open_low=True)
    crf_iter: int = whole("iterations of its optimiser per EM step", default=8, low=1)
    smoothing: float = number(
        "what the prior adds to an annotator's right and wrong labels", default=1.0, low=0, open_low=True
    )
    restarts: int = whole("starts: the first trusts everybody alike, the others at random", default=1, low=1)
    max_iter: int = whole("iterations of a run at most", default=20, low=1)
    tol: float = tolerance(default=1e-4)
    seed: int | np.random.Generator = seeds(default=0)
    n_threads: int | None = threads(default=None)
    _way = "decodes"

    def _learner(self, corpus: CrowdCorpus) -> SemblerLearner:
        return SemblerLearner(corpus.n_annotators, corpus.n_labels, self.l2, self.crf_iter, self.smoothing)

    def _described(self, run: EmRun[Any], posterior: Posterior) -> Posterior:
        assert posterior.tally is not None
        rho, T = run.state.rho, posterior.tally.own.shape[1]
        wrong = ((1 - rho) / (T - 1))[:, None, None]
        confusion = np.where(np.eye(T, dtype=np.bool_), rho[:, None, None], wrong)
        return replace(posterior, confusion=confusion, diagnostics={**posterior.diagnostics, "rho": rho.tolist()})

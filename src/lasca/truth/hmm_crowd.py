"""HmmCrowd: a hidden Markov model of the true labels that emits words and the labels of the crowd.

Nguyen, Wallace, Li, Nenkova & Lease 2017, "Aggregating and predicting sequence labels from crowd annotations".

Model: in each sequence z_1 ~ Mult(π), z_i ~ Mult(A_{z_{i-1}}); word w_i ~ Mult(ρ_{z_i}); annotator l gives
y_il ~ Mult(Ψ^l_{z_i}), the "crowd component". With `crowd="vector"` (the published one) an annotator has one accuracy
per true label and errs evenly, Ψ^l_ts = (1 - a_lt) / (T - 1); with "matrix" a whole confusion matrix.

Fitted by EM. Crowd parameters are at their posterior mode under Dir(1 + smoothing). The HMM's parameters have
variational posteriors under Dir(transition_prior) and Dir(word_prior) (`variational=True`, the published "variational
EM"), or are at their mode under Dir(1 + prior) too. The objective is the ELBO with point estimates of the crowd
parameters, or the log posterior, both up to the priors' constants; it never falls.

Differences from the authors' code: a wrong label under "vector" has probability (1 - a) / (T - 1), not 1 - a, which
does not sum to one; the first label has a Dirichlet prior like the moves; moves the tag scheme forbids are impossible
(`constrained=False`: as there); the number of iterations is set by the objective, not fixed. As there, the start is
the labels of a short Dawid–Skene run with a prior for right labels; it learns nothing of tokens with one vote, unless
`lone_votes=True`. A sole annotator is believed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block, Votes
from lasca.estimator import choice, flag, number, seeds, threads, tolerance, whole
from lasca.truth.annotator_models import Annotators, Matrices, VoteRows
from lasca.truth.chain import DECODERS, ChainLearner, StateSpace
from lasca.truth.chain_history import ChainHistory, ChainModel
from lasca.truth.evidence import Floats, Source, Words
from lasca.truth.starts import dawid_skene_start, trust

__all__ = ["HmmCrowd"]

CROWDS = ("vector", "matrix")


class EvenErrors(Annotators):
    """One accuracy per annotator and true label, at its mode; `correct` and `wrong` are its pseudo-counts."""

    def learn(self, counts: Floats, table: Floats | None) -> tuple[Floats, float]:
        """Count right labels by true label."""
        T = self.rows.n_labels
        right, met = self._met(counts)
        log_all = np.log(met + self.correct + self.wrong)
        log_right = np.log(right + self.correct) - log_all
        log_wrong = np.log(np.maximum(met - right, 0) + self.wrong) - log_all
        annotator, _, given = self.rows.parts
        new = log_wrong[annotator] - np.log(max(T - 1, 1))
        new[np.arange(len(given)), given] = log_right[annotator, given]
        return new, float(-(self.correct * log_right + self.wrong * log_wrong).sum())

    def _met(self, counts: Floats) -> tuple[Floats, Floats]:
        """Return how often each annotator met each true label and named it, and how often they met it."""
        dense = self._dense(counts)
        return self._right(dense), dense.sum(axis=1)

    def confusion(self, counts: Floats) -> Floats:
        """Return the crowd component as (annotator, true, given)."""
        T = self.rows.n_labels
        right, met = self._met(counts)
        accuracy = (right + self.correct) / (met + self.correct + self.wrong)
        confusion = np.repeat(((1 - accuracy) / max(T - 1, 1))[:, :, None], T, axis=2)
        confusion[:, np.arange(T), np.arange(T)] = accuracy if T > 1 else 1.0
        return confusion


class HmmCrowd(ChainModel):
    """HMM-Crowd: neighbouring labels and words help to weigh the votes of annotators of different worth.

    A sole annotator is believed.
    """

    name = "hmm-crowd"
    summary = "HMM-Crowd: label transitions, and one confusion matrix per annotator"
    supports = frozenset({"known", "soft", "update", "engine", "shards"})

    crowd: str = choice("an accuracy per annotator and label, or a confusion matrix", CROWDS, default="matrix")
    variational: bool = flag("the HMM by Variational Bayes; False: EM", default=True)
    smoothing: float = number("pseudo-count of the crowd component", default=1.0, low=0, open_low=True)
    transition_prior: float = number("pseudo-count of a move", default=0.1, low=0, open_low=True)
    word_prior: float = number("pseudo-count of a word", default=0.1, low=0, open_low=True)
    words: bool = flag("labels emit words; False leaves the text out", default=True)
    constrained: bool = flag("moves the tag scheme forbids do not happen", default=True)
    lone_votes: bool = flag("whether tokens with one vote teach the start anything, as in the paper", default=False)
    decode: str = choice(
        "the most probable path, or the legal path with the most tokens expected to be right",
        DECODERS,
        default="viterbi",
    )
    restarts: int = whole("starts: the first is Dawid–Skene's, the others noisy copies of it", default=1, low=1)
    max_iter: int = whole("iterations of a run at most", default=100, low=1)
    tol: float = tolerance(default=1e-6)
    seed: int | np.random.Generator = seeds(default=0)
    n_threads: int | None = threads(default=None)

    def _space(self, corpus: CrowdCorpus) -> StateSpace:
        return StateSpace.of(corpus.labels, constrained=self.constrained)

    def _learner(
        self, corpus: CrowdCorpus, votes: Votes, blocks: Sequence[Block], space: StateSpace, history: ChainHistory
    ) -> ChainLearner:
        smoothing = self.smoothing
        rows, right = VoteRows.of(blocks).with_code(history.code), smoothing + trust(votes)
        annotators: Annotators
        if self.crowd == "vector":
            annotators = EvenErrors(rows, space.shows, right, smoothing)
        else:
            level = (right, smoothing * (votes.n_labels - 1))
            annotators = Matrices.of(rows, space.shows, corpus.labels, [level], variational=False)
        words = Words(len(history.vocabulary), self.word_prior, variational=self.variational)
        sources: tuple[Source, ...] = (annotators, words) if self.words else (annotators,)
        start = dawid_skene_start(self, votes, hard=True)
        return ChainLearner(space, sources, start, self.transition_prior, self.variational, self.decode, space)

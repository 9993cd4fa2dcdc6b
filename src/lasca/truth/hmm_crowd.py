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
the labels of a short Dawid–Skene run with a prior for right labels. A sole annotator is believed.
"""

from __future__ import annotations

import numpy as np

from lasca.corpus import CrowdCorpus
from lasca.estimator import check_choice, check_number
from lasca.truth.base import Posterior, Progress, TruthModel, Votes
from lasca.truth.evidence import (
    Floats,
    Rows,
    annotation_rows,
    context_borders,
    dirichlet_rows,
    multinomial_rows,
    word_rows,
)
from lasca.truth.sequence import ChainPrior, chain_mode, chain_posterior
from lasca.truth.sequence_model import Expected, Loop, State, fit_sequences, start_evidence, trust
from lasca.truth.states import label_states

__all__ = ["HmmCrowd"]

CROWDS = ("vector", "matrix")


class HmmLearner:
    """Expected counts to the crowd's mode and the HMM's posterior or mode."""

    def __init__(
        self,
        votes: Votes,
        words: Rows | None,
        prior: ChainPrior,
        *,
        crowd: str,
        smoothing: float,
        word_prior: float,
        variational: bool,
    ) -> None:
        self.crowd_rows, self.word_rows = annotation_rows(votes), words
        self.prior = self.legal = prior
        self.n_annotators, self.n_labels = votes.n_annotators, votes.n_labels
        self.crowd, self.smoothing, self.word_prior, self.variational = crowd, smoothing, word_prior, variational
        self.trust = trust(votes)
        self.right = smoothing + self.trust

    def maximise(self, expected: Expected) -> State:
        """Return the next parameters and minus their log prior density, or KL(q || p)."""
        chain, penalty = (chain_posterior if self.variational else chain_mode)(expected.chain, self.prior)
        crowd, cost = (self._vector if self.crowd == "vector" else self._matrix)(expected.crowd)
        penalty += cost
        words = None
        if expected.words is not None:
            words, cost = (dirichlet_rows if self.variational else multinomial_rows)(expected.words, self.word_prior)
            penalty += cost
        return State(chain, crowd, words, penalty)

    def _matrix(self, counts: Floats) -> tuple[Floats, float]:
        borders = context_borders(self.crowd_rows.code // self.n_labels)
        total = np.full((len(borders) - 1, self.n_labels), self.smoothing * self.n_labels + self.trust)
        prior = np.full(counts.shape, self.smoothing)
        prior[np.arange(len(prior)), self.crowd_rows.code % self.n_labels] = self.right
        return multinomial_rows(counts, prior, total, borders)

    def _vector(self, counts: Floats) -> tuple[Floats, float]:
        T = self.n_labels
        right, all_given = self._right(counts)
        log_all = np.log(all_given + self.right + self.smoothing)
        log_right = np.log(right + self.right) - log_all
        log_wrong = np.log(np.maximum(all_given - right, 0) + self.smoothing) - log_all
        annotator, given = np.divmod(self.crowd_rows.code, T)
        table = log_wrong[annotator] - np.log(max(T - 1, 1))
        table[np.arange(len(given)), given] = log_right[annotator, given]
        return table, float(-(self.right * log_right + self.smoothing * log_wrong).sum())

    def _right(self, counts: Floats) -> tuple[Floats, Floats]:
        """Return how often each annotator met each true label and named it, and how often they met it."""
        annotator, given = np.divmod(self.crowd_rows.code, self.n_labels)
        right, all_given = np.zeros((2, self.n_annotators, self.n_labels))
        right[annotator, given] = counts[np.arange(len(given)), given]
        np.add.at(all_given, annotator, counts)
        return right, all_given

    def confusion(self, counts: Floats) -> Floats:
        """Return the crowd component as (annotator, true, given)."""
        T = self.n_labels
        if self.crowd == "vector":
            right, all_given = self._right(counts)
            accuracy = (right + self.right) / (all_given + self.right + self.smoothing)
            confusion = np.repeat(((1 - accuracy) / max(T - 1, 1))[:, :, None], T, axis=2)
            confusion[:, np.arange(T), np.arange(T)] = accuracy if T > 1 else 1.0
            return confusion
        dense = np.zeros((self.n_annotators * T, T))
        dense[self.crowd_rows.code] = counts
        sums = dense.reshape(self.n_annotators, T, T).transpose(0, 2, 1) + self.smoothing + self.trust * np.eye(T)
        return np.asarray(sums / sums.sum(axis=2, keepdims=True))


class HmmCrowd(TruthModel):
    """HMM-Crowd: neighbouring labels and words help to weigh the votes of annotators of different worth.

    `crowd` is "vector" (an accuracy per annotator and label) or "matrix"; `smoothing` is the pseudo-count of the crowd
    component, `transition_prior` and `word_prior` those of the HMM. A sole annotator is believed. `words=False` leaves
    the text out; `constrained=False` allows every move. `decode="viterbi"` gives the most probable path, "marginal" the
    legal path with the most tokens expected to be right.
    """

    name = "hmm-crowd"
    summary = "HMM-Crowd: label transitions, and one confusion matrix per annotator"

    def __init__(
        self,
        *,
        crowd: str = "matrix",
        variational: bool = True,
        smoothing: float = 1.0,
        transition_prior: float = 0.1,
        word_prior: float = 0.1,
        words: bool = True,
        constrained: bool = True,
        decode: str = "viterbi",
        restarts: int = 1,
        max_iter: int = 100,
        tol: float = 1e-6,
        seed: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.crowd = crowd
        self.variational = variational
        self.smoothing = smoothing
        self.transition_prior = transition_prior
        self.word_prior = word_prior
        self.words = words
        self.constrained = constrained
        self.decode = decode
        self.restarts = restarts
        self.max_iter = max_iter
        self.tol = tol
        self.seed = seed
        self.n_threads = n_threads

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        crowd = check_choice("crowd", self.crowd, CROWDS)
        pseudo = check_number("transition_prior", self.transition_prior, low=0, open_low=True)
        word_prior = check_number("word_prior", self.word_prior, low=0, open_low=True)
        smoothing = check_number("smoothing", self.smoothing, low=0, open_low=True)
        loop = Loop.of(self)
        learner = HmmLearner(
            votes,
            word_rows(corpus) if self.words else None,
            ChainPrior(label_states(corpus.labels, self.constrained), pseudo),
            crowd=crowd,
            smoothing=smoothing,
            word_prior=word_prior,
            variational=self.variational,
        )
        return fit_sequences(learner, votes, start_evidence(corpus, votes, hard=True), loop, progress)

"""Raykar: every annotator has a confusion matrix, and a classifier on the text says what the label of a token may be.

Model (Raykar et al. 2010, "Learning from crowds"; several classes, as in their section 3): p(z_i = t | x_i) is a
multinomial logistic regression with weights θ over features of the token and its neighbours; y_il ~ Mult(Ψ^l_{z_i}).
It is Dawid–Skene with the classifier in the place of the label frequencies: words that look alike speak for each other,
and the classifier is learned from all annotators by what they are worth.

EM to the posterior mode, objective Σ_i ln Σ_t p(t | x_i, θ) Π_l Ψ^l_{t y_il} − l2 ‖θ‖² + ln p(Ψ) up to a constant:
- E step: μ_it ∝ p(t | x_i, θ) Π_l Ψ^l_{t y_il};
- M step: Ψ from the expected counts plus the prior (`smoothing` everywhere, `agreement` where the label is right);
  θ climbs by `crf_iter` iterations of L-BFGS on Σ_it μ_it ln p(t | x_i, θ), started where it was. The objective never
  falls.

Differences from the paper: several labels at once, a prior on Ψ without which rare labels get stuck, and L-BFGS with
warm starts for Newton's method. Tokens are independent given the text. Tokens of which nothing is said or known take
no part in EM and get what the classifier says. What is known rules labels out in the E step, and so teaches Ψ and θ.
The start is the shares of the votes, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lasca import crf
from lasca.arrays import Array, Bools, Floats
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block
from lasca.crf.decode import token_scores
from lasca.estimator import number, other, seeds, threads, tolerance, whole
from lasca.kernels.counts import vote_counts
from lasca.learn import EmRun
from lasca.truth import dawid_skene as ds
from lasca.truth.base import Posterior
from lasca.truth.joint import JointLearner, JointModel, some_tokens
from lasca.truth.special import Special, as_rows, expected_counts, shares_of

__all__ = ["Raykar"]


@dataclass(frozen=True)
class RaykarState:
    """The weights of the classifier, and the confusion matrices as Dawid–Skene has them."""

    theta: Floats
    given: Floats
    """How often each annotator gave each label."""
    annotators: ds.Parameters | None = None
    """None at the start: the shares of the votes are believed."""


@dataclass(frozen=True)
class Tokens:
    """The tokens of which something is said or known, as Dawid–Skene sees them.

    All of them are special: what the classifier says is one more factor of their likelihood.
    """

    block: Block
    local: ds.Local

    @property
    def features(self) -> crf.Features:
        """What the classifier sees: each token is a sequence by itself, so that a CRF is a logistic regression."""
        found: crf.Features = self.block.beside
        return found

    def allowed(self) -> Bools:
        """Return which labels somebody gave a token, or are known to be possible."""
        votes = self.block.votes
        found = np.zeros((len(self.block), votes.n_labels), np.bool_)
        found[self.block.token, votes.label] = True
        if votes.known is not None:
            found[votes.known.token] |= votes.known.allowed
        return found


@dataclass(frozen=True)
class RaykarLearner(JointLearner):
    """The EM steps: those of Dawid–Skene, with the classifier in the place of the label frequencies."""

    prior: Floats
    """What is added to the counts of (true, given)."""

    @property
    def crowd(self) -> ds.ConfusionLearner:
        """What Dawid–Skene learns of the annotators, from every token."""
        nothing = np.zeros(self.n_labels)
        return ds.ConfusionLearner(self.n_annotators, self.n_labels, self.prior, nothing, False, True)

    def summarise(self, block: Block) -> tuple[Any, ...]:
        """Return how often each annotator gave each label."""
        votes, hard = block.votes, block.hard
        return (vote_counts(votes.annotator[hard], votes.label[hard], self.n_annotators, self.n_labels),)

    def start(self, summary: tuple[Any, ...], rng: np.random.Generator | None) -> RaykarState:
        """Believe the shares of the votes, or confusion matrices drawn at random."""
        state, T = RaykarState(np.zeros(self.size), *summary), self.n_labels
        if rng is None:
            return state
        rows = rng.dirichlet(np.ones(T), size=(self.n_annotators, T))
        right = rng.uniform(0.3, 0.9, size=(self.n_annotators, 1, 1))
        log_psi = np.log(right * np.eye(T) + (1 - right) * rows)
        penalty = float((self.prior * log_psi).sum())
        return replace(state, annotators=ds.Parameters(log_psi.transpose(0, 2, 1), np.zeros(T), penalty, state.given))

    def view(self, block: Block) -> Tokens:
        """Return the tokens that are spoken of, each alone."""
        tokens = np.flatnonzero(block.voted)
        own, n = some_tokens(block, tokens, np.arange(len(tokens) + 1)), len(tokens)
        votes, allowed = own.votes, np.ones((n, self.n_labels))
        if votes.known is not None:
            allowed[votes.known.token] = votes.known.allowed
        soft = np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros((0, self.n_labels))
        every = Special(np.arange(n, dtype=np.int32), allowed, *soft, np.ones(n, np.int64))
        return Tokens(own, replace(self.crowd.look(own), special=every, teaches=np.ones(n, np.bool_)))

    def expect(self, state: RaykarState, view: Tokens) -> tuple[tuple[Any, ...], Array, Floats]:
        """Return expected counts (annotator, given, true) and the log evidence; what is believed of the tokens."""
        special, moves = view.local.special, np.zeros((self.n_labels, self.n_labels))
        if state.annotators is None:
            shares = shares_of(view.block, special)
            return (expected_counts(view.block, special, shares)[0], 0.0), shares, moves
        scores = token_scores(view.features, self.weights(state))
        scores = np.exp(scores - scores.max(axis=1, keepdims=True, initial=0.0))
        said = scores / scores.sum(axis=1, keepdims=True) * special.allowed
        local = replace(view.local, factor=as_rows(said, self.crowd.width))
        proba = np.empty(said.shape, np.float32)
        counts, _, evidence = self.crowd.expect(state.annotators, view.block, local, proba)
        return (counts, evidence), proba, moves

    def update(self, state: RaykarState, statistics: tuple[Any, ...]) -> tuple[RaykarState, float]:
        """Return the next confusion matrices."""
        counts, value = statistics
        if state.annotators is not None:
            value += float((state.given * state.annotators.shift).sum()) + state.annotators.penalty
        flat = np.zeros(self.n_labels)
        annotators = ds.mode(counts, flat + 1, self.prior, flat, state.given)
        return replace(state, annotators=replace(annotators, log_gamma=flat)), value

    def describe(self, state: RaykarState, block: Block, local: Any, out: Any) -> tuple[Any, tuple[Any, ...]]:
        """Write what is believed of the tokens; of those nobody spoke of it is what the classifier says."""
        voted = block.voted
        if not voted.all():
            alone = replace(block.beside, offsets=np.arange(len(block) + 1))
            crf.marginals(alone, self.weights(state), out=out)
        out[voted] = self.expect(state, self.seen(block, local))[1]
        return None, ()


class Raykar(JointModel):
    """One confusion matrix per annotator and a classifier on the text, learned together by EM."""

    name = "raykar"
    summary = "Raykar et al. 2010: confusion matrices, and a token classifier in the place of label frequencies"
    supports = frozenset({"known", "engine", "shards"})

    templates: str = other(
        "features of a token and its neighbours; 'auto': 'ner' for a tag scheme, else 'pos'",
        "'auto' or the name of a set of templates, see `lasca.crf`",
        default="auto",
    )
    l2: float = number("penalty of the classifier", default=1.0, low=0, open_low=True)
    crf_iter: int = whole("iterations of its optimiser per EM step", default=8, low=1)
    smoothing: float = number(
        "what the prior adds to every count of a confusion matrix", default=0.01, low=0, open_low=True
    )
    agreement: float = number("and to labels given where they are true", default=0.5, low=0)
    restarts: int = whole(
        "starts: the first is the shares of the votes, the others are random confusion matrices", default=1, low=1
    )
    max_iter: int = whole("iterations of a run at most", default=20, low=1)
    tol: float = tolerance(default=1e-4)
    seed: int | np.random.Generator = seeds(default=0)
    n_threads: int | None = threads(default=None)

    _way = "settle"

    def _learner(self, corpus: CrowdCorpus) -> RaykarLearner:
        T = corpus.n_labels
        prior = np.full((T, T), self.smoothing) + self.agreement * np.eye(T)
        return RaykarLearner(corpus.n_annotators, T, self.l2, self.crf_iter, prior)

    def _described(self, run: EmRun[Any], posterior: Posterior) -> Posterior:
        return replace(posterior, confusion=np.exp(run.state.annotators.log_psi).transpose(0, 2, 1))

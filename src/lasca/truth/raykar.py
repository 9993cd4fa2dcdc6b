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

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca import crf, schemes
from lasca.corpus import CrowdCorpus
from lasca.engine import available_threads
from lasca.estimator import number, other, seeds, threads, whole
from lasca.kernels.vectors import dot
from lasca.learn.em import loop_settings, run_em
from lasca.truth.base import Posterior, Progress, TruthModel, Votes
from lasca.truth.sembler import add_scores

__all__ = ["Raykar"]

Floats = npt.NDArray[np.float64]
BLOCK = 50_000
"""Votes at a time where a pass over all of them would need much memory."""


@dataclass(frozen=True)
class State:
    """The weights of the classifier and the confusion matrices, (annotator, true label, given label)."""

    theta: Floats
    psi: Floats


class Learner:
    """The EM steps on the tokens of which something is said, or known."""

    def __init__(
        self,
        features: crf.Features,
        votes: Votes,
        tokens: npt.NDArray[np.int64],
        prior: Floats,
        *,
        l2: float,
        crf_iter: int,
        n_threads: int,
    ) -> None:
        self.features, self.prior, self.l2, self.crf_iter, self.n_threads = features, prior, l2, crf_iter, n_threads
        self.annotator, self.label = votes.annotator, votes.label
        self.token = np.repeat(np.arange(len(tokens)), np.diff(votes.start)[tokens])
        self.shape = (len(tokens), votes.n_labels)
        self.known, self.allowed = np.zeros(0, np.int64), np.zeros((0, votes.n_labels), np.bool_)
        if votes.known is not None:
            self.known, self.allowed = np.searchsorted(tokens, votes.known.token), votes.known.allowed
        given = np.zeros(self.shape, np.bool_)
        given[self.token, self.label] = True
        given[self.known] |= self.allowed
        self.space = crf.ParameterSpace.observed(features, given, votes.n_labels)
        self.table = votes.n_annotators, votes.n_labels, votes.n_labels

    def shares(self) -> Floats:
        """Return the shares of the votes, of what is allowed; all of that alike where no vote is for it."""
        found = np.zeros(self.shape)
        np.add.at(found, (self.token, self.label), 1.0)
        inside = found[self.known] * self.allowed
        found[self.known] = np.where(inside.any(axis=1, keepdims=True), inside, self.allowed)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def counts(self, mu: Floats) -> Floats:
        """Return the expected number of times each annotator gave each label where each label is true."""
        n, T, _ = self.table
        cell = self.annotator.astype(np.int64) * T + self.label
        found = np.empty((n * T, T))
        for t in range(T):
            found[:, t] = np.bincount(cell, weights=mu[self.token, t], minlength=n * T)
        return found.reshape(n, T, T).transpose(0, 2, 1)

    def confusions(self, counts: Floats) -> Floats:
        """Return the mode of Ψ."""
        raised = counts + self.prior
        return np.asarray(raised / raised.sum(axis=2, keepdims=True))

    def classifier(self, mu: Floats, theta: Floats) -> Floats:
        """Let θ climb on the expected log likelihood of the labels."""
        function = crf.Objective(
            self.features, mu.astype(np.float32), self.space, l2=self.l2, threads=self.n_threads
        )  # fmt: skip
        return np.asarray(crf.minimise(function, theta, max_iter=self.crf_iter).vector)

    def posterior(self, state: State) -> tuple[Floats, float]:
        """Return μ, and Σ_i ln Σ_t p(t | x_i) Π_l Ψ^l_{t y_il}."""
        found = np.zeros(self.shape)
        add_scores(self.features, crf.Weights(self.space, state.theta), self.n_threads, found)
        found -= np.logaddexp.reduce(found, axis=1, keepdims=True)
        log_psi = np.log(state.psi)
        for first in range(0, len(self.token), BLOCK):
            votes = slice(first, first + BLOCK)
            np.add.at(found, self.token[votes], log_psi[self.annotator[votes], :, self.label[votes]])
        found[self.known] = np.where(self.allowed, found[self.known], -np.inf)
        total = np.logaddexp.reduce(found, axis=1, keepdims=True)
        return np.exp(found - total), float(total.sum())

    def start(self, counts: Floats, mu: Floats) -> State:
        """Return the state that counts and label probabilities make, from a classifier that knows nothing."""
        return State(self.classifier(mu, np.zeros(self.space.size)), self.confusions(counts))

    def step(self, state: State) -> tuple[State, float]:
        """Return the next state and the objective of this one."""
        mu, value = self.posterior(state)
        value += float((self.prior * np.log(state.psi)).sum()) - self.l2 * float(dot(state.theta, state.theta))
        return State(self.classifier(mu, state.theta), self.confusions(self.counts(mu))), value


class Raykar(TruthModel):
    """One confusion matrix per annotator and a classifier on the text, learned together by EM."""

    name = "raykar"
    summary = "Raykar et al. 2010: confusion matrices, and a token classifier in the place of label frequencies"
    supports = frozenset({"known"})

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
    tol: float = number(
        "a run stops when the objective rises by less than this per annotation; 0: never", default=1e-4, low=0
    )
    seed: int | np.random.Generator = seeds(default=0)
    n_threads: int | None = threads(default=None)

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        n_threads, loop = available_threads(self.n_threads), loop_settings(self)
        T = votes.n_labels
        if T == 1:  # there is nothing to be wrong about
            return Posterior(np.ones((votes.n_tokens, 1), dtype=np.float32))
        templates = self.templates
        if templates == "auto":
            templates = "pos" if schemes.detect(corpus.labels) is None else "ner"
        features = crf.Extractor(templates=templates).fit(corpus.tokens, corpus.offsets)
        voted = np.flatnonzero(votes.voted)
        prior = np.full((T, T), self.smoothing) + self.agreement * np.eye(T)
        learner = Learner(
            _tokens_alone(features, voted), votes, voted, prior, l2=self.l2, crf_iter=self.crf_iter, n_threads=n_threads
        )  # fmt: skip

        def initial(rng: np.random.Generator) -> State:
            rows = rng.dirichlet(np.ones(T), size=(votes.n_annotators, T))
            right = rng.uniform(0.3, 0.9, size=(votes.n_annotators, 1, 1))
            return State(np.zeros(learner.space.size), right * np.eye(T) + (1 - right) * rows)

        shares = learner.shares()
        first = learner.start(learner.counts(shares), shares)
        run = run_em(initial, learner.step, first=first, **loop, scale=len(votes.label), progress=progress)
        weights = crf.Weights(learner.space, run.state.theta)
        mu, _ = learner.posterior(run.state)
        if len(voted) < votes.n_tokens:
            proba = crf.marginals(_tokens_alone(features), weights, threads=n_threads)
            proba[voted] = mu
        else:
            proba = mu.astype(np.float32)
        diagnostics: dict[str, Any] = run.diagnostics() | {"n_features": learner.space.n_features}
        return Posterior(proba, run.state.psi, trace=run.trace, diagnostics=diagnostics)


def _tokens_alone(features: crf.Features, tokens: npt.NDArray[np.int64] | None = None) -> crf.Features:
    """Return the features of all or some tokens, each a sequence by itself: a CRF on it is a logistic regression."""
    slots = features.slots if tokens is None else features.slots[tokens]
    offsets = np.arange(len(slots) + 1)
    return crf.Features(offsets, slots, features.bundle_start, features.bundle_feature, features.n_features)

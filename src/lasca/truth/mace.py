"""Mace: each annotator either knows the label or guesses from a habit of their own.

Model (Hovy, Berg-Kirkpatrick, Vaswani & Hovy 2013): z_i uniform over the labels; for each annotation a coin of the
annotator, S_il ~ Bernoulli(1 − θ_l): heads (S = 0), they give z_i; tails, they give a label drawn from ξ_l. So
p(y_il = s | z_i = t) = (1 − θ_l) ξ_ls + θ_l [s = t].

Two ways to fit it, both of the original program:
- `variational=True` (default): θ_l ~ Beta, with `beta` for knowing and `alpha` for guessing (0.5, 0.5), ξ_l ~ Dir(10).
  The objective is the ELBO; it never falls.
- `variational=False`: EM with `smoothing` (default 0.01 / n_labels) added to every count; the objective is the log
  posterior with that prior.

As in the original: 10 restarts, 50 iterations, starting values 1 + 0.5 · uniform, normalised; labels are the most
probable ones of the last E step, the first where they tie. Differences: the best run is the one with the largest
objective (the original compares the log evidence at the expected logs, which is the ELBO without its KL terms);
runs stop early once they converge (`tol=0` runs all iterations as the original); tokens nobody labelled are allowed
(uniform posterior).

History: the counts of an earlier fit stay as they were and are added to the prior's (incremental EM); the start is what
they make, and there is one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from lasca.arrays import Floats, Proba
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block, Votes, cut_into_blocks
from lasca.estimator import flag, number, seeds, threads, tolerance, whole
from lasca.kernels.counts import agreement_pass, vote_counts
from lasca.kernels.tables import dirichlet_kl, expected_log
from lasca.truth.base import Posterior, Progress, TruthModel
from lasca.truth.result import History, Truth
from lasca.truth.special import Special, special_tokens

__all__ = ["Mace"]

NO_PROBA = np.empty((0, 0), dtype=np.float32)
STRATEGY_PRIOR = 10.0


@dataclass(frozen=True)
class MaceState:
    """The annotators: log (guesses, knows) and log ξ, with the counts they were made from."""

    log_theta: Floats
    """(n_annotators, 2): guesses, knows."""
    log_xi: Floats
    """(n_annotators, n_labels)."""
    penalty: float
    """The prior's share of the objective: ln p (EM) or −KL (VB)."""
    knowing: Floats
    """(n_annotators, 2): expected counts with the prior added: their shares are the posterior means."""
    strategy: Floats
    given: Floats
    """How often each annotator gave each label."""
    n_tokens: int

    @cached_property
    def log_guess(self) -> Floats:
        """(n_annotators, n_labels): log of guesses · ξ."""
        return self.log_theta[:, :1] + self.log_xi

    @cached_property
    def odds(self) -> Floats:
        """(n_annotators, n_labels): by how much a vote favours its label."""
        return 1.0 + np.exp(np.minimum(self.log_theta[:, 1:] - self.log_guess, 600.0))


@dataclass(frozen=True)
class MacePrior:
    """What is added to the counts of (guesses, knows) and of the labels guessed, and how the parameters are made."""

    theta: Floats
    """(2,), or (n_annotators, 2) with a history."""
    xi: Floats
    """(n_labels,), or (n_annotators, n_labels)."""
    variational: bool

    def state(self, knowing: Floats, strategy: Floats, given: Floats, n_tokens: int) -> MaceState:
        """Return the M step."""
        a, b = knowing + self.theta, strategy + self.xi
        if self.variational:
            penalty = -dirichlet_kl(a, self.theta) - dirichlet_kl(b, self.xi)
            return MaceState(expected_log(a), expected_log(b), penalty, a, b, given, n_tokens)
        log_theta = np.log(a / a.sum(axis=1, keepdims=True))
        log_xi = np.log(b / b.sum(axis=1, keepdims=True))
        penalty = float((self.theta * log_theta).sum() + (self.xi * log_xi).sum())
        return MaceState(log_theta, log_xi, penalty, a, b, given, n_tokens)


@dataclass(frozen=True)
class MaceLearner:
    """Mace as a learner: the settings, and what every step does (see `lasca.learn`).

    With g = guesses · ξ_s, a vote's likelihood is g where s is not true and g + knows where it is. So g is common
    to all labels, a vote multiplies the weight of its own label by 1 + knows / g, and it was known with
    probability p(s is true) · knows / (g + knows). A soft vote p: g = guesses · Σ_s p(s) ξ_s, and g + knows · p(t).
    """

    n_annotators: int
    n_labels: int
    prior: MacePrior
    noise: float
    has_past: bool = False
    """Whether the prior holds the counts of a history: then the start is what these make."""

    def summarise(self, block: Block) -> tuple[Any, ...]:
        """Return how often each annotator gave each label, and the number of tokens."""
        votes, hard = block.votes, block.hard
        return vote_counts(votes.annotator[hard], votes.label[hard], self.n_annotators, self.n_labels), len(block)

    def start(self, summary: tuple[Any, ...], rng: np.random.Generator | None) -> MaceState:
        """Return the original's start: 1 + noise · uniform, normalised; with a history, where that ended."""
        if self.has_past:
            nothing = np.zeros((self.n_annotators, 2)), np.zeros((self.n_annotators, self.n_labels))
            return self.prior.state(*nothing, *summary)
        noise = np.zeros((self.n_annotators, 2 + self.n_labels))
        if rng is not None:
            noise = self.noise * rng.random(noise.shape)
        theta, xi = np.split(1.0 + noise, [2], axis=1)
        theta /= theta.sum(axis=1, keepdims=True)
        xi /= xi.sum(axis=1, keepdims=True)
        return MaceState(np.log(theta), np.log(xi), -np.inf, theta, xi, *summary)

    def visit(self, state: MaceState, block: Block, local: Special | None) -> tuple[tuple[Any, ...], Special]:
        """Return expected counts: votes that are true, soft votes that were known or guessed; and the log evidence."""
        return self._pass(state, block, special_tokens(block) if local is None else local, NO_PROBA)

    def update(self, state: MaceState, statistics: tuple[Any, ...]) -> tuple[MaceState, float]:
        """Do the M step; the objective is that of the state given."""
        knowing, strategy, evidence = self.counted(state, statistics)
        return self.prior.state(knowing, strategy, state.given, state.n_tokens), evidence + state.penalty

    def counted(self, state: MaceState, statistics: tuple[Any, ...]) -> tuple[Floats, Floats, float]:
        """Return expected counts of (guesses, knows) and of labels guessed, and the log evidence."""
        agreed, soft_known, soft_guessed, evidence = statistics
        evidence += float((state.given * state.log_guess).sum()) - state.n_tokens * np.log(self.n_labels)
        known = np.minimum(agreed * (1.0 - 1.0 / state.odds), state.given)
        strategy = state.given - known + soft_guessed
        return np.stack([strategy.sum(axis=1), known.sum(axis=1) + soft_known], axis=1), strategy, evidence

    def describe(self, state: MaceState, block: Block, local: Special | None, out: Any) -> tuple[None, tuple[Any, ...]]:
        """Write the posterior of each token to `out`; return the statistics."""
        return None, self._pass(state, block, special_tokens(block) if local is None else local, out)[0]

    def _pass(self, state: MaceState, block: Block, special: Special, proba: Proba) -> tuple[tuple[Any, ...], Special]:
        votes, T = block.votes, self.n_labels
        factor, evidence = special.allowed, 0.0
        soft_known, soft_guessed = np.zeros(self.n_annotators), np.zeros((self.n_annotators, T))
        if len(special.place):
            who, p = special.annotator, special.proba
            guess = p * np.exp(state.log_guess[who])  # of each label it may have been
            knows = p * np.exp(state.log_theta[who, 1:])
            total = guess.sum(axis=1, keepdims=True)
            factor, evidence = special.allowed.copy(), float(np.log(total).sum())
            np.multiply.at(factor, special.place, 1.0 + knows / total)
        post, agreed = np.zeros_like(factor), np.zeros((self.n_annotators, T))
        arrays = (votes.start, votes.annotator, votes.label, state.odds, T, special.index, factor, post)
        evidence += agreement_pass(block.first, block.last, *arrays, agreed, proba)
        if len(special.place):
            true = post[special.place]
            np.add.at(soft_known, who, (true * knows / (total + knows)).sum(axis=1))
            np.add.at(soft_guessed, who, guess * (true / (total + knows)).sum(axis=1, keepdims=True))
        return (agreed, soft_known, soft_guessed, evidence), special


class Mace(TruthModel):
    """Annotators who know or guess, by Variational Bayes (default) or EM, the best of several random starts.

    `diagnostics["competence"]` has the probability that each annotator knows.
    """

    name = "mace"
    summary = "MACE: each annotator knows the label or guesses from a habit"
    supports = frozenset({"known", "soft", "update", "engine", "shards"})

    variational: bool = flag("Variational Bayes; False: EM", default=True)
    alpha: float = number("Beta prior of guessing", default=0.5, low=0, open_low=True)
    beta: float = number("Beta prior of knowing", default=0.5, low=0, open_low=True)
    strategy_prior: float = number("Dirichlet prior of what is guessed", default=STRATEGY_PRIOR, low=0, open_low=True)
    smoothing: float | None = number(
        "EM: what is added to every count", default=None, low=0, open_low=True, none="0.01 / number of labels"
    )
    noise: float = number("spread of the random starts", default=0.5, low=0)
    restarts: int = whole("random starts; the one with the largest objective is kept", default=10, low=1)
    max_iter: int = whole("iterations of a run at most", default=50, low=1)
    tol: float = tolerance(default=1e-6)
    seed: int | np.random.Generator = seeds(default=0)
    n_threads: int | None = threads(default=None)

    def _prior(self, n_labels: int) -> MacePrior:
        if self.variational:
            return MacePrior(np.array([self.alpha, self.beta]), np.full(n_labels, self.strategy_prior), True)
        smoothing = 0.01 / n_labels if self.smoothing is None else self.smoothing
        return MacePrior(np.full(2, smoothing), np.full(n_labels, smoothing), False)

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        return self._fitted(votes, progress, None)

    def _update(self, corpus: CrowdCorpus, votes: Votes, history: Truth, progress: Progress) -> Posterior:
        past = History.of(history, corpus, "knowing")
        self.restarts = 1  # of the copy that a fit runs on: there is one start, where the history ended
        return self._fitted(votes, progress, (past.counts("knowing", "a."), past.counts("strategy", "at")))

    def _fitted(self, votes: Votes, progress: Progress, past: tuple[Floats, Floats] | None) -> Posterior:
        """Fit; `past` are the counts of (guessed, knew) and of labels guessed of an earlier fit: they stay."""
        prior, fresh = self._prior(votes.n_labels), past is None
        if past is not None:
            prior = replace(prior, theta=prior.theta + past[0], xi=prior.xi + past[1])
        learner = MaceLearner(votes.n_annotators, votes.n_labels, prior, self.noise, not fresh)
        run, posterior, statistics = self._learned(
            learner, blocks_of(votes), votes, progress, is_fresh=fresh, lucky=fresh, settle=fresh
        )
        theta = run.state.knowing / run.state.knowing.sum(axis=1, keepdims=True)
        xi = run.state.strategy / run.state.strategy.sum(axis=1, keepdims=True)
        confusion = theta[:, :1, None] * xi[:, None, :] + theta[:, 1:, None] * np.eye(votes.n_labels)
        diagnostics = run.diagnostics() | {"competence": theta[:, 1].tolist()}
        knowing, strategy, _ = learner.counted(run.state, statistics)
        if past is not None:
            knowing, strategy = knowing + past[0], strategy + past[1]
        kept = {"knowing": knowing, "strategy": strategy}
        return replace(posterior, confusion=confusion, diagnostics=diagnostics, statistics=kept)


def blocks_of(votes: Votes) -> list[Block]:
    """Cut votes into blocks that are large beside the tables of counts that are added up."""
    return cut_into_blocks(votes, max(50_000, votes.n_hard // 64, 4 * votes.n_annotators * votes.n_labels))

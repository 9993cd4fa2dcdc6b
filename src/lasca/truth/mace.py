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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.engine import available_threads, chunks, run_summed
from lasca.estimator import check_number
from lasca.kernels.counts import agreement_pass, vote_counts
from lasca.kernels.special import dirichlet_kl, expected_log
from lasca.truth.base import Posterior, Progress, TruthModel, Votes
from lasca.truth.em import loop_settings, run_em

__all__ = ["Mace"]

Floats = npt.NDArray[np.float64]
NO_PROBA = np.empty((0, 0), dtype=np.float32)
STRATEGY_PRIOR = 10.0


@dataclass(frozen=True)
class State:
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


@dataclass(frozen=True)
class Prior:
    """What is added to the counts of (guesses, knows) and of the labels guessed, and how the parameters are made."""

    theta: Floats
    xi: float
    variational: bool

    def state(self, knowing: Floats, strategy: Floats) -> State:
        """Return the M step."""
        a, b = knowing + self.theta, strategy + self.xi
        if self.variational:
            penalty = -dirichlet_kl(a, self.theta) - dirichlet_kl(b, np.full(b.shape[1], self.xi))
            return State(expected_log(a), expected_log(b), penalty, a, b)
        log_theta = np.log(a / a.sum(axis=1, keepdims=True))
        log_xi = np.log(b / b.sum(axis=1, keepdims=True))
        penalty = float((self.theta * log_theta).sum() + self.xi * log_xi.sum())
        return State(log_theta, log_xi, penalty, a, b)


class Passes:
    """E steps over the votes of one corpus, in chunks of tokens and threads."""

    def __init__(self, votes: Votes, n_threads: int) -> None:
        self.votes, self.n_threads = votes, n_threads
        self.given = vote_counts(votes.annotator, votes.label, votes.n_annotators, votes.n_labels)
        self.chunks = chunks(votes.start, max(50_000, len(votes.label) // 64, 4 * self.given.size))

    def run(self, state: State, proba: npt.NDArray[np.float32] = NO_PROBA) -> tuple[Floats, Floats, float]:
        """Return expected counts of (guesses, knows) and of labels guessed, and the log evidence.

        With g = guesses · ξ_s, a vote's likelihood is g where s is not true and g + knows where it is. So g is common
        to all labels, a vote multiplies the weight of its own label by 1 + knows / g, and it was known with
        probability p(s is true) · knows / (g + knows).
        """
        votes = self.votes
        log_guess = state.log_theta[:, :1] + state.log_xi
        log_ratio = np.minimum(state.log_theta[:, 1:] - log_guess, 600.0)
        odds = 1.0 + np.exp(log_ratio)

        def work(chunk: tuple[int, int]) -> tuple[Floats, float]:
            agreed = np.zeros_like(odds)
            arrays = (votes.start, votes.annotator, votes.label, odds, votes.n_labels)
            return agreed, agreement_pass(*chunk, *arrays, agreed, proba)

        agreed, evidence = run_summed(work, self.chunks, self.n_threads)
        evidence += float((self.given * log_guess).sum()) - votes.n_tokens * np.log(votes.n_labels)
        known = np.minimum(agreed * (1.0 - 1.0 / odds), self.given)
        strategy = self.given - known
        return np.stack([strategy.sum(axis=1), known.sum(axis=1)], axis=1), strategy, evidence


def random_start(votes: Votes, noise: float, rng: np.random.Generator) -> State:
    """Return the original's start: 1 + noise · uniform, normalised."""
    theta, xi = np.split(1.0 + noise * rng.random((votes.n_annotators, 2 + votes.n_labels)), [2], axis=1)
    theta /= theta.sum(axis=1, keepdims=True)
    xi /= xi.sum(axis=1, keepdims=True)
    penalty = -np.inf
    return State(np.log(theta), np.log(xi), penalty, theta, xi)


class Mace(TruthModel):
    """Annotators who know or guess, by Variational Bayes (default) or EM, the best of several random starts.

    Parameters: `variational`; `alpha`, `beta` (Beta prior of guessing and knowing) and `strategy_prior` (Dirichlet
    prior of what is guessed) for it; `smoothing` for EM (None: 0.01 / n_labels); `noise` (spread of the random starts);
    `restarts`; `max_iter`; `tol` (stop when the objective rises by less than this per annotation); `seed`; `n_threads`.

    `diagnostics["competence"]` has the probability that each annotator knows.
    """

    name = "mace"

    def __init__(
        self,
        *,
        variational: bool = True,
        alpha: float = 0.5,
        beta: float = 0.5,
        strategy_prior: float = STRATEGY_PRIOR,
        smoothing: float | None = None,
        noise: float = 0.5,
        restarts: int = 10,
        max_iter: int = 50,
        tol: float = 1e-6,
        seed: int | np.random.Generator = 0,
        n_threads: int | None = None,
    ) -> None:
        self.variational = variational
        self.alpha = alpha
        self.beta = beta
        self.strategy_prior = strategy_prior
        self.smoothing = smoothing
        self.noise = noise
        self.restarts = restarts
        self.max_iter = max_iter
        self.tol = tol
        self.seed = seed
        self.n_threads = n_threads

    def _prior(self, n_labels: int) -> Prior:
        alpha = check_number("alpha", self.alpha, low=0, open_low=True)
        beta = check_number("beta", self.beta, low=0, open_low=True)
        strategy = check_number("strategy_prior", self.strategy_prior, low=0, open_low=True)
        if self.variational:
            return Prior(np.array([alpha, beta]), strategy, True)
        smoothing = 0.01 / n_labels
        if self.smoothing is not None:
            smoothing = check_number("smoothing", self.smoothing, low=0, open_low=True)
        return Prior(np.full(2, smoothing), smoothing, False)

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        prior = self._prior(votes.n_labels)
        noise = check_number("noise", self.noise, low=0)
        passes = Passes(votes, available_threads(self.n_threads))

        def initial(rng: np.random.Generator) -> State:
            knowing, strategy, _ = passes.run(random_start(votes, noise, rng))
            return prior.state(knowing, strategy)

        def step(state: State) -> tuple[State, float]:
            knowing, strategy, evidence = passes.run(state)
            return prior.state(knowing, strategy), evidence + state.penalty

        run = run_em(
            initial,
            step,
            **loop_settings(self),
            scale=len(votes.label),
            progress=progress,
        )
        proba = np.empty((votes.n_tokens, votes.n_labels), dtype=np.float32)
        passes.run(run.state, proba)
        theta = run.state.knowing / run.state.knowing.sum(axis=1, keepdims=True)
        xi = run.state.strategy / run.state.strategy.sum(axis=1, keepdims=True)
        confusion = theta[:, :1, None] * xi[:, None, :] + theta[:, 1:, None] * np.eye(votes.n_labels)
        diagnostics = run.diagnostics() | {"competence": theta[:, 1].tolist()}
        return Posterior(proba, confusion, trace=run.trace, diagnostics=diagnostics)

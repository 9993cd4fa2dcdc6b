"""DawidSkene: every annotator has a confusion matrix; true labels are independent given label frequencies.

Model: z_i ~ Mult(γ), y_il ~ Mult(Ψ^l_{z_i}); rows Ψ^l_t ~ Dir, γ ~ Dir. (Dawid & Skene 1979; Kim & Ghahramani 2012.)

Two ways to fit it:
- EM to the posterior mode (default). The prior adds `smoothing` to every count, and `agreement` to those of labels
  given where they are true: Dir(1 + smoothing + agreement [s = t]). The objective is the log posterior
  ln p(y, Ψ, γ) up to the prior's constant; it never falls.
- `variational=True`: Variational Bayes, that is IBCC, with Dir(diagonal) and Dir(off_diagonal) on the rows and
  Dir(class_prior) on γ; the objective is the ELBO.

Differences from the 1979 paper: the prior (the paper has none: rare labels then get stuck at 0, and where a token has
one annotator only nothing says that people mean what they say); tokens
nobody labelled are not part of the model, which does not move the optimum, and get γ as their posterior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.engine import available_threads, chunks, run_summed
from lasca.estimator import check_number
from lasca.kernels import counts as kernels
from lasca.kernels.simd import block_tuple
from lasca.kernels.special import dirichlet_kl, expected_log
from lasca.truth.base import Posterior, Progress, TruthModel, Votes
from lasca.truth.em import loop_settings, run_em

__all__ = ["DawidSkene"]

Floats = npt.NDArray[np.float64]
NO_PROBA = np.empty((0, 0), dtype=np.float32)


@dataclass(frozen=True)
class Parameters:
    """What the next pass needs: log Ψ as (annotator, given label, true label), log γ, and the prior's share."""

    log_psi: Floats
    log_gamma: Floats
    penalty: float
    """ln p(Ψ, γ) up to a constant (EM), or −KL(q || p) (VB): the objective is this plus the log evidence."""


class Passes:
    """Passes over the votes of one corpus, in chunks of tokens and threads; sums are taken in the order of chunks."""

    def __init__(self, votes: Votes, n_threads: int) -> None:
        self.votes, self.n_threads = votes, n_threads
        self.width = -(-votes.n_labels // 4) * 4
        table = votes.n_annotators * votes.n_labels * self.width
        self.chunks = chunks(votes.start, max(50_000, len(votes.label) // 64, 4 * table))
        cell = votes.annotator * np.int32(votes.n_labels) + votes.label
        self.rows = cell * np.int64(self.width) if table >= 2**31 else cell * np.int32(self.width)
        self.n_given = kernels.vote_counts(votes.annotator, votes.label, votes.n_annotators, votes.n_labels)

    def run(self, parameters: Parameters, proba: npt.NDArray[np.float32] = NO_PROBA) -> tuple[Floats, Floats, float]:
        """Return expected counts (annotator, given, true), expected label counts, and the log evidence."""
        votes, T, width = self.votes, self.votes.n_labels, self.width
        shift = parameters.log_psi.max(axis=2)  # each row is scaled to a largest entry of 1
        log_table = np.full((votes.n_annotators, T, width), -np.inf)
        log_table[:, :, :T] = parameters.log_psi - shift[:, :, None]
        log_prior = np.full(width, -np.inf)
        log_prior[:T] = parameters.log_gamma
        table, prior = np.exp(log_table.ravel()), np.exp(log_prior)
        arrays = (votes.start, self.rows, table, log_table.ravel(), prior, log_prior, T)

        def work(chunk: tuple[int, int]) -> tuple[Any, Any, float]:
            sums, totals = np.zeros(len(table)), np.zeros(width)
            if width <= kernels.MAX_SIMD_WIDTH:
                found = kernels.confusion_pass(*chunk, *arrays, block_tuple(width), sums, totals, proba)
            else:
                found = kernels.confusion_pass_wide(*chunk, *arrays, width, sums, totals, proba)
            return sums, totals, found

        sums, totals, evidence = run_summed(work, self.chunks, self.n_threads)
        evidence += float((self.n_given * shift).sum())
        return sums.reshape(votes.n_annotators, T, width)[:, :, :T], totals[:T], evidence


def mode(counts: Floats, totals: Floats, prior: Floats, smoothing: float) -> Parameters:
    """Return the M step of EM: counts with the prior's added (true, given), normalised over the given label."""
    psi = counts + prior.T
    log_psi = np.log(psi) - np.log(psi.sum(axis=1, keepdims=True))
    log_gamma = np.log((totals + smoothing) / (totals + smoothing).sum())
    return Parameters(log_psi, log_gamma, float((prior.T * log_psi).sum() + smoothing * log_gamma.sum()))


def variational(counts: Floats, totals: Floats, prior: Floats, class_prior: float) -> Parameters:
    """Return the expected logs of Ψ and γ under their Dirichlet posteriors; `prior` is (true, given)."""
    alpha = counts.transpose(0, 2, 1) + prior
    nu = totals + class_prior
    penalty = -dirichlet_kl(alpha, prior) - dirichlet_kl(nu, np.full(len(nu), class_prior))
    return Parameters(expected_log(alpha).transpose(0, 2, 1), expected_log(nu), penalty)


class DawidSkene(TruthModel):
    """One confusion matrix per annotator, by EM (posterior mode) or Variational Bayes (IBCC).

    Parameters: `smoothing` (EM: what the prior adds to every count) and `agreement` (and to labels given where they are
    true); `variational`, and for it `diagonal`,
    `off_diagonal` (the Dirichlet prior of a row: a label given where it is true, where another is true) and
    `class_prior`; `restarts` (the first start is the shares of the votes, the others are random confusion matrices);
    `max_iter`; `tol` (stop when the objective rises by less than this per annotation); `seed`; `n_threads`.
    """

    name = "ds"

    def __init__(
        self,
        *,
        variational: bool = False,
        smoothing: float = 0.01,
        agreement: float = 0.5,
        diagonal: float = 2.0,
        off_diagonal: float = 1.0,
        class_prior: float = 1.0,
        restarts: int = 1,
        max_iter: int = 200,
        tol: float = 1e-6,
        seed: int | np.random.Generator = 0,
        n_threads: int | None = None,
    ) -> None:
        self.variational = variational
        self.smoothing = smoothing
        self.agreement = agreement
        self.diagonal = diagonal
        self.off_diagonal = off_diagonal
        self.class_prior = class_prior
        self.restarts = restarts
        self.max_iter = max_iter
        self.tol = tol
        self.seed = seed
        self.n_threads = n_threads

    def _prior(self, n_labels: int) -> tuple[Floats, float]:
        """Return what is added to the counts of (true, given), and to those of true labels (EM)."""
        smoothing = check_number("smoothing", self.smoothing, low=0, open_low=True)
        agreement = check_number("agreement", self.agreement, low=0)
        diagonal = check_number("diagonal", self.diagonal, low=0, open_low=True)
        off = check_number("off_diagonal", self.off_diagonal, low=0, open_low=True)
        if not self.variational:
            diagonal, off = smoothing + agreement, smoothing
        prior = np.full((n_labels, n_labels), off)
        np.fill_diagonal(prior, diagonal)
        return prior, smoothing

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        T = votes.n_labels
        prior, smoothing = self._prior(T)
        class_prior = check_number("class_prior", self.class_prior, low=0, open_low=True)
        passes = Passes(votes, available_threads(self.n_threads))

        def parameters(counts: Floats, totals: Floats) -> Parameters:
            if self.variational:
                return variational(counts, totals, prior, class_prior)
            return mode(counts, totals, prior, smoothing)

        def initial(rng: np.random.Generator) -> Parameters:
            return parameters(*_random_counts(votes, rng))

        def step(state: Parameters) -> tuple[Parameters, float]:
            counts, totals, evidence = passes.run(state)
            return parameters(counts, totals), evidence + state.penalty

        counts, totals = kernels.share_counts(votes.start, votes.annotator, votes.label, votes.n_annotators, T)
        run = run_em(
            initial,
            step,
            first=parameters(counts, totals),
            **loop_settings(self),
            scale=len(votes.label),
            progress=progress,
        )
        proba = np.empty((votes.n_tokens, T), dtype=np.float32)
        counts, _, _ = passes.run(run.state, proba)
        confusion = counts.transpose(0, 2, 1) + prior
        confusion /= confusion.sum(axis=2, keepdims=True)
        return Posterior(proba, confusion, trace=run.trace, diagnostics=run.diagnostics())


def _random_counts(votes: Votes, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return counts as of confusion matrices drawn at random, with 30 to 90 percent on the diagonal."""
    T = votes.n_labels
    rows = rng.dirichlet(np.ones(T), size=(votes.n_annotators, T)).transpose(0, 2, 1)
    right = rng.uniform(0.3, 0.9, size=(votes.n_annotators, 1, T))
    n = np.bincount(votes.annotator, minlength=votes.n_annotators)[:, None, None]
    counts = n / T * (right * np.eye(T) + (1 - right) * rows)
    totals = np.bincount(votes.label, minlength=T) / max(len(votes.label), 1) * votes.n_tokens
    return counts, totals

"""DawidSkene: every annotator has a confusion matrix; true labels are independent given label frequencies.

Model: z_i ~ Mult(γ), y_il ~ Mult(Ψ^l_{z_i}); rows Ψ^l_t ~ Dir, γ ~ Dir. (Dawid & Skene 1979; Kim & Ghahramani 2012.)

Two ways to fit it:
- EM to the posterior mode (default). The prior adds `smoothing` to every count, and `agreement` to those of labels
  given where they are true: Dir(1 + smoothing + agreement [s = t]). The objective is the log posterior
  ln p(y, Ψ, γ) up to the prior's constant; it never falls.
- `variational=True`: Variational Bayes, that is IBCC, with Dir(diagonal) and Dir(off_diagonal) on the rows and
  Dir(class_prior) on γ; the objective is the ELBO.

Differences from the 1979 paper: tokens of which one voice speaks teach nothing, unless `lone_votes=True`: nobody
speaks against it, so that whatever is believed of the annotator is found confirmed there, and with few shared tokens
EM drifts away from what people said (`experiments/lone_votes.py`). Such a token gets the label of its vote, unless the
annotator gave that label often enough beside others for these to know better. There is a prior (the paper has none:
rare labels then get stuck at 0, and nothing says that people mean what they say). Tokens nobody labelled are not part
of the model, which does not move the optimum, and get γ as their posterior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from lasca.arrays import Array, Bools, Floats, Proba
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block, Votes, cut_into_blocks
from lasca.estimator import flag, number, seeds, threads, whole
from lasca.kernels import counts as kernels
from lasca.kernels import simd
from lasca.kernels.tables import dirichlet_kl, expected_log
from lasca.truth.base import Posterior, Progress, TruthModel
from lasca.truth.result import History, Truth
from lasca.truth.special import Special, as_rows, expected_counts, shares_of, special_tokens

__all__ = ["DawidSkene", "believe_lone_votes"]

ENOUGH = 30
"""How often an annotator must have given a label beside others before it can be overruled where they stand alone."""
NO_PROBA = np.empty((0, 0), dtype=np.float32)


@dataclass(frozen=True)
class Tables:
    """Log Ψ as (annotator, given label, state) and log γ, and what kernels want of them."""

    log_psi: Floats
    log_gamma: Floats

    @cached_property
    def shift(self) -> Floats:
        """The largest entry of each row of log Ψ: rows of the table are scaled to a largest entry of 1."""
        return np.asarray(self.log_psi.max(axis=2))

    @cached_property
    def arrays(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Ψ as rows of all pairs (annotator, given label) behind each other, its logs, γ, and its logs.

        Rows are widened to a multiple of 4.
        """
        A, T, S = self.log_psi.shape
        width = -(-S // 4) * 4
        log_table, log_row = np.full((A, T, width), -np.inf), np.full(width, -np.inf)
        log_table[:, :, :S] = self.log_psi - self.shift[:, :, None]
        log_row[:S] = self.log_gamma
        table = np.exp(log_table.ravel(), out=simd.zeros(log_table.size))
        return table, log_table.ravel(), np.exp(log_row), log_row


@dataclass(frozen=True)
class Parameters(Tables):
    """What the next pass needs: the tables, and the prior's share."""

    penalty: float
    """ln p(Ψ, γ) up to a constant (EM), or −KL(q || p) (VB): the objective is this plus the log evidence."""
    given: Floats
    """How often each annotator gave each label."""


@dataclass(frozen=True)
class Local:
    """What is kept of a block: the place of each vote's row, and the special tokens."""

    rows: Array
    special: Special
    factor: Floats
    """What is allowed at special tokens, as rows of the kernels' width."""
    teaches: Bools
    """Whether more speak of a special token than one voice that teaches nothing."""


@dataclass(frozen=True)
class ConfusionLearner:
    """Dawid–Skene as a learner: the settings, and what every step does (see `lasca.learn`)."""

    n_annotators: int
    n_labels: int
    prior: Floats
    """What is added to the counts of (annotator or 1, true, given): the prior, and an earlier truth's counts."""
    class_prior: Floats
    """What is added to the counts of true labels (n_labels)."""
    variational: bool
    lone_votes: bool
    """Whether tokens of which one voice speaks teach anything."""

    @property
    def width(self) -> int:
        """The length of a row of the kernels' tables."""
        return -(-self.n_labels // 4) * 4

    @property
    def least(self) -> int:
        """How many voices must speak of a token that teaches."""
        return 1 if self.lone_votes else 2

    def summarise(self, block: Block) -> tuple[Any, ...]:
        """Return expected counts with the shares of the votes as posterior, counts of labels given, and of tokens.

        Tokens that teach nothing are left out.
        """
        votes, special, A, T = block.votes, special_tokens(block), self.n_annotators, self.n_labels
        if not len(special):
            counts, totals, given = np.zeros((A, T, T)), np.zeros(T), np.zeros((A, T))
            arrays = (votes.start, votes.annotator, votes.label)
            kernels.share_counts(block.first, block.last, *arrays, self.least, counts, totals, given)
            return counts, totals, given, len(block)
        voices = np.diff(block.start)
        voices[special.index >= 0] = special.voices
        lone = voices < self.least
        shares = shares_of(block, special)
        shares[lone] = 0
        teaches = ~lone[block.token]
        given = kernels.vote_counts(votes.annotator[block.hard][teaches], votes.label[block.hard][teaches], A, T)
        return *expected_counts(block, special, shares), given, len(block)

    def start(self, summary: tuple[Any, ...], rng: np.random.Generator | None) -> Parameters:
        """Return the M step of the shares of the votes, or of confusion matrices drawn at random."""
        counts, totals, given, n_tokens = summary
        if rng is None:
            return self._parameters(counts, totals, given)
        return self._parameters(*_random_counts(given, n_tokens, rng), given)

    def visit(self, state: Parameters, block: Block, local: Local | None) -> tuple[tuple[Any, ...], Local]:
        """Return expected counts (annotator, given, true), expected label counts, and the log evidence."""
        local = local or self.look(block)
        return self.expect(state, block, local, NO_PROBA), local

    def update(self, state: Parameters, statistics: tuple[Any, ...]) -> tuple[Parameters, float]:
        """Do the M step; the objective is that of the state given."""
        counts, totals, evidence = statistics
        evidence += float((state.given * state.shift).sum())
        return self._parameters(counts, totals, state.given), evidence + state.penalty

    def describe(self, state: Parameters, block: Block, local: Local | None, out: Any) -> tuple[None, tuple[Any, ...]]:
        """Write the posterior of each token to `out`; return the statistics."""
        statistics = self.expect(state, block, local or self.look(block), out)
        if not self.lone_votes:
            believe_lone_votes(block, out, state.given)
        return None, statistics

    def look(self, block: Block) -> Local:
        """Return what is kept of a block."""
        votes, hard = block.votes, block.hard
        cell = votes.annotator[hard] * np.int32(self.n_labels) + votes.label[hard]
        is_large = self.n_annotators * self.n_labels * self.width >= 2**31
        rows, special = cell * (np.int64(self.width) if is_large else np.int32(self.width)), special_tokens(block)
        return Local(rows, special, as_rows(special.allowed, self.width), special.voices >= self.least)

    def expect(self, state: Parameters, block: Block, local: Local, proba: Proba) -> tuple[Any, ...]:
        """Do the E step of a block; the posterior of each token is written to `proba` unless that has no rows."""
        T, width, special = self.n_labels, self.width, local.special
        sums, totals = simd.zeros(self.n_annotators * T * width), np.zeros(width)
        factor, post, evidence = local.factor, local.factor, 0.0
        if len(special):
            factor, post = factor.copy(), np.zeros_like(factor)
        if len(special.place):
            psi, scales = np.exp(state.log_psi), np.zeros(len(factor))
            kernels.soft_factor(special.place, special.annotator, special.proba, psi, factor, scales)
            evidence = float(scales[local.teaches].sum())
        arrays = (block.votes.start, local.rows, *state.arrays, T, width)
        rest = (self.least, special.index, local.teaches, factor.ravel(), post.ravel(), sums, totals, proba)
        evidence += kernels.confusion_pass(block.first, block.last, *arrays, *rest)
        counts = sums.reshape(self.n_annotators, T, width)[:, :, :T]
        if len(special.place):
            post[~local.teaches] = 0
            kernels.soft_counts(special.place, special.annotator, special.proba, psi, post, counts)
        return counts, totals[:T], evidence

    def _parameters(self, counts: Floats, totals: Floats, given: Floats) -> Parameters:
        make = variational if self.variational else mode
        return make(counts, totals, self.prior, self.class_prior, given)

    def confusion(self, counts: Floats) -> Floats:
        """Return the confusion matrices of expected counts (annotator, true, given)."""
        psi = counts.transpose(0, 2, 1) + self.prior
        return np.asarray(psi / psi.sum(axis=2, keepdims=True))


def mode(counts: Floats, totals: Floats, prior: Floats, class_prior: Floats, given: Floats) -> Parameters:
    """Return the M step of EM: counts with the prior's added (true, given), normalised over the given label."""
    extra = np.swapaxes(prior, -1, -2)
    psi = counts + extra
    log_psi = np.log(psi) - np.log(psi.sum(axis=1, keepdims=True))
    log_gamma = np.log((totals + class_prior) / (totals + class_prior).sum())
    penalty = float((extra * log_psi).sum() + (class_prior * log_gamma).sum())
    return Parameters(log_psi, log_gamma, penalty, given)


def variational(counts: Floats, totals: Floats, prior: Floats, class_prior: Floats, given: Floats) -> Parameters:
    """Return the expected logs of Ψ and γ under their Dirichlet posteriors; `prior` is (true, given)."""
    alpha = counts.transpose(0, 2, 1) + prior
    nu = totals + class_prior
    penalty = -dirichlet_kl(alpha, np.broadcast_to(prior, alpha.shape)) - dirichlet_kl(nu, class_prior)
    return Parameters(expected_log(alpha).transpose(0, 2, 1), expected_log(nu), penalty, given)


class DawidSkene(TruthModel):
    """One confusion matrix per annotator, by EM (posterior mode) or Variational Bayes (IBCC)."""

    name = "ds"
    summary = "Dawid–Skene: one confusion matrix per annotator, by EM or Variational Bayes (IBCC)"
    supports = frozenset({"known", "soft", "update", "engine", "shards"})

    variational: bool = flag("Variational Bayes (IBCC); False: EM", default=False)
    smoothing: float = number("EM: what the prior adds to every count", default=0.01, low=0, open_low=True)
    agreement: float = number("EM: and to labels given where they are true", default=0.5, low=0)
    diagonal: float = number("Dirichlet prior of a label given where it is true", default=2.0, low=0, open_low=True)
    off_diagonal: float = number("Dirichlet prior of a label given where another is", default=1.0, low=0, open_low=True)
    class_prior: float = number("Dirichlet prior of the labels' frequencies", default=1.0, low=0, open_low=True)
    lone_votes: bool = flag("whether tokens with one vote teach anything, as in the paper", default=False)
    restarts: int = whole(
        "starts: the first is the shares of the votes, the others are random matrices", default=1, low=1
    )
    max_iter: int = whole("iterations of a run at most", default=200, low=1)
    tol: float = number(
        "a run stops when the objective rises by less than this per annotation; 0: never", default=1e-6, low=0
    )
    seed: int | np.random.Generator = seeds(default=0)
    n_threads: int | None = threads(default=None)

    def _prior(self, n_labels: int) -> tuple[Floats, float]:
        """Return what is added to the counts of (true, given), and to those of true labels (EM)."""
        diagonal, off = self.diagonal, self.off_diagonal
        if not self.variational:
            diagonal, off = self.smoothing + self.agreement, self.smoothing
        prior = np.full((n_labels, n_labels), off)
        np.fill_diagonal(prior, diagonal)
        return prior, self.smoothing

    def _learner(self, votes: Votes, past: tuple[Floats, Floats] | None = None) -> ConfusionLearner:
        T = votes.n_labels
        prior, smoothing = self._prior(T)
        class_prior = np.full(T, self.class_prior)
        if not self.variational:
            class_prior = np.full(T, smoothing)
        if past is not None:
            prior, class_prior = prior + past[0].transpose(0, 2, 1), class_prior + past[1]
        return ConfusionLearner(
            votes.n_annotators, T, prior, class_prior, bool(self.variational), bool(self.lone_votes)
        )

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        return self._fitted(votes, progress, None)

    def _update(self, corpus: CrowdCorpus, votes: Votes, history: Truth, progress: Progress) -> Posterior:
        past = History.of(history, corpus, "counts")
        return self._fitted(votes, progress, (past.counts("counts", "att"), past.counts("totals", "t")))

    def _fitted(self, votes: Votes, progress: Progress, past: tuple[Floats, Floats] | None) -> Posterior:
        """Fit; `past` are the expected counts and labels' totals of an earlier fit: they stay."""
        learner = self._learner(votes, past)
        _, posterior, (counts, totals, _) = self._learned(
            learner, blocks_of(votes), votes, progress, is_fresh=past is None
        )
        kept = {"counts": counts, "totals": totals}
        if past is not None:
            kept = {"counts": counts + past[0], "totals": totals + past[1]}
        return replace(posterior, confusion=learner.confusion(counts), statistics=kept)


def believe_lone_votes(block: Block, proba: Proba, given: Floats) -> None:
    """Where one vote is all there is, let it win unless its annotator gave that label often enough beside others."""
    votes, alone = block.votes, np.diff(block.start) == 1
    for rows in (block.soft, block.known):
        if rows is not None:
            alone[rows.token] = False
    token = np.flatnonzero(alone)
    vote = block.start[token]
    said, best = votes.label[vote], proba[token].argmax(axis=1)
    untested = (said != best) & (given[votes.annotator[vote], said] < ENOUGH)
    token, said, best = token[untested], said[untested], best[untested]
    proba[token, said], proba[token, best] = proba[token, best], proba[token, said]


def blocks_of(votes: Votes) -> list[Block]:
    """Cut votes into blocks that are large beside the tables that are added up, and beside calling a visit."""
    table = votes.n_annotators * votes.n_labels * -(-votes.n_labels // 4) * 4
    return cut_into_blocks(votes, max(200_000, votes.n_hard // 64, 4 * table))


def _random_counts(given: Floats, n_tokens: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return counts as of confusion matrices drawn at random, with 30 to 90 percent on the diagonal."""
    A, T = given.shape
    rows = rng.dirichlet(np.ones(T), size=(A, T)).transpose(0, 2, 1)
    right = rng.uniform(0.3, 0.9, size=(A, 1, T))
    counts = given.sum(axis=1)[:, None, None] / T * (right * np.eye(T) + (1 - right) * rows)
    return counts, given.sum(axis=0) / max(given.sum(), 1) * n_tokens

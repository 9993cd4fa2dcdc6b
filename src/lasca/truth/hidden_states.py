"""The hidden states of the sequence clusters model, and their variational posterior.

A token's hidden state is its true label t and a level h of difficulty: at a hard token annotators fail together – they
all miss the same name, or guess – which annotators who err each by themselves cannot explain. State h·T + t:

    z_1 ~ Mult(π), z_i ~ Mult(A_{z_{i-1}})                  over states; π, A ~ Dir, moves the scheme forbids are 0
    w_i ~ Mult(ρ_t)                                         words know the label, not the level
    y_il ~ Mult(Ψ^l_{b, h, t})                              b: what l gave the token before (nothing without memory)
    Π_s (Φ^k_{ts})^{q_iks}                                  text k: a tagger's out-of-fold probabilities as fractions of
                                                            votes; its confusion Φ^k is learned like an annotator's

q(z) q(parameters): the E step is forward–backward with exp E log of the parameters, the M step adds expected counts to
priors. The objective, log sum over paths − KL(q || p) of the parameters, never falls while texts and priors are fixed.
What is known rules states out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.kernels.products import crossed, times
from lasca.kernels.special import dirichlet_kl, expected_log
from lasca.schemes import transitions
from lasca.truth.annotator_models import FORBIDDEN, confusion_prior, memory_prior, scheme_rules
from lasca.truth.base import Votes
from lasca.truth.evidence import (
    Floats,
    Rows,
    Sources,
    annotation_rows,
    context_borders,
    dirichlet_rows,
    expected_rows,
    memory,
    word_rows,
)
from lasca.truth.sequence import Chain, ChainCounts, best_paths, marginals
from lasca.truth.sequence_model import trust

__all__ = ["CrowdPrior", "Expected", "HiddenStates", "Parameters", "Settings", "Text"]


@dataclass(frozen=True)
class Settings:
    """The parts of the model and their priors, checked by the estimator."""

    levels: tuple[tuple[float, float], ...]
    """Pseudo-counts (correct, wrong) of an annotator's row at each level of difficulty."""
    markov: bool
    memory: bool
    words: bool
    transition_prior: float
    word_prior: float
    text_prior: tuple[float, float]


@dataclass(frozen=True)
class Text:
    """One tagger's out-of-fold probabilities (n_tokens, T); rows of zeros say nothing."""

    proba: npt.NDArray[np.float32]


@dataclass(frozen=True)
class CrowdPrior:
    """Pseudo-counts of the annotations' rows (n_rows, S), and of whole contexts (n_contexts, S)."""

    rows: Floats
    totals: Floats


@dataclass(frozen=True)
class Parameters:
    """What an E step needs: exp E log of the chain, E log of the tables; and what it costs."""

    chain: Chain
    crowd: Floats
    words: Floats | None
    texts: tuple[Floats, ...]
    """(T, T) each: true, given."""
    penalty: float


@dataclass(frozen=True)
class Expected:
    """Expected counts after an E step."""

    chain: ChainCounts
    crowd: Floats
    words: Floats | None
    texts: tuple[Floats, ...]


class HiddenStates:
    """Rows, rules and priors of a corpus; the steps are functions of what they are given."""

    def __init__(self, corpus: CrowdCorpus, votes: Votes, settings: Settings, n_threads: int) -> None:
        self.votes, self.settings, self.n_threads = votes, settings, n_threads
        self.T, self.H = votes.n_labels, len(settings.levels)
        self.S = self.T * self.H
        self.contexts = self.T + 1 if settings.memory else 1
        self.rows = annotation_rows(votes, memory(votes) if settings.memory else None)
        self.words: Rows | None = word_rows(corpus) if settings.words else None
        rest, self.given = np.divmod(self.rows.code, self.T)
        self.annotator, self.before = np.divmod(rest, self.contexts)
        self.borders = context_borders(rest)
        first, allowed, last = transitions(corpus.labels)
        self.label_rules = Chain(first.astype(float), allowed.astype(float), last.astype(float))
        H = self.H
        self.rules = Chain(
            np.tile(self.label_rules.start, H), np.tile(self.label_rules.move, (H, H)), np.tile(self.label_rules.end, H)
        )
        if not settings.markov:  # one distribution for all tokens: nothing to forbid before the decoding
            self.rules = Chain(np.ones(self.S), np.ones((self.S, self.S)), np.ones(self.S))
        self.base_prior = self._base_prior(corpus.labels)

    # --- priors ---------------------------------------------------------------------------------------------------

    def _base_prior(self, labels: Sequence[str]) -> CrowdPrior:
        """Return the prior every annotator has alike: right rather than wrong, within the scheme."""
        more = trust(self.votes)
        base = np.vstack([confusion_prior(self.T, correct + more, wrong) for correct, wrong in self.settings.levels])
        totals = np.broadcast_to(base.sum(axis=1), (self.contexts, self.S))
        if not self.settings.memory:
            rows = np.ascontiguousarray(base.T[self.given])
        else:
            pair, index = np.unique(self.before * self.T + self.given, return_inverse=True)
            rows = memory_prior(base, labels, *np.divmod(pair, self.T))[index]
            _, broken = scheme_rules(labels)
            totals = totals + FORBIDDEN * broken.sum(axis=1)[:, None]
        return CrowdPrior(rows, np.asarray(totals[self.before[self.borders[:-1]]]))

    def cluster_prior(
        self, crowd: Floats, assignment: npt.NDArray[np.integer], n_clusters: int, strength: float
    ) -> CrowdPrior:
        """Return the base prior plus `strength` pseudo-counts spread as the annotator's whole cluster does it.

        `crowd` are expected counts of the rows. The cluster's mean starts from the base prior, so that it leans to be
        right as every annotator does.
        """
        if strength == 0:
            return self.base_prior
        base, n = self.base_prior, self.contexts * self.T
        cell = assignment[self.annotator] * n + self.before * self.T + self.given
        pooled = np.zeros((n_clusters * n, self.S))
        np.add.at(pooled, cell, crowd)
        member = np.zeros_like(pooled)
        member[cell] = base.rows
        context = cell // self.T
        totals = pooled.reshape(-1, self.T, self.S).sum(axis=1)
        own = np.zeros_like(totals)
        own[context[self.borders[:-1]]] = base.totals
        mean = (pooled[cell] + member[cell]) / (totals[context] + own[context])
        return CrowdPrior(base.rows + strength * mean, base.totals + strength)

    # --- steps ----------------------------------------------------------------------------------------------------

    def expect(
        self,
        parameters: Parameters | None,
        texts: Sequence[Text],
        out: Floats,
        more: npt.NDArray[np.floating] | None = None,
    ) -> Expected:
        """Do the E step into `out` (n_tokens, S); without parameters all that is allowed weighs the same."""
        evidence = self.evidence(parameters, texts)
        if more is not None:
            evidence = more if evidence is None else evidence + more
        chain = self.rules if parameters is None else parameters.chain
        counts = marginals(self.votes.offsets, chain, self.sources(parameters), out, self.n_threads, evidence)
        return self.counted(counts, texts, out)

    def counted(self, counts: ChainCounts, texts: Sequence[Text], proba: Floats) -> Expected:
        """Return the expected counts of all rows under the states' posteriors."""
        labels = self.label_proba(proba)
        words = None if self.words is None else expected_rows(self.words, labels, self.n_threads)
        crowd = expected_rows(self.rows, proba, self.n_threads)
        return Expected(counts, crowd, words, tuple(crossed(labels, text.proba) for text in texts))

    def maximise(self, expected: Expected, prior: CrowdPrior) -> Parameters:
        """Add expected counts to the priors."""
        chain, penalty = self._chain(expected.chain)
        crowd, kl = dirichlet_rows(expected.crowd, prior.rows, prior.totals, self.borders)
        penalty += kl
        words = None
        if expected.words is not None:
            words, kl = dirichlet_rows(expected.words, self.settings.word_prior)
            penalty += kl
        texts = []
        pseudo = confusion_prior(self.T, *self.settings.text_prior)
        for counts in expected.texts:
            texts.append(expected_log(counts + pseudo))
            penalty += dirichlet_kl(counts + pseudo, pseudo)
        return Parameters(chain, crowd, words, tuple(texts), penalty)

    def pseudo(self) -> float:
        """Return the pseudo-count of a first state or a move: that of a label, shared by the levels."""
        return self.settings.transition_prior / self.H

    def move_counts(self, counts: ChainCounts) -> tuple[Floats, Floats]:
        """Return the counts of first states and moves; without a Markov chain every row is the same."""
        if self.settings.markov:
            return counts.starts, counts.moves
        total = counts.starts + counts.moves.sum(axis=0)
        return total, np.broadcast_to(total, counts.moves.shape)

    def _chain(self, counts: ChainCounts) -> tuple[Chain, float]:
        starts, moves = self.move_counts(counts)
        if not self.settings.markov:
            alpha = starts + self.pseudo()
            weight = np.exp(expected_log(alpha))
            chain = Chain(weight, np.tile(weight, (self.S, 1)), self.rules.end)
            return chain, dirichlet_kl(alpha, np.full_like(alpha, self.pseudo()))
        chain = Chain(np.zeros(self.S), np.zeros((self.S, self.S)), self.rules.end)
        kl = 0.0
        rows = [(chain.start, self.rules.start, starts), *zip(chain.move, self.rules.move, moves)]
        for row, may, n in rows:
            ok = may > 0
            alpha = n[ok] + self.pseudo()
            row[ok] = np.exp(expected_log(alpha))
            kl += dirichlet_kl(alpha, np.full_like(alpha, self.pseudo()))
        return chain, kl

    # --- views ----------------------------------------------------------------------------------------------------

    def sources(self, parameters: Parameters | None) -> Sources:
        """Return the rows with their tables."""
        if parameters is None:
            return ()
        sources = [(self.rows, parameters.crowd)]
        if self.words is not None and parameters.words is not None:
            sources.append((self.words, np.tile(parameters.words, (1, self.H))))
        return sources

    def evidence(self, parameters: Parameters | None, texts: Sequence[Text]) -> npt.NDArray[np.float32] | None:
        """Return the log evidence of the texts and of what is known, (n_tokens, S), or None."""
        total: npt.NDArray[np.float32] | None = None
        if parameters is not None and texts and parameters.texts:
            each = (times(text.proba, np.ascontiguousarray(table.T)) for text, table in zip(texts, parameters.texts))
            total = np.tile(np.asarray(sum(each), dtype=np.float32), (1, self.H))
        known = self.votes.known
        if known is not None:
            total = np.zeros((self.votes.n_tokens, self.S), np.float32) if total is None else total
            total[known.token] = np.where(np.tile(known.allowed, (1, self.H)), total[known.token], -np.inf)
        return total

    def label_proba(self, proba: Floats) -> Floats:
        """Sum the states' probabilities over the levels."""
        if self.H == 1:
            return proba
        return np.asarray(proba.reshape(len(proba), self.H, self.T).sum(axis=1))

    def decode(self, labels: Floats) -> npt.NDArray[np.int16]:
        """Return the legal path with the most tokens expected to be right, from labels' probabilities."""
        if self.votes.known is not None:
            labels = labels.copy()
            labels[self.votes.known.token] = np.where(self.votes.known.allowed, labels[self.votes.known.token], -np.inf)
        return best_paths(self.votes.offsets, self.label_rules, (), self.n_threads, labels)

    def confusion_counts(self, crowd: Floats) -> Floats:
        """Return expected counts (annotator, true, given) from those of the rows."""
        T, L = self.T, self.votes.n_annotators
        labels = crowd.reshape(len(crowd), self.H, T).sum(axis=1)
        flat = np.zeros((L * T, T))
        np.add.at(flat, self.annotator * T + self.given, labels)
        return np.ascontiguousarray(flat.reshape(L, T, T).transpose(0, 2, 1))

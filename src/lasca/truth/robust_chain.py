"""One chain model of the robust average: hidden states, annotators whose habits are learned together, words, texts.

States are labels, or labels at two levels of difficulty (state h·T + t); they form a Markov chain within the rules of
the tag scheme. As in `chain`, annotators have rows Ψ^l_{b, h, t} (b: the label they gave before, with memory),
words ρ_t, texts (taggers, soft annotators) a confusion; variational Bayes on all of them. What is different, and why:

- *Learned priors* (where the structure has them). Ψ^l ~ Dir(own · base + s m): m is the mean of all annotators' rows,
  s the concentration that explains how far annotators differ (maximum likelihood, Minka's fixed point). What a crowd
  has in common – how much it misses – is learned from the crowd, not from pseudo-counts that suit one corpus. As far
  as votes do not meet (`meet`: the share of votes on tokens that have two at least) nothing can be learned so, and
  the base speaks. It also does where an annotator has more than some thousand marks: their own votes then say who they
  are, a common prior adds little, and without an anchor the model drifts.
- *Guards* (see `guards`): silence, unanimity, rates.
- *Weights.* A vote has a weight below one where the annotator's family (see `families`) voted on the token too.

The weights that hold the rates move between iterations, so the bound of a run rises only as long as they rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import psi

from lasca.engine import chunks, run_ordered, run_summed
from lasca.errors import ModelError
from lasca.kernels import lattice
from lasca.kernels import rows as kernels
from lasca.kernels.products import crossed, times
from lasca.kernels.special import dirichlet_kl, expected_log
from lasca.schemes import transitions
from lasca.truth.annotator_models import FORBIDDEN, confusion_prior, memory_prior, scheme_rules
from lasca.truth.evidence import (
    CHUNK,
    Floats,
    add_evidence,
    annotation_rows,
    context_borders,
    dirichlet_rows,
    expected_rows,
    memory,
)
from lasca.truth.guards import Crowd, Rates, Silence, ruled_out
from lasca.truth.sequence import Chain
from lasca.truth.starts import trust

__all__ = ["ChainFit", "RobustChain", "Structure"]

STRENGTHS = (1.0, 1000.0)
FIRST_STRENGTH = 10.0
LEAST_PSEUDO = 0.05
EACH = 1300.0
"""Marks of one annotator from which the base speaks beside learned priors (to the fourth power: it is a threshold)."""
TEXT_PRIOR = (11.0, 10.0)
TRANSITION_PRIOR = 1.0


@dataclass(frozen=True)
class Structure:
    """What a member of the average assumes."""

    name: str
    memory: bool
    levels: tuple[tuple[float, float], ...]
    """Base pseudo-counts (correct, wrong) of an annotator's row at each level of difficulty."""
    learned: bool
    """Whether the prior of annotators' rows is learned from all of them; else it is the base."""


@dataclass(frozen=True)
class _Parameters:
    chain: Chain
    crowd: Floats
    words: Floats | None
    texts: tuple[Floats, ...]
    penalty: float


@dataclass(frozen=True)
class ChainFit:
    """Where a member ended: probabilities of labels (n_tokens, T), and how it got there."""

    labels: Floats
    trace: npt.NDArray[np.float64]
    converged: bool
    held: Floats
    """The weight against each kind of marks that holds their rate, in nats; 0: none was needed."""


class RobustChain:
    """One member at work on a crowd."""

    def __init__(self, crowd: Crowd, structure: Structure, texts: Sequence[npt.NDArray[np.float32]] = ()) -> None:
        self.crowd, self.structure, self.texts = crowd, structure, tuple(texts)
        votes, labels = crowd.votes, crowd.corpus.labels
        self.T, self.H = votes.n_labels, len(structure.levels)
        self.S = self.T * self.H
        self.contexts = self.T + 1 if structure.memory else 1
        self.rows = annotation_rows(votes, memory(votes) if structure.memory else None)
        self.by_row_vote = np.empty(len(self.rows.row), np.int64)
        kernels.group_votes(self.rows.row, self.rows.by_row_start, self.by_row_vote)
        rest, self.given = np.divmod(self.rows.code, self.T)
        self.annotator, self.before = np.divmod(rest, self.contexts)
        self.borders = context_borders(rest)
        self.owner = self.before[self.borders[:-1]]
        first, allowed, last = (np.asarray(rule, dtype=float) for rule in transitions(labels))
        self.rules = Chain(np.tile(first, self.H), np.tile(allowed, (self.H, self.H)), np.tile(last, self.H))
        self.base_rows, self.base_totals = self._base(labels)
        seen = 1.0 - 1.0 / (1.0 + (crowd.marks_each / EACH) ** 4)
        self.own = max(0.1, 1.0 - crowd.meet, seen) if structure.learned else 1.0
        self.strength = np.full((self.contexts, self.S), FIRST_STRENGTH)
        self.weight = crowd.weight.copy()
        self.ruled_out = ruled_out(crowd)
        self.silence = Silence(crowd) if crowd.outside >= 0 else None
        self.rates = Rates(crowd) if crowd.outside >= 0 else None
        self.held = np.zeros(0 if self.rates is None else len(self.rates.kinds))

    def _base(self, labels: Sequence[str]) -> tuple[Floats, Floats]:
        """Return the pseudo-counts of rows and of whole contexts: right rather than wrong, within the scheme."""
        more = trust(self.crowd.votes)
        base = np.vstack([confusion_prior(self.T, correct + more, wrong) for correct, wrong in self.structure.levels])
        totals = np.broadcast_to(base.sum(axis=1), (self.contexts, self.S))
        if not self.structure.memory:
            return np.ascontiguousarray(base.T[self.given]), np.asarray(totals[self.owner])
        pair, index = np.unique(self.before * self.T + self.given, return_inverse=True)
        rows = memory_prior(base, labels, *np.divmod(pair, self.T))[np.asarray(index).reshape(-1)]
        _, broken = scheme_rules(labels)
        totals = totals + FORBIDDEN * broken.sum(axis=1)[:, None]
        return rows, np.asarray(totals[self.owner])

    # --- the loop -------------------------------------------------------------------------------------------------

    def fit(self, start: npt.NDArray[np.floating], max_iter: int, tol: float) -> ChainFit:
        """Run from log evidence on labels (n_tokens, T) until the labels' probabilities rest.

        `tol` is how far they may move in all, per expected mark (per token, where there is no O)."""
        out = np.empty((self.crowd.votes.n_tokens, self.S))
        counts, _ = self._expect(None, self._on_states(start), out)
        parameters = self._maximise(counts)
        labels, trace, converged = self._labels(out).copy(), [], False
        for _ in range(max_iter):
            counts, log_sum = self._expect(parameters, None, out)
            trace.append(log_sum - parameters.penalty)
            new = self._labels(out)
            marks = len(new) - (new[:, self.crowd.outside].sum() if self.crowd.outside >= 0 else 0.0)
            moved = float(np.abs(new - labels).sum() / max(1.0, marks))
            labels = new.copy()
            if self.silence is not None:
                self.weight = self.silence.weights(self.rows, parameters.crowd, out)
            if self.rates is not None:
                self.held = self.rates.held(self.held, labels)
            if moved < tol:
                converged = True
                break
            parameters = self._maximise(counts)
        return ChainFit(labels, np.array(trace), converged, self.held)

    def _on_states(self, labels: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """Spread log evidence on labels over levels: a label is the easier the more votes it has."""
        if self.H == 1:
            return labels
        votes = self.crowd.votes
        share = np.zeros((votes.n_tokens, self.T))
        np.add.at(share, (self.crowd.token, votes.label), self.crowd.weight)
        share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-9)
        easy = np.clip(share, 0.05, 0.95)
        return np.tile(labels, (1, 2)) + np.log(np.hstack([easy, np.clip(1 - share, 0.05, 0.95)]))

    def _labels(self, out: Floats) -> Floats:
        return out if self.H == 1 else np.asarray(out.reshape(len(out), self.H, self.T).sum(axis=1))

    # --- steps ----------------------------------------------------------------------------------------------------

    def _expect(
        self, parameters: _Parameters | None, start: npt.NDArray[np.floating] | None, out: Floats
    ) -> tuple[tuple[Floats, ...], float]:
        """Do the E step into `out`; return expected counts (starts, moves, crowd, words, texts …) and the log sum."""
        crowd, votes = self.crowd, self.crowd.votes
        chain = self.rules if parameters is None else parameters.chain
        bias = np.zeros(self.S)
        if self.rates is not None:
            bias = np.tile(self.rates.bias(self.held), self.H)
        words = None if parameters is None or parameters.words is None else np.tile(parameters.words, (1, self.H))

        def work(chunk: tuple[int, int]) -> tuple[float, Floats, Floats]:
            own = votes.offsets[chunk[0] : chunk[1] + 1]
            first, last = int(own[0]), int(own[-1])
            rows = out[first:last]
            rows[:] = bias if start is None else start[first:last]
            if parameters is not None:
                kernels.add_weighted_rows(first, last, votes.start, self.rows.row, self.weight, parameters.crowd, rows)
                if words is not None and crowd.words is not None:
                    add_evidence(first, last, [(crowd.words, words)], rows)
                for text, table in zip(self.texts, parameters.texts):
                    rows += np.tile(times(text[first:last], np.ascontiguousarray(table.T)), (1, self.H))
            self._rule_out(first, last, rows)
            starts, moves = np.zeros(self.S), np.zeros((self.S, self.S))
            log_sum = lattice.marginals(own - first, rows, chain.start, chain.move, chain.end, rows, starts, moves)
            return log_sum, starts, moves

        log_sum, starts, moves = run_summed(work, chunks(votes.offsets, CHUNK), crowd.n_threads)
        if log_sum == -np.inf:
            raise ModelError("the tag scheme leaves a sequence no possible path")
        labels = self._labels(out)
        counted = [starts, moves, self._crowd_counts(out)]
        if crowd.words is not None:
            counted.append(expected_rows(crowd.words, labels, crowd.n_threads))
        counted += [crossed(labels, text) for text in self.texts]
        return tuple(counted), float(log_sum)

    def _rule_out(self, first: int, last: int, rows: Floats) -> None:
        for nats, token, allowed in self.ruled_out:
            part = slice(*np.searchsorted(token, (first, last)).tolist())
            if part.start < part.stop:
                at = token[part] - first
                rows[at] -= np.tile(np.where(allowed[part], 0.0, nats), (1, self.H))

    def _crowd_counts(self, out: Floats) -> Floats:
        counts = np.empty((self.rows.n_rows, self.S))

        def work(chunk: tuple[int, int]) -> None:
            kernels.sum_weighted_by_row(
                *chunk, self.rows.by_row_start, self.rows.by_row, self.by_row_vote, self.weight, out, counts
            )

        run_ordered(work, chunks(self.rows.by_row_start, 4 * CHUNK), self.crowd.n_threads)
        return counts

    def _maximise(self, counts: tuple[Floats, ...]) -> _Parameters:
        starts, moves, crowd, *more = counts
        pseudo = TRANSITION_PRIOR / self.H
        chain = Chain(np.zeros(self.S), np.zeros((self.S, self.S)), self.rules.end)
        penalty = 0.0
        for row, may, n in [(chain.start, self.rules.start, starts), *zip(chain.move, self.rules.move, moves)]:
            ok = may > 0
            alpha = n[ok] + pseudo
            row[ok] = np.exp(expected_log(alpha))
            penalty += dirichlet_kl(alpha, np.full_like(alpha, pseudo))
        table, kl = dirichlet_rows(crowd, *self._pooled(crowd), self.borders)
        penalty += kl
        words = None
        if self.crowd.words is not None:
            words, kl = dirichlet_rows(more.pop(0), self.crowd.word_prior)
            penalty += kl
        texts, prior = [], confusion_prior(self.T, *TEXT_PRIOR)
        for text in more:
            texts.append(expected_log(text + prior))
            penalty += dirichlet_kl(text + prior, prior)
        return _Parameters(chain, table, words, tuple(texts), penalty)

    def _pooled(self, crowd: Floats) -> tuple[Floats, Floats]:
        """Return the prior of rows and contexts: the base's share, and the mean of all annotators as far as it holds.

        The concentration is the fixed point s ← s · Σ m (ψ(n + s m) − ψ(s m)) / Σ (ψ(N + s) − ψ(s)) of Minka (2000),
        three steps at a time.
        """
        if not self.structure.learned:
            return self.base_rows, self.base_totals
        cell, context, n = self.before * self.T + self.given, self.before, self.contexts
        pooled, base = np.zeros((2, n * self.T, self.S))
        np.add.at(pooled, cell, crowd)
        base[cell] = self.base_rows
        totals, base_totals = pooled.reshape(n, self.T, self.S).sum(axis=1), np.ones((n, self.S))
        base_totals[self.owner] = self.base_totals
        mean = (pooled + base)[cell] / (totals + base_totals)[context]
        own = np.add.reduceat(crowd, self.borders[:-1], axis=0)
        for _ in range(3):
            alpha, strength = self.strength[context] * mean, self.strength[self.owner]
            above, below = np.zeros((2, n, self.S))
            np.add.at(above, context, mean * (psi(crowd + alpha) - psi(alpha)))
            np.add.at(below, self.owner, psi(own + strength) - psi(strength))
            self.strength = np.clip(self.strength * (above + 0.01) / (below + 0.01), *STRENGTHS)
        strength = self.crowd.meet * self.strength
        rows = self.own * self.base_rows + strength[context] * mean
        totals = self.own * self.base_totals + strength[self.owner]
        floored = np.maximum(rows, LEAST_PSEUDO)  # E log of less is worth tens of nats: no vote is
        return floored, totals + np.add.reduceat(floored - rows, self.borders[:-1], axis=0)

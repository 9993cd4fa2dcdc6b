"""What an annotator does when t is true: accuracy, spamming, confusion vector, confusion matrix, matrix with memory.

The five annotator models of Simpson & Gurevych (2019), each a source of a chain (see `evidence`): a vote points at the
row of (annotator, label given s) – with memory of (annotator, label before, s) – which holds E log p(s | k) for every
state k. The expected counts of these rows are all a model needs to learn.

    acc    right with probability a_l, else any other label alike; a_l ~ Beta(correct, wrong)
    cv     the same with one probability per true label; a_lt ~ Beta(correct, wrong)
    cm     a confusion matrix; Ψ^l_t ~ Dir(correct on t, wrong shared by the rest)
    spam   knows t with probability a_l, else draws a label from ξ^l; a_l ~ Beta(correct, wrong), ξ^l ~ Dir(wrong / T)
    seq    a confusion matrix for each label the annotator gave before; Ψ^l_{prev, t} as cm

With memory, the first token of a sequence, and one behind a token the annotator did not label, has a context of its
own (the original counts it as O). A label that the tag scheme does not allow behind the label before has `FORBIDDEN` as
pseudo-count: annotators can break the rules, but are not expected to.

A soft vote p is a vote nobody saw: the label s was given with probability p_s, so its evidence is ln Σ_s p_s Ψ_ks and
it counts for each s by p_s Ψ_ks. It has no label before it: with memory soft votes are a context of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.arrays import Bools, Floats, Ints
from lasca.corpus.votes import Block
from lasca.kernels.tables import (
    context_borders,
    crossed,
    dirichlet_kl,
    dirichlet_rows,
    drawn_rows,
    expected_log,
    marginal_rows,
    multinomial_rows,
    times,
)
from lasca.schemes import detect, split_label, transitions
from lasca.truth.evidence import RowCounts, View, labels_before, numbered

__all__ = ["ANNOTATOR_MODELS", "Annotators", "Matrices", "VoteRows", "confusion_prior", "make_annotators"]

FORBIDDEN = 0.01
LEAST = 1e-300


@dataclass(frozen=True)
class SoftGroup:
    """The soft votes of one annotator in a block."""

    row: int
    """The place of (annotator, label 0) among the block's own rows; those of the other labels follow."""
    token: Ints
    proba: Floats


@dataclass(frozen=True)
class VoteView(View):
    """The rows that votes of a block point at."""

    soft: tuple[SoftGroup, ...] = ()


@dataclass(frozen=True)
class VoteRows:
    """The rows that occur in a corpus."""

    code: Ints
    """(annotator · contexts + label before) · n_labels + label given, rising."""
    n_annotators: int
    n_labels: int
    memory: bool
    soft: bool = True
    """Whether soft votes have rows; else they are not looked at."""

    @classmethod
    def of(cls, blocks: Sequence[Block], memory: bool = False, *, soft: bool = True) -> VoteRows:
        """Collect the rows of all blocks."""
        votes = blocks[0].load().votes
        empty = cls(np.zeros(0, np.int64), votes.n_annotators, votes.n_labels, memory, soft)
        found = [numbered(np.concatenate(empty._codes(block.load())[:2]), empty.n_codes)[0] for block in blocks]
        return replace(empty, code=np.unique(np.concatenate(found)))

    def with_code(self, code: Ints) -> VoteRows:
        """Return these rows and others."""
        return replace(self, code=np.union1d(self.code, code))

    def forgetful(self) -> VoteRows:
        """Return the rows of the same votes without memory."""
        annotator, _, given = self.parts
        return replace(self, code=np.unique(annotator * self.n_labels + given), memory=False)

    def __len__(self) -> int:
        return len(self.code)

    @property
    def contexts(self) -> int:
        """How many labels before there are: with memory also none (n_labels), and none that counts (soft votes)."""
        return self.n_labels + 2 if self.memory else 1

    @property
    def n_codes(self) -> int:
        """One more than the largest code there may be."""
        return self.n_annotators * self.contexts * self.n_labels

    @cached_property
    def parts(self) -> tuple[Ints, Ints, Ints]:
        """The annotator, the label before and the label given of each row."""
        rest, given = np.divmod(self.code, self.n_labels)
        annotator, before = np.divmod(rest, self.contexts)
        return annotator, before, given

    @cached_property
    def borders(self) -> Ints:
        """Where the rows of each pair (annotator, label before) begin, and the end."""
        return context_borders(self.code // self.n_labels)

    def _codes(self, block: Block) -> tuple[Ints, Ints, Ints]:
        """Return the codes of the hard votes, those of the soft annotators (all labels of each), and who these are."""
        votes, T = block.votes, self.n_labels
        code = votes.annotator[block.hard].astype(np.int64)
        if self.memory:
            code *= self.contexts
            code += labels_before(block)
        code *= T
        code += votes.label[block.hard]
        soft = np.zeros(0, np.int64)
        if block.soft is not None and self.soft:
            soft = np.unique(block.soft.annotator).astype(np.int64)
        first = (soft * self.contexts + self.contexts - 1) * T
        return code, (first[:, None] + np.arange(T)).ravel(), soft

    def view(self, block: Block) -> VoteView:
        """Find the rows of a block."""
        soft, (hard, extra, who) = block.soft, self._codes(block)
        own, row = numbered(np.concatenate((hard, extra)), self.n_codes)
        groups = []
        if soft is not None and self.soft:
            proba = soft.proba.astype(np.float64)
            proba /= proba.sum(axis=1, keepdims=True)
            for k, a in enumerate(who):
                mine = soft.annotator == a
                groups.append(SoftGroup(int(row[len(hard) + k * self.n_labels]), soft.token[mine], proba[mine]))
        return VoteView(block.start, row[: len(hard)], np.searchsorted(self.code, own), soft=tuple(groups))


@dataclass(frozen=True)
class Annotators(ABC):
    """Annotators as a source: a table of rows that learns from expected counts."""

    rows: VoteRows
    shows: Ints
    """Which label each state of the chain shows as: the label an annotator who is right gives."""
    correct: float
    wrong: float

    def look(self, block: Block) -> VoteView:
        """Find the rows of a block."""
        return self.rows.view(block)

    def evidence(self, table: Any, view: VoteView, out: Floats) -> None:
        """Add the rows of the votes, and what soft votes are worth."""
        own = self.logs(table)[view.own]
        view.add(own, out)
        for group in view.soft:
            psi = np.exp(own[group.row : group.row + self.rows.n_labels])
            out[group.token] += np.log(np.maximum(times(group.proba, psi), LEAST))

    def logs(self, table: Any) -> Floats:
        """Return E log p(given | state) of all rows: the table itself, if it has nothing else."""
        logs: Floats = table
        return logs

    def expected(self, table: Any, view: VoteView, proba: Floats) -> RowCounts:
        """Count votes by state, soft votes by what they may have been."""
        counts = view.count(proba)
        for group in view.soft:
            mine, q = slice(group.row, group.row + self.rows.n_labels), proba[group.token]
            if table is None:
                counts[mine] += crossed(group.proba, q)
            else:
                psi = np.exp(self.logs(table)[view.own[mine]])
                counts[mine] += psi * crossed(group.proba, q / np.maximum(times(group.proba, psi), LEAST))
        return RowCounts(len(self.rows), view.own, counts)

    def update(self, counts: RowCounts, table: Any) -> tuple[Any, float]:
        """Return the table of E log p(given | state) after these counts, and KL(q || p)."""
        return self.learn(counts.table(), table)

    @abstractmethod
    def learn(self, counts: Floats, table: Any) -> tuple[Any, float]:
        """Do what `update` says; `table` is the one the counts were made with, None before the first E step."""

    def counts(self, counts: Floats) -> Floats:
        """Return expected counts (annotator, true, given), whatever was given before."""
        A, T = self.rows.n_annotators, self.rows.n_labels
        annotator, _, given = self.rows.parts
        flat = np.zeros((A * T, T))
        for k, label in enumerate(self.shows):
            flat[:, label] += np.bincount(annotator * T + given, counts[:, k], A * T)
        return flat.reshape(A, T, T).transpose(0, 2, 1)

    def confusion(self, counts: Floats) -> Floats:
        """Return (annotator, true, given): the posterior mean confusion, whatever was given before."""
        sums = self.counts(counts) + confusion_prior(self.rows.n_labels, self.correct, self.wrong)
        return np.asarray(sums / sums.sum(axis=2, keepdims=True))

    def _dense(self, counts: Floats) -> Floats:
        """Return the rows as (annotator, given, state), 0 where there are none."""
        dense = np.zeros((self.rows.n_codes, len(self.shows)))
        dense[self.rows.code] = counts
        return dense.reshape(self.rows.n_annotators, self.rows.n_labels, len(self.shows))

    def _sparse(self, dense: Floats) -> Floats:
        return np.ascontiguousarray(dense.reshape(-1, len(self.shows))[self.rows.code])

    def _right(self, dense: Floats) -> Floats:
        """Return the entries of right labels, (annotator, state)."""
        return dense[:, self.shows, np.arange(len(self.shows))]

    def _is_right(self) -> Bools:
        """Return whether a label given (row) is right in a state (column)."""
        return np.asarray(np.arange(self.rows.n_labels)[:, None] == self.shows[None, :])


def confusion_prior(n_labels: int, correct: float, wrong: float) -> Floats:
    """Return the pseudo-counts (true, given): `correct` on the diagonal, `wrong` shared by the rest of the row."""
    prior = np.full((n_labels, n_labels), wrong / max(n_labels - 1, 1))
    np.fill_diagonal(prior, correct)
    return prior


class Accuracy(Annotators):
    """One probability of being right per annotator."""

    def learn(self, counts: Floats, table: Floats | None) -> tuple[Floats, float]:
        """Count right and wrong labels."""
        dense = self._dense(counts)
        right = self._right(dense).sum(axis=1, keepdims=True)
        return self._beta(right, dense.sum(axis=(1, 2))[:, None] - right)

    def _beta(self, right: Floats, wrong: Floats) -> tuple[Floats, float]:
        """Take counts as (annotator, state), or (annotator, 1) for all states alike."""
        alpha = np.stack([right + self.correct, np.maximum(wrong, 0) + self.wrong], axis=-1)
        log = expected_log(alpha)
        log[..., 1] -= np.log(max(self.rows.n_labels - 1, 1))
        dense = np.where(self._is_right()[None], log[:, None, :, 0], log[:, None, :, 1])
        return self._sparse(dense), dirichlet_kl(alpha, [self.correct, self.wrong])


class ConfusionVector(Accuracy):
    """One probability of being right per annotator and true label."""

    def learn(self, counts: Floats, table: Floats | None) -> tuple[Floats, float]:
        """Count right and wrong labels by true label."""
        dense = self._dense(counts)
        right = self._right(dense)
        return self._beta(right, dense.sum(axis=1) - right)


class Spam(Annotators):
    """MACE's annotator: knows the label, or draws one from an own distribution without looking."""

    def learn(self, counts: Floats, table: Floats | None) -> tuple[Floats, float]:
        """Share the annotations that are right between knowing and luck, as the current table has it."""
        T, is_right = self.rows.n_labels, self._is_right()
        if T == 1:  # nothing to know or to guess
            return np.zeros_like(counts), 0.0
        dense = self._dense(counts)
        knows = (dense * is_right).sum(axis=2) * (1 - self._luck(table))
        drawn = np.maximum(dense.sum(axis=2) - knows, 0)
        alpha = np.stack([knows.sum(axis=1) + self.correct, drawn.sum(axis=1) + self.wrong], axis=-1)
        strategy = drawn + self.wrong / T
        log = expected_log(alpha)
        guess = log[:, 1:] + expected_log(strategy)
        both = np.logaddexp(log[:, :1], guess)
        kl = dirichlet_kl(alpha, [self.correct, self.wrong]) + dirichlet_kl(strategy, np.full(T, self.wrong / T))
        return self._sparse(np.where(is_right[None], both[:, :, None], guess[:, :, None])), kl

    def _luck(self, table: Floats | None) -> Floats:
        """Return the probability that a right label was a guess, (annotator, label)."""
        T = self.rows.n_labels
        if table is None:
            return np.full((self.rows.n_annotators, T), self.wrong / (self.wrong + T * self.correct))
        dense, is_right, label = self._dense(table), self._is_right(), np.arange(T)
        right, wrong = is_right.argmax(axis=1), (~is_right).argmax(axis=1)  # a state in which it is right, one not
        return np.exp(dense[:, label, wrong] - dense[:, label, right])


@dataclass(frozen=True)
class Matrices(Annotators):
    """A confusion matrix per annotator, with memory one for each label the annotator gave before."""

    prior: Floats
    """Pseudo-counts of the rows that occur, (n_rows, S)."""
    totals: Floats
    """Pseudo-counts of whole contexts, (n_contexts, S), rows that never occur included."""
    variational: bool = True
    """Whether rows have posteriors under Dir(prior), or are at their mode under Dir(1 + prior)."""

    @classmethod
    def of(
        cls,
        rows: VoteRows,
        shows: Ints,
        labels: Sequence[str],
        levels: Sequence[tuple[float, float]],
        variational: bool = True,
    ) -> Matrices:
        """Expect annotators to be right rather than wrong, within the scheme.

        `levels` has pseudo-counts (correct, wrong) for each level of difficulty: states come level by level.
        """
        T = rows.n_labels
        base = np.vstack(
            [confusion_prior(T, *level)[own] for level, own in zip(levels, shows.reshape(len(levels), -1))]
        )
        _, before, given = rows.parts
        prior = np.ascontiguousarray(base.T[given])
        totals = np.broadcast_to(base.sum(axis=1), (rows.contexts, len(shows)))
        if rows.memory:
            seen = np.flatnonzero(before <= T)
            pair, index = np.unique(before[seen] * T + given[seen], return_inverse=True)
            prior[seen] = memory_prior(base, labels, *np.divmod(pair, T))[np.asarray(index).reshape(-1)]
            _, broken = scheme_rules(labels)
            totals = totals + FORBIDDEN * np.append(broken.sum(axis=1), 0)[:, None]
        own = np.asarray(totals[before[rows.borders[:-1]]])
        return cls(rows, shows, *levels[0], prior, own, variational)

    def learn(self, counts: Floats, table: Any) -> tuple[Any, float]:
        """Add the counts to the prior."""
        made = dirichlet_rows if self.variational else multinomial_rows
        return made(counts, self.prior, self.totals, self.rows.borders)

    def means(self, counts: Floats) -> Floats:
        """Return the posterior mean of the rows."""
        borders = self.rows.borders
        totals = np.add.reduceat(counts, borders[:-1], axis=0) + self.totals
        return np.asarray((counts + self.prior) / np.repeat(totals, np.diff(borders), axis=0))

    def clustered(
        self, counts: Floats, assignment: npt.NDArray[np.integer], n_clusters: int, strength: float
    ) -> Matrices:
        """Add `strength` pseudo-counts to the prior, spread as the annotator's whole cluster does it.

        The cluster's mean starts from the prior, so that it leans to be right as every annotator does.
        """
        if strength == 0:
            return self
        T, S, n = self.rows.n_labels, len(self.shows), self.rows.contexts * self.rows.n_labels
        annotator, before, given = self.rows.parts
        cell = assignment[annotator] * n + before * T + given
        pooled = np.zeros((n_clusters * n, S))
        np.add.at(pooled, cell, counts)
        member = np.zeros_like(pooled)
        member[cell] = self.prior
        context = cell // T
        totals = pooled.reshape(-1, T, S).sum(axis=1)
        own = np.zeros_like(totals)
        own[context[self.rows.borders[:-1]]] = self.totals
        mean = (pooled[cell] + member[cell]) / (totals[context] + own[context])
        return replace(self, prior=self.prior + strength * mean, totals=self.totals + strength)

    def draw(self, counts: RowCounts, rng: np.random.Generator) -> Floats:
        """Draw the rows."""
        return drawn_rows(counts.table(), self.prior, rng, self.totals, self.rows.borders)

    def log_marginal(self, counts: RowCounts) -> float:
        """Return the log probability of the votes, the rows integrated out."""
        return marginal_rows(counts.table(), self.prior, self.totals, self.rows.borders)


def scheme_rules(labels: Sequence[str]) -> tuple[Ints, Bools]:
    """Return which label is given instead of one that breaks the scheme, and which labels do: both (before, given).

    The last row stands for no label before. Outside a span a new one of the same type is begun instead; inside one it
    goes on with its own type. Where there is no such label, -1.
    """
    T = len(labels)
    first, allowed, _ = transitions(labels)
    allowed = np.vstack([allowed, first])
    instead = np.full((T + 1, T), -1)
    if detect(labels) is None:
        return instead, ~allowed
    part = [split_label(label) for label in labels]
    for p, s in zip(*np.nonzero(~allowed)):
        type_ = part[s][1]
        inside = part[p][1] if p < T and part[p][0] in _OPEN else None
        for u in range(T):
            letter, own = part[u]
            if allowed[p, u] and letter and (own == type_ if inside is None else (letter, own) == (part[s][0], inside)):
                instead[p, s] = u
                break
    return instead, ~allowed


_OPEN = ("B", "I", "M")


def memory_prior(base: Floats, labels: Sequence[str], before: Ints, given: Ints) -> Floats:
    """Return the pseudo-counts of pairs (before, given) for every true label: those of `base`, within the scheme."""
    instead, broken = scheme_rules(labels)
    prior = base.T[given].copy()
    for k, (p, s) in enumerate(zip(before, given)):
        if broken[p, s]:
            prior[k] = FORBIDDEN
        for other in np.flatnonzero(instead[p] == s):
            prior[k] += base[:, other]
    return prior


ANNOTATOR_MODELS = ("acc", "spam", "cv", "cm", "seq")


def make_annotators(
    name: str, rows: VoteRows, shows: Ints, labels: Sequence[str], correct: float, wrong: float
) -> Annotators:
    """Return an annotator model by its name."""
    if name in ("cm", "seq"):
        return Matrices.of(rows, shows, labels, ((correct, wrong),))
    models: dict[str, type[Annotators]] = {"acc": Accuracy, "spam": Spam, "cv": ConfusionVector}
    return models[name](rows, shows, correct, wrong)

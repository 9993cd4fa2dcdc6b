"""One member of the robust average: the chain learner with guards, and annotators whose habits are learned together.

States are labels, or labels at two levels of difficulty. As in `chain`, annotators have rows Ψ^l_{b, h, t} (b: the
label they gave before, with memory), words ρ_t, texts (taggers, soft annotators) a confusion; variational Bayes on all
of them. What is different, and why:

- *Learned priors* (where the structure has them). Ψ^l ~ Dir(own · base + s m): m is the mean of all annotators' rows,
  s the concentration that explains how far annotators differ (maximum likelihood, Minka's fixed point). What a crowd
  has in common – how much it misses – is learned from the crowd, not from pseudo-counts that suit one corpus. As far
  as votes do not meet (`meet`: the share of votes on tokens that have two at least) nothing can be learned so, and
  the base speaks. It also does where an annotator has more than some thousand marks: their own votes then say who they
  are, a common prior adds little, and without an anchor the model drifts.
- *Habits that are not learned to the end.* Where marks are rare, an annotator's rows learn from no more than
  `MOST_HEARD` votes: the counts of who gave more are scaled down, and the base keeps its part. With ever more votes
  rows fit ever better what is not so – that people miss things independently of each other –, and one mark beside
  five silent people becomes a span that five missed.
- *Guards* (see `guards`): silence, unanimity, rates.
- *Weights.* A vote has a weight below one where the annotator's family (see `families`) voted on the token too, and
  where they may not have looked.

The weights that hold the rates move between iterations, so the bound of a run rises only as long as they rest: a run
ends when the labels' probabilities rest. These are kept from visit to visit, and the last ones are the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
from scipy.special import psi

from lasca.corpus.votes import Block
from lasca.truth.annotator_models import Matrices, VoteRows
from lasca.truth.borders import beyond
from lasca.truth.chain import ChainLearner, ChainState, Local, Start, StateSpace
from lasca.truth.evidence import Floats, RowCounts, Source, dirichlet_rows
from lasca.truth.guards import FIRST_ASLEEP, Crowd, Pairing, Rates, asleep, nothing, ruled_out, sleep_rates

__all__ = ["LearnedMatrices", "Member", "MemberState", "Structure", "member"]

STRENGTHS = (1.0, 1000.0)
FIRST_STRENGTH = 10.0
LEAST_PSEUDO = 0.05
EACH = 1300.0
"""Marks of one annotator from which the base speaks beside learned priors (to the fourth power: it is a threshold)."""
MOST_HEARD = 5000.0
"""Votes of one annotator from which rows learn at most."""
HARDLY = 0.75
"""Who did not look in more than this share of their sequences has no say in how much is marked."""
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


# --- annotators with learned priors -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Learned:
    """The table of annotators whose prior is learned: logs of their rows, and the concentrations of the prior."""

    logs: Floats
    strength: Floats
    """(label before, state)."""


@dataclass(frozen=True)
class LearnedMatrices(Matrices):
    """Confusion matrices whose prior is the mean of all annotators, as far as it holds, beside a share of the base."""

    own: float = 0.1
    """The share of the base."""
    meet: float = 1.0

    def logs(self, table: Learned) -> Floats:
        """Return the logs of the rows."""
        return table.logs

    def learn(self, counts: Floats, table: Any) -> tuple[Learned, float]:
        """Learn the prior, then add the counts to it."""
        strength = np.full((self.rows.contexts, len(self.shows)), FIRST_STRENGTH) if table is None else table.strength
        rows, totals, strength = self.pooled(counts, strength)
        logs, penalty = dirichlet_rows(counts, rows, totals, self.rows.borders)
        return Learned(logs, strength), penalty

    def pooled(self, counts: Floats, strength: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the prior of rows and contexts, and its concentrations.

        These are the fixed point s ← s · Σ m (ψ(n + s m) − ψ(s m)) / Σ (ψ(N + s) − ψ(s)) of Minka (2000), three steps
        at a time.
        """
        T, S, n, borders = self.rows.n_labels, len(self.shows), self.rows.contexts, self.rows.borders
        _, context, given = self.rows.parts
        owner, cell = context[borders[:-1]], context * T + given
        pooled, base = np.zeros((2, n * T, S))
        np.add.at(pooled, cell, counts)
        base[cell] = self.prior
        totals, base_totals = pooled.reshape(n, T, S).sum(axis=1), np.ones((n, S))
        base_totals[owner] = self.totals
        mean = (pooled + base)[cell] / (totals + base_totals)[context]
        own = np.add.reduceat(counts, borders[:-1], axis=0)
        for _ in range(3):
            alpha, each = strength[context] * mean, strength[owner]
            above, below = np.zeros((2, n, S))
            np.add.at(above, context, mean * (psi(counts + alpha) - psi(alpha)))
            np.add.at(below, owner, psi(own + each) - psi(each))
            strength = np.clip(strength * (above + 0.01) / (below + 0.01), *STRENGTHS)
        held = self.meet * strength
        rows, sums = self.own * self.prior + held[context] * mean, self.own * self.totals + held[owner]
        floored = np.maximum(rows, LEAST_PSEUDO)  # E log of less is worth tens of nats: no vote is
        return floored, sums + np.add.reduceat(floored - rows, borders[:-1], axis=0), strength


# --- the learner ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MemberState(ChainState):
    """The state of a chain, and of the guards."""

    asleep: Floats = field(kw_only=True)
    """How often each annotator does not look."""
    held: Floats = field(kw_only=True)
    """The weight against each kind of marks that holds their rate, in nats; 0: none was needed."""
    moved: float = np.inf
    """How far the labels' probabilities moved in the last visit, per expected mark (per token, without a label O)."""


@dataclass(frozen=True)
class Seen(Local):
    """What a block says, and its guards."""

    weight: Floats
    """Of each vote, by families."""
    pairing: Pairing


@dataclass(frozen=True)
class Memory:
    """What is kept of a block from visit to visit."""

    labels: npt.NDArray[np.float32]
    """The labels' probabilities."""
    asleep: Floats
    """The probability of each pair of `Pairing` that the annotator did not look."""
    seen: Seen | None = field(default=None, metadata={"kept": False})
    """Made again from the block where it is not there."""


@dataclass(frozen=True)
class Member(ChainLearner):
    """A chain learner with guards."""

    crowd: Crowd = field(kw_only=True)
    tol: float = 1e-3
    """A run ends when probabilities move by less than this."""
    free: bool = False
    """Whether the text may find marks where people who agree mark nothing."""
    remembers: ClassVar[bool] = True

    @cached_property
    def rates(self) -> Rates | None:
        """The guard of rates, where there is a label O."""
        return Rates(self.crowd) if self.crowd.outside >= 0 else None

    @cached_property
    def heard(self) -> Floats | None:
        """The share of each row's counts from which it learns; None, all of them, where there is no label O."""
        share = np.minimum(1.0, MOST_HEARD / np.maximum(self.crowd.given, 1.0))
        return share[self.annotators.rows.parts[0]] if self.crowd.outside >= 0 and share.min() < 1 else None

    @cached_property
    def unaware(self) -> npt.NDArray[np.bool_] | None:
        """(row, state): whether the annotator gives no labels of that kind; None: all give all."""
        knows = self.crowd.knows
        return None if knows.all() else ~knows[self.annotators.rows.parts[0]][:, self.space.shows]

    def tied(self, logs: Floats) -> Floats:
        """Return the rows of annotators: where they are unaware a label is the same to them as none."""
        none = np.arange(len(self.space.shows)) // self.space.n_labels * self.space.n_labels + self.crowd.outside
        return logs if self.unaware is None else np.where(self.unaware, logs[:, none], logs)

    def start(self, summary: tuple[Any, ...], rng: np.random.Generator | None) -> MemberState:
        """Begin at the start, with nobody asleep and nothing held."""
        first = super().start(summary, rng)
        A, K = self.crowd.own.shape
        return MemberState(**vars(first), asleep=np.full(A, FIRST_ASLEEP), held=np.zeros(K))

    def look(self, block: Block) -> Seen:
        """Ask every source for what it says of a block, and every guard."""
        weight = self.crowd.families.weights(block)
        views = tuple(source.look(block) for source in self.sources)
        pairing = Pairing.of(block, self.crowd.outside)
        none = block.votes.label[block.hard] == self.crowd.outside
        voice = np.where(none & self.crowd.families.partial[block.votes.annotator[block.hard]], 0.0, weight)
        out = ruled_out(block, voice, self.space, self.crowd.outside, self.free)
        if self.crowd.goes_on is not None:
            out += (nothing(beyond(block, self.crowd.goes_on, self.crowd.labels), self.space, self.crowd.outside),)
        return Seen(block.offsets, views, out, weight, pairing)

    def visit(self, state: ChainState, block: Block, local: Any) -> tuple[tuple[Any, ...], Any]:
        """Return what a chain does; how far labels moved, and the marks; who slept; the sums of the rates."""
        assert isinstance(state, MemberState)
        seen = self.look(block) if local is None or local.seen is None else local.seen
        slept = np.zeros(len(seen.pairing.owner)) if local is None else local.asleep
        crowd, *others = seen.views
        weight = (1.0 - slept)[seen.pairing.pair] * seen.weight
        weighed = replace(seen, views=(replace(crowd, weight=weight), *others))
        rows = self.evidence(state, block, weighed)
        counted = self.counted(state, weighed, rows)
        proba = self.space.by_label(rows)
        labels, A = proba.astype(np.float32), len(state.asleep)
        marks = float(len(proba) - (proba[:, self.crowd.outside].sum() if self.crowd.outside >= 0 else 0.0))
        moved, said, other, found = np.inf, *np.zeros((2, *self.crowd.own.shape)), np.zeros(len(self.crowd.agreed))
        if local is not None:
            moved = float(np.abs(labels - local.labels).sum(dtype=np.float64))
            if self.rates is not None:
                table = self.annotators.logs(state.tables[0])[crowd.own]
                slept = asleep(seen.pairing, crowd, table, rows, seen.weight, state.asleep)
                said, other, found = self.rates.sums(block, seen.weight, proba)
        guards = (moved, marks, np.bincount(seen.pairing.owner, slept, A).astype(np.float64), said, other, found)
        return (*counted, *guards), Memory(labels, slept, seen)

    @property
    def annotators(self) -> Matrices:
        """The annotators: the first source."""
        first = self.sources[0]
        assert isinstance(first, Matrices)
        return first

    def evidence(self, state: ChainState, block: Block, local: Local) -> Floats:
        """Return the log evidence on the states of each token, with what holds the rates."""
        rows = super().evidence(state, block, local)
        if state.start is None and self.rates is not None:
            assert isinstance(state, MemberState)
            rows += self.rates.bias(state.held)[self.space.shows]
        return rows

    def update(self, state: ChainState, statistics: tuple[Any, ...]) -> tuple[MemberState, float]:
        """Do what a chain does, and let the guards follow."""
        assert isinstance(state, MemberState)
        *counted, moved, marks, slept, said, other, found = statistics
        own = counted[3]  # after the log sum, first states and moves
        if self.heard is not None:
            own = RowCounts(own.n_rows, None, own.table() * self.heard[:, None])
        if self.unaware is not None:
            own = RowCounts(own.n_rows, None, np.where(self.unaware, 0.0, own.table()))
        counted[3] = own
        new, objective = super().update(state, tuple(counted))
        if self.unaware is not None:
            first, *rest = new.tables
            logs = self.tied(self.annotators.logs(first))
            new = replace(new, tables=(replace(first, logs=logs) if isinstance(first, Learned) else logs, *rest))
        sleeps, held = state.asleep, state.held
        if state.start is None and self.rates is not None and np.isfinite(moved):  # else it is the first visit
            sleeps = sleep_rates(slept, self.crowd.sequences)
            held = self.rates.held(held, said, other, found, sleeps < HARDLY)
        return MemberState(**vars(new), asleep=sleeps, held=held, moved=moved / max(1.0, marks)), objective

    def rests(self, state: MemberState) -> bool:
        """Say whether a run is at its end."""
        return state.moved < self.tol

    def describe(self, state: ChainState, block: Block, local: Any, out: Any) -> tuple[None, tuple[Any, ...]]:
        """Write the labels' probabilities of the last visit to `out`."""
        out[:] = local.labels
        return None, ()


def member(
    structure: Structure,
    crowd: Crowd,
    rows: VoteRows,
    others: Sequence[Source],
    start: Start,
    *,
    trust: float,
    tol: float,
    free: bool = False,
) -> Member:
    """Return the member of a structure; `others` are its sources beside the annotators, of one level."""
    H = len(structure.levels)
    levels = [(correct + trust, wrong) for correct, wrong in structure.levels]
    space = StateSpace.of(crowd.labels, levels=H)
    annotators = Matrices.of(rows if structure.memory else rows.forgetful(), space.shows, crowd.labels, levels)
    if structure.learned:
        seen = 1.0 - 1.0 / (1.0 + (crowd.marks_each / EACH) ** 4)
        annotators = LearnedMatrices(**vars(annotators), own=max(0.1, 1.0 - crowd.meet, seen), meet=crowd.meet)
    sources = (annotators, *(replace(cast(Any, source), levels=H) for source in others))
    return Member(space, sources, start, TRANSITION_PRIOR, crowd=crowd, tol=tol, free=free)

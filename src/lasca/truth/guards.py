"""The guards of the robust average: who looked, who is believed, and how much may be marked.

- *Silence.* Somebody who marked nothing in a sequence has looked and found nothing, or has not looked: a mixture, with
  a rate per annotator. Silent votes count by the probability that they looked.
- *Unanimity.* Where three people or more agree, they are believed: "everybody missed it" is the cheapest explanation
  of anything, and a model that may use it drifts. A text may find marks all the same where hidden votes bear it out
  (`overruling`).
- *Rates.* How much is marked, in all and of each type, stays within what annotators support: the upper quartile of the
  ratio (marks of an annotator) / (expected marks on the same tokens) may not fall below `least_ratio`; a weight against
  the kind of mark holds it there. No source supports a rate by itself: the family or annotator with the most votes of
  those above the quartile is left out of it. With two annotators it is the median, and 1: who of two misses much cannot
  be told.
  Who hardly ever looks has no say. Where people miss at random (`misses`) what two others mark says how much they do.
  Each type is held by itself: a source that sees one type everywhere (a language model that takes every number for a
  name) is outvoted there, and not believed because it marks little of the others. Who marks another type on the tokens
  of one has seen something there, and counts as having marked it. Who never marks a type while others do has a scheme
  without it and no say there.
  From below it is held by what most voices mark: `LEAST_AGREED` of that is marked at least. Where borders differ and
  much is invented, "nobody marks anything, everybody dreams" becomes the cheapest explanation for annotators with
  memory: noisy language models lose all their spans.

Every guard is a few pure functions on a block and sums over blocks; nothing of tokens is kept but the probability that
a silent annotator slept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.arrays import Ints, readonly
from lasca.corpus.votes import Block
from lasca.kernels import rows as kernels
from lasca.schemes import OUTSIDE, detect, split_label
from lasca.truth.chain import RuledOut, StateSpace
from lasca.truth.evidence import Floats, View, labels_before
from lasca.truth.families import Families

__all__ = [
    "Crowd", "Look", "Pairing", "Rates", "asleep", "finds", "kind_of", "kinds_of_marks", "nothing", "ruled_out",
    "run_begins", "sleep_rates",
]  # fmt: skip

BELIEVED, KNOWN = 30.0, 250.0
"""By how many nats labels are ruled out: by unanimous people, and by what is known."""
UNANIMOUS = 3
"""How many who agree are believed."""
FIRST_ASLEEP, LOOKED = 0.1, (0.5, 5.0)
"""The rate of sequences in which an annotator did not look, at first; pseudo-counts of such, and of all sequences."""
NEVER, EXPECTED = 0.005, 30.0
"""Who gives no more than this share of the marks of a kind that those who give any give in the mean does not look for
it, if that were so many: a dozen names, or six that occur twice. (Of people who know all kinds one gave 4 of 222.)"""
INSTEAD, FEW_ASKED = 0.5, 5.0
"""But who marks more than this share of the tokens that others mark so as something else has another name for it;
pseudo-counts of such tokens."""
QUARTILE = 0.75
"""Of the votes, by own marks per expected mark: whoever stands there may not miss more than `least_ratio` allows."""
TWO = 0.4
"""From which sum of squared shares of the votes on a crowd is two people (a half; a third of three)."""
LEAST_AGREED = 0.75
"""The share of what more than half of the voices mark that is marked at least; chosen among .5, .75 and 1 on simulated
language models (rows `llm-spans*` of the bench, other seeds). Crowds of people are far above it."""
MOST_RAISED = 0.5
"""Nats by which a kind of marks is held up at most: what keeps a model from drifting is little, and votes that speak
against a mark by more are heard. (Three who invent twice as much as is true: span F1 69.5 without it, 72.9 with it.)"""


# --- what all members know ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Crowd:
    """What all members know of a crowd: numbers that add up over blocks, nothing of tokens."""

    labels: tuple[str, ...]
    families: Families
    sequences: Floats
    """In how many sequences each annotator voted."""
    given: Floats
    """The weight of all votes of each annotator."""
    own: Floats
    """(annotator, kind): the weight of their votes for each kind of marks; the first kind are all marks."""
    asked: Floats
    """(annotator, kind): how many of their votes are on tokens that others mark so, and they do not."""
    instead: Floats
    """(annotator, kind): in how many of these they mark something else."""
    agreed: Floats
    """(kind): how many tokens with two voices at least more than half of them mark so."""
    meet: float
    """The share of votes on tokens that have two at least."""
    no_third: float
    """The share of votes on tokens that have two at most."""
    marks: int
    """How many votes are for another label than O; 0 where there is no O."""
    run_length: float
    """How many marks an annotator gives in a row, in the mean."""
    per_token: float
    """How many votes a token with any has."""
    recall: Floats | None = None
    """How often each annotator marks what two others mark, where that is known (`misses`)."""
    together: float = 1.0
    """How far people miss the same things, of what is usual; 0: each misses at random."""
    goes_on: npt.NDArray[np.bool_] | None = None
    """Who marks more of names than most who mark there (`borders`); None: nobody."""

    @property
    def outside(self) -> int:
        """The label O, -1 where there is none."""
        return outside_of(self.labels)

    @property
    def annotators(self) -> float:
        """How many annotators there are, if all did the same; fewer, where few do most."""
        return 1.0 / float(((self.given / self.given.sum()) ** 2).sum())

    @property
    def kind_of(self) -> Ints:
        """The kind of each label: its place in `own`; 0 where there is one type at most."""
        return kind_of(self.labels)

    @cached_property
    def gives(self) -> npt.NDArray[np.bool_]:
        """(annotator, kind): whether they give marks of this kind; some have a scheme of their own, as rules do."""
        gives = np.ones(self.own.shape, np.bool_)
        if self.outside >= 0:
            votes = self.given @ (self.own > 0)
            expected = np.outer(self.given, self.own.sum(axis=0) / np.maximum(votes, 1.0))
            gives[:, 1:] = ((self.own > NEVER * expected) | (expected < EXPECTED))[:, 1:]
        return gives

    @cached_property
    def uses(self) -> npt.NDArray[np.bool_]:
        """(annotator, kind): whether they look for marks of this kind, by this name or another."""
        return np.asarray(self.gives | (self.instead > INSTEAD * (self.asked + FEW_ASKED)))

    @property
    def only_marks(self) -> npt.NDArray[np.bool_]:
        """Say who never says O, and so nothing of how much is marked: rules, or spans without the texts around them."""
        none = self.given - self.own[:, 0]
        expected = self.given * none.sum() / max(1.0, float(self.given @ (none > 0)))
        return np.asarray((none <= NEVER * expected) & (expected >= EXPECTED))

    @property
    def knows(self) -> npt.NDArray[np.bool_]:
        """(annotator, label): whether they look for marks of its kind."""
        return self.by_label(self.uses)

    def by_label(self, kinds: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return of the kinds of labels what a table has of kinds."""
        return np.ascontiguousarray(kinds[:, _kinds(self.labels)[0]])

    @property
    def marks_each(self) -> float:
        """How many marks one annotator gives, in the mean over votes."""
        return self.marks / self.annotators


def outside_of(labels: Sequence[str]) -> int:
    """Return the label O, -1 where there is none."""
    return list(labels).index(OUTSIDE) if OUTSIDE in labels else -1


@dataclass(frozen=True)
class Look:
    """Asks blocks what all members must know."""

    labels: tuple[str, ...]
    families: Families

    def summarise(self, block: Block) -> tuple[float | Floats, ...]:
        """Return what adds up."""
        votes, outside, A = block.votes, outside_of(self.labels), block.votes.n_annotators
        start = votes.start[block.first : block.last + 1]
        annotator, label = votes.annotator[start[0] : start[-1]], votes.label[start[0] : start[-1]]
        weight, n = self.families.weights(block), np.diff(start)
        kind_of, K = _kinds(self.labels)
        cell = annotator * np.int64(K) + kind_of[label]
        own = np.bincount(cell[label != outside], weight[label != outside], A * K).reshape(A, K).astype(np.float64)
        own[:, 0] = own.sum(axis=1)
        token, marked = np.repeat(np.arange(len(block)), n), label != outside
        cell = token[marked] * np.int64(K) + kind_of[label[marked]]
        by_kind = np.bincount(cell, weight[marked], len(block) * K).reshape(-1, K)
        by_kind[:, 0] = by_kind.sum(axis=1)
        asked, instead = _renamed(by_kind, token, annotator, np.where(marked, kind_of[label], -1), A)
        voices = np.bincount(token, weight, len(block))
        agreed = (by_kind > voices[:, None] / 2 + 1e-6)[_several(voices)].sum(axis=0)
        before = labels_before(block)
        begins = marked & ((before == outside) | (before == votes.n_labels))
        return (
            np.bincount(Pairing.of(block, outside).owner, minlength=A).astype(np.float64),
            np.bincount(annotator, weight, A).astype(np.float64),
            own,
            asked,
            instead,
            agreed.astype(np.float64),
            float(n[n > 1].sum()),
            float(n[n < 3].sum()),
            float(len(label)),
            float((n > 0).sum()),
            float(marked.sum()),
            float(begins.sum()),
        )

    def crowd(self, sums: tuple[float | Floats, ...]) -> Crowd:
        """Make of the sums over all blocks what members know."""
        sequences, given, own, asked, instead, agreed, meeting, no_third, votes, tokens, marks, runs = sums
        if outside_of(self.labels) < 0:
            marks = runs = 0.0
        return Crowd(
            self.labels,
            self.families,
            np.asarray(sequences),
            np.asarray(given),
            np.asarray(own),
            np.asarray(asked),
            np.asarray(instead),
            np.asarray(agreed),
            float(meeting) / max(1.0, float(votes)),
            float(no_third) / max(1.0, float(votes)),
            int(marks),
            float(marks) / max(1.0, float(runs)),
            float(votes) / max(1.0, float(tokens)),
        )


def _renamed(
    by_kind: npt.NDArray[Any], token: Ints, annotator: npt.NDArray[Any], kind: Ints, n_annotators: int
) -> tuple[Floats, Floats]:
    """Count, by annotator and kind, votes where others mark that kind, and those of them for another kind.

    `by_kind` has the marks of each token, `kind` that of each vote (-1: O).
    """
    asked, instead = np.zeros((2, n_annotators, by_kind.shape[1]))
    on = np.flatnonzero(by_kind[token, 0] > 0)
    token, annotator, kind = token[on], annotator[on], kind[on]
    for k in range(1, by_kind.shape[1]):
        others = (kind != k) & (by_kind[token, k] > 0)
        asked[:, k] = np.bincount(annotator[others], minlength=n_annotators)
        instead[:, k] = np.bincount(annotator[others & (kind >= 0)], minlength=n_annotators)
    return asked, instead


def _several(voices: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Say on which tokens two voices at least were heard; a family of copies is one."""
    return np.asarray(voices >= 2 - 1e-6)


# --- unanimity ------------------------------------------------------------------------------------------------------


def ruled_out(block: Block, weight: Floats, space: StateSpace, outside: int, free: bool) -> tuple[RuledOut, ...]:
    """Return what is ruled out in a block: by what is known, and by people who agree; `weight`: of each vote.

    Where they agree that there is nothing, they are not believed if the text may overrule them (`free`, see
    `overruling`) and finds a mark.
    """
    token, label = unanimous(block, weight)
    if free:
        stays = (label != outside) | ~finds(block.beside.text[token], outside)
        token, label = token[stays], label[stays]
    others = np.arange(space.n_labels)[:, None] != space.shows[None, :]
    return RuledOut.by_known(block, space, KNOWN), RuledOut(token, label, others, BELIEVED)


def nothing(token: Ints, space: StateSpace, outside: int) -> RuledOut:
    """Return what rules out marks on some tokens."""
    others = np.arange(space.n_labels)[:, None] != space.shows[None, :]
    return RuledOut(token, np.full(len(token), outside, np.int16), others, BELIEVED)


def finds(text: npt.NDArray[np.floating], outside: int) -> npt.NDArray[np.bool_]:
    """Say where a text finds a mark likelier than none; rows of zeros say nothing."""
    return np.asarray(text.sum(axis=1) - text[:, outside] > 0.5)


def run_begins(marked: npt.NDArray[np.bool_], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Say where runs of marks begin; a sequence ends a run."""
    before = np.append(False, marked[:-1])
    before[offsets[:-1]] = False
    return np.asarray(marked & ~before)


def unanimous(block: Block, weight: Floats) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int16]]:
    """Return where enough voices agree – a family is one –, and on which label."""
    token, label, start = block.token, block.votes.label[block.hard], block.start - block.start[0]
    voices = np.bincount(token, weight, len(block))  # none of so many is hidden (`overruling`)
    many = np.flatnonzero(voices >= UNANIMOUS - 1e-6)
    if len(many) == 0:
        return many, np.zeros(0, np.int16)
    ends = np.stack((start[:-1][many], start[1:][many]), axis=1).ravel()
    padded = np.append(label, label[-1:])  # an end may lie behind the last vote
    low, high = (f.reduceat(padded, ends)[::2] for f in (np.minimum, np.maximum))
    agreed = low == high
    return many[agreed], low[agreed]


# --- silence --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pairing:
    """Who voted in which sequence of a block: pairs, and which of them marked nothing."""

    pair: npt.NDArray[np.int32]
    """The pair of each vote."""
    owner: npt.NDArray[np.int32]
    """The annotator of each pair."""
    silent: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, block: Block, outside: int) -> Pairing:
        """Look at a block; without a label O nobody is silent."""
        votes = block.votes
        start = votes.start[block.first : block.last + 1]
        part = slice(int(start[0]), int(start[-1]))
        pair, owner = np.empty((2, part.stop - part.start), np.int32)
        seen = np.full(votes.n_annotators, -1, np.int32)
        n = kernels.number_pairs(readonly(block.offsets), start, votes.annotator[part], seen, pair, owner)
        marks = np.bincount(pair, weights=votes.label[part] != outside, minlength=n)
        return cls(pair, owner[:n].copy(), marks == 0)


def asleep(pairing: Pairing, view: View, table: Floats, states: Floats, weight: Floats, rates: Floats) -> Floats:
    """Return the probability of each pair that the annotator did not look.

    `table` are the rows of the votes in the block, `weight` is that of each vote, `rates` how often annotators sleep.
    """
    looked = np.zeros(len(pairing.owner))
    kernels.evidence_of_silence(view.start, view.row, weight, pairing.pair, pairing.silent, table, states, looked)
    rate = rates[pairing.owner]
    odds = np.log(rate) - np.log1p(-rate) - looked
    return np.where(pairing.silent, 1.0 / (1.0 + np.exp(np.clip(-odds, -50, 50))), 0.0)


def sleep_rates(slept: Floats, sequences: Floats) -> Floats:
    """Return how often each annotator does not look, from the expected and the number of all sequences."""
    return np.asarray((slept + LOOKED[0]) / (sequences + LOOKED[1]))


# --- rates ----------------------------------------------------------------------------------------------------------


class Rates:
    """How much may be marked, in all and of each type, by what annotators mark on the same tokens."""

    def __init__(self, crowd: Crowd) -> None:
        self.kinds = kinds_of_marks(crowd.labels)
        self.of_label = np.array(list(self.kinds.values()), dtype=np.float64).T
        self.kind_of, _ = _kinds(crowd.labels)
        self.own, self.agreed, self.uses, self.family = crowd.own, crowd.agreed, crowd.uses, crowd.families.family
        self.given = [self._heard(crowd.given, crowd.only_marks, uses) for uses in crowd.uses.T]
        alone = 1.0 / crowd.annotators
        self.level, self.least_ratio = QUARTILE, 1.0 - 0.5 * float(np.sqrt(alone))  # the fewer, the less is known
        if crowd.recall is not None:  # who misses at random, misses more than that
            missed = max(0.0, self.least_ratio - self._middle(crowd.recall, crowd.given))
            self.least_ratio -= (1.0 - crowd.together) * missed
        # of two people nobody can say who misses much: what they mark in the mean is the most
        if alone > TWO and not crowd.only_marks.any():
            self.level, self.least_ratio = 0.5, 1.0

    def _heard(self, given: Floats, only_marks: npt.NDArray[np.bool_], uses: npt.NDArray[np.bool_]) -> Floats:
        """Return the votes of those who have a say on a kind: who look for it, if they look for it alone or are two.

        All tokens of who never says O are marks, whatever is true: they have none, if anybody else has.
        """
        alone = len(np.unique(self.family[uses])) < 2 and self.uses[uses].all()
        heard = given if alone else np.where(uses, given, 0.0)
        others = np.where(only_marks, 0.0, heard)
        return others if others.any() else heard

    def sums(self, block: Block, weight: Floats, labels: Floats) -> tuple[Floats, Floats, Floats]:
        """Return, by annotator and kind, the marks expected on their tokens, and those where they marked another.

        And, by kind, those expected where two voices at least were heard.
        """
        who, given = block.votes.annotator[block.hard], block.votes.label[block.hard]
        said, other = np.zeros((2, *self.own.shape))
        marks = labels @ self.of_label
        kernels.sums_of_rates(block.start, who, given, self.kind_of, weight, marks, said, other)
        return said, other, marks[_several(np.bincount(block.token, weight, len(block)))].sum(axis=0)

    def ratios(self, said: Floats, other: Floats, looking: npt.NDArray[np.bool_] | bool = True) -> Floats:
        """Return of each kind the upper quartile (the median of two), over votes, of own marks per expected mark.

        Where there are more than two voices it is that of the others: of those who are above it, the family (or the
        one annotator) with the most votes is left out. Who votes everywhere, as machines do, is much of the crowd, and
        what they alone mark is supported by nobody.
        """
        said = said.copy()
        said[:, 0] -= (said * ~self.uses).sum(axis=1)  # nobody misses what they do not look for
        ratio = (self.own + other + 1.0) / (said + 1.0)
        heard = [given * looking if (given * looking).any() else given for given in self.given]
        return np.array([self._supported(kind, given) for kind, given in zip(ratio.T, heard)])

    def _supported(self, ratio: Floats, given: Floats) -> float:
        middle = self._middle(ratio, given)
        by_family = np.bincount(self.family, given)
        if float((by_family**2).sum()) > TWO * float(by_family.sum()) ** 2:
            return middle
        above = np.bincount(self.family, np.where(ratio >= middle, given, 0.0))
        return self._middle(ratio, np.where(self.family == above.argmax(), 0.0, given))

    def _middle(self, ratio: Floats, given: Floats) -> float:
        order = np.argsort(ratio, kind="stable")
        order = order[given[order] > 0]
        share = given[order] / given.sum()
        return float(np.interp(self.level, np.cumsum(share) - share / 2, ratio[order]))

    def held(
        self, weight: Floats, said: Floats, other: Floats, found: Floats, looking: npt.NDArray[np.bool_] | bool = True
    ) -> Floats:
        """Return the next weight against each kind: more while too much is marked, less as soon as there is room.

        Below 0 while less is marked than most voices agree on.
        """
        most = np.maximum(0.0, weight + np.log(self.least_ratio / self.ratios(said, other, looking)))
        least = weight + np.log((found + 1.0) / (LEAST_AGREED * self.agreed + 1.0))
        return np.asarray(np.minimum(most, np.maximum(-MOST_RAISED, least)))

    def bias(self, weight: Floats) -> Floats:
        """Return what the weights say of each label, in nats."""
        return np.asarray(-self.of_label @ weight)


def _kinds(labels: Sequence[str]) -> tuple[npt.NDArray[np.int64], int]:
    """Return the kind of each label (its type; 0 where there is one type at most, or none), and how many there are."""
    kinds = np.array(list(kinds_of_marks(labels).values()))
    return np.asarray((kinds * np.arange(len(kinds))[:, None]).max(axis=0)), len(kinds)


def kind_of(labels: Sequence[str]) -> Ints:
    """Return the number of the kind of each label; 0 where there is one type at most."""
    return _kinds(labels)[0]


def kinds_of_marks(labels: Sequence[str]) -> dict[str | None, npt.NDArray[np.bool_]]:
    """Return the labels of all marks (None) and those of each type, where there is more than one: PER of B-PER."""
    spans = detect(labels) is not None
    names = [None if label == OUTSIDE else split_label(label)[1] if spans else label for label in labels]
    types = dict.fromkeys(name for name in names if name is not None)
    kinds: dict[str | None, npt.NDArray[np.bool_]] = {None: np.array([name is not None for name in names])}
    if len(types) > 1:
        kinds |= {name: np.array([other == name for other in names]) for name in types}
    return kinds

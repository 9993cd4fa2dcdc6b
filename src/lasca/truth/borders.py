"""Who goes on where the others stop? Some mark the word before a name or the one behind it, always.

To a chain model a mark beyond the border is a rare invention of theirs if it is wrong, and the usual miss of all others
if it is right: so a few who go on are believed, and all names of the crowd get too long. But whoever marks a part of a
name has seen it, and stops where they think it ends. An annotator who begins before most of the others who mark a part
of the name, in more than `HABIT` of the names, or ends behind them, has a habit. What such annotators alone mark of a
name that somebody without the habit marks in part is no mark. Where half of the votes are theirs nobody knows whose
habit it is, and nothing is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lasca.arrays import Bools, Ints
from lasca.corpus.votes import Block
from lasca.schemes import OUTSIDE, detect, split_label
from lasca.truth.evidence import Floats, labels_before
from lasca.truth.families import Families
from lasca.truth.guards import Crowd, kind_of

__all__ = ["Overruns", "beyond", "knowing_habits"]

HABIT, LEAST_NAMES = 0.5, 20
"""The share of names in which an annotator goes on, from which it is a habit; how many names it takes to say so. (Of
those who have so many in the rows of the bench two are above it, both in PICO, and hardly anybody above .3; made-up
habits are at .6 to .95.)"""
BEGIN = "BSU"
"""Parts of labels that begin a name (where they do not say, it begins where marks of its kind do)."""
OTHERS = 2
"""How many others must mark there."""


def knowing_habits(crowd: Crowd, asked: Callable[[Any], tuple[Any, ...]]) -> Crowd:
    """Return what is known of a crowd with who goes on where others stop; `asked` asks all blocks."""
    if crowd.outside < 0 or detect(crowd.labels) is None:
        return crowd
    names, before, behind = asked(Overruns(crowd.families, crowd.labels))[0]
    habit = np.asarray((np.maximum(before, behind) > HABIT * names) & (names >= LEAST_NAMES))
    few = crowd.given[habit].sum() < crowd.given.sum() / 2
    return replace(crowd, goes_on=habit) if habit.any() and few else crowd


@dataclass(frozen=True)
class Overruns:
    """Asks in how many names annotators go on where most of the others who mark there stop; a family is one voter."""

    families: Families
    labels: tuple[str, ...]

    def summarise(self, block: Block) -> tuple[Floats]:
        """Return, by annotator, the names that enough others mark, and those begun before them, and ended behind."""
        marks = Marks.of(self.families.one_each(block), self.labels)
        others, A = marks.others(), block.votes.n_annotators
        alone = 2 * (marks.at_once[marks.token] - 1) < others[marks.name]
        first, last = np.zeros((2, len(others)), np.bool_)
        first[marks.name[::-1]] = alone[::-1]  # what is written last stays
        last[marks.name] = alone
        asked = others >= OTHERS
        owners = (marks.owner[asked & some] for some in (np.bool_(True), first, last))
        return (np.array([np.bincount(own, minlength=A) for own in owners], dtype=np.float64),)


def beyond(block: Block, goes_on: Bools, labels: Sequence[str]) -> Ints:
    """Return the tokens that only those who go on mark, of names that somebody else marks in part."""
    marks = Marks.of(block, labels)
    stops = ~goes_on[marks.who]
    others = np.bincount(marks.token[stops], minlength=len(block)) > 0
    shared = np.bincount(marks.name, others[marks.token], len(marks.owner)) > 0
    alone = marks.token[shared[marks.name] & ~others[marks.token]]
    return np.unique(alone)


@dataclass(frozen=True)
class Marks:
    """The votes of a block that are marks, token by token."""

    token: Ints
    who: Ints
    name: Ints
    """The number of the name that each is a part of: names of different annotators are different."""
    owner: Ints
    """Of each name: who marked it."""
    at_once: Ints
    """Of each token of the block: how many mark it."""

    @classmethod
    def of(cls, block: Block, labels: Sequence[str]) -> Marks:
        """Find the names of a block."""
        begins = np.array([split_label(label)[0] in BEGIN for label in labels])
        kind = np.array([0 if label == OUTSIDE else 1 for label in labels]) + kind_of(labels)
        label, before = block.votes.label[block.hard], labels_before(block)
        marked = kind[label] > 0
        goes_on = marked & ~begins[label] & (np.append(kind, 0)[before] == kind[label])
        who = block.votes.annotator[block.hard].astype(np.int64)
        order = np.argsort(who, kind="stable")  # then the votes of each are in the order of tokens
        name = np.empty(len(who), np.int64)
        name[order] = np.cumsum((marked & ~goes_on)[order]) - 1
        owner = who[order][(marked & ~goes_on)[order]]
        token = block.token[marked]
        return cls(token, who[marked], name[marked], owner, np.bincount(token, minlength=len(block)))

    def others(self) -> Ints:
        """Return for each name how many others mark a part of it."""
        n = self.at_once[self.token]
        first = (np.cumsum(self.at_once) - self.at_once)[self.token]
        one = np.repeat(np.arange(len(n)), n)  # each mark with each on its token
        other = np.arange(len(one)) - np.repeat(np.cumsum(n) - n - first, n)
        A = np.int64(self.owner.max(initial=0) + 1)
        pairs = np.unique(self.name[one] * A + self.who[other]) // A
        return np.bincount(pairs, minlength=len(self.owner)) - 1

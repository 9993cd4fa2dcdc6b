"""May a text overrule people who agree? Hidden votes are asked; no gold is.

People miss things together, and a text that has seen many names may know better than four who agree that there is none.
It may also have learned what nobody wants marked. So a member of the average is fitted with one annotator of each
sequence hidden (where four and more voted) and nobody believed for agreeing; in `TURNS` turns, another one in each,
for such names are few. Where the others all mark nothing and the member finds a mark, the hidden one is asked, once for
each name, where it begins (its tokens are one decision):

    x   how often they mark something there
    y   how often they do where one of the others did too, and the member agrees with that one
    f   how often they do where neither the others nor the member mark anything

If all such marks were true x would be about y, if all were false f. A type of marks is released – people who agree that
there is nothing may be overruled by it – where x is surely above f + ENOUGH (y − f). Hidden votes share their errors
with the others, so they cannot tell all: `ENOUGH` asks for three right to one wrong. And only where the text finds no
other mark likelier: a person is no place because places alone are released.

Of *two* who agree nobody can be hidden so. In half of the sequences with two or three one is, whoever is left says
nothing, and what the member finds there is asked about, all types together. Where that is borne out two may be
overruled, as they are in crowds that miss much; else they are believed where labels are read (`average`). The members
learn as they did: what two missed teaches them, whoever is right in the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasca.corpus.votes import Block
from lasca.truth.evidence import Floats
from lasca.truth.families import Families
from lasca.truth.guards import UNANIMOUS, Crowd, Pairing, kinds_of_marks

__all__ = ["TURNS", "Asked", "HiddenVotes", "borne_out", "released"]

ENOUGH = 0.75
LEAST_CASES = 20
"""How many names it takes to say anything of a type."""
TURNS = 3
"""How many of a sequence are hidden, one after the other: names that everybody else missed are few."""


@dataclass(frozen=True)
class HiddenVotes(Families):
    """Families of which one annotator is not heard: of sequences with four and more, or of half of those with less."""

    of_two: bool = False
    """Whether it is those with two or three."""
    turn: int = 0
    """Which of `TURNS` it is: in each another one of a sequence is hidden."""

    @property
    def thin(self) -> bool:
        """Whether `one_each` leaves any votes out."""
        return True

    def weights(self, block: Block) -> Floats:
        """Return the weight of each vote of a block; hidden votes have none."""
        return np.where(self.hidden(block), 0.0, super().weights(block))

    def hidden(self, block: Block) -> npt.NDArray[np.bool_]:
        """Say which votes of a block are hidden: all of one annotator's in a sequence, another one in each."""
        pairing = Pairing.of(block, -1)  # pairs are numbered sequence by sequence
        token = np.repeat(np.arange(len(block)), np.diff(block.votes.start[block.first : block.last + 1]))
        sequence = np.zeros(len(pairing.owner), np.int64)
        sequence[pairing.pair] = np.searchsorted(block.offsets, token, side="right") - 1
        n = np.bincount(sequence, minlength=len(block.offsets) - 1)
        rank = np.arange(len(sequence)) - np.searchsorted(sequence, sequence)
        chosen = (block.number + self.turn + np.arange(len(n))) % np.maximum(n, 1)
        wanted = n > UNANIMOUS
        if self.of_two:  # who is left alone teaches little, so others stay together
            wanted = (n > 1) & ~wanted & (np.arange(len(n)) % 2 == 0)
        return np.asarray(((rank == chosen[sequence]) & wanted[sequence])[pairing.pair])

    def one_each(self, block: Block) -> Block:
        """Return a block without hidden votes, with one vote of each family on a token."""
        return self._first_of(block, ~self.hidden(block))

    def summarise(self, block: Block) -> tuple[int]:
        """Count the hidden votes."""
        return (int(self.hidden(block).sum()),)


@dataclass(frozen=True)
class Asked:
    """Asks the hidden annotators of a block about what a member found: the last step of its description."""

    hidden: HiddenVotes
    crowd: Crowd

    def __call__(self, number: int, block: Block, proba: Floats, labels: None, statistics: object) -> Floats:
        """Return how many cases there are, and in how many the hidden one marks, by case and type.

        The cases: a mark is found where all others mark nothing; where one of them marks; nothing is found, or marked.
        """
        votes, outside = block.votes, self.crowd.outside
        start = votes.start[block.first : block.last + 1]
        token, label = np.repeat(np.arange(len(block)), np.diff(start)), votes.label[start[0] : start[-1]]
        weight, hidden = self.hidden.weights(block), self.hidden.hidden(block)
        voices = np.bincount(token, weight, len(block))
        marks = np.bincount(token, (label != outside) & ~hidden, len(block))
        found = proba.argmax(axis=1)
        kinds = np.array(list(kinds_of_marks(self.crowd.labels).values()))
        counts = np.zeros((3, len(kinds), 2))
        least = 1 if self.hidden.of_two else UNANIMOUS
        asked = np.flatnonzero(hidden & (voices[token] >= least - 1e-6))  # one of a token at most
        at, marked = token[asked], label[asked] != outside
        nothing = (marks[at] == 0) & (found[at] == outside)
        for kind, own in enumerate(kinds):
            named = _begins(own[found], block.offsets)[at]
            cases = (named & (marks[at] == 0), named & (marks[at] == 1), nothing)
            counts[:, kind] = [[int(case.sum()), int((case & marked).sum())] for case in cases]
        return counts


def _begins(marked: npt.NDArray[np.bool_], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return where runs of marks begin; a sequence ends a run."""
    before = np.append(False, marked[:-1])
    before[offsets[:-1]] = False
    return np.asarray(marked & ~before)


def released(counts: Floats, crowd: Crowd) -> tuple[int, ...]:
    """Return the labels by which people who agree on nothing may be overruled; `counts` as `Asked` adds them up."""
    free: set[int] = set()
    kinds = list(kinds_of_marks(crowd.labels).values())
    for kind, own in enumerate(kinds):
        if kind == 0 and len(kinds) > 1:  # all marks together: types are judged one by one
            continue
        if borne_out(counts[:, kind]):
            free |= set(np.flatnonzero(own).tolist())
    return tuple(sorted(free))


def borne_out(counts: Floats) -> bool:
    """Say whether hidden votes bear out what was found, by the counts of one type or of all."""
    (n, marked), (n_one, marked_one), (n_none, marked_none) = counts
    if min(n, n_one, n_none) < LEAST_CASES:
        return False
    x, y, f = marked / n, marked_one / n_one, marked_none / n_none
    return bool(y > f and x - np.sqrt(x * (1 - x) / n) >= f + ENOUGH * (y - f))

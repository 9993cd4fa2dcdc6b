"""May a text overrule people who agree? Hidden votes are asked; no gold is.

People miss things together, and a text that has seen many names may know better than four who agree that there is none.
It may also have learned what nobody wants marked. A tagger has not seen the document whose votes it is asked about, so
every vote there can be hidden from it. Where the text finds a name and three and more voted where it begins, one of
them is hidden, each in turn. How often does that one mark, by how many of the others do (`Found`)?

    r_0, r_1, r_2    where none, one, two of the others mark

If all names that nobody else marked were true, r_0 would be about r_1² / r_2: the fewer marked it, the harder a name
is, and each one fewer makes it harder by the same factor. Where fewer mark, some of the names are not true: true ones
are

    odds(r_0) / odds(r_1² / r_2)

of those that nobody marked. Where that is above `ENOUGH` by `SURELY` standard errors, people who agree that there is
nothing are not believed where the text finds a mark (`released`). Who votes most, a machine perhaps, is not asked, nor
is about what they mark: the text learns from them what they alone mark.

Of *two* who agree nobody can be hidden so. In half of the sequences with two or three one is, whoever is left says
nothing, and what a member of the average finds there is asked about, once for each name, where it begins:

    x   how often they mark something there
    y   how often they do where one of the others did too, and the member agrees with that one
    f   how often they do where neither the others nor the member mark anything

If all such marks were true x would be about y, if all were false f. Where x is surely above f + THREE_QUARTERS (y − f)
two may be overruled, as they are in crowds that miss much; else they are believed where labels are read (`average`).
The members learn as they did: what two missed teaches them, whoever is right in the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasca.corpus.votes import Block
from lasca.truth.evidence import Floats
from lasca.truth.families import Families
from lasca.truth.guards import UNANIMOUS, Crowd, Pairing, finds, run_begins

__all__ = ["Asked", "Found", "HiddenVotes", "borne_out", "released"]

ENOUGH = 0.5
"""The share of names that only a text finds that must be true."""
SURELY = 1.64
"""By how many standard errors of its logarithm the estimate of that share must be above it: once in twenty it is by
chance, where it is no larger."""
THREE_QUARTERS = 0.75
"""How far between f and y (see above) x must be, by one standard error, for two people to be overruled."""
LEAST_CASES = 20
"""How many names it takes to say anything."""


# --- three and more who agree ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """Asks how many mark where the text finds a name; a family is one voter.

    The one who votes most is not asked, and names they mark are left out.
    """

    crowd: Crowd

    def summarise(self, block: Block) -> tuple[Floats, Floats, Floats]:
        """Return, by how many of the others mark (none, one, two), names, and hidden votes: those that mark, and all.

        Last come the products of these six numbers of a name, summed over names: how far they stray together.
        """
        families, outside = self.crowd.families, self.crowd.outside
        most = np.bincount(families.family, self.crowd.given).argmax()
        own = families.family[block.votes.annotator[block.hard]] == most
        theirs = np.bincount(block.token[own], block.votes.label[block.hard][own] != outside, len(block))
        one = families.first_of(block, ~own)
        n, marked = np.diff(one.start), one.votes.label[one.hard] != outside
        marks = np.bincount(one.token, marked, len(block))
        found = run_begins(finds(block.beside.text, outside), block.offsets)
        asked = found & (theirs == 0) & (n >= UNANIMOUS)
        n, marks, others = n[asked, None], marks[asked, None], np.arange(3)
        do = np.where(marks == others + 1, others + 1.0, 0.0)  # each of those who mark has one fewer beside them
        each = np.concatenate((do, do + np.where(marks == others, n - others, 0)), axis=1)
        return (each[:, 3:] > 0).sum(axis=0, dtype=np.float64), each.sum(axis=0), each.T @ each


def released(names: Floats, votes: Floats, products: Floats) -> bool:
    """Say whether the text may overrule people who agree that there is nothing; the arguments are `Found`'s sums.

    The standard error is the delta method's, of the logarithm of the share of true names. One name is asked about in
    two rates at once – with one mark it raises r_0 and lowers r_1 –, so what strays is what each name adds to all six
    sums; names are taken as independent.
    """
    marked, asked = votes[:3], votes[3:]
    if names.min() < LEAST_CASES or marked.min() == 0:
        return False
    none, one, two = marked / asked
    hard = one**2 / two
    if none == 1 or hard >= 1:  # all that the text finds somebody marks; the fewer mark a name, the easier it is
        return False
    slopes = np.array([1 / (1 - none), -2 / (1 - hard), 1 / (1 - hard)])  # of the share's logarithm by those of rates
    gradient = np.concatenate((slopes / marked, -slopes / asked))
    share = none / (1 - none) * (1 - hard) / hard
    return bool(share * np.exp(-SURELY * np.sqrt(gradient @ products @ gradient)) > ENOUGH)


# --- two who agree ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HiddenVotes(Families):
    """Families of which one annotator is not heard in half of the sequences with two or three."""

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
        sequence = np.zeros(len(pairing.owner), np.int64)
        sequence[pairing.pair] = np.searchsorted(block.offsets, block.token, side="right") - 1
        n = np.bincount(sequence, minlength=len(block.offsets) - 1)
        rank = np.arange(len(sequence)) - np.searchsorted(sequence, sequence)
        chosen = (block.number + np.arange(len(n))) % np.maximum(n, 1)
        # who is left alone teaches little, so others stay together
        wanted = (n > 1) & (n <= UNANIMOUS) & (np.arange(len(n)) % 2 == 0)
        return np.asarray(((rank == chosen[sequence]) & wanted[sequence])[pairing.pair])

    def one_each(self, block: Block) -> Block:
        """Return a block without hidden votes, with one vote of each family on a token."""
        return self.first_of(block, ~(self.hidden(block) | self.unaware(block)))

    def summarise(self, block: Block) -> tuple[int]:
        """Count the hidden votes."""
        return (int(self.hidden(block).sum()),)


@dataclass(frozen=True)
class Asked:
    """Asks the hidden annotators of a block about what a member found: the last step of its description."""

    hidden: HiddenVotes
    outside: int

    def __call__(self, number: int, block: Block, proba: Floats, labels: None, statistics: object) -> Floats:
        """Return how many cases there are, and in how many the hidden one marks.

        The cases: a mark is found where all others mark nothing; where one of them marks; nothing is found, or marked.
        """
        outside, token, label = self.outside, block.token, block.votes.label[block.hard]
        weight, hidden = self.hidden.weights(block), self.hidden.hidden(block)
        voices = np.bincount(token, weight, len(block))
        marks = np.bincount(token, (label != outside) & ~hidden, len(block))
        found = proba.argmax(axis=1) != outside
        asked = np.flatnonzero(hidden & (voices[token] >= 1 - 1e-6))  # one of a token at most
        at, marked = token[asked], label[asked] != outside
        named = run_begins(found, block.offsets)[at]
        cases = (named & (marks[at] == 0), named & (marks[at] == 1), (marks[at] == 0) & ~found[at])
        return np.array([[case.sum(), (case & marked).sum()] for case in cases], dtype=np.float64)


def borne_out(counts: Floats) -> bool:
    """Say whether hidden votes bear out what was found, by the counts of `Asked`."""
    (n, marked), (n_one, marked_one), (n_none, marked_none) = counts
    if min(n, n_one, n_none) < LEAST_CASES:
        return False
    x, y, f = marked / n, marked_one / n_one, marked_none / n_none
    return bool(y > f and x - np.sqrt(x * (1 - x) / n) >= f + THREE_QUARTERS * (y - f))

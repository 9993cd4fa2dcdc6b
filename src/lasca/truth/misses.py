"""Do people miss the same things? Votes are asked what they make of what others mark; no gold is.

Members of the average take misses as independent. Where people miss the same things – what is hard, what comes late –
that is wrong, and "a name that all others missed" becomes the cheapest explanation of what one alone marks: the guard
of rates is there for that. Where each misses at random the members are right, and the guard only costs.

Which it is shows on tokens that two others mark (of three votes: that the third does). R is how often an annotator
marks what two others mark. Two annotators, A and B, are asked together:

    together = Σ (a − R_A) (b − R_B) / Σ √(R_A (1 − R_A) R_B (1 − R_B))                  a, b: 1 if they mark, else 0

It is about 0 where misses are independent, however good or bad annotators are, and `USUAL` and more in nearly all
crowds of people. At 0 the rate of marks is held at what R supports, at `USUAL` at what holds for all crowds (`guards`),
and in between in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lasca.arrays import Bools
from lasca.corpus.votes import Block
from lasca.truth.evidence import Floats
from lasca.truth.families import Families
from lasca.truth.guards import Crowd

__all__ = ["BorneOut", "Together", "knowing_misses"]

USUAL = 0.14
"""How far crowds of people miss the same things: .14 (row `nb` of the bench) and more, but for `btc-e-org` (.03)."""
FEW = 5.0
"""Pseudo-counts of tokens on which an annotator is as all are."""


def knowing_misses(crowd: Crowd, asked: Callable[[Any], tuple[Any, ...]]) -> Crowd:
    """Return what is known of a crowd with how its annotators miss things; `asked` asks all blocks."""
    if crowd.outside < 0:
        return crowd
    n, found = asked(BorneOut(crowd.families, crowd.outside))[0]
    if n.sum() == 0:
        return crowd
    recall = (found + FEW * found.sum() / n.sum()) / (n + FEW)
    above, below = asked(Together(crowd.families, crowd.outside, recall))[0]
    together = np.clip(above / (USUAL * below), 0.0, 1.0) if below > 0 else 1.0
    return replace(crowd, recall=recall, together=float(together))


@dataclass(frozen=True)
class BorneOut:
    """Asks how often annotators mark what two others mark; a family is one voter."""

    families: Families
    outside: int

    def summarise(self, block: Block) -> tuple[Floats]:
        """Return how many votes of each annotator are on such tokens, and how many of them are marks."""
        one, marked, marks = self.voters(block)
        borne = marks[one.token] - marked >= 2
        who, A = one.votes.annotator[one.hard], one.votes.n_annotators
        return (np.array([np.bincount(who, some, A) for some in (borne, borne & marked)], dtype=np.float64),)

    def voters(self, block: Block) -> tuple[Block, Bools, Any]:
        """Return a block with one vote of each family, which votes are marks, and how many there are on each token."""
        one = self.families.one_each(block)
        marked = one.votes.label[one.hard] != self.outside
        return one, marked, np.bincount(one.token, marked, len(block))


@dataclass(frozen=True)
class Together(BorneOut):
    """Asks pairs of voters how often both mark or miss what others mark."""

    recall: Floats

    def summarise(self, block: Block) -> tuple[Floats]:
        """Return the sums above and below."""
        one, marked, marks = self.voters(block)
        n = np.diff(one.start)
        R = self.recall[one.votes.annotator[one.hard]]
        others = np.minimum(2, n - 2)

        def pairs(numbers: Floats) -> Floats:
            """Add up the products of two votes' numbers on each token where enough others mark."""

            def sums(own: Bools) -> tuple[Floats, Floats]:
                total, squares = (np.bincount(one.token[own], numbers[own] ** k, len(block)) for k in (1, 2))
                return np.asarray(total), (total**2 - squares) / 2

            (mark, both), (miss, neither) = sums(marked), sums(~marked)
            found = both * (marks - 2 >= others) + mark * miss * (marks - 1 >= others) + neither * (marks >= others)
            return np.where(n > 2, found / np.maximum(n - 1, 1), 0.0)  # a token of many votes is not all their pairs

        return (np.array([pairs(marked - R).sum(), pairs(np.sqrt(R * (1 - R))).sum()]),)

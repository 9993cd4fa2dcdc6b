"""MajorityVote: the label most annotators gave, token by token; probabilities are the shares of the votes.

Ties. On real crowds the tie rule alone moves scores by several points, so it is a parameter and goes into the result:
`ties="frequency"` takes the tied label that is most frequent among all votes, then the first in label order;
`ties="first"` takes the first in label order; the name of a label takes that label where it is among the tied, else
the first in label order. A token nobody labelled gets the label frequencies of all votes as its
probabilities. `diagnostics` counts the ties and the tokens without votes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lasca.arrays import Codes, Floats, Proba
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block, Votes
from lasca.estimator import check_choice, other
from lasca.truth.base import Posterior, Progress, TruthModel
from lasca.truth.dawid_skene import blocks_of
from lasca.truth.finish import Finish
from lasca.truth.special import shares_of, special_tokens

__all__ = ["MajorityVote"]

TIES = ("frequency", "first")


@dataclass(frozen=True)
class Frequencies:
    """What all blocks must know: the share of each label among all votes, and which of tied labels wins."""

    share: Floats
    rank: Floats


class Counting:
    """The learner, which learns nothing but how frequent labels are."""

    def summarise(self, block: Block) -> tuple[Floats]:
        """Return how many votes each label has; a soft vote counts by its probabilities."""
        votes = block.votes
        n = np.bincount(votes.label[block.hard], minlength=votes.n_labels).astype(np.float64)
        if block.soft is not None:
            n += block.soft.proba.sum(axis=0, dtype=np.float64)
        return (n,)

    def describe(self, state: Frequencies, block: Block, local: None, out: Proba) -> tuple[Codes, tuple[int, int]]:
        """Write the shares of each token's votes, of what is allowed where something is known, and label frequencies
        where nobody voted; return the winners, how many tokens are tied, and how many have no votes.
        """
        voted = block.voted
        out[:] = shares_of(block, special_tokens(block))
        out[~voted] = state.share
        tied = (out == out.max(axis=1, keepdims=True)).sum(axis=1) > 1
        return winners(out, state.rank), (int((tied & voted).sum()), int((~voted).sum()))


def winners(proba: Proba, rank: Floats) -> Codes:
    """Return the label with the largest share of each token; of tied ones that of the highest rank, then the first."""
    order = np.argsort(-rank, kind="stable")
    return np.asarray(order[proba[:, order].argmax(axis=1)], dtype=np.int16)


class MajorityVote(TruthModel):
    """The label most annotators gave each token."""

    name = "mv"
    summary = "majority vote: the label most annotators gave"
    supports = frozenset({"known", "soft", "engine", "shards"})

    ties: str = other(
        "who wins: the tied label with most votes in the corpus (then label order), the first label, or always one",
        "'frequency', 'first', or the name of a label",
        default="frequency",
    )

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        ties = check_choice("ties", self.ties, (*TIES, *corpus.labels))
        with self._work(Counting(), blocks_of(votes)) as work:
            (n,) = work.summary()
            share = n / votes.n_votes
            rank = share if ties == "frequency" else np.array([float(label == ties) for label in corpus.labels])
            if ties == "first":
                rank = np.zeros(len(share))
            posterior, (tied, unvoted) = self._finished(work, Frequencies(share, rank), Finish(with_counts=True))
        progress(1.0, "votes counted")
        return replace(posterior, diagnostics={"ties": tied, "tokens_without_votes": unvoted})

"""MajorityVote: the label most annotators gave, token by token; probabilities are the shares of the votes.

Ties. On real crowds the tie rule alone moves scores by several points, so it is a parameter and goes into the result:
`ties="frequency"` takes the tied label that is most frequent among all votes, then the first in label order;
`ties="first"` takes the first in label order; the name of a label takes that label where it is among the tied, else
the first in label order. A token nobody labelled gets the label frequencies of all votes as its
probabilities. `diagnostics` counts the ties and the tokens without votes.
"""

from __future__ import annotations

import numpy as np

from lasca.arrays import Codes, Floats, Proba
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block, Votes
from lasca.estimator import check_choice, other
from lasca.kernels.counts import vote_shares
from lasca.truth.base import Posterior, Progress, TruthModel
from lasca.truth.special import shares_of, special_tokens

__all__ = ["MajorityVote"]

TIES = ("frequency", "first")


def shares_of_votes(votes: Votes) -> Proba:
    """Return the shares of each token's votes, (n_tokens, n_labels); label frequencies where nobody voted.

    A soft vote counts by its probabilities. Only what is allowed has a share where something is known.
    """
    if votes.soft is not None or votes.known is not None:
        block = Block(votes, 0, votes.n_tokens)
        shares = shares_of(block, special_tokens(block))
        shares[~votes.voted] = label_frequency(votes)
        return shares.astype(np.float32)
    proba = np.empty((votes.n_tokens, votes.n_labels), dtype=np.float32)
    vote_shares(votes.start, votes.label, proba)
    proba[np.diff(votes.start) == 0] = label_frequency(votes)
    return proba


def label_frequency(votes: Votes) -> Floats:
    """Return the share of each label among all votes."""
    n = np.bincount(votes.label, minlength=votes.n_labels).astype(np.float64)
    if votes.soft is not None:
        n += votes.soft.proba.sum(axis=0, dtype=np.float64)
    return np.asarray(n / max(votes.n_votes, 1))


def winners(proba: Proba, rank: Floats) -> Codes:
    """Return the label with the largest share of each token; of tied ones that of the highest rank, then the first."""
    order = np.argsort(-rank, kind="stable")
    return np.asarray(order[proba[:, order].argmax(axis=1)], dtype=np.int16)


class MajorityVote(TruthModel):
    """The label most annotators gave each token."""

    name = "mv"
    summary = "majority vote: the label most annotators gave"
    supports = frozenset({"known", "soft"})

    ties: str = other(
        "who wins: the tied label with most votes in the corpus (then label order), the first label, or always one",
        "'frequency', 'first', or the name of a label",
        default="frequency",
    )

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        ties = check_choice("ties", self.ties, (*TIES, *corpus.labels))
        proba = shares_of_votes(votes)
        if ties in TIES:
            rank = label_frequency(votes) if ties == "frequency" else np.zeros(votes.n_labels)
        else:
            rank = np.array([label == ties for label in corpus.labels], dtype=np.float64)
        labels = winners(proba, rank)
        unvoted = ~votes.voted
        tied = (proba == proba.max(axis=1, keepdims=True)).sum(axis=1) > 1
        progress(1.0, "votes counted")
        diagnostics = {"ties": int((tied & ~unvoted).sum()), "tokens_without_votes": int(unvoted.sum())}
        return Posterior(proba, labels=labels, diagnostics=diagnostics)

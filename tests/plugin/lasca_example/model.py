"""TrustVote: votes weighted by how often their annotator agrees with the majority."""

from __future__ import annotations

import numpy as np

from lasca.corpus import CrowdCorpus
from lasca.estimator import number
from lasca.truth import Posterior, TruthModel, Votes
from lasca.truth.base import Progress


class TrustVote(TruthModel):
    """Weighted votes."""

    name = "trust"
    summary = "votes weighted by agreement with the majority"

    power: float = number("how much trust counts; 0 is plain majority vote", default=2.0, low=0)

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        token = np.repeat(np.arange(votes.n_tokens), np.diff(votes.start))
        shares = np.full((votes.n_tokens, votes.n_labels), 1e-6)
        np.add.at(shares, (token, votes.label), 1.0)
        agrees = shares.argmax(axis=1)[token] == votes.label
        n = np.bincount(votes.annotator, minlength=votes.n_annotators)
        trust = (np.bincount(votes.annotator, weights=agrees, minlength=votes.n_annotators) + 1) / (n + 2)
        weighted = np.full((votes.n_tokens, votes.n_labels), 1e-6)
        np.add.at(weighted, (token, votes.label), trust[votes.annotator] ** self.power)
        progress(1.0, "votes weighted")
        return Posterior(weighted / weighted.sum(axis=1, keepdims=True))

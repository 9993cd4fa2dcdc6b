"""Baselines under the same interface: vote entropy, posterior entropy, CrowdTruth.

- vote-entropy: entropy of the shares of the labels a token was given. It cannot tell a split from slips.
- posterior-entropy: entropy of the truth model's probabilities. It tells how unsure the *one* truth is.
- crowdtruth (Dumitrache et al. 2018): 1 − unit quality, see `lasca.evaluate.crowdtruth_scores`.
"""

from __future__ import annotations

import numpy as np

from lasca.ambiguity.ranking import Ranking, vote_scores
from lasca.evaluate.crowdtruth_scores import crowdtruth_rounds
from lasca.kernels import agreement
from lasca.truth import Truth
from lasca.truth.base import Votes

__all__ = ["crowdtruth", "posterior_entropy", "vote_entropy"]


def _unranked(votes: Votes) -> dict[str, int]:
    n = np.diff(votes.start)
    return {"not annotated": int((n == 0).sum()), "one annotation only": int((n == 1).sum())}


def vote_entropy(votes: Votes, truth: Truth) -> Ranking:
    """Rank tokens by the entropy of their votes."""
    entropy = np.empty(votes.n_tokens)
    agreement.vote_entropy(votes.start, votes.label, votes.n_labels, entropy)
    return Ranking(entropy, vote_scores(votes, np.ones(len(votes.label)), mean=False), _unranked(votes))


def posterior_entropy(votes: Votes, truth: Truth) -> Ranking:
    """Rank tokens by the entropy of the truth model's probabilities."""
    score = truth.entropy.astype(np.float64)
    n = np.diff(votes.start)
    score[n == 0] = np.nan
    return Ranking(score, lambda tokens: truth.proba[tokens].astype(np.float64), {"not annotated": int((n == 0).sum())})


def crowdtruth(votes: Votes, truth: Truth) -> Ranking:
    """Rank tokens by CrowdTruth's unit quality, from low to high."""
    found = crowdtruth_rounds(votes.start, votes.annotator, votes.label, votes.n_annotators, votes.n_labels)
    fields = {
        "trace": found.trace,
        "diagnostics": {
            "annotator_quality": found.worker.tolist(),
            "label_quality": found.label.tolist(),
            "labels_weighed": found.labels_weighed,
            "converged": found.converged,
        },
    }
    score = np.round(1.0 - found.unit, 12) + 0.0  # what differs by rounding errors only is a tie
    return Ranking(score, vote_scores(votes, found.worker[votes.annotator], mean=False), _unranked(votes), fields)

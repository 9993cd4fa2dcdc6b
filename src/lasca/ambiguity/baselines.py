"""Baselines under the same interface: vote entropy, posterior entropy, CrowdTruth.

- vote-entropy: entropy of the shares of the labels a token was given. It cannot tell a split from slips.
- posterior-entropy: entropy of the truth model's probabilities. It tells how unsure the *one* truth is.
- crowdtruth (Dumitrache et al. 2018, arXiv 1808.06080): unit, annotator and label quality, each weighted by the
  other two and iterated until no score moves by more than 0.001 (at most 50 rounds), from 1 for all. For one label per
  token: unit quality = weighted share of pairs of annotators who agree; annotator quality = (mean cosine with the
  votes of the others) × (weighted share of agreement with each of them); label quality = weighted mean over pairs of
  annotators of P(one gives it | the other did). The score is 1 − unit quality.
  Deviation: label quality needs a table of labels × annotators²; above 20 million cells it is left at 1 (the
  diagnostics say so).
"""

from __future__ import annotations

import numpy as np

from lasca.ambiguity.ranking import Ranking, vote_scores
from lasca.kernels import agreement
from lasca.truth import Truth
from lasca.truth.base import Votes

__all__ = ["crowdtruth", "posterior_entropy", "vote_entropy"]

MAX_ROUNDS, DELTA = 50, 0.001
MAX_CELLS = 20_000_000


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
    L, T = votes.n_annotators, votes.n_labels
    unit, worker, quality = np.ones(votes.n_tokens), np.ones(L), np.ones(T)
    weigh_labels = T * L * L <= MAX_CELLS
    size = (T, L, L) if weigh_labels else (0, 0, 0)
    both, either = np.empty(size), np.empty(size)
    trace: list[float] = []
    for _ in range(MAX_ROUNDS):
        new_unit, new_worker, new_quality = np.empty_like(unit), np.empty_like(worker), np.ones(T)
        arrays = (votes.start, votes.annotator, votes.label, unit, worker)
        agreement.crowdtruth_pass(*arrays, quality, new_unit, new_worker)
        if weigh_labels:
            agreement.crowdtruth_labels(*arrays, both, either, new_quality)
        moves = [np.abs(new_worker - worker), np.abs(new_quality - quality), np.abs(new_unit - unit)]
        trace.append(float(max(np.nanmax(m, initial=0.0) for m in moves)))
        unit, worker, quality = new_unit, new_worker, new_quality
        if trace[-1] < DELTA:
            break
    fields = {
        "trace": np.array(trace),
        "diagnostics": {
            "annotator_quality": worker.tolist(),
            "label_quality": quality.tolist(),
            "labels_weighed": weigh_labels,
            "converged": trace[-1] < DELTA,
        },
    }
    score = np.round(1.0 - unit, 12) + 0.0  # what differs by rounding errors only is a tie
    return Ranking(score, vote_scores(votes, worker[votes.annotator], mean=False), _unranked(votes), fields)

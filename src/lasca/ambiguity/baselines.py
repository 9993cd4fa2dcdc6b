"""What two-truths is compared with, under the same interface: the paper's rank-1 model, and three baselines.

*rank-1*: how much agreement an annotator meets at a token, from the reliable cluster alone (the paper's model). For a
sequence, A(l, j) is the number of reliable annotators, l included, who gave token j the label l gave it. The rank-1 fit
A ≈ ω μᵀ (paper, section 4.1) gives ω_l, how much annotator l agrees with the others, and μ_j, the unambiguity of token
j. Ambiguous are the tokens with the smallest μ; S(y) = mean of ω over those who gave y (eq. 17) ranks the labels there.

Differences from the paper:
- E8: the paper splits the singular value evenly, ω = U√Λ, μ = V√Λ. Then μ shrinks with the length of the sequence
  (as length^(-1/4)), and ranks over a corpus compare unlike things. Default (`scaling="corrected"`): A(l, j) is
  divided by the number of reliable annotators of j and ω has mean 1 in each sequence, so that μ_j is the share of
  agreement an average reliable annotator meets. `scaling="paper"` is literal.
- Missing annotations (the paper has none): the fit is on observed cells only, by alternating least squares, which on
  complete data converges to the leading singular triplet; A is positive, so ω and μ are positive without a choice of
  sign (Perron–Frobenius).
- A token with fewer than two reliable annotators has no μ (nan); such tokens are counted.
- Without clusters (`truth.clusters is None`) the reliable annotators are those above the best split of the
  reliabilities into two groups (one-dimensional 2-means); everybody, if the groups' means differ by less than 0.05.

*Baselines*:
- vote-entropy: entropy of the shares of the labels a token was given. It cannot tell a split from slips.
- posterior-entropy: entropy of the truth model's probabilities. It tells how unsure the *one* truth is.
- crowdtruth (Dumitrache et al. 2018): 1 − unit quality, see `lasca.evaluate.crowdtruth_scores`.
"""

from __future__ import annotations

import numpy as np

from lasca.ambiguity.record import Ranking, vote_scores, without_company
from lasca.arrays import Bools
from lasca.engine import chunks, run_ordered
from lasca.evaluate.crowdtruth_scores import crowdtruth_rounds
from lasca.kernels import agreement
from lasca.kernels.agreement import rank1_pass
from lasca.truth import Truth
from lasca.truth.base import Votes

__all__ = ["crowdtruth", "posterior_entropy", "rank1", "reliable_annotators", "vote_entropy"]

MAX_ITER, TOL = 1000, 1e-10
LEAST_GAP = 0.05


def reliable_annotators(truth: Truth, votes: Votes) -> Bools:
    """Return who belongs to the reliable cluster, or above the split of the reliabilities where there is none."""
    gave = np.bincount(votes.annotator, minlength=votes.n_annotators) > 0
    if truth.clusters is not None:
        return np.asarray((truth.clusters.assignment == truth.clusters.reliable) & gave)
    reliability = np.asarray(truth.annotators.column("reliability"), dtype=np.float64)
    values = np.sort(reliability[gave])
    best, border = np.inf, -np.inf
    for k in range(1, len(values)):
        low, high = values[:k], values[k:]
        within = float(((low - low.mean()) ** 2).sum() + ((high - high.mean()) ** 2).sum())
        if within < best and high.mean() - low.mean() >= LEAST_GAP and values[k] > values[k - 1]:
            best, border = within, values[k]
    return np.asarray(gave & (reliability >= border))


def rank1(votes: Votes, truth: Truth, scaling: str, n_threads: int | None, chunk_size: int) -> Ranking:
    """Fit the rank-1 model to every sequence."""
    reliable = reliable_annotators(truth, votes)
    mu = np.full(votes.n_tokens, np.nan)
    omega = np.full(len(votes.label), np.nan)
    share = scaling == "corrected"

    def work(chunk: tuple[int, int]) -> int:
        arrays = (votes.offsets, votes.start, votes.annotator, votes.label, votes.n_labels, reliable, share)
        return int(rank1_pass(*chunk, *arrays, MAX_ITER, TOL, mu, omega))

    unfinished = sum(run_ordered(work, chunks(votes.start[votes.offsets], chunk_size), n_threads))
    mu = np.round(mu, 9)  # what differs by less than the tolerance of the fit is a tie
    n_reliable = int(reliable.sum())
    warnings = []
    if n_reliable < 2:
        warnings.append(
            f"the reliable cluster has {n_reliable} annotator(s): nothing can be ranked; use another method"
        )
    if unfinished:
        warnings.append(f"the rank-1 fit of {unfinished} sequence(s) had not settled after {MAX_ITER} steps")
    fields = {
        "unambiguity": mu,
        "diagnostics": {
            "reliable_annotators": np.flatnonzero(reliable).tolist(),
            "from_clusters": truth.clusters is not None,
        },
        "warnings": tuple(warnings),
    }
    none = np.diff(votes.start) == 0
    unranked = {
        "not annotated": int(none.sum()),
        "fewer than two reliable annotators": int((np.isnan(mu) & ~none).sum()),
    }
    return Ranking(-mu, vote_scores(votes, omega, mean=True), unranked, fields)


def vote_entropy(votes: Votes, truth: Truth) -> Ranking:
    """Rank tokens by the entropy of their votes."""
    entropy = np.empty(votes.n_tokens)
    agreement.vote_entropy(votes.start, votes.label, votes.n_labels, entropy)
    return Ranking(entropy, vote_scores(votes, np.ones(len(votes.label)), mean=False), without_company(votes))


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
    return Ranking(score, vote_scores(votes, found.worker[votes.annotator], mean=False), without_company(votes), fields)

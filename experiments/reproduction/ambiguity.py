"""Finding the ambiguous tokens of T-DGA in simulated crowds: all methods, against the two golds."""

from __future__ import annotations

from typing import Any

import numpy as np

from lasca import evaluate, simulate
from lasca.ambiguity import find_ambiguity
from lasca.confusion import LabelConfusion, label_confusion
from lasca.corpus import CrowdCorpus
from lasca.truth import Truth
from reproduction.jobs import Job, Scope
from reproduction.paper import CROWDS
from reproduction.tweets import fitted, tdga

__all__ = ["HARD_CASES", "METHODS", "SCORES", "TRUTHS", "jobs", "measure"]

METHODS: dict[str, dict[str, Any]] = {
    "two-truths": {"method": "two-truths"},
    "rank-1": {"method": "rank-1"},
    "rank-1, paper's scaling": {"method": "rank-1", "scaling": "paper"},
    "crowdtruth": {"method": "crowdtruth"},
    "posterior-entropy": {"method": "posterior-entropy"},
    "vote-entropy": {"method": "vote-entropy"},
}
SCORES = ("acc1", "acc2", "AP", "AUROC", "ECE", "Spearman")
HARD_CASES = (0.3, 0.4, 0.5)
TRUTHS = {"independent": "hc", "difficulty": "hc"}
BINS = 15


def jobs(scope: Scope) -> list[Job]:
    """Return the crowds to look at."""
    return [
        Job("ambiguity", {"errors": errors, "groups": groups, "hard_cases": h, "seed": seed}, cost=18.0)
        for errors in TRUTHS
        for h in ((0.4,) if scope.quick else HARD_CASES)
        for groups in CROWDS
        for seed in scope.seeds
    ]


def measure(errors: str, groups: str, hard_cases: float, seed: int) -> dict[str, Any]:
    """Score every method on one crowd; the paper's cluster model says who is reliable."""
    corpus = simulate.crowd(
        tdga(), gold="gold1", second_gold="gold2", groups=groups, errors=errors, wrong="uniform",
        hard_cases=hard_cases, seed=seed,
    )  # fmt: skip
    truth = fitted(TRUTHS[errors], corpus, seed)
    return {name: scores_of(corpus, truth, **options) for name, options in METHODS.items()}


def scores_of(corpus: CrowdCorpus, truth: Truth, **options: Any) -> dict[str, float | None]:
    """Score one method; ECE only where the score is a probability."""
    first, second = corpus.golds["gold1"], corpus.golds["gold2"]
    found = find_ambiguity(corpus, truth, **options)
    score = evaluate.ambiguity(found.score, first, second, tokens=found.tokens, candidates=list(found.candidates))
    both = (first >= 0) & (second >= 0) & np.isfinite(found.score)
    ece = None
    if found.method == "two-truths":
        ece = calibration_error((first != second)[both], found.score[both])
    correlation = spearman(corpus, label_confusion(corpus, truth, found))
    return dict(zip(SCORES, (score.acc1, score.acc2, score.average_precision, score.auroc, ece, correlation)))


def calibration_error(positive: np.ndarray[Any, Any], proba: np.ndarray[Any, Any]) -> float:
    """Return the mean distance of probability and rate over equal bins of the probability, weighted by their sizes."""
    at = np.minimum((proba * BINS).astype(int), BINS - 1)
    gaps = [abs(positive[at == b].mean() - proba[at == b].mean()) * (at == b).mean() for b in np.unique(at)]
    return float(sum(gaps))


def spearman(corpus: CrowdCorpus, derived: LabelConfusion) -> float:
    """Return the rank correlation, over pairs of labels, of a derived confusion with that of the two golds."""
    from scipy.stats import spearmanr

    gold = LabelConfusion.from_golds(corpus, "gold1", "gold2").matrix
    upper = np.triu_indices(len(gold), 1)
    return float(spearmanr(derived.matrix[upper], gold[upper]).statistic)

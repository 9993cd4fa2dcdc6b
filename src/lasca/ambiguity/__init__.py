"""Ambiguity: the tokens where reliable people disagree, and the labels that compete there."""

from __future__ import annotations

from typing import Any

import numpy as np

from lasca.ambiguity.record import Ambiguity, Candidates, Ranking, flagged, pick_candidates
from lasca.arrays import borders
from lasca.corpus import CrowdCorpus
from lasca.errors import ModelError, ParameterError
from lasca.estimator import check_choice, check_int, check_number
from lasca.truth import Truth
from lasca.truth.base import Progress, Votes

__all__ = ["METHODS", "SCALINGS", "Ambiguity", "Candidates", "find_ambiguity"]

METHODS = ("two-truths", "rank-1", "vote-entropy", "posterior-entropy", "crowdtruth")
SCALINGS = ("corrected", "paper")
_BLOCK = 100_000


def find_ambiguity(
    corpus: CrowdCorpus,
    truth: Truth,
    method: str = "two-truths",
    fraction: float | None = 0.10,
    *,
    threshold: float = 0.5,
    scaling: str = "corrected",
    max_iter: int = 200,
    tol: float = 1e-6,
    sample: int = 200_000,
    n_threads: int | None = None,
    chunk_size: int = 50_000,
    progress: Progress | None = None,
) -> Ambiguity:
    """Find the ambiguous tokens: the `fraction` of those that can be ranked with the highest scores.

    With `fraction=None` (two-truths only) all tokens whose probability is above `threshold`. `scaling` is of rank-1:
    "corrected" or "paper"; `max_iter`, `tol` (rise of the objective per annotation) and `sample` (on about how many
    annotations EM runs) are of two-truths. Neither `n_threads` nor `chunk_size` changes the result.
    """
    check_choice("method", method, METHODS)
    if fraction is not None:
        fraction = check_number("fraction", fraction, low=0, high=1)
    elif method != "two-truths":
        raise ParameterError("fraction", None, f"a number in [0, 1] for {method}: its score is no probability")
    threshold = check_number("threshold", threshold, low=0, high=1)
    options = {
        "threshold": threshold,
        "scaling": check_choice("scaling", scaling, SCALINGS),
        "max_iter": check_int("max_iter", max_iter, low=2),
        "tol": check_number("tol", tol, low=0),
        "sample": check_int("sample", sample, low=1),
    }
    threads = {"n_threads": n_threads, "chunk_size": check_int("chunk_size", chunk_size, low=1)}
    _check_match(corpus, truth)
    ranking = _ranking(Votes.of(corpus), truth, method, options | threads | {"progress": progress})
    tokens = flagged(ranking.score, truth.entropy, fraction, threshold, ranking.least)
    pairs = {} if ranking.pairs is None else dict(ranking.pairs(tokens))
    return Ambiguity(
        method=method,
        params={"fraction": fraction, **options},
        label_names=corpus.labels,
        score=ranking.score,
        tokens=tokens,
        unranked=ranking.unranked,
        **_candidates(ranking, truth, tokens, pairs.get("pair_label")),
        **pairs,
        **ranking.fields,
    )


def _check_match(corpus: CrowdCorpus, truth: Truth) -> None:
    if truth.label_names != corpus.labels or not np.array_equal(truth.offsets, corpus.offsets):
        raise ModelError(
            "this truth was not inferred from this corpus: sequences or labels differ",
            got=f"{len(truth.labels):,} tokens and {len(truth.label_names)} labels in the truth, "
            f"{corpus.n_tokens:,} and {corpus.n_labels} in the corpus",
            hint="Fit the truth model on the same corpus",
        )
    if len(truth.annotators) != corpus.n_annotators:
        raise ModelError("the truth knows other annotators than the corpus has", hint="Fit it on the same corpus")


def _ranking(votes: Votes, truth: Truth, method: str, options: dict[str, Any]) -> Ranking:
    """Run the method; its kernels are loaded only now."""
    if method == "two-truths":
        from lasca.ambiguity.two_truths import two_truths

        names = ("max_iter", "tol", "sample", "n_threads", "chunk_size", "progress")
        return two_truths(votes, truth, **{name: options[name] for name in names})
    from lasca.ambiguity import baselines

    if method == "rank-1":
        return baselines.rank1(votes, truth, options["scaling"], options["n_threads"], options["chunk_size"])
    return {
        "vote-entropy": baselines.vote_entropy,
        "posterior-entropy": baselines.posterior_entropy,
        "crowdtruth": baselines.crowdtruth,
    }[method](votes, truth)


def _candidates(ranking: Ranking, truth: Truth, tokens: Any, best_pair: Any) -> dict[str, Any]:
    """Find the candidates block by block: a block holds one score per token and label."""
    parts = []
    for at in range(0, max(len(tokens), 1), _BLOCK):
        block = slice(at, at + _BLOCK)
        best_two = None if best_pair is None else best_pair[block, 0]
        parts.append(pick_candidates(ranking.label_scores(tokens[block]), truth.labels[tokens[block]], best_two))
    counts = np.concatenate([np.diff(start) for start, _, _ in parts])
    return {
        "candidate_start": borders(counts),
        "candidate_label": np.concatenate([label for _, label, _ in parts]),
        "candidate_score": np.concatenate([score for _, _, score in parts]),
    }

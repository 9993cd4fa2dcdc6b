"""A plain majority vote for calibrating simulated crowds; `lasca.MajorityVote` is the one for users."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus

__all__ = ["majority_accuracy", "majority_labels"]


def majority_labels(corpus: CrowdCorpus) -> npt.NDArray[np.int16]:
    """Return the label most annotators gave each token, -1 where nobody did.

    Ties go to the label that is more frequent among all votes, then to the one that comes first.
    """
    n_labels, n_tokens = corpus.n_labels, corpus.n_tokens
    if not n_labels:
        return np.full(n_tokens, -1, np.int16)
    total = np.bincount(corpus.annotation_label, minlength=n_labels)
    order = np.lexsort((np.arange(n_labels), -total))  # the label that wins a tie against all others comes first
    rank = np.empty(n_labels, np.int64)
    rank[order] = np.arange(n_labels)
    result = np.empty(n_tokens, np.int16)
    step = max(1, (1 << 22) // n_labels)
    for first in range(0, n_tokens, step):
        last = min(first + step, n_tokens)
        part = slice(int(corpus.token_start[first]), int(corpus.token_start[last]))
        token = np.repeat(np.arange(last - first), np.diff(corpus.token_start[first : last + 1]))
        key = token * n_labels + rank[corpus.annotation_label[part]]
        votes = np.bincount(key, minlength=(last - first) * n_labels).reshape(-1, n_labels)
        result[first:last] = np.where(votes.any(axis=1), order[votes.argmax(axis=1)], -1)
    return result


def majority_accuracy(corpus: CrowdCorpus, gold: npt.NDArray[np.int16]) -> float:
    """Return the share of the tokens with a gold label that majority vote gets right."""
    known = gold >= 0
    return float((majority_labels(corpus)[known] == gold[known]).mean()) if known.any() else float("nan")

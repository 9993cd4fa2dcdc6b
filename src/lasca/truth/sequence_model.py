"""The start of models over whole corpora: log posteriors of a short Dawid–Skene run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block, Votes
from lasca.truth.chain import trust
from lasca.truth.dawid_skene import DawidSkene

__all__ = ["start_evidence", "trust"]


def start_evidence(corpus: CrowdCorpus, votes: Votes, *, hard: bool) -> npt.NDArray[np.float32]:
    """Return log posteriors of a short Dawid–Skene run; with `hard`, its labels alone where there are votes.

    Its prior expects annotators to be right, so that small crowds and rare labels have a sensible start too.
    """
    start = DawidSkene(
        variational=True, diagonal=2.0, off_diagonal=1.0 / votes.n_labels, max_iter=10, tol=0, n_threads=1
    )
    proba = np.array(start._infer(corpus, votes, lambda share, words: None).proba, dtype=np.float32)
    if hard:
        voted = np.flatnonzero(Block(votes, 0, votes.n_tokens).voices)
        best = proba[voted].argmax(axis=1)
        proba[voted] = 0
        proba[voted, best] = 1
    return np.log(np.maximum(proba, np.float32(1e-30)))

"""The start of models over whole corpora: log posteriors of a short Dawid–Skene run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block, Votes
from lasca.truth.chain import dawid_skene_start, trust
from lasca.truth.dawid_skene import DawidSkene

__all__ = ["start_evidence", "trust"]


def start_evidence(corpus: CrowdCorpus, votes: Votes, *, hard: bool) -> npt.NDArray[np.float32]:
    """Return the start of a chain learner for all tokens at once."""
    start = dawid_skene_start(DawidSkene(n_threads=1), votes, hard=hard)
    return start.labels(Block(votes, 0, votes.n_tokens))

"""Where chain learners begin: at another learner's state, asked block by block.

A short Dawid–Skene run knows what annotators are worth, and nothing of neighbours and words. Where votes do not meet it
knows nothing at all, and the shares of the votes are the better start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block, Votes
from lasca.learn import loop_settings, run_learner
from lasca.truth import dawid_skene as ds
from lasca.truth.base import TruthModel
from lasca.truth.chain import StateSpace
from lasca.truth.evidence import Floats

__all__ = ["DawidSkeneStart", "LevelStart", "dawid_skene_start", "share_that_meets", "start_evidence", "trust"]

SOLE = 1e6
"""Pseudo-counts of right labels for an annotator who is alone."""
LEAST_SHARE = 1e-3
EASIEST, HARDEST = 0.95, 0.05
"""How easy a label is at most and at least, by the share of votes it has."""


@dataclass(frozen=True)
class DawidSkeneStart:
    """The log posteriors of a short Dawid–Skene run; `hard`: its labels alone where anything is said."""

    learner: ds.ConfusionLearner
    parameters: ds.Parameters
    hard: bool

    def evidence(self, block: Block, space: StateSpace) -> npt.NDArray[np.float32]:
        """Return them, each state as the label it shows as."""
        return self.labels(block)[:, space.shows]

    def labels(self, block: Block) -> npt.NDArray[np.float32]:
        """Return them by label."""
        proba = np.empty((len(block), block.votes.n_labels), np.float32)
        self.learner.describe(self.parameters, block, None, proba)
        if self.hard:
            voted = np.flatnonzero(block.voices)
            best = proba[voted].argmax(axis=1)
            proba[voted] = 0
            proba[voted, best] = 1
        return np.log(np.maximum(proba, np.float32(1e-30)))


def dawid_skene_start(model: TruthModel, votes: Votes, *, hard: bool) -> DawidSkeneStart:
    """Run Dawid–Skene for ten steps, on the engine of a model.

    Its prior expects annotators to be right, so that small crowds and rare labels have a sensible start too.
    """
    short = ds.DawidSkene(variational=True, diagonal=2.0, off_diagonal=1.0 / votes.n_labels, max_iter=10, tol=0)
    learner = short._learner(votes)
    with model._work(learner, ds.blocks_of(votes)) as work:
        run = run_learner(learner, work, loop_settings(short), scale=votes.n_votes)
    return DawidSkeneStart(learner, run.state, hard)


def trust(votes: Votes) -> float:
    """Return pseudo-counts of right labels that a sole annotator gets: nobody is there to doubt them, the text is not.

    Neighbours and words then only speak where the annotator is silent, or where the tag scheme forbids what they said.
    """
    return SOLE if votes.n_voters == 1 else 0.0


@dataclass(frozen=True)
class LevelStart:
    """Dawid–Skene's log posteriors as far as votes meet, else the shares of votes; spread over levels of difficulty."""

    first: DawidSkeneStart | None
    """None: the shares of votes alone."""
    meet: float
    """The share of votes that are not alone on their token."""

    def evidence(self, block: Block, space: StateSpace) -> npt.NDArray[np.float32]:
        """Return them: a label is the easier the more votes it has."""
        share = vote_shares(block)
        labels = np.maximum(share, LEAST_SHARE)
        if self.first is not None:
            labels = self.meet * np.exp(self.first.labels(block)) + (1 - self.meet) * labels
        if space.levels == 1:
            return np.log(labels).astype(np.float32)[:, space.shows]
        harder = np.clip(1 - share, HARDEST, EASIEST) / (space.levels - 1)
        weight = np.hstack([np.clip(share, HARDEST, EASIEST), *[harder] * (space.levels - 1)])
        return (np.tile(np.log(labels), (1, space.levels)) + np.log(weight)).astype(np.float32)


def vote_shares(block: Block) -> Floats:
    """Return the share of a token's votes that each label has; rows of zeros where there are none."""
    votes, T = block.votes, block.votes.n_labels
    start = votes.start[block.first : block.last + 1]
    token = np.repeat(np.arange(len(block)), np.diff(start))
    found = np.bincount(token * T + votes.label[start[0] : start[-1]], minlength=len(block) * T).reshape(-1, T) * 1.0
    if votes.soft is not None:
        part = block.part(votes.soft)
        np.add.at(found, votes.soft.token[part] - block.first, votes.soft.proba[part])
    return np.asarray(found / np.maximum(block.voices, 1)[:, None])


def share_that_meets(votes: Votes) -> float:
    """Return the share of votes on tokens that have two at least."""
    n = Block(votes, 0, votes.n_tokens).voices
    return float(n[n > 1].sum() / n.sum())


def start_evidence(corpus: CrowdCorpus, votes: Votes, *, hard: bool) -> npt.NDArray[np.float32]:
    """Return the start of a chain learner for all tokens at once, for models over whole corpora."""
    start = dawid_skene_start(ds.DawidSkene(n_threads=1), votes, hard=hard)
    return start.labels(Block(votes, 0, votes.n_tokens))

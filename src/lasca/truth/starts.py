"""Where chain learners begin: at another learner's state, asked block by block.

A short Dawid–Skene run knows what annotators are worth, and nothing of neighbours and words. Where votes do not meet it
knows nothing at all, and the shares of the votes are the better start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lasca.arrays import Floats, Proba
from lasca.corpus.votes import Block, Votes
from lasca.learn import loop_settings, run_learner
from lasca.truth import dawid_skene as ds
from lasca.truth.base import TruthModel
from lasca.truth.chain import StateSpace
from lasca.truth.families import Families

__all__ = ["DawidSkeneStart", "LevelStart", "Meeting", "WeighedStart", "dawid_skene_start", "judged_start", "trust"]

SOLE = 1e6
"""Pseudo-counts of right labels for an annotator who is alone."""
LEAST_SHARE = 1e-3
MOSTLY = 0.9
"""Where so many votes have two beside them the others do not matter."""
EASIEST, HARDEST = 0.95, 0.05
"""How easy a label is at most and at least, by the share of votes it has."""


@dataclass(frozen=True)
class DawidSkeneStart:
    """The log posteriors of a short Dawid–Skene run; `hard`: its labels alone where anything is said."""

    learner: ds.ConfusionLearner
    parameters: ds.Parameters
    hard: bool
    families: Families | None = None
    """One voice of each was heard on a token; None: all of them."""

    def evidence(self, block: Block, space: StateSpace) -> Proba:
        """Return them, each state as the label it shows as."""
        return self.labels(block)[:, space.shows]

    def labels(self, block: Block) -> Proba:
        """Return them by label."""
        proba = np.empty((len(block), block.votes.n_labels), np.float32)
        heard = block if self.families is None else self.families.one_each(block)
        self.learner.describe(self.parameters, heard, None, proba)
        if self.hard:
            voted = np.flatnonzero(block.voices)
            best = proba[voted].argmax(axis=1)
            proba[voted] = 0
            proba[voted, best] = 1
        return np.log(np.maximum(proba, np.float32(1e-30)))


@dataclass(frozen=True)
class OneEach:
    """Where a block is of which one voice of each family is heard on a token."""

    place: Any
    families: Families

    def load(self) -> Block:
        """Read it."""
        return self.families.one_each(self.place.load())


def dawid_skene_start(
    model: TruthModel, votes: Votes, *, hard: bool, families: Families | None = None
) -> DawidSkeneStart:
    """Run Dawid–Skene for ten steps, on the engine of a model; of `families` one voice is heard on a token.

    Its prior expects annotators to be right, so that small crowds and rare labels have a sensible start too. Lone votes
    teach it what they teach the model.
    """
    lone, rest = bool(getattr(model, "lone_votes", False)), 1.0 / votes.n_labels
    short = ds.DawidSkene(variational=True, diagonal=2.0, off_diagonal=rest, max_iter=10, tol=0, lone_votes=lone)
    learner = short._learner(votes)
    blocks: list[Any] = ds.blocks_of(votes)  # or places on disk
    if families is not None and families.thin:
        blocks = [families.one_each(b) if isinstance(b, Block) else OneEach(b, families) for b in blocks]
    with model._work(learner, blocks) as work:
        run = run_learner(learner, work, loop_settings(short), scale=votes.n_votes)
    return DawidSkeneStart(learner, run.state, hard, families)


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

    def evidence(self, block: Block, space: StateSpace) -> Proba:
        """Return them: a label is the easier the more votes it has."""
        labels, share = self.shares(block)
        if self.first is not None:
            labels = self.meet * np.exp(self.first.labels(block)) + (1 - self.meet) * labels
        if space.levels == 1:
            return np.log(labels).astype(np.float32)[:, space.shows]
        harder = np.clip(1 - share, HARDEST, EASIEST) / (space.levels - 1)
        weight = np.hstack([np.clip(share, HARDEST, EASIEST), *[harder] * (space.levels - 1)])
        return (np.tile(np.log(labels), (1, space.levels)) + np.log(weight)).astype(np.float32)

    def shares(self, block: Block) -> tuple[Floats, Floats]:
        """Return the shares of votes, as far as they are the start, and as they tell what is easy."""
        share = vote_shares(block)
        return np.maximum(share, LEAST_SHARE), share


@dataclass(frozen=True)
class WeighedStart(LevelStart):
    """The same by hard votes alone, weighed by families where they tell what is easy."""

    families: Families

    def shares(self, block: Block) -> tuple[Floats, Floats]:
        """Return the shares of hard votes."""
        hard = replace(block, votes=replace(block.votes, soft=None))
        weight = np.where(self.families.unaware(block), 0.0, self.families.weights(block))
        return vote_shares(hard, (weight > 0).astype(np.float64)) + LEAST_SHARE, vote_shares(hard, weight)


def vote_shares(block: Block, weight: Floats | None = None) -> Floats:
    """Return the share of a token's votes that each label has; rows of zeros where there are none."""
    votes, T = block.votes, block.votes.n_labels
    cell, size = block.token * T + votes.label[block.hard], len(block) * T
    found = np.bincount(cell, weight, size).reshape(-1, T) * 1.0
    if block.soft is not None:
        np.add.at(found, block.soft.token, block.soft.proba)
    voices = block.voices if weight is None else found.sum(axis=1)
    return np.asarray(found / np.maximum(voices, 1e-9)[:, None])


@dataclass(frozen=True)
class Meeting:
    """Asks blocks how many votes have others beside them."""

    def summarise(self, block: Block) -> tuple[int, int, int, int]:
        """Count those that have another, those that have two others, all of them, and the tokens that have any."""
        n = block.voices
        return int(n[n > 1].sum()), int(n[n > 2].sum()), int(n.sum()), int((n > 0).sum())


def judged_start(model: TruthModel, votes: Votes) -> DawidSkeneStart | LevelStart:
    """Return Dawid–Skene's start, or one at the shares of the votes as far as most tokens have no third vote.

    Of two votes that differ nobody can say who missed something and who invented it. Dawid–Skene takes rare labels for
    inventions then; people miss far more than they invent.
    """
    start = dawid_skene_start(model, votes, hard=False)
    with model._work(Meeting(), ds.blocks_of(votes)) as work:
        _, judged, n, _ = work.summary()
    return start if judged > MOSTLY * n else LevelStart(start, judged / n)

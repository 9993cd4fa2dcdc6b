"""Rounds of the sequence clusters model, and texts, for its tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block
from lasca.truth.annotator_models import Matrices, VoteRows, confusion_prior
from lasca.truth.base import Votes
from lasca.truth.beside import Beside
from lasca.truth.chain import ChainLearner, StateSpace, blocks_of, with_words
from lasca.truth.dawid_skene import DawidSkene
from lasca.truth.evidence import Source, Texts, Words
from lasca.truth.sequence_rounds import Fit, Plan, Rounds
from lasca.truth.starts import LevelStart, Meeting, dawid_skene_start
from lasca.truth.tempering import calibrated, without_text

LEVELS = ((5.0, 0.5), (5.0, 5.0))
Text = npt.NDArray[np.float32]


def states(
    corpus: CrowdCorpus,
    text: Text | None = None,
    *,
    levels: tuple[tuple[float, float], ...] = LEVELS,
    markov: bool = True,
    memory: bool = True,
    words: bool = True,
    transition_prior: float = 1.0,
    word_prior: float = 1.0,
    text_prior: tuple[float, float] = (11.0, 10.0),
) -> tuple[ChainLearner, list[Block]]:
    votes, n_words = with_words(corpus, Votes.of(corpus))
    blocks = blocks_of(votes)
    space = StateSpace.of(corpus.labels, levels=len(levels), markov=markov)
    sources: list[Source] = [Matrices.of(VoteRows.of(blocks, memory), space.shows, corpus.labels, levels)]
    if words:
        sources.append(Words(n_words, word_prior, len(levels)))
    if text is not None:
        blocks = [replace(block, beside=Beside(text[block.first : block.last])) for block in blocks]
        sources.append(Texts(confusion_prior(corpus.n_labels, *text_prior), len(levels)))
    rules = StateSpace.of(corpus.labels)
    start = LevelStart(None, 1.0)
    return ChainLearner(space, tuple(sources), start, transition_prior, decode="marginal", rules=rules), blocks


def fitted(
    corpus: CrowdCorpus, text: Text | None = None, *, annotators: Matrices | None = None, n: int = 20, **changes: Any
) -> Fit:
    """Run one round from the shares of votes."""
    learner, blocks = states(corpus, text, **changes)
    if annotators is not None:
        learner = replace(learner, sources=(annotators, *learner.sources[1:]))
    plan = Plan(None, True, True, 0, 1.0, 1.0, 0.0, None, 0, n, 0.0)
    model = DawidSkene(n_threads=1)
    start = dawid_skene_start(model, blocks[0].votes, hard=False)
    rng, votes = np.random.default_rng(0), blocks[0].votes
    meet = share_that_meets(votes)
    rounds = Rounds(corpus.labels, votes, blocks, model._work, start, meet, plan, rng, lambda share, words: None)
    rounds.start = "majority"
    return rounds.round("a round", learner)


def share_that_meets(votes: Votes) -> float:
    meeting, _, n, _ = Meeting().summarise(Block(votes, 0, votes.n_tokens))
    return meeting / n


def path_of(fit: Fit) -> Any:
    return np.concatenate([block.beside.path for block in fit.blocks])


def with_labels(fit: Fit, labels: Text) -> Fit:
    """Put other probabilities beside the blocks."""
    said = [replace(block.beside, mean=labels[block.first : block.last]) for block in fit.blocks]
    return fit.saying(said)


def plain_of(fit: Fit) -> Any:
    """What votes and words say alone."""
    return np.concatenate([block.beside.plain for block in without_text(fit).blocks]).astype(np.float64)


def calibrated_of(fit: Fit, doubt: float, **options: Any) -> tuple[Any, dict[str, float]]:
    made, calibration, numbers = calibrated(fit, doubt, most=10**6, **options)
    return np.concatenate([calibration.proba(block.beside) for block in made.blocks]), numbers


def some_text(corpus: CrowdCorpus, seed: int = 0) -> Text:
    return np.random.default_rng(seed).dirichlet(np.ones(corpus.n_labels), corpus.n_tokens).astype(np.float32)

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
from lasca.truth.chain import ChainLearner, StateSpace, blocks_of, with_words
from lasca.truth.dawid_skene import DawidSkene
from lasca.truth.evidence import Beside, Source, Texts, Words
from lasca.truth.sequence_rounds import Fit, Plan, Rounds
from lasca.truth.starts import LevelStart, dawid_skene_start

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
    rounds = Rounds(corpus, blocks, model._work, start, plan, np.random.default_rng(0), lambda share, words: None)
    rounds.start = "majority"
    return rounds.round("a round", learner)


def some_text(corpus: CrowdCorpus, seed: int = 0) -> Text:
    return np.random.default_rng(seed).dirichlet(np.ones(corpus.n_labels), corpus.n_tokens).astype(np.float32)

"""What HmmCrowd and BayesianSequence share: the start, the loop of E and M steps, the decoding, the result.

A model is a *learner*: rows of annotations (and words), the rules of the chain, and a function from expected counts to
the next state. The loop is `run_em`; the objective of a step is the log sum over all paths under the state's tables
minus the state's penalty (KL(q || p), or minus the log prior density): the ELBO, or the log posterior. It never falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.engine import available_threads
from lasca.estimator import check_choice
from lasca.truth.base import Posterior, Progress, Votes
from lasca.truth.dawid_skene import DawidSkene
from lasca.truth.em import LoopSettings, loop_settings, run_em
from lasca.truth.evidence import Floats, Rows, Sources, expected_rows
from lasca.truth.sequence import Chain, ChainCounts, ChainPrior, best_paths, marginals

__all__ = ["DECODERS", "Expected", "Learner", "Loop", "State", "fit_sequences", "start_evidence", "trust"]

DECODERS = ("viterbi", "marginal")
NOISE = 0.5
"""How far a restart leaves the first start: the standard deviation of the noise on the log evidence."""
SOLE = 1e6
"""Pseudo-counts of right labels for an annotator who is alone."""


@dataclass(frozen=True)
class Loop:
    """How to run: the parameters every sequence model has, checked."""

    settings: LoopSettings
    n_threads: int
    decode: str

    @classmethod
    def of(cls, model: Any) -> Loop:
        """Check and take them from an estimator."""
        return cls(
            loop_settings(model),
            available_threads(model.n_threads),
            check_choice("decode", model.decode, DECODERS),
        )


@dataclass(frozen=True)
class State:
    """What the next E step needs."""

    chain: Chain
    crowd: Floats
    """The table of the annotations' rows."""
    words: Floats | None
    """The table of the words' rows, or None."""
    penalty: float


@dataclass(frozen=True)
class Expected:
    """What an E step gives: expected counts, and the state they were made with (None at the start)."""

    chain: ChainCounts
    crowd: Floats
    words: Floats | None
    state: State | None


class Learner(Protocol):
    """The part of a sequence model that is its own."""

    crowd_rows: Rows
    word_rows: Rows | None
    prior: ChainPrior
    legal: ChainPrior
    """The rules for labels, where `prior` has those for states."""

    def maximise(self, expected: Expected) -> State:
        """Return the next state."""

    def confusion(self, counts: Floats) -> Floats:
        """Return (annotator, true, given) from the expected counts of the annotations' rows."""


def trust(votes: Votes) -> float:
    """Return pseudo-counts of right labels that a sole annotator gets: nobody is there to doubt them, the text is not.

    Neighbours and words then only speak where the annotator is silent, or where the tag scheme forbids what they said.
    """
    return SOLE if len(np.unique(votes.annotator)) == 1 else 0.0


def start_evidence(corpus: CrowdCorpus, votes: Votes, *, hard: bool) -> npt.NDArray[np.float32]:
    """Return log posteriors of a short Dawid–Skene run; with `hard`, its labels alone where there are votes.

    Its prior expects annotators to be right, so that small crowds and rare labels have a sensible start too.
    """
    start = DawidSkene(
        variational=True, diagonal=2.0, off_diagonal=1.0 / votes.n_labels, max_iter=10, tol=0, n_threads=1
    )
    proba = np.array(start._infer(corpus, votes, lambda share, words: None).proba, dtype=np.float32)
    if hard:
        voted = np.flatnonzero(np.diff(votes.start) > 0)
        best = proba[voted].argmax(axis=1)
        proba[voted] = 0
        proba[voted, best] = 1
    return np.log(np.maximum(proba, np.float32(1e-30)))


def fit_sequences(
    learner: Learner, votes: Votes, evidence: npt.NDArray[np.float32], loop: Loop, progress: Progress
) -> Posterior:
    """Start from log `evidence` (restarts: from a noisy copy), run the loop, and make a posterior of the best run."""
    n_threads = loop.n_threads
    states = learner.prior.states
    evidence = evidence[:, states.shows]
    proba = np.empty((votes.n_tokens, len(states.shows)))

    def expect(chain: Chain, sources: Sources, state: State | None, more: npt.NDArray[np.float32] | None) -> Expected:
        counts = marginals(votes.offsets, chain, sources, proba, n_threads, more)
        words = None if learner.word_rows is None else expected_rows(learner.word_rows, proba, n_threads)
        return Expected(counts, expected_rows(learner.crowd_rows, proba, n_threads), words, state)

    def start(evidence: npt.NDArray[np.float32]) -> State:
        return learner.maximise(expect(learner.prior.flat(), (), None, evidence))

    def initial(own_rng: np.random.Generator) -> State:
        noise = own_rng.standard_normal(evidence.shape, dtype=np.float32) * np.float32(NOISE)
        return start(np.maximum(evidence, np.float32(-5)) + noise)

    def step(state: State) -> tuple[State, float]:
        expected = expect(state.chain, _sources(learner, state), state, None)
        return learner.maximise(expected), expected.chain.log_sum - state.penalty

    run = run_em(
        initial,
        step,
        **loop.settings,
        scale=len(votes.label),
        progress=progress,
        first=start(evidence),
    )
    final = expect(run.state.chain, _sources(learner, run.state), run.state, None)
    by_label = states.by_label(proba, votes.n_labels)
    if loop.decode == "viterbi":
        path = best_paths(votes.offsets, run.state.chain, _sources(learner, run.state), n_threads)
        labels = states.shows.astype(np.int16)[path]
    else:
        labels = best_paths(votes.offsets, learner.legal.flat(), (), n_threads, by_label)
    return Posterior(
        by_label,
        learner.confusion(final.crowd),
        labels,
        trace=run.trace,
        diagnostics={**run.diagnostics(), "n_words": 0 if learner.word_rows is None else learner.word_rows.n_rows},
    )


def _sources(learner: Learner, state: State) -> Sources:
    sources = [(learner.crowd_rows, state.crowd)]
    if learner.word_rows is not None and state.words is not None:
        sources.append((learner.word_rows, state.words))
    return sources

"""The rounds of the sequence clusters model: a plan that runs chain learners one after the other.

Every round is one `ChainLearner` with fixed priors and fixed text, from the start to convergence. Rounds differ in
their sources: with or without memory, the clusters' priors, one more annotator that is a text model. What a round says
of tokens lies beside the blocks (`Word`), in memory or in files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lasca.arrays import Codes, Floats, Proba
from lasca.corpus.votes import Block
from lasca.engine import Work, added
from lasca.learn import Checkpoint, LoopSettings, run_learner
from lasca.truth.annotator_models import Matrices, VoteRows, confusion_prior
from lasca.truth.base import Progress
from lasca.truth.beside import Beside, Keep
from lasca.truth.chain import ChainLearner, ChainState, StateSpace
from lasca.truth.clusters import BicScore, found_clusters
from lasca.truth.evidence import Source, Texts, Words
from lasca.truth.finish import joined
from lasca.truth.result import Clusters
from lasca.truth.starts import DawidSkeneStart, LevelStart, trust

__all__ = ["LEAN", "TEXT_PRIOR", "Fit", "Plan", "Rounds", "Word", "keep_word"]

LEVELS = {True: ((5.0, 0.5), (5.0, 5.0)), False: ((50.0, 10.0), (15.0, 35.0))}
"""Pseudo-counts (correct, wrong) of easy and hard tokens, with memory (many rows) and without (few)."""
ONE_LEVEL = {True: ((11.0, 10.0),), False: ((110.0, 10.0),)}
"""The same if all tokens are alike: those of BayesianSequence."""
STARTS = {True: ("dawid-skene",), False: ("dawid-skene", "majority")}
MOST_STATES = 120
"""With more states than this there is one level only: the work grows with their square."""
FIRST_ITERATIONS = 15
"""Of the rounds that choose memory and the start: which is best shows early, and later rounds begin anew."""
LEAN = (2.0, 1.0)
"""Pseudo-counts (correct, wrong) of the rows of clusters and of the confusion matrices that are reported."""
TEXT_PRIOR = (11.0, 10.0)
"""Pseudo-counts (correct, wrong) of a text model's confusion."""


@dataclass(frozen=True)
class Plan:
    """Checked parameters."""

    memory: bool | None
    """None: by the evidence lower bound."""
    markov: bool
    difficulty: bool
    n_words: int
    """0: words are left out."""
    word_prior: float
    transition_prior: float
    strength: float
    n_clusters: int | None
    """None: by BIC."""
    rounds: int
    max_iter: int
    tol: float


@dataclass(frozen=True)
class Word(Beside):
    """What a round says of the tokens of a block: `mean`, and labels."""

    path: Codes | None = None
    """The legal path with the most tokens expected to be right."""


def keep_word(
    keep: Keep, number: int, block: Block, proba: Proba, path: Codes, statistics: Any
) -> tuple[Word | Path, tuple[Any, ...]]:
    """Keep what a learner says of a block, in place of what was said before; the text stays.

    Return what the block is to hold, and the statistics.
    """
    text = None if block.beside is None else block.beside.text
    return keep(number, Word(text, proba, path=path)), statistics


Open = Callable[..., AbstractContextManager[Work]]
"""Opens work of a learner on blocks; the third argument is a folder of its own."""


@dataclass(frozen=True)
class Fit:
    """One round: where it ended."""

    learner: ChainLearner
    blocks: Sequence[Any]
    """Beside each of them is its word."""
    folder: Path | None
    """Where that lies; None: in memory."""
    open: Open
    """Opens work on the blocks, for whoever has another question to them."""
    state: ChainState
    statistics: tuple[Any, ...]
    """Those of the last visit: log sum, first states, moves, the counts of each source."""
    trace: Floats
    converged: bool

    @property
    def objective(self) -> float:
        """The last objective."""
        return float(self.trace[-1])

    @property
    def annotators(self) -> Matrices:
        """The annotators: the first source."""
        first = self.learner.sources[0]
        assert isinstance(first, Matrices)
        return first

    @property
    def crowd(self) -> Floats:
        """The expected counts of the annotators' rows."""
        counts: Floats = self.statistics[3].table()
        return counts

    @property
    def labels(self) -> Proba:
        """The labels' probabilities, (n_tokens, T), all of them in memory."""
        proba: Proba = joined([block.load().beside.mean for block in self.blocks])
        return proba

    @property
    def is_told(self) -> bool:
        """Whether a text model was heard."""
        return any(isinstance(source, Texts) for source in self.learner.sources)

    def saying(self, said: Sequence[Any]) -> Fit:
        """Return the fit with something else beside its blocks."""
        return replace(self, blocks=_beside(self.blocks, said))

    def forget(self) -> None:
        """Remove what lies beside the blocks, if it lies in files."""
        for block in self.blocks:
            if isinstance(block.beside, Path):
                block.beside.unlink(missing_ok=True)


def _beside(blocks: Sequence[Any], said: Sequence[Any]) -> list[Any]:
    return [replace(block, beside=own) for block, own in zip(blocks, said)]


class Rounds:
    """Rounds over one corpus; each begins at the start, with the priors and the text it is given."""

    def __init__(
        self,
        labels: Sequence[str],
        votes: Any,
        blocks: Sequence[Any],
        open: Open,
        start: DawidSkeneStart,
        meet: float,
        plan: Plan,
        rng: np.random.Generator,
        progress: Progress,
        *,
        folder: Path | None = None,
        every: int | None = None,
    ) -> None:
        """`meet`: the share of votes that are not alone; `folder`: where words lie, `every`: with checkpoints there."""
        self.labels, self.votes, self.blocks, self.open = tuple(labels), votes, blocks, open
        self.plan, self.rng, self.progress = plan, rng, progress
        self.folder, self.every = folder, every
        self.starts = {"dawid-skene": LevelStart(start, meet), "majority": LevelStart(None, meet)}
        self.start, self.at = "dawid-skene", 0.0
        self.fits: list[tuple[str, Floats]] = []

    def round(
        self, name: str, learner: ChainLearner, blocks: Sequence[Any] | None = None, max_iter: int | None = None
    ) -> Fit:
        """Run one round; one that was stopped goes on from its checkpoint, one that had ended ends again."""
        blocks = self.blocks if blocks is None else blocks
        learner = replace(learner, first=self.starts[self.start])
        limit, at, number = max_iter or self.plan.max_iter, self.at, len(self.fits)
        loop: LoopSettings = {"rng": self.rng, "restarts": 1, "max_iter": limit, "tol": self.plan.tol}
        checkpoint = None
        if self.folder is not None and self.every is not None:
            checkpoint = Checkpoint(self.folder / f"checkpoint-{number}", self.every)
        with self.open(learner, blocks) as work:
            run = run_learner(
                learner,
                work,
                loop,
                scale=self.votes.n_votes,
                progress=lambda share, words: self.progress(at + 0.05 * share, f"{name}, {words}"),
                settle=True,
                checkpoint=checkpoint,
            )
            said, statistics = zip(*work.describe(run.state, partial(keep_word, self.keep(f"round-{number}"))))
        self.fits.append((name, run.trace))
        return Fit(
            learner,
            _beside(blocks, said),
            self.folder,
            self.open,
            run.state,
            added(statistics),
            run.trace,
            run.converged,
        )

    def keep(self, name: str) -> Keep:
        """Return what keeps something of this name beside the blocks."""
        return Keep(self.folder, name)

    def reach(self, share: float, words: str) -> None:
        """Say how far the plan is."""
        self.at = share
        self.progress(share, words)

    def structure(self) -> Fit:
        """Choose memory and the start by the evidence lower bound; return the best round, without its words."""
        best: Fit | None = None
        for memory in (True, False) if self.plan.memory is None else (self.plan.memory,):
            learner = self._learner(memory)
            for start in STARTS[memory]:
                before, self.start = self.start, start
                self.reach(0.05 * len(self.fits), f"start: {start}")
                name = f"{'memory' if memory else 'no memory'}, {start}"
                fit = self.round(name, learner, max_iter=min(FIRST_ITERATIONS, self.plan.max_iter))
                if best is None or fit.objective > best.objective:
                    best = fit
                else:
                    self.start = before
                fit.forget()
        assert best is not None
        return best

    def _learner(self, memory: bool) -> ChainLearner:
        plan = self.plan
        two = plan.difficulty and 2 * len(self.labels) <= MOST_STATES
        more = trust(self.votes)
        levels = [(correct + more, wrong) for correct, wrong in (LEVELS if two else ONE_LEVEL)[memory]]
        space = StateSpace.of(self.labels, levels=len(levels), markov=plan.markov)
        rows = VoteRows.of(self.blocks, memory=memory)
        sources: list[Source] = [Matrices.of(rows, space.shows, self.labels, levels)]
        if plan.n_words:
            sources.append(Words(plan.n_words, plan.word_prior, len(levels)))
        rules, first = StateSpace.of(self.labels), self.starts[self.start]
        return ChainLearner(space, tuple(sources), first, plan.transition_prior, decode="marginal", rules=rules)

    def clustered(self, fit: Fit) -> Fit:
        """Run a round with the priors of the clusters of annotators that the last round shows."""
        self.reach(0.05 * len(self.fits), "clusters")
        found, _ = self.clusters(fit)
        annotators = fit.annotators.clustered(
            fit.crowd, np.maximum(found.assignment, 0), found.n_clusters, self.plan.strength
        )
        return self.round("clusters", replace(fit.learner, sources=(annotators, *fit.learner.sources[1:])))

    def told(self, name: str, fit: Fit) -> Fit:
        """Run a round with the text beside a fit's blocks as one more annotator, in place of the one it had."""
        source = Texts(confusion_prior(len(self.labels), *TEXT_PRIOR), fit.learner.space.levels)
        return self.round(name, replace(fit.learner, sources=(*_untold(fit.learner.sources), source)), fit.blocks)

    def clusters(self, fit: Fit) -> tuple[Clusters, list[BicScore]]:
        """Return clusters of annotators by the expected counts of a round, and the BIC of each number of clusters."""
        counts = fit.annotators.counts(fit.crowd)
        return found_clusters(counts, self.plan.n_clusters, confusion_prior(len(self.labels), *LEAN))

    def diagnostics(self, fit: Fit) -> dict[str, Any]:
        """Return plain numbers on all rounds."""
        return {
            "rounds": [
                {"name": name, "iterations": len(trace), "objective": float(trace[-1])} for name, trace in self.fits
            ],
            "iterations": sum(len(trace) for _, trace in self.fits),
            "converged": fit.converged,
            "objective": fit.objective,
            "memory": fit.annotators.rows.memory,
            "levels": fit.learner.space.levels,
            "start": self.start,
        }


def _untold(sources: Sequence[Source]) -> list[Source]:
    return [source for source in sources if not isinstance(source, Texts)]

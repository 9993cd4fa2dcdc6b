"""Truth models with a CRF inside, which learns from the labels that it helps to decide: Sembler, Raykar, CRF-MA.

They are EM, as a plan on blocks. The E step is one visit of every block (`expect`), and what it believes of the tokens
stays where the block is. The M step of the CRF's weights is a few iterations of L-BFGS on the driver; each evaluation
is one more visit (`Slope`), which returns value and gradient of the block's expected log likelihood. Sequences of which
nothing is said or known take no part in EM.

The features of the text lie beside the blocks; which there are is counted block by block first (`Reading`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from lasca import crf, schemes
from lasca.arrays import Array, Floats, Ints, Proba, borders, followers, readonly
from lasca.corpus import CrowdCorpus, KnownLabels, Strings
from lasca.corpus.shards import ShardedCorpus
from lasca.corpus.votes import Block, Votes, cut_into_blocks
from lasca.crf.features import seen_with
from lasca.engine import Work, added
from lasca.kernels.tables import crossed
from lasca.kernels.vectors import add_penalty, dot
from lasca.learn import EmRun
from lasca.truth.base import Posterior, Progress, TruthModel
from lasca.truth.beside import Keep
from lasca.truth.chain import with_words
from lasca.truth.majority import MajorityVote

__all__ = ["JointLearner", "JointModel", "blocks_of", "independent_moves", "some_tokens", "spoken", "summed"]

BLOCK = 50_000
"""Tokens of a block, about."""


@dataclass(frozen=True)
class Slope:
    """Asks the blocks for the expected log likelihood at other weights, and its gradient."""

    theta: Floats


@dataclass(frozen=True, eq=False)
class JointLocal:
    """What is kept of a block: what is believed of its tokens; in memory also how the model sees it."""

    targets: Proba
    view: Any = field(default=None, metadata={"kept": False})
    loss: crf.Objective | None = field(default=None, metadata={"kept": False})
    """Made when it is first asked for."""


@dataclass(frozen=True)
class JointLearner(ABC):
    """What the three learners share: the CRF's weights, which are `theta` in their states."""

    n_annotators: int
    n_labels: int
    l2: float
    crf_iter: int
    space: crf.ParameterSpace | None = field(default=None, kw_only=True)
    remembers: ClassVar[bool] = True

    @abstractmethod
    def view(self, block: Block) -> Any:
        """Return the arrays of what is spoken of in a block: `features`, `allowed()` (token, label), and the votes."""

    @abstractmethod
    def expect(self, state: Any, view: Any) -> tuple[tuple[Any, ...], Array, Floats]:
        """Do the E step: return statistics that add up, the labels' probabilities, and expected moves."""

    @abstractmethod
    def update(self, state: Any, statistics: tuple[Any, ...]) -> tuple[Any, float]:
        """Do the M step of all but the CRF; return the objective of this state without the CRF's penalty, too."""

    @property
    def size(self) -> int:
        """How many weights the CRF has."""
        assert self.space is not None
        return self.space.size

    def weights(self, state: Any) -> crf.Weights:
        """Return the CRF."""
        assert self.space is not None
        return crf.Weights(self.space, state.theta)

    def visit(self, state: Any, block: Block, local: JointLocal | None) -> tuple[tuple[Any, ...], JointLocal]:
        """Do the E step of a block and keep what it believes; or ask what the CRF makes of that (`Slope`)."""
        assert self.space is not None
        view = self.seen(block, local)
        if isinstance(state, Slope):
            assert local is not None
            loss = local.loss or crf.Objective(view.features, local.targets, self.space)
            gradient = np.empty(self.size)
            return (loss(state.theta, gradient), gradient), replace(local, loss=loss)
        statistics, proba, moves = self.expect(state, view)
        targets = proba.astype(np.float32, copy=False)
        return (moves - independent_moves(targets, view.features.offsets), *statistics), JointLocal(targets, view)

    def seen(self, block: Block, local: JointLocal | None) -> Any:
        """Return the view of a block, the one that was kept if there is one."""
        return self.view(block) if local is None or local.view is None else local.view

    def step(self, state: Any, work: Work) -> tuple[Any, float]:
        """Return the next state and the objective of this one."""
        correction, *statistics = work.sum(state)
        following, objective = self.update(state, tuple(statistics))
        theta = self.climbed(state.theta, correction, work)
        return replace(following, theta=theta), objective - self.l2 * float(dot(state.theta, state.theta))

    def climbed(self, theta: Floats, correction: Floats, work: Work) -> Floats:
        """Let the weights climb on what is believed."""
        return np.asarray(crf.minimise(self.loss(correction, work), theta, max_iter=self.crf_iter).vector)

    def loss(self, correction: Floats, work: Work) -> Callable[[Any, Any], float]:
        """Return l2 ‖θ‖² − E ln p(z | x, θ) under what is believed.

        The CRF's soft targets take tokens as independent; what that gets wrong of the expected moves is linear in the
        weights of moves (`correction`).
        """
        assert self.space is not None
        has = self.space.move >= 0
        at, missing = self.space.move[has], correction[has]

        def loss(vector: Any, gradient: Any) -> float:
            value, gradient[:] = work.sum(Slope(vector))
            gradient[at] -= missing
            return float(value - dot(vector[at], missing) + add_penalty(vector, self.l2, gradient))

        return loss


class JointModel(TruthModel):
    """A truth model with a CRF inside. Subclasses have the parameters `templates`, `l2` and `crf_iter`."""

    templates: str
    _way: ClassVar[str]
    """How the learner is run and finished: the setting of `_learned`."""

    @abstractmethod
    def _learner(self, corpus: CrowdCorpus) -> JointLearner:
        """Return the learner; its space is not known yet."""

    @abstractmethod
    def _described(self, run: EmRun[Any], posterior: Posterior) -> Posterior:
        """Add what was learned of the annotators."""

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        if votes.n_labels == 1:  # there is nothing to be wrong about
            alone = MajorityVote()
            alone.engine, alone.place = self.engine, self.place
            return replace(alone._infer(corpus, votes, progress), diagnostics={})
        with TemporaryDirectory(prefix="lasca-") as temporary:
            return self._fitted(corpus, votes, Path(temporary), progress)

    def _fitted(self, corpus: CrowdCorpus, votes: Votes, temporary: Path, progress: Progress) -> Posterior:
        templates = self.templates
        if templates == "auto":
            templates = "pos" if schemes.detect(corpus.labels) is None else "ner"
        votes, _ = with_words(corpus, votes)
        blocks, learner = blocks_of(votes), self._learner(corpus)
        reading = Reading.of(
            corpus, crf.Extractor(templates=templates), self.place.scratch if self.place else temporary
        )
        with self._work(None, blocks) as work:
            (counted,) = added(work.map(_counted, reading))
            reading.extractor.settle(counted)
            found = work.map(_extracted, reading)
        n_features = reading.extractor.n_features
        del reading, counted  # words and counts of features make room
        blocks = [replace(block, beside=own) for block, own in zip(blocks, found)]
        with self._work(learner, blocks) as work:
            seen, moves = added(work.map(_seen, learner))
        learner = replace(learner, space=crf.ParameterSpace.of_seen(seen, moves))
        run, posterior, _ = self._learned(learner, blocks, votes, progress, **{self._way: True})
        diagnostics = dict(posterior.diagnostics) | {"n_features": n_features}
        return self._described(run, replace(posterior, diagnostics=diagnostics))


@dataclass(frozen=True)
class Reading:
    """Finds features in the words of a block."""

    extractor: crf.Extractor
    words: Strings | None
    """The words that tokens are codes of; None: those of the shards."""
    keep: Keep

    @classmethod
    def of(cls, corpus: Any, extractor: crf.Extractor, folder: Path) -> Reading:
        """Know the words of a corpus; of one in shards, features are kept in files of a folder."""
        on_disk = isinstance(corpus, ShardedCorpus)
        words = corpus.words if on_disk else corpus.tokens.codes()[1]
        extractor.know(list(words))
        return cls(extractor, None if on_disk else words, Keep(folder if on_disk else None, "features"))

    def text(self, block: Block) -> tuple[list[str], Ints]:
        """Return the tokens of a block, and the borders of its sequences."""
        words, code = block.place.corpus.words if self.words is None else self.words, block.votes.words
        assert code is not None
        return words.arrow.take(pa.array(code[block.first : block.last])).to_pylist(), block.offsets


def _counted(reading: Reading, block: Block) -> tuple[Any]:
    return (reading.extractor.count(*reading.text(block)),)


def _extracted(reading: Reading, block: Block) -> Any:
    return reading.keep(block.number, reading.extractor.transform(*reading.text(block)))


def _seen(learner: JointLearner, block: Block) -> tuple[Any, ...]:
    view = learner.view(block)
    return seen_with(view.features, view.allowed())


def blocks_of(votes: Votes) -> list[Block]:
    """Cut votes into blocks of tokens that are large beside calling a visit."""
    return cut_into_blocks(votes, max(BLOCK, votes.n_tokens // 64), by_tokens=True)


def some_tokens(block: Block, tokens: Ints, offsets: Ints) -> Block:
    """Return some tokens of a block, every vote among them, cut into sequences at `offsets`."""
    own = block.alone()
    votes, known = own.votes, own.votes.known
    if known is not None:
        known = KnownLabels(np.searchsorted(tokens, known.token), known.allowed)
    some = replace(votes, start=readonly(np.append(votes.start[tokens], votes.n_hard)), offsets=offsets, known=known)
    return Block(some, 0, len(tokens), block.number, beside=block.beside.only(tokens, offsets))


def spoken(block: Block) -> tuple[Block, Ints]:
    """Return the sequences of a block of which something is said or known, and which tokens these are."""
    offsets = block.offsets
    said, lengths = np.logical_or.reduceat(block.voted, offsets[:-1]), np.diff(offsets)
    tokens = np.flatnonzero(np.repeat(said, lengths))
    if said.all():
        return block.alone(), tokens
    return some_tokens(block, tokens, borders(lengths[said])), tokens


def independent_moves(proba: Proba, offsets: Ints) -> Floats:
    """Return Σ p_i pᵀ_{i+1} over neighbours in a sequence."""
    after, rows = followers(offsets), proba.astype(np.float64)
    return np.asarray(crossed(rows[after - 1], rows[after]))


def summed(place: Array, values: Array, n: int) -> Floats:
    """Sum values that belong to the same of n places; of none the sums are 0.0, where bincount gives whole numbers."""
    return np.asarray(np.bincount(place, weights=values, minlength=n), np.float64)

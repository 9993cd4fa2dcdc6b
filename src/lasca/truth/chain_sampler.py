"""Blocked Gibbs sampling of a chain learner's model, block by block.

A sweep draws all parameters given the states (Dirichlet rows, on the driver), then the states of each sequence given
the parameters (forward filtering, backward sampling, where the block is). The states' probabilities given the
parameters are averaged over the sweeps that are kept (Rao–Blackwell). What is drawn for a block depends on the seed,
the chain, the sweep and the block alone: the same bytes on any engine.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from lasca.arrays import Bools, Codes, Floats, Ints, followers
from lasca.corpus.votes import Block
from lasca.engine import Work, run_ordered
from lasca.kernels import lattice
from lasca.kernels.tables import rising
from lasca.records import read_record
from lasca.truth.beside import Keep
from lasca.truth.chain import Chain, ChainLearner, ChainState, Local, RuledOut, StateSpace, decoded
from lasca.truth.chains import in_range, run_chains
from lasca.truth.evidence import DrawnSource
from lasca.truth.sequence_rounds import Fit, Word, keep_word

__all__ = ["ChainSampler", "Samples", "sample_states"]


@dataclass(frozen=True)
class Sweep:
    """What a visit needs: the parameters that were drawn, and which sweep of which chain it is."""

    parameters: ChainState
    seed: int
    number: int
    keeps: bool
    """Whether the states' probabilities are added to those of the sweeps before."""


@dataclass(frozen=True)
class Summed:
    """What is kept of a block: what its learner keeps, and the sums over the sweeps that were kept."""

    proba: Floats
    n: int
    local: Local | None = field(default=None, metadata={"kept": False})
    """Made again of a block that is on disk."""


@dataclass(frozen=True)
class ChainSampler:
    """A chain learner whose states and tables are drawn."""

    learner: ChainLearner
    remembers = True

    @property
    def sources(self) -> tuple[DrawnSource, ...]:
        """The learner's sources: all of them can be drawn."""
        return cast(tuple[DrawnSource, ...], self.learner.sources)

    def visit(self, sweep: Sweep, block: Block, summed: Summed | None) -> tuple[tuple[Any, ...], Summed]:
        """Draw a path through the states of every sequence; return its counts."""
        learner, at = self.learner, sweep.parameters
        if summed is None:
            summed = Summed(np.zeros((len(block), len(learner.space))), 0)
        local, chain = summed.local or learner.look(block), at.chain
        rows = learner.evidence(at, block, local)
        if sweep.keeps:
            proba = rows.copy()
            learner.pass_over(at, local, proba)
            summed = Summed(summed.proba + proba, summed.n + 1)
        draw = np.random.Generator(np.random.Philox(key=[sweep.seed, sweep.number], counter=[0, 0, 0, block.number]))
        path = np.empty(len(block), np.int16)
        lattice.sample_paths(local.offsets, rows, chain.start, chain.move, chain.end, draw.random(len(block)), path)
        one = np.zeros_like(rows)
        one[np.arange(len(path)), path] = 1.0
        return (*_path_counts(local.offsets, path, len(learner.space)), *learner.counts(at, local, one)), replace(
            summed, local=local
        )

    def draw(self, counts: tuple[Any, ...], rng: np.random.Generator) -> ChainState:
        """Draw every Dirichlet row from its posterior; tables hold logs."""
        starts, moves, *own = counts
        tables = tuple(source.draw(n, rng) for source, n in zip(self.sources, own))
        return ChainState(self._chain(starts, moves, rng), tables, 0.0)

    def _chain(self, starts: Floats, moves: Floats, rng: np.random.Generator) -> Chain:
        space, pseudo = self.learner.space, self.learner.transition_prior / self.learner.space.levels
        chain = space.flat()
        for row, may, n in space.rows(chain, starts, moves):
            row[may] = rng.dirichlet(n[may] + pseudo)
        if not space.markov:
            chain.move[:] = chain.start
        return chain

    def log_joint(self, counts: tuple[Any, ...]) -> float:
        """Return ln p(states and all that is said), all parameters integrated out, for the counts of a path."""
        space, (starts, moves, *own) = self.learner.space, counts
        pseudo = self.learner.transition_prior / space.levels
        total = sum((source.log_marginal(n) for source, n in zip(self.sources, own)), 0.0)
        for _, may, n in space.rows(space.flat(), starts, moves):
            total += rising(pseudo, n[may]) - rising(pseudo * may.sum(), n[may].sum())
        return total

    def describe(self, sweep: Sweep, block: Block, summed: Summed, out: Any) -> tuple[None, tuple[Any, ...]]:
        """Write the labels' mean probabilities to `out`."""
        out[:] = self.learner.space.by_label(summed.proba / summed.n)
        return None, ()


def _path_counts(offsets: Ints, path: Codes, S: int) -> tuple[Floats, Floats]:
    """Count first states and moves of paths."""
    at = followers(offsets)
    moves = np.bincount(path[at - 1].astype(np.int64) * S + path[at], minlength=S**2)
    return np.bincount(path[offsets[:-1]], minlength=S).astype(float), moves.reshape(S, S).astype(float)


# --- chains ---------------------------------------------------------------------------------------------------------


@dataclass
class _Run:
    """One chain at work."""

    work: Work
    sweep: Sweep
    counts: tuple[Any, ...]
    rng: np.random.Generator


class _Kept:
    """The sum over the kept draws of one chain of the annotators' counts."""

    def __init__(self) -> None:
        self.crowd: Any = 0.0
        self.n = 0

    def add(self, run: _Run) -> None:
        """Add a draw."""
        self.crowd = self.crowd + run.counts[2].table()
        self.n += 1


@dataclass(frozen=True)
class Samples:
    """Means over the kept draws of the chains in range."""

    fit: Fit
    """The fit that was sampled, with the mean of the draws, and its legal path, beside its blocks."""
    crowd: Floats
    """Counts of the annotators' rows."""
    trace: Floats
    """(n_chains, n_sweeps): the log joint with all parameters integrated out."""
    in_range: Bools


def sample_states(
    fit: Fit, *, rng: np.random.Generator, n_chains: int, n_warmup: int, n_samples: int, n_threads: int | None = None
) -> Samples:
    """Sample the model of a fit, its text and priors; chains start from states drawn from its posterior."""
    sampler, rules = ChainSampler(fit.learner), fit.learner.rules
    assert rules is not None
    with ExitStack() as stack:

        def begin(numbered: tuple[int, np.random.Generator]) -> _Run:
            number, own_rng = numbered
            work = stack.enter_context(fit.open(sampler, fit.blocks, _folder(fit, number)))
            first = Sweep(fit.state, int(own_rng.integers(2**63)), 0, keeps=False)
            return _Run(work, first, work.sum(first), own_rng)

        def move(run: _Run, keeps: bool) -> float:
            drawn = sampler.draw(run.counts, run.rng)
            run.sweep = Sweep(drawn, run.sweep.seed, run.sweep.number + 1, keeps)
            run.counts = run.work.sum(run.sweep)
            return sampler.log_joint(run.counts)

        chains = run_chains(
            lambda generators: run_ordered(begin, list(enumerate(generators)), n_threads),
            lambda runs, tuning, keeps: run_ordered(lambda run: move(run, keeps), runs, n_threads),
            lambda chain: _Kept(), rng=rng, n_chains=n_chains, n_warmup=n_warmup, n_samples=n_samples,
        )  # fmt: skip
        good = in_range(np.stack([chain.kept for chain in chains]))
        best = [chain for chain, ok in zip(chains, good) if ok]
        parts = [
            chain.state.work.describe(chain.state.sweep, partial(keep_word, Keep(fit.folder, f"drawn-{k}")))
            for k, chain in enumerate(best)
        ]
        drawn = [[word for word, _ in part] for part in parts]
        mean = Mean(drawn, rules, Keep(fit.folder, "drawn"))
        sampled = fit.saying(best[0].state.work.map(_averaged, mean))
    crowd = np.asarray(sum(chain.store.crowd for chain in best) / sum(chain.store.n for chain in best))
    return Samples(sampled, crowd, np.stack([chain.trace for chain in chains]), good)


def _folder(fit: Fit, chain: int) -> Path | None:
    """Return the folder for what a chain remembers of blocks on disk."""
    if fit.folder is None:
        return None
    folder = fit.folder / f"chain-{chain}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


@dataclass(frozen=True)
class Mean:
    """What chains say of blocks, and what becomes of it."""

    drawn: list[list[Word | Path]]
    """By chain and block."""
    rules: StateSpace
    keep: Keep


def _averaged(mean: Mean, block: Block) -> Word | Path:
    """Return what the chains say of a block together."""
    words = [chain[block.number] for chain in mean.drawn]
    said: list[Any] = [read_record(word) if isinstance(word, Path) else word for word in words]
    labels = np.mean([word.mean for word in said], axis=0)
    known = RuledOut.by_known(block, mean.rules).token
    path = decoded(block.offsets, known, labels.astype(np.float64), mean.rules)
    return mean.keep(block.number, Word(said[0].text, labels, path=path))

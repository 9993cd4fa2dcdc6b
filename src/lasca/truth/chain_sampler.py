"""Blocked Gibbs sampling of a chain learner's model, block by block.

A sweep draws all parameters given the states (Dirichlet rows, on the driver), then the states of each sequence given
the parameters (forward filtering, backward sampling, where the block is). The states' probabilities given the
parameters are averaged over the sweeps that are kept (Rao–Blackwell). What is drawn for a block depends on the seed,
the chain, the sweep and the block alone: the same bytes on any engine.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from lasca.arrays import Bools, Codes, Floats, Ints, Proba, followers
from lasca.corpus.votes import Block
from lasca.engine import Work, run_ordered
from lasca.kernels import lattice
from lasca.truth.chain import Chain, ChainLearner, ChainState, Local, decoded
from lasca.truth.chains import in_range, run_chains
from lasca.truth.evidence import DrawnSource, rising
from lasca.truth.finish import joined
from lasca.truth.sequence_rounds import Fit, as_described

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

    local: Local
    proba: Floats
    n: int


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
            summed = Summed(learner.look(block), np.zeros((len(block), len(learner.space))), 0)
        local, chain = summed.local, at.chain
        rows = learner.evidence(at, block, local)
        if sweep.keeps:
            proba = rows.copy()
            learner.pass_over(at, local, proba)
            summed = Summed(local, summed.proba + proba, summed.n + 1)
        draw = np.random.Generator(np.random.Philox(key=[sweep.seed, sweep.number], counter=[0, 0, 0, block.number]))
        path = np.empty(len(block), np.int16)
        lattice.sample_paths(local.offsets, rows, chain.start, chain.move, chain.end, draw.random(len(block)), path)
        one = np.zeros_like(rows)
        one[np.arange(len(path)), path] = 1.0
        return (*_path_counts(local.offsets, path, len(learner.space)), *learner.counts(at, local, one)), summed

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

    labels: Proba
    """The labels' probabilities, (n_tokens, T)."""
    path: Codes
    """The legal path with the most tokens expected to be right."""
    crowd: Floats
    """Counts of the annotators' rows."""
    trace: Floats
    """(n_chains, n_sweeps): the log joint with all parameters integrated out."""
    in_range: Bools


def sample_states(
    fit: Fit, *, rng: np.random.Generator, n_chains: int, n_warmup: int, n_samples: int, n_threads: int | None = None
) -> Samples:
    """Sample the model of a fit, its text and priors; chains start from states drawn from its posterior."""
    sampler, votes = ChainSampler(fit.learner), fit.blocks[0].votes
    with ExitStack() as stack:

        def begin(own_rng: np.random.Generator) -> _Run:
            work = stack.enter_context(fit.open(sampler, fit.blocks))
            first = Sweep(fit.state, int(own_rng.integers(2**63)), 0, keeps=False)
            return _Run(work, first, work.sum(first), own_rng)

        def move(run: _Run, keeps: bool) -> float:
            drawn = sampler.draw(run.counts, run.rng)
            run.sweep = Sweep(drawn, run.sweep.seed, run.sweep.number + 1, keeps)
            run.counts = run.work.sum(run.sweep)
            return sampler.log_joint(run.counts)

        chains = run_chains(
            lambda generators: run_ordered(begin, generators, n_threads),
            lambda runs, tuning, keeps: run_ordered(lambda run: move(run, keeps), runs, n_threads),
            lambda chain: _Kept(), rng=rng, n_chains=n_chains, n_warmup=n_warmup, n_samples=n_samples,
        )  # fmt: skip
        good = in_range(np.stack([chain.kept for chain in chains]))
        best = [chain for chain, ok in zip(chains, good) if ok]
        parts = [chain.state.work.describe(chain.state.sweep, as_described) for chain in best]
    labels = np.mean([joined([proba for proba, _, _ in part]) for part in parts], axis=0)
    crowd = np.asarray(sum(chain.store.crowd for chain in best) / sum(chain.store.n for chain in best))
    known = np.zeros(0, np.int64) if votes.known is None else votes.known.token
    assert fit.learner.rules is not None
    path = decoded(votes.offsets, known, labels.astype(np.float64), fit.learner.rules)
    return Samples(labels, path, crowd, np.stack([chain.trace for chain in chains]), good)

"""The hierarchical clusters model as a blocked sampler: what a visit of a block does, and the moves on the driver.

A sweep moves c, β and η a few times on the counts of the labels, Ψ, ν and γ integrated out; draws Ψ and γ (`Sampler`,
on the driver); then visits draw the labels given these, block by block (`StateLearner`, where the blocks are), and
return the next counts. What is drawn for a block depends on the seed, the chain, the sweep and the number of the block
alone: the same bytes on any engine. All chains are drawn in one visit.

The kernels are in `lasca.kernels.gibbs` and `metropolis`; the model is described in `lasca.truth.hierarchical`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lasca.arrays import Codes, Floats, Ints, Ints32, Proba
from lasca.corpus.votes import Block
from lasca.kernels import gibbs, metropolis
from lasca.kernels.counts import vote_counts
from lasca.truth import clusters as tools
from lasca.truth import dawid_skene as ds
from lasca.truth.special import Special, shares_of, special_tokens

__all__ = ["Kept", "Priors", "Sampler", "State", "StateLearner", "Sweep", "hard_rows"]

MOVES_PER_SWEEP = 3  # β, η and c move so often per sweep over z: they cost little beside it
MOVES_BEFORE_C = 30  # E6
HARD_MASS, HARD_RIGHT, HARD_EVEN = 50.0, 0.3, 0.1  # rows of hard tokens; the even share of the wrong answers
HARD_BELOW = 0.35  # a token starts as hard if fewer of its votes than this are for the label it starts with


# --- where the blocks are -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sweep:
    """What a visit needs: Ψ and γ of each chain, and which sweep it is."""

    chains: tuple[ds.Tables, ...]
    seeds: tuple[int, ...]
    """The key of each chain's draws."""
    number: int
    """0: labels are drawn from the start, those of chain 0 are its mode."""
    keeps: bool = False
    """Whether the labels' probabilities are added to those of the sweeps before."""
    shares: Floats | None = None
    """At the start: how frequent labels are, for tokens nobody labelled."""
    good: tuple[bool, ...] = ()
    """At the end: which chains count."""
    assignment: Ints32 | None = None
    """At the end: the cluster of each annotator, -1 for those in none, if it is asked what clusters agree on."""


@dataclass(frozen=True)
class Local:
    """What is kept of a block: what is known of it, and each chain's sums of probabilities over the sweeps kept."""

    special: Special
    proba: Proba
    """(n_chains, n_tokens, T); no rows before a sweep was kept. Visits add to it in place: a run never goes back to
    what it had kept before, and beside all chains' sums there is no room for a copy."""


@dataclass(frozen=True)
class StateLearner:
    """The labels of the model, and their levels of difficulty, as a learner draws them (see `lasca.learn`)."""

    n_annotators: int
    n_labels: int
    levels: int
    first: tuple[ds.ConfusionLearner, ds.Parameters] | None
    """The start: a Dawid–Skene run; None: the shares of the votes."""
    remembers: ClassVar[bool] = True

    @property
    def n_states(self) -> int:
        """How many states a token may be in: labels, or easy labels and hard labels."""
        return self.levels * self.n_labels

    def summarise(self, block: Block) -> tuple[Any, ...]:
        """Return how often each annotator gave each label."""
        votes, hard = block.votes, block.hard
        return (vote_counts(votes.annotator[hard], votes.label[hard], self.n_annotators, self.n_labels),)

    def visit(self, sweep: Sweep, block: Block, local: Local | None) -> tuple[tuple[Any, ...], Local]:
        """Draw the states of the tokens for each chain; return their counts (chain, annotator, state, given)."""
        n, T = len(sweep.seeds), self.n_labels
        local = local or Local(special_tokens(block), np.zeros((n, 0, T), np.float32))
        proba = local.proba
        if sweep.keeps and not proba.shape[1]:
            proba = np.zeros((n, len(block), T), np.float32)
        counts = np.zeros((n, self.n_annotators, self.n_states, T), np.int64)
        totals = np.zeros((n, self.n_states), np.int64)
        for k in range(n):
            z = self.draw(sweep, k, block, local.special, proba[k] if sweep.keeps else proba[k, :0])
            self.count(block, z, counts[k], totals[k])
        return (counts, totals), replace(local, proba=proba)

    def draw(self, sweep: Sweep, chain: int, block: Block, special: Special, proba: Proba) -> Codes:
        """Draw the states of one chain; `proba` gets the labels' probabilities if it has rows."""
        key = np.random.SeedSequence(sweep.seeds[chain], spawn_key=(sweep.number, block.number))
        if sweep.number == 0:
            return self.begin(sweep, block, special, None if chain == 0 else np.random.default_rng(key))
        votes, tables, z = block.votes, sweep.chains[chain].arrays, np.empty(len(block), np.int16)
        arrays = (votes.start, votes.annotator, votes.label, *tables)
        rest = (special.index, special.allowed, key.generate_state(4, np.uint64), np.empty(len(tables[2])), z, proba)
        gibbs.draw_states(block.first, block.last, *arrays, *rest)
        return z

    def begin(self, sweep: Sweep, block: Block, special: Special, rng: np.random.Generator | None) -> Codes:
        """Return the mode of the start (`rng` None), or a draw; tokens whose label has few of the votes are hard."""
        votes, T = block.votes, self.n_labels
        if self.first is None:
            proba = shares_of(block, special)
            proba[~block.voted] = sweep.shares
        else:
            proba = np.empty((len(block), T), np.float32)
            learner, parameters = self.first
            learner.describe(parameters, block, None, proba)
        if rng is None:
            z = proba.argmax(axis=1).astype(np.int16)
        else:
            u = rng.random(len(proba))[:, None]
            z = np.minimum((proba.cumsum(axis=1) < u).sum(axis=1), T - 1).astype(np.int16)
        if len(special):  # a draw of exactly 0, or what rounding left at the end of a row
            at = np.flatnonzero(special.index >= 0)
            wrong = at[special.allowed[np.arange(len(at)), z[at]] == 0]
            z[wrong] = special.allowed[special.index[wrong]].argmax(axis=1)
        if self.levels > 1:
            token = block.token
            agree = np.bincount(token[z[token] == votes.label[block.hard]], minlength=len(z))
            z[agree < HARD_BELOW * np.diff(block.start)] += T
        return np.asarray(z)

    def count(self, block: Block, z: Codes, counts: Ints, totals: Ints) -> None:
        """Count the votes by state."""
        votes = block.votes
        gibbs.count(block.first, block.last, votes.start, votes.annotator, votes.label, z, counts, totals)

    def describe(self, sweep: Sweep, block: Block, local: Local, out: Any) -> tuple[None, tuple[Any, ...]]:
        """Write the labels' mean probabilities over the good chains to `out`; return the counts of their mode.

        And what clusters agree on, if that is asked.
        """
        A, T = self.n_annotators, self.n_labels
        out[:] = 0
        for proba, is_good in zip(local.proba, sweep.good):
            if is_good:
                out += proba
        out /= out.sum(axis=1, keepdims=True)
        counts, totals = np.zeros((A, T, T), np.int64), np.zeros(T, np.int64)
        labels = out.argmax(axis=1).astype(np.int16)
        self.count(block, labels, counts, totals)
        if sweep.assignment is None:
            return None, (counts, totals)
        return None, tools.unanimous(block, labels, sweep.assignment, int(sweep.assignment.max()) + 1)


# --- on the driver --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Priors:
    """The numbers of the prior."""

    alpha: Floats
    """a_t, (T, T)."""
    rate: float
    """λ_η."""
    epsilon_nu: float
    epsilon_gamma: float
    hard: Floats
    """Pseudo-counts of every annotator's rows at hard tokens, (T, T); (0, T): there is one level of difficulty."""


def hard_rows(given: Floats) -> Floats:
    """Return the pseudo-counts (T, T) of an annotator at hard tokens: some right answers, the rest as votes go.

    `given` (T,) is how often each label was given.
    """
    T = len(given)
    wrong = np.tile((1 - HARD_EVEN) * given / given.sum() + HARD_EVEN / T, (T, 1))
    np.fill_diagonal(wrong, 0.0)
    wrong *= (1 - HARD_RIGHT) / wrong.sum(axis=1, keepdims=True)
    return np.asarray(HARD_MASS * (wrong + HARD_RIGHT * np.eye(T)))


@dataclass
class State:
    """Where a chain is, without its labels; the kernels change the arrays in place. States: see `lasca.kernels.gibbs`.

    Annotators are those who gave a label.
    """

    c: Ints32
    members: Ints
    beta: Floats
    eta: Floats
    counts: Ints
    """(L, S, T)."""
    totals: Ints
    step: Floats
    rng: npt.NDArray[np.uint64]
    c_proba: Floats
    """The conditional of each annotator's cluster at the last sweep, (L, C)."""
    accepted: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """The shares of the last moves of β and of η that were accepted, and whether the last split or merge was."""

    def __post_init__(self) -> None:
        self.rows = self.counts.sum(axis=2)

    def take(self, counts: Ints, totals: Ints) -> None:
        """Take the counts of newly drawn labels."""
        self.counts, self.totals, self.rows = counts, totals, counts.sum(axis=2)


class Kept:
    """The kept draws of one chain, as sums: clusters are matched to those of the draws before."""

    def __init__(self, n_annotators: int, n_clusters: int, priors: Priors) -> None:
        L, T = n_annotators, len(priors.alpha)
        self.priors = priors
        self.confusion = np.zeros((L, T, T))
        self.c_proba = np.zeros((L, n_clusters))
        self.beta = np.zeros((n_clusters, T, T))
        self.eta = np.zeros((n_clusters, T))
        self.n = 0
        self.accepted = np.zeros(3)
        self.draws: list[tuple[float, ...]] = []
        """Per draw: clusters in use, size of the largest, mean ln η of annotators, mean reliability, share of hard."""

    def add(self, state: State) -> None:
        """Add a draw."""
        order = tools.best_match(self.c_proba, state.c_proba) if self.n else np.arange(len(state.members))
        self.c_proba += state.c_proba[:, order]
        self.beta += state.beta[order]
        self.eta += state.eta[order]
        psi = confusion(state, self.priors)
        self.confusion += psi
        self.accepted += state.accepted
        sizes, log_eta = state.members, np.log(state.eta[state.c])
        hard = float(state.totals[len(state.beta[0]) :].sum() / state.totals.sum())
        self.draws.append(
            ((sizes > 0).sum(), sizes.max(), float(log_eta.mean()), float(tools.reliability(psi).mean()), hard)
        )
        self.n += 1


def pseudo_counts(state: State, priors: Priors) -> Floats:
    """Return the Dirichlet parameters of every state's row for each cluster, (C, S, T)."""
    hard = np.broadcast_to(priors.hard, (len(state.members), *priors.hard.shape))
    return np.concatenate((state.eta[:, :, None] * state.beta, hard), axis=1)


def confusion(state: State, priors: Priors) -> Floats:
    """Return the annotators' expected rows given the state, (L, T, T): the mean over the levels of difficulty."""
    L, S, T = state.counts.shape
    psi = state.counts + pseudo_counts(state, priors)[state.c]
    psi /= psi.sum(axis=2, keepdims=True)
    share = (state.totals + priors.epsilon_gamma / S).reshape(S // T, T)
    return np.asarray(np.einsum("ht,lhts->lts", share / share.sum(axis=0), psi.reshape(L, S // T, T, T)))


@dataclass(frozen=True)
class Sampler:
    """The moves of the model on counts, and their parts."""

    priors: Priors

    def initial(self, counts: Ints, totals: Ints, n_clusters: int, rng: np.random.Generator, spread: bool) -> State:
        """Start at the counts of some labels, c at clustered confusion rows, β and η from these.

        `spread`: the clusters' first centres are drawn at random.
        """
        T = counts.shape[2]
        easy = counts[:, :T]
        c = tools.start_clusters(easy, n_clusters, rng if spread else None)
        psi = tools.smoothed(easy)
        beta = np.stack([psi[c == k].mean(axis=0) if (c == k).any() else psi.mean(axis=0) for k in range(n_clusters)])
        state = State(
            c=c,
            members=np.bincount(c, minlength=n_clusters),
            beta=np.ascontiguousarray(beta / beta.sum(axis=2, keepdims=True)),
            eta=np.full((n_clusters, T), 10.0),
            counts=counts,
            totals=totals,
            step=np.ones((n_clusters, T)),
            rng=rng.integers(0, 2**64, 4, dtype=np.uint64),
            c_proba=np.eye(n_clusters)[c],
        )
        for i in range(MOVES_BEFORE_C):  # E6: with equal β, η the first sweep over c would throw everybody together
            self._move_parameters(state, 1.0 / np.sqrt(i + 1.0))
        return state

    def _move_parameters(self, state: State, tuning: float) -> None:
        s, p = state, self.priors
        beta = metropolis.move_beta(s.c, s.counts, s.beta, s.eta, p.alpha, s.rng)
        eta = metropolis.move_eta(s.c, s.counts, s.rows, s.beta, s.eta, p.rate, s.step, tuning, s.rng)
        s.accepted = (beta, eta, s.accepted[2])

    def move_clusters(self, state: State, tuning: float) -> None:
        """Move c, β and η, with Ψ integrated out."""
        s, p = state, self.priors
        n_clusters = len(s.members)
        epsilon = p.epsilon_nu / n_clusters
        if n_clusters > 1:
            arrays = (s.c, s.members, s.counts, s.rows, s.beta, s.eta)
            s.accepted = (*s.accepted[:2], abs(metropolis.split_or_merge(*arrays, p.alpha, p.rate, epsilon, s.rng)))
            gibbs.swap(s.c, s.counts, s.rows, s.beta, s.eta, s.rng, len(s.c) // 4 + 1)
        self._move_parameters(state, tuning)
        metropolis.refresh_empty(s.c, s.rows, s.beta, s.eta, p.alpha, p.rate, s.rng)
        gibbs.sweep_c(s.c, s.members, s.counts, s.rows, s.beta, s.eta, epsilon, s.rng, s.c_proba)

    def draw(self, state: State) -> tuple[Floats, Floats]:
        """Draw ln Ψ (L, S, T) and ln γ given all else."""
        s, log_psi, log_gamma = state, np.empty(state.counts.shape), np.empty(len(state.totals))
        epsilon = self.priors.epsilon_gamma / len(s.totals)
        gibbs.draw_rows(s.counts, pseudo_counts(s, self.priors), s.c, s.totals, epsilon, s.rng, log_psi, log_gamma)
        return log_psi, log_gamma

    def move(self, state: State, tuning: float) -> tuple[Floats, Floats]:
        """Move the clusters a few times, and draw Ψ and γ."""
        for _ in range(MOVES_PER_SWEEP):
            self.move_clusters(state, tuning)
        return self.draw(state)

    def log_joint(self, state: State) -> float:
        """Return the log joint of a state, Ψ, ν and γ integrated out, without its constant."""
        s, p = state, self.priors
        epsilons = p.epsilon_nu / len(s.members), p.epsilon_gamma / len(s.totals)
        return float(
            gibbs.log_joint(
                *(s.c, s.members, s.counts, s.rows, s.totals, s.beta, s.eta, p.hard, p.alpha, p.rate, *epsilons)
            )
        )

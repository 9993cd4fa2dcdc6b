"""State, storage and moves of the hierarchical clusters model, as `lasca.truth.chains` wants them.

The kernels are in `lasca.kernels.gibbs`, `metropolis` and `split_merge`; the model is described in
`lasca.truth.hierarchical`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasca.corpus.votes import Block, Votes
from lasca.kernels import gibbs, metropolis
from lasca.kernels.split_merge import split_or_merge
from lasca.truth import clusters as tools
from lasca.truth.special import special_tokens

__all__ = ["Kept", "Priors", "Sampler", "State", "hard_rows"]

Floats = npt.NDArray[np.float64]
MOVES_PER_SWEEP = 3  # β, η and c move so often per sweep over z: they cost little beside it
MOVES_BEFORE_C = 30  # E6
HARD_MASS, HARD_RIGHT, HARD_EVEN = 50.0, 0.3, 0.1  # rows of hard tokens; the even share of the wrong answers
HARD_BELOW = 0.35  # a token starts as hard if fewer of its votes than this are for the label it starts with


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

    @property
    def n_states(self) -> int:
        """How many states a token may be in: labels, or easy labels and hard labels."""
        return len(self.alpha) + len(self.hard)


def hard_rows(votes: Votes) -> Floats:
    """Return the pseudo-counts (T, T) of an annotator at hard tokens: some right answers, the rest as votes go."""
    T = votes.n_labels
    share = np.bincount(votes.label, minlength=T) / len(votes.label)
    wrong = np.tile((1 - HARD_EVEN) * share + HARD_EVEN / T, (T, 1))
    np.fill_diagonal(wrong, 0.0)
    wrong *= (1 - HARD_RIGHT) / wrong.sum(axis=1, keepdims=True)
    return np.asarray(HARD_MASS * (wrong + HARD_RIGHT * np.eye(T)))


@dataclass
class State:
    """What the next sweep needs; the kernels change the arrays in place. States: see `lasca.kernels.gibbs`."""

    z: npt.NDArray[np.int16]
    c: npt.NDArray[np.int32]
    members: npt.NDArray[np.int64]
    beta: Floats
    eta: Floats
    counts: npt.NDArray[np.int32]
    """(L, S, T)."""
    rows: npt.NDArray[np.int32]
    totals: npt.NDArray[np.int64]
    step: Floats
    rng: npt.NDArray[np.uint64]
    c_proba: Floats
    """The conditional of each annotator's cluster at the last sweep, (L, C)."""


class Kept:
    """The kept draws of one chain, as sums: clusters are matched to those of the draws before."""

    def __init__(self, votes: Votes, n_clusters: int, proba: npt.NDArray[np.float32], priors: Priors) -> None:
        L, T = votes.n_annotators, votes.n_labels
        self.proba, self.priors = proba, priors
        self.confusion = np.zeros((L, T, T))
        self.c_proba = np.zeros((L, n_clusters))
        self.beta = np.zeros((n_clusters, T, T))
        self.eta = np.zeros((n_clusters, T))
        self.n = 0
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
        sizes, log_eta = state.members, np.log(state.eta[state.c])
        hard = float(state.totals[len(state.beta[0]) :].sum() / state.totals.sum())
        self.draws.append(
            ((sizes > 0).sum(), sizes.max(), float(log_eta.mean()), float(tools.reliability(psi).mean()), hard)
        )
        self.n += 1


def pseudo_counts(state: State, priors: Priors) -> tuple[Floats, Floats]:
    """Return the Dirichlet parameters of every state's row for each cluster, (C, S, T), and their sums (C, S)."""
    n_clusters = len(state.members)
    hard = np.broadcast_to(priors.hard, (n_clusters, *priors.hard.shape))
    masses = np.broadcast_to(priors.hard.sum(axis=1), (n_clusters, len(priors.hard)))
    pseudo = np.concatenate((state.eta[:, :, None] * state.beta, hard), axis=1)
    return pseudo, np.concatenate((state.eta, masses), axis=1)


def confusion(state: State, priors: Priors) -> Floats:
    """Return the annotators' expected rows given the state, (L, T, T): the mean over the levels of difficulty."""
    (L, S, T), (pseudo, mass) = state.counts.shape, pseudo_counts(state, priors)
    psi = (state.counts + pseudo[state.c]) / (state.rows + mass[state.c])[:, :, None]
    share = (state.totals + priors.epsilon_gamma / S).reshape(S // T, T)
    return np.asarray(np.einsum("ht,lhts->lts", share / share.sum(axis=0), psi.reshape(L, S // T, T, T)))


class Sampler:
    """The moves of the model on one corpus: `initial` and `sweep` for `lasca.truth.chains`, and their parts.

    `starts` are probabilities of labels (n_tokens, T) that chains start from, in turn.
    """

    def __init__(self, votes: Votes, priors: Priors, starts: Sequence[npt.NDArray[np.float32]]) -> None:
        self.votes, self.priors, self.starts = votes, priors, starts
        self.nothing = np.zeros((0, votes.n_labels), np.float32)
        self.special = special_tokens(Block(votes, 0, votes.n_tokens))

    def start_states(self, chain: int, rng: np.random.Generator) -> npt.NDArray[np.int16]:
        """Return the mode of the first start (chain 0), or a draw; tokens whose label has few of the votes are hard."""
        start, T = self.starts[chain % len(self.starts)], self.votes.n_labels
        if chain == 0:
            z = start.argmax(axis=1).astype(np.int16)
        else:
            u = rng.random(len(start), dtype=np.float32)[:, None]
            z = np.minimum((start.cumsum(axis=1) < u).sum(axis=1), T - 1).astype(np.int16)
        if len(self.special):  # a draw of exactly 0, or what rounding left at the end of a row
            at = np.flatnonzero(self.special.index >= 0)
            wrong = at[self.special.allowed[np.arange(len(at)), z[at]] == 0]
            z[wrong] = self.special.allowed[self.special.index[wrong]].argmax(axis=1)
        if len(self.priors.hard):
            n = np.diff(self.votes.start)
            token = np.repeat(np.arange(len(z)), n)
            agree = np.bincount(token[z[token] == self.votes.label], minlength=len(z))
            z[agree < HARD_BELOW * n] += T
        return np.asarray(z)

    def initial(
        self,
        n_clusters: int,
        chain: int,
        rng: np.random.Generator,
        spread: bool | None = None,
        z: npt.NDArray[np.int16] | None = None,
    ) -> State:
        """Start at the states `z` (None: `start_states`), c at clustered confusion rows, β and η from these.

        `spread`: the clusters' first centres are drawn at random (None: in every second chain).
        """
        votes, (L, T), S = self.votes, (self.votes.n_annotators, self.votes.n_labels), self.priors.n_states
        z = self.start_states(chain, rng) if z is None else z.copy()
        counts, rows = np.zeros((L, S, T), np.int32), np.zeros((L, S), np.int32)
        totals = np.zeros(S, np.int64)
        gibbs.count(votes.start, votes.annotator, votes.label, z, counts, rows, totals)
        easy = counts[:, :T]
        c = tools.start_clusters(easy, n_clusters, rng if (chain % 2 if spread is None else spread) else None)
        psi = tools.smoothed(easy)
        beta = np.stack([psi[c == k].mean(axis=0) if (c == k).any() else psi.mean(axis=0) for k in range(n_clusters)])
        state = State(
            z=z,
            c=c,
            members=np.bincount(c, minlength=n_clusters),
            beta=np.ascontiguousarray(beta / beta.sum(axis=2, keepdims=True)),
            eta=np.full((n_clusters, T), 10.0),
            counts=counts,
            rows=rows,
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
        metropolis.move_beta(s.c, s.counts, s.beta, s.eta, p.alpha, s.rng)
        metropolis.move_eta(s.c, s.counts, s.rows, s.beta, s.eta, p.rate, s.step, tuning, s.rng)

    def move_clusters(self, state: State, tuning: float) -> None:
        """Move everything but z."""
        s, p = state, self.priors
        n_clusters = len(s.members)
        epsilon = p.epsilon_nu / n_clusters
        if n_clusters > 1:
            split_or_merge(s.c, s.members, s.counts, s.rows, s.beta, s.eta, p.alpha, p.rate, epsilon, s.rng)
            gibbs.swap(s.c, s.counts, s.rows, s.beta, s.eta, s.rng, len(s.c) // 4 + 1)
        self._move_parameters(state, tuning)
        metropolis.refresh_empty(s.c, s.rows, s.beta, s.eta, p.alpha, p.rate, s.rng)
        gibbs.sweep_c(s.c, s.members, s.counts, s.rows, s.beta, s.eta, epsilon, s.rng, s.c_proba)

    def move_labels(self, state: State, proba: npt.NDArray[np.float32]) -> None:
        """Sweep over z; `proba` gets the conditionals of states, or of labels if it has a column for each of these."""
        s, votes = state, self.votes
        L, S, T = s.counts.shape
        width = gibbs.padded(S)
        room = np.zeros(L * T * width), np.zeros(L * width), np.zeros(width)
        epsilon = self.priors.epsilon_gamma / S
        gibbs.sweep_z(
            *(votes.start, votes.annotator, votes.label, s.z, s.c, *pseudo_counts(s, self.priors)),
            *(s.counts, s.rows, s.totals, epsilon, *room, proba, s.rng, self.special.index, self.special.allowed),
        )

    def log_joint(self, state: State) -> float:
        """Return the log joint of a state, without its constant."""
        s, p = state, self.priors
        epsilons = p.epsilon_nu / len(s.members), p.epsilon_gamma / len(s.totals)
        return float(
            gibbs.log_joint(
                *(s.c, s.members, s.counts, s.rows, s.totals, s.beta, s.eta, p.hard, p.alpha, p.rate, *epsilons)
            )
        )

    def sweep(self, state: State, tuning: float, store: Kept | None) -> float:
        """Move everything once, the clusters a few times."""
        for _ in range(MOVES_PER_SWEEP):
            self.move_clusters(state, tuning)
        self.move_labels(state, self.nothing if store is None else store.proba)
        return self.log_joint(state)

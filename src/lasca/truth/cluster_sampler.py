"""State, storage and moves of the hierarchical clusters model, as `lasca.truth.chains` wants them.

The kernels are in `lasca.kernels.gibbs` and `lasca.kernels.split_merge`; the model is described in
`lasca.truth.hierarchical`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasca.kernels import gibbs
from lasca.kernels.split_merge import split_or_merge
from lasca.truth import clusters as tools
from lasca.truth.base import Votes

__all__ = ["Kept", "Priors", "Sampler", "State"]

Floats = npt.NDArray[np.float64]
MOVES_PER_SWEEP = 3  # β, η and c move so often per sweep over z: they cost little beside it
MOVES_BEFORE_C = 30  # E6


@dataclass(frozen=True)
class Priors:
    """The numbers of the prior."""

    alpha: Floats
    """a_t, (T, T)."""
    rate: float
    """λ_η."""
    epsilon_nu: float
    epsilon_gamma: float


@dataclass
class State:
    """What the next sweep needs; the kernels change the arrays in place."""

    z: npt.NDArray[np.int16]
    c: npt.NDArray[np.int32]
    members: npt.NDArray[np.int64]
    beta: Floats
    eta: Floats
    counts: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int32]
    totals: npt.NDArray[np.int64]
    step: Floats
    rng: npt.NDArray[np.uint64]
    c_proba: Floats
    """The conditional of each annotator's cluster at the last sweep, (L, C)."""


class Kept:
    """The kept draws of one chain, as sums: clusters are matched to those of the draws before."""

    def __init__(self, votes: Votes, n_clusters: int, proba: npt.NDArray[np.float32]) -> None:
        L, T = votes.n_annotators, votes.n_labels
        self.proba = proba
        self.confusion = np.zeros((L, T, T))
        self.c_proba = np.zeros((L, n_clusters))
        self.beta = np.zeros((n_clusters, T, T))
        self.eta = np.zeros((n_clusters, T))
        self.n = 0
        self.draws: list[tuple[float, ...]] = []
        """Per draw: clusters in use, the size of the largest, mean ln η of the annotators, mean reliability."""

    def add(self, state: State) -> None:
        """Add a draw."""
        order = tools.best_match(self.c_proba, state.c_proba) if self.n else np.arange(len(state.members))
        self.c_proba += state.c_proba[:, order]
        self.beta += state.beta[order]
        self.eta += state.eta[order]
        eta, beta = state.eta[state.c], state.beta[state.c]
        psi = (state.counts + eta[:, :, None] * beta) / (state.rows + eta)[:, :, None]
        self.confusion += psi
        sizes = state.members
        self.draws.append(
            ((sizes > 0).sum(), sizes.max(), float(np.log(eta).mean()), float(tools.reliability(psi).mean()))
        )
        self.n += 1


class Sampler:
    """The moves of the model on one corpus: `initial` and `sweep` for `lasca.truth.chains`, and their parts."""

    def __init__(self, votes: Votes, priors: Priors, start: npt.NDArray[np.float32]) -> None:
        self.votes, self.priors, self.start = votes, priors, start
        self.nothing = np.zeros((0, votes.n_labels), np.float32)

    def initial(self, n_clusters: int, chain: int, rng: np.random.Generator, spread: bool | None = None) -> State:
        """Start z at the Dawid–Skene mode (chain 0) or a draw, c at clustered confusion rows, β and η from these.

        `spread`: the clusters' first centres are drawn at random (None: in every second chain).
        """
        votes, (L, T) = self.votes, (self.votes.n_annotators, self.votes.n_labels)
        if chain == 0:
            z = self.start.argmax(axis=1).astype(np.int16)
        else:
            u = rng.random(len(self.start), dtype=np.float32)[:, None]
            z = np.minimum((self.start.cumsum(axis=1) < u).sum(axis=1), T - 1).astype(np.int16)
        counts, rows = np.zeros((L, T, T), np.int32), np.zeros((L, T), np.int32)
        totals = np.zeros(T, np.int64)
        gibbs.count(votes.start, votes.annotator, votes.label, z, counts, rows, totals)
        c = tools.start_clusters(counts, n_clusters, rng if (chain % 2 if spread is None else spread) else None)
        psi = tools.smoothed(counts)
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
        gibbs.move_beta(s.c, s.counts, s.beta, s.eta, p.alpha, s.rng)
        gibbs.move_eta(s.c, s.counts, s.rows, s.beta, s.eta, p.rate, s.step, tuning, s.rng)

    def move_clusters(self, state: State, tuning: float) -> None:
        """Move everything but z."""
        s, p = state, self.priors
        n_clusters = len(s.members)
        epsilon = p.epsilon_nu / n_clusters
        if n_clusters > 1:
            split_or_merge(s.c, s.members, s.counts, s.rows, s.beta, s.eta, p.alpha, p.rate, epsilon, s.rng)
            gibbs.swap(s.c, s.counts, s.rows, s.beta, s.eta, s.rng, len(s.c) // 4 + 1)
        self._move_parameters(state, tuning)
        gibbs.refresh_empty(s.c, s.rows, s.beta, s.eta, p.alpha, p.rate, s.rng)
        gibbs.sweep_c(s.c, s.members, s.counts, s.rows, s.beta, s.eta, epsilon, s.rng, s.c_proba)

    def move_labels(self, state: State, proba: npt.NDArray[np.float32]) -> None:
        """Sweep over z."""
        s, votes = state, self.votes
        L, T = votes.n_annotators, votes.n_labels
        width = gibbs.padded(T)
        room = np.zeros(L * T * width), np.zeros(L * width), np.zeros(width)
        epsilon = self.priors.epsilon_gamma / T
        gibbs.sweep_z(
            *(votes.start, votes.annotator, votes.label, s.z, s.c, s.beta, s.eta),
            *(s.counts, s.rows, s.totals, epsilon, *room, proba, s.rng),
        )

    def log_joint(self, state: State) -> float:
        """Return the log joint of a state, without its constant."""
        s, p = state, self.priors
        per_cluster, per_label = p.epsilon_nu / len(s.members), p.epsilon_gamma / len(s.totals)
        return float(
            gibbs.log_joint(
                s.c, s.members, s.counts, s.rows, s.totals, s.beta, s.eta, p.alpha, p.rate, per_cluster, per_label
            )
        )

    def sweep(self, state: State, tuning: float, store: Kept | None) -> float:
        """Move everything once, the clusters a few times."""
        for _ in range(MOVES_PER_SWEEP):
            self.move_clusters(state, tuning)
        self.move_labels(state, self.nothing if store is None else store.proba)
        return self.log_joint(state)

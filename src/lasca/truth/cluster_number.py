"""How many clusters of annotators there are: BIC of short runs of the hierarchical clusters model.

The labels stay at the mode of one run with as many clusters as BIC looks at, the same for every number of clusters,
so that likelihoods of the same labels are compared.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lasca.engine import run_ordered
from lasca.truth import clusters as tools
from lasca.truth.cluster_sampler import Kept, Sampler, State

__all__ = ["choose", "mode"]

Floats = npt.NDArray[np.float64]
MOST_CLUSTERS = 5  # BIC looks at 1..5
PILOT_WARMUP, PILOT_SAMPLES = 60, 60  # sweeps of the run that BIC takes the states from
BIC_STARTS, BIC_WARMUP, BIC_SAMPLES = 6, 40, 150


def mode(sampler: Sampler, rng: np.random.Generator) -> npt.NDArray[np.int16]:
    """Return the most probable label of every token in a short run with as many clusters as BIC looks at."""
    state = sampler.initial(min(MOST_CLUSTERS, sampler.votes.n_annotators), 0, rng)
    proba = np.zeros((sampler.votes.n_tokens, sampler.votes.n_labels), np.float32)
    for i in range(PILOT_WARMUP + PILOT_SAMPLES):
        sampler.move_clusters(state, 1.0 / np.sqrt(i + 1.0))
        sampler.move_labels(state, proba[:0] if i < PILOT_WARMUP else proba)
    return np.asarray(proba.argmax(axis=1).astype(np.int16))


def choose(
    sampler: Sampler, z: npt.NDArray[np.int16], rng: np.random.Generator, n_threads: int
) -> list[tools.BicScore]:
    """Return the BIC of 1..5 clusters; labels stay at `z`, so that each costs little. All tokens count alike.

    Of several starts the two with the largest likelihood after a short run go on; the better one counts.
    """
    L, T = sampler.votes.n_annotators, sampler.votes.n_labels
    numbers = range(1, min(MOST_CLUSTERS, L) + 1)

    def likelihood(state: State, sizes: Floats, beta: Floats, eta: Floats) -> float:
        nu = sizes + sampler.priors.epsilon_nu / len(sizes)
        return tools.mixture_likelihood(state.counts, beta, eta, nu / nu.sum())

    def short_run(job: tuple[int, int, np.random.Generator]) -> tuple[float, State]:
        n_clusters, start, own_rng = job
        state = sampler.initial(n_clusters, 0, own_rng, spread=start > 0, z=z)
        for i in range(BIC_WARMUP):
            sampler.move_clusters(state, 1.0 / np.sqrt(i + 1.0))
        return likelihood(state, state.members.astype(np.float64), state.beta, state.eta), state

    def long_run(state: State) -> float:
        draws = Kept(sampler.votes, len(state.members), np.zeros((0, T), np.float32), sampler.priors)
        for i in range(BIC_WARMUP + BIC_SAMPLES):
            sampler.move_clusters(state, 0.0)
            if i >= BIC_WARMUP:
                draws.add(state)
        return likelihood(state, draws.c_proba.sum(axis=0) / draws.n, draws.beta / draws.n, draws.eta / draws.n)

    starts = [(n, i) for n in numbers for i in range(1 if n == 1 else BIC_STARTS)]
    jobs = [(n, i, own_rng) for (n, i), own_rng in zip(starts, rng.spawn(len(starts)))]
    tried = run_ordered(short_run, jobs, n_threads)
    going_on = []
    for n in numbers:
        runs = sorted((run for run, (m, _) in zip(tried, starts) if m == n), key=lambda run: -run[0])
        going_on += [state for _, state in runs[:2]]
    found = run_ordered(long_run, going_on, n_threads)
    return [tools.bic(n, max(x for x, state in zip(found, going_on) if len(state.members) == n), T, L) for n in numbers]

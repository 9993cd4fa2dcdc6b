"""Runs of the hierarchical clusters model: how many clusters there are, and one mean of the kept draws.

The number of clusters is chosen by BIC of short runs. The labels stay at the mode of one run with as many clusters as
BIC looks at, the same for every number of clusters, so that likelihoods of the same labels are compared.

From the kept draws of several chains comes one mean, and how well the chains met.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.engine import run_ordered
from lasca.truth import clusters as tools
from lasca.truth.chains import Chain, in_range, summary
from lasca.truth.cluster_sampler import Kept, Sampler, State

__all__ = ["Chains", "choose", "diagnostics_of", "mode", "pooled", "summed_up", "warnings_of"]

Floats = npt.NDArray[np.float64]
MOST_CLUSTERS = 5  # BIC looks at 1..5
PILOT_WARMUP, PILOT_SAMPLES = 60, 60  # sweeps of the run that BIC takes the states from
BIC_STARTS, BIC_WARMUP, BIC_SAMPLES = 6, 40, 150
Chains = list[Chain[State, Kept]]
SAME_CLUSTERS = 0.5  # chains whose assignments have this adjusted Rand index with the best chain's found its clusters


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


def summed_up(chains: Chains) -> tuple[Kept, npt.NDArray[np.bool_], list[float]]:
    """Return the means over the chains in range, which chains these are, and how far their clusters agree."""
    kept = np.stack([chain.kept for chain in chains])
    good = in_range(kept)
    stores = [chain.store for chain, ok in zip(chains, good) if ok]
    best = int(kept[good].mean(axis=1).argmax())
    agreement = [tools.agreement(stores[best].c_proba, store.c_proba) for store in stores]
    return pooled(stores, best, [value >= SAME_CLUSTERS for value in agreement]), good, agreement


def pooled(stores: list[Kept], best: int, same: list[bool]) -> Kept:
    """Return the means over all draws of several chains (into the first one's arrays, to save memory).

    Clusters are matched to those of chain `best`; chains that found other clusters (`same` is False) count for the
    probabilities of labels and for the annotators' confusion, not for the clusters: a mean of different things.
    """
    total, reference = stores[0], stores[best].c_proba
    found = [(store, tools.best_match(reference, store.c_proba)) for store, ok in zip(stores, same) if ok]
    n = sum(store.n for store, _ in found)
    c_proba = np.stack([store.c_proba[:, order] for store, order in found]).sum(axis=0) / n
    beta = np.stack([store.beta[order] for store, order in found]).sum(axis=0) / n
    eta = np.stack([store.eta[order] for store, order in found]).sum(axis=0) / n
    total.c_proba, total.beta, total.eta = c_proba, beta, eta
    for store in stores[1:]:
        total.proba += store.proba
        total.confusion += store.confusion
        total.n += store.n
    total.proba /= total.n
    total.confusion /= total.n
    return total


def diagnostics_of(chains: Chains, good: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Return R-hat, ESS and Monte-Carlo errors of what does not depend on the names of clusters."""
    draws = np.stack([np.array(chain.store.draws, dtype=np.float64) for chain in chains])
    names = ("clusters_in_use", "largest_cluster", "mean_log_eta", "mean_reliability", "hard_share")
    quantities = {name: draws[good, :, i] for i, name in enumerate(names)}
    quantities["log_joint"] = np.stack([chain.kept for chain in chains])[good]
    return {
        "n_chains": len(chains),
        "chains_in_range": int(good.sum()),
        "log_joint_means": [float(chain.kept.mean()) for chain in chains],
        "quantities": {name: summary(values) for name, values in quantities.items()},
        "rhat": {name: summary(values)["rhat"] for name, values in quantities.items()},
        "ess": {name: summary(values)["ess"] for name, values in quantities.items()},
    }


def warnings_of(diagnostics: dict[str, Any], good: npt.NDArray[np.bool_]) -> tuple[str, ...]:
    """Return what a user must know of chains that did not meet."""
    found = []
    if not good.all():
        found.append(f"{int((~good).sum())} of {len(good)} chains ended in a worse mode and were left out")
    rhat = diagnostics["rhat"]["log_joint"]
    if rhat > 1.1:
        found.append(f"the chains have not met (R-hat of the log joint {rhat:.2f}): raise n_warmup and n_samples")
    different = sum(value < SAME_CLUSTERS for value in diagnostics["cluster_agreement"])
    if different:
        found.append(
            f"{different} of {int(good.sum())} chains found other clusters: who is in which is not well determined"
        )
    return tuple(found)

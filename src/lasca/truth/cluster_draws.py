"""Runs of the hierarchical clusters model: chains at work, how many clusters there are, and one mean of the kept draws.

The number of clusters is chosen by BIC of short runs. The labels stay at the mode of one run with as many clusters as
BIC looks at, the same for every number of clusters, so that likelihoods of the same labels are compared.

From the kept draws of several chains comes one mean, and how well the chains met.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lasca.arrays import Bools, Floats, Ints
from lasca.engine import Work, added, run_ordered
from lasca.truth import clusters as tools
from lasca.truth import dawid_skene as ds
from lasca.truth.chains import Chain, in_range, run_chains, summary
from lasca.truth.cluster_sampler import Kept, Sampler, State, Sweep

__all__ = ["Chains", "Draws", "choose", "diagnostics_of", "kept_draws", "mode", "pooled", "summed_up", "warnings_of"]

MOST_CLUSTERS = 5  # BIC looks at 1..5
PILOT_WARMUP, PILOT_SAMPLES = 60, 60  # sweeps of the run that BIC takes the states from
BIC_STARTS, BIC_WARMUP, BIC_SAMPLES = 6, 40, 150
Chains = list[Chain[State, Kept]]
SAME_CLUSTERS = 0.5  # chains whose assignments have this adjusted Rand index with the best chain's found its clusters


@dataclass
class Draws:
    """The chains of a run side by side: moves on the driver, labels by visits of the blocks."""

    work: Work
    sampler: Sampler
    given: Floats
    """How often each annotator gave each label; those who gave none have no part in it."""
    n_clusters: int
    n_threads: int

    def __post_init__(self) -> None:
        self.used = np.flatnonzero(self.given.sum(axis=1))
        self.sweep = Sweep((), (), 0)

    def run(self, rng: np.random.Generator, **settings: Any) -> Chains:
        """Run the chains; the settings are those of `run_chains`."""
        n, priors = len(self.used), self.sampler.priors
        chains = run_chains(
            self.initial, self.move, lambda chain: Kept(n, self.n_clusters, priors), rng=rng, **settings
        )
        self.sweep = Sweep((), (), 0)  # what drew the last labels is not needed any more
        return chains

    def initial(self, generators: list[np.random.Generator]) -> list[State]:
        """Draw labels from the start and cluster annotators by them; centres are at random in every second chain."""
        self.work.reset()
        keys = tuple(int(own.integers(2**63)) for own in generators)
        self.sweep = Sweep((), keys, 0, shares=self.given.sum(axis=0) / self.given.sum())
        counts, totals = self.work.sum(self.sweep)

        def begin(chain: int) -> State:
            own = counts[chain][self.used]
            return self.sampler.initial(own, totals[chain], self.n_clusters, generators[chain], bool(chain % 2))

        return run_ordered(begin, range(len(generators)), self.n_threads)

    def move(self, states: list[State], tuning: float, keeps: bool) -> list[float]:
        """Do one sweep of all chains; return their log joints."""
        drawn = run_ordered(lambda state: self.sampler.move(state, tuning), states, self.n_threads)
        tables = tuple(self._tables(*parameters) for parameters in drawn)
        self.sweep = Sweep(tables, self.sweep.seeds, self.sweep.number + 1, keeps)
        counts, totals = self.work.sum(self.sweep)
        for state, own, total in zip(states, counts, totals):
            state.take(own[self.used], total)
        return [self.sampler.log_joint(state) for state in states]

    def _tables(self, log_psi: Floats, log_gamma: Floats) -> ds.Tables:
        table = np.zeros((len(self.given), log_psi.shape[2], log_psi.shape[1]))
        table[self.used] = log_psi.transpose(0, 2, 1)
        return ds.Tables(table, log_gamma)


def mode(draws: Draws, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the counts of the most probable labels in a short run with as many clusters as BIC looks at."""
    draws = replace(draws, n_clusters=min(MOST_CLUSTERS, len(draws.used)))
    draws.run(rng, n_chains=1, n_warmup=PILOT_WARMUP, n_samples=PILOT_SAMPLES)
    parts = draws.work.describe(Sweep((), (), 0, good=(True,)), _statistics)
    counts, totals = added(parts)
    return counts[draws.used], totals


def _statistics(number: int, block: Any, proba: Any, labels: Any, statistics: tuple[Any, ...]) -> tuple[Any, ...]:
    return statistics


def choose(
    sampler: Sampler, counts: Ints, totals: Ints, rng: np.random.Generator, n_threads: int
) -> list[tools.BicScore]:
    """Return the BIC of 1..5 clusters; labels stay as they were counted, so that each costs little.

    Of several starts the two with the largest likelihood after a short run go on; the better one counts.
    """
    L, T = len(counts), len(totals)
    numbers = range(1, min(MOST_CLUSTERS, L) + 1)

    def likelihood(state: State, sizes: Floats, beta: Floats, eta: Floats) -> float:
        nu = sizes + sampler.priors.epsilon_nu / len(sizes)
        return tools.mixture_likelihood(state.counts, beta, eta, nu / nu.sum())

    def short_run(job: tuple[int, int, np.random.Generator]) -> tuple[float, State]:
        n_clusters, start, own_rng = job
        state = sampler.initial(counts, totals, n_clusters, own_rng, start > 0)
        for i in range(BIC_WARMUP):
            sampler.move_clusters(state, 1.0 / np.sqrt(i + 1.0))
        return likelihood(state, state.members.astype(np.float64), state.beta, state.eta), state

    def long_run(state: State) -> float:
        draws = Kept(L, len(state.members), sampler.priors)
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


def summed_up(chains: Chains) -> tuple[Kept, Bools, list[float]]:
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
    annotators' confusion, not for the clusters: a mean of different things.
    """
    total, reference = stores[0], stores[best].c_proba
    found = [(store, tools.best_match(reference, store.c_proba)) for store, ok in zip(stores, same) if ok]
    n = sum(store.n for store, _ in found)
    c_proba = np.stack([store.c_proba[:, order] for store, order in found]).sum(axis=0) / n
    beta = np.stack([store.beta[order] for store, order in found]).sum(axis=0) / n
    eta = np.stack([store.eta[order] for store, order in found]).sum(axis=0) / n
    total.c_proba, total.beta, total.eta = c_proba, beta, eta
    for store in stores[1:]:
        total.confusion += store.confusion
        total.n += store.n
    total.confusion /= total.n
    return total


def kept_draws(chains: Chains) -> dict[str, Floats]:
    """Return the draws of what does not depend on the names of clusters, (n_chains, n_draws) each."""
    draws = np.stack([np.array(chain.store.draws, dtype=np.float64) for chain in chains])
    names = ("clusters_in_use", "largest_cluster", "mean_log_eta", "mean_reliability", "hard_share")
    found = {name: np.ascontiguousarray(draws[:, :, i]) for i, name in enumerate(names)}
    return found | {"log_joint": np.stack([chain.kept for chain in chains])}


def diagnostics_of(chains: Chains, good: Bools) -> dict[str, Any]:
    """Return R-hat, ESS and Monte-Carlo errors of the chains in range, and how many of their moves were accepted."""
    quantities = {name: draws[good] for name, draws in kept_draws(chains).items()}
    accepted = np.mean([c.store.accepted / len(c.store.draws) for c, ok in zip(chains, good) if ok], axis=0)
    summaries = {name: summary(values) for name, values in quantities.items()}
    return {
        "acceptance": dict(zip(("beta", "eta", "split_or_merge"), accepted.tolist())),
        "n_chains": len(chains),
        "chains_in_range": int(good.sum()),
        "log_joint_means": [float(chain.kept.mean()) for chain in chains],
        "quantities": summaries,
        "rhat": {name: found["rhat"] for name, found in summaries.items()},
        "ess": {name: found["ess"] for name, found in summaries.items()},
    }


def warnings_of(diagnostics: dict[str, Any], good: Bools) -> tuple[str, ...]:
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

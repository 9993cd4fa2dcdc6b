"""From the kept draws of several chains of the hierarchical clusters model to one mean, and how well the chains met."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.truth import clusters as tools
from lasca.truth.chains import Chain, in_range
from lasca.truth.cluster_sampler import Kept, State
from lasca.truth.diagnostics import summary

__all__ = ["Chains", "diagnostics_of", "pooled", "summed_up", "warnings_of"]

Chains = list[Chain[State, Kept]]
SAME_CLUSTERS = 0.5  # chains whose assignments have this adjusted Rand index with the best chain's found its clusters


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

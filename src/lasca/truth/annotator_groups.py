"""Clusters of annotators from expected counts: who behaves alike, how many clusters, what each one shares.

A mixture of Dirichlet-multinomials, fitted by hard EM: rows of annotator l are drawn around its cluster's β_t with
concentration η_t. The number of clusters is the one of least BIC (as in `HierarchicalClusters`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from lasca.truth import clusters as tools
from lasca.truth.result import Clusters

__all__ = ["found_clusters"]

Floats = npt.NDArray[np.float64]
MOST = 5
"""The most clusters that BIC is asked about, as in the paper."""
SWEEPS = 10
"""Rounds of assigning annotators to clusters; it settles within a few."""


def found_clusters(counts: Floats, n_clusters: int | None, pseudo: Floats) -> tuple[Clusters, list[tools.BicScore]]:
    """Cluster annotators by expected counts (L, T, T); `n_clusters` None: by BIC. `pseudo` (T, T) leans to be right."""
    used = np.flatnonzero(counts.sum(axis=(1, 2)) > 0)
    own = counts[used]
    if n_clusters is None:
        fits = [_mixture(own, n, pseudo) for n in range(1, min(MOST, len(used)) + 1)]
    else:
        fits = [_mixture(own, min(n_clusters, len(used)), pseudo)]
    T, L = own.shape[1], len(used)
    scores = [tools.bic(len(beta), likelihood, T, L) for beta, _, likelihood in fits]
    best = min(range(len(fits)), key=lambda k: scores[k].bic)
    beta, assigned, _ = fits[best]
    order = np.argsort(-tools.reliability(beta), kind="stable")
    everyone = np.full(len(counts), -1, np.int32)
    proba = np.full((len(counts), len(beta)), 1.0 / len(beta), np.float32)
    everyone[used] = np.argsort(order)[assigned.argmax(axis=1)]
    proba[used] = assigned[:, order]
    return Clusters(everyone, proba, beta[order].astype(np.float32)), scores


def _mixture(counts: Floats, n: int, pseudo: Floats) -> tuple[Floats, Floats, float]:
    """Return β (n, T, T), how sure each annotator's cluster is (L, n), and the log likelihood."""
    c = tools.start_clusters(counts, n, None).astype(np.int64)
    for sweep in range(SWEEPS):
        c = np.asarray(np.unique(c, return_inverse=True)[1]).reshape(-1)
        n = int(c.max()) + 1
        beta = np.stack([counts[c == k].sum(axis=0) + pseudo for k in range(n)])
        beta /= beta.sum(axis=2, keepdims=True)
        eta = np.stack([_concentration(counts[c == k], beta[k]) for k in range(n)])
        nu = (np.bincount(c, minlength=n) + 1.0 / n) / (len(c) + 1)
        scores = _scores(counts, beta, eta) + np.log(nu)
        new = scores.argmax(axis=1)
        if (new == c).all() or sweep == SWEEPS - 1:
            break
        c = new
    proba = np.exp(scores - scores.max(axis=1, keepdims=True))
    proba /= proba.sum(axis=1, keepdims=True)
    return beta, proba, tools.mixture_likelihood(counts, beta, eta, nu)


def _scores(counts: Floats, beta: Floats, eta: Floats) -> Floats:
    """Return ln p(labels of l | cluster c), (L, C)."""
    rows = counts.sum(axis=2)
    out = np.empty((len(counts), len(beta)))
    for k in range(len(beta)):
        a = eta[k][:, None] * beta[k]
        cells = (gammaln(counts + a) - gammaln(a)).sum(axis=(1, 2))
        out[:, k] = cells - (gammaln(rows + eta[k]) - gammaln(eta[k])).sum(axis=1)
    return out


def _concentration(counts: Floats, beta: Floats) -> Floats:
    """Return the η of each row that makes a cluster's counts most likely, from a grid."""
    grid = np.geomspace(1.0, 300.0, 16)
    rows = counts.sum(axis=2)
    scores = np.empty((len(grid), counts.shape[1]))
    for g, eta in enumerate(grid):
        a = eta * beta
        cells = (gammaln(counts + a) - gammaln(a)).sum(axis=(0, 2))
        scores[g] = cells - (gammaln(rows + eta) - gammaln(eta)).sum(axis=0) - 0.02 * eta
    return np.asarray(grid[scores.argmax(axis=0)])

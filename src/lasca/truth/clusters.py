"""Clusters of annotators: starts, matching between draws, the number of clusters by BIC, and shared matrices.

Arrays only; used by hc, hc-seq and robust. counts[l, t, s] = how often annotator l said s where t is true.

*From expected counts* (`found_clusters`): who behaves alike, how many clusters, what each one shares. A mixture of
Dirichlet-multinomials, fitted by hard EM: rows of annotator l are drawn around its cluster's β_t with concentration
η_t. The number of clusters is the one of least BIC (as in `HierarchicalClusters`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp

from lasca.arrays import Array, Floats, Ints, Ints32
from lasca.corpus.votes import Block
from lasca.evaluate import adjusted_rand_index
from lasca.truth.result import Clusters

__all__ = [
    "agreement", "best_match", "bic", "found_clusters", "mean_confusion", "mixture_likelihood", "reliability",
    "smoothed", "start_clusters", "unanimous",
]  # fmt: skip

MOST = 5
"""The most clusters that BIC is asked about, as in the paper."""
MOST_ALIKE = 300.0
"""The largest concentration η that is tried: rows of such annotators differ by chance alone."""
RATE = 0.02
"""λ of η's exponential prior, as in `HierarchicalClusters`."""
SWEEPS = 10
"""Rounds of assigning annotators to clusters; it settles within a few."""


def smoothed(counts: npt.NDArray[np.number], weight: float = 5.0) -> Floats:
    """Return confusion rows (L, T, T), drawn towards the crowd's rows by `weight` counts; these lean to be right."""
    T = counts.shape[1]
    pooled = counts.sum(axis=0) + np.eye(T) + 1.0 / T
    pooled = pooled / pooled.sum(axis=1, keepdims=True)
    rows = counts + weight * pooled
    return np.asarray(rows / rows.sum(axis=2, keepdims=True))


def reliability(confusion: Floats) -> Floats:
    """Return the mean diagonal of confusion matrices, labels weighted equally as the paper does."""
    return np.asarray(np.diagonal(confusion, axis1=-2, axis2=-1).mean(axis=-1))


def start_clusters(counts: npt.NDArray[np.number], n_clusters: int, rng: np.random.Generator | None) -> Ints32:
    """Cluster annotators by their confusion rows: k-means on square roots of rows (Hellinger), labels by frequency.

    Without `rng` the first centres are spread evenly over the annotators ordered by reliability; with it they are
    drawn as k-means++ does. Labels weigh by the square root of their share, so that rare ones are heard and not loud.
    """
    L, T, _ = counts.shape
    rows = smoothed(counts)
    share = counts.sum(axis=(0, 2)) / max(1, counts.sum())
    points = (np.sqrt(rows) * share[None, :, None] ** 0.25).reshape(L, T * T)
    if rng is None:
        order = np.argsort(-reliability(rows), kind="stable")
        at = ((np.arange(n_clusters) + 0.5) * L / n_clusters).astype(np.int64)
        centres = points[order[np.minimum(at, L - 1)]]
    else:
        centres = _spread(points, n_clusters, rng)
    c = np.zeros(L, np.int32)
    for _ in range(50):
        distance = ((points[:, None, :] - centres[None]) ** 2).sum(axis=2)
        new = distance.argmin(axis=1).astype(np.int32)
        for k in range(n_clusters):
            if (new == k).any():
                centres[k] = points[new == k].mean(axis=0)
        if (new == c).all():
            break
        c = new
    return c


def _spread(points: Floats, n: int, rng: np.random.Generator) -> Floats:
    chosen = [int(rng.integers(len(points)))]
    for _ in range(n - 1):
        distance = np.min([((points - points[k]) ** 2).sum(axis=1) for k in chosen], axis=0)
        total = distance.sum()
        chosen.append(int(rng.choice(len(points), p=distance / total)) if total > 0 else chosen[0])
    return points[chosen].copy()


def best_match(reference: Floats, assignment: Floats) -> Ints:
    """Return, for each cluster of `reference`, the one of `assignment` that shares most annotators (both (L, C))."""
    from scipy.optimize import linear_sum_assignment  # slow to load, and only samplers of clusters need it

    return np.asarray(linear_sum_assignment(reference.T @ assignment, maximize=True)[1])


def mean_confusion(confusion: Floats, c_proba: Floats, beta: Floats) -> Floats:
    """Return the mean confusion of each cluster's annotators, (C, T, T), weighted by how sure they are in it.

    β^c is the same thing seen from the prior; the annotators' own matrices lean less on the prior of β. A cluster
    nobody is in has its β.
    """
    weight = c_proba.sum(axis=0)
    mean = np.einsum("lk,lts->kts", c_proba, confusion) / np.maximum(weight, 1e-12)[:, None, None]
    return np.where(weight[:, None, None] > 1e-6, mean, beta)


def agreement(a: Floats, b: Floats) -> float:
    """Return the adjusted Rand index of the most probable clusters of two soft assignments (L, C)."""
    return float(adjusted_rand_index(a.argmax(axis=1), b.argmax(axis=1)))


def mixture_likelihood(counts: npt.NDArray[np.number], beta: Floats, eta: Floats, nu: Floats) -> float:
    """Return Σ_l ln Σ_c ν_c p(labels of l | true labels, β^c, η^c): Ψ and c integrated out."""
    return float(logsumexp(_scores(counts, beta, eta) + np.log(nu), axis=1).sum())


@dataclass(frozen=True)
class BicScore:
    """One row of the choice of the number of clusters."""

    n_clusters: int
    log_likelihood: float
    n_parameters: int
    bic: float
    """Smaller is better."""


def bic(n_clusters: int, log_likelihood: float, n_labels: int, n_units: int) -> BicScore:
    """Return BIC = −2 ln L + k ln n with k = C·T·T + (C − 1) + (T − 1) free parameters.

    n is the number of annotators: they are the independent units that β and η are estimated from.
    """
    k = n_clusters * n_labels * n_labels + (n_clusters - 1) + (n_labels - 1)
    return BicScore(n_clusters, log_likelihood, k, -2.0 * log_likelihood + k * float(np.log(n_units)))


def unanimous(block: Block, truth: Array, assignment: Array, n: int) -> tuple[Floats, Floats]:
    """Return what M^c of eq. 11 is made of, literally: on how many tokens of true label t all of cluster c said s, and
    how many tokens of true label t somebody of the cluster labelled.

    "All" are those who labelled the token. Rows of M^c sum to less than 1, and the more annotators a cluster has, the
    smaller they are (E7): a pair of mediocre annotators can beat eight good ones.
    """
    votes, T = block.votes, block.votes.n_labels
    token, label, who = block.token, votes.label[block.hard], assignment[votes.annotator[block.hard]]
    agreed, seen = np.zeros((n, T, T)), np.zeros((n, T))
    for k in range(n):
        own, said = token[who == k], label[who == k]
        low, high = np.full(len(block), T, np.int64), np.full(len(block), -1, np.int64)
        np.minimum.at(low, own, said)
        np.maximum.at(high, own, said)
        same = low == high
        np.add.at(agreed[k], (truth[same], low[same]), 1.0)
        seen[k] = np.bincount(truth[high >= 0], minlength=T)
    return agreed, seen


def found_clusters(counts: Floats, n_clusters: int | None, pseudo: Floats) -> tuple[Clusters, list[BicScore]]:
    """Cluster annotators by expected counts (L, T, T); `n_clusters` None: by BIC. `pseudo` (T, T) leans to be right."""
    used = np.flatnonzero(counts.sum(axis=(1, 2)) > 0)
    own = counts[used]
    if n_clusters is None:
        fits = [_mixture(own, n, pseudo) for n in range(1, min(MOST, len(used)) + 1)]
    else:
        fits = [_mixture(own, min(n_clusters, len(used)), pseudo)]
    T, L = own.shape[1], len(used)
    scores = [bic(len(beta), likelihood, T, L) for beta, _, likelihood in fits]
    best = min(range(len(fits)), key=lambda k: scores[k].bic)
    beta, assigned, _ = fits[best]
    order = np.argsort(-reliability(beta), kind="stable")
    everyone = np.full(len(counts), -1, np.int32)
    proba = np.full((len(counts), len(beta)), 1.0 / len(beta), np.float32)
    everyone[used] = np.argsort(order)[assigned.argmax(axis=1)]
    proba[used] = assigned[:, order]
    return Clusters(everyone, proba, beta[order].astype(np.float32)), scores


def _mixture(counts: Floats, n: int, pseudo: Floats) -> tuple[Floats, Floats, float]:
    """Return β (n, T, T), how sure each annotator's cluster is (L, n), and the log likelihood."""
    c = start_clusters(counts, n, None).astype(np.int64)
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
    return beta, proba, mixture_likelihood(counts, beta, eta, nu)


def _scores(counts: npt.NDArray[np.number], beta: Floats, eta: Floats) -> Floats:
    """Return ln p(labels of l | cluster c), (L, C)."""
    rows = counts.sum(axis=2)
    out = np.empty((len(counts), len(beta)))
    for k in range(len(beta)):
        a = eta[k][:, None] * beta[k]
        cells = np.where(counts > 0, gammaln(counts + a) - gammaln(a), 0.0).sum(axis=(1, 2))
        out[:, k] = cells - (gammaln(rows + eta[k]) - gammaln(eta[k])).sum(axis=1)
    return out


def _concentration(counts: Floats, beta: Floats) -> Floats:
    """Return the η of each row that makes a cluster's counts most likely, from a grid."""
    grid = np.geomspace(1.0, MOST_ALIKE, 16)
    rows = counts.sum(axis=2)
    scores = np.empty((len(grid), counts.shape[1]))
    for g, eta in enumerate(grid):
        a = eta * beta
        cells = (gammaln(counts + a) - gammaln(a)).sum(axis=(0, 2))
        scores[g] = cells - (gammaln(rows + eta) - gammaln(eta)).sum(axis=0) - RATE * eta
    return np.asarray(grid[scores.argmax(axis=0)])

"""Clusters of annotators who behave alike: their shared confusion matrices, and in words what sets them apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.report.heatmap import MAX_LABELS, confusion_map
from lasca.report.palette import label_order
from lasca.report.text import clean, count, joined, percent
from lasca.truth import Truth

__all__ = ["cluster_section"]

NAMES = 60


def cluster_section(corpus: CrowdCorpus, truth: Truth) -> dict[str, Any] | None:
    """Return the clusters with members, heat map and words; None where the model knows no clusters."""
    clusters = truth.clusters
    if clusters is None:
        return None
    frequency = truth.proba.mean(axis=0, dtype=np.float64)
    order = label_order(corpus.labels, frequency.tolist(), MAX_LABELS)
    reliability = truth.annotators.column("reliability").to_numpy()
    used = [k for k in range(clusters.n_clusters) if (clusters.assignment == k).any()]
    items = []
    for k in used:
        members = np.flatnonzero(clusters.assignment == k)
        best = members[np.argsort(-reliability[members], kind="stable")]
        shared = clusters.shared[k].astype(np.float64)
        items.append(
            {
                "number": k + 1,
                "code": k,
                "reliable": k == clusters.reliable,
                "size": len(members),
                "names": [clean(corpus.annotators[i]) for i in best[:NAMES]],
                "more": max(len(members) - NAMES, 0),
                "sure": float(clusters.proba[members, k].mean(dtype=np.float64)),
                "words": _words(corpus, clusters.shared.astype(np.float64), used, k, frequency),
                "map": confusion_map(shared, order),
            }
        )
    return {
        "items": items,
        "labels_left_out": corpus.n_labels - len(order),
        "words": _introduction(len(items), corpus.n_annotators),
    }


def _introduction(n: int, annotators: int) -> str:
    if n == 1:
        return (
            f"The {count(annotators, 'annotator')} make up one cluster: what they have in common explains the labels "
            "well enough, and they differ by degree only."
        )
    return f"The {count(annotators, 'annotator')} fall into {n} clusters whose members make the same kinds of mistakes."


def _words(
    corpus: CrowdCorpus, shared: npt.NDArray[np.float64], used: list[int], k: int, frequency: npt.NDArray[np.float64]
) -> str:
    """Say how good a cluster is and which mistakes it makes more often than the others."""
    own = shared[k]
    right = float(np.diagonal(own).mean())
    words = f"Right on {percent(right, 0)} of the labels, each label counted alike."
    others = [j for j in used if j != k]
    wrong = own * (1 - np.eye(len(own)))
    rest = np.mean([shared[j] for j in others], axis=0) if others else np.zeros_like(own)
    excess = (wrong - rest * (1 - np.eye(len(own)))) * np.sqrt(frequency)[:, None]
    found = []
    for cell in np.argsort(-excess, axis=None, kind="stable")[:3].tolist():
        true, gave = divmod(cell, len(own))
        value, usual = float(own[true, gave]), float(rest[true, gave])
        if value < 0.02 or (others and value < max(1.25 * usual, usual + 0.02)):
            continue
        against = f", against {percent(usual, 0)}" if others else ""
        found.append(f"{corpus.labels[gave]} where {corpus.labels[true]} is true ({percent(value, 0)}{against})")
    if found:
        words += f" {'More often than the others they give' if others else 'Most often they give'} {joined(found)}."
    elif others:
        words += " There is no mistake that they make clearly more often than the others."
    return clean(words, 600)

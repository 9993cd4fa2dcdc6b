"""Clusters of annotators; figures 5 and 6."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.clusters import OTHERS
from reproduction.jobs import Results
from reproduction.page import Block, Heading, Picture, Table, Text
from reproduction.pages.common import NAMES, number
from reproduction.paper import CROWDS, DIAGONALS_NER
from reproduction.statistics import Mean, mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["WORDS", "cell", "clusters"]

WORDS = {
    "shared": "confusions shared by all, precision per label",
    "annotator": "confusions of each annotator's own",
    "uniform": "uniform wrong labels",
    "prior, common": "the crowds of table 1",
    "difficulty": "shared difficulty (ρ = 0.4), uniform wrong labels",
}


def cell(results: Results, kind: str, crowd: str, what: str, priors: str = "default") -> Mean:
    """Return the mean of a measured number."""
    return mean(results.values("clusters", (what,), kind=kind, groups=crowd, priors=priors))


def clusters(results: Results) -> list[Block]:
    """Write the section."""
    header = ("errors, crowd", "adjusted Rand index", "clusters", "diagonals", "HC, accuracy", "best other", "which")
    rows = [_row(results, kind, crowd, "default") for kind in results.settings("clusters", "kind") for crowd in CROWDS]
    paper = [_row(results, "shared", crowd, "paper") for crowd in CROWDS]
    figures = results.select("figures")[0]
    entities = results.select("entity-clusters")[0]
    found = " and ".join(f"{c['diagonal']:.3f}" for c in entities["clusters"])
    known = " and ".join(f"{value:.3f}" for value in DIAGONALS_NER)
    return [
        Heading("Clusters of annotators"),
        Text(
            "Does HC find the groups (high, medium, low precision) with the number of clusters chosen by BIC among 1 "
            "to 5? An adjusted Rand index of 1 means that it does exactly, 0 that it does no better than chance. "
            "Diagonals: mean diagonal of the shared confusion matrices, the best cluster first (the paper: above 0.7 "
            "for the best cluster, below 0.3 for the worst). The other models that take tokens as independent are "
            "beside it."
        ),
        Table(header, tuple(rows), "HC with its default priors."),
        Table(header[:5], tuple(row[:5] for row in paper), "HC with the paper's literal priors (E5)."),
        _figure(
            "figure-5",
            figures,
            "Figure 5: shared confusion matrices of the clusters on T-DGA (ca1, h = 0.4, seed 0). Found: "
            f"{_members(figures)}.",
        ),
        _figure(
            "figure-6",
            entities,
            "Figure 6: shared confusion matrices of the clusters of Turk workers (first 3,000 sentences). Mean "
            f"diagonals: {found}; the paper: {known}.",
        ),
    ]


def _row(results: Results, kind: str, crowd: str, priors: str) -> tuple[str, ...]:
    runs = results.select("clusters", kind=kind, groups=crowd, priors=priors)
    counts = [int(run["n_clusters"]) for run in runs]
    usual = max(set(counts), key=lambda n: (counts.count(n), -n))
    alike = [run["diagonals"] for run in runs if run["n_clusters"] == usual]
    diagonals = ", ".join(number(float(x)) for x in np.mean(alike, axis=0))
    found = ", ".join(f"{n} ({counts.count(n)}×)" for n in sorted(set(counts)))
    accuracy = {m: mean([run["accuracy"][m] for run in runs]) for m in ("hc", *OTHERS) if m in runs[0]["accuracy"]}
    others = {m: value for m, value in accuracy.items() if m != "hc"}
    best = max(others, key=lambda m: others[m].value) if others else ""
    return (
        f"{WORDS[kind]}, {crowd}",
        cell(results, kind, crowd, "ari", priors).shown(),
        found,
        diagonals,
        accuracy["hc"].shown(),
        others[best].shown() if others else "–",
        NAMES[best] if best else "–",
    )


def _members(data: Any) -> str:
    """Say which groups the annotators of each cluster are from, and the cluster's mean diagonal."""
    words = []
    for cluster in data["clusters"]:
        groups = Counter(data["groups"][member] for member in cluster["members"])
        words.append(
            " + ".join(f"{n} {group}" for group, n in groups.items()) + f" (diagonal {cluster['diagonal']:.2f})"
        )
    return "; ".join(words)


def _figure(name: str, data: Any, caption: str) -> Picture:
    maps = []
    for number_, cluster in enumerate(data["clusters"], 1):
        size = cluster["size"]
        maps.append((f"cluster {number_}: {size} annotator{'s' * (size != 1)}", np.array(cluster["matrix"])))

    def draw() -> Figure:
        from reproduction import pictures

        return pictures.heat_maps(maps, data["labels"])

    return Picture(name, draw, caption)

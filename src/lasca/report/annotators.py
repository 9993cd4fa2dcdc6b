"""What each annotator is worth, and which annotators behave alike.

A row per annotator (reliability, volume, typical mistakes, how they fared along the corpus), models that could
replace a person, and clusters with their shared confusion matrices and, in words, what sets them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lasca import evaluate, schemes
from lasca.arrays import Floats
from lasca.corpus import CrowdCorpus
from lasca.errors import CorpusError, count
from lasca.report import plots
from lasca.report.plots import MAX_LABELS, confusion_map, label_order
from lasca.report.render import clean, joined, percent
from lasca.truth import Truth

__all__ = ["alternative_section", "annotator_section", "cluster_section"]

SHOWN = 300
BINS = 12
MISTAKES = 3
FOLLOWED = 0.99
SMALL = 5
"""Crowds up to this size get a small plot."""
NAMES = 60
SPREAD = 1.1
TAGS = {
    "IO": "I- is a token of a span and O one outside of spans.",
    "IOB1": "I- is a token of a span, B- the first one of a span right behind another, and O one outside.",
    "IOB2": "B- is the first token of a span, I- each one behind it, and O one outside of spans.",
    "BIOES": "B- is the first token of a span, I- one inside, E- the last, S- the only one, and O one outside.",
    "BILOU": "B- is the first token of a span, I- one inside, L- the last, U- the only one, and O one outside.",
    "BMES": "B- is the first token of a span, M- one inside, E- the last, S- the only one, and O one outside.",
}
"""What tags mean, for readers who marked spans in a tool and never saw one."""


def annotator_section(
    corpus: CrowdCorpus, truth: Truth, spans: Mapping[int, Mapping[str, Any]] | None = None, *, crowdtruth: bool = False
) -> dict[str, Any]:
    """Return rows for the table (the busiest annotators if there are very many) and the scatter plot.

    `spans` are precision and recall of their spans (`lasca.report.headline.span_scores`); `crowdtruth` adds
    CrowdTruth's worker quality.
    """
    quality = evaluate.crowdtruth(corpus).worker_quality if crowdtruth else None
    table = truth.annotators.to_pylist()
    busy = sorted(range(len(table)), key=lambda i: (-table[i]["n"], i))
    shown = [i for i in busy if table[i]["n"] > 0][:SHOWN]
    agreed = truth.proba[corpus.annotation_token, corpus.annotation_label].astype(np.float64)
    counts = expected_counts(corpus, truth, shown)
    bins = _along_the_corpus(corpus, agreed, shown)
    floor = min((min(values) for values in bins if values), default=0.0)
    rows = []
    for row, i in enumerate(shown):
        entry = table[i]
        rows.append(
            {
                "code": i,
                "name": clean(entry["name"]),
                "model": entry["role"] != "annotator",
                "n": entry["n"],
                "reliability": entry["reliability"],
                "low": entry["reliability_low"],
                "high": entry["reliability_high"],
                "recall": float(np.diagonal(truth.confusion[i]).mean(dtype=np.float64)),
                "crowdtruth": None if quality is None else float(quality[i]),
                "cluster": entry["cluster"],
                "mistakes": _mistakes(counts[row]),
                "spans": None if spans is None else spans.get(i),
                "spark": plots.sparkline(bins[row], floor, 1.0),
                "spark_words": _spark_words(bins[row]),
            }
        )
    rows.sort(key=lambda r: (-r["reliability"], r["code"]))
    return {
        "rows": rows,
        "total": len(table),
        "silent": sum(entry["n"] == 0 for entry in table),
        "left_out": len([i for i in busy if table[i]["n"] > 0]) - len(shown),
        "scatter": plots.scatter(rows, *((720, 300) if len(rows) > SMALL else (480, 190))) if _spread(rows) else None,
        "tags": TAGS.get(schemes.detect_corpus(corpus) or "", ""),
        "by_spans": sorted((r for r in rows if r["spans"]), key=lambda r: -_f1(r["spans"])),
        "has_spans": spans is not None,
        "followed": [row["name"] for row in rows if _followed(row["spans"])] if len(rows) > 1 else [],
        "axis_low": min((r["low"] for r in rows), default=0.0),
        "has_crowdtruth": crowdtruth,
        "has_clusters": truth.clusters is not None and truth.clusters.n_clusters > 1,
    }


def _spread(rows: list[dict[str, Any]]) -> bool:
    """Say whether annotators gave different numbers of labels: else a plot of volume has one column."""
    volumes = [row["n"] for row in rows]
    return bool(rows) and max(volumes) >= SPREAD * min(volumes)


def _f1(spans: Mapping[str, Any]) -> float:
    precision, recall = (spans[name]["value"] if spans[name] else 0.0 for name in ("precision", "recall"))
    return float(2 * precision * recall / max(precision + recall, 1e-12))


def _followed(spans: dict[str, Any] | None) -> bool:
    """Say whether the inferred spans are nearly all those of one annotator: that does not say what they are worth."""
    shares = [] if spans is None else [spans["precision"], spans["recall"]]
    return bool(shares) and all(share is not None and share["value"] >= FOLLOWED for share in shares)


def alternative_section(corpus: CrowdCorpus) -> list[dict[str, Any]]:
    """Return for each annotator of kind model whether it may replace a person, or why that cannot be told."""
    rows: list[dict[str, Any]] = []
    for name, kind in zip(corpus.annotators, corpus.kinds):
        if kind == "model":
            try:
                rows.append({"test": evaluate.alternative_annotator(corpus, name).to_dict(), "name": clean(name)})
            except CorpusError as error:
                rows.append({"why": clean(str(error), 300), "name": clean(name)})
    return rows


def expected_counts(corpus: CrowdCorpus, truth: Truth, annotators: list[int]) -> Floats:
    """Count how often each of these annotators gave a label (column) where another is true (row), in expectation."""
    T = corpus.n_labels
    place = np.full(corpus.n_annotators, -1)
    place[annotators] = np.arange(len(annotators))
    kept = place[corpus.annotation_annotator] >= 0
    token = corpus.annotation_token[kept]
    cell = place[corpus.annotation_annotator[kept]] * T + corpus.annotation_label[kept]
    counts = np.empty((len(annotators), T, T))
    for t in range(T):
        sums = np.bincount(cell, weights=truth.proba[token, t], minlength=len(annotators) * T)
        counts[:, t, :] = sums.reshape(len(annotators), T)
    return counts


def _mistakes(counts: Floats) -> list[dict[str, Any]]:
    """Return the most frequent mistakes: what was given, what is true, how often, and in what share of such cases."""
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    found = []
    for cell in np.argsort(-wrong, axis=None, kind="stable")[:MISTAKES].tolist():
        true, gave = divmod(cell, counts.shape[1])
        if wrong[true, gave] < 1:
            break
        share = wrong[true, gave] / counts[true].sum()
        found.append({"gave": gave, "true": true, "n": round(float(wrong[true, gave])), "share": float(share)})
    return found


def _along_the_corpus(corpus: CrowdCorpus, agreed: Floats, annotators: list[int]) -> list[list[float]]:
    """Return the mean agreement with the truth in up to twelve equal parts of each annotator's work."""
    order = np.argsort(corpus.annotation_annotator, kind="stable")
    ends = np.searchsorted(corpus.annotation_annotator[order], np.arange(corpus.n_annotators + 1))
    result = []
    for i in annotators:
        values = agreed[order[ends[i] : ends[i + 1]]]
        parts = np.array_split(values, max(1, min(BINS, len(values) // 20)))
        result.append([float(part.mean()) for part in parts if len(part)])
    return result


def _spark_words(values: list[float]) -> str:
    if len(values) < 2:
        return "too few labels to show a course"
    first, last, lowest = (percent(value, 0) for value in (values[0], values[-1], min(values)))
    return f"from {first} at the start to {last} at the end, lowest {lowest}"


def cluster_section(corpus: CrowdCorpus, truth: Truth) -> dict[str, Any] | None:
    """Return the clusters with members, heat map and words; None where the model knows no clusters."""
    clusters = truth.clusters
    if clusters is None:
        return None
    frequency = truth.proba.mean(axis=0, dtype=np.float64)
    order = label_order(corpus.labels, frequency.tolist(), MAX_LABELS)
    reliability = truth.annotators.column("reliability").to_numpy()
    used = [k for k in range(clusters.n_clusters) if (clusters.assignment == k).any()]
    items: list[dict[str, Any]] = []
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
        "words": _introduction(len(items), sum(item["size"] for item in items)),
    }


def _introduction(n: int, annotators: int) -> str:
    if annotators == 1:
        return "One annotator votes: there is nobody to compare them with."
    if n == 1:
        return (
            f"The {count(annotators, 'annotator')} make up one cluster: what they have in common explains the labels "
            "well enough, and they differ by degree only."
        )
    return f"The {count(annotators, 'annotator')} fall into {n} clusters whose members make the same kinds of mistakes."


def _words(corpus: CrowdCorpus, shared: Floats, used: list[int], k: int, frequency: Floats) -> str:
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

"""The labels: how often each was given and inferred, how right where there is a gold, and which are confused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lasca import evaluate, schemes
from lasca.arrays import Floats
from lasca.corpus import CrowdCorpus
from lasca.report import plots
from lasca.report.plots import MAX_LABELS, heat, label_order
from lasca.truth import Truth

__all__ = ["confusion_section", "gold_section", "label_section"]

SHOWN = 100
TOP = 8
SHOWN_FROM = 0.001


def label_section(corpus: CrowdCorpus, truth: Truth, gold: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a row per label (the most frequent ones if there are very many), over tokens that somebody labelled."""
    voted = np.diff(corpus.token_start) > 0
    inferred = truth.labels[voted]
    sure = truth.proba[voted, inferred].astype(np.float64)
    T = corpus.n_labels
    votes = np.bincount(corpus.annotation_label, minlength=T)
    n = np.bincount(inferred, minlength=T)
    sums = np.bincount(inferred, weights=sure, minlength=T)
    unsure = np.bincount(inferred, weights=sure < 0.9, minlength=T)
    order = label_order(corpus.labels, (n + votes * 1e-6).tolist(), SHOWN)
    scores: Mapping[str, Any] = {} if gold is None else gold["per_label"]
    rows = [
        {
            "label": t,
            "votes": int(votes[t]),
            "vote_share": float(votes[t] / max(votes.sum(), 1)),
            "n": int(n[t]),
            "share": float(n[t] / max(n.sum(), 1)),
            "sure": float(sums[t] / n[t]) if n[t] else None,
            "unsure": int(unsure[t]),
            "gold": scores.get(corpus.labels[t]),
        }
        for t in order
    ]
    return {"rows": rows, "left_out": T - len(order), "largest": float(n.max() / max(n.sum(), 1))}


def gold_section(corpus: CrowdCorpus, truth: Truth, gold: str) -> dict[str, Any] | None:
    """Score the truth against a gold on the sequences somebody annotated; None where the gold has no label there."""
    expert = corpus.golds[gold]
    chosen = corpus.annotated_sequences
    mask = np.repeat(chosen, np.diff(corpus.offsets)) & truth.voted
    if not (mask & (expert >= 0)).any():
        return None
    asked = np.where(truth.voted, expert, np.int16(-1))  # tokens nobody labelled have no truth
    tokens = evaluate.tokens_from_codes(asked, truth.labels, corpus.labels, offsets=corpus.offsets, sequences=chosen)
    sure = evaluate.calibration(truth.proba, expert, mask=mask)
    spans = None
    if schemes.detect(corpus.labels) is not None:
        found = evaluate.spans_from_codes(expert, truth.labels, corpus.offsets, corpus.labels, sequences=chosen)
        kinds = [{"name": kind, **_prf(prf)} for kind, prf in found.per_type.items()]
        spans = {**_prf(found), "types": kinds, "n_sequences": found.n_sequences}
    bins = [
        {"count": int(c), "confidence": float(p), "accuracy": float(a)}
        for c, p, a in zip(sure.bin_count, sure.bin_confidence, sure.bin_accuracy)
        if c
    ]
    return {
        "name": gold,
        "n_tokens": tokens.n_tokens,
        "accuracy": tokens.accuracy,
        "macro_f1": tokens.macro_f1,
        "per_label": {label: _prf(prf) for label, prf in tokens.per_label.items()},
        "spans": spans,
        "ece": sure.ece,
        "brier": sure.brier,
        "cross_entropy": sure.cross_entropy,
        "bins": bins,
        "plot": plots.calibration_plot(bins),
    }


def _prf(scores: Any) -> dict[str, Any]:
    return {name: getattr(scores, name) for name in ("precision", "recall", "f1", "n_gold", "n_predicted")}


def confusion_section(corpus: CrowdCorpus, matrix: Floats, examples: dict[str, list[int]]) -> dict[str, Any]:
    """Return the symmetric matrix of label confusion over the labels that matter most, and the strongest pairs."""
    values = np.array(matrix, dtype=np.float64)
    np.fill_diagonal(values, 0)
    confused = int((values.max(axis=1, initial=0) >= SHOWN_FROM).sum())  # the others say nothing
    order = label_order(corpus.labels, (values.sum(axis=1) + 1e-9).tolist(), min(MAX_LABELS, max(confused, 2)))
    highest = float(values.max(initial=0))
    rows = []
    for i in order:
        cells = []
        for j in order:
            key = f"{min(i, j)}-{max(i, j)}"
            n = 0 if i == j else len(examples.get(key, ()))
            value = float(values[i, j])
            cells.append({"value": value, "heat": heat(value, highest), "self": i == j, "pair": key, "examples": n})
        rows.append({"label": i, "cells": cells})
    upper = np.triu(values, 1)
    strongest = [divmod(cell, len(values)) for cell in np.argsort(-upper, axis=None, kind="stable")[:TOP].tolist()]
    return {
        "order": order,
        "rows": rows,
        "highest": highest,
        "labels_left_out": corpus.n_labels - len(order),
        "top": [{"pair": [i, j], "value": float(values[i, j])} for i, j in strongest if values[i, j] >= SHOWN_FROM],
    }

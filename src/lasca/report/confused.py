"""Which labels are confused with which: the heat map, and the pairs that stand out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.report.heatmap import MAX_LABELS
from lasca.report.palette import label_order
from lasca.report.plots import heat

__all__ = ["confusion_section"]

TOP = 8
SHOWN_FROM = 0.001


def confusion_section(
    corpus: CrowdCorpus, matrix: npt.NDArray[np.float64], examples: dict[str, list[int]]
) -> dict[str, Any]:
    """Return the symmetric matrix of label confusion over the labels that matter most, and the strongest pairs."""
    values = np.array(matrix, dtype=np.float64)
    np.fill_diagonal(values, 0)
    confused = int(
        (values.max(axis=1, initial=0) >= SHOWN_FROM).sum()
    )  # labels that are confused with none say nothing
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
        "top": [{"pair": [i, j], "value": float(values[i, j])} for i, j in strongest if values[i, j] > 0],
    }

"""Heat maps as plain data: for each cell its value, its words and its step on the colour scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.report.plots import heat

__all__ = ["MAX_LABELS", "confusion_map"]

MAX_LABELS = 24


def confusion_map(matrix: npt.NDArray[np.float64], order: list[int]) -> dict[str, Any]:
    """Return rows (the truth) of cells (what is given); the diagonal has a colour scale of its own.

    With a part of the labels only, rows need not add up to 1: the rest went to labels that are not shown.
    """
    rows = []
    for true in order:
        cells = [
            {"value": float(matrix[true, gave]), "heat": heat(float(matrix[true, gave])), "right": true == gave}
            for gave in order
        ]
        rows.append({"label": true, "cells": cells})
    return {"order": order, "rows": rows}

"""Colours and geometry of the small pictures: numbers in, coordinates and SVG paths out. The template draws them.

Labels of one entity type share a hue, beginnings are fuller than insides, O is grey. Colour is never the only sign:
wherever it is used the label is written as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lasca import schemes
from lasca.arrays import Floats

__all__ = [
    "MAX_LABELS", "calibration_plot", "confusion_map", "heat", "label_order", "label_styles", "line", "scatter",
    "sparkline", "trace_plot",
]  # fmt: skip

HUES = (212, 28, 142, 276, 344, 178, 52, 236, 100, 312, 8, 196)
"""Far apart in the order in which they are given out."""
LETTERS = "BSUILEMIO"
LEVELS = 10
MAX_LABELS = 24


def _parts(name: str, has_scheme: bool) -> tuple[str, str]:
    letter, kind = schemes.split_label(name) if has_scheme else ("", name)
    return letter or ("O" if has_scheme else ""), kind


def label_styles(labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return hue and kind ("full", "light", "grey") of each label."""
    has_scheme = schemes.detect(labels) is not None
    parts = [_parts(name, has_scheme) for name in labels]
    kinds = sorted({kind for letter, kind in parts if letter != "O"})
    hue = {kind: HUES[i % len(HUES)] for i, kind in enumerate(kinds)}
    styles = []
    for (letter, kind), name in zip(parts, labels):
        grey = letter == "O" or name == schemes.OUTSIDE
        fullness = "grey" if grey else "light" if letter in ("I", "E", "L", "M") else "full"
        styles.append({"hue": 0 if grey else hue[kind], "kind": fullness})
    return styles


def label_order(labels: Sequence[str], weight: Sequence[float], limit: int) -> list[int]:
    """Return the codes of at most `limit` labels (the heaviest), those of one type side by side, O last."""
    has_scheme = schemes.detect(labels) is not None
    kept = sorted(range(len(labels)), key=lambda i: (-weight[i], i))[:limit]

    def place(code: int) -> tuple[Any, ...]:
        letter, kind = _parts(labels[code], has_scheme)
        return (letter == "O", kind, LETTERS.find(letter[:1]), labels[code])

    return sorted(kept, key=place)


def heat(value: float, highest: float = 1.0) -> int:
    """Return the step of the colour scale, 0 to 9; square roots, so that small shares can be told apart."""
    if not math.isfinite(value) or value <= 0 or highest <= 0:
        return 0
    return min(int(math.sqrt(min(value / highest, 1.0)) * LEVELS), LEVELS - 1)


def line(x: Sequence[float], y: Sequence[float]) -> str:
    """Return the path through the points."""
    return "M" + "L".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y)) if len(x) else ""


def sparkline(values: Sequence[float], low: float, high: float, width: float = 88, height: float = 20) -> str:
    """Return the path of a small line over [low, high]."""
    if len(values) < 2:
        return ""
    step = (width - 4) / (len(values) - 1)
    spread = max(high - low, 1e-9)
    return line(
        [2 + i * step for i in range(len(values))],
        [2 + (height - 4) * (1 - min(max((v - low) / spread, 0), 1)) for v in values],
    )


def scatter(rows: Sequence[dict[str, Any]], width: float = 720, height: float = 300) -> dict[str, Any]:
    """Place annotators by volume (logarithmic) and reliability, with their intervals."""
    left, right, top, bottom = 46.0, 14.0, 12.0, 38.0
    n = [max(row["n"], 1) for row in rows]
    shares = _ticks(min((row["low"] for row in rows), default=0.0), 1.0)
    low = max(shares[0], 0.0)
    middle = (math.log10(min(n, default=1)) + math.log10(max(n, default=1))) / 2
    half = max(math.log10(max(n, default=1)) - middle + 0.06, 0.12)
    first, last = middle - half, middle + half

    def across(value: float) -> float:
        return round(left + (width - left - right) * (math.log10(value) - first) / (last - first), 1)

    def down(value: float) -> float:
        return round(top + (height - top - bottom) * (1 - (value - low) / (1 - low)), 1)

    marks = [m * 10**p for p in range(8) for m in (1, 2, 5) if first <= math.log10(m * 10**p) <= last]
    if len(marks) < 3:
        marks = [round(m) for m in _ticks(10**first, 10**last) if first <= math.log10(max(m, 1e-9)) <= last]
    return {
        "width": width,
        "height": height,
        "points": [
            {
                "x": across(max(row["n"], 1)),
                "y": down(row["reliability"]),
                "low": down(max(row["low"], low)),
                "high": down(row["high"]),
                "cluster": row["cluster"],
                "row": i,
            }
            for i, row in enumerate(rows)
        ],
        "x_marks": [{"x": across(m), "value": m} for m in marks],
        "y_marks": [{"y": down(s), "value": s} for s in shares if s <= 1],
        "left": left,
        "bottom": height - bottom,
        "right": width - right,
    }


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers, four or so, from at or below `low` to about `high`."""
    rough = max(high - low, 1e-3) / 4
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(m * size for m in (1, 2, 2.5, 5, 10) if m * size >= rough * 0.999)
    start = math.floor(low / step + 1e-9)
    return [round(i * step, 10) for i in range(start, math.ceil(high / step - 1e-9) + 1)]


def calibration_plot(bins: Sequence[dict[str, float]], size: float = 240) -> dict[str, Any]:
    """Place the bins of a reliability diagram; the area of a dot grows with the tokens in it."""
    left, top = 40.0, 10.0
    side = size - left - top
    most = max((b["count"] for b in bins), default=1)
    return {
        "size": size,
        "left": left,
        "bottom": top + side,
        "right": left + side,
        "top": top,
        "points": [
            {
                "x": round(left + side * b["confidence"], 1),
                "y": round(top + side * (1 - b["accuracy"]), 1),
                "r": round(2.5 + 6 * math.sqrt(b["count"] / most), 1),
                **b,
            }
            for b in bins
        ],
    }


def trace_plot(trace: Any, width: float = 560, height: float = 130, points: int = 240) -> dict[str, Any] | None:
    """Return the paths of one or several traces over common axes; long ones are thinned."""
    rows = np.atleast_2d(np.asarray(trace, dtype=np.float64))
    if rows.size == 0 or rows.shape[1] < 2 or not np.isfinite(rows).all():
        return None
    at = np.unique(np.linspace(0, rows.shape[1] - 1, points).round().astype(int))
    settled = rows[:, rows.shape[1] // 10 :]  # the first climb may dwarf what follows
    low, high = float(settled.min()), float(settled.max())
    spread = max(high - low, 1e-12)
    left, right, top, bottom = 8.0, 8.0, 8.0, 8.0
    x = left + (width - left - right) * at / max(rows.shape[1] - 1, 1)
    paths = []
    for row in rows:
        y = top + (height - top - bottom) * (1 - np.clip((row[at] - low) / spread, 0, 1))
        paths.append(line(x.tolist(), y.tolist()))
    return {
        "width": width, "height": height, "paths": paths, "low": low, "high": high, "n": int(rows.shape[1]),
        "chains": len(rows), "digits": min(max(1, 1 - math.floor(math.log10(spread))), 6),
    }  # fmt: skip


def confusion_map(matrix: Floats, order: list[int]) -> dict[str, Any]:
    """Return rows (the truth) of cells (what is given); the diagonal has a colour scale of its own.

    With a part of the labels only, rows need not add up to 1: the rest went to labels that are not shown.
    """

    def cell(true: int, gave: int) -> dict[str, Any]:
        return {"value": float(matrix[true, gave]), "heat": heat(float(matrix[true, gave])), "right": true == gave}

    return {"order": order, "rows": [{"label": t, "cells": [cell(t, gave) for gave in order]} for t in order]}

"""The pictures of the page, drawn by matplotlib: functions from what was measured to figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

__all__ = ["heat_maps", "intervals", "lines", "save", "tagged"]

mpl.rcParams |= {
    "svg.fonttype": "none",  # text stays text: small files that can be searched and read aloud
    "svg.hashsalt": "lasca",  # the same names inside the file in every run
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "white",
}
MARKERS = "osD^vP*Xd"  # series are told apart without colour


def save(figure: Figure, path: Path) -> None:
    """Write a figure as SVG without the date, so that the same figures give the same bytes."""
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def lines(series: Mapping[str, Sequence[tuple[float, float, float]]], *, x_title: str, y_title: str) -> Figure:
    """Draw one line for each series of (x, mean, standard deviation)."""
    figure = Figure(figsize=(7.2, 4.4))
    axes = figure.subplots()
    for marker, (name, points) in zip(MARKERS, series.items()):
        x, y, spread = np.array(points).T
        axes.errorbar(x, y, yerr=spread, label=name, marker=marker, markersize=4, linewidth=1.2, elinewidth=0.6)
    axes.set(xlabel=x_title, ylabel=y_title, xticks=x)
    axes.legend(frameon=False, ncols=2)
    return figure


def intervals(rows: Sequence[tuple[str, float, float, float]], *, x_title: str) -> Figure:
    """Draw differences (name, value, low, high) with their intervals beside a line at zero."""
    figure = Figure(figsize=(7.2, 0.28 * len(rows) + 0.8))
    axes = figure.subplots()
    names, value, low, high = zip(*rows)
    place = np.arange(len(rows))[::-1]
    axes.errorbar(value, place, xerr=(np.subtract(value, low), np.subtract(high, value)), fmt="o", markersize=4)
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.set(xlabel=x_title, yticks=place, yticklabels=names)
    return figure


def heat_maps(maps: Sequence[tuple[str, np.ndarray]], labels: Sequence[str]) -> Figure:
    """Draw square matrices over the same labels side by side, on one scale; what is not a number stays empty.

    Colours go by square roots, so that small shares can be told apart; values are written into the cells.
    """
    size = 0.34 * len(labels) + 0.7
    figure = Figure(figsize=(size * len(maps), size + 0.3))
    top = max(float(np.nanmax(matrix)) for _, matrix in maps)
    for axes, (name, matrix) in zip(np.atleast_1d(figure.subplots(1, len(maps))), maps):
        axes.imshow(np.sqrt(matrix / top), cmap="Blues", vmin=0, vmax=1)
        axes.set_title(name, fontsize=9)
        axes.set_xticks(range(len(labels)), labels, rotation=90)
        axes.set_yticks(range(len(labels)), labels)
        for (i, j), x in np.ndenumerate(matrix):
            if x >= 0.005:
                colour = "white" if x / top > 0.4 else "black"
                axes.text(j, i, f"{x:.2f}".lstrip("0"), ha="center", va="center", fontsize=6, color=colour)
    figure.tight_layout()
    return figure


def tagged(rows: Sequence[Sequence[tuple[str, str, tuple[str, ...]]]]) -> Figure:
    """Draw sequences of (word, label, competing labels): the word, its label under it, and what competes with it."""
    width = max(sum(_width(token) for token in row) for row in rows)
    figure = Figure(figsize=(width / 11, 0.95 * len(rows)))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(-len(rows), 0))
    axes.set_axis_off()
    for number, row in enumerate(rows):
        x, y = 0.0, -number - 0.25
        for token in row:
            word, label, others = token
            middle = x + _width(token) / 2
            box = {"boxstyle": "round,pad=0.25", "facecolor": "#ffe9a8", "edgecolor": "#b26a00"} if others else None
            axes.text(middle, y, word, ha="center", va="center", bbox=box, parse_math=False)
            axes.text(middle, y - 0.27, label, ha="center", va="center", fontsize=7, color="#1b5e9b")
            for k, other in enumerate(others, start=1):
                axes.text(
                    middle, y - 0.27 - 0.17 * k, f"or {other}", ha="center", va="center", fontsize=7, color="#a33"
                )
            x += _width(token)
    return figure


def _width(token: tuple[str, str, tuple[str, ...]]) -> float:
    """Return about how much room a token takes, in letters."""
    word, label, others = token
    return max(len(word), 0.8 * max(len(text) for text in (label, *(f"or {o}" for o in others)))) + 1.5

"""What the sections share: names of rows, and tables with the paper's figure, ours, and the difference."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from reproduction.jobs import NEWER
from reproduction.page import Table
from reproduction.paper import CROWDS
from reproduction.statistics import Mean
from reproduction.tweets import GOLD

__all__ = ["HMM", "LA_SCA", "MODELS", "NAMES", "TWO_TRUTHS", "beside_the_paper", "best_cells", "difference", "number"]

HMM = "hmm"
"""In the place of a model: HmmTagger learns from the truth of HC."""
TWO_TRUTHS = "la-sca, two-truths"
LA_SCA = {"la-sca": "cost-sensitive, rank-1", TWO_TRUTHS: "cost-sensitive"}
"""Rows that learn from the truth of HC by the cost-sensitive objective, and what the objectives' jobs call them."""
NAMES = {
    "mv": "MVtoken",
    "ds": "DS",
    "mace": "MACE",
    "sembler": "Sembler",
    "hmm-crowd": "HMM-Crowd",
    "hc": "HC",
    "la-sca": "LA-SCA",
    TWO_TRUTHS: "LA-SCA, two-truths *",
    "glad": "GLAD *",
    "bsc": "BSC-seq *",
    "hc-seq": "HC with sequences *",
    "crf-ma": "CRF-MA *",
    "raykar": "Raykar *",
    "robust": "robust *",
    HMM: "HC, HmmTagger *",
    GOLD: "gold labels",
}
MODELS = ("mv", "ds", "mace", "sembler", "hmm-crowd", "hc", "glad", "bsc", "hc-seq", *NEWER)
"""The truth models in the order of the paper's rows, then those it does not have (*)."""


def number(value: float | None, digits: int = 2) -> str:
    """Return a number, – for none."""
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}".replace("-", "−")


def difference(ours: float, theirs: float) -> str:
    """Return a difference with its sign."""
    return f"{ours - theirs:+.2f}".replace("-", "−")


def beside_the_paper(
    rows: Sequence[str],
    paper: Mapping[str, Sequence[float]],
    ours: Callable[[str, str], Mean],
    *,
    at: int,
    caption: str,
    names: Mapping[str, str] = NAMES,
) -> Table:
    """Return a table over ca1–ca3: the paper's figure (its columns from `at`), ours, the difference; GOLD is last."""
    header = ["model", *(f"{crowd} {kind}" for crowd in CROWDS for kind in ("paper", "ours", "diff."))]
    table = []
    for row in rows:
        cells = [names[row]]
        for i, crowd in enumerate(CROWDS):
            measured = ours(row, crowd)
            known = paper.get(row)
            cells += [
                "–" if known is None else number(known[at + i]),
                measured.shown(),
                "–" if known is None else difference(measured.value, known[at + i]),
            ]
        table.append(tuple(cells))
    values = [[ours(row, crowd).value for crowd in CROWDS] for row in rows if row != GOLD]
    strong = frozenset((r, 2 + 3 * c) for r, c in best_cells(values))
    return Table(tuple(header), tuple(table), caption, strong)


def best_cells(values: Sequence[Sequence[float]]) -> set[tuple[int, int]]:
    """Return (row, column) of the largest value of each column."""
    found = set()
    for column in range(len(values[0])):
        known = [(v[column], -r) for r, v in enumerate(values) if not math.isnan(v[column])]
        if known:
            found.add((-max(known)[1], column))
    return found

"""Heat maps of confusion: the diagonal has a colour scale of its own, as in the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasca.report.plots import LEVELS, heat
from lasca.reproduce.drawing import Drawing, shorten, text_width

__all__ = ["heat_map", "heat_maps"]

MOST_WRITTEN = 13
"""With more labels than this the values are not written into the cells."""
WIDEST = 920
_Matrix = npt.ArrayLike


@dataclass(frozen=True)
class _Plan:
    """Sizes of one map."""

    labels: tuple[str, ...]
    cell: float
    font: float
    written: bool
    left: float
    above: float
    turned: bool

    @property
    def width(self) -> float:
        return self.left + self.cell * len(self.labels)

    @property
    def height(self) -> float:
        return self.above + self.cell * len(self.labels)


def _plan(labels: Sequence[str], *, cell: float) -> _Plan:
    shown = tuple(shorten(label, 18) for label in labels)
    written = len(shown) <= MOST_WRITTEN
    if not written:
        cell = max(12.0, min(22.0, 520 / len(shown)))
    font = min(11.0, cell - 2, 0.31 * cell + 2) if written else min(11.0, cell - 2)
    longest = max((text_width(label, font) for label in shown), default=0.0)
    turned = longest > cell - 3
    return _Plan(shown, cell, font, written, longest + 8, longest + 8 if turned else font + 7, turned)


def _array(matrix: _Matrix, labels: Sequence[str]) -> npt.NDArray[np.float64]:
    values = np.asarray(matrix, dtype=np.float64)
    if values.shape != (len(labels), len(labels)):
        raise ValueError(f"a heat map of {len(labels)} labels needs a square matrix of them, got {values.shape}")
    return values


def _written(value: float) -> str:
    """Write a share in two places without the leading zero; what would be .00 as 0."""
    if abs(value) >= 10:
        return f"{value:.0f}"
    text = f"{value:.2f}".replace("-", "−")
    return "0" if text in ("0.00", "−0.00") else text.replace("0.", ".", 1) if text.lstrip("−")[0] == "0" else text


def _draw(d: Drawing, x: float, y: float, values: npt.NDArray[np.float64], plan: _Plan, highest: float) -> None:
    middle = 0.35 * plan.font
    for i, label in enumerate(plan.labels):
        d.text(
            x + plan.left - 6,
            y + plan.above + plan.cell * (i + 0.5) + middle,
            label,
            "ink",
            size=plan.font,
            anchor="end",
        )
        across = x + plan.left + plan.cell * (i + 0.5)
        if plan.turned:
            d.text(across + middle, y + plan.above - 5, label, "ink", size=plan.font, turn=True)
        else:
            d.text(across, y + plan.above - 6, label, "ink", size=plan.font, anchor="middle")
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            cell_x, cell_y = x + plan.left + plan.cell * j, y + plan.above + plan.cell * i
            if not np.isfinite(value):
                d.rect(cell_x + 0.5, cell_y + 0.5, plan.cell - 1, plan.cell - 1, "s-rule", 'stroke-dasharray="2 2"')
                continue
            ramp, step = "g" if i == j else "w", heat(float(value), highest)
            d.rect(cell_x, cell_y, plan.cell - 1, plan.cell - 1, f"{ramp}{step}")
            if plan.written:
                words = _written(float(value))
                colour = "muted" if words == "0" else f"{ramp}t{step}"
                d.text(
                    cell_x + plan.cell / 2 - 0.5, cell_y + plan.cell / 2 + middle, words, colour, size=plan.font - 0.5,
                    anchor="middle",
                )  # fmt: skip


def _highest(matrices: Sequence[npt.NDArray[np.float64]]) -> float:
    finite = [float(m[np.isfinite(m)].max()) for m in matrices if np.isfinite(m).any()]
    return max((v for v in finite if v > 0), default=1.0)


def _legend(d: Drawing, x: float, y: float, matrices: Sequence[npt.NDArray[np.float64]], highest: float) -> float:
    """Draw the scales that occur, one under the other; return where they end."""
    size = 15.0
    same = any(np.isfinite(np.diagonal(m)).any() for m in matrices)
    other = any(np.isfinite(m[~np.eye(len(m), dtype=bool)]).any() for m in matrices)
    scales = [("g", "the same label")] * same + [("w", "another label")] * other
    for ramp, words in scales:
        for step in range(LEVELS):
            d.rect(x + size * step, y, size, 9, f"{ramp}{step}")
        d.rect(x, y, size * LEVELS, 9, "s-rule")
        d.text(x + size * LEVELS + 10, y + 8.5, words, "muted", size=11)
        y += 14
    if scales:
        for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
            d.text(
                x + size * LEVELS * share, y + 9, _written(highest * share**2), "muted", size=10.5, anchor=anchor
            )  # the scale goes by square roots
        y += 12
    return y


def heat_map(
    matrix: _Matrix,
    labels: Sequence[str],
    *,
    title: str,
    row_title: str = "",
    column_title: str = "",
    highest: float | None = None,
) -> str:
    """Draw a square matrix of shares; a cell that is not a number stays empty.

    Up to 13 labels the values are written into the cells. `highest` has the fullest colour (the largest value
    unless given); colours go by square roots, so that small shares can be told apart.
    """
    values = _array(matrix, labels)
    plan = _plan(labels, cell=36)
    top = highest if highest is not None else _highest([values])
    beside, over = 20.0 * bool(row_title), 18.0 * bool(column_title)
    d = Drawing(title, max(beside + plan.width + 28, 340))
    x, y = 14 + beside, d.y + over
    if column_title:
        d.text(x + plan.left, d.y + 11, shorten(column_title, 80), "muted")
    if row_title:
        middle = y + plan.above + (plan.height - plan.above) / 2
        d.text(24, middle, shorten(row_title, 80), "muted", anchor="middle", turn=True)
    _draw(d, x, y, values, plan, top)
    end = _legend(d, x + plan.left if plan.width - plan.left > 300 else x, y + plan.height + 14, [values], top)
    return d.done(end + 12)


def heat_maps(matrices: Sequence[tuple[str, _Matrix]], labels: Sequence[str], *, title: str) -> str:
    """Draw several matrices over the same labels side by side, wrapped, with one scale for all."""
    arrays = [(shorten(name, 80), _array(matrix, labels)) for name, matrix in matrices]
    gap = 26.0
    plans = [_plan(labels, cell=cell) for cell in (31, 28, 25)]  # a little smaller, if all then fit side by side
    plan = next((p for p in plans if len(arrays) * (p.width + gap) - gap <= WIDEST - 28), plans[0])
    columns = max(1, min(len(arrays), int((WIDEST - 28 + gap) // (plan.width + gap))))
    d = Drawing(title, max(28 + columns * (plan.width + gap) - gap, 340))
    highest = _highest([values for _, values in arrays])
    y = d.y
    for i, (name, values) in enumerate(arrays):
        x = 14 + (i % columns) * (plan.width + gap)
        if i and i % columns == 0:
            y += plan.height + 44
        d.text(x + plan.left, y + 12, _fitting(name, plan.width - plan.left), "ink", weight=600)
        _draw(d, x, y + 20, values, plan, highest)
    end = y + 20 + plan.height if arrays else y
    return d.done(_legend(d, 14 + plan.left, end + 14, [values for _, values in arrays], highest) + 12)


def _fitting(text: str, width: float) -> str:
    while len(text) > 2 and text_width(text, 12, bold=True) > max(width, 40):
        text = text[:-2].rstrip() + "…"
    return text

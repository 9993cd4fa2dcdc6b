"""Charts: lines with their spread, and differences with their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lasca.reproduce.drawing import SERIES, Drawing, decimals, shorten, signed, span, text_width, ticks

__all__ = ["dots", "line_chart"]

MOST_BANDS = 4
"""With more series than this the spread is drawn as whiskers: bands would lie on one another."""
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "", "5 2 1 2 1 2", "12 4", "4 4", "1 2")
_Points = list[tuple[float, float, float]]
_Place = Callable[[float], float]


@dataclass(frozen=True)
class _Field:
    """The rectangle of the plot and what its edges mean."""

    left: float
    right: float
    top: float
    bottom: float
    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        return self.left + (self.right - self.left) * (value - self.x_low) / (self.x_high - self.x_low)

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * (value - self.y_low) / (self.y_high - self.y_low)


def _marker(kind: int, x: float, y: float, r: float = 3.6) -> tuple[str, bool]:
    """Return the path of a marker, and whether it is only an outline."""
    match kind % SERIES:
        case 0 | 7:
            circle = f"M{span(x - r)},{span(y)}a{r},{r} 0 1 0 {2 * r},0a{r},{r} 0 1 0 {-2 * r},0Z"
            return circle, kind % SERIES == 7
        case 1 | 8:
            return f"M{span(x - r)},{span(y - r)}h{2 * r}v{2 * r}h{-2 * r}Z", kind % SERIES == 8
        case 2:
            return f"M{span(x)},{span(y - r - 1)}l{r + 0.6},{2 * r}h{-2 * r - 1.2}Z", False
        case 3:
            return f"M{span(x)},{span(y - r - 1)}l{r + 1},{r + 1}l{-r - 1},{r + 1}l{-r - 1},{-r - 1}Z", False
        case 4:
            return f"M{span(x)},{span(y + r + 1)}l{r + 0.6},{-2 * r}h{-2 * r - 1.2}Z", False
        case 5:
            return f"M{span(x - r)},{span(y - r)}l{2 * r},{2 * r}m0,{-2 * r}l{-2 * r},{2 * r}", True
        case _:
            return f"M{span(x - r)},{span(y)}h{2 * r}M{span(x)},{span(y - r)}v{2 * r}", True


def _draw_marker(d: Drawing, kind: int, x: float, y: float) -> None:
    path, outline = _marker(kind, x, y)
    colour = f"c{kind % SERIES}"
    if outline and kind % SERIES in (7, 8):
        d.path(path, "paper")
    d.path(path, f"s-{colour}" if outline else colour, 'stroke-width="1.8"' if outline else "")


def _runs(points: _Points) -> Iterator[_Points]:
    """Part the points where a mean is missing."""
    run: _Points = []
    for point in points:
        if math.isfinite(point[0]) and math.isfinite(point[1]):
            run.append(point)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _spread(point: tuple[float, float, float]) -> float:
    return point[2] if math.isfinite(point[2]) and point[2] > 0 else 0.0


def line_chart(
    series: Mapping[str, Sequence[tuple[float, float, float]]],
    *,
    title: str,
    x_title: str,
    y_title: str,
    x_marks: Sequence[float] | None = None,
) -> str:
    """Draw means over x with their standard deviations: points (x, mean, sd) per series, named where its line ends.

    A mean that is not a number leaves a gap. `x_marks` are the places to mark on the x axis.
    """
    rows = [(shorten(name, 32), sorted(points, key=lambda p: p[0])) for name, points in series.items()]
    found = [p for _, points in rows for run in _runs(points) for p in run]
    names = max((text_width(name, 12) for name, _ in rows), default=0.0)
    d = Drawing(title, 780)
    if not found:
        d.text(14, d.y + 14, "nothing was measured", "muted")
        return d.done(d.y + 30)
    x_low, x_high, across = _range([p[0] for p in found], x_marks, room=0.0)
    y_low, y_high, up = _range([p[1] + sign * _spread(p) for p in found for sign in (-1, 1)])
    edge = max(text_width(signed(m, decimals(up)), 12) for m in up)
    top = d.y + 22
    field = _Field(22 + edge, 780 - names - 58, top, top + max(300.0, 20.0 * len(rows)), x_low, x_high, y_low, y_high)
    _axes(d, field, across, up, shorten(x_title, 80), shorten(y_title, 80))
    many = len(rows) > MOST_BANDS
    for kind, (_, points) in enumerate(rows):
        _draw_spread(d, field, kind, points, whiskers=many)
    for kind, (_, points) in enumerate(rows):
        _draw_series(d, field, kind, points)
    _name_ends(d, field, rows)
    return d.done(field.bottom + 48)


def _range(
    values: Sequence[float], marks: Sequence[float] | None = None, room: float = 0.04
) -> tuple[float, float, list[float]]:
    """Return where an axis begins and ends, with a little room, and the marks on it."""
    low, high = min([*values, *(marks or ())]), max([*values, *(marks or ())])
    extra = (high - low) * room if high > low else max(abs(high) * 0.05, 0.5)
    low, high = low - extra, high + extra
    if marks is not None:
        return low, high, [float(m) for m in marks]
    return low, high, [m for m in ticks(low, high, 6) if low - 1e-9 <= m <= high + 1e-9]


def _axes(d: Drawing, field: _Field, across: Sequence[float], up: list[float], x_title: str, y_title: str) -> None:
    places = decimals(up)
    for mark in up:
        d.line(field.left, field.y(mark), field.right, field.y(mark), "s-rule")
        d.text(field.left - 8, field.y(mark) + 4, signed(mark, places), "muted", anchor="end")
    d.line(field.left, field.bottom, field.right, field.bottom, "s-muted")
    places, free = decimals(list(across)), -math.inf
    for mark in sorted(across):
        x, words = field.x(mark), signed(mark, places)
        d.line(x, field.bottom, x, field.bottom + 4, "s-muted")
        half = text_width(words, 12) / 2
        if x - half > free:  # marks that lie close to one another are not all written
            d.text(x, field.bottom + 17, words, "muted", anchor="middle")
            free = x + half + 3
    d.text(field.left - 8, field.top - 12, y_title, "muted")
    d.text((field.left + field.right) / 2, field.bottom + 35, x_title, "muted", anchor="middle")


def _draw_spread(d: Drawing, field: _Field, kind: int, points: _Points, *, whiskers: bool) -> None:
    colour = f"c{kind % SERIES}"
    for run in _runs(points):
        if not any(_spread(p) for p in run):
            continue
        if whiskers or len(run) == 1:
            ends = [(field.x(p[0]), field.y(p[1] - _spread(p)), field.y(p[1] + _spread(p))) for p in run if _spread(p)]
            d.path(
                "".join(
                    f"M{span(x)},{span(low)}V{span(high)}M{span(x - 2)},{span(low)}h4M{span(x - 2)},{span(high)}h4"
                    for x, low, high in ends
                ),
                f"s-{colour}",
                'opacity=".55"',
            )
            continue
        over = [f"{span(field.x(p[0]))},{span(field.y(p[1] + _spread(p)))}" for p in run]
        under = [f"{span(field.x(p[0]))},{span(field.y(p[1] - _spread(p)))}" for p in reversed(run)]
        d.path("M" + "L".join(over + under) + "Z", colour, 'opacity=".16"')


def _draw_series(d: Drawing, field: _Field, kind: int, points: _Points) -> None:
    dash = _DASHES[kind % SERIES]
    for run in _runs(points):
        path = "M" + "L".join(f"{span(field.x(p[0]))},{span(field.y(p[1]))}" for p in run)
        if len(run) > 1:
            d.path(path, f"s-c{kind % SERIES}", 'stroke-width="2"' + (f' stroke-dasharray="{dash}"' if dash else ""))
        for p in run:
            _draw_marker(d, kind, field.x(p[0]), field.y(p[1]))


def _apart(wanted: list[float], gap: float, low: float, high: float) -> list[float]:
    """Return places in the same order, at least `gap` apart, between `low` and `high`, near those wanted."""
    blocks: list[tuple[float, int]] = []  # of places that touch: their middle, and how many they are

    def middle(last: int, size: int) -> float:
        half = gap * (size - 1) / 2
        return min(max(sum(wanted[last + 1 - size : last + 1]) / size, low + half), high - half)

    for i in range(len(wanted)):
        centre, size = middle(i, 1), 1
        while blocks and centre - blocks[-1][0] < gap * (size + blocks[-1][1]) / 2:
            size += blocks.pop()[1]
            centre = middle(i, size)
        blocks.append((centre, size))
    return [centre + gap * (k - (size - 1) / 2) for centre, size in blocks for k in range(size)]


def _name_ends(d: Drawing, field: _Field, rows: Sequence[tuple[str, _Points]]) -> None:
    """Write the names beside the ends of the lines, apart from one another, each with its sign."""
    ends = [(run[-1], kind) for kind, (_, points) in enumerate(rows) for run in list(_runs(points))[-1:]]
    ends.sort(key=lambda end: (field.y(end[0][1]), end[1]))
    places = _apart([field.y(p[1]) for p, _ in ends], 16, field.top, field.bottom)
    for (p, kind), y in zip(ends, places):
        x = field.right + 14
        d.line(field.x(p[0]) + 6, field.y(p[1]), x, y, f"s-c{kind % SERIES}", 'opacity=".45"')
        dash = _DASHES[kind % SERIES]
        more = 'stroke-width="2"' + (f' stroke-dasharray="{dash}"' if dash else "")
        d.line(x, y, x + 24, y, f"s-c{kind % SERIES}", more)
        _draw_marker(d, kind, x + 12, y)
        d.text(x + 30, y + 4, rows[kind][0], "ink")


def dots(rows: Sequence[tuple[str, float, float, float]], *, title: str, x_title: str, zero: bool = True) -> str:
    """Draw a forest plot: for each row (name, mean, low, high) a dot with its interval.

    With `zero` a line stands at 0, and dots whose interval holds 0 are hollow.
    """
    known = [v for _, *values in rows for v in values if math.isfinite(v)]
    d = Drawing(title, 760)
    if not known:
        d.text(14, d.y + 14, "nothing was measured", "muted")
        return d.done(d.y + 30)
    marks = ticks(min([*known, 0.0] if zero else known), max([*known, 0.0] if zero else known), 6)
    names = [shorten(name, 46) for name, *_ in rows]
    left = 14 + max(text_width(name, 12) for name in names) + 16
    field = _Field(left, 760 - 160, d.y, d.y + 22.0 * len(rows) + 6, marks[0], marks[-1], 0.0, 1.0)
    places = decimals(marks)
    for mark in marks:
        d.line(field.x(mark), field.top, field.x(mark), field.bottom, "s-rule")
        d.text(field.x(mark), field.bottom + 15, signed(mark, places, plus=zero), "muted", anchor="middle")
    if zero:
        d.line(field.x(0), field.top - 2, field.x(0), field.bottom + 2, "s-ink", 'stroke-width="1.3"')
    for i, (name, (_, mean, low, high)) in enumerate(zip(names, rows)):
        _dot(d, field, name, field.top + 22.0 * i + 14, (mean, low, high), zero=zero)
    d.text((field.left + field.right) / 2, field.bottom + 34, shorten(x_title, 80), "muted", anchor="middle")
    if zero:
        words = "hollow, grey: the interval holds 0"
        d.text((field.left + field.right) / 2, field.bottom + 51, words, "muted", size=11, anchor="middle")
    return d.done(field.bottom + (62 if zero else 46))


def _dot(d: Drawing, field: _Field, name: str, y: float, values: tuple[float, float, float], *, zero: bool) -> None:
    mean, low, high = values
    d.text(field.left - 14, y + 4, name, "ink", anchor="end")
    if not math.isfinite(mean):
        d.text(field.right + 14, y + 4, "–", "muted")
        return
    words = signed(mean, 2, plus=zero)
    clear = not zero
    if math.isfinite(low) and math.isfinite(high):
        clear = not zero or low > 0 or high < 0
        d.line(field.x(low), y, field.x(high), y, f"s-{_shade(mean, clear)}", 'stroke-width="2"')
        words += f"  [{signed(low, 2, plus=zero)}, {signed(high, 2, plus=zero)}]"
    circle, _ = _marker(0, field.x(mean), y, 4.6)
    if not clear:
        d.path(circle, "paper")
    d.path(circle, _shade(mean, clear) if clear else "s-muted", "" if clear else 'stroke-width="1.8"')
    d.text(field.right + 14, y + 4, words, "ink" if clear else "muted")


def _shade(mean: float, clear: bool) -> str:
    return "muted" if not clear else "c0" if mean >= 0 else "c1"

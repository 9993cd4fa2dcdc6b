"""What all pictures share: a self-contained SVG in the colours of the report, light and dark.

A picture carries its own background and styles, so that it reads well as an image in Markdown and inside a page. Its
classes begin with a digest of the picture itself: several pictures on one page do not disturb one another.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from functools import cache
from html import escape
from importlib import resources

from lasca.report.text import clean
from lasca.reproduce.markup import tidy

__all__ = ["SERIES", "Drawing", "decimals", "shorten", "signed", "span", "text_width", "ticks", "wrap"]

FONT = "Inter, 'Segoe UI', system-ui, -apple-system, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"
SERIES = 9
"""How many series have a colour of their own; with dashes and markers they are told apart without it."""
_MORE = (("#1b1c1f", "#e5e4e0"), ("#0b7f82", "#5fd0cf"), ("#86604a", "#d3b39f"))
_PREFIX = "\x00"  # stands for the digest until it is known; cannot occur in text that went through `tidy`
_COLOUR = re.compile(r"--([a-z]+[0-9]?|mark-ink):\s*(#[0-9a-f]{6})")
_NARROW, _WIDE = frozenset("iljtfrI.,:;'|!()[]{} "), frozenset("mwMW@%—…")


@cache
def _colours() -> tuple[dict[str, str], dict[str, str]]:
    """Return the colours of the report's style sheet, light and dark, and those of the further series."""
    style = resources.files("lasca.report").joinpath("page", "style.css").read_text(encoding="utf-8")
    light_part, dark_part = style.split("@media (prefers-color-scheme: dark)", 1)
    dark_part = dark_part.split("}", 1)[0]
    light, dark = dict(_COLOUR.findall(light_part)), dict(_COLOUR.findall(dark_part))
    for i, (on_light, on_dark) in enumerate(_MORE, start=6):
        light[f"c{i}"], dark[f"c{i}"] = on_light, on_dark
    return light, dark


def _rule(name: str, colours: dict[str, str]) -> str:
    """Return the declarations of a class: a colour fills; `s-` strokes it, `b-` does both."""
    how, _, colour = name.rpartition("-") if name[:2] in ("s-", "b-") else ("f", "", name)
    value = colours["mark-ink" if colour == "markink" else colour]
    return {"f": f"fill:{value}", "s": f"fill:none;stroke:{value}", "b": f"fill:{value};stroke:{value}"}[how]


def span(value: float) -> str:
    """Write a coordinate."""
    return f"{round(value, 1) + 0.0:g}"


def text_width(text: str, size: float = 12, *, bold: bool = False) -> float:
    """Return about how wide the text is, rather too much than too little: fonts differ."""
    total = 0.0
    for char in text:
        if unicodedata.combining(char):
            continue
        if char in _NARROW:
            total += 0.36
        elif char in _WIDE or unicodedata.east_asian_width(char) in "WF":
            total += 1.02
        else:
            total += 0.7 if char.isupper() else 0.61
    return total * size * (1.06 if bold else 1.0)


def shorten(text: str, limit: int = 24) -> str:
    """Return the text on one line, harmless and not too long."""
    return clean(tidy(text), limit)


def wrap(text: str, width: float, size: float, *, bold: bool = False) -> list[str]:
    """Break text into lines of at most a width."""
    lines: list[str] = []
    for word in tidy(text).split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size, bold=bold) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return [line for line in lines if line]


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Return round numbers from at or below `low` to at or above `high`."""
    rough = max(high - low, 1e-9 * max(abs(low), abs(high), 1.0)) / wanted
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(m * size for m in (1, 2, 5, 10) if m * size >= rough * 0.999)
    first, last = math.floor(low / step + 1e-6), math.ceil(high / step - 1e-6)
    return [round(i * step, 12) for i in range(first, max(last, first + 1) + 1)]


def decimals(marks: list[float]) -> int:
    """Return how many places tell the marks of an axis apart."""
    return next((d for d in range(6) if all(abs(m - round(m, d)) < 1e-9 for m in marks)), 6)


def signed(value: float, digits: int, *, plus: bool = False) -> str:
    """Write a number with a true minus, and a plus if wanted; nothing as a dash."""
    if not math.isfinite(value):
        return "–"
    text = f"{value:{'+' if plus else ''}.{digits}f}".replace("-", "−")
    return text.lstrip("−+") if not text.strip("−+0.") else text


class Drawing:
    """A picture that is being drawn; `done` returns it."""

    def __init__(self, title: str, width: float) -> None:
        self.title = tidy(title)
        self.width = width
        self.parts: list[str] = []
        self.y = 14.0
        """Down to here it is full."""
        for line in wrap(title, width - 28, 14, bold=True):
            self.y += 18
            self.text(14, self.y - 5, line, "ink", size=14, weight=650)
        if self.title:
            self.y += 8

    def text(
        self,
        x: float,
        y: float,
        text: str,
        colour: str,
        *,
        size: float = 12,
        anchor: str = "start",
        weight: int = 400,
        turn: bool = False,
    ) -> None:
        """Write a text that is already harmless for the eye; it is escaped here. `turn` lets it run upwards."""
        more = f' font-size="{span(size)}"' if size != 12 else ""
        more += f' text-anchor="{anchor}"' if anchor != "start" else ""
        more += f' font-weight="{weight}"' if weight != 400 else ""
        more += f' transform="rotate(-90 {span(x)} {span(y)})"' if turn else ""
        self.parts.append(
            f'<text class="{_PREFIX}{colour}" x="{span(x)}" y="{span(y)}"{more}>{escape(tidy(text))}</text>'
        )

    def rect(self, x: float, y: float, width: float, height: float, colour: str, more: str = "") -> None:
        """Draw a rectangle."""
        self.parts.append(
            f'<rect class="{_PREFIX}{colour}" x="{span(x)}" y="{span(y)}" width="{span(width)}" '
            f'height="{span(height)}"{" " + more if more else ""}/>'
        )

    def path(self, d: str, colour: str, more: str = "") -> None:
        """Draw a path."""
        self.parts.append(f'<path class="{_PREFIX}{colour}" d="{d}"{" " + more if more else ""}/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> None:
        """Draw a straight line."""
        self.path(f"M{span(x1)},{span(y1)}L{span(x2)},{span(y2)}", colour, more)

    def done(self, height: float) -> str:
        """Return the picture."""
        width, height = math.ceil(self.width), math.ceil(height)
        body = f'<rect class="{_PREFIX}paper" width="{width}" height="{height}" rx="6"/>' + "\n".join(self.parts)
        names = sorted(set(re.findall(f"{_PREFIX}([a-z0-9-]+)", body)))
        light, dark = _colours()
        bright = "".join(f".{_PREFIX}{name}{{{_rule(name, light)}}}" for name in names)
        night = "".join(f".{_PREFIX}{name}{{{_rule(name, dark)}}}" for name in names)
        text = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(self.title)}" '
            f'font-family="{FONT}" font-size="12">\n'
            f"<style>{bright}@media screen and (prefers-color-scheme:dark){{{night}}}</style>\n{body}\n</svg>"
        )
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()[:8]
        return text.replace(_PREFIX, f"p{digest}-")

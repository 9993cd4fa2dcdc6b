"""Plain data to one self-contained HTML page: no network, no file beside it; what comes from outside is escaped.

Control characters are made visible, long things cut, numbers put in words. Styles, the script and the data are inlined.
A content security policy allows that one script and nothing else, so that even a mistake in escaping could not run
anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from lasca.errors import count

__all__ = ["MAX_SIDE", "clean", "context", "embedded_json", "joined", "number", "percent", "render"]

MAX_TOKEN = 80
MAX_SIDE = 130
"""How many characters of a sequence are shown before, and after, a token."""
MANY, FEW = 25, 5
"""Ambiguous tokens that are shown at once; few where none is likely to be ambiguous at all."""
_MADE_VISIBLE = {code: 0x2400 + code for code in range(32)} | {127: 0x2421}
_MADE_VISIBLE |= dict.fromkeys([*range(128, 160), *range(0xD800, 0xE000), 0xFEFF, 0xFFFE, 0xFFFF], 0xFFFD)
_DIRECTIONS = dict.fromkeys([0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
_HARMLESS = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def clean(text: str, limit: int = MAX_TOKEN) -> str:
    """Return text of at most `limit` characters with control characters made visible and overrides of direction gone.

    Escaping for HTML is not done here: that is the template's (and the script's) part.
    """
    shown = text[: limit + 1].translate(_MADE_VISIBLE).translate(_DIRECTIONS)
    if len(shown) <= limit:
        return shown
    end = limit - 1
    while end > 1 and unicodedata.combining(shown[end]):
        end -= 1
    return shown[:end] + "…"


def context(pieces: Sequence[str], start: int, stop: int) -> tuple[str, str]:
    """Return what stands before and after a part of a sequence, cut where it is far away.

    The pieces of a text are its words with the blank before each (`lasca.review.spans.pieces`): put before and after
    the part as they are, they give the text.
    """
    before = "".join(reversed(_near(pieces[:start][::-1]))).lstrip()
    blank = " " if before and pieces[start].startswith(" ") else ""
    return before + blank, "".join(_near(pieces[stop:])).rstrip()


def _near(pieces: Sequence[str]) -> list[str]:
    shown: list[str] = []
    room = MAX_SIDE
    for piece in pieces:
        room -= len(piece)
        if room < 0:
            return [*shown, " …"]
        shown.append(clean(piece))
    return shown


def number(value: float | int | None, digits: int = 3) -> str:
    """Write a number: thousands with commas, fractions with `digits` places, nothing as a dash."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    return (f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}").replace("-", "−")


def percent(value: float | None, digits: int = 1) -> str:
    """Write a share as a percentage; what is not quite nothing or not quite all is not written as such."""
    if value is None or not math.isfinite(value):
        return "–"
    step = 10.0**-digits
    if 0 < 100 * value < step:
        return f"under {step:g} %"
    if 100 - step < 100 * value < 100:
        return f"over {100 - step:g} %"
    return f"{100 * value:.{digits}f} %"


def joined(parts: Sequence[str]) -> str:
    """Write a list as people do: a, b and c."""
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1] if parts else ""


def _page_file(name: str) -> str:
    return resources.files("lasca.report").joinpath("page", name).read_text(encoding="utf-8")


def embedded_json(value: Any) -> Markup:
    """Return JSON that may stand inside a script element: it cannot end it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_HARMLESS))


def _unbroken(text: str) -> str:
    """Keep numbers and their per cent signs on one line."""
    return text.replace(" %", "\xa0%")


def _breakable(name: str) -> Markup:
    """Let a long name go on in the next line behind its signs (an address behind its @), not inside a word."""
    return Markup("<wbr>").join(escape(part) for part in re.findall(r".{0,23}?[@._/\s-]+|.{1,24}", name, re.S))


def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_page_file), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(number=number, count=count, unbroken=_unbroken, breakable=_breakable)
    environment.filters["percent"] = lambda value, digits=1: _unbroken(percent(value, digits))
    return environment


def render(data: Mapping[str, Any]) -> str:
    """Return the page."""
    script, style = _page_file("script.js"), _page_file("style.css")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    ambiguous = data["ambiguous"]
    for_script = {name: data[name] for name in ("labels", "styles", "names", "reliability")}
    for_script |= {name: ambiguous[name] for name in ("rows", "listed", "examples")}
    for_script["probability"] = ambiguous["is_probability"]
    for_script["first"] = FEW if ambiguous["is_probability"] and not ambiguous["likely"] else MANY
    page = _environment().get_template("page.html")
    inlined = {"script": Markup(script), "style": Markup(style), "embedded": embedded_json(for_script)}
    return page.render(**data, **inlined, script_hash=digest)

"""Plain data to one self-contained HTML page: no network, no file beside it; everything from outside is escaped.

Styles, the script and the data are inlined. A content security policy allows that one script and nothing else, so
that even a mistake in escaping could not run anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from lasca.report.text import count, number, percent

__all__ = ["embedded_json", "render"]

_HARMLESS = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def _page_file(name: str) -> str:
    return resources.files("lasca.report").joinpath("page", name).read_text(encoding="utf-8")


def embedded_json(value: Any) -> Markup:
    """Return JSON that may stand inside a script element: it cannot end it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_HARMLESS))


def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_page_file),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, percent=percent, count=count)
    return environment


def render(data: Mapping[str, Any]) -> str:
    """Return the page."""
    script, style = _page_file("script.js"), _page_file("style.css")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    ambiguous = data["ambiguous"]
    for_script = {
        "labels": data["labels"],
        "styles": data["styles"],
        "names": data["names"],
        "reliability": data["reliability"],
        "rows": ambiguous["rows"],
        "listed": ambiguous["listed"],
        "examples": ambiguous["examples"],
        "probability": ambiguous["is_probability"],
    }
    return (
        _environment()
        .get_template("page.html")
        .render(
            **data,
            script=Markup(script),
            style=Markup(style),
            script_hash=digest,
            embedded=embedded_json(for_script),
        )
    )

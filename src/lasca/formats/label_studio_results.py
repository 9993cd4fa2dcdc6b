"""What a Label Studio result is: a span of text, a label of the whole document, or something else (regions, sounds)."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

__all__ = ["TEXT_KEYS", "html_text", "is_reference", "kind_of", "looks_like_html", "paragraphs_of", "verdict_of"]

TEXT_KEYS = ("labels", "hypertextlabels", "paragraphlabels")
DOCUMENT_KEYS = ("choices", "taxonomy", "rating", "selected")
TIMED = ("timeserieslabels", "videorectangle", "timelinelabels")
REFERENCE = re.compile(r"(?:[a-z][a-z0-9+.-]*://|/data/|data:[a-z]+/)\S+|\S+\.(?:jpe?g|png|gif|bmp|webp|svg|tiff?|pdf|"
                       r"wav|mp3|ogg|flac|m4a|mp4|avi|webm|mov|csv)", re.IGNORECASE)  # fmt: skip
TAG = re.compile(r"<(?:html|body|div|p|table|span|h[1-6]|ul|ol|br|!doctype)\b[^>]*>", re.IGNORECASE)


def kind_of(result: object) -> str:
    """Return "span" (of text), "document", or in a few words what a result is instead."""
    value = result.get("value") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(value, dict):
        kind = result.get("type") if isinstance(result, dict) else None
        return str(kind) if isinstance(kind, str) and kind else "results without a value"
    kind = str(result.get("type") or "")
    if "start" in value and "end" in value:
        timed = kind in TIMED or any(key in value for key in (*TIMED, "channel", "instant", "ranges"))
        if (
            timed
            or "original_length" in result
            or (isinstance(value["start"], float) and not value["start"].is_integer())
        ):
            return kind if kind and kind != "labels" else "labels of sounds"
        if any(key in value for key in TEXT_KEYS):
            return "span"
        if any(key in value for key in (*DOCUMENT_KEYS, "text")) and kind not in ("", "labels"):
            return f"{kind} of single spans"
        return "span"
    if any(key in value for key in ("x", "points", "rle", "sequence", "vertices")):
        return kind or "regions"
    if any(key in value for key in DOCUMENT_KEYS):
        return "document"
    return kind or next(iter(map(str, value)), "results without a value")


def verdict_of(value: dict[str, Any]) -> tuple[str, ...]:
    """Return the labels of a document in a result's value: choices, the leaves' paths of a taxonomy, a rating."""
    given = next(value[key] for key in DOCUMENT_KEYS if key in value)
    entries = given if isinstance(given, list) else [given]
    found: list[str] = []
    for entry in entries:
        parts = entry if isinstance(entry, list) else [entry]
        if parts and all(isinstance(part, str | int | float) and not isinstance(part, bool) for part in parts):
            name = " / ".join(str(part).strip() for part in parts)
            if name.strip():
                found.append(name)
    return tuple(dict.fromkeys(found))


def is_reference(value: str) -> bool:
    """Say whether a value points to something (an image, a sound, a table) rather than being a text."""
    return REFERENCE.fullmatch(value.strip()) is not None


def looks_like_html(text: str) -> bool:
    """Say whether a text is markup."""
    return text.lstrip()[:1] == "<" and TAG.search(text) is not None


class _TextOnly(HTMLParser):
    def __init__(self, breaks: bool) -> None:
        super().__init__(convert_charrefs=True)
        self.breaks = breaks
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if self.breaks and tag == "br":
            self.parts.append("\n")


def html_text(html: str, *, breaks: bool = False) -> str:
    """Return the text of a page as global offsets count it: all text nodes; with `breaks`, a line break for each br."""
    parser = _TextOnly(breaks)
    parser.feed(html)
    parser.close()
    return "".join(parser.parts)


def paragraphs_of(value: object) -> list[str] | None:
    """Return the texts of a dialogue: a list of objects that all have the same one text (or `text`); else None."""
    if not isinstance(value, list) or not value or not all(isinstance(entry, dict) for entry in value):
        return None
    keys = [key for key in value[0] if all(isinstance(entry.get(key), str) for entry in value)]
    for key in ("text", "utterance", "content", "message"):
        if key in keys:
            return [entry[key] for entry in value]
    return [entry[keys[0]] for entry in value] if len(keys) == 1 else None

"""Blocks to one Markdown text, or to one self-contained HTML page: no script, no network, everything escaped."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from importlib import resources
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from lasca.reproduce.blocks import Block, Bullets, Heading, Page, Picture, Table, Text
from lasca.reproduce.markup import html_inline, markdown_inline, markdown_plain, tidy, words

__all__ = ["html", "markdown"]

WIDE = 440
"""Pictures wider than this many pixels scroll on a phone instead of shrinking until they cannot be read."""


def markdown(page: Page, *, pictures: str) -> str:
    """Return the page as Markdown; its pictures are expected as `pictures`/name.svg, relative to it."""
    parts = [f"# {markdown_plain(page.title)}"]
    parts += [_markdown_block(block, pictures.rstrip("/")) for block in page.blocks]
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown_block(block: Block, pictures: str) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {markdown_plain(text)}"
        case Text(text):
            return markdown_inline(text)
        case Bullets(items):
            return "\n".join(f"- {markdown_inline(item)}" for item in items)
        case Table():
            return _markdown_table(block)
        case Picture(name, _, caption):
            address = quote(f"{pictures}/{name}.svg" if pictures else f"{name}.svg")
            image = f"![{markdown_plain(words(caption))}]({address})"
            return f"{image}\n\n{markdown_inline(caption)}" if caption else image


def _markdown_table(table: Table) -> str:
    rules = [":---", *["---:"] * (len(table.header) - 1)]
    lines = [[markdown_plain(cell) for cell in table.header], rules]
    for r, row in enumerate(table.rows):
        shown = [markdown_plain(cell) for cell in row]
        lines.append([f"**{cell}**" if cell and (r, c) in table.strong else cell for c, cell in enumerate(shown)])
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    notes = [markdown_inline(note) for note in table.notes]
    under = notes[0] if len(notes) == 1 else "\n".join(f"- {note}" for note in notes)
    return "\n\n".join(part for part in (markdown_inline(table.caption), text, under) if part)


@dataclass
class _Section:
    """What stands from one heading of level 2 to the next."""

    heading: dict[str, Any] | None = None
    blocks: list[dict[str, Any]] = field(default_factory=list)


def _file(package: str, *path: str) -> str:
    return resources.files(package).joinpath(*path).read_text(encoding="utf-8")


def html(page: Page) -> str:
    """Return the page as one HTML text; styles and pictures are inlined."""
    sections = _sections(page)
    headings = [
        entry
        for section in sections
        for entry in [section.heading, *section.blocks]
        if entry is not None and entry["kind"] == "heading" and entry["level"] <= 3
    ]
    style = _file("lasca.report", "page", "style.css") + _file("lasca.reproduce", "page.css")
    environment = Environment(
        loader=FunctionLoader(lambda name: _file("lasca.reproduce", name)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("page.html")
    return (
        template.render(title=tidy(page.title), sections=sections, headings=headings, style=Markup(style)).rstrip("\n")
        + "\n"
    )


def _sections(page: Page) -> list[_Section]:
    sections = [_Section()]
    used: set[str] = set()
    tables = 0
    for block in page.blocks:
        tables += isinstance(block, Table)
        entry = _entry(block, tables)
        if entry["kind"] == "heading":
            entry["id"] = _anchor(entry["text"], used)
            if entry["level"] == 2:
                sections.append(_Section(entry))
                continue
        sections[-1].blocks.append(entry)
    return [section for section in sections if section.heading or section.blocks]


def _anchor(text: str, used: set[str]) -> str:
    """Return an id that no other heading has, made of the words of the heading."""
    simple = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    stem = re.sub(r"[^a-z0-9]+", "-", simple).strip("-") or "part"
    name, number = f"s-{stem}", 1
    while name in used:
        number += 1
        name = f"s-{stem}-{number}"
    used.add(name)
    return name


def _entry(block: Block, number: int) -> dict[str, Any]:
    """Return the block as the template wants it."""
    match block:
        case Heading(text, level):
            return {"kind": "heading", "text": tidy(text), "level": level}
        case Text(text):
            return {"kind": "text", "text": html_inline(text)}
        case Bullets(items):
            return {"kind": "bullets", "items": [html_inline(item) for item in items]}
        case Table():
            return {
                "kind": "table",
                "name": f"Table {number}: {words(block.caption)}" if block.caption else f"Table {number}",
                "caption": html_inline(block.caption),
                "header": [tidy(cell) for cell in block.header],
                "rows": [
                    [{"text": tidy(cell), "strong": (r, c) in block.strong} for c, cell in enumerate(row)]
                    for r, row in enumerate(block.rows)
                ],
                "notes": [html_inline(note) for note in block.notes],
            }
        case Picture(name, svg, caption):
            width = re.search(r'<svg[^>]* width="(\d+)', svg)
            return {
                "kind": "picture",
                "name": f"Picture: {words(caption) or name}",
                "svg": Markup(svg),
                "wide": width is not None and int(width[1]) > WIDE,
                "caption": html_inline(caption),
            }

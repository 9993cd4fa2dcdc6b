"""The page as plain data: what stands on it and in which order, nothing about Markdown or HTML.

Paragraphs, list items, captions and notes may hold a tiny markup: `**bold**`, `` `code` ``, `[words](address)`.
Headings, table cells and header cells are plain text. Text from data that goes into a paragraph goes through `plain`
first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Block", "Bullets", "Heading", "Page", "Picture", "Table", "Text", "plain"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def plain(text: str) -> str:
    """Return text that stands for itself inside a paragraph: nothing in it is markup."""
    return re.sub(r"([\\*`\[\]])", r"\\\1", text)


@dataclass(frozen=True)
class Heading:
    """A heading; level 2 begins a section, 1 is the title of the page."""

    text: str
    level: int = 2

    def __post_init__(self) -> None:
        if not 2 <= self.level <= 5:
            raise ValueError(f"the level of the heading {self.text!r} must be 2 to 5, got {self.level}")


@dataclass(frozen=True)
class Text:
    """A paragraph in the tiny markup."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list; each item in the tiny markup."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table: the first column is text, the others are numbers set to the right.

    `strong` holds the cells (row, column) in bold, counted from 0 without the header. `caption` and `notes` are in the
    tiny markup.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    notes: tuple[str, ...] = ()
    strong: frozenset[tuple[int, int]] = frozenset()

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.header):
                raise ValueError(f"row {number} has {len(row)} cells, the header has {len(self.header)}: {row!r}")


@dataclass(frozen=True)
class Picture:
    """An SVG picture; `name` is the stem of its file, `caption` is in the tiny markup."""

    name: str
    svg: str
    caption: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"the name of a picture is a file name of letters, digits, . _ and -, got {self.name!r}")


Block = Heading | Text | Bullets | Table | Picture


@dataclass(frozen=True)
class Page:
    """A title and what stands under it."""

    title: str
    blocks: tuple[Block, ...]

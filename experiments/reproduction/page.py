"""The page: its parts, each of which writes itself as Markdown.

Paragraphs, items, captions and notes are Markdown as they stand; headings and cells are plain text and escaped here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Block", "Bullets", "Heading", "Picture", "Table", "Text", "markdown"]

SPECIAL = re.compile(r"[\\`*\[\]|$~]|(?<![^\W_])_|_(?![^\W_])")


def escaped(text: str) -> str:
    """Return Markdown that shows the text as it is, in a table too."""
    return SPECIAL.sub(lambda found: "\\" + found[0], text.replace("&", "&amp;").replace("<", "&lt;"))


@dataclass(frozen=True)
class Heading:
    """A heading; level 2 begins a section."""

    text: str
    level: int = 2

    def markdown(self) -> str:
        return f"{'#' * self.level} {escaped(self.text)}"


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str

    def markdown(self) -> str:
        return self.text


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: tuple[str, ...]

    def markdown(self) -> str:
        return "\n".join(f"- {item}" for item in self.items)


@dataclass(frozen=True)
class Table:
    """A table: the first column is text, the others numbers set to the right; `strong` are (row, column) in bold."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    strong: frozenset[tuple[int, int]] = frozenset()

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.header):
                raise ValueError(f"row {number} has {len(row)} cells, the header has {len(self.header)}: {row!r}")

    def markdown(self) -> str:
        lines = [[escaped(cell) for cell in self.header], [":---", *["---:"] * (len(self.header) - 1)]]
        for r, row in enumerate(self.rows):
            lines.append([f"**{escaped(x)}**" if (r, c) in self.strong else escaped(x) for c, x in enumerate(row)])
        return f"{self.caption}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


@dataclass(frozen=True)
class Picture:
    """A picture beside the page, `name`.svg, drawn only when it is written."""

    name: str
    draw: Callable[[], Figure]
    caption: str

    def markdown(self) -> str:
        return f"![{escaped(self.caption)}](reproduction/{self.name}.svg)\n\n{self.caption}"


Block = Heading | Text | Bullets | Table | Picture


def markdown(blocks: list[Block]) -> str:
    """Return the page."""
    return "\n\n".join(["# The paper's experiments, run anew", *(block.markdown() for block in blocks)]) + "\n"

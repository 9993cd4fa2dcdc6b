"""What all CoNLL readers share: lines into rows of cells, rows into sequences.

A file is tab-separated if most of its lines hold a tab, else separated by runs of spaces. A line without anything in
it (tabs and spaces aside) ends a sequence, and so does a `-DOCSTART-` line, which also begins a document. Comments:
`# key = value` goes with the sequence that follows; any other line that begins with "# " is a comment unless what
follows are labels that occur elsewhere in the file (`# O` may be the token "#"), or it has the tabs of a row. Every row
must have as many cells as the first one.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from lasca.estimator import check_choice
from lasca.formats.base import SourceFile

__all__ = ["TOKEN_NAMES", "Block", "Table", "read_table", "split_spaces", "text_lines"]

DOCSTART = "-DOCSTART-"
TOKEN_NAMES = ("token", "tokens", "word", "words", "form", "text")
_TAG = re.compile(r"^(O|[?]?|[BIESLUM](-.+)?)$")
_KEY_VALUE = re.compile(r"^#\s*([^\s=]+)\s*=\s?(.*)$")


@dataclass
class Block:
    """One sequence: its rows of cells with their line numbers, the comments before it, its document's number."""

    rows: list[tuple[int, list[str]]] = field(default_factory=list)
    comments: dict[str, str] = field(default_factory=dict)
    document: int = 0

    @property
    def line(self) -> int:
        """The line of the first row."""
        return self.rows[0][0]

    def column(self, index: int) -> list[str]:
        """Return one cell of every row."""
        return [cells[index] for _, cells in self.rows]


@dataclass
class Table:
    """A file of columns: its sequences, the header if it has one, how many columns, comments and documents."""

    blocks: list[Block]
    header: list[str] | None
    n_columns: int
    n_comments: int
    n_documents: int


def text_lines(text: str) -> list[str]:
    """Split text at LF or CR LF (or at CR where there is no LF), and nowhere else."""
    if "\n" not in text:
        text = text.replace("\r", "\n")
    lines = text.split("\n")
    return [line[:-1] if line.endswith("\r") else line for line in lines]


def read_table(file: SourceFile, *, separator: str = "auto", header: bool | str = "auto") -> Table:
    """Read a file of columns; ragged rows are an error that names the line."""
    check_choice("separator", separator, ("auto", "tab", "space"))
    lines = text_lines(file.text())
    by_tab = separator == "tab" or (separator == "auto" and _mostly_tabs(lines))
    rows = [(number, _cells(line, by_tab)) for number, line in enumerate(lines, start=1)]
    known = _labels_elsewhere(rows)
    table = Table([], None, 0, 0, 0)
    block = Block()
    for (number, cells), line in zip(rows, lines):
        if not cells[0].strip(" ") and not any(cells[1:]):
            block = _closed(table, block)
        elif cells[0] == DOCSTART:
            block = _closed(table, block)
            table.n_documents += 1
        elif cells[0].startswith("#") and _is_comment(line, cells, known, by_tab):
            match = _KEY_VALUE.match(line)
            if match is None:
                table.n_comments += 1
                continue
            block = _closed(table, block) if block.rows else block
            block.comments[match[1]] = match[2]
        elif table.header is None and not table.n_columns and _is_header(cells, known, header):
            table.header, table.n_columns = cells, len(cells)
        else:
            _check_width(table, file, number, cells, line)
            block.document = table.n_documents
            block.rows.append((number, cells))
    _closed(table, block)
    return table


def _mostly_tabs(lines: list[str]) -> bool:
    filled = [line for line in lines if line.strip() and not line.startswith(("# ", DOCSTART))]
    return 2 * sum("\t" in line for line in filled) > len(filled)


def _cells(line: str, by_tab: bool) -> list[str]:
    if by_tab:
        token, *rest = line.split("\t")
        return [token, *(cell.strip(" ") for cell in rest)]
    return split_spaces(line.replace("\t", " ")) if line and line.strip(" \t") else [""]


def split_spaces(line: str) -> list[str]:
    """Split at runs of spaces; a space at the beginning leaves an empty first cell."""
    cells = line.rstrip(" ").split(" ")
    return [cells[0], *filter(None, cells[1:])] if "" in cells else cells


def _labels_elsewhere(rows: list[tuple[int, list[str]]]) -> list[set[str]]:
    """Return the cells of each column, in rows of the usual width that do not begin with "#"; the first row aside."""
    plain = [cells for _, cells in rows if any(cells) and not cells[0].startswith("#") and cells[0] != DOCSTART]
    plain = plain or [cells for _, cells in rows if len(cells) > 1]
    if not plain:
        return []
    width = max(Counter(len(cells) for cells in plain).items(), key=lambda item: (item[1], item[0]))[0]
    usual = [cells for cells in plain[1:] if len(cells) == width]
    return [{cells[column] for cells in usual} for column in range(width)]


def _is_comment(line: str, cells: list[str], known: list[set[str]], by_tab: bool) -> bool:
    if by_tab and len(cells) == len(known):
        return False
    if len(cells) != len(known) and (
        _KEY_VALUE.match(line) is not None or (len(cells) == 1 and not line[1:2].isalnum())
    ):
        return True
    if len(cells) != len(known) and line.startswith(("#\t", "#begin document", "#end document")):
        return True  # GermEval's sources, the borders of CoNLL-2012
    if not line.startswith("# "):
        return False
    labels = [cell for cell in cells[1:] if cell not in ("?", "")]
    return len(cells) != len(known) or not set().union(*known[1:]).issuperset(labels)


def _is_header(cells: list[str], known: list[set[str]], header: bool | str) -> bool:
    if header is not True and header is not False:
        check_choice("header", header, ("auto",))
        names = len(cells) > 1 and cells[0].lower() in TOKEN_NAMES
        if len(cells) > 2 and cells[1].lower() in TOKEN_NAMES and known:
            names = all(cell.isdecimal() for cell in known[0])  # a number before each token
        if len(set(cells)) < len(cells) and all(_TAG.match(cell) for cell in cells[1:]):
            return False  # the token "Text" and its tags; other names that repeat are refused where columns are named
        return names and set().union(*known[1:]).isdisjoint(cells[1:])
    return header


def _check_width(table: Table, file: SourceFile, number: int, cells: list[str], line: str) -> None:
    if not table.n_columns:
        table.n_columns = len(cells)
    if len(cells) != table.n_columns:
        raise file.error(
            f"this line has {len(cells)} cells where the lines before have {table.n_columns}",
            number,
            got=line,
            hint="A missing label is written as ?",
        )


def _closed(table: Table, block: Block) -> Block:
    if not block.rows:
        return block
    table.blocks.append(block)
    return Block()

"""MACE CSV: a row per token, a column per annotator, an empty cell for a missing label, a blank row between sequences.

```
O,,O
B-PER,B-PER,
I-PER,O,I-PER

B-LOC,,B-LOC
```

The program MACE knows neither annotators' names nor tokens. Here both may be there: a header row names the annotators,
and a column called `token` (or `word`), the first one, holds the tokens. `header="auto"` takes the first row for a
header if it begins with `token`, or if none of its cells occurs again below. Without a header the annotators are "1",
"2", …; a name that says so (`gold`, `majority`, `gpt-4`) is a gold or a model; without tokens every token is written as
`_`. A row of empty cells is a token that nobody labelled, or, where there are tokens, the border of a sequence.
`missing` is a label that stands for none; NA and N/A are asked about.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from itertools import combinations
from pathlib import PurePosixPath

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError
from lasca.formats.base import Collector, SourceFile, natural_key
from lasca.formats.conll_lines import are_crossed
from lasca.formats.names import NAMES, TOKEN_NAMES, are_people, plain_name, role_of
from lasca.formats.tabular import (
    AGAIN,
    HOLDS_ROWS,
    NAN,
    QUOTED,
    QUOTES,
    TWICE,
    ask_missing,
    delimiter_of,
    holds_rows,
    looks_delimited,
    no_labels,
)

__all__ = ["NAME", "read", "sniff"]

NAME = "mace"
OTHERS = {*NAMES["annotator"], *NAMES["label"], *NAMES["sequence"], "text"}  # columns of other tables
LEAST = 6  # rows of three cells of which two never stand together twice, by no chance
Row = tuple[int, list[str]]


def read(
    files: Sequence[SourceFile],
    *,
    header: bool | str = "auto",
    delimiter: str = "auto",
    items: bool = False,
    missing: str | None = None,
) -> CrowdCorpus:
    """Read MACE CSV files; of several, each adds sequences with ids "FILE/0", "FILE/1", ….

    `items=True` makes every row a sequence of its own, for items without an order.
    """
    if not isinstance(items, bool):
        raise ParameterError("items", items, "True or False")
    if header not in (True, False, "auto"):
        raise ParameterError("header", header, "True, False or 'auto'")
    if delimiter != "auto" and (len(str(delimiter)) != 1 or delimiter in '"\r\n'):
        raise ParameterError("delimiter", delimiter, "'auto', or one character, such as ',' or a tab")
    collector = Collector(files, NAME)
    for file in sorted(files, key=lambda file: natural_key(file.name)):
        rows = _rows(file, delimiter)
        if not any(cells for _, cells in rows):
            collector.count("empty files", 1, file.shown)
            continue
        names, has_tokens = _names(file, rows, header)
        if not has_tokens and not are_people(names) and _are_triples([cells for _, cells in rows if cells]):
            what = "two of three cells never stand together twice: these are items and workers, and not annotators"
            hint = "Write a header, such as worker,item,label; or, if they are three annotators: ann_1,ann_2,ann_3"
            raise file.error(what, next(line for line, cells in rows if cells), hint=hint)
        if has_tokens:
            rows = [(line, cells if any(cells) else []) for line, cells in rows]
        texts = has_tokens and any(" " in cells[0] for _, cells in rows if cells)
        if texts and not items:
            collector.note("The rows are about whole texts: each is a sequence of its own.")
        prefix = f"{PurePosixPath(file.name).with_suffix('')}/" if len(files) > 1 else ""
        below = {cell for _, cells in rows for cell in cells[has_tokens:]}
        ask_missing(below, missing, file.error)
        blocks = [[row] for block in _blocks(rows) for row in block] if items or texts else _blocks(rows)
        for number, block in enumerate(blocks):
            _add(collector, file, f"{prefix}{number}", block, names, has_tokens, no_labels(missing))
        golds = [name for name in names if role_of(name) == "gold"]
        if golds:
            collector.note(f"Read as golds, by their names: {', '.join(golds)}.")
        if not has_tokens:
            collector.note("There is no column of tokens: every token is written as _.")
        if len(blocks) == 1 and len(blocks[0]) > 1 and not has_tokens:
            collector.note(
                "There is no blank row, so all rows are one sequence. If they are items without an order, models that "
                "look at neighbours (hmm-crowd, bsc, hc-seq) have nothing to look at: items=true makes each row a "
                "sequence of its own (on the command line: -r items=true)."
            )
    return collector.corpus(order="given")


def _rows(file: SourceFile, delimiter: str) -> list[Row]:
    """Return the line and the cells of every row; a blank line has no cells."""
    text = file.text()
    if delimiter == "auto":
        delimiter = delimiter_of(text.lstrip("\r\n").split("\n", 1)[0])
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[Row] = []
    broken: list[tuple[int, int, str]] = []  # cells with a line break: line, column, cell
    line = 1
    try:
        for cells in reader:
            broken += [(line, k, cell) for k, cell in enumerate(cells) if "\n" in cell]
            rows.append((line, [] if len(cells) == 1 and not cells[0].strip() else [cell.strip() for cell in cells]))
            line = reader.line_num + 1
    except csv.Error as error:
        raise file.error(f"this is not CSV: {error}", line) from error
    width = next((len(cells) for _, cells in rows if cells), 0)
    for number, k, cell in broken:
        if holds_rows(cell, delimiter, width, k):
            raise file.error(HOLDS_ROWS, number, got=cell, hint=QUOTES)
    for number, cells in rows:
        if cells and len(cells) != width:
            raise file.error(
                f"this row has {len(cells)} cells where the first one has {width}",
                number,
                got=delimiter.join(cells),
                hint="An empty cell is a missing label; every annotator needs a cell in every row"
                if len(cells) < width
                else QUOTED,
            )
    return rows


def _names(file: SourceFile, rows: list[Row], header: bool | str) -> tuple[list[str], bool]:
    """Return the annotators' names (taking the header row out) and whether the first column holds tokens."""
    at = next(i for i, (_, cells) in enumerate(rows) if cells)
    line, first = rows[at]
    again = first if are_people(first) else None  # of another file that was put behind
    below = {cell for _, cells in rows[at + 1 :] if cells != again for cell in cells}
    distinct = all(first) and len(set(first)) == len(first)
    has_header = header is True
    if header == "auto":
        has_header = distinct and bool(below) and (first[0].lower() in TOKEN_NAMES or not below & set(first))
    if not has_header:
        return [str(i + 1) for i in range(len(first))], False
    if not distinct:
        raise file.error("every annotator in the header needs a name of its own", line, got=",".join(first))
    has_tokens = first[0].lower() in TOKEN_NAMES
    if header == "auto" and (others := [name for name in first[has_tokens:] if plain_name(name) in OTHERS]):
        raise file.error(
            f"the column {others[0]!r} is no annotator's",
            line,
            got=",".join(first),
            hint="A row per token with its sequence is read by format=conll, a row per label by format=table; if it is "
            "one, set header=true",
        )
    del rows[at]
    if (twice := next((number for number, cells in rows if cells == first), None)) is not None:
        raise file.error(AGAIN, twice, got=",".join(first), hint=TWICE)
    return (first[1:] if has_tokens else first), has_tokens


def _are_triples(rows: Sequence[Sequence[str]]) -> bool:
    """Say whether rows of three cells are items, who labelled them, and how: two of the cells tell all rows apart."""
    if len(rows) < LEAST or any(len(cells) != 3 or not all(cells) for cells in rows):
        return False
    columns = list(zip(*rows))
    return any(are_crossed(a, b) and are_crossed(b, a) for a, b in combinations(columns, 2))


def _blocks(rows: list[Row]) -> list[list[Row]]:
    blocks: list[list[Row]] = [[]]
    for row in rows:
        if row[1]:
            blocks[-1].append(row)
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def _add(
    collector: Collector,
    file: SourceFile,
    id: str,
    block: list[Row],
    names: list[str],
    has_tokens: bool,
    nothing: Sequence[str],
) -> None:
    where = f"{file.shown}:{block[0][0]}"
    collector.sequence(id, [cells[0] if has_tokens else "_" for _, cells in block], where=where)
    for column, name in enumerate(names, start=int(has_tokens)):
        labels = [None if cells[column] in nothing else cells[column] for _, cells in block]
        collector.count("labels nan, taken as missing", sum(cells[column] in NAN for _, cells in block), where)
        collector.annotate(id, name, labels, role=role_of(name), where=where)


def sniff(files: Sequence[SourceFile]) -> float:
    """Say how much these files look like MACE CSV: 0 to 1."""
    if not files or any(PurePosixPath(file.name).suffix.lower() not in (".csv", "") for file in files):
        return 0.0
    if not looks_delimited(files[0]):
        return 0.0
    try:
        rows = [cells for _, cells in _rows(files[0].beginning(), "auto") if cells]
    except FormatError:
        return 0.0
    header = {plain_name(cell) for cell in rows[0]} if rows else set()
    if header & OTHERS:
        return 0.0  # a long table, or one about texts, whose columns are not annotators
    named = bool(rows) and rows[0][0].lower() in TOKEN_NAMES  # rather the format conll, which asks more
    if named:
        rows = [row[1:] for row in rows[1:]]
    cells = [cell for row in rows for cell in row if cell]
    if len(rows) < 2 or len(rows[0]) < 2 or not cells:
        return 0.0
    below = {cell for row in rows[1:] for cell in row if cell}
    if below.isdisjoint(rows[0]):
        rows = rows[1:]
    columns = [{row[k] for row in rows if row[k]} for k in range(len(rows[0]))]
    alone = [
        own for k, own in enumerate(columns) if own and own.isdisjoint(set().union(*columns[:k], *columns[k + 1 :]))
    ]
    few = len(set(cells)) <= max(6, len(cells) // 4)
    return 0.0 if alone else 0.7 - 0.15 * named if few else 0.2  # a column that shares no label is no annotator's

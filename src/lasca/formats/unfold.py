"""The same rows in another dress, tried where no reader claims files as they are.

- A table whose cells hold lists or objects (JSON, or what Python prints: `['B-PER', 'O']`, `[(0, 3, 'PER')]`) is JSON,
  and so is one whose cells hold a tag for every word of a text (`B-PER O O`).
- JSON objects of nothing but plain values are a table: rows, or as pandas writes a frame, by columns or split.
- An object that maps ids to objects, or that holds one list of objects beside plain values, is those objects.

Rows of tables stay on their lines, so that messages point into the file the user has; records inside an object are
counted.
"""

from __future__ import annotations

import ast
import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from lasca.errors import FormatError
from lasca.formats.names import named
from lasca.formats.sources import SourceFile, loads, parse_json, parse_json_items
from lasca.formats.tabular import columns_of_tags, csv_rows, looks_delimited

__all__ = ["dresses", "opened"]

Placed = tuple[int, dict[str, Any]]
MOST = 20_000  # characters of a cell that Python's own parser is asked to read
TEXTS = {"text", "tokens", "words", "sentence", "content", "data", "displayed_text"}  # by which a record is known
PLAIN = (str, int, float, bool, type(None))


def dresses(files: Sequence[SourceFile]) -> Iterator[tuple[str, list[SourceFile]]]:
    """Yield the files in other dresses, each with a sentence that says what was done."""
    for said, change in (
        ("The cells of the table hold lists: they were read as JSON.", opened),
        ("The objects of the file were read as the rows of a table.", _flattened),
        ("The file is an object that holds the records: they were taken out of it.", _taken_out),
    ):
        try:
            changed = [change(file) for file in files]
        except FormatError:
            continue
        if all(file is not None for file in changed):
            yield said, [file for file in changed if file is not None]


def opened(file: SourceFile) -> SourceFile | None:
    """Return a table whose cells hold lists as JSON lines; None if it is none."""
    if file.values or not looks_delimited(file):
        return None
    (_, header), *rows = csv_rows(file)
    names = [name.strip() or "row" for name in header]
    if len(set(names)) < len(names):
        return None
    if any(_is_list(cell) for _, cells in rows[:20] for cell in cells):
        return _lines(file, [(line, dict(zip(names, map(_value, cells)))) for line, cells in rows])
    text = named(names, ("text", "sentence", "content", "tweet", "words", "tokens"))
    columns = [[cells[k] for _, cells in rows] for k in range(len(names))]
    tagged = set(columns_of_tags(columns[text], columns)) - {text} if text is not None else set()
    if text is None or not tagged:
        return None
    made = []
    for line, cells in rows:
        row: dict[str, Any] = {
            n: c.split() if k in tagged else c for k, (n, c) in enumerate(zip(names, cells)) if c.strip()
        }
        made.append((line, {**row, "tokens": cells[text].split()}))
    return _lines(file, made)


def _flattened(file: SourceFile) -> SourceFile | None:
    """Return objects of plain values as CSV; None if they are others."""
    rows = _frame(file) or (list(parse_json_items(file)) if file.records else [])
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    if len(names) < 2 or not all(isinstance(value, PLAIN) for _, row in rows for value in row.values()):
        return None
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    for _, row in rows:
        writer.writerow(["" if row.get(name) is None else row[name] for name in names])
    return _named(file, ".csv", stream.getvalue())


def _frame(file: SourceFile) -> list[Placed]:
    """Return the rows of a data frame that pandas wrote by its columns, or split into columns and data."""
    whole = file.records[0] if len(file.values) == 1 and file.records else {}
    columns, data = whole.get("columns"), whole.get("data")
    if isinstance(columns, list) and isinstance(data, list) and all(isinstance(row, list) for row in data):
        return [(k, dict(zip(map(str, columns), row))) for k, row in enumerate(data)]
    by_column = [value for value in whole.values() if isinstance(value, dict)]
    if len(by_column) < 2 or len(by_column) < len(whole) or any(list(v) != list(by_column[0]) for v in by_column):
        return []
    if not all(isinstance(cell, PLAIN) for value in by_column for cell in value.values()):
        return []
    if all(key.isdecimal() for key in whole) or not all(key.isdecimal() for key in by_column[0]):
        return []  # rather records by their ids
    return [(k, {name: value[key] for name, value in whole.items()}) for k, key in enumerate(by_column[0])]


def _taken_out(file: SourceFile) -> SourceFile | None:
    """Return the records that stand inside one object: by their ids, or as its only list of objects."""
    if len(file.values) != 1 or not file.records:
        return None
    whole = parse_json(file)
    if not isinstance(whole, dict):
        return None
    if whole and all(isinstance(row, dict) and len(row) > 1 for row in whole.values()):
        return _lines(file, [(k, {"id": key, **row}) for k, (key, row) in enumerate(whole.items(), start=1)])
    lists = [value for value in whole.values() if isinstance(value, list) and value and isinstance(value[0], dict)]
    if len(lists) != 1 or TEXTS & set(whole) or not all(isinstance(row, dict) and TEXTS & set(row) for row in lists[0]):
        return None
    return _lines(file, list(enumerate(lists[0], start=1)))


def _is_list(cell: str) -> bool:
    return cell.strip()[:1] in ("[", "{") and isinstance(_value(cell), list | dict)


def _value(cell: str) -> Any:
    """Return what a cell holds: a list or an object, if that is written in it, else its text; nothing is null."""
    text = cell.strip()
    if text[:1] not in ("[", "{"):
        return text or None
    try:
        return loads(text)
    except ValueError:
        pass
    try:
        value = ast.literal_eval(text) if len(text) <= MOST else text
        json.dumps(value, allow_nan=False)  # tuples are lists; sets and the like stay text
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    return value


def _lines(file: SourceFile, rows: list[Placed]) -> SourceFile:
    """Return rows as JSON lines, each on its line of the file."""
    written: list[str] = []
    for line, row in rows:
        written += [""] * (line - 1 - len(written))
        written.append(json.dumps(row, ensure_ascii=True))
    return _named(file, ".jsonl", "\n".join(written) + "\n")


def _named(file: SourceFile, suffix: str, text: str) -> SourceFile:
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise file.error("this JSON holds half a character (a \\ud8… escape without its partner)") from error
    return replace(file, name=str(PurePosixPath(file.name).with_suffix(suffix)), data=data)

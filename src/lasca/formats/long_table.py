"""A long table: one row per token and annotator, as CSV, TSV, Parquet, or a pandas, polars or Arrow frame.

```
sequence,position,token,annotator,label
s1,0,😊,ann,O
s1,1,Ada,ann,B-PER
s1,1,Ada,ben,B-PER
s1,2,Lovelace,,
```

Columns are found by their usual names (`sequence` or `sentence`, `position` or `index`, `token` or `word`, `annotator`
or `worker`, `label` or `tag`; see `NAMES`), or named by options. Where sentences and documents (files, chapters,
paragraphs) have a column each, a sequence is called "DOCUMENT/SENTENCE", because sentences may be counted anew in each
document. `token` may be absent (tokens are then `_`). Positions sort as numbers; where there are none, each annotator's
rows of a sequence stand in the order of the file. Several files without a column of annotators are one annotator's
each, and so is a single one with `annotator="file"`. crowd-kit's `task, worker, label` is read too: a task "s1:0" is
sequence s1, position 0; tasks without a number behind a colon are sequences of one token, and so are rows about a whole
`text` without any id. A row without label says that there is such a token. A column `role` ("annotator", "model",
"gold") tells golds and models from annotators; a column whose name begins with "gold" is a gold, and one that is called
so otherwise (`truth`, `majority`) if it holds nothing but such labels. Other columns are metadata where they say the
same of a whole sequence (`document`), metadata of tokens where they say the same of a token, and counted where they do
neither.
The same annotator twice on one token: the last by the column `time`, else an error unless both say the same.
A column `probability` that adds up to 1 over the labels an annotator gives a token (one row each) holds soft votes.
Where it only says how sure single labels are it is metadata; `probability=NAME` reads it: the rest is shared evenly by
all other labels, because nothing is said of them.
Annotators whose names say that they decided (gold, curator) are golds, and so is a file without annotators that is
called so (`gt.csv`: task, label) beside one with them. `missing` is a label that stands for none; NA and N/A are asked
about. Where the same text stands under several ids that annotators share, these tell them apart.
In CSV cells nothing is guarded against being taken for a formula: these are data files, not for spreadsheets.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError, excerpt, typed
from lasca.formats.base import SourceFile, owners, refuse_authors, undone
from lasca.formats.documents import refuse_parts
from lasca.formats.long_arrays import Arrays
from lasca.formats.names import NAMES, has_places, named, over_sentences, plain_name, role_of
from lasca.formats.tabular import (
    HOLDS_ROWS,
    QUOTES,
    as_strings,
    csv_rows,
    frame_table,
    holds_lists,
    holds_rows,
    is_parquet,
    looks_delimited,
    read_delimited,
    read_parquet,
)

__all__ = ["NAME", "read", "read_frame", "sequence_column", "sniff"]

NAME = "table"
FILE = "file"  # the column of annotators that files without one get
SECOND = re.compile(r"_?\d$")
SPLIT = re.compile(r"(?<![a-z])(train|test|validation|valid|val|dev|eval)(?![a-z])", re.IGNORECASE)
BY = ("model", "model_name", "llm", "author", "labeler", "labeller", "reviewer", "judge", "by", "who", "name")
LOOK, MOST_LABELS = 2000, 12  # rows that are looked at to say what may be meant, and different labels of a column
TEXTS = ("text", "sentence", "document", "data")  # of whole texts: what the rows are about, if nothing else is


@dataclass(frozen=True)
class _Table:
    """An Arrow table, its name, the line of its first row (0: rows are counted instead), what stands between cells."""

    table: Any
    shown: str
    first_line: int
    delimiter: str = ""

    def error(self, what: str, row: int | None = None, **parts: Any) -> FormatError:
        if row is None:
            return FormatError(what, path=self.shown, **parts)
        if self.first_line:
            return FormatError(what, path=self.shown, line=row + self.first_line, **parts)
        return FormatError(what, path=f"{self.shown}, row {row}", **parts)


def read(
    files: Sequence[SourceFile],
    *,
    sequence: str | None = None,
    position: str | None = None,
    token: str | None = None,
    annotator: str | None = None,
    label: str | None = None,
    golds: Sequence[str] | str = (),
    time: str | None = None,
    probability: str | None = None,
    missing: str | None = None,
) -> CrowdCorpus:
    """Read a table from files; the options name its columns where their names are unusual, and labels that are none."""
    wanted = {"sequence": sequence, "position": position, "token": token, "annotator": annotator, "label": label}
    tables = _with_golds([_load(file) for file in files], files, wanted)
    if not tables:
        raise FormatError("there is no table to read")
    broken = [_cells_with_breaks(table) for table in tables]
    asked = annotator == FILE
    if asked or (annotator is None and len(files) > 1 and not _has_annotators(tables[0])):
        names = owners(files)
        tables, annotator = [_owned(table, file, *names[file.shown]) for table, file in zip(tables, files)], FILE
    source = _Table(_joined(tables), tables[0].shown, tables[0].first_line if len(tables) == 1 else 0)
    wanted["annotator"] = annotator
    notes = () if annotator != FILE else ("There is no column of annotators: each file is one annotator's.",)
    corpus = _corpus(source, {**wanted, "time": time, "probability": probability}, golds, missing, broken, notes)
    alone = corpus.n_annotations == np.count_nonzero(np.diff(corpus.token_start)) and not corpus.golds
    if annotator == FILE and not asked and alone:
        raise source.error(
            "no column names the annotators, and nothing stands in two of the files: they may be annotators', or parts "
            "of one set",
            got=", ".join(file.name for file in files[:3]),
            hint="If each is an annotator's, set annotator=file (on the command line: -r annotator=file); else join "
            "them",
        )
    who = named(source.table.column_names, NAMES["annotator"])
    if annotator is None and who is not None and corpus.n_tokens == len(corpus):
        refuse_authors(
            corpus,
            [source.table.column_names[who]],
            source.shown,
            "say so: {} (on the command line); if one person labelled all: -r annotator=file",
        )
    return corpus


def read_frame(
    frame: Any, *, golds: Sequence[str] | str = (), missing: str | None = None, **columns: str | None
) -> CrowdCorpus:
    """Read a pandas, polars or Arrow table (anything narwhals knows); the options are those of `read`."""
    if unknown := columns.keys() - NAMES.keys():
        raise ParameterError("column", min(unknown), f"one of {', '.join(NAMES)}")
    return _corpus(_Table(frame_table(frame), "<data frame>", 0), columns, golds, missing)


def _load(file: SourceFile) -> _Table:
    if is_parquet(file):
        return _Table(read_parquet(file), file.shown, 0)
    table, delimiter = read_delimited(file)
    return _Table(table, file.shown, 2, delimiter)


def _has_annotators(source: _Table) -> bool:
    return named(source.table.column_names, (*NAMES["annotator"], *NAMES["role"])) is not None


def _owned(source: _Table, file: SourceFile, name: str, role: str) -> _Table:
    """Return a table with columns that say whose it is: every row is that of whom the file is called by."""
    if SPLIT.search(name):
        what = "no column names the annotators, and the files are called as parts of one set"
        raise source.error(what, got=file.name, hint="Join the files, or add a column annotator")
    table = source.table
    for column, value in ((FILE, name), ("role", role)):
        table = table.append_column(column, pa.array([value] * len(table), pa.large_string()))
    return replace(source, table=table)


def _with_golds(tables: list[_Table], files: Sequence[SourceFile], wanted: Mapping[str, str | None]) -> list[_Table]:
    """Bring a file of golds beside answers (gt.csv: task, label) into the columns of these, as rows of a "gold"."""
    answers = next((table for table in tables if _has_annotators(table)), None)
    if answers is None or wanted["annotator"] == FILE:
        return tables
    made = []
    for table, file in zip(tables, files):
        stem, own = PurePosixPath(file.name).stem, table.table
        if not _has_annotators(table) and (role_of(stem) == "gold" or stem.lower() == "gt"):
            names = _columns(answers, wanted)
            keys = [names[part] for part in ("sequence", "task", "position") if part in names]
            rest = [name for name in own.column_names if name not in keys]
            label = next((n for n in rest if n == names["label"] or role_of(n) == "gold"), None)
            if label is not None and set(keys) <= set(own.column_names):
                said = {names["annotator"]: ["gold"] * len(own), names["label"]: own.column(label)}
                there = {n: own.column(n) for n in answers.table.column_names if n in keys}
                none = dict.fromkeys(answers.table.column_names, pa.nulls(len(own), pa.large_string()))
                table = replace(table, table=pa.table({**none, **there, **said}))
        made.append(table)
    return made


def _joined(tables: list[_Table]) -> Any:
    if len(tables) == 1:
        return tables[0].table
    names = tables[0].table.column_names
    for other in tables[1:]:
        if other.table.column_names != names:
            what, hint = f"the columns differ from those of {tables[0].shown}", "Read one of them, or make them alike"
            raise other.error(what, got=", ".join(other.table.column_names), hint=hint)
    columns = [
        pa.concat_arrays([chunk for t in tables for chunk in as_strings(t.table.column(name)).chunks]) for name in names
    ]
    return pa.table(columns, names=names)


def _cells_with_breaks(source: _Table) -> tuple[int, str]:
    """Return how many cells hold a line break (tokens can), with an example; one that holds rows is an error."""
    n, example = 0, ""
    for k, name in enumerate(source.table.column_names if source.delimiter else ()):
        column = source.table.column(k)
        for row in pc.indices_nonzero(pc.match_substring(column, "\n")).to_pylist():
            cell = column[row].as_py()
            if holds_rows(cell, source.delimiter, source.table.num_columns, k):
                raise source.error(HOLDS_ROWS, row, got=cell, hint=QUOTES)
            n, example = n + 1, example or f"{source.shown}:{row + source.first_line}: {name} {cell!r}"
    return n, example


def _corpus(
    source: _Table,
    wanted: Mapping[str, str | None],
    golds: Sequence[str] | str,
    missing: str | None,
    broken: Sequence[tuple[int, str]] = (),
    notes: Sequence[str] = (),
) -> CrowdCorpus:
    names = _columns(source, wanted)
    source = _within_documents(source, names)
    gold_names = _gold_columns(source, names, (golds,) if isinstance(golds, str) else tuple(golds))
    if not len(source.table):
        raise source.error("there is no row in the table")
    if {"token", "task"} <= set(names) and "position" not in names:
        _refuse_parts(source, names)
    if "token" in names and names.get("task") == names["token"] and (at := _ids(source, names)) is not None:
        names["task"] = at
        notes = (*notes, f"The same text stands under several ids: the column {at!r} tells them apart.")
    own = [plain_name(names[part]) for part in ("label", "annotator")]
    rest = [name for name in source.table.column_names if name not in names.values()]
    if again := [name for name in rest if SECOND.sub("", plain_name(name)) in own]:
        what = f"there are further columns of one name ({', '.join(again)}): a row holds what several annotators said"
        raise source.error(what, hint="Write a row for each label; if these are something else, give them other names")
    labels = source.table.column(names["label"])
    if holds_lists(text for text in as_strings(labels.slice(0, LOOK)).to_pylist() if text):
        what = f"the cells of the column {names['label']!r} hold lists, and not a label each"
        raise source.error(what, got=as_strings(labels)[0].as_py(), hint="Write a row for each of them")
    table, gone = _counting(source, names)
    arrays = Arrays(table, names, gold_names, source.error, wanted.get("probability") is not None, missing)
    if arrays.soft is None:
        names.pop("probability", None)
    arrays.notes.extend(notes)
    for why, n in gone.items():
        arrays.count(f"annotations that do not count ({why})", n)
    for n, example in broken:
        arrays.count("cells with a line break", n, example)
    others = [name for name in source.table.column_names if name not in (*names.values(), *gold_names)]
    return arrays.corpus(source.shown, NAME, others)


def _counting(source: _Table, names: Mapping[str, str]) -> tuple[Any, Counter[str]]:
    """Return a table without the labels in rows that say they do not count (status: rejected), and how many by why."""
    table, gone = source.table, Counter[str]()
    for name in (name for name in table.column_names if name not in names.values()):
        cells = as_strings(table.column(name))
        whys = {cell: why for cell in pc.unique(cells).to_pylist() if cell and (why := undone({name: cell}))}
        if not whys or len(cells) == 0:
            continue
        out = pc.is_in(cells, value_set=pa.array(list(whys), cells.type))
        labels = as_strings(table.column(names["label"]))
        gone.update(whys[cell] for cell in cells.filter(pc.and_(out, pc.is_valid(labels))).to_pylist())
        kept = pc.if_else(out, pa.scalar(None, labels.type), labels)
        table = table.set_column(table.column_names.index(names["label"]), names["label"], kept)
        if kept.null_count == len(kept) > labels.null_count:
            what = f"the column {name!r} says of every label that it does not count"
            raise source.error(what, got=next(iter(whys)), hint="If they count all the same, take the column out")
    return table, gone


def _ids(source: _Table, names: Mapping[str, str]) -> str | None:
    """Return the column of ids, if these tell texts apart that are the same, and annotators share them."""
    table, at = source.table, next((n for n in source.table.column_names if plain_name(n) == "id"), "")
    if not at or at in names.values():
        return None
    ids, texts = _distinct(table, at), _distinct(table, names["token"])
    with_text, with_name = _distinct(table, at, names["token"]), _distinct(table, at, names["annotator"])
    alone = _distinct(table, names["annotator"]) == 1
    return at if texts < ids == with_text and (alone or ids < with_name) else None


PARTS = 20_000  # rows in which parts of texts are looked for
SLASH = pa.scalar("/", pa.large_string())


def _within_documents(source: _Table, names: dict[str, str]) -> _Table:
    """Call sentences by their documents, too, if these have a column: they may be counted anew in each of them."""
    at, there = names.get("sequence", ""), [n for n in source.table.column_names if n not in names.values()]
    found = {there[k]: pc.fill_null(as_strings(source.table.column(there[k])), "") for k in over_sentences(there, at)}
    ids = {name: cells for name, cells in found.items() if not pc.any(pc.match_substring(cells, " ")).as_py()}
    if not ids:  # texts, or none
        return source
    joined = pc.binary_join_element_wise(*ids.values(), as_strings(source.table.column(at)), SLASH)
    names["sequence"] = "/".join([*ids, at])
    return replace(source, table=source.table.append_column(names["sequence"], joined))


def _refuse_parts(source: _Table, names: Mapping[str, str]) -> None:
    """Refuse rows about parts of their texts: one column holds words that stand in the text of the row."""
    if has_places(source.table.column_names):
        what = "the rows are about parts of sequences: columns say where they begin and end"
        raise source.error(what, got=", ".join(source.table.column_names), hint="The format span-table reads spans")
    there = [name for name in source.table.column_names if name not in names.values()]
    table = source.table.slice(0, PARTS)
    texts, *cells = (as_strings(table.column(name)).to_pylist() for name in (names["token"], *there))
    rows = [(text or "", {n: cell or "" for n, cell in zip(there, row)}) for text, *row in zip(texts, *cells)]
    refuse_parts(rows, source.shown)


def _columns(source: _Table, wanted: Mapping[str, str | None]) -> dict[str, str]:
    """Return which column plays which part."""
    there = list(source.table.column_names)
    lower = {plain_name(name): name for name in reversed(there)}
    found: dict[str, str] = {}
    for part, usual in NAMES.items():
        named = wanted.get(part)
        if named is not None:
            if named not in there:
                raise ParameterError(part, named, f"a column of {source.shown}: {', '.join(map(excerpt, there))}")
            found[part] = named
        else:
            match = next((lower[name] for name in usual if name in lower and lower[name] not in found.values()), None)
            if match is not None:
                found[part] = match
    if "sequence" in found and not {"position", "token"} & set(found):
        found["task"] = found["token"] = found.pop("sequence")  # rows about whole sentences or documents
    if "sequence" in found:
        found.pop("task", None)
    elif "task" not in found and (wanted.get("token") or plain_name(found.get("token", "")) in TEXTS):
        found["task"] = found["token"]  # rows about whole texts
    missing = [part for part in ("annotator", "label") if part not in found]
    if "sequence" not in found and "task" not in found:
        missing.append("sequence")
    if "sequence" in found and not {"position", "token"} & set(found):
        missing.append("position")
    if missing:
        raise source.error(
            f"there is no column for {' and '.join(missing)}",
            1 - source.first_line if source.first_line else None,
            got=", ".join(there),
            hint="This looks like JSON, not like a table"
            if there and there[0].startswith(("{", "["))
            else _asked(source, missing, found),
        )
    return found


def _asked(source: _Table, missing: Sequence[str], found: Mapping[str, str]) -> str:
    """Say how to name the columns that were not found, with those that may be meant."""
    table = source.table.slice(0, LOOK)
    rest = [name for name in table.column_names if name not in found.values()]
    ids = [name for name in rest if re.search(r"(?:^|_)(?:id|nr|no|key|row|index)$", plain_name(name))]
    plain = [name for name in rest if name not in ids and not pa.types.is_nested(table.column(name).type)]
    counts = {name: len(table.column(name).unique()) for name in plain}
    few = [name for name, n in counts.items() if 2 <= n <= max(MOST_LABELS, len(table) // 20)]
    values = {name: {str(v) for v in table.column(name).unique().to_pylist()} for name in few}
    flags = [name for name in few if values[name] <= {"0", "1", "True", "False"}]
    numbers = [name for name in few if name not in flags and all(v.replace(".", "").isdecimal() for v in values[name])]
    few = flags if len(flags) > 2 else sorted(few, key=lambda name: ("label" not in name.lower(), name in numbers))
    wordy = [name for name in plain if pc.any(pc.match_substring(as_strings(table.column(name)), " ")).as_py()]
    texts = wordy[:1] if "sequence" in missing and not ids and "token" not in found else []
    few = [name for name in few if name not in texts] if texts else few
    if "annotator" in found:  # an item is labelled once by each annotator, and by several
        ids.sort(key=lambda name: (_distinct(table, name, found["annotator"]) < len(table), _distinct(table, name)))
    likely = {"sequence": ids, "label": few, "annotator": [name for name in rest if plain_name(name) in BY]}
    options = [f"{part}={next(iter(likely.get(part, ())), 'NAME')}" for part in missing]
    options = [f"token={texts[0]}" if texts and option == "sequence=NAME" else option for option in options]
    said = f"Name the columns: {', '.join(options)} (on the command line: {' '.join(map(typed, options))})"
    if "label" in missing and len(few) > 1:
        said += f"; the labels may stand in {excerpt(', '.join(few), 200)}"
        if few is flags:
            said += (
                ", a column for each of them: to read all at once, write the name of the one that is 1 into one column"
            )
    return said + ("; if the whole file is one annotator's, annotator=file" if missing[0] == "annotator" else "")


def _distinct(table: Any, *columns: str) -> int:
    return int(table.select(columns).group_by(list(columns)).aggregate([]).num_rows)


def sequence_column(file: SourceFile, options: Mapping[str, Any]) -> str:
    """Return the column that says to which sequence (or task) a row belongs, by the schema or header of a file."""
    table = read_parquet(file, only_schema=True) if is_parquet(file) else read_delimited(file, only_header=True)[0]
    found = _columns(_Table(table, file.shown, 2), {name: options.get(name) for name in NAMES})
    return found.get("sequence") or found["task"]


def _gold_columns(source: _Table, names: Mapping[str, str], golds: tuple[str, ...]) -> list[str]:
    there = [name for name in source.table.column_names if name not in names.values()]
    for name in golds:
        if name not in there:
            raise ParameterError("golds", name, f"a column of {source.shown}: {', '.join(map(excerpt, there))}")
    labels = None
    found = []
    for name in there:
        if name not in golds and not name.lower().startswith("gold") and role_of(name) == "gold":
            labels = labels or set(pc.unique(as_strings(source.table.column(names["label"]))).to_pylist())
            said = set(pc.unique(as_strings(source.table.column(name))).to_pylist()) - {None, ""}
            if not said or not said <= labels:
                continue  # called as a gold, and something else
        elif name not in golds and role_of(name) != "gold":
            continue
        found.append(name)
    return found


def _lists_for_labels(file: SourceFile, label: str) -> bool:
    try:
        (_, header), *rows = csv_rows(file.beginning())
    except FormatError:
        return False
    return label in header and holds_lists(cells[header.index(label)] for _, cells in rows)


def sniff(files: Sequence[SourceFile]) -> float:
    """Say how much these files look like a long table: 0 to 1."""
    if not files or len(files) > 1000:
        return 0.0
    try:
        if is_parquet(files[0]):
            table = _Table(read_parquet(files[0], only_schema=True), files[0].shown, 0)
        elif PurePosixPath(files[0].name).suffix.lower() in (".csv", ".tsv", ".txt", "") and looks_delimited(files[0]):
            table = _Table(read_delimited(files[0], only_header=True)[0], files[0].shown, 2)
        else:
            return 0.0
    except FormatError:
        return 0.0
    try:
        names = _columns(table, {})
    except FormatError:
        there = {plain_name(name) for name in table.table.column_names}
        about = there & {*NAMES["sequence"], *NAMES["task"], *TEXTS}
        if has_places(table.table.column_names):
            return 0.0
        if there & set(NAMES["label"]) and about and not there & set(NAMES["annotator"]):
            return 0.93 if len(files) > 1 else 0.35 * bool(there & set(TEXTS))  # a file for each annotator
        return 0.35 * bool(there & set(NAMES["annotator"]))  # reading asks for what lacks
    if "position" not in names and has_places(table.table.column_names):
        return 0.0  # a row per span
    if not is_parquet(files[0]) and _lists_for_labels(files[0], names["label"]):
        return 0.0
    if "sequence" not in names and names.get("task") == names.get("token"):
        return 0.7  # rows about whole texts: tables of other tools have such columns, too
    return 0.95 if "sequence" in names or "task" in names else 0.0

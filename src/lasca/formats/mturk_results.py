"""Result files of Mechanical Turk and CrowdFlower (CSV) and Toloka (TSV): one row per assignment, spans as JSON.

A sample of Mechanical Turk:

    HITId,AssignmentStatus,WorkerId,SubmitTime,Input.text,Answer.spans
    H1,Approved,W1,Tue Mar 12 10:20:30 PDT 2024,Ada visited,"[{""start"": 0, ""end"": 3, ""label"": ""PER""}]"

A sample of Toloka (tabs between the columns):

    INPUT:text	OUTPUT:result	ASSIGNMENT:worker_id	ASSIGNMENT:status
    Ada visited	[{"offset": 0, "length": 3, "label": "PER"}]	w1	APPROVED

Spans are looked for anywhere inside the JSON of `Answer.*` / `OUTPUT:*`: objects with start and end (also startOffset
and endOffset, start_offset and end_offset, begin and end, offset and length) and a label (also type, tag, entity,
category, labels), or all pieces of the text with their lengths (Toloka's text annotation). Rejected assignments are
left out and counted. An answer without spans is all O; an empty cell is missing, and empty cells at the end of a row
may be left out. JSON that holds what was chosen instead (`[{"mood": {"label": "glad"}}]`, `[{"rain": {"yes": true,
"no": false}}]`) is labels of whole documents, and so are plain words and a column for each choice (`Answer.rain.yes`,
true or false), read with `unit="document"`; `answer` names the column or the question if there are several. Golds
beside them (`GOLDEN:…`, CrowdFlower's `…_gold`) are the gold "gold"; tainted judgments are counted, and kept. Other
`Input.*` columns are metadata. Rows are about the same text if their item id (HITId, INPUT:id, …) or, without one,
their text is the same.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from typing import Any, Unpack

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, excerpt, typed
from lasca.formats.base import Collector, SourceFile, as_name, as_offset, as_time, first, id_of, pick
from lasca.formats.documents import DOCUMENT, Verdict
from lasca.formats.sources import loads
from lasca.formats.tabular import AGAIN, TWICE
from lasca.formats.texts import Answer, Mark, Said, Spans, TextPool
from lasca.formats.unclaimed import value_of

__all__ = ["NAME", "read", "sniff"]

NAME = "mturk-results"

LENGTH = "contentLength"
EDGES = (
    ("start", "end"),
    ("startOffset", "endOffset"),
    ("start_offset", "end_offset"),
    ("begin", "end"),
    ("offset", "length"),
)
LABELS = ("label", "type", "tag", "entity", "category", "labels")
WORKER = ("workerid", "worker_id", "assignment:worker_id", "_worker_id")
STATUS = ("assignmentstatus", "assignment:status")
TIME = ("submittime", "assignment:submitted", "assignment:submit_ts", "assignment:started", "_created_at")
ITEM = ("input.id", "input:id", "input.item", "input:item", "hitid", "_unit_id")
TEXT = ("input.text", "input:text", "input.sentence", "input:sentence", "text", "sentence", "input")
ANSWERS = ("answer.", "output:")
REFUSED = ("rejected", "expired", "skipped")
DEPTH = 12


def sniff(files: list[SourceFile]) -> float:
    """Say how sure it is that these files are results: a header with WorkerId and Answer.*, or ASSIGNMENT:worker_id."""
    heads = [
        file.head(4096).split(b"\n", 1)[0]
        for file in files
        if file.name.lower().endswith((".csv", ".tsv")) or len(files) == 1
    ]
    if any(b"WorkerId" in head and b"Answer." in head for head in heads):
        return 0.99
    if any(b"_unit_id" in head and b"_worker_id" in head for head in heads):
        return 0.99
    return 0.99 if any(b"ASSIGNMENT:worker_id" in head and b"OUTPUT:" in head for head in heads) else 0.0


def read(
    files: list[SourceFile],
    *,
    text: str | None = None,
    answer: str | None = None,
    item: str | None = None,
    **spans: Unpack[Spans],
) -> CrowdCorpus:
    """Read result files. `text`, `answer` and `item` name the columns of the text, the spans and the item's id."""
    pool = TextPool(files, NAME, **spans)
    documents = pool.options.unit == DOCUMENT
    said: dict[str, list[Said]] = {}
    for file in pick(files, (".csv", ".tsv"), pool.collector):
        rows = _Rows(file, pool.collector, text, answer, item, documents)
        said[file.shown] = [entry for line, row in rows.table for entry in rows.said(f"{file.shown}:{line}", row)]
        answer = answer if not documents or answer not in rows.header else None  # a column, and no question
    return pool.corpus_of(said, "answer", answer)


class _Rows:
    """Turns the rows of one file into answers."""

    def __init__(
        self,
        file: SourceFile,
        collector: Collector,
        text: str | None,
        answer: str | None,
        item: str | None,
        documents: bool,
    ) -> None:
        self.file, self.collector = file, collector
        (_, self.header), *self.table = _table(file) or [(1, [])]
        if (again := next((line for line, row in self.table if row == self.header), None)) is not None:
            raise file.error(AGAIN, again, got=", ".join(self.header), hint=TWICE)
        self.worker = self._column("the annotator", None, WORKER)
        self.text = self._column("the text", text, TEXT, ("input.", "input:"))
        self.item = self._optional(item, ITEM)
        self.status, self.time = self._optional(None, STATUS), self._optional(None, TIME)
        self.documents = documents
        self.choices = self._choices()
        self.answered = self._labels_in(answer) if documents else self._answers_in(answer)
        self.tainted = self._optional(None, ("_tainted",))

    def said(self, where: str, row: list[str]) -> Iterator[Said]:
        """Yield what a row says of its whole document, with the golds beside it, and the spans; if not rejected."""
        row = self._whole(row, where)
        text, status = row[self.text], "" if self.status is None else row[self.status].strip().lower()
        id = id_of(None if self.item is None else row[self.item], text, "the id of an item", where)
        shown = text if text.strip(" -") else id  # a table that does not hold the texts: items by their id
        chosen, metadata = self._chosen(row), self._metadata(row)
        time = None if self.time is None else _time(row[self.time])
        name, rejected = as_name(row[self.worker], "the annotator", where), status in REFUSED
        if self.documents:
            self.collector.count("rejected", int(rejected), where)
            self.collector.count("missing", int(not any(chosen.values())), where)
        chosen = {} if rejected else chosen
        if self.tainted is not None and row[self.tainted].strip().lower() == "true":
            self.collector.count("tainted judgments, kept", 1, f"{where}: {name}")
        if not chosen:
            yield Verdict(id, shown, where, "", (), metadata=metadata)
        for question, labels in chosen.items():
            yield Verdict(id, shown, where, name, labels, question, time=time, metadata=metadata)
            gold = self._optional(None, (f"golden:{question.lower()}", f"{question.lower()}_gold"))
            golds = [] if gold is None else row[gold].split("\n")
            if len(golds) == 1 and golds[0].strip():
                yield Verdict(id, shown, where, "gold", (golds[0].strip(),), question, "gold", metadata=metadata)
            self.collector.count("golds that allow several labels, left out", int(len(golds) > 1), where)
        if rejected and not self.documents:
            self.collector.count(status, 1, where)
            yield Answer(id, text, where)
        elif not self.documents:
            marks = self._marks([row[c] for c in self.answered], where)
            self.collector.count("missing", int(marks is None), where)
            yield Answer(id, text, where, name, marks, "annotator", time, metadata=metadata)

    def _chosen(self, row: list[str]) -> dict[str, tuple[str, ...]]:
        """Return what was chosen for each question: in JSON, in a column for each choice, or in plain words."""
        said: dict[str, tuple[str, ...]] = {}
        for c in self.answered:
            question, cell = _question(self.header[c]), row[c].strip()
            if c in self.choices:
                question, option = self.choices[c]
                said[question] = said.get(question, ()) + ((option,) if cell.lower() == "true" else ())
            elif cell.startswith(("[", "{")):
                try:
                    said |= _chosen(loads(cell), question, DEPTH)
                except ValueError:
                    continue  # said where it is read as spans
            elif cell and self.documents:
                said[question] = (cell,)
        return said

    def _choices(self) -> dict[int, tuple[str, str]]:
        """Return question and choice of columns that say true or false of one choice each: Answer.rain.yes."""
        found: dict[str, list[int]] = {}
        for c, name in enumerate(self.header):
            cells = {row[c].strip().lower() for _, row in self.table if c < len(row)}
            if name.lower().startswith(ANSWERS) and name.count(".") > 1 and cells <= {"true", "false", ""}:
                found.setdefault(name.rsplit(".", 1)[0], []).append(c)
        return {
            c: (_question(stem), self.header[c].rsplit(".", 1)[1])
            for stem, own in found.items()
            for c in own
            if len(own) > 1
        }

    def _whole(self, row: list[str], where: str) -> list[str]:
        """Return a row with all its cells: those at the end that are always empty (Approve, Reject) may be left out."""
        needed = max(self.worker, self.text, *self.answered, *(c for c in (self.item, self.status, self.time) if c))
        if not needed < len(row) <= len(self.header):
            raise FormatError(f"{len(row)} cells in a table of {len(self.header)} columns", path=where, got=row)
        return [*row, *[""] * (len(self.header) - len(row))]

    def _metadata(self, row: list[str]) -> dict[str, str]:
        """Return what else the table says of the item: its other Input.* columns."""
        named = [c for c, h in enumerate(self.header) if h.strip().lower().startswith(("input.", "input:"))]
        return {self.header[c]: row[c] for c in named if c not in (self.text, self.item) and row[c]}

    def _labels_in(self, name: str | None) -> list[int]:
        """Return the columns of the labels: the one that is named, or the Answer.* columns."""
        if name is not None and name in self.header:
            return [self.header.index(name)]
        named = [c for c, h in enumerate(self.header) if h.strip().lower().startswith(ANSWERS)]
        if not named:
            shown = self._like_labels()
            raise self.file.error(
                f"it is not clear which column holds the labels: {excerpt(', '.join(shown or self.header), 600)}",
                1,
                hint="Name it: answer=… (on the command line: " + typed(f"answer={next(iter(shown), '…')}") + ")",
            )
        return named

    def _like_labels(self) -> list[str]:
        """Return the columns that may hold labels: few different words, which are not the platform's own (_trust)."""
        cells = {c: {row[c] for _, row in self.table if c < len(row) and row[c]} for c in range(len(self.header))}
        found = [c for c, values in cells.items() if 2 <= len(values) <= max(2, len(self.table) // 2)]
        own = (self.text, self.worker, self.item, self.status)
        return [self.header[c] for c in found if c not in own and self.header[c].strip()[:1] != "_"]

    def _longest(self, columns: Iterable[int]) -> str:
        """Return the column with the most words, which may be that of the texts."""
        words = {c: sum(row[c].count(" ") for _, row in self.table if c < len(row)) for c in columns}
        return self.header[max(words, key=lambda c: words[c])] if words else "…"

    def _marks(self, cells: list[str], where: str) -> list[Mark] | None:
        """Return the spans in the JSON of the answers; None if all of them are empty."""
        found: list[Mark] = []
        given = [cell for cell in cells if cell.strip()]
        for cell in given:
            try:
                value = _listed(cell)
            except ValueError as error:
                hint = "If another column holds the spans, name it: answer='…'"
                raise FormatError("the answer is not JSON", path=where, got=cell, hint=hint) from error
            found.extend(_spans(value, where, DEPTH))
        return found if given else None

    def _column(self, what: str, name: str | None, usual: tuple[str, ...], prefixes: tuple[str, ...] = ()) -> int:
        """Return the column with this name or a usual one, or the only one with the prefix."""
        found = self._optional(name, usual)
        if found is not None:
            return found
        candidates = [c for c, head in enumerate(self.header) if prefixes and head.strip().lower().startswith(prefixes)]
        if len(candidates) != 1:
            shown = ", ".join(self.header[c] for c in candidates) or ", ".join(self.header)
            likely = self._longest(candidates or range(len(self.header)))
            hint = f"Name it: text=… (on the command line: {typed(f'text={likely}')})"
            raise self.file.error(
                f"it is not clear which column holds {what}: {excerpt(shown, 600)}", 1, hint=hint if prefixes else None
            )
        return candidates[0]

    def _optional(self, name: str | None, usual: tuple[str, ...]) -> int | None:
        if name is not None:
            if name not in self.header:
                raise self.file.error(f"there is no column {name!r}", 1, got=", ".join(self.header))
            return self.header.index(name)
        lowered = [head.strip().lower() for head in self.header]
        return next((lowered.index(head) for head in usual if head in lowered), None)

    def _answers_in(self, name: str | None) -> list[int]:
        if name is not None:
            return [self._column("the spans", name, ())]
        named = [c for c, h in enumerate(self.header) if h.strip().lower().startswith(ANSWERS)]
        cells = {c: [row[c].strip() for _, row in self.table if c < len(row)] for c in named}
        found = [c for c in named if any(cell.startswith(("[", "{")) for cell in cells[c])]
        if not found and (not named or any(any(cells[c]) for c in named)):
            words = {self.header[c]: sorted({cell for cell in cells[c] if cell})[:3] for c in named}
            shown = "; ".join(f"{name}: {', '.join(excerpt(word, 20) for word in few)}" for name, few in words.items())
            likely = [*words, *self._like_labels()]
            asked = {self.choices[c][0] if c in self.choices else _question(self.header[c]): c for c in named}
            first = next(iter(asked), likely[0] if likely else "…")
            column = "" if len(asked) == 1 else f" {typed(f'answer={first}')}"
            lists = [
                k
                for k, _ in enumerate(self.header)
                if any(row[k : k + 1] and row[k].strip()[:2] in ("[{", '{"') for _, row in self.table)
            ]
            if not words and lists:
                name = self.header[lists[0]]
                hint = f"If it holds the spans, name it: {typed(f'answer={name}')} (on the command line)"
                raise self.file.error(
                    "there is no column Answer.* or OUTPUT:*, and JSON in another one", 1, got=name, hint=hint
                )
            found_instead = f", but plain answers ({shown})" if words else f": {', '.join(likely or self.header)}"
            raise self.file.error(
                f"there is no column Answer.* or OUTPUT:* with JSON in it{excerpt(found_instead, 600)}",
                1,
                hint="If the answers are labels of whole documents, set unit=document"
                f"{' and name their column' if column else ''} (on the command line: -r unit=document{column}). Spans "
                "are read from JSON; answer=… names another column",
            )
        return found or named


def _question(header: str) -> str:
    """Return what a column asks: its name without `Answer.` or `OUTPUT:`, and without the `.label` of a classifier."""
    name = header.strip()
    prefix = next((p for p in ANSWERS if name.lower().startswith(p)), "")
    return name[len(prefix) :].removesuffix(".label")


def _chosen(value: Any, question: str, depth: int) -> dict[str, tuple[str, ...]]:
    """Return what was chosen for each question, anywhere inside the JSON of an answer without spans."""
    if isinstance(value, list) and not all(isinstance(entry, str) for entry in value):
        found: dict[str, tuple[str, ...]] = {}
        for entry in value if depth else ():
            found |= _chosen(entry, question, depth - 1)
        return found
    if isinstance(value, dict):
        if LENGTH in value or any(a in value and b in value for a, b in EDGES):
            return {}
        if value and all(isinstance(chosen, bool) for chosen in value.values()):
            return {question: tuple(option for option, chosen in value.items() if chosen)}
        inner = next((value[key] for key in ("label", "labels") if set(value) == {key}), None)
        if inner is not None:
            return _chosen(inner, question, depth - 1) if depth else {}
        return {q: said for key, inner in value.items() if depth for q, said in _chosen(inner, key, depth - 1).items()}
    given = value if isinstance(value, list) else [value]
    labels = tuple(str(label).strip() for label in given if label is not None and str(label).strip())
    return {question: labels} if labels else {}


def _time(cell: str) -> str | None:
    """Return a time stamp; CrowdFlower writes month/day/year."""
    return as_time(re.sub(r"^(\d\d?)/(\d\d?)/(\d{4}) (?=\d)", r"\3/\1/\2 ", cell.strip()))


def _table(file: SourceFile) -> list[tuple[int, list[str]]]:
    """Return the line number and cells of every row; tabs separate if the header has any, else commas."""
    text = file.text()
    header = text.split("\n", 1)[0]
    limit = csv.field_size_limit(len(text) + 1)
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if "\t" in header else ",")
        return [(rows.line_num, row) for row in rows if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise file.error("this table cannot be read", rows.line_num, got=str(error)) from error
    finally:
        csv.field_size_limit(limit)


def _listed(cell: str) -> Any:
    """Return the JSON of a cell; also a list as Toloka (no brackets, commas inside as \\,) or Python writes it."""
    if cell.lstrip()[:3] == "[{'" and isinstance(parsed := value_of(cell), list):
        return parsed
    return loads(f"[{cell}]".replace("\\,", ",") if "\\," in cell else cell)


def _spans(value: Any, where: str, depth: int) -> Iterator[Mark]:
    """Yield the spans anywhere inside a value."""
    if depth == 0:
        raise FormatError("the JSON of an answer is nested too deep", path=where)
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            value = loads(value)  # JSON inside a string of JSON
        except ValueError:
            return
    if isinstance(value, list) and value and all(isinstance(e, dict) and LENGTH in e for e in value):
        at = 0  # Toloka's text annotation: all pieces of the text, marked or not
        for piece in value:
            length = as_offset(piece[LENGTH], LENGTH, where)
            if piece.get("value"):
                yield Mark.of(at, at + length, piece["value"], where)
            at += length
    elif isinstance(value, list):
        for entry in value:
            yield from _spans(entry, where, depth - 1)
    elif isinstance(value, dict):
        edges = next((pair for pair in EDGES if pair[0] in value and pair[1] in value), None)
        if edges is None:
            for entry in value.values():
                yield from _spans(entry, where, depth - 1)
        else:
            yield from _marks_of(value, edges, where)


def _marks_of(value: dict[str, Any], edges: tuple[str, str], where: str) -> Iterator[Mark]:
    start = as_offset(value[edges[0]], edges[0], where)
    end = as_offset(value[edges[1]], edges[1], where) + (start if edges[1] == "length" else 0)
    label = first(value, LABELS)
    if label is None:
        raise FormatError("a span has no label", path=where, got=excerpt(value))
    for name in label if isinstance(label, list) else [label]:
        yield Mark.of(start, end, name, where, value.get("text"))

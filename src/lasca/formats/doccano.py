"""doccano JSONL: one file per annotator, whose name is the file's; a folder or zip of them.

A sample, `ada.jsonl` (offsets count UTF-16 units here, as doccano's pages do; the reader finds out):

    {"id": 5, "text": "😊 Ada Lovelace visited New York .", "label": [[3, 15, "PER"], [24, 32, "LOC"]]}

The same from a project with relations:

    {"id": 5, "text": "😊 Ada Lovelace visited New York .", "entities": [
     {"id": 1, "label": "PER", "start_offset": 3, "end_offset": 15}], "relations": []}

Each object stands on one line of its file (the second one is broken here to fit). Older exports say `labels`, or
`annotations` with a `user` per span, who is then the annotator, or `username` for the whole line. A file `unknown` or
`unlabeled` holds texts that nobody labelled: they become sequences, not an annotator.

Every member's file holds every document, so an empty list may mean "not done" or "nothing to mark": `empty="missing"`
(the default) or "all-O", which is right for an export of confirmed documents only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from lasca import align
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError
from lasca.estimator import check_choice
from lasca.formats.base import Collector, SourceFile, parse_json_items, pick
from lasca.formats.texts import Answer, Mark, SpanOptions, TextPool, as_label, as_name, as_offset, text_id

__all__ = ["NAME", "read", "sniff"]

NAME = "doccano"

KEYS = ("label", "labels", "entities", "annotations")
NOBODY = ("unknown", "unlabeled", "unlabelled")


def sniff(files: list[SourceFile]) -> float:
    """Say how sure it is that these files are doccano's: objects with "text" and a list of spans."""
    heads = [file.head().lstrip(b"\xef\xbb\xbf \t\r\n") for file in files if _is_json(file) or len(files) == 1]
    if not heads or not all(head[:1] in (b"{", b"[") for head in heads if head):
        return 0.0
    first = next((head for head in heads if head), b"")
    if b'"text"' not in first or b'"_input_hash"' in first or b'"data"' in first or b'"tokens"' in first:
        return 0.0
    if b'"start_offset"' in first:
        return 0.95
    return 0.85 if any(b'"' + key.encode() + b'"' in first for key in KEYS) else 0.0


def _is_json(file: SourceFile) -> bool:
    return file.name.lower().endswith((".json", ".jsonl", ".ndjson"))


def read(
    files: list[SourceFile],
    *,
    unit: str = "auto",
    partial: str = "expand",
    overlap: str = "error",
    tokenizer: str | align.Tokenizer | None = None,
    tagging: str = "iob2",
    empty: str = "missing",
) -> CrowdCorpus:
    """Read one file per annotator. `empty` says what a document without any span is: "missing" or "all-O"."""
    check_choice("empty", empty, ("missing", "all-O"))
    pool = TextPool(files, NAME, SpanOptions(unit, partial, overlap, tokenizer, tagging))
    for file in pick(files, (".json", ".jsonl", ".ndjson"), pool.collector):
        lines = _Lines(file, pool.collector, empty)
        pool.add_file(file.shown, (a for line, row in parse_json_items(file) for a in lines.answers(line, row)))
    if pool.collector.counts.get("empty taken as missing"):
        pool.collector.note(
            "documents without any span are taken as not done; if the export holds confirmed documents only, "
            "set empty=all-O (on the command line: -r empty=all-O)"
        )
    return pool.corpus()


class _Lines:
    """Turns the lines of one file into answers."""

    def __init__(self, file: SourceFile, collector: Collector, empty: str) -> None:
        self.file, self.collector, self.empty = file, collector, empty
        self.name = PurePosixPath(file.name).stem.strip() or "unknown"

    def answers(self, line: int, row: dict[str, Any]) -> Iterator[Answer]:
        """Yield what the annotator of this file, or the users it names, said of one text."""
        where = f"{self.file.shown}:{line}"
        text = row.get("text", row.get("data"))
        if not isinstance(text, str):
            raise FormatError("every line must have a string 'text'", path=where, got=repr(text))
        known = next((row[key] for key in ("id", "doc_id") if row.get(key) is not None), None)
        id = text_id(text) if known is None else as_name(known, "the id of a document", where)
        key = next((key for key in KEYS if key in row), None)
        spans = [] if key is None else row[key]
        if not isinstance(spans, list):
            raise FormatError(f"{key!r} must be a list of spans", path=where, got=repr(spans))
        user = row.get("username", row.get("user"))
        name = self.name if user is None else as_name(user, "the user", where)
        marks: dict[str, list[Mark]] = {}
        for span in spans:
            who = span.get("user") if isinstance(span, dict) else None
            owner = name if who is None else as_name(who, "the user of a span", where)
            marks.setdefault(owner, []).append(_mark(span, where))
        if not marks:
            yield self._without_marks(id, text, where, name)
        for who, given in marks.items():
            yield Answer(id, text, where, who, given)

    def _without_marks(self, id: str, text: str, where: str, name: str) -> Answer:
        if name.lower() in NOBODY:
            self.collector.count("texts nobody labelled", 1, where)
        elif self.empty == "missing":
            self.collector.count("empty taken as missing", 1, where)
        else:
            return Answer(id, text, where, name, ())
        return Answer(id, text, where)


def _mark(span: object, where: str) -> Mark:
    """Read a span: [start, end, label] or an object with start_offset, end_offset and label."""
    if isinstance(span, list) and len(span) == 3:
        start, end, label = span
    elif isinstance(span, dict) and "start_offset" in span and "end_offset" in span:
        start, end, label = span["start_offset"], span["end_offset"], span.get("label")
    else:
        raise FormatError(
            "a span must be [start, end, label] or an object with start_offset, end_offset, label",
            path=where,
            got=repr(span),
            hint="Is this a sequence labelling project?",
        )
    return Mark(as_offset(start, "start", where), as_offset(end, "end", where), as_label(label, where), None, where)

"""doccano JSONL: one file per annotator, whose name is the file's; a folder or zip of them.

A sample, `ada.jsonl` (offsets count UTF-16 units here, as doccano's pages do; the reader finds out):

    {"id": 5, "text": "😊 Ada Lovelace visited New York .", "label": [[3, 15, "PER"], [24, 32, "LOC"]]}

The same from a project with relations:

    {"id": 5, "text": "😊 Ada Lovelace visited New York .", "entities": [
     {"id": 1, "label": "PER", "start_offset": 3, "end_offset": 15}], "relations": []}

Each object stands on one line of its file (the second one is broken here to fit). Older exports say `labels`, or
`annotations` with a `user` per span, who is then the annotator, or `username` (`annotator`, `worker`) for the whole
line, or `model` if that names a language model; the text may stand under `data`, and offsets as `start` and `end`. A
file `unknown` or `unlabeled` holds texts that nobody labelled: they become sequences, not an annotator. Relations and
comments are counted; other values of a line are metadata. Labels that are no spans (`"label": ["good"]`, `"label":
"good"`, `cats`, or `annotations` with `label` and `user`) are labels of whole documents: read with `unit="document"`,
or where there is nothing else. Written answers (translations) are refused.

Every member's file holds every document, so an empty list may mean "not done" or "nothing to mark": `empty="missing"`
(the default) or "all-O", which is right for an export of confirmed documents only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Unpack

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError
from lasca.estimator import check_choice
from lasca.formats.base import (
    Collector,
    SourceFile,
    annotator_in,
    as_label,
    as_name,
    first,
    id_of,
    name_authors,
    named_in,
    owners,
    parse_json_items,
    pick,
    refuse_authors,
)
from lasca.formats.documents import Verdict
from lasca.formats.names import has_places, in_order, speaker
from lasca.formats.sources import JSON
from lasca.formats.texts import Answer, Mark, Said, Spans, TextPool

__all__ = ["NAME", "read", "sniff"]

NAME = "doccano"

KEYS = ("label", "labels", "entities", "annotations")
OTHERS = ("_input_hash", "_task_hash", "tokens", "spans", "annotation_sets", "versions", "responses")  # other tools'
USER = ("username", "user", "annotator", "annotator_id", "worker", "worker_id")
OWN = ("id", "doc_id", "text", "data", *USER, *KEYS, "cats", "relations")
COMMENTS = ("comments", "Comments")
NOBODY = ("unknown", "unlabeled", "unlabelled")
PLACES = ("start", "end", "start_offset", "end_offset", "points", "x", "y")
PARTS = ("id", "start", "end", "start_offset", "end_offset", "label", "text", "user")  # of a span


def sniff(files: list[SourceFile]) -> float:
    """Say how sure it is that these files are doccano's: objects with a text and a list of spans or labels."""
    mine = [file for file in files if file.name.lower().endswith(JSON) or len(files) == 1]
    filled = [file for file in mine if not file.is_empty()]
    if not filled or not all(file.records for file in filled):
        return 0.0
    rows = [row for file in filled for row in file.records]
    if any(isinstance(row.get("entities"), list) and row["entities"] and not _looks_like(row) for row in rows):
        return 0.0  # entities of another shape, whatever rows without any look like
    return 0.0 if name_authors(rows, but=("user",)) else max(map(_looks_like, rows))


def _looks_like(row: dict[str, Any]) -> float:
    if not isinstance(row.get("text", row.get("data")), str) or any(key in row for key in OTHERS):
        return 0.0
    key = next((key for key in (*KEYS, "cats") if isinstance(row.get(key), list)), None)
    if key is None:
        plain = isinstance(row.get("label"), str) and not has_places(list(row))
        return 0.5 * plain  # with places, a row is about a span
    for entry in row[key]:
        if isinstance(entry, dict):
            plain = "start" in entry and "end" in entry and "label" in entry
            if "start_offset" in entry and "end_offset" in entry:
                return 0.9 if "user" in entry else 0.95  # records reads users of spans, too
            old = "user" in entry and ("label" in entry or "text" in entry)  # labels of documents, written answers
            return 0.9 if old else 0.7 if plain else 0.0
        if isinstance(entry, list):
            return 0.9 if len(entry) == 3 else 0.0
        return 0.8 if isinstance(entry, str) else 0.0
    return 0.6 if "id" in row else 0.5


def read(files: list[SourceFile], *, empty: str = "missing", **spans: Unpack[Spans]) -> CrowdCorpus:
    """Read one file per annotator. `empty` says what a document without any span is: "missing" or "all-O"."""
    check_choice("empty", empty, ("missing", "all-O"))
    pool = TextPool(files, NAME, **spans)
    mine = pick(files, JSON, pool.collector)
    names = owners(mine, parts=True)
    said: dict[str, list[Said]] = {}
    for file in mine:
        lines = _Lines(file, names[file.shown], pool.collector, empty)
        said[file.shown] = [s for line, row in parse_json_items(file) for s in lines.said(line, row)]
    keys = [key for file in mine for row in file.records for key in row if key in USER]
    if (found := pool.documents(said)) is not None:
        return refuse_authors(found, keys, mine[0].shown)
    if pool.collector.counts.get("empty taken as missing"):
        pool.collector.note(
            "documents without any span are taken as not done; if the export holds confirmed documents only, "
            "set empty=all-O (on the command line: -r empty=all-O)"
        )
    return refuse_authors(pool.corpus(), keys, mine[0].shown)


class _Lines:
    """Turns the lines of one file into answers."""

    def __init__(self, file: SourceFile, owner: tuple[str, str], collector: Collector, empty: str) -> None:
        self.file, self.owner, self.collector, self.empty = file, owner, collector, empty

    def said(self, line: int, row: dict[str, Any]) -> Iterator[Said]:
        """Yield what the annotator of this file, or the users it names, said of one text."""
        where = f"{self.file.shown}:{line}"
        text = row.get("text", row.get("data"))
        if not isinstance(text, str):
            raise FormatError("every line must have a string 'text'", path=where, got=repr(text))
        id = id_of(first(row, ("id", "doc_id")), text, "the id of a document", where)
        key = next((key for key in KEYS if key in row), None)
        spans = [] if key is None or row[key] is None else [row[key]] if isinstance(row[key], str) else row[key]
        if not isinstance(spans, list):
            raise FormatError(f"{key!r} must be a list of spans", path=where, got=repr(spans))
        name, role = self._who(row, where)
        self._count(row, where)
        said = self._labels_of_users(spans, name, where)
        spans = [entry for entry in spans if not _is_label(entry)]
        labels = [entry for entry in spans if isinstance(entry, str)]
        if labels and key == "entities":
            what = "the entities are words, and not spans"
            hint = 'Write [start, end, label] for each, or {"text": words, "label": label}'
            raise FormatError(what, path=where, got=", ".join(labels), hint=hint)
        cats = row.get("cats")
        labels += [cat for cat in cats if isinstance(cat, str)] if isinstance(cats, list) else _true(cats)
        metadata = self._metadata(row, key)
        nobody = name.lower() in NOBODY
        if not nobody and (labels or "cats" in row):
            labels = [as_label(label, where) for label in labels]
            _refuse_votes(labels, where)
            yield Verdict(id, text, where, name, tuple(labels), role=role, metadata=metadata)
        for owner, given in said.items():
            if owner.lower() not in NOBODY:
                yield Verdict(id, text, where, owner, tuple(given), metadata=metadata)
        marks: dict[str, list[Mark]] = {}
        for span in (entry for entry in spans if not isinstance(entry, str)):
            who = span.get("user") if isinstance(span, dict) else None
            owner = name if who is None else as_name(who, "the user of a span", where)
            marks.setdefault(owner, []).append(_mark(span, where))
            if isinstance(span, dict):
                self.collector.count_others("spans", span, PARTS, where)
        if not marks and (spans or said):
            yield Answer(id, text, where, metadata=metadata)  # labels of the document only
        elif not marks:
            yield replace(self._without_marks(id, text, where, name, role), metadata=metadata)
        for who, found in marks.items():
            yield Answer(id, text, where, who, found, role if who == name else "annotator", metadata=metadata)

    def _who(self, row: dict[str, Any], where: str) -> tuple[str, str]:
        """Return name and role of whoever speaks in a line: its user, its model, or whom the file is called by."""
        user = named_in(first(row, USER))
        user = annotator_in(row) if user is None else user
        if user is None and isinstance(row.get("model"), str) and speaker(row["model"]) == "model":
            user = row["model"]
        if user is None:
            return self.owner
        name = as_name(user, "the user", where)
        return name, speaker(name)

    def _labels_of_users(self, entries: list[Any], name: str, where: str) -> dict[str, list[str]]:
        """Return the labels of the whole document that stand as objects with their user (doccano 1.0)."""
        found: dict[str, list[str]] = {}
        for entry in filter(_is_label, entries):
            who = name if entry.get("user") is None else as_name(entry["user"], "the user of a label", where)
            found.setdefault(who, []).append(as_label(entry["label"], where))
        return found

    def _count(self, row: dict[str, Any], where: str) -> None:
        relations = row.get("relations")
        self.collector.count("relations", len(relations) if isinstance(relations, list) else 0, where)
        for key in COMMENTS:
            self.collector.count("comments", len(row[key]) if isinstance(row.get(key), list) else 0, where)

    def _metadata(self, row: dict[str, Any], key: str | None) -> dict[str, str]:
        known = {*OWN, *COMMENTS, "document"} - ({*KEYS} - {key})  # a label of the text, beside spans
        others = {k: v for k, v in row.items() if k not in known and v not in (None, "", [], {})}
        return {k: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for k, v in others.items()}

    def _without_marks(self, id: str, text: str, where: str, name: str, role: str) -> Answer:
        if name.lower() in NOBODY:
            self.collector.count("texts nobody labelled", 1, where)
        elif self.empty == "missing":
            self.collector.count("empty taken as missing", 1, where)
        else:
            return Answer(id, text, where, name, (), role)
        return Answer(id, text, where)


def _refuse_votes(labels: list[str], where: str) -> None:
    """Refuse a list in which a label stands twice: nobody says the same twice, so several people said it."""
    if len(set(labels)) < len(labels):
        raise FormatError(
            "a label stands twice for one document, so the list holds the votes of several annotators without names",
            path=where,
            got=", ".join(labels),
            hint="Give each of them a column: a table id,text,annotator_1,annotator_2,…",
        )


def _true(cats: object) -> list[str]:
    """Return the categories that are true in an object of them (spaCy's way)."""
    return [str(name) for name, value in cats.items() if value] if isinstance(cats, dict) else []


def _is_label(entry: object) -> bool:
    """Say whether an object is a label of the whole document: it has a label, and no place."""
    return isinstance(entry, dict) and "label" in entry and not any(key in entry for key in PLACES)


def _mark(span: object, where: str) -> Mark:
    """Read a span: [start, end, label] or an object with start_offset, end_offset and label."""
    if isinstance(span, list) and len(span) == 3:
        start, end, label = in_order(span)
    elif isinstance(span, dict) and "start_offset" in span and "end_offset" in span:
        start, end, label = span["start_offset"], span["end_offset"], span.get("label")
    elif isinstance(span, dict) and "start" in span and "end" in span:
        start, end, label = span["start"], span["end"], span.get("label")
    elif isinstance(span, dict) and isinstance(span.get("text"), str) and not any(key in span for key in PLACES):
        raise FormatError(
            "these are written answers (translations, summaries), not labels",
            path=where,
            got=span["text"],
            hint="LASCA reads spans, and labels that several documents may share",
        )
    else:
        raise FormatError(
            "a span must be [start, end, label] or an object with start_offset, end_offset, label",
            path=where,
            got=repr(span),
            hint="Is this a sequence labelling project?",
        )
    return Mark.of(start, end, label, where, span.get("text") if isinstance(span, dict) else None)

"""LightTag: one JSON object with `examples`, whose spans say by whom they were made.

A sample (two people saw the text, one of them marked a person; on one line or many):

    {"examples": [{"example_id": "e1", "content": "Ada visited", "metadata": {"source": "web"},
      "seen_by": [{"annotator_id": 1, "annotator": "ann"}, {"annotator_id": 2, "annotator": "ben"}],
      "annotations": [{"start": 0, "end": 3, "tag": "PER", "value": "Ada", "reviewed": false, "correct": null,
        "annotated_by": [{"annotator_id": 1, "annotator": "ann", "timestamp": "2020-07-26T20:42:03+00:00"}]}],
      "classifications": []}], "schema": {"tags": []}}

Whoever has seen a text and marked nothing in it said O. `classifications` are labels of whole documents, read with
`unit="document"` or where there is nothing else. Relations are counted, and so are spans that a reviewer judged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lasca import align
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError
from lasca.formats.base import Collector, SourceFile, parse_json, pick
from lasca.formats.documents import DOCUMENT, Verdict, chosen_unit, document_corpus
from lasca.formats.texts import Answer, Mark, SpanOptions, TextPool, as_label, as_name, as_offset, text_id

__all__ = ["NAME", "read", "sniff"]

NAME = "lighttag"
OWN = {"examples", "schema"}
CLASSES = ("classname", "name", "tag", "label")  # where a classification has its label


def sniff(files: list[SourceFile]) -> float:
    """Say how sure it is that these files are LightTag's: an object with examples and a schema."""
    return max((0.97 for file in files[:20] if any(set(row) >= OWN for row in file.records[:1])), default=0.0)


def read(
    files: list[SourceFile],
    *,
    unit: str = "auto",
    partial: str = "expand",
    overlap: str = "error",
    tokenizer: str | align.Tokenizer | None = None,
    tagging: str = "iob2",
    link: str = "id",
) -> CrowdCorpus:
    """Read the examples of all files."""
    offsets = "auto" if unit == DOCUMENT else unit
    pool = TextPool(files, NAME, SpanOptions(offsets, partial, overlap, tokenizer, tagging, link))
    verdicts: list[Verdict] = []
    answers: dict[str, list[Answer]] = {}
    for file in pick(files, (".json",), pool.collector):
        whole = parse_json(file)
        examples = whole.get("examples") if isinstance(whole, dict) else None
        if not isinstance(examples, list):
            raise file.error("a LightTag export must have a list 'examples'", got=whole)
        pool.collector.count("relations", len(_list(whole, "relations", file.shown)), file.shown)
        given = [said for k, entry in enumerate(examples) for said in _example(entry, f"{file.shown} ({k})", pool)]
        answers[file.shown] = [said for said in given if isinstance(said, Answer)]
        verdicts += [said for said in given if isinstance(said, Verdict)]
    n_spans = sum(len(answer.marks or ()) for given in answers.values() for answer in given)
    if chosen_unit(unit, n_spans, verdicts, pool.collector) == DOCUMENT:
        return document_corpus(pool.linked_verdicts(verdicts), "", pool.collector)
    for shown, found in answers.items():
        pool.add_file(shown, found)
    return pool.corpus()


def _example(example: object, where: str, pool: TextPool) -> Iterator[Answer | Verdict]:
    """Yield what each of those who saw an example said of it."""
    text = example.get("content") if isinstance(example, dict) else None
    if not isinstance(example, dict) or not isinstance(text, str):
        raise FormatError("an example must have a string 'content'", path=where, got=repr(example))
    known = example.get("example_id")
    id = text_id(text) if known is None else as_name(known, "the id of an example", where)
    metadata = _metadata(example.get("metadata"))
    yield Answer(id, text, where, metadata=metadata)
    said: dict[str, list[Mark]] = {name: [] for name in _people(_list(example, "seen_by", where), where)}
    for entry in _list(example, "annotations", where):
        mark = _mark(entry, where)
        for name in _owners(entry, where, pool.collector):
            said.setdefault(name, []).append(mark)
    chosen: dict[str, list[str]] = {}
    for entry in _list(example, "classifications", where):
        label = next((entry[key] for key in CLASSES if entry.get(key) is not None), None)
        for name in _owners(entry, where, pool.collector):
            chosen.setdefault(name, []).append(as_label(label, where))
    for name, marks in said.items():
        yield Answer(id, text, where, name, marks, metadata=metadata)
    for name, labels in chosen.items():
        yield Verdict(id, text, where, name, tuple(labels), metadata=metadata)


def _metadata(given: object) -> dict[str, str]:
    entries = given.items() if isinstance(given, dict) else ()
    kept = {str(k): v for k, v in entries if v not in (None, "", [], {}) and k not in ("document", "text")}
    return {k: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for k, v in kept.items()}


def _owners(entry: dict[str, Any], where: str, collector: Collector) -> list[str]:
    """Return who made a span or gave a label; somebody whose name is not there is "unknown"."""
    collector.count("judged by a reviewer", int(entry.get("reviewed") is True), where)
    return _people(_list(entry, "annotated_by", where), where) or ["unknown"]


def _people(entries: list[dict[str, Any]], where: str) -> list[str]:
    found = [
        next((e[key] for key in ("annotator", "annotator_id") if e.get(key) not in (None, "")), None) for e in entries
    ]
    return list(dict.fromkeys(as_name(name, "an annotator", where) for name in found))


def _mark(entry: dict[str, Any], where: str) -> Mark:
    start, end = as_offset(entry.get("start"), "start", where), as_offset(entry.get("end"), "end", where)
    quoted = entry.get("value")
    return Mark(start, end, as_label(entry.get("tag"), where), quoted if isinstance(quoted, str) else None, where)


def _list(holder: dict[str, Any], key: str, where: str) -> list[Any]:
    value = holder.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise FormatError(f"{key!r} must be a list of objects", path=where, got=repr(value))
    return value

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
from typing import Any, Unpack

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError
from lasca.formats.base import Collector, SourceFile, as_label, as_name, first, id_of, listed, parse_json, pick
from lasca.formats.documents import Verdict
from lasca.formats.texts import Answer, Mark, Said, Spans, TextPool

__all__ = ["NAME", "read", "sniff"]

NAME = "lighttag"
OWN = {"examples", "schema"}
CLASSES = ("classname", "name", "tag", "label")  # where a classification has its label


def sniff(files: list[SourceFile]) -> float:
    """Say how sure it is that these files are LightTag's: an object with examples, and a schema or what people said."""
    return max((0.97 for file in files[:20] if any(map(_is_own, file.records[:1]))), default=0.0)


def _is_own(row: dict[str, Any]) -> bool:
    examples: Any = row.get("examples")
    one = examples[0] if isinstance(examples, list) and examples else None
    return set(row) >= OWN or (isinstance(one, dict) and set(one) >= {"content", "annotations", "classifications"})


def read(files: list[SourceFile], **spans: Unpack[Spans]) -> CrowdCorpus:
    """Read the examples of all files."""
    pool = TextPool(files, NAME, **spans)
    said: dict[str, list[Said]] = {}
    for file in pick(files, (".json",), pool.collector):
        whole = parse_json(file)
        examples = whole.get("examples") if isinstance(whole, dict) else None
        if not isinstance(examples, list):
            raise file.error("a LightTag export must have a list 'examples'", got=whole)
        pool.collector.count("relations", len(_objects(whole, "relations", file.shown)), file.shown)
        said[file.shown] = [s for k, entry in enumerate(examples) for s in _example(entry, f"{file.shown} ({k})", pool)]
    return pool.corpus_of(said)


def _example(example: object, where: str, pool: TextPool) -> Iterator[Said]:
    """Yield what each of those who saw an example said of it."""
    text = example.get("content") if isinstance(example, dict) else None
    if not isinstance(example, dict) or not isinstance(text, str):
        raise FormatError("an example must have a string 'content'", path=where, got=repr(example))
    id = id_of(first(example, ("example_id", "id")), text, "the id of an example", where)
    metadata = _metadata(example.get("metadata"))
    yield Answer(id, text, where, metadata=metadata)
    said: dict[str, list[Mark]] = {name: [] for name in _people(_objects(example, "seen_by", where), where)}
    for entry in _objects(example, "annotations", where):
        tag = first(entry, ("tag", "tag_name"))
        mark = Mark.of(entry.get("start"), entry.get("end"), tag, where, entry.get("value"))
        for name in _owners(entry, where, pool.collector):
            said.setdefault(name, []).append(mark)
    chosen: dict[str, list[str]] = {}
    for entry in _objects(example, "classifications", where):
        for name in _owners(entry, where, pool.collector):
            chosen.setdefault(name, []).append(as_label(first(entry, CLASSES), where))
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
    collector.count("spans of models", len(_objects(entry, "model_annotations", where)), where)
    own = [entry] if first(entry, ("annotator", "annotator_id"), (None, "")) is not None else []
    old = [{"annotator": person.get("name"), **person} for person in _objects(entry, "human_annotations", where)]
    people = _people(_objects(entry, "annotated_by", where) or old or own, where)
    return people or ([] if entry.get("model_annotations") else ["unknown"])


def _people(entries: list[dict[str, Any]], where: str) -> list[str]:
    found = [first(entry, ("annotator", "annotator_id"), (None, "")) for entry in entries]
    return list(dict.fromkeys(as_name(name, "an annotator", where) for name in found))


def _objects(holder: dict[str, Any], key: str, where: str) -> list[Any]:
    found = listed(holder, key, where)
    if not all(isinstance(entry, dict) for entry in found):
        raise FormatError(f"{key!r} must be a list of objects", path=where, got=repr(found))
    return found

"""Label Studio JSON: several annotations per task; also its JSON-MIN rows and JSON lines.

A sample (one task, two annotators; the first marked a person, the second looked and marked nothing):

    [{"id": 7, "data": {"text": "😊 Ada Lovelace visited New York ."}, "annotations": [
      {"id": 1, "completed_by": 3, "was_cancelled": false, "ground_truth": false, "result": [
        {"from_name": "label", "to_name": "text", "type": "labels",
         "value": {"start": 2, "end": 14, "text": "Ada Lovelace", "labels": ["PER"]}}]},
      {"id": 2, "completed_by": {"email": "a@b.c"}, "was_cancelled": false, "result": []}]}]

`completed_by` is a number or an object; old exports say `completions`. A cancelled or skipped annotation is missing,
an empty `result` is all O, `ground_truth: true` is the gold "gold", `predictions` are models. Old versions counted
offsets in UTF-16 units, new ones in code points: the quoted `value.text` decides.

`write` makes tasks with `predictions`: the truth as a model, `score` the probability of its least sure token, so that
the Data Manager sorts the queue of what to adjudicate.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lasca import align
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, excerpt
from lasca.formats.base import Collector, SourceFile, parse_json_items, pick
from lasca.formats.texts import Answer, Mark, SpanOptions, TextPool, as_label, as_name, as_offset, as_time, text_id

__all__ = ["NAME", "read", "sniff"]

NAME = "label-studio"


def sniff(files: list[SourceFile]) -> float:
    """Say how sure it is that these files are Label Studio's: tasks have "data" and "annotations"."""
    heads = [file.head() for file in files if file.name.lower().endswith((".json", ".jsonl")) or len(files) == 1]
    if not heads or heads[0].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"[", b"{"):
        return 0.0
    if any(b'"completed_by"' in head or b'"was_cancelled"' in head for head in heads):
        return 0.98
    if any(b'"data"' in h and (b'"annotations"' in h or b'"completions"' in h or b'"predictions"' in h) for h in heads):
        return 0.95
    minimal = any(b'"annotation_id"' in head and b'"annotator"' in head for head in heads)
    return 0.95 if minimal else 0.0


def read(
    files: list[SourceFile],
    *,
    unit: str = "auto",
    partial: str = "expand",
    overlap: str = "error",
    tokenizer: str | align.Tokenizer | None = None,
    tagging: str = "iob2",
    text: str | None = None,
    control: str | None = None,
) -> CrowdCorpus:
    """Read tasks. `text` names the key of `data` that holds the text, `control` the tag (`from_name`) to read."""
    pool = TextPool(files, NAME, SpanOptions(unit, partial, overlap, tokenizer, tagging))
    for file in pick(files, (".json", ".jsonl", ".ndjson"), pool.collector):
        tasks = _Tasks(file, pool.collector, text, control)
        pool.add_file(file.shown, (a for line, task in parse_json_items(file) for a in tasks.answers(line, task)))
    return pool.corpus()


class _Tasks:
    """Turns the tasks of one file into answers."""

    def __init__(self, file: SourceFile, collector: Collector, text: str | None, control: str | None) -> None:
        self.file, self.collector, self.text_key, self.control = file, collector, text, control

    def answers(self, line: int, task: dict[str, Any]) -> Iterator[Answer]:
        """Yield the text of a task, then what each annotator and model said of it."""
        where = f"{self.file.shown}:{line}"
        minimal = "data" not in task and "annotator" in task
        data = task if minimal else task.get("data")
        if not isinstance(data, dict):
            raise FormatError("a task must have an object 'data'", path=where, got=excerpt(task))
        key = self._text_key(data, where, minimal)
        text = data[key]
        id = text_id(text) if task.get("id") is None else as_name(task["id"], "the id of a task", where)
        where += f" (task {excerpt(id, 40)})"
        metadata = {} if minimal or set(data) == {"text"} else {"data": json.dumps(data, ensure_ascii=False)}
        if not minimal and key != "text":
            metadata["text_key"] = key
        yield Answer(id, text, where, metadata={**metadata, **_controls(task)})
        if minimal:
            yield self._minimal(id, text, task, where)
            return
        self.collector.count("drafts", len(_list(task, "drafts", where)), where)
        for given in _list(task, "annotations" if "annotations" in task else "completions", where):
            yield from self._annotation(id, text, given, where)
        for given in _list(task, "predictions", where):
            yield from self._prediction(id, text, given, where)

    def _text_key(self, data: dict[str, Any], where: str, minimal: bool) -> str:
        """Return the key under which the text stands: the one named, "text", or the only string."""
        if self.text_key is not None:
            candidates = [self.text_key]
        elif isinstance(data.get("text"), str):
            return "text"
        else:
            candidates = [] if minimal else [key for key, value in data.items() if isinstance(value, str)]
        if len(candidates) != 1 or not isinstance(data.get(candidates[0]), str):
            raise FormatError(
                "it is not clear which value of the task is its text",
                path=where,
                got=", ".join(data),
                hint="Name its key: text=… (on the command line: -r text=…)",
            )
        return candidates[0]

    def _annotation(self, id: str, text: str, given: object, where: str) -> Iterator[Answer]:
        if not isinstance(given, dict):
            self.collector.count("annotations without content", 1, where)  # an export of ids only
            return
        if given.get("was_cancelled") is True or given.get("skipped") is True:
            self.collector.count("skipped", 1, f"{where}: annotation {given.get('id')}")
            return
        name, role = _annotator(given.get("completed_by"), where), "annotator"
        if given.get("ground_truth") is True:
            name, role = "gold", "gold"
        time = as_time(given.get("updated_at")) or as_time(given.get("created_at"))
        marks = self._marks(_list(given, "result", where), f"{where} (annotation {excerpt(given.get('id'), 40)})")
        yield Answer(id, text, where, name, marks, role, time)

    def _prediction(self, id: str, text: str, given: object, where: str) -> Iterator[Answer]:
        if not isinstance(given, dict):
            self.collector.count("predictions without content", 1, where)
            return
        version = given.get("model_version")
        name = "model" if version in (None, "") else as_name(version, "model_version", where)
        time = as_time(given.get("updated_at")) or as_time(given.get("created_at"))
        marks = self._marks(_list(given, "result", where), f"{where} (prediction of {excerpt(name, 40)})")
        yield Answer(id, text, where, name, marks, "model", time)

    def _minimal(self, id: str, text: str, row: dict[str, Any], where: str) -> Answer:
        """Return the one annotation of a JSON-MIN row: the list of spans stands under the name of the control."""
        found = [key for key, value in row.items() if isinstance(value, list) and self.control in (None, key)]
        values = [(key, value) for key in found for value in row[key]]
        marks = [m for key, v in values for m in self._mark({"from_name": key, "type": "labels", "value": v}, where)]
        time = as_time(row.get("updated_at")) or as_time(row.get("created_at"))
        return Answer(id, text, where, _annotator(row["annotator"], where), marks, "annotator", time)

    def _marks(self, results: list[Any], where: str) -> list[Mark]:
        return [mark for result in results for mark in self._mark(result, where)]

    def _mark(self, result: object, where: str) -> Iterator[Mark]:
        """Yield the spans of one result: one for each of its labels; results that are no spans are counted."""
        value = result.get("value") if isinstance(result, dict) else None
        if not isinstance(result, dict) or not isinstance(value, dict) or not ("start" in value and "end" in value):
            self.collector.count("results that are no spans", 1, where)
            return
        if self.control is not None and result.get("from_name") != self.control:
            self.collector.count("results of other controls", 1, where)
            return
        kind = result.get("type")
        labels = value.get(kind) if isinstance(kind, str) and kind in value else value.get("labels")
        if not isinstance(labels, list) or not labels:
            self.collector.count("spans without a label", 1, where)
            return
        offsets = value.get("globalOffsets")
        place = offsets if isinstance(offsets, dict) else value
        start, end = as_offset(place.get("start"), "start", where), as_offset(place.get("end"), "end", where)
        quoted = value.get("text")
        for label in labels:
            yield Mark(start, end, as_label(label, where), quoted if isinstance(quoted, str) else None, where)


def _list(holder: dict[str, Any], key: str, where: str) -> list[Any]:
    value = holder.get(key)
    if value is not None and not isinstance(value, list):
        raise FormatError(f"{key!r} must be a list", path=where, got=repr(value))
    return value or []


def _annotator(value: object, where: str) -> str:
    """Return the name of who completed an annotation: a number, an address, or an object that has one of these."""
    if isinstance(value, dict):
        value = next((value[key] for key in ("email", "username", "id") if value.get(key) not in (None, "")), None)
    return "unknown" if value is None else as_name(value, "completed_by", where)


def _controls(task: dict[str, Any]) -> dict[str, str]:
    """Return the names of the tags of a task's first span, if they are not the usual ones: predictions need them."""
    given = [g for key in ("annotations", "completions", "predictions") for g in _items(task.get(key))]
    for result in (r for g in given if isinstance(g, dict) for r in _items(g.get("result")) if isinstance(r, dict)):
        from_name, to_name = result.get("from_name"), result.get("to_name")
        if isinstance(from_name, str) and isinstance(to_name, str):
            usual = (from_name, to_name) == ("label", "text")
            return {} if usual else {"from_name": from_name, "to_name": to_name}
    return {}


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []

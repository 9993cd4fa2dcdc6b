"""Label Studio: JSON with several annotations per task, JSON-MIN, JSON lines, and the CSV and TSV exports.

A sample (one task, two annotators; the first marked a person, the second looked and marked nothing):

    [{"id": 7, "data": {"text": "😊 Ada Lovelace visited New York ."}, "annotations": [
      {"id": 1, "completed_by": 3, "was_cancelled": false, "ground_truth": false, "result": [
        {"from_name": "label", "to_name": "text", "type": "labels",
         "value": {"start": 2, "end": 14, "text": "Ada Lovelace", "labels": ["PER"]}}]},
      {"id": 2, "completed_by": {"email": "a@b.c"}, "was_cancelled": false, "result": []}]}]

`completed_by` is a number or an object; old exports say `completions`. A cancelled or skipped annotation is missing, an
empty `result` is all O. `ground_truth: true` stays its author's vote and is the gold "gold" besides; `predictions` are
models. Old versions counted offsets in UTF-16 units, new ones in code points: the quoted `value.text` decides. Pages
(HyperText) are read by their `globalOffsets`, dialogues (Paragraphs) as their lines one after the other.

Choices, taxonomies and ratings are labels of whole documents: read with `unit="document"`, or where there is nothing
else (`control` names one of several). An export without any text span or such label is refused: nobody said O there.
Numbers of users mean nothing outside one Label Studio: where they repeat in several files, `annotator="file"` takes a
person per file and "name" the same person. `link="text"` joins tasks of the same text.

`write` makes tasks with `predictions`: the truth as a model, `score` the probability of its least sure token, so that
the Data Manager sorts the queue of what to adjudicate.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from lasca import align
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, excerpt
from lasca.estimator import check_choice
from lasca.formats.base import Collector, SourceFile, parse_json_items, pick
from lasca.formats.documents import DOCUMENT, Verdict, chosen_unit, document_corpus, question_of
from lasca.formats.json_text import loads
from lasca.formats.label_studio_results import (
    TEXT_KEYS,
    html_text,
    is_reference,
    kind_of,
    looks_like_html,
    paragraphs_of,
    verdict_of,
)
from lasca.formats.tabular import csv_rows, is_table
from lasca.formats.texts import Answer, Mark, SpanOptions, TextPool, as_label, as_name, as_offset, as_time, text_id

__all__ = ["NAME", "read", "sniff"]

NAME = "label-studio"

SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv")
GIVEN = ("annotations", "completions", "predictions")
OWN = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time")  # of a JSON-MIN row
GOLD = "gold:"
PEOPLE = ("auto", "name", "file")


def sniff(files: list[SourceFile]) -> float:
    """Say how sure it is that these files are Label Studio's: tasks have "data" and "annotations"."""
    mine = [file for file in files if file.name.lower().endswith(SUFFIXES) or len(files) == 1]
    return max((_sniff(file) for file in mine), default=0.0)


def _sniff(file: SourceFile) -> float:
    for row in file.records:
        given = [entry for key in GIVEN for entry in _items(row.get(key)) if isinstance(entry, dict)]
        if any("completed_by" in entry or "was_cancelled" in entry for entry in given):
            return 0.98
        if isinstance(row.get("data"), dict):
            return 0.95 if any(key in row for key in GIVEN) else 0.6 if set(row) <= {"data", "id", "meta"} else 0.0
        if "annotator" in row and "annotation_id" in row:
            return 0.97
    if is_table(file) and not file.records:
        return 0.97 if {"annotator", "annotation_id", "lead_time"} <= set(file.cells) else 0.0
    return 0.0


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
    annotator: str = "auto",
    link: str = "id",
) -> CrowdCorpus:
    """Read tasks. `text` names the key of `data` that holds the text, `control` the tag (`from_name`) to read.

    `annotator` says who is one person in several files: "name" (the same number is the same person) or "file".
    """
    check_choice("annotator", annotator, PEOPLE)
    offsets = "auto" if unit == DOCUMENT else unit
    pool = TextPool(files, NAME, SpanOptions(offsets, partial, overlap, tokenizer, tagging, link))
    export = _Export(pool.collector, text, control, unit == DOCUMENT)
    for file in pick(files, SUFFIXES, pool.collector):
        export.file(file)
    names = _names(export, annotator, pool.collector)
    answers = {shown: [names(a, shown) for a in given] for shown, given in export.answers.items()}
    verdicts = [names(v, shown) for shown, given in export.verdicts.items() for v in given]
    export.check(unit, verdicts)
    if chosen_unit(unit, export.n_spans, verdicts, pool.collector) == DOCUMENT:
        question = question_of(verdicts, control, "control", pool.collector)
        return document_corpus(pool.linked_verdicts(verdicts), question, pool.collector)
    for shown, given in answers.items():
        pool.add_file(shown, given)
    return pool.corpus()


class _Export:
    """Goes through the files: answers with spans, labels of documents, and a count of everything else."""

    def __init__(self, collector: Collector, text: str | None, control: str | None, documents: bool) -> None:
        self.collector, self.text_key, self.control, self.documents = collector, text, control, documents
        self.answers: dict[str, list[Answer]] = {}
        self.verdicts: dict[str, list[Verdict]] = {}
        self.n_tasks = self.n_spans = self.n_given = self.n_texts = 0
        self.others: Counter[str] = Counter()
        self.controls: Counter[str] = Counter()
        self.markup = ""
        self.without_text = ""

    def file(self, file: SourceFile) -> None:
        """Read the tasks of one file."""
        answers = self.answers.setdefault(file.shown, [])
        verdicts = self.verdicts.setdefault(file.shown, [])
        rows = _table_rows(file) if is_table(file) else parse_json_items(file)
        for line, task in rows:
            self.n_tasks += 1
            for given in _Task(self, f"{file.shown}:{line}", task).given():
                if isinstance(given, Answer):
                    answers.append(given)
                else:
                    verdicts.append(given)

    def check(self, unit: str, verdicts: list[Verdict]) -> None:
        """Refuse an export in which nobody labelled text, rather than say that all is O."""
        for kind, n in sorted(self.others.items()):
            self.collector.count(f"results that are no spans of text ({kind})", n)
        if len(self.controls) > 1:
            shown = ", ".join(f"{excerpt(name, 40)}: {n:,}" for name, n in sorted(self.controls.items()))
            self.collector.note(f"There are spans of several controls ({shown}); control=… reads one of them.")
        if self.n_spans or unit == DOCUMENT or not self.n_tasks:
            return
        found = [f"{kind}: {n:,}" for kind, n in sorted(self.others.items())]
        n_labels = sum(len(verdict.labels) for verdict in verdicts)
        if n_labels and self.n_texts:
            return
        what = "there is no text in these tasks" if not self.n_texts else "there is no span of text in this export"
        if n_labels:
            found.append(f"labels of whole documents: {n_labels:,}")
        if self.n_given or not self.n_texts:
            hint = "LASCA reads spans of text (labels, hypertextlabels, paragraphlabels) and labels of whole documents"
            if n_labels:
                hint = "To read the labels of whole documents set unit=document (on the command line: -r unit=document)"
            nothing = f"{self.n_given:,} annotations and predictions without any result"
            raise FormatError(
                f"{what}; there are {', '.join(found) or (nothing if self.n_given else 'no annotations')}",
                path=self.without_text or self.collector.source,
                hint=hint,
            )
        if self.markup:
            raise FormatError(
                "the text is HTML, and there are no annotations whose global offsets would say how it is counted",
                path=self.markup,
                hint="Take the markup off first",
            )
        self.collector.note("Nobody labelled anything here: these are texts without annotations.")


class _Task:
    """One task: its text, and what annotators and models said of it."""

    def __init__(self, export: _Export, where: str, task: dict[str, Any]) -> None:
        self.export, self.collector, self.task = export, export.collector, task
        self.minimal = "data" not in task and ("annotator" in task or "annotation_id" in task)
        data = task if self.minimal else task.get("data")
        if not isinstance(data, dict):
            raise FormatError("a task must have an object 'data'", path=where, got=excerpt(task))
        self.data = data
        self.id = "" if task.get("id") is None else as_name(task["id"], "the id of a task", where)
        self.where = where + (f" (task {excerpt(self.id, 40)})" if self.id else "")
        self.entries = [(key, entry) for key in self._lists() for entry in _list(task, key, self.where)]
        self.results = [r for _, e in self.entries if isinstance(e, dict) for r in _list(e, "result", self.where)]
        if self.minimal:
            self.results = list(self._minimal_results())
        self.spans = [r["value"] for r in self.results if kind_of(r) == "span" and self._wanted(r)]
        self.starts: list[int] | None = None  # where each paragraph of a dialogue begins
        self.key, self.text = self._text()
        self.id = self.id or text_id(self.text)

    def _lists(self) -> list[str]:
        return ["annotations" if "annotations" in self.task else "completions", "predictions"]

    def _wanted(self, result: dict[str, Any]) -> bool:
        return self.export.control is None or result.get("from_name") == self.export.control

    # --- the text ---------------------------------------------------------------------------------------------

    def _text(self) -> tuple[str, str]:
        """Return the key of the text and the text, as offsets count it; "" if a task has none and needs none."""
        export, key = self.export, self._text_key()
        if not key:
            export.without_text = export.without_text or self.where
            shown = [str(v) for k, v in self.data.items() if isinstance(v, str) and k not in OWN]
            return "", shown[0] if shown else json.dumps(self.data, ensure_ascii=False)[:1000]
        export.n_texts += 1
        lines = paragraphs_of(self.data[key])
        if lines is not None:
            self.starts = [sum(len(line) + 1 for line in lines[:k]) for k in range(len(lines))]
            return key, "\n".join(lines)
        text: str = self.data[key]
        paths = [span for span in self.spans if _is_path(span.get("start"))]
        if looks_like_html(text):
            export.markup = export.markup or self.where
            if paths:
                return key, self._page(text, paths)
        return key, text

    def _page(self, html: str, spans: list[dict[str, Any]]) -> str:
        """Return the text of a page in which most quotes stand where the global offsets say."""
        given = [(s.get("globalOffsets"), s.get("text")) for s in spans]
        places = [(o.get("start"), o.get("end"), quoted) for o, quoted in given if isinstance(o, dict)]
        quotes = [(a, b, q) for a, b, q in places if isinstance(q, str) and isinstance(a, int) and isinstance(b, int)]
        pages = [html_text(html), html_text(html, breaks=True)]
        fits = [sum(align.same_words(page[a:b], q) for a, b, q in quotes) for page in pages]
        best = max(range(len(pages)), key=lambda k: fits[k])
        if quotes and 2 * fits[best] < len(quotes):
            raise FormatError(
                f"the global offsets do not fit the text of the page: {fits[best]} of {len(quotes)} quotes stand there",
                path=self.where,
                got=f"{quotes[0][2]!r} at {quotes[0][0]}-{quotes[0][1]}",
            )
        return pages[best]

    def _text_key(self) -> str:
        """Return the key of the text: the one named, "text", the only text, or the one in which all quotes stand."""
        named = self.export.text_key
        if named is not None:
            if not self._is_text(named):
                raise FormatError(f"there is no text {named!r} in this task", path=self.where, got=", ".join(self.data))
            return named
        if self._is_text("text"):
            return "text"
        found = [key for key in self.data if self._is_text(key) and not (self.minimal and key in OWN)]
        sources = {r.get("source") for r in self.results if isinstance(r, dict) and kind_of(r) in ("span", "document")}
        hinted = [key for key in found if f"${key}" in sources]
        found = hinted if len(hinted) == 1 else found
        if len(found) > 1 and self.spans:
            found = [key for key in found if self._quotes_fit(self.data[key])] or found
        if self.minimal and len(found) == 1 and self.spans and not self._quotes_fit(self.data[found[0]]):
            found = []
        if len(found) == 1:
            return found[0]
        if not self.spans and (not found or (self.export.documents and not self.minimal)):
            return ""
        raise FormatError(
            "it is not clear which value of the task is its text",
            path=self.where,
            got=", ".join(self.data),
            hint="Name its key: text=… (on the command line: -r text=…)",
        )

    def _is_text(self, key: str) -> bool:
        value = self.data.get(key)
        if isinstance(value, str):
            return bool(value.strip()) and not is_reference(value)
        return not self.minimal and paragraphs_of(value) is not None

    def _quotes_fit(self, text: object) -> bool:
        if not isinstance(text, str):
            return False
        return all(span["text"] in text for span in self.spans if isinstance(span.get("text"), str))

    # --- what was said ----------------------------------------------------------------------------------------

    def given(self) -> Iterator[Answer | Verdict]:
        """Yield the text of the task, then what each annotator and model said of it."""
        if self.key:
            yield Answer(self.id, self.text, self.where, metadata=self._metadata())
        if self.minimal:
            time = as_time(self.task.get("updated_at")) or as_time(self.task.get("created_at"))
            name = _annotator(self.task.get("annotator"), self.where)
            yield from self._said(name, self.results, "annotator", time, self.where)
            return
        self.collector.count("drafts", len(_list(self.task, "drafts", self.where)), self.where)
        for key, entry in self.entries:
            yield from self._entry(entry, key == "predictions")

    def _metadata(self) -> dict[str, str]:
        if self.minimal:
            kept = {k: v for k, v in self.data.items() if isinstance(v, str) and k not in (*OWN, self.key)}
            return {k: v for k, v in kept.items() if k not in ("document", "text")}
        found = {} if set(self.data) == {"text"} else {"data": json.dumps(self.data, ensure_ascii=False)}
        if self.key != "text":
            found["text_key"] = self.key
        return {**found, **_controls(self.results)}

    def _entry(self, given: object, model: bool) -> Iterator[Answer | Verdict]:
        what = "prediction" if model else "annotation"
        if not isinstance(given, dict):
            self.collector.count(f"{what}s without content", 1, self.where)  # an export of ids only
            return
        if given.get("was_cancelled") is True or given.get("skipped") is True:
            self.collector.count("skipped", 1, f"{self.where}: {what} {given.get('id')}")
            return
        time = as_time(given.get("updated_at")) or as_time(given.get("created_at"))
        results = _list(given, "result", self.where)
        if model:
            version = given.get("model_version")
            name = "model" if version in (None, "") else as_name(version, "model_version", self.where)
            yield from self._said(name, results, "model", time, f"{self.where} (prediction of {excerpt(name, 40)})")
            return
        name = _annotator(given.get("completed_by"), self.where)
        where = f"{self.where} (annotation {excerpt(given.get('id'), 40)})"
        if given.get("ground_truth") is True and name.startswith(GOLD):  # a gold of nobody's, as our writer has it
            yield from self._said(name[len(GOLD) :] or "gold", results, "gold", time, where)
            return
        said = list(self._said(name, results, "annotator", time, where))
        yield from said
        if given.get("ground_truth") is True:
            self.collector.count("annotations that are ground truth", 1, where)
            for entry in said:
                gold = replace(entry, name="gold", role="gold")
                yield replace(gold, again=True) if isinstance(gold, Answer) else gold

    def _said(
        self, name: str, results: list[Any], role: str, time: str | None, where: str
    ) -> Iterator[Answer | Verdict]:
        self.export.n_given += 1
        marks: list[Mark] = []
        verdicts: dict[str, list[str]] = {}
        for result in results:
            kind = kind_of(result)
            if kind == "span":
                marks += self._marks(result, where)
            elif kind == "document":
                question = result.get("from_name")
                labels = verdicts.setdefault(question if isinstance(question, str) else "", [])
                labels += verdict_of(result["value"])
            else:
                self.export.others[excerpt(kind, 40)] += 1
        if self.key:
            yield Answer(self.id, self.text, where, name, marks, role, time)
        metadata = self._metadata() if self.key else {}
        for question, labels in verdicts.items():
            yield Verdict(self.id, self.text, where, name, tuple(labels), question, role, time, metadata)

    def _marks(self, result: dict[str, Any], where: str) -> Iterator[Mark]:
        """Yield the spans of one result, one for each of its labels."""
        value = result["value"]
        if not self._wanted(result):
            self.collector.count("results of other controls", 1, where)
            return
        kind = result.get("type")
        labels = value.get(kind) if isinstance(kind, str) and kind in value else None
        labels = labels or next((value[key] for key in TEXT_KEYS if key in value), None)
        if not isinstance(labels, list) or not labels:
            self.collector.count("spans without a label", 1, where)
            return
        start, end = self._place(value, where)
        quoted = value.get("text")
        self.export.n_spans += len(labels)
        self.export.controls[str(result.get("from_name"))] += len(labels)
        if self.starts is not None:
            quoted = None if not isinstance(quoted, str) or "\n" in self.text[start:end] else quoted
        for label in labels:
            yield Mark(start, end, as_label(label, where), quoted if isinstance(quoted, str) else None, where)

    def _place(self, value: dict[str, Any], where: str) -> tuple[int, int]:
        """Return start and end of a span, counted in the text of the task."""
        if self.starts is not None and "startOffset" in value and "endOffset" in value:
            first, last = as_offset(value["start"], "start", where), as_offset(value["end"], "end", where)
            if max(first, last) >= len(self.starts):
                raise FormatError(f"there are {len(self.starts)} paragraphs", path=where, got=f"paragraph {last}")
            start = self.starts[first] + as_offset(value["startOffset"], "startOffset", where)
            return start, self.starts[last] + as_offset(value["endOffset"], "endOffset", where)
        offsets = value.get("globalOffsets")
        if not isinstance(offsets, dict) and (_is_path(value["start"]) or _is_path(value["end"])):
            raise FormatError(
                "a span on a page is given by a path into its markup, without globalOffsets that count its characters",
                path=where,
                got=f"{value['start']} + {value.get('startOffset')}",
                hint="Export it from a newer Label Studio, which writes globalOffsets",
            )
        place = offsets if isinstance(offsets, dict) else value
        return as_offset(place.get("start"), "start", where), as_offset(place.get("end"), "end", where)

    def _minimal_results(self) -> Iterator[dict[str, Any]]:
        """Yield the results of a JSON-MIN row: lists of spans and choices stand under the names of the controls."""
        named = self.export.control
        for key, value in self.task.items():
            if key in OWN:
                continue
            if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
                yield from ({"from_name": key, "value": entry} for entry in value)
            elif isinstance(value, dict):
                yield {"from_name": key, "value": value}
            elif self.export.documents and key == named and isinstance(value, str | int | float):
                yield {"from_name": key, "value": {"choices": [value]}}


def _is_path(value: object) -> bool:
    return isinstance(value, str) and "/" in value


def _table_rows(file: SourceFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a CSV or TSV export as JSON-MIN rows: cells that hold JSON lists and objects are parsed."""
    (_, header), *rows = csv_rows(file)
    for line, cells in rows:
        row: dict[str, Any] = {}
        for name, cell in zip(header, cells):
            value: Any = cell
            if cell[:1] in ("[", "{"):
                try:
                    value = loads(cell)
                except ValueError:
                    value = cell
            if cell:
                row[name] = value
        yield line, row


class _Names:
    """Names people across files: as they are, or by file."""

    def __init__(self, by_file: bool, alone: dict[str, bool]) -> None:
        self.by_file, self.alone = by_file, alone

    def __call__(self, said: Any, shown: str) -> Any:
        if not self.by_file or said.role != "annotator" or not said.name:
            return said
        stem = PurePosixPath(shown.replace("\\", "/").split("!")[-1]).stem.strip() or "unknown"
        return replace(said, name=stem if self.alone[shown] else f"{stem}/{said.name}")


def _names(export: _Export, annotator: str, collector: Collector) -> _Names:
    """Return how people are named; the same number in several files is asked about."""
    people: dict[str, set[str]] = {}
    texts: dict[str, set[str]] = {}
    for shown in export.answers:
        said: Iterable[Answer | Verdict] = (*export.answers[shown], *export.verdicts[shown])
        said = [entry for entry in said if entry.role == "annotator" and entry.name]
        people[shown] = {entry.name for entry in said}
        texts[shown] = {entry.text for entry in said}
    alone = {shown: len(names) < 2 for shown, names in people.items()}
    if annotator == "auto":
        for first, second in ((a, b) for a in people for b in people if a < b):
            both = sorted(name for name in people[first] & people[second] if "@" not in name)
            if both:
                n = len(texts[first] & texts[second])
                raise FormatError(
                    f"annotator {excerpt(both[0])!r} stands in {first} and in {second}, "
                    + (f"which have {n:,} texts in common" if n else "which have no text in common"),
                    path=collector.source,
                    hint="Numbers of users say nothing outside one Label Studio. If every file is a person's own, set "
                    "annotator=file (on the command line: -r annotator=file); if the same number is the same person, "
                    "annotator=name",
                )
    return _Names(annotator == "file", alone)


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


def _controls(results: list[Any]) -> dict[str, str]:
    """Return the names of the tags of a task's first span, if they are not the usual ones: predictions need them."""
    for result in (r for r in results if kind_of(r) == "span"):
        from_name, to_name = result.get("from_name"), result.get("to_name")
        if isinstance(from_name, str) and isinstance(to_name, str):
            usual = (from_name, to_name) == ("label", "text")
            return {} if usual else {"from_name": from_name, "to_name": to_name}
    return {}


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []

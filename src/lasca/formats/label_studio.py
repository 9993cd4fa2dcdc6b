"""Label Studio: JSON with several annotations per task, JSON-MIN, JSON lines, and the CSV and TSV exports.

A sample (one task, two annotators; the first marked a person, the second looked and marked nothing):

    [{"id": 7, "data": {"text": "😊 Ada Lovelace visited New York ."}, "annotations": [
      {"id": 1, "completed_by": 3, "was_cancelled": false, "ground_truth": false, "result": [
        {"from_name": "label", "to_name": "text", "type": "labels",
         "value": {"start": 2, "end": 14, "text": "Ada Lovelace", "labels": ["PER"]}}]},
      {"id": 2, "completed_by": {"email": "a@b.c"}, "was_cancelled": false, "result": []}]}]

`completed_by` is a number or an object; old exports say `completions`. A cancelled or skipped annotation is missing, an
empty `result` is all O. `ground_truth: true` stays its author's vote and is the gold "gold" besides; `predictions` are
models. A file may hold one annotation with its task inside, as Label Studio writes them to a storage. Old versions
counted offsets in UTF-16 units, new ones in code points: the quoted `value.text` decides. Pages (HyperText) are read by
their `globalOffsets`, dialogues (Paragraphs) as their lines one after the other.

Choices, taxonomies and ratings are labels of whole documents: read with `unit="document"`, or where there is nothing
else (`control` names one of several). An export without any text span or such label is refused: nobody said O there.
Numbers of users mean nothing outside one Label Studio: where they repeat in several files, `annotator="file"` takes a
person per file and "name" the same person. Several annotations of a task that name nobody are asked about.
`link="text"` joins tasks of the same text.

Scores of single results (a model's, mostly) are counted; `scores="soft"` reads them as soft votes: that share for the
label and the rest evenly for all others. The score of a whole prediction says nothing of its labels and is counted.

`write` makes tasks with `predictions`: the truth as a model, `score` the probability of its least sure token, so that
the Data Manager sorts the queue of what to adjudicate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Unpack

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, count, excerpt, typed
from lasca.estimator import check_choice
from lasca.formats.base import Collector, SourceFile, owners, parse_json_items, pick
from lasca.formats.documents import DOCUMENT, Verdict
from lasca.formats.label_studio_task import ONLY_FILES, OWN, Tally, Task, control_of, is_minimal, kind_of
from lasca.formats.sources import loads
from lasca.formats.tabular import csv_rows, is_table
from lasca.formats.texts import Said, Spans, TextPool

__all__ = ["NAME", "read", "sniff"]

NAME = "label-studio"

SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv")
GIVEN = ("annotations", "completions", "predictions")
PEOPLE = ("auto", "name", "file")


def sniff(files: list[SourceFile]) -> float:
    """Say how sure it is that these files are Label Studio's: tasks have "data" and "annotations"."""
    mine = [file for file in _suffixed(files) if file.name.lower().endswith(SUFFIXES) or len(files) == 1]
    return max((_sniff(file) for file in mine), default=0.0)


def _sniff(file: SourceFile) -> float:
    for row in file.records:
        given = [e for key in GIVEN if isinstance(row.get(key), list) for e in row[key] if isinstance(e, dict)]
        if any("completed_by" in entry or "was_cancelled" in entry for entry in given):
            return 0.98
        if any(isinstance(entry.get("result"), list) for entry in given):
            return 0.9
        if _turned(row) is not row:
            return 0.95
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
    text: str | None = None,
    control: str | None = None,
    annotator: str = "auto",
    scores: str = "count",
    **spans: Unpack[Spans],
) -> CrowdCorpus:
    """Read tasks. `text` names the key of `data` that holds the text, `control` the tag (`from_name`) to read.

    `annotator` says who is one person in several files: "name" (the same number is the same person) or "file".
    """
    check_choice("annotator", annotator, PEOPLE)
    pool = TextPool(files, NAME, scores=scores, **spans)
    export = _Export(pool.collector, text, control, pool.options.unit == DOCUMENT)
    tasks = {
        file.shown: [(n, _turned(t)) for n, t in (_table_rows(file) if is_table(file) else parse_json_items(file))]
        for file in pick(_suffixed(files), SUFFIXES, pool.collector)
    }
    results = [r for given in tasks.values() for _, task in given for r in _results(task)]
    export.pages = any(_on_page(result) for result in results)
    export.objects = {str(result.get("to_name")) for result in results}
    export.timed = {control_of(r) for r in results if kind_of(r) == "labels of sounds"}
    export.nameless = annotator == "name"
    export.choices = {key for given in tasks.values() for key in _choices(task for _, task in given)}
    rows = [(shown, f"{shown}:{line}", task) for shown, own in tasks.items() for line, task in own]
    silent = [not any(kind_of(result) == "span" for result in _results(task)) for _, _, task in rows]
    made = {k: Task(export, *rows[k][1:]) for k in sorted(range(len(rows)), key=silent.__getitem__)}
    said: dict[str, list[Said]] = {shown: [] for shown in tasks}
    for k, (shown, _, _) in enumerate(rows):
        said[shown] += made[k].given()
    said = _named(said, annotator, owners(files), pool.collector)
    export.check(any(tasks.values()), [s for given in said.values() for s in given if isinstance(s, Verdict)])
    found = pool.documents(said, "control", control, export.n_spans)
    return pool.corpus() if found is None else found


def _suffixed(files: list[SourceFile]) -> list[SourceFile]:
    """Give a suffix to files that have none and hold JSON: annotations in a storage are called by their number."""
    bare = [not PurePosixPath(file.name).suffix and bool(file.records) for file in files]
    return [replace(file, name=f"{file.name}.json") if no else file for file, no in zip(files, bare)]


def _turned(row: dict[str, Any]) -> dict[str, Any]:
    """Return the task of an annotation that holds it, with the annotation in it; other rows as they are."""
    task = row.get("task")
    if not isinstance(task, dict) or not isinstance(task.get("data"), dict) or not isinstance(row.get("result"), list):
        return row
    return {**task, "annotations": [{key: value for key, value in row.items() if key != "task"}]}


class _Export(Tally):
    """A count of all there is beside answers with spans and labels of documents."""

    def check(self, tasks: bool, verdicts: list[Verdict]) -> None:
        """Refuse an export in which nobody labelled text, rather than say that all is O."""
        for kind, n in sorted(self.others.items()):
            self.collector.count(f"results that are no spans of text ({kind})", n)
        if len(self.controls) > 1:
            shown = ", ".join(f"{excerpt(name, 40)}: {n:,}" for name, n in sorted(self.controls.items()))
            self.collector.note(f"There are spans of several controls ({shown}); control=… reads one of them.")
        bare = self.collector.counts.get("annotations without content", 0)
        if tasks and not self.n_given and bare:
            raise FormatError(
                f"{count(bare, 'annotation')} given by number only, without what was marked",
                path=self.collector.source,
                hint="Export the project as JSON with whole annotations (in a snapshot: annotations not as ids only)",
            )
        if self.plain and not self.n_spans and not verdicts:
            shown = "; ".join(f"{excerpt(k, 40)}: {', '.join(sorted(v)[:4])}" for k, v in sorted(self.plain.items()))
            key = min(self.plain, key=lambda name: (len(self.plain[name]), name))
            raise FormatError(
                f"there is no span of text in these rows; plain values stand under {shown}",
                path=self.collector.source,
                hint="If one of these is what annotators chose for the whole text, name it: unit=document and "
                f"control=… (on the command line: -r unit=document {typed(f'control={key}')})",
            )
        if self.n_spans or self.documents or not tasks:
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
            hint = ONLY_FILES if "labels of files" in self.others else hint
            if n_labels:
                hint = "To read the labels of whole documents set unit=document (on the command line: -r unit=document)"
            nothing = (
                f"{count(self.n_given, 'annotation or prediction', 'annotations and predictions')} without any result"
            )
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


def _results(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all results of a task."""
    for entry in (e for key in GIVEN if isinstance(task.get(key), list) for e in task[key] if isinstance(e, dict)):
        if isinstance(entry.get("result"), list):
            yield from (result for result in entry["result"] if isinstance(result, dict))


def _on_page(result: dict[str, Any]) -> bool:
    """Say whether a span is given by a path into the markup of a page."""
    start = result["value"].get("start") if isinstance(result.get("value"), dict) else None
    return isinstance(start, str) and start.startswith("/")


def _choices(tasks: Iterable[dict[str, Any]]) -> set[str]:
    """Return the keys of a file's JSON-MIN rows that hold choices: what differs between the rows of a task is one.

    One choice is written plainly, several as {"choices": […]}.
    """
    found = set[str]()
    known: dict[tuple[str, str], object] = {}
    for task in filter(is_minimal, tasks):
        for key, value in task.items():
            chosen = isinstance(value, dict) and kind_of({"value": value}) == "document"
            plain = isinstance(value, str | int) and key not in OWN and task.get("id") is not None
            if chosen or (plain and known.setdefault((str(task["id"]), key), value) != value):
                found.add(key)
    return found


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


def _named(
    said: dict[str, list[Said]], annotator: str, files: dict[str, tuple[str, str]], collector: Collector
) -> dict[str, list[Said]]:
    """Name people across files, as they are or by file; the same number in several files is asked about."""
    people: dict[str, set[str]] = {}
    texts: dict[str, set[str]] = {}
    for shown, given in said.items():
        own = [entry for entry in given if entry.role == "annotator" and entry.name]
        people[shown], texts[shown] = {entry.name for entry in own}, {entry.text for entry in own}
    if annotator == "auto":
        for first, second in ((a, b) for a in people for b in people if a < b):
            both = sorted(name for name in people[first] & people[second] if "@" not in name)
            if both:
                n = len(texts[first] & texts[second])
                raise FormatError(
                    f"annotator {excerpt(both[0])!r} stands in {first} and in {second}, "
                    + (f"which have {count(n, 'text')} in common" if n else "which have no text in common"),
                    path=collector.source,
                    hint="Numbers of users say nothing outside one Label Studio. If every file is a person's own, set "
                    "annotator=file (on the command line: -r annotator=file); if the same number is the same person, "
                    "annotator=name",
                )
    if annotator != "file":
        return said
    named = {}
    for shown, given in said.items():
        stem, _ = files[shown]
        names = {name: stem if len(people[shown]) < 2 else f"{stem}/{name}" for name in people[shown]}
        named[shown] = [replace(s, name=names[s.name]) if s.role == "annotator" and s.name else s for s in given]
    return named

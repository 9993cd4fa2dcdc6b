"""SageMaker Ground Truth: output manifests of text tasks, and the requests for consolidation, which hold every worker.

A line of a manifest of named entities (the job is called `ner` here; on one line of the file):

    {"source": "Ada visited Rome", "ner": {"annotations": {"entities": [
     {"startOffset": 0, "endOffset": 3, "label": "PER"}], "labels": [{"label": "PER"}]}},
     "ner-metadata": {"type": "groundtruth/text-span", "job-name": "labeling-job/ner", "human-annotated": "yes"}}

What a job puts out is consolidated: the gold named after the job. A text classification (`"job": 2` with `class-name`
in its metadata) is a label of the whole document. A consolidation request is a list of objects with `dataObject` and
`annotations`, each with a `workerId` and its answer as JSON: there every worker is an annotator. Manifests that only
refer to files (`source-ref`) are refused by name: their text is elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Unpack

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, excerpt
from lasca.formats.base import Collector, SourceFile, as_label, as_name, as_time, id_of, parse_json_items, pick, text_id
from lasca.formats.documents import Verdict
from lasca.formats.sources import loads
from lasca.formats.texts import Answer, Mark, Said, Spans, TextPool

__all__ = ["NAME", "read", "sniff"]

NAME = "sagemaker"
SUFFIXES = (".manifest", ".json", ".jsonl")


def sniff(files: list[SourceFile]) -> float:
    """Say how sure it is that these are Ground Truth's: a source and a job with its metadata, or worker answers."""
    mine = [file for file in files if file.name.lower().endswith(SUFFIXES) or len(files) == 1]
    return max((_looks_like(row) for file in mine for row in file.records), default=0.0)


def _looks_like(row: dict[str, Any]) -> float:
    if "dataObject" in row and isinstance(row.get("annotations"), list):
        return 0.99
    return 0.97 if ("source" in row or "source-ref" in row) and _jobs(row) else 0.0


def _jobs(row: dict[str, Any]) -> list[str]:
    return [key for key in row if isinstance(row.get(f"{key}-metadata"), dict)]


def read(files: list[SourceFile], *, job: str | None = None, **spans: Unpack[Spans]) -> CrowdCorpus:
    """Read manifests or consolidation requests. `job` names the job to read where there are several."""
    pool = TextPool(files, NAME, **spans)
    said: dict[str, list[Said]] = {}
    for file in pick(files, SUFFIXES, pool.collector):
        kept = said.setdefault(file.shown, [])
        for line, row in parse_json_items(file):
            where = f"{file.shown}:{line}"
            request = "dataObject" in row
            kept += _request(row, where, pool.collector) if request else _line(row, where, job, pool.collector)
    return pool.corpus_of(said, "job", job)


def _line(row: dict[str, Any], where: str, job: str | None, collector: Collector) -> Iterator[Said]:
    text = row.get("source")
    jobs = [name for name in _jobs(row) if job in (None, name)]
    if not isinstance(text, str):
        kinds = ", ".join(str(row[f"{name}-metadata"].get("type")) for name in _jobs(row))
        raise FormatError(
            "this is a SageMaker Ground Truth manifest whose tasks refer to files: their text is not in it",
            path=where,
            got=f"{excerpt(row.get('source-ref'), 60)}, {kinds or 'no job'}",
            hint="LASCA reads manifests of text tasks (source) and consolidation requests",
        )
    id = text_id(text)
    taken = ("source", "document", "text", *_jobs(row))
    metadata = {k: str(v) for k, v in row.items() if isinstance(v, str | int) and k not in taken}
    yield Answer(id, text, where, metadata=metadata)
    for name in jobs:
        about, given = row[f"{name}-metadata"], row[name]
        if str(about.get("human-annotated", "yes")).lower() != "yes":
            collector.count("labelled by the machine", 1, where)
        role = "gold" if str(about.get("human-annotated", "yes")).lower() == "yes" else "model"
        time = as_time(about.get("creation-date"))
        entities = _entities(given)
        if entities is not None:
            yield Answer(id, text, where, name, [_mark(e, where) for e in entities], role, time)
        elif isinstance(about.get("class-name"), str) or isinstance(about.get("class-map"), dict):
            found = about.get("class-name") or list(about["class-map"].values())
            labels = [as_label(label, where) for label in (found if isinstance(found, list) else [found])]
            yield Verdict(id, text, where, name, tuple(labels), name, role, time, metadata)
        else:
            collector.count("results that are neither spans nor classes", 1, f"{where}: {about.get('type')}")


def _request(row: dict[str, Any], where: str, collector: Collector) -> Iterator[Said]:
    content = row["dataObject"].get("content") if isinstance(row["dataObject"], dict) else None
    if isinstance(content, str) and content.lstrip().startswith("{"):
        parsed = _parsed(content, where)
        content = parsed.get("source", content) if isinstance(parsed, dict) else content
    if not isinstance(content, str) or not content.strip():
        raise FormatError("a request has no text in its dataObject", path=where, got=repr(row["dataObject"]))
    id = id_of(row.get("datasetObjectId"), content, "the id", where)
    yield Answer(id, content, where)
    answers = row.get("annotations")
    if not isinstance(answers, list):
        raise FormatError("a request has no list of annotations", path=where, got=repr(answers))
    for given in answers:
        data = given.get("annotationData") if isinstance(given, dict) else None
        if not isinstance(data, dict):
            collector.count("answers without content", 1, where)
            continue
        answer = data.get("content")
        answer = _parsed(answer, where) if isinstance(answer, str) else answer
        name = as_name(given.get("workerId"), "workerId", where)
        entities = _entities(answer)
        label = _class_of(answer)
        if entities is not None:
            yield Answer(id, content, where, name, [_mark(e, where) for e in entities])
        elif label is not None:
            yield Verdict(id, content, where, name, label)
        else:
            collector.count("answers that are neither spans nor classes", 1, f"{where}: {excerpt(answer)}")


def _parsed(text: str, where: str) -> Any:
    try:
        return loads(text)
    except ValueError as error:
        raise FormatError("the content is not JSON", path=where, got=text) from error


def _entities(value: object, depth: int = 5) -> list[Any] | None:
    """Return the list of entities anywhere inside an answer, or None."""
    if not isinstance(value, dict) or depth == 0:
        return None
    found = value.get("entities")
    if isinstance(found, list):
        return found
    return next((e for v in value.values() if (e := _entities(v, depth - 1)) is not None), None)


def _class_of(value: object) -> tuple[str, ...] | None:
    """Return the classes in an answer of crowd-classifier: a label, or labels that are true."""
    if not isinstance(value, dict):
        return None
    for given in value.values():
        if isinstance(given, dict) and isinstance(given.get("label"), str):
            return (given["label"],)
        labels = given.get("labels") if isinstance(given, dict) else None
        if isinstance(labels, list) and all(isinstance(label, str) for label in labels):
            return tuple(labels)
    return None


def _mark(entity: object, where: str) -> Mark:
    if not isinstance(entity, dict):
        raise FormatError("an entity must have startOffset, endOffset and label", path=where, got=repr(entity))
    return Mark.of(entity.get("startOffset"), entity.get("endOffset"), entity.get("label"), where)

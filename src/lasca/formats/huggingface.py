"""Hugging Face rows: token classification with annotators, and Argilla 2 records; JSONL, JSON, Parquet, Arrow.

A sample, one row per sequence and annotator (`ner_tags` may be numbers if the file carries the feature's names):

    {"id": "s1", "tokens": ["Ada", "visited", "Rome"], "ner_tags": ["B-PER", "O", "B-LOC"], "annotator": "ann1"}

One row per sequence, with a column of all annotators:

    {"id": "s1", "tokens": ["Ada", "visited", "Rome"], "labels": {"ann1": ["B-PER", "O", "B-LOC"], "ann2": null}}

Argilla 2 (only submitted responses count; suggestions are models):

    {"id": "r1", "text": "Ada visited Rome", "spans.responses": [[{"label": "PER", "start": 0, "end": 3}]],
     "spans.responses.users": ["u1"], "spans.responses.status": ["submitted"]}

(on one line); also as `to_json` of Argilla writes them, with `fields`, `responses` and `suggestions` (it leaves out
which responses are drafts: all count). Answers to questions for labels or ratings are labels of whole documents
(`unit="document"`, `question` names one of several). Scores of suggestions are counted; `scores="soft"` reads them as
soft votes: that share for the label and the rest evenly for all others. -100, null and "" are missing. Other columns
are metadata where they are plain values, and counted where they are not. Tags in rows without any annotator are the
gold "gold", or, with several files that share texts, those of an annotator named as the file. Where annotators' tokens
differ under one id, the commonest tokenisation is kept and the others are aligned to it by characters. `from_dataset`
takes rows, or a Dataset or DatasetDict of the `datasets` package, which need not be there for files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError, typed
from lasca.formats.base import Collector, SourceFile, as_label, as_name, as_score, id_of, listed, refuse_authors
from lasca.formats.documents import DOCUMENT, Verdict
from lasca.formats.huggingface_load import Rows, load, rows_of
from lasca.formats.huggingface_tokens import Columns, TokenRows
from lasca.formats.names import is_person, speaker
from lasca.formats.texts import Answer, Mark, Said, Spans, TextPool

__all__ = ["NAME", "from_dataset", "read", "sniff"]

NAME = "huggingface"


def sniff(files: list[SourceFile]) -> float:
    """Say how sure it is: rows with "tokens" and tags, or with "….responses.users"; Parquet and Arrow of such."""
    best = 0.0
    for file in files:
        head = file.head()
        if head[:4] == b"PAR1" or head[:6] == b"ARROW1" or head[:4] == b"\xff\xff\xff\xff":
            best = max(best, _sniff_table(file))
        for row in file.records:
            best = max(best, _sniff_row(row))
    return best


def _sniff_row(row: dict[str, Any]) -> float:
    if any(key.endswith(".responses.users") for key in row) or is_record(row):
        return 0.98
    tokens = row.get("tokens", row.get("words"))
    words = isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)
    if not words or any(key in row for key in ("_input_hash", "spans", "lasca")):
        return 0.0
    there = [row[name] for name in (*Columns.TAGS, *Columns.BY_ANNOTATOR) if name in row]
    spans = any(isinstance(value, list) and value and isinstance(value[0], dict) for value in there)
    spans = spans or all(isinstance(v, list) and v and all(map(_is_span, v)) for v in there)
    people = [k for k, v in row.items() if isinstance(v, list) and (is_person(k) or speaker(k) == "model")]
    if len(people) > 1:
        return 0.2  # a column for each annotator: the format records
    return 0.9 if there and not spans else 0.2


def _is_span(entry: object) -> bool:
    """Say whether an entry is a span over numbers of tokens, and not a tag or the tags of an annotator."""
    return isinstance(entry, list) and len(entry) == 3 and isinstance(entry[0], int) and isinstance(entry[2], str)


def _sniff_table(file: SourceFile) -> float:
    try:
        names = set(load(file, only_names=True).names)
    except FormatError:
        return 0.0
    if any(name.endswith(".responses.users") for name in names):
        return 0.98
    tagged = names & {*Columns.TAGS, *Columns.BY_ANNOTATOR}
    return 0.95 if "tokens" in names and tagged else 0.0


def read(
    files: Sequence[SourceFile | Rows],
    *,
    tags: str | None = None,
    annotator: str | None = None,
    label_names: Sequence[str] | None = None,
    question: str | None = None,
    text: str | None = None,
    scores: str = "count",
    **spans: Unpack[Spans],
) -> CrowdCorpus:
    """Read rows. `tags` and `annotator` name the columns; `label_names` are the names of numbered tags in order.

    `unit`, `partial`, `overlap`, `tokenizer`, `tagging`, `question` and `text` are for Argilla's spans: `question` is
    the span question (its columns begin with that name), `text` the field it is about.
    """
    own = [file for file in files if isinstance(file, SourceFile)]
    pool = TextPool(own, NAME, scores=scores, **spans)
    columns = Columns(tags, annotator, _checked_names(label_names))
    parts = [flat_record(part) for part in rows_of(own) or files if isinstance(part, Rows)]
    if question is None and not any(name.endswith(".responses") for part in parts for name in part.names):
        if pool.options.unit == DOCUMENT:
            raise ParameterError("unit", DOCUMENT, "left out: these are rows of tokens and tags")
        rows = TokenRows(pool.collector, columns)
        for part in parts:
            rows.add(part)
        keys = [] if annotator else [name for part in parts for name in part.names if name in Columns.ANNOTATOR]
        return refuse_authors(
            rows.corpus(pool), keys, parts[0].shown if parts else "", "say so: {} (on the command line)"
        )
    questions = questions_of(parts, question)
    said = {part.shown: list(argilla_said(part, questions, text, pool.collector)) for part in parts}
    return pool.corpus_of(said, "question", question)


def from_dataset(dataset: Any, **options: Any) -> CrowdCorpus:
    """Make a corpus from a list of rows (dicts), a `datasets.Dataset`, or a `DatasetDict` (ids get the split's name).

    The options are those of `read`.
    """
    splits = dataset if isinstance(dataset, Mapping) else {"": dataset}
    parts = [Rows.of_dataset(rows, str(split) if len(splits) > 1 else "") for split, rows in splits.items()]
    return read(parts, **options)


def _checked_names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    found = tuple(names.split(",")) if isinstance(names, str) else tuple(str(name) for name in names)
    return tuple(name.strip() for name in found)


# --- Argilla: columns QUESTION.responses, .responses.users, .responses.status, QUESTION.suggestion --------------------

OWN = ("id", "status", "_server_id")


def is_record(row: Mapping[str, Any]) -> bool:
    """Say whether a row is a record as `to_json` writes it: fields and responses are objects."""
    return isinstance(row.get("fields"), dict) and isinstance(row.get("responses"), dict)


def flat_record(part: Rows) -> Rows:
    """Turn records of `to_json` into rows with the columns of `to_datasets`; other rows stay as they are."""
    rows = list(part.rows)
    if not rows or not all(is_record(row) for _, row in rows):
        return part
    flat = [(where, _flat(row, where)) for where, row in rows]
    names = tuple(dict.fromkeys(name for _, row in flat for name in row))
    return replace(part, names=names, rows=flat)


def _flat(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    made: dict[str, Any] = {"id": row.get("id"), **row["fields"]}
    metadata = row.get("metadata")
    made |= {f"metadata.{key}": value for key, value in metadata.items()} if isinstance(metadata, dict) else {}
    for question, given in row["responses"].items():
        answers = [answer for answer in given if isinstance(answer, dict)] if isinstance(given, list) else []
        made[f"{question}.responses"] = [answer.get("value") for answer in answers]
        made[f"{question}.responses.users"] = [answer.get("user_id") for answer in answers]
        if any("status" in answer for answer in answers):
            made[f"{question}.responses.status"] = [answer.get("status", "submitted") for answer in answers]
    suggestions = row.get("suggestions")
    for question, given in suggestions.items() if isinstance(suggestions, dict) else ():
        if isinstance(given, dict):
            made.setdefault(f"{question}.responses", [])
            made.setdefault(f"{question}.responses.users", [])
            made[f"{question}.suggestion"] = given.get("value")
            made[f"{question}.suggestion.agent"] = given.get("agent")
            made[f"{question}.suggestion.score"] = given.get("score")
    return made


def questions_of(parts: Sequence[Rows], name: str | None) -> dict[str, bool]:
    """Return the questions that were answered, and of each whether its answers are spans; `name` is the one wanted."""
    asked = {c[: -len(".responses")]: False for part in parts for c in part.names if c.endswith(".responses")}
    if name is not None:
        if name not in asked:
            raise ParameterError("question", name, "one of " + ", ".join(asked))
        asked = {name: False}
    for question in asked:
        given = [_given(row, question) for part in parts for _, row in part.rows]
        values = [value for values in given for value in values if value is not None]
        plain = [value for value in values if not _is_spans(value)]
        asked[question] = not plain or any(_is_spans(value) and _entries(value) for value in values)
    spans = [question for question, is_span in asked.items() if is_span]
    filled = [q for q in spans if any(v for p in parts for _, row in p.rows for v in _given(row, q))]
    spans = filled or spans
    if len(spans) > 1:
        raise FormatError(
            "it is not clear which question holds the spans",
            path=parts[0].shown,
            got=", ".join(spans),
            hint=f"Name it: question=… (on the command line: {typed(f'question={spans[0]}')})",
        )
    return {question: question in spans for question, is_span in asked.items() if not is_span or question in spans}


def _given(row: Mapping[str, Any], question: str) -> list[Any]:
    responses = row.get(f"{question}.responses")
    return [*(responses if isinstance(responses, list) else ()), row.get(f"{question}.suggestion")]


def _is_spans(value: object) -> bool:
    """Say whether a response is a list of spans (an empty one may be), not a label, some labels or a rating."""
    if isinstance(value, list):
        return all(isinstance(entry, dict) and "start" in entry for entry in value)
    return isinstance(value, dict) and "start" in value


def argilla_said(part: Rows, questions: Mapping[str, bool], text: str | None, collector: Collector) -> Iterator[Said]:
    """Yield what every user submitted, and the suggestions: spans, or labels of whole records."""
    if not any(name.endswith(".responses.status") for name in part.names):
        collector.note(
            "These records do not say which responses are drafts (to_json leaves it out): all count as submitted."
        )
    for where, row in part.rows:
        column = _text_column(row, text, where)
        words = row.get(column)
        if not isinstance(words, str):
            raise FormatError("a record's text must be a string", path=where, got=repr(words))
        id = id_of(row.get("id"), words, "the id of a record", where)
        id = f"{part.split}/{id}" if part.split else id
        metadata = _metadata(row, column)
        yield Answer(id, words, where, metadata=metadata)
        for question, spans in questions.items():
            for name, value, role, score in _responses(row, question, where, collector):
                if spans:
                    yield Answer(id, words, where, name, _marks(value, score, where), role)
                else:
                    labels, sure = _labels(value, where), as_score(score)
                    yield Verdict(id, words, where, name, labels, question, role, metadata=metadata, score=sure)


def _responses(
    row: Mapping[str, Any], question: str, where: str, collector: Collector
) -> Iterator[tuple[str, Any, str, Any]]:
    """Yield name, value, role and score of all answers to one question of one record."""
    responses = listed(row, f"{question}.responses", where)
    users = listed(row, f"{question}.responses.users", where)
    statuses = listed(row, f"{question}.responses.status", where)
    if len(users) != len(responses) or (statuses and len(statuses) != len(responses)):
        got = f"{len(responses)} responses, {len(users)} users, {len(statuses)} statuses"
        raise FormatError("responses, users and statuses differ in number", path=where, got=got)
    for k, response in enumerate(responses):
        status = statuses[k] if statuses else "submitted"
        if status != "submitted" or response is None:
            kind = status if status in ("draft", "discarded", "pending") else "not submitted"
            collector.count(kind, 1, where)
            continue
        yield as_name(users[k], "a user", where), response, "annotator", None
    suggestion = row.get(f"{question}.suggestion")
    if suggestion is not None:
        agent = row.get(f"{question}.suggestion.agent")
        name = "model" if agent is None else as_name(agent, "the agent of a suggestion", where)
        yield name, suggestion, "model", row.get(f"{question}.suggestion.score")


def _metadata(row: Mapping[str, Any], text: str) -> dict[str, str]:
    """Return the metadata of a record, and its other fields."""
    kept = {}
    for name, value in row.items():
        plain = name.removeprefix("metadata.")
        if isinstance(value, str | int | float) and "." not in plain and plain not in (*OWN, text, "text", "document"):
            kept[plain] = str(value)
    return kept


def _labels(value: object, where: str) -> tuple[str, ...]:
    """Return the labels of a response that is no list of spans: a label, several, a rating, a ranking."""
    entries = value if isinstance(value, list) else [value]
    ranks = [entry.get("value") if isinstance(entry, dict) else entry for entry in entries]
    return tuple(as_label(entry, where) for entry in ranks)


def _text_column(row: Mapping[str, Any], name: str | None, where: str) -> str:
    if name is not None or isinstance(row.get("text"), str):
        return name or "text"
    fields = [n for n, value in row.items() if isinstance(value, str) and n not in OWN and "." not in n]
    if len(fields) != 1:
        raise FormatError(
            "it is not clear which field holds the text",
            path=where,
            got=", ".join(fields),
            hint="Name it: text=… (on the command line: -r text=…)",
        )
    return fields[0]


def _entries(spans: dict[str, Any] | list[Any]) -> list[Any]:
    """Return spans as a list of dicts, also where a data set stored them as a dict of lists."""
    if isinstance(spans, list):
        return spans
    columns = {key: value for key, value in spans.items() if isinstance(value, list)}
    length = min((len(value) for value in columns.values()), default=0)
    return [{key: value[k] for key, value in columns.items()} for k in range(length)]


def _marks(spans: object, score: Any, where: str) -> list[Mark]:
    if not isinstance(spans, dict | list):
        raise FormatError("a response must be a list of spans", path=where, got=repr(spans))
    marks = []
    entries = _entries(spans)
    scores = score if isinstance(score, list) and len(score) == len(entries) else [None] * len(entries)
    for span, sure in zip(entries, scores):
        if not isinstance(span, dict):
            raise FormatError("a span must have start, end and label", path=where, got=repr(span))
        marks.append(Mark.of(span.get("start"), span.get("end"), span.get("label"), where, span.get("text"), sure))
    return marks

"""Argilla 2 records as rows: `QUESTION.responses`, `.responses.users`, `.responses.status`, `QUESTION.suggestion`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lasca.errors import FormatError, ParameterError
from lasca.formats.base import Collector
from lasca.formats.huggingface_load import Rows
from lasca.formats.texts import Answer, Mark, as_label, as_name, as_offset, text_id

__all__ = ["argilla_answers", "flat_record", "is_record", "question_of"]

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
        made[f"{question}.responses.status"] = [answer.get("status", "submitted") for answer in answers]
    suggestions = row.get("suggestions")
    for question, given in suggestions.items() if isinstance(suggestions, dict) else ():
        if isinstance(given, dict):
            made.setdefault(f"{question}.responses", [])
            made.setdefault(f"{question}.responses.users", [])
            made[f"{question}.suggestion"] = given.get("value")
            made[f"{question}.suggestion.agent"] = given.get("agent")
    return made


def question_of(part: Rows, name: str | None) -> str:
    """Return the span question: the one that is named, or the only one whose responses are lists of spans."""
    asked = [column[: -len(".responses")] for column in part.names if column.endswith(".responses")]
    if name is not None:
        if name not in asked:
            raise ParameterError("question", name, "one of " + ", ".join(asked))
        return name
    if len(asked) > 1:
        asked = [question for question in asked if any(_has_spans(row, question) for _, row in part.rows)]
    if len(asked) != 1:
        raise FormatError(
            "it is not clear which question holds the spans",
            path=part.shown,
            got=", ".join(c for c in part.names if c.endswith(".responses")),
            hint="Name it: question=… (on the command line: -r question=…)",
        )
    return asked[0]


def _has_spans(row: Mapping[str, Any], question: str) -> bool:
    responses = row.get(f"{question}.responses")
    for response in responses if isinstance(responses, list) else ():
        if isinstance(response, dict | list) and any("start" in s for s in _entries(response) if isinstance(s, dict)):
            return True
    return False


def argilla_answers(part: Rows, question: str, text: str | None, collector: Collector) -> Iterator[Answer]:
    """Yield what every user submitted, and the suggestion."""
    for where, row in part.rows:
        words = row.get(_text_column(row, text, where))
        if not isinstance(words, str):
            raise FormatError("a record's text must be a string", path=where, got=repr(words))
        id = text_id(words) if row.get("id") is None else as_name(row["id"], "the id of a record", where)
        id = f"{part.split}/{id}" if part.split else id
        yield Answer(id, words, where)
        responses = _column(row, f"{question}.responses", where)
        users = _column(row, f"{question}.responses.users", where)
        statuses = _column(row, f"{question}.responses.status", where)
        if len(users) != len(responses) or (statuses and len(statuses) != len(responses)):
            got = f"{len(responses)} responses, {len(users)} users, {len(statuses)} statuses"
            raise FormatError("responses, users and statuses differ in number", path=where, got=got)
        for k, response in enumerate(responses):
            status = statuses[k] if statuses else "submitted"
            if status != "submitted" or response is None:
                kind = status if status in ("draft", "discarded", "pending") else "not submitted"
                collector.count(kind, 1, where)
                continue
            yield Answer(id, words, where, as_name(users[k], "a user", where), _marks(response, where))
        suggestion = row.get(f"{question}.suggestion")
        if suggestion is not None:
            agent = row.get(f"{question}.suggestion.agent")
            name = "model" if agent is None else as_name(agent, "the agent of a suggestion", where)
            yield Answer(id, words, where, name, _marks(suggestion, where), "model")


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


def _column(row: Mapping[str, Any], name: str, where: str) -> list[Any]:
    value = row.get(name)
    if value is not None and not isinstance(value, list):
        raise FormatError(f"{name!r} must be a list", path=where, got=repr(value))
    return value or []


def _entries(spans: dict[str, Any] | list[Any]) -> list[Any]:
    """Return spans as a list of dicts, also where a data set stored them as a dict of lists."""
    if isinstance(spans, list):
        return spans
    columns = {key: value for key, value in spans.items() if isinstance(value, list)}
    length = min((len(value) for value in columns.values()), default=0)
    return [{key: value[k] for key, value in columns.items()} for k in range(length)]


def _marks(spans: object, where: str) -> list[Mark]:
    if not isinstance(spans, dict | list):
        raise FormatError("a response must be a list of spans", path=where, got=repr(spans))
    marks = []
    for span in _entries(spans):
        if not isinstance(span, dict):
            raise FormatError("a span must have start, end and label", path=where, got=repr(span))
        start, end = as_offset(span.get("start"), "start", where), as_offset(span.get("end"), "end", where)
        quoted = span.get("text")
        label = as_label(span.get("label"), where)
        marks.append(Mark(start, end, label, quoted if isinstance(quoted, str) else None, where))
    return marks

"""Prodigy JSONL: one line per text and annotator, with Prodigy's own tokens.

A sample:

    {"text": "Ada visited", "tokens": [{"text": "Ada", "start": 0, "end": 3, "id": 0},
     {"text": "visited", "start": 4, "end": 11, "id": 1}],
     "spans": [{"start": 0, "end": 3, "token_start": 0, "token_end": 0, "label": "PER"}],
     "answer": "accept", "_input_hash": 11, "_annotator_id": "db-ann1"}

(on one line of the file). `token_end` is inclusive. `answer` reject or ignore is missing. Lines with the same
`_input_hash` are about the same text; `_session_id` names the annotator where `_annotator_id` is absent, else the
file's name does. The same annotator twice on a text: the last by `_timestamp`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from lasca import align
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError
from lasca.formats.base import Collector, SourceFile, parse_json_items, pick
from lasca.formats.texts import Answer, Mark, SpanOptions, TextPool, as_label, as_name, as_offset, as_time, text_id

__all__ = ["NAME", "read", "sniff"]

NAME = "prodigy"


def sniff(files: list[SourceFile]) -> float:
    """Say how sure it is that these files are Prodigy's: lines with "_input_hash"."""
    heads = [file.head() for file in files if file.name.lower().endswith((".jsonl", ".json")) or len(files) == 1]
    if any(b'"_input_hash"' in head for head in heads):
        return 0.99
    if any(b'"_annotator_id"' in head or b'"_session_id"' in head for head in heads):
        return 0.9
    spans = any(b'"text"' in head and b'"spans"' in head and b'"answer"' in head for head in heads)
    return 0.9 if spans else 0.0


def read(
    files: list[SourceFile],
    *,
    unit: str = "auto",
    partial: str = "expand",
    overlap: str = "error",
    tokenizer: str | align.Tokenizer | None = None,
    tagging: str = "iob2",
) -> CrowdCorpus:
    """Read Prodigy lines. The lines' own tokens are kept unless a `tokenizer` is given."""
    pool = TextPool(files, NAME, SpanOptions(unit, partial, overlap, tokenizer, tagging))
    for file in pick(files, (".jsonl", ".json", ".ndjson"), pool.collector):
        pool.add_file(
            file.shown,
            (a for line, row in parse_json_items(file) for a in _answers(file, line, row, pool.collector)),
        )
    return pool.corpus()


def _answers(file: SourceFile, line: int, row: dict[str, Any], collector: Collector) -> Iterator[Answer]:
    where = f"{file.shown}:{line}"
    text = row.get("text")
    if not isinstance(text, str):
        raise FormatError("every line must have a string 'text'", path=where, got=repr(text))
    known = row.get("_input_hash")
    id = text_id(text) if known is None else as_name(known, "_input_hash", where)
    tokens = None if row.get("tokens") is None else [_token(t, where) for t in _list(row, "tokens", where)]
    answer = row.get("answer", "accept")
    marks: list[Mark] | None = [_mark(span, tokens, where, collector) for span in _list(row, "spans", where)]
    if answer != "accept":
        kind = answer if answer in ("reject", "ignore") else "other answer"
        collector.count({"reject": "rejected", "ignore": "ignored"}.get(kind, kind), 1, where)
        marks = None
    yield Answer(
        id, text, where, _annotator(row, file, where), marks, "annotator", as_time(row.get("_timestamp")), tokens
    )


def _annotator(row: dict[str, Any], file: SourceFile, where: str) -> str:
    for key in ("_annotator_id", "_session_id"):
        if row.get(key) is not None:
            return as_name(row[key], key, where)
    return PurePosixPath(file.name).stem.strip() or "unknown"


def _list(row: dict[str, Any], key: str, where: str) -> list[Any]:
    value = row.get(key)
    if value is not None and not isinstance(value, list):
        raise FormatError(f"{key!r} must be a list", path=where, got=repr(value))
    return value or []


def _token(token: object, where: str) -> Mark:
    if not isinstance(token, dict):
        raise FormatError("a token must be an object with start, end and text", path=where, got=repr(token))
    quoted = token.get("text")
    start, end = as_offset(token.get("start"), "start of a token", where), as_offset(token.get("end"), "end", where)
    return Mark(start, end, "", quoted if isinstance(quoted, str) else None, where)


def _mark(span: object, tokens: list[Mark] | None, where: str, collector: Collector) -> Mark:
    """Read a span by its characters, or by its tokens where it has no characters; where both are, they should agree."""
    if not isinstance(span, dict):
        raise FormatError("a span must be an object with start, end and label", path=where, got=repr(span))
    label = as_label(span.get("label"), where)
    quoted = span.get("text")
    if "start" in span or "end" in span or not tokens:
        start, end = as_offset(span.get("start"), "start", where), as_offset(span.get("end"), "end", where)
        if tokens and not _agrees(span, tokens, start, end):
            shown = f"tokens {span.get('token_start')}-{span.get('token_end')}, characters {start}-{end}"
            collector.count("spans whose token numbers do not fit", 1, f"{where}: {label} {shown}")
        return Mark(start, end, label, quoted if isinstance(quoted, str) else None, where)
    first = as_offset(span.get("token_start"), "token_start", where)
    last = as_offset(span.get("token_end"), "token_end", where)  # inclusive
    if not first <= last < len(tokens):
        raise FormatError(f"a span lies outside the {len(tokens)} tokens", path=where, got=f"{first}-{last}")
    return Mark(tokens[first].start, tokens[last].end, label, None, where)


def _agrees(span: dict[str, Any], tokens: list[Mark], start: int, end: int) -> bool:
    """Say whether the numbers of a span's tokens, where it has them, are those of its characters."""
    first, last = span.get("token_start"), span.get("token_end")
    for number, offset, edge in ((first, start, "start"), (last, end, "end")):
        if number is None:
            continue
        if not isinstance(number, int) or not 0 <= number < len(tokens) or getattr(tokens[number], edge) != offset:
            return False
    return True

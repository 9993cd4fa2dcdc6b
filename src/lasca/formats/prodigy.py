"""Prodigy JSONL: one line per text and annotator, with Prodigy's own tokens.

A sample:

    {"text": "Ada visited", "tokens": [{"text": "Ada", "start": 0, "end": 3, "id": 0},
     {"text": "visited", "start": 4, "end": 11, "id": 1}],
     "spans": [{"start": 0, "end": 3, "token_start": 0, "token_end": 0, "label": "PER"}],
     "answer": "accept", "_input_hash": 11, "_annotator_id": "db-ann1"}

(on one line of the file). `token_end` is inclusive. `answer` reject or ignore is missing. Lines with the same
`_input_hash` are about the same text; `_session_id` names the annotator where `_annotator_id` is absent, else the
file's name does, and so it does where sessions are called by their time only (2022-03-01_10-11-12) and no text stands
in two of them. The same annotator twice on a text: the last by `_timestamp`. In what the `review` recipe writes, each
of the `versions` is the vote of all its `sessions` (a model's, if they are called so: `ner_model`), and the line
itself is the decision: the gold "review". Relations
are counted. Lines with `options` and what was accepted of them, or with one `label` that was accepted or rejected, are
labels of whole documents (`unit="document"`); yes or no to a single span says nothing about the rest: refused, and so
are lines without any span, such as arcs of a parse: nobody said O there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Unpack

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError
from lasca.formats.base import (
    Collector,
    SourceFile,
    annotator_in,
    as_label,
    as_name,
    as_offset,
    as_score,
    as_time,
    first,
    id_of,
    listed,
    name_authors,
    owners,
    parse_json_items,
    pick,
)
from lasca.formats.documents import Verdict
from lasca.formats.names import NAMES, plain_name, speaker
from lasca.formats.sources import JSON
from lasca.formats.texts import Answer, Mark, Said, Spans, TextPool

__all__ = ["NAME", "read", "sniff"]

NAME = "prodigy"
BY_SPANS = 0.89  # how sure it is of lines that have nothing of Prodigy's but texts with spans
UNNAMED = re.compile(r"(?:^|-)\d{4}-\d\d-\d\d[_T ]\d\d[-:]\d\d[-:]\d\d$")  # a session's time for its name
DECISION = "review"
MEDIA = ("image", "audio", "video")
WHOLE = "LASCA reads texts that were annotated as a whole (ner.manual, ner.correct, spans.manual, review)"
KNOWN = ("text", "tokens", "spans", "answer", "meta", "relations", "versions", "options", "accept", "label", "view_id",
         "sessions", "default", "is_binary", "config", "html")  # fmt: skip
PARTS = ("id", "start", "end", "token_start", "token_end", "label", "text", "score", "source", "input_hash", "pattern",
         "ws")  # fmt: skip


def sniff(files: list[SourceFile]) -> float:
    """Say how sure it is that these files are Prodigy's: lines with "_input_hash", or spans with tokens."""
    mine = [file for file in files if file.name.lower().endswith(JSON) or len(files) == 1]
    rows = [row for file in mine for row in file.records]
    sure = max(map(_looks_like, rows), default=0.0)
    return 0.0 if sure == BY_SPANS and name_authors(rows) else sure


def _looks_like(row: dict[str, Any]) -> float:
    if "_input_hash" in row or "_task_hash" in row:
        return 0.99
    if "_annotator_id" in row or "_session_id" in row:
        return 0.9
    spans = row.get("spans")
    if not isinstance(row.get("text"), str) or not isinstance(spans, list):
        return 0.0
    if {*NAMES["annotator"]} & set(map(plain_name, row)):
        return 0.0
    plain = all(isinstance(s, dict) and ("start" in s or "token_start" in s) and "label" in s for s in spans)
    return BY_SPANS if plain and (spans or "answer" in row or "tokens" in row) else 0.0


def read(files: list[SourceFile], *, label: str | None = None, **spans: Unpack[Spans]) -> CrowdCorpus:
    """Read Prodigy lines. The lines' own tokens are kept unless a `tokenizer` is given.

    `label` names the label of documents to read where lines accept or reject one of several.
    """
    pool = TextPool(files, NAME, **spans)
    lines = _Lines(pool.collector)
    mine = pick(files, JSON, pool.collector)
    names = owners(mine, parts=True)
    said: dict[str, list[Said]] = {}
    for file in mine:
        rows = list(parse_json_items(file))
        _refuse_media(file, rows)
        _refuse_single(file, [row for _, row in rows])
        owner = names[file.shown]
        given = [entry for n, row in rows for entry in lines.given(f"{file.shown}:{n}", owner, row)]
        own = _sessions(given, file.shown, owner[0], pool.collector)
        said[file.shown] = [replace(entry, name=own.get(entry.name, entry.name)) for entry in given]
    if (found := pool.documents(said, "label", label, lines.n_spans)) is not None:
        return found
    if not lines.asked:
        others = ", ".join(kind for kind in pool.collector.counts if kind.startswith(("other values", "relations")))
        raise FormatError(
            "there is no span in these lines: nobody marked anything, or they are about something else",
            path=pool.collector.source,
            got=others or None,
            hint="LASCA reads spans of text (ner.manual, spans.manual, review) and labels of whole documents",
        )
    return pool.corpus()


def _refuse_media(file: SourceFile, lines: Sequence[tuple[int, dict[str, Any]]]) -> None:
    """Refuse parts of images, sounds and videos: their text is but the name of a file."""
    for line, row in lines:
        media = next((key for key in MEDIA if key in row), None)
        if media is not None and not {"options", "accept", "label"} & set(row):
            what = f"this line is about parts of {media} files, and not about a text"
            raise file.error(what, line, got=", ".join(row), hint=WHOLE)


def _refuse_single(file: SourceFile, lines: Sequence[dict[str, Any]]) -> None:
    """Refuse answers to single suggestions (ner.teach): one span in a line, as a model gave it, with yes or no."""
    rows = [row for row in lines if isinstance(row.get("spans"), list) and row["spans"]]
    spans = [span for row in rows for span in row["spans"] if isinstance(span, dict)]
    judged = any("answer" in span for span in spans)
    manual = any("token_start" in span for span in spans) or any("_view_id" in row or "versions" in row for row in rows)
    asked = all("answer" in row for row in rows) and all({"score", "pattern"} & set(span) for span in spans)
    if judged or (rows and len(spans) == len(rows) and asked and not manual):
        what = "the answers are about single spans, and say nothing about the rest of the text"
        raise file.error(what, 1, got=spans[0], hint=WHOLE)


class _Lines:
    """Turns lines into answers with spans, and into labels of documents."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.n_spans = 0
        self.asked = False
        """Whether any line has a place for spans, be it empty."""

    def given(self, where: str, owner: tuple[str, str], row: dict[str, Any]) -> Iterator[Said]:
        """Yield what was said in one line: by its annotator, or by all who took part in a review of it."""
        versions = listed(row, "versions", where)
        if not versions:
            yield from self._answer(row, where, *_annotator(row, owner, where))
            return
        self.collector.count("reviewed lines", 1, where)
        self.collector.count("lines with several versions", len(versions) > 1, where)
        for version in versions:
            if not isinstance(version, dict):
                raise FormatError("a version must be an object", path=where, got=repr(version))
            sessions = listed(version, "sessions", where) or [_annotator(version, owner, where)[0]]
            for name in sessions:
                whole = {"text": row.get("text"), "_input_hash": row.get("_input_hash"), **version}
                who = as_name(name, "a session", where)
                yield from self._answer(whole, where, who, _role(who))
        yield from self._answer(row, where, DECISION, "gold")

    def _answer(self, row: dict[str, Any], where: str, name: str, role: str) -> Iterator[Said]:
        text = row.get("text")
        if not isinstance(text, str):
            found = ", ".join(key for key in ("image", "html", "audio", "video", "options") if key in row)
            raise FormatError("every line must have a string 'text'", path=where, got=found or repr(text))
        id = id_of(row.get("_input_hash"), text, "_input_hash", where)
        tokens = [_token(token, where) for token in listed(row, "tokens", where)] or None
        answer = row.get("answer", "accept")
        time = as_time(row.get("_timestamp"))
        metadata = (
            {} if not isinstance(row.get("meta"), dict) else {"meta": json.dumps(row["meta"], ensure_ascii=False)}
        )
        self.collector.count("relations", len(listed(row, "relations", where)), where)
        for key in sorted(key for key in row if key not in KNOWN and not key.startswith("_") and row[key]):
            self.collector.count(f"other values of lines ({key})", 1, where)
        verdict = self._verdict(row, answer, where)
        if verdict is not None:
            question, labels = verdict
            yield Verdict(id, text, where, name, labels, question, role, time, metadata)
            if not row.get("spans"):
                yield Answer(id, text, where, metadata=metadata)
                return
        if row.get("_view_id", row.get("view_id")) == "ner" and row.get("spans"):
            raise FormatError(
                "the answer is about one span only (view ner), and says nothing about the rest of the text",
                path=where,
                got=f"{answer}: {row['spans'][:1]}",
                hint=WHOLE,
            )
        marks: list[Mark] | None = [_mark(span, tokens, where, self.collector) for span in listed(row, "spans", where)]
        self.n_spans += len(marks or ())
        view = row.get("_view_id", row.get("view_id"))
        self.asked |= isinstance(row.get("spans"), list) or str(view).endswith("manual")
        if answer != "accept":
            kind = answer if answer in ("reject", "ignore") else "other answer"
            self.collector.count({"reject": "rejected", "ignore": "ignored"}.get(kind, kind), 1, where)
            marks = None
        yield Answer(id, text, where, name, marks, role, time, tokens, metadata)

    def _verdict(self, row: dict[str, Any], answer: object, where: str) -> tuple[str, tuple[str, ...]] | None:
        """Return the question and what was chosen for the whole text; None if the line is not about that."""
        if isinstance(row.get("options"), list) and ("accept" in row or answer != "accept"):
            shown = {
                o.get("id"): o.get("text") for o in row["options"] if isinstance(o, dict) and _is_number(o.get("id"))
            }
            accepted = listed(row, "accept", where) if answer == "accept" else []
            return "", tuple(as_label((_is_number(a) and shown.get(a)) or a, where) for a in accepted)
        label = row.get("label")
        if isinstance(label, str) and label.strip() and not row.get("spans"):
            return label.strip(), (str(answer),) if answer in ("accept", "reject") else ()
        return None


def _sessions(said: Sequence[Said], shown: str, owner: str, collector: Collector) -> dict[str, str]:
    """Return the file's name for sessions that are called by their time, unless the same text stands in two of them."""
    texts: dict[str, set[str]] = {}
    for entry in said:
        if entry.role == "annotator" and UNNAMED.search(entry.name):
            texts.setdefault(entry.name, set()).add(entry.id)
    if not texts or len(set().union(*texts.values())) < sum(map(len, texts.values())):
        return {}
    collector.note(f"{shown}: sessions without a name ({len(texts)}, none about the texts of another) are {owner}'s.")
    return dict.fromkeys(texts, owner)


def _annotator(row: dict[str, Any], owner: tuple[str, str], where: str) -> tuple[str, str]:
    """Return name and role of who speaks in a line: a session, a model that is named, or whom the file is called by."""
    named = first(row, ("_annotator_id", "_session_id"))
    named = annotator_in(row) if named is None else named
    if named is not None:
        name = as_name(named, "the annotator", where)
        return name, _role(name)
    machine = row.get("model")
    return (machine, "model") if isinstance(machine, str) and speaker(machine) == "model" else owner


def _role(session: str) -> str:
    """Return who speaks in a session: a model if it is called so, behind the name of the data set (news-gpt-4)."""
    _, _, behind = session.partition("-")
    if UNNAMED.search(session):
        return "annotator"
    return speaker(session if not behind or behind[0].isdigit() else behind)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _token(token: object, where: str) -> Mark:
    if not isinstance(token, dict):
        raise FormatError("a token must be an object with start, end and text", path=where, got=repr(token))
    quoted = None if "tokenizer_id" in token else token.get("text")  # a word piece: [CLS], ▁in, ##ing
    start, end = as_offset(token.get("start"), "start of a token", where), as_offset(token.get("end"), "end", where)
    return Mark(start, end, "", quoted if isinstance(quoted, str) else None, where)


def _mark(span: object, tokens: list[Mark] | None, where: str, collector: Collector) -> Mark:
    """Read a span by its characters, or by its tokens where it has no characters; where both are, they should agree."""
    if not isinstance(span, dict):
        raise FormatError("a span must be an object with start, end and label", path=where, got=repr(span))
    label = as_label(span.get("label"), where)
    collector.count_others("spans", span, PARTS, where)
    if as_score(span.get("score")) is not None:  # of the model that suggested the span, not of who accepted it
        collector.count("scores of suggested spans", 1, where)
    if "start" in span or "end" in span or not tokens:
        mark = Mark.of(span.get("start"), span.get("end"), label, where, span.get("text"))
        if tokens and not _agrees(span, tokens, mark.start, mark.end):
            shown = f"tokens {span.get('token_start')}-{span.get('token_end')}, characters {mark.start}-{mark.end}"
            collector.count("spans whose token numbers do not fit", 1, f"{where}: {label} {shown}")
        return mark
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

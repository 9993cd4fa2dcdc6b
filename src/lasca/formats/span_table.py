"""A table of spans: a row per span with where it begins and ends, its label, its text, and who marked it.

```
doc_id,text,start,end,label,annotator
1,Ada visited Rome,0,3,PER,ann
1,Ada visited Rome,12,16,LOC,ben
2,it rained,,,,ann
```

Columns are found by their usual names (`start`, `begin` or `offset`, `end` or `length`, `label` or `type`, `text` or
`sentence`, `annotator` or `worker`, an id). Offsets count characters from 0, and the end is behind the last one; a
column with the marked words (`entity`, `span`, `quote`, …) lets both be checked; without places, these words are looked
for in the text (see llm-batch). A row without a span says that somebody looked at a text and marked nothing: all O. An
annotator without any row for a text has not seen it. Without a column of annotators the spans are the gold "gold". A
table without the texts themselves is refused: spans without a text have no tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Unpack

from lasca import align
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError, typed
from lasca.formats.base import (
    Collector,
    SourceFile,
    as_time,
    id_of,
    natural_key,
    owners,
    refuse_authors,
    refuse_undone,
    undone,
)
from lasca.formats.llm_batch_answers import PlainText, Quoted, place_quotes
from lasca.formats.names import END, NAMES, QUOTES, START, is_person, named, speaker
from lasca.formats.tabular import NAN, csv_rows, looks_delimited
from lasca.formats.texts import Answer, Mark, Spans, TextPool

__all__ = ["NAME", "read", "sniff"]

NAME = "span-table"
MOST = 0.8  # of the quoted words that must stand in their texts; the others are counted
VOICES = 50  # different ones of annotators, models and golds that a column may name
SUFFIXES = (".csv", ".tsv", ".txt", "")
USUAL = {
    "start": (*START, "offset", "from"),
    "end": (*END, "to"),
    "length": ("length", "len", "span_length"),
    "label": (*NAMES["label"], "type", "entity_type", "category", "ner_label", "entity_label", "labels"),
    "text": ("text", "sentence", "content", "document_text", "full_text", "document", "sentence_text", "context",
             "tweet"),
    "annotator": NAMES["annotator"],
    "item": ("doc_id", "document_id", "text_id", "sentence_id", "sent_id", "item_id", "id", "doc", "file", "filename"),
    "quote": (*QUOTES, "value", "word", "token"),
    "time": NAMES["time"],
}  # fmt: skip


def read(
    files: Sequence[SourceFile],
    *,
    start: str | None = None,
    end: str | None = None,
    label: str | None = None,
    text: str | None = None,
    annotator: str | None = None,
    item: str | None = None,
    **spans: Unpack[Spans],
) -> CrowdCorpus:
    """Read tables of spans; `start`, `end`, `label`, `text`, `annotator` and `item` name columns."""
    given = {"start": start, "end": end, "label": label, "text": text, "annotator": annotator, "item": item}
    pool = TextPool(files, NAME, **spans)
    tables = {file.shown: csv_rows(file) for file in files}
    names = _owners(files, tables, given)
    for file in sorted(files, key=lambda file: natural_key(file.name)):
        (_, header), *rows = tables[file.shown]
        places = _places(file, [cell.strip() for cell in header], given)
        used = set(places.values())
        others = [name.strip() for k, name in enumerate(header) if k not in used]
        pool.collector.count("columns left out", len(others), f"{file.shown}: {', '.join(others)}")
        _refuse_words(file, header, rows, places)
        if "annotator" not in places:
            _refuse_voices(file, header, rows, set(range(len(header))) - used)
        owner = names.get(file.shown, ("gold", "gold"))
        alone = len(files) > 1 and "item" not in places and not names
        prefix = f"{PurePosixPath(file.name).with_suffix('')}/" if alone else ""
        pool.add_file(file.shown, _answers(file, tables[file.shown], places, prefix, owner, pool.collector))
    if names:
        pool.collector.note("There is no column of annotators, and the files have texts in common: each is one's.")
    if not any(answer.answer.role == "annotator" for group in pool.by_id.values() for answer in group):
        pool.collector.note("There is no column of annotators: the spans are the gold.")
    else:
        pool.collector.note("Who has no row for a text is taken not to have seen it.")
    header = [] if annotator else [cell.strip() for cell in tables[files[0].shown][0][1]]
    who = named(header, USUAL["annotator"])
    return refuse_authors(
        pool.corpus(), [] if who is None else [header[who]], files[0].shown, "say so: {} (on the command line)"
    )


def _places(file: SourceFile, header: list[str], given: dict[str, str | None]) -> dict[str, int]:
    """Return which column plays which part."""
    places: dict[str, int] = {}
    for part, usual in USUAL.items():
        name = given.get(part)
        if name is not None and name not in header:
            raise ParameterError(part, name, f"a column of {file.shown}: {', '.join(header)}")
        at = header.index(name) if name is not None else named(header, usual)
        if at is not None and at not in places.values():
            places[part] = at
    if "length" in places and "end" not in places:
        places["end"] = places["length"]  # counted from the start: see `_answers`
    else:
        places.pop("length", None)
    quoted = named(header, QUOTES) is not None and not {"start", "end"} & set(places)
    absent = [part for part in (("label",) if quoted else ("start", "end", "label")) if part not in places]
    if absent:
        hint = f"Name it: {absent[0]}=… (on the command line: -r {absent[0]}=NAME)"
        raise file.error(f"there is no column for {' and '.join(absent)}", 1, got=", ".join(header), hint=hint)
    if "text" not in places:
        raise file.error(
            "the spans stand without their texts, so there are no tokens to label",
            1,
            got=", ".join(header),
            hint="Add a column `text` with the whole text of each row; if it is there, name it: text=… (on the command "
            "line: -r text=NAME)",
        )
    return places


def _refuse_words(
    file: SourceFile, header: Sequence[str], rows: list[tuple[int, list[str]]], places: Mapping[str, int]
) -> None:
    """Refuse a column of texts that holds no more than the words that are marked."""
    if "start" not in places:
        return
    parts = [[cells[places[part]].strip().removesuffix(".0") for part in ("start", "end", "text")] for _, cells in rows]
    spans = [(int(a), int(b), text) for a, b, text in parts if (a + b).isdecimal() and len(a + b) < 18 and a and b]
    alone = sum(len(text) == end - start for start, end, text in spans)
    if alone > MOST * len(spans) and any(end > len(text) for _, end, text in spans):
        raise file.error(
            f"the column {header[places['text']].strip()!r} holds the words that are marked, and not the texts "
            "they stand in",
            1,
            got=spans[0][2],
            hint="Add a column with the whole text of each row and name it: text=… (on the command line: -r text=NAME)",
        )


def _refuse_voices(
    file: SourceFile, header: Sequence[str], rows: list[tuple[int, list[str]]], others: set[int]
) -> None:
    """Refuse a column that is left out and says that a model, or one of several people, marked the span."""
    for k in sorted(others):
        said = sorted({cells[k].strip() for _, cells in rows} - {""})
        short = [name for name in said if len(name.split()) < 3]
        if 1 < len(said) <= VOICES and any(speaker(name) != "annotator" or is_person(name) for name in short):
            name = header[k].strip()
            raise file.error(
                f"the column {name!r} may say who marked the spans, which would be mixed up without it",
                1,
                got=", ".join(said[:4]),
                hint=f"If it does, name it: {typed(f'annotator={name}')} (on the command line), else take it out",
            )


def _owners(
    files: Sequence[SourceFile], tables: Mapping[str, list[tuple[int, list[str]]]], given: dict[str, str | None]
) -> dict[str, tuple[str, str]]:
    """Return whose each file is, if no column says so and some text stands in two files."""
    seen: list[set[str]] = []
    for file in files:
        (_, header), *rows = tables[file.shown]
        places = _places(file, [cell.strip() for cell in header], given)
        if "annotator" in places:
            return {}
        seen.append({cells[places["text"]] for _, cells in rows})
    return owners(files) if sum(map(len, seen)) > len(set().union(*seen)) else {}


def _answers(
    file: SourceFile,
    table: list[tuple[int, list[str]]],
    places: dict[str, int],
    prefix: str,
    owner: tuple[str, str],
    collector: Collector,
) -> list[Answer]:
    """Return an answer for every annotator and text, with all spans of its rows."""
    parts = ("start", "end", "label") if "start" in places else ("quote", "label")
    quotes: dict[tuple[str, str, str], list[Quoted]] = {}
    marks: dict[tuple[str, str, str], list[Mark]] = {}
    first: dict[tuple[str, str, str], tuple[str, str | None]] = {}
    (_, header), *rows = table
    for line, cells in rows:
        where = f"{file.shown}:{line}"
        cell = {part: cells[k] if part == "text" else cells[k].strip() for part, k in places.items()}
        text, who = cell["text"], cell.get("annotator", "")
        if not text.strip():
            raise FormatError("a row has no text", path=where, got=", ".join(cells))
        if "annotator" in cell and not who:
            raise FormatError("a row does not say who marked the span", path=where, got=", ".join(cells))
        row = dict(zip(header, cells))
        empty = [part for part in parts if cell[part] in ("", *NAN)]
        if len(empty) == len(parts) and (why := undone(row)):
            collector.count(f"annotations that do not count ({why})", 1, where)
            continue
        refuse_undone(row, where)
        key = (prefix + id_of(cell.get("item") or None, text, "the id", where), text, who)
        first.setdefault(key, (where, cell.get("time")))
        found = marks.setdefault(key, [])
        if len(empty) == len(parts):
            continue
        if empty:
            raise FormatError(f"a span has no {empty[0]}", path=where, got=", ".join(cells))
        if "start" not in places:
            quotes.setdefault(key, []).append(Quoted(cell["quote"], cell["label"]))
            continue
        start, end = (cell[part].removesuffix(".0") for part in ("start", "end"))  # a float, as pandas makes it
        if "length" in cell and (start + end).isdecimal():
            end = str(int(start) + int(end))
        found.append(Mark.of(start, end, cell["label"], where, cell.get("quote") or None))
    for key, own in quotes.items():
        where, whole = first[key][0], PlainText(key[1], align.tokenizer_of(None)(key[1]))
        there = place_quotes(own, whole, collector.count, where)
        marks[key] = [Mark(place.start, place.end, place.label, None, where) for place in there]
    return [
        Answer(key[0], key[1], where, who, marks[key], role, as_time(time))
        for key, (where, time) in first.items()
        for who, role in [(key[2], speaker(key[2])) if key[2] else owner]
    ]


def sniff(files: Sequence[SourceFile]) -> float:
    """Say how sure it is: a table whose header names where spans begin and end, and their labels."""
    if not files or any(PurePosixPath(file.name).suffix.lower() not in SUFFIXES for file in files[:3]):
        return 0.0
    if files[0].values or not looks_delimited(files[0]):
        return 0.0
    header = files[0].cells
    found = {part for part, usual in USUAL.items() if named(header, usual) is not None}
    if named(header, NAMES["position"]) is not None and named(header, ("token", "word", "form")) is not None:
        return 0.0  # a row per token, with its place in the text
    if {"label", "text"} <= found and not found & {"start", "end"} and named(header, QUOTES) is not None:
        return 0.9 if _quotes_stand(files[0], header) else 0.0
    places = {"start", "label"} <= found and found & {"end", "length"}
    return 0.93 if places and found & {"text", "item", "annotator"} else 0.0


def _quotes_stand(file: SourceFile, header: Sequence[str]) -> bool:
    """Say whether nearly all words of the first rows stand in their texts, which are longer."""
    quote, text = named(header, QUOTES), named(header, USUAL["text"])
    _, *rows = csv_rows(file.beginning())
    pairs = [(cells[quote].strip(), cells[text]) for _, cells in rows if quote is not None and text is not None]
    stand = [words in whole and words != whole for words, whole in pairs if words]
    return bool(stand) and sum(stand) >= MOST * len(stand)

"""One file of WebAnno TSV 3: header, sentences, rows, and the spans of one layer in a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from lasca import align
from lasca.errors import FormatError
from lasca.formats.base import SourceFile, as_offset
from lasca.formats.texts import Mark

__all__ = ["CasSpan", "Document", "Layer", "Sentence", "crossing", "marks_of", "parse"]

UNNAMED = "*"

ROW = re.compile(r"(?P<sentence>[0-9]{1,9})-(?P<token>[0-9]{1,9})(?P<part>\.[0-9]{1,9})?")
OFFSETS = re.compile(r"([0-9]{1,15})-([0-9]{1,15})")
ESCAPE = re.compile(r"\\(->|.)", re.DOTALL)
BREAKS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "b": "\b"}
SPLIT = re.compile(r"(?<!\\)\|")
JOINED = re.compile(r"(?P<value>.*?)(?<!\\)\[(?P<id>[0-9]{1,15})\]", re.DOTALL)


@dataclass(frozen=True)
class Layer:
    """A layer of spans: where its columns begin, counted from the first column of annotations."""

    name: str
    features: tuple[str, ...]
    column: int


@dataclass(frozen=True)
class Row:
    """A token, or a part of one: its index in the sentence, offsets as in the file, text, and annotation cells."""

    token: int
    start: int
    end: int
    text: str
    cells: tuple[str, ...]
    part: bool
    line: int


@dataclass(frozen=True)
class CasSpan:
    """A span of a CAS document: its layer, where it stands in its sentence (code points), its features."""

    layer: str
    start: int
    end: int
    features: Mapping[str, str]


@dataclass
class Sentence:
    """A sentence while it is read: its number, text, token positions in that text, rows (or, of a CAS, spans)."""

    number: str
    line: int
    lines: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    text: str = ""
    chars: align.Chars = field(default_factory=list)
    spans: list[CasSpan] | None = None


@dataclass(frozen=True)
class Document:
    """All of one file."""

    shown: str
    layers: tuple[Layer, ...]
    sentences: tuple[Sentence, ...]
    others: Mapping[str, int] = field(default_factory=dict)
    """How many relations, links of chains and slots there are."""

    @property
    def text(self) -> tuple[str, ...]:
        """The texts of all sentences, for comparing documents."""
        return tuple(sentence.text for sentence in self.sentences)


def parse(file: SourceFile) -> Document:
    """Read one file."""
    lines = file.text().split("\n")
    if not lines[0].startswith("#FORMAT=WebAnno TSV 3"):
        raise file.error("the file must begin with '#FORMAT=WebAnno TSV 3'", 1, got=lines[0])
    layers: list[Layer] = []
    sentences: list[Sentence] = []
    texts: list[str] = []
    column = 0
    kinds: dict[int, str] = {}  # columns of relations, chains and slots
    for number, raw in enumerate(lines[1:], start=2):
        line = raw.rstrip("\r")
        if line.startswith(("#T_SP=", "#T_RL=", "#T_CH=")):
            name, *features = line[6:].split("|")
            if line.startswith("#T_SP="):
                layers.append(Layer(name, tuple(features), column))
                kinds |= {column + k: "slots" for k, f in enumerate(features) if f.startswith("ROLE_")}
            else:
                kinds[column + max(len(features), 1) - 1] = "relations" if line.startswith("#T_RL=") else "chains"
            column += max(len(features), 1)
        elif line.startswith("#Text="):
            texts.append(line[6:])
        elif line and line[0] != "#" and line.strip():
            row, key = _row(line, number, file, column)
            if not sentences or texts or sentences[-1].number != key:
                sentences.append(Sentence(key, number, texts))
                texts = []
            _add(sentences[-1], row, file)
    for sentence in sentences:
        _finish(sentence)
    if len({sentence.number for sentence in sentences}) != len(sentences):
        raise file.error("two sentences have the same number")
    others: dict[str, int] = {}
    for row in (row for sentence in sentences for row in sentence.rows):
        for k, kind in kinds.items():
            if row.cells[k] not in ("_", ""):
                others[kind] = others.get(kind, 0) + len(SPLIT.split(row.cells[k]))
    return Document(file.shown, tuple(layers), tuple(sentences), others)


def _row(line: str, number: int, file: SourceFile, columns: int) -> tuple[Row, str]:
    cells = line.split("\t")
    if cells and cells[-1] == "" and len(cells) > 3:
        cells.pop()  # rows end in a tab
    match = ROW.fullmatch(cells[0])
    place = OFFSETS.fullmatch(cells[1]) if len(cells) >= 3 else None
    if match is None or place is None:
        raise file.error("a row must read: 1-1 <tab> 0-3 <tab> token <tab> …", number, got=line)
    if len(cells) - 3 != columns:
        raise file.error(f"{len(cells) - 3} cells of annotations where the header names {columns}", number, got=line)
    where = f"{file.shown}:{number}"
    start, end = as_offset(place[1], "start", where), as_offset(place[2], "end", where)
    if end < start:
        raise file.error("a token ends before it begins", number, got=cells[1])
    part = match["part"] is not None
    return Row(0, start, end, _unescape(cells[2]), tuple(cells[3:]), part, number), match["sentence"]


def _add(sentence: Sentence, row: Row, file: SourceFile) -> None:
    last = sentence.rows[-1].token if sentence.rows else -1
    if row.part and last < 0:
        raise file.error("a part of a token without its token", row.line)
    sentence.rows.append(replace(row, token=last if row.part else last + 1))


def _finish(sentence: Sentence) -> None:
    """Find the tokens in the text of the sentence; where that fails the tokens themselves are the text."""
    tokens = [row.text for row in sentence.rows if not row.part]
    sentence.text = "\n".join(_unescape(line) for line in sentence.lines)
    found = align.locate(tokens, sentence.text) if sentence.text else None
    if found is None:
        sentence.text, sentence.chars = align.spelled(tokens)
    else:
        sentence.chars = found


def _unescape(value: str) -> str:
    return ESCAPE.sub(lambda match: BREAKS.get(match[1], match[1]), value)


def _column(layer: Layer, feature: str, shown: str) -> int:
    """Return the column of a feature: files of one project may have a layer with other features, in another order."""
    if feature and feature not in layer.features:
        name, there = layer.name.rsplit(".", 1)[-1], ", ".join(layer.features) or "no features"
        raise FormatError(f"{name} has no feature {feature!r} in this file, as it has in others", path=shown, got=there)
    return layer.column + (layer.features.index(feature) if feature else 0)


def marks_of(sentence: Sentence, layer: Layer, feature: str, unit: str, shown: str) -> list[Mark]:
    """Return the spans of one layer in a sentence, in code points of its text."""
    if sentence.spans is not None:
        found = [span for span in sentence.spans if span.layer == layer.name]
        return [Mark(s.start, s.end, s.features.get(feature, "").strip() or UNNAMED, None, shown) for s in found]
    joined: dict[str, Mark] = {}
    marks: list[Mark] = []
    heads = [row for row in sentence.rows if not row.part]
    column = _column(layer, feature, shown)
    for row in sentence.rows:
        where = f"{shown}:{row.line}"
        start, end = _chars(row, heads[row.token], sentence.chars[row.token], unit, where)
        for value, id in _values(row.cells[column]):
            label = value or UNNAMED
            known = joined.get(id) if id else None
            if known is not None and known.label != label:
                raise FormatError(f"span [{id}] has two labels", path=where, got=f"{known.label}, {label}")
            if id:
                joined[id] = Mark(start if known is None else known.start, end, label, None, where)
            else:
                marks.append(Mark(start, end, label, None, where))
    return [*marks, *joined.values()]


def _chars(row: Row, head: Row, chars: tuple[int, int], unit: str, where: str) -> tuple[int, int]:
    """Return where a row stands in the text of its sentence: a token as a whole, or a part of it."""
    if not row.part:
        return chars
    convert = align.to_codepoints(head.text, unit)
    start, end = convert(row.start - head.start), convert(row.end - head.start)
    if start is None or end is None:
        raise FormatError(
            "a part of a token lies outside it", path=where, got=f"{row.start}-{row.end} in {head.start}-{head.end}"
        )
    return chars[0] + start, chars[0] + end


def crossing(document: Document, layer: Layer, feature: str) -> int:
    """Return how many spans of a layer stand in several sentences: each becomes a span in each of them."""
    places: dict[str, set[str]] = {}
    for sentence in document.sentences:
        for row in sentence.rows:
            for _, id in _values(row.cells[_column(layer, feature, document.shown)]):
                places.setdefault(id, set()).add(sentence.number)
    return sum(len(numbers) > 1 for id, numbers in places.items() if id)


def _values(cell: str) -> Iterator[tuple[str, str]]:
    """Yield the labels in a cell, each with the id of its span or ""."""
    if cell in ("_", ""):
        return
    for value in SPLIT.split(cell):
        match = JOINED.fullmatch(value)
        name, id = (match["value"], match["id"]) if match is not None else (value, "")
        if name != "_":
            yield "" if name in ("*", "") else _unescape(name).strip(), id

"""Why no reader claims some files: the most telling thing that is wrong with them, for the error that says so."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from lasca.errors import FormatError, excerpt
from lasca.formats.base import parse_json_items
from lasca.formats.brat import is_standoff
from lasca.formats.conll_columns import OWN
from lasca.formats.conll_lines import read_table, text_lines
from lasca.formats.mace_csv import read as read_mace
from lasca.formats.sources import SourceFile
from lasca.formats.tabular import is_parquet, looks_delimited, read_parquet

__all__ = ["found_in", "other_tool", "why_unknown"]

SHAPES = (
    'JSON lines {"id": 1, "text": "…", "label": [[start, end, "PER"]]} with a file per annotator, or a table with the '
    "columns sequence, position, token, annotator, label"
)
TOOLS = {
    "UBIAI": {"document", "tokens"},
    "tagtog": {"anncomplete", "entities"},
    "Kili": {"externalId", "labels"},
    "Dataturks": {"content", "annotation"},
    "Datasaur": {"sentences", "labelSets"},
    "Argilla 1 (Rubrix)": {"annotation_agent", "prediction"},
    "PubAnnotation": {"text", "denotations"},
    "BioC": {"source", "documents"},
    "Rasa": {"rasa_nlu_data"},
    "Labelbox": {"data_row", "projects"},
    "LUIS": {"luis_schema_version", "utterances"},
    "Azure Language Studio": {"projectFileVersion", "assets"},
    "Google AutoML": {"text_snippet", "annotations"},
    "a chat with a language model": {"messages"},
    "Potato (its user_state.json, without the texts: take annotated_instances.jsonl)": {
        "instance_id_to_label_to_value"
    },
}
"""Tools whose exports LASCA does not read, by keys of their JSON."""

IMAGES = ({"filename", "bbox"}, {"images", "annotations", "categories"}, {"filename", "segmentation"})
"""Keys of exports about images: doccano's, and COCO."""

BEGINNINGS = {
    "BioC": re.compile(rb"<collection\b.*<(?:source|document|infon)\b", re.DOTALL),
    "PubTator": re.compile(rb"\A\s*\w+\|t\|"),
    "YEDDA (marks inside the text)": re.compile(rb"\[@[^\n\]]+#[^\n\]#]+\*\]"),
    "i2b2 (concepts)": re.compile(rb'\Ac="[^\n]*" \d+:\d+ \d+:\d+\|\|t="'),
    "Rasa": re.compile(rb"\A\s*(?:version:[^\n]*\n\s*)?nlu:\s*\n\s*- (?:intent|synonym|regex|lookup):"),
}
"""The same by how their files begin."""

MANY = 20  # files that are looked at
MOST = 0.8  # share of lines of one width, from which on the others are the odd ones


def why_unknown(files: Sequence[SourceFile]) -> str | None:
    """Return a sentence on the first file with something wrong in it, or None if nothing is: just no known format."""
    if any(PurePosixPath(file.name).name == "[Content_Types].xml" for file in files):
        return "This is an Office document: save the sheet as CSV (UTF-8)"
    for file in files[:MANY]:
        try:
            _look(file)
        except FormatError as error:
            return str(error)
    return None


def other_tool(file: SourceFile) -> str | None:
    """Name the tool whose files LASCA does not read, if this is one of them."""
    head = file.head(2048)
    if b"<GateDocument" in head or any("annotation_sets" in row for row in file.records[:1]):
        return (
            f"{file.shown} is a GATE document, which LASCA does not read. Export its annotations as CoNLL columns or "
            "as JSON lines with text and spans"
        )
    if head.startswith(b"version https://git-lfs.github.com/spec/"):
        return f"{file.shown} is a pointer of Git LFS, not the file itself: fetch it first, with: git lfs pull"
    if {"_unit_id", "_trusted_judgments"} <= set(file.cells) and "_worker_id" not in file.cells:
        return (
            f"{file.shown} is an aggregated report of CrowdFlower (Appen), in which nobody is named: download the full "
            "report, which has a row for every judgment and a column _worker_id"
        )
    keys = set(file.records[0]) if file.records else set()
    if any(own <= keys for own in IMAGES):
        return f"{file.shown} holds regions of images ({_keys(file.records[0])}). LASCA reads labels of texts"
    tool = next((name for name, own in TOOLS.items() if own <= keys), None)
    tool = tool or next((name for name, begin in BEGINNINGS.items() if begin.search(head)), None)
    if tool is not None:
        return f"{file.shown} looks like an export of {tool}, which LASCA does not read. Bring it into {SHAPES}"
    if file.name.lower().endswith((".ann", ".a1", ".a2")) and is_standoff(file):
        return (
            f"{file.shown} holds annotations of brat without their text: give the folder in which NAME.ann and "
            "NAME.txt stand side by side (join NAME.a1 and NAME.a2 into NAME.ann)"
        )
    if b"<typeSystemDescription" in head:
        return f"{file.shown} is a UIMA type system: give the XMI documents themselves"
    if head[:4] == b"\xac\xed\x00\x05":
        return f"{file.shown} holds Java objects (.ser): export the project with TSV or XMI instead"
    return None


def found_in(file: SourceFile) -> str | None:
    """Say in a few words what a file holds: the keys of its JSON, or the columns of its table."""
    if file.records:
        return f"JSON objects with the keys {_keys(file.records[0])}{_inside(file.records[0])}"
    if file.values:
        return "JSON that is no list of objects"
    if looks_delimited(file) and len(file.cells) > 1:
        return f"a table with the columns {', '.join(excerpt(cell, 30) for cell in file.cells[:12])}"
    return None


def _keys(record: dict[str, Any]) -> str:
    return ", ".join(excerpt(key, 30) for key in list(record)[:12])


def _inside(record: dict[str, Any]) -> str:
    """Say what stands under the first key that holds objects."""
    for key, value in record.items():
        entry = value[0] if isinstance(value, list) and value else value
        if isinstance(entry, dict) and entry:
            return f" (under {excerpt(key, 30)}: {_keys(entry)})"
    return ""


def _look(file: SourceFile) -> None:
    """Raise what is wrong with a file, if anything is."""
    if is_parquet(file):
        read_parquet(file)
        return
    text = file.text()
    if "\x00" in text:
        at = text.index("\x00")
        raise file.error(
            "there is a NUL byte in the text", text.count("\n", 0, at) + 1, got=text[max(at - 20, 0) : at + 20]
        )
    beginning = text.lstrip()[:1]
    if beginning in ("{", "["):
        for _ in parse_json_items(file):
            pass
    elif looks_delimited(file) and _mostly_one_width(text, ","):
        read_mace([file])
    elif _suffix(file) in OWN or _mostly_one_width(text, "\t") or _mostly_one_width(text, " "):
        read_table(file)


def _suffix(file: SourceFile) -> str:
    return PurePosixPath(file.name).suffix.lower()


def _mostly_one_width(text: str, delimiter: str) -> bool:
    """Say whether nearly all lines have the same number of cells, and more than one."""
    cells = [len(line.split(None if delimiter == " " else delimiter)) for line in text_lines(text) if line.strip()]
    if len(cells) < 3:
        return False
    width, n = Counter(cells).most_common(1)[0]
    return width > 1 and n >= MOST * len(cells)

"""Files that are called by their document and their annotator, `doc1_ada.ann` and `doc1_ben.ann`, in one folder.

They are given the names they would have in folders of annotators, `ada/doc1.ann`, if what they hold bears it out: the
files of a document have the same text, and documents have different ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from lasca.formats.conll_lines import text_lines
from lasca.formats.sources import SourceFile

__all__ = ["in_folders"]

COLUMNS = (".conll", ".conllu", ".conllx", ".tsv", ".txt", ".iob", ".iob2", ".bio", ".bioes", ".col", ".tok", "")
ORDERS = (
    re.compile(r"(?P<document>.+)[._ -](?P<annotator>[^._ -]+)"),
    re.compile(r"(?P<annotator>[^._ -]+)[._ -](?P<document>.+)"),
)


def in_folders(files: Sequence[SourceFile]) -> list[SourceFile] | None:
    """Return the files under the names they would have in folders of annotators; None if they are called otherwise."""
    stems = {file.shown: PurePosixPath(file.name).stem for file in files}
    suffixes = {file.shown: PurePosixPath(file.name).suffix.lower() for file in files}
    if len(files) < 3 or len({PurePosixPath(file.name).parent for file in files}) > 1:
        return None
    marked = [file for file in files if suffixes[file.shown] == ".ann"]
    brat = bool(marked)
    marked = marked or [file for file in files if suffixes[file.shown] in COLUMNS]
    if len(marked) < 2 or (not brat and len(marked) < len(files)) or any(file.values for file in marked[:2]):
        return None
    texts = {stems[file.shown]: file for file in files if suffixes[file.shown] == ".txt"} if brat else {}
    for order in ORDERS:
        found = {file.shown: match for file in marked if (match := order.fullmatch(stems[file.shown]))}
        if len(found) < len(marked):
            continue
        documents: dict[str, dict[str, tuple[str, ...]]] = {}
        for file in marked:
            match = found[file.shown]
            source = texts.get(match[0], texts.get(match["document"])) if brat else file
            text = () if source is None else _words(source, whole=brat)
            documents.setdefault(match["document"], {})[match["annotator"]] = text
        if _agree(list(documents.values()), 1 if brat else 2):
            return [_renamed(file, order.fullmatch(stems[file.shown]), documents) for file in files]
    return None


def _agree(documents: list[dict[str, tuple[str, ...]]], least: int) -> bool:
    """Say whether files of one document have one text, and texts of several are different; no annotator is alone."""
    shared = [texts for texts in documents if len(texts) > 1]
    people = {name for texts in documents for name in texts}
    same = all(len(set(texts.values())) == 1 and all(texts.values()) for texts in shared)
    different = len({next(iter(texts.values())) for texts in documents}) == len(documents)
    return len(shared) >= least and same and different and people == {name for texts in shared for name in texts}


def _renamed(
    file: SourceFile, match: re.Match[str] | None, documents: dict[str, dict[str, tuple[str, ...]]]
) -> SourceFile:
    if match is None or match["annotator"] not in documents.get(match["document"], {}):
        return file
    path = PurePosixPath(file.name)
    return replace(file, name=str(path.parent / match["annotator"] / f"{match['document']}{path.suffix}"))


def _words(file: SourceFile, whole: bool) -> tuple[str, ...]:
    """Return the words of a text, or the first cells of columns, at the beginning of a file."""
    lines = text_lines(file.head().decode(errors="replace"))[:-1] or [file.head(4096).decode(errors="replace")]
    if whole:
        return tuple(word for line in lines for word in line.split())
    if lines[0].startswith("#FORMAT=WebAnno"):
        return tuple(line for line in lines if line.startswith("#Text="))
    return tuple(line.split()[0] for line in lines if line.strip() and not line.startswith("#"))

"""Files that are called by their document and their annotator, `doc1_ada.ann` and `doc1_ben.ann`, in one folder.

They are given the names they would have in folders of annotators, `ada/doc1.ann`, if what they hold bears it out: the
files of a document have the same text, and documents have different ones. So are files in folders of documents,
`doc1/ada.ann` (INCEpTION's `annotation/doc1.txt/ada.conll` and `curation/doc1.txt/CURATION_USER.conll`), and files in
folders of annotators in each part of the data, `train/ada/doc1.ann`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from lasca.formats.conll_lines import text_lines
from lasca.formats.sources import JSON, PARTS, SourceFile

__all__ = ["in_folders"]

COLUMNS = (".conll", ".conllu", ".conllx", ".tsv", ".txt", ".iob", ".iob2", ".bio", ".bioes", ".col", ".tok", "")
ORDERS = (
    re.compile(r"(?P<document>[^/]+)[._ -](?P<annotator>[^/._ -]+)"),
    re.compile(r"(?P<annotator>[^/._ -]+)[._ -](?P<document>[^/]+)"),
    re.compile(r"(?:.*/)?(?P<curated>curation[^/]*/)?(?P<document>[^/]+)/(?P<annotator>[^/]+)"),
    re.compile(rf"(?:[^/]+/)??(?P<document>{'|'.join(PARTS)})/(?P<annotator>[^/]+)/(?P<rest>.+)", re.IGNORECASE),
)
TEXTS = ("text", "data", "tokens", "words")
Place = tuple[str, str]  # document, annotator


def in_folders(files: Sequence[SourceFile]) -> list[SourceFile] | None:
    """Return the files under the names they would have in folders of annotators; None if they are called otherwise."""
    if any(file.name.endswith(".tokens") for file in files):
        return _with_tokens(files)
    by_suffix: dict[str, list[SourceFile]] = {}
    for file in files:
        by_suffix.setdefault(PurePosixPath(file.name).suffix.lower(), []).append(file)
    if len(files) < 3:
        return None
    brat = by_suffix.get(".ann", [])
    marked = brat or [file for suffix in (*COLUMNS, *JSON) for file in by_suffix.get(suffix, ())]
    if len(marked) < 2 or (not brat and len(marked) < len(files)):
        return None
    paths = {file.shown: PurePosixPath(file.name).with_suffix("") for file in files}
    flat = len({path.parent for path in paths.values()}) == 1
    texts = {str(paths[file.shown]): file for file in by_suffix.get(".txt", ())} if brat else {}
    for order in ORDERS[:2] if flat else ORDERS[2:]:
        found = {s: m for s, path in paths.items() if (m := order.fullmatch(path.name if flat else str(path)))}
        if not all(file.shown in found for file in marked):
            continue
        places = {shown: _place(match) for shown, match in found.items()}
        documents: dict[str, dict[str, SourceFile | None]] = {}
        for file in marked:
            document, annotator = places[file.shown]
            source = _text_of(paths[file.shown], document, texts) if brat else file
            documents.setdefault(document, {})[annotator] = source
        if _agree(list(documents.values()), 1 if brat and flat else 2, bool(brat)):
            return [_renamed(file, places.get(file.shown), documents) for file in files]
    return None


def _with_tokens(files: Sequence[SourceFile]) -> list[SourceFile] | None:
    """Return columns of EBM-NLP's files: words in DOC.tokens, and a label for each of them in DOC.ANNOTATOR.ann."""
    paths = {file.shown: PurePosixPath(file.name) for file in files}
    words = {paths[f.shown].stem: text_lines(f.text().rstrip("\n")) for f in files if f.name.endswith(".tokens")}
    made: dict[str, SourceFile] = {}
    for file in (file for file in files if file.name.endswith(".ann")):
        document, _, name = paths[file.shown].stem.partition(".")
        labels = text_lines(file.text().rstrip("\n"))
        place = f"{name}/{document}.txt"
        if place in made:
            what = f"{name} labelled {document} twice, here and in {made[place].shown}: these are several tasks"
            raise file.error(
                what, hint="Give a folder with the tokens and the labels of one task, such as participants"
            )
        if not name or len(words.get(document, ())) != len(labels):
            return None
        rows = "\n".join(f"{word}\t{label}" for word, label in zip(words[document], labels))
        made[place] = replace(file, name=place, data=f"{rows}\n".encode())
    return list(made.values()) or None


def _place(match: re.Match[str]) -> Place:
    more = match.groupdict()
    curated = more.get("curated") or match["annotator"] == "CURATION_USER"
    return "/".join(filter(None, (match["document"], more.get("rest")))), "curation" if curated else match["annotator"]


def _text_of(path: PurePosixPath, document: str, texts: dict[str, SourceFile]) -> SourceFile | None:
    """Return the text of a file of brat's: of its own name, of the document's, or the only one in its folder."""
    for name in (path, path.parent / document):
        if str(name) in texts:
            return texts[str(name)]
    beside = [file for name, file in texts.items() if PurePosixPath(name).parent == path.parent]
    return beside[0] if len(beside) == 1 and path.parent.name == document else None


def _agree(documents: list[dict[str, SourceFile | None]], least: int, whole: bool) -> bool:
    """Say whether files of one document have one text, and texts of several are different; no annotator is alone."""
    shared = {name for files in documents if len(files) > 1 for name in files}
    if sum(len(files) > 1 for files in documents) < least or any(set(files) - shared for files in documents):
        return False
    seen: set[str] = set()
    for files in documents:
        texts = [frozenset[str]() if file is None else _words(file, whole) for file in files.values()]
        held = frozenset[str]().union(*texts)
        if not frozenset.intersection(*texts) or seen & held:
            return False
        seen |= held
    return True


def _renamed(file: SourceFile, place: Place | None, documents: Mapping[str, Container[str]]) -> SourceFile:
    path = PurePosixPath(file.name)
    if place is None or place[0] not in documents:
        return file
    document, annotator = place
    if annotator in documents[document]:
        return replace(file, name=f"{annotator}/{document}{path.suffix}")
    return replace(file, name=f"{document}{path.suffix}")  # the text of all of them


def _words(file: SourceFile, whole: bool) -> frozenset[str]:
    """Return the texts of a file, of its beginning at least: its words, the first cells of columns, or JSON's texts."""
    if not whole and file.values:
        given = [row[key] for row in file.records for key in TEXTS if key in row]
        return frozenset(text if isinstance(text, str) else json.dumps(text) for text in given)
    lines = text_lines(file.head().decode(errors="replace"))[:-1] or [file.head(4096).decode(errors="replace")]
    if whole:
        words = [word for line in lines for word in line.split()]
    elif lines[0].startswith("#FORMAT=WebAnno"):
        words = [line for line in lines if line.startswith("#Text=")]
    else:
        words = [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]
    return frozenset(["\n".join(words)] if words else [])

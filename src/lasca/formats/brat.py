"""brat standoff: a folder per annotator with the same base names, `DOC.txt` and `DOC.ann`.

A sample of `ada/doc1.ann` (tabs after the id and after the offsets), where `doc1.txt` is the running text:

    T1	PER 2 14	Ada Lovelace
    T2	LOC 23 31	New York

Only text-bound annotations (`T`) are read; relations, events, attributes and notes are counted, each kind for itself.
Folders are annotators if some of their documents have the same names; else they may be parts of one corpus, which is
asked about (`folders="annotators"` or "parts"). A missing `.ann` is
missing, an empty one is all O. The text may stand in every annotator's folder, or once (beside the folders, or in a
folder without any `.ann`). Fragments (`2 5;8 14`) are refused; with `discontinuous="cover"` the stretch from the first
to the last is taken, with "parts" each fragment is a span of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Unpack

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, excerpt
from lasca.estimator import check_choice
from lasca.formats.base import Collector, SourceFile, as_label, as_offset, pick, unwrapped
from lasca.formats.names import speaker
from lasca.formats.texts import Answer, Mark, Spans, TextPool

__all__ = ["NAME", "read", "sniff"]

NAME = "brat"

TEXT_BOUND = re.compile(
    r"T[^\t ]*\t(?P<label>[^\t ]+) (?P<places>[0-9]+ [0-9]+(?:;[0-9]+ [0-9]+)*)(?:\t(?P<quoted>.*))?"
)
KINDS = {
    "R": "relations", "*": "relations", "E": "events", "A": "attributes", "M": "attributes", "N": "normalisations",
    "#": "notes",
}  # fmt: skip


def sniff(files: list[SourceFile]) -> float:
    """Say how sure it is that these files are brat's: `.ann` beside `.txt`, and lines that begin as brat's do."""
    suffixes = {PurePosixPath(file.name).suffix.lower() for file in files}
    mine = [file for file in files if _is_ann(file) and not file.is_empty()]
    return 0.98 if {".ann", ".txt"} <= suffixes and all(map(is_standoff, mine[:3])) else 0.0


def is_standoff(file: SourceFile) -> bool:
    """Say whether a file begins with an annotation: its id, and what it is behind it."""
    return re.match(rb"(?:\xef\xbb\xbf)?\s*[TREAMN*#]\S*\s+\S", file.head(4096)) is not None


def read(
    files: list[SourceFile],
    *,
    discontinuous: str = "error",
    gold: str | None = None,
    folders: str = "auto",
    **spans: Unpack[Spans],
) -> CrowdCorpus:
    """Read folders of annotators. `gold` names the folder that is a gold (else "gold", "curation" and the like are)."""
    check_choice("discontinuous", discontinuous, ("error", "cover", "parts"))
    check_choice("folders", folders, ("auto", "annotators", "parts"))
    pool = TextPool(files, NAME, **spans)
    mine = unwrapped(pick(files, (".txt", ".ann"), pool.collector))
    texts = {str(PurePosixPath(file.name).with_suffix("")): file for file in mine if not _is_ann(file)}
    answers = [file for file in mine if _is_ann(file)]
    used: set[str] = set()
    pool.collector.golds = () if gold is None else (gold,)
    parts = folders == "parts" or (folders == "auto" and _are_parts(answers, texts, pool.collector))
    for file in answers:
        folder, document = ("", str(PurePosixPath(file.name).with_suffix(""))) if parts else _place(file)
        source = _text_of(folder, document, texts)
        if source is None:
            raise FormatError(f"there is no text {document + '.txt'!r} for these annotations", path=file.shown)
        used.add(document)
        marks = list(_marks(file, pool.collector, discontinuous))
        name = folder or "annotator"
        role = speaker(name)
        if gold is not None and (name == gold or role == "gold"):  # the user knows better than names do
            role = "gold" if name == gold else "annotator"
        pool.add_file(file.shown, [Answer(document, source.text(), file.shown, name, marks, role)])
    named = {(key if parts else _place(file)[1]): file for key, file in texts.items()}
    for document, source in sorted(named.items()):
        if document not in used:
            pool.collector.count("texts nobody labelled", 1, source.shown)
            pool.add_file(source.shown, [Answer(document, source.text(), source.shown)])
    return pool.corpus()


def _are_parts(answers: list[SourceFile], texts: dict[str, SourceFile], collector: Collector) -> bool:
    """Ask what folders are if no document, name and text, stands in two of them; False: they are annotators'."""
    places: dict[str, set[tuple[str, bytes]]] = {}
    for file in answers:
        folder, document = _place(file)
        source = _text_of(folder, document, texts)
        places.setdefault(folder, set()).add((document, b"" if source is None else source.read()))
    names = [name for name in places if name]
    shared = any(places[a] & places[b] for a in places for b in places if a < b)
    if len(names) < 2 or shared:
        return False
    shown = ", ".join(f"{excerpt(name, 40)} ({len(places[name]):,})" for name in sorted(names)[:8])
    raise FormatError(
        f"it is not clear whose the folders are, because no document stands in two of them (name and text): {shown}",
        path=collector.source,
        hint="If each is an annotator's, set folders=annotators; if they are parts of one corpus, folders=parts "
        "(on the command line: -r folders=parts); or read one folder at a time",
    )


def _is_ann(file: SourceFile) -> bool:
    return file.name.lower().endswith(".ann")


def _place(file: SourceFile) -> tuple[str, str]:
    """Return the annotator (the first folder) and the document (the path below it, without suffix)."""
    parts = PurePosixPath(file.name).with_suffix("").parts
    return (parts[0], "/".join(parts[1:])) if len(parts) > 1 else ("", parts[0])


def _text_of(folder: str, document: str, texts: dict[str, SourceFile]) -> SourceFile | None:
    """Return the text of a document: the annotator's own copy, one beside the folders, or one in any folder."""
    for key in (f"{folder}/{document}" if folder else document, document):
        if key in texts:
            return texts[key]
    return next((file for key, file in texts.items() if _place(file)[1] == document), None)


def _marks(file: SourceFile, collector: Collector, discontinuous: str) -> Iterator[Mark]:
    for number, line in enumerate(file.text().split("\n"), start=1):
        line = line.rstrip("\r")
        where = f"{file.shown}:{number}"
        if not line.strip():
            continue
        if not line.startswith("T"):
            if line[0] not in KINDS:
                raise FormatError("this is not a line of brat's", path=where, got=line)
            collector.count(KINDS[line[0]], 1, f"{where}: {line}")
            continue
        match = TEXT_BOUND.fullmatch(line)
        if match is None:
            raise FormatError("an annotation must read: T1 <tab> LABEL START END <tab> TEXT", path=where, got=line)
        yield from _fragments(match, where, collector, discontinuous)


def _fragments(match: re.Match[str], where: str, collector: Collector, discontinuous: str) -> Iterator[Mark]:
    label, quoted = as_label(match["label"], where), match["quoted"]
    places = [[as_offset(n, "an offset", where) for n in p.split(" ")] for p in match["places"].split(";")]
    if len(places) == 1:
        yield Mark(places[0][0], places[0][1], label, quoted, where)
        return
    if discontinuous == "error":
        raise FormatError(
            "a span in several pieces",
            path=where,
            got=match[0],
            hint="Set discontinuous=cover (from the first to the last) or discontinuous=parts (each on its own) "
            "(on the command line: -r discontinuous=cover)",
        )
    collector.count("spans in several pieces", 1, where)
    if discontinuous == "cover":
        yield Mark(min(p[0] for p in places), max(p[1] for p in places), label, None, where)
    else:
        for start, end in places:
            yield Mark(start, end, label, None, where)

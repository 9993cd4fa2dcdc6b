"""INCEpTION out: WebAnno TSV 3, UIMA XMI and JSON CAS, a folder per document with a file for every annotator.

The layer is DKPro Core's NamedEntity with its feature `value`. The truth, or the first gold, is the curator's file.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lasca import align
from lasca.errors import LascaWarning, count
from lasca.files import whole_folder
from lasca.formats.outcome import Sheet, Voice, library, safe_name, voices_of

__all__ = ["write_cas_json", "write_webanno", "write_xmi"]

Write = Callable[[Path, Sequence[Sheet], Voice], None]


def write_webanno(sheets: list[Sheet], path: str | Path, *, overwrite: bool = False) -> None:
    """Write WebAnno TSV 3.3 (layer NamedEntity, feature value): DOCUMENT/ANNOTATOR.tsv, the truth as CURATION_USER."""
    _per_document(sheets, path, overwrite, ".tsv", _tsv)


def write_xmi(sheets: list[Sheet], path: str | Path, *, overwrite: bool = False) -> None:
    """Write UIMA XMI, DOCUMENT/ANNOTATOR.xmi, with TypeSystem.xml; needs the extra [xmi]."""
    cassis = library("cassis", "xmi")
    types = _type_system(cassis)

    def write(file: Path, own: Sequence[Sheet], voice: Voice) -> None:
        _cas(own, voice, cassis, types).to_xmi(str(file), pretty_print=True)
        system = file.parent.parent / "TypeSystem.xml"
        if not system.exists():
            types.to_xml(str(system))

    _per_document(sheets, path, overwrite, ".xmi", write)


def write_cas_json(sheets: list[Sheet], path: str | Path, *, overwrite: bool = False) -> None:
    """Write JSON CAS, DOCUMENT/ANNOTATOR.json, each with its type system in it; needs the extra [xmi]."""
    cassis = library("cassis", "xmi")
    types = _type_system(cassis)
    _per_document(sheets, path, overwrite, ".json", lambda f, own, v: _cas(own, v, cassis, types).to_json(str(f)))


def _per_document(sheets: list[Sheet], path: str | Path, overwrite: bool, suffix: str, write: Write) -> None:
    documents: dict[str, list[Sheet]] = {}
    for sheet in sheets:
        documents.setdefault(sheet.document, []).append(sheet)
    voices = voices_of(sheets)
    golds = [voice for voice in voices if voice[0] in ("gold", "truth")]
    if len(golds) > 1:
        names = ", ".join(name for _, name in golds[1:])
        warnings.warn(LascaWarning(f"there is one curator: left out {names}"), stacklevel=6)
    silent = sum(
        sheet.said.get(voice) is None
        for own in documents.values()
        for voice in voices
        if any(sheet.said.get(voice) is not None for sheet in own)
        for sheet in own
    )
    if silent:
        said = f"{count(silent, 'sentence')} of which an annotator of the document said nothing: written as unmarked"
        warnings.warn(LascaWarning(said), stacklevel=6)
    with whole_folder(path, overwrite=overwrite) as folder:
        names_of: dict[str, str] = {}
        people: dict[str, str] = {}
        for document, own in documents.items():
            below = folder / safe_name(document, names_of)
            below.mkdir()
            for voice in voices:
                if voice in golds[1:] or all(sheet.said.get(voice) is None for sheet in own):
                    continue
                name = "CURATION_USER" if voice in golds else safe_name(voice[1], people)
                write(below / f"{name}{suffix}", own, voice)


ESCAPED = re.compile(r"([\\\[\]|_;*])|(->)|([\t\n\r\f\b])")
LETTERS = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\b": "\\b"}


def _escaped(value: str) -> str:
    return ESCAPED.sub(lambda m: "\\" + m[0] if m[1] or m[2] else LETTERS[m[0]], value)


def _plain(text: str) -> str:
    return re.sub(r"[\t\n\r\f\b\\]", lambda m: LETTERS.get(m[0], "\\\\"), text)


def _tsv(file: Path, sheets: Sequence[Sheet], voice: Voice) -> None:
    lines = ["#FORMAT=WebAnno TSV 3.3", "#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|value", "", ""]
    at, number = 0, 0
    for sheet in sheets:
        lines.append("#Text=" + _plain(sheet.text))
        offset = align.from_codepoint(sheet.text, "utf16")
        cells: list[list[str]] = [[] for _ in sheet.chars]
        for s in sorted(sheet.said.get(voice) or (), key=lambda s: (s.first, -s.last, s.label)):
            stacked = any(o is not s and o.first < s.last and s.first < o.last for o in sheet.said.get(voice) or ())
            if s.last - s.first > 1 or stacked:
                number += 1
            mark = f"[{number}]" if s.last - s.first > 1 or stacked else ""
            for t in range(s.first, s.last):
                cells[t].append((_escaped(s.label) or "*") + mark)
        line = sheets.index(sheet) + 1
        for t, (a, b) in enumerate(sheet.chars):
            place = f"{at + offset(a)}-{at + offset(b)}"
            lines.append(f"{line}-{t + 1}\t{place}\t{_plain(sheet.text[a:b])}\t{'|'.join(cells[t]) or '_'}\t")
        lines.append("")
        at += offset(len(sheet.text)) + 1
    file.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


CORE = "de.tudarmstadt.ukp.dkpro.core.api"


def _type_system(cassis: Any) -> Any:
    """Return the types of DKPro Core that are written: tokens, sentences, named entities with a value."""
    types = cassis.TypeSystem()
    for name in ("segmentation.type.Token", "segmentation.type.Sentence", "ner.type.NamedEntity"):
        types.create_type(f"{CORE}.{name}", supertypeName="uima.tcas.Annotation")
    types.create_feature(f"{CORE}.ner.type.NamedEntity", name="value", rangeType="uima.cas.String")
    return types


def _cas(sheets: Sequence[Sheet], voice: Voice, cassis: Any, types: Any) -> Any:
    """Return one document as a CAS: its sentences, tokens and what one voice marked."""
    token, sentence = (types.get_type(f"{CORE}.segmentation.type.{name}") for name in ("Token", "Sentence"))
    entity = types.get_type(f"{CORE}.ner.type.NamedEntity")
    cas = cassis.Cas(typesystem=types)
    cas.sofa_string = "\n".join(sheet.text for sheet in sheets)
    cas.sofa_mime = "text/plain"
    at = 0
    for sheet in sheets:
        cas.add(sentence(begin=at, end=at + len(sheet.text)))
        for a, b in sheet.chars:
            cas.add(token(begin=at + a, end=at + b))
        for s in sheet.said.get(voice) or ():
            cas.add(entity(begin=at + s.start, end=at + s.end, value=s.label))
        at += len(sheet.text) + 1
    return cas

"""Formats of spans out: doccano, Prodigy, brat, character offsets, WebAnno TSV 3, XMI, spaCy DocBin.

All of them say over a text which stretches carry which label. With `labels` the truth is written; without, what every
annotator and gold said. Layers (`lasca.formats.layers`) are put together: their spans may overlap.

A file holds one voice, the truth or a single annotator; where there are several, doccano, brat, webanno and xmi become
a folder with a file or folder for each. Golds are called so: "gold", or "gold NAME" where a format has no place for it.
"""

from __future__ import annotations

import json
import re
import warnings
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from lasca import align
from lasca.corpus import CrowdCorpus
from lasca.errors import LascaWarning, ParameterError, StoreError
from lasca.files import whole_file, whole_folder
from lasca.formats.label_studio_write import texts_of
from lasca.formats.layers import Layers
from lasca.formats.outcome import Outcome, everybody, outcome

__all__ = ["LAYERED", "write_brat", "write_docbin", "write_doccano", "write_layers", "write_offsets", "write_prodigy",
           "write_webanno", "write_xmi"]  # fmt: skip

TRUTH = "lasca"
Voice = tuple[str, str]  # role ("truth", "gold", "annotator", "model") and name


@dataclass(frozen=True)
class _Said:
    """A span over a text, the tokens it covers (first to last, exclusive), and how sure the truth is of it."""

    start: int
    end: int
    label: str
    first: int
    last: int
    score: float | None = None


@dataclass(frozen=True)
class _Sheet:
    """One text: its id, tokens, document, and what every voice marked in it (None: nothing known)."""

    id: str
    text: str
    chars: align.Chars
    document: str
    said: Mapping[Voice, list[_Said] | None]


def _sheets(corpus: CrowdCorpus, made: Outcome) -> list[_Sheet]:
    texts = texts_of(corpus)
    voices: list[tuple[Voice, list[list[str | None]]]] = []
    if made.names is not None:
        voices.append((("truth", TRUTH), made.names))
    else:
        voices += [((role, name), rows) for role, name, rows in everybody(corpus)]
    sure = made.confidence() if made.names is not None else None
    documents = corpus.metadata.get("document")
    sheets = []
    for s in range(corpus.n_sequences):
        text, chars = texts[s]
        start = int(corpus.offsets[s])
        said: dict[Voice, list[_Said] | None] = {}
        for voice, rows in voices:
            if all(label is None for label in rows[s]):
                said[voice] = None if voice[0] != "truth" else []
                continue
            spans = []
            for span, first, last in align.label_spans(rows[s], chars):
                score = None if sure is None else round(float(sure[start + first : start + last].mean()), 6)
                spans.append(_Said(span.start, span.end, span.label, first, last, score))
            said[voice] = spans
        id = corpus.sequence_ids[s]
        sheets.append(_Sheet(id, text, chars, documents[s] if documents is not None and documents[s] else id, said))
    return sheets


def _voices(sheets: list[_Sheet]) -> list[Voice]:
    return list(dict.fromkeys(voice for sheet in sheets for voice in sheet.said))


def _shown(voice: Voice, voices: list[Voice]) -> str:
    """Return the name of a voice that no other one has."""
    role, name = voice
    if role == "gold":
        return name if name.lower().startswith("gold") else f"gold {name}"
    return name


def _safe(name: str, taken: dict[str, str]) -> str:
    """Return a name for a file: letters that every system allows, and no other name's."""
    if name not in taken:
        plain = re.sub(r"[^\w.@ -]+", "_", name).strip(". ")[:100] or "_"
        while plain.lower() in {known.lower() for known in taken.values()}:
            plain += "_"
        taken[name] = plain
    return taken[name]


def _lines(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for row in rows:
            stream.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")


# --- one function per format ---------------------------------------------------------------------------------------


def write_doccano(corpus: CrowdCorpus, made: Outcome, path: str | Path, *, overwrite: bool = False) -> None:
    """Write doccano JSONL: a file for one voice, a folder with a file for each of several."""
    _doccano(_sheets(corpus, made), path, overwrite)


def _doccano(sheets: list[_Sheet], path: str | Path, overwrite: bool) -> None:
    voices = _voices(sheets)

    def rows(voice: Voice) -> Iterator[dict[str, Any]]:
        for sheet in sheets:
            spans = sheet.said.get(voice)
            if spans is not None:
                yield {"id": sheet.id, "text": sheet.text, "label": [[s.start, s.end, s.label] for s in spans]}

    if len(voices) <= 1:
        with whole_file(path) as scratch:
            _lines(scratch, rows(voices[0]) if voices else iter(()))
        return
    with whole_folder(path, overwrite=overwrite) as folder:
        taken: dict[str, str] = {}
        for voice in voices:
            _lines(folder / f"{_safe(_shown(voice, voices), taken)}.jsonl", rows(voice))


def write_prodigy(corpus: CrowdCorpus, made: Outcome, path: str | Path) -> None:
    """Write Prodigy JSONL: a line per text and annotator, with the tokens; golds have no place in it."""
    _prodigy(_sheets(corpus, made), path)


def _prodigy(sheets: list[_Sheet], path: str | Path) -> None:
    left_out = [voice for voice in _voices(sheets) if voice[0] == "gold"]
    if left_out:
        names = ", ".join(name for _, name in left_out)
        warnings.warn(LascaWarning(f"Prodigy's lines have no place for golds: left out {names}"), stacklevel=5)

    def rows() -> Iterator[dict[str, Any]]:
        for sheet in sheets:
            known = _prodigy_hash(sheet.text)
            tokens = [
                {"text": sheet.text[a:b], "start": a, "end": b, "id": k, "ws": sheet.text[b : b + 1].isspace()}
                for k, (a, b) in enumerate(sheet.chars)
            ]
            for (role, name), spans in sheet.said.items():
                if spans is None or role == "gold":
                    continue
                marked = [
                    {"start": s.start, "end": s.end, "token_start": s.first, "token_end": s.last - 1, "label": s.label}
                    for s in spans
                ]
                task = _prodigy_hash(json.dumps([sheet.text, marked, name]))
                yield {
                    "text": sheet.text, "tokens": tokens, "spans": marked, "answer": "accept", "_view_id": "ner_manual",
                    "_input_hash": known, "_task_hash": task, "_annotator_id": name, "_session_id": name,
                    "meta": {"id": sheet.id},
                }  # fmt: skip

    with whole_file(path) as scratch:
        _lines(scratch, rows())


def _prodigy_hash(text: str) -> int:
    value = zlib.crc32(text.encode("utf-8", "surrogatepass"))
    return value - 2**32 if value >= 2**31 else value


def write_offsets(corpus: CrowdCorpus, made: Outcome, path: str | Path) -> None:
    """Write JSON lines of a text and its spans in code points: of the truth, or of everybody under `annotations`."""
    _offsets(_sheets(corpus, made), path)


def _offsets(sheets: list[_Sheet], path: str | Path) -> None:
    def spans_of(sheet: _Sheet, spans: list[_Said]) -> list[dict[str, Any]]:
        shown = []
        for s in spans:
            shown.append({"start": s.start, "end": s.end, "label": s.label, "text": sheet.text[s.start : s.end]})
            if s.score is not None:
                shown[-1]["score"] = s.score
        return shown

    def rows() -> Iterator[dict[str, Any]]:
        for sheet in sheets:
            row: dict[str, Any] = {"id": sheet.id, "document": sheet.document, "text": sheet.text}
            truth = sheet.said.get(("truth", TRUTH))
            if truth is not None:
                yield row | {"spans": spans_of(sheet, truth)}
                continue
            given = [(voice, spans) for voice, spans in sheet.said.items() if spans is not None]
            yield row | {
                "annotations": [
                    {"annotator": name, "role": role, "spans": spans_of(sheet, spans)} for (role, name), spans in given
                ]
            }

    with whole_file(path) as scratch:
        _lines(scratch, rows())


def write_brat(corpus: CrowdCorpus, made: Outcome, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a folder of brat: texts and annotations of the truth, or a folder for every annotator and gold."""
    _brat(_sheets(corpus, made), path, overwrite)


def _brat(sheets: list[_Sheet], path: str | Path, overwrite: bool) -> None:
    voices = _voices(sheets)
    labels = sorted({s.label for sheet in sheets for spans in sheet.said.values() for s in spans or ()})
    types = {label: re.sub(r"[^\w-]+", "_", label) or "_" for label in labels}
    if len(set(types.values())) < len(types):
        raise StoreError("two labels have the same name in brat, which takes letters, digits, - and _", where=str(path))
    with whole_folder(path, overwrite=overwrite) as folder:
        names: dict[str, str] = {}
        people: dict[str, str] = {}
        for voice in voices or [("truth", TRUTH)]:
            below = folder if voice[0] == "truth" else folder / _safe(_shown(voice, voices), people)
            below.mkdir(exist_ok=True)
            for sheet in sheets:
                stem = _safe(sheet.id, names)
                (below / f"{stem}.txt").write_text(sheet.text, encoding="utf-8", newline="")
                spans = sheet.said.get(voice)
                if spans is None:
                    continue
                lines = []
                for k, s in enumerate(spans, start=1):
                    words = sheet.text[s.start : s.end].replace("\n", " ").replace("\r", " ")
                    lines.append(f"T{k}\t{types[s.label]} {s.start} {s.end}\t{words}\n")
                (below / f"{stem}.ann").write_text("".join(lines), encoding="utf-8", newline="")
        conf = "[entities]\n" + "".join(f"{name}\n" for name in sorted(types.values()))
        (folder / "annotation.conf").write_text(conf + "[relations]\n[events]\n[attributes]\n", encoding="utf-8")


def write_webanno(corpus: CrowdCorpus, made: Outcome, path: str | Path, *, overwrite: bool = False) -> None:
    """Write WebAnno TSV 3.3 (layer NamedEntity, feature value): DOCUMENT/ANNOTATOR.tsv, the truth as CURATION_USER."""
    sheets = _sheets(corpus, made)
    _per_document(sheets, path, overwrite, ".tsv", lambda file, own, voice: _tsv(file, own, voice))


def _per_document(sheets: list[_Sheet], path: str | Path, overwrite: bool, suffix: str, write: Any) -> None:
    documents: dict[str, list[_Sheet]] = {}
    for sheet in sheets:
        documents.setdefault(sheet.document, []).append(sheet)
    voices = _voices(sheets)
    golds = [voice for voice in voices if voice[0] in ("gold", "truth")]
    if len(golds) > 1:
        names = ", ".join(name for _, name in golds[1:])
        warnings.warn(LascaWarning(f"there is one curator: left out {names}"), stacklevel=6)
    with whole_folder(path, overwrite=overwrite) as folder:
        names_of: dict[str, str] = {}
        people: dict[str, str] = {}
        for document, own in documents.items():
            below = folder / _safe(document, names_of)
            below.mkdir()
            for voice in voices:
                if voice in golds[1:] or all(sheet.said.get(voice) is None for sheet in own):
                    continue
                name = "CURATION_USER" if voice in golds else _safe(voice[1], people)
                write(below / f"{name}{suffix}", own, voice)


ESCAPED = re.compile(r"([\\\[\]|_;*])|(->)|([\t\n\r\f\b])")
LETTERS = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\b": "\\b"}


def _escaped(value: str) -> str:
    return ESCAPED.sub(lambda m: "\\" + m[0] if m[1] or m[2] else LETTERS[m[0]], value)


def _tsv(file: Path, sheets: list[_Sheet], voice: Voice) -> None:
    lines = ["#FORMAT=WebAnno TSV 3.3", "#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|value", "", ""]
    at, number = 0, 0
    for sheet in sheets:
        lines.append("#Text=" + re.sub(r"[\t\n\r\f\b\\]", lambda m: LETTERS.get(m[0], "\\\\"), sheet.text))
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
            word = re.sub(r"[\t\n\r\f\b\\]", lambda m: LETTERS.get(m[0], "\\\\"), sheet.text[a:b])
            lines.append(f"{line}-{t + 1}\t{place}\t{word}\t{'|'.join(cells[t]) or '_'}\t")
        lines.append("")
        at += offset(len(sheet.text)) + 1
    file.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def write_xmi(corpus: CrowdCorpus, made: Outcome, path: str | Path, *, overwrite: bool = False) -> None:
    """Write UIMA XMI (DKPro Core's NamedEntity), DOCUMENT/ANNOTATOR.xmi, with TypeSystem.xml; needs the extra [xmi]."""
    sheets = _sheets(corpus, made)
    cassis = _library("cassis", "xmi")
    types = _type_system(cassis)
    _per_document(sheets, path, overwrite, ".xmi", lambda file, own, voice: _xmi(file, own, voice, cassis, types))


CORE = "de.tudarmstadt.ukp.dkpro.core.api"


def _type_system(cassis: Any) -> Any:
    """Return the types of DKPro Core that are written: tokens, sentences, named entities with a value."""
    types = cassis.TypeSystem()
    for name in ("segmentation.type.Token", "segmentation.type.Sentence", "ner.type.NamedEntity"):
        types.create_type(f"{CORE}.{name}", supertypeName="uima.tcas.Annotation")
    types.create_feature(f"{CORE}.ner.type.NamedEntity", name="value", rangeType="uima.cas.String")
    return types


def _xmi(file: Path, sheets: list[_Sheet], voice: Voice, cassis: Any, types: Any) -> None:
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
    cas.to_xmi(str(file), pretty_print=True)
    system = file.parent.parent / "TypeSystem.xml"
    if not system.exists():
        types.to_xml(str(system))


def write_docbin(corpus: CrowdCorpus, made: Outcome, path: str | Path) -> None:
    """Write a DocBin of spaCy: the truth in `doc.ents`, what is ambiguous in `doc.spans["ambiguous"]`.

    Without a truth the gold is in `doc.ents`, and every annotator has a span group of that name. Needs the extra
    [spacy].
    """
    spacy, tokens = _library("spacy", "spacy"), _library("spacy.tokens", "spacy")
    vocab = spacy.blank("xx").vocab
    found = tokens.DocBin(store_user_data=True)
    for s, sheet in enumerate(_sheets(corpus, made)):
        words = [sheet.text[a:b] for a, b in sheet.chars]
        gaps = [sheet.text[b : b + 1] == " " for _, b in sheet.chars]
        doc = tokens.Doc(vocab, words=words, spaces=gaps)
        ents = next((spans for (role, _), spans in sheet.said.items() if role in ("truth", "gold")), None)
        if ents is not None:
            doc.set_ents([tokens.Span(doc, x.first, x.last, label=x.label) for x in ents])
        for (role, name), spans in sheet.said.items():
            if role not in ("truth", "gold") and spans is not None:
                doc.spans[name] = [tokens.Span(doc, x.first, x.last, label=x.label) for x in spans]
        if made.candidates is not None and made.names is not None:
            start = int(corpus.offsets[s])
            rivals = [(t, label) for t in range(len(words)) for label, _ in made.candidates.get(start + t, [])]
            doc.spans["ambiguous"] = [tokens.Span(doc, t, t + 1, label=label) for t, label in rivals]
        found.add(doc)
    with whole_file(path) as scratch:
        scratch.write_bytes(found.to_bytes())


def _library(name: str, extra: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise StoreError(f"this format needs the package {name}", hint=f"Install lasca[{extra}]") from error


# --- layers --------------------------------------------------------------------------------------------------------

LAYERED = ("doccano", "prodigy", "offsets", "brat", "webanno")


def write_layers(
    layers: Layers,
    path: str | Path,
    format: str,
    labels: Mapping[str, npt.ArrayLike] | None,
    *,
    overwrite: bool = False,
) -> None:
    """Write the spans of all layers together, in a format that can hold overlapping spans."""
    if format not in LAYERED:
        raise ParameterError("format", format, f"one of {', '.join(LAYERED)} for layers, whose spans may overlap")
    parts = []
    for name, corpus in layers.items():
        given = None if labels is None else labels[name]
        parts.append(_sheets(corpus, outcome(corpus, given)))
    merged = [_merged(list(same)) for same in zip(*parts)]
    if format == "doccano":
        _doccano(merged, path, overwrite)
    elif format == "brat":
        _brat(merged, path, overwrite)
    elif format == "webanno":
        _per_document(merged, path, overwrite, ".tsv", lambda file, own, voice: _tsv(file, own, voice))
    elif format == "prodigy":
        _prodigy(merged, path)
    else:
        _offsets(merged, path)


def _merged(sheets: list[_Sheet]) -> _Sheet:
    said: dict[Voice, list[_Said] | None] = {}
    for sheet in sheets:
        for voice, spans in sheet.said.items():
            said[voice] = spans if said.get(voice) is None else [*(said[voice] or ()), *(spans or ())]
    ordered = {v: None if x is None else sorted(x, key=lambda s: (s.start, -s.end, s.label)) for v, x in said.items()}
    first = sheets[0]
    return _Sheet(first.id, first.text, first.chars, first.document, ordered)

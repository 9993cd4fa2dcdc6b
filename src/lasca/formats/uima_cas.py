"""UIMA CAS documents as XMI or JSON, as INCEpTION exports them: the same document as from WebAnno TSV 3.

Both are flat lists of annotations with types, offsets (UTF-16 units) and features, so they are read without a type
system, whose file need not be there. Sentences and tokens are those of DKPro Core; a document without sentences is one.
Types that are relations (Governor, Dependent), chains (next, first) or slots are counted, not read. A span over several
sentences becomes one in each, as in TSV, and is counted.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lasca import align
from lasca.formats.base import SourceFile, as_offset, parse_json
from lasca.formats.webanno_tsv import CasSpan, Document, Layer, Sentence

__all__ = ["is_cas_json", "is_xmi", "parse_cas"]

XMI = "{http://www.omg.org/XMI}"
OWN = ("id", "sofa", "begin", "end")
SEGMENTS = ("Token", "Sentence", "DocumentMetaData", "DocumentAnnotation", "Paragraph", "TagDescription", "CASMetadata",
            "TagsetDescription", "LayerDefinition", "FeatureDefinition")  # fmt: skip
RELATION = ("Governor", "Dependent", "source", "target")
CHAIN = ("next", "first")


@dataclass
class _Annotation:
    """One annotation: its type, where it stands, and its features."""

    type: str
    begin: int
    end: int
    features: dict[str, str]
    slots: int = 0


@dataclass
class _Cas:
    text: str = ""
    annotations: list[_Annotation] = field(default_factory=list)


def is_xmi(file: SourceFile) -> bool:
    """Say whether a file is XMI, by what it begins with."""
    head = file.head(4096)
    return b"<xmi:XMI" in head or (b"<XMI" in head and b"omg.org/XMI" in head)


def is_cas_json(file: SourceFile) -> bool:
    """Say whether a file is a CAS in JSON: an object with feature structures."""
    return any("%FEATURE_STRUCTURES" in row for row in file.records[:1])


def parse_cas(file: SourceFile) -> Document:
    """Read one document."""
    cas = _from_xmi(file) if is_xmi(file) else _from_json(file)
    if not cas.text:
        raise file.error("there is no text in this CAS document")
    convert = align.to_codepoints(cas.text, "utf16")
    for annotation in cas.annotations:
        begin, end = convert(annotation.begin), convert(annotation.end)
        if begin is None or end is None or begin > end:
            raise file.error(
                f"a {annotation.type} lies outside its text of {len(cas.text)} code points",
                got=f"{annotation.begin}-{annotation.end}",
            )
        annotation.begin, annotation.end = begin, end
    return _document(file, cas)


def _from_xmi(file: SourceFile) -> _Cas:
    text = file.text()
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise file.error("an XMI document must not define entities", 1)
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        raise file.error("this is not XML", error.position[0], got=str(error)) from error
    except (ValueError, RecursionError) as error:
        raise file.error("this XML cannot be read", got=str(error)) from error
    cas = _Cas()
    sofas = {}
    for element in root:
        space, _, name = element.tag.rpartition("}")
        values = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
        if name == "Sofa" and "uima/cas" in space:
            sofas[values.get("id", "")] = values
        slots = sum(len(value.split()) for key, value in values.items() if key in ("links",)) + len(element)
        _add(cas, f"{_package(space)}{name}", values, slots, file)
    views = [s for s in sofas.values() if s.get("sofaID") == "_InitialView"] or list(sofas.values())
    cas.text = views[0].get("sofaString", "") if views else ""
    return cas


def _package(space: str) -> str:
    path = space.removeprefix("{http:///").removesuffix(".ecore").replace("/", ".")
    return f"{path}." if path and "{" not in path else ""


def _from_json(file: SourceFile) -> _Cas:
    whole = parse_json(file)
    entries = whole.get("%FEATURE_STRUCTURES") if isinstance(whole, dict) else None
    if isinstance(entries, dict):
        entries = [{"%ID": key, **value} for key, value in entries.items() if isinstance(value, dict)]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise file.error("%FEATURE_STRUCTURES must be a list of objects")
    cas = _Cas()
    sofas = [e for e in entries if str(e.get("%TYPE", "")).rpartition(".")[2] == "Sofa"]
    first = [e for e in sofas if e.get("sofaID") == "_InitialView"] or sofas
    text = first[0].get("sofaString", "") if first else ""
    cas.text = text if isinstance(text, str) else ""
    for entry in (e for e in entries if e not in sofas):
        name = entry.get("%TYPE")
        if not isinstance(name, str):
            continue
        plain = {k.lstrip("@"): v for k, v in entry.items() if not k.startswith("%")}
        slots = sum(len(v) for k, v in plain.items() if isinstance(v, list))
        values = {k: _shown(v) for k, v in plain.items() if not isinstance(v, list | dict) and v is not None}
        _add(cas, name, values, slots, file)
    return cas


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _add(cas: _Cas, name: str, values: Mapping[str, str], slots: int, file: SourceFile) -> None:
    """Keep a feature structure that has a place in the text: no view, no header of the document."""
    if "begin" in values and "end" in values:
        features = {key: value for key, value in values.items() if key not in OWN and not key.startswith("^")}
        begin, end = as_offset(values["begin"], "begin", file.shown), as_offset(values["end"], "end", file.shown)
        cas.annotations.append(_Annotation(name, begin, end, features, slots))


def _document(file: SourceFile, cas: _Cas) -> Document:
    kinds: dict[str, list[_Annotation]] = {}
    for annotation in cas.annotations:
        kinds.setdefault(annotation.type, []).append(annotation)
    others: dict[str, int] = {}
    layers: dict[str, Layer] = {}
    for name, found in sorted(kinds.items()):
        short = name.rpartition(".")[2]
        keys = sorted({key for annotation in found for key in annotation.features})
        if short in SEGMENTS:
            continue
        if any(key in RELATION for key in keys):
            others["relations"] = others.get("relations", 0) + len(found)
        elif any(key in CHAIN for key in keys) or short.endswith(("Link", "Chain")):
            others["chains"] = others.get("chains", 0) + len(found)
        else:
            slots = sum(annotation.slots for annotation in found)
            others |= {"slots": others.get("slots", 0) + slots} if slots else {}
            layers[name] = Layer(name, tuple(key for key in keys if key != "links"), 0)
    sentences = list(_sentences(file, cas, kinds))
    for name in layers:
        for annotation in kinds[name]:
            crossing = _place(annotation, name, sentences)
            others |= (
                {"spans over several sentences, split": others.get("spans over several sentences, split", 0) + 1}
                if crossing
                else {}
            )
    return Document(file.shown, tuple(layers.values()), tuple(sentence for _, _, sentence in sentences), others)


def _of(kinds: Mapping[str, list[_Annotation]], short: str) -> list[_Annotation]:
    found = [a for name, entries in kinds.items() if name.rpartition(".")[2] == short for a in entries]
    return sorted({(a.begin, a.end): a for a in found}.values(), key=lambda a: (a.begin, a.end))


Placed = tuple[int, int, Sentence]


def _sentences(file: SourceFile, cas: _Cas, kinds: Mapping[str, list[_Annotation]]) -> Iterator[Placed]:
    tokens = [a for a in _of(kinds, "Token") if cas.text[a.begin : a.end].strip()]
    given = _of(kinds, "Sentence") or [_Annotation("", 0, len(cas.text), {})]
    number = 0
    for place in given:
        own = [t for t in tokens if place.begin <= t.begin and t.end <= place.end]
        text = cas.text[place.begin : place.end]
        chars = [(t.begin - place.begin, t.end - place.begin) for t in own] or align.tokenizer_of(None)(text)
        if not chars or not align.rising(chars, len(text)):
            if chars:
                raise file.error("tokens of one sentence overlap", got=text[:60])
            continue
        number += 1
        yield place.begin, place.end, Sentence(str(number), 1, text=text, chars=chars, spans=[])


def _place(annotation: _Annotation, name: str, sentences: list[Placed]) -> bool:
    """Put a span into the sentences it reaches; say whether these are several."""
    reached = 0
    for begin, end, sentence in sentences:
        empty = annotation.begin == annotation.end and begin <= annotation.begin <= end
        if (annotation.begin < end and begin < annotation.end) or (empty and not reached):
            reached += 1
            start, stop = max(annotation.begin, begin) - begin, min(annotation.end, end) - begin
            assert sentence.spans is not None
            sentence.spans.append(CasSpan(name, start, stop, annotation.features))
    return reached > 1

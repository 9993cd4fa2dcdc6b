"""spaCy: DocBin files (`.spacy`, with the extra `[spacy]`), and its JSON for training in three shapes.

Training tuples, as `ner_train.json` of spaCy's projects has them:

    [["Who is Shaka Khan?", {"entities": [[7, 17, "PERSON"]]}], ["I like London.", {"entities": [[7, 13, "LOC"]]}]]

The same inside `{"classes": […], "annotations": […]}` (NER Annotator), and the JSON of spaCy 2: a list of documents
with `paragraphs`, `raw`, `sentences`, `tokens` and their `ner` tags. Entities of one file are the gold "gold"; of
several files that share texts, every file is an annotator. In a DocBin, span groups are annotators by the name of their
key, beside the entities (one group alone, such as "sc", is the gold, or counted and left out where there are entities);
a token without any entity information is missing. `cats` are labels of whole documents (`unit="document"`: the category
with the highest score).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Unpack

from lasca import align
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, LascaError
from lasca.formats.base import Collector, SourceFile, as_label, owners, parse_json, text_id
from lasca.formats.documents import Verdict
from lasca.formats.sources import MAX_RATIO, UNSUSPECTED
from lasca.formats.texts import Answer, Mark, Said, Spans, TextPool

__all__ = ["NAME", "read", "sniff"]

NAME = "spacy"
LOOKED_AT = 20  # files of a folder, whatever their names
GOLD = "gold"


def sniff(files: list[SourceFile]) -> float:
    """Say how sure it is that these are spaCy's: DocBin, or texts with entities."""
    return max((0.97 if is_docbin(file) else 0.93 * _is_json(file) for file in files[:LOOKED_AT]), default=0.0)


def is_docbin(file: SourceFile) -> bool:
    """Say whether a file is a DocBin: compressed MessagePack that begins with its own keys."""
    head = file.head(4096)
    if head[:1] != b"\x78":
        return False
    try:
        start = zlib.decompressobj().decompress(head, 256)
    except zlib.error:
        return False
    return any(key in start for key in (b"version", b"attrs", b"tokens"))


def _is_json(file: SourceFile) -> bool:
    first = next(iter(file.values), None)
    if isinstance(first, list):
        return len(first) == 2 and isinstance(first[0], str) and isinstance(first[1], dict)
    if not isinstance(first, dict):
        return False
    tuples = first.get("annotations")
    if "classes" in first and isinstance(tuples, list):
        return any(isinstance(entry, list) and len(entry) == 2 for entry in tuples)
    paragraphs = first.get("paragraphs")
    return isinstance(paragraphs, list) and not any("qas" in p for p in paragraphs if isinstance(p, dict))


def read(files: list[SourceFile], *, group: str | None = None, **spans: Unpack[Spans]) -> CrowdCorpus:
    """Read DocBin or JSON. `group` names the one span group to read instead of the entities."""
    pool = TextPool(files, NAME, usual="codepoint", **spans)
    said: dict[str, list[Said]] = {}
    for file in files:
        if len(files) > 1 and not (is_docbin(file) or _is_json(file)):
            pool.collector.count("other files", 1, file.shown)
            continue
        given = _docbin(file, group, pool.collector) if is_docbin(file) else _json(file, pool.collector)
        said[file.shown] = list(given)
    return pool.corpus_of(_owners(said, owners(files), pool.collector))


def _owners(
    said: dict[str, list[Said]], files: dict[str, tuple[str, str]], collector: Collector
) -> dict[str, list[Said]]:
    """Give what has no name the file's, if files share texts; else it is the gold."""
    texts = {shown: {a.text for a in given} for shown, given in said.items()}
    shared = any(texts[a] & texts[b] for a in texts for b in texts if a < b)
    if not shared:
        return said
    collector.note("Several files have the same texts: each file is an annotator.")
    named = {}
    for shown, given in said.items():
        name, role = files[shown]
        named[shown] = [
            replace(a, name=name, role=role) if isinstance(a, Answer) and a.name == GOLD else a for a in given
        ]
    return named


def _check_size(data: bytes, file: SourceFile) -> None:
    """Refuse what unpacks to too much: spaCy would unpack it whole."""
    most = max(UNSUSPECTED, MAX_RATIO * len(data))
    try:
        unpacked = len(zlib.decompressobj().decompress(data, most + 1))
    except zlib.error:
        return  # spaCy says what is wrong
    if unpacked > most:
        raise file.error(f"this DocBin unpacks to more than {most:,} bytes, {MAX_RATIO} times its size")


def _docbin(file: SourceFile, group: str | None, collector: Collector) -> list[Said]:
    try:
        from spacy.tokens import DocBin
        from spacy.vocab import Vocab
    except ImportError as error:
        raise FormatError(
            "this is a DocBin of spaCy, which is read with spaCy only", path=file.shown, hint="Install lasca[spacy]"
        ) from error
    data = file.read()
    _check_size(data, file)
    try:
        docs = list(DocBin().from_bytes(data).get_docs(Vocab()))
        several = len({key for doc in docs for key in doc.spans}) > 1
        return [
            said
            for k, doc in enumerate(docs)
            for said in _document(doc, f"{file.shown} (document {k})", group, several, collector)
        ]
    except LascaError:
        raise
    except Exception as error:
        raise file.error("this DocBin cannot be read", got=f"{type(error).__name__}: {error}") from error


def _document(doc: Any, where: str, group: str | None, several: bool, collector: Collector) -> Iterator[Said]:
    id, text = text_id(doc.text), doc.text
    tokens = [Mark(t.idx, t.idx + len(t.text), "", t.text, where) for t in doc]
    yield Answer(id, text, where, tokens=tokens)
    groups = {key: list(spans) for key, spans in doc.spans.items()}
    if group is not None and group not in groups:
        groups = {group: []}
    chosen = {group: groups[group]} if group is not None else groups
    if group is None and any(t.ent_iob for t in doc):
        marks = [_span(e, where) for e in doc.ents]
        unknown = [(t.idx, t.idx + len(t.text)) for t in doc if not t.ent_iob]
        yield Answer(id, text, where, GOLD, marks, "gold", None, tokens, unknown=unknown)
        if not several:
            collector.count("span groups left out", len(groups), where)
            chosen = {}
    for key, spans in sorted(chosen.items()):
        marks = [_span(s, where) for s in spans]
        alone = group is not None or not several
        yield Answer(id, text, where, GOLD if alone else key, marks, "gold" if alone else "annotator", None, tokens)
    if doc.cats:
        yield Verdict(id, text, where, GOLD, _best(doc.cats), role="gold")


def _span(span: Any, where: str) -> Mark:
    return Mark(span.start_char, span.end_char, as_label(span.label_, where), span.text, where)


def _best(cats: dict[str, Any]) -> tuple[str, ...]:
    """Return the categories that are true; of probabilities the highest."""
    scores = {str(k): float(v) for k, v in cats.items() if isinstance(v, int | float)}
    if not scores or max(scores.values()) <= 0:
        return ()
    top = max(scores.values())
    return tuple(sorted(name for name, score in scores.items() if score == top))


def _json(file: SourceFile, collector: Collector) -> Iterator[Said]:
    whole = parse_json(file)
    if isinstance(whole, dict) and isinstance(whole.get("annotations"), list):
        whole = [entry for entry in whole["annotations"] if entry is not None]
    for k, entry in enumerate(whole if isinstance(whole, list) else [whole]):
        where = f"{file.shown} (entry {k})"
        if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) and isinstance(entry[1], dict):
            yield from _tuple(entry[0], entry[1], where, collector)
        elif isinstance(entry, dict) and isinstance(entry.get("paragraphs"), list):
            for number, paragraph in enumerate(entry["paragraphs"]):
                yield from _paragraph(paragraph, f"{where} paragraph {number}")
        else:
            raise FormatError("an entry must be [text, {'entities': […]}] or have paragraphs", path=where, got=entry)


def _tuple(text: str, said: dict[str, Any], where: str, collector: Collector) -> Iterator[Said]:
    id = text_id(text)
    entities = said.get("entities", said.get("spans"))
    for key in ("links", "relations", "heads", "deps", "tags"):
        collector.count(f"{key} left out", int(bool(said.get(key))), where)
    if isinstance(entities, list):
        yield Answer(id, text, where, GOLD, [_mark(entity, where) for entity in entities], "gold")
    else:
        yield Answer(id, text, where)
    if isinstance(said.get("cats"), dict):
        yield Verdict(id, text, where, GOLD, _best(said["cats"]), role="gold")


def _mark(entity: object, where: str) -> Mark:
    if isinstance(entity, list) and len(entity) >= 3:
        start, end, label = entity[:3]
    elif isinstance(entity, dict):
        start, end, label = entity.get("start"), entity.get("end"), entity.get("label")
    else:
        raise FormatError("an entity must be [start, end, label]", path=where, got=repr(entity))
    return Mark.of(start, end, label, where)


def _paragraph(paragraph: object, where: str) -> Iterator[Said]:
    """Read a paragraph of spaCy 2: tokens with BILUO tags, or entities over its raw text."""
    if not isinstance(paragraph, dict):
        raise FormatError("a paragraph must be an object", path=where, got=repr(paragraph))
    sentences = [s for s in paragraph.get("sentences") or [] if isinstance(s, dict)]
    words = [t for s in sentences for t in s.get("tokens") or [] if isinstance(t, dict)]
    orths: list[Any] = [t.get("orth") for t in words]
    raw = paragraph.get("raw", paragraph.get("text"))
    if not all(isinstance(orth, str) and orth for orth in orths):
        raise FormatError("a token needs a string 'orth'", path=where, got=repr(orths[:3]))
    text, chars = (raw, align.locate(orths, raw)) if isinstance(raw, str) and raw else align.spelled(orths)
    if chars is None:
        text, chars = align.spelled(orths)
    tokens = [Mark(a, b, "", text[a:b], where) for a, b in chars]
    id = text_id(text)
    if isinstance(paragraph.get("entities"), list) and not words:
        yield Answer(id, text, where, GOLD, [_mark(e, where) for e in paragraph["entities"]], "gold")
    elif words:
        tags = [None if t.get("ner") in (None, "-", "") else str(t["ner"]) for t in words]
        unknown = [place for place, tag in zip(chars, tags) if tag is None]
        marks = [Mark(s.start, s.end, s.label, None, where) for s, _, _ in align.label_spans(tags, chars)]
        known = any(tag is not None for tag in tags)
        yield Answer(id, text, where, GOLD, marks if known else None, "gold", None, tokens, unknown=unknown)
    cats = paragraph.get("cats")
    if isinstance(cats, list):
        cats = {str(c.get("label")): c.get("value", 0) for c in cats if isinstance(c, dict)}
    if isinstance(cats, dict) and cats:
        yield Verdict(id, text, where, GOLD, _best(cats), role="gold")

"""WebAnno TSV 3 and UIMA CAS (XMI, JSON), as INCEpTION and WebAnno export them: a file per document and annotator.

A sample of `doc1.txt/ada.tsv` (tabs between the columns):

    #FORMAT=WebAnno TSV 3.3
    #T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|identifier|value


    #Text=😊 Ada Lovelace visited New York .
    1-1	0-2	😊	_	_
    1-2	3-6	Ada	*[1]	PER[1]
    1-3	7-15	Lovelace	*[1]	PER[1]
    1-4	16-23	visited	_	_
    1-5	24-27	New	*[2]	LOC[2]
    1-6	28-32	York	*[2]	LOC[2]
    1-7	33-34	.	_	_

Every sentence is a sequence, `DOCUMENT/NUMBER`. Offsets count UTF-16 units of the whole document. `_` is no annotation,
`*` one without a value (its label is `*`), `|` separates stacked ones, `[n]` joins tokens to a span. Rows like `1-2.1`
mark a part of a token. Relations, chains and slots are counted. The curator (a user CURATION_USER or `curator`, or a
folder `curation`) decides and does not vote: the gold "curation". A file without the layer is one in which nobody
marked anything, all O; a curator's is no decision. In a whole project (zip), a document that an annotator was not to
do, has not begun, or has in work without any span, is missing. Folders are `DOCUMENT/ANNOTATOR.tsv` (as INCEpTION does)
or `ANNOTATOR/DOCUMENT.tsv`; which it is shows by the texts, or say so with `layout`. A project may hold zips of XMI;
where a document stands in several formats, TSV is read. XMI and JSON need no type system: see `lasca.formats.uima_cas`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from lasca import align
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, typed
from lasca.estimator import check_choice
from lasca.formats.base import Collector, SourceFile, listed, parse_json, unwrapped
from lasca.formats.texts import Answer, Mark, Spans, TextPool
from lasca.formats.uima_cas import is_cas_json, is_xmi, parse_cas
from lasca.formats.webanno_tsv import Document, Layer, crossing, marks_of, parse

__all__ = ["NAME", "read", "sniff"]

NAME = "webanno"
SUFFIXES = (".tsv", ".xmi", ".json", ".xml")

LAYOUTS = ("auto", "document/annotator", "annotator/document")
CURATORS = ("curation_user", "curator", "curation", "curated")
NOT_PEOPLE = ("INITIAL_CAS",)
PLAIN = ("PosValue", "coarseValue", "posValue")
UNDONE = {
    "inprogress": "in work and still without any span, missing",
    "new": "not begun, missing",
    "ignore": "that were not to be annotated, missing",
}
"""States of a document in a project: what was not done is not all O."""
FEATURES = ("value", "PosValue", "label")


def sniff(files: list[SourceFile]) -> float:
    """Say how sure it is that these files are WebAnno's: they begin with #FORMAT=WebAnno TSV."""
    mine = [file for file in files if file.name.lower().endswith(SUFFIXES) or len(files) == 1]
    return 1.0 if any(_is_tsv(file) or is_xmi(file) or is_cas_json(file) for file in mine) else 0.0


def _is_tsv(file: SourceFile) -> bool:
    return file.head(64).lstrip(b"\xef\xbb\xbf").startswith(b"#FORMAT=WebAnno TSV")


def _mine(files: list[SourceFile], collector: Collector) -> list[SourceFile]:
    """Return the files to read, one for each document and annotator; what else there is, is counted."""
    if len(files) == 1:
        return list(files)
    found: dict[str, SourceFile] = {}
    for file in sorted(files, key=lambda file: (not file.name.lower().endswith(".tsv"), file.name)):
        name = file.name.lower()
        if name.endswith(".ser") or name.startswith(("source/", "log/")):
            collector.count("files that only INCEpTION uses (.ser, source, log)", 1, file.shown)
        elif name.startswith("annotation/") and name.endswith(".txt"):
            collector.count("annotators' files that are text alone", 1, file.shown)
            collector.note(
                "What annotators did is in the project as text alone, without labels: export it with another format "
                "(UIMA CAS XMI or WebAnno TSV) to read their votes."
            )
        elif not name.endswith(SUFFIXES) or not (
            _is_tsv(file) or is_xmi(file) or is_cas_json(file) or name.endswith(".tsv")
        ):
            collector.count("other files", 1, file.shown)
        elif (stem := str(PurePosixPath(file.name).with_suffix(""))) in found:
            collector.count("documents in a second format", 1, file.shown)
        else:
            found[stem] = file
    return sorted(found.values(), key=lambda file: file.name)


def read(
    files: list[SourceFile],
    *,
    unit: str = "auto",
    partial: str = "expand",
    overlap: str = "error",
    tokenizer: str | align.Tokenizer | None = None,
    tagging: str | None = None,
    layer: str | None = None,
    feature: str | None = None,
    layout: str = "auto",
    link: str = "id",
) -> CrowdCorpus:
    """Read one file per document and annotator.

    `layer` (full or last part of its name) and `feature` say what the labels are: by default the only layer of spans,
    or NamedEntity among several, and its "value". `tagging` is "plain" for parts of speech and "iob2" otherwise.
    `unit` matters only for marked parts of tokens, whose offsets are UTF-16 units unless it says otherwise.
    """
    check_choice("layout", layout, LAYOUTS)
    align.check_unit(unit)
    collector = Collector(files, NAME)
    parsed = [
        (file, parse_cas(file) if is_xmi(file) or is_cas_json(file) else parse(file))
        for file in unwrapped(_mine(files, collector))
    ]
    chosen = _choose_layer([doc for _, doc in parsed], layer, collector.source)
    at = _choose_feature(chosen, feature, collector.source)
    if tagging is None:
        tagging = (
            "plain" if chosen is not None and chosen.features[at : at + 1] in [(name,) for name in PLAIN] else "iob2"
        )
    called = chosen.features[at] if chosen is not None and chosen.features else ""
    spans: Spans = {"partial": partial, "overlap": overlap, "tokenizer": tokenizer, "tagging": tagging, "link": link}
    pool = TextPool(files, NAME, usual="codepoint", **spans)
    pool.collector = collector
    if chosen is None:
        _refuse_without_spans([doc for _, doc in parsed], collector)
    if chosen is not None:
        collector.note(f"labels are {chosen.name}, feature {(chosen.features or ('(none)',))[at]}")
    states = _states(files, collector)
    for file, document, place in _placed(parsed, layout):
        if place.name in NOT_PEOPLE:
            collector.count("initial documents", 1, file.shown)
            continue
        for kind, n in sorted(document.others.items()):
            collector.count(kind, n, file.shown)
        own = next((layer for layer in document.layers if chosen is not None and layer.name == chosen.name), None)
        if own is not None and chosen is not None:
            collector.count("spans over several sentences, split", crossing(document, own, called), file.shown)
        if chosen is not None and all(layer.name != chosen.name for layer in document.layers):
            if place.role == "gold":
                collector.count("curators' files without the layer, no decision", 1, file.shown)
                place = replace(place, role="")
            else:
                collector.count("files without the layer, nothing marked", 1, file.shown)
        answers = list(_answers(document, place, chosen, called, "utf16" if unit == "auto" else unit))
        if (state := states.get((place.document, place.name))) in UNDONE:
            begun = state == "inprogress" and any(answer.marks for answer in answers)
            kind = "in work, read as they are" if begun else UNDONE[state]
            collector.count(f"files {kind}", 1, file.shown)
            answers = answers if begun else [replace(answer, marks=None) for answer in answers]
        pool.add_file(file.shown, answers)
    return pool.corpus()


def _states(files: list[SourceFile], collector: Collector) -> dict[tuple[str, str], str]:
    """Return how far annotators are with documents, as the description of an exported project says."""
    found: dict[tuple[str, str], str] = {}
    for file in files:
        name = PurePosixPath(file.name).name
        if name.startswith("exportedproject") and name.endswith(".json"):
            whole = parse_json(file)
            for key in ("annotation_documents", "source_documents"):
                for entry in listed(whole, key, file.shown) if isinstance(whole, dict) else ():
                    if isinstance(entry, dict) and isinstance(state := entry.get("state"), str):
                        who = str(entry.get("user")) if key.startswith("annotation") else "curation"
                        state = state.lower().replace("_", "").removeprefix("curation")
                        found[str(entry.get("name")), who] = state
    return found


@dataclass(frozen=True)
class _Place:
    """Whose file it is, and of which document."""

    document: str
    name: str
    role: str


def _answers(document: Document, place: _Place, layer: Layer | None, feature: str, unit: str) -> Iterator[Answer]:
    found = next((known for known in document.layers if layer is not None and known.name == layer.name), None)
    for sentence in document.sentences:
        where = f"{document.shown}:{sentence.line}"
        marks: list[Mark] = [] if found is None else marks_of(sentence, found, feature, unit, document.shown)
        tokens = [Mark(start, end, "", None, where) for start, end in sentence.chars]
        id = f"{place.document}/{sentence.number}"
        if not place.role:
            yield Answer(id, sentence.text, where, tokens=tokens, metadata={"document": place.document})
            continue
        yield Answer(
            id, sentence.text, where, place.name, marks, place.role, None, tokens, {"document": place.document}
        )


def _refuse_without_spans(documents: list[Document], collector: Collector) -> None:
    """Refuse files in which no layer of spans is named: relations and chains are no labels of tokens."""
    others: dict[str, int] = {}
    for document in documents:
        for kind, n in document.others.items():
            others[kind] = others.get(kind, 0) + n
    shown = ", ".join(f"{kind}: {n}" for kind, n in sorted(others.items()))
    raise FormatError(
        "there is no layer of spans in these files",
        path=collector.source,
        got=shown or "no layer at all",
        hint="LASCA reads spans; relations and chains are counted only",
    )


def _choose_layer(documents: list[Document], name: str | None, source: str) -> Layer | None:
    """Return the layer that is named, the only one, or named entities; None if no file has any."""
    layers: dict[str, Layer] = {}
    for layer in (layer for document in documents for layer in document.layers):
        known = layers.setdefault(layer.name, layer)
        features = tuple(dict.fromkeys((*known.features, *layer.features)))  # those of any file
        layers[layer.name] = replace(known, features=features)
    if name is not None:
        layers = {full: layer for full, layer in layers.items() if name in (full, full.rsplit(".", 1)[-1])}
    elif len(layers) > 1:
        named = {full: layer for full, layer in layers.items() if full.endswith("NamedEntity")}
        layers = named or layers
    if len(layers) > 1 or (name is not None and not layers):
        names = sorted({layer.name for document in documents for layer in document.layers})
        what = "it is not clear which layer to read" if name is None else f"there is no layer {name!r}"
        raise FormatError(
            f"{what}: there are {', '.join(full.rsplit('.', 1)[-1] for full in names) or 'none'}",
            path=source,
            hint="Name one of them: layer=… (on the command line: -r layer=…)",
        )
    return next(iter(layers.values()), None)


def _choose_feature(layer: Layer | None, name: str | None, source: str) -> int:
    """Return the column of the feature inside the layer."""
    if layer is None or not layer.features:
        return 0
    for candidate in FEATURES if name is None else (name,):
        if candidate in layer.features:
            return layer.features.index(candidate)
    plain = [feature for feature in layer.features if not feature.startswith("ROLE_")]
    if name is None and len(layer.features) == 1:
        return 0
    what = "it is not clear which feature holds the labels" if name is None else f"there is no feature {name!r}"
    raise FormatError(
        f"{what}: {layer.name.rsplit('.', 1)[-1]} has {', '.join(plain) or 'slots only'}",
        path=source,
        hint="Name one of them: feature=… (on the command line: " + typed(f"feature={(plain or ['…'])[0]}") + ")",
    )


def _placed(parsed: list[tuple[SourceFile, Document]], layout: str) -> Iterator[tuple[SourceFile, Document, _Place]]:
    """Yield each file with its document and annotator."""
    keys = {file.name: _key(file) for file, _ in parsed}
    if layout == "auto":
        layout = _layout([(keys[file.name], document) for file, document in parsed])
    for file, document in parsed:
        folder, stem = keys[file.name]
        doc, who = (folder, stem) if layout == "document/annotator" else (stem, folder)
        curated = who.lower() in CURATORS or PurePosixPath(file.name).parts[0] == "curation"
        name, role = ("curation", "gold") if curated else (who or "annotator", "annotator")
        yield file, document, _Place(doc or "document", name, role)


def _key(file: SourceFile) -> tuple[str, str]:
    """Return folder and file name (without suffix), leaving out INCEpTION's folders around them."""
    *folders, stem = PurePosixPath(file.name).with_suffix("").parts
    folders = [part for part in folders if not part.lower().endswith(".zip")]
    kept = [part for k, part in enumerate(folders) if k > 0 or part not in ("annotation", "curation")]
    return "/".join(kept), stem


def _layout(files: list[tuple[tuple[str, str], Document]]) -> str:
    """Find out what folders are: the files in one folder have the same text if it is a document."""
    if any(stem.lower() in CURATORS or stem in NOT_PEOPLE for (_, stem), _ in files):
        return "document/annotator"
    folders: dict[str, set[tuple[str, ...]]] = {}
    sizes: dict[str, int] = {}
    for (folder, _), document in files:
        folders.setdefault(folder, set()).add(document.text)
        sizes[folder] = sizes.get(folder, 0) + 1
    several = [folder for folder in folders if sizes[folder] > 1]
    if several:
        same = all(len(folders[folder]) == 1 for folder in several)
        return "document/annotator" if same else "annotator/document"
    texts: dict[str, set[tuple[str, ...]]] = {}
    stems = [stem for (_, stem), _ in files]
    for (_, stem), document in files:
        texts.setdefault(stem, set()).add(document.text)
    shared = any(stems.count(stem) > 1 and len(texts[stem]) == 1 for stem in texts)
    alone = len(files) == 1 and not files[0][0][0]
    return "annotator/document" if shared or alone else "document/annotator"

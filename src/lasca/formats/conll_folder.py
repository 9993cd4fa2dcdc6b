"""CoNLL, a folder per annotator: `ANNOTATOR/DOC.txt`, all with the same documents; an absent file is missing.

```
gold/d1.txt        ann/d1.txt         ben/d1.txt
  Ada B-PER          Ada B-PER          Ada B-PER
  visited O          visited O          visit O
  Iraqi O            Iraq B-LOC         ed O
                     i O                Iraqi O
```

and the layout of the CoNLL-2003 labels from Mechanical Turk (Rodrigues et al. 2014), in a folder or a zip:
`val/ground_truth/DOC.txt`, `val/mturk_train_data/ANNOTATOR/DOC.txt`, the same under `test/`. A folder of files without
folders in it is read as one file per annotator. Folders (or files) called gold, ground_truth, curation and the like
are golds.

Each line holds a token and, in its last cell, a label; blank lines end sequences. The sequences and tokens of a
document are those of its gold file or, without one, those most annotators have. Other tokenisations are aligned by
characters (`lasca.align`), `partial` says what becomes of a token of which only a part was marked. Labels typed into
the text (`LONDON/LOC`) are taken off the tokens; with `typed_labels=True` they count where the annotator gave O.
Sequences are called "DOC/3" (or "val/DOC/3"), with the metadata "document" and "folder".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from lasca.align import align_tokens, same_characters, transfer_labels
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError
from lasca.estimator import check_choice
from lasca.formats.base import Collector, SourceFile, natural_key
from lasca.formats.conll_lines import split_spaces, text_lines
from lasca.schemes import split_label

__all__ = ["NAME", "read", "sniff"]

NAME = "conll-folder"
GOLDS = ("gold", "golds", "ground_truth", "groundtruth", "truth", "curation", "curated", "curator", "expert")
CROWDS = ("mturk_train_data", "annotators", "annotations", "crowd", "workers")
PARTS_OF_DATA = {"train": 0, "val": 1, "valid": 1, "dev": 1, "testa": 1, "test": 2, "testb": 3}
OUTSIDE = "O"


@dataclass
class _Text:
    """One annotator's (or gold's) file of one document."""

    file: SourceFile
    sequences: list[list[tuple[str, str | None]]]  # token, label

    @property
    def tokens(self) -> list[str]:
        return [token for sequence in self.sequences for token, _ in sequence]

    @property
    def labels(self) -> list[str | None]:
        return [label for sequence in self.sequences for _, label in sequence]


@dataclass
class _Document:
    folder: str
    name: str
    texts: dict[tuple[str, str], _Text] = field(default_factory=dict)  # (role, name) -> text


def read(
    files: Sequence[SourceFile],
    *,
    layout: str = "auto",
    partial: str = "shrink",
    typed_labels: bool = False,
    missing: str = "?",
) -> CrowdCorpus:
    """Read a folder (or zip) with a folder or file per annotator. `layout` is "auto", "folders" or "files"."""
    check_choice("partial", partial, ("shrink", "expand"))
    if not isinstance(typed_labels, bool):
        raise ParameterError("typed_labels", typed_labels, "True or False")
    collector = Collector(files, NAME)
    places = _places(files, check_choice("layout", layout, ("auto", "folders", "files")))
    documents: dict[tuple[str, str], _Document] = {}
    for file, (folder, role, name, document) in zip(files, places):
        entry = documents.setdefault((folder, document), _Document(folder, document))
        if (role, name) in entry.texts:
            raise file.error(f"{role} {name!r} has a second file for document {document!r}")
        entry.texts[role, name] = _parse(file, missing)
    typed = _typed_suffix(documents.values())
    reader = _Reader(collector, typed, partial, typed_labels)
    for entry in sorted(documents.values(), key=_document_order):
        reader.document(entry)
    return collector.corpus(order="given")


def _document_order(document: _Document) -> tuple[int, object, str]:
    part = PurePosixPath(document.folder).name
    return PARTS_OF_DATA.get(part, 9), natural_key(document.folder), document.name


# --- where a file belongs -----------------------------------------------------------------------------------------


def _places(files: Sequence[SourceFile], layout: str) -> list[tuple[str, str, str, str]]:
    """Return folder, role, annotator and document of every file."""
    parts = [PurePosixPath(file.name).parts for file in files]
    while parts and all(len(p) > 1 and p[0] == parts[0][0] and p[0] not in (*GOLDS, *CROWDS) for p in parts):
        parts = [p[1:] for p in parts]
        if layout == "auto" and all(len(p) == 1 for p in parts):  # one folder of files
            break
    if layout == "auto":
        layout = "files" if all(len(p) == 1 for p in parts) else "folders"
    return [_place(file, p, layout) for file, p in zip(files, parts)]


def _place(file: SourceFile, parts: tuple[str, ...], layout: str) -> tuple[str, str, str, str]:
    stem = PurePosixPath(parts[-1]).stem or parts[-1]
    if layout == "files":
        role, name = _role(stem)
        return "", role, name, "/".join(parts[:-1])
    for i, part in enumerate(parts[:-1]):
        if part.lower() in GOLDS:
            return "/".join(parts[:i]), *_role(part), "/".join((*parts[i + 1 : -1], stem))
        if part.lower() in CROWDS and i + 1 < len(parts) - 1:
            return "/".join(parts[:i]), "annotator", parts[i + 1], "/".join((*parts[i + 2 : -1], stem))
    if len(parts) < 2:
        raise file.error("a file stands beside the annotators' folders", hint="Expected ANNOTATOR/DOCUMENT.txt")
    return "", *_role(parts[0]), "/".join((*parts[1:-1], stem))


def _role(name: str) -> tuple[str, str]:
    if name.lower() in GOLDS:
        return "gold", "gold" if name.lower() in ("golds", "ground_truth", "groundtruth", "truth") else name
    return ("gold", name) if re.fullmatch(r"gold[\W_]?\w*", name.lower()) else ("annotator", name)


def _parse(file: SourceFile, missing: str) -> _Text:
    sequences: list[list[tuple[str, str | None]]] = [[]]
    width = 0
    for number, line in enumerate(text_lines(file.text()), start=1):
        if not line or not line.strip(" \t"):
            if sequences[-1]:
                sequences.append([])
            continue
        cells = line.split("\t") if "\t" in line else split_spaces(line)
        if cells[0] == "-DOCSTART-":
            sequences.append([])
            continue
        if len(cells) < 2:
            raise file.error("this line has no label", number, got=line, hint="Every line needs a token and a label")
        width = width or len(cells)
        if len(cells) != width:
            raise file.error(f"this line has {len(cells)} cells where the lines before have {width}", number, got=line)
        label = cells[-1].strip(" ")
        sequences[-1].append((cells[0], None if label in (missing, "") else label))
    return _Text(file, [sequence for sequence in sequences if sequence])


def _typed_suffix(documents: Iterable[_Document]) -> re.Pattern[str] | None:
    """Return what finds a label typed behind a token, made of the types that occur as labels."""
    types: set[str] = set()
    for document in documents:
        for text in document.texts.values():
            for label in set(text.labels):
                try:
                    types.add(split_label(label or OUTSIDE)[1])
                except ParameterError:
                    return None
    types.discard("")
    if not types:
        return None
    return re.compile(rf"(?<=.)/((?:[BIES]-)?(?:{'|'.join(map(re.escape, sorted(types)))}))$", re.DOTALL)


# --- one document -------------------------------------------------------------------------------------------------


class _Reader:
    """Brings all texts of one document onto one tokenisation."""

    def __init__(self, collector: Collector, typed: re.Pattern[str] | None, partial: str, typed_labels: bool) -> None:
        self.collector, self.typed, self.partial, self.typed_labels = collector, typed, partial, typed_labels

    def document(self, document: _Document) -> None:
        """Tell the collector the sequences of a document and what everybody said of them."""
        self.collector.count("documents")
        reference = _reference(document)
        bare = [[self._bare(token) for token, _ in sequence] for sequence in reference.sequences]
        target = [token for tokens in bare for token in tokens]
        changed = sum(a != b for a, b in zip(target, reference.tokens))
        self.collector.count("typed labels taken off gold tokens", changed, reference.file.shown)
        ids = ["/".join(filter(None, (document.folder, document.name, str(i)))) for i in range(len(bare))]
        metadata = {"document": document.name, "folder": document.folder}
        for id, tokens in zip(ids, bare):
            self.collector.sequence(id, tokens, metadata=metadata, where=reference.file.shown)
        for (role, name), text in sorted(document.texts.items()):
            labels = self._labels(role, text, reference, target)
            start = 0
            for id, tokens in zip(ids, bare):
                own = labels[start : start + len(tokens)]
                if any(label is not None for label in own):
                    self.collector.annotate(id, name, own, role=role, where=text.file.shown)
                start += len(tokens)

    def _bare(self, token: str) -> str:
        return self.typed.sub("", token) if self.typed is not None and "/" in token else token

    def _labels(self, role: str, text: _Text, reference: _Text, target: list[str]) -> list[str | None]:
        """Return the labels of one text for the tokens of the document."""
        if text is reference:
            return text.labels
        count, shown = self.collector.count, text.file.shown
        count("annotator files" if role != "gold" else "gold files")
        tokens = text.tokens
        labels = self._with_typed(text, tokens)
        if tokens == reference.tokens:
            count("files aligned exactly")
            return labels
        count("files tokenised differently", 1, shown)
        bare = [self._bare(token) for token in tokens]
        exact = same_characters(bare, target)
        count("files aligned exactly" if exact else "files aligned by nearest characters", 1, None if exact else shown)
        covers = align_tokens(bare, target)
        found = {k for cover in covers for k in cover or ()}
        if 2 * len(found) < len([token for token in bare if token.strip()]):
            raise text.file.error(
                "this is another text than that of the same document elsewhere",
                1,
                got=" ".join(bare[:8]),
                hint=f"Compare it with {reference.file.shown}",
            )
        result = transfer_labels(labels, covers, partial=self.partial, count=lambda kind: count(kind, 1, shown))
        nobody = [i for i, cover in enumerate(covers) if cover is None]
        if nobody:
            count("tokens without label", len(nobody), f"{shown}: {target[nobody[0]]}")
        return result

    def _with_typed(self, text: _Text, tokens: list[str]) -> list[str | None]:
        """Count the labels typed into the text and, if wanted, give them to tokens labelled O."""
        labels = text.labels
        if self.typed is None:
            return labels
        last = ""
        for i, token in enumerate(tokens):
            match = self.typed.search(token) if "/" in token else None
            type_ = "" if match is None else match[1]
            if match is not None:
                self.collector.count("typed labels", 1, f"{text.file.shown}: {token}")
                if labels[i] == OUTSIDE:
                    self.collector.count("typed labels on O", 1, f"{text.file.shown}: {token}")
                    if self.typed_labels:
                        labels[i] = type_ if type_[:2] in ("B-", "I-") else f"{'I' if last == type_ else 'B'}-{type_}"
            last = type_
        return labels


def _reference(document: _Document) -> _Text:
    """Return the text whose tokens are the document's: the gold, else what most have, else the finest, by name."""
    golds = [text for (role, _), text in sorted(document.texts.items()) if role == "gold"]
    if golds:
        return golds[0]
    texts = [text for _, text in sorted(document.texts.items())]
    keys = [tuple(tuple(token for token, _ in sequence) for sequence in text.sequences) for text in texts]
    votes = Counter(keys)
    best = max(range(len(texts)), key=lambda i: (votes[keys[i]], sum(map(len, keys[i])), keys[i], -i))
    return texts[best]


def sniff(files: Sequence[SourceFile]) -> float:
    """Say how much these files look like one folder (or file) per annotator: 0 to 1."""
    if len(files) < 2 or any(PurePosixPath(f.name).suffix.lower() in _OTHERS for f in files):
        return 0.0
    try:
        places = _places(files, "auto")
        documents: dict[tuple[str, str], list[SourceFile]] = {}
        for file, (folder, _, _, document) in zip(files, places):
            documents.setdefault((folder, document), []).append(file)
        shared = next((group for group in documents.values() if len(group) > 1), None)
        if shared is None:
            return 0.0
        first, second = (_parse(file.beginning(), "?").tokens for file in shared[:2])
    except FormatError:
        return 0.0
    known = any(part.lower() in (*GOLDS, *CROWDS) for f in files for part in PurePosixPath(f.name).parts)
    return 0.9 if known or same_characters(first, second) else 0.1


_OTHERS = (".ann", ".json", ".jsonl", ".csv", ".parquet", ".arrow", ".xmi", ".xml")

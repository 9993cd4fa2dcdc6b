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

Each line holds a token and, in its last cell (or `column`), a label; where the first cell numbers the tokens, as in
CoNLL-U, columns are chosen as in the format conll. Comments `# key = value` are passed over; blank lines end sequences.
The sequences and tokens of a document are those of its gold file or, without one, those most annotators have and the
sequences that only others have. A file may hold a part of the document: the rest is missing. Other tokenisations are
aligned by characters (`lasca.align`), `partial` says what becomes of a token of which only a part was marked; a file
that shares less than half of its characters with the document is another text, which is an error. Labels typed into the
text (`LONDON/LOC`) are taken off the tokens; with `typed_labels=True` they count where the annotator gave O.
Sequences are called "DOC/3" (or "val/DOC/3"), with the metadata "document" and "folder".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError
from lasca.estimator import check_choice
from lasca.formats.base import Collector, SourceFile, natural_key
from lasca.formats.conll_document import Document, DocumentReader, Text, typed_suffix
from lasca.formats.conll_layers import layout_of, numbered
from lasca.formats.conll_lines import Block, Table, split_spaces, text_lines

__all__ = ["NAME", "read", "sniff"]

NAME = "conll-folder"
GOLDS = ("gold", "golds", "ground_truth", "groundtruth", "truth", "curation", "curated", "curator", "expert")
CROWDS = ("mturk_train_data", "annotators", "annotations", "crowd", "workers")
PARTS_OF_DATA = {"train": 0, "val": 1, "valid": 1, "dev": 1, "testa": 1, "test": 2, "testb": 3}
SHINGLE = 8  # characters: what two texts have in common is measured in pieces of this length


def read(
    files: Sequence[SourceFile],
    *,
    layout: str = "auto",
    partial: str = "shrink",
    typed_labels: bool = False,
    missing: str = "?",
    column: int | str | None = None,
) -> CrowdCorpus:
    """Read a folder (or zip) with a folder or file per annotator. `layout` is "auto", "folders" or "files".

    `column` (a number from 1, or a name of CoNLL-U's) is the column of the labels; the last one if it is not given.
    """
    check_choice("partial", partial, ("shrink", "expand"))
    if not isinstance(typed_labels, bool):
        raise ParameterError("typed_labels", typed_labels, "True or False")
    collector = Collector(files, NAME)
    places = _places(files, check_choice("layout", layout, ("auto", "folders", "files")))
    documents: dict[tuple[str, str], Document] = {}
    for file, (folder, role, name, document) in zip(files, places):
        entry = documents.setdefault((folder, document), Document(folder, document))
        if (role, name) in entry.texts:
            raise file.error(f"{role} {name!r} has a second file for document {document!r}")
        entry.texts[role, name] = _parse(file, missing, column)
    typed = typed_suffix(documents.values())
    reader = DocumentReader(collector, typed, partial, typed_labels)
    for entry in sorted(documents.values(), key=_document_order):
        reader.document(entry)
    return collector.corpus(order="given")


def _document_order(document: Document) -> tuple[int, object, str]:
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


def _parse(file: SourceFile, missing: str, column: int | str | None = None) -> Text:
    sequences: list[list[tuple[int, list[str]]]] = [[]]
    width = 0
    for number, line in enumerate(text_lines(file.text()), start=1):
        if not line or not line.strip(" \t"):
            if sequences[-1]:
                sequences.append([])
            continue
        cells = line.split("\t") if "\t" in line else split_spaces(line)
        if line.startswith("#") and re.match(r"# ?[\w.:-]+ = ", line):
            continue
        if cells[0] == "-DOCSTART-":
            sequences.append([])
            continue
        if len(cells) < 2:
            raise file.error("this line has no label", number, got=line, hint="Every line needs a token and a label")
        width = width or len(cells)
        if len(cells) != width:
            raise file.error(f"this line has {len(cells)} cells where the lines before have {width}", number, got=line)
        sequences[-1].append((number, cells))
    token, at = 0, width - 1
    nothing: tuple[str, ...] = (missing, "")
    table = Table([Block(rows) for rows in sequences if rows], None, width, 0, 0)
    if column is not None or numbered(table):
        layout = layout_of(table, file, column)
        token, at = layout.token, layout.labels[0]
        nothing += ("_",)
    return Text(
        file,
        [
            [(cells[token], None if (label := cells[at].strip(" ")) in nothing else label) for _, cells in block.rows]
            for block in table.blocks
        ],
    )


def sniff(files: Sequence[SourceFile]) -> float:
    """Say how much these files look like one folder (or file) per annotator: 0 to 1."""
    if len(files) < 2 or any(PurePosixPath(f.name).suffix.lower() in _OTHERS for f in files):
        return 0.0
    try:
        places = _places(files, "auto")
        documents: dict[tuple[str, str], list[SourceFile]] = {}
        for file, (folder, _, _, document) in zip(files, places):
            documents.setdefault((folder, document), []).append(file)
        shared = [group for group in documents.values() if len(group) > 1]
        if any(file.values for group in shared for file in group[:4]):
            return 0.0  # JSON, whatever the files are called
        if not shared or all(name.lower() in PARTS_OF_DATA for _, _, name, _ in places):
            return 0.0
        texts = [[_parse(file.beginning(), "?").tokens for file in group[:4]] for group in shared[:6]]
    except FormatError:
        return 0.0
    if any(role == "gold" or folder for folder, role, _, _ in places):
        return 0.9
    one_folder = len(documents) == 1 and not next(iter(documents))[1]
    least = 0.5 if one_folder else 0.2
    alike = [any(_common(a, b) >= least for b in group if b is not a) for group in texts for a in group]
    return 0.9 if 2 * sum(alike) >= len(alike) else 0.1


def _common(first: list[str], second: list[str]) -> float:
    """Return how much of the shorter of two texts also stands in the other one, wherever it stands."""
    a, b = ("".join("".join(tokens).split()) for tokens in sorted((first, second), key=lambda t: sum(map(len, t))))
    if len(a) < SHINGLE:
        return float(bool(a) and a in b)
    there = {b[i : i + SHINGLE] for i in range(len(b) - SHINGLE + 1)}
    pieces = {a[i : i + SHINGLE] for i in range(len(a) - SHINGLE + 1)}
    return len(pieces & there) / len(pieces)


_OTHERS = (".ann", ".json", ".jsonl", ".csv", ".parquet", ".arrow", ".xmi", ".xml")

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

Each line holds a token and a label, below a header or none; of several columns one is chosen (or asked about) for all
files together, as in the format conll, and so `_` is read where the first cell numbers the tokens. A file with a column
for each annotator (`answers.txt` beside `ground_truth.txt`) is all of them: "answers 1", "answers 2", …. Comments
`# key = value` are passed over; blank lines end sequences.
The sequences and tokens of a document are those of its gold file or, without one, those most annotators have and the
sequences that only others have. A file may hold a part of the document: the rest is missing. Other tokenisations are
aligned by characters (`lasca.align`), `partial` says what becomes of a token of which only a part was marked; a file
that shares less than half of its characters with the document is another text, which is an error. Labels typed into the
text (`LONDON/LOC`) are taken off the tokens; with `typed_labels=True` they count where the annotator gave O.
Sequences are called "DOC/3" (or "val/DOC/3"), with the metadata "document" and "folder". So are EBM-NLP's files
read: the words of `DOC.tokens`, the labels of `DOC.ANNOTATOR.ann`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import PurePosixPath

from lasca.align import Alignment, align_sequences, transfer_labels
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError, excerpt
from lasca.estimator import check_choice
from lasca.formats.base import Collector, SourceFile, natural_key
from lasca.formats.conll_lines import (
    Block,
    Layout,
    Table,
    even_out,
    holds_texts,
    is_header,
    labels_elsewhere,
    layout_of,
    numbered,
    read_table,
    refuse_texts,
    says_nothing,
    split_spaces,
    text_lines,
    token_in,
    with_feature,
)
from lasca.formats.names import speaker
from lasca.formats.sources import DATED, refuse_copies
from lasca.schemes import split_label

__all__ = ["NAME", "Document", "Text", "read", "sniff"]

OUTSIDE = "O"
SAME_TEXT = 0.5  # share of the shorter text's characters
NAME = "conll-folder"
CROWDS = ("mturk_train_data", "annotators", "annotations", "crowd", "workers")
PARTS_OF_DATA = {"train": 0, "val": 1, "valid": 1, "dev": 1, "testa": 1, "test": 2, "testb": 3}
SHINGLE = 8  # characters: what two texts have in common is measured in pieces of this length


@dataclass
class Text:
    """One annotator's (or gold's) file of one document."""

    file: SourceFile
    sequences: list[list[tuple[str, str | None]]]  # token, label
    underscored: bool = False  # whether `_` is no label of its own

    @property
    def words(self) -> list[list[str]]:
        """The tokens, by sequence."""
        return [[token for token, _ in sequence] for sequence in self.sequences]

    @property
    def tokens(self) -> list[str]:
        """The tokens of all sequences."""
        return [token for sequence in self.sequences for token, _ in sequence]

    @property
    def labels(self) -> list[str | None]:
        """The labels of all sequences."""
        return [label for sequence in self.sequences for _, label in sequence]


@dataclass
class Document:
    """One document: where it lies, and what everybody made of it."""

    folder: str
    name: str
    texts: dict[tuple[str, str], Text] = field(default_factory=dict)  # (role, name) -> text


def typed_suffix(documents: Iterable[Document]) -> re.Pattern[str] | None:
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


class DocumentReader:
    """Brings all texts of one document onto one tokenisation, and carries their labels over.

    The tokens of a document are those of its gold or, without one, of what most annotators have, with the sequences
    that only others have put where they stand there. A file that is another text is an error: every file must share at
    least half of the characters of the shorter of the two. (All 1,964 files of the Mechanical Turk corpus share all of
    them; of 400 random pairs of different documents of it, 399 share less than 0.08 and one 0.87.)
    """

    def __init__(self, collector: Collector, typed: re.Pattern[str] | None, partial: str, typed_labels: bool) -> None:
        self.collector, self.typed, self.partial, self.typed_labels = collector, typed, partial, typed_labels

    def document(self, document: Document) -> None:
        """Tell the collector the sequences of a document and what everybody said of them."""
        self.collector.count("documents")
        reference = _reference(document)
        is_gold = any(text is reference for (role, _), text in document.texts.items() if role == "gold")
        sequences = reference.words if is_gold else self._merged(document, reference)
        bare = self._bare(sequences)
        if is_gold:
            changed = sum(a != b for x, y in zip(bare, sequences) for a, b in zip(x, y))
            self.collector.count("typed labels taken off gold tokens", changed, reference.file.shown)
        ids = ["/".join(filter(None, (document.folder, document.name, str(i)))) for i in range(len(bare))]
        metadata = {"document": document.name, "folder": document.folder}
        for id, tokens in zip(ids, bare):
            self.collector.sequence(id, tokens, metadata=metadata, where=reference.file.shown)
        for (role, name), text in sorted(document.texts.items()):
            own_gold = is_gold and text is reference
            labels = text.labels if own_gold else self._labels(role, text, sequences, bare, reference)
            start = 0
            for id, tokens in zip(ids, bare):
                own = labels[start : start + len(tokens)]
                if any(label is not None for label in own):
                    self.collector.annotate(id, name, own, role=role, where=text.file.shown)
                start += len(tokens)

    def _bare(self, sequences: list[list[str]]) -> list[list[str]]:
        """Return the tokens without the labels typed behind them."""
        typed = self.typed
        if typed is None:
            return sequences
        return [[typed.sub("", token) if "/" in token else token for token in tokens] for tokens in sequences]

    def _merged(self, document: Document, reference: Text) -> list[list[str]]:
        """Return the sequences of a document without gold: those of the reference, and what only others have."""
        merged, have = list(reference.words), set(self._keys(reference))
        rest = [text for _, text in sorted(document.texts.items()) if self._keys(text) != self._keys(reference)]
        while rest:  # next, what shares most with what is there
            text = max(rest, key=lambda text: sum(len(key) for key in self._keys(text) if key in have))
            rest.remove(text)
            found = self._alignment(text, self._bare(merged), reference)
            for i in reversed(range(len(text.words))):
                if not found.placed[i]:
                    merged.insert(found.behind[i] + 1, text.words[i])
                    self.collector.count(
                        "sequences that only some files have", 1, f"{text.file.shown}: {_shown(text, i)}"
                    )
            have.update(self._keys(text))
        return merged if len(merged) == len(reference.words) else self._used(document, merged, reference)

    def _used(self, document: Document, merged: list[list[str]], reference: Text) -> list[list[str]]:
        """Leave out the sequences that no text has any more: of repeated ones, some may have been added twice."""
        covered = [False] * sum(map(len, merged))
        for text in document.texts.values():
            found = self._alignment(text, self._bare(merged), reference)
            covered = [known or cover is not None for known, cover in zip(covered, found.covers)]
        ends = list(accumulate(map(len, merged)))
        return [tokens for tokens, end in zip(merged, ends) if any(covered[end - len(tokens) : end])]

    def _keys(self, text: Text) -> list[str]:
        return ["".join("".join(tokens).split()) for tokens in self._bare(text.words)]

    def _alignment(self, text: Text, target: list[list[str]], reference: Text) -> Alignment:
        """Lay a text upon the document, or say that it is another one."""
        bare = self._bare(text.words)
        found = align_sequences(bare, target)
        if found.share < SAME_TEXT and any(self._keys(text)):
            raise text.file.error(
                "this is another text than that of the same document elsewhere",
                1,
                got=" ".join(token for tokens in bare for token in tokens)[:80],
                hint=f"Compare it with {reference.file.shown}: they share {100 * found.share:.0f} % of the text",
            )
        return found

    def _labels(
        self, role: str, text: Text, sequences: list[list[str]], bare: list[list[str]], reference: Text
    ) -> list[str | None]:
        """Return the labels of one text for the tokens of the document."""
        count, shown = self.collector.count, text.file.shown
        count("annotator files" if role != "gold" else "gold files")
        labels = self._with_typed(text)
        if text.tokens == [token for tokens in sequences for token in tokens]:
            count("files aligned exactly")
            return labels
        found = self._alignment(text, bare, reference)
        if found.part and not found.same:
            count("files with a part of the document", 1, shown)
        else:
            count("files tokenised differently", 1, shown)
        kind = "files aligned exactly" if found.part else "files aligned by nearest characters"
        count(kind, 1, None if found.part else shown)
        for i, placed in enumerate(found.placed):
            if not placed:
                count("sequences not in the document", 1, f"{shown}: {_shown(text, i)}")
        result = transfer_labels(labels, found.covers, partial=self.partial, count=lambda kind: count(kind, 1, shown))
        target = [token for tokens in bare for token in tokens]
        nobody = [i for i, cover in enumerate(found.covers) if cover is None]
        if nobody:
            count("tokens without label", len(nobody), f"{shown}: {target[nobody[0]]}")
        return result

    def _with_typed(self, text: Text) -> list[str | None]:
        """Count the labels typed into the text and, if wanted, give them to tokens labelled O."""
        labels = text.labels
        if self.typed is None:
            return labels
        last = ""
        for i, token in enumerate(text.tokens):
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


def _shown(text: Text, i: int) -> str:
    return excerpt(" ".join(text.words[i]), 40)


def _reference(document: Document) -> Text:
    """Return the text whose tokens are the document's: the gold, else what most have, else the finest, by name."""
    golds = [text for (role, _), text in sorted(document.texts.items()) if role == "gold"]
    if golds:
        return golds[0]
    texts = [text for _, text in sorted(document.texts.items())]
    keys = [tuple(map(tuple, text.words)) for text in texts]
    votes = Counter(keys)
    best = max(range(len(texts)), key=lambda i: (votes[keys[i]], sum(map(len, keys[i])), keys[i], -i))
    return texts[best]


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

    `column` (a number from 1, or a name of CoNLL-U's) is the column of the labels, where there are several.
    """
    check_choice("partial", partial, ("shrink", "expand"))
    if not isinstance(typed_labels, bool):
        raise ParameterError("typed_labels", typed_labels, "True or False")
    collector = Collector(files, NAME)
    initial = [file for file in files if PurePosixPath(file.name).stem == "INITIAL_CAS"]  # INCEpTION's, of nobody
    collector.count("initial documents", len(initial), initial[0].shown if initial else None)
    files = [file for file in files if file not in initial]
    places = _places(files, check_choice("layout", layout, ("auto", "folders", "files")))
    refuse_copies(files, [name for _, _, name, _ in places])
    documents: dict[tuple[str, str], Document] = {}
    nothing, has_key = (missing, ""), False
    beside: list[Document] = []
    crowds: set[str] = set()
    tables = [with_feature(_rows(file), file, column) for file in files]
    layouts = _layouts(files, [table for table, _, _ in tables], collector) if column is None else {}
    for file, (folder, role, name, document), (table, chosen, found) in zip(files, places, tables):
        entry = documents.setdefault((folder, document), Document(folder, document))
        has_key |= found
        common = layouts.get(_shape(table))
        several = common is not None and common.annotators and role != "gold"
        crowd = [_text(file, table, common.token, at, nothing) for at in common.labels] if common and several else []
        texts = {("annotator", f"{name} {k}"): text for k, text in enumerate(crowd, start=1)}
        if crowd:
            crowds.add(name)
            if len(crowds) > 1:
                raise file.error(
                    f"the files of {' and '.join(sorted(crowds))} have several columns of the same labels each",
                    table.blocks[0].line,
                    got=" ".join(table.blocks[0].rows[0][1]),
                    hint="Name the column that holds what they said: column=2 (on the command line: -r column=2)",
                )
            beside.append(entry)
            collector.note(f"{file.shown} has a column for each of {len(crowd)} annotators, without their names.")
        else:
            texts = {(role, name): _parse(file, table, nothing, chosen, common)}
        if entry.texts.keys() & texts:
            what = f"{role} {name!r} has a second file for document {document!r}"
            raise file.error(what, hint="Each annotator needs a folder, or a file, of a name of its own")
        entry.texts |= texts
    for entry in beside:  # what most of them say; elsewhere these may be the initials of a person
        if ("annotator", "mv") in entry.texts:
            entry.texts["gold", "mv"] = entry.texts.pop(("annotator", "mv"))
    if not has_key:
        raise ParameterError("column", column, f"a key that stands in column {chosen} of {collector.source}")
    _fill_nothing([text for entry in documents.values() for text in entry.texts.values()], collector)
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
    while parts and all(len(p) > 1 and p[0] == parts[0][0] and not _is_crowd_or_gold(p[0]) for p in parts):
        parts = [p[1:] for p in parts]
    if layout == "auto":
        layout = "files" if all(len(p) == 1 or (len(p) == 2 and DATED.fullmatch(p[0])) for p in parts) else "folders"
    return [_place(file, p, layout) for file, p in zip(files, parts)]


def _place(file: SourceFile, parts: tuple[str, ...], layout: str) -> tuple[str, str, str, str]:
    stem = PurePosixPath(parts[-1]).stem
    if layout == "files":
        role, name = _role(stem)
        return "", role, name, "/".join(parts[:-1])
    for i, part in enumerate(parts[:-1]):
        if speaker(part) == "gold":
            return "/".join(parts[:i]), *_role(part), "/".join((*parts[i + 1 : -1], stem))
        if part.lower() in CROWDS and i + 1 < len(parts) - 1:
            return "/".join(parts[:i]), "annotator", parts[i + 1], "/".join((*parts[i + 2 : -1], stem))
    if len(parts) < 2:
        raise file.error("a file stands beside the annotators' folders", hint="Expected ANNOTATOR/DOCUMENT.txt")
    return "", *_role(parts[0]), "/".join((*parts[1:-1], stem))


def _is_crowd_or_gold(folder: str) -> bool:
    return folder in CROWDS or speaker(folder) == "gold"


def _role(name: str) -> tuple[str, str]:
    return speaker(name), "gold" if name.lower() in ("golds", "ground_truth", "groundtruth", "truth") else name


def _shape(table: Table) -> tuple[int, bool, tuple[str, ...]]:
    """Return by what files have the same columns: their number, whether the first one counts, and their names."""
    return table.n_columns, numbered(table), tuple(table.header or ())


def _layouts(
    files: Sequence[SourceFile], tables: Sequence[Table], collector: Collector
) -> dict[tuple[int, bool, tuple[str, ...]], Layout]:
    """Return what the columns of all files of a shape are: one of them alone may hold nothing but O."""
    found: dict[tuple[int, bool, tuple[str, ...]], Layout] = {}
    for file, table in zip(files, tables):
        if (shape := _shape(table)) in found or not table.blocks:
            continue
        alike = replace(table, blocks=[block for other in tables if _shape(other) == shape for block in other.blocks])
        found[shape] = layout_of(alike, file, None, _token(table) if table.header is not None else None)
        collector.count("columns left out", table.n_columns - 1 - len(found[shape].labels), file.shown)
        if found[shape].note:
            collector.note(found[shape].note)
    return found


def _parse(
    file: SourceFile, table: Table, nothing: tuple[str, ...], column: int | str | None, layout: Layout | None
) -> Text:
    if not table.blocks:
        return Text(file, [])
    if layout is None:
        layout = layout_of(table, file, column, _token(table) if table.header is not None else None)
    underscored = column is not None or numbered(table)
    refuse_texts(table, file, layout.token)
    return replace(_text(file, table, layout.token, layout.labels[0], nothing), underscored=underscored)


def _token(table: Table) -> int:
    """Return the column of tokens: the one a header names, else the first that does not number them."""
    return token_in(table.header or ()) or int(numbered(table))


def _fill_nothing(texts: Sequence[Text], collector: Collector) -> None:
    """Say what `_` in chosen columns means: O where all labels of all files are tags and none is O, else nothing."""
    own = [text for text in texts if text.underscored]
    is_outside = says_nothing({label for text in own for label in text.labels if label is not None})
    for text in own:
        n = text.labels.count("_")
        collector.count("_ taken as O, of which there is none", n if is_outside else 0, text.file.shown)
        text.sequences[:] = [
            [(token, label if label != "_" else OUTSIDE if is_outside else None) for token, label in sequence]
            for sequence in text.sequences
        ]


def _text(file: SourceFile, table: Table, token: int, at: int, nothing: tuple[str, ...]) -> Text:
    return Text(
        file,
        [
            [(cells[token], None if (label := cells[at].strip(" ")) in nothing else label) for _, cells in block.rows]
            for block in table.blocks
        ],
    )


def _rows(file: SourceFile, even: bool = False) -> Table:
    """Return the rows of a file, without the first if it is a header; `even` them out where that is needed."""
    if file.name.lower().endswith(".csv"):
        return read_table(file)
    sequences: list[list[tuple[int, list[str]]]] = [[]]
    width = 0
    lines = text_lines(file.text())
    split = list(map(split_spaces, lines)) if even else []
    even_out(list(enumerate(split, start=1)), by_tab=False)
    for number, line in enumerate(lines, start=1):
        if not line or not line.strip(" \t"):
            if sequences[-1]:
                sequences.append([])
            continue
        cells = split[number - 1] if even else line.split("\t") if "\t" in line else split_spaces(line)
        if line.startswith("#") and re.match(r"# ?[\w.:-]+ = ", line):
            continue
        if cells[0] == "-DOCSTART-":
            sequences.append([])
            continue
        if len(cells) < 2:
            raise file.error("this line has no label", number, got=line, hint="Every line needs a token and a label")
        width = width or len(cells)
        if len(cells) != width and not even and "\t" not in file.text():
            return _rows(file, even=True)
        if len(cells) != width:
            raise file.error(f"this line has {len(cells)} cells where the lines before have {width}", number, got=line)
        sequences[-1].append((number, cells))
    known = labels_elsewhere([row for rows in sequences for row in rows])
    header = sequences[0][0][1] if sequences[0] and is_header(sequences[0][0][1], known, "auto") else None
    if header is not None:
        del sequences[0][0]
    return Table([Block(rows) for rows in sequences if rows], header, width, 0, 0)


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
        tables = [[_rows(file.beginning()) for file in group[:4]] for group in shared[:6]]
    except FormatError:
        return 0.0
    if any(table.header is not None and holds_texts(table, _token(table)) for group in tables for table in group):
        return 0.0  # labels of whole texts
    by_comma = files[0].name.lower().endswith(".csv")
    if by_comma and not all(_is_pairs(table) for group in tables for table in group):
        return 0.0  # tables of another kind
    sure = 0.97 if by_comma else 0.9
    if any(role == "gold" or folder for folder, role, _, _ in places):
        return sure
    one_folder = len(documents) == 1 and not next(iter(documents))[1]
    least = 0.5 if one_folder else 0.2
    texts = [
        [[token for block in table.blocks for token in block.column(_token(table))] for table in group]
        for group in tables
    ]
    alike = [any(_common(a, b) >= least for b in group if b is not a) for group in texts for a in group]
    return sure if 2 * sum(alike) >= len(alike) else 0.1


def _is_pairs(table: Table) -> bool:
    """Say whether a CSV file has a header that names tokens, and one column of labels behind them."""
    return table.n_columns == 2 and token_in(table.header or ()) == 0


def _common(first: list[str], second: list[str]) -> float:
    """Return how much of the shorter of two texts also stands in the other one, wherever it stands."""
    a, b = ("".join("".join(tokens).split()) for tokens in sorted((first, second), key=lambda t: sum(map(len, t))))
    if len(a) < SHINGLE:
        return float(bool(a) and a in b)
    there = {b[i : i + SHINGLE] for i in range(len(b) - SHINGLE + 1)}
    pieces = {a[i : i + SHINGLE] for i in range(len(a) - SHINGLE + 1)}
    return len(pieces & there) / len(pieces)


_OTHERS = (".ann", ".a1", ".a2", ".ann1", ".ann2", ".json", ".jsonl", ".parquet", ".arrow", ".xmi", ".xml")

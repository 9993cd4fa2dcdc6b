"""Files that no reader claims: the same rows in another dress, and if that does not help, what is wrong with them.

- A table whose cells hold lists or objects (JSON, or what Python prints: `['B-PER', 'O']`, `[(0, 3, 'PER')]`) is JSON,
  and so is one whose cells hold a tag for every word of a text (`B-PER O O`).
- Sentences with a tag behind every word (`Ada|NNP|B-PER ran|VBD|O`, `Ada/PER ran/O`), or all tags behind the sentence,
  or pairs in JSON, are CoNLL columns. Remarks (`# …`) above the header of a table are left out.
- JSON objects of nothing but plain values are a table: rows, or as pandas writes a frame, by columns or split.
- Records of research releases and tools are brought into shapes that are read: see `shapes`.
- An object that maps ids to objects, or that holds one list of texts, is those objects; one that holds a list for each
  of several names, of the same texts, is what these annotators said.

Rows of tables stay on their lines, so that messages point into the file the user has; records inside an object are
counted. `why_unknown` names the most telling thing that is wrong with files, for the error that says so.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from lasca.errors import FormatError, excerpt
from lasca.formats.brat import is_standoff
from lasca.formats.conll_columns import OWN
from lasca.formats.conll_lines import read_table, text_lines, token_in
from lasca.formats.mace_csv import read as read_mace
from lasca.formats.names import END, LAYERS, NAMES, START, has_places, named, plain_name
from lasca.formats.shapes import known_shape
from lasca.formats.sources import JSON, SourceFile, loads, parse_json, parse_json_items
from lasca.formats.tabular import columns_of_tags, csv_rows, is_parquet, looks_delimited, read_parquet

__all__ = ["dresses", "found_in", "opened", "other_tool", "value_of", "why_unknown"]

Placed = tuple[int, dict[str, Any]]
_ONE = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?(?:0|[1-9]\d*)|\.\.\.)"""
_NUMPY = re.compile(rf"\[\s*{_ONE}(?:\s+{_ONE})+\s*\]")  # how NumPy prints: ['a' 'b'], [0 1]
_NUMPY_PART = re.compile(_ONE)
MOST_ROWS = 500_000  # of a Parquet file that is tried in another dress
PARSED = 20_000  # characters of a cell that Python's own parser is asked to read
TEXTS = {"text", "tokens", "words", "sentence", "content", "data", "displayed_text"}  # by which a record is known
TEXT = ("text", "sentence", "content")
WHO = {*NAMES["annotator"], "model"}
PLAIN = (str, int, float, bool, type(None))


def dresses(files: Sequence[SourceFile]) -> Iterator[tuple[str, list[SourceFile]]]:
    """Yield the files in other dresses, each with a sentence that says what was done."""
    for said, change in (
        ("The cells of the table hold lists: they were read as JSON.", opened),
        ("The tags of the words were read as columns.", _spread),
        ("Lines before the header that begin with # were left out.", _without_remarks),
        ("The objects of the file were read as the rows of a table.", _flattened),
        ("The file is an object that holds the records: they were taken out of it.", _taken_out),
        (
            "The records have a shape of others (lasca.formats.shapes) and were brought into that of this format; "
            "scores of entities are not read.",
            _reshaped,
        ),
    ):
        try:
            changed = [change(file) for file in files]
        except FormatError:
            continue
        if all(file is not None for file in changed):
            yield said, [file for file in changed if file is not None]


def opened(file: SourceFile) -> SourceFile | None:
    """Return a table whose cells hold lists as JSON lines; None if it is none."""
    if is_parquet(file):
        return _from_parquet(file)
    if file.values or not looks_delimited(file):
        return None
    (_, header), *rows = csv_rows(file)
    names = [name.strip() or "row" for name in header]
    if len(set(names)) < len(names):
        return None
    listed = any(_is_list(cell) for _, cells in rows[:20] for cell in cells)
    made = [(line, dict(zip(names, map(value_of, cells)))) for line, cells in rows]
    if listed and {"tokens", "words"} & set(map(plain_name, names)):
        return _lines(file, made)
    text = named(names, ("text", "sentence", "content", "tweet", "words", "tokens"))
    columns = [[_joined(row[name]) for _, row in made] for name in names]
    tagged = set(columns_of_tags(columns[text], columns)) - {text} if text is not None else set()
    if text is None or not tagged:
        return _lines(file, made) if listed else None
    for at, (_, row) in enumerate(made):
        row |= {"tokens": columns[text][at].split()}
        for k in tagged:
            del row[names[k]]
            name = plain_name(names[k]) if plain_name(names[k]) in ("tag", *LAYERS) else names[k]
            name = "tags" if len(tagged) == 1 and named(names, NAMES["annotator"]) is not None else name
            row |= {name: columns[k][at].split()} if columns[k][at].strip() else {}
    return _lines(file, made)


def _from_parquet(file: SourceFile) -> SourceFile | None:
    """Return the rows of a Parquet file as JSON lines, or as CSV if there are no lists in them."""
    table = read_parquet(file)
    if len(table) > MOST_ROWS:
        return None
    rows = list(enumerate(table.to_pylist(), start=1))
    return _as_csv(file, rows) or _lines(file, json.loads(json.dumps(rows, default=str)))


def _spread(file: SourceFile) -> SourceFile | None:
    """Return sentences of words with their tags as columns, a line for each word; None if they are others.

    The tags stand behind each word (Ada|B-PER, Ada/B-PER), behind the sentence (and a tab, or |||), or in JSON's pairs.
    """
    if file.values and not isinstance(file.values[0], list):
        return None
    whole = parse_json(file) if file.values else None
    lines = [line for line in text_lines(file.text()) if line.strip()] if whole is None else []
    parts = [re.split(r"\t| *\|\|\| *", line) for line in lines]
    cells: list[list[list[Any]]]
    if whole is not None:
        cells = whole if all(_is_rows(words) for words in whole) else [[[]]]
    elif all(len(own) > 1 for own in parts):
        words = [[part.split() for part in own] for own in parts]
        cells = [list(map(list, zip(*own))) if len({*map(len, own)}) == 1 else [[]] for own in words]
    elif lines and re.match(r"[^\s|/_]+[|/_]\S+ ", lines[0].lstrip("\ufeff")):
        sign = next(sign for sign in "|/_" if sign in lines[0].split()[0])
        width = lines[0].split()[0].count(sign) if sign == "|" else 1
        cells = [[word.rsplit(sign, width) for word in line.split()] for line in lines]
    else:
        return None
    tags = [parts[-1] if parts else "" for words in cells for parts in words]
    widths = {len(parts) if all(parts) else 0 for words in cells for parts in words}
    written = all(tag.upper() == tag for tag in tags) or 3 * tags.count("O") >= len(tags)
    if not written or len(widths) != 1 or min(widths) < 2:
        return None
    return _named(
        file,
        ".conll",
        "\n".join("\t".join(parts) + "\n" * (k + 1 == len(words)) for words in cells for k, parts in enumerate(words))
        + "\n",
    )


def _is_rows(words: Any) -> bool:
    """Say whether a sentence is a list of words with their tags: [["Ada", "B-PER"], ["ran", "O"]]."""
    rows = words if isinstance(words, list) else []
    return bool(rows) and all(isinstance(row, list) and all(isinstance(c, str) for c in row) for row in rows)


def _joined(value: Any) -> str:
    """Return a cell as its words with blanks between, if it holds a list of such; nothing is no words."""
    words = isinstance(value, list) and all(isinstance(word, str) and len(word.split()) == 1 for word in value)
    return " ".join(value) if words else value if isinstance(value, str) else ""


def _flattened(file: SourceFile) -> SourceFile | None:
    """Return objects of plain values as CSV, or opened, if one is a string of tags; None if they are others."""
    rows = _as_csv(file, _frame(file) or (list(parse_json_items(file)) if file.records else []))
    return rows and (opened(rows) or rows)


def _without_remarks(file: SourceFile) -> SourceFile | None:
    """Return a table without the remarks above its header; None if there are none."""
    lines = [] if file.values else text_lines(file.text())
    n = next((k for k, line in enumerate(lines) if not line.startswith("#")), 0)
    return replace(file, data="\n".join([*[""] * n, *lines[n:]]).encode()) if n else None


def _as_csv(file: SourceFile, rows: list[Placed]) -> SourceFile | None:
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    if len(names) < 2 or not all(isinstance(value, PLAIN) for _, row in rows for value in row.values()):
        return None
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    for _, row in rows:
        writer.writerow(["" if row.get(name) is None else row[name] for name in names])
    return _named(file, ".csv", stream.getvalue())


def _frame(file: SourceFile) -> list[Placed]:
    """Return the rows of a data frame that pandas wrote by its columns, or split into columns and data."""
    whole = file.records[0] if len(file.values) == 1 and file.records else {}
    columns, data = whole.get("columns"), whole.get("data")
    if isinstance(columns, list) and isinstance(data, list) and all(isinstance(row, list) for row in data):
        index = whole.get("index") if "id" not in columns else None
        ids = index if isinstance(index, list) and len(index) == len(data) and index != [*range(len(data))] else None
        rows = [dict(zip(map(str, columns), row)) for row in data]
        return [(k, row if ids is None else {"id": ids[k], **row}) for k, row in enumerate(rows)]
    by_column = [value for value in whole.values() if isinstance(value, dict)]
    if len(by_column) < 2 or len(by_column) < len(whole) or any(list(v) != list(by_column[0]) for v in by_column):
        return []
    if not all(isinstance(cell, PLAIN) for value in by_column for cell in value.values()):
        return []
    if all(key.isdecimal() for key in whole) or not all(key.isdecimal() for key in by_column[0]):
        return []  # rather records by their ids
    return [(k, {name: value[key] for name, value in whole.items()}) for k, key in enumerate(by_column[0])]


def _taken_out(file: SourceFile) -> SourceFile | None:
    """Return the records that stand inside one object: by their ids, or as its only list of objects."""
    if len(file.values) != 1 or not file.records:
        return None
    whole = parse_json(file)
    if not isinstance(whole, dict):
        return None
    if whole and all(isinstance(row, dict) and len(row) > 1 for row in whole.values()):
        return _lines(file, [(k, {"id": key, **row}) for k, (key, row) in enumerate(whole.items(), start=1)])
    lists = {key: value for key, value in whole.items() if _are_texts(value)}
    if any(isinstance(whole.get(key), str) for key in TEXTS) or not lists:
        return None
    if len(lists) == 1:
        beside = {key: value for key, value in whole.items() if plain_name(key) in WHO and isinstance(value, PLAIN)}
        rows = [{**beside, **row} for only in lists.values() for row in only]
        return _lines(file, list(enumerate(rows, start=1)))
    texts = [{json.dumps(row[key]) for row in rows for key in TEXTS & set(row)} for rows in lists.values()]
    named = any(WHO & set(map(plain_name, row)) for own in lists.values() for row in own)
    if len(lists) < len(whole) or named or len(set().union(*texts)) == sum(map(len, texts)):
        return None  # parts of the data, rather than annotators of the same texts
    rows = [{**row, "annotator": name} for name, own in lists.items() for row in own]
    return _lines(file, list(enumerate(rows, start=1)))


def _are_texts(value: Any) -> bool:
    rows = value if isinstance(value, list) else []
    return bool(rows) and all(isinstance(row, dict) and TEXTS & set(row) for row in rows)


def _reshaped(file: SourceFile) -> SourceFile | None:
    """Return records of research releases and tools in a shape that is read; None if they are others."""
    found = known_shape(file)
    if found is None and (inner := _taken_out(file)) is not None:
        found = known_shape(inner)
    return None if found is None else _lines(file, list(enumerate(found[1], start=1)))


def _is_list(cell: str) -> bool:
    return cell.strip()[:1] in ("[", "{") and isinstance(value_of(cell), list | dict)


def value_of(cell: str) -> Any:
    """Return what a cell holds: a list or an object, if that is written in it, else its text; nothing is null."""
    text = cell.strip()
    if text[:1] not in ("[", "{"):
        return text or None
    try:
        return loads(text)
    except ValueError:
        pass
    try:
        if _NUMPY.fullmatch(text):  # Python itself would join the words: 'a' 'b' is 'ab'
            parts = [part[0] for part in _NUMPY_PART.finditer(text)]
            return text if "..." in parts else [ast.literal_eval(part) for part in parts]
        value = ast.literal_eval(text) if len(text) <= PARSED else text
        json.dumps(value, allow_nan=False)  # tuples are lists; sets and the like stay text
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    return value


def _lines(file: SourceFile, rows: list[Placed]) -> SourceFile:
    """Return rows as JSON lines, each on its line of the file."""
    written: list[str] = []
    for line, row in rows:
        written += [""] * (line - 1 - len(written))
        written.append(json.dumps(row, ensure_ascii=True))
    return _named(file, ".jsonl", "\n".join(written) + "\n")


def _named(file: SourceFile, suffix: str, text: str) -> SourceFile:
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise file.error("this JSON holds half a character (a \\ud8… escape without its partner)") from error
    return replace(file, name=str(PurePosixPath(file.name).with_suffix(suffix)), data=data)


SHAPES = (
    'JSON lines {"id": 1, "text": "…", "label": [[start, end, "PER"]]} with a file per annotator, or a table with the '
    "columns sequence, position, token, annotator, label"
)
ROWS = (
    "If it has a row for each label, format=table (on the command line: -f table) says which columns to name. If it "
    "has a column for each annotator and a row for each text: format=wide; a row for each token: call the columns "
    "sentence, word, and by the annotators, and write O where nothing is marked (an empty cell is no label). Else: "
)
TURN = "one row is what a person said of many texts, or JSON: write a row for each answer, text,annotator,label"
TOOLS = {
    "UBIAI": {"document", "tokens"},
    "UBIAI (of whole documents)": {"documentName", "document", "annotation"},
    "Argilla 1 (Argilla 2 exports it with rg.Dataset.to_json)": {"fields", "responses", "external_id"},
    "CogComp or TALEN (a TextAnnotation)": {"corpusId", "tokens", "views"},
    "tagtog": {"anncomplete", "entities"},
    "Kili": {"externalId", "labels"},
    "Dataturks": {"content", "annotation"},
    "Datasaur": {"sentences", "labelSets"},
    "Argilla 1 (Rubrix)": {"annotation_agent", "prediction"},
    "PubAnnotation": {"text", "denotations"},
    "BioC": {"source", "documents"},
    "Rasa": {"rasa_nlu_data"},
    "SQuAD (answers to questions)": {"title", "paragraphs"},
    "Labelbox": {"data_row", "projects"},
    "Labelbox (of old)": {"Labeled Data", "Label"},
    "LUIS": {"luis_schema_version", "utterances"},
    "Azure Language Studio": {"projectFileVersion", "assets"},
    "Google AutoML": {"text_snippet", "annotations"},
    "a chat with a language model": {"messages"},
    "Amazon Comprehend (without the texts, which stand in the file it names)": {"File", "Entities"},
    "Azure (results without the texts)": {"documents", "errors", "modelVersion"},
    "Google's Natural Language API (without the text)": {"entities", "language"},
    f"Qualtrics ({TURN})": {"ResponseId", "StartDate", "EndDate"},
    f"Google Forms ({TURN})": {"Timestamp", "Email Address"},
    f"Zooniverse ({TURN})": {"classification_id", "subject_data"},
    "Recogito (without the texts)": {"QUOTE_TRANSCRIPTION", "ANCHOR"},
    "Hypothesis (without the texts)": {"total", "rows"},
    "SpERT (spans by numbers of tokens)": {"tokens", "entities", "relations"},
    "W2NER (spans by numbers of tokens)": {"sentence", "ner", "word"},
    "Potato (user_state.json, without texts: take annotated_instances.jsonl)": {"instance_id_to_label_to_value"},
}
"""Tools whose exports LASCA does not read, by keys of their JSON, or columns of their tables."""

IMAGES = ({"filename", "bbox"}, {"images", "annotations", "categories"}, {"filename", "segmentation"})
"""Keys of exports about images: doccano's, and COCO."""

BEGINNINGS = {
    "BioC": re.compile(rb"<collection\b.*<(?:source|document|infon)\b", re.DOTALL),
    "PubTator": re.compile(rb"\A\s*\w+\|t\|"),
    "MAE": re.compile(rb"<TEXT><!\[CDATA\[.*<TAGS>", re.DOTALL),
    "SageMaker (the answers of workers, whose texts stand elsewhere: take the consolidation request)": re.compile(
        rb'\A\s*\{\s*"answers".*"answerContent"', re.DOTALL
    ),
    "i2b2 (concepts)": re.compile(rb'\Ac="[^\n]*" \d+:\d+ \d+:\d+\|\|t="'),
    "Rasa (of old)": re.compile(rb"\A\s*##\s*(?:intent|synonym|regex|lookup):"),
    "RDF (Turtle, N-Quads, NIF)": re.compile(rb"\A\s*(?:@prefix\b|PREFIX\b|<https?:[^>\s]*> <https?:)"),
    "Praat (a TextGrid: times of sounds, and no places in a text)": re.compile(rb"\AFile type = \"ooTextFile"),
    "fastText (a label before each text, of nobody)": re.compile(rb"\A__label__\w"),
    "Rasa": re.compile(rb"\A\s*(?:version:[^\n]*\n\s*)?nlu:\s*\n\s*- (?:intent|synonym|regex|lookup):"),
}
"""The same by how their files begin."""

MARKED = re.compile(
    rb"\[@[^\n\]]+#[^\n\]#]+\*\]|</\w[\w:.-]*>|<START(?::\w+)?> .* <END>|^\[[A-Z]{2,} [^\]\n]+\] \w", re.MULTILINE
)
"""Marks that stand inside the text: YEDDA's, XML, OpenNLP's, brackets."""

MANY = 20  # files that are looked at
MOST = 0.8  # share of lines of one width, from which on the others are the odd ones


def why_unknown(files: Sequence[SourceFile]) -> str | None:
    """Return a sentence on the first file with something wrong in it, or None if nothing is: just no known format."""
    if any(PurePosixPath(file.name).name == "[Content_Types].xml" for file in files):
        return "This is an Office document: save the sheet as CSV (UTF-8)"
    for file in files[:MANY]:
        try:
            _look(file)
        except FormatError as error:
            return str(error)
    return None


def other_tool(file: SourceFile) -> str | None:
    """Name the tool whose files LASCA does not read, if this is one of them."""
    head = file.head(2048)
    if b"<GateDocument" in head or any("annotation_sets" in row for row in file.records[:1]):
        return (
            f"{file.shown} is a GATE document, which LASCA does not read. Export its annotations as CoNLL columns or "
            "as JSON lines with text and spans"
        )
    if head.startswith(b"version https://git-lfs.github.com/spec/"):
        return f"{file.shown} is a pointer of Git LFS, not the file itself: fetch it first, with: git lfs pull"
    counted = _counts(file.records[0]) if file.records else ""
    if counted:
        return (
            f"{file.shown} holds counts or shares of labels ({counted}). LASCA learns from who gave which: take those"
        )
    if re.match(rb"\s*(?:\w+ *= *)?(?:\[\s*\(|[\[{(\s]*'[^']*'\s*[:,])", head):
        return f"{file.shown} is written as Python prints it ('…', (…)), and not as JSON: write it with json.dump"
    if not file.records and has_places(file.cells) and named(file.cells, TEXT) is None:
        there = ", ".join(file.cells[:8])
        return (
            f"{file.shown} has a row for each span, without the text ({there}). Add a column `text` with the whole text"
        )
    if {"_unit_id", "_trusted_judgments"} <= set(file.cells) and "_worker_id" not in file.cells:
        return (
            f"{file.shown} is an aggregated report of CrowdFlower (Appen), in which nobody is named: download the full "
            "report, which has a row for every judgment and a column _worker_id"
        )
    if head.startswith(b"\x93NUMPY") or file.name.lower().endswith((".npy", ".npz")):
        return (
            f"{file.shown} is an array of NumPy (a label matrix of Snorkel?), without texts and names: write it as a "
            "table, a row per text and a column per labelling function (text, annotator_1, annotator_2, …)"
        )
    keys = set(file.records[0] if file.records else file.cells)
    if any(own <= keys for own in IMAGES):
        return f"{file.shown} holds regions of images ({', '.join(sorted(keys)[:12])}). LASCA reads labels of texts"
    tool = next((name for name, own in TOOLS.items() if own <= keys), None)
    if any(":::" in key for key in keys):
        tool = "Potato (as a table: take its annotated_instances.jsonl)"
    if any(key.endswith("-suggestion-metadata") for key in keys):
        tool = "Argilla 1 (a FeedbackDataset: Argilla 2 exports it with rg.Dataset.to_datasets)"
    tool = tool or next((name for name, begin in BEGINNINGS.items() if begin.search(head)), None)
    if tool is None and MARKED.search(head) and found_in(file) is None:
        tool = "a tool that writes marks into the text (XML, <PER>…</PER>, [@…#PER*], [PER …])"
    if tool is not None:
        return f"{file.shown} looks like an export of {tool}, which LASCA does not read. Bring it into {SHAPES}"
    if re.search(r"\.(?:ann\d*|a[12])$", file.name.lower()) and is_standoff(file):
        return (
            f"{file.shown} holds annotations of brat without their text: give the folder in which NAME.ann and "
            "NAME.txt stand side by side (join NAME.a1 and NAME.a2 into NAME.ann; put what several annotators made, "
            ".ann1 and .ann2, into a folder for each of them, as NAME.ann)"
        )
    if b"<typeSystemDescription" in head:
        return f"{file.shown} is a UIMA type system: give the XMI documents themselves"
    if head[:4] == b"\xac\xed\x00\x05":
        return f"{file.shown} holds Java objects (.ser): export the project with TSV or XMI instead"
    return None


def _counts(record: dict[str, Any]) -> str:
    """Return where a record maps labels to numbers: {"toxic": 2, "fine": 1}, for its text or for each token."""
    for key, value in record.items():
        kinds = value if isinstance(value, list) else [value]
        numbers = all(isinstance(k, dict) and k and {*map(type, k.values())} <= {int, float} for k in kinds)
        if numbers and any(len(kind) > 1 for kind in kinds) and not {*START, *END} & {*map(plain_name, kinds[0])}:
            return f"{key}: {json.dumps(kinds[0], ensure_ascii=False)[:60]}"
    return ""


def found_in(file: SourceFile) -> str | None:
    """Say in a few words what a file holds: the keys of its JSON, or the columns of its table."""
    if file.records:
        return f"JSON objects with the keys {_keys(file.records[0])}{_inside(file.records[0])}"
    if file.values:
        return "JSON that is no list of objects"
    if looks_delimited(file) and len(file.cells) > 1:
        return f"a table with the columns {', '.join(excerpt(cell, 30) for cell in file.cells[:12])}"
    return None


def _keys(record: dict[str, Any]) -> str:
    return ", ".join(excerpt(key, 30) for key in list(record)[:12])


def _inside(record: dict[str, Any]) -> str:
    """Say what stands under the first key that holds objects."""
    for key, value in record.items():
        entry = value[0] if isinstance(value, list) and value else value
        if isinstance(entry, dict) and entry:
            return f" (under {excerpt(key, 30)}: {_keys(entry)})"
    return ""


def _look(file: SourceFile) -> None:
    """Raise what is wrong with a file, if anything is."""
    if is_parquet(file):
        read_parquet(file)
        return
    text = file.text()
    if "\x00" in text:
        at = text.index("\x00")
        raise file.error(
            "there is a NUL byte in the text", text.count("\n", 0, at) + 1, got=text[max(at - 20, 0) : at + 20]
        )
    if text.lstrip()[:1] in ("{", "[") or file.name.lower().endswith(JSON):
        for _ in parse_json_items(file):
            pass
    elif looks_delimited(file) and _mostly_one_width(text, ","):
        if named(file.cells, TEXT) is not None:
            csv_rows(file)
        elif token_in(file.cells) is not None:
            read_table(file)
        else:
            read_mace([file])
    elif (
        PurePosixPath(file.name).suffix.lower() in OWN or _mostly_one_width(text, "\t") or _mostly_one_width(text, " ")
    ):
        read_table(file)


def _mostly_one_width(text: str, delimiter: str) -> bool:
    """Say whether nearly all lines have the same number of cells, and more than one."""
    cells = [len(line.split(None if delimiter == " " else delimiter)) for line in text_lines(text) if line.strip()]
    if len(cells) < 3:
        return False
    width, n = Counter(cells).most_common(1)[0]
    return width > 1 and n >= MOST * len(cells)

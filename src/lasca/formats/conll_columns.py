"""CoNLL columns: a token per line, then a column per annotator and gold; a blank line ends a sequence.

```
# sent_id = s1
token    gold   ann   ben   model:spacy
😊       O      O     ?     O
Ada      B-PER  B-PER ?     B-PER
Lovelace I-PER  I-PER O     I-PER

# sent_id = s2
New      B-LOC  ?     B-LOC B-ORG
York     I-LOC  ?     I-LOC I-ORG
```

`?` and an empty cell are missing labels. Cells are separated by tabs or spaces, or in CSV files by commas or semicolons
(see `conll_lines`). The header is optional, or stands in a comment (`# token ann ben`): it names the column of tokens,
`token` or `word`; before that there may be numbers of tokens and a column of sequences (`sentence_id`, in documents or
chapters that have a column each), by which the rows are grouped; a name that says so (`gold`, `majority`, `gpt-4`) is a
gold or a model; `gold:NAME`, `model:NAME` and `annotator:NAME` say the role outright; `_` leaves a column out, and
`annotator` is one that names who labelled each sequence. Without a header, `columns` names the columns, or `golds`
names the first label columns and the rest are annotators "1", "2", …; a file of two columns is one gold. Numbers of
tokens in the first column, from 0, from 1 or running on, are left out.
Without either, columns are annotators only if their labels overlap. A column that says one thing of each whole sequence
holds no labels of tokens; where the same text stands under several such names, these are the annotators. CoNLL-2003,
CoNLL-X, CoNLL-U and WebAnno TSV 2 hold different things in their columns: one of them is the gold, the entities or
chunks in the last one, the parts of speech of CoNLL-U, or the one that `column` names (by number from 1, as "upos",
"xpos", …, or a key inside one, "misc:name"); `_` is O there if the column has tags and no O. Lines of CoNLL-U that are
no tokens (3-4, 3.1) are counted.
A language that stands before every token (PAN-X: `en:Ada`) is taken off.
Sequences are numbered, unless a comment `# sent_id = …` gives the id; other `# key = value` comments become metadata,
except `# annotator = …` where texts stand several times, unless `columns` says who it was.
A second file adds sequences with ids "FILE/0", "FILE/1", ….
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError, excerpt, typed
from lasca.estimator import check_choice
from lasca.formats import conll_folder
from lasca.formats.base import Collector, SourceFile, natural_key
from lasca.formats.conll_lines import (
    NOTHING,
    PLACE,
    Block,
    Table,
    layout_of,
    numbered,
    overlapping,
    read_table,
    refuse_texts,
    says_nothing,
    with_feature,
)
from lasca.formats.names import (
    LAYERS,
    NAMES,
    START,
    TOKEN_NAMES,
    are_people,
    by_question,
    is_level,
    is_person,
    may_count,
    plain_name,
    role_of,
    speaker,
)
from lasca.formats.tabular import NAN, columns_of_tags
from lasca.schemes import detect

__all__ = ["NAME", "read", "sniff"]

NAME = "conll"
OWN = (".conll", ".conllx", ".conllu", ".iob", ".iob2", ".bio", ".bioes", ".col", ".cols")
OTHERS = (".json", ".jsonl", ".ndjson", ".parquet", ".arrow", ".ann", ".a1", ".a2", ".xml", ".xmi", ".html")
ROLES = ("gold", "model", "annotator")
WITH_TAG = re.compile(r".+[/_|][^\s/_|]+")  # cat/NN
WHO = ("annotator", "annotator_id", "worker", "worker_id", "user_id")  # a column that names them
EXTRAS = ("confidence", "ambiguous", "candidates")  # what our writer puts behind an inferred label
ENOUGH = 8  # rows in which annotators of whatever name have labels in common
LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]+)?:")
LONG = 4  # tokens from which on a text that stands twice is no chance
Column = tuple[str, str]  # role, name; role "" is left out, "token" is the token


def read(
    files: Sequence[SourceFile],
    *,
    golds: Sequence[str] | str = (),
    columns: Sequence[str] | str | None = None,
    header: bool | str = "auto",
    separator: str = "auto",
    missing: str = "?",
    column: int | str | None = None,
    overlap: str = "error",
) -> CrowdCorpus:
    """Read files of columns. `golds` names gold columns, `columns` all columns where there is no header.

    `column` chooses one of several layers as the gold; `overlap="first"` takes the first of stacked labels (`A|B`).
    """
    check_choice("overlap", overlap, ("error", "first"))
    wanted = (golds,) if isinstance(golds, str) else tuple(golds)
    columns = columns.split(",") if isinstance(columns, str) else columns
    collector, has_key = Collector(files, NAME), False
    collector.golds = wanted
    for file in sorted(files, key=lambda file: natural_key(file.name)):
        if columns is None and b"#begin document" in file.head(4096):
            raise file.error(
                "these are the columns of CoNLL-2012 (OntoNotes), where names are brackets over lines, (ORG* *)",
                hint="Convert them to a token and a tag (B-ORG, I-ORG, O) per line first",
            )
        table = read_table(file, separator=separator, header=header)
        collector.golds += tuple(cell[5:] for cell in table.header or () if cell.startswith("gold:"))
        collector.count("comments", table.n_comments)
        collector.count("documents", table.n_documents)
        collector.count("remarks behind the labels left out", table.n_remarks, file.shown)
        if not table.blocks:
            collector.count("empty files", 1, file.shown)
            continue
        if len(files) == 1:
            _cut_ends(table)
        ids = numbered(table)
        if ids:
            _only_words(table, file, collector)
        table, chosen, found = with_feature(table, file, column)
        has_key |= found
        note, named = _columns(table, file, columns, wanted, chosen)
        if ids:
            _fill_outside(table, named, collector, file)
        if columns is None:
            refuse_texts(table, file, named.index(("token", "")))
        if columns is None and table.header is None and sum(role == "annotator" for role, _ in named) > 0:
            note = "There is no header: label columns are annotators 1, 2, …; the options columns or golds name them."
        if note:
            collector.note(note)
        _without_language(table, named.index(("token", "")), file, collector)
        before = next(k for k, (role, _) in enumerate(named) if role == "token") if table.header else 0
        left_out = sum(role == "" for role, _ in named[before:])
        collector.count("columns left out", left_out, f"{file.shown}: {left_out} of {len(named)}")
        if columns is None or {*map(plain_name, columns)} & {*NAMES["label"], *LAYERS}:  # else columns say who it was
            named = _with_comments(table, named)
        prefix = f"{PurePosixPath(file.name).with_suffix('')}/" if len(files) > 1 else ""
        seen: dict[tuple[str, str, int], str] = {}
        for number, block in enumerate(table.blocks):
            block = _unstacked(block, named, file, collector, overlap) if ids else block
            empty = (missing, "", *NAN, *(["_"] if ids else []))
            id, own = _by_whom(block, f"{prefix}{number}", named, seen)
            _add(collector, file, block, id, own, empty, table.n_documents > 0)
    if not has_key and collector.sequences:
        raise ParameterError("column", column, f"a key that stands in column {chosen} of {collector.source}")
    if len({PurePosixPath(file.name).name for file in files}) < len(files):
        collector.note(
            "Files of one name in different folders were read as different texts; if each folder is an annotator's, "
            "the format is conll-folder."
        )
    _tell_repeated(collector)
    return collector.corpus(order="given")


def _cut_ends(table: Table) -> None:
    """Leave out last columns in which nothing stands, and no header: a tab stands behind every line."""
    rows = [cells for block in table.blocks for _, cells in block.rows]
    while table.header is None and table.n_columns > 2 and not any(cells[-1] for cells in rows):
        table.n_columns -= 1
        for cells in rows:
            del cells[-1]


def _by_whom(
    block: Block, id: str, columns: list[Column], seen: dict[tuple[str, str, int], str]
) -> tuple[str, list[Column]]:
    """Return the id of a text that stands once for each annotator, and the columns of this one; `seen` is kept."""
    who = next((k for k, (role, _) in enumerate(columns) if role == "who"), None)
    if who is None:
        return id, columns
    name, words = block.rows[0][1][who], "\n".join(block.column(columns.index(("token", ""))))
    times = next(k for k in range(len(seen) + 1) if (words, name, k) not in seen)  # one may meet a text again
    seen[words, name, times] = seen.setdefault((words, "", times), id)
    given = (speaker(name), name)
    return seen[words, name, times], [given if role in ROLES else (role, _) for role, _ in columns]


def _with_comments(table: Table, columns: list[Column]) -> list[Column]:
    """Make a column of comments that name annotators (`# annotator = ann`), if texts stand under several of them."""
    key = next((key for key in table.blocks[0].comments if plain_name(key) in WHO), "")
    one = sum(role in ROLES for role, _ in columns) == 1
    names = [block.comments[key] for block in table.blocks if key in block.comments]
    if not one or len(names) < len(table.blocks) or not _annotators(table, columns.index(("token", "")), names):
        return columns
    for block, name in zip(table.blocks, names):
        del block.comments[key]
        for _, cells in block.rows:
            cells.append(name)
    return [*columns, ("who", "")]


def _without_language(table: Table, column: int, file: SourceFile, collector: Collector) -> None:
    """Take off the code of the language that stands before every token (PAN-X: en:Ada, en:ran)."""
    rows = [cells for block in table.blocks for _, cells in block.rows]
    code = LANGUAGE.match(rows[0][column])
    if code is None or len(rows) < LONG or not all(cells[column].startswith(code[0]) for cells in rows):
        return
    if any(cells[column] == code[0] for cells in rows):
        return
    for cells in rows:
        cells[column] = cells[column].removeprefix(code[0])
    collector.note(f"{file.shown}: {code[0]!r} stands before every token, and was taken off.")


def _tell_repeated(collector: Collector) -> None:
    """Count texts that stand several times with different labels: perhaps the work of annotators it does not name."""
    golds = [given for (role, _), given in collector.columns.items() if role == "gold"]
    seen: dict[tuple[str, ...], set[tuple[str | None, ...]]] = {}
    for id, column in (entry for given in golds for entry in given.items()):
        words = collector.sequences[id].tokens
        if len(words) >= LONG:
            seen.setdefault(words, set()).add(column.labels)
    again = [words for words, kinds in seen.items() if len(kinds) > 1]
    if again:
        n = sum(len(seen[words]) - 1 for words in again)
        collector.count("texts that stand again, labelled differently", n, " ".join(again[0][:12]))
        collector.note(
            "Some texts stand several times, labelled differently. If these are several annotators (Label Studio's "
            "CoNLL has them so, without names), another export that names them is needed, such as JSON."
        )


def _only_words(table: Table, file: SourceFile, collector: Collector) -> None:
    """Leave out the lines of CoNLL-U that are no tokens: joined ones (3-4) and empty nodes (3.1)."""
    for block in table.blocks:
        if all(PLACE.fullmatch(cells[0]) for _, cells in block.rows):
            continue  # WebAnno TSV 1 and 2
        kept = [(line, cells) for line, cells in block.rows if cells[0].isdecimal()]
        if len(kept) < len(block.rows):
            example = next(f"{file.shown}:{line}: {cells[1]}" for line, cells in block.rows if not cells[0].isdecimal())
            collector.count("lines that are no tokens (3-4 or 3.1)", len(block.rows) - len(kept), example)
            block.rows[:] = kept
    table.blocks[:] = [block for block in table.blocks if block.rows]


def _fill_outside(table: Table, named: list[Column], collector: Collector, file: SourceFile) -> None:
    """Write O for `_` where numbered rows have tags and no O: so CoNLL-U says that there is nothing."""
    for k in (k for k, (role, _) in enumerate(named) if role in ROLES):
        if not says_nothing({cell for block in table.blocks for cell in block.column(k)}):
            continue
        rows = [row for block in table.blocks for _, row in block.rows if row[k] == "_"]
        for row in rows:
            row[k] = "O"
        collector.count("_ taken as O, of which there is none", len(rows), f"{file.shown}, column {k + 1}")


def _of_sequences(table: Table, column: int) -> bool:
    """Say whether a column says one thing of each whole sequence, such as its annotator, and no label of tokens."""
    if any(len(set(block.column(column))) > 1 for block in table.blocks):
        return False
    values = {block.rows[0][1][column] for block in table.blocks}
    long = sum(len(block.rows) > 1 for block in table.blocks)
    return long > 1 and values.isdisjoint(NOTHING) and detect(values) is None


def _whole(table: Table, token: int) -> list[int]:
    """Return the columns about whole sequences: there are others beside them, of other labels."""
    found = [k for k in range(token + 1, table.n_columns) if _of_sequences(table, k)]
    rest = [k for k in range(token + 1, table.n_columns) if k not in found]
    labels = {cell for block in table.blocks for k in rest for cell in block.column(k)} if found else set()
    return [k for k in found if rest and labels.isdisjoint(block.rows[0][1][k] for block in table.blocks)]


def _annotators(table: Table, token: int, names: Sequence[str]) -> bool:
    """Say whether most texts stand several times, under several names; a block has one of them each."""
    seen: dict[tuple[str, ...], set[str]] = {}
    for block, name in zip(table.blocks, names):
        seen.setdefault(tuple(block.column(token)), set()).add(name)
    return 2 * sum(len(own) > 1 for own in seen.values()) >= len(seen)


def _unstacked(block: Block, named: list[Column], file: SourceFile, collector: Collector, overlap: str) -> Block:
    """Refuse stacked tags (`B-A|B-B`, as WebAnno TSV 2 has them), or take the first of them."""
    rows = []
    for line, cells in block.rows:
        cells = list(cells)
        for k, (role, _) in enumerate(named):
            parts = cells[k].split("|")
            if role in ("token", "") or len(parts) < 2 or not all(re.match(r"[BIESLUM]-.", part) for part in parts):
                continue
            if overlap == "error":
                raise file.error(
                    "several labels are stacked on one token",
                    line,
                    got=cells[k],
                    hint="To take the first set overlap=first (on the command line: -r overlap=first)",
                )
            collector.count("stacked labels left out", len(parts) - 1, f"{file.shown}:{line}: {cells[k]}")
            cells[k] = parts[0]
        rows.append((line, cells))
    return Block(rows, block.comments, block.document)


def _columns(
    table: Table, file: SourceFile, columns: Sequence[str] | None, golds: tuple[str, ...], column: int | str | None
) -> tuple[str, list[Column]]:
    """Return what is to be said about the columns, and the role and name of each."""
    n = table.n_columns
    if n < 2:
        raise file.error(
            "every line must hold a token and at least one label", table.blocks[0].line, got=table.blocks[0].rows[0][1]
        )
    if columns is not None and len(columns) != n:
        raise file.error(f"the file has {n} columns where `columns` names {len(columns)}", table.blocks[0].line)
    names = list(columns) if columns is not None else table.header
    if names is None and (column is not None or not golds):
        token = int(numbered(table))
        whole = _whole(table, token)
        layout = layout_of(table, file, column, but=whole)
        result = [("", "")] * n
        result[layout.token] = ("token", "")
        for i, k in enumerate(layout.labels):
            name = golds[0] if len(golds) == 1 else "gold"
            result[k] = ("annotator", str(i + 1)) if layout.annotators else ("gold", name)
        said = {k: [block.rows[0][1][k] for block in table.blocks] for k in whole}
        who = [k for k in whole if not layout.annotators and _annotators(table, token, said[k])]
        if not who:
            return layout.note, result
        result[who[0]] = ("who", "")
        note = layout.note.replace("the gold is", "the labels are those of")
        return f"{note} Column {who[0] + 1} names the annotator of each sequence.".strip(), result
    if names is None:
        token = int(numbered(table))
        labels = n - 1 - token
        if len(golds) > labels:
            raise ParameterError("golds", golds, f"at most {labels} names, one per label column of {file.shown}")
        result = [("gold", name) for name in golds]
        result += [("annotator", str(i + 1)) for i in range(labels - len(golds))]
        return "", [("", "")] * token + [("token", ""), *result]
    token = _token_column(names)
    result = [("who" if plain_name(name) in WHO else "", "") for name in names[:token]]
    result += [("token", ""), *(_named(name, golds) for name in names[token + 1 :])]
    for k in (k for k, (role, _) in enumerate(result) if role == "who" and not _of_sequences(table, k)):
        result[k] = ("annotator", names[k]) if k > token else ("", "")
    if columns is None and column is None:
        result = _without_layers(table, names, result)
        _refuse_layers(table, file, names, result, token)
    if columns is None and (column is not None or _different(table, names, result)):
        layout = layout_of(table, file, column, token)
        if not layout.annotators:
            before, result = result, [("", "")] * n
            result[token], result[layout.labels[0]] = ("token", ""), ("gold", golds[0] if len(golds) == 1 else "gold")
            result = [("who", "") if c == ("who", "") else new for c, new in zip(before, result)]
            return layout.note, result
    absent = [name for name in golds if ("gold", name) not in result]
    if absent:
        raise ParameterError("golds", absent[0], f"a column of {file.shown}: {', '.join(map(excerpt, names[1:]))}")
    doubled = next((c for i, c in enumerate(result) if c[0] and c in result[:i]), None)
    if doubled is not None:
        raise file.error(
            f"two columns are called {excerpt(doubled[1])!r}",
            1,
            got=" ".join(names),
            hint="Every annotator needs a name of its own; if this is no header, set header=False "
            "(on the command line: -r header=false)",
        )
    return "", result


def _token_column(names: Sequence[str]) -> int:
    """Return which column is called token, word, …; those before it (numbers of tokens) are left out."""
    return next((k for k, name in enumerate(names) if plain_name(name) in TOKEN_NAMES), 0)


def _without_layers(table: Table, names: Sequence[str], roles: list[Column]) -> list[Column]:
    """Leave out what else a header names beside annotators (pos, lemma, comment): it shares no labels with them."""
    said = [k for k, (role, _) in enumerate(roles) if role not in ("", "token", "who")]
    plain = [k for k in said if roles[k] == ("annotator", names[k])]
    called = sum(is_person(names[k]) for k in plain) > 1
    layers = [k for k in plain if plain_name(names[k]) in LAYERS or (called and not is_person(names[k]))]
    others = [k for k in said if k not in layers]
    if len(others) < 2 or not overlapping(table, others):
        return roles
    apart = [k for k in layers if not any(overlapping(table, [k, other]) for other in others)]
    return [("", "") if k in apart else column for k, column in enumerate(roles)]


def _refuse_layers(table: Table, file: SourceFile, names: Sequence[str], roles: list[Column], token: int) -> None:
    """Refuse columns that are all called as layers (ner_coarse, ner_fine), or as several questions to each person."""
    plain = [k for k, role in enumerate(roles) if role == ("annotator", names[k])]
    called = [names[k] for k in plain]
    if asked := by_question(called):
        kept = [name if name in asked[0] or role in ("gold", "model") else "_" for name, (role, _) in zip(names, roles)]
        kept[token] = "token"
        columns = f"columns={','.join(kept)}"
        raise file.error(
            "there are several columns for each person, as for several questions: "
            + "; ".join(", ".join(group) for group in asked),
            table.blocks[0].line,
            hint=f"Choose those of one: {columns} (on the command line: {typed(columns)})",
        )
    if len(plain) > 1 and may_count(called, {c for b in table.blocks for k in plain for c in b.column(k)} - {"", "?"}):
        columns = f"columns={','.join([*['_'] * token, 'token', *names[token + 1 :]])}"
        raise file.error(
            f"the columns {', '.join(excerpt(name, 30) for name in called)} hold numbers, or yes and no: they may be "
            "counts or questions, and not annotators",
            table.blocks[0].line,
            hint=f"If they are annotators, say so: {columns} (on the command line: {typed(columns)}); _ leaves one out",
        )
    layers = all(is_level(name) or set(plain_name(name).split("_")) & set(LAYERS) for name in called)
    layers = layers and not are_people(called)
    if len(plain) > 1 and layers and overlapping(table, plain):  # else it is asked elsewhere
        raise file.error(
            f"the columns {', '.join(excerpt(name, 30) for name in called)} are called as layers of one annotation",
            table.blocks[0].line,
            hint=f"Name the column: column={plain[0] + 1} (on the command line: -r column={plain[0] + 1}). If they are "
            "annotators, name them all: columns=token,ann,ben,…",
        )


def _different(table: Table, names: Sequence[str], roles: Sequence[Column]) -> bool:
    """Say whether the header names layers (pos, ner) or one label, and not annotators."""
    plain = [k for k, role in enumerate(roles) if role == ("annotator", names[k])]
    if not plain or len(plain) < sum(role not in ("", "token", "who") for role, _ in roles):
        return False  # there is a gold or a model beside them, or a role was said outright
    if len(plain) == 1:
        return plain_name(names[plain[0]]) in (*NAMES["label"], *LAYERS)
    layers = any(plain_name(names[k]) in LAYERS for k in plain) or sum(len(b.rows) for b in table.blocks) >= ENOUGH
    layers = layers or not any(is_person(names[k]) for k in plain)
    return layers and not all(is_person(names[k]) for k in plain) and not overlapping(table, plain)


def _named(cell: str, golds: tuple[str, ...]) -> Column:
    if cell in golds:
        return "gold", cell
    if cell in ("_", "", *EXTRAS):
        return "", ""
    if plain_name(cell) in WHO:
        return "who", ""
    if cell == "label":
        return "gold", "gold"
    for role in ROLES:
        if cell.startswith(role + ":") and len(cell) > len(role) + 1:
            return role, cell[len(role) + 1 :]
    return role_of(cell), cell


def _add(
    collector: Collector,
    file: SourceFile,
    block: Block,
    id: str,
    columns: list[Column],
    missing: tuple[str, ...],
    documents: bool,
) -> None:
    metadata = dict(block.comments)
    id = metadata.pop("sent_id", "") or id
    if documents:
        metadata.setdefault("document", str(block.document))
    where = f"{file.shown}:{block.line}"
    words = block.column(columns.index(("token", "")))
    if id in collector.sequences and ("who", "") not in columns:
        raise file.error(f"a second sequence has the id {excerpt(id)!r}", block.line)
    collector.sequence(id, words, metadata=metadata, where=where)
    for index, (role, name) in enumerate(columns):
        if role not in ("token", "who", ""):
            cells = block.column(index)
            collector.count("labels nan, taken as missing", sum(cell in NAN for cell in cells), where)
            labels = [None if cell in missing else cell for cell in cells]
            known = any(label is not None for label in labels)
            collector.count("missing labels", labels.count(None) if known else 0, where)
            collector.annotate(id, name, labels, role=role, where=where)


def sniff(files: Sequence[SourceFile]) -> float:
    """Say how much these files look like CoNLL columns: 0 to 1."""
    if not files or any(PurePosixPath(file.name).suffix.lower() in OTHERS for file in files):
        return 0.0
    score = min(map(_looks_like, files[:3]))
    score = min(score, 0.85) if len(files) > 1 and score > 0.9 else score  # perhaps a file for each annotator
    return min(score, 0.5) if len(files) > 1 and conll_folder.sniff(files) > 0.5 else score


def _looks_like(file: SourceFile) -> float:
    try:
        table = read_table(file.beginning())
    except FormatError:
        return 0.0
    if not table.blocks or table.n_columns < 2:
        return 0.0
    rows = [cells for block in table.blocks for _, cells in block.rows]
    return _like_csv(table, rows) if file.name.lower().endswith(".csv") else _like_columns(file, table, rows)


def _like_csv(table: Table, rows: list[list[str]]) -> float:
    """Say how much a CSV file looks like a row per token: a header that names the tokens, or tags behind words."""
    if table.header is None:
        tags = detect({cells[-1] for cells in rows} - {"?", ""})
        first = {cells[0] for cells in rows} - {"?", ""}
        return 0.75 if tags not in (None, "IO") and detect(first) is None else 0.0
    names = {plain_name(name) for name in table.header}
    token = _token_column(table.header)
    words = "text" not in names and 2 * sum(" " in cells[token] for cells in rows) < len(rows)
    if not words or names & {*NAMES["annotator"], *START}:
        return 0.0  # texts, a long table, a table of spans
    return 0.6 if token == 0 and table.n_columns > 2 else 0.92  # rather the format mace


def _like_columns(file: SourceFile, table: Table, rows: list[list[str]]) -> float:
    """Say how much one file looks like rows of a token and labels, with blank lines between sequences."""
    if b"#begin document" in file.head(4096):
        return 0.9
    if any(":::" in cell for cell in table.header or rows[0]):
        return 0.0  # Potato's table
    if table.header is None and {plain_name(cell) for cell in rows[0] if "_" in cell} & set(NAMES["annotator"]):
        return 0.0  # the header of a long table
    labels = {cells[-1] for cells in rows} - {"?", ""}
    first = {cells[0] for cells in rows}
    if table.n_columns == 2 and detect(labels) is None and detect(first) is not None:
        labels = first
    if any(cells[0].startswith(("{", "[", "<http")) for cells in rows[:3]):
        return 0.1
    words, *others = map(list, zip(*rows[:LONG]))
    if table.header is None and (columns_of_tags(words, others) or all("|||" in cells for cells in rows)):
        return 0.0  # a sentence, and behind it its tags
    if (
        table.header is None
        and table.n_columns > 2
        and all(WITH_TAG.fullmatch(cell) for cells in rows for cell in cells)
    ):
        return 0.0  # a sentence, and a tag behind each of its words
    tags = any(detect({cells[k] for cells in rows} - {"?", ""}) is not None for k in range(1, table.n_columns))
    tags |= detect(labels) is not None
    named = table.header is not None or PurePosixPath(file.name).suffix.lower() in OWN
    named |= len(table.blocks) > 1 and numbered(table)
    if not tags and 2 * len(labels) > len(rows) and not named:
        return 0.2  # rather prose than labels
    return 0.5 + 0.2 * tags + 0.1 * (len(table.blocks) > 1) + 0.1 * named

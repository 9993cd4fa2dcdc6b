"""What all CoNLL readers share: lines into rows of cells, rows into sequences, and what the columns are.

A file is tab-separated if most of its lines hold a tab, else separated by runs of spaces. A line without anything in it
(tabs and spaces aside) ends a sequence, and so does a `-DOCSTART-` line, which also begins a document. Comments: `# key
= value` goes with the sequence that follows; any other line that begins with "# " is a comment unless what follows are
labels that occur elsewhere in the file (`# O` may be the token "#"), or it has the tabs of a row. Every row must have
as many cells as the first one; labels may have blanks in them, and remarks that only some rows of a tab-separated file
have behind their labels (Universal NER: who marked the token) are left out. A CSV file with a row per token is read as
well; there the header may name a column of sequences (`sentence_id`), by which the rows are grouped then: an empty cell
goes on with the one above.

The columns of a file without a header are several annotators' labels, or layers of one annotation. They are annotators'
only if their labels overlap, and two columns that never say the same of a token are levels of nested names rather than
two people. The columns of CoNLL-2003 (token, part of speech, chunk, entity), CoNLL-X and CoNLL-U (a
number first) or WebAnno TSV 2 hold different things: then one of them is read, as a gold. Which one is clear for
entities and chunks in the last column, and for parts of speech in CoNLL-X and CoNLL-U; else it is asked for. A column
that says one thing of every whole sequence holds no labels of tokens; where the same text stands under several such
names, these are the annotators.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from lasca.errors import ParameterError, excerpt
from lasca.estimator import check_choice
from lasca.formats.base import SourceFile
from lasca.formats.names import (
    CHAPTERS,
    DOCUMENTS,
    FILES,
    LAYERS,
    NAMES,
    TOKEN_NAMES,
    named,
    over_sentences,
    plain_name,
)
from lasca.formats.tabular import csv_rows
from lasca.schemes import detect

__all__ = ["Block", "Layout", "Table", "are_crossed", "even_out", "is_header", "labels_elsewhere", "layout_of",
           "numbered", "overlapping", "read_table", "says_nothing", "split_spaces", "text_lines", "token_in",
           "with_feature"]  # fmt: skip

DOCSTART = "-DOCSTART-"
_TAG = re.compile(r"^(O|[?]?|[BIESLUM](-.+)?)$")
_MARK = re.compile(r"[BIESLUM]-.")
_KEY_VALUE = re.compile(r"^#\s*([^\s=]+)\s*=\s?(.*)$")
COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
ALIASES = {"cpostag": "upos", "cpos": "upos", "postag": "xpos", "pos": "upos"}
NOTHING = ("_", "-", "-X-", "?", "", "O", "*")
SHARED = 0.5  # of the smaller set of labels: from here on two columns speak of the same thing
ROWS = 20_000  # rows that are looked at
MOST_DIGITS = 12  # of the number of a token
PLACE = re.compile(r"\d{1,9}-\d{1,9}")
_NAMED = re.compile(r"#+ *(global\.columns *=|columns? *[:=])?(.+)")
_TAGGED_KEY = re.compile(r"(?:^|\|)([\w.]+)=[BSU]-\w")
LEAST, AGREED = 8, 0.1  # tokens that two columns label, and the share they must label the same to be two people


_IDENTITY = re.compile(r"(\w*ID):(\S+)")  # IMGID:15, before each tweet of Twitter-2015 and -2017


@dataclass
class Block:
    """One sequence: its rows of cells with their line numbers, the comments before it, its document's number."""

    rows: list[tuple[int, list[str]]] = field(default_factory=list)
    comments: dict[str, str] = field(default_factory=dict)
    document: int = 0

    @property
    def line(self) -> int:
        """The line of the first row."""
        return self.rows[0][0]

    def column(self, index: int) -> list[str]:
        """Return one cell of every row."""
        return [cells[index] for _, cells in self.rows]


@dataclass
class Table:
    """A file of columns: its sequences, the header if it has one, how many columns, comments and documents."""

    blocks: list[Block]
    header: list[str] | None
    n_columns: int
    n_comments: int
    n_documents: int
    n_remarks: int = 0


def text_lines(text: str) -> list[str]:
    """Split text at LF or CR LF (or at CR where there is no LF), and nowhere else."""
    if "\n" not in text:
        text = text.replace("\r", "\n")
    lines = text.split("\n")
    return [line[:-1] if line.endswith("\r") else line for line in lines]


def read_table(file: SourceFile, *, separator: str = "auto", header: bool | str = "auto") -> Table:
    """Read a file of columns; ragged rows are an error that names the line."""
    check_choice("separator", separator, ("auto", "tab", "space", "comma"))
    by_comma = separator == "comma" or (separator == "auto" and file.name.lower().endswith(".csv"))
    lines = text_lines(file.text())
    by_tab = separator == "tab" or (separator == "auto" and not by_comma and _mostly_tabs(lines))
    if by_comma:
        rows = _delimited(file)
        lines = [","] * len(rows)
    else:
        rows = [(number, _cells(line, by_tab)) for number, line in enumerate(lines, start=1)]
    _uncomment(rows, lines)
    table = Table([], None, 0, 0, 0, 0 if by_comma else even_out(rows, by_tab))
    known = labels_elsewhere(rows)
    block = Block()
    for (number, cells), line in zip(rows, lines):
        if not cells[0].strip(" ") and not any(cells[1:]):
            block = _closed(table, block)
        elif cells[0] == DOCSTART:
            block = _closed(table, block)
            table.n_documents += 1
        elif not by_comma and cells[0].startswith("#") and _is_comment(line, cells, known, by_tab):
            match = _KEY_VALUE.match(line)
            if match is None:
                table.n_comments += 1
                continue
            block = _closed(table, block) if block.rows else block
            block.comments[match[1]] = match[2]
        elif len(cells) == 1 < len(known) and not block.rows and (key := _IDENTITY.fullmatch(cells[0])):
            block.comments[key[1]] = key[2]
        elif table.header is None and not table.n_columns and is_header(cells, known, header):
            table.header, table.n_columns = cells, len(cells)
        elif cells == table.header:  # of another file that was put behind
            block, table.n_comments = _closed(table, block), table.n_comments + 1
        else:
            _check_width(table, file, number, cells, line)
            block.document = table.n_documents
            block.rows.append((number, cells))
    _closed(table, block)
    return _grouped(table, file)


def _uncomment(rows: list[tuple[int, list[str]]], lines: list[str]) -> None:
    """Make a comment before the first row a header, if it names the columns: # token ann ben, # global.columns = ..."""
    first = next((k for k, (_, cells) in enumerate(rows) if any(cells) and not cells[0].startswith("#")), 0)
    if not any(line.startswith("#") for line in lines[:first]):
        return
    plain = [cells for _, cells in rows[first:] if any(cells) and not cells[0].startswith("#")]
    numbers = all(cells[0].isdecimal() and "_" not in cells for cells in plain)  # else see `numbered`
    for k, found in enumerate(map(_NAMED.fullmatch, lines[:first])):
        if found is None:
            continue
        cells = re.split(r"\t+|\s+" if found[1] else r"\t+| +", found[2].strip())
        names = [plain_name(cell) for cell in cells]
        token = next((at for at, name in enumerate(names) if name in ("token", "word", "form", "tok")), None)
        fits = len(cells) == len(rows[first][1]) and "=" not in cells
        if fits and (token == 0 or (token and numbers and not set(COLUMNS) <= set(names))):
            rows[k], lines[k] = (rows[k][0], cells), "\t".join(cells)
            return


def even_out(rows: list[tuple[int, list[str]]], by_tab: bool) -> int:
    """Make rows even that have more cells behind their tags, none of them a tag; return how many were cut.

    Behind a tab these are remarks, and cut off; behind a space the rest of a label with blanks in it (`B-Job Title`, as
    Label Studio writes it).
    """
    plain = [cells for _, cells in rows if any(cells) and not cells[0].startswith("#") and cells[0] != DOCSTART]
    width = min(map(len, plain), default=0)
    longer = [cells for cells in plain if len(cells) > width]
    if not longer or width < 2 or not all(_TAG.match(cells[width - 1]) for cells in plain):
        return 0
    if any(_TAG.match(cell) for cells in longer for cell in cells[width:]):
        return 0
    if by_tab and (2 * len(longer) > len(plain) or len({len(cells) for cells in longer}) > 1):
        return 0
    if not by_tab and any(cells[width - 1][1:2] != "-" for cells in longer):
        return 0
    for cells in longer:
        cells[width - 1 :] = cells[width - 1 : width] if by_tab else [" ".join(cells[width - 1 :])]
    return len(longer) if by_tab else 0


def _delimited(file: SourceFile) -> list[tuple[int, list[str]]]:
    """Return the rows of a CSV file; a blank line, or a row of empty cells, is one empty cell."""
    rows = csv_rows(file, blank=True)
    return [(line, [cell.strip() for cell in cells] or [""]) for line, cells in rows]


def _grouped(table: Table, file: SourceFile) -> Table:
    """Make a sequence of all rows that have the same value in the column of sequences, if the header names one."""
    token = token_in(table.header or ())
    at = named((table.header or [])[:token], NAMES["sequence"]) if token else None
    if at is None and token and len(table.blocks) == 1:
        at = next((k for k in range(token) if _goes_on([cells[k] for _, cells in table.blocks[0].rows])), None)
    if at is None:
        return table
    before = (table.header or [])[:token]
    place, over = named(before, NAMES["position"]), over_sentences(before, before[at])
    groups: dict[str, Block] = {}
    value, names = "", [""] * len(over)
    for block in table.blocks:
        for line, cells in block.rows:
            names = [cells[k].strip() or name for k, name in zip(over, names)]
            last, value = value, "/".join(filter(None, [*names, cells[at].strip()])) if cells[at].strip() else value
            if value != last and value in groups and place is None:
                what = f"the sequence {excerpt(value)} begins again: they may be counted anew in each document"
                hint = "Give each sequence a number of its own, or add a column `document` before it"
                raise file.error(what, line, got=", ".join(cells), hint=hint)
            groups.setdefault(value, Block(comments={"sent_id": value}, document=block.document)).rows.append(
                (line, cells)
            )
    for block in groups.values():
        if place is not None and all(
            cells[place].isdecimal() and len(cells[place]) < MOST_DIGITS for _, cells in block.rows
        ):
            block.rows.sort(key=lambda row: int(row[1][place]))
            again = next((b for a, b in pairwise(block.rows) if int(a[1][place]) == int(b[1][place])), None)
            if again is not None:
                raise file.error(
                    "a second row stands at the same place of a sequence, so the table is long: a row per annotator",
                    again[0],
                    got=", ".join(again[1]),
                    hint="Read it as format=table, and name its columns: annotator=… and label=… (on the command line: "
                    "-f table -r annotator=NAME -r label=NAME)",
                )
    table.blocks[:] = groups.values()
    return table


def _goes_on(cells: Sequence[str]) -> bool:
    """Say whether a column numbers sequences, however it is called: numbers that rise, and stay for several rows."""
    if not all(cell.isdecimal() and len(cell) < MOST_DIGITS for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    return 1 < len(set(numbers)) < len(numbers) and all(a <= b for a, b in pairwise(numbers))


def token_in(header: Sequence[str]) -> int | None:
    """Return which column of a header is called token, word, …"""
    return next((k for k, name in enumerate(header) if plain_name(name) in TOKEN_NAMES), None)


def refuse_texts(table: Table, file: SourceFile, token: int) -> None:
    """Refuse rows of whole texts: they are not the tokens of one sequence."""
    if table.header is not None and plain_name(table.header[token]) != "text":
        return  # so they are called
    if holds_texts(table, token):
        raise file.error(
            "the first column holds texts of several words, and not tokens: the labels are those of whole texts",
            table.blocks[0].line,
            got=table.blocks[0].rows[0][1][token],
            hint="Give it a header, text and label, and a column annotator (or a file for each of them), or a column "
            "of labels for each of them (text, annotator_1, annotator_2)",
        )


def holds_texts(table: Table, column: int) -> bool:
    """Say whether most cells of a column are of several words."""
    cells = [cell for block in table.blocks for cell in block.column(column)]
    return 2 * sum(" " in cell.strip() for cell in cells) > len(cells)


def _mostly_tabs(lines: list[str]) -> bool:
    filled = [line for line in lines if line.strip() and not line.startswith(("# ", DOCSTART))]
    return 2 * sum("\t" in line for line in filled) > len(filled)


def _cells(line: str, by_tab: bool) -> list[str]:
    if by_tab:
        token, *rest = line.split("\t")
        return [token, *(cell.strip(" ") for cell in rest)]
    return split_spaces(line.replace("\t", " ")) if line and line.strip(" \t") else [""]


def split_spaces(line: str) -> list[str]:
    """Split at runs of spaces; a space at the beginning leaves an empty first cell."""
    cells = line.rstrip(" ").split(" ")
    return [cells[0], *filter(None, cells[1:])] if "" in cells else cells


def labels_elsewhere(rows: list[tuple[int, list[str]]]) -> list[set[str]]:
    """Return the cells of each column, in rows of the usual width that do not begin with "#"; the first row aside."""
    plain = [cells for _, cells in rows if any(cells) and not cells[0].startswith("#") and cells[0] != DOCSTART]
    plain = plain or [cells for _, cells in rows if len(cells) > 1]
    if not plain:
        return []
    width = max(Counter(len(cells) for cells in plain).items(), key=lambda item: (item[1], item[0]))[0]
    usual = [cells for cells in plain[1:] if len(cells) == width and cells != plain[0]]  # a header, put together twice
    return [{cells[column] for cells in usual} for column in range(width)]


def _is_comment(line: str, cells: list[str], known: list[set[str]], by_tab: bool) -> bool:
    if by_tab and len(cells) == len(known):  # the names of the columns, as the Parallel Meaning Bank has them
        return line.lstrip("#").startswith(" ") and not any(
            cell in column for cell, column in zip(cells[1:], known[1:])
        )
    if len(cells) != len(known) and (
        _KEY_VALUE.match(line) is not None or (len(cells) == 1 and not line[1:2].isalnum())
    ):
        return True
    if len(cells) != len(known) and line.startswith(("#\t", "#begin document", "#end document")):
        return True  # GermEval's sources, the borders of CoNLL-2012
    if not line.startswith("# "):
        return False
    labels = [cell for cell in cells[1:] if cell not in ("?", "")]
    return len(cells) != len(known) or not set().union(*known[1:]).issuperset(labels)


def is_header(cells: list[str], known: list[set[str]], header: bool | str) -> bool:
    """Say whether a row names the columns; `known` are the cells of each column elsewhere."""
    if header is not True and header is not False:
        check_choice("header", header, ("auto",))
        token = token_in(cells)
        names = len(cells) > 1 and token == 0
        if token and known and len(cells) > token + 1:  # numbers and names of sequences stand before the token
            keys = ("", "unnamed:_0", "id", "#", *NAMES["sequence"], *NAMES["position"], *DOCUMENTS, *FILES, *CHAPTERS)
            names = all(
                plain_name(name) in keys or all(cell.isdecimal() for cell in column)
                for name, column in zip(cells[:token], known)
            )
            if names and named(cells[:token], NAMES["sequence"]) is not None:
                return True  # whatever stands below: POS is a part of speech, too
        tagged = any(_MARK.match(cell) for cell in cells[1:])
        if tagged or (len(set(cells)) < len(cells) and all(_TAG.match(cell) for cell in cells[1:])):
            return False  # the token "Text" and its tags; other names that repeat are refused where columns are named
        below = set().union(*known[1:])
        called = len(set(cells[1:])) > 1 or plain_name(cells[-1]) in (*NAMES["label"], *LAYERS)
        if called and any(map(_MARK.match, below)) and not any(map(_TAG.match, cells[1:])):
            names = names or all(map(_TAG.match, below))  # over tags, whatever the tokens are called
        return names and below.isdisjoint(cells[1:])
    return header


def _check_width(table: Table, file: SourceFile, number: int, cells: list[str], line: str) -> None:
    if not table.n_columns:
        table.n_columns = len(cells)
    if len(cells) != table.n_columns:
        raise file.error(
            f"this line has {len(cells)} cells where the lines before have {table.n_columns}",
            number,
            got=line,
            hint="A missing label is written as ?",
        )


def _closed(table: Table, block: Block) -> Block:
    if not block.rows:
        return block
    table.blocks.append(block)
    return Block()


@dataclass(frozen=True)
class Layout:
    """Where the token stands, which columns hold labels, and whether these are annotators' or one gold layer."""

    token: int
    labels: tuple[int, ...]
    annotators: bool
    note: str = ""


def numbered(table: Table) -> bool:
    """Say whether the first column numbers the tokens: 1, 2, 3 … or 0, 1, 2 … in each sequence, or through the file.

    Lines of CoNLL-U that are no tokens (3-4, 3.1) stand between.
    """
    if table.n_columns < 3 or table.header is not None or not table.blocks:
        return False
    if all(PLACE.fullmatch(cells[0]) for block in table.blocks[:50] for _, cells in block.rows):
        return True  # sentence and token, 1-1: WebAnno TSV 1 and 2
    longest = 0
    for block in table.blocks[:50]:
        numbers: list[int] = []
        for cell in block.column(0):
            if cell.isdecimal() and len(cell) < MOST_DIGITS:
                numbers.append(int(cell))
            elif not cell.replace("-", "").replace(".", "").isdecimal():
                return False
        if not numbers or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            return False
        longest = max(longest, len(numbers) + (numbers[0] < 2))  # 0 and 1 are where one begins to count
    return longest > 1


def layout_of(
    table: Table, file: SourceFile, column: int | str | None, token: int | None = None, but: Sequence[int] = ()
) -> Layout:
    """Return what the columns are; `column` (a number from 1, or a name) chooses one of several layers.

    `token` is the column of tokens where a header names it; those in `but` hold no labels of tokens.
    """
    ids = numbered(table)
    token = int(ids) if token is None else token
    if column is not None:
        at = _named(table, file, column, ids)
        if at == token:
            raise ParameterError("column", column, f"another column than that of the tokens ({token + 1})")
        return Layout(token, (at,), False, f"The labels are those of column {at + 1}.")
    rest = [k for k in range(token + 1, table.n_columns) if k not in but]
    if _is_bare(table) and are_crossed(table.blocks[0].column(0), table.blocks[0].column(1)):
        raise file.error(
            "the first two cells of a line never stand together twice, and the first one does: these are items and who "
            "labelled them, and not tokens",
            table.blocks[0].line,
            got=" ".join(table.blocks[0].rows[0][1]),
            hint="Give the table a header, such as item,worker,label",
        )
    if table.header is None and not ids and len(rest) > 1 and _stands_still(table):
        raise file.error(
            "the first column hardly changes from line to line: it names documents or sentences, and not tokens",
            table.blocks[0].line,
            got=" ".join(table.blocks[0].rows[0][1]),
            hint="Name the columns: columns=_,token,gold:ner (on the command line: -r columns=_,token,gold:ner), or "
            "annotator,token,label if they are annotators"
            + ("; if it is a table, give it a header such as item,worker,label" if _is_bare(table) else "")
            if table.n_columns == 3
            else "Write a first line that names the columns, for example sentence_id, token_id, token and the names of "
            "the annotators (gold for a gold, _ for what is neither): rows are then put together by sentence_id",
        )
    if len(rest) == 1 and not ids:
        if table.header is None and _tagged(_labels(table, 0)) and not _tagged(_labels(table, 1)):
            return Layout(1, (0,), False, "The tags stand in the first column, the tokens in the second.")
        return Layout(token, tuple(rest), False)
    sets = {k: _labels(table, k) for k in rest}
    full = [k for k in rest if sets[k] or not (ids or _says_nothing(table, k))]
    if len(full) == 1 and (not ids or _tagged(sets[full[0]])):
        return Layout(token, tuple(full), False)
    strangers = _strangers(table, full)
    if not ids and full and not strangers and _overlapping([_kinds(sets[k]) for k in full]):
        return Layout(token, tuple(full), True)
    if not ids and strangers and _overlapping([_kinds(sets[k]) for k in full]):
        a, b = strangers[0] + 1, strangers[1] + 1
        raise file.error(
            f"columns {a} and {b} have the same labels, and hardly ever say the same of a token: they may be levels of "
            "nested names, and not two annotators",
            table.blocks[0].line,
            got=f"{a}: {_few(sets[a - 1])}; {b}: {_few(sets[b - 1])}",
            hint=f"Name the level: column={a} (on the command line: -r column={a}). If they are annotators, name them: "
            "columns=token,ann,ben,…",
        )
    inside = _tags_in_features(table) if ids and table.n_columns == len(COLUMNS) else None
    if inside is not None:
        raise file.error(
            f"this file holds parts of speech, and tags of spans inside a column of others ({inside}): it is not clear "
            "which of them are wanted",
            table.blocks[0].line,
            hint=f"Name the column: column={inside} (on the command line: -r column={inside}), or column=upos",
        )
    chosen = _chosen(table, full, sets, ids)
    if chosen is None:
        full = [k for k in full if not all(label.isdecimal() for label in sets[k])] or full
        tagged = [k for k in full if _tagged(sets[k])]
        best = max(tagged, key=lambda k: (_n_marks(table, k), -k), default=(full or rest)[-1]) + 1
        names = [f" ({excerpt(name, 30)})" for name in table.header] if table.header else [""] * table.n_columns
        raise file.error(
            "the columns of this file hold different things, and it is not clear which of them is wanted: "
            + "; ".join(f"{k + 1}{names[k]}: {_few(sets[k])}" for k in full),
            table.blocks[0].line,
            hint=f"Name the column: column={best} (on the command line: -r column={best}). If they are "
            f"several annotators' labels of the same kind, name them all: columns={'_,' if ids else ''}token,ann,ben,…"
            + ("; if it is a table, give it a header such as worker,item,label" if _is_bare(table) else ""),
        )
    others = ", ".join(f"{k + 1}: {_few(sets[k], 3)}" for k in full if k != chosen)
    what = f"{chosen + 1}{f' ({COLUMNS[chosen]})' if ids and table.n_columns == len(COLUMNS) else ''}"
    note = (
        "The columns hold different things, so they are not annotators: the gold is column "
        f"{what}, {_few(sets[chosen])}; column=… reads another one (on the command line: -r column=…; {others})."
    )
    return Layout(token, (chosen,), False, note)


def with_feature(table: Table, file: SourceFile, column: int | str | None) -> tuple[Table, int | str | None, bool]:
    """Return the table with one key of a column such as MISC in its place, if `column` names it ("misc:name").

    And the column that is then meant, and whether the key, if there is one, stands anywhere in the file.
    """
    place, _, key = str(column or "").partition(":")
    if not key or (table.header is not None and str(column) in table.header):
        return table, column, True
    at = _named(table, file, place, numbered(table))
    found = 0
    for block in table.blocks:
        for _, cells in block.rows:
            values = dict(pair.partition("=")[::2] for pair in cells[at].split("|"))
            cells[at] = values.get(key, "_")
            found += key in values
    return table, at + 1, found > 0


def says_nothing(labels: Collection[str]) -> bool:
    """Say whether `_` among labels stands for O: they are tags, and there is no O. So CoNLL-U writes it."""
    others = [label for label in labels if label != "_"]
    return len(others) > 0 and all(_MARK.match(label) for label in others)


def _tags_in_features(table: Table) -> str | None:
    """Return the key under which FEATS or MISC of CoNLL-U hold tags of spans, name=B-PER, as "misc:name"."""
    for k in (9, 5):
        for block in table.blocks[:500]:
            for cell in block.column(k):
                if (match := _TAGGED_KEY.search(cell)) is not None:
                    return f"{COLUMNS[k]}:{match[1]}"
    return None


def _is_bare(table: Table) -> bool:
    """Say whether these may be the rows of a table without header: three cells, and nothing between the rows."""
    return table.header is None and len(table.blocks) == 1 and table.n_columns == 3


def are_crossed(first: Sequence[str], second: Sequence[str]) -> bool:
    """Say whether the cells of a column stand twice or more on average, always beside another one."""
    return len(set(zip(first, second))) == len(first) >= 2 * len(set(first))


def _n_marks(table: Table, column: int) -> int:
    """Return how many spans begin in a column of tags."""
    return sum(cells[column][:2] in ("B-", "S-", "U-") for block in table.blocks for _, cells in block.rows)


def _stands_still(table: Table) -> bool:
    pairs = [(a[0], b[0]) for block in table.blocks[:500] for (_, a), (_, b) in pairwise(block.rows)]
    still = sum(a == b for a, b in pairs)
    return (len(pairs) > 2 and still > 0.6 * len(pairs)) or (len(pairs) == still == 2)


def _named(table: Table, file: SourceFile, column: int | str, ids: bool) -> int:
    name = str(column).strip().lower()
    if name.isdecimal() and 1 <= int(name) <= table.n_columns:
        return int(name) - 1
    name = ALIASES.get(name, name)
    if ids and name in COLUMNS and COLUMNS.index(name) < table.n_columns:
        return COLUMNS.index(name)
    names = COLUMNS if ids else [cell.lower() for cell in table.header or ()]
    if not ids and str(column).strip().lower() in names:
        return names.index(str(column).strip().lower())
    allowed = f"a number from 1 to {table.n_columns}" + (f", or one of {', '.join(names)}" if names else "")
    raise ParameterError("column", column, f"{allowed} ({file.shown} has {table.n_columns} columns)")


def _labels(table: Table, column: int) -> set[str]:
    found: set[str] = set()
    left = ROWS
    for block in table.blocks:
        found.update(block.column(column))
        left -= len(block.rows)
        if left < 0:
            break
    return found - set(NOTHING)


def _says_nothing(table: Table, column: int) -> bool:
    """Say whether a column holds nothing but a sign for nothing, and not O, which is a label."""
    return all(cell in ("_", "-", "-X-", "*") for block in table.blocks for cell in block.column(column))


def overlapping(table: Table, columns: Sequence[int]) -> bool:
    """Say whether these columns speak of the same thing: their labels overlap, in whatever tag schemes."""
    return _overlapping([_kinds(_labels(table, k)) for k in columns])


def _kinds(labels: Collection[str]) -> set[str]:
    """Return what labels speak of, in whatever tag scheme and letters: B-PER, b-per, I\u2011PER."""
    return {re.sub(r"^[BIESLUM][-_\u2010-\u2015]", "", label, flags=re.IGNORECASE).casefold() for label in labels}


def _overlapping(sets: Sequence[set[str]]) -> bool:
    """Say whether every column has much in common with the others (or says nothing but O)."""
    said = [labels for labels in sets if labels]
    if len(said) < 2:
        return len(said) == 1 or bool(sets)
    for k, labels in enumerate(said):
        shares = [len(labels & other) / min(len(labels), len(other)) for j, other in enumerate(said) if j != k]
        if max(shares) < SHARED:
            return False
    return True


def _strangers(table: Table, columns: Sequence[int]) -> tuple[int, int] | None:
    """Return two columns that label the same tokens (O and the like aside), and hardly ever label one the same."""
    rows = [cells for block in table.blocks for _, cells in block.rows][:ROWS]
    for a, b in combinations(columns, 2):
        both = [cells for cells in rows if cells[a] not in NOTHING and cells[b] not in NOTHING]
        if len(both) >= LEAST and sum(cells[a] == cells[b] for cells in both) < AGREED * len(both):
            return a, b
    return None


def _chosen(table: Table, full: Sequence[int], sets: dict[int, set[str]], ids: bool) -> int | None:
    """Return the one column that is meant, or None if that is not clear."""
    if not full or any(not _disjoint(sets[a], sets[b]) for a in full for b in full if a < b and not ids):
        return None
    tagged = [k for k in full if _tagged(sets[k])]
    if ids:
        usual = table.n_columns == len(COLUMNS) and not tagged
        return next((k for k in (3, 4) if sets.get(k)), None) if usual else None
    return full[-1] if full[-1] in tagged and len(full) <= 3 else None


def _tagged(labels: set[str]) -> bool:
    bare = {"B", "I"} <= labels <= set("BIESLUM")
    return bare or (any("-" in label for label in labels) and detect({*labels, "O"}) is not None)


def _disjoint(a: set[str], b: set[str]) -> bool:
    return not a or not b or len(a & b) / min(len(a), len(b)) < SHARED / 5


def _few(labels: set[str], n: int = 4) -> str:
    shown = ", ".join(excerpt(label, 20) for label in sorted(labels, key=lambda x: (not x[:1].isalnum(), x))[:n])
    return f"{shown or 'nothing'}{', …' if len(labels) > n else ''}"

"""What the columns of a file without a header are: several annotators' labels, or layers of one annotation.

Columns are annotators' only if their labels overlap. The columns of CoNLL-2003 (token, part of speech, chunk, entity),
CoNLL-X and CoNLL-U (a number first) or WebAnno TSV 2 hold different things: then one of them is read, as a gold. Which
one is clear for entities and chunks in the last column, and for parts of speech in CoNLL-X and CoNLL-U; else it is
asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lasca.errors import ParameterError, excerpt
from lasca.formats.base import SourceFile
from lasca.formats.conll_lines import Table
from lasca.schemes import detect

__all__ = ["COLUMNS", "Layout", "layout_of", "numbered"]

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
ALIASES = {"cpostag": "upos", "cpos": "upos", "postag": "xpos", "pos": "upos"}
NOTHING = ("_", "-", "-X-", "?", "", "O", "*")
SHARED = 0.5  # of the smaller set of labels: from here on two columns speak of the same thing
ROWS = 20_000  # rows that are looked at
MOST_DIGITS = 12  # of the number of a token


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


def layout_of(table: Table, file: SourceFile, column: int | str | None) -> Layout:
    """Return what the columns are; `column` (a number from 1, or a name of CoNLL-U's) chooses one of several layers."""
    ids = numbered(table)
    token = 1 if ids else 0
    if column is not None:
        at = _named(table, file, column, ids)
        if at == token:
            raise ParameterError("column", column, f"another column than that of the tokens ({token + 1})")
        return Layout(token, (at,), False, f"The labels are those of column {at + 1}.")
    rest = list(range(token + 1, table.n_columns))
    if len(rest) == 1 and not ids:
        if _tagged(_labels(table, 0)) and not _tagged(_labels(table, 1)):
            return Layout(1, (0,), False, "The tags stand in the first column, the tokens in the second.")
        return Layout(token, tuple(rest), False)
    sets = {k: _labels(table, k) for k in rest}
    full = [k for k in rest if sets[k] or not (ids or _says_nothing(table, k))]
    if len(full) == 1 and (not ids or _tagged(sets[full[0]])):
        return Layout(token, tuple(full), False)
    if not ids and full and _overlapping([sets[k] for k in full]):
        return Layout(token, tuple(full), True)
    chosen = _chosen(table, full, sets, ids)
    if chosen is None:
        full = [k for k in full if not all(label.isdecimal() for label in sets[k])] or full
        best = next((k for k in reversed(full) if _tagged(sets[k])), (full or rest)[-1]) + 1
        raise file.error(
            "the columns of this file hold different things, and it is not clear which of them is wanted: "
            + "; ".join(f"{k + 1}: {_few(sets[k])}" for k in full),
            table.blocks[0].line,
            hint=f"Name the column: column={best} (on the command line: -r column={best}). If they are "
            f"several annotators' labels of the same kind, name them all: columns={'_,' if ids else ''}token,ann,ben,…",
        )
    others = ", ".join(f"{k + 1}: {_few(sets[k], 3)}" for k in full if k != chosen)
    what = f"{chosen + 1}{f' ({COLUMNS[chosen]})' if ids and table.n_columns == len(COLUMNS) else ''}"
    note = (
        "The columns hold different things, so they are not annotators: the gold is column "
        f"{what}, {_few(sets[chosen])}; column=… reads another one ({others})."
    )
    return Layout(token, (chosen,), False, note)


def _named(table: Table, file: SourceFile, column: int | str, ids: bool) -> int:
    name = str(column).strip().lower()
    if name.isdecimal() and 1 <= int(name) <= table.n_columns:
        return int(name) - 1
    name = ALIASES.get(name, name)
    if ids and name in COLUMNS and COLUMNS.index(name) < table.n_columns:
        return COLUMNS.index(name)
    allowed = f"a number from 1 to {table.n_columns}" + (f", or one of {', '.join(COLUMNS)}" if ids else "")
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
    return any("-" in label for label in labels) and detect({*labels, "O"}) is not None


def _disjoint(a: set[str], b: set[str]) -> bool:
    return not a or not b or len(a & b) / min(len(a), len(b)) < SHARED / 5


def _few(labels: set[str], n: int = 4) -> str:
    shown = ", ".join(excerpt(label, 20) for label in sorted(labels)[:n])
    return f"{shown or 'nothing'}{', …' if len(labels) > n else ''}"

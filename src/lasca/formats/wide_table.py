"""A wide table: a row per text, a column per annotator, as CSV or TSV with a header.

```
id,text,annotator_1,annotator_2,majority
1,I like it,good,good,good
2,It is a book,neutral,,neutral
```

Each text is a sequence of one token; an empty cell is missing. Columns are annotators if their labels overlap; one
whose name says that it was decided (`gold`, `majority`, `consensus`, `final`, `label`, …) is a gold, and one whose name
says that a machine said it (`predicted`, `model_b`, `gpt-4`, …) a model. Where several are called as people (`rater 1`,
`ann_ada`, …) no others are annotators. Columns that may be questions (`food`, `service`) or counts are asked about:
those of which none is called as people or numbered (`prompt_1`), and those of nothing but numbers, or yes and no, of
which one is not called as people; `annotators` names them, as it does where columns fall into several groups. `text`
names the column of the texts, `item` that of their ids, `golds` the golds; all other columns are metadata. `missing` is
a label that stands for none (Snorkel's -1); NA and N/A are asked about. Where a column beside each says who it was
(`label_1`, `worker_1`, …), these are the annotators. A row per token is read by the format conll.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError, excerpt, typed
from lasca.formats.base import Collector, SourceFile, natural_key
from lasca.formats.names import (
    END,
    NAMES,
    START,
    are_people,
    by_question,
    has_places,
    is_person,
    may_count,
    plain_name,
    role_of,
    signed,
)
from lasca.formats.tabular import NAN, ask_missing, columns_of_tags, csv_rows, holds_lists, looks_delimited, no_labels

__all__ = ["NAME", "read", "sniff"]

NAME = "wide"
SUFFIXES = (".csv", ".tsv", ".txt", "")
TEXTS = re.compile(r"text|sentence|tweet|comment|utterance|review|message|document|content|post", re.IGNORECASE)
ITEM = re.compile(r"^(?:|#|id|idx|index|item|no|nr|unnamed: 0|.*[ _-]id|.*[a-z]Id)$")
MOST = 6  # different labels of a column, or as many as half of the rows
SHARED = 0.5  # of the smaller set of labels: from here on two columns speak of the same thing
WORDS = 2  # spaces in a cell that is a text
FILLED = 0.8  # share of rows that have a text: a column of remarks has fewer
UNDECIDED = ("-", "?", "_", "tie", "no majority", "no_majority", "no consensus", "undecided")  # if nobody said so
COUNT = re.compile(r"(?:^|_)(?:idx|index|count|num)$")  # a column of numbers, and no labels
ENDS = re.compile(r"[\s_.:-]+|(?<=[a-z])(?=\d)")  # before the part of a name that tells columns apart
SEVERAL = re.compile(r"\s*[,;|+]\s*")  # between the labels of a cell that holds several


@dataclass(frozen=True)
class _Wanted:
    """What the user says of the columns."""

    text: str | None = None
    item: str | None = None
    annotators: tuple[str, ...] = ()
    golds: tuple[str, ...] = ()
    missing: str | None = None


@dataclass(frozen=True)
class _Layout:
    """Which column is what; `text` is None where there are only ids."""

    text: int | None
    item: int | None
    annotators: tuple[int, ...]
    golds: tuple[int, ...]
    others: tuple[int, ...]
    who: Mapping[int, int]
    """Of annotators' columns that are numbered only: the column beside each that names who it was."""


class _Table:
    """One file: its header, its rows with their lines, and the labels of each column."""

    def __init__(self, file: SourceFile, wanted: _Wanted) -> None:
        (_, header), *self.rows = csv_rows(file)
        self.file, self.wanted = file, wanted
        self.header = [cell.strip() for cell in header]
        self.nothing = set(no_labels(wanted.missing))
        columns = ([cells[k].strip() for _, cells in self.rows] for k in range(len(header)))
        self.cells = [[cell for cell in column if cell not in self.nothing] for column in columns]
        self.labels = [set(column) for column in self.cells]
        whole = {label for own in self.labels for label in own if label.isdecimal()}
        for own in self.labels:
            if own and own.isdisjoint(whole) and {label.removesuffix(".0") for label in own} <= whole:
                own |= {label.removesuffix(".0") for label in own}  # pandas writes 1.0 where a cell is empty

    def layout(self) -> _Layout:
        """Say which column is what; what is not clear is an error that names the option."""
        self._refuse_rows()
        text, item = self.text(), self.item()
        golds = [self._named(name, "golds") for name in self.wanted.golds]
        given = [self._named(name, "annotators") for name in self.wanted.annotators]
        pairs = {self.header.index(said): self.header.index(who) for said, who in signed(self.header).items()}
        given = given or list(pairs)
        who = {k: pairs[k] for k in given} if pairs.keys() >= set(given) else {}
        if given and not golds:
            known = {label for k in given for label in self.labels[k]}
            rest = [k for k, own in enumerate(self.labels) if own and own <= known and k not in (text, item, *given)]
            golds = [k for k in rest if role_of(self.header[k]) == "gold"]
        if not given:
            group = self._group((text, item))
            golds += [k for k in group if self.role(k) == "gold" and k not in golds]
            given = [k for k in group if k not in golds]
            people = [k for k in given if self.role(k) == "annotator"]
            if sum(is_person(self.header[k]) for k in people) > 1:
                people = [k for k in people if is_person(self.header[k])]
                given = [k for k in given if k in people or role_of(self.header[k]) == "model"]
            if len(people) < 2:
                raise self._unclear([given] if len(given) > 1 else [])
            if asked := by_question([self.header[k] for k in people]):
                raise self._unclear([[self.header.index(name) for name in group] for group in asked])
            if self.questions(people) or not are_people([self.header[k] for k in people]):
                raise self._unclear([people])
        ask_missing((cell for k in given for cell in self.labels[k]), self.wanted.missing, self.error)
        used = {text, item, *golds, *given, *who.values()}
        others = [k for k in range(len(self.header)) if k not in used]
        return _Layout(text, item, tuple(given), tuple(golds), tuple(others), who)

    def role(self, column: int) -> str:
        """Return who speaks in a column; where pandas numbered columns of one name (label, label.1), all are alike."""
        name = self.header[column]
        return "annotator" if f"{name}.1" in self.header else role_of(name)

    def _refuse_rows(self) -> None:
        """Refuse what people write around a table: a second line of header, names that repeat, totals below."""
        for k, name in enumerate(self.header):
            if self.cells[k] and (self.header.index(name) < k or (k and not name)):
                raise self.error(
                    f"column {k + 1} has "
                    + (f"the name of another, {name!r}" if name else f"no name, and holds {self.cells[k][0]!r}"),
                    "Every column needs a name of its own: make one line of two lines of header, and take out remarks",
                )
        for k, name in enumerate(self.header):
            rest = [line for line, cells in self.rows if not cells[k].strip()]
            if _is_id(name) and 0 < 10 * len(rest) < len(self.rows) and len(self.labels[k]) == len(self.cells[k]):
                raise self.file.error(
                    f"a row has nothing in the column {name!r}, which names all others: it may be a total",
                    rest[0],
                    got=", ".join(next(cells for line, cells in self.rows if line == rest[0])),
                    hint="Take such rows out, or fill the column",
                )

    def _group(self, used: tuple[int | None, ...]) -> list[int]:
        """Return the one group of columns that may be annotators': the only one, or the only one called as people."""
        groups = self.groups(used)
        called = [group for group in groups if sum(is_person(self.header[k]) for k in group) > 1]
        if len(groups) != 1 and len(called) != 1:
            raise self._unclear(called or groups)
        chosen = (called or groups)[0]
        ends = [{ENDS.split(self.header[k].lower())[-1] for k in group} for group in (chosen, *groups)]
        beside = [group for group, own in zip(groups, ends[1:]) if group != chosen and own == ends[0]]
        if beside:  # annotator_a, label_a: who it was, and what they said
            raise self._unclear([*beside, chosen])
        return chosen

    def text(self) -> int | None:
        """Return the column of the texts: the one that is named, that is called so, or that alone holds words."""
        if self.wanted.text is not None:
            return self._named(self.wanted.text, "text")
        filled = [k for k, cells in enumerate(self.cells) if len(cells) >= FILLED * len(self.rows) > 0]
        wordy = [k for k in filled if 2 * sum(c.count(" ") >= WORDS for c in self.cells[k]) > len(self.cells[k])]
        called = [k for k in wordy if TEXTS.search(self.header[k])]
        exact = [k for k in called if plain_name(self.header[k]) in NAMES["token"]]
        for found in (exact, called, wordy):
            if len(found) == 1:
                return found[0]
        if wordy:
            raise self.error(
                f"it is not clear which column holds the texts: {', '.join(self.header[k] for k in wordy)}",
                f"Name it: text=… (on the command line: {typed(f'text={self.header[wordy[0]]}')})",
            )
        return next((k for k in filled if plain_name(self.header[k]) in NAMES["token"]), None)

    def item(self) -> int | None:
        """Return the column of ids: the one that is named, or that is called so and never repeats itself."""
        if self.wanted.item is not None:
            return self._named(self.wanted.item, "item")
        n = len(self.rows)
        return next((k for k, name in enumerate(self.header) if _is_id(name) and len(self.labels[k]) == n), None)

    def groups(self, used: tuple[int | None, ...]) -> list[list[int]]:
        """Return the groups of columns that speak of the same thing: their labels are few, and overlap."""
        most = max(MOST, len(self.rows) // 2)
        places = [
            k for k, n in enumerate(self.header) if plain_name(n) in (*START, *END) or COUNT.search(plain_name(n))
        ]
        used = (*used, *places)
        rest = [k for k, labels in enumerate(self.labels) if k not in used and 0 < len(labels) <= most]
        groups: list[list[int]] = []
        for k in rest:
            near = [group for group in groups if any(self._overlap(k, other) for other in group)]
            joined = sorted([k, *(other for group in near for other in group)])
            groups = [*(group for group in groups if group not in near), joined]
        return sorted(group for group in groups if len(group) > 1)

    def _overlap(self, a: int, b: int) -> bool:
        both = self.labels[a] & self.labels[b]
        return len(both) >= SHARED * min(len(self.labels[a]), len(self.labels[b]))

    def wordy(self, column: int) -> bool:
        """Say whether most cells of a column hold several words."""
        return 2 * sum(" " in cell for cell in self.cells[column]) > len(self.cells[column])

    @cached_property
    def undecided(self) -> set[str]:
        """Signs for none that stand in some column, and not in all that hold labels."""
        signs = {label for labels in self.labels for label in labels if label.lower() in UNDECIDED}
        return {sign for sign in signs if sum(sign in labels for labels in self.labels) == 1}

    def is_several(self, cell: str, layout: _Layout) -> bool:
        """Say whether a cell holds several labels: each part of it stands alone elsewhere."""
        known = {label for k in (*layout.annotators, *layout.golds) for label in self.labels[k]}
        return all(part in known for part in SEVERAL.split(cell))

    def questions(self, columns: Sequence[int]) -> bool:
        """Say whether these columns may be questions (yes and no) or counts, rather than what people said."""
        return may_count([self.header[k] for k in columns], (label for k in columns for label in self.labels[k]))

    def _named(self, name: str, option: str) -> int:
        if name not in self.header:
            raise ParameterError(option, name, f"a column of {self.file.shown}: {', '.join(self.header)}")
        return self.header.index(name)

    def error(self, what: str, hint: str) -> FormatError:
        """Make an error about the columns."""
        return self.file.error(what, 1, hint=hint)

    def _unclear(self, groups: list[list[int]]) -> FormatError:
        people = [[k for k in group if self.role(k) != "gold"] for group in groups]
        groups = sorted(people, key=lambda group: (self.questions(group), -len(group)))
        shown = [", ".join(self.header[k] for k in group) for group in groups]
        if len(groups) == 1:
            plain = self.questions(groups[0])
            kind = "hold yes and no, or numbers" if plain else "have the same labels, and are not called as people"
            what = f"the columns {shown[0]} {kind}: they may be annotators, questions or counts"
        elif groups:
            what = f"there are several groups of columns with the same labels: {'; '.join(shown)}"
        else:
            what = f"no two columns hold the labels of annotators: {', '.join(self.header)}"
        names = shown[0].replace(", ", ",") if shown else "ann,ben"
        hint = f"Name the columns of annotators: annotators=… (on the command line: {typed(f'annotators={names}')})"
        return self.error(excerpt(what, 600), hint)


def read(
    files: Sequence[SourceFile],
    *,
    annotators: Sequence[str] | str = (),
    golds: Sequence[str] | str = (),
    text: str | None = None,
    item: str | None = None,
    missing: str | None = None,
) -> CrowdCorpus:
    """Read tables; the options name columns. Of several files each adds texts, unless their ids are the same."""
    wanted = _Wanted(text, item, _list(annotators), _list(golds), missing)
    collector = Collector(files, NAME)
    collector.golds = wanted.golds
    for file in sorted(files, key=lambda file: natural_key(file.name)):
        table = _Table(file, wanted)
        layout = table.layout()
        prefix = f"{PurePosixPath(file.name).with_suffix('')}/" if len(files) > 1 else ""
        for number, (line, cells) in enumerate(table.rows):
            _add(
                collector, table, layout, [cell.strip() for cell in cells], f"{file.shown}:{line}", f"{prefix}{number}"
            )
        _tell(collector, table, layout)
    return collector.corpus()


def _is_id(name: str) -> bool:
    return any(map(ITEM.match, (name, name.lower())))


def _list(names: Sequence[str] | str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(names)


def _add(collector: Collector, table: _Table, layout: _Layout, cells: list[str], where: str, number: str) -> None:
    id = cells[layout.item] if layout.item is not None and cells[layout.item] else number
    text = "" if layout.text is None else cells[layout.text]
    if layout.text is not None and not text:
        collector.count("rows without a text, called by their ids", 1, where)
    text = text or id
    metadata = {table.header[k] or "column": cells[k] for k in layout.others if cells[k]}
    known = {"document": id, **metadata, "text": text}
    collector.sequence(id, [text], chars=[(0, len(text))], metadata=known, where=where)
    for k in (*layout.annotators, *layout.golds):
        name, gold = cells[layout.who[k]] if k in layout.who else table.header[k] or str(k + 1), k in layout.golds
        label = None if cells[k] in table.nothing else cells[k]
        collector.count("labels nan, taken as missing", int(cells[k] in NAN), where)
        if gold and label in table.undecided:
            label = None
            collector.count("golds that are a sign for none", 1, f"{where}: {cells[k]}")
        if label is not None and set(SEVERAL.split(label)) - {label} and table.is_several(label, layout):
            collector.count("several labels in a cell, read as one", 1, f"{where}: {label}")
        if not name:
            collector.count("labels of nobody, left out", int(label is not None), f"{where}: {label}")
            continue
        collector.annotate(id, name, [label], role="gold" if gold else _voice(name), where=where)


def _voice(name: str) -> str:
    return "model" if role_of(name) == "model" else "annotator"


def _tell(collector: Collector, table: _Table, layout: _Layout) -> None:
    people = ", ".join(table.header[k] for k in layout.annotators)
    who = ", ".join(table.header[k] for k in layout.who.values())
    told = f"The columns {excerpt(who, 200)} name who gave the labels in {excerpt(people, 200)}"
    told = told if who else f"The annotators are the columns {excerpt(people, 200)}"
    collector.note(f"{told}; each text is a sequence of one token.")
    known = {label for k in layout.annotators for label in table.labels[k]}
    alike = [table.header[k] for k in layout.others if table.labels[k] and table.labels[k] <= known]
    if alike:
        collector.note(
            f"Columns with the same labels that are not called so are metadata: {excerpt(', '.join(alike), 200)}."
        )
    if layout.golds:
        collector.note(f"Read as golds, by their names: {', '.join(table.header[k] for k in layout.golds)}.")


def sniff(files: Sequence[SourceFile]) -> float:
    """Say how much these files look like wide tables: texts with the labels of several annotators beside them."""
    if not files or any(PurePosixPath(file.name).suffix.lower() not in SUFFIXES for file in files[:3]):
        return 0.0
    if files[0].values or not looks_delimited(files[0]):
        return 0.0
    try:
        table = _Table(files[0].beginning(), _Wanted())
    except FormatError:
        return 0.0
    try:
        text, asked = table.text(), False
    except FormatError:
        text, asked = None, True  # which column holds the texts is not clear, and will be asked
    item = table.item()
    names = {plain_name(name) for name in table.header}
    if any(":::" in name for name in table.header):
        return 0.0  # Potato's, a column for each label of one annotator
    if names & {*NAMES["annotator"], *NAMES["position"]} or not table.rows or has_places(table.header):
        return 0.0
    groups = table.groups((text, item))
    called = [group for group in groups if sum(is_person(table.header[k]) for k in group) > 1]
    words = {"token", "word", "form"} & names  # a row per token
    about = text is not None and (plain_name(table.header[text]) in ("text", "sentence") or table.wordy(text))
    if any(holds_lists(table.labels[k]) for group in groups for k in group):
        return 0.0
    columns = [[cells[k] for _, cells in table.rows] for k in range(len(table.header))]
    if text is not None and columns_of_tags(columns[text], [c for k, c in enumerate(columns) if k not in (text, item)]):
        return 0.0
    if not groups or words or not (about or called or asked):
        if item is None or not groups or words:
            return 0.0
        people = are_people([table.header[k] for group in groups for k in group])
        return 0.45 if people else 0.35 * all(map(table.questions, groups))  # it asks
    return 0.94 if called else 0.8  # results of platforms (0.99) may have such columns, too

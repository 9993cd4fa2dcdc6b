"""A wide table: a row per text, a column per annotator, as CSV or TSV with a header.

```
id,text,annotator_1,annotator_2,majority
1,I like it,good,good,good
2,It is a book,neutral,,neutral
```

Each text is a sequence of one token; an empty cell is missing. Columns are annotators if their labels overlap; one
whose name says that it was decided (`gold`, `majority`, `consensus`, `final`, `label`, …) is a gold, and one whose name
says that a machine said it (`predicted`, `model_b`, `gpt-4`, …) a model. Columns of nothing but numbers, or yes and no,
may be questions or counts: they are asked about unless they are called so (`rater 1`, `ann_ada`, …); `annotators` names
them, as it does where columns fall into several groups. `text` names the column of the texts, `item` that of their ids,
`golds` the golds; all other columns are metadata. `missing` is a label that stands for none (Snorkel's -1).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError, excerpt
from lasca.formats.base import Collector, SourceFile, natural_key
from lasca.formats.long_table import NAMES
from lasca.formats.tabular import NAN, csv_rows, looks_delimited

__all__ = ["NAME", "read", "sniff"]

NAME = "wide"
SUFFIXES = (".csv", ".tsv", ".txt", "")
PERSON = re.compile(
    r"(?:^|[^a-z])(?:ann?|annot|annotat\w*|raters?|coders?|workers?|judges?|label+ers?|users?|experts?|reviewers?|"
    r"taggers?|students?|persons?|evaluators?)(?:[^a-z]|$)",
    re.IGNORECASE,
)
MODEL = re.compile(r"predict|^pred|model|machine|gpt|llm|bert|llama|claude|gemini|mistral", re.IGNORECASE)
DECIDED = re.compile(
    r"gold|majority|consensus|^final|adjudicat|aggregat|^agreed|truth|curat|^(?:label|class|category)$", re.IGNORECASE
)
TEXTS = re.compile(r"text|sentence|tweet|comment|utterance|review|message|document|content|post", re.IGNORECASE)
ITEM = re.compile(r"^(?:|#|id|idx|index|item|no|nr|unnamed: 0|.*[ _-]id|.*[a-z]Id)$")
YES_NO = {"yes", "no", "true", "false", "y", "n"}
MOST = 6  # different labels of a column, or as many as half of the rows
NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?")
SHARED = 0.5  # of the smaller set of labels: from here on two columns speak of the same thing
WORDS = 2  # spaces in a cell that is a text


@dataclass(frozen=True)
class _Wanted:
    """What the user says of the columns."""

    text: str | None = None
    item: str | None = None
    annotators: tuple[str, ...] = ()
    golds: tuple[str, ...] = ()
    missing: tuple[str, ...] = ("", *NAN)


@dataclass(frozen=True)
class _Layout:
    """Which column is what; `text` is None where there are only ids."""

    text: int | None
    item: int | None
    annotators: tuple[int, ...]
    golds: tuple[int, ...]
    others: tuple[int, ...]


class _Table:
    """One file: its header, its rows with their lines, and the labels of each column."""

    def __init__(self, file: SourceFile, wanted: _Wanted) -> None:
        (_, header), *self.rows = csv_rows(file)
        self.file, self.wanted = file, wanted
        self.header = [cell.strip() for cell in header]
        missing = set(wanted.missing)
        columns = ([cells[k].strip() for _, cells in self.rows] for k in range(len(header)))
        self.cells = [[cell for cell in column if cell not in missing] for column in columns]
        self.labels = [set(column) for column in self.cells]

    def layout(self) -> _Layout:
        """Say which column is what; what is not clear is an error that names the option."""
        text, item = self.text(), self.item()
        golds = [self._named(name, "golds") for name in self.wanted.golds]
        given = [self._named(name, "annotators") for name in self.wanted.annotators]
        if not given:
            groups = self.groups((text, item))
            if len(groups) != 1:
                raise self._unclear(groups)
            golds += [k for k in groups[0] if DECIDED.search(self.header[k]) and k not in golds]
            given = [k for k in groups[0] if k not in golds]
            people = [k for k in given if not MODEL.search(self.header[k])]
            if len(people) < 2:
                raise self._unclear([])
            if self.questions(people):
                raise self._unclear([people])
        used = {text, item, *golds, *given}
        others = [k for k in range(len(self.header)) if k not in used]
        return _Layout(text, item, tuple(given), tuple(golds), tuple(others))

    def text(self) -> int | None:
        """Return the column of the texts: the one that is named, that is called so, or that alone holds words."""
        if self.wanted.text is not None:
            return self._named(self.wanted.text, "text")
        wordy = [
            k for k, cells in enumerate(self.cells) if 2 * sum(c.count(" ") >= WORDS for c in cells) > len(cells) > 0
        ]
        called = [k for k in wordy if TEXTS.search(self.header[k])]
        exact = [k for k in called if self.header[k].lower() in NAMES["token"]]
        for found in (exact, called, wordy):
            if len(found) == 1:
                return found[0]
        if wordy:
            raise self.file.error(
                f"it is not clear which column holds the texts: {', '.join(self.header[k] for k in wordy)}",
                1,
                hint=f"Name it: text=… (on the command line: -r text={self.header[wordy[0]]})",
            )
        return next((k for k, name in enumerate(self.header) if name.lower() in NAMES["token"]), None)

    def item(self) -> int | None:
        """Return the column of ids: the one that is named, or that is called so and never repeats itself."""
        if self.wanted.item is not None:
            return self._named(self.wanted.item, "item")
        n = len(self.rows)
        return next((k for k, name in enumerate(self.header) if ITEM.match(name) and len(self.labels[k]) == n), None)

    def groups(self, used: tuple[int | None, ...]) -> list[list[int]]:
        """Return the groups of columns that speak of the same thing: their labels are few, and overlap."""
        most = max(MOST, len(self.rows) // 2)
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

    def questions(self, columns: Sequence[int]) -> bool:
        """Say whether these columns may be questions (yes and no) or counts, rather than what people said."""
        said = {label.lower() for k in columns for label in self.labels[k]}
        plain = all(label in YES_NO or NUMBER.fullmatch(label) for label in said)
        return plain and not all(PERSON.search(self.header[k]) for k in columns)

    def _named(self, name: str, option: str) -> int:
        if name not in self.header:
            raise ParameterError(option, name, f"a column of {self.file.shown}: {', '.join(self.header)}")
        return self.header.index(name)

    def _unclear(self, groups: list[list[int]]) -> FormatError:
        shown = [", ".join(self.header[k] for k in group) for group in groups]
        if len(groups) == 1:
            what = f"the columns {shown[0]} hold yes and no, or numbers: they may be annotators, questions or counts"
        elif groups:
            what = f"there are several groups of columns with the same labels: {'; '.join(shown)}"
        else:
            what = f"no two columns hold the labels of annotators: {', '.join(self.header)}"
        names = shown[0].replace(", ", ",") if shown else "ann,ben"
        hint = f"Name the columns of annotators: annotators=… (on the command line: -r annotators={names})"
        return self.file.error(excerpt(what, 600), 1, hint=hint)


def read(
    files: Sequence[SourceFile],
    *,
    annotators: Sequence[str] | str = (),
    golds: Sequence[str] | str = (),
    text: str | None = None,
    item: str | None = None,
    missing: str = "",
) -> CrowdCorpus:
    """Read tables; the options name columns. Of several files each adds texts, unless their ids are the same."""
    wanted = _Wanted(text, item, _list(annotators), _list(golds), ("", *NAN, str(missing)))
    collector = Collector(files, NAME)
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


def _list(names: Sequence[str] | str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(names)


def _add(collector: Collector, table: _Table, layout: _Layout, cells: list[str], where: str, number: str) -> None:
    id = cells[layout.item] if layout.item is not None and cells[layout.item] else number
    text = id if layout.text is None else cells[layout.text]
    if not text:
        collector.count("empty texts", 1, where)
        return
    metadata = {table.header[k] or "column": cells[k] for k in layout.others if cells[k]}
    known = {"document": id, **metadata, "text": text}
    collector.sequence(id, [text], chars=[(0, len(text))], metadata=known, where=where)
    for role, columns in (("annotator", layout.annotators), ("gold", layout.golds)):
        for k in columns:
            is_model = role == "annotator" and MODEL.search(table.header[k])
            label = None if cells[k] in table.wanted.missing else cells[k]
            collector.count("labels nan, taken as missing", int(cells[k] in NAN), where)
            name = table.header[k] or str(k + 1)
            collector.annotate(id, name, [label], role="model" if is_model else role, where=where)


def _tell(collector: Collector, table: _Table, layout: _Layout) -> None:
    people = ", ".join(table.header[k] for k in layout.annotators)
    collector.note(f"The annotators are the columns {excerpt(people, 200)}; each text is a sequence of one token.")
    if layout.golds:
        collector.note(f"Read as golds, by their names: {', '.join(table.header[k] for k in layout.golds)}.")
    said = {label for k in layout.annotators for label in table.labels[k]}
    if "-1" in said and all(label.lstrip("-").isdecimal() for label in said):
        collector.note(
            "Labels -1 were read as a label of its own; if they say that there is none, set missing=-1 (on the command "
            "line: -r missing=-1)."
        )


def sniff(files: Sequence[SourceFile]) -> float:
    """Say how much these files look like wide tables: texts with the labels of several annotators beside them."""
    if not files or any(PurePosixPath(file.name).suffix.lower() not in SUFFIXES for file in files[:3]):
        return 0.0
    if files[0].values or not looks_delimited(files[0]):
        return 0.0
    try:
        table = _Table(files[0].beginning(), _Wanted())
        text, item = table.text(), table.item()
    except FormatError:
        return 0.0
    names = {name.lower() for name in table.header}
    if names & {*NAMES["annotator"], *NAMES["position"]} or not table.rows:
        return 0.0
    groups = table.groups((text, item))
    wordy = text is not None and 2 * sum(" " in cell for cell in table.cells[text]) > len(table.cells[text])
    called = [group for group in groups if sum(bool(PERSON.search(table.header[k])) for k in group) > 1]
    if not groups or not (wordy or (item is not None and called)):
        return 0.0
    return 0.94 if called else 0.8  # results of platforms (0.99) may have such columns, too

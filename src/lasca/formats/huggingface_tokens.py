"""Rows of tokens and tags: one row per annotator, or one column of all annotators; aligned where tokens differ."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from lasca import align
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError, excerpt
from lasca.formats.base import Collector, as_name, as_time, first, undone
from lasca.formats.huggingface_load import Rows
from lasca.formats.names import DOCUMENTS, SENTENCES, speaker
from lasca.formats.texts import TextPool

__all__ = ["Columns", "TokenRows"]


@dataclass(frozen=True)
class Columns:
    """What the columns are called."""

    TAGS: ClassVar = (
        "ner_tags", "ner", "tags", "tag", "labels", "label", "chunk_tags", "chunk", "pos_tags", "upos", "pos", "xpos"
    )  # fmt: skip
    BY_ANNOTATOR: ClassVar = ("labels", "annotations", "tags", "ner_tags", "pos_tags")
    ANNOTATOR: ClassVar = ("annotator", "annotator_id", "annotated_by", "worker", "worker_id", "user", "user_id")
    TEXT: ClassVar = ("text", "sentence")
    TIME: ClassVar = ("time", "timestamp", "updated_at", "created_at")

    tags: str | None = None
    annotator: str | None = None
    label_names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class _Given:
    """What one annotator (or gold) gave one sequence."""

    tokens: tuple[str, ...]
    where: str
    name: str = ""
    labels: tuple[str | None, ...] | None = None
    role: str = "annotator"
    time: str | None = None
    text: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


class TokenRows:
    """Gathers rows and makes a corpus of them."""

    def __init__(self, collector: Collector, columns: Columns) -> None:
        self.collector, self.columns = collector, columns
        self.by_id: dict[str, list[_Given]] = {}
        self.owners: set[tuple[str, str]] = set()

    def add(self, part: Rows) -> None:
        """Take the rows of one file."""
        if self.columns.annotator is not None and self.columns.annotator not in part.names:
            raise ParameterError("annotator", self.columns.annotator, "a column: " + ", ".join(part.names))
        annotator = self.columns.annotator or next((n for n in Columns.ANNOTATOR if n in part.names), None)
        prefix = f"{part.split}/" if part.split else ""
        if part.owner and annotator is None:
            self.owners.add(part.owner)
        for k, (where, row) in enumerate(part.rows):
            tokens = _tokens(row, where)
            by_annotator = next((n for n in Columns.BY_ANNOTATOR if _is_by_annotator(row.get(n))), None)
            known = first(row, ("id", "sequence_id"))
            if known is None and (sentence := first(row, SENTENCES)) is not None:
                known = "/".join(str(part) for part in (first(row, DOCUMENTS), sentence) if part is not None)
            if known is not None:
                id = as_name(known, "the id of a row", where)
            else:
                id = _digest(tokens) if annotator is not None else str(k)
            text = next((row[n] for n in Columns.TEXT if isinstance(row.get(n), str)), None)
            given = self.by_id.setdefault(prefix + id, [])
            tags = self._tag_column(part, row, by_annotator, where)
            undid = undone(row) if annotator is not None else ""
            self.collector.count(f"annotations that do not count ({undid})", int(bool(undid)), where)
            used = ("tokens", "words", "id", "sequence_id", annotator, tags, by_annotator, *Columns.TEXT, *Columns.TIME)
            given.append(_Given(tokens, where, text=text, metadata=self._further(row, used, where)))
            if tags is not None and not undid:
                name, role = part.owner or ("gold", "gold")
                if annotator is not None and row.get(annotator) is not None:
                    name = as_name(row[annotator], "the annotator", where)
                    role = speaker(name)
                given.append(self._given(part, row, tags, row[tags], name, role, tokens, where))
            if by_annotator is not None:
                for who, labels in _pairs(row[by_annotator], where):
                    name = as_name(who, "an annotator", where)
                    given.append(self._given(part, row, by_annotator, labels, name, speaker(name), tokens, where))

    def _further(self, row: Mapping[str, Any], used: Sequence[str | None], where: str) -> dict[str, str]:
        """Return what else a row says of its sequence; columns that are lists are counted."""
        found: dict[str, str] = {}
        for name, value in row.items():
            if name in used or value is None or value == "":
                continue
            if isinstance(value, str | int | float):
                found[str(name)] = str(value)
            else:
                self.collector.count(f"columns left out ({name})", 1, where)
        return found

    def _given(
        self,
        part: Rows,
        row: Mapping[str, Any],
        column: str,
        values: object,
        name: str,
        role: str,
        tokens: tuple[str, ...],
        where: str,
    ) -> _Given:
        time = as_time(first(row, Columns.TIME))
        if values is None:
            self.collector.count("missing", 1, f"{where}: {name}")
            return _Given(tokens, where, name, None, role, time)
        if not isinstance(values, list | tuple) or len(values) != len(tokens):
            n = len(values) if isinstance(values, list | tuple) else "no"
            raise FormatError(f"{n} tags for {len(tokens)} tokens", path=where, got=values)
        names = self.columns.label_names or part.label_names.get(column)
        return _Given(tokens, where, name, tuple(_label(v, names, column, where) for v in values), role, time)

    def _tag_column(self, part: Rows, row: Mapping[str, Any], by_annotator: str | None, where: str) -> str | None:
        """Return the column of tags: the one that is named, or the first usual one."""
        wanted = self.columns.tags
        if wanted is not None:
            if wanted not in part.names:
                raise ParameterError("tags", wanted, "a column: " + ", ".join(part.names))
            return wanted if wanted in row and wanted != by_annotator else None
        there = [n for n in Columns.TAGS if n in row and n != by_annotator]
        usual = [n for n in there if not isinstance(row[n], str | int | float)] or there  # plain: of the whole text
        found = usual[0] if usual else None
        if len(usual) > 1 and by_annotator is None:
            others = ", ".join(usual[1:])
            self.collector.note(
                f"The tags are those of {found}; tags=… reads another column ({others}; on the command line: "
                f"-r tags={usual[1]})."
            )
        if found is None and by_annotator is None:
            raise FormatError(
                "a row has no column of tags",
                path=where,
                got=", ".join(map(str, row)),
                hint="Name it: tags=… (on the command line: -r tags=…)",
            )
        return found

    def corpus(self, pool: TextPool) -> CrowdCorpus:
        """Choose one tokenisation for every id, align the others to it, and make the corpus; `pool` links texts."""
        self._tell_owners()
        self._link(pool)
        for id, given in self.by_id.items():
            tokens = self._one_tokenisation(id, given)
            if not tokens:
                self.collector.count("empty texts", 1, given[0].where)
                continue
            text, chars = _text(tokens, given)
            first = min(entry.where for entry in given)
            further: dict[str, str] = {}
            for entry in sorted(given, key=lambda entry: entry.where):
                for name, value in entry.metadata.items():
                    if further.setdefault(name, value) != value:
                        self.collector.count(f"second values of {name}", 1, entry.where)
            metadata = {"document": id, **further, "text": text}
            self.collector.sequence(id, tokens, chars=chars, metadata=metadata, where=first)
            for entry in given:
                if entry.labels is not None:
                    labels = self._aligned(id, tokens, entry)
                    self.collector.annotate(id, entry.name, labels, role=entry.role, time=entry.time, where=entry.where)
        return self.collector.corpus()

    def _link(self, pool: TextPool) -> None:
        """Give rows of the same text one id if texts are what links, or each annotator has ids of their own."""
        rows = [(id, "".join(entry.tokens), entry) for id, given in self.by_id.items() for entry in given]
        known = {(id, text, entry.name) for id, text, entry in rows}
        said = any(entry.labels is not None and entry.role != "gold" for _, _, entry in rows)
        if said and (ids := pool.links(known)):
            self.by_id = {}
            for _, text, entry in rows:
                self.by_id.setdefault(ids[text], []).append(entry)

    def _tell_owners(self) -> None:
        """Say what several files without annotators are: one annotator's each if they share texts, else one gold."""
        said = [
            {entry.name for entry in given if (entry.name, entry.role) in self.owners} for given in self.by_id.values()
        ]
        if any(len(names) > 1 for names in said):
            self.collector.note("several files without a column of annotators: each file is an annotator")
        elif self.owners:
            self.collector.note(
                "There is no column of annotators, and no text stands in two of the files: they are read as parts of "
                "one set, and their tags as its gold. If each is an annotator's, add a column annotator."
            )
            for given in self.by_id.values():
                given[:] = [
                    replace(e, name="gold", role="gold") if (e.name, e.role) in self.owners else e for e in given
                ]

    def _one_tokenisation(self, id: str, given: list[_Given]) -> tuple[str, ...]:
        kinds = Counter(entry.tokens for entry in given)
        tokens = max(kinds, key=lambda kind: (kinds[kind], len(kind), kind))
        for entry in given:
            if entry.tokens != tokens and not align.same_characters(entry.tokens, tokens):
                raise FormatError(
                    f"sequence {excerpt(id)!r} has another text here than elsewhere",
                    path=entry.where,
                    got=" ".join(entry.tokens[:12]),
                    hint="One id must stand for one text",
                )
        return tokens

    def _aligned(self, id: str, tokens: tuple[str, ...], entry: _Given) -> Sequence[str | None]:
        if entry.tokens == tokens or entry.labels is None:
            return entry.labels or ()
        example = f"{entry.where}: {entry.name} on {id}"
        self.collector.count("tokenised differently", 1, example)
        labels = align.transfer_labels(
            entry.labels,
            align.align_tokens(entry.tokens, tokens),
            partial="shrink",
            count=lambda kind: self.collector.count(kind, 1, example),
        )
        lost = sum(label is None for label in labels) if None not in entry.labels else 0
        self.collector.count("tokens that could not be aligned", lost, example)
        return labels


def _tokens(row: Mapping[str, Any], where: str) -> tuple[str, ...]:
    tokens = row.get("tokens", row.get("words"))
    if not isinstance(tokens, list | tuple) or not all(isinstance(token, str) for token in tokens):
        raise FormatError("a row must have a list of strings 'tokens'", path=where, got=repr(tokens))
    return tuple(tokens)


def _digest(tokens: tuple[str, ...]) -> str:
    return "tokens-" + hashlib.sha256("\x00".join(tokens).encode(errors="surrogatepass")).hexdigest()[:12]


def _is_by_annotator(value: object) -> bool:
    """Say whether a value maps annotators to labels: a dict, or (as Arrow gives maps) a list of pairs."""
    if isinstance(value, dict):
        return True
    pairs = isinstance(value, list | tuple) and len(value) > 0
    return pairs and all(isinstance(p, tuple) and len(p) == 2 and isinstance(p[1], list | None) for p in value)  # type: ignore[attr-defined]


def _pairs(value: Any, where: str) -> Iterator[tuple[object, object]]:
    pairs = value.items() if isinstance(value, dict) else value
    for who, labels in pairs:
        if labels is not None and not isinstance(labels, list | tuple):
            raise FormatError("an annotator's labels must be a list", path=where, got=repr(labels))
        yield who, labels


def _label(value: object, names: tuple[str, ...] | None, column: str, where: str) -> str | None:
    """Return a label from a string or a number; -100, null and an empty string are missing."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value == -100):
        return None
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, bool) or not isinstance(value, int):
        hint = None
        if isinstance(value, list):
            hint = 'If these are the tags of several annotators, name them: "labels": {"ann": […], "ben": […]}'
        raise FormatError("a tag must be a string or a number", path=where, got=repr(value), hint=hint)
    if names is None:
        raise FormatError(
            f"the tags in {column!r} are numbers, and the file does not say what they stand for",
            path=where,
            got=value,
            hint="Give their names in order: label_names=['O', 'B-PER', …]",
        )
    if not 0 <= value < len(names):
        raise FormatError(f"tag {value} is outside the {len(names)} label names", path=where)
    return names[value]


def _text(tokens: tuple[str, ...], given: list[_Given]) -> tuple[str, align.Chars]:
    """Return the text of a sequence and where its tokens stand: the text that came along, else tokens and blanks."""
    for text in sorted({entry.text for entry in given if entry.text is not None}):
        chars = align.locate(tokens, text)
        if chars is not None:
            return text, chars
    return align.spelled(tokens)

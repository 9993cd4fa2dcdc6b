"""What all readers share: files from a file, folder or zip; text with line numbers; and the collector of a corpus.

A reader is a function `read(files, **options) -> CrowdCorpus`. It goes through its files, tells a `Collector` what
it finds, and returns `collector.corpus()`. Whatever it leaves out, changes or guesses it counts there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from lasca.corpus import CrowdCorpus, LoadReport, SoftVotes
from lasca.errors import FormatError, excerpt, typed
from lasca.formats.names import AUTHORS, START, decided, mere_experts, plain_name
from lasca.formats.sources import (
    SourceFile,
    files_of,
    owners,
    parse_json,
    parse_json_items,
    parse_json_lines,
    unwrapped,
)

__all__ = ["SCORES", "Collector", "Counts", "SourceFile", "annotator_in", "as_label", "as_name", "as_offset",
           "as_score", "as_time", "elsewhere", "files_of", "first", "id_of", "listed", "name_authors", "named_in",
           "natural_key", "owners", "parse_json", "parse_json_items", "parse_json_lines", "pick", "refuse_authors",
           "refuse_undone", "text_id", "undone", "unwrapped"]  # fmt: skip


TOLD = ("conll", "mace", "wide", "jsonl")  # formats in which a header says who speaks
SCORES = ("count", "soft")  # what becomes of scores in a file


JSON_AGAIN = re.compile(r"\s*(?:\[\s*[\[{\"']|\{\s*[\"'])")  # JSON inside a string
UNDONE = {"skipped", "skip", "cancelled", "canceled", "discarded", "discard", "ignored", "ignore", "rejected", "reject",
          "draft", "pending", "invalid", "deleted", "aborted", "expired", "timed_out", "returned", "abandoned", "todo",
          "exclude", "excluded", "in_progress", "inprogress", "not_started", "unfinished", "incomplete"}  # fmt: skip
"""States of what somebody did not do, or of what does not count."""
VOTES = {"votes", "n_votes", "num_votes", "vote_count", "n_annotators", "num_annotators", "annotator_count"}
"""How many marked a span."""


def undone(row: Mapping[str, Any]) -> str:
    """Return why what is said in a row or an object does not count (it was skipped, it is a draft), or ""."""
    for key, value in row.items():
        name = re.sub("^(?:is|was)_", "", plain_name(key))
        if name in UNDONE and str(value).lower() in ("true", "yes", "1"):
            return name
        if name == "valid" and str(value).lower() in ("false", "no", "0"):
            return "invalid"
        if name.endswith(("status", "state")) and plain_name(str(value)) in UNDONE:
            return plain_name(str(value))
    return ""


def refuse_undone(span: Mapping[str, Any], where: str) -> None:
    """Refuse a span that is said not to count: by who marked it, or by another, who had no say in that."""
    if why := undone(span):
        raise FormatError(
            f"a span is said to be {why}: it may have been taken back, or judged by another",
            path=where,
            got=str(dict(span)),
            hint="Take such spans out, or, if they are votes as all others are, take out what says so",
        )


def pick(files: Sequence[SourceFile], suffixes: tuple[str, ...], collector: Collector) -> list[SourceFile]:
    """Return the files with one of these suffixes and count the others; a single file is taken whatever its name."""
    if len(files) == 1:
        return list(files)
    for file in files:
        if not file.name.lower().endswith(suffixes):
            collector.count("other files", 1, file.shown)
    return [file for file in files if file.name.lower().endswith(suffixes)]


def refuse_authors(corpus: CrowdCorpus, columns: Iterable[str], shown: str, hint: str = "") -> CrowdCorpus:
    """Return the corpus, or ask who its users are if no item has two of them: in collections of posts these wrote them.

    `columns` are what may have named them; `hint` says what to do if they are annotators, {} standing for the column.
    """
    column = next((name for name in columns if plain_name(name).startswith("user")), None)
    if not isinstance(corpus, CrowdCorpus):  # layers
        return corpus
    alone = corpus.n_annotations == np.count_nonzero(np.diff(corpus.token_start)) and not corpus.golds
    if column is None or not alone or corpus.n_annotators < 2:
        return corpus
    raise FormatError(
        f"no item has two names in {column!r}: these may be who wrote the texts, and not who labelled them",
        path=shown,
        hint=f"If they are annotators, {hint or 'call it annotator; else leave it out'}".format(
            typed(f"annotator={column}")
        ),
    )


def name_authors(rows: Iterable[Mapping[str, Any]], but: Sequence[str] = ()) -> bool:
    """Say whether spans of records name who marked them: the format records reads these."""
    entries = (entry for row in rows for value in row.values() if isinstance(value, list) for entry in value)
    spans = (entry for entry in entries if isinstance(entry, dict) and {*START} & set(map(plain_name, entry)))
    said = ((key, value) for span in spans for key, value in span.items() if key not in but)
    return any(plain_name(key) in AUTHORS and value not in (None, "", []) for key, value in said)


def elsewhere(there: str, here: str) -> str:
    """Say where the other of two things stands, which may be the same line."""
    return f"at {there}" if there != here else "before on the same line"


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key under which "s2" comes before "s10"."""
    parts = re.split(r"([0-9]+)", name)
    return tuple((0, int(p), "") if i % 2 and len(p) < 4000 else (1, 0, p) for i, p in enumerate(parts))


@dataclass
class _Sequence:
    tokens: tuple[str, ...]
    chars: list[tuple[int, int]] | None
    metadata: dict[str, str]
    where: str


@dataclass
class _Column:
    """What one annotator (or gold) said of one sequence."""

    labels: tuple[str | None, ...]
    time: str | None
    where: str
    sure: tuple[float | None, ...] | None = None


class Counts:
    """What was left out, changed or guessed, counted with a few examples, and notes for people."""

    most = 3
    """Examples that are kept of each kind."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.examples: dict[str, list[str]] = {}
        self.notes: list[str] = []

    def count(self, kind: str, n: int = 1, example: str | None = None) -> None:
        """Count something that was left out, changed or guessed, with an example (file:line and what)."""
        if n:
            self.counts[kind] = self.counts.get(kind, 0) + n
            shown = self.examples.setdefault(kind, [])
            if example is not None and len(shown) < self.most:
                shown.append(excerpt(example, 200))

    def count_others(self, what: str, span: Mapping[str, Any], known: Iterable[str], where: str) -> None:
        """Count what an object says beside what is read of it."""
        for key in sorted({key for key, value in span.items() if value not in (None, "", False, [], {})}):
            if plain_name(key) in VOTES:
                said, hint = (
                    f"{what} say how many marked them ({key}), and not who",
                    "Take the file that says who, or take it out",
                )
                raise FormatError(said, path=where, got=str(dict(span)), hint=hint)
            if plain_name(key) not in known:
                self.count(f"other values of {what} ({key})", 1, where)

    def note(self, sentence: str) -> None:
        """Tell the user something once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def report(self, source: str, format: str) -> LoadReport:
        """Return all of it as the load report of a corpus."""
        examples = {kind: tuple(shown) for kind, shown in self.examples.items()}
        return LoadReport(source, format, self.counts, examples, tuple(self.notes))


class Collector(Counts):
    """Gathers sequences, annotations and golds in any order, and makes one corpus of them."""

    def __init__(self, files: Sequence[SourceFile], format: str) -> None:
        super().__init__()
        self.format = format
        self.source = _source(files)
        self.sequences: dict[str, _Sequence] = {}
        self.columns: dict[tuple[str, str], dict[str, _Column]] = {}  # (role, name) -> sequence id -> labels
        self.doubles: dict[tuple[str, str, str], list[_Column]] = {}  # (role, name, sequence id) -> what was said
        self.golds: tuple[str, ...] = ()  # those that are said to be so outright, by the user or the file

    def fresh(self) -> Collector:
        """Return a collector of the same files that has gathered nothing but what was counted and noted so far."""
        other = Collector((), self.format)
        other.source, other.counts, other.notes = self.source, dict(self.counts), list(self.notes)
        other.examples = {kind: list(shown) for kind, shown in self.examples.items()}
        return other

    def sequence(
        self,
        id: str,
        tokens: Sequence[str],
        *,
        chars: Sequence[tuple[int, int]] | None = None,
        metadata: Mapping[str, str] | None = None,
        where: str,
    ) -> None:
        """Name a sequence; naming it again is fine if it has the same tokens."""
        known = self.sequences.get(id)
        if known is None:
            spans = None if chars is None else list(chars)
            self.sequences[id] = _Sequence(tuple(tokens), spans, dict(metadata or {}), where)
        elif known.tokens != tuple(tokens):
            raise FormatError(
                f"sequence {excerpt(id)!r} has other tokens here than {elsewhere(known.where, where)}",
                path=where,
                got=" ".join(tokens[:12]),
                hint="One id must stand for one text",
            )

    def annotate(
        self,
        id: str,
        name: str,
        labels: Sequence[str | None],
        *,
        role: str = "annotator",
        time: str | None = None,
        where: str,
        sure: Sequence[float | None] | None = None,
    ) -> None:
        """Say what an annotator (role "annotator", "model" or "gold") gave the tokens of a sequence; None = missing.

        `sure` says how probable the annotator holds each label (None: there is no doubt). Such a label becomes a soft
        vote: that share for it, and the rest evenly for all other labels, because nothing is said of them.

        The same annotator twice on one sequence: the latest time stamp wins and is counted, without time stamps it
        is an error (raised by `corpus`) unless all say the same.
        """
        expected = len(self.sequences[id].tokens)
        if len(labels) != expected:
            raise FormatError(f"{len(labels)} labels for {expected} tokens of sequence {excerpt(id)!r}", path=where)
        given = None if sure is None or role == "gold" else tuple(sure)
        column, new = self.columns.setdefault((role, name), {}), _Column(tuple(labels), time, where, given)
        if id in column:
            self.doubles.setdefault((role, name, id), [column[id]]).append(new)
        else:
            column[id] = new

    def score(self, score: float, way: str, where: str) -> float | None:
        """Return how sure somebody was of a label; None where scores are only counted (`way` is "count")."""
        if way == "count":
            self.count("scores left out", 1, f"{where}: {score:g}")
            self.note(
                "Labels carry scores: scores=soft reads them as soft votes (on the command line: -r scores=soft)."
            )
            return None
        if not 0 <= score <= 1:
            raise FormatError("a score must lie in 0..1 to be read as a probability", path=where, got=f"{score:g}")
        return score

    def _settle(self) -> None:
        """Decide what counts where an annotator labelled a sequence several times, whatever their order."""
        for (role, name, id), entries in sorted(self.doubles.items()):
            times = [entry.time or "" for entry in entries]
            timed = all(times)
            last = [entry for entry in entries if not timed or entry.time == max(times)]
            rival = next((entry for entry in last if entry.labels != last[0].labels), None)
            if rival is not None:
                first, second = sorted((last[0].where, rival.where))
                other = elsewhere(first, second)
                apart = first.partition(":")[0] != second.partition(":")[0]
                raise FormatError(
                    f"{role} {excerpt(name)!r} labelled sequence {excerpt(id)!r} twice, here and {other}",
                    path=second,
                    hint="Keep one, or give time stamps: the last one then counts"
                    + "; if each file is another person's, take the name out of them: files are called by people then"
                    * apart,
                )
            for entry in sorted(entries, key=lambda entry: entry.where):
                if entry is not last[0]:
                    kind = "repeated" if entry.labels == last[0].labels else "superseded"
                    self.count(kind, 1, f"{entry.where}: {role} {name} on {id}")
            self.columns[role, name][id] = last[0]
        self.doubles.clear()

    def _with_experts(self) -> None:
        """Count experts among the annotators where there is another gold."""
        for name in mere_experts([name for role, name in self.columns if role == "gold"]):
            if name not in self.golds and ("annotator", name) not in self.columns:
                self.columns["annotator", name] = self.columns.pop(("gold", name))
                self.note(f"{name} is read as an annotator, because there is another gold.")

    def _with_decided(self) -> None:
        """Make one a gold who is called final or merged, beside people, where no header says who speaks."""
        people = [name for role, name in self.columns if role == "annotator"]
        for name in decided(people) if self.format not in TOLD and not self.golds else ():
            if ("gold", name) not in self.columns:
                self.columns["gold", name] = self.columns.pop(("annotator", name))
                self.note(f"{name} is read as a gold, by its name.")

    def corpus(self, *, order: str = "natural", labels: Sequence[str] = ()) -> CrowdCorpus:
        """Make the corpus: sequences in "natural" order of their ids, or as "given"."""
        if not self.sequences:
            raise FormatError(f"there is no sequence in this {self.format} export", path=self.source)
        self._settle()
        self._with_decided()
        self._with_experts()
        ids = list(self.sequences) if order == "given" else sorted(self.sequences, key=lambda id: (natural_key(id), id))
        crowd: dict[str, tuple[str, dict[str, _Column]]] = {}
        for (role, name), column in sorted(self.columns.items()):
            if role != "gold":
                if name in crowd:
                    raise FormatError(f"{excerpt(name)!r} is both an annotator and a model", path=self.source)
                crowd[name] = (role, column)
        golds = {name: column for (role, name), column in sorted(self.columns.items()) if role == "gold"}
        names = sorted({s for c in self.columns.values() for col in c.values() for s in col.labels if s is not None})
        annotators = sorted(crowd)
        index = {id: i for i, id in enumerate(ids)}
        chars = [self.sequences[id].chars for id in ids]
        keys = sorted({key for s in self.sequences.values() for key in s.metadata})
        offsets = np.cumsum([0, *(len(self.sequences[id].tokens) for id in ids)]).tolist()
        soft = _soft([crowd[name][1] for name in annotators], dict(zip(ids, offsets)), sorted({*names, *labels}))
        return CrowdCorpus.from_sequences(
            [self.sequences[id].tokens for id in ids],
            {name: _by_index(crowd[name][1], index) for name in annotators},
            golds={name: _by_index(column, index) for name, column in golds.items()},
            sequence_ids=ids,
            labels=[*names, *labels],
            roles=tuple(crowd[name][0] for name in annotators),
            metadata={key: [self.sequences[id].metadata.get(key, "") for id in ids] for key in keys},
            token_chars=_all_chars(chars),
            soft=soft,
            load_report=self.report(self.source, self.format),
        )


def _by_index(column: dict[str, _Column], index: dict[str, int]) -> dict[int, tuple[str | None, ...]]:
    return {index[id]: _hard(entry) for id, entry in column.items()}


def _hard(entry: _Column) -> tuple[str | None, ...]:
    """Return the labels of which nothing says how sure they are."""
    if entry.sure is None:
        return entry.labels
    return tuple(None if p is not None and p < 1 else label for label, p in zip(entry.labels, entry.sure))


def _soft(columns: Sequence[dict[str, _Column]], first: Mapping[str, int], labels: Sequence[str]) -> SoftVotes | None:
    """Return the labels that are less than sure as distributions; `first` is the first token of every sequence."""
    code = {label: i for i, label in enumerate(labels)}
    rows = [
        (first[id] + t, a, code[label], p)
        for a, column in enumerate(columns)
        for id, entry in column.items()
        for t, (label, p) in enumerate(zip(entry.labels, entry.sure or ()))
        if label is not None and p is not None and p < 1
    ]
    if not rows:
        return None
    token, who, label, sure = (np.array(part) for part in zip(*rows))
    proba = np.repeat((1 - sure) / max(len(labels) - 1, 1), len(labels)).reshape(len(rows), len(labels))
    proba[np.arange(len(rows)), label] = sure if len(labels) > 1 else 1.0
    return SoftVotes.of(token, who, proba)


def _all_chars(chars: list[list[tuple[int, int]] | None]) -> Any:
    if any(c is None for c in chars):
        return None
    flat = [span for spans in chars if spans is not None for span in spans]
    return np.array(flat, dtype=np.int32).reshape(len(flat), 2)


def _source(files: Sequence[SourceFile]) -> str:
    if not files:
        return ""
    first = files[0]
    if len(files) == 1 or "!" in first.shown:
        return first.shown.split("!")[0]
    return first.shown[: -len(first.name)].rstrip("/\\") or first.shown


# --- values that files hold ---------------------------------------------------------------------------------------


def text_id(text: str) -> str:
    """Return an id for a text that came without one: the same text has the same id in every file."""
    return "text-" + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]


def id_of(known: object, text: str, what: str, where: str) -> str:
    """Return the id a file gives, which must be a name; without one, that of the text."""
    return text_id(text) if known is None else as_name(known, what, where)


def first(row: Mapping[str, Any], keys: Iterable[str], but: Sequence[object] = (None,)) -> Any:
    """Return what stands under the first of these keys that holds anything (`but` is nothing); None if none does."""
    return next((row[key] for key in keys if row.get(key) not in but), None)


def annotator_in(row: Mapping[str, Any]) -> Any:
    """Return who labelled a row, if what is said about it (`meta`) names an annotator; None if it does not."""
    meta: Any = next((row[key] for key in ("meta", "metadata") if isinstance(row.get(key), dict)), {})
    return first(meta, ("annotator", "annotator_id", "annotator_name", "annotated_by", "worker", "worker_id"))


def named_in(value: Any) -> Any:
    """Return what one is called who is described by an object: {"id": 1, "email": "a@b.c"}."""
    return first(value, ("email", "username", "name", "id")) if isinstance(value, dict) else value


def listed(row: Mapping[str, Any], key: str, where: str) -> list[Any]:
    """Return the list under a key, which may be absent, or say that it is none."""
    value = row.get(key)
    if value is not None and not isinstance(value, list):
        raise FormatError(f"{key!r} must be a list", path=where, got=repr(value))
    return value or []


def as_offset(value: object, what: str, where: str) -> int:
    """Return an offset as an int, or say where it is not one."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,15}", value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise FormatError(f"{what} must be a whole number of at least 0", path=where, got=repr(value))
    return value


def as_score(value: object) -> float | None:
    """Return a score as a number; None if there is none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def as_label(value: object, where: str) -> str:
    """Return a label as a non-empty string (old exports have numbers), or say where it is not one."""
    if isinstance(value, str) and JSON_AGAIN.match(value):
        raise FormatError("a label must be a name, and not a list or object", path=where, got=value)
    return as_name(value, "a label", where)


def as_name(value: object, what: str, where: str) -> str:
    """Return a name or id as a non-empty string: strings and whole numbers are."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**100:
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise FormatError(f"{what} must be a name or a number", path=where, got=repr(value))
    return value.strip()


TIMES = ("%a %b %d %H:%M:%S %Y", "%Y-%m-%d %H:%M:%S", "%Y/%m/%d %H:%M:%S")


def as_time(value: Any) -> str | None:
    """Return a time stamp (ISO 8601, seconds since 1970, or as MTurk writes it) so that strings sort by time."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value / 1000 if value > 1e11 else value
        return _utc(datetime.fromtimestamp(seconds, UTC)) if 0 < seconds < 1e11 else None
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        return _utc(datetime.fromisoformat(value.strip()))
    except ValueError:
        plain = re.sub(r" [A-Z]{3,4}(?= \d{4}$)", "", value.strip())
    for pattern in TIMES:
        try:
            return _utc(datetime.strptime(plain, pattern))
        except ValueError:
            continue
    return None


def _utc(time: datetime) -> str | None:
    try:
        aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return aware.astimezone(UTC).isoformat(timespec="microseconds")
    except OverflowError:
        return None

"""What people decided: an append-only log in SQLite, one row per event, beside the run it is about.

Nothing is ever changed or removed (the database itself refuses): taking a decision back is an event as well. An event
is on disk before it is acknowledged (write-ahead log, full synchronisation), so a kill loses at most the one in
flight; several reviewers, windows and processes may write at once. Reading makes no file: there is a log from the first
event on. A log keeps one connection open: the last one to
close would move the whole write-ahead log into the file, which takes longer than a decision may. Decisions name the
sequence by its id, positions in tokens and types by name, together with what was shown, so that they outlive the run
they were made on.

Who: a name, or with `pseudonyms` R1, R2, … in the order in which reviewers came; of their names only a salted hash is
kept then.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
import threading
import time
import unicodedata
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lasca.errors import StoreError
from lasca.files import DECISIONS
from lasca.review.items import Reading

__all__ = ["Decision", "Log", "Standing"]

VERSION = 1
_PATIENCE = 30.0  # how many seconds to wait for another who writes
DIRECTIONS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")  # what turns text around
_SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE reviewers (number INTEGER PRIMARY KEY AUTOINCREMENT, hash TEXT UNIQUE NOT NULL, name TEXT NOT NULL);
CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, who TEXT NOT NULL, kind TEXT NOT NULL,
  sequence TEXT NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL, readings TEXT NOT NULL,
  audit INTEGER NOT NULL, missed INTEGER NOT NULL, shown TEXT NOT NULL, undoes INTEGER, batch TEXT NOT NULL
);
CREATE TABLE looks (fit TEXT PRIMARY KEY, number INTEGER NOT NULL);
CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'decisions are never changed'); END;
CREATE TRIGGER events_last BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'decisions are never removed'); END;
"""


def _is_unseen(ch: str) -> bool:
    """Say whether a character of a name does something instead of being seen: controls, marks of direction."""
    return unicodedata.category(ch) in ("Cc", "Cs") or unicodedata.bidirectional(ch) in DIRECTIONS


@dataclass(frozen=True)
class Decision:
    """What somebody said about an area: one reading, or several that are all right ("keep both")."""

    sequence: str
    start: int
    stop: int
    readings: tuple[Reading, ...]
    """Empty: skipped, nothing was decided."""
    who: str = "reviewer"
    audit: bool = False
    missed: bool = False
    """Only of audits: something else was missed in the same sequence."""
    shown: dict[str, Any] = field(default_factory=dict)
    """What was to be seen: the candidates in their order, whether votes were shown, the reason."""
    batch: str = ""
    """Decisions taken at once ("the same for all alike") share it, and are taken back at once."""
    id: int = 0
    at: str = ""


@dataclass(frozen=True)
class Standing:
    """An area with what stands of all decisions about it: the reading that most of its reviewers chose, or the last."""

    decision: Decision
    opinions: tuple[Decision, ...]
    """The last word of each reviewer."""

    last: int
    """The id of the last word."""

    @property
    def disputed(self) -> bool:
        """Whether reviewers differ."""
        return len({d.readings for d in self.opinions}) > 1


class _Area:
    """All that is said of an area, and what stands."""

    def __init__(self) -> None:
        self.said: dict[int, Decision] = {}
        self.standing: Standing | None = None

    def change(self, d: Decision, *, undone: bool) -> None:
        """Add a decision, or take it out."""
        if undone:
            del self.said[d.id]
        else:
            self.said[d.id] = d
        opinions: dict[str, Decision] = {}
        for one in self.said.values():
            opinions.pop(one.who, None)
            opinions[one.who] = one
        words = list(opinions.values())
        votes = [one.readings for one in words]
        best = max(words, key=lambda one: (votes.count(one.readings), one.id), default=None)
        self.standing = None if best is None else Standing(best, tuple(words), max(self.said))


class Log:
    """The decisions about one run."""

    def __init__(self, folder: str | Path, *, pseudonyms: bool = False) -> None:
        self.path = Path(folder) / DECISIONS
        self.pseudonyms = pseudonyms
        self._lock = threading.RLock()
        self._opened: sqlite3.Connection | None = None
        self._salt = ""
        self._names: dict[str, str] = {}
        self._last = 0
        self._live: dict[int, Decision] = {}
        self._areas: dict[tuple[str, int, int, bool], _Area] = {}
        if self.path.exists():
            self._open()

    @property
    def _base(self) -> sqlite3.Connection:
        """The connection; makes the log where there is none."""
        with self._lock:
            return self._opened or self._open()

    def _open(self) -> sqlite3.Connection:
        try:
            opened = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            weakref.finalize(self, opened.close)
            opened.execute("PRAGMA synchronous=FULL")
            self._write_ahead(opened)
            with self._at_once(opened) as base:
                if not base.execute("SELECT 1 FROM sqlite_master WHERE name = 'about'").fetchone():
                    for statement in _SCHEMA.strip().split(";\n"):
                        base.execute(statement + (";" if statement.strip().endswith("END") else ""))
                    about = {"lasca": "decisions", "version": str(VERSION), "salt": secrets.token_hex(16)}
                    base.executemany("INSERT INTO about VALUES (?, ?)", about.items())
                known = dict(base.execute("SELECT name, value FROM about"))
        except sqlite3.DatabaseError as error:
            raise StoreError("the log of decisions cannot be opened", where=str(self.path), got=str(error)) from error
        if known.get("lasca") != "decisions" or known.get("version") != str(VERSION):
            raise StoreError("this is no log of decisions of this version", where=str(self.path))
        self._salt, self._opened = known["salt"], opened
        return opened

    @staticmethod
    def _write_ahead(base: sqlite3.Connection) -> None:
        """Let readers read while somebody writes.

        Of two who open a new log at once SQLite refuses one at once, whatever the timeout: it comes again.
        """
        last = time.monotonic() + _PATIENCE
        while True:
            try:
                base.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > last:
                    raise
                time.sleep(0.01)

    @contextmanager
    def _at_once(self, opened: sqlite3.Connection | None = None) -> Iterator[sqlite3.Connection]:
        """Write all or nothing, one at a time."""
        with self._lock, self._said_clearly():
            base = opened or self._base
            base.execute("BEGIN IMMEDIATE")
            try:
                yield base
                base.execute("COMMIT")
            except BaseException:
                if base.in_transaction:  # SQLite itself ends it where the disk is full
                    base.execute("ROLLBACK")
                raise

    @contextmanager
    def _said_clearly(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise StoreError(
                "the log of decisions cannot be read or written", where=str(self.path), got=str(error),
                hint="What was decided before is kept: make room, or stop what else writes there, and try again",
            ) from error  # fmt: skip

    def name_of(self, who: str) -> str:
        """Return under which name a reviewer is kept."""
        seen = "".join(ch for ch in who if ch.isspace() or not _is_unseen(ch))
        who = " ".join(seen.split())[:80] or "reviewer"
        if not self.pseudonyms:
            return who
        if who in self._names:
            return self._names[who]
        with self._at_once() as base:
            key = hashlib.sha256(f"{self._salt}{who}".encode()).hexdigest()
            found = base.execute("SELECT name FROM reviewers WHERE hash = ?", (key,)).fetchone()
            if found is None:
                n = base.execute("SELECT count(*) FROM reviewers").fetchone()[0] + 1
                base.execute("INSERT INTO reviewers (hash, name) VALUES (?, ?)", (key, f"R{n}"))
                found = (f"R{n}",)
        return self._names.setdefault(who, str(found[0]))

    def add(self, decisions: Sequence[Decision]) -> list[int]:
        """Write decisions, all or none; they are on disk when this returns."""
        names = {d.who: self.name_of(d.who) for d in decisions}
        with self._at_once() as base:
            return [self._insert(base, d, names[d.who], "decide" if d.readings else "skip", None) for d in decisions]

    def undo(self, who: str) -> list[Decision]:
        """Take back the last decision of a reviewer with all of its batch; return what was taken back."""
        name = self.name_of(who)
        with self._at_once() as base:
            mine = [d for d in self.live() if d.who == name]
            if not mine:
                return []
            last = mine[-1]
            taken = [d for d in mine if d.id == last.id or (last.batch and d.batch == last.batch)]
            for d in taken:
                self._insert(base, d, name, "undo", d.id)
            return taken

    @staticmethod
    def _insert(base: sqlite3.Connection, d: Decision, who: str, kind: str, undoes: int | None) -> int:
        row = (
            datetime.now(UTC).isoformat(timespec="milliseconds"), who, kind, d.sequence, d.start, d.stop,
            json.dumps(d.readings, ensure_ascii=False), d.audit, d.missed, json.dumps(d.shown, ensure_ascii=False),
            undoes, d.batch,
        )  # fmt: skip
        made = base.execute(
            "INSERT INTO events (at, who, kind, sequence, start, stop, readings, audit, missed, shown, undoes, batch) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        return int(made.lastrowid or 0)

    def live(self) -> list[Decision]:
        """Return what was not taken back, oldest first, skipped ones too."""
        with self._lock:
            self._catch_up()
            return list(self._live.values())

    def _catch_up(self) -> None:
        """Read what is new since the last time: events are never changed, so what was read stays true."""
        if self._opened is None and not self.path.exists():
            return
        columns = "id, at, who, kind, sequence, start, stop, readings, audit, missed, shown, undoes, batch"
        with self._said_clearly():
            rows = self._base.execute(
                f"SELECT {columns} FROM events WHERE id > ? ORDER BY id", (self._last,)
            ).fetchall()
        for row in rows:
            self._last, undone = row[0], row[3] == "undo"
            d = self._live.pop(row[11], None) if undone else _decision(row)
            if d is None:
                continue
            if not undone:
                self._live[d.id] = d
            if d.readings:
                area = self._areas.setdefault((d.sequence, d.start, d.stop, d.audit), _Area())
                area.change(d, undone=undone)

    def standing(self) -> list[Standing]:
        """Return what stands about each area, in the order of the last word on it."""
        with self._lock:
            self._catch_up()
            found = [area.standing for area in self._areas.values() if area.standing is not None]
        return sorted(found, key=lambda s: s.last)

    def agreement(self) -> tuple[int, int]:
        """Return on how many areas several reviewers spoke, and on how many of these they all said the same."""
        with self._lock:
            self._catch_up()
            found = [area.standing for area in self._areas.values()]
        several = [s for s in found if s is not None and len(s.opinions) > 1]
        return len(several), sum(not s.disputed for s in several)

    def copy(self, folder: str | Path) -> None:
        """Write the whole log, if there is one, beside another run of the same texts."""
        if self._opened is None and not self.path.exists():
            return
        with self._lock, self._said_clearly(), closing(sqlite3.connect(Path(folder) / DECISIONS)) as target:
            self._base.backup(target)

    def look(self, fit: str) -> int:
        """Note that a promise was asked of a fit; return the how-manieth different fit it is, from 1."""
        with self._at_once() as base:
            found = base.execute("SELECT number FROM looks WHERE fit = ?", (fit,)).fetchone()
            if found is None:
                found = (base.execute("SELECT count(*) FROM looks").fetchone()[0] + 1,)
                base.execute("INSERT INTO looks VALUES (?, ?)", (fit, found[0]))
        return int(found[0])


def _decision(row: tuple[Any, ...]) -> Decision:
    return Decision(
        sequence=row[4], start=row[5], stop=row[6], who=row[2], audit=bool(row[8]), missed=bool(row[9]),
        readings=tuple(tuple((s, e, k) for s, e, k in reading) for reading in json.loads(row[7])),
        shown=json.loads(row[10]), batch=row[12], id=row[0], at=row[1],
    )  # fmt: skip

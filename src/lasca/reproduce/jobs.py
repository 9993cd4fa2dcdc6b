"""The work cut into jobs: what is to be measured, with plain settings; each result is plain data, kept as a file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import lasca
from lasca.errors import StoreError
from lasca.files import whole_file

__all__ = ["MODELS", "Job", "Results", "Scope", "Store", "at", "code_state"]

DRAWING = {"pages", "blocks.py", "drawing.py", "markup.py", "render.py", "svg.py", "svg_charts.py", "svg_heat.py"}
DRAWING |= {"svg_tokens.py", "statistics.py", "paper.py", "whole.py", "pool.py"}
"""What of this package makes the page, or runs the jobs, and measures nothing."""

MODELS = ("mv", "ds", "mace", "glad", "hmm-crowd", "sembler", "bsc", "hc", "hc-seq")
"""The truth models that docs/reproduction.md has; newer ones join when all of it is run anew."""


@dataclass(frozen=True)
class Scope:
    """How much is run."""

    seeds: tuple[int, ...]
    quick: bool = False


@dataclass(frozen=True)
class Job:
    """One thing to measure: a function of this package by its name, and its settings."""

    section: str
    settings: Mapping[str, Any]
    cost: float = 1.0
    """A guess of its CPU seconds: dear jobs are begun first."""
    needs: tuple[str, ...] = ()
    """The jobs whose results it is given."""
    alone: bool = False
    """Whether it wants a process of its own, to measure memory."""

    @property
    def id(self) -> str:
        """The job's name: its section and its settings."""
        words = "-".join((self.section, *(str(value) for value in self.settings.values())))
        return re.sub(r"[^\w.-]+", "_", words)


@dataclass(frozen=True)
class Results:
    """Everything measured."""

    rows: tuple[tuple[Job, Mapping[str, Any]], ...]
    _by_section: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for job, result in self.rows:
            self._by_section.setdefault(job.section, []).append((job.settings, result))

    def select(self, section: str, **settings: Any) -> list[Mapping[str, Any]]:
        """Return the results of a section's jobs with these settings, in the order of the plan (seeds in order)."""
        return [
            result
            for has, result in self._by_section.get(section, ())
            if all(has.get(name) == value for name, value in settings.items())
        ]

    def values(self, section: str, path: Sequence[str], **settings: Any) -> list[Any]:
        """Return what stands at this path of keys in each of these results."""
        return [at(result, path) for result in self.select(section, **settings)]

    def settings(self, section: str, name: str) -> list[Any]:
        """Return the values that a setting has in a section, in the order of the plan."""
        return list(dict.fromkeys(has[name] for has, _ in self._by_section.get(section, ()) if name in has))


def at(result: Mapping[str, Any], path: Sequence[str]) -> Any:
    """Return what stands at a path of keys in plain data."""
    found: Any = result
    for key in path:
        found = found[key]
    return found


class Store:
    """A folder with one file for each finished job; what another state of the code measured does not count."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _file(self, job: Job) -> Path:
        return self.folder / f"{job.id}.json"

    def get(self, job: Job) -> dict[str, Any] | None:
        """Return what is kept of a job, if anything is and settings and code are the same."""
        file = self._file(job)
        if not file.is_file():
            return None
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
            same = kept["settings"] == json.loads(json.dumps(dict(job.settings))) and kept["code"] == code_state()
            return dict(kept) if same and "result" in kept else None
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                "a kept result is damaged", where=str(file), got=str(error), hint="Delete that file and run again"
            ) from error

    def put(self, job: Job, result: Mapping[str, Any]) -> None:
        """Keep the result of a job."""
        data = {"settings": dict(job.settings), "code": code_state(), "result": rounded(result)}
        with whole_file(self._file(job)) as path:
            path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")

    def all(self, jobs: Sequence[Job]) -> dict[str, Any]:
        """Return everything that was measured, as plain data by the jobs' names."""
        found = {}
        for job in jobs:
            kept = self.get(job)
            if kept is None:
                raise StoreError("a result is missing", where=str(self._file(job)), hint="Run again with --resume")
            found[job.id] = {"code": kept["code"], "result": kept["result"]}
        return found


def rounded(value: Any) -> Any:
    """Return plain data with six digits for each number: as much as a page can want."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {name: rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(part) for part in value]
    return value


@cache
def code_state() -> str:
    """Return a short fingerprint of the code that measures: a page has the figures of one state of it."""
    digest, root = hashlib.sha256(), Path(lasca.__file__).parent
    for file in sorted(root.rglob("*.py")):
        room, *rest = file.relative_to(root).parts
        if room in ("cli", "report", "runs") or (room == "reproduce" and {*rest} & DRAWING):
            continue
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]

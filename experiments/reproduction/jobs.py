"""The work cut into jobs: what is to be measured, with plain settings; each result is plain data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["MODELS", "NEWER", "Job", "Results", "Scope", "at", "rounded"]

MODELS = ("mv", "ds", "mace", "glad", "hmm-crowd", "sembler", "bsc", "hc", "hc-seq")
"""The truth models of every table."""
NEWER = ("crf-ma", "raykar", "robust")
"""Truth models that came later: in tables 1 and 2, and on the 3,000 sentences of table 3."""


@dataclass(frozen=True)
class Scope:
    """How much is run."""

    seeds: tuple[int, ...]
    quick: bool = False


@dataclass(frozen=True)
class Job:
    """One thing to measure: a function of this project by its name, and its settings."""

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


def rounded(value: Any) -> Any:
    """Return plain data with six digits for each number: as much as a page can want."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {name: rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(part) for part in value]
    return value

"""What a reader did to the files it was given: nothing is dropped silently, it is counted here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from lasca.files import written
from lasca.records import Record

__all__ = ["LoadReport"]

IN_WORDS = {
    "trimmed": "blanks at the ends of spans left out",
    "expanded": "spans that cut a token taken for the whole token",
    "shrunk": "spans that cut a token taken without it",
    "overlapping": "spans left out because they overlap another",
}
"""What counts say that are known by a short name."""


@dataclass(frozen=True)
class LoadReport(Record):
    """How a corpus came to be.

    `counts` says how many of each thing happened (keys such as "missing", "skipped", "repaired", "expanded",
    "shrunk", "refused"), `examples` shows a few with file:line, `notes` are sentences for people.
    """

    source: str = ""
    format: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        examples = {kind: tuple(map(written, shown)) for kind, shown in self.examples.items()}
        object.__setattr__(self, "source", written(self.source))
        object.__setattr__(self, "counts", MappingProxyType(dict(self.counts)))
        object.__setattr__(self, "examples", MappingProxyType(examples))
        object.__setattr__(self, "notes", tuple(map(written, self.notes)))

    def in_words(self) -> list[tuple[str, int, str]]:
        """Return what was counted as people read it: what, how often, and the first example ("": none)."""
        return [
            (IN_WORDS.get(kind, kind), n, next(iter(self.examples.get(kind, ())), ""))
            for kind, n in self.counts.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "source": self.source,
            "format": self.format,
            "counts": dict(self.counts),
            "examples": {kind: list(shown) for kind, shown in self.examples.items()},
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LoadReport:
        """Read back what `to_dict` gave."""
        return cls(data["source"], data["format"], data["counts"], data["examples"], tuple(data["notes"]))

    @classmethod
    def merged(cls, reports: Iterable[LoadReport]) -> LoadReport:
        """Add up the counts of several reports and keep a few examples of each kind."""
        counts: dict[str, int] = {}
        examples: dict[str, tuple[str, ...]] = {}
        found = list(reports)
        for report in found:
            for kind, n in report.counts.items():
                counts[kind] = counts.get(kind, 0) + n
            for kind, shown in report.examples.items():
                examples[kind] = (examples.get(kind, ()) + tuple(shown))[:3]
        sources, formats = dict.fromkeys(r.source for r in found), dict.fromkeys(r.format for r in found)
        notes = dict.fromkeys(note for r in found for note in r.notes)
        return cls(", ".join(filter(None, sources)), ", ".join(filter(None, formats)), counts, examples, tuple(notes))

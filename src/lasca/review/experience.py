"""What decisions teach about the queue: on which kinds of items the model errs more than it thinks, and on which less.

Every decision shows how many errors there were in what was inferred, beside how many were expected. Items have traits –
what is asked, the types in question, how people voted –, and for each of them, one trait after the other, the errors
expected of open items are multiplied by (found + K) / (expected + K) of the decided ones that share it. So a model that
is too sure of one type, or of what two of five people said, is corrected after a few dozen decisions, without a refit.
Measured in docs/review-replays.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lasca.review.decisions import Decision
from lasca.review.items import Area, Reading, distance

__all__ = ["Experience", "found_errors", "traits_of"]

K = 5.0
"""So many errors, found as expected, are believed beforehand of every trait."""


def traits_of(area: Area, question: str) -> tuple[str, ...]:
    """Return what an item shares with others, so that deciding those says something about it."""
    types = sorted({kind for reading in area.readings[:2] for _, _, kind in reading})
    most = max(len(voters) for voters in area.voters)
    return (f"{len(area.voters[0])} and {most} of {area.n_voters}", " ".join(types), question)


def found_errors(area: Area, readings: Iterable[Reading]) -> int:
    """Return how many errors a decision found in what was inferred; of several readings the nearest counts."""
    found = min((distance(area.readings[0], tuple(sorted(r))) for r in readings), default=0)
    return min(found, 1) if area.kind == "token" else found


class Experience:
    """Errors found and expected, by trait."""

    def __init__(self, lessons: Iterable[tuple[tuple[str, ...], float, float]] = ()) -> None:
        """Learn from lessons: the traits of a decided item, the errors expected, and those found."""
        rows = [(traits, expected, found) for traits, expected, found in lessons]
        self._factors: list[dict[str, float]] = []
        for place in range(max((len(traits) for traits, _, _ in rows), default=0)):
            expected: dict[str, float] = {}
            found: dict[str, float] = {}
            for traits, usual, errors in rows:
                trait = traits[place]
                expected[trait] = expected.get(trait, K) + usual * self.factor(traits)
                found[trait] = found.get(trait, K) + errors
            self._factors.append({trait: found[trait] / expected[trait] for trait in found})

    @classmethod
    def of(cls, decisions: Iterable[Decision]) -> Experience:
        """Learn from decisions made in the review (others do not say what was expected)."""
        return cls(_lesson(d.shown) for d in decisions if not d.audit and "lesson" in d.shown)

    def factor(self, traits: tuple[str, ...]) -> float:
        """Return by what to multiply the errors expected of an item with these traits."""
        made = 1.0
        for trait, known in zip(traits, self._factors):
            made *= known.get(trait, 1.0)
        return made


def _lesson(shown: dict[str, Any]) -> tuple[tuple[str, ...], float, float]:
    traits, expected, found = shown["lesson"]
    return tuple(map(str, traits)), float(expected), float(found)

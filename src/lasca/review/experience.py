"""What decisions teach about those still to be made: whom to believe, and on which kinds of items the model errs.

Every decision shows which reading was right and how many errors there were in what was inferred, beside what model and
people had said. Two things are learned of that, without a refit, and correct the errors expected of open items:

*Whom to believe.* Of an area of n tokens the model has the share B / (n + B) of the belief, and the people the rest
(`lasca.review.items`). Beforehand B is `BELIEVED`. With decisions each of `TOKENS` is as likely as it makes the
readings that were chosen, and the share is the mean over all of them: where many vote well and a model is too sure of
itself, people soon count for more, and where people often err, the model does.

*Where more errors are found than expected, and where fewer.* Items have traits – what is asked, the types in
question, how people voted –, and for each of them, one after the other, the errors expected are multiplied by
(found + K) / (expected + K) of the decided items that share it. How much K is to be believed beforehand is learned as
well: errors found are Poisson around expected × factor, the factors of a trait's values vary as Gamma(K, K), and each
of `STRENGTHS` counts as likely as it makes what was found under all values. So traits that tell nothing change
nothing, however few items share each of their values. The first trait is shared by all items, so that what was not
met yet is compared fairly with what was.

Measured in docs/review-replays.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import lgamma, log
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.review.decisions import Decision
from lasca.review.items import BELIEVED, Area, Reading, distance

__all__ = ["Experience", "Lesson", "found_errors", "traits_of"]

TOKENS = BELIEVED * 2.0 ** np.arange(-4, 5)
"""What B may be, all alike beforehand."""
STRENGTHS = 5.0 * 2.0 ** np.arange(-2, 4)
"""What K may be, all alike beforehand: so many errors, found as expected, are believed of every value of a trait."""
SLIP = 0.001
"""The chance of a reading in which neither model nor people believe."""


def traits_of(area: Area, question: str) -> tuple[str, ...]:
    """Return what an item shares with others, so that deciding those says something about it."""
    types = sorted({kind for reading in area.readings[:2] for _, _, kind in reading})
    most = max(len(voters) for voters in area.voters)
    return ("any", question, " ".join(types), f"{len(area.voters[0])} and {most} of {area.n_voters}")


def found_errors(area: Area, readings: Iterable[Reading]) -> int:
    """Return how many errors a decision found in what was inferred; of several readings the nearest counts."""
    found = min((distance(area.readings[0], tuple(sorted(r))) for r in readings), default=0)
    return min(found, 1) if area.kind == "token" else found


@dataclass(frozen=True)
class Lesson:
    """What one decision taught, beside what was thought before it."""

    traits: tuple[str, ...]
    breadth: int
    """The tokens along which the people count (`Area.breadth`)."""
    model: tuple[float, float]
    """The errors that the model expected, and how far it believed in what was chosen."""
    people: tuple[float, float]
    """The same of the people."""
    found: float
    """The errors that there were."""

    @classmethod
    def of(cls, area: Area, traits: tuple[str, ...], readings: Sequence[Reading]) -> Lesson:
        """Compare what was chosen with an area as it was shown; several readings are all right."""
        right = {tuple(sorted(r)) for r in readings}
        model, people = (
            sum(belief for belief, reading in zip(beliefs, area.readings) if reading in right)
            for beliefs in (area.weights, area.people)
        )
        found = found_errors(area, readings)
        return cls(traits, area.breadth, (area.by_model, model), (area.by_people, people), found)

    @classmethod
    def read(cls, kept: dict[str, Any]) -> Lesson:
        """Take up a lesson that was kept in a log."""
        (a, b), (c, d) = kept["model"], kept["people"]
        traits = tuple(map(str, kept["traits"]))
        return cls(traits, int(kept["breadth"]), (float(a), float(b)), (float(c), float(d)), float(kept["found"]))

    def plain(self) -> dict[str, Any]:
        """Return it as plain data, for the log."""
        return asdict(self)


class Experience:
    """What all lessons so far say of items that are open."""

    def __init__(self, lessons: Iterable[Lesson] = ()) -> None:
        known = list(lessons)
        self._tokens = _whom_to_believe(known)
        self._factors: list[dict[str, float]] = []
        expected = [self._expected(one.breadth, one.model[0], one.people[0]) for one in known]
        for place in range(max((len(one.traits) for one in known), default=0)):
            sums: dict[str, tuple[float, float]] = {}
            for one, usual in zip(known, expected):
                before, found = sums.get(one.traits[place], (0.0, 0.0))
                sums[one.traits[place]] = before + usual * self.factor(one.traits), found + one.found
            self._factors.append(_factors(sums))

    @classmethod
    def of(cls, decisions: Iterable[Decision]) -> Experience:
        """Learn from decisions of the queue (audits, and decisions made elsewhere, do not say what was expected)."""
        kept = (d.shown.get("lesson") for d in decisions)
        return cls(Lesson.read(one) for one in kept if isinstance(one, dict))  # those of older logs say less

    def errors(self, area: Area, traits: tuple[str, ...]) -> float:
        """Return the errors expected in what was inferred here."""
        if not self._factors:
            return area.errors
        return self._expected(area.breadth, area.by_model, area.by_people) * self.factor(traits)

    def factor(self, traits: tuple[str, ...]) -> float:
        """Return by what to multiply the errors expected of an item with these traits."""
        made = 1.0
        for trait, known in zip(traits, self._factors):
            made *= known.get(trait, 1.0)
        return made

    def model_share(self, breadth: int) -> float:
        """Return how far the model is believed of an area of so many tokens; the rest is the people's."""
        return float(self._tokens @ (TOKENS / (breadth + TOKENS)))

    def _expected(self, breadth: int, model: float, people: float) -> float:
        share = self.model_share(breadth)
        return share * model + (1 - share) * people


def _whom_to_believe(lessons: Sequence[Lesson]) -> npt.NDArray[np.float64]:
    """Return how likely each of `TOKENS` is by what was chosen."""
    fits = np.zeros(len(TOKENS))
    for one in lessons:
        share = TOKENS / (one.breadth + TOKENS)
        fits += np.log(share * one.model[1] + (1 - share) * one.people[1] + SLIP)
    return _shares(fits)


def _factors(sums: dict[str, tuple[float, float]]) -> dict[str, float]:
    """Return for every value of a trait by what to multiply, of the errors expected and found under each of them."""
    fits = [
        sum(lgamma(k + found) - lgamma(k) + k * log(k) - (k + found) * log(k + usual) for usual, found in sums.values())
        for k in STRENGTHS.tolist()
    ]
    likely = _shares(np.array(fits))
    return {
        value: float(likely @ ((found + STRENGTHS) / (usual + STRENGTHS))) for value, (usual, found) in sums.items()
    }


def _shares(logs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    shares = np.exp(logs - logs.max())
    return np.asarray(shares / shares.sum())

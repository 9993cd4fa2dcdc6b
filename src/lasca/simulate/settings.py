"""What a simulated crowd is asked to be, and its annotators at work.

The parameters of `crowd`, checked (`CrowdSettings`), the annotators they make, what all of them have before them
(`Scene`), and one of them at work (`Work`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lasca.arrays import Bools, Codes, Floats, Ints
from lasca.corpus import CrowdCorpus
from lasca.errors import ParameterError
from lasca.estimator import check_choice, check_int, check_number
from lasca.simulate import slips

__all__ = [
    "CROWDS", "ERRORS", "RANGES", "SPAMMERS", "SPAN_ERRORS", "WRONG", "CrowdSettings", "Person", "Scene", "Work",
    "check_range",
]  # fmt: skip

CROWDS: Mapping[str, Mapping[str, int]] = {
    "ca1": {"high": 8, "medium": 4, "low": 3},
    "ca2": {"high": 5, "medium": 5, "low": 5},
    "ca3": {"high": 3, "medium": 4, "low": 8},
}
"""The three crowds of the paper; `groups` takes their names."""

RANGES: Mapping[str, tuple[float, float]] = {"high": (0.7, 0.9), "medium": (0.4, 0.7), "low": (0.1, 0.4)}
"""The paper's ranges of precision, by group."""

ERRORS = ("independent", "difficulty", "spans")
WRONG = ("uniform", "prior", "annotator", "shared")
SPAMMERS = ("constant", "random", "prior")
SPAN_ERRORS: Mapping[str, float] = {"miss": 0.45, "short": 0.15, "long": 0.15, "type": 0.25}
"""What goes wrong with a span, and how often relative to each other."""


@dataclass(frozen=True)
class CrowdSettings:
    """The parameters of `crowd`; see there."""

    gold: str | None = None
    groups: Mapping[str, int] | str = "ca1"
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=lambda: dict(RANGES))
    errors: str = "independent"
    wrong: str = "uniform"
    per_label: bool = False
    concentration: float = 1.0
    common: float = 0.0
    rho: float = 0.4
    hard_cases: float = 0.0
    second_gold: str | None = None
    missing: float = 0.0
    annotators_per_sequence: int | None = None
    spammers: Mapping[str, int] | None = None
    copying: int = 0
    copy_rate: float = 0.9
    span_errors: Mapping[str, float] = field(default_factory=lambda: dict(SPAN_ERRORS))
    false_spans: float = 0.1
    seed: int | np.random.Generator = 0

    def check(self, corpus: CrowdCorpus) -> None:
        """Raise a ParameterError that names the first parameter out of range."""
        for name in ("groups", "ranges", "spammers", "span_errors"):
            value = getattr(self, name)
            if not isinstance(value, {"groups": Mapping | str, "spammers": Mapping | None}.get(name, Mapping)):
                also = f" or one of {', '.join(CROWDS)}" if name == "groups" else ""
                raise ParameterError(name, value, f"a mapping{also}")
        check_choice("errors", self.errors, ERRORS)
        check_choice("wrong", self.wrong, WRONG)
        if not isinstance(self.per_label, bool):
            raise ParameterError("per_label", self.per_label, "True or False")
        check_number("concentration", self.concentration, low=0, open_low=True)
        for name in ("common", "rho", "hard_cases", "missing", "copy_rate"):
            check_number(name, getattr(self, name), low=0, high=1)
        check_number("false_spans", self.false_spans, low=0)
        check_int("copying", self.copying, low=0)
        if self.hard_cases and self.second_gold is None:
            raise ParameterError("second_gold", None, "the name of a gold where hard_cases is above 0")
        for kind, n in (self.spammers or {}).items():
            check_choice("spammers", kind, SPAMMERS)
            check_int(f"spammers[{kind!r}]", n, low=0)
        for kind, weight in self.span_errors.items():
            check_choice("span_errors", kind, tuple(SPAN_ERRORS))
            check_number(f"span_errors[{kind!r}]", weight, low=0)
        if self.errors == "spans" and not sum(self.span_errors.values()) > 0:
            raise ParameterError("span_errors", dict(self.span_errors), "weights of which one at least is above 0")
        n_people = len(self.people())
        if self.annotators_per_sequence is not None:
            check_int("annotators_per_sequence", self.annotators_per_sequence, low=1, high=n_people)
        gold, _ = self.gold_codes(corpus)
        if any((self.spammers or {}).values()) and not (gold >= 0).any():
            raise ParameterError("gold", self.gold, "the name of a gold with a label at least, for spammers to write")

    def group_sizes(self) -> Mapping[str, int]:
        """Return the groups and how many annotators each has."""
        if isinstance(self.groups, str):
            return CROWDS[check_choice("groups", self.groups, tuple(CROWDS))]
        for name, n in self.groups.items():
            if not str(name):
                raise ParameterError("groups", self.groups, "a mapping from names of groups to numbers of annotators")
            check_int(f"groups[{name!r}]", n, low=0)
        return self.groups

    def range_of(self, group: str) -> tuple[float, float]:
        """Return the lowest and the highest precision of a group."""
        if group not in self.ranges:
            raise ParameterError("ranges", dict(self.ranges), f"a mapping that also has the group {group!r}")
        return check_range(f"ranges[{group!r}]", self.ranges[group])

    def people(self) -> list[Person]:
        """Name the annotators: groups in their order, then spammers, then those who copy."""
        honest = [
            Person(f"{group}-{i + 1}", group, self.range_of(group))
            for group, n in self.group_sizes().items()
            for i in range(n)
        ]
        spammers = self.spammers or {}
        spam = [Person(f"spam-{kind}-{i + 1}", f"spam-{kind}") for kind, n in spammers.items() for i in range(n)]
        if not honest and (self.copying or not spam):
            raise ParameterError("groups", self.groups, "a mapping with at least one annotator in it")
        copies = [Person(f"copy-{i + 1}", "copy") for i in range(self.copying)]
        names = [person.name for person in (*honest, *spam, *copies)]
        if len(set(names)) != len(names):
            raise ParameterError("groups", self.groups, "names that differ from spam-… and copy")
        return honest + spam + copies

    def gold_codes(self, corpus: CrowdCorpus) -> tuple[Codes, Codes | None]:
        """Return the gold labels the crowd starts from, and the second ones."""
        if not corpus.golds:
            raise ParameterError("corpus", corpus, "a corpus with a gold: a crowd is simulated on true labels")
        usual = next((name for name in ("gold", "gold1") if name in corpus.golds), next(iter(corpus.golds)))
        gold = check_choice("gold", usual if self.gold is None else self.gold, tuple(corpus.golds))
        if self.second_gold is None:
            return corpus.golds[gold], None
        return corpus.golds[gold], corpus.golds[check_choice("second_gold", self.second_gold, tuple(corpus.golds))]


def check_range(name: str, bounds: Any) -> tuple[float, float]:
    """Return the lowest and the highest precision, or say what is allowed."""
    if not isinstance(bounds, Sequence | np.ndarray) or len(bounds) != 2:
        raise ParameterError(name, bounds, "two numbers, the lowest and the highest precision")
    low = check_number(name, bounds[0], low=0, high=1)
    return low, check_number(name, bounds[1], low=low, high=1)


@dataclass(frozen=True)
class Person:
    """One simulated annotator: name, group, and the range its precision is drawn from (none for spammers, copies)."""

    name: str
    group: str
    range: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Scene:
    """What is the same for all annotators."""

    settings: CrowdSettings
    n_labels: int
    offsets: Ints
    gold: Codes
    second: Codes | None
    shares: Floats
    shared_rows: Floats
    common: Bools
    common_label: Codes
    difficulty: Floats | None
    spans: slips.SpanLabels | None
    cases: tuple[Ints, Bools] | None

    @classmethod
    def draw(cls, corpus: CrowdCorpus, settings: CrowdSettings, rng: np.random.Generator) -> Scene:
        """Draw what is common to all: shared habits, tokens that are wrong for everybody, difficulties."""
        gold, second = settings.gold_codes(corpus)
        shares = slips.label_shares(gold, corpus.n_labels)
        wrong = "prior" if settings.wrong == "annotator" else settings.wrong
        rows = slips.wrong_rows(wrong, shares, rng, settings.concentration)
        known = np.flatnonzero(gold >= 0)
        n_common = round(settings.common * len(known))
        hit = rng.permutation(known)[:n_common]
        common = np.zeros(len(gold), np.bool_)
        common[hit] = True
        label = gold.copy()
        everywhere = np.where(gold >= 0, slips.pick(rows, np.maximum(gold, 0), rng.random(len(gold))), gold)
        label[hit] = everywhere[hit]
        hard = rng.standard_normal(len(gold))
        spans = slips.SpanLabels.of(corpus.labels) if settings.errors == "spans" else None
        by_case = None
        if spans is not None and second is not None:
            by_case = slips.cases(gold, second, corpus.offsets, spans)
        difficulty = hard if settings.errors == "difficulty" else None
        return cls(
            settings=settings, n_labels=corpus.n_labels, offsets=corpus.offsets, gold=gold, second=second,
            shares=shares, shared_rows=rows, common=common, common_label=label, difficulty=difficulty,
            spans=spans, cases=by_case,
        )  # fmt: skip


class Work:
    """One annotator at work: draws its precision and habits once, and its labels for all tokens when asked."""

    def __init__(self, person: Person, scene: Scene, precision: Floats, rng: np.random.Generator) -> None:
        self.person, self.scene, self.precision, self.rng = person, scene, precision, rng
        self._labels: Codes | None = None
        self.rows = scene.shared_rows
        if scene.settings.wrong == "annotator":
            self.rows = slips.wrong_rows("annotator", scene.shares, rng, scene.settings.concentration)

    def labels(self, *, keep: bool = False) -> Codes:
        """Return what the annotator would write on every token (-1 where there is no gold).

        `keep` remembers them for those who copy: drawn a second time they would be others.
        """
        if self._labels is not None:
            return self._labels
        drawn = self._honest() if self.person.range is not None else self._spam()
        codes = np.where(self.scene.gold >= 0, drawn, -1).astype(np.int16)
        if keep:
            self._labels = codes
        return codes

    def copied(self, source: Work) -> Codes:
        """Return what this annotator hands in as its own: the source's labels, and its own work now and then."""
        self.precision, self.rows = source.precision, source.rows
        copies = self.rng.random(len(self.scene.gold)) < self.scene.settings.copy_rate
        own = np.where(self.scene.gold >= 0, self._honest(), -1)
        return np.where(copies, source.labels(keep=True), own).astype(np.int16)

    def _start(self) -> Codes:
        scene, settings = self.scene, self.scene.settings
        start = scene.gold
        if scene.second is not None and settings.hard_cases:
            if scene.cases is None:
                differ = (scene.second != scene.gold) & (scene.second >= 0) & (scene.gold >= 0)
                takes = differ & (self.rng.random(len(start)) < settings.hard_cases)
            else:
                case, hard = scene.cases
                takes = (hard & (self.rng.random(len(hard)) < settings.hard_cases))[case] & (scene.second >= 0)
            start = np.where(takes, scene.second, start)
        return np.where(scene.common, scene.common_label, start).astype(np.int16)

    def _honest(self) -> Codes:
        scene, settings = self.scene, self.scene.settings
        start = self._start()
        if scene.spans is not None:
            wrong = slips.off_diagonal(self.rows[np.ix_(scene.spans.begin_code, scene.spans.begin_code)])
            return slips.spoil(
                start, scene.offsets, scene.spans, precision=self.precision, weights=settings.span_errors,
                wrong=wrong, false_spans=settings.false_spans, rng=self.rng,
            )  # fmt: skip
        at = np.maximum(start, 0)
        keeps = slips.right(self.precision[at], scene.difficulty, settings.rho, self.rng, len(start))
        slipped = np.flatnonzero(~keeps)
        start[slipped] = slips.pick(self.rows, at[slipped], self.rng.random(len(start))[slipped])
        return start

    def _spam(self) -> Codes:
        scene, n = self.scene, len(self.scene.gold)
        if self.person.group == "spam-constant":
            return np.full(n, self.rng.choice(scene.n_labels, p=scene.shares), np.int16)
        if self.person.group == "spam-prior":
            return self.rng.choice(scene.n_labels, n, p=scene.shares).astype(np.int16)
        return self.rng.choice(np.flatnonzero(scene.shares > 0), n).astype(np.int16)

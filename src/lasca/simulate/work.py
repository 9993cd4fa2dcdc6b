"""What all simulated annotators have before them, and one annotator at work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.simulate import slips
from lasca.simulate.settings import CrowdSettings, Person

__all__ = ["Scene", "Work"]

Codes = npt.NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class Scene:
    """What is the same for all annotators."""

    settings: CrowdSettings
    n_labels: int
    offsets: npt.NDArray[np.int64]
    gold: Codes
    second: Codes | None
    shares: npt.NDArray[np.float64]
    shared_rows: npt.NDArray[np.float64]
    common: npt.NDArray[np.bool_]
    common_label: Codes
    difficulty: npt.NDArray[np.float64] | None
    spans: slips.SpanLabels | None
    cases: tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]] | None

    @classmethod
    def draw(cls, corpus: CrowdCorpus, settings: CrowdSettings, rng: np.random.Generator) -> Scene:
        """Draw what is common to all: shared habits, tokens that are wrong for everybody, difficulties."""
        gold, second = settings.gold_codes(corpus)
        shares = slips.label_shares(gold, corpus.n_labels)
        own_habits = settings.wrong == "annotator"
        rows = _wrong_rows("prior" if own_habits else settings.wrong, shares, settings, rng)
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
        return cls(
            settings=settings,
            n_labels=corpus.n_labels,
            offsets=corpus.offsets,
            gold=gold,
            second=second,
            shares=shares,
            shared_rows=rows,
            common=common,
            common_label=label,
            difficulty=hard if settings.errors == "difficulty" else None,
            spans=spans,
            cases=by_case,
        )


class Work:
    """One annotator at work: draws its precision and habits once, and its labels for all tokens when asked."""

    def __init__(
        self, person: Person, scene: Scene, precision: npt.NDArray[np.float64], rng: np.random.Generator
    ) -> None:
        self.person, self.scene, self.precision, self.rng = person, scene, precision, rng
        self._labels: Codes | None = None
        settings = scene.settings
        self.rows = scene.shared_rows
        if settings.wrong == "annotator":
            self.rows = _wrong_rows("annotator", scene.shares, settings, rng)

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
            return slips.spoil(
                start,
                scene.offsets,
                scene.spans,
                precision=self.precision,
                weights=settings.span_errors,
                wrong=slips.off_diagonal(self.rows[np.ix_(scene.spans.begin_code, scene.spans.begin_code)]),
                false_spans=settings.false_spans,
                rng=self.rng,
            )
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


def _wrong_rows(
    kind: str, shares: npt.NDArray[np.float64], settings: CrowdSettings, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    return slips.wrong_rows(kind, shares, rng, concentration=settings.concentration)

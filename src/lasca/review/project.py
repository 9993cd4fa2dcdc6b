"""A run with the decisions about it: what review, decide, accept and finish share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.ambiguity import Ambiguity
from lasca.corpus import CrowdCorpus
from lasca.errors import StoreError
from lasca.review.decisions import Decision, Log
from lasca.review.experience import Experience
from lasca.review.items import Area, find_items
from lasca.review.known import Known, check_decision, clamped, known_labels, needed_labels, refit, with_labels
from lasca.review.promise import Promise, Unit, audit_order, certainty_of, judge, make_promise, units_of
from lasca.review.queue import Queue, make_queue, ranked
from lasca.review.spans import Labels
from lasca.truth import Truth
from lasca.truth.base import Progress

__all__ = ["Fit", "Project"]


@dataclass(frozen=True)
class Fit:
    """A corpus and its truth with some decisions taken as known."""

    corpus: CrowdCorpus
    truth: Truth
    known: Known
    key: str
    """Names the decisions it was made with (none of the audit)."""


class Project:
    """A folder that `lasca run` (or `lasca aggregate`) wrote, and what people decided about it."""

    def __init__(self, folder: str | Path, *, pseudonyms: bool = False) -> None:
        self.folder = Path(folder)
        if not (self.folder / "truth").is_dir():
            raise StoreError(
                "there is no inferred truth in this folder",
                where=str(folder),
                hint="Make one with: lasca run DATA -o FOLDER",
            )
        self.corpus = CrowdCorpus.load(self.folder / "corpus")
        self.truth = Truth.load(self.folder / "truth")
        has = (self.folder / "ambiguity").is_dir()
        self.ambiguity = Ambiguity.load(self.folder / "ambiguity") if has else None
        self.record = self._record()
        asked = bool(self.record.get("parameters", {}).get("pseudonyms"))
        self.log = Log(self.folder, pseudonyms=pseudonyms or asked)
        self.labels = Labels.of(self.corpus)

    def _record(self) -> dict[str, Any]:
        try:
            return dict(json.loads((self.folder / "run.json").read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return {}

    @cached_property
    def places(self) -> dict[str, int]:
        """The sequence of each id."""
        return {id: s for s, id in enumerate(self.corpus.sequence_ids)}

    @cached_property
    def areas(self) -> list[Area]:
        """The areas of the first fit."""
        return find_items(self.corpus, self.truth, labels=self.labels, everything=True)

    @cached_property
    def units(self) -> list[Unit]:
        """What can be audited and accepted."""
        return units_of(self.corpus, self.truth, self.labels, self.areas)

    @cached_property
    def audits(self) -> list[int]:
        """The units that can be accepted, in the order of the audit."""
        return audit_order(self.units, certainty_of(self.corpus, self.truth, self.units, self.labels, self.areas))

    def check(self, decisions: Sequence[Decision]) -> None:
        """Refuse decisions that do not fit this run."""
        for decision in decisions:
            check_decision(self.corpus, self.labels, self.places, decision)

    def standing(self) -> list[Decision]:
        """Return what was decided and stands, oldest first."""
        return [s.decision for s in self.log.standing()]

    def fit(self, *, again: bool = True, progress: Progress | None = None) -> Fit:
        """Return the truth with all decisions but those of the audit; `again` infers the rest anew."""
        decisions = [d for d in self.standing() if not d.audit]
        corpus, truth = with_labels(self.corpus, self.truth, needed_labels(self.labels, decisions))
        known = known_labels(corpus, decisions, audits=False)
        made = refit(corpus, truth, known, progress) if again else clamped(truth, known)
        text = json.dumps([[d.sequence, d.start, d.stop, d.readings] for d in decisions])
        return Fit(corpus, made, known, hashlib.sha256(f"{again} {text}".encode()).hexdigest())

    def queue(self, fit: Fit, areas: Sequence[Area] | None = None) -> Queue:
        """Return what is left to decide, ranked by the fit and by what decisions taught."""
        decided = fit.known.source > 0
        experience = Experience.of(self.standing())
        return make_queue(
            fit.corpus, fit.truth, self.ambiguity, decided=decided, areas=areas, experience=experience
        )  # fmt: skip

    def ranked(self, queue: Queue) -> Queue:
        """Rank a queue anew, by what decisions taught since."""
        return ranked(queue, Experience.of(self.standing()))

    def audited(self, fit: Fit) -> list[tuple[int, bool]]:
        """Return the units that were audited, in the order in which they were drawn, and whether they are wrong.

        Only the run of units from the first one drawn on counts: one that was left out (skipped) ends it, so that
        nobody can choose what is audited.
        """
        said = {(d.sequence, d.shown.get("unit")): d for d in self.standing() if d.audit}
        labels = Labels.of(fit.corpus)
        found: list[tuple[int, bool]] = []
        for u in self.audits:
            unit = self.units[u]
            decision = said.get((self.corpus.sequence_ids[unit.sequence], unit.id))
            if decision is None:
                break
            found.append((u, judge(fit.corpus, fit.truth, labels, self.units, u, decision)))
        return found

    def next_audits(self, n: int) -> list[Unit]:
        """Return the units that are to be audited next."""
        done = {d.shown.get("unit") for d in self.standing() if d.audit}
        return [self.units[u] for u in self.audits if self.units[u].id not in done][:n]

    def open_units(self, fit: Fit) -> npt.NDArray[np.bool_]:
        """Return which units nobody decided in the queue."""
        decided = fit.known.source == 1
        found = np.ones(len(self.units), bool)
        for i, u in enumerate(self.units):
            base = int(self.corpus.offsets[u.sequence])
            found[i] = not decided[base + u.start : base + u.stop].any()
        return found

    def promise(self, fit: Fit, *, error: float, confidence: float) -> Promise:
        """Say what can be accepted without a look (see `lasca.review.promise`)."""
        audited = self.audited(fit)
        number = self.log.look(fit.key) if audited else 1
        certainty = certainty_of(fit.corpus, fit.truth, self.units, Labels.of(fit.corpus))
        return make_promise(
            certainty,
            audited,
            error=error,
            confidence=confidence,
            open_units=self.open_units(fit),
            sure=self.audits,
            fit=number,
        )

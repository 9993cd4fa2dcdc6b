"""A run with the decisions about it: what review, decide, accept and finish share.

Decisions become known labels: what the next fit takes as given, and what the final labels hold.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca import __version__
from lasca.ambiguity import Ambiguity
from lasca.corpus import CrowdCorpus
from lasca.errors import CorpusError, StoreError
from lasca.files import SUMS, file_hash
from lasca.review.decisions import Decision, Log
from lasca.review.experience import Experience
from lasca.review.items import Area, Reading, find_items
from lasca.review.promise import Promise, Unit, audit_order, certainty_of, judge, make_promise, units_of
from lasca.review.queue import Queue, make_queue, ranked
from lasca.review.spans import Labels
from lasca.truth import Truth, TruthModel, model_class
from lasca.truth.base import Progress

__all__ = ["Fit", "Project", "clamped", "known_labels", "load_truth", "refit", "same_model", "with_labels"]

KEPT = "refit"
"""The folder in OUT with the last fit."""


@dataclass(frozen=True)
class Known:
    """Decisions as arrays over tokens."""

    allowed: npt.NDArray[np.bool_]
    """(n_tokens, n_labels): what each token may be; all where nothing was decided."""
    codes: npt.NDArray[np.int64]
    """The decided label (the first reading where several are kept), -1 elsewhere."""
    source: npt.NDArray[np.int8]
    """0 nothing, 1 decided, 2 audited."""


def check_decision(corpus: CrowdCorpus, labels: Labels, decision: Decision) -> int:
    """Return the sequence a decision is about; refuse one that does not fit the texts or the types."""
    where = f"decision on sequence {decision.sequence!r}, tokens {decision.start}-{decision.stop}"
    if decision.sequence not in corpus.places:
        raise CorpusError("there is no such sequence in this run", where=where)
    s = corpus.places[decision.sequence]
    n = int(corpus.offsets[s + 1] - corpus.offsets[s])
    if not 0 <= decision.start < decision.stop <= n:
        raise CorpusError(f"the sequence has {n} tokens", where=where)
    for reading in decision.readings:
        last = decision.start
        for start, stop, kind in sorted(reading):
            if not last <= start < stop <= decision.stop:
                raise CorpusError(
                    "spans must lie inside what is decided, one behind the other", where=where, got=reading
                )
            if kind not in labels.types:
                known = ", ".join(labels.types)
                raise CorpusError(f"there is no such label (there is: {known})", where=where, got=kind)
            last = stop
        if labels.scheme is None and sum(e - b for b, e, _ in reading) != decision.stop - decision.start:
            raise CorpusError("every token needs a label", where=where, got=reading)
    return s


def with_labels(corpus: CrowdCorpus, truth: Truth, labels: Iterable[str]) -> tuple[CrowdCorpus, Truth]:
    """Return both with these labels behind their own, where they lack them; nothing else changes."""
    more = [name for name in dict.fromkeys(labels) if name not in corpus.labels]
    if not more:
        return corpus, truth
    names = (*corpus.labels, *more)
    code = np.arange(corpus.n_labels)
    soft = None if corpus.soft is None else corpus.soft.recoded(code, len(names))
    known = None if corpus.known is None else corpus.known.recoded(code, len(names))
    wide = replace(corpus, labels=names, soft=soft, known=known)
    row, square = ((0, 0), (0, len(more))), ((0, 0), (0, len(more)), (0, len(more)))
    clusters = truth.clusters
    if clusters is not None:
        clusters = replace(clusters, shared=np.pad(clusters.shared, square))
    proba, confusion = np.pad(truth.proba, row), np.pad(truth.confusion, square)
    return wide, replace(truth, label_names=names, proba=proba, confusion=confusion, clusters=clusters)


def needed_labels(labels: Labels, decisions: Iterable[Decision]) -> list[str]:
    """Return the labels that decisions need (a tag that nobody ever gave, such as the I- of a new long span)."""
    return [
        name
        for d in decisions
        for reading in d.readings
        for name in labels.tags(_inside(reading, d.start), d.stop - d.start)
    ]


def known_labels(corpus: CrowdCorpus, decisions: Iterable[Decision], *, audits: bool) -> Known:
    """Turn decisions, oldest first, into what is known of each token; audits only where asked.

    A later decision replaces an earlier one where they overlap, and what the earlier one said of its other tokens
    stays; but of a span that is cut, what is left is open again: nobody said so. The token behind what was decided
    cannot continue it.
    """
    labels = Labels.of(corpus)
    allowed = np.ones((corpus.n_tokens, corpus.n_labels), bool)
    codes = np.full(corpus.n_tokens, -1, np.int64)
    source = np.zeros(corpus.n_tokens, np.int8)
    goes_on = np.array([name[:1] in ("I", "E", "L", "M") for name in corpus.labels]) & (
        labels.scheme in ("IOB2", "BIOES", "BILOU", "BMES")
    )
    spans: dict[int, set[tuple[int, int]]] = {}  # of each sequence, as far as they stand
    for d in decisions:
        if d.audit and not audits:
            continue
        s = check_decision(corpus, labels, d)
        base = int(corpus.offsets[s])
        a, b = base + d.start, base + d.stop
        if labels.scheme is not None:
            own = spans.setdefault(s, set())
            cut = {(first, last) for first, last in own if first < b and last > a}
            for first, last in cut:
                allowed[first:last], codes[first:last], source[first:last] = True, -1, 0
            own -= cut
            own |= {(base + first, base + last) for reading in d.readings for first, last, _ in reading}
        allowed[a:b] = False
        for i, reading in enumerate(d.readings):
            written = labels.codes(_inside(reading, d.start), d.stop - d.start)
            assert written is not None, "with_labels was not called"
            allowed[np.arange(a, b), written] = True
            if i == 0:
                codes[a:b] = written
        source[a:b] = 2 if d.audit else 1
    decided = source > 0
    behind = np.flatnonzero(~decided[1:] & decided[:-1]) + 1
    behind = behind[~np.isin(behind, corpus.offsets)]
    allowed[behind] &= ~goes_on
    allowed[behind[~allowed[behind].any(axis=1)]] = True
    return Known(allowed, codes, source)


def _inside(reading: Reading, start: int) -> list[tuple[int, int, str]]:
    return [(s - start, e - start, kind) for s, e, kind in reading]


def clamped(truth: Truth, known: Known) -> Truth:
    """Return a truth that says what was decided where something was."""
    proba = np.where(known.allowed, truth.proba, 0).astype(np.float32)
    total = proba.sum(axis=1, keepdims=True)
    even = known.allowed / known.allowed.sum(axis=1, keepdims=True)
    proba = np.where(total > 1e-12, proba / np.maximum(total, 1e-12), even).astype(np.float32)
    labels = np.where(known.source > 0, known.codes, truth.labels)
    barred = ~known.allowed[np.arange(len(labels)), labels]  # it went on with a span that was decided to end before it
    labels = np.where(barred, proba.argmax(axis=1), labels).astype(np.int16)
    return replace(truth, proba=proba, labels=labels)


def same_model(truth: Truth) -> TruthModel:
    """Return the model that gave a truth, with the parameters it had."""
    made: TruthModel = model_class(truth.model)()
    own = made.get_params()
    plain = {k: v for k, v in truth.params.items() if k in own and isinstance(v, str | int | float | bool | None)}
    return made.set_params(**plain)


def refit(corpus: CrowdCorpus, truth: Truth, known: Known, progress: Progress | None = None) -> Truth:
    """Infer the truth anew with what is known, by the same model with the same parameters.

    A model that cannot take known labels is not run again: then decisions change what they are about, and no more.
    """
    model = same_model(truth)
    if not learns(truth, known):
        return clamped(truth, known)
    allowed = known.allowed
    if corpus.known is not None:  # what was known before holds where no decision says otherwise
        both = allowed & corpus.known.mask(corpus.n_tokens)
        allowed = np.where(both.any(axis=1, keepdims=True), both, allowed)
    return clamped(model.fit(corpus.with_known(allowed), progress=progress), known)


def learns(truth: Truth, known: Known) -> bool:
    """Say whether the model can make something of what is known, and there is something."""
    return bool((known.source > 0).any()) and "known" in same_model(truth).supports


def load_truth(path: str | Path, how: str = "lasca aggregate") -> tuple[CrowdCorpus, Truth]:
    """Read back corpus and truth from a folder that `lasca aggregate` or `lasca run` wrote; `how` is what makes one.

    The truth of a corpus in shards has no corpus beside it.
    """
    folder = Path(path)
    if not (folder / "truth").is_dir():
        raise StoreError(
            "there is no inferred truth in this folder", where=str(path), hint=f"Make one with: {how} DATA -o FOLDER"
        )
    if not (folder / "corpus").exists():
        raise StoreError(
            "this is the truth of a corpus in shards: it has neither report nor review", where=str(folder),
            hint="Run a part of the data, or all of it where it fits into memory, without `lasca shard`",
        )  # fmt: skip
    return CrowdCorpus.load(folder / "corpus"), Truth.load(folder / "truth")


@dataclass(frozen=True)
class Fit:
    """A corpus and its truth with some decisions taken as known."""

    corpus: CrowdCorpus
    truth: Truth
    known: Known
    key: str
    """Names the run and the decisions it was made with (none of the audit)."""


class Project:
    """A folder that `lasca run` (or `lasca aggregate`) wrote, and what people decided about it."""

    def __init__(self, folder: str | Path, *, pseudonyms: bool = False) -> None:
        self.folder = Path(folder)
        self.corpus, self.truth = load_truth(folder, "lasca run")
        has = (self.folder / "ambiguity").is_dir()
        self.ambiguity = Ambiguity.load(self.folder / "ambiguity") if has else None
        self.record = self._record()
        asked = bool(self.record.get("parameters", {}).get("pseudonyms"))
        self.log = Log(self.folder, pseudonyms=pseudonyms or asked)
        self.labels = Labels.of(self.corpus)

    def _record(self) -> dict[str, Any]:
        try:
            return dict(json.loads((self.folder / "run.json").read_text(encoding="utf-8")))
        except FileNotFoundError:  # what `lasca aggregate` wrote
            return {}
        except (OSError, ValueError, TypeError) as error:  # it may say that names of people are not to be kept
            raise StoreError("the record of the run is damaged", where=str(self.folder), got=str(error)) from error

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
            check_decision(self.corpus, self.labels, decision)

    def standing(self) -> list[Decision]:
        """Return what was decided and stands, oldest first."""
        return [s.decision for s in self.log.standing()]

    def taught(self) -> list[Decision]:
        """Return the decisions that a fit learns from: none of the audit, and none on what was audited before.

        (Who corrected what the audit had found would make its units better than those it stands for.)
        """
        audited: dict[str, list[Decision]] = {}
        found = []
        for d in self.standing():
            if d.audit:
                audited.setdefault(d.sequence, []).append(d)
            elif not any(d.start < a.stop and d.stop > a.start for a in audited.get(d.sequence, ())):
                found.append(d)
        return found

    def fit(self, *, again: bool = True, progress: Progress | None = None) -> Fit:
        """Return the truth with the decisions that may teach it (`taught`); `again` infers the rest anew.

        It is made from the start, so that it follows from run and log alone. (Fits that went on from the one before
        stayed where that had ended, right or wrong: experiments/replay.py.)
        """
        decisions = self.taught()
        corpus, truth = with_labels(self.corpus, self.truth, needed_labels(self.labels, decisions))
        known = known_labels(corpus, decisions, audits=False)
        text = json.dumps([[d.sequence, d.start, d.stop, d.readings] for d in decisions])
        run = [file_hash(self.folder / part / SUMS) for part in ("corpus", "truth")]
        # the log goes along to another run (`lasca update`), and there the same decisions are not the same fit
        key = hashlib.sha256(" ".join([str(again), *run, text]).encode()).hexdigest()
        if not again or not learns(truth, known):
            return Fit(corpus, clamped(truth, known), known, key)
        of = f"{__version__} {key}"
        made = self._kept(of)
        if made is None:
            made = refit(corpus, truth, known, progress)
            self._keep(made, of)
        return Fit(corpus, made, known, key)

    def _kept(self, of: str) -> Truth | None:
        """Return the last fit if it was of this run with these decisions: who asks twice should not wait twice."""
        try:
            truth = Truth.load(self.folder / KEPT)
        except StoreError:
            return None
        diagnostics = dict(truth.diagnostics)
        return replace(truth, diagnostics=diagnostics) if diagnostics.pop("fit of", None) == of else None

    def _keep(self, truth: Truth, of: str) -> None:
        with suppress(StoreError, OSError):  # no room, or a folder that cannot be written: the fit is made again then
            replace(truth, diagnostics={**truth.diagnostics, "fit of": of}).save(self.folder / KEPT, overwrite=True)

    def queue(self, fit: Fit, areas: Sequence[Area] | None = None) -> Queue:
        """Return what is left to decide, ranked by the fit and by what decisions taught; audits decide as well."""
        return make_queue(
            fit.corpus, fit.truth, self.ambiguity, decided=self.looked_at(fit), areas=areas,
            experience=Experience.of(self.standing()),
        )  # fmt: skip

    def looked_at(self, fit: Fit) -> npt.NDArray[np.bool_]:
        """Return which tokens somebody decided before the fit, or audited, or decided again after an audit."""
        found = fit.known.source > 0
        taught = {d.id for d in self.taught()}
        for d in self.standing():
            if d.id not in taught:
                base = int(self.corpus.offsets[self.corpus.places[d.sequence]])
                found[base + d.start : base + d.stop] = True
        return found

    def ranked(self, queue: Queue) -> Queue:
        """Rank a queue anew, by what decisions taught since."""
        return ranked(queue, Experience.of(self.standing()))

    def audited(self, fit: Fit) -> list[tuple[int, bool]]:
        """Return the units that were audited, in the order in which they were drawn, and whether they are wrong.

        Only the run of units from the first one drawn on counts: one that was left out (skipped) ends it, so that
        nobody can choose what is audited. What was decided in the queue before is not asked again.
        """
        is_open = self.open_units(fit)
        said = {(d.sequence, d.shown.get("unit")): d for d in self.standing() if d.audit}
        labels = Labels.of(fit.corpus)
        found: list[tuple[int, bool]] = []
        for u in (u for u in self.audits if is_open[u]):
            unit = self.units[u]
            decision = said.get((self.corpus.sequence_ids[unit.sequence], unit.id))
            if decision is None:
                break
            found.append((u, judge(fit.corpus, fit.truth, labels, self.units, u, decision)))
        return found

    def waiting(self, fit: Fit) -> int:
        """Return how many audits do not count yet, because one that was drawn before them was skipped."""
        done = {d.shown.get("unit") for d in self.standing() if d.audit}
        if not done:
            return 0
        is_open = self.open_units(fit)
        decided = {d.shown.get("item") for d in self.standing() if not d.audit} - done  # since the fit: not asked again
        ids = [self.units[u].id for u in self.audits if is_open[u]]
        answered = [name in done for name in ids if name not in decided]
        return sum(answered) - answered.index(False) if False in answered else 0

    def next_audits(self, n: int, fit: Fit) -> list[Unit]:
        """Return the units that are to be audited next; none that was decided in the queue."""
        done = {d.shown.get("unit") for d in self.standing() if d.audit}
        is_open = self.open_units(fit)
        return [self.units[u] for u in self.audits if is_open[u] and self.units[u].id not in done][:n]

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
        promise = make_promise(
            certainty,
            audited,
            error=error,
            confidence=confidence,
            open_units=self.open_units(fit),
            sure=self.audits,
            fit=number,
        )
        return replace(promise, waiting=self.waiting(fit))

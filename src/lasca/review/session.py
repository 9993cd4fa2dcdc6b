"""A review at work: the queue as it stands, decisions coming in, and a refit in the background now and then.

Everything the page shows comes from here as plain data. The log is the only thing that is kept; whoever starts again
reads it and goes on. The queue stays as it is for `RANK_AFTER` decisions, so that nobody's list moves under them; then
it is ranked anew by what they taught, and after a refit once more, in the background. What was decided meanwhile, in
this window or another, is marked as done.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from lasca.errors import CorpusError
from lasca.review.decisions import Decision
from lasca.review.experience import Lesson
from lasca.review.items import Area, Reading
from lasca.review.project import Fit, Project
from lasca.review.promise import Unit
from lasca.review.queue import REASONS, Item, Queue, keys, words_of
from lasca.review.spans import glued, pieces

__all__ = ["Session"]

SHOWN_CHANGES = 20
RANK_AFTER = 20
"""Decisions after which the queue is ranked anew by what they taught; that needs no refit."""
MAX_ALIKE = 200
SHORT = 80


class Session:
    """What the endpoints of the page call; safe to use from several threads."""

    def __init__(
        self, project: Project, *, refit_after: int = 20, audit_every: int = 10, rank_after: int = RANK_AFTER
    ) -> None:
        self.project, self.refit_after = project, refit_after
        self.audit_every, self.rank_after = audit_every, rank_after
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._since = self._since_rank = 0
        self._version = 0
        self._changed: dict[str, Any] = {"areas": 0, "examples": []}
        self._failed = ""
        self._texts: dict[str, str] = {}
        fit = project.fit(again=False)
        self._use(fit, project.queue(fit, None if (fit.known.source > 0).any() else project.areas))
        if any(not d.audit for d in project.standing()):
            self._start(refit=True)

    def _use(self, fit: Fit, queue: Queue) -> None:
        """Take up a fit and its queue; only the exchange itself makes others wait."""
        order = self._with_audits(fit, queue)
        with self._lock:
            self._fit, self._queue, self._version = fit, queue, self._version + 1
            self._order, self._items = order, dict(order)

    def _with_audits(self, fit: Fit, queue: Queue) -> list[tuple[str, Item]]:
        """Put an item of the audit behind every so many others, all that are left at the end; name all of them."""
        order: list[tuple[str, Item]] = []
        audits: list[Item] = []
        if self.audit_every:
            known = {(item.area.sequence, item.area.start): item.area for item in queue.items}
            units = self.project.next_audits(max(len(queue) // self.audit_every + 50, 100), fit)
            audits = [self._audit_item(fit, unit, known.get((unit.sequence, unit.start))) for unit in units]
        left = iter(audits)
        for i, item in enumerate(queue.items, 1):
            order.append((item.id, item))
            if self.audit_every and i % self.audit_every == 0:
                order += [(self._name(audit), audit) for audit in islice(left, 1)]
        return order + [(self._name(audit), audit) for audit in left]

    def _audit_item(self, fit: Fit, unit: Unit, other: Area | None) -> Item:
        corpus, truth = fit.corpus, fit.truth
        base = int(corpus.offsets[unit.sequence])
        end = int(corpus.offsets[unit.sequence + 1])
        spans = self.project.labels.of_sequence(truth.labels[base:end].tolist())
        mine = tuple(s for s in spans if s[0] < unit.stop and s[1] > unit.start)
        readings = (mine, *(r for r in (other.readings if other else ()) if r != mine))
        if self.project.labels.scheme is not None and () not in readings:
            readings = (*readings, ())
        area = Area(unit.sequence, unit.start, unit.stop, readings, (0.0,) * len(readings), ((),) * len(readings))
        return Item(area, "audit", "audit", f"audit {unit.id}", rest=unit.rest)

    @staticmethod
    def _name(item: Item) -> str:
        return f"audit {item.id}" if item.reason == "audit" else item.id

    # --- what the page asks for ------------------------------------------------------------------------------------

    def state(self, who: str) -> dict[str, Any]:
        """Return how far it is, and what a refit changed."""
        with self._lock:
            done = self._done(who)
            left = {name for name, _ in self._order} - done["all"] - done["twins"]
            audits = sum(name.startswith("audit ") for name in left)
            asked = left - done["skipped"]
            gains = (item.gain for name, item in self._order if name in asked and item.reason != "audit")
            several, same = self.project.log.agreement()
            return {
                "version": self._version,
                "decided": sum(not name.startswith("audit ") for name in done["all"]),
                "mine": len(done["mine"]),
                "audited": sum(name.startswith("audit ") for name in done["all"]),
                "waiting": self.project.waiting(self._fit),
                "open": len(left) - audits,
                "audits": audits,
                "errors": round(max(self._queue.errors - self._errors_done(done["all"] | done["twins"]), 0.0), 1),
                "gain": round(next(gains, 0.0), 2),
                "refit": self._thread is not None and self._thread.is_alive(),
                "until_refit": max(self.refit_after - self._since, 0) if self.refit_after else None,
                "changed": self._changed,
                "failed": self._failed,
                "second": {"areas": several, "same": same},
            }

    def _errors_done(self, done: set[str]) -> float:
        return sum(self._items[name].errors for name in done if name in self._items and " " not in name)

    def _done(self, who: str) -> dict[str, set[str]]:
        """Return the items that anybody, and that this reviewer, decided or skipped.

        An item and an audit of the same place are twins: who answered one is not asked the other.
        """
        name = self.project.log.name_of(who)
        found: dict[str, set[str]] = {"all": set(), "mine": set(), "skipped": set()}
        for d in self.project.log.live():
            item = str(d.shown.get("item", ""))
            if not d.readings:
                if d.who == name:
                    found["skipped"].add(item)
                continue
            found["all"].add(item)
            if d.who == name:
                found["mine"].add(item)
        found["twins"] = {n.removeprefix("audit ") if n.startswith("audit ") else f"audit {n}" for n in found["all"]}
        return found

    def part(self, who: str, first: int, n: int, words: str = "", second: bool = False) -> dict[str, Any]:
        """Return a part of the queue, open items only; with `second` those that others decided and this one did not."""
        with self._lock:
            done = self._done(who)
            wanted = [w for w in words.casefold().split() if w]
            found: list[Item] = []
            again: list[Item] = []  # what was skipped comes once more, behind the others
            for name, item in self._order:
                if (name in done["all"]) != second or name in done["mine"] or (name in done["twins"] and not second):
                    continue
                if name in done["skipped"] and not wanted:
                    again.append(item)
                elif all(w in self._searched(item) for w in wanted):
                    found.append(item)
            found += again
            more: list[dict[str, Any]] = []
            if second:  # decided in an earlier fit: no longer in the queue, asked about all the same
                known = {self._name(item) for item in found}
                more = [row for row in self._decided_by_others(done) if row["item"] not in known]
            rows = [self._short(item) for item in found[first : first + n]]
            rest = max(first - len(found), 0)
            rows += more[rest : rest + n - len(rows)]
            audits = sum(item.reason == "audit" for item in found)
            return {"version": self._version, "total": len(found) + len(more), "audits": audits, "items": rows}

    def _searched(self, item: Item) -> str:
        name = self._name(item)
        if name not in self._texts:
            short = self._short(item)
            self._texts[name] = f"{short['words']} {short['sequence']}".casefold()
        return f"{self._texts[name]} {item.reason} {REASONS.get(item.reason, '')}"

    def _decided_by_others(self, done: dict[str, set[str]]) -> list[dict[str, Any]]:
        found = []
        for s in self.project.log.standing():
            name = str(s.decision.shown.get("item", ""))
            if name and name in done["all"] and name not in done["mine"] and name not in self._items:
                self._items[name] = self._again(s.decision)
                found.append(self._short(self._items[name]) | {"item": name})
        return found

    def _again(self, d: Decision) -> Item:
        """Make an item of one that was decided: its place (what was said may reach further) and readings as shown."""
        shown = [
            tuple((int(a), int(b), str(k)) for a, b, k in r) for r in d.shown.get("candidates", []) if r is not None
        ]
        readings = tuple(dict.fromkeys([*shown, *d.readings]))
        n, sequence = len(readings), self.project.corpus.places[d.sequence]
        place = re.search(r"\.([0-9]+)-([0-9]+)$", str(d.shown.get("item", "")))
        start, stop = (d.start, d.stop) if place is None else map(int, place.groups())
        area = Area(sequence, start, stop, readings, (0.0,) * n, ((),) * n)
        return Item(area, "reading", str(d.shown.get("reason", "people disagree")), "")

    def _short(self, item: Item) -> dict[str, Any]:
        corpus, area = self._fit.corpus, item.area
        return {
            "item": self._name(item),
            "words": _first_words(words_of(corpus, area)),
            "sequence": corpus.sequence_ids[area.sequence][:60],
            "question": item.question,
            "reason": item.reason,
            "why": REASONS.get(item.reason, item.reason),
            "gain": round(item.gain, 3),
            "elsewhere": round(item.elsewhere, 3),
            "alike": item.alike,
        }

    def item(self, name: str, votes: bool = False) -> dict[str, Any]:
        """Return all that is shown of an item; votes and probabilities only where asked for."""
        with self._lock:
            item = self._find(name)
            corpus, area = self._fit.corpus, item.area
            candidates: list[dict[str, Any]] = []
            for key, i in zip(keys(corpus, [area.readings[i] for i in area.offered]), area.offered):
                candidate: dict[str, Any] = {"key": key, "spans": [list(span) for span in area.readings[i]]}
                if votes:
                    said = [corpus.annotators[v] for v in area.voters[i]]
                    candidate |= {"votes": said, "probability": round(area.weights[i], 3)}
                candidates.append(candidate)
            return self._short(item) | {
                "start": area.start,
                "stop": area.stop,
                "tokens": corpus.sequence(area.sequence),
                "glued": np.flatnonzero(glued(corpus, *corpus.offsets[area.sequence : area.sequence + 2])).tolist(),
                "candidates": candidates,
                "types": list(self.project.labels.types),
                "scheme": self.project.labels.scheme,
                "audit": item.reason == "audit",
                "rest": item.rest,
            }

    def alike(self, name: str) -> list[dict[str, Any]]:
        """Return the items with the same words and the same readings that are open, for "the same for all"."""
        with self._lock:
            item = self._find(name)
            done = self._done("")["all"]
            if not item.key or item.reason == "audit":
                return []
            others = [i for i in self._queue.items if i.key == item.key and i.id != item.id and i.id not in done]
            corpus = self._fit.corpus
            rows = []
            for other in others[:MAX_ALIKE]:
                a, (base, end) = other.area, corpus.offsets[other.area.sequence : other.area.sequence + 2].tolist()
                first = max(0, a.start - 8)
                near = pieces(corpus, base + first, min(base + a.stop + 8, end))
                before, after = "".join(near[: a.start - first]).strip(), "".join(near[a.stop - first :]).strip()
                rows.append(self._short(other) | {"before": before, "after": after})
            return rows

    def _find(self, name: str) -> Item:
        if name not in self._items:
            raise CorpusError("there is no such item in the queue any more", got=name, hint="Load the page again")
        return self._items[name]

    # --- what the page does ----------------------------------------------------------------------------------------

    def decide(
        self, who: str, name: str, readings: Sequence[Reading], *, votes: bool = False, alike: Sequence[str] = (),
        missed: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Take a decision down: readings (several: keep them all; none: skip), also for these items alike."""
        with self._lock:
            item = self._find(name)
            batch = uuid.uuid4().hex if alike else ""
            made = [self._decision(who, item, readings, votes, missed, batch)]
            for other in alike:
                found = self._find(other)
                if found.key != item.key or not item.key:
                    raise CorpusError("these items are not alike", got=other)
                shift = found.area.start - item.area.start
                moved = [tuple((s + shift, e + shift, k) for s, e, k in r) for r in readings]
                made.append(self._decision(who, found, moved, votes, False, batch))
            self.project.check(made)
            ids = self.project.log.add(made)
            if readings and not made[0].audit:
                self._since += len(made)
                self._since_rank += len(made)
                refit = bool(self.refit_after) and self._since >= self.refit_after
                if refit or (self.rank_after and self._since_rank >= self.rank_after):
                    self._start(refit)
            return {"ids": ids, "state": self.state(who)}

    def _decision(
        self, who: str, item: Item, readings: Sequence[Reading], votes: bool, missed: bool, batch: str
    ) -> Decision:
        area = item.area
        spans = [span for reading in readings for span in reading]
        audit = item.reason == "audit"
        start = min([area.start, *(s for s, _, _ in spans)])
        stop = max([area.stop, *(e for _, e, _ in spans)])
        shown: dict[str, Any] = {
            "item": self._name(item), "candidates": [[list(s) for s in area.readings[i]] for i in area.offered],
            "votes": votes, "reason": item.reason, "version": self._version,
        }  # fmt: skip
        if audit:
            shown["unit"] = item.id
        elif item.errors and readings:
            shown["lesson"] = Lesson.of(area, item.traits, readings).plain()
        kept = tuple(tuple(sorted(r)) for r in dict.fromkeys(tuple(r) for r in readings))
        return Decision(
            self._fit.corpus.sequence_ids[area.sequence], start, stop, kept, who=who, audit=audit,
            missed=missed and audit, shown=shown, batch=batch,
        )  # fmt: skip

    def undo(self, who: str) -> dict[str, Any]:
        """Take back the last decision of this reviewer."""
        with self._lock:
            taken = self.project.log.undo(who)
            items = [str(d.shown.get("item", "")) for d in taken]
            for d, name in zip(taken, items):
                if name and name not in self._items:
                    self._items[name] = self._again(d)
            return {"items": items, "state": self.state(who)}

    # --- the refit -------------------------------------------------------------------------------------------------

    def _start(self, refit: bool) -> None:
        if self._thread is not None and self._thread.is_alive():
            return
        self._since_rank = 0
        if refit:
            self._since = 0
        self._thread = threading.Thread(target=self.renew, args=(refit,), daemon=True)
        self._thread.start()

    def renew(self, refit: bool = True) -> None:
        """Rank the queue anew by what decisions taught, and then by a refit."""
        try:
            before = self._fit
            self._use(before, self.project.ranked(self._queue))
            if refit:
                fit = self.project.fit()
                changed = self._compare(before, fit)
                self._use(fit, self.project.queue(fit))
                with self._lock:
                    self._changed, self._failed = changed, ""
        except Exception as error:  # shown on the page: the review goes on with the fit it has
            self._failed = str(error)[:300]

    def wait(self, seconds: float = 600) -> None:
        """Wait for a refit that is at work."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _compare(self, before: Fit, after: Fit) -> dict[str, Any]:
        """Say where labels changed that nobody decided."""
        names = np.array(after.corpus.labels)
        old = np.array(before.corpus.labels)[before.truth.labels]
        new = names[after.truth.labels]
        at = np.flatnonzero((old != new) & (after.known.source == 0) & before.truth.voted)  # elsewhere stand guesses
        sequence = after.corpus.token_sequence[at] if len(at) else at
        first = np.flatnonzero(np.concatenate(([True], (np.diff(at) > 1) | (np.diff(sequence) > 0)))) if len(at) else at
        examples = []
        for k in first[:SHOWN_CHANGES].tolist():
            i = int(at[k])
            s = int(after.corpus.token_sequence[i])
            examples.append(
                {
                    "word": after.corpus.tokens[i][:60],
                    "sequence": after.corpus.sequence_ids[s][:60],
                    "before": str(old[i]),
                    "after": str(new[i]),
                }
            )
        return {"areas": len(first), "examples": examples}


def _first_words(text: str) -> str:
    """Return as many whole words as fit into a row of the list, with a sign where more follow."""
    return text if len(text) <= SHORT else f"{text[:SHORT].rsplit(' ', 1)[0]} …"

"""The queue: what a person should decide, best first – one list for the report, the files and the review.

Items are areas (`lasca.review.items`), ranked by the errors a decision is expected to remove per unit of work. That is
the expected errors of the area itself plus what the decision settles elsewhere: of items alike (the same words with
the same readings) a decided one is expected to settle the share `SETTLES` of the errors; so the first of a group counts
for all of them, and those behind it for less. What decisions taught (`lasca.review.experience`) corrects the errors
expected. Areas on which several people and the inferred truth agree are not in the queue, however many there are; the
audit (`lasca.review.promise`) draws from them.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lasca.ambiguity import Ambiguity
from lasca.corpus import CrowdCorpus
from lasca.files import write_lines
from lasca.formats.write_tables import people_table
from lasca.review.experience import Experience, traits_of
from lasca.review.items import Area, Reading, find_items
from lasca.review.spans import Labels, pieces
from lasca.truth import Truth

__all__ = ["REASONS", "Item", "Queue", "keys", "make_queue", "ranked", "rows", "wordless", "words_of", "write_queue"]

SETTLES = 0.25
"""The share of the errors of an item alike that a decision settles, by the refit or by B. A guess: not yet measured."""
REASONS: Mapping[str, str] = {
    "missed": "a span may have been missed",
    "against most people": "the model differs from most people",
    "few votes": "too few people looked at it",
    "truly ambiguous": "reliable people read it in two ways",
    "people disagree": "people disagree",
    "audit": "drawn at random, to know how good the rest is",
}
COSTS: Mapping[str, float] = {"label": 1.0, "borders": 1.0, "whether": 1.0, "reading": 1.0, "missed": 1.0}
"""Work per kind of question, in plain decisions; all alike until somebody has timed people."""


@dataclass(frozen=True)
class Item:
    """A decision to be made: an area, what is asked, why, and what it is worth."""

    area: Area
    question: str
    reason: str
    key: str
    """Items alike share it: the same words with the same readings."""
    errors: float = 0.0
    """Errors expected in what was inferred here, corrected by what decisions taught."""
    gain: float = 0.0
    """Errors a decision is expected to remove, here and elsewhere."""
    elsewhere: float = 0.0
    """The part of it elsewhere."""
    cost: float = 1.0
    alike: int = 0
    """How many other items there are like it."""
    rest: bool = False
    """Only of audits: whether it is about the rest of the sequence as well."""
    traits: tuple[str, ...] = ()

    @cached_property
    def id(self) -> str:
        """A name that stays the same as long as the texts do."""
        return f"{self.area.sequence}.{self.area.start}-{self.area.stop}"


@dataclass(frozen=True)
class Queue:
    """All items, the best first, and what is expected of them."""

    items: tuple[Item, ...]
    outside: float
    """Expected errors in what was inferred and is not in the queue."""

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def errors(self) -> float:
        """Expected errors in all that was inferred, in the queue or not."""
        return self.outside + sum(item.errors for item in self.items)


def make_queue(
    corpus: CrowdCorpus,
    truth: Truth,
    ambiguity: Ambiguity | None = None,
    *,
    decided: Any = None,
    areas: Sequence[Area] | None = None,
    experience: Experience | None = None,
) -> Queue:
    """Find and rank what is to be decided. `decided` (a mask of tokens) leaves out areas of which nothing is open; so
    do labels that were known beforehand.

    `areas` are those of `find_items`, where they are known already; `experience` is what decisions taught.
    """
    areas = find_items(corpus, truth, everything=True) if areas is None else areas
    if corpus.known is not None:
        known = corpus.known.codes(corpus.n_tokens) >= 0
        decided = known if decided is None else decided | known
    if decided is not None:
        areas = [a for a in areas if not _all_of(corpus, a, decided)]
    ambiguous = _ambiguous_tokens(corpus, ambiguity)
    words = corpus.tokens[:] if areas else []
    items = []
    for area in areas:
        if _open(area):
            question = _question(area)
            key = _key(words, int(corpus.offsets[area.sequence]), area)
            reason = _reason(corpus, area, ambiguous)
            traits = traits_of(area, question)
            items.append(Item(area, question, reason, key, area.errors, cost=COSTS[question], traits=traits))
    return ranked(Queue(tuple(items), sum(area.errors for area in areas if not _open(area))), experience)


def ranked(queue: Queue, experience: Experience | None = None) -> Queue:
    """Rank items anew, by what decisions taught so far; nothing else about them changes."""
    learned = experience or Experience()
    errors = [learned.errors(item.area, item.traits) for item in queue.items]
    place = np.array([(item.area.start, item.area.sequence) for item in queue.items], np.int64).reshape(-1, 2).T
    groups: dict[str, list[int]] = {}
    for i in np.lexsort((*place, -np.array(errors))).tolist():
        groups.setdefault(queue.items[i].key, []).append(i)
    items = list(queue.items)
    for members in groups.values():
        left = sum(errors[i] for i in members)
        for k, i in enumerate(members):
            left -= errors[i]
            share = (1 - SETTLES) ** k
            elsewhere = SETTLES * share * left
            gain = errors[i] * share + elsewhere
            items[i] = replace(items[i], errors=errors[i], gain=gain, elsewhere=elsewhere, alike=len(members) - 1)
    worth = np.array([item.gain / item.cost for item in items])
    return Queue(tuple(items[i] for i in np.lexsort((*place, -worth)).tolist()), queue.outside)


def _open(area: Area) -> bool:
    """Say whether there is something to decide: two readings at least, and not all people agree with what was inferred.

    A span that everybody may have missed is asked about although they agree.
    """
    return len(area.readings) > 1 and (area.kind == "missed" or not area.unanimous)


def _all_of(corpus: CrowdCorpus, area: Area, mask: Any) -> bool:
    base = int(corpus.offsets[area.sequence])
    return bool(mask[base + area.start : base + area.stop].all())


def _ambiguous_tokens(corpus: CrowdCorpus, found: Ambiguity | None) -> Any:
    if found is None:
        return np.zeros(corpus.n_tokens, bool)
    if found.method == "two-truths":
        return np.nan_to_num(found.score, nan=0.0) >= 0.5
    return found.mask


def _question(area: Area) -> str:
    """Say what the readings differ in."""
    if area.kind == "missed":
        return "missed"
    readings = [r for r in area.readings if r]
    borders = {tuple(span[:2] for span in reading) for reading in readings}
    types = {tuple(span[2] for span in reading) for reading in readings}
    if len(borders) <= 1 and len(types) > 1:
        return "label"
    if len(readings) == 1:
        return "whether"
    return "borders" if len(types) == 1 and all(len(t) == 1 for t in types) else "reading"


def _reason(corpus: CrowdCorpus, area: Area, ambiguous: Any) -> str:
    """Say why somebody should look."""
    n, most = area.n_voters, max(len(v) for v in area.voters)
    if area.kind == "missed":
        return "missed"
    if n > 1 and 2 * most > n and len(area.voters[0]) < most:
        return "against most people"
    if n < 2:
        return "few votes"
    base = int(corpus.offsets[area.sequence])
    ambiguous_here = bool(ambiguous[base + area.start : base + area.stop].any())
    return "truly ambiguous" if ambiguous_here else "people disagree"  # if all agreed, nobody would be asked (`_open`)


def _key(tokens: list[str], base: int, area: Area) -> str:
    """Return what makes items alike: the words of the area, and its readings seen from its start.

    Tokens that were read without their words are like no other.
    """
    words = [w.casefold() for w in tokens[base + area.start : base + area.stop]]
    if wordless(words):
        words = [str(base + area.start)]
    readings = sorted([[s - area.start, e - area.start, k] for s, e, k in r] for r in area.readings)
    return json.dumps([words, readings], ensure_ascii=False)


def wordless(words: Sequence[str]) -> bool:
    """Say whether the file had no column of tokens here: readers write them as _."""
    return all(word == "_" for word in words)


# --- for people and programs ---------------------------------------------------------------------------------------


def words_of(corpus: CrowdCorpus, area: Area) -> str:
    """Return the words of an area; where there are none, the place that they have."""
    base, end = corpus.offsets[area.sequence : area.sequence + 2].tolist()
    start, stop = base + area.start, base + area.stop
    if not wordless(corpus.tokens[start:stop]):
        return "".join(pieces(corpus, start, stop)).strip()
    place = f", token {area.start + 1:,}" if end - base > 1 else ""
    return f"{corpus.sequence_ids[area.sequence]}{place}"


def rows(corpus: CrowdCorpus, items: Sequence[Item], *, votes: bool = True, width: int = 200) -> list[dict[str, Any]]:
    """Return items as plain data. `votes=False` leaves out what people said and how likely each reading is."""
    labels = Labels.of(corpus)
    return [_row(corpus, labels, rank + 1, item, votes, width) for rank, item in enumerate(items)]


def _row(corpus: CrowdCorpus, labels: Labels, rank: int, item: Item, votes: bool, width: int) -> dict[str, Any]:
    area = item.area
    base, end = corpus.offsets[area.sequence : area.sequence + 2].tolist()
    start, stop = base + area.start, base + area.stop
    first, last = max(base, start - width - 2), min(end, stop + width + 2)  # a sequence may be a whole book
    near = pieces(corpus, first, last)
    words = near[start - first : stop - first]
    before, after = "".join(near[: start - first]).strip(), "".join(near[stop - first :]).strip()
    if wordless([piece.strip() for piece in near]):
        before = after = ""
    names = keys(corpus, [area.readings[i] for i in area.offered])
    candidates: list[dict[str, Any]] = []
    for key, i in zip(names, area.offered):
        reading = area.readings[i]
        own = tuple((s - area.start, e - area.start, kind) for s, e, kind in reading)
        candidate: dict[str, Any] = {
            "key": key,
            "spans": [list(span) for span in reading],
            "words": said(labels, words, own),
        }
        if votes:
            candidate |= {"probability": round(area.weights[i], 4), "votes": len(area.voters[i])}
        candidates.append(candidate)
    return {
        "rank": rank,
        "item": item.id,
        "sequence": corpus.sequence_ids[area.sequence],
        "start": area.start,
        "stop": area.stop,
        "before": before if len(before) <= width else "…" + before[len(before) - width + 1 :],
        "words": words_of(corpus, area),
        "after": after if len(after) <= width else after[: width - 1] + "…",
        "question": item.question,
        "reason": item.reason,
        "candidates": candidates,
        "gain": round(item.gain, 4),
        "elsewhere": round(item.elsewhere, 4),
        "cost": item.cost,
        "alike": item.alike,
    }


def keys(corpus: CrowdCorpus, readings: Sequence[Reading]) -> list[str]:
    """Return by what a person chooses each reading: its number; a label that is a number itself is never another's."""
    free = (str(n) for n in itertools.count(1) if str(n) not in corpus.labels)
    labels = [reading[0][2] if len(reading) == 1 else "" for reading in readings]
    return [label if label in corpus.labels and re.fullmatch("[0-9]{1,4}", label) else next(free) for label in labels]


def said(labels: Labels, words: Sequence[str], reading: Reading) -> str:
    """Write a reading for people: "PER: Ada; Charles; LOC: Paris", or "none"; a type is named where it changes.

    Words are `pieces`; where there are none, or each has one label, the types are all there is to say.
    """
    if labels.scheme is None or (words and wordless([word.strip() for word in words])):
        return "; ".join(kind or "span" for _, _, kind in reading) or "none"
    before = [None, *(kind for _, _, kind in reading)]
    return (
        "; ".join(
            ("" if kind == last else f"{kind or 'span'}: ") + "".join(words[s:e]).strip()
            for (s, e, kind), last in zip(reading, before)
        )
        or "none"
    )


def write_queue(corpus: CrowdCorpus, queue: Queue, folder: Path) -> None:
    """Write queue.csv for people (blind: neither votes nor probabilities; formulas guarded) and queue.jsonl with all.

    The column `decision` is for the number of a candidate (see `keys`), 0 for none of them (no span), or a reading
    written out as START-STOP:TYPE; `lasca decide` takes the file back.
    """
    made = rows(corpus, queue.items)
    write_lines(folder / "queue.jsonl", made)
    names = ("rank", "item", "sequence", "start", "stop", "before", "words", "after", "question", "reason")
    columns: dict[str, list[Any]] = {name: [row[name] for row in made] for name in names}
    columns["candidates"] = [" | ".join(f"{c['key']}: {c['words']}" for c in row["candidates"]) for row in made]
    columns |= {name: [row[name] for row in made] for name in ("alike", "gain")}
    columns["decision"] = [""] * len(made)
    people_table(columns, folder / "queue.csv")

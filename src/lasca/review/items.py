"""Decisions to be made: stretches of text where a span may begin, end, be of another type, or not be at all.

Spans that overlap, whoever gave them – people or the inferred truth –, make one **area**; whatever is decided about
one of them decides about the others. The **readings** of an area are what somebody said of it as a whole, what was
inferred, and what the posterior holds: token by token the best label, and the best label that is not O wherever O is
less than sure. Nothing else is ever offered. Where nobody marked anything but the posterior holds more than a trace of
a span, that is an area as well ("missed").
Labels of no scheme have one area per token.

How likely each reading is. A truth gives probabilities token by token. The weights w of the readings of an area are
the mixture of readings whose own token probabilities are nearest to them (the likelihood
Σ_i Σ_t p_it log Σ_{r: r_i = t} w_r is raised by EM, all areas at once): tokens that hang together count as one, which a
product over tokens would count many times. What no reading covers is left over as "something else".
The expected errors of an area are Σ_r w_r |inferred Δ r|, spans that are wrong plus spans that are missing, plus one
for something else. What somebody marks along a span is one decision, which models count token by token: they are too
sure of long areas. So of an area of n tokens the share n / (n + `BELIEVED`) of the belief stays with the people, each
of whom may be right: by the odds of what they usually say, which is the mean weight of their readings over all areas
(with `USUAL` areas at everybody's mean). Crowds differ in how far they are to be believed: decisions tell
(`lasca.review.experience`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.review.spans import Labels, Span, said_by_everybody
from lasca.schemes.arrays import Spans
from lasca.truth import Truth

__all__ = ["BELIEVED", "MISSED", "Area", "Reading", "areas_of", "distance", "find_items"]

Reading = tuple[Span, ...]
"""Spans in tokens of the sequence; () says there is none."""
ROUNDS = 40
TRACE = 0.02
"""Labels of no scheme below this probability are no readings."""
MISSED = 0.15
"""From this probability on that there is a span where nobody marked one, it is asked about."""
MAX_READINGS = 9
BELIEVED = 10.0
"""The tokens of an area of which model and people say half each, until decisions tell; by replays of seed 0 alone."""
USUAL = 5.0
"""So many areas, read as everybody reads on average, are believed beforehand of each person."""


@dataclass(frozen=True)
class Area:
    """One decision: a stretch of a sequence with its readings, the inferred one first, then the likely ones."""

    sequence: int
    start: int
    stop: int
    readings: tuple[Reading, ...]
    weights: tuple[float, ...]
    """How likely each reading is; what is missing to 1 is something else."""
    voters: tuple[tuple[int, ...], ...]
    """Who gave each reading (codes of annotators)."""
    kind: str = "marked"
    """"marked" by somebody; "missed": nobody did, and there may be a span; "token": a label of no scheme."""
    trust: tuple[float, ...] = ()
    """How much those who gave each reading are to be believed together; () counts heads."""

    @cached_property
    def errors(self) -> float:
        """The expected number of errors in what is inferred here."""
        return self._model * self.by_model + (1 - self._model) * self.by_people

    @cached_property
    def by_model(self) -> float:
        """The expected number of errors, were the model alone believed."""
        if self.kind == "token":
            return max(0.0, 1.0 - self.weights[0])
        return self._errors_by(self.weights) + max(0.0, 1.0 - sum(self.weights))

    @cached_property
    def by_people(self) -> float:
        """The expected number of errors, were the people alone believed."""
        return self._errors_by(self.people)

    @cached_property
    def people(self) -> tuple[float, ...]:
        """How far each reading is believed by the people, together 1; 0 where nobody labelled the whole area."""
        trust = self.trust or tuple(map(len, self.voters))
        total = sum(trust) or 1.0
        return tuple(t / total for t in trust)

    @property
    def breadth(self) -> int:
        """The tokens along which models are too sure, which leaves belief to the people; 0 where these do not count."""
        return self.stop - self.start if self.n_voters and self.kind != "token" else 0

    @property
    def _model(self) -> float:
        """The model's part of the belief; the rest is that of the people."""
        return BELIEVED / (self.breadth + BELIEVED)

    @cached_property
    def offered(self) -> tuple[int, ...]:
        """The readings in the order in which people see them: that of the fewest errors to be expected first.

        What nobody gave comes last, unless it is believed more than all others together: what was inferred token by
        token may be a blend of several readings, and none at all is nearest to many that differ.
        """

        def rank(i: int) -> tuple[bool, float]:
            return not self.voters[i] and self._beliefs[i] < 0.5, round(self._errors_of(self.readings[i]), 9)

        return tuple(sorted(range(len(self.readings)), key=rank))

    @cached_property
    def _beliefs(self) -> list[float]:
        """How far each reading is believed, by the model and by the people."""
        return [self._model * w + (1 - self._model) * p for w, p in zip(self.weights, self.people)]

    def _errors_of(self, reading: Reading) -> float:
        return sum(b * distance(reading, other) for b, other in zip(self._beliefs, self.readings))

    def _errors_by(self, beliefs: Sequence[float]) -> float:
        return sum(b * distance(self.readings[0], other) for b, other in zip(beliefs, self.readings))

    @property
    def certainty(self) -> float:
        """How likely the inferred reading is."""
        return self.weights[0]

    @property
    def n_voters(self) -> int:
        """How many people labelled the whole area."""
        return sum(len(v) for v in self.voters)

    @property
    def unanimous(self) -> bool:
        """Whether several people said the same, and it was inferred as well."""
        return len(self.voters[0]) > 1 and len(self.voters[0]) == self.n_voters


def distance(a: Reading, b: Reading) -> int:
    """Return how many spans are in one of the readings only: those that are wrong and those that are missing."""
    return len(set(a) ^ set(b))


def areas_of(corpus: CrowdCorpus, truth: Truth, labels: Labels) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return start and stop (tokens of the corpus) of all areas, in order."""
    if labels.scheme is None:
        at = np.arange(corpus.n_tokens)
        return at, at + 1
    said, _ = said_by_everybody(corpus, labels)
    spans = [said, *(labels.spans(codes, corpus.offsets) for codes in (truth.labels, liberal(truth, labels)))]
    start = np.concatenate([found.start for found in spans])
    stop = np.concatenate([found.stop for found in spans])
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(stop[order]) if len(order) else stop
    new = np.ones(len(start), bool)
    new[1:] = start[1:] >= reach[:-1]
    first = np.flatnonzero(new)
    return start[first], np.maximum.reduceat(reach, first) if len(first) else reach


def liberal(truth: Truth, labels: Labels) -> npt.NDArray[np.int64]:
    """Return the best label of each token, and the best that is not O where O leaves `MISSED` or more to others."""
    best = np.asarray(truth.proba.argmax(axis=1), np.int64)
    if labels.outside < 0:
        return best
    others = truth.proba.copy()
    others[:, labels.outside] = -1
    sure = truth.proba[:, labels.outside] > 1 - MISSED
    return np.where(sure, np.int64(labels.outside), others.argmax(axis=1)).astype(np.int64)


def find_items(
    corpus: CrowdCorpus, truth: Truth, *, labels: Labels | None = None, everything: bool = False
) -> list[Area]:
    """Return the areas with their readings; without `everything` only those that leave something to decide.

    Of labels without a scheme, tokens on which all agree and whose label is sure are left out in both cases.
    """
    labels = labels or Labels.of(corpus)
    if labels.scheme is None:
        found = _tokens(corpus, truth)
        return found if everything else [area for area in found if not area.unanimous]
    start, stop = areas_of(corpus, truth, labels)
    voted = (
        np.diff(corpus.token_start)[start] > 0
    )  # what nobody looked at is no decision yet: `lasca next` gives it out
    start, stop = start[voted], stop[voted]
    weighed = _weigh(corpus, truth, labels, _gather(corpus, truth, labels, start, stop))
    return weighed if everything else [area for area in weighed if area.kind == "missed" or not area.unanimous]


def _contested(corpus: CrowdCorpus, truth: Truth) -> npt.NDArray[np.int64]:
    """Return the tokens on which people differ, or the inferred label from theirs, or is not sure."""
    T = corpus.n_labels
    token, label = corpus.annotation_token.astype(np.int64), corpus.annotation_label.astype(np.int64)
    other = label != truth.labels[token]
    doubt = np.bincount(token[other], minlength=corpus.n_tokens) > 0
    best = truth.proba[np.arange(corpus.n_tokens), truth.labels]
    voted = np.diff(corpus.token_start) > 0
    return np.flatnonzero(doubt | (voted & (best < 1 - 1 / max(T, 20))))


def _tokens(corpus: CrowdCorpus, truth: Truth) -> list[Area]:
    """Return contested tokens of a corpus without a scheme: the weight of a label is its probability."""
    at = _contested(corpus, truth)
    names = corpus.labels
    proba = truth.proba[at].tolist()
    inferred = truth.labels[at].tolist()
    likely: list[list[int]] = [[] for _ in at]
    for row, code in zip(*(x.tolist() for x in np.nonzero(truth.proba[at] >= TRACE))):
        likely[row].append(code)
    who, said = corpus.annotation_annotator.tolist(), corpus.annotation_label.tolist()
    begin, end = corpus.token_start[at].tolist(), corpus.token_start[at + 1].tolist()
    sequence = corpus.token_sequence[at].tolist() if len(at) else []
    place = (at - corpus.offsets[corpus.token_sequence[at]]).tolist() if len(at) else []
    counts = corpus.votes
    made = []
    for k, i in enumerate(place):
        votes: dict[int, list[int]] = {inferred[k]: []}
        for v in range(begin[k], end[k]):
            if counts[who[v]]:
                votes.setdefault(said[v], []).append(who[v])
        for code in likely[k]:
            votes.setdefault(code, [])
        p = proba[k]
        rest = sorted(list(votes)[1:], key=lambda code: (-p[code], -len(votes[code]), code))
        order = [inferred[k], *rest][:MAX_READINGS]
        made.append(
            Area(
                sequence[k], i, i + 1, tuple(((i, i + 1, names[code]),) for code in order),
                tuple(p[code] for code in order), tuple(tuple(votes[code]) for code in order), "token",
            )
        )  # fmt: skip
    return made


def _gather(
    corpus: CrowdCorpus, truth: Truth, labels: Labels, start: npt.NDArray[np.int64], stop: npt.NDArray[np.int64]
) -> list[Area]:
    """Collect for every area who read it how; weights come later."""
    said, who = said_by_everybody(corpus, labels)
    first = corpus.offsets[corpus.token_sequence[start]] if len(start) else start

    def inside(spans: Spans, giver: npt.NDArray[np.int64] | None = None) -> dict[Any, list[Span]]:
        """Deal spans to their areas (and to who gave them), in tokens of the sequence."""
        dealt: dict[Any, list[Span]] = {}
        if not len(start):
            return dealt
        area = np.searchsorted(start, spans.start, side="right") - 1
        kept = (area >= 0) & (spans.stop <= stop[area])
        own = area if giver is None else giver
        for a, g, s, e, k in zip(*(x[kept].tolist() for x in (area, own, spans.start, spans.stop, spans.kind))):
            key = a if giver is None else (a, g)
            dealt.setdefault(key, []).append((s - int(first[a]), e - int(first[a]), labels.types[k]))
        return dealt

    by_person = inside(said, who)
    mine, best, held = (
        inside(labels.spans(codes.astype(np.int64), corpus.offsets))
        for codes in (truth.labels, truth.proba.argmax(axis=1), liberal(truth, labels))
    )
    counts = np.array(corpus.votes, bool)
    found = []
    for a, (s, e) in enumerate(zip(start.tolist(), stop.tolist())):
        base = int(first[a])
        votes: dict[Reading, list[int]] = {tuple(mine.get(a, ())): []}
        part = slice(int(corpus.token_start[s]), int(corpus.token_start[e]))
        for giver, n in sorted(Counter(corpus.annotation_annotator[part].tolist()).items()):
            if counts[giver] and n == e - s:
                votes.setdefault(tuple(by_person.get((a, giver), ())), []).append(giver)
        for reading in (best.get(a, ()), held.get(a, ()), ()):
            votes.setdefault(tuple(reading), [])
        readings = tuple(votes)
        voters = tuple(tuple(v) for v in votes.values())
        sequence = int(corpus.token_sequence[s])
        kind = "marked"
        n_voters = sum(map(len, votes.values()))
        if 0 < n_voters == len(votes.get((), ())) and not mine.get(a):
            kind = "missed"
        found.append(Area(sequence, s - base, e - base, readings, (0.0,) * len(readings), voters, kind))
    return found


def _weigh(corpus: CrowdCorpus, truth: Truth, labels: Labels, areas: list[Area]) -> list[Area]:
    """Give every reading its weight (see the module's docstring), and put the likely ones first."""
    owner: list[int] = []  # the area of each reading
    reading_of: list[int] = []  # the reading of each cell
    token: list[int] = []
    label: list[int] = []
    places: list[list[int]] = []
    for a, area in enumerate(areas):
        base = int(corpus.offsets[area.sequence])
        n = area.stop - area.start
        mine = []
        for reading in area.readings:
            codes = labels.codes([(s - area.start, e - area.start, k) for s, e, k in reading], n)
            if codes is None:  # needs a tag that nobody ever gave: cannot be weighed, hence has no weight
                mine.append(-1)
                continue
            mine.append(len(owner))
            reading_of.extend([len(owner)] * n)
            token.extend(range(base + area.start, base + area.stop))
            label.extend(codes)
            owner.append(a)
        places.append(mine)
    if not owner:
        return areas
    weights, left = _mixture(
        np.array(owner), np.array(reading_of), np.array(token), np.array(label), truth.proba, len(areas)
    )
    weight = [[float(weights[i] * (1 - left[a])) if i >= 0 else 0.0 for i in own] for a, own in enumerate(places)]
    odds = _odds(corpus.n_annotators, areas, weight)
    made = []
    for area, w in zip(areas, weight):
        order = [0, *sorted(range(1, len(w)), key=lambda i: (-w[i], -len(area.voters[i]), i))]
        order = [i for i in order if i == 0 or area.voters[i] or w[i] >= TRACE][:MAX_READINGS]
        made.append(
            replace(
                area,
                readings=tuple(area.readings[i] for i in order),
                weights=tuple(w[i] for i in order),
                voters=tuple(area.voters[i] for i in order),
                trust=tuple(float(odds[list(area.voters[i])].sum()) for i in order),
            )
        )
    return made


def _odds(n_annotators: int, areas: list[Area], weight: list[list[float]]) -> npt.NDArray[np.float64]:
    """Return for everybody the odds that a reading of theirs is right, by the weights of all of them."""
    who = [v for area in areas for voters in area.voters for v in voters]
    own = [x for area, w in zip(areas, weight) for x, voters in zip(w, area.voters) for _ in voters]
    n = np.bincount(who, minlength=n_annotators)
    usual = min(max(sum(own) / max(len(own), 1), 0.01), 0.99)
    share = (np.bincount(who, weights=own, minlength=n_annotators) + USUAL * usual) / (n + USUAL)
    return np.asarray(share / (1 - share))


def _mixture(
    owner: npt.NDArray[np.int64],
    reading: npt.NDArray[np.int64],
    token: npt.NDArray[np.int64],
    label: npt.NDArray[np.int64],
    proba: npt.NDArray[np.float32],
    n_areas: int,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the weight of each reading (adding up to 1 in its area) and the share of each area no reading covers."""
    # readings of two areas never share a token, so (token, label) names a cell of one area
    cell, place, back = np.unique(token * proba.shape[1] + label, return_index=True, return_inverse=True)
    p = proba[token[place], label[place]].astype(np.float64)
    cell_area = owner[reading[place]]
    _tokens, at = np.unique(token, return_index=True)
    length = np.bincount(owner[reading[at]], minlength=n_areas)
    covered = np.bincount(cell_area, weights=p, minlength=n_areas) / np.maximum(length, 1)
    n = np.bincount(owner, minlength=n_areas)
    w = 1.0 / n[owner]
    total = np.maximum(np.bincount(cell_area, weights=p, minlength=n_areas), 1e-300)
    for _ in range(ROUNDS):
        held = np.bincount(back, weights=w[reading], minlength=len(cell))
        pull = np.bincount(reading, weights=(p / np.maximum(held, 1e-300))[back], minlength=len(owner))
        w = w * pull / total[owner]
        w /= np.maximum(np.bincount(owner, weights=w, minlength=n_areas), 1e-300)[owner]
    return w, np.clip(1.0 - covered, 0.0, 1.0)

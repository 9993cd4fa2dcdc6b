"""A promise about what nobody looked at: at most this share of it is wrong, with this confidence.

**Units.** Everything that was inferred is cut into units, once, by the votes and the first fit of the run: every area
(`lasca.review.items`) is one; the first area of a sequence also stands for the rest of that sequence ("and nothing else
here"); a sequence without any area is one unit ("no span at all"). So every token belongs to one unit, and a unit is
right when all its labels are. Labels of no scheme: one unit per token that somebody labelled.

**The audit.** Units in an order drawn at random once (by a hash of seed and unit, so that it never changes) are shown
to people as part of the queue. Whatever they say never enters the fit that is promised about.

**The bound.** For nested sets of units, those of highest certainty first, test the hypothesis that a share of `error`
or more of the set is wrong, by betting against it (Waudby-Smith & Ramdas 2024, sampling without replacement). With m_i
the least mean of what is left under the hypothesis after i - 1 looks, (N·error - errors so far) / (N - i + 1), the
wealth Π_i (1 + λ_i (m_i - x_i)), λ_i = (1 - r) / (1 - m_i), has an expectation of 1 at most under the hypothesis,
whenever one stops; so it exceeds 1/δ with probability δ at most, **however often one looks** (Ville's inequality).
Bets r (`BETS`) are averaged; sets share δ by the weights of `_shares`; the j-th different fit that is asked about gets
its own part of δ (`spend`). The largest set whose hypothesis falls is accepted.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.review.decisions import Decision
from lasca.review.items import find_items
from lasca.review.spans import Labels, Span
from lasca.truth import Truth

__all__ = ["Promise", "Unit", "audit_order", "certainty_of", "judge", "make_promise", "spend", "units_of", "wealth"]

SHARES = (1.0, 0.97, 0.94, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.35, 0.2)
"""Sizes of the nested sets, as shares of all units that are open to acceptance."""
BETS = (0.0, 0.15, 0.4)
"""What a wrong unit leaves of the wealth; 0 is the boldest bet (one error ends it)."""
BET_WEIGHTS = (0.3, 0.4, 0.3)
MOST = 1e200
FAVOURED = 0.5
"""The part of δ for the set that the model itself expects to hold; the others share the rest."""


@dataclass(frozen=True)
class Unit:
    """A part of what was inferred that is right or wrong as a whole."""

    sequence: int
    start: int
    stop: int
    rest: bool
    """Whether it stands as well for all tokens of the sequence that lie in no area."""

    @property
    def id(self) -> str:
        """A name that stays the same as long as votes and first fit do."""
        return f"{self.sequence}.{self.start}-{self.stop}"


@dataclass(frozen=True)
class Promise:
    """What can be said about the units that nobody decided."""

    error: float
    confidence: float
    accepted: tuple[int, ...]
    """Indices of the units that can be accepted; empty: nothing is promised."""
    total: int
    """Units that nobody decided."""
    audited: int
    wrong: int
    certainty: float | None
    """The certainty from which on units are accepted."""
    more: int | None
    """How many more audited items would do if all of them were right; 0 where something is promised."""
    set_size: int = 0
    set_audited: int = 0
    set_wrong: int = 0


def units_of(corpus: CrowdCorpus, truth: Truth, labels: Labels | None = None) -> list[Unit]:
    """Cut what the first fit inferred into units; sequences nobody labelled have none."""
    labels = labels or Labels.of(corpus)
    voted = np.diff(corpus.token_start) > 0
    if labels.scheme is None:
        at = np.flatnonzero(voted)
        sequence = corpus.token_sequence[at]
        place = at - corpus.offsets[sequence]
        return [Unit(q, p, p + 1, False) for q, p in zip(sequence.tolist(), place.tolist())]
    units, seen = [], set()
    areas = sorted(find_items(corpus, truth, labels=labels, everything=True), key=lambda a: (a.sequence, a.start))
    for area in areas:
        units.append(Unit(area.sequence, area.start, area.stop, area.sequence not in seen))
        seen.add(area.sequence)
    lengths = np.diff(corpus.offsets)
    for s in np.flatnonzero(corpus.annotated_sequences & (lengths > 0)).tolist():
        if s not in seen:
            units.append(Unit(s, 0, int(lengths[s]), False))
    return sorted(units, key=lambda u: (u.sequence, u.start))


def certainty_of(
    corpus: CrowdCorpus, truth: Truth, units: list[Unit], labels: Labels | None = None
) -> npt.NDArray[Any]:
    """Return how sure a (later) fit is of each unit: of the least sure of its areas and of the rest."""
    labels = labels or Labels.of(corpus)
    best = truth.proba[np.arange(corpus.n_tokens), truth.labels].astype(np.float64)
    if labels.scheme is None:
        return np.array([best[corpus.offsets[u.sequence] + u.start] for u in units])
    area_sure = np.ones(corpus.n_tokens)
    covered = np.zeros(corpus.n_tokens, bool)
    for area in find_items(corpus, truth, labels=labels, everything=True):
        base = int(corpus.offsets[area.sequence])
        # agreement of people is evidence that the posterior may not carry: it breaks ties among the very sure
        agreed = len(area.voters[0]) / max(area.n_voters, 1)
        area_sure[base + area.start : base + area.stop] = area.certainty * (0.999 + 0.001 * agreed)
        covered[base + area.start : base + area.stop] = True
    rest = np.where(covered, 1.0, best)
    inside = _covered(corpus, units)
    found = np.empty(len(units))
    for i, u in enumerate(units):
        base, end = int(corpus.offsets[u.sequence]), int(corpus.offsets[u.sequence + 1])
        own = slice(base + u.start, base + u.stop)
        sure = min(float(area_sure[own].min()), float(rest[own].min()))
        if u.rest:
            free = ~inside[base:end]
            if free.any():
                sure = min(sure, float(np.minimum(area_sure, rest)[base:end][free].min()))
        found[i] = sure
    return found


def _covered(corpus: CrowdCorpus, units: list[Unit]) -> npt.NDArray[np.bool_]:
    inside = np.zeros(corpus.n_tokens, bool)
    for u in units:
        base = int(corpus.offsets[u.sequence])
        inside[base + u.start : base + u.stop] = True
    return inside


def audit_order(units: list[Unit], seed: int = 0) -> list[int]:
    """Return the units in the order in which they are audited: at random, the same for ever."""
    keys = [hashlib.sha256(f"{seed} {u.id}".encode()).digest() for u in units]
    return sorted(range(len(units)), key=lambda i: keys[i])


def judge(corpus: CrowdCorpus, truth: Truth, labels: Labels, units: list[Unit], unit: int, audit: Decision) -> bool:
    """Say whether a unit is wrong, by what somebody who audited it said."""
    u = units[unit]
    base, end = int(corpus.offsets[u.sequence]), int(corpus.offsets[u.sequence + 1])
    inferred = labels.of_sequence(truth.labels[base:end].tolist())
    mine = tuple(span for span in inferred if span[0] < u.stop and span[1] > u.start)
    right = any(_same(mine, reading) for reading in audit.readings)
    if not right or not u.rest:
        return not right
    own = [v for v in units if v.sequence == u.sequence]
    extra = [span for span in inferred if not any(span[0] < v.stop and span[1] > v.start for v in own)]
    return audit.missed or bool(extra)


def _same(a: tuple[Span, ...], b: tuple[Span, ...]) -> bool:
    return sorted(a) == sorted(b)


def wealth(wrong: npt.NDArray[Any], n: int, error: float) -> npt.NDArray[np.float64]:
    """Return the wealth after each look at units of a set of n (1 = wrong), betting that less than `error` is."""
    x = np.asarray(wrong, np.float64)
    before = np.concatenate(([0.0], np.cumsum(x)[:-1])) if len(x) else x
    left = n - np.arange(len(x))
    m = (n * error - before) / left
    refuted = m > 1 + 1e-9  # even if all that is left were wrong, it would be too few
    m = np.clip(m, 0.0, 1 - 1e-9)
    total = np.zeros(len(x))
    with np.errstate(divide="ignore"):
        for r, weight in zip(BETS, BET_WEIGHTS):
            factor = np.where(m > 0, np.where(x > 0, r, 1 + (1 - r) * m / (1 - m)), 0.0)
            course = np.cumsum(np.log(factor))
            total += weight * np.where(refuted, MOST, np.exp(np.minimum(course, np.log(MOST))))
    return total


def spend(delta: float, fit: int) -> float:
    """Return the part of δ for the how-manieth different fit that is asked about: 0.8, then 0.2 / (j (j - 1))."""
    return delta * (0.8 if fit == 1 else 0.2 / (fit * (fit - 1)))


def _shares(certainty: npt.NDArray[Any], error: float) -> dict[float, float]:
    """Return the weight of each set: half for the largest that the model expects to hold, the rest for the others."""
    order = np.sort(certainty)[::-1]
    expected = np.cumsum(1 - order) / np.arange(1, len(order) + 1)
    sizes = {share: max(1, int(share * len(order))) for share in SHARES}
    fits = [share for share in SHARES if expected[sizes[share] - 1] <= error / 2]
    favoured = fits[0] if fits else SHARES[-1]
    return {share: FAVOURED if share == favoured else (1 - FAVOURED) / (len(SHARES) - 1) for share in SHARES}


def make_promise(
    certainty: npt.NDArray[Any],
    audited: list[tuple[int, bool]],
    *,
    error: float = 0.01,
    confidence: float = 0.95,
    open_units: npt.NDArray[np.bool_] | None = None,
    fit: int = 1,
) -> Promise:
    """Find the largest set of sure units that can be promised to be wrong in less than `error` of the cases.

    `audited` are (unit, wrong) in the order in which they were drawn; `open_units` those nobody decided in the queue.
    """
    is_open = np.ones(len(certainty), bool) if open_units is None else open_units
    pool = np.flatnonzero(is_open)
    looked = [(u, w) for u, w in audited if is_open[u]]
    n_wrong = sum(w for _, w in looked)
    nothing = Promise(error, confidence, (), len(pool), len(looked), n_wrong, None, None)
    if not len(pool):
        return nothing
    order = pool[np.argsort(-certainty[pool], kind="stable")]
    delta = spend(1 - confidence, fit)
    weights = _shares(certainty[pool], error)
    rank = np.empty(len(certainty), np.int64)
    rank[order] = np.arange(len(order))
    least: int | None = None
    for share in SHARES:
        size = max(1, int(share * len(order)))
        mine = np.array([w for u, w in looked if rank[u] < size], float)
        needed = 1 / (delta * weights[share])
        course = wealth(mine, size, error)
        if len(course) and course.max() >= needed:
            threshold = float(certainty[order[size - 1]])
            accepted = tuple(sorted(order[:size].tolist()))
            return Promise(
                error,
                confidence,
                accepted,
                len(pool),
                len(looked),
                n_wrong,
                threshold,
                0,
                size,
                len(mine),
                int(mine.sum()),
            )
        more = _more(mine, size, error, needed)
        if more is not None:
            drawn = math.ceil(more * len(pool) / size)
            least = drawn if least is None else min(least, drawn)
    return Promise(error, confidence, (), len(pool), len(looked), n_wrong, None, least)


def _more(mine: npt.NDArray[Any], size: int, error: float, needed: float) -> int | None:
    """Return how many more units of a set must be looked at, all right, until its hypothesis falls; None: never."""
    left = size - len(mine)
    if left <= 0:
        return None
    course = wealth(np.concatenate((mine, np.zeros(left))), size, error)[len(mine) :]
    at = np.flatnonzero(course >= needed)
    return int(at[0]) + 1 if len(at) else None

"""A promise about what nobody looked at: at most this share of it is wrong, with this confidence.

**Units.** Everything that was inferred is cut into units, once, by the votes and the first fit of the run: every area
(`lasca.review.items`) is one; the first area of a sequence also stands for the rest of that sequence ("and nothing else
here"); a sequence without any area is one unit ("no span at all"). So every token belongs to one unit, and a unit is
right when all its labels are. Labels of no scheme: one unit per token that somebody labelled.

**The audit.** Only what the first fit is sure of can ever be accepted (`SURE`); what is less sure is for the queue. The
sure units, in an order drawn at random once (by a hash of seed and unit, so that it never changes), are shown to people
as part of the queue. Whatever they say never enters the fit that is promised about, nor does what is decided about
such a unit afterwards; one that was decided before is no longer audited, nor accepted.

**The bound.** For nested sets of sure units, those of highest certainty first, test the hypothesis that k or more of
the n units of a set are wrong, by betting against it. After t looks, f of them wrong, the wealth is how much more
probable this is where the rate of errors is drawn from Beta(a, b) than under the hypothesis,

    B(a + f, b + t - f) / B(a, b) · C(n, k) / C(n - t, k - f)

(Waudby-Smith & Ramdas 2020: sampling without replacement). If k units are wrong it is a martingale that begins at 1,
if more are it is smaller; so it ever reaches 1/δ with probability δ at most, **however often one looks** (Ville's
inequality). a and b only say which crowds are promised about early: those with two fifths of `error`.

**What was found wrong** is never accepted. So the promise on a set, that at most `error` of what is accepted is
wrong, is broken only if k > error·(n - f) + f units of it are wrong: every unit that was found makes the hypothesis
easier to refute.

**The sets.** δ is given to two of the nested sets (`STARTS`), by how many errors the model expects in them, but to
none in which one error is too much: all of it would have to be looked at. A set hands its part of δ on to the next
larger one if it has at most `error` wrong *as it is*, what was found included (Bretz et al. 2009: hypotheses tested
in an order that was fixed before share δ without paying for each other). The largest set with a promise is accepted.
That is right: let A be the first set of the order with more than `error` wrong. Smaller ones cannot break a promise;
one on A that is broken, and one on any larger set, needs A's wealth to reach 1/δ while k units of A or more are
wrong. The j-th different fit that is asked about gets its own part of δ (`spend`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaln

from lasca.corpus import CrowdCorpus
from lasca.review.decisions import Decision
from lasca.review.items import Area, find_items
from lasca.review.spans import Labels
from lasca.truth import Truth

__all__ = ["Promise", "Unit", "audit_order", "certainty_of", "judge", "make_promise", "spend", "units_of", "wealth"]

SURE = 0.9
"""Units of at least this certainty in the first fit (and the surer half in any case) can be audited and accepted."""
STEP = 0.1
"""The nested sets grow by this share of the units that are open to acceptance."""
STARTS = ((0.02, 0.1), (0.3, 0.9))
"""Where δ begins: the largest set with at most this share of `error` expected in it, and its part of δ."""
FIRM, HOPED = 3.0, 0.4
"""The bets: as if so many errors had been seen before, at this share of `error`."""
MOST = 460.0
"""The most that a logarithm of wealth is."""


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
    """Indices of the units that can be accepted, none that was found wrong; empty: nothing is promised."""
    total: int
    """Units that nobody decided."""
    audited: int
    wrong: int
    certainty: float | None
    """The certainty from which on units are accepted."""
    more: int | None
    """How many more audited items would do if all of them were right; 0 where something is promised."""
    waiting: int = 0
    """Audits that do not count yet, because one that was drawn before them was skipped."""


def units_of(
    corpus: CrowdCorpus, truth: Truth, labels: Labels | None = None, areas: Sequence[Area] | None = None
) -> list[Unit]:
    """Cut what the first fit inferred into units; sequences nobody labelled have none. `areas`: see `find_items`."""
    labels = labels or Labels.of(corpus)
    if labels.scheme is None:
        at = np.flatnonzero(truth.voted)
        sequence = corpus.token_sequence[at]
        place = at - corpus.offsets[sequence]
        return [Unit(q, p, p + 1, False) for q, p in zip(sequence.tolist(), place.tolist())]
    units, seen = [], set()
    areas = find_items(corpus, truth, labels=labels, everything=True) if areas is None else areas
    for area in sorted(areas, key=lambda a: (a.sequence, a.start)):
        units.append(Unit(area.sequence, area.start, area.stop, area.sequence not in seen))
        seen.add(area.sequence)
    lengths = np.diff(corpus.offsets)
    for s in np.unique(corpus.token_sequence[truth.voted]).tolist():
        if s not in seen:
            units.append(Unit(s, 0, int(lengths[s]), False))
    return sorted(units, key=lambda u: (u.sequence, u.start))


def certainty_of(
    corpus: CrowdCorpus,
    truth: Truth,
    units: list[Unit],
    labels: Labels | None = None,
    areas: Sequence[Area] | None = None,
) -> npt.NDArray[Any]:
    """Return how sure a (later) fit is of each unit: one less the doubts of its areas, and of its tokens in no area."""
    labels = labels or Labels.of(corpus)
    doubt = 1 - truth.proba[np.arange(corpus.n_tokens), truth.labels].astype(np.float64)
    if labels.scheme is None:
        return np.array([1 - doubt[corpus.offsets[u.sequence] + u.start] for u in units])
    owner = _owners(corpus, units)
    total = np.zeros(len(units) + 1)
    for area in find_items(corpus, truth, labels=labels, everything=True) if areas is None else areas:
        base = int(corpus.offsets[area.sequence])
        own = slice(base + area.start, base + area.stop)
        # agreement of people is evidence that the posterior may not carry: it breaks ties among the very sure
        agreed = len(area.voters[0]) / max(area.n_voters, 1)
        total[np.unique(owner[own])] += 1 - area.certainty * (0.999 + 0.001 * agreed)
        doubt[own] = 0
    total += np.bincount(owner, weights=doubt, minlength=len(total))
    return np.maximum(1 - total[:-1], 0.0)


def _owners(corpus: CrowdCorpus, units: list[Unit]) -> npt.NDArray[np.int64]:
    """Return the unit of each token; the last number, where there is none (nobody labelled the sequence)."""
    owner = np.full(corpus.n_tokens, len(units))
    for i, u in enumerate(units):
        if u.rest:
            owner[corpus.offsets[u.sequence] : corpus.offsets[u.sequence + 1]] = i
    for i, u in enumerate(units):
        base = int(corpus.offsets[u.sequence])
        owner[base + u.start : base + u.stop] = i
    return owner


def audit_order(units: list[Unit], certainty: npt.NDArray[Any], seed: int = 0) -> list[int]:
    """Return the sure units in the order in which they are audited: at random, the same for ever."""
    least = min(SURE, float(np.median(certainty))) if len(units) else SURE
    keys = {
        i: hashlib.sha256(f"{seed} {units[i].id}".encode()).digest()
        for i in np.flatnonzero(certainty >= least).tolist()
    }
    return sorted(keys, key=lambda i: keys[i])


def judge(corpus: CrowdCorpus, truth: Truth, labels: Labels, units: list[Unit], unit: int, audit: Decision) -> bool:
    """Say whether a unit is wrong, by what somebody who audited it said."""
    u = units[unit]
    base, end = int(corpus.offsets[u.sequence]), int(corpus.offsets[u.sequence + 1])
    inferred = labels.of_sequence(truth.labels[base:end].tolist())
    mine = tuple(span for span in inferred if span[0] < u.stop and span[1] > u.start)
    right = any(sorted(mine) == sorted(reading) for reading in audit.readings)
    if not right or not u.rest:
        return not right
    own = [v for v in units if v.sequence == u.sequence]
    extra = [span for span in inferred if not any(span[0] < v.stop and span[1] > v.start for v in own)]
    return audit.missed or bool(extra)


def wealth(wrong: npt.NDArray[Any], n: int, error: float, *, found: bool = False) -> npt.NDArray[np.float64]:
    """Return the log of the wealth after each look at units of a set of n (1 = wrong), betting against too many errors.

    Too many: more than `error` of the set; with `found`, of what is left of it without the units that were found wrong.
    """
    looks, seen = np.arange(1, len(wrong) + 1), np.cumsum(wrong, dtype=np.float64)
    out = seen if found else np.zeros(len(seen))
    many = np.floor(error * (n - out) + 1e-9) + out + 1
    left, rest = n - looks, many - seen
    refuted = rest > left  # even if all that is left were wrong, it would be too few
    # beyond the most probable number of errors, more of them would be less probable still
    open_yet = ~refuted & (rest >= 0) & (many * looks >= seen * n)
    b = FIRM / (HOPED * error) - FIRM
    bet = betaln(FIRM + seen, b + looks - seen) - betaln(FIRM, b)
    course = bet + _choose(n, np.where(open_yet, many, 0)) - _choose(left, np.where(open_yet, rest, 0))
    return np.where(refuted, MOST, np.where(open_yet, np.minimum(course, MOST), -np.inf))


def _choose(n: Any, k: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the log of the binomial coefficient."""
    return np.asarray(-np.log1p(n) - betaln(n - k + 1, k + 1))


def spend(delta: float, fit: int) -> float:
    """Return the part of δ for the how-manieth different fit that is asked about: 0.8, then 0.2 / (j (j - 1))."""
    return delta * (0.8 if fit == 1 else 0.2 / (fit * (fit - 1)))


def _parts(expected: npt.NDArray[Any], sizes: npt.NDArray[np.int64], error: float) -> npt.NDArray[np.float64]:
    """Return the part of δ that each set begins with; `expected` is the share expected to be wrong in each."""
    parts = np.zeros(len(sizes))
    smallest = int(np.searchsorted(sizes, min(1 / error, sizes[-1])))
    for share, part in STARTS:
        holds = np.flatnonzero(expected <= share * error)
        parts[max(smallest, holds[-1] if len(holds) else 0)] += part
    return parts


def make_promise(
    certainty: npt.NDArray[Any],
    audited: list[tuple[int, bool]],
    *,
    error: float = 0.01,
    confidence: float = 0.95,
    open_units: npt.NDArray[np.bool_] | None = None,
    sure: npt.ArrayLike | None = None,
    fit: int = 1,
) -> Promise:
    """Find the largest set of sure units that can be promised to be wrong in at most `error` of the cases.

    `audited` are (unit, wrong) in the order in which they were drawn; `open_units` those nobody decided in the queue;
    `sure` the units the audit draws from (all, if not given).
    """
    is_open = np.ones(len(certainty), bool) if open_units is None else open_units
    pool = np.zeros(len(certainty), bool)
    pool[slice(None) if sure is None else np.asarray(sure, np.int64)] = True
    pool &= is_open
    total, n = int(is_open.sum()), int(pool.sum())
    looked = [(u, w) for u, w in audited if pool[u]]
    n_wrong = sum(w for _, w in looked)
    if not n:
        return Promise(error, confidence, (), total, len(looked), n_wrong, None, None)
    order = np.flatnonzero(pool)[np.argsort(-certainty[pool], kind="stable")]
    rank = np.empty(len(certainty), np.int64)
    rank[order] = np.arange(n)
    sizes = np.unique(np.maximum(1, (np.arange(STEP, 1 + STEP / 2, STEP) * n).astype(np.int64)))
    expected = (np.cumsum(1 - certainty[order]) / np.arange(1, n + 1))[sizes - 1]
    place = rank[[u for u, _ in looked]] if looked else np.zeros(0, np.int64)
    wrong = np.array([w for _, w in looked], float)
    delta = spend(1 - confidence, fit)
    handed, best, least = 0.0, 0, None
    for size, part in zip(sizes.tolist(), _parts(expected, sizes, error).tolist()):
        level = delta * part + handed
        if level == 0:
            continue
        mine, needed = wrong[place < size], -math.log(level)
        if _reached(wealth(mine, size, error, found=True), needed):
            best = size
        elif (more := _more(mine, size, error, needed)) is not None:
            drawn = math.ceil(more * n / size)
            least = drawn if least is None else min(least, drawn)
        handed = level if _reached(wealth(mine, size, error), needed) else 0.0
    if not best:
        return Promise(error, confidence, (), total, len(looked), n_wrong, None, least)
    accepted = sorted(set(order[:best].tolist()) - {u for u, w in looked if w})
    return Promise(
        error, confidence, tuple(accepted), total, len(looked), n_wrong, float(certainty[order[best - 1]]), 0
    )


def _reached(course: npt.NDArray[Any], needed: float) -> bool:
    return bool(len(course) and course.max() >= needed)


def _more(mine: npt.NDArray[Any], size: int, error: float, needed: float) -> int | None:
    """Return how many more units of a set must be looked at, all right, until its hypothesis falls; None: never."""
    left = size - len(mine)
    if left <= 0:
        return None
    course = wealth(np.concatenate((mine, np.zeros(left))), size, error, found=True)[len(mine) :]
    at = np.flatnonzero(course >= needed)
    return int(at[0]) + 1 if len(at) else None

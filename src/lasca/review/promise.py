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
the n units of a set are wrong. It falls as soon as at most f of the first t_f looks were wrong, for any f = 0, 1, 2, …
Here t_f is the smallest number of looks for which, were k wrong, the chance that it ever falls with f or fewer is at
most δ·S_f, S_f = 1 - (1 + (f + 1) / `CALM`)^-`STEEP`. So **however often one looks** a true hypothesis ever falls with
probability δ at most, and nothing of δ is lost, for chances are counted, not bounded: of the ways in which units can be
drawn, those with f wrong among t_f looks that never fell before are

    N_f = C(t_{f-1}, f) - Σ_{h<f} N_h · C(t_{f-1} - t_h, f - h),

and if k of n are wrong one of them is drawn with probability N_f · C(n - t_f, k - f) / C(n, k) (`looks_needed`). If
more are wrong, falling is less probable. S only says which crowds are promised about early: most of δ goes to
small f.

**What was found wrong** is never accepted. So the promise on a set, that at most `error` of what is accepted is
wrong, is broken while f were found only if there are k_f > error·(n - f) + f or more: t_f is for k_f, and every unit
that was found makes the hypothesis easier to refute.

**The sets.** δ is given to one of the nested sets (`START`, `AT_WORST`), by how many errors the model expects in it,
but to none in which one error is too much: all of it would have to be looked at. A set hands δ on to the
next larger one if it has at most `error` wrong *as it is*, what was found included (Bretz et al. 2009: hypotheses
tested in an order that was fixed before share δ without paying for each other): if ever, for some f, so few as f of t
looks were wrong that this had a chance of δ·(S_f - S_{f-1}) at most, were k_0 wrong. The largest set with a promise is
accepted.

That is right: of the sets that δ goes through, let A be the first with more than `error` wrong. Smaller
ones cannot break a promise. One on A that is broken, and one on any larger set, needs A to fall while it is broken, or
to hand on. Say k of A are wrong, k_f ≤ k < k_{f+1}. A falls while it is broken with f wrong or fewer, δ·S_f at most. It
hands on with g > f wrong, δ·(1 - S_f) at most, or with g ≤ f, but then it has fallen as well (t_g is never more than
the looks that handing on takes). Together that is δ. The j-th different fit that is asked about gets its own part of δ
(`spend`).
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln
from scipy.stats import binom, hypergeom

from lasca.corpus import CrowdCorpus
from lasca.review.decisions import Decision
from lasca.review.items import Area, find_items
from lasca.review.spans import Labels
from lasca.truth import Truth

__all__ = [
    "Promise",
    "Unit",
    "audit_order",
    "certainty_of",
    "judge",
    "looks_needed",
    "make_promise",
    "owners",
    "spend",
    "units_of",
]

SURE = 0.9
"""Units of at least this certainty in the first fit (and the surer half in any case) can be audited and accepted."""
STEP = 0.1
"""The nested sets grow by this share of the units that are open to acceptance."""
START = 0.25
"""Where δ begins: the largest set with at most this share of `error` expected in it."""
AT_WORST = 0.5
"""The share of `error` where no set has so few expected: a small set would need nearly all of it looked at."""
CALM, STEEP = 12.0, 6.0
"""How δ is shared among numbers of wrong units: six tenths of it to none and one, ever less to more."""
LIKELY = 0.8
"""The chance with which as many audits do as are advised, if the model is right."""
AHEAD = 20
"""So many more wrong units than now are thought of in this advice."""


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
    likely: int | None = None
    """How many more would do in four cases of five, if as many are wrong as the model expects; None: too many."""
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
    """Return how sure a (later) fit is of each unit: one less the doubts of its areas, and of its tokens in no area.

    What a model says against most people it says of a word wherever it stands: if it is wrong, then often. So it is no
    more than half sure of such a unit, which is for the queue.
    """
    labels = labels or Labels.of(corpus)
    doubt = 1 - truth.proba[np.arange(corpus.n_tokens), truth.labels].astype(np.float64)
    if labels.scheme is None:
        return np.array([1 - doubt[corpus.offsets[u.sequence] + u.start] for u in units])
    owner = owners(corpus, units)
    total = np.zeros(len(units) + 1)
    for area in find_items(corpus, truth, labels=labels, everything=True) if areas is None else areas:
        base = int(corpus.offsets[area.sequence])
        own = slice(base + area.start, base + area.stop)
        total[np.unique(owner[own])] += 1 - area.certainty * _by_people(area)
        doubt[own] = 0
    total += np.bincount(owner, weights=doubt, minlength=len(total))
    return np.maximum(1 - total[:-1], 0.0)


def _by_people(area: Area) -> float:
    """Return what the people leave of a model's certainty; their agreement breaks ties among the very sure."""
    if not area.n_voters:
        return 0.999
    agreed = len(area.voters[0]) / area.n_voters
    return 0.999 + 0.001 * agreed if agreed >= 0.5 else 0.5


def owners(corpus: CrowdCorpus, units: list[Unit]) -> npt.NDArray[np.int64]:
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


@lru_cache(maxsize=1000)
def looks_needed(n: int, error: float, level: float, most: int) -> tuple[int, ...]:
    """Return t_f for f = 0 … `most` (see above): with at most f wrong among t_f looks at units of a set of n, at most
    `error` of the set without those f is wrong, but with a chance of `level` that this is ever said and false."""
    looks, ways = np.zeros(0, np.int64), np.zeros(0)  # t_f and log N_f
    for f in range(min(most, n - 1) + 1):
        many, last, fewer = _too_many(n, error, f), max(looks[-1:], default=0), np.arange(f)
        total, alike = _choose(n, many), _choose(last, f)
        fell = np.exp(ways + _choose(n - looks, many - fewer) - total).sum()
        never = 1 - np.exp(ways + _choose(last - looks, f - fewer) - alike).sum()
        ways = np.append(ways, alike + math.log(max(never, 1e-300)))
        left = math.log(max(level * _share(f) - fell, 1e-300)) + total - ways[f]
        at = bisect_left(range(n), True, max(last, f), key=lambda t: bool(_choose(n - t, many - f) <= left))
        looks = np.append(looks, at)
    return tuple(looks.tolist())


def _too_many(n: int, error: float, found: int = 0) -> int:
    """Return how many wrong units of a set break the promise where so many were found and are not accepted."""
    return math.floor(error * (n - found) + 1e-9) + found + 1


def _share(f: Any) -> Any:
    """Return S_f: the part of δ that f wrong units or fewer share."""
    return 1 - (1 + (f + 1) / CALM) ** -STEEP


def _choose(n: Any, k: Any) -> Any:
    """Return the log of the binomial coefficient; -inf where there is no way."""
    possible = (k >= 0) & (k <= n)
    k = np.where(possible, k, 0)
    return np.where(possible, gammaln(n + 1) - gammaln(k + 1) - gammaln(np.where(possible, n - k, 0) + 1), -np.inf)


def spend(delta: float, fit: int) -> float:
    """Return the part of δ for the how-manieth different fit that is asked about: 0.9, then 0.1 / (j (j - 1))."""
    return delta * (0.9 if fit == 1 else 0.1 / (fit * (fit - 1)))


def _first(expected: npt.NDArray[Any], sizes: npt.NDArray[np.int64], error: float) -> int:
    """Return the set where δ begins; `expected` is the share expected to be wrong in each."""
    smallest = int(np.searchsorted(sizes, min(1 / error, sizes[-1])))
    holds = np.flatnonzero(expected <= (START if expected[0] <= START * error else AT_WORST) * error)
    return int(max([smallest, *holds[-1:]]))


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
    wrong = np.array([w for _, w in looked], bool)
    level, best = spend(1 - confidence, fit), 0
    advice: list[tuple[float, float]] = []
    first = _first(expected, sizes, error)
    for size, usual in zip(sizes[first:].tolist(), expected[first:].tolist()):
        mine = wrong[place < size]
        # how many looks there were until the first unit was wrong, until the second one was, …, and now
        until = np.append(np.flatnonzero(mine), len(mine))
        looks = np.array(looks_needed(size, error, level, AHEAD * (len(until) // AHEAD + 2)))
        if (looks[: len(until)] <= until[: len(looks)]).any():
            best = size
        else:
            advice.append(n / size * _further(looks, mine, usual))
        shares = level * np.diff(_share(np.arange(-1, len(until))))
        if not (hypergeom.cdf(np.arange(len(until)), size, _too_many(size, error), until) <= shares).any():
            break
    if not best:
        more, likely = (min(math.ceil(x), n - len(looked)) if x < math.inf else None for x in np.min(advice, axis=0))
        return Promise(error, confidence, (), total, len(looked), n_wrong, None, more, likely)
    accepted = sorted(set(order[:best].tolist()) - {u for u, w in looked if w})
    return Promise(
        error, confidence, tuple(accepted), total, len(looked), n_wrong, float(certainty[order[best - 1]]), 0, 0
    )


def _further(looks: npt.NDArray[Any], mine: npt.NDArray[Any], usual: float) -> npt.NDArray[Any]:
    """Return how many more units of a set must be looked at until its hypothesis falls: if all of them are right, and
    if as many are wrong as the model expects (`usual`) or, the more was seen, as were wrong so far."""
    seen, wrong = len(mine), int(mine.sum())
    left = looks[wrong:] - seen
    if not len(left):  # all of them are wrong
        return np.array([math.inf, math.inf])
    rate = (1 + wrong) / (1 / max(usual, 1e-9) + seen)
    enough = left[binom.cdf(np.arange(len(left)), left, rate) >= LIKELY]
    return np.array([left[0], enough[0] if len(enough) else math.inf])

"""Simulated crowds on a corpus with gold labels.

The order of what happens to a token, each step documented where it is done:
1. the gold label is where everybody starts;
2. `hard_cases`: where a second gold differs, an annotator starts from the second one with that probability, each
   annotator by itself;
3. `common`: at that share of the tokens (exactly, up to rounding) everybody starts from one and the same wrong label
   instead, drawn by label frequency, or as `wrong` says if that is "uniform" or "shared";
4. slips (`slips.py`): the annotator keeps the label it starts from with its precision, or not;
5. spammers never look, and a copying annotator writes down what another one would write, with probability
   `copy_rate`, and its own work otherwise;
6. what is missing is left out.

Every annotator has a random stream of its own: the same seed gives the same crowd, and the choice of who labels what
changes nothing about the labels.

The crowd of the demo (`demo_crowd`) is twelve people in three groups on the corpus that ships with the package.
`calibrate_to` finds the parameter that gives a wanted majority-vote accuracy; the majority vote here is a plain one,
`lasca.MajorityVote` is the one for users.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lasca.arrays import Bools, Codes, Floats, Ints, Ints32
from lasca.corpus import CrowdCorpus, LoadReport
from lasca.datasets import demo
from lasca.errors import ModelError
from lasca.estimator import check_choice, check_int, check_number, generator
from lasca.simulate.settings import CrowdSettings, Person, Scene, Work

__all__ = [
    "Calibrated", "Simulation", "calibrate_to", "crowd", "demo_crowd", "groups_of", "majority_accuracy",
    "majority_labels", "simulation",
]  # fmt: skip

DEMO_GROUPS = {"careful": 5, "quick": 4, "careless": 3}
DEMO_RANGES = {
    "ner": {"careful": (0.82, 0.95), "quick": (0.6, 0.78), "careless": (0.3, 0.5)},
    "pos": {"careful": (0.88, 0.96), "quick": (0.7, 0.85), "careless": (0.4, 0.6)},
}


@dataclass(frozen=True, eq=False)
class Simulation:
    """A simulated crowd and the truth about it, one entry per annotator of `corpus` unless said otherwise."""

    corpus: CrowdCorpus
    groups: tuple[str, ...]
    precision: Floats
    """(n_annotators, n_labels): the chance to keep each label; nan for spammers."""
    source: tuple[str, ...]
    """Whom a copying annotator copies; "" for the others."""
    common: Bools
    """Per token: whether everybody started from a wrong label."""
    difficulty: Floats | None
    """Per token, for errors="difficulty"."""
    settings: CrowdSettings


def crowd(corpus: CrowdCorpus, **parameters: Any) -> CrowdCorpus:
    """Return the corpus with a simulated crowd in place of its annotators; golds, texts and metadata stay.

    The parameters are the fields of `CrowdSettings`. Annotators are named by their group: "high-1", "medium-3",
    "spam-random-1", "copy-2" (`groups_of` gives the groups back; `simulation` returns precisions and all else drawn).

    - `gold`: the true labels ("gold", "gold1" or the first one if not given). Tokens without one get no annotation.
    - `groups`: how many annotators of each group, or "ca1", "ca2", "ca3" for the crowds of the paper; `ranges`: the
      lowest and highest precision in a group. The precision of an annotator is uniform in that range, those of
      a group are spread over it; with `per_label` there is one for each label.
    - `errors`: "independent"; "difficulty" (annotators fail on the same tokens; `rho` says how much); "spans" (for
      IOB2 labels: spans are missed, cut, lengthened, given another type by the weights `span_errors`; `false_spans`
      are added).
    - `wrong`: which wrong label: "uniform", "prior" (by label frequency),
      "annotator" (own habits, rows from a Dirichlet of this `concentration`), "shared" (habits common to all).
    - `common`: share of tokens that are wrong for everybody from the start.
    - `hard_cases`: the chance to start from `second_gold` where it differs (whole entities with errors="spans").
    - `missing`: share of single annotations left out; `annotators_per_sequence`: that many annotators label each
      sequence, drawn at random.
    - `spammers`: {"constant": n, "random": n, "prior": n}: always one label (drawn by label frequency), any label,
      labels by frequency. `copying`: so many annotators copy one of the groups' annotators, drawn at random.
    """
    return simulation(corpus, CrowdSettings(**parameters)).corpus


def simulation(corpus: CrowdCorpus, settings: CrowdSettings) -> Simulation:
    """Simulate as `crowd` does and return everything that was drawn beside the corpus."""
    settings.check(corpus)
    people = settings.people()
    shared, assigned, *own = generator(settings.seed).spawn(2 + len(people))
    scene = Scene.draw(corpus, settings, shared)
    precisions = _precisions(people, corpus.n_labels, settings.per_label, shared)
    work = [Work(person, scene, precision, rng) for person, precision, rng in zip(people, precisions, own)]
    honest = [w for w in work if w.person.range is not None]
    sources = [honest[int(w.rng.integers(len(honest)))] if w.person.group == "copy" else None for w in work]
    attends = _attendance(corpus, settings, assigned, len(people))
    parts: list[tuple[Ints, Ints32, Codes]] = []
    for i, (w, source) in enumerate(zip(work, sources)):
        codes = w.labels(keep=w in sources) if source is None else w.copied(source)
        there = attends[i][corpus.token_sequence] & (codes >= 0)
        if settings.missing:
            there &= assigned.random(len(codes)) >= settings.missing
        at = np.flatnonzero(there)
        parts.append((at, np.full(len(at), i, np.int32), codes[at]))
    made = corpus.with_annotations([person.name for person in people], *map(np.concatenate, zip(*parts)))
    return Simulation(
        corpus=replace(made, load_report=_report(corpus, scene.gold, settings)),
        groups=tuple(person.group for person in people),
        precision=np.stack([w.precision if s is None else s.precision for w, s in zip(work, sources)]),
        source=tuple("" if s is None else s.person.name for s in sources),
        common=scene.common,
        difficulty=scene.difficulty,
        settings=settings,
    )


def groups_of(corpus: CrowdCorpus) -> tuple[str, ...]:
    """Return the group of each annotator of a simulated crowd: its name without the number at the end."""
    return tuple(name.rsplit("-", maxsplit=1)[0] for name in corpus.annotators)


def _precisions(people: list[Person], n_labels: int, per_label: bool, rng: np.random.Generator) -> Floats:
    """Draw (n_people, n_labels) precisions, nan for those who have none.

    The range of a group is cut into as many equal parts as it has annotators and one precision is drawn from each
    part, in random order: every annotator's is uniform in the range, and groups of different seeds are alike in
    strength (drawn without this, majority vote on the paper's third crowd varies by 2.5 points from seed to seed).
    """
    result = np.full((len(people), n_labels), np.nan)
    for group in dict.fromkeys(person.group for person in people):
        members = [i for i, person in enumerate(people) if person.group == group]
        bounds = people[members[0]].range
        if bounds is None:
            continue
        part = np.argsort(rng.random((len(members), n_labels if per_label else 1)), axis=0)
        share = (part + rng.random(part.shape)) / len(members)
        result[members] = bounds[0] + (bounds[1] - bounds[0]) * share
    return result


def _attendance(corpus: CrowdCorpus, settings: CrowdSettings, rng: np.random.Generator, n_people: int) -> Bools:
    """Return who labels which sequence, (n_people, n_sequences)."""
    k = settings.annotators_per_sequence
    if k is None or k == n_people:
        return np.ones((n_people, corpus.n_sequences), np.bool_)
    chosen = rng.random((corpus.n_sequences, n_people)).argpartition(k - 1, axis=1)[:, :k]
    table = np.zeros((corpus.n_sequences, n_people), np.bool_)
    np.put_along_axis(table, chosen, True, axis=1)
    return np.ascontiguousarray(table.T)


def _report(corpus: CrowdCorpus, gold: Codes, settings: CrowdSettings) -> LoadReport:
    note = f"simulated crowd: errors={settings.errors!r}, wrong={settings.wrong!r}"
    old = corpus.load_report
    counts = dict(old.counts)
    without = int((gold < 0).sum())
    if without:
        counts["without gold"] = without
    return replace(old, counts=counts, notes=(*old.notes, note))


def demo_crowd(task: str = "ner", *, seed: int | np.random.Generator = 0) -> CrowdCorpus:
    """Return the demo corpus ("ner" or "pos") labelled by a simulated crowd, five people on each sequence.

    Entities are missed, cut, lengthened or given another type; parts of speech are mixed up as label frequency has
    it. Where the second gold differs, people take its reading in four cases of ten.
    """
    return crowd(
        demo.load(task), gold="gold", groups=DEMO_GROUPS, ranges=DEMO_RANGES[task], wrong="prior", hard_cases=0.4,
        errors="spans" if task == "ner" else "independent", second_gold="gold2", annotators_per_sequence=5, seed=seed,
    )  # fmt: skip


def majority_labels(corpus: CrowdCorpus) -> Codes:
    """Return the label most annotators gave each token, -1 where nobody did.

    Ties go to the label that is more frequent among all votes, then to the one that comes first.
    """
    n_labels, n_tokens = corpus.n_labels, corpus.n_tokens
    if not n_labels:
        return np.full(n_tokens, -1, np.int16)
    total = np.bincount(corpus.annotation_label, minlength=n_labels)
    order = np.lexsort((np.arange(n_labels), -total))  # the label that wins a tie against all others comes first
    rank = np.empty(n_labels, np.int64)
    rank[order] = np.arange(n_labels)
    result = np.empty(n_tokens, np.int16)
    step = max(1, (1 << 22) // n_labels)
    for first in range(0, n_tokens, step):
        last = min(first + step, n_tokens)
        part = slice(int(corpus.token_start[first]), int(corpus.token_start[last]))
        token = np.repeat(np.arange(last - first), np.diff(corpus.token_start[first : last + 1]))
        key = token * n_labels + rank[corpus.annotation_label[part]]
        votes = np.bincount(key, minlength=(last - first) * n_labels).reshape(-1, n_labels)
        result[first:last] = np.where(votes.any(axis=1), order[votes.argmax(axis=1)], -1)
    return result


def majority_accuracy(corpus: CrowdCorpus, gold: Codes) -> float:
    """Return the share of the tokens with a gold label that majority vote gets right."""
    known = gold >= 0
    return float((majority_labels(corpus)[known] == gold[known]).mean()) if known.any() else float("nan")


@dataclass(frozen=True)
class Calibrated:
    """The value found, the accuracy it gives (mean over the seeds), and all that was tried: (value, accuracy)."""

    parameter: str
    value: float
    accuracy: float
    trace: tuple[tuple[float, float], ...]


def calibrate_to(
    corpus: CrowdCorpus,
    target: float,
    *,
    parameter: str = "rho",
    low: float = 0.0,
    high: float | None = None,
    tolerance: float = 0.002,
    n_seeds: int = 3,
    max_steps: int = 20,
    seed: int = 0,
    **options: Any,
) -> Calibrated:
    """Find `rho` (errors="difficulty") or `common` for which majority vote is right on `target` of the tokens.

    Bisection between `low` and `high` (1 for rho, 0.5 for common) over crowds with the seeds seed … seed + n_seeds − 1,
    the same random numbers at every step, until the mean accuracy is within `tolerance`. `options` are the other
    arguments of `crowd`; for rho, errors is "difficulty" unless they say otherwise.

    >>> # calibrate_to(tdga, 0.91, parameter="common", gold="gold1", wrong="prior").value
    """
    check_choice("parameter", parameter, ("rho", "common"))
    check_number("target", target, low=0, high=1)
    check_number("tolerance", tolerance, low=0, open_low=True)
    check_int("n_seeds", n_seeds, low=1)
    check_int("max_steps", max_steps, low=1)
    check_int("seed", seed, low=0)
    left = check_number("low", low, low=0, high=1)
    right = check_number("high", (1.0 if parameter == "rho" else 0.5) if high is None else high, low=left, high=1)
    base = CrowdSettings(**({"errors": "difficulty"} if parameter == "rho" else {}) | options)
    gold, _ = base.gold_codes(corpus)
    trace: list[tuple[float, float]] = []

    def accuracy(value: float) -> float:
        crowds = (
            simulation(corpus, replace(base, **{parameter: value}, seed=seed + i)).corpus  # type: ignore[arg-type]
            for i in range(n_seeds)
        )
        found = float(np.mean([majority_accuracy(made, gold) for made in crowds]))
        trace.append((value, found))
        return found

    at_left, at_right = accuracy(left), accuracy(right)
    if not min(at_left, at_right) - tolerance <= target <= max(at_left, at_right) + tolerance:
        raise ModelError(
            f"majority vote cannot be right on {target:.1%} of the tokens by changing {parameter}",
            got=f"{at_left:.1%} at {left:g}, {at_right:.1%} at {right:g}",
            hint="Choose another target, other groups or another range (low, high)",
        )
    for _ in range(max_steps):
        best = min(trace, key=lambda pair: abs(pair[1] - target))
        if abs(best[1] - target) <= tolerance:
            break
        middle = (left + right) / 2
        if (accuracy(middle) > target) == (at_left > target):
            left = middle
        else:
            right = middle
    value, reached = min(trace, key=lambda pair: abs(pair[1] - target))
    return Calibrated(parameter, value, reached, tuple(trace))

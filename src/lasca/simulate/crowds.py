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
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lasca.arrays import Bools, Codes, Floats, Ints, Ints32
from lasca.corpus import CrowdCorpus, LoadReport
from lasca.datasets import demo
from lasca.estimator import check_options, generator
from lasca.simulate.settings import CrowdSettings, Person, Scene, Work

__all__ = ["Simulation", "crowd", "demo_crowd", "groups_of", "simulation"]

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
    check_options("a parameter of the simulation", parameters, CrowdSettings)
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

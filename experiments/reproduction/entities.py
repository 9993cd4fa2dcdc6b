"""Table 3: entities labelled by Mechanical Turk workers; the truth, and taggers for eng.testb trained on it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from lasca import datasets, evaluate
from lasca.corpus import CrowdCorpus
from lasca.truth import Truth
from reproduction import tagging
from reproduction.jobs import MODELS, NEWER, Job, Scope
from reproduction.memory import Peak
from reproduction.tweets import agreement_taggers, fitted, hmm, objective_options

__all__ = ["PAPER_SIZE", "choose", "gold", "infer", "jobs", "newer_taggers", "objectives"]

PAPER_SIZE = 3000
WARM = 20
"""Sentences of the small fit before the one that is measured."""
COSTS = {"hc": 15.0, "hc-seq": 80.0, "sembler": 25.0, "glad": 8.0, "bsc": 3.0}


def jobs(scope: Scope) -> list[Job]:
    """Return the jobs for table 3: the paper's size and all sentences; random parts for paired differences."""
    todo = []
    for part in ("3000",) if scope.quick else ("3000", "all"):
        share = 1.0 if part == "all" else 0.45
        first = Job("entity-choose", {"part": part}, cost=90 * share)
        todo += [first, Job("entity-gold", {"part": part}, cost=25 * share, needs=(first.id,))]
        for model in (*MODELS, *(() if part == "all" else NEWER)):
            cost = share * (25 + COSTS.get(model, 1.0))
            todo.append(Job("entities", {"part": part, "model": model}, cost=cost, needs=(first.id,), alone=True))
    for part in [
        "3000",
        *(() if scope.quick else ("all",)),
        *(f"random-{seed}" for seed in (() if scope.quick else scope.seeds)),
    ]:
        first = Job("entity-choose", {"part": part}, cost=40)
        if part.startswith("random"):
            todo.append(first)
        todo.append(Job("entity-objectives", {"part": part}, cost=90, needs=(first.id,)))
        if part != "all":
            todo.append(Job("entity-newer-taggers", {"part": part}, cost=30, needs=(first.id,)))
    return todo


@cache
def whole() -> CrowdCorpus:
    """Read the MTurk corpus once per process."""
    return datasets.load("conll2003-mturk")


@cache
def testb() -> CrowdCorpus:
    """Read eng.testb once per process."""
    return datasets.load("conll2003", split="testb")


def sentences(part: str) -> CrowdCorpus:
    """Return the annotated sentences among the first 3,000, among all, or among 3,000 in random documents."""
    corpus = whole()
    chosen = np.ones(corpus.n_sequences, np.bool_)
    if part == "3000":
        chosen[PAPER_SIZE:] = False
    elif part.startswith("random-"):
        document, _ = corpus.metadata["document"].codes()
        order = np.random.default_rng(int(part.removeprefix("random-"))).permutation(int(document.max()) + 1)
        size = np.bincount(document)[order]
        kept = order[: int(np.searchsorted(np.cumsum(size), PAPER_SIZE)) + 1]
        chosen = np.isin(document, kept)
    return corpus.select(sequences=np.flatnonzero(chosen & corpus.annotated_sequences))


def choose(part: str) -> dict[str, Any]:
    """Choose how words become features, without gold."""
    return tagging.choose_word_features(sentences(part))


def infer(part: str, model: str, needed: Mapping[str, Any]) -> dict[str, Any]:
    """Infer the truth, with its time and memory, and train taggers on it."""
    corpus = sentences(part)
    fitted(model, corpus.select(sequences=np.arange(WARM)), 0)  # compiles or loads what the model needs
    with Peak() as used:
        truth = fitted(model, corpus, 0)
    (words,) = needed.values()
    return {
        "truth": truth_scores(corpus, truth) | {"n_sequences": corpus.n_sequences},
        "taggers": {name: prediction(tagging.train(corpus, truth, name, words)) for name in tagging.FEATURES},
        "fit": {"cpu": used.cpu, "megabytes": used.megabytes},
        "diagonals": _diagonals(truth),
    }


def gold(part: str, needed: Mapping[str, Any]) -> dict[str, Any]:
    """Train taggers on the gold labels of the same sentences: what could be reached."""
    corpus = sentences(part)
    (words,) = needed.values()
    return {
        "taggers": {name: prediction(tagging.train(corpus, "gold", name, words)) for name in tagging.FEATURES},
        "in_testb": overlap(corpus),
    }


def overlap(corpus: CrowdCorpus) -> int:
    """Count the sentences that occur word for word in eng.testb."""
    known = {tuple(testb().sequence(s)) for s in range(testb().n_sequences)}
    return sum(tuple(corpus.sequence(s)) in known for s in range(corpus.n_sequences))


def truth_scores(corpus: CrowdCorpus, truth: Truth) -> dict[str, Any]:
    """Score a truth on all sentences of the part and on those of the test folder."""
    folder, names = corpus.metadata["folder"].codes()
    result: dict[str, Any] = {}
    for name in ("all", "test"):
        mask = np.ones(corpus.n_sequences, np.bool_) if name == "all" else folder == list(names).index("test")
        if not mask.any():
            continue
        spans = evaluate.spans_from_codes(
            corpus.golds["gold"], truth.labels, corpus.offsets, corpus.labels, sequences=mask
        )
        sure = evaluate.calibration(truth.proba, corpus.golds["gold"], mask=mask[corpus.token_sequence])
        result[name] = {
            "precision": 100 * spans.precision,
            "recall": 100 * spans.recall,
            "f1": 100 * spans.f1,
            "cross_entropy": sure.cross_entropy,
            "ece": sure.ece,
        }
    return result


def prediction(tagger: Any) -> dict[str, float]:
    """Score a tagger on eng.testb."""
    return tagging.span_scores(testb(), tagging.predicted(tagger, testb()))


def objectives(part: str, needed: Mapping[str, Any]) -> dict[str, Any]:
    """Train LA-SCA's tagger with every objective on the truth of HC; of all sentences, with the cost-sensitive ones."""
    corpus = sentences(part)
    truth = fitted("hc", corpus, 0)
    (words,) = needed.values()
    options = objective_options(corpus, truth)
    if part == "all":
        options = {name: more for name, more in options.items() if name.startswith("cost-sensitive")}
    return {
        features: {
            name: prediction(tagging.train(corpus, truth, features, words, **more)) for name, more in options.items()
        }
        for features in tagging.FEATURES
    }


def newer_taggers(part: str, needed: Mapping[str, Any]) -> dict[str, Any]:
    """Train what came later on the truth of HC: the CRF with Plank's loss, and the HMM."""
    corpus = sentences(part)
    truth = fitted("hc", corpus, 0)
    (words,) = needed.values()
    found = {name: prediction(tagger) for name, tagger in agreement_taggers(corpus, truth, words).items()}
    return {**{name: {"agreement": scores} for name, scores in found.items()}, "hmm": prediction(hmm(corpus, truth))}


def _diagonals(truth: Truth) -> list[float]:
    if truth.clusters is None:
        return []
    return [float(x) for x in np.diagonal(truth.clusters.shared, axis1=1, axis2=2).mean(axis=1)]

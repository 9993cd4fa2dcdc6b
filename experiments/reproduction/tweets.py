"""Tables 1 and 2: simulated crowds over T-DGA, the truth inferred from them, and taggers trained on it.

The crowd of table 1: 15 annotators, each right with a precision of its own, wrong labels drawn by label frequency,
and 6.7 % of the tokens wrong for everybody from the start. "hard" crowds have the ambiguity that the paper is about
instead: where the two golds differ, an annotator reads the second one on 40 % of the tokens; wrong labels are uniform.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from lasca import ambiguity, datasets, evaluate, simulate
from lasca.comparison import departure_from_majority
from lasca.confusion import LabelConfusion, disagreement, label_confusion
from lasca.corpus import CrowdCorpus
from lasca.tagger import CrfTagger, HmmTagger
from lasca.truth import Truth, model_class
from reproduction import tagging
from reproduction.jobs import MODELS, NEWER, Job, Scope
from reproduction.paper import CROWDS

__all__ = [
    "CROWD_KINDS",
    "GOLD",
    "OBJECTIVES",
    "choose",
    "crowd",
    "fitted",
    "infer",
    "jobs",
    "newer_taggers",
    "objectives",
]

CROWD_KINDS: dict[str, dict[str, Any]] = {
    "table-1": {"errors": "independent", "wrong": "prior", "common": 0.067},
    "hard": {"errors": "independent", "wrong": "uniform", "hard_cases": 0.4, "second_gold": "gold2"},
}
GOLD = "gold"
"""In the place of a model: the taggers learn from gold 1 itself, which is what could be reached."""
COSTS = {"hc": 8.0, "hc-seq": 11.0, "robust": 4.0, "raykar": 3.0, "sembler": 2.5}
OBJECTIVES = (
    "likelihood",
    "cost-sensitive",
    "cost-sensitive, rank-1",
    "cost-sensitive, golds",
    "softmax-margin",
    "soft",
)
"""How LA-SCA's tagger may be trained: the confusion is that of two-truths unless another one is named."""


def jobs(scope: Scope) -> list[Job]:
    """Return the jobs for tables 1 and 2, and for the comparison of objectives."""
    todo = []
    for kind in CROWD_KINDS:
        for groups in CROWDS:
            for seed in scope.seeds:
                first = Job("choose", {"kind": kind, "groups": groups, "seed": seed}, cost=9.0)
                needs = (first.id,)
                todo.append(first)
                todo.append(Job("objectives", dict(first.settings), cost=22.0, needs=needs))
                todo.append(Job("newer-taggers", dict(first.settings), cost=12.0, needs=needs))
                if kind == "table-1":
                    for model in (*MODELS, *NEWER, GOLD):
                        settings = {**first.settings, "model": model}
                        todo.append(Job("tweets", settings, cost=3.0 + COSTS.get(model, 0.5), needs=needs))
    return todo


@cache
def tdga() -> CrowdCorpus:
    """Read T-DGA once per process."""
    return datasets.load("tdga")


@cache
def unseen() -> dict[str, CrowdCorpus]:
    """Read the test tweets once per process; numbers are written as T-DGA writes them."""
    return {"RITTER": datasets.load("ritter-test", numbers=True), "INHOUSE": datasets.load("inhouse")}


def crowd(kind: str, groups: str, seed: int) -> CrowdCorpus:
    """Simulate one of the crowds."""
    return simulate.crowd(tdga(), gold="gold1", groups=groups, seed=seed, **CROWD_KINDS[kind])


def fitted(model: str, corpus: CrowdCorpus, seed: int, **more: Any) -> Truth:
    """Infer the truth with a model at its defaults, in one thread."""
    estimator = model_class(model)(**more)
    names = estimator.get_params()
    estimator.set_params(**{n: v for n, v in {"seed": seed, "n_threads": 1, "threads": 1}.items() if n in names})
    return estimator.fit(corpus)


def choose(kind: str, groups: str, seed: int) -> dict[str, Any]:
    """Choose how words become features, without gold."""
    return tagging.choose_word_features(crowd(kind, groups, seed))


def infer(kind: str, groups: str, seed: int, model: str, needed: Mapping[str, Any]) -> dict[str, Any]:
    """Infer the truth of a crowd (or take gold 1), train taggers on it, score both."""
    corpus = crowd(kind, groups, seed)
    truth = "gold1" if model == GOLD else fitted(model, corpus, seed)
    (words,) = needed.values()
    taggers = {name: unseen_scores(tagging.train(corpus, truth, name, words)) for name in tagging.FEATURES}
    scores = {} if isinstance(truth, str) else {"truth": truth_scores(corpus, truth)}
    return {**scores, "taggers": taggers}


def truth_scores(corpus: CrowdCorpus, truth: Truth) -> dict[str, Any]:
    """Score a truth against the golds of T-DGA."""
    scores: dict[str, Any] = {}
    for gold in ("gold1", "gold2"):
        there = corpus.golds[gold] >= 0
        scores[gold] = 100 * float((truth.labels == corpus.golds[gold])[there].mean())
    sure = evaluate.calibration(truth.proba, corpus.golds["gold1"])
    scores |= {"cross_entropy": sure.cross_entropy, "ece": sure.ece}
    scores["warnings"] = len(departure_from_majority(corpus, truth))
    if truth.clusters is not None:
        scores["ari"] = evaluate.adjusted_rand_index(simulate.groups_of(corpus), truth.clusters.assignment)
    return scores


def unseen_scores(tagger: Any) -> dict[str, dict[str, float]]:
    """Score a tagger on RITTER, on INHOUSE, and on INHOUSE without the tweets that T-DGA holds as well."""
    scores = {}
    seen = {tuple(tdga().sequence(s)) for s in range(tdga().n_sequences)}
    for name, corpus in unseen().items():
        found = tagging.predicted(tagger, corpus)
        scores[name] = tagging.token_scores(corpus, found)
        if name == "INHOUSE":
            new = [tuple(corpus.sequence(s)) not in seen for s in range(corpus.n_sequences)]
            scores["INHOUSE, new"] = tagging.token_scores(corpus, found, np.array(new))
            scores["INHOUSE, new"]["n_sequences"] = float(sum(new))
    return scores


def objectives(kind: str, groups: str, seed: int, needed: Mapping[str, Any]) -> dict[str, Any]:
    """Train LA-SCA's tagger with every objective on the truth of HC."""
    corpus = crowd(kind, groups, seed)
    truth = fitted("hc", corpus, seed)
    (words,) = needed.values()
    golds = LabelConfusion.from_golds(corpus, "gold1", "gold2")
    return {
        features: {
            name: unseen_scores(tagging.train(corpus, truth, features, words, **options))
            for name, options in objective_options(corpus, truth, golds).items()
        }
        for features in tagging.FEATURES
    }


def objective_options(
    corpus: CrowdCorpus, truth: Truth, golds: LabelConfusion | None = None
) -> dict[str, dict[str, Any]]:
    """Return the tagger's parameters for each objective."""
    own = {
        name: label_confusion(corpus, truth, ambiguity.find_ambiguity(corpus, truth, method=method))
        for name, method in (("", "two-truths"), (", rank-1", "rank-1"))
    }
    options: dict[str, dict[str, Any]] = {"likelihood": {}}
    for name, confusion in own.items():
        options[f"cost-sensitive{name}"] = {"objective": "cost-sensitive", "confusion": confusion}
    if golds is not None:
        options["cost-sensitive, golds"] = {"objective": "cost-sensitive", "confusion": golds}
    options["softmax-margin"] = {"objective": "softmax-margin", "confusion": own[""]}
    options["soft"] = {"soft": True}
    return options


def newer_taggers(kind: str, groups: str, seed: int, needed: Mapping[str, Any]) -> dict[str, Any]:
    """Train what came later on the truth of HC: the CRF with Plank's loss, and the HMM."""
    corpus = crowd(kind, groups, seed)
    truth = fitted("hc", corpus, seed)
    (words,) = needed.values()
    found = {name: unseen_scores(tagger) for name, tagger in agreement_taggers(corpus, truth, words).items()}
    return {**{name: {"agreement": scores} for name, scores in found.items()}, "hmm": unseen_scores(hmm(corpus, truth))}


def agreement_taggers(corpus: CrowdCorpus, truth: Truth, words: Mapping[str, Any]) -> dict[str, CrfTagger]:
    """Train by Plank's loss, a mistake counting less where two annotators confuse the labels; by features."""
    gamma = disagreement(corpus)
    return {
        name: tagging.train(corpus, truth, name, words, objective="agreement", confusion=gamma)
        for name in tagging.FEATURES
    }


def hmm(corpus: CrowdCorpus, truth: Truth) -> HmmTagger:
    """Train the hidden Markov model that hears counts alone."""
    return HmmTagger(words=1.0).fit(corpus, truth)

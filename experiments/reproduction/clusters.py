"""Does HC find the groups of simulated crowds, with the number of clusters chosen by BIC?"""

from __future__ import annotations

from typing import Any

import numpy as np

from lasca import evaluate, simulate
from reproduction.jobs import Job, Scope
from reproduction.paper import CROWDS
from reproduction.tweets import fitted, tdga

__all__ = ["KINDS", "OTHERS", "jobs", "measure"]

KINDS: dict[str, dict[str, Any]] = {
    "shared": {"errors": "independent", "wrong": "shared", "per_label": True},
    "annotator": {"errors": "independent", "wrong": "annotator"},
    "uniform": {"errors": "independent", "wrong": "uniform"},
    "prior, common": {"errors": "independent", "wrong": "prior", "common": 0.067},
    "difficulty": {"errors": "difficulty", "wrong": "uniform"},
}
QUICK = ("shared", "difficulty")
OTHERS = ("mv", "ds", "mace", "glad")
"""The other models that take tokens as independent."""


def jobs(scope: Scope) -> list[Job]:
    """Return the crowds to look at; the paper's literal priors are tried on one kind."""
    todo = []
    for kind in QUICK if scope.quick else KINDS:
        for groups in CROWDS:
            for seed in scope.seeds:
                settings = {"kind": kind, "groups": groups, "seed": seed}
                todo.append(Job("clusters", {**settings, "priors": "default"}, cost=9.0))
                if kind == "shared":
                    todo.append(Job("clusters", {**settings, "priors": "paper"}, cost=7.0))
    return todo


def measure(kind: str, groups: str, seed: int, priors: str) -> dict[str, Any]:
    """Fit HC and the other token models to one crowd."""
    corpus = simulate.crowd(tdga(), gold="gold1", groups=groups, seed=seed, **KINDS[kind])
    gold = corpus.golds["gold1"]
    truth = fitted("hc", corpus, seed, priors=priors)
    assert truth.clusters is not None
    diagonals = np.diagonal(truth.clusters.shared, axis1=1, axis2=2).mean(axis=1)
    accuracy = {"hc": 100 * float((truth.labels == gold).mean())}
    if priors == "default":
        for model in OTHERS:
            accuracy[model] = 100 * float((fitted(model, corpus, seed).labels == gold).mean())
    return {
        "n_clusters": truth.clusters.n_clusters,
        "ari": evaluate.adjusted_rand_index(simulate.groups_of(corpus), truth.clusters.assignment),
        "diagonals": [float(x) for x in diagonals],
        "accuracy": accuracy,
    }

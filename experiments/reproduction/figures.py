"""What figures 3 to 6 of the paper are drawn from: example tweets, label confusion, shared confusion matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lasca import ambiguity, simulate
from lasca.confusion import LabelConfusion, label_confusion
from lasca.corpus import CrowdCorpus
from lasca.truth import Truth
from reproduction.entities import sentences
from reproduction.jobs import Job, Scope
from reproduction.tweets import crowd, fitted

__all__ = ["entity_clusters", "jobs", "tweet_figures"]

N_EXAMPLES = 2
LENGTH = (6, 18)
"""How many tokens an example may have."""


def jobs(scope: Scope) -> list[Job]:
    """Return the two jobs."""
    return [Job("figures", {"groups": "ca1", "seed": 0}, 12.0), Job("entity-clusters", {"part": "3000"}, 10.0)]


def tweet_figures(groups: str, seed: int) -> dict[str, Any]:
    """Return figures 3 to 5 for a crowd that reads the second gold on 40 % of the tokens where the golds differ."""
    corpus = crowd("hard", groups, seed)
    truth = fitted("hc", corpus, seed)
    found = ambiguity.find_ambiguity(corpus, truth)
    competing = dict(zip(found.tokens.tolist(), found.candidates))
    examples = []
    for s in _telling(corpus, competing):
        rows = []
        for i in range(int(corpus.offsets[s]), int(corpus.offsets[s + 1])):
            labels = [corpus.labels[t] for t in competing.get(i, {})]
            golds = [corpus.labels[corpus.golds[name][i]] for name in ("gold1", "gold2")]
            rows.append([corpus.tokens[i], corpus.labels[truth.labels[i]], labels, golds])
        examples.append(rows)
    return {
        "labels": list(corpus.labels),
        "examples": examples,
        "derived": label_confusion(corpus, truth, found).matrix.tolist(),
        "golds": LabelConfusion.from_golds(corpus, "gold1", "gold2").matrix.tolist(),
        "clusters": _shared(truth),
        "groups": list(simulate.groups_of(corpus)),
    }


def _telling(corpus: CrowdCorpus, competing: Mapping[int, Mapping[int, float]]) -> list[int]:
    """Return the sequences in which the most different pairs of golds were found; few tokens flagged break ties."""
    first, second = corpus.golds["gold1"], corpus.golds["gold2"]
    pairs: list[set[tuple[int, int]]] = [set() for _ in range(corpus.n_sequences)]
    flagged = np.zeros(corpus.n_sequences, np.int64)
    for i, labels in competing.items():
        s = int(corpus.token_sequence[i])
        flagged[s] += 1
        if first[i] != second[i] and {int(first[i]), int(second[i])} <= set(labels):
            pairs[s].add((int(first[i]), int(second[i])))
    length = np.diff(corpus.offsets)
    fits = (length >= LENGTH[0]) & (length <= LENGTH[1])
    order = np.lexsort((flagged, -np.array([len(found) for found in pairs]) * fits))
    return [int(s) for s in order[:N_EXAMPLES]]


def entity_clusters(part: str) -> dict[str, Any]:
    """Return figure 6: the shared confusion matrices of the clusters of Turk workers."""
    corpus = sentences(part)
    truth = fitted("hc", corpus, 0)
    return {"labels": list(corpus.labels), "clusters": _shared(truth)}


def _shared(truth: Truth) -> list[dict[str, Any]]:
    assert truth.clusters is not None
    return [
        {
            "size": int((truth.clusters.assignment == c).sum()),
            "members": np.flatnonzero(truth.clusters.assignment == c).tolist(),
            "diagonal": float(np.diagonal(matrix).mean()),
            "matrix": [[float(x) for x in row] for row in matrix],
        }
        for c, matrix in enumerate(truth.clusters.shared)
    ]

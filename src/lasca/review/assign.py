"""Who labels next: which documents to give to whom, by the errors a vote is expected to remove per unit of work.

A vote of annotator l on a token with posterior p is worth Σ_s max_t p_t Ψ^l_ts - max_t p_t, the rise of the probability
that the best label is right (p is doubted where votes are few, `DOUBT`); a document is worth the sum over its tokens.
Its cost is a fixed part plus its length. Batches are greedy: every vote already handed out on a document halves what a
further one is worth there. Nobody gets what they have labelled. Somebody new is taken for an average annotator; among
several for whom a document is worth the same, who has the least gets it.
Measured in docs/review-replays.md.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.errors import ParameterError
from lasca.truth import Truth

__all__ = ["Assignment", "assign", "documents_of"]

FIXED = 10.0
"""What a document costs before its first token is read, in tokens."""
SURE = 0.999
"""Tokens whose label is surer than this are not worth a vote."""

DOUBT = 0.1
"""A posterior counts as much as its votes, and how common labels are as much as this part of one: a model may be sure
of what one person said, and still be worth asking a second one."""


@dataclass(frozen=True)
class Assignment:
    """A document for an annotator."""

    annotator: str
    document: str
    sequences: tuple[int, ...]
    tokens: int
    gain: float
    """Errors the vote is expected to remove."""


def documents_of(corpus: CrowdCorpus) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the document of each sequence and the names of the documents (sequences by themselves where unknown)."""
    if "document" in corpus.metadata and any(corpus.metadata["document"]):
        codes, names = corpus.metadata["document"].codes()
        return codes.astype(np.int64), list(names)
    return np.arange(corpus.n_sequences), list(corpus.sequence_ids)


def assign(
    corpus: CrowdCorpus,
    truth: Truth,
    budget: int,
    *,
    annotators: Sequence[str] | None = None,
    most: int | None = None,
    may: npt.NDArray[np.bool_] | None = None,
    settled: npt.NDArray[np.bool_] | None = None,
) -> list[Assignment]:
    """Hand out `budget` documents, the best first; `most` is how many one annotator may get.

    `may` says who may get what: (annotators, documents), in the order in which they are named and of `documents_of`.
    `settled` marks tokens that somebody decided: no vote is needed there, nor where a label was known beforehand.
    """
    if budget < 1:
        raise ParameterError("budget", budget, "at least 1")
    voters = [a for a, kind, v in zip(corpus.annotators, corpus.kinds, corpus.votes) if v and kind == "person"]
    people = voters if annotators is None else list(dict.fromkeys(annotators))
    if not people:
        raise ParameterError("annotators", [], "one name at least")
    document, names = documents_of(corpus)
    of_token = document[corpus.token_sequence] if corpus.n_tokens else np.zeros(0, np.int64)
    tokens = np.bincount(of_token, minlength=len(names))
    proba = _doubted(corpus, truth)
    best = proba.max(axis=1)
    is_open = best < SURE if settled is None else (best < SURE) & ~settled
    if corpus.known is not None:
        is_open &= corpus.known.codes(corpus.n_tokens) < 0
    open_tokens = np.flatnonzero(is_open)
    code = {name: a for a, name in enumerate(corpus.annotators)}
    seen = np.zeros((corpus.n_annotators, len(names)), bool)
    seen[corpus.annotation_annotator, of_token[corpus.annotation_token]] = True
    average = (
        truth.confusion[np.array(corpus.votes, bool)].mean(axis=0) if any(corpus.votes) else np.eye(corpus.n_labels)
    )
    value = np.zeros((len(people), len(names)))
    for k, name in enumerate(people):
        rows = truth.confusion[code[name]] if name in code else average
        gain = _gain(proba[open_tokens], rows) - best[open_tokens]
        value[k] = np.bincount(of_token[open_tokens], weights=np.maximum(gain, 0), minlength=len(names))
        if name in code:
            value[k, seen[code[name]]] = 0
    if may is not None:
        value *= may
    per_cost = value / (FIXED + tokens)
    return _greedy(per_cost, value, people, names, document, tokens, budget, most)


def _doubted(corpus: CrowdCorpus, truth: Truth) -> npt.NDArray[np.float64]:
    """Return probabilities that are never surer than the number of votes allows."""
    n = np.diff(corpus.token_start)[:, None]
    return np.asarray((n * truth.proba + DOUBT * truth.proba.mean(axis=0)) / (n + DOUBT), np.float64)


def _gain(proba: npt.NDArray[Any], rows: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the expected probability of the best label after a vote by these rows, for each token."""
    total = np.zeros(len(proba))
    for s in range(rows.shape[1]):
        total += (proba * rows[:, s]).max(axis=1)
    return total


def _greedy(
    per_cost: npt.NDArray[Any], value: npt.NDArray[Any], people: list[str], names: list[str],
    document: npt.NDArray[np.int64], tokens: npt.NDArray[np.int64], budget: int, most: int | None,
) -> list[Assignment]:  # fmt: skip
    heap = [(-float(per_cost[k, d]), int(d), 0, k, 0) for k in range(len(people)) for d in np.flatnonzero(value[k] > 0)]
    heapq.heapify(heap)
    given = np.zeros(len(names), np.int64)
    had = [0] * len(people)
    members: dict[int, list[int]] = {}
    for s, d in enumerate(document.tolist()):
        members.setdefault(d, []).append(s)
    made: list[Assignment] = []
    while heap and len(made) < budget:
        _, d, load, k, when = heapq.heappop(heap)
        if most is not None and had[k] >= most:
            continue
        if when < given[d] or load < had[k]:  # since then it became worth less, or others have less to do
            heapq.heappush(heap, (-float(per_cost[k, d]) * 0.5 ** int(given[d]), d, had[k], k, int(given[d])))
            continue
        gain = float(value[k, d]) * 0.5 ** int(given[d])
        made.append(Assignment(people[k], names[d], tuple(members[d]), int(tokens[d]), gain))
        given[d] += 1
        had[k] += 1
    return made

"""Which tagger for this crowd? Cross-validation over documents, with held-out votes as the judge: never gold.

Each candidate is trained on the truth of all documents but one fold's, and foretells the votes on that fold
(`lasca.tagger.votes`). Differences are judged by a bootstrap over documents. Candidates are given from the simplest to
the richest; a richer one is chosen only if it beats the best so far by two standard errors. Votes of people who copy
each other, or who all miss the same things, cannot tell a better tagger from one that has learned their mistakes.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from lasca.crf.runs import Report
from lasca.errors import ModelError, ParameterError
from lasca.estimator import check_int, generator
from lasca.tagger.base import Tagger
from lasca.tagger.votes import vote_score_of

if TYPE_CHECKING:
    from lasca.corpus import CrowdCorpus

__all__ = ["Choice", "choose_tagger"]

Array = np.ndarray[Any, Any]
_DRAWS = 500


@dataclass(frozen=True)
class Choice:
    """What cross-validation found: the name of the best candidate, and how each did."""

    best: str
    scores: Mapping[str, float]
    """The mean log score of a held-out vote."""
    differences: Mapping[str, tuple[float, float]]
    """By how much a candidate beats the one that was best before it, and the standard error of that."""

    def __str__(self) -> str:
        lines = [f"{name}: {value:.5f}" for name, value in self.scores.items()]
        return "\n".join([*lines, f"chosen: {self.best}"])


def choose_tagger(
    corpus: CrowdCorpus,
    truth: Any,
    candidates: Mapping[str, Tagger],
    *,
    folds: int = 3,
    seed: int = 0,
    progress: Report | None = None,
) -> Choice:
    """Return which of the candidates – from the simplest to the richest – foretells held-out votes best."""
    check_int("folds", folds, low=2)
    if not candidates:
        raise ParameterError("candidates", candidates, "taggers by name")
    documents = _documents(corpus)
    n_documents = int(documents.max(initial=-1)) + 1
    if n_documents < folds:
        raise ModelError(f"{folds} folds need as many documents", got=n_documents, hint="Give fewer folds")
    votes = vote_score_of(corpus, truth, np.ones(corpus.n_tokens, dtype=np.bool_))
    if votes is None:
        raise ModelError("there are no votes to judge taggers by", hint="Give a corpus with votes and its truth")
    fold = _deal(corpus, documents, n_documents, folds)
    of_token = documents[corpus.token_sequence]
    per_document: dict[str, Array] = {}
    n_votes: Array = np.zeros(n_documents)
    for number, (name, candidate) in enumerate(candidates.items()):
        tagger = type(candidate)(**candidate.get_params())  # the candidate itself stays as it was
        proba = np.zeros((corpus.n_tokens, corpus.n_labels), dtype=np.float32)
        for k in range(folds):
            _fit_without(tagger, corpus, truth, fold[documents] == k)
            own = np.flatnonzero(fold[documents] == k)
            found = tagger.predict_proba([corpus.sequence(s) for s in own.tolist()])
            for s, rows in zip(own.tolist(), found):
                proba[corpus.offsets[s] : corpus.offsets[s + 1]] = rows
            if progress is not None:
                progress((number * folds + k + 1) / (len(candidates) * folds), name)
        total, n = votes.per_token(proba, corpus.n_tokens)
        per_document[name] = np.bincount(of_token, total, n_documents)
        n_votes = np.bincount(of_token, n, n_documents)
    return _decide(per_document, n_votes, generator(seed))


def _decide(per_document: dict[str, Array], n_votes: Array, rng: np.random.Generator) -> Choice:
    draws = rng.integers(0, len(n_votes), size=(_DRAWS, len(n_votes)))
    scores = {name: float(values.sum() / max(n_votes.sum(), 1)) for name, values in per_document.items()}
    names = list(per_document)
    best, differences = names[0], {}
    for name in names[1:]:
        gain = per_document[name] - per_document[best]
        spread = gain[draws].sum(axis=1) / np.maximum(n_votes[draws].sum(axis=1), 1)
        mean, error = float(gain.sum() / max(n_votes.sum(), 1)), float(spread.std())
        differences[name] = (mean, error)
        if mean > 2 * error:
            best = name
    return Choice(best, scores, differences)


def _fit_without(tagger: Tagger, corpus: CrowdCorpus, truth: Any, left_out: Array) -> None:
    """Fit on the truth of the other sequences; those left out have no label at all."""
    rest = np.flatnonzero(~left_out)
    part = corpus.select(sequences=rest)
    rows = ~left_out[corpus.token_sequence]
    codes = truth.codes if hasattr(truth, "codes") else truth.labels
    known = SimpleNamespace(
        labels=codes[rows], proba=truth.proba[rows], confusion=truth.confusion,
        voted=getattr(truth, "voted", np.ones(len(rows), dtype=np.bool_))[rows],
    )  # fmt: skip
    tagger.fit(part, known)


def _documents(corpus: CrowdCorpus) -> Array:
    """Return the document of each sequence, or the sequence itself."""
    column = corpus.metadata.get("document")
    if column is not None:
        codes, names = column.codes()
        if len(names) > 1:
            return np.asarray(codes, dtype=np.int64)
    return np.arange(corpus.n_sequences)


def _deal(corpus: CrowdCorpus, documents: Array, n: int, folds: int) -> Array:
    """Return the fold of each document, by a checksum of its words: the same whatever order they come in."""
    sums = [0] * n
    for s, document in enumerate(documents.tolist()):
        words = "\n".join([*corpus.sequence(s), ""])
        sums[document] = zlib.crc32(words.encode("utf-8", "surrogatepass"), sums[document])
    rank = np.empty(n, dtype=np.int64)
    rank[np.argsort(sums, kind="stable")] = np.arange(n)
    return rank % folds

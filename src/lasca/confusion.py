"""Which labels are confused with which: from the ambiguous tokens, or from two golds (paper, section 4.2).

p(i, j) = (number of ambiguous tokens whose candidates hold both i and j) / (number of tokens with i among their
labels), where the labels of a token are its candidates if it is ambiguous, and its inferred truth otherwise;
CF(i, j) = mean of p(i, j) and p(j, i), and 0 on the diagonal. With two golds, a token's labels are the labels the two
give it, and the same formula gives the gold matrix.

Deviation: for two-truths the numbers are expected ones by default (`expected=True`): each token counts with the
probability that i and j are its two truths. No fraction then decides which tokens count. `expected=False` is literal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from lasca.ambiguity import Ambiguity
from lasca.arrays import Array, Floats, readonly
from lasca.corpus import CrowdCorpus
from lasca.errors import CorpusError, ModelError, ParameterError
from lasca.estimator import check_choice
from lasca.evaluate import confusion_counts
from lasca.kernels.tables import crossed
from lasca.records import Record, loading, read_header, save_folder
from lasca.truth import Truth
from lasca.truth.base import Votes

__all__ = ["DISAGREEMENTS", "LabelConfusion", "disagreement", "expected_confusion", "label_confusion"]

VERSION = 1
DISAGREEMENTS = {"agreement": "confusion", "agreement-f1": "f1"}
"""The tagger's objectives that learn from disagreement itself, and which form of it they take."""


@dataclass(frozen=True, eq=False, repr=False)
class LabelConfusion(Record):
    """How often two labels compete, between 0 (never) and 1 (always)."""

    matrix: Floats
    """(T, T), symmetric, diagonal 0."""
    labels: tuple[str, ...]
    source: str = ""
    """Where it comes from: "two-truths", "rank-1", …, or "gold1 and gold2"."""
    counts: Mapping[str, float] = field(default_factory=dict)
    """How many tokens were looked at, and how many of them had two labels or more."""

    def __post_init__(self) -> None:
        matrix = np.ascontiguousarray(self.matrix, dtype=np.float64)
        T = len(self.labels)
        if matrix.shape != (T, T):
            raise ParameterError("matrix", matrix.shape, f"of shape ({T}, {T}): one row per label")
        good = (matrix >= 0).all() and (matrix <= 1 + 1e-12).all()
        if not good or not np.array_equal(matrix, matrix.T) or np.diag(matrix).any():
            raise ParameterError("matrix", "something else", "symmetric, in [0, 1], with a diagonal of 0")
        object.__setattr__(self, "matrix", readonly(matrix))
        object.__setattr__(self, "counts", MappingProxyType(dict(self.counts)))

    def __repr__(self) -> str:
        return f"LabelConfusion({self.source}: {', '.join(f'{a}/{b} {v:.2f}' for a, b, v in self.pairs(3))}, …)"

    def pairs(self, top: int | None = None) -> list[tuple[str, str, float]]:
        """Return the pairs of labels, the most confused first."""
        a, b = np.triu_indices(len(self.labels), 1)
        order = np.argsort(-self.matrix[a, b], kind="stable")[:top]
        return [(self.labels[a[k]], self.labels[b[k]], float(self.matrix[a[k], b[k]])) for k in order]

    @classmethod
    def from_golds(cls, corpus: CrowdCorpus, first: str, second: str) -> LabelConfusion:
        """Count where two golds differ. Tokens that lack one of them have the labels that are there."""
        a, b = (corpus.golds[str(corpus.gold_name(name))].astype(np.int64) for name in (first, second))
        differ = (a >= 0) & (b >= 0) & (a != b)
        has = confusion_counts(a[differ], b[differ], corpus.n_labels).astype(np.float64)
        both = has + has.T
        label = np.where(a >= 0, a, b)[~differ]
        single = np.bincount(label[label >= 0], minlength=corpus.n_labels)
        counts = {"tokens": float(((a >= 0) | (b >= 0)).sum()), "with two labels": float(differ.sum())}
        return cls(_confusion(both, single + both.sum(axis=1)), corpus.labels, f"{first} and {second}", counts)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the matrix into a folder, as confusion.json: numbers are written so that they read back the same."""
        data = {
            "lasca": "confusion",
            "version": VERSION,
            "labels": list(self.labels),
            "source": self.source,
            "counts": dict(self.counts),
            "matrix": self.matrix.tolist(),
        }
        save_folder(path, data, overwrite=overwrite, indent=None)

    @classmethod
    def load(cls, path: str | Path) -> LabelConfusion:
        """Read a folder that `save` wrote."""
        with loading(path, "label confusion") as folder:
            data = read_header(folder, "confusion", (VERSION,))
            return cls(np.array(data["matrix"], float), tuple(data["labels"]), data["source"], data["counts"])


def label_confusion(
    corpus: CrowdCorpus, truth: Truth, ambiguity: Ambiguity, *, expected: bool | None = None
) -> LabelConfusion:
    """Find out how often each two labels compete in the ambiguous tokens.

    `expected` (default: where the method allows it, that is for two-truths) takes expected numbers of tokens instead
    of the candidates of the flagged ones.
    """
    if ambiguity.label_names != corpus.labels or len(ambiguity.score) != corpus.n_tokens:
        raise ModelError("this ambiguity was not found in this corpus", hint="Run find_ambiguity on the same corpus")
    if truth.label_names != corpus.labels or len(truth.labels) != corpus.n_tokens:
        raise ModelError("this truth was not inferred from this corpus", hint="Fit the model on the same corpus")
    if expected is None:
        expected = ambiguity.pair_count is not None and ambiguity.label_count is not None
    if expected:
        return expected_confusion(ambiguity, int(np.isfinite(ambiguity.score).sum()))
    both, labels = _counted(corpus, truth, ambiguity)
    counts = {
        "tokens": float(corpus.n_tokens),
        "with two labels": float((np.diff(ambiguity.candidate_start) > 1).sum()),
    }
    return LabelConfusion(_confusion(both, labels), corpus.labels, ambiguity.method, counts)


def expected_confusion(ambiguity: Ambiguity, n_ranked: int) -> LabelConfusion:
    """Make the confusion of labels from expected numbers of tokens; so many tokens could be ranked."""
    if ambiguity.pair_count is None or ambiguity.label_count is None:
        raise ParameterError("expected", True, f"False for {ambiguity.method}: only two-truths has expectations")
    both = ambiguity.pair_count * (1 - np.eye(len(ambiguity.label_names)))
    counts = {"tokens": float(n_ranked), "with two labels": float(both.sum() / 2)}
    matrix = _confusion(both, ambiguity.label_count)
    return LabelConfusion(matrix, ambiguity.label_names, ambiguity.method, counts)


def disagreement(corpus: CrowdCorpus, kind: str = "confusion", *, golds: tuple[str, str] | None = None) -> Floats:
    """Return how little two people agree, [label taken, right label]: 1 − γ of Plank, Hovy & Søgaard (EACL 2014).

    "confusion": the confusion probability of two labels, the mean of P(one says i | the other says j) and the converse.
    "f1": 1 − the F1 between the two on the right label, whatever it is taken for. The two people are two golds, or
    all pairs of annotators on the tokens they share, taken together. Labels nobody gave are never confused.
    """
    check_choice("kind", kind, tuple(DISAGREEMENTS.values()))
    if golds is None:
        pairs = _annotator_pairs(corpus)
    else:
        one, other = (corpus.golds[str(corpus.gold_name(name))] for name in golds)
        pairs = confusion_counts(one, other, corpus.n_labels).astype(np.float64)
    if not pairs.any():
        raise CorpusError("no token was labelled by two people: their agreement cannot be known")
    first, second = pairs.sum(axis=1), pairs.sum(axis=0)
    if kind == "f1":
        f1 = 2 * np.diag(pairs) / np.maximum(first + second, 1e-300)
        f1[first + second == 0] = 1.0
        return np.broadcast_to(1.0 - f1, pairs.shape).copy()
    given_second = pairs / np.maximum(second, 1e-300)  # P(the first says i | the second says j)
    given_first = pairs.T / np.maximum(first, 1e-300)  # P(the second says i | the first says j)
    found = (given_second + given_second.T + given_first + given_first.T) / 4
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)


def _annotator_pairs(corpus: CrowdCorpus) -> Floats:
    """Count (label of one, label of the other) over all ordered pairs of votes on a token: Σ n nᵀ − diag(n)."""
    votes, T = Votes.of(corpus), corpus.n_labels
    found = np.zeros((T, T))
    for at in range(0, votes.n_tokens, 50_000):
        block = votes.start[at : at + 50_001]
        counts = np.zeros((len(block) - 1, T))
        token = np.repeat(np.arange(len(block) - 1), np.diff(block))
        np.add.at(counts, (token, votes.label[block[0] : block[-1]]), 1.0)
        found += crossed(counts, counts) - np.diag(counts.sum(axis=0))
    return found


def _counted(corpus: CrowdCorpus, truth: Truth, ambiguity: Ambiguity) -> tuple[Any, Any]:
    T = corpus.n_labels
    held = np.zeros((len(ambiguity.tokens), T), np.float32)
    row = np.repeat(np.arange(len(held)), np.diff(ambiguity.candidate_start))
    held[row, ambiguity.candidate_label] = 1
    both = crossed(held, held) * (1 - np.eye(T))
    others = truth.labels[~ambiguity.mask]
    return both, held.sum(axis=0, dtype=np.float64) + np.bincount(others[others >= 0], minlength=T)


def _confusion(both: Array, labels: Array) -> Floats:
    p = both / np.maximum(labels, 1e-300)[:, None]  # of a label that nothing has, nothing competes
    matrix = np.minimum((p + p.T) / 2, 1.0)
    np.fill_diagonal(matrix, 0.0)
    return np.asarray(matrix)

"""What every truth model shares: the checks before, the arrays a kernel sees, and the result made of a posterior."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.special import betaincinv

from lasca.corpus import CrowdCorpus
from lasca.errors import ModelError
from lasca.estimator import Estimator
from lasca.truth.result import Clusters, Truth

__all__ = ["Posterior", "Progress", "TruthModel", "Votes"]

Progress = Callable[[float, str], None]
"""Called now and then with the share of the work that is done and a few words on it."""


@dataclass(frozen=True)
class Votes:
    """The annotations of those who vote (see `CrowdCorpus.votes`) as kernels see them, sorted by token."""

    start: npt.NDArray[np.int64]
    annotator: npt.NDArray[np.int32]
    label: npt.NDArray[np.int16]
    n_annotators: int
    n_labels: int
    offsets: npt.NDArray[np.int64]
    """The sequences: n_sequences + 1 borders, in tokens."""

    @property
    def n_tokens(self) -> int:
        """How many tokens there are."""
        return len(self.start) - 1

    @classmethod
    def of(cls, corpus: CrowdCorpus) -> Votes:
        """Take the votes out of a corpus; annotators keep their codes."""
        start, annotator, label = corpus.token_start, corpus.annotation_annotator, corpus.annotation_label
        counts = np.array(corpus.votes, dtype=bool)
        if not counts.all():
            stays = counts[annotator]
            start = np.concatenate(([0], np.cumsum(stays)))[start]
            annotator, label = annotator[stays], label[stays]
            for array in (start, annotator, label):  # as those of a corpus are: kernels are compiled for one kind only
                array.flags.writeable = False
        return cls(start, annotator, label, corpus.n_annotators, corpus.n_labels, corpus.offsets)


@dataclass(frozen=True)
class Posterior:
    """What a model's inference gives back; `TruthModel.fit` makes a Truth of it."""

    proba: npt.NDArray[Any]
    confusion: npt.NDArray[Any] | None = None
    """(n_annotators, n_labels, n_labels), or None: then it is counted from `proba`."""
    labels: npt.NDArray[Any] | None = None
    """The decoded labels, or None: then the most probable label of each token, the first one where they tie."""
    clusters: Clusters | None = None
    trace: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class TruthModel(Estimator, ABC):
    """A model that infers the true labels from the crowd's. Subclasses give `name` and `_infer`."""

    name: ClassVar[str]

    def fit(self, corpus: CrowdCorpus, *, progress: Progress | None = None) -> Truth:
        """Infer the true labels, their probabilities, and what each annotator is worth."""
        if corpus.n_tokens == 0:
            raise ModelError("the corpus has no tokens: there is nothing to infer")
        votes = Votes.of(corpus)
        if len(votes.label) == 0:
            raise ModelError("nobody labelled anything: there is nothing to infer", hint="Check the load report")
        posterior = self._infer(corpus, votes, progress or _silent)
        if posterior.labels is None and (votes.annotator == votes.annotator[0]).all():
            posterior = _as_said(votes, posterior)
        return _truth(self, corpus, votes, posterior)

    @abstractmethod
    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        """Check the parameters and run the inference."""


def _silent(share: float, words: str) -> None:
    pass


def _as_said(votes: Votes, posterior: Posterior) -> Posterior:
    """With one annotator nothing speaks against what they said: where they said something, it is the truth."""
    voted = np.flatnonzero(np.diff(votes.start))
    proba = np.array(posterior.proba)
    proba[voted] = 0
    proba[voted, votes.label] = 1
    return replace(posterior, proba=proba, confusion=None)


def _truth(model: TruthModel, corpus: CrowdCorpus, votes: Votes, posterior: Posterior) -> Truth:
    proba = np.ascontiguousarray(posterior.proba, dtype=np.float32)
    proba /= proba.sum(axis=1, keepdims=True)
    if not np.isfinite(proba).all():
        raise ModelError(
            f"{model.name} gave a probability that is not a number", hint="This is a bug; please report it"
        )
    labels = proba.argmax(axis=1) if posterior.labels is None else posterior.labels
    confusion = _counted_confusion(votes, proba) if posterior.confusion is None else posterior.confusion
    return Truth(
        model=model.name,
        params=model.get_params(),
        label_names=corpus.labels,
        offsets=corpus.offsets.copy(),
        sequence_ids=corpus.sequence_ids,
        labels=np.asarray(labels, dtype=np.int16),
        proba=proba,
        annotators=_annotator_table(corpus, proba, posterior.clusters),
        confusion=np.ascontiguousarray(confusion, dtype=np.float32),
        clusters=posterior.clusters,
        trace=np.asarray(posterior.trace, dtype=np.float64),
        diagnostics=posterior.diagnostics,
        warnings=posterior.warnings + _identifiability(votes),
    )


def _counted_confusion(votes: Votes, proba: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Count how often each annotator gave each label where each label is true, with a whiff of agreement added."""
    T = votes.n_labels
    counts = np.zeros((votes.n_annotators * T, T))
    token = np.repeat(np.arange(votes.n_tokens), np.diff(votes.start))
    cell = votes.annotator.astype(np.int64) * T + votes.label
    for t in range(T):
        counts[:, t] = np.bincount(cell, weights=proba[token, t], minlength=len(counts))
    confusion = counts.reshape(votes.n_annotators, T, T).transpose(0, 2, 1) + 0.01 / T + np.eye(T) * 0.01
    return np.asarray(confusion / confusion.sum(axis=2, keepdims=True))


def _annotator_table(corpus: CrowdCorpus, proba: npt.NDArray[np.float32], clusters: Clusters | None) -> Any:
    """Reliability = expected share of an annotator's labels that are true, with a 95 % interval (Jeffreys)."""
    n = np.bincount(corpus.annotation_annotator, minlength=corpus.n_annotators)
    agreed = proba[corpus.annotation_token, corpus.annotation_label]
    right = np.bincount(corpus.annotation_annotator, weights=agreed, minlength=corpus.n_annotators)
    wrong = np.maximum(n - right, 0)
    if clusters is None:
        cluster = pa.nulls(corpus.n_annotators, pa.int32())
    else:
        cluster = pa.array(clusters.assignment, pa.int32(), mask=clusters.assignment < 0)
    return pa.table(
        {
            "name": pa.array(corpus.annotators, pa.string()),
            "role": pa.array(corpus.roles, pa.string()),
            "n": n.astype(np.int64),
            "reliability": (right + 0.5) / (n + 1),
            "reliability_low": betaincinv(right + 0.5, wrong + 0.5, 0.025),
            "reliability_high": betaincinv(right + 0.5, wrong + 0.5, 0.975),
            "cluster": cluster,
        }
    )


def _identifiability(votes: Votes) -> tuple[str, ...]:
    per_token = np.diff(votes.start)
    if (per_token >= 2).any():
        return ()
    if len(np.unique(votes.annotator)) == 1:
        return ("there is one annotator only: the truth is what they said, and their reliability cannot be known",)
    return ("no token was labelled by two annotators: reliabilities are not identifiable, they only reflect the prior",)

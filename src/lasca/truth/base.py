"""What every truth model shares: the checks before, the arrays a kernel sees, and the result made of a posterior."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.special import betaincinv

from lasca.corpus import CrowdCorpus, KnownLabels, free_text, need_corpus
from lasca.corpus.votes import Votes
from lasca.engine import Engine, Threads, Work
from lasca.errors import ModelError
from lasca.estimator import Estimator
from lasca.truth.checks import check_truth
from lasca.truth.result import Clusters, Truth

__all__ = ["Posterior", "Progress", "TruthModel", "Votes", "annotator_table"]

Progress = Callable[[float, str], None]
"""Called now and then with the share of the work that is done and a few words on it."""


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
    statistics: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    """What the parameters were made of (expected counts): a later fit can go on from there (`history=`)."""


MAX_TABLES = 4 * 2**30  # bytes of a confusion matrix for every annotator; models keep a few of them
SUPPORTS = {
    "known": "known labels",
    "soft": "soft votes",
    "families": "families of annotators",
    "update": "history=: going on from an earlier truth",
}
"""What a model may be able to take, and how it is called in messages."""


class TruthModel(Estimator, ABC):
    """A model that infers the true labels from the crowd's. Subclasses give `name`, `summary` and `_infer`."""

    name: ClassVar[str]
    """The short name, as on the command line."""
    summary: ClassVar[str] = ""
    """What the model is, in one line."""
    supports: ClassVar[frozenset[str]] = frozenset()
    """What it can take beyond hard votes: some of "known", "soft", "families", "update" (see SUPPORTS)."""

    def fit(
        self,
        corpus: CrowdCorpus,
        *,
        known: npt.ArrayLike | KnownLabels | None = None,
        history: Truth | None = None,
        progress: Progress | None = None,
    ) -> Truth:
        """Infer the true labels, their probabilities, and what each annotator is worth.

        `known` are labels that are known beforehand, as `CrowdCorpus.with_known` takes them (they replace those of
        the corpus); `history` is an earlier truth of the same model to go on from: what it learned of annotators
        and labels, matched by name, counts as it was.
        """
        need_corpus(corpus, f"{self.name}.fit")
        corpus = corpus if known is None else corpus.with_known(known)
        if corpus.n_tokens == 0:
            raise ModelError("the corpus has no tokens: there is nothing to infer")
        votes = Votes.of(corpus)
        if votes.n_votes == 0:
            raise ModelError("nobody labelled anything: there is nothing to infer", hint="Check the load report")
        _check_size(corpus)
        self._check_support(votes, history)
        ignored = self._ignored(corpus)
        if history is None:
            posterior = self._infer(corpus, votes, progress or _silent)
        else:
            posterior = self._update(corpus, votes, history, progress or _silent)
        if posterior.labels is None and history is None:
            posterior = _as_said(votes, posterior)
        posterior = replace(_clamped(votes, posterior), warnings=posterior.warnings + ignored)
        return _truth(self, corpus, votes, posterior)

    @abstractmethod
    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        """Check the parameters and run the inference."""

    engine: Engine | None = None
    """What runs the visits of a learner; None: the threads of this process. Not a parameter: it changes no byte."""

    @contextmanager
    def _work(self, learner: Any, blocks: Sequence[Any]) -> Iterator[Work]:
        """Open work on blocks, for models that are learners."""
        engine = self.engine or Threads(getattr(self, "n_threads", None))
        work = engine.open(learner, blocks)
        try:
            yield work
        finally:
            work.close()

    def _update(self, corpus: CrowdCorpus, votes: Votes, history: Truth, progress: Progress) -> Posterior:
        """Run the inference from an earlier truth on; for models that support "update"."""
        raise NotImplementedError

    def _check_support(self, votes: Votes, history: Truth | None) -> None:
        """Refuse by name what this model cannot take."""
        given = {"known": votes.known, "soft": votes.soft, "update": history}
        for what, value in given.items():
            if value is not None and what not in self.supports:
                raise ModelError(f"{self.name} cannot take {SUPPORTS[what]}", hint=_without(what))
        if history is not None and history.model != self.name:
            raise ModelError(
                f"{self.name} cannot go on from a truth of another model", got=history.model, hint=_without("update")
            )

    def _ignored(self, corpus: CrowdCorpus) -> tuple[str, ...]:
        """Say what this model was given and does not look at."""
        if "families" in self.supports or all(family is None for family in corpus.families):
            return ()
        return (f"{self.name} does not know families of annotators: everybody counts as one voice",)


def _check_size(corpus: CrowdCorpus) -> None:
    """Refuse labels that are free text, and tables of labels by labels for every annotator that fit no memory."""
    said = free_text(corpus)
    if said is not None:
        raise ModelError(said, got=", ".join(corpus.labels[:4]), hint="Take what holds labels, or merge rare ones")
    size = 8 * max(corpus.n_annotators, 1) * corpus.n_labels**2
    if size > MAX_TABLES:
        raise ModelError(
            f"{corpus.n_labels:,} labels and {corpus.n_annotators:,} annotators need tables of {size / 2**30:.0f} GiB",
            hint=f"At most {MAX_TABLES // 2**30} GiB are possible: merge rare labels, or leave out annotators",
        )


def _silent(share: float, words: str) -> None:
    pass


def _without(what: str) -> str:
    """Say how to go on without what a model cannot take."""
    return {
        "known": "Take another model (lasca.truth.supporting('known')), or forget them: corpus.with_known(None)",
        "soft": "Take another model (lasca.truth.supporting('soft')), or leave out who gives them: corpus.with_voters",
        "update": "Fit without history=, or take another model (lasca.truth.supporting('update'))",
    }[what]


def _clamped(votes: Votes, posterior: Posterior) -> Posterior:
    """Make sure that what is known holds to the letter (models take it into account in their inference)."""
    if votes.known is None:
        return posterior
    token, allowed = votes.known.token, votes.known.allowed
    proba = np.array(posterior.proba)
    inside = np.where(allowed, proba[token], 0)
    lost = inside.sum(axis=1) <= 0  # all that is allowed underflowed
    inside[lost] = allowed[lost]
    proba[token] = inside / inside.sum(axis=1, keepdims=True)
    labels = posterior.labels
    if labels is not None:
        labels = np.array(labels)
        wrong = ~allowed[np.arange(len(token)), labels[token]]
        labels[token[wrong]] = proba[token[wrong]].argmax(axis=1)
    return replace(posterior, proba=proba, labels=labels)


def _as_said(votes: Votes, posterior: Posterior) -> Posterior:
    """With one annotator nothing speaks against what they said: where they said something, it is the truth."""
    if votes.soft is not None or votes.known is not None or (votes.annotator != votes.annotator[0]).any():
        return posterior
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
        warnings=posterior.warnings + check_truth(corpus, votes, np.asarray(labels)) + _identifiability(votes),
        voted=votes.voted,
        statistics=posterior.statistics,
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
    n = np.bincount(corpus.annotation_annotator, minlength=corpus.n_annotators)
    agreed = proba[corpus.annotation_token, corpus.annotation_label]
    right = np.bincount(corpus.annotation_annotator, weights=agreed, minlength=corpus.n_annotators)
    return annotator_table(corpus, n.astype(np.int64), right, clusters)


def annotator_table(
    corpus: CrowdCorpus, n: npt.NDArray[np.int64], right: npt.NDArray[Any], clusters: Clusters | None
) -> Any:
    """Reliability = expected share of an annotator's labels that are true, with a 95 % interval (Jeffreys)."""
    wrong = np.maximum(n - right, 0)
    if clusters is None:
        cluster = pa.nulls(corpus.n_annotators, pa.int32())
    else:
        cluster = pa.array(clusters.assignment, pa.int32(), mask=clusters.assignment < 0)
    return pa.table(
        {
            "name": pa.array(corpus.annotators, pa.string()),
            "role": pa.array(corpus.roles, pa.string()),
            "n": n,
            "reliability": (right + 0.5) / (n + 1),
            "reliability_low": betaincinv(right + 0.5, wrong + 0.5, 0.025),
            "reliability_high": betaincinv(right + 0.5, wrong + 0.5, 0.975),
            "cluster": cluster,
        }
    )


def _identifiability(votes: Votes) -> tuple[str, ...]:
    per_token = np.diff(votes.start)
    if (per_token >= 2).any() or votes.soft is not None or votes.known is not None:
        return ()
    if len(np.unique(votes.annotator)) == 1:
        return ("there is one annotator only: the truth is what they said, and their reliability cannot be known",)
    return ("no token was labelled by two annotators: reliabilities are not identifiable, they only reflect the prior",)

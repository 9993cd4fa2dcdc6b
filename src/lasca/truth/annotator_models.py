"""What an annotator does when t is true: accuracy, spamming, confusion vector, confusion matrix, matrix with memory.

The five annotator models of Simpson & Gurevych (2019), each as a table of rows for the E step of `sequence`: an
annotation points at the row of (annotator, label given s) – with memory of (annotator, label before, s) – which holds
E log p(s | t) for every true label t. The expected counts of these rows are all a model needs to learn.

    acc    right with probability a_l, else any other label alike; a_l ~ Beta(correct, wrong)
    cv     the same with one probability per true label; a_lt ~ Beta(correct, wrong)
    cm     a confusion matrix; Ψ^l_t ~ Dir(correct on t, wrong shared by the rest)
    spam   knows t with probability a_l, else draws a label from ξ^l; a_l ~ Beta(correct, wrong), ξ^l ~ Dir(wrong / T)
    seq    a confusion matrix for each label the annotator gave before; Ψ^l_{prev, t} as cm

With memory, the first token of a sequence, and one behind a token the annotator did not label, has a context of its
own (the original counts it as O). A label that the tag scheme does not allow behind the label before has `FORBIDDEN` as
pseudo-count: annotators can break the rules, but are not expected to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lasca.kernels.special import dirichlet_kl, expected_log
from lasca.schemes import detect, split_label, transitions
from lasca.truth.base import Votes
from lasca.truth.evidence import Floats, Rows, annotation_rows, context_borders, dirichlet_rows, memory

__all__ = ["ANNOTATOR_MODELS", "AnnotatorModel", "confusion_prior", "make_annotators"]

FORBIDDEN = 0.01
Labels = npt.NDArray[np.int64]


class AnnotatorModel(ABC):
    """A table of rows that learns from expected counts. Frozen: the tables live in the state of the model.

    `shows` says which label each state of the chain shows as: the label an annotator who is right gives.
    """

    def __init__(self, votes: Votes, shows: Labels, correct: float, wrong: float) -> None:
        self.n_annotators, self.n_labels, self.shows = votes.n_annotators, votes.n_labels, shows
        self.correct, self.wrong = correct, wrong
        self.rows = self._rows(votes)

    def _rows(self, votes: Votes) -> Rows:
        return annotation_rows(votes)

    @abstractmethod
    def update(self, counts: Floats, table: Floats | None = None) -> tuple[Floats, float]:
        """Return the table of E log p(given | true) after these expected counts, and KL(q || p).

        `table` is the one the counts were made with; None before the first E step.
        """

    def confusion(self, counts: Floats) -> Floats:
        """Return (annotator, true, given): the posterior mean confusion, whatever was given before."""
        T = self.n_labels
        annotator, _, given = self._parts()
        flat = np.zeros((self.n_annotators * T, T))
        for k, label in enumerate(self.shows):
            flat[:, label] += np.bincount(annotator * T + given, counts[:, k], self.n_annotators * T)
        sums = flat.reshape(self.n_annotators, T, T).transpose(0, 2, 1) + confusion_prior(T, self.correct, self.wrong)
        return np.asarray(sums / sums.sum(axis=2, keepdims=True))

    def _parts(self) -> tuple[Labels, Labels, Labels]:
        """Return the annotator, the label before and the label given of each row."""
        rest, given = np.divmod(self.rows.code, self.n_labels)
        annotator, before = np.divmod(rest, self._contexts())
        return annotator, before, given

    def _contexts(self) -> int:
        return 1

    def _dense(self, counts: Floats) -> Floats:
        """Return the rows as (annotator, given, state), 0 where there are none."""
        dense = np.zeros((self.n_annotators * self.n_labels, len(self.shows)))
        dense[self.rows.code] = counts
        return dense.reshape(self.n_annotators, self.n_labels, len(self.shows))

    def _sparse(self, dense: Floats) -> Floats:
        return np.ascontiguousarray(dense.reshape(-1, len(self.shows))[self.rows.code])

    def _right(self, dense: Floats) -> Floats:
        """Return the entries of right labels, (annotator, state)."""
        return dense[:, self.shows, np.arange(len(self.shows))]

    def _is_right(self) -> npt.NDArray[np.bool_]:
        """Return whether a label given (row) is right in a state (column)."""
        return np.asarray(np.arange(self.n_labels)[:, None] == self.shows[None, :])


def confusion_prior(n_labels: int, correct: float, wrong: float) -> Floats:
    """Return the pseudo-counts (true, given): `correct` on the diagonal, `wrong` shared by the rest of the row."""
    prior = np.full((n_labels, n_labels), wrong / max(n_labels - 1, 1))
    np.fill_diagonal(prior, correct)
    return prior


class Accuracy(AnnotatorModel):
    """One probability of being right per annotator."""

    def update(self, counts: Floats, table: Floats | None = None) -> tuple[Floats, float]:
        """Count right and wrong labels."""
        dense = self._dense(counts)
        right = self._right(dense).sum(axis=1, keepdims=True)
        return self._beta(right, dense.sum(axis=(1, 2))[:, None] - right)

    def _beta(self, right: Floats, wrong: Floats) -> tuple[Floats, float]:
        """Take counts as (annotator, state), or (annotator, 1) for all states alike."""
        alpha = np.stack([right + self.correct, np.maximum(wrong, 0) + self.wrong], axis=-1)
        log = expected_log(alpha)
        log[..., 1] -= np.log(max(self.n_labels - 1, 1))
        dense = np.where(self._is_right()[None], log[:, None, :, 0], log[:, None, :, 1])
        return self._sparse(dense), dirichlet_kl(alpha, [self.correct, self.wrong])


class ConfusionVector(Accuracy):
    """One probability of being right per annotator and true label."""

    def update(self, counts: Floats, table: Floats | None = None) -> tuple[Floats, float]:
        """Count right and wrong labels by true label."""
        dense = self._dense(counts)
        right = self._right(dense)
        return self._beta(right, dense.sum(axis=1) - right)


class Spam(AnnotatorModel):
    """MACE's annotator: knows the label, or draws one from an own distribution without looking."""

    def update(self, counts: Floats, table: Floats | None = None) -> tuple[Floats, float]:
        """Share the annotations that are right between knowing and luck, as the current table has it."""
        T, is_right = self.n_labels, self._is_right()
        if T == 1:  # nothing to know or to guess
            return np.zeros_like(counts), 0.0
        dense = self._dense(counts)
        knows = (dense * is_right).sum(axis=2) * (1 - self._luck(table))
        drawn = np.maximum(dense.sum(axis=2) - knows, 0)
        alpha = np.stack([knows.sum(axis=1) + self.correct, drawn.sum(axis=1) + self.wrong], axis=-1)
        strategy = drawn + self.wrong / T
        log = expected_log(alpha)
        guess = log[:, 1:] + expected_log(strategy)
        both = np.logaddexp(log[:, :1], guess)
        kl = dirichlet_kl(alpha, [self.correct, self.wrong]) + dirichlet_kl(strategy, np.full(T, self.wrong / T))
        return self._sparse(np.where(is_right[None], both[:, :, None], guess[:, :, None])), kl

    def _luck(self, table: Floats | None) -> Floats:
        """Return the probability that a right label was a guess, (annotator, label)."""
        T = self.n_labels
        if table is None:
            return np.full((self.n_annotators, T), self.wrong / (self.wrong + T * self.correct))
        dense, is_right, label = self._dense(table), self._is_right(), np.arange(T)
        right, wrong = is_right.argmax(axis=1), (~is_right).argmax(axis=1)  # a state in which it is right, one not
        return np.exp(dense[:, label, wrong] - dense[:, label, right])


class ConfusionMatrix(AnnotatorModel):
    """A confusion matrix per annotator."""

    def __init__(self, votes: Votes, shows: Labels, correct: float, wrong: float) -> None:
        super().__init__(votes, shows, correct, wrong)
        prior = confusion_prior(self.n_labels, correct, wrong)[shows]
        annotator, _, given = self._parts()
        self.prior = np.ascontiguousarray(prior.T[given])
        self.borders = context_borders(annotator)
        self.prior_total = np.broadcast_to(prior.sum(axis=1), (len(self.borders) - 1, len(shows)))

    def update(self, counts: Floats, table: Floats | None = None) -> tuple[Floats, float]:
        """Add the counts to the prior."""
        return dirichlet_rows(counts, self.prior, self.prior_total, self.borders)


class Sequential(ConfusionMatrix):
    """A confusion matrix per annotator and label the annotator gave before."""

    def __init__(self, votes: Votes, shows: Labels, correct: float, wrong: float, labels: Sequence[str]) -> None:
        AnnotatorModel.__init__(self, votes, shows, correct, wrong)
        base = confusion_prior(self.n_labels, correct, wrong)
        annotator, before, given = self._parts()
        pair, index = np.unique(before * self.n_labels + given, return_inverse=True)
        self.prior = memory_prior(base, labels, *np.divmod(pair, self.n_labels))[:, shows][index]
        self.borders = context_borders(annotator * self._contexts() + before)
        _, broken = scheme_rules(labels)
        total = base.sum(axis=1)[shows] + FORBIDDEN * broken.sum(axis=1)[:, None]
        self.prior_total = total[before[self.borders[:-1]]]

    def _rows(self, votes: Votes) -> Rows:
        return annotation_rows(votes, memory(votes))

    def _contexts(self) -> int:
        return self.n_labels + 1


def scheme_rules(labels: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return which label is given instead of one that breaks the scheme, and which labels do: both (before, given).

    The last row stands for no label before. Outside a span a new one of the same type is begun instead; inside one it
    goes on with its own type. Where there is no such label, -1.
    """
    T = len(labels)
    first, allowed, _ = transitions(labels)
    allowed = np.vstack([allowed, first])
    instead = np.full((T + 1, T), -1)
    if detect(labels) is None:
        return instead, ~allowed
    part = [split_label(label) for label in labels]
    for p, s in zip(*np.nonzero(~allowed)):
        type_ = part[s][1]
        inside = part[p][1] if p < T and part[p][0] in _OPEN else None
        for u in range(T):
            letter, own = part[u]
            if allowed[p, u] and letter and (own == type_ if inside is None else (letter, own) == (part[s][0], inside)):
                instead[p, s] = u
                break
    return instead, ~allowed


_OPEN = ("B", "I", "M")


def memory_prior(
    base: Floats, labels: Sequence[str], before: npt.NDArray[np.int64], given: npt.NDArray[np.int64]
) -> Floats:
    """Return the pseudo-counts of pairs (before, given) for every true label: those of `base`, within the scheme."""
    instead, broken = scheme_rules(labels)
    prior = base.T[given].copy()
    for k, (p, s) in enumerate(zip(before, given)):
        if broken[p, s]:
            prior[k] = FORBIDDEN
        for other in np.flatnonzero(instead[p] == s):
            prior[k] += base[:, other]
    return prior


ANNOTATOR_MODELS = ("acc", "spam", "cv", "cm", "seq")


def make_annotators(
    name: str, votes: Votes, shows: Labels, labels: Sequence[str], correct: float, wrong: float
) -> AnnotatorModel:
    """Return an annotator model by its name."""
    if name == "seq":
        return Sequential(votes, shows, correct, wrong, labels)
    models: dict[str, type[AnnotatorModel]] = {
        "acc": Accuracy,
        "spam": Spam,
        "cv": ConfusionVector,
        "cm": ConfusionMatrix,
    }
    return models[name](votes, shows, correct, wrong)

"""The guards of the robust average: who looked, who is believed, and how much may be marked.

- *Silence.* Somebody who marked nothing in a sequence has looked and found nothing, or has not looked: a mixture, with
  a rate per annotator. Silent votes count by the probability that they looked.
- *Unanimity.* Where three people or more agree, they are believed: "everybody missed it" is the cheapest explanation
  of anything, and a model that may use it drifts.
- *Rates.* How much is marked, in all and of each type, stays within what annotators support: the upper quartile of the
  ratio (marks of an annotator) / (expected marks on the same tokens) may not fall below `least_ratio`; a weight against
  the kind of mark holds it there. With two annotators it is the median, and 1: who of two misses much cannot be told.
  Each type is held by itself: a source that sees one type everywhere (a language model that takes every number for a
  name) is outvoted there, and not believed because it marks little of the others. Who marks another type on the tokens
  of one has seen something there, and counts as having marked it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lasca.corpus import CrowdCorpus
from lasca.kernels import rows as kernels
from lasca.schemes import OUTSIDE, detect, split_label
from lasca.truth.base import Votes
from lasca.truth.evidence import Floats, Rows, memory

__all__ = ["Crowd", "Rates", "Silence", "kinds_of_marks", "ruled_out"]

BELIEVED, KNOWN = 30.0, 250.0
"""By how many nats labels are ruled out: by unanimous people, and by what is known."""
UNANIMOUS = 3
"""How many who agree are believed."""
LOOKED = (0.5, 5.0)
"""Pseudo-counts of sequences in which an annotator did not look, and of all sequences."""
QUARTILE = 0.75


@dataclass(frozen=True)
class Crowd:
    """What all members see of a corpus."""

    corpus: CrowdCorpus
    votes: Votes
    weight: Floats
    """The weight of each vote."""
    words: Rows | None
    word_prior: float
    token: npt.NDArray[np.int64]
    """The token of each vote."""
    outside: int
    """The label O, -1 where there is none."""
    meet: float
    """The share of votes on tokens that have two at least."""
    marks: int
    """How many votes are for another label than O; 0 where there is no O."""
    marks_each: float
    """How many marks one annotator gives, in the mean over votes."""
    run_length: float
    """How many marks an annotator gives in a row, in the mean."""
    n_threads: int

    @classmethod
    def of(cls, corpus: CrowdCorpus, votes: Votes, weight: Floats, words: Rows | None, n_threads: int) -> Crowd:
        """Look at a corpus."""
        n = np.diff(votes.start)
        per_token = len(votes.label) / max(1, int((n > 0).sum()))
        outside = corpus.labels.index("O") if "O" in corpus.labels else -1
        marks, runs = _marks(votes, outside) if outside >= 0 else (0, 0)
        share = np.bincount(votes.annotator, weights=weight) / weight.sum()
        return cls(
            corpus,
            votes,
            weight,
            words,
            float(np.clip((per_token / 5.0) ** 2, 0.1, 1.0)),  # words are believed the more the fewer votes there are
            np.repeat(np.arange(votes.n_tokens), n),
            outside,
            float(n[n > 1].sum() / max(1, n.sum())),
            marks,
            marks * float((share**2).sum()),
            marks / max(1, runs),
            n_threads,
        )


def _marks(votes: Votes, outside: int) -> tuple[int, int]:
    """Count the votes for another label than O, and the runs they come in."""
    before, marked = memory(votes), votes.label != outside
    begins = marked & ((before == outside) | (before == votes.n_labels))
    return int(marked.sum()), int(begins.sum())


def ruled_out(crowd: Crowd) -> list[tuple[float, npt.NDArray[np.int64], npt.NDArray[np.bool_]]]:
    """Return what known labels and unanimous people rule out: nats, tokens, what is allowed there."""
    votes, found = crowd.votes, []
    voices = np.bincount(crowd.token, weights=crowd.weight, minlength=votes.n_tokens)  # a family is one voice
    many = np.flatnonzero(voices >= UNANIMOUS - 1e-6)
    if len(many):
        ends = np.stack((votes.start[:-1][many], votes.start[1:][many]), axis=1).ravel()
        label = np.append(votes.label, votes.label[-1:])  # an end may lie behind the last vote
        low, high = (f.reduceat(label, ends)[::2] for f in (np.minimum, np.maximum))
        agreed = low == high
        found.append((BELIEVED, many[agreed], np.arange(votes.n_labels) == low[agreed][:, None]))
    if votes.known is not None:
        found.append((KNOWN, votes.known.token, votes.known.allowed))
    return found


class Silence:
    """Whether an annotator who marked nothing in a sequence looked at it."""

    def __init__(self, crowd: Crowd) -> None:
        votes = crowd.votes
        self.crowd, self.rate = crowd, np.full(votes.n_annotators, 0.1)
        sequence = np.searchsorted(votes.offsets, crowd.token, side="right") - 1
        pair, unit = np.unique(sequence * votes.n_annotators + votes.annotator, return_inverse=True)
        self.unit = np.asarray(unit).reshape(-1)
        self.annotator = pair % votes.n_annotators
        self.silent = np.bincount(self.unit, weights=votes.label != crowd.outside, minlength=len(pair)) == 0

    def weights(self, rows: Rows, table: Floats, states: Floats) -> Floats:
        """Return the weight of each vote: the probability that it was given by somebody who looked."""
        votes, n = self.crowd.votes, self.crowd.votes.n_annotators
        fits = np.empty(len(votes.label))
        kernels.expected_votes(votes.start, rows.row, table, states, fits)
        looked = np.bincount(self.unit, weights=fits * self.crowd.weight, minlength=len(self.silent))
        rate = self.rate[self.annotator]
        odds = np.log(rate) - np.log1p(-rate) - looked
        asleep = np.where(self.silent, 1.0 / (1.0 + np.exp(np.clip(-odds, -50, 50))), 0.0)
        total = np.bincount(self.annotator, minlength=n)
        self.rate = (np.bincount(self.annotator, weights=asleep, minlength=n) + LOOKED[0]) / (total + LOOKED[1])
        return np.asarray((1.0 - asleep)[self.unit] * self.crowd.weight)


class Rates:
    """How much may be marked, in all and of each type, by what annotators mark on the same tokens."""

    def __init__(self, crowd: Crowd) -> None:
        votes = crowd.votes
        self.kinds = kinds_of_marks(crowd.corpus.labels)
        self.of_label = np.array(list(self.kinds.values()), dtype=np.float64).T
        shape = (votes.n_tokens, votes.n_annotators)
        self.said = sparse.csr_array((crowd.weight, votes.annotator, votes.start), shape).T
        self.given = np.asarray(self.said.sum(axis=1), dtype=np.float64)
        marks = np.flatnonzero(votes.label != crowd.outside)
        self.mark_token, self.mark_weight = crowd.token[marks], crowd.weight[marks]
        self.marked = sparse.csr_array((self.mark_weight, (votes.annotator[marks], self.mark_token)), shape[::-1])
        last = (self.of_label * np.arange(len(self.kinds))).max(axis=1).astype(np.int64)  # the type, if any
        self.mark_kind = last[votes.label[marks]]
        self.cell = votes.annotator[marks] * len(self.kinds) + self.mark_kind
        self.own = self._by_cell(self.mark_weight)
        self.own[:, 0] = self.own.sum(axis=1)
        share = self.given / self.given.sum()
        alone = float((share**2).sum())  # one over the number of annotators, if all do the same
        self.level, self.least_ratio = QUARTILE, 1.0 - 0.5 * float(np.sqrt(alone))  # the fewer, the less is known
        if alone > 0.4:  # of two people nobody can say who misses much: what they mark in the mean is the most
            self.level, self.least_ratio = 0.5, 1.0

    def _by_cell(self, of_marks: Floats) -> Floats:
        """Add up what belongs to marks by annotator and kind."""
        shape = (len(self.given), len(self.kinds))
        return np.bincount(self.cell, of_marks, shape[0] * shape[1]).astype(np.float64).reshape(shape)

    def ratios(self, labels: Floats) -> Floats:
        """Return of each kind the upper quartile (the median of two), over votes, of own marks per expected mark."""
        expected = labels @ self.of_label
        own = self.own
        if len(self.kinds) > 1:  # marks of other types on the tokens of one
            of_marks = np.asarray(self.marked @ expected)
            of_marks[:, 0] = 0.0
            own = own + of_marks - self._by_cell(self.mark_weight * expected[self.mark_token, self.mark_kind])
        ratio = (own + 1.0) / (np.asarray(self.said @ expected) + 1.0)
        return np.array([self._middle(kind) for kind in ratio.T])

    def _middle(self, ratio: Floats) -> float:
        order = np.argsort(ratio, kind="stable")
        order = order[self.given[order] > 0]
        share = self.given[order] / self.given.sum()
        return float(np.interp(self.level, np.cumsum(share) - share / 2, ratio[order]))

    def held(self, weight: Floats, labels: Floats) -> Floats:
        """Return the next weight against each kind: more while too much is marked, less as soon as there is room."""
        return np.maximum(0.0, weight + np.log(self.least_ratio / self.ratios(labels)))

    def bias(self, weight: Floats) -> Floats:
        """Return what the weights say of each label, in nats."""
        return np.asarray(-self.of_label @ weight)


def kinds_of_marks(labels: Sequence[str]) -> dict[str | None, npt.NDArray[np.bool_]]:
    """Return the labels of all marks (None) and those of each type, where there is more than one: PER of B-PER."""
    spans = detect(labels) is not None
    names = [None if label == OUTSIDE else split_label(label)[1] if spans else label for label in labels]
    types = dict.fromkeys(name for name in names if name is not None)
    kinds: dict[str | None, npt.NDArray[np.bool_]] = {None: np.array([name is not None for name in names])}
    if len(types) > 1:
        kinds |= {name: np.array([other == name for other in names]) for name in types}
    return kinds

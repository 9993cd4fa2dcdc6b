"""CrfMa: of those who labelled a sequence one is right, and the right labels follow a CRF on the text.

Model (Rodrigues, Pereira & Ribeiro 2014, "Sequence labeling with multiple annotators"): for sequence i one of its
annotators, z_i = r with probability π_r / Σ_j π_j (the sum over those who labelled i), gave the true labels, which are
drawn from a linear-chain CRF p(y | x, θ); what the others gave is drawn from a distribution p0 that knows nothing. The
true label of a token is r's with the probability that r is right.

EM to the posterior mode, objective
Σ_i ln Σ_r p(z_i = r) p(y_i^r | x_i, θ) / p0(y_i^r) − l2 ‖θ‖² + smoothing Σ_r (ln π_r − π_r), up to a constant:
- E step: q_ir ∝ π_r exp(score(y_i^r)) / p0(y_i^r): the CRF's normaliser is the same for all annotators of a sequence;
- M step: θ climbs by `crf_iter` iterations of L-BFGS on Σ_ir q_ir ln p(y_i^r | x_i, θ), started where it was. π by
  `reliability`: "share", a step that never lowers the objective (as for the Plackett–Luce model, Hunter 2004); or "f1",
  the paper's choice for entities: π_r is the F1 of r's labels (other than O) against the labels that are believed
  (their accuracy, where there is no scheme), to the `power`-th power (1: the paper). It is what people want of an
  annotator, but the objective need not climb with it: the loop stops where it no longer does.

Differences from the paper: not everybody labels everything, so π is normalised over those who labelled a sequence;
tokens an annotator left out are summed over; `share`, `smoothing`, and L-BFGS with warm starts. The CRF is trained on
the labels it weighs, as in the paper: it comes to like what most annotators do, and most leave entities out. Three
powers hold against that, and are 0, 1 and 1 in the paper: p0 is the product of the labels' shares to the power
`background` (0: uniform, it drops out), so that an entity is worth saying; what is compared is
(p(y_i^r) / p0(y_i^r)) to the power `temper` (the objective is then that of this power, divided by `temper`); and
`power`, above. They were chosen on the val folder of the MTurk corpus (docs/models/crf-ma.md).
Sequences nobody labelled take no part in EM and get the CRF's marginals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lasca import crf, schemes
from lasca.arrays import Bools, Codes, Floats, Ints, borders
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block
from lasca.crf.decode import log_partition, token_scores
from lasca.estimator import choice, number, other, seeds, threads, tolerance, whole
from lasca.kernels.label_paths import path_counts, path_scores
from lasca.learn import EmRun
from lasca.truth.base import Posterior
from lasca.truth.joint import JointLearner, JointModel, spoken, summed

__all__ = ["CrfMa"]


@dataclass(frozen=True)
class CrfMaState:
    """The weights of the CRF and what the annotators are worth."""

    theta: Floats
    pi: Floats
    rarity: Floats
    """Minus the log of each label's share of the votes."""


@dataclass(frozen=True)
class GivenPaths:
    """What each annotator gave each sequence, and the features of these sequences."""

    features: crf.Features
    start: Ints
    sequence: Ints
    annotator: Ints
    label: Codes
    """Labels of all paths one after the other, −1 in gaps; path p has start[p] to start[p + 1]."""
    token: Ints
    """The token of each label."""
    n_labels: int

    @classmethod
    def of(cls, block: Block) -> GivenPaths:
        """Take a block that stands alone, and all of whose sequences have votes."""
        votes = block.votes
        token = block.token
        place = np.searchsorted(votes.offsets, token, side="right") - 1
        key, path = np.unique(place * votes.n_annotators + votes.annotator, return_inverse=True)
        sequence, annotator = key // votes.n_annotators, key % votes.n_annotators
        lengths = np.diff(votes.offsets)[sequence]
        start = borders(lengths)
        shift = votes.offsets[sequence] - start[:-1]
        label = np.full(int(start[-1]), -1, np.int16)
        label[token - shift[path]] = votes.label
        at = np.arange(len(label)) + np.repeat(shift, lengths)
        return cls(block.beside, start, sequence, annotator, label, at, votes.n_labels)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays of the kernels."""
        return self.start, self.sequence, self.label, self.features.offsets

    def per_sequence(self, values: Floats) -> Floats:
        """Sum values of paths over the paths of each sequence."""
        return summed(self.sequence, values, self.features.n_sequences)

    def allowed(self) -> Bools:
        """Return which labels each token was given; all where nobody gave one."""
        given = self.label >= 0
        found = np.zeros((self.features.n_tokens, self.n_labels), np.bool_)
        found[self.token[given], self.label[given]] = True
        found[~found.any(axis=1)] = True
        return found


@dataclass(frozen=True)
class CrfMaLearner(JointLearner):
    """The EM steps."""

    smoothing: float
    temper: float
    background: float
    power: float
    entity: Bools | None
    """The labels that F1 is about (reliability "f1"); None for "share"."""

    def summarise(self, block: Block) -> tuple[Any, ...]:
        """Return how often each label was given."""
        return (np.bincount(block.votes.label[block.hard], minlength=self.n_labels),)

    def start(self, summary: tuple[Any, ...], rng: np.random.Generator | None) -> CrfMaState:
        """Trust everybody alike, or at random."""
        (given,), n = summary, self.n_annotators
        pi = np.ones(n) if rng is None else rng.uniform(0.2, 1.8, n)
        return CrfMaState(np.zeros(self.size), pi, np.log(given.sum() / np.maximum(given, 1)))

    def view(self, block: Block) -> GivenPaths:
        """Return the paths of the sequences that have any."""
        return GivenPaths.of(spoken(block)[0])

    def expect(self, state: CrfMaState, view: GivenPaths) -> tuple[tuple[Any, ...], Floats, Floats]:
        """Return Σ ln Σ_r p(z_i = r) (p / p0)^temper and what the annotators' worth is made of; what is believed."""
        weights, n = self.weights(state), self.n_annotators
        scores, moves = token_scores(view.features, weights), np.zeros((self.n_labels, self.n_labels))
        proba, nobody = np.zeros(scores.shape), np.zeros(n)
        if not len(proba):
            return (0.0, nobody, nobody.copy()), proba, moves
        q, value = self.chosen(state, view, scores)
        path_counts(*view.arrays, scores, weights.transitions, q, proba, moves)
        if self.entity is None:
            chance = 1.0 / view.per_sequence(state.pi[view.annotator])[view.sequence]
            worth = summed(view.annotator, q, n), summed(view.annotator, chance, n)
        else:
            worth = f1_counts(view, proba, self.entity, n)
        return (value, *worth), proba, moves

    def chosen(self, state: CrfMaState, view: GivenPaths, scores: Floats) -> tuple[Floats, float]:
        """Return the probability of each path to be the right one of its sequence, and the log evidence."""
        weights, own = self.weights(state), np.empty(len(view.sequence))
        path_scores(*view.arrays, scores, weights.transitions, own)
        rarity = np.append(state.rarity, 0.0)[view.label]  # a gap is -1, the last one
        own = self.temper * (own + self.background * np.add.reduceat(rarity, view.start[:-1]))
        top = np.full(view.features.n_sequences, -np.inf)
        np.maximum.at(top, view.sequence, own)
        worth = state.pi[view.annotator]
        q = worth * np.exp(own - top[view.sequence])
        total = view.per_sequence(q)
        value = float((top + np.log(total)).sum()) - float(np.log(view.per_sequence(worth)).sum())
        value -= self.temper * float(log_partition(view.features, weights).sum())
        return q / total[view.sequence], value

    def update(self, state: CrfMaState, statistics: tuple[Any, ...]) -> tuple[CrfMaState, float]:
        """Return what the annotators are worth next."""
        value, right, of = statistics
        value += self.smoothing * float((np.log(state.pi) - state.pi).sum())
        if self.entity is None:
            pi = (right + self.smoothing) / (of + self.smoothing)
        else:
            pi = ((2 * right + 1) / (of + 2)) ** self.power
        return replace(state, pi=pi), value / self.temper

    def describe(self, state: CrfMaState, block: Block, local: Any, out: Any) -> tuple[None, tuple[Any, ...]]:
        """Write what is believed of the tokens; of sequences nobody labelled it is what the CRF says."""
        own, tokens = spoken(block)
        if len(own) < len(block):
            crf.marginals(block.beside, self.weights(state), out=out)
        out[tokens] = self.expect(state, self.seen(block, local))[1]
        return None, ()


def f1_counts(view: GivenPaths, proba: Floats, entity: Bools, n: int) -> tuple[Floats, Floats]:
    """Return of each annotator how many entity labels are right, and how many were given or are believed there.

    F1 is twice the first over the second, on the tokens an annotator labelled. With every label an entity label that is
    the expected share of right ones. Half a right label in one is added later, so that nobody is worth nothing.
    """
    given = view.label >= 0
    counted = given & entity[view.label]
    right = np.where(counted, proba[view.token, view.label], 0.0)
    there = np.where(given, proba[:, entity].sum(axis=1)[view.token], 0.0)
    who = np.repeat(view.annotator, np.diff(view.start))
    return summed(who, right, n), summed(who, counted + there, n)


class CrfMa(JointModel):
    """One annotator of each sequence is right, and the right labels follow a CRF on the text; by EM."""

    name = "crf-ma"
    summary = "Rodrigues et al. 2014: one annotator of a sequence is right, and right labels follow a CRF on the text"
    supports = frozenset({"engine", "shards"})

    templates: str = other(
        "features of the text; 'auto': 'ner' for a tag scheme, else 'pos'",
        "'auto' or the name of a set of templates, see `lasca.crf`",
        default="auto",
    )
    l2: float = number("penalty of the CRF", default=0.5, low=0, open_low=True)
    crf_iter: int = whole("iterations of its optimiser per EM step", default=8, low=1)
    reliability: str = choice(
        "how often an annotator is the right one, or their F1 against the labels that are believed (the paper's)",
        ("share", "f1"),
        default="f1",
    )
    power: float = number("the power of that F1 (the paper: 1)", default=4.0, low=0)
    smoothing: float = number(
        "what the prior adds to being right, and to the chances of it", default=1.0, low=0, open_low=True
    )
    temper: float = number(
        "the power of the CRF's likelihood in choosing the right one (the paper: 1)",
        default=0.5,
        low=0,
        high=1,
        open_low=True,
    )
    background: float = number(
        "the power of the labels' shares, by which it is divided (the paper: 0)", default=0.3, low=0
    )
    restarts: int = whole("starts: the first trusts everybody alike, the others at random", default=1, low=1)
    max_iter: int = whole("iterations of a run at most", default=10, low=1)
    tol: float = tolerance(default=1e-4)
    seed: int | np.random.Generator = seeds(default=0)
    n_threads: int | None = threads(default=None)

    _way = "counts"

    def _learner(self, corpus: CrowdCorpus) -> CrfMaLearner:
        entity = None
        if self.reliability == "f1":
            scheme = schemes.detect(corpus.labels)
            entity = np.array([scheme is None or name != "O" for name in corpus.labels])
        rest = self.smoothing, self.temper, self.background, self.power, entity
        return CrfMaLearner(corpus.n_annotators, corpus.n_labels, self.l2, self.crf_iter, *rest)

    def _described(self, run: EmRun[Any], posterior: Posterior) -> Posterior:
        return replace(posterior, diagnostics={**posterior.diagnostics, "pi": run.state.pi.tolist()})

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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca import crf, schemes
from lasca.arrays import ranges
from lasca.corpus import CrowdCorpus
from lasca.crf.decode import log_partition
from lasca.engine import available_threads
from lasca.estimator import choice, number, other, seeds, threads, whole
from lasca.kernels.label_paths import path_counts, path_scores
from lasca.kernels.vectors import dot
from lasca.learn.em import loop_settings, run_em
from lasca.truth.base import Posterior, Progress, TruthModel, Votes
from lasca.truth.sembler import add_scores, expected_loss

__all__ = ["CrfMa"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class State:
    """The weights of the CRF and what the annotators are worth."""

    theta: Floats
    pi: Floats


@dataclass(frozen=True)
class Paths:
    """What each annotator gave each sequence, and the features of these sequences."""

    features: crf.Features
    start: Ints
    sequence: Ints
    annotator: Ints
    label: npt.NDArray[np.int16]
    """Labels of all paths one after the other, −1 in gaps; path p has start[p] to start[p + 1]."""
    rarity: Floats
    """Minus the log of the product of the labels' shares, of each path."""
    n_labels: int
    n_annotators: int
    n_threads: int

    @classmethod
    def of(cls, features: crf.Features, votes: Votes, sequences: Ints, n_threads: int) -> Paths:
        """Take some sequences; every vote must lie in one of them."""
        token = np.repeat(np.arange(votes.n_tokens), np.diff(votes.start))
        place = np.searchsorted(votes.offsets, token, side="right") - 1
        key, path = np.unique(place * votes.n_annotators + votes.annotator, return_inverse=True)
        sequence, annotator = key // votes.n_annotators, key % votes.n_annotators
        start = np.concatenate(([0], np.cumsum(np.diff(votes.offsets)[sequence])))
        label = np.full(int(start[-1]), -1, np.int16)
        label[start[path] + token - votes.offsets[place]] = votes.label
        tokens = ranges(votes.offsets[sequences], votes.offsets[sequences + 1])
        if len(tokens) < votes.n_tokens:
            offsets = np.concatenate(([0], np.cumsum(np.diff(votes.offsets)[sequences])))
            features = crf.Features(
                offsets, features.slots[tokens], features.bundle_start, features.bundle_feature, features.n_features
            )
        new = np.searchsorted(sequences, sequence)
        rare = np.log(len(votes.label) / np.maximum(np.bincount(votes.label, minlength=votes.n_labels), 1))
        rarity = np.asarray(np.bincount(path, weights=rare[votes.label], minlength=len(key)), np.float64)
        return cls(features, start, new, annotator, label, rarity, votes.n_labels, votes.n_annotators, n_threads)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays of the kernels."""
        return self.start, self.sequence, self.label, self.features.offsets

    def per_sequence(self, values: Floats) -> Floats:
        """Sum values of paths over the paths of each sequence."""
        return np.asarray(np.bincount(self.sequence, weights=values, minlength=self.features.n_sequences), np.float64)

    def scores(self, weights: crf.Weights) -> Floats:
        """Return the CRF's score of each label at each token."""
        found = np.zeros((self.features.n_tokens, self.n_labels))
        add_scores(self.features, weights, self.n_threads, found)
        return found

    def allowed(self) -> npt.NDArray[np.bool_]:
        """Return which labels each token was given; all where nobody gave one."""
        token = np.repeat(self.features.offsets[self.sequence] - self.start[:-1], np.diff(self.start))
        token += np.arange(len(self.label))
        given = self.label >= 0
        found = np.zeros((self.features.n_tokens, self.n_labels), np.bool_)
        found[token[given], self.label[given]] = True
        found[~found.any(axis=1)] = True
        return found


class Learner:
    """The EM steps."""

    def __init__(
        self, paths: Paths, *, l2: float, crf_iter: int, smoothing: float, temper: float, background: float
    ) -> None:
        self.paths, self.l2, self.crf_iter, self.smoothing, self.temper = paths, l2, crf_iter, smoothing, temper
        self.rarity = background * paths.rarity
        self.space = crf.ParameterSpace.observed(paths.features, paths.allowed(), paths.n_labels)
        self.weighted: Callable[[Floats], Floats] | None = None
        """What an annotator is worth by the labels that are believed (reliability "f1"); None for "share"."""

    def posterior(self, state: State) -> tuple[Floats, Floats, Floats, float]:
        """Return q per path, the marginals and expected moves, and the sum of ln Σ_r p(z_i = r) (p / p0)^temper."""
        paths, weights = self.paths, crf.Weights(self.space, state.theta)
        scores = paths.scores(weights)
        own = np.empty(len(paths.sequence))
        path_scores(*paths.arrays, scores, weights.transitions, own)
        own = self.temper * (own + self.rarity)
        top = np.full(paths.features.n_sequences, -np.inf)
        np.maximum.at(top, paths.sequence, own)
        worth = state.pi[paths.annotator]
        q = worth * np.exp(own - top[paths.sequence])
        total, everybody = paths.per_sequence(q), paths.per_sequence(worth)
        q /= total[paths.sequence]
        partition = log_partition(paths.features, weights, threads=paths.n_threads)
        used = total > 0
        value = float((top + np.log(total, where=used, out=np.zeros_like(total)))[used].sum())
        value -= float(np.log(everybody[used]).sum()) + self.temper * float(partition[used].sum())
        proba, moves = np.zeros(scores.shape), np.zeros((paths.n_labels, paths.n_labels))
        path_counts(*paths.arrays, scores, weights.transitions, q, proba, moves)
        return q, proba, moves, value

    def step(self, state: State) -> tuple[State, float]:
        """Return the next state and the objective of this one."""
        q, proba, moves, value = self.posterior(state)
        seen = state.pi > 0
        value += self.smoothing * float((np.log(state.pi[seen]) - state.pi[seen]).sum())
        objective = value / self.temper - self.l2 * float(dot(state.theta, state.theta))
        loss = expected_loss(self.paths.features, self.space, proba, moves, self.l2, self.paths.n_threads)
        climbed = crf.minimise(loss, state.theta, max_iter=self.crf_iter)
        pi = self.share(q, state.pi) if self.weighted is None else self.weighted(proba)
        return State(np.asarray(climbed.vector), pi), objective

    def share(self, q: Floats, pi: Floats) -> Floats:
        """Return the next π: how often each annotator is right, over how often they could have been."""
        paths, n = self.paths, self.paths.n_annotators
        chance = 1.0 / paths.per_sequence(pi[paths.annotator])[paths.sequence]
        right = np.bincount(paths.annotator, weights=q, minlength=n)
        could = np.bincount(paths.annotator, weights=chance, minlength=n)
        return np.asarray((right + self.smoothing) / (could + self.smoothing))


def f1_of_annotators(
    votes: Votes, tokens: Ints, entity: npt.NDArray[np.bool_], power: float = 1.0
) -> Callable[[Floats], Floats]:
    """Return a function from the marginals of some tokens to a power of each annotator's F1 on the entity labels.

    Of the labels an annotator gave and those that are believed on the tokens they labelled; with every label an entity
    label that is the expected share of right ones. Half a right label in one is added, so that nobody is worth nothing.
    """
    place = np.full(votes.n_tokens, -1)
    place[tokens] = np.arange(len(tokens))
    token = place[np.repeat(np.arange(votes.n_tokens), np.diff(votes.start))]
    counted = entity[votes.label]
    given = np.bincount(votes.annotator[counted], minlength=votes.n_annotators)

    def worth(proba: Floats) -> Floats:
        agreed = np.where(counted, proba[token, votes.label], 0.0)
        right = np.bincount(votes.annotator, weights=agreed, minlength=votes.n_annotators)
        there = proba[:, entity].sum(axis=1)[token]
        believed = np.bincount(votes.annotator, weights=there, minlength=votes.n_annotators)
        return np.asarray(((2 * right + 1) / (given + believed + 2)) ** power)

    return worth


class CrfMa(TruthModel):
    """One annotator of each sequence is right, and the right labels follow a CRF on the text; by EM."""

    name = "crf-ma"
    summary = "Rodrigues et al. 2014: one annotator of a sequence is right, and right labels follow a CRF on the text"

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
    tol: float = number(
        "a run stops when the objective rises by less than this per annotation; 0: never", default=1e-4, low=0
    )
    seed: int | np.random.Generator = seeds(default=0)
    n_threads: int | None = threads(default=None)

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        settings: dict[str, Any] = {
            "l2": self.l2,
            "crf_iter": self.crf_iter,
            "smoothing": self.smoothing,
            "temper": self.temper,
            "background": self.background,
        }
        n_threads, loop = available_threads(self.n_threads), loop_settings(self)
        if votes.n_labels == 1:  # there is nothing to be wrong about
            return Posterior(np.ones((votes.n_tokens, 1), dtype=np.float32))
        scheme = schemes.detect(corpus.labels)
        templates = self.templates if self.templates != "auto" else "pos" if scheme is None else "ner"
        features = crf.Extractor(templates=templates).fit(corpus.tokens, corpus.offsets)
        labelled = np.flatnonzero(np.diff(votes.start[votes.offsets]) > 0)
        paths = Paths.of(features, votes, labelled, n_threads)
        learner = Learner(paths, **settings)
        tokens = ranges(votes.offsets[labelled], votes.offsets[labelled + 1])
        if self.reliability == "f1":
            entity = np.array([scheme is None or name != "O" for name in corpus.labels])
            learner.weighted = f1_of_annotators(votes, tokens, entity, self.power)

        def initial(rng: np.random.Generator) -> State:
            return State(np.zeros(learner.space.size), rng.uniform(0.2, 1.8, votes.n_annotators))

        first = State(np.zeros(learner.space.size), np.ones(votes.n_annotators))
        run = run_em(initial, learner.step, first=first, **loop, scale=len(votes.label), progress=progress)
        _, own, _, _ = learner.posterior(run.state)
        proba = np.zeros((votes.n_tokens, votes.n_labels), dtype=np.float32)
        if len(labelled) < corpus.n_sequences:
            rest = np.setdiff1d(np.arange(corpus.n_sequences), labelled)
            weights = crf.Weights(learner.space, run.state.theta)
            proba = crf.marginals(features, weights, sequences=rest, threads=n_threads)
        proba[tokens] = own
        diagnostics = run.diagnostics() | {"pi": run.state.pi.tolist(), "n_features": learner.space.n_features}
        return Posterior(proba, trace=run.trace, diagnostics=diagnostics)

"""Sembler against enumeration of all label paths."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import naive
from lasca import crf
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import cut_into_blocks
from lasca.engine import Threads, added
from lasca.errors import LascaError, ParameterError
from lasca.truth.base import Votes
from lasca.truth.joint import JointLearner, _seen, independent_moves
from lasca.truth.sembler import Sembler, SemblerLearner, SemblerState
from truth_cases import crowd, triples

L2, SMOOTHING = 0.3, 0.7


def small(seed: int, accuracy: float | None = None) -> CrowdCorpus:
    """Sequences of two to four tokens, some of them without any label."""
    corpus = crowd(n_sequences=6, n_annotators=3, seed=seed, coverage=0.7, accuracy=accuracy)
    words = [corpus.sequence(s)[:4] for s in range(6)]
    rows: dict[str, list[list[str | None]]] = {}
    for a, name in enumerate(corpus.annotators):
        flat = np.full(corpus.n_tokens, -1)
        mine = corpus.annotation_annotator == a
        flat[corpus.annotation_token[mine]] = corpus.annotation_label[mine]
        rows[name] = [row[:4] for row in corpus.label_names(flat)]
        rows[name][0] = [None] * len(words[0])
        rows[name][1][0] = None
    return CrowdCorpus.from_sequences(words, rows, labels=corpus.labels)


def feature_ids(features: crf.Features) -> list[list[int]]:
    start, feature = features.bundle_start, features.bundle_feature
    return [[int(f) for b in row for f in feature[start[b] : start[b + 1]]] for row in features.slots]


@dataclass(frozen=True)
class Trial:
    """A learner at work on blocks of a few tokens each; in the first one nobody labelled anything."""

    learner: Any
    work: Any

    @classmethod
    def of(cls, learner: JointLearner, corpus: CrowdCorpus) -> Trial:
        features = crf.Extractor(templates="word[-1..1] bias").fit(corpus.tokens, corpus.offsets)
        cut = cut_into_blocks(Votes.of(corpus), 4, by_tokens=True)
        blocks = [replace(b, beside=features.only(slice(b.first, b.last), b.offsets)) for b in cut]
        assert len(blocks) > 3
        assert not blocks[0].voted.any()
        ready = replace(learner, space=crf.ParameterSpace.of_seen(*added(_seen(learner, block) for block in blocks)))
        return cls(ready, Threads(1).open(ready, blocks))

    @property
    def views(self) -> list[Any]:
        return [self.learner.view(block) for block in self.work.blocks]

    @property
    def ids(self) -> list[list[int]]:
        return [row for view in self.views for row in feature_ids(view.features)]

    @property
    def offsets(self) -> np.ndarray:
        return np.concatenate(([0], np.cumsum(np.concatenate([np.diff(view.features.offsets) for view in self.views]))))

    def step(self, state: Any) -> tuple[Any, float]:
        following: tuple[Any, float] = self.learner.step(state, self.work)
        return following

    def expect(self, state: Any) -> tuple[tuple[Any, ...], np.ndarray, np.ndarray]:
        found = [self.learner.expect(state, view) for view in self.views]
        statistics = added(part for part, _, _ in found)
        return statistics, np.concatenate([proba for _, proba, _ in found]), sum(moves for _, _, moves in found)

    def weights(self, theta: np.ndarray) -> crf.Weights:
        return crf.Weights(self.learner.space, theta)


def trial_of(corpus: CrowdCorpus, crf_iter: int = 5) -> Trial:
    return Trial.of(SemblerLearner(3, 3, L2, crf_iter, SMOOTHING), corpus)


def random_state(trial: Trial, seed: int) -> SemblerState:
    rng = np.random.default_rng(seed)
    return SemblerState(0.5 * rng.standard_normal(trial.learner.size), rng.uniform(0.3, 0.95, 3))


def by_enumeration(corpus: CrowdCorpus, trial: Trial, state: SemblerState) -> tuple[np.ndarray, np.ndarray, float]:
    """Return marginals and expected moves of the labelled sequences, and the objective."""
    labelled, weights = corpus.select(sequences=corpus.annotated_sequences), trial.weights(state.theta)
    proba, moves, value = naive.sembler(
        triples(labelled), trial.offsets.tolist(), trial.ids, weights.state(), weights.transitions, state.rho
    )
    value -= L2 * float(state.theta @ state.theta)
    value += SMOOTHING * float(np.log(state.rho * (1 - state.rho)).sum())
    return proba, moves, value


@pytest.mark.parametrize("seed", range(4))
def test_objective_and_posterior_equal_enumeration(seed: int) -> None:
    corpus = small(seed)
    trial = trial_of(corpus)
    state = random_state(trial, seed)
    proba, moves, value = by_enumeration(corpus, trial, state)
    _, objective = trial.step(state)
    assert objective == pytest.approx(value, rel=1e-10)
    _, found, found_moves = trial.expect(state)
    np.testing.assert_allclose(found, proba, atol=1e-10)
    np.testing.assert_allclose(found_moves, moves, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_m_step_climbs_the_expected_log_likelihood(seed: int) -> None:
    """Its value and slope, at other weights than the posterior's, against enumeration and finite differences."""
    corpus = small(seed, accuracy=0.3)
    trial = trial_of(corpus)
    moves_only, space = np.zeros(trial.learner.size), trial.learner.space
    where = space.move[space.move >= 0]
    moves_only[where] = 2 * np.random.default_rng(seed).standard_normal(len(where))
    state = SemblerState(moves_only, np.full(3, 1 / 3))  # votes say nothing but which labels are possible
    correction, *_ = trial.work.sum(state)
    proba, moves, _ = by_enumeration(corpus, trial, state)
    assert np.abs(correction).max() > 0.01  # the posterior has a memory, or this test says nothing
    loss, at = trial.learner.loss(correction, trial.work), random_state(trial, seed + 100).theta
    ids, bounds = trial.ids, trial.offsets.tolist()

    def expected(vector: np.ndarray) -> float:
        weights = trial.weights(vector)
        features, trans = weights.state(), weights.transitions
        value = L2 * float(vector @ vector) - float((moves * trans).sum())
        value -= sum(float(proba[i] @ features[ids[i]].sum(axis=0)) for i in range(len(ids)))
        return value + sum(
            np.logaddexp.reduce([naive.crf_score(features, trans, ids[a:b], z) for z in naive.crf_paths(3, b - a)])
            for a, b in itertools.pairwise(bounds)
        )

    gradient = np.zeros_like(at)
    assert loss(at, gradient) == pytest.approx(expected(at), rel=1e-6)
    for k in [*where, 0, 5, 11]:
        e = 1e-4 * np.eye(len(at))[k]
        assert gradient[k] == pytest.approx((expected(at + e) - expected(at - e)) / 2e-4, abs=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_every_step_rises_from_any_state(seed: int) -> None:
    corpus = small(seed)
    trial = trial_of(corpus, crf_iter=2)
    state = random_state(trial, seed)
    before = by_enumeration(corpus, trial, state)[2]
    for _ in range(4):
        state, _ = trial.step(state)
        after = by_enumeration(corpus, trial, state)[2]
        assert after >= before - 1e-6
        before = after


def test_where_it_ends_no_parameter_can_be_improved() -> None:
    """At convergence the gradient of the objective vanishes, weights of moves included (finite differences)."""
    corpus = small(1)
    trial = trial_of(corpus, crf_iter=30)
    state = SemblerState(np.zeros(trial.learner.size), np.full(3, 0.8))
    for _ in range(150):
        state, _ = trial.step(state)
    step, move, size = 1e-4, trial.learner.space.move, trial.learner.size
    for k in [*move[move >= 0], *range(0, size, 7)]:
        e = step * np.eye(size)[k]
        high, low = (by_enumeration(corpus, trial, SemblerState(state.theta + s * e, state.rho))[2] for s in (1, -1))
        assert abs(high - low) / (2 * step) < 5e-3
    for a in range(3):
        e = step * np.eye(3)[a]
        high, low = (by_enumeration(corpus, trial, SemblerState(state.theta, state.rho + s * e))[2] for s in (1, -1))
        assert abs(high - low) / (2 * step) < 5e-3


def test_moves_of_independent_tokens_stay_inside_sequences() -> None:
    proba = np.random.default_rng(0).dirichlet(np.ones(3), size=7).astype(np.float32)
    offsets = np.array([0, 0, 3, 3, 4, 7, 7])
    expected = sum(np.outer(proba[i], proba[i + 1]) for i in (0, 1, 4, 5))
    np.testing.assert_allclose(independent_moves(proba, offsets), expected, rtol=1e-5)


def test_only_labels_that_somebody_gave_are_possible() -> None:
    corpus = small(2)
    truth = Sembler(templates="word").fit(corpus)
    for i in range(corpus.n_tokens):
        given = set(corpus.annotation_label[corpus.token_start[i] : corpus.token_start[i + 1]].tolist())
        if given:
            assert truth.labels[i] in given
            assert truth.proba[i, sorted(set(range(3)) - given)].sum() == 0


def test_the_text_decides_where_votes_are_split() -> None:
    """`x1` is always B-X where people agree; where two disagree about it, the word tips the scale."""
    clear = [["x1", "o1", "o2"], ["o1", "x1", "o2"]] * 10
    words = [*clear, ["o2", "x1"], ["x1", "o2"]]
    agree = [["B-X", "O", "O"], ["O", "B-X", "O"]] * 10
    rows = {"ann": [*agree, ["O", "B-X"], ["O", "O"]], "bob": [*agree, ["O", "O"], ["B-X", "O"]]}
    truth = Sembler(templates="word[0] bias").fit(CrowdCorpus.from_sequences(words, rows))
    assert truth.sequences()[-2:] == [["O", "B-X"], ["B-X", "O"]]


def test_sequences_nobody_labelled_are_tagged_by_the_crf() -> None:
    corpus = crowd(n_sequences=80, unlabelled=10, accuracy=0.9)
    truth = Sembler().fit(corpus)
    unlabelled = np.arange(corpus.offsets[10])
    assert (truth.labels == corpus.golds["gold"])[unlabelled].mean() > 0.8


def test_reliabilities_follow_accuracy() -> None:
    corpus = crowd(n_sequences=100, n_annotators=4, accuracy=np.array([0.95, 0.85, 0.7, 0.5]), coverage=1.0)
    rho = np.array(Sembler().fit(corpus).diagnostics["rho"])
    assert np.argsort(-rho).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["l2", "crf_iter", "smoothing", "restarts", "max_iter", "tol"])
def test_parameters_are_checked(name: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be"):
        Sembler(**{name: -1}).fit(small(0))


def test_unknown_templates_are_an_error() -> None:
    with pytest.raises(LascaError, match="nonsense"):
        Sembler(templates="nonsense[0]").fit(small(0))

"""CrfMa against enumeration of all label paths, gaps included."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from lasca import crf
from lasca.corpus import CrowdCorpus
from lasca.errors import ParameterError
from lasca.truth.base import Votes
from lasca.truth.crf_ma import CrfMa, Learner, Paths, State, f1_of_annotators
from test_truth_sembler import feature_ids, small
from truth_cases import crowd, triples

L2, SMOOTHING = 0.3, 0.7


def with_gaps(seed: int) -> CrowdCorpus:
    """Short sequences; the first has no votes, the second has a gap for everybody, one vote in six is missing."""
    corpus = small(seed)
    stays = np.random.default_rng(seed).random(corpus.n_annotations) > 1 / 6
    return CrowdCorpus.from_codes(
        tokens=corpus.tokens,
        offsets=corpus.offsets,
        labels=corpus.labels,
        annotators=corpus.annotators,
        annotation_token=corpus.annotation_token[stays],
        annotation_annotator=corpus.annotation_annotator[stays],
        annotation_label=corpus.annotation_label[stays],
        sequence_ids=corpus.sequence_ids,
    )


def learner_of(corpus: CrowdCorpus, temper: float = 1.0, background: float = 0.0) -> Learner:
    votes = Votes.of(corpus)
    features = crf.Extractor(templates="word[-1..1] bias").fit(corpus.tokens, corpus.offsets)
    labelled = np.flatnonzero(np.diff(votes.start[votes.offsets]) > 0)
    paths = Paths.of(features, votes, labelled, 1)
    return Learner(paths, l2=L2, crf_iter=5, smoothing=SMOOTHING, temper=temper, background=background)


def random_state(learner: Learner, seed: int) -> State:
    rng = np.random.default_rng(seed)
    return State(0.5 * rng.standard_normal(learner.space.size), rng.uniform(0.3, 1.7, 3))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("temper", "background"), [(1.0, 0.0), (0.3, 0.4)])
def test_posterior_and_objective_equal_enumeration(seed: int, temper: float, background: float) -> None:
    corpus = with_gaps(seed)
    learner = learner_of(corpus, temper, background)
    state = random_state(learner, seed)
    weights = crf.Weights(learner.space, state.theta)
    labelled = corpus.select(sequences=corpus.annotated_sequences)
    expected_q, proba, moves, total = naive.crf_ma(
        triples(labelled),
        learner.paths.features.offsets.tolist(),
        feature_ids(learner.paths.features),
        weights.state(),
        weights.transitions,
        state.pi,
        temper,
        background,
    )
    q, found, found_moves, value = learner.posterior(state)
    pairs = zip(learner.paths.sequence.tolist(), learner.paths.annotator.tolist())
    assert dict(zip(pairs, q.tolist())) == pytest.approx(expected_q, rel=1e-9)
    np.testing.assert_allclose(found, proba, atol=1e-10)
    np.testing.assert_allclose(found_moves, moves, atol=1e-9)
    assert value == pytest.approx(total, rel=1e-10)
    _, objective = learner.step(state)
    prior = SMOOTHING * float((np.log(state.pi) - state.pi).sum())
    assert objective == pytest.approx((total + prior) / temper - L2 * float(state.theta @ state.theta), rel=1e-10)


def test_there_are_gaps_in_these_cases() -> None:
    assert all((learner_of(with_gaps(seed)).paths.label < 0).any() for seed in range(4))


@pytest.mark.parametrize("temper", [1.0, 0.2])
def test_the_objective_never_falls_with_shares(temper: float) -> None:
    corpus = crowd(n_sequences=30, n_annotators=4, seed=1, unlabelled=1)
    trace = CrfMa(reliability="share", temper=temper, max_iter=25, tol=0).fit(corpus).trace
    assert len(trace) == 25
    assert np.diff(trace).min() >= -1e-7 * abs(trace[-1])
    assert trace[-1] > trace[0]


def test_f1_is_two_times_right_over_given_and_believed() -> None:
    votes = Votes.of(
        CrowdCorpus.from_sequences(
            [["a", "b", "c"]], {"x": [["O", "B", "B"]], "y": [["B", "O", None]]}, labels=("B", "O")
        )
    )
    proba = np.array([[0.1, 0.9], [0.8, 0.2], [0.6, 0.4]])
    found = f1_of_annotators(votes, np.arange(3), np.array([True, False]))(proba)
    expected = [(2 * (0.8 + 0.6) + 1) / (2 + 1.5 + 2), (2 * 0.1 + 1) / (1 + 0.9 + 2)]
    np.testing.assert_allclose(found, expected)
    squared = f1_of_annotators(votes, np.arange(3), np.array([True, False]), 2.0)(proba)
    np.testing.assert_allclose(squared, np.square(expected))


def test_starts_differ_and_the_paper_as_printed_runs() -> None:
    corpus = crowd(n_sequences=20)
    truth = CrfMa(restarts=3, max_iter=2, tol=0, reliability="share").fit(corpus)
    assert len(set(truth.diagnostics["objectives"])) == 3
    printed = CrfMa(power=1.0, temper=1.0, background=0.0).fit(corpus)
    assert (printed.labels == corpus.golds["gold"]).mean() > 0.8


@pytest.mark.parametrize(
    "wrong",
    [
        {"l2": 0},
        {"temper": 0},
        {"temper": 2},
        {"reliability": "kappa"},
        {"power": -1},
        {"background": -1},
        {"crf_iter": 0},
    ],
)
def test_wrong_parameters_are_named(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        CrfMa(**wrong).fit(crowd(n_sequences=3))  # type: ignore[arg-type]

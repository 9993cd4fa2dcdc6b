"""CrfMa against enumeration of all label paths, gaps included."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import naive
from lasca import crf
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block
from lasca.errors import ParameterError
from lasca.truth.base import Votes
from lasca.truth.crf_ma import CrfMa, CrfMaLearner, CrfMaState, GivenPaths, f1_counts
from test_truth_sembler import Trial, small
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


def trial_of(corpus: CrowdCorpus, temper: float = 1.0, background: float = 0.0) -> Trial:
    return Trial.of(CrfMaLearner(3, 3, L2, 5, SMOOTHING, temper, background, 1.0, None), corpus)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("temper", "background"), [(1.0, 0.0), (0.3, 0.4)])
def test_posterior_and_objective_equal_enumeration(seed: int, temper: float, background: float) -> None:
    corpus = with_gaps(seed)
    trial, rng = trial_of(corpus, temper, background), np.random.default_rng(seed)
    state = trial.learner.start(trial.work.summary(), rng)
    state = replace(state, theta=0.5 * rng.standard_normal(trial.learner.size))
    weights = trial.weights(state.theta)
    expected_q, proba, moves, total = naive.crf_ma(
        triples(corpus.select(sequences=corpus.annotated_sequences)),
        trial.offsets.tolist(),
        trial.ids,
        weights.state(),
        weights.transitions,
        state.pi,
        temper,
        background,
    )
    (value, right, could), found, found_moves = trial.expect(state)
    own = [sum(q for (_, a), q in expected_q.items() if a == who) for who in range(3)]
    np.testing.assert_allclose(right, own, rtol=1e-9)
    people = {i: sum(state.pi[a] for j, a in expected_q if i == j) for i, _ in expected_q}
    np.testing.assert_allclose(could, [sum(1 / people[i] for i, a in expected_q if a == who) for who in range(3)])
    np.testing.assert_allclose(found, proba, atol=1e-10)
    np.testing.assert_allclose(found_moves, moves, atol=1e-9)
    assert value == pytest.approx(total, rel=1e-10)
    following, objective = trial.step(state)
    prior = SMOOTHING * float((np.log(state.pi) - state.pi).sum())
    assert objective == pytest.approx((total + prior) / temper - L2 * float(state.theta @ state.theta), rel=1e-10)
    np.testing.assert_allclose(following.pi, (right + SMOOTHING) / (could + SMOOTHING))


def test_there_are_gaps_in_these_cases() -> None:
    assert all(any((view.label < 0).any() for view in trial_of(with_gaps(seed)).views) for seed in range(4))


@pytest.mark.parametrize("temper", [1.0, 0.2])
def test_the_objective_never_falls_with_shares(temper: float) -> None:
    corpus = crowd(n_sequences=30, n_annotators=4, seed=1, unlabelled=1)
    trace = CrfMa(reliability="share", temper=temper, max_iter=25, tol=0).fit(corpus).trace
    assert len(trace) == 25
    assert np.diff(trace).min() >= -1e-7 * abs(trace[-1])
    assert trace[-1] > trace[0]


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_f1_is_two_times_right_over_given_and_believed(power: float) -> None:
    people = {"x": [["O", "B", "B"]], "y": [["B", "O", None]]}
    votes = Votes.of(CrowdCorpus.from_sequences([["a", "b", "c"]], people, labels=("B", "O")))
    features = crf.Features.one_each(np.array([0, 3]))
    view = GivenPaths.of(Block(votes, 0, 3, beside=features))
    proba, entity = np.array([[0.1, 0.9], [0.8, 0.2], [0.6, 0.4]]), np.array([True, False])
    learner = CrfMaLearner(2, 2, L2, 5, SMOOTHING, 1.0, 0.0, power, entity)
    state = CrfMaState(np.zeros(0), np.ones(2), np.zeros(2))
    following, _ = learner.update(state, (0.0, *f1_counts(view, proba, entity, 2)))
    expected = [(2 * (0.8 + 0.6) + 1) / (2 + 1.5 + 2), (2 * 0.1 + 1) / (1 + 0.9 + 2)]
    np.testing.assert_allclose(following.pi, np.power(expected, power))


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

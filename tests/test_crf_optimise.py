"""The minimisers against SciPy, optimality conditions, and python-crfsuite's optimum; threads; warm starts."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pycrfsuite
import pytest
from scipy.optimize import minimize

from crf_cases import from_attributes, from_csr
from lasca import crf
from lasca.crf import optimise
from lasca.crf.features import Features, ParameterSpace, seen_with
from lasca.crf.objective import Objective
from lasca.crf.training import make_space
from lasca.errors import ModelError, ParameterError
from lasca.kernels import vectors

Array = np.ndarray[Any, Any]


def toy(seed: int = 0, n: int = 300, n_labels: int = 4) -> tuple[list[list[list[str]]], list[list[str]], Array]:
    """Sequences whose labels depend on a word and on the label before."""
    rng = np.random.default_rng(seed)
    attributes, labels = [], []
    for _ in range(n):
        length = int(rng.integers(1, 9))
        label, row, names = 0, [], []
        for _ in range(length):
            label = int(label if rng.random() < 0.4 else rng.integers(0, n_labels))
            word = int(3 * label + rng.integers(0, 3)) if rng.random() < 0.7 else int(rng.integers(0, 3 * n_labels))
            row.append([f"w{word}", f"m{word % 5}", "bias"])
            names.append(f"L{label}")
        attributes.append(row)
        labels.append(names)
    codes = np.array([int(name[1:]) for names in labels for name in names], dtype=np.int16)
    return attributes, labels, codes


def test_lbfgs_reaches_scipys_minimum() -> None:
    features, _ = from_attributes(toy()[0])
    codes = toy()[2]
    function = Objective(features, codes, ParameterSpace.full(features.n_features, 4), l2=0.5)
    gradient = np.zeros(function.space.size)

    def both(x: Array) -> tuple[float, Array]:
        value = function(x, gradient)
        return value, gradient.copy()

    reference = minimize(both, np.zeros(function.space.size), jac=True, method="L-BFGS-B", options={"ftol": 1e-14})
    found = crf.minimise(function, np.zeros(function.space.size), tol=1e-11, gradient_tol=1e-7)
    assert found.trace[-1] == pytest.approx(reference.fun, rel=1e-9)
    assert found.converged
    assert (np.diff(found.trace) <= 0).all()
    assert found.n_evaluations < 1.5 * len(found.trace) + 5


@pytest.mark.parametrize("objective", ["cost-sensitive", "softmax-margin"])
def test_other_objectives_have_a_flat_gradient_at_the_end(objective: str) -> None:
    features, _ = from_attributes(toy()[0])
    weights = crf.fit(features, toy()[2], 4, objective=objective, l2=20.0, tol=1e-12, max_iter=2000)
    gradient = np.zeros(weights.space.size)
    Objective(features, toy()[2], weights.space, objective=objective, l2=20.0)(weights.vector, gradient)
    assert np.abs(gradient).max() < 1e-2


def test_owlqn_fulfils_the_conditions_of_an_l1_minimum() -> None:
    features, _ = from_attributes(toy()[0])
    l1 = 3.0
    weights = crf.fit(features, toy()[2], 4, l1=l1, l2=0.01, tol=1e-13, max_iter=3000)
    gradient = np.zeros(weights.space.size)
    Objective(features, toy()[2], weights.space, l2=0.01)(weights.vector, gradient)
    zero = weights.vector == 0
    assert 0.2 < zero.mean() < 0.95
    assert np.abs(gradient[zero]).max() <= l1 + 1e-2
    np.testing.assert_allclose(gradient[~zero], -l1 * np.sign(weights.vector[~zero]), atol=2e-2)
    dense = crf.fit(features, toy()[2], 4, l1=0.0, l2=0.01)
    assert (dense.vector == 0).sum() < zero.sum()


def crfsuite_loss(attributes: list[Any], labels: list[Any], folder: Path, c2: float) -> float:
    trainer = pycrfsuite.Trainer(verbose=False)
    for x, y in zip(attributes, labels):
        trainer.append(x, y)
    trainer.select("lbfgs")
    trainer.set_params({"c1": 0.0, "c2": c2, "epsilon": 1e-9, "delta": 1e-12, "max_iterations": 2000})
    trainer.train(str(folder / "model"))
    return float(trainer.logparser.last_iteration["loss"])


@pytest.mark.parametrize("c2", [0.1, 1.0])
def test_likelihood_reaches_crfsuites_optimum(tmp_path: Path, c2: float) -> None:
    attributes, labels, codes = toy(3)
    features, _ = from_attributes(attributes)
    weights = crf.fit(features, codes, 4, l2=c2, states="observed", tol=1e-12, max_iter=2000)
    assert weights.trace[-1] == pytest.approx(crfsuite_loss(attributes, labels, tmp_path, c2), rel=1e-5)


@pytest.mark.data
def test_likelihood_reaches_crfsuites_optimum_on_tweets(data_dir: Path, tmp_path: Path) -> None:
    blocks = (data_dir / "tdga" / "annotation-all.txt").read_text(encoding="utf-8").replace("\r", "").split("\n\n")
    rows = [[line.split("\t") for line in block.split("\n") if line.strip()] for block in blocks if block.strip()]
    tokens, labels = [[r[0] for r in row] for row in rows], [[r[1] for r in row] for row in rows]
    names = sorted({name for row in labels for name in row})
    flat = [token for row in tokens for token in row]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in tokens])])
    codes = np.array([names.index(name) for row in labels for name in row], dtype=np.int16)
    extractor = crf.Extractor(templates="basic")
    features = extractor.fit(flat, offsets)
    weights = crf.fit(features, codes, len(names), l2=1.0, states="observed", tol=1e-9, n_threads=2)
    text = extractor.feature_names()
    start, ids = features.bundle_start, features.bundle_feature
    attributes = [
        [[text[f] for b in features.slots[i] for f in ids[start[b] : start[b + 1]]] for i in range(first, last)]
        for first, last in itertools.pairwise(offsets)
    ]
    assert weights.trace[-1] == pytest.approx(crfsuite_loss(attributes, labels, tmp_path, 1.0), rel=1e-4)


def test_evaluations_are_counted_and_a_start_at_the_minimum_is_the_end() -> None:
    calls: list[Array] = []

    def bowl(x: Array, gradient: Array) -> float:
        calls.append(x)
        gradient[:] = x - 1
        return float((x - 1) @ (x - 1)) / 2

    found = optimise.minimise(bowl, np.array([5.0, -3.0]))
    assert found.n_evaluations == len(calls) > 1
    np.testing.assert_allclose(found.vector, 1, atol=1e-4)
    ready = optimise.minimise(bowl, np.ones(2))
    assert (ready.converged, ready.trace, ready.n_evaluations) == (True, (0.0,), 1)


def test_the_direction_is_that_of_the_approximate_inverse_of_bfgs() -> None:
    """Of three pairs in a ring of four, which have come round: their updates of the inverse, written out."""
    rng = np.random.default_rng(0)
    steps, gradient = rng.normal(size=(4, 6)), rng.normal(size=6)
    changes = steps + 0.3 * rng.normal(size=(4, 6))
    inner, oldest_first = (steps * changes).sum(axis=1), (3, 0, 1)
    inverse = np.eye(6) * inner[1] / (changes[1] @ changes[1])
    for k in oldest_first:
        turn = np.eye(6) - np.outer(changes[k], steps[k]) / inner[k]
        inverse = turn.T @ inverse @ turn + np.outer(steps[k], steps[k]) / inner[k]
    out = np.empty(6)
    slope = vectors.lbfgs_direction(gradient, steps, changes, inner, 1, 3, np.empty(4), out)
    np.testing.assert_allclose(out, -inverse @ gradient, rtol=1e-9)
    assert slope == pytest.approx(gradient @ out)


def test_owlqn_counts_the_penalty_from_the_start_and_ends_where_no_step_helps() -> None:
    start = np.array([3.0, -4.0])

    def bowl(x: Array, gradient: Array) -> float:
        gradient[:] = x
        return float(x @ x) / 2

    found = optimise.minimise(bowl, start, l1=0.5)
    assert found.trace[0] == 25 / 2 + 0.5 * 7
    assert (np.diff(found.trace) < 0).all()
    np.testing.assert_allclose(found.vector, 0, atol=1e-6)

    def wall(x: Array, gradient: Array) -> float:
        gradient[:] = 1.0
        return 0.0 if (x == start).all() else 1e6

    stuck = optimise.minimise(wall, start, l1=0.5, max_iter=9)
    assert (stuck.vector == start).all()
    assert len(stuck.trace) == 1


def test_owlqn_takes_no_step_that_raises_the_value() -> None:
    """The first step leads over the lowest point to where it is a little higher: it is halved."""

    def bowl(x: Array, gradient: Array) -> float:
        gradient[:] = 100 * (x - 5)
        return float(50 * (x - 5) @ (x - 5))

    found = optimise.minimise(bowl, np.array([5.5 - 1e-5]), l1=1e-9, max_iter=1)
    assert found.trace[1] < 0.01 * found.trace[0]
    np.testing.assert_allclose(found.vector, [5.0], atol=1e-4)


def test_a_step_that_was_too_long_ends_at_the_lowest_point_of_the_parabola() -> None:
    search = optimise._Search(lambda x, gradient: 3.0, np.zeros(1))
    for lowest in (0.2, 0.35, 0.5):  # of 3 − t + t² / (2 lowest)
        assert search._shorter(0.0, 1.0, 3 - 1 + 0.5 / lowest, -1.0) == pytest.approx(lowest)
    assert search._shorter(0.0, 1.0, 3e9, -1.0) == 0.1  # never less than a tenth
    assert search._shorter(0.5, 1.0, np.inf, -1.0) == 0.75


def test_threads_give_the_same_bytes() -> None:
    features, _ = from_attributes(toy(1, n=4000)[0])
    codes = toy(1, n=4000)[2]
    assert features.n_tokens > 10_000  # more than one chunk
    one, two = (crf.fit(features, codes, 4, max_iter=8, n_threads=n) for n in (1, 2))
    assert one.vector.tobytes() == two.vector.tobytes()


def test_training_on_a_part_equals_training_on_its_own_record() -> None:
    attributes, _, codes = toy(2)
    features, names = from_attributes(attributes)
    half = np.arange(0, len(attributes), 2)
    alone, _ = from_attributes([attributes[s] for s in half], names)
    own = np.concatenate([codes[features.offsets[s] : features.offsets[s + 1]] for s in half])
    for states in ("all", "observed"):
        part = crf.fit(features, codes, 4, sequences=half, states=states, tol=1e-9)
        whole = crf.fit(alone, own, 4, states=states, tol=1e-9)
        assert part.space.size == whole.space.size
        np.testing.assert_allclose(part.vector, whole.vector, rtol=1e-4, atol=1e-4)


def test_sequence_weights_count_like_repeats() -> None:
    attributes, _, codes = toy(4, n=60)
    features, names = from_attributes(attributes)
    twice, _ = from_attributes(attributes + attributes[:20], names)
    more = np.concatenate([codes, codes[: features.offsets[20]]])
    weights = np.where(np.arange(60) < 20, 2.0, 1.0)
    a = crf.fit(features, codes, 4, sequence_weights=weights, tol=1e-10)
    b = crf.fit(twice, more, 4, tol=1e-10)
    assert a.trace[-1] == pytest.approx(b.trace[-1], rel=1e-8)


def test_warm_start_needs_few_iterations_and_soft_targets_agree_with_hard_ones() -> None:
    features, _ = from_attributes(toy()[0])
    codes = toy()[2]
    cold = crf.fit(features, codes, 4, tol=1e-9)
    warm = crf.fit(features, codes, init=cold, tol=1e-9)
    assert len(warm.trace) < len(cold.trace) / 2
    soft = crf.fit(features, np.eye(4, dtype=np.float32)[codes], tol=1e-9)
    assert soft.trace[-1] == pytest.approx(cold.trace[-1], rel=1e-8)
    allowed = crf.fit(features, np.eye(4, dtype=np.bool_)[codes], tol=1e-9)
    assert allowed.trace[-1] == pytest.approx(cold.trace[-1], rel=1e-8)


def test_partial_labels_help_over_dropping_the_sequences() -> None:
    attributes, _, codes = toy(5, n=200)
    features, _ = from_attributes(attributes)
    rng = np.random.default_rng(0)
    partial = np.where(rng.random(len(codes)) < 0.5, -1, codes).astype(np.int16)
    right = (crf.viterbi(features, crf.fit(features, partial, 4)) == codes).mean()
    full = (crf.viterbi(features, crf.fit(features, codes, 4)) == codes).mean()
    assert right > full - 0.03


def test_perceptron_learns_and_is_deterministic() -> None:
    attributes, _, codes = toy(6)
    features, _ = from_attributes(attributes)
    a, b = (crf.perceptron(features, codes, 4, epochs=5, seed=3) for _ in range(2))
    assert a.vector.tobytes() == b.vector.tobytes()
    c = crf.perceptron(features, codes, 4, epochs=5, seed=4)
    assert a.vector.tobytes() != c.vector.tobytes()
    best = (crf.viterbi(features, crf.fit(features, codes, 4)) == codes).mean()
    assert (crf.viterbi(features, a) == codes).mean() > best - 0.05


def test_no_iterations_leave_the_start_as_it_is() -> None:
    features, _ = from_attributes(toy()[0])
    codes = toy()[2]
    start = crf.fit(features, codes, 4, max_iter=3)
    assert np.array_equal(crf.fit(features, codes, 4, init=start, max_iter=0).vector, start.vector)
    with pytest.raises(ParameterError, match="max_iter"):
        crf.fit(features, codes, 4, max_iter=-1)


def test_callback_stops() -> None:
    features, _ = from_attributes(toy()[0])
    seen: list[int] = []
    values: list[float] = []

    def stop(now: crf.Iteration, weights: crf.Weights) -> bool:
        seen.append(now.iteration)
        values.append(now.objective)
        assert weights.vector.shape == (weights.space.size,)
        return now.iteration == 3

    weights = crf.fit(features, toy()[2], 4, callback=stop)
    assert seen == [1, 2, 3]
    assert values == list(weights.trace[1:])
    assert not weights.converged


def test_what_cannot_be_trained_is_refused() -> None:
    features, _ = from_attributes(toy()[0])
    codes = toy()[2]
    with pytest.raises(ModelError, match="no optimum without a penalty"):
        crf.fit(features, codes, 4, objective="cost-sensitive", l2=0.0)
    with pytest.raises(ParameterError, match="objective"):
        crf.fit(features, codes, 4, objective="hinge")
    with pytest.raises(ModelError, match="n_labels"):
        crf.fit(features, codes)
    with pytest.raises(ModelError, match="between -1"):
        crf.fit(features, codes + 10, 4)
    with pytest.raises(ModelError, match="sum to 1"):
        crf.fit(features, np.zeros((features.n_tokens, 4)), 4)
    with pytest.raises(ModelError, match="without any allowed label"):
        crf.fit(features, np.zeros((features.n_tokens, 4), dtype=bool), 4)
    with pytest.raises(ModelError, match="sequence weights"):
        crf.fit(features, codes, 4, sequence_weights=np.ones(3))
    for bad in (np.nan, np.inf, -1.0):
        with pytest.raises(ModelError, match="sequence weights"):
            crf.fit(features, codes, 4, sequence_weights=np.r_[np.ones(299), bad])
    with pytest.raises(ModelError, match="3 x 3"):
        crf.cost_matrix(np.zeros((2, 2)), 3)


def test_costs_are_clipped() -> None:
    costs = crf.cost_matrix(np.array([[0.0, 1.0], [0.25, 0.0]]), 2)
    np.testing.assert_allclose(costs, [[0.0, 1e-3], [0.75, 0.0]], rtol=1e-12)


def test_observed_space_of_soft_targets_keeps_shares_above_a_hundredth() -> None:
    two = from_csr(np.array([0, 1, 2]), np.array([0, 1], np.int32), np.array([0, 2]), 2)
    soft = np.array([[0.895, 0.1, 0.005], [0.3, 0.7, 0.0]], np.float32)
    assert make_space(two, soft, 3, "observed").feature_label.tolist() == [0, 1, 0, 1]
    last = from_csr(np.array([0, 1, 2]), np.array([0, 1], np.int32), np.array([0, 2, 2]), 2)  # an empty one is the last
    assert make_space(last, soft, 3, "observed").feature_label.tolist() == [0, 1, 0, 1]


def test_observed_moves_are_those_inside_of_sequences() -> None:
    own = np.array([0, 1, 2], np.int32), np.arange(4), np.arange(3, dtype=np.int32)
    for offsets in ([0, 2, 3], [0, 2, 3, 3]):
        allowed = np.eye(3, dtype=bool)  # labels 0, 1 | 2
        seen, moves = seen_with(Features(np.array(offsets), own[0][:, None], own[1], own[2], 3), allowed)
        assert np.argwhere(moves).tolist() == [[0, 1]]
        assert np.argwhere(seen).tolist() == [[0, 0], [1, 1], [2, 2]]


def test_the_time_left_is_what_the_fall_of_the_improvement_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve steps of half a second; each improves the value by half of what the one before did."""
    now = [0.0]
    monkeypatch.setattr(optimise.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(optimise, "_PERIOD", 2)
    clock = optimise._Clock(100, 1e-9)
    assert np.isnan(clock.left([3.0, 2.5, 2.25]))
    now[0] = 6.0
    trace = [1000.0 + 0.5**k for k in range(13)]
    steps = np.log2(optimise.improvement(trace) / 1e-9)
    assert 9 < steps < 10
    assert clock.left(trace) == pytest.approx(0.5 * steps, rel=0.2)
    now[0] = 2.5
    few = np.log2(optimise.improvement(trace[:6]) / 1e-9)
    assert clock.left(trace[:6]) == pytest.approx(0.5 * few, rel=0.2)  # as soon as there are two to compare
    now[0] = 6.0
    flat = [1000.0 - k for k in range(13)]  # no end in sight: all that is allowed
    assert clock.left(flat) == pytest.approx(0.5 * (100 - 12))
    assert clock.left([1000.0 + 0.01**k for k in range(13)]) == pytest.approx(0.5 * 88)  # it is there already

"""Marginals, best paths and n best paths against enumeration; lengths that break things."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import naive
from crf_cases import from_attributes
from lasca import crf
from lasca.crf.decode import Constraint, log_partition
from lasca.crf.features import ParameterSpace, Weights
from lasca.errors import ModelError


def random_problem(seed: int, n_labels: int, lengths: list[int]) -> tuple[crf.Features, Weights, list[list[list[int]]]]:
    rng = np.random.default_rng(seed)
    n_features = 8
    ids = [[list(rng.choice(n_features, size=rng.integers(0, 4))) for _ in range(n)] for n in lengths]
    names = [[[str(f) for f in token] for token in sequence] for sequence in ids]
    features, _ = from_attributes(names, {str(f): f for f in range(n_features)})
    space = ParameterSpace.full(n_features, n_labels)
    return features, Weights(space, rng.normal(size=space.size)), ids


@pytest.mark.parametrize("n_labels", [1, 2, 4, 5])
def test_marginals_and_paths_equal_enumeration(n_labels: int) -> None:
    features, weights, ids = random_problem(n_labels, n_labels, [1, 0, 2, 4])
    proba, best = crf.marginals(features, weights), crf.viterbi(features, weights)
    listed, log_z = crf.n_best(features, weights, 3), log_partition(features, weights)
    assert proba.dtype == np.float32
    for s, tokens in enumerate(ids):
        first, last = features.offsets[s], features.offsets[s + 1]
        if not tokens:
            continue
        paths = naive.crf_paths(n_labels, len(tokens))
        scores = np.array([naive.crf_score(weights.state(), weights.transitions, tokens, p) for p in paths])
        chance = np.exp(scores - np.logaddexp.reduce(scores))
        expected = np.zeros((len(tokens), n_labels))
        for path, share in zip(paths, chance):
            expected[np.arange(len(tokens)), path] += share
        np.testing.assert_allclose(proba[first:last], expected, rtol=1e-5, atol=1e-7)
        assert log_z[s] == pytest.approx(np.logaddexp.reduce(scores), rel=1e-12)
        order = np.argsort(-scores)[:3]
        assert tuple(best[first:last]) == paths[order[0]]
        assert [tuple(p) for p, _ in listed[s]] == [paths[k] for k in order]
        np.testing.assert_allclose([v for _, v in listed[s]], np.log(chance[order]), rtol=1e-9, atol=1e-12)


def test_constraint_gives_the_best_allowed_path() -> None:
    features, weights, ids = random_problem(5, 3, [4, 4, 3])
    moves = np.array([[True, True, False], [True, False, True], [True, False, True]])
    rule = Constraint(moves, np.array([True, True, False]), np.array([True, False, True]))
    best = crf.viterbi(features, weights, constraint=rule)
    listed = crf.n_best(features, weights, 200, constraint=rule)
    for s, tokens in enumerate(ids):
        allowed = [
            p
            for p in naive.crf_paths(3, len(tokens))
            if rule.first[p[0]] and rule.last[p[-1]] and all(moves[a, b] for a, b in itertools.pairwise(p))
        ]
        scores = [naive.crf_score(weights.state(), weights.transitions, tokens, p) for p in allowed]
        assert tuple(best[features.offsets[s] : features.offsets[s + 1]]) == allowed[int(np.argmax(scores))]
        assert {tuple(p) for p, _ in listed[s]} == set(allowed)


@pytest.mark.parametrize("scale", [1.0, 100.0, 5000.0])
def test_long_sequences_and_large_weights_stay_finite(scale: float) -> None:
    features, weights, _ = random_problem(1, 5, [5000, 1, 0])
    weights = Weights(weights.space, weights.vector * scale)
    proba = crf.marginals(features, weights)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-5)
    assert np.isfinite(log_partition(features, weights)).all()


def test_part_of_the_sequences_and_threads_change_nothing() -> None:
    features, weights, _ = random_problem(2, 4, [3] * 3000)
    proba, best = crf.marginals(features, weights), crf.viterbi(features, weights)
    np.testing.assert_array_equal(proba, crf.marginals(features, weights, n_threads=2))
    np.testing.assert_array_equal(best, crf.viterbi(features, weights, n_threads=2))
    out = np.full_like(proba, 7.0)
    part = np.array([5, 2, 2999])
    crf.marginals(features, weights, sequences=part, out=out)
    rows = (features.offsets[part][:, None] + np.arange(3)).ravel()
    np.testing.assert_array_equal(out[rows], proba[rows])
    assert (np.delete(out, rows, axis=0) == 7.0).all()
    some = crf.viterbi(features, weights, sequences=part)
    np.testing.assert_array_equal(some[rows], best[rows])
    assert (np.delete(some, rows) == -1).all()


def test_bad_arguments_are_named() -> None:
    features, weights, _ = random_problem(0, 3, [2])
    with pytest.raises(ModelError, match="float32"):
        crf.marginals(features, weights, out=np.zeros((2, 3)))
    with pytest.raises(ModelError, match="cannot score"):
        crf.viterbi(features, Weights.zeros(ParameterSpace.full(9, 3)))
    with pytest.raises(ModelError, match="constraint is over 2"):
        crf.viterbi(features, weights, constraint=Constraint.none(2))
    with pytest.raises(ModelError, match="some label begin"):
        Constraint(np.ones((2, 2), dtype=bool), np.zeros(2, dtype=bool), np.ones(2, dtype=bool))
    known = {"offsets": np.array([0, 1]), "slots": np.zeros((1, 1), np.int32), "bundle_start": np.array([0, 1])}
    for feature in (1, -1):
        with pytest.raises(ModelError, match="feature"):
            crf.Features(**known, bundle_feature=np.array([feature], np.int32), n_features=1)
    broken: dict[str, Any] = {"offsets": np.array([0, 3]), "slots": np.zeros((2, 1), dtype=np.int32)}
    with pytest.raises(ModelError, match="number of tokens"):
        crf.Features(**broken, bundle_start=np.array([0, 0]), bundle_feature=np.zeros(0, dtype=np.int32), n_features=1)


def test_of_equal_paths_the_earlier_labels_come_first() -> None:
    features, weights, _ = random_problem(0, 2, [2])
    even = Weights.zeros(weights.space)
    assert crf.viterbi(features, even).tolist() == [0, 0]
    (listed,) = crf.n_best(features, even, 4)
    assert [tuple(path) for path, _ in listed] == [(0, 0), (1, 0), (0, 1), (1, 1)]

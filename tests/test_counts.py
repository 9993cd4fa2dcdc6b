"""Passes over votes against plain sums in logs: narrow and wide rows, special tokens, and numbers that underflow."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lasca.kernels import counts as kernels

NOTHING = np.empty(0)


def some_votes(rng: np.random.Generator, n: int, n_annotators: int, T: int) -> tuple[np.ndarray, ...]:
    """Votes of n tokens by token: none on the first, then up to all annotators."""
    given = [[a for a in range(n_annotators) if i and rng.random() < 0.6] for i in range(n)]
    start = np.concatenate(([0], np.cumsum([len(who) for who in given])))
    annotator = np.array([a for who in given for a in who], np.int32)
    return start, annotator, rng.integers(0, T, len(annotator)).astype(np.int16)


def posterior(log_weights: np.ndarray) -> tuple[np.ndarray, float]:
    """The weights as probabilities, and the log of their sum."""
    top = log_weights.max()
    weights = np.exp(log_weights - top)
    return weights / weights.sum(), top + math.log(weights.sum())


def some_special(rng: np.random.Generator, n: int, T: int) -> tuple[np.ndarray, np.ndarray]:
    """Which tokens are special, and what multiplies their likelihoods: some labels are ruled out."""
    place = np.full(n, -1, np.int64)
    chosen = np.sort(rng.choice(n, n // 2, replace=False))
    place[chosen] = np.arange(len(chosen))
    factor = rng.random((len(chosen), T)) * (rng.random((len(chosen), T)) < 0.7)
    factor[:, T - 1] = np.maximum(factor[:, T - 1], 0.1)
    return place, factor


@pytest.mark.parametrize("tiny", [1.0, 1e-60, 1e-250])
@pytest.mark.parametrize("has_special", [False, True])
@pytest.mark.parametrize("T", [3, 4, 33])
def test_a_pass_over_confusions_is_the_sum_in_logs(T: int, has_special: bool, tiny: float) -> None:
    rng = np.random.default_rng([T, has_special, int(tiny < 1)])
    n, A, first, last, least = 14, 5, 3, 12, 2
    width = -(-T // 4) * 4
    start, annotator, label = some_votes(rng, n, A, T)
    psi, gamma = rng.random((A, T, T)), rng.dirichlet(np.ones(T))  # given × true
    psi[:2] *= tiny
    table, log_table = np.zeros((A, T, width)), np.zeros((A, T, width))
    table[:, :, :T], log_table[:, :, :T] = psi, np.log(psi)
    prior, log_prior = np.zeros(width), np.zeros(width)
    prior[:T], log_prior[:T] = gamma, np.log(gamma)
    part = slice(start[first], start[last])
    rows = (annotator[part].astype(np.int64) * T + label[part]) * width
    special, factor = some_special(rng, last - first, T) if has_special else (np.empty(0, np.int64), np.ones((0, T)))
    teaches = rng.random(len(factor)) < 0.5
    padded = np.zeros((len(factor), width))
    padded[:, :T] = factor
    post, counts, totals = np.full(padded.size, -1.0), np.zeros(A * T * width), np.zeros(width)
    proba = np.zeros((last - first, T))
    told = (special, teaches, padded.ravel(), post, counts, totals)
    arrays = (start, rows, table.ravel(), log_table.ravel(), prior, log_prior, T, width, least)
    evidence = kernels.confusion_pass(first, last, *arrays, *told, proba)

    expected_counts, expected_totals, expected = np.zeros((A, T, T)), np.zeros(T), 0.0
    for i in range(first, last):
        votes = [(int(annotator[j]), int(label[j])) for j in range(start[i], start[i + 1])]
        log_weights = np.log(gamma) + sum((np.log(psi[a, s]) for a, s in votes), np.zeros(T))
        counted = len(votes) >= least
        k = special[i - first] if has_special else -1
        if k >= 0:
            with np.errstate(divide="ignore"):
                log_weights = log_weights + np.log(factor[k])
            counted = bool(teaches[k])
        p, log_sum = posterior(log_weights)
        np.testing.assert_allclose(proba[i - first], p, rtol=1e-9, atol=1e-12)
        if k >= 0:
            np.testing.assert_allclose(post.reshape(-1, width)[k, :T], p, rtol=1e-9, atol=1e-12)
        if counted:
            expected += log_sum
            expected_totals += p
            for a, s in votes:
                expected_counts[a, s] += p
    assert evidence == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(totals[:T], expected_totals, rtol=1e-9)
    np.testing.assert_allclose(counts.reshape(A, T, width)[:, :, :T], expected_counts, rtol=1e-9, atol=1e-12)

    again, totals[:], counts[:] = totals.copy(), 0, 0
    assert kernels.confusion_pass(first, last, *arrays, *told, np.zeros((0, T))) == evidence  # nobody asks for proba
    np.testing.assert_array_equal(totals, again)


def test_evidence_adds_up_over_many_tokens() -> None:
    """Products of evidence are taken to logs before they leave the range of numbers, at both ends."""
    rng, n = np.random.default_rng(0), 400
    for scale in (1e-3, 1e3):
        prior = scale * np.array([0.2, 0.3, 0.5, 0.0])
        with np.errstate(divide="ignore"):
            log_prior = np.log(prior)
        table = rng.random(4 * 3)
        label = rng.integers(0, 3, n)
        nothing = np.empty(0, np.int64), np.empty(0, np.bool_), NOTHING, NOTHING
        evidence = kernels.confusion_pass(
            0, n, np.arange(n + 1), label * 4, table, np.log(table), prior, log_prior, 3, 4, 1,
            *nothing, np.zeros(12), np.zeros(4), np.zeros((0, 3)),
        )  # fmt: skip
        sums = [math.fsum(prior[t] * table[4 * s + t] for t in range(3)) for s in label]
        assert evidence == pytest.approx(math.fsum(map(math.log, sums)), rel=1e-12)


@pytest.mark.parametrize("huge", [1.0, 1e150])
@pytest.mark.parametrize("has_special", [False, True])
def test_a_pass_over_agreement_is_the_sum_in_logs(has_special: bool, huge: float) -> None:
    rng = np.random.default_rng([7, has_special])
    n, A, T, first, last = 30, 6, 4, 2, 29
    start, annotator, label = some_votes(rng, n, A, T)
    odds = 1 + rng.random((A, T)) * 20
    odds[:2] *= huge  # two such votes leave the range of numbers where they meet
    special, factor = some_special(rng, last - first, T) if has_special else (np.empty(0, np.int64), np.ones((0, T)))
    post, agreed, proba = np.full(factor.shape, -1.0), np.zeros((A, T)), np.zeros((last - first, T))
    evidence = kernels.agreement_pass(
        first, last, start, annotator, label, odds, T, special, factor, post, agreed, proba
    )
    expected, expected_agreed = 0.0, np.zeros((A, T))
    for i in range(first, last):
        votes = [(int(annotator[j]), int(label[j])) for j in range(start[i], start[i + 1])]
        log_weights = np.zeros(T)
        for a, s in votes:
            log_weights[s] += math.log(odds[a, s])
        k = special[i - first] if has_special else -1
        if k >= 0:
            with np.errstate(divide="ignore"):
                log_weights += np.log(factor[k])
        p, log_sum = posterior(log_weights)
        expected += log_sum
        for a, s in votes:
            expected_agreed[a, s] += p[s]
        np.testing.assert_allclose(proba[i - first], p, rtol=1e-9, atol=1e-12)
        if k >= 0:
            np.testing.assert_allclose(post[k], p, rtol=1e-9, atol=1e-12)
    assert evidence == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(agreed, expected_agreed, rtol=1e-9, atol=1e-12)


def test_shares_and_tallies_of_votes_are_counted_one_by_one() -> None:
    rng = np.random.default_rng(3)
    n, A, T, first, last = 12, 4, 3, 1, 11
    start, annotator, label = some_votes(rng, n, A, T)
    votes = [[(int(annotator[j]), int(label[j])) for j in range(start[i], start[i + 1])] for i in range(n)]
    shares = np.full((n, T), 9.0)
    kernels.vote_shares(start, label, shares)
    expected = [[sum(s == t for _, s in own) / max(len(own), 1) for t in range(T)] for own in votes]
    np.testing.assert_allclose(shares, expected, rtol=1e-15)

    proba, labels = rng.dirichlet(np.ones(T), last - first), rng.integers(0, T, last - first)
    right, own, true = np.zeros(A), np.zeros((A, T)), np.zeros((A, T))
    inferred, per_token = np.zeros(T), np.zeros(3)
    kernels.tally(first, last, start, annotator, label, proba, labels, right, own, true, inferred, per_token)
    sizes = [len(votes[i]) for i in range(first, last)]
    assert per_token.tolist() == [sum(n == 0 for n in sizes), sum(n == 1 for n in sizes), sum(n > 1 for n in sizes)]
    assert inferred.tolist() == [sum(n > 0 and t == s for n, s in zip(sizes, labels)) for t in range(T)]
    part = [(a, s, i - first) for i in range(first, last) for a, s in votes[i]]
    for a in range(A):
        assert right[a] == pytest.approx(sum(proba[i, s] for b, s, i in part if b == a))
        for t in range(T):
            assert own[a, t] == sum((b, s) == (a, t) for b, s, _ in part)
            assert true[a, t] == sum((b, labels[i]) == (a, t) for b, _, i in part)

    counts, totals, given = np.zeros((A, T, T)), np.zeros(T), np.zeros((A, T))
    kernels.share_counts(first, last, start, annotator, label, 2, counts, totals, given)
    lone = [len(votes[i]) < 2 for i in range(n)]
    part = [(a, s, i) for i in range(first, last) for a, s in votes[i] if not lone[i]]
    assert any(lone[i] and votes[i] for i in range(first, last))
    np.testing.assert_allclose(totals, np.sum([expected[i] for i in range(first, last) if not lone[i]], axis=0))
    for a in range(A):
        for t in range(T):
            assert given[a, t] == sum((b, s) == (a, t) for b, s, _ in part)
            by_hand = np.sum([expected[i] for b, s, i in part if (b, s) == (a, t)], axis=0)
            np.testing.assert_allclose(counts[a, t], by_hand, atol=1e-15)


def test_soft_votes_multiply_and_count_by_what_they_may_have_been() -> None:
    rng = np.random.default_rng(5)
    A, T, place, annotator = 3, 3, np.array([0, 1, 1, 0]), np.array([0, 1, 2, 2])
    proba, psi = rng.dirichlet(np.ones(T), 4), rng.random((A, T, T))
    psi[1, :, 2] = 0.0  # a true label of which annotator 1 never speaks
    before = rng.random((2, T))
    factor, scales = before.copy(), np.zeros(2)
    kernels.soft_factor(place, annotator, proba, psi, factor, scales)
    expected = before.copy()
    for k, a, p in zip(place, annotator, proba):
        expected[k] *= p @ psi[a]
    np.testing.assert_allclose(factor * np.exp(scales)[:, None], expected, rtol=1e-12)
    assert (factor <= before + 1e-15).all()
    post, counts = rng.dirichlet(np.ones(T), 2), np.zeros((A, T, T))
    kernels.soft_counts(place, annotator, proba, psi, post, counts)
    by_hand = np.zeros((A, T, T))
    for k, a, p in zip(place, annotator, proba):
        for t in range(T):
            if p @ psi[a, :, t] > 0:
                by_hand[a, :, t] += post[k, t] * p * psi[a, :, t] / (p @ psi[a, :, t])
    np.testing.assert_allclose(counts, by_hand, rtol=1e-12)

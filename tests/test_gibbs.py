"""The kernels of the hierarchical clusters model against ratios of the naive joint density."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import lgamma

import numpy as np
import pytest

import naive
from lasca.kernels import gibbs, metropolis
from lasca.kernels import random as rnd
from lasca.kernels.metropolis import split_or_merge
from lasca.truth.dawid_skene import Tables

NOTHING_KNOWN = np.zeros(0, np.int32), np.zeros((0, 0))
Known = tuple[np.ndarray, np.ndarray]


@dataclass
class Case:
    """A small random model with its votes, as lists for the naive versions and as arrays for the kernels."""

    votes: list[tuple[int, int, int]]
    start: np.ndarray
    annotator: np.ndarray
    label: np.ndarray
    z: np.ndarray
    c: np.ndarray
    beta: np.ndarray
    eta: np.ndarray
    alpha: np.ndarray
    rate: float
    epsilon_nu: float
    epsilon_gamma: float
    hard: np.ndarray
    """(T, T), or (0, T): one level of difficulty."""

    def joint(self, **changes: np.ndarray) -> float:
        names = ("z", "c", "beta", "eta")
        values = [changes.get(name, getattr(self, name)) for name in names]
        epsilons = self.epsilon_nu, self.epsilon_gamma
        return naive.hc_log_joint(self.votes, *values, self.alpha, self.rate, *epsilons, self.hard)

    def counts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        L, T, S = len(self.c), len(self.alpha), self.n_states()
        counts, totals = np.zeros((L, S, T), np.int64), np.zeros(S, np.int64)
        gibbs.count(0, len(self.z), self.start, self.annotator, self.label, self.z, counts, totals)
        return counts, counts.sum(axis=2), totals

    def n_states(self) -> int:
        return len(self.alpha) + len(self.hard)

    def members(self) -> np.ndarray:
        return np.bincount(self.c, minlength=len(self.eta))


def random_case(
    seed: int, *, n_tokens: int = 12, L: int = 5, T: int = 3, C: int = 3, share: float = 0.7, levels: int = 1
) -> Case:
    rng = np.random.default_rng(seed)
    S = T * levels
    votes = [(i, m, int(rng.integers(T))) for i in range(n_tokens) for m in range(L) if rng.random() < share]
    per_token = np.bincount([i for i, _, _ in votes], minlength=n_tokens)
    return Case(
        votes=votes,
        start=np.concatenate(([0], np.cumsum(per_token))).astype(np.int64),
        annotator=np.array([m for _, m, _ in votes], np.int32),
        label=np.array([s for _, _, s in votes], np.int16),
        z=rng.integers(S, size=n_tokens).astype(np.int16),
        c=rng.integers(C, size=L).astype(np.int32),
        beta=rng.dirichlet(np.full(T, 0.5), (C, T)),
        eta=rng.lognormal(1, 2, (C, T)),
        alpha=rng.uniform(0.2, 3, (T, T)),
        rate=float(rng.uniform(0.01, 2)),
        epsilon_nu=float(rng.uniform(0.1, 3)),
        epsilon_gamma=float(rng.uniform(0.1, 3)),
        hard=rng.uniform(0.2, 9, (S - T, T)),
    )


def normalised(logs: list[float]) -> np.ndarray:
    p = np.exp(np.array(logs) - max(logs))
    return p / p.sum()


def tables(case: Case, seed: int, spread: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Draw Ψ (annotator, state, given) and γ; a small `spread` makes rows that are nearly one-hot."""
    rng = np.random.default_rng(seed)
    L, T, S = len(case.c), len(case.alpha), case.n_states()
    psi = np.maximum(rng.dirichlet(np.full(T, spread), (L, S)), 1e-250)
    return psi, rng.dirichlet(np.ones(S))


def draw_z(
    case: Case, psi: np.ndarray, gamma: np.ndarray, state: np.ndarray, known: Known = NOTHING_KNOWN
) -> tuple[np.ndarray, np.ndarray]:
    at = Tables(np.log(psi).transpose(0, 2, 1), np.log(gamma))
    z, proba = np.empty(len(case.z), np.int16), np.zeros((len(case.z), len(case.alpha)))
    votes = case.start, case.annotator, case.label
    assert len(at.arrays[2]) == gibbs.padded(len(gamma))
    gibbs.draw_states(
        *(0, len(z), *votes, *at.arrays),
        *(*known, state, np.empty(len(at.arrays[2])), z, proba),
    )
    return z, proba


def rng_state(seed: int) -> np.ndarray:
    return np.random.SeedSequence(seed).generate_state(4, np.uint64)


CASES = [
    *({"seed": seed} for seed in range(6)),
    {"seed": 6, "T": 1},
    {"seed": 7, "T": 2, "L": 1, "C": 1},
    {"seed": 8, "T": 9, "n_tokens": 20},
    {"seed": 9, "T": 5, "L": 40, "n_tokens": 6, "share": 1.0},  # more votes per token than are multiplied at once
    {"seed": 10, "share": 0.1},  # tokens and annotators without votes
    *({"seed": seed, "levels": 2} for seed in range(11, 15)),
    {"seed": 15, "levels": 2, "T": 5, "L": 20, "n_tokens": 8, "share": 0.9},
    {"seed": 16, "levels": 2, "share": 0.1},
]


@pytest.mark.parametrize("spread", [1.0, 0.01])
@pytest.mark.parametrize("arguments", CASES, ids=str)
def test_every_conditional_of_z_is_the_naive_one(arguments: dict, spread: float) -> None:
    """Also where products of votes underflow; labels get the sums over levels."""
    case = random_case(**arguments)
    psi, gamma = tables(case, 1, spread)
    z, proba = draw_z(case, psi, gamma, rng_state(1))
    expected = naive.hc_state_probabilities(case.votes, psi, gamma, len(case.z))
    assert (expected[np.arange(len(z)), z] > 0).all()
    by_label = expected.reshape(len(z), -1, len(case.alpha)).sum(axis=1)
    np.testing.assert_allclose(proba, by_label, rtol=1e-9, atol=1e-150)


def test_what_is_known_holds_also_where_it_is_next_to_impossible() -> None:
    case = random_case(9, T=5, L=40, n_tokens=6, share=1.0, levels=2)
    psi, gamma = tables(case, 2, 0.01)
    allowed = np.zeros((3, 5))
    allowed[0, 3] = allowed[1, [0, 4]] = allowed[2, 1] = 1.0
    index = np.array([-1, 0, 1, -1, -1, 2], np.int32)
    plain = naive.hc_state_probabilities(case.votes, psi, gamma, 6)
    z, proba = draw_z(case, psi, gamma, rng_state(1), (index, allowed))
    for i, row in enumerate(index):
        expected = plain[i] if row < 0 else plain[i] * np.tile(allowed[row], 2)
        if row >= 0:
            assert allowed[row, z[i] % 5] == 1
            assert (proba[i][allowed[row] == 0] == 0).all()
        if expected.sum() > 0:
            np.testing.assert_allclose(proba[i], (expected / expected.sum()).reshape(2, 5).sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)


def test_tokens_are_drawn_in_parts_as_they_are_at_once() -> None:
    """A part brings its own `special`, `z` and `proba`, which begin with its first token."""
    case = random_case(3)
    n, T = len(case.z), len(case.alpha)
    index, allowed = np.full(n, -1, np.int32), np.eye(T)
    index[[1, 8]] = 0, 2
    psi, gamma = tables(case, 3)
    whole, expected = draw_z(case, psi, gamma, rng_state(3), (index, allowed))
    at, state, votes = Tables(np.log(psi).transpose(0, 2, 1), np.log(gamma)), rng_state(3), (case.start, case.annotator)
    for first, last in ((0, 5), (5, n)):
        z, proba = np.empty(last - first, np.int16), np.zeros((last - first, T))
        known = index[first:last], allowed, state, np.empty(len(at.arrays[2]))
        gibbs.draw_states(first, last, *votes, case.label, *at.arrays, *known, z, proba)
        np.testing.assert_array_equal(z, whole[first:last])
        np.testing.assert_array_equal(proba, expected[first:last])


def test_rows_are_drawn_from_their_dirichlet() -> None:
    """Means and variances over 20,000 draws, 5 standard errors; shapes of 0.002 too, where all but one entry vanish."""
    counts, n = np.zeros((2, 2, 3), np.int64), 20_000
    counts[0, 0], counts[1, 1] = [3, 0, 1], [0, 7, 0]
    pseudo = np.array([[[0.5, 1.5, 0.2], [0.002, 0.001, 0.003]], [[2.0, 2.0, 2.0], [0.01, 0.3, 4.0]]])
    c, totals = np.array([0, 1], np.int32), np.array([4, 0])
    state, psi, gamma = rng_state(3), np.empty((2, 2, 3)), np.empty(2)
    sums, squares, gammas = np.zeros_like(psi), np.zeros_like(psi), np.zeros(2)
    for _ in range(n):
        gibbs.draw_rows(counts, pseudo, c, totals, 0.25, state, psi, gamma)
        sums += np.exp(psi)
        squares += np.exp(psi) ** 2
        gammas += np.exp(gamma)
    shape = counts + pseudo[c]
    mass = shape.sum(axis=2, keepdims=True)
    mean = shape / mass
    variance = mean * (1 - mean) / (mass + 1)
    assert (np.abs(sums / n - mean) < 5 * np.sqrt(variance / n)).all()
    np.testing.assert_allclose(squares / n - (sums / n) ** 2, variance, rtol=0.15, atol=1e-5)
    assert abs(gammas[0] / n - 4.25 / 4.5) < 0.01


@pytest.mark.parametrize("arguments", CASES, ids=str)
def test_every_conditional_of_c_is_the_ratio_of_the_joint(arguments: dict) -> None:
    case = random_case(**arguments)
    counts, rows, _ = case.counts()
    C = len(case.eta)
    c, members, proba = case.c.copy(), case.members(), np.zeros((len(case.c), C))
    gibbs.sweep_c(c, members, counts, rows, case.beta, case.eta, case.epsilon_nu / C, rng_state(2), proba)
    for m in range(len(c)):
        logs = [case.joint(c=np.concatenate((c[:m], [k], case.c[m + 1 :]))) for k in range(C)]
        np.testing.assert_allclose(proba[m], normalised(logs), rtol=1e-9, atol=1e-300)
    np.testing.assert_array_equal(members, np.bincount(c, minlength=C))


def test_c_is_drawn_from_its_conditional() -> None:
    """Of the first annotator, whom no other move of the sweep comes before (20,000 draws, 5 standard errors)."""
    case = random_case(5)
    counts, rows, _ = case.counts()
    C, n, state = len(case.eta), 20_000, rng_state(5)
    drawn, proba = np.zeros(C), np.zeros((len(case.c), C))
    for _ in range(n):
        c = case.c.copy()
        gibbs.sweep_c(c, case.members(), counts, rows, case.beta, case.eta, case.epsilon_nu / C, state, proba)
        drawn[c[0]] += 1
    assert (np.abs(drawn / n - proba[0]) < 5 * np.sqrt(proba[0] * (1 - proba[0]) / n) + 1e-12).all()


def test_the_target_of_a_split_is_the_joint_and_the_last_choice_its_conditional() -> None:
    case = random_case(4, C=2)
    counts, rows, _ = case.counts()
    shown: dict[tuple[int, ...], tuple[float, float, float]] = {}
    for rest in product((0, 1), repeat=3):
        side = np.array([0, 1, *rest], np.int8)
        told = (side, 0, 1, counts, rows, case.beta, case.eta, case.epsilon_nu / 2, rng_state(0), False)
        shown[rest] = (*metropolis._choose.py_func(*told), case.joint(c=side.astype(np.int32)))
    beyond = [target - joint for _, target, joint in shown.values()]
    np.testing.assert_allclose(beyond, beyond[0], rtol=1e-9)
    for m, n in product((0, 1), repeat=2):
        one, other = shown[m, n, 1], shown[m, n, 0]
        assert one[0] - other[0] == pytest.approx(one[2] - other[2], rel=1e-9)


def test_a_split_takes_along_whoever_errs_in_the_same_way() -> None:
    """Three who are right and three who turn all labels round: no move of one of them would do."""
    counts = np.array([[[30, 2], [2, 30]]] * 3 + [[[2, 30], [30, 2]]] * 3)
    c, members, state = np.zeros(6, np.int32), np.array([6, 0]), rng_state(0)
    beta, eta = np.full((2, 2, 2), 0.5), np.full((2, 2), 20.0)
    for _ in range(200):
        split_or_merge(c, members, counts, counts.sum(axis=2), beta, eta, np.ones((2, 2)), 0.04, 0.5, state)
    assert len(set(c[:3])) == len(set(c[3:])) == 1
    assert c[0] != c[3]
    assert members.tolist() == [3, 3]


def test_splits_and_merges_leave_the_posterior_as_it_is() -> None:
    """Models drawn from the prior, and votes from them: moved by splits and merges, they are as before on average.

    Without votes, and with some: 8 moves of each of 4,000 models, 5 standard errors.
    """
    alpha, rate, epsilon, C, L, T, n = np.array([[3.0, 1.0], [1.0, 2.0]]), 0.04, 1.5, 3, 4, 2, 4_000
    for n_votes in (0, 6):
        rng, state = np.random.default_rng(n_votes), rng_state(n_votes)
        seen = np.zeros((n, 2, 4))
        accepted = {-1: 0, 0: 0, 1: 0}
        for turn in range(n):
            _, c, beta, eta = naive.hc_draw_prior(1, L, alpha, rate, epsilon, 1.0, C, T, rng)
            psi = [[rng.dirichlet(eta[k, t] * beta[k, t] + 1e-9) for t in range(T)] for k in c]
            counts = np.array([[rng.multinomial(n_votes, p) for p in own] for own in psi], np.int64)
            rows, members = counts.sum(axis=2), np.bincount(c, minlength=C)
            for after in (0, 1):
                for _ in range(8 * after):
                    arrays, before = (c, members, counts, rows, beta, eta), len(set(c.tolist()))
                    moved = split_or_merge(*arrays, alpha, rate, epsilon / C, state)
                    assert len(set(c.tolist())) == before + moved  # an empty cluster is filled, or one is emptied
                    accepted[moved] += 1
                np.testing.assert_array_equal(members, np.bincount(c, minlength=C))
                log_eta = float(np.log(eta[c] + 1e-9).mean())
                seen[turn, after] = len(set(c.tolist())), c[0] == c[1], log_eta, beta[c, 0, 0].mean()
        assert min(accepted.values()) > n / 5
        change = seen[:, 1] - seen[:, 0]
        assert (np.abs(change.mean(axis=0)) < 5 * change.std(axis=0) / np.sqrt(n)).all(), n_votes


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_gains_of_beta_and_eta_are_ratios_of_the_joint(seed: int, levels: int) -> None:
    case = random_case(seed, levels=levels)
    rng = np.random.default_rng(seed)
    counts, rows, _ = case.counts()
    now = case.joint()
    C, T = case.eta.shape
    for k, t, j in [(k, t, j) for k in range(C) for t in range(T) for j in range(T) if j != t]:
        group = np.flatnonzero(case.c == k)
        beta = case.beta.copy()
        tau = beta[k, t, j] + beta[k, t, t]
        beta[k, t, j] = rng.uniform(0, tau)
        beta[k, t, t] = tau - beta[k, t, j]
        got = metropolis.beta_gain(group, counts, t, j, case.beta[k, t], case.eta[k, t], case.alpha[t], beta[k, t, j])
        np.testing.assert_allclose(got, case.joint(beta=beta) - now, rtol=1e-9, atol=1e-10)
        eta = case.eta.copy()
        eta[k, t] = rng.lognormal(1, 2)
        got = -case.rate * (eta[k, t] - case.eta[k, t])
        got += metropolis.row_score(group, counts, rows, t, case.beta[k, t], eta[k, t])
        got -= metropolis.row_score(group, counts, rows, t, case.beta[k, t], case.eta[k, t])
        np.testing.assert_allclose(got, case.joint(eta=eta) - now, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_log_joint_is_the_naive_one(seed: int, levels: int) -> None:
    case = random_case(seed, levels=levels)
    epsilons = case.epsilon_nu / len(case.eta), case.epsilon_gamma / case.n_states()
    parameters = case.beta, case.eta, case.hard, case.alpha, case.rate
    got = gibbs.log_joint(case.c, case.members(), *case.counts(), *parameters, *epsilons)
    np.testing.assert_allclose(got, case.joint(), rtol=1e-11)


def test_z_is_drawn_from_its_conditional() -> None:
    """The draws of one token follow the probabilities that are handed out (20,000 draws, 5 standard errors)."""
    case = random_case(3, n_tokens=1, share=1.0)
    psi, gamma = tables(case, 3)
    state, n = rng_state(5), 20_000
    drawn = np.zeros(3)
    for _ in range(n):
        z, proba = draw_z(case, psi, gamma, state)
        drawn[z[0]] += 1
    error = np.sqrt(proba[0] * (1 - proba[0]) / n)
    assert (np.abs(drawn / n - proba[0]) < 5 * error + 1e-12).all()


def test_moves_stay_on_the_simplex_and_leave_nothing_unmoved() -> None:
    case = random_case(4)
    counts, rows, _ = case.counts()
    state, before, step = rng_state(4), case.beta.copy(), np.ones_like(case.eta)
    eta = case.eta.copy()
    for _ in range(100):
        metropolis.move_beta(case.c, counts, case.beta, case.eta, case.alpha, state)
        metropolis.move_eta(case.c, counts, rows, case.beta, case.eta, case.rate, step, 0.0, state)
    np.testing.assert_allclose(case.beta.sum(axis=2), 1, rtol=1e-12)
    assert (case.beta > 0).all()
    assert (case.eta > 0).all()
    assert (case.beta != before).all()
    assert (case.eta != eta).all()
    assert (step == 1).all()


@pytest.mark.parametrize(("x", "n"), [(1e-9, 3), (0.3, 0), (0.3, 1), (0.7, 12), (0.7, 13), (40.0, 5), (1e-5, 5000)])
def test_rising_factorial(x: float, n: int) -> None:
    np.testing.assert_allclose(gibbs.rising(x, n), lgamma(x + n) - lgamma(x), rtol=1e-11, atol=1e-12)


def test_random_numbers_have_the_moments_they_should() -> None:
    state, n = rng_state(0), 40_000
    for shape in (0.3, 1.0, 4.5):
        x = np.array([rnd.gamma(state, shape) for _ in range(n)])
        assert abs(x.mean() - shape) < 5 * np.sqrt(shape / n)
        assert abs(x.var() / shape - 1) < 0.1
    x = np.array([rnd.normal(state) for _ in range(n)])
    assert abs(x.mean()) < 5 / np.sqrt(n)
    assert abs(x.var() - 1) < 5 * np.sqrt(2 / n)
    assert abs(np.mean(x**4) - 3) < 5 * np.sqrt(96 / n)
    x = np.array([rnd.uniform(state) for _ in range(n)])
    assert abs(x.mean() - 0.5) < 5 / np.sqrt(12 * n)
    assert x.min() > 0
    assert x.max() < 1
    x = np.array([rnd.exponential(state, 4.0) for _ in range(n)])
    assert abs(x.mean() - 0.25) < 5 * 0.25 / np.sqrt(n)
    drawn = np.bincount([rnd.below(state, 3) for _ in range(n)]) / n
    np.testing.assert_allclose(drawn, 1 / 3, atol=5 * np.sqrt(2 / 9 / n))


def test_uniform_is_xoshiro256_plus_plus() -> None:
    """The first outputs for the state (1, 2, 3, 4), computed with Python's integers."""
    mask, s, expected = (1 << 64) - 1, [1, 2, 3, 4], []

    def rotated(x: int, k: int) -> int:
        return ((x << k) | (x >> (64 - k))) & mask

    for _ in range(5):
        expected.append(((((rotated((s[0] + s[3]) & mask, 23) + s[0]) & mask) >> 11) + 0.5) / 2**53)
        shifted = (s[1] << 17) & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = rotated(s[3], 45)
    state = np.array([1, 2, 3, 4], np.uint64)
    assert [rnd.uniform(state) for _ in range(5)] == expected


def test_dirichlet_draws_have_their_mean() -> None:
    state, shape, out = rng_state(1), np.array([0.2, 1.0, 3.0]), np.empty(3)
    draws = []
    for _ in range(20_000):
        rnd.dirichlet(state, shape, out)
        draws.append(out.copy())
    mean = shape / shape.sum()
    error = np.sqrt(mean * (1 - mean) / (shape.sum() + 1) / len(draws))
    assert (np.abs(np.mean(draws, axis=0) - mean) < 5 * error).all()

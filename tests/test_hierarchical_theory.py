"""The sampler of HierarchicalClusters against theory: Geweke's joint-distribution test and calibration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.stats import chi2

import naive
from lasca.corpus.votes import Block
from lasca.engine import added
from lasca.kernels import metropolis
from lasca.kernels.metropolis import split_or_merge
from lasca.truth.base import Votes
from lasca.truth.chains import ess, mcse
from lasca.truth.cluster_sampler import Priors, Sampler, State, StateLearner, Sweep
from lasca.truth.dawid_skene import Tables
from lasca.truth.special import NOTHING_SPECIAL

N, L, T, C = 5, 4, 3, 3
PAIRS = [(i, m) for i in range(N) for m in range(L) if (i + m) % 4]  # every annotator misses some tokens
ALPHA = np.array([[3.0, 0.5, 2.2], [0.4, 2.5, 2.0], [2.5, 0.5, 3.0]])  # far from 1: a wrong sign must show
RATE, EPSILON_NU, EPSILON_GAMMA = 0.4, 2.0, 3.0
HARD = np.array([[1.5, 0.6, 3.0], [2.0, 1.2, 0.7], [0.5, 2.5, 1.0]])
NONE = np.zeros((0, T))
LEVELS = pytest.mark.parametrize("hard", [NONE, HARD], ids=["one level", "two levels"])


@dataclass
class Labelled(State):
    """A state of a chain with the labels it stands for."""

    z: np.ndarray = field(kw_only=True)


class Crowd:
    """The votes of a small crowd, and the two halves of the sampler."""

    def __init__(self, labels: np.ndarray, hard: np.ndarray) -> None:
        per_token = np.bincount([i for i, _ in PAIRS], minlength=N)
        start = np.concatenate(([0], np.cumsum(per_token))).astype(np.int64)
        annotator = np.array([m for _, m in PAIRS], np.int32)
        votes = Votes(start, annotator, labels, L, T, np.arange(N + 1))
        self.blocks = [Block(votes, 0, 3, 0), Block(votes, 3, N, 1)]
        self.sampler = Sampler(Priors(ALPHA, RATE, EPSILON_NU, EPSILON_GAMMA, hard))
        self.learner = StateLearner(L, T, 2 if len(hard) else 1, None)
        self.number = 0

    def draw_labels(self, state: Labelled) -> None:
        """Draw Ψ, γ and the labels."""
        self.number += 1
        self.visit(state, *self.sampler.draw(state))

    def visit(self, state: Labelled, log_psi: np.ndarray, log_gamma: np.ndarray) -> None:
        sweep = Sweep((Tables(log_psi.transpose(0, 2, 1), log_gamma),), (int(state.rng[0]),), self.number)
        nothing = np.zeros((0, T), np.float32)
        parts = [self.learner.draw(sweep, 0, block, NOTHING_SPECIAL, nothing) for block in self.blocks]
        state.z = np.concatenate(parts)
        counts, totals = added([self.learner.visit(sweep, block, None)[0] for block in self.blocks])
        state.take(counts[0], totals[0])

    def sweep(self, state: Labelled) -> None:
        self.number += 1
        self.visit(state, *self.sampler.move(state, 0.0))

    def recount(self, state: Labelled) -> None:
        counts, totals = np.zeros_like(state.counts), np.zeros_like(state.totals)
        for block in self.blocks:
            self.learner.count(block, state.z[block.first : block.last], counts, totals)
        state.take(counts, totals)


def state_from_prior(rng: np.random.Generator, hard: np.ndarray) -> Labelled:
    S = T + len(hard)
    z, c, beta, eta = naive.hc_draw_prior(N, L, ALPHA, RATE, EPSILON_NU, EPSILON_GAMMA, C, S, rng)
    return Labelled(
        z=z,
        c=c,
        members=np.bincount(c, minlength=C),
        beta=np.maximum(beta, 1e-300),
        eta=eta,
        counts=np.zeros((L, S, T), np.int64),
        totals=np.zeros(S, np.int64),
        step=np.full((C, T), 1.5),
        rng=rng.integers(0, 2**64, 4, dtype=np.uint64),
        c_proba=np.zeros((L, C)),
    )


def features(state: Labelled, labels: np.ndarray) -> list[float]:
    """Functions of parameters and data, first and second moments: what a wrong acceptance ratio would bend."""
    z, c, beta, eta = state.z, state.c, state.beta, state.eta
    right = sum(labels[n] == z[i] % T for n, (i, _) in enumerate(PAIRS))
    right_hard = sum(labels[n] == z[i] - T for n, (i, _) in enumerate(PAIRS))
    own_eta, own_beta = eta[c], beta[c]
    together = float((c[:, None] == c[None, :]).sum())
    log_eta = np.log(eta)
    return [
        *beta[0, [0, 1, 2], [0, 1, 2]],
        beta[0, 0, 1],
        float((beta**2).sum()),
        float(np.log(beta).mean()),
        float(log_eta.mean()),
        float((log_eta**2).mean()),
        float(eta.mean()),
        float(np.log1p(own_eta).mean()),
        float(own_beta[:, [0, 1, 2], [0, 1, 2]].mean()),
        together,
        together**2,
        float((c[0] == c[1]) * log_eta[c[0], 0]),
        float((z == 0).sum()),
        float((z[:, None] == z[None, :]).sum()),
        float(right),
        float(right**2),
        float((labels == 1).sum()),
        float((labels[:, None] == labels[None, :]).sum()),
        float(right * log_eta.mean()),
        float(right * own_beta[:, 0, 0].mean()),
        float((own_eta[:, 0] < 0.5).sum()),
        *([float((z >= T).sum()), float((z >= T).sum() ** 2), float(right_hard)] if len(state.totals) > T else []),
    ]


def draw_labels(state: Labelled, hard: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return naive.hc_draw_labels(PAIRS, state.z, state.c, state.beta, state.eta, hard, rng)


def from_the_model(n: int, rng: np.random.Generator, hard: np.ndarray) -> np.ndarray:
    """Independent draws: parameters from the prior, data given them."""
    out = []
    for _ in range(n):
        state = state_from_prior(rng, hard)
        out.append(features(state, draw_labels(state, hard, rng)))
    return np.array(out)


def by_turns(
    n: int, rng: np.random.Generator, sweep: Callable[[Crowd, Labelled], object], hard: np.ndarray
) -> np.ndarray:
    """Turn by turn: data given parameters, then one transition of the sampler given the data."""
    state, out = state_from_prior(rng, hard), []
    labels = np.zeros(len(PAIRS), np.int16)
    crowd = Crowd(labels, hard)
    for _ in range(n):
        labels[:] = draw_labels(state, hard, rng)
        crowd.recount(state)
        sweep(crowd, state)
        out.append(features(state, labels))
    return np.array(out)


def z_scores(n: int, seed: int, sweep: Callable[[Crowd, Labelled], object], hard: np.ndarray = NONE) -> np.ndarray:
    rng = np.random.default_rng(seed)
    direct, turned = from_the_model(n, rng, hard), by_turns(n, rng, sweep, hard)
    return np.array(
        [(a.mean() - b.mean()) / np.hypot(a.std(ddof=1) / np.sqrt(n), mcse(b)) for a, b in zip(direct.T, turned.T)]
    )


def whole_sweep(crowd: Crowd, state: Labelled) -> None:
    crowd.sweep(state)


@LEVELS
def test_geweke_short(hard: np.ndarray) -> None:
    """The same means (in Monte-Carlo standard errors) from the model and from the sampler in turn with the data."""
    scores = z_scores(6_000, 1, whole_sweep, hard)
    assert np.abs(scores).max() < 4.0, scores.round(2)


def split_merge_only(taken: list[int]) -> Callable[[Crowd, Labelled], None]:
    """All moves but those of single annotators: nothing repairs what a wrong split or merge does to the clusters."""

    def sweep(crowd: Crowd, state: Labelled) -> None:
        s, p = state, crowd.sampler.priors
        for _ in range(4):
            moved = split_or_merge(
                s.c, s.members, s.counts, s.rows, s.beta, s.eta, p.alpha, p.rate, p.epsilon_nu / C, s.rng
            )
            taken.append(moved)
        metropolis.move_beta(s.c, s.counts, s.beta, s.eta, p.alpha, s.rng)
        metropolis.move_eta(s.c, s.counts, s.rows, s.beta, s.eta, p.rate, s.step, 0.0, s.rng)
        metropolis.refresh_empty(s.c, s.rows, s.beta, s.eta, p.alpha, p.rate, s.rng)
        crowd.draw_labels(state)

    return sweep


def test_geweke_of_split_and_merge_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a prior of η near the move's proposal: elsewhere it is hardly ever taken and would test nothing."""
    monkeypatch.setitem(globals(), "RATE", 0.04)
    taken: list[int] = []
    scores = z_scores(6_000, 5, split_merge_only(taken), HARD)
    assert taken.count(1) > 300
    assert taken.count(-1) > 300
    assert np.abs(scores).max() < 4.0, scores.round(2)


def test_geweke_finds_a_missing_jacobian() -> None:
    """The test would notice: the same sampler with η' / η left out of the ratio, which is λ_η's prior times 1/η."""

    def wrong(crowd: Crowd, state: Labelled) -> None:
        s, p = state, crowd.sampler.priors
        whole_sweep(crowd, state)
        for k, t in np.ndindex(state.eta.shape):
            new = s.eta[k, t] * np.exp(1.5 * normal())
            group = np.flatnonzero(s.c == k)
            gain = -p.rate * (new - s.eta[k, t])
            gain += metropolis.row_score(group, s.counts, s.rows, t, s.beta[k, t], new)
            gain -= metropolis.row_score(group, s.counts, s.rows, t, s.beta[k, t], s.eta[k, t])
            if np.log(uniform()) < gain:
                s.eta[k, t] = new

    rng = np.random.default_rng(0)
    normal, uniform = rng.normal, rng.random
    assert np.abs(z_scores(3_000, 2, wrong)).max() > 8.0


def test_geweke_finds_rows_that_forget_the_votes() -> None:
    """The short test would notice: the same sampler with Ψ drawn from its prior."""

    def wrong(crowd: Crowd, state: Labelled) -> None:
        crowd.number += 1
        crowd.sampler.move(state, 0.0)
        counts = state.counts.copy()
        state.counts[:] = 0
        drawn = crowd.sampler.draw(state)
        state.counts[:] = counts
        crowd.visit(state, *drawn)

    assert np.abs(z_scores(6_000, 2, wrong)).max() > 4.0


@pytest.mark.slow
@LEVELS
@pytest.mark.parametrize("seed", [11, 12])
def test_geweke_long(seed: int, hard: np.ndarray) -> None:
    scores = z_scores(150_000, seed, whole_sweep, hard)
    assert np.abs(scores).max() < 4.0, scores.round(2)


def calibration(n_runs: int, n_draws: int, thin: int, seed: int, hard: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranks of true values among posterior draws (n_runs, n_quantities), and the effective draws per quantity."""
    rng = np.random.default_rng(seed)
    ranks, effective = [], []
    for _ in range(n_runs):
        true = state_from_prior(rng, hard)
        labels = draw_labels(true, hard, rng)
        crowd = Crowd(labels, hard)
        state = state_from_prior(rng, hard)
        crowd.recount(state)
        for _ in range(60):
            whole_sweep(crowd, state)
        draws = []
        for _ in range(n_draws):
            for _ in range(thin):
                whole_sweep(crowd, state)
            draws.append(calibrated(state))
        draws_ = np.array(draws)
        ranks.append((draws_ < calibrated(true)).sum(axis=0))
        effective.append([ess(x) for x in draws_.T])
    return np.array(ranks), np.array(effective)


def calibrated(state: Labelled) -> np.ndarray:
    """Continuous quantities that do not depend on the names of clusters."""
    eta, beta = state.eta[state.c], state.beta[state.c]
    return np.array(
        [eta[0, 0], eta.mean(), beta[0, 0, 0], beta[1, 2, 1], np.log(beta).mean(), (eta * beta[:, 0]).sum()]
    )


def uniformity(ranks: np.ndarray, n_draws: int, n_bins: int) -> np.ndarray:
    """p values of a χ² test that ranks are uniform, one per quantity."""
    p = []
    for column in ranks.T:
        observed = np.bincount(column * n_bins // (n_draws + 1), minlength=n_bins)
        expected = len(column) / n_bins
        p.append(chi2.sf(((observed - expected) ** 2 / expected).sum(), n_bins - 1))
    return np.array(p)


@LEVELS
def test_simulation_based_calibration_mini(hard: np.ndarray) -> None:
    ranks, effective = calibration(n_runs=150, n_draws=19, thin=15, seed=3, hard=hard)
    assert np.median(effective) > 10
    p = uniformity(ranks, 19, 5)
    assert p.min() > 1e-3 / len(p), p


@pytest.mark.slow
@LEVELS
def test_simulation_based_calibration(hard: np.ndarray) -> None:
    ranks, _ = calibration(n_runs=2000, n_draws=19, thin=25, seed=4, hard=hard)
    p = uniformity(ranks, 19, 20)
    assert p.min() > 1e-3 / len(p), p

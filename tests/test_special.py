"""Special functions against SciPy, and Dirichlet terms against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import logsumexp, psi
from scipy.stats import dirichlet

from lasca.kernels import special

POINTS = [1e-8, 1e-3, 0.1, 0.5, 1.0, 1.4616321449683622, 2.0, 5.5, 9.999, 10.0, 37.2, 1e3, 1e9]


@pytest.mark.parametrize("x", POINTS)
def test_digamma(x: float) -> None:
    assert special.digamma(x) == pytest.approx(float(psi(x)), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_log_rising_is_a_product(n: int) -> None:
    expected = sum(math.log(0.3 + k) for k in range(n))
    assert special.log_rising(0.3, float(n)) == pytest.approx(expected, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("x", [-800.0, -30.0, -1.0, 0.0, 1.0, 30.0, 800.0])
def test_log_sigmoid(x: float) -> None:
    assert special.log_sigmoid(x) == pytest.approx(-float(np.logaddexp(0, -x)), rel=1e-14, abs=0)


def test_log_sum_exp() -> None:
    rng = np.random.default_rng(0)
    for values in (rng.normal(0, 300, 9), np.array([-1e6, -1e6 - 1]), np.array([3.0]), np.array([-np.inf, 2.0])):
        assert special.log_sum_exp(values) == pytest.approx(float(logsumexp(values)), rel=1e-13)
    assert special.log_sum_exp(np.full(3, -np.inf)) == -np.inf
    assert special.log_sum_exp(np.empty(0)) == -np.inf


def test_log_dirichlet_is_the_density() -> None:
    rng = np.random.default_rng(1)
    alpha = rng.gamma(2.0, 1.0, (4, 3))
    p = np.array([rng.dirichlet(a) for a in alpha])
    expected = sum(dirichlet(a).logpdf(x) for a, x in zip(alpha, p))
    assert special.log_dirichlet(np.log(p), alpha) == pytest.approx(expected, rel=1e-10)


def test_expected_log_and_kl_by_simulation() -> None:
    """E ln p and KL(Dir(a) || Dir(b)) against a hundred thousand draws, in standard errors."""
    rng = np.random.default_rng(2)
    a, b = np.array([2.0, 0.7, 4.0]), np.array([1.0, 1.5, 0.5])
    draws = rng.dirichlet(a, size=100_000)
    error = np.log(draws).std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(np.log(draws).mean(axis=0) - special.expected_log(a)) < 5 * error).all()
    ratio = dirichlet(a).logpdf(draws.T) - dirichlet(b).logpdf(draws.T)
    assert abs(ratio.mean() - special.dirichlet_kl(a, b)) < 5 * ratio.std() / np.sqrt(len(draws))
    assert special.dirichlet_kl(a, a) == pytest.approx(0, abs=1e-12)
    assert special.dirichlet_kl(np.stack([a, b]), b) == pytest.approx(special.dirichlet_kl(a, b), rel=1e-12)

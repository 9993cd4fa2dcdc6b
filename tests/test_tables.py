"""Special functions against NumPy, and Dirichlet terms against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import dirichlet

from lasca.kernels import tables
from lasca.kernels.glad import log_sigmoid


@pytest.mark.parametrize("x", [-800.0, -30.0, -1.0, 0.0, 1.0, 30.0, 800.0])
def test_log_sigmoid(x: float) -> None:
    assert log_sigmoid(x) == pytest.approx(-float(np.logaddexp(0, -x)), rel=1e-14, abs=0)


def test_expected_log_and_kl_by_simulation() -> None:
    """E ln p and KL(Dir(a) || Dir(b)) against a hundred thousand draws, in standard errors."""
    rng = np.random.default_rng(2)
    a, b = np.array([2.0, 0.7, 4.0]), np.array([1.0, 1.5, 0.5])
    draws = rng.dirichlet(a, size=100_000)
    error = np.log(draws).std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(np.log(draws).mean(axis=0) - tables.expected_log(a)) < 5 * error).all()
    ratio = dirichlet(a).logpdf(draws.T) - dirichlet(b).logpdf(draws.T)
    assert abs(ratio.mean() - tables.dirichlet_kl(a, b)) < 5 * ratio.std() / np.sqrt(len(draws))
    assert tables.dirichlet_kl(a, a) == pytest.approx(0, abs=1e-12)
    assert tables.dirichlet_kl(np.stack([a, b]), b) == pytest.approx(tables.dirichlet_kl(a, b), rel=1e-12)

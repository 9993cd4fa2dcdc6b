"""Products of tall matrices against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from lasca.kernels.tables import crossed, times


@pytest.mark.parametrize("n", [0, 1, 50])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_products_equal_those_of_numpy(n: int, kind: type) -> None:
    rng = np.random.default_rng(n)
    a, b, table = rng.random((n, 3)), rng.random((n, 5)).astype(kind), rng.random((5, 4))
    np.testing.assert_allclose(crossed(a, b), a.T @ b, rtol=1e-12)
    np.testing.assert_allclose(times(b, table), b @ table, rtol=1e-12)

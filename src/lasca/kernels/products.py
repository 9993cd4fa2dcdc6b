"""Products of tall matrices, (tokens, labels), summed in one order: BLAS sums in one that depends on its threads."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated, import-untyped"
from __future__ import annotations

import numpy as np

from lasca.kernels.compiled import kernel

__all__ = ["crossed", "times"]


@kernel
def crossed(a, b):
    """Return aᵀ b, (T, S), for a (n, T) and b (n, S)."""
    out = np.zeros((a.shape[1], b.shape[1]))
    for i in range(a.shape[0]):
        for t in range(a.shape[1]):
            weight = a[i, t]
            for s in range(b.shape[1]):
                out[t, s] += weight * b[i, s]
    return out


@kernel
def times(a, table):
    """Return a · table, (n, S), for a (n, T) and a table (T, S)."""
    out = np.zeros((a.shape[0], table.shape[1]))
    for i in range(a.shape[0]):
        for t in range(a.shape[1]):
            weight = a[i, t]
            for s in range(table.shape[1]):
                out[i, s] += weight * table[t, s]
    return out

"""Random numbers for kernels: xoshiro256++ on an explicit state of four uint64: the seed alone decides.

Blackman & Vigna 2021, "Scrambled linear pseudorandom number generators". A state comes from
`numpy.random.SeedSequence.generate_state(4, np.uint64)`; every function changes it in place.
"""

from __future__ import annotations

import math

import numpy as np

from lasca.kernels.compiled import kernel

__all__ = ["below", "dirichlet", "exponential", "gamma", "normal", "uniform"]

_SHIFT_11, _SHIFT_17, _SHIFT_23, _SHIFT_45 = np.uint64(11), np.uint64(17), np.uint64(23), np.uint64(45)
_SHIFT_19, _SHIFT_41 = np.uint64(19), np.uint64(41)
_SCALE = 2.0**-53


@kernel
def uniform(state: np.ndarray) -> float:
    """Return a number in the open interval (0, 1)."""
    total = state[0] + state[3]
    bits = ((total << _SHIFT_23) | (total >> _SHIFT_41)) + state[0]
    shifted = state[1] << _SHIFT_17
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = (state[3] << _SHIFT_45) | (state[3] >> _SHIFT_19)
    return (float(bits >> _SHIFT_11) + 0.5) * _SCALE


@kernel
def below(state: np.ndarray, n: int) -> int:
    """Return a whole number in 0..n-1 (n far below 2**53: the bias is below 1e-10)."""
    return min(int(uniform(state) * n), n - 1)


@kernel
def normal(state: np.ndarray) -> float:
    """Return a standard normal number (Box and Muller; the second one is not kept, so that the state is all)."""
    return math.sqrt(-2.0 * math.log(uniform(state))) * math.cos(2.0 * math.pi * uniform(state))


@kernel
def exponential(state: np.ndarray, rate: float) -> float:
    """Return an exponential number of mean 1 / rate."""
    return -math.log(uniform(state)) / rate


@kernel
def gamma(state: np.ndarray, shape: float) -> float:
    """Return a gamma number of scale 1 (Marsaglia and Tsang 2000; shapes below 1 by their power of a uniform)."""
    boost = 1.0
    if shape < 1.0:
        boost = uniform(state) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    k = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(state)
        v = (1.0 + k * x) ** 3
        if v > 0.0 and math.log(uniform(state)) < 0.5 * x * x + d - d * v + d * math.log(v):
            return boost * d * v  # type: ignore[no-any-return]


@kernel
def dirichlet(state: np.ndarray, shape: np.ndarray, out: np.ndarray) -> None:
    """Fill `out` with a draw from a Dirichlet; no entry is smaller than 1e-200, so that logarithms exist."""
    total = 0.0
    for j in range(len(shape)):
        out[j] = max(gamma(state, shape[j]), 1e-200)
        total += out[j]
    for j in range(len(shape)):
        out[j] = max(out[j] / total, 1e-200)

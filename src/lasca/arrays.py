"""Arrays: the short names of their types that all rooms use, runs of numbers, and views nobody can write through."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Bools", "Codes", "Floats", "Ints", "Ints32", "Proba", "borders", "followers", "ranges", "readonly"]

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int16]
"""Codes of labels; -1 where there is none."""
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Ints32 = npt.NDArray[np.int32]
"""Codes of annotators and words."""
Proba = npt.NDArray[np.float32]
"""Probabilities, as they are kept."""
_Array = TypeVar("_Array", bound=npt.NDArray[Any])


def readonly(array: _Array) -> _Array:
    """Return a view that cannot be written through: to Numba a type of its own, and the one that kernels are given."""
    view = array.view()
    view.flags.writeable = False
    return view


def borders(lengths: npt.ArrayLike) -> Ints:
    """Return where pieces of these lengths begin, one behind the other, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def followers(offsets: Ints) -> Ints:
    """Return the tokens that have one before them in their sequence."""
    first = np.zeros(int(offsets[-1]) + 1, np.bool_)
    first[offsets] = True
    return np.flatnonzero(~first)


def ranges(starts: Ints, stops: Ints) -> Ints:
    """Return the numbers of all half-open ranges [start, stop) behind each other."""
    lengths = stops - starts
    return np.arange(int(lengths.sum()), dtype=np.int64) + np.repeat(starts - borders(lengths)[:-1], lengths)

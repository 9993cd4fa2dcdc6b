"""Work on chunks of sequences in threads; kernels release the GIL.

The chunks depend on the data alone, never on the number of threads, and results come back in the order of the
chunks: summed in that order, they are the same bytes with one thread and with many.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from lasca.estimator import check_int

__all__ = ["available_threads", "chunks", "each_ordered", "run_ordered"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_threads(n_threads: int | None = None) -> int:
    """Return the number of threads to use: what was asked for, else the cores this process may run on."""
    if n_threads is not None:
        return check_int("n_threads", n_threads, low=1)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def chunks(offsets: npt.NDArray[np.int64], target: int = 50_000) -> list[tuple[int, int]]:
    """Cut sequences into runs [first, last) of about `target` items each, where `offsets` counts the items."""
    n_sequences = len(offsets) - 1
    total = int(offsets[-1] - offsets[0]) if n_sequences else 0
    n_chunks = max(1, round(total / target))
    cuts = offsets[0] + total * np.arange(1, n_chunks) // n_chunks
    borders = np.unique(np.concatenate(([0], np.searchsorted(offsets, cuts), [n_sequences])))
    return [(int(a), int(b)) for a, b in pairwise(borders)]


def each_ordered(work: Callable[[Item], Result], items: Iterable[Item], n_threads: int) -> Iterator[Result]:
    """Apply `work` to every item, in threads, and give the results in the order of the items.

    Few results wait at any time: what is in flight is bounded by the number of threads.
    """
    if n_threads <= 1:
        yield from map(work, items)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) >= 2 * n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def run_ordered(work: Callable[[Item], Result], items: Iterable[Item], n_threads: int | None = None) -> list[Result]:
    """Apply `work` to every item, in threads, and return the results in the order of the items."""
    todo = list(items)
    return list(each_ordered(work, todo, min(available_threads(n_threads), len(todo))))

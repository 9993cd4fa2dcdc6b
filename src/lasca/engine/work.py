"""Where the visits of a learner run: an engine opens work on blocks, and the work visits them.

    engine.open(learner, blocks, scratch) -> work
    work.summary()                       the summaries of all blocks, added up
    work.sum(state)                      the statistics of one visit of every block, added up in the order of the blocks
    work.map(function, state)            what function(state, block) returns, of each block
    work.describe(state, finish)         the learner's word on each block at the end, and what `finish` makes of it
    work.reset(), work.keep(), work.back()   locals: forget them, keep a copy of them, take the copy

`Threads` is the usual engine: kernels release the GIL. That of `lasca.engine.cluster` has workers in other processes,
here or on other machines. Sums are the same bytes with any engine and any number of threads: blocks, and the chunks
that other work in threads is cut into, depend on the data alone, and results are added up in their order. Blocks may be
on disk: they are loaded for a visit, and let go.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from lasca.arrays import Ints
from lasca.estimator import check_int
from lasca.records import read_record, write_record

__all__ = [
    "Engine", "Locals", "Threads", "Work", "WorkWithLocals", "added", "are_here", "available_threads", "chunks",
    "described", "each_ordered", "read_local", "run_ordered", "write_local",
]  # fmt: skip

Item = TypeVar("Item")
Result = TypeVar("Result")


# --- the contract -----------------------------------------------------------------------------------------------------


class Work(Protocol):
    """A learner at work on the blocks of a corpus."""

    def summary(self) -> tuple[Any, ...]:
        """Return the summaries of all blocks, added up."""

    def sum(self, state: Any) -> tuple[Any, ...]:
        """Visit every block and return the statistics, added up in the order of the blocks."""

    def map(self, function: Callable[[Any, Any], Any], state: Any) -> list[Any]:
        """Return function(state, block) of every block; both may be sent elsewhere."""

    def describe(self, state: Any, finish: Any) -> list[Any]:
        """Let the learner describe every block; return `finish(number, block, proba, labels, statistics)` of each."""

    def reset(self) -> None:
        """Forget all locals."""

    def keep(self) -> None:
        """Keep the locals as they are now."""

    def back(self) -> None:
        """Take the locals that were kept."""

    def close(self) -> None:
        """Let go of what the engine holds."""


class Engine(Protocol):
    """What runs the visits of a learner."""

    def open(self, learner: Any, blocks: Sequence[Any], scratch: Path | None = None) -> Work:
        """Begin work on blocks; `scratch` is a folder for what must be kept of blocks that are on disk."""


def added(parts: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Add up tuples of arrays and numbers in their order; the arrays of the first part are written to."""
    total: list[Any] = []
    for part in parts:
        if not total:
            total = list(part)
            continue
        for i, more in enumerate(part):
            total[i] += more
    return tuple(total)


def are_here(blocks: Sequence[Any]) -> bool:
    """Say whether blocks are in memory, as all of a corpus are or none: the first one is asked."""
    return all(block.load() is block for block in blocks[:1])


def described(learner: Any, state: Any, block: Any, local: Any, finish: Any) -> Any:
    """Let a learner describe a block, and finish it."""
    block = block.load()
    proba = np.empty((len(block), block.votes.n_labels), np.float32)
    return finish(block.number, block, proba, *learner.describe(state, block, local, proba))


# --- what is kept of blocks -------------------------------------------------------------------------------------------


class WorkWithLocals:
    """Work that holds locals here, whoever visits the blocks."""

    locals: Locals

    def reset(self) -> None:
        """Forget all locals."""
        self.locals.reset()

    def keep(self) -> None:
        """Keep the locals as they are now."""
        self.locals.keep()

    def back(self) -> None:
        """Take the locals that were kept."""
        self.locals.back()

    def close(self) -> None:
        """Let go of the locals."""
        self.locals.close()


class Locals:
    """What a learner keeps of each block from visit to visit, in versions: a visit reads one and writes the next.

    In memory everything is kept. Of blocks on disk only what cannot be made again from the block is, in files: that of
    learners that say they remember earlier visits (`remembers = True`). Learners never write to what they have kept
    (but for sums of samplers, which never take a version up again).
    """

    def __init__(self, learner: Any, folder: Path | None, *, in_memory: bool) -> None:
        self.in_memory = in_memory
        self.remembers = in_memory or bool(getattr(learner, "remembers", False))
        self.temporary = tempfile.mkdtemp(prefix="lasca-") if self.remembers and not in_memory and not folder else None
        self.folder = Path(self.temporary) if self.temporary else folder
        self.held: dict[tuple[int, int], Any] = {}
        self.now: int | None = None
        self.kept: int | None = None
        self.pinned: int | None = None
        self.last = 0

    def take(self, number: int) -> Any:
        """Return what was kept of a block, None before its first visit."""
        if self.now is None or not self.remembers:
            return None
        return self.held[self.now, number] if self.in_memory else read_local(self.folder, self.now, number)

    def put(self, number: int, local: Any) -> None:
        """Keep something of a block, for the next version."""
        if self.in_memory:
            self.held[self.last + 1, number] = local
        elif self.remembers:
            write_local(self.folder, self.last + 1, number, local)

    def turn(self) -> None:
        """Begin the next version: all blocks were visited."""
        old, self.last = self.now, self.last + 1
        self.now = self.last
        self._drop(old)

    def _drop(self, version: int | None) -> None:
        if version is None or version in (self.now, self.kept, self.pinned):
            return
        for key in [key for key in self.held if key[0] == version]:
            del self.held[key]
        if self.remembers and self.folder is not None:
            for file in self.folder.glob(f"{version:06d}-*"):
                file.unlink(missing_ok=True)

    def reset(self) -> None:
        """Forget all."""
        old, self.now = self.now, None
        self._drop(old)

    def keep(self) -> None:
        """Keep them as they are now."""
        old, self.kept = self.kept, self.now
        self._drop(old)

    def pin(self) -> None:
        """Hold on to the version of now until another one is pinned: a checkpoint speaks of it."""
        old, self.pinned = self.pinned, self.now
        self._drop(old)

    def take_up(self, now: int | None, kept: int | None, last: int) -> None:
        """Go on from versions that were left behind by a process that is gone."""
        self.now, self.kept, self.pinned, self.last = now, kept, now, last

    def back(self) -> None:
        """Take those that were kept."""
        old, self.now = self.now, self.kept
        self._drop(old)

    def close(self) -> None:
        """Let go of them."""
        self.held.clear()
        if self.temporary:
            shutil.rmtree(self.temporary, ignore_errors=True)


def read_local(folder: Any, version: int, number: int) -> Any:
    """Read what was kept of a block."""
    return read_record(folder / f"{version:06d}-{number:05d}")


def write_local(folder: Any, version: int, number: int, local: Any) -> None:
    """Keep something of a block in a file."""
    write_record(local, folder / f"{version:06d}-{number:05d}")


# --- in threads -------------------------------------------------------------------------------------------------------


def available_threads(n_threads: int | None = None) -> int:
    """Return the number of threads to use: what was asked for, else the cores this process may run on."""
    if n_threads is not None:
        return check_int("n_threads", n_threads, low=1)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def chunks(offsets: Ints, target: int = 50_000) -> list[tuple[int, int]]:
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


class Threads:
    """Visits in the threads of this process; kernels release the GIL."""

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = available_threads(n_threads)

    def open(self, learner: Any, blocks: Sequence[Any], scratch: Path | None = None) -> ThreadWork:
        """Begin work on blocks."""
        return ThreadWork(learner, blocks, self.n_threads, scratch)


class ThreadWork(WorkWithLocals):
    """A learner at work in threads; as many blocks are loaded at a time as there are threads."""

    def __init__(self, learner: Any, blocks: Sequence[Any], n_threads: int, scratch: Path | None = None) -> None:
        self.learner, self.blocks, self.n_threads = learner, list(blocks), n_threads
        in_memory = are_here(self.blocks)
        self.locals = Locals(learner, None if in_memory else scratch, in_memory=in_memory)

    def _all(self, work: Callable[[int], Any]) -> Iterator[Any]:
        return each_ordered(work, range(len(self.blocks)), self.n_threads)

    def visits(self, state: Any) -> Iterator[tuple[Any, ...]]:
        """Visit every block and give the statistics of each."""

        def visit(i: int) -> tuple[Any, ...]:
            statistics, local = self.learner.visit(state, self.blocks[i].load(), self.locals.take(i))
            self.locals.put(i, local)
            result: tuple[Any, ...] = statistics
            return result

        yield from self._all(visit)
        self.locals.turn()

    def summary(self) -> tuple[Any, ...]:
        """Return the summaries of all blocks, added up."""
        return added(self._all(lambda i: self.learner.summarise(self.blocks[i].load())))

    def sum(self, state: Any) -> tuple[Any, ...]:
        """Visit every block and return the statistics, added up in the order of the blocks."""
        return added(self.visits(state))

    def map(self, function: Callable[[Any, Any], Any], state: Any) -> list[Any]:
        """Return function(state, block) of every block."""
        return list(self._all(lambda i: function(state, self.blocks[i].load())))

    def describe(self, state: Any, finish: Any) -> list[Any]:
        """Let the learner describe every block, and finish it."""
        work = self._all(lambda i: described(self.learner, state, self.blocks[i], self.locals.take(i), finish))
        return list(work)

"""Where the visits of a learner run: an engine opens work on blocks, and the work visits them.

    engine.open(learner, blocks) -> work
    work.summary()                       the summaries of all blocks, added up
    work.sum(state)                      the statistics of one visit of every block, added up in the order of the blocks
    work.describe(state, out)            what the learner says of each block at the end; probabilities go into `out`
    work.reset(), work.keep(), work.back()   locals: forget them, keep a copy of them, take the copy

`Threads` is the usual engine, `Processes` holds every shard in a process of its own. Another engine (a cluster) needs
no more than `open` and these calls. Sums do not depend on the engine.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from itertools import pairwise
from multiprocessing.connection import Connection
from typing import Any, Protocol

from lasca.engine.threads import available_threads, run_ordered
from lasca.errors import LascaError, ModelError

__all__ = ["Engine", "Processes", "Threads", "Work", "added"]


class Work(Protocol):
    """A learner at work on the blocks of a corpus."""

    def summary(self) -> tuple[Any, ...]:
        """Return the summaries of all blocks, added up."""

    def sum(self, state: Any) -> tuple[Any, ...]:
        """Visit every block and return the statistics, added up in the order of the blocks."""

    def describe(self, state: Any, out: Any) -> list[Any]:
        """Let the learner write the probabilities of all tokens to `out`; return what else it says, by block."""

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

    def open(self, learner: Any, blocks: Sequence[Any]) -> Work:
        """Begin work on blocks."""


def added(parts: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Add up tuples of arrays and numbers in their order; the arrays of the first part are written to."""
    total = list(parts[0])
    for part in parts[1:]:
        for i, more in enumerate(part):
            total[i] += more
    return tuple(total)


class Threads:
    """Visits in the threads of this process; kernels release the GIL."""

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = available_threads(n_threads)

    def open(self, learner: Any, blocks: Sequence[Any]) -> ThreadWork:
        """Begin work on blocks."""
        return ThreadWork(learner, blocks, self.n_threads)


class ThreadWork:
    """A learner at work in threads."""

    def __init__(self, learner: Any, blocks: Sequence[Any], n_threads: int) -> None:
        self.learner, self.blocks, self.n_threads = learner, list(blocks), n_threads
        self.locals: list[Any] = [None] * len(self.blocks)
        self.kept = list(self.locals)

    def _all(self, work: Callable[[int], Any]) -> list[Any]:
        return run_ordered(work, range(len(self.blocks)), self.n_threads)

    def summaries(self) -> list[tuple[Any, ...]]:
        """Return the summary of each block."""
        return self._all(lambda i: self.learner.summarise(self.blocks[i]))

    def visits(self, state: Any) -> list[tuple[Any, ...]]:
        """Return the statistics of each block."""

        def visit(i: int) -> tuple[Any, ...]:
            statistics, self.locals[i] = self.learner.visit(state, self.blocks[i], self.locals[i])
            result: tuple[Any, ...] = statistics
            return result

        return self._all(visit)

    def summary(self) -> tuple[Any, ...]:
        """Return the summaries of all blocks, added up."""
        return added(self.summaries())

    def sum(self, state: Any) -> tuple[Any, ...]:
        """Visit every block and return the statistics, added up in the order of the blocks."""
        return added(self.visits(state))

    def describe(self, state: Any, out: Any) -> list[Any]:
        """Let the learner write the probabilities of all tokens to `out`."""
        begins = _begins(self.blocks)

        def describe(i: int) -> Any:
            place = out[begins[i] : begins[i + 1]]
            return self.learner.describe(state, self.blocks[i], self.locals[i], place)

        return self._all(describe)

    def reset(self) -> None:
        """Forget all locals."""
        self.locals = [None] * len(self.blocks)

    def keep(self) -> None:
        """Keep the locals as they are now (learners make new ones, they never write to old ones)."""
        self.kept = list(self.locals)

    def back(self) -> None:
        """Take the locals that were kept."""
        self.locals = list(self.kept)

    def close(self) -> None:
        """Nothing is held."""


def _begins(blocks: Sequence[Any]) -> list[int]:
    begins = [0]
    for block in blocks:
        begins.append(begins[-1] + len(block))
    return begins


class Processes:
    """Visits in processes of their own, one for each shard; blocks are sent once, then only states and statistics."""

    def __init__(self, n_shards: int, method: str = "spawn") -> None:
        self.n_shards, self.method = n_shards, method

    def open(self, learner: Any, blocks: Sequence[Any]) -> ProcessWork:
        """Begin work on blocks, dealt to the shards in runs."""
        n = min(self.n_shards, len(blocks))
        borders = [len(blocks) * i // n for i in range(n + 1)]
        shards = [list(blocks[a:b]) for a, b in pairwise(borders)]
        return ProcessWork(learner, shards, multiprocessing.get_context(self.method))


class ProcessWork:
    """A learner at work in processes."""

    def __init__(self, learner: Any, shards: list[list[Any]], context: Any) -> None:
        self.sizes = [sum(len(block) for block in shard) for shard in shards]
        self.pipes: list[Connection] = []
        self.processes: list[Any] = []
        for shard in shards:
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, learner, shard), daemon=True)
            process.start()
            there.close()
            self.pipes.append(here)
            self.processes.append(process)

    def _ask(self, name: str, *arguments: Any) -> list[Any]:
        for pipe in self.pipes:
            pipe.send((name, arguments))
        answers = []
        for pipe in self.pipes:
            try:
                fine, answer = pipe.recv()
            except EOFError as error:
                raise ModelError(
                    "a process that did part of the work has died", hint="Was there enough memory?"
                ) from error
            if not fine:
                raise ModelError(f"a part of the work failed: {answer}")
            answers.append(answer)
        return answers

    def summary(self) -> tuple[Any, ...]:
        """Return the summaries of all blocks, added up."""
        return added([part for parts in self._ask("summaries") for part in parts])

    def sum(self, state: Any) -> tuple[Any, ...]:
        """Visit every block and return the statistics, added up in the order of the blocks."""
        return added([part for parts in self._ask("visits", state) for part in parts])

    def describe(self, state: Any, out: Any) -> list[Any]:
        """Let the learner write the probabilities of all tokens to `out`."""
        said, begin = [], 0
        for size, (more, part) in zip(self.sizes, self._ask("described", state, out.shape[1], out.dtype.str)):
            out[begin : begin + size] = part
            begin += size
            said += more
        return said

    def reset(self) -> None:
        """Forget all locals."""
        self._ask("reset")

    def keep(self) -> None:
        """Keep the locals as they are now."""
        self._ask("keep")

    def back(self) -> None:
        """Take the locals that were kept."""
        self._ask("back")

    def close(self) -> None:
        """End the processes."""
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.join(5)
            process.terminate()


class _Shard(ThreadWork):
    """The blocks of one process."""

    def described(self, state: Any, width: int, dtype: str) -> tuple[list[Any], Any]:
        import numpy as np

        out = np.empty((sum(len(block) for block in self.blocks), width), dtype=dtype)
        return self.describe(state, out), out


def _serve(pipe: Connection, learner: Any, blocks: list[Any]) -> None:
    """Answer what the driver asks until it hangs up."""
    shard = _Shard(learner, blocks, 1)
    while True:
        try:
            name, arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((True, getattr(shard, name)(*arguments)))
        except Exception as error:
            said = str(error) if isinstance(error, LascaError) else f"{type(error).__name__}: {error}"
            pipe.send((False, said))

"""An engine whose blocks are in processes of their own: learners, states and blocks must be such that can be sent.

It shows that sums do not depend on where the blocks are, without a cluster; users have `lasca.engine.cluster`.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from lasca.engine.work import ThreadWork, added
from lasca.errors import LascaError, ModelError


class Processes:
    """Visits in processes, one for each shard; blocks are sent once, then only states and statistics."""

    def __init__(self, n_shards: int) -> None:
        self.n_shards = n_shards

    def open(self, learner: Any, blocks: Sequence[Any], scratch: Path | None = None) -> ProcessWork:
        n = min(self.n_shards, len(blocks))
        borders = [len(blocks) * i // n for i in range(n + 1)]
        return ProcessWork(learner, [list(blocks[a:b]) for a, b in pairwise(borders)])


class ProcessWork:
    """A learner at work in processes."""

    def __init__(self, learner: Any, shards: list[list[Any]]) -> None:
        context = multiprocessing.get_context("fork")
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
            fine, answer = pipe.recv()
            if not fine:
                raise ModelError(f"a part of the work failed: {answer}")
            answers.append(answer)
        return answers

    def _each(self, name: str, *arguments: Any) -> list[Any]:
        return [part for parts in self._ask(name, *arguments) for part in parts]

    def summary(self) -> tuple[Any, ...]:
        return added(self._each("summaries"))

    def sum(self, state: Any) -> tuple[Any, ...]:
        return added(self._each("visited", state))

    def map(self, function: Callable[[Any, Any], Any], state: Any) -> list[Any]:
        return self._each("map", function, state)

    def describe(self, state: Any, finish: Any) -> list[Any]:
        return self._each("describe", state, finish)

    def reset(self) -> None:
        self._ask("reset")

    def keep(self) -> None:
        self._ask("keep")

    def back(self) -> None:
        self._ask("back")

    def close(self) -> None:
        for pipe in self.pipes:
            with suppress(OSError):  # a process that died
                pipe.send(None)  # a forked process holds copies of the pipes: closing them does not end it
            pipe.close()
        for process in self.processes:
            process.join(5)
            process.terminate()


class Shard(ThreadWork):
    """The blocks of one process; what is said of each is added up elsewhere."""

    def summaries(self) -> list[Any]:
        return [self.learner.summarise(block.load()) for block in self.blocks]

    def visited(self, state: Any) -> list[Any]:
        return list(self.visits(state))


def _serve(pipe: Connection, learner: Any, blocks: list[Any]) -> None:
    """Answer what the driver asks until it hangs up."""
    shard = Shard(learner, blocks, 1)
    while (asked := pipe.recv()) is not None:
        name, arguments = asked
        try:
            pipe.send((True, getattr(shard, name)(*arguments)))
        except Exception as error:
            said = str(error) if isinstance(error, LascaError) else f"{type(error).__name__}: {error}"
            pipe.send((False, said))

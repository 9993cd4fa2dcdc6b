"""Visits on a Dask cluster: one flat round of tasks for each step, and the same bytes as in threads.

A task knows where its block is and loads it itself; nothing is scattered, so nothing is lost with a worker: Dask gives
its tasks to another one, and whatever they make is the same. The state is a task of its own, which workers fetch from
each other. Statistics come back in the order of the blocks and are added up here. What a learner remembers of blocks
lies in files (`Locals`), and what it describes is written by the workers.
"""

from __future__ import annotations

import ctypes
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from lasca import __version__
from lasca.engine.work import Engine, Locals, WorkWithLocals, added, are_here, described, read_local, write_local
from lasca.errors import LascaError, ModelError, ParameterError

__all__ = ["Cluster", "engine_of"]

ALLOWED_FAILURES = 30
"""How many workers may die with the same task before it is given up; Dask's own number is 3."""
BATCH = 16
"""So many statistics are fetched at a time."""
WAIT = 10.0
"""Seconds to wait for a scheduler."""
LOOK = 5.0
"""Seconds after which it is looked whether there are still workers."""
PATIENCE = 120.0
"""Seconds to wait for a worker where none is left, or none that has memory."""
NO_WORKERS = "the cluster has no workers any more"


@contextmanager
def engine_of(wanted: Any) -> Iterator[Engine | None]:
    """Give the engine that is meant, and let go of it at the end.

    None or "threads": the usual one; "dask": a cluster of processes on this machine; the address of a scheduler
    (tcp://…); a Dask client; or an engine.
    """
    if wanted is None or wanted == "threads":
        yield None
    elif hasattr(wanted, "open"):
        yield wanted
    elif type(wanted).__module__.split(".")[0] == "distributed":
        yield Cluster(wanted)
    elif wanted == "dask":
        with _local() as client:
            yield Cluster(client)
    elif isinstance(wanted, str) and "://" in wanted:
        with _connected(wanted) as client:
            yield Cluster(client)
    else:
        raise ParameterError("engine", wanted, "threads, dask, or the address of a scheduler (tcp://HOST:PORT)")


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ModelError(
            "a cluster needs the packages dask and distributed", hint="Install them: pip install 'lasca[dask]'"
        ) from error
    return distributed


@contextmanager
def _local() -> Iterator[Any]:
    """Start a cluster of processes on this machine, one for each core."""
    from lasca.engine.work import available_threads

    distributed = _distributed()
    with (
        distributed.LocalCluster(
            n_workers=available_threads(), threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    distributed = _distributed()
    try:
        client = distributed.Client(address, timeout=WAIT)
    except (OSError, ValueError) as error:
        raise ModelError(
            "no Dask scheduler answers", where=address, hint="Start one (dask scheduler), or use --engine dask"
        ) from error
    with client:
        yield client


class Cluster:
    """Visits on the workers of a Dask client."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def open(self, learner: Any, blocks: Sequence[Any], scratch: Path | None = None) -> ClusterWork:
        """Begin work on blocks, on workers of this version of LASCA."""
        _check_versions(self.client)
        self.client.run_on_scheduler(_allow_failures, n=ALLOWED_FAILURES)
        return ClusterWork(self.client, learner, blocks, scratch)


def _allow_failures(dask_scheduler: Any, n: int) -> None:
    dask_scheduler.allowed_failures = max(dask_scheduler.allowed_failures, n)


def _check_versions(client: Any) -> None:
    """Refuse workers that have another version of LASCA, or none."""
    found = client.run(_own_version, on_error="return")
    if not found:
        raise ModelError("the cluster has no workers", where=client.scheduler.address, hint="Start some: dask worker")
    for address, version in sorted(found.items()):
        if version != __version__:
            raise ModelError(
                f"the worker {address} has another version of LASCA than this one, {__version__}",
                got=version,
                hint="Install the same version everywhere",
            )


class ClusterWork(WorkWithLocals):
    """A learner at work on a cluster."""

    def __init__(self, client: Any, learner: Any, blocks: Sequence[Any], scratch: Path | None) -> None:
        self.client = client
        self.name = f"lasca-{uuid.uuid4().hex[:12]}"
        self.round = 0
        self.locals = Locals(learner, scratch, in_memory=False)
        self.learner = self._hold(learner, "learner")
        here = are_here(blocks)
        self.blocks = [self._hold(block, f"block-{i}") if here else block for i, block in enumerate(blocks)]

    def _hold(self, value: Any, name: str) -> Any:
        """Make a task of a value, which workers fetch from each other: if it is lost, Dask does the task again."""
        return self.client.submit(_itself, value, key=f"{self.name}-{self.round}-{name}", pure=False)

    def _each(self, task: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Run a task for every block, all at once; give the results in the order of the blocks."""
        self.round += 1
        name = task.__name__.strip("_")
        futures = [
            self.client.submit(
                task,
                __version__,
                self.learner,
                block,
                i,
                *arguments,
                key=f"{self.name}-{self.round}-{name}-{i}",
                pure=False,
            )
            for i, block in enumerate(self.blocks)
        ]
        try:
            for first in range(0, len(futures), BATCH):
                batch = futures[first : first + BATCH]
                self._wait(batch)
                yield from self.client.gather(batch)
                for future in batch:
                    future.release()
        except LascaError:
            raise
        except Exception as error:
            raise _said(error) from error
        finally:
            self.client.cancel(futures, force=True)

    def _wait(self, futures: list[Any]) -> None:
        """Wait for tasks; a cluster that stays without workers would keep them waiting for ever."""
        wait, left = _distributed().wait, time.monotonic()
        while True:
            try:
                wait(futures, timeout=LOOK)
                return
            except TimeoutError:
                workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
                if any(worker["status"] == "running" for worker in workers):
                    left = time.monotonic()
                elif time.monotonic() - left > PATIENCE:
                    says = "all workers of the cluster are at their memory limit" if workers else NO_WORKERS
                    raise ModelError(says, hint="See their logs; then run again with --resume") from None

    def summary(self) -> tuple[Any, ...]:
        """Return the summaries of all blocks, added up."""
        return added(self._each(_summarise))

    def sum(self, state: Any) -> tuple[Any, ...]:
        """Visit every block and return the statistics, added up in the order of the blocks."""
        total = added(self._each(_visit, self._hold(state, "state"), self._versions()))
        self.locals.turn()
        return total

    def map(self, function: Callable[[Any, Any], Any], state: Any) -> list[Any]:
        """Return function(state, block) of every block."""
        return list(self._each(_apply, self._hold(state, "state"), function))

    def describe(self, state: Any, finish: Any) -> list[Any]:
        """Let the learner describe every block, and finish it."""
        return list(self._each(_describe, self._hold(state, "state"), self._versions(), finish))

    def _versions(self) -> tuple[Path | None, int | None, int]:
        """Return where locals are, if they are kept at all: the folder, the version of now, and the next."""
        at = self.locals
        return (at.folder, at.now, at.last + 1) if at.remembers else (None, None, 0)

    def close(self) -> None:
        """Let go of what the workers hold."""
        self.learner, self.blocks = None, []
        super().close()


def _said(error: Exception) -> LascaError:
    """Say in one line what went wrong on a cluster."""
    kind = type(error).__name__
    if kind == "KilledWorker":
        return ModelError(
            "workers died again and again with the same part of the work",
            got=str(error).splitlines()[0],
            hint="Was there enough memory? See the logs of the workers",
        )
    if kind in ("CancelledError", "FutureCancelledError", "FuturesCancelledError", "CommClosedError", "TimeoutError"):
        return ModelError("the cluster went away", got=f"{kind}: {error}", hint="Run again with --resume")
    return ModelError(f"a part of the work failed: {kind}: {error}")


# --- what runs on workers -------------------------------------------------------------------------------------------


def _own_version() -> str:
    import lasca

    return lasca.__version__


def _itself(value: Any) -> Any:
    return value


def _check(version: str) -> None:
    """Refuse work of another version: a worker may have come to the cluster after the work began."""
    if version != __version__:
        raise ModelError(
            f"the worker {_distributed().get_worker().address} has another version of LASCA than the driver, {version}",
            got=__version__,
            hint="Install the same version everywhere",
        )


def _freed(result: Any) -> Any:
    """Give memory that is no longer used back to the system: Dask counts it, and halts a worker near its limit."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # not every system has it
        ctypes.CDLL(None).malloc_trim(0)
    return result


def _summarise(version: str, learner: Any, block: Any, number: int) -> Any:
    _check(version)
    return _freed(learner.summarise(block.load()))


def _visit(version: str, learner: Any, block: Any, number: int, state: Any, versions: Any) -> Any:
    _check(version)
    folder, now, following = versions
    local = None if now is None else read_local(folder, now, number)
    statistics, local = learner.visit(state, block.load(), local)
    if folder is not None:
        write_local(folder, following, number, local)
    return _freed(statistics)


def _apply(version: str, learner: Any, block: Any, number: int, state: Any, function: Any) -> Any:
    _check(version)
    return _freed(function(state, block.load()))


def _describe(version: str, learner: Any, block: Any, number: int, state: Any, versions: Any, finish: Any) -> Any:
    _check(version)
    folder, now, _ = versions
    local = None if now is None else read_local(folder, now, number)
    return _freed(described(learner, state, block, local, finish))

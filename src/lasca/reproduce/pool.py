"""Runs jobs in processes, the dear ones first; every finished one is kept, so that a stopped run can be taken up."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

from lasca.errors import LascaError, ModelError
from lasca.reproduce.jobs import Job, Store

__all__ = ["run_jobs"]

Progress = Callable[[float, str], None]
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB_MAXIMUM")}
BEAT = 0.5  # seconds between two reports of progress: Ctrl-C is heeded there


def run_jobs(jobs: Sequence[Job], store: Store, n_processes: int, progress: Progress) -> None:
    """Run the jobs that the store does not have yet."""
    done = {job.id for job in jobs if store.get(job) is not None}
    waiting = sorted((job for job in jobs if job.id not in done), key=lambda job: -job.cost)
    total = sum(job.cost for job in jobs) or 1.0
    spent = sum(job.cost for job in jobs if job.id in done)
    by_id = {job.id: job for job in jobs}
    running: dict[Future[dict[str, Any]], Job] = {}
    with _pools(n_processes) as (shared, fresh):
        while waiting or running:
            ready = [job for job in waiting if done.issuperset(job.needs)]
            for job in ready[: n_processes - len(running)]:
                waiting.remove(job)
                needed = {name: (store.get(by_id[name]) or {})["result"] for name in job.needs}
                running[(fresh if job.alone else shared).submit(_work, job, needed)] = job
            finished, _ = wait(running, timeout=BEAT, return_when=FIRST_COMPLETED)
            failed = []
            for future in finished:
                job = running.pop(future)
                if future.exception() is not None:
                    failed.append((job, future.exception()))
                    continue
                store.put(job, future.result())
                done.add(job.id)
                spent += job.cost
            if failed:
                raise _failure(*failed[0])
            progress(spent / total, f"{len(done)} of {len(jobs)}: {', '.join(sorted(j.id for j in running.values()))}")


def _failure(job: Job, error: BaseException | None) -> LascaError:
    """Return an error that names the job."""
    what = f"{job.id} failed: {error}"
    if isinstance(error, BrokenProcessPool):
        what = f"a process that measured {job.id} died (out of memory?)"
    made = ModelError(what, hint="Finished jobs are kept: use --resume")
    made.__cause__ = error
    return made


def _work(job: Job, needed: dict[str, Any]) -> dict[str, Any]:
    from lasca.reproduce.plan import MEASURES

    wall, cpu = time.perf_counter(), time.process_time()
    try:
        result = dict(MEASURES[job.section](**job.settings, **({"needed": needed} if job.needs else {})))
    except Exception as error:  # not every error can be sent to the parent
        raise RuntimeError(f"{type(error).__name__}: {error}") from error
    used = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    return {"used": used, **result}


def _leave_stopping_to_the_parent() -> None:
    """Ignore Ctrl-C in a worker: the terminal sends it to all processes, and the parent ends the workers itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _pools(n_processes: int) -> Iterator[tuple[ProcessPoolExecutor, ProcessPoolExecutor]]:
    """Give a pool whose processes are used again and one whose processes serve once; libraries use one thread each."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)  # the children read it when they start
    context = get_context("spawn")
    shared = ProcessPoolExecutor(n_processes, mp_context=context, initializer=_leave_stopping_to_the_parent)
    fresh = ProcessPoolExecutor(
        n_processes, mp_context=context, initializer=_leave_stopping_to_the_parent, max_tasks_per_child=1
    )
    try:
        yield shared, fresh
    except BaseException:
        for pool in (shared, fresh):
            for process in list((pool._processes or {}).values()):
                process.terminate()
        raise
    finally:
        for pool in (shared, fresh):
            pool.shutdown(wait=True, cancel_futures=True)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

"""Measure everything and write docs/reproduction.md, or write the page anew from what was measured.

    make reproduction             # an hour on two cores; a stopped run is taken up
    make reproduction QUICK=1     # one seed, and without what takes long
    PYTHONPATH=experiments python -m reproduction --page-only    # from docs/reproduction/results.json, nothing measured
    PYTHONPATH=experiments python -m reproduction --again 'tweets-*-bsc'    # these jobs and those it lacks, no others

Every job writes its result into build/reproduction; results of another state of the code do not count, unless --again
takes them from results.json. A page of a run with --again that was stopped is written by --page-only: it says which
jobs it lacks, and which states of the code measured the others. A quick run's page stays in build/: docs/ has the
whole one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from fnmatch import fnmatch
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import lasca
from lasca import datasets
from lasca.files import whole_file
from reproduction import ambiguity, beyond, clusters, entities, figures, tweets
from reproduction.jobs import Job, Results, Scope, rounded
from reproduction.page import Block, Picture, markdown
from reproduction.pages.assemble import assemble

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NEEDED = ("tdga", "inhouse", "ritter-test", "conll2003-mturk", "conll2003")
SEEDS = 5
ROOMS = (tweets, entities, ambiguity, clusters, beyond, figures)
MEASURES: Mapping[str, Callable[..., dict[str, Any]]] = {
    "choose": tweets.choose,
    "tweets": tweets.infer,
    "objectives": tweets.objectives,
    "newer-taggers": tweets.newer_taggers,
    "entity-choose": entities.choose,
    "entity-gold": entities.gold,
    "entities": entities.infer,
    "entity-objectives": entities.objectives,
    "entity-newer-taggers": entities.newer_taggers,
    "ambiguity": ambiguity.measure,
    "clusters": clusters.measure,
    "beyond": beyond.measure,
    "figures": figures.tweet_figures,
    "entity-clusters": figures.entity_clusters,
}
UNMEASURED = {"cli", "report", "review", "formats"}
"""Rooms of the package that no figure of the page depends on."""


def scope_of(quick: bool) -> Scope:
    """Return how much is run."""
    return Scope((0,) if quick else tuple(range(SEEDS)), quick)


def plan(scope: Scope) -> list[Job]:
    """Return every job of the reproduction."""
    return [job for room in ROOMS for job in room.jobs(scope)]


@cache
def code_state() -> str:
    """Return a short fingerprint of the code that measures: a page has the figures of one state of it."""
    package = Path(lasca.__file__).parent
    files = [file for file in package.rglob("*.py") if file.relative_to(package).parts[0] not in UNMEASURED]
    digest = hashlib.sha256()
    for file in [*sorted(files), *(Path(room.__file__ or "") for room in ROOMS), HERE / "tagging.py"]:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def kept(job: Job, folder: Path) -> dict[str, Any] | None:
    """Return what an earlier run measured of a job with this code, if anything."""
    file = folder / f"{job.id}.json"
    found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    same = found.get("settings") == json.loads(json.dumps(dict(job.settings))) and found.get("code") == code_state()
    return found if same else None


def measure(job: Job, folder: Path) -> None:
    """Do one job, given the results of those it needs, and keep its result."""
    given = {name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))["result"] for name in job.needs}
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        result = MEASURES[job.section](**job.settings, **({"needed": given} if given else {}))
    except Exception as error:  # not every error can be sent to the parent
        raise RuntimeError(f"{job.id} failed: {type(error).__name__}: {error}") from error
    used = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    keep(job, folder, {"code": code_state(), "result": rounded({"used": used, **result})})


def keep(job: Job, folder: Path, found: Mapping[str, Any]) -> None:
    """Write down the result of a job and the state of the code that it is from."""
    with whole_file(folder / f"{job.id}.json") as path:
        path.write_text(json.dumps({"settings": dict(job.settings), **found}, ensure_ascii=False), encoding="utf-8")


def split(jobs: Sequence[Job], earlier: Mapping[str, Any], patterns: Sequence[str]) -> tuple[list[Job], list[Job]]:
    """Return the jobs to measure (that match a pattern or were never measured), and those to take as they are."""
    todo = [job for job in jobs if job.id not in earlier or any(fnmatch(job.id, p) for p in patterns)]
    return todo, [job for job in jobs if job not in todo]


def run(jobs: Sequence[Job], folder: Path, n_processes: int) -> None:
    """Do the jobs that were not done yet, dear ones first: those that others need, the others, those that go alone."""
    folder.mkdir(parents=True, exist_ok=True)
    todo = sorted((job for job in jobs if kept(job, folder) is None), key=lambda job: -job.cost)
    waves = [
        [job for job in todo if not job.needs],
        [job for job in todo if job.needs and not job.alone],
        [job for job in todo if job.needs and job.alone],
    ]
    done, begun = 0, time.perf_counter()
    for wave in filter(None, waves):
        context, once = get_context("spawn"), 1 if wave[0].alone else None
        with ProcessPoolExecutor(n_processes, mp_context=context, max_tasks_per_child=once) as pool:
            running = {pool.submit(measure, job, folder): job for job in wave}
            try:
                for future in as_completed(running):
                    future.result()
                    done += 1
                    minutes = (time.perf_counter() - begun) / 60
                    print(f"{done} of {len(todo)} jobs, {minutes:.0f} min: {running[future].id}", flush=True)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def blocks_of(measured: Mapping[str, Any], scope: Scope) -> list[Block]:
    """Return the page made of everything that was measured (as in results.json)."""
    jobs = [job for job in plan(scope) if job.id in measured]
    results = Results(tuple((job, measured[job.id]["result"]) for job in jobs))
    lacking = Counter(job.section for job in plan(scope) if job.id not in measured)
    return assemble(results, scope, Counter(measured[job.id]["code"] for job in jobs), lacking)


def write(measured: Mapping[str, Any], scope: Scope, page: Path) -> None:
    """Write the page, and beside it a folder of its name with the pictures and the results."""
    from reproduction import pictures

    blocks, beside = blocks_of(measured, scope), page.with_suffix("")
    beside.mkdir(parents=True, exist_ok=True)
    for block in blocks:
        if isinstance(block, Picture):
            pictures.save(block.draw(), beside / f"{block.name}.svg")
    lines = [f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in measured.items()]
    (beside / "results.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    page.write_text(markdown(blocks), encoding="utf-8")


def main() -> None:
    """Read the arguments, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed, and without what takes long")
    parser.add_argument("--page-only", action="store_true", help="measure nothing: take results.json and what is kept")
    parser.add_argument(
        "--again",
        nargs="*",
        metavar="PATTERN",
        help="measure the jobs whose names match and those that results.json lacks; take the others from it",
    )
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)), help="how many run side by side")
    given = parser.parse_args()
    scope, build = scope_of(given.quick), ROOT / "build" / "reproduction"
    page = (build if given.quick else ROOT / "docs") / "reproduction.md"
    jobs, folder, written = plan(scope), build / "jobs", page.with_suffix("") / "results.json"
    alone = not given.page_only and given.again is None
    earlier = {} if alone else json.loads(written.read_text(encoding="utf-8"))
    if not given.page_only:
        missing = [name for name in NEEDED if datasets.path(name) is None]
        if missing:
            sys.exit(
                f"These data sets are not here: {', '.join(missing)}. Set LASCA_DATA, or `lasca datasets fetch NAME`."
            )
        for library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
            os.environ[f"{library}_NUM_THREADS"] = "1"  # the processes read it when they start
        todo, taken = split(jobs, earlier, given.again or ())
        folder.mkdir(parents=True, exist_ok=True)
        for job in taken:
            if kept(job, folder) is None:
                keep(job, folder, earlier[job.id])
        run(todo, folder, given.processes)
    found = {job.id: kept(job, folder) or earlier.get(job.id) for job in jobs}
    measured = {name: {"code": one["code"], "result": one["result"]} for name, one in found.items() if one}
    write(measured, scope, page)
    print(f"Written: {page}")

"""`lasca reproduce`: all jobs, then the page.

OUT appears whole at the end; until then finished jobs are kept in a hidden folder beside it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lasca import datasets
from lasca.engine import available_threads
from lasca.errors import DatasetError, ParameterError, StoreError
from lasca.estimator import check_int
from lasca.files import check_output, whole_file, whole_folder
from lasca.reproduce.blocks import Page, Picture
from lasca.reproduce.jobs import Results, Scope, Store
from lasca.reproduce.plan import plan
from lasca.reproduce.pool import run_jobs
from lasca.reproduce.render import html, markdown

__all__ = ["NEEDED", "page_of", "reproduce", "scope_of", "write_page"]

NEEDED = ("tdga", "inhouse", "ritter-test", "conll2003-mturk", "conll2003")
SEEDS = 5


def reproduce(
    output: str | Path,
    *,
    quick: bool = False,
    processes: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    page: str | Path | None = None,
    progress: Callable[[float, str], None] = lambda share, words: None,
) -> Path:
    """Run the paper's experiments into the folder `output` and return the path of its HTML page.

    `quick` runs one seed and leaves out what takes long. `processes` (None: one per core) run side by side. `resume`
    takes up the finished jobs of a run that was stopped, or of `output` itself. `page` is a Markdown file to write as
    well, with its pictures and results in a folder of the same name beside it.
    """
    target = Path(output)
    n_processes = available_threads() if processes is None else check_int("processes", processes, low=1)
    check_data()
    work = target.parent / f".{target.name}.lasca-reproduce"
    scope = scope_of(quick)
    _check_places(target, work, None if page is None else Path(page), resume, overwrite)
    _begin(work, target, resume)
    store, jobs = Store(work), plan(scope)
    run_jobs(jobs, store, n_processes, progress)
    progress(1.0, "writing the page")
    measured = store.all(jobs)
    made = page_of(measured, scope)
    with whole_folder(target, overwrite=True, record="jobs") as folder:
        write_page(made, measured, folder / "reproduction.md")
        (folder / "reproduction.html").write_text(html(made), encoding="utf-8")
        shutil.copytree(work, folder / "jobs")
    if page is not None:
        write_page(made, measured, Path(page))
    shutil.rmtree(work, ignore_errors=True)
    return target / "reproduction.html"


def scope_of(quick: bool) -> Scope:
    """Return how much is run."""
    return Scope((0,) if quick else tuple(range(SEEDS)), quick)


def check_data() -> None:
    """Say at once which data sets are missing, not after an hour."""
    missing = [name for name in NEEDED if datasets.path(name) is None]
    if missing:
        raise DatasetError(
            f"these data sets are not on this machine: {', '.join(missing)}",
            hint="Set LASCA_DATA to the folder that has them, or run `lasca datasets fetch NAME`",
        )


def _check_places(target: Path, work: Path, page: Path | None, resume: bool, overwrite: bool) -> None:
    """Refuse places that are taken by something else, before an hour of work."""
    check_output(target, overwrite=overwrite or (resume and (target / "jobs").is_dir()), record="jobs")
    if work.is_dir() and any(work.iterdir()) and not resume and not overwrite:
        raise StoreError(
            "there are finished jobs of a run that was stopped",
            where=str(work),
            hint="Go on with --resume, or start anew with --overwrite",
        )
    if page is not None:
        beside = page.parent / page.stem
        if not page.suffix:
            raise ParameterError("page", str(page), "a Markdown file, such as reproduction.md")
        ours = (beside / "results.json").is_file()
        if beside.exists() and not ours:
            raise StoreError("the folder for the page's pictures is taken by something else", where=str(beside))
        if page.exists() and not ours:
            raise StoreError("there is a file already that is no such page", where=str(page), hint="Name another one")


def _begin(work: Path, target: Path, resume: bool) -> None:
    try:
        if not resume:
            shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
        if resume and (target / "jobs").is_dir():
            for file in (target / "jobs").glob("*.json"):
                if not (work / file.name).exists():
                    shutil.copy2(file, work / file.name)
    except OSError as error:
        raise StoreError(f"cannot write: {error.strerror or error}", where=str(work)) from error


def page_of(measured: Mapping[str, Any], scope: Scope) -> Page:
    """Return the page made of everything that was measured (as in results.json)."""
    from lasca.reproduce.pages.assemble import assemble

    jobs = plan(scope)
    results = Results(tuple((job, measured[job.id]["result"]) for job in jobs))
    return assemble(results, scope, measured[jobs[0].id]["code"])


def write_page(page: Page, measured: Mapping[str, Any], file: Path) -> None:
    """Write the Markdown page, and beside it a folder of its name with the pictures and the results."""
    with whole_folder(file.parent / file.stem, overwrite=True, record="results.json") as folder:
        for block in page.blocks:
            if isinstance(block, Picture):
                (folder / f"{block.name}.svg").write_text(block.svg, encoding="utf-8")
        lines = [f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in measured.items()]
        (folder / "results.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    with whole_file(file) as path:
        path.write_text(markdown(page, pictures=file.stem), encoding="utf-8")

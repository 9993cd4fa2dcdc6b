"""The bench of crowds: the default beside simple models, on every crowd there is (rows.py).

    python experiments/crowds/bench.py                          # all rows, the default and the six simple models
    python experiments/crowds/bench.py --quick                  # at most ten minutes: the small rows
    python experiments/crowds/bench.py --rows mturk,btc-e-org --models "default,hc-seq:text=false,calibrate=false"
    python experiments/crowds/bench.py --models default --params text=false    # variants of the default
    python experiments/crowds/bench.py --show --older           # print what there is, of other sources too
    python experiments/crowds/bench.py --page docs/crowds.md    # write the page from the results

Models are separated by blanks or by commas that no parameter follows. Every (row, model) is a job in a process of its
own; its result is a JSON file under build/crowds/results, so a run that was stopped goes on where it was (`--again`
runs jobs anew). Results of other sources than these are not taken unless `--older` says so: they are marked with *.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATHS = [str(HERE.parents[1] / "src"), str(HERE.parent)]  # this clone, whatever is installed
sys.path[:0] = PATHS
os.environ["PYTHONPATH"] = os.pathsep.join([*PATHS, os.environ.get("PYTHONPATH", "")])

from crowds import job, results, tables  # noqa: E402
from crowds.corpora import ROOT  # noqa: E402
from crowds.rows import ROWS, corpus_of  # noqa: E402

PROCESSES = multiprocessing.get_context("forkserver")
"""Jobs are forked from a process that has loaded the package and nothing else: a start costs next to nothing."""
PROCESSES.set_forkserver_preload(["crowds.job"])


def models_of(text: str, params: list[str]) -> list[str]:
    """Split a list of models; `params` are added to those that are no simple models."""
    names = [part for part in re.split(r"[\s;]+|,(?![a-z_]+=)", text) if part]
    extra = ",".join(params)
    return [
        spec if not extra or spec in results.SIMPLE else spec + ("," if ":" in spec else ":") + extra for spec in names
    ]


def rows_of(text: str, quick: bool, final: bool) -> list[str]:
    """Return the rows a list names (a name ending in * stands for all that begin so)."""
    if not text:
        return [name for name, row in ROWS.items() if (row.quick or not quick) and (final or not row.final)]
    chosen: list[str] = []
    for part in text.replace(",", " ").split():
        found = [n for n in ROWS if n == part or (part.endswith("*") and n.startswith(part[:-1]))]
        if not found:
            raise SystemExit(f"there is no row {part!r}; there are: {', '.join(ROWS)}")
        chosen += found
    return list(dict.fromkeys(chosen))


def run_job(row: str, spec: str, options: argparse.Namespace, sources: str) -> str:
    """Run one job in a process of its own and say what came out."""
    path = results.file_of(options.output, row, spec, sources)
    path.unlink(missing_ok=True)
    begin = time.perf_counter()
    process = PROCESSES.Process(target=job.work, args=(row, spec, options.seed, options.threads, str(path), sources))
    process.start()
    process.join(options.limit)
    if process.is_alive():
        process.terminate()
        process.join()
        said = f"STOPPED after {options.limit:.0f} s"
    elif not path.is_file():
        said = f"DIED with exit code {process.exitcode}"
    else:
        data = json.loads(path.read_text(encoding="utf-8"))
        figures = "{value:6.2f} {cpu_seconds:7.1f} CPU s {peak_mb:6.0f} MB"
        said = f"FAILED {data['error']}" if "error" in data else figures.format(**data)
    return f"{row:16} {spec:24} {time.perf_counter() - begin:6.1f} s  {said}"


def main() -> None:
    """Run what is missing, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="", help="rows, separated by commas (default: all)")
    parser.add_argument("--models", default=" ".join((*results.SIMPLE, "default")), help="models, see above")
    parser.add_argument("--params", action="append", default=[], help="name=value for all but the simple models")
    parser.add_argument("--quick", action="store_true", help="only the rows of the quick form")
    parser.add_argument("--final", action="store_true", help="also the rows that are scored once, at the end")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "crowds", help="folder of the results")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="threads of each job")
    parser.add_argument("--jobs", type=int, default=1, help="jobs at a time")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds after which a job is stopped")
    parser.add_argument("--again", action="store_true", help="run jobs whose result is there")
    parser.add_argument("--resume", action="store_true", help="go on where a run stopped (what is done anyway)")
    parser.add_argument("--older", action="store_true", help="take results of other sources where there are any")
    parser.add_argument("--show", action="store_true", help="run nothing, print what there is")
    parser.add_argument("--details", action="store_true", help="print the figures beside the metric as well")
    parser.add_argument("--page", type=Path, help="write the page of the docs from the results")
    options = parser.parse_args()
    rows, models = rows_of(options.rows, options.quick, options.final), models_of(options.models, options.params)
    sources = results.fingerprint()
    if not options.show:
        todo = [
            (row, spec)
            for row in rows
            for spec in models
            if options.again or results.read(options.output, row, spec, sources, older=options.older) is None
        ]
        for row in dict.fromkeys(row for row, _ in todo):
            corpus_of(row)
        with ThreadPoolExecutor(options.jobs) as pool:
            for line in pool.map(lambda job: run_job(*job, options, sources), todo):
                print(line, file=sys.stderr, flush=True)
    found = results.collect(options.output, rows, models, older=options.older)
    print(tables.metrics(found, models, sources))
    if options.details:
        for spec in models:
            print("\n" + tables.details(found, spec))
    if options.page is not None:
        from crowds import page

        options.page.write_text(page.render(found, models, options.output / "families.md"), encoding="utf-8")
        page.insert(options.page.with_name("llm.md"), "nb", page.machines(found, models))


if __name__ == "__main__":
    main()

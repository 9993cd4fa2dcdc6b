"""From a million votes to a hundred million: time per vote and step, and the peak memory of all processes.

    python benchmarks/bench_scale.py simulate FOLDER 1e6 1e7 1e8      corpora in shards (1,000 annotators, 9 labels)
    python benchmarks/bench_scale.py run FOLDER 1e6 1e7 1e8 --engine threads --model ds --out results.jsonl
    python benchmarks/bench_scale.py kernel                           Dawid–Skene's pass beside one in C (needs gcc)
    python benchmarks/bench_scale.py crowd FOLDER                     a million annotators with few votes each
    python benchmarks/bench_scale.py page results.jsonl               the tables of docs/scaling.md

Times are CPU seconds of all processes (other work on the machine moves wall time), memory is the largest sum of the
processes' proportional shares (PSS) seen, ten times a second; mapped files count as long as they are mapped.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from lasca import simulate
from lasca.corpus.sharding import write_shards
from lasca.corpus.shards import ShardedCorpus
from lasca.corpus.votes import Votes, cut_into_blocks
from lasca.engine.cluster import engine_of
from lasca.pipeline.sharded import aggregate_shards
from lasca.truth import model_class

ANNOTATORS, SHARD = 1000, 2_000_000


WATCH = """
import os, psutil, signal, sys, threading
done, peak, root = threading.Event(), 0, psutil.Process(int(sys.argv[1]))
signal.signal(signal.SIGTERM, lambda *_: done.set())
print("ready", flush=True)
while not done.wait(0.1):
    total = 0
    for process in [root, *root.children(recursive=True)]:
        try:
            total += process.memory_full_info().pss if process.pid != os.getpid() else 0
        except psutil.Error:
            pass
    peak = max(peak, total)
print(peak)
"""


class Watch:
    """CPU seconds and peak memory of this process and all below it; another process looks, so that looking is free."""

    def __enter__(self) -> Watch:
        self.child = subprocess.Popen([sys.executable, "-c", WATCH, str(os.getpid())], stdout=subprocess.PIPE)
        assert self.child.stdout is not None
        self.child.stdout.readline()
        self.cpu, self.wall = self.seconds(), time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self.cpu, self.wall = self.seconds() - self.cpu, time.perf_counter() - self.wall
        self.child.terminate()
        self.peak = int(self.child.communicate()[0])

    def seconds(self) -> float:
        """Return the CPU seconds of this process and of all below it but the one that looks."""
        found = [p for p in psutil.Process().children(recursive=True) if p.pid != self.child.pid and p.is_running()]
        return time.process_time() + sum(sum(p.cpu_times()[:2]) for p in found)


def make(folder: Path, sizes: list[int]) -> None:
    for n in sizes:
        target = folder / f"{n:.0e}"
        if not target.exists():
            with Watch() as watch:
                pieces = simulate.big_shards(max(1, n // SHARD), n, n_annotators=ANNOTATORS, seed=1)
                write_shards(pieces, target, votes=SHARD)
            print(f"{n:.0e}: {watch.cpu:.0f} CPU s, {watch.wall:.0f} s, peak {watch.peak / 2**20:.0f} MB")


def run(
    folder: Path, sizes: list[int], engine: str, name: str, given: int | None, limit: int | None, out: Path | None
) -> None:
    for n in sizes:
        corpus, steps = ShardedCorpus.open(folder / f"{n:.0e}"), given or max(6, min(60, 10**8 // n))
        bytes_on_disk = sum(f.stat().st_size for f in corpus.folder.rglob("*.arrow"))
        times: list[tuple[float, float]] = []
        with tempfile.TemporaryDirectory(dir=folder) as place, _engine(engine, limit) as opened, Watch() as watch:

            def progress(share: float, words: str) -> None:
                times.append((watch.seconds(), time.perf_counter()))  # noqa: B023

            options = {"max_iter": steps, "tol": 0.0}
            aggregate_shards(
                corpus, Path(place) / "out", model_class(name)(**options), engine=opened, progress=progress
            )
            base = _baseline(opened)
        (cpu, wall), per = np.diff([times[0], times[-1]], axis=0)[0], n * (len(times) - 1)
        line = {
            "votes": n, "engine": engine, "model": name, "steps": steps, "disk_mb": round(bytes_on_disk / 2**20),
            "ns_cpu": round(1e9 * cpu / per, 2), "ns_wall": round(1e9 * wall / per, 2),
            "cpu_s": round(watch.cpu, 1), "wall_s": round(watch.wall, 1), "peak_mb": round(watch.peak / 2**20),
            "limit_mb": None if limit is None else limit, "worker_mb": base, "load": round(os.getloadavg()[0], 1),
        }  # fmt: skip
        print(json.dumps(line), flush=True)
        if out is not None:
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def _engine(name: str, limit: int | None) -> Any:
    """Return an engine; "dask:N" is a cluster of N processes, each with a memory limit."""
    if not name.startswith("dask:"):
        return engine_of(name)
    import distributed

    cluster = distributed.LocalCluster(
        n_workers=int(name[5:]),
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
        memory_limit=0 if limit is None else limit << 20,
    )
    return engine_of(distributed.Client(cluster))


def _baseline(engine: Any) -> list[int] | None:
    """Return the memory of each worker."""
    if not hasattr(engine, "client"):
        return None
    return sorted(round(m / 2**20) for m in engine.client.run(_own_memory).values())


def _own_memory() -> int:
    return int(psutil.Process().memory_info().rss)


# --- the kernel -----------------------------------------------------------------------------------------------------

C_PASS = r"""
#include <math.h>
#include <stdint.h>
/* One pass of Dawid-Skene over n tokens: T labels in rows of W = 12 doubles; what a compiler makes of plain C. */
double pass(int64_t n, const int64_t *start, const int32_t *rows, const double *table, const double *prior,
            double *counts, double *totals) {
    enum { W = 12 };
    double evidence = 0, product = 1;
    for (int64_t i = 0; i < n; i++) {
        double p[W], total = 0;
        for (int t = 0; t < W; t++) p[t] = prior[t];
        for (int64_t j = start[i]; j < start[i + 1]; j++)
            for (int t = 0; t < W; t++) p[t] *= table[rows[j] + t];
        for (int t = 0; t < W; t++) total += p[t];
        for (int t = 0; t < W; t++) p[t] /= total;
        product *= total;
        if (product < 1e-100) { evidence += log(product); product = 1; }
        for (int t = 0; t < W; t++) totals[t] += p[t];
        for (int64_t j = start[i]; j < start[i + 1]; j++)
            for (int t = 0; t < W; t++) counts[rows[j] + t] += p[t];
    }
    return evidence + log(product);
}
/* The same reads and writes with nothing computed: what memory alone allows. */
double stream(int64_t n, const int64_t *start, const int32_t *rows, const double *table, double *counts) {
    enum { W = 12 };
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = start[i]; j < start[i + 1]; j++)
            for (int t = 0; t < W; t++) counts[rows[j] + t] += table[rows[j] + t];
    return sum;
}
"""


def kernel(n: int = 2_000_000) -> None:
    """Compare the pass of the kernel with plain C (gcc -O3 -march=native -ffast-math), on one core."""
    corpus = simulate.big(n, n_annotators=ANNOTATORS, seed=1)
    votes = Votes.of(corpus)
    learner: Any = model_class("ds")()._learner(votes)  # type: ignore[attr-defined]
    block = cut_into_blocks(votes, 10**12)[0]
    state = learner.start(learner.summarise(block), None)
    _, local = learner.visit(state, block, None)
    table, counts, totals = np.array(state.table), np.zeros(state.table.size), np.zeros(12)
    with tempfile.TemporaryDirectory() as place:
        source, library = Path(place) / "pass.c", Path(place) / "pass.so"
        source.write_text(C_PASS)
        flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
        subprocess.run(["gcc", *flags, str(source), "-o", str(library), "-lm"], check=True)
        c = ctypes.CDLL(str(library))
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (votes.start, local.rows, table, state.row, counts, totals)]
    start, rows, table_, row, counts_, totals_ = pointers
    size = ctypes.c_int64(votes.n_tokens)
    work = {
        "LASCA (Numba)": lambda: learner.visit(state, block, local),
        "plain C": lambda: c["pass"](size, start, rows, table_, row, counts_, totals_),
        "memory alone (C)": lambda: c["stream"](size, start, rows, table_, counts_),
    }
    best = {name: min(_timed(f) for _ in range(15)) / n * 1e9 for name, f in work.items()}
    counts[:] = 0
    c["pass"](size, start, rows, table_, row, counts_, totals_)
    (own, _, _), _ = learner.visit(state, block, local)
    same = np.allclose(counts.reshape(ANNOTATORS, 9, 12)[:, :, :9], own, rtol=1e-9)
    per = 4 + 8 / 5 + 3 * 96  # bytes: the place, the token's border, a row read, a row read and written
    for name, ns in best.items():
        print(f"| {name} | {ns:.2f} | {per / ns:.1f} | {best['plain C'] / ns:.2f} |")
    print(f"the sums of both agree: {same}; {per:.0f} bytes and {2 * 12 + 12 / 5 * 2:.0f} operations per vote")


def _timed(work: Any) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def crowd(folder: Path, n_annotators: int = 1_000_000, n: int = 10_000_000) -> None:
    """A million annotators with ten votes each, five steps: whole confusion matrices beside T + 2 numbers (MACE)."""
    target = folder / "annotators"
    if not target.exists():
        pieces = simulate.big_shards(5, n, n_annotators=n_annotators, n_labels=3, seed=1)
        write_shards(pieces, target, votes=SHARD)
    corpus = ShardedCorpus.open(target)
    gold = corpus.whole().golds["gold"]
    for name, options in (("mv", {}), ("mace", {"restarts": 1, "max_iter": 5}), ("ds", {"max_iter": 5})):
        with Watch() as watch:
            truth = model_class(name)(**options).fit(corpus)
        right = (truth.labels == gold).mean()
        blocks = len(cut_into_blocks(corpus.crowd_votes(), 4 * n_annotators * 3 * 4)) if name == "ds" else None
        print(f"| {name} | {right:.4f} | {watch.cpu:.0f} | {watch.peak / 2**20:.0f} | {blocks or ''} |", flush=True)


def page(results: Path) -> None:
    """Print the measurements as a table, and what the two smaller sizes say of the largest: fixed cost + votes · ns."""
    lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    print(
        "| model | engine | votes | on disk, MB | steps | CPU s in all | CPU ns per vote and step | peak, MB | load |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for r in lines:
        print(
            f"| {r['model']} | {r['engine']} | {r['votes']:.0e} | {r['disk_mb']} | {r['steps']} | {r['cpu_s']} | "
            f"{r['ns_cpu']} | {r['peak_mb']} | {r['load']} |"
        )
    print("\n| model | engine | fixed, ms per step | ns per vote | predicted at the largest, s | measured, s |")
    print("|---|---|---:|---:|---:|---:|")
    for key in dict.fromkeys((r["model"], r["engine"]) for r in lines):
        own = sorted((r["votes"], r["ns_cpu"] * r["votes"] / 1e9) for r in lines if (r["model"], r["engine"]) == key)
        if len(own) >= 3:
            (n0, t0), (n1, t1), (n2, t2) = own[0], own[-2], own[-1]
            slope = (t1 - t0) / (n1 - n0)
            fixed = t0 - slope * n0
            print(
                f"| {key[0]} | {key[1]} | {1e3 * fixed:.0f} | {1e9 * slope:.1f} | {fixed + slope * n2:.2f} | {t2:.2f} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("simulate", "run", "kernel", "crowd", "page"))
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--engine", default="threads")
    parser.add_argument("--model", default="ds")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--limit", type=int, help="MB of memory of each worker")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    folder = Path(given.arguments[0]) if given.arguments else Path()
    sizes = [int(float(x)) for x in given.arguments[1:]]
    if given.what == "simulate":
        make(folder, sizes)
    elif given.what == "run":
        run(folder, sizes, given.engine, given.model, given.steps, given.limit, given.out)
    elif given.what == "kernel":
        kernel()
    elif given.what == "crowd":
        crowd(folder)
    else:
        page(folder)


if __name__ == "__main__":
    sys.exit(main())

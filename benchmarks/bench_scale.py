"""From a million votes to a hundred million: time per vote and step, and the peak memory of all processes.

    python benchmarks/bench_scale.py simulate FOLDER 1e6 1e7 1e8      corpora in shards (1,000 annotators, 9 labels)
    python benchmarks/bench_scale.py run FOLDER 1e6 1e7 1e8 --engine threads --model ds --out results.jsonl
    python benchmarks/bench_scale.py default FOLDER 1e6 2e7 1e8       the default as it is, text and all
    python benchmarks/bench_scale.py sample conll2003-mturk           what it costs to train its taggers on a sample
    python benchmarks/bench_scale.py after FOLDER 1e6 1e7             two-truths, the CRF, tagging, on shards
    python benchmarks/bench_scale.py kernel                           Dawid–Skene's pass beside one in C (needs gcc)
    python benchmarks/bench_scale.py lattice                          forward–backward beside one in C (needs gcc)
    python benchmarks/bench_scale.py crowdkit FOLDER 1e6 1e7          crowd-kit's Dawid–Skene beside ours
    python benchmarks/bench_scale.py reading FOLDER 2e6               CSV, JSON lines, Parquet beside pyarrow's
    python benchmarks/bench_scale.py crowd FOLDER                     a million annotators with few votes each
    python benchmarks/bench_scale.py page results.jsonl picture.svg   the tables and the picture of docs/scaling.md

Times are CPU seconds of all processes (other work on the machine moves wall time), memory is the largest sum of the
processes' proportional shares (PSS) seen, ten times a second; mapped files count as long as they are mapped.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from lasca import simulate
from lasca.corpus.sharding import write_shards
from lasca.corpus.shards import ShardedCorpus
from lasca.corpus.votes import Votes, cut_into_blocks
from lasca.engine.cluster import engine_of
from lasca.pipeline.sharded import aggregate_shards, ambiguity_in_shards, tag_shards, train_in_shards
from lasca.tagger import CrfTagger
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


def default(folder: Path, sizes: list[int], engine: str, limit: int | None) -> None:
    """The default with its own settings, to its end; one that was killed goes on (what it took before is not in it)."""
    for n in sizes:
        corpus, out = ShardedCorpus.open(folder / f"{n:.0e}"), folder / f"{n:.0e}-default"
        with _engine(engine, limit) as opened, Watch() as watch:
            truth = aggregate_shards(corpus, out, model_class("robust")(), engine=opened, resume=True)
        shutil.rmtree(out)
        found = truth.diagnostics
        heard = f"{found['text_agreement']:.2f}" if found["text"] else "no"
        steps = sum(member["iterations"] for member in found["members"])
        print(
            f"| {engine} | {n:.0e} | {heard} | {steps} | {watch.cpu:.0f} | {1e6 * watch.cpu / n:.0f} | "
            f"{watch.wall:.0f} | {watch.peak / 2**20:.0f} | {os.getloadavg()[0]:.0f} |",
            flush=True,
        )


def sample(data: str) -> None:
    """The default on a corpus in memory, with taggers that learn from a part of the tokens only."""
    import lasca
    from lasca.truth import robust

    corpus = lasca.read(data)
    gold = next(iter(corpus.golds))
    for most in (corpus.n_tokens // 8, corpus.n_tokens // 4, corpus.n_tokens // 2, corpus.n_tokens):
        robust.MOST_TRAINED = most
        took, found = time.process_time(), model_class("robust")().fit(corpus)
        took = time.process_time() - took
        scores, told = found.score(corpus, gold), found.diagnostics["text_agreement"]
        print(
            f"| {most:,} | {told:.3f} | {100 * scores.f1:.1f} | {scores.cross_entropy:.3f} | {took:.0f} |", flush=True
        )


def after(folder: Path, sizes: list[int], engine: str, limit: int | None) -> None:
    """What comes after the truth, on shards: two-truths, the CRF (ten steps of L-BFGS), tagging."""
    for n in sizes:
        with tempfile.TemporaryDirectory(dir=folder) as place, _engine(engine, limit) as opened:
            _after(folder / f"{n:.0e}", Path(place), f"{engine} | {n:.0e}", opened)


def _after(data: Path, place: Path, words: str, engine: Any) -> None:
    corpus = ShardedCorpus.open(data)
    truth, tagger = place / "truth", place / "tagger"
    model, crf = model_class("ds")(max_iter=5, tol=0.0), CrfTagger(max_iter=10, tol=0)
    steps = {
        "truth (ds, 5 steps)": lambda: aggregate_shards(corpus, truth, model, engine=engine),
        "two-truths": lambda: ambiguity_in_shards(truth, place / "ambiguous", engine=engine),
        "CRF (10 steps)": lambda: train_in_shards(truth, tagger, crf, engine=engine),
        "tagging": lambda: tag_shards(tagger, data, place / "tagged", engine=engine),
    }
    for what, work in steps.items():
        with Watch() as watch:
            work()
        ns, load = 1e9 * watch.cpu / corpus.n_tokens, os.getloadavg()[0]
        peak = watch.peak / 2**20
        print(f"| {what} | {words} | {watch.cpu:.1f} | {ns:.0f} | {peak:.0f} | {load:.0f} |", flush=True)


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
    c = _compiled(C_PASS)
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


C_LATTICE = r"""
#include <math.h>
#include <stdint.h>
/* Forward-backward over sequences of T = 9 labels, scaled: what a compiler makes of plain C. */
double lattice(int64_t n, const int64_t *offsets, const double *evidence, const double *start, const double *move,
               double *out, double *starts, double *moves, double *alpha, double *weight, double *scale) {
    enum { T = 9 };
    double total = 0, pairs[T * T] = {0};
    for (int64_t s = 0; s < n; s++) {
        int64_t first = offsets[s], m = offsets[s + 1] - first;
        for (int64_t i = 0; i < m; i++) {
            const double *e = evidence + (first + i) * T;
            double *a = alpha + i * T, *w = weight + i * T, best = e[0], sum = 0;
            for (int t = 0; t < T; t++) a[t] = i ? 0 : start[t];
            if (i) for (int k = 0; k < T; k++) for (int t = 0; t < T; t++) a[t] += a[k - T] * move[k * T + t];
            for (int t = 1; t < T; t++) best = e[t] > best ? e[t] : best;
            for (int t = 0; t < T; t++) { w[t] = exp(e[t] - best); a[t] *= w[t]; sum += a[t]; }
            scale[i] = 1 / sum;
            for (int t = 0; t < T; t++) a[t] *= scale[i];
            total += log(sum) + best;
        }
        double beta[T], after[T];
        for (int t = 0; t < T; t++) { beta[t] = 1; out[(first + m - 1) * T + t] = alpha[(m - 1) * T + t]; }
        for (int64_t i = m - 2; i >= 0; i--) {
            for (int t = 0; t < T; t++) after[t] = weight[(i + 1) * T + t] * beta[t] * scale[i + 1];
            for (int k = 0; k < T; k++) {
                double a = alpha[i * T + k], b = 0;
                for (int t = 0; t < T; t++) { b += move[k * T + t] * after[t]; pairs[k * T + t] += a * after[t]; }
                beta[k] = b;
                out[(first + i) * T + k] = a * b;
            }
        }
        for (int t = 0; t < T; t++) starts[t] += out[first * T + t];
    }
    for (int k = 0; k < T * T; k++) moves[k] += pairs[k] * move[k];
    return total;
}
"""


def _compiled(source: str) -> Any:
    with tempfile.TemporaryDirectory() as place:
        file, library = Path(place) / "c.c", Path(place) / "c.so"
        file.write_text(source)
        flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
        subprocess.run(["gcc", *flags, str(file), "-o", str(library), "-lm"], check=True)
        return ctypes.CDLL(str(library))


def lattice(n: int = 200_000, length: int = 20, T: int = 9) -> None:
    """Compare forward-backward with plain C (gcc -O3 -march=native -ffast-math), on one core."""
    from lasca.kernels.lattice import marginals

    rng = np.random.default_rng(0)
    evidence, start = rng.normal(0, 3, (n, T)), np.full(T, 1 / T)
    move, offsets = rng.dirichlet(np.ones(T), T), np.arange(0, n + 1, length)
    c = _compiled(C_LATTICE)
    c.lattice.restype = ctypes.c_double
    scratch = [np.empty((length, T)), np.empty((length, T)), np.empty(length)]
    ours, theirs = [[np.empty((n, T)), np.zeros(T), np.zeros((T, T))] for _ in range(2)]

    def in_c() -> float:
        arrays = (offsets, evidence, start, move, *theirs, *scratch)
        return float(c.lattice(ctypes.c_int64(n // length), *(ctypes.c_void_p(a.ctypes.data) for a in arrays)))

    work = {"LASCA (Numba)": lambda: marginals(offsets, evidence, start, move, np.ones(T), *ours), "plain C": in_c}
    sums = [work[name]() for name in work]
    same = np.allclose(*sums, rtol=1e-9) and all(np.allclose(a, b, rtol=1e-7, atol=1e-9) for a, b in zip(ours, theirs))
    best = {name: min(_timed(f) for _ in range(12)) / n * 1e9 for name, f in work.items()}
    bytes_, operations = 2 * 8 * T, 2 * (2 * T * T) + 2 * T * T + 12 * T  # a row in and out; moves forward, back, pairs
    for name, ns in best.items():
        print(f"| {name} | {ns:.0f} | {bytes_ / ns:.2f} | {operations / ns:.2f} | {best['plain C'] / ns:.2f} |")
    print(f"both agree: {same}; {bytes_} bytes, {operations} operations and {T} exponentials per token")


def crowdkit(folder: Path, sizes: list[int]) -> None:
    """Per iteration and on one thread: crowd-kit's Dawid-Skene and ours on the same votes, in this process."""
    import resource

    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    for n in sizes:
        corpus = ShardedCorpus.open(folder / f"{n:.0e}").whole()
        model: Any = model_class("ds")
        fits = {k: partial(model(max_iter=k, tol=0.0, n_threads=1).fit, corpus) for k in (2, 22)}
        fits[2]()
        run = {k: min(_timed(fit) for _ in range(3)) for k, fit in fits.items()}
        own = (run[22] - run[2]) / 20
        frame = pd.DataFrame(
            {"task": corpus.annotation_token, "worker": corpus.annotation_annotator, "label": corpus.annotation_label}
        )
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        took = {k: _timed(partial(DawidSkene(n_iter=k, tol=-1e18).fit, frame)) for k in (1, 3)}
        other = (took[3] - took[1]) / 2
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) / 2**20
        print(
            f"| {n:.0e} | {1e3 * own:.0f} | {1e3 * other:.0f} | {other / own:.0f} | {more:.2f} | "
            f"{more * 2**30 / n:.0f} | {os.getloadavg()[0]:.0f} |",
            flush=True,
        )


def reading(folder: Path, sizes: list[int]) -> None:
    """Read a long table of n votes: `lasca.read` beside pyarrow's own reader of the same file."""
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.json as lines
    import pyarrow.parquet as pq

    from lasca import formats

    own = {"csv": csv.read_csv, "jsonl": lines.read_json, "parquet": pq.read_table}
    pa.set_cpu_count(1)
    for n in (1000, *sizes):  # the first is there to load what is needed
        corpus = simulate.big(n, n_annotators=ANNOTATORS, seed=1)
        token = corpus.annotation_token
        sequence = corpus.token_sequence[token]
        table = pa.table(
            {
                "sequence": corpus.sequence_ids.arrow.take(pa.array(sequence)),
                "position": token - corpus.offsets[sequence],
                "token": corpus.tokens.arrow.take(pa.array(token)),
                "annotator": pa.array(corpus.annotators).take(pa.array(corpus.annotation_annotator)),
                "label": pa.array(corpus.labels).take(pa.array(corpus.annotation_label)),
            }
        )
        with tempfile.TemporaryDirectory(dir=folder) as place:
            for kind in own:
                file = Path(place) / f"votes.{kind}"
                if kind == "csv":
                    csv.write_csv(table, file)
                elif kind == "parquet":
                    pq.write_table(table, file)
                else:
                    with file.open("w", encoding="utf-8") as out:
                        for batch in table.to_batches(100_000):
                            out.writelines(json.dumps(row) + "\n" for row in batch.to_pylist())
                size = file.stat().st_size / 2**20
                theirs = min(_timed(partial(own[kind], file)) for _ in range(2))
                ours = _timed(partial(formats.read, file))
                load = os.getloadavg()[0]
                print(
                    f"| {kind} | {n:.0e} | {size:.0f} | {size / theirs:.0f} | {size / ours:.0f} | "
                    f"{theirs / ours:.2f} | {1e9 * ours / n:.0f} | {load:.0f} |",
                    flush=True,
                )


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


def plot(lines: list[dict[str, Any]], picture: Path) -> None:
    """Draw CPU time per vote and step, and peak memory, by the number of votes."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "lasca"
    figure, panes = pyplot.subplots(1, 2, figsize=(9, 3.2))
    for key in dict.fromkeys((r["model"], r["engine"]) for r in lines):
        own = sorted((r["votes"], r["ns_cpu"], r["peak_mb"]) for r in lines if (r["model"], r["engine"]) == key)
        for pane, column in zip(panes, (1, 2)):
            pane.loglog([r[0] for r in own], [r[column] for r in own], marker="o", label=f"{key[0]}, {key[1]}")
    for pane, words in zip(panes, ("CPU ns per vote and step", "peak memory of all processes, MB")):
        pane.set_xlabel("votes")
        pane.set_title(words, fontsize=10)
        pane.grid(alpha=0.3)
    panes[0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(picture, metadata={"Date": None})


def page(results: Path, picture: Path | None = None) -> None:
    """Print the measurements as a table, and what the two smaller sizes say of the largest: fixed cost + votes · ns."""
    lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    order = {name: at for at, name in enumerate(dict.fromkeys(r["model"] for r in lines))}
    lines.sort(key=lambda r: (order[r["model"]], r["engine"] != "threads", r["engine"], r["votes"]))
    if picture is not None:
        plot(lines, picture)
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
    parser.add_argument(
        "what",
        choices=(
            "simulate",
            "run",
            "default",
            "sample",
            "after",
            "kernel",
            "lattice",
            "crowdkit",
            "reading",
            "crowd",
            "page",
        ),
    )
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--engine", default="threads")
    parser.add_argument("--model", default="ds")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--limit", type=int, help="MB of memory of each worker")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    folder = Path(given.arguments[0]) if given.arguments else Path()
    sizes = [int(float(x)) for x in given.arguments[1:]] if given.what != "page" else []
    if given.what == "simulate":
        make(folder, sizes)
    elif given.what == "run":
        run(folder, sizes, given.engine, given.model, given.steps, given.limit, given.out)
    elif given.what == "default":
        default(folder, sizes, given.engine, given.limit)
    elif given.what == "sample":
        sample(given.arguments[0])
    elif given.what == "after":
        after(folder, sizes, given.engine, given.limit)
    elif given.what == "kernel":
        kernel()
    elif given.what == "lattice":
        lattice()
    elif given.what in ("crowdkit", "reading"):
        {"crowdkit": crowdkit, "reading": reading}[given.what](folder, sizes)
    elif given.what == "crowd":
        crowd(folder)
    else:
        page(folder, Path(given.arguments[1]) if len(given.arguments) > 1 else None)


if __name__ == "__main__":
    sys.exit(main())

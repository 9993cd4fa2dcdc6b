"""Truth models beside crowd-kit 1.4.2, in one process: time per iteration, memory, and every model on the MTurk corpus.

    python benchmarks/bench_truth.py [ds] [mace] [models] [memory] [--quick]

Without names all four parts run; `--quick` leaves out ten million annotations. Times per iteration are differences of
runs of few and of more iterations, so that reading the data and making the result count for neither side. Each figure
is the best of some repeats. User CPU is that of one thread on both sides; wall is with all threads (crowd-kit has one).
crowd-kit's Dawid–Skene stops as soon as its objective falls, which it does: a tolerance of -1e18 keeps it running.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lasca.corpus import CrowdCorpus
from lasca.errors import LascaError
from lasca.truth import MODEL_NAMES, model_class

ANNOTATORS, LABELS, PER_TOKEN = 47, 9, 5
TARGET = 50
CPU_LIMIT = dict.fromkeys(MODEL_NAMES, 60.0) | {"hc-seq": 120.0}
MEMORY_LIMIT = dict.fromkeys(MODEL_NAMES, 60.0) | {"hc-seq": float("inf")}  # nobody has set one
SHORT = {"mv": {}, "hc": {"n_warmup": 2, "n_samples": 4}, "hc-seq": {"max_iter": 3, "text_iterations": 3}}
Seconds = tuple[float, float]


def simulated(n_annotations: int, seed: int = 0) -> CrowdCorpus:
    """Draw tokens, five annotators for each, and labels that are right or else drawn by frequency."""
    rng = np.random.default_rng(seed)
    n = n_annotations // PER_TOKEN
    share = np.append(np.full(LABELS - 1, 0.3 / (LABELS - 1)), 0.7)
    truth = rng.choice(LABELS, size=n, p=share).astype(np.int16)
    teams = np.argsort(rng.random((20_000, ANNOTATORS)), axis=1)[:, :PER_TOKEN].astype(np.int32)
    teams.sort(axis=1)
    who = teams[rng.integers(0, len(teams), n)]
    right = rng.uniform(0.4, 0.95, ANNOTATORS)[who]
    wrong = rng.choice(LABELS, size=who.shape, p=share).astype(np.int16)
    said = np.where(rng.random(who.shape) < right, truth[:, None], wrong)
    offsets = np.append(np.arange(0, n, 20), n)
    return CrowdCorpus(
        tokens=["w"] * n,
        offsets=offsets,
        labels=tuple(f"L{t}" for t in range(LABELS)),
        annotators=tuple(f"annotator-{a:02d}" for a in range(ANNOTATORS)),
        annotation_annotator=who.ravel(),
        annotation_label=said.ravel(),
        token_start=np.arange(n + 1) * PER_TOKEN,
        sequence_ids=[str(i) for i in range(len(offsets) - 1)],
        golds={"gold": truth},
    )


def mturk() -> CrowdCorpus | None:
    """Load the MTurk corpus, if it can be had."""
    from lasca import datasets

    try:
        return datasets.load("conll2003-mturk")
    except LascaError as error:
        print(f"no MTurk corpus: {error}")
        return None


def frame(corpus: CrowdCorpus) -> Any:
    """Return the annotations as crowd-kit wants them, as integers, which is its fastest case."""
    import pandas as pd

    columns = (corpus.annotation_token, corpus.annotation_annotator, corpus.annotation_label.astype(np.int32))
    return pd.DataFrame(dict(zip(("task", "worker", "label"), columns)))


def timed(work: Callable[[], Any]) -> Seconds:
    """Return user CPU seconds of this process and wall seconds."""
    cpu, wall = resource.getrusage(resource.RUSAGE_SELF).ru_utime, time.perf_counter()
    work()
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime - cpu, time.perf_counter() - wall


def per_iteration(run: Callable[[int], Any], few: int, more: int, repeats: int) -> Seconds:
    """Return the time of one iteration: (time of `more` − time of `few`) / (more − few), best of some repeats."""
    low = [timed(lambda: run(few)) for _ in range(repeats)]
    high = [timed(lambda: run(more)) for _ in range(repeats)]
    return tuple((min(h[k] for h in high) - min(x[k] for x in low)) / (more - few) for k in (0, 1))  # type: ignore[return-value]


def row(what: str, n: int, theirs: Seconds, ours: Seconds) -> None:
    cpu, wall = theirs[0] / ours[0], theirs[1] / ours[1]
    verdict = "ok" if cpu >= TARGET else "BELOW TARGET"
    print(
        f"{what:<28} {n:>11,}  crowd-kit {theirs[0] * 1e3:10.1f} / {theirs[1] * 1e3:10.1f} ms   "
        f"lasca {ours[0] * 1e3:8.2f} / {ours[1] * 1e3:8.2f} ms   ratio cpu {cpu:7.0f}x  wall {wall:7.0f}x   {verdict}"
    )


def bench_iterations(name: str, corpora: list[tuple[str, CrowdCorpus]]) -> None:
    """Compare one EM/VB iteration of Dawid–Skene or MACE."""
    from crowdkit.aggregation import MACE, DawidSkene

    print(f"\n{name}: one iteration, user CPU of one thread / wall (target {TARGET}x)")
    model = model_class(name)
    for what, corpus in corpora:
        data, n = frame(corpus), corpus.n_annotations

        def ours(k: int, n_threads: int | None, corpus: CrowdCorpus = corpus) -> Any:
            settings = {"max_iter": k, "tol": 0, "n_threads": n_threads}
            return model(**settings, **({"restarts": 1} if name == "mace" else {})).fit(corpus)

        def theirs(k: int, data: Any = data) -> Any:
            if name == "ds":
                return DawidSkene(n_iter=k, tol=-1e18).fit(data)
            return MACE(n_restarts=1, n_iter=k).fit(data)

        ours(1, 1)
        big = n > 2_000_000
        repeats = 2 if big else 3
        cpu = per_iteration(lambda k: ours(k, 1), 2, 22, repeats)[0]
        wall = per_iteration(lambda k: ours(k, None), 2, 22, repeats)[1]
        few, more, repeats = (1, 2, 1) if big else (1, 6, 2) if name == "ds" else (1, 3, 2)
        row(f"{name} {what}", n, per_iteration(theirs, few, more, repeats), (cpu, wall))


def verdict(found: float, limit: float) -> str:
    return f"limit {limit:g}: {'ok' if found <= limit else 'ABOVE LIMIT'}"


def bench_models(corpus: CrowdCorpus) -> None:
    """Fit every model at its defaults on the MTurk corpus; the first fit of a process also compiles."""
    print(f"\nevery model at its defaults on {corpus!r}, and its limit")
    part = corpus.select(sequences=np.flatnonzero(corpus.annotated_sequences)[:400])
    for name in MODEL_NAMES:
        compile_time = timed(lambda name=name: model_class(name)().fit(part))
        cpu, wall = timed(lambda name=name: model_class(name)().fit(corpus))
        first = f"(400 sequences first: {compile_time[0]:.1f} s)"
        print(f"{name:<12} cpu {cpu:7.2f} s  wall {wall:7.2f} s   {first}  {verdict(cpu, CPU_LIMIT[name])}")


def peak_memory(name: str, n_annotations: int) -> float:
    """Return the bytes per annotation that a fit takes above the corpus, its result included (in this process)."""
    model = model_class(name)(**SHORT.get(name, {"max_iter": 3}))
    model.fit(simulated(20_000))
    corpus = simulated(n_annotations)
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    truth = model.fit(corpus)
    assert len(truth.labels) == corpus.n_tokens
    return (_status("VmHWM") - before) * 1024 / corpus.n_annotations


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1])


def bench_memory(n_annotations: int) -> None:
    """Measure each model in a process of its own."""
    print(f"\nmemory above the corpus at {n_annotations:,} annotations (bytes per annotation, and its limit)")
    for name in MODEL_NAMES:
        command = [sys.executable, __file__, "--peak", name, str(n_annotations)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        size = float(done.stdout)
        print(f"{name:<12} {size:6.1f}   {verdict(size, MEMORY_LIMIT[name])}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help="ds, mace, models, memory (default: all)")
    parser.add_argument("--quick", action="store_true", help="without ten million annotations")
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print(peak_memory(options.peak[0], int(options.peak[1])))
        return
    parts = options.parts or ["ds", "mace", "models", "memory"]
    real = mturk()
    corpora = [] if real is None else [("MTurk", real)]
    corpora.append(("simulated", simulated(1_000_000)))
    for name in ("ds", "mace"):
        if name in parts:
            large = [] if options.quick or name == "mace" else [("simulated", simulated(10_000_000))]
            bench_iterations(name, corpora + large)
    if "models" in parts and real is not None:
        bench_models(real)
    if "memory" in parts:
        bench_memory(2_000_000 if options.quick else 10_000_000)


if __name__ == "__main__":
    main()

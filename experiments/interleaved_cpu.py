"""CPU and memory of two versions of LASCA, in turns: python experiments/interleaved_cpu.py OLD/src NEW/src ds/demo ...

Each version has one process and one thread. A job is MODEL/CORPUS; corpora are demo, tdga and val (the val folder of
the MTurk entities). The first fit of a job compiles and does not count; then each version is asked five times, in
turns, and the medians are printed, as rows of a Markdown table, with the peak of what Python and NumPy allocate in one
more fit. For 0.1.0: git worktree add OLD 621c031.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import tracemalloc
from functools import cache
from typing import Any

QUICK = {"hc": {"n_chains": 2, "n_warmup": 30, "n_samples": 30, "n_clusters": 3}}
"""Settings for what would take long; the same for both."""
RUNS = 5


@cache
def corpus_named(name: str) -> Any:
    import numpy as np

    from lasca import datasets, simulate

    if name == "demo":
        return simulate.demo_crowd("ner")
    if name == "tdga":
        gold = datasets.load("tdga")
        return simulate.crowd(gold.select(sequences=np.arange(min(gold.n_sequences, 60))), seed=1)
    corpus = datasets.load("conll2003-mturk")
    return corpus.select(sequences=[i for i, id in enumerate(corpus.sequence_ids) if id.startswith("val/")])


def answer() -> None:
    """Fit what is asked for, line by line, and print the CPU seconds, or bytes per annotation."""
    from lasca.truth import model_class

    for line in sys.stdin:
        job, _, what = line.strip().partition(" ")
        name, _, where = job.partition("/")
        model = model_class(name)(**QUICK.get(name, {}))
        if "n_threads" in model.get_params():
            model.set_params(n_threads=1)
        corpus = corpus_named(where)
        if what == "bytes":
            tracemalloc.start()
        begin = time.process_time()
        model.fit(corpus)
        found = time.process_time() - begin
        if what == "bytes":
            found = tracemalloc.get_traced_memory()[1] / corpus.n_annotations
            tracemalloc.stop()
        print(json.dumps(found), flush=True)


class Version:
    """A process that runs one version."""

    def __init__(self, source: str) -> None:
        command = [sys.executable, __file__, "--answer"]
        env = os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, job: str) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(job, file=self.process.stdin, flush=True)
        return float(json.loads(self.process.stdout.readline()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("jobs", nargs="+", metavar="MODEL/CORPUS")
    asked = parser.parse_args()
    versions = Version(asked.old), Version(asked.new)
    print("| model/corpus | CPU s, old | new | ratio | bytes an annotation, old | new | ratio |\n|" + "---|" * 7)
    for job in asked.jobs:
        for version in versions:
            version.ask(job)
        found = [[version.ask(job) for version in versions] for _ in range(RUNS)]
        old, new = (statistics.median(times) for times in zip(*found))
        before, after = (version.ask(f"{job} bytes") for version in versions)
        sizes = f"{before:.0f} | {after:.0f} | {after / before:.2f}"
        print(f"| {job} | {old:.3f} | {new:.3f} | {new / old:.2f} | {sizes} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--answer"]:
        answer()
    else:
        main()

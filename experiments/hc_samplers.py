"""Two versions of hc on the same simulated crowds: python experiments/hc_samplers.py OLD/src NEW/src

Labels (share that is right), clusters (adjusted Rand index with the groups), how well chains mix (effective draws of
the log joint and of the mean reliability, of 80 that are kept) and CPU seconds, over ten seeds, on 250 tweets of T-DGA:
the crowds ca1–ca3 with shared confusions as docs/models/hierarchical-clusters.md has them, all votes, and three
annotators per sequence. Prints the mean of each version, and their difference with its standard error (pairs of the
same crowd). The figures of the docs are those of the collapsed sampler (git worktree add OLD a163cfc) and the blocked
one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np

CROWDS = [(groups, votes) for groups in ("ca1", "ca2", "ca3") for votes in (None, 3)]
SETTINGS = {"n_clusters": 3, "n_chains": 2, "n_warmup": 60, "n_samples": 40, "n_threads": 1}
COLUMNS = ("right", "rand", "ess_joint", "ess_reliability", "cpu")


def answer() -> None:
    """Fit the crowds of seeds that are asked for, line by line."""
    from lasca import datasets, evaluate, simulate
    from lasca.truth import model_class

    gold = datasets.load("tdga").select(sequences=np.arange(250))
    for line in sys.stdin:
        groups, votes, seed = json.loads(line)
        corpus = simulate.crowd(
            gold, gold="gold1", groups=groups, wrong="shared", per_label=True, annotators_per_sequence=votes, seed=seed
        )
        began = time.process_time()
        truth = model_class("hc")(**SETTINGS, seed=seed).fit(corpus)
        cpu = time.process_time() - began
        people = np.array([name.split("-")[0] for name in corpus.annotators])
        ess = truth.diagnostics["ess"]
        found = (
            float((truth.labels == corpus.golds["gold1"]).mean()),
            float(evaluate.adjusted_rand_index(people, truth.clusters.assignment)),
            ess["log_joint"],
            ess["mean_reliability"],
            cpu,
        )
        print(json.dumps(found), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--seeds", type=int, default=10)
    asked = parser.parse_args()
    workers = []
    for source in (asked.old, asked.new):
        env = os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, __file__, "--answer"]
        workers.append(subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    print(f"{'crowd':8s} {'votes':>5s} " + " ".join(f"{name:>30s}" for name in COLUMNS))
    for groups, votes in CROWDS:
        found = []
        for seed in range(asked.seeds):
            for worker in workers:
                print(json.dumps([groups, votes, seed]), file=worker.stdin, flush=True)
            found.append([json.loads(worker.stdout.readline()) for worker in workers])
        both = np.array(found)  # (seed, version, column)
        apart = both[:, 1] - both[:, 0]
        error = apart.std(axis=0, ddof=1) / np.sqrt(len(apart))
        cells = [
            f"{a:8.4f} {b:8.4f} {d:+.4f}±{e:.4f}" for a, b, d, e in zip(*both.mean(axis=0), apart.mean(axis=0), error)
        ]
        print(f"{groups:8s} {votes or 'all':>5} " + " ".join(f"{cell:>30s}" for cell in cells), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--answer"]:
        answer()
    else:
        main()

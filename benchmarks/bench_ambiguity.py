"""Time of finding ambiguity in 10 million annotations: CPU seconds and wall seconds per method.

Run: python benchmarks/bench_ambiguity.py [n_annotations]. The limit is 30 CPU seconds for two-truths.
"""

from __future__ import annotations

import resource
import sys
import time

import lasca
from lasca.ambiguity import METHODS, find_ambiguity

LIMIT = 30.0


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    warm = lasca.simulate.big(20_000, seed=1)
    truth = lasca.MajorityVote().fit(warm)
    for method in METHODS:  # compiles
        find_ambiguity(warm, truth, method)
    corpus = lasca.simulate.big(n, seed=0)
    print(corpus)
    truth = lasca.DawidSkene(max_iter=20).fit(corpus)
    slow = False
    for method in METHODS:
        cpu, wall = time.process_time(), time.perf_counter()
        found = find_ambiguity(corpus, truth, method)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        note = f"iterations {found.diagnostics['iterations']}" if method == "two-truths" else ""
        print(f"{method:18s} {cpu:6.1f} CPU s  {wall:6.1f} s  {cpu / n * 1e9:7.0f} ns per annotation  {note}")
        slow |= method == "two-truths" and cpu > LIMIT * max(n / 10_000_000, 0.1)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GB")
    if slow:
        sys.exit(f"two-truths took more than {LIMIT:.0f} CPU seconds per 10 million annotations")


if __name__ == "__main__":
    main()

"""Speed of the hierarchical clusters model: a sweep over z, the other moves, and a whole fit.

python benchmarks/bench_gibbs.py [--annotations 2000000] [--fit]

Target: a sweep over z of at least 60 million annotations × labels per second and core (a pilot does 40). The reference
beside it is the same draw written in NumPy, vote by vote vectorised over tokens.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block
from lasca.truth.base import Votes
from lasca.truth.cluster_sampler import Priors, Sampler, StateLearner, Sweep, hard_rows
from lasca.truth.dawid_skene import Tables
from lasca.truth.hierarchical import HierarchicalClusters


def simulated(n_annotations: int, per_token: int = 5, L: int = 47, T: int = 9) -> CrowdCorpus:
    rng = np.random.default_rng(0)
    n = n_annotations // per_token
    share = np.array([0.82, *[0.18 / (T - 1)] * (T - 1)])
    truth = rng.choice(T, n, p=share)
    who = (rng.integers(L, size=n)[:, None] + np.arange(per_token) * 9) % L
    right = rng.random((n, per_token)) < rng.uniform(0.6, 0.95, L)[who]
    said = np.where(right, truth[:, None], rng.integers(T, size=(n, per_token)))
    return CrowdCorpus.from_codes(
        tokens=["w"] * n,
        offsets=np.append(np.arange(0, n, 20), n),
        labels=[f"L{t}" for t in range(T)],
        annotators=[f"a{m}" for m in range(L)],
        annotation_token=np.repeat(np.arange(n), per_token),
        annotation_annotator=who.ravel(),
        annotation_label=said.ravel(),
        sequence_ids=[str(i) for i in range(-(-n // 20))],
    )


def timed(work: object, repeats: int) -> tuple[float, float]:
    work()  # type: ignore[operator]
    cpu, wall = [], []
    for _ in range(repeats):
        c, w = time.process_time(), time.perf_counter()
        work()  # type: ignore[operator]
        cpu.append(time.process_time() - c)
        wall.append(time.perf_counter() - w)
    return float(np.median(cpu)), float(np.median(wall))


def in_numpy(votes: Votes, at: Tables, rng: np.random.Generator) -> None:
    logs = np.add.reduceat(at.log_psi[votes.annotator, votes.label], votes.start[:-1]) + at.log_gamma
    p = np.exp(logs - logs.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    (p.cumsum(axis=1) < rng.random(len(p))[:, None]).sum(axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--annotations", type=int, default=2_000_000)
    parser.add_argument("--fit", action="store_true", help="also time a whole fit and its memory")
    options = parser.parse_args()
    corpus = simulated(options.annotations)
    votes = Votes.of(corpus)
    T = votes.n_labels
    alpha = np.full((T, T), 1.0) + np.eye(T) * 10
    block, cells = Block(votes, 0, votes.n_tokens), len(votes.label) * T
    given = np.bincount(votes.label, minlength=T).astype(float)
    for name, hard in (("two levels of difficulty", hard_rows(given)), ("one level", np.zeros((0, T)))):
        learner = StateLearner(votes.n_annotators, T, 2 if len(hard) else 1, None)
        (counts, totals), local = learner.visit(Sweep((), (0,), 0, shares=given / given.sum()), block, None)
        sampler = Sampler(Priors(alpha, 0.02, 1.0, 1.0, hard))
        state = sampler.initial(counts[0], totals[0], 3, np.random.default_rng(0), spread=False)
        log_psi, log_gamma = sampler.move(state, 0.0)
        at = Tables(np.ascontiguousarray(log_psi.transpose(0, 2, 1)), log_gamma)
        sweep = Sweep((at,), (0,), 1, keeps=True)
        cpu, wall = timed(lambda own=learner, sweep=sweep, local=local: own.visit(sweep, block, local), 5)
        print(f"sweep over z, {name}: {cells / cpu / 1e6:.0f} million annotations x labels / s / core")
        print(f"  cpu {cpu:.3f} s, wall {wall:.3f} s")
    slow, _ = timed(lambda: in_numpy(votes, at, np.random.default_rng(0)), 2)
    print(f"  the same in NumPy: {cells / slow / 1e6:.0f} million / s; ratio {slow / cpu:.1f}")
    other, _ = timed(lambda: sampler.move_clusters(state, 0.0), 5)
    print(f"all other moves once: {1e3 * other:.2f} ms")
    if options.fit:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        c, w = time.process_time(), time.perf_counter()
        HierarchicalClusters().fit(corpus)
        print(f"whole fit: cpu {time.process_time() - c:.1f} s, wall {time.perf_counter() - w:.1f} s")
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / len(votes.label)
        print(f"  memory above the corpus (and above what the runs before needed): {more:.0f} bytes per annotation")


if __name__ == "__main__":
    main()

"""Does HierarchicalClusters find the groups of simulated crowds, and what is that worth? (T-DGA, gold 1)

python experiments/clusters.py [--seeds 5] [--wrong shared] [--errors independent] [--models mv,ds,mace,glad,hc]

Prints, per crowd (ca1 = 8 + 4 + 3, ca2 = 5 + 5 + 5, ca3 = 3 + 4 + 8 annotators of high, medium and low precision), the
token accuracy of every model, the number of clusters BIC chose, the adjusted Rand index against the true groups and
the mean diagonals of the shared matrices. Needs the T-DGA file (LASCA_DATA or `lasca datasets fetch tdga`).
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from lasca import datasets, evaluate, simulate
from lasca.truth import model_class

CROWDS = {"ca1": (8, 4, 3), "ca2": (5, 5, 5), "ca3": (3, 4, 8)}


def run(corpus: object, name: str, gold: np.ndarray, groups: np.ndarray) -> dict[str, object]:
    began = time.process_time()
    truth = model_class(name)().fit(corpus)
    row: dict[str, object] = {
        "accuracy": 100 * float((truth.labels == gold).mean()),
        "cpu": time.process_time() - began,
    }
    if truth.clusters is not None:
        row["n"] = truth.clusters.n_clusters
        row["ari"] = evaluate.adjusted_rand_index(groups, truth.clusters.assignment)
        row["diagonals"] = np.diagonal(truth.clusters.shared, axis1=1, axis2=2).mean(axis=1).round(2).tolist()
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--wrong", default="shared")
    parser.add_argument("--errors", default="independent")
    parser.add_argument("--models", default="mv,ds,mace,glad,hc")
    options = parser.parse_args()
    corpus = datasets.load("tdga")
    rands = []
    for crowd, sizes in CROWDS.items():
        for seed in range(options.seeds):
            made = simulate.crowd(
                corpus, gold="gold1", groups=dict(zip(("high", "medium", "low"), sizes)), errors=options.errors,
                wrong=options.wrong, per_label=options.errors == "independent", seed=seed,
            )  # fmt: skip
            groups = np.array([name.split("-")[0] for name in made.annotators])
            cells = []
            for name in options.models.split(","):
                row = run(made, name, made.golds["gold1"], groups)
                cells.append(f"{name} {row['accuracy']:.2f} ({row['cpu']:.1f} s)")
                if "ari" in row:
                    rands.append(row["ari"])
                    cells.append(f"C = {row['n']}, ARI {row['ari']:.2f}, diagonals {row['diagonals']}")
            print(f"{crowd} seed {seed}: " + " | ".join(cells), flush=True)
    print(f"mean adjusted Rand index {np.mean(rands):.3f}")


if __name__ == "__main__":
    main()

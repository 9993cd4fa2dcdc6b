"""Finding the truly ambiguous tokens of T-DGA with simulated crowds: all methods, against the two golds.

For each crowd (ca1–ca3), error model (independent, difficulty) and share of second readings (hard cases 0.3, 0.4,
0.5), over seeds: acc1 and acc2 at fraction 10 %, average precision, AUROC, for two-truths also the calibration error
of its probability, and the Spearman correlation of the derived label confusion with that of the golds. Wrong labels
are uniform. The truth model is named by --truth; rank-1 uses its reliable cluster, or (Dawid–Skene has none) the
annotators above the best split of the reliabilities.

    python experiments/ambiguity.py --hard-cases 0.4 --write docs/ambiguity.md

The reproduction (`make reproduction`) has the same table with the paper's cluster model as the truth model.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import lasca
from lasca.truth import model_class
from reproduction.ambiguity import METHODS, SCORES, scores_of


def cells(args: argparse.Namespace) -> Iterator[tuple[str, str, float, str, dict[str, list[float | None]]]]:
    corpus = lasca.datasets.load("tdga")
    for errors in args.errors:
        for h in args.hard_cases:
            for crowd in args.crowds:
                methods = {name: METHODS[name] for name in args.methods}
                cell: dict[str, dict[str, list[float | None]]] = {m: {s: [] for s in SCORES} for m in methods}
                for seed in range(args.seeds):
                    annotated = lasca.simulate.crowd(
                        corpus, gold="gold1", second_gold="gold2", groups=crowd, errors=errors, wrong="uniform",
                        hard_cases=h, seed=seed,
                    )  # fmt: skip
                    truth = model_class(args.truth)().fit(annotated)
                    for method, options in methods.items():
                        for name, value in scores_of(annotated, truth, **options).items():
                            cell[method][name].append(value)
                for method in methods:
                    yield errors, crowd, h, method, cell[method]


def shown(values: list[float | None]) -> str:
    if None in values:
        return "–"
    spread = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"


def put(page: Path, lines: list[str]) -> None:
    """Put the rows with 40 % hard cases between the marks of a page."""
    begin, end = "<!-- tdga: begin -->", "<!-- tdga: end -->"
    head = [line for line in lines if line.startswith(("| errors", "|---"))]
    kept = [line for line in lines if line.startswith("| ") and "| 0.4 |" in line]
    before, rest = page.read_text("utf-8").split(begin)
    page.write_text("\n".join([before + begin, *head, *kept, end]) + rest.split(end)[1], "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--truth", default="ds")
    parser.add_argument("--crowds", nargs="+", default=["ca1", "ca2", "ca3"])
    parser.add_argument("--errors", nargs="+", default=["independent", "difficulty"])
    parser.add_argument("--hard-cases", nargs="+", type=float, default=[0.3, 0.4, 0.5])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--write", type=Path, help="a page with marks to put the rows with 40 %% hard cases between")
    args = parser.parse_args()
    started = time.process_time()
    lines = [
        f"Mean ± standard deviation over {args.seeds} seed(s); truth model: {args.truth}; flagged: 10 % of the tokens.",
        "At most 788 of the 930 differing tokens can be flagged: the ceiling of acc1 is 0.847.",
        "",
        "| errors | crowd | h | method | " + " | ".join(SCORES) + " |",
        "|---|---|---|---|" + "---|" * len(SCORES),
    ]
    for errors, crowd, h, method, cell in cells(args):
        lines.append(f"| {errors} | {crowd} | {h} | {method} | {' | '.join(shown(cell[s]) for s in SCORES)} |")
        print(lines[-1], flush=True)
    print(f"{time.process_time() - started:.0f} CPU seconds")
    if args.write is not None:
        put(args.write, lines)


if __name__ == "__main__":
    main()

# ruff: noqa: E501  the text of a page
"""Make docs/review-replays.md of replays: what the queue, the promise and `lasca next` are worth on real crowds.

    python experiments/replay.py --data pico --refit 60 -o build/replay-pico.json
    python experiments/replay.py --data mturk --refit 0 --most 1500 -o build/replay-mturk.json
    python experiments/collect.py -o build/collect.json
    python experiments/review_page.py build/replay-mturk.json build/replay-pico.json --collect build/collect.json --fit build/fits/mturk-0.9-robust-0

`--fit` is a run of data with gold, of which 500 audits are drawn. The curves are docs/images/review-replays.png.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from lasca.review.project import Project
from lasca.review.promise import certainty_of, make_promise
from lasca.review.spans import Span
from replay import GOLD, ORDERS, half

mpl.use("Agg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).resolve().parents[1] / "docs"
AUDITS = ((0.02, 600), (0.02, 1200), (0.05, 200), (0.05, 400), (0.1, 200))
REPLAYS = 500
CONFIDENCE = 0.95


# --- the queue -----------------------------------------------------------------------------------------------------


def queue_part(path: Path, figure: Any) -> list[str]:
    """Return the table of a replay, and draw its curves."""
    found = json.loads(path.read_text(encoding="utf-8"))
    asked, results = found["settings"], found["results"]
    seeds = sorted({r["seed"] for r in results})
    seeds = [s for s in seeds if {r["order"] for r in results if r["seed"] == s} == set(ORDERS)]
    by = {(r["seed"], r["order"]): r for r in results}
    lines = [
        f"### {asked['data']}: model `{asked['model']}`, {100 * asked['share']:g} % of the sequences per seed, "
        + (
            f"a refit every {asked['refit']} decisions"
            if asked["refit"]
            else "no refits: the queue learns by itself alone"
        ),
        "",
        "| seed | errors | queue | posterior entropy | vote entropy | queue / posterior | queue / vote | errors never shown |",
        "|---|---|---|---|---|---|---|---|",
    ]
    ratios: list[tuple[float, float]] = []
    for s in seeds:
        needed = {order: half(by[s, order]["curve"]) for order in ORDERS}
        most = {order: needed[order] or by[s, order]["curve"][-1]["decisions"] for order in ORDERS}
        own = needed["queue"]
        ratio = [float("nan") if own is None else own / most[order] for order in ORDERS[1:]]
        ratios.append((ratio[0], ratio[1]))
        last = by[s, "queue"]["curve"][-1]
        cells = [f"{most[o]:.0f}" if needed[o] is not None else f"> {most[o]:.0f}" for o in ORDERS]
        less = ["" if needed[o] is not None else "< " for o in ORDERS[1:]]
        shares = [f"{sign}{100 * r:.0f} %" for sign, r in zip(less, ratio)]
        lines.append(
            f"| {s} | {by[s, 'queue']['curve'][0]['errors']} | {' | '.join(cells)} | {' | '.join(shares)} | "
            + (f"{last['unseen_before']} → {last['unseen']} |" if asked["refit"] else "– |")
        )
    mean = np.mean(ratios, axis=0)
    less = ["" if all(half(by[s, o]["curve"]) is not None for s in seeds) else "< " for o in ORDERS[1:]]
    before, after = (sum(by[s, "queue"]["curve"][-1][k] for s in seeds) for k in ("unseen_before", "unseen"))
    lines += [
        f"| mean | | | | | **{less[0]}{100 * mean[0]:.0f} %** | **{less[1]}{100 * mean[1]:.0f} %** | "
        + (f"{before} → {after} |" if asked["refit"] else "– |"),
        "",
    ]
    for order, colour in zip(ORDERS, ("#0b6e4f", "#c2571a", "#5b5b8c")):
        for s in seeds:
            curve = by[s, order]["curve"]
            share = [100 * p["errors"] / curve[0]["errors"] for p in curve]
            name = order.replace("-", " ") if s == seeds[0] else None
            figure.plot([p["decisions"] for p in curve], share, color=colour, lw=1.1, alpha=0.85, label=name)
    figure.axhline(50, color="#999999", lw=0.8, ls=":")
    figure.set(title=asked["data"], xlabel="decisions", ylabel="errors left, %", ylim=(40, 101))
    figure.legend(frameon=False)
    return lines


# --- the promise ---------------------------------------------------------------------------------------------------


def wrong_units(project: Project) -> np.ndarray[Any, Any]:
    """Say of each unit whether gold differs from what was inferred."""
    corpus, labels, units = project.corpus, project.labels, project.units
    own: dict[int, list[Any]] = {}
    for unit in units:
        own.setdefault(unit.sequence, []).append(unit)

    def spans(codes: Any, s: int) -> set[Span]:
        return set(labels.of_sequence(codes[int(corpus.offsets[s]) : int(corpus.offsets[s + 1])].tolist()))

    def touching(found: set[Span], unit: Any) -> set[Span]:
        return {span for span in found if span[0] < unit.stop and span[1] > unit.start}

    said = {s: (spans(project.truth.labels, s), spans(corpus.golds[GOLD], s)) for s in own}
    wrong = np.zeros(len(units), bool)
    for i, unit in enumerate(units):
        inferred, gold = said[unit.sequence]
        wrong[i] = touching(inferred, unit) != touching(gold, unit)
        if unit.rest and not wrong[i]:
            covered = [set().union(*(touching(found, u) for u in own[unit.sequence])) for found in (inferred, gold)]
            wrong[i] = inferred - covered[0] != gold - covered[1]
    return wrong


def promise_part(folder: Path) -> list[str]:
    """Return the table of audits drawn again and again of one run."""
    project = Project(folder)
    certainty = certainty_of(project.corpus, project.truth, project.units, project.labels, project.areas)
    wrong = wrong_units(project)
    sure = np.array(sorted(project.audits))
    rate = np.cumsum(wrong[np.argsort(-certainty, kind="stable")]) / np.arange(1, len(wrong) + 1)
    lines = [
        f"{len(wrong):,} items of `{folder.name}`, {100 * wrong.mean():.1f} % of them wrong; {len(sure):,} are sure enough for the "
        f"audit. {REPLAYS} audits each, drawn at random, {100 * CONFIDENCE:g} % confidence. The oracle knows all errors and accepts in "
        "the same order.",
        "",
        "| error | audited | promises kept | accepted | oracle | accepted / oracle |",
        "|---|---|---|---|---|---|",
    ]
    for error, k in AUDITS:
        rng = np.random.default_rng(0)
        kept, taken = 0, 0
        for _ in range(REPLAYS):
            audited = [(int(u), bool(wrong[u])) for u in rng.permutation(sure)[:k]]
            found = make_promise(certainty, audited, error=error, confidence=CONFIDENCE, sure=sure)
            accepted = np.array(found.accepted, int)
            kept += not len(accepted) or bool(wrong[accepted].mean() <= error)
            taken += len(accepted)
        fine = np.flatnonzero(rate <= error)
        oracle = (fine[-1] + 1 if len(fine) else 0) / len(wrong)
        share = taken / REPLAYS / len(wrong)
        lines.append(
            f"| {100 * error:g} % | {k:,} | {100 * kept / REPLAYS:.1f} % | {100 * share:.1f} % | {100 * oracle:.1f} % | "
            f"{100 * share / max(oracle, 1e-9):.0f} % |"
        )
    return [*lines, ""]


# --- who labels next -----------------------------------------------------------------------------------------------


def collect_part(path: Path) -> list[str]:
    """Return the table of replayed collections."""
    found = json.loads(path.read_text(encoding="utf-8"))
    asked = found["settings"]
    lines = [
        f"MTurk val, 199 documents, model `{asked['model']}`, batches of {asked['batch']} votes.",
        "",
        "| seed | F1 with one vote each | F1 at three random votes each | random votes | votes as `lasca next` says | ratio |",
        "|---|---|---|---|---|---|",
    ]
    ratios = []
    for row in found["rows"]:
        votes, f1 = row["course"][-1]
        ratio = votes / row["random"]
        ratios.append(ratio)
        needed = f"{votes}" if row["reached"] else f"not reached ({100 * f1:.1f} with {votes})"
        lines.append(
            f"| {row['seed']} | {100 * row['course'][0][1]:.1f} | {100 * row['goal']:.1f} | {row['random']} | {needed} | {ratio:.2f} |"
        )
    reached = all(row["reached"] for row in found["rows"])
    note = "" if reached else " (seeds that never reached the goal count with the votes they had)"
    return [*lines, f"| mean | | | | | **{np.mean(ratios):.2f}**{note} |", ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("replays", type=Path, nargs="+")
    parser.add_argument("--collect", type=Path, required=True)
    parser.add_argument("--fit", type=Path, required=True)
    asked = parser.parse_args()
    figure, axes = plt.subplots(1, len(asked.replays), figsize=(5 * len(asked.replays), 3.4), squeeze=False)
    tables = [line for path, axis in zip(asked.replays, axes[0]) for line in queue_part(path, axis)]
    figure.tight_layout()
    figure.savefig(DOCS / "images" / "review-replays.png", dpi=90)
    text = [
        "# What the loop is worth: replays with gold as the reviewer",
        "",
        "Made by `experiments/review_page.py`, which says how; about the commands: [review.md](review.md).",
        "",
        "## The queue",
        "",
        "Decisions go through the server's own endpoints; errors are spans that are wrong plus spans that are missing. All orders are over",
        "the items the server offers, and get the same refits with what was decided. The numbers are decisions until half of the errors are",
        "gone; “>” is where a replay was stopped before. “Never shown” are errors in sequences of which no item was decided, before and after",
        "what was learned from the others. Five seeds are meant; those that are missing were not run.",
        "",
        "The traits and the strength of what is learned (`lasca.review.queue`), and where the promise begins (`lasca.review.promise`),",
        "were chosen on seed 0 of MTurk, which is shown here: on other data they may do less. What the promise says does not rest on them.",
        "",
        "![errors left against decisions made](images/review-replays.png)",
        "",
        *tables,
        "## The promise",
        "",
        *promise_part(asked.fit),
        "## Who labels next",
        "",
        *collect_part(asked.collect),
    ]
    (DOCS / "review-replays.md").write_text("\n".join(text).rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

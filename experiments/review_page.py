# ruff: noqa: E501  the text of a page
"""Make docs/review-replays.md of replays: what the queue, the promise and `lasca next` are worth on real crowds.

    python experiments/replay.py --data mturk --share 0.3 --refit 100 -o build/replay-mturk.json
    python experiments/replay.py --data pico --refit 20 -o build/replay-pico.json
    python experiments/replay.py --share 0.9 --refit 200 --orders queue --seeds 0-2 -o build/replay-larger.json
    python experiments/collect.py -o build/collect.json
    python experiments/review_page.py build/replay-*.json --collect build/collect.json

Several files of the same data and share (other seeds) are read as one; those with the queue alone only say what became
of documents never shown. What is not given stays on the page as it is, and so do the curves, docs/images/review-replays.png, unless
the replays of all tables are given. The promise is about a fit of MTurk val, of which 500 audits are drawn.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from scipy.stats import hypergeom

from lasca.review.project import Project
from lasca.review.promise import _too_many, certainty_of, make_promise
from lasca.review.spans import Span
from replay import GOLD, ORDERS, fitted, half

mpl.use("Agg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).resolve().parents[1] / "docs"
AUDITS = ((0.02, 1200), (0.02, 1800), (0.05, 200), (0.05, 400), (0.1, 200))
REPLAYS = 500
CONFIDENCE = 0.95


# --- the queue -----------------------------------------------------------------------------------------------------


def read_replays(paths: list[Path]) -> list[tuple[dict[str, Any], dict[tuple[int, str], Any]]]:
    """Return the settings and the results (by seed and order) of each data set; of seeds with all orders, if any has."""
    found: dict[tuple[str, float], tuple[dict[str, Any], dict[tuple[int, str], Any]]] = {}
    for path in paths:
        one = json.loads(path.read_text(encoding="utf-8"))
        asked, results = found.setdefault((one["settings"]["data"], one["settings"]["share"]), (one["settings"], {}))
        assert asked == one["settings"], f"{path} has other settings"
        results |= {(r["seed"], r["order"]): r for r in one["results"]}
    for _, results in found.values():
        if {order for _, order in results} == {"queue"}:
            continue
        for seed in {seed for seed, _ in results if not all((seed, order) in results for order in ORDERS)}:
            for order in ORDERS:
                results.pop((seed, order), None)
    return list(found.values())


def queue_part(asked: dict[str, Any], by: dict[tuple[int, str], Any], figure: Any) -> list[str]:
    """Return the table of a replay, and draw its curves."""
    seeds = sorted({seed for seed, _ in by})
    lines = [
        f"### {asked['data']}: model `{asked['model']}`, {100 * asked['share']:g} % of the documents per seed, a refit "
        f"every {asked['refit']} decisions",
        "",
        "| seed | errors | queue | posterior entropy | vote entropy | queue / posterior | queue / vote | errors never shown |",
        "|---|---|---|---|---|---|---|---|",
    ]
    ratios: list[list[float]] = []
    for s in seeds:
        needed = {order: half(by[s, order]["curve"]) for order in ORDERS}
        assert all(n is not None for n in needed.values()), f"seed {s} was stopped before half of the errors were gone"
        own, *others = (float(needed[order] or 0) for order in ORDERS)
        ratios.append([own / other for other in others])
        curve = by[s, "queue"]["curve"]
        cells = [f"{own:.0f}", *(f"{n:.0f}" for n in others), *(f"{100 * own / n:.0f} %" for n in others)]
        lines.append(
            f"| {s} | {curve[0]['errors']} | {' | '.join(cells)} | {curve[0]['apart']} → {curve[-1]['apart']} |"
        )
    mean = np.mean(ratios, axis=0)
    before, after = (sum(by[s, "queue"]["curve"][i]["apart"] for s in seeds) for i in (0, -1))
    lines += [
        f"| mean | | | | | **{100 * mean[0]:.0f} %** | **{100 * mean[1]:.0f} %** | {before} → {after} |",
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


def unseen_part(asked: dict[str, Any], by: dict[tuple[int, str], Any]) -> list[str]:
    """Return the table of what became of documents never shown, refit after refit."""
    lines = [
        f"### {asked['data']}: {100 * asked['share']:g} % of the documents per seed, the queue alone, a refit every {asked['refit']} decisions",
        "",
        "| seed | errors where items are shown | decisions | errors never shown, after each refit |",
        "|---|---|---|---|",
    ]
    for seed, _ in sorted(by):
        curve = by[seed, "queue"]["curve"]
        after = [p["apart"] for p in curve[:-1] if p["decisions"] % asked["refit"] == 0] + [curve[-1]["apart"]]
        shown = f"{curve[0]['errors']} → {curve[-1]['errors']}"
        lines.append(f"| {seed} | {shown} | {curve[-1]['decisions']} | {' → '.join(map(str, after))} |")
    return [*lines, ""]


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
        "the same order. The last column: what a test would accept that looks but once, at the end, for the first set that makes it accept "
        "most; who may look at any time cannot reach it.",
        "",
        "| error | audited | promises kept | accepted | oracle | accepted / oracle | one look |",
        "|---|---|---|---|---|---|---|",
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
            f"{100 * share / max(oracle, 1e-9):.0f} % | {100 * one_look(wrong, certainty, sure, error, k) / max(oracle, 1e-9):.0f} % |"
        )
    return [*lines, ""]


def one_look(wrong: Any, certainty: Any, sure: Any, error: float, k: int) -> float:
    """Return the share of all units that a test of one look accepts on average, begun at the set that is best for it."""
    order = sure[np.argsort(-certainty[sure], kind="stable")]
    n, bad = len(order), wrong[order]
    sizes = [i * n // 10 for i in range(1, 11)]
    taken = np.zeros(len(sizes))
    rng = np.random.default_rng(0)
    for _ in range(REPLAYS):
        drawn = rng.permutation(n)[:k]
        seen = [drawn[drawn < size] for size in sizes]
        found = [int(bad[mine].sum()) for mine in seen]
        falls, goes_on = (
            [
                hypergeom.cdf(f, size, _too_many(size, error, f * out), len(mine)) <= 1 - CONFIDENCE
                for size, mine, f in zip(sizes, seen, found)
            ]
            for out in (1, 0)
        )
        for first in range(len(sizes)):
            best = 0
            for i in range(first, len(sizes)):
                best = sizes[i] - found[i] if falls[i] else best
                if not goes_on[i]:
                    break
            taken[first] += best
    return float(taken.max() / REPLAYS / len(wrong))


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


def sections() -> dict[str, list[str]]:
    """Return the sections of the page as it is, by their titles."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in (DOCS / "review-replays.md").read_text(encoding="utf-8").splitlines():
        title = line if line.startswith("##") else title
        found.setdefault(title, []).append(line)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("replays", type=Path, nargs="*")
    parser.add_argument("--collect", type=Path)
    parser.add_argument("--fits", type=Path, default=Path("build/fits"))
    parser.add_argument("--keep-promise", action="store_true", help="leave the promise on the page as it is")
    parser.add_argument("--state", default="", help="which state of the code was measured, for the page")
    asked = parser.parse_args()
    found = read_replays(asked.replays)
    alone = [one for one in found if {order for _, order in one[1]} == {"queue"}]
    found = [one for one in found if one not in alone]
    figure, axes = plt.subplots(1, max(len(found), 1), figsize=(5 * max(len(found), 1), 3.4), squeeze=False)
    tables = [queue_part(settings, by, axis) for (settings, by), axis in zip(found, axes[0])]
    tables += [unseen_part(settings, by) for settings, by in alone]
    kept = sections()
    measured = {lines[0].split(" per seed")[0] for lines in tables}
    others = [
        lines
        for title, lines in kept.items()
        if title.startswith("### ") and title.split(" per seed")[0] not in measured
    ]
    if found and not any("queue / posterior" in "".join(lines) for lines in others):
        figure.tight_layout()
        figure.savefig(DOCS / "images" / "review-replays.png", dpi=90)
    text = [
        "# What the loop is worth: replays with gold as the reviewer",
        "",
        "How many decisions the [review](review.md) saves, what its promise is worth, and what `lasca next` saves. Made by",
        "`experiments/review_page.py`, which says how." + (f" Measured: {asked.state}." if asked.state else ""),
        "",
        "## The queue",
        "",
        "How many decisions does it take until half of the errors are gone? Gold plays the reviewer. Errors are spans that are wrong plus spans that",
        "are missing. The queue is compared with two usual orders of the same items: by the entropy of the posterior, and by the entropy of the",
        "votes. “queue / posterior” below 100 % says that the queue needs fewer decisions.",
        "",
        "Decisions go through the server's own endpoints, with its own refits in the background; all orders get the same refits. Every seed draws its",
        "own documents. A fifth of these is held apart: they are in the corpus, but nobody is asked about them. “Never shown” are the errors there,",
        "before and after a refit with what was decided elsewhere. In 30 % of MTurk these are eleven documents a seed, so one name that a document repeats",
        "moves the figure a lot.",
        "",
        "What the queue knows was chosen on draws from the same documents (seeds 0 and 1, and others), so on other crowds it may do less. So was",
        "where the search for a promise begins, and that what few said is not sure (on the fit measured below): on other crowds less may be",
        "accepted. That promises are kept does not rest on it.",
        "",
        "![errors left against decisions made](images/review-replays.png)",
        "",
        *(line for lines in [*tables, *others] for line in lines),
        *(
            kept["## The promise"]
            if asked.keep_promise
            else ["## The promise", "", *promise_part(fitted("mturk", 0.9, "robust", 0, asked.fits))]
        ),
        *(["## Who labels next", "", *collect_part(asked.collect)] if asked.collect else kept["## Who labels next"]),
    ]
    (DOCS / "review-replays.md").write_text("\n".join(text).rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

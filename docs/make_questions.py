"""Write the tables of docs/questions/ and README.md (make docs); a test says when they are out of date.

Every table stands between `<!-- made: NAME -->` and `<!-- end -->` in its page. They come from what the reproduction measured
on tweets (docs/reproduction/results.json), from the bench of crowds (docs/crowds.md), and one is measured anew in a second.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np

import lasca
from lasca import simulate

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "experiments"))

from reproduction.jobs import Results  # noqa: E402
from reproduction.pages import ambiguity as found_ambiguity  # noqa: E402
from reproduction.pages import beyond  # noqa: E402
from reproduction.run import plan, scope_of  # noqa: E402

PAGES = [HERE.parent / "README.md", *sorted((HERE / "questions").glob("*.md"))]
MADE = re.compile(r"(<!-- made: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
MODELS = {"mv": "majority vote", "ds": "Dawid–Skene", "hmm-crowd": "HMM-Crowd", "hc-seq": "hc-seq"}


@cache
def measured() -> Results:
    """Return what the reproduction measured."""
    kept = json.loads((HERE / "reproduction" / "results.json").read_text("utf-8"))
    return Results(tuple((job, kept[job.id]["result"]) for job in plan(scope_of(False)) if job.id in kept))


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table; numbers in per cent with one place."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)]]
    lines += [[f"{x:.1f}" if isinstance(x, float) else str(x) for x in row] for row in rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def accuracy(case: str, value: str, model: str) -> float:
    """Return the accuracy (%) on the crowd ca2: five annotators each of high, medium and low precision."""
    return beyond.cell(measured(), case, "ca2", value, model).value


def annotators() -> str:
    """Accuracy by the number of annotators per tweet."""
    rows = [[k, *(accuracy("annotators", str(k), model) for model in MODELS)] for k in (1, 2, 3, 4, 5, 7, 10, 15)]
    return table(["annotators per tweet", *MODELS.values()], rows)


def costs() -> str:
    """How many labels of each token must be bought for an accuracy."""
    rows = []
    for wanted in (75, 80, 85, 90):
        row: list[object] = [f"{wanted} %"]
        for model in MODELS:
            enough = next((k for k in range(1, 16) if accuracy("annotators", str(k), model) >= wanted), None)
            row.append("more than 15" if enough is None else str(enough))
        rows.append(row)
    return table(["wanted accuracy", *MODELS.values()], rows)


def spammers() -> str:
    """What spammers and copying annotators do to the labels."""
    cases = (
        "none",
        "5 spammers, one label",
        "5 spammers, any label",
        "5 spammers, by frequency",
        "5 copying annotators",
    )
    rows = [[case, *(accuracy("trouble", case, model) for model in MODELS)] for case in cases]
    return table(["beside the 15 annotators", *MODELS.values()], rows)


def ambiguity() -> str:
    """Are the tokens found that have two readings?"""
    rows = []
    for method in ("two-truths", "rank-1", "crowdtruth", "posterior-entropy", "vote-entropy"):
        cells = [
            100 * found_ambiguity.cell(measured(), errors, crowd, 0.4, method, "AP").value
            for errors in ("independent", "difficulty")
            for crowd in ("ca1", "ca3")
        ]
        rows.append([method, *cells])
    header = ["method", "own slips, ca1", "own slips, ca3", "same hard tokens, ca1", "same hard tokens, ca3"]
    return table(header, rows)


def trust() -> str:
    """How often a label is right, by its probability: the demo's entities, five annotators per sentence."""
    corpus = simulate.demo_crowd("ner")
    gold = corpus.golds["gold"]
    models = {"mv": "majority vote", "mace": "MACE", "ds": "Dawid–Skene"}
    truths = [lasca.TRUTH_MODELS[model]().fit(corpus) for model in models]
    rows = []
    for low, high in ((0.0, 0.7), (0.7, 0.9), (0.9, 0.99), (0.99, 1.01)):
        row = [f"{low:.2f} to {min(high, 1.0):.2f}"]
        for truth in truths:
            sure = truth.proba.max(axis=1)
            chosen = (sure >= low) & (sure < high)
            right = 100 * float(np.mean((truth.labels == gold)[chosen])) if chosen.any() else 0.0
            row.append(f"{right:.1f} % of {chosen.sum():,}" if chosen.any() else "–")
        rows.append(row)
    return table(["probability of the label", *models.values()], rows)


def bench(*wanted: str) -> str:
    """Return rows of the bench of crowds (docs/crowds.md), with what they are."""
    text = (HERE / "crowds.md").read_text("utf-8")
    what = dict(re.findall(r"^\| ([\w-]+) \| ([^|]+) \| (?:span|relaxed|accuracy) \|", text, re.MULTILINE))
    lines = text[text.index("| row | metric |") :].split("\n\n")[0].splitlines()
    header, _, *rows = (line.strip("| ").split(" | ") for line in lines)
    known = {row[0]: row[1:] for row in rows}
    return table(
        ["crowd", *header[1:]],
        [[what[name].replace("the same +", "MTurk, a part +"), *map(_plain, known[name])] for name in wanted],
    )


def _plain(cell: str) -> str:
    """Keep bold, drop the star of results that are a little older than the page."""
    value = cell.strip("*")
    return f"**{value}**" if cell.startswith("**") else value


TABLES: dict[str, Callable[[], str]] = {
    "annotators": annotators,
    "costs": costs,
    "trust": trust,
    "spammers": spammers,
    "ambiguity": ambiguity,
    "bench": lambda: bench(
        "mturk",
        "mturk-2",
        "nb-all",
        "nb-copies",
        "pico-191",
        "btc-e-org",
        "tdga-ca3",
        "tdga-difficulty",
        "leoka-1",
        "leoka-3",
        "bratiaa",
    ),
    "models-beside-people": lambda: bench("nb", "nb-llm", "nb-all", "nb-copies", "nb-2", "nb-2-all"),
}


def filled(text: str) -> str:
    """Return a page with its tables made anew."""
    return MADE.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}{found[3]}", text)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text("utf-8")), encoding="utf-8")

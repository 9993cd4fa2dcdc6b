"""The most ambiguous tokens of the MTurk corpus in context, as a Markdown table, and how often the truth errs there.

python experiments/ambiguous_mturk.py                             # prints
python experiments/ambiguous_mturk.py --write docs/ambiguity.md   # puts it between the page's marks
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import lasca
from lasca.ambiguity import METHODS, find_ambiguity
from lasca.ambiguity.write import rows
from lasca.truth import model_class

BEGIN, END = "<!-- mturk: begin -->", "<!-- mturk: end -->"


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def table(corpus: lasca.CrowdCorpus, truth: lasca.Truth, top: int) -> list[str]:
    found = find_ambiguity(corpus, truth)
    lines = ["| score | in context | candidates | votes | gold |", "|---|---|---|---|---|"]
    for row in rows(corpus, truth, found, limit=top, width=36):
        votes = ", ".join(f"{label} {len(people)}" for label, people in row["votes"].items())
        context = f"{cell(row['before'])} **{cell(row['token'])}** {cell(row['after'])}".strip()
        candidates = " / ".join(c["label"] for c in row["candidates"])
        lines.append(f"| {row['score']:.3f} | {context} | {candidates} | {votes} | {row['golds'].get('gold', '')} |")
    return lines


def rates(corpus: lasca.CrowdCorpus, truth: lasca.Truth) -> list[str]:
    wrong = truth.labels != corpus.golds["gold"]
    lines = ["| method | flagged | truth ≠ gold among them | elsewhere | ratio |", "|---|---|---|---|---|"]
    for method in METHODS:
        found = find_ambiguity(corpus, truth, method)
        inside, outside = wrong[found.mask].mean(), wrong[np.isfinite(found.score) & ~found.mask].mean()
        counts = f"{len(found.tokens):,} of {np.isfinite(found.score).sum():,}"
        lines.append(f"| {method} | {counts} | {inside:.1%} | {outside:.1%} | {inside / outside:.1f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument("--truth", default="ds")
    parser.add_argument("--write", type=Path, help="a page with marks to put the tables between")
    args = parser.parse_args()
    corpus = lasca.datasets.load("conll2003-mturk")
    truth = model_class(args.truth)().fit(corpus)
    text = "\n".join([*table(corpus, truth, args.top), "", *rates(corpus, truth)])
    print(text)
    if args.write is not None:
        page = args.write.read_text("utf-8")
        before, rest = page.split(BEGIN)
        args.write.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", "utf-8")


if __name__ == "__main__":
    main()

"""Ambiguity: acc1, acc2 and the rest; figures 3 and 4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.ambiguity import METHODS, SCORES
from reproduction.jobs import Results
from reproduction.page import Block, Heading, Picture, Table, Text
from reproduction.pages.common import best_cells
from reproduction.paper import ACC1, ACC2, CROWDS
from reproduction.statistics import Mean, mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["METHOD_PAPER", "ambiguity", "cell"]

METHOD_PAPER = "rank-1, paper's scaling"
WORDS = {"independent": "Independent slips", "difficulty": "Slips on the same hard tokens (ρ = 0.4)"}


def cell(results: Results, errors: str, crowd: str, h: float, method: str, score: str) -> Mean:
    """Return a score of a method."""
    values = results.values("ambiguity", (method, score), errors=errors, groups=crowd, hard_cases=h)
    return mean([value for value in values if value is not None])


def ambiguity(results: Results) -> list[Block]:
    """Write the section."""
    blocks: list[Block] = [
        Heading("Ambiguity"),
        Text(
            "Are the tokens found on which the two golds of T-DGA differ? acc1 is the share of them among the 10 % of "
            "tokens that a method calls most ambiguous (so at most 788 of 930 can be found; the paper counts 931), "
            "acc2 the share whose candidate labels also hold both golds; AP and AUROC look at the whole ranking; ECE "
            "says how far two-truths' probability can be taken at its word; Spearman is the rank correlation, over "
            "pairs of labels, of the derived label confusion with that of the golds. The paper reports acc1 = "
            f"{ACC1:.3f} and acc2 = {ACC2:.3f} for ca1."
        ),
        Text(
            "**What the paper leaves open, and what was chosen.** The paper does not say how its annotators come to "
            "disagree on ambiguous tokens. Here an annotator starts from the second gold on a share h of the tokens "
            "where the golds differ, then slips as its own precision has it, wrong labels being uniform: each "
            "annotator by itself, or all on the same hard tokens (ρ = 0.4). HC infers the truth and says who is "
            "reliable. Second readings, then slips: that is also what two-truths assumes, and its parts were chosen on "
            "crowds of this kind (other seeds); on the MTurk corpus nobody knows which tokens are ambiguous."
        ),
    ]
    for errors in results.settings("ambiguity", "errors"):
        blocks.append(_table(results, errors, [0.4]))
    blocks.append(Text(_summary(results)))
    more = [h for h in results.settings("ambiguity", "hard_cases") if h != 0.4]
    if more:
        blocks.append(Heading("Other shares of second readings", 3))
        blocks += [_table(results, errors, more) for errors in results.settings("ambiguity", "errors")]
    return [*blocks, *_pictures(results.select("figures")[0])]


def _table(results: Results, errors: str, shares: list[float]) -> Table:
    header = ("crowd, h, method", *SCORES)
    rows = []
    for h in shares:
        for crowd in CROWDS:
            for method in METHODS:
                cells = (cell(results, errors, crowd, h, method, score).shown(3) for score in SCORES)
                rows.append((f"{crowd}, {h}, {method}", *cells))
    strong = set()
    for first in range(0, len(rows), len(METHODS)):
        block = [_values(results, errors, row[0]) for row in rows[first : first + len(METHODS)]]
        strong |= {(first + r, c + 1) for r, c in best_cells(block)}
    return Table(header, tuple(rows), f"{WORDS[errors]}.", frozenset(strong))


def _values(results: Results, errors: str, name: str) -> list[float]:
    """Return the scores of a row for which more is better."""
    crowd, h, method = name.split(", ", 2)
    return [cell(results, errors, crowd, float(h), method, s).value for s in ("acc1", "acc2", "AP", "AUROC")]


def _summary(results: Results) -> str:
    def shown(errors: str, method: str, score: str) -> str:
        values = [cell(results, errors, crowd, 0.4, method, score).value for crowd in CROWDS]
        return " / ".join(f"{value:.3f}" for value in values)

    two = [cell(results, "independent", "ca1", 0.4, "two-truths", score).value for score in ("acc1", "acc2")]
    one = [cell(results, "independent", "ca1", 0.4, METHOD_PAPER, s).value for s in ("acc1", "acc2")]
    return (
        f"With h = 0.4 and independent slips (ca1) two-truths has acc1 {two[0]:.3f} and acc2 {two[1]:.3f}, the paper's "
        f"rank-1 model as printed {one[0]:.3f} and {one[1]:.3f}. Average precision for ca1 / ca2 / ca3: two-truths "
        f"{shown('independent', 'two-truths', 'AP')}, rank-1 with corrected scaling "
        f"{shown('independent', 'rank-1', 'AP')}, with the paper's {shown('independent', METHOD_PAPER, 'AP')}. "
        f"Calibration error of two-truths: {shown('independent', 'two-truths', 'ECE')} with independent slips, "
        f"{shown('difficulty', 'two-truths', 'ECE')} with slips on the same tokens."
    )


def _pictures(data: Any) -> list[Block]:
    rows = []
    for example in data["examples"]:
        rows.append([(token, label, tuple(c for c in found if c != label)) for token, label, found, _ in example])
    differing = sum(a != b for example in data["examples"] for *_, (a, b) in example)
    hit = sum(a != b and {a, b} <= set(found) for example in data["examples"] for _, _, found, (a, b) in example)
    maps = [("two golds", np.array(data["golds"])), ("derived from the crowd", np.array(data["derived"]))]
    for _, matrix in maps:
        np.fill_diagonal(matrix, np.nan)  # no label is confused with itself

    def draw_tweets() -> Figure:
        from reproduction import pictures

        return pictures.tagged(rows)

    def draw_confusion() -> Figure:
        from reproduction import pictures

        return pictures.heat_maps(maps, data["labels"])

    return [
        Heading("Figures 3 and 4", 3),
        Picture(
            "figure-3",
            draw_tweets,
            "Figure 3: two tweets with the inferred labels; ambiguous tokens are marked, with the labels that compete "
            "there. They are the two tweets of 6 to 18 tokens in which the most different pairs of golds were found "
            f"(ca1, h = 0.4, seed 0): the golds differ on {differing} of their tokens, and both golds are among the "
            f"candidates of {hit}.",
        ),
        Picture(
            "figure-4",
            draw_confusion,
            "Figure 4: label confusion from the two golds, and as found from the crowd alone (ca1, h = 0.4, seed 0).",
        ),
    ]

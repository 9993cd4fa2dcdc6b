"""Beyond the paper: calibration, few annotators, trouble in the crowd, time and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduction.beyond import LEVELS
from reproduction.jobs import NEWER, Results
from reproduction.page import Block, Heading, Picture, Table, Text
from reproduction.pages.common import MODELS, NAMES, best_cells, number
from reproduction.paper import CROWDS
from reproduction.statistics import Mean, mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["beyond", "cell"]


FIRST = tuple(model for model in MODELS if model not in NEWER)
"""The models whose behaviour in odd crowds was measured here."""
WHOLE, NONE = "15", "none"
"""All annotators, no trouble: the crowd of table 1."""


def cell(results: Results, case: str, groups: str, value: str, model: str) -> Mean:
    """Return the accuracy of a model."""
    if value in (WHOLE, NONE):
        return mean(results.values("tweets", ("truth", "gold1"), kind="table-1", groups=groups, model=model))
    return mean(results.values("beyond", ("gold1",), case=case, groups=groups, value=value, model=model))


def beyond(results: Results) -> list[Block]:
    """Write the section."""
    counts = [*_values(results, "annotators"), WHOLE]
    series = {
        NAMES[m].removesuffix(" *"): [
            (float(k), v.value, 0.0 if v.n < 2 else v.sd)
            for k in counts
            for v in [cell(results, "annotators", "ca2", k, m)]
        ]
        for m in FIRST
    }

    def chart() -> Figure:
        from reproduction import pictures

        return pictures.lines(series, x_title="annotators per tweet", y_title="accuracy (%)")

    troubles = [NONE, *_values(results, "trouble")]
    return [
        Heading("Beyond the paper"),
        Text(
            "CRF-MA, Raykar and robust were not run on the odd crowds below; for robust there is [a bench of its own]"
            "(crowds.md)."
        ),
        Heading("Probabilities", 3),
        _calibration(results),
        Heading("Few annotators", 3),
        Text(
            "The crowd of table 1 (ca2, 15 annotators), of which so many, drawn at random for each tweet, label it; "
            "with 15 it is table 1 itself."
        ),
        _by_annotators(results, counts),
        Picture("annotators", chart, "Accuracy against gold 1 by the number of annotators per tweet (ca2)."),
        Heading("Spammers, copying annotators, hard tokens", 3),
        Text(
            "Spammers always give one label, any label, or labels by their frequency; a copying annotator writes down "
            "what one other annotator would write on 90 % of the tokens. They come on top of the 15 annotators of "
            "table 1's ca2 (none: these alone)."
        ),
        _accuracies(
            results, "trouble", [("ca2", v, v) for v in troubles],
            "Accuracy against gold 1 (%), with trouble in the crowd.",
        ),
        Text(
            "A trap: if annotators fail on the same hard tokens and give any wrong label there, models with a "
            "confusion matrix per annotator may explain hard tokens by a rare label and fall far below majority vote."
        ),
        _accuracies(
            results, "difficulty", [(crowd, "0.4", crowd) for crowd in CROWDS],
            "Accuracy against gold 1 (%), shared difficulty (ρ = 0.4), uniform wrong labels, nothing common. HC, "
            "levels: HC with the option that tokens are easy or hard (`difficulty=True`).",
            (*FIRST, LEVELS),
        ),
        Heading("Time and memory", 3),
        _time(results),
    ]  # fmt: skip


def _values(results: Results, case: str) -> list[str]:
    return [v for v in results.settings("beyond", "value") if results.select("beyond", case=case, value=v)]


def _by_annotators(results: Results, counts: list[str]) -> Table:
    found = [[cell(results, "annotators", "ca2", k, model) for model in FIRST] for k in counts]
    best = best_cells([[row[m].value for row in found] for m in range(len(FIRST))])
    return Table(
        ("annotators", *(NAMES[model] for model in FIRST)),
        tuple((k, *(value.shown(1) for value in row)) for k, row in zip(counts, found)),
        "Accuracy against gold 1 (%) by annotators per tweet.",
        strong=frozenset((k, m + 1) for m, k in best),
    )


def _accuracies(
    results: Results, case: str, columns: list[tuple[str, str, str]], caption: str, models: tuple[str, ...] = FIRST
) -> Table:
    names = NAMES | {LEVELS: "HC, levels *"}
    found = [[cell(results, case, groups, value, model) for groups, value, _ in columns] for model in models]
    rows = [(names[model], *(value.shown() for value in row)) for model, row in zip(models, found)]
    strong = frozenset((r, c + 1) for r, c in best_cells([[value.value for value in row] for row in found]))
    return Table(("model", *(name for *_, name in columns)), tuple(rows), caption, strong)


def _calibration(results: Results) -> Table:
    header = ["model", *(f"{crowd} {name}" for crowd in CROWDS for name in ("cross entropy", "ECE"))]
    part = "all" if results.select("entities", part="all") else "3000"
    header += [
        f"MTurk ({'test folder' if part == 'all' else 'first 3,000'}) {name}" for name in ("cross entropy", "ECE")
    ]
    rows = []
    for model in MODELS:
        cells = [NAMES[model]]
        for crowd in CROWDS:
            for score in ("cross_entropy", "ece"):
                cells.append(mean(results.values("tweets", ("truth", score), groups=crowd, model=model)).shown(3))
        found = results.select("entities", part=part, model=model)
        scores = found[0]["truth"]["test" if part == "all" else "all"] if found else {}
        rows.append((*cells, number(scores.get("cross_entropy"), 3), number(scores.get("ece"), 4)))
    caption = (
        "Cross entropy (nats per token) and expected calibration error of the inferred probabilities: crowds of table "
        "1 against gold 1 (6.7 % of whose tokens are wrong for everybody, which no vote can tell), and the MTurk "
        "corpus."
    )
    return Table(tuple(header), tuple(rows), caption)


def _time(results: Results) -> Table:
    parts = results.settings("entities", "part")
    words = {"3000": "first 3,000", "all": "all sentences"}
    header = ("model", *(f"{words[p]}: {what}" for p in parts for what in ("CPU s", "MB")))
    rows = []
    for model in MODELS:
        cells = [NAMES[model]]
        for part in parts:
            found = results.select("entities", part=part, model=model)
            fit = found[0]["fit"] if found else {}
            cells += [number(fit.get("cpu"), 1), number(fit.get("megabytes"), 0)]
        rows.append(tuple(cells))
    caption = (
        "Inferring the truth of the MTurk corpus: CPU seconds in one thread, and by how much the process grew, each "
        "model in a process of its own beside another job. A fit to a few sentences came first, so that neither "
        "compiling nor loading counts."
    )
    return Table(header, tuple(rows), caption)

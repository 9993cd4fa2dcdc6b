"""docs/crowds.md: made from the results."""

from __future__ import annotations

from pathlib import Path

from crowds import results, tables
from crowds.rows import METRICS, ROWS

HEAD = """# The bench of crowds

What the default model is worth beside simple ones, on crowds of many kinds. This page is made by

    python experiments/crowds/bench.py --page docs/crowds.md

The rows, their metrics and how their corpora are made (`experiments/crowds/rows.py`, `corpora.py`) follow a list that
was written down before, but for `prompts*`, `nb-whole*` and `llm-spans*`: those came later, when the model failed on
such crowds.
Pilots of the model began at the same time, and its structure and thresholds were chosen on these rows
(docs/models/robust.md), so they are development figures. The `final-*` rows were used to choose nothing but what the
fourth look says, and they were scored more than once: the second time after a change that the first look had asked
for (final-nb-llm 79.2, final-nb-all 82.5 at the first), the third after changes that small crowds and hidden votes on
val had asked for (final-mturk 80.9, final-mturk-test 79.3 at the second), the fourth when hidden votes were asked
about names instead of tokens, after 62 of 66 tokens of final-nb-2-all had been overruled wrongly, the fifth when whole
spans were read, lone votes were weighed against the text and two who agree were believed (chosen on the other rows;
final-mturk 81.5, final-mturk-test 80.1 at the fourth), the sixth when no source supported a rate by itself any more and
labels were read from mean and verdict (chosen on the other rows; final-nb-llm 80.3, final-nb-all 86.4 at the fifth),
the seventh when rows of annotators learned from 5,000 votes at most (chosen on the other rows; final-mturk 82.2,
final-mturk-test 80.9, final-nb-all 87.4, final-nb-2-all 89.2 at the sixth).
Real files are not part of the project (`LASCA_DATA`, `LASCA_EXPORTS`). One seed (0), default settings.

The last column is the difference to the best of the simple models on that row with its 95 % interval over resampled
documents; ✗ marks a row where it is more than half a point below and the interval does not reach 0. A star marks a
result of earlier sources than those the page was made with (`--older`), a dash one that is not there yet.
"""


def render(found: tables.Results, models: list[str], families: Path) -> str:
    """Return the page; what `families.py` found is part of it where there is such a file."""
    parts = [HEAD, "## Rows\n", "| row | what | metric | quick | in the median gain |\n|---|---|---|---|---|"]
    for name in found:
        row = ROWS[name]
        parts.append(f"| {name} | {row.title} | {row.metric} | {_yes(row.quick)} | {_yes(row.counts)} |")
    parts.append("\n" + "\n".join(f"- *{name}*: {text}." for name, text in METRICS.items()))
    parts.append(
        "\nRows without gold (LEOKA, bratiaa) hold out each annotator in turn: the labels inferred from the others are "
        "scored against the one held out, all added up. Unanimity is counted with all votes.\n"
    )
    parts += ["## Metrics\n", tables.metrics(found, models, results.fingerprint()), ""]
    if families.is_file():
        parts += ["## Families\n", FAMILIES, families.read_text(encoding="utf-8")]
    parts += ["## Beside the metric\n", BESIDE]
    parts += [tables.details(found, spec) + "\n" for spec in models]
    return "\n".join(parts)


FAMILIES = """Annotators who copy another in simulated crowds: pairs found, and crowds without copies (but with common
errors and difficulty) in which a family is found all the same, by
`python experiments/crowds/families.py -o build/crowds/families.md`.
"""
BESIDE = """Cross entropy and ECE of the probabilities; share of tokens marked (of gold in brackets); unanimous tokens
(two or more, three or more equal votes and no other) that were overruled, and on how many of these the model and the
people are right by the gold; CPU seconds and memory of the fit in one thread; what the model says it chose.
"""


def insert(path: Path, name: str, text: str) -> None:
    """Put text between the marks `<!-- bench: NAME -->` and `<!-- end -->` of a page."""
    page = path.read_text(encoding="utf-8")
    head, mark, rest = page.partition(f"<!-- bench: {name} -->\n")
    if not mark:
        raise SystemExit(f"{path} has no place for {name!r}")
    path.write_text(head + mark + text.rstrip() + "\n" + rest[rest.index("<!-- end -->") :], encoding="utf-8")


def machines(found: tables.Results, models: list[str]) -> str:
    """Return the small table of docs/llm.md: machine sources beside workers."""
    lines = ["| votes | " + " | ".join(models) + " |", "|---|" + "---|" * len(models)]
    for name, line in found.items():
        if name.startswith("nb"):
            cells = [f"{line[spec]['value']:.1f}" if spec in line else "–" for spec in models]
            lines.append(f"| {ROWS[name].title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _yes(value: bool) -> str:
    return "yes" if value else "–"

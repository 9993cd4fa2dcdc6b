"""docs/crowds.md: made from the results."""

from __future__ import annotations

from pathlib import Path

from crowds import results, tables
from crowds.rows import METRICS, ROWS

HEAD = """# The bench of crowds

What is the default model worth beside simple ones, on crowds of many kinds? Each row of the tables is a crowd, each
column a model. One seed (0), default settings; no model sees a gold label. The page is made by

    python experiments/crowds/bench.py --page docs/crowds.md

Real files are not part of the project: `LASCA_DATA` and `LASCA_EXPORTS` name the folders they lie in.

How to read [the scores](#metrics): the last column is the difference to the best of the simple models on that row,
with its 95 % interval over resampled documents. ✗ marks a row where it is more than half a point below and the
interval does not reach 0. A star marks a result of earlier sources than those the page was made with (`--older`), a
dash one that is not there yet.

**These are development figures.** The default's structure and thresholds were chosen on these rows
([how](models/robust.md#how-its-constants-were-chosen)). Most rows were written down before that; `prompts*`,
`nb-whole*`, `llm-spans*` and `schemes*` came when the model failed on such crowds. The `final-*` rows were kept
apart, but they are not untouched either: they have been scored twelve times, the first look asked for a change, and so
did the third (a text had overruled people wrongly on final-nb-2-all). `experiments/crowds/rows.py` and `corpora.py` say
how each crowd is made.
"""


def render(found: tables.Results, models: list[str], families: Path) -> str:
    """Return the page; what `families.py` found is part of it where there is such a file."""
    parts = [HEAD, "## Metrics\n", tables.metrics(found, models, results.fingerprint()), ""]
    parts += ["## Rows\n", "| row | what | metric | quick | in the median gain |\n|---|---|---|---|---|"]
    for name in found:
        row = ROWS[name]
        parts.append(f"| {name} | {row.title} | {row.metric} | {_yes(row.quick)} | {_yes(row.counts)} |")
    parts.append("\n" + "\n".join(f"- *{name}*: {text}." for name, text in METRICS.items()))
    parts.append(
        "\nRows without gold (LEOKA, bratiaa) hold out each annotator in turn: the labels inferred from the others are "
        "scored against the one held out, all added up. Unanimity is counted with all votes.\n"
    )
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

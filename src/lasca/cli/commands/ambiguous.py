"""The verb ambiguity: which tokens are truly ambiguous, in context, with who said what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from lasca.cli.app import app
from lasca.cli.common import JsonOption, OverwriteOption, out, print_json, progress_bar, say
from lasca.errors import excerpt

if TYPE_CHECKING:
    from lasca.ambiguity import Ambiguity
    from lasca.corpus import CrowdCorpus
    from lasca.truth import Truth

COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red")


@app.command()
def ambiguity(
    folder: Annotated[str, typer.Argument(help="A folder that `lasca aggregate` or `lasca run` wrote.")],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="A folder to write them to: CSV, JSONL, Parquet, Label Studio tasks."),
    ] = None,
    method: Annotated[
        str, typer.Option(help="two-truths, rank-1, vote-entropy, posterior-entropy or crowdtruth.")
    ] = "two-truths",
    fraction: Annotated[float, typer.Option(min=0.0, max=1.0, help="The share of tokens to flag.")] = 0.10,
    top: Annotated[int, typer.Option(min=0, help="How many to print.")] = 20,
    json: JsonOption = False,
    overwrite: OverwriteOption = False,
) -> None:
    """Find the tokens where reliable people disagree, and the labels that compete there."""
    from lasca.ambiguity import find_ambiguity
    from lasca.ambiguity.write import rows, write_all
    from lasca.files import check_output
    from lasca.pipeline import load_truth

    if output is not None:
        check_output(output, folder, overwrite=overwrite)
    corpus, truth = load_truth(folder)
    with progress_bar("finding ambiguous tokens") as report:
        found = find_ambiguity(corpus, truth, method=method, fraction=fraction, progress=report)
    if output is not None:
        write_all(corpus, truth, found, output, overwrite=overwrite)
        say(f"wrote {len(found.tokens):,} tokens to {output}")
    if json:
        print_json(rows(corpus, truth, found, limit=top))
    else:
        show_ambiguous(corpus, truth, found, top)


def show_ambiguous(corpus: CrowdCorpus, truth: Truth, found: Ambiguity, top: int) -> None:
    """Print the most ambiguous tokens in context: marked by style, or [so] where there is none."""
    from lasca.ambiguity.write import rows

    for row in rows(corpus, truth, found, limit=top):
        out.print(_line(row), soft_wrap=True)
    if len(found.tokens) > top:
        out.print(f"… and {len(found.tokens) - top:,} more", style="dim")


def _line(row: dict[str, Any]) -> Text:
    names = [c["label"] for c in row["candidates"]]
    colour = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    line = Text(f"{row['score']:.3f}  ")
    line.append(excerpt(row["before"], 50) + " ", style="dim")
    token = excerpt(row["token"], 40)
    line.append(f"[{token}]" if out.color_system is None else token, style="bold reverse")
    line.append(" " + excerpt(row["after"], 50), style="dim")
    line.append("\n       ")
    for name, people in row["votes"].items():
        line.append(f"{excerpt(name, 20)} ", style=colour.get(name, "dim"))
        shown = ", ".join(excerpt(p, 24) for p in people[:8])
        line.append(f"({shown}{', …' if len(people) > 8 else ''})  ", style="dim")
    return line

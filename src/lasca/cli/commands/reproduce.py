"""The verb that runs the paper's experiments: reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lasca.cli.app import app
from lasca.cli.commands.run import say_stopped, stoppable
from lasca.cli.common import OverwriteOption, out, progress_bar

__all__ = ["reproduce"]


@app.command()
def reproduce(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write; whole or not at all.")] = Path(
        "reproduction"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="One seed, and without what takes long.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Take up a run that was stopped.")] = False,
    processes: Annotated[int | None, typer.Option(min=1, help="How many run side by side; one per core.")] = None,
    page: Annotated[Path | None, typer.Option(help="A Markdown file to write the page to as well.")] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Run the paper's experiments on the paper's data: tables 1–3, the figures, and more.

    Writes reproduction.md, reproduction.html, the figures and all results. Takes about an hour on two cores, --quick
    some minutes. Needs the data sets: see `lasca datasets`.
    """
    from lasca.reproduce import reproduce as whole

    try:
        with progress_bar("lasca reproduce") as bar, stoppable(bar) as progress:
            made = whole(
                output,
                quick=quick,
                processes=processes,
                resume=resume,
                overwrite=overwrite,
                page=page,
                progress=progress,
            )
    except KeyboardInterrupt:
        say_stopped("reproduce", output)
        raise typer.Exit(130) from None
    out.print(f"Everything is in {output}; open {made}", markup=False, soft_wrap=True)

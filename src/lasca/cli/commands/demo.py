"""The verb demo: the whole way on the corpus that ships with the package; and where reproduce went."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lasca.cli.app import app
from lasca.cli.commands.ambiguous import show_ambiguous
from lasca.cli.commands.infer import show_annotators
from lasca.cli.common import OverwriteOption, SeedOption, out, progress_bar
from lasca.errors import LascaError

if TYPE_CHECKING:
    from lasca.pipeline import Run

TITLE = "The LASCA demo"


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")] = Path("lasca-demo"),
    task: Annotated[str, typer.Option(help="ner or pos.")] = "ner",
    seed: SeedOption = 0,
    overwrite: OverwriteOption = False,
) -> None:
    """Go the whole way on a small built-in corpus: crowd, truth, ambiguity, tagger, report."""
    from lasca.pipeline import run
    from lasca.simulate import demo_crowd

    named = not Path("demo").exists()  # a file or folder of the name is no part of the demo
    with progress_bar("lasca demo") as progress:
        done = run(
            "demo" if named else demo_crowd(task),
            output=output,
            reader={"task": task} if named else None,
            seed=seed,
            overwrite=overwrite or _is_demo(output),
            title=f"{TITLE} ({task})",
            progress=progress,
        )
    _show(done)
    page = (output / "report.html").resolve()
    out.print(f"Everything is in {output}/. The report, to open in a browser:", markup=False, soft_wrap=True)
    out.print(f"    {page.as_uri()}", markup=False, soft_wrap=True)
    out.print("Your own data: lasca run DATA -o OUT", markup=False)


@app.command(hidden=True, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def reproduce() -> None:
    """Say where the paper's experiments went: they are a project of their own in LASCA's repository."""
    raise LascaError(
        "the paper's experiments are no longer part of the package",
        hint="Clone LASCA's repository and run `make reproduction` there (experiments/reproduction); "
        "its page is docs/reproduction.md",
    )


def _is_demo(output: Path) -> bool:
    """Say whether an earlier demo wrote the folder: then it may be replaced without asking."""
    try:
        return str(json.loads((output / "run.json").read_text(encoding="utf-8"))["title"]).startswith(TITLE)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _show(done: Run) -> None:
    corpus = done.corpus
    out.print(f"[bold]1[/bold] A crowd: {corpus!r}")
    out.print(f"[bold]2[/bold] The truth, by {done.truth.model}")
    show_annotators(done.truth)
    scores = done.truth.score(corpus)
    out.print(
        f"Against the gold labels (which the model never saw): accuracy {scores.accuracy:.3f}"
        + ("" if scores.f1 is None else f", span F1 {scores.f1:.3f}")
    )
    out.print("[bold]3[/bold] What is truly ambiguous")
    show_ambiguous(corpus, done.truth, done.ambiguity, top=8)
    sentence = corpus.sequence(0)
    out.print("[bold]4[/bold] A tagger, learned from the inferred truth")
    labels = done.tagger.predict([sentence])[0]
    out.print(" ".join(f"{token}/{label}" for token, label in zip(sentence, labels)), markup=False)

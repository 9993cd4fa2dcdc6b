"""Verbs for the whole way: run, report; demo and warm on the corpus of the package; and where reproduce went."""

from __future__ import annotations

import json as json_text
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lasca.cli import options
from lasca.cli.app import app
from lasca.cli.commands.infer import show_ambiguous, show_annotators
from lasca.cli.common import at_work, command, out, print_json, progress_bar, say, show_load_report, show_warnings
from lasca.cli.options import get_corpus, settings
from lasca.defaults import DEFAULT_MODEL, DEFAULT_OBJECTIVE
from lasca.errors import FormatError, LascaError, ParameterError, excerpt

if TYPE_CHECKING:
    from lasca.pipeline.way import Run

OwnModelOption = Annotated[
    str | None, typer.Option("--model", "-m", help=f"{options.MODELS} {DEFAULT_MODEL} by default.", show_default=False)
]
TITLE = "The LASCA demo"
WARM_SEQUENCES = 400
"""So many sequences bring every step of the way to work."""


@app.command()
def run(
    data: options.Data,
    output: options.Out,
    resume: Annotated[bool, typer.Option("--resume", help="Take up a run that was stopped.")] = False,
    pseudonyms: Annotated[bool, typer.Option("--pseudonyms", help="Call the annotators A1, A2, … everywhere.")] = False,
    preset: Annotated[
        str, typer.Option(help="What holds where nothing is said: default, la-sca (the paper's way) or la-sca-literal.")
    ] = "default",
    model: OwnModelOption = None,
    param: options.Param = None,
    method: Annotated[
        str | None, typer.Option(help="How ambiguous tokens are found (two-truths by default): see lasca ambiguity.")
    ] = None,
    fraction: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="The share of tokens to list as ambiguous (0.1 by default).")
    ] = None,
    objective: Annotated[
        str | None, typer.Option(help=f"How the tagger learns ({DEFAULT_OBJECTIVE} by default): see lasca train.")
    ] = None,
    tagger: Annotated[
        list[str] | None, typer.Option("--tagger", metavar="NAME=VALUE", help="A parameter of the tagger.")
    ] = None,
    gold: options.Gold = None,
    compare: Annotated[bool, typer.Option("--compare", help="Run all truth models side by side as well.")] = False,
    title: options.Title = None,
    format: options.Format = "auto",
    reader: options.Reader = None,
    seed: options.Seed = 0,
    engine: options.Engine = "threads",
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Go the whole way: read, truth, ambiguity, confusion, tagger, report.

    OUT appears whole at the end. Until then finished steps are kept in a hidden folder beside it, which --resume uses.
    DATA may be a corpus in shards (lasca shard): models that can work block by block then never read all of it, and
    OUT gets a folder for each step in place of the report.
    """
    from lasca.corpus.shards import is_sharded
    from lasca.pipeline.way import run as whole_way
    from lasca.pipeline.way import run_shards
    from lasca.truth import model_class

    in_shards = len(data) == 1 and is_sharded(data[0]) and "shards" in model_class(model or DEFAULT_MODEL).supports
    asked: dict[str, Any] = {
        "preset": preset, "model": model, "params": settings(param, "--param"), "seed": seed, "fraction": fraction,
        "objective": objective, "tagger": settings(tagger, "--tagger"), "resume": resume, "overwrite": overwrite,
    }  # fmt: skip
    try:
        if in_shards:
            if (method or "two-truths") != "two-truths" or gold or compare or pseudonyms:
                raise ParameterError(
                    "--method, --gold, --compare and --pseudonyms", "given", "left out for a corpus in shards"
                )
            with progress_bar("lasca run") as bar, stoppable(bar) as progress:
                record = run_shards(data[0], output, engine=engine, progress=progress, **asked)
            if json:
                print_json(dict(record))
            say(f"wrote aggregate, ambiguous and tagger to {output}")
            return
        if engine != "threads":
            raise ParameterError("--engine", engine, "threads unless DATA and the model are in shards")
        with progress_bar("lasca run") as bar, stoppable(bar) as progress:
            done = whole_way(
                data[0] if len(data) == 1 else data, output=output, method=method, gold=gold, compare=compare,
                pseudonyms=pseudonyms, title=title, format=format, reader=settings(reader, "--reader"),
                progress=progress, **asked,
            )  # fmt: skip
    except KeyboardInterrupt:
        say_stopped(output)
        raise typer.Exit(130) from None
    if json:
        print_json(dict(done.record))
        return
    show_load_report(done.corpus.load_report)
    show_run(done, output)


def say_stopped(output: Path) -> None:
    """Say whether there is something to take up."""
    from lasca.files import real_path
    from lasca.pipeline.checkpoints import Checkpoints

    kept = any(Checkpoints.place(real_path(output)).glob("*.json"))
    what = f"what is finished is kept: lasca run … -o {output} --resume goes on" if kept else "nothing was finished"
    say(f"stopped; {what}")


@contextmanager
def stoppable(progress: Any) -> Iterator[Any]:
    """Heed Ctrl-C at the next report of progress; in the midst of compiling a kernel it would be lost, or make noise.

    Pressed a second time, it stops at once.
    """
    pressed = False

    def note(number: int, frame: Any) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    def report(share: float, words: str = "") -> None:
        if pressed:
            raise KeyboardInterrupt
        progress(share, words)

    if threading.current_thread() is not threading.main_thread():
        yield progress
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield report
    finally:
        signal.signal(signal.SIGINT, before)


def show_gold(done: Run, gold: str) -> None:
    """Say how good the labels are by a gold."""
    from lasca.report.labels import copied

    scores = done.truth.score(done.corpus, gold)
    if not scores.n_tokens:
        return
    spans = "" if scores.f1 is None else f", F1 of spans {100 * scores.f1:.1f} %"
    own = (
        " Each of them is what some annotator said: if they were taken from the votes, this flatters."
        if copied(done.corpus, done.corpus.golds[gold])
        else ""
    )
    named = "" if gold == "gold" else f" {excerpt(gold, 40)}"
    words = f"Against the gold labels{named}: {100 * scores.accuracy:.1f} % of the tokens right{spans}.{own}"
    out.print(words, markup=False)


def show_run(done: Run, output: Path) -> None:
    """Say what came out, and where it is."""
    from lasca.report.headline import headline
    from lasca.review.queue import make_queue

    queue = make_queue(done.corpus, done.truth, done.ambiguity)
    words = headline(done.corpus, done.truth, queue)
    for name in ("read", "sure", "person"):
        out.print(words[name], markup=False)
    gold = done.corpus.gold_name(done.record["parameters"].get("gold"))
    if gold is not None:
        show_gold(done, gold)
    show_warnings(done.record["warnings"])
    out.print(f"Everything is in {output}; open {output / 'report.html'}", markup=False, soft_wrap=True)
    out.print(f"Next: {command('review', output)}", markup=False, soft_wrap=True)


@app.command()
def report(
    folder: options.Folder,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    gold: options.Gold = None,
    models: Annotated[
        Path | None, typer.Option(help="What `lasca compare --json` printed, to show models side by side.")
    ] = None,
    title: options.Title = None,
    crowdtruth: Annotated[
        bool, typer.Option("--crowdtruth", help="Add CrowdTruth's worker quality to the table of annotators.")
    ] = False,
) -> None:
    """Write the report again: one HTML page that needs nothing else."""
    from lasca.files import check_file, is_page
    from lasca.pipeline.way import Run, report_on_truth

    check_file(output, overwrite=is_page(output), hint="It is no report of LASCA: name another file")
    compared = None if models is None else _comparisons(models)
    asked: dict[str, Any] = {"title": title, "gold": gold, "models": compared, "crowdtruth": crowdtruth}
    with at_work("writing the report"):
        if (folder / "run.json").is_file() or not (folder / "truth").is_dir():
            Run.load(folder).report(output, **asked)
        else:
            report_on_truth(folder, output, **asked)
    say(f"wrote {output}")


def _comparisons(path: Path) -> list[dict[str, Any]]:
    try:
        found = json_text.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, list) or not all({"model", "scores", "cpu_seconds"} <= set(row) for row in found):
            raise ValueError("not a list of models with scores")
    except (OSError, ValueError, TypeError) as error:
        raise FormatError("this is not what `lasca compare --json` prints", path=path, got=str(error)) from error
    return found


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")] = Path("lasca-demo"),
    task: Annotated[str, typer.Option(help="ner or pos.")] = "ner",
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
) -> None:
    """Go the whole way on a small built-in corpus: crowd, truth, ambiguity, tagger, report."""
    from lasca.pipeline.way import run
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


@app.command()
def warm(
    data: Annotated[
        list[str] | None, typer.Argument(metavar="DATA", help="Your data, or the demo's.", show_default=False)
    ] = None,
    format: options.Format = "auto",
    reader: options.Reader = None,
) -> None:
    """Compile once what the usual commands need, before anybody waits for it.

    Compiled code is made for the number of labels, in fours: give DATA, and it is made for the labels of those. It goes
    the whole way of `lasca run` on a few documents and keeps nothing but the compiled code.
    """
    from lasca.kernels.compiled import current_place
    from lasca.pipeline.way import run
    from lasca.simulate import demo_crowd

    corpus = get_corpus(data, format, reader) if data else demo_crowd()
    few = corpus.select(sequences=range(min(corpus.n_sequences, WARM_SEQUENCES)))
    with TemporaryDirectory() as folder, progress_bar("lasca warm") as progress:
        run(few, output=Path(folder) / "out", progress=progress)
    place = current_place().folder
    out.print(f"Compiled code is ready in {place}", markup=False, soft_wrap=True)


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
        return str(json_text.loads((output / "run.json").read_text(encoding="utf-8"))["title"]).startswith(TITLE)
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

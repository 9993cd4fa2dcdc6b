"""Verbs that close the loop: review, decide, accept, finish, next, update."""

from __future__ import annotations

import importlib.util
import json as json_text
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from lasca.cli import options
from lasca.cli.app import app
from lasca.cli.common import at_work, command, out, print_json, progress_bar, say, show_load_report
from lasca.cli.options import settings
from lasca.errors import LascaError, ParameterError, StoreError, count, excerpt

PseudonymsOption = Annotated[
    bool, typer.Option("--pseudonyms", help="Keep reviewers as R1, R2, …; as `lasca run --pseudonyms` does.")
]
INSTALL = "lasca review needs two more packages: pip install 'lasca[review]'"


@app.command()
def review(
    folder: options.Folder,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
    refit: Annotated[int, typer.Option(min=0, help="Infer anew after so many decisions; 0 never.")] = 20,
    audit: Annotated[
        int, typer.Option(min=0, help="Put an item drawn at random behind every so many others; 0 none.")
    ] = 10,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    pseudonyms: PseudonymsOption = False,
) -> None:
    """Decide what people should decide, in a web page on this machine alone; by keyboard.

    Decisions are kept in OUT/decisions.sqlite at once, and nothing else is changed: stop with Ctrl-C, go on any time.
    """
    if importlib.util.find_spec("starlette") is None or importlib.util.find_spec("uvicorn") is None:
        raise LascaError(INSTALL)
    from lasca.files import written
    from lasca.review.finish import to_own
    from lasca.review.project import Project
    from lasca.review.server import serve
    from lasca.review.session import Session

    with at_work("preparing the queue"):
        project = Project(folder, pseudonyms=pseudonyms)
        session = Session(project, refit_after=refit, audit_every=audit)

    def ready(url: str) -> None:
        out.print(f"The review is at {url}", markup=False, soft_wrap=True)
        say("only this machine can reach it; stop it with Ctrl-C")
        if browser:
            import webbrowser

            webbrowser.open(url)

    try:
        serve(session, port=port, title=written(project.record.get("title") or folder.name), ready=ready)
    finally:
        made = len(project.standing())
        kept = f"{count(made, 'decision')} in {project.log.path}" if made else "nothing is decided yet"
        following = command("finish", folder, "-o", "FINAL", *to_own(project.corpus))
        say(f"{kept}; go on any time, or: {following}")


@app.command()
def decide(
    folder: options.Folder,
    decisions: Annotated[
        Path, typer.Argument(metavar="DECISIONS", help="A filled-in queue.csv, JSON, or an export with decisions.")
    ],
    who: Annotated[str, typer.Option(help="Who decided, where the file does not say.")] = "reviewer",
    format: Annotated[str, typer.Option("--format", "-f", help="The format of an export, or auto.")] = "auto",
    pseudonyms: PseudonymsOption = False,
) -> None:
    """Take decisions that were made elsewhere into OUT: all of the file, or nothing."""
    from lasca.review.project import Project
    from lasca.review.take import read_decisions

    project = Project(folder, pseudonyms=pseudonyms)
    made = read_decisions(decisions, project.corpus, _queue_rows(folder), who=who, format=format)
    if not made:
        raise ParameterError(
            "decisions", str(decisions), "a file in which something is decided (in queue.csv, the column decision)"
        )
    project.check(made)
    project.log.add(made)
    areas, same = project.log.agreement()
    by = ", ".join(
        f"{excerpt(project.log.name_of(name), 40)} {n:,}" for name, n in Counter(d.who for d in made).items()
    )
    out.print(f"{count(len(made), 'decision')} taken ({by}); {len(project.standing()):,} stand in all", markup=False)
    if areas:
        out.print(f"{areas:,} areas have second opinions, {same:,} of them agree", markup=False)


def _queue_rows(folder: Path) -> list[dict[str, Any]]:
    from lasca.files import lines_of

    path = folder / "queue.jsonl"
    if not path.is_file():
        return []
    try:
        rows = [json_text.loads(line) for line in lines_of(path.read_text(encoding="utf-8"))]
        return [row for row in rows if row["item"]]
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError("the queue of this run is damaged", where=str(path), got=str(error)) from error


@app.command()
def accept(
    folder: options.Folder,
    error: Annotated[float, typer.Option(min=0.0001, max=0.5, help="The share that may be wrong.")] = 0.01,
    confidence: options.Confidence = 0.95,
    json: options.Json = False,
) -> None:
    """Say how much can be accepted without a look, by what the audit found; without an audit nothing is promised.

    Exit code 1 where nothing can be promised. The bound holds however often one asks.
    """
    from lasca.review.project import Project

    project = Project(folder)
    with progress_bar("inferring anew with what was decided") as report:
        fit = project.fit(progress=report)
    promise = project.promise(fit, error=error, confidence=confidence)
    words = promise_words(promise, folder)
    if json:
        print_json(
            {
                "words": words, "error": error, "confidence": confidence, "accepted": len(promise.accepted),
                "items": promise.total, "audited": promise.audited, "wrong": promise.wrong,
                "certainty": promise.certainty, "more": promise.more, "likely": promise.likely,
                "waiting": promise.waiting,
                "accepted_items": [project.units[u].id for u in promise.accepted],
            }
        )  # fmt: skip
    else:
        out.print(words, markup=False, soft_wrap=True)
    if promise.total and not promise.accepted:
        raise typer.Exit(1)


def promise_words(promise: Any, folder: Path | None = None) -> str:
    """Say in a sentence what is promised, or what is missing; with the folder of the run also how to go on."""
    was, wrong = ("was" if n == 1 else "were" for n in (promise.audited, promise.wrong))
    seen = (
        f"{promise.audited:,} of {count(promise.total, 'item')} {was} audited, {promise.wrong:,} of them {wrong} wrong"
    )
    if not promise.audited:
        seen = f"none of {count(promise.total, 'item')} was audited"
    if promise.waiting:
        seen += (
            f"; {promise.waiting:,} more do not count until the one that was skipped before them is answered, "
            "which is at the end of the list"
        )
    if not promise.total:
        return "Nothing is left to accept: all of it was decided"
    if promise.audited == promise.total:
        return f"Nothing is left to accept: all of it was decided or audited ({seen})"
    if promise.accepted:
        return (
            f"{len(promise.accepted):,} of {promise.total:,} items can be accepted without a look: at most "
            f"{100 * promise.error:g} % of them are wrong, with {100 * promise.confidence:g} % confidence ({seen})"
        )
    if promise.more is None:
        return (
            f"Nothing can be promised at {100 * promise.error:g} %, however many more items of the audit were right: "
            f"{seen}. Ask for a larger --error"
        )
    what, more = ("a larger audit", " more") if promise.audited else ("an audit", "")
    words = (
        f"Nothing can be promised without {what}: {seen}. If {promise.more:,}{more} were audited and all of them were "
        f"right, that would do for at most {100 * promise.error:g} % wrong"
    )
    if promise.likely is None:
        words += "; with as many errors as are to be expected, hardly any number would: ask for a larger --error"
    elif promise.likely > promise.more:
        words += f"; with as many errors as are to be expected, about {promise.likely:,}"
    if folder is not None:
        words += f". They come between the others in: {command('review', folder, '--audit', 1)} (one behind every item)"
    return words


@app.command()
def finish(
    folder: options.Folder,
    output: options.Out,
    error: Annotated[
        float | None, typer.Option(min=0.0001, max=0.5, help="Put the promise at this error on the card.")
    ] = None,
    confidence: options.Confidence = 0.95,
    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to", metavar="FORMAT", help="A further format that `lasca convert` writes, such as label-studio."
        ),
    ] = None,
    names: Annotated[bool, typer.Option("--names", help="Name annotators and reviewers on the card.")] = False,
    refit: Annotated[bool, typer.Option(help="Infer the rest anew with what was decided.")] = True,
    overwrite: options.Overwrite = False,
) -> None:
    """Write the final labels, each with its source (agreed, inferred, decided, audited), and a data card."""
    from lasca.estimator import check_choice
    from lasca.files import check_output
    from lasca.formats import WRITERS
    from lasca.review.finish import BARE
    from lasca.review.finish import finish as write
    from lasca.review.project import Project

    check_output(output, folder, overwrite=overwrite)
    for name in to or ():
        check_choice("--to", name, [format for format in WRITERS if format not in BARE])
    project = Project(folder)
    with progress_bar("inferring anew with what was decided") as report:
        fit = project.fit(again=refit, progress=report)
    promised = None
    if error is not None:
        promise = project.promise(fit, error=error, confidence=confidence)
        promised = {"words": promise_words(promise), "accepted": len(promise.accepted), "error": error}
    card = write(project, output, fit=fit, names=names, more=tuple(to or ()), promise=promised, overwrite=overwrite)
    by = ", ".join(f"{name} {n:,}" for name, n in card["tokens_by_source"].items())
    out.print(f"Tokens by source: {excerpt(by, 200)}", markup=False)
    say(f"wrote card.md, labels.csv, spans.jsonl and {len(list(output.iterdir())) - 3} more files to {output}")


@app.command(name="next")
def next_votes(
    folder: options.Folder,
    output: options.Out,
    budget: Annotated[int, typer.Option(min=1, help="How many documents to hand out, each to one person.")] = 100,
    annotators: Annotated[str | None, typer.Option(help="Names, separated by commas; all if not given.")] = None,
    most: Annotated[int | None, typer.Option(min=1, help="The most documents for one annotator.")] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Say which documents to give to whom next: CSV, JSON lines and Label Studio tasks."""
    import numpy as np

    from lasca.files import check_output, whole_folder, write_json, write_lines
    from lasca.formats.outcome import outcome
    from lasca.formats.write_spans import tasks
    from lasca.formats.write_tables import people_table
    from lasca.review.assign import assign
    from lasca.review.project import Project

    check_output(output, folder, overwrite=overwrite)
    project = Project(folder)
    fit = project.fit(again=False)
    names = None if annotators is None else [name.strip() for name in annotators.split(",") if name.strip()]
    settled = project.looked_at(fit)
    made = assign(fit.corpus, fit.truth, budget, annotators=names, most=most, settled=settled)
    rows = [
        {
            "annotator": a.annotator, "document": a.document, "tokens": a.tokens, "gain": round(a.gain, 4),
            "sequences": [fit.corpus.sequence_ids[s] for s in a.sequences],
        }
        for a in made
    ]  # fmt: skip
    who: dict[int, list[str]] = {}
    for a in made:
        for s in a.sequences:
            who.setdefault(s, []).append(a.annotator)
    part = fit.corpus.select(sequences=list(who))

    given = tasks(part, outcome(part, np.full(part.n_tokens, -1)))
    for task, people in zip(given, who.values()):
        task["data"] = task["data"] | {"annotators": people}
        task["predictions"] = []
    with whole_folder(output, overwrite=overwrite) as place:
        columns = {name: [row[name] for row in rows] for name in ("annotator", "document", "tokens", "gain")}
        people_table(columns, place / "next.csv")
        write_lines(place / "next.jsonl", rows)
        write_json(place / "label-studio.json", given)
    total = sum(a.gain for a in made)
    if made:
        asked, documents = (len({getattr(a, of) for a in made}) for of in ("annotator", "document"))
        each = "" if len(made) == documents else f", {len(made):,} votes"
        out.print(
            f"{count(documents, 'document')} for {count(asked, 'annotator')}{each}: expected to correct "
            f"{total:.1f} labels of tokens"
        )
    else:
        out.print("Nothing was handed out: those who are asked have labelled whatever is not sure")
    if not made and names is None:
        say("new people can be named: --annotators anna,ben")
    elif len(made) < budget:
        say(
            f"there are no more ({budget:,} were asked for): those who are asked have labelled the rest, or it is sure"
            + (", or they have as many as --most allows" if most is not None else "")
            + "; --annotators names new people"
        )
    say(f"wrote next.csv, next.jsonl and label-studio.json to {output}")


@app.command()
def update(
    folder: options.Folder,
    data: Annotated[list[str], typer.Argument(metavar="NEW", help="Files with new annotations.")],
    output: options.Out,
    format: options.Format = "auto",
    reader: options.Reader = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Let new annotations, annotators or texts join an earlier run; say what changed.

    Models that keep statistics to go on from infer only new texts; the others are run anew. Decisions go along.
    """
    from lasca.corpus import LoadReport
    from lasca.pipeline.update import update as go_on

    with progress_bar("lasca update") as report:
        said = go_on(
            folder, data, output=output, format=format, reader=settings(reader, "--reader"), overwrite=overwrite,
            progress=report,
        )  # fmt: skip
    if json:
        print_json(said)
        return
    show_load_report(LoadReport.from_dict(said["load_report"]))
    for line in update_words(said):
        out.print(line, markup=False, soft_wrap=True)
    say(f"wrote {output}; go on with: {command('review', output)}")


def update_words(said: dict[str, Any]) -> list[str]:
    """Say what an update changed, a line for each thing."""
    votes, flipped = said["votes"], said["flipped"]
    lines = [
        f"{count(said['sequences'], 'new sequence')} ({count(said['tokens'], 'token')}); "
        f"{count(votes['new'], 'new vote')}, "
        f"{votes['changed']:,} changed, {votes['already_there']:,} were there already",
        f"How: {said['how']}",
    ]
    if said["renamed"]:
        shown = ", ".join(excerpt(name, 40) for name in said["renamed"][:5])
        lines.append(f"{len(said['renamed']):,} ids were taken by other texts; these sequences are called {shown}, …")
    for what in ("annotators", "labels"):
        if said[what]:
            shown = ", ".join(excerpt(name, 40) for name in said[what][:10])
            lines.append(f"New {what}: {len(said[what]):,} ({shown}{', …' if len(said[what]) > 10 else ''})")
    first = flipped["examples"][:1]
    example = "".join(f" – for example {excerpt(e['token'], 40)}: {e['before']} is now {e['after']}" for e in first)
    lines.append(f"Labels of old texts that flipped: {count(flipped['tokens'], 'token')}{example}")
    lines.append(f"Annotators whose reliability moved: {len(said['moved']):,}")
    lines += [f"  {excerpt(m['name'], 40)}: {m['before']:.3f} is now {m['after']:.3f}" for m in said["moved"][:10]]
    if said["decisions"]:
        lines.append(f"{count(said['decisions'], 'decision')} went along")
    return lines

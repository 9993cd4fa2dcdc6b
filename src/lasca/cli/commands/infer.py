"""Verbs that infer: aggregate, compare (the truth), ambiguity (which tokens are truly ambiguous, and who said what)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from lasca.cli import options
from lasca.cli.app import app
from lasca.cli.common import out, print_json, progress_bar, say, show_load_report, show_table, show_warnings
from lasca.cli.options import folders_of, get_corpus, get_data, get_model
from lasca.defaults import DEFAULT_MODEL
from lasca.errors import ParameterError, count, excerpt

if TYPE_CHECKING:
    from lasca.ambiguity import Ambiguity
    from lasca.comparison import Comparison
    from lasca.corpus import CrowdCorpus
    from lasca.truth import Truth, TruthModel

MAX_ROWS = 30
COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red")


@app.command()
def aggregate(
    data: options.Data,
    output: options.Out,
    model: options.Model = DEFAULT_MODEL,
    param: options.Param = None,
    format: options.Format = "auto",
    reader: options.Reader = None,
    seed: options.Seed = 0,
    engine: options.Engine = "threads",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run on shards that was stopped.")] = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Infer the true labels of DATA and what each annotator is worth.

    DATA may be a corpus in shards (lasca shard), which need not fit into memory.
    """
    from lasca.corpus.shards import is_sharded
    from lasca.engine.cluster import engine_of
    from lasca.files import check_output, whole_folder
    from lasca.formats import Layers
    from lasca.pipeline.folder import save_truth

    check_output(output, *data, overwrite=overwrite)
    estimator = get_model(model, param, seed)
    if len(data) == 1 and is_sharded(data[0]) and "shards" in estimator.supports:
        _aggregate_shards(data[0], output, estimator, engine, resume, overwrite)
        return
    found = get_data(data, format, reader)
    show_load_report(found.load_report)
    if isinstance(found, Layers):
        names, inferred = folders_of(found), {}
        with engine_of(engine) as opened, whole_folder(output, overwrite=overwrite) as place:
            for name, layer in found.items():
                estimator = get_model(model, param, seed)
                estimator.engine = opened
                with progress_bar(f"inferring the truth of {name} ({estimator.name})") as report:
                    inferred[name] = estimator.fit(layer, progress=report)
                show_warnings(inferred[name].warnings, f" ({name})")
                save_truth(layer, inferred[name], place / names[name])
            found.write(place / "spans.jsonl", "offsets", {name: truth.labels for name, truth in inferred.items()})
        layers = count(len(found), "layer")
        say(f"wrote a folder for each of {layers}, and spans.jsonl with the spans of all, to {output}")
        return
    corpus = found
    with progress_bar(f"inferring the truth ({estimator.name})") as report, engine_of(engine) as estimator.engine:
        truth = estimator.fit(corpus, progress=report)
    save_truth(corpus, truth, output, overwrite=overwrite)
    show_annotators(truth)
    show_warnings(truth.warnings)
    say(f"wrote labels, probabilities and annotators to {output}")


def _aggregate_shards(
    data: str, output: Path, estimator: TruthModel, engine: str, resume: bool, overwrite: bool
) -> None:
    from lasca.corpus.shards import ShardedCorpus
    from lasca.pipeline.sharded import aggregate_shards

    corpus = ShardedCorpus.open(data)
    with progress_bar(f"inferring the truth ({estimator.name})") as report:
        truth = aggregate_shards(
            corpus, output, estimator, engine=engine, resume=resume, overwrite=overwrite, progress=report
        )
    show_annotators(truth)
    show_warnings(truth.warnings)
    say(f"wrote the labels of {count(corpus.n_tokens, 'token')} in parts, and annotators, to {output}")


def show_annotators(truth: Truth) -> None:
    """Print who is worth what, the most reliable first."""
    rows = sorted(truth.annotators.to_pylist(), key=lambda row: -row["reliability"])
    show_table(
        "Annotators: expected share of labels that are true, with a 95 % interval",
        ("name", "labels given", "reliability", "from", "to", "cluster"),
        [
            (r["name"], r["n"], r["reliability"], r["reliability_low"], r["reliability_high"], r["cluster"])
            for r in rows
        ],
        most=MAX_ROWS, where=" in annotators.csv",
    )  # fmt: skip


@app.command()
def compare(
    data: options.Data,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="A model to run; may be repeated. All if not given.")
    ] = None,
    gold: options.Gold = None,
    by: Annotated[
        str | None, typer.Option(help="A metadata column to score by as well; 'folder' where there is one.")
    ] = None,
    format: options.Format = "auto",
    reader: options.Reader = None,
    seed: options.Seed = 0,
    engine: options.Engine = "threads",
    json: options.Json = False,
) -> None:
    """Run truth models side by side on DATA: scores against gold, calibration, time."""
    from lasca.comparison import compare as compare_models

    corpus = get_corpus(data, format, reader)
    show_load_report(corpus.load_report)
    by = by or ("folder" if "folder" in corpus.metadata else None)
    with progress_bar("comparing") as report:
        lines = compare_models(corpus, model, gold=gold, by=by, seed=seed, engine=engine, progress=report)
    if json:
        print_json([line.to_dict() for line in lines])
        return
    if not lines[0].scores:
        out.print(f"There is no gold in DATA: how often models give the label that {lines[0].model} gives, and times.")
        rows = [(c.model, f"{100 * c.same:.2f}", c.cpu_seconds, c.wall_seconds) for c in lines]
        show_table("Models", ("model", f"% as {lines[0].model}", "CPU s", "s"), rows)
    for part in lines[0].scores:
        _show_part(part, lines)
    for line in lines:
        show_warnings(line.warnings, f" ({line.model})")


def _show_part(part: str, lines: list[Comparison]) -> None:
    n_tokens = lines[0].scores[part].n_tokens
    title = "All annotated sequences" if part == "all" else f"Part: {excerpt(part)}"
    columns = ["model", "accuracy", "P", "R", "F1", "cross entropy", "ECE", "CPU s", "s"]
    rows: list[list[Any]] = []
    for line in lines:
        s = line.scores[part]
        rates = ["–" if x is None else f"{100 * x:.1f}" for x in (s.accuracy, s.precision, s.recall, s.f1)]
        cells = [line.model, *rates, f"{s.cross_entropy:.3f}", f"{s.ece:.3f}"]
        rows.append([*cells, f"{line.cpu_seconds:.1f}", f"{line.wall_seconds:.1f}"])
    show_table(f"{title} ({n_tokens:,} tokens; spans read as seqeval does by default)", columns, rows)


@app.command()
def ambiguity(
    folder: Annotated[str, typer.Argument(metavar="OUT", help="A folder that `lasca aggregate` or `lasca run` wrote.")],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="A folder to write them to: CSV, JSONL, Parquet, Label Studio tasks."),
    ] = None,
    method: Annotated[
        str, typer.Option(help="two-truths, rank-1, vote-entropy, posterior-entropy or crowdtruth.")
    ] = "two-truths",
    fraction: Annotated[float, typer.Option(min=0.0, max=1.0, help="The share of tokens to flag.")] = 0.10,
    top: Annotated[int, typer.Option(min=0, help="How many to print.")] = 20,
    json: options.Json = False,
    engine: options.Engine = "threads",
    overwrite: options.Overwrite = False,
) -> None:
    """Find the tokens where reliable people disagree, and the labels that compete there.

    Of the truth of a corpus in shards they are found block by block (two-truths only), and written in parts to OUT.
    """
    from lasca.ambiguity import find_ambiguity
    from lasca.ambiguity.write import rows, write_all
    from lasca.files import check_output
    from lasca.pipeline.folder import load_truth
    from lasca.truth.parts import is_in_parts

    if output is not None:
        check_output(output, folder, overwrite=overwrite)
    if is_in_parts(folder):
        _ambiguity_in_shards(folder, output, method, fraction, top, json, engine, overwrite)
        return
    corpus, truth = load_truth(folder)
    with progress_bar("finding ambiguous tokens") as report:
        found = find_ambiguity(corpus, truth, method=method, fraction=fraction, progress=report)
    if output is not None:
        write_all(corpus, truth, found, output, overwrite=overwrite)
        say(f"wrote {count(len(found.tokens), 'token')} to {output}")
    if json:
        print_json(rows(corpus, truth, found, limit=top))
    else:
        show_ambiguous(corpus, truth, found, top)


def _ambiguity_in_shards(
    folder: str, output: str | None, method: str, fraction: float, top: int, json: bool, engine: str, overwrite: bool
) -> None:
    from lasca.pipeline.sharded import ambiguity_in_shards

    if method != "two-truths":
        raise ParameterError("--method", method, "two-truths for a corpus in shards")
    if output is None:
        raise ParameterError("--output", None, "a folder for a corpus in shards: all of it is not held in memory")
    with progress_bar("finding ambiguous tokens") as report:
        found = ambiguity_in_shards(
            folder, output, fraction=fraction, engine=engine, overwrite=overwrite, progress=report
        )
    say(f"wrote {count(found.n_ambiguous, 'token')} in parts to {output}")
    if json:
        print_json(found.top[:top])
    else:
        show_rows(found.top[:top], found.n_ambiguous)


def show_ambiguous(corpus: CrowdCorpus, truth: Truth, found: Ambiguity, top: int) -> None:
    """Print the most ambiguous tokens in context."""
    from lasca.ambiguity.write import rows

    show_rows(rows(corpus, truth, found, limit=top), len(found.tokens))


def show_rows(rows: list[dict[str, Any]], n: int) -> None:
    """Print ambiguous tokens in context: marked by style, or [so] where there is none; n is how many there are."""
    for row in rows:
        out.print(_line(row), soft_wrap=True)
    if n > len(rows):
        out.print(f"… and {n - len(rows):,} more", style="dim")


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

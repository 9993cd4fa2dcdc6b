"""Verbs on data: inspect, convert, shard, simulate, datasets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lasca.cli import options
from lasca.cli.app import app
from lasca.cli.common import at_work, command, out, print_json, progress_bar, say, show_load_report, show_table
from lasca.cli.options import DATA, find_gold, folders_of, get_corpus, get_data, settings
from lasca.errors import count
from lasca.plugins import plugin_names

if TYPE_CHECKING:
    from lasca.corpus import CrowdCorpus

datasets_app = typer.Typer(no_args_is_help=True, help="Public corpora: list them, get them, say where they are.")
app.add_typer(datasets_app, name="datasets")

MAX_ROWS = 60
WRITTEN = (
    "conll, jsonl, parquet, huggingface, label-studio, doccano, prodigy, brat, webanno, xmi, cas-json, spacy, offsets, "
    f"{', '.join(('mace', 'table', *plugin_names('lasca.formats')))}, llm-batch (requests for language models), or "
    "lasca: the package's own folder."
)
FOLDERS = ("lasca", "brat", "webanno", "xmi")


@app.command()
def inspect(
    data: options.Data, format: options.Format = "auto", reader: options.Reader = None, json: options.Json = False
) -> None:
    """Say what is in DATA: sequences, annotators, labels, coverage, agreement, and what the reader did.

    With --json also CrowdTruth's qualities of units, workers and annotations.
    """
    from lasca.evaluate import crowdtruth
    from lasca.formats import Layers

    found = get_data(data, format, reader)
    layers = found if isinstance(found, Layers) else {"": found}
    if json:
        told = {
            n: _facts(c) | {"crowdtruth": crowdtruth(c).to_dict(), "load_report": c.load_report.to_dict()}
            for n, c in layers.items()
        }
        print_json(told.get("", {"layers": told}))
        return
    _show(next(iter(layers.values())), layers)
    show_load_report(found.load_report)
    if not any(corpus.n_annotations or corpus.soft is not None for corpus in layers.values()):
        golds = list(dict.fromkeys(name for corpus in layers.values() for name in corpus.golds))
        plain = len(data) == 1 and len(layers) == 1 and format == "auto" and not reader  # what `lasca train` can read
        train = command("train", *data, "--gold", golds[0], "-o", "tagger") if golds and plain else "lasca train"
        taught = f", but a tagger can be taught by its gold: {train}" if golds else ""
        say(f"warning: nobody labelled anything in it, so that there is nothing to infer{taught}", "yellow")


OF_A_LAYER = ("annotations per token", "labels", "Krippendorff's alpha", "Gwet's AC1")


def _show(corpus: CrowdCorpus, layers: Mapping[str, CrowdCorpus]) -> None:
    """Show a corpus; of several layers over the same tokens the first, and what differs in a table."""
    facts = _facts(corpus)
    out.print(f"[bold]{corpus.load_report.format or 'corpus'}[/bold]")
    same = {k: v for k, v in facts["summary"].items() if len(layers) == 1 or k not in OF_A_LAYER}
    show_table("What is in it", ("", ""), list(same.items()))
    spans = ("spans",) if "types" in facts and len(layers) == 1 else ()
    columns = ("name", "role", "annotations", *spans, "sequences")
    busiest = sorted(facts["annotators"], key=lambda a: -a["annotations"])
    if busiest:
        rows = [tuple(a[what] for what in columns) for a in busiest]
        show_table("Annotators, the busiest first", columns, rows, most=MAX_ROWS)
    if len(layers) > 1:
        summaries = {name: _facts(layer)["summary"] for name, layer in layers.items()}
        rows = [(name, *(summary[what] for what in OF_A_LAYER)) for name, summary in summaries.items()]
        show_table("Layers, each a corpus of its own", ("layer", *OF_A_LAYER), rows, most=MAX_ROWS)
        return
    golds = list(corpus.golds)
    if "types" in facts:  # who marked spans never saw a tag
        types = [(t["type"] or "span", t["spans"], *(t["golds"][g] for g in golds)) for t in facts["types"]]
        show_table("Spans of each type", ("type", "by annotators", *golds), types, most=MAX_ROWS)
    else:
        labels = [(entry["label"], entry["votes"], *(entry["golds"][g] for g in golds)) for entry in facts["labels"]]
        show_table("Labels", ("label", "votes", *golds), labels, most=MAX_ROWS)


def _facts(corpus: CrowdCorpus) -> dict[str, Any]:
    import numpy as np

    from lasca import evaluate, schemes
    from lasca.review.spans import Labels, said_by_everybody

    per_token = np.diff(corpus.token_start)
    agreed = evaluate.agreement(corpus.crowd())
    n = np.bincount(corpus.annotation_annotator, minlength=corpus.n_annotators)
    pairs = np.unique(
        corpus.annotation_annotator.astype(np.int64) * max(corpus.n_sequences, 1)
        + corpus.token_sequence[corpus.annotation_token]
    )
    sequences = np.bincount(pairs // max(corpus.n_sequences, 1), minlength=corpus.n_annotators)
    votes = np.bincount(corpus.annotation_label, minlength=corpus.n_labels)
    golds = {name: np.bincount(gold[gold >= 0], minlength=corpus.n_labels) for name, gold in corpus.golds.items()}
    facts: dict[str, Any] = {
        "summary": {
            "sequences": corpus.n_sequences,
            "annotated sequences": int(corpus.annotated_sequences.sum()),
            "tokens": corpus.n_tokens,
            "tokens without a label": int((per_token == 0).sum()),
            "annotators": corpus.n_annotators,
            "annotations": corpus.n_annotations,
            "annotations per token": float(per_token.mean()) if corpus.n_tokens else 0.0,
            "labels": corpus.n_labels,
            "tag scheme": schemes.detect_corpus(corpus) or "none",
            "golds": ", ".join(corpus.golds) or "none",
            "Krippendorff's alpha": None if np.isnan(agreed.krippendorff_alpha) else agreed.krippendorff_alpha,
            "Gwet's AC1": None if np.isnan(agreed.gwet_ac1) else agreed.gwet_ac1,
        },
        "annotators": [
            {"name": name, "role": role, "annotations": int(n[i]), "sequences": int(sequences[i])}
            for i, (name, role) in enumerate(zip(corpus.annotators, corpus.roles))
        ],
        "labels": [
            {"label": label, "votes": int(votes[i]), "golds": {g: int(counts[i]) for g, counts in golds.items()}}
            for i, label in enumerate(corpus.labels)
        ],
    }
    labels = Labels.of(corpus)
    if labels.scheme is not None:
        spans, who = said_by_everybody(corpus.with_voters(corpus.annotators), labels)
        for i, marked in enumerate(np.bincount(who, minlength=corpus.n_annotators).tolist()):
            facts["annotators"][i]["spans"] = marked
        kinds = {"": spans.kind} | {g: labels.spans(codes, corpus.offsets).kind for g, codes in corpus.golds.items()}
        of = {name: np.bincount(kind, minlength=len(labels.types)).tolist() for name, kind in kinds.items()}
        facts["types"] = [
            {"type": kind, "spans": of[""][k], "golds": {g: of[g][k] for g in corpus.golds}}
            for k, kind in enumerate(labels.types)
        ]
    return facts


@app.command()
def convert(
    data: options.Data,
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="The file or folder to write.")],
    to: Annotated[str, typer.Option("--to", "-t", metavar="FORMAT", help=WRITTEN)],
    format: options.Format = "auto",
    reader: options.Reader = None,
    writer: Annotated[
        list[str] | None,
        typer.Option("--writer", "-w", metavar="NAME=VALUE", help="An option of what is written, such as samples=3."),
    ] = None,
    guideline: Annotated[
        Path | None, typer.Option(help="For llm-batch: the file that tells people how to label.")
    ] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Read DATA in one format and write it in another."""
    from lasca import formats
    from lasca.errors import ParameterError
    from lasca.files import check_file, check_output, whole_folder

    if to not in formats.WRITERS:
        raise ParameterError("--to", to, "one of " + ", ".join(formats.WRITERS))
    folder = to in FOLDERS or (to == "huggingface" and output.suffix.lower() != ".parquet")
    folder = folder or (to == "doccano" and not output.suffix)
    (check_output if folder else check_file)(output, *data, overwrite=overwrite)
    options = settings(writer, "--writer") | ({} if guideline is None else {"guideline": guideline})
    options |= {"overwrite": overwrite} if folder else {}
    found = get_data(data, format, reader)
    show_load_report(found.load_report)
    layers = found if isinstance(found, formats.Layers) else None
    with at_work(f"writing {to}"):
        if layers is not None and to == "lasca":
            names = folders_of(layers)
            with whole_folder(output, overwrite=overwrite) as place:
                for name, corpus in layers.items():
                    formats.write(corpus, place / names[name], to, **options)
        else:
            formats.write(found, output, to, **options)
    n = found.n_sequences if layers is None else next(iter(layers.values())).n_sequences
    parts = "" if layers is None else f" in {count(len(layers), 'layer')}"
    say(f"wrote {count(n, 'sequence')}{parts} to {output}")


ShardVotes = Annotated[int, typer.Option("--votes", min=1, help="A shard ends with the document that reaches this.")]


@app.command()
def shard(
    data: options.Data,
    output: options.Out,
    votes: ShardVotes = 2_000_000,
    format: options.Format = "auto",
    reader: options.Reader = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Write DATA as a corpus in shards, which need not fit into memory.

    Long tables (CSV, TSV, Parquet), JSON lines and CoNLL are read piece by piece, other formats as a whole. The rows of
    a sequence, and the sequences of a document, must stand together.
    """
    from lasca.corpus.sharding import write_shards
    from lasca.files import check_output
    from lasca.formats.stream import read_pieces

    check_output(output, *data, overwrite=overwrite)
    with at_work("writing shards"):
        pieces = read_pieces(data, format, **settings(reader, "--reader"))
        made = write_shards(pieces, output, votes=votes, overwrite=overwrite)
    show_load_report(made.load_report)
    n = int(made.sizes["votes"].sum())
    say(f"wrote {count(n, 'vote')} on {count(made.n_tokens, 'token')} in {count(made.n_shards, 'shard')} to {output}")


@app.command()
def simulate(
    data: Annotated[str, typer.Argument(metavar="DATA", help=f"{DATA} With --shards also: big, which needs no data.")],
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="The folder to write (a LASCA corpus).")],
    gold: Annotated[
        str | None, typer.Option(help="The gold the crowd starts from; the first one if not given.")
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="NAME=VALUE", help='For example errors=difficulty or groups={"high":5}'),
    ] = None,
    shards: Annotated[int, typer.Option(min=0, help="Write a corpus in about so many shards; 0: an ordinary one.")] = 0,
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
) -> None:
    """Simulate a crowd on the gold labels of DATA.

    With --shards, `big` makes a corpus of any size: -p n_annotations=100000000 -p n_annotators=1000.
    """
    from lasca import simulate as simulation
    from lasca.corpus.sharding import write_shards
    from lasca.estimator import check_int, check_options
    from lasca.files import check_output

    check_output(output, data, overwrite=overwrite)
    options = settings(param, "--param")
    if data == "big" and shards:
        check_options("a parameter of the simulation", options, simulation.big, but=("skills", "seed"))
        n = check_int("n_annotations", options.setdefault("n_annotations", 100_000_000), low=shards)
        with at_work("simulating"):
            pieces = simulation.big_shards(shards, seed=seed, **options)
            made = write_shards(pieces, output, votes=max(n // shards, 1), overwrite=overwrite)
        say(f"{_wrote(made.n_annotators, n)} in {count(made.n_shards, 'shard')} to {output}")
        return
    check_options("a parameter of the simulation", options, simulation.CrowdSettings, but=("gold", "seed"))
    corpus = get_corpus(data)
    gold = find_gold(corpus, gold, data, hint="A crowd is simulated on gold labels: DATA must have some")
    with at_work("simulating"):
        crowd = simulation.crowd(corpus, gold=gold, seed=seed, **options)
        if shards:
            write_shards([crowd], output, votes=max(crowd.n_annotations // shards, 1), overwrite=overwrite)
        else:
            crowd.save(output, overwrite=overwrite)
    say(f"{_wrote(crowd.n_annotators, crowd.n_annotations)} to {output}")


def _wrote(annotators: int, annotations: int) -> str:
    return f"wrote {count(annotators, 'annotator')}, {count(annotations, 'annotation')}"


@datasets_app.command("list")
def list_datasets(json: options.Json = False) -> None:
    """List the known data sets, their licences, and whether they are here."""
    from lasca import datasets

    entries = []
    for name in datasets.names():
        entry, found = datasets.dataset(name), datasets.path(name)
        where = "" if found is None else ", ".join(str(p) for p in found)
        here = where or ("not here" if entry.downloadable else "bring your own copy")
        entries.append(
            {"name": name, "what": entry.title, "licence": entry.licence, "cite": entry.citation, "where": here}
        )
    if json:
        print_json(entries)
        return
    for e in entries:
        out.print(f"[bold]{e['name']}[/bold] – {e['what']}")
        for key in ("licence", "cite", "where"):
            out.print(f"    {key}: {e[key]}", markup=False)


@datasets_app.command()
def fetch(name: options.Dataset) -> None:
    """Download a data set (checked by its SHA-256; an interrupted download goes on where it stopped)."""
    from lasca import datasets

    with progress_bar(f"fetching {name}") as report:
        found = datasets.fetch(
            name, progress=lambda got, total: report(got / total if total else 0.0, f"{got:,} bytes")
        )
    for file in found:
        typer.echo(str(file))


@datasets_app.command()
def path(name: options.Dataset) -> None:
    """Print where a data set lies on this machine."""
    from lasca import datasets
    from lasca.errors import DatasetError

    found = datasets.path(name)
    if found is None:
        raise DatasetError("the data set is not on this machine", got=name, hint=f"Get it: lasca datasets fetch {name}")
    for file in found:
        typer.echo(str(file))

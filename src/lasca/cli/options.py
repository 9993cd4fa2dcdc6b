"""Options that several commands have, declared once, and what they stand for: a corpus, a gold, a model, settings."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lasca.cli.common import at_work
from lasca.defaults import BUILT_IN_MODELS
from lasca.errors import CorpusError, ParameterError, excerpt
from lasca.plugins import plugin_names

if TYPE_CHECKING:
    from lasca.corpus import CrowdCorpus
    from lasca.truth import TruthModel

DATA = "A file, folder or zip; - for stdin; or the name of a known data set."
Data = Annotated[
    list[str], typer.Argument(metavar="DATA", help=f"{DATA} Several files are read as exports of one project.")
]
Format = Annotated[str, typer.Option("--format", "-f", help="The format of DATA, or auto.")]
Reader = Annotated[
    list[str] | None,
    typer.Option("--reader", "-r", metavar="NAME=VALUE", help="An option of the reader, such as partial=shrink."),
]
Engine = Annotated[
    str,
    typer.Option(
        help="What does the work: threads, dask (processes on this machine), or a scheduler, tcp://HOST:PORT."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Same seed, same result.")]
Out = Annotated[Path, typer.Option("--output", "-o", help="Where to write; whole or not at all.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an output that is there.")]
Folder = Annotated[Path, typer.Argument(metavar="OUT", help="A folder that `lasca run` or `lasca aggregate` wrote.")]
MODELS = f"{', '.join((*BUILT_IN_MODELS, *plugin_names('lasca.truth_models')))}: docs/models."
Model = Annotated[str, typer.Option("--model", "-m", help=MODELS)]
Param = Annotated[
    list[str] | None, typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter of the model.")
]
Gold = Annotated[str | None, typer.Option(help="The gold to score against; the first one if not given.")]
Title = Annotated[str | None, typer.Option(help="The title of the report.")]
Confidence = Annotated[float, typer.Option(min=0.5, max=0.9999, help="How sure the promise is to be.")]
Dataset = Annotated[str, typer.Argument(metavar="NAME", help="A name that `lasca datasets list` shows.")]


def settings(pairs: Sequence[str] | None, option: str) -> dict[str, Any]:
    """Read NAME=VALUE pairs; values that are JSON (numbers, true, null, lists) become that, the rest are strings."""
    values: dict[str, Any] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ParameterError(option, pair, "of the form NAME=VALUE")
        try:
            values[name.replace("-", "_")] = json.loads(value)
        except (ValueError, RecursionError):  # also numbers that are too long, lists that are too deep
            values[name.replace("-", "_")] = value
    return values


def folders_of(layers: Iterable[str]) -> dict[str, str]:
    """Return what the folder of each layer is called: its name, and a number where another one is called the same."""
    found: dict[str, str] = {}
    for layer in layers:
        plain = re.sub(r"[^\w() -]+", "_", layer)
        names = itertools.chain((plain,), (f"{plain} {n}" for n in itertools.count(2)))
        found[layer] = next(name for name in names if name not in found.values())
    return found


def get_data(data: str | Sequence[str], format: str = "auto", reader: Sequence[str] | None = None) -> Any:
    """Read DATA into a corpus, or into layers where the reader was asked for them."""
    from lasca.pipeline.source import read, shown

    with at_work(f"reading {excerpt(shown(data))}"):
        return read([data] if isinstance(data, str) else list(data), format, **settings(reader, "--reader"))


def get_corpus(data: str | Sequence[str], format: str = "auto", reader: Sequence[str] | None = None) -> CrowdCorpus:
    """Read DATA: paths, standard input, or the name of a data set in the registry."""
    from lasca.pipeline.source import one_corpus

    return one_corpus(get_data(data, format, reader), data, format, settings(reader, "--reader"))


def find_gold(corpus: CrowdCorpus, name: str | None, data: str, hint: str) -> str:
    """Return the name of a gold of DATA: this one, or the first. The hint says what to do where there is none."""
    if not corpus.golds:
        raise CorpusError("there are no gold labels in it", where=data, hint=hint)
    if name is not None and name not in corpus.golds:
        known = ", ".join(excerpt(gold, 40) for gold in corpus.golds)
        raise CorpusError("there is no gold of that name", where=data, got=name, hint=f"There is: {known}")
    return name or next(iter(corpus.golds))


def get_model(name: str, params: Sequence[str] | None, seed: int) -> TruthModel:
    """Make a truth model from its short name and NAME=VALUE settings."""
    from lasca.comparison import seeded

    return seeded(name, seed).set_params(**settings(params, "--param"))

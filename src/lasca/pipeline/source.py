"""Where a corpus comes from: a path, standard input, or a name."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lasca import datasets, formats, simulate
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError, StoreError
from lasca.estimator import check_options
from lasca.files import sums_of

__all__ = ["one_corpus", "paths", "read", "shown"]


def read(
    source: Any, format: str = "auto", *, repair: bool = False, scheme: str | None = None, **options: Any
) -> CrowdCorpus:
    """Read an export, or a data set by its name ("demo" is the built-in crowd), into a corpus.

    `source` is a path or several (exports of one project), "-" for standard input, a pandas, polars or Arrow table, or
    rows; `format` one of `lasca.formats.READERS`, or "auto". `repair` makes illegal tags legal, `scheme` converts all
    tags to a scheme (IOB2, BIOES, …); both are counted. Further options are those of the format; a wrong one gives an
    error that lists them. `corpus.load_report` says what was found, left out, changed and guessed. With
    `overlap="layers"` the result is `Layers`, a corpus for each label: see `read_layers`.
    """
    if scheme is not None or repair:
        options |= {"repair": repair, "scheme": scheme}
    alone = isinstance(source, list | tuple) and len(source) == 1 and isinstance(source[0], str | Path)
    data = source[0] if alone else source
    if format == "auto" and isinstance(data, str | Path) and not _exists(data):
        if str(data) == "demo":
            check_options("an option of the demo", options, simulate.demo_crowd)
            return simulate.demo_crowd(**options)
        if str(data) in datasets.names():
            return datasets.load(str(data), **options)
    if isinstance(data, str | Path):
        _refuse_results(Path(data))
    return formats.read(data, format=format, **options)


def _refuse_results(path: Path) -> None:
    """Refuse a folder that `lasca run` or `lasca aggregate` wrote: it holds its corpus, and labels in many files."""
    try:
        wrote = {"run.json", "aggregate.json"} & set(sums_of(path))
    except (StoreError, OSError):
        return
    if wrote:
        inside = (path / "corpus").is_dir()
        hint = f"Its corpus is in {path / 'corpus'}" if inside else "Give the data that it was made of"
        raise FormatError("this is a folder of results, not of data", path=path, hint=hint)


def one_corpus(found: Any, data: Any, format: str, reader: Mapping[str, Any]) -> CrowdCorpus:
    """Return what was read of `data` if it is one corpus; layers are refused, with the way to take one of them."""
    if isinstance(found, formats.Layers):
        files = [str(path) for path in paths(data)] or ["DATA"]
        said = [f"{name}={v if isinstance(v, str) else json.dumps(v)}" for name, v in reader.items()]
        asked = ([] if format == "auto" else ["-f", format]) + [word for option in said for word in ("-r", option)]
        raise ParameterError(
            "overlap",
            reader.get("overlap", "layers"),
            "longest or first to have one corpus, which leaves out the spans that overlap others and counts them. "
            f"Here are {len(found)} layers, each a corpus of its own: write them with "
            f"{shlex.join(['lasca', 'convert', *files, 'layers', '--to', 'lasca', *asked])}, then for each: "
            "lasca run layers/NAME -o OUT",
        )
    corpus: CrowdCorpus = found
    return corpus


def _exists(data: str | Path) -> bool:
    try:
        return Path(data).exists()
    except OSError:
        return False


def shown(data: Any) -> str:
    """Return what is read in a few words: the path, or several with commas between them."""
    return ", ".join(map(str, data)) if isinstance(data, list | tuple) else str(data)


def paths(data: Any) -> Sequence[str | Path]:
    """Return the paths that are read, so that nothing is written over them."""
    found = data if isinstance(data, list | tuple) else [data]
    return [path for path in found if isinstance(path, str | Path)]

"""Where a corpus comes from: a path, standard input, or a name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lasca import datasets, formats, simulate
from lasca.corpus import CrowdCorpus
from lasca.estimator import check_options

__all__ = ["read"]


def read(data: str | Path, format: str = "auto", /, **options: Any) -> CrowdCorpus:
    """Read a path ("-" for standard input), or a data set by its name ("demo" is the built-in crowd)."""
    if format == "auto" and not Path(data).exists():
        if str(data) == "demo":
            check_options("an option of the demo", options, simulate.demo_crowd)
            return simulate.demo_crowd(**options)
        if str(data) in datasets.names():
            return datasets.load(str(data), **options)
    return formats.read(data, format=format, **options)

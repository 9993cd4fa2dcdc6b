"""Public corpora by name: where they come from, that they are the right files, and how they are read.

>>> lasca.datasets.names()
('conll2003', 'conll2003-mturk', 'inhouse', 'ritter-test', 'tdga')

The texts belong to their owners and are not part of the package. A file is looked for in the folder that the
environment variable `LASCA_DATA` names, then in the cache of earlier downloads; `fetch`, and `load` where there is
nothing yet, download it and check its SHA-256.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lasca.corpus import CrowdCorpus
from lasca.datasets.registry import REGISTRY, DataFile, Dataset, dataset
from lasca.datasets.transfer import Progress, cache_folder, download, find, given
from lasca.estimator import check_options

__all__ = ["REGISTRY", "DataFile", "Dataset", "cache_folder", "dataset", "fetch", "load", "names", "path"]


def names() -> tuple[str, ...]:
    """Return the names of all data sets."""
    return tuple(sorted(REGISTRY))


def load(name: str, path: str | Path | None = None, **options: Any) -> CrowdCorpus:
    """Return a data set as a corpus; download it if it is neither in LASCA_DATA nor in the cache.

    `path` is a file of the data set, or a folder laid out like LASCA_DATA. The options are those of the loader:
    `split` ("train" or "testb") and `scheme` for conll2003, `typed_labels` and `partial` for conll2003-mturk, `tags`,
    `normalise` and `numbers` for ritter-test.
    """
    entry = dataset(name)
    check_options(f"an option of {name}", options, entry.loader, but=("path",))
    file = entry.file(options.get("split"))
    source = given(entry, file, path) if path is not None else find(entry, file)
    if source is None:
        source = download(entry, file)
    return entry.loader(source, **options)


def fetch(name: str, *, folder: str | Path | None = None, progress: Progress | None = None) -> list[Path]:
    """Download the files of a data set (those not there yet) into the cache, or `folder`, and return their paths.

    `progress` is told how many bytes have come and how many there will be (None if the server does not say).
    """
    entry = dataset(name)
    return [download(entry, file, folder=folder, progress=progress) for file in entry.files]


def path(name: str) -> list[Path] | None:
    """Return where the files of a data set are on this machine, or None if they are not (all) there."""
    entry = dataset(name)
    found = [find(entry, file) for file in entry.files]
    return None if any(p is None for p in found) else [p for p in found if p is not None]

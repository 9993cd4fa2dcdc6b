"""Where a file of a data set is on this machine: a path the user gave, LASCA_DATA, or the cache."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lasca.datasets.registry import DataFile, Dataset
from lasca.datasets.transfer import cache_folder, checksum
from lasca.errors import DatasetError, LascaWarning, ParameterError

__all__ = ["check_options", "find", "given"]


def given(entry: Dataset, file: DataFile, path: str | Path) -> Path:
    """Return the file a user's path means: the file itself, or a folder laid out like LASCA_DATA or holding it."""
    root = Path(path)
    if root.is_file():
        return root
    for candidate in (root / file.path, root / Path(file.path).name):
        if candidate.is_file():
            return candidate
    raise DatasetError(
        f"{entry.name} is not there",
        where=str(root),
        hint=f"Expected the file {Path(file.path).name}, or a folder with {file.path}",
    )


def find(entry: Dataset, file: DataFile) -> Path | None:
    """Return the file in LASCA_DATA or in the cache, or None; in LASCA_DATA another checksum is a warning."""
    folder = os.environ.get("LASCA_DATA")
    if folder and (local := Path(folder) / file.path).is_file():
        if file.sha256 is not None and checksum(local) != file.sha256:
            warnings.warn(
                LascaWarning(f"{local}: this is not the published file of {entry.name} (its SHA-256 differs)"),
                stacklevel=3,
            )
        return local
    cached = cache_folder() / file.path
    if not cached.is_file():
        return None
    if file.sha256 is not None and checksum(cached) != file.sha256:
        return None
    return cached


def check_options(entry: Dataset, options: Mapping[str, Any]) -> None:
    """Say which options a loader has when it is given another one."""
    allowed = list(inspect.signature(entry.loader).parameters)[1:]
    for name in options:
        if name not in allowed:
            raise ParameterError(
                f"an option of {entry.name}",
                name,
                f"one of {', '.join(allowed)}" if allowed else "left out: it has none",
            )

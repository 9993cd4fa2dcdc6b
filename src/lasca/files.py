"""Writing files and folders whole or not at all: write beside, then rename."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lasca.errors import StoreError

__all__ = ["whole_file", "whole_folder"]


@contextmanager
def whole_folder(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a scratch folder beside `path`; it becomes `path` when the block ends well, and vanishes otherwise.

    `overwrite` replaces a folder that is there; without it an existing, non-empty folder is an error.
    """
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise StoreError("cannot write a folder: a file of that name is there", where=str(target))
    if target.exists() and any(target.iterdir()) and not overwrite:
        raise StoreError(
            "the output folder is not empty", where=str(target), hint="Name another one, or allow overwriting"
        )
    scratch: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        scratch.chmod(0o755)
        yield scratch
        _swap(scratch, target)
    except OSError as error:
        raise StoreError(f"cannot write: {error.strerror or error}", where=str(target)) from error
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


def _swap(scratch: Path, target: Path) -> None:
    if not target.exists():
        scratch.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
    os.replace(target, old)
    try:
        scratch.rename(target)
    except OSError:
        os.replace(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Give a scratch file name beside `path`; it replaces `path` when the block ends well."""
    target = Path(path)
    scratch: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        os.close(handle)
        scratch = Path(name)
        scratch.chmod(0o644)
        yield scratch
        os.replace(scratch, target)
    except OSError as error:
        raise StoreError(f"cannot write: {error.strerror or error}", where=str(target)) from error
    finally:
        if scratch is not None:
            scratch.unlink(missing_ok=True)

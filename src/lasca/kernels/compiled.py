"""Where compiled kernels are kept, for systems where neither the package nor the home of the user can be written.

Numba keeps them beside the sources, or in the user's cache folder; NUMBA_CACHE_DIR names another place. Where it can
write nowhere it refuses to work. Its files are pickles, which run code when they are read: a folder in the common
temporary place is used only if nobody but this user can have put something there.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba

from lasca.errors import StoreError

__all__ = ["ensure_place", "private_folder"]


def ensure_place() -> None:
    """Let Numba keep compiled kernels in a private temporary folder if it finds no other place."""
    if _has_place():
        return
    try:
        settings: Any = numba.config
        settings.CACHE_DIR = str(private_folder())
    except OSError as error:
        raise StoreError(
            f"compiled code can be kept nowhere: {error.strerror or error}",
            hint="Set NUMBA_CACHE_DIR to a folder that can be written",
        ) from error


def _has_place() -> bool:
    def kernel() -> None:
        """Nothing: it is only asked where this would be kept."""

    try:
        numba.njit(cache=True)(kernel)
    except RuntimeError:
        return False
    return True


def private_folder() -> Path:
    """Return a temporary folder of this user alone: always the same one if it is safe, else one for this process."""
    if hasattr(os, "getuid"):
        folder = Path(tempfile.gettempdir()) / f"lasca-kernels-{os.getuid()}"
        with suppress(OSError):  # a file or a dangling link is there
            folder.mkdir(mode=0o700, exist_ok=True)
        if _is_private(folder):
            return folder
    fresh = tempfile.mkdtemp(prefix="lasca-kernels-")
    atexit.register(shutil.rmtree, fresh, ignore_errors=True)
    return Path(fresh)


def _is_private(folder: Path) -> bool:
    try:
        found = folder.lstat()  # not what a link points at
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077

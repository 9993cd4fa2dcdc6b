"""Where compiled kernels are kept: one folder – a *place* – for each state of the kernels and of the machine.

A place is named by a hash over every kernel source, the versions of Python, NumPy, Numba and llvmlite, and the CPU.
Numba itself looks at the file of a function only: after a change in a file that is called from there it would go on
with the old machine code. Places lie where Numba would keep its files: in NUMBA_CACHE_DIR, beside the sources, in the
user's cache folder, else in a private temporary folder. What was compiled beside the sources is read even where it can
no longer be written, so that an installation can be prepared once for many users.

The files are pickles, which run code when they are read. Beside the sources only those can write who could change the
sources as well, and NUMBA_CACHE_DIR is the word of the user; any other folder is used only if nobody but this user can
have put something there.

A new place makes room: of the others beside it the last used stay, and all that a running process holds or that were
used in the last hour. A process whose place goes all the same compiles again, nothing worse.
"""

# mypy: disable-error-code="no-untyped-call, import-untyped"
from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba
import numpy as np
from numba.misc.appdirs import AppDirs

from lasca.errors import StoreError

__all__ = ["Place", "clean_up", "current_place", "find_place", "fingerprint", "private_folder"]

KEPT = 3
"""So many places are kept beside a new one: versions of LASCA that are installed side by side."""
GRACE = 3600.0
"""Seconds for which a place is left alone after its last use."""

_NAME = re.compile(r"lasca-[0-9a-f]{16}(\.gone-[0-9a-f]{32})?")
_USED = "used"
_SWITCHES = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")


@dataclass(frozen=True)
class Place:
    """The folder compiled kernels are written to, and others that have some ready."""

    folder: Path
    ready: tuple[Path, ...] = ()

    def __iter__(self) -> Iterator[Path]:
        yield self.folder
        yield from self.ready


def fingerprint(sources: Any = None, machine: Any = None) -> str:
    """Return the hash over all kernel sources and the machine, 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for file in sorted((sources or files("lasca.kernels")).iterdir(), key=lambda file: str(file.name)):
        if file.name.endswith((".py", ".pyc")):
            text = file.read_bytes()
            digest.update(f"{file.name} {len(text)} ".encode() + text)
    digest.update(repr(_machine() if machine is None else machine).encode())
    return digest.hexdigest()[:16]


def _machine() -> tuple[str, ...]:
    settings: Any = numba.config
    cpu = settings.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    features = settings.CPU_FEATURES
    if features is None:
        features = llvmlite.binding.get_host_cpu_features().flatten()
    switches = [f"{name}={getattr(settings, name, None)}" for name in _SWITCHES]
    return (sys.version, np.__version__, numba.__version__, llvmlite.__version__, cpu, features, *switches)


_FINGERPRINT = fingerprint()  # of the sources as they are while they are imported, not when the first one is compiled


@cache
def current_place() -> Place:
    """Return the place of this process: found once, and held as long as the process runs."""
    return find_place(_FINGERPRINT)


def find_place(mark: str) -> Place:
    """Return the place for a fingerprint in the first folder that can be written, and what is ready in those before."""
    name, ready = f"lasca-{mark}", list[Path]()
    for folder in _trusted_folders():
        if _take(folder / name):
            return Place(folder / name, tuple(ready))
        if (folder / name).is_dir():
            ready.append(folder / name)
    own: tuple[Callable[[], Path], ...] = (_user_folder, private_folder)
    for make in own:
        with suppress(OSError):
            folder = make()
            if _is_private(folder) and _take(folder / name):
                return Place(folder / name, tuple(ready))
    raise StoreError("compiled code can be kept nowhere", hint="Set NUMBA_CACHE_DIR to a folder that can be written")


def _trusted_folders() -> list[Path]:
    settings: Any = numba.config
    return [*([Path(settings.CACHE_DIR)] if settings.CACHE_DIR else []), Path(__file__).parent / "__pycache__"]


def _user_folder() -> Path:
    folder = Path(AppDirs(appname="lasca", appauthor=False).user_cache_dir) / "kernels"
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


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
    if not hasattr(os, "getuid"):  # pragma: no cover  Windows: folders of the user are closed to others
        return stat.S_ISDIR(found.st_mode)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _take(place: Path) -> bool:
    """Make the place if it is not there, stamp and hold it; return whether that can be done."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        is_new = not (place / _USED).exists()
        held = os.open(place / _USED, os.O_RDWR | os.O_CREAT, 0o600)
        os.utime(place / _USED)
    except OSError:
        return False
    _lock(held, alone=False)  # and never closed: other processes see that this one is at work
    if is_new:
        clean_up(place)
    return True


def _lock(file: int, *, alone: bool) -> bool:
    try:
        import fcntl
    except ImportError:  # pragma: no cover  Windows: what is open there cannot be moved away
        return True
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def clean_up(place: Path, now: float | None = None) -> None:
    """Remove what LASCA compiled for other states, beside a place: all but the last used, and what is in use."""
    if place.parent == Path(__file__).parent / "__pycache__":
        for file in place.parent.glob("*.nb[ic]"):  # as 0.1.0 left them
            with suppress(OSError):
                file.unlink()
    others = []
    for folder in place.parent.iterdir():
        with suppress(OSError):
            if folder != place and _NAME.fullmatch(folder.name) and not folder.is_symlink():
                others.append(((folder / _USED).stat().st_mtime, folder))
    others.sort(key=lambda other: other[0], reverse=True)
    for used, folder in others[KEPT:]:
        if (time.time() if now is None else now) - used > GRACE:
            with suppress(OSError):
                _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a place unless a process holds it: moved away first, so that it is there whole or not at all."""
    file = os.open(folder / _USED, os.O_RDWR)
    try:
        if not _lock(file, alone=True):
            return
        gone = folder
        if ".gone-" not in folder.name:
            gone = folder.rename(folder.with_name(f"{folder.name}.gone-{uuid.uuid4().hex}"))
    finally:
        os.close(file)
    for path in (*gone.glob("*.nbc*"), gone / _USED):
        path.unlink(missing_ok=True)
    gone.rmdir()  # which fails, and should, if there is anything that is not ours

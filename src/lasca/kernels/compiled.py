"""How kernels are compiled and kept: `kernel` is the decorator of those that Python calls, `inner` of their helpers.

It is Numba's `njit` with `nogil`, and a cache that is looked at before a kernel is compiled for types it has not seen.
Compiling is most of what a first run costs (benchmarks/bench_cold.py), and grows with every statement that is typed:
what is rarely needed – sums in logs, costs – stands behind `if argument is None`, which Numba decides before it types;
helpers are made machine code of in the kernels that call them and nowhere else; references are counted only in
kernels that make arrays. Nothing is set for other users of Numba in the same process.

Files lie in one folder – a *place* – for each state of the kernels and of the machine. A place is named by a hash over
every kernel source, the versions of Python, NumPy, Numba and llvmlite, and the CPU. Numba itself looks at the file of a
function only: after a change in a file that is called from there it would go on with the old machine code. Places lie
where Numba would keep its files: in NUMBA_CACHE_DIR, beside the sources, in the user's cache folder, else in a private
temporary folder. What was compiled beside the sources is read even where it can no longer be written, so that an
installation can be prepared once for many users.

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
from numba._dynfunc import make_function
from numba.core.caching import IndexDataCacheFile, _Cache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.misc.appdirs import AppDirs

from lasca.errors import StoreError

__all__ = ["Place", "clean_up", "current_place", "find_place", "fingerprint", "inner", "kernel", "private_folder"]

KEPT = 3
"""So many places are kept beside a new one: versions of LASCA that are installed side by side."""
GRACE = 3600.0
"""Seconds for which a place is left alone after its last use."""

_NAME = re.compile(r"lasca-[0-9a-f]{16}(\.gone-[0-9a-f]{32})?")
_USED = "used"
_SWITCHES = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")

_njit: Any = numba.njit  # its types do not know all of its options


# --- compiling --------------------------------------------------------------------------------------------------------


def kernel(function: Any = None, *, allocates: bool = False, **options: Any) -> Any:
    """Compile a function when it is first called, and keep the machine code; the options are those of `njit`.

    `allocates` says that it makes arrays: `np.empty`, `.copy()`, `a + b` or `a /= b` of arrays, or a helper that does.
    All others get what they need from their callers, and no references are counted in them: that is a quarter less to
    compile. Views of arguments are fine.
    """
    if function is None:
        return lambda function: kernel(function, allocates=allocates, **options)
    compiled = _njit(nogil=True, no_cfunc_wrapper=True, _nrt=allocates, **options)(function)
    if compiled is not function:  # as it is with NUMBA_DISABLE_JIT
        compiled._cache = _Kept(function)
    return compiled


def inner(function: Any = None, *, allocates: bool = False, **options: Any) -> Any:
    """Compile a function that only kernels call: no way in from Python, nothing kept but inside of its callers."""
    if function is None:
        return lambda function: inner(function, allocates=allocates, **options)
    options = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": allocates, **options}
    return _njit(pipeline_class=_InnerCompiler, **options)(function)


class _InnerLibrary(JITCodeLibrary):
    """Code that is linked into kernels, and optimised and made machine code of there: here it would never be run."""

    def _optimize_final_module(self) -> None:
        """Leave that to the kernel."""

    def _finalize_final_module(self) -> None:
        """Be ready to be linked, and no more."""
        self._finalize_dynamic_globals()
        self._finalized = True


class _InnerCompiler(Compiler):
    """Numba's compiler, that puts the code of inner functions in a library of ours."""

    def compile_extra(self, func: Any) -> Any:
        """Compile a function."""
        context = self.state.targetctx  # a copy, made for this function
        context.get_executable = _never_called
        self.state.library = _InnerLibrary(context.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


def _never_called(library: Any, description: Any, environment: Any) -> Any:
    """Return what an inner function is known by to the kernels that call it: there is no code to point at."""
    name = description.qualname.split(".")[-1]
    return make_function(description.lookup_module(), name, "linked into kernels", 0, environment, (library,))


# --- keeping ----------------------------------------------------------------------------------------------------------


class _Files(IndexDataCacheFile):
    """A file for each signature of a kernel, named by it.

    Numba lists them in an index that every process reads, adds to and writes back: two that compile at once can leave
    one signature with the code of another. Files that cannot be read are as none.
    """

    def __init__(self, folder: Path, function: Any) -> None:
        super().__init__(str(folder), f"{Path(function.__code__.co_filename).stem}.{function.__qualname__}", None)

    def _file(self, key: Any) -> str:
        name = self._index_name.removesuffix(".nbi")
        return f"{name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"

    def save(self, key: Any, data: Any) -> None:
        """Write a file, whole or not at all."""
        self._save_data(self._file(key), (key, data))

    def load(self, key: Any) -> Any:
        """Return what was kept for a key, or None."""
        try:
            kept, data = self._load_data(self._file(key))
        except Exception:  # there is none, or it is damaged
            return None
        return data if kept == key else None


class _Kept(_Cache):
    """The cache of one kernel, in the place of this process."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self._enabled = function, True

    @property
    def cache_path(self) -> str:
        """Return the folder that is written to."""
        return str(current_place().folder)

    def enable(self) -> None:
        """Use the cache."""
        self._enabled = True

    def disable(self) -> None:
        """Use it no more."""
        self._enabled = False

    def flush(self) -> None:
        """Do nothing: what is too old is never found."""

    def _key(self, signature: Any, codegen: Any) -> Any:
        code = self._function.__code__
        return signature, codegen.magic_tuple(), hashlib.sha256(code.co_code).hexdigest(), code.co_firstlineno

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled kernel for a signature, or None."""
        target_context.refresh()
        key = self._key(sig, target_context.codegen())
        for folder in current_place() if self._enabled else ():
            found = _Files(folder, self._function).load(key)
            if found is not None:
                return CompileResult._rebuild(target_context, *found)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel; a full disk is no reason to stop."""
        if self._enabled and not data.library.has_dynamic_globals:
            folder = current_place().folder
            with suppress(OSError):
                folder.mkdir(exist_ok=True)  # somebody may have cleaned up
                _Files(folder, self._function).save(self._key(sig, data.codegen), data._reduce())


# --- places -----------------------------------------------------------------------------------------------------------


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

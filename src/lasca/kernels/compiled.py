"""How kernels are compiled and kept: `kernel` is the decorator of those that Python calls, `inner` of their helpers.

It is Numba's `njit` with `nogil`, and a cache that is looked at before a kernel is compiled for types it has not seen.
Compiling is most of what a first run costs (benchmarks/bench_cold.py), and grows with every statement that is typed:
what is rarely needed – sums in logs, costs – stands behind `if argument is None`, which Numba decides before it types;
helpers are made machine code of in the kernels that call them and nowhere else; references are counted only in
kernels that make arrays.
Where the files lie, and when they are too old to be used, is told in `lasca.kernels.places`. Nothing is set for other
users of Numba in the same process.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba import njit
from numba._dynfunc import make_function
from numba.core.caching import IndexDataCacheFile, _Cache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult

from lasca.kernels.places import current_place

__all__ = ["inner", "kernel"]

_njit: Any = njit  # its types do not know all of its options


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

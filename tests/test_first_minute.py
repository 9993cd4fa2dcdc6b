"""The first minute: what is loaded before anything is asked for, and what a first run has to compile."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

HEAVY = ("numpy", "numba", "scipy", "pyarrow", "jinja2", "pooch", "safetensors", "torch")
HELP = "sys.argv = ['lasca', '--help']\nfrom lasca.cli import main\ntry: main()\nexcept SystemExit: pass\n"


@pytest.mark.parametrize(("code", "more"), [("import lasca\n", ("typer", "rich")), (HELP, ())])
def test_nothing_heavy_is_loaded_by_the_package_or_its_help(code: str, more: tuple[str, ...]) -> None:
    """`import lasca` in 0.05 s and `lasca --help` in 0.4 s leave no room for NumPy, let alone Numba."""
    code = f"import sys\n{code}sys.stderr.write(' '.join(m for m in {(*HEAVY, *more)!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_chains_in_logs_are_compiled_for_sequences_that_need_them_only() -> None:
    from lasca.kernels import lattice

    offsets, evidence = np.array([0, 3, 5]), np.log(np.random.default_rng(0).dirichlet(np.ones(4), 5))
    assert lattice._is_wide(evidence, offsets) is None
    evidence[4, 1] -= lattice.WIDEST + 100
    assert lattice._is_wide(evidence, offsets) is True
    evidence[4, 1] = -np.inf  # ruled out, which is no matter of size
    assert lattice._is_wide(evidence, offsets) is None


def test_a_bar_says_that_something_is_compiled_and_says_it_once(capsys: pytest.CaptureFixture[str]) -> None:
    import numba

    from lasca.cli.common import progress_bar

    with progress_bar("lasca aggregate"):
        for kind in (1, 1.0):  # two signatures are compiled
            numba.njit(lambda x: x + 1)(kind)
    assert capsys.readouterr().err.count("compiling once") == 1
    with progress_bar("lasca aggregate"):
        pass
    assert "compiling" not in capsys.readouterr().err


MAKES_ARRAYS = {"empty", "zeros", "ones", "full", "arange", "diff", "flatnonzero", "copy", "empty_like", "zeros_like"}


def test_kernels_that_make_arrays_say_so() -> None:
    """References are counted only in kernels that allocate: another one that makes an array would never let it go."""
    silent = []
    for file in Path(str(files("lasca.kernels"))).glob("*.py"):
        functions = [node for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)]
        compiled = {f.name: mark for f in functions for mark in map(ast.unparse, f.decorator_list) if is_kernel(mark)}
        makers = {name for name, mark in compiled.items() if "allocates=True" in mark}
        for function in functions:
            if function.name in compiled.keys() - makers:
                called = {ast.unparse(n.func).split(".")[-1] for n in ast.walk(function) if isinstance(n, ast.Call)}
                silent += [f"{file.stem}.{function.name}: {name}" for name in called & (MAKES_ARRAYS | makers)]
    allowed = {"crf._chain: log_cost_pass"}  # of another file, and it returns a number
    assert set(silent) <= allowed, silent


def is_kernel(mark: str) -> bool:
    return mark.startswith(("kernel", "inner"))


@pytest.mark.parametrize(
    ("command", "most"), [("ds", 4), ("default", 19), pytest.param("demo", 57, marks=pytest.mark.slow)]
)
def test_a_first_run_compiles_no_more_than_it_must(
    command: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every kernel and set of types costs the first run a tenth of a second or more: a new one needs a good reason."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
    import bench_cold

    bench_cold.hundred(tmp_path / "hundred.conll")
    cold, warm = (bench_cold.measured(command, tmp_path, tmp_path / "kernels") for _ in range(2))
    kernels = [kernel for kernel, *_ in cold["compiled"]]
    assert 0 < len(kernels) <= most, sorted(kernels)
    assert warm["compiled"] == []


@pytest.mark.slow
def test_nothing_is_compiled_after_lasca_warm(tmp_path: Path) -> None:
    """The demo's way after `lasca warm`, in another process, finds all it needs."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said = []
    for arguments in (["warm"], ["demo", "-o", str(tmp_path / "out")]):
        run = [sys.executable, "-m", "lasca", *arguments]
        said.append(subprocess.run(run, env=environment, capture_output=True, text=True, check=True))
    assert "compiling once" in said[0].stderr
    assert str(tmp_path / "cache") in said[0].stdout
    assert "compiling once" not in said[1].stderr

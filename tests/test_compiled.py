"""Compiled kernels: never those of other sources, and old ones make room."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import lasca
from lasca.kernels import compiled
from lasca.kernels.compiled import GRACE, KEPT, clean_up, find_place, fingerprint

KERNELS = Path(lasca.__file__).parent / "kernels"
CALL = (
    "import sys; from lasca.kernels.metropolis import row_score as f; import numpy as np\n"
    "n = np.array([[[3, 2], [0, 1]]]); rows = n.sum(2); row = np.array([0.25, 0.75])\n"
    "print(f(np.array([0]), n, rows, 0, row, 2.0), sum(f._cache_hits.values()), f._cache.cache_path)\n"
    "assert 'CACHE_DIR' not in sys.argv or __import__('numba').config.CACHE_DIR == ''\n"
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A package of its own, with nothing compiled."""
    package = tmp_path / "site" / "lasca"
    shutil.copytree(KERNELS, package / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("__init__.py", "errors.py"):
        shutil.copy(KERNELS.parent / name, package / name)
    return package


def call(package: Path, **environment: str) -> tuple[float, int, Path]:
    """Call a kernel whose callee stands in another file; return its value, how often it was read, and the place."""
    keep = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    keep["PYTHONPATH"] = str(package.parent)
    command = [sys.executable, "-c", CALL, *([] if "NUMBA_CACHE_DIR" in environment else ["CACHE_DIR"])]
    done = subprocess.run(
        command,
        env=keep | {"PYTHONPATH": str(package.parent)} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    value, hits, place = done.stdout.split()
    return float(value), int(hits), Path(place)


def test_a_changed_callee_is_compiled_again(copy: Path) -> None:
    value, hits, place = call(copy)
    assert hits == 0
    assert place.parent == copy / "kernels" / "__pycache__"
    assert call(copy) == (value, 1, place)
    callee = copy / "kernels" / "gibbs.py"
    text = callee.read_text("utf-8")
    assert "product *= x + k" in text
    callee.write_text(text.replace("product *= x + k", "product *= x + k + 1"), "utf-8")
    changed, hits, other = call(copy)
    assert (changed != value, hits, other != place) == (True, 0, True)
    callee.write_text(text, "utf-8")
    assert call(copy) == (value, 1, place)  # two versions, side by side
    for file in place.glob("*.nbc"):
        file.write_bytes(file.read_bytes()[:100])
    assert call(copy) == (value, 0, place)  # a damaged file is as none
    assert call(copy) == (value, 1, place)


def test_a_place_prepared_by_another_user_is_read_where_it_cannot_be_written(copy: Path, tmp_path: Path) -> None:
    value, _, ready = call(copy)
    (ready / "used").unlink()
    (ready / "used").mkdir()  # which not even root can open for writing
    home = tmp_path / "home"
    found, hits, place = call(copy, HOME=str(home), XDG_CACHE_HOME=str(home / "cache"))
    assert (found, hits) == (value, 1)
    assert place.parent == home / "cache" / "lasca" / "kernels"
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    place.parent.chmod(0o777)  # now others can write there
    _, _, elsewhere = call(copy, XDG_CACHE_HOME=str(home / "cache"), TMPDIR=str(tmp_path))
    assert elsewhere.parent.parent == tmp_path


def test_the_folder_that_numba_is_told_to_use_is_used(copy: Path, tmp_path: Path) -> None:
    _, _, place = call(copy, NUMBA_CACHE_DIR=str(tmp_path / "told"))
    assert place.parent == tmp_path / "told"
    assert not list((copy / "kernels" / "__pycache__").glob("lasca-*"))


def test_every_source_and_the_machine_count(tmp_path: Path) -> None:
    shutil.copytree(KERNELS, tmp_path / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    here = fingerprint(tmp_path / "kernels")
    assert here == fingerprint()
    for file in (tmp_path / "kernels").glob("*.py"):
        text = file.read_bytes()
        file.write_bytes(text + b"\n")
        assert fingerprint(tmp_path / "kernels") != here, file.name
        file.write_bytes(text)
    assert fingerprint(tmp_path / "kernels") == here
    machine = compiled._machine()
    for i in range(len(machine)):
        assert fingerprint(None, (*machine[:i], machine[i] + "x", *machine[i + 1 :])) != here


def test_all_kernels_are_kept_that_way() -> None:
    """Code that Numba caches itself goes stale, and constants from elsewhere are in no fingerprint."""
    for file in KERNELS.parent.rglob("*.py"):
        text = file.read_text("utf-8")
        if file.name != "compiled.py":
            assert not re.search(r"\bn?jit\(|import n?jit", text), file
        if file.parent == KERNELS:
            assert set(re.findall(r"^from (lasca[\w.]*) import", text, re.M)) <= {
                "lasca.errors", "lasca.kernels", *(f"lasca.kernels.{p.stem}" for p in KERNELS.glob("*.py"))
            }  # fmt: skip


def made(parent: Path, number: int, age: float) -> Path:
    place = parent / f"lasca-{number:016x}"
    place.mkdir(parents=True)
    (place / "used").touch()
    (place / "crf.f-1.nbc").write_bytes(b"x")
    (place / "crf.f-1.nbc.tmp.123").write_bytes(b"x")
    os.utime(place / "used", (time.time() - age,) * 2)
    return place


def test_old_places_make_room_for_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = [made(tmp_path, n, (n + 1) * 2 * GRACE) for n in range(KEPT + 3)]
    (tmp_path / "lasca-data").mkdir()
    (tmp_path / "numba").mkdir()
    (old[-1] / "notes.txt").touch()  # somebody's own
    held = os.open(old[-2] / "used", os.O_RDWR)
    compiled._lock(held, alone=False)  # a process is at work there
    monkeypatch.setattr(compiled, "_trusted_folders", lambda: [tmp_path])
    new = find_place("f" * 16).folder
    left = {path.name for path in tmp_path.iterdir()}
    assert {"lasca-data", "numba", new.name, old[-2].name, *(place.name for place in old[:KEPT])} <= left
    assert old[KEPT].name not in left
    assert len([*old[-2].iterdir()]) == 3
    (gone,) = (path for path in tmp_path.iterdir() if "gone" in path.name)
    assert [path.name for path in gone.iterdir()] == ["notes.txt"]
    os.close(held)
    assert find_place("f" * 16).folder == new  # nothing is cleaned up for a place that is there
    assert old[-2].exists()
    clean_up(new)
    assert not old[-2].exists()
    assert {path.name for path in tmp_path.iterdir() if path != gone} == left - {old[-2].name, gone.name}


def test_places_used_a_moment_ago_stay(tmp_path: Path) -> None:
    young = [made(tmp_path, n, 0.5 * GRACE) for n in range(KEPT + 2)]
    clean_up(tmp_path / "lasca-new")
    assert all(place.exists() for place in young)
    clean_up(tmp_path / "lasca-new", now=time.time() + GRACE)
    assert sum(place.exists() for place in young) == KEPT


def test_what_0_1_0_left_beside_the_sources_goes(copy: Path) -> None:
    folder = copy / "kernels" / "__pycache__"
    folder.mkdir()
    (folder / "crf._add-1.py311.nbi").touch()
    (folder / "crf._add-1.py311.1.nbc").touch()
    call(copy)
    assert not list(folder.glob("*.nb?"))


def test_a_kernel_is_a_function_where_nothing_is_to_be_compiled() -> None:
    code = "from lasca.kernels.random import below; import numpy as np; print(below(np.arange(4, dtype=np.uint64), 5))"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(KERNELS.parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    from lasca.kernels.random import below

    assert done.stdout.split() == [str(below(np.arange(4, dtype=np.uint64), 5))], done.stderr

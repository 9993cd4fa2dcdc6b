"""One changed byte in anything that was saved is an error that names the file – never a crash or another result."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lasca
from lasca import simulate
from lasca.ambiguity import Ambiguity
from lasca.confusion import LabelConfusion
from lasca.corpus import CrowdCorpus
from lasca.errors import LascaWarning, StoreError
from lasca.files import check_sums, sums_of, whole_folder, write_sums
from lasca.pipeline.checkpoints import Checkpoints
from lasca.pipeline.way import Run, _load_models, _save_models, run
from lasca.tagger import CrfTagger
from lasca.truth import Truth
from report_cases import files_below

QUICK: dict[str, Any] = {"model": "ds", "objective": "likelihood"}
LOADS: dict[str, Callable[[Path], Any]] = {
    "corpus": CrowdCorpus.load,
    "parquet": CrowdCorpus.load,
    "truth": Truth.load,
    "ambiguity": Ambiguity.load,
    "confusion": LabelConfusion.load,
    "tagger": CrfTagger.load,
    "models": _load_models,
}


@pytest.fixture(scope="module")
def small() -> CrowdCorpus:
    return simulate.demo_crowd("ner").select(sequences=np.arange(40))


@pytest.fixture(scope="module")
def saved(small: CrowdCorpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, and beside its parts two kinds of folders that it has not."""
    out = tmp_path_factory.mktemp("saved") / "out"
    run(small, output=out, **QUICK)
    small.save(out.parent / "parquet", format="parquet")
    _save_models(({"model": "mv", "scores": {}, "cpu_seconds": 0.25},), out.parent / "models")
    return out


def _places(size: int) -> list[int]:
    """The first and last bytes of a file, and many between."""
    ends = {*range(min(size, 12)), *range(max(size - 12, 0), size)}
    return sorted(ends | set(np.random.default_rng(0).integers(0, size, size=60).tolist()))


@pytest.mark.parametrize("kind", list(LOADS))
def test_a_changed_byte_anywhere_is_an_error(kind: str, saved: Path, tmp_path: Path) -> None:
    whole = saved / kind if (saved / kind).is_dir() else saved.parent / kind
    folder = Path(shutil.copytree(whole, tmp_path / "copy"))
    load = LOADS[kind]
    load(folder)
    for file in sorted(folder.iterdir()):
        data = file.read_bytes()
        damaged = [data[: len(data) // 2], data[:-1], data + b"x", data + b"\n", b""]
        for number, place in enumerate(_places(len(data))):
            damaged.append(data[:place] + bytes([data[place] ^ (1 << number % 8)]) + data[place + 1 :])
            damaged.append(data[:place] + bytes([data[place] ^ 0x20]) + data[place + 1 :])
        for bad in damaged:
            file.unlink()  # a loaded corpus may have the old file mapped
            file.write_bytes(bad)
            with pytest.raises(StoreError) as caught:
                load(folder)
            assert "damaged" in str(caught.value) or "SHA256SUMS" in str(caught.value)
            assert "Make it again" in str(caught.value)
        file.unlink()
        with pytest.raises(StoreError, match=f"{file.name} is missing|no {file.name}"):
            load(folder)
        file.write_bytes(data)
    load(folder)


def test_the_record_of_a_run_and_its_models_are_covered(saved: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(saved, tmp_path / "out"))
    models = [{"model": "mv", "scores": {}, "cpu_seconds": 0.25}]
    (folder / "models.json").write_text(json.dumps(models))
    assert Run.load(folder).models == ()  # nobody listed it
    write_sums(folder)
    assert Run.load(folder).models == tuple(models)
    for name in ("run.json", "models.json"):
        data = (folder / name).read_bytes()
        for place in _places(len(data)):
            (folder / name).write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            with pytest.raises(StoreError, match=f"{name} has changed"):
                Run.load(folder)
        (folder / name).write_bytes(data)
    (folder / "models.json").unlink()
    with pytest.raises(StoreError, match=r"models\.json is missing"):
        Run.load(folder)


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="there is no sha256sum here")
def test_the_sums_are_those_of_sha256sum(saved: Path) -> None:
    for folder in (saved, *(p for p in saved.iterdir() if p.is_dir())):
        done = subprocess.run(
            ["sha256sum", "--strict", "-c", "SHA256SUMS"], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        listed = {line.removesuffix(": OK") for line in done.stdout.splitlines()}
        there = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
        assert there - listed == {"SHA256SUMS"} | ({"report.html"} if folder == saved else set())


def test_names_outside_the_folder_are_not_followed(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "out") as folder:
        (folder / "a").write_text("1")
    sums = tmp_path / "out" / "SHA256SUMS"
    text = sums.read_text()
    for name in ("/dev/zero", "../a", "b/../../a"):
        sums.write_text(text.replace("  a\n", f"  {name}\n"))
        with pytest.raises(StoreError, match="damaged: SHA256SUMS"):
            sums_of(tmp_path / "out")
    sums.write_text(text)
    (tmp_path / "out" / "a").unlink()
    (tmp_path / "out" / "a").symlink_to("/dev/zero")
    with pytest.raises(StoreError, match="a is missing"):
        check_sums(tmp_path / "out", "a")


STEPS = ("corpus/tokens.arrow", "truth/arrays.safetensors", "ambiguity/ambiguity.json", "confusion/confusion.json")


@pytest.fixture(scope="module")
def stopped(saved: Path, small: CrowdCorpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The work folder of a run that was stopped when the tagger was to be trained."""
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lasca.tagger.CrfTagger.fit", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(small, output=folder / "out", **QUICK)
    assert sorted(p.name for p in folder.iterdir()) == [".out.lasca-run"]
    return folder / ".out.lasca-run"


def _flip(file: Path, place: int) -> None:
    data = bytearray(file.read_bytes())
    data[place] ^= 0x20
    file.unlink()
    file.write_bytes(bytes(data))


@pytest.mark.parametrize("name", STEPS)
def test_a_damaged_step_is_done_again(
    name: str, small: CrowdCorpus, saved: Path, stopped: Path, tmp_path: Path
) -> None:
    work = Path(shutil.copytree(stopped, tmp_path / ".out.lasca-run"))
    _flip(work / name, (work / name).stat().st_size * 2 // 3)
    with pytest.warns(LascaWarning, match=f"step '{name.split('/')[0]}' .* done again: .*{name.split('/')[1]}"):
        run(small, output=tmp_path / "out", resume=True, **QUICK)
    assert files_below(tmp_path / "out") == files_below(saved)


def test_a_run_that_asks_for_more_is_another_run(tmp_path: Path) -> None:
    steps = Checkpoints(tmp_path / "out", {"title": "a"}, resume=False)
    steps.step("one", lambda: 1, lambda _: 1, lambda _, path: path.mkdir())
    steps.close()
    for key, name in (({"title": "a", "seed": 1}, "seed"), ({"title": "b"}, "title"), ({}, "title")):
        with pytest.raises(StoreError, match=rf"differs in {name}\."):
            Checkpoints(tmp_path / "out", key, resume=True)
    steps = Checkpoints(tmp_path / "out", {"title": "a"}, resume=True)
    assert list(steps.steps) == ["one"]
    steps.close()


@pytest.mark.parametrize("name", ["key.json", "steps.json"])
def test_a_damaged_record_of_a_stopped_run_is_said(
    name: str, small: CrowdCorpus, saved: Path, stopped: Path, tmp_path: Path
) -> None:
    data = (stopped / name).read_bytes()
    work = Path(shutil.copytree(stopped, tmp_path / ".out.lasca-run"))
    places = [p for p in _places(len(data)) if data[p : p + 1].strip()]  # white space between values says nothing
    for bad in (b"", b"[]", b"{}", data[:-20], *(data[:p] + bytes([data[p] ^ 1]) + data[p + 1 :] for p in places)):
        (work / name).write_bytes(bad)
        with pytest.raises(StoreError, match=f"damaged .{name}") as caught:
            run(small, output=tmp_path / "out", resume=True, **QUICK)
        assert "without --resume" in str(caught.value)
    run(small, output=tmp_path / "out", **QUICK)
    assert files_below(tmp_path / "out") == files_below(saved)


def test_a_finished_run_that_is_damaged_is_not_taken_for_finished(
    small: CrowdCorpus, saved: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(saved, tmp_path / "out"))
    (out / "run.json").write_text("[]")
    with pytest.raises(StoreError, match="not empty"):
        lasca.run(small, output=out, resume=True, **QUICK)
    lasca.run(small, output=out, overwrite=True, **QUICK)  # a damaged folder of LASCA may be replaced
    assert files_below(out) == files_below(saved)

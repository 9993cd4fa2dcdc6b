"""Outputs never cost a user anything: only what LASCA wrote is replaced, and two who write at once do not mix."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import SafetensorError

import lasca.cli.commands
from lasca import simulate
from lasca.cli.app import main
from lasca.corpus import CrowdCorpus
from lasca.errors import StoreError
from lasca.files import check_output, check_sums, is_page, whole_file, whole_folder
from lasca.pipeline.folder import save_truth
from lasca.pipeline.way import run
from lasca.truth import model_class
from report_cases import files_below

Command = Callable[..., int]
FULL = {
    "train": "Error while serializing: I/O error: No space left on device (os error 28)",
    "aggregate": 'Error while serializing: IoError(Os { code: 28, message: "No space left on device" })',
}


@pytest.fixture
def lasca_(monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command in this process and return its exit code."""

    def call(*words: object) -> int:
        monkeypatch.setattr(sys, "argv", ["lasca", *map(str, words)])
        try:
            main()
        except SystemExit as stop:
            return stop.code if isinstance(stop.code, int) else 0
        return 0

    return call


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, an inferred truth, a whole run, and text to tag."""
    folder = tmp_path_factory.mktemp("made")
    corpus = simulate.demo_crowd("ner").select(sequences=np.arange(30))
    corpus.save(folder / "corpus")
    save_truth(corpus, model_class("mv")().fit(corpus), folder / "truth")
    run(corpus, output=folder / "run", model="mv", objective="likelihood")
    (folder / "text").write_text("Ada\nruns\n\n", "utf-8")
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, as the current folder."""
    shutil.copytree(made, tmp_path / "a" / "here")
    monkeypatch.chdir(tmp_path / "a" / "here")
    return tmp_path / "a" / "here"


FOLDER_VERBS = {
    "run": ("run", "corpus", "-m", "mv", "-o"),
    "aggregate": ("aggregate", "corpus", "-m", "mv", "-o"),
    "train": ("train", "truth", "-o"),
    "ambiguity": ("ambiguity", "truth", "-o"),
    "convert": ("convert", "corpus", "-t", "lasca"),
    "huggingface": ("convert", "corpus", "-t", "huggingface"),
    "simulate": ("simulate", "corpus"),
}


@pytest.mark.parametrize("verb", [*FOLDER_VERBS, "demo"])
def test_no_verb_deletes_what_it_did_not_write(
    verb: str, here: Path, lasca_: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("lasca.corpus.CrowdCorpus.load", "lasca.simulate.demo_crowd"):  # refused before anything is read
        monkeypatch.setattr(name, None)
    words = FOLDER_VERBS.get(verb, ("demo", "-o"))
    (here / "mine" / "deep").mkdir(parents=True)
    (here / "mine" / "deep" / "thesis.txt").write_text("precious")
    shutil.copytree(here / "run", here / "changed")
    (here / "changed" / "notes.txt").write_text("precious")
    before = files_below(here)
    for target, said in {
        "mine": "deep/thesis.txt",
        "changed": "notes.txt",
        ".": "current folder",
        "..": "current folder",
        "": "current folder",
        "/": "current folder",
    }.items():
        assert lasca_(*words, target, "--overwrite") == 1
        message = capsys.readouterr().err
        assert said in message
        assert message.splitlines()[-1].startswith("lasca: ")
        assert files_below(here) == before
        assert sorted(p.name for p in here.parent.iterdir()) == ["here"]
    assert lasca_(*words, "mine") == 1
    assert lasca_(*words, "run") == 1
    assert files_below(here) == before


@pytest.mark.parametrize("verb", list(FOLDER_VERBS))
def test_what_is_read_is_never_replaced(
    verb: str, here: Path, lasca_: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    words = list(FOLDER_VERBS[verb])
    data = words[1]
    with whole_folder(here / "around") as folder:  # so that every file in it is LASCA's
        shutil.copytree(here / data, folder / "data")
    (here / "link").symlink_to(here / "around" / "data")
    before = files_below(here)
    for source, target in (
        (data, data),
        (f"{data}/../{data}", here / data),
        ("around/data", "around"),
        ("link", "around"),
    ):
        words[1] = source
        assert lasca_(*words, target, "--overwrite") == 1
        assert "what is read" in capsys.readouterr().err
        assert files_below(here) == before


def test_files_that_are_read_are_kept_in_place(here: Path, lasca_: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert lasca_("convert", "corpus", "table.csv", "-t", "table") == 0
    before = files_below(here)
    assert lasca_("convert", "table.csv", "table.csv", "-t", "jsonl", "--overwrite") == 1
    assert lasca_("tag", "run/tagger", "text", "-o", "text", "--overwrite") == 1
    assert capsys.readouterr().err.count("the output is what is read") == 2
    assert lasca_("aggregate", "table.csv", "-o", "table.csv", "--overwrite") == 1
    assert lasca_("convert", "corpus", "table.csv", "-t", "table") == 1
    assert "--overwrite" in capsys.readouterr().err
    assert files_below(here) == before
    assert lasca_("convert", "corpus", "table.csv", "-t", "table", "--overwrite") == 0


def test_tag_replaces_a_file_only_when_told(here: Path, lasca_: Command, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "keep").write_text("precious")
    assert lasca_("tag", "run/tagger", "text", "-o", "keep") == 1
    assert "--overwrite" in capsys.readouterr().err
    assert (here / "keep").read_text() == "precious"
    assert lasca_("tag", "run/tagger", "text", "-o", "keep", "--overwrite") == 0
    assert (here / "keep").read_text().startswith("Ada\t")
    assert lasca_("tag", "run/tagger", "text", "-o", "run", "--overwrite") == 1


def test_report_replaces_reports_only(here: Path, lasca_: Command, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "keep.csv").write_text("precious")
    (here / "page.html").write_text("<html>precious</html>")
    for name in ("keep.csv", "page.html", "run/run.json"):
        before = (here / name).read_bytes()
        assert lasca_("report", "run", "-o", name) == 1
        assert "no report of LASCA" in capsys.readouterr().err
        assert (here / name).read_bytes() == before
    for title in ("One", "Two"):
        for name in ("new.html", "run/report.html"):
            assert lasca_("report", "run", "-o", name, "--title", title) == 0
            assert title in (here / name).read_text()
    assert lasca_("report", "run", "-o", "run/again.html") == 0
    assert lasca_("run", "corpus", "-o", "run", "-m", "mv", "--objective", "likelihood", "--overwrite") == 0
    assert not (here / "run" / "again.html").exists()


def test_a_demo_replaces_demos_only(here: Path, lasca_: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def fake(data: Any, *, output: Path, overwrite: bool, title: str, **_: Any) -> None:
        check_output(output, overwrite=overwrite)
        seen.append((data, title))
        raise KeyboardInterrupt

    monkeypatch.setattr("lasca.pipeline.way.run", fake)
    assert lasca_("demo", "-o", "run") == 1
    assert not seen
    lasca_("demo", "-o", "run", "--overwrite")
    record = json.loads((here / "run" / "run.json").read_text())
    (here / "run" / "run.json").write_text(json.dumps(record | {"title": "The LASCA demo (ner)"}))
    lasca_("demo", "-o", "run")
    (here / "demo").mkdir()  # a folder of that name is not what the demo reads
    lasca_("demo", "-o", "run")
    assert [type(data) for data, _ in seen] == [str, str, CrowdCorpus]
    assert {title for _, title in seen} == {"The LASCA demo (ner)"}


def _write(path: Path, text: str, **options: Any) -> None:
    with whole_folder(path, **options) as folder:
        for name in "abc":
            (folder / name).write_text(text)


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_who_may_read_what_is_written_is_the_users_to_say(tmp_path: Path, mask: int) -> None:
    corpus = lasca.simulate.demo_crowd("ner").select(sequences=range(10))
    before = os.umask(mask)
    try:
        lasca.DawidSkene().fit(corpus).save(tmp_path / "truth")
        lasca.CrfTagger(max_iter=1).fit(corpus, lasca.MajorityVote().fit(corpus)).save(tmp_path / "tagger")
        lasca.write(corpus, tmp_path / "corpus.jsonl", "jsonl")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    folders = {"truth", "tagger"}
    assert "weights.safetensors" in modes
    assert {modes.pop(name) for name in folders} == {0o777 & ~mask}
    assert set(modes.values()) == {0o666 & ~mask}


def test_the_second_of_two_writers_is_told(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with pytest.raises(StoreError, match="not empty"), whole_folder(target) as folder:
        (folder / "a").write_text("late")
        _write(target, "first")
    assert (target / "a").read_text() == "first"
    with whole_folder(target, overwrite=True) as folder:
        for name in "abc":
            (folder / name).write_text("late")
        _write(target, "meanwhile", overwrite=True)
    assert {(target / name).read_text() for name in "abc"} == {"late"}
    with pytest.raises(StoreError, match=r"notes\.txt"), whole_folder(target, overwrite=True):
        (target / "notes.txt").write_text("precious")
    assert (target / "notes.txt").read_text() == "precious"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_many_writers_at_once_never_mix(tmp_path: Path) -> None:
    target = tmp_path / "out"
    failed: list[BaseException] = []
    done: list[str] = []

    def work(name: str) -> None:
        for number in range(25):
            try:
                _write(target, f"{name}{number}", overwrite=True)
                done.append(name)
            except StoreError:
                pass
            except BaseException as error:
                failed.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "xyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert done
    check_sums(target, "a", "b", "c")
    assert len({(target / name).read_text() for name in "abc"}) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_links_devices_and_litter(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    _write(tmp_path / "link", "1")
    (tmp_path / "real" / ".DS_Store").write_text("")
    _write(tmp_path / "link", "2", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "a").read_text() == "2"
    (tmp_path / "real" / "b").unlink()
    (tmp_path / "real" / "other").symlink_to("a")
    with pytest.raises(StoreError, match="other"):
        _write(tmp_path / "real", "3", overwrite=True)
    (tmp_path / "file").write_text("1")
    (tmp_path / "file-link").symlink_to("file")
    with whole_file(tmp_path / "file-link") as path:
        path.write_text("2")
    assert (tmp_path / "file-link").is_symlink()
    assert (tmp_path / "file").read_text() == "2"


@pytest.mark.skipif(os.name != "posix", reason="pipes with names are of Unix")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert not is_page(tmp_path / "pipe")
    got: list[str] = []
    thread = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_text()))
    thread.start()
    with whole_file(tmp_path / "pipe") as path:
        path.write_text("through")
    thread.join()
    assert got == ["through"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize("verb", list(FULL))
def test_a_disk_full_of_arrays_is_one_line(
    verb: str, here: Path, lasca_: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise SafetensorError(FULL[verb])

    for module in ("lasca.tagger.store", "lasca.records"):
        monkeypatch.setattr(f"{module}.save_file", full)
    before = sorted(p.name for p in here.iterdir())
    assert lasca_(*FOLDER_VERBS[verb], "new") == 1
    assert capsys.readouterr().err.splitlines()[-1].endswith("new: cannot write: No space left on device")
    assert sorted(p.name for p in here.iterdir()) == before

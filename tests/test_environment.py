"""The command line where things are not as at home: read-only systems, odd encodings, pipes, closed input, Ctrl-C."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

import lasca
from lasca.cli.common import Lines
from lasca.kernels.compiled import private_folder

CONLL = "token eve bob zoë\nZoë B-PER B-PER O\nruns O O O\n\nNew B-LOC B-LOC O\nYörk I-LOC O I-LOC\n\n"


def lasca_process(*args: object, **options: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "lasca", *map(str, args)]
    return subprocess.run(command, capture_output=True, check=False, **({"stdin": subprocess.DEVNULL} | options))


@pytest.fixture
def crowd(tmp_path: Path) -> Path:
    path = tmp_path / "crowd.conll"
    path.write_text(CONLL, "utf-8")
    return path


@pytest.fixture
def truth(crowd: Path, tmp_path: Path) -> Path:
    from lasca.pipeline.folder import save_truth

    corpus = lasca.read(crowd)
    save_truth(corpus, lasca.MajorityVote().fit(corpus), tmp_path / "truth")
    return tmp_path / "truth"


@pytest.fixture
def nowhere(tmp_path: Path) -> dict[str, str]:
    """A package and a home that cannot be written, even by root: where folders should be made, files are."""
    package = tmp_path / "site" / "lasca"
    shutil.copytree(Path(lasca.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(p for p in package.rglob("*") if p.is_dir())]:
        (folder / "__pycache__").touch()
    (tmp_path / "home").touch()
    (tmp_path / "tmp").mkdir()
    keep = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    return keep | {
        "PYTHONPATH": str(package.parent), "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip


def test_compiled_kernels_find_a_place_on_a_read_only_system(truth: Path, nowhere: dict[str, str]) -> None:
    args = ("ambiguity", truth, "--method", "vote-entropy", "--fraction", "0.5", "--json")
    done = lasca_process(*args, env=nowhere)
    assert done.returncode == 0, done.stderr
    assert {row["token"] for row in json.loads(done.stdout)} <= {"Zoë", "New", "Yörk"}
    (made,) = Path(nowhere["TMPDIR"]).glob("lasca-kernels-*")
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    kept = {path: path.stat().st_mtime_ns for path in made.rglob("*.nb?")}
    assert kept
    assert lasca_process(*args, env=nowhere).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in made.rglob("*.nb?")} == kept  # nothing was compiled again


def test_compiled_kernels_are_read_from_a_folder_of_ones_own_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    usual = tmp_path / f"lasca-kernels-{os.getuid()}"
    assert private_folder() == usual
    assert private_folder() == usual
    usual.chmod(0o777)
    assert private_folder() not in (usual, private_folder())
    usual.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    usual.symlink_to(tmp_path / "elsewhere")
    other = private_folder()
    assert other.resolve() != usual.resolve()
    assert stat.S_IMODE(other.stat().st_mode) == 0o700
    usual.unlink()
    usual.touch()
    assert private_folder() != usual
    usual.unlink()
    monkeypatch.setattr(os, "getuid", lambda: os.stat(tmp_path).st_uid + 1)
    (tmp_path / f"lasca-kernels-{os.getuid()}").mkdir(mode=0o700)  # another user was there first
    assert private_folder() != tmp_path / f"lasca-kernels-{os.getuid()}"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_characters_that_stdout_lacks_do_no_harm(encoding: str, truth: Path, crowd: Path) -> None:
    odd = os.environ | {"PYTHONIOENCODING": encoding}
    for args in (["--help"], ["ambiguity", truth, "--method", "vote-entropy", "--fraction", "0.5"], ["inspect", crowd]):
        done = lasca_process(*args, env=odd)
        assert done.returncode == 0, done.stderr
        assert done.stdout.decode(encoding)
    found = json.loads(lasca_process("inspect", crowd, "--json", env=odd).stdout)
    assert "zoë" in {person["name"] for person in found["annotators"]}  # data are not changed
    failed = lasca_process("inspect", crowd.with_name("Łódź"), env=odd)
    assert failed.returncode == 2
    assert b"\\u0141" in failed.stderr


def test_tagged_text_is_utf_8_whatever_the_terminal_shows(crowd: Path, tmp_path: Path) -> None:
    corpus = lasca.read(crowd)
    lasca.CrfTagger(min_count=1).fit(corpus, lasca.MajorityVote().fit(corpus)).save(tmp_path / "tagger")
    odd = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = lasca_process("tag", tmp_path / "tagger", "--text", stdin=None, input="Zoë 東京\n".encode(), env=odd)
    assert done.returncode == 0, done.stderr
    assert [line.split("\t")[0] for line in done.stdout.decode("utf-8").split("\n")[:2]] == ["Zoë", "東京"]
    closed = subprocess.run(
        ["/bin/sh", "-c", f'exec "{sys.executable}" -m lasca tag "{tmp_path / "tagger"}" --text <&-'],
        capture_output=True,
        check=False,
    )
    assert closed.returncode == 2
    assert b"standard input is closed" in closed.stderr.splitlines()[-1]


def test_progress_in_a_pipe_is_plain_lines() -> None:
    now, said = [0.0], list[str]()
    shown = Lines("lasca run", said.append, clock=lambda: now[0])

    def at(seconds: float, share: float, words: str) -> None:
        now[0] = seconds
        shown.report(share, words)
        shown.tick()

    at(0.0, 0.0, "1/6 read")
    at(0.9, 0.02, "1/6 read")
    assert said == []  # what takes less than a second is not worth a line
    at(1.0, 0.04, "2/6 truth: iteration 1")
    at(5.0, 0.1, "2/6 truth: iteration 2")
    at(10.9, 0.2, "2/6 truth: iteration 3")
    assert said == ["lasca run – 4 % – 2/6 truth: iteration 1 (1 s)"]
    at(11.0, 0.3, "2/6 truth: iter\x1b[31m\n4")
    assert said[1:] == [r"lasca run – 30 % – 2/6 truth: iter\x1b[31m\n4 (11 s)"]
    at(12.0, 0.5, "3/6 ambiguity")
    at(12.9, 0.5, "3/6 ambiguity: iteration 1")
    assert len(said) == 2
    at(13.0, 0.5, "3/6 ambiguity: iteration 2")
    assert said[2:] == ["lasca run – 50 % – 3/6 ambiguity: iteration 2 (13 s)"]
    for second in range(14, 3614):
        at(second, 0.6, f"{second} of 4000: job-{second}")
    assert 20 < len(said) < 100  # an hour is no flood


def test_a_long_command_in_a_pipe_says_what_it_does(tmp_path: Path) -> None:
    done = lasca_process("run", "demo", "-o", tmp_path / "out", "--model", "hc-seq")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.decode("utf-8").splitlines() if line.startswith("lasca run – ")]
    assert any("2/6 truth" in line for line in lines)
    assert b"\x1b" not in done.stderr
    assert b"\r" not in done.stderr


def test_nothing_is_said_of_quick_work(crowd: Path) -> None:
    from lasca.cli.common import lines

    said: list[str] = []
    with lines("reading", said.append) as report:
        report(0.5, "half")
    assert said == []


def test_ctrl_c_while_loading_shows_no_traceback() -> None:
    code = (
        "import sys, time, importlib.abc\n"
        "class Slow(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'lasca.cli.common':\n"
        "            sys.stdout.write('loading'); sys.stdout.flush(); time.sleep(20)\n"
        "sys.meta_path.insert(0, Slow())\n"
        "from lasca.cli import main\n"
        "main()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(7) == b"loading"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20)[1] == b""
    assert process.returncode == -signal.SIGINT


@pytest.mark.parametrize(("step", "kept"), [("1/6 read", False), ("2/6 truth", True)])
def test_ctrl_c_says_whether_anything_is_kept(
    step: str, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from lasca.cli import main
    from lasca.cli.commands import run as command

    def stopped_at(progress: Any) -> Any:
        from contextlib import nullcontext

        def report(share: float, words: str = "") -> None:
            if words.startswith(step):
                raise KeyboardInterrupt

        return nullcontext(report)

    monkeypatch.setattr(command, "stoppable", stopped_at)
    monkeypatch.setattr(sys, "argv", ["lasca", "run", "demo", "-o", str(tmp_path / "out"), "--model", "ds"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 130
    said = capfd.readouterr().err
    assert ("--resume goes on" in said) is kept
    assert ("nothing was finished" in said) is not kept


def test_a_network_that_fails_is_no_bad_input(tmp_path: Path) -> None:
    away = os.environ | {"LASCA_DATA": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        away[name] = "http://127.0.0.1:9"  # nobody listens there
    away.pop("no_proxy", None)
    away.pop("NO_PROXY", None)
    done = lasca_process("datasets", "fetch", "tdga", env=away)
    assert done.returncode == 1, done.stderr
    assert b"cannot be reached" in done.stderr
    assert lasca_process("datasets", "fetch", "nonsense", env=away).returncode == 2

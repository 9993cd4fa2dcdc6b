"""The whole way: everything is written, whole or not at all, and a killed run taken up gives the same bytes."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lasca
from lasca import simulate
from lasca.corpus import CrowdCorpus
from lasca.corpus.reshape import pseudonymise
from lasca.errors import CorpusError, LascaWarning, ParameterError, StoreError
from lasca.pipeline.way import Run, run
from lasca.review.finish import finish
from lasca.review.project import Project
from report_cases import files_below

QUICK: dict[str, Any] = {"model": "ds", "objective": "likelihood"}
QUICK_WORDS = ("--model", "ds", "--objective", "likelihood")
FILES = {
    "labels.conll",
    "labels.jsonl",
    "labels.parquet",
    "annotators.csv",
    "queue.csv",
    "queue.jsonl",
    "ambiguous/ambiguous.csv",
    "ambiguous/ambiguous.jsonl",
    "confusion.csv",
    "confusion/confusion.json",
    "report.html",
    "run.json",
    "truth/truth.json",
    "corpus/corpus.json",
}


@pytest.fixture(scope="module")
def small() -> CrowdCorpus:
    return simulate.demo_crowd("ner").select(sequences=np.arange(60))


@pytest.fixture(scope="module")
def export(small: CrowdCorpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus as a folder on disk, to be read by another process."""
    path = tmp_path_factory.mktemp("export") / "crowd"
    small.save(path)
    return path


@pytest.fixture(scope="module")
def undisturbed(export: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    run(export, output=out, **QUICK)
    return files_below(out)


def _left(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_everything_is_written_and_nothing_is_left_beside(
    undisturbed: dict[str, bytes], export: Path, tmp_path: Path
) -> None:
    assert set(undisturbed) >= FILES
    out = tmp_path / "out"
    seen: list[tuple[float, str]] = []
    done = run(export, output=out, progress=lambda share, words: seen.append((share, words)), **QUICK)
    assert _left(tmp_path) == ["out"]
    assert files_below(out) == undisturbed
    shares = [share for share, _ in seen]
    assert shares == sorted(shares)
    assert 0 <= shares[0] < shares[-1] <= 1
    steps = list(dict.fromkeys(words.split(":")[0] for _, words in seen))
    assert steps == ["1/6 read", "2/6 truth", "3/6 ambiguity", "4/6 confusion", "5/6 tagger", "6/6 report"]
    assert done.tagger.predict([["Ada", "lives", "in", "Paris"]])
    assert done.record["warnings"] == []


def test_run_json_says_what_was_done(undisturbed: dict[str, bytes], export: Path, tmp_path: Path) -> None:
    run(export, output=tmp_path / "out", seed=3, params={"max_iter": 7}, **QUICK)
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["versions"]["lasca"] == lasca.__version__
    assert record["seeds"] == {"model": 3, "tagger": 3}
    assert record["parameters"]["model_parameters"]["max_iter"] == 7
    assert len(record["input"]["sha256"]) == len(record["input"]["corpus_sha256"]) == 64
    assert set(record["timings"]) == {"corpus", "truth", "ambiguity", "confusion", "tagger"}
    assert "--param max_iter=7" in record["command"]
    assert record["command"].split()[:2] == ["lasca", "run"]
    assert isinstance(record["warnings"], list)


def test_in_memory_then_saved_gives_the_same_as_on_disk(small: CrowdCorpus, tmp_path: Path) -> None:
    done = lasca.run(small, **QUICK)
    done.save(tmp_path / "saved")
    run(small, output=tmp_path / "out", **QUICK)
    assert files_below(tmp_path / "saved") == files_below(tmp_path / "out")
    with pytest.raises(StoreError, match="not empty"):
        done.save(tmp_path / "saved")
    Run.load(tmp_path / "saved").report(tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "saved" / "report.html").read_bytes()


def test_every_warning_is_kept(tmp_path: Path) -> None:
    corpus = CrowdCorpus.from_sequences([["a", "b"], ["c"]], {"x": [["N", "V"], ["N"]]})
    done = run(corpus, output=tmp_path / "out", **QUICK)
    assert any("one annotator only" in warning for warning in done.record["warnings"])
    assert "one annotator only" in (tmp_path / "out" / "report.html").read_text()


def test_pseudonyms_leave_no_name_in_any_file(small: CrowdCorpus, tmp_path: Path) -> None:
    out = tmp_path / "out"
    names = {f"Person-{name}".encode() for name in small.annotators}
    folder = tmp_path / "named"
    replace(small, annotators=tuple(f"Person-{name}" for name in small.annotators)).save(folder)
    run(folder, output=out, pseudonyms=True, **QUICK)
    for path, data in files_below(out).items():
        assert not any(name in data for name in names), path
    volume = [int(line.split(",")[2]) for line in (out / "annotators.csv").read_text().splitlines()[1:]]
    assert volume == sorted(volume, reverse=True)
    assert b"A12" in (out / "report.html").read_bytes()


def test_pseudonyms_change_names_only(small: CrowdCorpus) -> None:
    renamed = pseudonymise(small)
    assert sorted(renamed.annotators) == sorted(f"A{i + 1}" for i in range(12))
    before = np.sort(small.annotation_token.astype(np.int64) * 100 + small.annotation_label)
    after = np.sort(renamed.annotation_token.astype(np.int64) * 100 + renamed.annotation_label)
    np.testing.assert_array_equal(before, after)
    n = np.bincount(small.annotation_annotator, minlength=12)
    np.testing.assert_array_equal(np.bincount(renamed.annotation_annotator, minlength=12), np.sort(n)[::-1])


@pytest.mark.parametrize("label", ["?", "sure ", "a\tb"])
def test_labels_that_conll_cannot_hold_end_no_run(tmp_path: Path, label: str) -> None:
    rows = [[label, "X"], ["X", label]]
    corpus = CrowdCorpus.from_sequences([["a", "b"]] * 2, {"ann": rows, "ben": rows})
    done = run(corpus, output=tmp_path / "out", **QUICK)
    assert not (tmp_path / "out" / "labels.conll").exists()
    assert (tmp_path / "out" / "labels.jsonl").is_file()
    assert any("labels.conll was left out: the label" in warning for warning in done.record["warnings"])
    with pytest.warns(LascaWarning, match="labels.conll was left out"):
        finish(Project(tmp_path / "out"), tmp_path / "final")
    assert (tmp_path / "final" / "labels.parquet").is_file()


def test_a_label_may_be_called_label(tmp_path: Path) -> None:
    rows = [["label", "X"], ["X", "label"]]
    corpus = CrowdCorpus.from_sequences([["a", "b"]] * 2, {"ann": rows, "ben": rows})
    run(corpus, output=tmp_path / "out", **QUICK)
    lines = (tmp_path / "out" / "confusion.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["label", "X", "label"]


def test_columns_of_tokens_keep_no_pseudonym_open() -> None:
    columns = {"by": ["ann", "", "bob"], "lemma": ["ben", "see", "it"]}
    corpus = CrowdCorpus.from_sequences(
        [["ben", "saw", "it"]], {name: [["N", "V", "N"]] for name in ("ann", "ben", "bob")}, token_metadata=columns
    )
    renamed = pseudonymise(corpus)
    assert list(renamed.token_metadata) == ["lemma"]  # ben is in the text as well
    assert "1 metadata columns were left out" in renamed.load_report.notes[-1]


def test_a_taken_folder_is_refused_before_any_work(small: CrowdCorpus, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("precious")
    with pytest.raises(StoreError, match="not empty"):
        run(small, output=tmp_path / "out", **QUICK)
    assert _left(tmp_path) == ["out"]
    with pytest.raises(StoreError, match=r"LASCA did not write there \(got: mine.txt\)"):
        run(small, output=tmp_path / "out", overwrite=True, **QUICK)
    assert files_below(tmp_path) == {"out/mine.txt": b"precious"}


def test_an_unknown_gold_stops_the_run(small: CrowdCorpus, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no gold of that name"):
        run(small, output=tmp_path / "out", gold="nothing", **QUICK)
    assert _left(tmp_path) == []


@pytest.mark.parametrize("at", ["lasca.tagger.CrfTagger.save", "lasca.pipeline.folder.write_csv"])
def test_a_full_disk_leaves_nothing_half_written(
    at: str, export: Path, undisturbed: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(at, full)
        with pytest.raises(StoreError, match="cannot write: No space left on device") as caught:
            run(export, output=tmp_path / "out", **QUICK)
    assert "--resume" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert _left(tmp_path) == [".out.lasca-run"]
    assert not [p for p in (tmp_path / ".out.lasca-run").iterdir() if p.name.startswith(".") or p.name == "out"]
    run(export, output=tmp_path / "out", resume=True, **QUICK)
    assert files_below(tmp_path / "out") == undisturbed
    assert _left(tmp_path) == ["out"]


def _lasca(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lasca", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)


def test_an_unwritable_place_gives_one_line(export: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = _lasca("run", export, "-o", tmp_path / "file" / "out", *QUICK_WORDS)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[-1].startswith("lasca: ")
    assert "cannot write" in lines[-1]
    assert len(lines) == 1
    assert _left(tmp_path) == ["file"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_disk_that_is_really_full(export: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        done = _lasca("run", export, "-o", disk / "out", *QUICK_WORDS)
        assert done.returncode == 1
        said = [line for line in done.stderr.splitlines() if not line.startswith("lasca run")]  # but for progress
        assert len(said) == 1
        assert "No space left on device" in said[0]
        assert not (disk / "out").exists()
        left = [p.name for p in disk.rglob("*") if p.name.startswith(".") and p.name != ".out.lasca-run"]
        assert left == []
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def _denied(*_: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_resume_refuses_another_run(export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("lasca.pipeline.way.label_confusion", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(export, output=tmp_path / "out", **QUICK)
    assert _left(tmp_path) == [".out.lasca-run"]
    with monkeypatch.context() as patch, pytest.raises(StoreError, match="cannot write: Permission denied"):
        patch.setattr("lasca.pipeline.checkpoints.Checkpoints._read", _denied)
        run(export, output=tmp_path / "out", resume=True, **QUICK)
    assert (tmp_path / ".out.lasca-run" / "steps.json").is_file()  # what was finished is not lost
    with pytest.raises(StoreError, match="differs in parameters"):
        run(export, output=tmp_path / "out", resume=True, model="mv", objective="likelihood")
    run(export, output=tmp_path / "out", model="mv", objective="likelihood")  # starts anew
    assert _left(tmp_path) == ["out"]


def test_resume_of_a_finished_run_does_nothing(export: Path, tmp_path: Path) -> None:
    run(export, output=tmp_path / "out", **QUICK)
    (tmp_path / ".out.lasca-run").mkdir()  # killed between the last rename and the clearing up
    before = (tmp_path / "out" / "run.json").stat().st_mtime_ns
    run(export, output=tmp_path / "out", resume=True, **QUICK)
    assert (tmp_path / "out" / "run.json").stat().st_mtime_ns == before
    assert _left(tmp_path) == ["out"]


def test_two_runs_into_one_folder(export: Path, tmp_path: Path) -> None:
    from lasca.pipeline.checkpoints import Checkpoints

    first = Checkpoints(tmp_path / "out", {"a": 1}, resume=False)
    with pytest.raises(StoreError, match="another run"):
        run(export, output=tmp_path / "out", **QUICK)
    first.close()
    assert _left(tmp_path) == []


def test_control_c_keeps_what_is_done_and_says_so(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lasca", "run", "demo", "-o", str(tmp_path / "out")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    limit = time.monotonic() + 120
    while not (tmp_path / ".out.lasca-run" / "steps.json").exists() and time.monotonic() < limit:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "--resume" in said.splitlines()[-1]
    assert "Traceback" not in said
    assert (tmp_path / ".out.lasca-run" / "corpus").is_dir()
    assert not (tmp_path / "out").exists()


def _kill_and_resume(export: Path, out: Path, moments: list[float], words: tuple[str, ...]) -> int:
    """Kill the run at each of these seconds after its start, then let it finish; return how often it was killed."""
    command = [sys.executable, "-m", "lasca", "run", str(export), "-o", str(out), *words]
    killed = 0
    for moment in moments:
        process = subprocess.Popen([*command, "--resume"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=moment)
            break  # it was done sooner
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
            assert not out.exists() or set(files_below(out)) >= FILES  # whole or not at all
    done = subprocess.run([*command, "--resume"], check=False, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return killed


def test_killed_and_resumed_gives_the_same_bytes(export: Path, undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    began = time.perf_counter()
    assert _lasca("run", export, "-o", tmp_path / "whole", *QUICK_WORDS).returncode == 0
    length = time.perf_counter() - began
    assert files_below(tmp_path / "whole") == undisturbed
    moments = [length * share for share in (0.15, 0.3, 0.45, 0.6)]  # early ones, too: another run may be much quicker
    assert _kill_and_resume(export, tmp_path / "out", moments, QUICK_WORDS) >= 2
    assert files_below(tmp_path / "out") == undisturbed
    assert _left(tmp_path) == ["out", "whole"]


@pytest.mark.slow
def test_killed_at_ten_random_moments_at_defaults(tmp_path: Path) -> None:
    began = time.perf_counter()
    assert _lasca("run", "demo", "-o", tmp_path / "whole").returncode == 0
    length = time.perf_counter() - began
    rng = random.Random(0)
    expected = files_below(tmp_path / "whole")
    killed = tries = 0
    while killed < 10:
        tries += 1
        assert tries <= 25, f"only {killed} of {tries} runs could be killed before they were done"
        moment = rng.uniform(0.05, 0.9) * length
        killed += _kill_and_resume(Path("demo"), tmp_path / f"out{tries}", [moment], ())
        assert files_below(tmp_path / f"out{tries}") == expected, f"killed after {moment:.1f} s"


def test_report_of_an_aggregated_folder_and_of_models(export: Path, tmp_path: Path) -> None:
    assert _lasca("aggregate", export, "-m", "mv", "-o", tmp_path / "out").returncode == 0
    compared = _lasca("compare", export, "-m", "mv", "--json")
    (tmp_path / "models.json").write_text(compared.stdout)
    page = tmp_path / "report.html"
    done = _lasca("report", tmp_path / "out", "-o", page, "--models", tmp_path / "models.json", "--title", "Mine")
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert 'id="models"' in text
    assert "Mine" in text
    (tmp_path / "models.json").write_text("{}")
    bad = _lasca("report", tmp_path / "out", "-o", page, "--models", tmp_path / "models.json")
    assert bad.returncode == 2
    assert "lasca compare --json" in bad.stderr
    assert _lasca("report", tmp_path, "-o", page).returncode == 1


@pytest.mark.data
@pytest.mark.slow
def test_mturk_at_defaults_takes_under_five_minutes(data_dir: Path, tmp_path: Path) -> None:
    began = time.perf_counter()
    done = _lasca("run", "conll2003-mturk", "-o", tmp_path / "out", env=os.environ | {"LASCA_DATA": str(data_dir)})
    assert done.returncode == 0, done.stderr
    assert time.perf_counter() - began < 300
    assert (tmp_path / "out" / "report.html").stat().st_size < 3_000_000


def test_layers_are_refused_with_the_way_to_take_one(tmp_path: Path) -> None:
    """What the message about overlapping spans proposes must lead on, also from `lasca run`."""
    path = tmp_path / "ann one.jsonl"
    path.write_text('{"id": 1, "text": "New York Times", "label": [[0, 8, "LOC"], [0, 14, "ORG"]]}\n')
    with pytest.raises(ParameterError, match=r"2 layers.*lasca convert '.*ann one.jsonl' layers --to lasca"):
        run(path, reader={"overlap": "layers"})

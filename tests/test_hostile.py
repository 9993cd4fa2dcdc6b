"""Hostile input: files, archives, arguments and names that were made to do harm get an error or stay text."""

from __future__ import annotations

import io
import json
import random
import sys
import time
import zipfile
import zlib
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuzz_long
from lasca import formats
from lasca.cli.app import main
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, LascaError
from lasca.formats import READERS, SourceFile
from lasca.formats.sources import files_of
from lasca.formats.tabular import open_parquet
from lasca.truth import MajorityVote

SECONDS = 5.0 if sys.gettrace() is None else 50.0  # `make coverage` counts every line of a million
PAYLOADS = {
    "arrays 100,000 deep": b"[" * 100_000,
    "objects 100,000 deep": b'{"text":' * 100_000 + b"1" + b"}" * 100_000,
    "an array closed well, 100,000 deep": b"[" * 100_000 + b"]" * 100_000,
    "a header of 200,000 columns": b"token " + b" ".join(b"a%d" % i for i in range(200_000)) + b"\nx O\n",
    "a table of 200,000 columns": b"token," + b",".join(b"a%d" % i for i in range(200_000)) + b"\nx,O\n",
    "the same key many times": b'{"text":"a b",' + b'"label":[[0,1,"X"]],' * 20_000 + b'"id":1}',
    "huge numbers": b'{"text":"a b","label":[[' + b"9" * 5000 + b",1e400,\"X\"]],\"id\":" + b"1" * 5000 + b"}",
    "one line of a megabyte": b"x" * (1 << 20),
    "a million empty lines": b"\n" * 1_000_000,
    "null bytes": b"\x00" * 100_000,
    "only escapes": b"\x1b[2J\x1b]0;owned\x07" * 1000,
    "xml entities": b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>',
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS.built_in)
def test_every_reader_answers_hostile_files_in_time(reader: str) -> None:
    for what, data in PAYLOADS.items():
        said, begun = "", time.process_time()
        try:
            READERS[reader]([SourceFile("a/x.json", "a/x.json", data)])
        except LascaError as error:
            said = str(error)
        assert time.process_time() - begun < SECONDS, f"{reader}, {what}"
        assert "\x1b" not in said, what
        assert len(said) < 5000, what


@pytest.mark.parametrize("reader", [name for name in READERS if name != "lasca"])  # which reads folders only
@pytest.mark.filterwarnings("ignore::lasca.errors.LascaWarning")
def test_fuzzing_begins_with_what_is_read(reader: str) -> None:
    for files in fuzz_long.seeds(reader):
        fuzz_long.reader_of(reader)([SourceFile(name, name, data) for name, data in files.items()])


@pytest.mark.parametrize("reader", ["label-studio", "doccano", "brat"])
def test_the_long_fuzz_runs(reader: str) -> None:
    assert fuzz_long.fuzz_reader(reader, 20, seed=1)["run"] == 20


def test_mutations_keep_some_inputs_valid() -> None:
    rng = random.Random(0)
    made = {fuzz_long.mutate(rng, b'{"a": [1, 2]}') for _ in range(200)}
    assert len(made) > 100


def test_a_file_of_more_than_two_gigabytes_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.conll"
    with path.open("wb") as file:
        file.truncate(2 * 2**30 + 1)
    with pytest.raises(FormatError, match="the file is larger than 2,147,483,648 bytes"):
        formats.read(path)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.conll", "w") as member:
        for _ in range(300):
            member.write(b"O" * (1 << 20))
    assert path.stat().st_size < 1 << 20
    begun = time.process_time()
    with pytest.raises(FormatError, match="times its size"):
        formats.read(path)
    assert time.process_time() - begun < 1


def test_a_zip_in_a_zip_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    inner = tmp_path / "inner.zip"
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.conll", "w") as member:
        for _ in range(300):
            member.write(b"O" * (1 << 20))
    with zipfile.ZipFile(tmp_path / "outer.zip", "w") as archive:
        archive.write(inner, "inner.zip")
    with pytest.raises(FormatError, match="times its size"):
        formats.read(tmp_path / "outer.zip")


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "\x1b[31mno\x1b[0m.json"],
        ["inspect", "\u202egnp.json"],
        ["inspect", "x" * 5000],
        ["aggregate", "demo", "-m", "\x1b[2J", "-o", "out"],
        ["aggregate", "demo", "-m", "mv", "-p", "seed=" + "9" * 5000, "-o", "out"],
        ["aggregate", "demo", "-m", "mv", "-p", "=1", "-o", "out"],
        ["inspect", "demo", "-r", "task=\x1b]0;owned\x07"],
        ["simulate", "demo", "--seed", "-1", "-o", "out"],
        ["run", "demo", "--fraction", "nan", "-o", "out"],
    ],
)
def test_hostile_arguments_are_one_harmless_line(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["lasca", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code in (1, 2)
    said = capsys.readouterr()
    assert not {"\x1b", "\x07", "\u202e"} & set(said.err + said.out)
    assert "Traceback" not in said.err
    assert not (tmp_path / "out").exists()


def test_names_from_files_stay_text_everywhere(tmp_path: Path) -> None:
    nasty = '=HYPERLINK("http://evil","x")<b>\u202e'
    said = {nasty: [["X", nasty]], "bob": [["X", "X"]], "eve": [[nasty, "X"]]}
    corpus = CrowdCorpus.from_sequences([[nasty, "b"]], said)
    truth = MajorityVote().fit(corpus)
    for format in ("table", "mace", "conll", "jsonl"):
        formats.write(corpus, tmp_path / format, format, labels=truth.labels)
    for file in (path for path in tmp_path.rglob("*.csv")):
        assert not any(line.startswith(("=", '"=')) for line in file.read_text("utf-8").splitlines()), file
    rows = [json.loads(line) for line in (tmp_path / "jsonl").read_text("utf-8").splitlines()]
    assert rows[0]["tokens"][0] == nasty  # JSON is for programs: exact


def _zeros(members: int, megabytes: int) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(members):
            archive.writestr(f"{i}.conll", b"O" * (megabytes << 20))
    return made.getvalue()


def test_many_small_zips_in_a_zip_are_one_bomb(tmp_path: Path) -> None:
    """Each inner zip is below every limit."""
    inner = _zeros(1, 40)
    with zipfile.ZipFile(tmp_path / "outer.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(20):
            archive.writestr(f"{i}.zip", inner)
    with pytest.raises(FormatError, match="times its size"):
        formats.read(tmp_path / "outer.zip")


def test_a_zip_that_lies_about_its_packed_size_is_still_a_bomb(tmp_path: Path) -> None:
    """Members that overlap claim more packed bytes than the file has."""
    data = _zeros(1, 100)
    at = data.rindex(b"PK\x01\x02") + 20  # the packed size in the directory
    (tmp_path / "lies.zip").write_bytes(data[:at] + (50 << 20).to_bytes(4, "little") + data[at + 4 :])
    with pytest.raises(FormatError, match="times its size"):
        formats.read(tmp_path / "lies.zip")


def test_a_docbin_that_unpacks_to_too_much_is_refused() -> None:
    pytest.importorskip("spacy")
    packed = zlib.compress(b"\x83\xa7version" + bytes(200 << 20))
    with pytest.raises(FormatError, match="unpacks to more than"):
        READERS["spacy"]([SourceFile("x.spacy", "x.spacy", packed)])


@pytest.mark.parametrize("reader", ["table", "jsonl"])
def test_a_parquet_of_more_rows_than_bytes_is_refused(reader: str, tmp_path: Path) -> None:
    rows = pa.array(["x"] * 1_000_000).dictionary_encode().cast(pa.string())
    with pq.ParquetWriter(tmp_path / "x.parquet", pa.schema({"token": pa.string()}), compression="zstd") as writer:
        for _ in range(3):
            writer.write_table(pa.table({"token": rows}), row_group_size=1_000_000)
    for data in ((tmp_path / "x.parquet").read_bytes(), tmp_path / "x.parquet"):
        with pytest.raises(FormatError, match="bytes are 3,000,000 rows"):
            READERS[reader]([SourceFile("x.parquet", "x.parquet", data)])


def test_small_files_may_be_packed_well(tmp_path: Path) -> None:
    """Ten thousand times the same line, half a million times the same cell."""
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.conll", b"same O\n" * 10_000)
    assert (tmp_path / "x.zip").stat().st_size < 700
    assert [len(file.read()) for file in files_of(tmp_path / "x.zip")] == [70_000]
    pq.write_table(pa.table({"token": ["x"] * 500_000}), tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < 5000
    assert open_parquet(SourceFile("x.parquet", "x", tmp_path / "x.parquet")).metadata.num_rows == 500_000


def test_a_huge_file_in_a_folder_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "huge.conll").open("wb") as file:
        file.write(b"a b c\nx O O\n")
        file.truncate(2 * 2**30 + 1)
    with pytest.raises(FormatError, match="larger than"):
        formats.read(tmp_path, "conll")


def test_standard_input_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lasca.formats.sources.MAX_FILE", 1000)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"x" * 2000)))
    with pytest.raises(FormatError, match="in the pipe"):
        formats.read("-")

"""Where exports come from: a file, the files below a folder, the members of a zip, standard input.

JSON is read whole, as JSON lines or as long arrays, each value with the line it stands on. Whatever is wrong becomes a
FormatError with the line: broken JSON, nesting that is too deep, numbers with thousands of digits, and half characters
(a lone `\\ud800` escape), which no text can hold. NaN and Infinity are read as null.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from lasca.errors import FormatError
from lasca.files import SUMS
from lasca.formats.names import speaker

__all__ = ["DATED", "JSON", "PARTS", "SourceFile", "data_of", "files_of", "is_part", "loads", "owners", "parse_json",
           "parse_json_items", "parse_json_lines", "refuse_copies", "unwrapped"]  # fmt: skip

JSON = (".json", ".jsonl", ".ndjson")  # what files of JSON are called
PARTS = ("train", "training", "val", "valid", "validation", "dev", "test", "testa", "testb")  # of data, not people
DATED = re.compile(
    r"(?:19|20)\d\d[-_.]?[01]\d(?:[-_.T ].*|[0-3]\d.*)?|(?:batch|round|week|phase|export|backup)[\W_]*\d+", re.I
)
"""Of folders of data that grew, and not of people: 2023-01, batch_2."""
MAX_FILE = 2 * 2**30
LARGE = f"the file is larger than {MAX_FILE:,} bytes"
MAX_ZIP = 4 * 2**30
MAX_MEMBERS = 1_000_000
MAX_RATIO, UNSUSPECTED = 100, 64 * 2**20
"""A zip that unpacks to more than 64 MB and more than a hundred times its size is a bomb: text is packed to a tenth."""
PEEK = 20  # records of a file of JSON, by which formats are told apart
DECODER = json.JSONDecoder(parse_constant=lambda name: None)
COPY = re.compile(r"(.+?)(?: ?\(\d+\)|[ _-]+(?:copy|backup|old|checkpoint)(?: ?\(?\d+\)?)?)", re.IGNORECASE)
ABOUT = re.compile(r"(?:readme|licen[cs]e|copying|notice|citation)(?:\.(?:md|txt|rst|cff|bib))?", re.IGNORECASE)
STANDOFF = (".ann", ".a1", ".a2")  # files that say something by being empty: nothing is marked
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
BLANK = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True)
class SourceFile:
    """One file of an export: `name` is its path inside the folder or zip, `shown` what error messages call it."""

    name: str
    shown: str
    data: bytes | Path = field(repr=False)

    def read(self) -> bytes:
        """Return the bytes."""
        if isinstance(self.data, bytes):
            return self.data
        try:
            if self.data.stat().st_size > MAX_FILE:
                raise FormatError(LARGE, path=self.shown, hint="Split it, or use Parquet")
            return self.data.read_bytes()
        except OSError as error:
            raise FormatError(f"cannot read the file: {error.strerror or error}", path=self.shown) from error

    def head(self, size: int = 65536) -> bytes:
        """Return the first bytes, for telling formats apart."""
        if isinstance(self.data, bytes):
            return self.data[:size]
        try:
            with self.data.open("rb") as handle:
                return handle.read(size)
        except OSError as error:
            raise FormatError(f"cannot read the file: {error.strerror or error}", path=self.shown) from error

    def beginning(self, size: int = 65536) -> SourceFile:
        """Return the whole lines in the first bytes as a file of its own: enough to tell a format."""
        data = self.head(size)
        if len(data) < size or data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return self
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        return SourceFile(self.name, self.shown, data[:end] or data)

    def is_empty(self) -> bool:
        """Say whether there is nothing in the file."""
        try:
            return (len(self.data) if isinstance(self.data, bytes) else self.data.stat().st_size) == 0
        except OSError as error:
            raise FormatError(f"cannot read the file: {error.strerror or error}", path=self.shown) from error

    def text(self) -> str:
        """Return the text, which must be UTF-8 (with or without a byte-order mark; UTF-16 with one)."""
        data = self.read()
        packed = packed_as(data)
        if packed is not None:
            raise FormatError(f"this is {packed}, not text", path=self.shown, hint="Unpack or convert it first")
        encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        try:
            return data.decode(encoding)
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise FormatError(
                "the file is not UTF-8 text",
                path=self.shown,
                line=line,
                got=data[error.start : error.start + 8],
                hint="If a program on Windows saved it (Excel does), set encoding=cp1252 (on the command line: "
                "-r encoding=cp1252); if its text is not of western Europe, the encoding it has",
            ) from error

    @cached_property
    def values(self) -> list[Any]:
        """The first values of a file of JSON: of its array, its lines, or its one value; none if it is not JSON."""
        if self.head(64).lstrip(b"\xef\xbb\xbf \t\r\n\xff\xfe\x00")[:1] not in (b"{", b"["):
            return []
        try:
            return list(islice(first_values(self.text()), PEEK))
        except FormatError:
            return []

    @property
    def records(self) -> list[dict[str, Any]]:
        """The JSON objects among the first values, however long they are."""
        return [value for value in self.values if isinstance(value, dict)]

    @cached_property
    def cells(self) -> list[str]:
        """The cells of the first line, if it is a header of delimited text; the delimiter is what occurs most."""
        try:
            lines = self.beginning().text().lstrip("\r\n").splitlines()
            first = lines[0] if lines else ""
            delimiter = max(",\t;|", key=first.count)
            return [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter), [])]
        except (FormatError, csv.Error):
            return []

    def error(self, what: str, line: int | None = None, **parts: Any) -> FormatError:
        """Make a FormatError that points into this file."""
        return FormatError(what, path=self.shown, line=line, **parts)


PACKED = {
    b"\x1f\x8b": "a gzip file",
    b"\xfd7zXZ\x00": "an xz file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"7z\xbc\xaf\x27\x1c": "a 7z file",
    b"PK\x03\x04": "a zip file (cut short, damaged, or inside another one)",
    b"%PDF-": "a PDF file",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"\xd0\xcf\x11\xe0": "an old Office document",
    b"SQLite format 3\x00": "an SQLite database",
}


def packed_as(data: bytes) -> str | None:
    """Say what a file is that is no text, by its first bytes; None if it may be text."""
    if data[:3] == b"BZh" and data[4:10] == b"1AY&SY":
        return "a bzip2 file"
    return next((what for magic, what in PACKED.items() if data.startswith(magic)), None)


def files_of(path: str | Path) -> list[SourceFile]:
    """Return the files of a path, sorted by name: itself, the files below a folder, or the members of a zip.

    "-" is standard input. Hidden files and the litter of operating systems are passed over. Members of a zip are
    checked for path escape and for size before they are read.
    """
    if str(path) == "-":
        if sys.stdin is None:
            raise FormatError("standard input is closed", path="<stdin>", hint="Name a file, or pipe something in")
        return [SourceFile("-", "<stdin>", _piped(sys.stdin.buffer, "<stdin>"))]
    root = Path(path)
    try:
        if root.is_dir():
            found = sorted(p for p in root.rglob("*") if p.is_file() and not _litter(p.relative_to(root).as_posix()))
            return [_plain(SourceFile(p.relative_to(root).as_posix(), str(p), p)) for p in found]
        if not root.exists():
            raise FormatError("there is no such file or folder", path=root)
        if not root.is_file():  # a pipe: it can be read once
            with root.open("rb") as handle:
                return [SourceFile(root.name, str(root), _piped(handle, str(root)))]
        if root.stat().st_size > MAX_FILE:
            raise FormatError(LARGE, path=root, hint="Split it, or use Parquet")
        if zipfile.is_zipfile(root):
            return _zip_members(root)
    except OSError as error:
        raise FormatError(f"cannot read: {error.strerror or error}", path=root) from error
    return [_plain(SourceFile(root.name, str(root), root))]


def _plain(file: SourceFile) -> SourceFile:
    """Return what a gzip file holds, under its name without .gz."""
    if not file.name.lower().endswith(".gz") or file.head(2) != b"\x1f\x8b":
        return file
    most = min(max(MAX_RATIO * len(file.read()), UNSUSPECTED), MAX_FILE)
    try:
        with gzip.open(io.BytesIO(file.read())) as handle:
            data = handle.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise file.error("the gzip file cannot be read", got=str(error)) from error
    if len(data) > most:
        raise file.error(
            f"the gzip file unpacks to more than {most:,} bytes", hint="Unpack it first, if it can be trusted"
        )
    return replace(file, name=file.name[:-3], data=data)


def _piped(handle: BinaryIO, shown: str) -> bytes:
    data = handle.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise FormatError(f"there is more than {MAX_FILE:,} bytes in the pipe", path=shown, hint="Split it")
    return data


def _litter(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return any(part.startswith(".") or part == "__MACOSX" for part in parts) or parts[-1] in (
        "Thumbs.db",
        "desktop.ini",
        SUMS,
    )


def _zip_members(path: Path) -> list[SourceFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
            room = _Room(path)
            room.take(infos)
            files = []
            for info in sorted(infos, key=lambda info: info.filename):
                name = info.filename.replace("\\", "/")
                parts = PurePosixPath(name).parts
                if name.startswith("/") or ".." in parts or re.match(r"^[A-Za-z]:", name):
                    raise FormatError("a member of the zip points outside it", path=path, got=name)
                if not parts or _litter(name):
                    continue
                with archive.open(info) as member:
                    data = member.read(info.file_size + 1)
                if len(data) > info.file_size:
                    raise FormatError("a member of the zip is larger than it says", path=path, got=name)
                if name.lower().endswith(".zip") and data[:4] == b"PK\x03\x04":
                    files += _inner(name, f"{path}!{name}", data, room)
                else:
                    files.append(SourceFile(name, f"{path}!{name}", data))
            return files
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
        raise FormatError("the zip file cannot be read", path=path, got=str(error)) from error
    except OSError as error:
        raise FormatError(f"cannot read the zip: {error.strerror or error}", path=path) from error
    except Exception as error:
        if type(error).__module__.startswith(("zlib", "lzma", "_lzma", "bz2")):
            raise FormatError("the zip file is damaged", path=path, got=str(error)) from error
        raise


class _Room:
    """What a zip and all zips inside it may unpack to, by the size of its file: what its entries claim may be lies."""

    def __init__(self, path: Path) -> None:
        self.path, self.packed, self.unpacked, self.members = path, path.stat().st_size, 0, 0

    def take(self, infos: Sequence[zipfile.ZipInfo]) -> None:
        """Count members in before they are unpacked."""
        self.unpacked += sum(info.file_size for info in infos)
        self.members += len(infos)
        if self.members > MAX_MEMBERS or self.unpacked > MAX_ZIP:
            raise FormatError(
                f"the zip unpacks to more than {MAX_ZIP:,} bytes or {MAX_MEMBERS:,} files", path=self.path
            )
        if self.unpacked > UNSUSPECTED and self.unpacked > MAX_RATIO * self.packed:
            raise FormatError(
                f"the zip unpacks to {self.unpacked:,} bytes, more than {MAX_RATIO} times its size", path=self.path
            )


def _inner(name: str, shown: str, data: bytes, room: _Room) -> list[SourceFile]:
    """Return the members of a zip inside a zip (a project export holds one per document and annotator)."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = [info for info in archive.infolist() if not info.is_dir() and not _litter(info.filename)]
        room.take(infos)
        if any(".." in PurePosixPath(info.filename).parts or info.filename.startswith("/") for info in infos):
            raise FormatError("a member of the zip points outside it", path=shown)
        return [SourceFile(f"{name}/{i.filename}", f"{shown}!{i.filename}", archive.read(i)) for i in infos]


def data_of(files: Sequence[SourceFile]) -> tuple[list[SourceFile], dict[str, list[str]]]:
    """Return the files that hold data, and the others by why they are left out, if there is anything else.

    Left out are empty files, copies of a file beside them (`data (1).csv`, byte for byte), and what is said about the
    data (README, LICENSE).
    """
    there = {PurePosixPath(file.name): file for file in files}
    standoff = any(path.suffix.lower() in STANDOFF for path in there)
    stems = Counter(path.with_suffix("") for path in there)
    aside: dict[str, list[str]] = {}
    kept = []
    for path, file in there.items():
        copied = COPY.fullmatch(path.stem)
        other = there.get(path.with_name(f"{copied[1]}{path.suffix}")) if copied is not None else None
        if file.is_empty() and not standoff:
            why = "empty files"
        elif other is not None and other.read() == file.read():
            why = "copies of other files left out"
        elif ABOUT.fullmatch(path.name) and stems[path.with_suffix("")] == 1:
            why = "files about the data left out"
        else:
            kept.append(file)
            continue
        aside.setdefault(why, []).append(file.shown)
    return (kept, aside) if kept else (list(files), {})


def unwrapped(files: Sequence[SourceFile], depth: int = 2) -> list[SourceFile]:
    """Take off folders around the whole export: all files lie in the same one, and some deeper than `depth`."""
    stripped = list(files)
    while stripped:
        parts = [PurePosixPath(file.name).parts for file in stripped]
        if any(len(p) < 2 or p[0] != parts[0][0] for p in parts) or max(map(len, parts)) <= depth:
            break
        stripped = [SourceFile("/".join(p[1:]), file.shown, file.data) for p, file in zip(parts, stripped)]
    return stripped


def owners(files: Sequence[SourceFile], *, parts: bool = False) -> dict[str, tuple[str, str]]:
    """Return name and role of whom each file (as it is shown) is called by: itself, or its folder if names repeat.

    Of several files some may be golds or models by their names; the name of a single one says nothing of its author.
    With `parts`, files called train, test and the like are one annotator's, whose name nobody knows.
    """
    paths = [PurePosixPath(file.name).with_suffix("").parts for file in files]
    names = [path[-1].strip() or "unknown" for path in paths]
    folders = [path[-2] if len(path) > 1 else "" for path in paths]
    if all(map(is_part, folders)):
        pass  # parts of what these people did
    elif 1 < len(set(names)) < len(set(paths)) and all(folders) and len(set(folders)) > 1:
        names = folders  # a file for each document: see `file_names`
    elif len(set(names)) == 1:
        shared = next((k for k, parts in enumerate(zip(*paths)) if len(set(parts)) > 1), len(paths[0]) - 1)
        folders = ["/".join(path[shared:-1]).removesuffix(".zip") for path in paths]
        others = folders if all(folders) else [PurePosixPath(file.name).name for file in files]
        names = others if len(set(others)) == len(files) > 1 else names
    if parts and len(files) > 1 and all(map(is_part, names)):
        names = ["annotator"] * len(files)
    refuse_copies(files, names)
    return {f.shown: (name, speaker(name) if len(files) > 1 else "annotator") for f, name in zip(files, names)}


def is_part(folder: str) -> bool:
    """Say whether a folder is called as a part of data, and not as a person: test, 2023-01, batch_2."""
    return folder.lower() in PARTS or DATED.fullmatch(folder) is not None


def refuse_copies(files: Sequence[SourceFile], names: Sequence[str]) -> None:
    """Refuse a file whose annotator would be called as a copy of another one's file: `ada (1)` beside `ada`."""
    for file, name in zip(files, names):
        copied = COPY.fullmatch(name)
        if copied is not None and copied[1] in names:
            raise FormatError(
                f"this looks like a second copy of the file of {copied[1]!r}, and would count as another annotator",
                path=file.shown,
                hint="Keep one of them; if it is another annotator's, give it that name",
            )


def loads(text: str) -> Any:
    """Parse the JSON of one cell; whatever is wrong with it is a ValueError."""
    try:
        value = DECODER.decode(text)
        if SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    return value


def first_values(text: str) -> Iterator[Any]:
    """Yield the values of an array, of JSON lines, or the one value of a text, as far as it is JSON."""
    at = BLANK.match(text).end()  # type: ignore[union-attr]
    listed = text[at : at + 1] == "["
    at += listed
    while at < len(text):
        at = BLANK.match(text, at).end()  # type: ignore[union-attr]
        if text[at : at + 1] == "," and listed:
            at = BLANK.match(text, at + 1).end()  # type: ignore[union-attr]
        try:
            value, at = DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield value


def parse_json(file: SourceFile) -> Any:
    """Parse a file of JSON, or say at which line it breaks."""
    text = file.text()
    value, end = _decode(text, BLANK.match(text).end(), file, 1)  # type: ignore[union-attr]
    _nothing_after(text, end, file)
    return value


def parse_json_lines(file: SourceFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number and the object of every line that is not blank."""
    for number, line in enumerate(io.StringIO(file.text(), newline=None), start=1):
        text = line.strip()
        if text:
            value, end = _decode(text, 0, file, number)
            if not isinstance(value, dict):
                raise file.error("every line must hold a JSON object", number, got=text)
            if end < len(text):
                raise file.error("there is more after the JSON object on this line", number, got=text[end:])
            yield number, value


def parse_json_items(file: SourceFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of an array, of JSON lines, or a single object, each with the line on which it begins."""
    text = file.text()
    at = BLANK.match(text).end()  # type: ignore[union-attr]
    listed = text[at : at + 1] == "["
    at, line, seen, first = at + listed, 1, 0, True
    while True:
        at = BLANK.match(text, at).end()  # type: ignore[union-attr]
        line, seen = line + text.count("\n", seen, at), at
        if listed and text[at : at + 1] == "]":
            return _nothing_after(text, at + 1, file)
        if not listed and at == len(text):
            return None
        if listed and not first:
            if text[at : at + 1] != ",":
                raise file.error("this is not JSON: a comma or ] was expected", line, got=text[at : at + 40])
            at = BLANK.match(text, at + 1).end()  # type: ignore[union-attr]
            line, seen = line + text.count("\n", seen, at), at
        if not listed and not first and text[at : at + 1] == ",":
            hint = "Take the commas off, or put [ before the first object and ] behind the last"
            raise file.error("there are commas between JSON objects that stand in no list", line, hint=hint)
        if listed and not first and text[at : at + 1] == "]":
            raise file.error("there is a comma behind the last object of the list", line, hint="Take it off")
        value, at = _decode(text, at, file, line)
        if not isinstance(value, dict):
            raise file.error("a JSON object was expected", line, got=value)
        first = False
        yield line, value


def _decode(text: str, at: int, file: SourceFile, line: int) -> tuple[Any, int]:
    """Decode the value at this position, which is on this line; return it and where it ends."""
    try:
        value, end = DECODER.raw_decode(text, at)
        if SURROGATE.search(text, at, end):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        line += text.count("\n", at, error.pos)
        near = text[max(error.pos - 20, 0) : error.pos + 20]
        raise file.error(f"this is not JSON: {error.msg}", line, got=near) from error
    except UnicodeEncodeError as error:
        raise file.error(
            "this JSON holds half a character (a \\ud8… escape without its partner)",
            line,
            got=error.object[max(error.start - 20, 0) : error.end + 20].encode("ascii", "backslashreplace").decode(),
        ) from error
    except (RecursionError, ValueError) as error:  # nested too deep, or a number with too many digits
        raise file.error("this JSON cannot be read", line, got=str(error)) from error
    return value, end


def _nothing_after(text: str, end: int, file: SourceFile) -> None:
    rest = BLANK.match(text, end)
    if rest is not None and rest.end() < len(text):
        line = text.count("\n", 0, rest.end()) + 1
        raise file.error("there is more after the end of the JSON", line, got=text[rest.end() : rest.end() + 40])

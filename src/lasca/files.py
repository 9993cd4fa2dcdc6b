"""Writing files and folders whole or not at all (write beside, then rename), and telling whether they are still whole.

Every folder LASCA writes ends with SHA256SUMS, which `sha256sum -c SHA256SUMS` can check as well. It serves twice.
Whoever loads a folder compares its files with it: one flipped bit is an error, never another result. And it tells what
belongs to LASCA: a folder is replaced only when it was allowed and when every file in it stands in that list.
Left out of it are reports, which `lasca report` may write anew; they are known by their first lines. So is the log of
decisions, which grows: a folder that people decided about is never replaced.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from safetensors import SafetensorError

from lasca.errors import StoreError

__all__ = [
    "DECISIONS", "SUMS", "check_file", "check_output", "check_sums", "file_hash", "is_page", "lines_of", "real_path",
    "sums_of", "swap", "whole_file", "whole_folder", "write_json", "write_lines", "write_sums", "written",
]  # fmt: skip

SUMS = "SHA256SUMS"
DECISIONS = "decisions.sqlite"
MARK = "# Written by LASCA. To check the files: sha256sum -c SHA256SUMS"
PAGE = b'<meta name="generator" content="LASCA '
LITTER = (".DS_Store", "Thumbs.db", "desktop.ini")
MAX_SUMS = 4 << 20
AGAIN = "Make it again, or copy it again from where it is whole"


@contextmanager
def whole_folder(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a scratch folder beside `path`; it becomes `path` when the block ends well, and vanishes otherwise.

    `overwrite` replaces a folder that is there, if LASCA wrote it; without it an existing, non-empty folder is an
    error.
    """
    check_output(path, overwrite=overwrite)
    target = real_path(path)
    scratch: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = _beside(target)
        scratch.mkdir()
        yield scratch
        write_sums(scratch)
        for file in scratch.rglob("*.safetensors"):  # safetensors keeps its files to their owner; projects are shared
            file.chmod((scratch / SUMS).stat().st_mode & 0o777)
        swap(scratch, target, overwrite=overwrite)
    except StoreError as error:
        if scratch is None or not str(error.where).startswith(str(scratch)):
            raise
        raise StoreError(error.what, where=str(path), got=error.got, hint=error.hint) from error  # a folder inside
    except (OSError, SafetensorError) as error:
        raise StoreError(f"cannot write: {_reason(error)}", where=str(path)) from error
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


def swap(scratch: Path, target: Path, *, overwrite: bool) -> None:
    """Put a folder in its place. What another process put there meanwhile is treated as what was there before."""
    check_output(target, overwrite=overwrite)
    old: Path | None = None
    try:
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=scratch.parent))
            os.replace(target, old)
        scratch.rename(target)
    except OSError as error:
        if old is not None and any(old.iterdir()) and not target.exists():
            os.replace(old, target)
            raise
        if target.exists() or isinstance(error, FileNotFoundError):
            raise StoreError("another process is writing there right now", where=str(target)) from error
        raise
    finally:
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Give a scratch file name beside `path`; it replaces `path` when the block ends well."""
    target = real_path(path)
    special = _is_special(target)  # it stays what it is
    scratch: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = _beside(Path(tempfile.gettempdir(), target.name) if special else target)
        scratch.touch(exist_ok=False)
        yield scratch
        if special:
            with scratch.open("rb") as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)
        else:
            os.replace(scratch, target)
    except (OSError, SafetensorError) as error:
        raise StoreError(f"cannot write: {_reason(error)}", where=str(path)) from error
    finally:
        if scratch is not None:
            scratch.unlink(missing_ok=True)


def _beside(target: Path) -> Path:
    """Return a name beside a target that nothing has; what is made there may be read by whom the user's mask lets."""
    return target.parent / f".{target.name}.{secrets.token_hex(4)}"


def check_output(path: str | Path, *sources: str | Path, overwrite: bool = False) -> None:
    """Refuse a folder that cannot or must not be written, before any work; `sources` are the paths that are read."""
    target = real_path(path)
    if target.exists() and not target.is_dir():
        raise StoreError("cannot write a folder: a file of that name is there", where=str(path))
    if written(path) != str(path):
        raise StoreError("cannot write: the name is no UTF-8", where=written(path), hint="Name another folder")
    place = target.resolve()
    if _is_around_here(place):
        raise StoreError(
            "the output folder is the current folder or one around it",
            where=str(path),
            hint="Name a folder inside it, such as: -o out",
        )
    for source in sources:
        if Path(source).exists() and place in (Path(source).resolve(), *Path(source).resolve().parents):
            raise StoreError(
                "the output folder is, or holds, what is read",
                where=str(path),
                got=str(source),
                hint="Name another folder",
            )
    try:
        taken = target.exists() and any(target.iterdir())
        foreign = _foreign(target) if taken else []
    except OSError as error:
        raise StoreError(f"cannot write: {error.strerror or error}", where=str(path)) from error
    if taken and not overwrite:
        hint = "Name another one" if foreign else "Name another one, or allow overwriting (--overwrite)"
        raise StoreError("the output folder is not empty", where=str(path), hint=hint)
    if foreign:
        more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
        what = "the output folder holds files that LASCA did not write there"
        hint = "Nothing was changed: name another folder, or move these files away first"
        if DECISIONS in foreign:
            what = "the output folder holds decisions of people"
            hint = "Nothing was changed, so that no decision is lost: name another folder"
        raise StoreError(what, where=str(path), got=", ".join(foreign[:3]) + more, hint=hint)


def check_file(path: str | Path, *sources: str | Path, overwrite: bool = False, hint: str | None = None) -> None:
    """Refuse an output file that is there already, or that is what is read."""
    target = real_path(path)
    for source in sources:
        if Path(source).exists() and target.resolve() == Path(source).resolve():
            raise StoreError("the output is what is read", where=str(path), hint="Name another file")
    if target.is_dir():
        raise StoreError("cannot write a file: a folder of that name is there", where=str(path))
    if target.is_file() and not overwrite:
        hint = hint or "Name another file, or use --overwrite to replace it"
        raise StoreError("there is a file already", where=str(path), hint=hint)


def is_page(path: str | Path) -> bool:
    """Say whether a file is a report that LASCA wrote."""
    if not Path(path).is_file():  # a pipe would wait for ever
        return False
    try:
        with Path(path).open("rb") as file:
            return PAGE in file.read(4096)
    except OSError:
        return False


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON."""
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def written(path: object) -> str:
    """Return a path as text that can be written: bytes in it that are no UTF-8 become escapes."""
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")


def lines_of(text: str) -> list[str]:
    """Return the lines of a text as files have them: form feeds and U+2028, where str.splitlines cuts, end none."""
    return [line.removesuffix("\n") for line in io.StringIO(text, newline=None)]


def write_lines(path: Path, rows: Iterable[Any]) -> None:
    """Write values as lines of JSON."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_sums(folder: Path) -> None:
    """Write SHA256SUMS of all files below a folder, in the format of sha256sum."""
    names = [name for name in _names(folder) if name != DECISIONS and not _is_report(folder / name)]
    lines = [f"{file_hash(folder / name)}  {name}" for name in names]
    (folder / SUMS).write_text("\n".join([MARK, *lines, ""]), encoding="utf-8")


def sums_of(folder: Path) -> dict[str, str]:
    """Return the names and hashes in a folder's SHA256SUMS."""
    file = folder / SUMS
    if not file.is_file():
        raise StoreError(
            f"there is no {SUMS}: the folder is not whole, or another version of LASCA wrote it",
            where=str(folder),
            hint=AGAIN,
        )
    damaged = StoreError(f"the saved folder is damaged: {SUMS}", where=str(folder), hint=AGAIN)
    try:
        if file.stat().st_size > MAX_SUMS:
            raise damaged
        first, *lines = file.read_bytes().decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise damaged from error
    found = [re.fullmatch(r"([0-9a-f]{64})  (.+)", line) for line in lines[:-1]]
    sums = {match[2]: match[1] for match in found if match is not None}
    inside = all(not name.startswith("/") and ".." not in PurePosixPath(name).parts for name in sums)
    if first != MARK or not lines or lines[-1] or len(sums) != len(lines) - 1 or not inside:
        raise damaged
    return sums


def check_sums(folder: Path, *names: str) -> None:
    """Compare files of a saved folder with its SHA256SUMS, before they are read.

    The first name is the folder's record. Where it is neither there nor in SHA256SUMS, this is no saved folder of that
    kind at all, which is a FileNotFoundError for the caller to put into words.
    """
    if not (folder / SUMS).exists():
        (folder / names[0]).stat()
    sums = sums_of(folder)
    if names[0] not in sums:
        (folder / names[0]).stat()
    for name in names:
        if name not in sums:
            raise StoreError(f"the saved folder is damaged: {SUMS} lacks {name}", where=str(folder), hint=AGAIN)
        if not (folder / name).is_file():
            raise StoreError(f"the saved folder is damaged: {name} is missing", where=str(folder), hint=AGAIN)
        if file_hash(folder / name) != sums[name]:
            raise StoreError(f"the saved folder is damaged: {name} has changed", where=str(folder), hint=AGAIN)


def _names(folder: Path) -> list[str]:
    """Return the paths of all files below a folder but its own SHA256SUMS and the litter of operating systems."""
    found = (p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_symlink() or not p.is_dir())
    return sorted(name for name in found if name != SUMS and PurePosixPath(name).name not in LITTER)


def _foreign(folder: Path) -> list[str]:
    """Return the files of a folder that do not belong to what LASCA wrote there."""
    try:
        ours = sums_of(folder)
    except StoreError:
        return _names(folder) or sorted(p.name for p in folder.iterdir())
    return [name for name in _names(folder) if name not in ours and not _is_report(folder / name)]


def _is_report(file: Path) -> bool:
    return file.suffix == ".html" and is_page(file)


def _is_around_here(place: Path) -> bool:
    try:
        here = Path.cwd()
    except OSError:  # the current folder is gone
        return place == place.parent
    return place == here or place in here.parents


def real_path(path: str | Path) -> Path:
    """Follow a link, so that it stays and what it points to is written; one to a pipe (/dev/stdout) leads nowhere."""
    target = Path(path)
    return target.resolve() if target.is_symlink() and not _is_special(target) else target


def _is_special(path: Path) -> bool:
    """Say whether something is there that is neither file nor folder: a pipe, a device."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _reason(error: OSError | SafetensorError) -> str:
    """Say in a few words why something could not be written."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    found = re.search(r'(?:message: "|I/O error: )([^"(]*[^"( ])', str(error))
    return str(error) if found is None else found[1]

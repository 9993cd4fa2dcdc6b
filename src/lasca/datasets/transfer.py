"""Where a file of a data set is: a path the user gave, LASCA_DATA, the cache, or a download.

Downloads can be taken up again, are checked by SHA-256 (pooch), and moved into place whole. What has come so far stays
in a file `NAME.part`; the next attempt asks for the rest (an HTTP Range request). A server that cannot do this sends
all again. Only a file with the right checksum gets its name.
"""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lasca.datasets.registry import DataFile, Dataset
from lasca.errors import DatasetError, LascaWarning
from lasca.files import file_hash

__all__ = ["Progress", "cache_folder", "checksum", "download", "find", "given"]

Progress = Callable[[int, int | None], None]
ATTEMPTS = 3
CHUNK = 1 << 16
MAX_SIZE = 2**30
TIMEOUT = 30.0


class _CutOffError(Exception):
    """The connection ended before the file did."""


def cache_folder() -> Path:
    """Return the folder of downloaded data: LASCA_CACHE, or the user's cache folder as pooch finds it."""
    import pooch

    return Path(os.environ.get("LASCA_CACHE") or pooch.os_cache("lasca"))


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    try:
        return file_hash(path)
    except OSError as error:
        raise DatasetError(f"cannot read the file: {error.strerror or error}", where=str(path)) from error


def download(
    entry: Dataset, file: DataFile, *, folder: str | Path | None = None, progress: Progress | None = None
) -> Path:
    """Return the file in the cache (or folder), downloading it if it is not there or not the right one."""
    import pooch

    root = Path(folder) if folder is not None else cache_folder()
    target = root / file.path
    if file.url is None or file.sha256 is None:
        raise DatasetError(
            f"{entry.name} has no public address",
            hint=f"Put your own copy at {file.path} in a folder and name it in LASCA_DATA, or give its path. "
            + entry.licence,
        )
    pooch.get_logger().setLevel("WARNING")
    own = f"Or put the file at {file.path} in a folder of your own and name that in LASCA_DATA"
    fetcher = _Resuming(own, target.with_name(target.name + ".part"), progress)
    for last in (False, True):
        resumed = fetcher.part.exists()
        try:
            got = pooch.retrieve(
                file.url, f"sha256:{file.sha256}", fname=target.name, path=target.parent, downloader=fetcher
            )
            return Path(got)
        except ValueError as error:  # pooch: the checksum differs
            if resumed and not last:
                continue  # the beginning may have been of another file: once more from the start
            raise DatasetError(
                "the downloaded file is not the one it should be (its SHA-256 differs)",
                where=file.url,
                hint="Nothing was kept. The file may have changed at its source, or a proxy sent something else",
            ) from error
        except OSError as error:
            raise DatasetError(f"cannot write the download: {error.strerror or error}", where=str(target)) from error
    raise AssertionError("unreachable")


class _Resuming:
    """A downloader as pooch calls them: fills `part`, from where it stands, and moves it to the output."""

    def __init__(self, hint: str, part: Path, progress: Progress | None) -> None:
        self.hint, self.part, self.progress = hint, part, progress

    def __call__(self, url: str, output_file: Any, mangler: Any, check_only: bool = False) -> bool | None:
        for attempt in range(ATTEMPTS):
            try:
                self._attempt(url)
                break
            except _CutOffError as error:
                if attempt == ATTEMPTS - 1:
                    raise DatasetError(
                        f"the download was cut off: {error}", where=url, hint="Run it again: it will go on from there"
                    ) from error
        os.replace(self.part, output_file)
        return None

    def _attempt(self, url: str) -> None:
        have = self.part.stat().st_size if self.part.exists() else 0
        request = urllib.request.Request(url, headers={"User-Agent": "lasca", "Accept-Encoding": "identity"})
        if have:
            request.add_header("Range", f"bytes={have}-")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
                self._receive(url, response, have)
        except urllib.error.HTTPError as error:
            if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
                if error.headers.get("Content-Range", "").endswith(f"/{have}"):
                    return  # all of it is here already
                self.part.unlink(missing_ok=True)
                raise _CutOffError("the part that was there did not fit") from error
            raise DatasetError(f"the server answered {error.code} {error.reason}", where=url, hint=self.hint) from error
        except urllib.error.URLError as error:
            raise DatasetError(
                f"the server cannot be reached: {error.reason}",
                where=url,
                hint=f"Is there a network connection? {self.hint}",
            ) from error
        except (TimeoutError, ConnectionError, http.client.HTTPException) as error:
            raise _CutOffError(str(error) or type(error).__name__) from error

    def _receive(self, url: str, response: Any, have: int) -> None:
        goes_on = have > 0 and response.status == http.HTTPStatus.PARTIAL_CONTENT
        done = have if goes_on else 0
        length = response.headers.get("Content-Length")
        total = done + int(length) if length is not None and length.isdigit() else None
        if max(done, total or 0) > MAX_SIZE:
            raise DatasetError(f"the file is larger than {MAX_SIZE:,} bytes", where=url, got=total)
        self.part.parent.mkdir(parents=True, exist_ok=True)
        with self.part.open("ab" if goes_on else "wb") as sink:
            while chunk := response.read(CHUNK):
                sink.write(chunk)
                done += len(chunk)
                if done > MAX_SIZE:
                    raise DatasetError(f"the file is larger than {MAX_SIZE:,} bytes", where=url)
                if self.progress is not None:
                    self.progress(done, total)
        if total is not None and done < total:
            raise _CutOffError(f"{done:,} of {total:,} bytes came")


def given(entry: Dataset, file: DataFile, path: str | Path) -> Path:
    """Return the file a user's path means: the file itself, or a folder laid out like LASCA_DATA or holding it."""
    root = Path(path)
    if root.is_file():
        return root
    for candidate in (root / file.path, root / Path(file.path).name):
        if candidate.is_file():
            return candidate
    raise DatasetError(
        f"{entry.name} is not there",
        where=str(root),
        hint=f"Expected the file {Path(file.path).name}, or a folder with {file.path}",
    )


def find(entry: Dataset, file: DataFile) -> Path | None:
    """Return the file in LASCA_DATA or in the cache, or None; in LASCA_DATA another checksum is a warning."""
    folder = os.environ.get("LASCA_DATA")
    if folder and (local := Path(folder) / file.path).is_file():
        if file.sha256 is not None and checksum(local) != file.sha256:
            warnings.warn(
                LascaWarning(f"{local}: this is not the published file of {entry.name} (its SHA-256 differs)"),
                stacklevel=3,
            )
        return local
    cached = cache_folder() / file.path
    return cached if cached.is_file() and (file.sha256 is None or checksum(cached) == file.sha256) else None

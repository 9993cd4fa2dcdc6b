"""Hostile files for every reader: mutations of a valid file, which must give a corpus or a LascaError, nothing else.

Use `assert_only_lasca_errors(read, valid)` where `read` takes bytes, and `assert_only_lasca_errors_in_files` where it
takes a folder as a dict of file name -> bytes. `source(name, data)` makes the list of files a reader takes.
"""

from __future__ import annotations

import copy
import json
import textwrap
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lasca.errors import LascaError
from lasca.formats.base import SourceFile

__all__ = [
    "FEW",
    "MANY",
    "assert_only_lasca_errors",
    "assert_only_lasca_errors_in_files",
    "mutated",
    "samples",
    "source",
    "sources",
]

FEW = 60  # examples in a normal test run
MANY = 3000  # in a test marked fuzz

SNIPPETS = [
    b"",
    b"\n",
    b"\n\n\n",
    b"\r\n",
    b"\r",
    b"\t",
    b"\t\t\t",
    b" ",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b'"',
    b"'",
    b",",
    b";",
    b"|",
    b"#",
    b"[",
    b"{",
    b"}",
    b"]]",
    b"-1",
    b"0",
    b"1e999",
    b"99999999999999999999999",
    b"NaN",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"_",
    b"*",
    b"?",
    b"O",
    b"I-X",
    b"B-",
    b"-",
    b"\\ud800",
    b"\xed\xa0\x80",
    b"\xe2\x80\xa8",
    b"\xc2\x85",
    "😊".encode(),
    "é".encode(),
    b"[" * 2000,
]
VALUES: list[Any] = [
    None, True, False, 0, -1, 3, 10**12, 2**70, 0.5, -2.5, 1e308, "", " ", "O", "B-PER", "x", "0", "\ud800", "😊",
    [], [[]], [None], [0], ["x", 1], [[1, 2, "X"]], {}, {"a": 1}, {"start": 0, "end": 1, "label": "X"},
]  # fmt: skip


def samples(module: ModuleType) -> list[str]:
    """Return the literal samples in a module's docstring: its indented blocks."""
    blocks: list[list[str]] = [[]]
    for line in (module.__doc__ or "").split("\n"):
        if line.startswith("    ") or not line.strip():
            blocks[-1].append(line)
        elif any(known.strip() for known in blocks[-1]):
            blocks.append([])
    texts = [textwrap.dedent("\n".join(block)).strip("\n") + "\n" for block in blocks]
    return [text for text in texts if text.strip()]


def source(name: str, data: bytes) -> list[SourceFile]:
    """Return one file as readers take them."""
    return [SourceFile(name, name, data)]


def sources(files: Mapping[str, bytes]) -> list[SourceFile]:
    """Return a folder as readers take it: sorted by name."""
    return [SourceFile(name, f"folder/{name}", data) for name, data in sorted(files.items())]


def assert_only_lasca_errors(read: Callable[[bytes], object], valid: bytes, *, max_examples: int = FEW) -> None:
    """Read the valid bytes, then mutations of them: nothing but a LascaError may come out."""
    read(valid)

    @_settings(max_examples)
    @given(mutated(valid))
    def attempt(data: bytes) -> None:
        with suppress(LascaError):
            read(data)

    attempt()


def assert_only_lasca_errors_in_files(
    read: Callable[[dict[str, bytes]], object], valid: Mapping[str, bytes], *, max_examples: int = FEW
) -> None:
    """As above for a folder: files are mutated, dropped, renamed, duplicated."""
    read(dict(valid))

    @_settings(max_examples)
    @given(_mutated_files(dict(valid)))
    def attempt(files: dict[str, bytes]) -> None:
        with suppress(LascaError):
            read(files)

    attempt()


def _settings(max_examples: int) -> settings:
    return settings(
        max_examples=max_examples,
        deadline=None,
        database=None,
        derandomize=max_examples <= FEW,
        suppress_health_check=list(HealthCheck),
    )


@st.composite
def mutated(draw: st.DrawFn, valid: bytes) -> bytes:
    """Draw a few mutations of a file, on bytes, on lines, or on JSON values where it is JSON."""
    data = valid
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["json", "json", "bytes", "lines", "replace", "cut"]))
        if kind == "json":
            data = _mutate_json(draw, data)
        elif kind == "lines":
            data = _mutate_lines(draw, data)
        elif kind == "cut":
            data = data[: draw(st.integers(0, len(data)))]
        else:
            at = draw(st.integers(0, len(data)))
            width = draw(st.integers(0, 4)) if kind == "bytes" else draw(st.integers(0, 60))
            new = draw(st.binary(min_size=width, max_size=width) if kind == "bytes" else st.sampled_from(SNIPPETS))
            data = data[:at] + new + data[at + width :]
    return data


def _mutate_lines(draw: st.DrawFn, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    at, to = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
    kind = draw(st.sampled_from(["drop", "double", "swap", "join"]))
    if kind == "drop":
        del lines[at]
    elif kind == "double":
        lines.insert(to, lines[at])
    elif kind == "swap":
        lines[at], lines[to] = lines[to], lines[at]
    else:
        lines[at] = lines[at].rstrip(b"\r\n")
    return b"".join(lines)


def _mutate_json(draw: st.DrawFn, data: bytes) -> bytes:
    """Replace, drop or double one value of a JSON file, or of one line of a JSON-lines file."""
    try:
        return json.dumps(_mutate_value(draw, json.loads(data))).encode()
    except (ValueError, RecursionError):
        pass
    lines = data.split(b"\n")
    at = draw(st.integers(0, len(lines) - 1))
    try:
        lines[at] = json.dumps(_mutate_value(draw, json.loads(lines[at]))).encode()
    except (ValueError, RecursionError):
        return data
    return b"\n".join(lines)


def _mutate_value(draw: st.DrawFn, value: Any) -> Any:
    value = copy.deepcopy(value)
    places: list[tuple[Any, Any]] = []
    _places(value, places)
    if not places:
        return draw(st.sampled_from(VALUES))
    holder, key = draw(st.sampled_from(places))
    kind = draw(st.sampled_from(["replace", "replace", "replace", "drop", "double", "move"]))
    if kind == "drop":
        del holder[key]
    elif kind == "double" and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    elif kind == "move":
        other, place = draw(st.sampled_from(places))
        holder[key] = copy.deepcopy(other[place])
    else:
        holder[key] = draw(st.sampled_from(VALUES))
    return value


def _places(value: Any, places: list[tuple[Any, Any]]) -> None:
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        places.append((value, key))
        _places(value[key], places)


@st.composite
def _mutated_files(draw: st.DrawFn, valid: dict[str, bytes]) -> dict[str, bytes]:
    files = dict(valid)
    for _ in range(draw(st.integers(1, 2))):
        if not files:
            break
        name = draw(st.sampled_from(sorted(files)))
        kind = draw(st.sampled_from(["mutate", "mutate", "mutate", "drop", "rename", "copy", "swap"]))
        if kind == "mutate":
            files[name] = draw(mutated(files[name]))
        elif kind == "drop":
            del files[name]
        elif kind == "swap":
            other = draw(st.sampled_from(sorted(files)))
            files[name], files[other] = files[other], files[name]
        else:
            new = draw(st.sampled_from(["x.txt", "a/b/c/d", "README", name + ".bak", name.split("/")[-1], "ß/" + name]))
            files[new] = files.pop(name) if kind == "rename" else files[name]
    return files

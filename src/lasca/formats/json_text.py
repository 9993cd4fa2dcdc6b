"""JSON from outside: whole files, JSON lines and long arrays, each value with the line it stands on.

Whatever is wrong becomes a FormatError with the line: broken JSON, nesting that is too deep, numbers with thousands
of digits, and half characters (a lone `\\ud800` escape), which no text can hold. NaN and Infinity are read as null.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lasca.formats.sources import SourceFile

__all__ = ["first_values", "loads", "parse_json", "parse_json_items", "parse_json_lines"]

DECODER = json.JSONDecoder(parse_constant=lambda name: None)
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
BLANK = re.compile(r"[ \t\r\n]*")


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

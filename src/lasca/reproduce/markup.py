"""The tiny markup of paragraphs – bold, code, links – read into pieces, and these written as Markdown or HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import quote

from markupsafe import Markup, escape

from lasca.report.text import clean

__all__ = ["Piece", "html_inline", "markdown_inline", "markdown_plain", "pieces", "tidy", "words"]

_ADDRESS = re.compile(r"https?://|(?![A-Za-z][A-Za-z0-9+.-]*:)[\w.#/]")
"""The web, or a place beside the page; not javascript: or data:."""
_RESERVED = "/:?#@!$&'*+,;=%~"
_PART = re.compile(
    r"\\(?P<escaped>[\\*`\[\]])"
    r"|`(?P<code>[^`]+)`"
    r"|\[(?P<words>(?:\\.|[^\]\\])+)\]\((?P<address>[^\s()]+)\)"
    r"|\*\*(?=\S)(?P<bold>(?:\\.|`[^`]+`|[^*`\\]|\*(?!\*))+)(?<=\S)\*\*",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\([\\*`\[\]])")
_BEGINS_A_BLOCK = re.compile(r"(#|[-+=]|\d+(?=[.)]))")
_MARKDOWN = re.compile(r"[\\`*\[\]|$~]|://|(?<=www)\.|(?<![^\W_])_|_(?![^\W_])", re.IGNORECASE)


@dataclass(frozen=True)
class Piece:
    """A run of text set in one way."""

    text: str
    bold: bool = False
    code: bool = False
    address: str = ""


def tidy(text: str) -> str:
    """Return one line of text without control characters, overrides of direction or halves of characters."""
    line = re.sub(r"\s+", " ", re.sub(r"[\ud800-\udfff]", "\ufffd", text)).strip()
    return " ".join(clean(line, len(line) + 1).split())


def pieces(text: str, bold: bool = False) -> Iterator[Piece]:
    """Read the markup; what is not well-formed stands for itself."""
    at = 0
    held = ""  # plain text so far
    for found in _PART.finditer(text):
        held += text[at : found.start()]
        at = found.end()
        if found["escaped"]:
            held += found["escaped"]
            continue
        if found["words"] and not _ADDRESS.match(found["address"]):
            held += found[0]
            continue
        if held:
            yield Piece(held, bold)
            held = ""
        if found["code"]:
            yield Piece(found["code"], bold, code=True)
        elif found["words"]:
            yield Piece(_ESCAPED.sub(r"\1", found["words"]), bold, address=found["address"])
        else:
            yield from pieces(found["bold"], True)
    held += text[at:]
    if held:
        yield Piece(held, bold)


def words(text: str) -> str:
    """Return the text without its markup."""
    return "".join(piece.text for piece in pieces(tidy(text)))


def _address(piece: Piece) -> str:
    return quote(piece.address, safe=_RESERVED)


def markdown_plain(text: str) -> str:
    """Return Markdown that shows the text as it is, also in a table."""
    safe = tidy(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN.sub(lambda found: "\\" + found[0], safe)


def _markdown_code(text: str) -> str:
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    room = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{room}{text}{room}{fence}"


def _markdown_piece(piece: Piece) -> str:
    if piece.code:
        return _markdown_code(piece.text)
    shown = _keep_ends(piece.text)
    return f"[{shown}]({_address(piece)})" if piece.address else shown


def _keep_ends(text: str) -> str:
    """Escape, but leave the spaces that part this piece from the next."""
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return before + markdown_plain(text) + after if text.strip() else text


def markdown_inline(text: str) -> str:
    """Write markup as one line of Markdown that cannot begin a block of another kind."""
    line = ""
    for bold, group in groupby(pieces(tidy(text)), key=lambda piece: piece.bold):
        inner = "".join(map(_markdown_piece, group))
        line += f"**{inner}**" if bold else inner
    number = _BEGINS_A_BLOCK.match(line)
    if number is None:
        return line
    head = number[0]
    return head + "\\" + line[len(head) :] if head.isdigit() else "\\" + line


def _html_piece(piece: Piece) -> Markup:
    if piece.code:
        return Markup("<code>{}</code>").format(piece.text)
    if piece.address:
        return Markup('<a href="{}">{}</a>').format(_address(piece), piece.text)
    return escape(piece.text)


def html_inline(text: str) -> Markup:
    """Write markup as HTML; everything else in it is escaped."""
    line = Markup("")
    for bold, group in groupby(pieces(tidy(text)), key=lambda piece: piece.bold):
        inner = Markup("").join(map(_html_piece, group))
        line += Markup("<strong>{}</strong>").format(inner) if bold else inner
    return line

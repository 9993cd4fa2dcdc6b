"""From text to tokens: the default rule, named rules, tokenisers of the user, and tokens found again in their text.

The default rule ("punctuation"): white space separates tokens and belongs to none. A run of letters, digits,
underscores and the marks on them is one token; every other character (punctuation, symbols, an emoji with all that
belongs to it) is a token of its own. Scripts that are written without spaces (Han, kana, Thai, Lao, Khmer, Burmese)
give one token per character. So `don't` is `don`, `'`, `t`, and `3.5` is `3`, `.`, `5`: fine enough that spans rarely
cut through a token.

"whitespace" takes every run without white space as a token, "characters" every grapheme that is not white space.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from lasca.align.units import graphemes
from lasca.errors import FormatError, ParameterError, excerpt

__all__ = ["Chars", "Tokenizer", "locate", "rising", "spelled", "tokenizer_of"]

Chars = list[tuple[int, int]]
"""Where tokens stand in their text: (start, end) in code points, half-open, in order."""

Tokenizer = Callable[[str], Sequence[tuple[int, int]] | Sequence[str]]
"""What a user may give: text to (start, end) pairs or to strings that occur in it in order."""

ASCII_TOKEN = re.compile(r"\w+|[^\w\s]")
WORD = re.compile(r"\S+")
UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # kana
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
)


def _punctuation(text: str) -> Chars:
    if text.isascii():
        return [match.span() for match in ASCII_TOKEN.finditer(text)]
    chars: Chars = []
    growing = False  # whether the last token is a word that may go on
    for start, end in _visible(text):
        first = text[start]
        growing = growing and chars[-1][1] == start
        word = (first.isalnum() or first == "_") and not _unspaced(first)
        if word and growing:
            chars[-1] = (chars[-1][0], end)
        else:
            chars.append((start, end))
        growing = word
    return chars


def _visible(text: str) -> Chars:
    """Return the graphemes without white space; a mark that was put on a blank stands for itself."""
    found = []
    for start, end in pairwise(graphemes(text)):
        while start < end and text[start].isspace():
            start += 1
        if start < end:
            found.append((start, end))
    return found


def _unspaced(ch: str) -> bool:
    code = ord(ch)
    return code >= UNSPACED[0][0] and any(low <= code <= high for low, high in UNSPACED)


def _whitespace(text: str) -> Chars:
    return [match.span() for match in WORD.finditer(text)]


NAMED: dict[str, Callable[[str], Chars]] = {
    "punctuation": _punctuation,
    "whitespace": _whitespace,
    "characters": _visible,
}


def tokenizer_of(tokenizer: str | Tokenizer | None) -> Callable[[str], Chars]:
    """Return the function from text to token positions: the default rule for None, a named rule, or the user's own."""
    if tokenizer is None:
        return _punctuation
    if isinstance(tokenizer, str):
        if tokenizer not in NAMED:
            allowed = "a function from text to tokens or one of " + ", ".join(repr(name) for name in NAMED)
            raise ParameterError("tokenizer", tokenizer, allowed)
        return NAMED[tokenizer]
    if not callable(tokenizer):
        raise ParameterError("tokenizer", tokenizer, "a function from text to tokens, or the name of a rule")
    own = tokenizer
    return lambda text: _checked(text, own(text))


def _checked(text: str, result: Any) -> Chars:
    """Turn what a user's tokeniser gave into positions, or say what is wrong with it."""
    pieces = list(result)
    if all(isinstance(piece, str) for piece in pieces):
        found = locate(pieces, text)
        if found is None:
            raise ParameterError("tokenizer", excerpt(pieces), "a function whose tokens occur in the text in order")
        return [span for span, piece in zip(found, pieces) if piece.strip()]
    try:
        chars = [(int(start), int(end)) for start, end in pieces]
    except (TypeError, ValueError) as error:
        raise ParameterError("tokenizer", excerpt(pieces), "a function to (start, end) pairs or strings") from error
    if not rising(chars, len(text)):
        raise ParameterError("tokenizer", excerpt(chars), "a function to rising (start, end) pairs inside the text")
    return [(start, end) for start, end in chars if text[start:end].strip()]


def rising(chars: Sequence[tuple[int, int]], length: int) -> bool:
    """Say whether positions rise without overlapping and stay inside a text of this length."""
    at = 0
    for start, end in chars:
        if not at <= start <= end <= length:
            return False
        at = end
    return True


def locate(tokens: Sequence[str], text: str) -> Chars | None:
    """Return where these tokens stand in the text, one after the other, or None if they do not."""
    chars: Chars = []
    at = 0
    for token in tokens:
        start = text.find(token, at)
        if start < 0 or text[at:start].strip():
            return None
        at = start + len(token)
        chars.append((start, at))
    return chars


def spelled(tokens: Sequence[str]) -> tuple[str, Chars]:
    """Return a text for tokens that came without one: joined by blanks, with their positions."""
    if not all(isinstance(token, str) for token in tokens):
        raise FormatError("a token is not a string", got=tokens)
    chars: Chars = []
    at = 0
    for token in tokens:
        chars.append((at, at + len(token)))
        at += len(token) + 1
    return " ".join(tokens), chars

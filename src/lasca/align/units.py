"""Offsets in code points, UTF-16 units, graphemes or bytes, from 0 or from 1, and which of them a file uses.

Python counts code points, JavaScript and Java count UTF-16 units (an emoji is two), Go and Rust bytes (UTF-8), and some
tools count what a reader sees as one character (a grapheme: a letter with its accents, a flag, a family emoji).
Everything inside LASCA is in code points; `to_codepoints` converts. Ends are behind the last character; `infer_ends`
finds out where they are on it, or offsets begin at 1.

Graphemes follow the rules of Unicode's UAX #29 as far as the character categories of the standard library carry:
combining marks, variation selectors, skin tones and tags join what stands before them, a zero-width joiner joins both
sides where the right one is a pictograph, flags are pairs of regional indicators, Hangul letters form syllables, and
CR LF is one. (Not covered: the few "prepended" marks, and Indic conjuncts.)
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from lasca.errors import FormatError, excerpt
from lasca.estimator import check_choice

__all__ = ["UNITS", "Quote", "check_unit", "from_codepoint", "graphemes", "infer_ends", "infer_unit",
           "refuse_cuts", "same_words", "to_codepoints"]  # fmt: skip

UNITS = ("codepoint", "utf16", "grapheme", "utf8")
CLEAR, FEW = 0.9, 5  # share of spans, and number of them, that must bear out what nobody expects
QUOTED = 2  # number of them, where the words are quoted
MANY = 1000  # spans that are asked
ENDS = {
    (0, 1): "their ends are on the last character and not behind it",
    (-1, 0): "they begin at 1, and their ends are on the last character",
    (-1, -1): "they begin at 1",
}


def check_unit(unit: str) -> str:
    """Return the unit, "auto" included, or say what is allowed."""
    return check_choice("unit", unit, ("auto", *UNITS))


def graphemes(text: str) -> list[int]:
    """Return where each grapheme begins, and at the end the length of the text."""
    if text.isascii() and "\r" not in text:
        return list(range(len(text) + 1))
    starts = [0] if text else []
    flags = 0  # how many regional indicators stand right before
    for i in range(1, len(text)):
        before, here = text[i - 1], text[i]
        flags = flags + 1 if _is_flag(before) else 0
        if not _joins(before, here, flags):
            starts.append(i)
    return [*starts, len(text)]


def _is_flag(ch: str) -> bool:
    return "\U0001f1e6" <= ch <= "\U0001f1ff"


def _joins(before: str, here: str, flags: int) -> bool:
    """Say whether there is no grapheme border between two characters."""
    if before == "\r" and here == "\n":
        return True
    if before in "\r\n\x85\u2028\u2029" or unicodedata.category(before) == "Cc":
        return False
    if here == "\u200d" or unicodedata.category(here) in ("Mn", "Me", "Mc"):
        return True
    if "\U0001f3fb" <= here <= "\U0001f3ff" or "\U000e0020" <= here <= "\U000e007f" or "\uff9e" <= here <= "\uff9f":
        return True
    if before == "\u200d":
        return unicodedata.category(here) == "So" or here >= "\U0001f000"
    if _is_flag(before) and _is_flag(here):
        return flags % 2 == 1
    left, right = _hangul(before), _hangul(here)
    return (left == "L" and right in ("L", "V", "S", "SC")) or (
        (left in ("V", "S") and right in ("V", "T")) or (left in ("T", "SC") and right == "T")
    )


def _hangul(ch: str) -> str:
    """Return the syllable part of a Hangul character: L, V, T, S (a syllable that is open) or SC (closed), or ""."""
    code = ord(ch)
    if 0x1100 <= code <= 0x115F or 0xA960 <= code <= 0xA97C:
        return "L"
    if 0x1160 <= code <= 0x11A7 or 0xD7B0 <= code <= 0xD7C6:
        return "V"
    if 0x11A8 <= code <= 0x11FF or 0xD7CB <= code <= 0xD7FB:
        return "T"
    if 0xAC00 <= code <= 0xD7A3:
        return "S" if (code - 0xAC00) % 28 == 0 else "SC"
    return ""


def _starts(text: str, unit: str) -> list[int]:
    """Return where each character begins in UTF-16 units or bytes, and where the text ends."""
    starts = [0]
    for ch in text:
        wide = 1 + (ch > "\uffff") if unit == "utf16" else 1 + (ch > "\x7f") + (ch > "\u07ff") + (ch > "\uffff")
        starts.append(starts[-1] + wide)
    return starts


def to_codepoints(text: str, unit: str) -> Callable[[int], int | None]:
    """Return the function from offsets in `unit` to code points; None for an offset outside or inside a character."""
    length = len(text)
    if unit == "grapheme":
        borders = graphemes(text)
        return lambda offset: borders[offset] if 0 <= offset < len(borders) else None
    if not text.isascii() and (unit == "utf8" or (unit == "utf16" and max(text) > "\uffff")):
        starts = _starts(text, unit)

        def convert(offset: int) -> int | None:
            at = bisect_left(starts, offset)
            return at if at < len(starts) and starts[at] == offset else None

        return convert
    return lambda offset: offset if 0 <= offset <= length else None


def from_codepoint(text: str, unit: str) -> Callable[[int], int]:
    """Return the function from code points to offsets in `unit` (inside a grapheme: that of its beginning)."""
    if unit == "grapheme":
        borders = graphemes(text)
        return lambda at: bisect_left(borders, at + 1) - 1
    if unit in ("utf16", "utf8") and not text.isascii():
        starts = _starts(text, unit)
        return lambda at: starts[at]
    return lambda at: at


@dataclass(frozen=True)
class Quote:
    """A span as a file gives it: offsets in an unknown unit, the text it says stands there (if any), and the place."""

    text: str
    start: int
    end: int
    quoted: str | None
    where: str


def infer_unit(
    quotes: Iterable[Quote], borders: Callable[[str], Sequence[tuple[int, int]]], *, path: str
) -> tuple[str, str | None]:
    """Return the unit the offsets of one file are in, and a sentence on how it is known (None: it makes no difference).

    Quoted text decides. Where nothing is quoted, the unit under which most span edges fall on the borders of tokens
    (`borders` gives those of a text) is taken, code points if they are as good as any, and bytes only if nearly all
    edges do. Quotes that contradict each other, or more than half of them fitting no unit, are an error.
    """
    against: dict[str, Quote] = {}  # unit -> a quote it does not fit
    agreed, n_quoted, n_bytes, misses, unquoted = set(UNITS[:3]), 0, 0, [], []
    for quote, readings in _readings(quotes):
        if quote.quoted is None:
            if len(set(readings.values())) > 1:
                unquoted.append((quote, readings))
            continue
        n_quoted += 1
        n_bytes += _stands(quote, readings["utf8"])
        fitting = {unit for unit in UNITS[:3] if _stands(quote, readings[unit])}
        if not fitting:
            misses.append((quote, readings))
            continue
        for unit in set(UNITS[:3]) - fitting:
            against.setdefault(unit, quote)
        agreed &= fitting
    if len(misses) * 2 > n_quoted and n_bytes >= CLEAR * n_quoted:
        return "utf8", "offsets are counted in bytes, as the quoted texts show"
    if not agreed:
        raise _mixed(against, path)
    if len(misses) * 2 > n_quoted:
        raise _unfit(*misses[0], path)
    if len(agreed) < len(UNITS[:3]):
        unit = next(unit for unit in UNITS if unit in agreed)
        return unit, None if unit == "codepoint" else f"offsets are counted in {unit} units, as the quoted texts show"
    return _by_borders(unquoted, borders)


def infer_ends(
    quotes: Iterable[Quote], borders: Callable[[str], Sequence[tuple[int, int]]]
) -> tuple[int, int, str | None]:
    """Return what to add to starts and ends so that they are as everywhere else, and a sentence if that is anything.

    The words that are quoted must say so for nearly all spans, or, where nothing is quoted, the borders of tokens.
    """
    hits, blank = dict.fromkeys(((0, 0), *ENDS), 0), dict.fromkeys(ENDS, 0)
    known: dict[str, tuple[set[int], set[int]]] = {}
    spans = list(islice(quotes, MANY))
    by_quote = any(quote.quoted for quote in spans)
    spans = [quote for quote in spans if bool(quote.quoted) == by_quote]
    for quote, readings in _readings(spans):
        text = quote.text
        if not by_quote and text not in known:
            chars = borders(text)
            known[text] = ({start for start, _ in chars}, {end for _, end in chars})
        for shift in hits:
            start, end = max(quote.start + shift[0], 0), max(quote.end + shift[1], 0)
            there = text[start:end]
            if shift in blank:
                blank[shift] += there != there.strip()
            if by_quote and shift == (0, 0):
                hits[shift] += any(_stands(quote, readings[unit]) for unit in UNITS[:3])
            elif by_quote:
                hits[shift] += bool(there) and same_words(there, quote.quoted or "")
            elif there.strip():
                start, end = start + len(there) - len(there.lstrip()), end - len(there) + len(there.rstrip())
                hits[shift] += start in known[text][0] and end in known[text][1]
    best = max(ENDS, key=lambda shift: (hits[shift], -blank[shift]))
    if (
        len(spans) < (QUOTED if by_quote else FEW)
        or hits[0, 0] > (1 - CLEAR) * len(spans)
        or hits[best] < CLEAR * len(spans)
    ):
        return 0, 0, None
    how = "the quoted texts" if by_quote else "the borders of words"
    return *best, f"offsets are read as {how} of {hits[best]:,} of {len(spans):,} spans show: {ENDS[best]}"


Readings = dict[str, tuple[int, int] | None]
"""Where a span stands, in code points, if its offsets are in this or that unit; None: nowhere."""


def _readings(quotes: Iterable[Quote]) -> Iterable[tuple[Quote, Readings]]:
    text, converters = None, {}
    for quote in quotes:
        if quote.text != text:
            text = quote.text
            converters = {unit: to_codepoints(text, unit) for unit in (UNITS if _differs(text) else UNITS[:1])}
        readings: Readings = {}
        for unit, convert in converters.items():
            start, end = convert(quote.start), convert(quote.end)
            readings[unit] = None if start is None or end is None or start > end else (start, end)
        yield quote, readings if len(readings) > 1 else dict.fromkeys(UNITS, readings["codepoint"])


def _differs(text: str) -> bool:
    """Say whether the units count this text differently: CR LF is one grapheme."""
    return not text.isascii() or "\r\n" in text


def _stands(quote: Quote, span: tuple[int, int] | None) -> bool:
    return span is not None and same_words(quote.text[span[0] : span[1]], quote.quoted or "")


def same_words(a: str, b: str) -> bool:
    """Say whether two texts are the same but for white space (tools write line breaks in several ways)."""
    return a == b or a.split() == b.replace("\\n", "\n").split()


def _by_borders(
    quotes: Sequence[tuple[Quote, Readings]], borders: Callable[[str], Sequence[tuple[int, int]]]
) -> tuple[str, str | None]:
    hits = dict.fromkeys(UNITS, 0)
    known: dict[str, tuple[set[int], set[int]]] = {}
    for quote, readings in quotes:
        if quote.text not in known:
            chars = borders(quote.text)
            known[quote.text] = ({start for start, _ in chars}, {end for _, end in chars})
        starts, ends = known[quote.text]
        for unit, span in readings.items():
            if span is not None:
                hits[unit] += (span[0] in starts) + (span[1] in ends)
    if len(quotes) < FEW or hits["utf8"] < CLEAR * 2 * len(quotes):
        hits.pop("utf8")
    if not quotes or len(set(hits.values())) == 1:
        return "codepoint", None
    best = max(hits, key=lambda unit: (hits[unit], -UNITS.index(unit)))
    if best == "codepoint" and len({hits[unit] for unit in UNITS[:3]}) == 1:
        return best, None
    counts = ", ".join(f"{unit} {n}" for unit, n in hits.items())
    return best, (
        f"offsets are taken as {best} units: nothing is quoted, but of {2 * len(quotes)} span edges so many fall on "
        f"token borders: {counts}. Give unit= if that is wrong"
    )


def refuse_cuts(
    spans: Iterable[Quote], unit: str, borders: Callable[[str], Sequence[tuple[int, int]]], *, path: str
) -> None:
    """Refuse offsets of which nothing is quoted if most of the spans begin or end inside of a word.

    So they do if offsets count tokens, or the text was changed after it was labelled.
    """
    found, cut, few = 0, list[Quote](), True
    known: dict[str, set[int | None]] = {}
    words: dict[str, int] = {}
    for quote in islice(spans, MANY):
        if quote.quoted is not None:
            continue
        found += 1
        if quote.text not in known:
            chars = borders(quote.text)
            inside: set[int | None] = {at for start, end in chars for at in range(start + 1, end)}
            known[quote.text] = inside
            words[quote.text] = len(chars)
        few &= quote.end <= words[quote.text]
        convert = to_codepoints(quote.text, unit)
        start, end = convert(quote.start), convert(quote.end)
        if {start, end} & known[quote.text] or not quote.text[start:end].strip():
            cut.append(quote)
    places = {(quote.text, quote.start, quote.end) for quote in cut}  # all may be numbers of words, if these suffice
    if (len(places) < QUOTED if few else len(cut) < FEW) or 2 * len(cut) <= found:
        return
    text, convert = cut[0].text, to_codepoints(cut[0].text, unit)
    raise FormatError(
        f"{len(cut):,} of {found:,} spans begin or end inside of a word: offsets may count tokens, or the text was "
        "changed after it was labelled",
        path=cut[0].where or path,
        got=f"{cut[0].start}-{cut[0].end}, {excerpt(text[convert(cut[0].start) : convert(cut[0].end)], 40)!r} in "
        f"{excerpt(text, 40)!r}",
        hint="If they are right, cut tokens there with partial=split (on the command line: -r partial=split), or name "
        f"their unit: unit={unit} (on the command line: -r unit={unit})",
    )


def _shown(quote: Quote) -> str:
    return f"{quote.where}: {quote.start}-{quote.end} is said to be {excerpt(quote.quoted or '', 30)!r}"


def _mixed(against: dict[str, Quote], path: str) -> FormatError:
    """Make the error that shows two quotes that no one unit can explain."""
    shown = list(dict.fromkeys(_shown(quote) for quote in against.values()))
    return FormatError(
        "the offsets are counted in different units within one file: " + ", but ".join(shown[:2]),
        path=path,
        hint="Say which is right: unit=codepoint, utf16, grapheme or utf8 (on the command line: -r unit=utf16)",
    )


def _unfit(quote: Quote, readings: Readings, path: str) -> FormatError:
    there = {f"{excerpt(quote.text[span[0] : span[1]], 30)!r}" for span in readings.values() if span is not None}
    return FormatError(
        f"most quoted texts do not stand at their offsets, however these are counted: {_shown(quote)}",
        path=path,
        got=" or ".join(sorted(there)) or "nothing",
        hint="The text was changed after it was annotated, or the offsets belong to another text",
    )

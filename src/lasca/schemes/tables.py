"""The tables of the schemes, and one sequence at a time: spans, tags, conversion, repair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from lasca.arrays import Bools
from lasca.errors import CorpusError, ParameterError
from lasca.estimator import check_choice

__all__ = ["OUTSIDE", "SCHEMES", "Scheme", "complete_labels", "convert", "detect", "detect_in_pairs", "detect_labels",
           "is_legal", "parts_of", "repair", "scheme_of", "spans", "split_label", "tags", "transitions"]  # fmt: skip

OUTSIDE = "O"
Span = tuple[int, int, str]


@dataclass(frozen=True)
class Scheme:
    """A tag scheme. `letters` maps the letter it writes to its part: B(egin), I(nside), E(nd), S(ingle).

    `needs` are the parts that must follow one of `feeds` with the same type; `unfinished` are the parts behind which
    a span must go on.
    """

    name: str
    letters: dict[str, str]
    needs: str = ""
    feeds: str = ""
    unfinished: str = ""

    def parse(self, label: str) -> tuple[str, str]:
        """Return the part (B, I, E, S or "" for O) and the type of a label."""
        letter, type_ = split_label(label)
        if letter and letter not in self.letters:
            raise ParameterError("label", label, f"O or one of {', '.join(self.letters)} with a type ({self.name})")
        return (self.letters[letter] if letter else ""), type_

    def label(self, part: str, type_: str) -> str:
        """Return the label of a part (B, I, E, S or "" for O) and a type."""
        if not part:
            return OUTSIDE
        letter = next(letter for letter, own in self.letters.items() if own == part)
        return f"{letter}-{type_}" if type_ else letter

    def part(self, begins: bool, ends: bool, behind_same: bool) -> str:
        """Return the part of a token in a span that begins or ends there; `behind_same`: right behind its own type."""
        if "S" in self.letters.values():
            return "S" if begins and ends else "B" if begins else "E" if ends else "I"
        if self.name == "IO" or not begins:
            return "I"
        return "B" if self.name == "IOB2" or behind_same else "I"

    def allows(self, left: str, right: str) -> bool:
        """Say whether one label may follow another."""
        (a, a_type), (b, b_type) = self.parse(left), self.parse(right)
        if b and b in self.needs:
            return bool(a) and a in self.feeds and a_type == b_type
        return not (a and a in self.unfinished)


_BIOES: dict[str, Any] = {"needs": "IE", "feeds": "BI", "unfinished": "BI"}
SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        Scheme("IO", {"I": "I"}),
        Scheme("IOB1", {"B": "B", "I": "I"}, needs="B", feeds="BI"),
        Scheme("IOB2", {"B": "B", "I": "I"}, needs="I", feeds="BI"),
        Scheme("BIOES", {"B": "B", "I": "I", "E": "E", "S": "S"}, **_BIOES),
        Scheme("BILOU", {"B": "B", "I": "I", "L": "E", "U": "S"}, **_BIOES),
        Scheme("BMES", {"B": "B", "M": "I", "E": "E", "S": "S"}, **_BIOES),
    )
}


def split_label(label: str) -> tuple[str, str]:
    """Split "B-PER" into ("B", "PER"), "B" into ("B", ""); O becomes ("", ""). Unlike labels raise ParameterError."""
    if label == OUTSIDE:
        return "", ""
    if label[:1] in ("B", "I", "E", "S", "L", "U", "M") and (len(label) == 1 or (label[1] == "-" and len(label) > 2)):
        return label[0], label[2:]
    raise ParameterError("label", label, "O, or a letter of a tag scheme, or letter-type such as B-PER")


def parts_of(label: str) -> tuple[str, str] | None:
    """Split a label as `split_label` does; None if it is of no tag scheme."""
    try:
        return split_label(label)
    except ParameterError:
        return None


def detect(labels: Iterable[str], sequences: Iterable[Sequence[str | None]] = ()) -> str | None:
    """Return the name of the tag scheme of these labels, or None if they are of no scheme.

    Labels alone cannot tell IOB1 from IOB2: with B and I, IOB2 is taken unless `sequences` show that B is only used
    behind a span of the same type. With I alone it is IO (which then is the same as IOB1).
    """
    return detect_in_pairs(labels, (pair for sequence in sequences for pair in pairwise([None, *sequence])))


def detect_in_pairs(labels: Iterable[str], pairs: Iterable[tuple[str | None, str | None]]) -> str | None:
    """Return what `detect` does, given which labels follow each other; None: the border, or no label."""
    by_labels = detect_labels(list(dict.fromkeys(labels)))
    if by_labels != "IOB2":
        return by_labels
    first, behind, inside_first = False, False, False
    for left, label in pairs:
        before, here = (("", "") if name is None else split_label(name) for name in (left, label))
        same = bool(before[0]) and before[1] == here[1]
        if here[0] == "B":
            first, behind = first or not same, behind or same
        elif here[0] == "I" and not same:
            inside_first = True
    return "IOB1" if behind and inside_first and not first else "IOB2"


def detect_labels(names: Sequence[str]) -> str | None:
    """Return the scheme as far as labels alone tell it."""
    parts = [part for name in names if (part := parts_of(name)) is not None]
    if not names or len(parts) < len(names):
        return None
    letters = {letter for letter, _ in parts} - {""}
    if letters <= {"I"}:
        return "IO"
    for scheme in ("IOB2", "BIOES", "BILOU", "BMES"):
        if letters <= set(SCHEMES[scheme].letters):
            return scheme
    return None


def transitions(labels: Sequence[str], scheme: str | None = "auto") -> tuple[Bools, Bools, Bools]:
    """Return which labels may come first, which may follow which (row, then column), and which may come last.

    Labels without a scheme may stand anywhere. So may labels of which no legal sequence of every length can be made
    (BIOES with neither O nor a single S-): a model must always have a path.
    """
    n = len(labels)
    name = detect(labels) if scheme == "auto" else scheme
    if name is None:
        return np.ones(n, np.bool_), np.ones((n, n), np.bool_), np.ones(n, np.bool_)
    table = scheme_of(name)
    parts = [table.parse(label)[0] for label in labels]
    start = np.array([not part or part not in table.needs for part in parts], np.bool_)
    end = np.array([not part or part not in table.unfinished for part in parts], np.bool_)
    allowed = np.array([[table.allows(a, b) for b in labels] for a in labels], np.bool_).reshape(n, n)
    if n and not (start & end & np.diag(allowed)).any():
        return np.ones(n, np.bool_), np.ones((n, n), np.bool_), np.ones(n, np.bool_)
    return start, allowed, end


def scheme_of(name: object) -> Scheme:
    """Return the table of a scheme, or say which there are."""
    return SCHEMES[check_choice("scheme", name, SCHEMES)]


def spans(labels: Sequence[str | None]) -> list[Span]:
    """Read the spans of one sequence in any scheme; illegal tags are read as the module's docstring says."""
    found: list[Span] = []
    open_at, left, left_type = -1, "", ""
    for i, label in enumerate(labels):
        letter, type_ = ("", "") if label is None else split_label(label)
        if open_at >= 0 and _breaks(left, left_type, letter, type_):
            found.append((open_at, i, left_type))
            open_at = -1
        if letter and open_at < 0:
            open_at = i
        left, left_type = letter, type_
    if open_at >= 0:
        found.append((open_at, len(labels), left_type))
    return found


def _breaks(left: str, left_type: str, letter: str, type_: str) -> bool:
    return letter in ("", "B", "S", "U") or left in ("E", "L", "S", "U") or type_ != left_type


def tags(found: Iterable[Span], n: int, scheme: str = "IOB2") -> list[str]:
    """Write spans as the tags of a sequence of n tokens. Spans that overlap or lie outside are an error."""
    table = scheme_of(scheme)
    result = [OUTSIDE] * n
    last_stop, last_type = 0, ""
    for start, stop, type_ in sorted(found):
        if not last_stop <= start < stop <= n:
            raise CorpusError(
                "spans must lie behind each other inside the sequence", where=f"{n} tokens", got=(start, stop, type_)
            )
        same = start == last_stop and start > 0 and type_ == last_type
        for i in range(start, stop):
            result[i] = table.label(table.part(i == start, i == stop - 1, same), type_)
        last_stop, last_type = stop, type_
    return result


def convert(labels: Sequence[str | None], to: str) -> list[str | None]:
    """Write one sequence in another scheme; missing labels (None) stay missing."""
    written = tags(spans(labels), len(labels), to)
    return [None if old is None else new for old, new in zip(labels, written)]


def repair(labels: Sequence[str | None], scheme: str) -> tuple[list[str | None], int]:
    """Return legal tags with the same spans, and how many tags had to change."""
    fixed = convert(labels, scheme)
    return fixed, sum(a != b for a, b in zip(labels, fixed))


def is_legal(labels: Sequence[str | None], scheme: str) -> bool:
    """Say whether the tags of one sequence are legal in a scheme (around missing labels: as at the border)."""
    return repair(labels, scheme)[1] == 0


def complete_labels(labels: Iterable[str], scheme: str) -> tuple[str, ...]:
    """Return the labels, sorted, with every label the scheme needs for their types, and O."""
    table = scheme_of(scheme)
    types = {split_label(label)[1] for label in labels if label != OUTSIDE}
    return tuple(sorted({OUTSIDE} | {table.label(part, t) for t in types for part in table.letters.values()}))

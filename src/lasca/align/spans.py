"""Spans over characters to labels over tokens, and back.

White space at the edges of a span is trimmed. A span that cuts through a token takes all of it (`partial="expand"`),
none of it ("shrink": a token takes a label only if all its characters are marked), or is refused ("error"); with
"split" tokens were cut at the edges of spans before (see `cut_tokens`), so that none is left to cut. Spans that share a
token are refused (`overlap="error"`), or the longest wins ("longest"; then the one that begins first), or
the one that begins first ("first"; then the longest). None of this depends on the order of the spans.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from lasca.errors import FormatError, excerpt
from lasca.estimator import check_choice

__all__ = ["OVERLAP", "PARTIAL", "TAGGING", "Span", "by_layer", "check_choices", "cut_tokens", "label_spans",
           "spans_to_labels"]  # fmt: skip

PARTIAL = ("expand", "shrink", "error", "split")
OVERLAP = ("error", "longest", "first", "layers", "depth")
TAGGING = ("iob2", "plain")


@dataclass(frozen=True)
class Span:
    """A marked stretch of text: code points, half-open; `where` says where it was read."""

    start: int
    end: int
    label: str
    where: str = ""
    score: float | None = None
    """How sure who marked it was, where that is known."""


@dataclass(frozen=True)
class _Placed:
    """A span with the tokens it covers, first to last (exclusive)."""

    first: int
    last: int
    span: Span


def check_choices(partial: str, overlap: str, tagging: str) -> None:
    """Refuse a choice that does not exist."""
    check_choice("partial", partial, PARTIAL)
    check_choice("overlap", overlap, OVERLAP)
    check_choice("tagging", tagging, TAGGING)


def spans_to_labels(
    spans: Iterable[Span],
    chars: Sequence[tuple[int, int]],
    text: str,
    *,
    partial: str = "expand",
    overlap: str = "error",
    tagging: str = "iob2",
    count: Callable[..., Any] | None = None,
) -> list[str]:
    """Return one label per token: `B-`/`I-` and `O` ("iob2"), or the label itself and `O` ("plain").

    `chars` are the positions of the tokens in the text. `count(kind, 1, example)` is told what was changed or left
    out: "trimmed", "expanded", "shrunk", "empty spans", "repeated spans", "overlapping".
    """
    check_choices(partial, overlap, tagging)
    tell = count or (lambda kind, n, example: None)
    placed = [p for span in spans if (p := _place(span, chars, text, partial, tell)) is not None]
    labels = ["O"] * len(chars)
    for p in _without_overlap(placed, text, overlap, tell):
        if tagging == "plain":
            labels[p.first : p.last] = [p.span.label] * (p.last - p.first)
        else:
            labels[p.first] = "B-" + p.span.label
            labels[p.first + 1 : p.last] = ["I-" + p.span.label] * (p.last - p.first - 1)
    return labels


def _shown(span: Span, text: str) -> str:
    return f"{span.where}: {span.label} {span.start}-{span.end} {excerpt(text[span.start : span.end], 40)!r}"


def _place(
    span: Span, chars: Sequence[tuple[int, int]], text: str, partial: str, tell: Callable[..., Any]
) -> _Placed | None:
    """Trim a span and find its tokens; None if none is left."""
    if not 0 <= span.start <= span.end <= len(text):
        raise FormatError(
            f"a span lies outside its text, which has {len(text)} characters",
            path=span.where or None,
            got=f"{span.label} {span.start}-{span.end}",
        )
    marked = text[span.start : span.end]
    start = span.start + len(marked) - len(marked.lstrip())
    end = max(span.end - (len(marked) - len(marked.rstrip())), start)
    if start == end:
        tell("empty spans", 1, _shown(span, text))
        return None
    if (start, end) != (span.start, span.end):
        tell("trimmed", 1, _shown(span, text))
    first = bisect_right(chars, start, key=lambda c: c[1])
    last = bisect_left(chars, end, key=lambda c: c[0])
    if first >= last:
        tell("empty spans", 1, _shown(span, text))
        return None
    cut_left, cut_right = chars[first][0] < start, chars[last - 1][1] > end
    if not cut_left and not cut_right:
        return _Placed(first, last, span)
    if partial == "error":
        raise FormatError(
            "a span cuts through a token",
            path=span.where or None,
            got=f"{marked!r} in {text[chars[first][0] : chars[last - 1][1]]!r}",
            hint="Set partial=expand or partial=shrink (on the command line: -r partial=expand), or another tokenizer",
        )
    tell("shrunk" if partial == "shrink" else "expanded", 1, _shown(span, text))
    if partial == "shrink":
        cut_both = first == last - 1 and cut_left and cut_right
        first, last = first + cut_left, last - (cut_right and not cut_both)
    return _Placed(first, last, span) if first < last else None


def _without_overlap(placed: list[_Placed], text: str, overlap: str, tell: Callable[..., Any]) -> list[_Placed]:
    """Return spans of which no two share a token."""

    def rank(p: _Placed) -> tuple[int, int, str]:
        start, shorter = p.span.start, p.span.start - p.span.end
        return (shorter, start, p.span.label) if overlap == "longest" else (start, shorter, p.span.label)

    taken: dict[int, _Placed] = {}
    kept: list[_Placed] = []
    for p in sorted(placed, key=rank):
        rival = next((taken[t] for t in range(p.first, p.last) if t in taken), None)
        if rival is None:
            kept.append(p)
            taken.update(dict.fromkeys(range(p.first, p.last), p))
        elif (rival.first, rival.last, rival.span.label) == (p.first, p.last, p.span.label):
            tell("repeated spans", 1, _shown(p.span, text))
        elif overlap == "error":
            raise _refused(rival.span, p.span, text)
        else:
            tell("overlapping", 1, _shown(p.span, text))
    return kept


def _refused(first: Span, second: Span, text: str) -> FormatError:
    """Say of two spans whether they overlap, or only share a token."""
    both = " and ".join(
        _shown(span if first.where != second.where else replace(span, where=""), text).removeprefix(": ")
        for span in (first, second)
    )
    keep = "overlap=longest (on the command line: -r overlap=longest), or first, keeps one of them"
    if first.end <= second.start or second.end <= first.start:
        return FormatError(
            f"two spans share a token, though no character: {both}",
            path=second.where or None,
            hint="Set partial=split to cut tokens at the edges of spans (on the command line: -r partial=split), or "
            f"partial=shrink, or another tokenizer; {keep}",
        )
    return FormatError(
        f"two spans overlap: {both}",
        path=second.where or None,
        hint=f"Choose: {keep} and counts what it leaves out; overlap=layers keeps all, a corpus for each label",
    )


def cut_tokens(chars: Sequence[tuple[int, int]], spans: Iterable[Span], text: str) -> list[tuple[int, int]]:
    """Cut tokens wherever a span begins or ends inside them.

    >>> cut_tokens([(0, 5), (6, 8)], [Span(2, 5, "X")], "abcde fg")
    [(0, 2), (2, 5), (6, 8)]
    """
    edges = sorted({edge for span in spans for edge in (span.start, span.end)})
    cut: list[tuple[int, int]] = []
    for start, end in chars:
        inside = edges[bisect_right(edges, start) : bisect_left(edges, end)]
        pieces = list(pairwise([start, *inside, end]))
        cut += [(a, b) for a, b in pieces if text[a:b].strip()]
    return cut


def by_layer(groups: Sequence[Sequence[Span]], chars: Sequence[Sequence[tuple[int, int]]], how: str) -> list[list[str]]:
    """Return the layer of every span in groups (what one annotator marked in one text), so that none overlaps another.

    "layers" gives each label its own, and "LABEL (2)", … to spans of one label that overlap; "depth" counts layers
    "1", "2", … from the longest spans inwards.
    """
    found: list[list[str]] = []
    for spans, tokens in zip(groups, chars):
        taken: dict[str, set[int]] = {}
        same: dict[tuple[int, int, str], str] = {}  # a span marked twice stays in its layer, where it is counted
        names = [""] * len(spans)
        order = sorted(range(len(spans)), key=lambda i: (spans[i].start - spans[i].end, spans[i].start, spans[i].label))
        for i in order:
            span = spans[i]
            first = bisect_right(tokens, span.start, key=lambda c: c[1])
            covered = set(range(first, bisect_left(tokens, span.end, key=lambda c: c[0])))
            key = (min(covered, default=-1), max(covered, default=-1), span.label)
            if key in same:
                names[i] = same[key]
                continue
            depth = 1
            while True:
                name = str(depth) if how == "depth" else span.label if depth == 1 else f"{span.label} ({depth})"
                if not taken.setdefault(name, set()) & covered:
                    break
                depth += 1
            taken[name] |= covered
            names[i] = same[key] = name
        found.append(names)
    return found


def label_spans(labels: Sequence[str | None], chars: Sequence[tuple[int, int]]) -> list[tuple[Span, int, int]]:
    """Return the spans of a sequence of labels with the tokens they cover, first to last (exclusive).

    `B-X`, `I-X` (also `S-`, `E-`) form spans of X, where `B-` and `S-` begin a new one; any other label but `O` forms
    spans of equal neighbours only if it carries no prefix: each such token is a span of its own.
    """
    found: list[tuple[Span, int, int]] = []
    open_label: str | None = None
    for t, label in enumerate(labels):
        prefix, kind = _split(label)
        if kind is None:
            open_label = None
        elif prefix in "IE" and prefix and open_label == kind:
            span, first, _ = found[-1]
            found[-1] = (Span(span.start, chars[t][1], kind), first, t + 1)
        else:
            found.append((Span(chars[t][0], chars[t][1], kind), t, t + 1))
            open_label = kind if prefix else None
    return found


def _split(label: str | None) -> tuple[str, str | None]:
    if label is None or label == "O":
        return "", None
    if label[1:2] == "-" and label[0] in "BIESLU" and len(label) > 2:
        return label[0].translate(str.maketrans("LU", "ES")), label[2:]
    return "", label

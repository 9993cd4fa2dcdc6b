"""Example sequences: words over their labels; ambiguous ones stand out with the labels that compete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lasca.reproduce.drawing import Drawing, shorten, text_width

__all__ = ["tagged_sequences"]

WIDTH = 760
_Token = tuple[str, str, tuple[str, ...], bool]
_LEFT, _GAP = 36.0, 5.0


def _width(token: _Token) -> float:
    word, label, others, ambiguous = token
    widths = [text_width(word, 14, bold=ambiguous), text_width(label, 11)]
    widths += [text_width(f"or {other}", 11) for other in others]
    return max(max(widths) + 10, 20)


def _lines(tokens: Sequence[_Token]) -> Iterator[list[_Token]]:
    line: list[_Token] = []
    room = WIDTH - _LEFT - 14
    for token in tokens:
        need = _width(token) + _GAP
        if line and need > room:
            yield line
            line, room = [], WIDTH - _LEFT - 14
        line.append(token)
        room -= need
    if line:
        yield line


def _draw_line(d: Drawing, line: Sequence[_Token]) -> None:
    x = _LEFT
    for token in line:
        word, label, others, ambiguous = token
        width = _width(token)
        middle = x + width / 2
        if ambiguous:
            height = 39 + 14 * len(others)
            d.rect(x, d.y, width, height, "s-warn", 'rx="3" stroke-width="1.2"')
            d.rect(x + 2, d.y + 2, width - 4, 19, "mark", 'rx="2"')
        colour, weight = ("markink", 650) if ambiguous else ("ink", 400)
        d.text(middle, d.y + 16, word, colour, size=14, anchor="middle", weight=weight)
        d.text(middle, d.y + 34, label, "accent", size=11, anchor="middle", weight=600 if ambiguous else 400)
        for k, other in enumerate(others):
            d.text(middle, d.y + 48 + 14 * k, f"or {other}", "warn", size=11, anchor="middle")
        x += width + _GAP
    d.y += 39 + 14 * max(len(others) for _, _, others, _ in line) + 12


def tagged_sequences(rows: Sequence[Sequence[_Token]], *, title: str) -> str:
    """Draw sequences of (word, label, competing labels, whether it is ambiguous), wrapped to the width of a page."""
    d = Drawing(title, WIDTH)
    for number, row in enumerate(rows, start=1):
        tokens = [
            (shorten(word, 32), shorten(label, 18), tuple(shorten(other, 18) for other in others), ambiguous)
            for word, label, others, ambiguous in row
        ]
        if number > 1:
            d.line(_LEFT, d.y, WIDTH - 14, d.y, "s-rule")
            d.y += 12
        d.text(22, d.y + 16, str(number), "muted", anchor="end")
        for line in _lines(tokens):
            _draw_line(d, line)
    key = "Under each word its label"
    if any(ambiguous for row in rows for *_, ambiguous in row):
        key += "; framed: ambiguous, with the labels that compete"
    d.text(_LEFT, d.y + 12, key, "muted", size=11)
    return d.done(d.y + 26)

"""Text from outside made fit for a page: control characters made visible, long things cut, numbers in words."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence

__all__ = ["clean", "context", "count", "joined", "number", "percent"]

MAX_TOKEN = 80
MAX_SIDE = 130
"""How many characters of a sequence are shown before, and after, a token."""
_MADE_VISIBLE = {code: 0x2400 + code for code in range(32)} | {127: 0x2421}
_MADE_VISIBLE |= dict.fromkeys([*range(128, 160), 0xFEFF, 0xFFFE, 0xFFFF], 0xFFFD)
_DIRECTIONS = dict.fromkeys([0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def clean(text: str, limit: int = MAX_TOKEN) -> str:
    """Return text of at most `limit` characters with control characters made visible and overrides of direction gone.

    Escaping for HTML is not done here: that is the template's (and the script's) part.
    """
    shown = text[: limit + 1].translate(_MADE_VISIBLE).translate(_DIRECTIONS)
    if len(shown) <= limit:
        return shown
    end = limit - 1
    while end > 1 and unicodedata.combining(shown[end]):
        end -= 1
    return shown[:end] + "…"


def context(tokens: Sequence[str], at: int) -> tuple[str, str]:
    """Return what stands before and after a token in its sequence, cut where it is far away."""
    before: list[str] = []
    room = MAX_SIDE
    for token in reversed(tokens[:at]):
        room -= len(token) + 1
        if room < 0:
            before.append("…")
            break
        before.append(clean(token))
    after: list[str] = []
    room = MAX_SIDE
    for token in tokens[at + 1 :]:
        room -= len(token) + 1
        if room < 0:
            after.append("…")
            break
        after.append(clean(token))
    return " ".join(reversed(before)), " ".join(after)


def number(value: float | int | None, digits: int = 3) -> str:
    """Write a number: thousands with commas, fractions with `digits` places, nothing as a dash."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    return (f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}").replace("-", "−")


def percent(value: float | None, digits: int = 1) -> str:
    """Write a share as a percentage; what is not quite nothing or not quite all is not written as such."""
    if value is None or not math.isfinite(value):
        return "–"
    step = 10.0**-digits
    if 0 < 100 * value < step:
        return f"under {step:g} %"
    if 100 - step < 100 * value < 100:
        return f"over {100 - step:g} %"
    return f"{100 * value:.{digits}f} %"


def count(n: int, one: str, many: str | None = None) -> str:
    """Write how many of something there are: 1 token, 2 tokens."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def joined(parts: Sequence[str]) -> str:
    """Write a list as people do: a, b and c."""
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1] if parts else ""

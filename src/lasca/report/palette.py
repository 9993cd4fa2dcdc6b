"""One colour per label: labels of one entity type share a hue, beginnings are fuller than insides, O is grey.

Colour is never the only sign: wherever it is used the label is written as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lasca import schemes

__all__ = ["label_order", "label_styles"]

HUES = (212, 28, 142, 276, 344, 178, 52, 236, 100, 312, 8, 196)
"""Far apart in the order in which they are given out."""
LETTERS = "BSUILEMIO"


def _parts(name: str, has_scheme: bool) -> tuple[str, str]:
    if not has_scheme:
        return "", name
    if name == schemes.OUTSIDE:
        return "O", ""
    letter, dash, kind = name.partition("-")
    return (letter, kind) if dash else (name, "")


def label_styles(labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return hue and kind ("full", "light", "grey") of each label."""
    has_scheme = schemes.detect(labels) is not None
    parts = [_parts(name, has_scheme) for name in labels]
    kinds = sorted({kind for letter, kind in parts if letter != "O"})
    hue = {kind: HUES[i % len(HUES)] for i, kind in enumerate(kinds)}
    styles = []
    for (letter, kind), name in zip(parts, labels):
        grey = letter == "O" or name == schemes.OUTSIDE
        styles.append(
            {
                "hue": 0 if grey else hue[kind],
                "kind": "grey" if grey else "light" if letter in ("I", "E", "L", "M") else "full",
            }
        )
    return styles


def label_order(labels: Sequence[str], weight: Sequence[float], limit: int) -> list[int]:
    """Return the codes of at most `limit` labels (the heaviest), those of one type side by side, O last."""
    has_scheme = schemes.detect(labels) is not None
    kept = sorted(range(len(labels)), key=lambda i: (-weight[i], i))[:limit]

    def place(code: int) -> tuple[Any, ...]:
        letter, kind = _parts(labels[code], has_scheme)
        return (letter == "O", kind, LETTERS.find(letter[:1]), labels[code])

    return sorted(kept, key=place)

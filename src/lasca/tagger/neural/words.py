"""What networks see of how a word is written: its case and kind as one of a few dozen classes; its characters."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lasca.crf.fields import field_values

__all__ = ["N_WRITINGS", "padded", "writings"]

_CASES = ("lower", "title", "upper", "initial", "mixed", "none")
_KINDS = (
    "word", "punctuation", "code", "hyphened", "dotted", "figure",
    "number1", "number2", "number3", "number4", "number5",
)  # fmt: skip
N_WRITINGS = len(_CASES) * len(_KINDS) + 1


def writings(words: Sequence[str]) -> list[int]:
    """Return the class of each word, from 1; 0 is left for padding."""
    cases, kinds = field_values("case", list(words)), field_values("kind", list(words))
    return [_CASES.index(str(c)) * len(_KINDS) + _KINDS.index(str(k)) + 1 for c, k in zip(cases, kinds)]


def padded(rows: Sequence[Sequence[int]], filler: int = 0) -> torch.Tensor:
    """Return rows of numbers as one matrix."""
    width = max((len(row) for row in rows), default=0)
    return torch.tensor([[*row, *([filler] * (width - len(row)))] for row in rows], dtype=torch.long)

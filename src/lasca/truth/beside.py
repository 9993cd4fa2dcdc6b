"""What a plan keeps beside blocks from one learner to the next: in memory, or in files of a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lasca.arrays import Proba
from lasca.records import write_record

__all__ = ["Beside", "Keep"]

Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Beside:
    """What was said of the tokens of a block (`Block.beside`): the labels' probabilities, (n_tokens, T)."""

    text: Proba | None = None
    """By a tagger; rows of zeros say nothing."""
    mean: Proba | None = None
    """By the plan so far: taggers learn from them."""
    plain: Proba | None = None
    """The same without the text."""


@dataclass(frozen=True)
class Keep:
    """Keeps what is said beside blocks: in memory, or in files of a folder."""

    folder: Path | None
    name: str

    def __call__(self, number: int, said: Kept) -> Kept | Path:
        """Return what the block is to hold."""
        if self.folder is None:
            return said
        write_record(said, self.place(number))
        return self.place(number)

    def place(self, number: int) -> Path:
        """Return the file of a block."""
        assert self.folder is not None
        return self.folder / f"{self.name}-{number:05d}"

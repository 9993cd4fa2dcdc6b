"""A read-only column of strings over an Arrow array: no Python object per token until one is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lasca.arrays import Ints32
from lasca.errors import CorpusError

__all__ = ["Strings"]


class Strings(Sequence[str]):
    """A sequence of str: an int gives a str, a slice a list of str; `arrow` is the array underneath."""

    __slots__ = ("arrow",)

    def __init__(self, values: Iterable[str] | pa.Array) -> None:
        if isinstance(values, Strings):
            self.arrow: Any = values.arrow
            return
        try:
            array = values if isinstance(values, pa.Array) else pa.array(list(values), type=pa.large_string())
            if array.type != pa.large_string():
                array = array.cast(pa.large_string())
        except (pa.ArrowException, TypeError, UnicodeEncodeError) as error:
            raise CorpusError("these are not strings", got=str(error).splitlines()[0]) from error
        if array.null_count:
            raise CorpusError("a string is missing (null) where every entry must have one")
        self.arrow = array

    def __len__(self) -> int:
        return len(self.arrow)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return list(self.arrow.slice(start, max(stop - start, 0)).to_pylist())
            return list(self.arrow.take(pa.array(range(start, stop, step), pa.int64())).to_pylist())
        position = int(index)
        if position < 0:
            position += len(self)
        if not 0 <= position < len(self):
            raise IndexError(f"index {index} is outside 0..{len(self) - 1}")
        return str(self.arrow[position].as_py())

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), 65536):
            yield from self.arrow.slice(start, 65536).to_pylist()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Strings):
            return bool(self.arrow.equals(other.arrow))
        if isinstance(other, list | tuple):
            return list(self) == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(repr(s) for s in self[:5])
        return f"Strings([{shown}{', …' if len(self) > 5 else ''}], n={len(self)})"

    def take(self, indices: npt.ArrayLike) -> Strings:
        """Return the entries at these positions, in this order."""
        return Strings(self.arrow.take(pa.array(np.asarray(indices, dtype=np.int64))))

    def codes(self) -> tuple[Ints32, Strings]:
        """Return an integer per entry and the distinct strings they stand for, in order of first occurrence."""
        encoded = self.arrow.dictionary_encode()
        return np.asarray(encoded.indices, dtype=np.int32), Strings(encoded.dictionary)

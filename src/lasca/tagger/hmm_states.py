"""What the chain of HmmTagger runs over: a state is a label and, in a tag scheme, whether a border lies behind it.

A *border* lies where a span begins or ends: O before B-PER has one behind it, O before O has none; the last token of a
span has one, those before it have none. A label thus becomes two states, which words tell apart ("of" before a span,
"patients" at the end of one), and a chain over them remembers more than the last label. Labels of no tag scheme have no
borders: they are the states themselves.

A token whose own label or whose neighbour's is unknown may be in several states: `allowed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lasca import schemes
from lasca.arrays import Array

__all__ = ["States"]


@dataclass(frozen=True, eq=False)
class States:
    """The states that occur: the label of each, and whether a border lies behind it."""

    names: tuple[str, ...]
    """The labels."""
    label: Array
    border: Array

    def __len__(self) -> int:
        return len(self.label)

    @classmethod
    def of(cls, names: Sequence[str], labels: Array, offsets: Array) -> States:
        """Return the states that labelled tokens may be in (label −1: unknown)."""
        there = borders_between(names)
        label, border = np.nonzero(np.stack([(~there).any(axis=1), there.any(axis=1)], axis=1))
        every = cls(tuple(names), label, border == 1)
        found = every.allowed(labels, offsets)[labels >= 0].any(axis=0)
        return cls(every.names, every.label[found], every.border[found])

    def allowed(self, labels: Array, offsets: Array) -> Array:
        """Return which states each token may be in, bool (n_tokens, n_states); a token without a label, any."""
        n = len(self.names)
        after = np.append(labels[1:], n)
        after[offsets[1:][np.diff(offsets) > 0] - 1] = n
        known = np.flatnonzero(labels >= 0)
        own = self.label == labels[known, None]
        there = borders_between(self.names)[labels[known], after[known]]
        out = np.ones((len(labels), len(self)), dtype=np.bool_)
        out[known] = own & ((after[known] < 0)[:, None] | (self.border == there[:, None]))
        return out


def borders_between(names: Sequence[str]) -> Array:
    """Return where a border lies between a label (row) and the one behind it (column; the last: the end)."""
    n = len(names)
    out = np.zeros((n, n + 1), dtype=np.bool_)
    if schemes.detect(names) is not None:
        for i, left in enumerate(names):
            for j, right in enumerate([*names, schemes.OUTSIDE]):
                out[i, j] = any(1 in (start, end) for start, end, _ in schemes.spans([left, right]))
    return out

"""What is counted once before a CRF is trained: which pairs occur, how often features occur, rows that are equal."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated, import-untyped"
from __future__ import annotations

from typing import Any

import numpy as np

from lasca.kernels.compiled import inner, kernel

__all__ = ["build_table", "find_keys", "number_found", "observed_pairs"]


def observed_pairs(
    sequences: Any, offsets: Any, slots: Any, bundle_start: Any, bundle_feature: Any, allowed: Any, n_features: int
) -> tuple[Any, Any]:
    """Return which (feature, label) and (label, next label) pairs occur in some sequences."""
    n_labels, size = allowed.shape[1], np.diff(bundle_start)
    lengths = np.diff(offsets)
    chosen = np.zeros(len(lengths), dtype=np.bool_)
    chosen[sequences] = True
    used = np.repeat(chosen, lengths)
    goes_on = used.copy()
    goes_on[offsets[:-1][lengths > 0]] = False
    later = np.flatnonzero(goes_on)
    seen = np.zeros((n_features, n_labels), dtype=np.bool_)
    moves = np.zeros((n_labels, n_labels), dtype=np.bool_)
    for t in range(n_labels):
        bundles = np.zeros(len(size), dtype=np.bool_)
        bundles[slots[used & allowed[:, t]].ravel()] = True
        seen[bundle_feature[np.repeat(bundles, size)], t] = True
        moves[:, t] = allowed[later[allowed[later, t]] - 1].any(axis=0)
    return seen, moves


def number_found(ids: Any, n_ids: int) -> tuple[Any, Any]:
    """Return the different ids in the order they come up (−1 included, if it does) and each id's place in that list."""
    where = np.arange(len(ids))
    first = np.zeros(n_ids + 1, dtype=np.int64)
    first[ids[::-1] + 1] = where[::-1]  # where an id stands more than once, what is written last stays
    found = ids[first[ids + 1] == where]
    place = np.zeros(n_ids + 1, dtype=np.int32)
    place[found + 1] = np.arange(len(found))
    return found, place[ids + 1]


def build_table(keys: Any) -> Any:
    """Return an open-addressing table of key numbers (−1 = empty), its size a power of two above twice the keys."""
    size = 2
    while size < 2 * len(keys) + 2:
        size *= 2
    table = np.full(size, -1, dtype=np.int32)
    _fill_table(keys, table)
    return table


def find_keys(keys: Any, table: Any, wanted: Any) -> Any:
    """Return the number of each wanted key, −1 where it is not among the keys (or negative)."""
    out = np.full(len(wanted), -1, dtype=np.int64)
    _find_keys(keys, table, wanted, out)
    return out


@inner
def _place(key, mask):
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed >> np.uint64(20)) & np.uint64(mask))


@kernel
def _fill_table(keys, table):
    mask = len(table) - 1
    for number in range(len(keys)):
        at = _place(keys[number], mask)
        while table[at] >= 0:
            at = (at + 1) & mask
        table[at] = number


@kernel
def _find_keys(keys, table, wanted, out):
    mask = len(table) - 1
    for i in range(len(wanted)):
        if wanted[i] < 0:
            continue
        at = _place(wanted[i], mask)
        while table[at] >= 0:
            if keys[table[at]] == wanted[i]:
                out[i] = table[at]
                break
            at = (at + 1) & mask

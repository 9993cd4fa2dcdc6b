"""What is counted once before a CRF is trained: which pairs occur, how often features occur, rows that are equal."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated, import-untyped"
from __future__ import annotations

import numpy as np

from lasca.kernels.compiled import inner, kernel

__all__ = ["build_table", "find_keys", "number_found", "observed_pairs"]


@kernel
def observed_pairs(sequences, offsets, slots, bundle_start, bundle_feature, allowed, n_features):
    """Return which (feature, label) and (label, next label) pairs occur in some sequences."""
    n_labels = allowed.shape[1]
    n_bundles = bundle_start.shape[0] - 1
    bundle_seen = np.zeros((n_bundles, n_labels), dtype=np.bool_)
    moves = np.zeros((n_labels, n_labels), dtype=np.bool_)
    for s in sequences:
        for i in range(offsets[s], offsets[s + 1]):
            for t in range(n_labels):
                if not allowed[i, t]:
                    continue
                for k in range(slots.shape[1]):
                    bundle_seen[slots[i, k], t] = True
                if i > offsets[s]:
                    for r in range(n_labels):
                        if allowed[i - 1, r]:
                            moves[r, t] = True
    seen = np.zeros((n_features, n_labels), dtype=np.bool_)
    for b in range(n_bundles):
        for k in range(bundle_start[b], bundle_start[b + 1]):
            f = bundle_feature[k]
            for t in range(n_labels):
                if bundle_seen[b, t]:
                    seen[f, t] = True
    return seen, moves


@inner
def _place(key, mask):
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed >> np.uint64(20)) & np.uint64(mask))


@kernel
def build_table(keys):
    """Return an open-addressing table of key numbers (−1 = empty), its size a power of two above twice the keys."""
    size = 2
    while size < 2 * len(keys) + 2:
        size *= 2
    table = np.full(size, -1, dtype=np.int32)
    for number in range(len(keys)):
        at = _place(keys[number], size - 1)
        while table[at] >= 0:
            at = (at + 1) & (size - 1)
        table[at] = number
    return table


@kernel
def find_keys(keys, table, wanted):
    """Return the number of each wanted key, −1 where it is not among the keys (or negative)."""
    out = np.full(len(wanted), -1, dtype=np.int64)
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
    return out


@kernel
def number_found(ids, n_ids):
    """Return the different ids in the order they come up (−1 included, if it does) and each id's place in that list."""
    place_of = np.full(n_ids + 1, -1, dtype=np.int32)
    found = np.empty(min(len(ids), n_ids + 1), dtype=np.int64)
    place = np.empty(len(ids), dtype=np.int32)
    n = 0
    for i in range(len(ids)):
        at = ids[i] + 1
        if place_of[at] < 0:
            place_of[at] = n
            found[n] = ids[i]
            n += 1
        place[i] = place_of[at]
    return found[:n], place

"""Features made of lists, for tests of the CRF."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lasca.crf import Features


def from_csr(indptr: npt.ArrayLike, ids: npt.ArrayLike, offsets: npt.ArrayLike, n_features: int) -> Features:
    """Take feature ids per token in CSR form: token i has ids[indptr[i]:indptr[i + 1]]; equal lists are merged."""
    starts, features = np.asarray(indptr, dtype=np.int64), np.asarray(ids, dtype=np.int32)
    known: dict[bytes, int] = {b"": 0}
    slots = np.empty((len(starts) - 1, 1), dtype=np.int32)
    for i in range(len(slots)):
        slots[i, 0] = known.setdefault(features[starts[i] : starts[i + 1]].tobytes(), len(known))
    begins = np.cumsum([0, *(len(key) // 4 for key in known)], dtype=np.int64)
    flat = np.frombuffer(b"".join(known), dtype=np.int32)
    return Features(np.asarray(offsets, dtype=np.int64), slots, begins, flat, n_features)


def from_attributes(
    sequences: Sequence[Sequence[Sequence[str]]], names: dict[str, int] | None = None
) -> tuple[Features, dict[str, int]]:
    """Take lists of attribute strings per token, as python-crfsuite does; return the features and the names' ids.

    Given `names`, attributes that are not among them are left out.
    """
    known = {} if names is None else names
    ids: list[int] = []
    indptr, offsets = [0], [0]
    for sequence in sequences:
        for attributes in sequence:
            if names is None:
                ids.extend(known.setdefault(a, len(known)) for a in attributes)
            else:
                ids.extend(known[a] for a in attributes if a in known)
            indptr.append(len(ids))
        offsets.append(len(indptr) - 1)
    return from_csr(indptr, ids, offsets, n_features=len(known)), known

"""The one place where the arrays of a corpus are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from lasca.corpus.strings import Strings
from lasca.errors import CorpusError

if TYPE_CHECKING:
    from lasca.corpus.record import CrowdCorpus

__all__ = ["checked", "equal", "readonly"]

ROLES = ("annotator", "model")
MAX_LABELS = 2**15 - 1
Array = TypeVar("Array", bound=npt.NDArray[Any])


def readonly(array: Array) -> Array:
    """Return a view that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view


def checked(corpus: CrowdCorpus) -> dict[str, Any]:
    """Return the fields in their exact types, or raise a CorpusError that names what is wrong."""
    tokens, ids = Strings(corpus.tokens), Strings(corpus.sequence_ids)
    labels, annotators = _names("label", corpus.labels), _names("annotator", corpus.annotators)
    if len(labels) > MAX_LABELS:
        raise CorpusError(f"at most {MAX_LABELS} labels are possible", got=len(labels))
    roles = tuple(corpus.roles) or ("annotator",) * len(annotators)
    if len(roles) != len(annotators) or any(role not in ROLES for role in roles):
        raise CorpusError(f"roles must be one of {', '.join(ROLES)} for each annotator", got=corpus.roles)
    offsets = _offsets("offsets", corpus.offsets, None, len(tokens))
    if len(ids) != len(offsets) - 1:
        raise CorpusError(f"{len(offsets) - 1} sequences need as many sequence ids", got=len(ids))
    if len(set(ids)) != len(ids):
        raise CorpusError("two sequences have the same id", got=_first_repeat(ids))
    annotator = _codes("annotation_annotator", corpus.annotation_annotator, np.int32, len(annotators))
    label = _codes("annotation_label", corpus.annotation_label, np.int16, len(labels))
    if len(annotator) != len(label):
        raise CorpusError("annotation_annotator and annotation_label differ in length")
    start = _offsets("token_start", corpus.token_start, len(tokens) + 1, len(label))
    _strictly_sorted(annotator, start)
    golds = {
        str(name): _codes(f"gold {name!r}", gold, np.int16, len(labels), low=-1, length=len(tokens))
        for name, gold in corpus.golds.items()
    }
    metadata = {str(name): Strings(column) for name, column in corpus.metadata.items()}
    for name, column in metadata.items():
        if len(column) != len(ids):
            raise CorpusError(f"metadata {name!r} needs one entry per sequence ({len(ids)})", got=len(column))
    return {
        "tokens": tokens,
        "offsets": offsets,
        "labels": labels,
        "annotators": annotators,
        "annotation_annotator": annotator,
        "annotation_label": label,
        "token_start": start,
        "sequence_ids": ids,
        "golds": golds,
        "roles": roles,
        "metadata": metadata,
        "token_chars": _chars(corpus.token_chars, len(tokens)),
    }


def _names(what: str, names: Any) -> tuple[str, ...]:
    result = tuple(names)
    for name in result:
        if not isinstance(name, str) or not name:
            raise CorpusError(f"every {what} needs a name that is a non-empty string", got=name)
    if len(set(result)) != len(result):
        raise CorpusError(f"two {what}s have the same name", got=_first_repeat(result))
    return result


def _first_repeat(names: Any) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return str(name)
        seen.add(name)
    return ""


def _offsets(name: str, values: Any, length: int | None, total: int) -> npt.NDArray[np.int64]:
    array = _integers(name, values, np.int64)
    if length is not None and len(array) != length:
        raise CorpusError(f"{name} must have {length} entries", got=len(array))
    if len(array) == 0 or array[0] != 0 or array[-1] != total or np.any(np.diff(array) < 0):
        raise CorpusError(f"{name} must rise from 0 to {total}", got=array[:8].tolist())
    return readonly(array)


def _codes(
    name: str, values: Any, dtype: Any, bound: int, *, low: int = 0, length: int | None = None
) -> npt.NDArray[Any]:
    array = _integers(name, values, dtype)
    if length is not None and len(array) != length:
        raise CorpusError(f"{name} must have {length} entries", got=len(array))
    if len(array) and (array.min() < low or array.max() >= bound):
        bad = array[(array < low) | (array >= bound)][0]
        raise CorpusError(f"{name} must lie in {low}..{bound - 1}", got=int(bad))
    return readonly(array)


def _integers(name: str, values: Any, dtype: Any) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise CorpusError(f"{name} must be a one-dimensional array of whole numbers", got=array.dtype)
    if array.dtype == dtype:
        return np.ascontiguousarray(array)
    info = np.iinfo(dtype)
    if array.size and (array.min() < info.min or array.max() > info.max):
        raise CorpusError(f"{name} has a number that does not fit {np.dtype(dtype).name}", got=int(array.max()))
    return array.astype(dtype)


def _strictly_sorted(annotator: npt.NDArray[np.int32], start: npt.NDArray[np.int64]) -> None:
    if len(annotator) < 2:
        return
    rises = annotator[1:] > annotator[:-1]
    borders = start[1:-1]
    rises[borders[(borders > 0) & (borders < len(annotator))] - 1] = True
    if not rises.all():
        at = int(np.argmin(rises)) + 1
        token = int(np.searchsorted(start, at, side="right")) - 1
        raise CorpusError(
            "annotations must be sorted by token and annotator, one for each pair",
            where=f"token {token}",
            got=f"annotator {annotator[at]} after {annotator[at - 1]}",
        )


def _chars(values: Any, n_tokens: int) -> npt.NDArray[np.int32] | None:
    if values is None:
        return None
    array = np.ascontiguousarray(values, dtype=np.int32)
    if array.shape != (n_tokens, 2) or np.any(array[:, 0] > array[:, 1]) or np.any(array < 0):
        raise CorpusError(f"token_chars must be ({n_tokens}, 2) with start <= end", got=array.shape)
    return readonly(array)


def equal(a: CrowdCorpus, b: CrowdCorpus) -> bool:
    """Say whether two corpora hold the same (load reports aside)."""
    if a.labels != b.labels or a.annotators != b.annotators or a.roles != b.roles:
        return False
    if set(a.golds) != set(b.golds) or set(a.metadata) != set(b.metadata):
        return False
    if (a.token_chars is None) != (b.token_chars is None):
        return False
    if a.token_chars is not None and b.token_chars is not None and not np.array_equal(a.token_chars, b.token_chars):
        return False
    arrays = ("offsets", "annotation_annotator", "annotation_label", "token_start")
    return (
        a.tokens == b.tokens
        and a.sequence_ids == b.sequence_ids
        and all(np.array_equal(getattr(a, name), getattr(b, name)) for name in arrays)
        and all(np.array_equal(a.golds[name], b.golds[name]) for name in a.golds)
        and all(a.metadata[name] == b.metadata[name] for name in a.metadata)
    )

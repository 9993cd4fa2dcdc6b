"""From lists and loose triples to the sorted arrays of a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.arrays import Array, Codes, Ints, Ints32, borders
from lasca.corpus.strings import Strings
from lasca.errors import CorpusError

__all__ = ["from_sequences", "index_range", "label_names", "sorted_by_token"]


def index_range(n: int) -> Ints32 | Ints:
    """Return 0..n-1 in the smallest index type that holds n."""
    return np.arange(n, dtype=np.int32) if n < 2**31 else np.arange(n, dtype=np.int64)


def sorted_by_token(
    token: npt.ArrayLike, annotator: npt.ArrayLike, label: npt.ArrayLike, tokens: Any, offsets: npt.ArrayLike
) -> dict[str, Any]:
    """Sort triples by token, then annotator, and return the CSR fields of a corpus."""
    tokens = Strings(tokens)
    token, annotator, label = (np.asarray(a) for a in (token, annotator, label))
    if not len(token) == len(annotator) == len(label):
        raise CorpusError("the arrays of tokens, annotators and labels of the annotations differ in length")
    if len(token) and (token.min() < 0 or token.max() >= len(tokens)):
        raise CorpusError(f"annotation_token must lie in 0..{len(tokens) - 1}", got=int(token.max()))
    if label.dtype.kind == "f" and len(label):
        raise CorpusError("labels must be codes, whole numbers", got=label[0], hint="Leave out what is missing (NaN)")
    order = np.lexsort((annotator, token))
    counts = np.bincount(token, minlength=len(tokens)) if len(token) else np.zeros(len(tokens), np.int64)
    return {
        "tokens": tokens,
        "offsets": np.asarray(offsets),
        "annotation_annotator": annotator[order].astype(np.int32),
        "annotation_label": label[order].astype(np.int16),
        "token_start": borders(counts),
    }


Rows = Sequence[Sequence[str | None] | None] | Mapping[int, Sequence[str | None]]
"""Labels of one annotator: one entry per sequence (None = missing), or a mapping from sequence index to labels."""


def from_sequences(
    tokens: Sequence[Sequence[str]],
    annotations: Mapping[str, Rows],
    golds: Mapping[str, Rows],
    sequence_ids: Sequence[str] | None,
    labels: Iterable[str],
) -> dict[str, Any]:
    """Turn lists of labels into the fields of a corpus: labels and annotators are sorted by name."""
    lengths = [len(sequence) for sequence in tokens]
    offsets = borders(lengths)
    annotators = sorted(annotations)
    given = [_flatten(f"annotator {name!r}", annotations[name], lengths, offsets) for name in annotators]
    expert = {name: _flatten(f"gold {name!r}", rows, lengths, offsets) for name, rows in golds.items()}
    names = sorted({label for _, column in (*given, *expert.values()) for label in column} | set(labels))
    code = {name: i for i, name in enumerate(names)}
    coded = [np.fromiter((code[x] for x in column), np.int16, len(column)) for _, column in given]
    words = [word for sequence in tokens for word in sequence]
    return {
        "labels": tuple(names),
        "annotators": tuple(annotators),
        "sequence_ids": [str(i) for i in range(len(lengths))] if sequence_ids is None else sequence_ids,
        "golds": {name: _gold(at, column, code, len(words)) for name, (at, column) in expert.items()},
        **sorted_by_token(
            np.concatenate([np.zeros(0, np.int64), *(at for at, _ in given)]),
            np.repeat(np.arange(len(annotators)), [len(at) for at, _ in given]),
            np.concatenate([np.zeros(0, np.int16), *coded]),
            words,
            offsets,
        ),
    }


def _flatten(whose: str, rows: Rows, lengths: list[int], offsets: Ints) -> tuple[Ints, list[str]]:
    """Return the tokens that have a label and these labels."""
    if not isinstance(rows, Mapping) and len(rows) != len(lengths):
        raise CorpusError(f"{whose} must have one entry per sequence ({len(lengths)})", got=len(rows))
    at: list[int] = []
    flat: list[str] = []
    for s, row in rows.items() if isinstance(rows, Mapping) else enumerate(rows):
        if row is None:
            continue
        if len(row) != lengths[s]:
            raise CorpusError(
                f"{whose} has {len(row)} labels for {lengths[s]} tokens",
                where=f"sequence {s}",
                hint="Use None for a missing label",
            )
        start = int(offsets[s])
        for i, label in enumerate(row, start):
            if label is not None:
                if not isinstance(label, str):
                    raise CorpusError(
                        f"{whose} has a label that is no string",
                        where=f"sequence {s}",
                        got=label,
                        hint="Use None for a missing label (not NaN), and str for numbers",
                    )
                at.append(i)
                flat.append(label)
    return np.array(at, np.int64), flat


def _gold(at: Ints, column: list[str], code: dict[str, int], n_tokens: int) -> Codes:
    gold = np.full(n_tokens, -1, np.int16)
    gold[at] = [code[x] for x in column]
    return gold


def label_names(codes: Array, offsets: Ints, labels: Sequence[str]) -> list[list[str | None]]:
    """Turn one code per token into lists of names, one list per sequence; -1 becomes None."""
    if len(codes) != offsets[-1]:
        raise CorpusError(f"one label code per token is needed ({offsets[-1]})", got=len(codes))
    names: list[str | None] = [*labels, None]
    flat = [names[code] for code in codes.tolist()]
    bounds = offsets.tolist()
    return [flat[a:b] for a, b in pairwise(bounds)]

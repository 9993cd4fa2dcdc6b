"""Span scores: exact match of type and borders, read leniently (conlleval) or strictly by a scheme.

Lenient is the reading of the perl script conlleval and of seqeval's default: a label is its first letter and a type,
a span ends where the type changes, and an `I-` without a beginning begins a span. Strict is seqeval's
`mode="strict"`: a span must be written as the scheme says, or it does not count. Both agree with seqeval 1.2.2 to the
last span (tests/test_evaluate_spans.py); the rules below are its patterns as tables over pairs of prefixes, so that a
whole corpus is read with a handful of array operations.

Deviations from seqeval: a label whose prefix the scheme does not know is a CorpusError (there: ValueError or
KeyError); `scheme="auto"` takes gold labels that are all `I-` or `O` as IO (there: an error).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.arrays import Array, Bools, Ints, Ints32, borders
from lasca.errors import CorpusError
from lasca.estimator import check_choice
from lasca.evaluate.token_scores import Labelled, Plain, Prf, check_codes, check_offsets, encode, ratio, sequence_mask

__all__ = ["SCHEMES", "SpanScores", "find_spans", "spans", "spans_from_codes"]


PREFIXES = "OBIESLU."  # an eighth "other" code stands for everything else
OTHER = len(PREFIXES)

# (previous, current, types): "=" same type, "#" another type, "*" any; written as in seqeval's scheme.py
_LENIENT_START = "*B* *S* EE* EI* SE* SI* OE* OI*"
_LENIENT_END = "E** S** BB* BS* BO* IB* IS* IO*"
_IOB1 = ("OI* II# BI* IB= BB=", "BI= II=", "II# IO* IB* BO* BI# BB=")
_BEGIN_INSIDE = ("*B*", "BI= II=", "IO* II# IB* BO* BI# BB*")
_BIOES = ("*B* *S*", "BI= BE= II= IE=", "S** E**")
_BILOU = ("*B* *U*", "BI= BL= II= IL=", "U** L**")
_IOE2 = ("OI* OE* EI* EE* II# IE#", "IE= II=", "E**")

SCHEMES: Mapping[str, tuple[str, tuple[str, str, str]]] = {
    "io": ("IO", _IOB1),
    "iob1": ("IOB", _IOB1),
    "iob2": ("IOB", _BEGIN_INSIDE),
    "ioe2": ("IOE", _IOE2),
    "bioes": ("IOBES", _BIOES),
    "bilou": ("BILOU", _BILOU),
}
"""The schemes of strict reading: allowed prefixes, and the patterns that begin, continue and end a span."""


@dataclass(frozen=True)
class SpanScores(Plain):
    """Precision, recall and F1 over spans, overall (micro) and per type; `macro_f1` is the plain mean over types."""

    precision: float
    recall: float
    f1: float
    n_gold: int
    n_predicted: int
    n_correct: int
    macro_f1: float
    weighted_f1: float
    per_type: Mapping[str, Prf]
    mode: str
    scheme: str
    n_sequences: int
    left_out_sequences: int
    """Sequences masked out, or with a token that has no gold label."""
    left_out_tokens: int
    unpredicted_tokens: int
    """Tokens without a predicted label in the sequences that take part; they are read as O."""


def spans(
    gold: Labelled,
    predicted: Labelled,
    *,
    mode: str = "lenient",
    scheme: str = "auto",
    sequences: npt.ArrayLike | None = None,
) -> SpanScores:
    """Compare the spans of two labellings given as lists of label names, one list per sequence.

    `mode` is "lenient" (conlleval, seqeval's default) or "strict"; `scheme` (only for strict) one of `SCHEMES` or
    "auto". Sequences in which a gold label is None are left out and counted; a predicted None is read as O.
    `sequences` (mask or indices) restricts the comparison.

    >>> spans([["B-PER", "I-PER", "O"]], [["I-PER", "I-PER", "O"]]).f1
    1.0
    >>> spans([["B-PER", "I-PER", "O"]], [["I-PER", "I-PER", "O"]], mode="strict").f1
    0.0
    """
    gold_codes, predicted_codes, offsets, labels = encode(gold, predicted)
    return spans_from_codes(gold_codes, predicted_codes, offsets, labels, mode=mode, scheme=scheme, sequences=sequences)


def spans_from_codes(
    gold: npt.ArrayLike,
    predicted: npt.ArrayLike,
    offsets: npt.ArrayLike,
    labels: Sequence[str],
    *,
    mode: str = "lenient",
    scheme: str = "auto",
    sequences: npt.ArrayLike | None = None,
) -> SpanScores:
    """Do as `spans` for label codes (-1 = none), as `corpus.golds[...]`, `truth.labels`, `corpus.offsets` give them."""
    check_choice("mode", mode, ("lenient", "strict"))
    scheme = check_choice("scheme", str(scheme).lower(), ("auto", *SCHEMES))
    gold_codes = check_codes("gold", gold, len(labels))
    predicted_codes = check_codes("the prediction", predicted, len(labels), len(gold_codes))
    bounds = check_offsets(offsets, len(gold_codes))
    mask = _complete(gold_codes, bounds) & sequence_mask(sequences, len(bounds) - 1)
    lengths = np.diff(bounds)
    kept = np.repeat(mask, lengths)
    if not mask.all():
        gold_codes, predicted_codes, lengths = gold_codes[kept], predicted_codes[kept], lengths[mask]
        bounds = borders(lengths)
    if mode == "strict" and scheme == "auto":
        scheme = _detect({labels[i] for i in np.unique(gold_codes).tolist()})
    found = [
        find_spans(codes, bounds, labels, mode=mode, scheme=scheme if mode == "strict" else "auto")
        for codes in (gold_codes, predicted_codes)
    ]
    types, counts = _count(*found, n_tokens=len(gold_codes))
    per_type = {name: Prf.from_counts(*counts[:, i].tolist()) for i, name in enumerate(types)}
    total = Prf.from_counts(*counts.sum(axis=1).tolist())
    return SpanScores(
        **asdict(total),
        macro_f1=ratio(sum(p.f1 for p in per_type.values()), len(per_type)),
        weighted_f1=ratio(sum(p.f1 * p.n_gold for p in per_type.values()), total.n_gold),
        per_type=per_type,
        mode=mode,
        scheme=scheme if mode == "strict" else "",
        n_sequences=int(mask.sum()),
        left_out_sequences=int((~mask).sum()),
        left_out_tokens=int((~kept).sum()),
        unpredicted_tokens=int((predicted_codes < 0).sum()),
    )


def find_spans(
    codes: npt.ArrayLike, offsets: npt.ArrayLike, labels: Sequence[str], *, mode: str = "lenient", scheme: str = "iob2"
) -> tuple[Ints, Ints, Array, list[str]]:
    """Return start and end (half-open, token indices) and type code of every span, and the sorted type names."""
    check_choice("mode", mode, ("lenient", "strict"))
    scheme = check_choice("scheme", str(scheme).lower(), SCHEMES if mode == "strict" else ("auto", *SCHEMES))
    array = check_codes("the labels", codes, len(labels))
    bounds = check_offsets(offsets, len(array))
    used = np.flatnonzero(np.bincount(array.astype(np.int64) + 1, minlength=len(labels) + 1)[1:])
    prefix, kind, types = _read_labels(labels, used, mode, scheme)
    # one O behind every sequence, and one before the first: no span crosses a border
    n_sequences = len(bounds) - 1
    at = np.arange(1, len(array) + 1) + np.repeat(np.arange(n_sequences), np.diff(bounds))
    p = np.zeros(len(array) + n_sequences + 1, np.int8)
    k = np.full(len(p), kind[-1], np.int32)
    p[at], k[at] = prefix[array], kind[array]
    if mode == "lenient":
        k[0] = -1  # seqeval's previous type is '' there, which equals no type
        start, end = _lenient(p, k)
    else:
        start, end = _strict(p, k, SCHEMES[scheme][1])
    token = np.zeros(len(p) + 1, np.int64)
    token[at] = np.arange(len(array))
    return token[start], token[end - 1] + 1, k[end - 1] if mode == "lenient" else k[start], types


def _read_labels(
    labels: Sequence[str], used: Ints, mode: str, scheme: str
) -> tuple[npt.NDArray[np.int8], Ints32, list[str]]:
    """Return prefix and type codes per label, with one more entry at the end: O, which -1 points at."""
    named: list[tuple[int, str]] = [(OTHER, "_")] * len(labels)
    for i in used.tolist():
        named[i] = _read_lenient(labels[i]) if mode == "lenient" else _read_strict(labels[i], scheme)
    types = sorted({kind for _, kind in named} | {"_"})
    code = {kind: i for i, kind in enumerate(types)}
    prefix = np.array([p for p, _ in named] + [0], np.int8)
    return prefix, np.array([code[kind] for _, kind in named] + [code["_"]], np.int32), types


def _read_lenient(label: str) -> tuple[int, str]:
    found = PREFIXES.find(label[0])
    return (OTHER if found < 0 or label[0] in "LU" else found), label[1:].split("-", maxsplit=1)[-1] or "_"


def _read_strict(label: str, scheme: str) -> tuple[int, str]:
    allowed = SCHEMES[scheme][0]
    if label[0] not in allowed or (label != label[0] and label[1] != "-" and label[0] == "O"):
        raise CorpusError(
            f"a label does not belong to the scheme {scheme}",
            got=label,
            hint=f"Its labels are O, and {', '.join(f'{a}-TYPE' for a in allowed if a != 'O')}. Score with another "
            "scheme, or with mode='lenient'",
        )
    return PREFIXES.index(label[0]), label[1:].strip("-") or "_"


def _pairs(patterns: str) -> Bools:
    """Return [types differ or not, previous prefix, current prefix] -> whether a pattern matches."""
    table = np.zeros((2, OTHER + 1, OTHER + 1), np.bool_)
    for pattern in patterns.split():
        before, now, kinds = tuple(pattern)
        rows = slice(None) if before == "*" else PREFIXES.index(before)
        columns = slice(None) if now == "*" else PREFIXES.index(now)
        for same in {"=": (0,), "#": (1,), "*": (0, 1)}[kinds]:
            table[same, rows, columns] = True
    return table


def _match(table: Bools, p: npt.NDArray[np.int8], k: Ints32) -> Bools:
    """Say for every position from 1 on whether the pair (previous, this) matches; position 0 is False."""
    size = OTHER + 1
    key = (k[1:] != k[:-1]).astype(np.int16) * (size * size)
    key += p[:-1].astype(np.int16) * size + p[1:]
    result = np.zeros(len(p), np.bool_)
    np.take(table.ravel(), key, out=result[1:])
    return result


def _lenient(p: npt.NDArray[np.int8], k: Ints32) -> tuple[Ints, Ints]:
    plain = np.zeros(OTHER + 1, np.bool_)
    plain[[PREFIXES.index("O"), PREFIXES.index(".")]] = True
    starts, ends = _pairs(_LENIENT_START), _pairs(_LENIENT_END)
    starts[1] |= ~plain[None, :]
    ends[1] |= ~plain[:, None]
    end = np.flatnonzero(_match(ends, p, k))
    begun = np.flatnonzero(_match(starts, p, k))
    last = np.searchsorted(begun, end, side="left") - 1  # the last start before each end
    start = begun[last] if len(begun) else np.ones_like(end)
    return np.where(last < 0, 1, start), end


def _strict(p: npt.NDArray[np.int8], k: Ints32, patterns: tuple[str, str, str]) -> tuple[Ints, Ints]:
    starts, insides, ends = (_match(_pairs(pattern), p, k) for pattern in patterns)
    breaks = np.flatnonzero(~insides)  # where a run of continuing labels begins; a sequence's last O is one
    begun = np.flatnonzero(starts)
    run = np.searchsorted(breaks, begun, side="right")
    first = np.ones(len(run), np.bool_)
    first[1:] = run[1:] != run[:-1]  # inside a run only the first start counts
    start, stop = begun[first], breaks[np.minimum(run[first], len(breaks) - 1)]
    closed = ends[stop]
    return start[closed], stop[closed]


def _count(
    gold: tuple[Ints, Ints, Any, list[str]], predicted: tuple[Ints, Ints, Any, list[str]], *, n_tokens: int
) -> tuple[list[str], Ints]:
    """Return the types that occur and (gold, predicted, correct) spans of each: at most one span ends at a token."""
    names = sorted({*gold[3], *predicted[3]})
    code = {name: i for i, name in enumerate(names)}
    kinds = [np.array([code[name] for name in side[3]], np.int64)[side[2]] for side in (gold, predicted)]
    start_at = np.full(n_tokens + 1, -1, np.int64)
    kind_at = np.full(n_tokens + 1, -1, np.int64)
    start_at[gold[1]], kind_at[gold[1]] = gold[0], kinds[0]
    right = (start_at[predicted[1]] == predicted[0]) & (kind_at[predicted[1]] == kinds[1])
    counts = np.stack([np.bincount(k, minlength=len(names)) for k in (*kinds, kinds[1][right])])
    seen = np.flatnonzero(counts[:2].sum(axis=0))
    return [names[i] for i in seen], counts[:, seen]


def _complete(gold: Array, offsets: Ints) -> Bools:
    """Say for every sequence whether all its tokens have a gold label."""
    return np.asarray(np.diff(borders(gold < 0)[offsets]) == 0)


def _detect(labels: set[str]) -> str:
    """Name the scheme of gold labels as seqeval's auto_detect does; I and O alone are IO."""
    seen = {label[0] for label in labels} - {"O"}
    for scheme, prefixes in (("io", "I"), ("iob2", "BI"), ("ioe2", "EI"), ("bioes", "BIES"), ("bilou", "BILU")):
        if seen <= set(prefixes):
            return scheme
    raise CorpusError(
        "no scheme has the prefixes of these labels", got=" ".join(sorted(labels)), hint="Score with mode='lenient'"
    )

"""From lists and loose triples to the sorted arrays of a corpus; and the one place where these arrays are checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lasca.arrays import Array, Codes, Ints, Ints32, borders, readonly
from lasca.corpus.evidence import KnownLabels, SoftVotes, known_labels
from lasca.corpus.strings import Strings
from lasca.errors import CorpusError

if TYPE_CHECKING:
    from lasca.corpus.record import CrowdCorpus

__all__ = [
    "KINDS", "ROLES", "Named", "checked", "equal", "free_text", "from_sequences", "index_range", "kinds_of",
    "label_names", "need_corpus", "sorted_by_token",
]  # fmt: skip

KINDS = ("person", "rule", "model")
ROLES = {"annotator": "person", "model": "model"}
"""What an annotator is called in files, and the kind this stands for."""
MAX_LABELS = 2**15 - 1
MANY_LABELS = 300  # more labels than any tag set has …
FREE_TEXT = 4  # … and more than one for every so many tokens: words, not labels


class Named:
    """What corpora in memory and in shards say alike of their labels and annotators."""

    labels: tuple[str, ...]
    annotators: tuple[str, ...]
    kinds: tuple[str, ...]
    golds: Collection[str]

    @property
    def n_labels(self) -> int:
        """How many different labels there are."""
        return len(self.labels)

    @property
    def n_annotators(self) -> int:
        """How many annotators there are."""
        return len(self.annotators)

    @property
    def roles(self) -> tuple[str, ...]:
        """What files call the annotators: "model" for a model, "annotator" for a person or a rule (see `kinds`)."""
        return tuple("model" if kind == "model" else "annotator" for kind in self.kinds)

    def gold_name(self, name: str | None = None) -> str | None:
        """Return this name if there is a gold of it; of no name, the first gold's, or None where there is none."""
        if name is not None and name not in self.golds:
            raise CorpusError(f"there is no gold of that name (there is: {', '.join(self.golds) or 'none'})", got=name)
        return next(iter(self.golds), None) if name is None else name


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
    for name, codes in (("annotation_token", token), ("annotation_annotator", annotator), ("annotation_label", label)):
        if codes.dtype.kind not in "iu" and len(codes):
            raise CorpusError(
                f"{name} must be codes, whole numbers", got=codes[0], hint="Leave out what is missing (NaN)"
            )
    if len(token) and (token.min() < 0 or token.max() >= len(tokens)):
        raise CorpusError(f"annotation_token must lie in 0..{len(tokens) - 1}", got=int(token.max()))
    order = np.lexsort((annotator, token))
    counts = np.bincount(token, minlength=len(tokens)) if len(token) else np.zeros(len(tokens), np.int64)
    return {
        "tokens": tokens,
        "offsets": np.asarray(offsets),
        "annotation_annotator": annotator[order],
        "annotation_label": label[order],
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
    lengths = [_need_list("the tokens", s, sequence) for s, sequence in enumerate(tokens)]
    offsets = borders(lengths)
    annotators = sorted(annotations)
    given = [_flatten(f"annotator {name!r}", annotations[name], lengths, offsets) for name in annotators]
    expert = {name: _flatten(f"gold {name!r}", rows, lengths, offsets) for name, rows in golds.items()}
    names = sorted({label for _, column in (*given, *expert.values()) for label in column} | set(labels))
    _check_number(names)
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


def _need_list(what: str, s: int, row: Sequence[Any]) -> int:
    """Return how long a list is; a string is none, for its characters would be taken for words or labels."""
    if isinstance(row, str):
        raise CorpusError(f"{what} must be a list for each sequence, no string", where=f"sequence {s}", got=row)
    return len(row)


def _flatten(whose: str, rows: Rows, lengths: list[int], offsets: Ints) -> tuple[Ints, list[str]]:
    """Return the tokens that have a label and these labels."""
    if not isinstance(rows, Mapping) and len(rows) != len(lengths):
        raise CorpusError(f"{whose} must have one entry per sequence ({len(lengths)})", got=len(rows))
    at: list[int] = []
    flat: list[str] = []
    for s, row in rows.items() if isinstance(rows, Mapping) else enumerate(rows):
        if row is None:
            continue
        if not 0 <= s < len(lengths):
            raise CorpusError(f"{whose} has labels for a sequence that is not there (0..{len(lengths) - 1})", got=s)
        if _need_list(f"what {whose} says", s, row) != lengths[s]:
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


def need_corpus(given: object, taker: str) -> None:
    """Say what to do where something else than a corpus is given: a path, a data frame, layers."""
    from lasca.corpus.record import CrowdCorpus

    if isinstance(given, CrowdCorpus):
        return
    hint = "Read it first: corpus = lasca.read(…)"
    if isinstance(given, Mapping) and any(isinstance(part, CrowdCorpus) for part in given.values()):
        hint = "These are several corpora: give one of them, such as " + f"[{next(iter(given))!r}]"
    shown = repr(given) if isinstance(given, str) else type(given).__name__
    raise CorpusError(f"{taker} takes a CrowdCorpus", got=shown, hint=hint)


def free_text(corpus: CrowdCorpus) -> str | None:
    """Say so if what stands in the place of labels looks like free text: models keep tables of labels by labels."""
    if corpus.n_labels <= MANY_LABELS or corpus.n_labels * FREE_TEXT <= corpus.n_tokens:
        return None
    return (
        f"this looks like free text, not like labels: there are {corpus.n_labels:,} different ones for "
        f"{corpus.n_tokens:,} tokens"
    )


def checked(corpus: CrowdCorpus) -> dict[str, Any]:
    """Return the fields in their exact types, or raise a CorpusError that names what is wrong."""
    tokens, ids = Strings(corpus.tokens), Strings(corpus.sequence_ids)
    labels, annotators = _names("label", corpus.labels), _names("annotator", corpus.annotators)
    _check_number(labels)
    kinds = tuple(corpus.kinds) or ("person",) * len(annotators)
    if len(kinds) != len(annotators) or any(kind not in KINDS for kind in kinds):
        raise CorpusError(f"kinds must be one of {', '.join(KINDS)} for each annotator", got=corpus.kinds)
    families = tuple(corpus.families) or (None,) * len(annotators)
    if len(families) != len(annotators) or any(f == "" for f in families):
        raise CorpusError("families must be a name or None for each annotator", got=corpus.families)
    votes = tuple(corpus.votes) or tuple(kind != "model" for kind in kinds)
    if len(votes) != len(annotators) or not all(isinstance(v, bool | np.bool_) for v in votes):
        raise CorpusError("votes must be true or false for each annotator", got=corpus.votes)
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
    metadata = {str(name): _texts(column) for name, column in corpus.metadata.items()}
    token_metadata = {str(name): _texts(column) for name, column in corpus.token_metadata.items()}
    for what, columns, n in (("sequence", metadata, len(ids)), ("token", token_metadata, len(tokens))):
        for name, column in columns.items():
            if len(column) != n:
                raise CorpusError(f"metadata {name!r} needs one entry per {what} ({n})", got=len(column))
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
        "kinds": kinds,
        "families": families,
        "votes": tuple(bool(v) for v in votes),
        "soft": _soft(corpus.soft, annotator, start, len(annotators), len(labels)),
        "known": known_labels(corpus.known, len(tokens), labels),
        "metadata": metadata,
        "token_metadata": token_metadata,
        "token_chars": _chars(corpus.token_chars, len(tokens)),
    }


def _check_number(labels: Sequence[str]) -> None:
    if len(labels) > MAX_LABELS:
        raise CorpusError(f"at most {MAX_LABELS} labels are possible", got=len(labels))


def kinds_of(roles: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds that roles ("annotator", "model") stand for."""
    if any(role not in ROLES for role in roles):
        raise CorpusError(f"roles must be one of {', '.join(ROLES)} for each annotator", got=tuple(roles))
    return tuple(ROLES[role] for role in roles)


def _soft(soft: SoftVotes | None, annotator: Ints32, start: Ints, n_annotators: int, n_labels: int) -> SoftVotes | None:
    if soft is None or len(soft) == 0:
        return None
    soft = soft.checked(len(start) - 1, n_annotators, n_labels)
    hard = np.repeat(np.arange(len(start) - 1, dtype=np.int64), np.diff(start)) * n_annotators + annotator
    both = np.isin(soft.token * n_annotators + soft.annotator, hard)
    if both.any():
        at = int(np.argmax(both))
        raise CorpusError(
            "an annotator gave a token both a label and probabilities",
            where=f"token {soft.token[at]}",
            got=f"annotator {soft.annotator[at]}",
            hint="Keep one of the two",
        )
    return soft


def _texts(column: Any) -> Strings:
    """Return a column of metadata as strings: numbers as Python writes them, nothing as the empty string."""
    if isinstance(column, Strings) or hasattr(column, "type"):  # an Arrow array
        return Strings(column)
    return Strings(["" if value is None else value if isinstance(value, str) else str(value) for value in column])


def _names(what: str, names: Any) -> tuple[str, ...]:
    result = tuple(names)
    for name in result:
        if not isinstance(name, str) or not name:
            raise CorpusError(f"every {what} needs a name that is a non-empty string", got=name)
        if any("\ud800" <= ch <= "\udfff" for ch in name):
            raise CorpusError(f"the name of a {what} is no text that can be written", got=ascii(name))
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


def _offsets(name: str, values: Any, length: int | None, total: int) -> Ints:
    array = _integers(name, values, np.int64)
    if length is not None and len(array) != length:
        raise CorpusError(f"{name} must have {length} entries", got=len(array))
    if len(array) == 0 or array[0] != 0 or array[-1] != total or np.any(np.diff(array) < 0):
        raise CorpusError(f"{name} must rise from 0 to {total}", got=array[:8].tolist())
    return readonly(array)


def _codes(name: str, values: Any, dtype: Any, bound: int, *, low: int = 0, length: int | None = None) -> Array:
    array = _integers(name, values, dtype)
    if length is not None and len(array) != length:
        raise CorpusError(f"{name} must have {length} entries", got=len(array))
    if len(array) and (array.min() < low or array.max() >= bound):
        bad = array[(array < low) | (array >= bound)][0]
        raise CorpusError(f"{name} must lie in {low}..{bound - 1}", got=int(bad))
    return readonly(array)


def _integers(name: str, values: Any, dtype: Any) -> Array:
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise CorpusError(f"{name} must be a one-dimensional array of whole numbers", got=array.dtype)
    if array.dtype == dtype:
        return np.ascontiguousarray(array)
    info = np.iinfo(dtype)
    if array.size and (array.min() < info.min or array.max() > info.max):
        raise CorpusError(f"{name} has a number that does not fit {np.dtype(dtype).name}", got=int(array.max()))
    return array.astype(dtype)


def _strictly_sorted(annotator: Ints32, start: Ints) -> None:
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


def _chars(values: Any, n_tokens: int) -> Ints32 | None:
    if values is None:
        return None
    array = np.ascontiguousarray(values, dtype=np.int32)
    if array.shape != (n_tokens, 2) or np.any(array[:, 0] > array[:, 1]) or np.any(array < 0):
        raise CorpusError(f"token_chars must be ({n_tokens}, 2) with start <= end", got=array.shape)
    return readonly(array)


def equal(a: CrowdCorpus, b: CrowdCorpus) -> bool:
    """Say whether two corpora hold the same (load reports aside)."""
    return all(_same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a) if f.name != "load_report")


def _same(x: Any, y: Any) -> bool:
    if x is None or y is None:
        return x is y
    if isinstance(x, Mapping):
        return x.keys() == y.keys() and all(_same(x[name], y[name]) for name in x)
    if isinstance(x, SoftVotes | KnownLabels):
        return all(map(np.array_equal, vars(x).values(), vars(y).values()))
    return np.array_equal(x, y) if isinstance(x, np.ndarray) else bool(x == y)

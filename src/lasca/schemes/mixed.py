"""Annotators who write their labels in different tag schemes: equal spans then look like disagreement."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lasca.corpus import CrowdCorpus
from lasca.schemes.corpora import columns_of, shifted
from lasca.schemes.tables import SCHEMES, parts_of

__all__ = ["LOWER", "PLAIN", "mixed_schemes"]

PLAIN = "no B- and I-"
LOWER = "lower case"
ENOUGH = 3  # spans: with fewer, B and I do not tell the scheme
LONG = ("BIOES", "BILOU", "BMES")


def mixed_schemes(corpus: CrowdCorpus) -> dict[str, list[str]]:
    """Return who uses which scheme if no one scheme fits all: scheme -> annotators and golds; else nothing.

    Whose labels do not tell the scheme (only O, or a few spans) fits all. An annotator whose labels are the others'
    types ("PER" where others have "B-PER"), or the others' labels in lower case, is of a scheme of their own.
    """
    parts = {label: parts_of(label) for label in corpus.labels}
    known = {label for label, part in parts.items() if part is not None}
    types = {part[1] for part in parts.values() if part is not None} - {""}
    if not types and len(known) < len(parts):
        return {}  # labels such as A, B, C: no scheme at all
    fits: dict[str, set[str]] = {}
    for name, labels, begins, insides in _uses(corpus):
        letters = {part[0] for label in labels if (part := parts[label]) is not None} - {""}
        if letters:
            schemes = _of_letters(letters, begins, insides)
        elif any(label not in known and label.upper() in known for label in labels - {"o"}):
            schemes = {LOWER}
        else:
            schemes = {PLAIN} if labels & types else set()
        if schemes:
            fits[name] = schemes
    if not fits or set.intersection(*fits.values()):
        return {}
    groups: dict[str, list[str]] = {}
    for name, schemes in fits.items():
        groups.setdefault(" or ".join(sorted(schemes)), []).append(name)
    return groups


def _of_letters(letters: set[str], begins: int, insides: int) -> set[str]:
    """Return the schemes that have these letters, for so many spans that begin with B and with I."""
    if not letters <= {"B", "I"}:
        return {name for name in LONG if letters <= set(SCHEMES[name].letters)} or {"several schemes"}
    if begins + insides < ENOUGH:
        return set()
    if insides > begins:
        return {"IO", "IOB1"} if "B" not in letters else {"IOB1"}
    return {"IOB2"}


def _uses(corpus: CrowdCorpus) -> Iterator[tuple[str, set[str], int, int]]:
    """Yield each annotator and gold, the labels they use, and how many of their spans begin with B and with I.

    A span begins where no label of the same type stands before, so the B of IOB1, behind its own type, is not counted.
    """
    parts = [parts_of(label) or ("", "") for label in corpus.labels]
    letters = np.array([letter for letter, _ in parts], "U1")
    number = {type_: i for i, type_ in enumerate(sorted({type_ for _, type_ in parts}))}
    types = np.array([number[type_] for _, type_ in parts], np.int32)
    for column, codes, joined, place in columns_of(corpus):
        letter, type_ = letters[codes], types[codes]
        first = ~(joined & shifted(letter != "", False) & (shifted(type_, -1) == type_))
        names = [column] if column else list(corpus.annotators)
        who = np.zeros(len(codes), np.int64) if column else corpus.annotation_annotator[place].astype(np.int64)
        begins = np.bincount(who[(letter == "B") & first], minlength=len(names))
        insides = np.bincount(who[(letter == "I") & first], minlength=len(names))
        pairs = np.unique(who * max(corpus.n_labels, 1) + codes)
        for i, name in enumerate(names):
            own = pairs[pairs // max(corpus.n_labels, 1) == i] % max(corpus.n_labels, 1)
            yield name, {corpus.labels[k] for k in own.tolist()}, int(begins[i]), int(insides[i])

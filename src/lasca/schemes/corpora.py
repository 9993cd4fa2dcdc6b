"""Schemes of whole corpora, on arrays: what scheme annotators and golds use, conversion, repair.

Where annotators write their labels in different tag schemes, equal spans look like disagreement (`mixed_schemes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.arrays import Array, Bools
from lasca.corpus import CrowdCorpus, LoadReport
from lasca.errors import CorpusError, excerpt
from lasca.schemes import tables
from lasca.schemes.arrays import Tags

__all__ = ["LOWER", "PLAIN", "convert_corpus", "count_illegal", "detect_corpus", "mixed_schemes", "repair_corpus"]

_PARTS = ("", "B", "I", "E", "S")
PLAIN = "no B- and I-"
LOWER = "lower case"
ENOUGH = 3  # spans: with fewer, B and I do not tell the scheme
LONG = ("BIOES", "BILOU", "BMES")


def detect_corpus(corpus: CrowdCorpus) -> str | None:
    """Return the tag scheme of a corpus: by its labels and, for IOB1 or IOB2, by how golds and annotators use B."""
    by_labels = tables.detect_labels(corpus.labels)
    if by_labels != "IOB2":
        return by_labels
    read = Tags(tables.split_label(label) for label in corpus.labels)
    is_begin, is_inside = read.letter == "B", read.letter == "I"
    at_first = behind = inside_first = False
    for _, codes, joined, _ in columns_of(corpus):
        same = read.behind_same(codes, joined)
        at_first |= bool((is_begin[codes] & ~same).any())
        behind |= bool((is_begin[codes] & same).any())
        inside_first |= bool((is_inside[codes] & ~same).any())
    return "IOB1" if behind and inside_first and not at_first else "IOB2"


def convert_corpus(corpus: CrowdCorpus, to: str) -> CrowdCorpus:
    """Return the corpus with all annotations and golds written in a scheme; how many tags changed is reported."""
    changed, counts = _retagged(corpus, to)
    return _reported(changed, {f"converted to {to}": sum(counts.values())})


def repair_corpus(corpus: CrowdCorpus) -> CrowdCorpus:
    """Return the corpus with legal tags; the changes are counted ("repaired": annotations, "repaired in golds")."""
    scheme = detect_corpus(corpus)
    if scheme is None:
        return corpus
    changed, counts = _retagged(corpus, scheme)
    return _reported(changed, {"repaired": counts.pop("", 0), "repaired in golds": sum(counts.values())})


def count_illegal(corpus: CrowdCorpus) -> tuple[int, int]:
    """Return how many tags of annotators and how many of golds `repair_corpus` would change."""
    scheme = detect_corpus(corpus)
    if scheme is None:
        return 0, 0
    counts = _retagged(corpus, scheme)[1]
    return counts.pop("", 0), sum(counts.values())


def _reported(corpus: CrowdCorpus, counts: dict[str, int]) -> CrowdCorpus:
    old = corpus.load_report
    merged = dict(old.counts)
    for kind, n in counts.items():
        if n:
            merged[kind] = merged.get(kind, 0) + n
    return replace(corpus, load_report=LoadReport(old.source, old.format, merged, old.examples, old.notes))


def _retagged(corpus: CrowdCorpus, to: str) -> tuple[CrowdCorpus, dict[str, int]]:
    if not corpus.labels or not all(tables.parts_of(label) for label in corpus.labels):
        raise CorpusError("the labels are of no tag scheme", got=", ".join(excerpt(label) for label in corpus.labels))
    table, labels = tables.scheme_of(to), tables.complete_labels(corpus.labels, to)
    code_of = {label: i for i, label in enumerate(labels)}
    same = np.array([code_of.get(label, -1) for label in corpus.labels], np.int16)
    read = Tags(tables.split_label(label) for label in corpus.labels)
    code = np.full((len(_PARTS), len(same)), code_of[tables.OUTSIDE], np.int16)  # new code by part and old code
    for p, part in enumerate(_PARTS):
        if part in table.letters.values():
            code[p] = [code_of.get(table.label(part, tables.split_label(old)[1]), -1) for old in corpus.labels]
    annotation_label = np.empty_like(corpus.annotation_label)
    golds: dict[str, Array] = {}
    counts: dict[str, int] = {}
    for name, codes, joined, place in columns_of(corpus):
        fresh = code[_parts(codes, joined, read, table), codes]
        counts[name] = int((fresh != same[codes]).sum())
        if not name:
            annotation_label[place] = fresh
        else:
            golds[name.removeprefix("gold ")] = np.full(corpus.n_tokens, -1, np.int16)
            golds[name.removeprefix("gold ")][place] = fresh
    more = _same_evidence(corpus, same, labels, to)
    return replace(corpus, labels=labels, golds=golds, annotation_label=annotation_label, **more), counts


def _same_evidence(corpus: CrowdCorpus, same: Array, labels: Sequence[str], to: str) -> dict[str, Any]:
    """Return soft votes and known labels over the labels of a scheme that has all labels there were."""
    given = {name: getattr(corpus, name) for name in ("soft", "known") if getattr(corpus, name) is not None}
    if given and (same < 0).any():
        raise CorpusError(
            f"{' and '.join(given)} cannot be written in {to}: labels go over by spans, probabilities and flags do not",
            hint="Bring them in after the tags were converted",
        )
    return {name: record.recoded(same, len(labels)) for name, record in given.items()}


def columns_of(corpus: CrowdCorpus) -> Iterable[tuple[str, Array, Bools, Array]]:
    """Yield a name, codes in reading order, whether each follows the one before in its sequence, and their places.

    First the annotations (named "", ordered by annotator, then token), then each gold ("gold NAME").
    """
    order = np.argsort(corpus.annotation_annotator, kind="stable")
    token, who = corpus.annotation_token[order].astype(np.int64), corpus.annotation_annotator[order]
    joined = _joined(corpus, token)
    joined[1:] &= who[1:] == who[:-1]
    yield "", corpus.annotation_label[order], joined, order
    for name, gold in corpus.golds.items():
        known = np.flatnonzero(gold >= 0)
        yield f"gold {name}", gold[known], _joined(corpus, known), known


def _joined(corpus: CrowdCorpus, token: Array) -> Bools:
    """Say of each token of a rising list whether the one before it in the list is its neighbour in the sequence."""
    result = np.zeros(len(token), np.bool_)
    same_sequence = corpus.token_sequence[token[1:]] == corpus.token_sequence[token[:-1]]
    result[1:] = (np.diff(token) == 1) & same_sequence
    return result


def _parts(codes: Array, joined: Bools, read: Tags, table: tables.Scheme) -> npt.NDArray[np.int8]:
    """Return the index into _PARTS of every tag when its spans are written in a scheme."""
    inside, goes_on, behind_same = read.kind[codes] >= 0, read.goes_on(codes, joined), read.behind_same(codes, joined)
    begins, ends = inside & ~goes_on, np.ones_like(inside)
    ends[:-1] = ~goes_on[1:]
    choice = [_PARTS.index(table.part(*flags)) for flags in product((False, True), repeat=3)]
    picked = begins.astype(np.int8) * 4 + (inside & ends) * 2 + behind_same
    return np.where(inside, np.array(choice, np.int8)[picked], np.int8(0))


def mixed_schemes(corpus: CrowdCorpus) -> dict[str, list[str]]:
    """Return who uses which scheme if no one scheme fits all: scheme -> annotators and golds; else nothing.

    Whose labels do not tell the scheme (only O, or a few spans) fits all. An annotator whose labels are the others'
    types ("PER" where others have "B-PER"), or the others' labels in lower case, is of a scheme of their own.
    """
    parts = {label: tables.parts_of(label) for label in corpus.labels}
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
        return {name for name in LONG if letters <= set(tables.SCHEMES[name].letters)} or {"several schemes"}
    if begins + insides < ENOUGH:
        return set()
    if insides > begins:
        return {"IO", "IOB1"} if "B" not in letters else {"IOB1"}
    return {"IOB2"}


def _uses(corpus: CrowdCorpus) -> Iterator[tuple[str, set[str], int, int]]:
    """Yield each annotator and gold, the labels they use, and how many of their spans begin with B and with I.

    A span begins where no label of the same type stands before, so the B of IOB1, behind its own type, is not counted.
    """
    read = Tags(tables.parts_of(label) or ("", "") for label in corpus.labels)
    for column, codes, joined, place in columns_of(corpus):
        letter, first = read.letter[codes], ~read.behind_same(codes, joined)
        names = [column] if column else list(corpus.annotators)
        who = np.zeros(len(codes), np.int64) if column else corpus.annotation_annotator[place].astype(np.int64)
        begins = np.bincount(who[(letter == "B") & first], minlength=len(names))
        insides = np.bincount(who[(letter == "I") & first], minlength=len(names))
        pairs = np.unique(who * max(corpus.n_labels, 1) + codes)
        for i, name in enumerate(names):
            own = pairs[pairs // max(corpus.n_labels, 1) == i] % max(corpus.n_labels, 1)
            yield name, {corpus.labels[k] for k in own.tolist()}, int(begins[i]), int(insides[i])

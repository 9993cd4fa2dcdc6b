"""The CRF as a text model: what the text says about labels.

Beside the templates of `lasca.crf` a token has attributes of its document and corpus: is the word written in another
case elsewhere in the document, how often is it capitalised inside sentences, how does the document begin, where in it
is the sequence. Once it has been tagged, there is also what was said of the same word elsewhere (`Elsewhere`): a name
that is clear in one sentence helps where it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from lasca import crf
from lasca.arrays import Bools, Ints, Proba
from lasca.corpus import CrowdCorpus
from lasca.engine import available_threads
from lasca.schemes import detect

__all__ = ["Columns", "CrfTask", "CrfText", "Elsewhere", "with_columns"]


def with_columns(features: crf.Features, columns: Sequence[tuple[Ints, int]]) -> crf.Features:
    """Add columns of codes per token (−1: none), each with its number of codes; equal rows share a bundle."""
    base = features.n_features
    shifted = []
    for codes, size in columns:
        shifted.append(np.where(codes >= 0, codes + base, -1))
        base += size
    rows, place = np.unique(np.stack(shifted, axis=1), axis=0, return_inverse=True)
    lengths = (rows >= 0).sum(axis=1)
    start = np.concatenate([features.bundle_start, features.bundle_start[-1] + np.cumsum(lengths)])
    flat = np.concatenate([features.bundle_feature, rows[rows >= 0].astype(np.int32)])
    slot = (place.reshape(-1, 1) + features.n_bundles).astype(np.int32)
    slots = np.ascontiguousarray(np.hstack([features.slots, slot]))
    return crf.Features(features.offsets, slots, start, flat, base)


@dataclass(frozen=True)
class _Places:
    """Codes of tokens that the document columns are made of."""

    lower: Ints
    sequence: Ints
    document: Ints
    inside: Bools
    """Not the first token of its sequence, and the sequence is not all in capitals."""
    case: Ints
    """0 lower, 1 title or mixed, 2 all capitals, 3 no letters."""


def _places(corpus: CrowdCorpus, documents: Ints, known: dict[str, int] | None = None) -> _Places:
    """Return the codes; words in small letters are numbered on from those that are `known`."""
    word, names = corpus.tokens.codes()
    index = dict(known or {})
    lower = np.array([index.setdefault(name.lower(), len(index)) for name in names], dtype=np.int64)[word]
    case = np.array([_case(name) for name in names], dtype=np.int64)[word]
    sequence = corpus.token_sequence.astype(np.int64)
    n = corpus.n_sequences
    small = np.bincount(sequence[case < 2], minlength=n)  # a word of one capital, as "A", counts as capitals
    inside = np.ones(corpus.n_tokens, dtype=bool)
    inside[corpus.offsets[:-1][np.diff(corpus.offsets) > 0]] = False
    inside &= small[sequence] > 0
    return _Places(lower, sequence, documents[sequence], inside, case)


def _case(word: str) -> int:
    if word.upper() == word.lower():
        return 3
    return 2 if word.upper() == word else int(word.lower() != word)


def _pairs(document: Ints, lower: Ints) -> Ints:
    """Number the pairs (document, word) of tokens."""
    return np.asarray(np.unique(document * (int(lower.max()) + 1) + lower, return_inverse=True)[1]).reshape(-1)


def _level(share: npt.NDArray[np.floating], known: Bools) -> Ints:
    """Cut shares into five levels; −1 where unknown."""
    return np.where(known, np.searchsorted([0.02, 0.3, 0.7, 0.98], share), -1)


def _usage(group: Ints, p: _Places) -> tuple[Ints, Ints]:
    """Return, of each group of tokens, how often it is capitalised where that means something, and how often it is
    there: levels.
    """
    capital = (p.case == 1) | (p.case == 2)
    seen = np.bincount(group[p.inside], minlength=int(group.max()) + 1)
    high = np.bincount(group[p.inside & capital], minlength=len(seen))
    often = np.floor(np.log2(np.maximum(np.bincount(group), 1))).astype(np.int64)
    return _level(high / np.maximum(seen, 1), seen > 0), np.minimum(often, 5)


class Columns:
    """Columns of codes that depend on the text alone: what a corpus says of its words is known in other texts too."""

    def __init__(self, corpus: CrowdCorpus, documents: Ints) -> None:
        p = _places(corpus, documents)
        names = (name.lower() for name in corpus.tokens.codes()[1])
        self.index = {name: i for i, name in enumerate(dict.fromkeys(names))}
        self.capital, self.often = (np.append(level, none) for level, none in zip(_usage(p.lower, p), (-1, 0)))
        first = p.lower[_first_tokens(p)[np.unique(p.document)]]
        self.is_head = np.append(np.bincount(first, minlength=len(self.index)) > 1, False)
        self.kept = [np.unique(column[column >= 0]) for column in self._raw(corpus, p)]

    def of(self, corpus: CrowdCorpus, documents: Ints) -> list[tuple[Ints, int]]:
        """Return the columns of a text, each with its number of codes; −1 for codes that the corpus does not have."""
        columns = []
        for raw, kept in zip(self._raw(corpus, _places(corpus, documents, self.index)), self.kept):
            place = np.searchsorted(kept, raw)
            columns.append((np.where(np.append(kept, -2)[place] == raw, place, -1), len(kept)))
        return columns

    def _raw(self, corpus: CrowdCorpus, p: _Places) -> list[Ints]:
        kind = np.minimum(p.case, 3)
        known = np.minimum(p.lower, len(self.index))
        pair = _pairs(p.document, p.lower)
        usage = [self.capital[known], self.often[known], *(level[pair] for level in _usage(pair, p))]
        columns = [usage[0] * 4 + kind + 4, usage[1] * 4 + kind, usage[2] * 4 + kind + 4, usage[3] * 4 + kind]
        position, length = _positions(corpus, p)
        columns.append(position * 4 + kind)
        columns.append(np.minimum(length, 40) // 4)
        small = np.bincount(p.sequence[p.case < 2], minlength=corpus.n_sequences)
        columns.append(np.where(small[p.sequence] > 0, -1, kind))
        head = known[_first_tokens(p)[p.document]]  # a heading, as SOCCER: it begins another document too
        head = np.where(self.is_head[head], head, -1)
        return [*columns, head, np.where(head >= 0, head * 4 + kind, -1)]


def _first_tokens(p: _Places) -> Ints:
    """Return the first token of each document."""
    first = np.full(int(p.document.max()) + 1, -1, dtype=np.int64)
    order = np.arange(len(p.document))[::-1]
    first[p.document[order]] = order
    return first


def _positions(corpus: CrowdCorpus, p: _Places) -> tuple[Ints, Ints]:
    """Return where in its document a token's sequence is (first three, last, other), and its length."""
    length = np.diff(corpus.offsets)
    document = np.zeros(corpus.n_sequences, dtype=np.int64)
    document[p.sequence] = p.document
    order = np.argsort(document, kind="stable")
    sizes = np.bincount(document, minlength=int(document.max()) + 1)
    begins = np.cumsum(sizes) - sizes
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - begins[document[order]]
    place = np.where(rank < 3, rank, np.where(rank == sizes[document] - 1, 3, 4))
    return place[p.sequence], length[p.sequence].astype(np.int64)


class Elsewhere:
    """Columns of what was said of the same word elsewhere: in other sequences of its document, in other documents."""

    def __init__(self, corpus: CrowdCorpus, documents: Ints) -> None:
        p = _places(corpus, documents)
        self.case = p.case
        self.sequence, self.document, self.corpus = _pairs(p.sequence, p.lower), _pairs(p.document, p.lower), p.lower

    def of(self, said: Proba) -> list[tuple[Ints, int]]:
        """Return the two columns for labels' probabilities (n_tokens, T); −1 where the word is not elsewhere."""
        sequence, document, corpus = (_sums(group, said) for group in (self.sequence, self.document, self.corpus))
        codes = (_likeliest(document - sequence), _likeliest(corpus - document))
        return [(np.where(code >= 0, code * 4 + self.case, -1), said.shape[1] * 12) for code in codes]


def _sums(group: Ints, said: Proba) -> Proba:
    """Return the sum over the group of each token."""
    return np.stack([np.bincount(group, weights=column)[group] for column in said.T], axis=1)


def _likeliest(sums: Proba) -> Ints:
    """Return the label that is said most often and by how much, in three levels: a code; −1 where there is nothing."""
    total, label = sums.sum(axis=1), sums.argmax(axis=1)
    share = sums.max(axis=1) / np.maximum(total, 0.5)
    return np.where(total > 0.5, label * 3 + np.searchsorted([0.6, 0.9], share), -1)


@dataclass(frozen=True)
class CrfText:
    """The CRF as a text model; `iterations` of L-BFGS in each fit, from the weights of the fit before."""

    l2: float = 1.0
    min_count: int = 2
    iterations: int = 30

    def prepare(self, corpus: CrowdCorpus, n_threads: int | None = None) -> CrfTask:
        """Find the features of all tokens."""
        templates = "pos" if detect(corpus.labels) is None else "ner"
        extractor, documents = crf.Extractor(templates=templates, min_count=self.min_count), corpus.documents
        features = extractor.fit(corpus.tokens, corpus.offsets)
        columns = Columns(corpus, documents)
        wider = with_columns(features, columns.of(corpus, documents))
        return CrfTask(self, extractor, columns, wider, available_threads(n_threads), Elsewhere(corpus, documents))


@dataclass(frozen=True)
class CrfTask:
    """A corpus as the CRF sees it."""

    settings: CrfText
    extractor: crf.Extractor
    columns: Columns
    features: crf.Features
    n_threads: int
    words: Elsewhere | None = None

    def hearing(self, said: Proba) -> CrfTask:
        """Return the task with attributes of what was said of all tokens."""
        if self.words is None:
            return self
        return replace(self, features=with_columns(self.features, self.words.of(said)), words=None)

    def fit(self, targets: Proba, sequences: Ints, before: crf.Weights | None = None) -> crf.Weights:
        """Train on the labels' probabilities of some sequences."""
        return crf.fit(
            self.features,
            targets,
            l2=self.settings.l2,
            sequences=sequences,
            init=None if before is None else before.wider(self.features.n_features),
            max_iter=self.settings.iterations,
            n_threads=self.n_threads,
        )

    def predict(self, learned: crf.Weights, sequences: Ints, out: Proba) -> None:
        """Write the labels' probabilities of some sequences to `out`."""
        crf.marginals(self.features, learned, sequences=sequences, n_threads=self.n_threads, out=out)

    @property
    def elsewhere(self) -> Callable[[CrowdCorpus, Ints], CrfTask]:
        """Reads another text with the features of this one."""
        return partial(_task_elsewhere, self.settings, self.extractor, self.columns)


def _task_elsewhere(
    settings: CrfText, extractor: crf.Extractor, columns: Columns, corpus: CrowdCorpus, documents: Ints
) -> CrfTask:
    """Find the features of all tokens; those that are not known are left out."""
    features = with_columns(extractor.transform(corpus.tokens, corpus.offsets), columns.of(corpus, documents))
    return CrfTask(settings, extractor, columns, features, 1)

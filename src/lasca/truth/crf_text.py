"""The CRF as a text model: what the text says about labels.

Beside the templates of `lasca.crf` a token has attributes of its document and corpus: is the word written in another
case elsewhere in the document, how often is it capitalised inside sentences, how does the document begin, where in it
is the sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasca import crf
from lasca.corpus import CrowdCorpus
from lasca.engine import available_threads
from lasca.schemes import detect
from lasca.truth.text_models import document_codes

__all__ = ["CrfTask", "CrfText", "static_columns", "with_columns"]

Ints = npt.NDArray[np.int64]


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


def _compact(codes: Ints) -> tuple[Ints, int]:
    """Number the codes that occur; −1 stays."""
    known, place = np.unique(codes, return_inverse=True)
    none = int(known[0] == -1)
    return np.asarray(place).reshape(-1) - none, len(known) - none


@dataclass(frozen=True)
class _Places:
    """Codes of tokens that the document columns are made of."""

    word: Ints
    lower: Ints
    sequence: Ints
    document: Ints
    inside: npt.NDArray[np.bool_]
    """Not the first token of its sequence, and the sequence is not all in capitals."""
    case: Ints
    """0 lower, 1 title or mixed, 2 all capitals, 3 no letters."""


def _places(corpus: CrowdCorpus, documents: Ints) -> _Places:
    word, names = corpus.tokens.codes()
    index: dict[str, int] = {}
    lower = np.array([index.setdefault(name.lower(), len(index)) for name in names], dtype=np.int64)[word]
    case = np.array([_case(name) for name in names], dtype=np.int64)[word]
    sequence = corpus.token_sequence.astype(np.int64)
    n = corpus.n_sequences
    small = np.bincount(sequence[case < 2], minlength=n)  # a word of one capital, as "A", counts as capitals
    inside = np.ones(corpus.n_tokens, dtype=bool)
    inside[corpus.offsets[:-1][np.diff(corpus.offsets) > 0]] = False
    inside &= small[sequence] > 0
    return _Places(word.astype(np.int64), lower, sequence, documents[sequence], inside, case)


def _case(word: str) -> int:
    if word.upper() == word.lower():
        return 3
    return 2 if word.upper() == word else int(word.lower() != word)


def _pairs(document: Ints, lower: Ints) -> Ints:
    """Number the pairs (document, word) of tokens."""
    return np.asarray(np.unique(document * (int(lower.max()) + 1) + lower, return_inverse=True)[1]).reshape(-1)


def _level(share: npt.NDArray[np.floating], known: npt.NDArray[np.bool_]) -> Ints:
    """Cut shares into five levels; −1 where unknown."""
    return np.where(known, np.searchsorted([0.02, 0.3, 0.7, 0.98], share), -1)


def static_columns(corpus: CrowdCorpus, documents: Ints) -> list[tuple[Ints, int]]:
    """Return columns that depend on the text alone."""
    p = _places(corpus, documents)
    kind = np.minimum(p.case, 3)
    pair = _pairs(p.document, p.lower)
    columns: list[Ints] = []
    for group in (p.lower, pair):  # in the corpus, in the document: how often capitalised where that means something
        capital = (p.case == 1) | (p.case == 2)
        seen = np.bincount(group[p.inside], minlength=int(group.max()) + 1)
        high = np.bincount(group[p.inside & capital], minlength=len(seen))
        level = _level((high / np.maximum(seen, 1))[group], seen[group] > 0)
        columns.append(level * 4 + kind + 4)
        times = np.bincount(group)[group]
        columns.append(np.minimum(np.floor(np.log2(times)).astype(np.int64), 5) * 4 + kind)
    position, length = _positions(corpus, p)
    columns.append(position * 4 + kind)
    columns.append(np.minimum(length, 40) // 4)
    columns.append(
        np.where(np.bincount(p.sequence[p.case < 2], minlength=corpus.n_sequences)[p.sequence] > 0, -1, kind)
    )
    head = _heads(corpus, p)
    columns += [head, np.where(head >= 0, head * 4 + kind, -1)]
    return [_compact(column) for column in columns]


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


def _heads(corpus: CrowdCorpus, p: _Places) -> Ints:
    """Return the first word of a token's document where it begins another one too: a heading, as SOCCER."""
    first_token = np.full(int(p.document.max()) + 1, -1, dtype=np.int64)
    order = np.arange(corpus.n_tokens)[::-1]
    first_token[p.document[order]] = order
    head = p.lower[first_token[p.document]]
    _, used = np.unique(p.document, return_index=True)
    times = np.bincount(head[used], minlength=int(p.lower.max()) + 1)
    return np.where(times[head] > 1, head, -1)


@dataclass(frozen=True)
class CrfText:
    """The CRF as a text model; `iterations` of L-BFGS in each fit, from the weights of the fit before."""

    l2: float = 1.0
    min_count: int = 2
    iterations: int = 30

    def prepare(self, corpus: CrowdCorpus, n_threads: int | None = None) -> CrfTask:
        """Find the features of all tokens."""
        templates = "pos" if detect(corpus.labels) is None else "ner"
        features = crf.Extractor(templates=templates, min_count=self.min_count).fit(corpus.tokens, corpus.offsets)
        wider = with_columns(features, static_columns(corpus, document_codes(corpus)))
        return CrfTask(self, wider, available_threads(n_threads))


@dataclass(frozen=True)
class CrfTask:
    """A corpus as the CRF sees it."""

    settings: CrfText
    features: crf.Features
    n_threads: int

    def fit(self, targets: npt.NDArray[np.float32], sequences: Ints, before: crf.Weights | None = None) -> crf.Weights:
        """Train on the labels' probabilities of some sequences."""
        return crf.fit(
            self.features,
            targets,
            l2=self.settings.l2,
            sequences=sequences,
            init=before,
            max_iter=self.settings.iterations,
            threads=self.n_threads,
        )

    def predict(self, learned: crf.Weights, sequences: Ints, out: npt.NDArray[np.float32]) -> None:
        """Write the labels' probabilities of some sequences to `out`."""
        crf.marginals(self.features, learned, sequences=sequences, threads=self.n_threads, out=out)

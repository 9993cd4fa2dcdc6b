"""What the text says about labels: a CRF trained on the current posterior, by cross-fitting.

Documents (sequences, where there are no documents) are dealt to folds; a fold is tagged by a CRF trained on the other
folds, so that no tagger has seen the crowd's labels of what it votes on. Beside the templates of `lasca.crf` a token
has attributes of its document and corpus: is the word written in another case elsewhere in the document, how often is
it capitalised inside sentences, how does the document begin, where in it is the sequence.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasca import crf
from lasca.corpus import CrowdCorpus
from lasca.schemes import detect

__all__ = ["CrossFit", "document_codes", "with_columns"]

Ints = npt.NDArray[np.int64]


def document_codes(corpus: CrowdCorpus) -> Ints:
    """Return the document of each sequence: metadata "document" if there is more than one, else itself."""
    column = corpus.metadata.get("document")
    if column is not None:
        codes, names = column.codes()
        if len(names) > 1:
            return codes.astype(np.int64)
    return np.arange(corpus.n_sequences)


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


def _deal(corpus: CrowdCorpus, documents: Ints, folds: int, salt: int) -> Ints:
    """Return the fold of each sequence: documents ordered by a checksum of their text, whatever order they come in."""
    n = int(documents.max()) + 1
    sums = [salt] * n
    for sequence, document in enumerate(documents.tolist()):
        words = "\n".join([*corpus.sequence(sequence), ""])
        sums[document] = zlib.crc32(words.encode("utf-8", "surrogatepass"), sums[document])
    rank = np.empty(n, dtype=np.int64)
    rank[np.argsort(sums, kind="stable")] = np.arange(n)
    return np.asarray((rank % folds)[documents])


class CrossFit:
    """Out-of-fold CRFs over a corpus; each call starts from the weights of the call before."""

    def __init__(
        self,
        corpus: CrowdCorpus,
        rng: np.random.Generator,
        *,
        folds: int,
        l2: float,
        min_count: int,
        n_threads: int,
    ) -> None:
        self.l2, self.n_threads = l2, n_threads
        self.documents = document_codes(corpus)
        self.n_folds = min(folds, int(self.documents.max()) + 1)
        self.fold = _deal(corpus, self.documents, self.n_folds, int(rng.integers(1 << 32)))
        self.trained = corpus.annotated_sequences
        templates = "pos" if detect(corpus.labels) is None else "ner"
        features = crf.Extractor(templates=templates, min_count=min_count).fit(corpus.tokens, corpus.offsets)
        self.features = with_columns(features, static_columns(corpus, self.documents))
        self.weights: list[crf.Weights | None] = [None] * self.n_folds

    @property
    def possible(self) -> bool:
        """Whether there are two folds at least with something to learn from."""
        return len(np.unique(self.fold[self.trained])) > 1

    def __call__(self, proba: npt.NDArray[np.floating], max_iter: int) -> npt.NDArray[np.float32]:
        """Train on label probabilities, each fold's tagger on the other folds; return what each says of its own."""
        features = self.features
        targets = np.ascontiguousarray(proba, dtype=np.float32)
        out = np.zeros_like(targets)
        for k, init in enumerate(self.weights):
            rest = np.flatnonzero((self.fold != k) & self.trained)
            weights = crf.fit(
                features, targets, l2=self.l2, sequences=rest, init=init, max_iter=max_iter, threads=self.n_threads
            )
            self.weights[k] = weights
            own = np.flatnonzero(self.fold == k)
            out = crf.marginals(features, weights, sequences=own, threads=self.n_threads, out=out)
        return out

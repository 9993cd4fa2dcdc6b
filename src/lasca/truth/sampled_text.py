"""The text of a large corpus, in memory or in shards: text models learn from a sample, and read all block by block.

A checksum of its text says which fold a document belongs to and how early it is drawn: neither depends on the order of
documents, nor on where blocks or shards end, and equal documents share a fold. The sample is brought together, each
fold's text model learns from what was drawn of the other folds, and what it says of its own fold is written where
the blocks are. Memory: the sample, and the features of a block for each thread or worker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from lasca.arrays import Bools, Ints, Proba, borders
from lasca.corpus import CrowdCorpus
from lasca.corpus.shards import ShardedCorpus, sequences_of
from lasca.corpus.strings import Strings
from lasca.corpus.votes import Block
from lasca.engine import Engine
from lasca.truth.beside import Keep
from lasca.truth.text_models import TextModel, checksums, probabilities, trained

__all__ = ["MOST_TRAINED", "SampledText"]

MOST_TRAINED = 250_000
"""Tokens that text models learn from at most: of a larger corpus they see a sample."""

Map = Callable[[Callable[[Any, Block], Any], Any], list[Any]]
"""Returns function(state, block) of every block, in their order."""


@dataclass(frozen=True)
class Dealing:
    """Which text a block has, and what becomes of its documents."""

    salt: int
    folds: int
    has_documents: bool
    """Whether there is more than one: else every sequence is one."""
    whole: CrowdCorpus | None
    """The corpus, if it is in memory."""

    def text(self, block: Block) -> tuple[CrowdCorpus, Ints]:
        """Return the text of a block, and the document of each of its sequences."""
        if self.whole is None:
            text = block.place.corpus.part(block.place.first, block.place.last)
        else:
            text = self.whole.select(sequences=np.arange(*sequences_of(self.whole.offsets, block.first, block.last)))
        if not self.has_documents:
            return text, np.arange(text.n_sequences)
        return text, text.metadata["document"].codes()[0].astype(np.int64)

    def dealt(self, text: CrowdCorpus, documents: Ints) -> tuple[Ints, Ints]:
        """Return the fold of each document, and a number that says how early it is drawn."""
        turn, fold = np.divmod(checksums(text, documents, self.salt), self.folds)
        return fold, turn


def _offered(asked: tuple[Dealing, int], block: Block) -> tuple[Ints, Ints, Ints]:
    """Return the turns, sizes and numbers of documents, the earliest first, of which somebody labelled a sequence;
    no more than one block could give.
    """
    dealing, most = asked
    text, documents = dealing.text(block)
    size = np.bincount(documents, weights=np.diff(text.offsets)).astype(np.int64)
    turn = dealing.dealt(text, documents)[1]
    own = np.unique(documents[text.annotated_sequences])
    own = own[np.argsort(turn[own], kind="stable")]
    own = own[: np.searchsorted(np.cumsum(size[own]), most, "right") + 1]
    return turn[own], size[own], own


@dataclass(frozen=True)
class Sampled:
    """What was drawn of a block."""

    tokens: Strings
    lengths: Ints
    rows: Ints
    """Its tokens, in the block."""
    document: Ints
    fold: Ints
    labelled: Bools


def _taken(asked: tuple[Dealing, list[Ints]], block: Block) -> Sampled:
    """Return the documents that were drawn."""
    dealing, drawn = asked
    text, documents = dealing.text(block)
    taken = np.isin(documents, drawn[block.number])
    part = text.select(sequences=np.flatnonzero(taken))
    fold = dealing.dealt(text, documents)[0]
    return Sampled(
        part.tokens,
        np.diff(part.offsets),
        np.flatnonzero(taken[text.token_sequence]),
        documents[taken],
        fold[documents[taken]],
        part.annotated_sequences,
    )


def _means(rows: list[Ints], block: Block) -> Proba:
    mean: Proba = block.beside.mean[rows[block.number]]
    return mean


def _heard(asked: tuple[Dealing, Any, list[Any], Keep], block: Block) -> Any:
    """Let the text models read a block, each its own fold; what was said without them stays."""
    dealing, elsewhere, learned, keep = asked
    (text, documents), said = dealing.text(block), block.beside
    fold = dealing.dealt(text, documents)[0][documents]
    task, out = elsewhere(text, documents), np.zeros_like(said.mean)
    for k, model in enumerate(learned):
        task.predict(model, np.flatnonzero(fold == k), out)
    plain = said.mean if said.plain is None else said.plain
    return keep(block.number, replace(said, plain=plain, text=probabilities(task, out)))


class SampledText:
    """Out-of-fold text models of a large corpus; each round goes on from what the round before learned."""

    def __init__(
        self, corpus: CrowdCorpus | ShardedCorpus, model: TextModel, visit: Map, *, most: int, folds: int, salt: int,
        n_threads: int | None = None,
    ) -> None:  # fmt: skip
        """Draw documents of about `most` tokens in all."""
        whole = None if isinstance(corpus, ShardedCorpus) else corpus
        self.dealing = Dealing(salt, folds, corpus.has_documents, whole)
        offered = visit(_offered, (self.dealing, most))
        turn, size, document = (np.concatenate(arrays) for arrays in zip(*offered))
        number = np.repeat(np.arange(len(offered)), [len(turns) for turns, *_ in offered])
        order = np.argsort(turn, kind="stable")
        order = order[: max(1, np.searchsorted(np.cumsum(size[order]), most, "right"))]
        drawn = [document[order[number[order] == block]] for block in range(len(offered))]
        parts = visit(_taken, (self.dealing, drawn))
        self.rows = [part.rows for part in parts]
        self.fold, labelled = (np.concatenate([getattr(part, name) for part in parts]) for name in ("fold", "labelled"))
        self.trained = [np.flatnonzero((self.fold != k) & labelled) for k in range(folds)]
        self.possible = all(len(sequences) > 0 for sequences in self.trained)
        self.task = model.prepare(_joined(parts, corpus.labels), n_threads)
        self.learned: list[Any] = [None] * folds

    def __call__(self, visit: Map, keep: Keep, engine: Engine | None = None) -> list[Any]:
        """Train on what the members say of the sample; return what blocks are to hold beside them."""
        targets = np.concatenate(visit(_means, self.rows))
        self.learned = trained(self.task, targets, self.trained, self.learned, engine)
        return visit(_heard, (self.dealing, self.task.elsewhere, self.learned, keep))


def _joined(parts: list[Sampled], labels: tuple[str, ...]) -> CrowdCorpus:
    """Return the text of the sample as a corpus that nobody labelled."""
    lengths = np.concatenate([part.lengths for part in parts])
    names = [f"{i}-{document}" for i, part in enumerate(parts) for document in part.document.tolist()]
    n_tokens = int(lengths.sum())
    return CrowdCorpus(
        tokens=Strings(pa.concat_arrays([part.tokens.arrow for part in parts])),
        offsets=borders(lengths),
        labels=labels,
        annotators=(),
        annotation_annotator=np.zeros(0, np.int32),
        annotation_label=np.zeros(0, np.int16),
        token_start=np.zeros(n_tokens + 1, np.int64),
        sequence_ids=Strings(map(str, range(len(lengths)))),
        metadata={"document": Strings(names)},
    )

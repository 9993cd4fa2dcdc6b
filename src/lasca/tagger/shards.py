"""Taggers and corpora in shards: a CRF learns from them block by block, and any tagger labels them.

The bytes are those of the corpus in memory: `CrfTagger` cuts a large corpus into the same blocks there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lasca.arrays import Array, borders
from lasca.corpus.shards import BlockOnDisk, ShardedCorpus
from lasca.corpus.store import write_part
from lasca.crf.training import LabelledText
from lasca.engine import Engine, Threads
from lasca.errors import ModelError, ParameterError
from lasca.estimator import Progress
from lasca.tagger.base import load_tagger
from lasca.tagger.crf_tagger import CrfTagger
from lasca.tagger.prepare import block_tokens, constraint_of, label_pairs, labelled_sequences, over_labels
from lasca.truth.parts import TruthOnDisk

__all__ = ["TAG_TOKENS", "fit_in_shards", "learner_of", "tag_in_shards"]

TAG_TOKENS = 200_000
"""About so many tokens are tagged at a time."""


@dataclass(frozen=True)
class LabelledBlock:
    """Where a block is that a tagger learns from: words from the shards, labels from the truth, or from a gold."""

    place: Any
    gold: str | None
    soft: bool
    certain: float
    active: tuple[int, ...] | None = None
    """The labels that targets are over; None: all."""

    @property
    def number(self) -> int:
        """Which block it is."""
        return int(self.place.number)

    def load(self) -> LabelledText:
        """Read the sequences that have any label; the targets are those `Tagger.fit` would make."""
        block = self.place.load()
        corpus, offsets = self.place.corpus, block.votes.offsets
        if self.gold is not None:
            given = codes = corpus.gold(self.gold, self.place.first, self.place.last)
        else:
            found = self.place.truth()
            codes = found.labels
            if self.certain:
                sure = found.proba[np.arange(len(codes)), codes] >= self.certain
                codes = np.where(sure, codes, np.int16(-1))
            given = found.proba if self.soft else codes
        used = labelled_sequences(codes, offsets)
        lengths = np.diff(offsets)
        rows = np.repeat(used, lengths)
        words = corpus.words.arrow.take(pa.array(block.votes.words[rows])).to_pylist()
        targets = given[rows]
        if self.active is not None:
            targets = over_labels(targets, np.array(self.active), corpus.n_labels)
        return LabelledText(words, borders(lengths[used]), targets, self.number)


@dataclass(frozen=True)
class LookAtLabels:
    """Which labels occur in a block, and which follow each other."""

    n_labels: int

    def visit(self, state: None, text: LabelledText, local: Any) -> tuple[tuple[Array, Array], None]:
        """Return both as truth values."""
        if text.targets.ndim == 2:
            present = text.targets.max(axis=0, initial=0) > 1e-6
        else:
            present = np.bincount(text.targets[text.targets >= 0], minlength=self.n_labels) > 0
        return (present, label_pairs(text.targets, text.offsets, self.n_labels)), None


def learner_of(tagger: Any) -> CrfTagger:
    """Return the tagger if it can learn block by block; ask before the work begins."""
    if not isinstance(tagger, CrfTagger):
        raise ParameterError("the tagger", getattr(tagger, "kind", tagger), "crf for a corpus in shards")
    tagger._check()
    if not tagger.in_blocks:
        raise ParameterError(
            "the tagger",
            "held_out, paths or the perceptron",
            "trained by L-BFGS on all sequences of a corpus in shards",
        )
    return tagger


def fit_in_shards(
    tagger: Any,
    source: TruthOnDisk | ShardedCorpus,
    *,
    gold: str | None = None,
    engine: Engine | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> CrfTagger:
    """Fit a `CrfTagger` to the truth of a sharded corpus, or to a gold of it; `folder` is for features of blocks."""
    crf = learner_of(tagger)
    if isinstance(source, ShardedCorpus) and gold is None:
        raise ModelError(
            "a corpus in shards has no labels to learn from before its truth is inferred",
            hint="lasca aggregate CORPUS -o TRUTH; then: lasca train TRUTH, or name a gold",
        )
    corpus = source.corpus if isinstance(source, TruthOnDisk) else source
    if gold is not None:
        corpus.gold(gold, 0, 0)
    target = block_tokens(corpus.n_tokens)
    places: Sequence[BlockOnDisk]
    places = (
        source.blocks(target)
        if isinstance(source, TruthOnDisk)
        else corpus.crowd_votes().blocks(target, by_tokens=True)
    )
    blocks = [LabelledBlock(place, gold, crf.soft and gold is None, crf.certain) for place in places]
    own = engine or Threads(crf.n_threads)
    with closing(own.open(LookAtLabels(corpus.n_labels), blocks)) as work:
        present, pairs = work.sum(None)
    active = np.flatnonzero(present)
    if not len(active):
        raise ModelError("there is no labelled sequence to learn from", hint="Give a gold or truth with labels")
    names = [corpus.labels[a] for a in active]
    kept = np.append(active, corpus.n_labels)
    rule = constraint_of(names, pairs[np.ix_(kept, kept)]) if crf.constrained else None
    ready = [replace(block, active=tuple(active.tolist())) for block in blocks]
    crf._learn_blocks(ready, corpus.labels, active, rule, own, folder, progress)
    return crf


@lru_cache(maxsize=2)
def _loaded(path: str) -> Any:
    tagger = load_tagger(path)
    return tagger.set_params(**{name: 1 for name in ("n_threads", "threads") if name in tagger.get_params()})


def tag_block(asked: tuple[str, Path, bool], block: Any) -> int:
    """Tag the sequences of a block and write a part, whole or not at all; return how many sequences it has."""
    tagger, folder, with_proba = asked
    model, columns = _loaded(tagger), block.place.columns(block.votes.words)
    words = columns["token"].to_pylist()
    sentences = [words[a:b] for a, b in pairwise(block.votes.offsets.tolist())]
    names = pa.array(model.labels, pa.string())
    code = {name: i for i, name in enumerate(model.labels)}
    labels = np.array([code[name] for row in model.predict(sentences) for name in row], dtype=np.int16)
    columns["label"] = pa.DictionaryArray.from_arrays(pa.array(labels), names)
    if with_proba:
        proba = np.concatenate([np.zeros((0, len(code)), np.float32), *model.predict_proba(sentences)])
        columns["probability"] = proba[np.arange(len(labels)), labels]
    write_part(pa.table(columns), folder, block.number)
    return len(sentences)


def tag_in_shards(
    tagger: str | Path, corpus: ShardedCorpus, folder: Path, *, proba: bool = False, engine: Engine | None = None
) -> int:
    """Tag a sharded corpus by a saved tagger into `folder`, a part for each block; return the number of sequences."""
    blocks = corpus.crowd_votes().blocks(TAG_TOKENS, by_tokens=True)
    with closing((engine or Threads()).open(None, blocks)) as work:
        return sum(work.map(tag_block, (str(Path(tagger).resolve()), folder, proba)))

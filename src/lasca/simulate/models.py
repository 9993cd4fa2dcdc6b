"""Large corpora for benchmarks, whole or in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lasca.arrays import Codes, Ints, Ints32
from lasca.corpus import CrowdCorpus, Strings
from lasca.estimator import check_int, generator
from lasca.simulate.settings import check_range
from lasca.simulate.slips import pick

__all__ = ["big", "big_shards"]

WORDS_PER_LABEL = 400
EMPTY = pa.scalar("", pa.large_string())


def big(
    n_annotations: int = 10_000_000,
    *,
    n_annotators: int = 47,
    n_labels: int = 9,
    per_token: int = 5,
    length: int = 14,
    precision: tuple[float, float] = (0.6, 0.95),
    skills: npt.ArrayLike | None = None,
    seed: int | np.random.Generator = 0,
) -> CrowdCorpus:
    """Make a large corpus quickly, for benchmarks: about so many annotations, `per_token` on each token.

    Sequences have `length` tokens on average and are labelled whole by the same annotators. An odd number of labels
    gives IOB2 labels with legal spans as gold (9: PER, LOC, ORG, MISC and O), an even one labels without structure.
    An annotator is right with a probability drawn from the range `precision`, and otherwise writes a wrong label by
    label frequency (`skills` gives these probabilities instead). Words go with labels, so that a tagger can learn from
    them.
    """
    check_int("n_annotators", n_annotators, low=1)
    check_int("per_token", per_token, low=1, high=n_annotators)
    check_int("n_annotations", n_annotations, low=per_token)
    check_int("n_labels", n_labels, low=2, high=2000)
    check_int("length", length, low=1)
    low, high = check_range("precision", precision)
    rng = generator(seed)
    n_tokens = -(-n_annotations // per_token)
    lengths = np.maximum(rng.poisson(length, n_tokens // length + 2 + int(4 * np.sqrt(n_tokens))), 1)
    ends = np.cumsum(lengths)
    offsets = np.concatenate(([0], ends[ends < n_tokens], [n_tokens]))
    n_sequences = len(offsets) - 1
    sequence = np.repeat(np.arange(n_sequences), np.diff(offsets))
    names, gold = _spans(offsets, sequence, n_labels, rng) if n_labels % 2 else _flat(n_tokens, n_labels, rng)
    annotator = _chosen(n_sequences, n_annotators, per_token, rng)[sequence]
    shares = np.bincount(gold, minlength=n_labels) / n_tokens
    right = rng.uniform(low, high, n_annotators) if skills is None else np.asarray(skills)
    keeps = right[annotator] > rng.random(annotator.shape, dtype=np.float32)
    label = np.repeat(gold, per_token)
    slipped = np.flatnonzero(~keeps.ravel())
    rows = np.tile(shares, (n_labels, 1)) + 1e-12
    np.fill_diagonal(rows, 0)
    label[slipped] = pick(rows / rows.sum(axis=1, keepdims=True), label[slipped], rng.random(len(slipped)))
    return _corpus(gold, offsets, names, n_annotators, annotator, label, rng)


def big_shards(
    n_shards: int, n_annotations: int = 100_000_000, *, seed: int = 0, **options: Any
) -> Iterator[CrowdCorpus]:
    """Make a corpus that need not fit into memory, in pieces: each is a `big` one of the same annotators."""
    check_int("shards", n_shards, low=1)
    n = check_int("n_annotations", n_annotations, low=n_shards)
    low, high = check_range("precision", options.pop("precision", (0.6, 0.95)))
    people, *seeds = generator(seed).spawn(n_shards + 1)
    skills = people.uniform(low, high, check_int("n_annotators", options.get("n_annotators", 47), low=1))
    for number, rng in enumerate(seeds):
        size = n * (number + 1) // n_shards - n * number // n_shards
        piece = big(size, skills=skills, seed=rng, **options)
        ids = pc.binary_join_element_wise(pa.scalar(f"{number}-", pa.large_string()), piece.sequence_ids.arrow, EMPTY)
        yield replace(piece, sequence_ids=Strings(ids))


def _spans(offsets: Ints, sequence: Ints, n_labels: int, rng: np.random.Generator) -> tuple[list[str], Codes]:
    """Draw legal IOB2 labels: a span begins at an eighth of the tokens and lasts up to three, unless cut short."""
    types = ["PER", "LOC", "ORG", "MISC"] if n_labels == 9 else [f"T{t}" for t in range(n_labels // 2)]
    names = ["O", *(f"{p}-{t}" for t in types for p in ("B", "I"))]
    n = len(sequence)
    begins = rng.random(n) < 0.12
    kind, longer = rng.integers(0, len(types), n), rng.integers(0, 3, n)
    gold = np.zeros(n, np.int16)
    for step in (2, 1):
        at = np.flatnonzero(begins & (longer >= step)) + step
        at = at[at < n]
        at = at[sequence[at] == sequence[at - step]]
        gold[at] = 2 * kind[at - step] + 2
    gold[begins] = 2 * kind[begins] + 1
    # an I- that another span cut off from its beginning becomes O
    before = np.concatenate(([0], gold[:-1]))
    before[offsets[:-1]] = 0
    inside = (gold > 0) & (gold % 2 == 0)
    gold[inside & (before != gold) & (before != gold - 1)] = 0
    return names, gold


def _flat(n_tokens: int, n_labels: int, rng: np.random.Generator) -> tuple[list[str], Codes]:
    shares = rng.dirichlet(np.full(n_labels, 2.0))
    return [f"L{t:04d}" for t in range(n_labels)], rng.choice(n_labels, n_tokens, p=shares).astype(np.int16)


def _chosen(n_sequences: int, n_annotators: int, k: int, rng: np.random.Generator) -> Ints32:
    """Return k annotators for each sequence, in rising order."""
    if k == n_annotators:
        return np.broadcast_to(np.arange(n_annotators, dtype=np.int32), (n_sequences, k))
    if n_annotators > 64 * k:  # few of many: draw, and draw again where somebody came twice
        drawn = np.sort(rng.integers(0, n_annotators, (n_sequences, k), dtype=np.int32), axis=1)
        while len(twice := np.flatnonzero((np.diff(drawn, axis=1) == 0).any(axis=1))):
            drawn[twice] = np.sort(rng.integers(0, n_annotators, (len(twice), k), dtype=np.int32), axis=1)
        return drawn
    keys = rng.random((n_sequences, n_annotators), dtype=np.float32)
    return np.sort(keys.argpartition(k - 1, axis=1)[:, :k].astype(np.int32), axis=1)


def _corpus(
    gold: Codes,
    offsets: Ints,
    names: list[str],
    n_annotators: int,
    annotator: Ints32,
    label: Codes,
    rng: np.random.Generator,
) -> CrowdCorpus:
    """Put the arrays together; words are drawn so that one in four says nothing of its label."""
    k = annotator.shape[1]
    word = (rng.random(len(gold), dtype=np.float32) ** 2 * WORDS_PER_LABEL).astype(np.int32)
    word += (
        np.where(rng.random(len(gold), dtype=np.float32) < 0.25, len(names), gold).astype(np.int32) * WORDS_PER_LABEL
    )
    vocabulary = pa.array([f"w{i}" for i in range((len(names) + 1) * WORDS_PER_LABEL)], pa.large_string())
    return CrowdCorpus(
        tokens=Strings(vocabulary.take(pa.array(word))),
        offsets=offsets,
        labels=tuple(names),
        annotators=tuple(f"a{i:0{len(str(n_annotators - 1))}d}" for i in range(n_annotators)),
        annotation_annotator=annotator.reshape(-1),
        annotation_label=label,
        token_start=np.arange(len(gold) + 1, dtype=np.int64) * k,
        sequence_ids=Strings([f"s{i}" for i in range(len(offsets) - 1)]),
        golds={"gold": gold},
    )

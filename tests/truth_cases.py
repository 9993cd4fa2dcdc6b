"""Small crowds the tests of truth models share."""

from __future__ import annotations

from typing import Any

import numpy as np

from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block, Votes
from lasca.truth.dawid_skene import DawidSkene
from lasca.truth.starts import dawid_skene_start

LABELS = ("B-X", "I-X", "O")


def crowd(
    n_sequences: int = 40,
    n_annotators: int = 6,
    seed: int = 0,
    *,
    coverage: float = 0.8,
    accuracy: Any = None,
    unlabelled: int = 0,
) -> CrowdCorpus:
    """Draw legal BIO sequences with words that hint at the label, and annotators who err independently.

    Nobody labelled the first `unlabelled` sequences.
    """
    rng = np.random.default_rng(seed)
    words: list[list[str]] = []
    truth: list[list[str]] = []
    for _ in range(n_sequences):
        labels = ["O"]
        for _ in range(int(rng.integers(3, 12))):
            p = {"O": (0.3, 0.0, 0.7), "B-X": (0.1, 0.5, 0.4), "I-X": (0.1, 0.3, 0.6)}[labels[-1]]
            labels.append(LABELS[int(rng.choice(3, p=p))])
        truth.append(labels)
        words.append([f"{label[0].lower()}{int(rng.integers(8))}" for label in labels])
    right = rng.uniform(0.6, 0.95, n_annotators) if accuracy is None else np.broadcast_to(accuracy, n_annotators)
    annotations: dict[str, list[list[str] | None]] = {}
    for a in range(n_annotators):
        rows: list[list[str] | None] = []
        for s, labels in enumerate(truth):
            given = [x if rng.random() < right[a] else LABELS[int(rng.integers(3))] for x in labels]
            rows.append(given if rng.random() < coverage and s >= unlabelled else None)
        annotations[f"annotator-{a}"] = rows
    return CrowdCorpus.from_sequences(words, annotations, golds={"gold": truth}, labels=LABELS)


def triples(corpus: CrowdCorpus) -> list[tuple[int, int, int]]:
    """Return the votes as (token, annotator, label)."""
    return [
        (int(i), int(a), int(s))
        for i, a, s in zip(corpus.annotation_token, corpus.annotation_annotator, corpus.annotation_label)
    ]


def big_crowd(n_tokens: int = 30_000, n_annotators: int = 12, n_labels: int = 5, per_token: int = 5) -> CrowdCorpus:
    """Draw a corpus that is cut into several chunks of work."""
    rng = np.random.default_rng(1)
    truth = rng.choice(n_labels, size=n_tokens, p=np.arange(1, n_labels + 1) / np.arange(1, n_labels + 1).sum())
    who = np.argsort(rng.random((n_tokens, n_annotators)), axis=1)[:, :per_token]
    right = rng.uniform(0.5, 0.95, n_annotators)[who]
    said = np.where(rng.random(who.shape) < right, truth[:, None], rng.integers(0, n_labels, who.shape))
    offsets = np.append(np.arange(0, n_tokens, 15), n_tokens)
    return CrowdCorpus.from_codes(
        tokens=[f"w{t}-{i % 50}" for i, t in enumerate(truth)],
        offsets=offsets,
        labels=[f"label-{t}" for t in range(n_labels)],
        annotators=[f"annotator-{a:02d}" for a in range(n_annotators)],
        annotation_token=np.repeat(np.arange(n_tokens), per_token),
        annotation_annotator=who.ravel(),
        annotation_label=said.ravel(),
        sequence_ids=[str(i) for i in range(len(offsets) - 1)],
        golds={"gold": truth},
    )


def shuffled(corpus: CrowdCorpus, seed: int) -> tuple[CrowdCorpus, Any, Any]:
    """Return the corpus with renamed annotators and sequences in another order.

    Also returned: the old token of each new one, and the old annotator of each new one.
    """
    rng = np.random.default_rng(seed)
    annotators, sequences = rng.permutation(corpus.n_annotators), rng.permutation(corpus.n_sequences)
    moved = corpus.select(sequences=sequences)
    tokens = np.concatenate([np.arange(corpus.offsets[s], corpus.offsets[s + 1]) for s in sequences])
    code = np.argsort(annotators)
    renamed = moved.with_annotations(
        [f"name-{a}" for a in range(corpus.n_annotators)],
        moved.annotation_token,
        code[moved.annotation_annotator],
        moved.annotation_label,
    )
    return renamed, tokens, annotators


def everything(corpus: CrowdCorpus) -> Block:
    """Return the votes of a corpus as one block."""
    votes = Votes.of(corpus)
    return Block(votes, 0, votes.n_tokens)


def start_evidence(corpus: CrowdCorpus, *, hard: bool, lone_votes: bool = False) -> Any:
    """Return the start of a chain learner for all tokens at once."""
    start = dawid_skene_start(DawidSkene(n_threads=1, lone_votes=lone_votes), Votes.of(corpus), hard=hard)
    return start.labels(everything(corpus)).astype(float)

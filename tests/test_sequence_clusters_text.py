"""The text as an annotator: folds that never see themselves, and columns of documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lasca import crf
from lasca.corpus import CrowdCorpus
from lasca.truth.sequence_clusters import SequenceClusters
from lasca.truth.text_evidence import CrossFit, document_codes, static_columns, with_columns
from truth_cases import crowd

OPTIONS: dict[str, Any] = {"folds": 3, "l2": 1.0, "min_count": 1, "n_threads": 1}


def crossfit(corpus: CrowdCorpus, **changes: Any) -> CrossFit:
    return CrossFit(corpus, np.random.default_rng(0), **(OPTIONS | changes))


def gold_proba(corpus: CrowdCorpus) -> np.ndarray[Any, Any]:
    return np.eye(corpus.n_labels, dtype=np.float32)[corpus.golds["gold"]]


def test_a_fold_never_sees_its_own_labels() -> None:
    corpus = crowd(n_sequences=45)
    proba = gold_proba(corpus)
    first = crossfit(corpus)
    plain = first(proba, 10)
    own = first.fold[corpus.token_sequence] == 1
    other = proba.copy()
    other[own] = np.roll(other[own], 1, axis=1)
    changed = crossfit(corpus)(other, 10)
    np.testing.assert_array_equal(changed[own], plain[own])
    assert not np.allclose(changed[~own], plain[~own])


def test_documents_stay_together() -> None:
    words = [["a", "b"]] * 8
    rows = {"p": [["x", "y"]] * 8}
    corpus = CrowdCorpus.from_sequences(words, rows, metadata={"document": list("aabbccdd")})
    fold = crossfit(corpus, folds=2).fold
    assert (fold[0::2] == fold[1::2]).all()
    assert len(np.unique(fold)) == 2
    alone = CrowdCorpus.from_sequences(words, rows, metadata={"document": ["a"] * 8})
    assert document_codes(alone).tolist() == list(range(8))


def test_sequences_nobody_labelled_are_tagged_but_not_learned_from() -> None:
    corpus = crowd(n_sequences=45, unlabelled=5)
    proba = gold_proba(corpus)
    plain = crossfit(corpus)(proba, 10)
    np.testing.assert_allclose(plain.sum(axis=1), 1, atol=1e-4)
    other = proba.copy()
    other[: corpus.offsets[5]] = np.roll(other[: corpus.offsets[5]], 1, axis=1)
    np.testing.assert_array_equal(crossfit(corpus)(other, 10), plain)


def test_columns_become_features() -> None:
    features = crf.Features.from_csr(np.array([0, 1, 1, 2]), np.array([0, 1]), np.array([0, 2, 3]), 2)
    wider = with_columns(features, [(np.array([0, -1, 1]), 2), (np.array([-1, -1, 2]), 3)])
    assert wider.n_features == 7
    found = []
    for slots in wider.slots:
        ids: list[int] = []
        for bundle in slots:
            ids += wider.bundle_feature[wider.bundle_start[bundle] : wider.bundle_start[bundle + 1]].tolist()
        found.append(sorted(ids))
    assert found == [[0, 2], [], [1, 3, 6]]


def test_words_written_in_small_letters_elsewhere_are_seen() -> None:
    """`Bank` at the start of one sequence, `bank` inside another; `Rome` is never written small."""
    words = [["Bank", "shut"], ["the", "bank", "of", "Rome"], ["Rome", "is", "big"]]
    corpus = CrowdCorpus.from_sequences(words, {"p": [["x"] * len(w) for w in words]})
    codes, size = static_columns(corpus, np.zeros(3, dtype=np.int64))[0]
    bank, rome, shut = codes[0], codes[6], codes[1]
    assert bank != rome
    assert codes.max() < size
    assert codes.min() >= 0
    assert shut != rome


def test_text_corrects_what_the_crowd_misses() -> None:
    corpus = crowd(n_sequences=150, n_annotators=2, accuracy=0.6, seed=7)
    gold = corpus.golds["gold"]
    with_text = SequenceClusters(rounds=1, folds=3, text_iterations=15).fit(corpus)
    without = SequenceClusters(text=False, words=False).fit(corpus)
    assert (with_text.labels == gold).mean() > (without.labels == gold).mean() + 0.02


@pytest.mark.slow
@pytest.mark.data
def test_spans_on_the_mturk_corpus(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures of the docs, with a margin for other machines: val folder, test folder, calibration."""
    from lasca import datasets, evaluate

    monkeypatch.setenv("LASCA_DATA", str(data_dir))
    corpus = datasets.load("conll2003-mturk")
    truth = SequenceClusters().fit(corpus)
    test = np.array([name.startswith("test/") for name in corpus.sequence_ids])
    gold = corpus.golds["gold"]
    spans = [
        evaluate.spans_from_codes(gold, truth.labels, corpus.offsets, corpus.labels, sequences=sequences).f1
        for sequences in (corpus.annotated_sequences, corpus.annotated_sequences & test)
    ]
    assert spans[0] > 0.815
    assert spans[1] > 0.805
    mask = np.repeat(corpus.annotated_sequences & test, np.diff(corpus.offsets))
    found = evaluate.calibration(truth.proba, gold, mask=mask)
    assert found.cross_entropy <= 0.20
    assert found.ece <= 0.022

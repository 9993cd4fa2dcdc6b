"""Large corpora."""

from __future__ import annotations

import time

import numpy as np
import pytest

import lasca
from lasca import simulate
from lasca.errors import ParameterError


def test_big_has_the_asked_shape() -> None:
    corpus = simulate.big(50_003, n_annotators=11, per_token=4, seed=1)
    assert corpus.n_tokens == 12_501
    assert (np.diff(corpus.token_start) == 4).all()
    assert (corpus.n_labels, corpus.n_annotators) == (9, 11)
    assert corpus.labels[:3] == ("O", "B-PER", "I-PER")
    assert np.diff(corpus.offsets).mean() == pytest.approx(14, rel=0.05)
    assert (lasca.MajorityVote().fit(corpus).labels == corpus.golds["gold"]).mean() > 0.9
    assert corpus == simulate.big(50_003, n_annotators=11, per_token=4, seed=1)
    assert corpus != simulate.big(50_003, n_annotators=11, per_token=4, seed=2)
    for s in range(0, corpus.n_sequences, 50):
        first, last = corpus.token_start[corpus.offsets[s : s + 2]]
        assert len(set(corpus.annotation_annotator[first:last].tolist())) == 4
    words = {}
    for word, label in zip(corpus.tokens, corpus.golds["gold"].tolist()):
        words.setdefault(word, set()).add(label)
    assert np.mean([len(seen) == 1 for seen in words.values()]) > 0.6


def test_big_with_even_and_many_labels() -> None:
    corpus = simulate.big(20_000, n_labels=12, seed=1)
    assert corpus.n_labels == 12
    assert len(np.unique(corpus.golds["gold"])) == 12
    assert simulate.big(500, n_labels=31).labels[-1] == "I-T14"


def test_a_million_annotations_in_a_second_or_so() -> None:
    began = time.process_time()
    assert simulate.big(1_000_000).n_annotations == 1_000_000
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate.big(10, per_token=48), "per_token"),
        (lambda: simulate.big(2), "n_annotations"),
        (lambda: simulate.big(10, precision=(0.9, 0.1)), "precision"),
    ],
)
def test_bad_parameters_are_named(call, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()

"""Draws from the models, and large corpora."""

from __future__ import annotations

import time

import numpy as np
import pytest

from lasca import simulate
from lasca.errors import ParameterError


def counts_of(corpus, annotator: int) -> np.ndarray:
    mine = corpus.annotation_annotator == annotator
    table = np.zeros((corpus.n_labels, corpus.n_labels))
    np.add.at(table, (corpus.golds["gold"][corpus.annotation_token[mine]], corpus.annotation_label[mine]), 1)
    return table


def test_from_confusions_draws_what_it_says() -> None:
    rng = np.random.default_rng(0)
    confusion = rng.dirichlet(np.ones(3), (4, 3))
    confusion[0, 0] = [0, 1, 0]
    prior = np.array([0.5, 0.3, 0.2])
    corpus = simulate.from_confusions(confusion, prior=prior, n_sequences=1000, length=20, per_token=2, seed=1)
    assert (np.diff(corpus.token_start) == 2).all()
    gold = corpus.golds["gold"]
    np.testing.assert_allclose(np.bincount(gold) / len(gold), prior, rtol=0, atol=0.015)
    for a in range(4):
        table = counts_of(corpus, a)
        np.testing.assert_allclose(table / table.sum(axis=1, keepdims=True), confusion[a], rtol=0, atol=0.04)
    assert counts_of(corpus, 0)[0, [0, 2]].sum() == 0


def test_from_confusions_with_a_markov_chain() -> None:
    transition = np.array([[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.0, 0.5, 0.5]])
    corpus = simulate.from_confusions(np.stack([np.eye(3)] * 2), transition=transition, n_sequences=800, seed=1)
    rows = corpus.golds["gold"].reshape(800, 20)
    table = np.zeros((3, 3))
    np.add.at(table, (rows[:, :-1].ravel(), rows[:, 1:].ravel()), 1)
    np.testing.assert_allclose(table / table.sum(axis=1, keepdims=True), transition, rtol=0, atol=0.03)
    assert table[0, 2] == table[2, 0] == 0
    assert (corpus.annotation_label == np.repeat(corpus.golds["gold"], 2)).all()


def test_from_clusters() -> None:
    good, bad = np.full((3, 3), 0.05) + 0.85 * np.eye(3), np.full((3, 3), 1 / 3)
    drawn = simulate.from_clusters([good, bad], eta=200, sizes=(4, 2), n_sequences=300, seed=2)
    assert drawn.cluster.tolist() == [0, 0, 0, 0, 1, 1]
    diagonal = np.diagonal(drawn.confusion, axis1=1, axis2=2).mean(axis=1)
    assert diagonal[:4].min() > 0.8
    assert diagonal[4:].max() < 0.5
    table = counts_of(drawn.corpus, 5)
    np.testing.assert_allclose(table / table.sum(axis=1, keepdims=True), drawn.confusion[5], rtol=0, atol=0.05)
    loose = simulate.from_clusters([good], eta=3, sizes=(200,), n_sequences=1, length=1, seed=2)
    np.testing.assert_allclose(loose.confusion.mean(axis=0), good, rtol=0, atol=0.05)
    variance = loose.confusion[:, 0, 0].var()
    assert variance == pytest.approx(0.9 * 0.1 / 4, rel=0.4)  # of a Dirichlet: β (1 − β) / (η + 1)


def test_big_has_the_asked_shape() -> None:
    corpus = simulate.big(50_003, n_annotators=11, per_token=4, seed=1)
    assert corpus.n_tokens == 12_501
    assert (np.diff(corpus.token_start) == 4).all()
    assert (corpus.n_labels, corpus.n_annotators) == (9, 11)
    assert corpus.labels[:3] == ("O", "B-PER", "I-PER")
    assert np.diff(corpus.offsets).mean() == pytest.approx(14, rel=0.05)
    assert simulate.majority_accuracy(corpus, corpus.golds["gold"]) > 0.9
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
        (lambda: simulate.from_confusions(np.ones((2, 3, 3))), "confusion"),
        (lambda: simulate.from_confusions(np.eye(3)), "confusion"),
        (lambda: simulate.from_confusions([np.eye(3)], prior=[1.0]), "prior"),
        (lambda: simulate.from_confusions([np.eye(3)], transition=np.eye(2)), "transition"),
        (lambda: simulate.from_confusions([np.eye(3)], per_token=2), "per_token"),
        (lambda: simulate.from_clusters([np.eye(3)], eta=0), "eta"),
        (lambda: simulate.from_clusters([np.eye(3)], sizes=(1, 2)), "sizes"),
        (lambda: simulate.big(10, per_token=48), "per_token"),
        (lambda: simulate.big(2), "n_annotations"),
        (lambda: simulate.big(10, precision=(0.9, 0.1)), "precision"),
    ],
)
def test_bad_parameters_are_named(call, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()

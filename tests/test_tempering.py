"""The probabilities of the sequence model: tempered, refereed by the text, calibrated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hidden_cases import calibrated_of, fitted, plain_of, with_labels
from lasca import evaluate
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block, cut_into_blocks
from lasca.truth.annotator_models import confusion_prior
from lasca.truth.base import Votes
from lasca.truth.sequence_rounds import TEXT_PRIOR, Word
from lasca.truth.tempering import (
    REFEREE_GRID,
    advised,
    calibrated,
    doubted,
    held_out_votes,
    mixed,
    referee,
    tempered,
    vote_ranks,
)
from truth_cases import crowd


def test_each_vote_knows_the_rank_of_its_annotator() -> None:
    corpus = CrowdCorpus.from_sequences(
        [["a", "b"], ["c"]],
        {"p": [["x", "y"], None], "q": [["x", "x"], ["x"]], "r": [None, ["y"]]},
    )
    votes = Votes.of(corpus)
    ranks = vote_ranks(Block(votes, 0, votes.n_tokens))
    assert ranks.tolist() == [0, 1, 0, 1, 0, 1]


def test_tempering_keeps_the_order_and_the_sum() -> None:
    proba = np.array([[0.7, 0.2, 0.1], [1.0, 0.0, 0.0]])
    out = tempered(proba, 0.5)
    np.testing.assert_allclose(out.sum(axis=1), 1)
    assert (np.diff(out[0]) < 0).all()
    assert out[0, 0] < 0.7
    np.testing.assert_allclose(tempered(proba, 1.0), proba, atol=1e-12)


def test_the_temperature_predicts_held_out_votes_best() -> None:
    """Parameters that overstate what annotators know ask for more tempering than those that were fitted."""
    corpus = crowd(n_sequences=120, n_annotators=5, seed=5, coverage=1.0, accuracy=0.65)
    fit = fitted(corpus, memory=False)
    tau, scores = held_out_votes(fit)
    sure = replace(fit.state, tables=(fit.state.tables[0] * 6, *fit.state.tables[1:]))
    sharper, others = held_out_votes(replace(fit, state=sure))
    assert sharper < tau
    assert np.isfinite(scores).all()
    assert others.max() < scores.max()


def refereed(sharpness: float, n: int = 20000) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return gold, true posteriors raised to a power, what a text says of gold (one label each), its confusion."""
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(3) * 0.3, n)
    gold = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 2)
    confusion = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.05, 0.05, 0.9]])
    said = (confusion[gold].cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 2)
    sharp = np.maximum(proba, 1e-300) ** sharpness
    return gold, sharp / sharp.sum(axis=1, keepdims=True), np.eye(3)[said], confusion


@pytest.mark.parametrize("sharpness", [1.0, 2.0, 4.0])
def test_the_referee_takes_back_what_is_too_sharp(sharpness: float) -> None:
    """Posteriors raised to a power are brought back by a text that errs by itself; its confusion is found."""
    _, proba, text, confusion = refereed(sharpness)
    found = referee(proba, text, np.ones((3, 3)))
    assert abs(found.tau - 1 / sharpness) <= 0.1
    np.testing.assert_allclose(found.confusion, confusion, atol=0.05)
    assert found.scores.shape == (len(REFEREE_GRID),)
    assert found.scores.max() == found.scores[REFEREE_GRID.index(found.tau)]


def test_a_text_that_knows_nothing_changes_nothing() -> None:
    """Advice that does not depend on the truth leaves the probabilities as they are."""
    _, proba, _, _ = refereed(1.0, 100)
    text = np.random.default_rng(0).dirichlet(np.ones(3), 100)
    np.testing.assert_allclose(advised(proba, text, np.full((3, 3), 1 / 3)), proba, atol=1e-9)


def test_advice_is_bayes_rule_for_a_sure_text_and_its_mean_for_an_unsure_one() -> None:
    confusion = np.array([[0.8, 0.2], [0.4, 0.6]])
    proba = np.array([[0.3, 0.7]] * 4)
    text = np.array([[1.0, 0.0], [0.0, 1.0], [0.25, 0.75], [0.0, 0.0]])
    out = advised(proba, text, confusion)
    first, second = 0.24 / (0.24 + 0.28), 0.06 / (0.06 + 0.42)
    np.testing.assert_allclose(out[:, 0], [first, second, 0.25 * first + 0.75 * second, 0.3], rtol=1e-12)
    np.testing.assert_allclose(out.sum(axis=1), 1, rtol=1e-12)


def test_advice_improves_probabilities_that_were_too_sharp() -> None:
    gold, proba, text, _ = refereed(3.0)
    found = referee(proba, text, np.ones((3, 3)))
    out = advised(tempered(proba, found.tau), text, found.confusion)
    before = evaluate.calibration(proba, gold)
    after = evaluate.calibration(out, gold)
    assert after.ece < 0.02 < before.ece
    assert after.cross_entropy < before.cross_entropy


def test_calibration_hears_the_text_once_and_takes_samples_as_they_are() -> None:
    corpus = crowd(n_sequences=60, seed=4)
    T = corpus.n_labels
    text = np.random.default_rng(0).dirichlet(np.ones(T), corpus.n_tokens).astype(np.float32)
    fit = fitted(corpus, memory=False)
    np.testing.assert_allclose(plain_of(fit), fit.labels, atol=1e-6)
    plain, numbers = calibrated_of(fit, 0.02)
    tau, scores = held_out_votes(fit)
    np.testing.assert_allclose(plain, tempered(fit.labels.astype(float), tau), rtol=1e-12)
    assert numbers == {"held_out_votes": scores.max(), "temperature": 1 / tau, "text_share": 0.0}
    silent = fitted(corpus, text, memory=False)
    told = replace(silent, state=replace(fit.state, tables=(*fit.state.tables, np.zeros((T, T)))))
    same, numbers = calibrated_of(with_labels(told, fit.labels[::-1]), 0.0)
    drawn, others = calibrated_of(with_labels(told, fit.labels[::-1]), 0.0, sampled=True)
    assert numbers == others
    np.testing.assert_allclose(drawn, tempered(fit.labels[::-1].astype(float), 1 / numbers["temperature"]), rtol=1e-9)
    assert np.abs(same - drawn).max() > 0.1
    np.testing.assert_allclose(same.sum(axis=1), 1, rtol=1e-9)


@pytest.mark.parametrize("sampled", [False, True])
def test_the_text_is_asked_about_the_voted_tokens_of_every_third_block(sampled: bool) -> None:
    corpus = crowd(n_sequences=90, n_annotators=4, seed=6, unlabelled=20, accuracy=0.7)
    T, gold = corpus.n_labels, np.eye(corpus.n_labels)[corpus.golds["gold"]]
    noise = np.random.default_rng(0).dirichlet(np.ones(T), corpus.n_tokens)
    text = (0.6 * gold + 0.4 * noise).astype(np.float32)
    one = fitted(corpus, text, memory=False)
    one = replace(one, state=replace(one.state, tables=(3 * one.state.tables[0], *one.state.tables[1:])))
    blocks = cut_into_blocks(one.blocks[0].votes, 60, by_tokens=True)
    said = [Word(text[b.first : b.last], one.labels[b.first : b.last]) for b in blocks]
    fit = replace(one, blocks=blocks).saying(said)
    most = -(-corpus.n_tokens // 3)
    made, calibration, numbers = calibrated(fit, 0.1, most=most, sampled=sampled)

    plain, asked, voted = plain_of(one), np.zeros(corpus.n_tokens, bool), np.diff(corpus.token_start) > 0
    for block in blocks[::3]:
        asked[block.first : block.last] = True
    assert len(blocks) > 6
    assert (asked & ~voted).any()
    found = referee(plain[asked & voted], text[asked & voted].astype(float), confusion_prior(T, *TEXT_PRIOR))
    assert held_out_votes(fit)[0] != found.tau
    mean = advised(tempered(plain, found.tau), text.astype(float), found.confusion)
    mean = tempered(one.labels.astype(float), found.tau) if sampled else mean
    share = 0.1 / (1 - (mean * text).sum(axis=1)[asked].mean())
    out = np.concatenate([calibration.proba(block.beside) for block in made.blocks])
    np.testing.assert_allclose(out, (1 - share) * mean + share * text, atol=1e-6)
    assert (numbers["temperature"], numbers["text_share"]) == (1 / found.tau, pytest.approx(share))


def test_doubt_moves_as_much_as_it_says() -> None:
    rng = np.random.default_rng(0)
    proba, text = rng.dirichlet(np.ones(4) * 0.2, 500), rng.dirichlet(np.ones(4), 500).astype(np.float32)
    together = float((proba * text).sum(axis=1).mean())
    share = doubted(together, 0.1)
    np.testing.assert_allclose(share * (1 - (proba * text).sum(axis=1).mean()), 0.1, rtol=1e-6)
    both = mixed(proba, text, share)
    np.testing.assert_allclose(both, proba + share * (text - proba), atol=1e-6)
    assert (doubted(together, 1.0), doubted(together, 0.0)) == (0.5, 0.0)
    assert mixed(proba, text, 0.0) is proba


def test_the_referees_confusion_leans_on_its_prior() -> None:
    sure = np.array([[1.0, 0.0]] * 3)
    found = referee(sure, sure, np.array([[2.0, 1.0], [1.0, 2.0]]))
    np.testing.assert_allclose(found.confusion, [[5 / 6, 1 / 6], [1 / 3, 2 / 3]], rtol=1e-12)
    assert found.scores[0] == pytest.approx(np.log(5 / 6), rel=1e-12)


def test_probabilities_are_tempered_after_the_labels_are_decoded() -> None:
    from lasca.truth.sequence_clusters import SequenceClusters
    from truth_cases import crowd

    corpus = crowd(n_sequences=40)
    plain, tempered_too = (SequenceClusters(rounds=1, calibrate=c).fit(corpus) for c in (False, True))
    np.testing.assert_array_equal(tempered_too.labels, plain.labels)
    assert not np.allclose(tempered_too.proba, plain.proba)

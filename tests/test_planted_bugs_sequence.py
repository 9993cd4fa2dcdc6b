"""Planted bugs in the sequence model below its E step: starts, chains, drawn rows, text columns, held-out votes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import digamma

from hidden_cases import calibrated_of, fitted, plain_of, share_that_meets, some_text
from lasca.corpus import CrowdCorpus
from lasca.corpus.evidence import KnownLabels
from lasca.corpus.votes import Block
from lasca.truth import chain_sampler, crf_text
from lasca.truth.annotator_models import confusion_prior
from lasca.truth.base import Votes
from lasca.truth.beside import Keep
from lasca.truth.chain import StateSpace
from lasca.truth.dawid_skene import DawidSkene
from lasca.truth.evidence import Texts
from lasca.truth.sequence_rounds import Word
from lasca.truth.starts import LevelStart, Meeting, dawid_skene_start, vote_shares
from lasca.truth.tempering import GRID, held_out_votes, referee
from truth_cases import crowd


def test_where_no_votes_meet_the_start_is_the_shares() -> None:
    words = [["a", "b", "c"]] * 4
    alone = CrowdCorpus.from_sequences(
        words, {name: [["x", "y", "x"] if s == k else None for s in range(4)] for k, name in enumerate("pqrs")}
    )
    both = CrowdCorpus.from_sequences(
        words, {"p": [["x", "y", "x"]] * 4, "q": [["x", "y", "y"], ["x"] * 3, None, None]}
    )
    for corpus, meet in ((alone, 0.0), (both, 12 / 18)):
        votes = Votes.of(corpus)
        block = Block(votes, 0, votes.n_tokens)
        assert share_that_meets(votes) == pytest.approx(meet)
        first = dawid_skene_start(DawidSkene(), votes, hard=False)
        found = LevelStart(first, meet).evidence(block, StateSpace.of(corpus.labels))
        shares = np.maximum(vote_shares(block), 1e-3)
        np.testing.assert_allclose(np.exp(found), meet * np.exp(first.labels(block)) + (1 - meet) * shares, rtol=1e-6)
        levels = LevelStart(first, meet).evidence(block, StateSpace.of(corpus.labels, levels=2))
        easy = np.clip(vote_shares(block), 0.05, 0.95)
        np.testing.assert_allclose(np.exp(levels), np.exp(np.tile(found, 2)) * np.hstack([easy, 1 - easy]), rtol=1e-5)


def test_votes_that_meet_one_or_two_others_all_votes_and_the_tokens_that_have_any() -> None:
    people = {"a": [["x", "x", None, None]], "b": [["x", None, None, "y"]], "c": [["y", None, None, "x"]]}
    corpus = CrowdCorpus.from_sequences([["u", "v", "w", "z"]], people)
    votes = Votes.of(corpus)
    assert Meeting().summarise(Block(votes, 0, votes.n_tokens)) == (5, 3, 6, 3)


def test_a_chain_that_got_stuck_is_left_out_of_the_means(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = fitted(crowd(n_sequences=6, seed=2), n=3)
    settings: dict[str, Any] = {"n_chains": 3, "n_warmup": 1, "n_samples": 3, "n_threads": 1}
    run_chains, ran, crowds = chain_sampler.run_chains, [], []

    def spoiled(*args: Any, **options: Any) -> Any:
        chains = run_chains(*args, **options)
        for chain in chains:
            ran.append(chain.state.work.describe(chain.state.sweep, lambda number, block, proba, *_: proba)[0])
            crowds.append(chain.store.crowd.copy())
        stuck = replace(chains[1], kept=chains[1].kept - 1e6)
        stuck.store.crowd[:] = 1e3
        return [chains[0], stuck, chains[2]]

    monkeypatch.setattr(chain_sampler, "run_chains", spoiled)
    found = chain_sampler.sample_states(fit, rng=np.random.default_rng(0), **settings)
    assert found.in_range.tolist() == [True, False, True]
    np.testing.assert_allclose(found.fit.labels, (ran[0] + ran[2]) / 2, rtol=1e-6)
    assert not np.allclose(ran[0], ran[1])
    np.testing.assert_allclose(found.crowd, (crowds[0] + crowds[2]) / 6, rtol=1e-12)


def test_a_path_through_draws_keeps_to_what_is_known() -> None:
    """Two chains say B-X, then O or B-Y as is known, then I-X: with I-X between them more tokens would be right."""
    labels = ("O", "B-X", "I-X", "B-Y", "I-Y")
    corpus = CrowdCorpus.from_sequences([["u", "v", "w"]], {"a": [["B-X", "O", "I-X"]]}, labels=labels)
    votes = Votes.of(corpus)
    allowed = np.array([[True, False, False, True, False]])
    block = Block(replace(votes, known=KnownLabels(np.array([1]), allowed)), 0, 3)
    means = np.zeros((2, 3, 5), np.float32)
    means[:, 0, 1] = means[:, 2, 2] = means[0, 1, 0] = means[1, 1, 3] = 1
    drawn: list[Any] = [[Word(None, mean)] for mean in means]
    asked = chain_sampler.Mean(drawn, StateSpace.of(labels), Keep(None, "drawn"))
    found: Any = chain_sampler._averaged(asked, block)
    np.testing.assert_allclose(found.mean[1], [0.5, 0, 0, 0.5, 0])
    assert labels[found.path[0]] == "B-X"
    assert labels[found.path[1]] in ("O", "B-Y")


def test_drawn_rows_have_the_mean_of_their_posterior_also_where_labels_never_occur() -> None:
    """Small priors, and annotators who never use a label: its pseudo-counts belong to the total all the same."""
    rows = {"p": [["B-X", "O"], ["O", "B-X"]], "q": [["O", "O"], ["B-X", "O"]]}
    corpus = CrowdCorpus.from_sequences([["a", "b"], ["b", "a"]], rows, labels=("B-X", "I-X", "O"))
    fit = fitted(corpus, memory=False, levels=((0.6, 0.8),), words=False, n=3)
    annotators, counts, rng = fit.annotators, fit.statistics[3], np.random.default_rng(0)
    drawn = np.zeros_like(annotators.prior)
    n = 20_000
    for _ in range(n):
        drawn += np.exp(annotators.draw(counts, rng)) / n
    assert confusion_prior(1, 5.0, 1.0).tolist() == [[5.0]]
    assert confusion_prior(2, 5.0, 1.0).tolist() == [[5.0, 1.0], [1.0, 5.0]]
    prior = confusion_prior(3, 0.6, 0.8)
    for row, code in enumerate(annotators.rows.code):
        annotator, given = divmod(int(code), 3)
        for t in range(3):
            mine = [r for r, other in enumerate(annotators.rows.code) if other // 3 == annotator]
            total = sum(fit.crowd[r, t] for r in mine) + prior[t].sum()
            mean = (fit.crowd[row, t] + prior[t, given]) / total
            assert drawn[row, t] == pytest.approx(mean, abs=4 * np.sqrt(mean * (1 - mean) / (1 + total) / n))
            assert annotators.means(fit.crowd)[row, t] == pytest.approx(mean, rel=1e-12)


def test_a_drawn_confusion_of_a_text_has_the_mean_of_its_posterior() -> None:
    source = Texts(np.array([[2.0, 1.0], [0.5, 3.0]]))
    counts, rng, n = np.array([[4.0, 1.0], [0.0, 2.5]]), np.random.default_rng(0), 20_000
    drawn = sum(np.exp(source.draw(counts, rng)) for _ in range(n)) / n
    np.testing.assert_allclose(drawn, [[6 / 8, 2 / 8], [0.5 / 6, 5.5 / 6]], atol=0.01)


def test_the_first_three_and_the_last_sequence_of_a_document_are_told_apart() -> None:
    lengths = [2, 1, 3, 1, 2, 1, 1]
    words = [[f"w{s}{i}" for i in range(n)] for s, n in enumerate(lengths)]
    corpus = CrowdCorpus.from_sequences(words, {"a": [["O"] * n for n in lengths]})
    documents = np.array([0, 0, 0, 0, 0, 1, 1])
    place, length = crf_text._positions(corpus, crf_text._places(corpus, documents))
    assert place.tolist() == [0, 0, 1, 2, 2, 2, 4, 3, 3, 0, 1]
    assert length.tolist() == [2, 2, 1, 3, 3, 3, 1, 2, 2, 1, 1]
    order = np.array([5, 0, 1, 6, 2, 3, 4])  # documents mixed up
    mixed = corpus.select(sequences=order)
    place, _ = crf_text._positions(mixed, crf_text._places(mixed, documents[order]))
    assert place.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 4, 3, 3]


def test_without_a_markov_chain_states_weigh_exp_of_the_expected_log() -> None:
    corpus = crowd(n_sequences=8, seed=1)
    fit = fitted(corpus, n=2, markov=False, transition_prior=0.3)
    _, starts, moves, *_ = fit.statistics
    alpha = starts + moves.sum(axis=0) + 0.3 / 2
    assert alpha.sum() == pytest.approx(corpus.n_tokens + 0.3 * corpus.n_labels)
    chain = fit.learner.update(fit.state, fit.statistics)[0].chain
    expected = np.exp(digamma(alpha) - digamma(alpha.sum()))
    np.testing.assert_allclose(chain.start, expected, rtol=1e-9)
    np.testing.assert_allclose(chain.move, np.tile(expected, (len(alpha), 1)), rtol=1e-9)


def test_the_score_of_held_out_votes_equals_the_slow_one() -> None:
    """Token by token, vote by vote; without a chain and words the states of tokens do not depend on each other."""
    corpus = crowd(n_sequences=5, n_annotators=4, seed=7)
    fit = fitted(corpus, n=4, memory=False, markov=False, words=False, levels=((1.0, 0.3), (0.5, 0.7)))
    votes, T = fit.blocks[0].votes, corpus.n_labels
    weight, log_crowd, counts = fit.state.chain.start, fit.state.tables[0], fit.crowd
    prior = np.vstack([confusion_prior(T, 1.0, 0.3), confusion_prior(T, 0.5, 0.7)])
    code = {int(c): r for r, c in enumerate(fit.annotators.rows.code)}

    def mean(annotator: int, given: int, state: int) -> float:
        mine = [counts[code[annotator * T + s], state] if annotator * T + s in code else 0.0 for s in range(T)]
        return float((mine[given] + prior[state, given]) / (sum(mine) + prior[state].sum()))

    scores, n = np.zeros(len(GRID)), 0
    for i in range(votes.n_tokens):
        given = [(int(votes.annotator[v]), int(votes.label[v])) for v in range(votes.start[i], votes.start[i + 1])]
        for a, s in given:
            p = weight.copy()
            for b, other in given:
                if b != a:
                    p = p * np.exp(log_crowd[code[b * T + other]])
            p /= p.sum()
            labels = [p[t] + p[T + t] for t in range(T)]
            for k, tau in enumerate(GRID):
                warm = [x**tau for x in labels]
                said = sum(
                    warm[t] / sum(warm) * (p[t] * mean(a, s, t) + p[T + t] * mean(a, s, T + t)) / labels[t]
                    for t in range(T)
                )
                scores[k] += np.log(said)
            n += 1
    tau, found = held_out_votes(fit)
    np.testing.assert_allclose(found, scores / n, rtol=1e-6)
    assert tau == GRID[int(scores.argmax())]


def test_calibrated_probabilities_with_text_by_their_definition() -> None:
    """Tempered once, the text's word added once: p'(t) = Σ_s q_s p(t)^τ Φ_ts / Σ_t' p(t')^τ Φ_t's."""
    corpus = crowd(n_sequences=40, n_annotators=5, seed=3, accuracy=0.7)
    T = corpus.n_labels
    text = (0.7 * np.eye(T)[corpus.golds["gold"]] + 0.3 * some_text(corpus)).astype(np.float32)
    fit = fitted(corpus, text, memory=False, words=False)
    table = fitted(corpus, memory=False, words=False).state.tables[0]
    fit = replace(fit, state=replace(fit.state, tables=(3 * table, np.zeros((T, T)))))
    crowd_alone = plain_of(fit)
    voted = np.diff(corpus.token_start) > 0
    found = referee(crowd_alone[voted], text[voted].astype(float), confusion_prior(T, 11.0, 10.0))
    assert found.tau < 0.8
    expected = np.empty_like(crowd_alone)
    for i, (p, q) in enumerate(zip(crowd_alone, text.astype(float))):
        warm = p**found.tau
        warm /= warm.sum()
        expected[i] = sum(q[s] * warm * found.confusion[:, s] / (warm @ found.confusion[:, s]) for s in range(T))
    out, numbers = calibrated_of(fit, 0.0)
    assert numbers["temperature"] == pytest.approx(1 / found.tau)
    np.testing.assert_allclose(out, expected / expected.sum(axis=1, keepdims=True), atol=1e-6)

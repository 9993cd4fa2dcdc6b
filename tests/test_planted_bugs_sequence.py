"""Planted bugs in the sequence model below its E step: starts, chains, drawn rows, text columns, held-out votes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import digamma

from hidden_cases import fitted, some_text, states
from lasca.corpus import CrowdCorpus
from lasca.truth import hidden_fit, sequence_rounds, text_evidence
from lasca.truth.annotator_models import confusion_prior
from lasca.truth.base import Votes
from lasca.truth.sequence_model import start_evidence
from lasca.truth.tempering import GRID, calibrated, held_out_votes, referee
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
        shares = np.maximum(hidden_fit.vote_shares(votes), 1e-3)
        evidence = start_evidence(corpus, votes, hard=False)
        found = sequence_rounds._agreed(votes, evidence, shares)
        np.testing.assert_allclose(np.exp(found), meet * np.exp(evidence) + (1 - meet) * shares, rtol=1e-6)


def test_a_chain_that_got_stuck_is_left_out_of_the_means(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = fitted(states(crowd(n_sequences=6, seed=2)), n=3)
    settings: dict[str, Any] = {"n_chains": 3, "n_warmup": 1, "n_samples": 3, "n_threads": 1}
    run_chains, ran = hidden_fit.run_chains, []

    def spoiled(*args: Any, **options: Any) -> Any:
        chains = run_chains(*args, **options)
        ran.extend((chain.store.proba.copy(), chain.store.crowd.copy()) for chain in chains)
        stuck = replace(chains[1], kept=chains[1].kept - 1e6)
        stuck.store.proba[:] = 1e3
        stuck.store.crowd[:] = 1e3
        return [chains[0], stuck, chains[2]]

    monkeypatch.setattr(hidden_fit, "run_chains", spoiled)
    found = hidden_fit.sample_states(fit, rng=np.random.default_rng(0), **settings)
    assert found.in_range.tolist() == [True, False, True]
    np.testing.assert_allclose(found.proba, (ran[0][0] + ran[2][0]) / 6, rtol=1e-12)
    np.testing.assert_allclose(found.crowd, (ran[0][1] + ran[2][1]) / 6, rtol=1e-12)


def test_drawn_rows_have_the_mean_of_their_posterior_also_where_labels_never_occur() -> None:
    """Small priors, and annotators who never use a label: its pseudo-counts belong to the total all the same."""
    rows = {"p": [["B-X", "O"], ["O", "B-X"]], "q": [["O", "O"], ["B-X", "O"]]}
    corpus = CrowdCorpus.from_sequences([["a", "b"], ["b", "a"]], rows, labels=("B-X", "I-X", "O"))
    fit = fitted(states(corpus, memory=False, levels=((0.6, 0.8),), words=False), n=3)
    model, rng = fit.model, np.random.default_rng(0)
    drawn = np.zeros_like(fit.prior.rows)
    n = 20_000
    for _ in range(n):
        drawn += np.exp(hidden_fit._draw_parameters(fit, fit.expected, rng).crowd) / n
    prior = confusion_prior(3, 0.6, 0.8)
    for row, code in enumerate(model.rows.code):
        annotator, given = divmod(int(code), 3)
        for t in range(3):
            mine = [r for r, other in enumerate(model.rows.code) if other // 3 == annotator]
            total = sum(fit.expected.crowd[r, t] for r in mine) + prior[t].sum()
            mean = (fit.expected.crowd[row, t] + prior[t, given]) / total
            assert drawn[row, t] == pytest.approx(mean, abs=4 * np.sqrt(mean * (1 - mean) / (1 + total) / n))


def test_the_first_three_and_the_last_sequence_of_a_document_are_told_apart() -> None:
    lengths = [2, 1, 3, 1, 2, 1, 1]
    words = [[f"w{s}{i}" for i in range(n)] for s, n in enumerate(lengths)]
    corpus = CrowdCorpus.from_sequences(words, {"a": [["O"] * n for n in lengths]})
    documents = np.array([0, 0, 0, 0, 0, 1, 1])
    place, length = text_evidence._positions(corpus, text_evidence._places(corpus, documents))
    assert place.tolist() == [0, 0, 1, 2, 2, 2, 4, 3, 3, 0, 1]
    assert length.tolist() == [2, 2, 1, 3, 3, 3, 1, 2, 2, 1, 1]
    order = np.array([5, 0, 1, 6, 2, 3, 4])  # documents mixed up
    mixed = corpus.select(sequences=order)
    place, _ = text_evidence._positions(mixed, text_evidence._places(mixed, documents[order]))
    assert place.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 4, 3, 3]


def test_without_a_markov_chain_states_weigh_exp_of_the_expected_log() -> None:
    model = states(crowd(n_sequences=8, seed=1), markov=False, transition_prior=0.3)
    fit = fitted(model, n=2)
    alpha = fit.expected.chain.starts + fit.expected.chain.moves.sum(axis=0) + 0.3 / model.H
    assert alpha.sum() == pytest.approx(model.votes.n_tokens + 0.3 * model.T)
    chain = model.maximise(fit.expected, fit.prior).chain
    expected = np.exp(digamma(alpha) - digamma(alpha.sum()))
    np.testing.assert_allclose(chain.start, expected, rtol=1e-9)
    np.testing.assert_allclose(chain.move, np.tile(expected, (model.S, 1)), rtol=1e-9)


def test_the_score_of_held_out_votes_equals_the_slow_one() -> None:
    """Token by token, vote by vote; without a chain and words the states of tokens do not depend on each other."""
    corpus = crowd(n_sequences=5, n_annotators=4, seed=7)
    model = states(corpus, memory=False, markov=False, words=False, levels=((1.0, 0.3), (0.5, 0.7)))
    fit = fitted(model, n=4)
    votes, T = model.votes, model.T
    weight, log_crowd, counts = fit.parameters.chain.start, fit.parameters.crowd, fit.expected.crowd
    prior = np.vstack([confusion_prior(T, 1.0, 0.3), confusion_prior(T, 0.5, 0.7)])
    code = {int(c): r for r, c in enumerate(model.rows.code)}

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
    model = states(corpus, memory=False, words=False)
    gold = np.eye(model.T)[corpus.golds["gold"]]
    text = replace(some_text(corpus), proba=(0.7 * gold + 0.3 * some_text(corpus).proba).astype(np.float32))
    fit = fitted(model)
    sharp = replace(fit.parameters, crowd=3 * fit.parameters.crowd, texts=(np.zeros((model.T, model.T)),))
    fit = replace(fit, parameters=sharp, texts=(text,))
    crowd_alone = hidden_marginals(fit)
    voted = np.diff(model.votes.start) > 0
    prior = confusion_prior(model.T, *model.settings.text_prior)
    found = referee(crowd_alone[voted], text.proba[voted].astype(float), prior)
    assert found.tau < 0.8
    expected = np.empty_like(crowd_alone)
    for i, (p, q) in enumerate(zip(crowd_alone, text.proba.astype(float))):
        warm = p**found.tau
        warm /= warm.sum()
        expected[i] = sum(q[s] * warm * found.confusion[:, s] / (warm @ found.confusion[:, s]) for s in range(model.T))
    out, numbers = calibrated(fit, fit.labels, 0.0)
    assert numbers["temperature"] == pytest.approx(1 / found.tau)
    np.testing.assert_allclose(out, expected / expected.sum(axis=1, keepdims=True), atol=1e-6)


def hidden_marginals(fit: Any) -> np.ndarray:
    """Return the labels' probabilities by votes alone: the texts left out of the E step."""
    out = np.empty((fit.model.votes.n_tokens, fit.model.S))
    fit.model.expect(replace(fit.parameters, texts=()), (), out)
    return fit.model.label_proba(out)

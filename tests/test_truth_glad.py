"""GLAD against its log posterior written out, and against finite differences."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

import naive
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block, Votes
from lasca.errors import ParameterError
from lasca.truth.glad import Glad, GladLearner, GladPrior, GladState, blocks_of
from truth_cases import big_crowd, crowd, triples

LEARNED = GladPrior(1.0, 1.0, 1.0, 1.0, 0.1)


class State(NamedTuple):
    ability: np.ndarray
    log_ease: np.ndarray
    log_gamma: np.ndarray


class Passes:
    """Steps of the learner over one corpus as one block, with the ease in the state."""

    def __init__(self, corpus: CrowdCorpus, prior: GladPrior) -> None:
        votes = Votes.of(corpus)
        self.block, self.learner = (
            Block(votes, 0, votes.n_tokens),
            GladLearner(votes.n_annotators, votes.n_labels, prior),
        )

    def step(self, state: State, proba: np.ndarray | None = None) -> tuple[State, float]:
        local = replace(self.learner._local(self.block), log_ease=state.log_ease)
        learned = GladState(state.ability, state.log_gamma)
        if proba is not None:
            self.learner.describe(learned, self.block, local, proba)
        statistics, kept = self.learner.visit(learned, self.block, local)
        after, objective = self.learner.update(learned, statistics)
        return State(after.ability, kept.log_ease, after.log_gamma), objective


def random_state(corpus: CrowdCorpus, seed: int) -> State:
    rng = np.random.default_rng(seed)
    gamma = rng.dirichlet(np.ones(corpus.n_labels))
    return State(rng.normal(1, 1, corpus.n_annotators), rng.normal(0.5, 1, corpus.n_tokens), np.log(gamma))


def log_posterior(corpus: CrowdCorpus, state: State, smoothing: float = 0.1) -> float:
    return naive.glad_log_posterior(triples(corpus), state.ability, state.log_ease, np.exp(state.log_gamma), smoothing)


@pytest.mark.parametrize("seed", range(4))
def test_objective_and_posterior_equal_the_formula(seed: int) -> None:
    corpus = crowd(n_sequences=4, n_annotators=4, seed=seed, unlabelled=1)
    state = random_state(corpus, seed)
    proba = np.empty((corpus.n_tokens, 3), dtype=np.float32)
    _, objective = Passes(corpus, LEARNED).step(state, proba)
    assert objective == pytest.approx(log_posterior(corpus, state), rel=1e-11)
    for token in range(corpus.n_tokens):
        weights = np.exp(state.log_gamma)
        for i, a, s in triples(corpus):
            if i == token:
                x = state.ability[a] * np.exp(state.log_ease[i])
                weights = weights * np.where(np.arange(3) == s, 1 / (1 + np.exp(-x)), 1 / (1 + np.exp(x)) / 2)
        np.testing.assert_allclose(proba[token], weights / weights.sum(), atol=1e-6)


def test_known_labels_are_the_only_ones_that_are_summed_over() -> None:
    corpus = crowd(n_sequences=4, n_annotators=4, seed=1)
    voted = np.flatnonzero(np.diff(corpus.token_start))
    known = {int(i): int(t) for i, t in zip(voted[::3], np.random.default_rng(2).integers(0, 3, len(voted)))}
    codes = np.full(corpus.n_tokens, -1)
    codes[list(known)] = list(known.values())
    state, proba = random_state(corpus, 3), np.empty((corpus.n_tokens, 3), dtype=np.float32)
    after, objective = Passes(corpus.with_known(codes), LEARNED).step(state, proba)
    numbers = (state.ability, state.log_ease, np.exp(state.log_gamma), 0.1)
    assert objective == pytest.approx(naive.glad_log_posterior(triples(corpus), *numbers, known=known), rel=1e-11)
    np.testing.assert_array_equal(proba[list(known)], np.eye(3)[list(known.values())])
    totals = proba[voted].sum(axis=0, dtype=np.float64) + 0.1
    np.testing.assert_allclose(after.log_gamma, np.log(totals / totals.sum()), rtol=1e-5)


def test_an_ability_of_zero_moves_as_those_beside_it() -> None:
    """There the bound is 0 / 0, and its limit is taken."""
    corpus = crowd(n_sequences=4, n_annotators=4, seed=5)
    state, passes = random_state(corpus, 5), Passes(corpus, LEARNED)
    after = []
    for ability in (0.0, 1e-5):
        state.ability[0] = ability
        after.append(passes.step(state)[0].ability)
    np.testing.assert_allclose(after[0], after[1], rtol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_every_step_rises_from_any_state(seed: int) -> None:
    corpus = crowd(n_sequences=4, n_annotators=4, seed=seed)
    passes = Passes(corpus, LEARNED)
    state = random_state(corpus, seed)
    before = log_posterior(corpus, state)
    for _ in range(5):
        state, _ = passes.step(state)
        after = log_posterior(corpus, state)
        assert after >= before - 1e-9
        before = after


def test_where_it_ends_no_parameter_can_be_improved() -> None:
    """At convergence the gradient of the log posterior vanishes (finite differences)."""
    corpus = crowd(n_sequences=3, n_annotators=4, seed=5)
    passes = Passes(corpus, GladPrior(1.0, 1.0, 1.0, 1.0, None))
    state = State(np.ones(4), np.ones(corpus.n_tokens), np.full(3, -np.log(3)))
    for _ in range(3000):
        state, _ = passes.step(state)
    gamma, votes = np.exp(state.log_gamma), triples(corpus)

    def objective(ability: np.ndarray, ease: np.ndarray) -> float:
        return naive.glad_log_posterior(votes, ability, ease, gamma, 0.0)

    for a in range(4):
        e = np.eye(4)[a] * 1e-4
        slope = (objective(state.ability + e, state.log_ease) - objective(state.ability - e, state.log_ease)) / 2e-4
        assert abs(slope) < 1e-4
    for i in range(0, corpus.n_tokens, 3):
        e = np.eye(corpus.n_tokens)[i] * 1e-4
        slope = (objective(state.ability, state.log_ease + e) - objective(state.ability, state.log_ease - e)) / 2e-4
        assert abs(slope) < 1e-4


def test_abilities_follow_accuracy_and_a_misleading_annotator_is_negative() -> None:
    accuracy = np.array([0.97, 0.85, 0.75, 0.6])
    corpus = crowd(n_sequences=120, n_annotators=4, accuracy=accuracy, coverage=1.0, seed=2)
    swapped = {"B-X": "O", "I-X": "B-X", "O": "I-X"}
    liar = [[swapped[x] for x in row] for row in corpus.label_names(corpus.golds["gold"])]
    rows = {
        name: [[None if c < 0 else corpus.labels[c] for c in codes] for codes in _given(corpus, a)]
        for a, name in enumerate(corpus.annotators)
    }
    words = [corpus.sequence(s) for s in range(corpus.n_sequences)]
    truth = Glad().fit(CrowdCorpus.from_sequences(words, rows | {"liar": liar}))
    ability = np.array(truth.diagnostics["ability"])
    assert np.argsort(-ability).tolist() == [0, 1, 2, 3, 4]
    assert ability[4] < 0
    assert (truth.labels == corpus.golds["gold"]).mean() > 0.9


def _given(corpus: CrowdCorpus, annotator: int) -> list[list[int]]:
    flat = np.full(corpus.n_tokens, -1)
    mine = corpus.annotation_annotator == annotator
    flat[corpus.annotation_token[mine]] = corpus.annotation_label[mine]
    return [flat[a:b].tolist() for a, b in zip(corpus.offsets[:-1], corpus.offsets[1:])]


def test_disputed_tokens_are_harder() -> None:
    corpus = CrowdCorpus.from_sequences(
        [["x"] * 20], {f"{a}": [["A"] * 19 + ["A" if a < 3 else "B"]] for a in range(5)}
    )
    passes = Passes(corpus, GladPrior(1.0, 1.0, 1.0, 1.0, None))
    state = State(np.ones(5), np.ones(20), np.full(2, -np.log(2)))
    for _ in range(50):
        state, _ = passes.step(state)
    assert state.log_ease[19] < state.log_ease[:19].min()


def test_threads_change_no_byte() -> None:
    corpus = big_crowd(n_tokens=12_000)
    assert len(blocks_of(Votes.of(corpus))) > 1
    runs = [Glad(max_iter=4, n_threads=n).fit(corpus) for n in (1, 2)]
    assert runs[0].proba.tobytes() == runs[1].proba.tobytes()
    assert runs[0].trace.tobytes() == runs[1].trace.tobytes()


@pytest.mark.parametrize("name", ["ability_sd", "ease_sd", "class_prior", "smoothing", "restarts", "max_iter", "tol"])
def test_parameters_are_checked(name: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be"):
        Glad(**{name: -1}).fit(crowd(n_sequences=2))

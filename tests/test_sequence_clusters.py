"""SequenceClusters: its parts against slow twins, variational Bayes against sampling, and what it promises."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln

import naive
from hidden_cases import fitted, some_text, states
from lasca.corpus import CrowdCorpus
from lasca.errors import ParameterError
from lasca.truth.annotator_groups import _concentration
from lasca.truth.hidden_fit import log_joint, sample_states
from lasca.truth.hierarchical import HierarchicalClusters
from lasca.truth.majority import MajorityVote
from lasca.truth.sequence_clusters import SequenceClusters
from truth_cases import crowd

QUICK: dict[str, Any] = {"rounds": 1, "folds": 2, "text_iterations": 8}


# --- the states -----------------------------------------------------------------------------------------------------


def test_the_e_step_is_the_sum_over_all_paths() -> None:
    corpus = crowd(n_sequences=12, n_annotators=3)
    text = some_text(corpus)
    fit = fitted(states(corpus), (text,), n=3)
    model, parameters = fit.model, fit.parameters
    short = int(np.diff(corpus.offsets).argmin())
    first, last = corpus.offsets[short], min(corpus.offsets[short + 1], corpus.offsets[short] + 4)
    piece = corpus.select(sequences=[short])
    evidence = np.zeros((piece.n_tokens, model.S))
    for i in range(first, corpus.offsets[short + 1]):
        for s in range(model.S):
            label = s % model.T
            evidence[i - first, s] = sum(
                parameters.crowd[model.rows.row[j], s] for j in range(corpus.token_start[i], corpus.token_start[i + 1])
            )
            evidence[i - first, s] += parameters.words[model.words.row[i], label]  # type: ignore[index, union-attr]
            evidence[i - first, s] += float(text.proba[i].astype(float) @ parameters.texts[0][label])
    assert last - first == piece.n_tokens, "the shortest sequence must be short enough to enumerate"
    chain = parameters.chain
    _, expected, _ = naive.chain_sums(naive.chain_paths(evidence, chain.start, chain.move, chain.end), model.S)
    np.testing.assert_allclose(fit.proba[first : corpus.offsets[short + 1]], expected, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"markov": False},
        {"memory": False},
        {"words": False},
        {"levels": ((11.0, 10.0),)},
        {"levels": ((9.0, 1.0),) * 3},
    ],
)
def test_the_objective_never_falls_in_a_round(changes: dict[str, Any]) -> None:
    corpus = crowd(n_sequences=30, n_annotators=5, seed=1, unlabelled=1)
    model = states(corpus, **changes)
    for texts in ((), (some_text(corpus),), (some_text(corpus), some_text(corpus, 1))):
        fit = fitted(model, texts)
        prior = model.cluster_prior(fit.expected.crowd, np.arange(5) % 2, 2, 10.0)
        for trace in (fit.trace, fitted(model, texts, prior).trace):
            assert np.diff(trace).min() >= -1e-7 * abs(trace[-1])
            assert trace[-1] > trace[0]


def test_the_cluster_prior_adds_as_many_counts_as_it_says() -> None:
    corpus = crowd(n_sequences=30, n_annotators=4)
    model = states(corpus, memory=False, levels=((11.0, 10.0),))
    fit = fitted(model)
    prior = model.cluster_prior(fit.expected.crowd, np.array([0, 0, 1, 1]), 2, 7.0)
    extra = prior.rows - model.base_prior.rows
    assert (extra > 0).all()
    np.testing.assert_allclose(prior.totals - model.base_prior.totals, 7.0)
    sums = np.add.reduceat(extra, model.borders[:-1], axis=0)
    assert (sums <= 7.0 + 1e-9).all()
    first = extra[model.annotator == 0]
    second = extra[model.annotator == 1]
    np.testing.assert_allclose(first, second)  # the same labels occur with both, the cluster is the same
    assert model.cluster_prior(fit.expected.crowd, np.zeros(4, int), 1, 0.0) is model.base_prior


# --- sampling -------------------------------------------------------------------------------------------------------


def test_sampling_and_variational_bayes_agree_where_parameters_are_known() -> None:
    """With huge pseudo-counts the parameters are as good as fixed: both must give the exact posterior."""
    corpus = crowd(n_sequences=15, n_annotators=3, seed=2)
    text = some_text(corpus)
    levels = ((6e5, 4e5), (3e5, 7e5))
    model = states(corpus, levels=levels, transition_prior=1e6, word_prior=1e6, text_prior=(6e5, 4e5), memory=False)
    fit = fitted(model, (text,), n=5)
    draws = sample_states(fit, rng=np.random.default_rng(0), n_chains=2, n_warmup=2, n_samples=30, n_threads=1)
    np.testing.assert_allclose(draws.proba, fit.proba, atol=0.01)


def test_drawn_states_have_the_probabilities_they_should() -> None:
    """Not Rao–Blackwellised: the counts of annotations by state, over draws, within 5 Monte-Carlo errors."""
    corpus = crowd(n_sequences=15, n_annotators=3, seed=2)
    model = states(corpus, levels=((6e5, 4e5), (3e5, 7e5)), transition_prior=1e6, word_prior=1e6, memory=False)
    fit = fitted(model, n=5)
    n = 200
    draws = sample_states(fit, rng=np.random.default_rng(0), n_chains=1, n_warmup=2, n_samples=n, n_threads=1)
    error = np.sqrt(np.maximum(fit.expected.crowd, 0.05) * 2 / n)  # labels of neighbours depend: twice the variance
    assert (np.abs(draws.crowd - fit.expected.crowd) / error).max() < 5


@pytest.mark.parametrize("changes", [{}, {"memory": False}, {"markov": False}, {"levels": ((11.0, 10.0),)}])
def test_sampling_and_variational_bayes_agree_on_a_small_crowd(changes: dict[str, Any]) -> None:
    corpus = crowd(n_sequences=60, n_annotators=6, seed=3)
    fit = fitted(states(corpus, **changes), n=40)
    draws = sample_states(fit, rng=np.random.default_rng(0), n_chains=2, n_warmup=30, n_samples=60, n_threads=2)
    labels = fit.model.label_proba(draws.proba)
    assert np.abs(labels - fit.labels).mean() < 0.03
    assert (fit.model.decode(labels) == fit.model.decode(fit.labels)).mean() > 0.97
    assert np.isfinite(draws.trace).all()


def test_the_log_joint_is_the_probability_of_the_draw() -> None:
    """One token, two annotators, no words: p(state, votes) = start prior mean · row prior means."""
    corpus = CrowdCorpus.from_sequences([["w"]], {"a": [["x"]], "b": [["x"]]}, labels=("x", "y"))
    model = states(corpus, memory=False, words=False, levels=((3.0, 1.0),))
    fit = fitted(model, n=1)
    for state, wanted in ((0, 0.5 * 0.75**2), (1, 0.5 * 0.25**2)):
        one = np.zeros((1, 2))
        one[0, state] = 1
        chain = replace(fit.expected.chain, starts=one[0].copy(), moves=np.zeros((2, 2)))
        counts = model.counted(chain, (), one)
        np.testing.assert_allclose(np.exp(log_joint(fit, counts)), wanted, rtol=1e-9)


# --- the estimator --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"text": False},
        {"markov": False},
        {"memory": False},
        {"memory": True, "words": False},
        {"difficulty": False},
        {"cluster_strength": 0.0},
        {"calibrate": False},
        {"n_clusters": 2},
        {"inference": "gibbs", "n_warmup": 5, "n_samples": 10},
    ],
)
def test_every_part_can_be_switched_off(changes: dict[str, Any]) -> None:
    corpus = crowd(n_sequences=60, seed=4, unlabelled=1)
    truth = SequenceClusters(**(QUICK | changes)).fit(corpus)
    labelled = np.diff(corpus.token_start) > 0
    assert (truth.labels == corpus.golds["gold"])[labelled].mean() > 0.85
    assert truth.clusters is not None
    np.testing.assert_allclose(truth.clusters.shared.sum(axis=2), 1, atol=1e-5)
    if changes.get("n_clusters"):
        assert truth.clusters.n_clusters == 2


def test_hierarchical_clusters_with_sequence_is_this_model() -> None:
    corpus = crowd(n_sequences=40)
    a = HierarchicalClusters(sequence=QUICK, seed=3).fit(corpus)
    b = SequenceClusters(**QUICK, seed=3).fit(corpus)
    assert a.proba.tobytes() == b.proba.tobytes()
    assert a.model == "hc"
    with pytest.raises(ParameterError, match="sequence"):
        HierarchicalClusters(sequence="yes").fit(corpus)  # type: ignore[arg-type]
    assert HierarchicalClusters(sequence=True).fit(corpus).clusters is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("memory", "yes"),
        ("words", 1),
        ("n_clusters", "aic"),
        ("cluster_strength", -1.0),
        ("doubt", 1.5),
        ("folds", 1),
        ("inference", "em"),
        ("rounds", -1),
    ],
)
def test_bad_parameters_are_named(name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=name):
        SequenceClusters(**{name: value}).fit(crowd(n_sequences=5))


def test_one_sequence_and_one_annotator_are_enough() -> None:
    corpus = CrowdCorpus.from_sequences([["a", "b", "c"]], {"p": [["x", "y", "x"]]})
    assert SequenceClusters().fit(corpus).sequences() == [["x", "y", "x"]]


def test_hard_tokens_do_not_become_a_rare_label(demo: CrowdCorpus) -> None:
    """Annotators who fail on the same tokens and then guess: majority vote must not be better."""
    gold = demo.golds["gold"]
    truth = SequenceClusters(text=False).fit(demo)
    majority = MajorityVote().fit(demo)
    assert (truth.labels == gold).mean() >= (majority.labels == gold).mean()


@pytest.fixture(scope="module")
def demo() -> CrowdCorpus:
    """Draw 600 sequences of nine labels, two of them rare, with a crowd whose errors come at the same tokens."""
    from lasca import simulate

    rng = np.random.default_rng(0)
    names = [f"L{k}" for k in range(9)]
    weight = np.array([30, 20, 15, 12, 10, 7, 4, 1, 1.0])
    rows = [[names[k] for k in rng.choice(9, size=8, p=weight / weight.sum())] for _ in range(600)]
    words = [[f"w{name}{rng.integers(20)}" for name in row] for row in rows]
    plain = CrowdCorpus.from_sequences(words, {}, golds={"gold": rows}, labels=names)
    return simulate.crowd(plain, groups="ca2", errors="difficulty", rho=0.4, wrong="uniform", seed=1)


def test_concentration_of_a_cluster_by_hand() -> None:
    rng = np.random.default_rng(0)
    rows = np.array([[0.7, 0.3], [0.2, 0.8]])
    counts = np.array([[rng.multinomial(60, rng.dirichlet(200 * row)) for row in rows] for _ in range(30)], float)

    def score(eta: float, t: int) -> float:
        prior = eta * rows[t]
        each = gammaln(counts[:, t] + prior).sum(axis=1) - gammaln(prior).sum() - gammaln(60 + eta) + gammaln(eta)
        return float(each.sum() - 0.02 * eta)

    grid = np.geomspace(1.0, 300.0, 16)
    expected = [max(grid, key=lambda eta: score(eta, t)) for t in (0, 1)]
    assert _concentration(counts, rows).tolist() == expected


def test_the_threads_of_blas_change_no_byte() -> None:
    """Large enough that BLAS would share a product out among its threads; they can be set before it is loaded only."""
    code = """
import lasca, sys
corpus = lasca.simulate.big(60_000, n_annotators=10, n_labels=9, per_token=3, precision=(0.3, 0.7), seed=0)
model = lasca.SequenceClusters(rounds=1, folds=2, text_iterations=5, max_iter=4, memory=False, difficulty=False)
sys.stdout.buffer.write(model.fit(corpus).proba.tobytes())
"""
    found = [
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"OPENBLAS_NUM_THREADS": n}, capture_output=True, check=True
        ).stdout
        for n in "12"
    ]
    assert len(found[0]) == 20_000 * 9 * 4
    assert found[0] == found[1]

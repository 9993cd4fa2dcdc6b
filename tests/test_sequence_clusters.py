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
from hidden_cases import fitted, path_of, some_text
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import cut_into_blocks
from lasca.engine import Threads
from lasca.errors import ModelError, ParameterError
from lasca.truth.chain_sampler import ChainSampler, sample_states
from lasca.truth.clusters import _concentration, found_clusters
from lasca.truth.dawid_skene import DawidSkene
from lasca.truth.hierarchical import HierarchicalClusters
from lasca.truth.majority import MajorityVote
from lasca.truth.sequence_clusters import SequenceClusters
from process_engine import Processes
from truth_cases import crowd

QUICK: dict[str, Any] = {"rounds": 1, "folds": 2, "text_iterations": 8}


# --- the states -----------------------------------------------------------------------------------------------------


def test_the_e_step_is_the_sum_over_all_paths() -> None:
    corpus = crowd(n_sequences=12, n_annotators=3)
    text = some_text(corpus)
    fit = fitted(corpus, text, n=3)
    crowd_table, word_table, text_table = fit.state.tables
    votes, T, S = fit.blocks[0].votes, corpus.n_labels, len(fit.learner.space)
    view = fit.learner.look(fit.blocks[0]).views[0]
    short = int(np.diff(corpus.offsets).argmin())
    first, last = int(corpus.offsets[short]), int(corpus.offsets[short + 1])
    evidence = np.zeros((last - first, S))
    for i in range(first, last):
        for s in range(S):
            given = range(corpus.token_start[i], corpus.token_start[i + 1])
            evidence[i - first, s] = sum(crowd_table[view.own[view.row[j]], s] for j in given)
            evidence[i - first, s] += word_table[votes.words[i], s % T]  # type: ignore[index]
            evidence[i - first, s] += float(text[i].astype(float) @ text_table[s % T])
    assert last - first <= 4, "the shortest sequence must be short enough to enumerate"
    chain = fit.state.chain
    _, expected, _ = naive.chain_sums(naive.chain_paths(evidence, chain.start, chain.move, chain.end), S)
    np.testing.assert_allclose(fit.labels[first:last], expected[:, :T] + expected[:, T:], atol=1e-5)


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
    for text in (None, some_text(corpus)):
        fit = fitted(corpus, text, **changes)
        annotators = fit.annotators.clustered(fit.crowd, np.arange(5) % 2, 2, 10.0)
        for trace in (fit.trace, fitted(corpus, text, annotators=annotators, **changes).trace):
            assert np.diff(trace).min() >= -1e-7 * abs(trace[-1])
            assert trace[-1] > trace[0]


def test_the_cluster_prior_adds_as_many_counts_as_it_says() -> None:
    corpus = crowd(n_sequences=30, n_annotators=4)
    fit = fitted(corpus, memory=False, levels=((11.0, 10.0),))
    base = fit.annotators
    found = base.clustered(fit.crowd, np.array([0, 0, 1, 1]), 2, 7.0)
    extra = found.prior - base.prior
    assert (extra > 0).all()
    np.testing.assert_allclose(found.totals - base.totals, 7.0)
    sums = np.add.reduceat(extra, base.rows.borders[:-1], axis=0)
    assert (sums <= 7.0 + 1e-9).all()
    annotator = base.rows.parts[0]
    np.testing.assert_allclose(extra[annotator == 0], extra[annotator == 1])  # the same labels occur with both
    assert base.clustered(fit.crowd, np.zeros(4, int), 1, 0.0) is base


def test_soft_votes_that_are_sure_are_hard_votes_without_memory() -> None:
    corpus = crowd(n_sequences=25, n_annotators=4, coverage=1.0)
    last = corpus.annotation_annotator == 3
    sure = np.full((corpus.n_tokens, corpus.n_labels), np.nan)
    sure[corpus.annotation_token[last]] = np.eye(corpus.n_labels)[corpus.annotation_label[last]]
    soft = corpus.select(annotators=corpus.annotators[:3]).with_soft(corpus.annotators[3], sure)
    options = {**QUICK, "memory": False, "max_iter": 3, "tol": 0.0}
    hard, other = (SequenceClusters(**options).fit(c) for c in (corpus, soft))
    np.testing.assert_allclose(other.trace, hard.trace, rtol=1e-9)
    np.testing.assert_array_equal(other.labels, hard.labels)
    with pytest.raises(ModelError, match="cannot sample soft votes"):
        SequenceClusters(inference="gibbs").fit(soft)


# --- sampling -------------------------------------------------------------------------------------------------------


def test_sampling_and_variational_bayes_agree_where_parameters_are_known() -> None:
    """With huge pseudo-counts the parameters are as good as fixed: both must give the exact posterior."""
    corpus = crowd(n_sequences=15, n_annotators=3, seed=2)
    fit = fitted(
        corpus, some_text(corpus), n=5, levels=((6e5, 4e5), (3e5, 7e5)), transition_prior=1e6, word_prior=1e6,
        text_prior=(6e5, 4e5), memory=False,
    )  # fmt: skip
    draws = sample_states(fit, rng=np.random.default_rng(0), n_chains=2, n_warmup=2, n_samples=30, n_threads=1)
    np.testing.assert_allclose(draws.fit.labels, fit.labels, atol=0.01)


def test_drawn_states_have_the_probabilities_they_should() -> None:
    """Not Rao–Blackwellised: the counts of annotations by state, over draws, within 5 Monte-Carlo errors."""
    corpus = crowd(n_sequences=15, n_annotators=3, seed=2)
    fit = fitted(
        corpus, n=5, levels=((6e5, 4e5), (3e5, 7e5)), transition_prior=1e6, word_prior=1e6, memory=False
    )  # fmt: skip
    n = 200
    draws = sample_states(fit, rng=np.random.default_rng(0), n_chains=1, n_warmup=2, n_samples=n, n_threads=1)
    error = np.sqrt(np.maximum(fit.crowd, 0.05) * 2 / n)  # labels of neighbours depend: twice the variance
    assert (np.abs(draws.crowd - fit.crowd) / error).max() < 5


@pytest.mark.parametrize("changes", [{}, {"memory": False}, {"markov": False}, {"levels": ((11.0, 10.0),)}])
def test_sampling_and_variational_bayes_agree_on_a_small_crowd(changes: dict[str, Any]) -> None:
    corpus = crowd(n_sequences=60, n_annotators=6, seed=3)
    fit = fitted(corpus, n=40, **changes)
    draws = sample_states(fit, rng=np.random.default_rng(0), n_chains=2, n_warmup=30, n_samples=60, n_threads=2)
    assert np.abs(draws.fit.labels - fit.labels).mean() < 0.03
    assert (path_of(draws.fit) == path_of(fit)).mean() > 0.97
    assert np.isfinite(draws.trace).all()


def test_the_mean_is_of_the_draws_that_are_kept_and_of_no_other() -> None:
    fit = fitted(crowd(n_sequences=15, n_annotators=3, seed=2), n=5)

    def mean(n_warmup: int, n_samples: int) -> Any:
        rng = np.random.default_rng(0)
        draws = sample_states(fit, rng=rng, n_chains=1, n_warmup=n_warmup, n_samples=n_samples, n_threads=1)
        return draws.fit.labels.astype(float)

    first, second = mean(0, 1), mean(1, 1)
    assert np.abs(first - second).max() > 0.1
    np.testing.assert_allclose(mean(0, 2), (first + second) / 2, atol=1e-6)


def test_draws_are_the_same_on_every_engine() -> None:
    corpus = crowd(n_sequences=60, n_annotators=4, seed=3)
    votes = fitted(corpus, n=2, words=False).blocks[0].votes
    blocks = cut_into_blocks(votes, 100)
    assert len(blocks) > 3
    found = []
    for engine in (Threads(2), Processes(3)):
        model = DawidSkene()
        model.engine = engine
        fit = replace(fitted(corpus, n=2, words=False), blocks=blocks, open=model._work)
        found.append(sample_states(fit, rng=np.random.default_rng(0), n_chains=2, n_warmup=1, n_samples=3, n_threads=1))
    assert found[0].fit.labels.tobytes() == found[1].fit.labels.tobytes()
    assert found[0].trace.tobytes() == found[1].trace.tobytes()


def test_the_log_joint_is_the_probability_of_the_draw() -> None:
    """One token, two annotators, no words: p(state, votes) = start prior mean · row prior means."""
    corpus = CrowdCorpus.from_sequences([["w"]], {"a": [["x"]], "b": [["x"]]}, labels=("x", "y"))
    fit = fitted(corpus, n=1, memory=False, words=False, levels=((3.0, 1.0),))
    local = fit.learner.look(fit.blocks[0])
    for state, wanted in ((0, 0.5 * 0.75**2), (1, 0.5 * 0.25**2)):
        one = np.zeros((1, 2))
        one[0, state] = 1
        counts = (one[0].copy(), np.zeros((2, 2)), *fit.learner.counts(fit.state, local, one))
        np.testing.assert_allclose(np.exp(ChainSampler(fit.learner).log_joint(counts)), wanted, rtol=1e-9)


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


@pytest.mark.parametrize("asked", [None, 2, 9])
@pytest.mark.parametrize("seed", [0, 1, 2, 8, 22])  # of the last two somebody moves once more
def test_clusters_are_where_plain_sums_leave_them(seed: int, asked: int | None) -> None:
    """Everybody is in the cluster that explains them best, given what its members said; the careful come first."""
    rng, T = np.random.default_rng(seed), 3
    careful, careless = 0.8 * np.eye(T) + 0.2 / T, np.array([[0.2, 0.7, 0.1], [0.6, 0.3, 0.1], [0.3, 0.3, 0.4]])
    kinds, pseudo = [careless, careful, careless, careful, None, careless, careful], 0.3 + 0.5 * np.eye(T)
    counts = np.zeros((len(kinds), T, T))
    for own, rows in zip(counts, kinds):
        own[:] = 0 if rows is None else [rng.multinomial(rng.integers(2, 9), row) for row in rows]
    found, scores = found_clusters(counts, asked, pseudo)
    used, C = [0, 1, 2, 3, 5, 6], found.n_clusters
    assert found.assignment[4] == -1
    np.testing.assert_allclose(found.proba[4], 1 / C, rtol=1e-6)
    members = [[a for a in used if found.assignment[a] == k] for k in range(C)]
    log_weight = np.zeros((len(used), C))
    right = list[float]()
    for k, own in enumerate(members):
        beta = counts[own].sum(axis=0) + pseudo
        beta /= beta.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found.shared[k], beta, rtol=1e-6)
        right.append(float(np.trace(beta)))
        eta = _concentration(counts[own], beta)
        for i, a in enumerate(used):
            log_weight[i, k] = np.log((len(own) + 1 / C) / (len(used) + 1))
            for t in range(T):
                n, prior = counts[a, t], eta[t] * beta[t]
                log_weight[i, k] += gammaln(eta[t]) - gammaln(eta[t] + n.sum())
                log_weight[i, k] += (gammaln(n + prior) - gammaln(prior)).sum()
    assert right == sorted(right, reverse=True)
    total = np.logaddexp.reduce(log_weight, axis=1)
    np.testing.assert_allclose(found.proba[used], np.exp(log_weight - total[:, None]), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(found.assignment[used], log_weight.argmax(axis=1))
    best = min(scores, key=lambda score: score.bic)
    assert best.n_clusters == C
    assert best.log_likelihood == pytest.approx(total.sum(), rel=1e-9)
    assert len(scores) == (5 if asked is None else 1)
    assert scores[0].n_clusters == 1 if asked is None else min(asked, len(used)) >= C


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

"""Dawid-Skene and IBCC against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block, Votes
from lasca.errors import ParameterError
from lasca.truth.dawid_skene import DawidSkene, Parameters, Tables, blocks_of, mode
from truth_cases import big_crowd, crowd, triples


def with_gap(seed: int) -> CrowdCorpus:
    """A small crowd with tokens nobody labelled."""
    return crowd(n_sequences=6, n_annotators=3, seed=seed, coverage=0.8, unlabelled=1)


def one_pass(corpus: CrowdCorpus, log_psi: np.ndarray, log_gamma: np.ndarray, proba: np.ndarray) -> tuple:
    """Return expected counts (annotator, given, true), label counts and the log evidence; fill the posteriors."""
    votes = Votes.of(corpus)
    learner, block = DawidSkene(lone_votes=True)._learner(votes), Block(votes, 0, votes.n_tokens)
    state = Parameters(log_psi, log_gamma, 0.0, learner.summarise(block)[2])
    _, (counts, totals, evidence) = learner.describe(state, block, None, proba)
    return counts, totals, learner.update(state, (counts, totals, evidence))[1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_em_equals_plain_loops(seed: int, steps: int) -> None:
    corpus = with_gap(seed)
    assert (np.diff(corpus.token_start) == 0).any()
    _, trace = naive.dawid_skene(triples(corpus), corpus.n_tokens, 3, 3, 0.05, 0.3, steps)
    truth = DawidSkene(smoothing=0.05, agreement=0.3, lone_votes=True, max_iter=steps, tol=0).fit(corpus)
    np.testing.assert_allclose(truth.trace, trace, rtol=1e-11)
    after, _ = naive.dawid_skene(triples(corpus), corpus.n_tokens, 3, 3, 0.05, 0.3, steps + 1)
    np.testing.assert_allclose(truth.proba, after, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("steps", [1, 5])
def test_variational_equals_plain_loops(seed: int, steps: int) -> None:
    corpus = with_gap(seed)
    prior = np.full((3, 3), 0.7) + np.eye(3) * 1.1
    _, trace = naive.ibcc(triples(corpus), corpus.n_tokens, 3, 3, prior, 0.4, steps)
    after, _ = naive.ibcc(triples(corpus), corpus.n_tokens, 3, 3, prior, 0.4, steps + 1)
    priors = {"diagonal": 1.8, "off_diagonal": 0.7, "class_prior": 0.4}
    truth = DawidSkene(variational=True, lone_votes=True, **priors, max_iter=steps, tol=0).fit(corpus)
    np.testing.assert_allclose(truth.proba, after, atol=1e-6)
    np.testing.assert_allclose(truth.trace, trace, rtol=1e-10)


def test_confusion_is_the_posterior_mean_of_the_counts() -> None:
    corpus = with_gap(1)
    truth = DawidSkene(smoothing=0.05, agreement=0.0, lone_votes=True, max_iter=3, tol=0).fit(corpus)
    counts, _ = naive.ds_counts(triples(corpus), truth.proba.astype(float).tolist(), 3, 3)
    expected = (counts + 0.05) / (counts + 0.05).sum(axis=2, keepdims=True)
    np.testing.assert_allclose(truth.confusion, expected, atol=1e-5)


@pytest.mark.parametrize("n_labels", [1, 2, 4, 5, 13, 32, 33, 60])
def test_narrow_and_wide_passes_agree_with_the_formula(n_labels: int) -> None:
    rng = np.random.default_rng(n_labels)
    corpus = CrowdCorpus.from_codes(
        tokens=["w"] * 12,
        offsets=[0, 12],
        labels=[f"{t:03d}" for t in range(n_labels)],
        annotators=["a", "b", "c"],
        annotation_token=np.repeat(np.arange(1, 12), 3),
        annotation_annotator=np.tile(np.arange(3), 11),
        annotation_label=rng.integers(0, n_labels, 33),
        sequence_ids=["s"],
    )
    psi = rng.dirichlet(np.ones(n_labels), size=(3, n_labels))
    gamma = rng.dirichlet(np.ones(n_labels))
    proba = np.empty((12, n_labels), dtype=np.float32)
    counts, totals, evidence = one_pass(corpus, np.log(psi).transpose(0, 2, 1).copy(), np.log(gamma), proba)
    expected, expected_evidence = naive.ds_posterior(triples(corpus), psi, gamma, 12)
    np.testing.assert_allclose(proba, expected, rtol=1e-5, atol=1e-9)
    assert evidence == pytest.approx(expected_evidence, rel=1e-10, abs=1e-10)
    expected_counts, expected_totals = naive.ds_counts(triples(corpus), expected, 3, n_labels)
    np.testing.assert_allclose(counts.transpose(0, 2, 1), expected_counts, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(totals, expected_totals, rtol=1e-10)


def test_products_too_small_for_a_float_are_taken_in_logs() -> None:
    """400 annotators of two minds: Π Ψ is about 1e-400 for both labels, yet their ratio is known."""
    n = 400
    corpus = CrowdCorpus.from_codes(
        tokens=["w"],
        offsets=[0, 1],
        labels=["A", "B"],
        annotators=[f"{a:03d}" for a in range(n)],
        annotation_token=np.zeros(n, int),
        annotation_annotator=np.arange(n),
        annotation_label=np.arange(n) % 2,
        sequence_ids=["s"],
    )
    log_psi = np.empty((n, 2, 2))
    log_psi[:] = np.log([[0.999, 0.001], [0.001, 0.999]])
    log_psi[0] = np.log([[0.5, 0.25], [0.5, 0.75]])
    proba = np.empty((1, 2), dtype=np.float32)
    _, _, evidence = one_pass(corpus, log_psi, np.log([0.5, 0.5]), proba)
    a = np.log(0.5) + np.log(0.5) + 199 * np.log(0.999) + 200 * np.log(0.001)
    b = np.log(0.5) + np.log(0.25) + 199 * np.log(0.001) + 200 * np.log(0.999)
    assert evidence == pytest.approx(np.logaddexp(a, b), rel=1e-12)
    np.testing.assert_allclose(proba[0, 1], 1 / (1 + np.exp(a - b)), rtol=1e-5)


def test_the_m_step_is_a_maximum() -> None:
    """Moving any probability away from the M step lowers the expected log joint."""
    rng = np.random.default_rng(0)
    counts, totals = rng.gamma(1.0, 3.0, (2, 3, 3)), rng.gamma(1.0, 3.0, 3)  # (annotator, given, true)
    prior = 0.1 + 0.4 * np.eye(3)
    best = mode(counts, totals, prior, np.full(3, 0.1), np.zeros((2, 3)))

    def expected(log_psi: np.ndarray, log_gamma: np.ndarray) -> float:
        return float(((counts + prior) * log_psi).sum() + ((totals + 0.1) * log_gamma).sum())

    top = expected(best.log_psi, best.log_gamma)
    for _ in range(20):
        psi = np.exp(best.log_psi + 0.1 * rng.standard_normal((2, 3, 3)))
        gamma = np.exp(best.log_gamma + 0.1 * rng.standard_normal(3))
        assert expected(np.log(psi / psi.sum(axis=1, keepdims=True)), np.log(gamma / gamma.sum())) < top


@pytest.mark.parametrize("variational", [False, True])
def test_threads_change_no_byte(variational: bool) -> None:
    corpus = big_crowd(100_000)
    runs = [DawidSkene(variational=variational, max_iter=5, n_threads=n).fit(corpus) for n in (1, 2)]
    assert len(blocks_of(Votes.of(corpus))) > 1
    assert runs[0].proba.tobytes() == runs[1].proba.tobytes()
    assert runs[0].trace.tobytes() == runs[1].trace.tobytes()
    assert (runs[0].labels == corpus.golds["gold"]).mean() > 0.9


@pytest.mark.parametrize("variational", [False, True])
def test_it_finds_who_is_good_and_who_swaps_labels(variational: bool) -> None:
    accuracy = np.array([0.95, 0.9, 0.85, 0.8, 0.75, 0.1])
    corpus = crowd(n_sequences=150, accuracy=accuracy, coverage=1.0, seed=5)
    truth = DawidSkene(variational=variational).fit(corpus)
    reliability = truth.annotators.column("reliability").to_numpy()
    assert np.argsort(-reliability).tolist() == [0, 1, 2, 3, 4, 5]
    assert (truth.labels == corpus.golds["gold"]).mean() > 0.95


def test_random_starts_differ_and_end_well() -> None:
    truth = DawidSkene(restarts=4, max_iter=100, tol=1e-8).fit(crowd(n_sequences=100))
    ends = np.array(truth.diagnostics["objectives"])
    assert len(set(ends)) == 4
    assert ends.max() == truth.trace[-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"smoothing": 0}, "smoothing must be a number above 0"),
        ({"agreement": -1}, "agreement"),
        ({"diagonal": -1}, "diagonal"),
        ({"off_diagonal": "x"}, "off_diagonal"),
        ({"off_diagonal": 0}, "off_diagonal must be a number above 0"),
        ({"class_prior": 0}, "class_prior"),
        ({"restarts": 0}, "restarts"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1}, "tol"),
        ({"n_threads": 0}, "n_threads"),
        ({"seed": -3}, "seed"),
    ],
)
def test_parameters_are_checked(change: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        DawidSkene(**change).fit(crowd(n_sequences=2))


def test_tables_begin_where_a_cache_line_does() -> None:
    for n_annotators in range(1, 20):
        table, *_ = Tables(np.zeros((n_annotators, 3, 3)), np.zeros(3)).arrays
        assert table.ctypes.data % 64 == 0
        assert table.tolist() == [1.0, 1.0, 1.0, 0.0] * (3 * n_annotators)

"""MACE against enumeration, and against the answers of the Java original (data/mace says how they were made)."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import naive
from lasca import datasets
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block, Votes
from lasca.errors import ParameterError
from lasca.truth.mace import Mace, MaceLearner, MacePrior, MaceState, blocks_of
from truth_cases import big_crowd, crowd, triples

EXAMPLE = Path(__file__).parent / "data" / "mace"


def example() -> CrowdCorpus:
    """Read the shipped example: one item per line, one annotator per cell."""
    cells = [line.split(",") for line in (EXAMPLE / "example.csv").read_text().splitlines()]
    annotations = {f"{a}": [[row[a] or None] for row in cells] for a in range(len(cells[0]))}
    return CrowdCorpus.from_sequences([["item"]] * len(cells), annotations)


class Passes:
    """E steps of the learner over one corpus as one block."""

    def __init__(self, corpus: CrowdCorpus, noise: float = 0.5) -> None:
        votes = Votes.of(corpus)
        prior = MacePrior(np.array([0.5, 0.5]), 10.0, True)
        self.block = Block(votes, 0, votes.n_tokens)
        self.learner = MaceLearner(votes.n_annotators, votes.n_labels, prior, noise)
        self.summary = self.learner.summarise(self.block)

    def run(self, state: MaceState) -> tuple:
        return self.learner.counted(state, self.learner.visit(state, self.block, None)[0])


def random_start(corpus: CrowdCorpus, noise: float, rng: np.random.Generator) -> MaceState:
    passes = Passes(corpus, noise)
    return passes.learner.start(passes.summary, rng)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("variational", "file"), [(True, "vb.labels"), (False, "em.labels")])
def test_labels_of_the_java_original(variational: bool, file: str, seed: int) -> None:
    expected = (EXAMPLE / file).read_text().split()
    found = Mace(variational=variational, tol=0, seed=seed).fit(example())
    assert [sequence[0] for sequence in found.sequences()] == expected
    early = Mace(variational=variational, seed=seed).fit(example())
    assert [sequence[0] for sequence in early.sequences()] == expected


def test_competence_of_the_java_original() -> None:
    expected = np.loadtxt(EXAMPLE / "em.competence")
    found = Mace(variational=False, tol=0).fit(example()).diagnostics["competence"]
    np.testing.assert_allclose(found, expected, atol=2e-4)


def test_labels_of_the_java_original_on_mturk(data_dir: Path) -> None:
    corpus = datasets.load("conll2003-mturk", path=data_dir)
    annotated = np.diff(Votes.of(corpus).start) > 0
    labels = [label for sequence in Mace(tol=0).fit(corpus).sequences() for label in sequence]
    lines = "".join(f"{label if told else ''}\n" for label, told in zip(labels, annotated, strict=True))
    assert sha256(lines.encode()).hexdigest() == (EXAMPLE / "mturk.sha256").read_text().strip()


@pytest.mark.parametrize("variational", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_equals_enumeration_of_truths_and_coins(seed: int, variational: bool) -> None:
    corpus = crowd(n_sequences=5, n_annotators=4, seed=seed, unlabelled=1)
    votes = triples(corpus)
    theta_prior, xi_prior = ((0.3, 0.9), 4.0) if variational else ((0.02, 0.02), 0.02)
    start = random_start(corpus, 0.5, np.random.default_rng(seed).spawn(1)[0])
    proba, evidence = naive.mace(
        votes,
        corpus.n_tokens,
        np.exp(start.log_theta),
        np.exp(start.log_xi),
        6,
        variational=variational,
        theta_prior=theta_prior,
        xi_prior=xi_prior,
    )
    model = Mace(
        variational=variational, alpha=0.3, beta=0.9, strategy_prior=4.0, smoothing=0.02,
        restarts=1, max_iter=5, tol=0, seed=seed,
    )  # fmt: skip
    truth = model.fit(corpus)
    np.testing.assert_allclose(truth.proba, proba, atol=1e-6)
    assert len(truth.trace) == 5
    passes = Passes(corpus)
    knowing, strategy, found = passes.run(start)
    assert found == pytest.approx(evidence[0], rel=1e-12)
    state = MacePrior(np.array(theta_prior), xi_prior, variational).state(knowing, strategy, *passes.summary)
    assert passes.run(state)[2] == pytest.approx(evidence[1], rel=1e-12)
    assert truth.trace[0] == pytest.approx(evidence[1] + state.penalty, rel=1e-12)


def test_the_elbo_is_what_its_definition_says() -> None:
    corpus = crowd(n_sequences=4, n_annotators=3, seed=7)
    votes, passes = triples(corpus), Passes(corpus)
    prior = MacePrior(np.array([0.5, 0.7]), 3.0, True)
    knowing, strategy, _ = passes.run(random_start(corpus, 0.5, np.random.default_rng(0)))
    state = prior.state(knowing, strategy, *passes.summary)
    a, b = state.knowing, state.strategy
    kl = naive.dirichlet_expectation(a, a) - naive.dirichlet_expectation(prior.theta, a)
    kl += naive.dirichlet_expectation(b, b) - naive.dirichlet_expectation(np.full(3, 3.0), b)
    evidence = naive.mace_e_step(votes, corpus.n_tokens, np.exp(state.log_theta), np.exp(state.log_xi))[3]
    assert passes.run(state)[2] + state.penalty == pytest.approx(evidence - kl, rel=1e-12)


def test_expected_counts_equal_enumeration() -> None:
    corpus = crowd(n_sequences=4, n_annotators=4, seed=2)
    start = random_start(corpus, 0.5, np.random.default_rng(3))
    knowing, strategy, _ = Passes(corpus).run(start)
    _, coins, guesses, _ = naive.mace_e_step(
        triples(corpus), corpus.n_tokens, np.exp(start.log_theta), np.exp(start.log_xi)
    )
    np.testing.assert_allclose(knowing, coins, rtol=1e-10)
    np.testing.assert_allclose(strategy, guesses, rtol=1e-10)


def test_a_start_is_one_and_noise_normalised() -> None:
    corpus = crowd(n_sequences=4, n_annotators=4, seed=2)
    start, drawn = random_start(corpus, 0.5, np.random.default_rng(3)), np.random.default_rng(3).random((4, 5))
    for log, part in ((start.log_theta, 1 + 0.5 * drawn[:, :2]), (start.log_xi, 1 + 0.5 * drawn[:, 2:])):
        np.testing.assert_allclose(np.exp(log), part / part.sum(axis=1, keepdims=True), rtol=1e-12)


def test_many_votes_do_not_overflow() -> None:
    """500 annotators who agree: weights of about 1e900 are taken in logs."""
    rows = {f"{a:03d}": [["A", "A", "B", "B" if a % 2 else "A"]] for a in range(500)}
    truth = Mace(restarts=2, max_iter=20).fit(CrowdCorpus.from_sequences([["x"] * 4], rows, labels="ABC"))
    assert truth.sequences()[0][:3] == ["A", "A", "B"]
    assert np.isfinite(truth.trace).all()
    assert np.diff(truth.trace).min() >= -1e-9 * abs(truth.trace[-1])


def test_the_guesser_is_found() -> None:
    accuracy = np.array([0.9, 0.85, 0.8, 0.8, 0.0])
    corpus = crowd(n_sequences=150, n_annotators=5, accuracy=accuracy, coverage=1.0, seed=1)
    truth = Mace().fit(corpus)
    competence = np.array(truth.diagnostics["competence"])
    assert competence.argmin() == 4
    assert competence[4] < 0.2 < 0.6 < competence[:4].min()
    np.testing.assert_allclose(truth.confusion[4].std(axis=0), 0, atol=0.1)


def test_restarts_differ() -> None:
    truth = Mace(restarts=5, max_iter=3).fit(crowd())
    assert len(set(truth.diagnostics["objectives"])) == 5


@pytest.mark.parametrize("variational", [True, False])
def test_threads_change_no_byte(variational: bool) -> None:
    corpus = big_crowd()
    assert len(blocks_of(Votes.of(corpus))) > 1
    runs = [Mace(variational=variational, restarts=2, max_iter=5, n_threads=n).fit(corpus) for n in (1, 2)]
    assert runs[0].proba.tobytes() == runs[1].proba.tobytes()
    assert runs[0].trace.tobytes() == runs[1].trace.tobytes()


@pytest.mark.parametrize("name", ["alpha", "beta", "strategy_prior", "noise", "restarts", "max_iter", "tol"])
def test_parameters_are_checked(name: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be"):
        Mace(**{name: -1}).fit(crowd(n_sequences=2))


def test_smoothing_is_checked_where_it_is_used() -> None:
    with pytest.raises(ParameterError, match="smoothing must be a number above 0"):
        Mace(variational=False, smoothing=0.0).fit(crowd(n_sequences=2))

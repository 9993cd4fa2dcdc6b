"""HierarchicalClusters as users meet it: results, determinism, clusters, nasty input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lasca import evaluate, simulate
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import cut_into_blocks
from lasca.engine import added
from lasca.errors import ModelError, ParameterError
from lasca.truth import Truth
from lasca.truth import cluster_sampler as sampler
from lasca.truth import clusters as tools
from lasca.truth.base import Votes
from lasca.truth.cluster_sampler import Priors, State, confusion, hard_rows
from lasca.truth.hierarchical import HierarchicalClusters
from lasca.truth.majority import MajorityVote

SHORT = {"n_chains": 2, "n_warmup": 20, "n_samples": 20}


def crowd(groups: dict[str, int], *, n_tokens: int = 1500, T: int = 4, seed: int = 0, **options: Any) -> CrowdCorpus:
    rng = np.random.default_rng(seed)
    gold = [f"L{t}" for t in rng.choice(T, n_tokens, p=np.arange(1, T + 1) / (T * (T + 1) / 2))]
    words = [["w"] * 10 for _ in range(n_tokens // 10)]
    rows = [gold[i : i + 10] for i in range(0, n_tokens, 10)]
    plain = CrowdCorpus.from_sequences(words, {}, golds={"gold": rows})
    return simulate.crowd(plain, groups=groups, seed=seed, **options)


def accuracy(truth: Any, corpus: CrowdCorpus) -> float:
    return float((truth.labels == corpus.golds["gold"]).mean())


def groups_of(corpus: CrowdCorpus) -> np.ndarray:
    return np.array([name.split("-")[0] for name in corpus.annotators])


@pytest.fixture(scope="module")
def three_groups() -> CrowdCorpus:
    return crowd({"high": 5, "medium": 5, "low": 5}, wrong="shared", per_label=True, n_tokens=3000)


@pytest.fixture(scope="module")
def fitted(three_groups: CrowdCorpus) -> Any:
    return HierarchicalClusters(**SHORT, seed=1, n_threads=1).fit(three_groups)


@pytest.mark.parametrize(("T", "difficulty"), [(4, False), (8, False), (8, True)])
def test_finds_the_groups_and_beats_majority(T: int, difficulty: bool) -> None:
    """With 4 labels and levels of difficulty the lower two groups of this small crowd often merge: see the docs."""
    corpus = crowd({"high": 5, "medium": 5, "low": 5}, wrong="shared", per_label=True, n_tokens=3000, T=T)
    truth = HierarchicalClusters(**SHORT, seed=1, difficulty=difficulty).fit(corpus)
    assert evaluate.adjusted_rand_index(groups_of(corpus), truth.clusters.assignment) == 1.0
    assert accuracy(truth, corpus) >= accuracy(MajorityVote().fit(corpus), corpus)
    assert accuracy(truth, corpus) > 0.97


def test_clusters_are_ordered_by_reliability_and_matrices_are_right(three_groups: CrowdCorpus, fitted: Any) -> None:
    found = fitted.clusters
    diagonal = np.diagonal(found.shared, axis1=1, axis2=2)
    assert found.reliable == 0
    assert (np.diff(diagonal.mean(axis=1)) < 0).all()
    assert (groups_of(three_groups)[found.assignment == 0] == "high").all()
    assert ((diagonal[0] > 0.65) & (diagonal[0] < 0.95)).all()
    np.testing.assert_allclose(found.shared.sum(axis=2), 1, rtol=1e-5)
    np.testing.assert_allclose(found.proba.sum(axis=1), 1, rtol=1e-5)
    gold, token = three_groups.golds["gold"], three_groups.annotation_token
    for annotator in range(3):
        own = three_groups.annotation_annotator == annotator
        right = gold[token[own]] == three_groups.annotation_label[own]
        per_label = [right[gold[token[own]] == t].mean() for t in range(4)]
        np.testing.assert_allclose(np.diagonal(fitted.confusion[annotator]), per_label, atol=0.05)


def test_result_holds_what_it_should(three_groups: CrowdCorpus, fitted: Any) -> None:
    np.testing.assert_allclose(fitted.proba.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(fitted.confusion.sum(axis=2), 1, rtol=1e-5)
    assert fitted.trace.shape == (2, 40)
    assert set(fitted.diagnostics["rhat"]) == set(fitted.diagnostics["ess"])
    assert fitted.diagnostics["n_clusters"] == 3
    acceptance = fitted.diagnostics["acceptance"]
    assert set(acceptance) == {"beta", "eta", "split_or_merge"}
    assert 0.1 < acceptance["eta"] < 0.8  # steps are tuned towards 44 %
    assert 0 < acceptance["beta"] < 1
    assert 0 <= acceptance["split_or_merge"] < 1
    bics = [row["bic"] for row in fitted.diagnostics["bic"]]
    assert [row["n_clusters"] for row in fitted.diagnostics["bic"]] == [1, 2, 3, 4, 5]
    assert int(np.argmin(bics)) + 1 == 3


def test_draws_are_kept_for_those_who_ask(fitted: Any, tmp_path: Path) -> None:
    quantities = fitted.diagnostics["quantities"]
    assert set(fitted.draws) == set(quantities)
    for name, draws in fitted.draws.items():
        assert draws.shape == (len(fitted.trace), fitted.params["n_samples"])
        if fitted.diagnostics["chains_in_range"] == len(draws):
            assert draws.mean() == pytest.approx(quantities[name]["mean"])
    np.testing.assert_array_equal(fitted.draws["log_joint"], fitted.trace[:, fitted.params["n_warmup"] :])
    fitted.save(tmp_path / "truth")
    again = Truth.load(tmp_path / "truth").draws
    assert all(np.array_equal(again[name], draws) for name, draws in fitted.draws.items())


def test_same_seed_same_bytes_with_one_and_two_threads(three_groups: CrowdCorpus, fitted: Any) -> None:
    again = HierarchicalClusters(**SHORT, seed=1, n_threads=2).fit(three_groups)
    for name in ("labels", "proba", "confusion", "trace"):
        assert getattr(again, name).tobytes() == getattr(fitted, name).tobytes()
    assert again.clusters.proba.tobytes() == fitted.clusters.proba.tobytes()
    other = HierarchicalClusters(**SHORT, seed=2, n_threads=2, n_clusters=3).fit(three_groups)
    assert other.trace.tobytes() != fitted.trace.tobytes()
    assert other.trace[0].tobytes() != other.trace[1].tobytes()


def test_probabilities_are_averages_not_relative_frequencies() -> None:
    """Rao–Blackwell: 20 kept sweeps of 2 chains give more values than multiples of 1/40."""
    corpus = crowd({"medium": 4}, n_tokens=300)
    truth = HierarchicalClusters(**SHORT, n_clusters=1).fit(corpus)
    steps = truth.proba * 40
    assert (np.abs(steps - np.round(steps)) > 1e-3).mean() > 0.2


def test_papers_prior_throws_everybody_together(three_groups: CrowdCorpus) -> None:
    """E5: with λ_η = 2 one diffuse cluster explains everybody; λ_η is a parameter of its own."""
    paper = HierarchicalClusters(**SHORT, n_clusters=3, priors="paper").fit(three_groups)
    assert paper.clusters.n_clusters < 3
    weak = HierarchicalClusters(**SHORT, n_clusters=3, priors="paper", lambda_eta=0.02).fit(three_groups)
    assert weak.clusters.n_clusters == 3


@pytest.fixture(scope="module")
def hard_tokens() -> CrowdCorpus:
    """Annotators fail on the same tokens and slip at random there."""
    groups = {"high": 3, "medium": 4, "low": 8}
    return crowd(groups, errors="difficulty", rho=0.4, n_tokens=3000, T=10, seed=3)


def test_hard_tokens_are_seen_as_hard_not_as_a_rare_label(hard_tokens: CrowdCorpus) -> None:
    majority = accuracy(MajorityVote().fit(hard_tokens), hard_tokens)
    truth = HierarchicalClusters(**SHORT, n_clusters=3, difficulty=True).fit(hard_tokens)
    alike = HierarchicalClusters(**SHORT, n_clusters=3, difficulty=False).fit(hard_tokens)
    assert accuracy(truth, hard_tokens) >= majority
    assert accuracy(alike, hard_tokens) < majority - 0.03
    assert truth.diagnostics["quantities"]["hard_share"]["mean"] > 0.2
    assert alike.diagnostics["quantities"]["hard_share"]["mean"] == 0
    np.testing.assert_allclose(truth.proba.sum(axis=1), 1, rtol=1e-5)
    assert truth.confusion.shape == (15, 10, 10)
    np.testing.assert_allclose(truth.confusion.sum(axis=2), 1, rtol=1e-5)


def test_rows_of_hard_tokens_by_hand() -> None:
    """A part right; the rest as votes go, a part of it evenly: of labels given 6, 3 and 1 times."""
    found = hard_rows(np.array([6.0, 3.0, 1.0]))
    mass, right, even = sampler.HARD_MASS, sampler.HARD_RIGHT, sampler.HARD_EVEN
    share = [(1 - even) * n / 10 + even / 3 for n in (6, 3, 1)]
    for t in range(3):
        others = sum(share) - share[t]
        expected = [mass * (right if s == t else (1 - right) * share[s] / others) for s in range(3)]
        np.testing.assert_allclose(found[t], expected, rtol=1e-12)


def test_confusion_is_the_mean_over_levels(hard_tokens: CrowdCorpus) -> None:
    """The marginal rows are those of all tokens, not of the easy ones."""
    truth = HierarchicalClusters(**SHORT, n_clusters=3, difficulty=True).fit(hard_tokens)
    said, who = hard_tokens.annotation_label, hard_tokens.annotation_annotator
    right = truth.labels[hard_tokens.annotation_token] == said
    share = np.bincount(truth.labels, minlength=10) / len(truth.labels)
    for annotator in range(15):
        expected = float(np.diagonal(truth.confusion[annotator]) @ share)
        assert abs(right[who == annotator].mean() - expected) < 0.1


def test_the_papers_model_has_no_levels(three_groups: CrowdCorpus) -> None:
    options = {**SHORT, "n_clusters": 2, "n_warmup": 5, "n_samples": 5, "priors": "paper"}
    paper, alike = (HierarchicalClusters(**options, difficulty=d).fit(three_groups) for d in (True, False))
    assert paper.trace.tobytes() == alike.trace.tobytes()
    assert paper.proba.tobytes() == alike.proba.tobytes()
    assert paper.diagnostics["quantities"]["hard_share"]["mean"] == 0


def unanimous(votes: Votes, truth: np.ndarray, assignment: np.ndarray, n: int) -> np.ndarray:
    """M^c of eq. 11, added up over blocks."""
    blocks = cut_into_blocks(votes, votes.n_votes // 5)
    assert len(blocks) > 3
    parts = (tools.unanimous(block, truth[block.first : block.last], assignment, n) for block in blocks)
    agreed, seen = added(parts)
    return agreed / np.maximum(seen, 1)[:, :, None]


def test_unanimous_matrix_is_equation_11(three_groups: CrowdCorpus) -> None:
    votes = Votes.of(three_groups)
    truth, assignment = three_groups.golds["gold"], np.arange(15) % 3
    got = unanimous(votes, truth, assignment, 3)
    for k in range(3):
        counts, seen = np.zeros((4, 4)), np.zeros(4)
        for i in range(votes.n_tokens):
            at = slice(votes.start[i], votes.start[i + 1])
            said = set(votes.label[at][assignment[votes.annotator[at]] == k].tolist())
            seen[truth[i]] += 1
            if len(said) == 1:
                counts[truth[i], said.pop()] += 1
        np.testing.assert_allclose(got[k], counts / seen[:, None], rtol=1e-12)


def test_unanimous_matrix_shrinks_with_the_size_of_a_cluster(three_groups: CrowdCorpus) -> None:
    """E7: two mediocre annotators beat five good ones; the default form does not fall for it."""
    high, medium = (
        np.flatnonzero(groups_of(three_groups) == "high"),
        np.flatnonzero(groups_of(three_groups) == "medium"),
    )
    assignment = np.full(15, 2)
    assignment[high], assignment[medium[:2]] = 0, 1
    votes, gold = Votes.of(three_groups), three_groups.golds["gold"]
    literal = tools.reliability(unanimous(votes, gold, assignment, 3))
    few = tools.reliability(unanimous(votes, gold, np.where(np.isin(np.arange(15), high[:2]), 0, 2), 3))
    assert few[0] > literal[0] + 0.1
    truth = HierarchicalClusters(**SHORT, n_clusters=3, shared="unanimous").fit(three_groups)
    assert (truth.clusters.shared.sum(axis=2) < 1).all()


def test_bic_by_hand() -> None:
    score = tools.bic(2, -100.0, 3, 10)
    assert score.n_parameters == 2 * 9 + 1 + 2
    np.testing.assert_allclose(score.bic, 200 + 21 * np.log(10), rtol=1e-12)


def test_mixture_likelihood_is_the_naive_one() -> None:
    from math import exp, lgamma, log

    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, (3, 2, 2))
    beta, eta, nu = rng.dirichlet([1, 1], (2, 2)), rng.gamma(1, 3, (2, 2)), np.array([0.3, 0.7])
    total = 0.0
    for own in counts:
        parts = []
        for k in range(2):
            s = log(nu[k])
            for t in range(2):
                s += lgamma(eta[k, t]) - lgamma(eta[k, t] + own[t].sum())
                s += sum(lgamma(own[t, j] + eta[k, t] * b) - lgamma(eta[k, t] * b) for j, b in enumerate(beta[k, t]))
            parts.append(s)
        total += log(sum(exp(p) for p in parts))
    np.testing.assert_allclose(tools.mixture_likelihood(counts, beta, eta, nu), total, rtol=1e-12)


def test_clusters_are_matched_whatever_their_names() -> None:
    reference = np.eye(3)[[0, 0, 1, 1, 2, 2]]
    order = tools.best_match(reference, reference[:, [2, 0, 1]])
    np.testing.assert_array_equal(reference[:, [2, 0, 1]][:, order], reference)


# --- nasty input ---------------------------------------------------------------------------------------------------


def from_votes(labels: list[str], votes: dict[str, list[str | None]], n: int) -> CrowdCorpus:
    return CrowdCorpus.from_sequences([["w"] * n], {name: [row] for name, row in votes.items()}, labels=labels)


def fit(corpus: CrowdCorpus, **parameters: Any) -> Any:
    truth = HierarchicalClusters(**{**SHORT, **parameters}).fit(corpus)
    for values in (truth.proba, truth.confusion, truth.clusters.proba, truth.clusters.shared, truth.trace):
        assert np.isfinite(values).all()
    np.testing.assert_allclose(truth.proba.sum(axis=1), 1, rtol=1e-5)
    return truth


def test_one_annotator_is_believed() -> None:
    truth = fit(from_votes(["A", "B"], {"x": ["A", "B", "A", "A", "B", "A"]}, 6))
    assert truth.clusters.n_clusters == 1
    assert truth.warnings


def test_one_label() -> None:
    truth = fit(from_votes(["A"], {"x": ["A"] * 5, "y": ["A"] * 5, "z": [None, "A", "A", None, "A"]}, 5))
    np.testing.assert_array_equal(truth.proba, 1)


def test_tokens_and_annotators_without_labels() -> None:
    rows: dict[str, list[str | None]] = {
        "a": ["A", "B", "A", None, "B", "A"],
        "b": ["A", "B", "A", None, "B", "A"],
        "c": ["A", None, None, None, None, None],
        "d": [None] * 6,
    }
    corpus = from_votes(["A", "B"], rows, 6)
    truth = fit(corpus)
    assert truth.clusters.assignment[list(corpus.annotators).index("d")] == -1 if "d" in corpus.annotators else True
    assert (truth.clusters.assignment[:3] >= 0).all()
    assert 0.02 < truth.proba[3, 0] < 0.98


def test_all_identical_and_one_who_agrees_with_nobody() -> None:
    row = ["A", "B", "C"] * 20
    other = ["B", "C", "A"] * 20
    same = fit(from_votes(["A", "B", "C"], {name: list(row) for name in "abcd"}, 60))
    assert same.sequences()[0] == row
    odd = fit(from_votes(["A", "B", "C"], {**{name: list(row) for name in "abcd"}, "odd": other}, 60))
    assert odd.sequences()[0] == row
    assert np.diagonal(odd.confusion[4]).mean() < 0.3


def test_three_hundred_labels() -> None:
    rng = np.random.default_rng(0)
    names = [f"L{t:03}" for t in range(300)]
    gold = [names[t] for t in rng.integers(300, size=600)]
    votes = {
        f"a{m}": [label if rng.random() < 0.8 else names[int(rng.integers(300))] for label in gold] for m in range(4)
    }
    truth = fit(from_votes(names, votes, 600), n_clusters=2, n_warmup=4, n_samples=4)
    assert np.mean([a == b for a, b in zip(truth.sequences()[0], gold)]) > 0.85


def test_many_votes_on_one_token_do_not_underflow() -> None:
    rng = np.random.default_rng(0)
    votes = {f"a{m:03}": [str(rng.choice(["A", "B"])) for _ in range(3)] for m in range(400)}
    fit(from_votes(["A", "B"], votes, 3), n_clusters=2)


def test_nothing_to_infer() -> None:
    with pytest.raises(ModelError, match="nobody labelled anything"):
        HierarchicalClusters().fit(from_votes(["A"], {"x": [None, None]}, 2))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_clusters", "aic"), ("n_clusters", 0), ("n_clusters", 2.5), ("priors", "jeffreys"), ("lambda_eta", 0),
        ("lambda_eta", -1.0), ("strength", 0), ("shared", "mean"), ("n_chains", 0), ("n_warmup", -1), ("n_samples", 0),
        ("thin", 0), ("epsilon_nu", 0), ("epsilon_gamma", -1), ("difficulty", "yes"), ("n_threads", 0), ("seed", -1),
    ],
)  # fmt: skip
def test_bad_parameters_are_named(name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=name):
        HierarchicalClusters(**{name: value}).fit(from_votes(["A", "B"], {"x": ["A"], "y": ["B"]}, 1))


def test_parameters_are_kept_as_given() -> None:
    model = HierarchicalClusters(n_clusters=3, seed=4)
    assert HierarchicalClusters(**model.get_params()).get_params() == model.get_params()
    assert repr(model) == "HierarchicalClusters(n_clusters=3, seed=4)"


def test_levels_share_in_an_annotators_confusion_by_their_tokens() -> None:
    """Ten easy and five hard tokens of label 0, with half a token's worth of prior spread over the four states."""
    counts = np.zeros((1, 4, 2), np.int64)
    counts[0, 0], counts[0, 2] = [8, 2], [1, 4]
    state = State(
        c=np.zeros(1, np.int32), members=np.array([1]), beta=np.full((1, 2, 2), 0.5),
        eta=np.full((1, 2), 2.0), counts=counts,
        totals=np.array([10, 0, 5, 0]), step=np.ones((1, 2)), rng=np.zeros(4, np.uint64), c_proba=np.ones((1, 1)),
    )  # fmt: skip
    priors = Priors(np.ones((2, 2)), 0.02, 1.0, 1.0, np.array([[3.0, 7.0], [7.0, 3.0]]))
    easy, hard = (8 + 2 * 0.5) / (10 + 2), (1 + 3) / (5 + 10)
    expected = (10.25 * easy + 5.25 * hard) / (10.25 + 5.25)
    assert confusion(state, priors)[0, 0, 0] == pytest.approx(expected, rel=1e-12)

"""BayesianSequence: every annotator model against dense enumeration, the bound, and nasty crowds."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import naive
from lasca.corpus import CrowdCorpus
from lasca.errors import ModelError, ParameterError
from lasca.kernels import lattice
from lasca.schemes import is_legal, transitions
from lasca.truth.annotator_models import ANNOTATOR_MODELS, VoteRows, confusion_prior, memory_prior, scheme_rules
from lasca.truth.bayesian_sequence import BayesianSequence
from lasca.truth.chain import StateSpace
from lasca.truth.dawid_skene import DawidSkene
from lasca.truth.evidence import labels_before
from lasca.truth.hmm_crowd import HmmCrowd
from lasca.truth.sequence_clusters import SequenceClusters
from truth_cases import big_crowd, crowd, everything, start_evidence

LABELS = ("B-X", "B-Y", "I-X", "I-Y", "O")


def tiny(seed: int, labels: tuple[str, ...] = LABELS, lengths: tuple[int, ...] = (4, 2, 3, 1)) -> CrowdCorpus:
    """Draw a few short sequences with gaps, illegal tags, and a sequence nobody labelled."""
    rng = np.random.default_rng(seed)
    words = [[str(rng.choice(["a", "b", "c"])) for _ in range(n)] for n in lengths]
    annotations: dict[str, Any] = {}
    for a in range(3):
        annotations[f"annotator-{a}"] = {
            s: [str(rng.choice(labels)) if rng.random() < 0.8 else None for _ in range(n)]
            for s, n in enumerate(lengths)
            if s != 2 or len(lengths) < 3
        }
    return CrowdCorpus.from_sequences(words, annotations, labels=labels)


@pytest.mark.parametrize("kind", ANNOTATOR_MODELS)
@pytest.mark.parametrize("labels", [LABELS, ("NOUN", "VERB", "X")])
def test_the_bound_and_the_posterior_equal_enumeration(kind: str, labels: tuple[str, ...]) -> None:
    corpus = tiny(3, labels)
    start = start_evidence(corpus, hard=False, lone_votes=True)
    q, elbo = naive.bayesian_sequence(corpus, kind, start, transitions(labels), 3.0, 1.2, 0.7, 0.3, steps=5)
    model = BayesianSequence(
        annotator_model=kind, prior_correct=3.0, prior_wrong=1.2, transition_prior=0.7, word_prior=0.3,
        max_iter=4, tol=0, n_threads=1,
    )  # fmt: skip
    truth = model.fit(corpus)
    np.testing.assert_allclose(truth.trace, elbo[:4], rtol=1e-9)
    np.testing.assert_allclose(truth.proba, q, rtol=1e-5, atol=1e-6)
    assert np.diff(elbo).min() >= -1e-9


def some_known(corpus: CrowdCorpus) -> np.ndarray:
    """Return a mask of what is allowed: a legal path on the first tokens, one label ruled out elsewhere."""
    known = np.ones((corpus.n_tokens, corpus.n_labels), bool)
    known[0] = np.arange(corpus.n_labels) == 0
    known[1, 1] = known[5, 2] = known[7, :2] = False
    return known


@pytest.mark.parametrize("kind", ANNOTATOR_MODELS)
def test_what_is_known_rules_out_paths(kind: str) -> None:
    corpus = tiny(3)
    known = some_known(corpus)
    start = start_evidence(corpus.with_known(known), hard=False, lone_votes=True)
    q, elbo = naive.bayesian_sequence(
        corpus, kind, start, transitions(LABELS), 3.0, 1.2, 0.7, 0.3, steps=5, known=known
    )
    model = BayesianSequence(
        annotator_model=kind, prior_correct=3.0, prior_wrong=1.2, transition_prior=0.7, word_prior=0.3,
        max_iter=4, tol=0, lone_votes=True,
    )  # fmt: skip
    truth = model.fit(corpus, known=known)
    np.testing.assert_allclose(truth.trace, elbo[:4], rtol=1e-9)
    np.testing.assert_allclose(truth.proba, q, rtol=1e-5, atol=1e-6)
    assert (truth.proba[~known] == 0).all()
    for decode in ("viterbi", "marginal"):
        found = model.set_params(decode=decode).fit(corpus, known=known)
        assert known[np.arange(corpus.n_tokens), found.labels].all()
        assert all(is_legal(s, "IOB2") for s in found.sequences())


def test_hc_seq_refuses_a_forbidden_path_too() -> None:
    corpus = tiny(3)
    known = np.full(corpus.n_tokens, -1)
    known[0] = LABELS.index("I-X")
    with pytest.raises(ModelError, match=r"sequence 0, token 1 .*what is known breaks the tag scheme.*I-X"):
        SequenceClusters(text=False).fit(corpus, known=known)


@pytest.mark.parametrize("model", [BayesianSequence(), BayesianSequence(singles=True), HmmCrowd()])
def test_a_known_path_that_the_scheme_forbids_is_refused_by_name(model: Any) -> None:
    corpus = tiny(3)
    known = np.full(corpus.n_tokens, -1)
    known[4:6] = LABELS.index("O"), LABELS.index("I-Y")
    with pytest.raises(ModelError, match=r"sequence 1, token 2 .*what is known breaks the tag scheme.*O I-Y"):
        model.fit(corpus, known=known)
    free = model.set_params(constrained=False).fit(corpus, known=known)
    assert free.labels[4:6].tolist() == known[4:6].tolist()
    known[4] = -1
    assert model.set_params(constrained=True).fit(corpus, known=known).labels[4] in (1, 3)  # B-Y or I-Y comes before


@pytest.mark.parametrize("kind", ANNOTATOR_MODELS)
def test_states_of_single_tokens_equal_enumeration(kind: str) -> None:
    labels = ("B-X", "I-X", "O")
    corpus = tiny(4, labels)
    states = StateSpace.of(labels, singles=True)
    start = start_evidence(corpus, hard=False, lone_votes=True)
    rules, shows = (states.first, states.allowed, states.last), states.shows.tolist()
    q, elbo = naive.bayesian_sequence(
        corpus, kind, start, rules, 3.0, 1.2, 0.7, 0.3, 5, shows=shows, label_rules=transitions(labels)
    )
    model = BayesianSequence(
        annotator_model=kind, prior_correct=3.0, prior_wrong=1.2, transition_prior=0.7, word_prior=0.3,
        singles=True, max_iter=4, tol=0, lone_votes=True,
    )  # fmt: skip
    truth = model.fit(corpus)
    np.testing.assert_allclose(truth.trace, elbo[:4], rtol=1e-9)
    np.testing.assert_allclose(truth.proba, q, rtol=1e-5, atol=1e-6)
    for decode in ("viterbi", "marginal"):
        assert all(is_legal(s, "IOB2") for s in model.set_params(decode=decode).fit(corpus).sequences())


def test_single_states_tell_a_whole_span_from_a_beginning() -> None:
    states = StateSpace.of(LABELS, singles=True)
    assert states.names == (*LABELS, "S-X", "S-Y")
    assert states.shows.tolist() == [0, 1, 2, 3, 4, 0, 1]
    after = {a: {b for b, may in zip(states.names, row) if may} for a, row in zip(states.names, states.allowed)}
    free = {"B-X", "B-Y", "S-X", "S-Y", "O"}
    begun = {"B-X": {"I-X"}, "B-Y": {"I-Y"}, "I-X": free | {"I-X"}, "I-Y": free | {"I-Y"}}
    assert after == begun | dict.fromkeys(("O", "S-X", "S-Y"), free)
    assert [n for n, may in zip(states.names, states.last) if not may] == ["B-X", "B-Y"]
    assert [n for n, may in zip(states.names, states.first) if not may] == ["I-X", "I-Y"]
    for labels in (("NOUN", "VERB"), ("B-X", "O"), ("I-X", "O"), ("B-X", "E-X", "I-X", "O", "S-X")):
        assert StateSpace.of(labels, singles=True).names == labels


@pytest.mark.parametrize("kind", ["cm", "seq"])
@pytest.mark.parametrize("seed", range(3))
def test_the_bound_is_below_the_evidence_and_near_it(kind: str, seed: int) -> None:
    corpus = tiny(seed, ("B-X", "I-X", "O"), lengths=(3, 2))
    exact = naive.bayesian_sequence_evidence(corpus, kind, transitions(corpus.labels), 3.0, 1.2, 0.7, 0.3)
    model = BayesianSequence(
        annotator_model=kind, prior_correct=3.0, prior_wrong=1.2, transition_prior=0.7, word_prior=0.3, tol=1e-9
    )
    bound = model.fit(corpus).trace[-1]
    assert exact - 6 < bound < exact


@pytest.mark.parametrize("kind", ANNOTATOR_MODELS)
@pytest.mark.parametrize(
    "options", [{}, {"words": False}, {"constrained": False}, {"decode": "marginal"}, {"singles": True}]
)
def test_the_objective_never_falls_and_results_are_probabilities(kind: str, options: dict[str, Any]) -> None:
    corpus = crowd(unlabelled=2)
    truth = BayesianSequence(annotator_model=kind, tol=1e-8, **options).fit(corpus)
    assert len(truth.trace) > 2
    assert np.diff(truth.trace).min() >= -1e-8 * abs(truth.trace[-1])
    assert truth.diagnostics["converged"]
    np.testing.assert_allclose(truth.proba.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(truth.confusion.sum(axis=2), 1, rtol=1e-5)
    if options.get("constrained", True):
        assert all(is_legal(sequence, "IOB2") for sequence in truth.sequences())


def test_it_beats_a_model_without_neighbours_and_words() -> None:
    corpus = crowd(200, accuracy=0.6, seed=4)
    gold = corpus.golds["gold"]
    right = {m: (m.fit(corpus).labels == gold).mean() for m in (BayesianSequence(), DawidSkene())}
    sequence, token = right.values()
    assert sequence > token + 0.02


def test_memory_sees_annotators_who_repeat_themselves() -> None:
    """Each says what they said before, or else the truth: only a new label of theirs says much."""
    rng = np.random.default_rng(0)
    names = np.array(["P", "Q", "R"])
    truth = names[rng.integers(0, 3, size=(200, 8))]
    rows: dict[str, list[list[str]]] = {}
    for a, repeats in enumerate((0.5, 0.6, 0.7, 0.5)):
        rows[f"annotator-{a}"] = []
        for labels in truth.tolist():
            given: list[str] = []
            for label in labels:
                given.append(given[-1] if given and rng.random() < repeats else label)
            rows[f"annotator-{a}"].append(given)
    corpus = CrowdCorpus.from_sequences([["w"] * 8] * 200, rows, golds={"gold": truth.tolist()})
    right = {
        kind: (BayesianSequence(annotator_model=kind).fit(corpus).labels == corpus.golds["gold"]).mean()
        for kind in ("seq", "cm")
    }
    assert right["seq"] > right["cm"] + 0.03


def test_the_wrong_pseudo_counts_are_shared_by_all_other_labels() -> None:
    assert confusion_prior(1, 3.0, 2.0).tolist() == [[3]]
    assert confusion_prior(2, 3.0, 2.0).tolist() == [[3, 2], [2, 3]]
    assert confusion_prior(3, 3.0, 2.0).tolist() == [[3, 1, 1], [1, 3, 1], [1, 1, 3]]


def test_priors_of_annotators_with_memory_keep_to_the_scheme() -> None:
    base = np.full((5, 5), 0.25) + np.eye(5) * 2.75
    instead, broken = scheme_rules(LABELS)
    b_x, b_y, i_x, i_y, o, none = range(6)
    assert broken[o].tolist() == broken[none].tolist() == [False, False, True, True, False]
    assert (instead[o, i_x], instead[none, i_y], instead[b_x, i_y], instead[i_y, i_x]) == (b_x, b_y, i_x, i_y)
    prior = memory_prior(base, LABELS, np.array([o, o, b_x]), np.array([i_x, b_x, i_x]))
    np.testing.assert_allclose(prior[0], 0.01)
    np.testing.assert_allclose(prior[1], base[:, b_x] + base[:, i_x])
    np.testing.assert_allclose(prior[2], base[:, i_x] + base[:, i_y])
    assert not scheme_rules(("NOUN", "VERB"))[1].any()


def test_memory_is_of_the_same_annotator_and_sequence() -> None:
    corpus = CrowdCorpus.from_sequences(
        [["x", "y", "z"], ["x"]],
        {"a": [["P", None, "Q"], ["P"]], "b": [["Q", "Q", "P"], None]},
    )
    block = everything(corpus)
    before = labels_before(block)
    by = {(i, a): p for (i, a), p in zip(zip(corpus.annotation_token, corpus.annotation_annotator), before)}
    assert by == {(0, 0): 2, (0, 1): 2, (1, 1): 1, (2, 0): 2, (2, 1): 1, (3, 0): 2}
    rows = VoteRows.of([block], memory=True)
    assert len(rows) == len(set(rows.code.tolist())) == 5
    assert rows.forgetful().code.tolist() == VoteRows.of([block]).code.tolist() == [0, 1, 2, 3]


def test_threads_do_not_change_a_byte() -> None:
    corpus = big_crowd()
    one, two = (BayesianSequence(max_iter=4, n_threads=n).fit(corpus) for n in (1, 2))
    for name in ("proba", "labels", "confusion", "trace"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()


def test_drawn_paths_have_the_marginals_of_the_e_step() -> None:
    """Each label's share among draws is within five standard errors."""
    T, rng = 4, np.random.default_rng(0)
    evidence = np.tile(rng.normal(size=(15, T)), (3000, 1))  # the same fifteen tokens, 3,000 times
    offsets, weights = np.arange(0, len(evidence) + 1, 15), (rng.random(T), rng.random((T, T)), rng.random(T))
    proba, path = np.empty_like(evidence), np.empty(len(evidence), np.int16)
    lattice.marginals(offsets, evidence, *weights, proba, np.zeros(T), np.zeros((T, T)))
    lattice.sample_paths(offsets, evidence, *weights, rng.random(len(evidence)), path)
    share = (path.reshape(3000, 15, 1) == np.arange(T)).mean(axis=0)
    p = proba[:15]
    assert (np.abs(share - p) < 5 * np.sqrt(p * (1 - p) / 3000)).all()


def test_restarts_differ_and_the_best_one_is_kept() -> None:
    truth = BayesianSequence(restarts=3, max_iter=5).fit(crowd())
    objectives = truth.diagnostics["objectives"]
    assert len(set(objectives)) == 3
    assert truth.trace[-1] == max(objectives)
    again = BayesianSequence(restarts=3, max_iter=5).fit(crowd())
    assert again.diagnostics["objectives"] == objectives


@pytest.mark.parametrize("kind", ANNOTATOR_MODELS)
def test_nasty_crowds_get_an_answer(kind: str) -> None:
    words = [["a", "b", "c"], ["a"], ["d", "e"]]
    cases: dict[str, dict[str, Any]] = {
        "one annotator": {"a": [["B-X", "I-X", "O"], ["O"], None]},
        "one label": {"a": [["O", "O", "O"], None, None], "b": [["O", "O", "O"], ["O"], None]},
        "a single token": {"a": [["B-X", None, None], None, None], "b": [["O", "B-X", "O"], ["O"], ["O", "O"]]},
        "nobody agrees": {"a": [["O"] * 3, ["O"], ["O"] * 2], "b": [["B-X"] * 3, ["B-X"], ["B-X"] * 2]},
        "all illegal": {"a": [["I-X", "O", "I-X"], ["I-X"], ["O", "I-X"]], "b": [["I-X", "O", "I-X"], None, None]},
        "no legal start": {"a": [["I-X", "I-Y", "I-X"], None, None], "b": [["I-X", "I-X", "I-Y"], ["I-Y"], None]},
    }
    for name, given in cases.items():
        corpus = CrowdCorpus.from_sequences(words, given)
        truth = BayesianSequence(annotator_model=kind).fit(corpus)
        assert np.isfinite(truth.proba).all(), name
        assert np.isfinite(truth.confusion).all(), name
        assert np.diff(truth.trace).min(initial=0) >= -1e-9, name


def test_identical_annotators_in_great_number_are_believed() -> None:
    """Hundreds of votes per token leave the range of plain numbers; the chain then runs in logs."""
    labels = [["B-X", "I-X", "O", "O"], ["O", "B-X"]] * 30
    corpus = CrowdCorpus.from_sequences(
        [["w"] * len(x) for x in labels], {f"annotator-{a:03d}": labels for a in range(400)}
    )
    truth = BayesianSequence().fit(corpus)
    assert truth.sequences() == labels
    assert np.diff(truth.trace).min() >= -1e-6


def test_three_hundred_labels() -> None:
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 300, 600)
    names = [f"T{t:03d}" for t in range(300)]
    rows = {f"annotator-{a}": [[names[t if rng.random() < 0.8 else rng.integers(300)] for t in gold]] for a in range(5)}
    corpus = CrowdCorpus.from_sequences([[f"w{t}" for t in gold]], rows, labels=names)
    truth = BayesianSequence(max_iter=3).fit(corpus)
    assert (truth.labels == gold).mean() > 0.9


def test_parameters_are_checked_and_named() -> None:
    corpus = crowd(5)
    for name, value in {
        "annotator_model": "matrix", "prior_correct": 0, "prior_wrong": -1, "transition_prior": 0, "word_prior": "1",
        "decode": "best", "restarts": 0, "max_iter": 0, "tol": -1.0, "seed": -1, "n_threads": 0,
    }.items():  # fmt: skip
        with pytest.raises(ParameterError, match=name):
            BayesianSequence(**{name: value}).fit(corpus)
    assert BayesianSequence(prior_correct=0.5).checked().prior_correct == 0.5  # a pseudo-count is no whole vote


def test_memory_use_is_linear_in_annotations() -> None:
    corpus = big_crowd(60_000)
    BayesianSequence(max_iter=1).fit(big_crowd(1000))  # compiled before it is measured
    tracemalloc.start()
    BayesianSequence(max_iter=2, n_threads=1).fit(corpus)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak / corpus.n_annotations < 60


@pytest.mark.data
def test_span_f1_of_sequence_models_on_the_mturk_corpus(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lasca import datasets
    from lasca.evaluate import spans_from_codes

    monkeypatch.setenv("LASCA_DATA", str(data_dir))
    corpus = datasets.load("conll2003-mturk")
    parts = {
        "all": corpus.annotated_sequences,
        "test": np.array([name.startswith("test/") for name in corpus.sequence_ids]),
    }
    wanted = {BayesianSequence(): {"all": 77.7, "test": 77.5}, HmmCrowd(): {"all": 76.0, "test": 75.0}}
    for model, least in wanted.items():
        started = time.process_time()
        truth = model.fit(corpus)
        assert time.process_time() - started < 60
        for part, own in parts.items():
            scores = spans_from_codes(corpus.golds["gold"], truth.labels, corpus.offsets, corpus.labels, sequences=own)
            assert 100 * scores.f1 >= least[part], (model, part)


def test_votes_that_stand_alone_are_believed() -> None:
    corpus = crowd(200, n_annotators=8, seed=3, coverage=1.0, accuracy=0.8)
    rng = np.random.default_rng(0)
    kept = (
        corpus.annotation_annotator
        == rng.integers(8, size=corpus.n_sequences)[corpus.token_sequence][corpus.annotation_token]
    )
    lonely = corpus.with_annotations(
        corpus.annotators,
        corpus.annotation_token[kept],
        corpus.annotation_annotator[kept],
        corpus.annotation_label[kept],
    )
    gold, vote = corpus.golds["gold"], lonely.annotation_label
    guarded = BayesianSequence().fit(lonely).labels
    assert (guarded == gold).mean() >= (vote == gold).mean() - 0.005
    literal = BayesianSequence(lone_votes=True).fit(lonely).labels
    assert (guarded == vote).mean() > (literal == vote).mean()

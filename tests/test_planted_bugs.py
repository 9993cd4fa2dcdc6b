"""Bugs that somebody planted and no test saw: rare branches, borders, values that are not one and not symmetric."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lasca
import naive
from lasca import crf
from lasca.ambiguity import find_ambiguity, steps
from lasca.ambiguity.steps import PI, PairPasses
from lasca.corpus import CrowdCorpus
from lasca.crf.features import Weights
from lasca.crf.optimise import improvement
from lasca.files import write_sums
from lasca.formats import brat, doccano, label_studio, write_spans
from lasca.formats.outcome import outcome
from lasca.kernels import gibbs
from lasca.kernels import random as rnd
from lasca.pipeline.checkpoints import is_finished
from lasca.report.render import clean
from lasca.schemes import transitions
from lasca.truth.base import Votes
from lasca.truth.bayesian_sequence import BayesianSequence
from lasca.truth.cluster_sampler import Kept, Priors, State
from lasca.truth.glad import Glad
from lasca.truth.hmm_crowd import HmmCrowd
from lasca.truth.starts import SOLE
from mutations import source, sources
from test_ambiguity import T, crowd
from test_ambiguity_rank1 import corpus_of, draw, with_clusters
from test_ambiguity_two_truths import pairs_of, parameters
from test_crf_objective import Problem
from test_gibbs import random_case, rng_state
from test_truth_glad import Passes as GladPasses
from test_truth_glad import random_state
from truth_cases import crowd as small_crowd
from truth_cases import start_evidence, triples

# --- formats, runs, report --------------------------------------------------------------------------------------------


def test_offsets_in_utf16_of_a_span_with_an_emoji_in_it() -> None:
    text = "😊 Ada 😊 Lovelace 😊 ran"
    words = text.split()
    corpus = CrowdCorpus.from_sequences([words], {"a": [["O", "B-X", "I-X", "I-X", "I-X", "O"]]})
    for unit, count in (("codepoint", len), ("utf16", lambda part: len(part.encode("utf-16-le")) // 2)):
        (task,) = write_spans.tasks(corpus, outcome(corpus, corpus.annotation_label), unit=unit)
        value = task["predictions"][0]["result"][0]["value"]
        before, inside = "😊 ", "Ada 😊 Lovelace 😊"
        assert value["text"] == inside
        assert (value["start"], value["end"]) == (count(before), count(before + inside))


def answer(who: int, spans: list[dict[str, Any]], created: str, updated: str) -> dict[str, Any]:
    results = [{"from_name": "label", "to_name": "text", "type": "labels", "value": span} for span in spans]
    return {"id": 1, "completed_by": who, "result": results, "created_at": created, "updated_at": updated}


def test_of_two_answers_the_one_that_was_changed_last_counts() -> None:
    early, middle, late = ("2024-01-01T10:00:00Z", "2024-01-01T11:00:00Z", "2024-01-01T12:00:00Z")
    ada = {"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}
    for turned in (False, True):
        answers = [answer(1, [ada], early, late), answer(1, [], middle, middle)][:: -1 if turned else 1]
        task = {"id": 7, "data": {"text": "Ada ran"}, "annotations": answers}
        corpus = label_studio.read(source("export.json", json.dumps([task]).encode()))
        assert corpus.label_names(corpus.annotation_label) == [["B-PER", "O"]]


@pytest.mark.parametrize("name", ["unknown", "Unknown", "UNKNOWN"])
def test_nobody_is_no_annotator_however_it_is_written(name: str) -> None:
    rows = {
        f"{name}.jsonl": json.dumps({"id": 5, "text": "Ada ran", "label": []}).encode(),
        "eve.jsonl": json.dumps({"id": 5, "text": "Ada ran", "label": [[0, 3, "PER"]]}).encode(),
    }
    corpus = doccano.read(sources(rows), empty="all-O")
    assert corpus.annotators == ("eve",)
    assert corpus.load_report.counts["texts nobody labelled"] == 1


@pytest.mark.parametrize("places", ["15 22;2 5", "2 5;15 22", "6 14;2 5;15 22", "15 22;2 5;6 14"])
def test_a_cover_reaches_from_the_first_to_the_last_fragment_in_any_order(places: str) -> None:
    text = "😊 Ada Lovelace visited New York ."
    quoted = " ".join(text[int(p.split()[0]) : int(p.split()[1])] for p in places.split(";"))
    files = {"eve/d.txt": text.encode(), "eve/d.ann": f"T1\tX {places}\t{quoted}\n".encode()}
    corpus = brat.read(sources(files), discontinuous="cover")
    assert corpus.label_names(corpus.annotation_label) == [["O", "B-X", "I-X", "I-X", "O", "O", "O"]]


def test_a_run_is_not_finished_if_its_input_has_changed(tmp_path: Path) -> None:
    key = {
        "versions": {"lasca": "1"}, "parameters": {"model": "ds"}, "seeds": {"model": 0}, "title": None,
        "input": {"source": "crowd.conll", "sha256": "a", "bytes": 3},
    }  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps(key | {"input": {**key["input"], "more": 1}}), "utf-8")
    write_sums(tmp_path)
    assert is_finished(tmp_path, key)
    for name, value in (("sha256", "b"), ("bytes", 4), ("source", "other.conll")):
        assert not is_finished(tmp_path, key | {"input": {**key["input"], name: value}})
    for name, value in (("seeds", {"model": 1}), ("parameters", {}), ("versions", {}), ("title", "x")):
        assert not is_finished(tmp_path, key | {name: value})


DIRECTIONS = [0x200E, 0x200F, 0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069]


@pytest.mark.parametrize("code", DIRECTIONS)
def test_no_character_turns_the_direction_of_a_page(code: int) -> None:
    assert clean(f"a{chr(code)}b{chr(code)}") == "ab"


# --- the CRF ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("period", "fall"), [(2, 2 / 7), (3, 3 / 7), (4, math.inf)])
def test_the_improvement_is_over_the_period(period: int, fall: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lasca.crf.optimise._PERIOD", period)
    assert improvement([10.0, 9.0, 8.0, 7.0]) == fall


@pytest.mark.parametrize("kind", ["partial", "allowed"])
def test_partial_targets_of_sequences_the_model_is_sure_of(kind: str) -> None:
    """After the pass in logs the target needs weights again: only where several paths are allowed does it show."""
    entered = 0
    for seed in range(8):
        problem = Problem(seed, 3, kind, scale=60.0, longest=4)
        best = crf.viterbi(problem.features, Weights(problem.space, problem.vector))
        if kind == "partial":
            problem.targets = np.where(problem.targets >= 0, best, -1).astype(np.int16)
        else:
            problem.targets[np.arange(len(best)), best] = True
        gradient = np.zeros(problem.space.size)
        value = problem.fast("cost-sensitive", l2=0.3)(problem.vector, gradient)
        expected_value, expected = problem.naive("cost-sensitive", l2=0.3)
        entered += value < problem.fast("likelihood", l2=0.3)(problem.vector, np.zeros_like(gradient)) - 138
        assert value == pytest.approx(expected_value, rel=1e-9)
        np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-9)
    assert entered >= 3


# --- truth models of tokens -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [1, 2])
def test_two_annotators_change_clusters_by_the_ratio_of_the_joint(levels: int) -> None:
    """Every try is foreseen: who, and whether ln u is below the difference of the naive log joint."""
    taken = tried = 0
    for seed in range(60):
        case = random_case(seed, C=3, L=4, levels=levels)
        case.eta[:] = np.random.default_rng(seed).lognormal(0, 1.5, case.eta.shape)
        counts, rows, _ = case.counts()
        for attempt in range(10):
            state, c = rng_state(1000 * seed + attempt), case.c.copy()
            ahead = state.copy()
            a, b = rnd.below(ahead, len(c)), rnd.below(ahead, len(c))
            u = rnd.uniform(ahead)
            swapped = case.c.copy()
            swapped[a], swapped[b] = case.c[b], case.c[a]
            gain = case.joint(c=swapped) - case.joint()
            wanted = case.c[a] != case.c[b] and math.log(u) < gain
            assert gibbs.swap(c, counts, rows, case.beta, case.eta, state, 1) == wanted
            np.testing.assert_array_equal(c, swapped if wanted else case.c)
            np.testing.assert_array_equal(state, ahead)
            tried += case.c[a] != case.c[b]
            taken += wanted
    assert 0.1 * tried < taken < 0.9 * tried


def test_the_priors_of_glad_are_normal_with_the_deviation_they_are_given() -> None:
    corpus = small_crowd(n_sequences=4, n_annotators=4, seed=1)
    model = Glad(ability_mean=0.4, ability_sd=2.5, ease_mean=-0.3, ease_sd=0.3, class_prior="learned", smoothing=0.2)
    passes, state = GladPasses(corpus, model._prior()), random_state(corpus, 3)
    for _ in range(3):
        following, objective = passes.step(state)
        expected = naive.glad_log_posterior(
            triples(corpus), state.ability, state.log_ease, np.exp(state.log_gamma), 0.2, (0.4, -0.3), (2.5, 0.3)
        )
        assert objective == pytest.approx(expected, rel=1e-11)
        state = following


def drawn(n_clusters: int, rng: np.random.Generator) -> State:
    L, n_labels = 7, 3
    c = np.array([0, 0, 1, 1, 2, 2, 3])[:L] % n_clusters
    return State(
        c=c.astype(np.int32),
        members=np.bincount(c, minlength=n_clusters),
        beta=rng.dirichlet(np.ones(n_labels), (n_clusters, n_labels)),
        eta=rng.lognormal(1, 1, (n_clusters, n_labels)),
        counts=rng.integers(0, 9, (L, n_labels, n_labels)),
        totals=np.array([3, 3, 4]),
        step=np.ones((n_clusters, n_labels)),
        rng=rng_state(0),
        c_proba=0.9 * np.eye(n_clusters)[c] + 0.1 / n_clusters,
    )


def test_draws_with_other_names_of_clusters_add_up_to_the_same_clusters() -> None:
    rng = np.random.default_rng(0)
    state = drawn(4, rng)
    order = np.array([2, 0, 3, 1])  # the new cluster k is the old order[k]
    named = np.argsort(order)
    other = replace(
        state, c=named[state.c].astype(np.int32), members=state.members[order], beta=state.beta[order],
        eta=state.eta[order], c_proba=state.c_proba[:, order],
    )  # fmt: skip
    priors = Priors(np.ones((3, 3)), 1.0, 1.0, 1.0, np.zeros((0, 3)))
    once, twice = (Kept(7, 4, priors) for _ in range(2))
    once.add(state)
    twice.add(state)
    twice.add(other)
    for name in ("c_proba", "beta", "eta", "confusion"):
        np.testing.assert_allclose(getattr(twice, name), 2 * getattr(once, name), rtol=1e-12, err_msg=name)
    assert twice.draws[0] == pytest.approx(twice.draws[1])
    once.add(replace(state, c=np.zeros_like(state.c), members=np.array([7, 0, 0, 0])))
    assert once.draws[1][:2] == (1, 7)  # clusters in use, the size of the largest


# --- truth models of sequences ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["vector", "matrix"])
@pytest.mark.parametrize("variational", [True, False])
def test_a_sole_annotator_of_hmm_crowd_equals_enumeration(kind: str, variational: bool) -> None:
    labels = ("B-X", "I-X", "O")
    rows = [["B-X", "I-X", "O", "I-X"], ["O", "B-X"], [None, "O", "I-X"]]
    corpus = CrowdCorpus.from_sequences(
        [["a", "b", "a", "c"], ["c", "a"], ["b", "b", "c"]], {"eve": rows}, labels=labels
    )
    start = start_evidence(corpus, hard=True)
    rules = transitions(labels)
    q, trace = naive.hmm_crowd(corpus, kind, variational, start, rules, 0.7, 0.4, 0.3, steps=5, trust=SOLE)
    truth = HmmCrowd(
        crowd=kind, variational=variational, smoothing=0.7, transition_prior=0.4, word_prior=0.3, max_iter=4, tol=0
    ).fit(corpus)
    np.testing.assert_allclose(truth.proba, q, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.diff(truth.trace), np.diff(trace[:4]), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("n_labels", "wrong"), [(3, 2.5), (8, 8.75), (9, 10.0), (10, 10.0)])
def test_the_default_priors_of_bsc_by_the_number_of_labels(n_labels: int, wrong: float) -> None:
    rng = np.random.default_rng(n_labels)
    names = tuple(f"L{t}" for t in range(n_labels))
    rows = {a: [[str(x) for x in rng.choice(names, 5)] for _ in range(4)] for a in "pqr"}
    corpus = CrowdCorpus.from_sequences([["a", "b", "c", "d", "e"]] * 4, rows, labels=names)
    for kind, correct in {"acc": 11.0, "cv": 20.0, "cm": 110.0, "seq": 11.0}.items():
        settings: dict[str, Any] = {"annotator_model": kind, "max_iter": 3, "tol": 0, "n_threads": 1}
        default = BayesianSequence(**settings).fit(corpus)
        told = BayesianSequence(prior_correct=correct, prior_wrong=wrong, **settings).fit(corpus)
        np.testing.assert_array_equal(default.trace, told.trace)
        np.testing.assert_array_equal(default.proba, told.proba)


# --- ambiguity --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("per_token", [15, 16, 20, 33, 40])
def test_the_evidence_of_two_truths_with_many_votes(per_token: int) -> None:
    """Every 16 votes the products are scaled: the logarithm of the scale belongs to the evidence."""
    rng = np.random.default_rng(per_token)
    n = 6
    who = np.argsort(rng.random((n, 40)), axis=1)[:, :per_token]
    corpus = CrowdCorpus.from_codes(
        tokens=["w"] * n, offsets=[0, n], labels=[f"L{t}" for t in range(T)],
        annotators=[f"a{a:02d}" for a in range(40)],
        annotation_token=np.repeat(np.arange(n), per_token), annotation_annotator=who.ravel(),
        annotation_label=rng.integers(0, T, n * per_token), sequence_ids=["s"],
    )  # fmt: skip
    votes, p = Votes.of(corpus), parameters(rng, 40)
    near = np.array([[(a + 1) % T, (a + 3) % T] for a in range(T)], np.int16)
    found, proba = PairPasses(votes, np.arange(n), near, 1, 7).run(p)
    psi, evidence = p.psi.transpose(0, 1, 3, 2), 0.0
    for i in range(n):
        given = [(int(votes.annotator[v]), int(votes.label[v])) for v in range(votes.start[i], votes.start[i + 1])]
        listed = pairs_of({s for _, s in given}, near)
        made = naive.two_truths_token(given, listed, psi, p.kinds, p.levels, p.gamma, p.kappa, p.rho, PI)
        total = sum(sum(part.values()) for part in made.values())
        evidence += math.log(total)
        assert proba[i] == pytest.approx(sum(made["two"].values()) / total, rel=1e-9)
    assert found.evidence == pytest.approx(evidence, rel=1e-11)


@pytest.mark.parametrize("better", [0, 1])
def test_of_two_fits_of_two_truths_the_more_probable_one_is_kept(better: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[float] = []
    integrated = steps.integrated

    def recorded(*args: Any) -> float:
        found.append(integrated(*args) + 1000.0 * (len(found) == better))
        return found[-1]

    monkeypatch.setattr(steps, "integrated", recorded)
    corpus = crowd(300, seed=3)
    ambiguity = find_ambiguity(corpus, lasca.MajorityVote().fit(corpus), max_iter=5)
    assert len(found) == 2
    assert ambiguity.diagnostics["evidence"] == max(found) == found[better]


@pytest.mark.parametrize("scaling", ["corrected", "paper"])
def test_rank1_gives_the_same_scores_whatever_the_order_of_annotators(scaling: str) -> None:
    """Sums in another order differ by a rounding error, which must not decide between equal tokens."""
    rng = np.random.default_rng(4)
    labels = draw(rng, 7, 60, missing=0.3)
    lengths = [20, 25, 15]
    scores = []
    for _ in range(5):
        corpus = corpus_of(labels[rng.permutation(7)], lengths)
        truth = with_clusters(lasca.MajorityVote().fit(corpus), [0] * 7)
        scores.append(find_ambiguity(corpus, truth, "rank-1", scaling=scaling).score)
    for other in scores[1:]:
        np.testing.assert_array_equal(other, scores[0])

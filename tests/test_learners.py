"""Learners: the same bytes in processes as in threads, known labels, soft votes, history, and what is refused."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import naive
from lasca import simulate
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block, Votes, cut_into_blocks, document_cuts
from lasca.engine import Threads, added
from lasca.errors import ModelError, ParameterError
from lasca.kernels.tables import expected_log
from lasca.schemes import transitions
from lasca.truth import MODEL_NAMES, Truth, TruthModel, model_class, supporting
from lasca.truth.dawid_skene import DawidSkene
from lasca.truth.evidence import RowCounts
from lasca.truth.glad import GladLearner, GladState
from lasca.truth.mace import Mace
from process_engine import Processes
from truth_cases import big_crowd, crowd, triples

LEARNERS: dict[str, dict[str, Any]] = {
    "mv": {},
    "ds": {"max_iter": 4},
    "mace": {"max_iter": 3, "restarts": 2},
    "glad": {"max_iter": 3, "restarts": 2},
    "hmm-crowd": {"max_iter": 3, "restarts": 2},
    "bsc": {"max_iter": 3, "restarts": 2},
    "sembler": {"max_iter": 3, "restarts": 2, "crf_iter": 3},
    "raykar": {"max_iter": 3, "restarts": 2, "crf_iter": 3},
    "crf-ma": {"max_iter": 3, "restarts": 2, "crf_iter": 3},
    "hc": {"n_chains": 2, "n_warmup": 3, "n_samples": 4},
    "hc-seq": {"max_iter": 3, "rounds": 1, "folds": 2, "text_iterations": 4},
    "robust": {"max_iter": 3, "rounds": 1, "folds": 2, "text_iterations": 4},
}
FIELDS = ("labels", "proba", "confusion", "trace")


def gold_questions(corpus: CrowdCorpus, n: int, seed: int = 0) -> np.ndarray:
    """Return the gold of n tokens, -1 elsewhere."""
    known = np.full(corpus.n_tokens, -1)
    at = np.random.default_rng(seed).choice(corpus.n_tokens, n, replace=False)
    known[at] = corpus.golds["gold"][at]
    return known


def rich_crowd() -> CrowdCorpus:
    """A crowd with known labels and a soft annotator, large enough for many blocks."""
    corpus = big_crowd(n_tokens=3_000, n_annotators=8, n_labels=4)
    rng = np.random.default_rng(5)
    proba = rng.dirichlet(np.ones(4), corpus.n_tokens) + np.eye(4)[corpus.golds["gold"]]
    proba /= proba.sum(axis=1, keepdims=True)
    proba[rng.random(corpus.n_tokens) < 0.5] = np.nan
    return corpus.with_soft("soft", proba).with_known(gold_questions(corpus, 60))


# --- blocks and engines -------------------------------------------------------------------------------------------


def test_blocks_never_cut_a_document() -> None:
    documents = [str(i // 7) for i in range(100)]
    corpus = CrowdCorpus.from_sequences([["a", "b"]] * 100, {"x": [["A", "B"]] * 100}, metadata={"document": documents})
    votes = Votes.of(corpus)
    blocks = cut_into_blocks(votes, 20)
    assert 5 < len(blocks) <= 10
    assert [b.first for b in blocks[1:]] == [b.last for b in blocks[:-1]]
    assert all(b.first % 14 == 0 for b in blocks)
    scattered = CrowdCorpus.from_sequences(
        [["a"]] * 6, {"x": [["A"]] * 6}, metadata={"document": ["p", "q", "p", "r", "s", "s"]}
    )
    cuts = document_cuts(scattered)
    assert cuts is not None
    assert cuts.tolist() == [0, 3, 4]  # p and q are interleaved: there is no cut between their sequences


def test_a_block_alone_is_the_same_block() -> None:
    votes = Votes.of(rich_crowd())
    block = cut_into_blocks(votes, 1000)[2]
    alone = block.alone()
    assert (alone.first, alone.last, alone.n_votes) == (0, len(block), block.n_votes)
    assert alone.soft is not None
    assert block.soft is not None
    assert np.array_equal(alone.soft.proba, block.soft.proba)
    assert np.array_equal(alone.soft.token, block.soft.token)
    learner = DawidSkene()._learner(votes)
    for one, other in zip(learner.summarise(block), learner.summarise(alone)):
        assert np.array_equal(one, other)


def test_a_block_alone_has_its_own_part_of_what_models_said_who_do_not_vote() -> None:
    said = {"ann": [["A"], ["B"], ["A"]], "gpt": [["A"], ["B"], ["B"]]}
    corpus = CrowdCorpus.from_sequences([["a"], ["b"], ["c"]], said)
    votes = Votes.of(replace(corpus, kinds=("person", "model"), votes=(True, False)))
    silent = Block(votes, 1, 3).alone().votes.silent
    assert silent is not None
    assert (silent.start.tolist(), silent.label.tolist()) == ([0, 1, 2], [1, 1])


def test_votes_on_what_is_known_are_not_lonely() -> None:
    corpus = CrowdCorpus.from_sequences([["a", "b", "c"]], {"ann": [["A", "B", "A"]], "ben": [["A", None, None]]})
    assert Votes.of(corpus).lonely == 0.5
    assert Votes.of(corpus.with_known(np.array([-1, 1, -1]))).lonely == 0.25


@pytest.fixture(scope="module")
def rich() -> CrowdCorpus:
    return rich_crowd()


@pytest.mark.parametrize("name", LEARNERS)
def test_seven_shards_in_processes_give_the_bytes_of_one_in_threads(
    name: str, rich: CrowdCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = model_class(name)
    corpus = rich if "soft" in kind.supports else rich.select(annotators=rich.annotators[:-1])
    corpus = corpus if "known" in kind.supports else corpus.with_known(None)
    module = next(m for m in (sys.modules[c.__module__] for c in kind.__mro__) if hasattr(m, "blocks_of"))
    monkeypatch.setattr(module, "blocks_of", lambda votes: cut_into_blocks(votes, 1000))
    assert len(module.blocks_of(Votes.of(corpus))) >= 14
    truths = []
    for engine in (Threads(2), Processes(7)):
        model = kind(**LEARNERS[name])
        model.engine = engine
        truths.append(model.fit(corpus))
    for field in FIELDS:
        assert getattr(truths[0], field).tobytes() == getattr(truths[1], field).tobytes(), field
    for key, array in truths[0].statistics.items():
        assert array.tobytes() == truths[1].statistics[key].tobytes()


def test_all_models_are_learners_and_one_that_is_none_refuses_an_engine_by_name() -> None:
    assert set(LEARNERS) == set(supporting("engine")) == set(MODEL_NAMES)
    model = Plain()
    model.engine = Threads(1)
    with pytest.raises(ModelError, match="plain cannot take an engine"):
        model.fit(crowd(n_sequences=5))


# --- known labels -------------------------------------------------------------------------------------------------

KNOWING = supporting("known")
RIGHT = 0.005
"""A mean difference of confusions that is as good as none."""


def fitted(name: str, corpus: CrowdCorpus, **options: Any) -> Truth:
    quick: dict[str, dict[str, Any]] = {
        "mace": {"restarts": 2},
        "hc": {"n_chains": 2, "n_warmup": 20, "n_samples": 20, "n_clusters": 2},
        "hc-seq": {"rounds": 1, "folds": 2, "text_iterations": 8},
    }
    return model_class(name)(**quick.get(name, {})).fit(corpus, **options)


def test_at_least_these_take_known_labels() -> None:
    assert {"mv", "ds", "mace", "glad", "hmm-crowd", "bsc", "sembler", "raykar", "hc-seq"} <= set(KNOWING)


@pytest.mark.parametrize("name", KNOWING)
def test_known_labels_hold_and_flags_too(name: str) -> None:
    corpus = crowd(n_sequences=30, unlabelled=2)
    rng = np.random.default_rng(0)
    mask = np.ones((corpus.n_tokens, 3), bool)
    known = corpus.golds["gold"]
    at = rng.choice(corpus.n_tokens, 40, replace=False)
    mask[at] = np.eye(3, dtype=bool)[known[at]]
    both = np.setdiff1d(rng.choice(corpus.n_tokens, 20, replace=False), at)
    mask[both] = ~np.eye(3, dtype=bool)[(known[both] + 1) % 3]  # one label is excluded
    truth = fitted(name, corpus, known=mask)
    assert (truth.labels[at] == known[at]).all()
    assert (truth.proba[at, known[at]] == 1).all()
    assert (truth.proba[~mask] == 0).all()
    assert mask[np.arange(corpus.n_tokens), truth.labels].all()
    assert truth.voted[at].all()
    assert not np.array_equal(truth.proba, fitted(name, corpus).proba)


@pytest.mark.parametrize("name", KNOWING)
def test_gold_questions_bring_annotators_closer_to_the_truth(name: str) -> None:
    """Four of seven err the same way: votes alone mislead (not the default, which finds a family), 50 known labels tell
    who does."""
    rng = np.random.default_rng(3)
    gold = rng.integers(0, 3, 1200)
    said = np.repeat(gold[:, None], 7, axis=1)
    wrong = rng.random((1200, 7)) < 0.1
    said[wrong] = rng.integers(0, 3, wrong.sum())
    together = rng.random(1200) < 0.45
    said[together, :4] = ((gold[together] + 1) % 3)[:, None]
    corpus = CrowdCorpus.from_codes(
        tokens=["w"] * 1200,
        offsets=np.arange(0, 1201, 12),
        labels=["A", "B", "C"],
        annotators=[f"{a}" for a in range(7)],
        annotation_token=np.repeat(np.arange(1200), 7),
        annotation_annotator=np.tile(np.arange(7), 1200),
        annotation_label=said.ravel(),
        sequence_ids=[str(i) for i in range(100)],
        golds={"gold": gold},
    )
    true = np.zeros((7, 3, 3))
    for a in range(7):
        np.add.at(true[a], (gold, said[:, a]), 1)
    true /= true.sum(axis=2, keepdims=True)
    far = []
    for known in (None, gold_questions(corpus, 50)):
        truth = fitted(name, corpus, known=known)
        far.append(np.abs(truth.confusion - true).mean())
    assert far[1] < max(far[0], RIGHT)


@pytest.mark.parametrize("name", sorted(set(LEARNERS) - {"mv", "hc", "crf-ma"}))  # none; a sampler; F1 is no part of it
@pytest.mark.parametrize("variational", [False, True])
def test_the_objective_never_falls_with_all_evidence(name: str, variational: bool) -> None:
    corpus = rich_crowd().select(sequences=np.arange(60))
    if "soft" not in model_class(name).supports:
        corpus = corpus.select(annotators=corpus.annotators[:-1])
    options = {"variational": variational} if "variational" in model_class(name)().get_params() else {}
    trace = model_class(name)(max_iter=20, tol=0, **options).fit(corpus).trace
    assert np.diff(trace).min() >= -1e-9 * abs(trace[-1])


# --- soft votes ---------------------------------------------------------------------------------------------------

SOFT = supporting("soft")


def softened(corpus: CrowdCorpus, who: int) -> CrowdCorpus:
    """Return the corpus in which one annotator's votes are one-hot distributions; their name comes last."""
    mine = corpus.annotation_annotator == who
    proba = np.full((corpus.n_tokens, corpus.n_labels), np.nan)
    proba[corpus.annotation_token[mine]] = np.eye(corpus.n_labels)[corpus.annotation_label[mine]]
    others = [name for i, name in enumerate(corpus.annotators) if i != who]
    return corpus.select(annotators=others).with_soft(corpus.annotators[who], proba, kind="person")


WITHOUT_MEMORY: list[tuple[str, dict[str, Any]]] = [
    *[(name, {}) for name in SOFT if name not in ("robust", "bsc")],
    *[(name, {"variational": flag}) for name in ("ds", "mace", "hmm-crowd") for flag in (False, True)],
    ("hmm-crowd", {"crowd": "vector"}),
    *[("bsc", {"annotator_model": kind}) for kind in ("acc", "spam", "cv", "cm")],
]
"""A soft annotator has no memory: what has one by default is another model with it."""


@pytest.mark.parametrize(("name", "options"), WITHOUT_MEMORY)
def test_one_hot_soft_votes_are_hard_votes(name: str, options: dict[str, Any]) -> None:
    corpus = crowd(n_sequences=30, n_annotators=5)
    options = options | ({"restarts": 1, "noise": 0.0} if name == "mace" else {})
    options |= {"max_iter": 10, "tol": 0} if name != "mv" else {}
    hard = model_class(name)(**options).fit(corpus)
    soft = model_class(name)(**options).fit(softened(corpus, corpus.n_annotators - 1))
    np.testing.assert_allclose(soft.proba.astype(float), hard.proba.astype(float), atol=1e-7)  # float32
    np.testing.assert_allclose(soft.trace, hard.trace, rtol=1e-12)
    for key in hard.statistics:
        np.testing.assert_allclose(soft.statistics[key], hard.statistics[key], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", SOFT)
def test_uniform_soft_votes_say_nothing(name: str) -> None:
    corpus = crowd(n_sequences=20)
    uniform = corpus.with_soft("unsure", np.full((corpus.n_tokens, 3), 1 / 3))
    plain = fitted(name, corpus.with_soft("silent", np.full((corpus.n_tokens, 3), np.nan)))
    assert fitted(name, uniform).proba.tobytes() == plain.proba.tobytes()


def test_soft_counts_equal_the_sum_over_what_the_vote_may_have_been() -> None:
    """One step of EM, against enumeration of true label and given label."""
    corpus = crowd(n_sequences=3, n_annotators=3, seed=4)
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), corpus.n_tokens)
    proba[::3] = np.nan
    rich = corpus.with_soft("soft", proba)
    votes = Votes.of(rich)
    learner = DawidSkene(lone_votes=True)._learner(votes)
    block = Block(votes, 0, votes.n_tokens)
    state = learner.start(learner.summarise(block), np.random.default_rng(1))
    (counts, totals, evidence), _ = learner.visit(state, block, None)
    assert votes.soft is not None
    soft = [(int(i), int(a), p) for i, a, p in zip(votes.soft.token, votes.soft.annotator, votes.soft.proba)]
    psi, gamma = np.exp(state.log_psi).transpose(0, 2, 1), np.exp(state.log_gamma)
    expected = naive.ds_with_soft(triples(corpus), soft, psi, gamma, corpus.n_tokens)
    np.testing.assert_allclose(counts.transpose(0, 2, 1), expected[0], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(totals, expected[1], rtol=1e-6)
    assert evidence + (state.given * state.shift).sum() == pytest.approx(expected[2], rel=1e-6)


# --- history ------------------------------------------------------------------------------------------------------


class Spy(Threads):
    """Remembers the last learner it was given, and its blocks."""

    def open(self, learner: Any, blocks: Any, scratch: Any = None) -> Any:
        self.seen = learner, list(blocks)
        return super().open(learner, blocks, scratch)


@pytest.mark.parametrize("name", supporting("update"))
def test_statistics_of_two_halves_add_up_to_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = rich_crowd()
    if "soft" not in model_class(name).supports:
        corpus = corpus.select(annotators=corpus.annotators[:-1])
    modules = [__import__(cls.__module__, fromlist=["blocks_of"]) for cls in model_class(name).__mro__]
    module = next(found for found in modules if hasattr(found, "blocks_of"))
    monkeypatch.setattr(module, "blocks_of", lambda votes: cut_into_blocks(votes, 1000))
    model, engine = model_class(name)(max_iter=1), Spy(1)
    model.engine = engine
    model.fit(corpus)
    learner, blocks = engine.seen
    work = Threads(1).open(learner, blocks)
    state = learner.start(work.summary(), None)
    whole = work.sum(state)
    halves = [Threads(1).open(learner, part).visits(state) for part in (blocks[:6], blocks[6:])]
    total = added([*halves[0], *halves[1]])
    assert len(blocks) > 12
    for a, b in zip(whole, total):
        a, b = (x.table() if isinstance(x, RowCounts) else np.asarray(x) for x in (a, b))
        assert a.tobytes() == b.tobytes()


def test_history_equals_naive_incremental_em() -> None:
    corpus = crowd(n_sequences=40, n_annotators=4, coverage=1.0)
    old, new = corpus.select(sequences=np.arange(25)), corpus.select(sequences=np.arange(25, 40))
    model = DawidSkene(max_iter=7, tol=0)
    before = model.fit(old)
    after = model.fit(new, history=before)
    counts, totals = before.statistics["counts"].transpose(0, 2, 1), before.statistics["totals"]
    proba = naive.incremental_ds(triples(new), counts, totals, new.n_tokens, 7, smoothing=0.01, agreement=0.5)
    np.testing.assert_allclose(after.proba, proba, atol=1e-6)
    assert np.diff(after.trace).min() >= -1e-9 * abs(after.trace[-1])


@pytest.mark.parametrize("variational", [True, False])
def test_history_of_mace_equals_naive_incremental_em(variational: bool) -> None:
    corpus = crowd(n_sequences=16, n_annotators=3, coverage=1.0)
    old, new = corpus.select(sequences=np.arange(10)), corpus.select(sequences=np.arange(10, 16))
    model = Mace(max_iter=4, tol=0, restarts=2, variational=variational)
    before = model.fit(old)
    after = model.fit(new, history=before)
    prior = ((0.5, 0.5), 10.0) if variational else ((0.01 / 3, 0.01 / 3), 0.01 / 3)
    theta, xi = before.statistics["knowing"] + np.array(prior[0]), before.statistics["strategy"] + prior[1]
    assert before.statistics["knowing"].sum() == pytest.approx(old.n_annotations)
    start = [np.exp(expected_log(a)) if variational else a / a.sum(axis=1, keepdims=True) for a in (theta, xi)]
    proba, _ = naive.mace(
        triples(new), new.n_tokens, *start, 4, variational=variational, theta_prior=theta, xi_prior=xi
    )
    np.testing.assert_allclose(after.proba, proba, atol=1e-6)
    assert np.diff(after.trace).min() >= -1e-9 * abs(after.trace[-1])
    assert after.statistics["knowing"].sum() == pytest.approx(corpus.n_annotations)
    np.testing.assert_allclose(after.statistics["strategy"].sum(axis=1), after.statistics["knowing"][:, 0])  # guesses


CHAINS = [
    *[("hmm-crowd", {"crowd": kind, "variational": flag}) for kind in ("matrix", "vector") for flag in (True, False)],
    *[("bsc", {"annotator_model": kind}) for kind in ("seq", "cm", "cv", "acc", "spam")],
]


@pytest.mark.parametrize(("name", "options"), CHAINS)
def test_history_of_chains_equals_naive_incremental_em(name: str, options: dict[str, Any], tmp_path: Any) -> None:
    """Old sequences stay as they were, the new ones are enumerated; some words, and an annotator, occur only once."""
    corpus = crowd(n_sequences=40, n_annotators=3, coverage=0.9, seed=2)
    short = np.flatnonzero(np.diff(corpus.offsets) <= 6)[:7]  # paths are enumerated
    corpus = corpus.select(sequences=short)
    old, new = corpus.select(sequences=np.arange(4)), corpus.select(sequences=np.arange(4, 7))
    assert set(old.tokens) - set(new.tokens)
    model = model_class(name)(max_iter=3, tol=0, **options)
    if name == "bsc":
        model.set_params(prior_correct=4.0, prior_wrong=2.0, lone_votes=True)
    before = model.fit(old)
    before.save(tmp_path / "before")
    after = model.fit(new, history=Truth.load(tmp_path / "before"))
    kept = before.statistics
    frozen = (4, before.proba.astype(float), kept["starts"], kept["moves"])
    rules, start = transitions(corpus.labels), np.zeros((corpus.n_tokens, 3))
    if name == "bsc":
        settings = (options["annotator_model"], start, rules, 4.0, 2.0, 1.0, 1.0)
        q, _ = naive.bayesian_sequence(corpus, *settings, steps=5, frozen=frozen)
    else:
        settings = (options["crowd"], options["variational"], start, rules, 1.0, 0.1, 0.1)
        q, _ = naive.hmm_crowd(corpus, *settings, steps=5, frozen=frozen)
    np.testing.assert_allclose(after.proba, q[old.n_tokens :], atol=2e-5)
    assert np.diff(after.trace).min() >= -1e-9 * abs(after.trace[-1])
    assert after.statistics["starts"].sum() == pytest.approx(7)
    assert after.statistics["rows"].sum() == pytest.approx(corpus.n_annotations)
    assert after.statistics["words"].sum() == pytest.approx(corpus.n_tokens)


def test_history_of_glad_is_a_normal_prior_of_what_was_learned() -> None:
    """One M step by hand: sums of old and new together; the objective, with the old bound in it, never falls."""
    corpus = crowd(n_sequences=60, n_annotators=4)
    old, new = corpus.select(sequences=np.arange(40)), corpus.select(sequences=np.arange(40, 60))
    model = model_class("glad")(max_iter=6, tol=0, class_prior="learned")
    before = model.fit(old)
    after = model.fit(new, history=before)
    own = after.statistics["sums"] - before.statistics["sums"]
    votes = Votes.of(new)
    block = Block(votes, 0, votes.n_tokens)
    prior = model._prior()
    learner = GladLearner(4, 3, prior)
    past, totals = before.statistics["sums"], before.statistics["totals"]
    ability = (past[:, 0] + prior.ability_mean) / (past[:, 1] + 1)  # sd 1
    state, local = GladState(ability, np.full(3, -np.log(3))), None
    for _ in range(6):
        (sums, n, _, _), local = learner.visit(state, block, local)
        ability = (past[:, 0] + sums[:, 0] + 1) / (past[:, 1] + sums[:, 1] + 1)
        label = totals + n + 0.01
        state = GladState(ability, np.log(label / label.sum()))
    np.testing.assert_allclose(after.diagnostics["ability"], state.ability, rtol=1e-9)
    (sums, _, _, _), _ = learner.visit(state, block, local)
    np.testing.assert_allclose(own, sums, rtol=1e-9)
    assert np.diff(after.trace).min() >= -1e-9 * abs(after.trace[-1])


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", supporting("update"))
def test_history_is_as_good_as_a_joint_fit(name: str, seed: int) -> None:
    corpus = crowd(n_sequences=300, n_annotators=6, coverage=0.6, seed=seed)
    parts = [corpus.select(sequences=np.arange(a, b)) for a, b in ((0, 150), (150, 300))]
    first = model_class(name)().fit(parts[0])
    second = model_class(name)().fit(parts[1], history=first)
    joint = model_class(name)().fit(corpus)
    labels = np.concatenate([first.labels, second.labels])
    gold = corpus.golds["gold"]
    assert (labels == gold).mean() >= (joint.labels == gold).mean() - 0.003


def test_history_of_a_chain_with_other_settings_is_refused() -> None:
    corpus = crowd(n_sequences=6)
    before = model_class("hmm-crowd")(words=False, max_iter=2).fit(corpus)
    with pytest.raises(ModelError, match="the history was fitted with another words"):
        model_class("hmm-crowd")(words=True, max_iter=2).fit(corpus, history=before)


def test_history_matches_by_name_and_lets_newcomers_in(tmp_path: Any) -> None:
    corpus = crowd(n_sequences=60, n_annotators=5)
    old = corpus.select(sequences=np.arange(40), annotators=corpus.annotators[1:])
    new = corpus.select(sequences=np.arange(40, 60), annotators=[*corpus.annotators[:2], corpus.annotators[4]])
    model = DawidSkene(lone_votes=True)
    before = model.fit(old)
    before.save(tmp_path / "truth")
    truth = model.fit(new, history=Truth.load(tmp_path / "truth"))
    assert truth.proba.tobytes() == model.fit(new, history=before).proba.tobytes()
    assert truth.annotators.column("name").to_pylist() == list(new.annotators)
    counts = truth.statistics["counts"]
    n = np.bincount(new.annotation_annotator, minlength=3)
    past = before.statistics["counts"].sum(axis=(1, 2))
    np.testing.assert_allclose(counts.sum(axis=(1, 2)), n + np.array([0, past[0], past[3]]), rtol=1e-9)


# --- what is refused ----------------------------------------------------------------------------------------------


class Plain(TruthModel):
    """A model that takes hard votes only."""

    name = "plain"

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Any) -> Any:
        raise AssertionError("it must be refused before")


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_every_model_takes_what_it_says_or_refuses_it_by_name(name: str) -> None:
    corpus = crowd(n_sequences=12)
    given: dict[str, tuple[str, CrowdCorpus, dict[str, Any]]] = {
        "known": ("known labels", corpus, {"known": gold_questions(corpus, 3)}),
        "soft": ("soft votes", corpus.with_soft("s", np.tile([0.5, 0.3, 0.2], (corpus.n_tokens, 1))), {}),
    }
    for what, (words, rich, options) in given.items():
        if what in model_class(name).supports:
            assert fitted(name, rich, **options).labels.shape == (corpus.n_tokens,)
        else:
            with pytest.raises(ModelError, match=f"{name} cannot take {words}"):
                fitted(name, rich, **options)


def test_what_a_model_does_not_support_is_refused_by_name() -> None:
    corpus = crowd(n_sequences=5)
    with pytest.raises(ModelError, match="plain cannot take known labels"):
        Plain().fit(corpus, known=gold_questions(corpus, 3))
    soft = corpus.with_soft("s", np.tile([0.5, 0.3, 0.2], (corpus.n_tokens, 1)))
    with pytest.raises(ModelError, match="plain cannot take soft votes"):
        Plain().fit(soft)
    with pytest.raises(ModelError, match="plain cannot take history="):
        Plain().fit(corpus, history=DawidSkene().fit(corpus))
    with pytest.raises(ModelError, match="cannot go on from a truth of another model"):
        DawidSkene().fit(corpus, history=model_class("mv")().fit(corpus))
    with pytest.raises(ParameterError, match="history must be a Truth that the same model gave"):
        DawidSkene().fit(corpus, history="truth.lasca")  # type: ignore[arg-type]
    with pytest.raises(AssertionError):  # who does not vote is no trouble
        Plain().fit(soft.with_voters(corpus.annotators))
    assert set(supporting()) == set(MODEL_NAMES)


# --- lone votes ---------------------------------------------------------------------------------------------------


def one_vote_per_token(corpus: CrowdCorpus, share_of_two: float, seed: int = 0) -> CrowdCorpus:
    rng = np.random.default_rng(seed)
    keep = np.zeros(corpus.n_annotations, bool)
    for a, b in zip(corpus.token_start[:-1], corpus.token_start[1:]):
        if b > a:
            n = min(2 if rng.random() < share_of_two else 1, b - a)
            keep[rng.choice(np.arange(a, b), n, replace=False)] = True
    triple = (corpus.annotation_token[keep], corpus.annotation_annotator[keep], corpus.annotation_label[keep])
    return corpus.with_annotations(corpus.annotators, *triple)


@pytest.mark.parametrize("name", ["mv", "ds", "mace", "glad"])
@pytest.mark.parametrize("share", [0.0, 0.05])
def test_with_one_vote_per_token_the_votes_are_believed(name: str, share: float) -> None:
    corpus = one_vote_per_token(simulate.demo_crowd("ner"), share)
    truth = model_class(name)().fit(corpus)
    votes = model_class("mv")().fit(corpus)
    gold = corpus.golds["gold"]
    right = [(t.labels == gold)[truth.voted].mean() for t in (truth, votes)]
    assert right[0] >= right[1] - 0.005


def test_a_lone_vote_is_overruled_only_by_what_others_taught() -> None:
    """An annotator who swaps two labels beside others is corrected where they stand alone; a newcomer is not."""
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, 400)
    rows: dict[str, list[list[str | None]]] = {}
    for name in ("ann", "bob"):
        rows[name] = [["AB"[t] if rng.random() < 0.95 else "BA"[t] for t in gold[:200]] + [None] * 200]
    rows["swaps"] = [["BA"[t] for t in gold[:300]] + [None] * 100]
    rows["new"] = [[None] * 300 + ["BA"[t] for t in gold[300:]]]
    corpus = CrowdCorpus.from_sequences([["w"] * 400], rows)
    truth = DawidSkene().fit(corpus)
    assert (truth.labels[200:300] == gold[200:300]).mean() > 0.95
    assert (truth.labels[300:] == 1 - gold[300:]).all()
    assert truth.proba[np.arange(400), truth.labels].min() >= 0.5


@pytest.mark.parametrize("name", ["ds", "mace", "glad", "hmm-crowd", "bsc"])
def test_annotators_of_a_history_whom_the_corpus_does_not_know_are_named(name: str) -> None:
    corpus = crowd(n_sequences=20)
    before = model_class(name)(max_iter=2).fit(corpus)
    fewer = corpus.select(annotators=corpus.annotators[2:])
    assert not any("left out" in said for said in model_class(name)(max_iter=2).fit(corpus, history=before).warnings)
    (said,) = [x for x in model_class(name)(max_iter=2).fit(fewer, history=before).warnings if "history" in x]
    assert said.startswith("what was learned of 2 annotators of the history is left out")
    assert said.endswith(", ".join(corpus.annotators[:2]))

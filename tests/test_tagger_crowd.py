"""Learning from a crowd rather than from one label: weighted paths, masks, weights; votes that choose."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest

from lasca.corpus import CrowdCorpus
from lasca.crf.decode import Constraint, marginals
from lasca.crf.features import Features
from lasca.errors import ModelError, ParameterError
from lasca.tagger import CrfTagger, HmmTagger, choose_tagger
from lasca.tagger.prepare import _association, chain_of, weighted_paths
from lasca.tagger.quality import _decide, _fit_without
from lasca.truth import DawidSkene
from test_tagger import FakeTruth, corpus, sentences

IOB = Constraint(
    np.array([[1, 1, 0], [1, 1, 1], [1, 1, 1]], dtype=bool), np.array([1, 1, 0], dtype=bool), np.ones(3, dtype=bool)
)  # O, B, I


@dataclass
class Truthlike:
    labels: np.ndarray[Any, Any]
    proba: np.ndarray[Any, Any]
    voted: np.ndarray[Any, Any]

    @property
    def codes(self) -> np.ndarray[Any, Any]:
        return np.where(self.voted, self.labels, -1).astype(np.int16)


def doubtful_spans() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Spans of two tokens that are there with probability one half, among many that are certain."""
    labels, proba = [], []
    for s in range(40):
        row = [0, 1, 2, 0]
        labels.append(row)
        p = np.eye(3)[row]
        if s < 10:
            p[1], p[2] = [0.5, 0.5, 0.0], [0.5, 0.0, 0.5]
        proba.append(p)
    return np.concatenate(proba).astype(np.float32), np.concatenate(labels).astype(np.int16), np.arange(41) * 4


def test_the_chain_has_the_truths_own_probabilities_and_keeps_spans_whole() -> None:
    proba, labels, offsets = doubtful_spans()
    chain = chain_of(proba, labels, offsets, IOB)
    np.testing.assert_allclose(marginals(Features.one_each(offsets), chain), proba, atol=0.02)
    paths = weighted_paths(proba, labels, offsets, 4, IOB)
    first = {
        tuple(paths.labels[paths.offsets[k] : paths.offsets[k + 1]].tolist()): paths.weights[k]
        for k in np.flatnonzero(paths.owner == 0)
    }
    assert first[(0, 1, 2, 0)] + first[(0, 0, 0, 0)] > 0.95
    assert first[(0, 1, 2, 0)] == pytest.approx(0.5, abs=0.03)
    assert (0, 0, 2, 0) not in first
    np.testing.assert_allclose(np.bincount(paths.owner, paths.weights), 1.0)
    assert (np.bincount(paths.owner)[10:] == 1).all()


def test_all_paths_of_a_short_sequence_weigh_what_enumeration_says() -> None:
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(2), size=3).astype(np.float32)
    labels, offsets = proba.argmax(axis=1).astype(np.int16), np.array([0, 3])
    chain = chain_of(proba, labels, offsets, None)
    scores, moves = chain.vector[:6].reshape(3, 2), chain.transitions
    weights = {
        path: np.exp(sum(scores[k, t] for k, t in enumerate(path)) + moves[path[0], path[1]] + moves[path[1], path[2]])
        for path in product((0, 1), repeat=3)
    }
    total = sum(weights.values())
    paths = weighted_paths(proba, labels, offsets, 8)
    for k, weight in enumerate(paths.weights):
        path = tuple(paths.labels[paths.offsets[k] : paths.offsets[k + 1]].tolist())
        assert weight == pytest.approx(weights[path] / total, rel=1e-5)
    assert len(paths.weights) == 8


def test_tokens_without_a_truth_stay_unknown_in_every_path() -> None:
    proba, labels, offsets = doubtful_spans()
    labels = labels.copy()
    labels[3] = -1
    paths = weighted_paths(proba, labels, offsets, 4, IOB)
    ends = paths.offsets[1:][paths.owner == 0]
    assert len(ends) > 1
    assert (paths.labels[ends - 1] == -1).all()
    assert len({paths.labels[e - 4 : e].tobytes() for e in ends}) == len(ends)


def test_tokens_without_a_truth_are_no_neighbours() -> None:
    gaps = np.array([1, -1, 0, 1, 0, -1])
    assert (_association(gaps, np.array([0, 6]), 2) == _association(gaps[2:5], np.array([0, 3]), 2)).all()


def test_one_certain_path_is_plain_training() -> None:
    data = corpus()
    codes = data.golds["gold"]
    truth = FakeTruth(codes, np.eye(len(data.labels), dtype=np.float32)[codes])
    plain, paths = (CrfTagger(max_iter=20, paths=n).fit(data, truth) for n in (0, 5))
    assert paths.trace == pytest.approx(plain.trace, rel=1e-9)


def test_labels_that_are_not_certain_are_taken_as_unknown() -> None:
    data = corpus()
    codes = data.golds["gold"]
    proba = np.eye(len(data.labels), dtype=np.float32)[codes]
    wrong = data.token_sequence % 3 == 0
    labels = np.where(wrong, data.labels.index("O"), codes).astype(np.int16)
    proba[wrong] = 0.4 * np.eye(len(data.labels))[labels[wrong]] + 0.6 / len(data.labels)
    text = [["Otto", "Schmidt", "likes", "Oslo", "."]]
    tagger = CrfTagger(certain=0.8).fit(data, FakeTruth(labels, proba))
    assert tagger.predict(text) == [["B-PER", "I-PER", "O", "B-LOC", "O"]]
    assert tagger.trace == CrfTagger().fit(data, FakeTruth(np.where(wrong, -1, codes), proba)).trace


def test_tokens_nobody_labelled_do_not_teach() -> None:
    data = corpus()
    codes = data.golds["gold"]
    voted = data.token_sequence >= 20
    labels = np.where(voted, codes, 0).astype(np.int16)
    proba = np.eye(len(data.labels), dtype=np.float32)[labels]
    truth = Truthlike(labels, proba, voted)
    part = data.select(sequences=np.arange(20, 60))
    for params in ({}, {"soft": True}, {"paths": 3}):
        whole = CrfTagger(max_iter=5, **params).fit(data, truth)
        rest = Truthlike(labels[voted], proba[voted], voted[voted])
        assert whole.trace == CrfTagger(max_iter=5, **params).fit(part, rest).trace


def test_sequences_can_be_weighed_by_certainty() -> None:
    data = corpus()
    codes = data.golds["gold"]
    proba = np.full((len(codes), len(data.labels)), 0.1, dtype=np.float32)
    proba[np.arange(len(codes)), codes] = np.where(data.token_sequence < 30, 0.9, 0.5)
    truth = FakeTruth(codes, proba)
    expected = np.where(np.arange(60) < 30, 0.9, 0.5)
    a = CrfTagger(max_iter=5).fit(data, truth, sequence_weights="certainty")
    b = CrfTagger(max_iter=5).fit(data, truth, sequence_weights=expected)
    assert a.trace == pytest.approx(b.trace, rel=1e-5)
    with pytest.raises(ParameterError, match="certainty"):
        CrfTagger().fit(data, truth, sequence_weights="length")


def test_empty_sentences_teach_nothing() -> None:
    taught = CrfTagger(max_iter=2).fit(corpus(), "gold", unlabelled=[[], []])
    assert taught.trace == CrfTagger(max_iter=2).fit(corpus(), "gold").trace


def test_self_training_is_training_on_its_own_sure_labels() -> None:
    data, (more, _) = corpus(), sentences(20, seed=1)
    more = [*more, ["Oslo", "Berlin", "x"], []]
    first = CrfTagger(max_iter=5).fit(data, "gold")
    found, chances = first.predict(more), first.predict_proba(more)
    own = [
        [name if p[first.labels.index(name)] >= 0.9 else None for name, p in zip(row, proba)]
        for row, proba in zip(found, chances)
    ]
    assert None in {name for row in own for name in row}
    assert {"B-PER", "O"} <= {name for row in own for name in row}
    tokens, gold = sentences()
    filled = CrowdCorpus.from_sequences([*tokens, *more[:-1]], {}, golds={"gold": [*gold, *own[:-1]]})
    expected = CrfTagger(max_iter=5).fit(filled, "gold").trace
    assert CrfTagger(max_iter=5).fit(data, "gold", unlabelled=more).trace == pytest.approx(expected, rel=1e-9)
    with pytest.raises(ParameterError, match="unlabelled"):
        CrfTagger().fit(data, "gold", unlabelled=["a sentence"])


@pytest.mark.parametrize("params", [{"soft": True}, {"paths": 3}])
def test_self_training_goes_with_every_way_of_learning(params: dict[str, Any]) -> None:
    data = corpus()
    codes = data.golds["gold"]
    proba = np.full((len(codes), len(data.labels)), 0.05, dtype=np.float32)
    proba[np.arange(len(codes)), codes] = 1 - 0.05 * (len(data.labels) - 1)
    tagger = CrfTagger(**params).fit(
        data, FakeTruth(codes, proba), unlabelled=sentences(20, seed=1)[0], sequence_weights="certainty"
    )
    assert tagger.predict([["Otto", "Schmidt", "likes", "Oslo", "."]]) == [["B-PER", "I-PER", "O", "B-LOC", "O"]]


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"paths": 3, "soft": True}, "soft"),
        ({"paths": -1}, "paths"),
        ({"certain": 1.5}, "certain"),
        ({"paths": 3, "held_out": 0.2}, "paths"),
        ({"paths": 3, "optimiser": "perceptron"}, "paths"),
    ],
)
def test_what_does_not_go_together_is_said(params: dict[str, Any], match: str) -> None:
    data = corpus()
    codes = data.golds["gold"]
    truth = FakeTruth(codes, np.eye(len(data.labels), dtype=np.float32)[codes])
    with pytest.raises(ParameterError, match=match):
        CrfTagger(**params).fit(data, truth)


def test_a_gold_has_no_probabilities() -> None:
    with pytest.raises(ParameterError, match="truth"):
        CrfTagger(paths=3).fit(corpus(), "gold")


def crowd() -> CrowdCorpus:
    tokens, gold = sentences(80)
    rng = np.random.default_rng(2)
    names = ["O", "B-PER", "I-PER", "B-LOC"]
    votes = {
        f"w{k}": [[str(rng.choice(names)) if rng.random() < 0.15 else g for g in row] for row in gold] for k in range(3)
    }
    return CrowdCorpus.from_sequences(tokens, votes, golds={"gold": gold})


def test_held_out_votes_choose_the_tagger_that_knows_the_language() -> None:
    data = crowd()
    truth = DawidSkene().fit(data)
    weak, good = CrfTagger(templates="length[0]"), CrfTagger(templates="basic")
    told: list[float] = []
    choice = choose_tagger(data, truth, {"weak": weak, "good": good}, progress=lambda share, words: told.append(share))
    assert choice.best == "good"
    assert choice.scores["good"] > choice.scores["weak"]
    assert told[-1] == 1.0
    assert "chosen: good" in str(choice)
    same = choose_tagger(data, truth, {"good": good, "again": CrfTagger(templates="basic")})
    assert same.best == "good"
    assert same.differences["again"] == (0.0, 0.0)
    with pytest.raises(ModelError, match="not fitted"):
        good.predict([["a"]])


class Plain(HmmTagger):
    """As CONTRIBUTING.md writes taggers: those that read no context are told of none."""

    def predict_proba(self, sentences: Any) -> Any:  # type: ignore[override]
        return super().predict_proba(sentences)


def test_a_tagger_that_takes_sentences_alone_can_be_judged() -> None:
    data = crowd()
    choice = choose_tagger(data, DawidSkene().fit(data), {"plain": Plain(), "hmm": HmmTagger()}, folds=2)
    assert choice.scores["plain"] == choice.scores["hmm"]


def test_choosing_without_votes_or_documents_is_refused() -> None:
    data = crowd()
    truth = DawidSkene().fit(data)
    with pytest.raises(ParameterError, match="candidates"):
        choose_tagger(data, truth, {})
    with pytest.raises(ModelError, match="as many documents"):
        choose_tagger(data, truth, {"a": CrfTagger()}, folds=100)
    plain = corpus()
    codes = plain.golds["gold"]
    with pytest.raises(ModelError, match="no votes"):
        choose_tagger(plain, FakeTruth(codes, np.zeros((len(codes), 4))), {"a": CrfTagger()})


def test_a_candidate_is_compared_with_the_best_before_it_and_chosen_if_it_is_surely_better() -> None:
    votes, noise = np.full(40, 2.0), np.resize([3.0, -3.0], 40)
    found = {"plain": np.zeros(40), "rich": np.ones(40), "between": np.full(40, 0.5), "unsure": 1.1 + noise}
    choice = _decide(found, votes, np.random.default_rng(0))
    assert choice.best == "rich"
    assert choice.scores == pytest.approx({"plain": 0.0, "rich": 0.5, "between": 0.25, "unsure": 0.55})
    assert choice.differences["between"] == pytest.approx((-0.25, 0.0))
    assert choice.differences["unsure"] == pytest.approx((0.05, 1.5 / np.sqrt(40)), rel=0.15)


def test_candidates_learn_nothing_of_their_fold_nor_of_tokens_nobody_labelled() -> None:
    class Seen:
        def fit(self, part: CrowdCorpus, known: Any) -> None:
            self.said = part.tokens[:], known.labels.tolist(), known.voted.tolist(), known.proba[:, 0].tolist()

    data = CrowdCorpus.from_sequences([["a", "b"], ["c"], ["d", "e"]], {"ann": [["X", None], ["Y"], ["Y", "X"]]})
    truth = DawidSkene(max_iter=1).fit(data)
    tagger: Any = Seen()
    _fit_without(tagger, data, truth, np.array([False, True, False]))
    rows = [0, 1, 3, 4]
    assert tagger.said == (
        ["a", "b", "d", "e"],
        [0, -1, 1, 0],
        [True, False, True, True],
        truth.proba[rows, 0].tolist(),
    )

"""The tagger on corpora: what it learns from, what it predicts, and what it does with nasty input."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from lasca import schemes
from lasca.corpus import CrowdCorpus
from lasca.errors import ModelError, ParameterError
from lasca.tagger import CrfTagger, tagger_class

NAMES = ["Anna", "Peter", "Maria", "Otto"]
CITIES = ["Berlin", "Paris", "Rome", "Oslo"]
VERBS = ["visits", "likes", "leaves"]


@dataclass
class FakeTruth:
    labels: np.ndarray[Any, Any]
    proba: np.ndarray[Any, Any]


def sentences(n: int = 60, seed: int = 0) -> tuple[list[list[str]], list[list[str | None]]]:
    rng = np.random.default_rng(seed)
    tokens: list[list[str]] = []
    labels: list[list[str | None]] = []
    for _ in range(n):
        row, gold = [str(rng.choice(NAMES))], ["B-PER"]
        if rng.random() < 0.5:
            row, gold = [*row, "Schmidt"], [*gold, "I-PER"]
        tokens.append([*row, str(rng.choice(VERBS)), str(rng.choice(CITIES)), "."])
        labels.append([*gold, "O", "B-LOC", "O"])
    return tokens, labels


def corpus(labels: tuple[str, ...] = (), **golds: Any) -> CrowdCorpus:
    tokens, gold = sentences()
    return CrowdCorpus.from_sequences(tokens, {}, golds={"gold": gold, **golds}, labels=labels)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"objective": "cost-sensitive", "l2": 5.0},
        {"objective": "softmax-margin"},
        {"optimiser": "perceptron"},
        {"l1": 0.1, "l2": 0.0},
        {"hash_bits": 12},
        {"states": "all", "templates": "basic", "min_count": 2},
    ],
)
def test_every_kind_learns_a_small_language(params: dict[str, Any]) -> None:
    tagger = CrfTagger(**params).fit(corpus(), "gold")
    found = tagger.predict([["Otto", "Schmidt", "likes", "Oslo", "."], [], ["Rome"]])
    assert found == [["B-PER", "I-PER", "O", "B-LOC", "O"], [], found[2]]
    proba = tagger.predict_proba([["Otto", "likes", "Rome", "."], []])
    assert [p.shape for p in proba] == [(4, len(tagger.labels)), (0, len(tagger.labels))]
    np.testing.assert_allclose(proba[0].sum(axis=1), 1.0, rtol=1e-5)


def test_a_label_never_seen_has_probability_zero_and_is_never_predicted() -> None:
    data = corpus(labels=("B-ORG", "I-ORG"))
    tagger = CrfTagger().fit(data, "gold")
    assert set(tagger.labels) >= {"B-ORG", "I-ORG"}
    proba = tagger.predict_proba([["Qwxy", "zzz"]])[0]
    assert proba[:, tagger.labels.index("B-ORG")].tolist() == [0.0, 0.0]
    assert proba.shape == (2, len(data.labels))
    assert tagger.top_features("B-ORG") == []


def test_unlabelled_tokens_are_summed_over_and_unlabelled_sequences_left_out() -> None:
    tokens, gold = sentences()
    partial: list[list[str | None] | None] = [
        None if s % 3 == 0 else [label if (i + s) % 2 else None for i, label in enumerate(row)]
        for s, row in enumerate(gold)
    ]
    data = CrowdCorpus.from_sequences(tokens, {}, golds={"gold": partial})
    tagger = CrfTagger(l2=0.1).fit(data, "gold")
    assert tagger.predict([["Otto", "Schmidt", "likes", "Oslo", "."]]) == [["B-PER", "I-PER", "O", "B-LOC", "O"]]


def test_a_truth_is_taken_hard_or_soft() -> None:
    data = corpus()
    codes = data.golds["gold"]
    proba = np.full((len(codes), len(data.labels)), 0.05, dtype=np.float32)
    proba[np.arange(len(codes)), codes] = 1 - 0.05 * (len(data.labels) - 1)
    truth = FakeTruth(codes, proba)
    hard, soft = CrfTagger().fit(data, truth), CrfTagger(soft=True).fit(data, truth)
    by_name = CrfTagger().fit(data, "gold")
    text = [["Anna", "visits", "Rome", "."]]
    assert hard.trace == by_name.trace
    assert soft.predict(text) == hard.predict(text)
    assert soft.predict_proba(text)[0].max(axis=1).mean() < hard.predict_proba(text)[0].max(axis=1).mean()


def test_output_keeps_to_the_tag_scheme() -> None:
    tokens, gold = sentences()
    rng = np.random.default_rng(1)
    noisy = [
        [str(rng.choice(["B-PER", "I-PER", "I-LOC", "O"])) if rng.random() < 0.4 else g for g in row] for row in gold
    ]
    data = CrowdCorpus.from_sequences(tokens, {}, golds={"gold": noisy})
    free, legal = (CrfTagger(constrained=c, l2=0.01).fit(data, "gold").predict(tokens) for c in (False, True))
    assert any(not schemes.is_legal(row, "IOB2") for row in free)
    assert all(schemes.is_legal(row, "IOB2") for row in legal)


def test_costs_change_the_decision() -> None:
    """Where a word is B-LOC as often as B-ORG, cheap confusions leave more weight on it for other labels."""
    tokens = [["Ajax", "wins"]] * 20
    gold = [["LOC", "O"] if i % 2 else ["ORG", "O"] for i in range(20)]
    data = CrowdCorpus.from_sequences(tokens, {}, golds={"gold": gold})
    index = {name: i for i, name in enumerate(data.labels)}
    cheap = np.zeros((3, 3))
    cheap[index["LOC"], index["ORG"]] = cheap[index["ORG"], index["LOC"]] = 0.9
    settings: dict[str, Any] = {"objective": "cost-sensitive", "l2": 1.0, "templates": "word"}
    plain, informed = (
        CrfTagger(confusion=m, **settings).fit(data, "gold").predict_proba([["Ajax", "wins"]])[0] for m in (None, cheap)
    )
    assert informed[0, index["O"]] < plain[0, index["O"]]


def test_confusion_is_matched_by_the_names_of_labels() -> None:
    data = corpus()

    @dataclass
    class Confusion:
        labels: tuple[str, ...]
        matrix: np.ndarray[Any, Any]

    rng = np.random.default_rng(0)
    matrix = rng.random((4, 4))
    matrix = (matrix + matrix.T) / 2
    np.fill_diagonal(matrix, 0)
    order = [2, 0, 3, 1]
    shuffled = Confusion(tuple(data.labels[i] for i in order), matrix[np.ix_(order, order)])
    a, b = (CrfTagger(objective="softmax-margin", confusion=c).fit(data, "gold").trace for c in (matrix, shuffled))
    assert a == b
    with pytest.raises(ModelError, match="does not know all labels"):
        CrfTagger(objective="softmax-margin", confusion=Confusion(("O",), np.zeros((1, 1)))).fit(data, "gold")
    with pytest.raises(ModelError, match="4 x 4"):
        CrfTagger(objective="softmax-margin", confusion=np.zeros((2, 2))).fit(data, "gold")


def test_early_stopping_and_progress() -> None:
    told: list[tuple[float, str]] = []
    tagger = CrfTagger(held_out=0.3, patience=1, tol=0.0).fit(
        corpus(), "gold", progress=lambda share, words: told.append((share, words))
    )
    assert len(tagger.trace) - 1 == len(told) < 60
    assert all(0 <= share <= 1 for share, _ in told)
    assert "held-out accuracy" in told[-1][1]
    assert "objective" in told[0][1]


def test_sequence_weights_of_zero_leave_sequences_out() -> None:
    data = corpus()
    half = np.arange(data.n_sequences) < 30
    weighted = CrfTagger(l2=1.0, states="all", min_count=1).fit(data, "gold", sequence_weights=half.astype(float))
    assert weighted.trace[0] < CrfTagger(l2=1.0, states="all").fit(data, "gold").trace[0]
    with pytest.raises(ParameterError, match="sequence_weights"):
        CrfTagger().fit(data, "gold", sequence_weights=np.ones(3))
    with pytest.raises(ParameterError, match="optimiser must be 'lbfgs' for sequences with weights"):
        CrfTagger(optimiser="perceptron").fit(data, "gold", sequence_weights=np.ones(len(half)))


def test_n_best_probabilities_fall_and_are_distinct() -> None:
    tagger = CrfTagger().fit(corpus(), "gold")
    found = tagger.predict_n_best([["Otto", "likes", "Rome", "."]], n=4)[0]
    assert found[0][0] == tagger.predict([["Otto", "likes", "Rome", "."]])[0]
    chances = [p for _, p in found]
    assert chances == sorted(chances, reverse=True)
    assert 0 < sum(chances) <= 1 + 1e-9
    assert len({tuple(labels) for labels, _ in found}) == len(found)


def test_the_names_that_parameters_had_in_0_1_0_are_still_taken() -> None:
    tagger = CrfTagger(threads=2, tolerance=0.5)
    assert (tagger.n_threads, tagger.tol) == (2, 0.5)
    assert tagger.set_params(threads=1).get_params()["n_threads"] == 1
    assert "threads" not in tagger.get_params()


def test_same_seed_same_weights_whatever_the_threads() -> None:
    a, b = (CrfTagger(n_threads=n, held_out=0.2, seed=5).fit(corpus(), "gold") for n in (1, 2))
    text = sentences(seed=9)[0]
    for x, y in zip(a.predict_proba(text), b.predict_proba(text)):
        assert x.tobytes() == y.tobytes()


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"objective": "hinge"}, "objective"),
        ({"optimiser": "adam"}, "optimiser"),
        ({"l2": -1.0}, "l2"),
        ({"objective": "cost-sensitive", "l2": 0.0}, "l2"),
        ({"held_out": 0.9}, "held_out"),
        ({"max_iter": 0}, "max_iter"),
        ({"hash_bits": 60}, "hash_bits"),
        ({"templates": "nothing[0]"}, "templates"),
        ({"optimiser": "perceptron", "objective": "softmax-margin"}, "optimiser"),
        ({"optimiser": "perceptron", "held_out": 0.1}, "optimiser"),
        ({"soft": True}, "soft"),
    ],
)
def test_bad_parameters_are_named(params: dict[str, Any], match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        CrfTagger(**params).fit(corpus(), "gold")


def test_misuse_is_explained() -> None:
    with pytest.raises(ModelError, match="not fitted"):
        CrfTagger().predict([["a"]])
    with pytest.raises(ParameterError, match="gold"):
        CrfTagger().fit(corpus(), "silver")
    tagger = CrfTagger(max_iter=2).fit(corpus(), "gold")
    for bad in ("Otto likes Rome", ["Otto likes Rome"], [[1, 2]]):
        with pytest.raises(ParameterError, match="sentences"):
            tagger.predict(bad)  # type: ignore[arg-type]
    empty = CrowdCorpus.from_sequences([["a"]], {}, golds={"gold": [[None]]}, labels=("X",))
    with pytest.raises(ModelError, match="no labelled sequence"):
        CrfTagger().fit(empty, "gold")
    with pytest.raises(ParameterError, match="label"):
        tagger.top_features("B-NONE")
    assert repr(CrfTagger(l2=2.0)) == "CrfTagger(l2=2.0)"


def test_networks_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for kind in ("bilstm-crf", "transformer"):
        with pytest.raises(ParameterError, match=r"pip install 'lasca\[torch\]'"):
            tagger_class(kind)
    with pytest.raises(ParameterError, match="one of crf,"):
        tagger_class("oracle")


def test_plain_arrays_give_the_same_as_a_corpus() -> None:
    data = corpus()
    codes = data.golds["gold"]
    one = CrfTagger(max_iter=10).fit(data, "gold")
    two = CrfTagger(max_iter=10).fit_targets(list(data.tokens), data.offsets, codes, data.labels)
    assert one.trace == two.trace
    unknown = np.where(data.token_sequence < 5, -1, codes)
    with pytest.raises(ModelError, match="as many targets"):
        CrfTagger().fit_targets(list(data.tokens), data.offsets, codes[:-1], data.labels)
    with pytest.raises(ModelError, match="no labelled sequence"):
        CrfTagger().fit_targets(list(data.tokens), data.offsets, np.full(len(codes), -1), data.labels)
    assert (
        CrfTagger(max_iter=3).fit_targets(list(data.tokens), data.offsets, unknown, data.labels).labels == data.labels
    )


def test_votes_judge_probabilities_through_the_annotators_confusion() -> None:
    from lasca.tagger.prepare import vote_score_of

    tokens = [["a", "b"], ["c"]]
    votes = {"good": [["X", "O"], ["X"]], "bad": [["O", "O"], None]}
    data = CrowdCorpus.from_sequences(tokens, votes, labels=("O", "X"))
    confusion = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]], dtype=np.float32)
    order = [data.annotators.index(name) for name in ("good", "bad")]
    truth = FakeTruth(np.zeros(3), np.zeros((3, 2)))
    truth.confusion = confusion[np.argsort(order)]  # type: ignore[attr-defined]
    score = vote_score_of(data, truth, np.array([True, True, False]))
    assert score is not None
    proba = np.array([[0.3, 0.7], [1.0, 0.0]])
    o, x = data.labels.index("O"), data.labels.index("X")
    assert (o, x) == (0, 1)
    expected = np.log([0.3 * 0.1 + 0.7 * 0.8, 0.3 * 0.6 + 0.7 * 0.5, 0.9, 0.6]).mean()
    assert score.mean(proba, np.ones(2, dtype=bool)) == pytest.approx(expected, rel=1e-5)
    others = tuple(name != "bad" for name in data.annotators)  # a model's words, which judge nothing
    score = vote_score_of(replace(data, votes=others), truth, np.array([True, True, False]))
    assert score is not None
    expected = np.log([0.3 * 0.1 + 0.7 * 0.8, 0.9]).mean()
    assert score.mean(proba, np.ones(2, dtype=bool)) == pytest.approx(expected, rel=1e-5)

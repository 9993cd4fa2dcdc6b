"""HmmTagger against its plain twin: counts by dictionaries, posteriors by enumeration of all label paths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import naive
import tagger_versions
from lasca import evaluate, schemes
from lasca.corpus import CrowdCorpus
from lasca.crf.extract import Extractor
from lasca.errors import LascaError, ModelError, ParameterError, StoreError
from lasca.files import write_sums
from lasca.tagger import CrfTagger, Examples, HmmTagger, load_tagger
from lasca.tagger.hmm_regression import learn
from lasca.tagger.hmm_states import States
from lasca.tagger.hmm_tagger import TEMPERED, HmmTexts
from reproduction import tweets
from truth_cases import crowd

NAMES = ["ADJ", "NOUN", "VERB"]
TEXTS = [["The", "dog", "Runs"], ["dogs", "run"], ["a", "Running", "dog"], ["3", "dogs", "barked"], ["sleeping"]]
LABELS: list[list[str | None]] = [
    ["ADJ", "NOUN", "VERB"], ["NOUN", "VERB"], ["ADJ", "ADJ", "NOUN"], ["ADJ", "NOUN", "VERB"], ["VERB"],
]  # fmt: skip
OPEN: list[list[str | None]] = [
    ["ADJ", None, "VERB"],
    ["NOUN", "VERB"],
    [None, "ADJ", "NOUN"],
    ["ADJ", None, None],
    ["VERB"],
]
NEW = [["the", "cats", "sleeping"], ["Barking", "dogs"], ["7"]]
SETTINGS: dict[str, Any] = {"smoothing": 0.7, "prior": 0.4, "affix": 3, "backoff": 1.3, "rare": 2, "words": 0.4}
SPANS = ["B-P", "I-P", "O"]
NAMED = [["of", "two", "old", "men"], ["two", "women", "ran"], ["we", "saw", "two", "two", "men"], ["ran"]]
TAGS: list[list[str | None]] = [
    ["O", "B-P", "I-P", "I-P"], ["B-P", "I-P", "O"], ["O", "O", "B-P", "B-P", "I-P"], ["O"],
]  # fmt: skip


def corpus_of(labels: list[list[str | None]]) -> CrowdCorpus:
    return CrowdCorpus.from_sequences(TEXTS, {}, golds={"gold": labels}, labels=NAMES)


def said_by(tagger: HmmTagger, states: list[str]) -> naive.Said:
    """What its regression says; whether that is right is another test's matter."""

    def said(text: list[str]) -> list[dict[str, float]]:
        logs = tagger._fitted().regression.evidence(text, np.array([0, len(text)]))
        return [dict(zip(states, np.exp(row).tolist())) for row in logs]

    return said


def plain(tagger: HmmTagger, labels: list[list[str | None]]) -> naive.PlainHmm:
    rows = [[{} if t is None else {t: 1.0} for t in row] for row in labels]
    return naive.PlainHmm(said_by(tagger, NAMES), **SETTINGS).fit(TEXTS, rows, *naive.hmm_counts(labels), NAMES)


def same(tagger: HmmTagger, twin: naive.PlainHmm, texts: list[list[str]], names: list[str]) -> None:
    """Best paths and marginals are those of enumeration; marginals are of tempered paths. A state is a label, or |."""
    for text, found, proba in zip(texts, tagger.predict(texts), tagger.predict_proba(texts)):
        free = schemes.detect(names) is None
        joint = {path: p for path, p in twin.joint(text).items() if free or schemes.is_legal(labels_of(path), "IOB2")}
        assert found == labels_of(max(joint, key=lambda path: joint[path]))
        tempered = {path: p**TEMPERED for path, p in joint.items()}
        for k in range(len(text)):
            for t, name in enumerate(names):
                share = sum(p for path, p in tempered.items() if labels_of(path)[k] == name) / sum(tempered.values())
                assert proba[k, t] == pytest.approx(share, abs=1e-6)


def labels_of(path: tuple[str, ...]) -> list[str]:
    return [state.rstrip("|") for state in path]


def test_counts_equal_the_plain_twin() -> None:
    tagger = HmmTagger(**SETTINGS).fit(corpus_of(LABELS), "gold")
    same(tagger, plain(tagger, LABELS), [*TEXTS, *NEW], NAMES)
    assert tagger.trace == ()
    assert tagger.labels == tuple(NAMES)


def test_labels_of_a_scheme_are_two_states_each() -> None:
    corpus = CrowdCorpus.from_sequences(NAMED, {}, golds={"gold": TAGS}, labels=SPANS)
    tagger = HmmTagger(**SETTINGS).fit(corpus, "gold")
    states = [naive.border_states(row) for row in TAGS]  # type: ignore[arg-type]
    found = tagger._fitted().states
    names = [SPANS[label] + "|" * border for label, border in zip(found.label.tolist(), found.border.tolist())]
    assert names == sorted({state for row in states for state in row})
    twin = naive.PlainHmm(said_by(tagger, names), **SETTINGS)
    twin.fit(NAMED, [[{t: 1.0} for t in row] for row in states], *naive.hmm_counts(states), names)  # type: ignore[arg-type]
    same(tagger, twin, [*NAMED, ["two", "old"], ["we", "ran", "two"]], SPANS)


def test_em_equals_the_plain_twin() -> None:
    """Tokens without a label inside sentences, and sentences without any: two steps."""
    tagger = HmmTagger(**SETTINGS, max_iter=2, weight=0.3).fit(corpus_of(OPEN), "gold", unlabelled=NEW)
    texts, labels = [*TEXTS, *NEW], [*OPEN, *([None] * len(s) for s in NEW)]
    twin, values = plain(tagger, OPEN), []
    for _ in range(2):
        rows, starts, moves, value = naive.hmm_step(twin, texts, labels, 0.3)
        twin = naive.PlainHmm(twin.said, **SETTINGS).fit(texts, rows, starts, moves, NAMES)
        values.append(value)
    assert tagger.trace == pytest.approx(values, rel=1e-9)
    same(tagger, twin, [*TEXTS, *NEW, ["cats", "bark"]], NAMES)


def test_a_token_before_an_unknown_one_may_be_in_two_states() -> None:
    """It counts for both, by how often they are certain; one without a label for none."""
    labels = np.array([2, 0, 1, 2, 2, 0, -1, 2, -1, 2, 2])
    offsets = np.array([0, 7, 11])
    states = States.of(SPANS, labels, offsets)
    names = [SPANS[label] + "|" * border for label, border in zip(states.label.tolist(), states.border.tolist())]
    assert names == ["B-P", "B-P|", "I-P|", "O", "O|"]
    allowed = [{names[s] for s in np.flatnonzero(row)} for row in states.allowed(labels, offsets)]
    both = {"B-P", "B-P|"}, {"O", "O|"}, set(names)
    assert allowed == [{"O|"}, {"B-P"}, {"I-P|"}, {"O"}, {"O|"}, both[0], both[2], both[1], both[2], {"O"}, {"O"}]
    examples = Examples(["w"] * 11, offsets, labels, tuple(SPANS), np.arange(3), np.array([1.0, 2.0]))
    rows, starts, moves = HmmTexts(examples, states, 0.05).certain()
    np.testing.assert_allclose(rows[5], [2 / 3, 1 / 3, 0, 0, 0])  # one certain B-P and no B-P|, and one more of each
    np.testing.assert_allclose(rows[7], [0, 0, 0, 2 * 4 / 7, 2 * 3 / 7])
    assert not rows[[6, 8]].any()
    np.testing.assert_allclose(starts, rows[0] + rows[7])
    expected = np.zeros((5, 5))
    for first, second in ((4, 0), (0, 2), (2, 3), (3, 4)):
        expected[first, second] += 1
    expected[4] += rows[5]
    expected[3, 3] += 2
    np.testing.assert_allclose(moves, expected)


def test_the_regression_equals_the_plain_twin() -> None:
    """Tokens that may be in one state, in some, in any; weights; a feature has weights for states it was seen with."""
    words, offsets = ["a", "b", "a", "c", "b", "b"], np.array([0, 3, 6])
    states, may = ["s", "t", "u"], ["s", "t", "su", "u", "stu", "t"]
    allowed = np.array([[t in some for t in states] for some in may])
    weights = [1.0, 2.0, 1.0, 0.5, 1.0, 1.0]
    names = [["bias", f"0{word}", f"-{words[i - 1] if i % 3 else 0}"] for i, word in enumerate(words)]
    rows = (allowed / allowed.sum(axis=1, keepdims=True)) * np.array(weights)[:, None]
    found = learn(
        Extractor(templates="bias word[0] word[-1]"), words, offsets, allowed, rows, l2=0.2,
        weights=np.array(weights), steps=100,
    )  # fmt: skip
    twin = naive.plain_regression(names, [set(some) for some in may], states, 0.2, weights)
    for row, own in zip(np.exp(found.log_proba(words, offsets)), names):
        assert row.tolist() == pytest.approx(list(twin(own).values()), abs=1e-5)
    shares = (rows.sum(axis=0) + 1) / (rows.sum() + 3)
    np.testing.assert_allclose(found.evidence(words, offsets), found.log_proba(words, offsets) - np.log(shares))


def test_twenty_steps_come_near_the_optimum() -> None:
    corpus = crowd(n_sequences=60)
    labels, offsets = np.asarray(corpus.golds["gold"]), np.asarray(corpus.offsets)
    allowed = labels[:, None] == np.arange(len(corpus.labels))
    values = []
    for steps in (20, 500):
        found = learn(
            Extractor(templates="ner"),
            list(corpus.tokens),
            offsets,
            allowed,
            allowed.astype(float),
            l2=0.3,
            steps=steps,
        )
        values.append(found.weights.trace[-1])
    assert values[1] <= values[0] < 1.02 * values[1]


def test_unlabelled_text_of_no_weight_changes_nothing() -> None:
    alone = HmmTagger().fit(corpus_of(LABELS), "gold")
    with_text = HmmTagger(weight=0.0, max_iter=1).fit(corpus_of(LABELS), "gold", unlabelled=NEW)
    for a, b in zip(alone.predict_proba(NEW), with_text.predict_proba(NEW)):
        np.testing.assert_allclose(a, b, atol=1e-7)


def test_sequence_weights_are_repetitions() -> None:
    corpus = corpus_of(LABELS)
    twice = CrowdCorpus.from_sequences([*TEXTS, TEXTS[0]], {}, golds={"gold": [*LABELS, LABELS[0]]}, labels=NAMES)
    weighted = HmmTagger(rare=100).fit(corpus, "gold", sequence_weights=np.array([2.0, 1, 1, 1, 1]))
    repeated = HmmTagger(rare=100).fit(twice, "gold")
    for a, b in zip(weighted.predict_proba(NEW), repeated.predict_proba(NEW)):
        np.testing.assert_allclose(a, b, atol=1e-7)


def test_only_legal_sequences_are_predicted() -> None:
    corpus = crowd(n_sequences=40)
    tagger = HmmTagger().fit(corpus, "gold")
    found = tagger.predict([["i1", "i2", "o1"], ["b1", "o2", "i3"], []])
    for row in found:
        assert all(not (b.startswith("I") and a == "O") for a, b in zip(["O", *row], row))
    assert found[2] == []
    assert schemes.detect(corpus.labels) is not None


def test_saved_and_loaded(tmp_path: Path) -> None:
    tagger = HmmTagger(weight=0.3).fit(corpus_of(OPEN), "gold", unlabelled=[["Ä\ud800", "dogs"]])
    tagger.save(tmp_path / "t")
    for again in (HmmTagger.load(tmp_path / "t"), load_tagger(tmp_path / "t")):
        assert again.get_params() == tagger.get_params()
        assert again.trace == tagger.trace
        for a, b in zip(again.predict_proba(NEW), tagger.predict_proba(NEW)):
            np.testing.assert_array_equal(a, b)


def test_a_tagger_of_counts_alone_is_refused(tmp_path: Path) -> None:
    """As HmmTagger saved them before it had a regression."""
    HmmTagger().fit(corpus_of(LABELS), "gold").save(tmp_path / "t")
    file = tmp_path / "t" / "tagger.json"
    header = json.loads(file.read_text())
    del header["regression"]
    file.write_text(json.dumps(header))
    write_sums(tmp_path / "t")
    with pytest.raises(StoreError, match="counts alone"):
        load_tagger(tmp_path / "t")


@pytest.mark.parametrize(
    "change", [{"active": [0, 1]}, {"active": [0, 1, 7]}, {"keys": ["a"]}, {"kind": "crf"}, {"version": 9}]
)
def test_damage_is_told(tmp_path: Path, change: dict[str, Any]) -> None:
    HmmTagger().fit(corpus_of(LABELS), "gold").save(tmp_path / "t")
    file = tmp_path / "t" / "tagger.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(StoreError):
        HmmTagger.load(tmp_path / "t")  # the sums tell
    write_sums(tmp_path / "t")
    with pytest.raises(StoreError):
        HmmTagger.load(tmp_path / "t")
    with pytest.raises(StoreError, match="no tagger"):
        HmmTagger.load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "wrong", [{"prior": 0}, {"smoothing": 0}, {"backoff": -1}, {"rare": 0}, {"affix": -1}, {"weight": -1}]
)
def test_wrong_parameters_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        HmmTagger(**wrong).fit(corpus_of(LABELS), "gold")
    with pytest.raises(LascaError, match="unlabelled"):
        HmmTagger().fit(corpus_of(LABELS), "gold", unlabelled=["a sentence"])
    with pytest.raises(ModelError, match="not fitted"):
        HmmTagger().predict(NEW)


def test_at_least_as_good_as_the_crf(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both at their defaults, cross-validated on what there is to learn from: abstracts by spans, tweets by tokens."""
    monkeypatch.setenv("LASCA_DATA", str(data_dir))
    monkeypatch.setattr(tagger_versions, "DATA", data_dir)
    tokens, gold, _, documents = tagger_versions.pico()
    kept, own, _ = tagger_versions.divided(documents)
    abstracts = CrowdCorpus.from_sequences([tokens[i] for i in own], {}, golds={"gold": [gold[i] for i in own]})
    part = np.array([kept.index(documents[i]) % 3 for i in own])
    spans = [evaluate.spans(*tagger_versions.in_parts(t, abstracts, "gold", part)).f1 for t in (HmmTagger, CrfTagger)]
    assert spans[0] > spans[1] + 0.02
    corpus = tweets.tdga()
    part = np.random.default_rng(1).permutation(corpus.n_sequences) % 3
    found = [tagger_versions.in_parts(t, corpus, "gold1", part) for t in (HmmTagger, CrfTagger)]
    assert evaluate.tokens(*found[0]).accuracy > evaluate.tokens(*found[1]).accuracy - 0.002

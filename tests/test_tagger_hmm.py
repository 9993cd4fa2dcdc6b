"""HmmTagger against its plain twin: counts by dictionaries, posteriors by enumeration of all label paths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import naive
from lasca import schemes
from lasca.corpus import CrowdCorpus
from lasca.errors import LascaError, ModelError, ParameterError, StoreError
from lasca.files import write_sums
from lasca.tagger import CrfTagger, HmmTagger, load_tagger
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
SETTINGS: dict[str, Any] = {"smoothing": 0.7, "prior": 0.4, "affix": 3, "backoff": 1.3, "rare": 2}


def corpus_of(labels: list[list[str | None]]) -> CrowdCorpus:
    return CrowdCorpus.from_sequences(TEXTS, {}, golds={"gold": labels}, labels=NAMES)


def plain(labels: list[list[str | None]]) -> naive.PlainHmm:
    rows = [[{} if t is None else {t: 1.0} for t in row] for row in labels]
    return naive.PlainHmm(**SETTINGS).fit(TEXTS, rows, *naive.hmm_counts(labels), NAMES)


def same(tagger: HmmTagger, twin: naive.PlainHmm, texts: list[list[str]]) -> None:
    """Best paths and marginals are those of enumeration."""
    for text, found, proba in zip(texts, tagger.predict(texts), tagger.predict_proba(texts)):
        joint = twin.joint(text)
        total = sum(joint.values())
        assert joint[tuple(found)] == pytest.approx(max(joint.values()), rel=1e-9)
        for k in range(len(text)):
            for t, name in enumerate(NAMES):
                share = sum(p for path, p in joint.items() if path[k] == name) / total
                assert proba[k, t] == pytest.approx(share, abs=1e-6)


def test_counts_equal_the_plain_twin() -> None:
    tagger = HmmTagger(**SETTINGS).fit(corpus_of(LABELS), "gold")
    same(tagger, plain(LABELS), [*TEXTS, *NEW])
    assert tagger.trace == ()
    assert tagger.labels == tuple(NAMES)


def test_em_equals_the_plain_twin() -> None:
    """Tokens without a label inside sentences, and sentences without any: two steps."""
    tagger = HmmTagger(**SETTINGS, max_iter=2, weight=0.3).fit(corpus_of(OPEN), "gold", unlabelled=NEW)
    texts, labels = [*TEXTS, *NEW], [*OPEN, *([None] * len(s) for s in NEW)]
    twin, values = plain(OPEN), []
    for _ in range(2):
        rows, starts, moves, value = naive.hmm_step(twin, texts, labels, 0.3)
        twin = naive.PlainHmm(**SETTINGS).fit(texts, rows, starts, moves, NAMES)
        values.append(value)
    assert tagger.trace == pytest.approx(values, rel=1e-9)
    same(tagger, twin, [*TEXTS, *NEW, ["cats", "bark"]])


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


def test_within_five_points_of_the_crf_with_words(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T-DGA (gold 1) to INHOUSE, accuracy and macro-F1; the CRF has the word in small letters as its only feature."""
    monkeypatch.setenv("LASCA_DATA", str(data_dir))
    corpus = tweets.tdga()
    taggers = (HmmTagger(), CrfTagger(templates="lower[0]", l2=0.1))
    scores = [tweets.unseen_scores(tagger.fit(corpus, "gold1"))["INHOUSE"] for tagger in taggers]
    for name in ("accuracy", "macro_f1"):
        assert scores[0][name] > scores[1][name] - 5

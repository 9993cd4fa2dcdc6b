"""Numbers that hold: odd crowds give probabilities that are finite, not negative and add up; so does what follows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import lasca
from lasca.ambiguity import METHODS
from lasca.corpus import CrowdCorpus
from lasca.tagger import CrfTagger, HmmTagger
from lasca.truth import MODEL_NAMES, Truth, model_class, supporting
from shard_cases import OPTIONS


def one_token() -> CrowdCorpus:
    return CrowdCorpus.from_sequences([["a"]], {"ann": [["X"]]}, labels=("X", "Y"))


def one_label_each() -> CrowdCorpus:
    """Every annotator labelled one token, and nobody another."""
    said = {
        f"w{s}-{i}": {s: [("X", "Y")[(s + i) % 3 == 0] if j == i else None for j in range(3)]}
        for s in range(20)
        for i in range(3)
    }
    return CrowdCorpus.from_sequences([["a", "b", "c"]] * 20, said, labels=("X", "Y"))


def ten_thousand_annotators() -> CrowdCorpus:
    rng = np.random.default_rng(0)
    n = 10_000
    token = np.arange(n) % 500
    return CrowdCorpus.from_codes(
        tokens=[f"w{i % 50}" for i in range(500)], offsets=np.arange(0, 501, 5), labels=("X", "Y", "Z"),
        annotators=[f"a{i}" for i in range(n)], annotation_token=token, annotation_annotator=np.arange(n),
        annotation_label=rng.integers(3, size=n), sequence_ids=[f"s{i}" for i in range(100)],
    )  # fmt: skip


def labels_never_used() -> CrowdCorpus:
    return CrowdCorpus.from_sequences(
        [["a", "b"]] * 5, {name: [["X", "X"]] * 5 for name in ("ann", "bob")}, labels=[f"L{i}" for i in range(60)]
    )


def one_long_sequence() -> CrowdCorpus:
    rng, n = np.random.default_rng(1), 100_000
    truth = np.repeat(rng.choice(3, p=(0.1, 0.1, 0.8), size=n // 4), 4)
    said = np.where(rng.random((3, n)) < 0.9, truth, rng.integers(3, size=(3, n))).T
    return CrowdCorpus.from_codes(
        tokens=[f"w{t}{i % 300}" for i, t in enumerate(truth)], offsets=np.array([0, n]),
        labels=("B-X", "I-X", "O"), annotators=["ann", "bob", "cy"], annotation_token=np.repeat(np.arange(n), 3),
        annotation_annotator=np.tile(np.arange(3), n), annotation_label=said.ravel(), sequence_ids=["s"],
    )  # fmt: skip


def everybody_disagrees() -> CrowdCorpus:
    return CrowdCorpus.from_sequences([["a", "b"]] * 4, {f"a{i}": [[f"L{i}", f"L{i}"]] * 4 for i in range(8)})


def certainty_0_and_1(surely: float = 1.0) -> CrowdCorpus:
    corpus = CrowdCorpus.from_sequences(
        [["a", "b", "c"]] * 5, {"ann": [["X", "Y", "X"]] * 5, "bob": [["X", "X", "Y"]] * 5}
    )
    first = np.tile([surely, 1 - surely, surely], 5)
    return corpus.with_soft("sure", np.stack((first, 1 - first), axis=1))


CROWDS: dict[str, Callable[[], CrowdCorpus]] = {
    made.__name__: made
    for made in (
        one_token,
        one_label_each,
        ten_thousand_annotators,
        labels_never_used,
        one_long_sequence,
        everybody_disagrees,
        certainty_0_and_1,
    )
}


def check(truth: Truth) -> None:
    assert np.isfinite(truth.proba).all()
    assert (truth.proba >= 0).all()
    np.testing.assert_allclose(truth.proba.sum(axis=1), 1, atol=1e-5)
    assert np.isfinite(truth.confusion).all()
    assert (truth.confusion >= 0).all()
    assert not np.isnan(truth.entropy).any()
    assert np.isfinite(truth.trace).all()
    reliability = truth.annotators["reliability"].to_numpy()
    assert ((reliability >= 0) & (reliability <= 1)).all()


@pytest.mark.parametrize(
    ("model", "crowd"),
    [(m, c) for m in MODEL_NAMES for c in CROWDS if c != "certainty_0_and_1" or m in supporting("soft")],
)
def test_probabilities_hold(model: str, crowd: str) -> None:
    few = crowd == "one_long_sequence" or model in ("hc", "hc-seq")  # a few steps only: all of them would take long
    check(model_class(model)(**(OPTIONS[model] if few else {})).fit(CROWDS[crowd]()))


@pytest.mark.parametrize("crowd", list(CROWDS))
@pytest.mark.parametrize("method", METHODS)
def test_ambiguity_holds(method: str, crowd: str) -> None:
    corpus = CROWDS[crowd]()
    truth = lasca.DawidSkene().fit(corpus)
    found = lasca.find_ambiguity(corpus, truth, method=method)
    assert not np.isinf(found.score).any()
    assert int(np.isnan(found.score).sum()) == sum(found.unranked.values())  # no score is counted, with its reason
    confusion = lasca.label_confusion(corpus, truth, found).matrix
    assert np.isfinite(confusion).all()
    assert (confusion >= 0).all()


@pytest.mark.parametrize("crowd", list(CROWDS))
def test_taggers_hold(crowd: str) -> None:
    corpus = CROWDS[crowd]()
    truth = lasca.DawidSkene(max_iter=5).fit(corpus)
    for recipe in (CrfTagger(max_iter=5), CrfTagger(max_iter=5, soft=True), HmmTagger()):
        tagger = recipe.fit(corpus, truth)
        sentences = [corpus.sequence(i) for i in range(min(3, corpus.n_sequences))]
        for proba in tagger.predict_proba([*sentences, ["unseen"], []]):
            assert np.isfinite(proba).all()
            assert (proba >= 0).all()
            np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-5)
        assert [len(row) for row in tagger.predict(sentences)] == [len(words) for words in sentences]


@pytest.mark.parametrize("crowd", list(CROWDS))
def test_the_report_holds(crowd: str, tmp_path: Path) -> None:
    lasca.run(CROWDS[crowd](), output=tmp_path / "out", model="ds", params={"max_iter": 5}, tagger={"max_iter": 3})
    said = []
    for file in (tmp_path / "out").rglob("*"):
        if file.suffix in (".html", ".csv", ".json", ".jsonl"):
            text = file.read_text(encoding="utf-8")
            said += [(file.name, word) for word in re.findall(r"(?<![\w-])-?(?:nan|NaN|inf|Infinity)(?![\w-])", text)]
    assert not said
    assert (tmp_path / "out/report.html").exists()


@pytest.mark.parametrize("model", supporting("soft"))
def test_what_is_known_holds_against_certainty_of_0_and_1(model: str) -> None:
    check(model_class(model)().fit(certainty_0_and_1(0.0), known=np.tile([0, 1, -1], 5)))

"""Numbers that hold: odd crowds give probabilities that are finite, not negative and add up; so does what follows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.truth import Truth, model_class

MODELS = ("mv", "ds", "mace", "glad", "hmm-crowd", "bsc")
"""Those that are quick; the contract suite (tests/test_truth_contract.py) fits all of them to small crowds."""


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


def everybody_disagrees() -> CrowdCorpus:
    return CrowdCorpus.from_sequences([["a", "b"]] * 4, {f"a{i}": [[f"L{i}", f"L{i}"]] * 4 for i in range(8)})


CROWDS: dict[str, Callable[[], CrowdCorpus]] = {
    made.__name__: made
    for made in (one_token, one_label_each, ten_thousand_annotators, labels_never_used, everybody_disagrees)
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


@pytest.mark.parametrize("crowd", list(CROWDS))
@pytest.mark.parametrize("model", MODELS)
def test_probabilities_hold(model: str, crowd: str) -> None:
    check(model_class(model)().fit(CROWDS[crowd]()))


@pytest.mark.parametrize("crowd", ["one_token", "one_label_each", "everybody_disagrees"])
@pytest.mark.parametrize("method", ["two-truths", "rank-1", "vote-entropy"])
def test_ambiguity_holds(method: str, crowd: str) -> None:
    corpus = CROWDS[crowd]()
    truth = lasca.DawidSkene().fit(corpus)
    found = lasca.find_ambiguity(corpus, truth, method=method)
    assert not np.isinf(found.score).any()
    assert int(np.isnan(found.score).sum()) == sum(found.unranked.values())  # no score is counted, with its reason
    confusion = lasca.label_confusion(corpus, truth, found).matrix
    assert np.isfinite(confusion).all()
    assert (confusion >= 0).all()


@pytest.mark.parametrize("model", ["mv", "ds", "mace"])
def test_certainty_of_0_and_1_holds(model: str) -> None:
    corpus = CrowdCorpus.from_sequences(
        [["a", "b", "c"]] * 5, {"ann": [["X", "Y", "X"]] * 5, "bob": [["X", "X", "Y"]] * 5}
    )
    sure = np.tile(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), (5, 1))
    check(model_class(model)().fit(corpus.with_soft("sure", sure)))
    known = np.tile([0, 1, -1], 5)
    check(model_class(model)().fit(corpus.with_soft("sure", 1 - sure), known=known))

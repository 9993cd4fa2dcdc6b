from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

import lasca
from lasca.ambiguity import find_ambiguity
from lasca.confusion import LabelConfusion, _annotator_pairs, label_confusion
from lasca.corpus import CrowdCorpus
from lasca.errors import CorpusError, ModelError, ParameterError, StoreError
from test_ambiguity import crowd


@pytest.fixture(scope="module")
def corpus() -> CrowdCorpus:
    return crowd(3000, seed=2)


@pytest.fixture(scope="module")
def truth(corpus: CrowdCorpus) -> lasca.Truth:
    return lasca.DawidSkene().fit(corpus)


def by_hand(labels: list[set[int]], n_labels: int) -> np.ndarray:
    """CF from the labels of each token, by the formula."""
    p = np.zeros((n_labels, n_labels))
    for i in range(n_labels):
        with_i = [s for s in labels if i in s]
        for j in range(n_labels):
            if i != j and with_i:
                p[i, j] = sum(j in s for s in with_i) / len(with_i)
    return (p + p.T) / 2


@pytest.mark.parametrize("method", ["two-truths", "rank-1", "crowdtruth"])
def test_equals_the_formula(corpus: CrowdCorpus, truth: lasca.Truth, method: str) -> None:
    found = find_ambiguity(corpus, truth, method)
    labels = [{int(t)} for t in truth.labels]
    for token, candidates in zip(found.tokens, found.candidates):
        labels[token] = set(candidates)
    confusion = label_confusion(corpus, truth, found, expected=False)
    np.testing.assert_allclose(confusion.matrix, by_hand(labels, corpus.n_labels), rtol=1e-12)
    assert confusion.labels == corpus.labels
    assert confusion.source == method
    assert confusion.counts["with two labels"] == 300


def test_from_golds_equals_the_formula() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(-1, 4, (2, 200))
    corpus = CrowdCorpus.from_codes(
        tokens=["w"] * 200,
        offsets=[0, 200],
        labels=list("ABCD"),
        annotators=[],
        annotation_token=[],
        annotation_annotator=[],
        annotation_label=[],
        sequence_ids=["s"],
        golds={"one": first.astype(np.int16), "two": second.astype(np.int16)},
    )
    found = LabelConfusion.from_golds(corpus, "one", "two")
    labels = [{int(a), int(b)} - {-1} for a, b in zip(first, second)]
    np.testing.assert_allclose(found.matrix, by_hand(labels, 4), rtol=1e-12)
    assert found.counts["with two labels"] == sum(len(s) == 2 for s in labels)
    assert found.counts["tokens"] == sum(len(s) > 0 for s in labels)
    with pytest.raises(TypeError):
        found.counts["tokens"] = 1  # type: ignore[index]
    with pytest.raises(CorpusError, match="no gold of that name"):
        LabelConfusion.from_golds(corpus, "one", "three")


def test_expected_numbers_find_the_confusable_pairs(corpus: CrowdCorpus, truth: lasca.Truth) -> None:
    gold = LabelConfusion.from_golds(corpus, "gold1", "gold2")
    ambiguity = find_ambiguity(corpus, truth)
    found = label_confusion(corpus, truth, ambiguity)
    np.testing.assert_allclose(found.matrix, gold.matrix, rtol=0, atol=0.03)
    assert ambiguity.pair_count is not None
    pairs = [float(ambiguity.pair_count[a, b]) for a in range(corpus.n_labels) for b in range(a)]
    assert found.counts["with two labels"] == pytest.approx(sum(pairs), rel=1e-6)
    assert {pair[:2] for pair in found.pairs(2)} == {("L1", "L2"), ("L4", "L5")}
    assert found.pairs()[0][2] == found.matrix.max()


def test_expected_numbers_are_taken_where_both_are_known_and_rounding_confuses_nothing(
    corpus: CrowdCorpus, truth: lasca.Truth
) -> None:
    ambiguity = find_ambiguity(corpus, truth)
    for name in ("pair_count", "label_count"):
        other = replace(ambiguity, **{name: None})
        counted = label_confusion(corpus, truth, ambiguity, expected=False)
        assert np.array_equal(label_confusion(corpus, truth, other).matrix, counted.matrix)
        with pytest.raises(ParameterError, match="only two-truths"):
            label_confusion(corpus, truth, other, expected=True)
    pairs = np.ones((corpus.n_labels, corpus.n_labels))
    always = replace(ambiguity, pair_count=pairs, label_count=np.full(corpus.n_labels, 1 - 1e-12))
    assert label_confusion(corpus, truth, always).matrix.max() == 1.0


def test_matrix_is_symmetric_with_an_empty_diagonal_and_frozen(corpus: CrowdCorpus, truth: lasca.Truth) -> None:
    found = label_confusion(corpus, truth, find_ambiguity(corpus, truth))
    np.testing.assert_array_equal(found.matrix, found.matrix.T)
    assert not np.diag(found.matrix).any()
    assert ((found.matrix >= 0) & (found.matrix <= 1)).all()
    with pytest.raises(ValueError, match="read-only"):
        found.matrix[0, 1] = 1


@pytest.mark.parametrize(
    "matrix",
    [
        np.eye(2), np.zeros((2, 3)), np.zeros((3, 3)), np.array([[0, 0.5], [0.1, 0]]), np.array([[0, 2.0], [2, 0]]),
        np.array([[0, np.nan], [np.nan, 0]]), np.array([[0, -0.1], [-0.1, 0]]),
    ],
)  # fmt: skip
def test_wrong_matrices_are_refused(matrix: np.ndarray) -> None:
    with pytest.raises(ParameterError, match="matrix must be"):
        LabelConfusion(matrix, ("A", "B"))


def test_saved_and_loaded_is_the_same(corpus: CrowdCorpus, truth: lasca.Truth, tmp_path: Path) -> None:
    found = label_confusion(corpus, truth, find_ambiguity(corpus, truth))
    found.save(tmp_path / "c")
    loaded = LabelConfusion.load(tmp_path / "c")
    np.testing.assert_array_equal(loaded.matrix, found.matrix)
    assert (loaded.labels, loaded.source, loaded.counts) == (found.labels, found.source, found.counts)
    with pytest.raises(StoreError, match="not empty"):
        found.save(tmp_path / "c")
    found.save(tmp_path / "c", overwrite=True)
    with pytest.raises(StoreError, match="no label confusion"):
        LabelConfusion.load(tmp_path)
    (tmp_path / "c" / "confusion.json").write_text('{"lasca": "confusion", "version": 1}')
    with pytest.raises(StoreError, match="damaged"):
        LabelConfusion.load(tmp_path / "c")


def test_records_that_do_not_belong_together_are_refused(corpus: CrowdCorpus, truth: lasca.Truth) -> None:
    found = find_ambiguity(corpus, truth, "vote-entropy")
    with pytest.raises(ModelError, match="not found in this corpus"):
        label_confusion(corpus.select(sequences=[0]), truth, found)
    with pytest.raises(ModelError, match="not inferred from this corpus"):
        label_confusion(corpus, lasca.DawidSkene().fit(corpus.select(sequences=[0, 1])), found)
    with pytest.raises(ParameterError, match="only two-truths"):
        label_confusion(corpus, truth, found, expected=True)


def test_pairs_of_votes_are_counted_on_every_token_of_a_large_corpus() -> None:
    """Tokens are taken in blocks: none is left out between two of them, and none counted twice."""
    n, rng = 150_010, np.random.default_rng(0)
    said = rng.integers(0, 3, (n, 2))
    large = CrowdCorpus.from_codes(
        tokens=["x"] * n,
        offsets=[0, n],
        labels="ABC",
        annotators="ab",
        annotation_token=np.repeat(np.arange(n), 2),
        annotation_annotator=np.tile([0, 1], n),
        annotation_label=said.ravel(),
    )
    pairs = np.zeros((3, 3))
    np.add.at(pairs, (said[:, 0], said[:, 1]), 1)
    assert np.array_equal(_annotator_pairs(large), pairs + pairs.T)


@pytest.mark.data
def test_correlates_with_the_golds_of_tdga(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LASCA_DATA", str(data_dir))
    corpus = lasca.datasets.load("tdga")
    annotated = lasca.simulate.crowd(
        corpus, gold="gold1", second_gold="gold2", groups="ca1", hard_cases=0.4, wrong="uniform", seed=5
    )
    truth = lasca.DawidSkene().fit(annotated)
    derived = label_confusion(annotated, truth, find_ambiguity(annotated, truth))
    gold = LabelConfusion.from_golds(corpus, "gold1", "gold2")
    assert gold.counts["with two labels"] == 930  # the 931st differs from an empty cell
    upper = np.triu_indices(corpus.n_labels, 1)
    assert spearmanr(derived.matrix[upper], gold.matrix[upper]).statistic >= 0.7

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lasca
import naive
from lasca.ambiguity import METHODS, Ambiguity, find_ambiguity
from lasca.ambiguity.record import flagged, pick_candidates
from lasca.corpus import CrowdCorpus
from lasca.errors import ModelError, ParameterError, StoreError

T = 6


def crowd(n_tokens: int = 2000, seed: int = 0, *, per_token: int = 9, precision: Any = None) -> CrowdCorpus:
    """Draw tokens of which a tenth has two truths (labels 1 and 2, or 4 and 5), read with shares 0.6 and 0.4."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, T, n_tokens)
    second = first.copy()
    two = rng.random(n_tokens) < 0.2
    for a, b in ((1, 2), (4, 5)):
        second[two & (first == a)] = b
        second[two & (first == b)] = a
    right = rng.uniform(0.65, 0.95, 12) if precision is None else np.broadcast_to(precision, 12)
    who = np.argsort(rng.random((n_tokens, 12)), axis=1)[:, :per_token]
    reading = np.where(rng.random(who.shape) < 0.4, second[:, None], first[:, None])
    wrong = (reading + rng.integers(1, T, who.shape)) % T
    label = np.where(rng.random(who.shape) < right[who], reading, wrong)
    return CrowdCorpus.from_codes(
        tokens=[f"w{i % 97}" for i in range(n_tokens)],
        offsets=np.arange(0, n_tokens + 1, 10),
        labels=[f"L{t}" for t in range(T)],
        annotators=[f"a{a:02d}" for a in range(12)],
        annotation_token=np.repeat(np.arange(n_tokens), per_token),
        annotation_annotator=who.ravel(),
        annotation_label=label.ravel(),
        sequence_ids=[f"s{s}" for s in range(n_tokens // 10)],
        golds={"gold1": first.astype(np.int16), "gold2": second.astype(np.int16)},
    )


@pytest.fixture(scope="module")
def corpus() -> CrowdCorpus:
    return crowd()


@pytest.fixture(scope="module")
def truth(corpus: CrowdCorpus) -> lasca.Truth:
    return lasca.DawidSkene().fit(corpus)


@pytest.fixture(scope="module")
def found(corpus: CrowdCorpus, truth: lasca.Truth) -> Ambiguity:
    return find_ambiguity(corpus, truth)


def ece(positive: np.ndarray, proba: np.ndarray, bins: int = 15) -> float:
    at = np.minimum((proba * bins).astype(int), bins - 1)
    return sum(abs(positive[at == b].mean() - proba[at == b].mean()) * (at == b).mean() for b in set(at.tolist()))


# --- what every method promises ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_contract_of_every_method(corpus: CrowdCorpus, truth: lasca.Truth, method: str, tmp_path: Path) -> None:
    found = find_ambiguity(corpus, truth, method, 0.1)
    assert found.score.shape == (corpus.n_tokens,)
    assert len(found.tokens) == 200 == len(found.candidates) == found.mask.sum()
    lowest = found.score[found.tokens].min()
    assert (found.score[~found.mask] <= lowest).all()
    assert (np.diff(found.score[found.tokens]) <= 0).all()
    for token, candidates in zip(found.tokens, found.candidates):
        assert 1 <= len(candidates) <= 3
        assert truth.labels[token] in candidates
        assert list(candidates.values()) == sorted(candidates.values(), reverse=True)
    assert (found.unambiguity is not None) == (method == "rank-1")
    assert (found.share is not None) == (method == "two-truths")
    again = find_ambiguity(corpus, truth, method, 0.1, n_threads=2, chunk_size=77)
    found.save(tmp_path / "a")
    loaded = Ambiguity.load(tmp_path / "a")
    for other in (again, loaded):
        for name in ("score", "tokens", "candidate_start", "candidate_label", "candidate_score", "trace"):
            assert getattr(found, name).tobytes() == getattr(other, name).tobytes(), name
        assert other.share == found.share
        assert dict(other.unranked) == dict(found.unranked)
    assert loaded.candidates[0] == found.candidates[0]
    with pytest.raises(ValueError, match="read-only"):
        found.score[0] = 2


@pytest.mark.parametrize("method", METHODS)
def test_every_method_beats_chance_and_two_truths_beats_all(
    corpus: CrowdCorpus, truth: lasca.Truth, found: Ambiguity, method: str
) -> None:
    golds = corpus.golds["gold1"], corpus.golds["gold2"]
    other = find_ambiguity(corpus, truth, method)
    mine, best = (lasca.evaluate.ambiguity(f.score, *golds).average_precision for f in (other, found))
    assert 0.25 < mine <= best  # the share of ambiguous tokens, what chance gives, is 0.13
    assert best > 0.8


def test_no_votes_one_vote_and_models_annotations(corpus: CrowdCorpus) -> None:
    keep = corpus.annotation_token > 1
    keep[np.flatnonzero(corpus.annotation_token == 1)[0]] = True
    part = corpus.with_annotations(
        corpus.annotators,
        corpus.annotation_token[keep],
        corpus.annotation_annotator[keep],
        corpus.annotation_label[keep],
    )
    truth = lasca.MajorityVote().fit(part)
    for method in METHODS:
        found = find_ambiguity(part, truth, method)
        assert np.isnan(found.score[0])
        assert np.isnan(found.score).sum() == sum(found.unranked.values())
        assert found.unranked["not annotated"] == 1
        assert np.isnan(found.score[1]) == (method != "posterior-entropy")
    model = replace(part, kinds=("model",) + ("person",) * 11, votes=())
    without = part.select(annotators=part.annotators[1:])
    scores = [find_ambiguity(c, lasca.MajorityVote().fit(c), "vote-entropy").score for c in (model, without)]
    np.testing.assert_array_equal(*scores)


def test_order_of_sequences_changes_nothing_for_two_truths(corpus: CrowdCorpus) -> None:
    order = np.random.default_rng(3).permutation(corpus.n_sequences)
    other = corpus.select(sequences=order)
    scores = [find_ambiguity(c, lasca.MajorityVote().fit(c)).score.reshape(-1, 10) for c in (corpus, other)]
    np.testing.assert_allclose(scores[0][order], scores[1], rtol=0, atol=1e-6)


def test_threshold_instead_of_fraction(corpus: CrowdCorpus, truth: lasca.Truth, found: Ambiguity) -> None:
    sure = find_ambiguity(corpus, truth, fraction=None, threshold=0.9)
    np.testing.assert_array_equal(np.sort(sure.tokens), np.flatnonzero(found.score > 0.9))
    assert len(find_ambiguity(corpus, truth, fraction=0.0).tokens) == 0
    assert len(find_ambiguity(corpus, truth, "vote-entropy", 1.0).tokens) == corpus.n_tokens


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "magic"}, "method must be one of"),
        ({"fraction": 1.5}, "fraction must be"),
        ({"fraction": None, "method": "rank-1"}, "no probability"),
        ({"scaling": "none"}, "scaling must be one of"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"chunk_size": 0}, "chunk_size must be"),
        ({"threshold": 2}, "threshold must be"),
        ({"sample": 0}, "sample must be"),
    ],
)
def test_wrong_parameters_are_named(corpus: CrowdCorpus, truth: lasca.Truth, options: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        find_ambiguity(corpus, truth, **options)


def test_a_truth_of_another_corpus_is_refused(corpus: CrowdCorpus, truth: lasca.Truth) -> None:
    with pytest.raises(ModelError, match="not inferred from this corpus"):
        find_ambiguity(corpus.select(sequences=[0, 1]), truth)
    with pytest.raises(ModelError, match="other annotators"):
        find_ambiguity(corpus.select(annotators=corpus.annotators[:5]), truth)


def test_damaged_files_are_refused(found: Ambiguity, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no ambiguity to load"):
        Ambiguity.load(tmp_path)
    found.save(tmp_path / "a")
    (tmp_path / "a" / "arrays.safetensors").write_bytes(b"\x00" * 20)
    with pytest.raises(StoreError, match="damaged"):
        Ambiguity.load(tmp_path / "a")


def test_ties_go_to_entropy_then_position() -> None:
    score = np.array([0.5, 0.5, np.nan, 0.5, 0.9])
    entropy = np.array([0.1, 0.3, 9.0, 0.3, 0.0])
    assert flagged(score, entropy, 0.75, 0.5).tolist() == [4, 1, 3]
    assert flagged(score, entropy, None, 0.6).tolist() == [4]


def test_candidates_are_the_two_best_and_the_truth() -> None:
    scores = np.array([[0.2, 0.9, 0.9, -np.inf], [-np.inf, 0.4, -np.inf, -np.inf]])
    start, label, value = pick_candidates(scores, np.array([0, 3]))
    assert start.tolist() == [0, 3, 5]
    assert label.tolist() == [1, 2, 0, 1, 3]
    np.testing.assert_allclose(value, [0.9, 0.9, 0.2, 0.4, 0.0], rtol=1e-12)
    _, label, _ = pick_candidates(scores, np.array([1, 1]), np.array([[0, 2], [-1, -1]]))
    assert label.tolist() == [1, 2, 0, 1]


def test_entropies_are_entropies(corpus: CrowdCorpus, truth: lasca.Truth) -> None:
    given = np.zeros((corpus.n_tokens, T))
    np.add.at(given, (corpus.annotation_token, corpus.annotation_label), 1)
    p = given / given.sum(axis=1, keepdims=True)
    expected = -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1)
    np.testing.assert_allclose(find_ambiguity(corpus, truth, "vote-entropy").score, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(find_ambiguity(corpus, truth, "posterior-entropy").score, truth.entropy, rtol=1e-6)


def test_crowdtruth_equals_its_definition() -> None:
    small = crowd(60, seed=4, per_token=5)
    truth = lasca.MajorityVote().fit(small)
    votes: list[dict[int, int]] = [{} for _ in range(small.n_tokens)]
    for i, a, s in zip(small.annotation_token, small.annotation_annotator, small.annotation_label):
        votes[i][int(a)] = int(s)
    unit, worker, quality = np.ones(len(votes)), np.ones(12), np.ones(T)
    found = find_ambiguity(small, truth, "crowdtruth")
    for _ in range(len(found.trace)):
        unit, worker, quality = naive.crowdtruth_step(votes, unit, worker, quality)
    np.testing.assert_allclose(found.score, 1 - unit, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.diagnostics["annotator_quality"], worker, rtol=1e-9)
    np.testing.assert_allclose(found.diagnostics["label_quality"], quality, rtol=1e-9)
    assert found.diagnostics["converged"]
    given = votes[int(found.tokens[0])]
    for label, score in found.candidates[0].items():
        mine = sum(worker[a] for a, s in given.items() if s == label)
        np.testing.assert_allclose(score, mine / sum(worker[a] for a in given), rtol=1e-9)

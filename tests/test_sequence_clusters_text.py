"""The text as an annotator: folds that never see themselves, and columns of documents."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from crf_cases import from_csr
from lasca import crf
from lasca.arrays import ranges
from lasca.corpus import CrowdCorpus
from lasca.errors import ModelError, ParameterError
from lasca.estimator import other
from lasca.tagger import HmmTagger, Tagger
from lasca.truth.crf_text import Columns, CrfText, Elsewhere, with_columns
from lasca.truth.sequence_clusters import SequenceClusters
from lasca.truth.tempering import tempered
from lasca.truth.text_models import CrossFit, TextModel, text_model
from truth_cases import crowd

CRF = CrfText(min_count=1, iterations=10)


def crossfit(corpus: CrowdCorpus, model: TextModel = CRF, folds: int = 3) -> CrossFit:
    return CrossFit(corpus, model, np.random.default_rng(0), folds=folds, n_threads=1)


def gold_proba(corpus: CrowdCorpus) -> np.ndarray[Any, Any]:
    return np.eye(corpus.n_labels, dtype=np.float32)[corpus.golds["gold"]]


def test_a_fold_never_sees_its_own_labels() -> None:
    corpus = crowd(n_sequences=45)
    proba = gold_proba(corpus)
    first = crossfit(corpus)
    plain = first(proba)
    own = first.fold[corpus.token_sequence] == 1
    other = proba.copy()
    other[own] = np.roll(other[own], 1, axis=1)
    changed = crossfit(corpus)(other)
    np.testing.assert_array_equal(changed[own], plain[own])
    assert not np.allclose(changed[~own], plain[~own])


def test_documents_stay_together() -> None:
    words = [["a", "b"]] * 8
    rows = {"p": [["x", "y"]] * 8}
    corpus = CrowdCorpus.from_sequences(words, rows, metadata={"document": list("aabbccdd")})
    fold = crossfit(corpus, folds=2).fold
    assert (fold[0::2] == fold[1::2]).all()
    assert len(np.unique(fold)) == 2
    alone = CrowdCorpus.from_sequences(words, rows, metadata={"document": ["a"] * 8})
    assert alone.documents.tolist() == list(range(8))


def test_sequences_nobody_labelled_are_tagged_but_not_learned_from() -> None:
    corpus = crowd(n_sequences=45, unlabelled=5)
    proba = gold_proba(corpus)
    plain = crossfit(corpus)(proba)
    np.testing.assert_allclose(plain.sum(axis=1), 1, atol=1e-4)
    other = proba.copy()
    other[: corpus.offsets[5]] = np.roll(other[: corpus.offsets[5]], 1, axis=1)
    np.testing.assert_array_equal(crossfit(corpus)(other), plain)


def test_two_folds_at_least_must_have_something_to_learn_from() -> None:
    words, ids = [["a", "b"]] * 4, ["d", "d", "e", "e"]
    for labelled, possible in ((2, False), (3, True)):
        said = [["X", "Y"] if s < labelled else [None, None] for s in range(4)]
        corpus = CrowdCorpus.from_sequences(words, {"p": said}, metadata={"document": ids})
        assert crossfit(corpus, folds=2).possible == possible


def test_columns_become_features() -> None:
    features = from_csr(np.array([0, 1, 1, 2]), np.array([0, 1]), np.array([0, 2, 3]), 2)
    wider = with_columns(features, [(np.array([0, -1, 1]), 2), (np.array([-1, -1, 2]), 3)])
    assert wider.n_features == 7
    found = []
    for slots in wider.slots:
        ids: list[int] = []
        for bundle in slots:
            ids += wider.bundle_feature[wider.bundle_start[bundle] : wider.bundle_start[bundle + 1]].tolist()
        found.append(sorted(ids))
    assert found == [[0, 2], [], [1, 3, 6]]


def test_words_written_in_small_letters_elsewhere_are_seen() -> None:
    """`Bank` at the start of one sequence, `bank` inside another; `Rome` is never written small."""
    words = [["Bank", "shut"], ["the", "bank", "of", "Rome"], ["Rome", "is", "big"]]
    corpus = CrowdCorpus.from_sequences(words, {"p": [["x"] * len(w) for w in words]})
    documents = np.zeros(3, dtype=np.int64)
    codes, size = Columns(corpus, documents).of(corpus, documents)[0]
    bank, rome, shut = codes[0], codes[6], codes[1]
    assert bank != rome
    assert codes.max() < size
    assert codes.min() >= 0
    assert shut != rome


def test_what_was_said_of_a_word_elsewhere_becomes_columns() -> None:
    """Beside a naive twin: sums over the other sequences of the document, and over other documents."""
    rng = np.random.default_rng(3)
    words = [rng.choice(["Rome", "ROME", "rome", "x", "1", "Bonn"], size=n).tolist() for n in (4, 0, 3, 5, 1, 6, 2)]
    corpus = CrowdCorpus.from_sequences(words, {"p": [["x"] * len(w) for w in words]})
    documents = np.array([0, 0, 0, 1, 1, 2, 3])
    said = rng.dirichlet([0.3] * 3, corpus.n_tokens)
    flat = [word for sequence in words for word in sequence]
    place = corpus.token_sequence.tolist()
    cases = [0 if w.islower() else 3 if w == "1" else 2 if w.isupper() else 1 for w in flat]
    near, far = Elsewhere(corpus, documents).of(said)
    assert near[1] == far[1] == 3 * 3 * 4
    for i, word in enumerate(flat):
        same = [j for j, other in enumerate(flat) if other.lower() == word.lower() and place[j] != place[i]]
        mine = documents[place[i]]
        for codes, others in (
            (near[0], [j for j in same if documents[place[j]] == mine]),
            (far[0], [j for j in same if documents[place[j]] != mine]),
        ):
            mean = said[others].mean(axis=0) if others else np.zeros(3)
            code = (int(mean.argmax()) * 3 + (mean.max() > 0.6) + (mean.max() > 0.9)) * 4 + cases[i] if others else -1
            assert codes[i] == code
    assert {bool(code >= 0) for code in near[0]} == {True, False}
    assert (far[0] >= 0).any()


def test_taggers_that_are_told_hear_what_they_said_of_other_sequences_and_go_on_from_what_they_learned() -> None:
    corpus = crowd(n_sequences=45)
    proba = gold_proba(corpus)
    told = CrossFit(corpus, CRF, np.random.default_rng(0), folds=3, told=True, n_threads=1)
    plain = crossfit(corpus)
    first = told(proba)
    np.testing.assert_array_equal(first, plain(proba))
    before = [weights.space.n_features for weights in told.learned]
    second = told(proba)
    assert not np.array_equal(second, plain(proba))
    assert all(weights.space.n_features == n + 24 * corpus.n_labels for weights, n in zip(told.learned, before))
    assert told(proba).shape == second.shape


def test_weights_of_more_features_score_as_before() -> None:
    features = from_csr(np.array([0, 1, 1, 2]), np.array([0, 1]), np.array([0, 2, 3]), 2)
    weights = crf.fit(features, np.array([0, 1, 1]), 2, l2=0.1)
    wider = with_columns(features, [(np.array([0, -1, 1]), 2)])
    assert weights.wider(2) is weights
    np.testing.assert_array_equal(weights.wider(4).state()[:2], weights.state())
    np.testing.assert_array_equal(crf.marginals(wider, weights.wider(4)), crf.marginals(features, weights))


def test_columns_tell_names_that_only_begin_sequences_and_headings_in_capitals() -> None:
    words = [["Zed", "ran"], ["the", "cat"], ["ROME", "1996"], ["BIG", "ran"]]
    corpus = CrowdCorpus.from_sequences(words, {"p": [["x"] * len(w) for w in words]})
    documents = np.zeros(4, dtype=np.int64)
    columns = [codes.tolist() for codes, _ in Columns(corpus, documents).of(corpus, documents)]
    usage, in_capitals = columns[0], columns[6]
    zed, the, big = usage[0], usage[2], usage[6]  # of none is it known how it is written inside a sequence
    assert min(zed, the, big) >= 0
    assert len({zed, the, big}) == 3
    assert [code >= 0 for code in in_capitals] == [False] * 4 + [True] * 2 + [False] * 2
    assert in_capitals[4] != in_capitals[5]  # a word, a number


def test_text_corrects_what_the_crowd_misses() -> None:
    corpus = crowd(n_sequences=150, n_annotators=2, accuracy=0.6, seed=7)
    gold = corpus.golds["gold"]
    with_text = SequenceClusters(rounds=1, folds=3, text_iterations=15).fit(corpus)
    without = SequenceClusters(text=False, words=False).fit(corpus)
    assert (with_text.labels == gold).mean() > (without.labels == gold).mean() + 0.02


class Oracle:
    """A text model that keeps a diary: it repeats the mean of what it was taught."""

    def __init__(self) -> None:
        self.diary: list[Any] = []

    def prepare(self, corpus: CrowdCorpus, n_threads: int | None = None) -> Oracle:
        self.offsets = corpus.offsets
        return self

    def fit(self, targets: Any, sequences: Any, before: Any = None) -> Any:
        self.diary.append((sequences, before))
        return targets[ranges(self.offsets[sequences], self.offsets[sequences + 1])].mean(axis=0)

    def predict(self, learned: Any, sequences: Any, out: Any) -> None:
        out[ranges(self.offsets[sequences], self.offsets[sequences + 1])] = learned


def test_any_text_model_is_cross_fitted_and_goes_on_from_what_it_learned() -> None:
    corpus = crowd(n_sequences=30, unlabelled=2)
    oracle, proba = Oracle(), gold_proba(corpus)
    fitting = crossfit(corpus, oracle)
    found = [fitting(proba), fitting(proba)]
    np.testing.assert_array_equal(*found)
    for k in range(3):
        own = fitting.fold[corpus.token_sequence] == k
        rest = (fitting.fold != k) & corpus.annotated_sequences
        np.testing.assert_allclose(
            found[0][own], np.tile(proba[rest[corpus.token_sequence]].mean(axis=0), (own.sum(), 1))
        )
        assert oracle.diary[k][1] is None
        assert oracle.diary[k + 3][1] is not None
        assert oracle.diary[k][0].tolist() == np.flatnonzero(rest).tolist()
    truth = SequenceClusters(text=Oracle(), rounds=1, folds=2).fit(corpus)
    assert (truth.labels == corpus.golds["gold"])[truth.voted].mean() > 0.85


class Nothing(Tagger):
    """A tagger that says what it is told of every token."""

    row: Any = other("what predict_proba says", "a list", default=None)
    labels = ()

    def _learn(self, examples: Any, progress: Any) -> None:
        self.labels = examples.labels

    def predict_proba(self, sentences: Any) -> Any:
        return [np.full((len(words), len(self.row)), self.row) for words in sentences]


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ((np.nan, 0.5, 0.5), "of a token must be at least 0 and add up to 1"),
        ((1.0, 1.0, 1.0), "of a token must be at least 0 and add up to 1"),
        ((-0.5, 1.0, 0.5), "of a token must be at least 0 and add up to 1"),
        ((0.5, 0.5), "must give an array (tokens, labels) for each sentence"),
    ],
)
def test_a_text_model_that_gives_no_probabilities_is_refused_and_not_left_unheard(
    row: tuple[float, ...], what: str
) -> None:
    corpus = crowd(n_sequences=30)
    with pytest.raises(ModelError, match=re.escape(what)) as error:
        crossfit(corpus, cast(TextModel, text_model(Nothing(row=row))))(gold_proba(corpus))
    assert "Nothing" in str(error.value)


@pytest.mark.parametrize(
    ("scores", "n_rounds", "best"),
    [((1.0, 2.0, 3.0), 3, 3), ((1.0, 0.5, 3.0), 2, 1), ((1.0, 1.0, 0.0), 3, 2)],
    ids=["while held-out votes gain", "no longer", "equal is no loss"],
)
def test_the_text_is_heard_again_while_held_out_votes_are_predicted_better(
    scores: tuple[float, ...], n_rounds: int, best: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = iter(scores)
    monkeypatch.setattr("lasca.truth.sequence_clusters.held_out_votes", lambda fit: (1.0, np.array([next(told), -9.0])))
    model = SequenceClusters(max_iter=4, rounds=3, folds=2, text_iterations=3, calibrate=False)
    found = model.fit(crowd(n_sequences=40, seed=3)).diagnostics
    names = [word["name"] for word in found["rounds"]]
    assert [name for name in names if name.startswith("text")] == [f"text {k + 1}" for k in range(n_rounds)]
    assert found["objective"] == found["rounds"][names.index(f"text {best}")]["objective"]


def test_draws_have_heard_the_text_and_are_only_tempered() -> None:
    gibbs: Any = partial(SequenceClusters, inference="gibbs")
    parts = {"max_iter": 4, "rounds": 1, "folds": 2, "text_iterations": 3, "n_samples": 4}
    corpus = crowd(n_sequences=40, seed=3)
    drawn, made = (gibbs(**parts, calibrate=wanted, doubt=0.0).fit(corpus) for wanted in (False, True))
    tau = 1 / made.diagnostics["temperature"]
    assert tau < 1
    np.testing.assert_allclose(made.proba, tempered(drawn.proba.astype(float), tau), atol=1e-6)


def test_taggers_are_text_models_by_name_and_as_they_are() -> None:
    corpus = crowd(n_sequences=60, seed=4)
    proba = gold_proba(corpus)
    said = [crossfit(corpus, text_model(model))(proba) for model in ("hmm", HmmTagger())]  # type: ignore[arg-type]
    np.testing.assert_array_equal(*said)
    np.testing.assert_allclose(said[0].sum(axis=1), 1, atol=1e-4)
    assert (said[0].argmax(axis=1) == corpus.golds["gold"]).mean() > 0.6
    assert text_model(False) is None
    assert text_model(True, l2=3.0) == text_model("crf", l2=3.0) == CrfText(3.0)
    for wrong in ("nobody", 3):
        with pytest.raises(ParameterError, match="text"):
            text_model(wrong)


@pytest.mark.slow
@pytest.mark.data
def test_spans_on_the_mturk_corpus(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures of the docs, with a margin for other machines: val folder, test folder, calibration."""
    from lasca import datasets, evaluate

    monkeypatch.setenv("LASCA_DATA", str(data_dir))
    corpus = datasets.load("conll2003-mturk")
    truth = SequenceClusters().fit(corpus)
    test = np.array([name.startswith("test/") for name in corpus.sequence_ids])
    gold = corpus.golds["gold"]
    spans = [
        evaluate.spans_from_codes(gold, truth.labels, corpus.offsets, corpus.labels, sequences=sequences).f1
        for sequences in (corpus.annotated_sequences, corpus.annotated_sequences & test)
    ]
    assert spans[0] > 0.815
    assert spans[1] > 0.805
    mask = np.repeat(corpus.annotated_sequences & test, np.diff(corpus.offsets))
    found = evaluate.calibration(truth.proba, gold, mask=mask)
    assert found.cross_entropy <= 0.20
    assert found.ece <= 0.022

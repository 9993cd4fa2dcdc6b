"""What the public records offer: tables, scores, copies, and how they look in a notebook."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from html.parser import HTMLParser
from multiprocessing import get_context
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import CorpusError, FormatError, ParameterError
from lasca.pipeline.way import Run

HOSTILE = '<script>alert("\u202ex")</script>'


@pytest.fixture(scope="module")
def corpus() -> CrowdCorpus:
    return lasca.simulate.demo_crowd("pos")


@pytest.fixture(scope="module")
def truth(corpus: CrowdCorpus) -> lasca.Truth:
    return lasca.MajorityVote().fit(corpus)


def test_a_truth_as_a_table(corpus: CrowdCorpus, truth: lasca.Truth) -> None:
    table = truth.to_table(corpus)
    assert len(table) == corpus.n_tokens
    assert table["token"].to_pylist()[:3] == corpus.sequence(0)[:3]
    names = np.array([corpus.labels[t] for t in truth.labels])
    assert (np.array(table["label"].to_pylist(), object)[truth.voted] == names[truth.voted]).all()
    np.testing.assert_allclose(table["probability"].to_numpy(), truth.proba.max(axis=1))
    last = table.to_pylist()[-1]
    assert last["sequence"] == corpus.sequence_ids[len(corpus) - 1]
    assert last["position"] == len(corpus.sequence(len(corpus) - 1)) - 1
    assert table.column_names == ["sequence", "position", "token", "label", "probability", "entropy", "voted"]
    assert "token" not in truth.to_table().column_names
    assert list(truth.to_table(backend="pandas").columns) == truth.to_table().column_names
    assert truth.to_table(backend="polars").height == corpus.n_tokens
    with pytest.raises(ParameterError, match="backend"):
        truth.to_table(backend="excel")


def test_a_part_called_all_is_not_all() -> None:
    rows = [["X", "X"], ["X", "Y"], ["Y", "X"]]
    crowd = CrowdCorpus.from_sequences(
        [["a", "b"]] * 3,
        {"ann": rows},
        golds={"gold": [["X", "X"]] * 3},
        metadata={"folder": ["all", "folder all", "z"]},
    )
    scores = lasca.compare(crowd, "mv", by="folder")[0].scores
    assert {part: s.n_tokens for part, s in scores.items()} == {
        "all": 6, "folder all": 2, "folder folder all": 2, "z": 2,
    }  # fmt: skip
    assert scores["folder all"].accuracy == 1.0


def test_a_token_without_votes_has_no_label_in_the_table() -> None:
    small = CrowdCorpus.from_sequences([["a", "b"]], {"ann": [["X", None]]})
    assert lasca.MajorityVote().fit(small).to_table()["label"].to_pylist() == ["X", None]


def test_a_truth_scores_itself(corpus: CrowdCorpus, truth: lasca.Truth) -> None:
    scores = truth.score(corpus)
    there = corpus.golds["gold"] >= 0
    assert scores.accuracy == pytest.approx((truth.labels == corpus.golds["gold"])[there & truth.voted].mean())
    assert scores.f1 is None
    assert scores == lasca.compare(corpus, ["mv"])[0].scores["all"]
    first = np.arange(len(corpus)) < 3
    assert truth.score(corpus, "gold", sequences=first).n_tokens == corpus.offsets[3]
    assert truth.score(corpus, "gold", sequences=[0, 1, 2]) == truth.score(corpus, "gold", sequences=first)
    with pytest.raises(CorpusError, match="there is: gold"):
        truth.score(corpus, "silver")
    with pytest.raises(CorpusError, match="not of this corpus"):
        truth.score(corpus.select(sequences=np.arange(5)))


def test_settings_of_one_model_can_be_told_apart_side_by_side(corpus: CrowdCorpus) -> None:
    lines = lasca.compare(corpus, [lasca.MajorityVote(ties="first"), "mv", lasca.DawidSkene(max_iter=1)])
    assert [line.model for line in lines] == ["MajorityVote(ties='first')", "MajorityVote()", "ds"]
    assert lasca.compare(corpus, "mv")[0].scores == lines[1].scores
    assert lasca.compare(corpus, lasca.MajorityVote())[0].model == "mv"
    with pytest.raises(ParameterError, match="model must be one of mv, ds"):
        lasca.compare(corpus, "vm")


def test_ambiguity_as_a_table_names_labels(corpus: CrowdCorpus, truth: lasca.Truth) -> None:
    found = lasca.find_ambiguity(corpus, truth, method="vote-entropy")
    rows = found.to_table(corpus).to_pylist()
    assert len(rows) == len(found.tokens)
    for row, token, candidates in zip(rows, found.tokens.tolist(), found.candidates):
        assert row["token"] == corpus.tokens[token]
        assert corpus.sequence(row["sequence"])[row["position"]] == row["token"]
        assert row["candidates"] == [corpus.labels[t] for t in candidates]
        assert row["candidate_scores"] == list(candidates.values())
    assert found.to_table().column_names == ["token_index", "score", "candidates", "candidate_scores"]
    with pytest.raises(CorpusError, match="not of this corpus"):
        found.to_table(corpus.select(sequences=np.arange(5)))


def test_sequences_by_number_and_by_id(corpus: CrowdCorpus) -> None:
    assert len(corpus) == corpus.n_sequences
    name = corpus.sequence_ids[7]
    assert corpus.index(name) == 7
    assert corpus.sequence(name) == corpus.sequence(7)
    with pytest.raises(CorpusError, match="no sequence of that id"):
        corpus.sequence("nobody")


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda record: pickle.loads(pickle.dumps(record))])  # noqa: S301
def test_records_can_be_copied(again: Any, corpus: CrowdCorpus, truth: lasca.Truth) -> None:
    corpus.index(corpus.sequence_ids[0])  # what is remembered goes along or is made anew
    assert again(corpus) == corpus
    other = again(truth)
    np.testing.assert_array_equal(other.labels, truth.labels)
    assert dict(other.params) == dict(truth.params)
    with pytest.raises((ValueError, TypeError)):
        other.params["x"] = 1
    found = lasca.find_ambiguity(corpus, truth, method="vote-entropy")
    np.testing.assert_array_equal(again(found).tokens, found.tokens)
    confusion = lasca.label_confusion(corpus, truth, found)
    np.testing.assert_array_equal(again(confusion).matrix, confusion.matrix)
    assert truth.draws == {}  # nothing was drawn


def test_errors_cross_processes() -> None:
    for error in (FormatError("bad", path="a.json", line=3, got="x", hint="Do y"), ParameterError("n", 3, "even")):
        other = pickle.loads(pickle.dumps(error))  # noqa: S301
        assert str(other) == str(error)
        assert vars(other) == vars(error)
    corpus = CrowdCorpus.from_sequences([["a"]], {"ann": [["X"]]})
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        asked = pool.submit(corpus.sequence, "nobody")
        with pytest.raises(CorpusError, match="no sequence of that id"):
            asked.result()


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)


def test_records_in_a_notebook_are_harmless() -> None:
    names = [HOSTILE, *(f"worker {i}" for i in range(30))]
    corpus = CrowdCorpus.from_sequences(
        [["a", "b"]], {name: [["X", HOSTILE]] for name in names}, golds={HOSTILE: [["X", "X"]]}
    )
    truth = lasca.MajorityVote().fit(corpus)
    found = lasca.find_ambiguity(corpus, truth, method="vote-entropy")
    run = Run(corpus, truth, found, lasca.label_confusion(corpus, truth, found), lasca.CrfTagger())
    for record in (corpus, truth, run):
        text = record._repr_html_()
        assert Tags(text).found <= {"b", "i", "p", "bdi", "table", "tr", "th", "td"}
        assert "\u202e" not in text
        assert "&lt;script&gt;" in text
        assert "and 11 more" in text
    assert ">62<" in corpus._repr_html_()  # annotations
    assert '<th style="text-align:left"><bdi>converged</bdi></th><td>no<' in (
        lasca.DawidSkene(max_iter=1).fit(corpus)._repr_html_()
    )


def test_the_table_of_an_empty_ambiguity_keeps_its_columns() -> None:
    corpus = CrowdCorpus.from_sequences([["a"]], {"ann": [["X"]], "bob": [["X"]]})
    found = lasca.find_ambiguity(corpus, lasca.MajorityVote().fit(corpus), method="vote-entropy", fraction=0.0001)
    assert isinstance(found.to_table(corpus), pa.Table)

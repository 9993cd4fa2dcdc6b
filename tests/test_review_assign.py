"""Who labels next: the worth of a vote, who has seen what, and batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lasca import simulate
from lasca.corpus import CrowdCorpus
from lasca.errors import ParameterError
from lasca.review.assign import _gain, _greedy, assign
from lasca.truth import Truth, model_class
from test_cli import run
from test_review_server import run_folder


def test_the_worth_of_a_vote_is_that_of_the_naive_sum() -> None:
    rng = np.random.default_rng(0)
    proba, rows = rng.dirichlet(np.ones(4), 20), rng.dirichlet(np.ones(4), 4)
    naive = [sum(max(p[t] * rows[t, s] for t in range(4)) for s in range(4)) for p in proba]
    assert _gain(proba, rows) == pytest.approx(naive)
    assert _gain(proba, np.eye(4)) == pytest.approx(1.0)
    assert (_gain(proba, rows) >= proba.max(axis=1) - 1e-12).all()


def test_nobody_gets_what_they_have_seen_and_the_doubtful_come_first() -> None:
    tokens = [["a"], ["b"], ["c"]]
    people = {"x": [["N"], ["N"], ["N"]], "y": [["N"], ["V"], None], "z": [["N"], None, None]}
    corpus = CrowdCorpus.from_sequences(tokens, people)
    made = assign(corpus, model_class("ds")().fit(corpus), 20)
    pairs = {(a.annotator, a.document) for a in made}
    assert len(pairs) == len(made)
    assert pairs <= {("y", "2"), ("z", "1"), ("z", "2")}
    gains = [a.gain for a in made]
    assert gains == sorted(gains, reverse=True)


def test_who_is_named_twice_gets_nothing_twice() -> None:
    corpus = CrowdCorpus.from_sequences([["a"], ["b"]], {"x": [["N"], ["V"]], "y": [["V"], ["N"]]})
    made = assign(corpus, model_class("mv")().fit(corpus), 20, annotators=["new", "new"])
    assert sorted((a.annotator, a.document) for a in made) == [("new", "0"), ("new", "1")]


def test_what_one_person_said_is_worth_a_second_vote_and_only_of_who_may() -> None:
    tokens = [["a", "b"], ["c", "d"], ["e", "f"]]
    people = {"x": [["N", "V"]] * 3, "y": [["N", "V"], None, None], "z": [["N", "V"], None, None]}
    corpus = CrowdCorpus.from_sequences(tokens, people)
    truth = model_class("ds")().fit(corpus)
    sure = np.zeros_like(truth.proba)
    sure[np.arange(len(sure)), truth.labels] = 1.0
    fields = {name: getattr(truth, name) for name in truth.__dataclass_fields__}
    certain = Truth(
        **fields | {"proba": sure, "confusion": np.tile(np.eye(2, dtype=np.float32) * 0.8 + 0.1, (3, 1, 1))}
    )
    pairs = {(a.annotator, a.document) for a in assign(corpus, certain, 20)}
    assert pairs == {(who, document) for who in "yz" for document in ("1", "2")}
    may = np.array([[True] * 3, [True, True, False], [False] * 3])
    assert {(a.annotator, a.document) for a in assign(corpus, certain, 20, may=may)} == {("y", "1")}
    settled = np.array([False, False, True, True, False, False])  # somebody decided all of the second document
    assert {a.document for a in assign(corpus, certain, 20, settled=settled)} == {"2"}


def test_only_people_are_asked_and_not_for_what_is_known() -> None:
    """A model or a rule that votes is no annotator who could be given a document."""
    tokens = [["a"], ["b"], ["c"]]
    people = {"x": [["N"], None, None], "y": [None, ["N"], None], "z": [["N"], None, ["V"]]}
    corpus = CrowdCorpus.from_sequences(tokens, people, kinds=("person", "person", "rule"))
    corpus = corpus.with_soft("gpt", [[0.6, 0.4], [np.nan, np.nan], [0.9, 0.1]])
    fitted = model_class("ds")().fit(corpus)
    fields = {name: getattr(fitted, name) for name in fitted.__dataclass_fields__}
    confusion = np.tile(np.eye(2, dtype=np.float32) * 0.8 + 0.1, (4, 1, 1))
    truth = Truth(**fields | {"proba": np.full((3, 2), 0.5, np.float32), "confusion": confusion})
    assert {a.annotator for a in assign(corpus, truth, 20)} == {"x", "y"}
    known = corpus.with_known(np.array([-1, 0, -1]))
    assert {a.document for a in assign(known, truth, 20)} == {"0", "2"}
    assert assign(corpus, truth, 1, annotators=["z"])[0].annotator == "z"  # who is named is asked
    with pytest.raises(ParameterError, match="one name"):
        assign(corpus.select(annotators=["z", "gpt"]), truth, 1)


def test_budget_and_the_most_for_one() -> None:
    corpus = simulate.demo_crowd("ner")
    truth = model_class("ds")().fit(corpus)
    made = assign(corpus, truth, 30, most=4)
    assert len(made) == 30
    assert max(np.unique([a.annotator for a in made], return_counts=True)[1]) <= 4
    new = assign(corpus, truth, 5, annotators=["somebody new"])
    assert {a.annotator for a in new} == {"somebody new"}
    assert len({a.document for a in new}) == 5
    two = assign(corpus, truth, 6, annotators=["anna", "ben"])  # who are worth the same have the same to do
    assert [a.annotator for a in two].count("anna") == 3
    one = {d: {a.annotator for a in two if a.document == d} for d in {a.document for a in two}}
    assert sum(map(len, one.values())) == 6  # nobody has a document twice
    with pytest.raises(ParameterError):
        assign(corpus, truth, 0)


def test_a_vote_handed_out_halves_what_the_next_one_is_worth() -> None:
    worth = np.array([[1.0, 0.6, 0.3]] * 2)
    names, none = ["long", "short", "last"], np.array([0, 1, 2])
    made = _greedy(worth, worth, ["ann", "ben"], names, none, np.ones(3, np.int64), 6, None)
    assert [(a.document, a.gain) for a in made] == [
        ("long", 1.0), ("short", 0.6), ("long", 0.5), ("short", 0.3), ("last", 0.3), ("last", 0.15)
    ]  # fmt: skip
    assert {a.document for a in made if a.annotator == "ann"} == set(names)


def test_the_command_writes_three_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_folder(tmp_path / "out")
    words: list[Any] = ["next", folder, "-o", tmp_path / "tasks", "--budget", 7]
    assert run(*map(str, words), monkeypatch=monkeypatch) == 0
    rows = [json.loads(line) for line in (tmp_path / "tasks" / "next.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 7
    tasks = json.loads((tmp_path / "tasks" / "label-studio.json").read_text(encoding="utf-8"))
    handed = {str(task["id"]): task["data"]["annotators"] for task in tasks}
    assert {(row["annotator"], s) for row in rows for s in row["sequences"]} == {
        (name, s) for s, people in handed.items() for name in people
    }
    assert "there are no more" not in capsys.readouterr().err
    words = ["next", folder, "-o", tmp_path / "all", "--budget", 1000, "--annotators", "somebody new", "--most", 3]
    assert run(*map(str, words), monkeypatch=monkeypatch) == 0
    assert "there are no more (1,000 were asked for)" in capsys.readouterr().err
    words = ["next", folder, "-o", tmp_path / "two", "--budget", 1000, "--annotators", "anna,ben"]
    assert run(*map(str, words), monkeypatch=monkeypatch) == 0
    rows = [json.loads(line) for line in (tmp_path / "two" / "next.jsonl").read_text(encoding="utf-8").splitlines()]
    documents = {row["document"] for row in rows}
    assert f"{len(documents)} documents for 2 annotators, {len(rows)} votes: " in capsys.readouterr().out

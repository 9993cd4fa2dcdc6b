"""The corpus that ships with the package: what is in it, that it can be made anew, and its simulated crowd."""

from __future__ import annotations

import importlib.util
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import lasca
from lasca import evaluate, simulate
from lasca.datasets import demo
from lasca.errors import ParameterError

SCRIPT = Path(__file__).resolve().parents[1] / "examples" / "make_demo_corpus.py"
STORED = files("lasca.datasets.demo").joinpath("corpus.tsv")


def test_the_script_writes_the_file_byte_for_byte(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("make_demo_corpus", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_demo_corpus"] = module
    try:
        spec.loader.exec_module(module)
        module.main(tmp_path / "corpus.tsv")
    finally:
        del sys.modules["make_demo_corpus"]
    assert (tmp_path / "corpus.tsv").read_bytes() == STORED.read_bytes()


def test_the_file_is_small_and_regular() -> None:
    data = STORED.read_bytes()
    assert len(data) < 200_000
    assert b"\r" not in data
    blocks = data.decode().strip("\n").split("\n\n")
    assert len(set(blocks)) == len(blocks)  # no sentence twice
    assert all(len(line.split("\t")) == 5 and all(line.split("\t")) for block in blocks for line in block.split("\n"))


@pytest.mark.parametrize(("task", "n_labels"), [("pos", 12), ("ner", 9)])
def test_load(task: str, n_labels: int) -> None:
    corpus = demo.load(task)
    assert 300 <= corpus.n_sequences <= 400
    assert (corpus.n_labels, corpus.n_annotators) == (n_labels, 0)
    assert set(corpus.golds) == {"gold", "gold2"}
    for gold in corpus.golds.values():
        assert gold.min() >= 0
        assert len(np.unique(gold)) == n_labels
    differ = corpus.golds["gold"] != corpus.golds["gold2"]
    assert 0.03 < differ.mean() < 0.17
    assert len({word.lower() for word in corpus.tokens}) > 850
    assert corpus.tokens == demo.load("pos").tokens


def test_entities_are_legal_and_varied() -> None:
    corpus = demo.load("ner")
    for gold in corpus.golds.values():
        lenient = evaluate.find_spans(gold, corpus.offsets, corpus.labels)
        strict = evaluate.find_spans(gold, corpus.offsets, corpus.labels, mode="strict", scheme="iob2")
        np.testing.assert_array_equal(lenient[0], strict[0])
        count = np.bincount(lenient[2], minlength=len(lenient[3]))
        assert all(count[lenient[3].index(kind)] >= 50 for kind in ("PER", "LOC", "ORG", "MISC"))
    scores = evaluate.spans_from_codes(corpus.golds["gold"], corpus.golds["gold2"], corpus.offsets, corpus.labels)
    assert 0.7 < scores.f1 < 0.9


def test_ambiguous_words_are_there() -> None:
    corpus = demo.load("pos")
    words, gold, second = list(corpus.tokens), corpus.golds["gold"], corpus.golds["gold2"]
    ambiguous = {words[i].lower() for i in np.flatnonzero(gold != second)}
    assert {"that", "light", "to", "closed", "up", "second", "fishing"} <= ambiguous


def test_unknown_task() -> None:
    with pytest.raises(ParameterError, match="task must be one of 'pos', 'ner'"):
        demo.load("chunks")


@pytest.mark.parametrize("task", ["pos", "ner"])
def test_demo_crowd(task: str) -> None:
    crowd = simulate.demo_crowd(task)
    assert crowd == simulate.demo_crowd(task)
    assert crowd != simulate.demo_crowd(task, seed=1)
    assert (np.diff(crowd.token_start) == 5).all()
    assert set(simulate.groups_of(crowd)) == {"careful", "quick", "careless"}
    gold = crowd.golds["gold"]
    right = crowd.annotation_label == gold[crowd.annotation_token]
    by_group = np.array(simulate.groups_of(crowd))[crowd.annotation_annotator]
    assert (
        right[by_group == "careful"].mean() > right[by_group == "quick"].mean() > right[by_group == "careless"].mean()
    )
    vote = lasca.MajorityVote().fit(crowd).labels
    if task == "ner":
        found = evaluate.spans_from_codes(gold, vote, crowd.offsets, crowd.labels).f1
        assert 0.75 < found < 0.92  # people get it mostly right, and there is something to gain
    else:
        assert 0.88 < (vote == gold)[gold >= 0].mean() < 0.95

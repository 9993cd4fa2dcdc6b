"""The bench of crowds: its scores are what their definitions say, and its rows are what they promise."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from lasca import evaluate, simulate
from lasca.corpus import CrowdCorpus
from lasca.truth import MajorityVote, Truth
from lasca.truth.families import Families, declared_families, find_families
from lasca.truth.guards import Look
from truth_cases import everything

EXPERIMENTS = Path(__file__).resolve().parents[1] / "experiments"


@pytest.fixture(scope="module")
def bench() -> Any:
    """The modules of the bench, which lie outside the package."""
    sys.path.insert(0, str(EXPERIMENTS))
    try:
        from crowds import corpora, results, rows, scores, tables

        found = ModuleType("bench")
        found.corpora, found.results, found.rows, found.scores, found.tables = corpora, results, rows, scores, tables
        return found
    finally:
        sys.path.remove(str(EXPERIMENTS))


@pytest.fixture(scope="module")
def case(bench: Any) -> tuple[CrowdCorpus, Truth]:
    corpus = bench.corpora.demo()
    return corpus, MajorityVote().fit(corpus)


def naive_relaxed(corpus: CrowdCorpus, labels: Any) -> float:
    gold, found = (evaluate.find_spans(c, corpus.offsets, corpus.labels) for c in (corpus.golds["gold"], labels))

    def share(mine: Any, other: Any) -> float:
        shares = []
        for start, end, kind in zip(*mine[:3]):
            inside = {
                t
                for a, b, k in zip(*other[:3])
                if other[3][k] == mine[3][kind]
                for t in range(a, b)
                if start <= t < end
            }
            shares.append(len(inside) / (end - start))
        return sum(shares) / len(shares)

    precision, recall = share(found, gold), share(gold, found)
    return 200 * precision * recall / (precision + recall)


def test_scores_are_those_of_evaluate(bench: Any, case: tuple[CrowdCorpus, Truth]) -> None:
    corpus, truth = case
    gold = corpus.golds["gold"]
    spans = evaluate.spans_from_codes(gold, truth.labels, corpus.offsets, corpus.labels)
    tokens = evaluate.tokens_from_codes(gold, truth.labels, corpus.labels, offsets=corpus.offsets)
    found = bench.scores.score(corpus, truth, "demo")
    assert found["value"] == pytest.approx(100 * spans.f1)
    assert found["accuracy"] == pytest.approx(100 * tokens.accuracy)
    row = replace(bench.rows.ROWS["demo"], metric="relaxed")
    assert bench.scores.score(corpus, truth, row)["value"] == pytest.approx(naive_relaxed(corpus, truth.labels))


def test_documents_add_up_and_the_bootstrap_resamples_them(bench: Any, case: tuple[CrowdCorpus, Truth]) -> None:
    corpus, truth = case
    mine = bench.scores.score(corpus, truth, "demo")
    other = bench.scores.score(corpus, replace(truth, labels=corpus.golds["gold"].copy()), "demo")
    assert other["value"] == 100
    low, high = bench.scores.bootstrap(mine["documents"], other["documents"], "span")
    assert low < mine["value"] - 100 < high < 0
    assert bench.scores.bootstrap(mine["documents"], mine["documents"], "span") == (0, 0)


def test_unanimous_tokens_that_are_overruled(bench: Any) -> None:
    corpus = CrowdCorpus.from_sequences(
        [["a", "b", "c", "d"]],
        {"x": [["N", "N", "N", "V"]], "y": [["N", "N", "V", None]], "z": [["N", None, "N", None]]},
        golds={"gold": [["V", "N", "N", "N"]]},
    )
    truth = MajorityVote().fit(corpus)
    wrong = replace(truth, labels=np.array([corpus.labels.index("V")] * 4, np.int16))
    found = bench.scores.unanimity(corpus, wrong)
    assert (found["tokens_2"], found["overruled_2"], found["truth_right_2"], found["people_right_2"]) == (2, 2, 1, 1)
    assert (found["tokens_3"], found["overruled_3"], found["truth_right_3"], found["people_right_3"]) == (1, 1, 1, 0)


def test_few_annotators_per_document_and_held_out_ones(bench: Any) -> None:
    corpus = bench.corpora.with_units(simulate.demo_crowd("ner"))
    few = bench.corpora.per_document(corpus, 2)
    assert set(np.diff(few.token_start).tolist()) == {2}
    grouped = bench.corpora.with_units(corpus, [str(i // 10) for i in range(corpus.n_sequences)])
    assert len(grouped.metadata[bench.corpora.UNIT].codes()[1]) == 35
    parts = bench.corpora.without_each(corpus)
    assert set(parts) == set(corpus.annotators)
    name, rest = next(iter(parts.items()))
    assert name not in rest.annotators
    own = corpus.select(annotators=[name])
    assert (rest.golds["gold"] >= 0).sum() == own.n_annotations


def test_near_copies_draw_a_tenth_anew_and_nobody_is_told(bench: Any, data_dir: Path) -> None:
    corpus = bench.corpora.machines(copies=5)
    assert [name for name in corpus.annotators if name.startswith("llm")] == [f"llm-{i}" for i in range(1, 6)]
    assert set(corpus.kinds) == {"person"}
    said = [corpus.annotation_label[corpus.annotation_annotator == corpus.annotators.index(f"llm-{i}")] for i in (1, 2)]
    assert len(said[0]) == len(said[1]) == corpus.n_tokens
    assert 0.82 < (said[0] == said[1]).mean() < 0.95


def test_the_table_of_rows(bench: Any) -> None:
    rows = bench.rows.ROWS
    assert all(row.metric in bench.rows.METRICS for row in rows.values())
    assert not any(row.counts for row in rows.values() if row.copies or row.final or row.metric == "accuracy")
    assert all(row.final == row.name.startswith("final") for row in rows.values())
    assert sum(row.counts for row in rows.values()) >= 20


def test_specs_of_models(bench: Any) -> None:
    assert bench.results.parse_spec("ds") == ("ds", {})
    name, params = bench.results.parse_spec("hc-seq:text=false,rounds=2,start=[1,2]")
    assert (name, params) == ("hc-seq", {"text": False, "rounds": 2, "start": [1, 2]})


@pytest.mark.data
def test_prompts_of_one_model_are_a_family(bench: Any) -> None:
    if not bench.corpora.data_folder().is_dir():
        pytest.skip("the real data are not there")
    corpus = bench.corpora.prompts((7, 7, 1, 1, 1, 1))
    found = families_of(corpus)
    assert found.members() == [list(range(7)), list(range(7, 14))]
    assert 1.5 < found.counts_as(range(7)) < 3.5
    alone = bench.corpora.prompts((1,) * 6)
    assert families_of(alone).members() == []


def families_of(corpus: CrowdCorpus) -> Families:
    block = everything(corpus)
    look = Look(corpus.labels, declared_families(corpus.families))
    crowd = look.crowd(look.summarise(block))
    known = crowd.outside, crowd.knows, crowd.kind_of
    return find_families(lambda pairs: pairs.summarise(block), corpus.families, *known)

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import lasca
from lasca.ambiguity import Ambiguity, find_ambiguity
from lasca.ambiguity.write import label_studio_tasks, rows, table, write_all
from lasca.corpus import CrowdCorpus
from lasca.errors import CorpusError, StoreError


@pytest.fixture(scope="module")
def records() -> tuple[CrowdCorpus, lasca.Truth, Ambiguity]:
    """Forty sentences in which everybody agrees, but for one token that begins like a formula."""
    tokens = [["=1+2", "met", "Ada", "in", "Paris"]] * 40
    usual = ["O", "O", "B-PER", "O", "B-LOC"]
    other = ["B-LOC", "O", "B-PER", "O", "B-LOC"]
    annotations = {
        name: [other if name in ("cy", "di") and s == 7 else usual for s in range(40)]
        for name in ("ann", "bob", "cy", "di", "eve")
    }
    ids = [f"s{s}" for s in range(40)]
    corpus = CrowdCorpus.from_sequences(tokens, annotations, golds={"gold": [usual] * 40}, sequence_ids=ids)
    truth = lasca.MajorityVote().fit(corpus)
    return corpus, truth, find_ambiguity(corpus, truth, fraction=0.01)


def test_rows_say_where_what_and_who(records: tuple[CrowdCorpus, lasca.Truth, Ambiguity]) -> None:
    corpus, truth, found = records
    assert len(found.tokens) == 1  # a hundredth would be two, but everybody agrees on all the others
    (row,) = rows(*records, limit=1)
    assert (row["sequence"], row["position"], row["token"], row["rank"]) == ("s7", 0, "=1+2", 1)
    assert (row["before"], row["after"]) == ("", "met Ada in Paris")
    assert row["votes"] == {"O": ["ann", "bob", "eve"], "B-LOC": ["cy", "di"]}
    assert [c["label"] for c in row["candidates"]][:2] in (["O", "B-LOC"], ["B-LOC", "O"])
    assert row["truth"] == "O"
    assert row["golds"] == {"gold": "O"}
    assert row["score"] == found.score[35]
    assert found.pair_share is not None
    assert 0.5 <= row["share"] == found.pair_share[0, 0] <= 0.8
    assert rows(corpus, truth, find_ambiguity(corpus, truth, "vote-entropy"), limit=1)[0]["share"] is None


def test_it_says_how_many_and_is_listed_with_its_own_corpus_only(
    records: tuple[CrowdCorpus, lasca.Truth, Ambiguity],
) -> None:
    corpus, truth, found = records
    assert repr(found) == f"Ambiguity(two-truths: 1 of 200 tokens, share {found.share:.3f})"
    plain = find_ambiguity(corpus, truth, "vote-entropy", fraction=0.01)
    assert repr(plain) == f"Ambiguity(vote-entropy: {len(plain.tokens)} of 200 tokens)"
    (row,) = found.to_table(corpus).to_pylist()
    assert (row["sequence"], row["position"], row["token"]) == ("s7", 0, "=1+2")
    with pytest.raises(CorpusError, match="not of this corpus"):
        found.to_table(corpus.select(sequences=range(39)))


def test_votes_are_told_by_their_number_then_by_label() -> None:
    given = {"z": "A", "y": "B", "x": "B", "w": "C", "v": "A", "u": "D"}
    corpus = CrowdCorpus.from_sequences([["w"]], {name: [[label]] for name, label in given.items()})
    truth = lasca.MajorityVote().fit(corpus)
    (row,) = rows(corpus, truth, find_ambiguity(corpus, truth, "vote-entropy", fraction=1.0))
    assert list(row["votes"].items()) == [("A", ["v", "z"]), ("B", ["x", "y"]), ("C", ["w"]), ("D", ["u"])]


def test_context_is_cut_on_the_far_side() -> None:
    words = [f"w{i}" for i in range(60)]
    corpus = CrowdCorpus.from_sequences(
        [words], {a: [["A"] * 30 + [a.upper()] + ["A"] * 29] for a in ("a", "b")}, sequence_ids=["s"]
    )
    truth = lasca.MajorityVote().fit(corpus)
    (row,) = rows(corpus, truth, find_ambiguity(corpus, truth, "vote-entropy"), limit=1, width=12)
    assert row["token"] == "w30"
    assert (row["before"], row["after"]) == ("…w27 w28 w29", "w31 w32 w33…")
    whole = len(" ".join(words[:30]))
    (row,) = rows(corpus, truth, find_ambiguity(corpus, truth, "vote-entropy"), limit=1, width=whole)
    assert row["before"] == " ".join(words[:30])


def test_a_gold_takes_no_other_columns_place(records: tuple[CrowdCorpus, lasca.Truth, Ambiguity]) -> None:
    (row,) = rows(*records, limit=1)
    columns = table([row | {"golds": {"truth": "B-LOC", "mine": "O"}}])
    assert (columns["truth"], columns["gold truth"], columns["mine"]) == (["O"], ["B-LOC"], ["O"])


def test_files_hold_the_rows_and_the_csv_is_harmless(
    records: tuple[CrowdCorpus, lasca.Truth, Ambiguity], tmp_path: Path
) -> None:
    write_all(*records, tmp_path / "out")
    made = rows(*records, width=200)
    lines = (tmp_path / "out" / "ambiguous.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == made
    with (tmp_path / "out" / "ambiguous.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert table[0]["token"] == "'=1+2"
    assert "O: ann, bob, eve; B-LOC: cy, di" in table[0]["votes"]
    assert len(table) == 1
    read = pq.read_table(tmp_path / "out" / "ambiguous.parquet").to_pylist()
    assert read[0]["token"] == "=1+2"
    assert read[0]["votes"][0] == {"label": "O", "annotators": ["ann", "bob", "eve"]}
    with pytest.raises(StoreError, match="not empty"):
        write_all(*records, tmp_path / "out")
    write_all(*records, tmp_path / "out", overwrite=True)


def test_label_studio_tasks_offer_both_readings(
    records: tuple[CrowdCorpus, lasca.Truth, Ambiguity], tmp_path: Path
) -> None:
    corpus, truth, found = records
    tasks = label_studio_tasks(corpus, truth, found)
    first = tasks[0]
    assert first["id"] == "s7"
    assert first["data"]["text"] == "=1+2 met Ada in Paris"
    assert first["data"]["ambiguity"] == found.score[35]
    assert first["data"]["ambiguous"][0]["token"] == "=1+2"
    spans = [{r["value"]["text"]: r["value"]["labels"] for r in p["result"]} for p in first["predictions"]]
    assert spans == [{"Ada": ["PER"], "Paris": ["LOC"]}, {"=1+2": ["LOC"], "Ada": ["PER"], "Paris": ["LOC"]}]
    people = {a["completed_by"] for a in first["annotations"] if not a["ground_truth"]}
    assert people == set(corpus.annotators)
    write_all(*records, tmp_path / "out")
    back = lasca.read(tmp_path / "out" / "label-studio.json", format="label-studio").crowd()
    assert set(back.annotators) == set(corpus.annotators)
    scores = [task["data"]["ambiguity"] for task in tasks]
    assert scores == sorted(scores, reverse=True)
    assert np.isfinite(scores).all()


def test_nothing_flagged_writes_empty_files(
    records: tuple[CrowdCorpus, lasca.Truth, Ambiguity], tmp_path: Path
) -> None:
    corpus, truth, _ = records
    none = find_ambiguity(corpus, truth, fraction=0.0)
    write_all(corpus, truth, none, tmp_path / "out")
    assert (tmp_path / "out" / "ambiguous.jsonl").read_text() == ""
    assert json.loads((tmp_path / "out" / "label-studio.json").read_text()) == []
    assert pq.read_table(tmp_path / "out" / "ambiguous.parquet").num_rows == 0

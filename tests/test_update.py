"""More data for an earlier run: what joins what, how the truth goes on, and what is said about it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lasca import formats, simulate
from lasca.corpus import CrowdCorpus, Strings
from lasca.errors import CorpusError, StoreError
from lasca.pipeline.folder import save_truth
from lasca.pipeline.update import changes, go_on, join, update
from lasca.pipeline.way import run
from lasca.review.decisions import Decision, Log
from lasca.review.project import Project
from lasca.truth import Truth, model_class
from test_cli import run as lasca


@pytest.fixture(scope="module")
def parts() -> tuple[CrowdCorpus, CrowdCorpus]:
    """Old and new texts of the demo; one annotator is seen in the new ones alone."""
    corpus = simulate.demo_crowd("ner")
    old = corpus.select(sequences=np.arange(60), annotators=corpus.annotators[1:])
    return old, corpus.select(sequences=np.arange(60, 80))


def aggregated(corpus: CrowdCorpus, model: str, folder: Path) -> Path:
    save_truth(corpus, model_class(model)().fit(corpus), folder)
    return folder


def test_statistics_go_on_without_the_old_votes(parts: tuple[CrowdCorpus, CrowdCorpus]) -> None:
    old, new = parts
    before = model_class("ds")().fit(old)
    joined = join(old, new)
    after, how = go_on(model_class("ds")(), before, joined)
    assert "only the new texts" in how
    assert (joined.n_new, joined.touched, joined.new_votes) == (20, 0, new.n_annotations)
    n = old.n_tokens
    assert after.sequences()[:60] == before.sequences()
    alone = model_class("ds")().fit(joined.corpus.select(sequences=np.arange(60, 80)), history=before)
    assert (after.proba[n:] == alone.proba).all()
    assert after.statistics["totals"].sum() == pytest.approx(joined.corpus.n_tokens)
    table = {row["name"]: row for row in after.annotators.to_pylist()}
    for name, a in zip(joined.corpus.annotators, range(joined.corpus.n_annotators)):
        mine = joined.corpus.annotation_annotator == a
        agreed = after.proba[joined.corpus.annotation_token[mine], joined.corpus.annotation_label[mine]].sum()
        assert table[name]["n"] == mine.sum()
        assert table[name]["reliability"] == pytest.approx((agreed + 0.5) / (mine.sum() + 1), abs=1e-4)


def test_a_model_without_statistics_is_run_anew_and_says_so(parts: tuple[CrowdCorpus, CrowdCorpus]) -> None:
    old, new = parts
    joined = join(old, new)
    after, how = go_on(model_class("mv")(), model_class("mv")().fit(old), joined)
    assert "mv keeps no statistics" in how
    assert (after.proba == model_class("mv")().fit(CrowdCorpus.concat([old, new])).proba).all()


def test_new_votes_on_old_texts_join_and_the_last_word_counts(parts: tuple[CrowdCorpus, CrowdCorpus]) -> None:
    old, _ = parts
    name = old.annotators[0]
    s = int(old.token_sequence[old.annotation_token[old.annotation_annotator == 0][0]])
    tokens = old.sequence(s)
    said = CrowdCorpus.from_sequences(
        [tokens], {name: [["B-NEW"] * len(tokens)], "eve": [["O"] * len(tokens)]}, sequence_ids=[old.sequence_ids[s]]
    )
    joined = join(old, said)
    assert (joined.n_new, joined.touched, joined.new_votes) == (0, 1, len(tokens))
    assert joined.changed_votes == len(tokens)
    again = join(joined.corpus, said)
    assert (again.touched, again.new_votes, again.changed_votes, again.same_votes) == (0, 0, 0, 2 * len(tokens))
    assert again.corpus.n_annotations == joined.corpus.n_annotations == old.n_annotations + len(tokens)
    whole = joined.corpus
    mine = whole.annotation_annotator == whole.annotators.index(name)
    here = mine & (whole.token_sequence[whole.annotation_token] == s)
    assert {whole.labels[c] for c in whole.annotation_label[here]} == {"B-NEW"}
    _, how = go_on(model_class("ds")(), model_class("ds")().fit(old), joined)
    assert "new votes on old texts" in how


def test_new_golds_fill_gaps_only_and_where_nobody_voted_no_label_flips() -> None:
    words, known = [["a", "b", "c", "d"]], [["X", None, None, None]]
    old = CrowdCorpus.from_sequences(words, {"ann": [["X", "Y", "X", None]]}, golds={"expert": known})
    said_now, known = {"ben": [["Y", "Y", "Y", "Y"]], "cyd": [["Y", "Y", "X", "Y"]]}, [["Y", "Y", None, "X"]]
    more = CrowdCorpus.from_sequences(words, said_now, golds={"expert": known})
    joined = join(old, more)
    assert joined.corpus.label_names(joined.corpus.golds["expert"]) == [["X", "Y", None, "X"]]
    before, after = (model_class("mv")().fit(corpus) for corpus in (old, joined.corpus))
    before = replace(before, labels=np.array([0, 1, 0, 0], np.int16))  # of the last one X is a guess
    assert after.sequences() == [["Y", "Y", "X", "Y"]]
    said = changes(old, before, joined, after)
    assert said["flipped"] == {
        "tokens": 1,
        "examples": [{"sequence": old.sequence_ids[0], "token": "a", "before": "X", "after": "Y"}],
    }
    assert said["annotators"] == ["ben", "cyd"]


def test_an_id_that_another_text_has_is_not_the_same_sequence(parts: tuple[CrowdCorpus, CrowdCorpus]) -> None:
    old, new = parts
    clash = replace(new, sequence_ids=Strings(list(old.sequence_ids)[:20]))
    joined = join(old, clash)
    assert joined.n_new == 20
    assert joined.renamed == tuple(f"{id} (2)" for id in list(old.sequence_ids)[:20])
    assert len(set(joined.corpus.sequence_ids)) == 80


def test_soft_votes_on_old_texts_are_refused(parts: tuple[CrowdCorpus, CrowdCorpus]) -> None:
    old, _ = parts
    even = np.full((old.n_tokens, old.n_labels), 1 / old.n_labels)
    with pytest.raises(CorpusError, match="soft votes"):
        join(old, old.with_soft("llm", even))


def test_the_command_says_what_changed_and_decisions_go_along(
    parts: tuple[CrowdCorpus, CrowdCorpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    old, new = parts
    folder = aggregated(old, "ds", tmp_path / "out")
    Project(folder).log.add([Decision(old.sequence_ids[3], 0, 1, ((),), who="ann")])
    formats.write(new, tmp_path / "new.json", "label-studio")
    words: list[Any] = ["update", folder, tmp_path / "new.json", "-o", tmp_path / "two"]
    assert lasca(*map(str, words), monkeypatch=monkeypatch) == 0
    said, noted = capsys.readouterr()
    assert "note: The format was detected: label-studio." in noted
    assert "20 new sequences" in said
    assert "only the new texts were inferred" in said
    assert f"New annotators: 1 ({simulate.demo_crowd('ner').annotators[0]})" in said
    assert "Labels of old texts that flipped: 0 tokens" in said
    assert "1 decision went along" in said
    made = Project(tmp_path / "two")
    assert made.corpus.n_sequences == 80
    assert [d.who for d in made.standing()] == ["ann"]
    assert made.truth.proba.shape[0] == made.corpus.n_tokens
    assert Truth.load(folder / "truth").proba.shape[0] == old.n_tokens  # the earlier run is as it was


def test_a_whole_run_stays_one(parts: tuple[CrowdCorpus, CrowdCorpus], tmp_path: Path) -> None:
    old, new = parts
    run(old, output=tmp_path / "out", model="ds", method="vote-entropy", tagger={"max_iter": 3})
    shares: list[tuple[float, str]] = []
    said = update(tmp_path / "out", new, output=tmp_path / "two", progress=lambda *what: shares.append(what))
    assert shares == sorted(shares, key=lambda what: what[0])
    assert any("tagger" in words for _, words in shares)  # it stood at the truth for minutes
    update(tmp_path / "out", new, output=tmp_path / "two", overwrite=True)  # nobody decided anything
    record = json.loads((tmp_path / "two" / "run.json").read_text(encoding="utf-8"))
    assert record["update"]["sequences"] == said["sequences"] == 20
    assert record["parameters"]["model"] == "ds"
    assert (tmp_path / "two" / "report.html").is_file()
    assert (tmp_path / "two" / "queue.csv").is_file()


def test_an_update_is_never_without_its_decisions(
    parts: tuple[CrowdCorpus, CrowdCorpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were copied when the folder was in its place: a kill between left a run that nobody had decided about."""
    old, new = parts
    folder = aggregated(old, "ds", tmp_path / "out")
    Project(folder).log.add([Decision(old.sequence_ids[3], 0, 1, ((),), who="ann")])
    with monkeypatch.context() as patch:
        patch.setattr(Log, "copy", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            update(folder, new, output=tmp_path / "two")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    update(folder, new, output=tmp_path / "two")
    assert len(Project(tmp_path / "two").standing()) == 1
    with pytest.raises(StoreError, match="holds decisions of people"):
        update(folder, new, output=tmp_path / "two", overwrite=True)
    assert len(Project(tmp_path / "two").standing()) == 1


def test_pseudonyms_cannot_be_matched(parts: tuple[CrowdCorpus, CrowdCorpus], tmp_path: Path) -> None:
    old, new = parts
    run(old, output=tmp_path / "out", model="ds", method="vote-entropy", pseudonyms=True, tagger={"max_iter": 1})
    with pytest.raises(StoreError, match="pseudonyms"):
        update(tmp_path / "out", new, output=tmp_path / "two")

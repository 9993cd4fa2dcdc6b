"""decide, accept, finish and review as a user meets them."""

from __future__ import annotations

import csv
import importlib.util
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lasca import formats, simulate
from lasca.corpus import CrowdCorpus
from lasca.errors import LascaWarning
from lasca.pipeline.folder import save_truth
from lasca.review.decisions import Decision
from lasca.review.finish import _written, card_of
from lasca.review.project import Fit, Project
from lasca.review.queue import make_queue, rows, write_queue
from lasca.review.session import Session
from lasca.truth import Truth, model_class
from test_cli import run
from test_review_server import run_folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = run_folder(tmp_path_factory.mktemp("run") / "out")
    project = Project(folder)
    write_queue(project.corpus, make_queue(project.corpus, project.truth), folder)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    import shutil

    shutil.copytree(made, tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def lasca_(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda *args: run(*map(str, args), monkeypatch=monkeypatch)


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "queue.jsonl").read_text(encoding="utf-8").splitlines()]


def test_without_the_extra_one_line_says_how_to_get_it(
    lasca_: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "starlette" else real(name, *a))
    assert lasca_("review", folder) == 1
    said = capsys.readouterr().err
    assert said == "lasca: lasca review needs two more packages: pip install 'lasca[review]'\n"


def test_a_queue_filled_in_by_hand_comes_back(lasca_: Any, folder: Path, tmp_path: Path) -> None:
    with (folder / "queue.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    rows = rows_of(folder)
    table[0]["decision"] = "2"
    table[1]["decision"] = "0"
    table[2]["decision"] = "1+2"
    start, kind = rows[3]["start"], "PER"
    table[3]["decision"] = f"{start}-{start + 1}:{kind}"
    with (tmp_path / "filled.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows(table)
    assert lasca_("decide", folder, tmp_path / "filled.csv", "--who", "ann") == 0
    by_place = {(d.sequence, d.start): d.readings for d in Project(folder).standing()}
    expected = [
        (tuple(map(tuple, rows[0]["candidates"][1]["spans"])),),
        ((),),
        tuple(tuple(map(tuple, c["spans"])) for c in rows[2]["candidates"][:2]),
        (((start, start + 1, kind),),),
    ]
    assert [by_place[row["sequence"], row["start"]] for row in rows[:4]] == expected


def test_labels_that_are_numbers_are_chosen_by_themselves(
    lasca_: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Candidates were numbered: "2" took the second one, which was label 1."""
    people = {"a": [["2"]] * 3 + [["7"]], "b": [["2"]] * 3 + [["7"]], "c": [["1"]] * 3 + [["x"]]}
    corpus = CrowdCorpus.from_sequences([["_"]] * 4, people)
    folder = tmp_path / "out"
    truth = model_class("mv")().fit(corpus)
    save_truth(corpus, truth, folder)
    write_queue(corpus, make_queue(corpus, truth), folder)
    with (folder / "queue.csv").open(encoding="utf-8", newline="") as file:
        table = {row["sequence"]: row for row in csv.DictReader(file)}
    assert table["0"]["candidates"] == "2: 2 | 1: 1"
    assert table["3"]["candidates"] == "7: 7 | 3: x"
    session = Session(Project(folder), audit_every=0)
    assert [c["key"] for c in session.item(table["3"]["item"])["candidates"]] == ["7", "3"]
    filled = tmp_path / "filled.json"
    for said, taken in (("1", "1"), ("2", "2"), ("2+1", "2")):
        filled.write_text(json.dumps([{"item": table["0"]["item"], "decision": said, "who": said}]), encoding="utf-8")
        assert lasca_("decide", folder, filled) == 0
        assert Project(folder).log.live()[-1].readings[0] == ((0, 1, taken),)
    filled.write_text(json.dumps([{"item": table["0"]["item"], "decision": "7"}]), encoding="utf-8")
    assert lasca_("decide", folder, filled) == 2  # a label, but none of the candidates
    assert "The item has 2 candidates (2, 1)" in capsys.readouterr().err


def test_words_with_odd_line_ends_lose_no_decision(lasca_: Any, tmp_path: Path) -> None:
    """U+2028 and NEL cut the rows of queue.csv in two, whose decisions were silently left out, and queue.jsonl's."""
    tokens = [["Ada\u2028", "x\x85y", "met\x0c", 'Bob "\n"', "z"]] * 2
    people = {"a": [["B-X", "O", "O", "B-X", "O"]] * 2, "b": [["O", "O", "B-X", "O", "O"]] * 2}
    corpus = CrowdCorpus.from_sequences(tokens, people, labels=["I-X"])
    truth = model_class("mv")().fit(corpus)
    with pytest.warns(
        LascaWarning, match="^labels.conll: CoNLL cannot hold everything"
    ):  # and no scratch folder's name
        save_truth(corpus, truth, tmp_path / "out")
    write_queue(corpus, make_queue(corpus, truth), tmp_path / "out")
    with (tmp_path / "out" / "queue.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    with (tmp_path / "filled.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows([row | {"decision": "0"} for row in table])
    assert lasca_("decide", tmp_path / "out", tmp_path / "filled.csv") == 0
    assert len(Project(tmp_path / "out").standing()) == len(table) == 6


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_spreadsheets_separate_columns_as_their_country_does_and_cells_may_be_long(
    lasca_: Any, folder: Path, tmp_path: Path, separator: str
) -> None:
    rows = [[row["item"], "w" * 200_000, "0"] for row in rows_of(folder)[:2]]
    with (tmp_path / "filled.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=separator).writerows([["item", "words", "decision"], *rows])
    assert lasca_("decide", folder, tmp_path / "filled.csv") == 0
    assert len(Project(folder).standing()) == 2


@pytest.mark.parametrize("text", ["{", "[1]", "7"])
def test_without_its_record_nobody_knows_whether_names_may_be_kept(
    lasca_: Any, folder: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (folder / "run.json").write_text(text, "utf-8")
    for verb in (("accept", folder), ("update", folder, "demo", "-o", folder.parent / "more")):
        assert lasca_(*verb) == 1
        assert "the record of the run is damaged" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["[1]", '{"x": 1}', "{"])
def test_a_damaged_queue_is_said_to_be_damaged(
    lasca_: Any, folder: Path, tmp_path: Path, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "filled.csv").write_text(f"item,decision\n{rows_of(folder)[0]['item']},0\n", "utf-8")
    (folder / "queue.jsonl").write_text(line + "\n", "utf-8")
    assert lasca_("decide", folder, tmp_path / "filled.csv") == 1
    assert "the queue of this run is damaged" in capsys.readouterr().err


@pytest.mark.parametrize("said", ["99", "7-3:PER", "what?", "0-1:<script>"])
def test_one_wrong_decision_and_nothing_is_taken(
    lasca_: Any, folder: Path, tmp_path: Path, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [row["item"] for row in rows_of(folder)]
    lines = ["item,decision", f"{items[0]},0", f'{items[1]},"{said}"']
    (tmp_path / "bad.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert lasca_("decide", folder, tmp_path / "bad.csv") == 2
    assert "lasca: " in capsys.readouterr().err
    assert Project(folder).standing() == []


def test_json_and_label_studio_exports(lasca_: Any, folder: Path, tmp_path: Path) -> None:
    row = rows_of(folder)[0]
    decisions = [{"sequence": row["sequence"], "start": row["start"], "stop": row["stop"], "spans": [], "who": "eve"}]
    (tmp_path / "d.json").write_text(json.dumps({"decisions": decisions}), encoding="utf-8")
    assert lasca_("decide", folder, tmp_path / "d.json") == 0
    project = Project(folder)
    assert [d.who for d in project.standing()] == ["eve"]
    part = project.corpus.select(sequences=np.arange(3))
    adjudicated = CrowdCorpus.from_sequences(
        [part.sequence(s) for s in range(3)],
        {"judge": [["B-PER"] + ["O"] * (len(part.sequence(s)) - 1) for s in range(3)]},
        sequence_ids=list(part.sequence_ids),
        labels=part.labels,
    )
    formats.write(adjudicated, tmp_path / "tasks.json", "label-studio")
    assert lasca_("decide", folder, tmp_path / "tasks.json") == 0
    judged = [d for d in Project(folder).standing() if d.who == "judge"]
    assert len(judged) == 3
    assert all(d.readings == (((0, 1, "PER"),),) and d.start == 0 for d in judged)


def test_what_prodigys_review_wrote_is_decided_whoever_its_versions_name(
    lasca_: Any, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = Project(folder).corpus
    lines = []
    for s in range(2):
        tokens = corpus.sequence(s)
        ends = np.cumsum([len(t) + 1 for t in tokens]) - 1
        spelled = [
            {"text": t, "start": int(e) - len(t), "end": int(e), "id": i} for i, (t, e) in enumerate(zip(tokens, ends))
        ]
        span = {"start": 0, "end": len(tokens[0]), "token_start": 0, "token_end": 0, "label": "PER"}
        line = {"text": " ".join(tokens), "tokens": spelled, "_input_hash": corpus.sequence_ids[s]}
        versions = [{**line, "spans": [], "answer": "accept", "sessions": ["somebody else"]}]
        lines.append({**line, "spans": [span], "answer": "accept", "versions": versions})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "reviewed.jsonl").write_text(text, encoding="utf-8")
    assert lasca_("decide", folder, tmp_path / "reviewed.jsonl") == 0
    assert "2 decisions taken (review 2)" in capsys.readouterr().out
    standing = Project(folder).standing()
    assert [(d.who, d.readings) for d in standing] == [("review", (((0, 1, "PER"),),))] * 2


def test_accept_refuses_without_an_audit_and_promises_with_one(
    lasca_: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lasca_("accept", folder, "--error", "0.1") == 1
    said = capsys.readouterr().out
    assert "without an audit" in said
    more = int(said.split("If ")[1].split(" were audited")[0].replace(",", ""))
    project = Project(folder)
    fit = project.fit()
    labels = project.labels
    audits = []
    for unit in project.next_audits(more + 5, fit):
        base, end = (int(project.corpus.offsets[unit.sequence + k]) for k in (0, 1))
        spans = labels.of_sequence(fit.truth.labels[base:end].tolist())
        mine = tuple(s for s in spans if s[0] < unit.stop and s[1] > unit.start)
        audits.append(
            Decision(
                project.corpus.sequence_ids[unit.sequence],
                unit.start,
                unit.stop,
                (mine,),
                audit=True,
                shown={"unit": unit.id},
            )
        )
    project.log.add(audits)
    assert lasca_("accept", folder, "--error", "0.1", "--json") == 0
    promise = json.loads(capsys.readouterr().out)
    assert promise["accepted"] > 0
    assert promise["audited"] == len(audits)
    assert promise["wrong"] == 0
    assert "at most 10 % of them are wrong, with 95 % confidence" in promise["words"]


def test_where_all_is_decided_no_error_is_expected_and_nothing_is_left_to_accept(
    lasca_: Any, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = Project(folder)
    corpus = project.corpus
    spans = [
        project.labels.of_sequence(project.truth.labels[a:b].tolist())
        for a, b in zip(corpus.offsets[:-1].tolist(), corpus.offsets[1:].tolist())
    ]
    rows = zip(corpus.sequence_ids, np.diff(corpus.offsets).tolist(), spans)
    project.log.add([Decision(id, 0, n, (tuple(found),)) for id, n, found in rows])
    assert lasca_("accept", folder) == 0
    assert "Nothing is left to accept: all of it was decided" in capsys.readouterr().out
    assert lasca_("finish", folder, "-o", tmp_path / "final") == 0
    card = json.loads((tmp_path / "final" / "card.json").read_text("utf-8"))
    assert card["tokens_by_source"]["decided"] == corpus.n_tokens
    assert (card["expected_errors"], card["spans_and_areas"]) == (0, 0)
    written = (tmp_path / "final" / "card.md").read_text("utf-8")
    assert "1 reviewer made 60 decisions and audited 0 items" in written
    assert "nothing is left that is labelled or in doubt and that nobody looked at" in written


def test_no_error_is_expected_in_what_was_audited(lasca_: Any, folder: Path, tmp_path: Path) -> None:
    assert lasca_("finish", folder, "-o", tmp_path / "before") == 0
    before = json.loads((tmp_path / "before" / "card.json").read_text("utf-8"))
    project = Project(folder)
    units = [project.units[u] for u in project.audits[:20]]
    found = []
    for u in units:
        base, end = project.corpus.offsets[u.sequence : u.sequence + 2].tolist()
        spans = project.labels.of_sequence(project.truth.labels[base:end].tolist())
        mine = tuple(s for s in spans if s[0] < u.stop and s[1] > u.start)
        shown = {"unit": u.id, "item": f"audit {u.id}"}
        found.append(
            Decision(project.corpus.sequence_ids[u.sequence], u.start, u.stop, (mine,), audit=True, shown=shown)
        )
    project.log.add(found)
    assert lasca_("finish", folder, "-o", tmp_path / "after") == 0
    after = json.loads((tmp_path / "after" / "card.json").read_text("utf-8"))
    areas = {(a.sequence, a.start, a.stop) for a in project.areas}
    areas_audited = sum((u.sequence, u.start, u.stop) in areas for u in units)
    assert after["spans_and_areas"] == before["spans_and_areas"] - areas_audited
    assert after["expected_errors"] < before["expected_errors"]


@pytest.mark.parametrize("right", [True, False])
def test_a_card_holds_what_was_expected_against_what_the_audit_found(right: bool, folder: Path) -> None:
    """A card said that no error was expected, beside 4 of 13 audited that were wrong, and nothing of it."""
    project = Project(folder)
    truth = project.fit().truth
    found = []
    for u in (project.units[u] for u in project.audits[:15]):
        base, end = project.corpus.offsets[u.sequence : u.sequence + 2].tolist()
        mine = [
            s for s in project.labels.of_sequence(truth.labels[base:end].tolist()) if s[0] < u.stop and s[1] > u.start
        ]
        other = [] if mine else [(u.start, u.start + 1, project.labels.types[0])]
        said = tuple(mine if right else other)
        id = project.corpus.sequence_ids[u.sequence]
        found.append(Decision(id, u.start, u.stop, (said,), audit=True, shown={"unit": u.id, "item": f"audit {u.id}"}))
    project.log.add(found)
    fit = project.fit()
    card = card_of(project, fit, np.zeros(project.corpus.n_tokens, np.int64))
    rate, unsure = card["audited_error_rate"], card["unsure"]
    assert rate["wrong"] == (0 if right else 15)
    assert 0 < rate["expected"] < 1.5
    assert any("the audit found more errors than the model expected" in w for w in card["warnings"]) != right
    assert 0 < unsure["spans_and_areas"] < card["spans_and_areas"]
    assert 0 < unsure["expected_errors"] < card["expected_errors"]
    text = _written(card)
    assert "; the model expected 0." in text or "; the model expected 1." in text
    assert f"of them in the {unsure['spans_and_areas']} places it is not sure of, where nothing is audited" in text


def test_what_was_audited_is_given_to_nobody(lasca_: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = {"a": [["X"], ["X"]], "b": [["Y"], ["Y"]]}
    corpus = CrowdCorpus.from_sequences([["one"], ["two"]], people)
    save_truth(corpus, model_class("mv")().fit(corpus), tmp_path / "out")
    words = ("next", tmp_path / "out", "--annotators", "dee", "-o")
    assert lasca_(*words, tmp_path / "before") == 0
    assert "2 documents for 1 annotator" in capsys.readouterr().out
    assert not (tmp_path / "out" / "decisions.sqlite").exists()
    Project(tmp_path / "out").log.add([Decision("0", 0, 1, (((0, 1, "X"),),), audit=True, shown={"unit": "0.0-1"})])
    assert lasca_(*words, tmp_path / "after") == 0
    assert "1 document for 1 annotator" in capsys.readouterr().out


def test_what_was_decided_after_an_audit_is_not_asked_again(folder: Path) -> None:
    """It teaches no fit, so it was taken for open: in the queue, and by `lasca next`."""
    project = Project(folder)
    fit = project.fit()
    unit = next(u for u in (project.units[i] for i in project.audits) if _open_in(project, fit, u.sequence))
    id, n = project.corpus.sequence_ids[unit.sequence], int(np.diff(project.corpus.offsets)[unit.sequence])
    audit = Decision(id, unit.start, unit.stop, ((),), audit=True, shown={"unit": unit.id})
    project.log.add([audit, Decision(id, 0, n, ((),))])
    assert not _open_in(project, project.fit(), unit.sequence)


def _open_in(project: Project, fit: Fit, sequence: int) -> list[str]:
    return [item.id for item in project.queue(fit).items if item.area.sequence == sequence]


def test_a_label_of_each_word_is_chosen_without_the_word() -> None:
    """Of documents it was the whole text, behind each of the labels."""
    people = {"a": [["X"], ["X"]], "b": [["Y"], ["Y"]]}
    corpus = CrowdCorpus.from_sequences([["a very long text"], ["another one"]], people)
    queue = make_queue(corpus, model_class("mv")().fit(corpus))
    assert [[c["words"] for c in row["candidates"]] for row in rows(corpus, queue.items)] == [["X", "Y"]] * 2


def test_a_card_has_the_warnings_of_the_last_fit_and_of_the_rest_of_the_run(folder: Path) -> None:
    project = Project(folder)
    project.truth = replace_truth(project.truth, warnings=("98 tokens",))
    project.record = {"warnings": ["98 tokens", "the list of ambiguous tokens may be far off"]}
    fit = project.fit()
    fit = Fit(fit.corpus, replace_truth(fit.truth, warnings=("99 tokens",)), fit.known, fit.key)
    card = card_of(project, fit, fit.known.source)
    assert card["warnings"] == ["99 tokens", "the list of ambiguous tokens may be far off"]


def replace_truth(truth: Truth, **changes: Any) -> Truth:
    return Truth(**{name: getattr(truth, name) for name in truth.__dataclass_fields__} | changes)


def test_finish_says_where_every_label_comes_from(lasca_: Any, folder: Path, tmp_path: Path) -> None:
    project = Project(folder)
    row = next(r for r in rows_of(folder) if len(r["candidates"]) > 1 and r["candidates"][1]["spans"])
    spans = tuple((s, e, k) for s, e, k in row["candidates"][1]["spans"])
    (unit,) = project.next_audits(1, project.fit(again=False))
    project.log.add(
        [
            Decision(row["sequence"], row["start"], row["stop"], (spans,), who="Ann Other"),
            Decision(
                project.corpus.sequence_ids[unit.sequence], unit.start, unit.stop, ((),), who="Ann Other", audit=True,
                shown={"unit": unit.id},
            ),
        ]
    )  # fmt: skip
    target = tmp_path / "final"
    assert lasca_("finish", folder, "-o", target, "--error", "0.05", "--to", "label-studio") == 0
    assert {p.name for p in target.iterdir()} == {
        "labels.conll", "labels.jsonl", "labels.parquet", "labels.csv", "spans.jsonl", "card.json", "card.md",
        "label-studio.json", "SHA256SUMS",
    }  # fmt: skip
    with (target / "labels.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    assert len(cells) == project.corpus.n_tokens
    decided = [c for c in cells if c["source"] == "decided"]
    assert {int(c["position"]) for c in decided} == set(range(row["start"], row["stop"]))
    found = [json.loads(line) for line in (target / "spans.jsonl").read_text(encoding="utf-8").splitlines()]
    mine = [
        (s["start"], s["stop"], s["type"])
        for s in found
        if s["sequence"] == row["sequence"] and s["source"] == "decided"
    ]
    assert mine == sorted(spans)
    card = json.loads((target / "card.json").read_text(encoding="utf-8"))
    assert sum(card["tokens_by_source"].values()) == project.corpus.n_tokens
    assert card["decisions"] == 1
    assert card["audited_error_rate"]["audited"] == 1
    text = (target / "card.md").read_text(encoding="utf-8")
    assert "Ann" not in text
    assert "drawn at random" in text
    assert lasca_("finish", folder, "-o", target, "--names", "--overwrite") == 0
    assert "Ann Other" in (target / "card.md").read_text(encoding="utf-8")


def test_what_nobody_labelled_has_no_final_label(lasca_: Any, tmp_path: Path) -> None:
    """It stood in all files as inferred, with the label that is the most frequent elsewhere."""
    whole = simulate.demo_crowd("ner").select(sequences=np.arange(20))
    of_sequence = whole.token_sequence[whole.annotation_token]
    kept = of_sequence >= 3  # nobody labelled the first three sequences …
    people = (*whole.annotators, "machine")  # … but a model that does not vote, the third one
    token = np.arange(whole.offsets[2], whole.offsets[3])
    corpus = whole.with_annotations(
        people,
        np.append(whole.annotation_token[kept], token),
        np.append(whole.annotation_annotator[kept], np.full(len(token), len(people) - 1)),
        np.append(whole.annotation_label[kept], np.full(len(token), whole.labels.index("B-PER"))),
    )
    corpus = replace(corpus, kinds=(*["person"] * (len(people) - 1), "model"), votes=())
    save_truth(corpus, model_class("ds")().fit(corpus), tmp_path / "out")
    project = Project(tmp_path / "out")
    assert {u.sequence for u in project.units} == set(range(3, 20))  # nothing is promised about them
    assert {item.area.sequence for item in project.queue(project.fit()).items} <= set(range(3, 20))
    project.log.add([Decision(corpus.sequence_ids[1], 0, 1, (((0, 1, "PER"),),))])
    assert lasca_("finish", tmp_path / "out", "-o", tmp_path / "final") == 0
    with (tmp_path / "final" / "labels.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    said = [(c["label"], c["source"]) for c in cells[: corpus.offsets[3]]]
    n = int(corpus.offsets[1])
    assert said == [("", "")] * n + [("B-PER", "decided")] + [("", "")] * int(corpus.offsets[3] - n - 1)
    assert all(c["label"] and c["source"] for c in cells[corpus.offsets[3] :])
    first = json.loads((tmp_path / "final" / "labels.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert set(first["labels"]) == {None}
    lines = (tmp_path / "final" / "spans.jsonl").read_text(encoding="utf-8").splitlines()
    spans = [json.loads(line) for line in lines]
    assert [s["source"] for s in spans if s["sequence"] in corpus.sequence_ids[:3]] == ["decided"]
    card = json.loads((tmp_path / "final" / "card.json").read_text(encoding="utf-8"))
    assert sum(card["tokens_by_source"].values()) == corpus.n_tokens - corpus.offsets[3] + 1
    assert card["tokens_nobody_labelled"] == corpus.offsets[3]


def test_warnings_on_the_card_count_families_and_name_nobody(tmp_path: Path) -> None:
    project = Project(run_folder(tmp_path / "out"))
    family = ["Ann Other", "Bob"]
    project.truth = replace(
        project.truth,
        warnings=("the annotators Ann Other, Bob repeat each other", "label 'X' is never inferred"),
        diagnostics={**project.truth.diagnostics, "families": [family]},
    )
    fit = project.fit(again=False)
    card = card_of(project, fit, fit.known.source)
    assert card["warnings"] == ["2 annotators repeat each other", "label 'X' is never inferred"]
    named = card_of(project, fit, fit.known.source, names=True)
    assert named["warnings"][0] == "the annotators Ann Other, Bob repeat each other"


def test_what_is_advised_can_be_pasted_and_nothing_is_said_twice(
    lasca_: Any, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = folder.rename(tmp_path / "my run")
    assert lasca_("accept", place, "--error", "0.4") == 1
    assert f"lasca review '{place}' --audit 1" in capsys.readouterr().out
    assert lasca_("finish", place, "-o", tmp_path / "final", "--no-refit", "--error", "0.4") == 0
    card = (tmp_path / "final" / "card.md").read_text(encoding="utf-8")
    assert "lasca review" not in card
    assert "second opinions" not in card
    assert "agreed" in card.split("tokens by source: ")[1].split(",")[0]


def test_a_candidate_that_is_not_there_is_named(
    lasca_: Any, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = rows_of(folder)[0]
    (tmp_path / "d.json").write_text(json.dumps([{"item": row["item"], "decision": "99"}]), encoding="utf-8")
    assert lasca_("decide", folder, tmp_path / "d.json") == 2
    named = ", ".join(c["key"] for c in row["candidates"])
    assert f"The item has {len(row['candidates'])} candidates ({named}); 0 is none" in capsys.readouterr().err


def test_a_promise_about_another_run_is_another_look(tmp_path: Path) -> None:
    """`lasca update` takes the log along: the same decisions are not the same fit there."""
    fits = [Project(run_folder(tmp_path / model, model)).fit() for model in ("ds", "mv")]
    assert len({fit.key for fit in fits}) == 2
    assert Project(tmp_path / "ds").fit().key == fits[0].key


def test_who_asks_twice_does_not_wait_twice(
    lasca_: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """accept and finish share the fit with what was decided; another decision, or a damaged file, makes it anew."""
    from lasca.review import project as module

    first, second = Project(folder).queue(Project(folder).fit(again=False)).items[:2]

    def decide(item: Any, project: Project) -> None:
        area = item.area
        where = project.corpus.sequence_ids[area.sequence]
        project.log.add([Decision(where, area.start, area.stop, ((),), who="ann", shown={"item": item.id})])

    made = []
    real = module.refit
    monkeypatch.setattr(module, "refit", lambda *args: made.append(1) or real(*args))
    decide(first, Project(folder))
    fresh = Project(folder).fit()
    again = Project(folder).fit()
    assert made == [1]
    assert again.key == fresh.key
    assert (again.truth.proba == fresh.truth.proba).all()
    assert again.truth.warnings == fresh.truth.warnings
    assert again.truth.diagnostics.keys() == fresh.truth.diagnostics.keys()
    lasca_("accept", folder)
    assert lasca_("finish", folder, "-o", tmp_path / "kept") == 0
    assert made == [1]
    (folder / "refit" / "truth.json").write_text("{}", encoding="utf-8")
    assert lasca_("finish", folder, "-o", tmp_path / "anew") == 0
    assert made == [1, 1]
    for name in ("labels.csv", "labels.parquet", "spans.jsonl", "card.json"):
        assert (tmp_path / "kept" / name).read_bytes() == (tmp_path / "anew" / name).read_bytes(), name
    decide(second, Project(folder))
    Project(folder).fit()
    assert made == [1, 1, 1]


def test_what_cannot_work_is_said_before_any_work(
    lasca_: Any, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lasca_("finish", folder, "-o", tmp_path / "f", "--to", "nope") == 2
    assert "--to must be one of 'conll'" in capsys.readouterr().err
    for bare in ("lasca", "llm-batch"):  # there are no labels in what they write
        assert lasca_("finish", folder, "-o", tmp_path / "f", "--to", bare) == 2
        assert "--to must be one of 'conll'" in capsys.readouterr().err
    assert lasca_("finish", folder, "-o", tmp_path / "f", "--to", "doccano", "--to", "doccano") == 0
    assert (tmp_path / "f" / "doccano.jsonl").is_file()
    shutil.copytree(folder, tmp_path / "parts", ignore=shutil.ignore_patterns("corpus"))
    for verb in ("accept", "report"):
        capsys.readouterr()
        assert lasca_(verb, tmp_path / "parts") == 1
        assert "of a corpus in shards" in capsys.readouterr().err
    assert lasca_("inspect", folder) == 2  # "this may be label-studio or huggingface" it was
    assert "Its corpus is in" in capsys.readouterr().err
    assert lasca_("inspect", folder / "corpus") == 0
    assert lasca_("tag", folder, folder / "queue.csv") == 1
    assert "there is no tagger to load" in capsys.readouterr().err  # and not: it is damaged


def test_what_is_missing_for_a_promise_is_said_as_it_is(lasca_: Any, folder: Path, tmp_path: Path) -> None:
    from lasca.cli.commands.review import promise_words
    from lasca.review.promise import Promise

    nothing = Promise(0.05, 0.95, (), 300, 0, 0, None, 59, 59)
    assert promise_words(nothing) == (
        "Nothing can be promised without an audit: none of 300 items was audited. "
        "If 59 were audited and all of them were right, that would do for at most 5 % wrong"
    )
    assert promise_words(replace(nothing, likely=120)).endswith(
        "were right, that would do for at most 5 % wrong; with as many errors as are to be expected, about 120"
    )
    assert "hardly any number would: ask for a larger --error" in promise_words(replace(nothing, likely=None))
    assert "1 of 1 item was audited, 1 of them was wrong" in promise_words(
        replace(nothing, total=1, audited=1, wrong=1)
    )
    some = promise_words(replace(nothing, audited=38, more=21))
    assert "38 of 300 items were audited, 0 of them were wrong. If 21 more were audited" in some
    assert lasca_("finish", folder, "-o", tmp_path / "final") == 0
    card = (tmp_path / "final" / "card.md").read_text(encoding="utf-8")
    assert "- nobody decided or audited anything\n" in card
    assert "0 reviewers" not in card

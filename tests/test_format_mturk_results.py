"""Results of Mechanical Turk and Toloka."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError
from lasca.formats import mturk_results
from mutations import FEW, MANY, assert_only_lasca_errors, samples, source

TEXT = "😊 Ada Lovelace visited New York ."
ONE = ["O", "B-PER", "I-PER", "O", "O", "O", "O"]
HEADER = ["HITId", "AssignmentStatus", "WorkerId", "SubmitTime", "Input.text", "Answer.spans"]


def made(*rows: list[str], header: list[str] = HEADER, delimiter: str = ",") -> bytes:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows([header, *rows])
    return out.getvalue().encode()


def row(worker: str, spans: object, *, hit: str = "H1", status: str = "Approved", time: str = "") -> list[str]:
    return [hit, status, worker, time, TEXT, spans if isinstance(spans, str) else json.dumps(spans)]


def read(data: bytes, name: str = "results.csv", **options: Any) -> CrowdCorpus:
    return mturk_results.read(source(name, data), **options)


def table(corpus: CrowdCorpus) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in corpus.to_table().to_pylist():
        found.setdefault(entry["annotator"], []).append(entry["label"])
    return found


PER = {"start": 2, "end": 14, "label": "PER"}


def test_the_samples_of_the_docstring() -> None:
    mturk, toloka = samples(mturk_results)
    for sample, name, worker in ((mturk, "results.csv", "W1"), (toloka, "assignments.tsv", "w1")):
        files = source(name, sample.encode())
        assert mturk_results.sniff(files) > 0.9
        assert table(mturk_results.read(files)) == {worker: ["B-PER", "O"]}


def test_answers_that_are_nested_too_deep_are_refused() -> None:
    for depth in (5, 100):
        nested = "[" * depth + json.dumps(PER) + "]" * depth
        if depth == 5:
            assert table(read(made(row("W1", nested)))) == {"W1": ONE}
        else:
            with pytest.raises(FormatError, match="nested too deep"):
                read(made(row("W1", nested)))


def test_rejected_rows_are_left_out_and_counted_and_empty_is_missing() -> None:
    data = made(row("W1", [PER]), row("W2", [PER], status="Rejected"), row("W3", []), row("W4", ""))
    corpus = read(data)
    assert table(corpus) == {"W1": ONE, "W3": ["O"] * 7}
    assert corpus.load_report.counts["rejected"] == 1
    assert corpus.load_report.counts["missing"] == 1


@pytest.mark.parametrize(
    "answer",
    [
        [{"startOffset": 2, "endOffset": 14, "label": "PER"}],
        {"crowd-entity-annotation": {"entities": [{"startOffset": 2, "endOffset": 14, "label": "PER"}]}},
        [{"taskAnswers": {"e": [{"offset": 2, "length": 12, "type": "PER"}]}}],
        [{"json": json.dumps([{"begin": 2, "end": 14, "tag": "PER"}])}],
        [{"start": "2", "end": "14", "labels": ["PER"], "text": "Ada Lovelace"}],
        [{"start": 3, "end": 15, "label": "PER", "text": "Ada Lovelace"}],
        [{"start": 3, "end": 15, "label": "PER"}],
    ],
)
def test_ways_to_write_a_span_and_the_emoji_case(answer: object) -> None:
    assert table(read(made(row("W1", answer)))) == {"W1": ONE}


def test_toloka_and_other_columns() -> None:
    header = [
        "INPUT:id",
        "INPUT:sentence",
        "OUTPUT:result",
        "OUTPUT:comment",
        "ASSIGNMENT:worker_id",
        "ASSIGNMENT:status",
    ]
    rows = [
        ["s1", TEXT, json.dumps([PER]), "fine", "w1", "APPROVED"],
        ["s1", TEXT, "", "no idea", "w2", "APPROVED"],
        ["s2", "x y", "[]", "", "w1", "REJECTED"],
    ]
    corpus = read(made(*rows, header=header, delimiter="\t"), "assignments.tsv")
    assert table(corpus) == {"w1": ONE}
    assert list(corpus.sequence_ids) == ["s1", "s2"]
    assert corpus.load_report.counts["missing"] == 1


def test_columns_can_be_named() -> None:
    header = ["WorkerId", "Input.title", "Input.body", "Answer.x", "Answer.y", "key"]
    data = made(["W1", "t", TEXT, "[see below]", json.dumps([PER]), "k1"], header=header)
    with pytest.raises(FormatError, match="which column holds the text"):
        read(data)
    corpus = read(data, text="Input.body", answer="Answer.y", item="key")
    assert table(corpus) == {"W1": ONE}
    assert list(corpus.sequence_ids) == ["k1"]
    with pytest.raises(FormatError, match=r"results.csv:2.*not JSON.*answer="):
        read(data, text="Input.body")
    with pytest.raises(FormatError, match="no column 'z'"):
        read(data, text="z")


def test_the_last_submission_counts_and_one_id_has_one_text() -> None:
    early, late = "Tue Mar 12 10:20:30 PDT 2024", "Wed Mar 13 09:00:00 PDT 2024"
    rows = [row("W1", [PER], time=early), row("W1", [], time=late)]
    assert table(read(made(*rows))) == table(read(made(*rows[::-1]))) == {"W1": ["O"] * 7}
    with pytest.raises(FormatError, match="twice"):
        read(made(row("W1", [PER]), row("W1", [])))
    other = row("W2", [PER])
    other[4] = "something else"
    with pytest.raises(FormatError, match=r"another text|outside its text"):
        read(made(row("W1", [PER]), other))


def test_errors_name_file_and_line() -> None:
    good = row("W1", [PER])
    for bad, match in [
        (good[:4], "4 cells in a table of 6"),
        (row("", [PER]), "annotator must be"),
        (row("W2", [{"start": 2, "end": 14}]), "no label"),
        (row("W2", [{"start": -2, "end": 14, "label": "X"}]), "whole number"),
        (row("W2", '[{"start": 2,'), "not JSON"),
        (row("W2", [{"start": 2, "end": 99, "label": "X"}]), "outside its text"),
        (row("W2", [PER, {"start": 6, "end": 14, "label": "X"}]), "overlap"),
    ]:
        with pytest.raises(FormatError, match=rf"results.csv:3.*{match}"):
            read(made(good, bad))
    with pytest.raises(FormatError, match=r"which column holds the annotator"):
        read(b"a,b\n1,2\n")
    with pytest.raises(FormatError, match=r"Answer.* with JSON"):
        read(made(row("W1", "Person")))


def test_long_cells_are_read() -> None:
    text = "word " * 60_000
    data = made(["H1", "Approved", "W1", "", text, json.dumps([{"start": 0, "end": 4, "label": "X"}])])
    assert read(data).n_tokens == 60_000
    assert csv.field_size_limit() == 131072


VALID = made(row("W1", [PER], time="2024-01-02 03:04:05"), row("W2", [], status="Rejected"), row("W3", [{"e": [PER]}]))


def attempt(data: bytes) -> None:
    files = source("results.csv", data)
    mturk_results.sniff(files)
    mturk_results.read(files)


def test_mutations_give_only_our_errors() -> None:
    assert_only_lasca_errors(attempt, VALID, max_examples=FEW)


@pytest.mark.fuzz
def test_many_mutations_give_only_our_errors() -> None:
    assert_only_lasca_errors(attempt, VALID, max_examples=MANY)


def test_answers_that_are_words_are_labels_of_documents() -> None:
    turk = (
        b"HITId,WorkerId,AssignmentStatus,Input.text,Answer.tone\nh1,w1,Approved,A b c,good\nh1,w2,Rejected,A b c,bad\n"
    )
    corpus = mturk_results.read(source("x.csv", turk), unit="document")
    assert (list(corpus.tokens), corpus.labels, corpus.annotators) == (["A b c"], ("good",), ("w1",))
    with pytest.raises(FormatError, match="unit=document"):
        mturk_results.read(source("x.csv", turk))
    flower = b"_unit_id,_worker_id,input,Answer.kind\n1,w1,-,B\n1,w2,-,C\n"
    assert mturk_results.sniff(source("x.csv", flower)) > 0.9
    corpus = mturk_results.read(source("x.csv", flower), unit="document")
    assert (list(corpus.tokens), corpus.labels, corpus.n_annotations) == (["1"], ("B", "C"), 2)


# --- as the platforms write them ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "said"), [("Answer.mood", ("glad", "sad")), ("Answer.topic.label", ("a", "b"))])
def test_rows_end_before_the_columns_in_which_nobody_wrote(answer: str, said: tuple[str, str]) -> None:
    header = ["HITId", "WorkerId", "Input.text", answer, "Approve", "Reject"]
    data = made(["H1", "W1", "Ada ran", said[0]], ["H1", "W2", "Ada ran", said[1], "x"], header=header)
    corpus = read(data, unit="document")
    assert table(corpus) == {"W1": [said[0]], "W2": [said[1]]}
    with pytest.raises(FormatError, match="3 cells in a table of 6 columns"):
        read(made(["H1", "W1", "Ada ran"], header=header), unit="document")
    with pytest.raises(FormatError, match="7 cells in a table of 6 columns"):
        read(made(["H1", "W1", "Ada ran", "x", "", "", ""], header=header), unit="document")


def crowdflower(text: str = "tweet_text", answer: str = "is_it_about_rain") -> bytes:
    header = ["_unit_id", "_created_at", "_worker_id", "_trust", answer, "tweet_id", text]
    return made(
        ["1", "8/9/2013 20:28:31", "11", "0.9", "Yes", "7", "it rains and rains"],
        ["1", "8/10/2013 21:26:41", "12", "0.8", "No", "7", "it rains and rains"],
        ["1", "8/9/2013 9:28:31", "12", "0.8", "Yes", "7", "it rains and rains"],
        ["2", "8/9/2013 20:28:31", "11", "0.9", "No", "8", "the sun is out"],
        header=header,
    )


@pytest.mark.parametrize(("text", "answer"), [("tweet_text", "is_it_about_rain"), ("what_was_said", "verdict")])
def test_each_message_on_crowdflower_results_leads_to_the_next_step(text: str, answer: str) -> None:
    data = crowdflower(text, answer)
    with pytest.raises(FormatError, match=f"-r text={text}") as error:
        read(data)
    assert answer in str(error.value)
    with pytest.raises(FormatError, match=f"-r unit=document -r answer={answer}"):
        read(data, text=text)
    with pytest.raises(FormatError, match=f"-r answer={answer}"):
        read(data, text=text, unit="document")
    corpus = read(data, text=text, unit="document", answer=answer)
    assert table(corpus) == {"11": ["Yes", "No"], "12": ["No"]}
    assert corpus.load_report.counts["superseded"] == 1


LABELS = ["HITId", "AssignmentStatus", "WorkerId", "Input.text", "Answer.taskAnswers"]


def labelled(*answers: object, status: str = "Approved", text: str = "it rains") -> bytes:
    rows = [["H1", status, f"W{k}", text, json.dumps(answer)] for k, answer in enumerate(answers)]
    return made(*rows, header=LABELS)


@pytest.mark.parametrize(
    "answers",
    [
        ([{"mood": {"label": "glad"}}], [{"mood": {"label": "sad"}}]),
        ([{"mood": {"glad": True, "sad": False}, "note": ""}], [{"mood": {"glad": False, "sad": True}, "note": ""}]),
        ({"mood": {"labels": ["glad"]}}, {"mood": {"labels": ["sad"]}}),
    ],
)
def test_json_without_spans_holds_what_was_chosen_and_nobody_said_o(answers: tuple[object, object]) -> None:
    corpus = read(labelled(*answers))
    assert table(corpus) == {"W0": ["glad"], "W1": ["sad"]}
    assert list(corpus.tokens) == ["it rains"]
    assert read(labelled(*answers), unit="document").labels == ("glad", "sad")
    turned_down = labelled(*answers).replace(b"Approved,W1", b"Rejected,W1")
    assert table(read(turned_down)) == {"W0": ["glad"]}
    assert read(turned_down).load_report.counts["rejected"] == 1


def test_several_questions_in_the_json_of_an_answer_are_asked_about() -> None:
    data = labelled([{"mood": {"label": "glad"}, "rain": {"yes": True, "no": False}}])
    with pytest.raises(FormatError, match=r"several questions: mood: 1, rain: 1.*-r answer=mood"):
        read(data)
    assert read(data, answer="rain", unit="document").labels == ("yes",)
    spans = labelled([{"mood": {"label": "glad"}, "e": [{"start": 0, "end": 2, "label": "X"}]}])
    corpus = read(spans)
    assert table(corpus) == {"W0": ["B-X", "O"]}
    assert corpus.load_report.counts["labels of whole documents left out"] == 1


def test_a_column_for_each_choice_is_one_question() -> None:
    header = [*LABELS[:4], "Answer.mood.glad", "Answer.mood.sad"]
    rows = [
        ["H1", "Approved", "W1", "it rains", "true", "false"],
        ["H1", "Approved", "W2", "it rains", "false", "true"],
    ]
    data = made(*rows, header=header)
    with pytest.raises(FormatError, match=r"-r unit=document\)"):
        read(data)
    assert table(read(data, unit="document")) == {"W1": ["glad"], "W2": ["sad"]}


def test_golds_of_platforms_are_golds_and_tainted_judgments_are_counted() -> None:
    header = ["INPUT:text", "OUTPUT:mood", "GOLDEN:mood", "ASSIGNMENT:worker_id", "ASSIGNMENT:status"]
    rows = [["it rains", "glad", "sad", "w1", "APPROVED"], ["the sun", "glad", "", "w1", "APPROVED"]]
    corpus = read(made(*rows, header=header, delimiter="\t"), "x.tsv", unit="document")
    assert [corpus.labels[code] if code >= 0 else None for code in corpus.golds["gold"]].count("sad") == 1
    header = ["_unit_id", "_worker_id", "_tainted", "mood", "mood_gold", "text"]
    rows = [["1", "w1", "true", "glad", "sad", "it rains"], ["2", "w1", "false", "sad", "sad\nglad", "the sun"]]
    corpus = read(made(*rows, header=header), unit="document", answer="mood")
    assert [corpus.labels[code] if code >= 0 else None for code in corpus.golds["gold"]] == ["sad", None]
    assert corpus.load_report.counts["tainted judgments, kept"] == 1
    assert corpus.load_report.counts["golds that allow several labels, left out"] == 1


@pytest.mark.parametrize("escaped", [True, False])
def test_pieces_of_the_text_by_their_lengths(tmp_path: Path, escaped: bool) -> None:
    """Toloka's text annotation gives every piece of the text; lists in its TSV have no brackets, and commas as \\,."""
    pieces = [{"class": "no", "contentLength": 4}, {"class": "yes", "contentLength": 3, "value": "PER"}]
    given = [json.dumps(piece) for piece in [*pieces, {"class": "no", "contentLength": 5}]]
    cell = ",".join(piece.replace(",", "\\,") for piece in given) if escaped else f"[{','.join(given)}]"
    cell = '"' + cell.replace('"', '""') + '"'
    path = tmp_path / "x.tsv"
    head = "INPUT:text\tOUTPUT:result\tASSIGNMENT:worker_id\tASSIGNMENT:status\n"
    path.write_text(f"{head}Now Ada left\t{cell}\tw1\tAPPROVED\n")
    assert [row["label"] for row in lasca.read(path).to_table().to_pylist()] == ["O", "B-PER", "O"]


def test_the_hints_name_columns_that_may_be_meant() -> None:
    """The text was said to be perhaps in HITId, and JSON in another column to be perhaps labels of documents."""
    words = b"HITId,WorkerId,AssignmentStatus,Input.w1,Input.w2,Answer.w1\nH1,ann,Submitted,Ada,ran,PER\n"
    with pytest.raises(FormatError, match=r"-r text=Input\.w1"):
        mturk_results.read(source("x.csv", words))
    spans = b'_unit_id,_worker_id,text,marks\n1,ann,Ada ran,"[{""start"": 0, ""end"": 3, ""label"": ""PER""}]"\n'
    with pytest.raises(FormatError, match="-r answer=marks"):
        mturk_results.read(source("x.csv", spans))
    assert mturk_results.read(source("x.csv", spans), answer="marks").labels == ("B-PER", "O")
    with pytest.raises(FormatError, match="-r answer=marks"):  # an answer that is left empty changes nothing
        mturk_results.read(source("x.csv", spans + b"1,ben,Ada ran,\n"))

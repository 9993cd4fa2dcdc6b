"""Label Studio: reading exports of all ages, writing predictions, surviving anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, LascaError, ParameterError
from lasca.formats import label_studio, write, write_spans
from lasca.formats.base import files_of
from lasca.formats.outcome import outcome
from mutations import FEW, MANY, assert_only_lasca_errors, samples, source, sources

TEXT = "😊 Ada Lovelace visited New York ."
PER = {"start": 2, "end": 14, "text": "Ada Lovelace", "labels": ["PER"]}
LOC = {"start": 23, "end": 31, "text": "New York", "labels": ["LOC"]}


def result(**value: Any) -> dict[str, Any]:
    return {"from_name": "label", "to_name": "text", "type": "labels", "value": value}


def task(*annotations: dict[str, Any], id: Any = 7, text: str = TEXT, **more: Any) -> dict[str, Any]:
    return {"id": id, "data": {"text": text}, "annotations": list(annotations), **more}


def by(who: Any, *spans: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": 1, "completed_by": who, "was_cancelled": False, "result": [result(**s) for s in spans], **more}


def read(*tasks: Any, **options: Any) -> CrowdCorpus:
    return label_studio.read(source("export.json", json.dumps(list(tasks)).encode()), **options)


def labels_of(corpus: CrowdCorpus, annotator: str) -> list[str | None]:
    a = corpus.annotators.index(annotator)
    mine = corpus.annotation_annotator == a
    codes = np.full(corpus.n_tokens, -1, np.int16)
    codes[corpus.annotation_token[mine]] = corpus.annotation_label[mine]
    return [None if c < 0 else corpus.labels[c] for c in codes]


BOTH = ["O", "B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O"]
ONE = ["O", "B-PER", "I-PER", "O", "O", "O", "O"]


def test_the_sample_of_the_docstring() -> None:
    (sample,) = samples(label_studio)
    files = source("export.json", sample.encode())
    assert label_studio.sniff(files) > 0.9
    corpus = label_studio.read(files)
    assert corpus.annotators == ("3", "a@b.c")
    assert list(corpus.sequence_ids) == ["7"]
    assert list(corpus.tokens) == ["😊", "Ada", "Lovelace", "visited", "New", "York", "."]
    assert labels_of(corpus, "3") == ONE
    assert labels_of(corpus, "a@b.c") == ["O"] * 7
    assert corpus.metadata["text"][0] == TEXT
    assert corpus.token_chars is not None
    assert [TEXT[a:b] for a, b in corpus.token_chars] == list(corpus.tokens)


def test_offsets_in_utf16_are_recognised_by_the_quoted_text() -> None:
    old = {"start": 3, "end": 15, "text": "Ada Lovelace", "labels": ["PER"]}
    corpus = read(task(by(1, old)))
    assert labels_of(corpus, "1") == ONE
    assert "utf16" in corpus.load_report.notes[0]
    del old["text"]
    assert labels_of(read(task(by(1, old))), "1") == ONE  # by token borders
    assert labels_of(read(task(by(1, old)), unit="utf16"), "1") == ONE
    with pytest.raises(FormatError, match="different units"):
        read(task(by(1, PER)), task(by(1, {**LOC, "start": 24, "end": 32}), id=8))


def test_missing_is_not_o_is_not_skipped() -> None:
    corpus = read(task(by(1, PER), by(2), by(3, PER, was_cancelled=True), by(4, skipped=True)), task(id=8))
    assert corpus.annotators == ("1", "2")
    assert labels_of(corpus, "2") == ["O"] * 7 + [None] * 7
    assert corpus.load_report.counts["skipped"] == 2
    assert corpus.annotated_sequences.tolist() == [True, False]


def test_golds_and_models_are_roles() -> None:
    prediction = {"model_version": "m1", "result": [result(**LOC)]}
    corpus = read(task(by(1, PER), by(2, PER, LOC, ground_truth=True), predictions=[prediction, 17]))
    assert corpus.annotators == ("1", "2", "m1")  # who made the ground truth keeps the vote
    assert corpus.roles == ("annotator", "annotator", "model")
    assert corpus.label_names(corpus.golds["gold"]) == [BOTH]
    assert labels_of(corpus, "2") == BOTH
    assert corpus.load_report.counts["annotations that are ground truth"] == 1
    assert corpus.crowd().annotators == ("1", "2")
    assert corpus.load_report.counts["predictions without content"] == 1


def test_old_exports_json_lines_and_minimal_rows() -> None:
    old = {"id": 1, "data": {"text": TEXT}, "completions": [by(None, PER)]}
    assert labels_of(read(old), "unknown") == ONE
    lines = "\n".join(json.dumps(task(by(1, PER), id=k)) for k in (2, 1)).encode()
    corpus = label_studio.read(source("export.jsonl", lines))
    assert list(corpus.sequence_ids) == ["1", "2"]
    row = {"id": 1, "text": TEXT, "label": [PER, LOC], "annotator": 5, "annotation_id": 9, "created_at": "2024-01-01"}
    files = source("min.json", json.dumps([row]).encode())
    assert label_studio.sniff(files) > 0.9
    assert labels_of(label_studio.read(files), "5") == BOTH


def test_which_value_is_the_text() -> None:
    assert read({"id": 1, "data": {"body": TEXT, "n": 3}, "annotations": [by(1, PER)]}).n_tokens == 7
    quoted = {"id": 1, "data": {"title": "x", "body": TEXT}, "annotations": [by(1, PER)]}
    assert labels_of(read(quoted), "1") == ONE  # by the quotes
    unclear = {"id": 1, "data": {"body": TEXT, "title": TEXT + "x"}, "annotations": [by(1, PER)]}
    with pytest.raises(FormatError, match="which value"):
        read(unclear)
    assert labels_of(read(unclear, text="body"), "1") == ONE


def about(name: str, who: Any, *spans: dict[str, Any]) -> dict[str, Any]:
    return {"completed_by": who, "result": [{**result(**span), "to_name": name} for span in spans]}


def test_a_text_called_text_is_not_the_text_of_spans_that_name_or_quote_another() -> None:
    data = {"text": "A headline here", "body": "Ada met Bob"}
    quoted, bare = ({"start": 0, "end": 3, "labels": ["PER"], **more} for more in ({"text": "Ada"}, {}))
    silent = {"id": 2, "data": {"text": "Another headline", "body": "It rained"}, "annotations": [by(1)]}
    for said in (about("b", 1, quoted), about("body", 1, bare)):
        corpus = read(silent, {"id": 1, "data": data, "annotations": [said]})  # nobody marked a headline in either
        assert list(corpus.tokens) == ["Ada", "met", "Bob", "It", "rained"]
        assert labels_of(corpus, "1") == ["B-PER", "O", "O", "O", "O"]
    both = {"id": 1, "data": data, "annotations": [about("body", 1, bare), about("text", 2, bare)]}
    assert labels_of(read(both, text="body"), "1") == ["B-PER", "O", "O"]
    assert read(both, text="body").load_report.counts["results of other controls or texts"] == 1
    here = {"start": 0, "end": 3, "text": "Bob", "labels": ["PER"]}
    two = {"id": 1, "data": {**data, "text": "Bob Ada"}, "annotations": [about("body", 1, quoted)]}
    two["annotations"].append(about("text", 2, here))  # both quotes stand in both texts, but not at their offsets
    with pytest.raises(FormatError, match="spans in several texts"):
        read(two)


def test_spans_of_sounds_and_files_are_none_of_the_text_beside_them() -> None:
    seconds = [{"start": start, "end": 7, "labels": ["speech"]} for start in (0, 3, 4.5)]
    heard = {"audio": "/data/a.wav", "text": TEXT}
    for name, data, marked in (
        ("audio", heard, seconds[:2]),
        ("audio", heard, seconds),
        ("a", {"text": TEXT}, seconds),
    ):
        with pytest.raises(FormatError, match="no span of text in this export"):
            read({"id": 1, "data": data, "annotations": [about(name, 1, *marked)]})
    corpus = read({"id": 1, "data": data, "annotations": [about("a", 1, *seconds), by(2, PER)]})
    assert labels_of(corpus, "2") == ONE
    assert corpus.load_report.counts["results that are no spans of text (labels of sounds)"] == 3
    for name in ("text", "t"):
        with pytest.raises(FormatError, match="only refer to files"):
            read({"id": 1, "data": {"text": "s3://bucket/a.txt"}, "annotations": [about(name, 1, PER)]})


def test_several_controls_and_other_results() -> None:
    other = {**result(**LOC), "from_name": "place"}
    choice = {"from_name": "tone", "type": "choices", "value": {"choices": ["good"]}}
    given = {**by(1, PER), "result": [result(**PER), other, choice]}
    corpus = read(task(given), control="label")
    assert labels_of(corpus, "1") == ONE
    assert corpus.load_report.counts["results of other controls or texts"] == 1
    assert corpus.load_report.counts["labels of whole documents left out"] == 1
    assert any("unit=document" in note for note in corpus.load_report.notes)
    assert labels_of(read(task(given)), "1") == BOTH


def test_hypertext_spans_use_global_offsets() -> None:
    value: dict[str, Any] = {"start": "/p/text()[1]", "end": "/p/text()[1]", "globalOffsets": {"start": 2, "end": 14}}
    hyper = {
        "from_name": "l",
        "to_name": "t",
        "type": "hypertextlabels",
        "value": {**value, "hypertextlabels": ["PER"]},
    }
    assert labels_of(read(task({**by(1), "result": [hyper]})), "1") == ONE


def test_overlaps_and_cut_tokens() -> None:
    nested = {"start": 6, "end": 14, "text": "Lovelace", "labels": ["NAME"]}
    with pytest.raises(FormatError, match=r"export.json:1 \(task 7\).*overlap"):
        read(task(by(1, PER, nested)))
    assert labels_of(read(task(by(1, PER, nested)), overlap="longest"), "1") == ONE
    cut = {"start": 2, "end": 10, "text": "Ada Love", "labels": ["PER"]}
    assert labels_of(read(task(by(1, cut))), "1") == ONE
    assert read(task(by(1, cut))).load_report.counts["expanded"] == 1
    assert labels_of(read(task(by(1, cut)), partial="shrink"), "1")[1:3] == ["B-PER", "O"]
    with pytest.raises(FormatError, match="cuts through"):
        read(task(by(1, cut)), partial="error")
    blank = {"start": 1, "end": 15, "text": " Ada Lovelace ", "labels": ["PER"]}
    assert read(task(by(1, blank))).load_report.counts["trimmed"] == 1
    assert labels_of(read(task(by(1, PER)), tokenizer=list), "1").count("I-PER") == 10
    for option in ("unit", "partial", "overlap", "tagging", "tokenizer"):
        with pytest.raises(ParameterError, match=option):
            read(task(by(1, PER)), **{option: "maybe"})


def test_the_same_annotator_twice() -> None:
    early = by(1, PER, updated_at="2024-01-01T10:00:00Z")
    late = by(1, PER, LOC, updated_at="2024-01-01T12:30:00+02:00")
    for order in ([early, late], [late, early]):
        corpus = read(task(*order))
        assert labels_of(corpus, "1") == BOTH
        assert corpus.load_report.counts["superseded"] == 1
    with pytest.raises(FormatError, match="twice"):
        read(task(by(1, PER), by(1, LOC)))
    assert read(task(by(1, PER), by(1, PER))).load_report.counts["repeated"] == 1


def test_one_id_one_text_and_order_does_not_matter() -> None:
    with pytest.raises(FormatError, match="another text"):
        read(task(by(1, PER)), task(by(2), text="other"))
    tasks = [task(by(1, PER), by(2, LOC), id=k, text=TEXT + "!" * k) for k in range(12)]
    halves = {"a.json": json.dumps(tasks[6:]).encode(), "b.json": json.dumps(tasks[5::-1]).encode()}
    assert label_studio.read(sources(halves), annotator="name") == read(*tasks)
    assert list(read(*tasks).sequence_ids) == [str(k) for k in range(12)]


def test_two_places_on_one_line_are_not_said_to_be_two() -> None:
    with pytest.raises(FormatError, match=r"another text here than before on the same line"):
        read(task(by(1, PER)), task(by(2), text="other"))
    lines = "\n".join(json.dumps(t) for t in (task(by(1, PER)), task(by(2), text="other")))
    with pytest.raises(FormatError, match=r":2 .*another text here than at .*:1"):
        label_studio.read(source("export.jsonl", lines.encode()))


def test_a_number_of_forty_digits_names_an_annotator() -> None:
    assert read(task(by(int("9" * 40), PER))).annotators == ("9" * 40,)


def test_errors_name_file_and_line() -> None:
    text = json.dumps([task(by(1, PER)), task(by(1, {**PER, "start": "x"}), id=8)], indent=0)
    line = text[: text.index('"id": 8')].count("\n")
    with pytest.raises(FormatError, match=rf"export.json:{line} \(task 8\).*start must be a whole number"):
        label_studio.read(source("export.json", text.encode()))
    with pytest.raises(FormatError, match=r"export.json:2.*not JSON"):
        label_studio.read(source("export.json", b'[{"id":1,"data":{"text":"a"}},\n{"id": ]'))
    with pytest.raises(FormatError, match="half a character"):
        label_studio.read(source("export.json", b'[{"id":1,"data":{"text":"a\\ud800b"}}]'))
    with pytest.raises(FormatError, match="no sequence"):
        label_studio.read(source("export.json", b"[]"))


def test_sniffing_says_no_to_others() -> None:
    assert label_studio.sniff(source("x.jsonl", b'{"text": "a", "label": [[0, 1, "X"]]}')) == 0
    assert label_studio.sniff(source("x.conll", b"Ada B-PER\n")) == 0


# --- writing -------------------------------------------------------------------------------------------------------


def test_predictions_keep_ids_and_text_and_say_how_sure(tmp_path: Path) -> None:
    data = {"body": TEXT, "source": 4}
    control = {"from_name": "ner", "to_name": "body", "type": "labels", "value": PER}
    corpus = read({"id": 7, "data": data, "annotations": [{**by(1), "result": [control]}]}, text="body")
    truth = np.array([corpus.labels.index(name) for name in ONE])
    proba = np.full((7, 3), 0.05)
    proba[np.arange(7), truth] = [0.99, 0.8, 0.9, 0.99, 0.99, 0.99, 0.99]
    path = tmp_path / "tasks.json"
    write(corpus, path, "label-studio", labels=truth, proba=proba, model_version="v1")
    (written,) = json.loads(path.read_text("utf-8"))
    assert written["id"] == 7
    assert written["data"] == data
    (prediction,) = written["predictions"]
    assert prediction["model_version"] == "v1"
    assert prediction["score"] == pytest.approx(0.8, abs=1e-9)
    (span,) = prediction["result"]
    assert (span["from_name"], span["to_name"], span["value"]) == ("ner", "body", PER)
    assert span["score"] == pytest.approx(0.85, abs=1e-9)
    again = label_studio.read(files_of(path), text="body")
    assert labels_of(again, "v1") == ONE
    assert again.roles == ("model",)


@pytest.mark.parametrize("unit", ["codepoint", "utf16", "grapheme"])
def test_what_was_read_and_written_is_the_same(tmp_path: Path, unit: str) -> None:
    corpus = read(
        task(by("ann", PER), by("bob", LOC), by("eve", PER, LOC, ground_truth=True)),
        task(by("ann"), id=10, text="Nothing here, 👨‍👩‍👧 e\u0301 Ada"),
        task(id="x9", text="nobody"),
    )
    path = tmp_path / "tasks.json"
    write(corpus, path, "label-studio", labels=corpus.golds["gold"], annotations=True, unit=unit)
    again = label_studio.read(files_of(path))
    assert again.crowd() == corpus


def test_names_instead_of_codes_and_corpora_without_text() -> None:
    corpus = CrowdCorpus.from_sequences([["Ada", "ran"], ["x"]], {"a": [["B-PER", "O"], None]})
    codes = [corpus.labels.index("B-PER"), corpus.labels.index("O"), -1]
    first, second = write_spans.tasks(corpus, outcome(corpus, codes))
    assert first["data"] == {"text": "Ada ran"}
    assert first["predictions"][0]["result"][0]["value"]["end"] == 3
    assert "score" not in first["predictions"][0]
    assert second["predictions"] == []  # nobody said anything, not even that there is nothing
    for wrong in ([0, 0], np.array([0, 1, 9])):
        with pytest.raises(ParameterError, match="labels"):
            outcome(corpus, wrong)
    with pytest.raises(ParameterError, match="proba"):
        outcome(corpus, np.zeros(3, int), np.ones((3, 9)))


def test_a_wrong_unit_writes_no_file(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="unit"):
        write(read(task(by(1, PER))), tmp_path / "u.json", "label-studio", unit="auto")
    assert not (tmp_path / "u.json").exists()


# --- hostile -------------------------------------------------------------------------------------------------------

VALID = json.dumps(
    [
        task(by(1, PER, LOC), by({"email": "a@b.c"}), by(2, PER, ground_truth=True), id=7, drafts=[]),
        task(by(1, updated_at="2024-01-01T10:00:00Z"), id=8, predictions=[{"result": [result(**PER)]}]),
    ],
    ensure_ascii=False,
    indent=1,
).encode()


def attempt(data: bytes) -> None:
    files = source("export.json", data)
    label_studio.sniff(files)
    label_studio.read(files)


def test_mutations_give_only_our_errors() -> None:
    assert_only_lasca_errors(attempt, VALID, max_examples=FEW)


@pytest.mark.fuzz
def test_many_mutations_give_only_our_errors() -> None:
    assert_only_lasca_errors(attempt, VALID, max_examples=MANY)


def test_deep_nesting_is_an_error() -> None:
    with pytest.raises(LascaError):
        attempt(b"[" * 100_000)


# --- variants of what real files taught: other names, labels, orders of keys ----------------------------------------


def shuffled(value: Any) -> Any:
    """Return the same JSON with the keys of every object in the opposite order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(entry) for entry in value] if isinstance(value, list) else value


def region(kind: str, **value: Any) -> dict[str, Any]:
    return {"from_name": "shape", "to_name": "picture", "type": kind, "value": value}


@pytest.mark.parametrize(
    ("results", "found"),
    [
        ([region("ellipselabels", x=1, y=2, ellipselabels=["Moon"])], "ellipselabels: 1"),
        ([region("timeserieslabels", start=3, end=9, instant=False, timeserieslabels=["Jump"])], "timeserieslabels: 1"),
        ([region("labels", start=0.25, end=1.5, channel=0, labels=["Speech"])], "labels of sounds: 1"),
        ([region("textarea", text=["free words"])], "textarea: 1"),
        ([], "1 annotation or prediction without any result"),
    ],
)
def test_nobody_said_o_where_nobody_labelled_text(results: list[Any], found: str) -> None:
    with pytest.raises(FormatError, match=f"no span of text in this export; there are {found}"):
        read(shuffled({"id": 1, "data": {"text": TEXT}, "annotations": [{**by(1), "result": results}]}))
    without = {
        "id": 1,
        "data": {"pic": "https://x.org/a b.png".replace(" ", "")},
        "annotations": [{**by(1), "result": results}],
    }
    with pytest.raises(FormatError, match="no text in these tasks"):
        read(shuffled(without))


def choice(question: str, *labels: Any, kind: str = "choices") -> dict[str, Any]:
    return {"from_name": question, "to_name": "text", "type": kind, "value": {kind: list(labels)}}


def test_labels_of_documents() -> None:
    def said(who: Any, *results: Any, **more: Any) -> dict[str, Any]:
        return {**by(who), "result": list(results), **more}

    tasks = [
        task(said(1, choice("tone", "good")), said(2, choice("tone", "bad")), id=1),
        task(said(1, choice("tone", "good", "odd")), said(2, ground_truth=True), id=2, text="Other text"),
    ]
    corpus = read(*map(shuffled, tasks))
    assert list(corpus.tokens) == [TEXT, "Other text"]
    assert corpus.labels == ("bad", "good", "good + odd")
    assert (labels_of(corpus, "1"), labels_of(corpus, "2")) == (["good", "good + odd"], ["bad", None])
    assert corpus.load_report.counts["several labels on one document, joined"] == 1
    two = [task(said(1, choice("tone", "good"), choice("topic", ["A", "B"], kind="taxonomy")), id=1)]
    with pytest.raises(FormatError, match=r"several questions: tone: 1, topic: 1.*control="):
        read(*two)
    assert read(*two, control="topic").labels == ("A / B",)
    both = task(said(1, choice("tone", "good"), result(**PER)))
    assert labels_of(read(both), "1") == ONE
    assert read(both, unit="document").labels == ("good",)
    with pytest.raises(FormatError, match="no labels of whole documents"):
        read(task(by(1, PER)), unit="document")
    alone, among = ({**choice("tone", *labels), "score": 0.8} for labels in (["good"], ["good", "odd"]))
    tasks = [task(said(1, alone), id=1), task(said(1, among), id=2, text="Other text")]
    soft = read(*tasks, unit="document", scores="soft").soft
    assert soft is not None
    assert soft.token.tolist() == [0]  # one score of several labels says nothing of each


def test_the_same_number_in_several_files_is_asked_about() -> None:
    def files(*who: Any) -> Any:
        return sources(
            {
                f"{name}.json": json.dumps([task(by(w, PER if k else LOC))]).encode()
                for k, (name, w) in enumerate(zip("xy", who))
            }
        )

    with pytest.raises(
        FormatError,
        match=r"annotator '5' stands in folder/x.json and in folder/y.json, which have 1 text .*annotator=file",
    ):
        label_studio.read(files(5, {"id": 5}))
    assert label_studio.read(files(5, 5), annotator="file").annotators == ("x", "y")
    assert label_studio.read(files(5, 6)).annotators == ("5", "6")
    mail = {"email": "a@b.c"}
    with pytest.raises(FormatError, match="twice"):  # the same person, who said two things
        label_studio.read(files(mail, mail))


def test_tasks_are_linked_by_their_texts() -> None:
    tasks = [task(by(1, PER), id=1), task(by(2, LOC), id=20), task(by(2), id=3, text="Other")]
    apart = read(*tasks)
    assert (apart.n_sequences, apart.load_report.counts["repeated texts"]) == (3, 1)
    assert any("link=text" in note for note in apart.load_report.notes)
    joined = read(*tasks, link="text")
    assert list(joined.sequence_ids) == ["1", "3"]
    assert joined.annotators == ("1", "2")
    assert joined.load_report.counts["texts joined over their ids"] == 1


def test_pages_are_read_by_their_global_offsets() -> None:
    page = "<div><p>Ada &amp; Bob</p><br><p>visited <b>Rome</b></p></div>"
    path = {"start": "/div[1]/p[1]/text()[1]", "end": "/div[1]/p[1]/text()[1]", "startOffset": 0, "endOffset": 3}
    spans = [
        {**path, "globalOffsets": {"start": 0, "end": 3}, "text": "Ada", "hypertextlabels": ["PER"]},
        {**path, "globalOffsets": {"start": 17, "end": 21}, "text": "Rome", "hypertextlabels": ["LOC"]},
    ]
    results = [{"from_name": "l", "to_name": "t", "type": "hypertextlabels", "value": span} for span in spans]
    corpus = read(shuffled({"id": 1, "data": {"page": page}, "annotations": [{**by(1), "result": results}]}))
    assert list(corpus.tokens) == ["Ada", "&", "Bobvisited", "Rome"]
    assert labels_of(corpus, "1") == ["B-PER", "O", "O", "B-LOC"]
    spans[0]["globalOffsets"] = {"end": 3}
    with pytest.raises(FormatError, match="start must be a whole number"):
        read({"id": 1, "data": {"page": page}, "annotations": [{**by(1), "result": results}]})
    spans[0]["globalOffsets"] = {"start": 0, "end": 3}
    del spans[1]["globalOffsets"]
    with pytest.raises(FormatError, match="without globalOffsets"):
        read({"id": 1, "data": {"page": page}, "annotations": [{**by(1), "result": results}]})


def test_dialogues_are_their_lines() -> None:
    lines = [{"author": "A", "text": "Hello Ada"}, {"author": "B", "text": "Rome calls"}]
    value = {"start": "1", "end": "1", "startOffset": 0, "endOffset": 4, "text": "Rome", "paragraphlabels": ["LOC"]}
    said = {"from_name": "l", "to_name": "d", "type": "paragraphlabels", "value": value}
    corpus = read({"id": 1, "data": {"talk": lines}, "annotations": [{**by(1), "result": [said]}]})
    assert list(corpus.tokens) == ["Hello", "Ada", "Rome", "calls"]
    assert labels_of(corpus, "1") == ["O", "O", "B-LOC", "O"]


def test_tables_that_label_studio_exports() -> None:
    cell = json.dumps([PER]).replace('"', '""')
    table = f'annotation_id,annotator,created_at,id,label,lead_time,text,updated_at\n9,3,,7,"{cell}",1.5,{TEXT},\n'
    files = source("project.csv", table.encode())
    assert label_studio.sniff(files) > 0.9
    assert labels_of(label_studio.read(files), "3") == ONE
    tabs = (
        "\t".join(["text", "id", "tone", "annotator", "annotation_id", "lead_time"]) + f"\n{TEXT}\t7\tgood\t3\t1\t2.0\n"
    )
    corpus = label_studio.read(source("project.tsv", tabs.encode()), unit="document", control="tone")
    assert labels_of(corpus, "3") == ["good"]


@pytest.mark.parametrize("max_examples", [FEW, pytest.param(MANY, marks=pytest.mark.fuzz)])
@pytest.mark.parametrize(
    "options", [{"unit": "document"}, {"overlap": "layers"}, {"overlap": "depth", "partial": "split"}]
)
def test_any_bytes_as_documents_and_layers(max_examples: int, options: dict[str, str]) -> None:
    results = [choice("tone", "good"), choice("topic", ["A", "B"], kind="taxonomy"), result(**PER), result(**LOC)]
    tasks = [task({**by(1), "result": results[:1] + results[2:]}, id=1), task({**by(2), "result": results[2:]}, id=2)]
    data = json.dumps(tasks).encode()
    assert_only_lasca_errors(
        lambda b: label_studio.read(source("export.json", b), **options), data, max_examples=max_examples
    )


@pytest.mark.parametrize("max_examples", [FEW, pytest.param(MANY, marks=pytest.mark.fuzz)])
def test_any_bytes_as_a_table(max_examples: int) -> None:
    cell = json.dumps([PER]).replace('"', '""')
    table = f'annotation_id,annotator,id,label,lead_time,text\n9,3,7,"{cell}",1.5,{TEXT}\n'
    assert_only_lasca_errors(lambda b: label_studio.read(source("x.csv", b)), table.encode(), max_examples=max_examples)


@pytest.mark.parametrize("max_examples", [FEW, pytest.param(MANY, marks=pytest.mark.fuzz)])
def test_any_bytes_as_a_page(max_examples: int) -> None:
    span = {"start": "/p[1]/text()[1]", "end": "/p[1]/text()[1]", "globalOffsets": {"start": 0, "end": 3}}
    span |= {"text": "Ada", "hypertextlabels": ["PER"]}
    said = {"from_name": "l", "to_name": "t", "type": "hypertextlabels", "value": span}
    page = {"id": 1, "data": {"t": "<p>Ada saw</p>"}, "annotations": [{**by(1), "result": [said]}]}
    assert_only_lasca_errors(
        lambda b: label_studio.read(source("x.json", b)), json.dumps([page]).encode(), max_examples=max_examples
    )


# --- one choice alone is written plainly, several in a list -------------------------------------------------------


@pytest.mark.parametrize(("key", "text"), [("mood", "text"), ("topic", "review"), ("zz", "body")])
def test_a_single_choice_beside_several_is_a_vote_too(key: str, text: str) -> None:
    def row(who: int, said: Any, words: str = "Ada ran home") -> dict[str, Any]:
        return {"id": len(words), text: words, key: said, "source": "web", "annotator": who, "annotation_id": who}

    rows = [row(1, {"choices": ["a", "b"]}), row(2, "b"), row(1, "a", "no"), row(2, {"choices": ["b", "a"]}, "no")]
    corpus = read(*rows, **({} if text == "text" else {"text": text}))
    assert labels_of(corpus, "1") == ["a", "a + b"]
    assert labels_of(corpus, "2") == ["a + b", "b"]
    assert key not in corpus.metadata
    assert set(corpus.metadata["source"]) == {"web"}
    cells = [[json.dumps(r[key]) if isinstance(r[key], dict) else r[key] for r in rows], rows]
    table = f"annotation_id,annotator,id,lead_time,{text},{key}\n" + "".join(
        f'{r["annotation_id"]},{r["annotator"]},{r["id"]},1.0,{r[text]},"{str(c).replace(chr(34), chr(34) * 2)}"\n'
        for c, r in zip(*cells)
    )
    same = label_studio.read(source("x.csv", table.encode()))
    assert labels_of(same, "1") == labels_of(corpus, "1")
    assert labels_of(same, "2") == labels_of(corpus, "2")


def test_annotations_without_their_tasks_are_refused_by_name() -> None:
    files = source("x.json", json.dumps([{"id": 1, "completions": [{"aggregated": True, "result": []}]}]).encode())
    assert label_studio.sniff(files) > 0.5
    with pytest.raises(FormatError, match="Export whole tasks"):
        label_studio.read(files)


def test_all_keys_that_may_be_the_text_are_named() -> None:
    keys = [f"column_{i}" for i in range(12)]
    data = {key: f"word {i} " * (i % 7 + 1) for i, key in enumerate(keys)}
    with pytest.raises(FormatError, match=r"-r text=column_6") as error:
        read({"id": 1, "data": data, "annotations": [by(1)]})
    assert all(key in str(error.value) for key in keys)


def test_pages_that_nobody_labelled_are_refused() -> None:
    """Without a span nothing says which characters of the markup are counted."""
    task = {"id": 1, "data": {"html": "<p>Ada <b>ran</b></p>"}, "annotations": []}
    with pytest.raises(FormatError, match="the text is HTML"):
        label_studio.read(source("export.json", json.dumps([task]).encode()))


@pytest.mark.parametrize("quoted", [True, False])
def test_spans_in_several_texts_of_a_task_are_asked_about(quoted: bool) -> None:
    texts = {"text": "Ada met Ben", "reply": "so in Rome it was"}
    spans = [("text", "people", 0, 3, "PER"), ("reply", "places", 6, 10, "LOC")]
    result = [
        {"from_name": control, "to_name": key, "type": "labels",
         "value": {"start": a, "end": b, "labels": [label], **({"text": texts[key][a:b]} if quoted else {})}}
        for key, control, a, b, label in spans
    ]  # fmt: skip
    tasks = [{"id": 1, "data": texts, "annotations": [{"completed_by": 1, "result": result}]}]
    files = source("x.json", json.dumps(tasks).encode())
    with pytest.raises(FormatError, match=r"spans in several texts.*-r control=people -r text=text"):
        label_studio.read(files)
    for control, words in (("people", "Ada met Ben"), ("places", "so in Rome it was")):
        key = {} if quoted else {"text": "text" if control == "people" else "reply"}
        corpus = label_studio.read(files, control=control, **key)
        assert " ".join(corpus.sequence(0)) == words
        assert len(corpus.labels) == 2


def test_a_page_in_which_nobody_marked_anything_is_read_without_its_markup() -> None:
    def page(id: int, words: str, *spans: dict[str, Any]) -> dict[str, Any]:
        results = [{"from_name": "ner", "to_name": "page", "type": "hypertextlabels", "value": s} for s in spans]
        given = {"completed_by": 1, "result": results}
        return {"id": id, "data": {"page": f"<p>{words}</p>"}, "annotations": [given]}

    place = {"start": "/p[1]/text()[1]", "end": "/p[1]/text()[1]", "globalOffsets": {"start": 0, "end": 3}}
    corpus = read(page(1, "Ada left", {**place, "text": "Ada", "hypertextlabels": ["PER"]}), page(2, "so it goes"))
    assert [list(corpus.sequence(id)) for id in ("1", "2")] == [["Ada", "left"], ["so", "it", "goes"]]


def test_completions_of_annotation_lab_name_who_made_them() -> None:
    """John Snow Labs' exports say created_username, and were refused as nobody's."""
    said = [{"created_username": who, "result": [result(**mark)]} for who, mark in (("eric", PER), ("ana", LOC))]
    corpus = read({"id": 0, "data": {"text": TEXT}, "created_by": "admin", "completions": said, "predictions": []})
    assert list(corpus.annotators) == ["ana", "eric"]


def test_annotations_of_a_task_that_name_nobody_are_asked_about() -> None:
    first = {"result": [result(**PER)], "created_at": "2020-01-01T00:00:00Z"}
    second = {"result": [result(**LOC)], "created_at": "2020-01-02T00:00:00Z"}
    with pytest.raises(FormatError, match=r"2 annotations of this task do not say who made them.*annotator=name"):
        read(task(first, second))
    assert read(task(first, second), annotator="name").load_report.counts["superseded"] == 1
    assert read(task(first, {**second, "was_cancelled": True})).annotators == ("unknown",)
    beside = task(first, predictions=[{"result": [result(**LOC)]}])
    assert "unknown" in read(beside).annotators  # predictions are no people


def test_annotations_by_their_numbers_only_are_refused() -> None:
    bare = {"id": 7, "data": {"text": TEXT}, "annotations": [11, 12]}
    with pytest.raises(FormatError, match="2 annotations given by number only"):
        read(bare)


def test_a_prediction_by_its_number_is_found_in_the_annotation_that_began_with_it() -> None:
    model = {"id": 11, "model_version": "gpt-4", "result": [result(**PER)]}
    given = task({"completed_by": 3, "result": [result(**LOC)], "prediction": model})
    corpus = read({**given, "predictions": [11, 12]})
    assert dict(zip(corpus.annotators, corpus.kinds)) == {"3": "person", "gpt-4": "model"}
    assert corpus.load_report.counts["predictions without content"] == 1


@pytest.mark.parametrize("suffix", [".json", ""])
def test_annotations_in_a_storage_hold_their_tasks(tmp_path: Path, suffix: str) -> None:
    whole = {"id": 6, "data": {"text": TEXT}, "project": 8}
    for number, (who, span) in enumerate((("ada@x.org", PER), ("ben@x.org", LOC))):
        given = {"id": number, "completed_by": {"id": number, "email": who}, "result": [result(**span)], "task": whole}
        (tmp_path / f"{number}{suffix}").write_text(json.dumps(given))
    corpus = lasca.read(tmp_path)
    assert (corpus.annotators, corpus.sequence_ids) == (("ada@x.org", "ben@x.org"), ("6",))
    assert corpus.load_report.format == "label-studio"


def test_plain_values_that_differ_within_a_task_of_json_min_are_answers() -> None:
    said = [(k, who, "good" if who == 1 or k % 2 else "bad") for k in range(9) for who in (1, 2)]
    rows = [{"id": k, "text": f"{TEXT} {k}", "tone": tone, "source": "web", "annotator": who} for k, who, tone in said]
    corpus = read(*rows)
    assert labels_of(corpus, "2") == ["bad", "good"] * 4 + ["bad"]
    assert "tone" not in corpus.metadata
    assert corpus.metadata["source"][0] == "web"
    with pytest.raises(FormatError, match="several questions: tone: 18, topic: 18"):
        read(*({**row, "topic": {"choices": ["a", "b"]}} for row in rows))
    corpus = read(*({**row, "label": [PER]} for row in rows))
    assert corpus.load_report.counts["labels of whole documents left out"] == 18
    again = json.dumps([{**row, "text": f"Another {TEXT}", "annotator": 3} for row in rows[::2]]).encode()
    files = sources({"a.json": json.dumps(rows).encode(), "b.json": again})
    assert label_studio.read(files, link="text", unit="document").n_sequences == 10  # other tasks of the same numbers


def test_people_in_folders_of_their_own_may_have_files_of_one_name() -> None:
    both = {
        f"{who}/export.json": json.dumps([task(by(1, *spans))]).encode() for who, spans in (("a", [PER]), ("b", []))
    }
    corpus = label_studio.read(sources(both), annotator="file")
    assert labels_of(corpus, "a") == ONE
    assert labels_of(corpus, "b") == ["O"] * 7

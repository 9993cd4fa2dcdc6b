"""JSON records that name who said what, in all their shapes, in any order of keys; and what is not read."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError
from lasca.formats import READERS, records
from lasca.formats.choose import choose
from mutations import MANY, assert_only_lasca_errors, source, sources

SAMPLES = [line.strip().encode() + b"\n" for line in (records.__doc__ or "").splitlines() if line.startswith("    {")]
WORDS = ["Ada", "left", "Rome"]
TEXT = "Ada left Rome"
ANN, BEN = ["B-PER", "O", "B-LOC"], ["B-PER", "O", "O"]
PER, LOC = [0, 3, "PER"], [9, 13, "LOC"]


def load(*rows: Any, name: str = "x.jsonl", **options: Any) -> CrowdCorpus:
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    assert choose(READERS, source(name, data), name) == "records"
    return records.read(source(name, data), **options)


def votes(corpus: CrowdCorpus) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in corpus.to_table().to_pylist():
        found.setdefault(row["annotator"], []).append(row["label"])
    return found


def test_the_samples_of_the_docstring() -> None:
    assert len(SAMPLES) == 7
    for sample in SAMPLES:
        assert choose(READERS, source("x.jsonl", sample), "x.jsonl") in ("records", "huggingface")
        corpus = records.read(source("x.jsonl", sample))
        assert {"ann", "gpt-4"} & set(corpus.annotators)
        assert corpus.n_sequences == 1


def test_an_id_that_is_none_is_named_with_its_line() -> None:
    with pytest.raises(FormatError, match=r"^x.jsonl:1: the id of a record must be a name or a number"):
        load({"id": [7], "text": TEXT, "annotations": {"ann": [PER], "ben": [PER]}})


SPANS = {
    "by annotator": {"annotations": {"ann": [PER, LOC], "ben": [PER]}},
    "in a list": {
        "annotations": [{"annotator": "ann", "entities": [PER, LOC]}, {"annotator": "ben", "entities": [PER]}]
    },
    "as objects": {
        "labels": [
            {"worker_id": "ann", "spans": [{"start": s, "end": e, "type": t} for s, e, t in (PER, LOC)]},
            {"worker_id": "ben", "spans": [{"begin": 0, "end_offset": 3, "category": "PER", "text": "Ada"}]},
        ]
    },
}


@pytest.mark.parametrize("shape", SPANS)
def test_spans_by_annotator(shape: str) -> None:
    for keys in permutations(["id", "text", *SPANS[shape]]):
        row = {"id": 7, "text": TEXT, **SPANS[shape]}
        corpus = load({key: row[key] for key in keys})
        assert votes(corpus) == {"ann": ANN, "ben": BEN}
        assert list(corpus.sequence_ids) == ["7"]


def test_spans_in_a_column_each_and_in_a_row_each() -> None:
    assert votes(load({"text": TEXT, "annotator_1": [PER, LOC], "annotator_2": [PER]})) == {
        "annotator_1": ANN,
        "annotator_2": BEN,
    }
    rows = [
        {"text": TEXT, "rater": who, "spans": said} for who, said in (("ann", [PER, LOC]), ("ben", [PER]), ("cy", []))
    ]
    corpus = load(*rows)
    assert votes(corpus) == {"ann": ANN, "ben": BEN, "cy": ["O", "O", "O"]}
    assert corpus.load_report.counts["texts in which somebody marked nothing, all O"] == 1


@pytest.mark.parametrize(
    "said",
    [
        {"annotations": [{"annotator": "ann", "labels": ANN}, {"annotator": "ben", "labels": BEN}]},
        {"ann": ANN, "ben": BEN},
        {"labels": [{"user": "ann", "tags": ANN}, {"user": "ben", "tags": BEN}], "source": "web"},
    ],
)
def test_tags_by_annotator(said: dict[str, Any]) -> None:
    corpus = load({"id": "s1", "tokens": WORDS, **said})
    assert votes(corpus) == {"ann": ANN, "ben": BEN}
    assert list(corpus.tokens) == WORDS


@pytest.mark.parametrize("more", [{}, {"text": TEXT}])
def test_who_marked_nothing_beside_tags_gave_o(more: dict[str, Any]) -> None:
    row = {"id": 1, "tokens": WORDS, **more, "annotations": {"ann": ANN, "ben": []}}
    corpus = records.read(source("x.jsonl", json.dumps(row).encode()))
    assert votes(corpus) == {"ann": ANN, "ben": ["O", "O", "O"]}
    assert corpus.load_report.counts == {"texts in which somebody marked nothing, all O": 1}


def test_who_marked_nothing_beside_spans_gave_no_tags() -> None:
    row = {"id": 1, "tokens": WORDS, "text": TEXT, "annotations": {"ann": [PER], "ben": []}}
    corpus = records.read(source("x.jsonl", json.dumps(row).encode()))
    assert votes(corpus) == {"ann": ["B-PER", "O", "O"], "ben": ["O", "O", "O"]}


def test_tokens_that_were_left_out_are_missing() -> None:
    row = {"id": 1, "tokens": WORDS, "annotations": {"ann": ["B-PER", -100, "O"], "ben": [None, "O", "O"]}}
    corpus = records.read(source("x.jsonl", json.dumps(row).encode()))
    assert votes(corpus) == {"ann": ["B-PER", "O"], "ben": ["O", "O"]}


def test_most_records_must_say_who_said_what() -> None:
    said, nobody = {"text": TEXT, "annotations": {"ann": [PER], "ben": []}}, {"text": TEXT}
    for rows, sure in (((said, nobody), False), ((said, said, nobody), True)):
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
        assert (records.sniff(source("x.jsonl", data)) > 0) == sure


STATES = [{"status": "Skipped"}, {"cancelled": True}, {"is_draft": "true"}, {"annotation_status": "in progress"}]


@pytest.mark.parametrize("state", STATES)
def test_what_was_skipped_or_is_a_draft_is_missing_and_not_all_o(state: dict[str, Any]) -> None:
    given = [{"annotator": "ann", "spans": [PER], "status": "done"}, {"annotator": "ben", "spans": [], **state}]
    rows = [{"id": 1, "text": TEXT, **said} for said in given]
    for corpus in (load({"id": 1, "text": TEXT, "annotations": given}), load(*rows)):
        assert votes(corpus) == {"ann": ["B-PER", "O", "O"]}
        (why,) = (kind for kind in corpus.load_report.counts if kind.startswith("annotations that do not count"))
        assert corpus.load_report.counts[why] == 1
    span = {"start": 0, "end": 3, "label": "PER", "annotator": "ann", **state}
    with pytest.raises(FormatError, match="a span is said to be"):
        load({"id": 1, "text": TEXT, "spans": [span]})


def test_the_state_of_a_text_is_nothing_that_somebody_said_of_it() -> None:
    row = {"id": 1, "text": TEXT, "status": "pending", "annotations": {"ann": [PER], "ben": []}}
    assert votes(load(row)) == {"ann": ["B-PER", "O", "O"], "ben": ["O", "O", "O"]}


def test_authors_are_read_where_many_texts_have_no_span_at_all() -> None:
    spans = [{"start": 0, "end": 3, "label": "PER", "annotator_id": who} for who in (7, 8)]
    rows = ({"id": 1, "text": TEXT, "labels": spans}, *({"id": k, "text": TEXT + "!", "labels": []} for k in (2, 3, 4)))
    assert set(votes(load(*rows))) == {"7", "8"}  # and not one person, whom the file is called by
    seen = {"annotators": ["7", "8", "9"]}
    corpus = load({"id": 1, "text": TEXT, "spans": spans, **seen}, {"id": 2, "text": "It rained", "spans": [], **seen})
    assert (votes(corpus)["9"], votes(corpus)["7"]) == (["O"] * 5, ["B-PER", *["O"] * 4])


def test_nothing_under_a_name_is_no_vote() -> None:
    rows = ({"id": k, "text": TEXT, "annotations": {"ann": [PER], "ben": ben}} for k, ben in ((1, None), (2, [])))
    assert votes(load(*rows)) == {"ann": ["B-PER", "O", "O"] * 2, "ben": ["O", "O", "O"]}


def test_places_that_may_count_tokens_are_asked_about() -> None:
    row = {"id": 1, "text": TEXT, "tokens": WORDS}
    assert votes(load({**row, "annotations": {"ann": [PER], "ben": [LOC]}}))["ben"] == ["O", "O", "B-LOC"]
    for spans in ([[0, 1, "PER"]], [[0, 3, "PER"], [2, 3, "LOC"]]):
        with pytest.raises(FormatError, match="not clear whether they count tokens"):
            load({**row, "annotations": {"ann": spans, "ben": []}})
    with pytest.raises(FormatError, match="one start and one end, in characters"):
        load({"id": 1, "text": TEXT, "annotator": "ann", "spans": [{"token_start": 0, "token_end": 0, "label": "PER"}]})


def test_a_list_of_one_label_is_a_label_and_an_empty_label_is_none() -> None:
    span = {"start": 0, "end": 3, "labels": ["PER"], "annotator": "ann"}
    assert votes(load({"id": 1, "text": TEXT, "spans": [span]})) == {"ann": ["B-PER", "O", "O"]}
    rows = [{"id": k, "text": TEXT + "!" * k, "annotators": ["ann", "ben"], "labels": ["good", ""]} for k in range(3)]
    assert votes(load(*rows)) == {"ann": ["good"] * 3}


def test_a_post_and_its_reply_are_lines() -> None:
    said = {"annotators": ["ann", "ben"], "labels": ["good", "bad"]}
    corpus = load({"id": 1, "text": {"post": "Ada left", "reply": "so nice"}, **said})
    assert "Ada left\nso nice" in {*corpus.tokens[:], *(str(v) for column in corpus.metadata.values() for v in column)}


def test_columns_of_different_kinds_are_no_annotators() -> None:
    kinds = {"pos": ["NNP", "VBD", "NNP"], "ner": ANN}
    for names, found in ((("pos", "ner"), []), (("one", "other"), ["one", "other"])):
        row = dict(zip(names, kinds.values() if not found else (ANN, BEN)))
        assert records._columns([{"tokens": WORDS, **row}]) == found


def test_columns_are_annotators_in_all_records_or_in_none() -> None:
    """Records in which two disagreed, or only one of them spoke, were nobody's: what was left agreed too well."""
    rows = [(WORDS, ANN, BEN), (["Oslo"], ["B-PER"], ["B-LOC"]), (["Kyiv"], None, ["B-LOC"]), (["Bonn"], [], ["O"])]
    corpus = load(*({"id": k, "tokens": t, "ann": ann, "ben": ben} for k, (t, ann, ben) in enumerate(rows)))
    assert votes(corpus) == {"ann": [*ANN, "B-PER"], "ben": [*BEN, "B-LOC", "B-LOC", "O"]}
    assert corpus.load_report.counts == {"other values of records (ann)": 1}


def test_levels_of_tags_and_json_in_labels_are_not_read() -> None:
    """The outer and the inner names of one annotation were two annotators, and a list of spans was a label."""
    rows = [{"tokens": WORDS, "outer_tags": ANN, "inner_tags": BEN}]
    assert records.sniff(source("x.jsonl", json.dumps(rows[0]).encode())) == 0
    row = {"text": TEXT, "annotator": 1, "label": json.dumps([{"start": 0, "end": 3, "labels": ["PER"]}])}
    with pytest.raises(FormatError, match="a label must be a name, and not a list or object"):
        READERS["doccano"](source("x.jsonl", json.dumps(row).encode()))


def test_golds_and_models_by_their_names() -> None:
    corpus = load({"id": 1, "tokens": WORDS, "gold": ANN, "gpt-4": BEN, "ann": ANN, "majority": BEN})
    assert sorted(corpus.golds) == ["gold", "majority"]
    assert dict(zip(corpus.annotators, corpus.roles)) == {"ann": "annotator", "gpt-4": "model"}


@pytest.mark.parametrize(
    "said",
    [
        {"annotators": ["ann", "ben"], "labels": ["good", "bad"]},
        {"annotators": "ann,ben", "annotations": "good,bad"},
        {"annotations": {"ann": "good", "ben": "bad"}, "annotators": "ann,ben"},
        {"annotators": [{"annotator_id": "ann", "label": "good"}, {"annotator_id": "ben", "label": "bad"}]},
    ],
)
def test_labels_of_documents(said: dict[str, Any]) -> None:
    rows = [{"id": k, "text": f"it is so {k}", **said} for k in range(3)]
    assert votes(load(*rows)) == {"ann": ["good"] * 3, "ben": ["bad"] * 3}


def test_what_else_annotators_say_is_counted() -> None:
    said = [{"annotator_id": 1, "label": "good", "target": ["x"]}, {"annotator_id": 2, "label": "bad", "target": []}]
    counts = load({"id": 1, "tokens": WORDS, "annotators": said, "rationales": [[0, 1, 0]]}).load_report.counts
    assert counts["other values of annotations (target)"] == 1
    assert counts["other values of records (rationales)"] == 1


def test_counts_of_votes_are_no_annotators() -> None:
    data = b'{"text": "so nice", "votes": {"good": 2, "bad": 1}}\n{"text": "so bad", "votes": {"good": 0, "bad": 3}}\n'
    assert records.sniff(source("x.jsonl", data)) == 0
    ambiguous = b'{"tokens": ["Ada", "left"], "annotations": {"ann": [{"start": 0, "end": 1, "label": "PER"}]}}\n'
    with pytest.raises(FormatError, match="tokens or characters"):
        records.read(source("x.jsonl", ambiguous))
    uneven = b'{"text": "so nice", "annotators": ["ann", "ben"], "labels": ["good"]}\n'
    with pytest.raises(FormatError, match="2 annotators and 1 labels"):
        records.read(source("x.jsonl", uneven))


def potato(spans: Any, **labels: str) -> bytes:
    chosen = {scheme: {label: "true"} for scheme, label in labels.items()}
    row = {"id": "1", "displayed_text": TEXT, "label_annotations": chosen, "span_annotations": spans}
    return json.dumps({**row, "behavioral_data": {"time_string": "Time spent: 0d 0h 0m 5s "}}).encode() + b"\n"


def test_potato_has_a_folder_for_each_annotator() -> None:
    span = {"start": 0, "end": 3, "span": "Ada", "annotation": "PER"}
    files = sources(
        {"ann@x.org/annotated_instances.jsonl": potato([span]), "ben/annotated_instances.jsonl": potato({})}
    )
    assert choose(READERS, files, "x") == "records"
    assert votes(records.read(files)) == {"ann@x.org": BEN, "ben": ["O", "O", "O"]}
    files = sources({"a/annotated_instances.jsonl": potato({}, tone="good", topic="x")})
    with pytest.raises(FormatError, match="tone: 1, topic: 1"):
        records.read(files)
    assert votes(records.read(files, question="tone")) == {"a": ["good"]}


@pytest.mark.parametrize("examples", [None, pytest.param(MANY, marks=pytest.mark.fuzz)])
def test_mutations_give_a_corpus_or_a_lasca_error(examples: int | None) -> None:
    more = {} if examples is None else {"max_examples": examples}
    for valid in (b"".join(SAMPLES[:1] + SAMPLES[4:]), SAMPLES[1], SAMPLES[2], potato([], tone="good")):
        assert_only_lasca_errors(lambda data: records.read(source("x.jsonl", data)), valid, **more)


@pytest.mark.parametrize("key", ["annotator", "annotators", "createdBy", "author", "user_email"])
def test_spans_that_name_who_marked_them(key: str) -> None:
    """Both were read as one annotator's work, called by the file."""
    who = (lambda *names: list(names)) if key == "annotators" else (lambda *names: names[0])
    spans = [
        {"start": 0, "end": 3, "label": "PER", key: who("ann", "ben")},
        {"start": 9, "end": 13, "label": "LOC", key: who("ann")},
    ]
    for under in ("spans", "entities"):
        found = votes(load({"id": 1, "text": TEXT, under: spans}))  # and not by doccano or prodigy
        assert found == ({"ann": ANN, "ben": BEN} if key == "annotators" else {"ann": ANN})


def test_authors_that_only_some_spans_have_are_no_file_names() -> None:
    spans = [{"start": 0, "end": 3, "label": "PER", "createdBy": None}, {"start": 9, "end": 13, "label": "LOC"}]
    rows = [{"text": TEXT, "spans": spans}, {"text": "Bob left", "spans": [{**spans[0], "createdBy": "ann"}]}]
    with pytest.raises(FormatError, match="format cannot be told"):
        choose(READERS, source("x.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode()), "x.jsonl")
    assert choose(READERS, source("x.jsonl", json.dumps(rows[0]).encode()), "x.jsonl") == "prodigy"


def test_one_name_in_the_files_of_several_people_is_asked_about() -> None:
    rows = {name: {"text": TEXT, "annotator": "human", "spans": own} for name, own in (("ann", [PER]), ("ben", [LOC]))}
    with pytest.raises(FormatError, match=r"'human' labelled sequence .* if each file is another person's"):
        records.read(sources({f"{name}.jsonl": json.dumps(row).encode() for name, row in rows.items()}))


@pytest.mark.parametrize("key", ["annotatorId", "annotation_agent", "user_email"])
@pytest.mark.parametrize("spans", ["label", "annotation", "entities"])
def test_rows_that_name_who_marked_their_spans(key: str, spans: str) -> None:
    """They were one annotator's, called by the file."""
    rows = [{"id": 1, "text": TEXT, key: "ann", spans: [PER, LOC]}, {"id": 1, "text": TEXT, key: "ben", spans: [PER]}]
    assert votes(load(*rows)) == {"ann": ANN, "ben": BEN}


def test_values_of_spans_that_are_not_read_are_counted() -> None:
    span = {"start": 0, "end": 3, "label": "PER", "annotator": "ann", "kb_id": "Q7259", "sure": False}
    assert load({"text": TEXT, "spans": [span]}).load_report.counts == {"other values of spans (kb_id)": 1}


SAID = {"ann": [{"text": TEXT, "label": [PER, LOC]}], "ben": [{"text": TEXT, "label": [PER]}]}


def test_an_object_of_what_annotators_said(tmp_path: Any) -> None:
    from lasca.formats import read

    path = tmp_path / "x.json"
    one = {"project": {"id": 1}, "labels": [{"name": "PER"}], "annotator": "ann", "documents": SAID["ann"]}
    for whole, found in ((SAID, {"ann": ANN, "ben": BEN}), (one, {"ann": ANN})):
        path.write_text(json.dumps(whole))
        assert votes(read(path)) == found
    path.write_text(json.dumps({**SAID, "ben": [{"text": "so it was", "label": []}]}))  # may be train and test
    with pytest.raises(FormatError, match="keys ann, ben"):
        read(path)


def test_answers_of_teamware(tmp_path: Any) -> None:
    from lasca.formats import read

    def answered(mood: str, about: list[str]) -> dict[str, Any]:
        features = {"mood": mood, "about": about}
        return {"annotations": [{"type": "Document", "start": 0, "end": 10, "id": 0, "features": features}]}

    row = {"text": TEXT, "annotation_sets": {"ann": answered("glad", ["x", "y"]), "ben": answered("sad", ["x"])}}
    path = tmp_path / "x.json"
    for known in ({"id": 7}, {"name": "7", "offset_type": "p"}):
        path.write_text(json.dumps([{**known, **row}]))
        corpus = read(path, unit="document", question="mood")
        assert (votes(corpus), list(corpus.sequence_ids)) == ({"ann": ["glad"], "ben": ["sad"]}, ["7"])
        assert corpus.load_report.counts["labels for other questions"] == 3
    row["annotation_sets"]["ann"]["annotations"][0]["type"] = "Person"  # GATE's own documents
    path.write_text(json.dumps([row]))
    with pytest.raises(FormatError, match="GATE document"):
        read(path)


def test_a_tag_for_every_word_in_a_cell(tmp_path: Any) -> None:
    """The tags of a whole sentence were one label of it."""
    from lasca.formats import read

    path = tmp_path / "x.csv"
    path.write_text(
        "sentence,annotator_1,gpt-4,gold\nAda left Rome,B-PER O B-LOC,B-PER O O,B-PER O B-LOC\nso it was,O O O,,O O O\n"
    )
    corpus = read(path)
    assert votes(corpus) == {"annotator_1": ["O", "O", "O", *ANN], "gpt-4": BEN}
    assert list(corpus.golds) == ["gold"]
    path.write_text("text,ann_1,ann_2\nso good,very good,good\nso bad,very bad,bad\noh,good,bad\n")
    assert read(path).n_tokens == 3


@pytest.mark.parametrize(
    "by_label",
    [{"PER": ["Ada"], "LOC": ["Rome"]}, {"PER": [[0, 3]]}, {"PER": [[0, 3, "Ada"]]}, {"PER": [{"start": 0, "end": 3}]}],
)
def test_labels_that_hold_their_spans_are_no_annotators(by_label: dict[str, Any]) -> None:
    for key in ("labels", "annotations", "entities"):
        data = json.dumps({"text": TEXT, key: by_label}).encode()
        assert records.sniff(source("x.jsonl", data)) == 0


def test_keys_with_a_label_and_places_of_their_own_are_types() -> None:
    text = "Ada and Bob saw Rome and Oslo"
    marks = {"people": [[0, 3, "PER"], [8, 11, "PER"]], "places": [[16, 20, "LOC"], [25, 29, "LOC"]]}
    assert records._typed([{"text": text, "labels": marks}])
    again = {**marks, "places": [[0, 3, "LOC"], [25, 29, "LOC"]]}  # somebody spoke of what another did
    assert not records._typed([{"text": text, "labels": again}])
    few = {"people": [[0, 3, "PER"]], "places": [[16, 20, "LOC"]]}
    assert not records._typed([{"text": text, "labels": few}])


# --- what language models write, golds, and further shapes ---------------------------------------------------------

QUOTES = [{"text": "Ada", "label": "PER"}, {"text": "Rome", "type": "LOC"}]


@pytest.mark.parametrize(
    "said",
    [
        {"entities": QUOTES},
        {"response": json.dumps(QUOTES)},
        {"output": "Sure! ```json\n" + json.dumps({"entities": QUOTES}) + "\n```"},
    ],
)
def test_quotes_of_language_models_are_found_in_the_text(said: dict[str, Any]) -> None:
    corpus = load(
        {"id": 1, "text": TEXT, "model": "gpt-4", **said},
        {"id": 1, "text": TEXT, "model": "claude-3", "response": "[]"},
        {"id": 2, "text": TEXT, "model": "gpt-4", "response": "I cannot say."},
    )
    assert corpus.kinds == ("model", "model")
    assert votes(corpus) == {"gpt-4": ANN, "claude-3": ["O", "O", "O"]}
    assert corpus.load_report.counts["records that nobody labelled"] == 1
    lost = load({"id": 1, "text": TEXT, "model": "gpt-4", "entities": [{"text": "Oslo", "label": "LOC"}]})
    assert lost.load_report.counts["quotes not in the text"] == 1


def test_a_model_that_is_a_thing_is_nobody() -> None:
    row = {"text": TEXT, "model": "Golf III", "entities": QUOTES}
    assert records.sniff(source("x.jsonl", json.dumps(row).encode())) == 0.0


def test_objects_around_what_annotators_said_and_lists_beside_their_names() -> None:
    wrapped = {"ann": {"spans": [PER, LOC]}, "ben": {"spans": [PER]}}
    assert votes(load({"id": 1, "text": TEXT, "annotators": wrapped})) == {"ann": ANN, "ben": BEN}
    row = {"id": 1, "words": TEXT.split(), "workers": ["ann", "ben"], "annotations": [ANN, BEN], "truth": ANN}
    corpus = load(row)
    assert votes(corpus) == {"ann": ANN, "ben": BEN}
    assert [corpus.labels[code] for code in corpus.golds["truth"]] == ANN


def test_golds_beside_labels_of_documents() -> None:
    rows = [
        {"id": k, "text": f"{TEXT} {k}", "annotators": ["ann", "ben"], "labels": ["x", "y"], "gold_label": "x"}
        for k in range(3)
    ]
    corpus = load(*rows)
    assert [corpus.labels[code] for code in corpus.golds["gold_label"]] == ["x"] * 3
    assert "gold_label" not in corpus.metadata


def test_answers_to_several_questions_are_asked_about() -> None:
    rows = [
        {
            "id": k,
            "text": f"{TEXT} {k}",
            "annotations": [{"annotator": who, "mood": mood, "rude": k > 2} for who, mood in said],
        }
        for k, said in enumerate([(("ann", "glad"), ("ben", "sad"))] * 9)
    ]
    with pytest.raises(FormatError, match=r"several questions: mood: 18, rude: 18.*question=mood"):
        load(*rows)
    assert votes(load(*rows, question="mood")) == {"ann": ["glad"] * 9, "ben": ["sad"] * 9}
    assert votes(load(*rows, question="rude"))["ben"] == ["false"] * 3 + ["true"] * 6


def test_a_label_beside_what_annotators_said_is_the_gold() -> None:
    said = [{"annotator": "ann", "label": "good"}, {"annotator": "ben", "label": "bad"}]
    corpus = load(*({"id": k, "text": f"{TEXT} {k}", "annotations": said, "label": "bad"} for k in range(4)))
    assert {corpus.labels[code] for code in corpus.golds["label"]} == {"bad"}


def test_sentences_that_are_counted_anew_in_each_document() -> None:
    rows = [{"doc_id": d, "sen_id": 1, "text": f"{TEXT} {d}", "annotator": "ann", "spans": [PER]} for d in (7, 8)]
    assert load(*rows).sequence_ids == ("7/1", "8/1")


@pytest.mark.parametrize("key", ["gold_spans", "aggregated"])
def test_spans_that_were_decided_beside_annotators_are_a_gold(key: str) -> None:
    said = [{"annotator_id": 11, "spans": [PER]}, {"annotator_id": 12, "spans": []}]
    corpus = load({"text": TEXT, "annotations": said, key: [PER]})
    assert list(corpus.golds) == [key]
    assert corpus.label_names(corpus.golds[key])[0][0] == "B-PER"


@pytest.mark.parametrize(
    "entities",
    [
        {"label": {"PER": {"Ada": [[0, 2]]}, "LOC": {"Rome": [[12, 15]]}}},  # CLUENER: the last character is inside
        {"entities": {"PER": [[0, 3]], "LOC": [[12, 16]]}},
    ],
)
def test_places_under_their_types(tmp_path: Path, entities: dict[str, Any]) -> None:
    (tmp_path / "x.json").write_text(json.dumps({"text": "Ada visited Rome", **entities}) + "\n", encoding="utf-8")
    corpus = lasca.read(tmp_path / "x.json")
    assert [corpus.labels[code] for code in corpus.annotation_label] == ["B-PER", "O", "B-LOC"]


def test_places_under_names_are_nobodys_labels(tmp_path: Path) -> None:
    row = {"text": "Ada visited Rome", "labels": {"ann1": [[0, 3]], "ann2": [[12, 16]]}}
    (tmp_path / "x.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    with pytest.raises(FormatError, match="cannot be told"):
        lasca.read(tmp_path / "x.jsonl")

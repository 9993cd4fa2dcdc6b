"""doccano: one file per annotator, several ages of the export, empty lists."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from lasca import formats
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError
from lasca.formats import doccano
from lasca.formats.base import files_of
from mutations import FEW, MANY, assert_only_lasca_errors_in_files, samples, source, sources

TEXT = "😊 Ada Lovelace visited New York ."
BOTH = ["O", "B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O"]


def lines(*rows: dict[str, Any]) -> bytes:
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()


def read(files: dict[str, bytes], **options: Any) -> CrowdCorpus:
    return doccano.read(sources(files), **options)


def table(corpus: CrowdCorpus) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for row in corpus.to_table().to_pylist():
        found.setdefault(row["annotator"], {}).setdefault(row["sequence"], []).append(row["label"])
    return found


ADA = {"id": 5, "text": TEXT, "label": [[3, 15, "PER"], [24, 32, "LOC"]]}


def test_the_samples_of_the_docstring() -> None:
    first, second = samples(doccano)
    corpus = read({"ada.jsonl": first.encode(), "bob.jsonl": second.encode()})
    assert table(corpus) == {"ada": {"5": BOTH}, "bob": {"5": [*BOTH[:4], "O", "O", "O"]}}
    assert any("utf16" in note for note in corpus.load_report.notes)
    assert doccano.sniff(source("ada.jsonl", first.encode())) > 0.8
    assert doccano.sniff(source("bob.jsonl", second.encode())) > 0.9


def test_code_points_and_graphemes() -> None:
    corpus = read({"ada.jsonl": lines({"id": 5, "text": TEXT, "label": [[2, 14, "PER"], [23, 31, "LOC"]]})})
    assert table(corpus) == {"ada": {"5": BOTH}}
    family = {"id": 1, "text": "👨‍👩‍👧 Ada ran", "label": [[2, 5, "PER"]]}
    assert table(read({"a.jsonl": lines(family)}))["a"] == {"1": ["O", "B-PER", "O"]}
    assert table(read({"a.jsonl": lines(family)}, unit="grapheme"))["a"] == {"1": ["O", "B-PER", "O"]}
    with pytest.raises(ParameterError, match="unit"):
        read({"a.jsonl": lines(family)}, unit="bytes")


def test_an_empty_list_is_missing_unless_told_otherwise() -> None:
    files = {"ada.jsonl": lines(ADA), "bob.jsonl": lines({**ADA, "label": []})}
    corpus = read(files)
    assert corpus.annotators == ("ada",)
    assert corpus.load_report.counts["empty taken as missing"] == 1
    assert any("all-O" in note for note in corpus.load_report.notes)
    assert table(read(files, empty="all-O"))["bob"] == {"5": ["O"] * 7}
    with pytest.raises(ParameterError, match="empty"):
        read(files, empty="maybe")


def test_second_values_of_metadata_are_counted() -> None:
    corpus = read({"ada.jsonl": lines({**ADA, "source": "a"}), "bob.jsonl": lines({**ADA, "source": "b"})})
    assert list(corpus.metadata["source"]) == ["a"]
    assert corpus.load_report.counts["second values of source"] == 1


def test_older_exports() -> None:
    named = {"doc_id": 5, "text": TEXT, "entities": [[2, 14, "PER"]], "username": "eve"}
    assert table(read({"export.jsonl": lines(named)}))["eve"]["5"][1] == "B-PER"
    spans = [
        {"label": label, "start_offset": start, "end_offset": end, "user": user}
        for label, start, end, user in [(7, 2, 14, 1), (8, 23, 31, 2)]
    ]
    found = table(read({"export.jsonl": lines({"id": 5, "text": TEXT, "annotations": spans, "meta": {}})}))
    assert found["1"]["5"][1:3] == ["B-7", "I-7"]
    assert found["2"]["5"][4:6] == ["B-8", "I-8"]
    assert found["2"]["5"][1] == "O"


def test_old_exports_of_several_users_are_read_without_naming_the_format(tmp_path: Path) -> None:
    """It was said that they may be records or doccano."""
    spans = [{"label": 7, "start_offset": 2, "end_offset": 14, "user": user} for user in (1, 2)]
    row = {"id": 5, "text": TEXT, "annotations": spans, "annotation_approver": None}
    (tmp_path / "x.jsonl").write_bytes(lines(row))
    corpus = formats.read(tmp_path / "x.jsonl")
    assert (corpus.annotators, corpus.labels) == (("1", "2"), ("B-7", "I-7", "O"))
    assert "The labels are numbers: what they stand for is not in the file." in corpus.load_report.notes


def test_the_file_of_unlabelled_texts_is_nobody() -> None:
    corpus = read({"ada.jsonl": lines(ADA), "unknown.jsonl": lines({"id": 6, "text": "x y", "label": []})})
    assert corpus.annotators == ("ada",)
    assert list(corpus.sequence_ids) == ["5", "6"]
    assert corpus.load_report.counts["texts nobody labelled"] == 1


def test_a_zip_and_the_order_of_files_and_rows(tmp_path: Path) -> None:
    rows = [{"id": k, "text": TEXT + "!" * k, "label": [[3, 15, "PER"]]} for k in range(11)]
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("bob.jsonl", lines(*rows[::-1]))
        archive.writestr("ada.jsonl", lines(*rows))
        archive.writestr("README.txt", "hello")
    corpus = doccano.read(files_of(tmp_path / "all.zip"))
    assert corpus == read({"ada.jsonl": lines(*rows[::-1]), "bob.jsonl": lines(*rows)})
    assert corpus.load_report.counts["other files"] == 1


def test_rows_without_ids_are_matched_by_text() -> None:
    row = {"text": TEXT, "label": [[3, 15, "PER"]]}
    corpus = read({"ada.jsonl": lines(row), "bob.jsonl": lines(row)})
    assert corpus.n_sequences == 1
    assert corpus.n_annotators == 2


def test_errors_name_file_and_line() -> None:
    for bad, match in [
        ({"id": 6, "text": TEXT, "label": [[1, 2]]}, "a span must be"),
        ({"id": 6, "text": TEXT, "label": [[0, 99, "X"]]}, "outside its text"),
        ({"id": 6, "text": TEXT, "label": [[0, 5, None]]}, "label must be"),
        ({"id": 6, "label": []}, "string 'text'"),
        ({"id": 6, "text": TEXT, "label": [[0, 5, "X"], [2, 9, "Y"]]}, "overlap"),
    ]:
        with pytest.raises(FormatError, match=rf"ada.jsonl:2.*{match}"):
            read({"ada.jsonl": lines(ADA, bad)})
    with pytest.raises(FormatError, match=r"twice"):
        read({"ada.jsonl": lines(ADA, {**ADA, "label": [[3, 15, "ORG"]]})})
    with pytest.raises(FormatError, match="another text"):
        read({"ada.jsonl": lines(ADA), "bob.jsonl": lines({**ADA, "text": "😊 Ada Lovelace visited New York !"})})


VALID = {
    "ada.jsonl": lines(ADA, {"id": 6, "text": "plain text", "label": []}),
    "bob.jsonl": lines({"id": 5, "text": TEXT, "entities": [{"label": "PER", "start_offset": 3, "end_offset": 15}]}),
}


def attempt(files: dict[str, bytes]) -> None:
    doccano.sniff(sources(files))
    read(files)


def test_mutations_give_only_our_errors() -> None:
    assert_only_lasca_errors_in_files(attempt, VALID, max_examples=FEW)


@pytest.mark.fuzz
def test_many_mutations_give_only_our_errors() -> None:
    assert_only_lasca_errors_in_files(attempt, VALID, max_examples=MANY)


def test_labels_of_documents_relations_and_comments() -> None:
    rows = [{"Comments": ["hm"], "cats": ["travel"], "entities": [[3, 15, "PER"]], "data": TEXT, "mood": "x", "id": 1}]
    rows[0]["relations"] = [{"id": 0}, {"id": 1}]
    assert doccano.sniff(sources({"a.jsonl": lines(*rows), "b.jsonl": lines(*rows)})) > 0.8
    corpus = read({"ada.jsonl": lines(*rows)})
    counts = corpus.load_report.counts
    assert (counts["relations"], counts["comments"], counts["labels of whole documents left out"]) == (2, 1, 1)
    assert list(corpus.metadata["mood"]) == ["x"]
    documents = read({"ada.jsonl": lines(*rows)}, unit="document")
    assert (list(documents.tokens), documents.labels) == ([TEXT], ("travel",))
    only = {
        "ada.jsonl": lines({"label": ["bad"], "text": "x y"}),
        "ben.jsonl": lines({"text": "x y", "labels": ["good"]}),
    }
    assert read(only).annotators == ("ada", "ben")
    assert read(only).labels == ("bad", "good")
    with pytest.raises(FormatError, match="unit=document"):
        read(only, unit="codepoint")


def test_long_lines_and_other_files_are_told_apart() -> None:
    long = lines({"text": "word " * 40_000, "entities": [{"end_offset": 4, "label": "X", "start_offset": 0}], "id": 3})
    assert doccano.sniff(source("x.jsonl", long)) > 0.9
    gate = {"text": "a b", "annotation_sets": {}, "annotations": []}
    assert doccano.sniff(source("x.json", lines(gate))) == 0


@pytest.mark.parametrize("names", [(15, 17), ("good", "bad")])
def test_labels_of_documents_with_their_users(names: tuple[Any, Any]) -> None:
    good, bad = names
    rows = lines(
        {"id": 1, "text": "fine", "annotations": [{"label": good, "user": 1}, {"label": bad, "user": 2}], "meta": {}},
        {"id": 2, "text": "poor", "annotations": [{"user": 2, "label": bad}, {"user": 2, "label": good}], "meta": {}},
        {"id": 3, "text": "so", "annotations": [], "meta": {}},
    )
    assert doccano.sniff(source("x.jsonl", rows)) > 0.8
    corpus = read({"x.jsonl": rows})
    both = " + ".join(sorted(map(str, names)))
    assert table(corpus) == {"1": {"1": [str(good)]}, "2": {"1": [str(bad)], "2": [both]}}


def test_written_answers_are_refused_by_name() -> None:
    rows = lines({"id": 1, "text": "i am here .", "annotations": [{"text": "ich bin hier .", "user": 1}]})
    assert doccano.sniff(source("x.jsonl", rows)) > 0.8
    with pytest.raises(FormatError, match="written answers"):
        read({"x.jsonl": rows})


def test_a_span_outside_its_text_says_what_to_do() -> None:
    with pytest.raises(FormatError, match=r"x\.jsonl:1: a span lies outside its text.*take it out"):
        read({"x.jsonl": lines({"id": 1, "text": "Ada", "entities": [{"start": 7, "end": 9, "label": "A"}]})})


@pytest.mark.parametrize("key", ["label", "labels"])
def test_votes_without_names_are_no_label_of_one_person(key: str) -> None:
    rows = lines({"id": 1, "text": "so", key: ["a", "b"]}, {"id": 2, "text": "no", key: ["b", "a", "b"]})
    with pytest.raises(FormatError, match=r"x\.jsonl:2: .*votes of several annotators.*annotator_1,annotator_2"):
        read({"x.jsonl": rows})


def test_answers_that_never_repeat_are_asked_about() -> None:
    rows = [{"id": k, "text": f"hello {k}", "label": [f"salut {k}"]} for k in range(9)]
    with pytest.raises(FormatError, match="-r unit=document"):
        read({"a.jsonl": lines(*rows)})
    assert len(read({"a.jsonl": lines(*rows)}, unit="document").labels) == 9
    assert read({"a.jsonl": lines(*(r | {"label": [f"c{r['id'] % 4}"]} for r in rows))}).n_annotations == 9


def test_spans_called_o_mark_nothing_and_spans_called_as_tags_are_asked_about() -> None:
    text = {"id": 1, "text": "Ada Lovelace ran"}
    corpus = read({"ann.jsonl": lines({**text, "label": [[0, 12, "PER"], [13, 16, "O"]]})})
    assert table(corpus) == {"ann": {"1": ["B-PER", "I-PER", "O"]}}
    assert corpus.load_report.counts["spans called O, nothing marked"] == 1
    tags = {"ann.jsonl": lines({**text, "label": [[0, 3, "B-PER"], [4, 12, "I-PER"]]})}
    with pytest.raises(FormatError, match=r"called as tags of tokens are: B-PER, I-PER.*-r tagging=plain"):
        read(tags)
    assert table(read(tags, tagging="plain")) == {"ann": {"1": ["B-PER", "I-PER", "O"]}}


def test_files_called_as_parts_are_no_people_and_one_called_final_beside_people_is_a_gold() -> None:
    row, other = {"id": 1, "text": "Ada ran", "label": [[0, 3, "PER"]]}, {"id": 2, "text": "It rained", "label": []}
    corpus = read({"batch_1.jsonl": lines(row), "batch_2.jsonl": lines(other)}, empty="all-O")
    assert table(corpus) == {"annotator": {"1": ["B-PER", "O"], "2": ["O", "O"]}}
    names = ("ann", "ben", "final")
    corpus = read({f"{name}.jsonl": lines(row) for name in names})
    assert (corpus.annotators, list(corpus.golds)) == (names[:2], ["final"])
    for same in (names[1:], ("final_ann", "final_ben", "final_cat"), ("ann", "ben", "final_ann", "final_ben")):
        assert read({f"{name}.jsonl": lines(row) for name in same}).annotators == tuple(sorted(same))


def test_an_annotator_may_be_named_in_what_is_said_about_a_line() -> None:
    rows = ({**ADA, "id": k, "text": TEXT + who, "meta": {"annotator": who}} for k, who in enumerate("ab"))
    assert set(table(read({"all.jsonl": lines(*rows)}))) == {"a", "b"}

"""spaCy: DocBin, training tuples, the JSON of spaCy 2; SageMaker's manifests and requests."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError
from lasca.formats import READERS, read, sagemaker, spacy_docs
from lasca.formats.choose import choose
from mutations import FEW, MANY, assert_only_lasca_errors, source, sources

TUPLES = [["Ada saw Rome", {"entities": [[0, 3, "PER"], [8, 12, "LOC"]], "cats": {"travel": 1, "food": 0}}]]


def gold(corpus: CrowdCorpus) -> list[list[str | None]]:
    return corpus.label_names(next(iter(corpus.golds.values())))


def test_tuples_alone_and_of_several_annotators() -> None:
    data = json.dumps(TUPLES).encode()
    assert gold(spacy_docs.read(source("train.json", data))) == [["B-PER", "O", "B-LOC"]]
    wrapped = json.dumps({"classes": ["PER"], "annotations": [*TUPLES, None]}).encode()
    assert spacy_docs.sniff(source("x.json", wrapped)) > 0.9
    assert gold(spacy_docs.read(source("x.json", wrapped))) == [["B-PER", "O", "B-LOC"]]
    other = json.dumps([["Ada saw Rome", {"entities": [[8, 12, "GPE"]]}]]).encode()
    both = spacy_docs.read(sources({"ann.json": data, "ben.json": other}))
    assert (both.annotators, dict(both.golds)) == (("ann", "ben"), {})
    documents = spacy_docs.read(source("train.json", data), unit="document")
    assert gold(documents) == [["travel"]]


def test_json_of_spacy_2_and_what_is_not_known() -> None:
    tokens = [{"orth": "Ada", "ner": "U-PER"}, {"orth": "saw", "ner": "-"}, {"orth": "Rome", "ner": "O"}]
    old = [{"id": 0, "paragraphs": [{"raw": "Ada saw Rome", "sentences": [{"tokens": tokens}]}]}]
    files = source("old.json", json.dumps(old).encode())
    assert spacy_docs.sniff(files) > 0.9
    corpus = spacy_docs.read(files)
    assert gold(corpus) == [["B-PER", None, "O"]]
    assert corpus.load_report.counts["tokens of which nothing is said"] == 1
    old[0]["paragraphs"][0]["entities"] = []  # type: ignore[index]
    again = spacy_docs.read(source("old.json", json.dumps(old).encode()))
    assert gold(again) == [["B-PER", None, "O"]]  # tags of tokens say more


def test_tokens_of_a_docbin_of_which_nothing_is_said(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import DocBin, Span

    doc = spacy.blank("de")("Ada sah Rom .")
    doc.set_ents([Span(doc, 2, 3, label="LOC")], missing=[doc[0:1]], default="outside")
    DocBin(docs=[doc]).to_disk(tmp_path / "x.spacy")
    assert gold(read(tmp_path / "x.spacy")) == [[None, "O", "B-LOC", "O"]]


def test_a_docbin_with_span_groups(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import DocBin, Span

    doc = spacy.blank("de")("Ada sah Rom .")
    doc.spans["ann"] = [Span(doc, 0, 1, label="PER")]
    doc.spans["ben"] = [Span(doc, 2, 3, label="LOC")]
    DocBin(docs=[doc]).to_disk(tmp_path / "x.spacy")
    corpus = read(tmp_path / "x.spacy")
    assert (corpus.annotators, corpus.n_annotations) == (("ann", "ben"), 8)
    assert read(tmp_path / "x.spacy", group="ben").labels == ("B-LOC", "O")
    (tmp_path / "y.spacy").write_bytes((tmp_path / "x.spacy").read_bytes()[:-20])
    with pytest.raises(FormatError, match=r"y.spacy.*cannot be read"):
        read(tmp_path / "y.spacy")


def test_a_docbin_that_says_what_cannot_be() -> None:
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import DocBin, Span

    doc = spacy.blank("de")("Ada sah Rom .")
    doc.spans["ann"] = [Span(doc, 0, 1, label="PER")]
    good = zlib.decompress(DocBin(docs=[doc]).to_bytes())
    characters = b"\0\0\0\0" + b"\0\0\0\3" + b"\x91"  # of the span; before them, where its tokens end
    for what, part, other in (
        ("a token that is not there", b"\0\0\0\1" + characters, b"\0\0\0\x09" + characters),
        ("a label without a name", b"\xa3PER", b"\xa3XXX"),
        ("a word without a spelling", b"\xa3Rom", b"\xa3XXX"),
    ):
        assert good.count(part) == 1, what
        with pytest.raises(FormatError, match=r"x\.spacy: this DocBin cannot be read"):
            spacy_docs.read(source("x.spacy", zlib.compress(good.replace(part, other))))


@pytest.mark.parametrize("max_examples", [FEW, pytest.param(MANY, marks=pytest.mark.fuzz)])
def test_any_bytes_as_spacy_json(max_examples: int) -> None:
    data = json.dumps(TUPLES).encode()
    assert_only_lasca_errors(lambda b: spacy_docs.read(source("x.json", b)), data, max_examples=max_examples)


def line(text: str, job: str = "ner", **more: Any) -> dict[str, Any]:
    entities = [{"label": "PER", "startOffset": 0, "endOffset": 3}]
    meta = {"type": "groundtruth/text-span", "human-annotated": "yes", **more}
    return {f"{job}-metadata": meta, job: {"annotations": {"labels": [], "entities": entities}}, "source": text}


def test_a_manifest_is_a_gold() -> None:
    data = "\n".join(json.dumps(row) for row in (line("Ada saw Rome"), line("Bob slept"))).encode()
    files = source("out.manifest", data)
    assert sagemaker.sniff(files) > 0.9
    corpus = sagemaker.read(files)
    assert (list(corpus.golds), corpus.annotators) == (["ner"], ())
    assert sorted(map(tuple, gold(corpus))) == [("B-PER", "O"), ("B-PER", "O", "O")]
    machine = sagemaker.read(source("x", json.dumps(line("Ada", **{"human-annotated": "no"})).encode()))
    assert machine.roles == ("model",)
    about = {"class-name": "good", "type": "groundtruth/text-classification", "human-annotated": "yes"}
    row = {"source": "Fine day", "tone": 1, "tone-metadata": about}
    assert gold(sagemaker.read(source("x", json.dumps(row).encode()))) == [["good"]]
    assert sagemaker.read(source("x", json.dumps({**row, "topic": "people"}).encode())).metadata["topic"] == ("people",)
    more = sagemaker.read(source("x", json.dumps(line("Ada") | {"id": 7, "topic": "people"}).encode()))
    assert {name: list(more.metadata[name]) for name in ("id", "topic")} == {"id": ["7"], "topic": ["people"]}


def test_a_consolidation_request_holds_every_worker() -> None:
    def said(worker: str, *entities: Any) -> dict[str, Any]:
        content = json.dumps({"crowd-entity-annotation": {"entities": list(entities)}})
        return {"workerId": worker, "annotationData": {"content": content, "s3Uri": ""}}

    entity = {"startOffset": 0, "endOffset": 3, "label": "PER"}
    request = [
        {"datasetObjectId": "7", "dataObject": {"content": "Ada saw"}, "annotations": [said("w1", entity), said("w2")]}
    ]
    files = source("request.json", json.dumps(request).encode())
    corpus = sagemaker.read(files)
    assert (sagemaker.sniff(files) > 0.9, corpus.annotators, corpus.n_annotations) == (True, ("w1", "w2"), 4)


def test_tasks_that_refer_to_files_are_refused() -> None:
    row = {"source-ref": "s3://x/letter.pdf", "j": {}, "j-metadata": {"type": "groundtruth/custom"}}
    with pytest.raises(FormatError, match=r"refer to files.*letter.pdf, groundtruth/custom"):
        sagemaker.read(source("x.manifest", json.dumps(row).encode()))


@pytest.mark.parametrize("max_examples", [FEW, pytest.param(MANY, marks=pytest.mark.fuzz)])
def test_any_bytes_as_a_manifest(max_examples: int) -> None:
    data = json.dumps(line("Ada saw Rome")).encode()
    assert_only_lasca_errors(lambda b: sagemaker.read(source("x.manifest", b)), data, max_examples=max_examples)


@pytest.mark.parametrize("answers", [None, 3, "x"])
def test_a_request_without_a_list_of_answers(answers: object) -> None:
    row = {"dataObject": {"content": "Ada ran"}} | ({} if answers is None else {"annotations": answers})
    with pytest.raises(FormatError, match="no list of annotations"):
        sagemaker.read(source("x.json", json.dumps([row]).encode()))


def test_a_paragraph_that_is_none_is_named() -> None:
    data = json.dumps([{"id": 1, "paragraphs": ["Ada ran"]}]).encode()
    with pytest.raises(FormatError, match=r"x\.json.*a paragraph must be an object.*'Ada ran'"):
        spacy_docs.read(source("x.json", data))


def test_a_folder_of_json_is_known_whatever_its_files_are_called() -> None:
    def data(tag: str) -> bytes:
        words = [{"id": 0, "orth": "Ada", "ner": tag}, {"id": 1, "orth": "ran", "ner": "O"}]
        return json.dumps([{"id": 1, "paragraphs": [{"raw": "Ada ran", "sentences": [{"tokens": words}]}]}]).encode()

    files = sources({"crowd.spacy.user1": data("U-PER"), "crowd.spacy.user2": data("O")})
    assert choose(READERS, files, "folder") == "spacy"
    corpus = spacy_docs.read(files)
    assert list(corpus.annotators) == ["crowd.spacy.user1", "crowd.spacy.user2"]
    assert corpus.n_annotations == 4


def test_entities_are_looked_for_five_objects_deep() -> None:
    entity = {"startOffset": 0, "endOffset": 3, "label": "PER"}

    def said(depth: int) -> CrowdCorpus:
        answer: dict[str, Any] = {"entities": [entity]}
        for _ in range(depth - 1):
            answer = {"form": answer}
        people = [{"workerId": who, "annotationData": {"content": json.dumps(answer)}} for who in ("w1", "w2")]
        request = [{"datasetObjectId": "7", "dataObject": {"content": "Ada saw"}, "annotations": people}]
        return sagemaker.read(source("request.json", json.dumps(request).encode()))

    assert said(5).n_annotations == 4
    deeper = said(6)
    assert deeper.n_annotations == 0
    assert deeper.load_report.counts["answers that are neither spans nor classes"] == 2

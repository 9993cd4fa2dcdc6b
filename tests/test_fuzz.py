"""Hostile files for what the tests of single formats do not mutate, and for the detection of every format.

Each target is a valid file; mutations of it are read by its reader and by whatever reader claims them.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lasca.corpus import CrowdCorpus
from lasca.corpus.evidence import SoftVotes
from lasca.corpus.sharding import write_shards
from lasca.errors import LascaError
from lasca.files import write_sums
from lasca.formats import READERS, files_of
from lasca.formats.choose import choose
from mutations import FEW, MANY, assert_only_lasca_errors, assert_only_lasca_errors_in_files, source


def _lines(*rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


SPAN = {"start": 0, "end": 3, "label": "PER"}
RECORD = {
    "id": "r1",
    "fields": {"text": "Ada ran", "title": "x"},
    "metadata": {"source": "web"},
    "responses": {"spans": [{"value": [SPAN], "user_id": "u1"}], "tone": [{"value": "good", "user_id": "u1"}]},
    "suggestions": {"spans": {"value": [SPAN], "score": [0.5], "agent": "m"}, "tone": {"value": "bad", "score": 0.7}},
}
RESULT = {"from_name": "l", "to_name": "t", "type": "labels", "score": 0.5}
TASK = {
    "id": 1,
    "data": {"text": "Ada ran"},
    "annotations": [{"completed_by": 1, "result": [{**RESULT, "value": {**SPAN, "labels": ["PER"]}}]}],
    "predictions": [
        {"score": 0.5, "result": [{"from_name": "c", "type": "choices", "score": 0.2, "value": {"choices": ["a"]}}]}
    ],
}
CAS = {
    "%TYPES": {},
    "%FEATURE_STRUCTURES": [
        {"%ID": 1, "%TYPE": "uima.cas.Sofa", "sofaNum": 1, "sofaID": "_InitialView", "sofaString": "Ada ran"},
        {"%ID": 2, "%TYPE": "x.Token", "@sofa": 1, "begin": 0, "end": 3},
        {"%ID": 3, "%TYPE": "x.Sentence", "@sofa": 1, "begin": 0, "end": 7},
        {"%ID": 4, "%TYPE": "x.NamedEntity", "@sofa": 1, "begin": 0, "end": 3, "value": "PER"},
    ],
    "%VIEWS": {},
}
CHOICE = {
    "text": "Ada ran",
    "options": [{"id": "a"}, {"id": "b"}],
    "accept": ["a"],
    "answer": "accept",
    "_input_hash": 1,
}
BATCH = {
    "custom_id": "s1",
    "response": {
        "status_code": 200,
        "body": {"model": "m", "choices": [{"message": {"content": '{"spans": [{"text": "Ada", "label": "PER"}]}'}}]},
    },
}
REQUEST = {
    "datasetObjectId": "1",
    "dataObject": {"content": "Ada ran"},
    "annotations": [
        {"workerId": "w", "annotationData": {"content": json.dumps({"ner": {"entities": [
            {"startOffset": 0, "endOffset": 3, "label": "PER"}]}})}}
    ],
}  # fmt: skip
LIGHTTAG = {
    "examples": [
        {
            "example_id": "e1",
            "content": "Ada ran",
            "metadata": {"source": "web"},
            "seen_by": [{"annotator_id": 1, "annotator": "ann"}, {"annotator_id": 2}],
            "annotations": [
                {"start": 0, "end": 3, "tag": "PER", "value": "Ada", "annotated_by": [{"annotator": "ann"}]}
            ],
            "classifications": [{"classname": "good", "annotated_by": [{"annotator_id": 2}]}],
        }
    ],
    "schema": {},
    "relations": [{}],
}
ROWS = "HITId,WorkerId,Input.text,Answer.tone,Answer.sure\nH1,W1,Ada ran,good,1\nH1,W2,Ada ran,bad,0\n"
CSV = "sent_id,token_id,token,pos,ann,ben,gold\ns1,1,Ada,NN,B-PER,O,B-PER\ns1,2,ran,VB,O,O,O\ns2,1,Rome,NN,B-LOC,,O\n"
IN_ORDER = "sentence,token,annotator,label,truth\ns1,Ada,a,B-PER,O\ns1,Ada,b,O,O\ns1,ran,a,O,O\n"
WIDE = "id,text,ann_a,ann_b,gold,more\n1,Ada ran off,good,bad,bad,x\n2,so it is,bad,,bad,y\n3,oh no no,good,good,,z\n"
SOFT = "sequence,position,annotator,label,probability\ns,0,a,A,0.7\ns,0,a,B,0.3\ns,0,b,A,1\ns,1,a,B,1\n"
CONLLU = "# sent_id = 1\n1\tAda\t_\tPROPN\t_\t_\t2\tnsubj\t_\t_\n2\tran\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
TUPLES = [["Ada ran", {"entities": [[0, 3, "PER"]], "cats": {"good": 0.7, "bad": 0.3}}]]

TARGETS: dict[str, tuple[str, str, bytes, dict[str, Any]]] = {
    "argilla": ("huggingface", "x.json", json.dumps([RECORD]).encode(), {"scores": "soft"}),
    "argilla-documents": ("huggingface", "x.json", json.dumps([RECORD]).encode(), {"unit": "document"}),
    "label-studio-scores": ("label-studio", "x.json", json.dumps([TASK]).encode(), {"scores": "soft"}),
    "label-studio-choices": ("label-studio", "x.json", json.dumps([TASK]).encode(), {"unit": "document"}),
    "cas-json": ("webanno", "x.json", json.dumps(CAS).encode(), {}),
    "prodigy-choice": ("prodigy", "x.jsonl", _lines(CHOICE, {**CHOICE, "_input_hash": 2}), {}),
    "doccano-cats": ("doccano", "x.jsonl", _lines({"id": 1, "text": "Ada", "cats": ["a"], "entities": []}), {}),
    "sagemaker-request": ("sagemaker", "x.json", json.dumps([REQUEST]).encode(), {}),
    "lighttag": ("lighttag", "x.json", json.dumps(LIGHTTAG).encode(), {}),
    "lighttag-documents": ("lighttag", "x.json", json.dumps(LIGHTTAG).encode(), {"unit": "document"}),
    "mturk-documents": ("mturk-results", "x.csv", ROWS.encode(), {"unit": "document", "answer": "Answer.tone"}),
    "conll-csv": ("conll", "x.csv", CSV.encode(), {}),
    "table-in-order": ("table", "x.csv", IN_ORDER.encode(), {}),
    "wide": ("wide", "x.csv", WIDE.encode(), {}),
    "wide-named": ("wide", "x.csv", WIDE.encode(), {"annotators": "ann_a,ann_b", "missing": "bad", "item": "id"}),
    "table-soft": ("table", "x.csv", SOFT.encode(), {}),
    "conll-u": ("conll", "x.conllu", CONLLU.encode(), {}),
    "spacy-tuples": ("spacy", "x.json", json.dumps(TUPLES).encode(), {"unit": "document"}),
    "llm-batch": ("llm-batch", "x.jsonl", _lines(BATCH), {}),
}


@cache
def texts() -> CrowdCorpus:
    return CrowdCorpus.from_sequences([["Ada", "ran"]], {"ann": [["B-PER", "O"]]}, sequence_ids=["s1"])


@pytest.mark.parametrize("max_examples", [FEW, pytest.param(MANY, marks=pytest.mark.fuzz)])
@pytest.mark.parametrize("target", TARGETS)
def test_any_bytes_give_a_corpus_or_our_error(target: str, max_examples: int) -> None:
    reader, name, valid, options = TARGETS[target]
    if reader == "llm-batch":
        options = {**options, "data": texts()}

    def read(data: bytes) -> None:
        files = source(name, data)
        try:
            READERS[reader](files, **options)
        except LascaError:
            if data == valid:
                raise
        with suppress(LascaError):
            claimed = choose(READERS, files, name)
            READERS[claimed](files, **({"data": texts()} if claimed == "llm-batch" else {}))

    assert_only_lasca_errors(read, valid, max_examples=max_examples)


@pytest.mark.parametrize("max_examples", [FEW, pytest.param(MANY, marks=pytest.mark.fuzz)])
def test_any_bytes_as_a_docbin(max_examples: int) -> None:
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import Doc, DocBin, Span

    doc = Doc(spacy.blank("xx").vocab, words=["Ada", "ran"])
    doc.spans["ann"] = [Span(doc, 0, 1, label="PER")]
    valid = DocBin(docs=[doc]).to_bytes()

    def read(data: bytes) -> None:
        READERS["spacy"](source("x.spacy", data))

    assert_only_lasca_errors(read, valid, max_examples=max_examples)


def saved(way: str) -> dict[str, bytes]:
    """Return the files of a saved corpus that has nearly everything a corpus may have."""
    corpus = CrowdCorpus.from_sequences(
        [["Ada", "ran"], ["In", "Rome"]],
        {"ann": [["B-PER", "O"], ["O", None]], "ben": [["O", "O"], None]},
        golds={"gold": [["B-PER", "O"], None]},
        labels=["B-LOC"],
        metadata={"document": ["a", "b"]},
        soft=SoftVotes.of([3], [1], [[0.6, 0.2, 0.2]]),
    )
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "c"
        if way == "shards":
            write_shards([corpus], folder, votes=100)
        else:
            corpus.save(folder, format=way)
        return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize("max_examples", [FEW, pytest.param(MANY, marks=pytest.mark.fuzz)])
@pytest.mark.parametrize("way", ["arrow", "parquet", "shards"])
def test_any_files_as_a_saved_corpus(way: str, max_examples: int) -> None:
    """What is damaged by chance SHA256SUMS tells; here it was made anew over whatever stands in the folder."""
    valid = {name: data for name, data in saved(way).items() if name != "SHA256SUMS"}

    def read(files: dict[str, bytes]) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            for name, data in files.items():
                path = Path(scratch) / name
                with suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(data)
            write_sums(Path(scratch))
            corpus = READERS["lasca"](files_of(scratch))
            assert len(list(corpus.tokens)) == corpus.n_tokens

    assert_only_lasca_errors_in_files(read, valid, max_examples=max_examples)

"""Formats of spans out and back: by our readers, and by the libraries of the tools themselves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import LascaWarning, ParameterError, StoreError
from lasca.formats.outcome import _codes, annotator_codes

TOKENS = [["😊", "Ada", "Lovelace", "visited", "Rome"], ["Nothing", "here"]]
ANN = [["O", "B-PER", "I-PER", "O", "B-LOC"], ["O", "O"]]
BEN = [["O", "B-PER", "B-PER", "O", "O"], None]
EXPERT = [["O", "B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "O"]]


@pytest.fixture
def crowd() -> CrowdCorpus:
    return CrowdCorpus.from_sequences(
        TOKENS,
        {"ann": ANN, "ben": BEN},
        golds={"gold": EXPERT},
        sequence_ids=["s1", "s2"],
        metadata={"document": ["d1", "d1"]},
    )


def rows_of(corpus: CrowdCorpus, name: str) -> list[list[str | None]]:
    return corpus.label_names(annotator_codes(corpus, corpus.annotators.index(name)))


@pytest.fixture
def truth(crowd: CrowdCorpus) -> np.ndarray:
    return np.asarray(crowd.golds["gold"])


def test_doccano_out_and_back(crowd: CrowdCorpus, truth: np.ndarray, tmp_path: Path) -> None:
    lasca.write(crowd, tmp_path / "people", "doccano")
    assert sorted(p.name for p in (tmp_path / "people").glob("*.jsonl")) == ["ann.jsonl", "ben.jsonl", "gold.jsonl"]
    again = lasca.read(tmp_path / "people", empty="all-O")
    assert rows_of(again, "ann") == ANN
    assert rows_of(again, "ben") == [BEN[0], [None, None]]
    lasca.write(crowd, tmp_path / "truth.jsonl", "doccano", labels=truth)
    first, second = map(json.loads, (tmp_path / "truth.jsonl").read_text("utf-8").splitlines())
    assert first == {"id": "s1", "text": "😊 Ada Lovelace visited Rome", "label": [[2, 14, "PER"], [23, 27, "LOC"]]}
    assert second["label"] == [[0, 7, "LOC"]]


def test_prodigy_out_and_back(crowd: CrowdCorpus, tmp_path: Path) -> None:
    with pytest.warns(LascaWarning, match="no place for golds: left out gold"):
        lasca.write(crowd, tmp_path / "x.jsonl", "prodigy")
    again = lasca.read(tmp_path / "x.jsonl")
    assert again.load_report.format == "prodigy"
    order = sorted(range(2), key=lambda s: -len(again.sequence(s)))
    assert [rows_of(again, "ann")[s] for s in order] == ANN
    assert rows_of(again, "ben")[order[0]] == BEN[0]


def test_brat_out_and_back(crowd: CrowdCorpus, truth: np.ndarray, tmp_path: Path) -> None:
    lasca.write(crowd, tmp_path / "people", "brat")
    again = lasca.read(tmp_path / "people")
    assert (again.annotators, list(again.golds), list(again.sequence_ids)) == (("ann", "ben"), ["gold"], ["s1", "s2"])
    assert rows_of(again, "ann") == ANN
    assert rows_of(again, "ben") == [BEN[0], [None, None]]
    assert again.label_names(again.golds["gold"]) == EXPERT
    lasca.write(crowd, tmp_path / "truth", "brat", labels=truth)
    assert rows_of(lasca.read(tmp_path / "truth"), "annotator") == EXPERT


@pytest.mark.parametrize("format", ["webanno", "xmi", "cas-json"])
def test_inception_out_and_back(crowd: CrowdCorpus, tmp_path: Path, format: str) -> None:
    if format != "webanno":
        pytest.importorskip("cassis")
    with pytest.warns(LascaWarning, match="^1 sentence of which an annotator of the document said nothing"):
        lasca.write(crowd, tmp_path / "x", format)
    again = lasca.read(tmp_path / "x")
    assert (again.annotators, list(again.golds)) == (("ann", "ben"), ["curation"])
    assert list(again.sequence_ids) == ["d1/1", "d1/2"]
    assert rows_of(again, "ann") == ANN
    assert again.label_names(again.golds["curation"]) == EXPERT
    assert [again.sequence(s) for s in range(2)] == TOKENS


def test_inception_knows_one_curator(crowd: CrowdCorpus, tmp_path: Path) -> None:
    two = CrowdCorpus.from_sequences(TOKENS, {"ann": EXPERT}, golds={"first": EXPERT, "second": EXPERT})
    with pytest.warns(LascaWarning, match="there is one curator: left out second"):
        lasca.write(two, tmp_path / "x", "webanno")


def test_xmi_is_what_cassis_reads(crowd: CrowdCorpus, truth: np.ndarray, tmp_path: Path) -> None:
    cassis = pytest.importorskip("cassis")
    lasca.write(crowd, tmp_path / "x", "xmi", labels=truth)
    with (tmp_path / "x" / "TypeSystem.xml").open("rb") as system:
        types = cassis.load_typesystem(system)
    with (tmp_path / "x" / "d1" / "CURATION_USER.xmi").open("rb") as file:
        cas = cassis.load_cas_from_xmi(file, typesystem=types)
    found = cas.select("de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity")
    assert [(e.get_covered_text(), e.value) for e in found] == [
        ("Ada Lovelace", "PER"),
        ("Rome", "LOC"),
        ("Nothing", "LOC"),
    ]
    as_json = tmp_path / "doc.json"
    cas.to_json(str(as_json))
    again = lasca.read(as_json)
    assert rows_of(again, again.annotators[0]) == EXPERT


def test_docbin_is_what_spacy_reads(crowd: CrowdCorpus, truth: np.ndarray, tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import DocBin

    lasca.write(crowd, tmp_path / "x.spacy", "spacy", labels=truth, ambiguous=[1], candidates=[["B-PER", "B-LOC"]])
    docs = list(DocBin().from_disk(tmp_path / "x.spacy").get_docs(spacy.blank("xx").vocab))
    assert [(e.text, e.label_) for e in docs[0].ents] == [("Ada Lovelace", "PER"), ("Rome", "LOC")]
    assert [(s.start, s.end, s.label_) for s in docs[0].spans["ambiguous"]] == [(1, 2, "B-PER"), (1, 2, "B-LOC")]
    people = crowd.select(annotators=["ann", "ben"])
    lasca.write(people, tmp_path / "people.spacy", "spacy")
    again = lasca.read(tmp_path / "people.spacy")
    assert sorted(map(tuple, again.label_names(again.golds["gold"]))) == sorted(map(tuple, EXPERT))
    assert again.annotators == ("ann", "ben")  # also where a document has one of them only
    assert sorted(rows_of(again, "ann")) == sorted(rows_of(people, "ann"))
    assert again.n_annotations == people.n_annotations
    (tmp_path / "one").mkdir()
    lasca.write(crowd.select(annotators=["ann"]), tmp_path / "one" / "x.spacy", "spacy")
    assert lasca.read(tmp_path / "one" / "x.spacy").load_report.counts["span groups left out"] == 2


def test_plain_conll_is_what_others_read(crowd: CrowdCorpus, truth: np.ndarray, tmp_path: Path) -> None:
    lasca.write(crowd, tmp_path / "x.conll", "conll", labels=truth)
    text = (tmp_path / "x.conll").read_text("utf-8")
    blocks = [[line.split(" ") for line in block.split("\n")] for block in text.strip().split("\n\n")]
    assert [[cells[1] for cells in block] for block in blocks] == EXPERT  # as conlleval splits it
    from seqeval.metrics import f1_score

    assert f1_score(EXPERT, [[cells[-1] for cells in block] for block in blocks]) == 1.0
    pytest.importorskip("spacy")
    from spacy.training.converters import conll_ner_to_docs

    (docs,) = [list(conll_ner_to_docs(text, n_sents=10, no_print=True))]
    assert [(e.text, e.label_) for doc in docs for e in doc.ents][:2] == [("Ada Lovelace", "PER"), ("Rome", "LOC")]


def test_offsets_count_code_points(crowd: CrowdCorpus, truth: np.ndarray, tmp_path: Path) -> None:
    lasca.write(crowd, tmp_path / "x.jsonl", "offsets", labels=truth)
    first, _ = map(json.loads, (tmp_path / "x.jsonl").read_text("utf-8").splitlines())
    assert first["spans"][0] == {"start": 2, "end": 14, "label": "PER", "text": "Ada Lovelace"}
    lasca.write(crowd, tmp_path / "y.jsonl", "offsets")
    _, second = map(json.loads, (tmp_path / "y.jsonl").read_text("utf-8").splitlines())
    assert [(a["annotator"], a["role"], len(a["spans"])) for a in second["annotations"]] == [
        ("gold", "gold", 1),
        ("ann", "annotator", 0),
    ]


NESTED = {"id": 1, "text": "University of Rome press", "label": [[0, 18, "ORG"], [14, 18, "LOC"], [0, 24, "ORG"]]}


@pytest.mark.parametrize("by", ["label", "depth"])
@pytest.mark.parametrize("format", ["doccano", "prodigy", "offsets", "brat", "webanno", "xmi", "cas-json"])
def test_layers_are_put_together_again(tmp_path: Path, by: str, format: str) -> None:
    (tmp_path / "ann.jsonl").write_text(json.dumps(NESTED))
    layers = lasca.read_layers(tmp_path / "ann.jsonl", by=by)
    assert list(layers) == (["LOC", "ORG", "ORG (2)"] if by == "label" else ["1", "2", "3"])
    out = tmp_path / "out.jsonl" if format in ("doccano", "prodigy", "offsets") else tmp_path / "out"
    lasca.write(layers, out, format)
    if format == "offsets":
        (row,) = map(json.loads, out.read_text().splitlines())
        found = {(s["start"], s["end"], s["label"]) for s in row["annotations"][0]["spans"]}
        assert found == {tuple(span) for span in NESTED["label"]}
        return
    again = lasca.read_layers(out, by=by)
    assert list(again) == list(layers)
    for name in layers:
        assert again[name].label_names(annotator_codes(again[name], 0)) == layers[name].label_names(
            annotator_codes(layers[name], 0)
        )
    truth = {name: annotator_codes(corpus, 0) for name, corpus in layers.items()}
    layers.write(tmp_path / "truth.jsonl", "doccano", truth)
    assert len(json.loads((tmp_path / "truth.jsonl").read_text())["label"]) == 3
    with pytest.raises(ParameterError, match="for layers"):
        lasca.write(layers, tmp_path / "x.conll", "conll")


def test_spans_on_one_token_are_numbered_for_webanno(tmp_path: Path) -> None:
    said = {"id": 1, "text": "Rome saw Oslo", "label": [[0, 4, "LOC"], [0, 4, "ORG"], [9, 13, "LOC"]]}
    (tmp_path / "ann.jsonl").write_text(json.dumps(said))
    lasca.write(lasca.read_layers(tmp_path / "ann.jsonl"), tmp_path / "out", "webanno")
    (file,) = (tmp_path / "out").rglob("*.tsv")
    cells = [line.split("\t")[2:4] for line in file.read_text().splitlines() if line[:2] == "1-"]
    assert cells == [["Rome", "LOC[1]|ORG[2]"], ["saw", "_"], ["Oslo", "LOC"]]


def test_labels_are_codes_of_the_corpus_or_none() -> None:
    corpus = CrowdCorpus.from_sequences([["a", "b"]], {"p": [["X", "Y"]]})
    assert _codes(corpus, [-1, 1]).tolist() == [-1, 1]
    for wrong in ([-2, 0], [0, 2], [0], [0.5, 1.0]):
        with pytest.raises(ParameterError, match="labels"):
            _codes(corpus, wrong)


@pytest.mark.parametrize("format", ["doccano", "prodigy", "offsets", "brat", "label-studio", "spacy"])
def test_what_nobody_labelled_is_not_written_as_having_no_spans(format: str, tmp_path: Path) -> None:
    said = {"a": [["B-X", "O"], None, ["O", "O"]], "b": [["B-X", "O"], None, ["O", "O"]]}
    corpus = CrowdCorpus.from_sequences(
        [["Ada", "met"], ["Bob", "ran"], ["it", "is"]], said, sequence_ids=["p", "q", "r"]
    )
    truth = lasca.MajorityVote().fit(corpus)
    target = tmp_path / "out"
    if format == "label-studio":
        lasca.write(corpus, target, format, labels=truth.codes)
        assert [len(task["predictions"]) for task in json.loads(target.read_text(encoding="utf-8"))] == [1, 0, 1]
        return
    with pytest.warns(LascaWarning, match="^1 text without a label"):
        lasca.write(corpus, target, format, labels=truth.codes)
    if format == "brat":
        assert {p.name for p in target.glob("*.ann")} == {"p.ann", "r.ann"}
        assert len(list(target.glob("*.txt"))) == 3
    elif format == "spacy":
        spacy = pytest.importorskip("spacy")
        docs = list(spacy.tokens.DocBin().from_disk(target).get_docs(spacy.blank("xx").vocab))
        assert [[t.ent_iob_ for t in doc] for doc in docs] == [["B", "O"], ["", ""], ["O", "O"]]
    else:
        assert len(target.read_text(encoding="utf-8").splitlines()) == 2


def test_spacy_has_no_empty_tokens(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    corpus = CrowdCorpus.from_sequences([["Ada", ""]], {"a": [["B-X", "O"]]})
    with pytest.raises(StoreError, match=r"sequence 0: spaCy cannot hold an empty token \(got: token 1\)"):
        lasca.write(corpus, tmp_path / "out", "spacy")

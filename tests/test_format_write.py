"""What goes out: the truth in every format, legal tags, guarded tables for people, whole files or none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from lasca import schemes
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, LascaWarning, ParameterError, StoreError
from lasca.formats import READERS, WRITERS, read, rows, write
from lasca.formats.write_tables import guarded, people_table

from mutations import MANY, assert_only_lasca_errors, source  # isort: skip

LABELS = ("B-LOC", "B-PER", "I-PER", "O")


@pytest.fixture
def corpus() -> CrowdCorpus:
    return CrowdCorpus.from_sequences(
        [["😊", "Ada", "Lovelace"], ["=1+2"], ["New"]],
        {
            "ann": [["O", "B-PER", "I-PER"], None, ["O"]],
            "goldie": [[None, "B-PER", "O"], ["I-PER"], None],
            "m": [["O"] * 3, None, None],
        },
        golds={"gold": [["O", "B-PER", "I-PER"], None, None], "expert": [None, ["O"], None]},
        sequence_ids=["s1", "s2", "s10"],
        roles=("annotator", "annotator", "model"),
        metadata={"document": ["d1", "d1", ""], "text": ["a", "b", "=c"]},
        labels=["B-LOC"],
    )


@pytest.fixture
def truth(corpus: CrowdCorpus) -> dict[str, object]:
    proba = np.full((corpus.n_tokens, corpus.n_labels), 0.1)
    codes = np.array([3, 2, 2, 2, 0])  # O I-PER I-PER | I-PER | B-LOC: two illegal starts
    proba[np.arange(5), codes] = 0.7
    candidates = [[("B-PER", 0.6), ("O", 0.4)], [2, 3]]
    return {"labels": codes, "proba": proba, "ambiguous": np.array([4, 1]), "candidates": candidates}


LEGAL = [["O", "B-PER", "I-PER"], ["B-PER"], ["B-LOC"]]
GIVEN = [["O", "I-PER", "I-PER"], ["I-PER"], ["B-LOC"]]


@pytest.mark.parametrize(("format", "name"), [("jsonl", "x.jsonl"), ("parquet", "x.parquet"), ("lasca", "x")])
def test_a_whole_corpus_comes_back(corpus: CrowdCorpus, tmp_path: Path, format: str, name: str) -> None:
    write(corpus, tmp_path / name, format)
    again = read(tmp_path / name)
    assert again == corpus
    assert again.load_report.notes[0] == f"The format was detected: {'lasca' if format == 'lasca' else 'jsonl'}."


def test_what_a_reader_said_is_said_once_when_a_saved_corpus_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("token ann\nAda B-PER\nran O\n", encoding="utf-8")
    first = read(tmp_path / "a.conll")
    first.save(tmp_path / "saved")
    notes = read(tmp_path / "saved").load_report.notes
    assert notes == first.load_report.notes
    assert notes.count("The tags are IOB2.") == 1


def test_hugging_face_rows_come_back(corpus: CrowdCorpus, tmp_path: Path) -> None:
    with pytest.warns(LascaWarning, match="left out: expert; written as annotators: models m"):
        write(corpus, tmp_path / "hf", "huggingface")
    again = read(tmp_path / "hf", "huggingface")
    assert again.to_table().equals(corpus.to_table())
    assert again.label_names(again.golds["gold"]) == corpus.label_names(corpus.golds["gold"])
    plain = read(tmp_path / "hf").select(annotators=["ann", "goldie"])
    write(plain, tmp_path / "again.parquet", "huggingface")
    assert read(tmp_path / "again.parquet") == plain


def test_what_nobody_labelled_comes_back_without_labels(tmp_path: Path) -> None:
    corpus = CrowdCorpus.from_sequences([["Ada", "ran"], ["it", "rained"]], {"ann": [["B-PER", "O"], None]})
    write(corpus, tmp_path / "hf", "huggingface")
    again = read(tmp_path / "hf")
    assert (list(again.tokens), again.n_annotations) == (["Ada", "ran", "it", "rained"], 2)


def test_a_table_tells_the_golds_apart(corpus: CrowdCorpus, tmp_path: Path) -> None:
    write(corpus, tmp_path / "x.csv", "table")
    again = read(tmp_path / "x.csv")
    for name, codes in corpus.golds.items():
        assert again.label_names(again.golds[name]) == corpus.label_names(codes)
    assert again.n_annotations == corpus.n_annotations


def test_label_studio_tasks_come_back(tmp_path: Path) -> None:
    corpus = CrowdCorpus.from_sequences(
        [["😊", "Ada", "Lovelace"]],
        {"ann": [["O", "B-PER", "I-PER"]], "m": [["O", "B-PER", "O"]]},
        golds={"gold": [["O", "B-PER", "I-PER"]]},
        sequence_ids=["7"],
        roles=("annotator", "model"),
    )
    write(corpus, tmp_path / "x.json", "label-studio")
    again = read(tmp_path / "x.json")
    assert (again.annotators, again.roles, again.labels) == (corpus.annotators, corpus.roles, corpus.labels)
    assert np.array_equal(again.annotation_label, corpus.annotation_label)
    assert list(again.tokens) == list(corpus.tokens)
    write(corpus, tmp_path / "y.json", "label-studio", labels=[2, 0, 1])
    (task,) = json.loads((tmp_path / "y.json").read_text("utf-8"))
    assert task["predictions"][0]["result"][0]["value"]["text"] == "Ada Lovelace"


def test_the_truth_as_conll(corpus: CrowdCorpus, truth: dict[str, object], tmp_path: Path) -> None:
    write(corpus, tmp_path / "two.conll", "conll", **truth)
    assert (tmp_path / "two.conll").read_text("utf-8") == (
        "😊 O\nAda I-PER\nLovelace I-PER\n\n=1+2 I-PER\n\nNew B-LOC\n"
    )
    write(corpus, tmp_path / "all.conll", "conll", **truth, details=True)
    lines = (tmp_path / "all.conll").read_text("utf-8").splitlines()
    assert lines[0].split("\t") == ["token", "label", "confidence", "ambiguous", "candidates"]
    assert lines[2].split("\t") == ["Ada", "I-PER", "0.7000", "1", "I-PER|O"]
    assert lines[3].split("\t") == ["Lovelace", "I-PER", "0.7000", "0", "_"]
    assert lines[-1].split("\t") == ["New", "B-LOC", "0.7000", "1", "B-PER:0.6|O:0.4"]
    for name in ("two.conll", "all.conll"):
        again = read(tmp_path / name)
        assert again.label_names(again.golds["gold"]) == GIVEN
        assert again.n_annotators == 0


def test_tags_are_made_legal_only_when_asked_and_counted(
    corpus: CrowdCorpus, truth: dict[str, object], tmp_path: Path
) -> None:
    for format in ("conll", "jsonl", "parquet", "huggingface", "table"):
        with pytest.warns(LascaWarning, match=r"2 of 5 tags were made legal \(IOB2\)"):
            write(corpus, tmp_path / format, format, labels=truth["labels"], legal=True)
    again = read(tmp_path / "conll")
    assert again.label_names(again.golds["gold"]) == LEGAL


def test_plain_conll_holds_words_only(tmp_path: Path) -> None:
    corpus = CrowdCorpus.from_sequences([["New York", "\t", "x"]], {"w": [["B-X", "O", "O"]]})
    with pytest.warns(LascaWarning, match="2 tokens or labels with white space, now _"):
        write(corpus, tmp_path / "x.conll", "conll", labels=[0, 1, 1])
    assert (tmp_path / "x.conll").read_text() == "New_York B-X\n_ O\nx O\n"


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_the_truth_as_rows(corpus: CrowdCorpus, truth: dict[str, object], tmp_path: Path, format: str) -> None:
    write(corpus, tmp_path / "x", format, **truth)
    again = read(tmp_path / "x")
    assert again.label_names(again.golds["inferred"]) == GIVEN
    if format == "jsonl":
        first, *_ = [json.loads(line) for line in (tmp_path / "x").read_text("utf-8").splitlines()]
    else:
        first = pq.read_table(tmp_path / "x").to_pylist()[0]
    assert first["label_names"] == list(LABELS)
    np.testing.assert_allclose(first["soft_labels"], np.asarray(truth["proba"])[:3], rtol=1e-6)
    assert first["ambiguous"] == [False, True, False]
    assert [one["label"] for one in first["candidates"][1]] == ["I-PER", "O"]
    assert {"annotator": "goldie", "role": "annotator", "labels": [None, "B-PER", "O"]} in first["votes"]


def test_rows_of_the_first_version_are_read(corpus: CrowdCorpus) -> None:
    header = {"lasca": "sequences", "version": 1, "labels": ["B-PER", "O"], "golds": ["gold"]}
    header |= {"annotators": ["ann", "m", "nobody"], "roles": ["annotator", "model", "annotator"]}
    votes = {"ann": ["O", "B-PER"], "m": [None, "B-PER"]}
    row = {"id": "s1", "tokens": ["x", "Ada"], "votes": votes, "golds": {}, "metadata": {}}
    old = f"{json.dumps(header)}\n{json.dumps(row)}\n".encode()
    again = rows.read(source("x.jsonl", old))
    assert (again.annotators, again.roles) == (("ann", "m", "nobody"), ("annotator", "model", "annotator"))
    assert (again.n_annotations, list(again.golds)) == (3, ["gold"])


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_rows_are_what_datasets_loads(
    corpus: CrowdCorpus, truth: dict[str, object], tmp_path: Path, format: str
) -> None:
    datasets = pytest.importorskip("datasets")
    write(corpus, tmp_path / f"x.{format}", format, **truth)
    kind = "json" if format == "jsonl" else format
    loaded = datasets.load_dataset(kind, data_files=str(tmp_path / f"x.{format}"), cache_dir=str(tmp_path / "cache"))
    assert loaded["train"]["tokens"][0] == ["😊", "Ada", "Lovelace"]
    assert list(loaded["train"]["labels"]) == GIVEN


def test_the_truth_for_hugging_face(corpus: CrowdCorpus, truth: dict[str, object], tmp_path: Path) -> None:
    write(corpus, tmp_path / "hf", "huggingface", **truth)
    table = pq.read_table(tmp_path / "hf" / "data" / "train-00000-of-00001.parquet")
    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    names = features["ner_tags"]["feature"]["names"]
    assert [[names[i] for i in row] for row in table.column("ner_tags").to_pylist()] == GIVEN
    assert len(table.column("soft_labels").to_pylist()[0][0]) == len(names)
    assert "class_label" in (tmp_path / "hf" / "README.md").read_text("utf-8")
    again = read(tmp_path / "hf")
    assert again.label_names(again.golds["gold"]) == GIVEN


def test_the_truth_as_a_table(corpus: CrowdCorpus, truth: dict[str, object], tmp_path: Path) -> None:
    write(corpus, tmp_path / "x.csv", "table", **truth)
    lines = (tmp_path / "x.csv").read_text("utf-8").splitlines()
    assert lines[0] == "sequence,position,token,label,confidence,ambiguous,candidates"
    assert lines[2] == "s1,1,Ada,I-PER,0.7,1,I-PER|O"
    write(corpus, tmp_path / "x.parquet", "table", **truth)
    assert pq.read_table(tmp_path / "x.parquet").column("label").to_pylist() == [n for row in GIVEN for n in row]


def test_repair_may_need_a_label_nobody_used(tmp_path: Path) -> None:
    corpus = CrowdCorpus.from_sequences([["a", "b", "c"]], {"w": [["O", "B-X", "I-Y"]]})
    with pytest.warns(LascaWarning, match="1 of 3 tags"):
        write(corpus, tmp_path / "hf.parquet", "huggingface", labels=[2, 1, 1], legal=True)
    again = read(tmp_path / "hf.parquet")
    assert again.label_names(again.golds["gold"]) == [["O", "B-Y", "I-Y"]]
    assert schemes.is_legal(["O", "B-Y", "I-Y"], "IOB2")


@pytest.mark.parametrize("format", sorted(set(WRITERS) - {"llm-batch"}))  # which needs a guideline
def test_every_writer_takes_the_same_parts(
    corpus: CrowdCorpus, truth: dict[str, object], tmp_path: Path, format: str
) -> None:
    assert WRITERS[format].options[:4] == ("labels", "proba", "ambiguous", "candidates")
    if format == "lasca":
        with pytest.raises(ParameterError, match="labels must be None for the format lasca"):
            write(corpus, tmp_path / "x", format, **truth)
    else:
        write(corpus, tmp_path / "x", format, **truth)
        assert (tmp_path / "x").exists()
    with pytest.raises(ParameterError, match=f"an option of the format {format} must be one of labels"):
        write(corpus, tmp_path / "y", format, lables=truth["labels"])


@pytest.mark.parametrize(
    "parts",
    [
        {"labels": [0, 1]},
        {"labels": [0.5] * 5},
        {"labels": [0, 1, 2, 3, 9]},
        {"labels": [0] * 5, "proba": np.zeros((5, 2))},
        {"labels": [0] * 5, "ambiguous": [7]},
        {"labels": [0] * 5, "ambiguous": [True]},
        {"labels": [0] * 5, "ambiguous": [0, 1], "candidates": [["O"]]},
        {"labels": [0] * 5, "candidates": {0: [None]}},
    ],
)
def test_wrong_parts_are_named_and_nothing_is_written(
    corpus: CrowdCorpus, tmp_path: Path, parts: dict[str, object]
) -> None:
    with pytest.raises(ParameterError, match="must be"):
        write(corpus, tmp_path / "x.jsonl", "jsonl", **parts)
    assert list(tmp_path.iterdir()) == []


def test_unknown_formats_and_bad_places(corpus: CrowdCorpus, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="format must be one of conll, jsonl"):
        write(corpus, tmp_path / "x", "xls")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot write"):
        write(corpus, tmp_path / "file" / "x", "conll")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    with pytest.raises(StoreError, match="not empty"):
        write(corpus.select(annotators=["ann"]), tmp_path / "full", "lasca")


def test_tables_for_people_are_guarded(tmp_path: Path) -> None:
    for text in ("=1+2", "+1", "-1", "@x", "\tx", "\rx", "＝1"):
        assert guarded(text) == "'" + text
    assert [guarded(v) for v in ("a=b", 1.5, None, -3)] == ["a=b", 1.5, None, -3]
    columns = {"token": ["=cmd()", "x"], "score": [-0.5, 2.0], "sure": [True, None]}
    people_table(columns, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().splitlines() == ["token,score,sure", "'=cmd(),-0.5,1", "x,2,"]
    people_table(columns, tmp_path / "x.parquet")
    assert pq.read_table(tmp_path / "x.parquet").column("token").to_pylist() == ["=cmd()", "x"]


def test_the_sample_of_the_rows() -> None:
    sample = (rows.__doc__ or "").split("```")[1].strip().encode()
    corpus = rows.read(source("x.jsonl", sample))
    assert list(corpus.tokens) == ["😊", "Ada"]
    assert corpus.roles == ("annotator", "model")
    assert corpus.n_annotations == 3
    assert list(corpus.metadata["document"]) == ["d1"]


@pytest.mark.parametrize("labels", ["OO", ["O", 1], ["O", ""], {"O": 1, "B": 2}])
def test_labels_of_rows_are_a_list_of_names_and_nulls(labels: object) -> None:
    votes = [{"annotator": "ann", "labels": labels}]
    row = {"lasca": 2, "id": "s", "tokens": ["😊", "Ada"], "votes": votes}
    with pytest.raises(FormatError, match="labels must be a list of strings and nulls"):
        rows.read(source("x.jsonl", json.dumps(row).encode()))


@pytest.mark.parametrize("examples", [None, pytest.param(MANY, marks=pytest.mark.fuzz)])
def test_mutated_rows_give_a_corpus_or_a_lasca_error(corpus: CrowdCorpus, tmp_path: Path, examples: int | None) -> None:
    more = {} if examples is None else {"max_examples": examples}
    for format in ("jsonl", "parquet"):
        write(corpus, tmp_path / format, format, labels=[0] * 5)
        valid = (tmp_path / format).read_bytes()
        assert_only_lasca_errors(lambda data: rows.read(source("x", data)), valid, **more)
        assert_only_lasca_errors(lambda data: rows.sniff(source("x", data)), valid, **more)


def test_every_format_shows_a_sample() -> None:
    for reader in READERS.values():
        assert len(reader.sample) > 100
        assert isinstance(reader.options, tuple)

"""Hugging Face rows: JSON, Parquet, Arrow, Argilla, objects; names of labels; tokens that differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError
from lasca.formats import huggingface, huggingface_load
from lasca.formats.base import files_of
from mutations import FEW, MANY, assert_only_lasca_errors, assert_only_lasca_errors_in_files, samples, source, sources

TOKENS = ["😊", "Ada", "ran"]
NAMES = ["O", "B-PER", "I-PER"]
FEATURES = {
    "tokens": {"feature": {"dtype": "string", "_type": "Value"}, "_type": "Sequence"},
    "ner_tags": {"feature": {"names": NAMES, "_type": "ClassLabel"}, "_type": "Sequence"},
}


def lines(*rows: dict[str, Any]) -> bytes:
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()


def read(*rows: dict[str, Any], **options: Any) -> CrowdCorpus:
    return huggingface.read(source("rows.jsonl", lines(*rows)), **options)


def row(who: str, tags: Any, id: Any = "s1", tokens: list[str] = TOKENS) -> dict[str, Any]:
    return {"id": id, "tokens": tokens, "ner_tags": tags, "annotator": who}


def table(corpus: CrowdCorpus) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for entry in corpus.to_table().to_pylist():
        found.setdefault(entry["annotator"], {}).setdefault(entry["sequence"], []).append(entry["label"])
    return found


def test_the_samples_of_the_docstring() -> None:
    for sample in samples(huggingface):
        files = source("rows.jsonl", sample.encode())
        assert huggingface.sniff(files) >= 0.9
        corpus = huggingface.read(files)
        assert list(corpus.tokens) == ["Ada", "visited", "Rome"]
        assert corpus.annotators in (("ann1",), ("u1",))
        assert next(iter(next(iter(table(corpus).values())).values()))[:2] == ["B-PER", "O"]


def test_missing_labels_stay_missing() -> None:
    corpus = read(row("a", ["O", None, "O"]), row("b", None), row("c", ["O", "B-PER", "O"]))
    assert table(corpus)["a"]["s1"] == ["O", "O"]
    assert corpus.n_annotations == 5
    assert "b" not in corpus.annotators
    assert corpus.load_report.counts["missing"] == 1
    numbers = read(row("a", [0, -100, 0]), label_names=NAMES)
    assert numbers.n_annotations == 2


def test_a_table_of_tokens_without_tags_is_not_claimed(tmp_path: Path) -> None:
    for names, sure in ((["tokens", "ner_tags"], 0.95), (["tokens", "source"], 0.0), (["words", "ner_tags"], 0.0)):
        pq.write_table(pa.table({name: [["a"]] for name in names}), tmp_path / "x.parquet")
        assert huggingface.sniff(files_of(tmp_path / "x.parquet")) == sure


def test_rows_of_tokens_are_no_documents() -> None:
    with pytest.raises(ParameterError, match="rows of tokens and tags"):
        read(row("a", ["O", "B-PER", "O"]), unit="document")


def test_splits_are_told_apart_only_if_every_file_is_one() -> None:
    def ids(*names: str) -> list[str]:
        files = {f"{name}.jsonl": lines(row("a", ["O", "O", "O"], id=f"s{k}")) for k, name in enumerate(names)}
        return sorted(huggingface.read(sources(files)).sequence_ids)

    assert ids("train", "test") == ["test/s1", "train/s0"]
    assert ids("train", "more") == ["s0", "s1"]


def test_numbers_need_names() -> None:
    with pytest.raises(FormatError, match=r"rows.jsonl:1.*label_names"):
        read(row("a", [0, 1, 0]))
    assert table(read(row("a", [0, 1, 0]), label_names="O,B-PER"))["a"]["s1"] == ["O", "B-PER", "O"]
    with pytest.raises(FormatError, match="outside the 2 label names"):
        read(row("a", [0, 2, 0]), label_names=["O", "B-PER"])


def _table(features: bool = True) -> pa.Table:
    rows = [row("a", [0, 1, 0]), row("b", [0, 0, 0]), row("a", [1, -100, 0], id="s2")]
    made = pa.Table.from_pylist(rows)
    about = {b"huggingface": json.dumps({"info": {"features": FEATURES}}).encode()}
    return made.replace_schema_metadata(about) if features else made


def _write(path: Path, kind: str, made: pa.Table) -> Path:
    if kind == "parquet":
        pq.write_table(made, path)
    elif kind == "arrow file":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, made.schema) as writer:
            writer.write_table(made)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, made.schema) as writer:
            writer.write_table(made)
    return path


@pytest.mark.parametrize("kind", ["parquet", "arrow file", "arrow stream"])
def test_parquet_and_arrow_carry_the_names(tmp_path: Path, kind: str) -> None:
    path = _write(tmp_path / "data.bin", kind, _table())
    expected = read(row("a", ["O", "B-PER", "O"]), row("b", ["O"] * 3), row("a", ["B-PER", None, "O"], id="s2"))
    for files in (files_of(path), source("data.bin", path.read_bytes())):
        assert huggingface.sniff(files) > 0.9
        corpus = huggingface.read(files)
        assert table(corpus) == table(expected)
    with pytest.raises(FormatError, match="label_names"):
        huggingface.read(files_of(_write(tmp_path / "bare", kind, _table(False))))


def test_a_saved_data_set_folder_and_splits(tmp_path: Path) -> None:
    _write(tmp_path / "data-00000-of-00001.arrow", "arrow stream", _table(False))
    (tmp_path / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))
    (tmp_path / "state.json").write_text("{}")
    assert table(huggingface.read(files_of(tmp_path)))["a"]["s1"] == ["O", "B-PER", "O"]
    train, test = lines(row("a", ["O"] * 3, id=0)), lines(row("a", ["O"], id=0, tokens=["x"]))
    parts = {"train-00000-of-00001.jsonl": train, "test.jsonl": test}
    assert list(huggingface.read(sources(parts)).sequence_ids) == ["test/0", "train/0"]


def test_all_annotators_in_one_column_and_a_gold() -> None:
    both = {"id": 1, "tokens": TOKENS, "labels": {"a": ["O"] * 3, "b": None}, "ner_tags": ["O", "B-PER", "O"]}
    corpus = read(both)
    assert table(corpus) == {"a": {"1": ["O"] * 3}}
    assert corpus.label_names(corpus.golds["gold"]) == [["O", "B-PER", "O"]]
    by_annotator = pa.array([[("a", ["O"] * 3)]], pa.map_(pa.string(), pa.list_(pa.string())))
    made = pa.table({"tokens": pa.array([TOKENS]), "labels": by_annotator})
    sink = pa.BufferOutputStream()
    pq.write_table(made, sink)
    found = huggingface.read(source("x.parquet", sink.getvalue().to_pybytes()))
    assert table(found) == {"a": {"0": ["O"] * 3}}


def test_rows_without_annotators_are_gold_and_columns_can_be_named() -> None:
    corpus = read({"tokens": TOKENS, "pos": ["S", "N", "V"]}, tags="pos")
    assert corpus.n_annotators == 0
    assert corpus.label_names(corpus.golds["gold"]) == [["S", "N", "V"]]
    named = read({"tokens": TOKENS, "pos": ["S", "N", "V"], "by": 3}, tags="pos", annotator="by")
    assert named.annotators == ("3",)
    for wrong in ({"tags": "x"}, {"annotator": "x"}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            read(row("a", ["O"] * 3), **wrong)


def test_files_without_annotators_are_annotators() -> None:
    rows = {"id": "s1", "tokens": TOKENS}
    ada, latest = lines({**rows, "ner_tags": ["O"] * 3}), lines({**rows, "ner_tags": ["O", "B-PER", "O"]})
    files = {"ada.jsonl": ada, "latest.jsonl": latest}
    assert table(huggingface.read(sources(files))) == {"ada": {"s1": ["O"] * 3}, "latest": {"s1": ["O", "B-PER", "O"]}}
    shards = {f"data-0000{k}-of-00002.jsonl": lines({**rows, "id": k, "ner_tags": ["O"] * 3}) for k in range(2)}
    assert huggingface.read(sources(shards)).n_annotators == 0


def test_tokens_that_differ_are_aligned_and_other_texts_refused() -> None:
    fine = row("c", ["O", "B-PER", "I-PER", "O"], tokens=["😊", "A", "da", "ran"])
    part = row("d", ["O", "B-PER", "O", "O"], tokens=["😊", "A", "da", "ran"])
    rows = [row("a", ["O", "B-PER", "O"]), row("b", ["O", "B-PER", "O"]), row("e", ["O", "B-PER", "O"]), fine, part]
    for order in (rows, rows[::-1]):
        corpus = read(*order)
        assert list(corpus.tokens) == TOKENS
        assert table(corpus)["c"]["s1"] == ["O", "B-PER", "O"]
        assert table(corpus)["d"]["s1"] == ["O", "O", "O"]
        assert corpus.load_report.counts["tokenised differently"] == 2
        assert corpus.load_report.counts["shrunk"] == 1
        assert "tokens that could not be aligned" not in corpus.load_report.counts
    empty = ["😊", "Ada", "", "ran"]
    blanks = read(row("a", ["O"] * 4, tokens=empty), row("b", ["O"] * 4, tokens=empty), row("c", ["O", "B-PER", "O"]))
    assert blanks.load_report.counts["tokens that could not be aligned"] == 1
    with pytest.raises(FormatError, match="another text"):
        read(*rows, row("f", ["O"], tokens=["other"]))


def test_order_times_and_repeats() -> None:
    rows = [row(who, ["O", tag, "O"], id=k) for k in range(12) for who, tag in (("a", "B-PER"), ("b", "O"))]
    assert read(*rows) == read(*rows[::-1])
    with pytest.raises(FormatError, match="twice"):
        read(row("a", ["O"] * 3), row("a", ["O", "O", "B-PER"]))
    timed = [{**row("a", ["O", t, "O"]), "timestamp": k} for k, t in ((1, "O"), (2, "B-PER"))]
    assert table(read(*timed)) == table(read(*timed[::-1])) == {"a": {"s1": ["O", "B-PER", "O"]}}


def argilla(**columns: Any) -> dict[str, Any]:
    spans = [[{"label": "PER", "start": 2, "end": 5}], []]
    base = {"id": "r1", "status": "completed", "text": "😊 Ada ran", "spans.responses": spans}
    users = {"spans.responses.users": ["u1", "u2"], "spans.responses.status": ["submitted", "submitted"]}
    return {**base, **users, **columns}


def test_argilla_records() -> None:
    suggestion = {"spans.suggestion": {"label": ["PER"], "start": [2], "end": [5]}, "spans.suggestion.agent": "gpt"}
    corpus = read(argilla(**suggestion))
    marked = {"r1": ["O", "B-PER", "O"]}
    assert table(corpus) == {"gpt": marked, "u1": marked, "u2": {"r1": ["O"] * 3}}
    assert corpus.roles == ("model", "annotator", "annotator")
    draft = read(argilla(**{"spans.responses.status": ["draft", "submitted"]}))
    assert draft.annotators == ("u2",)
    assert draft.load_report.counts["draft"] == 1
    utf16 = read(argilla(**{"spans.responses": [[{"label": "PER", "start": 3, "end": 6}], []]}))
    assert table(utf16)["u1"]["r1"] == ["O", "B-PER", "O"]
    nobody = dict.fromkeys(("spans.responses", "spans.responses.users", "spans.responses.status"))
    assert read(argilla(**nobody), argilla(id="r2")).n_sequences == 2


def test_what_looks_like_spans() -> None:
    span = {"start": 0, "end": 3, "label": "PER"}
    for value in ([span], [], {"start": [0], "end": [3], "label": ["PER"]}):
        assert huggingface._is_spans(value)
    for value in ("PER", ["PER"], [span, "PER"], {"label": "PER"}, 3, None):
        assert not huggingface._is_spans(value)


def test_tables_with_too_many_rows_are_refused_as_such(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = pa.table({"tokens": [TOKENS] * 3, "ner_tags": [["O", "B-PER", "O"]] * 3})
    pq.write_table(rows, tmp_path / "rows.parquet")
    with pa.OSFile(str(tmp_path / "rows.arrow"), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
    for name in ("rows.parquet", "rows.arrow"):
        data = (tmp_path / name).read_bytes()
        monkeypatch.setattr(huggingface_load, "MAX_ROWS", 3)
        assert huggingface.read(source(name, data)).n_sequences == 3
        monkeypatch.setattr(huggingface_load, "MAX_ROWS", 2)
        with pytest.raises(FormatError, match=r"the table has more than 2 rows \(got: 3\)"):
            huggingface.read(source(name, data))


def test_argilla_questions_fields_and_errors() -> None:
    more = argilla(**{"tone.responses": ["good", "bad"], "tone.responses.users": ["u1", "u2"]})
    assert read(more).annotators == ("u1", "u2")
    assert read(more, question="spans").annotators == ("u1", "u2")
    with pytest.raises(ParameterError, match="question"):
        read(more, question="x")
    tone = read(more, question="tone")
    assert tone.labels == ("bad", "good")
    assert any("labels of whole documents for 'tone'" in note for note in tone.load_report.notes)
    renamed = argilla(body="😊 Ada ran")
    del renamed["text"]
    assert read(renamed).n_tokens == 3
    with pytest.raises(FormatError, match=r"rows.jsonl:1.*differ in number"):
        read(argilla(**{"spans.responses.users": ["u1"]}))


class FakeFeature:
    def __init__(self, **known: Any) -> None:
        self.__dict__.update(known)


class FakeDataset(list[dict[str, Any]]):
    """What a Dataset of the `datasets` package looks like from outside."""

    features: ClassVar = {
        "tokens": FakeFeature(feature=None),
        "ner_tags": FakeFeature(feature=FakeFeature(names=NAMES)),
    }


def test_rows_and_dataset_objects() -> None:
    rows = [row("a", [0, 1, 0]), row("b", [0, 0, 0])]
    corpus = huggingface.from_dataset(FakeDataset(rows))
    assert table(corpus)["a"]["s1"] == ["O", "B-PER", "O"]
    assert huggingface.from_dataset(rows, label_names=NAMES) == corpus
    splits = huggingface.from_dataset({"train": FakeDataset(rows), "test": FakeDataset(rows)})
    assert list(splits.sequence_ids) == ["test/s1", "train/s1"]
    assert huggingface.from_dataset([argilla()], unit="codepoint").annotators == ("u1", "u2")
    for wrong in (3, "rows", [1, 2]):
        with pytest.raises(ParameterError, match="dataset"):
            huggingface.from_dataset(wrong)
    with pytest.raises(TypeError, match="colour"):
        huggingface.from_dataset(rows, colour=1)


def test_errors_name_file_and_line() -> None:
    for bad, match in [
        (row("a", ["O"]), "1 tags for 3 tokens"),
        (row("a", "O O O"), "no tags for 3 tokens"),
        (row("a", ["O", True, "O"]), "string or a number"),
        ({"id": 1, "tokens": "Ada"}, "list of strings"),
        ({"id": 1, "tokens": ["Ada"]}, "no column of tags"),
        (row("", ["O"] * 3), "annotator must be"),
    ]:
        with pytest.raises(FormatError, match=rf"rows.jsonl:2.*{match}"):
            read(row("x", ["O"] * 3), bad)


VALID = lines(
    row("a", ["O", "B-PER", "O"]), row("b", ["O", None, "O"]), {"id": 2, "tokens": TOKENS, "labels": {"a": ["O"] * 3}}
)


def attempt(data: bytes) -> None:
    files = source("rows.jsonl", data)
    huggingface.sniff(files)
    huggingface.read(files)


def attempt_files(files: dict[str, bytes]) -> None:
    huggingface.sniff(sources(files))
    huggingface.read(sources(files), label_names=NAMES)


def binary(tmp_path: Path, kind: str) -> bytes:
    return _write(tmp_path / "x", kind, _table()).read_bytes()


def test_mutations_give_only_our_errors(tmp_path: Path) -> None:
    assert_only_lasca_errors(attempt, VALID, max_examples=FEW)
    assert_only_lasca_errors(attempt, lines(argilla(), argilla(id="r2")), max_examples=FEW)
    for kind in ("parquet", "arrow file", "arrow stream"):
        assert_only_lasca_errors(attempt, binary(tmp_path, kind), max_examples=FEW)


@pytest.mark.fuzz
def test_many_mutations_give_only_our_errors(tmp_path: Path) -> None:
    assert_only_lasca_errors(attempt, VALID, max_examples=MANY)
    assert_only_lasca_errors(attempt, lines(argilla(), argilla(id="r2")), max_examples=MANY)
    for kind in ("parquet", "arrow file", "arrow stream"):
        assert_only_lasca_errors(attempt, binary(tmp_path, kind), max_examples=MANY)
    info = json.dumps({"features": FEATURES}).encode()
    folder = {"data.arrow": binary(tmp_path, "arrow stream"), "dataset_info.json": info}
    assert_only_lasca_errors_in_files(attempt_files, folder, max_examples=MANY)


def test_records_as_argilla_writes_them_to_json() -> None:
    span = {"label": "PER", "start": 0, "end": 3}
    record = {
        "suggestions": {"mark": {"value": [span], "score": None, "agent": "spacy"}},
        "responses": {"mark": [{"value": [span], "user_id": "u1"}, {"value": [], "user_id": "u2"}]},
        "fields": {"body": "Ada saw"},
        "metadata": {},
        "id": "r1",
    }
    data = json.dumps([record]).encode()
    assert huggingface.sniff(source("dataset.json", data)) > 0.9
    corpus = huggingface.read(source("dataset.json", data))
    assert (corpus.annotators, corpus.roles) == (("spacy", "u1", "u2"), ("model", "annotator", "annotator"))
    assert corpus.labels == ("B-PER", "O")


def test_other_columns_are_metadata_or_counted() -> None:
    row = {"genre": "news", "pos": [1, 2], "ner_tags": ["B-PER", "O"], "tokens": ["Ada", "saw"], "id": "1"}
    corpus = huggingface.read(source("x.jsonl", json.dumps(row).encode()))
    assert list(corpus.metadata["genre"]) == ["news"]
    assert corpus.load_report.counts["columns left out (pos)"] == 1


def test_of_rows_that_differ_about_their_text_the_first_counts_and_the_others_are_counted() -> None:
    rows = [row(who, ["O", "O", "O"]) | {"genre": genre} for who, genre in (("a", "news"), ("b", "law"), ("c", "news"))]
    corpus = read(*rows)
    assert list(corpus.metadata["genre"]) == ["news"]
    assert corpus.load_report.counts["second values of genre"] == 1


def test_entities_come_before_parts_of_speech(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    row = {"id": "1", "tokens": ["Ada", "left"], "upos": ["PROPN", "VERB"], "label": "news"}
    path.write_text(json.dumps({**row, "ner": ["B-PER", "O"]}))
    corpus = lasca.read(path)
    assert corpus.labels == ("B-PER", "O")
    assert any("those of ner" in note and "-r tags=upos" in note for note in corpus.load_report.notes)
    assert lasca.read(path, tags="upos").labels == ("PROPN", "VERB")
    path.write_text(json.dumps(row))
    assert lasca.read(path).labels == ("PROPN", "VERB")
    path.write_text(json.dumps({"tokens": ["Ada", "left"], "ner": [[0, 0, "PER"]]}))  # over numbers of tokens
    with pytest.raises(FormatError, match="cannot be told"):
        lasca.read(path)
    path.write_text(json.dumps({"tokens": ["Ada", "left"], "labels": [["B-PER", "O"], ["O", "O"]]}))
    with pytest.raises(FormatError, match="tags of several annotators"):
        lasca.read(path)


def test_rows_that_say_by_whom_they_were_annotated(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [
        {"id": 1, "tokens": ["Ada"], "ner_tags": [tag], "annotated_by": who} for tag, who in (("O", "a"), ("X", "b"))
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert lasca.read(path).annotators == ("a", "b")


def test_rows_are_called_by_their_document_and_sentence(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [{"doc_id": d, "sent_id": 1, "tokens": ["Yes"], "ner_tags": ["O"], "annotator": "a"} for d in "xy"]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert list(lasca.read(path).sequence_ids) == ["x/1", "y/1"]


def test_an_empty_tag_is_no_label() -> None:
    corpus = read(row("ann", ["", "B-PER", " "]))
    assert (corpus.n_annotations, corpus.labels) == (1, ("B-PER",))


def test_rows_with_ids_of_their_own_are_joined_by_their_texts(tmp_path: Path) -> None:
    """An id for each row: every annotator had texts of their own."""
    rows = [
        {"id": 2 * k + w, "tokens": ["Ada", f"ran{k}"], "ner_tags": ["B-PER", "O"], "annotator": who}
        for k in range(3)
        for w, who in enumerate(("ann", "ben"))
    ]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    corpus = lasca.read(tmp_path / "x.jsonl")
    assert (corpus.n_sequences, corpus.n_annotations) == (3, 12)
    assert corpus.load_report.counts["texts joined over their ids"] == 3


def test_rows_that_do_not_count_are_no_votes(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "tokens": ["Ada", "ran"], "ner_tags": ["B-PER", "O"], "annotator": who, "status": status}
        for who, status in (("ann", "submitted"), ("ben", "discarded"))
    ]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    corpus = lasca.read(tmp_path / "x.jsonl")
    assert (corpus.annotators, corpus.n_annotations) == (("ann",), 2)
    assert corpus.load_report.counts["annotations that do not count (discarded)"] == 1

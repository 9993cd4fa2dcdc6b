"""The same rows in another dress: lists in cells, objects as tables, records inside an object."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError
from lasca.formats import read
from lasca.formats.shapes import known_shape
from lasca.formats.unclaimed import _mostly_one_width, _named, dresses
from mutations import MANY, assert_only_lasca_errors, source


def load(tmp_path: Path, name: str, data: Any) -> CrowdCorpus:
    path = tmp_path / name
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return read(path)


def votes(corpus: CrowdCorpus) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in corpus.to_table().to_pylist():
        found.setdefault(row["annotator"], []).append(row["label"])
    return found


PYTHON = """,tokens,annotator_1,annotator_2
0,"['Ada', 'left']","['B-PER', 'O']","['O', 'O']"
1,"['it''s', ""Bob's""]","['O', 'B-PER']","['O', 'B-PER']"
"""


def test_lists_in_the_cells_of_a_table(tmp_path: Path) -> None:
    corpus = load(tmp_path, "x.csv", PYTHON)
    assert votes(corpus) == {"annotator_1": ["B-PER", "O", "O", "B-PER"], "annotator_2": ["O", "O", "O", "B-PER"]}
    assert "hold lists" in corpus.load_report.notes[0]
    said = '"[{""start"": 0, ""end"": 3, ""label"": ""PER""}]"'
    spans = f"id,text,annotator,spans\n1,Ada left,ann,{said}\n1,Ada left,ben,[]\n"
    assert votes(load(tmp_path, "y.csv", spans)) == {"ann": ["B-PER", "O"], "ben": ["O", "O"]}
    with pytest.raises(FormatError, match=r"z\.csv:4: "):  # the line of the file, though a cell above has two
        load(
            tmp_path,
            "z.csv",
            'text,annotator,spans\n"Ada\nleft",ann,"[[0, 3, ""PER""]]"\nBob,ben,"[[0, 30, ""PER""]]"\n',
        )


ROWS = [
    {"id": 1, "text": "so nice", "ann": "good", "ben": "good"},
    {"id": 2, "text": "so bad", "ann": "bad", "ben": None},
    {"id": 3, "text": "it is", "ann": "bad", "ben": "good"},
]
EXPECTED = {"ann": ["good", "bad", "bad"], "ben": ["good", "good"]}


def test_objects_of_plain_values_are_a_table(tmp_path: Path) -> None:
    columns = {name: {str(k): row[name] for k, row in enumerate(ROWS)} for name in ROWS[0]}
    split = {"columns": list(ROWS[0]), "index": [0, 1, 2], "data": [list(row.values()) for row in ROWS]}
    for k, data in enumerate((ROWS, columns, split, "".join(json.dumps(row) + "\n" for row in ROWS))):
        corpus = load(tmp_path, f"{k}.json", data)
        assert votes(corpus) == EXPECTED
        assert "rows of a table" in corpus.load_report.notes[0]
    long = [
        {"sentence_id": "s", "position": k, "token": token, "annotator": who, "label": label}
        for who, labels in (("ann", "PO"), ("ben", "OO"))
        for k, (token, label) in enumerate(zip(("Ada", "left"), labels))
    ]
    assert votes(load(tmp_path, "long.json", long)) == {"ann": ["P", "O"], "ben": ["O", "O"]}


def test_records_inside_an_object(tmp_path: Path) -> None:
    said = {"annotators": "ann,ben", "annotations": "good,bad"}
    by_id = {key: {"text": f"it is {key}", **said} for key in ("7", "9")}
    corpus = load(tmp_path, "x.json", by_id)
    assert list(corpus.sequence_ids) == ["7", "9"]
    assert votes(corpus) == {"ann": ["good", "good"], "ben": ["bad", "bad"]}
    result = {"from_name": "l", "to_name": "t", "type": "labels", "value": {"start": 0, "end": 3, "labels": ["PER"]}}
    task = {"id": 1, "data": {"text": "Ada left"}, "annotations": [{"completed_by": 3, "result": [result]}]}
    assert votes(load(tmp_path, "y.json", {"tasks": [task], "config": "<View/>"})) == {"3": ["B-PER", "O"]}


def test_a_record_is_not_taken_for_a_list_of_its_entities(tmp_path: Path) -> None:
    found = load(tmp_path, "x.json", {"text": "Ada left", "entities": [{"text": "Ada", "label": "PER"}]})
    assert votes(found) == {"x": ["B-PER", "O"]}
    with pytest.raises(FormatError, match="cannot be told"):
        load(
            tmp_path,
            "x.json",
            {"version": 1, "data": [{"title": "x", "paragraphs": [{"context": "Ada left", "qas": []}]}]},
        )


def test_objects_by_numbers_that_hold_numbers_are_no_columns() -> None:
    said = [words for words, _ in dresses(source("x.json", b'{"7": {"0": "a", "1": "b"}, "9": {"0": "c", "1": "d"}}'))]
    assert not any("rows of a table" in words for words in said)


def test_columns_with_other_rows_are_no_table() -> None:
    for data in (b'{"a": {"0": "x", "1": "y"}, "b": {"0": "z"}}', b'{"a": {"0": "x"}, "b": {"1": "z"}}'):
        assert not any("rows of a table" in words for words, _ in dresses(source("x.json", data)))


def test_text_without_delimiters_is_not_a_table_of_one_column() -> None:
    assert not _mostly_one_width("ann\nben\neve\n", ",")
    assert not _mostly_one_width("a,b\nc,d\n", ",")  # two lines tell nothing
    assert _mostly_one_width("a,b\nc,d\ne,f\n", ",")
    assert not _mostly_one_width("a,b\nc,d\ne\n", ",")


def test_half_a_character_in_another_dress_is_named() -> None:
    with pytest.raises(FormatError, match=r"x\.json: .*half a character"):
        _named(source("x.json", b"[]")[0], ".csv", "\ud800")


@pytest.mark.parametrize("examples", [None, pytest.param(MANY, marks=pytest.mark.fuzz)])
def test_mutations_give_files_or_nothing(examples: int | None) -> None:
    more = {} if examples is None else {"max_examples": examples}
    for name, valid in (("x.csv", PYTHON), ("x.json", json.dumps({"a": {"text": "x", "b": 1}, "c": {"text": "y"}}))):
        assert_only_lasca_errors(lambda data, name=name: list(dresses(source(name, data))), valid.encode(), **more)


def test_lists_as_numpy_prints_them(tmp_path: Path) -> None:
    """pandas writes arrays in cells without commas; Python would join the words."""
    table = "id,tokens,annotator_1,annotator_2\n1,\"['Ada' 'left'\n 'it']\",\"['B-PER' 'O' 'O']\",\"['O' 'O' 'O']\"\n"
    corpus = load(tmp_path, "x.csv", table)
    assert list(corpus.sequence(0)) == ["Ada", "left", "it"]
    assert votes(corpus) == {"annotator_1": ["B-PER", "O", "O"], "annotator_2": ["O", "O", "O"]}
    for cell in ("['\\x' 'b']", f"[0 {'1' * 5000}]"):  # what Python cannot read stays text
        with pytest.raises(FormatError):
            load(tmp_path, "y.csv", f"tokens,ner_tags\n\"['a' 'b']\",\"{cell}\"\n")


WORDS = ["Ada", "saw", "New", "York"]
TAGS = ["B-PER", "O", "B-LOC", "I-LOC"]
LINES = [
    [{"tokenized_text": WORDS, "ner": [[0, 0, "PER"], [2, 3, "LOC"]]}, {"tokenized_text": ["It"], "ner": []}],
    [{"doc_key": "d", "sentences": [["It"], WORDS], "ner": [[], [[1, 1, "PER"], [3, 4, "LOC"]]]}],
    [{"tokens": WORDS, "entities": TAGS}, {"tokens": ["It"], "entities": ["O"]}],
]


@pytest.mark.parametrize("rows", LINES, ids=["gliner", "dygie", "btc"])
def test_spans_over_tokens_of_known_releases(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    corpus = load(tmp_path, "x.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert sorted(corpus.labels[code] for code in corpus.golds["gold"]) == sorted([*TAGS, "O"])
    assert corpus.n_sequences == 2
    assert "shape of others" in corpus.load_report.notes[0]


def test_overlapping_spans_over_tokens_are_no_tags(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be told"):
        load(tmp_path, "x.json", [{"tokenized_text": WORDS, "ner": [[0, 2, "A"], [2, 3, "B"]]}])


PLACED = [
    {"entity_group": "PER", "word": "ada", "start": 0, "end": 3, "score": 0.9},
    {"text": "Ada", "start_pos": 0, "end_pos": 3, "labels": [{"value": "PER", "confidence": 0.9}]},
    {"word": "Ada", "type": "PER"},
    {"name": "Ada", "entity_type": "PER"},
    {"entity": "PER", "word": "Ada", "start": 0, "end": 3},
]


@pytest.mark.parametrize("entity", PLACED, ids=["transformers", "flair", "quotes", "names", "gliner"])
def test_texts_with_entities(tmp_path: Path, entity: dict[str, Any]) -> None:
    rows = [{"text": "Ada left", "entities": [entity]}, {"text": "It rained", "entities": []}]
    found = votes(load(tmp_path, "ben.json", rows))
    assert {name: sorted(labels) for name, labels in found.items()} == {"ben": ["B-PER", "O", "O", "O"]}


TWO = [{"value": "PER"}, {"value": "LOC"}]
WEAK = {"0": {"data": {"text": ["Ada", "left"]}, "label": ["O", "O"], "weak_labels": [["O", "O"], ["O"]]}}
UNSURE: dict[str, Any] = {
    "the last token behind the text": [{"tokenized_text": ["Ada", "left"], "ner": [[1, 2, "PER"]]}],
    "an end without a start": [{"text": "Ada left", "entities": [{"text": "Ada", "end": 3, "label": "PER"}]}],
    "two labels": [{"text": "Ada left", "entities": [{"start_pos": 0, "end_pos": 3, "labels": TWO}]}],
    "no entity anywhere": [{"text": "Ada left", "entities": []}],
    "labelling functions that label a part": WEAK,
}


@pytest.mark.parametrize("what", UNSURE)
def test_shapes_that_are_not_clear_are_nobodys(what: str) -> None:
    assert known_shape(source("x.json", json.dumps(UNSURE[what]).encode())[0]) is None


def test_sentences_of_dygie_know_their_documents(tmp_path: Path) -> None:
    rows: list[Any] = [
        {"doc_key": "a", "sentences": [WORDS, ["It"]], "ner": [[[0, 0, "PER"]], []]},
        {"sentences": [["So"]], "ner": [[]]},
        {"sentences": [["Is"], ["it"]], "ner": [[], []]},
    ]
    corpus = load(tmp_path, "x.json", rows)
    found = dict(zip(corpus.sequence_ids, corpus.metadata["document"]))
    assert found == {"a/0": "a", "a/1": "a", "1/0": "1", "2/0": "2", "2/1": "2"}


def test_what_models_wrote_beside_its_input(tmp_path: Path) -> None:
    said = json.dumps({"entities": [{"text": "Ada", "type": "PER"}]})
    row = {"input": "Ada left", "output": f"```json\n{said}\n```", "metadata": {"model_name": "gpt-4o"}}
    corpus = load(tmp_path, "x.json", [row])
    assert (votes(corpus), corpus.kinds) == ({"gpt-4o": ["B-PER", "O"]}, ("model",))
    assert votes(load(tmp_path, "n.json", [{"input": "Ada left", "output": "['Ada <> PER']"}])) == {"n": ["B-PER", "O"]}


def test_stanza(tmp_path: Path) -> None:
    sentence = [{"id": k, "text": w, "start_char": 0, "ner": t} for k, (w, t) in enumerate(zip(WORDS, TAGS))]
    corpus = load(tmp_path, "x.json", [sentence, sentence[:2]])
    assert (corpus.annotators, corpus.kinds, corpus.n_tokens) == (("stanza",), ("model",), 6)


def test_wrench(tmp_path: Path) -> None:
    weak = [["B-PER", "O"], ["O", "O"], ["B-LOC", "B-LOC"], ["I-LOC", "O"]]
    corpus = load(tmp_path, "x.json", {"0": {"label": TAGS, "weak_labels": weak, "data": {"text": WORDS}}})
    assert votes(corpus) == {"lf_1": TAGS, "lf_2": ["O", "O", "B-LOC", "O"]}
    assert [corpus.labels[code] for code in corpus.golds["gold"]] == TAGS
    rows = {str(k): {"label": k, "weak_labels": [-1, k, 0], "data": {"text": f"so {k}"}} for k in range(2)}
    corpus = load(tmp_path, "y.json", rows)
    assert votes(corpus) == {"lf_2": ["0", "1"], "lf_3": ["0", "0"]}
    assert list(corpus.golds) == ["gold"]


def test_texts_on_which_all_labelling_functions_of_wrench_abstain(tmp_path: Path) -> None:
    """The first of a file, as it may well be; their golds stay."""
    rows = {
        str(k): {"label": gold, "weak_labels": weak, "data": {"text": f"so {k}"}}
        for k, (gold, weak) in enumerate([(1, [-1, -1]), (0, [0, -1]), (-1, [1, 1]), (-1, [-1, -1])])
    }
    corpus = load(tmp_path, "x.json", rows)
    assert votes(corpus) == {"lf_1": ["0", "1"], "lf_2": ["1"]}
    assert [corpus.labels[code] if code >= 0 else None for code in corpus.golds["gold"]] == ["1", "0", None]
    assert corpus.load_report.counts == {"records that nobody labelled": 1}


def test_entities_beside_what_would_be_written_over_are_left_to_people(tmp_path: Path) -> None:
    entity = {"text": "Ada", "start_pos": 0, "end_pos": 3, "labels": [{"value": "PER"}]}
    for more in ({"spans": [[4, 8, "X"]]}, {"annotator": "ann"}):
        with pytest.raises(FormatError):
            load(tmp_path, "x.json", [{"text": "Ada left", "entities": [entity], **more}])


PER, LOC = {"start": 0, "end": 3, "label": "PER"}, {"start": 8, "end": 16, "label": "LOC"}


@pytest.mark.parametrize(
    "said",
    [
        {"events": [PER, LOC]},
        {"entities": {"PER": [PER], "LOC": [LOC]}},
        {"entities": {"persons": [PER], "places": [LOC]}},
        {"entities": {"PER": ["Ada"], "LOC": ["New York"]}},
        {"entities": {"PER": [[0, 3]], "LOC": [[8, 16]]}},
    ],
    ids=["another name", "by label", "by type", "quotes by label", "places by label"],
)
def test_spans_under_another_name_or_by_their_types_are_of_one_voice(tmp_path: Path, said: dict[str, Any]) -> None:
    """Types that held their spans were taken for annotators."""
    row = {"text": "Ada saw New York", **said}
    rows = [
        row,
        {**row, "text": "Ada saw New York again"},
        {"text": "It", **{key: type(v)() for key, v in said.items()}},
    ]
    found = votes(load(tmp_path, "ben.json", rows))
    assert {name: sorted(labels) for name, labels in found.items()} == {"ben": sorted([*TAGS, *TAGS, "O", "O"])}


def test_two_lists_of_spans_are_not_chosen_from(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be told"):
        load(tmp_path, "x.json", [{"text": "Ada saw New York", "events": [PER], "times": [LOC]}])


@pytest.mark.parametrize(
    "whole",
    [
        {"n": 2, "data": [{"doi": "d", "tokens": [WORDS, ["It"]], "labels": [TAGS, ["O"]]}]},
        [{"doc_id": "d", "sentences": [{"tokens": WORDS, "tags": TAGS}, {"tokens": ["It"], "tags": ["O"]}]}],
        {"tokens": [WORDS, ["It"]], "ner_tags": [TAGS, ["O"]], "source": ["a", "b"]},
    ],
    ids=["lists", "objects", "columns"],
)
def test_sentences_of_documents_and_columns_of_lists(tmp_path: Path, whole: Any) -> None:
    corpus = load(tmp_path, "x.json", whole)
    assert sorted(len(corpus.sequence(k)) for k in range(corpus.n_sequences)) == [1, 4]
    assert sorted(corpus.labels[code] for code in corpus.golds["gold"]) == sorted([*TAGS, "O"])
    if "source" not in whole:  # folds keep documents together
        assert list(corpus.metadata["document"]) == (["d", "d"] if isinstance(whole, list) else ["0", "0"])


def test_texts_in_a_list_for_each_column(tmp_path: Path) -> None:
    corpus = load(tmp_path, "ben.json", {"text": ["so good", "so bad"], "label": ["pos", "neg"]})
    assert {name: sorted(labels) for name, labels in votes(corpus).items()} == {"ben": ["neg", "pos"]}
    with pytest.raises(FormatError):  # one text, and not four
        load(tmp_path, "x.json", {"words": WORDS, "confidence": [1, 1, 1, 1]})


def test_tags_of_single_tokens_are_no_labels_of_spans(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be told"):
        load(tmp_path, "x.json", [{"text": "Ada left", "entities": [{**PLACED[-1], "entity": "B-PER"}]}])


@pytest.mark.parametrize("names", [["annotator_1", "annotator_2"], ["gpt-4o", "llama-3-70b"]])
def test_usual_names_of_tags_beside_columns_of_people_are_the_gold(tmp_path: Path, names: list[str]) -> None:
    """Rows of Hugging Face with a column for each annotator: they were left out, and only ner_tags were read."""
    row = {"id": "1", "tokens": ["Ada", "left"], "ner_tags": ["B-PER", "O"]}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({**row, names[0]: ["B-PER", "O"], names[1]: ["O", "O"]}))
    corpus = read(path)
    assert corpus.load_report.format == "records"
    assert (list(corpus.annotators), list(corpus.golds)) == (names, ["ner_tags"])
    assert corpus.label_names(corpus.golds["ner_tags"]) == [["B-PER", "O"]]


def test_an_empty_list_beside_the_only_spans_may_be_another_voice(tmp_path: Path) -> None:
    """Where one of two annotators had marked nothing, the other one's spans were all there was."""
    text, per = "Ada left Rome", [{"start": 0, "end": 3, "label": "PER"}]
    said = {"d0": {"text": text, "ana": per, "bo": []}, "d1": {"text": "it rained", "ana": [], "bo": []}}
    with pytest.raises(FormatError, match="the format cannot be told"):
        load(tmp_path, "by_document.json", said)
    events = {k: {"text": f"{text} {k}", "events": per, "relations": []} for k in "ab"}
    assert load(tmp_path, "events.json", events).labels == ("B-PER", "O")


@pytest.mark.parametrize("place", [{"start_pos": 0, "end_pos": 3}, None])
def test_places_in_an_object_of_their_own(tmp_path: Path, place: dict[str, int] | None) -> None:
    """LangExtract has its places in char_interval, null where it did not find the words; MSRA in entity_index."""
    found = [{"extraction_class": "PER", "extraction_text": "Ada", "char_interval": place, "attributes": {}}]
    found.append({"extraction_class": "LOC", "extraction_text": "Rome", "char_interval": None})
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"extractions": found, "text": "Ada left Rome", "document_id": "d"}))
    corpus = read(path)
    assert (corpus.annotators, corpus.kinds) == (("langextract: a",), ("model",))
    assert {"B-PER", "B-LOC"} <= set(corpus.labels)
    at = {"begin": 0, "end": 3}
    path.write_text(json.dumps({"text": "Ada left Rome", "entity_list": [{"entity_index": at, "entity_type": "PER"}]}))
    assert read(path).labels == ("B-PER", "O")


def test_lists_of_tags_beside_a_sentence(tmp_path: Path) -> None:
    """Kaggle's ner.csv: `-r annotator=file`, which the message named, made each list a label of its sentence."""
    table = (
        "Sentence #,Sentence,POS,Tag\n"
        "Sentence: 1,Ada left Rome,\"['NNP', 'VBD', 'NNP']\",\"['B-PER', 'O', 'B-LOC']\"\n"
        "Sentence: 2,It rained all day,\"['PRP', 'VBD', 'DT', 'NN']\",\"['O', 'O', 'O', 'O']\"\n"
    )
    corpus = load(tmp_path, "ner.csv", table)
    assert corpus.label_names(corpus.golds["gold"]) == [["B-PER", "O", "B-LOC"], ["O"] * 4]
    assert corpus.sequence(0) == ["Ada", "left", "Rome"]
    with pytest.raises(FormatError, match="the column 'Tag' hold lists"):
        read(tmp_path / "ner.csv", format="table", annotator="file")

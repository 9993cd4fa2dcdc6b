"""Tables of spans: columns by their names, nothing marked and not seen, and what is refused."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import pytest

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError
from lasca.formats import READERS, read, span_table
from lasca.formats.choose import choose
from mutations import MANY, assert_only_lasca_errors, source, sources

SAMPLE = (span_table.__doc__ or "").split("```")[1].strip() + "\n"


def votes(corpus: CrowdCorpus) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for row in corpus.to_table().to_pylist():
        found.setdefault(row["annotator"], {})[row["token"]] = row["label"]
    return found


def test_the_sample_of_the_docstring() -> None:
    assert choose(READERS, source("x.csv", SAMPLE.encode()), "x.csv") == "span-table"
    corpus = span_table.read(source("x.csv", SAMPLE.encode()))
    assert votes(corpus) == {
        "ann": {"Ada": "B-PER", "visited": "O", "Rome": "O", "it": "O", "rained": "O"},
        "ben": {"Ada": "O", "visited": "O", "Rome": "B-LOC"},  # who has not seen the second text
    }
    assert list(corpus.sequence_ids) == ["1", "2"]


NAMES = {"Text ID": "t1", "Sentence": "so Ada left", "begin": "3.0", "end_char": "6.0", "Type": "PER", "Worker": "ann"}


@pytest.mark.parametrize("order", list(permutations(range(6)))[::90])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_columns_in_any_order_under_other_names(order: tuple[int, ...], delimiter: str) -> None:
    names = [list(NAMES)[k] for k in order]
    data = (delimiter.join(names) + "\n" + delimiter.join(NAMES[n] for n in names) + "\n").encode()
    name = "x.tsv" if delimiter == "\t" else "x.csv"
    assert choose(READERS, source(name, data), name) == "span-table"
    assert votes(span_table.read(source(name, data))) == {"ann": {"so": "O", "Ada": "B-PER", "left": "O"}}


def test_rows_that_do_not_count_and_columns_that_say_who_are_asked_about() -> None:
    header, row = "id,text,start,end,label,annotator", "1,Ada left,0,3,PER,ann"
    skipped = f"{header},state\n{row},done\n1,Ada left,,,,ben,skipped\n"
    corpus = span_table.read(source("x.csv", skipped.encode()))
    assert votes(corpus) == {"ann": {"Ada": "B-PER", "left": "O"}}  # and ben did not say O
    assert corpus.load_report.counts["annotations that do not count (skipped)"] == 1
    with pytest.raises(FormatError, match="said to be rejected"):
        span_table.read(source("x.csv", f"{header},state\n{row},rejected\n".encode()))
    table = f"{header}\n{row}\n".replace("annotator", "source") + "1,Ada left,4,8,PER,{}\n"
    for other in ("gpt-4", "annotator 2"):
        with pytest.raises(FormatError, match="-r annotator=source"):
            span_table.read(source("x.csv", table.format(other).encode()))
    for said in ("web", "the model here is a car"):
        where = table.replace(",ann\n", ",blog\n").format(said)
        assert set(span_table.read(source("x.csv", where.encode())).golds) == {"gold"}


def test_of_two_answers_the_later_one_counts() -> None:
    header = b"id,text,start,end,label,annotator,timestamp\n"
    files = {
        "a.csv": header + b"1,Ada left,0,3,PER,ann,2024-01-02\n",
        "b.csv": header + b"1,Ada left,0,3,LOC,ann,2024-01-01\n",
    }
    assert votes(span_table.read(sources(files))) == {"ann": {"Ada": "B-PER", "left": "O"}}


def test_texts_without_ids_are_told_apart_by_their_files() -> None:
    files = dict.fromkeys(("a.csv", "b.csv"), b"text,start,end,label,annotator\nAda left,0,3,PER,ann\n")
    corpus = span_table.read(sources(files))
    assert [id.split("/")[0] for id in corpus.sequence_ids] == ["a", "b"]
    assert "/" not in span_table.read(source("a.csv", files["a.csv"])).sequence_ids[0]


def test_what_pandas_writes_for_nothing_is_no_span() -> None:
    corpus = span_table.read(source("x.csv", b"text,start,end,label,annotator\nAda left,nan,NaN,nan,ann\n"))
    assert votes(corpus) == {"ann": {"Ada": "O", "left": "O"}}


def test_blanks_at_the_start_of_a_text_count_and_columns_left_out_are_named() -> None:
    data = b"text,start,end,label,annotator,mood\n  Ada left,2,5, PER ,ann,fine\n"
    corpus = span_table.read(source("x.csv", data))
    assert votes(corpus) == {"ann": {"Ada": "B-PER", "left": "O"}}
    assert corpus.load_report.counts["columns left out"] == 1


def test_a_column_that_was_named_plays_no_other_part() -> None:
    data = b"entity,start,end,label,annotator\nAda left,0,3,PER,ann\n"  # else the words that are marked
    assert votes(span_table.read(source("x.csv", data), text="entity")) == {"ann": {"Ada": "B-PER", "left": "O"}}


def test_without_annotators_it_is_a_gold() -> None:
    corpus = span_table.read(source("x.csv", b"text,start,end,label\nAda left,0,3,PER\n"))
    assert (corpus.annotators, list(corpus.golds)) == ((), ["gold"])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"doc_id,start,end,label,annotator\n1,0,3,PER,ann\n", "without their texts"),
        (b"text,start,end,label,annotator\nAda left,0,,PER,ann\n", "a span has no end"),
        (b"text,start,end,label,annotator\nAda left,0,3,PER,\n", "does not say who"),
        (b"text,start,end,label,annotator\nAda left,0,30,PER,ann\n", "outside its text"),
        (b"text,start,end,label,entity\nso Ada left,2,5,PER,Ada\nso Bob left,4,8,PER,Bob\n", "do not stand at their"),
    ],
)
def test_messages(data: bytes, message: str) -> None:
    assert choose(READERS, source("x.csv", data), "x.csv") == "span-table"
    with pytest.raises(FormatError, match=message):
        span_table.read(source("x.csv", data))
    with pytest.raises(ParameterError, match="a column of"):
        span_table.read(source("x.csv", data), label="nothing")


def test_spans_are_no_labels_of_texts(tmp_path: object) -> None:
    """A span for each text and annotator looks like labels of texts, if one does not look at where they stand."""
    import pathlib

    path = pathlib.Path(str(tmp_path)) / "x.csv"
    path.write_text("text,start,end,label,annotator\nAda left,0,3,PER,ann\nBob ran,0,3,PER,ben\n")
    assert read(path).n_tokens == 4
    path.write_text("text,entity,label,annotator\nAda left,Ada,PER,ann\nBob ran,Bob,PER,ben\n")
    assert votes(read(path)) == {"ann": {"Ada": "B-PER", "left": "O"}, "ben": {"Bob": "B-PER", "ran": "O"}}
    with pytest.raises(FormatError, match="'entity' says which words of the texts the labels are about"):
        read(path, format="table")
    path.write_text("sentence,position,token,annotator,label,start,end\n1,0,Ada,ann,PER,0,3\n1,1,left,ann,O,4,8\n")
    assert votes(read(path)) == {"ann": {"Ada": "PER", "left": "O"}}


SPANS = [("ann", 0, 3, "PER"), ("ben", 8, 12, "LOC"), ("cy", 0, 3, "PER")]
WHOLE = "Ada saw Rome"


@pytest.mark.parametrize("names", [("offset", "length"), ("from", "to"), ("beginOffset", "endOffset")])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_one_span_of_each_annotator_by_other_names_is_no_label_of_the_text(
    tmp_path: Path, names: tuple[str, str], suffix: str
) -> None:
    """They were read as labels of whole texts."""
    ends = (lambda a, b: (a, b - a)) if names[1] == "length" else (lambda a, b: (a, b))
    rows = [
        {"id": 1, "text": WHOLE, "annotator": w, **dict(zip(names, ends(a, b))), "label": x} for w, a, b, x in SPANS
    ]
    path = tmp_path / f"x{suffix}"
    table = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(table if suffix == ".csv" else map(json.dumps, rows)) + "\n")
    found = votes(read(path))
    assert found["ann"] == found["cy"] == {"Ada": "B-PER", "saw": "O", "Rome": "O"}
    assert found["ben"] == {"Ada": "O", "saw": "O", "Rome": "B-LOC"}


@pytest.mark.parametrize("at", ["[{a}, {b}]", "{a}-{b}", "({a}, {b})", "words"])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_labels_beside_which_their_words_or_places_stand_are_asked_about(tmp_path: Path, at: str, suffix: str) -> None:
    cells = [(w, WHOLE[a:b] if at == "words" else at.format(a=a, b=b), x) for w, a, b, x in SPANS]
    rows = [{"item_id": 1, "text": WHOLE, "annotator": w, "basis": cell, "label": x} for w, cell, x in cells]
    path = tmp_path / f"x{suffix}"
    table = [",".join(rows[0]), *(",".join(f'"{v}"' for v in row.values()) for row in rows)]
    path.write_text("\n".join(table if suffix == ".csv" else map(json.dumps, rows)) + "\n")
    with pytest.raises(FormatError, match="'basis' says which words of the texts the labels are about"):
        read(path)
    for row in rows:  # the same for all: what the text was found by, or the age of its author
        row["basis"] = "saw" if at == "words" else "18-24"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert read(path).labels == ("LOC", "PER")


def test_times_of_work_are_no_places(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = [
        "item_id,text,annotator,label,start_time,end_time",
        *(f"{k},so {k},{w},good,1,2" for k in "12" for w in "ab"),
    ]
    path.write_text("\n".join(rows) + "\n")
    assert read(path).n_annotations == 4


@pytest.mark.parametrize("examples", [None, pytest.param(MANY, marks=pytest.mark.fuzz)])
def test_mutations_give_a_corpus_or_a_lasca_error(examples: int | None) -> None:
    more = {} if examples is None else {"max_examples": examples}
    assert_only_lasca_errors(lambda data: span_table.read(source("x.csv", data)), SAMPLE.encode(), **more)


def test_spans_by_the_numbers_of_tokens_are_no_labels_of_sentences() -> None:
    data = b"sentence_id,start_token,end_token,label,annotator\n1,0,1,PER,ann\n1,0,1,PER,ben\n"
    for format in READERS:
        if format in ("table", "wide", "span-table", "conll", "mace"):
            assert READERS[format].sniff(source("x.csv", data)) == 0
    with pytest.raises(FormatError, match="parts of sequences"):
        READERS["table"](source("x.csv", data))


def test_words_without_places_are_looked_for_in_their_texts(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("text,entity,tag,user\nAda saw Rome,Ada,PER,ann\nAda saw Rome,Rome,LOC,ann\nAda saw Rome,,,ben\n")
    rows = read(path).to_table().to_pylist()
    assert [row["label"] for row in rows if row["annotator"] == "ann"] == ["B-PER", "O", "B-LOC"]
    assert [row["label"] for row in rows if row["annotator"] == "ben"] == ["O", "O", "O"]
    path.write_text("text,entity,label\nAda saw Rome,Ben,PER\n")  # it stands elsewhere
    with pytest.raises(FormatError):
        read(path)


def test_words_that_are_marked_are_no_texts() -> None:
    """CATMA's tables call the marked words text: a span was outside of "its text of 4 code points"."""
    rows = b"document;start;end;tag;text\nd1;0;3;PER;Ada\nd1;17;21;LOC;Rome\nd2;4;7;PER;Bob\n"
    with pytest.raises(FormatError, match="the column 'text' holds the words that are marked"):
        span_table.read(source("x.csv", rows))

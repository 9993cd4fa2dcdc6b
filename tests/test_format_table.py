"""The long table: the sample, CSV, TSV, Parquet and frames, crowd-kit's columns, roles, time, hostile files."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, LascaError, LascaWarning, ParameterError
from lasca.formats import long_table, read, write
from mutations import MANY, assert_only_lasca_errors, source, sources

SAMPLE = (long_table.__doc__ or "").split("```")[1].strip() + "\n"


def load(text: str, name: str = "x.csv", **options: object) -> CrowdCorpus:
    return long_table.read(source(name, text.encode()), **options)  # type: ignore[arg-type]


def parquet(frame: pd.DataFrame) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(frame), sink)
    return sink.getvalue()


def test_the_sample_of_the_docstring() -> None:
    corpus = load(SAMPLE)
    assert list(corpus.tokens) == ["😊", "Ada", "Lovelace"]
    assert corpus.annotators == ("ann", "ben")
    assert corpus.to_table(backend="pandas")[["position", "annotator", "label"]].to_numpy().tolist() == [
        [0, "ann", "O"],
        [1, "ann", "B-PER"],
        [1, "ben", "B-PER"],
    ]
    assert long_table.sniff(source("x.csv", SAMPLE.encode())) > 0.9


def test_csv_tsv_parquet_and_frames_are_the_same() -> None:
    expected = load(SAMPLE)
    frame = pd.read_csv(io.StringIO(SAMPLE))
    assert load(SAMPLE.replace(",", "\t"), "x.tsv") == expected
    assert load(SAMPLE.replace(",", ";")) == expected
    assert load(SAMPLE.replace("\n", "\r\n")) == expected
    assert long_table.read(source("x.csv", SAMPLE.encode("utf-16"))) == expected
    assert long_table.read(source("x.parquet", parquet(frame))) == expected
    assert read(frame) == expected
    assert read(frame.astype({"sequence": "category", "label": "category"})) == expected
    assert read(pl.from_pandas(frame)) == expected
    assert read(pl.from_pandas(frame).lazy()) == expected
    assert read(pa.Table.from_pandas(frame)) == expected
    assert read(frame.sample(frac=1, random_state=3)) == expected


def test_labels_of_nothing_are_no_long_table() -> None:
    """Files with labels of texts may be one for each annotator; files with labels alone are something else."""
    for header, sure in (("text,label", 0.93), ("score,label", 0.0)):
        files = sources({f"{who}.csv": f"{header}\nx,good\ny,bad\n".encode() for who in ("ann", "ben")})
        assert long_table.sniff(files) == sure


def test_models_may_be_unsure_as_people_may() -> None:
    rows = [
        ("s", 0, who, role, label, p)
        for who, role in (("ann", "annotator"), ("bot", "model"))
        for label, p in (("a", 0.75), ("b", 0.25))
    ]
    corpus = read(pd.DataFrame(rows, columns=["sequence", "position", "annotator", "role", "label", "probability"]))
    assert corpus.soft is not None
    assert corpus.roles == ("annotator", "model")
    assert corpus.soft.proba.tolist() == [[0.75, 0.25], [0.75, 0.25]]


def test_several_files_are_one_table() -> None:
    head, *rows = SAMPLE.splitlines(keepends=True)
    parts = {f"{i}.csv": (head + row).encode() for i, row in enumerate(rows)}
    assert long_table.read(sources(parts)) == load(SAMPLE)
    with pytest.raises(FormatError, match="columns differ"):
        long_table.read(sources({**parts, "9.csv": b"a,b\n"}))


def test_the_columns_of_crowd_kit() -> None:
    frame = pd.DataFrame({"task": ["s1:10", "s1:9", "s1:9", "s2:0"], "worker": [1, 1, 2, 2], "label": list("abca")})
    corpus = read(frame)
    assert list(corpus.sequence_ids) == ["s1", "s2"]
    assert corpus.annotators == ("1", "2")
    assert corpus.to_table(backend="pandas")["label"].tolist() == ["b", "c", "a", "a"]
    items = read(pd.DataFrame({"task": ["x", "y:1"], "worker": ["w", "w"], "label": ["a", "b"]}))
    assert list(items.sequence_ids) == ["x", "y:1"]


def test_positions_sort_as_numbers_and_gaps_are_counted() -> None:
    frame = pd.DataFrame(
        {"sequence": ["s"] * 3, "position": [10.0, 2.0, 9.0], "token": ["c", "a", "b"], "annotator": "w", "label": "O"}
    )
    corpus = read(frame)
    assert list(corpus.tokens) == ["a", "b", "c"]
    assert corpus.load_report.counts["positions nobody mentions"] == 6


def test_roles_and_gold_columns() -> None:
    text = "sequence,position,word,annotator,label,role,gold_a\ns,0,x,w,A,,B\ns,0,x,m,B,model,B\ns,1,y,e,C,gold,\n"
    corpus = load(text)
    assert (corpus.annotators, corpus.roles) == (("m", "w"), ("model", "annotator"))
    assert corpus.label_names(corpus.golds["e"]) == [[None, "C"]]
    assert corpus.label_names(corpus.golds["gold_a"]) == [["B", None]]


def test_the_last_by_time_counts() -> None:
    text = "sequence,position,annotator,label,time\ns,0,w,A,9\ns,0,w,B,10\ns,0,v,C,1\ns,0,v,C,2\n"
    corpus = load(text)
    assert corpus.to_table(backend="pandas")["label"].tolist() == ["C", "B"]
    assert corpus.load_report.counts == {"superseded": 1, "repeated": 1}
    shuffled = "\n".join([text.splitlines()[0], *reversed(text.splitlines()[1:])])
    assert load(shuffled) == corpus
    with pytest.raises(FormatError, match=r"x\.csv:3: annotator 'w' labelled this token twice"):
        load(text, time="annotator")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("s1,1,Ada,ben,B-PER", "s1,1,Ada,ben"), r"x\.csv:4: .*Expected 5 columns"),
        (("s1,1,Ada,ben,B-PER", "s1,1,Eve,ben,B-PER"), r"x\.csv:4: the token is 'Ada' elsewhere"),
        (("s1,2,", "s1,two,"), r"x\.csv:5: a position must be a whole number"),
        (("s1,2,", "s1,-2,"), r"x\.csv:5: a position"),
        (("s1,2,", ",2,"), r"x\.csv:5: a row without a sequence"),
        (("Lovelace,,", "Lovelace,,O"), r"x\.csv:5: a label without an annotator"),
        (("label", "lable"), r"x\.csv:1: there is no column for label"),
        (("sequence,", "token,"), "a name of its own"),
        (("ann,O", 'ann,"O'), r"x\.csv:2: a quote is opened and not closed"),
        (("ann,O\ns1,1,Ada,ann,B-PER", 'ann,"O\ns1,1,Ada,ann,B-PER"'), r"x\.csv:2: a quote opens a cell that holds"),
        (("ann,O", 'ann,"O\nx"'), r"x\.csv:2: a line break inside a label"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(change: tuple[str, str], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        load(SAMPLE.replace(*change))


def test_wrong_frames_and_names() -> None:
    with pytest.raises(ParameterError, match="label must be a column"):
        load(SAMPLE, label="x")
    with pytest.raises(ParameterError, match="golds must be a column"):
        load(SAMPLE, golds="x")
    with pytest.raises(ParameterError, match="a path, a data frame"):
        read(3)
    with pytest.raises(FormatError, match="no row"):
        load(SAMPLE.splitlines()[0])
    with pytest.raises(LascaError):
        read(pd.DataFrame([[1, 2, 3]], columns=["label", "label", "annotator"]))


def test_a_quote_as_a_token_of_tsv() -> None:
    text = 'sequence\tposition\ttoken\tannotator\tlabel\ns\t0\t"\tw\tA\ns\t1\tx\tw\tA\ns\t2\t"\tw\tA\n'
    assert list(load(text, "x.tsv").tokens) == ['"', "x", '"']


def test_a_quote_that_is_not_doubled_swallows_no_rows() -> None:
    head = "sequence,position,token,annotator,label\n"
    with pytest.raises(FormatError, match=r'x\.csv:2: a quote opens a cell that holds whole rows.*written """"'):
        load(head + 's1,0,",ann,O\ns1,1,Rome,ann,B-LOC\ns2,0,",ann,O\ns2,1,Oslo,ann,B-LOC\n')
    with pytest.raises(FormatError, match="holds whole rows"):
        load(head + 's1,0,"Hello,ann,O\ns1,1,Rome",ann,B-LOC\n')
    fine = load(head + 's1,0,"a,,,,\nb",ann,O\ns1,1,"""",ann,O\n')
    assert list(fine.tokens) == ["a,,,,\nb", '"']
    assert fine.load_report.counts == {"cells with a line break": 1}


def test_lines_that_end_in_cr_alone() -> None:
    long = SAMPLE + "".join(f"s{i},0,é,ann,O\n" for i in range(2, 9000))
    assert load(SAMPLE.replace("\n", "\r")) == load(SAMPLE)
    data = long.replace("\n", "\r").encode()
    assert long_table.sniff(source("x.csv", data)) > 0.9
    assert long_table.read(source("x.csv", data)) == load(long)
    with pytest.raises(FormatError, match=r"x\.csv:2: a quote is opened"):
        load(SAMPLE.replace("ann,O", 'ann,"O').replace("\n", "\r"))


def test_json_is_not_taken_for_a_table_without_saying_so() -> None:
    with pytest.raises(FormatError, match="This looks like JSON"):
        load('{"sequence": "s", "position": 0, "label": "O"}\n')
    with pytest.raises(FormatError, match=r"-r label=lable"):
        load(SAMPLE.replace("label", "lable"))


def test_columns_of_strange_types() -> None:
    base = {"sequence": ["s", "s"], "position": [0, 0], "annotator": ["w", "w"], "label": ["A", "B"]}
    times = pd.to_datetime(["2026-01-02", "2026-01-01"])
    assert read(pd.DataFrame({**base, "time": times})).labels == ("A",)
    assert read(pd.DataFrame({**base, "time": [2.5, None]})).labels == ("A",)
    with pytest.raises(FormatError, match="cannot be read as time"):
        read(pa.table({**base, "time": [[1], [2]]}))
    with pytest.raises(FormatError, match="cannot be read as text"):
        read(pa.table({**base, "label": [["A"], ["B"]]}))
    assert read(pa.table({**base, "label": [True, True]})).labels == ("true",)


def test_text_in_parquet_must_be_utf8() -> None:
    data = parquet(pd.read_csv(io.StringIO(SAMPLE)))
    with pytest.raises(FormatError, match="the Parquet file cannot be read"):
        long_table.read(source("x.parquet", data.replace("😊".encode(), b"\x00\x9f\x98\x8a")))


def test_unusual_names_by_option() -> None:
    text = SAMPLE.replace("sequence,position,token,annotator,label", "a,b,c,d,e")
    assert load(text, sequence="a", position="b", token="c", annotator="d", label="e") == load(SAMPLE)


@pytest.mark.parametrize("examples", [None, pytest.param(MANY, marks=pytest.mark.fuzz)])
def test_mutations_give_a_corpus_or_a_lasca_error(examples: int | None) -> None:
    more = {} if examples is None else {"max_examples": examples}
    assert_only_lasca_errors(load_bytes, SAMPLE.encode(), **more)
    assert_only_lasca_errors(load_bytes, b"task;worker;label;time\ns1:0;1;a;3\ns1:1;2;b;\n", **more)
    assert_only_lasca_errors(load_bytes, parquet(pd.read_csv(io.StringIO(SAMPLE))), **more)


def load_bytes(data: bytes) -> CrowdCorpus:
    long_table.sniff(source("x.csv", data))
    return long_table.read(source("x.csv", data))


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.parquet"])
def test_what_is_written_is_read_back(tmp_path: Path, name: str) -> None:
    corpus = CrowdCorpus.from_sequences(
        [["=1+2", '"a",b', "c\td\ne"], ["@USER", "-", ""]],
        {"+ann": [["O", None, "B-X"], None], "m": [None, ["O", None, None]]},
        golds={"expert": [["O", "O", None], None]},
        sequence_ids=["s2", "s10"],
        roles=("annotator", "model"),
    )
    write(corpus, tmp_path / name, "table")
    assert read(tmp_path / name) == corpus


def test_a_million_rows_take_seconds() -> None:
    rng = np.random.default_rng(0)
    n = 200_000
    frame = pd.DataFrame(
        {
            "sequence": np.repeat(np.arange(n // 20), 20).repeat(5).astype(str),
            "position": np.tile(np.arange(20), n // 20).repeat(5),
            "annotator": np.tile(np.arange(5), n),
            "label": rng.choice(["A", "B", "C"], n * 5),
        }
    )
    assert read(frame).n_annotations == 5 * n


def test_other_columns_are_metadata_and_come_back(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "sequence": ["s1", "s1", "s1", "s2"],
            "position": [0, 0, 1, 0],
            "token": ["a", "a", "b", "c"],
            "annotator": ["x", "y", "x", "x"],
            "label": ["O", "B-X", "O", "O"],
            "document": ["d", "d", "d", "e"],
            "pos": ["N", "N", "V", "N"],
            "seconds": [1, 2, 3, 4],
        }
    )
    corpus = read(table)
    assert list(corpus.metadata["document"]) == ["d", "e"]
    assert list(corpus.token_metadata["pos"]) == ["N", "V", "N"]
    assert corpus.load_report.counts["columns left out"] == 1
    assert "seconds" in corpus.load_report.examples["columns left out"][0]
    assert corpus.load_report.counts["columns read as metadata"] == 2
    write(corpus, tmp_path / "x.csv", "table")
    again = read(tmp_path / "x.csv")
    assert again == corpus


SOFT = """sequence,position,annotator,label,probability
s,0,ann,A,0.7
s,0,ann,B,0.3
s,0,ben,A,1
s,1,ann,B,1
s,1,ben,A,0.5
s,1,ben,B,0.5
"""


def test_probabilities_that_add_up_are_soft_votes(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(SOFT)
    corpus = read(tmp_path / "x.csv")
    assert corpus.soft is not None
    assert (corpus.soft.token.tolist(), corpus.soft.annotator.tolist()) == ([0, 1], [0, 1])
    assert np.allclose(corpus.soft.proba, [[0.7, 0.3], [0.5, 0.5]])
    assert len(corpus.annotation_label) == 2
    write(corpus, tmp_path / "again.csv", "table")
    assert read(tmp_path / "again.csv") == corpus
    with pytest.warns(LascaWarning, match="mace has no place for soft votes: 2 are left out"):
        write(corpus, tmp_path / "x.mace", "mace")


def test_probabilities_of_single_labels_are_asked_about(tmp_path: Path) -> None:
    rows = [row for row in SOFT.splitlines() if not row.endswith(("0.3", "B,0.5"))]
    (tmp_path / "x.csv").write_text("\n".join(rows) + "\n")
    plain = read(tmp_path / "x.csv")
    assert plain.soft is None
    assert any("probability=probability" in note for note in plain.load_report.notes)
    asked = read(tmp_path / "x.csv", probability="probability")
    assert asked.soft is not None
    assert np.allclose(asked.soft.proba, [[0.7, 0.3], [0.5, 0.5]])
    (tmp_path / "x.csv").write_text(SOFT.replace("0.3", "0.2"))
    with pytest.raises(FormatError, match=r"x\.csv:2: the probabilities of annotator 'ann' .* add up to 0\.9"):
        read(tmp_path / "x.csv")


def test_golds_by_other_names_if_they_hold_such_labels() -> None:
    corpus = load("task,worker,label,truth,reference\nt1,a,x,x,a page\nt1,b,y,x,a page\nt2,a,y,y,\n")
    assert list(corpus.golds) == ["truth"]
    assert list(corpus.metadata["reference"]) == ["a page", ""]


def test_the_index_of_a_frame_and_usual_names() -> None:
    data = ",Sent Idx,word_idx,word,annotator_id,ner_tag\n0,0,0,Ada,a,B-PER\n1,0,1,left,a,O\n2,0,0,Ada,b,O\n"
    assert long_table.sniff(source("x.csv", data.encode())) > 0.9
    assert load(data).n_annotations == 3


def test_lists_are_no_labels_and_what_lacks_is_asked_for() -> None:
    assert long_table.sniff(source("x.csv", b'text,annotator,label\nAda left,ann,"[[0, 3, ""PER""]]"\n')) == 0
    data = "text,annotator,tone,topic\nso it is,ann,good,x\n"
    assert 0.3 < long_table.sniff(source("x.csv", data.encode())) < 0.5
    with pytest.raises(FormatError, match="-r label=NAME"):
        load(data)


def test_a_file_for_each_annotator_without_a_column_of_them() -> None:
    texts = {f"{who}.csv": f"Text,Label\nso it is,{a}\noh no no,{b}\n".encode() for who, a, b in ("axy", "bxx")}
    tokens = {f"{who}.csv": f"sentence_id,token,label\n1,Ada,{a}\n1,ran,{b}\n".encode() for who, a, b in ("axy", "bxx")}
    for files, n in ((texts, 2), (tokens, 1)):
        assert long_table.sniff(sources(files)) > 0.9
        corpus = long_table.read(sources(files))
        assert (corpus.annotators, corpus.n_sequences, corpus.n_annotations) == (("a", "b"), n, 4)
        assert any("each file is one annotator's" in note for note in corpus.load_report.notes)
    with pytest.raises(FormatError, match="parts of one set"):
        long_table.read(sources({"train.csv": texts["a.csv"], "test.csv": texts["b.csv"]}))
    with pytest.raises(FormatError, match="annotator=file"):
        long_table.read(source("a.csv", texts["a.csv"]))
    assert long_table.read(source("a.csv", texts["a.csv"]), annotator="file").annotators == ("a",)


def test_without_positions_rows_stand_in_the_order_of_each_annotator() -> None:
    rows = ["s1,Ada,a,B-PER", "s1,Ada,b,O", "s1,ran,a,O", "s2,Bob,a,B-PER", "s1,ran,b,O"]
    corpus = load("sentence,token,annotator,label\n" + "\n".join(rows) + "\n")
    assert [corpus.sequence(s) for s in range(2)] == [["Ada", "ran"], ["Bob"]]
    assert corpus.n_annotations == 5
    with pytest.raises(FormatError):
        load("sentence,token,annotator,label\ns1,Ada,a,O\ns1,Bob,b,O\n")


def test_sentences_without_tokens_are_what_the_rows_are_about() -> None:
    corpus = load("sentence,annotator,label\nso it is,a,x\nso it is,b,y\n")
    assert (corpus.n_tokens, corpus.n_annotations) == (1, 2)


def test_blanks_behind_the_delimiters() -> None:
    corpus = load("task, worker, label\nt1, ann, not so\nt1, ben, so\n")
    assert corpus.annotators == ("ann", "ben")
    assert corpus.labels == ("not so", "so")


def test_the_columns_of_snow_et_al() -> None:
    header = b"!amt_annotation_ids\t!amt_worker_ids\torig_id\tresponse\tgold\n"
    data = header + b"1\tA1\t25\t1\t1\n2\tA2\t25\t0\t1\n3\tA1\t26\t0\t0\n"
    corpus = long_table.read(source("rte.tsv", data))
    assert long_table.sniff(source("rte.tsv", data)) > 0.3
    assert (corpus.annotators, list(corpus.golds), corpus.n_sequences) == (("A1", "A2"), ["gold"], 2)


def test_a_column_for_each_label_is_said_to_be_one() -> None:
    data = b"text,rater_id,joy,fear,anger\nso nice,1,1,0,0\nso nice,2,0,0,1\nso bad,1,0,1,0\n"
    with pytest.raises(FormatError, match=r"the name of the one that is 1 into one column"):
        long_table.read(source("x.csv", data))


@pytest.mark.parametrize("rows", ["long", "columns"])
def test_sentences_that_are_counted_anew_in_each_document(tmp_path: Path, rows: str) -> None:
    path = tmp_path / "x.csv"
    cells = [(d, s, f"w{d}{s}{k}") for d in "ab" for s in "12" for k in "01"]
    if rows == "long":
        lines = ["doc_id,sent_id,token,annotator,label"]
        lines += [f"{d},{s},{word},{who},O" for who in ("ada", "Ada ") for d, s, word in cells]
    else:
        lines = ["doc_id,sent_id,token,ada,ben", *(f"{d},{s},{word},O,B-X" for d, s, word in cells)]
    path.write_text("\n".join(lines) + "\n")
    corpus = read(path)
    assert list(corpus.sequence_ids) == ["a/1", "a/2", "b/1", "b/2"]
    assert [corpus.sequence(s) for s in range(2)] == [["wa10", "wa11"], ["wa20", "wa21"]]
    assert any("only in case, spaces or a stop" in note for note in corpus.load_report.notes) == (rows == "long")


def test_an_annotator_called_nan_is_none() -> None:
    data = b"sequence,position,annotator,label\ns,0,ada,X\ns,0,nan,Y\n"
    with pytest.raises(FormatError, match="a label without an annotator"):
        long_table.read(source("x.csv", data))


@pytest.mark.parametrize(
    ("answers", "gold"),
    [
        ("crowd_labels.csv: worker,task,label", "gt.csv: task,label"),
        ("answer.csv: worker,question,answer", "truth.csv: question,truth"),
        ("answers.csv: worker,task,label", "a_gold.csv: label,task"),
    ],
)
def test_golds_in_a_file_of_their_own(tmp_path: Path, answers: str, gold: str) -> None:
    """crowd-kit's data sets, and those of Zheng et al.: the columns differ, and the folder was refused."""
    name, head = answers.split(": ")
    rows = "".join(f"w{w},t{t},{'ab'[t * w % 2]}\n" for t in range(3) for w in range(3))
    (tmp_path / name).write_text(f"{head}\n{rows}")
    name, head = gold.split(": ")
    said = [f"{'ab'[t % 2]},t{t}" if head.startswith("label") else f"t{t},{'ab'[t % 2]}" for t in range(3)]
    (tmp_path / name).write_text(head + "\n" + "\n".join(said) + "\n")
    corpus = read(tmp_path)
    assert corpus.annotators == ("w0", "w1", "w2")
    assert dict(zip(corpus.sequence_ids, corpus.label_names(corpus.golds["gold"]))) == {
        "t0": ["a"],
        "t1": ["b"],
        "t2": ["a"],
    }
    (tmp_path / name).rename(tmp_path / "more.csv")
    with pytest.raises(FormatError):
        read(tmp_path)


QUESTIONS = "worker,item,question,answer,timestamp\n" + "".join(
    f"{w},{k},{q},{a},{t}\n" for k in range(3) for w in "ab" for q, a, t in (("mood", "glad", 1), ("toxic", "no", 2))
)


def test_rows_about_several_questions_are_asked_about() -> None:
    """The last by time used to win: all answers to the first question were superseded."""
    for text in (QUESTIONS, QUESTIONS.replace(",timestamp", ",x")):
        with pytest.raises(FormatError, match=r"each time with another question.*Keep the rows of one question"):
            load(text)
    one = "\n".join(line for line in QUESTIONS.splitlines() if "toxic" not in line)
    assert load(one + "\na,0,toxic,sad,2\n").load_report.counts["superseded"] == 1
    again = "".join(f"a,{k},hit {k}-{t},{'yn'[t]},{t}\n" for k in range(20) for t in (0, 1))
    assert load("worker,item,hit,answer,timestamp\n" + again).load_report.counts["superseded"] == 20  # no question


def test_rows_of_marked_tokens_alone_are_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(
        "sentence_id,token_id,token,annotator,tag\n"
        + "".join(f"1,{k},w{k},{w},B-PER\n" for k in (0, 3, 5) for w in "ab")
    )
    with pytest.raises(FormatError, match="no token is O, and 3 cells are empty, or rows left out"):
        read(path)


def test_minus_one_and_a_question_mark_are_asked_about() -> None:
    for sign, other in (("-1", "1"), ("?", "good")):
        text = f"task,worker,label\na,w,{sign}\na,v,{other}\nb,w,{other}\n"
        with pytest.raises(FormatError, match="it may be an answer, or say that there is none"):
            load(text)
        assert load(text, missing=sign).n_annotations == 2
    assert load("task,worker,label\na,w,-1\na,v,-2\nb,w,2\n").n_annotations == 3  # a scale


def test_rows_that_do_not_count_are_no_votes(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(
        "text,rater,label,status\nso so,ann,good,accepted\nso so,ben,bad,rejected\nwell,ann,bad,accepted\n"
        "well,ben,bad,accepted\n"
    )
    corpus = lasca.read(tmp_path / "x.csv")
    assert corpus.n_annotations == 3
    assert corpus.load_report.counts["annotations that do not count (rejected)"] == 1


def test_a_column_that_says_which_labels_are_golds_is_asked_about(tmp_path: Path) -> None:
    rows = "".join(f"text {k},{who},good,{who == 'ann'}\n" for k in range(3) for who in ("ann", "ben"))
    (tmp_path / "x.csv").write_text("text,annotator,label,is_gold\n" + rows)
    with pytest.raises(FormatError, match="is_gold says which labels are golds"):
        lasca.read(tmp_path / "x.csv")


def test_the_last_of_two_labels_needs_times_in_order(tmp_path: Path) -> None:
    rows = "text,annotator,label,timestamp\nit is,ann,new,{}\nit is,ann,old,{}\nso so,ann,old,{}\nit is,ben,old,{}\n"
    written = {
        "Tue Mar 12 10:20:30 PDT 2024": "Wed Feb 14 10:20:30 PDT 2024",
        "2024-03-01 09:00": "2024-02-01 10:00",
        "1710000000": "900000000",
    }
    for last, first in written.items():
        (tmp_path / "x.csv").write_text(rows.format(last, first, first, first))
        assert lasca.read(tmp_path / "x.csv").labels == ("new", "old")
    (tmp_path / "x.csv").write_text(rows.format("1/12/2024 10:00", "12/1/2023 10:00", "1/1/2023 9:00", "1/1/2023 9:00"))
    with pytest.raises(FormatError, match=r"which was last cannot be told: 1/12/2024 10:00 has its day first"):
        lasca.read(tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wide.csv", "text,ann1,ann2,ann3\nit is,1,1.0,1\nso so,0,,0\nwell now,1,1.0,0\n"),
        ("long.csv", "text,annotator,label\nit is,ann,1\nit is,ben,1.0\nwell now,ann,0\nwell now,ben,1.0\n"),
        ("x.csv", "sentence_id,token,ann1,ann2\n1,it,0,0.0\n1,is,1,1.0\n2,so,1,\n"),
    ],
)
def test_numbers_that_pandas_wrote_beside_empty_cells_are_the_same(tmp_path: Path, name: str, text: str) -> None:
    """1 and 1.0 were two labels, on which nobody agreed, or a column with 1.0 was no annotator's."""
    (tmp_path / name).write_text(text)
    corpus = lasca.read(tmp_path / name)
    assert corpus.labels == ("0", "1")
    assert corpus.n_annotators == (3 if name == "wide.csv" else 2)
    assert corpus.load_report.counts["labels 1.0 read as 1"] == 2


def test_a_column_by_which_nothing_counts_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("text,rater,label,status\nso,a,good,pending\nso,b,bad,pending\nup,a,bad,pending\n")
    with pytest.raises(FormatError, match="'status' says of every label that it does not count"):
        lasca.read(tmp_path / "x.csv")

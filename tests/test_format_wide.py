"""Wide tables: which columns are people, which are not, and what is asked about."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, LascaError, ParameterError
from lasca.formats import READERS, mace_csv, wide_table
from lasca.formats.choose import choose
from mutations import source, sources

SAMPLE = (wide_table.__doc__ or "").split("```")[1].strip() + "\n"
TEXTS = ["I like it a lot", "It is a book", "what a bad day", "go on and on"]
ANN = ["good", "neutral", "bad", "bad"]
BEN = ["good", "", "bad", "neutral"]


def made(delimiter: str = ",", **columns: list[str]) -> bytes:
    rows = [list(columns), *zip(*columns.values())]
    return "".join(delimiter.join(cells) + "\n" for cells in rows).encode()


def load(data: bytes, name: str = "x.csv", **options: object) -> CrowdCorpus:
    return wide_table.read(source(name, data), **options)  # type: ignore[arg-type]


def votes(corpus: CrowdCorpus) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for row in corpus.to_table().to_pylist():
        found.setdefault(row["annotator"], {})[row["token"]] = row["label"]
    return found


EXPECTED = {"ann": dict(zip(TEXTS, ANN)), "ben": {t: v for t, v in zip(TEXTS, BEN) if v}}


def test_the_sample_of_the_docstring() -> None:
    corpus = load(SAMPLE.encode())
    assert choose(READERS, source("x.csv", SAMPLE.encode()), "x.csv") == "wide"
    assert list(corpus.annotators) == ["annotator_1", "annotator_2"]
    assert list(corpus.golds) == ["majority"]
    assert list(corpus.sequence_ids) == ["1", "2"]
    assert corpus.n_annotations == 3


def test_rows_without_ids_are_numbered_by_file_only_if_there_are_several() -> None:
    data = made(tweet=TEXTS, ann=ANN, ben=BEN)
    assert list(load(data).sequence_ids) == ["0", "1", "2", "3"]
    both = wide_table.read(sources({"x.csv": data, "y.csv": made(tweet=TEXTS[::-1], ann=ANN, ben=BEN)}))
    assert list(both.sequence_ids[3:5]) == ["x/3", "y/0"]


@pytest.mark.parametrize("order", list(permutations(range(4)))[::5])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_columns_in_any_order_under_any_delimiter(order: tuple[int, ...], delimiter: str) -> None:
    columns = {"item_id": ["7", "8", "9", "10"], "tweet": TEXTS, "ann": ANN, "ben": BEN}
    data = made(delimiter, **{name: columns[name] for name in (list(columns)[k] for k in order)})
    name = "x.tsv" if delimiter == "\t" else "x.csv"
    assert choose(READERS, source(name, data), name) == "wide"
    corpus = load(data, name)
    assert votes(corpus) == EXPECTED
    assert list(corpus.sequence_ids) == ["7", "8", "9", "10"]


@pytest.mark.parametrize(("gold", "model"), [("gold_label", "predicted"), ("Consensus", "gpt-4"), ("label", "model b")])
def test_what_was_decided_or_predicted_is_nobodys_vote(gold: str, model: str) -> None:
    corpus = load(made(text=TEXTS, ann=ANN, ben=BEN, source=["web", "web", "print", ""], **{gold: ANN, model: BEN}))
    assert list(corpus.golds) == [gold]
    assert dict(zip(corpus.annotators, corpus.kinds)) == {"ann": "person", "ben": "person", model: "model"}
    assert list(corpus.metadata["source"]) == ["web", "web", "print", ""]


@pytest.mark.parametrize("said", [["0", "1", "1", "0"], ["yes", "no", "no", "yes"], ["3", "0", "1", "2"]])
def test_questions_and_counts_are_asked_about(said: list[str]) -> None:
    other = [said[1], said[0], said[2], said[3]]
    data = made(text=TEXTS, rude=said, threat=other)
    assert choose(READERS, source("x.csv", data), "x.csv") == "wide"
    with pytest.raises(FormatError, match="-r annotators=rude,threat"):
        load(data)
    assert list(load(data, annotators="rude,threat").annotators) == ["rude", "threat"]
    for names in (("rater 1", "rater 2"), ("ann_ada", "ann_ben"), ("Annotator A", "Annotator B")):
        assert list(load(made(**{"text": TEXTS, names[0]: said, names[1]: other})).annotators) == list(names)


def test_several_groups_are_asked_about() -> None:
    data = made(text=TEXTS, ann_tone=ANN, ben_tone=BEN, ann_topic=["x", "y", "x", "y"], ben_topic=["y", "y", "x", "x"])
    with pytest.raises(FormatError, match="ann_tone, ben_tone; ann_topic, ben_topic"):
        load(data)
    corpus = load(data, annotators=["ann_topic", "ben_topic"])
    assert set(corpus.labels) == {"x", "y"}
    assert list(corpus.metadata["ann_tone"]) == ANN


def test_ids_alone_will_do_where_columns_are_called_as_people() -> None:
    data = made(id=["q1", "q2", "q3", "q4"], rater1=["3", "4", "3", "5"], rater2=["4", "4", "3", "3"])
    assert choose(READERS, source("x.csv", data), "x.csv") == "wide"
    assert list(load(data).tokens) == ["q1", "q2", "q3", "q4"]


def test_minus_one_is_asked_about_and_may_be_missing() -> None:
    data = made(text=TEXTS, lf_a=["1", "-1", "0", "0"], lf_b=["1", "0", "-1", "0"])
    with pytest.raises(FormatError, match=r"-1 stands where .*missing=-1"):
        load(data, annotators="lf_a,lf_b")
    assert load(data, annotators="lf_a,lf_b", missing="").n_annotations == 8
    assert load(data, annotators="lf_a,lf_b", missing="-1").n_annotations == 6


def test_what_is_no_wide_table_of_texts() -> None:
    for data in (
        b"token,ann,ben\nAda,B-PER,O\nran,O,O\n",
        b"text,annotator,label\nI like it,ann,good\nI like it,ben,bad\n",
        b"data,q,r\nso nice,good,bad\nfine,good,good\nso bad,bad,bad\nok,good,good\n",  # as many words as texts
        b"id,text,tone,topic\n1,I like it,good,food\n2,what a day,bad,time\n",
        SAMPLE.replace("\n", "\n\n").encode()[:0],
    ):
        assert wide_table.sniff(source("x.csv", data)) == 0
    assert mace_csv.sniff(source("x.csv", b"token,ann,ben\nAda,O,O\nran,O,O\n")) > 0.5


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (made(text=TEXTS, a=ANN), {}, "no two columns"),
        (made(text=TEXTS, ann=ANN, gold=BEN), {}, "no two columns"),
        (made(text=TEXTS, body=TEXTS[::-1], ann=ANN, ben=BEN), {"text": "tone"}, "a column of x.csv"),
        (made(first=TEXTS, second=TEXTS[::-1], ann=ANN, ben=BEN), {}, "-r text=first"),
        (b"text,ann,ben\nI like it,good\n", {}, "2 cells in a table of 3 columns"),
    ],
)
def test_messages(data: bytes, options: dict[str, str], message: str) -> None:
    with pytest.raises((FormatError, ParameterError), match=message):
        load(data, **options)


def test_several_files_add_texts() -> None:
    files = sources(
        {"a.csv": made(text=TEXTS, ann=ANN, ben=BEN), "b.csv": made(text=TEXTS[:2], ann=ANN[:2], cy=ANN[:2])}
    )
    corpus = wide_table.read(files)
    assert list(corpus.annotators) == ["ann", "ben", "cy"]
    assert corpus.n_sequences == 6
    with pytest.raises(LascaError):
        wide_table.read(source("x.csv", b""))


def test_results_of_platforms_stay_theirs() -> None:
    header = "_unit_id,_worker_id,_created_at,rater_1,rater_2,text\n"
    data = (header + "1,7,8/9/2013 20:28:31,yes,no,so it is\n2,7,8/9/2013 20:28:31,no,no,oh no no\n").encode()
    assert choose(READERS, source("x.csv", data), "x.csv") == "mturk-results"


def test_a_table_about_texts_is_no_mace_file() -> None:
    """Counts of votes, questions, predictions beside a text that is one word: each was read as annotators' tokens."""
    for data in (
        made(text=["a", "b", "c"], good=["3", "0", "1"], bad=["0", "4", "1"]),
        made(text=["a", "b", "c"], anger=["1", "0", "0"], joy=["0", "0", "1"]),
        made(text=["a", "b", "c"], y_true=["x", "y", "y"], y_pred=["x", "x", "y"]),
    ):
        assert mace_csv.sniff(source("x.csv", data)) == 0
        assert choose(READERS, source("x.csv", data), "x.csv") == "wide"
        with pytest.raises(FormatError, match="annotators=…"):
            load(data)
    corpus = load(made(text=["a", "a", "b"], ann1=["x", "y", "y"], ann2=["x", "x", "y"]))
    assert corpus.offsets.tolist() == [0, 1, 2, 3]


def test_only_who_is_called_so_is_an_annotator_beside_others_who_are() -> None:
    corpus = load(made(text=TEXTS, pseudo_label=ANN, annotator_1=ANN, annotator_2=BEN))
    assert list(corpus.annotators) == ["annotator_1", "annotator_2"]
    assert any("pseudo_label" in note for note in corpus.load_report.notes)
    numbers = load(
        made(text=TEXTS, rater1=["1", "2", "3", "1"], rater2=["1", "2", "2", "1"], mean=["1", "2", "3", "1"])
    )
    assert list(numbers.annotators) == ["rater1", "rater2"]


def test_remarks_are_not_the_texts_and_no_row_is_lost() -> None:
    notes = ["", "it is not so clear", "", ""]
    data = made(question=["q1", "q1", "q2", "q2"], system=list("abab"), annotator_1=ANN, annotator_2=BEN, notes=notes)
    assert choose(READERS, source("x.csv", data), "x.csv") == "wide"
    corpus = load(data)
    assert corpus.n_sequences == 4
    assert list(corpus.metadata["notes"]) == notes
    corpus = load(made(text=[*TEXTS * 2, ""], ann=[*ANN, *ANN, "good"], ben=[*BEN, *BEN, "bad"]))
    assert corpus.n_sequences == 9
    assert corpus.load_report.counts["rows without a text, called by their ids"] == 1


@pytest.mark.parametrize("sign", ["NA", "N/A", "#N/A", "NULL"])
def test_what_may_be_missing_or_an_answer_is_asked_about(sign: str) -> None:
    data = made(text=TEXTS, ann=ANN, ben=[cell if cell else sign for cell in BEN])
    with pytest.raises(FormatError, match=f"-r '?missing={sign}"):
        load(data)
    assert votes(load(data, missing=sign)) == EXPECTED
    assert sign in load(data, missing="").labels


def test_signs_for_none_in_golds_and_several_labels_in_a_cell_are_counted() -> None:
    corpus = load(made(text=TEXTS, label1=ANN, label2=BEN, gold_label=["-", *ANN[1:]]))
    assert corpus.load_report.counts["golds that are a sign for none"] == 1
    assert "-" not in corpus.labels
    corpus = load(made(text=TEXTS, ann=["x; y", "x", "y", "y"], ben=["x", "x", "y", "y"]))
    assert corpus.load_report.counts["several labels in a cell, read as one"] == 1


def test_two_columns_of_texts_are_asked_about() -> None:
    data = made(query=TEXTS, response=TEXTS[::-1], annotator_1=ANN, annotator_2=BEN)
    assert choose(READERS, source("x.csv", data), "x.csv") == "wide"
    with pytest.raises(FormatError, match="-r text=query"):
        load(data)


def test_the_line_for_excel_and_the_index_of_a_frame() -> None:
    data = b"sep=;\r\nid;text;Annotator A;Annotator B\r\n1;so it is;x;x\r\n2;oh no no;y;x\r\n"
    assert choose(READERS, source("x.csv", data), "x.csv") == "wide"
    assert list(load(data).sequence_ids) == ["1", "2"]


@pytest.mark.parametrize("names", [("food", "service"), ("label_before", "label_after"), ("Anna", "Cleo")])
def test_columns_that_are_not_called_as_people_are_asked_about(names: tuple[str, str]) -> None:
    """Aspects have the labels of annotators: only names tell, and where they do not, a person must."""
    data = made(**{"text": TEXTS, names[0]: ANN, names[1]: BEN})
    assert choose(READERS, source("x.csv", data), "x.csv") == "wide"
    with pytest.raises(FormatError, match=f"-r annotators={names[0]},{names[1]}"):
        load(data)
    assert list(load(data, annotators=",".join(names)).annotators) == sorted(names)


@pytest.mark.parametrize("names", [("prompt_1", "prompt_2"), ("label a", "label b"), ("ann", "cleo")])
def test_numbered_columns_are_read(names: tuple[str, str]) -> None:
    assert list(load(made(**{"text": TEXTS, names[0]: ANN, names[1]: BEN})).annotators) == list(names)


@pytest.mark.parametrize(
    "names", ["rater1_toxic,rater1_rude,rater2_toxic,rater2_rude", "toxic r1,rude r1,toxic r2,rude r2"]
)
def test_several_questions_to_each_person_are_asked_about(names: str) -> None:
    names = names.replace(" r", " rater ")
    data = f"text,{names}\nso nice a day,0,0,0,1\nso bad a day,1,1,1,0\n".encode()
    with pytest.raises(FormatError, match="several groups of columns"):
        wide_table.read(source("x.csv", data))
    first = ",".join(name for name in names.split(",") if "toxic" in name)
    assert len(wide_table.read(source("x.csv", data), annotators=first).annotators) == 2


def test_columns_that_name_people_beside_columns_of_another_name_are_asked_about() -> None:
    data = b"text,rater_a,tone_a,rater_b,tone_b\nso nice a day,ada,good,ben,bad\nso bad a day,cal,bad,ada,bad\n"
    with pytest.raises(FormatError, match="annotators=tone_a,tone_b"):
        wide_table.read(source("x.csv", data))


@pytest.mark.parametrize("name", ["label_maj", "annot_maj", "mv_label", "resolved"])
def test_a_column_of_what_was_decided_does_not_vote(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.csv"
    said = "".join(f"{k},so it is {k},bad,good,{'good' if k % 2 else 'bad'},good\n" for k in range(8))
    path.write_text(f"id,text,annotator_1,annotator_2,annotator_3,{name}\n{said}")
    corpus = lasca.read(path)
    assert (len(corpus.annotators), list(corpus.golds)) == (3, [name])


@pytest.mark.parametrize("said", ["label_{}", "annotation{}", "Score{}"])
@pytest.mark.parametrize("who", ["worker_{}", "annotator{}", "TurkId{}"])
def test_columns_of_labels_beside_who_gave_them(said: str, who: str) -> None:
    """Stanford's politeness corpus: Score1 to Score5, TurkId1 to TurkId5; the places were annotators, or the names."""
    labels = {said.format(k): column for k, column in enumerate((["1", "2", "2", "1"], ["1", "1", "2", "2"]), 1)}
    names = {who.format(k): column for k, column in enumerate((["A", "B", "A", "C"], ["B", "C", "C", "A"]), 1)}
    corpus = load(made(text=TEXTS, **labels, **names))
    assert votes(corpus) == {
        "A": {TEXTS[0]: "1", TEXTS[2]: "2", TEXTS[3]: "2"},
        "B": {TEXTS[0]: "1", TEXTS[1]: "2"},
        "C": {TEXTS[1]: "1", TEXTS[2]: "2", TEXTS[3]: "1"},
    }
    assert "name who gave the labels" in corpus.load_report.notes[0]
    names[who.format(1)][0] = ""
    corpus = load(made(text=TEXTS, **labels, **names))
    assert corpus.n_annotations == 7
    assert corpus.load_report.counts["labels of nobody, left out"] == 1


def test_how_sure_each_was_is_no_annotator() -> None:
    """Beside rater1 there stood rater1_conf, whose numbers were among the labels, too: four annotators."""
    columns = {"rater1": ["1", "2", "2", "3"], "rater2": ["2", "3", "1", "1"]}
    sure = {f"{name}_conf": ["3", "1", "2", "1"] for name in columns}
    with pytest.raises(FormatError, match=r"rater1, rater2; rater1_conf, rater2_conf.*-r annotators=rater1,rater2"):
        load(made(text=TEXTS, **columns, **sure))
    assert list(load(made(text=TEXTS, **columns, **sure), annotators="rater1,rater2").annotators) == [*columns]


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        ("text,Annotator 1,,Annotator 2,", [["text", "mood", "topic", "mood", "topic"]], "column 3 has no name"),
        ("id,text,label,label", [], "column 4 has the name of another, 'label'"),
        ("id,text,ann1,ann2", [["", "Total good", "12", "11"]], "it may be a total"),
    ],
)
def test_lines_around_the_table_are_asked_about(header: str, rows: list[list[str]], message: str) -> None:
    wide = header.startswith("text")
    body = [[f"it is {k}", *["good"] * 4] if wide else [str(k), f"it is {k}", "good", "bad"] for k in range(30)]
    lines = [*rows, *body] if wide else [*body, *rows]
    data = "\n".join([header, *map(",".join, lines)]) + "\n"
    with pytest.raises(FormatError, match=message):
        load(data.encode(), annotators=() if wide else header.split(",")[2:])


def test_columns_of_one_name_that_pandas_numbered_are_alike() -> None:
    corpus = load(made(text=TEXTS, label=ANN, **{"label.1": BEN, "label.2": ANN}), annotators="label,label.1,label.2")
    assert corpus.annotators == ("label", "label.1", "label.2")
    assert not corpus.golds
    with pytest.raises(FormatError, match=r"annotators=label,label\.1,label\.2"):
        load(made(text=TEXTS, label=ANN, **{"label.1": BEN, "label.2": ANN}))


@pytest.mark.parametrize("names", ["annotator_{}_id annotator_{}_label", "coder_id_{} code_{}", "worker{} vote{}"])
def test_who_gave_each_label_stands_beside_it_whatever_it_is_called(names: str) -> None:
    who, said = names.split()
    columns = {who.format(1): ["a", "b"] * 2, said.format(1): ANN, who.format(2): ["b", "c"] * 2, said.format(2): ANN}
    assert load(made(text=TEXTS, **columns)).annotators == ("a", "b", "c")

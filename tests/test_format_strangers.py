"""Files of strangers: shapes of real corpora, tools and scripts that were read wrongly, or refused without a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError
from lasca.formats.stream import read_pieces

TEXT, OTHER = "Ada visited Rome", "Bo left Paris"
PER = {"start": 0, "end": 3, "label": "PER"}


def load(folder: Path, files: dict[str, str], **options: Any) -> CrowdCorpus:
    """Read files, or the only one."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8", newline="")
    return lasca.read(folder / next(iter(files)) if len(files) == 1 else folder, **options)


def lines(*rows: object) -> str:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def votes(corpus: CrowdCorpus) -> dict[str, list[str]]:
    """Return what each annotator said, token by token, and the golds in the same way; ? is missing."""
    said = {name: ["?"] * corpus.n_tokens for name in corpus.annotators}
    given = zip(corpus.annotation_annotator, corpus.annotation_token, corpus.annotation_label)
    for who, token, label in given:
        said[corpus.annotators[who]][token] = corpus.labels[label]
    golds = {n: ["?" if code < 0 else corpus.labels[code] for code in gold] for n, gold in corpus.golds.items()}
    return said | golds


def test_annotations_under_names_that_were_skipped_do_not_count(tmp_path: Path) -> None:
    said = {"ann": {"entities": [PER], "status": "done"}, "ben": {"entities": [], "status": "skipped"}}
    corpus = load(tmp_path, {"x.jsonl": lines({"id": 1, "text": TEXT, "labels": said})})
    assert votes(corpus) == {"ann": ["B-PER", "O", "O"]}
    assert corpus.load_report.counts["annotations that do not count (skipped)"] == 1


@pytest.mark.parametrize(
    "text",
    [
        "ii,jj,y\n1,1,1\n1,2,1\n1,3,2\n2,1,3\n2,2,3\n2,3,3\n3,1,1\n3,2,2\n3,3,2\n",  # the R package rater
        "1,1,0\n1,2,1\n2,1,1\n2,2,1\n3,1,0\n3,2,0\n",
        "a,0,i1\nb,1,i1\na,1,i2\nb,1,i2\na,0,i3\nb,0,i3\n",
    ],
)
def test_rows_of_an_item_and_who_labelled_it_are_no_three_annotators(tmp_path: Path, text: str) -> None:
    with pytest.raises(FormatError, match=r"never stand together twice|cannot be told"):
        load(tmp_path, {"x.csv": text})
    with pytest.raises(FormatError, match="never stand together twice"):
        load(tmp_path, {"x.csv": text}, format="mace")


@pytest.mark.parametrize("name", ["merged", "reconciled", "harmonised"])
def test_what_was_merged_beside_people_is_a_gold(tmp_path: Path, name: str) -> None:
    files = {f"{who}.jsonl": lines({"id": 1, "text": TEXT, "label": [[0, 3, "PER"]]}) for who in ("ann", "ben", name)}
    corpus = load(tmp_path, files)
    assert (corpus.annotators, list(corpus.golds)) == (("ann", "ben"), [name])


@pytest.mark.parametrize("votes", [2, {"ann": True, "ben": False}])
@pytest.mark.parametrize("key", ["spans", "entities", "label"])
def test_spans_that_count_who_marked_them_are_asked_about(tmp_path: Path, key: str, votes: object) -> None:
    with pytest.raises(FormatError, match=r"how many marked them|cannot be told"):
        load(tmp_path, {"x.jsonl": lines({"id": 1, "text": TEXT, key: [{**PER, "votes": votes}]})})


def test_a_second_column_of_labels_is_no_metadata(tmp_path: Path) -> None:
    text = "text,label,annotator_id,label_2,annotator_id_2\nyou fool,rude,a1,kind,a2\nwell,kind,a1,kind,a3\n"
    with pytest.raises(FormatError, match="label_2, annotator_id_2"):
        load(tmp_path, {"x.csv": text})


@pytest.mark.parametrize("end", ["\t", "\t\t"])
def test_a_tab_behind_every_line_is_no_annotator(tmp_path: Path, end: str) -> None:
    rows = [f"{row}{end}\n" if row else "\n" for row in ("Ada\tB-PER", "ran\tO", "", "Rome\tB-LOC")]
    assert votes(load(tmp_path, {"x.tsv": "".join(rows)})) == {"gold": ["B-PER", "O", "B-LOC"]}


def test_entities_that_are_words_are_no_labels_of_the_text(tmp_path: Path) -> None:
    rows = ({"text": TEXT, "annotator": who, "entities": ["Ada (PER)"]} for who in ("ann", "ben"))
    with pytest.raises(FormatError, match="words, and not spans"):
        load(tmp_path, {"x.jsonl": lines(*rows)})


SENTENCES = (("1", "1", "Ada"), ("1", "1", "ran"), ("1", "2", "so"), ("2", "1", "Rome"), ("2", "1", "won"))


@pytest.mark.parametrize("over", ["file", "filename", "chapter", "paragraph"])
def test_sentences_that_are_counted_anew_in_each_part(tmp_path: Path, over: str) -> None:
    wide = "".join(f"{k},{s},{word},O,O\n" for k, s, word in SENTENCES)
    corpus = load(tmp_path, {"wide.csv": f"{over},sent_id,word,ann1,ann2\n{wide}"})
    assert corpus.sequence_ids == ("1/1", "1/2", "2/1")
    long = "".join(f"{k},{s},{word},{who},O\n" for who in ("ann", "ben") for k, s, word in SENTENCES)
    corpus = load(tmp_path, {"long.csv": f"{over},sent_id,tok,annotator,tag\n{long}"})
    assert corpus.sequence_ids == ("1/1", "1/2", "2/1")
    assert corpus.tokens == ("Ada", "ran", "so", "Rome", "won")


def test_a_sentence_that_begins_again_is_asked_about(tmp_path: Path) -> None:
    text = "sentence_id,token,ann1,ann2\n" + "".join(f"{s},{word},O,O\n" for _, s, word in SENTENCES)
    with pytest.raises(FormatError, match=r"x\.csv:5: the sequence 1 begins again"):
        load(tmp_path, {"x.csv": text})


@pytest.mark.parametrize("kind", ["file", "table", "records"])
def test_one_called_final_beside_people_is_a_gold_in_all_readers(tmp_path: Path, kind: str) -> None:
    names, files = ("ann", "ben", "final"), {}
    if kind == "file":
        files = {f"{name}/d1.txt": "Ada B-PER\nran O\n\nso O\n" for name in names}
    elif kind == "table":
        files = {"x.csv": "text,annotator,label\n" + "".join(f"{TEXT},{n},good\n{OTHER},{n},bad\n" for n in names)}
    else:
        files = {"x.jsonl": lines(*({"text": TEXT, "annotator": name, "spans": [PER]} for name in names))}
    corpus = load(tmp_path, files)
    assert (corpus.annotators, list(corpus.golds)) == (names[:2], ["final"])


@pytest.mark.parametrize("name", ["Goldberg", "mary.gold@x.org", "MV"])
def test_a_person_called_goldberg_is_no_gold(tmp_path: Path, name: str) -> None:
    rows = ({"id": 1, "text": TEXT, "annotator": who, "spans": [PER]} for who in ("ann", "ben", name))
    assert load(tmp_path, {"x.jsonl": lines(*rows)}).annotators == tuple(sorted(("ann", "ben", name)))


@pytest.mark.parametrize(
    "text",
    [
        "# token\tann1\tann2\nAda\tB-PER\tO\nran\tO\tO\n\nRome\tB-LOC\tB-LOC\n",
        "# columns: token ann1 ann2\nAda B-PER O\nran O O\n\nRome B-LOC B-LOC\n",
        "# global.columns = ID FORM UPOS ann1 ann2\n1\tAda\tX\tB-PER\tO\n2\tran\tY\tO\tO\n\n1\tRome\tX\tB-LOC\tB-LOC\n",
    ],
)
def test_a_comment_may_name_the_columns(tmp_path: Path, text: str) -> None:
    corpus = load(tmp_path, {"x.tsv": text})
    assert votes(corpus) == {"ann1": ["B-PER", "O", "B-LOC"], "ann2": ["O", "O", "B-LOC"]}


def test_remarks_above_the_header_of_a_table(tmp_path: Path) -> None:
    corpus = load(tmp_path, {"x.csv": "# of 2020\n# by us\ntext,annotator,label\nit is,ann,good\nit is,ben,bad\n"})
    assert corpus.annotators == ("ann", "ben")
    assert any("begin with # were left out" in note for note in corpus.load_report.notes)


@pytest.mark.parametrize(
    "span",
    [
        {"offset": [0, 3], "label": "PER"},
        {"span": [0, 3], "type": "PER"},
        {"pos": [0, 3], "type": "PER", "text": "Ada"},
        ["PER", 0, 3],
    ],
)
def test_places_in_a_list_and_labels_before_them(tmp_path: Path, span: object) -> None:
    rows = ({"id": 1, "text": TEXT, "annotator": who, "entities": [span]} for who in ("ann", "ben"))
    assert votes(load(tmp_path, {"x.jsonl": lines(*rows)})) == {who: ["B-PER", "O", "O"] for who in ("ann", "ben")}
    if isinstance(span, list):
        corpus = load(tmp_path, {"y.jsonl": lines({"id": 1, "text": TEXT, "label": [span]})})
        assert votes(corpus) == {"y": ["B-PER", "O", "O"]}


def test_entities_of_gate_under_their_types(tmp_path: Path) -> None:
    row = {"text": TEXT, "entities": {"PER": [{"indices": [0, 3], "gender": "f"}], "LOC": [{"indices": [12, 16]}]}}
    assert votes(load(tmp_path, {"x.json": json.dumps(row)})) == {"x": ["B-PER", "O", "B-LOC"]}


def test_lists_side_by_side_as_datasets_turns_them(tmp_path: Path) -> None:
    """HateXplain, as the Hugging Face hub has it."""
    said = {"label": [0, 2], "annotator_id": [203, 204], "target": [["Hindu"], []]}
    corpus = load(tmp_path, {"x.jsonl": lines({"id": "a", "annotators": said, "post_tokens": ["so", "it", "is"]})})
    assert votes(corpus) == {"203": ["0"], "204": ["2"]}
    assert corpus.load_report.counts["other values of annotations (target)"] == 1


def test_true_and_false_are_labels(tmp_path: Path) -> None:
    said = [{"annotator": "ann", "label": True}, {"annotator": "ben", "label": False}]
    corpus = load(tmp_path, {"x.jsonl": lines({"id": 1, "text": TEXT, "annotations": said})})
    assert votes(corpus) == {"ann": ["true"], "ben": ["false"]}
    row = {"tokens": ["so", "it"], "rater_1": [True, False], "rater_2": [False, False]}
    assert votes(load(tmp_path, {"y.jsonl": lines(row)})) == {"rater_1": ["true", "false"], "rater_2": ["false"] * 2}


SENTENCE, TAGS = "fly me to Rome now .", "O O O B-LOC O O"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.tsv", f"{SENTENCE}\t{TAGS}\n{SENTENCE}\t{TAGS}\n"),
        ("x.txt", f"{SENTENCE} ||| {TAGS}\n{SENTENCE} ||| {TAGS}\n"),
        ("x.json", json.dumps([list(zip(SENTENCE.split(), TAGS.split()))] * 2)),
    ],
)
def test_tags_behind_their_sentence(tmp_path: Path, name: str, text: str) -> None:
    corpus = load(tmp_path, {name: text})
    assert corpus.tokens == tuple(SENTENCE.split() * 2)
    assert votes(corpus) == {"gold": TAGS.split() * 2}


@pytest.mark.parametrize("sign", "|/_")
def test_parts_of_speech_behind_words(tmp_path: Path, sign: str) -> None:
    text = "The/DT cat/NN sat/VBD\nA/DT dog/NN ran/VBD\n".replace("/", sign)
    assert votes(load(tmp_path, {"x.txt": text})) == {"gold": ["DT", "NN", "VBD"] * 2}


def test_something_else_behind_a_sentence_is_not_dropped(tmp_path: Path) -> None:
    with pytest.raises(FormatError):
        load(tmp_path, {"x.tsv": f"{SENTENCE}\t{TAGS}\tflight\n{SENTENCE}\t{TAGS}\tflight\n"})


def test_tags_in_strings_of_json(tmp_path: Path) -> None:
    rows = ({"sentence": SENTENCE, "tags": TAGS, "annotator": who} for who in ("ann", "ben"))
    corpus = load(tmp_path, {"x.jsonl": lines(*rows)})
    assert votes(corpus) == {"ann": TAGS.split(), "ben": TAGS.split()}


def test_labels_beside_a_file_of_tokens(tmp_path: Path) -> None:
    """EBM-NLP: the words of a document in one file, and the labels of each annotator in one more."""
    files = {"documents/1.tokens": "Ada\nran\n.\n", "documents/1.text": "Ada ran.", "documents/2.tokens": "so\n"}
    said = {"1.A1": "1\n0\n0\n", "1.A2": "0\n0\n0\n", "2.A1": "0\n", "2.A3": "1\n", "1.AGGREGATED": "1\n0\n0\n"}
    corpus = load(tmp_path, {**files, **{f"annotations/train/{name}.ann": text for name, text in said.items()}})
    assert corpus.annotators == ("A1", "A2", "A3")
    assert votes(corpus)["A1"] == ["1", "0", "0", "0"]
    assert votes(corpus)["AGGREGATED"] == ["1", "0", "0", "?"]
    (tmp_path / "annotations" / "1.A1.ann").write_text("0\n0\n0\n")
    with pytest.raises(FormatError, match="these are several tasks"):
        lasca.read(tmp_path)


def test_ids_and_numbered_annotators_need_no_texts(tmp_path: Path) -> None:
    corpus = load(tmp_path, {"x.csv": "id,a1,a2,a3\n1,rude,rude,kind\n2,kind,kind,kind\n3,rude,kind,kind\n"})
    assert votes(corpus)["a1"] == ["rude", "kind", "rude"]


@pytest.mark.parametrize("text", ["", " \n\n", "[]", "{}\n"])
def test_an_empty_file_says_what_to_do(tmp_path: Path, text: str) -> None:
    with pytest.raises(FormatError, match="there is nothing in the file") as caught:
        load(tmp_path, {"x.json": text})
    assert caught.value.hint


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.nq", '<http://x/1> <http://x/label> "PER" <http://x/ann> .\n' * 3, "RDF"),
        ("x.ttl", "@prefix nif: <http://x#> .\n<http://x/1> a nif:Context .\n", "RDF"),
        ("x.jsonl", lines({"text": "so so", "label_counter": {"e": 76, "n": 20}}), "counts or shares"),
        ("x.jsonl", lines({"tokens": ["so", "so"], "soft": [{"A": 0.5, "O": 0.5}, {"O": 1}]}), "counts or shares"),
        ("x.csv", "id,span_start,span_end,kind\n1,0,3,PER\n1,5,9,LOC\n", "a row for each span, without the text"),
        ("x.py", "DATA = [('Ada ran', {'entities': [(0, 3, 'PER')]})]\n", "as Python prints it"),
        ("x.json", "[{'text': 'Ada ran', 'entities': [[0, 3, 'PER']]}]", "as Python prints it"),
        ("x.csv", "Timestamp,Email Address,so it is,well\n1,a@b.c,rude,kind\n2,c@d.e,kind,kind\n", "Google Forms"),
        ("x.json", json.dumps([{"tokens": ["a"], "entities": [], "relations": []}]), "by numbers of tokens"),
        ("x.csv", "classification_id,user_name,annotations,subject_data\n1,ann,[],{}\n2,ben,[],{}\n", "Zooniverse"),
    ],
)
def test_what_is_not_read_is_called_by_name(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        load(tmp_path, {name: text})


@pytest.mark.parametrize("joined", ["ann;ben", "ann, ben", "ben|cyd"])
def test_a_cell_that_names_two_annotators_is_no_third_one(tmp_path: Path, joined: str) -> None:
    text = f'text,annotator,label\nso it is,"{joined}",good\nwell now,ann,bad\nwell now,ben,good\n'
    with pytest.raises(FormatError, match="several annotators in one cell"):
        load(tmp_path, {"x.csv": text})


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("text,annotator,label", ["so it is,ann,good", "so it is,ben,bad"]),
        ("text,ann1,ann2", ["so it is,good,bad", "well now then,good,good"]),
        ("id,text,start,end,label,annotator", [f"1,{TEXT},0,3,PER,ann", f"1,{TEXT},0,3,PER,ben"]),
        ("HITId,WorkerId,Input.text,Answer.said", ['1,ann,Ada ran,"[{""x"": 1}]"', "1,ben,Ada ran,[]"]),
        ("ann1,ann2", ["O,B", "O,O"]),
    ],
)
def test_a_header_that_stands_again_is_no_row(tmp_path: Path, header: str, rows: list[str]) -> None:
    """Somebody put files behind one another: cat a.csv b.csv."""
    with pytest.raises(FormatError, match=r"x\.csv:4: the header stands here again"):
        load(tmp_path, {"x.csv": "\n".join([header, *rows, header, *rows]) + "\n"})


@pytest.mark.parametrize("end", ["csv", "tsv"])
def test_a_quote_does_not_swallow_rows(tmp_path: Path, end: str) -> None:
    rows = [
        "id,text,ann1,ann2",
        '1,"well my friend,rude,kind',
        "2,what is it now,kind,kind",
        '3,friend" she said,rude,rude',
    ]
    text = "\n".join([*rows, "4,so it is then,kind,kind"]) + "\n"
    with pytest.raises(FormatError, match=r"holds whole rows|texts of several words"):
        load(tmp_path, {f"x.{end}": text.replace(",", "\t" if end == "tsv" else ",")})
    spans = ["id,text,start,end,label,annotator", '1,"Ada ran home,1,4,PER,ann', '2,Cy saw" it,0,2,PER,ann']
    with pytest.raises(FormatError, match="holds whole rows"):
        load(tmp_path, {f"y.{end}": "\n".join(spans).replace(",", "\t" if end == "tsv" else ",")})


@pytest.mark.parametrize("who", [{"id": 7, "email": "a@b.c"}, {"id": 7, "username": "a@b.c"}])
def test_annotators_that_are_objects(tmp_path: Path, who: dict[str, Any]) -> None:
    corpus = load(tmp_path, {"x.jsonl": lines({"text": TEXT, "annotator": who, "spans": [PER]})})
    assert corpus.annotators == ("a@b.c",)
    said = [{"annotator": who, "spans": [PER]}, {"annotator": {"name": "ben"}, "spans": []}]
    assert load(tmp_path, {"y.jsonl": lines({"text": TEXT, "annotations": said})}).annotators == ("a@b.c", "ben")
    assert load(tmp_path, {"z.jsonl": lines({"text": TEXT, "user": who, "label": [[0, 3, "PER"]]})}).annotators == (
        "a@b.c",
    )


@pytest.mark.parametrize("spans", [[[0, 1, "PER"], [3, 4, "LOC"]], [[0, 0, "PER"], [3, 3, "LOC"]]])
def test_a_few_spans_that_count_words_are_asked_about(tmp_path: Path, spans: list[list[Any]]) -> None:
    text = "Ada Lovelace visited Rome today"
    with pytest.raises(FormatError, match=r"inside of a word|count tokens"):
        load(tmp_path, {"x.jsonl": lines({"id": 1, "text": text, "label": spans})})


def test_a_system_is_no_person(tmp_path: Path) -> None:
    text = "text,annotator,label\n" + "".join(f"so it is,{who},good\n" for who in ("ann", "ben", "system"))
    assert load(tmp_path, {"x.csv": text}).kinds == ("person", "person", "model")


@pytest.mark.parametrize("names", [("round1", "round2"), ("pre", "post"), ("before", "after")])
def test_rounds_are_no_people(tmp_path: Path, names: tuple[str, ...]) -> None:
    files = {f"{name}/d1.{end}": text for name in names for end, text in (("txt", TEXT), ("ann", "T1\tPER 0 3\tAda\n"))}
    with pytest.raises(FormatError, match="called as rounds"):
        load(tmp_path, files)


def test_votes_that_are_counted_in_a_cell_are_no_labels(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="every label holds several"):
        load(tmp_path, {"x.tsv": "token\tvotes\nAda\tB-PER:2,O:1\nran\tO:3\nto\tO:3\n\nRome\tB-LOC:3\n"})


def test_answers_that_pandas_wrote_with_quotes_of_python(tmp_path: Path) -> None:
    """CAsT-snippets has them so."""
    said = "[{'x': {'entities': [{'startOffset': 0, 'endOffset': 3, 'label': 'PER'}]}}]"
    rows = "".join(f'H1,{who},{TEXT},"{said}"\n' for who in ("w1", "w2"))
    corpus = load(tmp_path, {"x.csv": f"HITId,WorkerId,Input.text,Answer.taskAnswers\n{rows}"})
    assert votes(corpus) == {"w1": ["B-PER", "O", "O"], "w2": ["B-PER", "O", "O"]}


@pytest.mark.parametrize("key", ["entities", "spans", "label"])
def test_a_label_of_the_text_beside_spans_is_not_dropped(tmp_path: Path, key: str) -> None:
    beside = "label" if key != "label" else "labels"
    rows = ({"id": k, "text": TEXT, "annotator": "ann", key: [PER], beside: "news"} for k in range(2))
    corpus = load(tmp_path, {"x.jsonl": lines(*rows)})
    assert votes(corpus) == {"ann": ["B-PER", "O", "O"] * 2}
    assert corpus.metadata[beside] == ("news", "news")


@pytest.mark.parametrize("offsets", [("0:3", "12:16"), ("0-3", "12-16")])
def test_places_in_a_column_are_no_metadata_of_texts(tmp_path: Path, offsets: tuple[str, str]) -> None:
    rows = "".join(f"{TEXT},{who},{at},PER\n" for who, at in zip(("ann", "ben"), offsets))
    with pytest.raises(FormatError, match="'offsets' says which words of the texts"):
        load(tmp_path, {"x.csv": f"text,annotator,offsets,label\n{rows}"})


def test_a_tie_is_no_gold(tmp_path: Path) -> None:
    text = "text,ann1,ann2,majority\nyou old silly fool,x,y,Tie\nso it is now,x,x,x\nso be it then,y,y,y\n"
    assert votes(load(tmp_path, {"x.csv": text}))["majority"] == ["?", "x", "y"]


def test_tags_in_strings_under_a_name_of_their_own(tmp_path: Path) -> None:
    rows = "".join(f"{SENTENCE},{TAGS},{who}\n" for who in ("ann", "ben"))
    corpus = load(tmp_path, {"x.csv": f"sentence,label_seq,annotator\n{rows}"})
    assert votes(corpus) == {"ann": TAGS.split(), "ben": TAGS.split()}


def test_no_label_at_all_is_missing(tmp_path: Path) -> None:
    rows = ({"id": 1, "text": TEXT, "label": None}, {"id": 2, "text": OTHER, "label": [[0, 2, "PER"]]})
    assert votes(load(tmp_path, {"x.jsonl": lines(*rows)})) == {"x": ["?", "?", "?", "B-PER", "O", "O"]}


def test_the_index_of_a_data_frame_is_not_lost(tmp_path: Path) -> None:
    """What `DataFrame.to_json(orient="split")` writes."""
    whole = {"columns": ["ann1", "ann2"], "index": ["so it is", "well now"], "data": [["x", "y"], ["x", "x"]]}
    corpus = load(tmp_path, {"x.json": json.dumps(whole)})
    assert corpus.tokens == ("so it is", "well now")
    assert corpus.sequence_ids == corpus.tokens


@pytest.mark.parametrize("spans", [[["Ada", 0, 3], ["Rome", 12, 16]], [[0, 3, "Ada"], [12, 16, "Rome"]]])
def test_words_in_the_place_of_labels_are_no_labels(tmp_path: Path, spans: list[Any]) -> None:
    rows = [{"id": 1, "text": TEXT, "annotator": who, "entities": spans} for who in ("ann", "ben")]
    with pytest.raises(FormatError, match=r"labels are the words|cannot be told"):
        load(tmp_path, {"x.jsonl": lines(*rows)})
    with pytest.raises(FormatError, match="labels are the words"):
        load(tmp_path, {"y.jsonl": lines({"id": 1, "text": TEXT, "label": spans})})


@pytest.mark.parametrize(("column", "good", "bad"), [("exclude", "no", "yes"), ("is_valid", "1", "0")])
def test_rows_that_are_said_not_to_count(tmp_path: Path, column: str, good: str, bad: str) -> None:
    text = f"text,annotator,label,{column}\nso it is,ann,x,{good}\nso it is,ben,y,{bad}\nwell now,ben,x,{good}\n"
    assert votes(load(tmp_path, {"x.csv": text})) == {"ann": ["x", "?"], "ben": ["?", "x"]}


def test_numbers_on_a_scale_are_no_labels(tmp_path: Path) -> None:
    rows = "".join(f"text {k},{who},0.{7 * k + w}\n" for k in range(4) for w, who in enumerate(("ann", "ben")))
    with pytest.raises(FormatError, match="scores on a scale"):
        load(tmp_path, {"x.csv": f"text,annotator,label\n{rows}"})


def test_a_row_of_sums_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="a row holds sums"):
        load(tmp_path, {"x.csv": "text,ann1,ann2\nyou old silly fool,x,y\nso it is now,x,x\nTotal,2,2\n"})


def test_one_called_final_is_a_gold_in_a_table_that_is_read_in_pieces(tmp_path: Path) -> None:
    rows = "".join(
        f"{k},0,a,{who},O\n" for k in range(4) for who in (("ann", "final") if k else ("ann", "ben", "final"))
    )
    (tmp_path / "x.csv").write_text(f"sequence,position,token,annotator,label\n{rows}")
    for corpus in read_pieces([tmp_path / "x.csv"], size=40):
        assert ("final" in corpus.annotators, list(corpus.golds)) == (False, ["final"])


@pytest.mark.parametrize(
    "words", [{"text": ["Ada", "ran"]}, {"sentence": ["Ada", "ran"]}, {"tokens": [{"text": "Ada"}, {"text": "ran"}]}]
)
def test_words_under_another_name_or_in_objects(tmp_path: Path, words: dict[str, Any]) -> None:
    rows = ({**words, "labels": [tag, "O"], "annotator": who} for who, tag in (("ann", "B-PER"), ("ben", "O")))
    assert votes(load(tmp_path, {"x.jsonl": lines(*rows)})) == {"ann": ["B-PER", "O"], "ben": ["O", "O"]}

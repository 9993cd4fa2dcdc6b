"""CoNLL columns: the sample, headers, comments, golds, ragged and hostile files, round trips."""

from __future__ import annotations

import tempfile
import textwrap
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, LascaWarning, ParameterError, StoreError
from lasca.formats import READERS, conll_columns, read, write
from lasca.formats.base import SourceFile, files_of
from lasca.formats.choose import choose
from mutations import FEW, MANY, assert_only_lasca_errors, source, sources

SAMPLE = textwrap.dedent((conll_columns.__doc__ or "").split("```")[1]).strip() + "\n"
SPAN = [["😊", "Ada", "Lovelace"], ["New", "York"]]


def load(text: str, **options: object) -> CrowdCorpus:
    return conll_columns.read(source("x.conll", text.encode()), **options)  # type: ignore[arg-type]


def column(corpus: CrowdCorpus, name: str) -> list[list[str | None]]:
    if name in corpus.golds:
        return corpus.label_names(corpus.golds[name])
    table = corpus.to_table().to_pylist()
    given_labels = {(r["sequence"], r["position"]): r["label"] for r in table if r["annotator"] == name}
    lengths = [b - a for a, b in zip(corpus.offsets, corpus.offsets[1:])]
    return [[given_labels.get((id, i)) for i in range(n)] for id, n in zip(corpus.sequence_ids, lengths)]


def test_the_sample_of_the_docstring() -> None:
    corpus = load(SAMPLE)
    assert [corpus.sequence(s) for s in range(2)] == SPAN
    assert list(corpus.sequence_ids) == ["s1", "s2"]
    assert corpus.annotators == ("ann", "ben", "spacy")
    assert corpus.roles == ("annotator", "annotator", "model")
    assert list(corpus.golds) == ["gold"]
    assert column(corpus, "ben") == [[None, None, "O"], ["B-LOC", "I-LOC"]]
    assert column(corpus, "ann") == [["O", "B-PER", "I-PER"], [None, None]]
    assert column(corpus, "gold")[1] == ["B-LOC", "I-LOC"]
    assert conll_columns.sniff(source("x.conll", SAMPLE.encode())) > 0.5


def test_the_emoji_is_one_token_in_every_encoding() -> None:
    expected = load(SAMPLE)
    for encoding in ("utf-8-sig", "utf-16", "utf-8"):
        assert conll_columns.read(source("x", SAMPLE.encode(encoding))) == expected
    with pytest.raises(FormatError, match=r"x:2: the file is not UTF-8"):
        conll_columns.read(source("x", "a O\né O\n".encode("latin1")))


def test_a_note_says_that_columns_without_a_header_are_annotators() -> None:
    note = "There is no header"
    assert any(note in line for line in load("a X Y\nb Y Y\n").load_report.notes)
    assert any(note in line for line in load("a X Y\nb Y Y\n", golds="expert").load_report.notes)
    for quiet in (load("token a b\na X Y\nb Y Y\n"), load("a X\nb Y\n")):
        assert not any(note in line for line in quiet.load_report.notes)


def test_how_surely_csv_files_are_claimed() -> None:
    """Two columns surely, more rather by the format mace; several files less: perhaps one for each annotator."""
    two, three = b"token,ann\na,B-X\nb,O\n\nc,O\nd,O\n", b"token,ann,ben\na,B-X,O\nb,O,O\n\nc,O,O\nd,O,O\n"
    assert conll_columns.sniff(source("a.csv", two)) == 0.92
    assert conll_columns.sniff(sources({"a.csv": two, "b.csv": two.replace(b"a", b"z", 2)})) == 0.85
    assert conll_columns.sniff(source("a.csv", three)) == 0.6


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("blank", ["", "\t", "   ", "\t\t"])
def test_line_ends_and_blank_lines(end: str, blank: str) -> None:
    corpus = load(end.join(["", "a\tX\tY", "b\tX\tX", blank, blank, "c\tY\tX", blank]), golds=("g1", "g2"))
    assert corpus.offsets.tolist() == [0, 2, 3]
    assert column(corpus, "g2") == [["Y", "X"], ["X"]]


def test_two_columns_are_one_gold_and_more_are_annotators() -> None:
    assert list(load("a X\nb Y\n").golds) == ["gold"]
    assert load("a X Y\nb Y Y\n").annotators == ("1", "2")
    assert load("a X Y\nb Y Y\n", golds="expert").annotators == ("1",)
    named = load("a X Z Y\nb Y Z Y\n", columns=("token", "gold", "_", "eve"))
    assert (named.annotators, list(named.golds), named.labels) == (("eve",), ["gold"], ("X", "Y"))
    assert named.load_report.counts["columns left out"] == 1


def test_comments_and_the_token_hash() -> None:
    corpus = load("# a comment\n#\tO\na\tO\n# text = x y\n\nb\tO\n#tag\tO\n# x\tO\n")
    assert [corpus.sequence(s) for s in range(2)] == [["#", "a"], ["b", "#tag", "# x"]]
    assert corpus.load_report.counts["comments"] == 1
    assert list(corpus.metadata["text"]) == ["", "x y"]
    spaces = load("# a comment\n# O\na O\n# unknown\nb O\n")
    assert list(spaces.tokens) == ["#", "a", "b"]
    assert spaces.load_report.counts["comments"] == 2
    with pytest.raises(FormatError, match=r"x\.conll:2: this line has 1 cells"):
        load("a\tO\n#tag\nb\tO\n")


def test_documents() -> None:
    corpus = load("-DOCSTART- -X- O\n\na O\n\nb O\n\n-DOCSTART- -X- O\nc O\n")
    assert list(corpus.tokens) == ["a", "b", "c"]
    assert list(corpus.metadata["document"]) == ["1", "1", "2"]
    assert corpus.load_report.counts["documents"] == 2


def test_a_first_word_that_looks_like_a_header() -> None:
    assert list(load("Word NOUN\nperfect ADJ\nof NOUN\n").tokens) == ["Word", "perfect", "of"]
    assert load("word ann ben\nx A B\n").annotators == ("ann", "ben")
    assert load("word ann ann\nx A B\ny B A\n", header=False).annotators == ("1", "2")
    assert load("x ann ben\nx A B\n", header=True).annotators == ("ann", "ben")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a O\nb\n", {}, r"x\.conll:2: this line has 1 cells"),
        ("a O\nb O O\n", {}, r"x\.conll:2: this line has 3 cells"),
        ("a\tO\nb O\nc\tO\n", {}, r"x\.conll:2"),
        ("a\nb\n", {}, "a token and at least one label"),
        ("", {}, "no sequence"),
        ("\n\n", {}, "no sequence"),
        ("a O\n", {"columns": ("token", "a", "b")}, "2 columns where `columns` names 3"),
        ("# sent_id = a\nx O\n\n# sent_id = a\ny O\n", {}, "second sequence has the id"),
        ("token ann annotator:ann\nx O O\n", {}, "two columns are called 'ann'"),
        ("token\tann\tann\nx\tO\tO\ny\tB-X\tO\n", {}, r"x\.conll:1: two columns are called 'ann'.*-r header=false"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, options: dict, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        load(text, **options)


def test_a_first_token_called_text_is_no_header() -> None:
    assert list(load("Text B-ORG B-ORG\nx O O\n").tokens) == ["Text", "x"]
    assert load("token ann ann\nx A B\n", header=False).annotators == ("1", "2")


def test_folders_that_share_names_are_pointed_out() -> None:
    corpus = conll_columns.read(sources({"news/1.txt": b"x O\n", "blogs/1.txt": b"y O\n"}))
    assert any("conll-folder" in note for note in corpus.load_report.notes)
    apart = conll_columns.read(sources({"news/1.txt": b"x O\n", "blogs/2.txt": b"y O\n"}))
    assert not any("conll-folder" in note for note in apart.load_report.notes)


def test_wrong_options_are_named() -> None:
    with pytest.raises(ParameterError, match="golds"):
        load("token ann\nx O\n", golds=("gold",))
    with pytest.raises(ParameterError, match="golds must be at most 1"):
        load("a X\n", golds=("a", "b"))
    with pytest.raises(ParameterError, match="separator"):
        load("a X\n", separator="colon")


def test_several_files_are_told_apart() -> None:
    corpus = conll_columns.read(sources({"a.conll": b"x O\n", "b.conll": b"y O\n\nz O\n"}))
    assert list(corpus.sequence_ids) == ["a/0", "b/0", "b/1"]
    again = conll_columns.read(sources({"a.conll": b"x O\n", "b.conll": b"y O\n\nz O\n"})[::-1])
    assert again == corpus


@pytest.mark.parametrize("examples", [None, pytest.param(MANY, marks=pytest.mark.fuzz)])
def test_mutations_give_a_corpus_or_a_lasca_error(examples: int | None) -> None:
    more = {} if examples is None else {"max_examples": examples}
    assert_only_lasca_errors(lambda data: conll_columns.read(source("x.conll", data)), SAMPLE.encode(), **more)
    assert_only_lasca_errors(
        lambda data: conll_columns.read(source("x.tsv", data), golds=("a",)), b"a\tX\tY\nb\tX\t?\n\nc\tX\tY\n", **more
    )


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n"), min_size=0, max_size=4)
NAMES = st.sampled_from(["ann", "gold", "golden", "model:x", "label", "_", "ambiguous", "annotator:x", "1"])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_what_is_written_is_read_back(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    labels = st.one_of(st.none(), st.sampled_from(["O", "B-X", "I-X", "X|Y"]))
    row = lambda: [data.draw(st.lists(labels, min_size=n, max_size=n)) for n in lengths]  # noqa: E731
    names = data.draw(st.lists(NAMES, unique=True, max_size=3))
    roles = tuple(data.draw(st.sampled_from(["annotator", "model"])) for _ in names)
    corpus = CrowdCorpus.from_sequences(
        [data.draw(st.lists(TEXT, min_size=n, max_size=n)) for n in lengths],
        {name: row() for name in sorted(names)},
        golds={name: row() for name in sorted(data.draw(st.lists(NAMES, unique=True, max_size=2)))},
        sequence_ids=data.draw(st.sampled_from([["a", "b/ c", "#"], ["0", "1", "2"]]))[: len(lengths)],
        roles=roles,
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.conll"
        write(corpus, file, "conll")
        again = conll_columns.read(files_of(file))
    if all(name in again.labels for name in corpus.labels) and corpus.labels:
        assert again == corpus
    else:
        assert again.tokens == corpus.tokens


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    corpus = CrowdCorpus.from_sequences([["a\tb"], []], {"w": [["O"], []]}, metadata={"a b": ["x", ""]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        write(corpus, tmp_path / "x", "conll")
    assert {w.category for w in caught} == {LascaWarning}
    assert len(caught) == 3
    assert list(read(tmp_path / "x").tokens) == ["a b"]
    bad = CrowdCorpus.from_sequences([["a"]], {"w": [["?"]]})
    with pytest.raises(StoreError, match="cannot be written as CoNLL"):
        write(bad, tmp_path / "y", "conll")
    assert not (tmp_path / "y").exists()


CONLLU = "# sent_id = a\n1\tIm\t_\tADP\n2-3\tzum\t_\t_\n2\tzu\t_\tADP\n3\tdem\t_\tDET\n\n1\tHi\t_\tINTJ\n"


def test_columns_are_annotators_only_if_their_labels_overlap() -> None:
    wide = "".join(line + "\t_\t_\t0\troot\t_\t_\n" if "\t" in line else line + "\n" for line in CONLLU.split("\n"))
    corpus = load(wide)
    assert (list(corpus.tokens), corpus.annotators) == (["Im", "zu", "dem", "Hi"], ())
    assert corpus.label_names(corpus.golds["gold"]) == [["ADP", "ADP", "DET"], ["INTJ"]]
    assert corpus.load_report.counts["lines that are no tokens (3-4 or 3.1)"] == 1
    assert load(wide, column="deprel").labels == ("root",)
    four = "Ada NNP B-NP B-PER\nsaw VBD B-VP O\nRome NNP B-NP B-LOC\n"
    assert load(four).labels == ("B-LOC", "B-PER", "O")
    assert load(four, column=2).labels == ("NNP", "VBD")
    assert load(four, columns="token,_,ann,ben").annotators == ("ann", "ben")
    crowd = "Ada B-PER B-PER O\nsaw O O O\nRome B-LOC B-PER B-LOC\n"
    assert load(crowd).annotators == ("1", "2", "3")
    with pytest.raises(FormatError, match=r"hold different things.*2: NN, VB.*3: Ada, see.*column="):
        load("Ada NN Ada\nsaw VB see\n")
    with pytest.raises(ParameterError, match="column must be a number from 1 to 4"):
        load(four, column=9)


@pytest.mark.parametrize("max_examples", [FEW, pytest.param(MANY, marks=pytest.mark.fuzz)])
def test_any_bytes_as_numbered_columns(max_examples: int) -> None:
    assert_only_lasca_errors(
        lambda b: conll_columns.read(source("x.conllu", b), column=4), CONLLU.encode(), max_examples=max_examples
    )


# --- numbers of tokens --------------------------------------------------------------------------------------------

NUMBERED = [(["Ada", "ran", "home"], ["B-PER", "O", "O"]), (["In", "Rome"], ["O", "B-LOC"])]


@pytest.mark.parametrize("starts", [(0, 0), (1, 1), (7, 10), (0, 3)])
def test_numbers_of_tokens_are_no_tokens(starts: tuple[int, int]) -> None:
    text = ""
    for first, (words, tags) in zip(starts, NUMBERED):
        text += "".join(f"{first + i}\t{word}\t_\t{tag}\n" for i, (word, tag) in enumerate(zip(words, tags))) + "\n"
    corpus = load(text)
    assert [corpus.sequence(s) for s in range(2)] == [words for words, _ in NUMBERED]
    assert column(corpus, "gold") == [tags for _, tags in NUMBERED]
    assert load(text, golds="best", columns=None).sequence(1) == ["In", "Rome"]


def test_numbers_of_years_are_tokens() -> None:
    corpus = load("1984 O O\n1987 B-T B-T\n\n1999 O O\n")
    assert corpus.sequence(0) == ["1984", "1987"]


@pytest.mark.parametrize("names", ["idx\tword\tann\tben", "i\tform\tann\tben"])
def test_a_header_may_begin_with_the_numbers_of_tokens(names: str) -> None:
    rows = "0\tAda\tB-PER\tO\n1\tran\tO\tO\n\n0\tRome\tB-LOC\tB-LOC\n"
    for corpus in (load(f"{names}\n{rows}"), load(rows, columns=names.split("\t"))):
        assert corpus.sequence(0) == ["Ada", "ran"]
        assert list(corpus.annotators) == ["ann", "ben"]
        assert column(corpus, "ann") == [["B-PER", "O"], ["B-LOC"]]


def test_several_labels_behind_numbers_are_asked_about() -> None:
    rows = "1\tAda\tB-PER\tO\n2\tran\tO\tO\n\n1\tRome\tB-LOC\tB-LOC\n"
    with pytest.raises(FormatError, match="columns=_,token,ann,ben"):
        load(rows)
    assert list(load(rows, columns="_,token,ann,ben").annotators) == ["ann", "ben"]


TOKENS = "sent_id{0}token_id{0}token{0}ann{0}ben{0}majority{0}gpt-4\n"
ROWS = [
    ["s1", "1", "Ada", "B-PER", "B-PER", "B-PER", "O"],
    ["s1", "2", "left", "O", "O", "O", "O"],
    ["s2", "1", "Rome", "B-LOC", "", "B-LOC", "B-LOC"],
]


@pytest.mark.parametrize(("delimiter", "name"), [(",", "x.csv"), (";", "x.csv"), ("\t", "x.tsv")])
def test_a_table_with_a_row_per_token_is_grouped_by_its_column_of_sequences(delimiter: str, name: str) -> None:
    header = TOKENS.format(delimiter)
    data = (header + "".join(delimiter.join(row) + "\n" for row in ROWS)).encode()
    corpus = read_any(source(name, data), name)
    assert corpus.offsets.tolist() == [0, 2, 3]
    assert list(corpus.sequence_ids) == ["s1", "s2"]
    assert column(corpus, "ann") == [["B-PER", "O"], ["B-LOC"]]
    assert column(corpus, "ben") == [["B-PER", "O"], [None]]
    assert column(corpus, "majority") == [["B-PER", "O"], ["B-LOC"]]
    assert dict(zip(corpus.annotators, corpus.roles))["gpt-4"] == "model"
    turned = (header + "".join(delimiter.join(row) + "\n" for row in ROWS[::-1])).encode()
    again = read_any(source(name, turned), name)
    assert sorted(again.sequence_ids) == ["s1", "s2"]
    assert again.sequence(list(again.sequence_ids).index("s1")) == ["Ada", "left"]


def read_any(files: list[SourceFile], name: str) -> CrowdCorpus:
    assert choose(READERS, files, name) == "conll"
    return conll_columns.read(files)


def test_layers_in_a_header_are_no_annotators() -> None:
    """Kaggle's corpus of entities: the sentence stands in its first row only, and POS is also a part of speech."""
    data = b"Sentence #,Word,POS,Tag\nSentence: 1,Ada,NNP,B-per\n,'s,POS,O\nSentence: 2,Rome,NNP,B-geo\n,fell,VBD,O\n"
    corpus = read_any(source("x.csv", data), "x.csv")
    assert corpus.offsets.tolist() == [0, 2, 4]
    assert (corpus.annotators, list(corpus.golds)) == ((), ["gold"])
    assert column(corpus, "gold") == [["B-per", "O"], ["B-geo", "O"]]
    assert set(conll_columns.read(source("x.csv", data), column="pos").labels) == {"NNP", "POS", "VBD"}
    plain = read_any(source("x.csv", b"token,tag\nAda,B-PER\nleft,O\n"), "x.csv")
    assert list(plain.golds) == ["gold"]


def test_words_and_tags_in_csv_without_a_header_are_no_mace_file() -> None:
    for data in (b"Ada,B-PER\nleft,O\n\nRome,B-LOC\n", b"Ada;B-PER\nleft;O\n\nRome;B-LOC\n"):
        corpus = read_any(source("x.csv", data), "x.csv")
        assert corpus.sequence(0) == ["Ada", "left"]
        assert column(corpus, "gold") == [["B-PER", "O"], ["B-LOC"]]


def test_places_of_webanno_are_no_tokens() -> None:
    for text in ("1-1\tAda\tB-PER\n1-2\tleft\tO\n\n2-1\tRome\tB-LOC\n", "#id=1\n1-1\tAda\tB-PER\t_\n1-2\tleft\tO\t_\n"):
        assert load(text).sequence(0) == ["Ada", "left"]


def test_nested_names_are_not_two_annotators() -> None:
    """GermEval: the same labels in both columns, and never the same of one token."""
    outer = ["B-ORG", "I-ORG", "B-LOC", "O"] * 6
    inner = ["B-LOC", "B-PER", "B-ORG", "O"] * 6
    rows = "".join(f"w{k}\t{a}\t{b}\n" + "\n" * (k % 4 == 3) for k, (a, b) in enumerate(zip(outer, inner)))
    with pytest.raises(FormatError, match=r"levels of nested names.*column=2"):
        load(rows)
    assert set(load(rows, column=2).labels) == {"B-ORG", "I-ORG", "B-LOC", "O"}
    assert load(rows, columns="token,ann,ben").annotators == ("ann", "ben")
    agreed = [a if k % 3 else b for k, (a, b) in enumerate(zip(outer, inner))]
    again = "".join(f"w{k}\t{a}\t{b}\n" for k, (a, b) in enumerate(zip(outer, agreed)))
    assert load(again).annotators == ("1", "2")


@pytest.mark.parametrize("beside", ["pos", "lemma", "comment"])
def test_what_else_a_header_names_beside_annotators_is_left_out(beside: str) -> None:
    """Parts of speech, lemmas and remarks were annotators, if the header named people, too."""
    rows = [("Ada", "x1", "B-PER", "B-PER"), ("left", "", "O", "O"), ("Rome", "x2", "B-LOC", "O")]
    data = f"token\t{beside}\tann1\tann2\n" + "".join("\t".join(row) + "\n" for row in rows)
    corpus = conll_columns.read(source("x.tsv", data.encode()))
    assert corpus.annotators == ("ann1", "ann2")
    assert corpus.load_report.counts["columns left out"] == 1


def test_a_header_of_no_people_and_a_long_table_are_asked_about() -> None:
    long = b"doc,idx,tok,who,tag\n1,0,Ada,a,P\n1,1,ran,a,O\n1,0,Ada,b,O\n"
    with pytest.raises(FormatError, match=r"the table is long.*-f table"):
        conll_columns.read(source("x.csv", long))
    with pytest.raises(FormatError, match="hold different things"):
        conll_columns.read(source("x.csv", b"sent,token,kind,tone\n1,Ada,x,up\n1,ran,y,down\n"))


def test_a_layer_beside_one_person_is_no_annotator() -> None:
    data = b"token,annotator_1,pos\nAda,PER,NNP\nran,O,VBD\n"
    with pytest.raises(FormatError, match="hold different things"):
        conll_columns.read(source("x.csv", data))


def test_tags_before_their_words_are_no_prose() -> None:
    """Few rows, in which nearly every label is another one."""
    assert conll_columns.sniff(source("x.txt", b"B-PER Ada\nI-PER Lovelace\nO left\nB-LOC Rome\n")) > 0.5


def test_whoever_did_not_label_a_sequence_has_no_missing_labels_there() -> None:
    corpus = load("token ann ben\nAda B-PER ?\nleft O ?\n\nRome B-LOC B-LOC\nfell O ?\n")
    assert corpus.load_report.counts["missing labels"] == 1


def test_semicolons_between_tokens_and_annotators() -> None:
    data = b"Token;Annotator 1;Annotator 2\r\nAda;B-PER;B-PER\r\nging;O;O\r\n;;\r\nRom;B-LOC;O\r\n"
    assert read_any(source("x.csv", data), "x.csv").offsets.tolist() == [0, 2, 3]


def test_names_of_documents_are_no_tokens() -> None:
    rows = "".join(f"d{k // 4}\tw{k}\t{'B-PER' if k % 4 else 'O'}\n" + "\n" * (k % 4 == 3) for k in range(12))
    with pytest.raises(FormatError, match=r"first column hardly changes.*columns=_,token"):
        load(rows)
    assert load(rows, columns="_,token,gold:ner").sequence(0) == ["w0", "w1", "w2", "w3"]


def test_csv_of_tokens_and_annotators_without_a_header() -> None:
    corpus = read_any(source("x.csv", b"Ada,B-PER,B-PER\nleft,O,O\n\nRome,B-LOC,O\n"), "x.csv")
    assert corpus.annotators == ("1", "2")
    assert corpus.sequence(0) == ["Ada", "left"]


def test_a_column_that_names_the_annotator_of_each_sequence(tmp_path: Path) -> None:
    """As in the data of Yang et al. (2018): token, kind of character, tag, user."""
    path = tmp_path / "train"
    first, second = (
        [("Ada", "abc", "B"), ("Lu", "abc", "E"), ("8", "num", "O")],
        [("so", "abc", "O"), (".", "pun", "O")],
    )
    said = [(first, "17"), ([(*row[:2], "O") for row in first], "18"), (second, "17"), (second, "18"), (first, "17")]
    path.write_text("".join("".join("\t".join((*row, who)) + "\n" for row in rows) + "\n" for rows, who in said))
    corpus = lasca.read(path, column=3)
    assert (corpus.annotators, corpus.n_sequences) == (("17", "18"), 3)  # 17 met the first text twice
    table = corpus.to_table().to_pylist()
    assert [row["label"] for row in table if row["annotator"] == "18"] == ["O"] * 5
    assert any("Column 4 names the annotator" in note for note in corpus.load_report.notes)
    header = tmp_path / "x.conll"
    header.write_text(
        "token\tlabel\tannotator\n" + path.read_text().replace("\tabc", "").replace("\tnum", "").replace("\tpun", "")
    )
    assert lasca.read(header).annotators == ("17", "18")
    once = tmp_path / "dev"
    once.write_text("Ada\tB-PER\tme\nleft\tO\tme\n\nBen\tB-PER\tyou\nleft\tO\tyou\n")
    corpus = lasca.read(once)
    assert (corpus.annotators, list(corpus.golds), corpus.labels) == ((), ["gold"], ("B-PER", "O"))
    two = tmp_path / "two"  # two annotators, who happen to say the same of whole sequences
    two.write_text("a\tX\tX\nb\tX\tX\n\nc\tY\tY\nd\tY\tY\n\n" * 4)
    assert lasca.read(two, format="conll").annotators == ("1", "2")


def test_texts_and_sentences_are_no_tokens(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    rows = "so nice a day\tgood\nit rained here\tbad\nshe left us\tbad\nwe met again\tgood\n"
    for header in ("", "text\tlabel\n"):
        path.write_text(header + rows)
        with pytest.raises(FormatError, match="texts of several words"):
            lasca.read(path, format="conll")
    path = tmp_path / "x.txt"
    path.write_text("The/DT cat/NN sat/VBD ./.\nA/DT dog/NN ran/VBD ./.\n")
    corpus = lasca.read(path)
    assert corpus.tokens == ("The", "cat", "sat", ".", "A", "dog", "ran", ".")
    assert [corpus.labels[code] for code in corpus.golds["gold"]] == ["DT", "NN", "VBD", "."] * 2


def test_annotators_may_stand_before_the_tokens(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("u1 Ada B-PER\nu1 left O\n\nu2 Ada O\nu2 left O\n\n")
    with pytest.raises(FormatError, match="annotator,token,label if they are annotators"):
        read(path)
    corpus = read(path, columns="annotator,token,label")
    assert (corpus.annotators, corpus.n_sequences, corpus.labels) == (("u1", "u2"), 1, ("B-PER", "O"))


@pytest.mark.parametrize("sign", ["-", "_", "NA"])
def test_signs_among_tags_are_asked_about(tmp_path: Path, sign: str) -> None:
    path = tmp_path / "x.conll"
    path.write_text(f"token\tann\tben\nAda\tB-PER\t{sign}\nleft\tO\t{sign}\nRome\tB-LOC\tB-LOC\n")
    with pytest.raises(FormatError, match=f"{sign} stands among IOB2 tags.*missing={sign}"):
        read(path)
    assert read(path, missing=sign).n_annotations == 4
    path.write_text(path.read_text().replace(sign + "\n", "NaN\n"))
    corpus = read(path)
    assert (corpus.n_annotations, corpus.load_report.counts["labels nan, taken as missing"]) == (4, 2)


def test_levels_of_labels_are_no_annotators(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    for names in ("NE-COARSE\tNE-FINE", "outer\tinner", "ner\tnested_ner"):
        path.write_text(f"sent_id\ttoken\t{names}\n1\tBank\tB-ORG\tO\n1\tof\tI-ORG\tO\n1\tRome\tI-ORG\tB-ORG\n")
        with pytest.raises(FormatError, match="are called as layers of one annotation"):
            read(path)


def test_columns_called_as_layers_are_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "x.conll"
    rows = "Ada\tB-PER\tB-PER\nleft\tO\tO\nOslo\tB-LOC\tB-CITY\n"
    path.write_text("token\tner_coarse\tner_fine\n" + rows)
    with pytest.raises(FormatError, match=r"called as layers.*-r column=2"):
        read(path)
    assert list(read(path, column=2).golds) == ["gold"]
    path.write_text("token\tner_1\tner_2\n" + rows)
    assert read(path).annotators == ("ner_1", "ner_2")


def _conllu(tags: list[str], misc: str = "_") -> str:
    words = ["Ada", "left", "Rome"]
    cells = [
        [str(i), w, w, "X", "Y", "_", "0", "dep", "_", misc.format(t)] for i, (w, t) in enumerate(zip(words, tags), 1)
    ]
    return ("\n".join("\t".join(row) for row in cells) + "\n\n") * 2


def test_tags_inside_misc_are_asked_about_and_read(tmp_path: Path) -> None:
    """As DaNE has them: name=B-PER beside SpaceAfter=No."""
    path = tmp_path / "x.conllu"
    path.write_text(_conllu(["B-PER", "O", "B-LOC"], "name={}|SpaceAfter=No"))
    with pytest.raises(FormatError, match=r"column=misc:name.*column=upos"):
        read(path)
    assert read(path, column="misc:name").labels == ("B-LOC", "B-PER", "O")
    assert read(path, column="upos").labels == ("X",)
    for tag, misc in (("S-PER", "name={}"), ("U-PER", "a=b|name={}")):
        path.write_text(_conllu([tag, "O", "O"], misc))
        with pytest.raises(FormatError, match=r"column=misc:name"):
            read(path)
    rows = [f"{k}\t{w}\t{w}\tX\tY\tNE={t}\t0\tdep\t_\t_" for k, w, t in ((1, "Ada", "B-PER"), (2, "left", "O"))]
    path.write_text("\n".join(rows) + "\n")
    with pytest.raises(FormatError, match=r"column=feats:NE"):
        read(path)
    path.write_text(_conllu(["B-PER", "O", "B-LOC"], "name={}|SpaceAfter=No"))
    with pytest.raises(ParameterError, match="a key that stands in column 10"):
        read(path, column="misc:ner")
    (tmp_path / "y.conllu").write_text(_conllu(["", "", ""]).replace("Ada", "Bob"))
    assert read(tmp_path, column="misc:name").n_sequences == 4  # a file of the folder without any name


def test_nothing_in_numbered_rows_is_outside(tmp_path: Path) -> None:
    """CoNLL-U Plus writes _ where there is no name."""
    path = tmp_path / "x.conllup"
    rows = ["1\tAda\tNOUN\tB-PER", "2\tleft\tVERB\t_", "3\tRome\tNOUN\tB-LOC"]
    path.write_text("# global.columns = ID FORM UPOS NE\n" + ("\n".join(rows) + "\n\n") * 2)
    corpus = read(path, column=4)
    assert [corpus.labels[code] for code in corpus.golds["gold"]] == ["B-PER", "O", "B-LOC"] * 2
    assert corpus.load_report.counts["_ taken as O, of which there is none"] == 2
    path.write_text("1\tAda\tNOUN\t_\n2\tleft\tVERB\t_\n")  # nothing says that these would be tags
    assert read(path, column=4).labels == ()


def test_remarks_that_some_rows_have_behind_their_tags(tmp_path: Path) -> None:
    """Universal NER names who marked a token, in rows that are marked only."""
    path = tmp_path / "x.iob2"
    path.write_text("1\tIn\tO\n2\tNew\tB-LOC\t-\tada\n3\tYork\tI-LOC\t-\tben\n\n1\tIt\tO\n2\trained\tO\n")
    corpus = read(path)
    assert [corpus.labels[code] for code in corpus.golds["gold"]] == ["O", "B-LOC", "I-LOC", "O", "O"]
    assert corpus.load_report.counts["remarks behind the labels left out"] == 2
    path.write_text("In\tO\nNew\tO\tB-LOC\nYork\tO\tI-LOC\nIt\tO\nis\tO\n")  # a second annotator's, perhaps
    with pytest.raises(FormatError):
        read(path)


def test_labels_with_blanks_in_them(tmp_path: Path) -> None:
    """Label Studio writes its labels as they are, behind spaces."""
    path = tmp_path / "x.conll"
    path.write_text("-DOCSTART- -X- O\nAda -X- _ B-Job Title\nLee -X- _ I-Job Title\nleft -X- _ O\n\nIt -X- _ O\n")
    corpus = read(path)
    assert [corpus.labels[code] for code in corpus.golds["gold"]] == ["B-Job Title", "I-Job Title", "O", "O"]
    for odd in ("Ada B-PER O\nleft O\n", "Ada O B-PER\nleft O\n", "Ada O x\nleft O\n"):  # whose is the second one?
        path.write_text(odd)
        with pytest.raises(FormatError):
            read(path)


def test_a_comment_that_names_the_columns_is_no_token(tmp_path: Path) -> None:
    path = tmp_path / "x.conll"
    path.write_text("# tok:gold\tsem:gold\nAda\tPER\nleft\tPST\n\n# tok:gold\tsem:gold\n# 1\tPER\nIt\tPER\n")
    corpus = read(path)
    assert [list(corpus.sequence(k)) for k in range(2)] == [["Ada", "left"], ["# 1", "It"]]


@pytest.mark.parametrize("code", ["en", "zh-classical"])
def test_the_language_before_every_token_is_taken_off(tmp_path: Path, code: str) -> None:
    """PAN-X (WikiANN): en:Ada B-PER."""
    path = tmp_path / "dev"
    words = ("Ada\tB-PER", "ran\tO", ":\tO", "", "Rome\tB-LOC")
    path.write_text("\n".join(f"{code}:{word}" if word else "" for word in words) + "\n")
    corpus = lasca.read(path)
    assert list(corpus.tokens) == ["Ada", "ran", ":", "Rome"]
    assert any(f"'{code}:' stands before every token" in note for note in corpus.load_report.notes)
    path.write_text(path.read_text().replace(f"{code}:ran", "ran"))
    assert f"{code}:Ada" in list(lasca.read(path).tokens), "not before every one"
    for few in (words[:2], (*words, "\tO")):  # too few to tell; a token would be nothing else
        path.write_text("\n".join(f"{code}:{word}" if word else "" for word in few) + "\n")
        assert f"{code}:Ada" in list(lasca.read(path).tokens)


@pytest.mark.parametrize("names", ["ann1 ann1_conf ann2 ann2_conf", "ner_ann1 pos_ann1 ner_ann2 pos_ann2"])
def test_several_columns_of_each_person_are_asked_about(tmp_path: Path, names: str) -> None:
    """How sure each annotator was of a tag (ann1_conf) was an annotator of its own."""
    path = tmp_path / "x.conll"
    path.write_text(f"word {names} gold\n" + "Ada B-PER 1 B-PER 2 B-PER\nran O 3 O 3 O\nRome B-LOC 2 O 1 B-LOC\n\n" * 3)
    with pytest.raises(FormatError, match=r"several columns for each person.*columns=token,\w+,_,\w+,_,gold") as caught:
        lasca.read(path)
    wanted = str(caught.value).split("columns=")[1].split(" ")[0]
    corpus = lasca.read(path, columns=wanted)
    assert (list(corpus.annotators), list(corpus.golds)) == (names.split()[::2], ["gold"])
    assert corpus.labels == ("B-LOC", "B-PER", "O")


@pytest.mark.parametrize("turned", [False, True])
def test_items_and_workers_are_no_tokens(tmp_path: Path, turned: bool) -> None:
    """crowd-kit's and SQUARE's tables without a header: items were the tokens of one sequence, with a gold."""
    rows = [(f"s{k}:0", who, label) for who, label in (("ada", "B-PER"), ("ben", "O")) for k in range(4)]
    path = tmp_path / "answers.tsv"
    text = "".join("\t".join((b, a, c) if turned else (a, b, c)) + "\n" for a, b, c in rows)
    path.write_text(text)
    with pytest.raises(FormatError, match="worker,label"):
        lasca.read(path)
    path.write_text(("worker\titem\tlabel\n" if turned else "item\tworker\tlabel\n") + text)
    assert lasca.read(path).annotators == ("ada", "ben")


@pytest.mark.parametrize("token", ["Wort", "mot", "token"])
def test_names_over_tags_are_a_header_whatever_tokens_are_called(tmp_path: Path, token: str) -> None:
    """With another name of the tokens the header was a token, whose labels were the annotators' names."""
    path = tmp_path / "x.tsv"
    text = f"{token}\tAnna\tBen\n" + "Ada\tB-PER\tO\nran\tO\tO\n\nRome\tB-LOC\tB-LOC\n\n" * 2
    path.write_text(text)
    corpus = lasca.read(path)
    assert (corpus.annotators, corpus.labels, len(corpus)) == (("Anna", "Ben"), ("B-LOC", "B-PER", "O"), 4)
    path.write_text(text + text)  # two files, one behind the other
    corpus = lasca.read(path)
    assert (corpus.annotators, len(corpus)) == (("Anna", "Ben"), 8)
    assert token not in corpus.tokens
    path.write_text("Ada\tPER\nran\tO\nRome\tB-LOC\n\nEve\tB-PER\n")  # a tag that is wrong, and no header
    assert lasca.read(path, format="conll").n_tokens == 4


def test_tags_in_other_letters_are_another_annotators_all_the_same(tmp_path: Path) -> None:
    """b-per beside B-PER: the one annotator was left out, and the other one was the gold."""
    path = tmp_path / "x.tsv"
    path.write_text("token\tAnna\tBen\n" + "Ada\tb-per\tB-PER\nran\to\tO\nto\to\tO\n\nRome\tb-loc\tB-LOC\n\n" * 3)
    with pytest.warns(LascaWarning, match="lower case: Anna"):
        corpus = lasca.read(path)
    assert (corpus.annotators, list(corpus.golds)) == (("Anna", "Ben"), [])


@pytest.mark.parametrize("name", ["x.tsv", "x.csv"])
def test_columns_of_counts_are_asked_about(name: str) -> None:
    text = "word\tNOUN\tVERB\tX\n" + "".join(f"w{k}\t{k % 5}\t{k % 3}\t0\n" for k in range(20))
    files = source(name, (text if name == "x.tsv" else text.replace("\t", ",")).encode())
    with pytest.raises(FormatError, match=r"NOUN, VERB, X hold numbers.*columns=token,NOUN,VERB,X"):
        read_any(files, name)
    assert conll_columns.read(files, columns="token,NOUN,VERB,X", header=True).n_annotators == 3


def test_comments_that_name_annotators_are_heard_where_texts_stand_twice() -> None:
    text = "".join(
        f"# sent_id = s{k}\n# annotator = {w}\nAda\t{t}\nran\tO\n\n"
        for k in range(3)
        for w, t in (("ann", "B-PER"), ("ben", "O"))
    )
    corpus = read_any(source("x.conll", text.encode()), "x.conll")
    assert corpus.annotators == ("ann", "ben")
    assert corpus.n_sequences == 3
    assert not corpus.golds
    two = "".join(f"# annotator = {w}\nAda\tB-LOC\tO\nran\tO\tO\n\n" for w in ("ann", "ben") * 3)
    corpus = conll_columns.read(source("x.conll", two.encode()), columns="token,eve,bob")
    assert (corpus.annotators, corpus.metadata["annotator"]) == (("bob", "eve"), ("ann", "ben") * 3)
    alone = "".join(f"# annotator = {w}\nAda{k}\tB-PER\nran\tO\n\n" for k, w in enumerate("ab"))
    assert read_any(source("x.conll", alone.encode()), "x.conll").metadata["annotator"] == ("a", "b")


def test_columns_that_the_user_names_win_over_comments(tmp_path: Path) -> None:
    rows = "".join(f"# annotator = {w}\nAda\tB-PER\nran\tO\n\n" for w in ("ann", "ben"))
    (tmp_path / "a.conll").write_text(rows, encoding="utf-8")
    named = read(tmp_path / "a.conll", columns="token,eve")
    assert (named.annotators, named.metadata["annotator"]) == (("eve",), ("ann", "ben"))
    assert read(tmp_path / "a.conll", columns="token,label").annotators == ("ann", "ben")


def test_other_dresses_of_tags_are_told(tmp_path: Path) -> None:
    for tags in ("B:PER I:PER", "B-PER M-PER E-PER W-PER"):
        path = tmp_path / "x.txt"
        path.write_text("".join(f"Ada {tag}\n" for tag in tags.split()) + "ran O\n\n" + "it O\n" * 9)
        assert any("written in another way" in note for note in lasca.read(path).load_report.notes)


def test_a_header_with_a_hash_is_a_header(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("#word\tannotator1\tannotator2\nAda\tB-PER\tO\nran\tO\tO\n\nBo\tB-PER\tB-PER\n")
    assert lasca.read(path).sequence(0) == ["Ada", "ran"]


def test_numbers_of_sentences_without_a_header_are_asked_about(tmp_path: Path) -> None:
    rows = "".join(f"{k // 4}\t{k % 4}\tw{k}\tO\tB-PER\n" for k in range(12))
    path = tmp_path / "x.tsv"
    path.write_text(rows)
    with pytest.raises(FormatError, match=r"first line that names the columns.*sentence_id"):
        lasca.read(path)
    path.write_text("sentence_id\ttoken_id\ttoken\tann\tben\n" + rows)
    assert lasca.read(path).n_sequences == 3


@pytest.mark.parametrize(
    "text",
    [
        "Ada|NNP|B-PER Lovelace|NNP|I-PER left|VBD|O Rome|NNP|B-LOC\nit|PRP|O rained|VBD|O\n",
        "Ada/B-PER Lovelace/I-PER left/O Rome/B-LOC\n\nit/O rained/O\n",
    ],
)
def test_tags_behind_the_words_of_a_line_are_columns(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.txt").write_text(text)
    corpus = read(tmp_path / "x.txt")
    assert [list(corpus.sequence(s)) for s in range(2)] == [["Ada", "Lovelace", "left", "Rome"], ["it", "rained"]]
    assert [corpus.labels[k] for k in corpus.golds["gold"]] == ["B-PER", "I-PER", "O", "B-LOC", "O", "O"]


def test_slashes_in_prose_are_no_tags(tmp_path: Path) -> None:
    for text in ("and/or a/O\nthis is prose\n", "a/b/c x/O\nx/y z/z\n"):
        (tmp_path / "x.txt").write_text(text)
        with pytest.raises(FormatError, match="format cannot be told"):
            read(tmp_path / "x.txt")


def test_lines_that_name_a_sequence_are_no_tokens(tmp_path: Path) -> None:
    """Twitter-2015 and -2017: IMGID:15 before each tweet."""
    text = "".join(f"IMGID:{k}\nAda\tB-PER\nran\tO\n\n" for k in (15, 16))
    (tmp_path / "train.txt").write_text(text, encoding="utf-8")
    corpus = read(tmp_path / "train.txt")
    assert corpus.tokens == ("Ada", "ran") * 2
    assert corpus.metadata["IMGID"] == ("15", "16")

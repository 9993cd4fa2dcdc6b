"""MACE CSV: the sample, headers, tokens, blank rows, hostile files, round trip."""

from __future__ import annotations

from pathlib import Path

import pytest

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError, StoreError
from lasca.formats import READERS, mace_csv, read, write
from lasca.formats.choose import choose
from mutations import MANY, assert_only_lasca_errors, source, sources

SAMPLE = (mace_csv.__doc__ or "").split("```")[1].strip() + "\n"


def load(text: str, **options: object) -> CrowdCorpus:
    return mace_csv.read(source("x.csv", text.encode()), **options)  # type: ignore[arg-type]


def test_the_sample_of_the_docstring() -> None:
    corpus = load(SAMPLE)
    assert corpus.offsets.tolist() == [0, 3, 4]
    assert corpus.annotators == ("1", "2", "3")
    assert corpus.n_annotations == 9
    assert set(corpus.tokens) == {"_"}
    assert mace_csv.sniff(source("x.csv", SAMPLE.encode())) > 0.5


def test_names_and_tokens_in_the_header() -> None:
    corpus = load("token,ann,ben\n😊,O,\nAda,B-PER,O\n\nx,,\n")
    assert list(corpus.tokens) == ["😊", "Ada", "x"]
    assert corpus.annotators == ("ann", "ben")
    assert corpus.n_annotations == 3
    assert mace_csv.read(source("x.csv", "token,a,b\n😊,O,\n".encode("utf-16"))).tokens[0] == "😊"
    assert load("ann,ben\nO,O\nB,O\n").annotators == ("ann", "ben")
    assert load("O,B\nO,O\nB,O\n").annotators == ("1", "2")
    assert load("ann,ben\nO,O\n", header=False).n_tokens == 2
    assert load("O;B\nO;O\n", delimiter=";").n_tokens == 2


def test_several_files() -> None:
    assert list(mace_csv.read(sources({"a.csv": b"O,O\n", "b.csv": b"O,B\n"})).sequence_ids) == ["a/0", "b/0"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("O,O\nO\n", r"x\.csv:2: this row has 1 cells"),
        ("O,O\n\nO,O,O\n", r"x\.csv:3: this row has 3 cells"),
        ('O,"O\n', r"x\.csv:1: this is not CSV"),
        ("", "no sequence"),
        ("\n\n", "no sequence"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        load(text)


def test_wrong_options_are_named() -> None:
    with pytest.raises(ParameterError, match="delimiter must be"):
        load(SAMPLE, delimiter="ab")
    with pytest.raises(ParameterError, match="header must be"):
        load(SAMPLE, header="yes")
    with pytest.raises(FormatError, match="name of its own"):
        load("a,a\nO,O\n", header=True)


def test_a_quote_that_is_not_doubled_swallows_no_rows() -> None:
    with pytest.raises(FormatError, match=r":2: a quote opens a cell that holds whole rows"):
        mace_csv.read(source("x.csv", b'token,a,b\n",O,O\nRome,B-LOC,O\n",O,O\nx,O,O\n'))
    with pytest.raises(FormatError, match=r":2: a quote opens a cell that holds whole rows"):
        mace_csv.read(source("x.csv", b'token,a\n",O\nRome,B-LOC\n",O\nx,O\n'))
    fine = mace_csv.read(source("x.csv", b'token,a,b\n"x\ny",O,O\nRome,B-LOC,O\n'))
    assert list(fine.tokens) == ["x\ny", "Rome"]


@pytest.mark.parametrize("examples", [None, pytest.param(MANY, marks=pytest.mark.fuzz)])
def test_mutations_give_a_corpus_or_a_lasca_error(examples: int | None) -> None:
    more = {} if examples is None else {"max_examples": examples}
    assert_only_lasca_errors(lambda data: mace_csv.read(source("x.csv", data)), SAMPLE.encode(), **more)
    assert_only_lasca_errors(lambda data: mace_csv.sniff(source("x.csv", data)), SAMPLE.encode(), **more)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    corpus = load(SAMPLE)
    write(corpus, tmp_path / "x.csv", "mace")
    assert (tmp_path / "x.csv").read_text() == SAMPLE
    assert read(tmp_path / "x.csv", "mace") == corpus
    named = load("token,ann,ben\n=1,O,\nAda,B-PER,O\n\n-,,\n")
    write(named, tmp_path / "y.csv", "mace", tokens=True)
    assert read(tmp_path / "y.csv") == named
    with pytest.raises(StoreError, match="missing labels of one annotator"):
        write(CrowdCorpus.from_sequences([["a", "b"]], {"w": [["O", None]]}), tmp_path / "z.csv", "mace")
    write(corpus, tmp_path / "t.csv", "mace", labels=[0, 0, 1, 1])
    assert (tmp_path / "t.csv").read_text().splitlines() == ["B-LOC", "B-LOC", "B-PER", "", "B-PER"]


def test_a_row_without_token_ends_a_sequence() -> None:
    assert load("token,ann,ben\nAda,B-PER,O\n,,\nRome,B-LOC,O\n").offsets.tolist() == [0, 1, 2]
    assert load("ann,ben\nO,O\n,\nB,O\n").offsets.tolist() == [0, 3]


def test_names_of_sentences_are_no_annotators_even_if_the_format_is_named() -> None:
    data = b"sentence_id,token,ann,ben\n1,Ada,B-PER,O\n1,left,O,O\n"
    with pytest.raises(FormatError, match=r"x.csv:1: the column 'sentence_id' is no annotator's .*format=conll"):
        mace_csv.read(source("x.csv", data))


def test_columns_that_share_no_label_are_no_annotators() -> None:
    assert mace_csv.sniff(source("x.csv", b"Ada,B-PER\nleft,O\n\nRome,B-LOC\n")) == 0
    assert mace_csv.sniff(source("x.csv", b"O,O\nO,B\n\nB,B\n")) > 0.5
    for rows in (b"O,O,fine\nO,B,odd\nB,B,fine\n", b"O,fine,O\nO,odd,B\nB,fine,B\n"):
        assert mace_csv.sniff(source("x.csv", rows)) == 0, "a column of remarks is nobody's labels"


def test_golds_and_models_by_their_names() -> None:
    corpus = load("token,ann,gold,gpt-4\nAda,B-PER,B-PER,O\nran,O,O,O\n")
    assert dict(zip(corpus.annotators, corpus.roles)) == {"ann": "annotator", "gpt-4": "model"}
    assert list(corpus.golds) == ["gold"]


def test_the_delimiter_is_found() -> None:
    """A first row with an empty cell made the labels of the first annotator the tokens of a CoNLL file."""
    rows = ["B-PER,,O", "I-PER,I-PER,O", ",O,B-LOC", "O,O,O", "B-LOC,B-LOC,", "O,,O"]
    for delimiter in ",;\t":
        files = source("x.csv", "\n".join(rows).replace(",", delimiter).encode())
        assert choose(READERS, files, "x.csv") == "mace"
        assert mace_csv.read(files).n_annotators == 3

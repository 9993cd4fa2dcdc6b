"""Finding the format of files: every format by itself, doubts, wrong names and options, repair and schemes."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import threading
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lasca
from lasca import evaluate
from lasca.corpus import CrowdCorpus
from lasca.errors import CorpusError, FormatError, LascaError, LascaWarning, ParameterError
from lasca.formats import READERS, WRITERS, read, write
from lasca.formats.base import SourceFile
from lasca.formats.choose import choose
from mutations import source, sources

TEXT = "Ada visited Rome ."
SPAN = '{"start": 0, "end": 3, "label": "PER"}'
SAMPLES: dict[str, dict[str, str]] = {
    "label-studio": {
        "x.json": '[{"id": 7, "data": {"text": "Ada visited"}, "annotations": [{"id": 1, "completed_by": 3, "result": '
        '[{"from_name": "label", "to_name": "text", "type": "labels", "value": {"start": 0, "end": 3, "text": "Ada", '
        '"labels": ["PER"]}}]}]}]'
    },
    "doccano": {
        "ann.jsonl": '{"id": 5, "text": "Ada visited", "label": [[0, 3, "PER"]]}\n',
        "ben.jsonl": '{"id": 5, "text": "Ada visited", "label": [[4, 11, "LOC"]]}\n',
    },
    "prodigy": {
        "x.jsonl": '{"text": "Ada", "tokens": [{"text": "Ada", "start": 0, "end": 3, "id": 0}], "spans": [{"start": 0, '
        '"end": 3, "token_start": 0, "token_end": 0, "label": "PER"}], "answer": "accept", "_input_hash": 11, '
        '"_annotator_id": "a"}\n'
    },
    "huggingface": {"x.jsonl": '{"id": "s1", "tokens": ["Ada", "x"], "ner_tags": ["B-PER", "O"], "annotator": "a"}\n'},
    "brat": {
        "ann/d.txt": TEXT,
        "ann/d.ann": "T1\tPER 0 3\tAda\n",
        "ben/d.txt": TEXT,
        "ben/d.ann": "",
    },
    "webanno": {
        "d.txt/ann.tsv": "#FORMAT=WebAnno TSV 3.3\n#T_SP=webanno.custom.NE|value\n\n\n#Text=Ada x\n"
        "1-1\t0-3\tAda\tPER\t\n1-2\t4-5\tx\t_\t\n"
    },
    "mturk-results": {
        "x.csv": 'HITId,WorkerId,AssignmentStatus,Input.text,Answer.spans\nh1,w1,Approved,Ada visited,"[{""start"": 0, '
        '""end"": 3, ""label"": ""PER""}]"\n'
    },
    "conll": {"x.conll": "Ada B-PER B-PER\nvisited O O\n\nNew B-LOC O\nYork I-LOC O\n"},
    "conll-folder": {"ann/d.txt": "Ada B-PER\nx O\n", "ben/d.txt": "Ada O\nx O\n"},
    "mace": {"x.csv": "O,,O\nB-PER,B-PER,\n\nO,O,O\nB-PER,O,O\n"},
    "spacy": {"x.json": '[["Ada visited", {"entities": [[0, 3, "PER"]]}]]'},
    "sagemaker": {
        "x.manifest": '{"source": "Ada visited", "j": {"annotations": {"entities": [{"startOffset": 0, "endOffset": 3, '
        '"label": "PER"}]}}, "j-metadata": {"type": "groundtruth/text-span"}}\n'
    },
    "lighttag": {
        "x.json": '{"examples": [{"content": "Ada visited", "seen_by": [], "annotations": [{"start": 0, "end": 3, '
        '"tag": "PER", "annotated_by": [{"annotator": "ann"}]}]}], "schema": {}}'
    },
    "wide": {"x.csv": "id,text,ann_1,ann_2\n1,Ada visited Rome,good,bad\n2,so she did,bad,bad\n"},
    "records": {"x.jsonl": '{"id": 1, "text": "Ada visited", "annotations": {"ann": [[0, 3, "PER"]], "ben": []}}\n'},
    "span-table": {"x.csv": "text,start,end,label,annotator\nAda visited,0,3,PER,ann\n"},
    "table": {"x.csv": "sequence,position,token,annotator,label\ns,0,Ada,ann,B-PER\ns,1,x,ann,O\n"},
}


def files(format: str) -> list[SourceFile]:
    return sources({name: text.encode() for name, text in SAMPLES[format].items()})


@pytest.mark.parametrize("format", sorted(SAMPLES))
def test_every_format_is_found(format: str, tmp_path: Path) -> None:
    assert choose(READERS, files(format), "x") == format
    assert all(0 <= READERS[name].sniff(files(format)) <= 1 for name in READERS)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name, text in SAMPLES[format].items():
            archive.writestr(name, text)
            (tmp_path / "folder" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "folder" / name).write_text(text, "utf-8")
    from_zip, from_folder = read(tmp_path / "x.zip"), read(str(tmp_path / "folder"))
    assert from_zip == from_folder
    assert from_zip.load_report.notes[0] == f"The format was detected: {format}."
    assert from_zip.load_report.format == format
    assert read(tmp_path / "folder", format).load_report.notes[0] == f"Read as {format}."
    assert from_zip.n_annotations > 0 or from_zip.golds
    if len(SAMPLES[format]) == 1:
        (only,) = (p for p in (tmp_path / "folder").rglob("*") if p.is_file())
        assert read(only).n_tokens == from_zip.n_tokens


def test_all_names_of_the_design_are_there() -> None:
    assert set(SAMPLES) | {"lasca", "jsonl", "llm-batch"} == set(READERS)
    assert set(WRITERS) >= {"conll", "jsonl", "parquet", "huggingface", "label-studio", "mace", "table", "lasca"}
    assert lasca.write is write
    assert lasca.read("demo").n_annotators > 1  # names of data sets work wherever a path does


@pytest.mark.parametrize("data", [b"", b"\n", b"hello world, this is a letter.\n", b"\x00\x01\x02\xff" * 100, b"PAR1"])
def test_what_is_no_format_is_said_with_all_names(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(data)
    with pytest.raises(FormatError, match=r"x\.bin: (the format cannot be told|there is nothing)") as caught:
        read(tmp_path / "x.bin")
    if data.strip():
        assert all(name in str(caught.value) for name in READERS)


def test_doubtful_files_name_the_candidates() -> None:
    class Fixed:
        def __init__(self, score: float) -> None:
            self.score = score

        def sniff(self, files: list[SourceFile]) -> float:
            return self.score

    readers = {"one": Fixed(0.9), "two": Fixed(0.89), "three": Fixed(0.2)}
    with pytest.raises(FormatError, match="this may be one or two"):
        choose(readers, source("x", b"x"), "x")  # type: ignore[arg-type]


def test_wrong_names_and_options(tmp_path: Path) -> None:
    path = tmp_path / "x.conll"
    path.write_text("a O\nb O\n")
    with pytest.raises(ParameterError, match="format must be 'auto' or one of label-studio, doccano"):
        read(path, "conl")
    with pytest.raises(ParameterError, match="an option of the format conll must be one of golds, columns") as caught:
        read(path, gold="x")
    assert caught.value.value == "gold"
    with pytest.raises(FormatError, match="no such file"):
        read(tmp_path / "nothing")
    with pytest.raises(FormatError, match="list of paths is empty"):
        read([])
    with pytest.raises(ParameterError, match="'auto' or 'table' for a data frame"):
        read(pd.DataFrame(), "conll")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match="no file here"):
        read(tmp_path / "empty")


def test_well_known_endings_and_prose(tmp_path: Path) -> None:
    (tmp_path / "eng.train").write_text("EU NNP I-NP I-ORG\nrejects VBZ I-VP O\n. . O O\n\nPeter NNP I-NP I-PER\n")
    corpus = read(tmp_path / "eng.train")
    assert (corpus.annotators, list(corpus.golds)) == ((), ["gold"])
    assert corpus.labels == ("I-ORG", "I-PER", "O")
    assert any("column 4" in note for note in corpus.load_report.notes)
    (tmp_path / "letter.txt").write_text("Dear friend\nhow are\n\nyou today\n")
    with pytest.raises(FormatError, match="cannot be told"):
        read(tmp_path / "letter.txt")


def test_rows_in_memory() -> None:
    corpus = read([{"id": "a", "tokens": ["x", "y"], "ner_tags": ["O", "B-X"], "annotator": "w"}])
    assert (corpus.load_report.format, corpus.n_annotations) == ("huggingface", 2)
    with pytest.raises(LascaError):
        read([1, 2])


def test_several_paths(tmp_path: Path) -> None:
    for name in ("ann", "ben"):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.jsonl").write_text(SAMPLES["doccano"][f"{name}.jsonl"])
    corpus = read([tmp_path / "ben.jsonl", tmp_path / "ann.jsonl"])
    assert corpus.annotators == ("ann", "ben")
    assert corpus.load_report.format == "doccano"


def test_illegal_tags_are_counted_repaired_and_converted(tmp_path: Path) -> None:
    path = tmp_path / "x.conll"
    path.write_text("token gold w\na B-X I-X\nb I-X I-X\nc I-Y O\n")
    plain = read(path)
    assert plain.load_report.counts["illegal tags"] == 1
    assert plain.load_report.counts["illegal tags in golds"] == 1
    assert "The tags are IOB2." in plain.load_report.notes
    fixed = read(path, repair=True)
    assert (fixed.load_report.counts["repaired"], fixed.load_report.counts["repaired in golds"]) == (1, 1)
    assert fixed.label_names(fixed.golds["gold"]) == [["B-X", "I-X", "B-Y"]]
    other = read(path, scheme="bioes")
    assert other.label_names(other.golds["gold"]) == [["B-X", "E-X", "S-Y"]]
    with pytest.raises(ParameterError, match="scheme must be one of 'IO'"):
        read(path, scheme="XY")
    path.write_text("a NOUN\nb VERB\n")
    assert "illegal tags" not in read(path, repair=True).load_report.counts
    with pytest.raises(ParameterError, match="of no tag scheme"):
        read(path, scheme="IOB2")


def test_annotators_in_different_schemes_are_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "x.conll"
    path.write_text("token a b\n" + "Ada B-PER S-PER\nsaw O O\nNew B-LOC B-LOC\nYork I-LOC E-LOC\n\n" * 2)
    with pytest.warns(LascaWarning, match=r"different tag schemes.*IOB2: a; BIOES or BMES: b.*-r scheme=IOB2"):
        corpus = read(path)
    assert "different tag schemes" in corpus.load_report.notes[-1]
    assert not any(note.startswith("The tags are") for note in corpus.load_report.notes)
    one = read(path, scheme="IOB2")  # a warning would be an error here
    assert evaluate.agreement(one).krippendorff_alpha == 1
    assert "The tags are BIOES." in one.load_report.notes
    path.write_text("token a b\n" + "Ada B-PER PER\nNew B-LOC LOC\nYork I-LOC LOC\n\n" * 2)
    with pytest.warns(LascaWarning, match="rewrite the labels of b first"):
        read(path)
    path.write_text("token a b\n" + "Ada U-PER S-PER\nNew B-LOC B-LOC\nYork L-LOC E-LOC\n")
    assert read(path, scheme="IOB2").labels == ("B-LOC", "B-PER", "I-LOC", "I-PER", "O")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("x.csv", gzip.compress(b"sequence,position\n", mtime=0), "this is a gzip file, not text. Unpack"),
        ("x.csv", bz2.compress(b"sequence,position\n"), "this is a bzip2 file"),
        ("x.zip", b"PK\x03\x04cut", "this is a zip file .cut short"),
        ("x.csv", "sequence,position,token,annotator,label\ns,0,Zoë,a,O\n".encode("cp1252"), r"x\.csv:2: .* not UTF-8"),
        ("x.csv", b"sequence,position,annotator,label\ns,0,a\x00,O\n", r"x\.csv:2: there is a NUL byte"),
        ("x.conll", b"token a b\nAda B-PER E-PER\nL E-PER O O\n", r"x\.conll:3: this line has 4 cells"),
        ("x.txt", b"a O\n" * 9 + b"b\n", r"x\.txt:10: this line has 1 cells"),
        ("x.csv", b"O,O,O\n" * 9 + b"O,O\n", r"x\.csv:10: this row has 2 cells"),
        ("x.json", b'[{"a": 1},\n{"a": }]', r"x\.json:2: this is not JSON"),
        ("x.parquet", b"PAR1", "the Parquet file cannot be read"),
    ],
    ids=["gzip", "bzip2", "cut zip", "cp1252", "NUL", "ragged", "ragged txt", "ragged CSV", "JSON", "cut Parquet"],
)
def test_why_no_format_is_found_is_said(name: str, data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(FormatError, match=rf"(?s)the format cannot be told.*{message}.*Otherwise name it: .*-f"):
        read(tmp_path / name)


def test_packed_files_and_spreadsheets_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(gzip.compress(b"a,b\n"))
    with pytest.raises(FormatError, match=r"x\.csv: this is a gzip file, not text") as caught:
        read(tmp_path / "x.csv", "table")
    assert "iconv" not in str(caught.value)
    with zipfile.ZipFile(tmp_path / "x.xlsx", "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(FormatError, match="save the sheet as CSV"):
        read(tmp_path / "x.xlsx")


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    fifo = tmp_path / "x.conll"
    os.mkfifo(fifo)
    data = SAMPLES["conll"]["x.conll"].encode()
    writer = threading.Thread(target=fifo.write_bytes, args=(data,), daemon=True)
    writer.start()
    assert read(fifo).n_tokens == 4
    writer.join(timeout=10)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SAMPLES["conll"]["x.conll"].encode())))
    assert read("-").n_tokens == 4


def test_a_saved_corpus_in_a_zip_is_refused(tmp_path: Path) -> None:
    corpus = CrowdCorpus.from_sequences([["a"]], {"w": [["X"]]})
    write(corpus, tmp_path / "saved", "lasca")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for file in (tmp_path / "saved").iterdir():
            archive.write(file, file.name)
    with pytest.raises(FormatError, match="Unpack the zip first"):
        read(tmp_path / "x.zip")


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    st.dictionaries(st.sampled_from(["a", "x.csv", "b.json", "c/d.txt", "c/d.ann", "e.tsv"]), st.binary(), max_size=3)
)
def test_any_bytes_give_a_corpus_or_a_lasca_error(data: dict[str, bytes]) -> None:
    given_files = sources(data)
    try:
        format = choose(READERS, given_files, "x")
        READERS[format](given_files)
    except LascaError:
        pass


def test_models_of_an_export_vote_when_asked(tmp_path: Path) -> None:
    task = {
        "data": {"text": "Ada runs"},
        "annotations": [{"completed_by": 1, "result": [_span()]}],
        "predictions": [{"model_version": "m", "result": [_span()]}],
    }
    path = tmp_path / "export.json"
    path.write_text(json.dumps([task]), encoding="utf-8")
    usual, everybody = read(path), read(path, voters="all")
    assert dict(zip(usual.annotators, usual.votes)) == {"1": True, "m": False}
    assert everybody.votes == (True, True)
    assert read(path, voters="m").votes == tuple(name == "m" for name in usual.annotators)
    with pytest.raises(CorpusError, match="no annotator of that name"):
        read(path, voters=["nobody"])


def _span() -> dict[str, object]:
    value = {"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}
    return {"from_name": "label", "to_name": "text", "type": "labels", "value": value}


def test_a_bad_file_is_named_and_left_out_only_when_asked(tmp_path: Path) -> None:
    for name in ("ann", "ben", "eve"):
        (tmp_path / f"{name}.jsonl").write_text('{"id": 5, "text": "Ada visited", "label": [[0, 3, "PER"]]}\n')
    (tmp_path / "eve.jsonl").write_text('{"id": 5, "text": "Ada visited", "label": [[0, 99, "PER"]]}\n')
    with pytest.raises(FormatError, match=r"eve.jsonl:1.*read the other 2 files.*skip_bad=true"):
        read(tmp_path)
    corpus = read(tmp_path, skip_bad=True)
    assert corpus.annotators == ("ann", "ben")
    assert corpus.load_report.counts["bad files left out"] == 1
    assert "eve.jsonl" in corpus.load_report.examples["bad files left out"][0]


def test_free_text_is_no_label(tmp_path: Path) -> None:
    lines = "".join(f"w{k} lemma{k % 700}\n" for k in range(2000))
    (tmp_path / "x.conll").write_text(lines)
    with pytest.raises(FormatError, match="700 different ones for 2,000 tokens"):
        read(tmp_path / "x.conll")


def test_what_is_not_utf8_is_read_in_the_encoding_that_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(
        "text;ann_1;ann_2\r\nSchöne Grüße an alle;gut;gut\r\nso ein übler Tag;übel;gut\r\n".encode("cp1252")
    )
    with pytest.raises(FormatError, match="-r encoding=cp1252"):
        read(path)
    assert read(path, encoding="cp1252").labels == ("gut", "übel")
    with pytest.raises(ParameterError, match="encoding must be one that Python knows"):
        read(path, encoding="excel")
    with pytest.raises(FormatError, match="not text in ascii"):
        read(path, encoding="ascii")


def test_gzip_files_are_read_and_bombs_are_not(tmp_path: Path) -> None:
    data = b"sequence,position,token,annotator,label\ns,0,Ada,ann,PER\n"
    for name in ("x.csv", "x.csv.gz"):
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert lasca.read(tmp_path / "x.csv.gz") == lasca.read(tmp_path / "x.csv")
    for bad, said in (
        (gzip.compress(data)[:-9], "cannot be read"),
        (gzip.compress(bytes(65 << 20)), "unpacks to more"),
    ):
        (tmp_path / "y.csv.gz").write_bytes(bad)
        with pytest.raises(FormatError, match=f"y.csv.gz: the gzip file {said}"):
            lasca.read(tmp_path / "y.csv.gz")


def test_parquet_files_of_spans_and_of_columns_of_tags_are_read(tmp_path: Path) -> None:
    span = {"text": "Ada left", "start": 0, "end": 3, "label": "PER"}
    whole = {"text": "Ada left", "spans": [{"start": 0, "end": 3, "label": "PER"}]}
    both = {"tokens": ["Ada", "left"], "ann": ["B-PER", "O"], "ben": ["B-PER", "O"]}
    for row in ({**span, "worker": "ann"}, {**whole, "annotator": "ann"}, both):
        pd.DataFrame([row]).to_parquet(tmp_path / "x.parquet")
        corpus = lasca.read(tmp_path / "x.parquet")
        assert [corpus.labels[k] for k in corpus.annotation_label[:: corpus.n_annotators]] == ["B-PER", "O"]
        assert corpus.annotators[0] == "ann"


def test_a_pointer_of_git_lfs_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 7\n")
    with pytest.raises(FormatError, match="git lfs pull"):
        read(tmp_path / "x.csv")


# --- files that are asked about, and what is said of them -----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.ann", "The [@Bank of England#ORG*] met .\n", "marks into the text"),
        ("x.txt", "<PER>Ada</PER> left .\n", "marks into the text"),
        ("x.txt", "<START:person> Ada <END> left .\n", "marks into the text"),
        ("x.txt", "[PER Ada] left .\n", "marks into the text"),
        ("x.xml", "<?xml version='1.0'?>\n<TEI><text><persName>Ada</persName> left</text></TEI>", "XML"),
        ("x.tsv", "id\tdisplayed_text\tmood:::glad\tmood:::sad\n1\tit rains\t\ttrue\n2\tso it is\ttrue\t\n", "Potato"),
        ("x.con", 'c="pain" 2:1 2:1||t="problem"\n', "i2b2"),
        ("x.json", '{"luis_schema_version": "3.2.0", "utterances": []}', "LUIS"),
        ("x.json", '{"projectFileVersion": "2022-05-01", "assets": {}}', "Azure"),
        ("x.jsonl", '{"messages": [{"role": "user", "content": "Ada left"}]}\n', "chat"),
        ("x.csv", "_unit_id,_trusted_judgments,mood,mood:confidence,text\n1,3,glad,0.7,it rains\n", "_worker_id"),
    ],
)
def test_files_of_other_tools_are_refused_by_name(tmp_path: Path, name: str, text: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(FormatError, match=said):
        lasca.read(path)


def test_ann_files_that_are_not_brats_are_not_read_as_brats(tmp_path: Path) -> None:
    (tmp_path / "d_A.ann").write_text("0,0,1,1,0")
    (tmp_path / "d.txt").write_text("We gave it to adults")
    with pytest.raises(FormatError, match="format cannot be told"):
        lasca.read(tmp_path)


def test_a_table_that_lacks_columns_names_those_that_may_be_meant(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    rows = [f"{k // 2}\tw{k % 2}\t{k % 2}\t{(k % 3) / 2}" for k in range(8)]
    path.write_text("\n".join(["rev_id\tworker_id\ttoxic\tscore", *rows]) + "\n")
    with pytest.raises(FormatError, match=r"-r label=toxic -r sequence=rev_id\).*toxic, score"):
        lasca.read(path)
    assert lasca.read(path, label="toxic", sequence="rev_id").annotators == ("w0", "w1")


def test_labels_that_never_come_again_are_no_labels(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = [f"{k},{k // 2},w{k % 2}" for k in range(24)]
    path.write_text("\n".join(["annotation,comment_id,worker", *rows]) + "\n")
    with pytest.raises(FormatError, match="nearly every label stands once only"):
        lasca.read(path, sequence="comment_id")


def test_columns_of_different_things_are_named_and_the_fullest_is_proposed(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    rows = ["Ada\tB-pers\tB-pers.ind\tO\tQ1", "of\tO\tO\tO\t_", "Rome\tB-loc\tO\tB-loc.town\tQ2"]
    path.write_text("\n".join(["TOKEN\tCOARSE\tFINE\tNESTED\tLINK", *rows * 3]) + "\n")
    with pytest.raises(FormatError, match=r"2 \(COARSE\).*-r column=2"):
        lasca.read(path)


@pytest.mark.parametrize("tags", [("B_PER", "I_PER", "O"), ("b-per", "i-per", "o"), ("PER-B", "PER-I", "O")])
def test_tags_that_are_written_in_another_way_are_told(tmp_path: Path, tags: tuple[str, str, str]) -> None:
    path = tmp_path / "x.conll"
    path.write_text("".join(f"{word} {tag}\n" for word, tag in zip(("Ada", "Lovelace", "left"), tags)))
    corpus = lasca.read(path)
    assert set(corpus.labels) == set(tags)
    assert any("written in another way" in note for note in corpus.load_report.notes)
    path.write_text("Ada B_side\nLovelace vitamin_B\nleft O\n")
    assert not any("another way" in note for note in lasca.read(path).load_report.notes)


def test_json_rows_of_spans_are_no_labels_of_documents(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    row = {"doc_id": 1, "text": "Ada left Rome", "start": 0, "end": 3, "label": "PER", "annotator": "ann"}
    rows = [{**row, "doc_id": k, "text": f"Ada left Rome {k}"} for k in range(12)]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    corpus = lasca.read(path)
    assert corpus.load_report.format == "span-table"
    assert corpus.labels == ("B-PER", "O")


def test_one_person_beside_models_is_asked_about_by_an_option_that_works(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = [f"{k},a text of {k} words,{'xyz'[k % 3]},{'xyz'[k // 2 % 3]},{'xyz'[k // 3 % 3]}" for k in range(12)]
    path.write_text("\n".join(["id,text,human,gpt-4,claude", *rows]) + "\n")
    with pytest.raises(FormatError, match="-r annotators=human,gpt-4,claude"):
        lasca.read(path)
    assert lasca.read(path, annotators="human,gpt-4,claude").kinds == ("model", "model", "person")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"d1.txt": "Ada left", "d1.a1": "T1\tPER 0 3\tAda\n", "d1.a2": "R1\tX Arg1:T1 Arg2:T1\n"}, "join NAME.a1"),
        ({"d1.txt": "Ada left", "d1.ann1": "T1\tPER 0 3\tAda\n", "d1.ann2": "T1\tLOC 0 3\tAda\n"}, "folder for each"),
        ({"responses.txt": "A1 q1 0\nA2 q1 1\nA1 q2 1\nA3 q2 1\n"}, "header such as worker,item,label"),
        ({"x.jsonl": '{"text": "a", "q": [], "q-suggestion": 1, "q-suggestion-metadata": {}}'}, "FeedbackDataset"),
        ({"a.csv": "question,worker,answer\n1,w,a\n", "b.csv": "question,truth\n1,a\n"}, "make them alike"),
        ({"a.csv": "row,rater,label1,label2\n1,w,a,b\n2,w,b,a\n"}, "-r label=label1 -r sequence=row"),
        ({"a.jsonl": '```json\n{"text": "Ada", "label": []}\n```\n'}, "a.jsonl:1: this is not JSON"),
    ],
)
def test_refusals_that_say_what_to_do(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(FormatError, match=message):
        lasca.read(tmp_path)


@pytest.mark.parametrize(
    ("name", "data", "tool"),
    [
        ("a.json", b'[{"documentName": "d", "document": "Ada", "annotation": [{"start": 0, "end": 3}]}]', "UBIAI"),
        ("a.json", b'[{"fields": {"text": "Ada"}, "responses": [], "external_id": null}]', "Argilla 1"),
        ("a.json", b'{"corpusId": "c", "text": "Ada", "tokens": ["Ada"], "views": [{"viewName": "NER"}]}', "TALEN"),
        ("a.json", b'{"answers": [{"workerId": "w", "answerContent": {"x": {"entities": []}}}]}', "SageMaker"),
        ("a.xml", b'<T><TEXT><![CDATA[Ada]]></TEXT><TAGS><PER id="P0" spans="0~3" text="Ada"/></TAGS></T>', "MAE"),
    ],
)
def test_more_tools_are_refused_by_name(tmp_path: Path, name: str, data: bytes, tool: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(FormatError, match=rf"looks like an export of .*{tool}"):
        lasca.read(tmp_path / name)


@pytest.mark.parametrize("name", ["x.conll", "x.csv", "x.tsv", "x.jsonl"])
def test_empty_files_copies_and_readmes_beside_the_data_change_nothing(tmp_path: Path, name: str) -> None:
    """A CoNLL file beside its own copy was two annotators, beside a README or an empty file of no known format."""
    text = {
        "x.conll": "Ada B-PER B-PER\nvisited O O\n\nNew B-LOC O\nYork I-LOC O\n",
        "x.csv": "O,O,B-PER\nO,,O\n\nO,B-PER,B-PER\n",
        "x.tsv": "text\trater 1\trater 2\nAda was here\tgood\tbad\nit rained a lot\tbad\tbad\n",
        "x.jsonl": '{"text": "Ada visited", "label": [[0, 3, "PER"]]}\n',
    }[name]
    stem, suffix = name.split(".")
    (tmp_path / name).write_text(text)
    alone = read(tmp_path / name)
    (tmp_path / f"{stem} (1).{suffix}").write_text(text)
    (tmp_path / f"a.{suffix}").write_text("")
    (tmp_path / "README.md").write_text("# Data\n\nWho did what.\n")
    (tmp_path / "LICENSE").write_text("MIT License\n\nCopyright\n")
    corpus = read(tmp_path)
    assert [corpus.sequence(k) for k in range(len(corpus))] == [alone.sequence(k) for k in range(len(alone))]
    assert (corpus.annotators, dict(corpus.golds).keys()) == (alone.annotators, dict(alone.golds).keys())
    counts = corpus.load_report.counts
    assert counts["copies of other files left out"] == counts["empty files"] == 1
    assert counts["files about the data left out"] == 2


def test_a_copy_that_differs_is_no_other_annotator(tmp_path: Path) -> None:
    for name, label in (("ann", "B-PER"), ("ann (1)", "O"), ("ben", "B-PER")):
        (tmp_path / f"{name}.txt").write_text(f"Ada {label}\nvisited O\nRome B-LOC\n")
    with pytest.raises(FormatError, match=r"ann \(1\)\.txt: this looks like a second copy of the file of 'ann'"):
        read(tmp_path)


def test_only_readme_is_still_a_file(tmp_path: Path) -> None:
    (tmp_path / "README.txt").write_text("Ada B-PER\nvisited O\n")
    assert read(tmp_path).n_tokens == 2
    (tmp_path / "README.txt").unlink()
    (tmp_path / "readme.txt").write_text(TEXT)
    (tmp_path / "readme.ann").write_text("T1\tPER 0 3\tAda\n")
    assert read(tmp_path).labels == ("B-PER", "O")


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("format", ["label-studio", "mturk-results", "brat", "webanno", "conll", "table"])
def test_files_in_utf16_are_read_as_those_in_utf8(tmp_path: Path, format: str, order: str) -> None:
    """Excel's "Unicode text" is UTF-16: results of crowds were no format, or tables of another one."""
    for folder, encoding in (("a", "utf-8"), ("b", order)):
        for name, text in SAMPLES[format].items():
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes((b"" if encoding == "utf-8" else "\ufeff".encode(order)) + text.encode(encoding))
    assert read(tmp_path / "a") == read(tmp_path / "b")

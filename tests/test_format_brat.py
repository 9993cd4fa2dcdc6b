"""brat: folders of annotators, fragments, missing and empty files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError
from lasca.formats import brat
from lasca.formats.base import files_of
from mutations import FEW, MANY, assert_only_lasca_errors_in_files, samples, sources

TEXT = "😊 Ada Lovelace visited New York ."
BOTH = ["O", "B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O"]
ANN = b"T1\tPER 2 14\tAda Lovelace\nT2\tLOC 23 31\tNew York\n"


def folder(**annotators: bytes | None) -> dict[str, bytes]:
    files = {f"{who}/doc1.txt": TEXT.encode() for who in annotators}
    return files | {f"{who}/doc1.ann": ann for who, ann in annotators.items() if ann is not None}


def read(files: dict[str, bytes], **options: Any) -> CrowdCorpus:
    return brat.read(sources(files), **options)


def table(corpus: CrowdCorpus) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in corpus.to_table().to_pylist():
        found.setdefault(entry["annotator"], []).append(entry["label"])
    return found


def test_the_sample_of_the_docstring(tmp_path: Path) -> None:
    (sample,) = samples(brat)
    for who in ("ada", "bob"):
        (tmp_path / who).mkdir()
        (tmp_path / who / "doc1.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "ada" / "doc1.ann").write_text(sample, encoding="utf-8")
    files = files_of(tmp_path)
    assert brat.sniff(files) > 0.9
    corpus = brat.read(files)
    assert table(corpus) == {"ada": BOTH}
    assert list(corpus.sequence_ids) == ["doc1"]


def test_missing_is_missing_and_empty_is_all_o() -> None:
    corpus = read(folder(ada=ANN, bob=b"", eve=None))
    assert table(corpus) == {"ada": BOTH, "bob": ["O"] * 7}


def test_utf16_offsets_are_recognised() -> None:
    corpus = read(folder(ada=b"T1\tPER 3 15\tAda Lovelace\n"))
    assert table(corpus)["ada"][1:3] == ["B-PER", "I-PER"]
    with pytest.raises(FormatError, match=r"different units.*doc1.ann:1.*doc1.ann:2"):
        read(folder(ada=b"T1\tPER 3 15\tAda Lovelace\nT2\tLOC 23 31\tNew York\n"))


def test_fragments_are_refused_unless_asked_for() -> None:
    files = folder(ada=b"T1\tPER 2 5;15 22\tAda visited\n")
    with pytest.raises(FormatError, match=r"ada/doc1.ann:1.*several pieces"):
        read(files)
    assert table(read(files, discontinuous="cover"))["ada"][1:4] == ["B-PER", "I-PER", "I-PER"]
    assert table(read(files, discontinuous="parts"))["ada"][1:4] == ["B-PER", "O", "B-PER"]
    assert read(files, discontinuous="parts").load_report.counts["spans in several pieces"] == 1
    with pytest.raises(ParameterError, match="discontinuous"):
        read(files, discontinuous="maybe")


def test_other_lines_are_counted() -> None:
    extra = b"R1\tKnows Arg1:T1 Arg2:T2\n#1\tAnnotatorNotes T1\thm\n*\tEquiv T1 T2\nA1\tSure T1\n\n"
    corpus = read(folder(ada=ANN + extra))
    counts = corpus.load_report.counts
    assert (counts["relations"], counts["notes"], counts["attributes"]) == (2, 1, 1)


def test_folders_without_a_common_document_are_asked_about() -> None:
    files = {"north/a.txt": TEXT.encode(), "north/a.ann": ANN, "south/b.txt": TEXT.encode(), "south/b.ann": ANN}
    with pytest.raises(
        FormatError, match=r"no document stands in two of them .name and text.: north \(1\), south \(1\).*folders=parts"
    ):
        read(files)
    assert read(files, folders="annotators").annotators == ("north", "south")
    parts = read(files, folders="parts")
    assert (parts.annotators, list(parts.sequence_ids)) == (("annotator",), ["north/a", "south/b"])
    with pytest.raises(FormatError, match=r"doc1.ann:3.*not a line"):
        read(folder(ada=ANN + b"hello\n"))
    for bad in (b"T1 PER 2 14\n", b"T1\tPER 2\tx\n", b"T1\tPER a b\tx\n"):
        with pytest.raises(FormatError, match=r"doc1.ann:1.*must read"):
            read(folder(ada=bad))


def test_one_text_for_all_a_gold_folder_and_a_wrapping_folder() -> None:
    files = {"doc1.txt": TEXT.encode(), "ada/doc1.ann": ANN, "gold/doc1.ann": ANN}
    corpus = read(files)
    assert corpus.annotators == ("ada",)
    assert corpus.label_names(corpus.golds["gold"]) == [BOTH]
    assert read(files, gold="ada").annotators == ("gold",)
    wrapped = {f"export/{name}": data for name, data in folder(ada=ANN, bob=ANN).items()}
    assert read(wrapped) == read(folder(ada=ANN, bob=ANN))
    flat = {"doc1.txt": TEXT.encode(), "doc1.ann": ANN, "doc2.txt": b"nobody"}
    assert table(read(flat)) == {"annotator": BOTH}
    assert read(flat).load_report.counts["texts nobody labelled"] == 1
    lent = folder(ada=ANN) | {"bob/doc1.ann": b"T1\tPER 2 14\tAda Lovelace\n"}  # who has no text has that of others
    assert table(read(lent)) == {"ada": BOTH, "bob": ["O", "B-PER", "I-PER", "O", "O", "O", "O"]}
    with pytest.raises(FormatError, match=r"no text 'doc1.txt'"):
        read({"ada/doc1.ann": ANN})
    other = folder(ada=ANN, bob=ANN) | {"bob/doc1.txt": TEXT.encode() + b"!"}
    with pytest.raises(FormatError, match=r"no document stands in two of them.*folders=parts"):
        read(other)  # train/1.txt and test/1.txt
    with pytest.raises(FormatError, match="another text"):
        read(other, folders="annotators")


def test_line_breaks_inside_a_document() -> None:
    files = {"a/d.txt": b"One\r\nTwo Three\n", "a/d.ann": b"T1\tX 0 8\tOne Two\n"}
    assert table(read(files)) == {"a": ["B-X", "I-X", "O"]}


VALID = folder(ada=ANN + b"R1\tKnows Arg1:T1 Arg2:T2\n", bob=b"T1\tPER 2 14\tAda Lovelace\r\n", eve=None)


def attempt(files: dict[str, bytes]) -> None:
    brat.sniff(sources(files))
    read(files, discontinuous="parts")


def test_mutations_give_only_our_errors() -> None:
    assert_only_lasca_errors_in_files(attempt, VALID, max_examples=FEW)


@pytest.mark.fuzz
def test_many_mutations_give_only_our_errors() -> None:
    assert_only_lasca_errors_in_files(attempt, VALID, max_examples=MANY)


def test_files_that_end_in_ann_and_are_something_else_are_not_claimed() -> None:
    other = {"b.ann": b"<annotations/>\n"}
    right = {"a.txt": TEXT.encode(), "a.ann": ANN, "b.txt": TEXT.encode()}
    assert brat.sniff(sources(right)) > 0.9
    assert brat.sniff(sources(right | other)) == 0
    assert brat.sniff(sources({"a.ann": ANN})) == 0


def test_a_folder_called_final_beside_people_is_a_gold() -> None:
    corpus = read(folder(ann=ANN, ben=b"", final=ANN))
    assert (corpus.annotators, list(corpus.golds)) == (("ann", "ben"), ["final"])
    assert read(folder(ann=ANN, final=ANN)).annotators == ("ann", "final")

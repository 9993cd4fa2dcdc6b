"""What all readers share: JSON with line numbers, files, the collector, time stamps, the parts of a span."""

from __future__ import annotations

import json
import zipfile
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from lasca.errors import FormatError
from lasca.formats.base import (
    Collector,
    as_label,
    as_name,
    as_offset,
    as_time,
    files_of,
    natural_key,
    parse_json,
    parse_json_items,
    parse_json_lines,
    pick,
    text_id,
    unwrapped,
)
from lasca.formats.documents import Verdict, document_corpus
from lasca.formats.sources import loads
from mutations import source, sources

# --- JSON ----------------------------------------------------------------------------------------------------------


def items(text: str) -> list[tuple[int, dict[str, Any]]]:
    return list(parse_json_items(source("f.json", text.encode())[0]))


def test_items_of_arrays_lines_and_single_objects_have_lines() -> None:
    assert items('\n[{"a": 1},\n\n {"a":\n 2}\n]\n') == [(2, {"a": 1}), (4, {"a": 2})]
    assert items('{"a": 1}\n\n{"a": 2}\n') == [(1, {"a": 1}), (3, {"a": 2})]
    assert items('{"a":\n 1}') == [(1, {"a": 1})]
    assert items("[]") == items("  ") == items("") == []
    assert items('\ufeff[{"a": NaN}]') == [(1, {"a": None})]


@pytest.mark.parametrize(
    ("text", "line", "match"),
    [
        ('[{"a": 1}\n{"a": 2}]', 2, "comma"),
        ('[{"a": 1},\n]', 2, "comma behind the last"),
        ('[{"a": 1},\n3]', 2, "object was expected"),
        ('[{"a": 1}]\nx', 2, "more after"),
        ('{"a": 1}\n{"a": }', 2, "not JSON"),
        ('{"a": 1},\n{"a": 2}', 1, "Take the commas off"),
        ('[{"a": 1}', 1, "comma"),
        ('[{"a":\n\n }]', 3, "not JSON"),
        ('{"a": "\\ud800"}', 1, "half a character"),
        ("[" + '{"a":' * 5000, 1, "cannot be read"),
        ('[{"a": ' + "9" * 5000 + "}]", 1, "cannot be read"),
    ],
)
def test_broken_json_is_one_error_with_its_line(text: str, line: int, match: str) -> None:
    with pytest.raises(FormatError, match=rf"f.json:{line}: .*{match}"):
        items(text)


def test_whole_files_lines_and_cells() -> None:
    assert parse_json(source("f", b' {"a": "\\ud83d\\ude0a"} ')[0]) == {"a": "😊"}
    with pytest.raises(FormatError, match="f:2: there is more"):
        parse_json(source("f", b"{}\n{}")[0])
    with pytest.raises(FormatError, match="f:1: this is not JSON"):
        parse_json(source("f", b"")[0])
    with pytest.raises(FormatError, match=r'f:2: this is not JSON.*23456789", "c": \? '):
        parse_json(source("f", b'{"a": 1,\n"b": "0123456789012345678901234567890123456789", "c": ?  \n }')[0])
    assert list(parse_json_lines(source("f", b'{"a": 1}\r\n\n{"a": 2}')[0])) == [(1, {"a": 1}), (3, {"a": 2})]
    for bad in (b"\n[1]", b"\n{} {}", b"\n{"):
        with pytest.raises(FormatError, match="f:2"):
            list(parse_json_lines(source("f", bad)[0]))
    for text in ("[" * 100_000, "{", '"\\ud800"'):
        with pytest.raises(ValueError, match=r"."):
            loads(text)


def test_text_that_is_not_utf8_names_its_line() -> None:
    with pytest.raises(FormatError, match=r"f:2.*UTF-8"):
        source("f", b"ab\ncd\xff")[0].text()
    assert source("f", "ä".encode("utf-16"))[0].text() == "ä"


# --- files ---------------------------------------------------------------------------------------------------------


def test_zip_members_may_not_escape_or_lie(tmp_path: Path) -> None:
    for name in ("../x.txt", "/x.txt", "C:/x.txt", "a/../../x"):
        with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
            archive.writestr(zipfile.ZipInfo(name), "x")
        with pytest.raises(FormatError, match="outside"):
            files_of(tmp_path / "bad.zip")
    with zipfile.ZipFile(tmp_path / "good.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/b.txt", "hello" * 50)
        archive.writestr("__MACOSX/a", "litter")
    (file,) = files_of(tmp_path / "good.zip")
    assert (file.name, file.head(5)) == ("a/b.txt", b"hello")
    data = bytearray((tmp_path / "good.zip").read_bytes())
    data[45] ^= 0xFF
    (tmp_path / "hurt.zip").write_bytes(data)
    with pytest.raises(FormatError, match="zip"):
        files_of(tmp_path / "hurt.zip")


def test_picking_and_unwrapping() -> None:
    files = sources({"x/a/d.tsv": b"", "x/b/d.tsv": b"", "x/b/notes.md": b""})
    collector = Collector(files, "f")
    picked = pick(files, (".tsv",), collector)
    assert [f.name for f in unwrapped(picked)] == ["a/d.tsv", "b/d.tsv"]
    assert collector.counts == {"other files": 1}
    assert [f.name for f in unwrapped(sources({"a/d.tsv": b"", "a/e.tsv": b""}))] == ["a/d.tsv", "a/e.tsv"]
    assert unwrapped([]) == []
    assert pick(source("any", b""), (".tsv",), collector)[0].name == "any"


def test_names_sort_naturally() -> None:
    assert sorted(["s10", "s2", "s1a", "s1", "a"], key=natural_key) == ["a", "s1", "s1a", "s2", "s10"]


# --- the collector -------------------------------------------------------------------------------------------------


def collected(*entries: tuple[list[str], str | None]) -> Collector:
    collector = Collector([], "f")
    collector.sequence("s", ["x", "y"], where="f:0")
    for k, (labels, time) in enumerate(entries):
        collector.annotate("s", "a", labels, time=time, where=f"f:{k + 1}")
    return collector


def test_the_latest_answer_wins_whatever_the_order() -> None:
    entries = [(["O", "O"], "1"), (["B-X", "O"], "2"), (["O", "O"], "3"), (["O", "B-X"], "1")]
    for order in permutations(entries):
        collector = collected(*order)
        corpus = collector.corpus()
        assert corpus.label_names([corpus.annotation_label[0], corpus.annotation_label[1]]) == [["O", "O"]]
        assert collector.counts == {"repeated": 1, "superseded": 2}


def test_answers_that_cannot_be_told_apart_are_an_error() -> None:
    for entries in [
        [(["O", "O"], None), (["B-X", "O"], None)],
        [(["O", "O"], "1"), (["B-X", "O"], None)],
        [(["O", "O"], "1"), (["B-X", "O"], "2"), (["O", "B-X"], "2")],
    ]:
        for order in permutations(entries):
            with pytest.raises(FormatError, match="twice"):
                collected(*order).corpus()
    assert collected((["O", "O"], None), (["O", "O"], "2")).corpus().n_annotations == 2


def test_tokens_and_labels_must_fit() -> None:
    collector = collected()
    collector.sequence("s", ["x", "y"], where="f:8")
    with pytest.raises(FormatError, match=r"f:9.*other tokens.*f:0"):
        collector.sequence("s", ["x", "z"], where="f:9")
    with pytest.raises(FormatError, match=r"f:9.*1 labels for 2 tokens"):
        collector.annotate("s", "a", ["O"], where="f:9")
    with pytest.raises(FormatError, match="no sequence"):
        Collector([], "f").corpus()


# --- parts of a span -----------------------------------------------------------------------------------------------


def test_offsets_labels_and_names() -> None:
    assert [as_offset(v, "start", "f:1") for v in (3, "3", 3.0)] == [3, 3, 3]
    for bad in (-1, "x", "-1", True, None, 2.5, float("inf"), 2**40, [], "٣"):
        with pytest.raises(FormatError, match="f:1: start must be"):
            as_offset(bad, "start", "f:1")
    assert as_label(7, "f:1") == "7"
    assert as_name(" ada ", "x", "f:1") == "ada"
    for bad in ("", " ", None, True, 2.5, [], {}, 10**100):
        with pytest.raises(FormatError, match="f:1"):
            as_label(bad, "f:1")


def test_time_stamps_sort_as_strings() -> None:
    noon = as_time("2024-03-12T12:00:00Z")
    assert noon == as_time("2024-03-12T14:00:00+02:00") == as_time("2024-03-12 12:00:00") == as_time(1710244800)
    assert noon == as_time(1710244800000) == as_time("Tue Mar 12 12:00:00 PDT 2024")
    late = as_time("2024-03-12T12:00:00.5Z")
    assert noon is not None
    assert late is not None
    assert noon < late
    for nothing in (None, "", "yesterday", True, -5, 1e300, [], "0001-01-01T00:00:00+14:00", float("nan")):
        assert as_time(nothing) is None


def test_texts_without_ids_have_the_same_id_everywhere() -> None:
    assert text_id("a") == text_id("a") != text_id("b")
    assert json.dumps(text_id("😊")).startswith('"text-')


def test_long_labels_are_labels_where_documents_share_them() -> None:
    files = source("x.jsonl", b"")

    def verdicts(said: list[str]) -> list[Verdict]:
        return [Verdict(str(k), f"text {k}", "x.jsonl", "ann", (label,)) for k, label in enumerate(said)]

    shared = ["not good at all", "good as it is", "not good at all", "good as it is", "good"]
    corpus = document_corpus(verdicts(shared), "", Collector(files, "x"))
    assert [corpus.labels[code] for code in corpus.annotation_label] == shared
    with pytest.raises(FormatError, match="written answers"):
        document_corpus(
            verdicts(["it is not good", "it was so good", "good as it is", "good"]), "", Collector(files, "x")
        )

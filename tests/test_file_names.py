"""Whose files are: by their names, by their folders, by both; people, models and golds by what they are called."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.formats.layers import refuse_layers
from lasca.formats.names import role_of, speaker

TEXTS = ("Ada met Ben in Rome", "Cleo left Oslo at last")
SPANS = ([[0, 3, "PER"], [15, 19, "LOC"]], [[0, 4, "PER"], [10, 14, "LOC"]])


def votes(corpus: lasca.CrowdCorpus) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in corpus.to_table().to_pylist():
        found.setdefault(row["annotator"], []).append(row["label"])
    return found


def doccano(path: Path, n: int, **more: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"id": i, "text": text, "label": SPANS[i][:n], **more} for i, text in enumerate(TEXTS)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def conll(path: Path, i: int, n: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    first = {TEXTS[i][a:b]: f"B-{label}" for a, b, label in SPANS[i][:n]}
    path.write_text("".join(f"{word}\t{first.get(word, 'O')}\n" for word in TEXTS[i].split()))


def brat(folder: Path, name: str, i: int, n: int, text: str | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"T{k}\t{label} {a} {b}\t{TEXTS[i][a:b]}\n" for k, (a, b, label) in enumerate(SPANS[i][:n], 1)]
    (folder / f"{name}.ann").write_text("".join(lines))
    if text is not None:
        (folder / f"{text}.txt").write_text(TEXTS[i])


@pytest.mark.parametrize(
    ("name", "role"),
    [("gpt-4o", "model"), ("RoBERTa", "model"), ("distilbert_v2", "model"), ("llm 1", "model"), ("qwen2.5", "model"),
     ("Robert", "annotator"), ("Albert", "annotator"), ("Roberta", "annotator"), ("Tillmann", "annotator"),
     ("Claude Dupont", "annotator"), ("Claude Opus", "model"), ("claude", "model"),
     ("hubert", "annotator"), ("ann@claude.org", "annotator"), ("ann", "annotator")],
)  # fmt: skip
def test_people_are_no_models(name: str, role: str) -> None:
    assert speaker(name) == role_of(name) == role


def test_golds_by_the_names_of_files() -> None:
    for name in (
        "gold",
        "Gold",
        "gold_standard",
        "gold1",
        "goldstandard",
        "ground_truth",
        "curation",
        "consensus",
        "adjudicator",
    ):
        assert speaker(name) == "gold", name
    for name in ("goldberg", "Golda", "final_ada", "expert1", "truthful"):
        assert speaker(name) == "annotator", name


def test_an_annotator_called_robert_votes(tmp_path: Path) -> None:
    path = tmp_path / "x.conll"
    path.write_text("token Robert Anna gpt-4\nAda B-PER B-PER O\nleft O O O\nOslo B-LOC O O\n")
    corpus = lasca.read(path)
    assert dict(zip(corpus.annotators, corpus.kinds)) == {"Robert": "person", "Anna": "person", "gpt-4": "model"}
    assert any("Models do not vote" in note and "gpt-4" in note for note in corpus.load_report.notes)


def test_a_file_of_the_same_name_in_a_folder_for_each_annotator(tmp_path: Path) -> None:
    for name, n in (("ada", 2), ("ben", 1), ("gold", 2)):
        doccano(tmp_path / "export" / name / "all.jsonl", n)
    for corpus in (lasca.read(tmp_path), lasca.read(tmp_path / "export")):
        assert corpus.annotators == ("ada", "ben")
        assert list(corpus.golds) == ["gold"]
        assert votes(corpus)["ben"] != votes(corpus)["ada"]


def test_models_by_the_names_of_files_and_of_lines(tmp_path: Path) -> None:
    doccano(tmp_path / "files" / "gpt-4.jsonl", 2)
    doccano(tmp_path / "files" / "ada.jsonl", 1)
    assert lasca.read(tmp_path / "files").kinds == ("person", "model")
    doccano(tmp_path / "gpt.jsonl", 2, model="gpt-4")
    doccano(tmp_path / "claude.jsonl", 1, model="claude-3")
    joined = tmp_path / "answers.jsonl"
    joined.write_text((tmp_path / "gpt.jsonl").read_text() + (tmp_path / "claude.jsonl").read_text())
    corpus = lasca.read(joined)
    assert dict(zip(corpus.annotators, corpus.kinds)) == {"claude-3": "model", "gpt-4": "model"}
    doccano(tmp_path / "cars.jsonl", 2, model="Golf III")
    assert lasca.read(tmp_path / "cars.jsonl").annotators == ("cars",)


def test_models_among_annotators_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("text,annotator,label\na b,ann,x\na b,gpt-4,y\nc d,ann,y\nc d,gpt-4,y\n")
    assert lasca.read(path).kinds == ("person", "model")
    path.write_text("text,annotator,role,label\na b,ann,annotator,x\na b,gpt-4,annotator,y\n")
    assert lasca.read(path).kinds == ("person", "person")


def test_tables_of_spans_without_annotators_that_share_texts_are_one_persons_each(tmp_path: Path) -> None:
    for name, label in (("ada", "PER"), ("ben", "ORG")):
        (tmp_path / f"{name}.csv").write_text(f"text,start,end,label\n{TEXTS[0]},0,3,{label}\n")
    corpus = lasca.read(tmp_path)
    assert corpus.annotators == ("ada", "ben")
    assert corpus.n_sequences == 1
    (tmp_path / "ben.csv").write_text(f"text,start,end,label\n{TEXTS[1]},0,4,PER\n")
    assert list(lasca.read(tmp_path).golds) == ["gold"]


@pytest.mark.parametrize("pattern", ["doc{i}_{who}", "doc{i}.{who}", "{who}-doc{i}"])
@pytest.mark.parametrize("kind", ["conll", "brat", "brat with one text"])
def test_files_called_by_document_and_annotator(tmp_path: Path, pattern: str, kind: str) -> None:
    for i in range(2):
        for who, n in (("ada", 2), ("ben", 1)):
            name = pattern.format(i=i, who=who)
            if kind == "conll":
                conll(tmp_path / f"{name}.conll", i, n)
            else:
                brat(tmp_path, name, i, n, name if kind == "brat" else f"doc{i}")
    corpus = lasca.read(tmp_path)
    assert corpus.annotators == ("ada", "ben")
    assert corpus.n_sequences == 2
    assert votes(corpus)["ada"].count("O") < votes(corpus)["ben"].count("O")
    assert "called by a document and an annotator" in corpus.load_report.notes[0]


def test_files_with_other_texts_are_not_several_annotators(tmp_path: Path) -> None:
    for i in range(2):
        brat(tmp_path, f"doc{i}_a", i, 2, f"doc{i}_a")
        brat(tmp_path, f"doc{i}_b", 1 - i, 2, f"doc{i}_b")
    assert lasca.read(tmp_path).annotators == ("annotator",)


def test_files_without_a_common_text_may_be_parts(tmp_path: Path) -> None:
    for i, name in enumerate(("news", "tweets")):
        words = TEXTS[i].split()
        row = {"id": name, "tokens": words, "ner_tags": ["B-PER", *["O"] * (len(words) - 1)]}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    corpus = lasca.read(tmp_path)
    assert (corpus.annotators, list(corpus.golds)) == ((), ["gold"])
    assert any("parts of one set" in note for note in corpus.load_report.notes)
    tables = tmp_path / "tables"
    tables.mkdir()
    for i, name in enumerate(("part1", "part2")):
        rows = "".join(f"{i},{word},O\n" for word in TEXTS[i].split())
        (tables / f"{name}.csv").write_text(f"sentence_id,token,label\n{rows}")
    with pytest.raises(lasca.errors.FormatError, match="-r annotator=file"):
        lasca.read(tables)
    assert lasca.read(tables, annotator="file").annotators == ("part1", "part2")


def test_a_column_of_sequences_is_known_by_its_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = [f"{i};{word};O;B-X" for i, text in enumerate(TEXTS) for word in text.split()]
    path.write_text("\n".join(["satz;token;ann1;ann2", *rows]) + "\n")
    corpus = lasca.read(path)
    assert corpus.n_sequences == 2
    assert corpus.annotators == ("ann1", "ann2")
    rows = [f"{k};{word};O;B-X" for k, word in enumerate(" ".join(TEXTS).split())]
    path.write_text("\n".join(["nr;token;ann1;ann2", *rows]) + "\n")
    assert lasca.read(path).n_sequences == 1


def test_folders_of_documents_hold_a_file_of_each_annotator(tmp_path: Path) -> None:
    for i in range(2):
        for who, n in (("ada", 2), ("ben", 1)):
            conll(tmp_path / "columns" / "annotation" / f"doc{i}.txt" / f"{who}.conll", i, n)
            brat(tmp_path / "brat" / f"doc{i}", who, i, n, "text")
            brat(tmp_path / "parts" / ("train", "test")[i] / who, f"doc{i}", i, n, f"doc{i}")
        conll(tmp_path / "columns" / "curation" / f"doc{i}.txt" / "CURATION_USER.conll", i, 2)
    for folder, golds in (("columns", ["curation"]), ("brat", []), ("parts", [])):
        corpus = lasca.read(tmp_path / folder)
        assert (corpus.annotators, list(corpus.golds), corpus.n_sequences) == (("ada", "ben"), golds, 2)
        assert votes(corpus)["ada"].count("O") < votes(corpus)["ben"].count("O")


@pytest.mark.parametrize("pattern", ["{who}/doc{i}", "doc{i}/{who}", "doc{i}_{who}", "train{i}/{who}"])
def test_json_with_a_file_for_each_document_and_annotator(tmp_path: Path, pattern: str) -> None:
    for i in range(2):
        for who, n in (("ada", 2), ("ben", 1)):
            path = tmp_path / f"{pattern.format(i=i, who=who)}.jsonl"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps({"id": 1, "text": TEXTS[i], "label": SPANS[i][:n]}))
    with pytest.raises(lasca.errors.FormatError, match="-r link=text"):  # every file counts from 1
        lasca.read(tmp_path)
    corpus = lasca.read(tmp_path, link="text")
    assert (corpus.annotators, corpus.n_sequences) == (("ada", "ben"), 2)
    assert votes(corpus)["ada"].count("O") < votes(corpus)["ben"].count("O")


def test_parts_of_the_data_are_no_annotators(tmp_path: Path) -> None:
    for i, part in enumerate(("train", "test")):
        path = tmp_path / part / "ada.jsonl"
        path.parent.mkdir()
        path.write_text(json.dumps({"id": i, "text": TEXTS[i], "label": SPANS[i]}))
    assert lasca.read(tmp_path).annotators == ("ada",)


def test_layers_in_files_are_no_annotators(tmp_path: Path) -> None:
    rows = {"ner": "B-PER I-PER O", "tense": "O O B-PAST"}
    for i in range(8):
        for layer, tags in rows.items():
            words = ("Ada", f"Lee{i}", "left")
            lines = "".join(f"{word}\t{tag}\n" for word, tag in zip(words, tags.split()))
            (tmp_path / f"doc{i}_{layer}.conll").write_text(lines)
    with pytest.raises(lasca.errors.FormatError, match=r"no label in common.*-r voters=ner"):
        lasca.read(tmp_path)
    assert lasca.read(tmp_path, voters="all").annotators == ("ner", "tense")
    assert lasca.read(tmp_path, voters="ner").votes == (True, False)


def test_the_same_type_begun_and_gone_on_with_is_in_common() -> None:
    said = {"ann": [["B-PER", "O"]] * 8, "ben": [["O", "I-PER"]] * 8}
    corpus = CrowdCorpus.from_sequences([[f"Ada{i}", "Lee"] for i in range(8)], said)
    refuse_layers(replace(corpus, load_report=replace(corpus.load_report, format="brat")))
    others = CrowdCorpus.from_sequences([[f"Ada{i}", "Lee"] for i in range(8)], {**said, "ben": [["O", "I-LOC"]] * 8})
    with pytest.raises(lasca.errors.FormatError, match="no label in common"):
        refuse_layers(replace(others, load_report=replace(others.load_report, format="brat")))


def test_a_second_copy_of_a_file_is_no_annotator(tmp_path: Path) -> None:
    for name in ("ada", "ada (1)", "ben"):
        doccano(tmp_path / f"{name}.jsonl", 2)
    same = lasca.read(tmp_path)  # byte for byte: nothing is lost with it
    assert same.annotators == ("ada", "ben")
    assert same.load_report.counts["copies of other files left out"] == 1
    doccano(tmp_path / "ada (1).jsonl", 1)  # another state of the file: which one counts?
    with pytest.raises(lasca.errors.FormatError, match="second copy of the file of 'ada'"):
        lasca.read(tmp_path)
    assert lasca.read(tmp_path, skip_bad=True).annotators == ("ada", "ben")
    (tmp_path / "ada.jsonl").unlink()
    assert lasca.read(tmp_path).annotators == ("ada (1)", "ben")


def test_annotators_with_ids_of_their_own_are_linked_by_texts(tmp_path: Path) -> None:
    for k, who in enumerate(("ada", "ben")):
        rows = [{"id": 10 * k + i, "text": text, "label": SPANS[i][: k + 1]} for i, text in enumerate(TEXTS)]
        (tmp_path / f"{who}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    corpus = lasca.read(tmp_path)
    assert (corpus.annotators, corpus.n_sequences) == (("ada", "ben"), 2)
    assert any("ids of their own" in note for note in corpus.load_report.notes)


def test_files_called_train_and_test_are_no_annotators(tmp_path: Path) -> None:
    for i, part in enumerate(("train", "test")):
        (tmp_path / f"{part}.jsonl").write_text(json.dumps({"id": i, "text": TEXTS[i], "label": SPANS[i]}))
    assert lasca.read(tmp_path).annotators == ("annotator",)

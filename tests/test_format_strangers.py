"""Files of strangers: shapes of real corpora, tools and scripts that were read wrongly, or refused without a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError

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

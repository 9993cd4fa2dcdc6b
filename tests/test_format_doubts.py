"""What was read and still looks as if something else was meant is asked about, whatever the format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError

TEXTS = ["Ada Lovelace visited New York", "Peter Blackburn works for Siemens", "a quick fox ran from Berlin",
         "EU rejects German lamb", "John Smith met Mary at IBM", "nothing to see here today", "London and Paris are",
         "she bought shares of Apple"]  # fmt: skip
NAMES = [["Ada Lovelace", "New York"], ["Peter Blackburn"], ["Berlin"], ["EU"], ["John Smith", "Mary"], ["nothing"],
         ["London", "Paris"], ["Apple"]]  # fmt: skip


def table(header: str, *rows: list[object]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([header.split(","), *rows])
    return stream.getvalue()


def marked(k: int) -> str:
    text = TEXTS[k]
    for name in NAMES[k]:
        text = text.replace(name, f"<PER>{name}</PER>")
    return text


def answers(column: str, cells: list[str]) -> str:
    """Return results of MTurk: ann gives these answers, ben the same but for the last one."""
    pairs = [(k, w) for w in ("ann", "ben") for k in range(len(TEXTS))]
    rows = [[f"H{k}", w, TEXTS[k], cells[k - (w == "ben" and k == 7)]] for k, w in pairs]
    return table(f"HITId,WorkerId,Input.text,Answer.{column}", *rows)


LF = ["B-PER,,O", "I-PER,I-PER,O", ",O,B-LOC", "O,O,O", "B-LOC,B-LOC,", "O,,O", "B-PER,O,B-PER", "O,O,O"]


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("x.tsv", "a\tN,V,N\nb\tV,V,V\nc\tN,N,N\nd\tN,V,V\n" * 3, {}, "several annotators.*Give each of them a column"),
        ("x.tsv", "a\tw1:N;w2:V\nb\tw1:V;w2:V\nc\tw1:N;w2:N\n" * 3, {}, "every label holds several"),
        ("x.csv", answers("who", ["; ".join(own) for own in NAMES]), {"unit": "document"}, "are words of the texts"),
        ("x.csv", answers("who", [marked(k) for k in range(8)]), {"unit": "document"}, "are words of the texts"),
        (
            "x.csv",
            answers("who", ["; ".join(f"{name}:PER" for name in own) for own in NAMES]),
            {"unit": "document"},
            "are words of the texts",
        ),
        ("x.csv", answers("word_0", ["B-PER", "B-PER", *["O"] * 6]), {"unit": "document"}, "are tags of tokens"),
        (
            "x.csv",
            answers("tags", [json.dumps(["B-PER", "I-PER", "O", "O", "O"])] * 8),
            {"unit": "document"},
            "tags of tokens",
        ),
        (
            "x.csv",
            table("id,word,ann1,ann2", *[[k, "Ada", "B-PER", "B-PER" if k % 2 else "O"] for k in range(9)]),
            {"format": "wide"},
            "of its own",
        ),
        ("x.tsv", "\n".join(LF).replace(",", "\t") + "\n", {}, "all tokens are labels.*-f mace"),
        (
            "x.tsv",
            "token\tann1\tann2\tgold\tgold_conf\n" + "".join(f"w{k}\tN\tV\tN\t0.{k}\n" for k in range(9)),
            {},
            "gold_conf: these hold fractions",
        ),
        (
            "x.csv",
            table(
                "text,ann1,ann2",
                *[[t, "good", ["good", "bad"][k % 2]] for k, t in enumerate(TEXTS)],
                ["kappa", 0.63, ""],
            ),
            {},
            r"a fraction stands among labels.*0\.63",
        ),
        (
            "x.csv",
            table("text,ann1,ann2", *[[text, "x" * (k % 2), "x" * (k % 3 > 0)] for k, text in enumerate(TEXTS)]),
            {},
            r"the only label is x, and 7 cells are empty.*missing=\?",
        ),
        (
            "x.csv",
            table("text,rater,label", *[[t, w, "rude" * (k % 2)] for k, t in enumerate(TEXTS) for w in "ab"]),
            {},
            "the only label is rude, and 8 cells are empty",
        ),
    ],
)
def test_what_was_hardly_meant_is_asked_about(
    tmp_path: Path, name: str, text: str, options: dict[str, str], message: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(FormatError, match=message):
        lasca.read(path, **options)


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("x.csv", answers("topic", ["a + b + c", "a + b", "c", "a", "b", "a", "b", "c"]), {"unit": "document"}),
        ("x.csv", answers("mood", ["good", "bad"] * 4), {"unit": "document"}),
        (
            "x.csv",
            table("text,ann1,ann2", *[[text, "so so", ["so so", "very good"][k % 2]] for k, text in enumerate(TEXTS)]),
            {},
        ),
        ("x.csv", table("task,worker,label", *[[f"t{k}", w, "B-X"] for k in range(4) for w in "ab"]), {}),
        ("x.txt", "N N\nV V\n\nthe N\nhas V\n", {}),
        ("x.csv", table("task,worker,label", *[[f"t{k}", w, (k % 3) / 2] for k in range(9) for w in "ab"]), {}),
        ("x.tsv", "a\tN|Sing\nb\tN|Plur\nc\tV|Past\nd\tD|Def\n" * 3, {}),  # labels of two parts
        (
            "x.csv",
            answers("who", [f"{a} care + {b} care" for a, b in zip("abcdefgh", "bcdefghi")]),
            {"unit": "document"},
        ),
        ("x.csv", table("id,ann1,ann2", *[[k, k, k % 5 + 1] for k in range(1, 6)]), {}),  # items and scores are numbers
        (
            "x.csv",
            table("text,worker,label", *[[f"tell {k} of {w}", "ann", w] for k in range(20) for w in "stuvwxyz"]),
            {},
        ),
    ],
)
def test_what_may_well_be_labels_is_read(tmp_path: Path, name: str, text: str, options: dict[str, str]) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert lasca.read(path, **options).n_tokens


def test_what_lasca_wrote_is_not_asked_about_again(tmp_path: Path) -> None:
    """It was read before, or made in Python, where nobody can be asked."""
    said = [["Sport, US"], ["US, Sport"], ["Sport, Sport"]]
    CrowdCorpus.from_sequences([["so it is"], ["so be it"], ["so so"]], {"ann": said}).save(tmp_path / "corpus")
    assert lasca.read(tmp_path / "corpus").labels == ("Sport, Sport", "Sport, US", "US, Sport")


def test_labels_and_annotators_that_differ_in_case_or_a_stop_are_told(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(table("text,ann1,ann2", *[[text, "Good", "good."] for text in TEXTS], ["so it is", "bad", "bad"]))
    notes = lasca.read(path).load_report.notes
    assert any(note.startswith("Labels that differ only in case") and "'Good' and 'good.'" in note for note in notes)


def test_one_long_sequence_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("".join(f"w{k}\tO\nAda\tB-PER\n" for k in range(150)))
    assert any("All tokens are one sequence" in note for note in lasca.read(path).load_report.notes)


def test_quotes_that_are_names_are_asked_about(tmp_path: Path) -> None:
    """Who chose each label, under the label: read as quotes, everybody said O."""
    rows = [{"text": text, "entities": {"good": ["ann", "ben"], "bad": ["cy"]}} for text in TEXTS]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(FormatError, match="none of the 24 quoted spans stands in its text"):
        lasca.read(tmp_path / "x.jsonl")


def test_a_label_that_stands_alone_is_told(tmp_path: Path) -> None:
    """A box that was not ticked is an answer without a choice."""
    choice = {"from_name": "c", "to_name": "text", "type": "choices", "value": {"choices": ["rude"]}}
    tasks = [
        {
            "id": k,
            "data": {"text": text},
            "annotations": [
                {"id": 2 * k + u, "completed_by": u, "result": [choice] if (k + u) % 2 else []} for u in (1, 2)
            ],
        }
        for k, text in enumerate(TEXTS)
    ]
    (tmp_path / "x.json").write_text(json.dumps(tasks), encoding="utf-8")
    notes = lasca.read(tmp_path / "x.json").load_report.notes
    assert "The only label is rude: 8 answers without it are taken as none, and not as no." in notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (table("text,annotator_id,label", *[[t, w, f"a{w}"] for t in TEXTS for w in ("1", "2.0")], ["so", "1.0", "a"]),
         "annotators 1 and 1.0 are the same number"),
        (table("item_id,annotator,label", *[[f"{k}{'.0' * (w == 'b')}", w, k % 2] for k in range(4) for w in "ab"]),
         "ids of texts 0 and 0.0 are the same number"),
    ],
)  # fmt: skip
def test_numbers_written_in_two_ways_are_asked_about(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(FormatError, match=message):
        lasca.read(tmp_path / "x.csv")

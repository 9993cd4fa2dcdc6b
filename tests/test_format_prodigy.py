"""Prodigy: own tokens, answers, sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lasca
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError
from lasca.formats import prodigy
from mutations import FEW, MANY, assert_only_lasca_errors, samples, source

TEXT = "😊 Ada Lovelace visited New York ."


def tokens(text: str, unit: str = "codepoint") -> list[dict[str, Any]]:
    found, at = [], 0
    for k, word in enumerate(text.split()):
        at = text.index(word, at)
        wide = 0 if unit == "codepoint" else sum(ch > "\uffff" for ch in text[:at])
        end = at + len(word) + (0 if unit == "codepoint" else sum(ch > "\uffff" for ch in text[: at + len(word)]))
        found.append({"text": word, "start": at + wide, "end": end, "id": k})
        at += len(word)
    return found


def row(*spans: tuple[int, int, str], who: str = "ann1", **more: Any) -> dict[str, Any]:
    marks = [{"start": a, "end": b, "label": label} for a, b, label in spans]
    base = {"text": TEXT, "tokens": tokens(TEXT), "spans": marks, "answer": "accept", "_input_hash": 11}
    return {**base, "_annotator_id": who, **more}


def read(*rows: dict[str, Any], **options: Any) -> CrowdCorpus:
    data = "\n".join(json.dumps(r, ensure_ascii=False) for r in rows).encode()
    return prodigy.read(source("db.jsonl", data), **options)


def table(corpus: CrowdCorpus) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in corpus.to_table().to_pylist():
        found.setdefault(entry["annotator"], []).append(entry["label"])
    return found


ONE = ["O", "B-PER", "I-PER", "O", "O", "O", "O"]


def test_the_sample_of_the_docstring() -> None:
    (sample,) = samples(prodigy)
    files = source("db.jsonl", sample.encode())
    assert prodigy.sniff(files) > 0.9
    corpus = prodigy.read(files)
    assert list(corpus.sequence_ids) == ["11"]
    assert table(corpus) == {"db-ann1": ["B-PER", "O"]}


def test_the_emoji_case_in_both_units() -> None:
    assert table(read(row((2, 14, "PER")))) == {"ann1": ONE}
    wide = row((3, 15, "PER"), tokens=tokens(TEXT, "utf16"))
    corpus = read(wide)
    assert table(corpus) == {"ann1": ONE}
    assert any("utf16" in note for note in corpus.load_report.notes)
    assert corpus.token_chars is not None
    assert corpus.token_chars[1].tolist() == [2, 5]


def test_rejected_and_ignored_are_missing_and_no_spans_are_o() -> None:
    corpus = read(row(who="a"), row(who="b", answer="reject"), row(who="c", answer="ignore"), row(who="d", answer=7))
    assert table(corpus) == {"a": ["O"] * 7}
    counts = corpus.load_report.counts
    assert (counts["rejected"], counts["ignored"], counts["other answer"]) == (1, 1, 1)


def test_sessions_name_annotators_and_spans_may_be_in_tokens() -> None:
    given = row(_session_id="db-s1")
    del given["_annotator_id"]
    given["spans"] = [{"token_start": 1, "token_end": 2, "label": "PER"}]
    assert table(read(given)) == {"db-s1": ONE}
    del given["_session_id"]
    assert table(read(given)) == {"db": ONE}
    given["spans"] = [{"token_start": 1, "token_end": 7, "label": "PER"}]
    with pytest.raises(FormatError, match=r"db.jsonl:1.*outside the 7 tokens"):
        read(given)


def test_token_numbers_that_do_not_fit_the_characters_are_counted() -> None:
    def said(first: object, last: object) -> int:
        span = {"start": 2, "end": 14, "label": "PER", "token_start": first, "token_end": last}
        corpus = read(row(spans=[span]))
        assert table(corpus) == {"ann1": ONE}
        return corpus.load_report.counts.get("spans whose token numbers do not fit", 0)

    assert [said(1, 2), said(None, 2), said(None, None)] == [0, 0, 0]
    assert [said(1, 7), said(1, 3), said(0, 2), said(-6, 2), said("1", 2)] == [1, 1, 1, 1, 1]


def test_own_tokens_are_kept_and_a_tokenizer_replaces_them() -> None:
    given = {"text": "e-mail Ada", "tokens": tokens("e-mail Ada"), "spans": [{"start": 7, "end": 10, "label": "PER"}]}
    assert list(read(given).tokens) == ["e-mail", "Ada"]
    assert list(read(given, tokenizer="punctuation").tokens) == ["e", "-", "mail", "Ada"]
    spaced = [{"text": t, "start": k, "end": k + 1} for t, k in [("a", 0), (" ", 2), ("b", 3)]]
    corpus = read({"text": "a  b", "tokens": spaced, "spans": []})
    assert list(corpus.tokens) == ["a", "b"]
    assert corpus.load_report.counts["blank tokens"] == 1


def test_tokens_that_differ_between_annotators_are_aligned_by_characters() -> None:
    fine = [{"text": t, "start": a, "end": b} for t, a, b in [("e", 0, 1), ("-", 1, 2), ("mail", 2, 6)]]
    whole = [{"text": "e-mail", "start": 0, "end": 6}]
    spans = [{"start": 0, "end": 6, "label": "X"}]
    rows = [
        {"text": "e-mail", "tokens": t, "spans": spans, "_input_hash": 1, "_annotator_id": who}
        for who, t in [("a", fine), ("b", whole), ("c", whole)]
    ]
    for order in (rows, rows[::-1]):
        corpus = read(*order)
        assert table(corpus) == {"a": ["B-X"], "b": ["B-X"], "c": ["B-X"]}
        assert corpus.load_report.counts["tokenised differently"] == 1
    assert "tokenised differently" not in read(*rows[1:]).load_report.counts


def test_the_last_answer_counts() -> None:
    early, late = row((2, 14, "PER"), _timestamp=100), row(_timestamp=200.5)
    assert table(read(late, early)) == table(read(early, late)) == {"ann1": ["O"] * 7}
    with pytest.raises(FormatError, match="twice"):
        read(row((2, 14, "PER")), row())


def test_errors_name_file_and_line() -> None:
    for bad, match in [
        ({"_input_hash": 3}, "string 'text'"),
        (row((2, 14, "")), "label must be"),
        (row((14, 2, "X")), "outside its text"),
        (row(tokens=[{"text": "x", "start": 5, "end": 6}, {"text": "y", "start": 0, "end": 1}]), "do not"),
        (row(tokens=[3]), "token must be"),
        (row(spans=[3]), "span must be"),
    ]:
        with pytest.raises(FormatError, match=rf"db.jsonl:?.*{match}"):
            read(row((2, 14, "PER"), who="other", _input_hash=1), bad)


VALID = "\n".join(
    json.dumps(r, ensure_ascii=False)
    for r in [row((2, 14, "PER"), (23, 31, "LOC"), _timestamp=5), row(who="b", answer="reject"), row(who="c")]
).encode()


def attempt(data: bytes) -> None:
    files = source("db.jsonl", data)
    prodigy.sniff(files)
    prodigy.read(files)


def test_mutations_give_only_our_errors() -> None:
    assert_only_lasca_errors(attempt, VALID, max_examples=FEW)


@pytest.mark.fuzz
def test_many_mutations_give_only_our_errors() -> None:
    assert_only_lasca_errors(attempt, VALID, max_examples=MANY)


REVIEW = json.dumps(
    {
        "versions": [
            {"sessions": ["ann", "ben"], "spans": [{"label": "PER", "start": 2, "end": 14}], "answer": "accept"}
        ],
        "spans": [{"label": "PER", "start": 2, "end": 14}],
        "text": "😊 Ada Lovelace visited New York .",
        "relations": [{"head": 1}],
        "_input_hash": 7,
        "answer": "accept",
    }
).encode()


def test_versions_are_votes_and_the_review_decides() -> None:
    corpus = prodigy.read(source("db.jsonl", REVIEW))
    assert (corpus.annotators, list(corpus.golds)) == (("ann", "ben"), ["review"])
    assert corpus.load_report.counts["relations"] == 1
    row = {
        "text": "Fine day",
        "options": [{"id": "a"}, {"id": "b"}],
        "accept": ["b"],
        "answer": "accept",
        "_input_hash": 1,
    }
    assert prodigy.read(source("db.jsonl", json.dumps(row).encode())).labels == ("b",)
    teach = {"text": "Ada", "spans": [{"start": 0, "end": 3, "label": "PER"}], "_view_id": "ner", "answer": "reject"}
    with pytest.raises(FormatError, match="about one span only"):
        prodigy.read(source("db.jsonl", json.dumps(teach).encode()))


@pytest.mark.parametrize("max_examples", [FEW, pytest.param(MANY, marks=pytest.mark.fuzz)])
def test_any_bytes_as_a_review(max_examples: int) -> None:
    assert_only_lasca_errors(lambda b: prodigy.read(source("db.jsonl", b)), REVIEW, max_examples=max_examples)


@pytest.mark.parametrize("named", ["{}", "data-{}"])
def test_sessions_called_by_their_time_are_nobodys_names(named: str) -> None:
    days = [named.format(f"2022-03-0{k}_10-11-12") for k in (1, 2)]

    def data(*given: tuple[int, str]) -> bytes:
        own = {"answer": "accept", "_view_id": "ner_manual", "tokens": [{"text": "Ada", "start": 0, "end": 3, "id": 0}]}
        rows = [{"text": f"Ada{' ' * h}", "_input_hash": h, "_session_id": day, **own} for h, day in given]
        return "".join(json.dumps(row) + "\n" for row in rows).encode()

    one = prodigy.read(source("ada.jsonl", data((1, days[0]), (2, days[1]))))
    assert list(one.annotators) == ["ada"]
    assert any("sessions without a name (2" in note for note in one.load_report.notes)
    two = prodigy.read(source("ada.jsonl", data((1, days[0]), (1, days[1]))))
    assert list(two.annotators) == days  # about the same text: these may be two people


def test_answers_to_single_suggestions_are_refused() -> None:
    """Old exports of ner.teach do not name the view; a span with an answer of its own was judged alone."""
    taught = [
        {
            "text": "Ada left",
            "spans": [{"start": 0, "end": 3, "label": "PER", "score": 0.8}],
            "answer": said,
            "_input_hash": k,
        }
        for k, said in enumerate(("accept", "reject", "accept"))
    ]
    judged = row((2, 14, "PER"))
    judged["spans"][0]["answer"] = "reject"
    for rows in (taught, [judged]):
        with pytest.raises(FormatError, match="single spans"):
            read(*rows)
    manual = [{**line, "_view_id": "ner_manual"} for line in taught]
    assert read(*manual).load_report.counts["rejected"] == 1


@pytest.mark.parametrize("other", [{"arcs": [{"head": 1, "child": 0, "label": "x"}]}, {"user_input": "hello"}, {}])
def test_lines_without_any_span_are_not_all_o(other: dict[str, Any]) -> None:
    lines = [{"text": TEXT, "answer": "accept", "_input_hash": k, **other} for k in range(3)]
    with pytest.raises(FormatError, match="there is no span"):
        read(*lines)
    assert table(read(row((2, 14, "PER")), row(who="ben"))) == {"ann1": ONE, "ben": ["O"] * 7}


def test_options_are_called_by_their_texts_where_their_ids_are_numbers() -> None:
    options = [{"id": 1, "text": "good"}, {"id": 2, "text": "bad"}]
    corpus = read({"text": TEXT, "options": options, "accept": [2], "answer": "accept", "_input_hash": 1})
    assert corpus.labels == ("bad",)


def test_a_line_of_a_named_annotator_is_left_to_others() -> None:
    line = json.dumps({"text": TEXT, "spans": [{"start": 0, "end": 3, "label": "PER"}], "annotator": "ann"}).encode()
    assert prodigy.sniff(source("x.jsonl", line)) == 0


def test_parts_of_speech_are_told_what_to_do() -> None:
    spans = [(t["start"], t["end"], "X") for t in tokens(TEXT)]
    notes = read(row(*spans)).load_report.notes
    assert any("tagging=plain" in note for note in notes)
    assert not any("tagging=plain" in note for note in read(row((2, 14, "PER"))).load_report.notes)


@pytest.mark.parametrize(
    ("session", "kind"),
    [
        ("ner_model", "model"),
        ("news-gpt-4", "model"),
        ("gpt-4", "model"),
        ("ner_model-ada", "person"),
        ("ner_model-2022-03-01_10-11-12", "person"),
    ],
)
def test_sessions_called_as_models_are_models(session: str, kind: str) -> None:
    version = {**row((2, 14, "PER")), "sessions": [session]}
    corpus = read({**row((2, 14, "PER")), "versions": [version, {**row(), "sessions": ["news-ben"]}]})
    assert dict(zip(corpus.annotators, corpus.kinds))["news-ben"] == "person"
    assert [k for name, k in zip(corpus.annotators, corpus.kinds) if name != "news-ben"] == [kind]


def test_word_pieces_are_no_quotes_and_may_stand_nowhere() -> None:
    """The tokens of a transformer: [CLS] at 0-0, also behind the others, and ##ing."""
    pieces = [("[CLS]", 0, 0), ("▁In", 0, 2), ("▁Ro", 3, 5), ("##me", 5, 7), ("</s>", 0, 0)]
    own = [{"text": t, "start": a, "end": b, "id": k, "tokenizer_id": k} for k, (t, a, b) in enumerate(pieces)]
    corpus = read(
        {"text": "In Rome", "tokens": own, "spans": [{"start": 3, "end": 7, "label": "LOC"}], "_input_hash": 1}
    )
    assert list(corpus.sequence(0)) == ["In", "Ro", "me"]
    assert corpus.load_report.counts["blank tokens"] == 2


@pytest.mark.parametrize(
    ("media", "view", "marks"),
    [
        ("audio", "audio_manual", {"audio_spans": [{"start": 0.1, "end": 0.9, "label": "SPK"}]}),
        ("image", "image_manual", {"spans": [{"label": "CAR", "points": [[1, 2], [3, 4]]}]}),
        ("video", "audio_manual", {"audio_spans": []}),
    ],
)
def test_parts_of_files_are_no_spans_of_text(media: str, view: str, marks: dict[str, Any]) -> None:
    """Prodigy's loaders of images and sounds put the file's name under "text": all of it was O."""
    line = {media: "data:x", "text": "tiger", "_input_hash": 1, "_view_id": view, "answer": "accept"}
    with pytest.raises(FormatError, match=rf"db.jsonl:1: .*parts of {media} files"):
        read({**line, **marks})
    asked = {"options": [{"id": "cat", "text": "Cat"}, {"id": "dog", "text": "Dog"}], "accept": ["cat"]}
    assert read({**line, **asked}).labels == ("cat",)  # an answer about the whole is a label of its text


@pytest.mark.parametrize("source_of", ["score", "pattern"])
def test_answers_to_single_suggestions_are_refused_if_all_are_yes_or_come_from_patterns(source_of: str) -> None:
    span = {"start": 2, "end": 14, "label": "PER", source_of: 1}
    rows = [{"text": TEXT + end, "spans": [span], "answer": "accept", "_input_hash": k} for k, end in enumerate("ab")]
    with pytest.raises(FormatError, match="about single spans"):
        read(*rows)
    assert read(*({**row, "spans": [{**span, "token_start": 1}]} for row in rows)).n_annotators == 1  # by hand


def test_passes_over_the_labels_are_layers_and_no_annotators(tmp_path: Path) -> None:
    words = ["Ada"] * 8 + ["Rome"] * 8
    text = " ".join(words)
    for name, word in (("per", "Ada"), ("loc", "Rome")):
        places = [(k, k + len(word)) for k in range(len(text)) if text.startswith(word, k)]
        spans = [{"start": a, "end": b, "label": name.upper()} for a, b in places]
        row = {"text": text, "spans": spans, "answer": "accept", "_input_hash": 1}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row))
    with pytest.raises(FormatError, match="may be layers of one annotation"):
        lasca.read(tmp_path)


def test_an_annotator_in_meta_counts_and_no_tokens_are_not_an_empty_text() -> None:
    bare = {"text": "Ada ran", "tokens": [], "_input_hash": 1, "answer": "accept"}
    spans = {"ann": [{"start": 0, "end": 3, "label": "PER"}], "ben": []}
    corpus = read(*({**bare, "spans": own, "meta": {"annotator": who}} for who, own in spans.items()))
    assert table(corpus) == {"ann": ["B-PER", "O"], "ben": ["O", "O"]}

"""Language models as annotators: requests out, answers back, quotes found whatever was done to them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import lasca
import lasca.cli.commands  # registers the verbs
from lasca.cli.app import app
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, LascaWarning, ParameterError
from lasca.formats import llm_batch, write
from lasca.formats.llm_batch_answers import PlainText, Quoted, answers_of, parse_answer, place_quotes
from lasca.formats.llm_batch_write import LIMIT
from lasca.truth import MajorityVote
from mutations import FEW, assert_only_lasca_errors, samples, source

WORDS = ["“", "Ada", "Lovelace", "”", "visited", "New", "York", "–", "and", "New", "York", "'s", "mayor", "."]
PEOPLE = ["O", "B-PER", "I-PER", "O", "O", "B-LOC", "I-LOC", "O", "O", "O", "O", "O", "O", "O"]


@pytest.fixture
def corpus() -> CrowdCorpus:
    return CrowdCorpus.from_sequences(
        [WORDS, ["Nothing", "here", "."]], {"ann": [PEOPLE, ["O"] * 3]}, sequence_ids=["s1", "s2"]
    )


@pytest.fixture
def guide(tmp_path: Path) -> Path:
    path = tmp_path / "guide.md"
    path.write_text("Mark persons and places.", encoding="utf-8")
    return path


def requests(corpus: CrowdCorpus, guide: Path, **options: Any) -> list[dict[str, Any]]:
    path = guide.with_name("requests.jsonl")
    write(corpus, path, "llm-batch", guideline=guide, **options)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def openai(id: str, *contents: Any, model: str = "gpt", **more: Any) -> dict[str, Any]:
    texts = [c if isinstance(c, str) else json.dumps(c, ensure_ascii=False) for c in contents]
    choices = [{"message": {"content": text}, "finish_reason": "stop", **more} for text in texts]
    return {"custom_id": id, "response": {"status_code": 200, "body": {"model": model, "choices": choices}}}


def anthropic(id: str, content: Any, stop: str = "end_turn") -> dict[str, Any]:
    text = content if isinstance(content, str) else json.dumps(content)
    message = {"model": "claude", "content": [{"type": "text", "text": text}], "stop_reason": stop}
    return {"custom_id": id, "result": {"type": "succeeded", "message": message}}


def spans(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"spans": [{"text": text, "label": label} for text, label in pairs]}


def read(corpus: CrowdCorpus, *rows: dict[str, Any], **options: Any) -> CrowdCorpus:
    data = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()
    return llm_batch.read(source("results.jsonl", data), data=corpus, **options)


def said(corpus: CrowdCorpus, name: str, sequence: str = "s1") -> list[str]:
    rows = corpus.to_table().to_pylist()
    return [row["label"] for row in rows if row["annotator"] == name and row["sequence"] == sequence]


def test_the_samples_of_the_docstring(corpus: CrowdCorpus) -> None:
    first, second = samples(llm_batch)
    found = llm_batch.read(source("r.jsonl", (first + second).encode()), data=corpus)
    assert found.annotators == ("ann", "claude-3-5-haiku", "gpt-4o-mini")
    assert said(found, "gpt-4o-mini") == ["O", "B-PER", "I-PER", *["O"] * 11]
    assert said(found, "claude-3-5-haiku") == ["O"] * 14
    assert llm_batch.sniff(source("r.jsonl", first.encode())) > 0.9


def test_what_openai_is_asked(corpus: CrowdCorpus, guide: Path) -> None:
    rows = requests(corpus, guide, samples=3, logprobs=True, model="gpt", temperature=0.7)
    assert len(rows) == 2
    assert rows[0]["url"] == "/v1/chat/completions"
    body = rows[0]["body"]
    assert (body["model"], body["n"], body["temperature"], body["logprobs"]) == ("gpt", 3, 0.7, True)
    system, user = body["messages"]
    assert system["content"].startswith("Mark persons and places.")
    assert "LOC, PER" in system["content"]
    assert user["content"] == " ".join(WORDS)
    assert all(label not in user["content"] for label in ("B-PER", "ann"))


def test_what_anthropic_is_asked(corpus: CrowdCorpus, guide: Path) -> None:
    rows = requests(corpus, guide, samples=2, model="claude-x")
    assert len(rows) == 4
    assert len({row["custom_id"] for row in rows}) == 4
    assert all(len(row["custom_id"]) <= 64 and row["params"]["max_tokens"] > 0 for row in rows)
    with pytest.raises(ParameterError, match="logprobs"):
        requests(corpus, guide, model="claude-x", logprobs=True)


def test_what_a_request_needs(corpus: CrowdCorpus, guide: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="guideline"):
        write(corpus, tmp_path / "r.jsonl", "llm-batch")
    with pytest.raises(ParameterError, match="guideline"):
        write(corpus, tmp_path / "r.jsonl", "llm-batch", guideline=tmp_path / "none.md")
    bare = CrowdCorpus.from_sequences([["Ada"]], {})
    with pytest.raises(ParameterError, match="types"):
        requests(bare, guide)
    assert "PER, LOC" in requests(bare, guide, types="PER,LOC")[0]["body"]["messages"][0]["content"]


def test_more_requests_than_a_batch_may_hold_are_warned_of(
    corpus: CrowdCorpus, guide: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LIMIT, "openai", 2)
    requests(corpus, guide)  # as many as it may
    monkeypatch.setitem(LIMIT, "openai", 1)
    with pytest.warns(LascaWarning, match="2 requests, but a batch of openai holds 1"):
        requests(corpus, guide)


def test_there_and_back(corpus: CrowdCorpus, guide: Path, tmp_path: Path) -> None:
    ids = [row["custom_id"] for row in requests(corpus, guide)]
    answers = [spans(("Ada Lovelace", "PER"), ("New York", "LOC"), ("New York", "LOC")), spans()]
    results = tmp_path / "results.jsonl"
    results.write_text("\n".join(json.dumps(openai(i, a)) for i, a in zip(ids, answers)), encoding="utf-8")
    corpus.save(tmp_path / "crowd")
    found = lasca.read(results, data=str(tmp_path / "crowd"))
    assert said(found, "gpt") == ["O", "B-PER", "I-PER", "O", "O", "B-LOC", "I-LOC", "O", "O", "B-LOC", "I-LOC", *"OOO"]
    assert said(found, "ann") == PEOPLE
    assert said(found, "gpt", "s2") == ["O"] * 3
    assert found.kinds == ("person", "model")
    assert found.votes == (True, True)
    assert not lasca.read(results, data=str(tmp_path / "crowd"), votes=False).votes[1]
    with pytest.raises(FormatError, match="do not hold the texts"):
        lasca.read(results)
    with pytest.raises(FormatError, match="requests, not what came back"):
        lasca.read(tmp_path / "requests.jsonl", data=corpus)


def test_answers_to_other_texts_are_refused_or_counted(corpus: CrowdCorpus) -> None:
    with pytest.raises(FormatError, match="other texts"):
        read(corpus, openai("lasca-0123", spans()))
    found = read(corpus, openai("elsewhere", spans()), openai("s1", spans()))
    assert found.load_report.counts["answers for other texts"] == 1


@pytest.mark.parametrize(
    ("quote", "first", "last"),
    [
        ('"Ada Lovelace"', 0, 4),
        ("Ada  Lovelace", 1, 3),
        ("AdaLovelace", 1, 3),
        ("“ Ada Lovelace ”", 0, 4),
        ("**Ada Lovelace**", 1, 3),
        ("ada lovelace", 1, 3),
        ("New York - and", 5, 9),
        ("New York’s mayor", 9, 13),
        ("Yorks", None, None),
    ],
)
def test_quotes_are_found_whatever_was_done_to_them(
    corpus: CrowdCorpus, quote: str, first: int | None, last: int
) -> None:
    found = read(corpus, openai("s1", spans((quote, "PER"))))
    got = said(found, "gpt")
    if first is None:
        assert got == ["O"] * 14
        assert found.load_report.counts["quotes not in the text"] == 1
    else:
        assert [i for i, label in enumerate(got) if label != "O"] == list(range(first, last))


def test_treebank_quotes_and_accents() -> None:
    words = ["``", "Zoë", "''", "ran"]
    one = CrowdCorpus.from_sequences([words], {"ann": [["O", "B-PER", "O", "O"]]}, sequence_ids=["s1"])
    assert said(read(one, openai("s1", spans(('"Zoë"', "PER")))), "gpt") == ["B-PER", "I-PER", "I-PER", "O"]
    assert said(read(one, openai("s1", spans(("Zoe\u0308", "PER")))), "gpt") == ["O", "B-PER", "O", "O"]


def test_tokens_before_parts_of_tokens_and_the_order_of_the_answer() -> None:
    words = ["Adam", "met", "Ada", "and", "Ada"]
    text = PlainText(" ".join(words), [(0, 4), (5, 8), (9, 12), (13, 16), (17, 20)])
    told: dict[str, int] = {}

    def count(kind: str, n: int, example: str) -> None:
        told[kind] = told.get(kind, 0) + n

    quotes = [Quoted("Ada", "PER"), Quoted("Ada", "PER"), Quoted("Ada", "PER"), Quoted("Ada", "PER")]
    assert [p.start for p in place_quotes(quotes, text, count, "x")] == [9, 17, 0]
    assert told == {"quotes placed by their order": 1, "repeated quotes": 1}
    assert [p.start for p in place_quotes([Quoted("Ada", "PER", 16)], text, count, "x")] == [17]


def test_answers_that_are_none_are_missing_and_counted(corpus: CrowdCorpus) -> None:
    found = read(
        corpus,
        openai("s1", "I cannot help with that."),
        openai("s2", spans()),
        anthropic("s1", spans(), stop="max_tokens"),
        {"custom_id": "s1", "response": {"status_code": 500, "body": {"error": {"message": "no"}}}},
        {"custom_id": "s1", "result": {"type": "errored", "error": {}}},
    )
    counts = found.load_report.counts
    assert counts["answers that are not JSON"] == counts["answers cut off"] == 1
    assert counts["failed requests"] == 2
    assert said(found, "gpt") == []
    assert said(found, "gpt", "s2") == ["O"] * 3


def test_words_around_the_answer_and_other_names_of_its_fields(corpus: CrowdCorpus) -> None:
    text = 'Here is [my] answer:\n```json\n{"entities": [{"entity": "Ada Lovelace", "type": "per"}]}\n```\nGood luck!'
    assert said(read(corpus, openai("s1", text)), "gpt") == ["O", "B-PER", "I-PER", *["O"] * 11]
    assert said(read(corpus, openai("s1", [["New York", "LOC"]])), "gpt")[5:7] == ["B-LOC", "I-LOC"]


def test_unknown_types_are_missing_not_o(corpus: CrowdCorpus) -> None:
    found = read(corpus, openai("s1", spans(("Ada Lovelace", "WRITER"), ("New York", "LOC"))))
    assert len(said(found, "gpt")) == 12
    assert found.load_report.counts["spans of an unknown type (their tokens are missing)"] == 1
    told = read(corpus, openai("s1", spans(("Ada Lovelace", "WRITER"))), types="WRITER")
    assert said(told, "gpt")[1:3] == ["B-WRITER", "I-WRITER"]
    assert said(told, "ann") == PEOPLE


def test_what_touches_an_unknown_span_is_not_in_it() -> None:
    """Tokens without blanks between them."""
    words = ["東京", "都", "知事"]
    corpus = CrowdCorpus.from_sequences([words], {"ann": [["B-LOC", "O", "O"]]}, sequence_ids=["s1"])
    chars = np.array([[0, 2], [2, 3], [3, 5]], dtype=np.int32)
    corpus = replace(corpus, metadata={"text": np.array(["".join(words)])}, token_chars=chars)
    found = read(corpus, openai("s1", spans(("都", "SUFFIX"))))
    rows = [(row["position"], row["label"]) for row in found.to_table().to_pylist() if row["annotator"] == "gpt"]
    assert rows == [(0, "O"), (2, "O")]


def test_samples_are_one_soft_annotator(corpus: CrowdCorpus) -> None:
    ada, none = spans(("Ada Lovelace", "PER")), spans()
    for rows in (
        [openai("s1", ada, ada, none)],
        [anthropic("s1", ada), anthropic("s1", ada), anthropic("s1", none)],
    ):
        found = read(corpus, *rows)
        assert found.n_annotators == 2
        assert found.soft is not None
        proba = found.soft.proba[found.soft.token == 1][0]
        assert proba[found.labels.index("B-PER")] == pytest.approx(2 / 3)
        assert proba[found.labels.index("O")] == pytest.approx(1 / 3)
        assert len(found.soft) == 14
        likeliest = read(corpus, *rows, soft=False)
        assert likeliest.soft is None
        assert said(likeliest, likeliest.annotators[1])[1:3] == ["B-PER", "I-PER"]


def test_prompts_of_one_model_are_a_family(corpus: CrowdCorpus, guide: Path) -> None:
    first = requests(corpus, guide)[0]["custom_id"]
    guide.write_text("Another guideline.", encoding="utf-8")
    second = requests(corpus, guide)[0]["custom_id"]
    found = read(corpus, openai(first, spans()), openai(second, spans(("Ada", "PER"))))
    assert found.n_annotators == 3
    assert found.families == (None, "gpt", "gpt")
    alone = read(corpus, openai(first, spans()))
    assert not any(alone.families or ())  # a family is several


def pieces(*pairs: tuple[str, float], **rivals: dict[str, float]) -> dict[str, Any]:
    content = []
    for token, p in pairs:
        others = [{"token": t, "logprob": math.log(q)} for t, q in rivals.get(token, {}).items()]
        content.append({"token": token, "logprob": math.log(p), "bytes": None, "top_logprobs": others})
    return {"logprobs": {"content": content}}


def test_log_probabilities(corpus: CrowdCorpus) -> None:
    parts = [('{"spans": [{"text": "', 1.0), ("Ada", 0.9), (" Lovelace", 1.0), ('", "label": "', 1.0)]
    parts += [("PER", 0.8), ('"}]}', 1.0)]
    text = "".join(piece for piece, _ in parts)
    found = read(corpus, openai("s1", text, **pieces(*parts, PER={"PER": 0.8, "LOC": 0.15})))
    assert found.soft is not None
    row = dict(zip(found.labels, found.soft.proba[found.soft.token == 1][0].tolist()))
    assert row["B-PER"] == pytest.approx(0.72)
    assert row["B-LOC"] == pytest.approx(0.135)
    assert row["O"] == pytest.approx(0.145)
    assert dict(zip(found.labels, found.soft.proba[found.soft.token == 0][0].tolist()))["O"] == 1


def test_only_the_pieces_of_a_label_say_how_sure_it_is(corpus: CrowdCorpus) -> None:
    """Each character a piece of its own: the quotes around text and label are as unsure as can be, and do not count."""
    text = json.dumps(spans(("Ada", "PER")))
    where = {text.index("Ada") + 1: 0.9, text.index("PER") + 1: 0.8}
    edges = {text.index(word) + at for word in ("Ada", "PER") for at in (-1, 3)}
    parts = [(piece, where.get(at, 0.01 if at in edges else 1.0)) for at, piece in enumerate(text)]
    found = read(corpus, openai("s1", text, **pieces(*parts)))
    assert found.soft is not None
    row = dict(zip(found.labels, found.soft.proba[found.soft.token == 1][0].tolist()))
    assert row["B-PER"] == pytest.approx(0.72)


def test_labels_for_tokens(guide: Path) -> None:
    pos = CrowdCorpus.from_sequences([["Dogs", "bark"]], {"ann": [["NOUN", "VERB"]]}, sequence_ids=["s1"])
    body = requests(pos, guide)[0]["body"]
    assert body["messages"][1]["content"] == "Dogs\nbark"
    assert said(read(pos, openai("s1", {"labels": ["noun", "VERB"]})), "gpt") == ["NOUN", "VERB"]
    pairs = [{"token": "Dogs", "label": "NOUN"}, {"token": "!", "label": "X"}, {"token": "bark", "label": "VERB"}]
    assert said(read(pos, openai("s1", pairs)), "gpt") == ["NOUN", "VERB"]
    found = read(pos, openai("s1", {"labels": ["NOUN"]}), openai("s1", {"labels": ["NOUN", "WHAT"]}))
    assert found.load_report.counts["answers with another number of labels"] == 1
    assert found.load_report.counts["labels that are unknown"] == 1
    assert said(found, "gpt") == ["NOUN"]


def test_bioes_data_get_bioes_labels() -> None:
    own = ["O", "B-PER", "E-PER", "S-LOC"]
    corpus = CrowdCorpus.from_sequences([["a", "b", "c", "d"]], {"ann": [own]}, sequence_ids=["s1"])
    assert said(read(corpus, openai("s1", spans(("b c", "PER"), ("d", "PER")))), "gpt") == [
        "O",
        "B-PER",
        "E-PER",
        "S-PER",
    ]


def test_a_name_that_is_taken_is_refused(corpus: CrowdCorpus) -> None:
    with pytest.raises(FormatError, match="already"):
        read(corpus, openai("s1", spans()), annotator="ann")


def test_any_bytes_give_a_corpus_or_one_clear_error(corpus: CrowdCorpus) -> None:
    valid = "\n".join(
        json.dumps(row) for row in (openai("s1", spans(("Ada", "PER"))), anthropic("s2", spans(("here", "LOC"))))
    ).encode()
    assert_only_lasca_errors(lambda data: llm_batch.read(source("r.jsonl", data), data=corpus), valid, max_examples=FEW)


@given(
    st.one_of(
        st.text(max_size=40),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.sampled_from(["Ada", "PER", "spans", ""]),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["spans", "text", "label", "start", "x"]), inner, max_size=3)
            ),
            max_leaves=8,
        ).map(json.dumps),
    )
)
def test_whatever_a_model_answers_is_read_or_counted(answer: str) -> None:
    corpus = CrowdCorpus.from_sequences([["Ada", "ran"]], {"ann": [["B-PER", "O"]]}, sequence_ids=["s1"])
    found = read(corpus, openai("s1", answer), openai("s1", spans()))
    assert said(found, "ann") == ["B-PER", "O"]
    assert found.annotators == ("ann", "gpt")


def test_an_answer_of_brackets_is_given_up() -> None:
    assert parse_answer("[{" * 100_000) is None
    assert parse_answer("[{" * 50 + ' and so: [{"text": "Ada", "label": "PER"}]') == [{"text": "Ada", "label": "PER"}]
    assert parse_answer("[{" * 101 + ' and so: [{"text": "Ada", "label": "PER"}]') is None  # given up before


def test_on_the_command_line(corpus: CrowdCorpus, guide: Path, tmp_path: Path) -> None:
    corpus.save(tmp_path / "crowd")
    sent, back, joined = (str(tmp_path / name) for name in ("requests.jsonl", "results.jsonl", "joined"))
    said_so = [
        "convert",
        str(tmp_path / "crowd"),
        sent,
        "--to",
        "llm-batch",
        "--guideline",
        str(guide),
        "-w",
        "samples=2",
    ]
    done = CliRunner().invoke(app, said_so)
    assert done.exit_code == 0, done.output
    ids = [json.loads(line)["custom_id"] for line in Path(sent).read_text(encoding="utf-8").splitlines()]
    rows = [json.dumps(openai(id, spans(), spans())) for id in ids]
    Path(back).write_text("\n".join(rows), encoding="utf-8")
    done = CliRunner().invoke(app, ["convert", back, joined, "--to", "lasca", "-r", f"data={tmp_path / 'crowd'}"])
    assert done.exit_code == 0, done.output
    assert CrowdCorpus.load(joined).annotators == ("ann", "gpt")


@given(st.lists(st.sampled_from([*WORDS, "ad", "Yo", "x", "  ", "”"]), min_size=1, max_size=4))
def test_what_is_placed_spells_the_quote(words: list[str]) -> None:
    text = " ".join(WORDS)
    chars, at = [], 0
    for word in WORDS:
        chars.append((at, at + len(word)))
        at += len(word) + 1
    quote = " ".join(words)
    for place in place_quotes([Quoted(quote, "X")], PlainText(text, chars), lambda *_: None, "x"):
        assert 0 <= place.start < place.end <= len(text)
        kept = [c for c in text[place.start : place.end].casefold() if c.isalnum()]
        assert kept == [c for c in quote.casefold() if c.isalnum()]


def test_soft_votes_reach_the_models(corpus: CrowdCorpus) -> None:
    ada = spans(("Ada Lovelace", "PER"))
    found = read(corpus, openai("s1", ada, ada, spans()))
    truth = MajorityVote().fit(found.with_voters(["gpt"]))
    assert truth.proba[1, found.labels.index("B-PER")] == pytest.approx(2 / 3)


def _said(tmp_path: Path, rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the labels that each model gave to "Ada saw Rome" (s1) and "it rained" (s2)."""
    data = lasca.CrowdCorpus.from_sequences(
        [["Ada", "saw", "Rome"], ["it", "rained"]],
        {"ann": [["B-PER", "O", "B-LOC"], ["O", "O"]]},
        sequence_ids=["s1", "s2"],
    )
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found: dict[str, list[str]] = {}
    for row in lasca.read(path, data=data).to_table().to_pylist():
        if row["annotator"] != "ann":
            found.setdefault(row["annotator"], []).append(row["label"])
    return found


SPANS = {"spans": [{"text": "Ada", "label": "PER"}, {"text": "Rome", "label": "LOC"}]}
FOUND = ["B-PER", "O", "B-LOC"]


def test_answers_given_to_tools(tmp_path: Path) -> None:
    """OpenAI and Anthropic call a function with the spans; several calls hold a span each."""
    calls = [{"type": "function", "function": {"name": "mark", "arguments": json.dumps(s)}} for s in SPANS["spans"]]
    body = {"model": "gpt-4o", "choices": [{"message": {"content": None, "tool_calls": calls}}]}
    assert _said(tmp_path, [{"custom_id": "s1", "response": {"status_code": 200, "body": body}}]) == {"gpt-4o": FOUND}
    calls[1:] = []
    assert _said(tmp_path, [{"custom_id": "s1", "response": {"status_code": 200, "body": body}}]) == {
        "gpt-4o": ["B-PER", "O", "O"]
    }
    calls[1:] = [{"function": {"name": "mark", "arguments": json.dumps({"spans": SPANS["spans"][1:]})}}]
    assert _said(tmp_path, [{"custom_id": "s1", "response": {"status_code": 200, "body": body}}]) == {"gpt-4o": FOUND}
    content = [{"type": "text", "text": "I mark []."}, {"type": "tool_use", "name": "mark", "input": SPANS}]
    message = {"model": "claude-4", "content": content, "stop_reason": "tool_use"}
    result = {"type": "succeeded", "message": message}
    assert _said(tmp_path, [{"custom_id": "s1", "result": result}]) == {"claude-4": FOUND}
    search = {"type": "server_tool_use", "name": "web_search", "input": {"query": "Ada"}}
    message = {"model": "claude-4", "content": [search, {"type": "text", "text": json.dumps(SPANS)}]}
    assert _said(tmp_path, [{"custom_id": "s1", "result": result | {"message": message}}]) == {"claude-4": FOUND}
    output = [{"type": "function_call", "name": "mark", "arguments": json.dumps(SPANS)}]
    body = {"model": "gpt-5", "output": output}
    assert _said(tmp_path, [{"custom_id": "s1", "response": {"status_code": 200, "body": body}}]) == {"gpt-5": FOUND}
    output[0]["arguments"] = ""  # the answer stands beside the call
    output.append({"type": "message", "content": [{"type": "output_text", "text": json.dumps(SPANS)}]})
    assert _said(tmp_path, [{"custom_id": "s1", "response": {"status_code": 200, "body": body}}]) == {"gpt-5": FOUND}


@pytest.mark.parametrize("output", [5, [5], [{"content": 5}], [{"content": [5]}], {"content": []}])
def test_responses_of_another_shape_are_empty_answers(output: Any) -> None:
    row = {"custom_id": "s1", "response": {"body": {"model": "gpt-5", "output": output}}}
    assert [answer.problem for answer in answers_of(row)] == ["empty answers"]


def test_gemini(tmp_path: Path) -> None:
    def line(key: str, parts: list[dict[str, Any]], reason: str = "STOP") -> dict[str, Any]:
        candidate = {"content": {"parts": parts}, "finishReason": reason}
        return {"key": key, "response": {"candidates": [candidate], "modelVersion": "gemini-2"}}

    spans = [{"text": "…", "thought": True}, {"text": f"```json\n{json.dumps(SPANS)}\n```"}]
    assert _said(tmp_path, [line("s1", spans), line("s2", [], "SAFETY")]) == {"gemini-2": FOUND}
    assert _said(tmp_path, [line("s1", [{"functionCall": {"name": "mark", "args": SPANS}}])]) == {"gemini-2": FOUND}
    failed = {"key": "s2", "error": {"code": 3}}
    assert _said(tmp_path, [line("s1", spans), failed]) == {"gemini-2": FOUND}
    rated = line("s1", spans)
    rated["response"]["promptFeedback"] = {"safetyRatings": []}  # of a prompt that was answered
    blocked = {"key": "s2", "response": {"promptFeedback": {"blockReason": "OTHER"}}}
    assert _said(tmp_path, [rated, blocked]) == {"gemini-2": FOUND}
    assert [answer.problem for answer in answers_of(blocked)] == ["refused answers"]
    cut = line("s2", [{"text": '{"spans": []'}], "MAX_TOKENS")
    assert _said(tmp_path, [line("s1", spans), cut]) == {"gemini-2": FOUND}
    vertex = {"status": "", "request": {"contents": []}, "response": line("", spans)["response"]}
    with pytest.raises(FormatError, match=r"Vertex AI.*no key"):
        _said(tmp_path, [vertex])


def test_bedrock(tmp_path: Path) -> None:
    text = json.dumps(SPANS)
    message = {"content": [{"text": text}]}
    outputs: list[dict[str, Any]] = [
        {"model": "m", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"},
        {"model": "m", "output": {"message": message}, "stopReason": "end_turn"},
        {"model": "m", "generation": text, "stop_reason": "stop"},
        {"model": "m", "results": [{"outputText": text, "completionReason": "FINISH"}]},
        {"model": "m", "outputs": [{"text": text, "stop_reason": "stop"}]},
        {"model": "m", "choices": [{"message": {"content": text}}]},
    ]
    failed = {"recordId": "s2", "modelInput": {}, "error": {"errorCode": 400}}
    for output in outputs:
        assert _said(tmp_path, [{"recordId": "s1", "modelInput": {}, "modelOutput": output}, failed]) == {"m": FOUND}
    cut = {"model": "m", "results": [{"outputText": '{"spans": []}', "completionReason": "LENGTH"}]}
    with pytest.raises(FormatError, match="answers cut off: 1"):
        _said(tmp_path, [{"recordId": "s1", "modelInput": {}, "modelOutput": cut}])


def test_a_quote_ends_behind_the_marks_of_its_last_letter() -> None:
    """Vietnamese as some systems write it: a letter, and its accents behind it."""
    text = PlainText("o\u0302\u0301 cafe\u0301 la\u0300", [(0, 3), (4, 9), (10, 13)])
    for quote, place in (("\u1ed1", (0, 3)), ("caf\u00e9", (4, 9)), ("Cafe\u0301", (4, 9)), ("l\u00e0", (10, 13))):
        found, _ = text.find(quote)
        assert found == [place], quote


def test_a_quote_that_ends_with_two_marks_ends_behind_both() -> None:
    for marks in ("''", "``"):
        text = PlainText(f"he said {marks} no", [(0, 2), (3, 7), (8, 10), (11, 13)])
        assert text.find('said "') == ([(3, 10)], False)
        assert text.find("no") == ([(11, 13)], False)

"""The report as data and as a page: right numbers, bounded size, nothing from outside taken for markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lasca import DawidSkene, evaluate, schemes, simulate
from lasca.corpus import CrowdCorpus, LoadReport
from lasca.errors import CorpusError
from lasca.report.annotators import expected_counts
from lasca.report.headline import _ends, first_items, span_scores
from lasca.report.labels import confusion_section
from lasca.report.plots import heat, sparkline, trace_plot
from lasca.report.render import _breakable, clean, context, embedded_json, percent, render
from lasca.review.queue import make_queue
from report_cases import NASTY, Case, case_of, demo_case, nasty_corpus


@pytest.fixture(scope="module")
def demo() -> Case:
    return demo_case()


def test_the_data_is_plain_and_the_page_the_same_every_time(demo: Case) -> None:
    data = demo.data()
    assert json.loads(json.dumps(data, allow_nan=False)) == json.loads(json.dumps(data))
    assert demo.page() == demo.page()


def test_headline_counts(demo: Case) -> None:
    data = demo.data()
    queue = make_queue(demo.corpus, demo.truth, demo.ambiguity)
    head = data["headline"]
    assert head["n_person"] == len(queue)
    assert f"Of {len(queue):,} items that a person could decide" in head["person"]
    assert head["expected"] == pytest.approx(queue.errors)
    assert "12 annotators gave 20,870 labels to 4,174 tokens in 342 sequences" in head["read"]
    spans = sum(len(schemes.spans(row)) for row in demo.truth.sequences())
    assert head["figures"][0] == {"value": f"{spans:,}", "words": "spans were inferred"}
    assert len(data["first_items"]) == 6
    assert data["first_items"][0]["words"] in demo.page()
    assert "lasca review OUT" in [step["command"] for step in data["next_steps"]]


def test_who_is_good_by_spans(demo: Case) -> None:
    corpus, truth = demo.corpus, demo.truth
    found = span_scores(corpus, truth)
    assert found is not None
    inferred = [set(schemes.spans(row)) for row in truth.sequences()]
    for a in range(corpus.n_annotators):
        codes = np.full(corpus.n_tokens, -1)
        mine = corpus.annotation_annotator == a
        codes[corpus.annotation_token[mine]] = corpus.annotation_label[mine]
        rows = corpus.label_names(codes)
        given = [set(schemes.spans(row)) for row in rows]
        hits = sum(len(x & y) for x, y in zip(given, inferred))
        seen = sum(sum(row[s] is not None for s, _, _ in spans) for row, spans in zip(rows, inferred))
        assert found[a]["given"] == sum(map(len, given))
        assert found[a]["precision"]["value"] == pytest.approx(hits / found[a]["given"])
        assert found[a]["recall"]["value"] == pytest.approx(hits / seen)
        assert found[a]["recall"]["low"] < found[a]["recall"]["value"] < found[a]["recall"]["high"]
    assert span_scores(nasty_corpus(), case_of(nasty_corpus(), "mv", "vote-entropy").truth) is None


def test_what_a_model_says_that_does_not_vote_is_scored_and_counted_apart() -> None:
    words, x, y = [["a", "b", "c"]] * 4, ["B-X", "I-X", "O"], ["B-X", "O", "O"]
    corpus = CrowdCorpus.from_sequences(words, {"ann": [x] * 4, "bot": [x, x, x, y]})
    corpus = replace(corpus, kinds=("person", "model"), votes=(True, False))
    case = case_of(corpus, "mv", "vote-entropy")
    data = case.data()
    said = data["headline"]["read"]
    assert said.startswith("1 annotator gave 12 labels to 12 tokens in 4 sequences, 1.0 per token. ")
    assert said.endswith("1 model that does not vote gave 12 more.")
    found = span_scores(corpus, case.truth)
    assert found is not None
    assert (found[1]["given"], found[1]["precision"]["value"], found[1]["recall"]["value"]) == (4, 0.75, 0.75)
    assert [row["name"] for row in data["annotators"]["by_spans"]] == ["ann", "bot"]
    page = case.page()
    assert "0 tokens on which" not in page
    assert "labels are shown" not in page  # no two of them compete


def test_words_stand_as_they_stood_in_the_text_and_where_there_are_none_the_place_does() -> None:
    words = ["A", "34", "-", "year", "-", "old", "man", "ran", "."]
    chars = [(0, 1), (2, 4), (4, 5), (5, 9), (9, 10), (10, 13), (14, 17), (18, 21), (21, 22)]
    short, long = (["O", "B-AGE", *["I-AGE"] * n, *["O"] * (7 - n)] for n in (4, 5))
    corpus = CrowdCorpus.from_sequences([words], {"ann": [long], "bob": [short], "cem": [short]})
    corpus = replace(corpus, token_chars=np.array(chars, np.int32))
    (item,) = case_of(corpus, "mv", "vote-entropy").data()["first_items"]
    assert (item["before"], item["words"], item["after"]) == ("A ", "34-year-old man", " ran.")
    assert item["candidates"][:2] == ["AGE: 34-year-old", "AGE: 34-year-old man"]

    people = {"x": [["1", "2"]], "y": [["1", "1"]], "z": [["2", "1"]]}
    blind = case_of(CrowdCorpus.from_sequences([["_", "_"]], people), "mv", "vote-entropy").data()
    first = blind["first_items"][0]
    assert (first["before"], first["after"]) == ("", "")
    assert first["words"] in ("0, token 1", "0, token 2")
    assert set(first["candidates"]) == {"1", "2"}
    for size, shown in ((2, {"token 1", "token 2"}), (1, {f"q{i}" for i in range(120)})):
        many = {name: own * 60 if size == 2 else [[x] for x in own[0]] * 60 for name, own in people.items()}
        words, ids = [["_"] * size] * (120 // size), [f"q{i}" for i in range(120 // size)]
        data = case_of(CrowdCorpus.from_sequences(words, many, sequence_ids=ids), "mv", "vote-entropy").data()
        rows = data["ambiguous"]["rows"]
        assert rows
        assert {row["t"] for row in rows} <= shown  # an item alone is called by its sequence


def test_a_gold_that_somebody_voted_is_not_called_unseen() -> None:
    words, x, y = [["a", "b"]] * 2, ["B-X", "O"], ["O", "O"]
    people = {"ann": [x, y], "bob": [y, x], "cem": [y, y]}
    for gold, copied in (([x, x], True), ([x, ["B-X", "B-X"]], False)):
        case = case_of(CrowdCorpus.from_sequences(words, people, golds={"g": gold}), "mv", "vote-entropy")
        assert case.data()["gold"]["copied"] is copied
        assert ("The model never saw them" in case.page()) is not copied


def test_what_must_be_known_first_is_on_top() -> None:
    corpus = CrowdCorpus.from_sequences([["a", "b"]], {"x": [["B-X", "O"]], "y": [["B-Y", "O"]], "z": [["B-X", "O"]]})
    case = case_of(corpus, "mv", "vote-entropy")
    data = case.data(record={"warnings": ["something else", "x and y seem to be copies"]})
    assert data["warnings"][0].startswith("Given by somebody but never inferred: Y.")
    assert data["warnings"][1] == "x and y seem to be copies"
    page = case.page()
    assert page.index("Please note first") < page.index('class="lead"')


def test_a_fit_that_stopped_early_says_so_wherever_warnings_are_shown() -> None:
    corpus = simulate.demo_crowd("ner").select(sequences=np.arange(30))
    truth = DawidSkene(max_iter=2).fit(corpus)
    (said,) = (w for w in truth.warnings if "stopped before it converged (2 iterations)" in w)
    assert case_of(corpus, "mv", "vote-entropy").data(record={"warnings": ["x", said]})["warnings"][0] == said
    assert not any("converged" in w for w in DawidSkene().fit(corpus).warnings)


def test_labels_that_hardly_compete_are_no_picture() -> None:
    case = case_of(simulate.demo_crowd("ner").select(sequences=np.arange(20)), "mv", "vote-entropy")
    T = case.corpus.n_labels
    assert confusion_section(case.corpus, np.full((T, T), 1e-5), {})["top"] == []
    assert len(confusion_section(case.corpus, np.full((T, T), 0.01), {})["top"]) == 8


def test_who_has_labelled_everything_is_not_asked_for_more() -> None:
    def commands(corpus: CrowdCorpus) -> list[str]:
        return [step["command"] for step in case_of(corpus, "mv", "vote-entropy").data()["next_steps"]]

    words, x = [["a", "b"]] * 2, [["B-X", "O"]] * 2
    assert "lasca next OUT --budget 10 --annotators NEW,NAMES -o TASKS" in commands(
        CrowdCorpus.from_sequences(words, {"x": x, "y": x})
    )
    assert "lasca next OUT --budget 10 -o TASKS" in commands(
        CrowdCorpus.from_sequences(words, {"x": x, "y": [x[0], None]})
    )


def test_where_nothing_is_to_decide_an_audit_comes_first() -> None:
    x, y = [["N"], ["N"], ["N"]], [["N"], ["N"], ["V"]]
    words = [["a"], ["b"], ["c"]]
    agreed = case_of(CrowdCorpus.from_sequences(words, {"x": x, "y": x}), "mv", "vote-entropy").data()
    assert "Nothing is left that a person would have to decide" in agreed["headline"]["person"]
    assert agreed["next_steps"][0] == {"why": "Audit what the model is sure of", "command": "lasca review OUT"}
    split = case_of(CrowdCorpus.from_sequences(words, {"x": x, "y": y}), "mv", "vote-entropy").data()
    assert split["headline"]["person"] == "There is 1 item that a person could decide."
    assert split["next_steps"][0]["why"].startswith("Decide")


@pytest.mark.parametrize(("format", "last"), [("brat", " --to brat"), ("conll", ""), ("lasca", ""), ("", "")])
def test_final_labels_are_advised_in_the_format_in_which_they_came(format: str, last: str) -> None:
    corpus = simulate.demo_crowd("ner").select(sequences=np.arange(20))
    case = case_of(replace(corpus, load_report=LoadReport("", format)), "mv", "vote-entropy")
    assert case.data()["next_steps"][-1]["command"] == f"lasca finish OUT -o FINAL{last}"


def test_tokens_nobody_labelled_are_named() -> None:
    corpus = CrowdCorpus.from_sequences([["a", "b"], ["c"]], {"x": [["N", "V"], None], "y": [["N", "N"], None]})
    data = case_of(corpus, "mv", "vote-entropy").data()["headline"]
    assert "1 more token was read" in data["read"]
    assert "to 2 tokens in 1 sequence" in data["read"]


def test_annotator_rows_and_mistakes(demo: Case) -> None:
    rows = demo.data()["annotators"]["rows"]
    assert [row["reliability"] for row in rows] == sorted((row["reliability"] for row in rows), reverse=True)
    corpus, truth = demo.corpus, demo.truth
    counts = expected_counts(corpus, truth, list(range(corpus.n_annotators)))
    naive = np.zeros_like(counts)
    for token, annotator, label in zip(corpus.annotation_token, corpus.annotation_annotator, corpus.annotation_label):
        naive[annotator, :, label] += truth.proba[token]
    np.testing.assert_allclose(counts, naive, rtol=1e-6, atol=1e-6)
    for row in rows:
        wrong = naive[row["code"]] * (1 - np.eye(corpus.n_labels))
        assert [m["n"] for m in row["mistakes"]] == sorted((m["n"] for m in row["mistakes"]), reverse=True)
        assert row["mistakes"][0]["n"] == round(wrong.max())
        assert row["low"] < row["reliability"] < row["high"]


def test_models_are_tested_as_annotators() -> None:
    demo = case_of(simulate.demo_crowd("ner"), "mv", "vote-entropy")
    assert demo.data()["alternatives"] == []
    assert "May a model replace a person?" not in demo.page()
    kinds = ("model", *demo.corpus.kinds[1:])
    known = replace(demo, corpus=replace(demo.corpus, kinds=kinds, votes=(True,) * 12))
    (row,) = known.data()["alternatives"]
    test = evaluate.alternative_annotator(known.corpus, demo.corpus.annotators[0])
    assert row["test"] == test.to_dict()
    assert "May a model replace a person?" in known.page()
    alone = replace(demo, corpus=replace(demo.corpus, kinds=("model",) * 12, votes=(True,) * 12))
    assert all("too few people" in row["why"] for row in alone.data()["alternatives"])
    assert "too few people" in alone.page()


def test_clusters_and_their_words(demo: Case) -> None:
    clusters = demo.data()["clusters"]
    assert sum(item["size"] for item in clusters["items"]) == demo.corpus.n_annotators
    for item in clusters["items"]:
        for row in item["map"]["rows"]:
            assert sum(cell["value"] for cell in row["cells"]) == pytest.approx(1, abs=1e-5)
        assert "of the labels" in item["words"]


def test_a_model_without_clusters_gold_or_trace() -> None:
    corpus = CrowdCorpus.from_sequences([["a", "b"]], {"x": [["N", "V"]], "y": [["N", "N"]]})
    case = case_of(corpus, "mv", "vote-entropy")
    data = case.data()
    assert data["clusters"] is None
    assert data["gold"] is None
    page = case.page()
    assert 'id="gold"' not in page
    assert 'id="clusters"' not in page


def test_ambiguous_rows_hold_what_people_said(demo: Case) -> None:
    section = demo.data()["ambiguous"]
    corpus = demo.corpus
    assert section["listed"] == section["total"] == len(demo.ambiguity.tokens)
    for row, token in zip(section["rows"], demo.ambiguity.tokens):
        votes = slice(corpus.token_start[token], corpus.token_start[token + 1])
        given = zip(corpus.annotation_annotator[votes].tolist(), corpus.annotation_label[votes].tolist())
        assert row["v"] == [list(vote) for vote in given]
        assert row["t"] == corpus.tokens[int(token)]
        assert sum(weight for _, weight in row["c"]) == pytest.approx(1, abs=0.02)
    assert sum(entry["n"] for entry in section["pairs"]) == sum("k" in row for row in section["rows"])
    for key, rows in section["examples"].items():
        wanted = {int(code) for code in key.split("-")}
        for index in rows:
            assert wanted <= {code for code, _ in section["rows"][index]["c"]}


def test_gold_scores_are_those_of_evaluate(demo: Case) -> None:
    gold = demo.data()["gold"]
    right = (demo.corpus.golds["gold"] == demo.truth.labels).mean()
    assert gold["accuracy"] == pytest.approx(right)
    assert sum(b["count"] for b in gold["bins"]) == demo.corpus.n_tokens
    with pytest.raises(CorpusError, match="no gold of that name"):
        demo.data(gold="nothing")


def test_models_side_by_side(demo: Case) -> None:
    scores = {"accuracy": 0.9, "precision": None, "recall": None, "f1": None, "macro_f1": 0.5}
    scores |= {"cross_entropy": 0.2, "ece": 0.01, "n_tokens": 10}
    models = [
        {"model": "mv", "scores": {"all": scores}, "cpu_seconds": 1.0, "warnings": ["careful"]},
        {"model": "ds", "scores": {"all": scores | {"accuracy": 0.95}}, "cpu_seconds": 2.0, "warnings": []},
    ]
    data = demo.data(models=models)["models"]
    assert data["parts"][0]["best"]["accuracy"] == 0.95
    assert data["parts"][0]["best"]["f1"] is None
    page = demo.page(models=models)
    assert 'id="models"' in page
    assert "mv: careful" in page


def _big_corpus(n_tokens: int, n_annotators: int, n_labels: int) -> CrowdCorpus:
    rng = np.random.default_rng(1)
    truth = rng.integers(n_labels, size=n_tokens)
    token = np.repeat(np.arange(n_tokens), 3)
    start = rng.integers(n_annotators, size=n_tokens)
    annotator = (start[:, None] + np.array([0, 1, 2])).ravel() % n_annotators
    slip = rng.random(len(token)) < 0.25
    label = np.where(slip, rng.integers(n_labels, size=len(token)), truth[token])
    return CrowdCorpus.from_codes(
        tokens=[f"token{i % 5000}" for i in range(n_tokens)],
        offsets=np.arange(0, n_tokens + 1, 20),
        labels=[f"LABEL{i:02d}" for i in range(n_labels)],
        annotators=[f"annotator-{i:04d}" for i in range(n_annotators)],
        annotation_token=token,
        annotation_annotator=annotator,
        annotation_label=label,
        sequence_ids=[f"document/{i}" for i in range(n_tokens // 20)],
        golds={"gold": truth.astype(np.int16)},
    )


def test_a_hundred_thousand_tokens_stay_under_three_megabytes_and_say_what_is_left_out() -> None:
    case = case_of(_big_corpus(100_000, 1_000, 40), "mv", "vote-entropy")
    data = case.data()
    page = case.page()
    assert len(page.encode("utf-8")) < 3_000_000
    section = data["ambiguous"]
    assert 500 < section["listed"] < section["total"]
    assert f"The top {section['listed']:,} are on this page" in page
    assert "The 300 busiest annotators are shown; 700 more" in page
    assert "The 24 most confused labels are shown, 16 are not" in page


class _Scripts(HTMLParser):
    """Collects scripts, attributes that run something, and elements by name."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.events: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.events += [name for name, _ in attrs if name.startswith("on")]
        self.outside += [str(v) for name, v in attrs if name in ("src", "href") and not str(v).startswith("#")]


def test_everything_from_outside_is_text() -> None:
    page = case_of(nasty_corpus(), "mv", "vote-entropy").page(title=NASTY[1], record={"warnings": list(NASTY)})
    parser = _Scripts()
    parser.feed(page)
    assert parser.tags.count("script") == 2  # the data and the script
    assert "img" not in parser.tags
    assert parser.events == []
    assert parser.outside == []
    assert "\x00" not in page
    assert "\u202e" not in page
    assert (
        "49"
        not in re.findall(r"<title>(.*?)</title>", case_of(nasty_corpus(), "mv", "vote-entropy").page(title=NASTY[5]))[
            0
        ]
    )


@given(st.recursive(st.text() | st.integers() | st.none(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_embedded_json_reads_back_and_cannot_end_a_script(value: object) -> None:
    text = str(embedded_json(value))
    assert json.loads(text) == value
    assert not set("<>&\u2028\u2029") & set(text)


@given(st.text(max_size=200), st.integers(min_value=5, max_value=100))
def test_clean_text_is_short_and_shows_control_characters(text: str, limit: int) -> None:
    shown = clean(text, limit)
    assert len(shown) <= limit
    assert not any(ord(ch) < 32 or 127 <= ord(ch) < 160 for ch in shown)
    assert clean(shown, limit) == shown


def test_context_is_cut_far_from_the_token() -> None:
    words = [f" w{i}" for i in range(200)]
    before, after = context(words, 100, 101)
    assert before.startswith("… ")
    assert before.endswith("w99 ")
    assert after.startswith(" w101")
    assert after.endswith(" …")
    assert context([" a", " b", " c"], 1, 2) == ("a ", " c")
    assert context([" a", "b", "c", " d"], 1, 3) == ("a", " d")
    assert context([" a"], 0, 1) == ("", "")


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0.0 %"), (1.0, "100.0 %"), (0.99999, "over 99.9 %"), (0.00001, "under 0.1 %"), (0.1234, "12.3 %")],
)
def test_percentages_do_not_round_to_all_or_nothing(share: float, words: str) -> None:
    assert percent(share) == words


def test_plots() -> None:
    assert [heat(v) for v in (0.0, 0.0001, 0.25, 0.99, 1.0, float("nan"))] == [0, 0, 5, 9, 9, 0]
    assert sparkline([0.5], 0, 1) == ""
    assert sparkline([0.0, 1.0], 0, 1) == "M2.0,18.0L86.0,2.0"
    assert trace_plot(np.zeros(0)) is None
    assert trace_plot([1.0, np.nan]) is None
    chains = trace_plot(np.arange(2000.0).reshape(2, 1000))
    assert chains is not None
    assert len(chains["paths"]) == 2
    assert chains["paths"][0].count("L") < 260


def test_first_decisions_differ_as_shown_and_remove_something(demo: Case) -> None:
    corpus, queue = demo.corpus, make_queue(demo.corpus, demo.truth, demo.ambiguity)
    s = int(np.argmax(np.diff(corpus.offsets)))
    n = int(corpus.offsets[s + 1] - corpus.offsets[s])
    kind = "PER"
    readings = (((0, n, kind),), ((0, n - 1, kind),))
    area = replace(queue.items[0].area, sequence=s, start=0, stop=n, readings=readings, weights=(0.5, 0.5),
                   voters=((0,), (1,)), trust=())  # fmt: skip
    long = replace(queue.items[0], area=area, gain=1.0)
    nothing = [replace(item, gain=0.001) for item in queue.items[1:4]]
    (row,) = first_items(corpus, replace(queue, items=(long, *nothing)))
    assert len(set(row["candidates"])) == 2, "readings that differ in their last word look different"
    assert len(first_items(corpus, replace(queue, items=tuple(nothing)))) == 1, "where nothing removes much, the first"


def test_long_readings_show_both_ends() -> None:
    text = "PER: " + " ".join(f"word{i}" for i in range(60))
    cut = _ends(text)
    assert cut.startswith("PER: word0 ")
    assert cut.endswith(" word59")
    assert " … " in cut
    assert len(cut) <= 110
    assert _ends("PER: Ada") == "PER: Ada"


def test_what_tags_mean_is_said_where_they_first_stand(demo: Case) -> None:
    assert "B- is the first token of a span" in demo.page()
    assert "In labels" not in case_of(simulate.demo_crowd("pos"), "mv", "vote-entropy").page()


def test_volume_is_plotted_only_where_it_differs(demo: Case) -> None:
    votes = {name: [["B-X", "O"], ["O", "B-X"]] for name in "abc"}
    alike = case_of(CrowdCorpus.from_sequences([["w", "v"], ["v", "w"]], votes), "mv", "vote-entropy").page()
    assert "Volume against reliability" not in alike
    assert "Volume against reliability" in demo.page()


def test_few_tokens_are_shown_where_none_is_likely_to_be_ambiguous(demo: Case) -> None:
    data = demo.data()
    assert data["ambiguous"]["is_probability"]
    for likely, first in ((0, 5), (3, 25)):
        page = render({**data, "ambiguous": {**data["ambiguous"], "likely": likely}})
        assert f'"first":{first}' in page


def test_long_names_break_behind_their_signs() -> None:
    assert _breakable("anna@example.org") == "anna@<wbr>example.<wbr>org"
    assert _breakable("<b>@x") == "&lt;b&gt;@<wbr>x"
    assert _breakable("x" * 30).replace("<wbr>", "") == "x" * 30
    assert "<wbr>" in _breakable("x" * 30)

"""The queue: areas, readings and their weights, ranks, reasons, and files that can do no harm."""

from __future__ import annotations

import csv
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lasca import schemes, simulate
from lasca.ambiguity import find_ambiguity
from lasca.corpus import CrowdCorpus
from lasca.report.headline import first_items
from lasca.review import experience
from lasca.review.decisions import Decision
from lasca.review.experience import Experience, Lesson, found_errors, traits_of
from lasca.review.items import USUAL, Area, areas_of, distance, find_items
from lasca.review.queue import (
    SETTLES,
    Item,
    Queue,
    _question,
    make_queue,
    ranked,
    rows,
    words_of,
    write_queue,
)
from lasca.review.spans import Labels, said_by_everybody
from lasca.truth import Truth, model_class
from report_cases import NASTY, nasty_corpus


def truth_of(
    corpus: CrowdCorpus, proba: dict[tuple[int, int], dict[str, float]] | None = None, model: str = "mv"
) -> Truth:
    """A truth by majority vote, with the probabilities of some tokens (sequence, position) as given."""
    truth = model_class(model)().fit(corpus)
    changed = np.array(truth.proba)
    for (s, i), row in (proba or {}).items():
        changed[corpus.offsets[s] + i] = [row.get(name, 0.0) for name in corpus.labels]
    labels = changed.argmax(axis=1).astype(np.int16)
    fields = {name: getattr(truth, name) for name in truth.__dataclass_fields__}
    return Truth(**fields | {"proba": changed, "labels": labels})


def ner(**people: list[str]) -> CrowdCorpus:
    tokens = [f"w{i}" for i in range(len(next(iter(people.values()))))]
    return CrowdCorpus.from_sequences([tokens], {name: [said] for name, said in people.items()})


def test_spans_are_read_as_schemes_reads_them() -> None:
    rng = np.random.default_rng(0)
    for names in (
        ("O", "B-X", "I-X", "B-Y", "I-Y"),
        ("O", "B", "I", "E", "S"),
        ("O", "I-X", "I-Y"),
        ("O", "U-X", "L-X", "B-X", "I-X"),
    ):
        labels = Labels(names)
        for _ in range(200):
            lengths = rng.integers(0, 6, 3)
            codes = rng.integers(0, len(names), lengths.sum())
            offsets = np.concatenate(([0], np.cumsum(lengths)))
            found = labels.spans(codes, offsets)
            expected = [
                (int(a) + s, int(a) + e, kind)
                for a, b in itertools.pairwise(offsets)
                for s, e, kind in schemes.spans([names[c] for c in codes[a:b]])
            ]
            assert [(a, b, labels.types[k]) for a, b, k in zip(found.start, found.stop, found.kind)] == expected


def test_one_entity_is_one_item_whatever_people_said_of_it() -> None:
    corpus = ner(a=["O", "B-X", "I-X", "O", "B-Y"], b=["O", "O", "B-X", "I-X", "B-Y"], c=["O", "O", "O", "O", "B-Y"])
    (item,) = make_queue(corpus, truth_of(corpus)).items
    assert (item.area.start, item.area.stop) == (1, 4)
    assert set(item.area.readings) >= {((1, 3, "X"),), ((2, 4, "X"),), ()}
    voters = dict(zip(item.area.readings, item.area.voters))
    assert voters[(1, 3, "X"),] == (0,)
    assert voters[()] == (2,)


def test_what_all_agree_on_does_not_fill_the_queue() -> None:
    corpus = simulate.demo_crowd("ner")
    truth = truth_of(corpus, model="ds")
    queue = make_queue(corpus, truth)
    assert len(queue) > 10
    for item in queue.items:
        assert item.area.kind == "missed" or not item.area.unanimous
        assert len(item.area.readings) >= 2
    everything = find_items(corpus, truth, everything=True)
    assert any(area.unanimous for area in everything)
    assert queue.errors == pytest.approx(sum(area.errors for area in everything))


def test_only_readings_that_somebody_gave_or_the_posterior_holds() -> None:
    corpus = simulate.demo_crowd("ner")
    truth = truth_of(corpus, model="ds")
    labels = Labels.of(corpus)
    for item in make_queue(corpus, truth).items:
        area = item.area
        base = int(corpus.offsets[area.sequence])
        for reading, voters, weight in zip(area.readings[1:], area.voters[1:], area.weights[1:]):
            assert voters or weight >= 0.02
            codes = labels.codes([(s - area.start, e - area.start, k) for s, e, k in reading], area.stop - area.start)
            if not voters:
                assert codes is not None
                assert all(truth.proba[base + area.start + i, c] > 0 for i, c in enumerate(codes))


def naive_weights(cells: list[list[float]], rounds: int = 40) -> list[float]:
    """EM, one cell at a time: cells[r][i] = (label, probability) of reading r at token i."""
    n, length = len(cells), len(cells[0])
    w = [1 / n] * n
    for _ in range(rounds):
        new = [0.0] * n
        for i in range(length):
            for label in {cells[r][i][0] for r in range(n)}:
                holders = [r for r in range(n) if cells[r][i][0] == label]
                p = cells[holders[0]][i][1]
                total = sum(w[r] for r in holders)
                for r in holders:
                    new[r] += p * w[r] / total if total > 0 else 0.0
        w = [x / sum(new) for x in new]
    return w


def test_weights_of_readings_are_those_of_the_naive_loop() -> None:
    corpus = ner(a=["B-X", "I-X", "O"], b=["B-X", "O", "O"], c=["O", "B-Y", "I-Y"], d=["O", "O", "O"])
    proba = {
        (0, 0): {"B-X": 0.7, "O": 0.3},
        (0, 1): {"I-X": 0.5, "O": 0.2, "B-Y": 0.3},
        (0, 2): {"O": 0.9, "I-Y": 0.1},
    }
    (area,) = find_items(corpus, truth_of(corpus, proba))
    labels = Labels.of(corpus)
    cells: Any = []
    for reading in area.readings:
        codes = labels.codes(reading, 3)
        assert codes is not None
        cells.append([(c, proba[0, i].get(corpus.labels[c], 0.0)) for i, c in enumerate(codes)])
    assert area.weights == pytest.approx(naive_weights(cells), abs=1e-6)
    assert area.readings[0] == ((0, 2, "X"),)
    model = sum(w * distance(area.readings[0], r) for w, r in zip(area.weights, area.readings))
    gave = {voters[0]: w for w, voters in zip(area.weights, area.voters) if voters}
    usual = sum(gave.values()) / 4
    share = {who: (w + USUAL * usual) / (1 + USUAL) for who, w in gave.items()}
    odds = {corpus.annotators[who]: p / (1 - p) for who, p in share.items()}
    apart = {"a": 0, "b": 2, "c": 2, "d": 1}  # a is right; b has another border, c another span, d none
    people = sum(odds[who] * apart[who] for who in apart) / sum(odds.values())
    assert area.errors == pytest.approx((10 * model + 3 * people) / 13)


def test_people_are_believed_by_the_odds_of_what_they_usually_say() -> None:
    """Twice one of two marks a span and the model is torn; who of them is right elsewhere decides what comes first."""
    good, bad = ["B-X", "O", "B-X", "O"] * 6, ["O", "B-X", "O", "B-X"] * 6
    corpus = ner(a=[*good, "B-X", "O", "O"], b=[*bad, "O", "O", "B-X"])
    sure = {(0, i): {"B-X": 0.98, "O": 0.02} if tag != "O" else {"O": 0.98, "B-X": 0.02} for i, tag in enumerate(good)}
    torn = {(0, len(good) + i): {"O": 0.6, "B-X": 0.4} for i in (0, 2)}
    found = {area.start: area for area in find_items(corpus, truth_of(corpus, sure | torn), everything=True)}
    by_a, by_b = found[len(good)], found[len(good) + 2]
    assert by_a.readings == ((), ((len(good), len(good) + 1, "X"),))
    assert by_a.weights == pytest.approx(by_b.weights)
    assert by_a.errors > by_b.errors + 0.03


def test_a_blend_that_nobody_gave_is_not_what_is_proposed() -> None:
    """Half see the long span, half none: token by token the last word is O, and what is left is wrong for sure."""
    corpus = ner(a=["B-X", "I-X", "I-X"], b=["B-X", "I-X", "I-X"], c=["O", "O", "O"])
    proba = {(0, 0): {"B-X": 0.53, "O": 0.47}, (0, 1): {"I-X": 0.53, "O": 0.47}, (0, 2): {"I-X": 0.48, "O": 0.52}}
    truth = truth_of(corpus, proba)
    queue = make_queue(corpus, truth)
    (item,) = queue.items
    assert item.area.readings[0] == ((0, 2, "X"),)
    (row,) = rows(corpus, queue.items)
    assert [c["spans"] for c in row["candidates"]] == [[[0, 3, "X"]], [], [[0, 2, "X"]]]
    (first,) = first_items(corpus, queue)  # the report shows the same in the same order
    assert first["candidates"] == [c["words"] for c in row["candidates"]]
    sure = truth_of(corpus, {(0, i): {tag: 0.9, "O": 0.1} for i, tag in enumerate(("B-X", "I-X", "I-X"))})
    (plain,) = make_queue(corpus, sure).items
    assert plain.area.offered == (0, 1)
    apart = ner(a=["B-X", "I-X", "I-X"], b=["O", "B-X", "I-X"], c=["O", "O", "B-X"])
    even = {
        (0, 0): {"B-X": 0.3, "O": 0.7},
        (0, 1): {"I-X": 0.3, "B-X": 0.3, "O": 0.4},
        (0, 2): {"B-X": 0.5, "I-X": 0.5},
    }
    (torn,) = make_queue(apart, truth_of(apart, even)).items
    assert torn.area.voters[
        torn.area.offered[0]
    ]  # three readings, none like another: "none" is nearest, nobody said it


def test_tokens_that_hang_together_count_once() -> None:
    n = 6
    corpus = ner(a=["B-X"] + ["I-X"] * (n - 1), b=["O"] * n)
    proba = {(0, i): {"I-X" if i else "B-X": 0.6, "O": 0.4} for i in range(n)}
    (area,) = find_items(corpus, truth_of(corpus, proba))
    assert area.certainty == pytest.approx(0.6, abs=0.01)  # a product over tokens would say 0.92


def test_items_without_words_are_not_alike_and_are_called_by_their_place() -> None:
    people = {"a": [["1"], ["1"], ["2"]], "b": [["2"], ["2"], ["2"]]}
    items = CrowdCorpus.from_sequences([["_"]] * 3, people, sequence_ids=("x7", "x8", "x9"))
    queue = make_queue(items, truth_of(items))
    assert [item.alike for item in queue.items] == [0, 0]  # with the same words they would be
    assert [row["words"] for row in first_items(items, queue)] == ["x7", "x8"]
    rows_of_one = CrowdCorpus.from_sequences([["_"] * 2], {"a": [["1", "1"]], "b": [["2", "1"]]}, sequence_ids=("all",))
    queue = make_queue(rows_of_one, truth_of(rows_of_one))
    assert [row["words"] for row in first_items(rows_of_one, queue)] == ["all, token 1"]
    people = {"a": [["B-X", "I-X"]] * 2, "b": [["O", "O"]] * 2}
    named = CrowdCorpus.from_sequences([["_", "Ada"]] * 2, people)  # a word that is an underscore is one all the same
    assert [item.alike for item in make_queue(named, truth_of(named)).items] == [1, 1]


def test_the_words_of_an_area() -> None:
    corpus = CrowdCorpus.from_sequences(
        [list("abc"), list("defghi"), ["_", "_"]], {"a": [["O"] * n for n in (3, 6, 2)]}
    )
    for start, stop in itertools.combinations(range(7), 2):
        area = Area(1, start, stop, ((),), (1.0,), ((),))
        assert words_of(corpus, area) == " ".join("defghi"[start:stop])
    assert words_of(corpus, Area(2, 1, 2, ((),), (1.0,), ((),))) == f"{corpus.sequence_ids[2]}, token 2"


def test_a_decision_that_settles_others_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [["Paris", "x"]] * 5 + [["Rome", "x"]]
    people = {"a": [["B-LOC", "O"]] * 6, "b": [["B-PER", "O"]] * 5 + [["B-PER", "O"]]}
    corpus = CrowdCorpus.from_sequences(tokens, people)
    proba = {(s, 0): {"B-LOC": 0.6, "B-PER": 0.4} for s in range(5)} | {(5, 0): {"B-LOC": 0.55, "B-PER": 0.45}}
    queue = make_queue(corpus, truth_of(corpus, proba))
    assert next(item.area.sequence for item in queue.items) == 0
    assert queue.items[0].alike == 4
    assert queue.items[0].elsewhere > 0
    monkeypatch.setattr("lasca.review.queue.SETTLES", 0.0)
    alone = make_queue(corpus, truth_of(corpus, proba))
    assert alone.items[0].area.sequence == 5
    assert sum(i.gain for i in alone.items) == pytest.approx(alone.errors)


def test_reasons_and_questions() -> None:
    people = {
        "a": [["B-X"], ["B-X"], ["B-X"], ["O"], ["B-X"], ["B-X"]],
        "b": [["B-Y"], ["B-X"], None, ["O"], ["B-X"], ["B-X"]],
        "c": [["O"], ["B-Y"], None, ["O"], ["O"], ["O"]],
    }
    corpus = CrowdCorpus.from_sequences([["w"]] * 6, people)
    proba = {
        (0, 0): {"B-X": 0.5, "B-Y": 0.3, "O": 0.2},
        (1, 0): {"B-X": 0.1, "B-Y": 0.9},
        (2, 0): {"B-X": 0.7, "O": 0.3},
        (3, 0): {"B-X": 0.3, "O": 0.7},
        (4, 0): {"B-X": 0.6, "O": 0.4},
        (5, 0): {"B-X": 0.6, "O": 0.4},
    }
    truth = truth_of(corpus, proba)
    ambiguous = replace(
        find_ambiguity(corpus, truth, method="vote-entropy"),
        method="two-truths",
        score=np.array([0.4, 1.0, 1.0, 1.0, np.nan, 0.5]),
    )
    by_sequence = {i.area.sequence: (i.reason, i.question) for i in make_queue(corpus, truth, ambiguous).items}
    assert by_sequence == {
        0: ("people disagree", "label"),
        1: ("against most people", "label"),
        2: ("few votes", "whether"),
        3: ("missed", "missed"),
        4: ("people disagree", "whether"),
        5: ("truly ambiguous", "whether"),
    }


@pytest.mark.parametrize(
    ("readings", "asked"),
    [
        ([[(0, 2, "X")], [(0, 2, "Y")], []], "label"),
        ([[(0, 2, "X")], []], "whether"),
        ([[(0, 2, "X")], [(1, 2, "X")], []], "borders"),
        ([[(0, 2, "X")], [(1, 2, "Y")]], "reading"),
        ([[(0, 1, "X"), (2, 3, "X")], [(0, 2, "X"), (3, 4, "X")]], "reading"),  # of two spans: which ones?
    ],
)
def test_what_is_asked_is_what_readings_differ_in(readings: list[Any], asked: str) -> None:
    n = len(readings)
    area = Area(0, 0, 4, tuple(map(tuple, readings)), (1 / n,) * n, ((0,),) * n, "marked")
    assert _question(area) == asked


def test_two_who_disagree_are_not_few() -> None:
    corpus = ner(a=["B-X"], b=["O"])
    (item,) = make_queue(corpus, truth_of(corpus, {(0, 0): {"B-X": 0.6, "O": 0.4}})).items
    assert item.reason == "people disagree"


def test_other_readings_stand_in_the_order_of_their_weights() -> None:
    corpus = ner(a=["B-X"], b=["B-Y"], c=["B-Z"], d=["O"])
    (area,) = find_items(corpus, truth_of(corpus, {(0, 0): {"B-X": 0.4, "B-Y": 0.1, "B-Z": 0.2, "O": 0.3}}))
    assert area.readings == (((0, 1, "X"),), (), ((0, 1, "Z"),), ((0, 1, "Y"),))
    assert list(area.weights) == sorted(area.weights, reverse=True)


def test_missed_is_what_nobody_marked_and_the_truth_does_not_either() -> None:
    tokens = [["w"], ["w"], ["w"]]
    people = {"a": [["O"], ["O"], ["O"]], "b": [["O"], ["O"], ["B-X"]], "c": [["O"], ["O"], ["O"]]}
    corpus = CrowdCorpus.from_sequences(tokens, people)
    proba = {(0, 0): {"B-X": 0.3, "O": 0.7}, (1, 0): {"B-X": 0.6, "O": 0.4}, (2, 0): {"B-X": 0.3, "O": 0.7}}
    found = {area.sequence: area.kind for area in find_items(corpus, truth_of(corpus, proba), everything=True)}
    assert found == {0: "missed", 1: "marked", 2: "marked"}
    halves = {"a": [["B-X", None]], "b": [[None, "I-X"]]}  # who labelled a part only has no reading of the whole
    corpus = CrowdCorpus.from_sequences([["w", "w"]], halves)
    both = {(0, 0): {"B-X": 0.4, "O": 0.6}, (0, 1): {"I-X": 0.4, "O": 0.6}}
    wide = CrowdCorpus.from_sequences([["w", "w"]], halves, labels=("B-X", "I-X", "O"))
    assert [area.kind for area in find_items(wide, truth_of(wide, both), everything=True)] == ["marked"]


def test_labels_of_no_scheme_are_asked_token_by_token() -> None:
    corpus = CrowdCorpus.from_sequences([["run", "fast", "now"]], {"a": [["N", "A", "A"]], "b": [["V", "A", "A"]]})
    (item,) = make_queue(corpus, truth_of(corpus)).items
    assert item.question == "label"
    assert {r[0][2] for r in item.area.readings} == {"N", "V"}
    assert item.area.errors == pytest.approx(0.5)
    three = CrowdCorpus.from_sequences([["run"]], {"a": [["N"]], "b": [["A"]], "c": [["A"]]})
    (item,) = make_queue(three, truth_of(three, {(0, 0): {"A": 0.2, "N": 0.8}})).items
    assert [r[0][2] for r in item.area.readings] == ["N", "A"]
    four = CrowdCorpus.from_sequences([["a", "b"]], {"a": [["N", "V"]], "b": [["A", "V"]], "c": [["A", "V"]]})
    (item,) = make_queue(four, truth_of(four, {(0, 0): {"N": 0.5, "V": 0.3, "A": 0.2}})).items
    assert [r[0][2] for r in item.area.readings] == ["N", "V", "A"]  # the likely one first, before what two said
    assert item.area.voters == ((0,), (), (1, 2))


def test_without_a_scheme_every_token_is_an_area() -> None:
    corpus = CrowdCorpus.from_sequences([["a", "b"], ["c"]], {"p": [["N", "V"], ["N"]]})
    start, stop = areas_of(corpus, truth_of(corpus), Labels.of(corpus))
    assert (start.tolist(), stop.tolist()) == ([0, 1, 2], [1, 2, 3])


def test_without_a_scheme_a_token_is_asked_about_from_a_doubt_of_one_in_twenty() -> None:
    said = [["N"], ["N"], ["N"]]
    corpus = CrowdCorpus.from_sequences(
        [["w"], ["w"], ["w"]], {"a": said, "b": said, "m": [["V"]] + [["N"]] * 2}, kinds=("person", "person", "model")
    )
    proba = {(0, 0): {"N": 1.0}, (1, 0): {"N": 0.96, "V": 0.04}, (2, 0): {"N": 0.94, "V": 0.06}}
    areas = {area.sequence: area for area in find_items(corpus, truth_of(corpus, proba), everything=True)}
    assert set(areas) == {0, 2}  # a model says something else of the first
    assert sorted(who for voters in areas[0].voters for who in voters) == [0, 1]  # and has no voice


def test_models_that_came_with_the_export_do_not_speak() -> None:
    tokens = [["w", "x"]]
    people = {"a": [["B-X", "O"]], "b": [["B-X", "O"]], "m": [["O", "B-X"]]}
    corpus = CrowdCorpus.from_sequences(tokens, people, kinds=("person", "person", "model"))
    assert len(make_queue(corpus, truth_of(corpus))) == 0
    found, who = said_by_everybody(corpus, Labels.of(corpus))
    assert set(who.tolist()) == {0, 1}
    assert found.start.tolist() == [0, 0]


def test_files_are_blind_for_people_and_full_for_programs(tmp_path: Path) -> None:
    corpus = nasty_corpus()
    queue = make_queue(corpus, truth_of(corpus, model="mv"))
    write_queue(corpus, queue, tmp_path)
    with (tmp_path / "queue.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    assert len(cells) == len(queue)
    assert {"probability", "votes"}.isdisjoint(cells[0])
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in cells for cell in row.values())
    lines = (tmp_path / "queue.jsonl").read_text(encoding="utf-8").splitlines()
    first = json.loads(lines[0])
    assert first["candidates"][0]["votes"] >= 0
    assert NASTY[0] in "".join(lines) or "script" in "".join(lines)
    blind = rows(corpus, queue.items[:3], votes=False)
    assert all("votes" not in c and "probability" not in c for row in blind for c in row["candidates"])


def test_what_one_person_said_and_nobody_doubts_is_no_question() -> None:
    corpus = CrowdCorpus.from_sequences([["Ada", "ran"], ["So", "it", "was"]], {"a": [["B-PER", "O"], ["O", "O", "O"]]})
    assert make_queue(corpus, truth_of(corpus, model="mv")).items == ()


def test_rows_of_items_without_words_name_their_place() -> None:
    corpus = CrowdCorpus.from_sequences([["_", "_"]], {"a": [["1", "2"]], "b": [["1", "1"]], "c": [["2", "1"]]})
    first, second = rows(corpus, make_queue(corpus, truth_of(corpus, model="mv")).items)
    assert {first["words"], second["words"]} == {"0, token 1", "0, token 2"}
    assert (first["before"], first["after"]) == ("", "")
    assert {c["words"] for c in first["candidates"]} == {"1", "2"}


def test_rows_are_cut_to_their_width_and_rounded() -> None:
    corpus = simulate.demo_crowd("ner")
    queue = make_queue(corpus, truth_of(corpus, model="mv"))
    long = [
        item
        for item in queue.items
        if item.area.start > 3 and item.area.stop + 3 < len(corpus.sequence(item.area.sequence))
    ]
    for item, whole, row in zip(long[:5], rows(corpus, long[:5]), rows(corpus, long[:5], width=10)):
        assert not item.rest
        assert row["before"] == "…" + whole["before"][-9:]
        assert row["after"] == whole["after"][:9] + "…"
        assert (row["gain"], row["elsewhere"]) == (round(item.gain, 4), round(item.elsewhere, 4))
        for name in ("before", "after"):
            text = rows(corpus, [item], width=10_000)[0][name]
            assert rows(corpus, [item], width=len(text))[0][name] == text
            assert len(rows(corpus, [item], width=len(text) - 1)[0][name]) == len(text) - 1


def lesson(traits: tuple[str, ...], expected: float, found: float) -> Lesson:
    """Return a lesson of an item about which model and people expected the same."""
    return Lesson(traits, 5, (expected, 0.5), (expected, 0.5), found)


def test_experience_is_what_was_found_beside_what_was_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experience, "STRENGTHS", np.array([5.0]))
    lessons = [lesson(("a", "x"), 0.4, 1.0)] * 40 + [lesson(("b", "x"), 0.4, 0.0)] * 20
    learned = Experience(lessons)
    first = {"a": (5 + 40) / (5 + 16), "b": 5 / (5 + 8)}
    second = (5 + 40) / (5 + 16 * first["a"] + 8 * first["b"])  # of what is expected after the first trait
    assert learned.factor(("a", "x")) == pytest.approx(first["a"] * second)
    assert learned.factor(("b", "x")) == pytest.approx(first["b"] * second)
    assert learned.factor(("new", "new")) == 1.0
    assert Experience().factor(("a", "x")) == 1.0


def test_traits_that_tell_nothing_change_little_and_those_that_do_are_believed() -> None:
    """Ten values with four items each: errors are found under half of the values, or under all of them."""
    telling = Experience(lesson((f"{v}",), 0.5, float(v % 2)) for v in range(10) for _ in range(4))
    empty = Experience(lesson((f"{v}",), 0.5, float(k % 2)) for v in range(10) for k in range(4))
    assert telling.factor(("1",)) - telling.factor(("0",)) > 0.5
    assert empty.factor(("1",)) == pytest.approx(empty.factor(("0",))) == pytest.approx(1.0)
    chance = Experience(
        [lesson((f"{v}",), 0.5, float(k % 2)) for v in range(2, 10) for k in range(4)]
        + [lesson(("1",), 0.5, float(k < 3)) for k in range(4)]
        + [lesson(("0",), 0.5, float(k < 1)) for k in range(4)]
    )  # as many errors more and less as chance gives
    gap = {name: one.factor(("1",)) - one.factor(("0",)) for name, one in (("telling", telling), ("chance", chance))}
    assert gap["chance"] < gap["telling"] / 3


def test_decisions_tell_whom_to_believe() -> None:
    """Of ten tokens model and people have half of the belief each; whoever is right twenty times gets nearly all."""
    area = Area(0, 0, 10, (((0, 10, "PER"),), ()), (0.9, 0.1), ((0,), (1, 2, 3)))
    assert (area.by_model, area.by_people) == (pytest.approx(0.1), pytest.approx(0.75))
    traits = traits_of(area, "whether")
    torn = Experience([Lesson.of(area, traits, [area.readings[i]]) for i in (0, 1)])
    model, people = (Experience([Lesson.of(area, traits, [area.readings[i]])] * 20) for i in (0, 1))
    assert people.model_share(10) < 0.15 < 0.3 < torn.model_share(10) < 0.7 < 0.85 < model.model_share(10)
    assert people.model_share(40) < people.model_share(10) < people.model_share(1)
    assert people.model_share(0) == pytest.approx(1.0)  # nobody to believe but the model
    assert model.errors(area, traits) < area.errors < people.errors(area, traits)
    assert Experience().errors(area, traits) == area.errors


def test_what_nobody_believed_in_tells_nothing_of_whom_to_believe() -> None:
    area = Area(0, 0, 10, (((0, 10, "PER"),), ()), (0.9, 0.1), ((0,), (1, 2, 3)))
    other = Lesson.of(area, (), [((2, 3, "LOC"),)])
    assert (other.model[1], other.people[1], other.found) == (0, 0, 2)
    assert Experience([other] * 30).model_share(10) == pytest.approx(Experience().model_share(10))
    both = Lesson.of(area, (), [(), ((0, 10, "PER"),)])
    assert (both.model[1], both.people[1], both.found) == (pytest.approx(1), pytest.approx(1), 0)
    two = Area(0, 0, 9, (((0, 2, "PER"), (4, 9, "LOC")), ()), (0.7, 0.3), ((0,), (1,)))
    assert Lesson.of(two, (), [two.readings[0][::-1]]) == Lesson.of(two, (), [two.readings[0]])  # in whatever order


def test_lessons_survive_the_log_and_those_of_older_logs_are_left_out() -> None:
    area = Area(0, 0, 10, (((0, 10, "PER"),), ()), (0.9, 0.1), ((0,), (1, 2, 3)))
    made = Lesson.of(area, traits_of(area, "whether"), [()])
    kept = json.loads(json.dumps(made.plain()))
    assert Lesson.read(kept) == made
    old, new, none = (
        Decision("s", 0, 10, ((),), shown=shown) for shown in ({"lesson": [["a"], 0.5, 9]}, {"lesson": kept}, {})
    )
    for one, other in (([old, none], []), ([old, new], [made])):
        assert Experience.of(one).errors(area, made.traits) == Experience(other).errors(area, made.traits)


def test_experience_moves_items_of_the_kind_that_was_wrong_to_the_front() -> None:
    corpus = simulate.demo_crowd("ner")
    truth = truth_of(corpus, model="ds")
    plain = make_queue(corpus, truth)
    last = plain.items[len(plain) // 3]
    traits = traits_of(last.area, last.question)
    learned = make_queue(corpus, truth, experience=Experience([lesson(traits, 0.1, 2.0)] * 50))
    places = [[i.id for i in queue.items].index(last.id) for queue in (plain, learned)]
    assert places[1] < places[0]
    assert {i.id for i in plain.items} == {i.id for i in learned.items}
    assert learned.errors > plain.errors
    again = make_queue(corpus, truth, areas=find_items(corpus, truth, everything=True))
    assert again == plain


def test_errors_found_are_spans_that_differ_from_the_nearest_reading_that_was_chosen() -> None:
    corpus = ner(a=["O", "B-X", "I-X", "O"], b=["O", "O", "B-X", "O"])
    (item,) = make_queue(corpus, truth_of(corpus)).items
    inferred = item.area.readings[0]
    assert found_errors(item.area, [inferred]) == 0
    assert found_errors(item.area, [((1, 2, "Y"),)]) == len(inferred) + 1
    assert found_errors(item.area, [((1, 2, "Y"),), inferred]) == 0
    token = Area(0, 0, 1, (((0, 1, "N"),), ((0, 1, "V"),)), (0.6, 0.4), ((0,), (1,)), "token")
    assert found_errors(token, [((0, 1, "V"),)]) == 1  # one label is wrong, and none is missing beside it


def test_what_items_share_is_what_is_asked_of_which_types_and_how_people_voted() -> None:
    readings = (((0, 2, "PER"),), ((0, 2, "LOC"), (2, 3, "PER")), ((0, 2, "ORG"),))
    area = Area(0, 0, 3, readings, (0.5, 0.3, 0.2), ((0,), (1, 2, 3), ()))
    assert traits_of(area, "label") == ("any", "label", "LOC PER", "1 and 3 of 4")


def test_errors_are_between_model_and_people_and_those_alike_count_once() -> None:
    """An area of ten tokens: half of the belief is the model's, half is that of each of three people."""
    reading = ((0, 10, "PER"),)
    one = Area(0, 0, 10, (reading, ()), (0.9, 0.1), ((0, 1), (2,)))
    assert one.errors == pytest.approx((0.1 + 1 / 3) / 2)
    open_still = Area(0, 0, 10, (reading, ()), (0.7, 0.1), ((0, 1), (2,)))  # a fifth is something else: one error
    assert (open_still.by_model, open_still.by_people) == (pytest.approx(0.1 + 0.2), pytest.approx(1 / 3))
    less = Area(1, 0, 10, (reading, ()), (0.95, 0.05), ((0, 1), (2,)))
    alike = tuple(Item(area, "whether", "people disagree", "the same") for area in (less, one))
    first, second = ranked(Queue(alike, 0.0)).items
    assert (first.area, second.area) == (one, less)
    assert first.elsewhere == pytest.approx(SETTLES * less.errors)
    assert first.gain == pytest.approx(one.errors + SETTLES * less.errors)
    assert (second.elsewhere, second.gain) == (pytest.approx(0, abs=1e-12), pytest.approx((1 - SETTLES) * less.errors))
    least = Area(2, 0, 10, (reading, ()), (0.99, 0.01), ((0, 1), (2,)))
    alike += (Item(least, "whether", "people disagree", "the same"),)
    second, third = ranked(Queue(alike, 0.0)).items[1:]  # of each what those before it settled is gone
    assert second.elsewhere == pytest.approx((1 - SETTLES) * SETTLES * least.errors)
    assert third.gain == pytest.approx((1 - SETTLES) ** 2 * least.errors)

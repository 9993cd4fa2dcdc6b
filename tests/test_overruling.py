"""May a text overrule people who agree? Which votes are hidden, what they are asked, and what follows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block
from lasca.truth import Votes
from lasca.truth.chain import StateSpace
from lasca.truth.guards import Crowd, Look, ruled_out, unanimous
from lasca.truth.overruling import TURNS, Asked, HiddenVotes, borne_out, released
from lasca.truth.robust import _Average
from lasca.truth.starts import WeighedStart

NOBODY = HiddenVotes(np.arange(5), np.zeros(5))
LABELS = ("B-LOC", "B-PER", "I-LOC", "I-PER", "O")
LOC, PER, NOTHING = (0, 2), (1, 3), 4
SEQUENCES = [["a", "b"], ["c"], ["d", "e"], ["f"]]
PEOPLE = {
    "ann": [["O", "O"], ["O"], ["O", "B-PER"], ["O"]],
    "ben": [["O", "O"], ["O"], ["O", "B-PER"], ["O"]],
    "cyd": [["O", "B-PER"], ["O"], ["O", "O"], None],
    "dan": [["O", "O"], None, ["O", "O"], ["O"]],
    "eve": [None, None, ["B-LOC", "O"], ["O"]],
}


def block() -> tuple[Block, Crowd]:
    corpus = CrowdCorpus.from_sequences(SEQUENCES, PEOPLE, labels=list(LABELS))
    votes = Votes.of(corpus)
    whole = Block(votes, 0, votes.n_tokens)
    look = Look(corpus.labels, NOBODY)
    return whole, look.crowd(look.summarise(whole))


def hidden_pairs() -> set[tuple[int, int]]:
    """(annotator, sequence) of the votes that are hidden."""
    whole, _ = block()
    token = np.repeat(np.arange(6), np.diff(whole.votes.start))
    sequence = np.array([0, 0, 1, 2, 2, 3])[token]
    hidden = NOBODY.hidden(whole)
    shown = {(int(a), int(s)) for a, s, h in zip(whole.votes.annotator, sequence, hidden) if not h}
    found = {(int(a), int(s)) for a, s, h in zip(whole.votes.annotator, sequence, hidden) if h}
    assert not found & shown  # all votes of a pair, or none
    return found


def test_one_annotator_of_each_sequence_with_four_is_hidden() -> None:
    found = hidden_pairs()
    assert sorted(s for _, s in found) == [0, 2, 3]  # the second sequence has three
    assert len({a for a, _ in found}) > 1


def test_hidden_votes_have_no_weight_and_are_not_heard_at_the_start() -> None:
    whole, _ = block()
    hidden = NOBODY.hidden(whole)
    np.testing.assert_array_equal(NOBODY.weights(whole), (~hidden).astype(float))
    heard = NOBODY.one_each(whole)
    assert heard.n_votes == (~hidden).sum()
    np.testing.assert_array_equal(heard.votes.label, whole.votes.label[~hidden])
    np.testing.assert_array_equal(heard.votes.annotator, whole.votes.annotator[~hidden])


def test_hidden_annotators_are_asked_about_what_was_found() -> None:
    whole, crowd = block()
    found = np.array([4, 1, 4, 0, 1, 1])  # what the member finds: O, PER, O, LOC, PER, PER
    counts = Asked(NOBODY, crowd)(0, whole, np.eye(5)[found], None, ())
    expected = np.zeros((3, 3, 2))  # case, (all, LOC, PER), (cases, marked)
    kinds = {"B-LOC": 1, "B-PER": 2}
    names = list(PEOPLE)
    places = {0: [0, 1], 1: [2], 2: [3, 4], 3: [5]}
    for annotator, sequence in hidden_pairs():
        for i, token in enumerate(places[sequence]):
            others = [said[sequence][i] for name, said in PEOPLE.items() if name != names[annotator] and said[sequence]]
            mark = crowd.labels[found[token]]
            marks = sum(label != "O" for label in others)
            said = PEOPLE[names[annotator]][sequence][i] != "O"
            if mark == "O" and marks == 0:
                expected[2] += [1, said]
            if mark != "O" and marks < 2:
                for kind in (0, kinds[mark]):
                    expected[marks, kind] += [1, said]
    np.testing.assert_array_equal(counts, expected)


def test_a_name_is_one_case_by_what_others_say_where_it_begins() -> None:
    silent = [["O", "O"], ["O", "O", "O", "O", "O", "O"]]
    ann = [["O", "O"], ["O", "O", "O", "O", "B-PER", "O"]]  # marks the middle of a name that is found
    people = {name: ann if name == "ann" else silent for name in PEOPLE}
    corpus = CrowdCorpus.from_sequences([["a", "b"], ["c", "d", "e", "f", "g", "h"]], people, labels=LABELS)
    votes = Votes.of(corpus)
    look, whole = Look(corpus.labels, NOBODY), Block(votes, 0, votes.n_tokens)
    found = np.array([1, 3, 1, 0, 4, 1, 3, 3])  # PER in all of the first sequence; PER, LOC, O, PER in the second
    counts = Asked(NOBODY, look.crowd(look.summarise(whole)))(0, whole, np.eye(5)[found], None, ())
    assert counts[0, :, 0].tolist() == [3, 1, 3]  # all marks, LOC, PER: a sequence ends a name, a mark inside does not
    assert counts[1, :, 0].tolist() == [0, 0, 0]
    assert counts[2, 0].tolist() == [1, 0]  # where nothing is found tokens are asked about


@pytest.mark.parametrize(
    ("x", "n", "y", "f", "free"),
    [
        (0.5, 100, 0.5, 0.01, True),
        (0.3, 100, 0.5, 0.01, False),  # as if three of five were right: not enough
        (0.5, 19, 0.5, 0.01, False),  # too few to say
        (0.42, 100, 0.5, 0.01, False),  # not surely
        (0.42, 10_000, 0.5, 0.01, True),
        (0.05, 100, 0.05, 0.06, False),  # marks mean nothing there
    ],
)
def test_a_type_is_released_where_hidden_votes_bear_it_out(x: float, n: int, y: float, f: float, free: bool) -> None:
    _, crowd = block()
    counts = np.zeros((3, 3, 2))
    counts[:, 2] = [[n, x * n], [1000, y * 1000], [10_000, f * 10_000]]
    assert released(counts, crowd) == (PER if free else ())


def test_what_is_released_is_possible_only_where_people_agree_on_nothing() -> None:
    """And where the mark that the text finds likeliest is one of them: a name of another type must not become one."""
    whole, crowd = block()
    space = StateSpace.of(crowd.labels)
    text = np.full((6, len(LABELS)), 0.01)
    text[:, NOTHING] = 0.9
    text[[0, 1], [1, 2]] = 0.05  # a B-PER, an I-LOC
    said = replace(whole, beside=SimpleNamespace(text=text))
    people, _, _ = unanimous(whole, np.ones(whole.n_votes))
    assert people.tolist() == [0, 2, 5], "who agree on nothing"
    for free, possible in ((PER, [True, False, False]), (LOC, [False, True, True]), ((), [False] * 3)):
        text[[2, 5], 0] = 0.05  # a B-LOC
        _, out = ruled_out(said, np.ones(whole.n_votes), space, NOTHING, free)
        for token, row, may in zip(out.token, out.row, possible):
            allowed = set(np.flatnonzero(~out.states[row]))
            assert allowed == {NOTHING} | (set(free) if may else set()), token
        np.testing.assert_array_equal(out.states[1], [True, False, True, True, True])
    assert text[0, NOTHING] == 0.9, "what the text says is only read"


def test_where_there_is_one_type_all_marks_are_released() -> None:
    corpus = CrowdCorpus.from_sequences([["a", "b"]], {"ann": [["B-X", "I-X"]], "ben": [["O", "O"]]})
    look = Look(corpus.labels, HiddenVotes(np.arange(2), np.zeros(2)))
    votes = Votes.of(corpus)
    crowd = look.crowd(look.summarise(Block(votes, 0, votes.n_tokens)))
    counts = np.array([[[100, 50]], [[1000, 500]], [[10_000, 100]]], float)
    assert released(counts, crowd) == tuple(corpus.labels.index(label) for label in ("B-X", "I-X"))
    for case in range(3):
        few = counts.copy()
        few[case] *= 19 / counts[case, 0, 0]
        assert released(few, crowd) == ()


def test_another_block_hides_others() -> None:
    corpus = CrowdCorpus.from_sequences([["a"]], {name: [["X"]] for name in PEOPLE})
    votes = Votes.of(corpus)
    hidden = [int(np.flatnonzero(NOBODY.hidden(Block(votes, 0, 1, number=number)))[0]) for number in range(5)]
    assert sorted(hidden) == [0, 1, 2, 3, 4]


def test_in_every_turn_another_one_of_a_sequence_is_hidden() -> None:
    """So names that everybody else missed, which are few, are asked about as often as there are turns."""
    whole, _ = block()
    token = np.repeat(np.arange(6), np.diff(whole.votes.start))
    sequence = np.array([0, 0, 1, 2, 2, 3])[token]
    found = []
    for turn in range(TURNS):
        hidden = replace(NOBODY, turn=turn).hidden(whole)
        found.append({(int(s), int(a)) for s, a in zip(sequence[hidden], whole.votes.annotator[hidden])})
        assert sorted(s for s, _ in found[-1]) == [0, 2, 3]
    assert len(set.union(*found)) == 3 * TURNS  # four voted in the sequences with the fewest


def test_what_is_said_in_all_turns_is_added_up() -> None:
    """Eight names in each turn: too few to say anything in one of them, enough in three."""
    _, crowd = block()
    asked: list[tuple[bool, int]] = []

    class Plan:
        """A run of the average that is about to let the text overrule people."""

        free: tuple[int, ...] = ()
        believes_two = False

        def _hidden(self, *, of_two: bool = False, turn: int = 0) -> np.ndarray:
            asked.append((of_two, turn))
            counts = np.zeros((3, 3, 2))
            counts[:, 2] = [[8, 5], [100, 60], [1000, 20]]
            return counts

    plan: Any = Plan()
    plan.crowd = crowd
    _Average.release(plan)
    assert plan.free == PER
    assert asked == [*((False, turn) for turn in range(TURNS)), (True, 0)]
    assert released(plan._hidden(), crowd) == ()


def test_nobody_is_asked_where_fewer_than_three_others_voted() -> None:
    """Four look at the sequence, so one is hidden; on the token in question two of the others said nothing at all."""
    said = {"ann": ["O", "O"], "ben": ["O", "O"], "cyd": ["O", None], "dan": ["O", None]}
    corpus = CrowdCorpus.from_sequences([["a", "b"]], {n: [row] for n, row in said.items()}, labels=["B-X", "O"])
    votes, four = Votes.of(corpus), HiddenVotes(np.arange(4), np.zeros(4))
    whole, look = Block(votes, 0, 2), Look(corpus.labels, four)
    crowd = look.crowd(look.summarise(whole))
    assert four.hidden(whole)[[0, 4]].all()  # ann, on both tokens
    counts = Asked(four, crowd)(0, whole, np.eye(2)[[0, 0]], None, ())
    np.testing.assert_array_equal(counts, [[[1, 0]], [[0, 0]], [[0, 0]]])


def test_what_the_hidden_ones_said_is_not_heard() -> None:
    """Neither where members begin nor in what people who agree rule out: other labels there change nothing."""
    whole, _ = block()
    hidden = NOBODY.hidden(whole)
    found = []
    for other in range(len(LABELS)):
        label = np.where(hidden, other, whole.votes.label).astype(np.int16)
        label.flags.writeable = False
        changed = replace(whole, votes=replace(whole.votes, label=label))
        begins, easy = WeighedStart(None, 0.5, NOBODY).shares(changed)
        token, agreed, _ = unanimous(changed, NOBODY.weights(changed))
        found.append((begins.tolist(), easy.tolist(), token.tolist(), agreed.tolist()))
    assert all(each == found[0] for each in found)
    assert found[0][2] == [0, 2, 5]


def test_of_two_or_three_one_is_hidden_in_every_second_sequence_and_asked_beside_who_is_left() -> None:
    said = {"ann": [["O", "O"], ["O"], ["O"], ["O"]], "ben": [["B-PER", "O"], ["O"], ["B-LOC"], ["O"]]}
    said |= {name: [None, None, None, ["O"]] for name in ("cyd", "dan")}
    corpus = CrowdCorpus.from_sequences([["a", "b"], ["c"], ["d"], ["e"]], said, labels=LABELS)
    votes = Votes.of(corpus)
    look, whole = Look(corpus.labels, NOBODY), Block(votes, 0, votes.n_tokens)
    two = HiddenVotes(np.arange(5), np.zeros(5), of_two=True)
    hidden = two.hidden(whole)
    token = np.repeat(np.arange(5), np.diff(votes.start))
    assert set(token[hidden].tolist()) == {0, 1, 3}  # the second sequence is left alone, the last has four
    found = np.array([1, 4, 4, 4, 4])
    counts = Asked(two, look.crowd(look.summarise(whole)))(0, whole, np.eye(5)[found], None, ())
    annotator = {int(t): int(a) for t, a, h in zip(token, votes.annotator, hidden) if h}
    # where the one who is left marks, the other is asked as "one of the others marks"; else as "nobody does"
    assert counts[int(annotator[0] == 0), 0].tolist() == [1, annotator[0] == 1]
    assert counts[2, 0, 0] == 1 + (annotator[3] == 1)
    assert not NOBODY.hidden(whole)[np.isin(token, [0, 1, 2, 3])].any()


@pytest.mark.parametrize(
    ("counts", "yes"),
    [
        ([[409, 254], [1718, 1156], [15946, 401]], True),  # MTurk, two of each document: they miss much together
        ([[73, 15], [438, 385], [21163, 244]], False),  # LEOKA, two of three: what only a text finds is not wanted
        ([[19, 19], [438, 385], [21163, 244]], False),  # too few to say
        ([[100, 50], [100, 2], [100, 2]], False),  # nothing is ever borne out
    ],
)
def test_hidden_votes_bear_out_what_was_found_or_not(counts: list[list[int]], yes: bool) -> None:
    assert borne_out(np.array(counts, float)) is yes

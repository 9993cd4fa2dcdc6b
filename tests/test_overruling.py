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
from lasca.truth.families import Families
from lasca.truth.guards import Crowd, Look, finds, ruled_out, unanimous
from lasca.truth.overruling import Asked, Found, HiddenVotes, borne_out, released
from lasca.truth.robust import _Average
from lasca.truth.starts import WeighedStart

NOBODY = HiddenVotes(np.arange(5), np.zeros(5))
LABELS = ("B-LOC", "B-PER", "I-LOC", "I-PER", "O")
NOTHING = 4


def block_of(people: dict[str, Any], lengths: list[int]) -> tuple[Block, Crowd]:
    sequences = [["x"] * length for length in lengths]
    corpus = CrowdCorpus.from_sequences(sequences, people, labels=list(LABELS))
    votes = Votes.of(corpus)
    whole, look = Block(votes, 0, votes.n_tokens), Look(corpus.labels, NOBODY)
    return whole, look.crowd(look.summarise(whole))


# --- three and more who agree ----------------------------------------------------------------------------------------


def asked(people: dict[str, Any], lengths: list[int], text: Any, family: list[int]) -> Any:
    """What `Found` adds up where the last of these people votes most, and families repeat each other always."""
    whole, _ = block_of(people, lengths)
    look = Look(LABELS, Families(np.array(family), (np.bincount(family)[family] > 1).astype(float)))
    known = look.crowd(look.summarise(whole))
    assert np.bincount(known.families.family, known.given).argmax() == family[-1]
    return Found(known).summarise(replace(whole, beside=said_by(text)))


def said_by(text: Any) -> SimpleNamespace:
    return SimpleNamespace(text=np.asarray(text, np.float32))


def test_every_vote_is_hidden_in_turn_where_the_text_finds_a_name() -> None:
    """Against what is meant: each voter of a name taken away, and asked, by how many of the others mark.

    But for the one who votes most, who is never asked, and for what they mark.
    """
    rng, names = np.random.default_rng(0), ["ann", "ben", "cyd", "dan", "eve"]
    said: dict[str, Any] = {
        name: [[str(rng.choice(["O", "B-PER", "B-LOC"]))] if rng.random() < 0.7 else None for _ in range(99)]
        for name in names
    }
    machine = [[str(rng.choice(["O", "B-PER"], p=[0.8, 0.2]))] for _ in range(99)]
    text = np.eye(5)[np.where(rng.random(99) < 0.7, 1, NOTHING)]
    each = []
    for i in np.flatnonzero(text[:, NOTHING] == 0):
        voters = [rows[i][0] for rows in said.values() if rows[i]]
        if len(voters) < 3 or machine[i] != ["O"]:
            continue
        marks, votes = sum(label != "O" for label in voters), np.zeros((2, 3))
        for label in voters:
            others = marks - (label != "O")
            if others < 3:
                votes[:, others] += [label != "O", 1]
        each.append(votes.ravel())
    names, votes, products = asked(said | {"machine": machine}, [1] * 99, text, [0, 1, 2, 3, 4, 5])
    assert names.min() > 0
    np.testing.assert_array_equal(names, (np.array(each)[:, 3:] > 0).sum(axis=0))
    np.testing.assert_array_equal(votes, np.sum(each, axis=0))
    np.testing.assert_array_equal(products, sum(np.outer(own, own) for own in each))


def test_a_name_is_asked_about_once_where_it_begins_and_a_family_is_one_voter() -> None:
    people: dict[str, Any] = {name: [["O", "O"], ["O", "O"], None] for name in ("ann", "ben", "cyd", "dan")}
    people["eve"] = [["O", "B-PER"], ["B-PER", "O"], None]
    people["machine"] = [["O", "O"], ["O", "O"], ["O"]]
    text = np.eye(5)[[1, 3, 1, NOTHING, NOTHING]]  # a name of two tokens; a sequence ends it
    text[3] = 0  # a text that says nothing finds nothing
    for family, n in (([0, 1, 2, 3, 4, 5], 5), ([0, 0, 2, 3, 4, 5], 4)):
        names, votes, _ = asked(people, [2, 2, 1], text, family)  # nobody marks the first, eve the second
        assert (names.tolist(), votes.tolist()) == ([2, 1, 0], [1, 0, 0, n + 1, n - 1, 0])
    names, votes, _ = asked(people, [2, 2, 1], text, [0, 1, 2, 3, 4, 4])  # nor is eve asked, if she is the machine's
    assert (names.tolist(), votes.tolist()) == ([1, 0, 0], [0, 0, 0, 4, 0, 0])


def test_a_text_finds_a_mark_where_it_is_likelier_than_none() -> None:
    text = np.array([[0.3, 0.22, 0, 0, 0.48], [0.26, 0.22, 0, 0, 0.52], [0, 0, 0, 0, 0], [0, 0.1, 0, 0, 0]])
    assert finds(text, NOTHING).tolist() == [True, False, False, False]


def hidden(voters: Any, marks: Any) -> np.ndarray:
    """Each name's votes that mark beside none, one and two others, and all votes there, by voters and marks."""
    n, k, others = np.broadcast_to(voters, np.shape(marks))[:, None], np.asarray(marks)[:, None], np.arange(3)
    do = (others + 1.0) * (k == others + 1)
    return np.concatenate((do, do + (n - others) * (k == others)), axis=1)


def sums_of(each: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (each[:, 3:] > 0).sum(axis=0), each.sum(axis=0), each.T @ each


def share_of_true(each: np.ndarray) -> float:
    """The share of true names among those that nobody marks."""
    votes = each.sum(axis=0)
    none, one, two = votes[:3] / votes[3:]
    return float(none / (1 - none) / (one**2 / (two - one**2)))


@pytest.mark.parametrize(
    ("marked_by", "yes"),
    [
        ((1262, 2217, 3933, 6696), True),  # as on MTurk: the fewer marked a name, the harder it is
        ((200, 60, 280, 3700), False),  # as on LEOKA: what only the text finds is not wanted
        ((100, 300, 600, 1000), True),
        ((10, 30, 60, 100), False),  # not surely
        ((3, 16, 10, 100), False),  # too few to say
        ((3, 17, 10, 100), True),
        ((900, 0, 400, 400), False),  # nobody marks what no other does
        ((900, 400, 0, 400), False),  # nothing to compare with
        ((900, 400, 400, 0), False),
        ((0, 400, 400, 400), False),  # all that the text finds somebody marks
        ((400, 400, 400, 40), False),  # the fewer mark, the easier
        ((50, 30, 60, 20), False),  # all are as easy
    ],
)
def test_the_text_may_overrule_where_hidden_votes_bear_it_out(marked_by: tuple[int, ...], yes: bool) -> None:
    """By how many of five none, one, two and three mark."""
    assert released(*sums_of(hidden(5, np.repeat(np.arange(4), marked_by)))) is yes


def test_it_takes_so_many_standard_errors_more_than_a_half_that_it_is_chance_once_in_twenty() -> None:
    """Standard errors are those of crowds drawn anew: names with replacement."""
    rng = np.random.default_rng(0)
    voters = rng.integers(3, 8, 900)
    marks = rng.binomial(voters, rng.beta(8, 8, len(voters)))
    each = hidden(voters[marks > 0], marks[marks > 0])
    grown = (np.concatenate((each, hidden(5, np.zeros(n, int)))) for n in range(1, 400))
    least = next(names for names in grown if not released(*sums_of(names)))  # the more nobody marks, the fewer are true
    drawn = rng.integers(0, len(least), (2000, len(least)))
    error = np.std([np.log(share_of_true(least[own])) for own in drawn])
    assert np.log(share_of_true(least) / 0.5) / error == pytest.approx(1.64, abs=0.1)


@pytest.mark.parametrize("true", [0.2, 0.95])
def test_the_share_of_true_names_among_those_nobody_marked_decides(true: float) -> None:
    """Simulated: names harder and easier, four voters; of what nobody marked a share is true, the rest is nothing."""
    rng = np.random.default_rng(1)
    marks = rng.binomial(4, rng.beta(1.5, 1.5, 5000))
    nobody = int((marks == 0).sum())
    marks = np.concatenate((marks, np.zeros(round(nobody * (1 - true) / true), int)))
    label = (np.arange(4) < marks[:, None]).astype(int)
    people: dict[str, Any] = {f"a{i}": [["B-PER" if x else "O"] for x in column] for i, column in enumerate(label.T)}
    text = np.zeros((len(marks) + 1, 5))
    text[:, 1] = 1
    people = {name: [*rows, None] for name, rows in people.items()} | {"machine": [["O"]] * len(text)}
    found = asked(people, [1] * len(text), text, [0, 1, 2, 3, 4])
    assert released(*found) is (true > 0.5)


def test_what_is_released_is_possible_only_where_people_agree_on_nothing_and_the_text_finds_a_mark() -> None:
    agreed = [["O", "O", "B-PER", "O"]]
    whole, crowd = block_of({"ann": agreed, "ben": agreed, "cyd": agreed, "dan": [["O", "O", "B-PER", "B-LOC"]]}, [4])
    space, weight = StateSpace.of(crowd.labels), np.ones(whole.n_votes)
    said = replace(whole, beside=said_by(np.eye(5)[[1, NOTHING, 0, 0]]))
    people, _ = unanimous(whole, weight)
    assert people.tolist() == [0, 1, 2]
    for free, believed in ((True, {1: "O", 2: "B-PER"}), (False, {0: "O", 1: "O", 2: "B-PER"})):
        _, out = ruled_out(said, weight, space, NOTHING, free)
        left = {int(token): np.flatnonzero(~out.states[row]).tolist() for token, row in zip(out.token, out.row)}
        assert left == {token: [LABELS.index(label)] for token, label in believed.items()}


# --- two who agree ---------------------------------------------------------------------------------------------------


SHARED = {
    "ann": [["O", "O"], ["O"], ["O"], ["O"], ["O", "B-PER"]],
    "ben": [["B-PER", "O"], ["O"], ["B-LOC"], ["O"], ["O", "O"]],
    "cyd": [None, None, None, ["O"], ["O", "O"]],
    "dan": [None, None, None, ["O"], None],
}


def hidden_pairs(number: int = 0) -> set[tuple[int, int]]:
    """(annotator, sequence) of the votes that are hidden."""
    whole, _ = block_of(SHARED, [2, 1, 1, 1, 2])
    sequence = np.array([0, 0, 1, 2, 3, 4, 4])[whole.token]
    hidden = NOBODY.hidden(replace(whole, number=number))
    shown = {(int(a), int(s)) for a, s, h in zip(whole.votes.annotator, sequence, hidden) if not h}
    found = {(int(a), int(s)) for a, s, h in zip(whole.votes.annotator, sequence, hidden) if h}
    assert not found & shown  # all votes of a pair, or none
    return found


def test_of_two_or_three_one_is_hidden_in_every_second_sequence() -> None:
    assert sorted(s for _, s in hidden_pairs()) == [0, 2, 4]  # the others are left alone
    four = {name: [["O"]] for name in ("ann", "ben", "cyd", "dan")}
    assert not NOBODY.hidden(block_of(four, [1])[0]).any()
    assert not NOBODY.hidden(block_of({"ann": [["O"]]}, [1])[0]).any()


def test_another_block_hides_others() -> None:
    assert {a for number in range(3) for a, s in hidden_pairs(number) if s == 4} == {0, 1, 2}


def test_hidden_votes_have_no_weight_and_are_not_heard_at_the_start() -> None:
    whole, _ = block_of(SHARED, [2, 1, 1, 1, 2])
    hidden = NOBODY.hidden(whole)
    np.testing.assert_array_equal(NOBODY.weights(whole), (~hidden).astype(float))
    assert NOBODY.thin  # else Dawid–Skene's start hears them
    heard = NOBODY.one_each(whole)
    assert heard.n_votes == (~hidden).sum() == whole.n_votes - NOBODY.summarise(whole)[0]
    np.testing.assert_array_equal(heard.votes.label, whole.votes.label[~hidden])
    np.testing.assert_array_equal(heard.votes.annotator, whole.votes.annotator[~hidden])


@pytest.mark.parametrize("number", range(3))
def test_hidden_annotators_are_asked_about_names_that_were_found_where_they_begin(number: int) -> None:
    """Where anybody else voted, by how many of the others mark; against plain loops."""
    rng, names, n = np.random.default_rng(number), ["ann", "ben", "cyd", "dan"], 200
    people: dict[str, Any] = {
        name: [
            [str(rng.choice(LABELS)) if rng.random() < 0.8 else None for _ in range(2)] if rng.random() < 0.6 else None
            for _ in range(n)
        ]
        for name in names
    }
    whole = replace(block_of(people, [2] * n)[0], number=number)
    hidden = {(int(a), int(t)) for a, t, h in zip(whole.votes.annotator, whole.token, NOBODY.hidden(whole)) if h}
    found = rng.integers(0, 5, 2 * n)
    counts = Asked(NOBODY, NOTHING)(0, whole, np.eye(5)[found], None, ())
    expected, alone = np.zeros((3, 2)), 0
    for annotator, token in hidden:
        said = [rows[token // 2][token % 2] if rows[token // 2] else None for rows in people.values()]
        own = said.pop(annotator) != "O"
        others = [label != "O" for label in said if label]
        begins = found[token] != NOTHING and (token % 2 == 0 or found[token - 1] == NOTHING)
        if not others:
            alone += 1
        elif begins and sum(others) < 2:
            expected[sum(others)] += [1, own]
        elif found[token] == NOTHING and not any(others):
            expected[2] += [1, own]
    np.testing.assert_array_equal(counts, expected)
    assert min(expected.min(), alone) > 0


def test_what_the_hidden_ones_said_is_not_heard() -> None:
    """Neither where members begin nor in what people who agree rule out: other labels there change nothing."""
    whole, _ = block_of(SHARED, [2, 1, 1, 1, 2])
    hidden = NOBODY.hidden(whole)
    found = []
    for other in range(len(LABELS)):
        label = np.where(hidden, other, whole.votes.label).astype(np.int16)
        label.flags.writeable = False
        changed = replace(whole, votes=replace(whole.votes, label=label))
        first, easy = WeighedStart(None, 0.5, NOBODY).shares(changed)
        token, agreed = unanimous(changed, NOBODY.weights(changed))
        found.append((first.tolist(), easy.tolist(), token.tolist(), agreed.tolist()))
    assert all(each == found[0] for each in found)
    assert found[0][2] == [4]


@pytest.mark.parametrize(
    ("counts", "yes"),
    [
        ([[409, 254], [1718, 1156], [15946, 401]], True),  # MTurk, two of each document: they miss much together
        ([[73, 15], [438, 385], [21163, 244]], False),  # LEOKA, two of three: what only a text finds is not wanted
        ([[20, 20], [20, 15], [20, 0]], True),
        ([[19, 19], [20, 15], [20, 0]], False),  # too few to say
        ([[20, 20], [19, 15], [20, 0]], False),
        ([[20, 20], [20, 15], [19, 0]], False),
        ([[2500, 1600], [1000, 800], [1000, 0]], True),  # three quarters of .8 are .6
        ([[25, 16], [100_000, 80_000], [1000, 0]], False),  # not surely
        ([[2500, 1600], [1000, 800], [1000, 200]], False),  # some of it they mark anywhere
        ([[100, 50], [100, 2], [100, 2]], False),  # nothing is ever borne out
        ([[0, 0], [0, 0], [0, 0]], False),  # nobody was asked
    ],
)
def test_hidden_votes_bear_out_what_was_found_or_not(counts: list[list[int]], yes: bool) -> None:
    assert borne_out(np.array(counts, float)) is yes


@pytest.mark.parametrize("three", [True, False])
@pytest.mark.parametrize("two", [True, False])
def test_three_and_two_who_agree_are_asked_about_apart(three: bool, two: bool) -> None:
    free, bound = (sums_of(hidden(5, np.repeat(np.arange(4), n))) for n in ((1262, 2217, 3933, 6696), (0, 0, 0, 0)))
    votes = np.array([[409, 254], [1718, 1156], [15946, 401]]) if two else np.zeros((3, 2))
    plan: Any = SimpleNamespace(crowd=SimpleNamespace(outside=NOTHING, families=NOBODY), free=False, believes_two=False)
    plan.asked, plan._hidden = lambda question: free if three else bound, lambda: votes
    _Average.release(plan)
    assert (plan.free, plan.believes_two) == (three, not two)
    nowhere: Any = SimpleNamespace(crowd=SimpleNamespace(outside=-1), free=False, believes_two=False)
    _Average.release(nowhere)
    assert (nowhere.free, nowhere.believes_two) == (False, False)

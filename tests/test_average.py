"""What members of the default say together, where they begin, and whom they believe: by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lasca.corpus import CrowdCorpus
from lasca.corpus.evidence import SoftVotes
from lasca.corpus.votes import Block
from lasca.truth import Votes
from lasca.truth.annotator_models import VoteRows
from lasca.truth.average import Agreement, Averaging, Ending, Marked, Runs, Said, Verdict
from lasca.truth.beside import Keep
from lasca.truth.chain import StateSpace
from lasca.truth.families import Families
from lasca.truth.guards import Crowd, Look, Pairing, Rates, unanimous
from lasca.truth.robust import RobustSequence
from lasca.truth.robust_chain import LEAST_PSEUDO, LearnedMatrices, Structure, member
from lasca.truth.starts import DawidSkeneStart, LevelStart, Meeting, WeighedStart, judged_start
from lasca.truth.tempering import advised, tempered

IN_MEMORY = Keep(None, "said")


def block_of(corpus: CrowdCorpus) -> Block:
    votes = Votes.of(corpus)
    return Block(votes, 0, votes.n_tokens)


def corpus_of(*said: str) -> CrowdCorpus:
    """Return a sequence with a letter for each label, "." for none: a word for each annotator."""
    people = {f"a{k}": [[None if c == "." else c for c in word]] for k, word in enumerate(said)}
    return CrowdCorpus.from_sequences([[f"w{i}" for i in range(len(said[0]))]], people, labels=["O", "X", "Y"])


def test_the_mean_is_by_what_members_say_and_differences_are_remembered() -> None:
    block = block_of(corpus_of("OOX"))
    one = np.array([[0.8, 0.1, 0.1], [0.6, 0.4, 0.0], [0.1, 0.9, 0.0]], np.float32)
    two = np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5], [0.0, 1.0, 0.0]], np.float32)
    three = one  # agrees with the first: what the second said stays
    said = None
    for say, proba in ((0.5, one), (0.3, two), (0.2, three)):
        said = Averaging(say, said is None, 0, IN_MEMORY)(0, replace(block, beside=said), proba, None, ())
    assert isinstance(said, Said)
    np.testing.assert_allclose(said.mean, 0.7 * one + 0.3 * two, rtol=1e-6)
    np.testing.assert_array_equal(said.apart, [False, True, False])
    np.testing.assert_array_equal(said.marked, [False, True, True])


def test_a_verdict_is_mixed_with_the_texts_own_word() -> None:
    plain = np.array([[0.7, 0.2, 0.1], [0.2, 0.3, 0.5]], np.float32)
    text = np.array([[0.1, 0.8, 0.1], [0.3, 0.3, 0.4]], np.float32)
    confusion = np.log(np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]))
    without = advised(tempered(plain.astype(float), 0.8), text.astype(float), confusion)
    found = Verdict(0.8, confusion, share=0.1).proba(Said(plain=plain, text=text))
    np.testing.assert_allclose(found, 0.9 * without + 0.1 * text, rtol=1e-6)


def test_a_span_ends_where_it_most_likely_does_as_a_whole() -> None:
    """It goes on to the third token in half of the cases in which it is there at the second."""
    labels = ["B-X", "I-X", "O"]
    corpus = CrowdCorpus.from_sequences([["a", "b", "c"]], {"ann": [["B-X", "I-X", "O"]]}, labels=labels)
    mean = np.array([[0.6, 0.0, 0.4], [0.0, 0.55, 0.45], [0.0, 0.3, 0.7]], np.float32)
    said, block, rules = Said(mean=mean), block_of(corpus), StateSpace.of(tuple(labels))
    assert [labels[c] for c in said.path(block, rules)] == ["B-X", "I-X", "O"]  # token by token
    assert [labels[c] for c in said.labels(block, rules)] == ["B-X", "I-X", "I-X"]  # 0.3, beside 0.25 and 0.05


@pytest.mark.parametrize("silent", [False, True])
def test_text_and_truth_agree_on_tokens_where_labels_make_no_spans(silent: bool) -> None:
    """By how well taggers find what was inferred it is decided whether the text is heard."""
    corpus = CrowdCorpus.from_sequences(
        [["a", "b", "c"], ["d", "e"]], {"ann": [["N", "V", "N"], None]}, labels=["N", "V"]
    )
    inferred, tagged = np.array([[9, 1], [1, 9], [9, 1], [9, 1], [1, 9]]) / 10, np.array([[8, 2]] * 5) / 10
    block = replace(block_of(corpus), beside=Said(mean=inferred.astype(np.float32), text=tagged.astype(np.float32)))
    if silent:  # a model that does not vote looked at the second sentence
        block = replace(
            block, votes=replace(block.votes, silent=replace(block.votes, start=np.array([0, 0, 0, 0, 1, 1])))
        )
    assert Agreement(corpus.labels).summarise(block) == ((5, 5, 3) if silent else (3, 3, 2))


def test_a_sequence_ends_a_run_of_marks() -> None:
    """By how many there are it is decided whether a tagger has enough to learn from."""
    labels = ["B-X", "I-X", "O"]
    corpus = CrowdCorpus.from_sequences([["a", "b"], ["c"], ["d", "e"]], {}, labels=labels)
    mean = np.eye(3, dtype=np.float32)[[0, 1, 0, 2, 0]]
    assert Runs(StateSpace.of(tuple(labels)), 2).summarise(replace(block_of(corpus), beside=Said(mean=mean))) == (3,)


def test_the_text_overrules_where_it_takes_a_label_that_fewer_gave() -> None:
    corpus = corpus_of("XX.XOY", "XY.XOY")
    block = block_of(corpus)
    mean, plain = np.eye(3, dtype=np.float32)[[2, 2, 2, 1, 0, 0]], np.eye(3, dtype=np.float32)[[1, 1, 1, 2, 0, 1]]
    marked, apart = np.array([1, 1, 1, 0, 0, 0], bool), np.array([1, 0, 1, 1, 0, 0], bool)
    said = Said(mean=mean, plain=plain, first=None, apart=apart, marked=marked)
    out = np.empty((6, 3), np.float32)
    ending = Ending(StateSpace.of(corpus.labels), sole=False)
    labels, (counted, sums) = ending.describe(None, replace(block, beside=said), None, out)
    np.testing.assert_array_equal(labels, [2, 2, 2, 1, 0, 0])
    np.testing.assert_array_equal(out, mean)
    # of the second token as many said the one as the other; of the last the members had overruled both before
    assert sums.tolist() == [5, 1, 2, 1]
    expected = np.zeros((2, 3, 3))  # annotator, given, inferred
    for annotator, word in enumerate(("XX.XOY", "XY.XOY")):
        for token, label in enumerate(word):
            if label != ".":
                expected[annotator, corpus.labels.index(label)] += mean[token]
    np.testing.assert_allclose(counted.table().reshape(2, 3, 3), expected)


@pytest.mark.parametrize("sole", [False, True])
def test_a_lone_vote_is_read_from_what_the_text_makes_of_it_unless_nobody_else_votes(sole: bool) -> None:
    corpus = corpus_of("XX", ".X")
    plain = np.array([[0.0, 0.8, 0.2], [0.0, 0.8, 0.2]], np.float32)
    text = np.array([[0.0, 0.1, 0.9], [0.0, 0.1, 0.9]], np.float32)
    flat = Verdict(1.0, np.full((3, 3), 1 / 3), share=0.5)  # half of it the text's own word
    said = Said(text=text, mean=plain, plain=plain, apart=np.zeros(2, bool), marked=np.ones(2, bool))
    out = np.empty((2, 3), np.float32)
    ending = Ending(StateSpace.of(corpus.labels), sole)
    labels, _ = ending.describe(flat, replace(block_of(corpus), beside=said), None, out)
    np.testing.assert_allclose(out, (plain + text) / 2, rtol=1e-6, atol=1e-12)
    assert labels.tolist() == [1 if sole else 2, 1]


@pytest.mark.parametrize("beside", [False, True])
def test_a_vote_beside_a_soft_one_does_not_stand_alone(beside: bool) -> None:
    """The mean says X, the verdict says Y and is less sure."""
    corpus = corpus_of("X.", ".X")
    if beside:
        soft = SoftVotes(np.zeros(1, np.int64), np.ones(1, np.int32), np.array([[0.0, 1.0, 0.0]], np.float32))
        corpus = replace(corpus, soft=soft)
    mean, text = np.array([[0.0, 0.6, 0.4]] * 2, np.float32), np.array([[0.0, 0.45, 0.55]] * 2, np.float32)
    verdict = Verdict(1.0, np.full((3, 3), 1 / 3), share=1.0)
    said = Said(text=text, mean=mean, plain=mean, apart=np.zeros(2, bool), marked=np.ones(2, bool))
    block, out = replace(block_of(corpus), beside=said), np.empty((2, 3), np.float32)
    labels, _ = Ending(StateSpace.of(corpus.labels), False).describe(verdict, block, None, out)
    assert labels.tolist() == [1 if beside else 2, 2]


def test_the_last_token_of_a_span_has_its_own_label_where_the_scheme_says_so() -> None:
    labels = ["B-X", "E-X", "I-X", "O", "S-X"]
    path = [0, 1, 3, 4, 0, 2, 1, 4, 0, 1]
    corpus = CrowdCorpus.from_sequences([["a"] * len(path)], {"ann": [[labels[c] for c in path]]}, labels=labels)
    said = Said(mean=np.eye(5, dtype=np.float32)[path])
    assert said.labels(block_of(corpus), StateSpace.of(tuple(labels))).tolist() == path


def test_a_span_that_no_label_can_write_is_left_as_it_is() -> None:
    """A span of one token is likeliest, and there is no S-X."""
    labels = ["B-X", "E-X", "O"]
    corpus = CrowdCorpus.from_sequences([["a", "b"]], {"ann": [["B-X", "E-X"]]}, labels=labels)
    said = Said(mean=np.array([[0.9, 0.0, 0.1], [0.0, 0.4, 0.6]], np.float32))
    assert said.labels(block_of(corpus), StateSpace.of(tuple(labels))).tolist() == [0, 1]


def test_spans_without_a_begin_are_read_token_by_token() -> None:
    """Where a label may begin a span or go on with one, one cannot say where spans end."""
    labels = ["I-X", "I-Y", "O"]
    corpus = CrowdCorpus.from_sequences([["a", "b", "c"]], {"ann": [["I-X", "I-X", "O"]]}, labels=labels)
    mean = np.array([[0.6, 0.0, 0.4], [0.3, 0.4, 0.3], [0.4, 0.0, 0.6]], np.float32)
    said, block, rules = Said(mean=mean), block_of(corpus), StateSpace.of(tuple(labels))
    assert [labels[c] for c in said.labels(block, rules)] == ["I-X", "I-Y", "O"]


def test_two_who_agree_are_believed_where_that_is_asked_for() -> None:
    corpus = corpus_of("OOXO.YO", "OO.XOYO", "O.....X")
    mean = np.array([[0.1, 0.9, 0.0]] * 7, np.float32)
    said = Said(mean=mean, apart=np.zeros(7, bool), marked=np.ones(7, bool))
    block, rules = replace(block_of(corpus), beside=said), StateSpace.of(corpus.labels)
    out = np.empty((7, 3), np.float32)
    assert Ending(rules, False).describe(None, block, None, out)[0].tolist() == [1, 1, 1, 1, 1, 1, 1]
    labels, _ = Ending(rules, False, two=True).describe(None, block, None, out)
    assert labels.tolist() == [1, 0, 1, 1, 1, 2, 1]  # three are another matter, as are one, and two who differ
    np.testing.assert_array_equal(out, mean)  # that the members doubt it is not hidden


def test_labels_are_read_from_the_mean_and_the_verdict_unless_three_agree() -> None:
    """Votes: two differ, two agree, three agree, two of three, three. The mean says X (O), the verdict Y (X)."""
    corpus = corpus_of("XXXXX", "YXXXX", "..XYX")
    mean = np.array([[0.0, 0.6, 0.4]] * 4 + [[0.6, 0.4, 0.0]], np.float32)
    text = np.array([[0.0, 0.3, 0.7]] * 4 + [[0.0, 1.0, 0.0]], np.float32)
    verdict = Verdict(1.0, np.full((3, 3), 1 / 3), share=1.0)  # the text's own word alone
    said = Said(text=text, mean=mean, plain=mean, apart=np.zeros(5, bool), marked=np.ones(5, bool))
    block, out = replace(block_of(corpus), beside=said), np.empty((5, 3), np.float32)
    labels, _ = Ending(StateSpace.of(corpus.labels), False).describe(verdict, block, None, out)
    assert labels.tolist() == [2, 2, 1, 2, 0]
    np.testing.assert_allclose(out, text)
    np.testing.assert_allclose(verdict.read(said), (mean + text) / 2, rtol=1e-6)
    closer = replace(said, text=np.array([[0.0, 0.45, 0.55]] * 5, np.float32))
    labels, _ = Ending(StateSpace.of(corpus.labels), False).describe(verdict, replace(block, beside=closer), None, out)
    assert labels.tolist() == [1, 1, 1, 1, 0]


def test_where_the_text_may_overrule_three_labels_there_are_read_from_it_and_the_verdict() -> None:
    """Votes: three agree on nothing, on nothing, on a mark; two agree on nothing. The verdict is the text's word."""
    corpus = corpus_of("OOXO", "OOXO", "OOX.")
    mean = np.array([[0.9, 0.1, 0.0]] * 2 + [[0.1, 0.9, 0.0], [0.9, 0.1, 0.0]], np.float32)
    text = np.array([[0.4, 0.6, 0.0], [0.6, 0.4, 0.0], [0.9, 0.1, 0.0], [0.4, 0.6, 0.0]], np.float32)
    verdict = Verdict(1.0, np.full((3, 3), 1 / 3), share=1.0, outside=0)
    said = Said(text=text, mean=mean, plain=mean, apart=np.zeros(4, bool), marked=np.ones(4, bool))
    block, rules = replace(block_of(corpus), beside=said), StateSpace.of(corpus.labels)
    for free, read in ((False, [0, 0, 1, 0]), (True, [1, 0, 1, 0])):
        ending = Ending(rules, False, free=free)
        labels, _ = ending.describe(verdict, block, None, np.empty((4, 3), np.float32))
        assert labels.tolist() == read


@pytest.mark.parametrize("most", [0.5, 0.9, 1.7, 3.0])
def test_a_verdict_is_read_so_that_it_marks_no_more_than_the_members(most: float) -> None:
    corpus = corpus_of("XXO.", "XYO.")
    text = np.array([[0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8]], np.float32)
    mean = np.array([[1 - most / 3, most / 3, 0.0]] * 3 + [[0.0, 1.0, 0.0]], np.float32)  # nobody voted on the last
    verdict = Verdict(1.0, np.full((3, 3), 1 / 3), share=1.0, outside=0)
    said = Said(text=text, mean=mean, plain=mean)
    held = verdict.marking_no_more(*Marked(verdict).summarise(replace(block_of(corpus), beside=said)))
    read = 2 * held.read(said) - mean
    np.testing.assert_allclose(read.sum(axis=1), 1, rtol=1e-6)
    assert (1 - read[:3, 0]).sum() == pytest.approx(min(most, 0.9 + 0.7 + 0.4), abs=0.01)
    if most == 3.0:
        np.testing.assert_allclose(read, text, atol=1e-6)
    kept = (read / text)[:3] / (read / text)[:3, :1]  # all odds against O are divided by the same
    np.testing.assert_allclose(kept[:, 1:], np.exp(-held.held), rtol=1e-5)
    np.testing.assert_allclose(held.proba(said), text, rtol=1e-6)  # what is reported is not held


def test_members_begin_at_hard_votes_and_families_tell_what_is_easy() -> None:
    plain = corpus_of("X", "X", "O", ".")
    soft = SoftVotes(np.zeros(1, np.int64), np.full(1, 3, np.int32), np.array([[0.0, 0.0, 1.0]], np.float32))
    families = Families(np.array([0, 0, 2, 3]), np.array([1.0, 1.0, 0.0, 0.0]))
    for corpus in (plain, replace(plain, soft=soft)):
        begins, easy = WeighedStart(None, 1.0, families).shares(block_of(corpus))
        np.testing.assert_allclose(begins, np.array([[1, 2, 0]]) / 3 + 1e-3)
        np.testing.assert_allclose(easy, [[0.5, 0.5, 0]])


def test_votes_are_judged_where_they_have_two_beside_them() -> None:
    some, all_three = corpus_of("XXX", ".XX", "..O"), corpus_of("XXX", "OXX", "OOO")
    assert Meeting().summarise(block_of(some)) == (5, 3, 6, 3)
    begins = judged_start(RobustSequence(), Votes.of(some))
    assert isinstance(begins, LevelStart)
    assert begins.meet == pytest.approx(0.5)
    assert isinstance(judged_start(RobustSequence(), Votes.of(all_three)), DawidSkeneStart)


def test_people_are_believed_by_their_weight() -> None:
    block = block_of(corpus_of("OXO", "OXO", "OXX"))
    token, label = unanimous(block, np.ones(9))
    assert (token.tolist(), label.tolist()) == ([0, 1], [0, 1])
    copies = np.ones(9)
    copies[:3] = 1 / 3  # those of the first token are one family
    assert unanimous(block, copies)[0].tolist() == [1]
    three = np.array([1 / 2] * 2 + [1 / 7] * 7 + [1.0])  # two families and one more, but for rounding
    assert three.cumsum()[-1] < 3
    assert unanimous(block_of(corpus_of(*"O" * 10)), three)[0].tolist() == [0]
    assert unanimous(block_of(corpus_of(*"O" * 10)), 0.95 * three)[0].tolist() == []


def known(*said: str, family: tuple[int, ...] = ()) -> Crowd:
    """Return what is known of a crowd; members of a family are copies."""
    corpus, own = corpus_of(*said), np.array(family or range(len(said)))
    look = Look(corpus.labels, Families(own, (np.bincount(own)[own] > 1) * 1.0))
    return look.crowd(look.summarise(block_of(corpus)))


def test_marks_of_one_annotator_are_the_mean_over_votes() -> None:
    assert known("X" * 9, "XXX" + "." * 6).marks_each == pytest.approx(12 * (0.75**2 + 0.25**2))


def test_who_marked_nothing_and_where_runs_begin_is_seen_in_each_sequence_of_a_block() -> None:
    said = {"ann": [["X", "X"], ["O", "O"], ["X", "O"]], "ben": [["O", "O"], ["O", "X"], None]}
    corpus = CrowdCorpus.from_sequences([["a", "b"], ["c", "d"], ["e", "f"]], said, labels=["O", "X"])
    votes = Votes.of(corpus)
    pairing = Pairing.of(Block(votes, 2, 6), outside=0)
    assert (pairing.owner.tolist(), pairing.silent.tolist()) == ([0, 1, 0], [True, False, False])
    look = Look(corpus.labels, Families(np.arange(2), np.zeros(2)))
    crowd = look.crowd(look.summarise(Block(votes, 0, 6)))
    assert (crowd.marks, crowd.run_length) == (4, pytest.approx(4 / 3))


def test_rates_are_held_at_the_upper_quartile_or_between_two() -> None:
    """Of own marks per expected mark: (1 .. 4 + 1) / (4 + 1), without the one above the quartile of all."""
    four = Rates(known("XOOOO", "XXOOO", "XXXOO", "XXXXO"))
    said = np.full((4, four.own.shape[1]), 4.0)
    assert four.ratios(said, 0 * said)[0] == pytest.approx(0.6 + 0.2 * (0.75 - 0.5) * 3)
    assert four.least_ratio == 0.75
    soft = Rates(known("XOOOO", "XXOOO", "XXXOO", "XXXXO", "....."))  # who gives soft votes alone is not asked
    among = np.vstack((said, np.full(said.shape[1], 0.64)))  # though they stand in the midst: 1 / 1.64
    assert soft.ratios(among, 0 * among)[0] == pytest.approx(four.ratios(said, 0 * said)[0])
    asleep = Rates(known("XOOOO", "XXOOO", "XXXOO", "XXXXO", "OOOOO", "OOOOO", "OOOOO"))  # who never looks, neither
    looking = np.arange(7) < 4
    among = np.vstack((said, np.full((3, said.shape[1]), 4.0)))
    assert asleep.ratios(among, 0 * among, looking)[0] == pytest.approx(four.ratios(said, 0 * said)[0])
    assert asleep.ratios(among, 0 * among)[0] < 0.7
    two = Rates(known("XOOOO", "XXXXO"))
    assert two.ratios(said[:2], 0 * said[:2])[0] == pytest.approx((0.4 + 1.0) / 2)
    marks = np.full(two.own.shape[1], 4.0)
    assert two.held(0 * marks, said[:2], 0 * said[:2], marks)[0] == pytest.approx(np.log(1 / 0.7))


def test_what_one_source_marks_everywhere_is_supported_by_nobody() -> None:
    """People mark every second token of theirs, a machine (or a family of two) every token; everything is expected."""
    people, machine = ["XO......", "..XO....", "....XO..", "......XO"], "X" * 8

    def ratio(*said: str, family: tuple[int, ...] = ()) -> float:
        crowd = known(*said, family=family)
        return float(Rates(crowd).ratios(crowd.given[:, None].repeat(crowd.own.shape[1], 1), 0 * crowd.own)[0])

    assert ratio(machine, *people) == pytest.approx(2 / 3)
    assert ratio(machine, machine, *people, family=(0, 0, 2, 3, 4, 5)) == pytest.approx(2 / 3)
    of_two = ratio(machine, machine, "XO" * 4, "XO" * 4, family=(0, 0, 2, 2))  # of two families none is left out
    assert of_two == pytest.approx(1.0)
    assert ratio(machine, machine, machine, family=(0, 0, 0)) == pytest.approx(1.0)


def test_marks_without_types_are_agreed_on_too() -> None:
    said = {"ann": [["B-X", "O"]], "ben": [["B-X", "B-X"]]}
    corpus = CrowdCorpus.from_sequences([["a", "b"]], said)
    look = Look(corpus.labels, Families(np.arange(2), np.zeros(2)))
    crowd = look.crowd(look.summarise(block_of(corpus)))
    assert (crowd.agreed.tolist(), crowd.own.tolist()) == ([1], [[1], [2]])


def test_most_voices_hold_rates_from_below() -> None:
    """Two of three mark two tokens; a third is marked by one. Copies are one voice, and one voice holds nothing."""
    crowd = known("XXXOO", "XXOOO", "OOOOO")
    assert crowd.agreed[0] == 2
    rates = Rates(crowd)
    fits = np.ones((3, len(crowd.agreed)))

    def held(weight: float, found: float) -> float:
        return float(rates.held(np.full(len(crowd.agreed), weight), fits, 0 * fits, np.full(fits.shape[1], found))[0])

    assert held(0.0, 1.5) == 0.0
    assert held(0.0, 1.0) == pytest.approx(np.log(2 / (0.75 * 2 + 1)))
    assert held(-0.2, 1.5) == pytest.approx(-0.2)
    assert held(-0.2, 40.0) == 0.0
    assert held(0.0, 0.0) == -0.5
    assert known("XXX..", "..XOO").agreed[0] == 1
    assert known("XXXOO", "XXOOO", family=(0, 0)).agreed[0] == 0


@pytest.mark.parametrize("together", [False, True])
def test_marks_are_expected_where_two_voices_are_heard(together: bool) -> None:
    """A family of two who repeat each other is one voice: two of its votes are none of several."""
    corpus = corpus_of("XXXO.O", "XX.OYO", "Y..O..")
    families = Families(np.array([0, 0, 1] if together else [0, 1, 2]), np.ones(3))
    look = Look(corpus.labels, families)
    block = block_of(corpus)
    rates = Rates(look.crowd(look.summarise(block)))
    proba = np.random.default_rng(0).dirichlet(np.ones(corpus.n_labels), len(block))
    found = rates.sums(block, families.weights(block), proba)[2]
    heard = [0, 3] if together else [0, 1, 3, 5]
    of_kind = [{"X", "Y"}, *({kind} for kind in rates.kinds if kind is not None)]
    expected = [sum(proba[i, corpus.labels.index(label)] for i in heard for label in labels) for labels in of_kind]
    np.testing.assert_allclose(found, expected)


def test_the_base_speaks_as_far_as_votes_do_not_meet_and_no_pseudo_count_is_tiny() -> None:
    corpus = corpus_of("OXY.", "O..X")
    structure = Structure("learned", False, ((5.0, 0.5),), learned=True)
    rows = VoteRows.of([block_of(corpus)], memory=True)
    made = member(structure, known("OXY.", "O..X"), rows, (), LevelStart(None, 1.0), trust=0.0, tol=1e-3)
    learned = made.sources[0]
    assert isinstance(learned, LearnedMatrices)
    assert (learned.own, learned.meet) == (pytest.approx(0.6), pytest.approx(0.4))
    anchor = replace(learned, own=0.1)
    given = anchor.rows.parts[2]
    counts = 1000.0 * (np.asarray(anchor.shows)[None, :] == given[:, None])
    prior, totals, _ = anchor.pooled(counts, np.full((anchor.rows.contexts, 3), 10.0))
    assert prior.min() == LEAST_PSEUDO
    first = slice(anchor.rows.borders[0], anchor.rows.borders[1])  # who gave every label
    np.testing.assert_allclose(prior[first].sum(axis=0), totals[0])

"""The default: guards of its members, families that repeat each other, and what it says it does not know."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import naive
from lasca import simulate
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block, cut_into_blocks
from lasca.engine import Threads, added
from lasca.kernels import rows as kernels
from lasca.kernels.rows import pair_counts
from lasca.truth import Votes, model_class
from lasca.truth.annotator_models import VoteRows, confusion_prior
from lasca.truth.average import Ending, Said
from lasca.truth.chain import StateSpace
from lasca.truth.evidence import RowCounts, Words
from lasca.truth.families import _agreement, _groups, declared_families, find_families
from lasca.truth.guards import FIRST_ASLEEP, Crowd, Look, Pairing, Rates, asleep, kinds_of_marks, sleep_rates
from lasca.truth.overruling import HiddenVotes
from lasca.truth.robust import (
    LEAST_SPANS,
    MEMBERS,
    ONE_LEVEL,
    WITHOUT_SPANS,
    RobustSequence,
    _Average,
    _judged,
    _say,
)
from lasca.truth.robust_chain import MOST_HEARD, LearnedMatrices, Structure, member
from lasca.truth.sequence_rounds import TEXT_PRIOR
from lasca.truth.starts import LevelStart, WeighedStart
from lasca.truth.tempering import referee
from lasca.truth.text_models import text_model
from process_engine import Processes
from truth_cases import crowd, everything, triples

LABELS = ("B-X", "I-X", "O")


def looked_at(corpus: CrowdCorpus, blocks: list[Block] | None = None) -> Crowd:
    look = Look(corpus.labels, declared_families(corpus.families))
    return look.crowd(added([look.summarise(block) for block in blocks or [everything(corpus)]]))


def annotators_of(corpus: CrowdCorpus, structure: Structure) -> Any:
    rows = VoteRows.of([everything(corpus)], memory=True)
    made = member(structure, looked_at(corpus), rows, (), LevelStart(None, 1.0), trust=0.0, tol=1e-3)
    return made.sources[0]


def with_copies(corpus: CrowdCorpus, original: str, n: int, redrawn: float, seed: int = 0) -> CrowdCorpus:
    """Add annotators who repeat one another but for a share of labels drawn anew."""
    rng = np.random.default_rng(seed)
    own = corpus.annotation_annotator == corpus.annotators.index(original)
    token, label = corpus.annotation_token[own], corpus.annotation_label[own]
    tokens, annotators, labels = [corpus.annotation_token], [corpus.annotation_annotator], [corpus.annotation_label]
    names = [*corpus.annotators]
    for i in range(n):
        names.append(f"{original}-copy-{i}")
        drawn = np.where(rng.random(len(label)) < redrawn, rng.permutation(label), label)
        tokens.append(token)
        annotators.append(np.full(len(token), len(names) - 1))
        labels.append(drawn)
    return corpus.with_annotations(names, *(np.concatenate(x) for x in (tokens, annotators, labels)))


# --- kernels ---------------------------------------------------------------------------------------------------------


def test_the_sums_of_the_guards_are_those_of_plain_loops() -> None:
    corpus = crowd(12, unlabelled=2)
    block = Block(Votes.of(corpus), int(corpus.offsets[3]), int(corpus.offsets[9]))
    votes, rng = block.votes, np.random.default_rng(0)
    start = votes.start[block.first : block.last + 1]
    part = slice(int(start[0]), int(start[-1]))
    annotator, label = votes.annotator[part], votes.label[part]
    token = np.repeat(np.arange(len(block)), np.diff(start))
    sequence = corpus.token_sequence[block.first + token]
    pairing, outside = Pairing.of(block, LABELS.index("O")), LABELS.index("O")
    said: dict[tuple[int, int], list[int]] = {}
    for j, key in enumerate(zip(sequence.tolist(), annotator.tolist())):
        said.setdefault(key, []).append(j)
    assert len(pairing.owner) == len(said)
    for (_, a), own in said.items():
        pair = int(pairing.pair[own[0]])
        assert (pairing.pair[own] == pair).all()
        assert pairing.owner[pair] == a
        assert pairing.silent[pair] == all(label[j] == outside for j in own)
    row, weight = rng.integers(0, 5, len(label)).astype(np.int32), rng.random(len(label))
    table, proba = rng.standard_normal((5, 3)), rng.dirichlet(np.ones(3), len(block))
    out = np.zeros(len(pairing.owner))
    kernels.evidence_of_silence(start, row, weight, pairing.pair, pairing.silent, table, proba, out)
    wanted = np.zeros(len(out))
    for j, i in enumerate(token):
        wanted[pairing.pair[j]] += weight[j] * (table[row[j]] * proba[i]).sum() * pairing.silent[pairing.pair[j]]
    np.testing.assert_allclose(out, wanted, rtol=1e-12)
    rates: Any = rng.random(votes.n_annotators)
    rate, view = rates[pairing.owner], SimpleNamespace(start=start, row=row)
    slept = asleep(pairing, view, table, proba, weight, rates)  # type: ignore[arg-type]
    np.testing.assert_allclose(slept, pairing.silent * rate / (rate + (1 - rate) * np.exp(wanted)))
    assert pairing.silent.any()
    assert sleep_rates(np.array([1.0]), np.array([10.0])) == pytest.approx(1.5 / 15)
    kind_of, expected = np.array([1, 2, 0]), rng.random((len(block), 3))
    given, other = np.zeros((2, votes.n_annotators, 3))
    kernels.sums_of_rates(start, annotator, label, kind_of, weight, expected, given, other)
    for a in range(votes.n_annotators):
        for k in range(3):
            mine = [j for j in range(len(label)) if annotator[j] == a]
            assert given[a, k] == pytest.approx(sum(weight[j] * expected[token[j], k] for j in mine))
            others = [j for j in mine if k > 0 and kind_of[label[j]] not in (0, k)]
            assert other[a, k] == pytest.approx(sum(weight[j] * expected[token[j], k] for j in others))


def test_what_all_members_know_adds_up_over_blocks() -> None:
    corpus = crowd(60, unlabelled=3)
    blocks = cut_into_blocks(Votes.of(corpus), 100)
    assert len(blocks) > 5
    whole, parts = looked_at(corpus), looked_at(corpus, blocks)
    for name in ("sequences", "given", "own"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))
    assert (whole.meet, whole.marks, whole.per_token) == (parts.meet, parts.marks, parts.per_token)
    assert whole.per_token == len(triples(corpus)) / len({i for i, _, _ in triples(corpus)})
    pairs = {(corpus.token_sequence[i], a) for i, a, _ in triples(corpus)}
    assert whole.sequences.tolist() == [sum(b == a for _, b in pairs) for a in range(corpus.n_annotators)]
    assert whole.marks == sum(t != LABELS.index("O") for _, _, t in triples(corpus)) == whole.own[:, 0].sum()


def test_pairs_are_counted_by_the_first_tokens_of_marks() -> None:
    tokens = [["a", "b", "c", "d"]]
    given = {"p": [["B-X", "I-X", "O", "B-X"]], "q": [["B-X", "I-X", "O", "O"]], "r": [["O", "B-X", "O", "B-X"]]}
    corpus = CrowdCorpus.from_sequences(tokens, given, labels=LABELS)
    votes = Votes.of(corpus)
    knows, kind_of = np.ones((3, len(LABELS)), np.bool_), np.zeros(len(LABELS), np.int64)

    def counts() -> Any:
        same, marks, near = np.zeros((3, 3, 3))
        said = votes.start, votes.annotator, votes.label, corpus.labels.index("O")
        pair_counts(*said, knows, kind_of, np.zeros(3, np.int64), same, marks, near)
        return same, marks, near

    same, marks, near = counts()
    np.testing.assert_array_equal(marks, [[0, 2, 2], [1, 0, 1], [2, 2, 0]])  # p marks twice, q once, r twice
    np.testing.assert_array_equal(same, [[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(near, [[0, 1, 2], [1, 0, 1], [2, 1, 0]])  # r marks the second half of a name
    kind_of[LABELS.index("I-X")] = 1  # as if it were another type: runs of p and q end there
    np.testing.assert_array_equal(counts()[2], [[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    knows[1, LABELS.index("B-X")] = False  # then nobody differs from q about it, nor q from them
    same, marks, near = counts()
    np.testing.assert_array_equal(marks, [[0, 0, 2], [0, 0, 1], [2, 0, 0]])


# --- families --------------------------------------------------------------------------------------------------------


def families_of(corpus: CrowdCorpus) -> list[set[str]]:
    block = everything(corpus)
    look = Look(corpus.labels, declared_families(corpus.families))
    crowd = look.crowd(look.summarise(block))
    gives = crowd.by_label(crowd.gives)
    found = find_families(lambda pairs: pairs.summarise(block), corpus.families, crowd.outside, gives, crowd.kind_of)
    return [{corpus.annotators[a] for a in members} for members in found.members()]


@pytest.mark.parametrize("seed", range(4))
def test_copies_are_found_even_where_they_are_the_majority(seed: int) -> None:
    plain = crowd(150, n_annotators=7, seed=seed, coverage=1.0, accuracy=[0.9, 0.85, 0.8, 0.8, 0.75, 0.7, 0.55])
    corpus = with_copies(plain, "annotator-6", 6, redrawn=0.1, seed=seed)
    assert families_of(corpus) == [{name for name in corpus.annotators if name.startswith("annotator-6")}]


def names_marked(
    habits: list[Any],
    *,
    recall: float | list[float] = 0.85,
    n: int = 250,
    seed: int = 0,
    sizes: tuple[int, ...] = (1, 2, 3),
) -> CrowdCorpus:
    """Return a crowd of people who miss names at random and mark them by habits, functions of where they lie."""
    rng, length = np.random.default_rng(seed), 12
    each = recall if isinstance(recall, list) else [recall] * len(habits)

    def written(names: Any) -> list[str]:
        labels = ["O"] * length
        for first, end in names:
            labels[first:end] = ["B-X", *["I-X"] * (end - first - 1)]
        return labels

    gold, given = [], dict[str, list[Any]]({f"p{k}": [] for k in range(len(habits))})
    for _ in range(n):
        names = [(a, a + int(rng.choice(sizes))) for a in (2, 7)]
        gold.append(written(names))
        for own, habit, share in zip(given.values(), habits, each):
            own.append(written(habit(*name) for name in names if rng.random() < share))
    return CrowdCorpus.from_sequences([["w"] * length] * n, given, golds={"gold": gold}, labels=LABELS)


def whole(first: int, end: int) -> tuple[int, int]:
    return first, end


def last_word(first: int, end: int) -> tuple[int, int]:
    return end - 1, end


@pytest.mark.parametrize("seed", range(3))
def test_a_habit_of_borders_makes_no_family(seed: int) -> None:
    corpus = names_marked([whole] * 3 + [last_word] * 2, seed=seed)
    assert families_of(corpus) == []
    assert RobustSequence(text=False).fit(corpus).score(corpus, "gold").f1 > 0.95


def test_people_who_copy_a_habit_are_a_family() -> None:
    plain = names_marked([whole] * 4 + [last_word] * 3)
    assert families_of(with_copies(plain, "p6", 2, redrawn=0.02)) == [{"p6", "p6-copy-0", "p6-copy-1"}]


def test_those_who_work_beside_lazy_people_are_no_family() -> None:
    for seed in range(3):
        assert families_of(names_marked([whole] * 6, recall=[0.85] * 3 + [0.1] * 3, seed=seed)) == []


def test_a_copying_person_is_found() -> None:
    base = crowd(120, n_annotators=2, seed=9)
    for seed in range(5):
        corpus = simulate.crowd(base, gold="gold", groups="ca1", seed=seed, copying=2, copy_rate=0.8)
        found = families_of(corpus)
        assert len(found) == 2
        assert all(sum(name.startswith("copy-") for name in family) == 1 for family in found)


@pytest.mark.parametrize("errors", [{"errors": "independent", "common": 0.1}, {"errors": "difficulty", "rho": 0.4}])
def test_common_errors_and_difficulty_make_no_family(errors: dict[str, Any]) -> None:
    base = crowd(120, n_annotators=2, seed=9)
    for seed in range(5):
        corpus = simulate.crowd(base, gold="gold", groups="ca1", seed=seed, **errors)
        assert families_of(corpus) == []


def test_good_annotators_are_no_family() -> None:
    for seed in range(4):
        corpus = crowd(150, n_annotators=8, seed=seed, coverage=1.0, accuracy=[0.97, 0.97, 0.95, *[0.6] * 5])
        assert families_of(corpus) == []


def pairs_that_met(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Same marks, marks, and marks that overlap, of each pair.

    People of all qualities; some of them are families, some have a habit in common, some hardly met.
    """
    n = int(rng.integers(4, 12))
    quality, kin = rng.uniform(0.3, 0.98, n), rng.integers(0, 5, n) * (rng.random(n) < 0.7)
    repeats = rng.choice([0.0, 0.3, 0.6, 0.9], 5)
    marks = rng.choice([10, 30, 39, 60, 200, 2000], (n, n), p=[0.1, 0.1, 0.05, 0.25, 0.25, 0.25])
    marks = np.floor((marks + marks.T) / 2 * rng.uniform(0.8, 1.0, (n, n)))
    np.fill_diagonal(marks, 0)
    alone = np.outer(quality, quality)
    related = (kin[:, None] == kin[None, :]) & (kin[:, None] > 0)
    share = np.where(related, alone + repeats[kin][:, None] * (1 - alone), alone) + rng.normal(0, 0.02, (n, n))
    same = np.triu(np.floor(np.sqrt(marks * marks.T) * np.clip(share, 0, 1)), 1)
    habit = rng.integers(0, 2, n) * (rng.random() < 0.3)  # whose borders are others
    apart = np.where(habit[:, None] == habit[None, :], 1.0, 0.6)
    near = same + same.T
    return np.floor(near * apart), marks, near


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("spans", [False, True])
def test_families_are_those_of_plain_sums_over_pairs(spans: bool, declared: bool) -> None:
    sizes = set[int]()
    for seed in range(25):
        same, marks, near = pairs_that_met(np.random.default_rng([seed, spans, declared]))
        n, met = len(same), np.flatnonzero(marks)
        told = ["f" if declared and a in (1, 3) else None for a in range(n)]
        rows = RowCounts(n * n, met, np.stack([c.ravel()[met] for c in (same, marks, near)], axis=1))
        asked, outside = lambda pairs, rows=rows: (rows,), 0 if spans else -1
        found = find_families(asked, told, outside, np.ones((n, 1), np.bool_), np.zeros(1, np.int64))
        family, repeats = naive.find_families(same, marks, near, [1 if told[a] else a for a in range(n)], spans)
        assert found.family.tolist() == family
        np.testing.assert_allclose(found.repeats, repeats, rtol=1e-9)
        sizes |= {len(found.members())}
    assert sizes >= ({1} if declared else {0, 1})


def test_agreement_of_pairs_says_nothing_of_one_with_themselves() -> None:
    same, marks, _ = pairs_that_met(np.random.default_rng(3))
    same[0, 0] = marks[0, 0] = 50.0
    for got, expected in zip(_agreement(same, marks), naive.pair_agreement(same, marks)):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_nobody_is_joined_twice_in_a_round() -> None:
    """Two weak threes; who belongs to the first repeats one of the second a little, too."""
    sure = np.full((6, 6), -np.inf)
    for a, b, c in ((0, 1, 0.4), (0, 2, 0.4), (1, 2, 0.4), (3, 4, 0.3), (3, 5, 0.3), (4, 5, 0.3), (2, 3, 0.2)):
        sure[a, b] = sure[b, a] = c
    sure[2, 4] = sure[4, 2] = sure[2, 5] = sure[5, 2] = 0.2
    assert [group.tolist() for group in _groups(sure, np.arange(6), spans=True)] == [[0, 1, 2], [3, 4, 5]]


def test_a_family_of_exact_copies_weighs_as_one() -> None:
    corpus = with_copies(crowd(30, coverage=1.0), "annotator-0", 3, redrawn=0.0)
    block = everything(corpus)
    votes = block.votes
    names = ["f" if name.startswith("annotator-0") else None for name in corpus.annotators]
    families = declared_families(names)
    weight = families.weights(block)
    member = np.array([name is not None for name in names])[votes.annotator]
    np.testing.assert_allclose(weight[member], 0.25)
    np.testing.assert_allclose(weight[~member], 1.0)
    once = families.one_each(block).votes
    assert len(once.label) == len(votes.label) - 3 * corpus.n_tokens
    assert (np.bincount(once.annotator, minlength=len(names)) > 0).sum() == 6


def test_copies_do_not_capture_the_truth() -> None:
    plain = crowd(200, n_annotators=5, seed=3, coverage=1.0, accuracy=[0.9, 0.85, 0.85, 0.8, 0.5])
    corpus = with_copies(plain, "annotator-4", 4, redrawn=0.05)
    gold = corpus.golds["gold"]

    def accuracy(name: str, data: CrowdCorpus, **options: Any) -> float:
        return float((model_class(name)(**options).fit(data).labels == gold).mean())

    alone = accuracy("robust", plain, text=False)
    assert accuracy("ds", corpus) < alone - 0.1
    assert accuracy("robust", corpus, text=False, families=False) < alone - 0.1
    assert accuracy("robust", corpus, text=False) > alone - 0.02


# --- guards ----------------------------------------------------------------------------------------------------------


def test_people_who_agree_are_believed() -> None:
    corpus = crowd(80, n_annotators=5, seed=2, accuracy=0.7)
    truth = RobustSequence(text=False).fit(corpus)
    given: dict[int, list[int]] = {}
    for token, _, label in triples(corpus):
        given.setdefault(token, []).append(label)
    agreed = {i: labels[0] for i, labels in given.items() if len(labels) >= 3 and len(set(labels)) == 1}
    assert len(agreed) > 50
    wrong = [i for i, label in agreed.items() if truth.labels[i] != label]
    assert len(wrong) <= 0.02 * len(agreed)  # only where the tag scheme forbids what they said


def test_silence_is_discounted_where_others_mark_much() -> None:
    corpus = crowd(60, n_annotators=5, seed=4, coverage=1.0, accuracy=0.9)
    lazy = corpus.with_annotations(
        [*corpus.annotators, "lazy"],
        np.concatenate([corpus.annotation_token, np.arange(corpus.n_tokens)]),
        np.concatenate([corpus.annotation_annotator, np.full(corpus.n_tokens, 5)]),
        np.concatenate([corpus.annotation_label, np.full(corpus.n_tokens, LABELS.index("O"))]),
    )
    block, sequences = everything(lazy), looked_at(lazy).sequences
    pairing, rows = Pairing.of(block, LABELS.index("O")), VoteRows.of([block])
    view, ones = rows.view(block), np.ones(block.n_votes)
    table = np.log(np.where(rows.code[:, None] % 3 == np.arange(3), 0.9, 0.05))[view.own]
    states, rates = np.eye(3)[lazy.golds["gold"]], np.full(6, FIRST_ASLEEP)
    for _ in range(5):
        slept = asleep(pairing, view, table, states, ones, rates)
        rates = sleep_rates(np.bincount(pairing.owner, slept, 6), sequences)
    weight, votes = 1 - slept[pairing.pair], block.votes
    is_lazy, token = votes.annotator == 5, np.repeat(np.arange(votes.n_tokens), np.diff(votes.start))
    marked = np.isin(lazy.token_sequence[token], lazy.token_sequence[lazy.golds["gold"] != LABELS.index("O")])
    assert weight[is_lazy & marked].mean() < 0.1
    assert weight[~is_lazy].mean() > 0.95
    assert rates[5] > 0.5 > rates[:5].max()


def test_the_rate_of_marks_is_held_where_annotators_support_it() -> None:
    corpus = crowd(60, n_annotators=6, seed=5, coverage=1.0, accuracy=0.95)
    rates = Rates(looked_at(corpus))
    outside = LABELS.index("O")
    block, ones = everything(corpus), np.ones(corpus.n_annotations)
    fits = rates.sums(block, ones, np.eye(3)[corpus.golds["gold"]])
    none = np.zeros(len(rates.kinds))
    assert rates.held(none, *fits).tolist() == [0.0]
    proba = np.full((corpus.n_tokens, 3), 0.45)
    proba[:, outside] = 0.1
    most = rates.sums(block, ones, proba)
    assert rates.held(none, *most) == pytest.approx(np.log(rates.least_ratio / rates.ratios(*most[:2])))
    assert rates.held(none + 0.5, *fits)[0] < 0.5


def test_types_are_held_one_by_one_against_a_source_that_sees_one_everywhere() -> None:
    """Five who miss a seventh and a machine that is right on one type and takes a tenth of all tokens for the other."""
    rng = np.random.default_rng(0)
    n, labels = 6000, ("O", "B-X", "B-Y")
    gold = rng.choice(3, n, p=[0.9, 0.05, 0.05])
    said = np.where(rng.random((n, 5)) < 0.15, 0, gold[:, None])
    machine = np.where((rng.random(n) < 0.1) & (gold == 0), 2, gold)
    codes = np.column_stack([said, machine])
    corpus = CrowdCorpus.from_codes(
        tokens=["w"] * n,
        offsets=np.arange(0, n + 1, 20),
        labels=labels,
        annotators=["a", "b", "c", "d", "e", "machine"],
        annotation_token=np.repeat(np.arange(n), 6),
        annotation_annotator=np.tile(np.arange(6), n),
        annotation_label=codes.ravel(),
        sequence_ids=[str(i) for i in range(n // 20)],
    )
    rates = Rates(looked_at(corpus))
    assert list(rates.kinds) == [None, "X", "Y"]

    def held(codes: Any) -> Any:
        return rates.held(np.zeros(3), *rates.sums(everything(corpus), np.ones(6 * n), np.eye(3)[codes]))

    of_all, one, other = weight = held(machine)
    assert one == 0.0 < of_all < 0.8 < other
    assert rates.bias(weight).tolist() == [0.0, -of_all, -of_all - other]
    confused = np.where(gold == 2, 1, gold)  # all of Y is called X: who said Y there has seen something
    assert held(confused)[:2].tolist() == [0.0, 0.0]
    assert held(confused)[2] == -0.5  # but most voices said Y
    marked = (RobustSequence().fit(corpus).labels == 2).sum()
    assert marked < 1.2 * (gold == 2).sum()


# --- schemes of their own -------------------------------------------------------------------------------------------


def rules(per_type: int, n: int = 4000, seed: int = 0, recall: float = 0.85) -> CrowdCorpus:
    """Names of two types; rules that each look for one of them, and mark a token in a hundred wrongly."""
    rng = np.random.default_rng(seed)
    gold = rng.choice(3, n, p=[0.9, 0.05, 0.05])
    types = np.arange(2 * per_type) % 2 + 1
    right = (gold[:, None] == types) & (rng.random((n, len(types))) < recall)
    said = np.where(right | (rng.random((n, len(types))) < 0.01), types, 0)
    labels = [["O", "B-X", "B-Y"][k] for k in gold]
    sequences = [slice(a, a + 10) for a in range(0, n, 10)]
    return CrowdCorpus.from_sequences(
        [["w"] * 10 for _ in sequences],
        {
            f"rule-{a}": [[["O", "B-X", "B-Y"][k] for k in said[part, a]] for part in sequences]
            for a in range(len(types))
        },
        golds={"gold": [labels[part] for part in sequences]},
        labels=["O", "B-X", "B-Y"],
    )


def test_who_never_gives_a_type_that_others_give_does_not_look_for_it() -> None:
    corpus = rules(2)
    crowd = looked_at(corpus)
    assert crowd.uses.tolist() == [[True, True, False], [True, False, True]] * 2
    assert crowd.labels == ("B-X", "B-Y", "O")
    assert crowd.knows.tolist() == [[True, False, True], [False, True, True]] * 2
    for given, own, uses in ((1000.0, 0.0, False), (1000.0, 6.0, True), (100.0, 0.0, True)):
        table = np.array(
            [[100.0, 100.0, 0.0], [own, 0.0, own], [100.0, 0.0, 100.0]]
        )  # one mark in ten votes, but for own
        votes = np.array([1000.0, given, 1000.0])
        none = np.zeros((3, 3))
        known = replace(crowd, own=table, given=votes, asked=none, instead=none)
        assert known.uses[1, 2] == uses
    nobody = replace(known, labels=("N", "V", "A"))
    assert nobody.outside < 0
    assert nobody.uses.all()  # without O every label is an answer


def coarse(n: int = 3000, seed: int = 0) -> CrowdCorpus:
    """Tokens of three kinds beside O; two of five people have no Y and call it X."""
    rng = np.random.default_rng(seed)
    gold = rng.choice(4, n, p=[0.7, 0.1, 0.1, 0.1])
    names, sequences = np.array(["O", "X", "Y", "Z"]), [slice(a, a + 10) for a in range(0, n, 10)]
    people = {}
    for a in range(5):
        said = np.where(rng.random(n) < 0.8, gold, rng.choice(4, n))
        said = np.where((said == 2) & (a > 2), 1, said)
        people[f"person-{a}"] = [names[said[part]].tolist() for part in sequences]
    truth = [names[gold[part]].tolist() for part in sequences]
    return CrowdCorpus.from_sequences([["w"] * 10 for _ in sequences], people, golds={"gold": truth})


def test_who_has_another_name_for_a_type_looks_for_it() -> None:
    corpus = coarse()
    crowd = looked_at(corpus)
    assert crowd.labels == ("O", "X", "Y", "Z")
    assert not crowd.own[3:, 2].any()
    assert crowd.gives.tolist() == [[True] * 4] * 3 + [[True, True, False, True]] * 2
    assert crowd.uses.all()
    assert families_of(corpus) == []  # those who have Y do not repeat each other because the others have none
    assert (crowd.instead[3:, 2] / crowd.asked[3:, 2]).min() > 0.6  # what others call Y, right or wrong
    assert not replace(crowd, instead=np.zeros_like(crowd.instead)).uses[3:, 2].any()
    truth, simple = (model.fit(corpus) for model in (RobustSequence(), model_class("ds")()))
    assert truth.diagnostics["never_give"] == {}
    assert truth.score(corpus, "gold").accuracy > simple.score(corpus, "gold").accuracy - 0.01


def test_votes_where_others_mark_a_kind_are_counted_by_annotator_and_kind() -> None:
    people = {"x": ["X", "O", "X", "Y"], "y": ["Y", "Y", "Y", "Y"], "z": ["O", "X", None, "O"]}
    corpus = CrowdCorpus.from_sequences([list("abcd")], {name: [own] for name, own in people.items()}, labels=["O"])
    crowd = looked_at(corpus)
    assert crowd.labels == ("O", "X", "Y")
    assert crowd.asked.tolist() == [[0, 1, 3], [0, 3, 0], [0, 1, 3]]
    assert crowd.instead.tolist() == [[0, 0, 2], [0, 3, 0], [0, 0, 1]]


def test_an_o_of_who_does_not_look_for_what_others_mark_there_is_not_heard_at_the_start() -> None:
    people = {"x": ["B-X", "O", "O", "B-X"], "y": ["O", "B-Y", "O", "O"], "z": ["O", "O", "O", "B-Y"]}
    corpus = CrowdCorpus.from_sequences(
        [list("abcd")], {name: [own] for name, own in people.items()}, labels=["O", "B-X", "B-Y"]
    )
    knows = np.array([[True, False, True], [False, True, True], [True, True, True]])
    families, block = replace(declared_families((None,) * 3), knows=knows, outside=2), everything(corpus)
    who = [corpus.annotators[a] for a in block.votes.annotator]
    unheard = [(int(block.token[i]), who[i]) for i in np.flatnonzero(families.unaware(block))]
    assert unheard == [(0, "y"), (1, "x")]  # at the last token y denies Y
    assert families.partial.tolist() == [True, True, False]
    assert families.one_each(block).n_votes == 10
    assert not declared_families((None,) * 3).unaware(block).any()
    start = WeighedStart(None, 0.0, families)  # type: ignore[arg-type]
    shares, _ = start.shares(block)
    assert shares[0] == pytest.approx([0.5, 0, 0.5], abs=0.01)
    assert shares[3] == pytest.approx([1 / 3] * 3, abs=0.01)


def test_a_label_that_somebody_does_not_look_for_is_none_to_them() -> None:
    corpus = rules(1)
    structure = next(s for s in MEMBERS if len(s.levels) == 2 and s.learned)
    rows = VoteRows.of([everything(corpus)], memory=True)
    made = member(structure, looked_at(corpus), rows, (), LevelStart(None, 1.0), trust=0.0, tol=1e-3)
    logs = np.random.default_rng(0).normal(size=(len(made.annotators.rows), 6))
    tied, who = made.tied(logs), made.annotators.rows.parts[0]
    for a, lacks in ((0, 1), (1, 0)):
        for level in (0, 3):
            np.testing.assert_array_equal(tied[who == a, level + lacks], logs[who == a, level + 2])
            np.testing.assert_array_equal(tied[who == a, level + 1 - lacks], logs[who == a, level + 1 - lacks])


def test_who_does_not_look_for_a_type_has_no_say_in_how_much_of_it_there_is() -> None:
    corpus = rules(3)
    rates = Rates(looked_at(corpus))
    truth = np.eye(3)[corpus.golds["gold"]]
    sums = rates.sums(everything(corpus), np.ones(corpus.n_annotations), truth)
    assert rates.held(np.zeros(3), *sums).tolist() == [0.0] * 3
    assert rates.ratios(*sums[:2]).min() > 0.8
    alone = rules(1)  # one for each type: nobody else can say
    rates = Rates(looked_at(alone))
    assert rates.ratios(*rates.sums(everything(alone), np.ones(alone.n_annotations), truth)[:2]).min() > 0.8
    people = rules(1).with_annotations(["a", "b", "c"], *_people_and_one_type(alone))
    rates = Rates(looked_at(people))  # two who look for X alone and one who looks for all: Y is that one's invention
    assert rates.ratios(*rates.sums(everything(people), np.ones(people.n_annotations), truth)[:2])[2] < 0.2


def _people_and_one_type(corpus: CrowdCorpus) -> Any:
    gold = np.asarray(corpus.golds["gold"])
    codes = np.stack([np.where(gold == 0, 0, 2), np.where(gold == 0, 0, 2), gold], axis=1)
    n = corpus.n_tokens
    return np.repeat(np.arange(n), 3), np.tile(np.arange(3), n), codes.ravel()


@pytest.mark.parametrize("per_type", [1, 2, 3])
def test_rules_that_look_for_one_type_each_are_believed_on_it(per_type: int) -> None:
    corpus = rules(per_type)
    truth = RobustSequence().fit(corpus)
    simple = [model_class(name)().fit(corpus).score(corpus, "gold").f1 or 0 for name in ("ds", "mace", "hmm-crowd")]
    assert (truth.score(corpus, "gold").f1 or 0) > max(simple) - 0.02
    assert truth.diagnostics["never_give"]["rule-0"] == ["Y"]
    assert truth.diagnostics["families"] == []
    (said,) = [words for words in truth.warnings if words.startswith("never given by rule-0")]
    assert "though by others: Y." in said


def only_marks(n: int = 3000, seed: int = 0) -> CrowdCorpus:
    """Names; four who leave without a label what is none, and somebody who read a third and says O, too."""
    rng = np.random.default_rng(seed)
    gold = rng.random(n) < 0.1
    sequences = [slice(a, a + 10) for a in range(0, n, 10)]
    people = {}
    for a, recall in enumerate((0.9, 0.8, 0.7, 0.6)):
        said = np.where((gold & (rng.random(n) < recall)) | (rng.random(n) < 0.01), "B-X", None)
        people[f"rule-{a}"] = [said[part].tolist() for part in sequences]
    said = np.where(gold & (rng.random(n) < 0.95), "B-X", "O")
    people["reader"] = [said[part].tolist() if i % 3 == 0 else None for i, part in enumerate(sequences)]
    truth = np.where(gold, "B-X", "O")
    return CrowdCorpus.from_sequences(
        [["w"] * 10 for _ in sequences], people, golds={"gold": [truth[part].tolist() for part in sequences]}
    )


def test_who_never_says_o_supports_no_rate() -> None:
    corpus = only_marks()
    crowd = looked_at(corpus)
    assert corpus.annotators[0] == "reader"
    assert crowd.only_marks.tolist() == [False, True, True, True, True]
    rates = Rates(crowd)
    everywhere = np.tile([0.9, 0.1], (corpus.n_tokens, 1))
    sums = rates.sums(everything(corpus), np.ones(corpus.n_annotations), everywhere)
    assert rates.ratios(*sums[:2])[0] < 0.2  # the reader's
    assert rates.held(np.zeros(len(crowd.agreed)), *sums)[0] > 0.2
    truth, votes = (model.fit(corpus) for model in (RobustSequence(), model_class("mv")()))
    assert (truth.score(corpus, "gold").f1 or 0) > (votes.score(corpus, "gold").f1 or 0) - 0.02
    few = replace(crowd, given=crowd.given / 100, own=crowd.own / 100)
    assert not few.only_marks.any()
    alone = Rates(replace(crowd, given=crowd.given * (np.arange(5) > 0)))
    assert alone.given[0].tolist() == [0, *crowd.given[1:]]  # where nobody else has a say they have
    nobody = replace(crowd, given=crowd.own[:, 0])
    assert not nobody.only_marks.any()  # where none is said at all, everybody is asked


def test_spans_without_a_type_are_a_type_of_their_own() -> None:
    kinds = kinds_of_marks(("O", "B", "B-X", "I", "I-X"))
    assert {kind: np.flatnonzero(own).tolist() for kind, own in kinds.items()} == {
        None: [1, 2, 3, 4],
        "": [1, 3],
        "X": [2, 4],
    }
    assert list(kinds_of_marks(("O", "B", "I"))) == [None]


def test_the_base_speaks_beside_learned_priors_where_annotators_have_many_marks() -> None:
    structure = next(s for s in MEMBERS if s.learned)
    shares = []
    for n in (60, 4000):
        corpus = crowd(n, n_annotators=3, seed=5, coverage=1.0, accuracy=0.95)
        shares.append(annotators_of(corpus, structure).own)
    assert shares[0] == pytest.approx(0.1)
    assert shares[1] > 0.9


def test_rows_of_annotators_with_very_many_votes_learn_no_more() -> None:
    """Ten times as many votes of the same kind leave the rows of annotators as they are, from `MOST_HEARD` on."""
    corpus = crowd(40, n_annotators=3, seed=2, coverage=1.0, accuracy=0.7)
    block, start = everything(corpus), LevelStart(None, 1.0)
    rows = VoteRows.of([block], memory=True)

    def learned(times: float) -> Any:
        """The rows after one visit to a corpus so many times as large."""
        known = looked_at(corpus)
        known = replace(known, given=known.given * times)
        made = member(MEMBERS[1], known, rows, (), start, trust=0.0, tol=1e-3)
        state = made.start((), None)
        statistics, _ = made.visit(state, block, None)
        statistics[3].values *= times
        return made.update(state, statistics)[0].tables[0]

    enough = MOST_HEARD / looked_at(corpus).given.min()
    assert np.abs(learned(enough) - learned(1.0)).max() > 0.1
    np.testing.assert_allclose(learned(10 * enough), learned(enough), atol=1e-9)


def test_only_who_gave_very_many_votes_is_heard_in_part() -> None:
    corpus = crowd(40, n_annotators=3, seed=2, coverage=1.0, accuracy=0.7)
    rows, start = VoteRows.of([everything(corpus)], memory=True), LevelStart(None, 1.0)

    def heard(given: list[float], **more: Any) -> Any:
        known = replace(looked_at(corpus), given=np.array(given), **more)
        return member(MEMBERS[1], known, rows, (), start, trust=0.0, tol=1e-3).heard

    assert heard([MOST_HEARD, 10.0, 0.0]) is None
    np.testing.assert_allclose(heard([4 * MOST_HEARD, 10.0, 0.0]), np.array([0.25, 1.0, 1.0])[rows.parts[0]])
    every = ("B-X", "I-X", "B-Y")
    assert heard([4 * MOST_HEARD, 10.0, 0.0], labels=every) is None  # where every token is marked, nothing is rare


def test_marks_are_counted_wherever_o_stands_among_the_labels() -> None:
    last = crowd(40, n_annotators=3, seed=2, coverage=1.0, accuracy=0.7)
    other = [last.labels.index(name) for name in ("O", "B-X", "I-X")]
    code = np.argsort(other).astype(last.annotation_label.dtype)
    first = replace(last, labels=("O", "B-X", "I-X"), annotation_label=code[last.annotation_label])

    def marks(corpus: CrowdCorpus) -> float:
        block = everything(corpus)
        rows = VoteRows.of([block], memory=True)
        made = member(MEMBERS[1], looked_at(corpus), rows, (), LevelStart(None, 1.0), trust=0.0, tol=1e-3)
        statistics, _ = made.visit(made.start((), None), block, None)
        return float(statistics[-5])

    assert 0 < marks(last) < last.n_tokens / 2
    assert marks(first) == pytest.approx(marks(last))


def test_learned_priors_are_the_mean_of_all_annotators() -> None:
    corpus = crowd(100, n_annotators=6, seed=6, coverage=1.0, accuracy=0.6)
    learned = annotators_of(corpus, MEMBERS[3])
    assert isinstance(learned, LearnedMatrices)
    out = np.zeros((corpus.n_tokens, len(learned.shows)))
    out[np.arange(corpus.n_tokens), corpus.golds["gold"]] = 1.0  # the easy level, true labels
    counts = learned.expected(None, learned.look(everything(corpus)), out).table()
    rows, totals, first = learned.pooled(counts, np.full((1, 6), 10.0))
    annotator, _, given = learned.rows.parts
    own = rows[annotator == 0][:, :3] / totals[0, :3]
    by_given = {int(g): row for g, row in zip(given[annotator == 0], own)}
    assert by_given[0][0] == pytest.approx(0.6 + 0.4 / 3, abs=0.06)
    strength = first
    for _ in range(30):
        _, _, strength = learned.pooled(counts, strength)
    assert (strength[0, :3] > first[0, :3]).all()  # annotators are alike: the fixed point is far above the start
    assert strength[0, :3].min() > 30


def test_what_is_known_holds_and_teaches() -> None:
    corpus = crowd(60, n_annotators=4, seed=7, accuracy=[0.9, 0.9, 0.3, 0.3])
    known = np.full(corpus.n_tokens, -1)
    known[:50] = corpus.golds["gold"][:50]
    truth = RobustSequence(text=False).fit(corpus, known=known)
    np.testing.assert_array_equal(truth.labels[:50], known[:50])
    np.testing.assert_allclose(truth.proba[np.arange(50), known[:50]], 1, atol=1e-4)


def test_soft_votes_are_heard() -> None:
    plain = crowd(80, n_annotators=3, seed=8, coverage=1.0, accuracy=0.6)
    gold = plain.golds["gold"]
    from lasca.corpus.evidence import SoftVotes

    proba = np.full((plain.n_tokens, 3), 0.05, np.float32)
    proba[np.arange(plain.n_tokens), gold] = 0.9
    soft = SoftVotes(np.arange(plain.n_tokens), np.full(plain.n_tokens, 3, np.int32), proba)
    base = plain.with_annotations(
        [*plain.annotators, "model"], plain.annotation_token, plain.annotation_annotator, plain.annotation_label
    )
    heard = RobustSequence(text=False, words=False).fit(replace(base, soft=soft))
    deaf = RobustSequence(text=False, words=False).fit(plain)
    assert (heard.labels == gold).mean() > (deaf.labels == gold).mean() + 0.05


ROUND_1 = ["text", "text, round 1", "hear 1", "release", "members 1 from 0.5375 to 0.675", "text, round 2", "hear 2"]
ROUND_3 = ["members 2 from 0.7438 to 0.8125", "text, round 3", "hear 3"]


@pytest.mark.parametrize(
    ("agreements", "free", "expected"),
    [
        ([0.9, 0.9], False, [*ROUND_1, "members 2 from 0.8125 to 0.95"]),
        ([0.9, 0.9, 0.9], True, [*ROUND_1, *ROUND_3, "members 3 from 0.8812 to 0.95"]),
        ([0.1], False, ROUND_1[:3]),
        ([0.9, 0.1], False, [*ROUND_1, "members 0 from 0.675 to 0.95"]),  # they had heard it
        ([0.9, 0.9, 0.1], True, [*ROUND_1, *ROUND_3, "members 0 from 0.8125 to 0.95"]),
    ],
)
def test_what_the_text_may_overrule_is_asked_once_it_was_heard(
    agreements: list[float], free: bool, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    left, done = iter(agreements), list[str]()

    def release() -> None:
        run.free = free
        done.append("release")

    run: Any = SimpleNamespace(
        progress=lambda share, words: done.append(words),
        hear=lambda number, crossfit: done.append(f"hear {number}"),
        agreement=lambda: next(left),
        release=release,
        free=False,
        members=lambda number, begin, end: done.append(f"members {number} from {begin:.4g} to {end:.4g}"),
    )
    reader: Any = object()
    monkeypatch.setattr(RobustSequence, "_crossfit", lambda self, run, reader: reader)
    told = min(agreements) > 0.4
    assert RobustSequence(rounds=2)._told(run, reader) == (told, agreements[-1])
    assert done == expected
    assert run.free is (free and told)


def test_a_text_that_is_not_heard_any_more_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = crowd(400, seed=1)
    alone = RobustSequence(text=False).fit(corpus)
    left = iter([0.9, 0.1])

    def release(plan: _Average) -> None:
        plan.free = plan.believes_two = True

    monkeypatch.setattr(_Average, "agreement", lambda plan: next(left))
    monkeypatch.setattr(_Average, "release", release)
    truth = RobustSequence(text_iterations=5).fit(corpus)
    assert (truth.diagnostics["text"], truth.diagnostics["text_agreement"]) == (False, 0.1)
    assert (truth.diagnostics["three_believed"], truth.diagnostics["two_believed"]) == (True, False)
    np.testing.assert_array_equal(truth.proba, alone.proba)
    np.testing.assert_array_equal(truth.codes, alone.codes)


@pytest.mark.parametrize("free", [True, False])
def test_members_and_labels_are_told_whether_the_text_may_overrule_people(
    free: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, ending = list[tuple[str, bool]](), list[Ending]()

    def run(plan: _Average, learner: Any, name: str, *others: Any) -> Any:
        made.append((name, learner.free))
        return usual(plan, learner, name, *others)

    def release(plan: _Average) -> None:
        plan.free, plan.believes_two = free, not free

    def end(*arguments: Any) -> Ending:
        ending.append(Ending(*arguments))
        return ending[0]

    usual = _Average._run
    for name, function in (("_run", run), ("release", release), ("agreement", lambda plan: 0.9)):
        monkeypatch.setattr(_Average, name, function)
    monkeypatch.setattr("lasca.truth.robust.Ending", end)
    truth = RobustSequence(rounds=1, max_iter=1, text_iterations=2).fit(crowd(400, seed=1))
    assert truth.diagnostics["text"]
    assert (truth.diagnostics["three_believed"], truth.diagnostics["two_believed"]) == (not free, not free)
    assert (ending[0].free, ending[0].two) == (free, not free)
    assert {name.split("-")[1] for name, _ in made} == ({"0", "1", "2"} if free else {"0", "1"})
    assert all(told is (free and name.split("-")[1] != "0") for name, told in made)


def plan_of(corpus: CrowdCorpus, folder: Path) -> _Average:
    return _Average(RobustSequence(), corpus, Votes.of(corpus), folder, lambda share, words: None)


def lonely(share: float) -> CrowdCorpus:
    """Four who vote on every token, but for a share of the sequences, where one does."""
    corpus = crowd(100, n_annotators=4, seed=2, coverage=1.0)
    alone = corpus.token_sequence[corpus.annotation_token] < share * 100
    stays = ~alone | (corpus.annotation_annotator == 0)
    given = (corpus.annotation_token, corpus.annotation_annotator, corpus.annotation_label)
    return corpus.with_annotations(corpus.annotators, *(array[stays] for array in given))


def test_levels_of_difficulty_need_votes_that_meet_and_words_count_the_more_the_fewer_votes_there_are(
    tmp_path: Path,
) -> None:
    for share, levels in ((0.0, 2), (0.75, 2), (0.85, 1)):  # of 4 votes a token: .57 of the votes meet, .41
        plan = plan_of(lonely(share), tmp_path)
        assert max(len(structure.levels) for structure in plan.say) == levels
        (words,) = plan.others
        assert isinstance(words, Words)
        assert words.prior == pytest.approx(max(0.1, (plan.crowd.per_token / 5) ** 2))
    assert words.prior == pytest.approx(0.1, abs=0.005)


def test_a_tagger_needs_so_many_spans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, reader = plan_of(crowd(30, seed=1), tmp_path), text_model(True)
    for spans in (LEAST_SPANS - 1, LEAST_SPANS):
        monkeypatch.setattr(plan, "asked", lambda question, spans=spans: (spans,))
        assert (RobustSequence()._crossfit(plan, reader) is None) is (spans < LEAST_SPANS)


def test_what_the_hidden_ones_said_changes_nothing_that_is_found_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in members nor where they begin: hidden votes are asked about that. (How many mark is known of all.)"""
    found = list[Any]()

    def ask(number: int, block: Block, proba: Any, *others: Any) -> int:
        found.append(proba)
        return 0

    def run(plan: _Average, learner: Any, *others: Any) -> Any:
        assert learner.space.levels == 1  # of the plainest member
        assert learner.free  # that two miss what the text finds is what is asked
        return usual(plan, learner, *others)

    usual = _Average._run
    monkeypatch.setattr(_Average, "_run", run)
    monkeypatch.setattr("lasca.truth.robust.Asked", lambda hiding, outside: ask)
    corpus = crowd(60, n_annotators=3, seed=4, coverage=1.0, accuracy=0.7)
    text = np.full((corpus.n_tokens, 3), 1 / 3, np.float32)
    hidden = HiddenVotes(np.arange(3), np.zeros(3)).hidden(everything(corpus))
    assert 0.1 < hidden.mean() < 0.3
    for said in (corpus.annotation_label, np.where(hidden, 0, corpus.annotation_label)):
        given = (corpus.annotation_token, corpus.annotation_annotator, said)
        changed = corpus.with_annotations(corpus.annotators, *given)
        plan = _Average(RobustSequence(families=False), changed, Votes.of(changed), tmp_path, lambda share, words: None)
        plan._beside([Said(text=text)])
        plan._hidden()
    assert len(found) == 2
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)


def test_what_was_said_without_the_text_stays(tmp_path: Path) -> None:
    plan = plan_of(crowd(5, seed=1), tmp_path)
    (block,) = plan.blocks
    first, second, text = (np.full((len(block), 3), x, np.float32) for x in (0.1, 0.2, 0.3))
    plan._beside([Said(mean=first)])
    plan.hear(1, lambda means, engine: text)  # type: ignore[arg-type]
    assert plan.blocks[0].beside.plain is plan.blocks[0].beside.mean is first
    plan._beside([replace(plan.blocks[0].beside, mean=second)])
    plan.hear(2, lambda means, engine: means + text)  # type: ignore[arg-type]
    said = plan.blocks[0].beside
    assert (said.plain is first, said.mean is second) == (True, True)
    np.testing.assert_array_equal(said.text, second + text)


@pytest.mark.parametrize(("meet", "judged"), [(0.95, 0.95), (0.9995, 1.0), (0.0, 0.0)])
def test_votes_are_judged_as_far_as_they_meet(meet: float, judged: float) -> None:
    known: Any = SimpleNamespace(meet=meet, no_third=0.0, marks=0)
    assert _judged(known) == pytest.approx(judged)


def test_the_text_is_the_referee_of_tokens_with_votes_and_nothing_is_held_without_a_label_o() -> None:
    rng = np.random.default_rng(0)
    plain, text = (rng.dirichlet(np.ones(3), 300).astype(np.float32) for _ in range(2))
    text[:200] = plain[:200] ** 3 / (plain[:200] ** 3).sum(axis=1, keepdims=True)
    votes, prior = Votes.of(crowd(60, seed=1)), confusion_prior(3, *TEXT_PRIOR)
    start = np.minimum(np.arange(301), 200)  # nobody voted on the last hundred
    own = replace(votes, start=start, annotator=np.zeros(200, np.int32), label=np.zeros(200, np.int16))
    block = replace(Block(own, 0, 300), beside=Said(plain=plain, text=text, mean=plain))
    for outside in (2, -1):
        plan: Any = SimpleNamespace(blocks=[block], votes=own, text=SimpleNamespace(prior=prior))
        plan.crowd, plan.asked = SimpleNamespace(outside=outside), lambda question: question.summarise(block)
        verdict = _Average.verdict(plan)
        found = referee(plain[:200].astype(float), text[:200].astype(float), prior)
        assert verdict.tau == found.tau
        np.testing.assert_array_equal(verdict.confusion, found.confusion)
        assert (verdict.held > 0) is (outside >= 0)
        alike = (replace(verdict, share=0.0).proba(block.beside) * text).sum(axis=1).mean()
        assert verdict.share * (1 - alike) == pytest.approx(0.02)  # so much the text's own word moves


@pytest.mark.parametrize("some", [True, False])
def test_it_says_that_it_did_not_converge_where_no_member_did(some: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, ended = _Average._fitted, iter([some, *[False] * 9])
    monkeypatch.setattr(_Average, "_fitted", lambda *arguments: replace(usual(*arguments), converged=next(ended)))
    truth = RobustSequence(text=False, max_iter=1).fit(crowd(30, seed=1))
    assert truth.diagnostics["converged"] is False
    assert any("before it converged" in warning for warning in truth.warnings) is not some


def test_the_trace_is_that_of_the_member_that_took_longest() -> None:
    truth = RobustSequence(text=False).fit(crowd(40, seed=1))
    iterations = [member["iterations"] for member in truth.diagnostics["members"]]
    assert min(iterations) < max(iterations) == truth.diagnostics["iterations"] == len(truth.trace)


def test_the_text_must_earn_its_say() -> None:
    corpus = crowd(40, seed=1)
    assert RobustSequence().fit(corpus).diagnostics["text"] is False  # too few spans to learn from
    larger = crowd(400, seed=1)
    found = RobustSequence(text_iterations=10, rounds=1).fit(larger).diagnostics
    assert found["text"] is (found["text_agreement"] >= 0.4)


class Knows:
    """A text model that knows the labels beforehand."""

    def __init__(self, codes: Any) -> None:
        self.codes = codes

    def prepare(self, corpus: CrowdCorpus, n_threads: int | None = None) -> Knows:
        self.offsets = corpus.offsets
        return self

    def fit(self, targets: Any, sequences: Any, before: Any = None) -> None:
        assert targets.shape == (len(self.codes), 3)

    def predict(self, learned: None, sequences: Any, out: Any) -> None:
        for s in sequences:
            tokens = np.arange(self.offsets[s], self.offsets[s + 1])
            out[tokens, self.codes[tokens]] = 1


def test_progress_never_goes_back() -> None:
    corpus, seen = crowd(400, seed=1), []
    model = RobustSequence(text=Knows(corpus.golds["gold"]), max_iter=2)
    model.fit(corpus, progress=lambda share, words: seen.append((share, words)))
    assert any("round 2" in words for _, words in seen)
    assert seen == sorted(seen, key=lambda report: report[0])


def test_any_text_model_can_have_a_say() -> None:
    corpus = crowd(n_sequences=250, n_annotators=2, accuracy=0.7)
    gold = corpus.golds["gold"]
    found = [RobustSequence(text=text, words=False, rounds=1).fit(corpus) for text in (False, Knows(gold))]
    assert [truth.diagnostics["text"] for truth in found] == [False, True]
    deaf, told = ((truth.labels == gold).mean() for truth in found)
    assert told > deaf + 0.05


def test_threads_and_processes_change_no_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a family, who sleeps, what is held, and a text that is heard."""
    corpus = with_copies(crowd(400, seed=2, coverage=1.0), "annotator-2", 2, redrawn=0.02)
    monkeypatch.setattr("lasca.truth.robust.blocks_of", lambda votes: cut_into_blocks(votes, 2500))
    found = []
    for engine in (Threads(1), Threads(2), Processes(7)):
        model = RobustSequence(rounds=1, text_iterations=5, max_iter=4)
        model.engine = engine
        found.append(model.fit(corpus))
    assert found[0].diagnostics["text"]
    assert found[0].diagnostics["families"]
    for name in ("proba", "labels", "confusion", "trace"):
        assert len({getattr(truth, name).tobytes() for truth in found}) == 1, name
    assert len({truth.warnings for truth in found}) == 1


def test_it_says_who_repeats_whom_and_what_is_never_inferred() -> None:
    plain = crowd(150, n_annotators=7, seed=0, coverage=1.0)
    truth = RobustSequence(text=False).fit(with_copies(plain, "annotator-2", 1, redrawn=0.02))
    assert any("annotator-2, annotator-2-copy-0 repeat each other" in warning for warning in truth.warnings)


def test_every_model_says_what_it_never_infers_and_where_votes_are_lonely() -> None:
    tokens = [["a", "b", "c"]] * 60
    given = {
        "p": [["X", "X", "Y"]] * 60,
        "q": [["X", "X", "X"]] * 60,
        "r": [["X", "X", "X"]] * 60,
    }
    truth = model_class("mv")().fit(CrowdCorpus.from_sequences(tokens, given))
    assert any("'Y' was given 60 times and is never inferred" in warning for warning in truth.warnings)
    alone = {"p": [["X", "Y", "Y"]] * 30 + [None] * 30, "q": [None] * 29 + [["X", "Y", "Y"]] * 31}
    lonely = model_class("ds")().fit(CrowdCorpus.from_sequences(tokens, alone))
    assert any("one vote only" in warning for warning in lonely.warnings)


@dataclass(frozen=True)
class OnlyOutside:
    """A Dawid–Skene for which nothing is true but O."""

    logs: Any

    def labels(self, block: Block) -> Any:
        return np.tile(self.logs, (len(block), 1))


def test_of_two_votes_that_differ_none_is_judged_in_a_small_crowd() -> None:
    """Members begin at the votes' shares unless there are third votes, or many spans; lone votes are never judged."""
    marks = [["B-PER", "O", "O"], ["O", "B-PER", "O"]] * 30
    silent = [["O", "O", "O"]] * 60

    def begins(people: dict[str, list[Any]], times: int = 1) -> Any:
        people = {name: labels * times for name, labels in people.items()}
        corpus = CrowdCorpus.from_sequences([["a", "b", "c"]] * 60 * times, people)
        mark = corpus.labels.index("B-PER")
        seen, first = looked_at(corpus), OnlyOutside(np.log(np.where(np.arange(2) == mark, 0.001, 0.999)))
        start = WeighedStart(first, _judged(seen), seen.families)  # type: ignore[arg-type]
        return np.exp(start.evidence(everything(corpus), StateSpace.of(corpus.labels)))[0, mark]

    assert begins({"ann": marks, "ben": silent}) == pytest.approx(0.5, abs=0.01)
    assert begins({"ann": marks, "ben": silent, "cyd": silent}) == pytest.approx(0.001, abs=1e-6)
    assert begins({"ann": marks, "ben": silent}, times=200) == pytest.approx(0.003, abs=0.004)
    assert begins({"ann": marks}, times=200) == pytest.approx(1.0, abs=0.01)


def test_members_are_what_they_are_called() -> None:
    for structure in (*MEMBERS, *WITHOUT_SPANS, *ONE_LEVEL):
        assert structure.memory is structure.name.startswith("memory")
        assert structure.learned is structure.name.endswith("learned priors")
        assert len(structure.levels) == (2 if "two levels" in structure.name else 1)


def test_members_say_what_they_have_earned() -> None:
    def said(times: int) -> dict[str, float]:
        people = {name: [["O", "B-PER", "I-PER", "O"]] * times for name in ("ann", "ben", "cyd")}
        corpus = CrowdCorpus.from_sequences([["a", "b", "c", "d"]] * times, people)
        seen = looked_at(corpus)
        assert seen.marks / seen.run_length == 3 * times
        return {structure.name: _say(seen, structure) for structure in MEMBERS}

    few, half, many = said(10), said(1300 // 3), said(10_000)
    assert few["memory, one level"] < 0.01 < 0.99 < few["no memory, one level"]
    assert half["memory, one level"] == pytest.approx(0.5, abs=0.01) == half["no memory, one level"]
    assert many["memory, one level"] > 0.99 > 0.01 > many["no memory, one level"]
    assert {few["memory, two levels, learned priors"], many["memory, two levels, learned priors"]} == {1.0}


def test_votes_that_are_hidden_are_votes_that_were_never_given() -> None:
    corpus = crowd(60, n_annotators=5, seed=3, coverage=1.0)
    votes = Votes.of(corpus)
    token = np.repeat(np.arange(votes.n_tokens), np.diff(votes.start))
    stays = (votes.annotator != 2) | (corpus.token_sequence[token] % 3 > 0)
    given = (token[stays], votes.annotator[stays], votes.label[stays])
    without = RobustSequence(text=False).fit(corpus.with_annotations(corpus.annotators, *given))
    model = RobustSequence(text=False)
    hidden = model._infer(corpus, votes.only(stays), lambda share, words: None)
    np.testing.assert_array_equal(hidden.proba, without.proba)


def test_noisy_machines_do_not_lose_all_their_spans() -> None:
    """Six who miss half of the spans, invent as many and move borders: most of what most of them mark is true."""
    rng = np.random.default_rng(3)
    n, length = 150, 30
    gold = np.zeros((n, length), np.int64)
    said = np.zeros((6, n, length), np.int64)
    for s in range(n):
        first, last = sorted(rng.choice(np.arange(1, length), 2, replace=False).tolist())
        last = min(last, first + 8)
        gold[s, first:last] = 2
        gold[s, first] = 1
        for a in range(6):
            if rng.random() < 0.55:
                i, j = max(0, first + int(rng.integers(-2, 3))), min(length, last + int(rng.integers(-1, 4)))
                said[a, s, i : max(j, i + 1)] = 2
                said[a, s, i] = 1
            for i in rng.integers(0, length, rng.poisson(0.8)).tolist():
                j = i + int(rng.geometric(0.2))
                if not said[a, s, i:j].any():
                    said[a, s, i:j] = 2
                    said[a, s, i] = 1
    labels = np.array(["O", "B-X", "I-X"])
    corpus = CrowdCorpus.from_sequences(
        [[f"w{i}" for i in rng.integers(0, 300, length)] for _ in range(n)],
        {f"m{a}": [labels[row].tolist() for row in said[a]] for a in range(6)},
    )
    truth = RobustSequence().fit(corpus)
    found = np.array([label != "O" for row in truth.sequences() for label in row])
    voted = ((said > 0).sum(axis=0) > 3).ravel()
    assert found.sum() > 0.6 * voted.sum()
    assert (gold.ravel() > 0)[found].mean() > 0.6
    assert min(member["held"].get("all", 0.0) for member in truth.diagnostics["members"]) < 0


def test_documents_of_two_are_not_one_annotators() -> None:
    """Two who are right on 19 of 20 documents, at random: where they differ neither is believed everywhere."""
    rng = np.random.default_rng(1)
    n, T = 400, 4
    gold = rng.choice(T, n, p=[0.4, 0.3, 0.2, 0.1])
    said = np.where(rng.random((n, 2)) < (0.05, 0.08), rng.integers(0, T, (n, 2)), gold[:, None])
    corpus = CrowdCorpus.from_codes(
        tokens=[f"document {i}" for i in range(n)],
        offsets=np.arange(n + 1),
        labels=[f"L{t}" for t in range(T)],
        annotators=["a", "b"],
        annotation_token=np.repeat(np.arange(n), 2),
        annotation_annotator=np.tile([0, 1], n),
        annotation_label=said.ravel(),
        sequence_ids=[str(i) for i in range(n)],
    )
    truth = RobustSequence().fit(corpus)
    assert [member["name"] for member in truth.diagnostics["members"]] == ["no memory, two levels"]
    differ = said[:, 0] != said[:, 1]
    assert 0.2 < (truth.codes[differ] == said[differ, 0]).mean() < 0.95
    four = crowd(40, n_annotators=4, seed=5, coverage=1.0)
    assert len(RobustSequence(max_iter=2).fit(four).diagnostics["members"]) > 1


@pytest.mark.parametrize(
    ("weight", "words"), [(-0.06, "drop nearly all of it"), (-0.04, None), (0.6, None), (0.8, "far more of this")]
)
def test_what_was_held_is_told(weight: float, words: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = _Average._fitted

    def fitted(*arguments: Any) -> Any:
        found = usual(*arguments)
        return replace(found, held=np.full_like(found.held, weight))

    monkeypatch.setattr(_Average, "_fitted", fitted)
    people = {name: [["B-X", "I-X", "O"]] * 9 for name in "abc"}
    truth = RobustSequence(max_iter=1).fit(CrowdCorpus.from_sequences([["u", "v", "w"]] * 9, people))
    told = [warning for warning in truth.warnings if "all kinds together" in warning]
    assert [words in warning for warning in told if words] == ([] if words is None else [True])
    assert len(told) == (words is not None)

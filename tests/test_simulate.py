"""Simulated crowds: every error model against its own definition, and the figures of the paper's first table."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from lasca import datasets, simulate
from lasca.corpus import CrowdCorpus
from lasca.errors import LascaError, ParameterError
from lasca.simulate import slips

LABELS = ("ADJ", "NOUN", "PRT", "VERB")
SHARES = np.array([0.2, 0.5, 0.05, 0.25])


def gold_corpus(n_sequences: int = 400, length: int = 20, seed: int = 1) -> CrowdCorpus:
    rng = np.random.default_rng(seed)
    n = n_sequences * length
    gold = rng.choice(4, n, p=SHARES).astype(np.int16)
    second = np.where(rng.random(n) < 0.1, (gold + 1) % 4, gold).astype(np.int16)
    return CrowdCorpus.from_codes(
        tokens=[f"w{i}" for i in range(n)],
        offsets=np.arange(0, n + 1, length),
        labels=LABELS,
        annotators=[],
        annotation_token=[],
        annotation_annotator=[],
        annotation_label=[],
        sequence_ids=[str(s) for s in range(n_sequences)],
        golds={"gold": gold, "gold2": second},
    )


@pytest.fixture(scope="module")
def corpus() -> CrowdCorpus:
    return gold_corpus()


def matrix(made: CrowdCorpus) -> np.ndarray:
    """Labels as (annotators, tokens), -1 where missing."""
    table = np.full((made.n_annotators, made.n_tokens), -1)
    table[made.annotation_annotator, made.annotation_token] = made.annotation_label
    return table


def test_names_groups_and_golds(corpus: CrowdCorpus) -> None:
    made = simulate.crowd(corpus, groups={"high": 2, "low": 1}, spammers={"random": 1}, copying=1)
    assert made.annotators == ("high-1", "high-2", "low-1", "spam-random-1", "copy-1")
    assert simulate.groups_of(made) == ("high", "high", "low", "spam-random", "copy")
    assert made.n_annotations == 5 * made.n_tokens
    assert made.labels == corpus.labels
    for name, gold in corpus.golds.items():
        np.testing.assert_array_equal(made.golds[name], gold)
    assert any("simulated" in note for note in made.load_report.notes)


def test_paper_crowds_by_name(corpus: CrowdCorpus) -> None:
    for name, sizes in simulate.CROWDS.items():
        made = simulate.crowd(corpus.select(sequences=[0]), groups=name)
        assert {g: simulate.groups_of(made).count(g) for g in sizes} == sizes


def test_seed_decides_everything(corpus: CrowdCorpus) -> None:
    options = {"wrong": "annotator", "common": 0.1, "missing": 0.3, "copying": 2, "annotators_per_sequence": 4}
    assert simulate.crowd(corpus, seed=3, **options) == simulate.crowd(corpus, seed=3, **options)
    assert simulate.crowd(corpus, seed=3, **options) != simulate.crowd(corpus, seed=4, **options)
    drawn = simulate.crowd(corpus, seed=np.random.default_rng(3), **options)
    assert drawn == simulate.crowd(corpus, seed=np.random.default_rng(3), **options)


def test_precision_is_in_range_and_kept(corpus: CrowdCorpus) -> None:
    made = simulate.simulation(corpus, simulate.CrowdSettings(groups="ca1", seed=5))
    table, gold = matrix(made.corpus), corpus.golds["gold"]
    for i, group in enumerate(made.groups):
        low, high = simulate.RANGES[group]
        assert low <= made.precision[i, 0] <= high
        assert np.all(made.precision[i] == made.precision[i, 0])
        p = made.precision[i, 0]
        assert abs((table[i] == gold).mean() - p) < 4.5 * np.sqrt(p * (1 - p) / len(gold))
    high = np.sort(made.precision[:8, 0])
    parts = np.floor((high - 0.7) / 0.2 * 8 + 1e-9)
    np.testing.assert_array_equal(parts, np.arange(8))  # one from each part of the range


def test_per_label_precision(corpus: CrowdCorpus) -> None:
    made = simulate.simulation(corpus, simulate.CrowdSettings(groups={"medium": 3}, per_label=True, seed=2))
    table, gold = matrix(made.corpus), corpus.golds["gold"]
    assert len(np.unique(made.precision)) == 12
    for i in range(3):
        for t in range(4):
            p, n = made.precision[i, t], (gold == t).sum()
            assert 0.4 <= p <= 0.7
            assert abs((table[i][gold == t] == t).mean() - p) < 4.5 * np.sqrt(p * (1 - p) / n)


def wrong_shares(table: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Return the share of each wrong label, by gold label."""
    counts = np.zeros((4, 4))
    for row in np.atleast_2d(table):
        np.add.at(counts, (gold, row), 1)
    np.fill_diagonal(counts, 0)
    return counts / counts.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("wrong", ["uniform", "prior"])
def test_wrong_labels_follow_their_definition(corpus: CrowdCorpus, wrong: str) -> None:
    made = simulate.crowd(corpus, groups={"low": 12}, wrong=wrong, seed=9)
    gold = corpus.golds["gold"]
    shares = np.bincount(gold) / len(gold)
    expected = np.full((4, 4), 1 / 3)
    if wrong == "prior":  # by frequency, and evenly where that hit the right label
        expected = shares + shares[:, None] / 3
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(wrong_shares(matrix(made), gold), expected, rtol=0, atol=0.025)


def test_habits_of_one_or_of_all(corpus: CrowdCorpus) -> None:
    gold = corpus.golds["gold"]
    rows = {}
    for wrong in ("annotator", "shared"):
        made = simulate.crowd(corpus, groups={"low": 6}, wrong=wrong, seed=4)
        rows[wrong] = np.stack([wrong_shares(row, gold)[[1, 3]] for row in matrix(made)])
    assert np.ptp(rows["shared"], axis=0).max() < 0.1
    assert np.ptp(rows["annotator"], axis=0).max() > 0.3
    assert np.abs(rows["shared"].mean(axis=0)[0][[0, 2, 3]] - 1 / 3).max() > 0.05  # not simply uniform


def test_errors_are_independent_or_share_difficulty(corpus: CrowdCorpus) -> None:
    gold = corpus.golds["gold"]
    for errors, rho in (("independent", 0.0), ("difficulty", 0.0), ("difficulty", 0.5), ("difficulty", 1.0)):
        settings = simulate.CrowdSettings(groups={"medium": 4}, errors=errors, rho=rho, seed=6)
        made = simulate.simulation(corpus, settings)
        right = matrix(made.corpus) == gold
        p = made.precision[:, 0]
        np.testing.assert_allclose(right.mean(axis=1), p, rtol=0, atol=0.03)
        grid = np.linspace(-8, 8, 4001)
        for a, b in ((0, 1), (2, 3)):
            if rho == 1.0:
                expected = min(p[a], p[b])
            else:  # P(both right) = ∫ φ(h) Π Φ((Φ⁻¹(p) − √ρ h) / √(1 − ρ)) dh
                inner = [norm.cdf((norm.ppf(p[x]) - np.sqrt(rho) * grid) / np.sqrt(1 - rho)) for x in (a, b)]
                expected = np.trapezoid(norm.pdf(grid) * inner[0] * inner[1], grid)
            assert (right[a] & right[b]).mean() == pytest.approx(expected, abs=0.025)
        assert (made.difficulty is None) == (errors == "independent")


def test_common_is_wrong_for_everybody(corpus: CrowdCorpus) -> None:
    gold = corpus.golds["gold"]
    settings = simulate.CrowdSettings(groups={"sure": 3}, ranges={"sure": (1, 1)}, common=0.067, wrong="prior", seed=1)
    made = simulate.simulation(corpus, settings)
    table = matrix(made.corpus)
    assert (table == table[0]).all()
    np.testing.assert_array_equal(table[0] != gold, made.common)
    assert made.common.sum() == round(0.067 * len(gold))
    more = simulate.crowd(corpus, groups={"sure": 3}, ranges={"sure": (1, 1)}, common=0.2, wrong="prior", seed=1)
    assert (matrix(more)[0] != gold)[made.common].all()  # the same tokens and more: calibration needs that


def test_hard_cases_start_from_the_second_gold(corpus: CrowdCorpus) -> None:
    gold, second = corpus.golds["gold"], corpus.golds["gold2"]
    made = simulate.crowd(
        corpus, groups={"sure": 5}, ranges={"sure": (1, 1)}, hard_cases=0.4, second_gold="gold2", seed=2
    )
    table = matrix(made)
    differ = gold != second
    assert (table[:, ~differ] == gold[~differ]).all()
    took = table[:, differ] == second[differ]
    assert took.mean() == pytest.approx(0.4, abs=0.04)
    assert np.corrcoef(took[0], took[1])[0, 1] == pytest.approx(0, abs=0.15)  # each annotator by itself


def test_missing_annotations(corpus: CrowdCorpus) -> None:
    made = simulate.crowd(corpus, missing=0.3, seed=1)
    assert made.n_annotations == pytest.approx(0.7 * 15 * corpus.n_tokens, rel=0.02)
    few = simulate.crowd(corpus, annotators_per_sequence=4, seed=1)
    per_token = np.diff(few.token_start)
    assert (per_token == 4).all()
    table = matrix(few)
    for first, last in pairwise(few.offsets[:20].tolist()):
        there = table[:, first:last] >= 0
        assert (there.all(axis=1) | ~there.any(axis=1)).all()  # a sequence is labelled whole
    share = np.bincount(few.annotation_annotator) / few.n_annotations
    np.testing.assert_allclose(share, 1 / 15, rtol=0.3)
    full = matrix(simulate.crowd(corpus, seed=1))
    assert (table[table >= 0] == full[table >= 0]).all()  # who labels what changes no label


def test_spammers_do_not_look(corpus: CrowdCorpus) -> None:
    made = simulate.crowd(corpus, groups={"high": 1}, spammers={"constant": 2, "random": 1, "prior": 1}, seed=3)
    table, gold = matrix(made), corpus.golds["gold"]
    assert all(len(np.unique(row)) == 1 for row in table[1:3])
    for row, expected in ((table[3], np.full(4, 0.25)), (table[4], SHARES)):
        np.testing.assert_allclose(np.bincount(row) / len(row), expected, rtol=0, atol=0.03)
        joint = np.histogram2d(gold, row, bins=4)[0] / len(row)
        np.testing.assert_allclose(joint, joint.sum(1)[:, None] * joint.sum(0)[None], rtol=0, atol=0.015)


def test_copying_annotators(corpus: CrowdCorpus) -> None:
    settings = simulate.CrowdSettings(groups={"medium": 4}, copying=2, copy_rate=0.8, seed=8)
    made = simulate.simulation(corpus, settings)
    table = matrix(made.corpus)
    for i in (4, 5):
        source = made.corpus.annotators.index(made.source[i])
        same = (table[i] == table[source]).mean()
        by_chance = (table[(source + 1) % 4] == table[source]).mean()
        assert same > 0.8
        assert same > by_chance + 0.3
    assert made.source[:4] == ("",) * 4


def test_tokens_without_gold_get_no_annotation(corpus: CrowdCorpus) -> None:
    gold = corpus.golds["gold"].copy()
    gold[::7] = -1
    holes = replace(corpus, golds={"gold": gold})
    made = simulate.crowd(holes, common=0.1, spammers={"constant": 1}, copying=1)
    assert (np.diff(made.token_start)[::7] == 0).all()
    assert made.load_report.counts["without gold"] == (gold < 0).sum()


def test_one_label_only() -> None:
    lonely = CrowdCorpus.from_sequences([["a", "b"]], {}, golds={"gold": [["X", "X"]]})
    assert set(simulate.crowd(lonely, groups={"low": 3}, common=0.5).annotation_label.tolist()) == {0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gold": "silver"}, "gold must be one of 'gold', 'gold2'"),
        ({"groups": "ca9"}, "groups must be one of"),
        ({"group": "ca1"}, "a parameter of the simulation must be one of gold, groups"),
        ({"groups": {}}, "at least one annotator"),
        ({"groups": {"great": 2}}, "ranges must be a mapping that also has the group 'great'"),
        ({"groups": {"high": -1}}, "groups\\['high'\\]"),
        ({"ranges": {"high": (0.9, 0.7), "medium": (0, 1), "low": (0, 1)}}, "ranges\\['high'\\]"),
        ({"errors": "some"}, "errors must be"),
        ({"wrong": "odd"}, "wrong must be"),
        ({"common": 1.5}, "common must be"),
        ({"rho": -0.1}, "rho must be"),
        ({"hard_cases": 0.4}, "second_gold"),
        ({"hard_cases": 0.4, "second_gold": "x"}, "second_gold"),
        ({"missing": 2}, "missing"),
        ({"annotators_per_sequence": 16}, "annotators_per_sequence"),
        ({"spammers": {"lazy": 1}}, "spammers"),
        ({"copying": -1}, "copying"),
        ({"concentration": 0}, "concentration"),
        ({"per_label": 1}, "per_label"),
        ({"seed": -1}, "seed"),
        ({"errors": "spans"}, "errors must be 'independent'"),
        ({"span_errors": {"lost": 1}}, "span_errors"),
        ({"groups": {"copy": 1}, "ranges": {"copy": (0, 1)}, "copying": 1}, "names that differ"),
        ({"ranges": None}, "ranges must be a mapping"),
        ({"span_errors": None}, "span_errors must be a mapping"),
    ],
)
def test_bad_parameters_are_named(corpus: CrowdCorpus, options: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        simulate.crowd(corpus, **options)


def test_a_gold_is_needed() -> None:
    with pytest.raises(LascaError, match="a corpus with a gold"):
        simulate.crowd(CrowdCorpus.from_sequences([["a"]], {"x": [["X"]]}))


@pytest.mark.parametrize("kind", ["constant", "random", "prior"])
@pytest.mark.parametrize("rows", [[], [[None, None]]])
def test_spammers_need_labels_to_write(kind: str, rows: list[Any]) -> None:
    bare = CrowdCorpus.from_sequences([["a"] * len(row) for row in rows], {}, golds={"gold": rows}, labels=("A", "B"))
    with pytest.raises(ParameterError, match=r"gold must be .* with a label at least"):
        simulate.crowd(bare, spammers={kind: 1})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": 0.5}, "precision must be two numbers"),
        ({"precision": [0.5]}, "precision must be two numbers"),
        ({"precision": (0.9, 0.6)}, "precision must be a number of at least 0.9"),
        ({"precision": (0.9, 7)}, "precision must be"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"n_annotations": "many"}, "n_annotations must be a whole number"),
    ],
)
def test_large_crowds_are_checked_alike_whole_and_in_shards(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        simulate.big(**{"n_annotations": 100, **options})
    with pytest.raises(ParameterError, match=message):
        next(simulate.big_shards(2, **{"n_annotations": 100, **options}))


def test_pick_draws_by_rows_and_never_the_impossible() -> None:
    rng = np.random.default_rng(0)
    rows = np.array([[0, 0.5, 0, 0.5, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0.1, 0.2, 0.3, 0, 0.4]])
    row = rng.integers(0, 4, 200_000).astype(np.int16)
    drawn = slips.pick(rows, row, rng.random(len(row)))
    counts = np.zeros((4, 5))
    np.add.at(counts, (row, drawn), 1)
    shares = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares[[0, 1, 3]], rows[[0, 1, 3]], rtol=0, atol=0.01)
    assert (shares[[0, 1, 3]][rows[[0, 1, 3]] == 0] == 0).all()
    assert shares[2, 2] == 1  # an empty row keeps the label


@pytest.mark.data
def test_majority_vote_on_tdga_meets_the_figures(data_dir: Path) -> None:
    """experiments.md, a pilot of 2 seeds: 92.9 / 91.1 / 84.2 against gold 1; ties go to the first label.

    Means of 5 seeds: 92.9 / 91.1 / 85.1, so two cells are met to the point and ca3 lies 0.9 above (0.6 over 10
    seeds): between seeds ca3 varies by some 2.5 points when precisions are drawn freely, as they were in the pilot.
    """
    tdga = datasets.load("tdga", data_dir)
    gold = tdga.golds["gold1"]
    targets = {"ca1": 92.9, "ca2": 91.1, "ca3": 84.2}
    reached = {}
    for name in targets:
        crowds = [
            simulate.crowd(tdga, gold="gold1", groups=name, wrong="prior", common=0.067, seed=seed) for seed in range(5)
        ]
        votes = [first_of_most(crowd) for crowd in crowds]
        reached[name] = 100 * float(np.mean([(labels == gold)[gold >= 0].mean() for labels in votes]))
    off = {name: abs(reached[name] - target) for name, target in targets.items()}
    assert off["ca1"] < 0.3
    assert off["ca2"] < 0.3
    assert off["ca3"] < 1.0
    assert np.mean(list(off.values())) < 0.7


def first_of_most(crowd: CrowdCorpus) -> np.ndarray:
    votes = np.zeros((crowd.n_tokens, crowd.n_labels))
    np.add.at(votes, (crowd.annotation_token, crowd.annotation_label), 1)
    return votes.argmax(axis=1)

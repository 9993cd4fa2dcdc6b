"""The promise: units, the audit's order, and a bound that holds however often one looks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from lasca import simulate
from lasca.review.decisions import Decision
from lasca.review.promise import (
    MOST,
    SURE,
    audit_order,
    certainty_of,
    judge,
    make_promise,
    spend,
    units_of,
    wealth,
)
from lasca.review.spans import Labels
from test_review_queue import ner, truth_of


def naive_wealth(wrong: list[int], n: int, many: int, error: float) -> float:
    """The game, look by look: what the one who bets thought probable over what it is if `many` of n are wrong."""
    a, b = 3.0, 3.0 / (0.4 * error) - 3.0
    fortune, errors = 1.0, 0
    for i, x in enumerate(wrong):
        thought, true = (a + errors) / (a + b + i), (many - errors) / (n - i)
        fortune *= thought / true if x else (1 - thought) / (1 - true)
        errors += x
    return fortune


@pytest.mark.parametrize("found", [False, True])
def test_wealth_is_that_of_the_naive_game(found: bool) -> None:
    rng = np.random.default_rng(0)
    error, compared = 0.2137, 0
    for _ in range(50):
        n = int(rng.integers(5, 60))
        x = (rng.random(int(rng.integers(1, n + 1))) < 0.15).astype(int)
        course = wealth(x, n, error, found=found)
        for t in range(1, len(x) + 1):
            out = int(x[:t].sum()) if found else 0
            many = next(k for k in range(out, n + 2) if k - out > error * (n - out))
            if many - x[:t].sum() > n - t:
                assert course[t - 1] == MOST
            elif x[:t].mean() > many / n:
                assert course[t - 1] == -np.inf
            else:
                compared += 1
                assert np.exp(course[t - 1]) == pytest.approx(naive_wealth(x[:t].tolist(), n, many, error), rel=1e-6)
    assert compared > 300


@pytest.mark.parametrize("found", [False, True])
def test_wealth_does_not_grow_where_the_promise_would_be_false(found: bool) -> None:
    rng = np.random.default_rng(1)
    for n, error, extra in ((400, 0.1, 1), (400, 0.1, 8), (2000, 0.02, 1), (2000, 0.02, 12)):
        truth = np.zeros(n)
        truth[: int(n * error) + extra] = 1
        reached = []
        for _ in range(2000):
            x = rng.permutation(truth)
            out = np.cumsum(x) if found else 0
            broken = truth.sum() - out > error * (n - out)
            reached.append((wealth(x, n, error, found=found)[broken] >= np.log(20)).any())
        assert np.mean(reached) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 2000)


def test_what_was_found_wrong_is_not_accepted_and_makes_a_promise_easier() -> None:
    rng = np.random.default_rng(5)
    x = rng.permutation((np.arange(1000) < 12).astype(int))[:700]
    assert (wealth(x, 1000, 0.02, found=True) >= wealth(x, 1000, 0.02))[x.cumsum() > 0].all()
    certainty = np.linspace(0.99999, 0.9999, 1000)
    audited = [(int(u), bool(u % 97 == 5)) for u in rng.permutation(1000)[:900]]
    promise = make_promise(certainty, audited, error=0.02)
    found = {u for u, wrong in audited if wrong}
    assert found
    assert len(promise.accepted) == 1000 - len(found)
    assert not found & set(promise.accepted)


def replay(
    rng: np.random.Generator, error: float, confidence: float, looks: int, faults: float
) -> tuple[bool, float, float]:
    """One project with certainties that are too high: was the promise kept, how much accepted, how much by an oracle.

    The oracle knows all errors and goes by the same order. A set that was once promised stays promised, so the last
    look accepts what any look before it would have.
    """
    n = 5000
    doubt = rng.beta(0.35, 4.0, n)
    wrong = rng.random(n) < np.minimum(faults * doubt, 1)
    certainty = 1 - doubt
    sure = np.flatnonzero(certainty >= SURE)
    drawn = rng.permutation(sure)[:looks]
    audited = [(int(u), bool(wrong[u])) for u in drawn]
    promise = make_promise(certainty, audited, error=error, confidence=confidence, sure=sure)
    accepted = np.array(promise.accepted, int)
    kept = not len(accepted) or bool(wrong[accepted].mean() <= error)
    order = np.argsort(-certainty, kind="stable")
    rate = np.cumsum(wrong[order]) / np.arange(1, n + 1)
    fine = np.flatnonzero(rate <= error)
    return kept, len(accepted) / n, (fine[-1] + 1) / n if len(fine) else 0.0


@pytest.mark.parametrize(("error", "looks"), [(0.02, 1200), (0.05, 400), (0.1, 200)])
def test_coverage_over_500_replays_and_how_much_is_accepted(error: float, looks: int) -> None:
    rng = np.random.default_rng(7)
    results = [replay(rng, error, 0.95, looks, 1.6) for _ in range(500)]
    coverage = np.mean([kept for kept, _, _ in results])
    assert coverage >= 0.95 - 2 * np.sqrt(0.95 * 0.05 / 500)
    ratio = np.mean([share for _, share, _ in results]) / np.mean([oracle for _, _, oracle in results])
    assert ratio >= 0.6


def test_a_model_that_is_far_too_sure_is_not_believed() -> None:
    rng = np.random.default_rng(8)
    results = [replay(rng, 0.05, 0.9, 300, 5.0) for _ in range(500)]
    assert np.mean([kept for kept, _, _ in results]) >= 0.9 - 2 * np.sqrt(0.9 * 0.1 / 500)


def test_what_was_promised_once_stays_promised() -> None:
    rng = np.random.default_rng(3)
    certainty = 1 - rng.beta(0.35, 4.0, 800)
    wrong = rng.random(800) < 1 - certainty
    audited = [(int(u), bool(wrong[u])) for u in rng.permutation(800)[:400]]
    accepted = [set(make_promise(certainty, audited[:k], error=0.1).accepted) for k in range(0, 401, 25)]
    found = {u for u, is_wrong in audited if is_wrong}  # but for units that were found wrong since
    assert all(before - found <= after for before, after in pairwise(accepted))
    assert len(accepted[-1]) > 600


def test_without_an_audit_nothing_is_promised_and_it_says_how_many_items_would_do() -> None:
    certainty = np.linspace(0.9, 1.0, 1000)
    promise = make_promise(certainty, [], error=0.05, confidence=0.95)
    assert promise.accepted == ()
    assert promise.more is not None
    assert promise.more > 60  # not even a bound for one set alone could do with fewer than ln 20 / 0.05
    enough = make_promise(certainty, [(i, False) for i in range(999, 999 - promise.more, -1)], error=0.05)
    assert enough.accepted
    all_wrong = make_promise(certainty, [(i, True) for i in range(200)], error=0.05)
    assert all_wrong.accepted == ()


def test_of_a_small_project_it_says_how_many_items_would_do() -> None:
    """Fewer units than 1 / error: one that is wrong would be too much, so all of them must be looked at."""
    certainty = np.linspace(0.9, 0.99, 60)
    promise = make_promise(certainty, [], error=0.01)
    assert promise.more is not None
    assert 50 < promise.more <= 60
    enough = [(i, False) for i in range(promise.more)]
    assert len(make_promise(certainty, enough, error=0.01).accepted) == 60
    assert not make_promise(certainty, enough[:-1], error=0.01).accepted
    one_wrong = [(0, True), *enough[1:]]
    assert not make_promise(certainty, one_wrong, error=0.01).accepted
    assert make_promise(certainty, [(0, True), *((i, False) for i in range(1, 60))], error=0.01).accepted == tuple(
        range(1, 60)
    )  # all were looked at, and the one that was wrong is known


def test_units_hold_every_token_once_and_audits_are_drawn_evenly() -> None:
    corpus = simulate.demo_crowd("ner")
    truth = truth_of(corpus, model="ds")
    units = units_of(corpus, truth)
    covered = np.zeros(corpus.n_tokens, int)
    for u in units:
        base = int(corpus.offsets[u.sequence])
        covered[base + u.start : base + u.stop] += 1
    assert covered.max() == 1
    rest = {u.sequence for u in units if u.rest}
    outside = set(corpus.token_sequence[np.flatnonzero(covered == 0)].tolist())
    assert outside <= rest
    assert len(rest) == sum(u.rest for u in units)
    sure = certainty_of(corpus, truth, units)
    assert ((sure >= 0) & (sure <= 1)).all()
    order = audit_order(units, sure, seed=3)
    assert sorted(order) == np.flatnonzero(sure >= SURE).tolist()
    assert order != audit_order(units, sure, seed=4)
    assert order == audit_order(units, sure, seed=3)
    assert sorted(audit_order(units, sure / 2)) == np.flatnonzero(sure >= np.median(sure)).tolist()  # nobody is sure


def test_a_unit_is_as_sure_as_the_sum_of_its_doubts() -> None:
    """Two spans in one sentence: the first also stands for what is in no area, whose doubts add up."""
    said = ["B-X", "I-X", "O", "O", "B-Y", "O"]
    corpus = ner(a=said, b=said)
    proba = {(0, i): {tag: 1 - p, "B-X" if tag == "O" else "O": p} for i, (tag, p) in enumerate(zip(said, DOUBTS))}
    truth = truth_of(corpus, proba)
    units = units_of(corpus, truth)
    assert [(u.start, u.rest) for u in units] == [(0, True), (4, False)]
    first, second = certainty_of(corpus, truth, units)
    assert second == pytest.approx(0.95, abs=1e-3)
    assert first == pytest.approx(0.9 - 0.08 - 0.04 - 0.02, abs=1e-3)
    nothing = ner(a=["O"] * 3, b=["O"] * 3)
    unsure = truth_of(nothing, {(0, 0): {"O": 0.9}, (0, 2): {"O": 0.95}})
    assert certainty_of(nothing, unsure, units_of(nothing, unsure)) == pytest.approx([0.85])


DOUBTS = (0.1, 0.1, 0.08, 0.04, 0.05, 0.02)


def test_a_unit_is_wrong_when_any_of_its_labels_is() -> None:
    corpus = ner(a=["B-X", "I-X", "O", "O", "B-Y"], b=["B-X", "I-X", "O", "O", "B-Y"])
    truth = truth_of(corpus)
    labels = Labels.of(corpus)
    units = units_of(corpus, truth)
    assert [(u.start, u.stop, u.rest) for u in units] == [(0, 2, True), (4, 5, False)]

    def wrong(unit: int, *spans: tuple[int, int, str], missed: bool = False) -> bool:
        u = units[unit]
        said = Decision(corpus.sequence_ids[0], u.start, u.stop, (spans,), audit=True, missed=missed)
        return judge(corpus, truth, labels, units, unit, said)

    assert not wrong(0, (0, 2, "X"))
    assert wrong(0, (0, 1, "X"))
    assert wrong(0)
    assert wrong(0, (0, 2, "X"), missed=True)
    assert not wrong(1, (4, 5, "Y"), missed=True)  # the rest belongs to the first unit
    two = ner(a=["B-X", "B-Y"], b=["B-X", "B-Y"], c=["B-X", "I-X"])
    (unit,) = units_of(two, truth_of(two))
    said = Decision(two.sequence_ids[0], 0, 2, (((1, 2, "Y"), (0, 1, "X")),), audit=True)
    assert not judge(two, truth_of(two), Labels.of(two), [unit], 0, said)  # spans are right in whatever order


def test_every_further_fit_gets_less_of_delta() -> None:
    parts = [spend(0.05, j) for j in range(1, 2000)]
    assert sum(parts) <= 0.05 + 1e-12
    assert parts == sorted(parts, reverse=True)

"""The promise: units, the audit's order, and a bound that holds however often one looks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import hypergeom

from lasca import simulate
from lasca.review.decisions import Decision
from lasca.review.promise import (
    CALM,
    STEEP,
    SURE,
    audit_order,
    certainty_of,
    judge,
    looks_needed,
    make_promise,
    spend,
    units_of,
)
from lasca.review.spans import Labels
from test_review_queue import ner, truth_of


def chance(n: int, many: int, looks: Mapping[int, int]) -> float:
    """The chance that with `many` wrong of n, for some f, at most f of the first looks[f] are wrong: look by look."""
    limit = {t: max(f for f, other in looks.items() if other == t) for t in looks.values()}
    state, fell = np.zeros(many + 1), 0.0
    state[0] = 1.0
    wrong = np.arange(many + 1)
    for t in range(n + 1):
        if t in limit:
            fell += state[: limit[t] + 1].sum()
            state[: limit[t] + 1] = 0
        if t < n:
            p = np.clip((many - wrong) / (n - t), 0, 1)
            state = state * (1 - p) + np.concatenate(([0.0], (state * p)[:-1]))
    return fell


CASES = [(40, 0.1, 0.05), (60, 0.01, 0.04), (150, 0.05, 0.2), (300, 0.02, 0.05), (300, 0.1, 0.0475), (400, 0.03, 0.01)]


@pytest.mark.parametrize(("n", "error", "level"), CASES)
def test_a_hypothesis_falls_as_early_as_its_part_of_delta_allows_and_no_earlier(
    n: int, error: float, level: float
) -> None:
    looks = looks_needed(n, error, level, 15)
    assert list(looks) == sorted(looks)
    for f in range(len(looks)):
        share = level * (1 - (1 + (f + 1) / CALM) ** -STEEP)
        many = next(k for k in range(f, n + 2) if k - f > error * (n - f))
        mine = dict(enumerate(looks[: f + 1]))
        assert chance(n, many, mine) <= share * (1 + 1e-9)
        if looks[f] > max(looks[f - 1] if f else 0, f):
            assert chance(n, many, mine | {f: looks[f] - 1}) > share


@pytest.mark.parametrize(("n", "error", "level"), CASES)
def test_however_many_are_wrong_a_broken_promise_or_handing_on_is_rare(n: int, error: float, level: float) -> None:
    """Exactly, for every number of wrong units: falls while the promise is broken, or hands its part of δ on."""
    looks = looks_needed(n, error, level, n)
    first = math.floor(error * n + 1e-9) + 1
    shares = level * np.diff(1 - (1 + np.arange(len(looks) + 1) / CALM) ** -STEEP)
    hands_on = {}
    for f, share in enumerate(shares.tolist()):
        enough = np.flatnonzero(hypergeom.cdf(f, n, first, np.arange(n + 1)) <= share)
        if f < first and len(enough):
            hands_on[f] = int(enough[0])
    assert all(looks[f] <= t for f, t in hands_on.items())
    for many in range(first, min(first + 25, n + 1)):
        broken = {f: t for f, t in enumerate(looks) if many - f > error * (n - f)}
        assert chance(n, many, hands_on | broken) <= level


@pytest.mark.parametrize("wrong", ["surest", "least sure", "anywhere", "one set"])
def test_promises_hold_in_the_worst_cases(wrong: str) -> None:
    """As many wrong as are just too many, placed where it hurts; somebody looks after every item."""
    rng = np.random.default_rng(1)
    n, error, confidence = 600, 0.05, 0.8
    certainty = np.linspace(1, 0.97, n)  # expected: 1.5 %, so the whole is a start
    broken = []
    for _ in range(600):
        bad = np.zeros(n, bool)
        if wrong == "surest":
            bad[:31] = True
        elif wrong == "least sure":
            bad[-31:] = True
        elif wrong == "anywhere":
            bad[rng.permutation(n)[:31]] = True
        else:  # the first 30 are what the first set may hold; the whole is too bad from there on
            bad[np.arange(0, 60, 20)] = True
            bad[300:328] = True
        drawn = [(int(u), bool(bad[u])) for u in rng.permutation(n)]
        looks = 10 * np.flatnonzero(rng.random(45) < 0.2)
        accepted = [np.array(make_promise(certainty, drawn[:k], error=error, confidence=confidence).accepted, int)
                    for k in looks.tolist()]  # fmt: skip
        broken.append(any(len(units) and bad[units].mean() > error for units in accepted))
    assert np.mean(broken) <= 0.2 + 2 * np.sqrt(0.2 * 0.8 / 600)


def test_what_was_found_wrong_is_not_accepted_and_makes_a_promise_easier() -> None:
    rng = np.random.default_rng(5)
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


@pytest.mark.parametrize(("error", "seen"), [(0.05, 0), (0.02, 0), (0.05, 60)])
def test_as_many_audits_as_are_advised_do_in_most_cases(error: float, seen: int) -> None:
    """Where as many units are wrong as the model expects."""
    rng = np.random.default_rng(6)
    done = []
    for _ in range(200):
        certainty = 1 - rng.beta(0.35, 4.0, 3000)
        sure = np.flatnonzero(certainty >= SURE)
        wrong = rng.random(3000) < 1 - certainty
        drawn = [(int(u), bool(wrong[u])) for u in rng.permutation(sure)]
        before = make_promise(certainty, drawn[:seen], error=error, sure=sure)
        assert before.more is not None
        assert before.likely is not None
        assert before.more <= before.likely
        done.append(bool(make_promise(certainty, drawn[: seen + before.likely], error=error, sure=sure).accepted))
    assert 0.7 <= np.mean(done) <= 0.95


def test_where_the_model_expects_too_many_errors_it_says_that_hardly_any_audit_would_do() -> None:
    assert make_promise(np.full(5000, 0.9), [], error=0.01).likely is None
    assert make_promise(np.full(2000, 0.999), [], error=0.05).likely is not None
    none = make_promise(np.full(30, 0.99), [(i, True) for i in range(30)], error=0.05)
    assert (none.accepted, none.more, none.likely) == ((), None, None)


def test_where_the_model_is_as_sure_of_all_the_audit_is_of_all() -> None:
    """A tenth of them was promised about first, of which nearly all had to be looked at: 331 of 441 items."""
    certainty = np.linspace(0.97, 0.982, 441)
    promise = make_promise(certainty, [], error=0.05)
    assert promise.more is not None
    assert promise.likely is not None
    assert promise.more < 80
    assert promise.likely < 180
    assert len(make_promise(certainty, [(i, False) for i in range(promise.more)], error=0.05).accepted) == 441


def test_of_a_small_project_it_says_how_many_items_would_do() -> None:
    """Fewer units than 1 / error: one that is wrong would be too much, so all of them must be looked at."""
    certainty = np.linspace(0.9, 0.99, 60)
    promise = make_promise(certainty, [], error=0.01)
    assert promise.more is not None
    assert 50 < promise.more <= 60
    enough = [(i, False) for i in range(promise.more)]
    assert len(make_promise(certainty, enough, error=0.01).accepted) == 60
    assert not make_promise(certainty, enough[:-1], error=0.01).accepted
    assert not make_promise(certainty, [(0, True), *enough[1:-1]], error=0.01).accepted
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


@pytest.mark.parametrize(("others", "least", "most"), [(1, 0.98, 1.0), (2, 0.4, 0.5)])
def test_what_most_people_did_not_say_is_at_most_half_sure(others: int, least: float, most: float) -> None:
    rows = {"a": ["B-X", "O"], **{f"b{i}": ["O", "O"] for i in range(others)}}
    corpus = ner(**rows)
    truth = truth_of(corpus, {(0, 0): {"B-X": 0.99, "O": 0.01}, (0, 1): {"O": 1.0}})
    assert truth.labels.tolist() == [corpus.labels.index("B-X"), corpus.labels.index("O")]
    (sure,) = certainty_of(corpus, truth, units_of(corpus, truth))
    assert least <= sure <= most


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
    side = ner(a=["B-X", "B-Y", "O"], b=["B-X", "B-Y", "O"])
    parts = units_of(side, truth_of(side))
    assert [(u.start, u.stop) for u in parts] == [(0, 1), (1, 2)]
    for k, span in enumerate(((0, 1, "X"), (1, 2, "Y"))):  # a span that ends where the next unit begins is not in it
        said = Decision(side.sequence_ids[0], k, k + 1, ((span,),), audit=True)
        assert not judge(side, truth_of(side), Labels.of(side), parts, k, said)
    two = ner(a=["B-X", "B-Y"], b=["B-X", "B-Y"], c=["B-X", "I-X"])
    (unit,) = units_of(two, truth_of(two))
    said = Decision(two.sequence_ids[0], 0, 2, (((1, 2, "Y"), (0, 1, "X")),), audit=True)
    assert not judge(two, truth_of(two), Labels.of(two), [unit], 0, said)  # spans are right in whatever order


def test_every_further_fit_gets_less_of_delta() -> None:
    parts = [spend(0.05, j) for j in range(1, 2000)]
    assert sum(parts) <= 0.05 + 1e-12
    assert parts == sorted(parts, reverse=True)


def test_what_was_decided_in_the_queue_is_neither_audited_nor_accepted() -> None:
    certainty, is_open = np.full(400, 0.9999), np.ones(400, bool)
    is_open[:40] = False
    audited = [(u, u < 40) for u in range(150)]  # what was decided was wrong
    promise = make_promise(certainty, audited, error=0.05, open_units=is_open)
    assert (promise.total, promise.audited, promise.wrong) == (360, 110, 0)
    assert promise.accepted == tuple(range(40, 400))
    without = make_promise(certainty[40:], [(u - 40, False) for u, _ in audited[40:]], error=0.05)
    assert without.accepted == tuple(range(360))
    assert not make_promise(certainty, audited, error=0.05).accepted

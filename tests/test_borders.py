"""Who goes on where the others stop: habits of borders, found from votes and taken out of names."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import pytest

from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import cut_into_blocks
from lasca.engine import added
from lasca.truth import RobustSequence, Votes
from lasca.truth.borders import LEAST_NAMES, Overruns, beyond, knowing_habits
from lasca.truth.families import Families, declared_families
from lasca.truth.guards import Crowd, Look
from truth_cases import everything

LENGTH = 12


def written(names: Any) -> list[str]:
    """Write names (first, end, type) as labels."""
    labels = ["O"] * LENGTH
    for first, end, kind in names:
        labels[first:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - first - 1)]
    return labels


def crowd(habits: list[tuple[int, int]], *, n: int = 200, seed: int = 0) -> CrowdCorpus:
    """Return people who miss a sixth of all names and begin and end so many tokens too early or late."""
    rng = np.random.default_rng(seed)
    gold: list[Any] = []
    given: dict[str, list[Any]] = {f"p{k}": [] for k in range(len(habits))}
    for _ in range(n):
        names = [(a, a + int(rng.integers(1, 3)), str(rng.choice(["X", "Y"]))) for a in (2, 7)]
        gold.append(written(names))
        for own, (before, behind) in zip(given.values(), habits):
            own.append(written((a - before, b + behind, k) for a, b, k in names if rng.random() < 5 / 6))
    return CrowdCorpus.from_sequences([["w"] * LENGTH] * n, given, golds={"gold": gold})


def known(corpus: CrowdCorpus, size: int = 10**6) -> Crowd:
    blocks = cut_into_blocks(Votes.of(corpus), size)

    def asked(question: Any) -> Any:
        return added([question.summarise(block) for block in blocks])

    look = Look(corpus.labels, declared_families(corpus.families))
    return knowing_habits(look.crowd(asked(look)), asked)


@pytest.mark.parametrize("habit", [(1, 0), (0, 1), (1, 1)])
def test_who_goes_on_is_found_and_names_are_not_too_long(habit: tuple[int, int]) -> None:
    corpus = crowd([(0, 0)] * 3 + [habit] * 2)
    for size in (100, 10**6):
        goes_on = known(corpus, size).goes_on
        assert goes_on is not None
        assert goes_on.tolist() == [False] * 3 + [True] * 2
    score = RobustSequence(text=False, families=False).fit(corpus).score(corpus, "gold")
    assert score.f1 is not None
    assert score.f1 > 0.95


def test_who_stops_early_or_is_one_of_most_has_no_habit() -> None:
    assert known(crowd([(0, 0)] * 3 + [(0, 0)] * 2)).goes_on is None
    assert known(crowd([(0, 1)] * 3 + [(0, 0)] * 2)).goes_on is None  # then it is how names are marked
    assert known(crowd([(0, 0)] * 3 + [(0, 1)], n=LEAST_NAMES // 4)).goes_on is None
    tokens = CrowdCorpus.from_sequences([["w"] * 3], {"p": [["X", "Y", "O"]]}, labels=["O", "X", "Y"])
    assert known(tokens).goes_on is None


def test_the_sums_are_those_of_plain_loops_over_names() -> None:
    rng = np.random.default_rng(4)
    given: dict[str, list[Any]] = {f"p{k}": [] for k in range(5)}
    for _ in range(80):
        for own in given.values():
            names = [
                (a + int(rng.integers(-1, 2)), a + int(rng.integers(2, 4)), str(rng.choice(["X", "Y"])))
                for a in (1, 4, 8)
            ]
            own.append(written(name for name in names if rng.random() < 0.7) if rng.random() < 0.8 else None)
    corpus = CrowdCorpus.from_sequences([["w"] * LENGTH] * 80, given)
    sums, marked = np.zeros((3, 5)), dict[tuple[int, int, int], str]()
    for a, rows in enumerate(given.values()):
        for s, row in enumerate(rows):
            marked |= {(a, s, i): label for i, label in enumerate(row or []) if label != "O"}
    for a, rows in enumerate(given.values()):
        for s, row in enumerate(rows):
            number = np.cumsum([label[0] == "B" for label in row or []])
            for _, places in groupby((i for i in range(len(row or [])) if row[i] != "O"), key=lambda i: number[i]):
                name = list(places)
                others = {b for b in range(5) if b != a and any((b, s, i) in marked for i in name)}
                along = [sum((b, s, i) in marked for b in others) for i in name]
                if len(others) >= 2:
                    sums[:, a] += 1, 2 * along[0] < len(others), 2 * along[-1] < len(others)
    nobody = declared_families([None] * 5)
    np.testing.assert_array_equal(Overruns(nobody, corpus.labels).summarise(everything(corpus))[0], sums)
    pair = Families(np.array([0, 0, 2, 3, 4]), np.array([1.0, 1.0, 0.0, 0.0, 0.0]))
    of_families = Overruns(pair, corpus.labels).summarise(everything(corpus))[0]
    assert of_families[0, 1] < sums[0, 1]  # where the other one votes they are one voter


def test_what_they_mark_beyond_the_others_is_taken_out_and_nothing_else() -> None:
    said = {
        "whole": [written([(2, 4, "X")])],
        "long": [written([(1, 5, "X"), (7, 9, "X")])],  # the second name is theirs alone
        "too": [written([(2, 5, "X"), (9, 11, "Y")])],
    }
    corpus = CrowdCorpus.from_sequences([["w"] * LENGTH], said)
    goes_on = np.array([name != "whole" for name in corpus.annotators])
    assert beyond(everything(corpus), goes_on, corpus.labels).tolist() == [1, 4]
    assert beyond(everything(corpus), ~goes_on, corpus.labels).tolist() == []
    assert beyond(everything(corpus), np.ones(3, np.bool_), corpus.labels).tolist() == []

"""Whether people miss the same things, as their votes say, and what follows for how much may be marked."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import cut_into_blocks
from lasca.engine import added
from lasca.truth import RobustSequence, Votes
from lasca.truth.families import Families, declared_families
from lasca.truth.guards import Crowd, Look, Rates
from lasca.truth.misses import FEW, BorneOut, Together, knowing_misses
from truth_cases import everything

LENGTH = 12


def marked(recall: list[float], *, hard: bool, n: int = 300, seed: int = 0, share: float = 1.0) -> CrowdCorpus:
    """Return a crowd that misses names at random, or what is hard together."""
    rng = np.random.default_rng(seed)
    gold = [["B-X" if i in (2, 6, 9) else "O" for i in range(LENGTH)] for _ in range(n)]
    easy = np.where(rng.random((n, LENGTH)) < 0.5, 1.0, 0.3) if hard else np.ones((n, LENGTH))
    given: dict[str, Any] = {}
    for k, rate in enumerate(recall):
        found = rng.random((n, LENGTH)) < rate * easy
        own = [["B-X" if y == "B-X" and f else "O" for y, f in zip(*row)] for row in zip(gold, found)]
        given[f"p{k}"] = [row if rng.random() < share else None for row in own]
    return CrowdCorpus.from_sequences([["w"] * LENGTH] * n, given, golds={"gold": gold})


def known(corpus: CrowdCorpus, families: Families | None = None, size: int = 10**6) -> Crowd:
    blocks = cut_into_blocks(Votes.of(corpus), size)

    def asked(question: Any) -> Any:
        return added([question.summarise(block) for block in blocks])

    look = Look(corpus.labels, families or declared_families(corpus.families))
    return knowing_misses(look.crowd(asked(look)), asked)


@pytest.mark.parametrize("seed", range(3))
def test_who_misses_at_random_is_told_from_who_misses_what_is_hard(seed: int) -> None:
    alone = known(marked([0.5, 0.4, 0.6, 0.9, 0.5], hard=False, seed=seed))
    assert alone.together < 0.25
    assert alone.recall == pytest.approx([0.5, 0.4, 0.6, 0.9, 0.5], abs=0.07)
    hard = known(marked([0.9] * 5, hard=True, seed=seed))
    assert hard.together == 1.0
    assert Rates(hard).least_ratio == Rates(replace(hard, recall=None)).least_ratio
    assert Rates(alone).least_ratio < Rates(replace(alone, recall=None)).least_ratio - 0.05
    assert Rates(replace(alone, together=0.0)).least_ratio == pytest.approx(0.65, abs=0.1)  # their upper quartile


def test_of_three_votes_the_third_is_asked_and_of_two_nothing_is_known() -> None:
    assert known(marked([0.5, 0.6, 0.5], hard=False, n=600)).together < 0.5
    assert known(marked([0.9, 0.9, 0.9], hard=True, n=600)).together == 1.0
    two = known(marked([0.5, 0.5], hard=False))
    assert (two.recall, two.together) == (None, 1.0)


def test_a_family_is_one_voter_and_blocks_add_up() -> None:
    corpus = marked([0.5] * 5, hard=False, share=0.8)
    pair = Families(np.array([0, 0, 2, 3, 4]), np.array([1.0, 1.0, 0.0, 0.0, 0.0]))
    parts, one = known(corpus, pair, size=100), known(corpus, pair)
    assert parts.together == pytest.approx(one.together)
    np.testing.assert_allclose(parts.recall, one.recall)
    assert known(marked([0.5, 0.5, 0.5, 0.5], hard=False), Families(np.array([0, 0, 2, 2]), np.ones(4))).recall is None


def test_the_sums_are_those_of_plain_loops_over_pairs() -> None:
    corpus = marked([0.5, 0.7, 0.4, 0.8, 0.3], hard=True, share=0.7, n=60)
    block, nobody = everything(corpus), declared_families([None] * 5)
    voters: dict[int, dict[int, bool]] = {}
    for token, a, label in zip(block.token, block.votes.annotator, block.votes.label):
        voters.setdefault(int(token), {})[int(a)] = corpus.labels[label] != "O"
    counts, above, below = np.zeros((2, 5)), 0.0, 0.0
    for votes in voters.values():
        for a, marks in votes.items():
            if sum(votes.values()) - marks >= 2:
                counts[:, a] += 1, marks
    outside = corpus.labels.index("O")
    np.testing.assert_array_equal(BorneOut(nobody, outside).summarise(block)[0], counts)
    recall = (counts[1] + FEW * counts[1].sum() / counts[0].sum()) / (counts[0] + FEW)
    for votes in voters.values():
        for a, b in combinations(votes, 2):
            if len(votes) > 2 and sum(votes.values()) - votes[a] - votes[b] >= min(2, len(votes) - 2):
                above += (votes[a] - recall[a]) * (votes[b] - recall[b]) / (len(votes) - 1)
                spread = recall[[a, b]] * (1 - recall[[a, b]])
                below += float(np.sqrt(spread.prod())) / (len(votes) - 1)
    np.testing.assert_allclose(Together(nobody, outside, recall).summarise(block)[0], [above, below])


def test_what_half_of_all_miss_at_random_is_found() -> None:
    corpus = marked([0.5] * 6, hard=False, n=150)
    truth = RobustSequence(text=False).fit(corpus)
    score = truth.score(corpus, "gold")
    assert score.recall is not None
    assert score.recall > 0.95

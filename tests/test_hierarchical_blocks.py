"""The hierarchical clusters model, block by block: where labels begin, what is drawn, and which chains count."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np

from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block
from lasca.simulate import demo_crowd
from lasca.truth import HierarchicalClusters, Votes
from lasca.truth.cluster_draws import Draws
from lasca.truth.cluster_sampler import Local, StateLearner, Sweep
from lasca.truth.special import special_tokens


def votes_of(*said: str) -> Votes:
    people = {f"a{k}": [[None if c == "." else c for c in word]] for k, word in enumerate(said)}
    return Votes.of(CrowdCorpus.from_sequences([["w"] * len(said[0])], people, labels=["A", "B", "C"]))


def test_tokens_begin_as_hard_where_few_gave_their_label_not_where_nobody_gave_any() -> None:
    votes = votes_of("AA.", "AB.", "BC.")
    block = Block(votes, 0, 3)
    sweep = Sweep((), (1,), 0, shares=np.array([0.2, 0.7, 0.1]))
    begins = StateLearner(3, 3, 2, None).begin(sweep, block, special_tokens(block), None)
    np.testing.assert_array_equal(begins, [0, 3, 1])


def test_blocks_sweeps_and_chains_have_draws_of_their_own() -> None:
    votes = votes_of("A" * 60, "B" * 60, "C" * 60)
    learner, special = StateLearner(3, 3, 1, None), special_tokens(Block(votes, 0, 60))

    def drawn(number: int, chain: int) -> bytes:
        sweep = Sweep((), (1, 2, 3), 0, shares=np.ones(3) / 3)
        return learner.draw(
            sweep, chain, Block(votes, 0, 60, number=number), special, np.empty((0, 3), np.float32)
        ).tobytes()

    assert drawn(0, 1) == drawn(0, 1)
    assert len({drawn(number, chain) for number in (0, 1) for chain in (1, 2)}) == 4


def test_chains_that_do_not_count_have_no_part_in_the_labels() -> None:
    votes = votes_of("AB", "AB", "AC")
    block = Block(votes, 0, 2)
    good, bad = np.array([[2, 0, 0], [0, 1.5, 0.5]], np.float32), np.array([[0, 0, 2], [0, 0, 2]], np.float32)
    local, out = Local(special_tokens(block), np.stack([bad, good])), np.empty((2, 3), np.float32)
    sweep = Sweep((), (1, 2), 9, good=(False, True))
    _, (counts, totals) = StateLearner(3, 3, 1, None).describe(sweep, block, local, out)
    np.testing.assert_allclose(out, good / 2)
    np.testing.assert_array_equal(totals, [1, 1, 0])
    np.testing.assert_array_equal(counts[2], [[1, 0, 0], [0, 0, 1], [0, 0, 0]])


def test_tables_are_of_the_annotators_they_were_drawn_for() -> None:
    nothing: Any = None  # neither blocks nor moves are asked
    draws = Draws(nothing, nothing, np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 2.0]]), 1, 1)  # the second gave no label
    log_psi = np.log(np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.3, 0.7]]]))
    table = draws._tables(log_psi, np.log([0.5, 0.5])).log_psi
    np.testing.assert_array_equal(table, [log_psi[0].T, np.zeros((2, 2)), log_psi[1].T])


def test_memory_is_a_sum_for_each_chain_and_little_more() -> None:
    corpus = demo_crowd("ner")
    model = HierarchicalClusters(n_clusters=2, n_chains=6, n_warmup=1, n_samples=4, n_threads=1)
    model.fit(corpus)  # compiled, and loaded
    tracemalloc.start()
    proba = model.fit(corpus).proba
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 9.5 * proba.nbytes  # six chains, the mean of them, and the tables of so small a crowd

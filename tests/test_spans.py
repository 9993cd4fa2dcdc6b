"""Spans read from probabilities of tokens: against the enumeration of all paths, and by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import naive
from lasca import schemes
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block
from lasca.truth import Votes
from lasca.truth.average import Parts, Said
from lasca.truth.chain import StateSpace

TWO = ("B-X", "B-Y", "I-X", "I-Y", "O")


def said(labels: tuple[str, ...], *sequences: np.ndarray) -> list[list[str]]:
    """Return the labels read from the probabilities of the tokens of sequences."""
    words = [[f"w{i}" for i in range(len(rows))] for rows in sequences]
    corpus = CrowdCorpus.from_sequences(words, {"a": [["O"] * len(row) for row in words]}, labels=labels)
    votes = Votes.of(corpus)
    block = Block(votes, 0, votes.n_tokens)
    found = Said(mean=np.concatenate(sequences).astype(np.float32)).labels(block, StateSpace.of(labels))
    return [[labels[t] for t in found[lo:hi]] for lo, hi in pairwise(corpus.offsets)]


def enumerated(rng: np.random.Generator) -> tuple[np.ndarray, dict[tuple[int, int, str], float]]:
    """Return a token's marginals and the probabilities of all spans, of a chain whose spans forget how they began."""
    n = int(rng.integers(1, 6))
    start, move, last = StateSpace.of(TWO).flat().start, StateSpace.of(TWO).flat().move, np.ones(5)
    move *= rng.random((5, 5))
    move[2], move[3] = move[0], move[1]  # what follows B-X follows I-X, too
    paths = naive.chain_paths(rng.normal(size=(n, 5)) * 3, start, move, last)
    log_sum, marginals, _ = naive.chain_sums(paths, 5)
    spans: dict[tuple[int, int, str], float] = {}
    for path, weight in paths.items():
        for span in schemes.spans([TWO[t] for t in path]):
            spans[span] = spans.get(span, 0.0) + float(np.exp(weight - log_sum))
    return marginals, spans


@pytest.mark.parametrize("seed", range(40))
def test_all_spans_likelier_than_not_are_read_and_others_only_where_the_path_has_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = [enumerated(rng) for _ in range(6)]
    for (marginals, spans), labels in zip(drawn, said(TWO, *(rows for rows, _ in drawn))):
        assert schemes.is_legal(labels, "IOB2")
        found = set(schemes.spans(labels))
        surely = {span for span, p in spans.items() if p > 0.5}
        assert surely <= found
        path = np.empty(len(marginals), np.int16)
        gain, rules = marginals.astype(np.float32).astype(np.float64), StateSpace.of(TWO).flat()
        naive_best = max(
            naive.chain_paths(gain, (rules.start > 0) * 1.0, (rules.move > 0) * 1.0, np.ones(5)).items(),
            key=lambda item: item[1],
        )[0]
        path[:] = naive_best
        taken = set(surely)
        for lo, hi, _ in schemes.spans([TWO[t] for t in path]):
            if not any(a < hi and lo < b for a, b, _ in taken):
                free = {
                    span: p
                    for span, p in spans.items()
                    if lo <= span[0] < hi and not any(a < span[1] and span[0] < b for a, b, _ in taken)
                }
                taken.add(max(free, key=lambda span: free[span]))
        assert found == taken


def test_where_no_span_is_likelier_than_not_the_likeliest_one_is_read() -> None:
    sure = np.array([[0.9, 0, 0, 0, 0.1], [0.0, 0, 0.8, 0, 0.2], [0, 0, 0.05, 0, 0.95]])
    assert said(TWO, sure) == [["B-X", "I-X", "O"]]  # .75
    longer = np.array([[0.6, 0, 0, 0, 0.4], [0.0, 0, 0.55, 0, 0.45], [0, 0, 0.2, 0, 0.8], [0, 0, 0.19, 0, 0.81]])
    assert said(TWO, longer) == [["B-X", "I-X", "O", "O"]]  # .35, against .05, .01 and .19
    unsure = np.array([[0.55, 0, 0, 0, 0.45], [0, 0, 0.3, 0, 0.7], [0, 0, 0.25, 0, 0.75]])
    assert said(TWO, unsure) == [["B-X", "O", "O"]]  # .25, against .05 and .25: the first of equals


def test_a_span_ends_where_one_begins_that_is_likelier_than_not() -> None:
    """The first word is most likely part of a longer span (.45, against .07): where the next begins one, it is not."""
    assert said(TWO, np.array([[0.52, 0, 0, 0, 0.48], [0, 0.55, 0.45, 0, 0]])) == [["B-X", "B-Y"]]


def test_the_likeliest_span_may_begin_inside_of_that_of_the_path() -> None:
    """X of two or of three words are .2 each, Y in the second alone .38: the path has the X of two."""
    rows = np.array([[0.52, 0, 0, 0, 0.48], [0, 0.38, 0.4, 0, 0.22], [0, 0, 0.2, 0, 0.8]])
    assert said(TWO, rows) == [["O", "B-Y", "O"]]


def test_nothing_is_read_across_sequences_and_spans_without_an_inside_are_of_one_token() -> None:
    one, two = np.array([[0.9, 0, 0, 0, 0.1]]), np.array([[0.0, 0, 0.9, 0, 0.1], [0, 0, 0, 0, 1.0]])
    assert said(TWO, one, two)[0] == ["B-X"]
    labels = ("B-X", "O")
    assert said(labels, np.array([[0.6, 0.4], [0.7, 0.3], [0.2, 0.8]])) == [["B-X", "B-X", "O"]]


def test_each_scheme_writes_its_own_letters_and_schemes_without_a_beginning_keep_the_path() -> None:
    labels = ("B-X", "E-X", "I-X", "O", "S-X")
    rows = np.array([[0.7, 0, 0, 0.2, 0.1], [0, 0.1, 0.6, 0.3, 0], [0, 0.6, 0, 0.4, 0], [0, 0, 0, 0.3, 0.7]])
    assert said(labels, rows) == [["B-X", "I-X", "E-X", "S-X"]]
    assert Parts.of(("I-X", "O")) is None
    assert Parts.of(("B-X", "I-X")) is None  # no O: somebody is always inside
    assert said(("I-X", "O"), np.array([[0.6, 0.4], [0.4, 0.6]])) == [["I-X", "O"]]

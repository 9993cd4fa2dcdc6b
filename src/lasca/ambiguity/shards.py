"""two-truths on a sharded corpus: the same model, block by block, and every ambiguous token written where its block is.

EM is that of `lasca.ambiguity.two_truths`. Its counts are sums of whole numbers, so that blocks, threads and workers do
not matter: scores, flags and candidates are the bytes of the corpus in memory. A sample of tokens for EM is as large as
in memory, some hundred thousand votes, and is brought together. Which scores belong to the largest fraction is found
without bringing scores together: how many there are in each of many narrow bins, then those of one bin.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lasca.ambiguity import steps, two_truths
from lasca.ambiguity.record import Ambiguity, pick_candidates
from lasca.ambiguity.steps import PairCounts, PairParameters, PairPasses
from lasca.ambiguity.write import Row, arrow_table, rows
from lasca.arrays import Bools, Floats, Ints, borders, ranges, readonly
from lasca.corpus.store import write_part
from lasca.corpus.votes import Votes
from lasca.engine import Engine, Threads, Work
from lasca.errors import ModelError
from lasca.estimator import Progress
from lasca.truth.parts import TruthOnDisk

__all__ = ["TOP", "Found", "two_truths_in_shards"]

TOP = 1000
"""So many of the most ambiguous tokens are brought together, for people."""
BIN = 42
"""The last bits of a score that are left out to find its bin: 2^10 bins between a number and its double."""
CHUNK = 50_000


class Found(NamedTuple):
    """What was found, beside the parts."""

    ambiguity: Ambiguity
    """Nothing of single tokens is in it."""
    n_ranked: int
    n_ambiguous: int
    top: list[Row]
    """The most ambiguous tokens, as `lasca.ambiguity.write.rows` gives them."""


class Look(NamedTuple):
    """What the start needs of a block."""

    sizes: Ints
    """How many tokens have no vote, one, two, …"""
    mass: Ints
    given: Ints
    """How many votes each annotator gave."""


def look(_: None, block: Any) -> Look:
    """Count the votes of a block, and how much probability each label has in it."""
    n = np.diff(block.votes.start)
    given = np.bincount(block.votes.annotator, minlength=block.votes.n_annotators)
    return Look(np.bincount(n, minlength=2), two_truths.mass_of(block.place.truth().proba), given)


def sample_of(asked: tuple[int, list[int]], block: Any) -> tuple[Any, ...]:
    """Return every k-th token that can be ranked, counted through all blocks: their numbers of votes, and these.

    `asked`: k, and how many such tokens are before each block.
    """
    every, before = asked
    tokens = steps.many_voted(block)[-before[block.number] % every :: every]
    start = block.votes.start
    at = ranges(start[tokens], start[tokens + 1])
    return np.diff(start)[tokens], block.votes.annotator[at], block.votes.label[at]


@dataclass
class BlockPasses:
    """E steps over all blocks, by an engine."""

    work: Work
    near: Any
    size: float

    def run(self, p: PairParameters) -> tuple[PairCounts, None]:
        """Return expected counts."""
        return steps.pair_counts(self.work.sum((p, self.near))), None


@dataclass(frozen=True)
class Scoring:
    """What is needed to score the tokens of a block."""

    parameters: PairParameters
    near: Any

    def __call__(self, block: Any) -> tuple[Ints, Floats]:
        """Return the tokens of a block that can be ranked, and their scores."""
        tokens = steps.many_voted(block)
        if not len(tokens):
            return tokens, np.zeros(0)
        _, _, proba = steps.e_step(block.votes, tokens, self.near, self.parameters, learn=False)
        return tokens, two_truths.believable(block.votes, tokens, proba, float(self.parameters.kinds[1]))


def _bins(score: Floats) -> Ints:
    return np.asarray(score.view(np.int64) >> BIN)


def count_bins(scoring: Scoring, block: Any) -> tuple[Any, Any]:
    """Return which bins the scores of a block fall into, and how many; those that are a clear no are left out."""
    _, score = scoring(block)
    return np.unique(_bins(score[score > two_truths.LEAST]), return_counts=True)


def in_bin(state: tuple[Scoring, int], block: Any) -> tuple[Any, Any, Any]:
    """Return score, entropy and token (of the corpus) of those in one bin."""
    scoring, wanted = state
    tokens, score = scoring(block)
    own = (score > two_truths.LEAST) & (_bins(score) == wanted)
    return score[own], block.place.truth().entropy[tokens[own]], tokens[own] + block.place.first


@dataclass(frozen=True)
class Cut:
    """The last token that is flagged: its score, the entropy of its truth, its number."""

    score: float
    entropy: float = -np.inf
    token: int = -1

    def passed(self, score: Any, entropy: Any, token: Any) -> Bools:
        """Say which tokens are flagged: ties go to the larger entropy, then to the earlier token."""
        tie = (entropy > self.entropy) | ((entropy == self.entropy) & (token <= self.token))
        return np.asarray((score > two_truths.LEAST) & ((score > self.score) | ((score == self.score) & tie)))


def write_block(asked: tuple[Scoring, Cut, Path], block: Any) -> tuple[int, list[tuple[tuple[float, float, int], Row]]]:
    """Write the scores and the flagged tokens of a block; return how many these are, and the most ambiguous of them.

    Each is a part, whole or not at all; the same bytes wherever and however often.
    """
    scoring, cut, folder = asked
    place = block.place
    truth, corpus = place.truth(), place.corpus.part(place.first, place.last)
    tokens, ranked = scoring(block)
    score = np.full(len(block), np.nan)
    score[tokens] = ranked
    entropy = truth.entropy
    chosen = tokens[cut.passed(ranked, entropy[tokens], tokens + place.first)]
    chosen = chosen[np.lexsort((chosen, -entropy[chosen], -score[chosen]))]
    pairs: dict[str, Any] = steps.best_pairs(block.votes, scoring.near, scoring.parameters, chosen)
    scores = two_truths.label_scores(pairs, len(corpus.labels))
    start, label, value = pick_candidates(scores, truth.labels[chosen], pairs["pair_label"][:, 0])
    found = Ambiguity("two-truths", {}, corpus.labels, score, chosen, start, label, value, **pairs)
    made = rows(corpus, truth, found, width=200)
    table = arrow_table(made).drop_columns(["rank"])
    for name, part in (("ambiguous", table), ("scores", pa.table({"score": pa.array(score, from_pandas=True)}))):
        write_part(part, folder / name, block.number)
    keys = [(-score[i], -float(entropy[i]), int(i) + place.first) for i in chosen[:TOP].tolist()]
    return len(chosen), list(zip(keys, made[:TOP]))


def two_truths_in_shards(
    truth: TruthOnDisk,
    folder: Path,
    *,
    fraction: float | None,
    threshold: float,
    max_iter: int,
    tol: float,
    sample: int,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Found:
    """Find the ambiguous tokens of a sharded corpus; write `folder`/ambiguous and `folder`/scores, in parts."""
    blocks = truth.blocks()
    with closing((engine or Threads()).open(steps.PairLearner(), blocks)) as work:
        looked = work.map(look, None)
        sizes = np.zeros(max(len(part.sizes) for part in looked), np.int64)
        for part in looked:
            sizes[: len(part.sizes)] += part.sizes
        n_ranked = int(sizes[2:].sum())
        if truth.corpus.n_labels < 2 or not n_ranked:
            raise ModelError("nothing can be ambiguous: no token has two votes, or there is one label only")
        given, mass = sum(part.given for part in looked), sum(part.mass for part in looked)
        start = two_truths.start_of(np.asarray(given), np.asarray(mass), truth.corpus.n_tokens, truth.truth.confusion)
        everything = BlockPasses(work, start.near, float((sizes * np.arange(len(sizes)))[2:].sum()))
        every = max(1, round(int(np.sum(given)) / sample))
        passes: Any = everything
        if every > 1:
            before = np.cumsum([0, *(int(part.sizes[2:].sum()) for part in looked)]).tolist()
            passes = _sampled(work.map(sample_of, (every, before)), truth, start)
        fitted = two_truths.fit(passes, everything, start, max_iter, tol, progress)
        counts, _ = everything.run(fitted.parameters)
        scoring = Scoring(fitted.parameters, start.near)
        cut = _cut(work, scoring, fraction, threshold, n_ranked)
        asked = {"fraction": fraction, "threshold": threshold, "max_iter": max_iter, "tol": tol, "sample": sample}
        written = work.map(write_block, (scoring, cut, folder))
    return _found(truth, asked, fitted, counts, every, sizes, written)


def _sampled(parts: list[tuple[Any, ...]], truth: TruthOnDisk, start: two_truths.PairStart) -> PairPasses:
    """Put the sampled tokens into one crowd in memory."""
    n, annotator, label = (np.concatenate(arrays) for arrays in zip(*parts))
    ends = readonly(borders(n))
    votes = Votes(ends, readonly(annotator), readonly(label), truth.corpus.n_annotators, truth.corpus.n_labels, ends)
    return PairPasses(votes, np.arange(len(n)), start.near, Threads().n_threads, CHUNK)


def _cut(work: Work, scoring: Scoring, fraction: float | None, threshold: float, n_ranked: int) -> Cut:
    """Find the last token that is flagged."""
    if fraction is None:
        return Cut(threshold, np.inf)
    wanted = int(fraction * n_ranked + 0.5)
    if not wanted:
        return Cut(np.inf)
    counted = work.map(count_bins, scoring)
    bins, where = np.unique(np.concatenate([found for found, _ in counted]), return_inverse=True)
    n = np.bincount(where, np.concatenate([number for _, number in counted])).astype(np.int64)
    above = np.cumsum(n[::-1])[::-1]
    if not len(n) or above[0] <= wanted:
        return Cut(two_truths.LEAST)
    at = int(np.flatnonzero(above >= wanted)[-1])  # the bin that holds the last one
    score, entropy, token = (np.concatenate(parts) for parts in zip(*work.map(in_bin, (scoring, int(bins[at])))))
    order = np.lexsort((token, -entropy, -score))
    last = order[wanted - int(above[at] - n[at]) - 1]
    return Cut(float(score[last]), float(entropy[last]), int(token[last]))


def _found(
    truth: TruthOnDisk,
    asked: dict[str, Any],
    fitted: two_truths.PairFit,
    counts: PairCounts,
    every: int,
    sizes: Ints,
    written: list[Any],
) -> Found:
    best = sorted(pair for _, pairs in written for pair in pairs)[:TOP] if written else []
    empty = np.zeros(0, np.int64)
    ranked = sizes.copy()
    ranked[:2] = 0
    ambiguity = Ambiguity(
        method="two-truths",
        params=asked,
        label_names=truth.corpus.labels,
        score=np.zeros(0),
        tokens=empty,
        candidate_start=np.zeros(1, np.int64),
        candidate_label=np.zeros(0, np.int16),
        candidate_score=np.zeros(0),
        unranked={"not annotated": int(sizes[0]), "one annotation only": int(sizes[1])},
        **two_truths.fields_of(fitted, counts, every, ranked),
    )
    top = [{**row, "rank": rank} for rank, (_, row) in enumerate(best, 1)]
    return Found(ambiguity, int(ranked.sum()), sum(n for n, _ in written), top)

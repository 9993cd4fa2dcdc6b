"""The two-truths model, step by step: parameters, the E step in chunks and threads, the M steps of both stages.

The model is in `lasca.ambiguity.two_truths`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import gammaln, xlogy

from lasca.arrays import Array, Codes, Floats, Ints
from lasca.engine import added
from lasca.engine.work import each_ordered
from lasca.kernels import ambiguity as kernels
from lasca.truth.base import Votes

__all__ = [
    "PI", "PairCounts", "PairLearner", "PairParameters", "PairPasses", "PairPrior", "best_pairs", "e_step",
    "integrated", "kept_counts", "many_voted", "own_step", "pair_counts", "pooled_step", "shares", "strengths",
]  # fmt: skip

PI = np.array([0.5, 0.6, 0.7, 0.8])
TOP_PAIRS = 5
PAIR_CELLS = 2_000_000
"""So many weights of pairs of labels are held at a time."""
STRENGTHS = 10.0 ** np.arange(0, 4.1, 0.5)
# what the priors add to the expected counts: kinds (one truth, two), λ, γ, ρ, θ (knows, does not)
KINDS = np.array([9.0, 1.0])
LEVELS, LABELS, GRID, COMPETENCE = 1.0, 0.1, 1.0, 1.0
PAIRS, ROWS = 1.0, 10.0
"""Per label: what κ and a shared confusion row get, spread half evenly, half by label frequency."""


@dataclass(frozen=True)
class PairParameters:
    """What an E step needs, and the log prior (up to a constant) of it."""

    psi: Floats
    """(annotator, level, given label, true label)."""
    kinds: Floats
    levels: Floats
    gamma: Floats
    kappa: Floats
    rho: Floats
    theta: Floats
    """(annotator, level)."""
    rows: Floats
    log_prior: float
    own: Floats
    """Annotators' rows where they slip least, (annotator, 1, given label, true label)."""


@dataclass(frozen=True)
class PairCounts:
    """What an E step finds: expected counts and the log evidence."""

    counts: Floats
    """(annotator, level, given label, true label): votes."""
    one: Floats
    """(level, label): tokens with one truth."""
    two: Floats
    """(level): tokens with two truths."""
    pairs: Floats
    """(label, label, share of the first): the same tokens."""
    evidence: float


@dataclass(frozen=True)
class PairPrior:
    """The fixed part of the prior: for κ (T, T), for the shared rows (T, T), and for own rows (L, 1, given, true).

    `kept`, fixed in stage 2: the share of an annotator's votes on each level that come from their own rows.
    """

    kappa: Floats
    rows: Floats
    own: Floats | None = None
    kept: Floats | None = None


def e_step(
    votes: Votes, tokens: Ints, near: Any, p: PairParameters, *, learn: bool = True
) -> tuple[list[Ints], Floats, Floats]:
    """Return expected counts (as whole numbers; zero unless `learn`), log evidence and probability of two truths."""
    L, T, D = votes.n_annotators, votes.n_labels, len(p.levels)
    sums = [np.zeros(shape, np.int64) for shape in ((L, D, T, T), (D, T), (D,), (T, T, kernels.GRID))]
    evidence, proba = np.empty(len(tokens)), np.empty(len(tokens))
    no_pairs = np.zeros((0, T, T))
    run: Any = kernels.two_truths_pass
    run(0, len(tokens), tokens, *_arguments(votes, near, p), learn, *sums, evidence, proba, no_pairs, no_pairs)
    return sums, evidence, proba


def _arguments(votes: Votes, near: Any, p: PairParameters) -> tuple[Any, ...]:
    weights = (p.kinds[0] * np.outer(p.levels, p.gamma), p.kinds[1] * p.levels, p.kappa[:, :, None] * p.rho)
    own = (np.array(near), np.array(p.psi, order="C"))  # what comes from elsewhere may be read-only
    return (votes.start, votes.annotator, votes.label, *own, *weights, PI)


def whole_sum(values: Floats) -> int:
    """Return the sum as a multiple of 2^-52: one of whole numbers, which does not depend on its order."""
    scaled = values * 2.0**20
    whole = np.floor(scaled)
    return (int(whole.astype(np.int64).sum()) << 32) + int(np.rint((scaled - whole) * 2.0**32).astype(np.int64).sum())


def pair_counts(sums: Sequence[Any]) -> PairCounts:
    """Make numbers of sums of whole numbers."""
    counts, one, two, pairs = (total / kernels.SCALE for total in sums[:-1])
    return PairCounts(counts, one, two, pairs, sums[-1] / 2**52)


def many_voted(block: Any) -> Ints:
    """Return the tokens of a block that have two votes or more."""
    return np.asarray(np.flatnonzero(np.diff(block.start) >= 2) + block.first)


@dataclass(frozen=True)
class PairLearner:
    """E steps on blocks for an engine (`lasca.engine`): a state is the parameters and each label's near ones."""

    def visit(self, state: tuple[PairParameters, Any], block: Any, local: Any) -> tuple[tuple[Any, ...], None]:
        """Return the expected counts of a block and its evidence, as whole numbers."""
        p, near = state
        sums, evidence, _ = e_step(block.votes, many_voted(block), near, p)
        return (*sums, whole_sum(evidence)), None


class PairPasses:
    """E steps over some tokens in memory, in chunks and threads; the result does not depend on either."""

    def __init__(self, votes: Votes, tokens: Ints, near: Any, n_threads: int, chunk_size: int) -> None:
        self.votes, self.tokens, self.near, self.n_threads = votes, tokens, near, n_threads
        self.chunks = list(pairwise([*range(0, len(tokens), chunk_size), len(tokens)]))
        self.size = float(np.diff(votes.start)[tokens].sum())

    def run(self, p: PairParameters) -> tuple[PairCounts, Floats]:
        """Return expected counts and the probability of two truths of each token."""
        proba = np.empty(len(self.tokens))

        def work(chunk: tuple[int, int]) -> tuple[Any, ...]:
            part = slice(*chunk)
            sums, evidence, proba[part] = e_step(self.votes, self.tokens[part], self.near, p)
            return (*sums, whole_sum(evidence))

        return pair_counts(added(each_ordered(work, self.chunks, self.n_threads))), proba


def best_pairs(votes: Votes, near: Any, p: PairParameters, tokens: Ints) -> dict[str, Array]:
    """Return the most probable pairs of the tokens, given that they are ambiguous."""
    T = votes.n_labels
    found: dict[str, Array] = {
        "pair_label": np.full((len(tokens), TOP_PAIRS, 2), -1, np.int16),
        "pair_proba": np.zeros((len(tokens), TOP_PAIRS)),
        "pair_share": np.full((len(tokens), TOP_PAIRS), np.nan),
    }
    arguments = _arguments(votes, near, p)
    sums = [np.zeros(shape, np.int64) for shape in ((1, 1, 1, 1), (1, 1), (1,), (1, 1, 1))]  # of learning: unused
    size = max(1, PAIR_CELLS // T**2)
    run: Any = kernels.two_truths_pass
    for lo in range(0, len(tokens), size):
        some = tokens[lo : lo + size]
        weight, part = np.zeros((2, len(some), T, T))
        unused = np.empty((2, len(some)))
        run(0, len(some), some, *arguments, False, *sums, *unused, weight, part)
        _rank_pairs(weight, part, *(array[lo : lo + size] for array in found.values()))
    return found


def _rank_pairs(weight: Floats, part: Floats, label: Codes, proba: Floats, share: Floats) -> None:
    """Fill in the pairs of most weight, (n, TOP_PAIRS): of equal ones the first, the label with the larger share first.

    Weights are those of `two_truths_pass`. Labels stay -1 where there are fewer pairs.
    """
    n, T, _ = weight.shape
    total = weight[:, 0, 0].copy()
    weight[:, 0, 0] = 0.0
    flat, part = weight.reshape(n, T * T), part.reshape(n, T * T)
    for rank in range(TOP_PAIRS):
        best = flat.argmax(axis=1)
        i = np.flatnonzero(flat[np.arange(n), best] > 0.0)
        top = best[i]
        of_first = part[i, top] / flat[i, top]
        swapped = of_first < 0.5
        label[i, rank, 0] = np.where(swapped, top % T, top // T)
        label[i, rank, 1] = np.where(swapped, top // T, top % T)
        proba[i, rank] = flat[i, top] / total[i]
        share[i, rank] = np.where(swapped, 1.0 - of_first, of_first)
        flat[i, top] = 0.0


def shares(counts: Floats) -> Floats:
    """Return counts divided by their sum."""
    return np.asarray(counts / counts.sum())


def mixture(e: PairCounts, prior: PairPrior) -> tuple[dict[str, Floats], float]:
    """Return the M step of the weights (kinds, λ, γ, κ, ρ) and their log prior."""
    n_levels, n_labels = e.one.shape
    added = {
        "kinds": KINDS,
        "levels": np.full(n_levels, LEVELS),
        "gamma": np.full(n_labels, LABELS),
        "kappa": prior.kappa,
        "rho": np.full(kernels.GRID, GRID),
    }
    counts = {
        "kinds": np.array([e.one.sum(), e.two.sum()]),
        "levels": e.one.sum(axis=1) + e.two,
        "gamma": e.one.sum(axis=0),
        "kappa": e.pairs.sum(axis=2),
        "rho": e.pairs.sum(axis=(0, 1)),
    }
    new = {name: shares(counts[name] + added[name]) for name in counts}
    return new, float(sum(xlogy(added[name], new[name]).sum() for name in new))


def pooled_rows(theta: Floats, rows: Floats) -> Floats:
    """Return Ψ of the first stage as (annotator, level, given, true)."""
    own = np.multiply.outer(theta, np.eye(len(rows)))
    return np.asarray(own + np.multiply.outer(1 - theta, rows.T))


def pooled_step(e: PairCounts, prior: PairPrior, theta: Floats, rows: Floats) -> PairParameters:
    """M step of stage 1: a few inner steps over who knew and who guessed, from where θ and r were."""
    diagonal = np.einsum("ldtt->ldt", e.counts)
    n = e.counts.sum(axis=(2, 3))
    given = e.counts.sum(axis=(0, 1)).T
    for _ in range(3):
        knows = theta[:, :, None] / (theta[:, :, None] + (1 - theta)[:, :, None] * np.diag(rows)) * diagonal
        theta = (knows.sum(axis=2) + COMPETENCE) / (n + 2 * COMPETENCE)
        rows = given - np.diag(knows.sum(axis=(0, 1))) + prior.rows
        rows = rows / rows.sum(axis=1, keepdims=True)
    log_prior = COMPETENCE * (np.log(theta) + np.log1p(-theta)).sum() + xlogy(prior.rows, rows).sum()
    new, more = mixture(e, prior)
    best = pooled_rows(theta.max(axis=1, keepdims=True), rows)
    psi = pooled_rows(theta, rows)
    return PairParameters(psi, **new, theta=theta, rows=rows, log_prior=float(log_prior + more), own=best)


def kept_counts(e: PairCounts, p: PairParameters, own: Floats, kept: Floats) -> Floats:
    """Return the expected votes by annotators' own rows (L, 1, given, true): all but the slips of harder levels."""
    share = kept[:, :, None, None] * own / p.psi
    return np.asarray((e.counts * share).sum(axis=1, keepdims=True))


def own_step(e: PairCounts, prior: PairPrior, old: PairParameters) -> PairParameters:
    """M step of stage 2: each annotator's rows, with the pooled ones as prior; how levels differ stays."""
    assert prior.own is not None
    assert prior.kept is not None
    own = kept_counts(e, old, old.own, prior.kept) + prior.own
    own /= own.sum(axis=2, keepdims=True)
    new, more = mixture(e, prior)
    psi = levelled(own, prior.kept, old.rows)
    return replace(old, psi=psi, own=own, **new, log_prior=float(xlogy(prior.own, own).sum() + more))


def levelled(own: Floats, kept: Floats, rows: Floats) -> Floats:
    """Return Ψ of the second stage."""
    m = kept[:, :, None, None]
    return np.asarray(m * own + (1 - m) * rows.T)


def strengths(counts: Floats, pooled: Floats) -> Floats:
    """Return, per true label, how strongly own rows are drawn to the pooled ones: the best on a grid by evidence."""
    total = counts.sum(axis=2)
    found = []
    for s in STRENGTHS:
        alpha = s * pooled
        value = (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=(0, 1, 2))
        found.append(value + (gammaln(s) - gammaln(total + s)).sum(axis=(0, 1)))
    return np.asarray(STRENGTHS[np.argmax(found, axis=0)])


def integrated(e: PairCounts, p: PairParameters, prior: PairPrior) -> float:
    """Return ln p(votes) with Ψ integrated out, as Cheeseman & Stutz approximate it from one E step."""
    assert prior.own is not None
    assert prior.kept is not None
    n, alpha = kept_counts(e, p, p.own, prior.kept), prior.own
    rows = gammaln(alpha.sum(axis=2)) - gammaln((n + alpha).sum(axis=2))
    counted = float((gammaln(n + alpha) - gammaln(alpha)).sum() + rows.sum())
    return e.evidence - float(xlogy(n, p.own).sum()) + counted

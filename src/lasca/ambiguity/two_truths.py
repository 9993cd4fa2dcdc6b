"""two-truths: does a token have one true label, or two?

A token is explained in one of two ways, whose shares are learned:
- one truth: label t with probability γ_t;
- two truths: an ordered pair a ≠ b of weight κ_ab; every annotator reads a with probability π, else b. π lies on the
  grid .5, .6, .7, .8 with weights ρ: a is the reading that more people have.
Besides, whatever its kind, a token is on one of three levels of difficulty d, with probability λ_d. Annotator l who
reads t on level d gives s with probability Ψ^ld_ts. How often people slip on each level is learned; where slips are
independent the levels become alike. Difficulty and kind are independent: without levels, tokens on which all slip
more would pass for ambiguous ones; if only tokens with one truth could be hard, hard tokens would all pass for
unambiguous ones, which they are no more often than others.
The score of a token is its posterior probability of two truths: all annotators count, each by what they are worth.
It is 0 where all agree, and grows no surer with votes beyond `INDEPENDENT`.

Everything is learned from the votes by EM (MAP, `lasca.learn`), starting from the truth model's confusions. Those
are blurred by the very tokens we look for (a reading that is not the first one counts as an error), so Ψ is learned
again, in two stages, each with an objective that never falls:
1. pooled: Ψ^ld_ts = θ_ld [s = t] + (1 − θ_ld) r_ts. A competence per annotator and level, one confusion row per label.
2. own rows: Ψ^ld_ts = m_ld Ψ^l_ts + (1 − m_ld) r_ts with Ψ^l_t ~ Dir(s_t × its pooled row), MAP. Stage 1's rows are
   so, with m_ld = θ_ld / max_d θ_ld; m and r stay as it left them. The strengths s_t are those that make counts most
   probable (Dirichlet–multinomial around the pooled rows): large where annotators are alike, small where they have
   habits of their own. Two sets of counts are tried: those of stage 1, in which habits of some may pass for second
   readings, and those of the truth model, in which second readings pass for habits. Whichever ends with the larger
   evidence is kept: ln p(votes) by Cheeseman & Stutz' approximation, with Ψ^l integrated out.

Beyond maths.md, section 3: the levels, learning Ψ again, ordered pairs. Of all pairs only those of two labels voted
for, or of a label voted for (the more frequent reading) with one of the `NEAR` labels it is most confused with, are
tried. On corpora with many more than `sample` annotations EM runs on every k-th token, then for a few steps on all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from lasca.ambiguity import steps
from lasca.ambiguity.record import Ranking, without_company
from lasca.ambiguity.steps import PairCounts, PairParameters, PairPasses, PairPrior
from lasca.arrays import Array, Bools, Codes, Floats, Ints
from lasca.engine import available_threads
from lasca.kernels.ambiguity import SCALE
from lasca.learn import EmRun, run_from
from lasca.truth import Truth
from lasca.truth.base import Progress, Votes

__all__ = ["believable", "fields_of", "fit", "label_scores", "mass_of", "start_of", "two_truths"]

NEAR = 2
"""Partners of a label that nobody voted for on the token: those it is most confused with."""
LEVELS = (1.5, 0.0, -1.5)
"""Where EM starts: what is added to the log odds of every competence on easy, usual and hard tokens."""
HARD = 2 / 3
"""A level is hard where votes are right less than this often, relative to the easiest common level."""
INDEPENDENT = 15
"""How many votes on a token count as independent of each other: as many as the paper's crowds have."""
LAST_STEPS = 2
"""Steps on all tokens after EM on a sample."""
LEAST = 0.0
"""Tokens of this score are not ambiguous, whatever fraction is asked for."""
ROWS_AT_A_TIME = 100_000


@dataclass(frozen=True)
class PairStart:
    """What the truth model's confusions give: the first parameters, priors, strengths, and each label's near ones."""

    parameters: PairParameters
    prior: PairPrior
    strengths: Floats
    near: Codes


def mass_of(proba: Array) -> Ints:
    """Return how much probability each label has, as multiples of 1/SCALE: whole numbers add up in any order."""
    rows = range(0, len(proba), ROWS_AT_A_TIME)
    parts = [np.rint(proba[a : a + ROWS_AT_A_TIME] * SCALE).astype(np.int64).sum(axis=0) for a in rows]
    return np.asarray(np.sum(parts, axis=0))


def start_of(n: Ints, mass: Ints, n_tokens: int, confusion: Array) -> PairStart:
    """Make the start from the annotators' numbers of votes, the labels' mass (`mass_of`), and the confusions."""
    T = len(mass)
    mean: Floats = mass / SCALE / n_tokens
    gamma = steps.shares(np.asarray(mean + 1e-3 / T, dtype=np.float64))
    counts = n[:, None, None] * gamma[None, :, None] * confusion.astype(np.float64)
    even = 0.5 / T + 0.5 * gamma
    kappa = np.outer(even, even) * (1 - np.eye(T))
    prior = PairPrior(steps.PAIRS * T * kappa / kappa.sum(), np.tile(steps.ROWS * even, (T, 1)))
    confused = counts.sum(axis=0)
    order = np.argsort(-(confused + confused.T), axis=1, kind="stable")
    near = np.array([[b for b in row if b != a][:NEAR] for a, row in enumerate(order)], np.int16).reshape(T, -1)
    given = counts.transpose(0, 2, 1)[:, None]
    e = PairCounts(given, np.zeros((1, T)), np.zeros(1), np.zeros((T, T, len(steps.PI))), 0.0)
    p = steps.pooled_step(e, prior, np.full((len(n), 1), 0.7), prior.rows / prior.rows.sum(axis=1, keepdims=True))
    for _ in range(10):
        p = steps.pooled_step(e, prior, p.theta, p.rows)
    theta = expit(logit(p.theta) + np.array(LEVELS))
    first = replace(
        p,
        psi=steps.pooled_rows(theta, p.rows),
        theta=theta,
        own=steps.pooled_rows(theta[:, :1], p.rows),
        kinds=np.array([0.9, 0.1]),
        gamma=gamma,
    )
    levels = np.full(len(LEVELS), 1 / len(LEVELS))
    return PairStart(replace(first, levels=levels), prior, steps.strengths(e.counts, p.psi), near)


def two_truths(
    votes: Votes,
    truth: Truth,
    *,
    max_iter: int,
    tol: float,
    sample: int,
    n_threads: int | None,
    chunk_size: int,
    progress: Progress | None,
) -> Ranking:
    """Learn the model and return the probability of two truths per token."""
    n = np.diff(votes.start)
    tokens = np.flatnonzero(n >= 2).astype(np.int64)
    unranked = without_company(votes)
    score = np.full(votes.n_tokens, np.nan)
    if votes.n_labels < 2 or not len(tokens):
        score[tokens] = 0.0
        return Ranking(score, lambda chosen: np.zeros((len(chosen), votes.n_labels)), unranked, {"share": 0.0})
    given = np.bincount(votes.annotator, minlength=votes.n_annotators)
    start = start_of(given, mass_of(truth.proba), votes.n_tokens, truth.confusion)
    threads = available_threads(n_threads)
    everything = PairPasses(votes, tokens, start.near, threads, chunk_size)
    every = max(1, round(len(votes.label) / sample))
    passes = everything if every == 1 else PairPasses(votes, tokens[::every].copy(), start.near, threads, chunk_size)
    fitted = fit(passes, everything, start, max_iter, tol, progress)
    found, proba = everything.run(fitted.parameters)
    score[tokens] = believable(votes, tokens, proba, float(fitted.parameters.kinds[1]))
    fields = fields_of(fitted, found, every, np.bincount(n[tokens]))

    def pairs(chosen: Ints) -> dict[str, Array]:
        return steps.best_pairs(votes, start.near, fitted.parameters, chosen)

    return Ranking(score, lambda t: label_scores(pairs(t), votes.n_labels), unranked, fields, pairs, least=LEAST)


def believable(votes: Votes, tokens: Ints, proba: npt.NDArray[np.floating], share: float) -> Floats:
    """Return probabilities that votes can bear: 0 where all agree, and no surer than `INDEPENDENT` votes make them.

    Where nobody gave a second reading there is none to speak of, whatever the model expects of the word. And people
    are not independent without end: the votes beyond `INDEPENDENT` only say the same more often.
    """
    n = np.diff(votes.start)[tokens]
    ends = np.stack((votes.start[tokens], votes.start[tokens + 1]), axis=1).ravel()
    label = np.append(votes.label, votes.label[-1:])  # an end may lie behind the last vote
    low, high = (f.reduceat(label, ends)[::2] for f in (np.minimum, np.maximum))
    prior = logit(np.clip(share, 1e-9, 1 - 1e-9))
    odds = logit(np.clip(proba.astype(np.float64), 1e-15, 1 - 1e-15))
    held = expit(prior + (odds - prior) * np.minimum(1.0, INDEPENDENT / n))
    return np.asarray(np.where(low == high, 0.0, np.where(n > INDEPENDENT, held, proba)))


@dataclass(frozen=True)
class PairFit:
    """Both stages: the last parameters and how EM got there."""

    parameters: PairParameters
    prior: PairPrior
    strengths: Floats
    evidence: float
    runs: tuple[EmRun[PairParameters], EmRun[PairParameters]]


class Passes(Protocol):
    """E steps over some tokens."""

    size: float
    """How many votes the tokens have."""

    def run(self, p: PairParameters) -> tuple[PairCounts, Any]:
        """Return expected counts, and perhaps more."""


def fit(
    passes: Passes, everything: Passes, start: PairStart, max_iter: int, tol: float, progress: Progress | None
) -> PairFit:
    """Run both stages on `passes`, all tokens or a sample of them, then the last steps on all."""
    fitted = _fit(passes, start, max_iter, tol, progress)
    if passes is everything:
        return fitted
    p = fitted.parameters
    for _ in range(LAST_STEPS):
        p = steps.own_step(everything.run(p)[0], fitted.prior, p)
    return replace(fitted, parameters=p)


def _fit(passes: Passes, start: PairStart, max_iter: int, tol: float, progress: Progress | None) -> PairFit:
    size = passes.size
    prior = start.prior

    def run(step: Any, first: PairParameters, stage: int) -> EmRun[PairParameters]:
        def report(done: float, words: str) -> None:
            if progress is not None:
                progress((stage + done) / 3, words)

        return run_from(first, step, max_iter=max_iter, tol=tol, scale=size, progress=report)

    def pooled(p: PairParameters) -> tuple[PairParameters, float]:
        e, _ = passes.run(p)
        return steps.pooled_step(e, prior, p.theta, p.rows), e.evidence + p.log_prior

    one = run(pooled, start.parameters, 0)
    found, _ = passes.run(one.state)
    kept = one.state.theta / one.state.theta.max(axis=1, keepdims=True)
    counts = steps.kept_counts(found, one.state, one.state.own, kept)
    tried = []
    for stage, strength in enumerate((steps.strengths(counts, one.state.own), start.strengths), 1):
        own = replace(prior, own=strength * one.state.own, kept=kept)

        def own_rows(p: PairParameters, own: PairPrior = own) -> tuple[PairParameters, float]:
            e, _ = passes.run(p)
            return steps.own_step(e, own, p), e.evidence + p.log_prior

        two = run(own_rows, steps.own_step(found, own, one.state), stage)
        evidence = steps.integrated(passes.run(two.state)[0], two.state, own)
        tried.append(PairFit(two.state, own, strength, evidence, (one, two)))
    return max(tried, key=lambda fitted: fitted.evidence)


def _hard_levels(found: PairCounts) -> Bools:
    """Return the levels on which votes are right less than `HARD` times as often as on the easiest common level."""
    right, n = np.einsum("ldtt->d", found.counts), found.counts.sum(axis=(0, 2, 3))
    rate = right / np.maximum(n, 1e-300)
    return np.asarray(rate < HARD * rate[n >= 0.1 * n.sum()].max())


def fields_of(fitted: PairFit, found: PairCounts, every: int, sizes: Ints) -> dict[str, Any]:
    """Return the fields of the `Ambiguity` beside scores; `sizes[k]` is how many tokens with k votes were ranked."""
    p, (one, two) = fitted.parameters, fitted.runs
    pairs = found.pairs.sum(axis=2)
    pairs = pairs + pairs.T
    not_converged = [f"stage {k}" for k, run in enumerate(fitted.runs, 1) if not run.converged]
    warnings = []
    if not_converged:
        stages = " and ".join(not_converged)
        warnings.append(
            f"the search for ambiguous tokens stopped before it had settled ({stages}): the order of their list may "
            "still move; the labels do not depend on it"
        )
    middle = np.searchsorted(np.cumsum(sizes), (np.array([sizes.sum() - 1, sizes.sum()]) // 2), side="right")
    if middle.mean() < 3:
        warnings.append(
            "most tokens that several annotators labelled have two annotations: second readings and common slips "
            "cannot be told apart, and what is said to be ambiguous may be far off; three annotations or more per "
            "token are needed"
        )
    return {
        "share": float(p.kinds[1]),
        "hard_share": float(p.levels[_hard_levels(found)].sum()),
        "pair_weight": (p.kappa + p.kappa.T) / 2,
        "pair_count": pairs,
        "label_count": found.one.sum(axis=0) + pairs.sum(axis=1),
        "trace": two.trace,
        "diagnostics": {
            "iterations": [len(one.trace), len(two.trace)],
            "converged": not not_converged,
            "objectives": [float(one.trace[-1]), float(two.trace[-1])],
            "first_trace": one.trace.tolist(),
            "competence": p.theta.tolist(),
            "levels": p.levels.tolist(),
            "strengths": fitted.strengths.tolist(),
            "evidence": fitted.evidence,
            "shares_of_first": dict(zip(steps.PI.tolist(), p.rho.tolist())),
            "every": every,
        },
        "warnings": tuple(warnings),
    }


def label_scores(pairs: Mapping[str, Array], n_labels: int) -> Floats:
    """Return how probable it is that each label is one of the two truths, from the most probable pairs."""
    label, proba = pairs["pair_label"], pairs["pair_proba"]
    scores = np.zeros((len(label), n_labels))
    rows = np.arange(len(label))
    for rank in range(label.shape[1]):
        known = label[:, rank, 0] >= 0
        for side in (0, 1):
            scores[rows[known], label[known, rank, side]] += proba[known, rank]
    return scores

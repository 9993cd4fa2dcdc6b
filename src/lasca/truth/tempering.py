"""Probabilities that are worth their name, without any gold.

A model that takes votes as independent given the state is too sure of itself: annotators' errors are alike in more ways
than it knows. Two things take that back.

Tempering: p^τ, normalised, 0 < τ ≤ 1. Votes that are left out share errors with those that stay, so they ask for a τ
that is too high. The text does not: a tagger that never saw this document errs for reasons of its own. It is the
referee: p is inferred from votes and words alone, and the tagger's labels, its probabilities q as fractions, are
predicted by

    s ~ Σ_t p(t)^τ Φ_ts                        Φ: the tagger's confusion, learned by EM for each τ tried

The τ that predicts them best is taken, and the tagger's word is then added by Jeffrey's rule: the posterior given that
it says s, averaged over how sure it is of s,

    p'(t) = Σ_s q_s p(t)^τ Φ_ts / Σ_t' p(t')^τ Φ_t's

Without text, τ is what predicts held-out votes best: one annotator of each sequence is left out with all their votes,
the states are inferred from the others, and the probability of a vote left out is Σ_{t, h} p(t)^τ p(h | t) Ψ_ht(vote).

Doubt: where the whole crowd is wrong, the tagger's confusion is blamed instead of the crowd; so its probabilities q are
mixed in, (1 − w) p' + w q, with the w that moves `doubt` of all probability mass: w · mean(1 − Σ_t p'_t q_t) = doubt,
w ≤ 1/2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lasca.corpus.votes import Block
from lasca.kernels.tables import crossed, times
from lasca.truth.annotator_models import confusion_prior
from lasca.truth.chain import ChainLearner, ChainState, Local
from lasca.truth.evidence import Floats, Texts
from lasca.truth.finish import joined
from lasca.truth.sequence_rounds import TEXT_PRIOR, Fit, as_described

__all__ = [
    "Referee",
    "advised",
    "calibrated",
    "doubted",
    "held_out_votes",
    "referee",
    "tempered",
    "vote_ranks",
    "without_text",
]

GRID = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
MOST_FOLDS = 6
REFEREE_GRID = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2)
REFEREE_ITERATIONS = 15
"""Of EM, for the confusion of the text under each τ."""


@dataclass(frozen=True)
class Referee:
    """What the text says of the votes' posterior: how far to temper it, and what a word of the text is worth."""

    tau: float
    confusion: Floats
    """(T, T): true, said by the text."""
    scores: Floats
    """The mean log probability of the text's labels under each τ of `REFEREE_GRID`."""


def tempered(proba: npt.NDArray[np.floating], tau: float) -> npt.NDArray[np.floating]:
    """Return p^τ, normalised by row."""
    out = np.maximum(proba, 1e-30) ** tau
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def vote_ranks(block: Block) -> npt.NDArray[np.int64]:
    """Number the annotators of each sequence 0, 1, …; return the number of each vote's annotator in its sequence."""
    votes = block.votes
    start = votes.start[block.first : block.last + 1]
    token = np.repeat(np.arange(len(block)), np.diff(start))
    sequence = np.searchsorted(block.offsets, token, side="right") - 1
    pair = sequence * votes.n_annotators + votes.annotator[start[0] : start[-1]]
    known, place = np.unique(pair, return_inverse=True)
    owner = known // votes.n_annotators
    first = np.searchsorted(owner, owner)
    return np.asarray((np.arange(len(known)) - first)[np.asarray(place).reshape(-1)])


@dataclass(frozen=True)
class HeldOut:
    """Asks blocks how well a chain learner predicts votes that are left out."""

    learner: ChainLearner
    means: Floats
    """The posterior mean of the annotators' rows, (n_rows, S)."""

    def visit(self, state: ChainState, block: Block, local: Local | None) -> tuple[tuple[Floats, int], Local]:
        """Return the log probability of the votes under each τ of `GRID`, and how many there are."""
        learner, local = self.learner, local or self.learner.look(block)
        view, H = local.views[0], self.learner.space.levels
        token, row, rank = np.repeat(np.arange(len(block)), np.diff(view.start)), view.own[view.row], vote_ranks(block)
        evidence, totals, n = learner.evidence(state, block, local), np.zeros(len(GRID)), 0
        for fold in range(min(int(rank.max(initial=-1)) + 1, MOST_FOLDS)):
            own = rank == fold
            at, mine = token[own], row[own]
            states = evidence.copy()
            states[at] -= state.tables[0][mine]  # one vote of a token at most: they are all one annotator's
            learner.pass_over(state, local, states)
            left = states[at].reshape(len(at), H, -1)
            labels = left.sum(axis=1)
            given = (left * self.means[mine].reshape(len(at), H, -1)).sum(axis=1) / np.maximum(labels, 1e-300)
            for k, tau in enumerate(GRID):
                totals[k] += np.log(np.maximum((tempered(labels, tau) * given).sum(axis=1), 1e-30)).sum()
            n += len(at)
        return (totals, n), local


def held_out_votes(fit: Fit) -> tuple[float, Floats]:
    """Return the best τ, and the mean log probability of held-out votes under each value tried."""
    with fit.open(HeldOut(fit.learner, fit.annotators.means(fit.crowd)), fit.blocks) as work:
        totals, n = work.sum(fit.state)
    return GRID[int(totals.argmax())], totals / max(n, 1)


def without_text(fit: Fit) -> Floats:
    """Return the labels' probabilities by votes and words alone, under the parameters of a fit."""
    kept = [k for k, source in enumerate(fit.learner.sources) if not isinstance(source, Texts)]
    learner = replace(fit.learner, sources=tuple(fit.learner.sources[k] for k in kept))
    state = replace(fit.state, tables=tuple(fit.state.tables[k] for k in kept))
    with fit.open(learner, fit.blocks) as work:
        parts = work.describe(state, as_described)
    return np.asarray(joined([proba for proba, _, _ in parts]), dtype=np.float64)


def referee(proba: Floats, text: Floats, prior: Floats) -> Referee:
    """Return the τ under which `proba` (n, T) predicts the text's labels (n, T) best; `prior`: of its confusion."""
    found = [_confusion(tempered(proba, tau), text, prior) for tau in REFEREE_GRID]
    scores = np.array([score for _, score in found])
    best = int(scores.argmax())
    return Referee(REFEREE_GRID[best], found[best][0], scores)


def _confusion(proba: npt.NDArray[np.floating], text: Floats, prior: Floats) -> tuple[Floats, float]:
    """Learn p(said by the text | true) by EM; return it and the mean log probability of what was said."""
    rows = prior + crossed(proba, text)
    for _ in range(REFEREE_ITERATIONS):
        table = rows / rows.sum(axis=1, keepdims=True)
        rows = prior + table * crossed(proba, text / np.maximum(times(proba, table), 1e-300))
    table = rows / rows.sum(axis=1, keepdims=True)
    said = np.log(np.maximum(times(proba, table), 1e-30))
    return table, float((text * said).sum() / max(len(text), 1))


def advised(proba: npt.NDArray[np.floating], text: Floats, confusion: Floats) -> Floats:
    """Add the word of a text that is only so sure, by Jeffrey's rule; rows of zeros say nothing."""
    weight = text / np.maximum(times(proba, confusion), 1e-300)
    silent = np.maximum(0, 1 - text.sum(axis=1, keepdims=True))
    out = proba * (times(weight, np.ascontiguousarray(confusion.T)) + silent)
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def calibrated(
    fit: Fit, labels: npt.NDArray[np.floating], doubt: float, *, sampled: bool = False
) -> tuple[Floats, dict[str, float]]:
    """Return the labels' probabilities made worth their name, and what was done in numbers.

    Sampled probabilities hold the text's word already and are tempered as they are.
    """
    tau, held_out = held_out_votes(fit)
    numbers = {"held_out_votes": float(held_out.max())}
    labels = np.asarray(labels, dtype=np.float64)
    if fit.text is None:
        return np.asarray(tempered(labels, tau)), numbers | {"temperature": 1 / tau, "text_share": 0.0}
    votes, text = fit.blocks[0].votes, fit.text.astype(np.float64)
    crowd, voted = without_text(fit), Block(votes, 0, votes.n_tokens).voices > 0
    found = referee(crowd[voted], text[voted], confusion_prior(text.shape[1], *TEXT_PRIOR))
    out = tempered(labels, found.tau) if sampled else advised(tempered(crowd, found.tau), text, found.confusion)
    out, share = doubted(out, fit.text, doubt)
    return np.asarray(out), numbers | {"temperature": 1 / found.tau, "text_share": share}


def doubted(
    proba: npt.NDArray[np.floating], text: npt.NDArray[np.float32], doubt: float
) -> tuple[npt.NDArray[np.floating], float]:
    """Mix a text model's probabilities in, so that `doubt` of all mass moves; return the mixture and w."""
    if doubt == 0:
        return proba, 0.0
    apart = 1.0 - float((proba * text).sum(axis=1).mean())
    share = min(0.5, doubt / max(apart, 1e-9))
    return np.asarray((1 - share) * proba + share * text), share

"""Probabilities that are worth their name, without any gold.

A model that takes votes as independent given the state is too sure of itself: annotators' errors are alike in more ways
than it knows. Two things take that back.

Tempering: p^τ, normalised, 0 < τ ≤ 1, with the τ that predicts held-out votes best: one annotator of each sequence is
left out with all their votes, the states are inferred from the others and the text, and the probability of a vote left
out is Σ_{t, h} p(t)^τ p(h | t) Ψ_{h,t}(vote).

Doubt: votes held out cannot show where the whole crowd is wrong; the text can. Its probabilities q are mixed in,
(1 − w) p + w q, with the w that moves `doubt` of all probability mass: w · mean(1 − Σ_t p_t q_t) = doubt, w ≤ 1/2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lasca.truth.evidence import Floats
from lasca.truth.hidden_fit import Fit
from lasca.truth.hidden_states import CrowdPrior, Expected, HiddenStates, Text
from lasca.truth.sequence import marginals

__all__ = ["doubted", "held_out_votes", "tempered", "vote_ranks"]

GRID = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
MOST_FOLDS = 6


def tempered(proba: npt.NDArray[np.floating], tau: float) -> npt.NDArray[np.floating]:
    """Return p^τ, normalised by row."""
    out = np.maximum(proba, 1e-30) ** tau
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def vote_ranks(model: HiddenStates) -> npt.NDArray[np.int64]:
    """Number the annotators of each sequence 0, 1, …; return the number of each vote's annotator in its sequence."""
    votes = model.votes
    token = np.repeat(np.arange(votes.n_tokens), np.diff(votes.start))
    sequence = np.searchsorted(votes.offsets, token, side="right") - 1
    pair = sequence * votes.n_annotators + votes.annotator
    known, place = np.unique(pair, return_inverse=True)
    owner = known // votes.n_annotators
    first = np.searchsorted(owner, owner)
    return np.asarray((np.arange(len(known)) - first)[np.asarray(place).reshape(-1)])


def mean_rows(model: HiddenStates, expected: Expected, prior: CrowdPrior) -> Floats:
    """Return the posterior mean of the annotations' rows, (n_rows, S)."""
    totals = np.add.reduceat(expected.crowd, model.borders[:-1], axis=0) + prior.totals
    return np.asarray((expected.crowd + prior.rows) / np.repeat(totals, np.diff(model.borders), axis=0))


def held_out_votes(fit: Fit) -> tuple[float, Floats]:
    """Return the best τ, and the mean log probability of held-out votes under each value tried."""
    model, parameters = fit.model, fit.parameters
    votes, H, T = model.votes, model.H, model.T
    token = np.repeat(np.arange(votes.n_tokens), np.diff(votes.start))
    rank, means = vote_ranks(model), mean_rows(model, fit.expected, fit.prior)
    base = model.evidence(parameters, fit.texts)
    out = np.empty((votes.n_tokens, model.S))
    totals, n = np.zeros(len(GRID)), 0
    for fold in range(min(int(rank.max()) + 1, MOST_FOLDS)):
        own = rank == fold
        at, row = token[own], model.rows.row[own]
        less = np.zeros((votes.n_tokens, model.S), np.float32) if base is None else base.copy()
        less[at] -= parameters.crowd[row].astype(np.float32)
        marginals(votes.offsets, parameters.chain, model.sources(parameters), out, model.n_threads, less)
        states = out[at].reshape(-1, H, T)
        labels = states.sum(axis=1)
        given = (states * means[row].reshape(-1, H, T)).sum(axis=1) / np.maximum(labels, 1e-300)
        for k, tau in enumerate(GRID):
            totals[k] += np.log(np.maximum((tempered(labels, tau) * given).sum(axis=1), 1e-30)).sum()
        n += len(at)
    return GRID[int(totals.argmax())], totals / max(n, 1)


def doubted(
    proba: npt.NDArray[np.floating], texts: Sequence[Text], doubt: float
) -> tuple[npt.NDArray[np.floating], float]:
    """Mix the texts' probabilities in, so that `doubt` of all probability mass moves; return the mixture and w."""
    if not texts or doubt == 0:
        return proba, 0.0
    text = np.mean([text.proba for text in texts], axis=0)
    apart = 1.0 - float((proba * text).sum(axis=1).mean())
    share = min(0.5, doubt / max(apart, 1e-9))
    return np.asarray((1 - share) * proba + share * text), share

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
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.arrays import Proba
from lasca.corpus.votes import Block
from lasca.kernels.tables import crossed, times
from lasca.truth.annotator_models import confusion_prior
from lasca.truth.beside import Beside, Keep
from lasca.truth.chain import ChainLearner, ChainState, Local
from lasca.truth.evidence import Floats, Texts
from lasca.truth.finish import joined
from lasca.truth.sequence_rounds import TEXT_PRIOR, Fit

__all__ = [
    "Calibration", "Referee", "advised", "calibrated", "doubted", "held_out_votes", "mixed", "referee", "tempered",
    "vote_ranks", "without_text",
]  # fmt: skip

GRID = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
"""The τ that are tried on held-out votes."""
MOST_FOLDS = 6
"""How many annotators of a sequence are left out at most, one after the other."""
REFEREE_GRID = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2)
"""The τ that the text is asked about."""
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
    votes, sequence = block.votes, np.searchsorted(block.offsets, block.token, side="right") - 1
    pair = sequence * votes.n_annotators + votes.annotator[block.hard]
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


def without_text(fit: Fit) -> Fit:
    """Return the fit with the labels' probabilities by votes and words alone beside its blocks, as `plain`."""
    kept = [k for k, source in enumerate(fit.learner.sources) if not isinstance(source, Texts)]
    learner = replace(fit.learner, sources=tuple(fit.learner.sources[k] for k in kept))
    state = replace(fit.state, tables=tuple(fit.state.tables[k] for k in kept))
    with fit.open(learner, fit.blocks) as work:
        found = fit.saying(work.describe(state, KeepPlain(Keep(fit.folder, "plain"))))
    fit.forget()
    return found


@dataclass(frozen=True)
class KeepPlain:
    """Keeps what votes and words say of a block beside what was said of it."""

    keep: Keep

    def __call__(self, number: int, block: Block, proba: Proba, path: Any, statistics: Any) -> Any:
        """Return what the block is to hold."""
        return self.keep(number, replace(block.beside, plain=proba))


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


@dataclass(frozen=True)
class Calibration:
    """How the labels' probabilities beside blocks are made worth their name."""

    tau: float
    confusion: Floats | None = None
    """The text's; None: its word is in the probabilities already, or there is none."""
    share: float = 0.0
    """Of the text's own probabilities."""

    def proba(self, said: Beside) -> npt.NDArray[np.floating]:
        """Return those of a block."""
        assert said.mean is not None
        if self.confusion is not None:
            assert said.plain is not None
            assert said.text is not None
            crowd, text = said.plain.astype(np.float64), said.text.astype(np.float64)
            out: npt.NDArray[np.floating] = advised(tempered(crowd, self.tau), text, self.confusion)
        else:
            out = tempered(said.mean.astype(np.float64), self.tau)
        return mixed(out, said.text, self.share)


def calibrated(
    fit: Fit, doubt: float, *, most: int, sampled: bool = False
) -> tuple[Fit, Calibration, dict[str, float]]:
    """Return the fit with all beside its blocks that is needed, how to calibrate it, and what was done in numbers.

    Sampled probabilities hold the text's word already and are tempered as they are. The text is asked about `most`
    tokens, the voted ones of every so many blocks.
    """
    tau, held_out = held_out_votes(fit)
    numbers = {"held_out_votes": float(held_out.max())}
    if not fit.is_told:
        return fit, Calibration(tau), numbers | {"temperature": 1 / tau, "text_share": 0.0}
    fit = without_text(fit)
    n_tokens = sum(len(block) for block in fit.blocks)
    some = [block.load() for block in fit.blocks[:: -(-n_tokens // most)]]
    voted = np.concatenate([block.voices > 0 for block in some])
    crowd, text = (joined([getattr(block.beside, name) for block in some])[voted] for name in ("plain", "text"))
    prior = confusion_prior(text.shape[1], *TEXT_PRIOR)
    found = referee(crowd.astype(np.float64), text.astype(np.float64), prior)
    calibration = Calibration(found.tau, None if sampled else found.confusion)
    together = np.concatenate([(calibration.proba(block.beside) * block.beside.text).sum(axis=1) for block in some])
    share = doubted(float(together.mean()), doubt)
    return fit, replace(calibration, share=share), numbers | {"temperature": 1 / found.tau, "text_share": share}


def doubted(together: float, doubt: float) -> float:
    """Return the weight w of a text model's probabilities with which `doubt` of all mass moves; `together`: the mean
    probability that both say the same."""
    return 0.0 if doubt == 0 else min(0.5, doubt / max(1.0 - together, 1e-9))


def mixed(proba: npt.NDArray[np.floating], text: Proba | None, share: float) -> npt.NDArray[np.floating]:
    """Mix a text model's probabilities in."""
    return proba if text is None or share == 0 else np.asarray((1 - share) * proba + share * text)

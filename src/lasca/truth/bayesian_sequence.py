"""BayesianSequence: a Markov chain of true labels, annotators with memory, words; by variational Bayes.

Bayesian sequence combination (BSC), Simpson & Gurevych 2019, "A Bayesian approach for sequence tagging with crowds".

Model: in each sequence z_1 ~ Mult(π), z_i ~ Mult(A_{z_{i-1}}); word w_i ~ Mult(ρ_{z_i}); annotator l gives
y_il ~ p_l(· | z_i, y_{i-1,l}) as the annotator model says (acc, spam, cv, cm, seq: see `annotator_models`). Rows of A,
π and ρ have symmetric Dirichlet priors with `transition_prior` and `word_prior`; moves that the tag scheme forbids have
probability 0. q(z) q(π, A, ρ, Ψ): the E step is forward–backward with exp E log of all parameters, the M step adds
expected counts to the priors. The objective is the ELBO, exact after every E step; it never falls.

Differences from the original (github.com/UKPLab/arxiv2018-bayesian-ensembles):
- Forbidden moves of the truth have probability 0, not a pseudo-count of 1e-12; the first label of a sequence has its
  own distribution π and is not treated as what follows O: labels need no O, and the best path knows its first label.
- An annotator's first label in a sequence, and one behind a gap, has its own context instead of that of O.
- Labels an annotator gives against the scheme have a pseudo-count of 0.01, not 1e-12 (whose E log is -1e12); what is
  taken from them goes, as there, to the label that begins a span of the type, or goes on with the span's own type.
- In acc, a wrong label is one of T - 1, not of T. In spam, knowing or guessing is a latent variable summed out in the
  E step, so that the bound is exact (the original mixes means and expected logs).
- The start is a short run of IBCC (Dawid–Skene there), or the shares of the votes where most tokens have no third vote
  (`starts.judged_start`); a sole annotator is believed.
- Votes that stand alone on their tokens cannot teach who is right: as far as they do, annotators are expected to be
  right (`BELIEVED`); with weak priors the model finds its own truth beside a crowd of single votes.
- The ELBO decides when to stop (there: after 20 iterations, or by the change of q(z)).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block, Votes
from lasca.estimator import choice, flag, number, seeds, threads, tolerance, whole
from lasca.truth.annotator_models import ANNOTATOR_MODELS, VoteRows, make_annotators
from lasca.truth.chain import DECODERS, ChainLearner, StateSpace
from lasca.truth.chain_history import ChainHistory, ChainModel
from lasca.truth.evidence import Source, Words
from lasca.truth.starts import dawid_skene_start, judged_start, trust

__all__ = ["BayesianSequence"]

PRIORS = {"acc": (11.0, 10.0), "spam": (11.0, 10.0), "cv": (20.0, 10.0), "cm": (110.0, 10.0), "seq": (11.0, 10.0)}
"""Pseudo-counts (correct, wrong) of the published experiments on named entities."""
BELIEVED = 90.0
"""Pseudo-counts of right labels where no vote has company: who is right cannot be learned there."""


class BayesianSequence(ChainModel):
    """Bayesian sequence combination: knows the tag scheme, neighbours, words, and annotators' habits.

    A sole annotator is believed; as far as votes stand alone, so is everybody.
    """

    name = "bsc"
    summary = "Bayesian sequence combination: annotators with a memory, label transitions, words"
    supports = frozenset({"known", "soft", "update", "engine", "shards"})

    annotator_model: str = choice("what an annotator does (see the docs)", ANNOTATOR_MODELS, default="seq")
    prior_correct: float | None = number(
        "pseudo-count of right labels", default=None, low=0, open_low=True, none="that of the published experiments"
    )
    prior_wrong: float | None = number(
        "pseudo-count of wrong labels, all together",
        default=None,
        low=0,
        open_low=True,
        none="that of the published experiments; with fewer than nine labels no more than 1.25 on each",
    )
    transition_prior: float = number("pseudo-count of a move", default=1.0, low=0, open_low=True)
    word_prior: float = number("pseudo-count of a word", default=1.0, low=0, open_low=True)
    lone_votes: bool = flag(
        "as published: votes that stand alone teach as others do, and Dawid–Skene is the start of two votes, too",
        default=False,
    )
    words: bool = flag("labels emit words; False leaves the text out", default=True)
    singles: bool = flag("tells spans of one token from beginnings of longer ones (IOB2)", default=False)
    constrained: bool = flag("moves the tag scheme forbids do not happen", default=True)
    decode: str = choice(
        "the most probable path, or the legal path with the most tokens expected to be right",
        DECODERS,
        default="viterbi",
    )
    restarts: int = whole("starts: the first is Dawid–Skene's, the others noisy copies of it", default=1, low=1)
    max_iter: int = whole("iterations of a run at most", default=100, low=1)
    tol: float = tolerance(default=1e-6)
    seed: int | np.random.Generator = seeds(default=0)
    n_threads: int | None = threads(default=None)

    def _space(self, corpus: CrowdCorpus) -> StateSpace:
        return StateSpace.of(corpus.labels, constrained=self.constrained, singles=self.singles)

    def _learner(
        self, corpus: CrowdCorpus, votes: Votes, blocks: Sequence[Block], space: StateSpace, history: ChainHistory
    ) -> ChainLearner:
        correct, wrong = PRIORS[self.annotator_model]
        wrong = min(wrong, 1.25 * max(votes.n_labels - 1, 1))  # no more per wrong label than with the published nine
        if self.prior_correct is not None:
            correct = self.prior_correct
        if self.prior_wrong is not None:
            wrong = self.prior_wrong
        plain = StateSpace.of(corpus.labels, constrained=self.constrained)
        rows = VoteRows.of(blocks, memory=self.annotator_model == "seq").with_code(history.code)
        correct += trust(votes) + (0.0 if self.lone_votes else BELIEVED * votes.lonely)
        annotators = make_annotators(self.annotator_model, rows, space.shows, corpus.labels, correct, wrong)
        words = Words(len(history.vocabulary), self.word_prior)
        sources: tuple[Source, ...] = (annotators, words) if self.words else (annotators,)
        start = dawid_skene_start(self, votes, hard=False) if self.lone_votes else judged_start(self, votes)
        return ChainLearner(space, sources, start, self.transition_prior, decode=self.decode, rules=plain)

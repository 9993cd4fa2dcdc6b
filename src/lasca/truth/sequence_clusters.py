"""SequenceClusters: clusters of annotators, sequences, difficulty, and the text; `HierarchicalClusters(sequence=True)`.

The model is a chain learner (`chain`) whose states are labels at two levels of difficulty, with three sources:
annotators with or without memory, words, and a text model. Annotators' rows have cluster-level priors:
Ψ^l ~ Dir(base + κ · mean of the cluster of l), where `base` leans every row to be right. Inference in rounds
(`sequence_rounds`), each with fixed priors and fixed text evidence; in a round the objective never falls:

    1. without text, base priors: memory or not, and the start, are chosen by the evidence lower bound
    2. clusters of annotators from the expected counts (`annotator_groups`), their priors, again
    3. `rounds` times: cross-fitted text model on the posterior (`text_models`) -> one more annotator, again
    4. labels: decoded from the posterior as it is; probabilities: tempered with the text as the referee, mixed with
       the text's own (`tempering`). Tempering is for people who read probabilities: it flattens tokens one by one, and
       a path decoded from it loses what holds a span together

Nothing here looks at gold labels. Beyond the paper (Lu, arXiv 2301.01579); annotators with memory are those of
Simpson & Gurevych (2019), words those of Nguyen et al. (2017).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block
from lasca.engine import available_threads
from lasca.errors import ModelError, ParameterError
from lasca.estimator import check_choice, check_int, check_number, generator
from lasca.truth.annotator_models import confusion_prior
from lasca.truth.base import Posterior, Progress, TruthModel, Votes
from lasca.truth.chain import StateSpace, blocks_of, check_known, with_words
from lasca.truth.chain_sampler import Samples, sample_states
from lasca.truth.sequence_rounds import LEAN, Fit, Plan, Rounds
from lasca.truth.starts import dawid_skene_start
from lasca.truth.tempering import calibrated, held_out_votes
from lasca.truth.text_models import CrossFit, TextModel, text_model

__all__ = ["SequenceClusters"]

MANY_VOTES, WORD_PRIORS = 5.0, (0.1, 1.0)
"""With five votes a token, words have a pseudo-count of 1; with fewer, a smaller one."""
SLACK = 0.0
"""By how much held-out votes may be predicted worse after one more round."""


class SequenceClusters(TruthModel):
    """The truth from sequences, clusters of annotators, and the text. Each part can be switched off.

    `markov`: labels depend on the label before, and moves the tag scheme forbids do not happen. `memory`: what
    annotators give depends on what they gave before ("auto": by the evidence). `words`: labels emit words.
    `difficulty`: tokens have two levels, easy and hard, with rows of their own. `cluster_strength`: pseudo-counts of an
    annotator's cluster (0: none); `n_clusters`: "bic" or a number. `text`: a text model, cross-fitted in `folds` over
    documents, votes as one more annotator, trained up to `rounds` times (while held-out votes gain). True is a CRF,
    trained for `text_iterations`, with the penalty `text_l2` and the rarest feature `text_min_count`; or the name of a
    text model, or one itself. `calibrate`: temper probabilities by what the text (without it, held-out votes) says of
    them, and mix the text's own in to move `doubt` of their mass. `word_prior`: pseudo-count of a word (None: by the
    number of votes a token has); `transition_prior`: of a move. `inference`: "vb" or "gibbs" (`n_chains`, `n_warmup`,
    `n_samples`). `max_iter`, `tol`: of a round.
    """

    name = "hc-seq"
    summary = "clusters of annotators with levels of difficulty, label transitions, words and a text model"
    supports = frozenset({"known", "soft"})

    def __init__(
        self,
        *,
        markov: bool = True,
        memory: bool | str = "auto",
        words: bool = True,
        difficulty: bool = True,
        cluster_strength: float = 1.0,
        n_clusters: int | str = "bic",
        text: bool | str | TextModel = True,
        rounds: int = 3,
        folds: int = 5,
        text_iterations: int = 30,
        text_l2: float = 1.0,
        text_min_count: int = 2,
        calibrate: bool = True,
        doubt: float = 0.02,
        transition_prior: float = 1.0,
        word_prior: float | None = None,
        inference: str = "vb",
        n_chains: int = 2,
        n_warmup: int = 50,
        n_samples: int = 100,
        max_iter: int = 30,
        tol: float = 1e-5,
        seed: int | np.random.Generator = 0,
        n_threads: int | None = None,
    ) -> None:
        self.markov = markov
        self.memory = memory
        self.words = words
        self.difficulty = difficulty
        self.cluster_strength = cluster_strength
        self.n_clusters = n_clusters
        self.text = text
        self.rounds = rounds
        self.folds = folds
        self.text_iterations = text_iterations
        self.text_l2 = text_l2
        self.text_min_count = text_min_count
        self.calibrate = calibrate
        self.doubt = doubt
        self.transition_prior = transition_prior
        self.word_prior = word_prior
        self.inference = inference
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.n_samples = n_samples
        self.max_iter = max_iter
        self.tol = tol
        self.seed = seed
        self.n_threads = n_threads

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        check_known(corpus, votes, StateSpace.of(corpus.labels))
        sampled = self._sampling(votes)
        votes, n_words = with_words(corpus, votes)
        plan = self._plan(votes, n_words)
        text = self._text_model()
        rng = generator(self.seed)
        start = dawid_skene_start(self, votes, hard=False)
        run = Rounds(corpus, blocks_of(votes), self._work, start, plan, rng, progress)
        fit = run.structure()
        fit = run.clustered(fit)
        if plan.rounds and text is not None:
            folds, n_threads = check_int("folds", self.folds, low=2), available_threads(self.n_threads)
            crossfit = CrossFit(corpus, text, rng.spawn(1)[0], folds=folds, n_threads=n_threads)
            if crossfit.possible:
                fit = self._text_rounds(run, fit, crossfit, progress)
        draws = None
        if sampled is not None:
            draws = sample_states(fit, rng=rng, **sampled, n_threads=self.n_threads)
        progress(0.95, "calibration")
        return self._posterior(run, fit, draws)

    def _text_rounds(self, run: Rounds, fit: Fit, crossfit: CrossFit, progress: Progress) -> Fit:
        """Train taggers on the posterior, and the posterior on taggers, as long as held-out votes are predicted better.

        With few votes the two soon believe each other more than the crowd; votes that were left out tell.
        """
        best, score = fit, -np.inf
        for number in range(run.plan.rounds):
            progress(0.2 + 0.7 * number / run.plan.rounds, f"text, round {number + 1}")
            fit = run.told(f"text {number + 1}", best, crossfit(best.labels))
            held_out = float(held_out_votes(fit)[1].max())
            if held_out < score - SLACK:
                break
            best, score = fit, held_out
        return best

    # --- parameters ---------------------------------------------------------------------------------------------------

    def _plan(self, votes: Votes, n_words: int) -> Plan:
        for name in ("markov", "words", "difficulty", "calibrate"):
            _flag(name, getattr(self, name))
        memory = None if self.memory == "auto" else _flag("memory", self.memory, "True, False or 'auto'")
        check_number("doubt", self.doubt, low=0, high=1)
        if isinstance(self.n_clusters, str):
            if self.n_clusters != "bic":
                raise ParameterError("n_clusters", self.n_clusters, "'bic' or a whole number of at least 1")
            n_clusters = None
        else:
            n_clusters = check_int("n_clusters", self.n_clusters, low=1, high=1000)
        return Plan(
            memory,
            self.markov,
            self.difficulty,
            n_words if self.words else 0,
            self._word_prior(votes),
            check_number("transition_prior", self.transition_prior, low=0, open_low=True),
            check_number("cluster_strength", self.cluster_strength, low=0),
            n_clusters,
            check_int("rounds", self.rounds, low=0),
            check_int("max_iter", self.max_iter, low=1),
            check_number("tol", self.tol, low=0),
        )

    def _word_prior(self, votes: Votes) -> float:
        """Return the pseudo-count of a word: words are believed the more the fewer votes a token has."""
        if self.word_prior is not None:
            return check_number("word_prior", self.word_prior, low=0, open_low=True)
        voices = Block(votes, 0, votes.n_tokens).voices
        per_token = votes.n_votes / max(1, int((voices > 0).sum()))
        return float(np.clip((per_token / MANY_VOTES) ** 2, *WORD_PRIORS))

    def _sampling(self, votes: Votes) -> dict[str, int] | None:
        """Return the numbers of chains, of sweeps to warm up and to keep; None for variational Bayes."""
        if check_choice("inference", self.inference, ("vb", "gibbs")) == "vb":
            return None
        if votes.soft is not None:
            raise ModelError(f"{self.name} cannot sample soft votes", hint="Take inference='vb'")
        return {
            "n_chains": check_int("n_chains", self.n_chains, low=1),
            "n_warmup": check_int("n_warmup", self.n_warmup, low=0),
            "n_samples": check_int("n_samples", self.n_samples, low=1),
        }

    def _text_model(self) -> TextModel | None:
        return text_model(
            self.text,
            l2=check_number("text_l2", self.text_l2, low=0, open_low=True),
            min_count=check_int("text_min_count", self.text_min_count, low=1),
            iterations=check_int("text_iterations", self.text_iterations, low=1),
        )

    # --- the result -----------------------------------------------------------------------------------------------

    def _posterior(self, run: Rounds, fit: Fit, draws: Samples | None) -> Posterior:
        labels, path = (fit.labels, fit.path) if draws is None else (draws.labels, draws.path)
        counts = fit.annotators.counts(fit.crowd if draws is None else draws.crowd)
        confusion = counts + confusion_prior(counts.shape[1], *LEAN)
        proba: npt.NDArray[np.floating] = labels
        clusters, scores = run.clusters(fit)
        diagnostics = run.diagnostics(fit) | {"bic": [vars(score) for score in scores]}
        if self.calibrate:
            proba, numbers = calibrated(fit, labels, self.doubt, sampled=draws is not None)
            diagnostics |= numbers
        trace = fit.trace
        if draws is not None:
            trace = draws.trace
            diagnostics |= {"chains_in_range": int(draws.in_range.sum()), "n_chains": len(trace)}
        return Posterior(
            proba,
            confusion / confusion.sum(axis=2, keepdims=True),
            path,
            clusters=clusters,
            trace=trace,
            diagnostics=diagnostics,
        )


def _flag(name: str, value: Any, allowed: str = "True or False") -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(name, value, allowed)
    return bool(value)

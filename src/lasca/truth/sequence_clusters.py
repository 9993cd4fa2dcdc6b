"""SequenceClusters: clusters of annotators, sequences, difficulty, and the text; `HierarchicalClusters(sequence=True)`.

The model is a chain learner (`chain`) whose states are labels at two levels of difficulty, with three sources:
annotators with or without memory, words, and a text model. Annotators' rows have cluster-level priors:
Ψ^l ~ Dir(base + κ · mean of the cluster of l), where `base` leans every row to be right. Inference in rounds
(`sequence_rounds`), each with fixed priors and fixed text evidence; in a round the objective never falls:

    1. without text, base priors: memory or not, and the start, are chosen by the evidence lower bound
    2. clusters of annotators from the expected counts (`clusters.py`), their priors, again
    3. `rounds` times: cross-fitted text model on the posterior (`text_models`) -> one more annotator, again
    4. labels: decoded from the posterior as it is; probabilities: tempered with the text as the referee, mixed with
       the text's own (`tempering`). Tempering is for people who read probabilities: it flattens tokens one by one, and
       a path decoded from it loses what holds a span together

Nothing here looks at gold labels. Beyond the paper (Lu, arXiv 2301.01579); annotators with memory are those of
Simpson & Gurevych (2019), words those of Nguyen et al. (2017).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from lasca.arrays import Codes
from lasca.corpus import CrowdCorpus
from lasca.corpus.shards import ShardedCorpus
from lasca.corpus.votes import Block
from lasca.engine import available_threads
from lasca.errors import ModelError, ParameterError
from lasca.estimator import check_int, choice, flag, generator, number, other, seeds, threads, whole
from lasca.truth.annotator_models import confusion_prior
from lasca.truth.base import Posterior, Progress, TruthModel, Votes
from lasca.truth.beside import Keep
from lasca.truth.chain import StateSpace, blocks_of, check_known, with_words
from lasca.truth.chain_sampler import Samples, sample_states
from lasca.truth.finish import Finish
from lasca.truth.sampled_text import MOST_TRAINED, SampledText
from lasca.truth.sequence_rounds import LEAN, Fit, Plan, Rounds, Word
from lasca.truth.starts import Meeting, dawid_skene_start
from lasca.truth.tempering import Calibration, calibrated, held_out_votes
from lasca.truth.text_models import CrossFit, TextModel, text_model

__all__ = ["SequenceClusters", "check_clusters"]

MANY_VOTES, WORD_PRIORS = 5.0, (0.1, 1.0)
"""With five votes a token, words have a pseudo-count of 1; with fewer, a smaller one."""


def check_clusters(name: str, value: Any) -> int | str:
    """Check a number of clusters."""
    if value == "bic":
        return str(value)
    if isinstance(value, str):
        raise ParameterError(name, value, "'bic' or a whole number of at least 1")
    return check_int(name, value, low=1, high=1000)


def _check_memory(name: str, value: Any) -> bool | str:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if value == "auto":
        return "auto"
    raise ParameterError(name, value, "True, False or 'auto'")


class SequenceClusters(TruthModel):
    """The truth from sequences, clusters of annotators, and the text. Each part can be switched off."""

    name = "hc-seq"
    summary = "clusters of annotators with levels of difficulty, label transitions, words and a text model"
    supports = frozenset({"known", "soft", "engine", "shards"})

    markov: bool = flag("labels depend on the label before, within the tag scheme", default=True)
    memory: bool | str = other(
        "what annotators give depends on what they gave before; 'auto': by the evidence",
        "True, False or 'auto'",
        default="auto",
        check=_check_memory,
    )
    words: bool = flag("labels emit words", default=True)
    difficulty: bool = flag("tokens have two levels, easy and hard, with rows of their own", default=True)
    cluster_strength: float = number("pseudo-counts of an annotator's cluster; 0: none", default=1.0, low=0)
    n_clusters: int | str = other(
        "clusters; 'bic': the best of 1 to 5",
        "'bic' or a whole number of at least 1",
        default="bic",
        check=check_clusters,
    )
    text: bool | str | TextModel = other(
        "a text model, cross-fitted over documents, votes as one more annotator; True: a CRF",
        "True, False, a text model or its name",
        default=True,
    )
    rounds: int = whole("how often it is trained at most, while held-out votes gain", default=3, low=0)
    folds: int = whole("folds of the cross-fitting", default=5, low=2)
    text_iterations: int = whole("iterations of the CRF each time", default=30, low=1)
    text_l2: float = number("penalty of the CRF", default=1.0, low=0, open_low=True)
    text_min_count: int = whole("how often a feature of the CRF occurs at least", default=2, low=1)
    calibrate: bool = flag(
        "temper probabilities by what the text (without it, held-out votes) says of them", default=True
    )
    doubt: float = number(
        "the share of all probability that the text's own word moves then", default=0.02, low=0, high=1
    )
    transition_prior: float = number("pseudo-count of a move", default=1.0, low=0, open_low=True)
    word_prior: float | None = number(
        "pseudo-count of a word", default=None, low=0, open_low=True, none="by the number of votes a token has"
    )
    inference: str = choice("Variational Bayes, or Gibbs sampling from where it ends", ("vb", "gibbs"), default="vb")
    n_chains: int = whole("chains of the sampler", default=2, low=1)
    n_warmup: int = whole("sweeps of a chain before any is kept", default=50, low=0)
    n_samples: int = whole("sweeps of a chain that are kept", default=100, low=1)
    max_iter: int = whole("iterations of a round at most", default=30, low=1)
    tol: float = number("a round stops when the objective rises by less than this per annotation", default=1e-5, low=0)
    seed: int | np.random.Generator = seeds(default=0)
    n_threads: int | None = threads(default=None)

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        check_known(corpus, votes, StateSpace.of(corpus.labels))
        sampled = self._sampling(votes)
        votes, n_words = with_words(corpus, votes)
        blocks, rng = blocks_of(votes), generator(self.seed)
        crf = {"l2": self.text_l2, "min_count": self.text_min_count, "iterations": self.text_iterations}
        reader = text_model(self.text, **crf)
        with self._work(Meeting(), blocks) as work:
            meeting, _, n_votes, n_tokens = work.summary()
        plan = self._plan(n_votes / max(1, n_tokens), n_words)
        start = dawid_skene_start(self, votes, hard=False)
        every = None if self.place is None else self.place.every
        with TemporaryDirectory(prefix="lasca-") as temporary:
            folder = None
            if isinstance(corpus, ShardedCorpus):
                folder = Path(temporary) if self.place is None else self.place.scratch
            run = Rounds(
                corpus.labels, votes, blocks, self._work, start, meeting / n_votes, plan, rng, progress,
                folder=folder, every=every,
            )  # fmt: skip
            fit = run.structure()
            fit = run.clustered(fit)
            warnings: tuple[str, ...] = ()
            if plan.rounds and reader is not None:
                fit, warnings = self._text_rounds(run, fit, corpus, reader, rng.spawn(1)[0])
            draws = None
            if sampled is not None:
                draws = sample_states(fit, rng=rng, **sampled, n_threads=self.n_threads)
            progress(0.95, "calibration")
            return replace(self._posterior(run, fit, draws), warnings=warnings)

    def _text_rounds(
        self, run: Rounds, fit: Fit, corpus: CrowdCorpus | ShardedCorpus, reader: TextModel, rng: np.random.Generator
    ) -> tuple[Fit, tuple[str, ...]]:
        """Train taggers on the posterior, and the posterior on taggers, as long as held-out votes are predicted better.

        With few votes the two soon believe each other more than the crowd; votes that were left out tell.
        """
        crossfit = self._crossfit(fit, corpus, reader, rng)
        if isinstance(crossfit, SampledText) and not hasattr(crossfit.task, "elsewhere"):
            said = f"{type(crossfit.task).__name__} has no `elsewhere`, to read more than {MOST_TRAINED:,} tokens with"
            return fit, (f"the text was not heard: {said}",)
        best, score = fit, -np.inf
        for done in range(run.plan.rounds if crossfit.possible else 0):
            run.reach(0.2 + 0.7 * done / run.plan.rounds, f"text, round {done + 1}")
            heard = best.saying(self._heard(best, crossfit, Keep(run.folder, f"text-{done}")))
            fit = run.told(f"text {done + 1}", heard)
            heard.forget()
            held_out = float(held_out_votes(fit)[1].max())
            if held_out < score:
                fit.forget()
                break
            best.forget()
            best, score = fit, held_out
        return best, ()

    def _crossfit(self, fit: Fit, corpus: Any, reader: TextModel, rng: np.random.Generator) -> CrossFit | SampledText:
        """Return what trains taggers, of a large corpus on a sample."""
        folds, n_threads = self.folds, available_threads(self.n_threads)
        if corpus.n_tokens > MOST_TRAINED:
            visit, salt = partial(self._visited, fit.blocks), int(rng.integers(1 << 32))
            return SampledText(
                corpus, reader, visit, most=MOST_TRAINED, folds=folds, salt=salt, n_threads=n_threads
            )  # fmt: skip
        whole = corpus.whole() if isinstance(corpus, ShardedCorpus) else corpus
        return CrossFit(whole, reader, rng, folds=folds, n_threads=n_threads)

    def _heard(self, fit: Fit, crossfit: CrossFit | SampledText, keep: Keep) -> list[Any]:
        """Train taggers on what a fit says; return what its blocks are to hold: what the taggers say."""
        if isinstance(crossfit, SampledText):
            return crossfit(partial(self._visited, fit.blocks), keep, self.engine)
        text = crossfit(fit.labels, self.engine)
        return [keep(block.number, Word(text[block.first : block.last])) for block in fit.blocks]

    # --- parameters ---------------------------------------------------------------------------------------------------

    def _plan(self, per_token: float, n_words: int) -> Plan:
        return Plan(
            None if self.memory == "auto" else bool(self.memory),
            self.markov,
            self.difficulty,
            n_words if self.words else 0,
            self._word_prior(per_token),
            self.transition_prior,
            self.cluster_strength,
            None if isinstance(self.n_clusters, str) else self.n_clusters,
            self.rounds,
            self.max_iter,
            self.tol,
        )

    def _word_prior(self, per_token: float) -> float:
        """Return the pseudo-count of a word: words are believed the more the fewer votes a token has."""
        if self.word_prior is not None:
            return self.word_prior
        return float(np.clip((per_token / MANY_VOTES) ** 2, *WORD_PRIORS))

    def _sampling(self, votes: Votes) -> dict[str, int] | None:
        """Return the numbers of chains, of sweeps to warm up and to keep; None for variational Bayes."""
        if self.inference == "vb":
            return None
        if votes.soft is not None:
            raise ModelError(f"{self.name} cannot sample soft votes", hint="Take inference='vb'")
        return {"n_chains": self.n_chains, "n_warmup": self.n_warmup, "n_samples": self.n_samples}

    # --- the result -----------------------------------------------------------------------------------------------

    def _posterior(self, run: Rounds, fit: Fit, draws: Samples | None) -> Posterior:
        counts = fit.annotators.counts(fit.crowd if draws is None else draws.crowd)
        confusion = counts + confusion_prior(counts.shape[1], *LEAN)
        clusters, scores = run.clusters(fit)
        diagnostics = run.diagnostics(fit) | {"bic": [vars(score) for score in scores]}
        trace, kept = fit.trace, {}
        if draws is not None:
            trace, kept = draws.trace, {"draws.log_joint": draws.trace[:, self.n_warmup :]}
        said, calibration = fit if draws is None else draws.fit, None
        if self.calibrate:
            said, calibration, numbers = calibrated(said, self.doubt, most=MOST_TRAINED, sampled=draws is not None)
            diagnostics |= numbers
        if draws is not None:
            diagnostics |= {"chains_in_range": int(draws.in_range.sum()), "n_chains": len(trace)}
        with self._work(Ending(), said.blocks) as work:
            posterior, _ = self._finished(work, calibration, Finish())
        return replace(
            posterior,
            confusion=confusion / confusion.sum(axis=2, keepdims=True),
            clusters=clusters,
            trace=trace,
            diagnostics=diagnostics,
            statistics=kept,
        )


@dataclass(frozen=True)
class Ending:
    """Describes blocks at the end, by what lies beside them."""

    def describe(self, calibration: Calibration | None, block: Block, local: None, out: Any) -> tuple[Codes, tuple[()]]:
        """Write the probabilities to `out`; return the labels."""
        out[:] = block.beside.mean if calibration is None else calibration.proba(block.beside)
        path: Codes = block.beside.path
        return path, ()

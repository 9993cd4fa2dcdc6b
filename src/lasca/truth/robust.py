"""RobustSequence: the default. An average of chain models that a crowd cannot easily lead astray.

No single model is best on every crowd: memory helps where annotators mark long spans and harms where there are few
votes; priors learned from the crowd help where everybody misses much and harm where annotators are unlike each other.
What cannot be known is averaged over, and what a member assumes must be earned: with few spans memory under fixed
priors says little and the plainest member much; where spans are long no member without memory does (`_say`). The
members (`MEMBERS`, see `robust_chain`) share their guards – silence, unanimity, rates – and the votes of a family
(`families`) weigh as the family does. Then the text may have a say, if it has earned one:

    1. families: who repeats whom; their votes get weights
    2. each member by variational Bayes; the mean of their probabilities
    3. up to `rounds` times: a text model, cross-fitted over documents on the mean. If its out-of-fold labels agree with
       the inferred ones (span F1 of at least `LEAST_AGREEMENT`; accuracy where labels are not spans) it is one more
       source for every member, which learn its confusion; else the text stays out
    4. labels: the legal path with the most tokens expected to be right under the mean; then probabilities are
       tempered so that they predict the text's labels best (`tempering`), where there is text

`confusion`, `clusters` and `reliability` are those of the mean: expected counts under its probabilities. Nothing here
looks at gold labels. Measured on the crowds of experiments/crowds (docs/crowds.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lasca import evaluate
from lasca.corpus import CrowdCorpus
from lasca.engine import available_threads
from lasca.errors import ModelError
from lasca.estimator import flag, generator, number, other, seeds, threads, whole
from lasca.schemes import detect, transitions
from lasca.truth.annotator_models import confusion_prior
from lasca.truth.base import Posterior, Progress, TruthModel, Votes
from lasca.truth.checks import check_average
from lasca.truth.clusters import found_clusters
from lasca.truth.evidence import Floats, word_rows
from lasca.truth.families import Families, declared_families, find_families
from lasca.truth.guards import Crowd, kinds_of_marks
from lasca.truth.robust_chain import TEXT_PRIOR, ChainFit, RobustChain, Structure
from lasca.truth.sequence import Chain, best_paths
from lasca.truth.sequence_rounds import LEAN
from lasca.truth.starts import start_evidence
from lasca.truth.tempering import advised, doubted, referee, tempered
from lasca.truth.text_models import CrossFit, TextModel, document_codes, text_model

__all__ = ["RobustSequence"]

EASY_AND_HARD = ((5.0, 0.5), (5.0, 5.0))
ALIKE = ((11.0, 10.0),)
MEMBERS = (
    Structure("memory, two levels", True, EASY_AND_HARD, learned=False),
    Structure("memory, one level", True, ALIKE, learned=False),
    Structure("memory, two levels, learned priors", True, EASY_AND_HARD, learned=True),
    Structure("no memory, two levels, learned priors", False, EASY_AND_HARD, learned=True),
    Structure("no memory, one level", False, ALIKE, learned=False),
)
WITHOUT_SPANS = (
    Structure("no memory, two levels", False, ((50.0, 10.0), (15.0, 35.0)), learned=False),
    Structure("no memory, two levels, learned priors", False, EASY_AND_HARD, learned=True),
    Structure("memory, two levels, learned priors", True, EASY_AND_HARD, learned=True),
)
"""The members where labels are not spans: every token is a decision of its own, and there is little to remember."""
ONE_LEVEL = (
    Structure("memory, one level", True, ALIKE, learned=False),
    Structure("no memory, one level, learned priors", False, ALIKE, learned=True),
)
"""The members where votes do not meet (difficulty shows only where they do), and where two levels would be more than
`MOST_STATES` states (the work grows with their square)."""
ENOUGH = 1300
"""Runs of marks (spans that somebody marked) at which memory under fixed priors says half of what it may say, and the
plainest member half as much as at the beginning."""
LEAST_SAY = 0.05
"""Who would say less is not asked."""
MANY, LONG = 2000, 3.0
"""Marks, and length of their runs, from which a member without memory overcounts: an annotator's votes along a span are
one decision."""
MOST_STATES = 40
LEAST_AGREEMENT = 0.4
DOUBT = 0.02
"""The share of all probability that the text's own word moves, in the probabilities that are reported."""
LEAST_SPANS = 300
"""From fewer spans than this a tagger learns names by heart, and little else."""
SAMPLE, MOST_TRAINED = 60_000, 250_000
"""Tokens on which a large corpus tries whether the text has anything to say, and on which a fold is trained at most."""


class RobustSequence(TruthModel):
    """The truth as an average of chain models with guards. Each part can be switched off."""

    name = "robust"
    summary = "The default: an average of chain models with guards against drift, copies and lazy annotators"
    supports = frozenset({"known", "soft", "families"})

    words: bool = flag("labels emit words", default=True)
    text: bool | str | TextModel = other(
        "a text model, cross-fitted over documents, joins where it has earned a say; True: a CRF",
        "True, False, a text model or its name",
        default=True,
    )
    rounds: int = whole("how often it is trained", default=2, low=0)
    folds: int = whole("folds of the cross-fitting", default=3, low=2)
    text_iterations: int = whole("iterations of the CRF each time", default=30, low=1)
    text_l2: float = number("penalty of the CRF", default=1.0, low=0, open_low=True)
    text_min_count: int = whole("how often a feature of the CRF occurs at least", default=2, low=1)
    families: bool = flag("look for annotators who repeat each other; families the corpus declares count", default=True)
    calibrate: bool = flag("temper probabilities by what the text says of them", default=True)
    max_iter: int = whole("iterations of a member at most", default=30, low=1)
    tol: float = number(
        "a member stops when probabilities move by less than this per expected mark", default=1e-3, low=0
    )
    seed: int | np.random.Generator = seeds(default=0)
    n_threads: int | None = threads(default=None)

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        if len(votes.label) == 0:
            raise ModelError(
                f"{self.name} needs hard votes beside the soft ones", hint="Take another model: ds takes soft votes"
            )
        rng = generator(self.seed)
        crf = {"l2": self.text_l2, "min_count": self.text_min_count, "iterations": self.text_iterations}
        reader = text_model(self.text, **crf)
        progress(0.0, "families")
        outside = corpus.labels.index("O") if "O" in corpus.labels else -1
        families = (
            find_families(votes, corpus.families, outside) if self.families else declared_families(corpus.families)
        )
        words = word_rows(corpus) if self.words else None
        crowd = Crowd.of(corpus, votes, families.weights(votes), words, available_threads(self.n_threads))
        soft = _soft_sources(votes)
        run = _Average(crowd, soft, self.max_iter, self.tol, progress)
        start = start_evidence(corpus, families.one_each(votes), hard=False)
        fits = run.members(start, (), 0.0, 0.35)
        mean = run.mean(fits)
        plain = mean
        text, agreement, crossfit = None, None, None
        for done in range(0 if reader is None else self.rounds):
            begin = 0.4 + 0.55 * done / self.rounds
            progress(begin, f"text, round {done + 1}")
            if done == 0 and reader is not None:
                crossfit, agreement = self._crossfit(reader, crowd, mean, rng)
            if crossfit is None:
                break
            text = crossfit(mean)
            agreement = _agreement_on(corpus, text, mean)
            if agreement < LEAST_AGREEMENT:
                text = None
                break
            fits = run.members(start, (text,), begin + 0.2, begin + 0.5)
            mean = run.mean(fits)
        progress(0.97, "result")
        return self._posterior(crowd, families, fits, mean, plain, text, agreement)

    def _crossfit(
        self, reader: TextModel, crowd: Crowd, mean: Floats, rng: np.random.Generator
    ) -> tuple[CrossFit | None, float | None]:
        """Return what trains taggers, or None where the text has nothing to say; a large corpus asks a sample first."""
        corpus, salt = crowd.corpus, int(rng.integers(1 << 32))
        if crowd.outside >= 0 and _n_spans(crowd, mean) < LEAST_SPANS:
            return None, None
        if corpus.n_tokens > MOST_TRAINED:
            sample = _some_documents(corpus, SAMPLE, salt)
            part = corpus.select(sequences=np.flatnonzero(sample))
            tokens = np.repeat(sample, np.diff(corpus.offsets))
            tried = self._taggers(reader, part, salt, crowd.n_threads)
            own = np.ascontiguousarray(mean[tokens])
            if not tried.possible:
                return None, None
            found = _agreement_on(part, tried(own), own)
            if found < LEAST_AGREEMENT:
                return None, found
        crossfit = self._taggers(reader, corpus, salt, crowd.n_threads)
        if corpus.n_tokens > MOST_TRAINED:
            crossfit.trained = crossfit.trained & _some_documents(corpus, MOST_TRAINED, salt)
        return (crossfit if crossfit.possible else None), None

    def _taggers(self, reader: TextModel, corpus: CrowdCorpus, salt: int, n_threads: int) -> CrossFit:
        return CrossFit(corpus, reader, np.random.default_rng(salt), folds=self.folds, n_threads=n_threads)

    def _posterior(
        self,
        crowd: Crowd,
        families: Families,
        fits: list[tuple[Structure, ChainFit]],
        mean: Floats,
        plain: Floats,
        text: npt.NDArray[np.float32] | None,
        agreement: float | None,
    ) -> Posterior:
        corpus, votes, T = crowd.corpus, crowd.votes, crowd.votes.n_labels
        labels = _decoded(crowd, mean)
        proba: npt.NDArray[np.floating] = mean
        temperature = 1.0
        if text is not None and self.calibrate:
            voted = votes.voted
            found = referee(plain[voted], text[voted].astype(np.float64), confusion_prior(T, *TEXT_PRIOR))
            proba = advised(tempered(plain, found.tau), text.astype(np.float64), found.confusion)
            proba, temperature = doubted(proba, text, DOUBT)[0], 1 / found.tau
        counts = _counts(crowd, mean)
        clusters, scores = found_clusters(counts, None, confusion_prior(T, *LEAN))
        confusion = counts + confusion_prior(T, *LEAN)
        count_as = {
            tuple(corpus.annotators[m] for m in group): families.counts_as(group) for group in families.members()
        }
        kinds = ["all" if kind is None else kind or "no type" for kind in kinds_of_marks(corpus.labels)]
        longest = max((fit.trace for _, fit in fits), key=len)
        return Posterior(
            proba,
            confusion / confusion.sum(axis=2, keepdims=True),
            labels,
            clusters=clusters,
            trace=longest,
            diagnostics={
                "members": [
                    {
                        "name": structure.name,
                        "iterations": len(fit.trace),
                        "converged": fit.converged,
                        "objective": float(fit.trace[-1]),
                        "held": {
                            "all" if kinds[i] is None else kinds[i] or "no type": float(fit.held[i])
                            for i in np.flatnonzero(fit.held)
                        },
                    }
                    for structure, fit in fits
                ],
                "iterations": len(longest),
                "converged": all(fit.converged for _, fit in fits),
                "families": [list(names) for names in count_as],
                "text": text is not None,
                "text_agreement": agreement,
                "temperature": temperature,
                "votes_that_meet": crowd.meet,
                "bic": [vars(score) for score in scores],
            },
            warnings=check_average(crowd, fits, count_as, labels, _decoded(crowd, plain)),
        )


class _Average:
    """The members at work."""

    def __init__(
        self,
        crowd: Crowd,
        soft: Sequence[npt.NDArray[np.float32]],
        max_iter: int,
        tol: float,
        progress: Progress,
    ) -> None:
        self.crowd, self.soft, self.max_iter, self.tol, self.progress = crowd, tuple(soft), max_iter, tol, progress
        spans = detect(crowd.corpus.labels) is not None
        two_levels = crowd.meet > 0.5 and 2 * crowd.votes.n_labels <= MOST_STATES
        structures = ONE_LEVEL if not two_levels else MEMBERS if spans else WITHOUT_SPANS
        say = {structure: _say(crowd, structure) if structures is MEMBERS else 1.0 for structure in structures}
        self.say = {structure: word for structure, word in say.items() if word >= LEAST_SAY}

    def members(
        self, start: npt.NDArray[np.floating], texts: tuple[npt.NDArray[np.float32], ...], begin: float, end: float
    ) -> list[tuple[Structure, ChainFit]]:
        """Fit every member from the same start."""
        fits = []
        for i, structure in enumerate(self.say):
            self.progress(begin + (end - begin) * i / len(self.say), structure.name)
            fit = RobustChain(self.crowd, structure, self.soft + texts).fit(  # one chain in memory at a time
                _meeting(self.crowd, start), self.max_iter, self.tol
            )
            fits.append((structure, fit))
        return fits

    def mean(self, fits: Sequence[tuple[Structure, ChainFit]]) -> Floats:
        """Return the members' mean, each by its say."""
        total = np.zeros_like(fits[0][1].labels)
        for structure, fit in fits:
            total += self.say[structure] / sum(self.say.values()) * fit.labels
        return total


def _say(crowd: Crowd, structure: Structure) -> float:
    """Return how much a member of `MEMBERS` says: what it assumes must be earned, and spans must not be overcounted."""
    if structure.memory:
        return 1.0 if structure.learned else 1.0 - _few(crowd)
    if not structure.learned:
        return _few(crowd)
    return 1.0 / (1.0 + (crowd.marks / MANY * max(0.0, 1.0 - LONG / crowd.run_length)) ** 2)


def _meeting(crowd: Crowd, start: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Return a start as far as Dawid–Skene can judge votes; else the votes' shares are the start.

    Alone, votes cannot be judged; of two that differ nobody can say who missed something and who invented it, unless
    the annotators are known from many others. (Where it cannot be known, Dawid–Skene takes rare marks for inventions.
    People miss far more than they invent.)
    """
    votes = crowd.votes
    n = np.diff(votes.start)
    by_shares = max(1.0 - crowd.meet, _few(crowd) * float(n[n < 3].sum() / n.sum()))
    if by_shares < 1e-3:
        return start
    shares = np.full((votes.n_tokens, votes.n_labels), 1e-3)
    np.add.at(shares, (crowd.token, votes.label), 1.0 / n[crowd.token])
    return np.asarray(np.log((1 - by_shares) * np.exp(start) + by_shares * shares))


def _few(crowd: Crowd) -> float:
    """Return 1 where there are hardly any runs of marks, a half where there are `ENOUGH`, 0 where there are many."""
    return 1.0 / (1.0 + (crowd.marks / crowd.run_length / ENOUGH) ** 2) if crowd.marks else 0.0


def _decoded(crowd: Crowd, proba: Floats) -> npt.NDArray[np.int16]:
    """Return the legal path with the most tokens expected to be right; what is known stays."""
    first, allowed, last = (np.asarray(rule, dtype=float) for rule in transitions(crowd.corpus.labels))
    return best_paths(crowd.votes.offsets, Chain(first, allowed, last), (), crowd.n_threads, proba)


def _counts(crowd: Crowd, proba: Floats) -> Floats:
    """Return expected counts (annotator, true, given)."""
    votes, T = crowd.votes, crowd.votes.n_labels
    cell = votes.annotator.astype(np.int64) * T + votes.label
    counts = np.empty((votes.n_annotators * T, T))
    for t in range(T):
        counts[:, t] = np.bincount(cell, weights=proba[crowd.token, t], minlength=len(counts))
    return np.ascontiguousarray(counts.reshape(votes.n_annotators, T, T).transpose(0, 2, 1))


def _soft_sources(votes: Votes) -> list[npt.NDArray[np.float32]]:
    """Return the soft votes of each annotator who gives any, one row per token, zeros where they say nothing."""
    if votes.soft is None:
        return []
    found = []
    for annotator in np.unique(votes.soft.annotator):
        own = votes.soft.annotator == annotator
        rows = np.zeros((votes.n_tokens, votes.n_labels), np.float32)
        rows[votes.soft.token[own]] = votes.soft.proba[own]
        found.append(rows)
    return found


def _n_spans(crowd: Crowd, mean: Floats) -> int:
    """Return how many runs of marks were inferred."""
    marked = _decoded(crowd, mean) != crowd.outside
    return int((marked & ~np.concatenate(([False], marked[:-1]))).sum())


def _agreement_on(corpus: CrowdCorpus, text: npt.NDArray[np.float32], mean: Floats) -> float:
    """Return how well out-of-fold taggers find what was inferred: span F1, or accuracy where labels are not spans."""
    first, allowed, last = (np.asarray(rule, dtype=float) for rule in transitions(corpus.labels))
    rules = Chain(first, allowed, last)
    inferred, tagged = (
        best_paths(corpus.offsets, rules, (), 1, np.ascontiguousarray(p, dtype=np.float64)) for p in (mean, text)
    )
    if detect(corpus.labels) is None:
        voted = np.repeat(corpus.annotated_sequences, np.diff(corpus.offsets))
        return float((inferred == tagged)[voted].mean())
    scores = evaluate.spans_from_codes(
        inferred, tagged, corpus.offsets, corpus.labels, sequences=corpus.annotated_sequences
    )
    return float(scores.f1)


def _some_documents(corpus: CrowdCorpus, n_tokens: int, salt: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the sequences of documents, drawn at random, that have about so many tokens in all."""
    documents = document_codes(corpus)
    order = np.random.default_rng(salt).permutation(int(documents.max()) + 1)
    size = np.bincount(documents, weights=np.diff(corpus.offsets), minlength=len(order))
    taken = order[np.cumsum(size[order]) <= n_tokens]
    return np.asarray(np.isin(documents, taken if len(taken) else order[:1]))

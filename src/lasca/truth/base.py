"""What every truth model shares: the checks before, the arrays a kernel sees, and the result made of a posterior."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, cast, dataclass_transform

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.special import betaincinv

from lasca.arrays import Array, Bools, Floats, Ints
from lasca.corpus import CrowdCorpus, KnownLabels, Strings, free_text, need_corpus
from lasca.corpus.shards import ShardedCorpus
from lasca.corpus.votes import Block, Votes
from lasca.engine import Engine, Threads, Work, added
from lasca.errors import ModelError, ParameterError, count, excerpt
from lasca.estimator import Estimator, Progress, choice, flag, number, other, seeds, threads, tolerance, whole
from lasca.learn import Checkpoint, EmRun, loop_settings, run_learner
from lasca.truth.checks import check_end, check_truth
from lasca.truth.finish import Finish, Tally, counted_confusion, joined
from lasca.truth.result import Clusters, Truth

__all__ = ["Posterior", "Progress", "TruthModel", "Votes", "Workplace", "annotator_table"]


@dataclass(frozen=True)
class Posterior:
    """What a model's inference gives back; `TruthModel.fit` makes a Truth of it."""

    proba: Any
    """(n_tokens, n_labels), which `fit` may write to and makes add up to 1; None: they are in parts elsewhere."""
    confusion: Array | None = None
    """(n_annotators, n_labels, n_labels), or None: then it is counted from `proba`."""
    labels: Array | None = None
    """The decoded labels, or None: then the most probable label of each token, the first one where they tie."""
    clusters: Clusters | None = None
    trace: Floats = field(default_factory=lambda: np.zeros(0))
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    statistics: Mapping[str, Array] = field(default_factory=dict)
    """What the parameters were made of (expected counts): a later fit can go on from there (`history=`)."""
    voted: Bools | None = None
    """Whether anything is said of a token; filled in at the end of a fit."""
    tally: Tally | None = None
    """What was counted while the blocks were finished; None: `proba` and `labels` are as the model left them."""


@dataclass(frozen=True)
class Workplace:
    """Where work on a sharded corpus leaves its files."""

    scratch: Path
    """A folder for the checkpoint of the loop, and for what learners remember of blocks."""
    write: Callable[[Finish], Any]
    """Makes of what finishes a block something that also writes it, and sends nothing of it back."""
    every: int = 10
    """After how many steps there is a checkpoint."""


MAX_TABLES = 4 * 2**30  # bytes of a confusion matrix for every annotator; models keep a few of them
SUPPORTS = {
    "known": "known labels",
    "soft": "soft votes",
    "families": "families of annotators",
    "update": "history=: going on from an earlier truth",
    "engine": "an engine: a cluster instead of threads",
    "shards": "a corpus that does not fit into memory, block by block",
}
"""What a model may be able to take, and how it is called in messages."""


@dataclass_transform(
    kw_only_default=True, field_specifiers=(number, whole, flag, choice, other, seeds, threads, tolerance)
)
class TruthModel(Estimator, ABC):
    """A model that infers the true labels from the crowd's. Subclasses give `name`, `summary` and `_infer`."""

    name: ClassVar[str]
    """The short name, as on the command line."""
    summary: ClassVar[str] = ""
    """What the model is, in one line."""
    supports: ClassVar[frozenset[str]] = frozenset()
    """What it can take beyond hard votes: some of the keys of `SUPPORTS`."""

    def fit(
        self,
        corpus: CrowdCorpus | ShardedCorpus,
        *,
        known: npt.ArrayLike | KnownLabels | None = None,
        history: Truth | None = None,
        progress: Progress | None = None,
    ) -> Truth:
        """Infer the true labels, their probabilities, and what each annotator is worth.

        A sharded corpus is read block by block if the model supports "shards", as a whole otherwise.

        `known` are labels that are known beforehand, as `CrowdCorpus.with_known` takes them (they replace those of
        the corpus); `history` is an earlier truth of the same model to go on from: what it learned of annotators
        and labels, matched by name, counts as it was.
        """
        model = self.checked()
        if isinstance(corpus, ShardedCorpus) and (known is not None or "shards" not in self.supports):
            corpus = corpus.whole()
        if not isinstance(corpus, ShardedCorpus):
            need_corpus(corpus, f"{self.name}.fit")
            corpus = corpus if known is None else corpus.with_known(known)
        if corpus.n_tokens == 0:
            raise ModelError("the corpus has no tokens: there is nothing to infer")
        votes: Any = corpus.crowd_votes() if isinstance(corpus, ShardedCorpus) else Votes.of(corpus)
        if votes.n_votes == 0:
            raise ModelError("nobody labelled anything: there is nothing to infer", hint=_no_votes(corpus))
        _check_size(corpus)
        self._check_support(votes, history)
        ignored = self._ignored(corpus)
        if history is None:
            posterior = model._infer(cast(CrowdCorpus, corpus), votes, progress or _silent)
        else:
            posterior = model._update(cast(CrowdCorpus, corpus), votes, history, progress or _silent)
        if not isinstance(posterior, Posterior):
            raise ModelError(f"{self.name} must give back a lasca.truth.Posterior", got=type(posterior).__name__)
        if posterior.tally is None:
            _check_proba(self.name, posterior.proba, (votes.n_tokens, votes.n_labels))
            posterior = _finished_whole(votes, posterior, is_fresh=history is None)
        said = check_end(posterior.diagnostics) + posterior.warnings + ignored + _forgotten(history, corpus)
        return _truth(self, corpus, votes, replace(posterior, warnings=said))

    @abstractmethod
    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        """Run the inference; declared parameters are checked already."""

    engine = cast("Engine | None", None)
    """What runs the visits of a learner; None: the threads of this process. Not a parameter: it changes no byte."""
    place = cast("Workplace | None", None)
    """Where learners leave files while they are at work on a sharded corpus."""

    def _work(self, learner: Any, blocks: Sequence[Any], scratch: Path | None = None) -> closing[Work]:
        """Open work on blocks, for models that are learners; `scratch`: a folder of its own for what it remembers."""
        engine = self.engine or Threads(getattr(self, "n_threads", None))
        return closing(engine.open(learner, blocks, scratch or (None if self.place is None else self.place.scratch)))

    def _visited(self, blocks: Sequence[Any], function: Callable[[Any, Any], Any], state: Any) -> list[Any]:
        """Return function(state, block) of every block; what is in memory is not sent elsewhere."""
        engine = (None if isinstance(blocks[0], Block) else self.engine) or Threads(getattr(self, "n_threads", None))
        with closing(engine.open(None, blocks)) as work:
            return work.map(function, state)

    def _learned(
        self,
        learner: Any,
        blocks: Sequence[Any],
        votes: Any,
        progress: Progress,
        *,
        is_fresh: bool = True,
        decodes: bool = False,
        counts: bool = False,
        lucky: bool = False,
        settle: bool = False,
    ) -> tuple[EmRun[Any], Posterior, tuple[Any, ...]]:
        """Run a learner and finish its blocks: the best run, the posterior without annotators, the last statistics.

        `decodes`: the learner chooses the labels itself; `counts`: confusions are counted from the probabilities;
        `is_fresh`: there is no history; `lucky` and `settle` are those of `run_learner`.
        """
        as_said = is_fresh and not decodes and votes.is_sole
        checkpoint = None
        if self.place is not None:
            checkpoint = Checkpoint(self.place.scratch / "checkpoint", self.place.every)
        with self._work(learner, blocks) as work:
            run = run_learner(
                learner,
                work,
                loop_settings(self),
                scale=votes.n_votes,
                progress=progress,
                lucky=lucky,
                settle=settle,
                checkpoint=checkpoint,
            )
            posterior, statistics = self._finished(work, run.state, Finish(as_said, counts or as_said))
        return run, replace(posterior, trace=run.trace, diagnostics=run.diagnostics()), statistics

    def _finished(self, work: Work, state: Any, finish: Finish) -> tuple[Posterior, tuple[Any, ...]]:
        """Let a learner describe all blocks and finish them, where they are; return the sum of its statistics too."""
        parts = work.describe(state, finish if self.place is None else self.place.write(finish))
        work.reset()  # what was kept of the blocks makes room
        posterior = Posterior(
            joined([part.proba for part in parts]),
            labels=joined([part.labels for part in parts]),
            voted=joined([part.voted for part in parts]),
            tally=Tally(*added([part.tally for part in parts])),
        )
        return posterior, added([part.statistics for part in parts])

    def _update(self, corpus: CrowdCorpus, votes: Votes, history: Truth, progress: Progress) -> Posterior:
        """Run the inference from an earlier truth on; for models that support "update"."""
        raise NotImplementedError(f'{self.name} says that it supports "update", but has no _update')

    def _check_support(self, votes: Votes, history: Truth | None) -> None:
        """Refuse by name what this model cannot take."""
        given = {"known": votes.known, "soft": votes.soft, "update": history, "engine": self.engine}
        for what, value in given.items():
            if value is not None and what not in self.supports:
                raise ModelError(f"{self.name} cannot take {SUPPORTS[what]}", hint=_without(what))
        if history is not None and not isinstance(history, Truth):
            raise ParameterError("history", history, "a Truth that the same model gave")
        if history is not None and history.model != self.name:
            raise ModelError(
                f"{self.name} cannot go on from a truth of another model", got=history.model, hint=_without("update")
            )

    def _ignored(self, corpus: CrowdCorpus | ShardedCorpus) -> tuple[str, ...]:
        """Say what this model was given and does not look at."""
        if "families" in self.supports or all(family is None for family in corpus.families):
            return ()
        return (f"{self.name} does not know families of annotators: everybody counts as one voice",)


def _forgotten(history: Truth | None, corpus: CrowdCorpus | ShardedCorpus) -> tuple[str, ...]:
    """Name the annotators of an earlier truth whom the corpus does not know: what was learned of them is not kept."""
    known = set(corpus.annotators)
    lost = [] if history is None else [x for x in history.annotators.column("name").to_pylist() if x not in known]
    if not lost:
        return ()
    return (
        f"what was learned of {count(len(lost), 'annotator')} of the history is left out, for this corpus does not "
        f"know them: {excerpt(', '.join(lost), 200)}",
    )


def _no_votes(corpus: Any) -> str:
    """Say where the labels are that do not vote."""
    if "model" in corpus.kinds and not all(corpus.votes):
        return "The labels are those of models, who vote if asked: voters=all (on the command line: -r voters=all)"
    if corpus.annotators and not any(corpus.votes):
        return "Nobody of those who gave labels votes: corpus.with_voters says who does"
    if corpus.golds:
        return (
            "The labels are those of one gold, which is decided already. If they are one annotator's work among "
            "several, give the files of all of them together; a tagger is taught by a gold alone with lasca train"
        )
    return "Check the load report"


def _check_size(corpus: Any) -> None:
    """Refuse labels that are free text, and tables of labels by labels for every annotator that fit no memory."""
    said = free_text(corpus)
    if said is not None:
        raise ModelError(said, got=", ".join(corpus.labels[:4]), hint="Take what holds labels, or merge rare ones")
    size = 8 * max(corpus.n_annotators, 1) * corpus.n_labels**2
    if size > MAX_TABLES:
        raise ModelError(
            f"{corpus.n_labels:,} labels and {corpus.n_annotators:,} annotators need tables of {size / 2**30:.0f} GiB",
            hint=f"At most {MAX_TABLES // 2**30} GiB are possible: merge rare labels, or leave out annotators",
        )


def _silent(share: float, words: str) -> None:
    pass


def _without(what: str) -> str:
    """Say how to go on without what a model cannot take."""
    return {
        "known": "Take another model (lasca.truth.supporting('known')), or forget them: corpus.with_known(None)",
        "soft": "Take another model (lasca.truth.supporting('soft')), or leave out who gives them: corpus.with_voters",
        "update": "Fit without history=, or take another model (lasca.truth.supporting('update'))",
        "engine": "Leave engine at None: threads; or take another model (lasca.truth.supporting('engine'))",
    }[what]


def _check_proba(name: str, proba: Any, shape: tuple[int, int]) -> None:
    """Say what is wrong with the probabilities of a model, before kernels run over them."""
    found = np.asarray(proba)
    if found.shape != shape:
        raise ModelError(f"{name} must give {shape} probabilities, a row for each token", got=found.shape)
    if found.min() < 0:
        raise ModelError(f"{name} gave a probability below 0", got=float(found.min()))


def _finished_whole(votes: Votes, posterior: Posterior, *, is_fresh: bool) -> Posterior:
    """Finish the corpus as one block, for models that are no learners."""
    as_said = is_fresh and posterior.labels is None and votes.is_sole
    finish = Finish(as_said, posterior.confusion is None or as_said)
    proba = np.require(posterior.proba, np.float32, ["C", "W"])
    part = finish(0, Block(votes, 0, votes.n_tokens), proba, posterior.labels, ())
    return replace(posterior, proba=part.proba, labels=part.labels, voted=part.voted, tally=part.tally)


def _truth(model: TruthModel, corpus: Any, votes: Any, posterior: Posterior) -> Truth:
    """Make the record; where the probabilities are elsewhere, it says nothing of single tokens."""
    proba, labels, voted, tally = posterior.proba, posterior.labels, posterior.voted, posterior.tally
    assert tally is not None
    offsets, ids = np.zeros(1, np.int64), Strings([])
    if proba is None or labels is None or voted is None:
        proba, labels, voted = np.zeros((0, corpus.n_labels), np.float32), np.zeros(0, np.int16), np.zeros(0, np.bool_)
    elif isinstance(corpus, ShardedCorpus):
        offsets, ids = corpus.sequences(0, corpus.n_tokens)
    else:
        offsets, ids = corpus.offsets.copy(), corpus.sequence_ids
    confusion = counted_confusion(tally) if tally.counts.size else posterior.confusion
    return Truth(
        model=model.name,
        params=model.get_params(),
        label_names=corpus.labels,
        offsets=offsets,
        sequence_ids=ids,
        labels=labels,
        proba=proba,
        annotators=annotator_table(corpus, tally.n, tally.right, posterior.clusters),
        confusion=np.ascontiguousarray(confusion, dtype=np.float32),
        clusters=posterior.clusters,
        trace=np.asarray(posterior.trace, dtype=np.float64),
        diagnostics=posterior.diagnostics,
        warnings=posterior.warnings + check_truth(corpus.labels, tally) + _identifiability(votes, tally),
        voted=voted,
        statistics=posterior.statistics,
    )


def annotator_table(corpus: Any, n: Ints, right: Array, clusters: Clusters | None) -> Any:
    """Reliability = expected share of an annotator's labels that are true, with a 95 % interval (Jeffreys)."""
    wrong = np.maximum(n - right, 0)
    if clusters is None:
        cluster = pa.nulls(len(n), pa.int32())
    else:
        cluster = pa.array(clusters.assignment, pa.int32(), mask=clusters.assignment < 0)
    return pa.table(
        {
            "name": pa.array(corpus.annotators, pa.string()),
            "role": pa.array(corpus.roles, pa.string()),
            "n": n,
            "reliability": (right + 0.5) / (n + 1),
            "reliability_low": betaincinv(right + 0.5, wrong + 0.5, 0.025),
            "reliability_high": betaincinv(right + 0.5, wrong + 0.5, 0.975),
            "cluster": cluster,
        }
    )


def _identifiability(votes: Any, tally: Tally) -> tuple[str, ...]:
    if tally.per_token[2] or votes.soft is not None or votes.known is not None:
        return ()
    if (tally.own.sum(axis=1) > 0).sum() == 1:
        return (
            "there is one annotator only: the labels are what they said, and their reliability cannot be known; what "
            "is said of it and of errors is a guess without a second opinion",
        )
    return ("no token was labelled by two annotators: reliabilities are not identifiable, they only reflect the prior",)

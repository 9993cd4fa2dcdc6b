"""RobustSequence: the default. An average of chain models that a crowd cannot easily lead astray.

No single model is best on every crowd: memory helps where annotators mark long spans and harms where there are few
votes; priors learned from the crowd help where everybody misses much and harm where annotators are unlike each other.
What cannot be known is averaged over, and what a member assumes must be earned: with few spans memory under fixed
priors says little and the plainest member much; where spans are long no member without memory does (`_say`). The
members (`MEMBERS`, see `robust_chain`) share their guards – silence, unanimity, rates – and the votes of a family
(`families`) weigh as the family does. Then the text may have a say, if it has earned one:

    1. families: who repeats whom; their votes get weights
    2. each member by variational Bayes; the mean of their probabilities
    3. `rounds` times, and once more where it may overrule people who agree (`overruling`): a text model, cross-fitted
       over documents on the mean. If its out-of-fold labels agree with the inferred ones (span F1 of at least
       `LEAST_AGREEMENT`; accuracy where labels are not spans) it is one more source for every member, which learn its
       confusion; else the text stays out
    4. probabilities are tempered so that they predict the text's labels best, and weighed against the text
       (`tempering`), where there is text; labels: read from the mean and from these, in equal parts (`average`): of the
       legal path with the most tokens expected to be right each span gives way to the likeliest one there

`confusion`, `clusters` and `reliability` are those of the mean: expected counts under its probabilities. Nothing here
looks at gold labels. Measured on the crowds of experiments/crowds (docs/crowds.md).
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.corpus.shards import ShardedCorpus
from lasca.corpus.votes import Block
from lasca.engine import available_threads
from lasca.errors import ModelError
from lasca.estimator import flag, generator, number, other, seeds, threads, whole
from lasca.evaluate.token_scores import Prf
from lasca.learn import Checkpoint, LoopSettings, run_learner
from lasca.records import read_record, write_record
from lasca.schemes import detect
from lasca.truth.annotator_models import VoteRows, confusion_prior
from lasca.truth.average import Agreement, Averaging, Ending, Marked, Runs, Said, Shared, Verdict
from lasca.truth.base import Posterior, Progress, TruthModel, Votes
from lasca.truth.beside import Keep
from lasca.truth.borders import knowing_habits
from lasca.truth.chain import StateSpace, blocks_of, with_words
from lasca.truth.checks import HELD, RAISED, check_average
from lasca.truth.clusters import found_clusters
from lasca.truth.evidence import Floats, SoftVoices, Source, Texts, Words
from lasca.truth.families import declared_families, find_families
from lasca.truth.finish import Finish
from lasca.truth.guards import Crowd, Look, kinds_of_marks
from lasca.truth.misses import knowing_misses
from lasca.truth.overruling import Asked, Found, HiddenVotes, borne_out, released
from lasca.truth.robust_chain import Member, Structure, member
from lasca.truth.sampled_text import MOST_TRAINED, SampledText
from lasca.truth.sequence_rounds import LEAN, TEXT_PRIOR
from lasca.truth.starts import WeighedStart, dawid_skene_start, trust
from lasca.truth.tempering import doubted, referee
from lasca.truth.text_models import CrossFit, TextModel, text_model

__all__ = ["RobustSequence"]

EASY_AND_HARD = ((5.0, 0.5), (5.0, 5.0))
ALIKE = ((11.0, 10.0),)
"""Base pseudo-counts (correct, wrong) of annotators' rows, by level of difficulty."""
MEMBERS = (
    Structure("memory, two levels", True, EASY_AND_HARD, learned=False),
    Structure("memory, one level", True, ALIKE, learned=False),
    Structure("memory, two levels, learned priors", True, EASY_AND_HARD, learned=True),
    Structure("no memory, two levels, learned priors", False, EASY_AND_HARD, learned=True),
    Structure("no memory, one level", False, ALIKE, learned=False),
)
"""The members where labels are spans; how much each says: `_say`."""
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
ENOUGH_ANNOTATORS = 2.5
"""Annotators (as many as would share the votes equally) from which priors can be learned where labels are not spans: of
two, whoever looks better would be believed wherever they differ."""
LEAST_SAY = 0.05
"""Who would say less is not asked."""
MANY, LONG = 2000, 3.0
"""Marks, and length of their runs, from which a member without memory overcounts: an annotator's votes along a span are
one decision."""
MOST_STATES = 40
LEAST_AGREEMENT = 0.4
"""Of taggers with what was inferred (see above), for the text to be heard."""
DOUBT = 0.02
"""The share of all probability that the text's own word moves, in the probabilities that are reported."""
SIDES = ((1, HELD), (-1, RAISED))
"""Back and up: from which weight it is told that a kind of marks was held."""
LARGE = 3
"""Folds at most of a large corpus: two thirds of the sample are enough to learn from."""
LEAST_SPANS = 300
"""From fewer spans than this a tagger learns names by heart, and little else."""


class RobustSequence(TruthModel):
    """The truth as an average of chain models with guards. Each part can be switched off."""

    name = "robust"
    summary = "The default: an average of chain models with guards against drift, copies and lazy annotators"
    supports = frozenset({"known", "soft", "families", "engine", "shards"})

    words: bool = flag("labels emit words", default=True)
    text: bool | str | TextModel = other(
        "a text model, cross-fitted over documents, joins where it has earned a say; True: a CRF",
        "True, False, a text model or its name",
        default=True,
    )
    rounds: int = whole("how often it is trained; once more where it may overrule people who agree", default=2, low=0)
    folds: int = whole("folds of the cross-fitting (three at most over 250,000 tokens)", default=6, low=2)
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
        if votes.n_hard == 0:
            raise ModelError(
                f"{self.name} needs hard votes beside the soft ones", hint="Take another model: ds takes soft votes"
            )
        crf = {"l2": self.text_l2, "min_count": self.text_min_count, "iterations": self.text_iterations}
        reader = text_model(self.text, **crf)
        with TemporaryDirectory(prefix="lasca-") as temporary:
            run = _Average(self, corpus, votes, Path(temporary), progress)
            run.members(0, 0.05, 0.35)
            told, agreement = self._told(run, reader) if reader is not None and self.rounds else (False, None)
            progress(0.97, "result")
            return self._posterior(run, told, agreement)

    def _told(self, run: _Average, reader: TextModel) -> tuple[bool, float | None]:
        """Let the text have its say, if it has earned one; return whether it has, and how well it agrees."""
        run.progress(0.4, "text")
        crossfit = self._crossfit(run, reader)
        if crossfit is None:
            return False, None
        at, done, rounds = 0.4, 0, self.rounds
        while done < rounds:
            end = at + (0.95 - at) / (rounds - done)
            run.progress(at, f"text, round {done + 1}")
            run.hear(done + 1, crossfit)
            agreement = run.agreement()
            if agreement < LEAST_AGREEMENT:
                if done:  # members have heard it
                    run.free = run.believes_two = False
                    run.members(0, at, 0.95)
                return False, agreement
            if done == 0:
                run.release()
                rounds += run.free  # what it then finds teaches it, too
            run.members(done + 1, (at + end) / 2, end)
            at, done = end, done + 1
        return True, agreement

    def _crossfit(self, run: _Average, reader: TextModel) -> CrossFit | SampledText | None:
        """Return what trains taggers, of a large corpus on a sample, or None where there is nothing to learn from."""
        corpus, salt = run.corpus, int(generator(self.seed).integers(1 << 32))
        if run.crowd.outside >= 0 and run.asked(Runs(run.rules, run.crowd.outside))[0] < LEAST_SPANS:
            return None
        folds, n_threads = self.folds, available_threads(self.n_threads)
        found: CrossFit | SampledText
        if corpus.n_tokens > MOST_TRAINED:
            most, folds = MOST_TRAINED, min(folds, LARGE)
            found = SampledText(corpus, reader, run.visit, most=most, folds=folds, salt=salt, n_threads=n_threads)
            if not hasattr(found.task, "elsewhere"):
                said = f"{type(found.task).__name__} has no `elsewhere`, to read more than {most:,} tokens with"
                run.warnings.append(f"the text was not heard: {said}")
                return None
        else:
            whole = corpus.whole() if isinstance(corpus, ShardedCorpus) else corpus
            rng = np.random.default_rng(salt)
            found = CrossFit(whole, reader, rng, folds=folds, told=True, n_threads=n_threads)
        return found if found.possible else None

    def _posterior(self, run: _Average, told: bool, agreement: float | None) -> Posterior:
        crowd, T = run.crowd, len(run.crowd.labels)
        verdict = run.verdict() if told and self.calibrate else None
        with self._work(Ending(run.rules, run.votes.is_sole, run.believes_two, run.free), run.blocks) as work:
            posterior, (counted, sums) = self._finished(work, verdict, Finish())
        counts = np.ascontiguousarray(counted.table().reshape(-1, T, T).transpose(0, 2, 1))
        prior = confusion_prior(T, *LEAN)
        clusters, scores = found_clusters(counts, None, prior)
        confusion = counts + prior
        families, names = crowd.families, run.corpus.annotators
        count_as = {tuple(names[m] for m in group): families.counts_as(group) for group in families.members()}
        kinds = list(kinds_of_marks(crowd.labels))
        named = ["all kinds together" if k is None else k or "spans without a type" for k in kinds]
        never = {
            name: [named[k] for k in np.flatnonzero(~uses)] for name, uses in zip(names, crowd.uses) if not uses.all()
        }
        longest = max((fit.trace for fit in run.fits), key=len)
        held = np.mean([fit.held for fit in run.fits], axis=0)
        over, under = ([name for name, h in zip(named, sign * held) if h > most] for sign, most in SIDES)
        late = 0 if any(fit.converged for fit in run.fits) else len(longest)
        return replace(
            posterior,
            confusion=confusion / confusion.sum(axis=2, keepdims=True),
            clusters=clusters,
            trace=longest,
            diagnostics={
                "members": [
                    {
                        "name": fit.name,
                        "iterations": len(fit.trace),
                        "converged": fit.converged,
                        "objective": float(fit.trace[-1]),
                        "held": {
                            "all" if kinds[i] is None else kinds[i] or "no type": float(fit.held[i])
                            for i in np.flatnonzero(fit.held)
                        },
                    }
                    for fit in run.fits
                ],
                "iterations": len(longest),
                "converged": all(fit.converged for fit in run.fits),
                "families": [list(names) for names in count_as],
                "never_give": never,
                "text": told,
                "text_agreement": agreement,
                "temperature": 1.0 if verdict is None else 1 / verdict.tau,
                "votes_that_meet": crowd.meet,
                "two_believed": run.believes_two,
                "three_believed": not run.free,
                "bic": [vars(score) for score in scores],
            },
            warnings=(*run.warnings, *check_average(late, over, under, count_as, never, sums.tolist())),
        )


@dataclass(frozen=True)
class Fitted:
    """Where a member ended."""

    name: str
    trace: npt.NDArray[np.float64]
    converged: bool
    held: Floats


class _Average:
    """The plan: members one after the other, what they say together kept beside the blocks."""

    def __init__(
        self,
        model: RobustSequence,
        corpus: CrowdCorpus | ShardedCorpus,
        votes: Any,
        temporary: Path,
        progress: Progress,
    ) -> None:
        self.model, self.corpus, self.progress = model, corpus, progress
        self.votes, n_words = with_words(corpus, votes) if model.words else (votes, 0)
        self.blocks: list[Any] = blocks_of(self.votes)
        self.rules = StateSpace.of(corpus.labels)
        self.warnings: list[str] = []
        self.fits: list[Fitted] = []
        self.free = False
        self.believes_two = False
        self.scratch = model.place.scratch if model.place is not None else temporary
        self.on_disk = not isinstance(votes, Votes)
        progress(0.0, "families")
        look = Look(corpus.labels, declared_families(corpus.families))
        first = look.crowd(self.asked(look))
        families = look.families
        if model.families:
            gives = first.by_label(first.gives)
            families = find_families(self.asked, corpus.families, first.outside, gives, first.kind_of)
        if not first.knows.all():
            families = replace(families, knows=first.knows, outside=first.outside)
        look = Look(corpus.labels, families)
        crowd = look.crowd(self.asked(look))
        self.crowd = crowd = knowing_habits(knowing_misses(crowd, self.asked), self.asked)
        two_levels = crowd.meet > 0.5 and 2 * len(crowd.labels) <= MOST_STATES
        structures = ONE_LEVEL if not two_levels else MEMBERS if detect(crowd.labels) else WITHOUT_SPANS
        say = {structure: _say(crowd, structure) if structures is MEMBERS else 1.0 for structure in structures}
        if structures is WITHOUT_SPANS and crowd.annotators < ENOUGH_ANNOTATORS:
            say = {structure: 1.0 for structure in structures if not structure.learned}
        self.say = {structure: word for structure, word in say.items() if word >= LEAST_SAY}
        prior = confusion_prior(len(crowd.labels), *TEXT_PRIOR)
        self.rows = VoteRows.of(self.blocks, memory=True, soft=False)
        self.others: list[Source] = []
        if model.words:  # words are believed the more the fewer votes there are
            self.others.append(Words(n_words, float(np.clip((crowd.per_token / 5.0) ** 2, 0.1, 1.0))))
        self.others += [SoftVoices(prior, annotator=annotator) for annotator in self._soft_annotators()]
        self.text = Texts(prior)
        self.start = self._start(crowd)

    def _start(self, crowd: Crowd) -> WeighedStart:
        first = dawid_skene_start(self.model, self.votes, hard=False, families=crowd.families)
        return WeighedStart(first, _judged(crowd), crowd.families)

    def asked(self, question: Any) -> tuple[Any, ...]:
        """Ask all blocks, and add up what they say."""
        with self.model._work(question, self.blocks) as work:
            return work.summary()

    def _soft_annotators(self) -> list[int]:
        if self.votes.soft is None:
            return []
        found = [b.votes.soft.annotator[b.part(b.votes.soft)] for b in map(_loaded, self.blocks) if b.votes.soft]
        return [int(annotator) for annotator in np.unique(np.concatenate(found))]

    def members(self, round: int, begin: float, end: float) -> None:
        """Fit every member from the same start, and keep their mean."""
        others = [*self.others, *([self.text] if round else [])]
        self.fits = []
        span, total = (end - begin) / len(self.say), sum(self.say.values())
        for i, (structure, word) in enumerate(self.say.items()):

            def report(share: float, words: str, at: float = begin + span * i, name: str = structure.name) -> None:
                self.progress(at + span * share, f"{name}, {words}")

            keep = self._keep(f"said-{round}-{i}")
            averaging = Averaging(word / total, i == 0, self.crowd.outside, keep)
            self.fits.append(self._fitted(structure, others, averaging, report))
            if i and keep.folder is not None:  # what the member before left is not read any more
                for file in keep.folder.glob(f"said-{round}-{i - 1}-*"):
                    file.unlink()

    def release(self) -> None:
        """Ask hidden votes whether the text may overrule people who agree that there is nothing, three or two."""
        if self.crowd.outside < 0:
            return
        self.free = released(*self.asked(Found(self.crowd)))
        self.believes_two = not borne_out(self._hidden())

    def _hidden(self) -> Floats:
        """Return what hidden votes say of what the plainest member finds without them."""
        hiding = HiddenVotes(**vars(self.crowd.families))
        if self.asked(hiding)[0] == 0:
            return np.zeros((3, 2))
        look = Look(self.crowd.labels, hiding)
        habits = {name: getattr(self.crowd, name) for name in ("recall", "together", "goes_on")}
        crowd = replace(look.crowd(self.asked(look)), **habits)
        plainest = min(self.say, key=lambda structure: len(structure.levels))
        free = True  # whether two miss what the text finds is asked, so nobody is believed for being many
        learner = replace(self._member(plainest, [*self.others, self.text], crowd, free), first=self._start(crowd))
        _, counts = self._run(learner, "hidden", Asked(hiding, crowd.outside), None, lambda share, words: None)
        return np.asarray(np.sum(counts, axis=0))

    def _fitted(self, structure: Structure, others: list[Source], averaging: Averaging, report: Progress) -> Fitted:
        """Fit a member, or find where it ended before the run was stopped."""
        model, keep = self.model, averaging.keep
        ended = self.scratch / f"checkpoint-{keep.name}"
        if ended.exists():
            self._beside([keep.place(block.number) for block in self.blocks])
            fitted: Fitted = read_record(ended)
            return fitted
        learner = self._member(structure, others, self.crowd, self.free)
        checkpoint = None if model.place is None else Checkpoint(self.scratch / "checkpoint", model.place.every)
        run, said = self._run(learner, keep.name, averaging, checkpoint, report)
        self._beside(said)
        found = Fitted(structure.name, run.trace, run.converged, run.state.held)
        if checkpoint is not None:
            write_record(found, ended)
            checkpoint.file.unlink()
        return found

    def _member(self, structure: Structure, others: list[Source], crowd: Crowd, free: bool) -> Member:
        tol, start = self.model.tol, self.start
        return member(structure, crowd, self.rows, others, start, trust=trust(self.votes), tol=tol, free=free)

    def _run(
        self, learner: Member, name: str, finish: Any, checkpoint: Checkpoint | None, report: Progress
    ) -> tuple[Any, list[Any]]:
        """Run a member to its end; return the run, and what `finish` makes of what it says of each block."""
        loop: LoopSettings = {"rng": generator(0), "restarts": 1, "max_iter": self.model.max_iter, "tol": 0.0}
        locals = self.scratch / f"locals-{name}"
        locals.mkdir(exist_ok=True)
        with self.model._work(learner, self.blocks, locals) as work:  # one chain in memory at a time
            scale = self.votes.n_votes
            run = run_learner(learner, work, loop, scale=scale, progress=report, settle=True, checkpoint=checkpoint)
            said = work.describe(run.state, finish)
        shutil.rmtree(locals)
        return run, said

    # --- what is beside the blocks ------------------------------------------------------------------------------------

    def _keep(self, name: str) -> Keep:
        return Keep(self.scratch if self.on_disk else None, name)

    def _beside(self, said: Sequence[Said | Path]) -> None:
        """Put something new beside the blocks."""
        self.blocks = [replace(block, beside=own) for block, own in zip(self.blocks, said)]

    def visit(self, function: Any, state: Any) -> list[Any]:
        """Return function(state, block) of every block; what is in memory is not sent elsewhere."""
        return self.model._visited(self.blocks, function, state)

    def hear(self, round: int, crossfit: CrossFit | SampledText) -> None:
        """Train taggers and put what they say beside the blocks; what was said without it stays."""
        keep = self._keep(f"text-{round}")
        if isinstance(crossfit, SampledText):
            self._beside(crossfit(self.visit, keep, self.model.engine))
            return
        means = np.concatenate([block.load().beside.mean for block in self.blocks])
        text, heard = crossfit(means, self.model.engine), []
        for block in self.blocks:
            said = block.load().beside
            plain = said.mean if said.plain is None else said.plain
            heard.append(keep(block.number, replace(said, plain=plain, text=text[block.first : block.last])))
        self._beside(heard)

    def agreement(self) -> float:
        """Return how well out-of-fold taggers find what was inferred."""
        return _agreement(self.crowd.labels, *self.asked(Agreement(self.crowd.labels)))

    def verdict(self) -> Verdict:
        """Return what is made of votes and text in the end: the text is the referee, on so many tokens at most."""
        step = -(-self.votes.n_tokens // MOST_TRAINED)
        some = [block.load() for block in self.blocks[::step]]
        plain, text = (
            np.concatenate([getattr(block.beside, name)[np.asarray(block.voted)] for block in some]).astype(np.float64)
            for name in ("plain", "text")
        )
        found = referee(plain, text, self.text.prior)
        verdict = Verdict(found.tau, found.confusion, outside=self.crowd.outside)
        shared, n = self.asked(Shared(verdict))
        verdict = replace(verdict, share=doubted(shared / n, DOUBT))
        return verdict if verdict.outside < 0 else verdict.marking_no_more(*self.asked(Marked(verdict)))


def _say(crowd: Crowd, structure: Structure) -> float:
    """Return how much a member of `MEMBERS` says: what it assumes must be earned, and spans must not be overcounted."""
    if structure.memory:
        return 1.0 if structure.learned else 1.0 - _few(crowd)
    if not structure.learned:
        return _few(crowd)
    return 1.0 / (1.0 + (crowd.marks / MANY * max(0.0, 1.0 - LONG / max(1.0, crowd.run_length))) ** 2)


def _judged(crowd: Crowd) -> float:
    """Return how far members begin at Dawid–Skene's judgement of votes; for the rest they begin at the votes' shares.

    Alone, votes cannot be judged; of two that differ nobody can say who missed something and who invented it, unless
    the annotators are known from many others. (Where it cannot be known, Dawid–Skene takes rare marks for inventions.
    People miss far more than they invent.)
    """
    by_shares = max(1.0 - crowd.meet, _few(crowd) * crowd.no_third)
    return 1.0 if by_shares < 1e-3 else 1.0 - by_shares


def _few(crowd: Crowd) -> float:
    """Return 1 where there are hardly any runs of marks, a half where there are `ENOUGH`, 0 where there are many."""
    return 1.0 / (1.0 + (crowd.marks / crowd.run_length / ENOUGH) ** 2) if crowd.marks else 0.0


def _loaded(block: Any) -> Block:
    loaded: Block = block.load()
    return loaded


def _agreement(labels: Sequence[str], n_inferred: int, n_tagged: int, n_same: int) -> float:
    """Return the F1 of spans, or the accuracy where labels are not spans."""
    return n_same / max(1, n_inferred) if detect(labels) is None else Prf.from_counts(n_inferred, n_tagged, n_same).f1

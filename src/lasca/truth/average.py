"""What the members of the robust average say together, block by block: it is kept beside the blocks.

Members are learners that come one after the other; the mean of what they say, the text, and what is asked of both lies
where the blocks are: in memory, or in files of a folder (`Keep`). Questions are learners with `summarise` alone, whose
answers add up over the blocks (`Work.summary`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca import evaluate
from lasca.corpus.votes import Block
from lasca.kernels.spans import likely_spans
from lasca.schemes import OUTSIDE, SCHEMES, detect, split_label
from lasca.truth.beside import Beside, Keep
from lasca.truth.chain import StateSpace, decoded
from lasca.truth.evidence import Floats, RowCounts, View, numbered
from lasca.truth.guards import UNANIMOUS, run_begins
from lasca.truth.tempering import advised, tempered

__all__ = ["Agreement", "Averaging", "Ending", "Marked", "Runs", "Said", "Shared", "Verdict"]

Proba = npt.NDArray[np.float32]
NOBODY = np.zeros(0, np.int64)
NATS = np.linspace(0.0, 3.0, 31)
"""By how much a verdict may be held against marks."""


@dataclass(frozen=True)
class Said(Beside):
    """What was said of the tokens of a block: the mean of the members so far, each by its say; `plain` is that of those
    that did not hear the text."""

    first: npt.NDArray[np.int16] | None = None
    """The most probable label by the first member."""
    apart: npt.NDArray[np.bool_] | None = None
    """Whether another member says another label."""
    marked: npt.NDArray[np.bool_] | None = None
    """Whether any member marks the token."""

    def path(self, block: Block, rules: StateSpace, *, of: Proba | None = None) -> npt.NDArray[np.int16]:
        """Return the legal path with the most tokens expected to be right, by the mean or by others."""
        return decoded(block.offsets, NOBODY, self._proba(of), rules)

    def labels(self, block: Block, rules: StateSpace, *, of: Proba | None = None) -> npt.NDArray[np.int16]:
        """Return the labels that are inferred, by the mean or by others.

        Whether there is a span is for its tokens to say, and where it ends for whole spans: each span of the path gives
        way to the likeliest one there, and to all that are likelier than not. (Tokens that are each at their likeliest
        can make a span that nobody gave.)
        """
        path, parts = self.path(block, rules, of=of), Parts.of(rules.names)
        if parts is None:
            return path
        proba = self._proba(of)
        begin, inside = (np.ascontiguousarray(proba @ columns) for columns in (parts.begin, parts.inside))
        first = np.where(path == parts.outside, -1, np.cumsum(parts.begin.sum(axis=1).astype(np.int64)[path]))
        kind, begins = np.empty(len(path), np.int64), np.empty(len(path), np.int64)
        likely_spans(block.offsets, begin, inside, first, kind, begins)
        ends = np.append(begins[1:] | (kind[1:] < 0), 1)
        labels = np.where(kind < 0, parts.outside, parts.label[kind, begins, ends]).astype(np.int16)
        return path if (labels < 0).any() else labels

    def _proba(self, of: Proba | None) -> Floats:
        proba = self.mean if of is None else of
        assert proba is not None
        return proba.astype(np.float64)


@dataclass(frozen=True)
class Parts:
    """Which labels begin spans of each type and which go on with them, in schemes whose spans all begin with a B."""

    outside: int
    begin: Floats
    """(n_labels, n_types): 1 where a label begins a span of a type."""
    inside: Floats
    label: npt.NDArray[np.int64]
    """(n_types, begins, ends): the label of a token in a span that begins there or not, and ends there or not."""

    @classmethod
    def of(cls, labels: Sequence[str]) -> Parts | None:
        """Return them, None in other schemes."""
        name = detect(labels)
        if name is None or name == "IO" or OUTSIDE not in labels:  # (labels alone cannot tell IOB1)
            return None
        scheme, own = SCHEMES[name], list(labels)
        types = sorted({split_label(label)[1] for label in own if label != OUTSIDE})
        begin, inside = np.zeros((2, len(own), len(types)))
        code = np.full((len(types), 2, 2), -1)
        for k, begins, ends in np.ndindex(code.shape):
            label = scheme.label(scheme.part(bool(begins), bool(ends), behind_same=False), types[k])
            if label in own:
                code[k, begins, ends] = own.index(label)
                (begin if begins else inside)[own.index(label), k] = 1
        return cls(own.index(OUTSIDE), begin, inside, code)


@dataclass(frozen=True)
class Averaging:
    """Adds what a member says of a block to the mean."""

    say: float
    """How much the member says, of 1."""
    is_first: bool
    outside: int
    keep: Keep

    def __call__(self, number: int, block: Block, proba: Proba, labels: None, statistics: Any) -> Said | Path:
        """Add it and keep the sum."""
        said: Any = block.beside or Said()
        best, part = proba.argmax(axis=1).astype(np.int16), proba * np.float32(self.say)
        marked = best != self.outside
        if self.is_first:
            new = replace(said, mean=part, first=best, apart=np.zeros(len(best), np.bool_), marked=marked)
        else:
            apart, marked = said.apart | (best != said.first), said.marked | marked
            new = replace(said, mean=said.mean + part, apart=apart, marked=marked)
        return self.keep(number, new)


# --- questions --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Runs:
    """Asks how many runs of marks there are."""

    rules: StateSpace
    outside: int

    def summarise(self, block: Block) -> tuple[int]:
        """Count them."""
        marked = block.beside.path(block, self.rules) != self.outside
        return (int(run_begins(marked, block.offsets).sum()),)


@dataclass(frozen=True)
class Agreement:
    """Asks how well out-of-fold taggers find what was inferred."""

    labels: tuple[str, ...]

    def summarise(self, block: Block) -> tuple[int, int, int]:
        """Count what was inferred, what was tagged, and what is the same: spans, or tokens where labels are not."""
        said, rules = block.beside, StateSpace.of(self.labels)
        inferred, tagged = said.path(block, rules), said.path(block, rules, of=said.text)
        seen = block.voices > 0
        if block.votes.silent is not None:
            seen |= np.diff(block.votes.silent.start[block.first : block.last + 1]) > 0
        offsets = block.offsets
        sequences = np.add.reduceat(seen, offsets[:-1]) > 0
        if detect(self.labels) is None:
            voted = np.repeat(sequences, np.diff(offsets))
            return int(voted.sum()), int(voted.sum()), int((inferred == tagged)[voted].sum())
        found = evaluate.spans_from_codes(inferred, tagged, offsets, self.labels, sequences=sequences)
        return found.n_gold, found.n_predicted, found.n_correct


# --- the result -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What is made of the votes' probabilities and the text: tempered, advised, and the text's own word mixed in."""

    tau: float
    confusion: Floats
    share: float = 0.0
    """Of the text's own word."""
    outside: int = -1
    """The label O, -1 where there is none."""
    held: float = 0.0
    """Nats against marks where labels are read: it marks no more than the members do, whose rates are held."""

    def proba(self, said: Said) -> Floats:
        """Return the labels' probabilities."""
        assert said.plain is not None
        assert said.text is not None
        text = said.text.astype(np.float64)
        proba = advised(tempered(said.plain.astype(np.float64), self.tau), text, self.confusion)
        return np.asarray((1 - self.share) * proba + self.share * text)

    def read(self, said: Said) -> Floats:
        """Return what labels are read from: the members' mean and the verdict, in equal parts."""
        assert said.mean is not None
        proba = self.proba(said)
        if self.held > 0:
            proba[:, self.outside] *= np.exp(self.held)
            proba /= proba.sum(axis=1, keepdims=True)
        return (said.mean + proba) / 2

    def marking_no_more(self, mean: float, marks: Floats) -> Verdict:
        """Return it held so that it marks as much as the members at most; the arguments are what `Marked` adds up."""
        return replace(self, held=float(np.interp(-mean, -marks, NATS)))


@dataclass(frozen=True)
class Marked:
    """Asks how much the members mark, and how much a verdict does that is held by `NATS`."""

    verdict: Verdict

    def summarise(self, block: Block) -> tuple[float, Floats]:
        """Add up the probability of marks."""
        own = block.voted, self.verdict.outside
        nothing = self.verdict.proba(block.beside)[own][:, None]
        marks = (1 - nothing) / (1 - nothing + nothing * np.exp(NATS))
        return float((1 - block.beside.mean[own]).sum(dtype=np.float64)), marks.sum(axis=0)


@dataclass(frozen=True)
class Shared:
    """Asks how much a verdict and the text have in common."""

    verdict: Verdict

    def summarise(self, block: Block) -> tuple[float, int]:
        """Add up the probability that both say the same; return the number of tokens too."""
        return float((self.verdict.proba(block.beside) * block.beside.text).sum()), len(block)


@dataclass(frozen=True)
class Ending:
    """Describes blocks at the end, in what a learner's words are."""

    rules: StateSpace
    sole: bool
    """Whether all votes are one annotator's, who is believed."""
    two: bool = False
    """Whether two who agree are believed."""
    free: bool = False
    """Whether the text may overrule three and more who agree that there is nothing."""

    def describe(
        self, verdict: Verdict | None, block: Block, local: None, out: Proba
    ) -> tuple[npt.NDArray[np.int16], tuple[Any, ...]]:
        """Write the probabilities to `out`; return the labels, expected counts of (annotator, given), and sums.

        Labels are read from the mean and the verdict in equal parts, for it cannot be known how much the text is worth
        beside the votes: the members hear it as one more annotator, the verdict holds it against votes that count less.
        Where three agree they are read from the mean, whose members believe them, or, where they agree on nothing and
        may be overruled, from the text and the verdict; where a vote stands alone from the verdict: of such votes the
        members learn nothing. Two who agree are believed or not, as hidden votes say (`overruling`). Sums: tokens with
        a vote; where the text overrules the most frequent one; where members mark; where they differ.
        """
        said, votes, T = block.beside, block.votes, block.votes.n_labels
        out[:] = said.mean if verdict is None else verdict.proba(said)
        start = votes.start[block.first : block.last + 1]
        annotator, label = votes.annotator[start[0] : start[-1]], votes.label[start[0] : start[-1]]
        n, token, at = np.diff(start), np.repeat(np.arange(len(block)), np.diff(start)), np.arange(len(block))
        given = np.bincount(token * T + label, minlength=len(block) * T).reshape(-1, T)
        top, read = given.max(axis=1), said.mean.astype(np.float64)
        if verdict is not None and not self.sole:
            apart = (top < n) | (n < UNANIMOUS)
            read[apart] = verdict.read(said)[apart]
            read[block.voices < 2] = out[block.voices < 2]
            if self.free:
                nothing = ~apart & (given[:, verdict.outside] == n)
                read[nothing] = verdict.read(replace(said, mean=said.text))[nothing]
        if self.two:
            alike = (n == 2) & (top == 2)
            read[alike] = given[alike] / 2
        labels = said.labels(block, self.rules, of=read)
        own, row = numbered(annotator * np.int64(T) + label, votes.n_annotators * T)
        counts = View(start, row, own).count(said.mean.astype(np.float64))
        voted, against = n > 0, 0
        if said.plain is not None:
            plain = said.labels(block, self.rules, of=said.plain)
            against = int((voted & (labels != plain) & (given[at, plain] == top) & (given[at, labels] < top)).sum())
        marked = said.marked & voted
        sums = np.array([voted.sum(), against, marked.sum(), (marked & said.apart).sum()])
        return labels, (RowCounts(votes.n_annotators * T, own, counts), sums)

"""The votes of a corpus as kernels see them, and the blocks of tokens that work is cut into.

A block is a run of whole documents. Where blocks begin and end depends on the data alone, never on the number of
threads, shards or workers: what is added up block by block, in their order, is the same bytes everywhere. A shard –
what one worker holds – is a run of blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from lasca.arrays import Bools, Codes, Ints, Ints32, borders, readonly
from lasca.corpus.evidence import KnownLabels, SoftVotes
from lasca.corpus.record import CrowdCorpus

__all__ = ["Block", "Votes", "cut_into_blocks", "cuts_between", "document_cuts"]


@dataclass(frozen=True)
class Votes:
    """The annotations of those who vote (see `CrowdCorpus.votes`) as kernels see them, sorted by token."""

    start: Ints
    annotator: Ints32
    label: Codes
    n_annotators: int
    n_labels: int
    offsets: Ints
    """The sequences: n_sequences + 1 borders, in tokens."""
    soft: SoftVotes | None = None
    """Votes that are distributions; those that are uniform say nothing and are left out."""
    known: KnownLabels | None = None
    """What is known of some tokens beforehand."""
    cuts: Ints | None = field(default=None, repr=False)
    """The sequences at which a document begins that has no sequence before; None: every sequence may be cut off."""
    words: Ints32 | None = field(default=None, repr=False)
    """The word of each token as a code, for models that look at words."""
    silent: Votes | None = field(default=None, repr=False)
    """What those said who do not vote; None: everybody votes."""

    @property
    def n_tokens(self) -> int:
        """How many tokens there are."""
        return len(self.start) - 1

    @property
    def n_hard(self) -> int:
        """How many votes are labels."""
        return len(self.label)

    @property
    def n_votes(self) -> int:
        """How many votes there are, hard and soft."""
        return self.n_hard + (0 if self.soft is None else len(self.soft))

    @property
    def is_sole(self) -> bool:
        """Whether one annotator gave all votes, which are all there is to go by."""
        alone = self.n_hard > 0 and bool((self.annotator == self.annotator[0]).all())
        return alone and self.soft is None and self.known is None

    @property
    def voted(self) -> Bools:
        """Whether anybody said anything of a token, or something is known of it."""
        return Block(self, 0, self.n_tokens).voted

    @property
    def n_voters(self) -> int:
        """How many annotators gave a vote, hard or soft."""
        who = self.annotator if self.soft is None else np.concatenate((self.annotator, self.soft.annotator))
        return len(np.unique(who))

    @property
    def lonely(self) -> float:
        """The share of votes that are alone on their token, of which nothing is known."""
        alone = Block(self, 0, self.n_tokens).voices == 1
        if self.known is not None:
            alone[self.known.token] = False
        return float(alone.sum() / max(1, self.n_votes))

    @classmethod
    def of(cls, corpus: CrowdCorpus) -> Votes:
        """Take the votes out of a corpus; annotators keep their codes."""
        everything = cls(
            corpus.token_start,
            corpus.annotation_annotator,
            corpus.annotation_label,
            corpus.n_annotators,
            corpus.n_labels,
            corpus.offsets,
            corpus.soft,
            corpus.known,
            document_cuts(corpus),
        )
        return everything.of_voters(np.array(corpus.votes, dtype=bool))

    def of_voters(self, counts: Bools) -> Votes:
        """Return what those said who vote; the rest is `silent`."""
        soft = None if self.soft is None else _that_say_something(self.soft, counts)
        if counts.all():
            return replace(self, soft=soft)
        stays = counts[self.annotator]
        return replace(self.only(stays), soft=soft, silent=replace(self.only(~stays), soft=None))

    def only(self, stays: Bools) -> Votes:
        """Return some of the hard votes, for models that hide the others: `stays` says of each whether it is there."""
        start, annotator, label = borders(stays)[self.start], self.annotator[stays], self.label[stays]
        return replace(self, start=readonly(start), annotator=readonly(annotator), label=readonly(label))


def _that_say_something(soft: SoftVotes, counts: Bools) -> SoftVotes | None:
    """Return the soft votes of those who vote that are not uniform."""
    spread = soft.proba.max(axis=1) - soft.proba.min(axis=1)
    stays = counts[soft.annotator] & (spread > 1e-6)
    return soft.only(stays) if stays.any() else None


def document_cuts(corpus: CrowdCorpus) -> Ints | None:
    """Return the sequences before which a corpus may be cut without cutting a document, the first one included.

    Sequences of one document need not stand together: there is no cut between any two of them. None where the corpus
    has no documents, or all of it is one: then every sequence may be cut off.
    """
    if not corpus.has_documents:
        return None
    code, names = corpus.metadata["document"].codes()
    return cuts_between(code, len(names))


def cuts_between(code: Ints32, n_documents: int) -> Ints:
    """Return the sequences before which no document is cut, given the document of each."""
    last = np.zeros(n_documents, np.int64)
    last[code] = np.arange(len(code))  # the last write counts
    reach = np.maximum.accumulate(last[code])
    return np.concatenate(([0], np.flatnonzero(reach[:-1] < np.arange(1, len(code))) + 1))


@dataclass(frozen=True)
class Block:
    """Tokens first..last of the votes of a corpus. What is sent to another process is a copy of this part alone."""

    votes: Votes
    first: int
    last: int
    number: int = 0
    """Which block of the corpus it is: what is drawn at random for a block is drawn by this."""
    place: Any = field(default=None, repr=False)
    """Where it was loaded from, if it was."""
    beside: Any = field(default=None, repr=False)
    """What a model keeps beside the block from one learner to the next: a record of arrays over its tokens."""

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def start(self) -> Ints:
        """Where the hard votes of each of its tokens begin among all, and where those of the last one end."""
        return self.votes.start[self.first : self.last + 1]

    @property
    def hard(self) -> slice:
        """Which hard votes are about its tokens."""
        return slice(int(self.votes.start[self.first]), int(self.votes.start[self.last]))

    @property
    def token(self) -> Ints:
        """The token of each of its hard votes, from 0."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    @property
    def n_votes(self) -> int:
        """How many hard votes there are in it."""
        return int(self.votes.start[self.last] - self.votes.start[self.first])

    def load(self) -> Block:
        """Return the block: it is in memory already (see `lasca.corpus.shards` for those that are not)."""
        return self

    @property
    def offsets(self) -> Ints:
        """The borders of its sequences, from 0; empty ones are left out."""
        borders = self.votes.offsets
        own = borders[slice(*np.searchsorted(borders, (self.first, self.last + 1)).tolist())]
        return np.unique(own) - self.first

    @property
    def voices(self) -> Ints:
        """How many votes, hard and soft, each of its tokens has."""
        found = np.diff(self.start)
        if self.soft is not None:
            found += np.bincount(self.soft.token, minlength=len(self))
        return found

    @property
    def voted(self) -> Bools:
        """Whether anybody said anything of each of its tokens, or something is known of it."""
        found = np.diff(self.start) > 0
        for rows in (self.soft, self.known):
            if rows is not None:
                found[rows.token] = True
        return found

    @property
    def soft(self) -> SoftVotes | None:
        """The soft votes on its tokens, from 0; None if there are none."""
        return None if self.votes.soft is None else self.votes.soft.within(self.first, self.last) or None

    @property
    def known(self) -> KnownLabels | None:
        """What is known of its tokens, from 0; None if nothing is."""
        return None if self.votes.known is None else self.votes.known.within(self.first, self.last) or None

    def part(self, rows: SoftVotes | KnownLabels | None) -> slice:
        """Return which rows of soft votes or known labels are about tokens of the block."""
        if rows is None:
            return slice(0, 0)
        return slice(*np.searchsorted(rows.token, (self.first, self.last)).tolist())

    def alone(self) -> Block:
        """Return the block with copies of its own arrays, tokens numbered from 0."""
        v, a, b, hard = self.votes, self.first, self.last, self.hard
        own = replace(
            v,
            start=readonly(self.start - hard.start),
            annotator=readonly(v.annotator[hard].copy()),
            label=readonly(v.label[hard].copy()),
            offsets=self.offsets,
            soft=None if v.soft is None else v.soft.within(a, b),
            known=None if v.known is None else v.known.within(a, b),
            cuts=None,
            silent=None if v.silent is None else Block(v.silent, a, b).alone().votes,
            words=None if v.words is None else v.words[a:b],
        )
        return Block(own, 0, b - a, self.number, beside=self.beside)

    def __reduce__(self) -> tuple[Any, ...]:
        own = self if self.first == 0 and self.last == self.votes.n_tokens else self.alone()
        return _again, (own.votes, own.number, own.beside)


def _again(votes: Votes, number: int, beside: Any) -> Block:
    for array in (votes.start, votes.annotator, votes.label):
        array.flags.writeable = False
    return Block(votes, 0, votes.n_tokens, number, beside=beside)


def cut_into_blocks(votes: Any, target: int, *, by_tokens: bool = False) -> list[Any]:
    """Cut votes, in memory or on disk, into blocks of whole documents with about `target` votes, or tokens, each."""
    if not isinstance(votes, Votes):
        return list(votes.blocks(target, by_tokens=by_tokens))
    cuts = np.arange(len(votes.offsets) - 1) if votes.cuts is None else votes.cuts
    borders = votes.offsets[cuts]
    total = votes.n_tokens if by_tokens else len(votes.label)
    n_blocks = max(1, round(total / target))
    wanted = total * np.arange(1, n_blocks) // n_blocks
    at = np.searchsorted(borders if by_tokens else votes.start[borders], wanted)
    inner = borders[at[at < len(borders)]]
    ends = np.unique(np.concatenate(([0], inner, [votes.n_tokens])))
    return [Block(votes, int(a), int(b), number) for number, (a, b) in enumerate(pairwise(ends))]

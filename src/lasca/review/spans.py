"""Labels as spans and back, for whole corpora: what a person decides is a span, not a token.

Tags are read as `lasca.schemes` reads them (illegal ones too). Labels of no scheme (parts of speech) have no spans:
there a reading is the label of one token.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lasca import schemes
from lasca.corpus import CrowdCorpus
from lasca.schemes.arrays import Spans, Tags

__all__ = ["Labels", "Span", "glued", "pieces", "said_by_everybody"]

Span = tuple[int, int, str]
"""Start and stop (half-open) in tokens of the sequence, and the type; for labels of no scheme one token, its label."""


class Labels:
    """The labels of a corpus with their scheme: reads spans out of codes and writes codes of spans."""

    def __init__(self, names: Sequence[str], scheme: str | None = "auto") -> None:
        self.names = tuple(names)
        self.scheme = schemes.detect(names) if scheme == "auto" else scheme
        self.code = {name: i for i, name in enumerate(self.names)}
        self.read = Tags(schemes.split_label(name) if self.scheme else ("S", name) for name in self.names)
        self.types = self.read.types

    @classmethod
    def of(cls, corpus: CrowdCorpus) -> Labels:
        """Return the labels of a corpus; which of IOB1 and IOB2 they are is seen in the votes."""
        return cls(corpus.labels, schemes.detect_corpus(corpus))

    @cached_property
    def outside(self) -> int:
        """The code of O, or -1 where labels are of no scheme."""
        return self.code.get(schemes.OUTSIDE, -1) if self.scheme else -1

    def spans(self, codes: npt.NDArray[np.integer], offsets: npt.NDArray[np.integer]) -> Spans:
        """Read the spans of sequences that lie behind each other; -1 is no label, and read as O."""
        return self.read.spans(codes, offsets)

    def of_sequence(self, codes: Sequence[int]) -> tuple[Span, ...]:
        """Read the spans of one sequence, or part of one."""
        found = self.spans(np.asarray(codes, np.int64), np.array([0, len(codes)]))
        return tuple(
            (a, b, self.types[k]) for a, b, k in zip(*(x.tolist() for x in (found.start, found.stop, found.kind)))
        )

    def tags(self, spans: Iterable[Span], n: int) -> list[str]:
        """Write spans as the labels of n tokens."""
        if self.scheme is not None:
            return schemes.tags(spans, n, self.scheme)
        written = [""] * n
        for start, stop, kind in spans:
            written[start:stop] = [kind] * (stop - start)
        return written

    def codes(self, spans: Iterable[Span], n: int) -> list[int] | None:
        """Write spans as codes of n tokens; None where a label is needed that the corpus does not have."""
        found = [self.code.get(name, -1) for name in self.tags(spans, n)]
        return None if min(found, default=0) < 0 else found


def glued(corpus: CrowdCorpus, start: int, stop: int) -> list[bool]:
    """Say of tokens of one sequence whether each touches the one before it in the text (no, where that is unknown)."""
    if corpus.token_chars is None or start >= stop:
        return [False] * (stop - start)
    chars = corpus.token_chars[start:stop]
    return [False, *((chars[1:, 0] == chars[:-1, 1]) & (chars[1:, 1] > chars[1:, 0])).tolist()]


def pieces(corpus: CrowdCorpus, start: int, stop: int) -> list[str]:
    """Return tokens of one sequence as they stood in the text when joined: with a blank before each that had one."""
    touches = glued(corpus, start, stop)
    return [word if touch else f" {word}" for word, touch in zip(corpus.tokens[start:stop], touches)]


def said_by_everybody(corpus: CrowdCorpus, labels: Labels) -> tuple[Spans, npt.NDArray[np.int64]]:
    """Return every span that any person gave (start and stop are tokens of the corpus), and who gave it."""
    person = np.array(corpus.votes, bool)
    kept = np.flatnonzero(person[corpus.annotation_annotator]) if len(person) else np.zeros(0, np.int64)
    order = kept[np.lexsort((corpus.annotation_token[kept], corpus.annotation_annotator[kept]))]
    token = corpus.annotation_token[order].astype(np.int64)
    who = corpus.annotation_annotator[order].astype(np.int64)
    sequence = corpus.token_sequence[token]
    breaks = np.flatnonzero((np.diff(who) != 0) | (np.diff(sequence) != 0) | (np.diff(token) != 1)) + 1
    offsets = np.concatenate(([0], breaks, [len(token)])) if len(token) else np.array([0, 0])
    found = labels.spans(corpus.annotation_label[order].astype(np.int64), offsets)
    if not len(found.start):
        return found, np.zeros(0, np.int64)
    return Spans(token[found.start], token[found.stop - 1] + 1, found.kind), who[found.start]

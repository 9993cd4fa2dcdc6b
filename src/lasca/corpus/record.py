"""CrowdCorpus: what several annotators said about the same token sequences, as flat arrays.

Tokens of all sequences lie behind each other; `offsets` has n_sequences + 1 entries. Annotations are sorted by
token, then annotator, and `token_start` (n_tokens + 1 entries) says where each token's annotations begin (CSR).
A pair (token, annotator) that does not occur is missing, which is not the same as the label O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.arrays import Array, Bools, Codes, Ints, Ints32, readonly
from lasca.corpus import build, reshape, store
from lasca.corpus.evidence import KnownLabels, SoftVotes, known_labels
from lasca.corpus.report import LoadReport
from lasca.corpus.strings import Strings
from lasca.errors import CorpusError
from lasca.records import Record, card

__all__ = ["CrowdCorpus"]

SHOWN = 20
"""Annotators that a notebook shows."""


@dataclass(frozen=True, eq=False, repr=False)
class CrowdCorpus(Record, build.Named):
    """Token sequences with the labels several annotators gave them. Frozen; checked once, when made.

    Most users get one from `lasca.read`; `from_sequences` makes one from lists.
    """

    tokens: Strings
    offsets: Ints
    labels: tuple[str, ...]
    annotators: tuple[str, ...]
    annotation_annotator: Ints32
    annotation_label: Codes
    token_start: Ints
    sequence_ids: Strings
    golds: Mapping[str, Codes] = field(default_factory=dict)
    """Labels given by experts: int16 per token, -1 where there is none."""
    kinds: tuple[str, ...] = ()
    """One per annotator: "person", "rule" or "model" (predictions that came with the export). Left out: people."""
    families: tuple[str | None, ...] = ()
    """One per annotator: the name of those who copy each other or share a program; None = to be found."""
    votes: tuple[bool, ...] = ()
    """One per annotator: whether what they say counts. Left out: people and rules vote, models do not."""
    soft: SoftVotes | None = None
    """Votes that are distributions over the labels."""
    known: KnownLabels | None = None
    """What is known beforehand of some tokens (see `with_known`): models take it as given."""
    metadata: Mapping[str, Strings] = field(default_factory=dict)
    """Columns of strings, one entry per sequence: "document", "text", … whatever the format carried."""
    token_metadata: Mapping[str, Strings] = field(default_factory=dict)
    """Columns of strings, one entry per token: parts of speech, lemmas, … whatever the format carried."""
    token_chars: Ints32 | None = None
    """Where each token stands in its sequence's text, (n_tokens, 2), code points, half-open; None if unknown."""
    load_report: LoadReport = field(default_factory=LoadReport)

    def __post_init__(self) -> None:
        for name, value in build.checked(self).items():
            object.__setattr__(self, name, value)
        for name in ("golds", "metadata", "token_metadata"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    # --- sizes -------------------------------------------------------------------------------------------------

    @property
    def n_tokens(self) -> int:
        """How many tokens there are."""
        return len(self.tokens)

    @property
    def n_sequences(self) -> int:
        """How many sequences there are."""
        return len(self.offsets) - 1

    @property
    def n_annotations(self) -> int:
        """How many labels were given: pairs of token and annotator."""
        return len(self.annotation_label)

    @cached_property
    def annotation_token(self) -> Array:
        """The token of each annotation (made from `token_start` when first asked for)."""
        return readonly(np.repeat(build.index_range(self.n_tokens), np.diff(self.token_start)))

    @cached_property
    def token_sequence(self) -> Array:
        """The sequence of each token."""
        return readonly(np.repeat(build.index_range(self.n_sequences), np.diff(self.offsets)))

    @cached_property
    def annotated_sequences(self) -> Bools:
        """Whether anybody labelled any token of the sequence."""
        found = np.diff(self.token_start[self.offsets]) > 0
        if self.soft is not None:
            found[self.token_sequence[self.soft.token]] = True
        return readonly(found)

    @property
    def has_documents(self) -> bool:
        """Whether it has more than one document (metadata "document")."""
        column = self.metadata.get("document")
        return column is not None and len(column.codes()[1]) > 1

    @property
    def documents(self) -> Ints:
        """The document of each sequence (metadata "document", if there is more than one), or else itself."""
        return self.metadata["document"].codes()[0].astype(np.int64) if self.has_documents else np.arange(len(self))

    def __len__(self) -> int:
        """How many sequences there are."""
        return self.n_sequences

    def index(self, sequence_id: str) -> int:
        """Return which sequence has this id."""
        try:
            return self.places[sequence_id]
        except KeyError:
            raise CorpusError("there is no sequence of that id", got=sequence_id) from None

    @cached_property
    def places(self) -> dict[str, int]:
        """Which sequence has which id."""
        return {name: i for i, name in enumerate(self.sequence_ids)}

    def sequence(self, index: int | str) -> list[str]:
        """Return the tokens of one sequence, given by its number or its id."""
        at = self.index(index) if isinstance(index, str) else index
        if not 0 <= at < self.n_sequences:
            raise CorpusError(f"sequences are numbered 0..{self.n_sequences - 1}", got=at)
        return self.tokens[int(self.offsets[at]) : int(self.offsets[at + 1])]

    def label_names(self, codes: npt.ArrayLike) -> list[list[str | None]]:
        """Turn one code per token into lists of label names, one list per sequence; -1 becomes None."""
        return build.label_names(np.asarray(codes), self.offsets, self.labels)

    def __repr__(self) -> str:
        more = "" if self.soft is None else f", {len(self.soft):,} soft votes"
        more += "" if self.known is None else f", {len(self.known):,} tokens known"
        more += f", golds: {', '.join(self.golds)}" if self.golds else ""
        return (
            f"CrowdCorpus({self.n_sequences:,} sequences, {self.n_tokens:,} tokens, {self.n_annotators:,} annotators, "
            f"{self.n_annotations:,} annotations, {self.n_labels} labels{more})"
        )

    def _repr_html_(self) -> str:
        facts = {"sequences": self.n_sequences, "tokens": self.n_tokens, "annotations": self.n_annotations}
        facts |= {"soft votes": len(self.soft)} if self.soft is not None else {}
        facts |= {"tokens known": len(self.known)} if self.known is not None else {}
        given = np.bincount(self.annotation_annotator, minlength=self.n_annotators).tolist()
        people = [
            {"annotator": name, "kind": kind, "votes": "yes" if votes else "no", "labels given": n}
            for name, kind, votes, n in zip(self.annotators[:SHOWN], self.kinds, self.votes, given)
        ]
        names = {"labels": ", ".join(self.labels), "golds": ", ".join(self.golds) or "none"}
        return card("CrowdCorpus", {**facts, **names}, people, self.n_annotators - SHOWN)

    def __eq__(self, other: object) -> bool:
        return build.equal(self, other) if isinstance(other, CrowdCorpus) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    # --- making, reshaping, storing ----------------------------------------------------------------------------

    @classmethod
    def from_sequences(
        cls,
        tokens: Sequence[Sequence[str]],
        annotations: Mapping[str, build.Rows],
        *,
        golds: Mapping[str, build.Rows] | None = None,
        sequence_ids: Sequence[str] | None = None,
        labels: Iterable[str] = (),
        **fields: Any,
    ) -> CrowdCorpus:
        """Make a corpus from lists: `annotations[name][s]` are the labels that annotator gave sequence s.

        None stands for a missing label, or a whole missing sequence; instead of a list, `annotations[name]` may be a
        mapping from sequence index to labels. `labels` may name labels that nobody used. `fields` are further fields
        of the corpus, one entry per annotator in the order of their names where they are about annotators; `roles`
        ("annotator" or "model") may stand for `kinds`.
        """
        made = build.from_sequences(tokens, annotations, golds or {}, sequence_ids, labels)
        return cls(**made, **_with_kinds(fields))

    @classmethod
    def from_codes(
        cls,
        *,
        tokens: Iterable[str] | Strings,
        offsets: npt.ArrayLike,
        labels: Sequence[str],
        annotators: Sequence[str],
        annotation_token: npt.ArrayLike,
        annotation_annotator: npt.ArrayLike,
        annotation_label: npt.ArrayLike,
        **fields: Any,
    ) -> CrowdCorpus:
        """Make a corpus from integer triples (token, annotator, label) in any order; a repeated pair is an error.

        `fields` are further fields of the corpus; `roles` ("annotator" or "model") may stand for `kinds`. Without
        `sequence_ids` sequences are called "0", "1", ….
        """
        csr = build.sorted_by_token(annotation_token, annotation_annotator, annotation_label, tokens, offsets)
        ids = Strings([str(i) for i in range(max(np.size(csr["offsets"]) - 1, 0))])
        fields = {"sequence_ids": ids, **_with_kinds(fields)}
        return cls(labels=tuple(labels), annotators=tuple(annotators), **csr, **fields)

    def with_annotations(
        self, annotators: Sequence[str], token: npt.ArrayLike, annotator: npt.ArrayLike, label: npt.ArrayLike
    ) -> CrowdCorpus:
        """Return the same texts and golds with other annotators and annotations (codes index `self.labels`)."""
        csr = build.sorted_by_token(token, annotator, label, self.tokens, self.offsets)
        return replace(self, annotators=tuple(annotators), kinds=(), families=(), votes=(), soft=None, **csr)

    def with_soft(
        self, name: str, proba: npt.ArrayLike, *, kind: str = "model", family: str | None = None, votes: bool = True
    ) -> CrowdCorpus:
        """Return the corpus with one more annotator who gives probabilities: `proba` is (n_tokens, n_labels).

        A row that holds a NaN says nothing. Somebody who is added on purpose votes, a model too.
        """
        rows = np.asarray(proba)
        if rows.shape != (self.n_tokens, self.n_labels):
            raise CorpusError(f"probabilities must be ({self.n_tokens}, {self.n_labels})", got=rows.shape)
        token = np.flatnonzero(~np.isnan(rows).any(axis=1))
        who = np.full(len(token), self.n_annotators, np.int32)
        fresh = SoftVotes(token, who, rows[token].astype(np.float64))
        fresh = fresh.checked(self.n_tokens, self.n_annotators + 1, self.n_labels)
        if self.soft is not None:
            pairs = [(getattr(self.soft, n), getattr(fresh, n)) for n in ("token", "annotator", "proba")]
            fresh = SoftVotes.of(*(np.concatenate(pair) for pair in pairs))
        return replace(
            self,
            annotators=(*self.annotators, name),
            kinds=(*self.kinds, kind),
            families=(*self.families, family),
            votes=(*self.votes, votes),
            soft=fresh,
        )

    def with_known(self, known: npt.ArrayLike | KnownLabels | None) -> CrowdCorpus:
        """Return the corpus with these labels known, whatever was known before.

        `known` has a code per token (-1 = unknown; a gold is one), or a row of flags per token: which labels it may
        have (all of them = nothing is known). None forgets what was known.
        """
        return replace(self, known=known_labels(known, self.n_tokens, self.labels))

    def with_voters(self, names: Iterable[str]) -> CrowdCorpus:
        """Return the corpus in which these annotators vote, models too, and nobody else does."""
        wanted = set(names)
        for name in sorted(wanted - set(self.annotators)):
            raise CorpusError("there is no annotator of that name", got=name)
        return replace(self, votes=tuple(name in wanted for name in self.annotators))

    def select(self, *, sequences: npt.ArrayLike | None = None, annotators: Iterable[str] | None = None) -> CrowdCorpus:
        """Return the part with these sequences (indices, a mask, or ids) and these annotators (names).

        Labels keep their codes; annotators keep theirs unless `annotators` is given.
        """
        return replace(self, **reshape.select(self, sequences, annotators))

    def crowd(self) -> CrowdCorpus:
        """Return the corpus with those who vote only (see `votes`): what the crowd said."""
        if all(self.votes):
            return self
        return self.select(annotators=[name for name, votes in zip(self.annotators, self.votes) if votes])

    @classmethod
    def concat(cls, corpora: Sequence[CrowdCorpus]) -> CrowdCorpus:
        """Put corpora behind each other; annotators, labels and golds are matched by name."""
        return cls(**reshape.concat(corpora))

    def split(
        self, *fractions: float, seed: int | np.random.Generator = 0, by: str | None = None
    ) -> tuple[CrowdCorpus, ...]:
        """Split the sequences at random into parts of these fractions, plus the rest if they add up to less than 1.

        `by` names a metadata column (such as "document") whose values stay together.
        """
        parts = reshape.split_indices(self, fractions, seed, by)
        return tuple(self.select(sequences=part) for part in parts)

    def to_table(self, kind: str = "annotations", backend: str = "pyarrow") -> Any:
        """Return a frame: "annotations" (sequence, position, token, annotator, label), "tokens" (with the golds, what
        is known, and columns of metadata), or "soft" (a row per soft vote, a column per label).

        `backend` is "pyarrow", "pandas" or "polars".
        """
        return reshape.to_table(self, kind, backend)

    def save(self, path: str | Path, *, format: str = "arrow", overwrite: bool = False) -> None:
        """Write the corpus into a folder of Arrow (memory-mapped when loaded) or Parquet (smaller) files."""
        store.save(self, path, format, overwrite)

    @classmethod
    def load(cls, path: str | Path) -> CrowdCorpus:
        """Read a folder that `save` wrote."""
        return cls(**store.load(path))


def _with_kinds(fields: dict[str, Any]) -> dict[str, Any]:
    """Turn `roles` into kinds."""
    given = dict(fields)
    roles = given.pop("roles", ())
    return given | ({"kinds": build.kinds_of(roles)} if roles else {})

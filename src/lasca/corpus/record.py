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

from lasca.corpus import build, check, reshape, store
from lasca.corpus.report import LoadReport
from lasca.corpus.strings import Strings

__all__ = ["CrowdCorpus"]


@dataclass(frozen=True, eq=False, repr=False)
class CrowdCorpus:
    """Token sequences with the labels several annotators gave them. Frozen; checked once, when made.

    Most users get one from `lasca.read`; `from_sequences` makes one from lists.
    """

    tokens: Strings
    offsets: npt.NDArray[np.int64]
    labels: tuple[str, ...]
    annotators: tuple[str, ...]
    annotation_annotator: npt.NDArray[np.int32]
    annotation_label: npt.NDArray[np.int16]
    token_start: npt.NDArray[np.int64]
    sequence_ids: Strings
    golds: Mapping[str, npt.NDArray[np.int16]] = field(default_factory=dict)
    """Labels given by experts: int16 per token, -1 where there is none."""
    roles: tuple[str, ...] = ()
    """One per annotator: "annotator" (a person of the crowd) or "model" (predictions that came with the export)."""
    metadata: Mapping[str, Strings] = field(default_factory=dict)
    """Columns of strings, one entry per sequence: "document", "text", … whatever the format carried."""
    token_chars: npt.NDArray[np.int32] | None = None
    """Where each token stands in its sequence's text, (n_tokens, 2), code points, half-open; None if unknown."""
    load_report: LoadReport = field(default_factory=LoadReport)

    def __post_init__(self) -> None:
        for name, value in check.checked(self).items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "golds", MappingProxyType(dict(self.golds)))
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))

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

    @property
    def n_annotators(self) -> int:
        """How many annotators there are."""
        return len(self.annotators)

    @property
    def n_labels(self) -> int:
        """How many different labels there are."""
        return len(self.labels)

    @cached_property
    def annotation_token(self) -> npt.NDArray[Any]:
        """The token of each annotation (made from `token_start` when first asked for)."""
        return check.readonly(np.repeat(build.index_range(self.n_tokens), np.diff(self.token_start)))

    @cached_property
    def token_sequence(self) -> npt.NDArray[Any]:
        """The sequence of each token."""
        return check.readonly(np.repeat(build.index_range(self.n_sequences), np.diff(self.offsets)))

    @cached_property
    def annotated_sequences(self) -> npt.NDArray[np.bool_]:
        """Whether anybody labelled any token of the sequence."""
        at = self.token_start[self.offsets]
        return check.readonly(np.diff(at) > 0)

    def sequence(self, index: int) -> list[str]:
        """Return the tokens of one sequence."""
        return self.tokens[int(self.offsets[index]) : int(self.offsets[index + 1])]

    def label_names(self, codes: npt.ArrayLike) -> list[list[str | None]]:
        """Turn one code per token into lists of label names, one list per sequence; -1 becomes None."""
        return build.label_names(np.asarray(codes), self.offsets, self.labels)

    def __repr__(self) -> str:
        golds = f", golds: {', '.join(self.golds)}" if self.golds else ""
        return (
            f"CrowdCorpus({self.n_sequences:,} sequences, {self.n_tokens:,} tokens, {self.n_annotators:,} annotators, "
            f"{self.n_annotations:,} annotations, {self.n_labels} labels{golds})"
        )

    def __eq__(self, other: object) -> bool:
        return check.equal(self, other) if isinstance(other, CrowdCorpus) else NotImplemented

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
        mapping from sequence index to labels. `labels` may name labels that nobody used.
        """
        return cls(**build.from_sequences(tokens, annotations, golds or {}, sequence_ids, labels), **fields)

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
        """Make a corpus from integer triples (token, annotator, label) in any order; a repeated pair is an error."""
        csr = build.sorted_by_token(annotation_token, annotation_annotator, annotation_label, tokens, offsets)
        return cls(labels=tuple(labels), annotators=tuple(annotators), **{**csr, **fields})

    def with_annotations(
        self, annotators: Sequence[str], token: npt.ArrayLike, annotator: npt.ArrayLike, label: npt.ArrayLike
    ) -> CrowdCorpus:
        """Return the same texts and golds with other annotators and annotations (codes index `self.labels`)."""
        csr = build.sorted_by_token(token, annotator, label, self.tokens, self.offsets)
        return replace(self, annotators=tuple(annotators), roles=(), **csr)

    def select(self, *, sequences: npt.ArrayLike | None = None, annotators: Iterable[str] | None = None) -> CrowdCorpus:
        """Return the part with these sequences (indices, a mask, or ids) and these annotators (names).

        Labels keep their codes; annotators keep theirs unless `annotators` is given.
        """
        return replace(self, **reshape.select(self, sequences, annotators))

    def crowd(self) -> CrowdCorpus:
        """Return the corpus without the annotations of models: what the people said."""
        if all(role == "annotator" for role in self.roles):
            return self
        return self.select(annotators=[a for a, role in zip(self.annotators, self.roles) if role == "annotator"])

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
        """Return a frame: "annotations" (sequence, position, token, annotator, label) or "tokens" (with the golds).

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

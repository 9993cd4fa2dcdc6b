"""Layers: overlapping spans as several corpora over the same tokens, one for each label (or depth of nesting).

Truth is inferred layer by layer, each an ordinary corpus; `write` puts the spans of all layers together again where a
format can hold overlapping spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

from lasca.corpus import CrowdCorpus, LoadReport
from lasca.errors import CorpusError, ParameterError
from lasca.formats.outcome import merged, outcome, sheets_of

__all__ = ["Layers"]


@dataclass(frozen=True)
class Layers(Mapping[str, CrowdCorpus]):
    """Corpora over the same tokens, by the name of their layer; what `lasca.read(…, overlap="layers")` gives."""

    corpora: Mapping[str, CrowdCorpus]

    def __post_init__(self) -> None:
        if not self.corpora:
            raise CorpusError("there is no layer", hint="Layers need at least one corpus")
        first = next(iter(self.corpora.values()))
        for name, corpus in self.corpora.items():
            if corpus.tokens != first.tokens or corpus.sequence_ids != first.sequence_ids:
                raise CorpusError("the layers are not over the same tokens", got=name)
        object.__setattr__(self, "corpora", MappingProxyType(dict(self.corpora)))

    def __getitem__(self, name: str) -> CrowdCorpus:
        if name not in self.corpora:
            raise ParameterError("layer", name, f"one of {', '.join(self.corpora)}")
        return self.corpora[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.corpora)

    def __len__(self) -> int:
        return len(self.corpora)

    @property
    def load_report(self) -> LoadReport:
        """What the reader did, which is the same for all layers."""
        return next(iter(self.corpora.values())).load_report

    def write(
        self, path: str | Path, format: str, labels: Mapping[str, npt.ArrayLike] | None = None, **options: Any
    ) -> None:
        """Write all layers into one file of spans; `labels` maps layers to the inferred codes of their corpus."""
        from lasca.formats import WRITERS

        able = [name for name, writer in WRITERS.items() if writer.sheets]
        if format not in able:
            raise ParameterError("format", format, f"one of {', '.join(able)} for layers, whose spans may overlap")
        made = {name: outcome(corpus, None if labels is None else labels[name]) for name, corpus in self.items()}
        parts = [sheets_of(corpus, made[name]) for name, corpus in self.items()]
        WRITERS[format].write_sheets([merged(list(same)) for same in zip(*parts)], path, **options)

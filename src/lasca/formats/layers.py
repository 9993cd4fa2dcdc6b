"""Layers: overlapping spans as several corpora over the same tokens, one for each label (or depth of nesting).

Truth is inferred layer by layer, each an ordinary corpus; `write` puts the spans of all layers together again where a
format can hold overlapping spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus, LoadReport
from lasca.errors import CorpusError, FormatError, ParameterError, excerpt, typed
from lasca.formats.outcome import merged, outcome, sheets_of

__all__ = ["Layers", "refuse_layers"]

BY_FILES = ("conll-folder", "brat", "doccano", "prodigy", "spacy")  # in which files or folders name annotators
ENOUGH = 8  # tokens that somebody marked


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
        """What the reader did, which is the same for all layers, and each thing that is to be said of one of them."""
        first, *others = (corpus.load_report for corpus in self.corpora.values())
        notes = dict.fromkeys(note for report in (first, *others) for note in report.notes)
        return replace(first, notes=tuple(notes))

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


def refuse_layers(corpus: CrowdCorpus) -> None:
    """Refuse annotators called by files who have no label in common: they may be layers of one annotation.

    Whoever says who votes (`voters`) has answered that.
    """
    people = [a for a, votes in enumerate(corpus.votes) if votes]
    if corpus.load_report.format not in BY_FILES or len(people) < 2:
        return
    outside = {k for k, label in enumerate(corpus.labels) if label in ("O", "o")}
    types = np.array([label.split("-", 1)[-1] for label in corpus.labels])
    said: dict[str, set[str]] = {}
    for a in people:
        codes = corpus.annotation_label[corpus.annotation_annotator == a]
        marks = codes[~np.isin(codes, list(outside))]
        if len(marks) < ENOUGH or len(marks) == len(codes):
            return  # too few to tell, or no spans
        said[corpus.annotators[a]] = set(types[np.unique(marks)].tolist())
    if sum(map(len, said.values())) > len(set().union(*said.values())):
        return
    shown = "; ".join(f"{excerpt(name, 40)}: {', '.join(sorted(own)[:3])}" for name, own in list(said.items())[:4])
    raise FormatError(
        f"the annotators have no label in common, and may be layers of one annotation ({shown})",
        path=corpus.load_report.source,
        hint="If they are annotators all the same, set voters=all (on the command line: -r voters=all); if they are "
        f"layers, read one of them, or let it alone vote ({typed(f'voters={next(iter(said))}')})",
    )

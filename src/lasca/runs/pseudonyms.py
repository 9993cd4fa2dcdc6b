"""Annotators by number instead of name: A1 gave the most labels, A2 comes next, and so on.

Numbers follow the volume of work, not the order of the names: anybody with a list of the names could undo that. What
else may hold a name goes as well: the reader's examples and notes, the source's path, and columns of metadata with a
value that is an annotator's name. Tokens and sequence ids stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lasca.corpus import CrowdCorpus, LoadReport

__all__ = ["pseudonymise"]


def pseudonymise(corpus: CrowdCorpus) -> CrowdCorpus:
    """Return the corpus with annotators called A1, A2, …"""
    n = np.bincount(corpus.annotation_annotator, minlength=corpus.n_annotators)
    order = np.argsort(-n, kind="stable")
    code = np.empty(corpus.n_annotators, np.int64)
    code[order] = np.arange(corpus.n_annotators)
    names = tuple(f"A{i + 1}" for i in range(corpus.n_annotators))
    known = set(corpus.annotators)
    metadata = {name: column for name, column in corpus.metadata.items() if known.isdisjoint(set(column))}
    dropped = len(corpus.metadata) - len(metadata)
    notes = ["names of annotators were replaced; notes and examples of the reader were left out"]
    if dropped:
        notes.append(f"{dropped} metadata columns were left out: they hold names of annotators")
    report = LoadReport("", corpus.load_report.format, corpus.load_report.counts, {}, tuple(notes))
    changed = corpus.with_annotations(
        names, corpus.annotation_token, code[corpus.annotation_annotator], corpus.annotation_label
    )
    about: dict[str, Any] = {name: tuple(getattr(corpus, name)[i] for i in order) for name in ("kinds", "votes")}
    families = _numbered([corpus.families[i] for i in order])
    soft = None if corpus.soft is None else corpus.soft.keep(code.astype(np.int32))
    return replace(changed, **about, families=families, soft=soft, metadata=metadata, load_report=report)


def _numbered(families: list[str | None]) -> tuple[str | None, ...]:
    """Call families F1, F2, … in the order of their first member: their names may name people."""
    number: dict[str, str] = {}
    return tuple(None if name is None else number.setdefault(name, f"F{len(number) + 1}") for name in families)

"""Decisions become known labels: what the next fit takes as given, and what the final labels hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.errors import CorpusError
from lasca.review.decisions import Decision
from lasca.review.items import Reading
from lasca.review.spans import Labels
from lasca.truth import Truth, TruthModel, model_class
from lasca.truth.base import Progress

__all__ = ["Known", "check_decision", "clamped", "known_labels", "refit", "same_model", "with_labels"]


@dataclass(frozen=True)
class Known:
    """Decisions as arrays over tokens."""

    allowed: npt.NDArray[np.bool_]
    """(n_tokens, n_labels): what each token may be; all where nothing was decided."""
    codes: npt.NDArray[np.int64]
    """The decided label (the first reading where several are kept), -1 elsewhere."""
    source: npt.NDArray[np.int8]
    """0 nothing, 1 decided, 2 audited."""


def check_decision(corpus: CrowdCorpus, labels: Labels, places: dict[str, int], decision: Decision) -> int:
    """Return the sequence a decision is about; refuse one that does not fit the texts or the types."""
    where = f"decision on sequence {decision.sequence!r}, tokens {decision.start}-{decision.stop}"
    if decision.sequence not in places:
        raise CorpusError("there is no such sequence in this run", where=where)
    s = places[decision.sequence]
    n = int(corpus.offsets[s + 1] - corpus.offsets[s])
    if not 0 <= decision.start < decision.stop <= n:
        raise CorpusError(f"the sequence has {n} tokens", where=where)
    for reading in decision.readings:
        last = decision.start
        for start, stop, kind in sorted(reading):
            if not last <= start < stop <= decision.stop:
                raise CorpusError(
                    "spans must lie inside what is decided, one behind the other", where=where, got=reading
                )
            if kind not in labels.types:
                known = ", ".join(labels.types)
                raise CorpusError(f"there is no such label (there is: {known})", where=where, got=kind)
            last = stop
        if labels.scheme is None and sum(e - b for b, e, _ in reading) != decision.stop - decision.start:
            raise CorpusError("every token needs a label", where=where, got=reading)
    return s


def with_labels(corpus: CrowdCorpus, truth: Truth, labels: Iterable[str]) -> tuple[CrowdCorpus, Truth]:
    """Return both with these labels behind their own, where they lack them; nothing else changes."""
    more = [name for name in dict.fromkeys(labels) if name not in corpus.labels]
    if not more:
        return corpus, truth
    names = (*corpus.labels, *more)
    code = np.arange(corpus.n_labels)
    soft = None if corpus.soft is None else corpus.soft.recoded(code, len(names))
    wide = replace(corpus, labels=names, soft=soft, known=None)
    width = ((0, 0), (0, len(more)))
    confusion = np.pad(truth.confusion, ((0, 0), *[(0, len(more))] * 2))
    fields = {name: getattr(truth, name) for name in truth.__dataclass_fields__}
    clusters = (
        None
        if truth.clusters is None
        else replace(truth.clusters, shared=np.pad(truth.clusters.shared, ((0, 0), *[(0, len(more))] * 2)))
    )
    return wide, Truth(
        **fields
        | {"label_names": names, "proba": np.pad(truth.proba, width), "confusion": confusion, "clusters": clusters}
    )


def needed_labels(labels: Labels, decisions: Iterable[Decision]) -> list[str]:
    """Return the labels that decisions need (a tag that nobody ever gave, such as the I- of a new long span)."""
    return [
        name
        for d in decisions
        for reading in d.readings
        for name in labels.tags(_inside(reading, d.start), d.stop - d.start)
    ]


def known_labels(corpus: CrowdCorpus, decisions: Iterable[Decision], *, audits: bool) -> Known:
    """Turn decisions, oldest first, into what is known of each token; audits only where asked.

    A later decision replaces an earlier one where they overlap, and what the earlier one said of its other tokens
    stays. The token behind a decided span cannot continue it.
    """
    labels = Labels.of(corpus)
    places = {id: s for s, id in enumerate(corpus.sequence_ids)}
    allowed = np.ones((corpus.n_tokens, corpus.n_labels), bool)
    codes = np.full(corpus.n_tokens, -1, np.int64)
    source = np.zeros(corpus.n_tokens, np.int8)
    goes_on = np.array([name[:1] in ("I", "E", "L", "M") for name in corpus.labels]) & (
        labels.scheme in ("IOB2", "BIOES", "BILOU", "BMES")
    )
    for d in decisions:
        if d.audit and not audits:
            continue
        s = check_decision(corpus, labels, places, d)
        base = int(corpus.offsets[s])
        a, b = base + d.start, base + d.stop
        allowed[a:b] = False
        for i, reading in enumerate(d.readings):
            written = labels.codes(_inside(reading, d.start), d.stop - d.start)
            assert written is not None, "with_labels was not called"
            allowed[np.arange(a, b), written] = True
            if i == 0:
                codes[a:b] = written
        source[a:b] = 2 if d.audit else 1
        if b < int(corpus.offsets[s + 1]) and source[b] == 0:
            allowed[b] &= ~goes_on
            if not allowed[b].any():
                allowed[b] = True
    return Known(allowed, codes, source)


def _inside(reading: Reading, start: int) -> list[tuple[int, int, str]]:
    return [(s - start, e - start, kind) for s, e, kind in reading]


def clamped(truth: Truth, known: Known) -> Truth:
    """Return a truth that says what was decided where something was."""
    proba = np.where(known.allowed, truth.proba, 0).astype(np.float32)
    total = proba.sum(axis=1, keepdims=True)
    even = known.allowed / known.allowed.sum(axis=1, keepdims=True)
    proba = np.where(total > 1e-12, proba / np.maximum(total, 1e-12), even).astype(np.float32)
    labels = np.where(known.source > 0, known.codes, truth.labels)
    barred = ~known.allowed[np.arange(len(labels)), labels]  # it went on with a span that was decided to end before it
    labels = np.where(barred, proba.argmax(axis=1), labels).astype(np.int16)
    fields = {name: getattr(truth, name) for name in truth.__dataclass_fields__}
    return Truth(**fields | {"proba": proba, "labels": labels})


def same_model(truth: Truth) -> TruthModel:
    """Return the model that gave a truth, with the parameters it had."""
    made: TruthModel = model_class(truth.model)()
    own = made.get_params()
    plain = {k: v for k, v in truth.params.items() if k in own and isinstance(v, str | int | float | bool | None)}
    return made.set_params(**plain)


def refit(corpus: CrowdCorpus, truth: Truth, known: Known, progress: Progress | None = None) -> Truth:
    """Infer the truth anew with what is known, by the same model with the same parameters.

    A model that cannot take known labels is not run again: then decisions change what they are about, and no more.
    """
    model = same_model(truth)
    if not (known.source > 0).any() or "known" not in model.supports:
        return clamped(truth, known)
    return clamped(model.fit(corpus.with_known(known.allowed), progress=progress), known)

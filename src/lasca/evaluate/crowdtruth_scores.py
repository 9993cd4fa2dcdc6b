"""CrowdTruth 2.0 (Dumitrache et al. 2018, arXiv 1808.06080): how clear units are, how good workers and annotations.

A unit is a token, an annotation one of its labels; each quality is weighed by the other two, from 1 for all, until no
score moves by more than 0.001 (at most 50 rounds). For one label per token:

- unit quality: the weighted share of pairs of annotators who agree on it;
- worker quality = worker–unit agreement (mean cosine with the votes of the others) × worker–worker agreement (weighted
  share of agreement with each of the others);
- annotation quality: weighted mean over pairs of annotators of P(one gives the label | the other did);
- unit–annotation score: the weighted share of a token's annotators who gave the label.

Only tokens with two votes or more count; a worker who met nobody has quality 0. Annotation quality needs a table of
labels × annotators²; above 20 million cells it is left at 1, and `labels_weighed` says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lasca.arrays import Floats
from lasca.corpus.votes import Votes
from lasca.kernels import agreement as kernels

if TYPE_CHECKING:
    from lasca.corpus import CrowdCorpus

__all__ = ["CrowdTruth", "crowdtruth", "crowdtruth_rounds"]

MAX_ROUNDS, DELTA = 50, 0.001
MAX_CELLS = 20_000_000
LOWEST = 60
"""How many of the least clear tokens `to_dict` lists."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """Where the mutual updates ended."""

    unit: Floats
    worker: Floats
    label: Floats
    trace: Floats
    """The largest move of a score in each round."""
    labels_weighed: bool
    agreement: Floats
    """(2, n_annotators): worker–unit and worker–worker agreement, the factors of worker quality."""

    @property
    def converged(self) -> bool:
        """Whether the scores came to rest."""
        return bool(self.trace[-1] < DELTA)


def crowdtruth_rounds(start: Any, annotator: Any, label: Any, n_annotators: int, n_labels: int) -> Rounds:
    """Iterate the qualities of units (nan with fewer than two votes), workers and labels until they rest."""
    L, T = n_annotators, n_labels
    unit, worker, quality = np.ones(len(start) - 1), np.ones(L), np.ones(T)
    weigh_labels = T * L * L <= MAX_CELLS
    size = (T, L, L) if weigh_labels else (0, 0, 0)
    both, either = np.empty(size), np.empty(size)
    trace: list[float] = []
    for _ in range(MAX_ROUNDS):
        new_unit, new_quality, sums = np.empty_like(unit), np.ones(T), np.zeros((4, L))
        arrays = (start, annotator, label, unit, worker)
        kernels.crowdtruth_pass(*arrays, quality, new_unit, sums)
        if weigh_labels:
            kernels.crowdtruth_labels(*arrays, both, either, new_quality)
        agreement = sums[::2] / np.maximum(sums[1::2], 1e-4)
        new_worker = agreement[0] * agreement[1]
        moves = [np.abs(new_worker - worker), np.abs(new_quality - quality), np.abs(new_unit - unit)]
        trace.append(float(max(np.nanmax(m, initial=0.0) for m in moves)))
        unit, worker, quality = new_unit, new_worker, new_quality
        if trace[-1] < DELTA:
            break
    return Rounds(unit, worker, quality, np.array(trace), weigh_labels, agreement)


@dataclass(frozen=True, eq=False)
class CrowdTruth:
    """The metrics of a corpus."""

    unit_quality: Floats
    """Per token; nan with fewer than two votes."""
    worker_quality: Floats
    worker_unit_agreement: Floats
    worker_worker_agreement: Floats
    annotation_quality: Floats
    """Per label."""
    annotators: tuple[str, ...]
    labels: tuple[str, ...]
    converged: bool
    labels_weighed: bool
    lowest: tuple[Mapping[str, Any], ...] = ()
    """The least clear tokens, with their unit–annotation scores."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        clear = self.unit_quality[np.isfinite(self.unit_quality)]
        workers = zip(self.annotators, self.worker_quality, self.worker_unit_agreement, self.worker_worker_agreement)
        return {
            "units": {
                "tokens": len(clear),
                "mean quality": float(clear.mean()) if len(clear) else None,
                "lowest": [dict(entry) for entry in self.lowest],
            },
            "workers": [
                {
                    "name": name,
                    "quality": float(q),
                    "worker-unit agreement": float(u),
                    "worker-worker agreement": float(w),
                }
                for name, q, u, w in workers
            ],
            "annotations": [
                {"label": name, "quality": float(q)} for name, q in zip(self.labels, self.annotation_quality)
            ],
            "converged": self.converged,
            "labels weighed": self.labels_weighed,
        }


def crowdtruth(corpus: CrowdCorpus) -> CrowdTruth:
    """Compute CrowdTruth's metrics of the people who vote in a corpus."""
    votes = Votes.of(corpus)
    start, annotator, label = votes.start, votes.annotator, votes.label
    found = crowdtruth_rounds(start, annotator, label, corpus.n_annotators, corpus.n_labels)
    return CrowdTruth(
        unit_quality=found.unit,
        worker_quality=found.worker,
        worker_unit_agreement=found.agreement[0],
        worker_worker_agreement=found.agreement[1],
        annotation_quality=found.label,
        annotators=tuple(corpus.annotators),
        labels=tuple(corpus.labels),
        converged=found.converged,
        labels_weighed=found.labels_weighed,
        lowest=_lowest(corpus, start, annotator, label, found),
    )


def _lowest(corpus: CrowdCorpus, start: Any, annotator: Any, label: Any, found: Rounds) -> tuple[dict[str, Any], ...]:
    """Describe the tokens of the lowest quality, the first ones where they tie."""
    quality = np.where(np.isfinite(found.unit), np.round(found.unit, 12), np.inf)
    rows = []
    for token in np.argsort(quality, kind="stable")[:LOWEST].tolist():
        if not np.isfinite(quality[token]):
            break
        votes = slice(int(start[token]), int(start[token + 1]))
        weight = found.worker[annotator[votes]]
        share = np.bincount(label[votes], weights=weight, minlength=corpus.n_labels) / max(float(weight.sum()), 1e-12)
        sequence = int(corpus.token_sequence[token])
        rows.append(
            {
                "sequence": str(corpus.sequence_ids[sequence]),
                "position": token - int(corpus.offsets[sequence]),
                "token": str(corpus.tokens[token]),
                "quality": float(quality[token]),
                "annotations": {corpus.labels[t]: float(share[t]) for t in np.flatnonzero(share).tolist()},
            }
        )
    return tuple(rows)

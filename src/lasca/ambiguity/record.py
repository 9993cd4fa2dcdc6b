"""What every method finds out (`Ranking`), and what is made of it: which tokens are ambiguous, between which labels.

The same fields for every method; how many tokens are flagged, and which labels compete there, is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, overload

import numpy as np
from safetensors.numpy import load_file

from lasca.arrays import Array, Bools, Codes, Floats, Ints, borders, ranges
from lasca.corpus import CrowdCorpus
from lasca.errors import CorpusError
from lasca.records import Record, frame, loading, read_header, save_folder
from lasca.truth.base import Votes

__all__ = ["Ambiguity", "Candidates", "Ranking", "flagged", "pick_candidates", "vote_scores", "without_company"]

LabelScores = Callable[[Ints], Floats]
"""From tokens to a score per label, (n, n_labels); -inf where a label does not compete."""


@dataclass(frozen=True)
class Ranking:
    """What a method finds out before tokens are flagged."""

    score: Floats
    label_scores: LabelScores
    unranked: Mapping[str, int]
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the `Ambiguity`."""
    pairs: Callable[[Ints], Mapping[str, Any]] | None = None
    """From flagged tokens to their pair fields; the candidates are then the best pair."""
    least: float = -np.inf
    """Tokens of this score or less are not ambiguous, whatever fraction is asked for."""


def flagged(score: Floats, entropy: Array, fraction: float | None, threshold: float, least: float = -np.inf) -> Array:
    """Return the most ambiguous tokens: a fraction of those with a score, or all whose score is above a threshold.

    A score of `least` or less is a clear no. Ties go to the larger entropy of the posterior, then to the earlier token.
    """
    ranked = np.flatnonzero(~np.isnan(score))
    if fraction is None:
        ranked = ranked[score[ranked] > threshold]
        wanted = len(ranked)
    else:
        wanted = int(fraction * len(ranked) + 0.5)
        ranked = ranked[score[ranked] > least]
    order = np.lexsort((ranked, -entropy[ranked], -score[ranked]))
    return ranked[order[:wanted]].astype(np.int64)


def without_company(votes: Votes) -> dict[str, int]:
    """Count the tokens that cannot be ranked because fewer than two labelled them."""
    n = np.diff(votes.start)
    return {"not annotated": int((n == 0).sum()), "one annotation only": int((n == 1).sum())}


def vote_scores(votes: Votes, weight: Floats, *, mean: bool) -> LabelScores:
    """Score labels by the weights of the votes they got: the mean of them, or their share in the token's total.

    Votes of weight nan do not count.
    """

    def scores(tokens: Ints) -> Floats:
        at = ranges(votes.start[tokens], votes.start[tokens + 1])
        row = np.repeat(np.arange(len(tokens)), np.diff(votes.start)[tokens])
        counts = ~np.isnan(weight[at])
        cell = (row * votes.n_labels + votes.label[at])[counts]
        size = len(tokens) * votes.n_labels
        total = np.bincount(cell, weights=weight[at][counts], minlength=size).reshape(len(tokens), votes.n_labels)
        n = np.bincount(cell, minlength=size).reshape(total.shape)
        below = n if mean else np.maximum(total.sum(axis=1, keepdims=True), 1e-300)
        with np.errstate(invalid="ignore"):
            return np.where(n > 0, total / below, -np.inf)

    return scores


def pick_candidates(scores: Floats, truth: Array, best_two: Array | None = None) -> tuple[Ints, Codes, Floats]:
    """Return, as CSR arrays, the two best labels of each row and the inferred truth, best first, then by code.

    `best_two` names the two instead (-1 = none). A label that does not compete but is the truth scores 0.
    """
    n, n_labels = scores.shape
    chosen = np.zeros((n, n_labels), np.bool_)
    rows = np.arange(n)
    if best_two is None:
        best_two = np.argsort(-scores, axis=1, kind="stable")[:, :2]
        best_two = np.where(np.take_along_axis(scores, best_two, axis=1) > -np.inf, best_two, -1)
    for column in best_two.T:
        known = column >= 0
        chosen[rows[known], column[known]] = True
    chosen[rows, truth] = True
    values = np.where(chosen, np.maximum(scores, 0.0), -np.inf)
    order = np.argsort(-values, axis=1, kind="stable")
    keep = np.take_along_axis(chosen, order, axis=1)
    start = borders(chosen.sum(axis=1))
    return start, order[keep].astype(np.int16), np.take_along_axis(values, order, axis=1)[keep]


VERSION = 1
_ARRAYS = ("score", "tokens", "candidate_start", "candidate_label", "candidate_score", "trace")
_OPTIONAL = ("unambiguity", "pair_weight", "pair_count", "label_count", "pair_label", "pair_proba", "pair_share")


class Candidates(Sequence[dict[int, float]]):
    """The competing labels of each ambiguous token: a mapping from label code to score, the best one first."""

    def __init__(self, start: Ints, label: Codes, score: Floats) -> None:
        self._start, self._label, self._score = start, label, score

    def __len__(self) -> int:
        return len(self._start) - 1

    @overload
    def __getitem__(self, index: int) -> dict[int, float]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[int, float]]: ...
    def __getitem__(self, index: int | slice) -> dict[int, float] | list[dict[int, float]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        part = slice(int(self._start[at]), int(self._start[at + 1]))
        return dict(zip(self._label[part].tolist(), self._score[part].tolist()))

    def __repr__(self) -> str:
        return f"Candidates(of {len(self):,} tokens)"


@dataclass(frozen=True, eq=False, repr=False)
class Ambiguity(Record):
    """The ambiguous tokens of a corpus, most ambiguous first, with the labels that compete there."""

    method: str
    params: Mapping[str, Any]
    label_names: tuple[str, ...]
    score: Floats
    """Per token, higher = more ambiguous; nan where it cannot be known. A probability for two-truths, -μ for rank-1."""
    tokens: Ints
    """The ambiguous tokens, most ambiguous first."""
    candidate_start: Ints
    candidate_label: Codes
    candidate_score: Floats
    unambiguity: Floats | None = None
    """μ per token: the agreement an average reliable annotator meets there (rank-1 only)."""
    share: float | None = None
    """The share of tokens with two truths, as learned (two-truths only)."""
    hard_share: float | None = None
    """The share of tokens on which votes are right less than ⅔ as often as on easy ones (two-truths only)."""
    pair_weight: Floats | None = None
    """κ: how often two labels are the two readings of an ambiguous token, (T, T), symmetric, adds up to 1."""
    pair_count: Floats | None = None
    """The expected number of tokens with each pair of truths, (T, T), symmetric (two-truths only)."""
    label_count: Floats | None = None
    """The expected number of tokens where each label is a truth, alone or as one of two (two-truths only)."""
    pair_label: Codes | None = None
    """(n_ambiguous, 5, 2): the most probable pairs of each ambiguous token, larger share first; -1 = no more."""
    pair_proba: Floats | None = None
    """(n_ambiguous, 5): their probabilities, given that there are two truths."""
    pair_share: Floats | None = None
    """(n_ambiguous, 5): π, the share of annotators who see the first label of the pair."""
    unranked: Mapping[str, int] = field(default_factory=dict)
    """How many tokens got no score, by reason."""
    trace: Floats = field(default_factory=lambda: np.zeros(0))
    """The objective of each iteration (of the last stage)."""
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("params", "unranked", "diagnostics"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        for name in (*_ARRAYS, *_OPTIONAL):
            if getattr(self, name) is not None:
                getattr(self, name).flags.writeable = False

    @property
    def candidates(self) -> Candidates:
        """Per ambiguous token: the competing labels (codes) with their scores, and the inferred truth."""
        return Candidates(self.candidate_start, self.candidate_label, self.candidate_score)

    @property
    def mask(self) -> Bools:
        """Whether each token is among the ambiguous ones."""
        flags = np.zeros(len(self.score), np.bool_)
        flags[self.tokens] = True
        return flags

    def to_table(self, corpus: CrowdCorpus | None = None, *, backend: str = "pyarrow") -> Any:
        """Return a frame with a row per ambiguous token, most ambiguous first: token_index, score, the names of the
        competing labels and their scores; with its corpus also sequence, position and token.

        `backend` is "pyarrow", "pandas" or "polars".
        """
        import pyarrow as pa

        columns: dict[str, Any] = {"token_index": pa.array(self.tokens)}
        if corpus is not None:
            if corpus.labels != self.label_names or corpus.n_tokens != len(self.score):
                raise CorpusError("the ambiguity is not of this corpus: their labels or lengths differ", got=corpus)
            sequence = corpus.token_sequence[self.tokens]
            columns |= {
                "sequence": corpus.sequence_ids.arrow.take(pa.array(sequence)),
                "position": pa.array((self.tokens - corpus.offsets[sequence]).astype(np.int32)),
                "token": corpus.tokens.arrow.take(pa.array(self.tokens)),
            }
        columns["score"] = pa.array(self.score[self.tokens])
        columns["candidates"] = pa.array([[self.label_names[t] for t in found] for found in self.candidates])
        columns["candidate_scores"] = pa.array([list(found.values()) for found in self.candidates])
        return frame(pa.table(columns), backend)

    def __repr__(self) -> str:
        share = "" if self.share is None else f", share {self.share:.3f}"
        return f"Ambiguity({self.method}: {len(self.tokens):,} of {len(self.score):,} tokens{share})"

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the result into a folder: ambiguity.json, and the arrays as safetensors; no pickle."""
        header = {
            "lasca": "ambiguity",
            "version": VERSION,
            "method": self.method,
            "params": dict(self.params),
            "labels": list(self.label_names),
            "share": self.share,
            "hard_share": self.hard_share,
            "unranked": dict(self.unranked),
            "diagnostics": dict(self.diagnostics),
            "warnings": list(self.warnings),
        }
        arrays = {name: getattr(self, name) for name in (*_ARRAYS, *_OPTIONAL) if getattr(self, name) is not None}
        save_folder(path, header, arrays, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Ambiguity:
        """Read a folder that `save` wrote."""
        with loading(path, "ambiguity") as folder:
            header = read_header(folder, "ambiguity", (VERSION,), "arrays.safetensors")
            arrays: dict[str, Any] = load_file(folder / "arrays.safetensors")
            n = len(arrays["tokens"])
            if len(arrays["candidate_start"]) != n + 1 or (n and arrays["tokens"].max() >= len(arrays["score"])):
                raise ValueError("the arrays do not fit together")
            same = ("method", "params", "share", "hard_share", "unranked", "diagnostics")
            return cls(
                label_names=tuple(header["labels"]),
                warnings=tuple(header["warnings"]),
                **{name: header[name] for name in same},
                **arrays,
            )

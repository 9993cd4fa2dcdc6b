"""Truth: what a model inferred, with the same fields for every model; and what a later fit makes of it (`History`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import load_file

from lasca.arrays import Array, Bools, Codes, Floats, Ints, Ints32, Proba
from lasca.corpus import CrowdCorpus, Strings
from lasca.corpus.build import label_names
from lasca.corpus.reshape import named
from lasca.errors import CorpusError, ModelError
from lasca.evaluate import Scores, truth_scores
from lasca.records import Record, card, frame, loading, plain, read_header, save_folder

__all__ = ["Clusters", "History", "Truth", "entropy_of"]

SHOWN = 20
"""Annotators that a notebook shows, the most reliable ones first."""
VERSION = 2
OLDER = (1,)  # versions that can still be read: 1 had neither `voted` nor `statistics`


def entropy_of(proba: Proba) -> Proba:
    """Return how unsure each token is, in nats."""
    p = np.clip(proba, np.finfo(np.float32).tiny, 1)
    return np.asarray(-(p * np.log(p)).sum(axis=1), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Clusters:
    """Groups of annotators who behave alike, ordered by reliability: cluster 0 is the most reliable."""

    assignment: Ints32
    """The cluster of each annotator; -1 for one who gave no label."""
    proba: Proba
    """(n_annotators, n_clusters): how sure the assignment is."""
    shared: Proba
    """(n_clusters, n_labels, n_labels): the confusion matrix the annotators of a cluster share; rows sum to 1
    (to less where it holds only what they all agree on, `shared="unanimous"`)."""
    reliable: int = 0
    """Which cluster is the reliable one (the largest mean diagonal of its shared matrix)."""

    @property
    def n_clusters(self) -> int:
        """How many clusters there are."""
        return len(self.shared)


@dataclass(frozen=True, eq=False, repr=False)
class Truth(Record):
    """The inferred truth of a corpus: labels with probabilities, and what each annotator is worth."""

    model: str
    params: Mapping[str, Any]
    label_names: tuple[str, ...]
    offsets: Ints
    sequence_ids: Strings
    labels: Codes
    """The inferred label of each token (for sequence models the best path, not the best label token by token)."""
    proba: Proba
    """(n_tokens, n_labels): the probability of each label; rows sum to 1."""
    annotators: pa.Table
    """One row per annotator: name, role, n, reliability, reliability_low, reliability_high (95 %), cluster."""
    confusion: Proba
    """(n_annotators, n_labels, n_labels): how often an annotator gives label s where t is true; rows sum to 1."""
    clusters: Clusters | None
    trace: Floats
    """The objective after each iteration; for samplers the log joint, (n_chains, n_sweeps)."""
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    """Plain numbers and lists: iterations, converged, R-hat, ESS, … as the model has them."""
    warnings: tuple[str, ...] = ()
    voted: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    """Whether anybody said anything of a token, or something is known of it. The others have no truth: what stands
    there is a guess, and is left out of training, scores and written files. Left out: everything was voted on."""
    statistics: Mapping[str, Array] = field(default_factory=dict)
    """What the parameters were made of (expected counts), by name, from which a later fit can go on (`history=`); of
    samplers the kept `draws`."""

    def __post_init__(self) -> None:
        for name in ("params", "diagnostics", "statistics"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        if len(self.voted) != len(self.labels):
            object.__setattr__(self, "voted", np.ones(len(self.labels), np.bool_))
        for array in (self.offsets, self.labels, self.proba, self.confusion, self.trace, self.voted):
            array.flags.writeable = False

    @property
    def codes(self) -> Codes:
        """The inferred label of each token that anybody labelled, -1 for the others."""
        return np.where(self.voted, self.labels, np.int16(-1))

    @property
    def draws(self) -> dict[str, Floats]:
        """What a sampler drew and kept, (n_chains, n_draws) by name, as ArviZ takes it; empty for other models."""
        kept = (name for name in self.statistics if name.startswith("draws."))
        return {name.removeprefix("draws."): self.statistics[name] for name in kept}

    def sequences(self) -> list[list[str]]:
        """Return the labels as lists of strings, one list per sequence."""
        names = label_names(self.labels, self.offsets, self.label_names)
        return [[str(name) for name in sequence] for sequence in names]

    @property
    def entropy(self) -> Proba:
        """How unsure each token is, in nats."""
        return entropy_of(self.proba)

    def to_table(self, corpus: CrowdCorpus | None = None, *, backend: str = "pyarrow") -> Any:
        """Return a frame with a row per token: sequence, position, the token if its corpus is given, label,
        probability, entropy, voted.

        The label is null where nobody labelled the token. `backend` is "pyarrow", "pandas" or "polars";
        `truth.annotators` is a table already.
        """
        n = np.diff(self.offsets)
        columns: dict[str, Any] = {
            "sequence": self.sequence_ids.arrow.take(pa.array(np.repeat(np.arange(len(n)), n))),
            "position": pa.array((np.arange(len(self.labels)) - np.repeat(self.offsets[:-1], n)).astype(np.int32)),
        }
        if corpus is not None:
            self._check_belongs(corpus)
            columns["token"] = corpus.tokens.arrow
        sure = np.take_along_axis(self.proba, self.labels[:, None].astype(np.int64), axis=1)[:, 0]
        columns |= {"label": named(self.codes, self.label_names), "probability": pa.array(sure)}
        columns |= {"entropy": pa.array(self.entropy), "voted": pa.array(self.voted)}
        return frame(pa.table(columns), backend)

    def score(self, corpus: CrowdCorpus, gold: str | None = None, *, sequences: npt.ArrayLike | None = None) -> Scores:
        """Score the truth against a gold of its corpus (the first one if not named): tokens, spans, probabilities.

        `sequences` is a mask, or indices; if it is not given, the sequences that somebody annotated are scored. Tokens
        that nobody labelled are left out, but of spans, which need their neighbours.
        """
        self._check_belongs(corpus)
        name = corpus.gold_name(gold)
        if name is None:
            raise CorpusError("the corpus has no gold to score against")
        mask = corpus.annotated_sequences if sequences is None else sequences
        return truth_scores(
            corpus.golds[name], self.labels, self.proba, self.voted, self.offsets, self.label_names, mask
        )

    def _check_belongs(self, corpus: CrowdCorpus) -> None:
        if corpus.labels != self.label_names or not np.array_equal(corpus.offsets, self.offsets):
            raise CorpusError(
                "the truth is not of this corpus: their labels or lengths differ", got=corpus, hint="Fit it again"
            )

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {"tokens": len(self.labels), "labels": ", ".join(self.label_names)}
        facts |= {"converged": self.diagnostics["converged"]} if "converged" in self.diagnostics else {}
        facts |= {f"warning {i}": text for i, text in enumerate(self.warnings, start=1)}
        shown = self.annotators.select(["name", "n", "reliability", "reliability_low", "reliability_high"])
        people = shown.sort_by([("reliability", "descending")]).slice(0, SHOWN).to_pylist()
        return card(f"Truth by {self.model}", facts, people, len(self.annotators) - SHOWN)

    def __repr__(self) -> str:
        clusters = "" if self.clusters is None else f", {self.clusters.n_clusters} clusters"
        return f"Truth({self.model}: {len(self.labels):,} tokens, {len(self.annotators)} annotators{clusters})"

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the result into a folder: truth.json, arrays as safetensors, tables as Parquet; no pickle."""
        header = {
            "lasca": "truth",
            "version": VERSION,
            "model": self.model,
            "params": {name: plain(value) for name, value in self.params.items()},
            "labels": list(self.label_names),
            "diagnostics": {name: plain(value) for name, value in self.diagnostics.items()},
            "warnings": list(self.warnings),
            "reliable": None if self.clusters is None else self.clusters.reliable,
        }
        names = ("offsets", "labels", "proba", "confusion", "trace", "voted")
        arrays = {name: getattr(self, name) for name in names}
        if self.clusters is not None:
            arrays |= {f"clusters.{n}": getattr(self.clusters, n) for n in ("assignment", "proba", "shared")}
        arrays |= {f"statistics.{name}": array for name, array in self.statistics.items()}
        tables = {"annotators": self.annotators, "sequences": pa.table({"id": self.sequence_ids.arrow})}
        save_folder(path, header, arrays, tables, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Truth:
        """Read a folder that `save` wrote."""
        files = ("arrays.safetensors", "annotators.parquet", "sequences.parquet")
        again = "Make it anew: lasca aggregate DATA -o FOLDER"
        with loading(path, "truth") as folder:
            header = read_header(folder, "truth", (VERSION, *OLDER), *files, hint=again)
            arrays = load_file(folder / "arrays.safetensors")
            ids = pq.read_table(folder / "sequences.parquet").column("id").combine_chunks()
            kept = [name for name in arrays if name.startswith("statistics.")]
            statistics = {name.removeprefix("statistics."): arrays.pop(name) for name in kept}
            clusters = None
            if header["reliable"] is not None:
                parts = {n: arrays.pop(f"clusters.{n}") for n in ("assignment", "proba", "shared")}
                clusters = Clusters(reliable=int(header["reliable"]), **parts)
            return cls(
                model=header["model"],
                params=header["params"],
                label_names=tuple(header["labels"]),
                sequence_ids=Strings(ids),
                annotators=pq.read_table(folder / "annotators.parquet"),
                clusters=clusters,
                diagnostics=header["diagnostics"],
                warnings=tuple(header["warnings"]),
                statistics=statistics,
                **arrays,
            )


@dataclass(frozen=True)
class History:
    """What an earlier truth counted, in the numbers of another corpus: `fit(history=)`.

    Its statistics stay as they were and act as counts that were seen before: one sweep of incremental EM (Neal & Hinton
    1998) over the new tokens alone. Labels and annotators are matched by name: a label that is gone is refused,
    somebody who is gone is left out, and new ones have no past.
    """

    truth: Truth
    n_labels: int
    n_annotators: int
    label: Ints
    """The code of each label of the truth in the corpus."""
    old: Ints
    """The annotators of the truth whom the corpus knows."""
    new: Ints
    """And which ones they are there."""

    @classmethod
    def of(cls, truth: Truth, corpus: CrowdCorpus, needs: str) -> History:
        """Match by name; the truth must hold the statistics `needs`, and the corpus must have all its labels."""
        if needs not in truth.statistics:
            there = ", ".join(truth.statistics) or "none"
            what = f"this truth holds no statistics {needs!r} to go on from (there is: {there})"
            raise ModelError(what, hint="Fit it anew with this version")
        lost = [name for name in truth.label_names if name not in corpus.labels]
        if lost:
            raise ModelError(
                "the history has labels that the corpus does not have", got=", ".join(lost), hint="Name them: labels="
            )
        label = np.array([corpus.labels.index(name) for name in truth.label_names])
        code = {name: i for i, name in enumerate(corpus.annotators)}
        who = np.array([code.get(name, -1) for name in truth.annotators.column("name").to_pylist()], np.int64)
        old = np.flatnonzero(who >= 0)
        return cls(truth, corpus.n_labels, corpus.n_annotators, label, old, who[old])

    def counts(self, name: str, axes: str) -> Floats:
        """Return counts of the truth with the codes of the corpus, 0 for what is new there.

        `axes` has a letter for each of their dimensions: "a" for annotators, "t" for labels, "." for what is no code.
        """
        kept, labels = self.truth.statistics[name], np.arange(len(self.label))
        n = {"a": self.truth.annotators.num_rows, "t": len(labels)}
        if len(axes) != kept.ndim or any(n.get(x, size) != size for x, size in zip(axes, kept.shape)):
            what = f"axes must say which of {kept.shape}, the shape of {name!r}, are annotators (a) or labels (t)"
            raise ModelError(what, got=axes, hint=f"There are {n['a']} annotators and {n['t']} labels; . is neither")
        known = {"a": (self.old, self.new, self.n_annotators), "t": (labels, self.label, self.n_labels)}
        old, new, shape = zip(*(known.get(x, (np.arange(n), np.arange(n), n)) for x, n in zip(axes, kept.shape)))
        found = np.zeros(shape)
        found[np.ix_(*new)] = kept[np.ix_(*old)]
        return found

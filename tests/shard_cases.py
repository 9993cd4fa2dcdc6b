"""What the tests of shards and of clusters share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lasca.corpus import CrowdCorpus
from lasca.corpus import votes as corpus_votes

OPTIONS: dict[str, dict[str, Any]] = {
    "mv": {},
    "ds": {"max_iter": 4},
    "mace": {"max_iter": 3, "restarts": 2},
    "glad": {"max_iter": 3, "restarts": 2},
    "hmm-crowd": {"max_iter": 3, "restarts": 2},
    "sembler": {"max_iter": 2, "restarts": 2, "crf_iter": 3},
    "raykar": {"max_iter": 2, "restarts": 2, "crf_iter": 3},
    "crf-ma": {"max_iter": 2, "restarts": 2, "crf_iter": 3},
    "bsc": {"max_iter": 3, "restarts": 2},
    "hc": {"n_chains": 2, "n_warmup": 3, "n_samples": 4, "n_clusters": 2, "shared": "unanimous"},
    "hc-seq": {"max_iter": 3, "rounds": 1, "folds": 2, "text_iterations": 4},
    "robust": {"max_iter": 3, "rounds": 1, "folds": 2, "text_iterations": 4},
}


def in_pieces(corpus: CrowdCorpus, size: int) -> Iterator[CrowdCorpus]:
    """Give a corpus in pieces of so many sequences."""
    for first in range(0, corpus.n_sequences, size):
        yield corpus.select(sequences=np.arange(first, min(first + size, corpus.n_sequences)))


def small_blocks(monkeypatch: pytest.MonkeyPatch, target: int = 1000) -> None:
    """Let every model cut its votes into blocks of about so many votes."""
    cut = corpus_votes.cut_into_blocks

    def small(votes: Any, _: int, **options: Any) -> Any:
        return cut(votes, target // 5 if options.get("by_tokens") else target, **options)

    for module in ("dawid_skene", "mace", "glad", "chain", "joint"):
        monkeypatch.setattr(f"lasca.truth.{module}.cut_into_blocks", small)


def parts_of(folder: Path) -> Any:
    """Return the labels of a folder that `aggregate_shards` wrote as one table."""
    files = sorted((folder / "labels").glob("part-*.parquet"))
    tables = [pq.read_table(file) for file in files]
    plain = [
        pa.table(
            {n: t.column(n).cast(pa.string()) if n in ("label", "sequence") else t.column(n) for n in t.column_names}
        )
        for t in tables
    ]
    return pa.concat_tables(plain)

"""A truth on disk, a part for each block of a sharded corpus: what `lasca aggregate` wrote of shards, opened again.

The parts are the blocks of the steps that come after the truth (ambiguity, taggers): a task reads the votes and the
words of its block from the shards, and the block's labels from the part.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lasca.arrays import Codes, Proba
from lasca.corpus.shards import BlockOnDisk, ShardedCorpus
from lasca.corpus.store import part_name
from lasca.errors import StoreError
from lasca.files import check_sums
from lasca.records import loading
from lasca.truth.result import Truth, entropy_of

__all__ = ["PartOfTruth", "TruthOfBlock", "TruthOnDisk", "is_in_parts"]


def is_in_parts(path: str | Path) -> bool:
    """Say whether a folder holds the truth of a sharded corpus."""
    folder = Path(path)
    return (folder / "labels" / "part-00000.parquet").is_file() and (folder / "truth").is_dir()


class TruthOfBlock(NamedTuple):
    """What was inferred of the tokens of a block."""

    labels: Codes
    """-1 where nothing is said of a token."""
    proba: Proba

    @property
    def entropy(self) -> Proba:
        """How unsure each token is, in nats."""
        return entropy_of(self.proba)


@dataclass(frozen=True)
class PartOfTruth(BlockOnDisk):
    """Where a block and its truth are."""

    truth_folder: str
    names: tuple[str, ...]
    ends: tuple[int, ...]
    """The first token of each part of the truth, and the end of the last one."""

    def truth(self) -> TruthOfBlock:
        """Read what was inferred; the hashes of parts are compared once in each process."""
        parts = range(
            int(np.searchsorted(self.ends, self.first, "right")) - 1, int(np.searchsorted(self.ends, self.last))
        )
        found = [
            self._read(part, max(self.first, self.ends[part]), min(self.last, self.ends[part + 1])) for part in parts
        ]
        return TruthOfBlock(*(np.concatenate(arrays) for arrays in zip(*found)))

    def _read(self, part: int, first: int, last: int) -> TruthOfBlock:
        name = f"labels/{part_name(part)}"
        _compare(self.truth_folder, name)
        try:
            table = pq.read_table(Path(self.truth_folder) / name, columns=["label", "proba"])
            table = table.slice(first - self.ends[part], last - first)
            label = pc.index_in(table.column("label").cast(pa.string()), pa.array(self.names, pa.string()))
            proba = table.column("proba").combine_chunks().flatten()
            codes = np.asarray(label.combine_chunks().fill_null(-1)).astype(np.int16)
            return TruthOfBlock(codes, np.array(proba, np.float32).reshape(last - first, len(self.names)))
        except (OSError, pa.ArrowException, KeyError, ValueError) as error:
            raise StoreError(f"cannot read {name}", where=self.truth_folder, got=str(error)) from error


@lru_cache(maxsize=4096)
def _compare(folder: str, name: str) -> None:
    check_sums(Path(folder), name)


@dataclass(frozen=True)
class TruthOnDisk:
    """The truth of a sharded corpus, opened: what was learned of annotators, and where the rest is."""

    folder: Path
    corpus: ShardedCorpus
    truth: Truth

    @classmethod
    def open(cls, path: str | Path) -> TruthOnDisk:
        """Open a folder that `lasca aggregate` wrote of a sharded corpus, which must be where it was."""
        folder = Path(path).resolve()
        with loading(folder, "truth of a sharded corpus"):
            check_sums(folder, "aggregate.json")
            source = json.loads((folder / "aggregate.json").read_text(encoding="utf-8"))["source"]
            corpus = ShardedCorpus.open(source["source"])
        if corpus.key != source["sha256"]:
            raise StoreError(
                "the sharded corpus is another one than when its truth was inferred",
                where=str(corpus.folder),
                hint="Infer it again: lasca aggregate",
            )
        return cls(folder, corpus, Truth.load(folder / "truth"))

    def blocks(self, target: int | None = None) -> list[PartOfTruth]:
        """Return blocks with their truth: the parts as they are, or blocks of about so many tokens."""
        files = sorted((self.folder / "labels").glob("part-*.parquet"))
        try:
            ends = np.cumsum([0, *(pq.read_metadata(file).num_rows for file in files)]).tolist()
        except (OSError, pa.ArrowException) as error:
            raise StoreError("a part of the truth is damaged", where=str(self.folder), got=str(error)) from error
        names = [part_name(i) for i in range(len(files))]
        if ends[-1] != self.corpus.n_tokens or [file.name for file in files] != names:
            raise StoreError(
                "parts of the truth are missing",
                where=str(self.folder / "labels"),
                got=f"{ends[-1]:,} of {self.corpus.n_tokens:,} tokens",
            )
        cuts = list(pairwise(ends))
        if target is not None:
            cuts = [(b.first, b.last) for b in self.corpus.crowd_votes().blocks(target, by_tokens=True)]
        folder, key, labels = str(self.corpus.folder), self.corpus.key, self.corpus.labels
        return [
            PartOfTruth(folder, key, a, b, number, str(self.folder), labels, tuple(ends))
            for number, (a, b) in enumerate(cuts)
        ]

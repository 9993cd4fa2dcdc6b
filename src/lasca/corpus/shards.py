"""A corpus that need not fit into memory: a folder of shards, of which blocks are read when they are needed.

```
corpus.json       what it is: labels, sizes of the shards, the load report
annotators.arrow  name, kind, family, whether they vote, how often they do
words.arrow       the words, in the order in which they first occur
shards/00000/     sequences, offsets, tokens, starts, annotations, cuts (and soft, known): Arrow, memory-mapped
SHA256SUMS
```

A shard is a run of whole documents and ends where the data alone say. Codes are those of the whole corpus. Blocks
(`lasca.corpus.votes`) are cut as they would be in memory, wherever shards end: the same bytes from both.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lasca.arrays import Codes, Ints, Ints32, borders, readonly
from lasca.corpus.build import Named
from lasca.corpus.evidence import KnownLabels, SoftVotes
from lasca.corpus.record import CrowdCorpus
from lasca.corpus.report import LoadReport
from lasca.corpus.store import chars_of, checked_arrow, column_of, known_of, numbers_of, read_arrow, soft_of
from lasca.corpus.strings import Strings
from lasca.corpus.votes import Block, Votes
from lasca.errors import LascaError, StoreError
from lasca.files import AGAIN, SUMS, check_sums, file_hash, sums_of
from lasca.records import loading, read_record

__all__ = ["BlockOnDisk", "ShardedCorpus", "VotesOnDisk", "is_sharded", "sequences_of"]

VERSION = 1
MANIFEST = "corpus.json"
SIZES = ("sequences", "tokens", "annotations", "votes", "soft", "soft_rows", "known", "lonely")
"""What the manifest counts of each shard."""


def is_sharded(path: Any) -> bool:
    """Say whether there is a sharded corpus at a path."""
    try:
        return isinstance(path, str | Path) and (Path(path) / "shards").is_dir() and (Path(path) / MANIFEST).is_file()
    except (OSError, ValueError):
        return False


def _counts(sizes: dict[str, Any]) -> Ints:
    """Return how much of each is in each shard."""
    counts = np.array([sizes[name] for name in SIZES], np.int64)
    if counts.ndim != 2 or counts.shape[1] == 0 or counts.min() < 0:
        raise ValueError("shards without sizes")
    return counts


@dataclass(frozen=True)
class ShardedCorpus(Named):
    """A sharded corpus, opened: what is known of it without reading a shard."""

    folder: Path
    key: str
    """The hash of its SHA256SUMS: another one is another corpus."""
    labels: tuple[str, ...]
    annotators: tuple[str, ...]
    kinds: tuple[str, ...]
    families: tuple[str | None, ...]
    votes: tuple[bool, ...]
    n_votes_of: Ints = field(repr=False)
    """How many votes each annotator gave, hard and soft (0 for those who do not vote)."""
    sizes: dict[str, Ints] = field(repr=False)
    """What is in each shard: sequences, tokens, votes (hard ones, of those who vote), soft ones that say something,
    rows of soft votes, known labels, lonely votes."""
    golds: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()
    token_metadata: tuple[str, ...] = ()
    load_report: LoadReport = field(default_factory=LoadReport, repr=False)

    @classmethod
    def open(cls, path: str | Path) -> ShardedCorpus:
        """Open a folder that `lasca shard` wrote."""
        folder = Path(path).resolve()
        with loading(folder, "sharded corpus"):
            check_sums(folder, MANIFEST, "annotators.arrow")
            header = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            if header.get("lasca") != "shards" or header.get("version") != VERSION:
                raise StoreError(
                    "not a sharded corpus of this version of LASCA",
                    where=str(folder),
                    got=header.get("version"),
                    hint="Make it anew: lasca shard DATA -o FOLDER",
                )
            who = checked_arrow(folder / "annotators.arrow")
            return cls(
                folder=folder,
                key=file_hash(folder / SUMS),
                labels=tuple(header["labels"]),
                annotators=tuple(who.column("name").to_pylist()),
                kinds=tuple(who.column("kind").to_pylist()),
                families=tuple(who.column("family").to_pylist()),
                votes=tuple(who.column("votes").to_pylist()),
                n_votes_of=numbers_of(who, "n"),
                sizes=dict(zip(SIZES, _counts(header["shards"]))),
                golds=tuple(header["golds"]),
                metadata=tuple(header["metadata"]),
                token_metadata=tuple(header["token_metadata"]),
                load_report=LoadReport.from_dict(header["load_report"]),
            )

    # --- sizes -------------------------------------------------------------------------------------------------

    @property
    def n_tokens(self) -> int:
        """How many tokens there are."""
        return int(self.sizes["tokens"].sum())

    @property
    def n_sequences(self) -> int:
        """How many sequences there are."""
        return int(self.sizes["sequences"].sum())

    @property
    def n_shards(self) -> int:
        """How many shards there are."""
        return len(self.sizes["tokens"])

    @cached_property
    def has_documents(self) -> bool:
        """Whether it has more than one document."""
        names: set[str] = set()
        for shard in range(self.n_shards if "document" in self.metadata else 0):
            names |= set(pc.unique(_texts([self._shard(shard, "sequences")], "document").arrow)[:2].to_pylist())
            if len(names) > 1:
                return True
        return False

    def begins(self, what: str) -> Ints:
        """Return how much of something is before each shard, and in all."""
        return borders(self.sizes[what])

    def __repr__(self) -> str:
        votes = int(self.sizes["votes"].sum())
        return (
            f"ShardedCorpus({self.n_shards} shards, {self.n_sequences:,} sequences, {self.n_tokens:,} tokens, "
            f"{self.n_annotators:,} annotators, {votes:,} votes, {self.n_labels} labels)"
        )

    # --- reading -----------------------------------------------------------------------------------------------

    @cached_property
    def _sums(self) -> dict[str, str]:
        return sums_of(self.folder)

    @cached_property
    def _checked(self) -> set[str]:
        return set()

    def _table(self, name: str) -> Any:
        """Map a table into memory; its hash is compared, and all of it looked at, once in each process."""
        known = name in self._checked
        if not known:
            file = self.folder / name
            if name not in self._sums:
                raise StoreError(f"the sharded corpus is damaged: {SUMS} lacks {name}", where=str(self.folder))
            try:
                whole = file_hash(file) == self._sums[name]
            except OSError as error:
                raise StoreError(
                    f"a shard is missing: {name}", where=str(self.folder), got=error.strerror, hint=AGAIN
                ) from error
            if not whole:
                raise StoreError(f"a shard is damaged: {name} has changed", where=str(self.folder), hint=AGAIN)
            self._checked.add(name)
        try:
            return (read_arrow if known else checked_arrow)(self.folder / name)
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"a shard cannot be read: {name}", where=str(self.folder), got=str(error)) from error

    def _shard(self, shard: int, name: str) -> Any:
        return self._table(f"shards/{shard:05d}/{name}.arrow")

    @cached_property
    def words(self) -> Strings:
        """The words; tokens are codes of them."""
        return Strings(column_of(self._table("words.arrow"), "word"))

    def pieces(self, first: int, last: int) -> list[tuple[int, int, int]]:
        """Return the shards that hold tokens first..last, with the tokens of each that are meant."""
        begins = self.begins("tokens")
        found = range(int(np.searchsorted(begins, first, "right")) - 1, int(np.searchsorted(begins, last, "left")))
        return [(s, int(max(first - begins[s], 0)), int(min(last, begins[s + 1]) - begins[s])) for s in found]

    def block(self, first: int, last: int) -> Block:
        """Read the tokens first..last, which are whole sequences, as a block."""
        everything = self._said(first, last)
        return Block(everything.of_voters(np.array(self.votes, bool)), 0, everything.n_tokens)

    def _said(self, first: int, last: int) -> Votes:
        """Return all that is said of the tokens first..last, by those who vote and by those who do not."""
        parts = [self._piece(*piece) for piece in self.pieces(first, last)]
        tokens, votes = (borders([len(part[name]) for part in parts]) for name in ("words", "label"))
        ends = [part["offsets"][1:] + begin for part, begin in zip(parts, tokens)]
        starts = [part["start"][1:] + begin for part, begin in zip(parts, votes)]
        return Votes(
            _joined([[0], *starts], np.int64),
            _joined([part["annotator"] for part in parts], np.int32),
            _joined([part["label"] for part in parts], np.int16),
            self.n_annotators,
            self.n_labels,
            _joined([[0], *ends], np.int64),
            SoftVotes.joined((part.get("soft"), begin) for part, begin in zip(parts, tokens)),
            KnownLabels.joined((part.get("known"), begin) for part, begin in zip(parts, tokens)),
            words=_joined([part["words"] for part in parts], np.int32),
        )

    def _piece(self, shard: int, a: int, b: int) -> dict[str, Any]:
        """Return the arrays of some tokens of a shard, counted from the first of them."""
        offsets = numbers_of(self._shard(shard, "offsets"), "offset")
        i, j = sequences_of(offsets, a, b)
        start = numbers_of(self._shard(shard, "starts"), "start")[a : b + 1]
        given = self._shard(shard, "annotations").slice(int(start[0]), int(start[-1] - start[0]))
        piece = {
            "offsets": offsets[i : j + 1] - a,
            "start": start - start[0],
            "annotator": numbers_of(given, "annotator"),
            "label": numbers_of(given, "label"),
            "words": numbers_of(self._shard(shard, "tokens"), "word")[a:b],
        }
        if self.sizes["soft_rows"][shard]:
            piece["soft"] = soft_of(self._shard(shard, "soft"), self.n_labels).within(a, b)
        if self.sizes["known"][shard]:
            piece["known"] = known_of(self._shard(shard, "known"), self.n_labels).within(a, b)
        return piece

    def gold(self, name: str, first: int, last: int) -> Codes:
        """Return the gold labels of the tokens first..last, -1 where there is none."""
        self.gold_name(name)
        parts = [_gold(self._shard(s, "tokens").slice(a, b - a), name) for s, a, b in self.pieces(first, last)]
        return np.concatenate([np.zeros(0, np.int16), *parts])

    def sequences(self, first: int, last: int) -> tuple[Ints, Strings]:
        """Return the borders (from 0) and the ids of the sequences of the tokens first..last."""
        parts = [self._sequences(*piece) for piece in self.pieces(first, last)]
        ids = pa.concat_arrays([column_of(table, "id") for _, table in parts])
        return borders(np.concatenate([lengths for lengths, _ in parts])), Strings(ids)

    def _sequences(self, shard: int, a: int, b: int) -> tuple[Ints, Any]:
        """Return the lengths of the sequences of some tokens of a shard, and their part of its table of sequences."""
        offsets = numbers_of(self._shard(shard, "offsets"), "offset")
        i, j = sequences_of(offsets, a, b)
        return np.diff(offsets[i : j + 1]), self._shard(shard, "sequences").slice(i, j - i)

    def cut_after(self, wanted: Ints, by: str) -> list[int]:
        """Return the first tokens before which so much of something ("votes", "tokens") lies and a cut is allowed."""
        begins, tokens = self.begins(by), self.begins("tokens")
        found = []
        for least in wanted.tolist():
            shard = max(int(np.searchsorted(begins[:-1], least)) - 1, 0)
            for s in range(shard, self.n_shards):
                cuts = self._shard(s, "cuts")
                at = int(np.searchsorted(numbers_of(cuts, by) + begins[s], least))
                if at < len(cuts):
                    found.append(int(numbers_of(cuts, "tokens")[at] + tokens[s]))
                    break
        return found

    def crowd_votes(self) -> VotesOnDisk:
        """Return the votes, none of them read."""
        total = {what: int(sizes.sum()) for what, sizes in self.sizes.items()}
        soft, known = (True if total[what] else None for what in ("soft", "known"))
        n_votes, n_voters = total["votes"] + total["soft"], int((self.n_votes_of > 0).sum())
        return VotesOnDisk(
            self,
            n_tokens=total["tokens"],
            n_hard=total["votes"],
            n_votes=n_votes,
            n_annotators=self.n_annotators,
            n_labels=self.n_labels,
            soft=soft,
            known=known,
            is_sole=n_voters == 1 and soft is None and known is None,
            n_voters=n_voters,
            lonely=total["lonely"] / max(1, n_votes),
        )

    def whole(self) -> CrowdCorpus:
        """Read all shards into one corpus in memory."""
        return self.part(0, self.n_tokens)

    def part(self, first: int, last: int) -> CrowdCorpus:
        """Read the tokens first..last, which are whole sequences, as a corpus in memory."""
        try:
            return self._part(first, last)
        except LascaError:
            raise
        except (pa.ArrowException, KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise StoreError("the sharded corpus is damaged", where=str(self.folder), got=str(error)) from error

    def _part(self, first: int, last: int) -> CrowdCorpus:
        said, where = self._said(first, last), self.pieces(first, last)
        tokens = [self._shard(s, "tokens").slice(a, b - a) for s, a, b in where]
        sequences = [self._sequences(*piece)[1] for piece in where]
        return CrowdCorpus(
            tokens=Strings(self.words.arrow.take(pa.array(said.words))),
            offsets=said.offsets,
            labels=self.labels,
            annotators=self.annotators,
            annotation_annotator=said.annotator,
            annotation_label=said.label,
            token_start=said.start,
            sequence_ids=Strings(pa.concat_arrays([column_of(t, "id") for t in sequences])),
            golds={name: np.concatenate([_gold(t, name) for t in tokens]) for name in self.golds},
            kinds=self.kinds,
            families=self.families,
            votes=self.votes,
            soft=said.soft,
            known=said.known,
            metadata={name: _texts(sequences, name) for name in self.metadata},
            token_metadata={name: _texts(tokens, name) for name in self.token_metadata},
            token_chars=chars_of(tokens),
            load_report=self.load_report,
        )


@dataclass(frozen=True)
class VotesOnDisk:
    """What models ask of votes before they see a block, as `lasca.corpus.votes.Votes` says it of votes in memory."""

    corpus: ShardedCorpus
    n_tokens: int
    n_hard: int
    n_votes: int
    n_annotators: int
    n_labels: int
    soft: bool | None
    """Whether there are soft votes; None if not."""
    known: bool | None
    """Whether something is known; None if not."""
    is_sole: bool
    n_voters: int
    lonely: float

    def blocks(self, target: int, *, by_tokens: bool = False) -> list[BlockOnDisk]:
        """Cut into blocks as `lasca.corpus.votes.cut_into_blocks` does."""
        by = "tokens" if by_tokens else "votes"
        total = self.n_tokens if by_tokens else self.n_hard
        n_blocks = max(1, round(total / target))
        inner = self.corpus.cut_after(total * np.arange(1, n_blocks) // n_blocks, by)
        ends = np.unique([0, *inner, self.n_tokens]).tolist()
        where = (str(self.corpus.folder), self.corpus.key)
        return [BlockOnDisk(*where, a, b, number) for number, (a, b) in enumerate(pairwise(ends))]


@dataclass(frozen=True)
class BlockOnDisk:
    """Where a block is. This is all that goes to a worker, who reads it there."""

    folder: str
    key: str
    first: int
    last: int
    number: int
    beside: Path | None = field(default=None, kw_only=True)
    """The file of what is kept beside it."""

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def corpus(self) -> ShardedCorpus:
        """The corpus, opened once in each process."""
        return _opened(self.folder, self.key)

    def columns(self, words: Ints32) -> dict[str, Any]:
        """Return the columns that a table of its tokens begins with: sequence, position, and the word of each."""
        offsets, ids = self.corpus.sequences(self.first, self.last)
        lengths = np.diff(offsets)
        sequence = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        return {
            "sequence": pa.DictionaryArray.from_arrays(pa.array(sequence), ids.arrow),
            "position": (np.arange(len(sequence)) - np.repeat(offsets[:-1], lengths)).astype(np.int32),
            "token": self.corpus.words.arrow.take(pa.array(words)),
        }

    def load(self) -> Block:
        """Read the block."""
        beside = None if self.beside is None else read_record(self.beside)
        return replace(self.corpus.block(self.first, self.last), number=self.number, place=self, beside=beside)


@lru_cache(maxsize=4)
def _opened(folder: str, key: str) -> ShardedCorpus:
    corpus = ShardedCorpus.open(folder)
    if corpus.key != key:
        raise StoreError("the sharded corpus is another one than when the work began", where=folder)
    return corpus


def sequences_of(offsets: Ints, first: int, last: int) -> tuple[int, int]:
    """Return which sequences the tokens first..last are; those without a token belong to what comes before them."""
    i = 0 if first == 0 else int(np.searchsorted(offsets, first, "right")) - 1
    return i, int(np.searchsorted(offsets, last, "right")) - 1


def _joined(arrays: list[Any], dtype: Any) -> Any:
    """Put arrays behind each other, read-only: kernels are compiled for one kind only."""
    whole = arrays[0] if len(arrays) == 1 else np.concatenate(arrays).astype(dtype, copy=False)
    return readonly(np.ascontiguousarray(whole, dtype))


def _gold(tokens: Any, name: str) -> Codes:
    column = f"gold:{name}"
    return numbers_of(tokens, column) if column in tokens.column_names else np.full(len(tokens), -1, np.int16)


def _texts(tables: list[Any], name: str) -> Strings:
    column = f"metadata:{name}"
    parts = [
        column_of(t, column) if column in t.column_names else pa.array([""] * len(t), pa.large_string()) for t in tables
    ]
    return Strings(pa.concat_arrays(parts))

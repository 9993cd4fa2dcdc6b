"""Writing a sharded corpus (`lasca.corpus.shards`) from corpora that come one after the other.

Each shard is first put down as a corpus of its own. Names are known only when the last one has come; then each shard is
written again with the codes of the whole: labels and annotators sorted by name (or in the order that all pieces have in
common), words in the order in which they first occur. Nothing but these names, and a number for each sequence, is held
in memory beyond a shard and the document that is not yet at its end.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lasca.arrays import Ints
from lasca.corpus.record import CrowdCorpus
from lasca.corpus.report import LoadReport
from lasca.corpus.reshape import concat
from lasca.corpus.shards import MANIFEST, VERSION, ShardedCorpus
from lasca.corpus.store import tables_of, write_arrow
from lasca.corpus.votes import Votes, cuts_between
from lasca.errors import CorpusError
from lasca.files import whole_folder

__all__ = ["SHARD_VOTES", "write_shards"]

SHARD_VOTES = 2_000_000
"""A shard ends with the first document at which it has so many votes."""


def write_shards(
    pieces: Iterable[CrowdCorpus], path: str | Path, *, votes: int = SHARD_VOTES, overwrite: bool = False
) -> ShardedCorpus:
    """Write corpora behind each other into one sharded corpus, whole or not at all."""
    with whole_folder(path, overwrite=overwrite) as folder:
        writer = _Writer(folder, votes)
        for piece in pieces:
            writer.add(piece)
        writer.finish()
    return ShardedCorpus.open(path)


class _Writer:
    """A sharded corpus in the making."""

    def __init__(self, folder: Path, votes: int) -> None:
        self.folder, self.votes = folder, votes
        self.rest: CrowdCorpus | None = None
        self.n_shards = 0
        self.labels: dict[tuple[str, ...], None] = {}
        self.annotators: dict[tuple[str, ...], None] = {}
        """The orders in which shards have them."""
        self.about: dict[str, tuple[str, str | None, bool]] = {}
        self.columns: dict[str, dict[str, None]] = {"golds": {}, "metadata": {}, "token_metadata": {}}
        self.documents: dict[str, int] = {}
        """The shard of each document."""
        self.ids: list[Ints] = []
        self.reports: list[LoadReport] = []

    def add(self, piece: CrowdCorpus) -> None:
        """Take a piece; write the shards that are complete with it."""
        self.reports.append(piece.load_report)
        self.rest = piece if self.rest is None else _behind(self.rest, piece)
        if self.rest.n_annotations >= self.votes:
            self._write_complete(is_end=False)

    def _write_complete(self, *, is_end: bool) -> None:
        """Write all shards of what is there; the last document may go on unless this is the end."""
        corpus = self.rest
        if corpus is None or not corpus.n_sequences:
            return
        begins = corpus.token_start[corpus.offsets]
        cuts = self._cuts(corpus, is_end)
        first = 0
        while first < corpus.n_sequences:
            enough = cuts[begins[cuts] >= begins[first] + self.votes]
            if len(enough):
                last = int(enough[0])
            elif is_end:
                last = corpus.n_sequences
            else:
                break
            self._put(corpus.select(sequences=np.arange(first, last)))
            first = last
        self.rest = (
            None if first == corpus.n_sequences else corpus.select(sequences=np.arange(first, corpus.n_sequences))
        )

    def _cuts(self, corpus: CrowdCorpus, is_end: bool) -> Ints:
        """Return the sequences before which a shard may end."""
        column = corpus.metadata.get("document")
        if column is None:
            return np.arange(1, corpus.n_sequences + 1)
        code, names = column.codes()
        if is_end and len(names) == 1 and not self.documents:
            return np.arange(1, corpus.n_sequences + 1)  # all of it is one document: any sequence may be cut off
        cuts = cuts_between(code, len(names))[1:]
        return np.append(cuts, corpus.n_sequences) if is_end else cuts

    def _put(self, shard: CrowdCorpus) -> None:
        """Put a shard down as a corpus of its own."""
        self.labels[shard.labels] = self.annotators[shard.annotators] = None
        for name, about in zip(shard.annotators, zip(shard.kinds, shard.families, shard.votes)):
            if self.about.setdefault(name, about) != about:
                raise CorpusError(f"annotator {name!r} is of one kind or family here and of another there")
        for kind, names in self.columns.items():
            names |= dict.fromkeys(getattr(shard, kind))
        if "document" in shard.metadata:
            for name in shard.metadata["document"].codes()[1]:
                if self.documents.setdefault(name, self.n_shards) != self.n_shards and len(self.documents) > 1:
                    raise CorpusError(
                        "the sequences of a document do not stand together",
                        got=name,
                        hint="Sort the file by document first",
                    )
        self.ids.append(np.fromiter((hash(id) for id in shard.sequence_ids), np.int64, shard.n_sequences))
        shard.save(self.folder / "pieces" / f"{self.n_shards:05d}")
        self.n_shards += 1

    def finish(self) -> None:
        """Write all shards with the codes of the whole, and the manifest."""
        self._write_complete(is_end=True)
        if not self.n_shards:
            raise CorpusError("there is nothing to write: no sequence was read")
        self._check_ids()
        labels, annotators = _one_order(self.labels), _one_order(self.annotators)
        words: dict[str, int] = {}
        given = np.zeros(len(annotators), np.int64)
        sizes: dict[str, list[int]] = {}
        for number in range(self.n_shards):
            place = self.folder / "pieces" / f"{number:05d}"
            shard = _recoded(CrowdCorpus.load(place), labels, annotators)
            votes = Votes.of(shard)
            given += np.bincount(votes.annotator, minlength=len(annotators))
            if votes.soft is not None:
                given += np.bincount(votes.soft.annotator, minlength=len(annotators))
            target = self.folder / "shards" / f"{number:05d}"
            target.mkdir(parents=True)
            for name, table in _tables(shard, votes, words, several=len(self.documents) > 1).items():
                write_arrow(pa.table(table), target / f"{name}.arrow")
            for what, n in _sizes(shard, votes).items():
                sizes.setdefault(what, []).append(n)
            shutil.rmtree(place)
        shutil.rmtree(self.folder / "pieces")
        who = [self.about[name] for name in annotators]
        table = {
            "name": pa.array(annotators, pa.large_string()),
            "kind": pa.array([kind for kind, _, _ in who], pa.string()),
            "family": pa.array([family for _, family, _ in who], pa.large_string()),
            "votes": pa.array([votes for _, _, votes in who], pa.bool_()),
            "n": given,
        }
        write_arrow(pa.table(table), self.folder / "annotators.arrow")
        write_arrow(pa.table({"word": pa.array(list(words), pa.large_string())}), self.folder / "words.arrow")
        header = {
            "lasca": "shards",
            "version": VERSION,
            "labels": labels,
            **{name: list(found) for name, found in self.columns.items()},
            "shards": sizes,
            "load_report": LoadReport.merged(self.reports).to_dict(),
        }
        text = json.dumps(header, ensure_ascii=False, indent=1)
        (self.folder / MANIFEST).write_text(text, encoding="utf-8")

    def _check_ids(self) -> None:
        """Refuse two sequences of one id; within a shard the corpus has seen to it."""
        _, n = np.unique(np.concatenate(self.ids), return_counts=True)
        if (n == 1).all():
            return
        seen: set[str] = set()
        for number in range(self.n_shards):
            ids = set(CrowdCorpus.load(self.folder / "pieces" / f"{number:05d}").sequence_ids)
            if seen & ids:
                raise CorpusError(
                    "two sequences have the same id, far from each other",
                    got=min(seen & ids),
                    hint="The rows of a sequence must stand together: sort the file by sequence first",
                )
            seen |= ids


def _one_order(orders: Collection[tuple[str, ...]]) -> list[str]:
    """Return the one order of names there is, or all names sorted."""
    if len(orders) == 1:
        return list(next(iter(orders)))
    return sorted({name for names in orders for name in names})


def _behind(one: CrowdCorpus, other: CrowdCorpus) -> CrowdCorpus:
    """Put two corpora behind each other; names that are the same keep their order."""
    names = (one.labels, one.annotators)
    return CrowdCorpus(**concat([one, other], *(names if names == (other.labels, other.annotators) else ())))


def _recoded(corpus: CrowdCorpus, labels: list[str], annotators: list[str]) -> CrowdCorpus:
    """Return a corpus over these labels and annotators, who are all of its own and perhaps more."""
    if list(corpus.labels) == labels and list(corpus.annotators) == annotators:
        return corpus
    fields = concat([corpus], labels, annotators)
    for columns in ("golds", "metadata", "token_metadata"):  # in their order
        fields[columns] = {name: fields[columns][name] for name in getattr(corpus, columns)}
    return CrowdCorpus(**fields)


def _tables(shard: CrowdCorpus, votes: Votes, words: dict[str, int], *, several: bool) -> dict[str, dict[str, Any]]:
    """Return the tables of a shard; words that are new are added to `words`."""
    code, names = shard.tokens.codes()
    codes = np.array([words.setdefault(word, len(words)) for word in names], np.int32)
    cuts = np.arange(shard.n_sequences)
    if several:
        document, known = shard.metadata["document"].codes()
        cuts = cuts_between(document, len(known))
    token = shard.offsets[cuts]
    return tables_of(shard, {}, {"word": codes[code] if len(codes) else code}) | {
        "offsets": {"offset": shard.offsets},
        "starts": {"start": shard.token_start},
        "cuts": {"sequence": cuts, "tokens": token, "votes": votes.start[token]},
    }


def _sizes(shard: CrowdCorpus, votes: Votes) -> dict[str, int]:
    return {
        "sequences": shard.n_sequences,
        "tokens": shard.n_tokens,
        "annotations": shard.n_annotations,
        "votes": votes.n_hard,
        "soft": 0 if votes.soft is None else len(votes.soft),
        "soft_rows": 0 if shard.soft is None else len(shard.soft),
        "known": 0 if shard.known is None else len(shard.known),
        "lonely": round(votes.lonely * max(1, votes.n_votes)),
    }

"""JSONL and Parquet out: a row per sequence, with all there is to say about it.

`id`, `tokens`, `votes` (annotator -> labels, null where missing), `golds` (name -> labels), `metadata`; and where they
are given: `labels` (the inferred truth, legal tags), `soft_labels` (a list of probabilities per token, in the order of
the header's `labels`), `ambiguous` (true or false per token), `candidates` (per token, competing labels with scores).

The header is the first line of JSONL (`{"lasca": "sequences", "version": 1, "labels": […], …}`), and the schema's
metadata in Parquet. `lasca.read` takes both back (format "jsonl").
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lasca.corpus import CrowdCorpus
from lasca.files import whole_file
from lasca.formats.outcome import Outcome, everybody

__all__ = ["VERSION", "write_jsonl", "write_parquet"]

VERSION = 1
_LABELS = pa.list_(pa.large_string())
_CANDIDATE = pa.struct([("label", pa.large_string()), ("score", pa.float64())])
FIELDS = {
    "id": pa.large_string(),
    "tokens": _LABELS,
    "labels": _LABELS,
    "soft_labels": pa.list_(pa.list_(pa.float32())),
    "votes": pa.map_(pa.large_string(), _LABELS),
    "golds": pa.map_(pa.large_string(), _LABELS),
    "ambiguous": pa.list_(pa.bool_()),
    "candidates": pa.list_(pa.list_(_CANDIDATE)),
    "metadata": pa.map_(pa.large_string(), pa.large_string()),
}


def write_jsonl(corpus: CrowdCorpus, made: Outcome, path: str | Path) -> None:
    """Write JSON lines: the header, then an object per sequence."""
    with whole_file(path) as scratch, scratch.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(json.dumps(_header(corpus), ensure_ascii=False) + "\n")
        for row in _rows(corpus, made):
            stream.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")


def write_parquet(corpus: CrowdCorpus, made: Outcome, path: str | Path) -> None:
    """Write one Parquet file: a row per sequence, the header in the metadata of the schema."""
    rows = list(_rows(corpus, made))
    names = [
        name for name in FIELDS if name in ("id", "tokens", "votes", "golds", "metadata") or name in (rows or [{}])[0]
    ]
    columns = [pa.array([_for_arrow(row[name]) for row in rows], FIELDS[name]) for name in names]
    header = {"lasca": json.dumps(_header(corpus), ensure_ascii=False)}
    with whole_file(path) as scratch:
        pq.write_table(pa.table(columns, names=names).replace_schema_metadata(header), scratch, compression="zstd")


def _header(corpus: CrowdCorpus) -> dict[str, Any]:
    return {
        "lasca": "sequences",
        "version": VERSION,
        "labels": list(corpus.labels),
        "annotators": list(corpus.annotators),
        "roles": list(corpus.roles),
        "golds": list(corpus.golds),
    }


def _rows(corpus: CrowdCorpus, made: Outcome) -> Iterator[dict[str, Any]]:
    said = everybody(corpus)
    for s in range(corpus.n_sequences):
        start, stop = int(corpus.offsets[s]), int(corpus.offsets[s + 1])
        row: dict[str, Any] = {"id": corpus.sequence_ids[s], "tokens": corpus.sequence(s)}
        if made.names is not None:
            row["labels"] = made.names[s]
        if made.proba is not None:
            row["soft_labels"] = [[round(p, 6) for p in line] for line in made.proba[start:stop].tolist()]
        given = [(role, name, rows[s]) for role, name, rows in said if any(label is not None for label in rows[s])]
        row["votes"] = {name: labels for role, name, labels in given if role != "gold"}
        row["golds"] = {name: labels for role, name, labels in given if role == "gold"}
        if made.ambiguous is not None:
            row["ambiguous"] = made.ambiguous[start:stop].tolist()
        if made.candidates is not None:
            found = [made.candidates.get(i, []) for i in range(start, stop)]
            row["candidates"] = [[{"label": name, "score": score} for name, score in one] for one in found]
        row["metadata"] = {name: column[s] for name, column in corpus.metadata.items() if column[s]}
        yield row


def _for_arrow(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) else value

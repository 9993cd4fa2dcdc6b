"""JSONL and Parquet out: a row per sequence, with all there is to say about it.

`lasca` (the version of the layout), `id`, `tokens`, `votes` (a list of annotator, role and labels, null where missing),
`golds` (name -> labels), `metadata`, `label_names`; and where they are given: `labels` (the inferred truth),
`soft_labels` (a list of probabilities per token, in the order of `label_names`), `ambiguous` (true or false per token),
`candidates` (per token, competing labels with scores). Every row has the same columns, so `datasets.load_dataset`,
pandas and polars read both files; there is no line before the rows. `lasca.read` takes both back (format "jsonl").
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

VERSION = 2
_LABELS = pa.list_(pa.large_string())
_CANDIDATE = pa.struct([("label", pa.large_string()), ("score", pa.float64())])
_VOTE = pa.struct([("annotator", pa.large_string()), ("role", pa.large_string()), ("labels", _LABELS)])


def _fields(corpus: CrowdCorpus) -> dict[str, Any]:
    """Return the type of every column there may be, in their order."""
    fields: dict[str, Any] = {
        "lasca": pa.int64(),
        "id": pa.large_string(),
        "tokens": _LABELS,
        "labels": _LABELS,
        "soft_labels": pa.list_(pa.list_(pa.float32())),
        "votes": pa.list_(_VOTE),
    }
    if corpus.golds:
        fields["golds"] = pa.struct([(name, _LABELS) for name in corpus.golds])
    fields["ambiguous"] = pa.list_(pa.bool_())
    fields["candidates"] = pa.list_(pa.list_(_CANDIDATE))
    if corpus.metadata:
        fields["metadata"] = pa.struct([(name, pa.large_string()) for name in corpus.metadata])
    fields["label_names"] = _LABELS
    return fields


def write_jsonl(corpus: CrowdCorpus, made: Outcome, path: str | Path) -> None:
    """Write JSON lines: an object per sequence."""
    with whole_file(path) as scratch, scratch.open("w", encoding="utf-8", newline="\n") as stream:
        for row in _rows(corpus, made):
            stream.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")


def write_parquet(corpus: CrowdCorpus, made: Outcome, path: str | Path) -> None:
    """Write one Parquet file: a row per sequence."""
    rows = list(_rows(corpus, made))
    always = ("lasca", "id", "tokens", "votes", "golds", "metadata", "label_names")
    fields = {name: kind for name, kind in _fields(corpus).items() if name in always or name in (rows or [{}])[0]}
    columns = [pa.array([row[name] for row in rows], kind) for name, kind in fields.items()]
    with whole_file(path) as scratch:
        pq.write_table(pa.table(columns, names=list(fields)), scratch, compression="zstd")


def _rows(corpus: CrowdCorpus, made: Outcome) -> Iterator[dict[str, Any]]:
    said = everybody(corpus)
    silent = [
        {"annotator": name, "role": role, "labels": None}
        for role, name, rows in said
        if role != "gold" and not any(label is not None for row in rows for label in row)
    ]
    for s in range(corpus.n_sequences):
        start, stop = int(corpus.offsets[s]), int(corpus.offsets[s + 1])
        row: dict[str, Any] = {"lasca": VERSION, "id": corpus.sequence_ids[s], "tokens": corpus.sequence(s)}
        if made.names is not None:
            row["labels"] = made.names[s]
        if made.proba is not None:
            row["soft_labels"] = [[round(p, 6) for p in line] for line in made.proba[start:stop].tolist()]
        given = [(role, name, rows[s]) for role, name, rows in said if any(label is not None for label in rows[s])]
        row["votes"] = [{"annotator": n, "role": r, "labels": labels} for r, n, labels in given if r != "gold"]
        row["votes"] += silent if s == 0 else []
        if corpus.golds:
            row["golds"] = dict.fromkeys(corpus.golds) | {n: labels for r, n, labels in given if r == "gold"}
        if made.ambiguous is not None:
            row["ambiguous"] = made.ambiguous[start:stop].tolist()
        if made.candidates is not None:
            found = [made.candidates.get(i, []) for i in range(start, stop)]
            row["candidates"] = [[{"label": name, "score": score} for name, score in one] for one in found]
        if corpus.metadata:
            row["metadata"] = {name: column[s] for name, column in corpus.metadata.items()}
        row["label_names"] = list(corpus.labels)
        yield row

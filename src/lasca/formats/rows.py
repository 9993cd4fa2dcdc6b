"""The JSONL and Parquet files of LASCA's own: a row per sequence, with all there is to say about it.

```
{"lasca": 2, "id": "s1", "tokens": ["😊", "Ada"], "votes": [{"annotator": "ann", "role": "annotator", "labels": ["O", "B-PER"]}, {"annotator": "ben", "role": "model", "labels": [null, "B-PER"]}], "golds": {"gold": ["O", "B-PER"]}, "metadata": {"document": "d1"}, "label_names": ["B-PER", "O"]}
```

`votes` hold null where a label is missing. Where they are given there are further: `labels` (the inferred truth),
`soft_labels` (a list of probabilities per token, in the order of `label_names`), `ambiguous` (true or false per token)
and `candidates` (per token, competing labels with scores). Every row has the same columns, so `datasets.load_dataset`,
pandas and polars read both files; there is no line before the rows. Read back, inferred labels become the gold
"inferred", so that they can be looked at and compared. Files of version 1, which began with a header and mapped
annotators to labels, are read as well.
"""  # noqa: E501

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lasca.corpus import CrowdCorpus
from lasca.errors import excerpt
from lasca.files import whole_file
from lasca.formats.base import Collector, SourceFile, natural_key, parse_json_lines
from lasca.formats.outcome import Outcome, everybody
from lasca.formats.tabular import is_parquet, open_parquet

__all__ = ["NAME", "read", "sniff", "write_jsonl", "write_parquet"]

NAME = "jsonl"
VERSION = 2
_LABELS = pa.list_(pa.large_string())
_CANDIDATE = pa.struct([("label", pa.large_string()), ("score", pa.float64())])
_VOTE = pa.struct([("annotator", pa.large_string()), ("role", pa.large_string()), ("labels", _LABELS)])


def read(files: Sequence[SourceFile]) -> CrowdCorpus:
    """Read files that LASCA wrote."""
    collector = Collector(files, NAME)
    seen = _Seen()
    for file in sorted(files, key=lambda file: natural_key(file.name)):
        for line, row in _open(file, seen):
            _add(collector, file, line, row, seen)
    for name, role in seen.roles.items():
        collector.columns.setdefault((role, name), {})
    for name in seen.golds:
        collector.columns.setdefault(("gold", name), {})
    collector.golds = tuple(name for role, name in collector.columns if role == "gold")
    return collector.corpus(order="given", labels=tuple(seen.labels))


@dataclass
class _Seen:
    """What the files say beside their sequences: annotators with their roles, golds, labels."""

    roles: dict[str, str] = field(default_factory=dict)
    golds: dict[str, None] = field(default_factory=dict)
    labels: dict[str, None] = field(default_factory=dict)


def _open(file: SourceFile, seen: _Seen) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows; a header of version 1 is taken in."""
    if not is_parquet(file):
        for line, row in parse_json_lines(file):
            if line == 1 and row.get("lasca") == "sequences":
                _header(row, file, seen)
            else:
                yield line, row
        return
    try:
        table = open_parquet(file).read()
        header = json.loads((table.schema.metadata or {}).get(b"lasca", b"null"))
        rows = table.to_pylist(maps_as_pydicts="strict")
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise file.error("the Parquet file cannot be read", got=str(error).splitlines()[:1]) from error
    if header is not None:
        _header(header, file, seen)
    yield from enumerate(rows, start=1)


def _header(header: Any, file: SourceFile, seen: _Seen) -> None:
    if not isinstance(header, dict) or header.get("version") != 1:
        raise file.error("the header of this file is not of version 1", 1, got=header)
    seen.labels |= dict.fromkeys(_strings(header, "labels", file))
    seen.golds |= dict.fromkeys(_strings(header, "golds", file))
    annotators, roles = _strings(header, "annotators", file), _strings(header, "roles", file)
    if len(annotators) != len(roles) or not set(roles) <= {"annotator", "model"}:
        raise file.error("the header must give a role to every annotator", 1, got=roles)
    seen.roles |= dict(zip(annotators, roles))


def _strings(holder: dict[str, Any], key: str, file: SourceFile) -> list[str]:
    value = holder.get(key)
    if not isinstance(value, list) or not all(isinstance(entry, str) and entry for entry in value):
        raise file.error(f"{key!r} must be a list of strings", 1, got=repr(value))
    return value


def _add(collector: Collector, file: SourceFile, line: int, row: dict[str, Any], seen: _Seen) -> None:
    where = f"{file.shown}:{line}"
    id, tokens, metadata = row.get("id"), row.get("tokens"), row.get("metadata") or {}
    if row.get("lasca", VERSION) != VERSION:
        raise file.error(f"this row is not of version {VERSION}", line, got=row.get("lasca"))
    if not isinstance(id, str) or not isinstance(tokens, list) or not all(isinstance(t, str) for t in tokens):
        raise file.error("a row needs a string 'id' and a list of strings 'tokens'", line, got=repr((id, tokens)))
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise file.error("'metadata' must map names to strings", line, got=repr(metadata))
    if id in collector.sequences:
        raise file.error(f"a second sequence has the id {excerpt(id)!r}", line)
    if row.get("label_names"):
        seen.labels |= dict.fromkeys(_strings(row, "label_names", file))
    collector.sequence(id, tokens, metadata=metadata, where=where)
    for role, name, labels in _said(file, line, row, seen):
        collector.annotate(id, name, _labels(file, line, labels), role=role, where=where)


def _said(file: SourceFile, line: int, row: dict[str, Any], seen: _Seen) -> Iterator[tuple[str, str, Any]]:
    """Yield role, name and labels of everybody who said something of a row."""
    votes = row.get("votes") or []
    if isinstance(votes, dict):  # version 1
        votes = [{"annotator": name, "role": seen.roles.get(name), "labels": said} for name, said in votes.items()]
    if not isinstance(votes, list) or not all(isinstance(v, dict) for v in votes):
        raise file.error("'votes' must be a list of annotator, role and labels", line, got=repr(votes))
    for vote in votes:
        name, role = vote.get("annotator"), vote.get("role") or "annotator"
        if not isinstance(name, str) or not name or role not in ("annotator", "model"):
            raise file.error("a vote needs an annotator and a role, annotator or model", line, got=repr(vote))
        if seen.roles.setdefault(name, role) != role:
            raise file.error(f"{excerpt(name)!r} is both an annotator and a model", line)
        if vote.get("labels") is not None:
            yield role, name, vote["labels"]
    golds = row.get("golds") or {}
    if not isinstance(golds, dict):
        raise file.error("'golds' must map names to lists of labels", line, got=repr(golds))
    seen.golds |= dict.fromkeys(str(name) for name in golds if name)
    yield from (("gold", name, labels) for name, labels in golds.items() if labels is not None)
    if row.get("labels") is not None:
        yield "gold", "inferred", row["labels"]


def _labels(file: SourceFile, line: int, labels: Any) -> list[str | None]:
    if not isinstance(labels, list) or not all(label is None or (isinstance(label, str) and label) for label in labels):
        raise file.error("labels must be a list of strings and nulls", line, got=repr(labels))
    return labels


def sniff(files: Sequence[SourceFile]) -> float:
    """Say how much these look like files that LASCA wrote: 0 to 1."""
    return 1.0 if files and all(_is_ours(file) for file in files) else 0.0


def _is_ours(file: SourceFile) -> bool:
    if not is_parquet(file):
        return bool(file.records) and file.records[0].get("lasca") in ("sequences", VERSION)
    source = pa.BufferReader(file.data) if isinstance(file.data, bytes) else str(file.data)
    try:
        schema = pq.read_schema(source)
    except (pa.ArrowException, OSError, ValueError):
        return False
    return b"lasca" in (schema.metadata or {}) or {"lasca", "id", "tokens", "votes"} <= set(schema.names)


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

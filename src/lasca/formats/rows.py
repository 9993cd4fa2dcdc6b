"""The JSONL and Parquet files that LASCA writes (`write_rows`), read back.

```
{"lasca": "sequences", "version": 1, "labels": ["B-PER", "O"], "annotators": ["ann", "ben"], "roles": ["annotator", "model"], "golds": ["gold"]}
{"id": "s1", "tokens": ["😊", "Ada"], "votes": {"ann": ["O", "B-PER"], "ben": [null, "B-PER"]}, "golds": {"gold": ["O", "B-PER"]}, "metadata": {"document": "d1"}}
```

Inferred labels, if the file holds any, become the gold "inferred", so that they can be looked at and compared.
"""  # noqa: E501

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lasca.corpus import CrowdCorpus
from lasca.errors import excerpt
from lasca.formats.base import Collector, SourceFile, natural_key, parse_json_lines
from lasca.formats.tabular import is_parquet
from lasca.formats.write_rows import VERSION

__all__ = ["NAME", "read", "sniff"]

NAME = "jsonl"


def read(files: Sequence[SourceFile]) -> CrowdCorpus:
    """Read files that LASCA wrote."""
    collector = Collector(files, NAME)
    names: dict[str, str] = {}
    labels: list[str] = []
    golds: list[str] = []
    for file in sorted(files, key=lambda file: natural_key(file.name)):
        header, rows = _open(file)
        labels += _strings(header, "labels", file)
        golds += _strings(header, "golds", file)
        annotators, roles = _strings(header, "annotators", file), _strings(header, "roles", file)
        if len(annotators) != len(roles) or not set(roles) <= {"annotator", "model"}:
            raise file.error("the header must give a role to every annotator", 1, got=roles)
        names |= dict(zip(annotators, roles))
        for line, row in rows:
            _add(collector, file, line, row, names)
    for name, role in names.items():
        collector.columns.setdefault((role, name), {})
    for name in golds:
        collector.columns.setdefault(("gold", name), {})
    return collector.corpus(order="given", labels=labels)


def _open(file: SourceFile) -> tuple[dict[str, Any], Iterator[tuple[int, dict[str, Any]]]]:
    if not is_parquet(file):
        lines = parse_json_lines(file)
        header = next(lines, (1, {}))[1]
        return _checked(header, file), lines
    source = pa.BufferReader(file.data) if isinstance(file.data, bytes) else str(file.data)
    try:
        table = pq.ParquetFile(source).read()
        header = json.loads((table.schema.metadata or {}).get(b"lasca", b"{}"))
        rows = table.to_pylist(maps_as_pydicts="strict")
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise file.error("the Parquet file cannot be read", got=str(error).splitlines()[:1]) from error
    return _checked(header, file), iter(enumerate(rows, start=1))


def _checked(header: Any, file: SourceFile) -> dict[str, Any]:
    if not isinstance(header, dict) or header.get("lasca") != "sequences":
        raise file.error("this is not a file of sequences that LASCA wrote: it has no header", 1)
    if header.get("version") != VERSION:
        raise file.error(f"this file is not of version {VERSION}", 1, got=header.get("version"))
    return header


def _strings(holder: dict[str, Any], key: str, file: SourceFile) -> list[str]:
    value = holder.get(key)
    if not isinstance(value, list) or not all(isinstance(entry, str) and entry for entry in value):
        raise file.error(f"{key!r} must be a list of strings", 1, got=repr(value))
    return value


def _add(collector: Collector, file: SourceFile, line: int, row: dict[str, Any], roles: dict[str, str]) -> None:
    where = f"{file.shown}:{line}"
    id, tokens, metadata = row.get("id"), row.get("tokens"), row.get("metadata") or {}
    if not isinstance(id, str) or not isinstance(tokens, list) or not all(isinstance(t, str) for t in tokens):
        raise file.error("a row needs a string 'id' and a list of strings 'tokens'", line, got=repr((id, tokens)))
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise file.error("'metadata' must map names to strings", line, got=repr(metadata))
    if id in collector.sequences:
        raise file.error(f"a second sequence has the id {excerpt(id)!r}", line)
    collector.sequence(id, tokens, metadata=metadata, where=where)
    inferred = row.get("labels")
    said = [("votes", row.get("votes")), ("golds", row.get("golds"))]
    if inferred is not None:
        said.append(("golds", {"inferred": inferred}))
    for kind, columns in said:
        if columns is not None and not isinstance(columns, dict):
            raise file.error(f"{kind!r} must map names to lists of labels", line, got=repr(columns))
        for name, labels in (columns or {}).items():
            role = "gold" if kind == "golds" else roles.get(name, "annotator")
            collector.annotate(id, name, _labels(file, line, labels), role=role, where=where)


def _labels(file: SourceFile, line: int, labels: Any) -> list[str | None]:
    if not isinstance(labels, list) or not all(label is None or (isinstance(label, str) and label) for label in labels):
        raise file.error("labels must be a list of strings and nulls", line, got=repr(labels))
    return labels


def sniff(files: Sequence[SourceFile]) -> float:
    """Say how much these look like files that LASCA wrote: 0 to 1."""
    return 1.0 if files and all(_is_ours(file) for file in files) else 0.0


def _is_ours(file: SourceFile) -> bool:
    if not is_parquet(file):
        return file.head(64).lstrip(b"\xef\xbb\xbf").startswith(b'{"lasca": "sequences"')
    source = pa.BufferReader(file.data) if isinstance(file.data, bytes) else str(file.data)
    try:
        return b"lasca" in (pq.read_schema(source).metadata or {})
    except (pa.ArrowException, OSError, ValueError):
        return False

"""Rows of Hugging Face data sets from JSON lines, JSON, Parquet, Arrow files and streams, or Dataset objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lasca.errors import FormatError, ParameterError
from lasca.formats.base import SourceFile, owners, parse_json_items

__all__ = ["Rows", "load", "rows_of"]

SPLIT = re.compile(r"(?<![a-z])(train|test|validation|valid|val|dev|eval)(?![a-z])", re.IGNORECASE)
SHARD = re.compile(r"[0-9]{2,}-of-[0-9]{2,}$")
SUFFIXES = (".jsonl", ".json", ".ndjson", ".parquet", ".arrow", ".feather", ".ipc")
MAX_ROWS = 20_000_000
NOT_ROWS = ("dataset_info.json", "dataset_infos.json", "state.json", "dataset_dict.json")


@dataclass(frozen=True)
class Rows:
    """The rows of one file with their places, the names of its columns, and the label names of its features."""

    shown: str
    split: str
    names: tuple[str, ...]
    rows: Iterable[tuple[str, Mapping[str, Any]]]
    label_names: Mapping[str, tuple[str, ...]]
    owner: tuple[str, str] | None = None
    """Name and role of whom the file is called by, if it may be an annotator's: no split, no shard."""

    @classmethod
    def of_dataset(cls, dataset: Any, split: str) -> Rows:
        """Take rows that are in memory: dicts, or anything that gives dicts and may have `features`."""
        if isinstance(dataset, str | bytes | Mapping) or not isinstance(dataset, Iterable):
            raise ParameterError("dataset", dataset, "rows (dicts), a Dataset or a DatasetDict")
        features = getattr(dataset, "features", None)
        rows = list(dataset)
        bad = next((row for row in rows if not isinstance(row, Mapping)), None)
        if bad is not None:
            raise ParameterError("dataset", bad, "rows that are dicts")
        shown = f"<dataset>{' ' + split if split else ''}"
        names = tuple(dict.fromkeys(name for row in rows for name in row))
        placed = [(f"{shown} row {k}", row) for k, row in enumerate(rows)]
        return cls(shown, split, names, placed, _feature_names(features) if features else {})


def rows_of(files: list[SourceFile]) -> list[Rows]:
    """Return the rows of every data file; descriptions beside them give label names."""
    info: dict[str, tuple[str, ...]] = {}
    for file in files:
        if PurePosixPath(file.name).name == "dataset_info.json" and len(files) > 1:
            for _, value in parse_json_items(file):
                info.update(_json_names(value.get("features")))
    data = [file for file in files if PurePosixPath(file.name).name not in NOT_ROWS or len(files) == 1]
    data = [file for file in data if file.name.lower().endswith(SUFFIXES)] if len(data) > 1 else data
    parts = [load(file) for file in data]
    split = len({part.split for part in parts}) > 1 and all(part.split for part in parts)
    names = owners(data)
    shards = any(SHARD.search(name) for name, _ in names.values())
    owned = len(data) > 1 and not any(part.split for part in parts) and not shards
    return [
        replace(
            part,
            split=part.split if split else "",
            label_names={**info, **part.label_names},
            owner=names[file.shown] if owned else None,
        )
        for part, file in zip(parts, data)
    ]


def load(file: SourceFile, *, only_names: bool = False) -> Rows:
    """Open one file; with `only_names`, do not read its rows."""
    head = file.head(8)
    match = SPLIT.search(PurePosixPath(file.name).stem) or SPLIT.search(file.name)
    split = match[1].lower() if match is not None else ""
    if head[:4] == b"PAR1" or head[:6] == b"ARROW1" or head[:4] == b"\xff\xff\xff\xff":
        names, label_names, batches = _open(file)
        rows = [] if only_names else [(f"{file.shown} row {k}", row) for k, row in enumerate(_guarded(batches, file))]
        return Rows(file.shown, split, names, rows, label_names)
    placed = [(f"{file.shown}:{line}", row) for line, row in parse_json_items(file)]
    keys = dict.fromkeys(chain.from_iterable(row for _, row in placed))
    return Rows(file.shown, split, tuple(keys), placed, {})


def _open(file: SourceFile) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]], Iterator[Any]]:
    """Return column names, label names and batches of a Parquet file, an Arrow file or an Arrow stream.

    Damaged files make Arrow raise errors of many kinds, down to broken text in a column's name: all are caught.
    """
    try:
        schema, batches = _schema_and_batches(file)
        return tuple(schema.names), _schema_names(schema), batches
    except FormatError:
        raise
    except Exception as error:
        raise _broken(file, error) from error


def _schema_and_batches(file: SourceFile) -> tuple[Any, Iterator[Any]]:
    source = pa.BufferReader(file.data) if isinstance(file.data, bytes) else pa.memory_map(str(file.data))
    head = file.head(8)
    if head[:4] == b"PAR1":
        parquet = pq.ParquetFile(source)
        if parquet.metadata.num_rows > MAX_ROWS:
            raise file.error(f"the table has more than {MAX_ROWS:,} rows", got=parquet.metadata.num_rows)
        return parquet.schema_arrow, parquet.iter_batches()
    if head[:6] == b"ARROW1":
        reader = pa.ipc.open_file(source)
        return reader.schema, (reader.get_batch(k) for k in range(reader.num_record_batches))
    stream = pa.ipc.open_stream(source)
    return stream.schema, iter(stream)


def _guarded(batches: Iterator[Any], file: SourceFile) -> Iterator[dict[str, Any]]:
    try:
        for batch in batches:
            batch.validate(full=True)
            if batch.num_rows > MAX_ROWS:
                raise file.error(f"the table has more than {MAX_ROWS:,} rows", got=batch.num_rows)
            yield from batch.to_pylist()
    except FormatError:
        raise
    except Exception as error:
        raise _broken(file, error) from error


def _broken(file: SourceFile, error: Exception) -> FormatError:
    return file.error("this Parquet or Arrow file cannot be read", got=(str(error).splitlines() or [""])[0])


def _schema_names(schema: Any) -> dict[str, tuple[str, ...]]:
    """Return the label names that `datasets` keeps in the schema's metadata."""
    try:
        about = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    except (ValueError, RecursionError):
        return {}
    info = about.get("info") if isinstance(about, dict) else None
    return _json_names(info.get("features") if isinstance(info, dict) else None)


def _json_names(features: object) -> dict[str, tuple[str, ...]]:
    """Return the names of every class label (`{"feature": {"names": […], "_type": "ClassLabel"}}`) by column."""
    found: dict[str, tuple[str, ...]] = {}
    for column, feature in features.items() if isinstance(features, dict) else ():
        while isinstance(feature, dict | list) and feature:
            feature = feature[0] if isinstance(feature, list) else feature
            if isinstance(feature, dict):
                names = feature.get("names")
                if isinstance(names, list) and all(isinstance(name, str) and name for name in names):
                    found[str(column)] = tuple(names)
                feature = feature.get("feature")
    return found


def _feature_names(features: Any) -> dict[str, tuple[str, ...]]:
    """Return the same from the `features` of a Dataset object."""
    found: dict[str, tuple[str, ...]] = {}
    for column in features:
        feature = features[column]
        for _ in range(8):
            names = getattr(feature, "names", None)
            if isinstance(names, list):
                found[str(column)] = tuple(str(name) for name in names)
                break
            feature = feature[0] if isinstance(feature, list) and feature else getattr(feature, "feature", None)
            if feature is None:
                break
    return found

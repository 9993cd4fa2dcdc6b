"""A corpus in a folder: corpus.json, and tables of sequences, tokens and annotations in Arrow or Parquet.

Arrow files are memory-mapped when loaded; Parquet files are smaller. No pickle: nothing in a folder can run code.
SHA256SUMS tells whether the files are still what was written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lasca.arrays import borders
from lasca.corpus.build import kinds_of
from lasca.corpus.evidence import KnownLabels, SoftVotes
from lasca.corpus.report import LoadReport
from lasca.corpus.strings import Strings
from lasca.estimator import check_choice
from lasca.files import check_sums, whole_file, whole_folder
from lasca.records import loading, read_header

if TYPE_CHECKING:
    from lasca.corpus.record import CrowdCorpus

__all__ = [
    "chars_of", "checked_arrow", "column_of", "known_of", "load", "numbers_of", "part_name", "read_arrow", "save",
    "soft_of", "tables_of", "write_arrow", "write_part",
]  # fmt: skip

VERSION = 2
OLDER = (1,)  # versions that can still be read: 1 had `roles` and neither soft votes nor known labels
TABLES = ("sequences", "tokens", "annotations")


def save(corpus: CrowdCorpus, path: str | Path, format: str, overwrite: bool) -> None:
    """Write the corpus into a folder, whole or not at all."""
    check_choice("format", format, ("arrow", "parquet"))
    header = {
        "lasca": "corpus",
        "version": VERSION,
        "labels": list(corpus.labels),
        "annotators": list(corpus.annotators),
        "kinds": list(corpus.kinds),
        "families": list(corpus.families),
        "votes": list(corpus.votes),
        "golds": list(corpus.golds),
        "metadata": list(corpus.metadata),
        "token_metadata": list(corpus.token_metadata),
        "soft": corpus.soft is not None,
        "known": corpus.known is not None,
        "load_report": corpus.load_report.to_dict(),
    }
    tables = tables_of(
        corpus,
        {"length": np.diff(corpus.offsets)},
        {"token": corpus.tokens.arrow, "annotations": np.diff(corpus.token_start).astype(np.int32)},
    )
    with whole_folder(path, overwrite=overwrite) as folder:
        for name, columns in tables.items():
            write_arrow(pa.table(columns), folder / f"{name}.{format}")
        text = json.dumps(header, ensure_ascii=False, indent=1)
        (folder / "corpus.json").write_text(text, encoding="utf-8")


def tables_of(corpus: CrowdCorpus, of_sequences: dict[str, Any], of_tokens: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of all tables; how long sequences are and which words tokens are is the caller's to say."""
    sequences = {"id": corpus.sequence_ids.arrow} | of_sequences
    sequences |= {f"metadata:{name}": column.arrow for name, column in corpus.metadata.items()}
    tokens = of_tokens | {f"gold:{name}": gold for name, gold in corpus.golds.items()}
    if corpus.token_chars is not None:
        tokens |= {"char_start": corpus.token_chars[:, 0], "char_end": corpus.token_chars[:, 1]}
    tokens |= {f"metadata:{name}": column.arrow for name, column in corpus.token_metadata.items()}
    annotations = {"annotator": corpus.annotation_annotator, "label": corpus.annotation_label}
    tables = dict(zip(TABLES, (sequences, tokens, annotations)))
    if corpus.soft is not None:
        soft, proba = corpus.soft, corpus.soft.proba
        tables["soft"] = {"token": soft.token, "annotator": soft.annotator} | by_label("p", proba)
    if corpus.known is not None:
        tables["known"] = {"token": corpus.known.token} | by_label("allowed", corpus.known.allowed)
    return tables


def by_label(name: str, matrix: Any) -> dict[str, Any]:
    """Return a column per label, named by its code."""
    return {f"{name}:{t}": pa.array(np.ascontiguousarray(matrix[:, t])) for t in range(matrix.shape[1])}


def write_arrow(table: Any, path: Path) -> None:
    """Write a table, as Arrow or Parquet by the name of the file."""
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="zstd")
        return
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=max(len(table), 1))


def part_name(number: int) -> str:
    """Return what the file is called that holds the rows of a block."""
    return f"part-{number:05d}.parquet"


def write_part(table: Any, folder: Path, number: int) -> None:
    """Write the rows of a block, whole or not at all."""
    with whole_file(folder / part_name(number)) as scratch:
        pq.write_table(table, scratch, compression="zstd")


def load(path: str | Path) -> dict[str, Any]:
    """Read the fields of a corpus from a folder."""
    with loading(path, "corpus", "Expected a folder that CrowdCorpus.save wrote") as folder:
        format = "arrow" if any(folder.glob("*.arrow")) else "parquet"
        files, again = [f"{name}.{format}" for name in TABLES], "Make it anew: lasca convert EXPORT FOLDER -t lasca"
        header = read_header(folder, "corpus", (VERSION, *OLDER), *files, hint=again)
        sequences, tokens, annotations = (checked_arrow(folder / f"{name}.{format}") for name in TABLES)
        T = len(header["labels"])
        return {
            "tokens": Strings(column_of(tokens, "token")),
            "offsets": _cumulated(sequences, "length"),
            "labels": tuple(header["labels"]),
            "annotators": tuple(header["annotators"]),
            "annotation_annotator": numbers_of(annotations, "annotator"),
            "annotation_label": numbers_of(annotations, "label"),
            "token_start": _cumulated(tokens, "annotations"),
            "sequence_ids": Strings(column_of(sequences, "id")),
            "golds": {name: numbers_of(tokens, f"gold:{name}") for name in header["golds"]},
            **_about(header),
            "soft": soft_of(_more(folder / f"soft.{format}"), T) if header.get("soft") else None,
            "known": known_of(_more(folder / f"known.{format}"), T) if header.get("known") else None,
            "token_metadata": {
                name: Strings(column_of(tokens, f"metadata:{name}")) for name in header.get("token_metadata", ())
            },
            "metadata": {name: Strings(column_of(sequences, f"metadata:{name}")) for name in header["metadata"]},
            "token_chars": chars_of([tokens]),
            "load_report": LoadReport.from_dict(header["load_report"]),
        }


def _about(header: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return what is said about the annotators; version 1 has roles."""
    if header["version"] == 1:
        return {"kinds": kinds_of(header["roles"])}
    return {name: tuple(header[name]) for name in ("kinds", "families", "votes")}


def _more(path: Path) -> Any:
    """Return a table that not every corpus has."""
    check_sums(path.parent, path.name)
    return checked_arrow(path)


def soft_of(table: Any, n_labels: int) -> SoftVotes:
    """Return the soft votes in a table."""
    return SoftVotes(numbers_of(table, "token"), numbers_of(table, "annotator"), _matrix(table, "p", n_labels))


def known_of(table: Any, n_labels: int) -> KnownLabels:
    """Return the known labels in a table."""
    return KnownLabels(numbers_of(table, "token"), _matrix(table, "allowed", n_labels))


def _matrix(table: Any, name: str, n_labels: int) -> Any:
    """Return the columns that `by_label` made as a matrix."""
    return np.stack([np.asarray(column_of(table, f"{name}:{t}").to_numpy(False)) for t in range(n_labels)], axis=1)


def read_arrow(path: Path) -> Any:
    """Map a table into memory."""
    if path.suffix == ".parquet":
        return pq.read_table(path, memory_map=True)
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def checked_arrow(path: Path) -> Any:
    """Map a table into memory after a look at all of it: every entry lies in its buffer, and all text is UTF-8."""
    table = read_arrow(path)
    table.validate(full=True)
    return table


def column_of(table: Any, name: str) -> Any:
    """Return a column as one array."""
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def numbers_of(table: Any, name: str) -> Any:
    """Return a column of numbers, without a copy where it lies in one piece."""
    return np.asarray(column_of(table, name))


def _cumulated(table: Any, name: str) -> Any:
    return borders(numbers_of(table, name))


def chars_of(tables: Sequence[Any]) -> Any:
    """Return where the tokens of some tables stand in their texts, or None where that is unknown of any."""
    if not all("char_start" in table.column_names for table in tables):
        return None
    return np.concatenate(
        [np.stack([numbers_of(t, f"char_{end}") for end in ("start", "end")], axis=1) for t in tables]
    )

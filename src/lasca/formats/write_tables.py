"""Tables out: MACE CSV, the long table, a saved corpus; each takes a corpus and what was inferred of it.

Cells of CSV data files are written as they are, so that reading them back gives the same. A spreadsheet may take a
token such as `=1+2` or `@USER` for a formula: tables meant for people are written by `people_table`, which guards them.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lasca.corpus import CrowdCorpus
from lasca.errors import LascaWarning, ParameterError, StoreError
from lasca.files import whole_file
from lasca.formats.names import NAMES
from lasca.formats.outcome import Outcome, everybody

__all__ = ["guarded", "people_table", "write_long", "write_mace", "write_saved"]


def write_mace(
    corpus: CrowdCorpus, made: Outcome, path: str | Path, *, header: bool | None = None, tokens: bool = False
) -> None:
    """Write MACE CSV: annotations, or one column with the truth. Golds, ids and metadata have no place in it.

    `header` (default: unless the annotators are called "1", "2", …) names the annotators and `tokens` adds a column of
    tokens; the program MACE wants neither. Probabilities and ambiguity have no place in the format.
    """
    if made.names is not None:
        columns, names = [made.names], ["label"]
        header = bool(header)
    else:
        _tell_left_out("MACE CSV", ["golds"] * bool(corpus.golds) + ["metadata"] * bool(corpus.metadata))
        said = [(name, rows) for role, name, rows in everybody(corpus) if role != "gold"]
        columns, names = [rows for _, rows in said], [name for name, _ in said]
        if header is None:
            header = names != [str(i + 1) for i in range(len(names))]
    if len(columns) + tokens < 2 and (
        not columns or any(name is None for rows in columns for row in rows for name in row)
    ):
        raise StoreError("MACE CSV cannot hold missing labels of one annotator alone", where=str(path))
    with whole_file(path) as scratch, scratch.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if header or tokens:
            writer.writerow([*(["token"] if tokens else []), *names])
        for s in range(corpus.n_sequences):
            if s:
                stream.write("\n")
            words = [[word] for word in corpus.sequence(s)] if tokens else [[]] * len(columns[0][s])
            for word, *row in zip(words, *(rows[s] for rows in columns)):
                writer.writerow([*word, *("" if name is None else name for name in row)])


def _tell_left_out(format: str, parts: list[str]) -> None:
    if parts:
        warnings.warn(LascaWarning(f"{format} has no place for {' and '.join(parts)}: left out"), stacklevel=4)


def write_long(corpus: CrowdCorpus, made: Outcome, path: str | Path) -> None:
    """Write a long table as Parquet, TSV or (any other ending) CSV: annotations and golds, or a row per token.

    A truth: sequence, position, token, label, and confidence, ambiguous, candidates where they are given.
    """
    if made.names is None:
        _save_columns(_long_columns(corpus), path)
        return
    base = corpus.to_table("tokens").select(["sequence", "position", "token"])
    columns: dict[str, Any] = {name: base.column(name) for name in base.column_names}
    columns["label"] = pa.array([name for row in made.names for name in row], pa.large_string())
    confidence = made.confidence()
    if confidence is not None:
        columns["confidence"] = pa.array(confidence)
    if made.ambiguous is not None:
        columns["ambiguous"] = pa.array(made.ambiguous)
    if made.candidates is not None:
        shown = [made.candidates.get(i, []) for i in range(corpus.n_tokens)]
        columns["candidates"] = pa.array(
            ["|".join(n if x is None else f"{n}:{x:.4g}" for n, x in row) for row in shown], pa.large_string()
        )
    _save_columns(columns, path)


def _long_columns(corpus: CrowdCorpus) -> dict[str, Any]:
    """Return a row per annotation and gold label; a token nobody labelled has a row without annotator and label."""
    names = np.array([*corpus.annotators, *corpus.golds, ""], object)
    roles = np.array([*corpus.roles, *("gold" for _ in corpus.golds), ""], object)
    token, who = [corpus.annotation_token.astype(np.int64)], [corpus.annotation_annotator.astype(np.int64)]
    label = [corpus.annotation_label.astype(np.int64)]
    seen = np.diff(corpus.token_start) > 0
    for g, gold in enumerate(corpus.golds.values()):
        at = np.flatnonzero(gold >= 0)
        token, who = [*token, at], [*who, np.full(len(at), corpus.n_annotators + g)]
        label.append(gold[at].astype(np.int64))
        seen[at] = True
    sure = [np.ones(sum(map(len, token)))]
    if corpus.soft is not None:
        row, column = np.nonzero(corpus.soft.proba)
        token, who = [*token, corpus.soft.token[row]], [*who, corpus.soft.annotator[row].astype(np.int64)]
        label, sure = [*label, column], [*sure, corpus.soft.proba[row, column].astype(np.float64)]
        seen[corpus.soft.token] = True
    silent = np.flatnonzero(~seen)
    tokens = np.concatenate([*token, silent])
    people = np.concatenate([*who, np.full(len(silent), len(names) - 1)])
    codes = np.concatenate([*label, np.full(len(silent), -1)])
    order = np.lexsort((codes, people, tokens))
    base = corpus.to_table("tokens").select(["sequence", "position", "token"]).take(pa.array(tokens[order]))
    columns: dict[str, Any] = {name: base.column(name) for name in base.column_names}
    columns["annotator"] = pa.array(names[people[order]], pa.large_string())
    columns["role"] = pa.array(roles[people[order]], pa.large_string())
    columns["label"] = pa.array(np.array([*corpus.labels, ""], object)[codes[order]], pa.large_string())
    if corpus.soft is not None:
        columns["probability"] = pa.array(np.concatenate([*sure, np.ones(len(silent))])[order])
    at = tokens[order]
    for name, values in corpus.metadata.items():
        columns[_free(name, columns)] = values.arrow.take(pa.array(corpus.token_sequence[at]))
    for name, values in corpus.token_metadata.items():
        columns[_free(name, columns)] = values.arrow.take(pa.array(at))
    return columns


def _free(name: str, columns: Mapping[str, Any]) -> str:
    """Return a name for a column of metadata under which the reader takes it for nothing else."""
    plain = name.strip().lower()
    reserved = (
        plain in (*NAMES["time"], *NAMES["probability"])
        or plain.startswith("gold")
        or plain in map(str.lower, columns)
        or not plain
    )
    return f"metadata_{name}" if reserved else name


def _save_columns(columns: Mapping[str, Any], path: str | Path) -> None:
    suffix = Path(path).suffix.lower()
    with whole_file(path) as scratch:
        if suffix == ".parquet":
            pq.write_table(pa.table(dict(columns)), scratch, compression="zstd")
            return
        with scratch.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*(_cells(column) for column in columns.values())))


def _cells(column: Any) -> Iterable[Any]:
    values = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    return (
        "" if v is None else f"{v:.6g}" if isinstance(v, float) else int(v) if isinstance(v, bool) else v
        for v in values
    )


def write_saved(corpus: CrowdCorpus, made: Outcome, path: str | Path, *, overwrite: bool = False) -> None:
    """Write the corpus as a folder of Arrow tables (`CrowdCorpus.save`); a truth is not a corpus."""
    if made.names is not None:
        raise ParameterError("labels", "a truth", "None for the format lasca: save a Truth with its own method")
    corpus.save(path, overwrite=overwrite)


def guarded(cell: object) -> object:
    """Return a cell that no spreadsheet takes for a formula: text that begins like one gets an apostrophe before it."""
    if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")):
        return "'" + cell
    return cell


def people_table(columns: Mapping[str, Sequence[Any]] | Any, path: str | Path) -> None:
    """Write a table for people: CSV or TSV with guarded cells, or Parquet (as it is), by the ending of the path.

    `columns` maps names to values, or is an Arrow table.
    """
    if isinstance(columns, pa.Table):
        columns = {name: columns.column(name) for name in columns.column_names}
    if Path(path).suffix.lower() == ".parquet":
        _save_columns(columns, path)
        return
    plain = {name: column.to_pylist() if hasattr(column, "to_pylist") else column for name, column in columns.items()}
    _save_columns({str(guarded(name)): [guarded(v) for v in values] for name, values in plain.items()}, path)

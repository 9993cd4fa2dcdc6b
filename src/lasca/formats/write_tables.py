"""Tables out: CoNLL columns, MACE CSV, the long table, a saved corpus; each takes a corpus and what was inferred.

Cells of CSV data files are written as they are, so that reading them back gives the same. A spreadsheet may take a
token such as `=1+2` or `@USER` for a formula: tables meant for people are written by `people_table`, which guards them.

CoNLL: with `labels`: `token label` separated by a space, blank lines between sequences and nothing else, which
conlleval, seqeval, spaCy and the rest of the world read; a token with white space in it is written with `_` instead.
With `details=True` there is a header, tabs, and the columns `confidence`, `ambiguous` (1 or 0) and `candidates`
(`B-PER:0.61|B-ORG:0.39`), as far as they are known. The labels are the ones given (`legal=True` repairs tags).

Without: a header, a column per gold and annotator, `?` for a missing label, `# sent_id = …` and the metadata as
comments; annotators' tags stay as they are (repair them when reading). Cells are separated by tabs. A tab or line break
inside a token cannot be written: it becomes a space, with a warning; so does an empty sequence, which is left out.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lasca.corpus import CrowdCorpus
from lasca.errors import LascaWarning, ParameterError, StoreError, excerpt
from lasca.files import whole_file
from lasca.formats.names import NAMES
from lasca.formats.outcome import Outcome, everybody

__all__ = ["guarded", "people_table", "write_conll", "write_long", "write_mace", "write_saved"]


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


# --- CoNLL columns -----------------------------------------------------------------------------------------------

MISSING = "?"
ROLES = ("gold", "model", "annotator")
RESERVED = ("_", "label", "confidence", "ambiguous", "candidates")


def write_conll(
    corpus: CrowdCorpus, made: Outcome, path: str | Path, *, ids: bool | None = None, details: bool = False
) -> None:
    """Write CoNLL columns; `ids=True` writes `# sent_id` comments also before the truth, False nowhere.

    `details=True` writes how sure the truth is behind its labels; such a file is for LASCA and for people.
    """
    _check_names("label", corpus.labels)
    lines = _Lines(corpus, ids if ids is not None else made.names is None)
    if made.names is None:
        lines.corpus()
    else:
        lines.truth(made, made.names, details)
    lines.warn(path)
    with whole_file(path) as scratch:
        scratch.write_text("\n".join(lines.lines) + "\n", encoding="utf-8", newline="\n")


def _check_names(what: str, names: Any) -> None:
    for name in names:
        if name == MISSING or name != name.strip(" ") or any(ch in name for ch in "\t\n\r"):
            raise StoreError(
                f"the {what} {excerpt(name)!r} cannot be written as CoNLL", hint="Write JSONL or Parquet instead"
            )


class _Lines:
    """Gathers the lines of a file, and what could not be written as it was."""

    def __init__(self, corpus: CrowdCorpus, ids: bool) -> None:
        self.given, self.ids = corpus, ids
        self.lines: list[str] = []
        self.changed: dict[str, int] = {}
        self.begun = False

    def truth(self, made: Outcome, names: list[list[str | None]], details: bool) -> None:
        if not details:
            for s, _, tokens in self._sequences():
                for token, name in zip(tokens, names[s]):
                    self.lines.append(f"{self._one_word(token)} {self._one_word(MISSING if name is None else name)}")
            return
        confidence = made.confidence()
        header = ["token", "label"]
        header += ["confidence"] if confidence is not None else []
        header += ["ambiguous"] if made.ambiguous is not None else []
        header += ["candidates"] if made.candidates is not None else []
        if len(header) > 2:
            self.lines.append("\t".join(header))
        for s, start, tokens in self._sequences():
            for i, (token, name) in enumerate(zip(tokens, names[s]), start):
                cells = [self._clean("tokens", token), MISSING if name is None else name]
                if confidence is not None:
                    cells.append(f"{confidence[i]:.4f}")
                if made.ambiguous is not None:
                    cells.append("1" if made.ambiguous[i] else "0")
                if made.candidates is not None:
                    cells.append(_shown(made.candidates.get(i, [])))
                self.lines.append("\t".join(cells))

    def corpus(self) -> None:
        said = everybody(self.given)
        header = [_header(role, name) for role, name, _ in said]
        _check_names("name", header)
        self.lines.append("\t".join(["token", *(header or ["_"])]))
        for s, _, tokens in self._sequences():
            columns = [rows[s] for _, _, rows in said] or [[None] * len(tokens)]
            for i, token in enumerate(tokens):
                cells = [MISSING if (name := column[i]) is None else name for column in columns]
                self.lines.append("\t".join([self._clean("tokens", token), *cells]))

    def _sequences(self) -> Iterator[tuple[int, int, list[str]]]:
        corpus = self.given
        numbered = not self.ids or all(id == str(s) for s, id in enumerate(corpus.sequence_ids))
        for s in range(corpus.n_sequences):
            tokens = corpus.sequence(s)
            if not tokens:
                self.changed["empty sequences left out"] = self.changed.get("empty sequences left out", 0) + 1
                continue
            if self.begun:
                self.lines.append("")
            self.begun = True
            if not numbered:
                self.lines.append(f"# sent_id = {self._clean('ids', corpus.sequence_ids[s])}")
            if self.ids:
                self._metadata(s)
            yield s, int(corpus.offsets[s]), tokens

    def _metadata(self, s: int) -> None:
        for key, column in self.given.metadata.items():
            if not column[s]:
                continue
            if key == "sent_id" or not key or "=" in key or len(key.split()) != 1:
                self.changed[f"metadata {excerpt(key)!r} left out"] = self.given.n_sequences
                continue
            self.lines.append(f"# {key} = {self._clean('metadata', column[s])}")

    def _one_word(self, text: str) -> str:
        if text and not any(ch.isspace() for ch in text):
            return text
        kind = "tokens or labels with white space, now _"
        self.changed[kind] = self.changed.get(kind, 0) + 1
        return "_".join(text.split()) or "_"

    def _clean(self, what: str, text: str) -> str:
        if not any(ch in text for ch in "\t\n"):
            return text
        kind = f"{what} with a tab or line break, now a space"
        self.changed[kind] = self.changed.get(kind, 0) + 1
        return text.replace("\t", " ").replace("\n", " ")

    def warn(self, path: str | Path) -> None:
        for kind, n in self.changed.items():
            warnings.warn(LascaWarning(f"{Path(path).name}: CoNLL cannot hold everything: {n} {kind}"), stacklevel=4)


def _header(role: str, name: str) -> str:
    looks_like_gold = name.lower().startswith("gold")
    prefixed = any(name.startswith(r + ":") for r in ROLES) or name in RESERVED
    if role == "annotator" and not looks_like_gold and not prefixed:
        return name
    if role == "gold" and looks_like_gold and not prefixed:
        return name
    return f"{role}:{name}"


def _shown(candidates: list[tuple[str, float | None]]) -> str:
    cells = [label if score is None else f"{label}:{score:.4g}" for label, score in candidates]
    return "|".join(cells) or "_"

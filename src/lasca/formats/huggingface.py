"""Hugging Face rows: token classification with annotators, and Argilla 2 records; JSONL, JSON, Parquet, Arrow.

A sample, one row per sequence and annotator (`ner_tags` may be numbers if the file carries the feature's names):

    {"id": "s1", "tokens": ["Ada", "visited", "Rome"], "ner_tags": ["B-PER", "O", "B-LOC"], "annotator": "ann1"}

One row per sequence, with a column of all annotators:

    {"id": "s1", "tokens": ["Ada", "visited", "Rome"], "labels": {"ann1": ["B-PER", "O", "B-LOC"], "ann2": null}}

Argilla 2 (only submitted responses count; suggestions are models):

    {"id": "r1", "text": "Ada visited Rome", "spans.responses": [[{"label": "PER", "start": 0, "end": 3}]],
     "spans.responses.users": ["u1"], "spans.responses.status": ["submitted"]}

(on one line); also as `to_json` of Argilla writes them, with `fields`, `responses` and `suggestions` (it leaves out
which responses are drafts: all count). Answers to questions for labels or ratings are labels of whole documents
(`unit="document"`, `question` names one of several). Scores of suggestions are counted; `scores="soft"` reads them as
soft votes: that share for the label and the rest evenly for all others. -100 and null are missing. Other columns are
metadata where they are plain values, and counted where they are not. Tags in rows without any annotator are the gold
"gold", or, with several files that are neither splits nor shards, those of an annotator named as the file. Where
annotators' tokens differ under one id, the commonest tokenisation is kept and the others are aligned to it by
characters. `from_dataset` takes rows, or a Dataset or DatasetDict of the `datasets` package, which need
not be there for files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError
from lasca.formats.base import SourceFile
from lasca.formats.documents import DOCUMENT
from lasca.formats.huggingface_argilla import argilla_said, flat_record, is_record, questions_of
from lasca.formats.huggingface_load import Rows, load, rows_of
from lasca.formats.huggingface_tokens import Columns, TokenRows
from lasca.formats.texts import Spans, TextPool

__all__ = ["NAME", "from_dataset", "read", "sniff"]

NAME = "huggingface"


def sniff(files: list[SourceFile]) -> float:
    """Say how sure it is: rows with "tokens" and tags, or with "….responses.users"; Parquet and Arrow of such."""
    best = 0.0
    for file in files:
        head = file.head()
        if head[:4] == b"PAR1" or head[:6] == b"ARROW1" or head[:4] == b"\xff\xff\xff\xff":
            best = max(best, _sniff_table(file))
        for row in file.records:
            best = max(best, _sniff_row(row))
    return best


def _sniff_row(row: dict[str, Any]) -> float:
    if any(key.endswith(".responses.users") for key in row) or is_record(row):
        return 0.98
    tokens = row.get("tokens", row.get("words"))
    words = isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)
    if not words or any(key in row for key in ("_input_hash", "spans", "lasca")):
        return 0.0
    there = [row[name] for name in (*Columns.TAGS, *Columns.BY_ANNOTATOR) if name in row]
    objects = any(isinstance(value, list) and value and isinstance(value[0], dict) for value in there)
    return 0.9 if there and not objects else 0.2


def _sniff_table(file: SourceFile) -> float:
    try:
        names = set(load(file, only_names=True).names)
    except FormatError:
        return 0.0
    if any(name.endswith(".responses.users") for name in names):
        return 0.98
    tagged = names & {*Columns.TAGS, *Columns.BY_ANNOTATOR}
    return 0.95 if "tokens" in names and tagged else 0.0


def read(
    files: Sequence[SourceFile | Rows],
    *,
    tags: str | None = None,
    annotator: str | None = None,
    label_names: Sequence[str] | None = None,
    question: str | None = None,
    text: str | None = None,
    scores: str = "count",
    **spans: Unpack[Spans],
) -> CrowdCorpus:
    """Read rows. `tags` and `annotator` name the columns; `label_names` are the names of numbered tags in order.

    `unit`, `partial`, `overlap`, `tokenizer`, `tagging`, `question` and `text` are for Argilla's spans: `question` is
    the span question (its columns begin with that name), `text` the field it is about.
    """
    own = [file for file in files if isinstance(file, SourceFile)]
    pool = TextPool(own, NAME, scores=scores, **spans)
    columns = Columns(tags, annotator, _checked_names(label_names))
    parts = [flat_record(part) for part in rows_of(own) or files if isinstance(part, Rows)]
    if question is None and not any(name.endswith(".responses") for part in parts for name in part.names):
        if pool.options.unit == DOCUMENT:
            raise ParameterError("unit", DOCUMENT, "left out: these are rows of tokens and tags")
        rows = TokenRows(pool.collector, columns)
        for part in parts:
            rows.add(part)
        return rows.corpus()
    questions = questions_of(parts, question)
    said = {part.shown: list(argilla_said(part, questions, text, pool.collector)) for part in parts}
    return pool.corpus_of(said, "question", question)


def from_dataset(dataset: Any, **options: Any) -> CrowdCorpus:
    """Make a corpus from a list of rows (dicts), a `datasets.Dataset`, or a `DatasetDict` (ids get the split's name).

    The options are those of `read`.
    """
    splits = dataset if isinstance(dataset, Mapping) else {"": dataset}
    parts = [Rows.of_dataset(rows, str(split) if len(splits) > 1 else "") for split, rows in splits.items()]
    return read(parts, **options)


def _checked_names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    found = tuple(names.split(",")) if isinstance(names, str) else tuple(str(name) for name in names)
    return tuple(name.strip() for name in found)

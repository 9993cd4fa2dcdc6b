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
from typing import Any

from lasca import align
from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError
from lasca.formats.base import SourceFile
from lasca.formats.documents import DOCUMENT, Verdict, chosen_unit, document_corpus
from lasca.formats.documents import question_of as pick_question
from lasca.formats.huggingface_argilla import argilla_said, flat_record, is_record, questions_of
from lasca.formats.huggingface_load import Rows, load, rows_of
from lasca.formats.huggingface_tokens import Columns, TokenRows
from lasca.formats.texts import Answer, SpanOptions, TextPool

__all__ = ["NAME", "from_dataset", "read", "sniff"]

NAME = "huggingface"
SPANS = ("partial", "overlap", "tokenizer", "tagging", "scores")  # options of spans


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
    files: list[SourceFile],
    *,
    unit: str = "auto",
    partial: str = "expand",
    overlap: str = "error",
    tokenizer: str | align.Tokenizer | None = None,
    tagging: str = "iob2",
    tags: str | None = None,
    annotator: str | None = None,
    label_names: Sequence[str] | None = None,
    question: str | None = None,
    text: str | None = None,
    scores: str = "count",
) -> CrowdCorpus:
    """Read rows. `tags` and `annotator` name the columns; `label_names` are the names of numbered tags in order.

    `unit`, `partial`, `overlap`, `tokenizer`, `tagging`, `question` and `text` are for Argilla's spans: `question` is
    the span question (its columns begin with that name), `text` the field it is about.
    """
    span = {"partial": partial, "overlap": overlap, "tokenizer": tokenizer, "tagging": tagging, "scores": scores}
    columns = Columns(tags, annotator, _checked_names(label_names))
    return _read(rows_of(files), files, unit, span, columns, question, text)


def from_dataset(dataset: Any, **options: Any) -> CrowdCorpus:
    """Make a corpus from a list of rows (dicts), a `datasets.Dataset`, or a `DatasetDict` (ids get the split's name).

    The options are those of `read`.
    """
    parts: list[Rows] = []
    splits = dataset if isinstance(dataset, Mapping) else {"": dataset}
    for split, rows in splits.items():
        parts.append(Rows.of_dataset(rows, str(split) if len(splits) > 1 else ""))
    span = {name: options.pop(name) for name in SPANS if name in options}
    unit = options.pop("unit", "auto")
    question, text = options.pop("question", None), options.pop("text", None)
    columns = Columns(
        options.pop("tags", None), options.pop("annotator", None), _checked_names(options.pop("label_names", None))
    )
    if options:
        raise FormatError(f"from_dataset has no option {next(iter(options))!r}")
    return _read(parts, [], unit, span, columns, question, text)


def _checked_names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    found = tuple(names.split(",")) if isinstance(names, str) else tuple(str(name) for name in names)
    return tuple(name.strip() for name in found)


def _read(
    parts: list[Rows],
    files: list[SourceFile],
    unit: str,
    span: Mapping[str, Any],
    columns: Columns,
    question: str | None,
    text: str | None,
) -> CrowdCorpus:
    options = SpanOptions("auto" if unit == DOCUMENT else unit, **span)
    parts = [flat_record(part) for part in parts]
    names = [name for part in parts for name in part.names]
    if question is None and not any(name.endswith(".responses") for name in names):
        if unit == DOCUMENT:
            raise ParameterError("unit", unit, "left out: these are rows of tokens and tags")
        rows = TokenRows(files, columns)
        for part in parts:
            rows.add(part)
        return rows.corpus()
    pool = TextPool(files, NAME, options)
    questions = questions_of(parts, question)
    said = {part.shown: list(argilla_said(part, questions, text, pool.collector)) for part in parts}
    verdicts = [entry for given in said.values() for entry in given if isinstance(entry, Verdict)]
    answers = {shown: [entry for entry in given if isinstance(entry, Answer)] for shown, given in said.items()}
    n_spans = sum(len(answer.marks or ()) for given in answers.values() for answer in given)
    if chosen_unit(unit, n_spans, verdicts, pool.collector) == DOCUMENT:
        asked = pick_question(verdicts, question, "question", pool.collector)
        return document_corpus(pool.linked_verdicts(verdicts), asked, pool.collector, options.scores)
    for shown, given in answers.items():
        pool.add_file(shown, given)
    return pool.corpus()

"""Label Studio tasks with predictions: the truth goes back to where the annotations came from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca import align
from lasca.corpus import CrowdCorpus
from lasca.errors import CorpusError, ParameterError
from lasca.files import whole_file
from lasca.formats.outcome import Outcome, annotator_codes

__all__ = ["tasks", "texts_of", "write"]

Labels = npt.ArrayLike | Sequence[Sequence[str | None]]
"""One code per token (an index into `corpus.labels`, -1 = none), or lists of names, one list per sequence."""


def write(
    corpus: CrowdCorpus,
    made: Outcome,
    path: str | Path,
    *,
    model_version: str = "lasca",
    unit: str = "codepoint",
    annotations: bool = False,
) -> None:
    """Write Label Studio tasks: the truth as predictions, or without one the annotations, golds and models.

    How sure the truth is stands in the scores (of its probabilities); ambiguity has no place in the format.
    """
    if made.names is not None:
        result = tasks(
            corpus, made.names, proba=made.proba, model_version=model_version, unit=unit, annotations=annotations
        )
    else:
        result = tasks(corpus, np.full(corpus.n_tokens, -1), unit=unit, annotations=True)
        for task in result:
            task["predictions"] = []
        for a, (name, role) in enumerate(zip(corpus.annotators, corpus.roles)):
            if role == "model":
                codes = annotator_codes(corpus, a)
                for s, task in enumerate(tasks(corpus, codes, model_version=name, unit=unit)):
                    if (codes[int(corpus.offsets[s]) : int(corpus.offsets[s + 1])] >= 0).any():
                        result[s]["predictions"] += task["predictions"]
    with whole_file(path) as scratch:
        scratch.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def tasks(
    corpus: CrowdCorpus,
    labels: Labels,
    *,
    proba: npt.ArrayLike | None = None,
    model_version: str = "lasca",
    unit: str = "codepoint",
    annotations: bool = False,
) -> list[dict[str, Any]]:
    """Return the tasks as plain data for JSON: ids and texts as they were read, `predictions` with version and score.

    `proba` (n_tokens, n_labels) gives the score of a task, the probability of its least sure token, and of each span,
    the mean over its tokens; without it there are no scores. `annotations=True` adds what the annotators said and
    the golds (as `ground_truth`). `unit` is what offsets count: "codepoint", or "utf16" for old versions.
    """
    if unit not in align.UNITS:
        raise ParameterError("unit", unit, "one of " + ", ".join(repr(u) for u in align.UNITS))
    names = _names(corpus, labels)
    sure = _sureness(corpus, labels, proba)
    texts = texts_of(corpus)
    said = _said(corpus) if annotations else {}
    made = []
    for s in range(corpus.n_sequences):
        text, chars = texts[s]
        task = _Task(text, chars, align.from_codepoint(text, unit), *_controls(corpus, s))
        scores = None if sure is None else sure[int(corpus.offsets[s]) : int(corpus.offsets[s + 1])]
        prediction: dict[str, Any] = {"model_version": model_version, "result": task.results(names[s], scores)}
        if scores is not None and len(scores):
            prediction["score"] = round(float(scores.min()), 6)
        id = corpus.sequence_ids[s]
        whole: dict[str, Any] = {"id": int(id) if id.isdecimal() and len(id) < 19 and str(int(id)) == id else id}
        whole["data"] = _data(corpus, s, text)
        if annotations:
            whole["annotations"] = [
                {"completed_by": who, "was_cancelled": False, "ground_truth": gold, "result": task.results(rows[s])}
                for (gold, who), rows in said.items()
                if any(label is not None for label in rows[s])
            ]
        whole["predictions"] = [prediction]
        made.append(whole)
    return made


class _Task:
    """Knows the text of one task and turns labels over its tokens into results."""

    def __init__(self, text: str, chars: align.Chars, offset: Any, from_name: str, to_name: str) -> None:
        self.text, self.chars, self.offset, self.from_name, self.to_name = text, chars, offset, from_name, to_name

    def results(self, labels: Sequence[str | None], scores: npt.NDArray[Any] | None = None) -> list[dict[str, Any]]:
        made = []
        for span, first, last in align.label_spans(labels, self.chars):
            result: dict[str, Any] = {
                "from_name": self.from_name,
                "to_name": self.to_name,
                "type": "labels",
                "value": {
                    "start": self.offset(span.start),
                    "end": self.offset(span.end),
                    "text": self.text[span.start : span.end],
                    "labels": [span.label],
                },
            }
            if scores is not None:
                result["score"] = round(float(scores[first:last].mean()), 6)
            made.append(result)
        return made


def _names(corpus: CrowdCorpus, labels: Labels) -> list[list[str | None]]:
    """Return label names, one list per sequence, from codes or names."""
    codes = _codes(labels)
    if codes is not None:
        if len(codes) and (codes.min() < -1 or codes.max() >= corpus.n_labels):
            raise CorpusError(f"label codes must lie in -1..{corpus.n_labels - 1}", got=int(codes.max()))
        return corpus.label_names(codes)
    rows = [list(row) for row in labels]  # type: ignore[union-attr,arg-type]
    if [len(row) for row in rows] != np.diff(corpus.offsets).tolist():
        raise CorpusError("labels must have one list per sequence, one label per token")
    return rows


def _codes(labels: Labels) -> npt.NDArray[Any] | None:
    if isinstance(labels, np.ndarray):
        return labels
    flat = np.asarray(labels) if not any(isinstance(row, list | tuple) for row in labels) else None  # type: ignore[union-attr]
    return flat if flat is not None and flat.dtype.kind in "iu" else None


def _sureness(corpus: CrowdCorpus, labels: Labels, proba: npt.ArrayLike | None) -> npt.NDArray[Any] | None:
    """Return the probability of the label that was taken, per token (where none was: the largest)."""
    if proba is None:
        return None
    matrix = np.asarray(proba, dtype=np.float64)
    if matrix.shape != (corpus.n_tokens, corpus.n_labels):
        raise CorpusError(f"proba must be ({corpus.n_tokens}, {corpus.n_labels})", got=matrix.shape)
    code = {name: i for i, name in enumerate(corpus.labels)}
    taken = [code.get(name, -1) if name is not None else -1 for row in _names(corpus, labels) for name in row]
    at = np.array(taken, dtype=np.int64)
    return np.where(at >= 0, matrix[np.arange(len(at)), at], matrix.max(axis=1, initial=0.0))


def texts_of(corpus: CrowdCorpus) -> list[tuple[str, align.Chars]]:
    """Return text and token positions of each sequence: as read, or tokens joined by blanks."""
    known, chars = corpus.metadata.get("text"), corpus.token_chars
    texts: list[tuple[str, align.Chars]] = []
    for s in range(corpus.n_sequences):
        first, last = int(corpus.offsets[s]), int(corpus.offsets[s + 1])
        tokens = corpus.tokens[first:last]
        if known is not None and known[s]:
            found = (
                align.locate(tokens, known[s]) if chars is None else [(int(a), int(b)) for a, b in chars[first:last]]
            )
            if found is not None and all(known[s][a:b] == token for (a, b), token in zip(found, tokens)):
                texts.append((known[s], found))
                continue
        texts.append(align.spelled(tokens))
    return texts


def _data(corpus: CrowdCorpus, s: int, text: str) -> dict[str, Any]:
    """Return the `data` of a task as it was read, else just the text."""
    kept = corpus.metadata["data"][s] if "data" in corpus.metadata else ""
    key = corpus.metadata["text_key"][s] if "text_key" in corpus.metadata else ""
    try:
        data = json.loads(kept) if kept else None
    except ValueError:
        data = None
    return data if isinstance(data, dict) and data.get(key or "text") == text else {"text": text}


def _controls(corpus: CrowdCorpus, s: int) -> tuple[str, str]:
    names = [corpus.metadata[key][s] if key in corpus.metadata else "" for key in ("from_name", "to_name")]
    return names[0] or "label", names[1] or "text"


def _said(corpus: CrowdCorpus) -> dict[tuple[bool, str], list[list[str | None]]]:
    """Return what every person and every gold said, as label names."""
    said = {(True, f"gold:{name}"): corpus.label_names(gold) for name, gold in corpus.golds.items()}
    for a, (name, role) in enumerate(zip(corpus.annotators, corpus.roles)):
        if role == "annotator":
            mine = corpus.annotation_annotator == a
            codes = np.full(corpus.n_tokens, -1, np.int16)
            codes[corpus.annotation_token[mine]] = corpus.annotation_label[mine]
            said[False, name] = corpus.label_names(codes)
    return said

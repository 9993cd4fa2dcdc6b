"""Label Studio tasks with predictions: the truth goes back to where the annotations came from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from lasca import align
from lasca.corpus import CrowdCorpus
from lasca.errors import ParameterError
from lasca.files import whole_file
from lasca.formats.outcome import Outcome, everybody, texts_of

__all__ = ["tasks", "write"]


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
    result = tasks(corpus, made, model_version=model_version, unit=unit, annotations=annotations)
    with whole_file(path) as scratch:
        scratch.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def tasks(
    corpus: CrowdCorpus,
    made: Outcome,
    *,
    model_version: str = "lasca",
    unit: str = "codepoint",
    annotations: bool = False,
) -> list[dict[str, Any]]:
    """Return the tasks as plain data for JSON: ids and texts as they were read, `predictions` with version and score.

    Probabilities give the score of a task, that of its least sure token, and of each span, the mean over its tokens;
    without them there are no scores. `annotations=True` adds what the annotators said and the golds (as
    `ground_truth`); without a truth they are there in any case, and the models' predictions. `unit` is what offsets
    count: "codepoint", or "utf16" for old versions.
    """
    if unit not in align.UNITS:
        raise ParameterError("unit", unit, "one of " + ", ".join(repr(u) for u in align.UNITS))
    sure, said = made.confidence(), everybody(corpus) if annotations or made.names is None else []
    result = []
    for s, (text, chars) in enumerate(texts_of(corpus)):
        task = _Task(text, chars, align.from_codepoint(text, unit), *_controls(corpus, s))
        id = corpus.sequence_ids[s]
        whole: dict[str, Any] = {"id": int(id) if id.isdecimal() and len(id) < 19 and str(int(id)) == id else id}
        whole["data"] = _data(corpus, s, text)
        given = [(role, name, rows[s]) for role, name, rows in said if any(label is not None for label in rows[s])]
        if said:
            whole["annotations"] = [
                {
                    "completed_by": f"gold:{name}" if role == "gold" else name,
                    "was_cancelled": False,
                    "ground_truth": role == "gold",
                    "result": task.results(labels),
                }
                for role, name, labels in given
                if role != "model"
            ]
        if made.names is None:
            models = [(name, labels) for role, name, labels in given if role == "model"]
            whole["predictions"] = [{"model_version": n, "result": task.results(labels)} for n, labels in models]
        else:
            scores = None if sure is None else sure[int(corpus.offsets[s]) : int(corpus.offsets[s + 1])]
            whole["predictions"] = [{"model_version": model_version, "result": task.results(made.names[s], scores)}]
            if scores is not None and len(scores):
                whole["predictions"][0]["score"] = round(float(scores.min()), 6)
        result.append(whole)
    return result


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

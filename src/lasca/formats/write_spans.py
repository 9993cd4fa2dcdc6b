"""Formats of spans out: Label Studio, doccano, Prodigy, brat, offsets, spaCy DocBin (and INCEpTION: `write_cas`).

All of them say over a text which stretches carry which label. With `labels` the truth is written; without, what every
annotator and gold said. Layers (`lasca.formats.layers`) are put together: their spans may overlap.

A file holds one voice, the truth or a single annotator; where there are several, doccano, brat, webanno and xmi become
a folder with a file or folder for each. Golds are called so: "gold", or "gold NAME" where a format has no place for it.
"""

from __future__ import annotations

import json
import re
import warnings
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from lasca import align
from lasca.corpus import CrowdCorpus
from lasca.errors import LascaWarning, ParameterError, StoreError
from lasca.files import whole_file, whole_folder
from lasca.formats.outcome import (
    TRUTH,
    Outcome,
    Said,
    Sheet,
    Voice,
    everybody,
    library,
    safe_name,
    sheets_of,
    shown_as,
    texts_of,
    voices_of,
)

__all__ = ["tasks", "write_brat", "write_docbin", "write_doccano", "write_offsets", "write_prodigy", "write_tasks"]


def _lines(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for row in rows:
            stream.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")


def write_doccano(sheets: list[Sheet], path: str | Path, *, overwrite: bool = False) -> None:
    """Write doccano JSONL: a file for one voice, a folder with a file for each of several."""
    voices = voices_of(sheets)

    def rows(voice: Voice) -> Iterator[dict[str, Any]]:
        for sheet in sheets:
            spans = sheet.said.get(voice)
            if spans is not None:
                yield {"id": sheet.id, "text": sheet.text, "label": [[s.start, s.end, s.label] for s in spans]}

    if len(voices) <= 1:
        with whole_file(path) as scratch:
            _lines(scratch, rows(voices[0]) if voices else iter(()))
        return
    with whole_folder(path, overwrite=overwrite) as folder:
        taken: dict[str, str] = {}
        for voice in voices:
            _lines(folder / f"{safe_name(shown_as(voice), taken)}.jsonl", rows(voice))


def write_prodigy(sheets: list[Sheet], path: str | Path) -> None:
    """Write Prodigy JSONL: a line per text and annotator, with the tokens; golds have no place in it."""
    left_out = [voice for voice in voices_of(sheets) if voice[0] == "gold"]
    if left_out:
        names = ", ".join(name for _, name in left_out)
        warnings.warn(LascaWarning(f"Prodigy's lines have no place for golds: left out {names}"), stacklevel=5)

    def rows() -> Iterator[dict[str, Any]]:
        for sheet in sheets:
            known = _prodigy_hash(sheet.text)
            tokens = [
                {"text": sheet.text[a:b], "start": a, "end": b, "id": k, "ws": sheet.text[b : b + 1].isspace()}
                for k, (a, b) in enumerate(sheet.chars)
            ]
            for (role, name), spans in sheet.said.items():
                if spans is None or role == "gold":
                    continue
                marked = [
                    {"start": s.start, "end": s.end, "token_start": s.first, "token_end": s.last - 1, "label": s.label}
                    for s in spans
                ]
                task = _prodigy_hash(json.dumps([sheet.text, marked, name]))
                yield {
                    "text": sheet.text, "tokens": tokens, "spans": marked, "answer": "accept", "_view_id": "ner_manual",
                    "_input_hash": known, "_task_hash": task, "_annotator_id": name, "_session_id": name,
                    "meta": {"id": sheet.id},
                }  # fmt: skip

    with whole_file(path) as scratch:
        _lines(scratch, rows())


def _prodigy_hash(text: str) -> int:
    value = zlib.crc32(text.encode("utf-8", "surrogatepass"))
    return value - 2**32 if value >= 2**31 else value


def write_offsets(sheets: list[Sheet], path: str | Path) -> None:
    """Write JSON lines of a text and its spans in code points: of the truth, or of everybody under `annotations`."""

    def spans_of(sheet: Sheet, spans: list[Said]) -> list[dict[str, Any]]:
        shown = []
        for s in spans:
            shown.append({"start": s.start, "end": s.end, "label": s.label, "text": sheet.text[s.start : s.end]})
            if s.score is not None:
                shown[-1]["score"] = s.score
        return shown

    def rows() -> Iterator[dict[str, Any]]:
        for sheet in sheets:
            row: dict[str, Any] = {"id": sheet.id, "document": sheet.document, "text": sheet.text}
            if ("truth", TRUTH) in sheet.said:
                truth = sheet.said["truth", TRUTH]
                if truth is not None:
                    yield row | {"spans": spans_of(sheet, truth)}
                continue
            given = [(voice, spans) for voice, spans in sheet.said.items() if spans is not None]
            yield row | {
                "annotations": [
                    {"annotator": name, "role": role, "spans": spans_of(sheet, spans)} for (role, name), spans in given
                ]
            }

    with whole_file(path) as scratch:
        _lines(scratch, rows())


def write_brat(sheets: list[Sheet], path: str | Path, *, overwrite: bool = False) -> None:
    """Write a folder of brat: texts and annotations of the truth, or a folder for every annotator and gold."""
    voices = voices_of(sheets)
    labels = sorted({s.label for sheet in sheets for spans in sheet.said.values() for s in spans or ()})
    types = {label: re.sub(r"[^\w-]+", "_", label) or "_" for label in labels}
    if len(set(types.values())) < len(types):
        raise StoreError("two labels have the same name in brat, which takes letters, digits, - and _", where=str(path))
    with whole_folder(path, overwrite=overwrite) as folder:
        names: dict[str, str] = {}
        people: dict[str, str] = {}
        for voice in voices or [("truth", TRUTH)]:
            below = folder if voice[0] == "truth" else folder / safe_name(shown_as(voice), people)
            below.mkdir(exist_ok=True)
            for sheet in sheets:
                stem = safe_name(sheet.id, names)
                (below / f"{stem}.txt").write_text(sheet.text, encoding="utf-8", newline="")
                spans = sheet.said.get(voice)
                if spans is None:
                    continue
                lines = []
                for k, s in enumerate(spans, start=1):
                    words = sheet.text[s.start : s.end].replace("\n", " ").replace("\r", " ")
                    lines.append(f"T{k}\t{types[s.label]} {s.start} {s.end}\t{words}\n")
                (below / f"{stem}.ann").write_text("".join(lines), encoding="utf-8", newline="")
        conf = "[entities]\n" + "".join(f"{name}\n" for name in sorted(types.values()))
        (folder / "annotation.conf").write_text(conf + "[relations]\n[events]\n[attributes]\n", encoding="utf-8")


def write_docbin(corpus: CrowdCorpus, made: Outcome, path: str | Path) -> None:
    """Write a DocBin of spaCy: the truth in `doc.ents`, what is ambiguous in `doc.spans["ambiguous"]`.

    Without a truth the gold is in `doc.ents`, and every annotator has a span group of that name. Needs the extra
    [spacy].
    """
    spacy, tokens = library("spacy", "spacy"), library("spacy.tokens", "spacy")
    vocab = spacy.blank("xx").vocab
    found = tokens.DocBin(store_user_data=True)
    for s, sheet in enumerate(sheets_of(corpus, made)):
        words = [sheet.text[a:b] for a, b in sheet.chars]
        if "" in words:
            raise StoreError(
                "spaCy cannot hold an empty token", where=f"sequence {sheet.id}", got=f"token {words.index('')}"
            )
        gaps = [sheet.text[b : b + 1] == " " for _, b in sheet.chars]
        doc = tokens.Doc(vocab, words=words, spaces=gaps)
        ents = next((spans for (role, _), spans in sheet.said.items() if role in ("truth", "gold")), None)
        if ents is not None:
            doc.set_ents([tokens.Span(doc, x.first, x.last, label=x.label) for x in ents])
        for (role, name), spans in sheet.said.items():
            if role not in ("truth", "gold") and spans is not None:
                doc.spans[name] = [tokens.Span(doc, x.first, x.last, label=x.label) for x in spans]
        if made.candidates is not None and made.names is not None:
            start = int(corpus.offsets[s])
            rivals = [(t, label) for t in range(len(words)) for label, _ in made.candidates.get(start + t, [])]
            doc.spans["ambiguous"] = [tokens.Span(doc, t, t + 1, label=label) for t, label in rivals]
        found.add(doc)
    with whole_file(path) as scratch:
        scratch.write_bytes(found.to_bytes())


# --- Label Studio: the truth goes back to where the annotations came from ----------------------------------------


def write_tasks(
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
        elif made.names[s] and all(label is None for label in made.names[s]):
            whole["predictions"] = []  # nobody labelled it: there is nothing to propose, not even that it has no span
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

"""One task of Label Studio: its text, what annotators and models said of it, and what each of their results is.

A result is a span of text, a label of the whole document, or something else (regions, sounds), which is counted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from typing import Any

from lasca import align
from lasca.errors import FormatError, excerpt, typed
from lasca.formats.base import Collector, as_name, as_offset, as_score, as_time, first, listed, text_id
from lasca.formats.documents import Verdict
from lasca.formats.texts import Answer, Mark, Said

__all__ = ["ONLY_FILES", "OWN", "Tally", "Task", "control_of", "is_minimal", "kind_of"]

OWN = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time")  # of a JSON-MIN row
GOLD = "gold:"
SHORT = 60  # characters of a value that may be a choice
TEXT_KEYS = ("labels", "hypertextlabels", "paragraphlabels")
DOCUMENT_KEYS = ("choices", "taxonomy", "rating", "selected")
ONLY_FILES = "The tasks only refer to files: put the text itself into their data"
TIMED = ("timeserieslabels", "videorectangle", "timelinelabels")
REFERENCE = re.compile(r"(?:[a-z][a-z0-9+.-]*://|/data/|data:[a-z]+/)\S+|\S+\.(?:jpe?g|png|gif|bmp|webp|svg|tiff?|pdf|"
                       r"wav|mp3|ogg|flac|m4a|mp4|avi|webm|mov|csv)", re.IGNORECASE)  # fmt: skip
TAG = re.compile(r"<(?:html|body|div|p|table|span|h[1-6]|ul|ol|br|!doctype)\b[^>]*>", re.IGNORECASE)


@dataclass
class Tally:
    """What is asked for (`text_key`, `control`, labels of `documents`), and what was seen in all tasks so far."""

    collector: Collector
    text_key: str | None
    control: str | None
    documents: bool
    n_spans: int = 0
    n_given: int = 0
    n_texts: int = 0
    others: Counter[str] = field(default_factory=Counter)
    controls: Counter[str] = field(default_factory=Counter)
    choices: set[str] = field(default_factory=set)
    """Keys of JSON-MIN and CSV rows that hold choices, plainly or in a list."""
    plain: dict[str, set[str]] = field(default_factory=dict)
    """Plain values of JSON-MIN and CSV rows by their key: data of the task, or choices."""
    pages: bool = False
    """Whether offsets count the text of pages (HyperText): so do those of tasks in which nobody marked anything."""
    nameless: bool = False
    """Whether annotations that do not say whose they are may be one person's, of which the last counts."""
    timed: set[tuple[object, object]] = field(default_factory=set)
    """Controls, with what they are about, of which some place is a fraction: they mark seconds of sounds."""
    objects: set[object] = field(default_factory=set)
    """What results are about, by name: often the key of the text."""
    keys: set[str] = field(default_factory=set)
    """Under which keys the texts with spans were found so far, where tasks have several texts."""
    markup: str = ""
    without_text: str = ""


class Task:
    """One task: its text, and what annotators and models said of it."""

    def __init__(self, tally: Tally, where: str, task: dict[str, Any]) -> None:
        self.tally, self.collector, self.task = tally, tally.collector, task
        self.minimal = is_minimal(task)
        data = task if self.minimal else task.get("data")
        if not isinstance(data, dict):
            hint = "Export whole tasks (JSON), not their annotations alone"
            raise FormatError("a task must have an object 'data'", path=where, got=excerpt(task), hint=hint)
        self.data = data
        self.id = "" if task.get("id") is None else as_name(task["id"], "the id of a task", where)
        self.where = where + (f" (task {excerpt(self.id, 40)})" if self.id else "")
        given = "annotations" if "annotations" in task else "completions"
        said = listed(task, given, self.where)
        kept = [e["prediction"] for e in said if isinstance(e, dict) and isinstance(e.get("prediction"), dict)]
        by_number = {prediction["id"]: prediction for prediction in kept if isinstance(prediction.get("id"), int)}
        foreseen = [by_number.get(e, e) if isinstance(e, int) else e for e in listed(task, "predictions", self.where)]
        self.entries = [*((given, entry) for entry in said), *(("predictions", entry) for entry in foreseen)]
        self.results = [r for _, e in self.entries if isinstance(e, dict) for r in listed(e, "result", self.where)]
        if self.minimal:
            self.results = list(self._minimal_results())
        self.marked = [r for r in self.results if self._kind(r) == "span" and self._wanted(r)]
        self.spans = [r["value"] for r in self.marked]
        self.starts: list[int] | None = None  # where each paragraph of a dialogue begins
        self.key, self.text = self._text()
        self._refuse_other_texts()
        self.id = self.id or text_id(self.text)

    def _wanted(self, result: dict[str, Any]) -> bool:
        """Say whether a result is of the control, and about the text, that is asked for."""
        key, of = self.tally.text_key, result.get("to_name")
        other = key in self.tally.objects and of != key
        return not other and self.tally.control in (None, result.get("from_name"))

    def _kind(self, result: object) -> str:
        """Return what a result is (see `kind_of`); what is about a part of the task that is no text is no span."""
        kind = kind_of(result)
        if kind != "span" or not isinstance(result, dict):
            return kind
        of = result.get("to_name")
        other = isinstance(of, str) and of in self.data and not self._is_text(of)
        return "labels of files" if other else "labels of sounds" if control_of(result) in self.tally.timed else kind

    # --- the text ---------------------------------------------------------------------------------------------

    def _text(self) -> tuple[str, str]:
        """Return the key of the text and the text, as offsets count it; "" if a task has none and needs none."""
        tally, key = self.tally, self._text_key()
        if not key:
            tally.without_text = tally.without_text or self.where
            shown = [str(v) for k, v in self.data.items() if isinstance(v, str) and k not in OWN]
            return "", shown[0] if shown else json.dumps(self.data, ensure_ascii=False)[:1000]
        tally.n_texts += 1
        lines = paragraphs_of(self.data[key])
        if lines is not None:
            self.starts = [sum(len(line) + 1 for line in lines[:k]) for k in range(len(lines))]
            return key, "\n".join(lines)
        text: str = self.data[key]
        paths = [span for span in self.spans if _is_path(span.get("start"))]
        if looks_like_html(text):
            tally.markup = tally.markup or self.where
            if paths or (tally.pages and not self.spans):
                return key, self._page(text, paths)
        return key, text

    def _page(self, html: str, spans: list[dict[str, Any]]) -> str:
        """Return the text of a page in which most quotes stand where the global offsets say."""
        given = [(s.get("globalOffsets"), s.get("text")) for s in spans]
        places = [(o.get("start"), o.get("end"), quoted) for o, quoted in given if isinstance(o, dict)]
        quotes = [(a, b, q) for a, b, q in places if isinstance(q, str) and isinstance(a, int) and isinstance(b, int)]
        pages = [html_text(html), html_text(html, breaks=True)]
        fits = [sum(align.same_words(page[a:b], q) for a, b, q in quotes) for page in pages]
        best = max(range(len(pages)), key=lambda k: fits[k])
        if quotes and 2 * fits[best] < len(quotes):
            raise FormatError(
                f"the global offsets do not fit the text of the page: {fits[best]} of {len(quotes)} quotes stand there",
                path=self.where,
                got=f"{quotes[0][2]!r} at {quotes[0][0]}-{quotes[0][1]}",
            )
        return pages[best]

    def _text_key(self) -> str:
        """Return the key of the text: the one named, "text", the only text, or the one in which all quotes stand."""
        named = self.tally.text_key
        if named is not None:
            if not self._is_text(named):
                raise FormatError(f"there is no text {named!r} in this task", path=self.where, got=", ".join(self.data))
            return named
        own = {*OWN, *filter(self._is_choice, self.data)} if self.minimal else ()
        found = [key for key in self.data if self._is_text(key) and key not in own]
        if not found and self.spans and any(isinstance(v, str) and is_reference(v) for v in self.data.values()):
            shown = ", ".join(f"{key}: {excerpt(value, 60)}" for key, value in self.data.items() if key not in OWN)
            what = "there are spans in this task, and not the text they stand in"
            raise FormatError(what, path=self.where, got=shown, hint=ONLY_FILES)
        found = self._meant(found)
        if "text" in found and len(found) > 1:
            found = ["text"]
        if self.minimal and len(found) == 1 and self.spans and not self._quotes_fit(self.data[found[0]]):
            found = []
        if len(found) == 1:
            return found[0]
        if not self.spans and (not found or (self.tally.documents and not self.minimal)):
            return ""
        longest = max(
            found or self.data, key=lambda key: ("text" in key.lower(), len(str(self.data[key]))), default="…"
        )
        raise FormatError(
            f"it is not clear which value of the task is its text: {excerpt(', '.join(found or self.data), 400)}",
            path=self.where,
            hint=f"Name its key: text=… (on the command line: {typed(f'text={longest}')})",
        )

    def _meant(self, found: list[str]) -> list[str]:
        """Return those of several texts that results name, in which all quotes stand, or that other tasks are about."""
        if len(found) < 2:
            return found
        asked = [*self.marked, *(r for r in self.results if kind_of(r) == "document")]
        sources = {r.get("source") for r in asked}
        hinted = [key for key in found if f"${key}" in sources]
        if len(hinted) == 1:
            return hinted
        if not self.spans:
            return [key for key in found if key in self.tally.keys] or found
        fit = [key for key in found if self._quotes_fit(self.data[key])]
        fit = [key for key in fit if self._quotes_fit(self.data[key], there=True)] or fit or found
        called = [key for key in fit if key in {r.get("to_name") for r in self.marked}]
        fit = called if len(called) == 1 else fit
        self.tally.keys |= {"text" if "text" in fit else key for key in fit}
        return fit

    def _refuse_other_texts(self) -> None:
        """Refuse spans of several texts of one task: those of the others do not stand in this one."""
        of = {str(r["to_name"]): str(r.get("from_name")) for r in reversed(self.marked) if r.get("to_name") is not None}
        plain = self.starts is None and self.text == self.data.get(self.key)
        all_quoted = all(isinstance(span.get("text"), str) for span in self.spans)
        if len(of) < 2 or sum(map(self._is_text, self.data)) < 2:
            return
        if all_quoted and self._quotes_fit(self.text, there=plain):
            return
        shown = "; ".join(
            f"{excerpt(name, 40)}: control {excerpt(control, 40)}" for name, control in sorted(of.items())
        )
        control = of.get(self.key) or min(of.values())
        raise FormatError(
            f"this task has spans in several texts ({shown})",
            path=self.where,
            hint="Read one after the other: name its control, and where nothing is quoted its text, control=… and "
            f"text=… (on the command line: {typed(f'control={control}')} {typed(f'text={self.key}')})",
        )

    def _is_choice(self, key: str) -> bool:
        """Say whether what stands under a key of a JSON-MIN row was chosen by the annotator."""
        return self.minimal and (key in self.tally.choices or (self.tally.documents and key == self.tally.control))

    def _is_text(self, key: str) -> bool:
        value = self.data.get(key)
        if isinstance(value, str):
            return bool(value.strip()) and not is_reference(value)
        return not self.minimal and paragraphs_of(value) is not None

    def _quotes_fit(self, text: object, *, there: bool = False) -> bool:
        """Say whether all quotes stand somewhere in a text, or just where their offsets say (`there`)."""
        if not isinstance(text, str):
            return False
        quoted = [span for span in self.spans if isinstance(span.get("text"), str)]
        if there and all(isinstance(span["start"], int) and isinstance(span["end"], int) for span in quoted):
            utf16 = text.encode("utf-16-le", "surrogatepass")
            parts = [(span["start"], span["end"], span["text"]) for span in quoted]
            return all(align.same_words(text[a:b], words) for a, b, words in parts) or all(
                utf16[2 * a : 2 * b] == words.encode("utf-16-le", "surrogatepass") for a, b, words in parts
            )
        return all(span["text"] in text for span in quoted)

    # --- what was said ----------------------------------------------------------------------------------------

    def given(self) -> Iterator[Said]:
        """Yield the text of the task, then what each annotator and model said of it."""
        if self.key:
            yield Answer(self.id, self.text, self.where, metadata=self._metadata())
        if self.minimal:
            time = as_time(self.task.get("updated_at")) or as_time(self.task.get("created_at"))
            name = _annotator(self.task.get("annotator"), self.where)
            yield from self._said(name, self.results, "annotator", time, self.where)
            return
        self.collector.count("drafts", len(listed(self.task, "drafts", self.where)), self.where)
        self._refuse_nameless()
        for key, entry in self.entries:
            yield from self._entry(entry, key == "predictions")

    def _refuse_nameless(self) -> None:
        """Refuse several annotations of a task that do not say whose they are: they may be several people's."""
        given = [e for key, e in self.entries if key != "predictions" and isinstance(e, dict)]
        left = [e for e in given if not (e.get("was_cancelled") is True or e.get("skipped") is True)]
        n = sum(_who(e) in (None, "", {}) for e in left)
        if n > 1 and not self.tally.nameless:
            raise FormatError(
                f"{n} annotations of this task do not say who made them (completed_by)",
                path=self.where,
                hint="Export it from a Label Studio that names its users, or write their names under completed_by. If "
                "all are one person's, of which the last counts, set annotator=name (on the command line: "
                "-r annotator=name)",
            )

    def _metadata(self) -> dict[str, str]:
        if self.minimal:
            left_out = {*OWN, self.key, *filter(self._is_choice, self.data)}
            kept = {k: v for k, v in self.data.items() if isinstance(v, str) and k not in left_out}
            return {k: v for k, v in kept.items() if k not in ("document", "text")}
        found = {} if set(self.data) == {"text"} else {"data": json.dumps(self.data, ensure_ascii=False)}
        if self.key != "text":
            found["text_key"] = self.key
        return {**found, **_controls(self.results)}

    def _entry(self, given: object, model: bool) -> Iterator[Said]:
        what = "prediction" if model else "annotation"
        if not isinstance(given, dict):
            self.collector.count(f"{what}s without content", 1, self.where)  # an export of ids only
            return
        if given.get("was_cancelled") is True or given.get("skipped") is True:
            self.collector.count("skipped", 1, f"{self.where}: {what} {given.get('id')}")
            return
        time = as_time(given.get("updated_at")) or as_time(given.get("created_at"))
        results = listed(given, "result", self.where)
        if model:
            version = given.get("model_version")
            name = "model" if version in (None, "") else as_name(version, "model_version", self.where)
            if as_score(given.get("score")):
                self.collector.count("scores of whole predictions", 1, f"{self.where}: {given['score']}")
            yield from self._said(name, results, "model", time, f"{self.where} (prediction of {excerpt(name, 40)})")
            return
        for review in listed(given, "reviews", self.where):
            accepted = str(review.get("accepted")) if isinstance(review, dict) else ""
            kind = {"True": "accepted", "False": "rejected"}.get(accepted, "looked at")
            self.collector.count(f"annotations {kind} by a reviewer, all votes", 1, self.where)
        name = _annotator(_who(given), self.where)
        where = f"{self.where} (annotation {excerpt(given.get('id'), 40)})"
        if given.get("ground_truth") is True and name.startswith(GOLD):  # a gold of nobody's, as our writer has it
            yield from self._said(name[len(GOLD) :] or "gold", results, "gold", time, where)
            return
        said = list(self._said(name, results, "annotator", time, where))
        yield from said
        if given.get("ground_truth") is True:
            self.collector.count("annotations that are ground truth", 1, where)
            for entry in said:
                gold = replace(entry, name="gold", role="gold")
                yield replace(gold, again=True) if isinstance(gold, Answer) else gold

    def _said(self, name: str, results: list[Any], role: str, time: str | None, where: str) -> Iterator[Said]:
        self.tally.n_given += 1
        marks: list[Mark] = []
        verdicts: dict[str, list[str]] = {}
        scores: dict[str, float | None] = {}
        for result in results:
            kind = self._kind(result)
            if kind == "span":
                marks += self._marks(result, where)
            elif kind == "document":
                question = result.get("from_name")
                question = question if isinstance(question, str) else ""
                scores[question] = None if question in verdicts else as_score(result.get("score"))
                verdicts.setdefault(question, []).extend(verdict_of(result["value"]))
            else:
                self.tally.others[excerpt(kind, 40)] += 1
        if self.key:
            yield Answer(self.id, self.text, where, name, marks, role, time)
        metadata = self._metadata() if self.key else {}
        for question, labels in verdicts.items():
            score = scores[question] if len(labels) == 1 else None
            yield Verdict(self.id, self.text, where, name, tuple(labels), question, role, time, metadata, score)

    def _marks(self, result: dict[str, Any], where: str) -> Iterator[Mark]:
        """Yield the spans of one result, one for each of its labels."""
        value = result["value"]
        if not self._wanted(result):
            self.collector.count("results of other controls or texts", 1, where)
            return
        kind = result.get("type")
        labels = value.get(kind) if isinstance(kind, str) and kind in value else None
        labels = labels or next((value[key] for key in TEXT_KEYS if key in value), None)
        if not isinstance(labels, list) or not labels:
            self.collector.count("spans without a label", 1, where)
            return
        start, end = self._place(value, where)
        self.tally.n_spans += len(labels)
        self.tally.controls[str(result.get("from_name"))] += len(labels)
        quoted = None if self.starts is not None and "\n" in self.text[start:end] else value.get("text")
        for label in labels:
            yield Mark.of(start, end, label, where, quoted, result.get("score"))

    def _place(self, value: dict[str, Any], where: str) -> tuple[int, int]:
        """Return start and end of a span, counted in the text of the task."""
        if self.starts is not None and "startOffset" in value and "endOffset" in value:
            first, last = as_offset(value["start"], "start", where), as_offset(value["end"], "end", where)
            if max(first, last) >= len(self.starts):
                raise FormatError(f"there are {len(self.starts)} paragraphs", path=where, got=f"paragraph {last}")
            start = self.starts[first] + as_offset(value["startOffset"], "startOffset", where)
            return start, self.starts[last] + as_offset(value["endOffset"], "endOffset", where)
        offsets = value.get("globalOffsets")
        if not isinstance(offsets, dict) and (_is_path(value["start"]) or _is_path(value["end"])):
            raise FormatError(
                "a span on a page is given by a path into its markup, without globalOffsets that count its characters",
                path=where,
                got=f"{value['start']} + {value.get('startOffset')}",
                hint="Export it from a newer Label Studio, which writes globalOffsets",
            )
        place = offsets if isinstance(offsets, dict) else value
        return as_offset(place.get("start"), "start", where), as_offset(place.get("end"), "end", where)

    def _minimal_results(self) -> Iterator[dict[str, Any]]:
        """Yield the results of a JSON-MIN row: lists of spans and choices stand under the names of the controls."""
        for key, value in self.task.items():
            if key in OWN:
                continue
            if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
                yield from ({"from_name": key, "value": entry} for entry in value)
            elif isinstance(value, dict):
                yield {"from_name": key, "value": value}
            elif self._is_choice(key) and isinstance(value, str | int | float):
                yield {"from_name": key, "value": {"choices": [value]}}
            elif isinstance(value, str | int) and key != "text" and len(str(value)) <= SHORT:
                self.tally.plain.setdefault(key, set()).add(str(value))


def _is_path(value: object) -> bool:
    return isinstance(value, str) and "/" in value


def _who(given: dict[str, Any]) -> object:
    """Return who completed an annotation, which John Snow Labs' Annotation Lab calls by another name."""
    who = given.get("completed_by")
    return given.get("created_username", who) if who in (None, "", {}) else who


def _annotator(value: object, where: str) -> str:
    """Return the name of who completed an annotation: a number, an address, or an object that has one of these."""
    if isinstance(value, dict):
        value = first(value, ("email", "username", "id"), (None, ""))
    return "unknown" if value is None else as_name(value, "completed_by", where)


def control_of(result: dict[str, Any]) -> tuple[object, object]:
    """Return which control made a result, and what it is about."""
    return str(result.get("from_name")), str(result.get("to_name"))


def _controls(results: list[Any]) -> dict[str, str]:
    """Return the names of the tags of a task's first span, if they are not the usual ones: predictions need them."""
    for result in (r for r in results if kind_of(r) == "span"):
        from_name, to_name = result.get("from_name"), result.get("to_name")
        if isinstance(from_name, str) and isinstance(to_name, str):
            usual = (from_name, to_name) == ("label", "text")
            return {} if usual else {"from_name": from_name, "to_name": to_name}
    return {}


def is_minimal(task: dict[str, Any]) -> bool:
    """Say whether this is a row of JSON-MIN, CSV or TSV: data and results side by side."""
    return "data" not in task and ("annotator" in task or "annotation_id" in task)


def kind_of(result: object) -> str:
    """Return "span" (of text), "document", or in a few words what a result is instead."""
    value = result.get("value") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(value, dict):
        kind = result.get("type") if isinstance(result, dict) else None
        return str(kind) if isinstance(kind, str) and kind else "results without a value"
    kind = str(result.get("type") or "")
    if "start" in value and "end" in value:
        timed = kind in TIMED or any(key in value for key in (*TIMED, "channel", "instant", "ranges"))
        if (
            timed
            or "original_length" in result
            or (isinstance(value["start"], float) and not value["start"].is_integer())
        ):
            return kind if kind and kind != "labels" else "labels of sounds"
        if any(key in value for key in TEXT_KEYS):
            return "span"
        if any(key in value for key in (*DOCUMENT_KEYS, "text")) and kind not in ("", "labels"):
            return f"{kind} of single spans"
        return "span"
    if any(key in value for key in ("x", "points", "rle", "sequence", "vertices")):
        return kind or "regions"
    if any(key in value for key in DOCUMENT_KEYS):
        return "document"
    return kind or next(iter(map(str, value)), "results without a value")


def verdict_of(value: dict[str, Any]) -> tuple[str, ...]:
    """Return the labels of a document in a result's value: choices, the leaves' paths of a taxonomy, a rating."""
    given = next(value[key] for key in DOCUMENT_KEYS if key in value)
    entries = given if isinstance(given, list) else [given]
    found: list[str] = []
    for entry in entries:
        parts = entry if isinstance(entry, list) else [entry]
        if parts and all(isinstance(part, str | int | float) and not isinstance(part, bool) for part in parts):
            name = " / ".join(str(part).strip() for part in parts)
            if name.strip():
                found.append(name)
    return tuple(dict.fromkeys(found))


def is_reference(value: str) -> bool:
    """Say whether a value points to something (an image, a sound, a table) rather than being a text."""
    return REFERENCE.fullmatch(value.strip()) is not None


def looks_like_html(text: str) -> bool:
    """Say whether a text is markup."""
    return text.lstrip()[:1] == "<" and TAG.search(text) is not None


class _TextOnly(HTMLParser):
    def __init__(self, breaks: bool) -> None:
        super().__init__(convert_charrefs=True)
        self.breaks = breaks
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if self.breaks and tag == "br":
            self.parts.append("\n")


def html_text(html: str, *, breaks: bool = False) -> str:
    """Return the text of a page as global offsets count it: all text nodes; with `breaks`, a line break for each br."""
    parser = _TextOnly(breaks)
    parser.feed(html)
    parser.close()
    return "".join(parser.parts)


def paragraphs_of(value: object) -> list[str] | None:
    """Return the texts of a dialogue: a list of objects that all have the same one text (or `text`); else None."""
    if not isinstance(value, list) or not value or not all(isinstance(entry, dict) for entry in value):
        return None
    keys = [key for key in value[0] if all(isinstance(entry.get(key), str) for entry in value)]
    for key in ("text", "utterance", "content", "message"):
        if key in keys:
            return [entry[key] for entry in value]
    return [entry[keys[0]] for entry in value] if len(keys) == 1 else None

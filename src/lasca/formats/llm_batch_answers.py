"""What came back from a batch API: the envelopes of the vendors, the JSON inside a model's answer, its quotes.

A language model that is asked to quote spans repeats them nearly word for word: it closes or opens spaces ("U.N. 's" as
"U.N.'s"), turns `` and “ into ", writes - for –, composes or decomposes accents. To find a quote both sides are brought
into one plain form without white space, with the place of every character kept; case is only given up when nothing
else is found.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lasca.errors import excerpt

__all__ = ["Answered", "LogProbs", "Place", "PlainText", "Quoted", "answers_of", "label_rows", "parse_answer",
           "place_quotes", "plain", "quoted_spans"]  # fmt: skip

IDS = ("custom_id", "recordId", "key")  # OpenAI and Anthropic, Bedrock, Gemini
CUT = ("length", "max_tokens", "max_output_tokens", "MAX_TOKENS", "model_context_window_exceeded")  # stopped too early
REFUSED = ("refusal", "content_filter", "content_filtered", "guardrail_intervened", "SAFETY", "RECITATION", "BLOCKLIST",
           "PROHIBITED_CONTENT", "SPII")  # fmt: skip


@dataclass(frozen=True)
class LogProbs:
    """The log-probability of each piece of an answer, where it begins and ends in it, and its likeliest rivals."""

    start: list[int]
    end: list[int]
    value: list[float]
    rivals: list[dict[str, float]]

    def probability(self, start: int, end: int) -> float:
        """Return the probability of what the answer says between two of its characters."""
        inside = (v for s, e, v in zip(self.start, self.end, self.value) if s < end and e > start)
        return min(1.0, math.exp(min(0.0, sum(inside))))

    def rivals_at(self, at: int) -> dict[str, float]:
        """Return the likeliest pieces at a character and their probabilities, the one that was taken among them."""
        for s, e, others in zip(self.start, self.end, self.rivals):
            if s <= at < e:
                return others
        return {}


@dataclass(frozen=True)
class Answered:
    """One answer of a model to one request; `problem` says why there is none."""

    custom_id: str
    model: str
    text: str
    problem: str | None
    logprobs: LogProbs | None


def answers_of(row: Mapping[str, Any]) -> Iterator[Answered]:
    """Yield the answers in one line of a result file: OpenAI (chat, responses), Anthropic, Gemini, or Bedrock."""
    custom_id = next((row[name] for name in IDS if isinstance(row.get(name), str)), None)
    if custom_id is None:
        return
    if "recordId" in row:
        yield from _bedrock(custom_id, row)
        return
    if "custom_id" not in row:
        yield from _gemini(custom_id, row)
        return
    if isinstance(row.get("result"), dict):
        yield from _anthropic(custom_id, row["result"])
        return
    response = row.get("response")
    if not isinstance(response, dict) or not isinstance(response.get("body"), dict):
        yield Answered(custom_id, "", "", "failed requests", None)
        return
    body, status = response["body"], response.get("status_code", 200)
    if row.get("error") or body.get("error") or (isinstance(status, int) and status >= 400):
        yield Answered(custom_id, _name(body), "", "failed requests", None)
    elif isinstance(body.get("choices"), list):
        yield from _chat(custom_id, body)
    else:
        yield from _responses(custom_id, body)


def _name(body: Mapping[str, Any]) -> str:
    return body["model"] if isinstance(body.get("model"), str) else ""


def _anthropic(custom_id: str, result: Mapping[str, Any]) -> Iterator[Answered]:
    message = result.get("message")
    if result.get("type") != "succeeded" or not isinstance(message, dict):
        yield Answered(custom_id, "", "", "failed requests", None)
        return
    yield _message(custom_id, message)


def _message(custom_id: str, message: Mapping[str, Any]) -> Answered:
    """Return the answer in a message of Anthropic: what was given to a tool, if one was called, else the text."""
    content = message.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    called = [part for part in parts if part.get("type") == "tool_use"]  # not "server_tool_use": a search, say
    text = _tool_inputs(called, "input") or _texts(content, ("text",))
    return Answered(custom_id, _name(message), text, _problem(message.get("stop_reason"), text), None)


def _tool_inputs(calls: Sequence[Any], key: str) -> str:
    """Return what was given to the tools that a model called, as JSON; nothing if it called none."""
    given = [call[key] for call in calls if isinstance(call, dict) and key in call]
    if not all(isinstance(one, dict | str) for one in given):
        return ""
    texts = [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in given]
    if len(texts) < 2 and not any(map(_is_span, texts)):
        return "".join(texts)
    joined: list[Any] = []
    for text in texts:  # calls that hold a list each, or a span each
        items = parse_answer(text)
        joined += [_json_or_text(text)] if items is None else items
    return json.dumps(joined, ensure_ascii=False)


def _is_span(text: str) -> bool:
    """Say whether a call holds a span, and no list of them: of several such calls each is a span."""
    return parse_answer(text) is None and bool(quoted_spans([_json_or_text(text)])[0])


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _gemini(key: str, row: Mapping[str, Any]) -> Iterator[Answered]:
    """Read a line of a batch of Gemini: a key, and a response with candidates (`parts` of text, or of calls)."""
    response = row.get("response")
    if not isinstance(response, dict) or row.get("error"):
        yield Answered(key, "", "", "failed requests", None)
        return
    model = response.get("modelVersion")
    candidates = response.get("candidates")
    for candidate in candidates if isinstance(candidates, list) and candidates else [{}]:
        content = candidate.get("content") if isinstance(candidate, dict) else None
        parts = content.get("parts") if isinstance(content, dict) else None
        parts = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        said = "".join(part["text"] for part in parts if isinstance(part.get("text"), str) and not part.get("thought"))
        text = _tool_inputs([part.get("functionCall") for part in parts], "args") or said
        reason = candidate.get("finishReason") if isinstance(candidate, dict) else None
        problem = "refused answers" if "promptFeedback" in response and not candidates else _problem(reason, text)
        yield Answered(key, model if isinstance(model, str) else "", text, problem, None)


def _bedrock(record: str, row: Mapping[str, Any]) -> Iterator[Answered]:
    """Read a line of Bedrock: `modelOutput` as the model's own API has it (Claude, Nova and Converse, Llama, Titan)."""
    body = row.get("modelOutput")
    if not isinstance(body, dict) or row.get("error"):
        yield Answered(record, "", "", "failed requests", None)
    elif isinstance(body.get("choices"), list):
        yield from _chat(record, body)
    elif isinstance(body.get("content"), list):
        yield _message(record, body)
    elif isinstance(body.get("output"), dict):
        message = body["output"].get("message")
        parts = message.get("content") if isinstance(message, dict) else None
        parts = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        said = "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
        text = _tool_inputs([part.get("toolUse") for part in parts], "input") or said
        yield Answered(record, _name(body), text, _problem(body.get("stopReason"), text), None)
    else:
        results = body.get("results") or body.get("outputs")
        one = results[0] if isinstance(results, list) and results and isinstance(results[0], dict) else body
        said = next((one[key] for key in ("generation", "outputText", "text") if isinstance(one.get(key), str)), "")
        reason = one.get("stop_reason") or str(one.get("completionReason") or "").lower()
        yield Answered(record, _name(body), said, _problem(reason, said), None)


def _chat(custom_id: str, body: Mapping[str, Any]) -> Iterator[Answered]:
    for choice in body["choices"]:
        if not isinstance(choice, dict):
            continue
        message = choice.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        text = content if isinstance(content, str) else _texts(content, ("text", "output_text"))
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        called = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
        text = _tool_inputs(called, "arguments") or text
        problem = _problem(choice.get("finish_reason"), text)
        if isinstance(message, dict) and message.get("refusal"):
            problem = "refused answers"
        given = choice.get("logprobs")
        pieces = given.get("content") if isinstance(given, dict) else None
        yield Answered(custom_id, _name(body), text, problem, _logprobs(pieces, text))


def _responses(custom_id: str, body: Mapping[str, Any]) -> Iterator[Answered]:
    found: list[str] = []
    pieces: list[Any] = []
    output = body.get("output")
    items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
    for part in (part for item in items if isinstance(item.get("content"), list) for part in item["content"]):
        if isinstance(part, dict) and part.get("type") == "output_text" and isinstance(part.get("text"), str):
            found.append(part["text"])
            pieces += part["logprobs"] if isinstance(part.get("logprobs"), list) else []
    details = body.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    calls = [item for item in items if item.get("type") == "function_call"]
    text = _tool_inputs(calls, "arguments") or "".join(found)
    yield Answered(custom_id, _name(body), text, _problem(reason, text), _logprobs(pieces, text))


def _texts(content: Any, kinds: Sequence[str]) -> str:
    parts = content if isinstance(content, list) else []
    return "".join(
        part["text"]
        for part in parts
        if isinstance(part, dict) and part.get("type") in kinds and isinstance(part.get("text"), str)
    )


def _problem(reason: Any, text: str) -> str | None:
    if reason in CUT:
        return "answers cut off"
    if reason in REFUSED:
        return "refused answers"
    return None if text.strip() else "empty answers"


def _logprobs(pieces: Any, text: str) -> LogProbs | None:
    """Return the log-probabilities if the pieces spell the answer (they may cut through characters)."""
    if not isinstance(pieces, list) or not pieces:
        return None
    start, end, value, rivals = [], [], [], []
    spelled, at_character = b"", _characters(text)
    for piece in pieces:
        raw = _bytes(piece)
        if raw is None or not _is_logprob(piece.get("logprob")):
            return None
        start.append(at_character.get(len(spelled), -1))
        spelled += raw
        end.append(at_character.get(len(spelled), -1))
        value.append(float(piece["logprob"]))
        others = piece.get("top_logprobs")
        rivals.append(
            {
                one["token"]: math.exp(min(0.0, one["logprob"]))
                for one in (others if isinstance(others, list) else ())
                if isinstance(one, dict) and isinstance(one.get("token"), str) and _is_logprob(one.get("logprob"))
            }
        )
    if spelled != text.encode():
        return None
    for i in range(len(start)):  # a piece that begins or ends inside a character goes with its neighbours
        start[i] = start[i] if start[i] >= 0 else (end[i - 1] if i else 0)
        end[i] = end[i] if end[i] >= 0 else start[i]
    return LogProbs(start, end, value, rivals)


def _is_logprob(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value and value < 1e-3


def _bytes(piece: Any) -> bytes | None:
    if not isinstance(piece, dict) or not isinstance(piece.get("token"), str):
        return None
    raw = piece.get("bytes")
    if isinstance(raw, list) and all(isinstance(b, int) and not isinstance(b, bool) and 0 <= b < 256 for b in raw):
        return bytes(raw)
    return str(piece["token"]).encode(errors="replace")


def _characters(text: str) -> dict[int, int]:
    """Return the character that begins at each byte."""
    table, at = {}, 0
    for i, char in enumerate(text):
        table[at] = i
        at += len(char.encode(errors="replace"))
    table[at] = len(text)
    return table


# --- inside the answer -------------------------------------------------------------------------------------------

_DECODER = json.JSONDecoder()
_OPENS = re.compile(r"[\[{]")
TRIES = 200  # brackets that begin no JSON, before an answer is given up
_LISTS = ("spans", "entities", "labels", "tokens", "annotations", "items", "results")
_TEXTS = ("text", "quote", "span", "entity", "token", "word", "mention", "name")
_LABELS = ("label", "type", "tag", "category", "class", "entity_type")
_STARTS = ("start", "start_offset", "begin")


def parse_answer(text: str) -> list[Any] | None:
    """Return the list in an answer, behind whatever the model wrote around it; None if there is none."""
    best: list[Any] | None = None
    at = tries = 0
    while tries < TRIES and (found := _OPENS.search(text, at)) is not None:
        try:
            value, at = _DECODER.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            at, tries = found.start() + 1, tries + 1
            continue
        items = _list_in(value)
        if items is not None and (best is None or len(items) > len(best)):
            best = items
    return best


def _list_in(value: Any) -> list[Any] | None:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        for name in _LISTS:
            if isinstance(value.get(name), list):
                return list(value[name])
        if len(value) == 1 and isinstance(only := next(iter(value.values())), list):
            return only
    return None


def quoted_spans(items: Sequence[Any]) -> tuple[list[Quoted], int]:
    """Return the spans of an answer, and how many of its items are none.

    An item is an object with a quote and a type under any of the usual names, or a pair [quote, type].
    """
    spans, unread = [], 0
    for item in items:
        text, label, start = None, None, None
        if isinstance(item, dict):
            text, label = _first(item, _TEXTS), _first(item, _LABELS)
            hint = next((item[n] for n in _STARTS if isinstance(item.get(n), int)), None)
            start = None if isinstance(hint, bool) else hint
        elif isinstance(item, list) and len(item) == 2 and all(isinstance(x, str) for x in item):
            text, label = item
        if text is None or label is None:
            unread += 1
        else:
            spans.append(Quoted(text, label, start))
    return spans, unread


def _first(item: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((item[n].strip() for n in names if isinstance(item.get(n), str) and item[n].strip()), None)


def label_rows(items: Sequence[Any]) -> tuple[list[str | None], list[str]]:
    """Return the words (None where only labels were given) and labels of an answer with one label per token."""
    words: list[str | None] = []
    labels: list[str] = []
    for item in items:
        spans = [] if isinstance(item, str) else quoted_spans([item])[0]
        words.append(spans[0].text if spans else None)
        labels.append(item.strip() if isinstance(item, str) else spans[0].label if spans else "")
    return words, labels


# --- where a quote stands in a text ------------------------------------------------------------------------------

_SAME = {'"': "“”„‟«»″〝〞＂", "'": "‘’‚‛′`´ʼ＇", "-": "‐‑‒–—―−﹘﹣－", "...": "…"}
_PLAIN = {ord(c): to for to, froms in _SAME.items() for c in froms}
_EDGES = "\"'*_<>[]()«»“”"


@dataclass(frozen=True)
class Quoted:
    """A span as an answer gives it: its words, its type, and a hint where it begins (code points), if any."""

    text: str
    label: str
    start: int | None = None


@dataclass(frozen=True)
class Place:
    """Where a quote was found: code points, half-open; `quote` is its number in the answer."""

    start: int
    end: int
    label: str
    quote: int


def plain(text: str) -> tuple[str, list[int]]:
    """Return the plain form of a text and for each of its characters the index it came from."""
    parts: list[str] = []
    source: list[int] = []
    for i, char in enumerate(text):
        if char.isspace() or unicodedata.category(char) == "Cf":
            continue
        form = _PLAIN.get(ord(char)) or unicodedata.normalize("NFKD", char)
        form = "".join(c for c in form if not c.isspace())
        parts.append(form)
        source += [i] * len(form)
    return _double_quotes("".join(parts), source)


def _double_quotes(text: str, source: list[int]) -> tuple[str, list[int]]:
    """Write two single quotation marks in a row (`` and '' of the Penn Treebank) as one double mark."""
    if "''" not in text:
        return text, source
    kept, out, i = [], [], 0
    while i < len(text):
        double = text[i : i + 2] == "''"
        out.append('"' if double else text[i])
        kept.append(source[i])
        i += 2 if double else 1
    return "".join(out), kept


@dataclass
class PlainText:
    """A text with its tokens, ready to be searched."""

    text: str
    chars: Sequence[tuple[int, int]]
    form: str = ""
    source: list[int] = field(default_factory=list)
    folded: str = ""

    def __post_init__(self) -> None:
        self.form, self.source = plain(self.text)
        folded = [(c.casefold(), i) for c, i in zip(self.form, self.source)]
        self.folded = "".join(c for c, _ in folded)
        self._folded_source = [i for c, i in folded for _ in c]
        self._starts = {start for start, _ in self.chars}
        self._ends = {end for _, end in self.chars}

    def find(self, quote: str) -> tuple[list[tuple[int, int]], bool]:
        """Return all places of a quote as (start, end), and whether case had to be given up."""
        wanted = plain(quote)[0]
        for trial in dict.fromkeys((wanted, plain(quote.strip().strip(_EDGES))[0])):
            for form, source, folds in ((self.form, self.source, False), (self.folded, self._folded_source, True)):
                found = _occurrences(form, trial.casefold() if folds else trial)
                if found:
                    return [(source[a], self._end(source, b)) for a, b in found], folds
        return [], False

    def _end(self, source: list[int], stop: int) -> int:
        """Return where a match ends: behind its last character and whatever belongs to that one."""
        last = source[stop - 1] + 1
        while last < len(self.text) and unicodedata.combining(self.text[last]):
            last += 1
        if self.text[last - 1 : last + 1] in ("``", "''"):
            last += 1
        return last

    def on_borders(self, start: int, end: int) -> bool:
        """Say whether a place begins and ends where tokens do."""
        return start in self._starts and end in self._ends


def _occurrences(text: str, wanted: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    at = text.find(wanted) if wanted else -1
    while at >= 0:
        found.append((at, at + len(wanted)))
        at = text.find(wanted, at + 1)
    return found


def place_quotes(quotes: Sequence[Quoted], text: PlainText, count: Callable[..., Any], where: str) -> list[Place]:
    """Find every quote: on token borders if it can be, behind the one before it if it can be, each place once.

    `count(kind, 1, example)` is told of quotes that are not in the text, that stand in it several times (the place was
    chosen by their order, or by the hint), that differ in case, and that were given more often than they stand there.
    """
    taken: set[tuple[int, int, str]] = set()
    placed: list[Place] = []
    cursor = 0
    for number, quote in enumerate(quotes):
        shown = f"{where}: {quote.label} {excerpt(quote.text, 60)!r}"
        found, folded = text.find(quote.text)
        if not found:
            count("quotes not in the text", 1, shown)
            continue
        free = [place for place in found if (*place, quote.label) not in taken]
        if not free:
            count("repeated quotes", 1, shown)
            continue
        if folded:
            count("quotes that differ in case", 1, shown)
        best = [place for place in free if text.on_borders(*place)] or free
        if len(best) > 1:
            count("quotes placed by their order", 1, shown)
        start, end = _nearest(best, quote.start) if quote.start is not None else _next(best, cursor)
        taken.add((start, end, quote.label))
        placed.append(Place(start, end, quote.label, number))
        cursor = start + 1
    return placed


def _nearest(places: list[tuple[int, int]], hint: int) -> tuple[int, int]:
    return min(places, key=lambda place: (abs(place[0] - hint), place))


def _next(places: list[tuple[int, int]], cursor: int) -> tuple[int, int]:
    """Return the first place behind the cursor, or the first of all."""
    at = bisect_left(places, (cursor, 0))
    return places[at] if at < len(places) else places[0]

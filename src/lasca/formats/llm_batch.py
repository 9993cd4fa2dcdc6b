"""Answers of language models: the result files of batch APIs (OpenAI, Anthropic, Gemini, Bedrock), read as
annotators. From OpenAI:

    {"custom_id": "s1", "response": {"status_code": 200, "body": {"model": "gpt-4o-mini", "choices": [{"message": {"content": "{\\"spans\\": [{\\"text\\": \\"Ada Lovelace\\", \\"label\\": \\"PER\\"}]}"}, "finish_reason": "stop"}]}}}

and from Anthropic:

    {"custom_id": "s1", "result": {"type": "succeeded", "message": {"model": "claude-3-5-haiku", "content": [{"type": "text", "text": "{\\"spans\\": []}"}], "stop_reason": "end_turn"}}}

Gemini's lines have `key` and `response` (`candidates`), Bedrock's `recordId` and `modelOutput`, as the model has it.
What a model gave to a tool (a function) is its answer, if it called one.

The texts are those of `data`, the corpus the requests were written from (`lasca convert DATA requests.jsonl --to
llm-batch --guideline guide.md`); its annotators stay, the models come beside them as annotators of kind "model" who
vote (`votes=false`: they do not). A `custom_id` is the one LASCA wrote, or the id of a sequence.

- Spans are quotes: they are found in the text whatever the model did to spaces, quotation marks and dashes; what
  cannot be found is counted. Where a quote stands several times, the order of the answer decides.
- Several samples of one model are one soft annotator: the shares of its answers. Log-probabilities are used where
  they are given: the probability of a quote and of its type.
- An answer that is cut off, refused or not JSON is missing, not "nothing to mark"; `{"spans": []}` is all O.
- Answers of one model to several guidelines are several annotators of one family.
"""  # noqa: E501

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca import align, schemes
from lasca.corpus import CrowdCorpus, LoadReport, SoftVotes
from lasca.corpus.build import sorted_by_token
from lasca.errors import FormatError, ParameterError, excerpt
from lasca.formats.base import Collector, SourceFile, parse_json_lines, pick
from lasca.formats.llm_batch_answers import (
    Answered,
    LogProbs,
    Place,
    PlainText,
    Quoted,
    answers_of,
    label_rows,
    parse_answer,
    place_quotes,
    quoted_spans,
)
from lasca.formats.llm_batch_write import custom_id, span_types, text_of

__all__ = ["NAME", "read", "sniff"]

NAME = "llm-batch"
ID_LENGTH = len("lasca-") + 24
KEYS = (b'"response"', b'"result"', b'"body"', b'"params"')  # of results, and of requests: these are refused by name


def sniff(files: Sequence[SourceFile]) -> float:
    """Say how much the files look like results (or requests) of a batch."""
    for file in files:
        head = file.head().lstrip()
        if any(is_vertex(row) or answers_known(row) for row in file.records[:3]):
            return 0.97
        if head.startswith(b"{") and b'"custom_id"' in head:
            return 0.97 if any(key in head for key in KEYS) else 0.4
    return 0.0


def answers_known(row: dict[str, Any]) -> bool:
    """Say whether a line is a result of Bedrock or Gemini."""
    gemini = isinstance(row.get("response"), dict) and "candidates" in row["response"]
    return ("recordId" in row and "modelInput" in row) or ("key" in row and gemini)


def is_vertex(row: dict[str, Any]) -> bool:
    """Say whether a line is a result of Vertex AI, which has the request in the place of a key."""
    response = row.get("response")
    return "key" not in row and "request" in row and isinstance(response, dict) and "candidates" in response


@dataclass
class _Voter:
    """One annotator: a model and a guideline; its distributions over labels per sequence, one for each sample."""

    model: str
    prompt: str
    soft: bool = False
    said: dict[int, list[npt.NDArray[np.float64]]] = field(default_factory=dict)


def read(
    files: Sequence[SourceFile],
    *,
    data: str | Path | CrowdCorpus | None = None,
    votes: bool = True,
    soft: bool = True,
    annotator: str | None = None,
    types: str | Sequence[str] = (),
) -> CrowdCorpus:
    """Read results; `data` is the corpus (or its path) whose texts were sent.

    `soft=False` keeps the likeliest label of each token where answers differ, for models that take no soft votes.
    `annotator` names the model where the results do not, or otherwise than they do; `types` allows types of spans that
    nobody has used yet.
    """
    corpus = _texts(data, files)
    collector = Collector(files, NAME)
    task = _Task(corpus, tuple(types.replace(",", " ").split()) if isinstance(types, str) else tuple(types), collector)
    voters: dict[tuple[str, str], _Voter] = {}
    answers = strange = 0
    for file in pick(files, (".jsonl", ".json", ".ndjson", ".txt"), collector):
        for line, row in parse_json_lines(file):
            where = f"{file.shown}:{line}"
            if "custom_id" in row and ("body" in row or "params" in row):
                raise file.error("these are requests, not what came back", line, hint="Read the result file instead")
            if is_vertex(row):
                raise file.error(
                    "these are results of Vertex AI, whose lines have no key: they do not say which text is meant",
                    line,
                    hint='Put the id of its sequence into each line, {"key": "s1", "response": …}: the text that was '
                    "sent stands under request",
                )
            for answer in answers_of(row):
                answers += 1
                place = task.find(answer.custom_id)
                if place is None:
                    strange += 1
                    collector.count("answers for other texts", 1, f"{where}: {answer.custom_id}")
                    continue
                if answer.problem is not None:
                    collector.count(answer.problem, 1, where)
                    continue
                sequence, prompt = place
                model = annotator or answer.model or Path(file.name).stem
                voter = voters.setdefault((model, prompt), _Voter(model, prompt))
                voter.soft |= answer.logprobs is not None and task.spans
                found = task.labels(answer, sequence, where)
                if found is not None:
                    voter.said.setdefault(sequence, []).append(found)
    if not answers:
        raise FormatError(
            "there is no answer in this file",
            path=collector.source,
            hint="Expected lines with custom_id (OpenAI, Anthropic), key (Gemini) or recordId (Bedrock)",
        )
    if strange == answers:
        raise FormatError(
            "all answers are for other texts than those of the data",
            path=collector.source,
            got=next(iter(collector.examples["answers for other texts"]), ""),
            hint="Give the corpus the requests were written from: data=… (on the command line: -r data=…)",
        )
    return _joined(task, voters, votes, soft, collector)


def _texts(data: str | Path | CrowdCorpus | None, files: Sequence[SourceFile]) -> CrowdCorpus:
    if isinstance(data, CrowdCorpus):
        return data
    if data is None:
        raise FormatError(
            "the answers of a language model do not hold the texts they are about",
            path=files[0].shown if files else None,
            hint="Give the corpus the requests were written from: data=… (on the command line: -r data=…)",
        )
    if not isinstance(data, str | Path):
        raise ParameterError("data", data, "the path of the corpus the requests were written from")
    from lasca.formats import read as read_any_format

    return read_any_format(data)


class _Task:
    """What was asked: the texts, the labels, and how an answer becomes a distribution over them."""

    def __init__(self, corpus: CrowdCorpus, types: Sequence[str], collector: Collector) -> None:
        self.collector = collector
        known = span_types(corpus)
        self.types = sorted({*known, *types})
        self.spans = bool(self.types)
        self.scheme = schemes.detect_corpus(corpus) or "IOB2"
        names = schemes.complete_labels([*corpus.labels, *(f"B-{t}" for t in types)], self.scheme) if self.spans else ()
        self.corpus = _with_labels(corpus, sorted({*corpus.labels, *names}))
        self.code = {name: i for i, name in enumerate(self.corpus.labels)}
        self.folded = {name.casefold(): name for name in (self.types if self.spans else self.corpus.labels)}
        self.by_id = {name: s for s, name in enumerate(corpus.sequence_ids)}
        self.by_digest = {custom_id(corpus, s, "")[:ID_LENGTH]: s for s in range(corpus.n_sequences)}
        self.plain: dict[int, PlainText] = {}

    def find(self, id: str) -> tuple[int, str] | None:
        """Return the sequence a `custom_id` stands for, and which prompt it was asked with."""
        if id in self.by_id:
            return self.by_id[id], ""
        sequence = self.by_digest.get(id[:ID_LENGTH])
        return None if sequence is None else (sequence, id[ID_LENGTH + 1 : ID_LENGTH + 7])

    def labels(self, answer: Answered, sequence: int, where: str) -> npt.NDArray[np.float64] | None:
        """Return (n_tokens, n_labels) probabilities; rows of a token that is missing are nan; None: no answer."""
        items = parse_answer(answer.text)
        if items is None:
            self.collector.count("answers that are not JSON", 1, f"{where}: {excerpt(answer.text, 60)}")
            return None
        return self._spans(items, answer, sequence, where) if self.spans else self._tokens(items, sequence, where)

    def _spans(self, items: list[Any], answer: Answered, sequence: int, where: str) -> npt.NDArray[np.float64] | None:
        quotes, unread = quoted_spans(items)
        self.collector.count("spans that cannot be read", unread, f"{where}: {excerpt(str(items), 60)}")
        if items and not quotes:
            return None
        text = self.plain.get(sequence)
        if text is None:
            text = self.plain[sequence] = PlainText(*text_of(self.corpus, sequence))
        named = [replace(quote, label=self.folded.get(quote.label.casefold(), quote.label)) for quote in quotes]
        places = place_quotes(named, text, self.collector.count, where)
        unknown = [p for p in places if p.label not in self.types]
        for place in unknown:
            example = f"{where}: {place.label} {excerpt(text.text[place.start : place.end], 40)!r}"
            self.collector.count("spans of an unknown type (their tokens are missing)", 1, example)
        marks = [align.Span(p.start, p.end, p.label, where) for p in places if p.label in self.types]
        tags = align.spans_to_labels(
            marks, text.chars, text.text, partial="expand", overlap="longest", count=self.collector.count
        )
        if self.scheme != "IOB2":
            tags = [str(tag) for tag in schemes.convert(tags, self.scheme)]
        proba = np.zeros((len(text.chars), len(self.code)))
        proba[np.arange(len(tags)), [self.code[tag] for tag in tags]] = 1
        for place in unknown:
            inside = [i for i, (a, b) in enumerate(text.chars) if a < place.end and b > place.start and tags[i] == "O"]
            proba[inside] = np.nan
        if answer.logprobs is not None:
            sure = _sureness(answer.text, quotes, answer.logprobs, self.folded)
            self._weigh(proba, places, sure, text, tags)
        return proba

    def _weigh(
        self,
        proba: npt.NDArray[np.float64],
        places: list[Place],
        sure: dict[int, tuple[float, dict[str, float]]],
        text: PlainText,
        tags: list[str],
    ) -> None:
        """Spread the certainty of a marked token: over the types the model thought of, the rest goes to O."""
        for place in places:
            if place.quote not in sure or place.label not in self.types:
                continue
            quote, types = sure[place.quote]
            for i, (a, b) in enumerate(text.chars):
                if a < place.end and b > place.start and tags[i][2:] == place.label:
                    row = np.zeros(len(self.code))
                    for name, p in types.items():
                        row[self.code[tags[i][:2] + name]] += quote * p
                    row[self.code["O"]] += 1 - row.sum()
                    proba[i] = row

    def _tokens(self, items: list[Any], sequence: int, where: str) -> npt.NDArray[np.float64] | None:
        words, labels = label_rows(items)
        tokens = self.corpus.sequence(sequence)
        place: list[int | None] = list(range(len(tokens)))
        if len(labels) != len(tokens):
            if any(word is None for word in words) or not labels:
                example = f"{where}: {len(labels)} labels for {len(tokens)} tokens"
                self.collector.count("answers with another number of labels", 1, example)
                return None
            place = _same_words([str(word) for word in words], tokens)
            self.collector.count("answers aligned by their words", 1, where)
        proba = np.full((len(tokens), len(self.code)), np.nan)
        for i, at in enumerate(place):
            name = None if at is None else self.folded.get(labels[at].casefold())
            if at is not None and name is None:
                self.collector.count("labels that are unknown", 1, f"{where}: {excerpt(labels[at], 40)}")
            elif name is not None:
                proba[i] = 0
                proba[i, self.code[name]] = 1
        return proba


def _same_words(words: list[str], tokens: list[str]) -> list[int | None]:
    """Return for each token the word of the answer that stands for it, if any."""
    place: list[int | None] = [None] * len(tokens)
    for a, b, n in SequenceMatcher(None, words, tokens, autojunk=False).get_matching_blocks():
        place[b : b + n] = range(a, a + n)
    return place


def _sureness(
    text: str, quotes: list[Quoted], given: LogProbs, folded: Mapping[str, str]
) -> dict[int, tuple[float, dict[str, float]]]:
    """Return for each quote that is found in the answer its probability and those of its types."""
    found, cursor = {}, 0
    for number, quote in enumerate(quotes):
        forms = [json.dumps(quote.text, ensure_ascii=escaped) for escaped in (False, True)]
        at, written = next(((at, w) for w in forms if (at := text.find(w, cursor)) >= 0), (-1, ""))
        label = json.dumps(quote.label, ensure_ascii=False)
        label_at = text.find(label, at + len(written)) if at >= 0 else -1
        if label_at < 0:
            continue
        cursor = label_at + len(label)
        name = folded.get(quote.label.casefold(), quote.label)
        types = {name: given.probability(label_at + 1, cursor - 1)}
        for piece, p in given.rivals_at(label_at + 1).items():
            start = piece.strip('" ').casefold()
            rivals = [n for f, n in folded.items() if start and (f.startswith(start) or start.startswith(f))]
            if len(rivals) == 1 and rivals[0] not in types:
                types[rivals[0]] = p
        total = sum(types.values())
        types = {n: p / max(total, 1.0) for n, p in types.items()}
        found[number] = (given.probability(at + 1, at + len(written) - 1), types)
    return found


def _with_labels(corpus: CrowdCorpus, labels: list[str]) -> CrowdCorpus:
    """Return the corpus with more labels: everything that holds a code is written anew."""
    if tuple(labels) == corpus.labels:
        return corpus
    code = np.array([labels.index(name) for name in corpus.labels], np.int16)
    changed = np.append(code, np.int16(-1))
    return replace(
        corpus,
        labels=tuple(labels),
        annotation_label=changed[corpus.annotation_label],
        golds={name: changed[gold] for name, gold in corpus.golds.items()},
        soft=None if corpus.soft is None else corpus.soft.recoded(code, len(labels)),
        known=None if corpus.known is None else corpus.known.recoded(code, len(labels)),
    )


def _joined(
    task: _Task, voters: dict[tuple[str, str], _Voter], votes: bool, as_soft: bool, collector: Collector
) -> CrowdCorpus:
    """Put the models beside the annotators of the data."""
    corpus, start = task.corpus, task.corpus.offsets
    prompts: dict[str, list[str]] = {}
    for model, prompt in sorted(voters):
        prompts.setdefault(model, []).append(prompt)
    names: list[str] = []
    families: list[str | None] = []
    hard: list[tuple[Any, Any, Any]] = []
    soft: list[tuple[Any, Any, Any]] = []
    for (model, prompt), voter in sorted(voters.items()):
        name = model if len(prompts[model]) == 1 else f"{model} #{prompt or 'own'}"
        if name in corpus.annotators:
            raise FormatError(
                f"there is an annotator {excerpt(name)!r} in the data already",
                path=collector.source,
                hint="Give the model another name: annotator=…",
            )
        who = corpus.n_annotators + len(names)
        names.append(name)
        families.append(model if len(prompts[model]) > 1 else None)
        is_soft = as_soft and (voter.soft or max((len(rows) for rows in voter.said.values()), default=0) > 1)
        for sequence, samples in sorted(voter.said.items()):
            mean = _mean(samples)
            at = np.flatnonzero(~np.isnan(mean[:, 0]))
            token = int(start[sequence]) + at
            rows = (token, np.full(len(at), who, np.int32))
            if is_soft:
                soft.append((*rows, mean[at]))
            else:
                hard.append((*rows, mean[at].argmax(axis=1).astype(np.int16)))
        if is_soft:
            collector.note(f"{name} is a soft annotator: its probabilities are shares of answers or log-probabilities.")
    if not names:
        raise FormatError(
            "no answer could be read",
            path=collector.source,
            got=", ".join(f"{kind}: {n}" for kind, n in collector.counts.items()),
            hint="Send these requests again; if it is the file of errors, read that of the results",
        )
    who_votes = "vote" if votes else "do not vote"
    collector.note(f"{', '.join(names)}: annotators of kind model, who {who_votes} (votes=true or false).")
    parts = [(corpus.annotation_token, corpus.annotation_annotator, corpus.annotation_label), *hard]
    token, who_said, label = (np.concatenate(p) for p in zip(*parts))
    csr = sorted_by_token(token, who_said, label, corpus.tokens, corpus.offsets)
    older = [] if corpus.soft is None else [(corpus.soft.token, corpus.soft.annotator, corpus.soft.proba)]
    return replace(
        corpus,
        annotators=(*corpus.annotators, *names),
        kinds=(*corpus.kinds, *("model" for _ in names)),
        families=(*corpus.families, *families),
        votes=(*corpus.votes, *(bool(votes) for _ in names)),
        soft=SoftVotes.of(*(np.concatenate(p) for p in zip(*older, *soft))) if older or soft else None,
        load_report=_report(corpus.load_report, collector),
        **csr,
    )


def _mean(samples: list[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """Return the mean over the samples that speak of a token; nan where none does."""
    rows = np.stack(samples)
    speaks = ~np.isnan(rows[:, :, :1])
    total = np.where(speaks, rows, 0).sum(axis=0)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / speaks.sum(axis=0))


def _report(old: LoadReport, collector: Collector) -> LoadReport:
    counts = dict(old.counts)
    for kind, n in collector.counts.items():
        counts[kind] = counts.get(kind, 0) + n
    examples = {**old.examples, **{kind: tuple(shown) for kind, shown in collector.examples.items()}}
    notes = tuple(note for note in old.notes if not note.startswith(("The tags are ", "The format was", "Read as ")))
    return LoadReport(collector.source, NAME, counts, examples, (*notes, *collector.notes))

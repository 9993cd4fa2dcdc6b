"""What readers of span formats share: answers over texts go in, a corpus over tokens comes out.

A reader turns its files into `Answer` records, with offsets as the file has them; the pool finds out what the offsets
count, checks the quoted texts, decides on one tokenisation per text, and hands labels over tokens to the collector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypedDict, Unpack, cast

from lasca import align
from lasca.corpus import CrowdCorpus, LoadReport
from lasca.errors import FormatError, count, excerpt
from lasca.estimator import check_choice
from lasca.formats.base import (
    SCORES,
    Collector,
    SourceFile,
    as_label,
    as_offset,
    as_score,
    elsewhere,
    natural_key,
    text_id,
)
from lasca.formats.documents import DOCUMENT, Verdict, chosen_unit, document_corpus, question_of
from lasca.formats.layers import Layers
from lasca.schemes import OUTSIDE

__all__ = ["Answer", "Mark", "Said", "SpanOptions", "Spans", "TextPool"]

LINKS = ("id", "text")


@dataclass(frozen=True)
class Mark:
    """A span as a file has it: offsets in the file's unit, and the text the file says stands there."""

    start: int
    end: int
    label: str
    quoted: str | None = None
    where: str = ""
    score: float | None = None
    """How sure the annotator (a model, mostly) is of it, where the file says so."""

    @classmethod
    def of(
        cls, start: object, end: object, label: object, where: str, quoted: object = None, score: object = None
    ) -> Mark:
        """Make a mark of what a file holds: offsets must be whole numbers, the label a name."""
        words = quoted if isinstance(quoted, str) else None
        edges = as_offset(start, "start", where), as_offset(end, "end", where)
        return cls(*edges, as_label(label, where), words, where, as_score(score))


@dataclass(frozen=True)
class Answer:
    """What one annotator said of one text; `marks=None` is missing (not the same as no marks: all O)."""

    id: str
    text: str
    where: str
    name: str = ""
    marks: Sequence[Mark] | None = None
    role: str = "annotator"
    time: str | None = None
    tokens: Sequence[Mark] | None = None
    """The export's own tokens, if it has any."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    unknown: Sequence[tuple[int, int]] = ()
    """Stretches (code points) of which nothing was said: their tokens are missing, not O."""
    again: bool = False
    """The same answer in another role: what is changed in it was counted before."""


Said = Answer | Verdict


class Spans(TypedDict, total=False):
    """The options all readers of span formats have: those of `SpanOptions`, but scores, which few files hold."""

    unit: str
    partial: str
    overlap: str
    tokenizer: str | align.Tokenizer | None
    tagging: str
    link: str


@dataclass(frozen=True)
class SpanOptions:
    """What the options of readers of span formats say.

    `unit`: what offsets count ("auto", "codepoint", "utf16", "grapheme", "utf8"), or "document" for labels of whole
    documents; `partial`: what becomes of a token that a span cuts ("expand", "shrink", "error", or "split": tokens are
    cut at the edges of spans); `overlap`: of spans that share a token ("error", "longest", "first", or "layers" and
    "depth": several corpora, see `lasca.formats.layers`); `tokenizer`: None (the export's own tokens, else the default
    rule), the name of a rule, or a function; `tagging`: "iob2" (`B-PER`, `I-PER`), or "plain" (the label itself on
    every token, as for parts of speech); `link`: what makes two texts of several files the same one, their "id" or
    their "text"; `scores`: what becomes of the scores of spans ("count": they are left out and counted, "soft": soft
    votes, see `Collector.annotate`).
    """

    unit: str = "auto"
    partial: str = "expand"
    overlap: str = "error"
    tokenizer: str | align.Tokenizer | None = None
    tagging: str = "iob2"
    link: str = "id"
    scores: str = "count"

    def __post_init__(self) -> None:
        check_choice("scores", self.scores, SCORES)
        check_choice("link", self.link, LINKS)
        if self.unit != DOCUMENT:
            align.check_unit(self.unit)
        align.check_choices(self.partial, self.overlap, self.tagging)


@dataclass(frozen=True)
class _Known:
    """An answer with everything in code points."""

    answer: Answer
    spans: list[align.Span] | None
    tokens: tuple[tuple[int, int], ...] | None


class TextPool:
    """Gathers answers file by file and makes a corpus of them."""

    def __init__(
        self,
        files: Sequence[SourceFile],
        format: str,
        *,
        scores: str = "count",
        usual: str = "auto",
        **spans: Unpack[Spans],
    ) -> None:
        self.collector = Collector(files, format)
        self.options = SpanOptions(**spans, scores=scores)
        self.usual = usual  # the unit of offsets where the user names none
        self.tokenize = align.tokenizer_of(self.options.tokenizer)
        self.by_id: dict[str, list[_Known]] = {}

    def corpus_of(
        self, said: Mapping[str, Sequence[Said]], option: str = "", question: str | None = None
    ) -> CrowdCorpus:
        """Make the corpus of all that is said in files, by their names: see `documents` and `corpus`."""
        found = self.documents(said, option, question)
        return self.corpus() if found is None else found

    def documents(
        self,
        said: Mapping[str, Sequence[Said]],
        option: str = "",
        question: str | None = None,
        n_spans: int | None = None,
    ) -> CrowdCorpus | None:
        """Return the corpus of labels of whole documents, if these are wanted or all there is; else take the spans.

        `question` is the one to read, and `option` what readers call it that know several. `n_spans` says how many
        spans there are, if not all of those that are given.
        """
        verdicts = [e for given in said.values() for e in given if isinstance(e, Verdict)]
        answers = {shown: [e for e in given if isinstance(e, Answer)] for shown, given in said.items()}
        if n_spans is None:
            n_spans = sum(len(answer.marks or ()) for given in answers.values() for answer in given)
        if chosen_unit(self.options.unit, n_spans, verdicts, self.collector) == DOCUMENT:
            asked = question_of([v for v in verdicts if v.name], question, option, self.collector) if option else ""
            verdicts = [v if v.name else replace(v, question=asked) for v in verdicts]  # nobody's word is about any
            return document_corpus(self._linked(verdicts), asked, self.collector, self.options.scores)
        for shown, own in answers.items():
            self.add_file(shown, own)
        return None

    def add_file(self, shown: str, answers: Iterable[Answer]) -> None:
        """Take the answers of one file: its offsets are all in one unit, which is found out here."""
        gathered = list(answers)
        unit = align.check_unit(self.options.unit)
        unit = self.usual if unit == "auto" else unit
        if unit == "auto":
            gathered = self._with_usual_ends(shown, gathered)
            quotes = (
                align.Quote(answer.text, mark.start, mark.end, mark.quoted, mark.where or answer.where)
                for answer in gathered
                for mark in (*(answer.marks or ()), *(answer.tokens or ()))
            )
            unit, how = align.infer_unit(quotes, self.tokenize, path=shown)
            if how is not None:
                self.collector.note(f"{shown}: {how}")
            if self.options.partial != "split":
                plain = [answer for answer in gathered if not answer.tokens]
                align.refuse_cuts(_quotes(plain), unit, self.tokenize, path=shown)
        for answer in gathered:
            self.by_id.setdefault(answer.id, []).append(self._known(answer, unit))

    def _with_usual_ends(self, shown: str, answers: list[Answer]) -> list[Answer]:
        """Return answers whose spans begin at 0 and end behind their last character, whatever the file does."""
        if any(answer.tokens for answer in answers):
            return answers
        start, end, how = align.infer_ends(_quotes(answers), self.tokenize)
        if how is None:
            return answers
        self.collector.note(f"{shown}: {how}.")
        return [
            answer
            if not answer.marks
            else replace(
                answer, marks=[replace(m, start=max(m.start + start, 0), end=m.end + end) for m in answer.marks]
            )
            for answer in answers
        ]

    def _known(self, answer: Answer, unit: str) -> _Known:
        if not answer.marks and not answer.tokens:
            return _Known(answer, None if answer.marks is None else [], None)
        convert = align.to_codepoints(answer.text, unit)
        marked = [mark for mark in answer.marks or () if mark.label != OUTSIDE]
        if not answer.again:
            self.collector.count("spans called O, nothing marked", len(answer.marks or ()) - len(marked), answer.where)
        spans = None if answer.marks is None else [self._span(mark, answer, unit, convert) for mark in marked]
        return _Known(answer, spans, self._own_tokens(answer, unit, convert))

    def _span(self, mark: Mark, answer: Answer, unit: str, convert: Callable[[int], int | None]) -> align.Span:
        start, end = convert(mark.start), convert(mark.end)
        where = mark.where or answer.where
        if start is None or end is None or start > end:
            raise FormatError(
                f"a span lies outside its text of {len(answer.text)} code points, or inside a character (unit {unit})",
                path=where,
                got=f"{mark.label} {mark.start}-{mark.end} in {excerpt(answer.text, 40)!r}",
                hint="The text may have been cut or changed after it was labelled: correct this entry or take it out",
            )
        there = answer.text[start:end]
        if mark.quoted is not None and not answer.again and not align.same_words(there, mark.quoted):
            example = f"{where}: {excerpt(mark.quoted, 40)!r} is said to be where {excerpt(there, 40)!r} stands"
            self.collector.count("quote differs", 1, example)
        score = None
        if mark.score is not None and answer.role != "gold":
            score = self.collector.score(mark.score, self.options.scores, where)
        return align.Span(start, end, mark.label, where, score)

    def _own_tokens(
        self, answer: Answer, unit: str, convert: Callable[[int], int | None]
    ) -> tuple[tuple[int, int], ...] | None:
        if answer.tokens is None:
            return None
        chars = []
        for token in answer.tokens:
            if token.start == token.end or (token.quoted is not None and not token.quoted.strip()):
                continue  # whatever its positions are
            start, end = convert(token.start), convert(token.end)
            if start is None or end is None:
                raise FormatError(
                    f"a token lies outside its text (counted in {unit} units)",
                    path=token.where or answer.where,
                    got=f"{token.quoted} {token.start}-{token.end}",
                )
            chars.append((start, end))
        shown = [(start, end) for start, end in chars if answer.text[start:end].strip()]
        self.collector.count("blank tokens", len(answer.tokens) - len(shown), answer.where)
        at = next((k for k, (a, b) in enumerate(pairwise([(0, 0), *chars])) if b[0] < a[1] or b[1] < b[0]), None)
        if at is not None:
            before, there = chars[max(at - 1, 0)], chars[at]
            raise FormatError(
                f"the positions of the tokens do not rise: {answer.text[there[0] : there[1]][:40]!r} at "
                f"{there[0]}-{there[1]} comes behind {answer.text[before[0] : before[1]][:40]!r} at "
                f"{before[0]}-{before[1]}",
                path=answer.where,
            )
        return tuple(shown)

    def _linked(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Give labels of documents the ids under which their texts are known, if texts are what links."""
        ids = self.links({(verdict.id, verdict.text, verdict.name) for verdict in verdicts})
        return [replace(verdict, id=ids.get(verdict.text, verdict.id)) for verdict in verdicts]

    def links(self, known: set[tuple[str, str, str]]) -> dict[str, str]:
        """Return the id of every text if texts are what links; texts under several ids are counted in any case.

        Texts link, too, where ids cannot: each is one annotator's own, and the others have its text under another.
        """
        by_text: dict[str, set[str]] = {}
        people: dict[str, set[str]] = {}
        for id, text, name in known:
            by_text.setdefault(text, set()).add(id)
            people.setdefault(id, set()).update({name} - {""})
        repeated = sorted(sorted(ids, key=natural_key) for ids in by_text.values() if len(ids) > 1)
        shared = [ids for ids in repeated if len(set().union(*(people[id] for id in ids))) == len(ids)]
        own = all(len(names) < 2 for names in people.values()) and 2 * len(shared) > len(by_text)
        linked = self.options.link == "text" or own
        if own and self.options.link != "text":
            self.collector.note("Every annotator has ids of their own: what has the same text is taken for the same.")
        if repeated:
            example = f"{repeated[0][0]} and {repeated[0][1]}"
            self.collector.count("texts joined over their ids" if linked else "repeated texts", len(repeated), example)
        if repeated and not linked:
            self.collector.note(
                f"{count(len(repeated), 'text')} under several ids: link=text makes them one (on the command line: "
                "-r link=text)."
            )
        if not linked:
            return {}
        named = {text: min(ids, key=lambda id: (natural_key(id), id)) for text, ids in by_text.items()}
        held = Counter(named.values())  # an id may stand for several texts, in files that count for themselves
        return {text: id if held[id] == 1 else text_id(text) for text, id in named.items()}

    def _link(self) -> None:
        known = {(id, entry.answer.text, entry.answer.name) for id, group in self.by_id.items() for entry in group}
        ids = self.links(known)
        if not ids:
            return
        groups = [entry for _, group in sorted(self.by_id.items()) for entry in group]
        self.by_id = {}
        for entry in groups:
            id = ids[entry.answer.text]
            self.by_id.setdefault(id, []).append(replace(entry, answer=replace(entry.answer, id=id)))

    def corpus(self) -> CrowdCorpus:
        """Tokenise every text once, turn spans into labels, and make the corpus; with layers, `Layers` of them."""
        self._refuse_tags()
        self._link()
        texts = {id: self._one_text(id, group) for id, group in self.by_id.items()}
        if self.options.overlap not in ("layers", "depth"):
            return self._corpus(texts)
        return cast(CrowdCorpus, self._layers(texts))

    def _refuse_tags(self) -> None:
        """Ask about spans that are called as tags are, B-PER and I-PER: a tag for each token, or parts of a span."""
        labels = {span.label for group in self.by_id.values() for known in group for span in known.spans or ()}
        tags = sorted(label for label in labels if label[:2] == "I-" and f"B-{label[2:]}" in labels)
        if tags and self.options.tagging == "iob2":
            raise FormatError(
                f"spans are called as tags of tokens are: B-{tags[0][2:]}, {tags[0]}",
                path=self.collector.source,
                hint="If each of them is the tag of its tokens, tagging=plain reads them so (on the command line: -r "
                "tagging=plain)",
            )

    def _layers(self, texts: Mapping[str, tuple[str, align.Chars]]) -> Layers:
        """Make a corpus of every layer: the same texts, and the spans of that layer."""
        known = [(entry, texts[id][1]) for id, group in self.by_id.items() for entry in group]
        names = align.by_layer([e.spans or [] for e, _ in known], [c for _, c in known], self.options.overlap)
        layers = sorted({name for each in names for name in each}, key=natural_key)
        if not layers:
            raise FormatError("there is no span to make layers of", path=self.collector.source)
        whole, base = self.by_id, self.collector
        made: dict[str, CrowdCorpus] = {}
        for layer in layers:
            self.by_id = {}
            for (entry, _), own in zip(known, names):
                spans = None if entry.spans is None else [s for s, n in zip(entry.spans, own) if n == layer]
                self.by_id.setdefault(entry.answer.id, []).append(replace(entry, spans=spans))
            self.collector = base.fresh()
            made[layer] = self._corpus(texts)
        self.by_id, self.collector = whole, base
        report = _report_of_all(base, [corpus.load_report for corpus in made.values()])
        return Layers({layer: replace(corpus, load_report=report) for layer, corpus in made.items()})

    def _corpus(self, texts: Mapping[str, tuple[str, align.Chars]]) -> CrowdCorpus:
        for id, group in self.by_id.items():
            text, chars = texts[id]
            if not chars:
                self.collector.count("empty texts", 1, group[0].answer.where)
                continue
            first = min(group, key=lambda known: known.answer.where).answer
            metadata = {"document": id, **first.metadata, "text": text}
            tokens = [text[start:end] for start, end in chars]
            self.collector.sequence(id, tokens, chars=chars, metadata=metadata, where=first.where)
            for name in sorted(
                {k for known in group for k, v in known.answer.metadata.items() if v != metadata.get(k)}
            ):
                self.collector.count(f"second values of {name}", 1, first.where)
            for known in group:
                self._annotate(known, text, chars)
        self._tell_single()
        return self.collector.corpus()

    def _tell_single(self) -> None:
        """Say what to do where nearly every token is a span of its own, as in part-of-speech tagging."""
        given = [label for c in self.collector.columns.values() for col in c.values() for label in col.labels]
        said = [label for label in given if label is not None]
        if len(said) > 1 and self.options.tagging == "iob2" and sum(s.startswith("B-") for s in said) > 0.9 * len(said):
            self.collector.note(
                "Nearly every token is a span of its own. If these are parts of speech, tagging=plain reads them "
                "without B- and I- (on the command line: -r tagging=plain)."
            )

    def _annotate(self, known: _Known, text: str, chars: align.Chars) -> None:
        answer, options = known.answer, self.options
        if known.spans is None:
            return
        labels: list[str | None] = list(
            align.spans_to_labels(
                known.spans,
                chars,
                text,
                partial=options.partial,
                overlap="error" if options.overlap in ("layers", "depth") else options.overlap,
                tagging=options.tagging,
                count=None if answer.again else self.collector.count,
            )
        )
        if answer.unknown:
            self.collector.count("tokens of which nothing is said", len(answer.unknown), answer.where)
            silent = [any(a < end and start < b for start, end in answer.unknown) for a, b in chars]
            labels = [None if quiet and label == "O" else label for label, quiet in zip(labels, silent)]
        self.collector.annotate(
            answer.id,
            answer.name,
            labels,
            role=answer.role,
            time=answer.time,
            where=answer.where,
            sure=_sure(known.spans, chars, labels),
        )

    def _one_text(self, id: str, group: list[_Known]) -> tuple[str, align.Chars]:
        """Return the text of an id and its one tokenisation: what most answers bring, then the finest."""
        text = group[0].answer.text
        other = next((known.answer for known in group if known.answer.text != text), None)
        if other is not None:
            raise FormatError(
                f"{excerpt(id)!r} has another text here than {elsewhere(group[0].answer.where, other.where)}",
                path=other.where,
                got=f"{excerpt(other.text, 40)!r}, there {excerpt(text, 40)!r}",
                hint="One id must stand for one text; files of different projects are linked by their texts with "
                "link=text (on the command line: -r link=text)",
            )
        own = Counter(known.tokens for known in group if known.tokens is not None)
        if not own or self.options.tokenizer is not None:
            chars = self.tokenize(text)
            if self.options.partial == "split":
                cut = align.cut_tokens(chars, (span for known in group for span in known.spans or ()), text)
                self.collector.count("tokens cut at the edges of spans", len(cut) - len(chars), group[0].answer.where)
                chars = cut
            return text, chars
        if len(own) > 1:
            self.collector.count("tokenised differently", 1, f"{group[0].answer.where}: {id}")
        most = max(own, key=lambda tokens: (own[tokens], len(tokens), tokens))
        return text, list(most)


def _quotes(answers: Iterable[Answer]) -> Iterator[align.Quote]:
    """Yield all spans, with what is quoted of them."""
    for answer in answers:
        for mark in answer.marks or ():
            yield align.Quote(answer.text, mark.start, mark.end, mark.quoted, mark.where or answer.where)


def _sure(spans: Sequence[align.Span], chars: align.Chars, labels: Sequence[str | None]) -> list[float | None] | None:
    """Return how sure an annotator was of each token's label: the score of the span it belongs to."""
    scored = [span for span in spans if span.score is not None]
    if not scored:
        return None
    sure: list[float | None] = [None] * len(chars)
    for span in scored:
        for t, ((start, end), label) in enumerate(zip(chars, labels)):
            if start < span.end and span.start < end and label is not None and label.endswith(span.label):
                sure[t] = span.score
    return sure


def _report_of_all(base: Collector, reports: Sequence[LoadReport]) -> LoadReport:
    """Return what was counted in all layers together: each has counted on from what was counted before."""
    counts: dict[str, int] = dict(base.counts)
    for report in reports:
        for kind, n in report.counts.items():
            counts[kind] = counts.get(kind, 0) + n - base.counts.get(kind, 0)
    merged = LoadReport.merged(reports)
    return replace(reports[0], counts=counts, examples=merged.examples)

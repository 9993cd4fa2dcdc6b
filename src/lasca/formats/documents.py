"""Labels of whole documents: choices, categories, classes. Each document is a sequence of one token, its text.

So every token model, comparison, report and command works on them. Readers gather what was said as `Verdict` records
beside the spans of the same files; `chosen_unit` says which of the two a file is about, `question_of` which question
is meant where a file holds answers to several.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lasca.corpus import CrowdCorpus
from lasca.errors import FormatError, ParameterError, excerpt, typed
from lasca.formats.base import Collector, elsewhere
from lasca.formats.names import PAIRS, QUOTES, plain_name

__all__ = ["DOCUMENT", "Verdict", "as_verdict", "chosen_unit", "document_corpus", "question_of", "refuse_parts"]

DOCUMENT = "document"
JOIN = " + "
ALONE = 8  # documents from which on labels that never repeat are rather written answers
FEW, MOST = 3, 0.8  # parts of texts that are no chance, and how many of those that are said must be such
PLACE = re.compile(r"[\[(]?\s*(?P<start>\d{1,9})\s*(?:[-:,;]|\.\.)\s*(?P<end>\d{1,9})\s*[\])]?")
WRITTEN = 3  # words from which on a label may be a sentence


@dataclass(frozen=True)
class Verdict:
    """What one annotator said of a whole document; `labels` are several where the question allows several."""

    id: str
    text: str
    where: str
    name: str
    labels: tuple[str, ...]
    question: str = ""
    role: str = "annotator"
    time: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    score: float | None = None
    """How sure the annotator is, where the file says so."""


def as_verdict(labels: Iterable[str]) -> str:
    """Return one label for all that were given: several are joined in the order of their names."""
    return JOIN.join(sorted(set(labels)))


def chosen_unit(unit: str, n_spans: int, verdicts: Sequence[Verdict], collector: Collector) -> str:
    """Return "document" if labels of documents are to be read, else the unit of the offsets of spans."""
    n_labels = sum(len(verdict.labels) for verdict in verdicts)
    if unit == DOCUMENT:
        if not n_labels:
            what = f"there are {n_spans:,} spans" if n_spans else "there are none, and no spans"
            raise FormatError("there are no labels of whole documents", path=collector.source, got=what)
        collector.count("spans left out", n_spans)
        return DOCUMENT
    if n_spans or not n_labels:
        collector.count("labels of whole documents left out", n_labels, verdicts[0].where if verdicts else None)
        if n_labels:
            collector.note(
                f"There are labels of whole documents as well ({_shown(verdicts)}): "
                "unit=document reads them (on the command line: -r unit=document)."
            )
        return unit
    if unit != "auto":
        raise FormatError(
            "there is no span in these files, only labels of whole documents",
            path=collector.source,
            got=_shown(verdicts),
            hint="To read them set unit=document (on the command line: -r unit=document)",
        )
    own = [verdict.labels for verdict in verdicts if verdict.labels]
    if len(own) >= ALONE and len({label for labels in own for label in labels}) > 0.8 * len({v.id for v in verdicts}):
        raise FormatError(
            "nearly every document has a label of its own: these look like written answers, not like labels",
            path=collector.source,
            got=", ".join(own[0]),
            hint="If they are labels set unit=document (on the command line: -r unit=document)",
        )
    return DOCUMENT


def question_of(verdicts: Sequence[Verdict], wanted: str | None, option: str, collector: Collector) -> str:
    """Return the question to read: the one that is named, or the only one; several are an error that lists them."""
    asked = sorted({verdict.question for verdict in verdicts})
    if wanted is not None:
        if wanted not in asked:
            raise ParameterError(option, wanted, f"one of {', '.join(map(excerpt, asked))}")
        return wanted
    if len(asked) > 1:
        raise FormatError(
            f"there are labels of documents for several questions: {_shown(verdicts)}",
            path=collector.source,
            hint=f"Name one: {option}=… (on the command line: {typed(f'{option}={asked[0]}')})",
        )
    return asked[0]


def _shown(verdicts: Sequence[Verdict]) -> str:
    counts = Counter(verdict.question or "labels" for verdict in verdicts)
    return ", ".join(f"{excerpt(name, 40)}: {n:,}" for name, n in sorted(counts.items()))


def _refuse_written(verdicts: Sequence[Verdict], collector: Collector) -> None:
    """Refuse answers that somebody wrote (translations, summaries) in the place of labels."""
    given = [label for verdict in verdicts for label in verdict.labels]
    long = [label for label in given if len(label.split()) >= WRITTEN]
    if len(long) > 1 and 2 * len(long) > len(given) and 2 * len(set(long)) > len(long):
        raise FormatError(
            "these look like written answers, not like labels",
            path=verdicts[0].where,
            got=", ".join(long[:2]),
            hint="LASCA reads labels that several documents may share",
        )


def refuse_parts(rows: Sequence[tuple[str, Mapping[str, str]]], path: str) -> None:
    """Refuse labels of whole texts where it is said beside them, differently for one text, of which part they are.

    `rows` are texts with what else is said of them: a column of words that stand in the text, or of places in it.
    """
    for name in dict.fromkeys(name for _, beside in rows for name in beside):
        said = [(beside[name], text) for text, beside in rows if beside.get(name, "").strip()]
        alike = len(said) < FEW or len(set(said)) == len({text for _, text in said})
        if alike and plain_name(name) not in (*QUOTES, *PAIRS):
            continue
        if sum(_is_part(words, text) for words, text in said) > MOST * len(said):
            raise FormatError(
                f"{name!r} says which words of the texts the labels are about: they are not those of whole texts",
                path=path,
                got=said[0][0],
                hint="Write each span in a row of its own: text, annotator, start and end (or quote, its words), label "
                f"(the format span-table); if the labels are those of whole texts, take {name!r} out",
            )


def _is_part(words: str, text: str) -> bool:
    """Say whether these are words inside of a text, or the place of such."""
    if (place := PLACE.fullmatch(words.strip())) is not None:
        start, end = int(place["start"]), int(place["end"])
        cut = any(0 < at < len(text) and text[at - 1 : at + 1].isalnum() for at in (start, end))
        return not cut and bool(text[start:end].strip())
    return words != text and words in text and any(map(str.isalpha, words))


def document_corpus(
    verdicts: Iterable[Verdict], question: str, collector: Collector, scores: str = "count"
) -> CrowdCorpus:
    """Make the corpus of one question: a sequence of one token for every document."""
    verdicts = list(verdicts)
    _refuse_written(verdicts, collector)
    refuse_parts([(v.text, v.metadata) for v in verdicts if v.labels and v.question == question], collector.source)
    for verdict in verdicts:
        if verdict.question != question:
            collector.count("labels for other questions", len(verdict.labels), f"{verdict.where}: {verdict.question}")
            continue
        known = collector.sequences.get(verdict.id)
        if not verdict.text.strip():
            collector.count("empty texts", 1, verdict.where)
            continue
        if known is not None and known.tokens != (verdict.text,):
            raise FormatError(
                f"{excerpt(verdict.id)!r} has another text here than {elsewhere(known.where, verdict.where)}",
                path=verdict.where,
                got=excerpt(verdict.text, 60),
                hint="One id must stand for one text",
            )
        metadata = {"document": verdict.id, **verdict.metadata, "text": verdict.text}
        chars = [(0, len(verdict.text))]
        for name in sorted(k for k, v in metadata.items() if known is not None and known.metadata.get(k) != v):
            collector.count(f"second values of {name}", 1, verdict.where)
        collector.sequence(verdict.id, [verdict.text], chars=chars, metadata=metadata, where=verdict.where)
        if not verdict.labels:
            collector.count("answers without any label", int(bool(verdict.name)), f"{verdict.where}: {verdict.name}")
            continue
        if len(verdict.labels) > 1:
            collector.count("several labels on one document, joined", 1, f"{verdict.where}: {verdict.labels}")
        sure = None
        if verdict.score is not None and verdict.role != "gold":
            sure = [collector.score(verdict.score, scores, verdict.where)]
        collector.annotate(
            verdict.id,
            verdict.name,
            [as_verdict(verdict.labels)],
            role=verdict.role,
            time=verdict.time,
            where=verdict.where,
            sure=sure,
        )
    about = f" for {question!r}" if question else ""
    collector.note(f"These are labels of whole documents{about}: each document is a sequence of one token, its text.")
    return collector.corpus()

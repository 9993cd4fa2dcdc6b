"""What writers of spans share: every text as a sheet, with the spans of everybody who said something of it.

With `labels` the truth speaks alone; without, every annotator and gold does.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lasca import align
from lasca.corpus import CrowdCorpus
from lasca.errors import LascaWarning, StoreError
from lasca.formats.outcome import Outcome, everybody

__all__ = ["TRUTH", "Said", "Sheet", "Voice", "library", "merged", "safe_name", "sheets_of", "shown_as", "texts_of",
           "voices_of"]  # fmt: skip

TRUTH = "lasca"
Voice = tuple[str, str]  # role ("truth", "gold", "annotator", "model") and name


@dataclass(frozen=True)
class Said:
    """A span over a text, the tokens it covers (first to last, exclusive), and how sure the truth is of it."""

    start: int
    end: int
    label: str
    first: int
    last: int
    score: float | None = None


@dataclass(frozen=True)
class Sheet:
    """One text: its id, tokens, document, and what every voice marked in it (None: nothing known)."""

    id: str
    text: str
    chars: align.Chars
    document: str
    said: Mapping[Voice, list[Said] | None]


def sheets_of(corpus: CrowdCorpus, made: Outcome) -> list[Sheet]:
    """Return a sheet for every sequence; warn of labels that are missing inside one, which spans cannot say."""
    texts = texts_of(corpus)
    voices: list[tuple[Voice, list[list[str | None]]]] = []
    if made.names is not None:
        voices.append((("truth", TRUTH), made.names))
    else:
        voices += [((role, name), rows) for role, name, rows in everybody(corpus)]
    sure = made.confidence() if made.names is not None else None
    documents = corpus.metadata.get("document")
    sheets = []
    n_silent = 0
    for s in range(corpus.n_sequences):
        text, chars = texts[s]
        start = int(corpus.offsets[s])
        said: dict[Voice, list[Said] | None] = {}
        for voice, rows in voices:
            if all(label is None for label in rows[s]):
                said[voice] = None if voice[0] != "truth" else []
                continue
            n_silent += rows[s].count(None)
            spans = []
            for span, first, last in align.label_spans(rows[s], chars):
                score = None if sure is None else round(float(sure[start + first : start + last].mean()), 6)
                spans.append(Said(span.start, span.end, span.label, first, last, score))
            said[voice] = spans
        id = corpus.sequence_ids[s]
        sheets.append(Sheet(id, text, chars, documents[s] if documents is not None and documents[s] else id, said))
    if n_silent:
        said_of = f"{n_silent:,} labels are missing inside texts that were labelled: written as nothing marked there"
        warnings.warn(LascaWarning(said_of), stacklevel=6)
    return sheets


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


def voices_of(sheets: list[Sheet]) -> list[Voice]:
    """Return everybody who says something on some sheet, in the order of the sheets."""
    return list(dict.fromkeys(voice for sheet in sheets for voice in sheet.said))


def shown_as(voice: Voice) -> str:
    """Return the name of a voice that no other one has."""
    role, name = voice
    if role == "gold":
        return name if name.lower().startswith("gold") else f"gold {name}"
    return name


def safe_name(name: str, taken: dict[str, str]) -> str:
    """Return a name for a file: letters that every system allows, and no other name's."""
    if name not in taken:
        plain = re.sub(r"[^\w.@ -]+", "_", name).strip(". ")[:100] or "_"
        while plain.lower() in {known.lower() for known in taken.values()}:
            plain += "_"
        taken[name] = plain
    return taken[name]


def merged(sheets: list[Sheet]) -> Sheet:
    """Put the sheets of all layers of one text together."""
    said: dict[Voice, list[Said] | None] = {}
    for sheet in sheets:
        for voice, spans in sheet.said.items():
            said[voice] = spans if said.get(voice) is None else [*(said[voice] or ()), *(spans or ())]
    ordered = {v: None if x is None else sorted(x, key=lambda s: (s.start, -s.end, s.label)) for v, x in said.items()}
    first = sheets[0]
    return Sheet(first.id, first.text, first.chars, first.document, ordered)


def library(name: str, extra: str) -> Any:
    """Import the package of a tool, or say which extra of LASCA installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise StoreError(f"this format needs the package {name}", hint=f"Install lasca[{extra}]") from error

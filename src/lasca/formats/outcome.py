"""What writers are given beside the corpus, brought into one form and checked: truth, probabilities, ambiguity.

For writers of spans every text is a sheet, with the spans of everybody who said something of it: with `labels` the
truth speaks alone; without, every annotator and gold does.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca import align
from lasca.corpus import CrowdCorpus
from lasca.errors import LascaWarning, ParameterError, StoreError, count
from lasca.schemes import detect_corpus, repair

__all__ = ["TRUTH", "Candidates", "Outcome", "Said", "Sheet", "Voice", "annotator_codes", "everybody",
           "library", "merged", "outcome", "safe_name", "sheets_of", "shown_as", "texts_of", "voices_of"]  # fmt: skip

Candidates = Mapping[int, Any] | Sequence[Any]
"""The competing labels of ambiguous tokens: by token, or in the order of `ambiguous`; each a mapping from label to
score, or a list of labels or of (label, score); labels by name or by code."""


@dataclass(frozen=True)
class Outcome:
    """The truth as names per sequence, and per token: probabilities, the flag, the competing labels."""

    names: list[list[str | None]] | None
    proba: npt.NDArray[np.float64] | None
    ambiguous: npt.NDArray[np.bool_] | None
    candidates: dict[int, list[tuple[str, float | None]]] | None
    codes: npt.NDArray[np.int64] | None = None

    def confidence(self) -> npt.NDArray[np.float64] | None:
        """Return the probability of the inferred label (of the one before repair, where the tag was repaired)."""
        if self.proba is None or self.codes is None or not self.proba.size:
            return None
        at = np.maximum(self.codes, 0)
        return np.where(self.codes >= 0, self.proba[np.arange(len(at)), at], self.proba.max(axis=1))


def outcome(
    corpus: CrowdCorpus,
    labels: npt.ArrayLike | None = None,
    proba: npt.ArrayLike | None = None,
    ambiguous: npt.ArrayLike | None = None,
    candidates: Candidates | None = None,
    legal: bool = False,
) -> Outcome:
    """Check what a writer was given; `legal` makes the tags of the truth legal, and warns how many were not."""
    codes = None if labels is None else _codes(corpus, labels)
    names = None if codes is None else _legal(corpus, codes) if legal else corpus.label_names(codes)
    flags, order = _flags(corpus, ambiguous, candidates)
    return Outcome(names, _proba(corpus, proba), flags, _candidates(corpus, candidates, order), codes)


def _codes(corpus: CrowdCorpus, labels: npt.ArrayLike) -> npt.NDArray[np.int64]:
    codes = np.asarray(labels)
    if codes.shape != (corpus.n_tokens,) or (codes.dtype.kind not in "iu" and codes.size):
        raise ParameterError("labels", f"{codes.dtype} {codes.shape}", f"{corpus.n_tokens} label codes, one per token")
    if codes.size and (codes.min() < -1 or codes.max() >= corpus.n_labels):
        raise ParameterError("labels", int(codes.max()), f"codes in -1..{corpus.n_labels - 1}")
    return codes.astype(np.int64)


def _legal(corpus: CrowdCorpus, codes: npt.NDArray[np.int64]) -> list[list[str | None]]:
    rows, scheme = corpus.label_names(codes), detect_corpus(corpus)
    if scheme is None:
        return rows
    fresh = [repair(row, scheme)[0] for row in rows]
    n = sum(a != b for old, new in zip(rows, fresh) for a, b in zip(old, new))
    if n:
        warnings.warn(LascaWarning(f"{n:,} of {len(codes):,} tags were made legal ({scheme})"), stacklevel=5)
    return fresh


def _proba(corpus: CrowdCorpus, proba: npt.ArrayLike | None) -> npt.NDArray[np.float64] | None:
    if proba is None:
        return None
    matrix = np.asarray(proba, dtype=np.float64)
    if matrix.shape != (corpus.n_tokens, corpus.n_labels):
        raise ParameterError("proba", matrix.shape, f"of shape ({corpus.n_tokens}, {corpus.n_labels})")
    return matrix


def _flags(
    corpus: CrowdCorpus, ambiguous: npt.ArrayLike | None, candidates: Candidates | None
) -> tuple[npt.NDArray[np.bool_] | None, list[int]]:
    """Return a flag per token, and the ambiguous tokens in the order they were given."""
    if ambiguous is None:
        if not isinstance(candidates, Mapping):
            return None, []
        ambiguous = list(candidates)
    given = np.asarray(ambiguous)
    if given.dtype == np.bool_:
        if given.shape != (corpus.n_tokens,):
            raise ParameterError("ambiguous", given.shape, f"a mask of {corpus.n_tokens} tokens, or their indices")
        return given, np.flatnonzero(given).tolist()
    if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
        raise ParameterError("ambiguous", given.dtype, "indices of tokens, or a mask")
    if given.size and (given.min() < 0 or given.max() >= corpus.n_tokens):
        raise ParameterError("ambiguous", int(given.max()), f"indices in 0..{corpus.n_tokens - 1}")
    flags = np.zeros(corpus.n_tokens, np.bool_)
    order: list[int] = given.astype(np.int64).tolist()
    flags[order] = True
    return flags, order


def _candidates(
    corpus: CrowdCorpus, candidates: Candidates | None, order: list[int]
) -> dict[int, list[tuple[str, float | None]]] | None:
    if candidates is None:
        return None
    if not isinstance(candidates, Mapping):
        if len(candidates) != len(order):
            raise ParameterError("candidates", len(candidates), f"one entry per ambiguous token ({len(order)})")
        candidates = dict(zip(order, candidates))
    return {
        int(token): [_candidate(corpus, one) for one in (given.items() if isinstance(given, Mapping) else given)]
        for token, given in candidates.items()
    }


def _candidate(corpus: CrowdCorpus, one: Any) -> tuple[str, float | None]:
    label, score = one if isinstance(one, tuple | list) and len(one) == 2 else (one, None)
    if isinstance(label, int | np.integer) and 0 <= label < corpus.n_labels:
        label = corpus.labels[int(label)]
    if not isinstance(label, str):
        raise ParameterError("candidates", label, "names or codes of labels, alone or as (label, score)")
    return str(label), None if score is None else float(score)


def annotator_codes(corpus: CrowdCorpus, annotator: int) -> npt.NDArray[np.int16]:
    """Return what one annotator gave every token, -1 where nothing."""
    mine = corpus.annotation_annotator == annotator
    codes = np.full(corpus.n_tokens, -1, np.int16)
    codes[corpus.annotation_token[mine]] = corpus.annotation_label[mine]
    return codes


def everybody(corpus: CrowdCorpus) -> list[tuple[str, str, list[list[str | None]]]]:
    """Return role, name and label names per sequence of every gold and every annotator."""
    said = [("gold", name, corpus.label_names(gold)) for name, gold in corpus.golds.items()]
    for a, (name, role) in enumerate(zip(corpus.annotators, corpus.roles)):
        said.append((role, name, corpus.label_names(annotator_codes(corpus, a))))
    return said


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
    n_silent = n_unlabelled = 0
    for s in range(corpus.n_sequences):
        text, chars = texts[s]
        start = int(corpus.offsets[s])
        said: dict[Voice, list[Said] | None] = {}
        for voice, rows in voices:
            if all(label is None for label in rows[s]):
                said[voice] = [] if voice[0] == "truth" and not rows[s] else None
                n_unlabelled += voice[0] == "truth" and bool(rows[s])
                continue
            n_silent += rows[s].count(None)
            spans = []
            for span, first, last in align.label_spans(rows[s], chars):
                score = None if sure is None else round(float(sure[start + first : start + last].mean()), 6)
                spans.append(Said(span.start, span.end, span.label, first, last, score))
            said[voice] = spans
        id = corpus.sequence_ids[s]
        sheets.append(Sheet(id, text, chars, documents[s] if documents is not None and documents[s] else id, said))
    if n_unlabelled:
        unlabelled = count(n_unlabelled, "text")
        said_of = f"{unlabelled} without a label that could be written: left out, or written without any mark"
        warnings.warn(LascaWarning(said_of), stacklevel=6)
    if n_silent:
        said_of = f"{count(n_silent, 'missing label')} inside texts that were labelled: written as nothing marked there"
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

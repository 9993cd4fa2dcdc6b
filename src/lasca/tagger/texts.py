"""From plain text to spans with character offsets: tokens, labels, and back to where they stand in the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lasca import schemes
from lasca.align.tokenise import Tokenizer, tokenizer_of

__all__ = ["TaggedText", "label_spans", "tag_texts"]


@dataclass(frozen=True)
class TaggedText:
    """A text with what a tagger found in it."""

    text: str
    spans: tuple[tuple[int, int, str, float], ...]
    """(start, end, label, probability): code points, half-open; the probability is that of the least sure token."""

    def to_dict(self) -> dict[str, Any]:
        """Return the text and its spans as JSON has them."""
        keys = ("start", "end", "label", "probability")
        return {"text": self.text, "spans": [dict(zip(keys, (*span[:3], round(span[3], 4)))) for span in self.spans]}


def tag_texts(
    tagger: Any, texts: Iterable[str], *, tokenizer: str | Tokenizer | None = None, batch: int = 500
) -> Iterator[TaggedText]:
    """Tag texts one by one as they come, a batch at a time; each line of a text is a sequence of its own.

    `tokenizer` is "punctuation" (the default), "whitespace", "characters" or a function; it should cut text as the
    tokens were cut that the tagger learned from. Labels without a tag scheme (parts of speech) give a span per token.
    """
    cut = tokenizer_of(tokenizer)
    feed = iter(texts)
    while part := list(islice(feed, batch)):
        places = [_places(text, cut) for text in part]
        sentences = [[text[a:b] for a, b in row] for text, rows in zip(part, places) for row in rows]
        labels, proba = iter(tagger.predict(sentences)), iter(tagger.predict_proba(sentences))
        column = {name: i for i, name in enumerate(tagger.labels)}
        typed = schemes.detect(tagger.labels) is not None
        for text, rows in zip(part, places):
            spans: list[tuple[int, int, str, float]] = []
            for row in rows:
                names, chances = next(labels), next(proba)
                sure = [float(p[column[name]]) for name, p in zip(names, chances)]
                for first, last, name in label_spans(names, typed):
                    spans.append((row[first][0], row[last - 1][1], name, min(sure[first:last])))
            yield TaggedText(text, tuple(spans))


def label_spans(names: list[str], typed: bool) -> list[tuple[int, int, str]]:
    """Return (first, behind the last, label) of spans of tokens; without a scheme every token is one."""
    if typed:
        return [(first, last, name) for first, last, name in schemes.spans(names)]
    return [(i, i + 1, name) for i, name in enumerate(names)]


def _places(text: str, cut: Any) -> list[list[tuple[int, int]]]:
    """Return where the tokens of each line of a text stand; lines without any are left out."""
    rows: list[list[tuple[int, int]]] = []
    at = 0
    for line in text.splitlines(keepends=True):
        row = [(at + start, at + end) for start, end in cut(line)]
        if row:
            rows.append(row)
        at += len(line)
    return rows

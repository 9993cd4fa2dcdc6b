"""Taggers at work: plain text to spans with character offsets, and scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

from lasca import evaluate, schemes
from lasca.align.tokenise import Chars, Tokenizer, tokenizer_of
from lasca.corpus import CrowdCorpus
from lasca.errors import ModelError
from lasca.estimator import Estimator
from lasca.tagger.base import Tagger
from lasca.tagger.crf_tagger import CrfTagger

__all__ = ["SequenceTagger", "TaggedText", "label_spans", "tag_texts"]


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

    Taggers that read context read neighbouring lines of a text together.

    `tokenizer` is "punctuation", "whitespace", "characters" or a function; it should cut text as the tokens were cut
    that the tagger learned from. Without it text is cut by punctuation, but what the tagger knows as one word – U.S.,
    Corp., O'Brien – stays one. Labels without a tag scheme (parts of speech) give a span per token.
    """
    cut = tokenizer_of(tokenizer) if tokenizer is not None else _as_learned(tagger.known_words)
    feed = iter(texts)
    while part := list(islice(feed, batch)):
        places = [_places(text, cut) for text in part]
        sentences = [[text[a:b] for a, b in row] for text, rows in zip(part, places) for row in rows]
        more = tagger.told_of([number for number, rows in enumerate(places) for _ in rows])
        labels = iter(tagger.predict(sentences, **more))
        proba = iter(tagger.predict_proba(sentences, **more))
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


def _as_learned(words: Iterable[str]) -> Callable[[str], Chars]:
    """Return a tokeniser that cuts by punctuation, but leaves known words whole; the longest one wins."""
    plain = tokenizer_of("punctuation")
    whole = {word for word in words if not word.isalnum() and len(plain(word)) > 1}
    longest: dict[str, int] = {}
    for word in whole:
        pieces = plain(word)
        first = word[slice(*pieces[0])]
        longest[first] = max(longest.get(first, 0), len(pieces))

    def cut(text: str) -> Chars:
        pieces, out, at = plain(text), [], 0
        while at < len(pieces):
            start, end = pieces[at]
            size = 1
            for n in range(min(longest.get(text[start:end], 1), len(pieces) - at), 1, -1):
                if text[start : pieces[at + n - 1][1]] in whole:
                    size, end = n, pieces[at + n - 1][1]
                    break
            out.append((start, end))
            at += size
        return out

    return cut


def label_spans(names: list[str], typed: bool) -> list[tuple[int, int, str]]:
    """Return (first, behind the last, label) of spans of tokens; without a scheme every token is one."""
    return schemes.spans(names) if typed else [(i, i + 1, name) for i, name in enumerate(names)]


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


class SequenceTagger(Estimator):
    """A tagger that scikit-learn's cross-validation and searches accept: `fit(X, y)`, `predict(X)`, `score(X, y)`.

    X is a list of token lists, y a list of label lists (None where a label is unknown).

    Parameters:
        tagger: the tagger to use, as a recipe: it is copied, never fitted itself. None is CrfTagger(). Its parameters
            are reached as `tagger__NAME`.
    """

    def __init__(self, tagger: Tagger | None = None) -> None:
        self.tagger = tagger

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; those of the tagger as `tagger__NAME`."""
        own: dict[str, Any] = {"tagger": self.tagger}
        if deep and self.tagger is not None:
            own |= {f"tagger__{name}": value for name, value in self.tagger.get_params().items()}
        return own

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name; a parameter of the tagger changes a copy of it."""
        inner = {k.removeprefix("tagger__"): v for k, v in params.items() if k.startswith("tagger__")}
        super().set_params(**{k: v for k, v in params.items() if not k.startswith("tagger__")})
        if inner:
            self.tagger = self._copy().set_params(**inner)
        return self

    def _copy(self) -> Tagger:
        recipe = CrfTagger() if self.tagger is None else self.tagger
        return type(recipe)(**recipe.get_params())

    def fit(self, X: Sequence[Sequence[str]], y: Sequence[Sequence[str | None]]) -> Self:
        """Learn from sentences and their labels."""
        if len(X) != len(y):
            raise ModelError(f"{len(X)} sentences need as many label lists", got=len(y))
        corpus = CrowdCorpus.from_sequences([list(s) for s in X], {}, golds={"y": [list(row) for row in y]})
        self.tagger_ = self._copy().fit(corpus, "y")
        self.classes_ = self.tagger_.labels
        return self

    def _fitted(self) -> Tagger:
        if not hasattr(self, "tagger_"):
            raise ModelError("the tagger is not fitted", hint="Call fit")
        return self.tagger_

    def predict(self, X: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the labels of sentences."""
        return self._fitted().predict(X)

    def predict_proba(self, X: Sequence[Sequence[str]]) -> list[Any]:
        """Return the probabilities of labels, an array (tokens, labels) per sentence; columns as `classes_`."""
        return self._fitted().predict_proba(X)

    def score(self, X: Sequence[Sequence[str]], y: Sequence[Sequence[str | None]]) -> float:
        """Return span F1 where the labels have a tag scheme, else the share of right tokens."""
        found = self.predict(X)
        names = {name for row in y for name in row if name is not None}
        gold: list[list[Any]] = [list(row) for row in y]
        if schemes.detect(sorted(names)) is not None:
            return float(evaluate.spans(gold, found, mode="lenient").f1)
        return float(evaluate.tokens(gold, found).accuracy)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what kind of estimator this is: neither classifier nor regressor."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=True))

"""Text models in truth inference: a protocol, and cross-fitting, which lives outside of it.

A text model looks at a corpus once (`prepare`); then, as often as truth inference asks, it learns from the labels'
probabilities of some sequences and says what it thinks of others. It never knows of folds or of the crowd.

Documents (sequences, where there are no documents) are dealt to folds; a fold is tagged by a model trained on the other
folds, so that no text model has seen the crowd's labels of what it votes on.

The built-in one is the CRF (`crf_text`). Any tagger is one too: what has `fit_targets` and `predict_proba` is wrapped.
Packages bring theirs by entry points of the group `lasca.text_models`, taggers or classes with `prepare`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lasca.arrays import Ints, Proba, borders, ranges
from lasca.corpus import CrowdCorpus
from lasca.defaults import BUILT_IN_TAGGERS
from lasca.engine import Engine
from lasca.errors import ModelError, ParameterError
from lasca.plugins import Registry, load_object

__all__ = [
    "TEXT_MODELS", "CrossFit", "TextModel", "TextTask", "checksums", "deal", "probabilities", "text_model", "trained",
]  # fmt: skip


class TextTask(Protocol):
    """A corpus as a text model sees it; it may be sent to other processes, and so may what it learns."""

    def fit(self, targets: Proba, sequences: Ints, before: Any = None) -> Any:
        """Learn from the labels' probabilities (n_tokens, T) of some sequences; return what was learned.

        `before` is what was learned from the same sequences and older probabilities, None the first time.
        """

    def predict(self, learned: Any, sequences: Ints, out: Proba) -> None:
        """Write the labels' probabilities of the tokens of some sequences to their rows of `out` (n_tokens, T)."""

    # A task may have `hearing(said)` as well: itself, told what text models said of all tokens, (n_tokens, T), each of
    # them out of fold. What was learned without it goes on from there.

    @property
    def elsewhere(self) -> Callable[[CrowdCorpus, Ints], TextTask]:
        """What makes a task of another text and the documents of its sequences, in which what is learned here can
        predict. It may be sent to other processes. (A text model without it hears no large corpora.)
        """


class TextModel(Protocol):
    """Anything that can learn labels from text."""

    def prepare(self, corpus: CrowdCorpus, n_threads: int | None = None) -> TextTask:
        """Look at the text of a corpus; nobody's labels may be looked at."""


# --- taggers as text models -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaggerText:
    """A tagger as a text model: a recipe, copied for every fold."""

    tagger: Any

    def prepare(self, corpus: CrowdCorpus, n_threads: int | None = None) -> TaggerTask:
        """Take the sentences."""
        return TaggerTask(self.tagger, corpus, corpus.documents)


@dataclass(frozen=True)
class TaggerTask:
    """The sentences of a corpus; their documents are told to a tagger with `context`, which reads neighbours."""

    tagger: Any
    corpus: CrowdCorpus
    documents: Ints

    def fit(self, targets: Proba, sequences: Ints, before: Any = None) -> Any:
        """Fit a new tagger: to probabilities if it takes them (`soft`), else to the most probable labels."""
        rows = _tokens_of(self.corpus, sequences)
        sentences = [self.corpus.sequence(int(s)) for s in sequences]
        offsets = borders([len(sentence) for sentence in sentences])
        given = targets[rows] if self.tagger.soft else targets[rows].argmax(axis=1)
        tagger = type(self.tagger)(**self.tagger.get_params())
        words = [word for sentence in sentences for word in sentence]
        return tagger.fit_targets(words, offsets, given, self.corpus.labels, **self._documents(sequences))

    def predict(self, learned: Any, sequences: Ints, out: Proba) -> None:
        """Write the tagger's probabilities."""
        if len(sequences):
            sentences = [self.corpus.sequence(int(s)) for s in sequences]
            said = learned.predict_proba(sentences, **self._documents(sequences))
            got, needed = [np.shape(rows) for rows in said], [(len(words), out.shape[1]) for words in sentences]
            if got != needed:
                what = f"predict_proba of {_name(self)} must give an array (tokens, labels) for each sentence"
                raise ModelError(what, got=", ".join(map(str, got[:3])), hint=f"Here: {needed[0]}, …")
            out[_tokens_of(self.corpus, sequences)] = np.concatenate(said)

    def _documents(self, sequences: Ints) -> dict[str, Ints]:
        return {"documents": self.documents[sequences]} if getattr(self.tagger, "context", 0) else {}

    @property
    def elsewhere(self) -> Callable[[CrowdCorpus, Ints], TaggerTask]:
        """A tagger reads any text."""
        return partial(TaggerTask, self.tagger)


def _tokens_of(corpus: CrowdCorpus, sequences: Ints) -> Ints:
    return ranges(corpus.offsets[sequences], corpus.offsets[sequences + 1])


def probabilities(task: TextTask, out: Proba) -> Proba:
    """Return what a text model said of all tokens, if that are probabilities: else nobody would see it go unheard."""
    with np.errstate(invalid="ignore"):
        wrong = ~((out.min(axis=1, initial=0) >= 0) & (np.abs(out.sum(axis=1) - 1) < 1e-3))
    if wrong.any():
        what = f"what the text model {_name(task)} says of a token must be at least 0 and add up to 1"
        raise ModelError(what, got=str(out[wrong.argmax()].tolist()))
    return out


def _name(task: TextTask) -> str:
    return type(getattr(task, "tagger", task)).__name__


# --- by name --------------------------------------------------------------------------------------------------------


def _plugin(name: str, reference: str) -> str:
    """Check the text model of a plug-in."""
    found = load_object(reference)
    if not hasattr(found, "prepare") and not _is_tagger(found):
        raise TypeError(f"{reference} has neither `prepare` nor `fit_targets` and `predict_proba`")
    return reference


def _is_tagger(found: Any) -> bool:
    return hasattr(found, "fit_targets") and hasattr(found, "predict_proba")


TEXT_MODELS: Registry[str] = Registry(
    "lasca.text_models",
    {**BUILT_IN_TAGGERS, "crf": "lasca.truth.crf_text:CrfText"},
    _plugin,
    "text model",
)


def text_model(value: Any, **crf: Any) -> TextModel | None:
    """Return the text model that a parameter `text` stands for; None: no text.

    True and "crf" are the CRF with the settings `crf`; another name is that of a registered text model or tagger with
    its defaults; an object is a text model, or a tagger, itself.
    """
    if value is False:
        return None
    name = "crf" if value is True else value
    if isinstance(name, str):
        try:
            made = load_object(TEXT_MODELS[name])
        except KeyError:
            allowed = "True, False, a text model, or one of " + ", ".join(TEXT_MODELS)
            raise ParameterError("text", value, allowed) from None
        name = made(**crf) if name == "crf" else made()
    if hasattr(name, "prepare"):
        found: TextModel = name
        return found
    if _is_tagger(name):
        return TaggerText(name)
    raise ParameterError("text", value, "True, False, a text model or its name")


# --- cross-fitting --------------------------------------------------------------------------------------------------


def checksums(corpus: CrowdCorpus, documents: Ints, salt: int) -> Ints:
    """Return a checksum of the text of each document."""
    sums = [salt] * (int(documents.max()) + 1)
    for sequence, document in enumerate(documents.tolist()):
        words = "\n".join([*corpus.sequence(sequence), ""])
        sums[document] = zlib.crc32(words.encode("utf-8", "surrogatepass"), sums[document])
    return np.array(sums, np.int64)


def deal(corpus: CrowdCorpus, documents: Ints, folds: int, salt: int = 0) -> Ints:
    """Return the fold of each sequence: documents ordered by a checksum of their text, whatever order they come in."""
    sums = checksums(corpus, documents, salt)
    rank = np.empty(len(sums), dtype=np.int64)
    rank[np.argsort(sums, kind="stable")] = np.arange(len(sums))
    return np.asarray((rank % folds)[documents])


class CrossFit:
    """Out-of-fold text models over a corpus; each call goes on from what the call before learned.

    If they are `told`, and can hear it (`hearing`), they know what they said out of fold the call before: a word's
    attributes then tell what was said of it elsewhere.
    """

    def __init__(
        self,
        corpus: CrowdCorpus,
        model: TextModel,
        rng: np.random.Generator,
        *,
        folds: int,
        told: bool = False,
        n_threads: int | None = None,
    ) -> None:
        documents = corpus.documents
        self.n_folds = min(folds, int(documents.max()) + 1)
        self.fold = deal(corpus, documents, self.n_folds, int(rng.integers(1 << 32)))
        self.trained = corpus.annotated_sequences
        self.task = model.prepare(corpus, n_threads)
        self.learned: list[Any] = [None] * self.n_folds
        self.hearing: Callable[[Proba], TextTask] | None = getattr(self.task, "hearing", None) if told else None
        self.said: Proba | None = None

    @property
    def possible(self) -> bool:
        """Whether there are two folds at least with something to learn from."""
        return len(np.unique(self.fold[self.trained])) > 1

    def __call__(self, proba: npt.NDArray[np.floating], engine: Engine | None = None) -> Proba:
        """Train on label probabilities, each fold's model on the other folds; return what each says of its own."""
        targets = np.ascontiguousarray(proba, dtype=np.float32)
        out = np.zeros_like(targets)
        others = [np.flatnonzero((self.fold != k) & self.trained) for k in range(self.n_folds)]
        task = self.task if self.hearing is None or self.said is None else self.hearing(self.said)
        self.learned = trained(task, targets, others, self.learned, engine)
        for k, learned in enumerate(self.learned):
            task.predict(learned, np.flatnonzero(self.fold == k), out)
        self.said = out
        return probabilities(task, out)


@dataclass(frozen=True)
class Fold:
    """What a fold's model learns from, and goes on from: a block of work for an engine."""

    sequences: Ints
    before: Any

    def load(self) -> Fold:
        """Return it: it is in memory."""
        return self


def trained(task: TextTask, targets: Proba, others: list[Ints], before: list[Any], engine: Engine | None) -> list[Any]:
    """Train each fold's model on the sequences of the other folds: one after the other, or on an engine's workers.

    What was learned `before` is let go of as soon as its fold has gone on from it.
    """
    if engine is None:
        for k, sequences in enumerate(others):
            before[k] = task.fit(targets, sequences, before[k])
        return before
    with closing(engine.open(None, [Fold(*pair) for pair in zip(others, before)])) as work:
        return work.map(_trained, (task, targets))


def _trained(given: tuple[TextTask, Proba], fold: Fold) -> Any:
    task, targets = given
    return task.fit(targets, fold.sequences, fold.before)

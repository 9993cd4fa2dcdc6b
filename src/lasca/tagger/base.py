"""What all taggers share: the way from a corpus and a truth to examples, and from a saved folder to a tagger."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from lasca.arrays import Array
from lasca.corpus import need_corpus
from lasca.defaults import BUILT_IN_TAGGERS
from lasca.errors import ModelError, ParameterError, StoreError
from lasca.estimator import Estimator, Progress, check_int, check_number
from lasca.plugins import Registry, checked_class, load_object
from lasca.tagger import prepare

if TYPE_CHECKING:
    from lasca.corpus import CrowdCorpus

__all__ = ["TAGGERS", "Examples", "Tagger", "load_tagger", "tagger_class"]

_SURE = 0.9  # labels of its own that a tagger learns from are this probable; a guess, nothing was measured


def _plugin(name: str, reference: str) -> str | None:
    """Check the tagger of a plug-in; a text model that is no tagger is for truth models alone."""
    found = load_object(reference)
    if hasattr(found, "prepare") and not hasattr(found, "predict_proba"):
        return None
    checked_class(reference, Tagger, "kind", name)
    if missing := [x for x in ("_learn", "save", "load") if getattr(found, x, None) is getattr(Tagger, x, None)]:
        raise TypeError(f"{reference} has no {', '.join(missing)}")  # now, and not after it was trained
    return reference


TAGGERS: Registry[str] = Registry("lasca.text_models", BUILT_IN_TAGGERS, _plugin, "text model")
"""The kinds of taggers, and where they live; other packages add theirs by the entry points `lasca.text_models`."""


def tagger_class(kind: str) -> type[Tagger]:
    """Return the class of a kind of tagger."""
    try:
        reference = TAGGERS[kind]
    except KeyError:
        raise ParameterError("kind", kind, "one of " + ", ".join(TAGGERS)) from None
    if ".neural." in reference:
        need_torch(*(("transformers", "tokenizers") if kind == "transformer" else ()))
    found: type[Tagger] = load_object(reference)
    return found


@dataclass(frozen=True, eq=False)
class Examples:
    """What a tagger learns from: sequences of tokens, each with a target over the labels that occur."""

    tokens: list[str]
    offsets: Array
    targets: Array
    """Over the active labels: hard labels (−1 = unknown), bool (n_tokens, n) of allowed labels, or distributions."""
    labels: tuple[str, ...]
    """All labels, those that never occur included: the columns of `predict_proba`."""
    active: Array
    """Which labels occur."""
    weights: Array | None = None
    """One weight per sequence."""
    votes: prepare.VoteScore | None = None
    """How well probabilities foretell the votes on these tokens; None where there are none."""
    paths: prepare.Paths | None = None
    """Weighted label sequences to learn from instead of one target per token."""
    unlabelled: Sequence[Sequence[str]] = ()
    """Sentences without any label."""
    borders: Array | None = None
    """Where the blocks of a large corpus end, in sequences (`lasca.crf.training`); None: all of it is one block."""
    documents: Array | None = None
    """The document of each sequence; None where nothing is known of that."""

    @property
    def n_sequences(self) -> int:
        """The number of sequences."""
        return len(self.offsets) - 1


class Tagger(Estimator):
    """The base of taggers: `fit` on a corpus and a truth, or `fit_targets` on plain arrays."""

    kind = ""
    reads_unlabelled = False
    """Whether `_learn` makes something of unlabelled sentences; other taggers learn from their own labels there."""
    reads_context = False
    """Whether it makes something of the documents that sentences are from; only then `predict` is told of them."""
    soft: bool = False
    paths: int = 0
    certain: float = 0.0
    _model: Any = None

    def fit(
        self,
        corpus: CrowdCorpus,
        truth: Any,
        *,
        unlabelled: Sequence[Sequence[str]] = (),
        sequence_weights: Array | str | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit to the labels of a Truth, or to the gold of that name; tokens without a label are summed over.

        `unlabelled` are sentences, lists of tokens, to learn from as well: by self-training – the tagger labels them,
        and learns again, also from those of its labels that it is sure of – or, in HmmTagger, by EM.
        `sequence_weights` are numbers, or "certainty": the geometric mean of the probabilities of a sequence's labels.
        `progress` is called with the share done (a guess) and words on the objective and the time left.
        """
        need_corpus(corpus, "the tagger's fit")
        self._check()
        self._check_crowd(truth)
        if isinstance(unlabelled, str) or any(isinstance(sentence, str) for sentence in unlabelled):
            raise ParameterError("unlabelled", unlabelled, "a list of sentences, each a list of tokens")
        unlabelled = [sentence for sentence in unlabelled if len(sentence)]
        codes = prepare.targets_of(corpus, truth, soft=False)
        if self.certain:
            codes = np.where(truth.proba[np.arange(len(codes)), codes] >= self.certain, codes, np.int16(-1))
        used = prepare.labelled_sequences(codes, corpus.offsets)
        if not used.any():
            raise ModelError("there is no labelled sequence to learn from", hint="Give a gold or truth with labels")
        tokens, offsets, rows = prepare.chosen_tokens(corpus.tokens, corpus.offsets, used)
        given = prepare.targets_of(corpus, truth, soft=True) if self.soft else codes
        targets, active = prepare.active_labels(given[rows], len(corpus.labels))
        weights = None
        if isinstance(sequence_weights, str):
            weights = _certainty(truth, corpus.offsets, sequence_weights)[used]
        elif sequence_weights is not None:
            weights = prepare.chosen_weights(sequence_weights, used)
        votes = None if isinstance(truth, str) else prepare.vote_score_of(corpus, truth, rows)
        paths = None
        if self.paths:
            rule = prepare.scheme_constraint([corpus.labels[a] for a in active], targets, offsets)
            share = np.asarray(truth.proba)[rows][:, active]
            paths = prepare.weighted_paths(share, targets, offsets, self.paths, rule)
        names = tuple(corpus.labels)
        borders = prepare.block_borders(corpus, used)
        texts = corpus.documents[used]
        examples = Examples(tokens, offsets, targets, names, active, weights, votes, paths, unlabelled, borders, texts)
        self._learn(examples, progress)
        if unlabelled and not self.reads_unlabelled:
            self._learn(self._with_own_labels(examples), progress)
        return self

    def _with_own_labels(self, examples: Examples) -> Examples:
        """Return the examples with the unlabelled sentences behind them, as the tagger sees these."""
        more = [list(sentence) for sentence in examples.unlabelled]
        proba = np.concatenate(self.predict_proba(more))[:, examples.active]
        code = {examples.labels[a]: k for k, a in enumerate(examples.active.tolist())}
        labels = np.array([code[name] for row in self.predict(more) for name in row], dtype=np.int16)
        labels[proba[np.arange(len(labels)), labels] < _SURE] = -1
        ends = np.cumsum([len(sentence) for sentence in more])
        found = proba.astype(examples.targets.dtype) if examples.targets.ndim == 2 else labels
        weights, paths, texts = examples.weights, examples.paths, examples.documents
        return replace(
            examples,
            tokens=[*examples.tokens, *(token for sentence in more for token in sentence)],
            offsets=np.concatenate([examples.offsets, examples.offsets[-1] + ends]),
            targets=np.concatenate([examples.targets, found]),
            weights=None if weights is None else np.concatenate([weights, np.ones(len(more))]),
            paths=None if paths is None else paths.followed_by(labels, ends),
            borders=None,
            documents=None if texts is None else np.append(texts, texts.max() + 1 + np.arange(len(more))),
        )

    def _check_crowd(self, truth: Any) -> None:
        """Check the parameters about learning from a crowd."""
        check_int("paths", self.paths, low=0, high=50)
        check_number("certain", self.certain, low=0.0, high=1.0)
        if self.soft and (self.paths or self.certain):
            raise ParameterError(
                "soft", self.soft, "False with paths or certain: they are other ways to use probabilities"
            )
        if isinstance(truth, str) and (self.paths or self.certain):
            raise ParameterError("truth", truth, "a Truth for paths and certain: a gold has no probabilities")

    def fit_targets(
        self,
        tokens: Sequence[str],
        offsets: Array,
        targets: Array,
        labels: Sequence[str],
        *,
        sequence_weights: Array | None = None,
        documents: Array | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit to plain arrays: what a text model of a truth model wants.

        Sequence s has tokens offsets[s] to offsets[s + 1]. `targets` are labels per token (−1 = unknown), or
        probabilities (n_tokens, n_labels); sequences without any known label are left out. `documents` says from which
        document each sequence is, to taggers that read neighbours together.
        """
        self._check()
        given, ends = np.asarray(targets), np.asarray(offsets, dtype=np.int64)
        if len(given) != len(tokens) or len(ends) < 1 or ends[-1] != len(tokens):
            raise ModelError(f"{len(tokens)} tokens need as many targets", got=f"{len(given)}, offsets to {ends[-1:]}")
        used = prepare.labelled_sequences(given, ends)
        if not used.any():
            raise ModelError("there is no labelled sequence to learn from", hint="Give targets with labels")
        kept, inside, rows = prepare.chosen_tokens(tokens, ends, used)
        found, active = prepare.active_labels(given[rows], len(labels))
        weights = None if sequence_weights is None else prepare.chosen_weights(sequence_weights, used)
        texts = None if documents is None else np.asarray(documents)[used]
        self._learn(Examples(kept, inside, found, tuple(labels), active, weights, documents=texts), progress)
        return self

    def _check(self) -> None:
        """Check the parameters; those that are declared are checked by their declarations."""
        self.checked()

    def _learn(self, examples: Examples, progress: Progress | None) -> None:
        """Fit to examples."""
        raise NotImplementedError

    def _best(self, tokens: list[str], offsets: Array) -> Array:
        """Return the best labels of the tokens of some sentences, as numbers of active labels."""
        raise NotImplementedError

    def _marginals(self, tokens: list[str], offsets: Array) -> Array:
        """Return the probabilities of the active labels of the tokens of some sentences."""
        raise NotImplementedError

    def _fitted(self) -> Any:
        """Return what was learned; it knows all `labels`, and which of them are `active`."""
        if self._model is None:
            raise ModelError("the tagger is not fitted", hint="Call fit, or load a saved tagger")
        return self._model

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the corpus the tagger was fitted to: the columns of `predict_proba`."""
        return tuple(self._fitted().labels)

    @property
    def known_words(self) -> Collection[str]:
        """The words it has seen in training, as they were written; empty where it has kept none."""
        return ()

    def predict(
        self, sentences: Sequence[Sequence[str]], *, documents: Sequence[int | str] | Array | None = None
    ) -> list[list[str]]:
        """Return the best labels of each sentence, a list of tokens each.

        `documents` says from which document each sentence is: taggers that read a sentence in its context
        (TransformerTagger) read neighbours of one document together; to the others it is nothing.
        """
        model = self._fitted()
        names = [model.labels[a] for a in model.active]
        out: list[list[str]] = []
        for block in self._blocks(sentences, documents):
            flat = [names[c] for c in self._best(*block).tolist()]
            out.extend(flat[a:b] for a, b in pairwise(block[1].tolist()))
        return out

    def told_of(self, documents: Any) -> dict[str, Any]:
        """Return what `predict` takes beside sentences: their documents, if this tagger reads them."""
        return {"documents": documents} if self.reads_context else {}

    def _blocks(self, sentences: Sequence[Sequence[str]], documents: Any) -> Iterator[tuple[Any, ...]]:
        """Give tokens and offsets of blocks of sentences, and their documents to a tagger that reads them."""
        if documents is not None and len(documents) != len(sentences):
            raise ParameterError("documents", len(documents), f"{len(sentences)}, one per sentence")
        done = 0
        for tokens, offsets in prepare.blocks_of(sentences):
            n = len(offsets) - 1
            if documents is not None and self.reads_context:
                yield tokens, offsets, np.asarray(documents[done : done + n])
            else:
                yield tokens, offsets
            done += n

    def predict_proba(
        self, sentences: Sequence[Sequence[str]], *, documents: Sequence[int | str] | Array | None = None
    ) -> list[Array]:
        """Return the probability of each label at each token, an array (tokens, labels) per sentence.

        Columns are those of `labels`; a label that was never seen in training has probability 0. These are the
        model's marginals: those of CRFs know nothing of the tag scheme. `documents` as in `predict`.
        """
        model = self._fitted()
        out: list[Array] = []
        for block in self._blocks(sentences, documents):
            tokens, offsets = block[:2]
            full = np.zeros((len(tokens), len(model.labels)), dtype=np.float32)
            full[:, model.active] = self._marginals(*block)
            out.extend(np.split(full, offsets[1:-1]) if len(offsets) > 1 else [])
        return out

    @property
    def trace(self) -> tuple[float, ...]:
        """The objective after each iteration, for those that have one."""
        return ()

    def save(self, path: str | Path, *, overwrite: bool = False, card: str | None = None) -> None:
        """Write the tagger into a folder with a tagger.json that names its `kind`; `load` reads it back.

        `card` is the text of model-card.md there.
        """
        raise NotImplementedError

    def _plain(self, elsewhere: Sequence[str] = ()) -> dict[str, Any]:
        """Return the parameters that JSON can keep; what else there is lives in the fitted model."""
        plain = (bool, int, float, str, type(None))
        return {k: v for k, v in self.get_params().items() if isinstance(v, plain) and k not in elsewhere}


def _certainty(truth: Any, offsets: Array, asked: str) -> Array:
    """Return the geometric mean of the probabilities of each sequence's labels; 1 for empty sequences."""
    if asked != "certainty" or isinstance(truth, str):
        raise ParameterError("sequence_weights", asked, "numbers, or 'certainty' with a Truth")
    logs = np.log(np.maximum(np.asarray(truth.proba)[np.arange(len(truth.labels)), truth.labels], 1e-6))
    before = np.concatenate([[0.0], np.cumsum(logs)])
    return np.asarray(np.exp((before[offsets[1:]] - before[offsets[:-1]]) / np.maximum(np.diff(offsets), 1)))


def load_tagger(path: str | Path) -> Any:
    """Read a tagger of any kind that `save` wrote. Nothing in the folder can run code."""
    file = Path(path) / "tagger.json"
    try:
        kind = json.loads(file.read_text(encoding="utf-8")).get("kind", "crf")
    except (OSError, ValueError, AttributeError):
        kind = "crf"  # whose loader says what is wrong with the folder
    if kind not in TAGGERS:
        raise StoreError("the folder holds a kind of tagger that this version does not know", where=str(path), got=kind)
    found: Any = tagger_class(kind)
    return found.load(path)


def need_torch(*modules: str) -> None:
    """Say what to install where torch is missing."""
    for module in ("torch", *modules):
        try:
            import_module(module)
        except ImportError as error:
            raise ParameterError(
                "the tagger", module, "used where torch is installed: pip install 'lasca[torch]'"
            ) from error

"""HmmTagger: a hidden Markov model that hears features of the text, and is able to learn from text without labels.

States follow each other as a Markov chain and say tokens: p(z, x) = p(z_1) Π p(z_k | z_{k−1}) Π p(x_k | z_k). A state
is a label or, in a tag scheme, a label with or without a border behind it (`hmm_states`). Nothing is learned jointly:

- moves are counted (`hmm_words`);
- words speak in two ways: by counts, p(w | t) (`hmm_words`), and by a logistic regression over features,
  p(t | x) / p(t) (`hmm_regression`). Both are guesses of the same thing, with mistakes of their own: p(x | t) is their
  geometric mean, with the shares λ (`words`) and 1 − λ. In a tag scheme the features are of neighbours, too; elsewhere
  the chain knows enough of them.

Tokens without a label, and sentences given as `unlabelled`, are counted by EM: their expected states under the current
counts, times `weight`; the labelled ones stay as they are, and so does the regression. `trace` holds the log likelihood
of the sequences they are in, up to a constant. What EM finds likely need not be what the labels mean: with many labels
it often hurts (Merialdo 1994), so `weight` is small by default.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from lasca import schemes
from lasca.arrays import Array, borders, followers
from lasca.crf.decode import Constraint
from lasca.crf.extract import Extractor
from lasca.errors import ModelError, StoreError
from lasca.estimator import Progress, flag, number, other, whole
from lasca.files import whole_folder
from lasca.kernels import lattice
from lasca.tagger.base import Examples, Tagger
from lasca.tagger.hmm_regression import Regression, learn
from lasca.tagger.hmm_states import States
from lasca.tagger.hmm_words import Counts, Smoothing, count
from lasca.tagger.prepare import scheme_constraint
from lasca.tagger.store import VERSION, labels_of, load_weights, opened, save_weights, write_card

__all__ = ["HmmTagger"]

TEMPERED = 0.6
"""The power of probabilities: neighbours hear the same words, so what the model says of a token it says too often."""


@dataclass(frozen=True, eq=False)
class HmmModel:
    """What was learned, with what is made of it: the chain, and the evidence of tokens."""

    labels: tuple[str, ...]
    active: Array
    rule: Constraint
    states: States
    counts: Counts
    regression: Regression
    smoothing: Smoothing
    share: float
    """λ: how much the counts of words say beside the regression."""

    @cached_property
    def chain(self) -> tuple[Array, Array, Array]:
        """Weights of first states, moves and last states."""
        start, move = self.counts.chain(self.smoothing.moves)
        own, rule = self.states.label, self.rule
        return start * rule.first[own], move * rule.moves[np.ix_(own, own)], rule.last[own].astype(np.float64)

    def evidence(self, tokens: list[str], offsets: Array) -> Array:
        """Return ln p(x | t) of tokens, up to a constant of the token."""
        heard = self.regression.evidence(tokens, offsets)
        return (1 - self.share) * heard + self.share * self.counts.evidence(tokens, self.smoothing)

    def marginals(
        self, tokens: list[str], offsets: Array, allowed: Array | None = None, power: float = 1.0
    ) -> tuple[Any, ...]:
        """Return probabilities of states, expected first states and moves, and the log likelihood.

        States that are not `allowed` are ruled out; the probability of every path is taken to a power.
        """
        T = len(self.states)
        rows = power * self.evidence(tokens, offsets)
        if allowed is not None:
            rows[~allowed] = -np.inf
        start, move, end = (part**power for part in self.chain)
        out, starts, moves = np.empty_like(rows), np.zeros(T), np.zeros((T, T))
        value = lattice.marginals(offsets, rows, start, move, end, out, starts, moves)
        return out, starts, moves, float(value)


class HmmTagger(Tagger):
    """A hidden Markov model: counted moves, and words that speak by counts and by a logistic regression.

    Take it where taggers are trained often, where there is little to learn from, or where spans are long: it is trained
    in less than a third of the time of CrfTagger (docs/tagger.md says where it is better and where it is not).
    CrfTagger has more to choose from: objectives with costs, soft targets, paths, word lists, corpora in shards.
    """

    kind = "hmm"
    reads_unlabelled = True
    _model: HmmModel | None = None
    _trace: tuple[float, ...] = ()

    words: float = number("λ: how much the counts of words say beside the regression", default=0.3, low=0, high=1)
    templates: str = other(
        'the features of the regression; "auto" is "ner" for labels of a tag scheme, else "token"',
        "a ready set, or templates as text",
        default="auto",
    )
    l2: float = number("penalty of the regression, l2 · ‖θ‖²", default=0.3, low=0, open_low=True)
    smoothing: float = number("δ: how many moves the shares of states weigh", default=1.0, low=0, open_low=True)
    prior: float = number("κ: how many occurrences the form of a word weighs", default=0.5, low=0, open_low=True)
    affix: int = whole("the longest suffix", default=4, low=0, high=20)
    backoff: float = number("β: how much a shorter suffix weighs in a longer one", default=1.0, low=0, open_low=True)
    rare: int = whole("words up to this often teach suffixes", default=10, low=1)
    max_iter: int = whole("steps of EM, where there are tokens without labels", default=5, low=0)
    weight: float = number("of an unlabelled token beside a labelled one", default=0.05, low=0)
    constrained: bool = flag("predict only label sequences the tag scheme allows", default=True)

    @property
    def trace(self) -> tuple[float, ...]:
        """The log likelihood of the sequences with tokens without labels before each step of EM, up to a constant."""
        return self._trace

    @property
    def known_words(self) -> Collection[str]:
        """The words it has seen in training, where its templates look at words."""
        dictionary = self._fitted().regression.extractor.dictionary
        return [] if dictionary is None else list(dictionary.values.get("word", ()))

    def _learn(self, examples: Examples, progress: Progress | None) -> None:
        if examples.targets.ndim != 1:
            raise ModelError("the hidden Markov model learns from one label per token, not from probabilities")
        names = [examples.labels[a] for a in examples.active]
        rule = scheme_constraint(names, examples.targets, examples.offsets) if self.constrained else None
        texts = HmmTexts(examples, States.of(names, examples.targets, examples.offsets), self.weight)
        rows, starts, moves = texts.certain()
        if not rows.sum():
            raise ModelError("there is no labelled token to learn from")
        n = len(examples.tokens)
        ready = "token" if schemes.detect(examples.labels) is None else "ner"
        text = ready if self.templates == "auto" else self.templates
        heard = learn(
            Extractor(templates=text), examples.tokens, examples.offsets, texts.allowed[:n], rows[:n], l2=self.l2,
            weights=texts.own[:n],
        )  # fmt: skip
        found = HmmModel(
            examples.labels, examples.active, rule or Constraint.none(len(names)), texts.states,
            count(texts.tokens, rows, starts, moves, self.affix, self.rare), heard, self._smoothing, self.words,
        )  # fmt: skip
        trace = []
        for step in range(self.max_iter if texts.has_unknown else 0):
            expected, value = texts.expected(found)
            trace.append(value)
            found = replace(found, counts=count(texts.tokens, *expected, self.affix, self.rare))
            if progress is not None:
                progress((step + 1) / self.max_iter, f"iteration {step + 1}, log likelihood {value:.1f}")
        self._model, self._trace = found, tuple(trace)

    @property
    def _smoothing(self) -> Smoothing:
        return Smoothing(self.smoothing, self.prior, self.backoff, self.affix)

    def _best(self, tokens: list[str], offsets: Array) -> Array:
        model, path = self._fitted(), np.zeros(len(tokens), np.int16)
        if tokens:
            start, move, end = model.chain
            lattice.viterbi(offsets, model.evidence(tokens, offsets), start, move, end, path)
        return np.asarray(model.states.label[path])

    def _marginals(self, tokens: list[str], offsets: Array) -> Array:
        model = self._fitted()
        out = np.zeros((len(tokens), len(model.active)))
        if tokens:
            proba = model.marginals(tokens, offsets, power=TEMPERED)[0]
            for state, label in enumerate(model.states.label.tolist()):
                out[:, label] += proba[:, state]
        return out

    def save(self, path: str | Path, *, overwrite: bool = False, card: str | None = None) -> None:
        """Write the fitted tagger into a folder: counts and weights as safetensors, the rest as JSON."""
        model = self._fitted()
        counts, states, rule, heard = model.counts, model.states, model.rule, model.regression
        arrays = {
            "words": counts.words, "affixes": counts.affixes, "starts": counts.starts, "moves": counts.moves,
            "shares": heard.shares, "allowed": rule.moves, "first": rule.first, "last": rule.last,
            "state_label": states.label, "state_border": states.border,
        }  # fmt: skip
        with whole_folder(path, overwrite=overwrite) as folder:
            write_card(folder, card)
            header = {
                "lasca": "tagger",
                "kind": self.kind,
                "version": VERSION,
                "parameters": self._plain(),
                "labels": list(model.labels),
                "active": model.active.tolist(),
                "vocabulary": list(counts.vocabulary),
                "keys": list(counts.keys),
                "trace": list(self._trace),
                "regression": save_weights(heard.extractor, heard.weights, folder / "counts.safetensors", arrays),
            }
            (folder / "tagger.json").write_text(json.dumps(header), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> HmmTagger:
        """Read a tagger that `save` wrote. Nothing in the folder can run code."""
        with opened(path, cls.kind, "counts.safetensors") as (folder, header):
            if "regression" not in header:
                raise StoreError("the tagger is of counts alone, as HmmTagger once was", hint="Train it again")
            tagger = cls(**{k: v for k, v in header["parameters"].items() if k in cls._parameter_names()})
            tagger._check()
            tagger._model = tagger._rebuilt(header, folder)
            tagger._trace = tuple(float(value) for value in header["trace"])
            return tagger

    def _rebuilt(self, header: dict[str, Any], folder: Path) -> HmmModel:
        """Check what was written, and put it together."""
        arrays = load_file(folder / "counts.safetensors")
        labels, active = labels_of(header)
        vocabulary = {str(word): i for i, word in enumerate(header["vocabulary"])}
        keys = {str(key): i for i, key in enumerate(header["keys"])}
        n, T = len(active), len(arrays["state_label"])
        shapes = {
            "words": (len(vocabulary), T), "affixes": (len(keys), T), "starts": (T,), "moves": (T, T), "shares": (T,),
            "allowed": (n, n), "first": (n,), "last": (n,), "state_label": (T,), "state_border": (T,),
        }  # fmt: skip
        kinds = dict.fromkeys(("allowed", "first", "last", "state_border"), np.bool_) | {"state_label": np.int64}
        for name, shape in shapes.items():
            array, kind = arrays[name], kinds.get(name, np.float64)
            if array.shape != shape or array.dtype != kind:
                raise StoreError(f"the array {name!r} has the wrong type or shape", got=f"{array.dtype} {array.shape}")
            if kind == np.float64 and not (np.isfinite(array).all() and (array >= 0).all()):
                raise StoreError(f"the array {name!r} does not hold counts")
        own, shares = arrays["state_label"], arrays["shares"]
        if not T or not 0 <= own.min() <= own.max() < n or not shares.min() > 0:
            raise StoreError("the states and the labels of the tagger differ", got=own.tolist())
        if not arrays["words"].sum() > 0:
            raise StoreError("the tagger has counted nothing")
        extractor, weights = load_weights(header["regression"], folder / "counts.safetensors")
        if weights.space.n_labels != T:
            raise StoreError("the states and the weights of the tagger differ", got=weights.space.n_labels)
        return HmmModel(
            labels, active, Constraint(arrays["allowed"], arrays["first"], arrays["last"]),
            States(tuple(labels[a] for a in active), own, arrays["state_border"]),
            Counts(vocabulary, keys, *(arrays[name] for name in ("words", "affixes", "starts", "moves"))),
            Regression(extractor, weights, shares), self._smoothing, self.words,
        )  # fmt: skip


class HmmTexts:
    """All tokens, labelled or not, with what a step of EM makes of them."""

    def __init__(self, examples: Examples, states: States, weight: float) -> None:
        unlabelled = examples.unlabelled
        self.states = states
        self.tokens = [*examples.tokens, *(token for sentence in unlabelled for token in sentence)]
        ends = np.cumsum([len(sentence) for sentence in unlabelled]).astype(np.int64)
        self.offsets = np.concatenate([examples.offsets, examples.offsets[-1] + ends]).astype(np.int64)
        n_new = len(self.tokens) - len(examples.tokens)
        self.labels = np.concatenate([examples.targets.astype(np.int64), np.full(n_new, -1)])
        self.allowed = states.allowed(self.labels, self.offsets)
        own = np.ones(examples.n_sequences) if examples.weights is None else examples.weights
        self.own = np.repeat(np.concatenate([own, np.ones(len(unlabelled))]), np.diff(self.offsets))
        self.weight = weight

    @property
    def has_unknown(self) -> bool:
        """Whether any token has no label."""
        return bool((self.labels < 0).any())

    def certain(self) -> tuple[Array, Array, Array]:
        """Return weights of states per token, first states and moves, of what is labelled.

        Where the next label is unknown, so may be the state: a token then counts for all that are possible, by how
        often those are certain.
        """
        known, one = self.labels >= 0, self.allowed.sum(axis=1) == 1
        times = self.allowed[known & one].sum(axis=0) + 1.0
        rows = np.where(known[:, None] & self.allowed, times, 0.0)
        rows *= (self.own / np.maximum(rows.sum(axis=1), 1.0))[:, None]
        return rows, *self._steps(rows, self.offsets)

    def _steps(self, rows: Array, offsets: Array) -> tuple[Array, Array]:
        """Return first states and moves of tokens that count so much for each state.

        Who is followed by a label has one state.
        """
        after = followers(offsets)
        after = after[rows[after - 1].any(axis=1) & rows[after].any(axis=1)]
        moves = np.zeros((len(self.states), len(self.states)))
        np.add.at(moves, rows[after - 1].argmax(axis=1), rows[after])
        return rows[offsets[:-1][np.diff(offsets) > 0]].sum(axis=0), moves

    def expected(self, model: HmmModel) -> tuple[tuple[Array, Array, Array], float]:
        """Return the same with the expected states of unlabelled tokens, and the log likelihood of their sequences."""
        rows, starts, moves = self.certain()
        unknown = self.labels < 0
        open_ones = np.diff(borders(unknown)[self.offsets]) > 0
        inside = np.flatnonzero(np.repeat(open_ones, np.diff(self.offsets)))
        offsets = borders(np.diff(self.offsets)[open_ones])
        tokens, own = [self.tokens[i] for i in inside], rows[inside] / np.maximum(self.own[inside], 1e-300)[:, None]
        proba, first, pairs, value = model.marginals(tokens, offsets, self.allowed[inside])
        certain_first, certain_pairs = self._steps(own, offsets)
        free = unknown[inside]
        rows[inside[free]] = self.weight * proba[free]
        starts += self.weight * np.maximum(first - certain_first, 0.0)
        moves += self.weight * np.maximum(pairs - certain_pairs, 0.0)
        return (rows, starts, moves), value

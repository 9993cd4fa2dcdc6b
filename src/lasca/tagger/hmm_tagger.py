"""HmmTagger: the generative twin of the CRF tagger, made of counts, and able to learn from text without labels.

Labels follow each other as a Markov chain and say words: p(z, x) = p(z_1) Π p(z_k | z_{k−1}) Π p(x_k | z_k).
With C(t, w) the number of times word w has label t, n(t) = Σ_w C(t, w) and p(t) the share of t,

- moves: p(t | s) = (moves(s, t) + δ p(t)) / (moves(s) + δ), first labels alike (δ: `smoothing`);
- words: p(w | t) ∝ (C(t, w) + κ q(t | w)) / (n(t) + κ): every word, seen or not, has κ (`prior`) imaginary occurrences
  whose labels are what its form says;
- what the form says (after the suffix tree of TnT, Brants 2000): q_0(t) = p(t), and for the suffixes of length
  0, 1, … `affix` of w, as long as w has them and they were seen, q_k(t) = (A_k(t) + β q_{k−1}(t)) / (Σ_t A_k(t) + β),
  where A_k(t) counts the labels of rare words (at most `rare` times) with this suffix and the same kind of first
  character (capital, digit, other), and β is `backoff`.

Tokens without a label, and sentences given as `unlabelled`, are counted by EM: their expected labels under the current
counts, times `weight`; the labelled ones stay as they are. `trace` holds the log likelihood of the sequences they are
in. What EM finds likely need not be what the labels mean: with many labels it often hurts (Merialdo 1994), so `weight`
is small by default.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from lasca.arrays import Array, borders, followers
from lasca.crf.decode import Constraint
from lasca.errors import ModelError, StoreError
from lasca.estimator import Progress, flag, number, whole
from lasca.files import whole_folder
from lasca.kernels import lattice
from lasca.tagger.base import Examples, Tagger
from lasca.tagger.prepare import scheme_constraint
from lasca.tagger.store import VERSION, labels_of, opened, write_card

__all__ = ["HmmTagger"]

ARRAYS = ("words", "affixes", "starts", "moves", "allowed", "first", "last")


def kind_of(word: str) -> str:
    """Return the kind of a word's first character: capital, digit or other."""
    return "A" if word[:1].isupper() else "0" if word[:1].isdigit() else "a"


def suffixes(word: str, longest: int) -> list[str]:
    """Return the keys of a word's suffixes, from none to the longest, each with the kind of its first character."""
    low, kind = word.lower(), kind_of(word)
    return [kind + low[len(low) - n :] for n in range(min(longest, len(low)) + 1)]


@dataclass(frozen=True, eq=False)
class WordCounts:
    """What was counted, over the labels that occur."""

    vocabulary: dict[str, int]
    keys: dict[str, int]
    words: Array
    """(n_words, T): labels of each word."""
    affixes: Array
    """(n_keys, T): labels of rare words with each suffix."""
    starts: Array
    moves: Array


@dataclass(frozen=True, eq=False)
class HmmModel:
    """Counts with what is made of them: the chain, and the evidence of words."""

    labels: tuple[str, ...]
    active: Array
    counts: WordCounts
    allowed: Array
    first: Array
    last: Array
    smoothing: float
    prior: float
    backoff: float
    affix: int

    @cached_property
    def share(self) -> Array:
        """p(t)."""
        total = self.counts.words.sum(axis=0)
        return np.asarray(total / total.sum())

    @cached_property
    def chain(self) -> tuple[Array, Array, Array]:
        """Weights of first labels, moves and last labels."""
        starts, moves, prior = self.counts.starts, self.counts.moves, self.smoothing * self.share
        start = (starts + prior) / (starts.sum() + self.smoothing)
        move = (moves + prior) / (moves.sum(axis=1, keepdims=True) + self.smoothing)
        return start * self.first, move * self.allowed, self.last.astype(np.float64)

    def by_form(self, word: str) -> Array:
        """Return q(t | w)."""
        found = self.share
        for key in suffixes(word, self.affix):
            row = self.counts.keys.get(key)
            if row is None:
                break
            seen = self.counts.affixes[row]
            found = (seen + self.backoff * found) / (seen.sum() + self.backoff)
        return found

    def evidence(self, tokens: Sequence[str]) -> Array:
        """Return ln p(w | t) of tokens, up to a constant."""
        place: dict[str, int] = {}
        codes = np.array([place.setdefault(token, len(place)) for token in tokens], dtype=np.int64)
        rows = self.prior * np.array([self.by_form(word) for word in place])
        for word, row in zip(place, rows):
            known = self.counts.vocabulary.get(word.lower())
            if known is not None:
                row += self.counts.words[known]
        return np.asarray(np.log(rows / (self.counts.words.sum(axis=0) + self.prior))[codes])

    def marginals(self, tokens: Sequence[str], offsets: Array, known: Array | None = None) -> tuple[Any, ...]:
        """Return probabilities of labels, expected first labels and moves, and the log likelihood.

        Labels that are `known` (not −1) are held.
        """
        T = len(self.active)
        rows = self.evidence(tokens)
        if known is not None:
            rows[(known[:, None] >= 0) & (np.arange(T) != known[:, None])] = -np.inf
        out, starts, moves = np.empty_like(rows), np.zeros(T), np.zeros((T, T))
        value = lattice.marginals(offsets, rows, *self.chain, out, starts, moves)
        return out, starts, moves, float(value)


class HmmTagger(Tagger):
    """A hidden Markov model, as a baseline: counts of words and moves, unknown words by suffix, EM on unlabelled text.

    CrfTagger is the one to deploy: it is better on tweets and on medical abstracts, there by far (docs/taggers.md).
    """

    kind = "hmm"
    reads_unlabelled = True
    _model: HmmModel | None = None
    _trace: tuple[float, ...] = ()

    smoothing: float = number("δ: how many moves the shares of labels weigh", default=1.0, low=0, open_low=True)
    prior: float = number("κ: how many occurrences the form of a word weighs", default=0.5, low=0, open_low=True)
    affix: int = whole("the longest suffix", default=4, low=0, high=20)
    backoff: float = number("β: how much a shorter suffix weighs in a longer one", default=1.0, low=0, open_low=True)
    rare: int = whole("words up to this often teach suffixes", default=10, low=1)
    max_iter: int = whole("steps of EM, where there are tokens without labels", default=5, low=0)
    weight: float = number("of an unlabelled token beside a labelled one", default=0.05, low=0)
    constrained: bool = flag("predict only label sequences the tag scheme allows", default=True)

    @property
    def trace(self) -> tuple[float, ...]:
        """The log likelihood of the tokens without labels before each step of EM."""
        return self._trace

    def _learn(self, examples: Examples, progress: Progress | None) -> None:
        if examples.targets.ndim != 1:
            raise ModelError("the hidden Markov model learns from one label per token, not from probabilities")
        names = [examples.labels[a] for a in examples.active]
        rule = scheme_constraint(names, examples.targets, examples.offsets) if self.constrained else None
        rule = rule or Constraint.none(len(names))
        texts = HmmTexts(examples, self.weight)
        counts = texts.count(texts.certain(), self.affix, self.rare)
        if not counts.words.sum():
            raise ModelError("there is no labelled token to learn from")

        def model(counts: WordCounts) -> HmmModel:
            forms = (self.smoothing, self.prior, self.backoff, self.affix)
            return HmmModel(examples.labels, examples.active, counts, rule.moves, rule.first, rule.last, *forms)

        found, trace = model(counts), []
        for step in range(self.max_iter if texts.has_unknown else 0):
            expected, value = texts.expected(found)
            trace.append(value)
            found = model(texts.count(expected, self.affix, self.rare))
            if progress is not None:
                progress((step + 1) / self.max_iter, f"iteration {step + 1}, log likelihood {value:.1f}")
        self._model, self._trace = found, tuple(trace)

    def _best(self, tokens: list[str], offsets: Array) -> Array:
        model, path = self._fitted(), np.zeros(len(tokens), np.int16)
        if tokens:
            start, move, end = model.chain
            lattice.viterbi(offsets, model.evidence(tokens), start, move, end, path)
        return path

    def _marginals(self, tokens: list[str], offsets: Array) -> Array:
        model = self._fitted()
        return model.marginals(tokens, offsets)[0] if tokens else np.zeros((0, len(model.active)))

    def save(self, path: str | Path, *, overwrite: bool = False, card: str | None = None) -> None:
        """Write the fitted tagger into a folder: counts as safetensors, the rest as JSON; `card` as model-card.md."""
        model = self._fitted()
        header = {
            "lasca": "tagger",
            "kind": self.kind,
            "version": VERSION,
            "parameters": self._plain(),
            "labels": list(model.labels),
            "active": model.active.tolist(),
            "vocabulary": list(model.counts.vocabulary),
            "keys": list(model.counts.keys),
            "trace": list(self._trace),
        }
        arrays = {
            name: np.ascontiguousarray(getattr(model.counts if hasattr(model.counts, name) else model, name))
            for name in ARRAYS
        }
        with whole_folder(path, overwrite=overwrite) as folder:
            write_card(folder, card)
            save_file(arrays, folder / "counts.safetensors")
            (folder / "tagger.json").write_text(json.dumps(header), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> HmmTagger:
        """Read a tagger that `save` wrote. Nothing in the folder can run code."""
        with opened(path, cls.kind, "counts.safetensors") as (folder, header):
            tagger = cls(**{k: v for k, v in header["parameters"].items() if k in cls._parameter_names()})
            tagger._check()
            tagger._model = _rebuilt(tagger, header, load_file(folder / "counts.safetensors"))
            tagger._trace = tuple(float(value) for value in header["trace"])
            return tagger


def _rebuilt(tagger: HmmTagger, header: dict[str, Any], arrays: dict[str, Array]) -> HmmModel:
    """Check what was read, and put it together."""
    labels, active = labels_of(header)
    vocabulary = {str(word): i for i, word in enumerate(header["vocabulary"])}
    keys = {str(key): i for i, key in enumerate(header["keys"])}
    T = len(active)
    shapes = {
        "words": (len(vocabulary), T), "affixes": (len(keys), T), "starts": (T,), "moves": (T, T), "allowed": (T, T),
        "first": (T,), "last": (T,),
    }  # fmt: skip
    for name, shape in shapes.items():
        array, flags = arrays[name], name in ("allowed", "first", "last")
        if array.shape != shape or array.dtype != (np.bool_ if flags else np.float64):
            raise StoreError(f"the array {name!r} has the wrong type or shape", got=f"{array.dtype} {array.shape}")
        if not flags and not (np.isfinite(array).all() and (array >= 0).all()):
            raise StoreError(f"the array {name!r} does not hold counts")
    if not arrays["words"].sum() > 0:
        raise StoreError("the tagger has counted nothing")
    counts = WordCounts(vocabulary, keys, *(arrays[name] for name in ("words", "affixes", "starts", "moves")))
    return HmmModel(
        labels, active, counts, arrays["allowed"], arrays["first"], arrays["last"], tagger.smoothing, tagger.prior,
        tagger.backoff, tagger.affix,
    )  # fmt: skip


class HmmTexts:
    """All tokens, labelled or not, with what a step of EM makes of them."""

    def __init__(self, examples: Examples, weight: float) -> None:
        unlabelled = examples.unlabelled
        self.T = len(examples.active)
        self.tokens = [*examples.tokens, *(token for sentence in unlabelled for token in sentence)]
        ends = np.cumsum([len(sentence) for sentence in unlabelled]).astype(np.int64)
        self.offsets = np.concatenate([examples.offsets, examples.offsets[-1] + ends]).astype(np.int64)
        n_new = len(self.tokens) - len(examples.tokens)
        self.labels = np.concatenate([examples.targets.astype(np.int64), np.full(n_new, -1)])
        own = np.ones(examples.n_sequences) if examples.weights is None else examples.weights
        self.own = np.repeat(np.concatenate([own, np.ones(len(unlabelled))]), np.diff(self.offsets))
        self.weight = weight
        self.vocabulary: dict[str, int] = {}
        self.code = np.array(
            [self.vocabulary.setdefault(t.lower(), len(self.vocabulary)) for t in self.tokens], dtype=np.int64
        )
        self.before = followers(self.offsets) - 1
        self.start = self.offsets[:-1][np.diff(self.offsets) > 0]

    @property
    def has_unknown(self) -> bool:
        """Whether any token has no label."""
        return bool((self.labels < 0).any())

    def certain(self) -> tuple[Array, Array, Array]:
        """Return label weights per token, first labels and moves, of what is labelled."""
        rows = np.zeros((len(self.tokens), self.T))
        known = np.flatnonzero(self.labels >= 0)
        rows[known, self.labels[known]] = self.own[known]
        moves = np.zeros((self.T, self.T))
        both = self.before[(self.labels[self.before] >= 0) & (self.labels[self.before + 1] >= 0)]
        np.add.at(moves, (self.labels[both], self.labels[both + 1]), self.own[both + 1])
        return rows, rows[self.start].sum(axis=0), moves

    def expected(self, model: HmmModel) -> tuple[tuple[Array, Array, Array], float]:
        """Return the same with the expected labels of unlabelled tokens, and the log likelihood of their sequences."""
        rows, starts, moves = self.certain()
        unknown = self.labels < 0
        open_ones = np.diff(borders(unknown)[self.offsets]) > 0
        inside = np.flatnonzero(np.repeat(open_ones, np.diff(self.offsets)))
        offsets = borders(np.diff(self.offsets)[open_ones])
        known = self.labels[inside]
        proba, first, pairs, value = model.marginals([self.tokens[i] for i in inside], offsets, known)
        free = known < 0
        rows[inside[free]] = self.weight * proba[free]
        begins = known[offsets[:-1]]
        starts += self.weight * (first - np.bincount(begins[begins >= 0], minlength=self.T))
        after = followers(offsets)
        both = after[~free[after] & ~free[after - 1]]
        np.add.at(pairs, (known[both - 1], known[both]), -1.0)
        moves += self.weight * np.maximum(pairs, 0.0)
        return (rows, starts, moves), value

    def count(self, rows: tuple[Array, Array, Array], affix: int, rare: int) -> WordCounts:
        """Return the counts that label weights per token make."""
        weights, starts, moves = rows
        words = np.zeros((len(self.vocabulary), self.T))
        np.add.at(words, self.code, weights)
        total = words.sum(axis=1)
        keys: dict[str, int] = {}
        at: list[int] = []
        owner: list[int] = []
        for i, (token, code) in enumerate(zip(self.tokens, self.code.tolist())):
            if 0 < total[code] <= rare and weights[i].any():
                for key in suffixes(token, affix):
                    at.append(keys.setdefault(key, len(keys)))
                    owner.append(i)
        affixes = np.zeros((len(keys), self.T))
        np.add.at(affixes, np.array(at, dtype=np.int64), weights[np.array(owner, dtype=np.int64)])
        kept = np.flatnonzero(total > 0)
        names = list(self.vocabulary)
        return WordCounts({names[i]: k for k, i in enumerate(kept.tolist())}, keys, words[kept], affixes, starts, moves)

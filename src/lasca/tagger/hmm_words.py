"""What HmmTagger counts: the states of words, of the suffixes of rare words, and of what follows what.

With C(t, w) the number of times word w is in state t, n(t) = Σ_w C(t, w) and p(t) the share of t,

- moves: p(t | s) = (moves(s, t) + δ p(t)) / (moves(s) + δ), first states alike (δ: `smoothing`);
- words: p(w | t) ∝ (C(t, w) + κ q(t | w)) / (n(t) + κ): every word, seen or not, has κ (`prior`) imaginary occurrences
  whose states are what its form says;
- what the form says (after the suffix tree of TnT, Brants 2000): q_0(t) = p(t), and for the suffixes of length
  0, 1, … `affix` of w, as long as w has them and they were seen, q_k(t) = (A_k(t) + β q_{k−1}(t)) / (Σ_t A_k(t) + β),
  where A_k(t) counts the states of rare words (at most `rare` times) with this suffix and the same kind of first
  character (capital, digit, other), and β is `backoff`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lasca.arrays import Array

__all__ = ["Counts", "Smoothing", "count"]


@dataclass(frozen=True)
class Smoothing:
    """How counts become probabilities."""

    moves: float
    prior: float
    backoff: float
    affix: int


@dataclass(frozen=True, eq=False)
class Counts:
    """What was counted, over T states."""

    vocabulary: dict[str, int]
    keys: dict[str, int]
    words: Array
    """(n_words, T): states of each word."""
    affixes: Array
    """(n_keys, T): states of rare words with each suffix."""
    starts: Array
    moves: Array

    def shares(self) -> Array:
        """Return p(t)."""
        total = self.words.sum(axis=0)
        return np.asarray(total / total.sum())

    def chain(self, smoothing: float) -> tuple[Array, Array]:
        """Return the probabilities of first states and of moves."""
        prior = smoothing * self.shares()
        start = (self.starts + prior) / (self.starts.sum() + smoothing)
        return start, (self.moves + prior) / (self.moves.sum(axis=1, keepdims=True) + smoothing)

    def by_form(self, words: Sequence[str], by: Smoothing) -> Array:
        """Return q(t | w) of words."""
        keys = [suffixes(word, by.affix) for word in words]
        found = np.tile(self.shares(), (len(words), 1))
        going = np.arange(len(words))
        for n in range(by.affix + 1):
            place = np.array([self.keys.get(keys[i][n], -1) if n < len(keys[i]) else -1 for i in going], dtype=np.int64)
            going = going[place >= 0]
            seen = self.affixes[place[place >= 0]]
            found[going] = (seen + by.backoff * found[going]) / (seen.sum(axis=1, keepdims=True) + by.backoff)
        return found

    def evidence(self, tokens: Sequence[str], by: Smoothing) -> Array:
        """Return ln p(w | t) of tokens, up to a constant of the word."""
        place: dict[str, int] = {}
        codes = np.array([place.setdefault(token, len(place)) for token in tokens], dtype=np.int64)
        rows = by.prior * self.by_form(list(place), by)
        seen = np.array([self.vocabulary.get(word.lower(), -1) for word in place], dtype=np.int64)
        rows[seen >= 0] += self.words[seen[seen >= 0]]
        return np.asarray(np.log(rows / (self.words.sum(axis=0) + by.prior))[codes])


def count(tokens: Sequence[str], rows: Array, starts: Array, moves: Array, affix: int, rare: int) -> Counts:
    """Return the counts that weights of states per token make; those of first states and moves are given."""
    vocabulary: dict[str, int] = {}
    code = np.array([vocabulary.setdefault(token.lower(), len(vocabulary)) for token in tokens], dtype=np.int64)
    words = np.zeros((len(vocabulary), rows.shape[1]))
    np.add.at(words, code, rows)
    total = words.sum(axis=1)
    keys: dict[str, int] = {}
    at: list[int] = []
    owner: list[int] = []
    for i in np.flatnonzero((total[code] > 0) & (total[code] <= rare) & rows.any(axis=1)).tolist():
        for key in suffixes(tokens[i], affix):
            at.append(keys.setdefault(key, len(keys)))
            owner.append(i)
    affixes = np.zeros((len(keys), rows.shape[1]))
    np.add.at(affixes, np.array(at, dtype=np.int64), rows[np.array(owner, dtype=np.int64)])
    kept = np.flatnonzero(total > 0)
    names = list(vocabulary)
    return Counts({names[i]: k for k, i in enumerate(kept.tolist())}, keys, words[kept], affixes, starts, moves)


def kind_of(word: str) -> str:
    """Return the kind of a word's first character: capital, digit or other."""
    return "A" if word[:1].isupper() else "0" if word[:1].isdigit() else "a"


def suffixes(word: str, longest: int) -> list[str]:
    """Return the keys of a word's suffixes, from none to the longest, each with the kind of its first character."""
    low, kind = word.lower(), kind_of(word)
    return [kind + low[len(low) - n :] for n in range(min(longest, len(low)) + 1)]

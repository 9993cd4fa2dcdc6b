"""The hidden Markov tagger by dictionaries, plain sums and enumeration of all paths; its regression by small steps."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable

from lasca import schemes

Sentence = list[str]


Said = Callable[[Sentence], list[dict[str, float]]]


class PlainHmm:
    """Counts of labelled sentences (None: no label) and what follows from them.

    `said` is what a regression says of the tokens of a sentence, p(t | x) / p(t); the counts of words have the share
    `words` beside it.
    """

    def __init__(
        self, said: Said, words: float, smoothing: float, prior: float, affix: int, backoff: float, rare: int
    ) -> None:
        self.said, self.share = said, words
        self.delta, self.kappa, self.affix, self.beta, self.rare = smoothing, prior, affix, backoff, rare

    def fit(
        self, texts: list[Sentence], labels: list[list[dict[str, float]]], starts, moves, names: list[str]
    ) -> PlainHmm:
        """Take a weight for each label of each token, and counts of first labels and moves."""
        self.names, self.starts, self.moves = names, starts, moves
        self.words: dict[tuple[str, str], float] = defaultdict(float)
        total: dict[str, float] = defaultdict(float)
        for text, rows in zip(texts, labels):
            for word, row in zip(text, rows):
                for t, weight in row.items():
                    self.words[t, word.lower()] += weight
                    total[word.lower()] += weight
        self.n = {t: sum(v for (u, _), v in self.words.items() if u == t) for t in names}
        self.p = {t: self.n[t] / sum(self.n.values()) for t in names}
        self.ends: dict[tuple[str, str], float] = defaultdict(float)
        self.seen: set[str] = set()
        for text, rows in zip(texts, labels):
            for word, row in zip(text, rows):
                if total[word.lower()] <= self.rare and any(row.values()):
                    for key in self.keys(word):
                        self.seen.add(key)
                        for t, weight in row.items():
                            self.ends[key, t] += weight
        return self

    def keys(self, word: str) -> list[str]:
        kind = "A" if word[:1].isupper() else "0" if word[:1].isdigit() else "a"
        low = word.lower()
        return [kind + (low[-n:] if n else "") for n in range(min(self.affix, len(low)) + 1)]

    def form(self, word: str) -> dict[str, float]:
        q = dict(self.p)
        for key in self.keys(word):
            if key not in self.seen:
                break
            n = sum(self.ends[key, t] for t in self.names)
            q = {t: (self.ends[key, t] + self.beta * q[t]) / (n + self.beta) for t in self.names}
        return q

    def emission(self, word: str, t: str) -> float:
        return (self.words.get((t, word.lower()), 0.0) + self.kappa * self.form(word)[t]) / (self.n[t] + self.kappa)

    def move(self, s: str | None, t: str) -> float:
        row = self.starts if s is None else {u: self.moves.get((s, u), 0.0) for u in self.names}
        return (row.get(t, 0.0) + self.delta * self.p[t]) / (sum(row.values()) + self.delta)

    def joint(self, text: Sentence, known: list[str | None] | None = None) -> dict[tuple[str, ...], float]:
        """The probability of the text with each label path that fits what is known."""
        found, said = {}, self.said(text)
        for path in itertools.product(self.names, repeat=len(text)):
            if known is None or all(k in (None, t) for k, t in zip(known, path)):
                steps = zip((None, *path[:-1]), path, text, said)
                found[path] = math.prod(
                    self.move(s, t) * self.emission(w, t) ** self.share * row[t] ** (1 - self.share)
                    for s, t, w, row in steps
                )
        return found


def hmm_counts(labels: list[list[str | None]]) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
    """First labels, and moves between neighbours that are both labelled."""
    starts: dict[str, float] = defaultdict(float)
    moves: dict[tuple[str, str], float] = defaultdict(float)
    for row in labels:
        if row and row[0] is not None:
            starts[row[0]] += 1
        for s, t in itertools.pairwise(row):
            if s is not None and t is not None:
                moves[s, t] += 1
    return starts, moves


def hmm_step(
    model: PlainHmm, texts: list[Sentence], labels: list[list[str | None]], weight: float
) -> tuple[list[list[dict[str, float]]], dict[str, float], dict[tuple[str, str], float], float]:
    """One step of EM: label weights of tokens, first labels, moves, and the log likelihood of open sentences."""
    starts, moves = hmm_counts(labels)
    rows: list[list[dict[str, float]]] = [[{} if t is None else {t: 1.0} for t in row] for row in labels]
    value = 0.0
    for number, (text, known) in enumerate(zip(texts, labels)):
        if all(t is not None for t in known):
            continue
        joint = model.joint(text, known)
        total = sum(joint.values())
        value += math.log(total)
        for path, p in joint.items():
            share = weight * p / total
            for k, t in enumerate(path):
                if known[k] is None:
                    rows[number][k][t] = rows[number][k].get(t, 0.0) + share
                    if k == 0:
                        starts[t] += share
                if k and (known[k] is None or known[k - 1] is None):
                    moves[path[k - 1], t] += share
    return rows, starts, moves, value


def border_states(labels: list[str]) -> list[str]:
    """The state of each token of a sentence: its label, and | where a span begins or ends behind it."""
    ends = {at for start, end, _ in schemes.spans(labels) for at in (start, end)}
    return [label + "|" * (k + 1 in ends) for k, label in enumerate(labels)]


def plain_regression(
    features: list[list[str]], allowed: list[set[str]], states: list[str], l2: float, weights: list[float]
) -> Callable[[list[str]], dict[str, float]]:
    """Climb Σ weight · ln Σ_(t allowed) p(t | x) − l2 ‖θ‖², one small step after the other; return p(t | x).

    A feature has weights for the states it was seen with; a token that may be in any state counts for nothing.
    """
    heard = [(f, a, w) for f, a, w in zip(features, allowed, weights) if len(a) < len(states)]
    theta = {(name, t): 0.0 for names, may, _ in heard for name in names for t in may}

    def proba(names: list[str], among: Iterable[str]) -> dict[str, float]:
        score = {t: math.exp(sum(theta.get((name, t), 0.0) for name in names)) for t in among}
        return {t: value / sum(score.values()) for t, value in score.items()}

    for _ in range(3000):
        slope = {key: -2 * l2 * value for key, value in theta.items()}
        for names, may, weight in heard:
            right, any_ = proba(names, may), proba(names, states)
            for name in names:
                for t in states:
                    if (name, t) in slope:
                        slope[name, t] += weight * (right.get(t, 0.0) - any_[t])
        theta = {key: value + 0.1 * slope[key] for key, value in theta.items()}
    return lambda names: proba(names, states)

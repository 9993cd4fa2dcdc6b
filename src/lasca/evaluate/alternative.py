"""May a model replace a person? The alternative annotator test (Calderon, Reichart & Dror, ACL 2025, arXiv 2501.10970).

Every person j is left out in turn. On every sequence i that j, the model and others labelled, both are compared with
the others: s(a, i) is the mean over the others of how alike a and the other labelled i (span F1, 1 where both mark
nothing; for labels that are no spans the share of equal labels). The model wins there if s(model, i) ≥ s(j, i), the
person wins if s(j, i) ≥ s(model, i); both do where they are equal.

- ρ_j (model) and ρ_j (person) are the shares of sequences that each wins; the advantage ρ is the mean of ρ_j (model).
- d_i = [person wins] − [model wins]. Rejected is "the model is worse than j by ε or more": H0: E[d] ≥ ε against
  E[d] < ε, by a one-sided t-test; over all people the false discovery rate is held at q (Benjamini & Yekutieli 2001).
- The winning rate ω is the share of people whose H0 is rejected. The model may replace a person if ω ≥ 0.5.

ε is what the cheapness of the model is worth: 0.2 beside experts, 0.15 beside trained people, 0.1 beside crowd workers
(the authors' advice, and the default). As they advise, people with fewer than 30 sequences are left out, and three
people are needed.

Beyond the paper: 95 % intervals of ω and ρ from resampled documents, since the sequences of a document are alike; they
are what the report shows. A soft annotator stands for its likeliest labels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr

from lasca import schemes
from lasca.arrays import Array, Bools, Codes, Floats
from lasca.corpus import CrowdCorpus
from lasca.errors import CorpusError
from lasca.estimator import check_int, check_number
from lasca.evaluate.span_scores import find_spans
from lasca.evaluate.token_scores import Plain

__all__ = ["AlternativeTest", "PersonTest", "alternative_annotator"]

MOST = 20_000  # sequences that are looked at; of more, evenly spread ones are taken


@dataclass(frozen=True)
class PersonTest(Plain):
    """The model against one person: on how many sequences, how often each wins, and the test."""

    name: str
    n: int
    model_wins: float
    person_wins: float
    p_value: float
    rejected: bool
    """Whether "the model is worse by ε or more" is rejected."""


@dataclass(frozen=True)
class AlternativeTest(Plain):
    """The alternative annotator test of one annotator against the people; intervals are 95 %."""

    annotator: str
    winning_rate: float
    winning_rate_low: float
    winning_rate_high: float
    advantage: float
    advantage_low: float
    advantage_high: float
    passes: bool
    """Whether the winning rate is at least one half."""
    people: tuple[PersonTest, ...]
    left_out: int
    """People with too few sequences in common."""
    n_sequences: int
    epsilon: float
    q: float


def alternative_annotator(
    corpus: CrowdCorpus,
    annotator: str,
    *,
    people: Iterable[str] | None = None,
    epsilon: float = 0.1,
    q: float = 0.05,
    min_sequences: int = 30,
    draws: int = 1000,
    seed: int = 0,
) -> AlternativeTest:
    """Test whether an annotator (a model, a rule) may stand for a person of the crowd.

    `people` are all annotators of kind "person" by default. A CorpusError says so where there is too little to compare:
    fewer than three people with `min_sequences` sequences in common with the model and one another.
    """
    check_number("epsilon", epsilon, low=0, high=1)
    check_number("q", q, low=0, high=1, open_low=True)
    check_int("min_sequences", min_sequences, low=2)
    check_int("draws", draws, low=1)
    code = {name: i for i, name in enumerate(corpus.annotators)}
    chosen = [n for n, kind in zip(corpus.annotators, corpus.kinds) if kind == "person"] if people is None else people
    crowd = [name for name in dict.fromkeys(chosen) if name != annotator]
    for name in (annotator, *crowd):
        if name not in code:
            raise CorpusError("there is no annotator of that name", got=name)
    taken = _evenly(corpus)
    alike = _Alike(corpus, [code[annotator], *(code[name] for name in crowd)], taken)
    document = corpus.documents
    n_documents = int(document.max(initial=-1)) + 1
    tested: list[tuple[str, Floats]] = []
    for name in crowd:
        sums = _against(alike, code[annotator], code[name], [code[other] for other in crowd], document, n_documents)
        if sums[:, 0].sum() >= min_sequences:
            tested.append((name, sums))
    if len(tested) < 3:
        raise CorpusError(
            f"too few people to compare {annotator!r} with",
            got=f"{len(tested)} of {len(crowd)} with {min_sequences} sequences that it and others labelled",
            hint="The test needs three people who labelled the same texts",
        )
    stack = np.stack([sums for _, sums in tested])  # (people, documents, sums)
    total = stack.sum(axis=1)
    p, rejected = _tests(total, epsilon, q)
    weight = np.random.default_rng(seed).multinomial(n_documents, np.full(n_documents, 1 / n_documents), size=draws)
    drawn = np.einsum("bd,jds->bjs", weight.astype(np.float64), stack)
    rates = _tests(drawn, epsilon, q)[1].mean(axis=1)
    wins = (drawn[:, :, 1] / np.maximum(drawn[:, :, 0], 1)).mean(axis=1)
    rate = float(rejected.mean())
    return AlternativeTest(
        annotator=annotator,
        winning_rate=rate,
        winning_rate_low=float(np.quantile(rates, 0.025)),
        winning_rate_high=float(np.quantile(rates, 0.975)),
        advantage=float((total[:, 1] / total[:, 0]).mean()),
        advantage_low=float(np.quantile(wins, 0.025)),
        advantage_high=float(np.quantile(wins, 0.975)),
        passes=rate >= 0.5,
        people=tuple(
            PersonTest(name, int(t[0]), float(t[1] / t[0]), float(t[2] / t[0]), float(p[j]), bool(rejected[j]))
            for j, ((name, _), t) in enumerate(zip(tested, total))
        ),
        left_out=len(crowd) - len(tested),
        n_sequences=len(alike.said[code[annotator]]),
        epsilon=epsilon,
        q=q,
    )


def _evenly(corpus: CrowdCorpus) -> Bools:
    taken = np.zeros(corpus.n_sequences, np.bool_)
    taken[np.unique(np.linspace(0, max(corpus.n_sequences - 1, 0), MOST).astype(np.int64))] = True
    return taken if corpus.n_sequences > MOST else np.ones(corpus.n_sequences, np.bool_)


class _Alike:
    """What some annotators said of each sequence (`said`), and how alike two of them are on one."""

    def __init__(self, corpus: CrowdCorpus, annotators: list[int], taken: Bools) -> None:
        self.spans = schemes.detect_corpus(corpus) is not None
        self.said = {a: self._read(corpus, a, taken) for a in annotators}
        self.memory: dict[tuple[int, int, int], float | None] = {}

    def _read(self, corpus: CrowdCorpus, annotator: int, taken: Bools) -> dict[int, Any]:
        token, label = _labels(corpus, annotator)
        sequence = corpus.token_sequence[token]
        kept = taken[sequence]
        token, label, sequence = token[kept], label[kept], sequence[kept]
        if not self.spans:
            rows: dict[int, Any] = {}
            for s, t, y in zip(sequence.tolist(), token.tolist(), label.tolist()):
                rows.setdefault(s, {})[t] = y
            return rows
        breaks = np.flatnonzero((np.diff(token) != 1) | (np.diff(sequence) != 0)) + 1
        start, end, kind, types = find_spans(label, np.concatenate(([0], breaks, [len(token)])), corpus.labels)
        found: dict[int, Any] = {int(s): set() for s in np.unique(sequence)}
        for a, b, k in zip(start.tolist(), end.tolist(), kind.tolist()):
            found[int(sequence[a])].add((int(token[a]), int(token[b - 1]), types[k]))
        return found

    def __call__(self, a: int, b: int, sequence: int) -> float | None:
        """Return how alike two annotators are on a sequence; None if they share no token."""
        key = (min(a, b), max(a, b), sequence)
        if key not in self.memory:
            self.memory[key] = self._compare(self.said[a][sequence], self.said[b][sequence])
        return self.memory[key]

    def _compare(self, x: Any, y: Any) -> float | None:
        if self.spans:
            return 2 * len(x & y) / (len(x) + len(y)) if x or y else 1.0
        common = x.keys() & y.keys()
        return sum(x[t] == y[t] for t in common) / len(common) if common else None


def _labels(corpus: CrowdCorpus, annotator: int) -> tuple[Array, Codes]:
    """Return the tokens an annotator labelled, in order, and the (likeliest) labels."""
    own = corpus.annotation_annotator == annotator
    token, label = corpus.annotation_token[own].astype(np.int64), corpus.annotation_label[own]
    if corpus.soft is None:
        return token, label
    soft = corpus.soft.annotator == annotator
    token = np.concatenate((token, corpus.soft.token[soft]))
    label = np.concatenate((label, corpus.soft.proba[soft].argmax(axis=1).astype(np.int16)))
    order = np.argsort(token, kind="stable")
    return token[order], label[order]


def _against(alike: _Alike, model: int, person: int, crowd: list[int], document: Array, n_documents: int) -> Floats:
    """Return per document: sequences, won by the model, won by the person, Σ d, Σ d²."""
    sums = np.zeros((n_documents, 5))
    others = [other for other in crowd if other != person]
    for sequence in alike.said[person].keys() & alike.said[model].keys():
        pairs = [
            (alike(model, other, sequence), alike(person, other, sequence))
            for other in others
            if sequence in alike.said[other]
        ]
        both = [(m, p) for m, p in pairs if m is not None and p is not None]
        if both:
            of_model, of_person = (sum(side) / len(both) for side in zip(*both))
            model_wins, person_wins = of_model >= of_person - 1e-12, of_person >= of_model - 1e-12
            d = int(person_wins) - int(model_wins)
            sums[document[sequence]] += (1, model_wins, person_wins, d, d * d)
    return sums


def _tests(total: Floats, epsilon: float, q: float) -> tuple[Any, Bools]:
    """Return p-values and rejections of H0: E[d] ≥ ε from sums (…, people, 5); Benjamini–Yekutieli over people."""
    from scipy.stats import false_discovery_control  # slow to load, and only this test needs it

    n = np.maximum(total[..., 0], 2)
    mean = total[..., 3] / n
    variance = np.maximum(total[..., 4] / n - mean**2, 0) * n / (n - 1)
    error = np.sqrt(variance / n)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (mean - epsilon) / error
    p = np.where(error > 0, stdtr(n - 1, np.nan_to_num(t)), np.where(mean < epsilon, 0.0, 1.0))
    return p, false_discovery_control(p, axis=-1, method="by") <= q

"""Scores of an inferred truth on a row: counts per document, from which the metric and its bootstrap are made.

`score(corpus, truth, row)` returns plain data. `documents` has one line of counts per document, `TOTALS` says what
they are; `metric_of` turns their sum into the row's metric, so a bootstrap over documents needs no fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crowds.corpora import UNIT
from crowds.rows import ROWS, Row
from lasca import evaluate
from lasca.corpus import CrowdCorpus
from lasca.truth import Truth

Ints = npt.NDArray[np.int64]
TOTALS = ("tokens", "right", "gold", "predicted", "correct", "covered_gold", "covered_predicted")
"""Per document: tokens scored and right; spans of gold, predicted, and equal; summed shares of gold (predicted) spans'
tokens that lie in predicted (gold) spans."""


def score(corpus: CrowdCorpus, truth: Truth, row: Row | str) -> dict[str, Any]:
    """Score a truth on a row's corpus (or on a part of it, see `rows.parts_of`); percentages are 0–100."""
    row = ROWS[row] if isinstance(row, str) else row
    found: dict[str, Any] = {"unanimous": unanimity(corpus, truth), "marked": 100 * marked(corpus, truth.labels)}
    if "gold" not in corpus.golds:
        return found
    gold = corpus.golds["gold"].astype(np.int64)
    scored = scored_tokens(corpus, gold, whole=row.metric != "accuracy")
    sure = evaluate.calibration(np.asarray(truth.proba), gold, mask=scored)
    documents = per_document(corpus, gold, truth.labels.astype(np.int64), scored, spans=row.metric != "accuracy")
    total = np.array(list(documents.values())).sum(axis=0)
    return found | {
        "documents": documents,
        "value": metric_of(total, row.metric),
        "strict": metric_of(total, "span") if row.metric != "accuracy" else None,
        "accuracy": metric_of(total, "accuracy"),
        "cross_entropy": sure.cross_entropy,
        "ece": sure.ece,
        "marked_scored": 100 * marked(corpus, truth.labels, scored),
        "marked_gold": 100 * marked(corpus, gold, scored),
    }


def scored_tokens(corpus: CrowdCorpus, gold: Ints, *, whole: bool) -> npt.NDArray[np.bool_]:
    """Say which tokens are scored: those with gold in sequences that somebody labelled; spans need whole sequences."""
    chosen = corpus.annotated_sequences.copy()
    if whole:
        missing = np.concatenate(([0], np.cumsum(gold < 0)))
        chosen &= missing[corpus.offsets[1:]] == missing[corpus.offsets[:-1]]
    return np.repeat(chosen, np.diff(corpus.offsets)) & (gold >= 0)


def per_document(
    corpus: CrowdCorpus, gold: Ints, labels: Ints, scored: npt.NDArray[np.bool_], *, spans: bool
) -> dict[str, list[float]]:
    """Return the counts of `TOTALS` for each document with a scored token."""
    codes, names = corpus.metadata[UNIT].codes()
    document = codes[corpus.token_sequence]
    n = len(names)
    counts = np.zeros((n, len(TOTALS)))
    counts[:, 0] = np.bincount(document[scored], minlength=n)
    counts[:, 1] = np.bincount(document[scored & (gold == labels)], minlength=n)
    if spans:
        want = _spans(corpus, np.where(scored, gold, -1))
        have = _spans(corpus, np.where(scored, labels, -1))
        same = {(s, e, k) for s, e, k in zip(*want)}
        correct = np.array([(s, e, k) in same for s, e, k in zip(*have)], np.float64)
        owner_want, owner_have = document[want[0]], document[have[0]]
        counts[:, 2] = np.bincount(owner_want, minlength=n)
        counts[:, 3] = np.bincount(owner_have, minlength=n)
        counts[:, 4] = np.bincount(owner_have, weights=correct, minlength=n)
        counts[:, 5] = np.bincount(owner_want, weights=_covered(want, have, len(gold)), minlength=n)
        counts[:, 6] = np.bincount(owner_have, weights=_covered(have, want, len(gold)), minlength=n)
    return {names[i]: counts[i].tolist() for i in np.flatnonzero(counts[:, 0])}


def _spans(corpus: CrowdCorpus, codes: Ints) -> tuple[Ints, Ints, list[str]]:
    start, end, kind, types = evaluate.find_spans(codes, corpus.offsets, corpus.labels)
    return start, end, [types[k] for k in kind.tolist()]


def _covered(mine: tuple[Ints, Ints, list[str]], other: tuple[Ints, Ints, list[str]], n: int) -> Any:
    """Return for each of my spans the share of its tokens that lie in a span of the other side (of the same type)."""
    result = np.zeros(len(mine[0]))
    for kind in sorted(set(mine[2])):
        inside = np.zeros(n + 1)
        for start, end, name in zip(*other):
            if name == kind:
                inside[start:end] = 1
        before = np.concatenate(([0], np.cumsum(inside)))
        own = np.array([name == kind for name in mine[2]])
        result[own] = (before[mine[1]] - before[mine[0]])[own] / (mine[1] - mine[0])[own]
    return result


def metric_of(total: npt.NDArray[np.float64], metric: str) -> Any:
    """Return the metric in per cent from sums of counts, (…, len(TOTALS)); nothing out of nothing is 0."""
    tokens, right, gold, predicted, correct, covered_gold, covered_predicted = np.moveaxis(np.asarray(total), -1, 0)
    if metric == "accuracy":
        return _plain(100 * right / np.maximum(tokens, 1))
    if metric == "span":
        return _plain(200 * correct / np.maximum(gold + predicted, 1))
    recall, precision = covered_gold / np.maximum(gold, 1), covered_predicted / np.maximum(predicted, 1)
    return _plain(200 * precision * recall / np.maximum(precision + recall, 1e-12))


def _plain(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value


def marked(corpus: CrowdCorpus, labels: npt.NDArray[Any], tokens: npt.NDArray[np.bool_] | None = None) -> float:
    """Return the share of tokens (those in annotated sequences by default) with another label than O."""
    if "O" not in corpus.labels:
        return float("nan")
    at = np.repeat(corpus.annotated_sequences, np.diff(corpus.offsets)) if tokens is None else tokens
    return float((labels[at] != corpus.labels.index("O")).mean()) if at.any() else float("nan")


def unanimity(corpus: CrowdCorpus, truth: Truth) -> dict[str, int]:
    """Count tokens whose two or more (three or more) votes are all equal, and those where the truth is another label.

    With a gold also: on how many of the overruled the truth, and on how many the people are right.
    """
    n = corpus.n_tokens
    votes = np.diff(corpus.token_start)
    first = np.zeros(n, np.int64)
    has = votes > 0
    first[has] = corpus.annotation_label[corpus.token_start[:-1][has]]
    differs = np.bincount(
        corpus.annotation_token, weights=corpus.annotation_label != first[corpus.annotation_token], minlength=n
    )
    result: dict[str, int] = {}
    gold = corpus.golds.get("gold")
    for least in (2, 3):
        agree = (votes >= least) & (differs == 0)
        over = agree & (truth.labels != first)
        result |= {f"tokens_{least}": int(agree.sum()), f"overruled_{least}": int(over.sum())}
        if gold is not None:
            known = over & (gold >= 0)
            result[f"truth_right_{least}"] = int((known & (truth.labels == gold)).sum())
            result[f"people_right_{least}"] = int((known & (first == gold)).sum())
    return result


def bootstrap(
    mine: dict[str, list[float]], other: dict[str, list[float]], metric: str, *, draws: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Return the 95 % interval of the difference of two results' metric over resampled documents."""
    names = sorted({*mine, *other})
    nothing = [0.0] * len(TOTALS)
    a, b = (np.array([side.get(name, nothing) for name in names]) for side in (mine, other))
    rng = np.random.default_rng(seed)
    weight = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=draws)
    difference = metric_of(weight @ a, metric) - metric_of(weight @ b, metric)
    low, high = np.quantile(difference, (0.025, 0.975))
    return float(low), float(high)

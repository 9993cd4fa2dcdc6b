"""The labels: how often each was given and inferred, how right where there is a gold, which are confused; and the
ambiguous tokens in context: who said what, which labels compete, and how much weight each has.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from lasca import evaluate, schemes
from lasca.ambiguity import Ambiguity
from lasca.arrays import Codes, Floats
from lasca.corpus import CrowdCorpus
from lasca.report import plots
from lasca.report.plots import MAX_LABELS, heat, label_order
from lasca.report.render import MAX_SIDE, clean, context
from lasca.review.queue import wordless
from lasca.review.spans import pieces
from lasca.truth import Truth

__all__ = ["ambiguous_section", "confusion_section", "copied", "gold_section", "label_section"]

SHOWN = 100
TOP = 8
SHOWN_FROM = 0.001


def label_section(corpus: CrowdCorpus, truth: Truth, gold: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a row per label (the most frequent ones if there are very many), over tokens that somebody labelled."""
    voted = truth.voted
    inferred = truth.labels[voted]
    sure = truth.proba[voted, inferred].astype(np.float64)
    T = corpus.n_labels
    votes = np.bincount(corpus.annotation_label, minlength=T)
    n = np.bincount(inferred, minlength=T)
    sums = np.bincount(inferred, weights=sure, minlength=T)
    unsure = np.bincount(inferred, weights=sure < 0.9, minlength=T)
    order = label_order(corpus.labels, (n + votes * 1e-6).tolist(), SHOWN)
    scores: Mapping[str, Any] = {} if gold is None else gold["per_label"]
    rows = [
        {
            "label": t,
            "votes": int(votes[t]),
            "vote_share": float(votes[t] / max(votes.sum(), 1)),
            "n": int(n[t]),
            "share": float(n[t] / max(n.sum(), 1)),
            "sure": float(sums[t] / n[t]) if n[t] else None,
            "unsure": int(unsure[t]),
            "gold": scores.get(corpus.labels[t]),
        }
        for t in order
    ]
    return {"rows": rows, "left_out": T - len(order), "largest": float(n.max() / max(n.sum(), 1))}


def gold_section(corpus: CrowdCorpus, truth: Truth, gold: str) -> dict[str, Any] | None:
    """Score the truth against a gold on the sequences somebody annotated; None where the gold has no label there."""
    expert = corpus.golds[gold]
    chosen = corpus.annotated_sequences
    mask = np.repeat(chosen, np.diff(corpus.offsets)) & truth.voted
    if not (mask & (expert >= 0)).any():
        return None
    asked = np.where(truth.voted, expert, np.int16(-1))  # tokens nobody labelled have no truth
    tokens = evaluate.tokens_from_codes(asked, truth.labels, corpus.labels, offsets=corpus.offsets, sequences=chosen)
    sure = evaluate.calibration(truth.proba, expert, mask=mask)
    spans = None
    if schemes.detect(corpus.labels) is not None:
        found = evaluate.spans_from_codes(expert, truth.labels, corpus.offsets, corpus.labels, sequences=chosen)
        kinds = [{"name": kind, **_prf(prf)} for kind, prf in found.per_type.items()]
        spans = {**_prf(found), "types": kinds, "n_sequences": found.n_sequences}
    bins = [
        {"count": int(c), "confidence": float(p), "accuracy": float(a)}
        for c, p, a in zip(sure.bin_count, sure.bin_confidence, sure.bin_accuracy)
        if c
    ]
    return {
        "name": gold,
        "copied": copied(corpus, expert),
        "n_tokens": tokens.n_tokens,
        "accuracy": tokens.accuracy,
        "macro_f1": tokens.macro_f1,
        "per_label": {label: _prf(prf) for label, prf in tokens.per_label.items()},
        "spans": spans,
        "ece": sure.ece,
        "brier": sure.brier,
        "cross_entropy": sure.cross_entropy,
        "bins": bins,
        "plot": plots.calibration_plot(bins),
    }


def copied(corpus: CrowdCorpus, expert: Codes) -> bool:
    """Say whether somebody who votes said just what the gold says, of every sequence that both speak of."""
    seen = expert[corpus.annotation_token] >= 0
    voter = np.array(corpus.votes, bool)[corpus.annotation_annotator] & seen
    token = corpus.annotation_token[voter]
    key = corpus.annotation_annotator[voter].astype(np.int64) * corpus.n_sequences + corpus.token_sequence[token]
    pairs, place = np.unique(key, return_inverse=True)
    same = np.bincount(place, weights=corpus.annotation_label[voter] == expert[token])
    sequence = pairs % max(corpus.n_sequences, 1)
    full = same == np.bincount(corpus.token_sequence[expert >= 0], minlength=corpus.n_sequences)[sequence]
    return bool(len(pairs)) and len(np.unique(sequence[full])) == len(np.unique(sequence))


def _prf(scores: Any) -> dict[str, Any]:
    return {name: getattr(scores, name) for name in ("precision", "recall", "f1", "n_gold", "n_predicted")}


def confusion_section(corpus: CrowdCorpus, matrix: Floats, examples: dict[str, list[int]]) -> dict[str, Any]:
    """Return the symmetric matrix of label confusion over the labels that matter most, and the strongest pairs."""
    values = np.array(matrix, dtype=np.float64)
    np.fill_diagonal(values, 0)
    confused = int((values.max(axis=1, initial=0) >= SHOWN_FROM).sum())  # the others say nothing
    order = label_order(corpus.labels, (values.sum(axis=1) + 1e-9).tolist(), min(MAX_LABELS, max(confused, 2)))
    highest = float(values.max(initial=0))
    rows = []
    for i in order:
        cells = []
        for j in order:
            key = f"{min(i, j)}-{max(i, j)}"
            n = 0 if i == j else len(examples.get(key, ()))
            value = float(values[i, j])
            cells.append({"value": value, "heat": heat(value, highest), "self": i == j, "pair": key, "examples": n})
        rows.append({"label": i, "cells": cells})
    upper = np.triu(values, 1)
    strongest = [divmod(cell, len(values)) for cell in np.argsort(-upper, axis=None, kind="stable")[:TOP].tolist()]
    return {
        "order": order,
        "rows": rows,
        "highest": highest,
        "labels_left_out": corpus.n_labels - len(order),
        "top": [{"pair": [i, j], "value": float(values[i, j])} for i, j in strongest if values[i, j] >= SHOWN_FROM],
    }


BYTES = 1_200_000
"""Room on the page for the list."""
VOTES = 24
EXAMPLES = 6


def ambiguous_section(corpus: CrowdCorpus, truth: Truth, ambiguity: Ambiguity, gold: str | None) -> dict[str, Any]:
    """Return the most ambiguous tokens as far as there is room, and examples for every pair of labels.

    `rows` are short on purpose (they become JSON): t token, b before, a after, i sequence id, p position, s score,
    z inferred label, q its probability, v votes [annotator, label], m votes left out, c candidates [label, weight],
    g gold label. `pairs` counts the pairs of competing labels over all ambiguous tokens, `examples` names rows.
    """
    offered = [_offered(corpus, truth, ambiguity, k) for k in range(len(ambiguity.tokens))]
    pairs = _pairs(offered)
    counted = Counter(pair for pair in pairs if pair is not None)
    rows: list[dict[str, Any]] = []
    place: dict[int, int] = {}
    room = BYTES
    for k in range(len(ambiguity.tokens)):
        row = _row(corpus, truth, ambiguity, k, gold, pairs[k])
        room -= len(json.dumps(row, ensure_ascii=True)) + 1
        if room < 0:
            break
        place[k] = len(rows)
        rows.append(row)
    listed = len(rows)
    examples: dict[str, list[int]] = {}
    for k, candidates in enumerate(offered):
        for i, j in combinations(sorted(candidates), 2):
            shown = examples.setdefault(f"{i}-{j}", [])
            if len(shown) >= EXAMPLES:
                continue
            if k not in place:
                place[k] = len(rows)
                rows.append(_row(corpus, truth, ambiguity, k, gold, pairs[k]))
            shown.append(place[k])
    return {
        "method": ambiguity.method,
        "rows": rows,
        "listed": listed,
        "total": len(ambiguity.tokens),
        "likely": int((ambiguity.score[ambiguity.tokens] >= 0.5).sum()),
        "pairs": [{"pair": [i, j], "n": n} for (i, j), n in sorted(counted.items(), key=lambda x: (-x[1], x[0]))],
        "examples": examples,
        "unranked": {reason: n for reason, n in ambiguity.unranked.items() if n},
        "is_probability": ambiguity.method == "two-truths",
        "weights": "the share of readers expected to see the label"
        if ambiguity.pair_share is not None
        else "the score of the label",
    }


def _offered(corpus: CrowdCorpus, truth: Truth, ambiguity: Ambiguity, k: int) -> dict[int, float]:
    """Return the candidates of an ambiguous token that somebody gave it, or that were inferred for it."""
    token = int(ambiguity.tokens[k])
    said = corpus.annotation_label[int(corpus.token_start[token]) : int(corpus.token_start[token + 1])]
    given = {int(truth.labels[token]), *said.tolist()}
    return {code: score for code, score in ambiguity.candidates[k].items() if code in given}


def _pairs(offered: list[dict[int, float]]) -> list[tuple[int, int] | None]:
    """Return the two labels that compete most at each ambiguous token, the lower code first."""
    found: list[tuple[int, int] | None] = []
    for candidates in offered:
        best = sorted(candidates, key=lambda label: (-candidates[label], label))[:2]
        found.append((min(best), max(best)) if len(best) == 2 else None)
    return found


def _weights(ambiguity: Ambiguity, k: int, given: set[int]) -> list[list[float]]:
    """Return [label, weight], the heaviest first: for two-truths the expected share of readers who see the label.

    Labels that nobody gave the token (nor were inferred for it) are no candidates, whatever the method says.
    """
    candidates = ambiguity.candidates[k]
    label, proba, share = ambiguity.pair_label, ambiguity.pair_proba, ambiguity.pair_share
    if label is None or proba is None or share is None:
        weights: dict[int, float] = dict(candidates)
    else:
        weights = dict.fromkeys(candidates, 0.0)
        kept = [pair for pair in zip(label[k].tolist(), proba[k].tolist(), share[k].tolist()) if pair[0][0] >= 0]
        total = sum(p for _, p, _ in kept) or 1.0  # the record keeps the best pairs only
        for (a, b), p, first in kept:
            weights[a] = weights.get(a, 0.0) + p / total * first
            weights[b] = weights.get(b, 0.0) + p / total * (1 - first)
        kept_weight = sum(value for code, value in weights.items() if code in given) or 1.0
        weights = {code: value / kept_weight for code, value in weights.items() if code in given}
    ordered = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    return [[code, round(value, 3)] for code, value in ordered if code in candidates or value >= 0.005]


def _row(
    corpus: CrowdCorpus, truth: Truth, ambiguity: Ambiguity, k: int, gold: str | None, pair: tuple[int, int] | None
) -> dict[str, Any]:
    token = int(ambiguity.tokens[k])
    sequence = int(corpus.token_sequence[token])
    begin, end = corpus.offsets[sequence : sequence + 2].tolist()
    near = max(begin, token - MAX_SIDE - 1)  # not all of the sequence, which may be a whole book
    words = pieces(corpus, near, min(end, token + MAX_SIDE + 2))
    blind = wordless([word.strip() for word in words])
    before, after = ("", "") if blind else context(words, token - near, token - near + 1)
    votes = slice(int(corpus.token_start[token]), int(corpus.token_start[token + 1]))
    said = list(zip(corpus.annotation_annotator[votes].tolist(), corpus.annotation_label[votes].tolist()))
    label = int(truth.labels[token])
    row: dict[str, Any] = {
        "t": (f"token {token - begin + 1}" if end > begin + 1 else clean(corpus.sequence_ids[sequence], 60))
        if blind
        else clean(corpus.tokens[token]),
        "b": before,
        "a": after,
        "i": clean(corpus.sequence_ids[sequence], 60),
        "p": token - begin + 1,
        "s": round(float(ambiguity.score[token]), 3),
        "z": label,
        "q": round(float(truth.proba[token, label]), 3),
        "v": [list(vote) for vote in said[:VOTES]],
        "c": _weights(ambiguity, k, {label, *(code for _, code in said)}),
    }
    if len(said) > VOTES:
        row["m"] = len(said) - VOTES
    if pair is not None:
        row["k"] = f"{pair[0]}-{pair[1]}"
    if gold is not None and corpus.golds[gold][token] >= 0:
        row["g"] = int(corpus.golds[gold][token])
    return row

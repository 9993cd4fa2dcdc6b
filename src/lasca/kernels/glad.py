"""One EM pass of GLAD: posteriors, the tokens' ease by a gradient step, and the sums the abilities are made of."""

from __future__ import annotations

import math

import numpy as np

from lasca.kernels.compiled import inner, kernel

__all__ = ["glad_pass", "log_sigmoid"]


@kernel
def log_sigmoid(x: float) -> float:
    """Return ln 1 / (1 + e^−x) without overflow."""
    if x < 0.0:
        return x - math.log1p(math.exp(x))
    return -math.log1p(math.exp(-x))


@inner
def _quality(first, last, annotator, right, ability, log_ease, mean, precision):  # type: ignore[no-untyped-def]
    """Return a token's part of the expected log joint as a function of its log ease, with slope and curvature."""
    off = log_ease - mean
    value, slope, curvature = -0.5 * precision * off * off, -precision * off, precision
    ease = math.exp(log_ease)
    for j in range(first, last):
        x = ability[annotator[j]] * ease
        p = right[j - first]
        log_yes = log_sigmoid(x)
        yes = math.exp(log_yes)
        value += log_yes - (1.0 - p) * x  # p ln σ(x) + (1 − p) ln σ(−x)
        slope += (p - yes) * x
        curvature += yes * (1.0 - yes) * x * x
    return value, slope, curvature


@inner
def _climb(first, last, annotator, right, ability, log_ease, mean, precision):  # type: ignore[no-untyped-def]
    """Return a log ease that is no worse: one gradient step scaled by the curvature, halved until it does not fall."""
    value, slope, curvature = _quality(first, last, annotator, right, ability, log_ease, mean, precision)
    move = slope / curvature
    move = min(max(move, -2.0), 2.0)
    for _ in range(20):
        if _quality(first, last, annotator, right, ability, log_ease + move, mean, precision)[0] >= value:
            return log_ease + move
        move *= 0.5
    return log_ease


@kernel(allocates=True)
def glad_pass(  # type: ignore[no-untyped-def]
    first, last, start, annotator, label, ability, log_ease, new_ease, log_prior, mean, precision, most, special,
    allowed, sums, totals, proba,
):  # fmt: skip
    """Do one pass over tokens first..last and return their log evidence.

    Each token's posterior is computed at (ability, log_ease), written to `proba` unless that has no rows, and added
    to `totals` if the token has votes or is special. Its log ease then climbs into `new_ease`; and sums[a] collects, at
    the new ease, numerator and denominator of annotator a's ability (see lasca.truth.glad). `most` is the largest
    number of votes of a token. `log_ease`, `new_ease`, `proba` and `special` begin with token `first`; special[i] is
    the row of `allowed` (1 or 0 for each label) of a token of which something is known, else -1 (empty: of none).
    """
    n_labels = len(log_prior)
    row, right = np.empty(n_labels), np.empty(most)
    log_others = math.log(n_labels - 1.0)
    evidence = 0.0
    for i in range(first, last):
        a, b = start[i], start[i + 1]
        ease = math.exp(log_ease[i - first])
        row[:] = log_prior
        at = special[i - first] if len(special) > 0 else -1
        if at >= 0:
            for t in range(n_labels):
                if allowed[at, t] == 0.0:
                    row[t] = -np.inf
        for j in range(a, b):
            x = ability[annotator[j]] * ease
            evidence += log_sigmoid(-x) - log_others
            row[label[j]] += x + log_others
        largest = row.max()
        total = 0.0
        for t in range(n_labels):
            row[t] = math.exp(row[t] - largest)
            total += row[t]
        evidence += largest + math.log(total)
        row /= total
        if len(proba) > 0:
            proba[i - first] = row
        if b == a:
            new_ease[i - first] = mean
            if at >= 0:
                totals += row
            continue
        for t in range(n_labels):
            totals[t] += row[t]
        for j in range(a, b):
            right[j - a] = row[label[j]]
        new_ease[i - first] = _climb(a, b, annotator, right, ability, log_ease[i - first], mean, precision)
        ease = math.exp(new_ease[i - first])
        for j in range(a, b):
            x = ability[annotator[j]] * ease
            weight = 0.25 if abs(x) < 1e-6 else math.tanh(0.5 * x) / (2.0 * x)
            sums[annotator[j], 0] += (right[j - a] - 0.5) * ease
            sums[annotator[j], 1] += weight * ease * ease
    return evidence

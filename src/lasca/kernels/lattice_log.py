"""Chains of labels in logs, for sequences whose weights could underflow: see `lasca.kernels.lattice`."""

from __future__ import annotations

import math

import numpy as np

from lasca.kernels.compiled import inner

__all__ = ["log_backward", "log_forward", "normalise_logs", "safe_log"]


@inner
def safe_log(x):  # type: ignore[no-untyped-def]
    """Return ln x, −inf for 0."""
    return math.log(x) if x > 0 else -np.inf


@inner
def log_forward(evidence, first, last, start, move, end, alpha):  # type: ignore[no-untyped-def]
    """Fill alpha with logs, each row's largest made 0; return the log sum."""
    T = start.shape[0]
    shift = 0.0
    for i in range(last - first):
        best = -np.inf
        for t in range(T):
            if i == 0:
                v = safe_log(start[t])
            else:
                high = -np.inf
                for k in range(T):
                    high = max(high, alpha[i - 1, k] + safe_log(move[k, t]))
                v = high
                if high > -np.inf:
                    total = 0.0
                    for k in range(T):
                        total += math.exp(alpha[i - 1, k] + safe_log(move[k, t]) - high)
                    v += math.log(total)
            v += evidence[first + i, t]
            if i == last - first - 1:
                v += safe_log(end[t])
            alpha[i, t] = v
            best = max(best, v)
        if best == -np.inf:
            return -np.inf
        for t in range(T):
            alpha[i, t] -= best
        shift += best
    total = 0.0
    for t in range(T):
        total += math.exp(alpha[last - first - 1, t])
    return shift + math.log(total)


@inner
def normalise_logs(rows, i):  # type: ignore[no-untyped-def]
    """Turn a row of logs into probabilities; return the log of their sum."""
    T = rows.shape[1]
    best = -np.inf
    for t in range(T):
        best = max(best, rows[i, t])
    total = 0.0
    for t in range(T):
        rows[i, t] = math.exp(rows[i, t] - best)
        total += rows[i, t]
    for t in range(T):
        rows[i, t] /= total
    return best + math.log(total)


@inner
def log_backward(evidence, first, last, move, end, alpha, beta, pair, counts, out):  # type: ignore[no-untyped-def]
    """As `lattice._backward`, in logs; the expected moves go to `counts` as they are.

    Each row of `out` is written after the evidence of that token was used: they may be the same array.
    """
    T = move.shape[0]
    n = last - first
    for i in range(n - 1, -1, -1):
        largest = 0.0 if i == n - 1 else -np.inf
        for k in range(T):
            if i == n - 1:
                beta[k] = 0.0
            else:
                high = -np.inf
                for t in range(T):
                    high = max(high, pair[k, t])
                total = 0.0
                if high > -np.inf:
                    for t in range(T):
                        total += math.exp(pair[k, t] - high)
                beta[k] = high + safe_log(total)
                largest = max(largest, beta[k])
        for t in range(T):  # what token i contributes to the moves from the token before
            after = beta[t] - largest + evidence[first + i, t] + (safe_log(end[t]) if i == n - 1 else 0.0)
            out[first + i, t] = alpha[i, t] + beta[t]
            beta[t] = after
        log_sum = normalise_logs(out, first + i)
        if i < n - 1:
            for k in range(T):
                for t in range(T):
                    counts[k, t] += math.exp(alpha[i, k] + pair[k, t] - log_sum)
        for k in range(T):
            for t in range(T):
                pair[k, t] = safe_log(move[k, t]) + beta[t]

"""Chains of labels: forward–backward with expected moves, the best path, and paths drawn at random.

Sequences lie behind each other: `offsets` has one border more than there are sequences and indexes the rows of
`evidence` (n_tokens, T), the log weight of each label at each token; -inf rules a label out. `start` and `end` (T,)
and `move` (T, T), row = label before, are weights, not logs; they need not sum to one (variational Bayes uses
exp E log), and 0 forbids. The weight of a path is

    start[z_1] · Π move[z_{i-1}, z_i] · end[z_n] · Π exp(evidence[i, z_i]).

Forward and backward run on scaled weights. A sequence in which the evidence at one token spans more than `WIDEST`
nats (hundreds of annotators on a token) could underflow there, and is done in logs instead. A sequence without
a single path of positive weight gives -inf, and no number in its rows: callers that forbid moves must leave a path.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = ["WIDEST", "marginals", "sample_paths", "viterbi"]

WIDEST = 300.0


@njit(cache=True, nogil=True)
def _longest(offsets):  # type: ignore[no-untyped-def]
    longest = 0
    for s in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    return longest


@njit(cache=True, nogil=True)
def _too_wide(evidence, first, last):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        low, high = np.inf, -np.inf
        for t in range(evidence.shape[1]):
            v = evidence[i, t]
            if v > -np.inf:
                low, high = min(low, v), max(high, v)
        if high - low > WIDEST:
            return True
    return False


@njit(cache=True, nogil=True)
def _log(x):  # type: ignore[no-untyped-def]
    return math.log(x) if x > 0 else -np.inf


@njit(cache=True, nogil=True)
def _forward(evidence, first, last, start, move, end, alpha, weight, scale):  # type: ignore[no-untyped-def]
    """Fill alpha (rows sum to one), the weights of the labels and the scale of each token; return the log sum."""
    T = start.shape[0]
    log_sum = 0.0
    for i in range(last - first):
        if i == 0:
            for t in range(T):
                alpha[0, t] = start[t]
        else:
            for t in range(T):
                alpha[i, t] = 0.0
            for k in range(T):
                a = alpha[i - 1, k]
                if a > 0:
                    for t in range(T):
                        alpha[i, t] += a * move[k, t]
        if i == last - first - 1:
            for t in range(T):
                alpha[i, t] *= end[t]
        best = -np.inf
        for t in range(T):
            if alpha[i, t] > 0:
                best = max(best, evidence[first + i, t])
        if best == -np.inf:
            return -np.inf
        total = 0.0
        for t in range(T):
            w = math.exp(evidence[first + i, t] - best) if alpha[i, t] > 0 else 0.0
            alpha[i, t] *= w
            weight[i, t] = w * end[t] if i == last - first - 1 else w
            total += alpha[i, t]
        inverse = 1.0 / total
        for t in range(T):
            alpha[i, t] *= inverse
        scale[i] = inverse
        log_sum += math.log(total) + best
    return log_sum


@njit(cache=True, nogil=True)
def _backward(move, n, alpha, weight, scale, beta, after, pairs, out, first):  # type: ignore[no-untyped-def]
    """Write the marginals to `out` and add what `move` must be multiplied with, to give expected moves, to `pairs`."""
    T = move.shape[0]
    for t in range(T):
        beta[t] = 1.0
        out[first + n - 1, t] = alpha[n - 1, t]
    for i in range(n - 2, -1, -1):
        for t in range(T):
            after[t] = weight[i + 1, t] * beta[t] * scale[i + 1]
        for k in range(T):
            a = alpha[i, k]
            b = 0.0
            for t in range(T):
                b += move[k, t] * after[t]
            if a > 0:
                for t in range(T):
                    pairs[k, t] += a * after[t]
            beta[k] = b
            out[first + i, k] = a * b


@njit(cache=True, nogil=True)
def _log_forward(evidence, first, last, start, move, end, alpha):  # type: ignore[no-untyped-def]
    """Fill alpha with logs, each row's largest made 0; return the log sum."""
    T = start.shape[0]
    shift = 0.0
    for i in range(last - first):
        best = -np.inf
        for t in range(T):
            if i == 0:
                v = _log(start[t])
            else:
                high = -np.inf
                for k in range(T):
                    high = max(high, alpha[i - 1, k] + _log(move[k, t]))
                v = high
                if high > -np.inf:
                    total = 0.0
                    for k in range(T):
                        total += math.exp(alpha[i - 1, k] + _log(move[k, t]) - high)
                    v += math.log(total)
            v += evidence[first + i, t]
            if i == last - first - 1:
                v += _log(end[t])
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


@njit(cache=True, nogil=True)
def _normalise_logs(rows, i):  # type: ignore[no-untyped-def]
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


@njit(cache=True, nogil=True)
def _log_backward(evidence, first, last, move, end, alpha, beta, pair, counts, out):  # type: ignore[no-untyped-def]
    """As `_backward`, in logs; the expected moves go to `counts` as they are.

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
                beta[k] = high + _log(total)
                largest = max(largest, beta[k])
        for t in range(T):  # what token i contributes to the moves from the token before
            after = beta[t] - largest + evidence[first + i, t] + (_log(end[t]) if i == n - 1 else 0.0)
            out[first + i, t] = alpha[i, t] + beta[t]
            beta[t] = after
        log_sum = _normalise_logs(out, first + i)
        if i < n - 1:
            for k in range(T):
                for t in range(T):
                    counts[k, t] += math.exp(alpha[i, k] + pair[k, t] - log_sum)
        for k in range(T):
            for t in range(T):
                pair[k, t] = _log(move[k, t]) + beta[t]


@njit(cache=True, nogil=True)
def marginals(offsets, evidence, start, move, end, out, starts, moves):  # type: ignore[no-untyped-def]
    """Write each token's marginals to `out`; add expected first labels to `starts`, expected moves to `moves`.

    Returns the sum over the sequences of the log of the sum of all paths' weights. `out` may be `evidence`.
    """
    T = start.shape[0]
    longest = _longest(offsets)
    alpha, weight, scale = np.empty((longest, T)), np.empty((longest, T)), np.empty(longest)
    beta, after, pair, pairs = np.empty(T), np.empty(T), np.empty((T, T)), np.zeros((T, T))
    total = 0.0
    for s in range(offsets.shape[0] - 1):
        first, last = offsets[s], offsets[s + 1]
        if first == last:
            continue
        wide = _too_wide(evidence, first, last)
        if wide:
            log_sum = _log_forward(evidence, first, last, start, move, end, alpha)
        else:
            log_sum = _forward(evidence, first, last, start, move, end, alpha, weight, scale)
        total += log_sum
        if log_sum == -np.inf:
            for i in range(first, last):
                for t in range(T):
                    out[i, t] = np.nan
            continue
        if wide:
            _log_backward(evidence, first, last, move, end, alpha, beta, pair, moves, out)
        else:
            _backward(move, last - first, alpha, weight, scale, beta, after, pairs, out, first)
        for t in range(T):
            starts[t] += out[first, t]
    for k in range(T):
        for t in range(T):
            moves[k, t] += pairs[k, t] * move[k, t]
    return total


@njit(cache=True, nogil=True)
def viterbi(offsets, evidence, start, move, end, path):  # type: ignore[no-untyped-def]
    """Write the heaviest path to `path` (int16); of equal ones the one with the lower label, from the end.

    Takes weights and log evidence as `marginals` does. Returns the sum of the logs of the best paths' weights.
    """
    T = start.shape[0]
    longest = _longest(offsets)
    back = np.empty((longest, T), np.int16)
    here, before, log_move = np.empty(T), np.empty(T), np.empty((T, T))
    for k in range(T):
        for t in range(T):
            log_move[k, t] = _log(move[k, t])
    total = 0.0
    for s in range(offsets.shape[0] - 1):
        first, last = offsets[s], offsets[s + 1]
        if first == last:
            continue
        for t in range(T):
            here[t] = _log(start[t]) + evidence[first, t]
        for i in range(1, last - first):
            here, before = before, here
            for t in range(T):
                best, at = before[0] + log_move[0, t], 0
                for k in range(1, T):
                    v = before[k] + log_move[k, t]
                    if v > best:
                        best, at = v, k
                here[t] = best + evidence[first + i, t]
                back[i, t] = at
        best, at = here[0] + _log(end[0]), 0
        for t in range(1, T):
            v = here[t] + _log(end[t])
            if v > best:
                best, at = v, t
        total += best
        for i in range(last - first - 1, -1, -1):
            path[first + i] = at
            if i > 0:
                at = back[i, at]
    return total


@njit(cache=True, nogil=True)
def sample_paths(offsets, evidence, start, move, end, uniform, path):  # type: ignore[no-untyped-def]
    """Draw a path of each sequence by forward filtering, backward sampling; `uniform` has one number per token.

    Returns the sum of the log sums of all paths' weights, as `marginals` does.
    """
    T = start.shape[0]
    longest = _longest(offsets)
    alpha, weight, scale, p = np.empty((longest, T)), np.empty((longest, T)), np.empty(longest), np.empty((1, T))
    total = 0.0
    for s in range(offsets.shape[0] - 1):
        first, last = offsets[s], offsets[s + 1]
        if first == last:
            continue
        wide = _too_wide(evidence, first, last)
        if wide:
            log_sum = _log_forward(evidence, first, last, start, move, end, alpha)
        else:
            log_sum = _forward(evidence, first, last, start, move, end, alpha, weight, scale)
        total += log_sum
        if log_sum == -np.inf:
            for i in range(first, last):
                path[i] = -1
            continue
        z = -1
        for i in range(last - first - 1, -1, -1):
            for t in range(T):
                m = 1.0 if z < 0 else move[t, z]
                p[0, t] = alpha[i, t] + _log(m) if wide else alpha[i, t] * m
            if wide:
                _normalise_logs(p, 0)
            z = _draw(p, uniform[first + i])
            path[first + i] = z
    return total


@njit(cache=True, nogil=True)
def _draw(p, u):  # type: ignore[no-untyped-def]
    left = 0.0
    for t in range(p.shape[1]):
        left += p[0, t]
    left *= u
    z = -1
    for t in range(p.shape[1]):
        if p[0, t] > 0:
            z = t
            left -= p[0, t]
            if left < 0:
                break
    return z

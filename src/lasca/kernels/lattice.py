"""Chains of labels: forward–backward with expected moves, the best path, and paths drawn at random.

Sequences lie behind each other: `offsets` has one border more than there are sequences and indexes the rows of
`evidence` (n_tokens, T), the log weight of each label at each token; -inf rules a label out. `start` and `end` (T,)
and `move` (T, T), row = label before, are weights, not logs; they need not sum to one (variational Bayes uses
exp E log), and 0 forbids. The weight of a path is

    start[z_1] · Π move[z_{i-1}, z_i] · end[z_n] · Π exp(evidence[i, z_i]).

Forward and backward run on scaled weights. A sequence in which the evidence at one token spans more than `WIDEST`
nats (hundreds of annotators on a token) could underflow there, and is done in logs instead; what does that is compiled
when the first such sequence comes. A sequence without a single path of positive weight gives -inf, and no number in
its rows: callers that forbid moves must leave a path.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import math
from typing import Any

import numpy as np

from lasca.kernels.compiled import inner, kernel

__all__ = ["WIDEST", "marginals", "sample_paths", "viterbi"]

WIDEST = 300.0


def _longest(offsets: Any) -> int:
    return int(np.diff(offsets).max(initial=0))


@kernel
def _too_wide(evidence, first, last):
    for i in range(first, last):
        low, high = np.inf, -np.inf
        for t in range(evidence.shape[1]):
            v = evidence[i, t]
            if v > -np.inf:
                low = v if v < low else low
                high = v if v > high else high
        if high - low > WIDEST:
            return True
    return False


@inner
def _forward(evidence, first, last, start, move, end, alpha, weight, scale):
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
            if alpha[i, t] > 0 and evidence[first + i, t] > best:
                best = evidence[first + i, t]
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


@inner
def _filter(evidence, first, last, start, move, end, alpha, weight, scale):
    """Go forward, in logs if need be; return whether alpha is in logs, and the log sum."""
    if _too_wide(evidence, first, last):
        return True, _log_forward(evidence, first, last, start, move, end, alpha)
    return False, _forward(evidence, first, last, start, move, end, alpha, weight, scale)


@inner
def _backward(move, n, alpha, weight, scale, beta, after, pairs, out, first):
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


@inner
def _safe_log(x):
    """Return ln x, −inf for 0."""
    return math.log(x) if x > 0 else -np.inf


@inner
def _log_forward(evidence, first, last, start, move, end, alpha):
    """Fill alpha with logs, each row's largest made 0; return the log sum."""
    T = start.shape[0]
    shift = 0.0
    for i in range(last - first):
        best = -np.inf
        for t in range(T):
            if i == 0:
                v = _safe_log(start[t])
            else:
                high = -np.inf
                for k in range(T):
                    high = max(high, alpha[i - 1, k] + _safe_log(move[k, t]))
                v = high
                if high > -np.inf:
                    total = 0.0
                    for k in range(T):
                        total += math.exp(alpha[i - 1, k] + _safe_log(move[k, t]) - high)
                    v += math.log(total)
            v += evidence[first + i, t]
            if i == last - first - 1:
                v += _safe_log(end[t])
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
def _normalise_logs(rows, i):
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
def _log_backward(evidence, first, last, move, end, alpha, beta, pair, counts, out):
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
                beta[k] = high + _safe_log(total)
                largest = max(largest, beta[k])
        for t in range(T):  # what token i contributes to the moves from the token before
            after = beta[t] - largest + evidence[first + i, t] + (_safe_log(end[t]) if i == n - 1 else 0.0)
            out[first + i, t] = alpha[i, t] + beta[t]
            beta[t] = after
        log_sum = _normalise_logs(out, first + i)
        if i < n - 1:
            for k in range(T):
                for t in range(T):
                    counts[k, t] += math.exp(alpha[i, k] + pair[k, t] - log_sum)
        for k in range(T):
            for t in range(T):
                pair[k, t] = _safe_log(move[k, t]) + beta[t]


def _is_wide(evidence: Any, offsets: Any) -> bool | None:
    """Return True if some sequence has to be done in logs, else None."""
    return True if _too_wide(evidence, offsets[0], offsets[-1]) else None


def marginals(offsets: Any, evidence: Any, start: Any, move: Any, end: Any, out: Any, starts: Any, moves: Any) -> Any:
    """Write each token's marginals to `out`; add expected first labels to `starts`, expected moves to `moves`.

    Returns the sum over the sequences of the log of the sum of all paths' weights. `out` may be `evidence`.
    """
    T, longest = len(start), _longest(offsets)
    scratch = (np.empty((longest, T)), np.empty((longest, T)), np.empty(longest), np.empty(T), np.empty(T))
    # where nothing is too wide, `wide` is None, and nothing in logs is compiled
    wide = _is_wide(evidence, offsets)
    pair, pairs = np.empty((T, T)), np.zeros((T, T))
    return _marginals(offsets, evidence, start, move, end, out, starts, moves, wide, *scratch, pair, pairs)


@kernel
def _marginals(
    offsets, evidence, start, move, end, out, starts, moves, wide, alpha, weight, scale, beta, after, pair, pairs
):
    T = start.shape[0]
    total = 0.0
    for s in range(offsets.shape[0] - 1):
        first, last = offsets[s], offsets[s + 1]
        if first == last:
            continue
        in_logs = False
        if wide is None:
            log_sum = _forward(evidence, first, last, start, move, end, alpha, weight, scale)
        else:
            in_logs, log_sum = _filter(evidence, first, last, start, move, end, alpha, weight, scale)
        total += log_sum
        if log_sum == -np.inf:
            for i in range(first, last):
                for t in range(T):
                    out[i, t] = np.nan
            continue
        if wide is None:
            _backward(move, last - first, alpha, weight, scale, beta, after, pairs, out, first)
        elif in_logs:
            _log_backward(evidence, first, last, move, end, alpha, beta, pair, moves, out)
        else:
            _backward(move, last - first, alpha, weight, scale, beta, after, pairs, out, first)
        for t in range(T):
            starts[t] += out[first, t]
    for k in range(T):
        for t in range(T):
            moves[k, t] += pairs[k, t] * move[k, t]
    return total


def viterbi(offsets: Any, evidence: Any, start: Any, move: Any, end: Any, path: Any) -> Any:
    """Write the heaviest path to `path` (int16); of equal ones the one with the lower label, from the end.

    Takes weights and log evidence as `marginals` does. Returns the sum of the logs of the best paths' weights.
    """
    T = len(start)
    scratch = (np.empty((_longest(offsets), T), np.int16), np.empty(T), np.empty(T), np.empty((T, T)))
    return _viterbi(offsets, evidence, start, move, end, path, *scratch)


@kernel
def _viterbi(offsets, evidence, start, move, end, path, back, here, before, log_move):
    T = start.shape[0]
    for k in range(T):
        for t in range(T):
            log_move[k, t] = _safe_log(move[k, t])
    total = 0.0
    for s in range(offsets.shape[0] - 1):
        first, last = offsets[s], offsets[s + 1]
        if first == last:
            continue
        for t in range(T):
            here[t] = _safe_log(start[t]) + evidence[first, t]
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
        best, at = here[0] + _safe_log(end[0]), 0
        for t in range(1, T):
            v = here[t] + _safe_log(end[t])
            if v > best:
                best, at = v, t
        total += best
        for i in range(last - first - 1, -1, -1):
            path[first + i] = at
            if i > 0:
                at = back[i, at]
    return total


def sample_paths(offsets: Any, evidence: Any, start: Any, move: Any, end: Any, uniform: Any, path: Any) -> Any:
    """Draw a path of each sequence by forward filtering, backward sampling; `uniform` has one number per token.

    Returns the sum of the log sums of all paths' weights, as `marginals` does.
    """
    T, longest = len(start), _longest(offsets)
    scratch = (np.empty((longest, T)), np.empty((longest, T)), np.empty(longest), np.empty((1, T)))
    return _sample_paths(offsets, evidence, start, move, end, uniform, path, _is_wide(evidence, offsets), *scratch)


@kernel
def _sample_paths(offsets, evidence, start, move, end, uniform, path, wide, alpha, weight, scale, p):
    T = start.shape[0]
    total = 0.0
    for s in range(offsets.shape[0] - 1):
        first, last = offsets[s], offsets[s + 1]
        if first == last:
            continue
        in_logs = False
        if wide is None:
            log_sum = _forward(evidence, first, last, start, move, end, alpha, weight, scale)
        else:
            in_logs, log_sum = _filter(evidence, first, last, start, move, end, alpha, weight, scale)
        total += log_sum
        if log_sum == -np.inf:
            for i in range(first, last):
                path[i] = -1
            continue
        z = -1
        for i in range(last - first - 1, -1, -1):
            for t in range(T):
                m = 1.0 if z < 0 else move[t, z]
                p[0, t] = alpha[i, t] + _safe_log(m) if in_logs else alpha[i, t] * m
            if in_logs:
                _normalise_logs(p, 0)
            z = _draw(p, uniform[first + i])
            path[first + i] = z
    return total


@inner
def _draw(p, u):
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

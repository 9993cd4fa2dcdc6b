"""Posteriors of tokens from their votes, and (expected) counts of annotator, given label and true label.

Votes are CSR by token: those of token i stand at start[i]:start[i + 1] of `annotator` and `label`. A *row* belongs to
a pair (annotator a, given label s) and stands at (a * n_labels + s) * width of a flat table, one entry per true label;
`width` is n_labels rounded up to a multiple of 4, and what is beyond n_labels is 0. `rows` has this place for every
vote of a block of tokens. So both halves of an iteration – multiply the rows of a token's votes, add its posterior to
the rows of its votes – run along memory.

Some tokens are special: something is known of them, or they have soft votes. special[i − first] is the place of token
i in the rows of `factor`, which multiply its likelihoods, or -1; `special` is empty where no token is. Their posteriors
are written to `post`, for what is computed of soft votes beside the pass.

Likelihoods are multiplied as plain numbers; where the largest product of a token gets below 1e-200 it is computed
again in log space. Above that border a label whose product underflows has a posterior below 1e-100: nothing is lost.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lasca.kernels import simd
from lasca.kernels.compiled import inner, kernel

__all__ = [
    "agreement_pass", "confusion_pass", "share_counts", "soft_counts", "soft_factor", "tally", "vote_counts",
    "vote_shares",
]  # fmt: skip

MAX_SIMD_WIDTH = 32
"""Up to this width `confusion_pass` keeps a token's row in registers."""

TINY = 1e-200


def vote_counts(annotator: Any, label: Any, n_annotators: int, n_labels: int) -> Any:
    """Return how often each annotator gave each label, (n_annotators, n_labels)."""
    cells = annotator.astype(np.int64) * n_labels + label
    counts = np.bincount(cells, minlength=n_annotators * n_labels)
    return counts.astype(np.float64).reshape(n_annotators, n_labels)


@kernel
def vote_shares(start, label, out):  # type: ignore[no-untyped-def]
    """Write the shares of each token's votes into out (n_tokens, n_labels); zeros where nobody voted."""
    n_labels = out.shape[1]
    for i in range(len(start) - 1):
        n = start[i + 1] - start[i]
        for t in range(n_labels):
            out[i, t] = 0
        for j in range(start[i], start[i + 1]):
            out[i, label[j]] += 1
        for t in range(n_labels if n > 0 else 0):
            out[i, t] /= n


@kernel
def tally(  # type: ignore[no-untyped-def]
    first, last, start, annotator, label, proba, labels, right, own, true, inferred, per_token
):
    """Count votes of tokens first..last: own[a, given], true[a, inferred], and right[a], those expected to be true.

    inferred[t] counts the labels of tokens with votes, per_token[n] tokens with no vote, one, and more. `proba` and
    `labels` begin with token `first`.
    """
    for i in range(first, last):
        n = start[i + 1] - start[i]
        per_token[n if n < 2 else 2] += 1
        if n > 0:
            inferred[labels[i - first]] += 1
        for j in range(start[i], start[i + 1]):
            right[annotator[j]] += proba[i - first, label[j]]
            own[annotator[j], label[j]] += 1
            true[annotator[j], labels[i - first]] += 1


@kernel
def share_counts(first, last, start, annotator, label, least, counts, totals, given):  # type: ignore[no-untyped-def]
    """Add the shares of each token's votes, as its posterior, to counts (annotator, given, true) and totals (true).

    given[a, s] counts votes. Tokens first..last with fewer than `least` votes are left out.
    """
    for i in range(first, last):
        n = start[i + 1] - start[i]
        if n < least:
            continue
        share = 1.0 / n
        for j in range(start[i], start[i + 1]):
            given[annotator[j], label[j]] += 1.0
            totals[label[j]] += share
            at, total = label[j], counts[annotator[j], label[j], label[j]]
            for k in range(start[i], start[i + 1]):
                if label[k] == at:  # most votes agree: their sum stays in a register
                    total += share
                else:
                    counts[annotator[j], at, label[k]] += share
            counts[annotator[j], at, at] = total


@inner
def _log_space(first, last, rows, log_table, log_prior, n_labels, factor, at, row):  # type: ignore[no-untyped-def]
    """Fill `row` with a token's posterior, computed in logs; return the log evidence."""
    for t in range(n_labels):
        row[t] = log_prior[t]
        if at >= 0:
            row[t] += math.log(factor[at + t]) if factor[at + t] > 0.0 else -np.inf
    for j in range(first, last):
        for t in range(n_labels):
            row[t] += log_table[rows[j] + t]
    largest = row[0]
    for t in range(1, n_labels):
        largest = row[t] if row[t] > largest else largest
    total = 0.0
    for t in range(n_labels):
        row[t] = math.exp(row[t] - largest)
        total += row[t]
    for t in range(n_labels):
        row[t] /= total
    return largest + math.log(total)


def confusion_pass(
    first: int, last: int, start: Any, rows: Any, table: Any, log_table: Any, prior: Any, log_prior: Any, n_labels: int,
    width: int, least: int, special: Any, teaches: Any, factor: Any, post: Any, counts: Any, totals: Any, proba: Any,
) -> float:  # fmt: skip
    """Do one pass over tokens first..last and return their log evidence.

    Each token's posterior ∝ prior × the rows of its votes. If it has at least `least` votes (or teaches[k] says so of
    the special token k), it is added to the rows of its votes in `counts` and to `totals`, and its evidence counts. It
    is written to `proba` (last - first, n_labels) unless that has no rows.
    """
    narrow = width <= MAX_SIMD_WIDTH
    run = _pass if narrow else _pass_wide
    evidence: float = run(
        first, last, start, rows, table, log_table, prior, log_prior, n_labels,
        simd.block_tuple(width) if narrow else width, least, special if len(special) else None, teaches, factor, post,
        counts, totals, proba, np.zeros(width),
    )  # fmt: skip
    return evidence


@kernel
def _pass(  # type: ignore[no-untyped-def]
    first, last, start, rows, table, log_table, prior, log_prior, n_labels, blocks, least, special, teaches, factor,
    post, counts, totals, proba, row,
):  # fmt: skip
    width = 4 * len(blocks)
    base = start[first]
    evidence = 0.0
    product = 1.0  # the product of the tokens' evidence: one logarithm per many tokens
    start_row = simd.load(prior, 0, blocks)  # type: ignore[call-arg, var-annotated]
    sums = simd.splat(0.0, blocks)
    for i in range(first, last):
        a, b = start[i] - base, start[i + 1] - base
        p = start_row
        for j in range(a, b):
            p = simd.mul(p, simd.load(table, rows[j], blocks))
        at, counted = -1, b - a >= least
        if special is not None:
            at = special[i - first] * width
            if at >= 0:
                p = simd.mul(p, simd.load(factor, at, blocks))
                counted = teaches[special[i - first]]
        total = simd.total(p)
        if total < TINY:
            logs = _log_space(a, b, rows, log_table, log_prior, n_labels, factor, at, row)
            evidence += logs if counted else 0.0
            p = simd.load(row, 0, blocks)
        else:
            p = simd.mul(p, simd.splat(1.0 / total, blocks))
            product *= total if counted else 1.0
            if product < 1e-100 or product > 1e100:
                evidence += math.log(product)
                product = 1.0
        if counted:
            sums = simd.add(sums, p)
            for j in range(a, b):
                simd.store(counts, rows[j], simd.add(simd.load(counts, rows[j], blocks), p))
        if at >= 0:
            simd.store(post, at, p)
        if len(proba) > 0:
            simd.store(row, 0, p)
            for t in range(n_labels):
                proba[i - first, t] = row[t]
    simd.store(totals, 0, sums)
    return evidence + math.log(product)


@kernel
def _pass_wide(  # type: ignore[no-untyped-def]
    first, last, start, rows, table, log_table, prior, log_prior, n_labels, width, least, special, teaches, factor,
    post, counts, totals, proba, row,
):  # fmt: skip
    """Do what `_pass` does, for rows of any width."""
    evidence = 0.0
    base = start[first]
    for i in range(first, last):
        a, b = start[i] - base, start[i + 1] - base
        at, counted = -1, b - a >= least
        if special is not None:
            at = special[i - first] * width
            counted = teaches[special[i - first]] if at >= 0 else counted
        for t in range(n_labels):
            row[t] = prior[t]
        for j in range(a, b):
            for t in range(n_labels):
                row[t] *= table[rows[j] + t]
        total = 0.0
        for t in range(n_labels):
            if at >= 0:
                row[t] *= factor[at + t]
            total += row[t]
        if total < TINY:
            logs = _log_space(a, b, rows, log_table, log_prior, n_labels, factor, at, row)
            evidence += logs if counted else 0.0
        else:
            evidence += math.log(total) if counted else 0.0
            for t in range(n_labels):
                row[t] /= total
        if at >= 0:
            for t in range(n_labels):
                post[at + t] = row[t]
        if counted:
            for t in range(n_labels):
                totals[t] += row[t]
            for j in range(a, b):
                for t in range(n_labels):
                    counts[rows[j] + t] += row[t]
        if len(proba) > 0:
            for t in range(n_labels):
                proba[i - first, t] = row[t]
    return evidence


@kernel(allocates=True)
def soft_factor(place, annotator, proba, psi, factor, scales):  # type: ignore[no-untyped-def]
    """Multiply the rows of `factor` (n_special, width) by soft votes; the logs of their scales go to `scales`.

    Vote n is on the special token place[n]; it says Σ_s p(s) ψ[a, s, t] of label t, scaled to a largest entry of 1.
    """
    n_labels = psi.shape[1]
    row = np.empty(n_labels)
    for n in range(len(place)):
        largest = 0.0
        for t in range(n_labels):
            row[t] = 0.0
            for s in range(n_labels):
                row[t] += proba[n, s] * psi[annotator[n], s, t]
            largest = max(largest, row[t])
        for t in range(n_labels):
            factor[place[n], t] *= row[t] / largest
        scales[place[n]] += math.log(largest)


@kernel
def soft_counts(place, annotator, proba, psi, post, counts):  # type: ignore[no-untyped-def]
    """Add what soft votes may have been to counts (annotator, given, true): post[t] p(s) ψ[a, s, t] / Σ_s p(s) ψ."""
    n_labels = psi.shape[1]
    for n in range(len(place)):
        a = annotator[n]
        for t in range(n_labels):
            total = 0.0
            for s in range(n_labels):
                total += proba[n, s] * psi[a, s, t]
            if total > 0.0:
                for s in range(n_labels):
                    counts[a, s, t] += post[place[n], t] * proba[n, s] * psi[a, s, t] / total


@kernel(allocates=True)
def agreement_pass(  # type: ignore[no-untyped-def]
    first, last, start, annotator, label, odds, n_labels, special, factor, post, agreed, proba
):
    """Do one pass over tokens first..last for models where a vote only favours the label it gives.

    A label's weight is the product of odds[a, s] >= 1 over the annotators a who gave it, 1 if nobody did. The posterior
    of each vote's label is added to agreed[a, s]; the posterior of the token is written to `proba` (last - first,
    n_labels) unless that has no rows. Returns the sum of the logs of the sums of weights. Only labels that got votes
    are ever touched, but of special tokens, whose weights are multiplied by rows of `factor` (n_special, n_labels).
    """
    weight = np.ones(n_labels)
    evidence = 0.0
    product = 1.0  # of the sums of weights: one logarithm per many tokens
    for i in range(first, last):
        a, b = start[i], start[i + 1]
        total = float(n_labels)
        for j in range(a, b):
            old = weight[label[j]]
            weight[label[j]] = old * odds[annotator[j], label[j]]
            total += weight[label[j]] - old
        at = special[i - first] if len(special) > 0 else -1
        if not total <= 1.0 / TINY:  # or it overflowed
            total = _agreement_in_logs(a, b, annotator, label, odds, n_labels, factor, at, weight)
            evidence += total
            total = 1.0
        elif at >= 0:
            total = 0.0
            for t in range(n_labels):
                weight[t] *= factor[at, t]
                total += weight[t]
            evidence += math.log(total)
            for t in range(n_labels):
                weight[t] /= total
            total = 1.0
        else:
            product *= total
            if product > 1e100:
                evidence += math.log(product)
                product = 1.0
        if at >= 0:
            post[at] = weight
        share = 1.0 / total
        if len(proba) > 0:
            for t in range(n_labels):
                proba[i - first, t] = weight[t] * share
        for j in range(a, b):
            agreed[annotator[j], label[j]] += weight[label[j]] * share
        if total == 1.0:
            weight[:] = 1.0
        else:
            for j in range(a, b):
                weight[label[j]] = 1.0
    return evidence + math.log(product)


@inner
def _agreement_in_logs(  # type: ignore[no-untyped-def]
    first, last, annotator, label, odds, n_labels, factor, at, weight
):
    """Fill `weight` with the posterior of a token, computed in logs; return the log of the sum of its weights."""
    weight[:] = 0.0
    for j in range(first, last):
        weight[label[j]] += math.log(odds[annotator[j], label[j]])
    if at >= 0:
        for t in range(n_labels):
            weight[t] += math.log(factor[at, t]) if factor[at, t] > 0.0 else -np.inf
    largest = -np.inf
    for t in range(n_labels):
        largest = max(largest, weight[t])
    total = 0.0
    for t in range(n_labels):
        weight[t] = math.exp(weight[t] - largest)
        total += weight[t]
    weight /= total
    return largest + math.log(total)

"""Agreement of annotators: the rank-1 model per sequence, CrowdTruth's scores per token. Votes as CSR arrays in."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import math

import numpy as np

from lasca.kernels.compiled import inner, kernel

__all__ = ["crowdtruth_labels", "crowdtruth_pass", "rank1_pass", "vote_entropy"]


@kernel(allocates=True)
def rank1_pass(lo, hi, offsets, start, annotator, label, n_labels, reliable, share, max_iter, tol, mu, vote_omega):
    """Fit A ≈ ω μᵀ on the observed cells of sequences lo..hi by alternating least squares.

    A(l, j) = how many reliable annotators gave token j what l gave it, l included; with `share` divided by the
    number of reliable annotators of j. Tokens with fewer than two of them stay out (mu = nan). `vote_omega` gets ω of
    the annotator of each vote (nan where the vote does not count). With `share` the mean of ω is 1, else ω and μ have
    the same length (both √Λ), as in the paper. Returns how many sequences did not converge.
    """
    n_annotators = reliable.shape[0]
    given = np.zeros(n_labels, np.int64)
    place = np.full(n_annotators, -1, np.int64)
    members = np.zeros(n_annotators, np.int64)
    omega, above, below = np.zeros(n_annotators), np.zeros(n_annotators), np.zeros(n_annotators)
    unfinished = 0
    for s in range(lo, hi):
        begin, end = start[offsets[s]], start[offsets[s + 1]]
        cell = np.full(end - begin, np.nan)
        n_members = 0
        for j in range(offsets[s], offsets[s + 1]):
            n = 0
            for v in range(start[j], start[j + 1]):
                if reliable[annotator[v]]:
                    n += 1
                    given[label[v]] += 1
            if n < 2:
                for v in range(start[j], start[j + 1]):
                    given[label[v]] = 0
                mu[j] = np.nan
                continue
            mu[j] = 1.0
            for v in range(start[j], start[j + 1]):
                if not reliable[annotator[v]]:
                    continue
                same = given[label[v]]
                cell[v - begin] = same / n if share else float(same)
                if place[annotator[v]] < 0:
                    place[annotator[v]] = n_members
                    members[n_members] = annotator[v]
                    n_members += 1
            for v in range(start[j], start[j + 1]):
                given[label[v]] = 0
        if n_members == 0:
            continue
        omega[:n_members] = 1.0
        done = False
        for _ in range(max_iter):
            above[:n_members] = 0.0
            below[:n_members] = 0.0
            for j in range(offsets[s], offsets[s + 1]):
                if math.isnan(mu[j]):
                    continue
                mu[j] = _fitted(start[j], start[j + 1], begin, annotator, place, omega, cell)
                for v in range(start[j], start[j + 1]):
                    if not math.isnan(cell[v - begin]):
                        above[place[annotator[v]]] += mu[j] * cell[v - begin]
                        below[place[annotator[v]]] += mu[j] * mu[j]
            mean = 0.0
            for m in range(n_members):
                above[m] /= below[m]
                mean += above[m] / n_members
            change = 0.0
            for m in range(n_members):
                new = above[m] / mean
                change = max(change, abs(new - omega[m]))
                omega[m] = new
            if change < tol:
                done = True
                break
        unfinished += not done
        _scale(s, offsets, start, annotator, place, members, n_members, omega, share, cell, mu, vote_omega)
    return unfinished


@inner
def _fitted(first, last, begin, annotator, place, omega, cell):
    """Return the μ of one token that fits its cells best, given ω: Σ ω A / Σ ω²."""
    up, down = 0.0, 0.0
    for v in range(first, last):
        if not math.isnan(cell[v - begin]):
            w = omega[place[annotator[v]]]
            up += w * cell[v - begin]
            down += w * w
    return up / down


@inner
def _scale(s, offsets, start, annotator, place, members, n_members, omega, share, cell, mu, vote_omega):
    """Give μ its last value for the ω found, scale both, write ω to the votes and forget the members."""
    begin = start[offsets[s]]
    square = 0.0
    for j in range(offsets[s], offsets[s + 1]):
        if math.isnan(mu[j]):
            continue
        mu[j] = _fitted(start[j], start[j + 1], begin, annotator, place, omega, cell)
        square += mu[j] * mu[j]
    factor = 1.0
    if not share:
        length = 0.0
        for m in range(n_members):
            length += omega[m] * omega[m]
        factor = math.sqrt(math.sqrt(square / length))  # ω·f and μ/f then have the same length
    for j in range(offsets[s], offsets[s + 1]):
        mu[j] /= factor
        for v in range(start[j], start[j + 1]):
            if not math.isnan(cell[v - begin]):
                vote_omega[v] = omega[place[annotator[v]]] * factor
    for m in range(n_members):
        place[members[m]] = -1


@kernel(allocates=True)
def vote_entropy(start, label, n_labels, entropy):
    """Entropy of the shares of the labels each token was given, in nats; nan with fewer than two votes."""
    given = np.zeros(n_labels, np.int64)
    for i in range(start.shape[0] - 1):
        n = start[i + 1] - start[i]
        if n < 2:
            entropy[i] = np.nan
            continue
        for v in range(start[i], start[i + 1]):
            given[label[v]] += 1
        total = 0.0
        for v in range(start[i], start[i + 1]):
            if given[label[v]] > 0:
                p = given[label[v]] / n
                total -= p * math.log(p)
                given[label[v]] = 0
        entropy[i] = total


@kernel(allocates=True)
def crowdtruth_pass(start, annotator, label, unit, worker, quality, new_unit, sums):
    """One step of CrowdTruth's mutual updates: unit quality, and what worker quality is made of, from those before.

    `unit` per token (nan with fewer than two votes), `worker` per annotator, `quality` per label. `sums` (4,
    n_annotators) gets the numerators and denominators of worker–unit and of worker–worker agreement.
    """
    n_labels = quality.shape[0]
    weight, given = np.zeros(n_labels), np.zeros(n_labels)
    for i in range(start.shape[0] - 1):
        if start[i + 1] - start[i] < 2:
            new_unit[i] = np.nan
            continue
        all_weight, all_square, length = 0.0, 0.0, 0.0
        for v in range(start[i], start[i + 1]):
            w = worker[annotator[v]]
            weight[label[v]] += w
            given[label[v]] += 1.0
            all_weight += w
            all_square += w * w
        agreed = 0.0
        for v in range(start[i], start[i + 1]):
            t = label[v]
            length += quality[t] * given[t]  # Σ_a quality_a given_a², each of the given_a votes adding its part
            agreed += worker[annotator[v]] * (weight[t] - worker[annotator[v]])
        new_unit[i] = agreed / max(all_weight * all_weight - all_square, 1e-4)
        for v in range(start[i], start[i + 1]):
            t, who = label[v], annotator[v]
            others = given[t] - 1.0
            rest = length + quality[t] * (others * others - given[t] * given[t])
            sums[0, who] += unit[i] * math.sqrt(quality[t]) * others / math.sqrt(rest)
            sums[1, who] += unit[i]
            sums[2, who] += unit[i] * (weight[t] - worker[who])
            sums[3, who] += unit[i] * (all_weight - worker[who])
        for v in range(start[i], start[i + 1]):
            weight[label[v]] = given[label[v]] = 0.0


@kernel(allocates=True)
def crowdtruth_labels(start, annotator, label, unit, worker, both, either, quality):
    """Write each label's quality: how probable it is that one annotator gives it where another one did.

    `both`, `either` are scratch (n_labels, n_annotators, n_annotators); labels nobody shared a token on keep 1.
    """
    both[:] = 0.0
    either[:] = 0.0
    for i in range(start.shape[0] - 1):
        if start[i + 1] - start[i] < 2:
            continue
        for v in range(start[i], start[i + 1]):
            t = label[v]
            for u in range(start[i], start[i + 1]):
                if u != v:
                    either[t, annotator[u], annotator[v]] += unit[i]
                    if label[u] == t:
                        both[t, annotator[u], annotator[v]] += unit[i]
    for t in range(quality.shape[0]):
        above, below = 0.0, 0.0
        for who in range(worker.shape[0]):
            for other in range(worker.shape[0]):
                if either[t, who, other] > 0.0:
                    w = worker[who] * worker[other]
                    above += w * both[t, who, other] / either[t, who, other]
                    below += w
        quality[t] = max(above / below, 1e-4) if below > 0.0 else 1.0

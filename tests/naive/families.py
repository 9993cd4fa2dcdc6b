"""Families of annotators who repeat each other, pair by pair."""

from __future__ import annotations

import itertools
import math
from statistics import median

import numpy as np


def lower_median(values: list[float], weights: list[float]) -> float:
    """The value below which four tenths of the weight lie."""
    pairs = sorted(zip(values, weights), key=lambda pair: pair[0])
    left = 0.4 * sum(weights)
    for value, weight in pairs:
        left -= weight
        if left <= 1e-12:
            return value
    raise AssertionError("there is no value")


def pair_agreement(same: np.ndarray, marks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """C of each pair, and how many marks it rests on."""
    n = len(same)
    agreement, size = np.zeros((n, n)), np.zeros((n, n))
    for a, b in itertools.permutations(range(n), 2):
        size[a, b] = math.sqrt(marks[a, b] * marks[b, a])
        if size[a, b] > 0:
            agreement[a, b] = min((same[a, b] + same[b, a]) / 2 / max(size[a, b], 1), 1.0)
    return agreement, size


def goodness(agreement: np.ndarray, size: np.ndarray, family: list[int]) -> list[float | None]:
    """The g of each annotator who met three other families on twenty marks, by medians of ratios from two starts."""
    n = len(family)
    met = {a: {b for b in range(n) if family[b] != family[a] and size[a, b] >= 20} for a in range(n)}
    known = [len({family[b] for b in met[a]}) >= 3 for a in range(n)]
    met = {a: {b for b in met[a] if known[a] and known[b]} for a in range(n)}
    used = [agreement[a, b] for a in range(n) for b in met[a]]
    if not used:
        return [None] * n
    alike = [math.sqrt(max(median(used), 0.01)) if known[a] else None for a in range(n)]
    near = [1.0 if known[a] and met[a] else None for a in range(n)]
    for _ in range(50):
        squares = [sum(near[b] ** 2 for b in met[a]) if near[a] is not None else None for a in range(n)]
        near = [
            None if g is None else math.sqrt(g * sum(agreement[a, b] * near[b] for b in met[a]) / max(squares[a], 1e-9))
            for a, g in enumerate(near)
        ]
    near = [None if g is None else min(max(g, 0.05), 1.0) for g in near]
    fits = []
    for g in (alike, near):
        for _ in range(20):
            new: list[float | None] = [None] * n
            for a in range(n):
                if known[a] and met[a]:
                    busy = 2 * median(size[a, b] for b in met[a])
                    ratios = [agreement[a, b] / max(g[b], 0.05) for b in met[a]]
                    weights = [min(size[a, b], busy) / math.sqrt(family.count(family[b])) for b in met[a]]
                    new[a] = min(max(math.sqrt(lower_median(ratios, weights) * g[a]), 0.05), 1.0)
            g = new
        left = sum(abs(math.sqrt(agreement[a, b]) - math.sqrt(g[a] * g[b])) for a in range(n) for b in met[a])
        fits.append((left, g))
    (left, first), (left_near, second) = fits
    return second if left_near < left / 2 else first


def find_families(
    same: np.ndarray, marks: np.ndarray, near: np.ndarray, family: list[int], spans: bool
) -> tuple[list[int], list[float]]:
    """The family of each annotator, and how often its members repeat each other; `family` has what is declared."""
    n, family = len(same), list(family)
    repeats = [float(family.count(f) > 1) for f in family]
    agreement, size = pair_agreement(same, marks)
    nearly, _ = pair_agreement(near, marks)
    least = 0.15 if spans else 0.5
    while True:
        g, loose = goodness(agreement, size, family), goodness(nearly, size, family)
        excess, spread = dict[tuple[int, int], float](), dict[tuple[int, int], float]()
        expected = dict[tuple[int, int], float]()
        for a, b in itertools.combinations(range(n), 2):
            if size[a, b] >= 40 and g[a] is not None and g[b] is not None:
                e, c = min(g[a] * g[b], 0.99), agreement[a, b]
                expected[a, b], excess[a, b] = e, (c - e) / (1 - e)
                spread[a, b] = math.sqrt(max(c * (1 - c), 0.05) / max(size[a, b], 1)) / (1 - e)
        tried = [pair for pair in excess if family[pair[0]] != family[pair[1]]]
        sure = dict.fromkeys(itertools.combinations(range(n), 2), -math.inf)
        if len(tried) >= 3:
            usual = max(1.0, median(abs(excess[pair] / spread[pair]) for pair in tried) / 0.6745)
            for pair in tried:
                value = excess[pair] - 3 * usual * spread[pair]
                a, b = pair
                e = min(loose[a] * loose[b], 0.99)
                habit = spans and (nearly[pair] - e) / (1 - e) < excess[pair] / 2
                if not habit and (value > 0.5 or expected[pair] < 0.65):
                    sure[pair] = value
        groups = joined(sure, family, least)
        for group in groups:
            for a in group:
                family[a] = min(group)
        for f in set(family):
            members = [a for a in range(n) if family[a] == f]
            known = [excess[pair] for pair in itertools.combinations(members, 2) if pair in excess]
            for a in members if known else []:
                repeats[a] = sum(known) / len(known)
        if not groups:
            return family, [min(max(c, 0.0), 1.0) for c in repeats]


def joined(sure: dict[tuple[int, int], float], family: list[int], least: float) -> list[set[int]]:
    """Who are joined in one round: around the strongest pair, or, where all are weak, threes and more one by one."""
    taken, groups = set[int](), list[set[int]]()

    def value(a: int, b: int) -> float:
        return -math.inf if a == b or taken & {a, b} else sure[min(a, b), max(a, b)]

    for a, b in sorted(sure, key=lambda pair: -sure[pair]):
        if sure[a, b] <= least:
            break
        group = {c for c in range(len(family)) if family[c] in (family[a], family[b])}
        while True:
            mean = {c: sum(value(d, c) for d in group) / len(group) for c in range(len(family)) if c not in group}
            nearest = max(mean, key=lambda c: mean[c], default=None)
            if nearest is None or mean[nearest] <= least:
                break
            group |= {c for c in range(len(family)) if family[c] == family[nearest]}
        if value(a, b) > 0.5 or (value(a, b) > least and len(group) > 2):
            groups.append(group)
            taken |= group
            if sure[a, b] > 0.5:
                break
    return groups

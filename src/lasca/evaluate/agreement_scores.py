"""Agreement between annotators: Krippendorff's alpha, Gwet's AC1, Fleiss' kappa, percent agreement.

With r_iq the number of annotators who gave token i label q, r_i = Σ_q r_iq, all nominal, missing annotations allowed:

- percent agreement p_a: mean over tokens with r_i ≥ 2 of Σ_q r_iq (r_iq − 1) / (r_i (r_i − 1));
- π_q: mean over tokens with r_i ≥ 1 of r_iq / r_i;
- Gwet's AC1 (Gwet 2008; 2014, ch. 2) (p_a − p_e) / (1 − p_e), p_e = Σ_q π_q (1 − π_q) / (Q − 1);
- Fleiss' kappa in Gwet's form for missing ratings, p_e = Σ_q π_q²;
- Krippendorff's alpha (Krippendorff 2011) 1 − D_o / D_e, over the n annotations of tokens with r_i ≥ 2:
  D_o = 1 − (1/n) Σ_i Σ_q r_iq (r_iq − 1) / (r_i − 1), D_e = 1 − Σ_q n_q (n_q − 1) / (n (n − 1)).

Q counts the labels somebody gave. Where chance agreement is 1 (one label only) kappa and alpha are not defined: nan.
All equal the published values for Krippendorff's reliability data of 4 coders and 12 units (alpha 0.743), which is
also cac.raw4raters of Gwet's irrCAC (AC1 0.77544, kappa 0.76117, p_a 0.81818).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasca.arrays import Array, Floats, Ints
from lasca.corpus import CrowdCorpus
from lasca.errors import CorpusError
from lasca.evaluate.token_scores import Plain

__all__ = ["Agreement", "adjusted_rand_index", "agreement", "krippendorff_alpha"]

BLOCK = 1 << 21  # annotations looked at together


@dataclass(frozen=True)
class Agreement(Plain):
    """How much annotators agree, beyond chance by three definitions of chance (nan where there is nothing to say)."""

    percent: float
    krippendorff_alpha: float
    gwet_ac1: float
    fleiss_kappa: float
    n_tokens: int
    """Tokens with at least two annotations: only these can show agreement."""
    n_single: int
    """Tokens with one annotation."""
    n_missing: int
    """Tokens without any."""
    n_labels: int
    """Labels somebody gave."""


@dataclass(frozen=True, eq=False)
class _Sums:
    """What the coefficients need, added up over tokens."""

    votes: Ints  # r_i
    agreeing: float  # Σ_i Σ_q r_iq (r_iq − 1) / (r_i (r_i − 1))
    coincident: float  # Σ_i Σ_q r_iq (r_iq − 1) / (r_i − 1)
    shares: Floats  # Σ_i r_iq / r_i
    paired: Floats  # annotations per label on tokens with r_i ≥ 2
    used: int  # labels somebody gave


def agreement(corpus: CrowdCorpus) -> Agreement:
    """Compute the coefficients over all tokens of a corpus (`corpus.crowd()` leaves models out)."""
    sums = _add_up(corpus)
    n_pairable = int((sums.votes >= 2).sum())
    n_single = int((sums.votes == 1).sum())
    percent = sums.agreeing / n_pairable if n_pairable else float("nan")
    pi = sums.shares / max(n_pairable + n_single, 1)
    by_chance = float((pi * (1 - pi)).sum()) / (sums.used - 1) if sums.used > 1 else 0.0
    n = float(sums.paired.sum())
    expected = 1 - float((sums.paired * (sums.paired - 1)).sum()) / (n * (n - 1)) if n > 1 else 0.0
    observed = 1 - sums.coincident / n if n else float("nan")
    return Agreement(
        percent=percent,
        krippendorff_alpha=1 - observed / expected if expected > 0 else float("nan"),
        gwet_ac1=_beyond(percent, by_chance),
        fleiss_kappa=_beyond(percent, float((pi * pi).sum())),
        n_tokens=n_pairable,
        n_single=n_single,
        n_missing=int((sums.votes == 0).sum()),
        n_labels=sums.used,
    )


def krippendorff_alpha(corpus: CrowdCorpus) -> float:
    """Return Krippendorff's nominal alpha alone."""
    return agreement(corpus).krippendorff_alpha


def _beyond(observed: float, by_chance: float) -> float:
    return (observed - by_chance) / (1 - by_chance) if by_chance < 1 - 1e-12 else float("nan")


def _add_up(corpus: CrowdCorpus) -> _Sums:
    n_labels = max(corpus.n_labels, 1)
    votes = np.diff(corpus.token_start)
    agreeing = coincident = 0.0
    shares, paired, used = np.zeros(n_labels), np.zeros(n_labels), np.zeros(n_labels, np.bool_)
    tokens_at = np.searchsorted(corpus.token_start, np.arange(0, corpus.n_annotations + BLOCK, BLOCK), side="left")
    bounds = np.unique(np.concatenate(([0], np.minimum(tokens_at, corpus.n_tokens), [corpus.n_tokens])))
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist()):
        part = slice(int(corpus.token_start[first]), int(corpus.token_start[last]))
        token = np.repeat(np.arange(last - first, dtype=np.int64), votes[first:last])
        key, count = np.unique(token * n_labels + corpus.annotation_label[part], return_counts=True)
        label, r = key % n_labels, votes[first:last][key // n_labels]
        used[label] = True
        shares += np.bincount(label, weights=count / r, minlength=n_labels)
        several = r >= 2
        pairs = (count * (count - 1))[several] / (r[several] - 1)
        coincident += float(pairs.sum())
        agreeing += float((pairs / r[several]).sum())
        paired += np.bincount(label[several], weights=count[several], minlength=n_labels)
    return _Sums(votes, agreeing, coincident, shares, paired, int(used.sum()))


def adjusted_rand_index(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return how alike two clusterings are (Hubert & Arabie 1985): 1 = the same, 0 = as alike as by chance.

    Takes one cluster name or number per thing.
    """
    a, b = np.asarray(first), np.asarray(second)
    if a.shape != b.shape or a.ndim != 1:
        raise CorpusError("two clusterings must name one cluster for each thing", got=(a.shape, b.shape))
    rows, columns = np.unique(a, return_inverse=True)[1], np.unique(b, return_inverse=True)[1]
    table = np.unique(rows * (columns.max(initial=0) + 1) + columns, return_counts=True)[1]
    together = _pairs(table)
    in_first, in_second = _pairs(np.bincount(rows)), _pairs(np.bincount(columns))
    total = _pairs(np.array([len(a)]))
    by_chance = in_first * in_second / total if total else 0.0
    most = (in_first + in_second) / 2
    return 1.0 if most == by_chance else (together - by_chance) / (most - by_chance)


def _pairs(counts: Array) -> float:
    return float((counts * (counts - 1)).sum()) / 2

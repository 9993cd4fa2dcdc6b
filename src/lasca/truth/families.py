"""Families: annotators who repeat each other – copies, prompts of one language model, one person with two accounts.

Five copies outvote everybody, and a truth inferred with them finds them right: so families must be found without a
truth. If annotators err independently given the truth, the agreement of a pair,

    C_lm = (marks on which both say the same) / √(marks of l · marks of m)            on the tokens both labelled,

(where neither gives a kind that the other never gives: who looks for persons only does not differ from who looks for
places only, nor do those with one tag set repeat each other because others have another)
is a product g_l g_m, where g is how good an annotator is (√(recall · precision)): good annotators agree with each other
often because they agree with *everybody* more often. Copies do not: they agree with each other far more than what
their agreement with the others lets expect. g is fitted to all pairs by medians, so that the pairs of a family, which
are few of anybody's pairs, do not count; common errors and difficult tokens raise all agreement alike and go into g.

    c = (C_lm − g_l g_m) / (1 − g_l g_m)              how often l and m repeat each other beyond that

Pairs whose c is clearly above `LEAST` are joined, with whoever repeats them in the mean; so are three and more who are
above `LEAST_OF_THREE`. Then g is fitted anew, and so on. How far c strays by itself is seen from all pairs; a family's
c is the mean over its pairs. In the fit of g a family of k is √k others: copies must not say what everybody else is
worth, nor may a family that is not found yet be the majority because another one was. It takes four annotators who
meet to say anything.
Who marks the last word of a name only, or the title with it, agrees with those who have the same *habit* and repeats
nobody. So c is asked for once more, with marks of one kind that overlap as the same. What copies repeat they repeat
then, too; where less than half of c stays it was a habit.
A family of k members that vote on a token with repetition c weighs there as k / (1 + (k − 1) c) annotators, the number
of independent ones whose mean is as sure as that of k with correlation c (the design effect of surveys): exact copies
weigh as one, and seven prompts of one model that repeat each other four times in ten as two. (A latent vote per family,
of which members give copies, would be the whole model; weights are its first order and cost nothing.)

What cannot be told from votes: two experts beside a crowd that misses what is hard agree just as copies do. They weigh
less than they should then, and a warning names them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lasca.arrays import Bools, Floats, Ints
from lasca.corpus.votes import Block
from lasca.kernels.rows import pair_counts
from lasca.truth.evidence import RowCounts

__all__ = ["Families", "Pairs", "declared_families", "find_families"]

LEAST, LEAST_OF_THREE = 0.5, 0.15
"""How often two members of a family repeat each other at least; and, where spans are marked, how often three or more
do: two may agree because their texts are alike. (Where every token has a label the good agree more than g g says, being
right together on what is easy: the second number is not for them.)"""
GOOD = 0.65
"""Whose expected agreement is above this agree because they are right, if they repeat each other less than `LEAST`."""
MARKS = 40
"""How many marks of both it takes to say anything of a pair."""
CERTAIN = 3.0
"""How many standard errors c must be above `LEAST`."""
OTHERS = 3
"""With how many an annotator must have met to know how good they are."""
MOST_ANNOTATORS = 3000
"""With more annotators than this pairs are not tried: the table of pairs would not fit."""
QUANTILE = 0.4
"""Below a half: families only ever raise agreement, so the lower half of anybody's pairs is the honest one."""
SWEEPS, STEPS = 20, 50
STAYS = 0.5
"""The share of c that stays where marks that overlap are the same; where less does people have a habit in common."""
CLEARLY = 0.5
"""Another fit of g is taken if it leaves less than this share of what the first one leaves unexplained."""


@dataclass(frozen=True)
class Families:
    """Who belongs together (one number per annotator, the smallest member's), and how often they repeat each other."""

    family: Ints
    repeats: Floats
    """By annotator: c of the family, 0 for those who are alone."""
    knows: Bools | None = None
    """(annotator, label): whether they give labels of this kind at all; None: everybody gives all."""
    outside: int = -1
    """The label O, if there is one."""

    def members(self) -> list[list[int]]:
        """Return the families of two and more."""
        order = np.argsort(self.family, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(self.family[order])) + 1)
        return [group.tolist() for group in groups if len(group) > 1]

    @property
    def thin(self) -> bool:
        """Whether `one_each` leaves any votes out."""
        return self.knows is not None or bool(self.members())

    def counts_as(self, members: Sequence[int]) -> float:
        """Return as how many annotators a family counts where all of it votes."""
        k = len(members)
        return float(k / (1.0 + (k - 1) * self.repeats[members[0]]))

    def weights(self, block: Block) -> Floats:
        """Return the weight of each vote of a block."""
        if not self.members():
            return np.ones(block.n_votes)
        _, annotator, pair = self._pairs(block)
        _, place, size = np.unique(pair, return_inverse=True, return_counts=True)
        k = size[np.asarray(place).reshape(-1)]
        return np.asarray(1.0 / (1.0 + (k - 1) * self.repeats[annotator]))

    @property
    def partial(self) -> Bools:
        """Return who does not give all kinds of labels: their O says little."""
        if self.knows is None:
            return np.zeros(len(self.family), np.bool_)
        marks = np.arange(self.knows.shape[1]) != self.outside
        return np.asarray(~self.knows[:, marks].all(axis=1))

    def unaware(self, block: Block) -> Bools:
        """Say which votes say nothing: O, of who gives none of the kinds of labels that others give on the token."""
        token, annotator, label = block.token, block.votes.annotator[block.hard], block.votes.label[block.hard]
        found, none = np.zeros(block.n_votes, np.bool_), np.asarray(label == self.outside)
        if self.knows is None or none.all():
            return found
        given = np.zeros((len(block), block.votes.n_labels), np.bool_)
        given[token[~none], label[~none]] = True
        asked = np.flatnonzero(none & self.partial[annotator] & np.asarray(given.any(axis=1))[token])
        found[asked] = ~(given[token[asked]] & self.knows[annotator[asked]]).any(axis=1)
        return found

    def _pairs(self, block: Block) -> tuple[Any, Any, Any]:
        """Return the token, the annotator, and the pair of token and family of each vote."""
        votes = block.votes
        token, annotator = block.token, votes.annotator[block.hard]
        return token, annotator, token * votes.n_annotators + self.family[annotator]

    def one_each(self, block: Block) -> Block:
        """Return a block with one vote of each family on a token: that of the member who comes first."""
        return self.first_of(block, ~self.unaware(block)) if self.thin else block

    def first_of(self, block: Block, heard: Bools) -> Block:
        """Return a block with the first vote of each family on a token, among those that are heard."""
        block, heard_votes = block.alone(), np.flatnonzero(heard)
        votes, (_, _, pair) = block.votes, self._pairs(block)
        _, first = np.unique(pair[heard_votes], return_index=True)
        stays = np.zeros(votes.n_hard, np.bool_)
        stays[heard_votes[first]] = True
        return replace(block, votes=votes.only(stays))


def declared_families(declared: Sequence[str | None]) -> Families:
    """Return the families that were declared; their members are taken to repeat each other always."""
    family, repeats = np.arange(len(declared)), np.zeros(len(declared))
    for name in {f for f in declared if f is not None}:
        members = [annotator for annotator, f in enumerate(declared) if f == name]
        family[members], repeats[members] = members[0], float(len(members) > 1)
    return Families(family, repeats)


@dataclass(frozen=True)
class Pairs:
    """Asks blocks how often two annotators say the same; `outside` marks nothing (-1: there is no such label)."""

    outside: int
    knows: Bools
    """(annotator, label): whether they give labels of this kind at all. What one never gives tells no pair apart."""
    kind_of: Ints
    """The kind of each label."""

    def summarise(self, block: Block) -> tuple[RowCounts]:
        """Count, for each pair that met, the same marks and the marks of the first, as one row."""
        votes, n = block.votes, block.votes.n_annotators
        same, marks, near = np.zeros((3, n, n))
        said = block.start, votes.annotator, votes.label
        pair_counts(*said, self.outside, self.knows, self.kind_of, np.zeros(n, np.int64), same, marks, near)
        met = np.flatnonzero(marks)
        return (RowCounts(n * n, met, np.stack([c.ravel()[met] for c in (same, marks, near)], axis=1)),)


def find_families(
    asked: Callable[[Pairs], tuple[RowCounts]],
    declared: Sequence[str | None],
    outside: int,
    knows: Bools,
    kind_of: Ints,
) -> Families:
    """Find families beside those that are declared; `asked` asks all blocks and adds up what they say."""
    known = declared_families(declared)
    n = len(declared)
    if not OTHERS < n <= MOST_ANNOTATORS:
        return known
    same, marks, near = np.ascontiguousarray(asked(Pairs(outside, knows, kind_of))[0].table().T).reshape(3, n, n)
    agreement, size = _agreement(same, marks)
    nearly, _ = _agreement(near, marks)
    family, repeats = known.family.copy(), known.repeats.copy()
    while True:
        excess, sure = _excess(agreement, size, family)
        if outside >= 0:
            habit = _excess(nearly, size, family)[0] < STAYS * excess
            sure = np.where(habit, -np.inf, sure)
        groups = _groups(np.maximum(sure, sure.T), family, spans=outside >= 0)
        for group in groups:
            family[group] = group.min()
        for members in Families(family, repeats).members():
            pairs = excess[np.ix_(members, members)][np.triu_indices(len(members), 1)]
            if not np.isnan(pairs).all():  # with few others left g is not known any more: what was found stays
                repeats[members] = np.nanmean(pairs)
        if not groups:
            return Families(family, np.clip(repeats, 0.0, 1.0))


def _groups(sure: Floats, family: Ints, *, spans: bool) -> list[Ints]:
    """Return who are to be joined: those who most clearly repeat each other, with whoever repeats them in the mean.

    Beside strong families, which distort everything, weaker ones are not looked for yet.
    """
    least = LEAST_OF_THREE if spans else LEAST
    free, groups = sure.copy(), []
    for pair in np.argsort(-np.triu(sure), axis=None, kind="stable"):
        one, other = divmod(int(pair), len(sure))
        if other <= one or sure[one, other] <= least:
            break
        inside = np.isin(family, family[[one, other]])
        while (near := np.where(inside, -np.inf, free[inside].mean(axis=0))).max() > least:
            inside |= family == family[near.argmax()]
        if free[one, other] > LEAST or (free[one, other] > least and inside.sum() > 2):
            groups.append(np.flatnonzero(inside))
            free[inside] = free[:, inside] = -np.inf
            if sure[one, other] > LEAST:
                break
    return groups


def _excess(agreement: Floats, size: Floats, family: Ints) -> tuple[Floats, Floats]:
    """Return c of each pair (nan: cannot be said), and what it is surely above for pairs of two families (else −∞)."""
    quality = _quality(agreement, size, family)
    expected = np.minimum(quality[:, None] * quality[None, :], 0.99)
    met = (size >= MARKS) & ~np.isnan(expected)
    tried = np.triu(met, 1) & (family[:, None] != family[None, :])
    excess = np.where(met, (agreement - expected) / (1 - expected), np.nan)
    if tried.sum() < OTHERS:
        return excess, np.full_like(excess, -np.inf)
    spread = np.sqrt(np.maximum(agreement * (1 - agreement), 0.05) / np.maximum(size, 1)) / (1 - expected)
    usual = float(np.median(np.abs(excess[tried] / spread[tried]))) / 0.6745  # texts differ, and so do pairs
    sure = np.where(tried, excess - CERTAIN * max(1.0, usual) * spread, -np.inf)
    return excess, np.where((sure > LEAST) | (expected < GOOD), sure, -np.inf)


def _agreement(same: Floats, marks: Floats) -> tuple[Floats, Floats]:
    """Return C and the number of marks it rests on, for each pair; the diagonal says nothing."""
    both = (same + same.T) / 2
    size = np.sqrt(marks * marks.T)
    np.fill_diagonal(size, 0)
    return np.where(size > 0, np.minimum(both / np.maximum(size, 1), 1.0), 0.0), size


def _quality(agreement: Floats, size: Floats, family: Ints) -> Floats:
    """Fit g_l g_m to the agreement of pairs by medians; nan for those who met too few others.

    Members of one family are no pairs, and a family of k counts as √k others. Medians rest where they begin if half of
    the pairs say nothing, as those of lazy people do: so they begin twice, where all are alike and at least squares,
    which copies may mislead. The second fit is taken where it clearly explains more.
    """
    usable = (size >= MARKS / 2) & (family[:, None] != family[None, :])
    known = np.array([len(np.unique(family[row])) >= OTHERS for row in usable])
    usable &= known[:, None] & known[None, :]
    if not usable.any():
        return np.full(len(family), np.nan)
    alike = np.where(known, np.sqrt(max(float(np.median(agreement[usable])), 0.01)), np.nan)
    share = 1.0 / np.sqrt(np.bincount(family, minlength=len(family))[family])
    first, second = (
        _by_medians(start, agreement, size, share, usable) for start in (alike, _least_squares(agreement, usable))
    )
    left = [np.abs(np.sqrt(agreement) - np.sqrt(g[:, None] * g[None, :]))[usable].sum() for g in (first, second)]
    return second if left[1] < CLEARLY * left[0] else first


def _by_medians(quality: Floats, agreement: Floats, size: Floats, share: Floats, usable: Bools) -> Floats:
    """Fit g from a start, one after the other; of those who are not known (nan) nothing is said."""
    known = np.flatnonzero(~np.isnan(quality))
    for _ in range(SWEEPS):
        before = quality
        quality = np.full_like(before, np.nan)
        for one in known:
            others = np.flatnonzero(usable[one])
            if len(others):
                ratio = agreement[one, others] / np.maximum(before[others], 0.05)
                quality[one] = _median(ratio, size[one, others], share[others])
        quality = np.clip(np.sqrt(quality * before), 0.05, 1.0)  # half a step in logs: full ones swing
    return quality


def _least_squares(agreement: Floats, usable: Bools) -> Floats:
    """Return the g whose products are nearest to the agreement of pairs; nan for those who have none."""
    known, weight = usable.any(axis=1), usable.astype(np.float64)
    quality = known.astype(np.float64)
    for _ in range(STEPS):
        best = (weight * agreement) @ quality / np.maximum(weight @ quality**2, 1e-9)
        quality = np.sqrt(quality * best)
    return np.where(known, np.clip(quality, 0.05, 1.0), np.nan)


def _median(values: Floats, size: Floats, share: Floats) -> float:
    """Return the weighted median; everybody's size has a limit, so that one busy copy is not the majority."""
    weights = np.minimum(size, 2 * np.median(size)) * share
    order = np.argsort(values, kind="stable")
    covered = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(covered, QUANTILE * covered[-1])])

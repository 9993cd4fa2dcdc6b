"""What a truth does not know, said in words: checks without gold whose results are `truth.warnings`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lasca.truth.guards import kinds_of_marks

if TYPE_CHECKING:
    from lasca.truth.finish import Tally
    from lasca.truth.guards import Crowd
    from lasca.truth.robust_chain import ChainFit, Structure

__all__ = ["check_average", "check_truth"]

OFTEN = 0.01
"""A label is given often if this share of the marks (of the votes, where there is no O) is for it."""
OVERRULED = 0.001
"""Share of tokens on which the text may overrule people without a word."""
APART = 0.15
"""Share of marked tokens on which members may differ without a word."""
HELD = 0.7
"""Nats that may be needed to hold a rate without a word."""
RATE = 2.0
"""By how much the inferred share of a label may leave the range of annotators' own shares."""


def check_truth(labels: Sequence[str], tally: Tally) -> tuple[str, ...]:
    """Check what any model inferred: labels that are never inferred, rates nobody supports, too few votes."""
    n_voted = int(tally.per_token[1:].sum())
    if not n_voted:
        return ()
    said: list[str] = []
    outside = labels.index("O") if "O" in labels else -1
    given = tally.own.sum(axis=0)
    marks = given.sum() - (given[outside] if outside >= 0 else 0)
    for t in np.flatnonzero((tally.inferred == 0) & (given >= 20) & (given > OFTEN * max(marks, 1))).tolist():
        said.append(f"label {labels[t]!r} was given {given[t]:,} times and is never inferred")
    said += _rates(labels, tally, n_voted)
    single = tally.per_token[1] / n_voted
    if single > 0.5:
        said.append(
            f"{single:.0%} of the tokens have one vote only: who is right cannot be told from the votes there; "
            "give more texts to two annotators"
        )
    return tuple(said)


def _rates(labels: Sequence[str], tally: Tally, n_voted: int) -> list[str]:
    """Compare, on the tokens of each annotator, how often a label is inferred with how often it was given."""
    active = tally.own.sum(axis=1) >= 100
    said: list[str] = []
    if active.sum() < 3:
        return said
    for t, label in enumerate(labels):
        if tally.inferred[t] < max(20, 0.005 * n_voted):
            continue
        ratio = (tally.true[active, t] + 1.0) / (tally.own[active, t] + 1.0)
        if ratio.min() > RATE:
            said.append(
                f"label {label!r} is inferred {ratio.min():.1f} times as often as any annotator gave it: "
                "check a sample before you trust it"
            )
    return said


def check_average(
    crowd: Crowd,
    fits: Sequence[tuple[Structure, ChainFit]],
    families: Mapping[tuple[str, ...], float],
    labels: npt.NDArray[np.int16],
    without_text: npt.NDArray[np.int16],
) -> tuple[str, ...]:
    """Check an average of chains: convergence, families (and as how many they count), rates, text against people."""
    said: list[str] = []
    late = [structure.name for structure, fit in fits if not fit.converged]
    if len(late) == len(fits):
        said.append(f"not converged after {max(len(fit.trace) for _, fit in fits)} iterations: raise max_iter")
    for names, weight in families.items():
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        said.append(
            f"{shown} repeat each other more than independent annotators would: together they count as {weight:.1f}"
        )
    weight = np.mean([fit.held for _, fit in fits], axis=0)
    held = [
        "what is marked" if kind is None else kind or "spans without a type"
        for kind, nats in zip(kinds_of_marks(crowd.corpus.labels), weight)
        if nats > HELD
    ]
    if held:
        what = ", ".join(held)
        said.append(
            f"the votes alone would have most annotators miss most of {what}; its share was held at what annotators "
            "support"
        )
    votes = crowd.votes
    voted = np.diff(votes.start) > 0
    changed = (labels != without_text) & voted
    if changed.any():
        top = np.zeros((votes.n_tokens, votes.n_labels), np.int32)
        np.add.at(top, (crowd.token, votes.label), 1)
        against = (
            changed
            & (top[np.arange(len(labels)), without_text] == top.max(axis=1))
            & (top[np.arange(len(labels)), labels] < top.max(axis=1))
        )
        share = against.sum() / voted.sum()
        if share > OVERRULED:
            said.append(f"the text overrules the most frequent vote on {against.sum():,} tokens ({share:.1%})")
    said += _apart(crowd, fits)
    return tuple(said)


def _apart(crowd: Crowd, fits: Sequence[tuple[Structure, ChainFit]]) -> list[str]:
    best = np.stack([fit.labels.argmax(axis=1) for _, fit in fits])
    marked = (best != crowd.outside).any(axis=0) & (np.diff(crowd.votes.start) > 0)
    if marked.sum() < 50:
        return []
    apart = float((best[:, marked] != best[:1, marked]).any(axis=0).mean())
    if apart <= APART:
        return []
    return [
        f"the models that are averaged differ on {apart:.0%} of the marked tokens: what to believe depends on the "
        "model; look at the queue"
    ]

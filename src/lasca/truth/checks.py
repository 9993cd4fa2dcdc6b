"""What a truth does not know, said in words: checks without gold whose results are `truth.warnings`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lasca.errors import count

if TYPE_CHECKING:
    from lasca.truth.finish import Tally

__all__ = ["HELD", "RAISED", "check_average", "check_end", "check_truth"]

OFTEN = 0.01
"""A label is given often if this share of the marks (of the votes, where there is no O) is for it."""
OVERRULED = 0.001
"""Share of tokens on which the text may overrule people without a word."""
APART = 0.15
"""Share of marked tokens on which members may differ without a word."""
FEW = 50
"""From fewer marked tokens than this nothing is said of members."""
HELD = 0.7
"""Nats that may be needed to hold a rate without a word."""
RAISED = 0.05
"""Nats that may be needed to hold it from below. (They count on every token of a span.)"""
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
            f"{100 * single:.0f} % of the tokens have one vote only: who is right cannot be told from the votes there; "
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


def check_end(diagnostics: Mapping[str, Any]) -> tuple[str, ...]:
    """Say that a model stopped before it converged; of an average of members `check_average` says so."""
    if diagnostics.get("converged") is not False or "members" in diagnostics:
        return ()
    return (
        f"the inference stopped before it converged ({diagnostics.get('iterations', 'all')} iterations): take the "
        "numbers as a first impression, or raise max_iter",
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def check_average(
    late: int,
    held: Sequence[str],
    raised: Sequence[str],
    families: Mapping[tuple[str, ...], float],
    never: Mapping[str, Sequence[str]],
    sums: Sequence[int],
) -> tuple[str, ...]:
    """Say what is to be said of an average of chains.

    `late`: iterations after which no member converged (0: some did); `held`, `raised`: kinds of marks that were held
    back, and that were held up; `families` and as how many each counts; `never`: which kinds an annotator never gives;
    `sums`: on how many tokens anybody voted, the text overrules the most frequent vote, any member marks something, and
    members differ on that.
    """
    said: list[str] = []
    n_voted, n_against, n_marked, n_apart = sums
    if late:
        said.extend(check_end({"converged": False, "iterations": late}))
    for names, weight in families.items():
        said.append(
            f"the annotators {_some(names)} repeat each other more than independent ones would: together they count as "
            f"{weight:.1f} of them"
        )
    for kinds in dict.fromkeys(map(tuple, never.values())):
        who = [name for name, own in never.items() if tuple(own) == kinds]
        said.append(
            f"never given by {_some(who)}, though by others: {', '.join(kinds)}. They are taken not to look for "
            "this: their O is no word against it"
        )
    if held:
        said.append(
            f"the model alone would find far more of this than any annotator did: {', '.join(held)}. It was held near "
            "what they marked; check a sample before you trust it"
        )
    if raised:
        said.append(
            "annotators agree so little on this that the model alone would drop nearly all of it: "
            f"{', '.join(raised)}. It was held near what most of them mark; check a sample before you trust it"
        )
    if n_against > OVERRULED * n_voted:
        said.append(
            f"the text overrules the most frequent vote on {count(n_against, 'token')} "
            f"({100 * n_against / n_voted:.1f} %)"
        )
    if n_marked >= FEW and n_apart > APART * n_marked:
        said.append(
            f"the models that are averaged differ on {100 * n_apart / n_marked:.0f} % of the marked tokens: what to "
            "believe depends on the model; look at the queue"
        )
    return tuple(said)

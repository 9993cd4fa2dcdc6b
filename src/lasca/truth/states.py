"""The states of the chain behind the labels: one per label, or a single-token span apart from the beginning of one.

A chain over labels cannot know, when it says B-PER, whether the span goes on. Yet a name of one token is another thing
than the beginning of a longer one: other words (surnames alone), other mistakes (more often missed). With `singles`
an IOB2 label B-X is two states, S-X (the whole span) and B-X (I-X must follow); both *show* as B-X.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lasca.schemes import detect, split_label, transitions

__all__ = ["States", "label_states", "single_states"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class States:
    """The states of a chain, which label each shows as, and which may come first, follow which, and come last."""

    names: tuple[str, ...]
    shows: npt.NDArray[np.int64]
    first: Bools
    allowed: Bools
    last: Bools

    def by_label(self, proba: npt.NDArray[np.float64], n_labels: int) -> npt.NDArray[np.float64]:
        """Add up the columns of states that show as the same label."""
        if len(self.shows) == n_labels:
            return proba
        out = np.zeros((len(proba), n_labels))
        for k, label in enumerate(self.shows):
            out[:, label] += proba[:, k]
        return out


def label_states(labels: Sequence[str], constrained: bool = True) -> States:
    """Return one state per label, with the rules of the tag scheme, or none."""
    return States(tuple(labels), np.arange(len(labels)), *transitions(labels, "auto" if constrained else None))


def single_states(labels: Sequence[str], constrained: bool = True) -> States:
    """Return the states with single-token spans apart; those of the labels where that is not possible.

    It is possible for IOB2 labels (BIOES labels have them apart already), with the scheme's rules, for the types that
    have both B and I.
    """
    plain = label_states(labels, constrained)
    if not constrained or detect(labels) != "IOB2":
        return plain
    part = [split_label(label) for label in labels]
    goes_on = [t for t, (letter, type_) in enumerate(part) if letter == "B" and ("I", type_) in part]
    shows = np.concatenate((plain.shows, goes_on)).astype(np.int64)
    first, last = plain.first[shows], plain.last[shows]
    allowed = plain.allowed[np.ix_(shows, shows)]
    names = list(labels)
    for k, t in enumerate(goes_on, start=len(labels)):
        inside = part.index(("I", part[t][1]))
        names.append("S-" + part[t][1] if part[t][1] else "S")
        allowed[k, inside] = False  # the single one ends here
        allowed[t] = False  # the other one must go on
        allowed[t, inside] = True
        last[t] = False
    return States(tuple(names), shows, first, allowed, last)

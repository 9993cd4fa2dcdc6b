"""What an earlier truth counted, in the numbers of another corpus: `fit(history=)`.

Its statistics stay as they were and act as counts that were seen before: one sweep of incremental EM (Neal & Hinton
1998) over the new tokens alone. Labels and annotators are matched by name: a label that is gone is refused, somebody
who is gone is left out, and new ones have no past.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lasca.arrays import Floats, Ints
from lasca.corpus import CrowdCorpus
from lasca.errors import ModelError
from lasca.truth.result import Truth

__all__ = ["History"]


@dataclass(frozen=True)
class History:
    """An earlier truth, and where its labels and annotators are in a corpus."""

    truth: Truth
    n_labels: int
    n_annotators: int
    label: Ints
    """The code of each label of the truth in the corpus."""
    old: Ints
    """The annotators of the truth whom the corpus knows."""
    new: Ints
    """And which ones they are there."""

    @classmethod
    def of(cls, truth: Truth, corpus: CrowdCorpus, needs: str) -> History:
        """Match by name; the truth must hold the statistics `needs`, and the corpus must have all its labels."""
        if needs not in truth.statistics:
            raise ModelError("this truth holds no statistics to go on from", hint="Fit it anew with this version")
        lost = [name for name in truth.label_names if name not in corpus.labels]
        if lost:
            raise ModelError(
                "the history has labels that the corpus does not have", got=", ".join(lost), hint="Name them: labels="
            )
        label = np.array([corpus.labels.index(name) for name in truth.label_names])
        code = {name: i for i, name in enumerate(corpus.annotators)}
        who = np.array([code.get(name, -1) for name in truth.annotators.column("name").to_pylist()], np.int64)
        old = np.flatnonzero(who >= 0)
        return cls(truth, corpus.n_labels, corpus.n_annotators, label, old, who[old])

    def counts(self, name: str, axes: str) -> Floats:
        """Return counts of the truth with the codes of the corpus, 0 for what is new there.

        `axes` has a letter for each of their dimensions: "a" for annotators, "t" for labels, "." for what is no code.
        """
        kept, labels = self.truth.statistics[name], np.arange(len(self.label))
        known = {"a": (self.old, self.new, self.n_annotators), "t": (labels, self.label, self.n_labels)}
        old, new, shape = zip(*(known.get(x, (np.arange(n), np.arange(n), n)) for x, n in zip(axes, kept.shape)))
        found = np.zeros(shape)
        found[np.ix_(*new)] = kept[np.ix_(*old)]
        return found

"""SuffixText: a text model for truth models, and no tagger: the labels of a word's last letters."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from lasca.corpus import CrowdCorpus


class SuffixText:
    """The mean of the labels of words that end alike. Parameter: `n`, how many letters."""

    def __init__(self, *, n: int = 2) -> None:
        self.n = n

    def prepare(self, corpus: CrowdCorpus, n_threads: int | None = None) -> SuffixTask:
        """Look at the ends of the words."""
        return SuffixTask(corpus.offsets, [word[-self.n :] for word in corpus.tokens], corpus.n_labels)


class SuffixTask:
    """The ends of the words of a corpus."""

    def __init__(self, offsets: Any, ends: list[str], n_labels: int) -> None:
        self.offsets, self.ends, self.n_labels = offsets, ends, n_labels

    def _tokens(self, sequences: Any) -> list[int]:
        return [i for s in sequences for i in range(self.offsets[s], self.offsets[s + 1])]

    def fit(self, targets: Any, sequences: Any, before: Any = None) -> dict[str, Any]:
        """Add up the probabilities of each end."""
        sums: dict[str, Any] = defaultdict(lambda: np.ones(self.n_labels))
        for i in self._tokens(sequences):
            sums[self.ends[i]] = sums[self.ends[i]] + targets[i]
        return sums

    def predict(self, learned: dict[str, Any], sequences: Any, out: Any) -> None:
        """Write the shares."""
        for i in self._tokens(sequences):
            out[i] = learned[self.ends[i]] / learned[self.ends[i]].sum()

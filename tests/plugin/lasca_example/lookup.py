"""LookupTagger: every word has the label it had most often."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lasca.files import whole_folder
from lasca.tagger import Tagger


class LookupTagger(Tagger):
    """A dictionary of words. Parameter: `unknown`, the label of words that were never seen (None: the commonest)."""

    kind = "lookup"
    labels: tuple[str, ...] = ()  # the columns of predict_proba

    def __init__(self, *, unknown: str | None = None) -> None:
        self.unknown = unknown
        self.table: dict[str, str] = {}
        self.usual = ""

    def _check(self) -> None:
        pass

    def _learn(self, examples: Any, progress: Any) -> None:
        seen: dict[str, Counter[str]] = defaultdict(Counter)
        self.labels = examples.labels
        for word, code in zip(examples.tokens, examples.targets.tolist()):
            if code >= 0:
                seen[word][examples.labels[examples.active[code]]] += 1
        self.table = {word: max(sorted(counts), key=counts.__getitem__) for word, counts in seen.items()}
        total = sum(seen.values(), Counter())
        self.usual = self.unknown or max(sorted(total), key=total.__getitem__)

    def predict(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        return [[self.table.get(word, self.usual) for word in sentence] for sentence in sentences]

    def predict_proba(self, sentences: Sequence[Sequence[str]]) -> list[Any]:
        return [np.eye(len(self.labels))[[self.labels.index(x) for x in row]] for row in self.predict(sentences)]

    def save(self, path: str | Path, *, overwrite: bool = False, card: str | None = None) -> None:
        record = {"kind": self.kind, "table": self.table, "labels": self.labels, "usual": self.usual}
        record |= self.get_params()
        with whole_folder(path, overwrite=overwrite) as folder:
            if card is not None:
                (folder / "model-card.md").write_text(card, encoding="utf-8")
            (folder / "tagger.json").write_text(json.dumps(record), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> LookupTagger:
        record = json.loads((Path(path) / "tagger.json").read_text(encoding="utf-8"))
        made = cls(unknown=record["unknown"])
        made.table, made.labels, made.usual = record["table"], tuple(record["labels"]), record["usual"]
        return made

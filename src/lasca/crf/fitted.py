"""What fitting a tagger leaves behind: labels, features, weights, the rules of the tag scheme; saved and loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from lasca.crf.decode import Constraint
from lasca.crf.extract import Extractor
from lasca.crf.space import Weights
from lasca.crf.store import load_model, save_model
from lasca.errors import ModelError, StoreError

__all__ = ["Fitted"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted model; `active` are the corpus labels the weights know, in their order."""

    labels: tuple[str, ...]
    active: Array
    extractor: Extractor
    weights: Weights
    constraint: Constraint | None

    def save(self, folder: Path, parameters: dict[str, Any]) -> None:
        """Write the model into a folder that exists, with the parameters of its estimator."""
        header = {"labels": list(self.labels), "active": self.active.tolist(), "parameters": parameters}
        if self.constraint is not None:
            rule = self.constraint
            header["constraint"] = [rule.moves.tolist(), rule.first.tolist(), rule.last.tolist()]
        save_model(folder, self.extractor, self.weights, header)

    @classmethod
    def load(cls, path: str | Path) -> tuple[Self, dict[str, Any]]:
        """Read a model that `save` wrote, and the parameters of its estimator. Nothing in the folder is trusted."""
        extractor, weights, header = load_model(path)
        try:
            labels = tuple(str(name) for name in header["labels"])
            active = np.array(header["active"], dtype=np.int64).reshape(-1)
            inside = len(active) == weights.space.n_labels and len(set(active.tolist())) == len(active)
            if not inside or (len(active) and not 0 <= active.min() <= active.max() < len(labels)):
                raise StoreError("the labels and the weights of the tagger differ", where=str(path))
            rule = header.get("constraint")
            constraint = None if rule is None else Constraint(*(np.array(part, dtype=np.bool_) for part in rule))
            if constraint is not None and len(constraint.first) != len(active):
                raise StoreError("the constraint and the labels of the tagger differ", where=str(path))
            parameters = dict(header["parameters"])
        except (KeyError, TypeError, ValueError, OverflowError, ModelError) as error:
            raise StoreError("the saved tagger is damaged", where=str(path), got=str(error)) from error
        return cls(labels, active, extractor, weights, constraint), parameters

"""Taggers behind scikit-learn's interface: lists of token lists in, lists of label lists out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from lasca import evaluate, schemes
from lasca.corpus import CrowdCorpus
from lasca.errors import ModelError
from lasca.estimator import Estimator
from lasca.tagger.base import Tagger
from lasca.tagger.crf_tagger import CrfTagger

__all__ = ["SequenceTagger"]


class SequenceTagger(Estimator):
    """A tagger that scikit-learn's cross-validation and searches accept: `fit(X, y)`, `predict(X)`, `score(X, y)`.

    X is a list of token lists, y a list of label lists (None where a label is unknown).

    Parameters:
        tagger: the tagger to use, as a recipe: it is copied, never fitted itself. None is CrfTagger(). Its parameters
            are reached as `tagger__NAME`.
    """

    def __init__(self, tagger: Tagger | None = None) -> None:
        self.tagger = tagger

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; those of the tagger as `tagger__NAME`."""
        own: dict[str, Any] = {"tagger": self.tagger}
        if deep and self.tagger is not None:
            own |= {f"tagger__{name}": value for name, value in self.tagger.get_params().items()}
        return own

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name; a parameter of the tagger changes a copy of it."""
        inner = {k.removeprefix("tagger__"): v for k, v in params.items() if k.startswith("tagger__")}
        super().set_params(**{k: v for k, v in params.items() if not k.startswith("tagger__")})
        if inner:
            self.tagger = self._copy().set_params(**inner)
        return self

    def _copy(self) -> Tagger:
        recipe = CrfTagger() if self.tagger is None else self.tagger
        return type(recipe)(**recipe.get_params())

    def fit(self, X: Sequence[Sequence[str]], y: Sequence[Sequence[str | None]]) -> Self:
        """Learn from sentences and their labels."""
        if len(X) != len(y):
            raise ModelError(f"{len(X)} sentences need as many label lists", got=len(y))
        corpus = CrowdCorpus.from_sequences([list(s) for s in X], {}, golds={"y": [list(row) for row in y]})
        self.tagger_ = self._copy().fit(corpus, "y")
        self.classes_ = self.tagger_.labels
        return self

    def _fitted(self) -> Tagger:
        if not hasattr(self, "tagger_"):
            raise ModelError("the tagger is not fitted", hint="Call fit")
        return self.tagger_

    def predict(self, X: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the labels of sentences."""
        return self._fitted().predict(X)

    def predict_proba(self, X: Sequence[Sequence[str]]) -> list[Any]:
        """Return the probabilities of labels, an array (tokens, labels) per sentence; columns as `classes_`."""
        return self._fitted().predict_proba(X)

    def score(self, X: Sequence[Sequence[str]], y: Sequence[Sequence[str | None]]) -> float:
        """Return span F1 where the labels have a tag scheme, else the share of right tokens."""
        found = self.predict(X)
        names = {name for row in y for name in row if name is not None}
        gold: list[list[Any]] = [list(row) for row in y]
        if schemes.detect(sorted(names)) is not None:
            return float(evaluate.spans(gold, found, mode="lenient").f1)
        return float(evaluate.tokens(gold, found).accuracy)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what kind of estimator this is: neither classifier nor regressor."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=True))

"""The old place of cross-fitting, for `robust` while it is being changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lasca.truth.crf_text import CrfText
from lasca.truth.text_models import CrossFit as _CrossFit
from lasca.truth.text_models import document_codes

__all__ = ["CrossFit", "document_codes"]


class CrossFit(_CrossFit):
    """Cross-fitted CRFs."""

    def __init__(self, corpus: Any, rng: Any, *, folds: int, l2: float, min_count: int, n_threads: int) -> None:
        super().__init__(corpus, CrfText(l2, min_count), rng, folds=folds, n_threads=n_threads)

    def __call__(self, proba: Any, max_iter: int = 30) -> Any:
        """Train and tag."""
        task: Any = self.task
        self.task = replace(task, settings=replace(task.settings, iterations=max_iter))
        return super().__call__(proba)

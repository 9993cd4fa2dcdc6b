"""The judge of taggers where there is no gold: how well their probabilities foretell votes.

The score of probabilities p for a token is the mean over its votes of log Σ_z p(z) Ψ^l_{z y}, with Ψ the annotators'
confusion as the truth model found it: a tagger is right to contradict an annotator who is often wrong. It is meant for
sequences that the tagger was not trained on; Ψ saw their votes, but is the same for all taggers that are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lasca.arrays import Array

if TYPE_CHECKING:
    from lasca.corpus import CrowdCorpus

__all__ = ["VoteScore", "vote_score_of"]

_LEAST = 1e-6  # no vote is impossible


@dataclass(frozen=True, eq=False)
class VoteScore:
    """Votes on some tokens, who gave which label; and the annotators' confusion (annotators, labels, labels)."""

    token: Array
    annotator: Array
    label: Array
    confusion: Array

    def per_token(self, proba: Array, n_tokens: int) -> tuple[Array, Array]:
        """Return the sum of log scores and the number of votes, per token; `proba` is over all labels."""
        seen = np.einsum("vz,vz->v", proba[self.token], self.confusion[self.annotator, :, self.label])
        logs = np.log(np.maximum(seen, _LEAST))
        return np.bincount(self.token, logs, n_tokens), np.bincount(self.token, minlength=n_tokens)

    def mean(self, proba: Array, rows: Array) -> float:
        """Return the mean log score of the votes on the tokens chosen by `rows` (bool per token)."""
        total, n = self.per_token(proba, len(rows))
        return float(total[rows].sum() / max(n[rows].sum(), 1))


def vote_score_of(corpus: CrowdCorpus, truth: Any, rows: Array) -> VoteScore | None:
    """Return the votes on the tokens chosen by `rows` (bool per token of the corpus), numbered among those."""
    confusion = getattr(truth, "confusion", None)
    if confusion is None or not len(corpus.annotation_label) or len(confusion) != corpus.n_annotators:
        return None
    token = np.asarray(corpus.annotation_token)
    counted = rows[token] & np.asarray(corpus.votes, dtype=np.bool_)[corpus.annotation_annotator]
    if not counted.any():
        return None
    place = np.cumsum(rows) - 1
    annotator, label = corpus.annotation_annotator[counted], corpus.annotation_label[counted]
    return VoteScore(place[token[counted]], annotator, label, np.asarray(confusion, dtype=np.float32))

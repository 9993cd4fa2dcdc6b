"""Taggers: what was learned from a truth (or a gold), put to work on new sentences.

`CrfTagger` and `HmmTagger` need nothing but LASCA; `BiLstmCrfTagger` and `TransformerTagger` need torch (the extra
`torch`) and are loaded when they are first used. All have the same `fit`, `predict`, `predict_proba`, `save` and
`load`; `load_tagger` reads any of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lasca.tagger.base import TAGGERS, Examples, Tagger, load_tagger, tagger_class
from lasca.tagger.crf_tagger import CrfTagger
from lasca.tagger.hmm_tagger import HmmTagger
from lasca.tagger.quality import Choice, choose_tagger, model_card
from lasca.tagger.use import SequenceTagger, TaggedText, tag_texts

if TYPE_CHECKING:
    from lasca.tagger.neural.bilstm import BiLstmCrfTagger
    from lasca.tagger.neural.transformer import TransformerTagger

__all__ = [
    "TAGGERS", "BiLstmCrfTagger", "Choice", "CrfTagger", "Examples", "HmmTagger", "SequenceTagger", "TaggedText",
    "Tagger", "TransformerTagger", "choose_tagger", "load_tagger", "model_card", "tag_texts", "tagger_class",
]  # fmt: skip

_NEURAL = {"BiLstmCrfTagger": "bilstm-crf", "TransformerTagger": "transformer"}


def __getattr__(name: str) -> Any:
    if name not in _NEURAL:
        raise AttributeError(f"module 'lasca.tagger' has no attribute {name!r}")
    return tagger_class(_NEURAL[name])

"""Taggers: what was learned from a truth (or a gold), put to work on new sentences.

`CrfTagger` needs nothing but LASCA; `BiLstmCrfTagger` and `TransformerTagger` need torch (the extra `torch`) and are
loaded when they are first used. All have the same `fit`, `predict`, `predict_proba`, `save` and `load`; `load_tagger`
reads any of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lasca.tagger.base import TAGGERS, Tagger, load_tagger, need_torch, tagger_class
from lasca.tagger.choose import Choice, choose_tagger
from lasca.tagger.crf_tagger import CrfTagger

if TYPE_CHECKING:
    from lasca.tagger.neural.bilstm import BiLstmCrfTagger
    from lasca.tagger.neural.transformer import TransformerTagger

__all__ = [
    "TAGGERS",
    "BiLstmCrfTagger",
    "Choice",
    "CrfTagger",
    "Tagger",
    "TransformerTagger",
    "choose_tagger",
    "load_tagger",
    "tagger_class",
]

_NEURAL = {
    "BiLstmCrfTagger": ("lasca.tagger.neural.bilstm", ()),
    "TransformerTagger": ("lasca.tagger.neural.transformer", ("transformers", "tokenizers")),
}


def __getattr__(name: str) -> Any:
    if name not in _NEURAL:
        raise AttributeError(f"module 'lasca.tagger' has no attribute {name!r}")
    module, needed = _NEURAL[name]
    need_torch(*needed)
    return getattr(import_module(module), name)

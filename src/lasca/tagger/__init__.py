"""Taggers: what was learned from a truth (or a gold), put to work on new sentences.

`CrfTagger` needs nothing but LASCA. All taggers have the same `fit`, `predict`, `predict_proba`, `save` and `load`.
"""

from lasca.tagger.crf_tagger import CrfTagger

__all__ = ["CrfTagger"]

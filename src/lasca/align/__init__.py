"""Characters and tokens: offset units, tokenisers, spans to labels, and two tokenisations of one text."""

from lasca.align.spans import (
    Span,
    by_layer,
    check_choices,
    cut_tokens,
    label_spans,
    spans_to_labels,
)
from lasca.align.tokenise import Chars, Tokenizer, locate, rising, spelled, tokenizer_of
from lasca.align.units import (
    UNITS,
    Quote,
    check_unit,
    from_codepoint,
    graphemes,
    infer_ends,
    infer_unit,
    refuse_cuts,
    same_words,
    to_codepoints,
)
from lasca.align.words import Alignment, align_sequences, align_tokens, same_characters, transfer_labels

__all__ = ["UNITS", "Alignment", "Chars", "Quote", "Span", "Tokenizer",
           "align_sequences", "align_tokens", "by_layer", "check_choices", "check_unit", "cut_tokens", "from_codepoint",
           "graphemes", "infer_ends", "infer_unit", "label_spans", "locate", "refuse_cuts", "rising", "same_characters",
           "same_words", "spans_to_labels", "spelled", "to_codepoints", "tokenizer_of", "transfer_labels"]  # fmt: skip

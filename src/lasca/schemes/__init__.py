"""Tag schemes as tables: IO, IOB1, IOB2, BIOES (and BIOES in the letters of BILOU and BMES).

A label of a scheme is O, or a letter and a type: "B-PER", "I-PER"; "B" and "I" alone are untyped. Spans are
half-open: (2, 4, "PER") covers tokens 2 and 3. Label sets that are not of this kind (parts of speech) have no scheme:
`detect` gives None, and every label may follow every other.

Illegal tags are always read in one way, that of conlleval and of seqeval's default: a span begins at B and S, and at
any other letter that does not continue a span of its own type; it ends where the next one begins, at O, at a missing
label (None), and behind E and S. `repair` writes down what was read so, in legal tags.
"""

from lasca.schemes.corpora import convert_corpus, count_illegal, detect_corpus, mixed_schemes, repair_corpus
from lasca.schemes.tables import (
    OUTSIDE,
    SCHEMES,
    Scheme,
    complete_labels,
    convert,
    detect,
    is_legal,
    repair,
    spans,
    split_label,
    tags,
    transitions,
)

__all__ = ["OUTSIDE", "SCHEMES", "Scheme", "complete_labels", "convert", "convert_corpus", "count_illegal", "detect",
           "detect_corpus", "is_legal", "mixed_schemes", "repair", "repair_corpus", "spans", "split_label", "tags",
           "transitions"]  # fmt: skip

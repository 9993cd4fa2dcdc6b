"""The corpus: tokens in sequences, and what each annotator said of them."""

from lasca.corpus.build import free_text, need_corpus
from lasca.corpus.evidence import KnownLabels, SoftVotes
from lasca.corpus.record import CrowdCorpus
from lasca.corpus.report import LoadReport
from lasca.corpus.strings import Strings

__all__ = ["CrowdCorpus", "KnownLabels", "LoadReport", "SoftVotes", "Strings", "free_text", "need_corpus"]

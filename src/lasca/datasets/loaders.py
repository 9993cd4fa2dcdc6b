"""How each data set is read: a path in, a corpus out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lasca.corpus import CrowdCorpus
from lasca.datasets.tags import PENN_TO_UNIVERSAL, normalised
from lasca.errors import FormatError
from lasca.estimator import check_choice
from lasca.formats import conll_columns, conll_folder
from lasca.formats.base import files_of
from lasca.schemes import convert_corpus

__all__ = ["conll2003", "conll2003_mturk", "inhouse", "ritter_test", "tdga"]

ENTITY_LABELS = ("B-LOC", "B-MISC", "B-ORG", "B-PER", "I-LOC", "I-MISC", "I-ORG", "I-PER", "O")


def tdga(path: Path) -> CrowdCorpus:
    """Read T-DGA: two golds, "gold1" and "gold2" (one cell of gold2 is empty)."""
    return conll_columns.read(files_of(path), golds=("gold1", "gold2"), separator="tab", header=False)


def inhouse(path: Path) -> CrowdCorpus:
    """Read INHOUSE: the parts of speech are "gold", the supersenses in column 3 are left out."""
    return conll_columns.read(files_of(path), columns=("token", "gold", "_"), separator="tab", header=False)


def ritter_test(path: Path, tags: str = "universal", normalise: bool = True, numbers: bool = False) -> CrowdCorpus:
    """Read RITTER-TEST as "gold": Penn tags turned into the universal ones INHOUSE has (`tags="penn"` keeps them).

    `normalise` writes users as @USER and addresses as URL, as INHOUSE and T-DGA do; `numbers` also writes NUMBER for
    numbers but 2 and 4, which these corpora do as well.
    """
    check_choice("tags", tags, ("universal", "penn"))
    corpus = conll_columns.read(files_of(path), columns=("token", "gold", "_"), separator="tab", header=False)
    names = corpus.label_names(corpus.golds["gold"])
    tokens = [corpus.sequence(s) for s in range(corpus.n_sequences)]
    counts = dict(corpus.load_report.counts)
    if normalise:
        new = [[normalised(t, n, numbers) for t, n in zip(*pair)] for pair in zip(tokens, names)]
        counts["tokens normalised"] = sum(a != b for x, y in zip(tokens, new) for a, b in zip(x, y))
        tokens = new
    if tags == "universal":
        names = [[_universal(path, name) for name in row] for row in names]
        counts["tags mapped from Penn"] = corpus.n_tokens
    report = replace(corpus.load_report, counts=counts)
    return CrowdCorpus.from_sequences(tokens, {}, golds={"gold": names}, load_report=report)


def _universal(path: Path, tag: str | None) -> str | None:
    if tag is not None and tag not in PENN_TO_UNIVERSAL:
        raise FormatError("this is no tag of RITTER-TEST", path=path, got=tag)
    return None if tag is None else PENN_TO_UNIVERSAL[tag]


def conll2003_mturk(path: Path, typed_labels: bool = False, partial: str = "shrink") -> CrowdCorpus:
    """Read the labels of the Turk workers; the gold is "gold", the labels are the nine IOB2 labels."""
    corpus = conll_folder.read(files_of(path), typed_labels=typed_labels, partial=partial)
    if corpus.labels != ENTITY_LABELS:
        raise FormatError(f"the labels should be {', '.join(ENTITY_LABELS)}", path=path, got=", ".join(corpus.labels))
    return corpus


def conll2003(path: Path, split: str = "train", scheme: str = "IOB2") -> CrowdCorpus:
    """Read eng.train or eng.testb: entities of column 4 as "gold", from IOB1 into `scheme` ("IOB1" as they are)."""
    corpus = conll_columns.read(files_of(path), columns=("token", "_", "_", "gold"), separator="space", header=False)
    report = replace(corpus.load_report, notes=(f"split {split}; the entities were IOB1 and are {scheme} now",))
    return convert_corpus(replace(corpus, load_report=report), scheme)

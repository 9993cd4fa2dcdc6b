"""The corpus that ships with LASCA: 342 short texts written for it, with two golds each for POS and entities.

The texts are news, everyday sentences and short messages, made from hand-written templates by
`examples/make_demo_corpus.py`, which writes `corpus.tsv` anew byte for byte. Its columns are

    token  part of speech  second part of speech  entity label  second entity label

(universal POS tags; IOB2 labels of PER, LOC, ORG, MISC). The second gold is another defensible reading: clubs named
after cities, countries that play football, titles before names, participles, "that", "light", particles.
`lasca.simulate.demo_crowd` adds annotators.
"""

from __future__ import annotations

from importlib.resources import files

from lasca.corpus import CrowdCorpus, LoadReport
from lasca.estimator import check_choice

__all__ = ["load"]

TASKS = {"pos": (1, 2), "ner": (3, 4)}
POS_LABELS = (".", "ADJ", "ADP", "ADV", "CONJ", "DET", "NOUN", "NUM", "PRON", "PRT", "VERB", "X")
NER_LABELS = ("O", *(f"{part}-{kind}" for kind in ("LOC", "MISC", "ORG", "PER") for part in "BI"))


def load(task: str = "ner") -> CrowdCorpus:
    """Return the texts with the golds "gold" and "gold2" for "ner" or "pos", and no annotators.

    >>> load("pos").n_sequences
    342
    """
    check_choice("task", task, tuple(TASKS))
    text = files(__name__).joinpath("corpus.tsv").read_text(encoding="utf-8")
    sentences = [[line.split("\t") for line in block.split("\n")] for block in text.strip("\n").split("\n\n")]
    first, second = TASKS[task]
    return CrowdCorpus.from_sequences(
        [[row[0] for row in rows] for rows in sentences],
        {},
        golds={
            "gold": [[row[first] for row in rows] for rows in sentences],
            "gold2": [[row[second] for row in rows] for rows in sentences],
        },
        sequence_ids=[f"demo-{i + 1:03d}" for i in range(len(sentences))],
        labels=POS_LABELS if task == "pos" else NER_LABELS,
        load_report=LoadReport(source="the demo corpus of LASCA", format="conll"),
    )

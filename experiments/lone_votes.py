"""What Dawid–Skene makes of crowds in which most tokens have one vote: python experiments/lone_votes.py

The demo crowds are thinned to one annotator per sequence (or one vote per token), and two for a share of them. Printed
is the accuracy over the tokens with votes: of the votes themselves (majority vote), of Dawid–Skene as it is, with lone
votes believed whatever the annotator did elsewhere (ENOUGH = infinity) or overruled early (ENOUGH = 10), and of
the literal model (`lone_votes=True`). The constant ENOUGH of lasca.truth.dawid_skene was chosen here: any number from
30 on gives the same, and the literal model loses up to eight points to the votes.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from lasca import DawidSkene, MajorityVote, simulate
from lasca.corpus import CrowdCorpus
from lasca.truth import dawid_skene


def thinned(corpus: CrowdCorpus, share: float, by_sequence: bool, seed: int = 1) -> CrowdCorpus:
    """Keep one annotator of each sequence (or one vote of each token), two of a share of them."""
    rng = np.random.default_rng(seed)
    keep = np.zeros(corpus.n_annotations, bool)
    units = corpus.token_start[corpus.offsets] if by_sequence else corpus.token_start
    for a, b in pairwise(units):
        who = np.unique(corpus.annotation_annotator[a:b])
        n = min(2 if rng.random() < share else 1, len(who))
        keep[a:b] = np.isin(corpus.annotation_annotator[a:b], rng.choice(who, n, replace=False)) if n else False
    return corpus.with_annotations(
        corpus.annotators,
        corpus.annotation_token[keep],
        corpus.annotation_annotator[keep],
        corpus.annotation_label[keep],
    )


def accuracy(model: DawidSkene | MajorityVote, corpus: CrowdCorpus) -> float:
    truth = model.fit(corpus)
    return 100 * float((truth.labels == corpus.golds["gold"])[truth.voted].mean())


def main() -> None:
    usual = dawid_skene.ENOUGH
    print("crowd  thinned by  two votes   votes     ds   ∞     10   literal")
    for task in ("pos", "ner"):
        for by_sequence in (True, False):
            for share in (0.0, 0.02, 0.1, 0.3, 1.0):
                corpus = thinned(simulate.demo_crowd(task), share, by_sequence)
                found = [accuracy(MajorityVote(), corpus)]
                for enough in (usual, 10**9, 10):
                    dawid_skene.ENOUGH = enough
                    found.append(accuracy(DawidSkene(), corpus))
                dawid_skene.ENOUGH = usual
                found.append(accuracy(DawidSkene(lone_votes=True), corpus))
                unit = "sequence" if by_sequence else "token"
                print(f"{task:5s}  {unit:10s} {share:8.0%}   {'  '.join(f'{x:5.2f}' for x in found)}")


if __name__ == "__main__":
    main()

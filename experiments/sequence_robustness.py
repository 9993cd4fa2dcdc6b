"""Where SequenceClusters must not fail: few annotators, parts of speech, and crowds that fail on the same tokens.

    python experiments/sequence_robustness.py few           # MTurk, 1, 2, 3 annotators per document: F1, val folder
    python experiments/sequence_robustness.py pos           # T-DGA, crowds of table 1, accuracy (gold 1)
    python experiments/sequence_robustness.py difficulty    # T-DGA, annotators fail together, rho = 0.4

`few` fits on the documents of the val folder alone unless --folder all is given; it always scores the val folder.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np

from lasca import datasets, evaluate, simulate
from lasca.corpus import CrowdCorpus
from lasca.truth import MODEL_NAMES, model_class


def few(corpus: CrowdCorpus, n: int, seed: int) -> CrowdCorpus:
    """Keep `n` annotators of each document, drawn at random, each with all of their labels there."""
    rng = np.random.default_rng(seed)
    codes, names = corpus.metadata["document"].codes()
    document = codes[corpus.token_sequence][corpus.annotation_token].astype(np.int64)
    pair, place = np.unique(document * corpus.n_annotators + corpus.annotation_annotator, return_inverse=True)
    order = rng.permutation(len(pair))
    owner = pair[order] // corpus.n_annotators
    by_document = np.argsort(owner, kind="stable")
    begins = np.searchsorted(owner[by_document], np.arange(len(names)))
    rank = np.empty(len(pair), dtype=np.int64)
    rank[order[by_document]] = np.arange(len(pair)) - begins[owner[by_document]]
    stays = rank[place.reshape(-1)] < n
    return corpus.with_annotations(
        corpus.annotators,
        corpus.annotation_token[stays],
        corpus.annotation_annotator[stays],
        corpus.annotation_label[stays],
    )


def cases(what: str, seeds: int, folder: str) -> Iterator[tuple[str, CrowdCorpus]]:
    """Yield the corpora of a check, with names."""
    if what == "few":
        corpus = datasets.load("conll2003-mturk")
        own = np.array([name.startswith("val/") for name in corpus.sequence_ids]) & corpus.annotated_sequences
        corpus = corpus if folder == "all" else corpus.select(sequences=np.flatnonzero(own))
        for n in (1, 2, 3):
            for seed in range(seeds):
                yield f"{n} per document, seed {seed}", few(corpus, n, seed)
        return
    gold = datasets.load("tdga")
    for groups in ("ca1", "ca2", "ca3"):
        for seed in range(seeds):
            name = f"{groups}, seed {seed}"
            if what == "pos":
                yield name, simulate.crowd(gold, gold="gold1", groups=groups, wrong="prior", common=0.067, seed=seed)
            else:
                yield name, simulate.crowd(gold, gold="gold1", groups=groups, errors="difficulty", rho=0.4, seed=seed)


def score(what: str, corpus: CrowdCorpus, labels: np.ndarray) -> float:
    """Return span F1 on the val folder, or accuracy against the first gold."""
    if what == "few":
        own = np.array([name.startswith("val/") for name in corpus.sequence_ids]) & corpus.annotated_sequences
        gold = corpus.golds["gold"]
        return 100 * evaluate.spans_from_codes(gold, labels, corpus.offsets, corpus.labels, sequences=own).f1
    gold = corpus.golds["gold1"]
    return 100 * float((labels == gold)[gold >= 0].mean())


def main() -> None:
    """Print a Markdown table: cases down, models across."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("few", "pos", "difficulty"))
    parser.add_argument("--models", default=",".join(MODEL_NAMES))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--folder", choices=("val", "all"), default="val")
    options = parser.parse_args()
    models = options.models.split(",")
    print("| case | " + " | ".join(models) + " | CPU s |\n|---|" + "---|" * (len(models) + 1))
    for name, corpus in cases(options.what, options.seeds, options.folder):
        begin = time.process_time()
        found = [score(options.what, corpus, model_class(model)().fit(corpus).labels) for model in models]
        cells = " | ".join(f"{value:.2f}" for value in found)
        print(f"| {name} | {cells} | {time.process_time() - begin:.0f} |", flush=True)


if __name__ == "__main__":
    main()

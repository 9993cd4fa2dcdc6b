"""What each part of SequenceClusters is worth on the MTurk corpus: fitted on all sentences, no gold, one part off.

    python experiments/sequence_ablation.py                 # the table: span F1 on the val folder
    python experiments/sequence_ablation.py --final         # the default alone: all sentences, val and test folder

The val folder is what choices were made on; the test folder is scored for the default only.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np

from lasca import datasets, evaluate
from lasca.corpus import CrowdCorpus
from lasca.truth import Truth, model_class

ROWS: list[tuple[str, str, dict[str, Any]]] = [
    ("all parts, one text round", "hc-seq", {"rounds": 1}),
    ("without text", "hc-seq", {"text": False}),
    ("without text and clusters", "hc-seq", {"text": False, "cluster_strength": 0.0}),
    ("without text and difficulty", "hc-seq", {"text": False, "difficulty": False}),
    ("without text and words", "hc-seq", {"text": False, "words": False}),
    ("without text and memory", "hc-seq", {"text": False, "memory": False}),
    ("without text and Markov chain", "hc-seq", {"text": False, "markov": False}),
    ("one round, without clusters", "hc-seq", {"rounds": 1, "cluster_strength": 0.0}),
    ("one round, strong clusters", "hc-seq", {"rounds": 1, "cluster_strength": 10.0}),
    ("one round, without difficulty", "hc-seq", {"rounds": 1, "difficulty": False}),
    ("one round, without words", "hc-seq", {"rounds": 1, "words": False}),
    ("one round, without memory", "hc-seq", {"rounds": 1, "memory": False}),
    ("one round, without Markov chain", "hc-seq", {"rounds": 1, "markov": False}),
    ("one round, not calibrated", "hc-seq", {"rounds": 1, "calibrate": False}),
    ("two rounds", "hc-seq", {"rounds": 2}),
    ("three rounds (default)", "hc-seq", {}),
    ("BayesianSequence", "bsc", {}),
    ("HmmCrowd", "hmm-crowd", {}),
]


def score(corpus: CrowdCorpus, truth: Truth, folder: str | None) -> str:
    """Return precision, recall, F1 of spans, cross entropy and ECE in a folder."""
    chosen = corpus.annotated_sequences
    if folder is not None:
        chosen = chosen & np.array([name.startswith(f"{folder}/") for name in corpus.sequence_ids])
    gold = corpus.golds["gold"]
    spans = evaluate.spans_from_codes(gold, truth.labels, corpus.offsets, corpus.labels, sequences=chosen)
    found = evaluate.calibration(truth.proba, gold, mask=np.repeat(chosen, np.diff(corpus.offsets)))
    parts = [f"{100 * x:.1f}" for x in (spans.precision, spans.recall, spans.f1)]
    return " | ".join([*parts, f"{found.cross_entropy:.3f}", f"{found.ece:.3f}"])


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--final", action="store_true", help="score the default alone, on the test folder too")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    corpus = datasets.load("conll2003-mturk")
    rows = [("default", "hc-seq", {})] if options.final else [row for row in ROWS if options.only in row[0]]
    print("| model | folder | P | R | F1 | cross entropy | ECE | CPU s |\n|---|---|---|---|---|---|---|---|")
    for name, model, params in rows:
        begin = time.process_time()
        truth = model_class(model)(**params).fit(corpus)
        cpu = time.process_time() - begin
        for folder in (None, "val", "test") if options.final else ("val",):
            print(f"| {name} | {folder or 'all'} | {score(corpus, truth, folder)} | {cpu:.0f} |", flush=True)
    print(f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()

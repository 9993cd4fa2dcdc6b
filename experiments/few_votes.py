"""What a text is worth in truth inference with few votes: no text, the CRF, the CRF with lexicons, a network.

    python experiments/few_votes.py [--rows mturk-1,pico-1] [--texts "none;crf;crf+lexicons;transformer"]

The default model on rows of the bench (experiments/crowds) with one, two and three annotators per document; the text
model is cross-fitted as always, and must earn its say. `crf+lexicons` needs the extra [lexicon], `transformer` [torch];
it takes a while, so it learns in two folds where the others learn in six.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE)]

from crowds.rows import ROWS, corpus_of  # noqa: E402
from crowds.scores import score  # noqa: E402
from lasca.tagger import CrfTagger  # noqa: E402
from lasca.truth.robust import RobustSequence  # noqa: E402

ALL_ROWS = "mturk-1,mturk-2,mturk-3,pico-1,pico-2,pico-3"


def text_named(name: str) -> Any:
    """Return what the parameter `text` takes."""
    if name == "transformer":
        from taggers import transformer

        return transformer()
    return {"none": False, "crf": True}.get(name) if name in ("none", "crf") else CrfTagger(lexicons="en")


def main() -> None:
    """Print a row of the table for each row of the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=ALL_ROWS)
    parser.add_argument("--texts", default="none;crf;crf+lexicons")
    options = parser.parse_args()
    texts = options.texts.split(";")
    print(f"| row | metric | {' | '.join(texts)} |\n|{'---|' * (2 + len(texts))}", flush=True)
    for row in options.rows.split(","):
        corpus, cells = corpus_of(row), []
        for name in texts:
            begin = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                folds = 2 if name == "transformer" else 6
                truth = RobustSequence(text=text_named(name), folds=folds, seed=0, n_threads=1).fit(corpus)
            found = score(corpus, truth, row)["value"]
            said = "" if name == "none" or truth.diagnostics["text"] else " (not heard)"
            cells.append(f"{found:.1f}{said}")
            print(row, name, cells[-1], f"{time.process_time() - begin:.0f} CPU s", file=sys.stderr, flush=True)
        print(f"| {row} | {ROWS[row].metric} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

"""Made-up habits: crowds on real text whose people differ in where names end, in how much they miss, or hardly look.

    python experiments/crowds/habits.py              # every kind with three seeds: a table for docs/models/robust.md
    python experiments/crowds/habits.py --seeds 3-9  # other crowds of the same kinds

Texts are runs of sentences of MTurk's val folder, and its gold is what people see; nothing else of the crowd is used.
Everybody labels four sentences of five. Span F1, means over seeds.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "src"), str(HERE.parent)]

from crowds import corpora  # noqa: E402
from crowds.results import SIMPLE  # noqa: E402
from lasca import evaluate, schemes  # noqa: E402
from lasca.corpus import CrowdCorpus  # noqa: E402
from lasca.truth import model_class  # noqa: E402

SENTENCES, SHARE = 250, 0.8
TYPES = ("PER", "LOC", "ORG", "MISC")
Spans = list[tuple[int, int, str]]


@dataclass(frozen=True)
class Person:
    """How somebody labels: what they find, get wrong and invent, and which part of a name they mark."""

    recall: float = 0.85
    marks: Callable[[int, int], tuple[int, int]] = lambda start, stop: (start, stop)
    invents: float = 0.003
    border: float = 0.04
    retypes: float = 0.03

    def label(self, names: Spans, length: int, rng: np.random.Generator) -> list[str]:
        """Return labels of a sentence with these names."""
        found: Spans = []
        for start, stop, kind in names:
            if rng.random() > self.recall:
                continue
            if rng.random() < self.border:
                start, stop = (start - 1, stop) if rng.random() < 0.5 else (start, max(start + 1, stop - 1))
            found.append((*self.marks(start, stop), str(rng.choice(TYPES)) if rng.random() < self.retypes else kind))
        places = np.flatnonzero(rng.random(length) < self.invents).tolist()
        return written(sorted([*found, *((i, i + 1, str(rng.choice(TYPES))) for i in places)]), length)


def written(names: Spans, length: int) -> list[str]:
    """Return BIO labels; of names that overlap the first one stays."""
    labels = ["O"] * length
    for start, stop, kind in names:
        start, stop = max(0, start), min(length, stop)
        if start < stop and set(labels[start:stop]) == {"O"}:
            labels[start:stop] = [f"B-{kind}", *[f"I-{kind}"] * (stop - start - 1)]
    return labels


LAST = Person(marks=lambda start, stop: (stop - 1, stop))
BEHIND = Person(marks=lambda start, stop: (start, stop + 1))
BEFORE = Person(marks=lambda start, stop: (start - 1, stop))
LAZY = Person(recall=0.03, invents=0.0)
KINDS = {
    "two of five mark the last word of a name only": [Person()] * 3 + [LAST] * 2,
    "two of five mark the word behind it, too": [Person()] * 3 + [BEHIND] * 2,
    "four of ten do": [Person()] * 6 + [BEHIND] * 4,
    "two of five mark the word before it, too": [Person()] * 3 + [BEFORE] * 2,
    "three people miss half, at random": [Person(recall=0.5)] * 3,
    "five do": [Person(recall=0.5)] * 5,
    "eight do": [Person(recall=0.5)] * 8,
    "three of six mark next to nothing": [Person()] * 3 + [LAZY] * 3,
    "four of six do": [Person()] * 2 + [LAZY] * 4,
}


def made(people: list[Person], seed: int) -> CrowdCorpus:
    """Return a crowd of these people."""
    rng = np.random.default_rng(seed)
    whole = corpora.mturk_folder()
    first = int(rng.integers(whole.n_sequences - SENTENCES))
    golds = [list(row) for row in whole.label_names(whole.golds["gold"])[first : first + SENTENCES]]
    tokens = [whole.sequence(i) for i in range(first, first + SENTENCES)]
    names = [list(schemes.spans(gold)) for gold in golds]
    said: dict[str, list[Any]] = {}
    for k, person in enumerate(people):
        looked = rng.random(SENTENCES) < SHARE
        said[f"p{k}"] = [person.label(n, len(g), rng) if sees else None for n, g, sees in zip(names, golds, looked)]
    return CrowdCorpus.from_sequences(tokens, said, golds={"gold": [written(n, len(g)) for n, g in zip(names, golds)]})


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-2", help="first and last")
    first, last = map(int, parser.parse_args().seeds.split("-"))
    models = [*SIMPLE, "robust"]
    print(f"| crowd | {' | '.join(models[:-1])} | default |\n|---|{'---|' * len(models)}", flush=True)
    for kind, people in KINDS.items():
        scores = np.zeros((last - first + 1, len(models)))
        for row, seed in zip(scores, range(first, last + 1)):
            corpus = made(people, seed)
            gold = [list(labels) for labels in corpus.label_names(corpus.golds["gold"])]
            for k, name in enumerate(models):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    row[k] = 100 * evaluate.spans(gold, model_class(name)().fit(corpus).sequences()).f1
        print(f"| {kind} | {' | '.join(f'{mean:.1f}' for mean in scores.mean(axis=0))} |", flush=True)


if __name__ == "__main__":
    main()

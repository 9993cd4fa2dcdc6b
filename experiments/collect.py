"""Replay the collection of labels on MTurk val: who labels next, by `lasca next` or at random.

    python experiments/collect.py --model ds --seeds 10 -o build/collect.json

Every document starts with one vote, of somebody drawn at random among those who really labelled it. Then votes are
added in batches, each a document for somebody who really labelled it and has not been asked: those that `assign` (what
`lasca next` calls) chooses after a fit of what is there, or drawn at random. The goal is the span F1 that random
assignment has when every document has three votes (fewer where fewer exist); the ratio is how many votes the chosen
ones need for it, beside that number.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.review.assign import assign, documents_of
from lasca.review.spans import Labels
from lasca.truth import Truth, model_class
from replay import GOLD, spans_of, with_gold


class Replay:
    """One crowd whose votes come in bit by bit."""

    def __init__(self, corpus: CrowdCorpus, model: str) -> None:
        self.corpus, self.model = corpus, model
        self.labels = Labels.of(corpus)
        self.gold = spans_of(self.labels, corpus.golds[GOLD], corpus)
        document, names = documents_of(corpus)
        self.documents = names
        self.place = {name: d for d, name in enumerate(names)}
        self.of_vote = document[corpus.token_sequence][corpus.annotation_token]
        self.real = np.zeros((corpus.n_annotators, len(names)), bool)
        self.real[corpus.annotation_annotator, self.of_vote] = True

    def fit(self, given: npt.NDArray[np.bool_]) -> tuple[CrowdCorpus, Truth]:
        """Infer the truth from the votes that are there."""
        c = self.corpus
        kept = given[c.annotation_annotator, self.of_vote]
        part = c.with_annotations(
            c.annotators, c.annotation_token[kept], c.annotation_annotator[kept], c.annotation_label[kept]
        )
        return part, model_class(self.model)().fit(part)

    def f1(self, truth: Truth) -> float:
        """Return the span F1 against gold."""
        found = spans_of(self.labels, truth.labels, self.corpus)
        return 2 * len(found & self.gold) / max(len(found) + len(self.gold), 1)

    def at_random(self, rng: np.random.Generator, per: int) -> npt.NDArray[np.bool_]:
        """Return `per` votes for each document, or all where there are fewer."""
        given = np.zeros_like(self.real)
        for d in range(len(self.documents)):
            who = np.flatnonzero(self.real[:, d])
            given[rng.permutation(who)[:per], d] = True
        return given

    def chosen(self, given: npt.NDArray[np.bool_], goal: float, batch: int) -> list[tuple[int, float]]:
        """Add votes as `lasca next` says until the goal is reached; return (votes, F1) after each batch."""
        course = []
        while True:
            part, truth = self.fit(given)
            course.append((int(given.sum()), self.f1(truth)))
            left = self.real & ~given
            if course[-1][1] >= goal or not left.any():
                return course
            for one in assign(part, truth, batch, annotators=part.annotators, may=left):
                given[part.annotators.index(one.annotator), self.place[one.document]] = True
            if int(given.sum()) == course[-1][0]:  # nothing is worth a vote to it
                return course


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="ds")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    replay = Replay(with_gold("mturk"), asked.model)
    rows: list[dict[str, Any]] = []
    for seed in range(asked.seeds):
        rng = np.random.default_rng(seed)
        three = replay.at_random(rng, 3)
        goal = replay.f1(replay.fit(three)[1])
        first = np.zeros_like(three)
        for d in range(len(replay.documents)):  # one of the three: both ways start from the same votes
            first[rng.choice(np.flatnonzero(three[:, d])), d] = True
        course = replay.chosen(first, goal, asked.batch)
        reached = course[-1][1] >= goal
        rows.append({"seed": seed, "goal": goal, "random": int(three.sum()), "course": course, "reached": reached})
        print(f"seed {seed}: {goal:.4f} with {three.sum()} random votes; {course[0]} .. {course[-1]}", flush=True)
        settings = {k: v for k, v in vars(asked).items() if k != "output"}
        asked.output.write_text(json.dumps({"settings": settings, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""The crowd of the demo: twelve people in three groups label the corpus that ships with the package."""

from __future__ import annotations

import numpy as np

from lasca.corpus import CrowdCorpus
from lasca.datasets import demo
from lasca.simulate.crowds import crowd

__all__ = ["demo_crowd"]

GROUPS = {"careful": 5, "quick": 4, "careless": 3}
RANGES = {
    "ner": {"careful": (0.82, 0.95), "quick": (0.6, 0.78), "careless": (0.3, 0.5)},
    "pos": {"careful": (0.88, 0.96), "quick": (0.7, 0.85), "careless": (0.4, 0.6)},
}


def demo_crowd(task: str = "ner", *, seed: int | np.random.Generator = 0) -> CrowdCorpus:
    """Return the demo corpus ("ner" or "pos") labelled by a simulated crowd, five people on each sequence.

    Entities are missed, cut, lengthened or given another type; parts of speech are mixed up as label frequency has
    it. Where the second gold differs, people take its reading in four cases of ten.
    """
    corpus = demo.load(task)
    return crowd(
        corpus,
        gold="gold",
        groups=GROUPS,
        ranges=RANGES[task],
        errors="spans" if task == "ner" else "independent",
        wrong="prior",
        hard_cases=0.4,
        second_gold="gold2",
        annotators_per_sequence=5,
        seed=seed,
    )

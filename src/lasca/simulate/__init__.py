"""Simulated crowds: on a corpus with gold labels, and large ones for benchmarks."""

from lasca.simulate.crowds import (
    Calibrated,
    Simulation,
    calibrate_to,
    crowd,
    demo_crowd,
    groups_of,
    majority_accuracy,
    majority_labels,
    simulation,
)
from lasca.simulate.models import big, big_shards
from lasca.simulate.settings import CROWDS, ERRORS, RANGES, SPAMMERS, SPAN_ERRORS, WRONG, CrowdSettings

__all__ = [
    "CROWDS", "ERRORS", "RANGES", "SPAMMERS", "SPAN_ERRORS", "WRONG", "Calibrated", "CrowdSettings", "Simulation",
    "big", "big_shards", "calibrate_to", "crowd", "demo_crowd", "groups_of", "majority_accuracy", "majority_labels",
    "simulation",
]  # fmt: skip

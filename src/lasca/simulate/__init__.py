"""Simulated crowds: on a corpus with gold labels, from the models themselves, and large ones for benchmarks."""

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
from lasca.simulate.models import ClusterDraw, big, big_shards, from_clusters, from_confusions
from lasca.simulate.settings import CROWDS, ERRORS, RANGES, SPAMMERS, SPAN_ERRORS, WRONG, CrowdSettings

__all__ = [
    "CROWDS", "ERRORS", "RANGES", "SPAMMERS", "SPAN_ERRORS", "WRONG", "Calibrated", "ClusterDraw", "CrowdSettings",
    "Simulation", "big", "big_shards", "calibrate_to", "crowd", "demo_crowd", "from_clusters", "from_confusions",
    "groups_of", "majority_accuracy", "majority_labels", "simulation",
]  # fmt: skip

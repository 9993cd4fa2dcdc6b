"""Simulated crowds: on a corpus with gold labels, and large ones for benchmarks."""

from lasca.simulate.crowds import Simulation, crowd, demo_crowd, groups_of, simulation
from lasca.simulate.models import big, big_shards
from lasca.simulate.settings import CROWDS, ERRORS, RANGES, SPAMMERS, SPAN_ERRORS, WRONG, CrowdSettings

__all__ = [
    "CROWDS", "ERRORS", "RANGES", "SPAMMERS", "SPAN_ERRORS", "WRONG", "CrowdSettings", "Simulation", "big",
    "big_shards", "crowd", "demo_crowd", "groups_of", "simulation",
]  # fmt: skip

"""Truth models: from what the crowd said to what is true. Every model: `.fit(corpus) -> Truth`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lasca.errors import ParameterError
from lasca.truth.base import Posterior, TruthModel, Votes
from lasca.truth.result import Clusters, Truth

__all__ = [
    "MODEL_NAMES",
    "TRUTH_MODELS",
    "Clusters",
    "Posterior",
    "Truth",
    "TruthModel",
    "Votes",
    "model_class",
    "supporting",
]

_MODELS = {
    "mv": ("majority", "MajorityVote"),
    "ds": ("dawid_skene", "DawidSkene"),
    "mace": ("mace", "Mace"),
    "glad": ("glad", "Glad"),
    "hmm-crowd": ("hmm_crowd", "HmmCrowd"),
    "sembler": ("sembler", "Sembler"),
    "raykar": ("raykar", "Raykar"),
    "crf-ma": ("crf_ma", "CrfMa"),
    "bsc": ("bayesian_sequence", "BayesianSequence"),
    "hc": ("hierarchical", "HierarchicalClusters"),
    "hc-seq": ("sequence_clusters", "SequenceClusters"),
}
MODEL_NAMES = tuple(_MODELS)
"""What the CLI calls the models."""


def model_class(name: str) -> type[TruthModel]:
    """Return the class of a model by its short name; only then are its kernels loaded."""
    if name not in _MODELS:
        raise ParameterError("model", name, "one of " + ", ".join(MODEL_NAMES))
    module, cls = _MODELS[name]
    found: type[TruthModel] = getattr(import_module(f"lasca.truth.{module}"), cls)
    return found


def supporting(*what: str) -> tuple[str, ...]:
    """Return the names of the models that can take all of this: "known", "soft", "families", "update"."""
    return tuple(name for name in MODEL_NAMES if set(what) <= model_class(name).supports)


def __getattr__(name: str) -> Any:
    if name == "TRUTH_MODELS":
        return {short: model_class(short) for short in MODEL_NAMES}
    for module, cls in _MODELS.values():
        if cls == name:
            return getattr(import_module(f"lasca.truth.{module}"), cls)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

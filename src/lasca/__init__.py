"""LASCA: learn from crowd sequence annotations. The public names, nothing else.

Heavy parts (Numba kernels) are loaded when a name that needs them is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from lasca import datasets, evaluate, formats, schemes, simulate, tagger, testing, truth
    from lasca.ambiguity import Ambiguity, find_ambiguity
    from lasca.comparison import compare
    from lasca.confusion import LabelConfusion, label_confusion
    from lasca.corpus import CrowdCorpus, LoadReport
    from lasca.errors import LascaError
    from lasca.formats import Layers, read_layers, write
    from lasca.pipeline.source import read
    from lasca.pipeline.way import Run, run
    from lasca.tagger import CrfTagger, HmmTagger
    from lasca.truth import TRUTH_MODELS, Truth
    from lasca.truth.bayesian_sequence import BayesianSequence
    from lasca.truth.crf_ma import CrfMa
    from lasca.truth.dawid_skene import DawidSkene
    from lasca.truth.glad import Glad
    from lasca.truth.hierarchical import HierarchicalClusters
    from lasca.truth.hmm_crowd import HmmCrowd
    from lasca.truth.mace import Mace
    from lasca.truth.majority import MajorityVote
    from lasca.truth.raykar import Raykar
    from lasca.truth.robust import RobustSequence
    from lasca.truth.sembler import Sembler
    from lasca.truth.sequence_clusters import SequenceClusters

_HOMES = {
    "corpus": "CrowdCorpus LoadReport",
    "errors": "LascaError",
    "formats": "Layers read_layers write",
    "pipeline.source": "read",
    "truth": "TRUTH_MODELS Truth MajorityVote DawidSkene Mace Glad HmmCrowd Sembler Raykar CrfMa BayesianSequence "
    "HierarchicalClusters RobustSequence SequenceClusters",
    "ambiguity": "Ambiguity find_ambiguity",
    "comparison": "compare",
    "confusion": "LabelConfusion label_confusion",
    "tagger": "CrfTagger HmmTagger",
    "pipeline.way": "Run run",
}
_HOME = {name: f"lasca.{home}" for home, names in _HOMES.items() for name in names.split()}
_MODULES = ("datasets", "evaluate", "formats", "schemes", "simulate", "tagger", "testing", "truth")

__all__ = [
    "TRUTH_MODELS", "Ambiguity", "BayesianSequence", "CrfMa", "CrfTagger", "CrowdCorpus", "DawidSkene", "Glad",
    "HierarchicalClusters", "HmmCrowd", "HmmTagger", "LabelConfusion", "LascaError", "Layers", "LoadReport", "Mace",
    "MajorityVote", "Raykar", "RobustSequence", "Run", "Sembler", "SequenceClusters", "Truth", "compare", "datasets",
    "evaluate", "find_ambiguity", "formats", "label_confusion", "read", "read_layers", "run", "schemes", "simulate",
    "tagger", "testing", "truth", "write",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _MODULES:
        return import_module(f"lasca.{name}")
    raise AttributeError(f"module 'lasca' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

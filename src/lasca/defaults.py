"""What is taken when nothing is said; here so that the command line can name it without loading any model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lasca.errors import ParameterError

__all__ = [
    "BUILT_IN_MODELS", "BUILT_IN_TAGGERS", "DEFAULT_MODEL", "DEFAULT_OBJECTIVE", "PRESETS", "Preset", "preset_named",
]  # fmt: skip

BUILT_IN_MODELS = {
    "mv": "lasca.truth.majority:MajorityVote",
    "ds": "lasca.truth.dawid_skene:DawidSkene",
    "mace": "lasca.truth.mace:Mace",
    "glad": "lasca.truth.glad:Glad",
    "hmm-crowd": "lasca.truth.hmm_crowd:HmmCrowd",
    "sembler": "lasca.truth.sembler:Sembler",
    "raykar": "lasca.truth.raykar:Raykar",
    "crf-ma": "lasca.truth.crf_ma:CrfMa",
    "bsc": "lasca.truth.bayesian_sequence:BayesianSequence",
    "hc": "lasca.truth.hierarchical:HierarchicalClusters",
    "hc-seq": "lasca.truth.sequence_clusters:SequenceClusters",
    "robust": "lasca.truth.robust:RobustSequence",
}
"""The truth models by the names the command line uses, and where they live."""
BUILT_IN_TAGGERS = {
    "crf": "lasca.tagger.crf_tagger:CrfTagger",
    "hmm": "lasca.tagger.hmm_tagger:HmmTagger",
    "bilstm-crf": "lasca.tagger.neural.bilstm:BiLstmCrfTagger",
    "transformer": "lasca.tagger.neural.transformer:TransformerTagger",
}
"""The taggers by their kinds, and where they live."""
DEFAULT_MODEL = "robust"
"""The truth model of `lasca run`, `lasca aggregate` and `lasca demo`."""
DEFAULT_OBJECTIVE = "softmax-margin"
"""What the tagger of `lasca run` maximises: what measures best on texts it has not seen (docs/cost-sensitive.md)."""


@dataclass(frozen=True)
class Preset:
    """How each step of the whole way is done, where the user does not say otherwise."""

    model: str = DEFAULT_MODEL
    params: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the truth model; left alone where another model is asked for."""
    method: str = "two-truths"
    ambiguity: Mapping[str, Any] = field(default_factory=dict)
    """Further options of `find_ambiguity`."""
    fraction: float = 0.10
    objective: str = DEFAULT_OBJECTIVE


PRESETS = {
    "default": Preset(),
    "la-sca": Preset(model="hc", method="rank-1", objective="cost-sensitive"),
    "la-sca-literal": Preset(
        model="hc",
        params={"priors": "paper", "shared": "unanimous"},
        method="rank-1",
        ambiguity={"scaling": "paper"},
        objective="cost-sensitive",
    ),
}
"""The ways `lasca run` knows by name: ours, the paper's with the corrections E1–E8, and the paper's as printed."""


def preset_named(name: str) -> Preset:
    """Return a preset by its name."""
    if name not in PRESETS:
        raise ParameterError("preset", name, "one of " + ", ".join(PRESETS))
    return PRESETS[name]

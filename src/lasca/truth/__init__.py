"""Truth models: from what the crowd said to what is true. Every model: `.fit(corpus) -> Truth`."""

from __future__ import annotations

from typing import Any

from lasca.defaults import BUILT_IN_MODELS
from lasca.errors import ParameterError
from lasca.plugins import Registry, checked_class, load_object
from lasca.truth.base import Posterior, TruthModel, Votes
from lasca.truth.result import Clusters, History, Truth

__all__ = [
    "MODEL_NAMES", "TRUTH_MODELS", "Clusters", "History", "Posterior", "Truth", "TruthModel", "Votes", "model_class",
    "model_names", "supporting",
]  # fmt: skip

MODEL_NAMES = tuple(BUILT_IN_MODELS)
"""The models that come with LASCA, as the CLI calls them; `model_names` has those of plug-ins too."""


_REGISTRY: Registry[str] = Registry(
    "lasca.truth_models",
    BUILT_IN_MODELS,
    lambda name, reference: checked_class(reference, TruthModel, "name", name),
    "truth model",
)


def model_names() -> tuple[str, ...]:
    """Return the names of all truth models, those that plug-ins bring last."""
    return tuple(_REGISTRY)


def model_class(name: str) -> type[TruthModel]:
    """Return the class of a model by its short name; only then are its kernels loaded."""
    try:
        reference = _REGISTRY[name]
    except KeyError:
        raise ParameterError("model", name, "one of " + ", ".join(model_names())) from None
    found: type[TruthModel] = load_object(reference)
    return found


def supporting(*what: str) -> tuple[str, ...]:
    """Return the names of the models that can take all of this (see `lasca.truth.base.SUPPORTS`)."""
    return tuple(name for name in model_names() if set(what) <= model_class(name).supports)


def __getattr__(name: str) -> Any:
    if name == "TRUTH_MODELS":
        return {short: model_class(short) for short in model_names()}
    for reference in BUILT_IN_MODELS.values():
        if reference.endswith(f":{name}"):
            return load_object(reference)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

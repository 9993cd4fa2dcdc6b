"""All jobs, and the functions that do them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lasca.reproduce import ambiguity, beyond, clusters, entities, figures, tweets
from lasca.reproduce.jobs import Job, Scope

__all__ = ["MEASURES", "plan"]

MEASURES: Mapping[str, Callable[..., dict[str, Any]]] = {
    "choose": tweets.choose,
    "tweets": tweets.infer,
    "objectives": tweets.objectives,
    "entity-choose": entities.choose,
    "entity-gold": entities.gold,
    "entities": entities.infer,
    "entity-objectives": entities.objectives,
    "ambiguity": ambiguity.measure,
    "clusters": clusters.measure,
    "beyond": beyond.measure,
    "figures": figures.tweet_figures,
    "entity-clusters": figures.entity_clusters,
}


def plan(scope: Scope) -> list[Job]:
    """Return every job of the reproduction."""
    rooms = (tweets, entities, ambiguity, clusters, beyond, figures)
    return [job for room in rooms for job in room.jobs(scope)]

"""The truth models side by side on one corpus: scores against a gold, probabilities, time, and a word of warning."""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lasca.arrays import Bools
from lasca.corpus import CrowdCorpus, need_corpus
from lasca.engine.cluster import engine_of
from lasca.errors import CorpusError
from lasca.evaluate import Scores
from lasca.truth import Truth, TruthModel, Votes, model_class, model_names

__all__ = ["Comparison", "compare", "departure_from_majority", "seeded"]

RARE = 0.05
GROWTH = 2.0


@dataclass(frozen=True)
class Comparison:
    """One model's line: scores for each part of the corpus ("all" first), time, warnings.

    `same` is the share of the labelled tokens with the label that the first model gives: all there is without a gold.
    """

    model: str
    scores: Mapping[str, Scores]
    cpu_seconds: float
    wall_seconds: float
    warnings: tuple[str, ...]
    same: float = 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


def compare(
    corpus: CrowdCorpus,
    models: Iterable[str | TruthModel] | str | TruthModel | None = None,
    *,
    gold: str | None = None,
    by: str | None = None,
    seed: int = 0,
    engine: Any = None,
    progress: Callable[[float, str], None] | None = None,
) -> list[Comparison]:
    """Fit the models and score them over the sequences that somebody annotated.

    `models` are names or estimators, all that are registered if not given; of several of a kind the lines
    are named with their parameters. `gold` names the gold to score against (the first one if there is any); `by` a
    metadata column for whose values scores are given as well. `engine`, as `lasca.engine.cluster.engine_of` takes it,
    does the work of those models that support one; CPU seconds are those of this process.
    """
    need_corpus(corpus, "compare")
    gold = corpus.gold_name(gold)
    parts = _parts(corpus, by)
    wanted = [models] if isinstance(models, (str, TruthModel)) else model_names() if models is None else models
    todo = [seeded(model, seed) if isinstance(model, str) else copy.copy(model) for model in wanted]
    kinds = Counter(estimator.name for estimator in todo)
    lines: list[Comparison] = []
    first: Truth | None = None
    with engine_of(engine) as opened:
        for i, estimator in enumerate(todo):
            if "engine" in estimator.supports:
                estimator.engine = opened or estimator.engine
            if progress is not None:
                progress(i / len(todo), estimator.name)
            cpu, wall = time.process_time(), time.perf_counter()
            truth = estimator.fit(corpus)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            scores = {} if gold is None else {name: truth.score(corpus, gold, sequences=m) for name, m in parts.items()}
            warnings = truth.warnings + departure_from_majority(corpus, truth)
            first = truth if first is None else first
            same = float((truth.labels == first.labels)[first.voted].mean()) if first.voted.any() else 1.0
            name = estimator.name if kinds[estimator.name] == 1 else repr(estimator)
            lines.append(Comparison(name, scores, cpu, wall, warnings, same))
    return lines


def seeded(name: str, seed: int) -> TruthModel:
    """Return a truth model by its name; if it draws anything, with this seed."""
    model = model_class(name)()
    return model.set_params(seed=seed) if "seed" in model.get_params() else model


def _parts(corpus: CrowdCorpus, by: str | None) -> dict[str, Bools]:
    annotated = corpus.annotated_sequences
    parts = {"all": annotated}
    if by is not None:
        if by not in corpus.metadata:
            known = ", ".join(corpus.metadata) or "none"
            raise CorpusError(f"there is no metadata column of that name (there is: {known})", got=by)
        codes, values = corpus.metadata[by].codes()
        for i, value in enumerate(values):
            while value in parts:  # a part of the name "all" is not all
                value = f"{by} {value}"
            parts[value] = annotated & (codes == i)
    return parts


def departure_from_majority(corpus: CrowdCorpus, truth: Truth) -> tuple[str, ...]:
    """Warn when a label has become a bin for hard tokens.

    Models with a confusion matrix per annotator can explain tokens on which people guess by a label that hardly
    anybody gave: what they infer for it then exceeds its share of the votes by far. That is the trap that
    `simulate.crowd(errors="difficulty")` shows, where such models fall far below majority vote.
    """
    votes = Votes.of(corpus)
    share = np.bincount(votes.label, minlength=votes.n_labels) / max(len(votes.label), 1)
    voted = np.diff(votes.start) > 0
    inferred = np.bincount(truth.labels[voted], minlength=votes.n_labels) / max(int(voted.sum()), 1)
    grown = [t for t in range(votes.n_labels) if inferred[t] > RARE and inferred[t] > GROWTH * share[t]]
    return tuple(
        f"{truth.model} infers {corpus.labels[t]!r} for {100 * inferred[t]:.0f} % of the tokens although only "
        f"{100 * share[t]:.0f} % of the votes are for it: it may have become a bin for hard tokens; "
        "compare with majority vote (on the command line: -m mv)"
        for t in grown
    )

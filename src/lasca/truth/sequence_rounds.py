"""The rounds of inference of the sequence clusters model over one corpus: structure, clusters, text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.truth.annotator_groups import found_clusters
from lasca.truth.annotator_models import confusion_prior
from lasca.truth.base import Progress, Votes
from lasca.truth.clusters import BicScore
from lasca.truth.evidence import Floats
from lasca.truth.hidden_fit import Fit, fit_round, state_evidence, vote_shares
from lasca.truth.hidden_states import CrowdPrior, HiddenStates, Settings, Text
from lasca.truth.result import Clusters
from lasca.truth.sequence_model import start_evidence

__all__ = ["LEAN", "Plan", "Rounds"]

LEVELS = {True: ((5.0, 0.5), (5.0, 5.0)), False: ((50.0, 10.0), (15.0, 35.0))}
"""Pseudo-counts (correct, wrong) of easy and hard tokens, with memory (many rows) and without (few)."""
ONE_LEVEL = {True: ((11.0, 10.0),), False: ((110.0, 10.0),)}
"""The same if all tokens are alike: those of BayesianSequence."""
STARTS = {True: ("dawid-skene",), False: ("dawid-skene", "majority")}
MOST_STATES = 120
"""With more states than this there is one level only: the work grows with their square."""
FIRST_ITERATIONS = 15
LEAN = (2.0, 1.0)
"""Pseudo-counts (correct, wrong) of the rows of clusters and of the confusion matrices that are reported."""


@dataclass(frozen=True)
class Plan:
    """Checked parameters."""

    settings: Settings
    memory: bool | None
    """None: by the evidence lower bound."""
    difficulty: bool
    strength: float
    n_clusters: int | None
    """None: by BIC."""
    rounds: int
    max_iter: int
    tol: float
    n_threads: int


class Rounds:
    """Rounds over one corpus; each begins at the start, with the priors and texts it is given."""

    def __init__(
        self, corpus: CrowdCorpus, votes: Votes, plan: Plan, rng: np.random.Generator, progress: Progress
    ) -> None:
        self.corpus, self.votes, self.plan, self.rng, self.progress = corpus, votes, plan, rng, progress
        shares = np.maximum(vote_shares(votes), 1e-3)
        self.starts = {"dawid-skene": _agreed(votes, start_evidence(corpus, votes, hard=False), shares)}
        self.starts["majority"] = np.log(shares)
        self.start = "dawid-skene"
        self.fits: list[tuple[str, npt.NDArray[np.float64]]] = []

    def round(
        self,
        name: str,
        model: HiddenStates,
        texts: tuple[Text, ...] = (),
        prior: CrowdPrior | None = None,
        max_iter: int | None = None,
    ) -> Fit:
        """Run one round."""
        fit = fit_round(
            model,
            state_evidence(model, self.starts[self.start]),
            texts=texts,
            prior=prior,
            max_iter=self.plan.max_iter if max_iter is None else max_iter,
            tol=self.plan.tol,
            rng=self.rng,
        )
        self.fits.append((name, fit.trace))
        return fit

    def structure(self) -> Fit:
        """Choose memory and the start by the evidence lower bound; return the best round."""
        best: Fit | None = None
        for memory in (True, False) if self.plan.memory is None else (self.plan.memory,):
            model = self._model(memory)
            for start in STARTS[memory]:
                before, self.start = self.start, start
                self.progress(0.05 * len(self.fits), f"start: {start}")
                name = f"{'memory' if memory else 'no memory'}, {start}"
                fit = self.round(name, model, max_iter=min(FIRST_ITERATIONS, self.plan.max_iter))
                if best is None or fit.objective > best.objective:
                    best = fit
                else:
                    self.start = before
        assert best is not None
        return best

    def _model(self, memory: bool) -> HiddenStates:
        two = self.plan.difficulty and 2 * self.votes.n_labels <= MOST_STATES
        levels = LEVELS[memory] if two else ONE_LEVEL[memory]
        settings = replace(self.plan.settings, memory=memory, levels=levels)
        return HiddenStates(self.corpus, self.votes, settings, self.plan.n_threads)

    def clustered(self, fit: Fit) -> Fit:
        """Run a round with the priors of the clusters of annotators that the last round shows."""
        found, _ = self.clusters(fit)
        prior = fit.model.cluster_prior(
            fit.expected.crowd, np.maximum(found.assignment, 0), found.n_clusters, self.plan.strength
        )
        return self.round("clusters", fit.model, fit.texts, prior)

    def clusters(self, fit: Fit) -> tuple[Clusters, list[BicScore]]:
        """Return clusters of annotators by the expected counts of a round, and the BIC of each number of clusters."""
        counts = fit.model.confusion_counts(fit.expected.crowd)
        return found_clusters(counts, self.plan.n_clusters, confusion_prior(self.votes.n_labels, *LEAN))

    def diagnostics(self, fit: Fit) -> dict[str, Any]:
        """Return plain numbers on all rounds."""
        return {
            "rounds": [
                {"name": name, "iterations": len(trace), "objective": float(trace[-1])} for name, trace in self.fits
            ],
            "iterations": sum(len(trace) for _, trace in self.fits),
            "converged": fit.converged,
            "objective": fit.objective,
            "memory": fit.model.settings.memory,
            "levels": fit.model.H,
            "start": self.start,
        }


def _agreed(votes: Votes, evidence: npt.NDArray[np.float32], shares: Floats) -> npt.NDArray[np.floating]:
    """Return Dawid–Skene's log posteriors as far as votes meet: where nobody has a second vote, it knows nothing."""
    n = np.diff(votes.start)
    meet = float(n[n > 1].sum() / n.sum())
    return np.asarray(np.log(meet * np.exp(evidence) + (1 - meet) * shares))

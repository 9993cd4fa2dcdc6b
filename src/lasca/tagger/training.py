"""One run of an optimiser for a tagger: progress in words, held-out sequences, early stopping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lasca.crf.decode import Constraint, viterbi
from lasca.crf.features import Features, Weights
from lasca.crf.optimise import Iteration
from lasca.crf.training import fit, perceptron
from lasca.errors import ModelError
from lasca.estimator import Progress, generator

__all__ = ["Training"]

Array = np.ndarray[Any, Any]
_APART = 5  # iterations between two looks at the held-out sequences


@dataclass(frozen=True, eq=False)
class Training:
    """What is learned from; `held_out` is the share of sequences kept aside."""

    features: Features
    targets: Array
    n_labels: int
    states: str
    sequence_weights: Array | None
    held_out: float
    patience: int
    seed: int | np.random.Generator
    progress: Progress | None

    def perceptron(self, epochs: int, gamma: Array | None = None) -> Weights:
        """Run the averaged perceptron; `gamma` weighs its updates."""
        if self.targets.ndim != 1:
            raise ModelError("the perceptron needs one label per token")

        def told(epoch: int, errors: int) -> bool:
            if self.progress is not None:
                self.progress((epoch + 1) / epochs, f"pass {epoch + 1}, {errors:,} wrong tokens")
            return False

        return perceptron(
            self.features, self.targets, self.n_labels, epochs=epochs, states=self.states, gamma=gamma, seed=self.seed,
            callback=told,
        )  # fmt: skip

    def lbfgs(self, constraint: Constraint | None, **settings: Any) -> Weights:
        """Run L-BFGS; with held-out sequences the weights that were best on them are returned."""
        train, aside = _split(self.features.n_sequences, self.held_out, self.seed)
        watch = _Watch(self, aside, constraint)
        found = fit(
            self.features, self.targets, self.n_labels, states=self.states, sequences=train,
            sequence_weights=self.sequence_weights, callback=watch, **settings,
        )  # fmt: skip
        if watch.best is None:
            return found
        return Weights(found.space, watch.best, found.trace, found.converged)


class _Watch:
    """After each iteration: tell the progress, score held-out sequences, say when to stop."""

    def __init__(self, training: Training, aside: Array, constraint: Constraint | None) -> None:
        self.training, self.aside, self.constraint = training, aside, constraint
        self.best: Array | None = None
        self.best_score, self.score, self.checks_since = -1.0, float("nan"), 0

    def __call__(self, now: Iteration, weights: Weights) -> bool:
        stop = len(self.aside) > 0 and now.iteration % _APART == 0 and self._check(weights)
        if self.training.progress is not None:
            left = "" if np.isnan(now.left) else f", about {now.left:.0f} s left"
            held = "" if np.isnan(self.score) else f", held-out accuracy {self.score:.4f}"
            by_time = 0.0 if np.isnan(now.left) else now.elapsed / max(now.elapsed + now.left, 1e-9)
            share = max(by_time, now.iteration / now.max_iter)
            self.training.progress(share, f"iteration {now.iteration}, objective {now.objective:.1f}{held}{left}")
        return stop

    def _check(self, weights: Weights) -> bool:
        run = self.training
        labels = viterbi(run.features, weights, sequences=self.aside, constraint=self.constraint)
        gold = run.targets if run.targets.ndim == 1 else run.targets.argmax(axis=1)
        seen = (labels >= 0) & (gold >= 0)
        self.score = float((labels[seen] == gold[seen]).mean()) if seen.any() else 0.0
        if self.score > self.best_score:
            self.best_score, self.best, self.checks_since = self.score, weights.vector.copy(), 0
        else:
            self.checks_since += 1
        return self.checks_since >= run.patience


def _split(n: int, share: float, seed: int | np.random.Generator) -> tuple[Array, Array]:
    aside = round(n * share)
    if aside == 0:
        return np.arange(n), np.arange(0)
    order = generator(seed).permutation(n)
    return np.sort(order[aside:]), np.sort(order[:aside])

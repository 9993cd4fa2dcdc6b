"""What a token says of its state, learned token by token: logistic regression over the features that CRFs hear.

It gives p(t | x), the probability of state t at a token with features x. A hidden Markov model wants p(x | t), how
probable the token is in a state; by Bayes that is p(t | x) / p(t), up to a factor of the token alone: the *scaled
likelihood* of hybrid HMMs (Bourlard & Morgan 1994).

Training maximises Σ ln p(t | x) − l2 · ‖θ‖² over the tokens, which know nothing of each other (a CRF whose sequences
are single tokens); a token that may be in several states counts by the sum of their probabilities. Twenty steps of
L-BFGS bring it near the optimum because weights are measured in units of their curvature h, about the number of
tokens that the feature has, times p(t)(1 − p(t)), plus that of the penalty: in θ · h^¼. (h^½ would be right if
features were independent. They are not, and with ¼ the objective falls faster.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lasca.arrays import Array
from lasca.crf.decode import token_scores
from lasca.crf.extract import Extractor
from lasca.crf.features import Features, ParameterSpace, Weights
from lasca.crf.objective import Objective
from lasca.crf.optimise import minimise
from lasca.crf.training import make_space
from lasca.engine import available_threads

__all__ = ["STEPS", "Regression", "learn"]

STEPS = 20


@dataclass(frozen=True, eq=False)
class Regression:
    """Fitted weights, with the dictionary of their features and the shares of states in training."""

    extractor: Extractor
    weights: Weights
    shares: Array

    def log_proba(self, tokens: list[str], offsets: Array) -> Array:
        """Return ln p(t | x) of tokens."""
        scores = token_scores(self.extractor.transform(tokens, offsets), self.weights)
        return np.asarray(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))

    def evidence(self, tokens: list[str], offsets: Array) -> Array:
        """Return ln p(t | x) / p(t) of tokens: ln p(x | t), up to a constant of the token."""
        return self.log_proba(tokens, offsets) - np.log(self.shares)


def learn(
    extractor: Extractor,
    tokens: list[str],
    offsets: Array,
    allowed: Array,
    rows: Array,
    *,
    l2: float,
    weights: Array | None = None,
    steps: int = STEPS,
) -> Regression:
    """Fit to tokens of which `allowed` says in which states they may be, and `rows` how much each is counted in each.

    The extractor gets its dictionary. `weights` has one weight per token.
    """
    found = extractor.fit(tokens, offsets)
    n_states = allowed.shape[1]
    alone = Features(
        np.arange(found.n_tokens + 1), found.slots, found.bundle_start, found.bundle_feature, found.n_features
    )
    open_ones = allowed.sum(axis=1) != 1
    targets = np.where(open_ones, -1, allowed.argmax(axis=1)).astype(np.int16)
    if not allowed[open_ones].all():  # some may be in several states, but not in all
        targets = allowed
    space = make_space(alone, targets, n_states, "observed")
    objective = Objective(alone, targets, space, l2=l2, sequence_weights=weights, n_threads=available_threads(None))
    shares = (rows.sum(axis=0) + 1.0) / (rows.sum() + n_states)
    unit = _curvature(alone, space, shares, l2, rows.sum(axis=1)) ** -0.25

    def function(vector: Array, gradient: Array) -> float:
        value = objective(unit * vector, gradient)
        gradient *= unit
        return value

    best = minimise(function, np.zeros(space.size), max_iter=steps, tol=0.0)
    return Regression(extractor, Weights(space, unit * best.vector, best.trace, best.converged), shares)


def _curvature(features: Features, space: ParameterSpace, shares: Array, l2: float, weights: Array) -> Array:
    """Return about how much the objective bends along each parameter, at least that of the penalty."""
    bundles = np.zeros(features.n_bundles)
    for column in features.slots.T:
        bundles += np.bincount(column, weights, features.n_bundles)
    each = np.repeat(bundles, np.diff(features.bundle_start))
    times = np.bincount(features.bundle_feature, each, features.n_features)
    owner = np.repeat(np.arange(space.n_features), np.diff(space.feature_start))
    own = shares[space.feature_label]
    return np.asarray(times[owner] * own * (1 - own) + 2 * l2)

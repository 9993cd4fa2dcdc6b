"""Glad: annotators have one ability each, tokens an ease: an able annotator errs less, on an easy token less still.

Model (Whitehill et al. 2009, for T labels): z_i ~ Mult(γ); annotator l gives the true label with probability
σ(α_l β_i), each other label with probability (1 − σ(α_l β_i)) / (T − 1). Ability α_l ~ N(ability_mean, ability_sd²),
negative for one who misleads; ease β_i > 0 with ln β_i ~ N(ease_mean, ease_sd²); γ ~ Dir(1 + smoothing).

EM to the posterior mode; the objective is the log posterior up to a constant and never falls. M step:
- ln β_i: one gradient step per token, scaled by the curvature, halved until the expected log joint does not fall;
- α_l: the maximum of the Jaakkola–Jordan bound of ln σ, tight at the current value:
  α_l = (Σ_i (p_i − ½) β_i + mean / sd²) / (Σ_i tanh(x/2)/(2x) β_i² + 1 / sd²), x = α_l β_i, p_i the posterior
  of the label l gave. A bound that is tight rises no more than what it bounds, so no line search is needed.

γ is uniform as in the paper's program; `class_prior="learned"` learns it. Mind that: where one label is very frequent
(O in entities) a learned γ and free eases explain every minority vote as a hard token of the frequent label; on the
CoNLL-2003 MTurk corpus recall falls by a third.

Differences from the paper: several labels; conjugate gradients over all parameters at once are replaced by the two
steps above.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.corpus import CrowdCorpus
from lasca.engine import available_threads, chunks, run_summed
from lasca.estimator import check_choice, check_number
from lasca.kernels.glad import glad_pass
from lasca.truth.base import Posterior, Progress, TruthModel, Votes
from lasca.truth.em import loop_settings, run_em

__all__ = ["Glad"]

Floats = npt.NDArray[np.float64]
NO_PROBA = np.empty((0, 0), dtype=np.float32)


@dataclass(frozen=True)
class State:
    """Abilities, log ease of the tokens, log label frequencies."""

    ability: Floats
    log_ease: Floats
    log_gamma: Floats


@dataclass(frozen=True)
class Prior:
    """Means and precisions of ability and log ease; what is added to label counts (None: γ stays uniform)."""

    ability_mean: float
    ability_precision: float
    ease_mean: float
    ease_precision: float
    smoothing: float | None

    def log_density(self, state: State, voted: npt.NDArray[np.bool_]) -> float:
        """Return ln p(α, ln β, γ) up to a constant; the ease of tokens without votes is not part of the model."""
        ability = self.ability_precision * ((state.ability - self.ability_mean) ** 2).sum()
        ease = self.ease_precision * ((state.log_ease - self.ease_mean) ** 2)[voted].sum()
        gamma = 0.0 if self.smoothing is None else self.smoothing * state.log_gamma.sum()
        return float(gamma - 0.5 * (ability + ease))


class Passes:
    """EM steps over the votes of one corpus, in chunks of tokens and threads."""

    def __init__(self, votes: Votes, prior: Prior, n_threads: int) -> None:
        self.votes, self.prior, self.n_threads = votes, prior, n_threads
        self.chunks = chunks(votes.start, max(20_000, len(votes.label) // 64, 4 * votes.n_annotators))
        per_token = np.diff(votes.start)
        self.voted, self.most = per_token > 0, int(per_token.max(initial=1))

    def step(self, state: State, proba: npt.NDArray[np.float32] = NO_PROBA) -> tuple[State, float]:
        """Return the next state and the log posterior of this one."""
        votes, prior = self.votes, self.prior
        log_ease = np.empty_like(state.log_ease)

        def work(chunk: tuple[int, int]) -> tuple[Any, Any, float]:
            sums, totals = np.zeros((votes.n_annotators, 2)), np.zeros(votes.n_labels)
            arrays = (votes.start, votes.annotator, votes.label, state.ability, state.log_ease, log_ease)
            constants = (state.log_gamma, prior.ease_mean, prior.ease_precision, self.most)
            return sums, totals, glad_pass(*chunk, *arrays, *constants, sums, totals, proba)

        sums, totals, evidence = run_summed(work, self.chunks, self.n_threads)
        numerator = sums[:, 0] + prior.ability_precision * prior.ability_mean
        ability = numerator / (sums[:, 1] + prior.ability_precision)
        log_gamma = state.log_gamma
        if prior.smoothing is not None:
            log_gamma = np.log((totals + prior.smoothing) / (totals + prior.smoothing).sum())
        return State(ability, log_ease, log_gamma), evidence + prior.log_density(state, self.voted)


class Glad(TruthModel):
    """One ability per annotator, one ease per token (multi-class GLAD), by EM.

    Parameters: `ability_mean`, `ability_sd`, `ease_mean`, `ease_sd` (normal priors of ability and log ease);
    `class_prior`, "uniform" or "learned", and `smoothing` (what the prior adds to label counts); `restarts` (the first
    start is at the prior means, the others draw abilities at random); `max_iter`; `tol` (stop when the objective rises
    by less than this per annotation); `seed`; `n_threads`.

    `diagnostics["ability"]` has each annotator's ability, `diagnostics["ease_quantiles"]` the spread of the tokens'.
    """

    name = "glad"

    def __init__(
        self,
        *,
        ability_mean: float = 1.0,
        ability_sd: float = 1.0,
        ease_mean: float = 1.0,
        ease_sd: float = 1.0,
        class_prior: str = "uniform",
        smoothing: float = 0.01,
        restarts: int = 1,
        max_iter: int = 100,
        tol: float = 1e-5,
        seed: int | np.random.Generator = 0,
        n_threads: int | None = None,
    ) -> None:
        self.ability_mean = ability_mean
        self.ability_sd = ability_sd
        self.ease_mean = ease_mean
        self.ease_sd = ease_sd
        self.class_prior = class_prior
        self.smoothing = smoothing
        self.restarts = restarts
        self.max_iter = max_iter
        self.tol = tol
        self.seed = seed
        self.n_threads = n_threads

    def _prior(self) -> Prior:
        learned = check_choice("class_prior", self.class_prior, ("learned", "uniform")) == "learned"
        smoothing = check_number("smoothing", self.smoothing, low=0, open_low=True)
        return Prior(
            ability_mean=check_number("ability_mean", self.ability_mean),
            ability_precision=check_number("ability_sd", self.ability_sd, low=0, open_low=True) ** -2,
            ease_mean=check_number("ease_mean", self.ease_mean, low=-20, high=20),
            ease_precision=check_number("ease_sd", self.ease_sd, low=0, open_low=True) ** -2,
            smoothing=smoothing if learned else None,
        )

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        prior = self._prior()
        passes = Passes(votes, prior, available_threads(self.n_threads))
        T = votes.n_labels
        if T == 1:  # there is nothing to be wrong about
            return Posterior(np.ones((votes.n_tokens, 1), dtype=np.float32))

        def start(ability: Floats) -> State:
            return State(ability, np.full(votes.n_tokens, prior.ease_mean), np.full(T, -np.log(T)))

        def initial(rng: np.random.Generator) -> State:
            return start(prior.ability_mean + 0.5 * rng.standard_normal(votes.n_annotators))

        run = run_em(
            initial,
            passes.step,
            first=start(np.full(votes.n_annotators, prior.ability_mean)),
            **loop_settings(self),
            scale=len(votes.label),
            progress=progress,
        )
        proba = np.empty((votes.n_tokens, T), dtype=np.float32)
        passes.step(run.state, proba)
        quantiles = np.quantile(np.exp(run.state.log_ease[passes.voted]), [0.05, 0.25, 0.5, 0.75, 0.95])
        spread = {"ability": run.state.ability.tolist(), "ease_quantiles": quantiles.tolist()}
        return Posterior(proba, trace=run.trace, diagnostics=run.diagnostics() | spread)

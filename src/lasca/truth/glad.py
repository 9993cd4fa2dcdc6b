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

A history (`history=`) is incremental EM: the sums that abilities were made of stay as they were.

Differences from the paper: several labels; conjugate gradients over all parameters at once are replaced by the two
steps above.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from lasca.arrays import Bools, Floats, Ints, Proba
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block, Votes, cut_into_blocks
from lasca.estimator import choice, number, seeds, threads, tolerance, whole
from lasca.kernels.glad import glad_pass
from lasca.truth.base import Posterior, Progress, TruthModel
from lasca.truth.result import History, Truth
from lasca.truth.special import Special, special_tokens

__all__ = ["Glad"]

NO_PROBA = np.empty((0, 0), dtype=np.float32)


@dataclass(frozen=True)
class GladState:
    """Abilities, log label frequencies; the log ease of the tokens is kept with their blocks."""

    ability: Floats
    log_gamma: Floats


@dataclass(frozen=True)
class GladLocal:
    """What is kept of a block: the log ease of its tokens, which of them have votes, and what is known."""

    log_ease: Floats
    voted: Bools
    most: int
    special: Special


@dataclass(frozen=True)
class GladPrior:
    """Means and precisions of ability and log ease; what is added to label counts (None: γ stays uniform).

    A history makes those of abilities and label counts arrays: the bound of what was seen before is one more normal
    density of each ability, the one it had when that fit ended.
    """

    ability_mean: float | Floats
    ability_precision: float | Floats
    ease_mean: float
    ease_precision: float
    smoothing: float | Floats | None

    def log_density(self, state: GladState, distance: float) -> float:
        """Return ln p(α, ln β, γ) up to a constant; `distance` is Σ (ln β − mean)² over tokens that have votes."""
        ability = (self.ability_precision * (state.ability - self.ability_mean) ** 2).sum()
        ease = self.ease_precision * distance
        gamma = 0.0 if self.smoothing is None else (self.smoothing * state.log_gamma).sum()
        return float(gamma - 0.5 * (ability + ease))


@dataclass(frozen=True)
class GladLearner:
    """Glad as a learner: the settings, and what every step does (see `lasca.learn`)."""

    n_annotators: int
    n_labels: int
    prior: GladPrior
    remembers: ClassVar[bool] = True
    """The ease of a block's tokens cannot be made again from the block."""

    def summarise(self, block: Block) -> tuple[Any, ...]:
        """Return nothing: the start is the prior's."""
        return ()

    def start(self, summary: tuple[Any, ...], rng: np.random.Generator | None) -> GladState:
        """Return abilities at the prior mean, or drawn around it."""
        ability = np.zeros(self.n_annotators) + self.prior.ability_mean
        if rng is not None:
            ability = self.prior.ability_mean + 0.5 * rng.standard_normal(self.n_annotators)
        return GladState(ability, np.full(self.n_labels, -np.log(self.n_labels)))

    def visit(self, state: GladState, block: Block, local: GladLocal | None) -> tuple[tuple[Any, ...], GladLocal]:
        """Return the sums that abilities are made of, expected label counts, the log evidence and Σ (ln β − mean)²."""
        return self._pass(state, block, local or self._local(block), NO_PROBA)

    def update(self, state: GladState, statistics: tuple[Any, ...]) -> tuple[GladState, float]:
        """Do the M step of abilities and label frequencies; the objective is that of the state given."""
        sums, totals, evidence, distance = statistics
        prior = self.prior
        numerator = sums[:, 0] + prior.ability_precision * prior.ability_mean
        ability = numerator / (sums[:, 1] + prior.ability_precision)
        log_gamma = state.log_gamma
        if prior.smoothing is not None:
            log_gamma = np.log((totals + prior.smoothing) / (totals + prior.smoothing).sum())
        return GladState(ability, log_gamma), evidence + prior.log_density(state, distance)

    def describe(
        self, state: GladState, block: Block, local: GladLocal | None, out: Any
    ) -> tuple[None, tuple[Any, ...]]:
        """Write the posterior of each token to `out`; return how many tokens that have votes are how easy, and sums."""
        local = local or self._local(block)
        (sums, totals, _, _), _ = self._pass(state, block, local, out)
        return None, (np.histogram(local.log_ease[local.voted], EASES)[0], sums, totals)

    def _local(self, block: Block) -> GladLocal:
        per_token = np.diff(block.start)
        ease = np.full(len(block), self.prior.ease_mean)
        return GladLocal(ease, per_token > 0, int(per_token.max(initial=1)), special_tokens(block))

    def _pass(
        self, state: GladState, block: Block, local: GladLocal, proba: Proba
    ) -> tuple[tuple[Any, ...], GladLocal]:
        votes, prior, special = block.votes, self.prior, local.special
        log_ease = np.empty_like(local.log_ease)
        sums, totals = np.zeros((self.n_annotators, 2)), np.zeros(self.n_labels)
        arrays = (votes.start, votes.annotator, votes.label, state.ability, local.log_ease, log_ease, state.log_gamma)
        constants = (prior.ease_mean, prior.ease_precision, local.most, special.index, special.allowed)
        evidence = glad_pass(block.first, block.last, *arrays, *constants, sums, totals, proba)
        distance = ((local.log_ease - prior.ease_mean) ** 2)[local.voted].sum()
        return (sums, totals, evidence, distance), replace(local, log_ease=log_ease)


class Glad(TruthModel):
    """One ability per annotator, one ease per token (multi-class GLAD), by EM.

    `diagnostics["ability"]` has each annotator's ability, `diagnostics["ease_quantiles"]` the spread of the tokens'.
    """

    name = "glad"
    summary = "GLAD: one ability per annotator, one ease per token"
    supports = frozenset({"known", "update", "engine", "shards"})

    ability_mean: float = number("mean of the normal prior of ability", default=1.0)
    ability_sd: float = number("its standard deviation", default=1.0, low=0, open_low=True)
    ease_mean: float = number("mean of the normal prior of log ease", default=1.0, low=-20, high=20)
    ease_sd: float = number("its standard deviation", default=1.0, low=0, open_low=True)
    class_prior: str = choice("the labels' frequencies", ("learned", "uniform"), default="uniform")
    smoothing: float = number(
        "what the prior adds to label counts that are learned", default=0.01, low=0, open_low=True
    )
    restarts: int = whole(
        "starts: the first is at the prior means, the others draw abilities at random", default=1, low=1
    )
    max_iter: int = whole("iterations of a run at most", default=100, low=1)
    tol: float = tolerance(default=1e-5)
    seed: int | np.random.Generator = seeds(default=0)
    n_threads: int | None = threads(default=None)

    def _prior(self) -> GladPrior:
        return GladPrior(
            ability_mean=self.ability_mean,
            ability_precision=self.ability_sd**-2,
            ease_mean=self.ease_mean,
            ease_precision=self.ease_sd**-2,
            smoothing=self.smoothing if self.class_prior == "learned" else None,
        )

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        return self._fitted(votes, progress, np.zeros((votes.n_annotators, 2)), np.zeros(votes.n_labels))

    def _update(self, corpus: CrowdCorpus, votes: Votes, history: Truth, progress: Progress) -> Posterior:
        past = History.of(history, corpus, "sums")
        return self._fitted(votes, progress, past.counts("sums", "a."), past.counts("totals", "t"))

    def _fitted(self, votes: Votes, progress: Progress, past: Floats, past_totals: Floats) -> Posterior:
        """Fit; `past` are sums that abilities are made of, and label counts, of an earlier fit: they stay."""
        prior, T, fresh = self._prior(), votes.n_labels, not past.any()
        if T == 1:  # there is nothing to be wrong about
            return Posterior(np.ones((votes.n_tokens, 1), dtype=np.float32))
        if not fresh:
            precision = prior.ability_precision + past[:, 1]
            mean = (prior.ability_precision * prior.ability_mean + past[:, 0]) / precision
            counts = None if prior.smoothing is None else prior.smoothing + past_totals
            prior = replace(prior, ability_mean=mean, ability_precision=precision, smoothing=counts)
        learner = GladLearner(votes.n_annotators, T, prior)
        run, posterior, (spread, sums, totals) = self._learned(
            learner, blocks_of(votes), votes, progress, is_fresh=fresh, counts=True
        )
        more = {"ability": run.state.ability.tolist(), "ease_quantiles": _quantiles(spread)}
        kept = {"sums": sums + past, "totals": totals + past_totals}
        return replace(posterior, diagnostics=run.diagnostics() | more, statistics=kept)


EASES = np.linspace(-25.0, 25.0, 20_001)
"""The log eases between which tokens are counted: quantiles are exact to a quarter of a percent."""


def _quantiles(spread: Ints) -> list[float]:
    """Return the ease that 5, 25, 50, 75 and 95 percent of the tokens do not reach."""
    shares = np.cumsum(spread) / max(spread.sum(), 1)
    at = np.searchsorted(shares, [0.05, 0.25, 0.5, 0.75, 0.95])
    return [float(x) for x in np.exp(EASES[:-1][at] + (EASES[1] - EASES[0]) / 2)]


def blocks_of(votes: Votes) -> list[Block]:
    """Cut votes into blocks that are large beside the tables of sums that are added up."""
    return cut_into_blocks(votes, max(20_000, votes.n_hard // 64, 4 * votes.n_annotators))

"""HierarchicalClusters (HC): annotators fall into clusters; those of a cluster have similar confusion matrices.

Model (Lu, arXiv 2301.01579, section 3): Ψ_t^l ~ Dir(η_t^c β_t^c) for c = c_l, η_t^c ~ Exp(λ_η), β_t^c ~ Dir(a_t),
c_l ~ Mult(ν), ν ~ Dir(ε_ν/C), z_i ~ Mult(γ), γ ~ Dir(ε_γ/T), y_il ~ Mult(Ψ_{z_i}^l). Inference: blocked Gibbs. A
sweep moves c (Gibbs, swaps, splits, merges), β and η (Metropolis–Hastings) given z with Ψ, ν, γ integrated out, draws Ψ
and γ given these, and z given Ψ and γ, block by block (`cluster_sampler`); several chains side by side.

Deviations from the paper (its errors E1–E7 as the docs page of this model lists them):
- E1, E3 (misprints in eqs. 12 and 10): the conditionals are ratios of the joint density, and tested to be.
- E2: β_t ~ Dir(λ α_t) as in the paper's appendix, not Dir(α_t) of eq. 2.
- E4: the proposals are corrected for their asymmetry; η lives on (0, ∞) and walks on a log scale.
- α is 0.7 on the diagonal and 0.3 *shared by* the rest of the row, with λ = 40 (the paper: 0.3 for each other label,
  λ = 2, which with 9 labels expects 23 % right answers and with 300 labels 1 %): a label that few mean and fewer find
  must not become a bin for hard tokens. BIC compares runs with the paper's λ α, which is nearly flat.
- E5: λ_η is weak (prior mean of η 50). With the paper's λ_η = 2 one diffuse cluster explains everybody:
  `priors="paper"` does that.
- E6: chains start from Dawid–Skene posteriors and clustered confusion rows, β and η move before the first c does, and
  there are moves that swap two annotators and that split or merge clusters.
- E7: `shared="posterior"` is the posterior mean confusion of a cluster's annotators; `shared="unanimous"` is eq. 11
  to the letter.
- Difficulty: a token is easy or hard (its state is level and label, γ over all of them). At an easy one the model is
  the paper's; at a hard one rows are Ψ_t ~ Dir(d_t) for everybody, d_t = 50 pseudo-counts: 30 % right, the rest spread
  as votes are. Without it a rare label becomes a bin for hard tokens. Off by default, none with `priors="paper"`.
- BIC takes the labels at the mode of a short run of the model with as many clusters as it looks at, the same for every
  number of clusters, so that likelihoods of the same labels are compared. It does not know levels.
- The paper integrates Ψ and γ out of the draw of z too, token by token; here they are drawn, so that blocks of tokens
  can be drawn apart from each other, on any engine. The posterior is the same one.
- Probabilities are averages of the conditionals of z (Rao–Blackwell) over all kept sweeps of the chains in range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from lasca.arrays import Floats, Ints32
from lasca.corpus import CrowdCorpus
from lasca.corpus.votes import Block
from lasca.engine import available_threads
from lasca.errors import ParameterError
from lasca.estimator import choice, flag, generator, number, other, seeds, threads, whole
from lasca.learn import loop_settings, run_learner
from lasca.truth import clusters as tools
from lasca.truth.base import Posterior, Progress, TruthModel, Votes
from lasca.truth.cluster_draws import Draws, choose, diagnostics_of, kept_draws, mode, summed_up, warnings_of
from lasca.truth.cluster_sampler import Priors, Sampler, StateLearner, Sweep, hard_rows
from lasca.truth.dawid_skene import ConfusionLearner, DawidSkene, Parameters, blocks_of
from lasca.truth.finish import Finish
from lasca.truth.result import Clusters
from lasca.truth.sequence_clusters import SequenceClusters, check_clusters

__all__ = ["HierarchicalClusters"]

WEAK_RATE, PAPER_RATE = 0.02, 2.0  # λ_η
STRENGTH, PAPER_STRENGTH = 40.0, 2.0  # λ of β's prior


class HierarchicalClusters(TruthModel):
    """Clusters of annotators with similar confusion matrices, by Gibbs sampling."""

    name = "hc"
    summary = "LA-SCA: annotators in clusters with a shared confusion matrix, by Gibbs sampling"
    supports = frozenset({"known", "engine", "shards"})

    n_clusters: int | str = other(
        "clusters; 'bic': the best of 1 to 5",
        "'bic' or a whole number of at least 1",
        default="bic",
        check=check_clusters,
    )
    priors: str = choice("'paper' is λ_η = 2, see E5", ("default", "paper"), default="default")
    lambda_eta: float | None = number(
        "rate of η's prior", default=None, low=0, open_low=True, none="0.02, or what `priors` says"
    )
    strength: float | None = number(
        "how many labels the prior of a row β_t weighs",
        default=None,
        low=0,
        open_low=True,
        none="40, or what `priors` says",
    )
    difficulty: bool = flag(
        "tokens are easy or hard, see the docs before use; never with priors='paper'", default=False
    )
    shared: str = choice(
        "the shared confusion of a cluster: its posterior mean, or eq. 11",
        ("posterior", "unanimous"),
        default="posterior",
    )
    n_chains: int = whole("chains", default=4, low=1)
    n_warmup: int = whole("sweeps of a chain before any is kept", default=100, low=0)
    n_samples: int = whole("sweeps of a chain that are kept", default=100, low=4)
    thin: int = whole("keep one sweep in so many", default=1, low=1)
    epsilon_nu: float = number("ε of the cluster frequencies", default=1.0, low=0, open_low=True)
    epsilon_gamma: float = number("ε of the label frequencies", default=1.0, low=0, open_low=True)
    sequence: bool | Mapping[str, Any] = other(
        "tokens are independent; True: the model is `SequenceClusters`, with the same n_clusters, seed and n_threads",
        "True, False, or parameters of SequenceClusters by name",
        default=False,
    )
    seed: int | np.random.Generator = seeds(default=0)
    n_threads: int | None = threads(default=None)

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        if self.sequence is not False:
            model = self._sequences().checked()
            model.engine, model.place = self.engine, self.place
            model._check_support(votes, None)
            return model._infer(corpus, votes, progress)
        n_threads = available_threads(self.n_threads)
        rng, blocks = generator(self.seed), blocks_of(votes)
        levels = 2 if self.difficulty and self.priors != "paper" and votes.n_labels > 1 else 1
        progress(0.0, "start: Dawid–Skene")
        first = self._start(votes, blocks) if levels == 1 else None  # Dawid–Skene may have the bins already
        learner = StateLearner(votes.n_annotators, votes.n_labels, levels, first)
        scores: list[tools.BicScore] = []
        with self._work(learner, blocks) as work:
            (given,) = work.summary()
            draws = Draws(work, Sampler(self._priors(given.sum(axis=0), levels)), given, 1, n_threads)
            if isinstance(self.n_clusters, str):
                progress(0.02, "number of clusters")
                own_rng, flat = rng.spawn(1)[0], Sampler(self._priors(given.sum(axis=0), flat=True))
                scores = choose(flat, *mode(draws, own_rng), own_rng, n_threads)
                draws.n_clusters = min(scores, key=lambda score: score.bic).n_clusters
            else:
                draws.n_clusters = self.n_clusters
            chains = draws.run(
                rng,
                n_chains=self.n_chains,
                n_warmup=self.n_warmup,
                n_samples=self.n_samples,
                thin=self.thin,
                progress=lambda share, words: progress(0.1 + 0.9 * share, words),
            )
            mean, good, agreement = summed_up(chains)
            everyone = np.full(votes.n_annotators, -1, np.int32)
            everyone[draws.used] = mean.c_proba.argmax(axis=1)
            literal = self.shared == "unanimous"
            last = Sweep((), (), 0, good=tuple(good.tolist()), assignment=everyone if literal else None)
            posterior, counted = self._finished(work, last, Finish(votes.is_sole, votes.is_sole))
        shared = tools.mean_confusion(mean.confusion, mean.c_proba, mean.beta)
        if literal:
            agreed, seen = counted
            shared = agreed / np.maximum(seen, 1)[:, :, None]
        found, order = _clusters(everyone, mean.c_proba, shared)
        confusion = np.tile(mean.confusion.mean(axis=0), (votes.n_annotators, 1, 1))
        confusion[draws.used] = mean.confusion
        diagnostics = diagnostics_of(chains, good) | {
            "n_clusters": len(mean.eta),
            "cluster_agreement": agreement,
            "n_clusters_used": found.n_clusters,
            "bic": [vars(score) for score in scores],
            "eta": mean.eta[order].tolist(),
        }
        return replace(
            posterior,
            confusion=confusion,
            clusters=found,
            trace=np.stack([chain.trace for chain in chains]),
            diagnostics=diagnostics,
            warnings=warnings_of(diagnostics, good),
            statistics={f"draws.{name}": draws for name, draws in kept_draws(chains).items()},
        )

    def _start(self, votes: Votes, blocks: list[Block]) -> tuple[ConfusionLearner, Parameters]:
        """Run Dawid–Skene, where the chains start from."""
        model = DawidSkene(max_iter=50)
        learner = model._learner(votes)
        with self._work(learner, blocks) as work:
            return learner, run_learner(learner, work, loop_settings(model), scale=votes.n_votes).state

    def _sequences(self) -> SequenceClusters:
        """Return the model with sequences that this one stands for."""
        parts = {} if self.sequence is True else self.sequence
        if not isinstance(parts, Mapping):
            raise ParameterError("sequence", self.sequence, "True, False, or parameters of SequenceClusters by name")
        model = SequenceClusters(n_clusters=self.n_clusters, seed=self.seed, n_threads=self.n_threads)
        return model.set_params(**parts)

    def _priors(self, given: Floats, levels: int = 1, *, flat: bool = False) -> Priors:
        """Return the priors; `flat`: β's is nearly so, for BIC, which asks for the largest likelihood.

        `given` is how often each label was given.
        """
        n_labels = len(given)
        paper = self.priors == "paper"
        rate = PAPER_RATE if paper else WEAK_RATE
        if self.lambda_eta is not None:
            rate = self.lambda_eta
        strength = PAPER_STRENGTH if paper or flat else STRENGTH
        if self.strength is not None and not flat:
            strength = self.strength
        off = 0.3 if paper or flat else 0.3 / max(1, n_labels - 1)
        alpha = np.full((n_labels, n_labels), strength * off)  # E2: λ α
        np.fill_diagonal(alpha, strength * 0.7)
        hard = hard_rows(given) if levels > 1 else np.zeros((0, n_labels))
        return Priors(alpha, rate, self.epsilon_nu, self.epsilon_gamma, hard)


def _clusters(everyone: Ints32, c_proba: Floats, shared: Floats) -> tuple[Clusters, Ints32]:
    """Order the clusters that somebody is in by reliability; annotators without labels are in none (-1)."""
    used = everyone >= 0
    occupied = np.unique(everyone[used])
    order = occupied[np.argsort(-tools.reliability(shared[occupied]), kind="stable")]
    place = np.full(len(shared), -1, np.int32)
    place[order] = np.arange(len(order))
    proba = np.full((len(everyone), len(order)), 1.0 / len(order), np.float32)
    proba[used] = c_proba[:, order] / c_proba[:, order].sum(axis=1, keepdims=True)
    assignment = np.where(used, place[everyone], np.int32(-1))
    return Clusters(assignment, proba, shared[order].astype(np.float32)), order

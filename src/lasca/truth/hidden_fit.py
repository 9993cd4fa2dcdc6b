"""Inference over hidden states: starts, one round of variational Bayes, and blocked Gibbs sampling of the same model.

A round has fixed texts and fixed priors; its objective never falls. The sampler draws all parameters given the states
(Dirichlet rows), then the states of each sequence given the parameters (forward filtering, backward sampling), and
averages the states' probabilities given the parameters (Rao–Blackwell).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from lasca.truth.annotator_models import confusion_prior
from lasca.truth.base import Votes
from lasca.truth.chains import Chain as SampledChain
from lasca.truth.chains import in_range, run_chains
from lasca.truth.em import run_em
from lasca.truth.evidence import Floats
from lasca.truth.hidden_states import CrowdPrior, Expected, HiddenStates, Parameters, Text
from lasca.truth.sequence import Chain, ChainCounts, drawn_paths, marginals

__all__ = ["Fit", "Samples", "fit_round", "sample_states", "state_evidence", "vote_shares"]


@dataclass(frozen=True)
class Fit:
    """One round: where it ended. `proba` is (n_tokens, S), `labels` its sum over levels."""

    model: HiddenStates
    texts: tuple[Text, ...]
    prior: CrowdPrior
    parameters: Parameters
    expected: Expected
    proba: Floats
    labels: Floats
    trace: npt.NDArray[np.float64]
    converged: bool

    @property
    def objective(self) -> float:
        """The last objective."""
        return float(self.trace[-1])


def vote_shares(votes: Votes) -> Floats:
    """Return the share of a token's votes that each label has; rows of zeros where there are none."""
    token = np.repeat(np.arange(votes.n_tokens), np.diff(votes.start))
    flat = np.bincount(token * votes.n_labels + votes.label, minlength=votes.n_tokens * votes.n_labels)
    return np.asarray(flat.reshape(-1, votes.n_labels) / np.maximum(np.diff(votes.start), 1)[:, None])


def state_evidence(model: HiddenStates, labels: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    """Spread log evidence on labels over levels: a label is the easier the more votes it has."""
    if model.H == 1:
        return labels.astype(np.float32)
    share = vote_shares(model.votes)
    hard = np.clip(1 - share, 0.05, 0.95) / (model.H - 1)
    weight = np.hstack([np.clip(share, 0.05, 0.95), *[hard] * (model.H - 1)])
    return (np.tile(labels, (1, model.H)) + np.log(weight)).astype(np.float32)


def fit_round(
    model: HiddenStates,
    start: npt.NDArray[np.float32],
    *,
    texts: Sequence[Text] = (),
    prior: CrowdPrior | None = None,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
) -> Fit:
    """Run variational Bayes from log evidence on states to convergence."""
    own = model.base_prior if prior is None else prior
    out = np.empty((model.votes.n_tokens, model.S))

    def step(parameters: Parameters) -> tuple[Parameters, float]:
        expected = model.expect(parameters, texts, out)
        return model.maximise(expected, own), expected.chain.log_sum - parameters.penalty

    first = model.maximise(model.expect(None, texts, out, start), own)
    run = run_em(
        lambda own_rng: first, step, rng=rng, restarts=1, max_iter=max_iter, tol=tol,
        scale=len(model.votes.label), first=first,
    )  # fmt: skip
    expected = model.expect(run.state, texts, out)
    return Fit(model, tuple(texts), own, run.state, expected, out, model.label_proba(out), run.trace, run.converged)


# --- blocked Gibbs -------------------------------------------------------------------------------------------------


@dataclass
class _State:
    """What the next sweep needs."""

    counts: Expected
    rng: np.random.Generator
    out: Floats
    """(n_tokens, S): the states' probabilities given the parameters last drawn."""


class _Kept:
    """Sums over the kept draws of one chain."""

    def __init__(self, model: HiddenStates) -> None:
        self.model, self.n = model, 0
        self.proba = np.zeros((model.votes.n_tokens, model.S))
        self.crowd = np.zeros((model.rows.n_rows, model.S))

    def add(self, state: _State) -> None:
        """Add a draw."""
        self.proba += state.out
        self.crowd += state.counts.crowd
        self.n += 1


@dataclass(frozen=True)
class Samples:
    """Means over the kept draws of the chains in range."""

    proba: Floats
    crowd: Floats
    trace: npt.NDArray[np.float64]
    """(n_chains, n_sweeps): the log joint with all parameters integrated out."""
    in_range: npt.NDArray[np.bool_]
    kept: npt.NDArray[np.float64]


def sample_states(
    fit: Fit,
    *,
    rng: np.random.Generator,
    n_chains: int,
    n_warmup: int,
    n_samples: int,
    n_threads: int,
) -> Samples:
    """Sample the model of `fit`, its texts and priors; chains start from states drawn from its posterior."""
    model = fit.model

    def initial(chain: int, own_rng: np.random.Generator) -> _State:
        state = _State(fit.expected, own_rng, np.empty_like(fit.proba))
        _, state.counts = _draw_states(fit, fit.parameters, own_rng)
        return state

    def sweep(state: _State, tuning: float, store: _Kept | None) -> float:
        parameters = _draw_parameters(fit, state.counts, state.rng)
        if store is not None:
            evidence = model.evidence(parameters, fit.texts)
            marginals(model.votes.offsets, parameters.chain, model.sources(parameters), state.out, 1, evidence)
        _, state.counts = _draw_states(fit, parameters, state.rng)
        return log_joint(fit, state.counts)

    chains: list[SampledChain[_State, _Kept]] = run_chains(
        initial, sweep, lambda chain: _Kept(model), rng=rng, n_chains=n_chains, n_warmup=n_warmup,
        n_samples=n_samples, n_threads=n_threads,
    )  # fmt: skip
    kept = np.stack([chain.kept for chain in chains])
    good = in_range(kept)
    stores = [chain.store for chain, ok in zip(chains, good) if ok]
    n = sum(store.n for store in stores)
    proba = sum((store.proba for store in stores), np.zeros_like(stores[0].proba)) / n
    crowd = sum((store.crowd for store in stores), np.zeros_like(stores[0].crowd)) / n
    return Samples(proba, crowd, np.stack([chain.trace for chain in chains]), good, kept)


def _draw_states(fit: Fit, parameters: Parameters, rng: np.random.Generator) -> tuple[npt.NDArray[np.int16], Expected]:
    """Draw a path through the states of every sequence; return it with its counts."""
    model, offsets = fit.model, fit.model.votes.offsets
    evidence = model.evidence(parameters, fit.texts)
    uniform = rng.random(model.votes.n_tokens)
    path = drawn_paths(offsets, parameters.chain, model.sources(parameters), uniform, 1, evidence)
    one = np.zeros((len(path), model.S))
    one[np.arange(len(path)), path] = 1.0
    begins = offsets[:-1][np.diff(offsets) > 0]
    starts = np.bincount(path[begins], minlength=model.S).astype(float)
    inside = np.ones(len(path), dtype=bool)
    inside[begins] = False
    at = np.flatnonzero(inside)
    moves = np.bincount(path[at - 1].astype(np.int64) * model.S + path[at], minlength=model.S**2).astype(float)
    return path, model.counted(ChainCounts(0.0, starts, moves.reshape(model.S, model.S)), fit.texts, one)


def _draw_parameters(fit: Fit, counts: Expected, rng: np.random.Generator) -> Parameters:
    """Draw every Dirichlet row from its posterior; tables hold logs."""
    model, settings = fit.model, fit.model.settings
    crowd = _log_dirichlet_rows(counts.crowd + fit.prior.rows, model.borders, _absent(fit), rng)
    words = None
    if counts.words is not None:
        words = _log_dirichlet_rows(counts.words + settings.word_prior, np.array([0, len(counts.words)]), None, rng)
    pseudo = confusion_prior(model.T, *settings.text_prior)
    texts = tuple(_log_gamma(c + pseudo, rng) for c in counts.texts)
    texts = tuple(t - np.log(np.exp(t).sum(axis=1, keepdims=True)) for t in texts)
    return Parameters(_draw_chain(model, counts.chain, rng), crowd, words, texts, 0.0)


def _draw_chain(model: HiddenStates, counts: ChainCounts, rng: np.random.Generator) -> Chain:
    starts, moves = model.move_counts(counts)
    if not model.settings.markov:
        weight = rng.dirichlet(starts + model.pseudo())
        return Chain(weight, np.tile(weight, (model.S, 1)), model.rules.end)
    start, move = np.zeros(model.S), np.zeros((model.S, model.S))
    for row, may, n in [(start, model.rules.start, starts), *zip(move, model.rules.move, moves)]:
        row[may > 0] = rng.dirichlet(n[may > 0] + model.pseudo())
    return Chain(start, move, model.rules.end)


def _log_gamma(alpha: Floats, rng: np.random.Generator) -> Floats:
    """Draw logs of Gamma(alpha) variables, without underflow for small alpha."""
    return np.asarray(np.log(rng.standard_gamma(alpha + 1.0)) + np.log(rng.random(alpha.shape)) / alpha)


def _absent(fit: Fit) -> Floats:
    """Return the pseudo-counts of rows that never occur, by context."""
    present = np.add.reduceat(fit.prior.rows, fit.model.borders[:-1], axis=0)
    return np.maximum(fit.prior.totals - present, 0.0)


def _log_dirichlet_rows(
    alpha: Floats, borders: npt.NDArray[np.int64], absent: Floats | None, rng: np.random.Generator
) -> Floats:
    """Draw a Dirichlet over the rows of each context, for every state; rows that never occur are one more row."""
    log = _log_gamma(alpha, rng)
    sizes = np.diff(borders)
    highest = np.maximum.reduceat(log, borders[:-1], axis=0)
    total = np.add.reduceat(np.exp(log - np.repeat(highest, sizes, axis=0)), borders[:-1], axis=0)
    log_total = highest + np.log(total)
    if absent is not None:
        rest = np.where(absent > 1e-9, _log_gamma(np.maximum(absent, 1e-9), rng), -np.inf)
        log_total = np.logaddexp(log_total, rest)
    return np.asarray(log - np.repeat(log_total, sizes, axis=0))


def log_joint(fit: Fit, counts: Expected) -> float:
    """Return ln p(states, votes, words, texts), all parameters integrated out, for the counts of a path."""
    model, pseudo = fit.model, fit.model.pseudo()
    rows = np.add.reduceat(counts.crowd, model.borders[:-1], axis=0)
    total = _rising(fit.prior.rows, counts.crowd) - _rising(fit.prior.totals, rows)
    if counts.words is not None:
        prior = model.settings.word_prior
        total += _rising(prior, counts.words) - _rising(prior * len(counts.words), counts.words.sum(axis=0))
    own = confusion_prior(model.T, *model.settings.text_prior)
    for text in counts.texts:
        total += _rising(own, text) - _rising(own.sum(axis=1), text.sum(axis=1))
    starts, moves = model.move_counts(counts.chain)
    table = [(model.rules.start, starts)]
    if model.settings.markov:
        table += list(zip(model.rules.move, moves))
    for may, n in table:
        ok = may > 0
        total += _rising(pseudo, n[ok]) - _rising(pseudo * ok.sum(), n[ok].sum())
    return total


def _rising(prior: Floats | float, counts: Floats | float) -> float:
    return float(np.sum(gammaln(prior + counts) - gammaln(prior)))

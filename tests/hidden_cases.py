"""Hidden states, fits and texts for the tests of the sequence model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lasca.corpus import CrowdCorpus
from lasca.truth.base import Votes
from lasca.truth.hidden_fit import Fit, fit_round, state_evidence, vote_shares
from lasca.truth.hidden_states import CrowdPrior, HiddenStates, Settings, Text

SETTINGS = Settings(
    levels=((5.0, 0.5), (5.0, 5.0)),
    markov=True,
    memory=True,
    words=True,
    transition_prior=1.0,
    word_prior=1.0,
    text_prior=(11.0, 10.0),
)


def states(corpus: CrowdCorpus, **changes: Any) -> HiddenStates:
    return HiddenStates(corpus, Votes.of(corpus), replace(SETTINGS, **changes), 1)


def fitted(model: HiddenStates, texts: tuple[Text, ...] = (), prior: CrowdPrior | None = None, n: int = 20) -> Fit:
    start = state_evidence(model, np.log(np.maximum(vote_shares(model.votes), 1e-2)))
    return fit_round(model, start, texts=texts, prior=prior, max_iter=n, tol=0, rng=np.random.default_rng(0))


def some_text(corpus: CrowdCorpus, seed: int = 0) -> Text:
    rows = np.random.default_rng(seed).dirichlet(np.ones(corpus.n_labels), corpus.n_tokens)
    return Text(rows.astype(np.float32))

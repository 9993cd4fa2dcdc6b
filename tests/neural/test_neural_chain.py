"""The objectives in torch against those in NumPy: values and gradients, for every kind of target."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lasca import crf
from lasca.crf.features import Weights
from lasca.errors import ModelError
from lasca.tagger.neural.training import chain_values, log_marginals, log_partition

LENGTHS, N_LABELS = (5, 1, 3, 7), 4


def batch(flat: np.ndarray) -> torch.Tensor:
    """Lay the rows of tokens out as a padded batch; the padding holds rubbish."""
    rows = np.split(flat, np.cumsum(LENGTHS)[:-1])
    filler = flat[0] if flat.ndim == 1 or flat.dtype == np.bool_ else flat[-1]
    return torch.from_numpy(np.stack([np.concatenate([r, np.repeat([filler], 7 - len(r), axis=0)]) for r in rows]))


def targets(kind: str, rng: np.random.Generator) -> np.ndarray:
    n = sum(LENGTHS)
    if kind == "labels":
        return rng.integers(0, N_LABELS, size=n)
    if kind == "some":
        return np.where(np.arange(n) % 3 == 1, -1, rng.integers(0, N_LABELS, size=n))
    if kind == "allowed":
        found = rng.random((n, N_LABELS)) < 0.5
        found[np.arange(n), rng.integers(0, N_LABELS, size=n)] = True
        found[:, 0] &= ~found.all(axis=1)
        return found
    return rng.dirichlet(np.ones(N_LABELS), size=n).astype(np.float32)


@pytest.mark.parametrize("kind", ["labels", "some", "allowed", "soft"])
@pytest.mark.parametrize("objective", ["likelihood", "cost-sensitive", "softmax-margin", "agreement"])
def test_values_and_gradients_are_those_of_numpy(objective: str, kind: str) -> None:
    if (objective, kind) == ("agreement", "soft"):
        with pytest.raises(ModelError, match="label per token"):
            chain_values(
                objective, torch.zeros(1, 1, 2), torch.zeros(2, 2), torch.ones(1, 1).bool(), torch.ones(1, 1, 2)
            )
        return
    rng = np.random.default_rng(7)
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    scores, moves = 2 * rng.normal(size=(offsets[-1], N_LABELS)), rng.normal(size=(N_LABELS, N_LABELS))
    costs = crf.cost_matrix((lambda m: (m + m.T) / 2)(rng.random((N_LABELS, N_LABELS))), N_LABELS)
    given = targets(kind, rng)
    features = crf.Features.one_each(offsets)
    weights = Weights.of_scores(scores, moves)
    l2 = 1e-9
    numpy_objective = crf.Objective(features, given, weights.space, objective=objective, costs=costs, l2=l2)
    gradient = np.zeros(weights.space.size)
    expected = numpy_objective(weights.vector, gradient)

    emissions, transitions = (torch.tensor(x, requires_grad=True) for x in (scores, moves))
    mask = torch.arange(7) < torch.tensor(LENGTHS)[:, None]
    padded = torch.zeros(len(LENGTHS), 7, N_LABELS, dtype=torch.float64)
    padded = padded.masked_scatter(mask[:, :, None].expand_as(padded), emissions)
    values = chain_values(objective, padded, transitions, mask, batch(given), torch.from_numpy(costs))
    (-values.sum()).backward()
    assert -values.sum().item() == pytest.approx(expected, abs=1e-5)
    np.testing.assert_allclose(emissions.grad.numpy().ravel(), gradient[: weights.space.n_state], atol=1e-5)
    np.testing.assert_allclose(transitions.grad.numpy().ravel(), gradient[weights.space.n_state :], atol=1e-5)


def test_marginals_are_those_of_the_kernels() -> None:
    rng = np.random.default_rng(3)
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    scores, moves = rng.normal(size=(offsets[-1], N_LABELS)), rng.normal(size=(N_LABELS, N_LABELS))
    mask = torch.arange(7) < torch.tensor(LENGTHS)[:, None]
    logs, log_z = log_marginals(batch(scores), torch.from_numpy(moves), mask)
    found = crf.marginals(crf.Features.one_each(offsets), Weights.of_scores(scores, moves))
    np.testing.assert_allclose(logs.exp()[mask].numpy(), found, atol=1e-6)
    np.testing.assert_allclose(log_z.numpy(), log_partition(batch(scores), torch.from_numpy(moves), mask).numpy())

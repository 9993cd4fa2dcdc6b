"""The objectives of `lasca.crf.objective` for emissions that a network computes, in torch.

A batch has emissions (B, L, T), a mask (B, L) of the tokens that are there (each sequence begins at place 0) and
transitions (T, T). With score(z) = Σ_k emission_k(z_k) + Σ_k transition(z_{k−1}, z_k) the values are those of the NumPy
objectives: likelihood, cost-sensitive, softmax-margin, agreement; for hard labels (−1 = unknown: summed over), sets of
allowed labels (bool) and distributions per token (float), as there. Gradients come from torch; tests compare both to
1e-5.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lasca.errors import ModelError

__all__ = ["chain_values", "log_marginals", "log_partition"]

_NEVER = -1e9


def log_partition(emissions: Tensor, transitions: Tensor, mask: Tensor) -> Tensor:
    """Return log Σ_z exp score(z) of each sequence, (B,)."""
    return torch.logsumexp(_forward(emissions, transitions, mask)[-1], dim=1)


def log_marginals(emissions: Tensor, transitions: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log probability of each label at each token, (B, L, T), and log Σ_z exp score(z), (B,)."""
    alpha = _forward(emissions, transitions, mask)
    log_z = torch.logsumexp(alpha[-1], dim=1)
    row = torch.zeros_like(emissions[:, 0])
    beta = [row]
    for k in range(emissions.shape[1] - 1, 0, -1):
        before = torch.logsumexp(transitions + (row + emissions[:, k])[:, None, :], dim=2)
        row = torch.where(mask[:, k, None], before, row)
        beta.append(row)
    return torch.stack(alpha, dim=1) + torch.stack(beta[::-1], dim=1) - log_z[:, None, None], log_z


def _forward(emissions: Tensor, transitions: Tensor, mask: Tensor) -> list[Tensor]:
    """Return the log sums over all beginnings up to each token, (B, T) each; behind a sequence they stay."""
    rows = [emissions[:, 0]]
    for k in range(1, emissions.shape[1]):
        step = torch.logsumexp(rows[-1][:, :, None] + transitions, dim=1) + emissions[:, k]
        rows.append(torch.where(mask[:, k, None], step, rows[-1]))
    return rows


def chain_values(
    objective: str, emissions: Tensor, transitions: Tensor, mask: Tensor, targets: Tensor, costs: Tensor | None = None
) -> Tensor:
    """Return the value of each sequence, (B,), to be maximised.

    `targets` are (B, L) labels, (B, L, T) bools of allowed labels or (B, L, T) distributions; `costs[j, t]` is the cost
    of label j where t is right (1 for every mistake, if not given).
    """
    if costs is None:
        costs = 1.0 - torch.eye(emissions.shape[2], dtype=emissions.dtype)
    if objective in ("agreement", "agreement-f1"):
        emissions = _weighed(emissions, targets, costs.to(emissions.dtype))
    value = _target_score(emissions, transitions, mask, targets)
    if objective in ("likelihood", "agreement", "agreement-f1"):
        return value - log_partition(emissions, transitions, mask)
    cost = _cost_rows(targets, costs.to(emissions.dtype)) * mask[:, :, None]
    if objective == "softmax-margin":
        return value - log_partition(emissions + cost, transitions, mask)
    if objective == "cost-sensitive":
        logs, log_z = log_marginals(emissions, transitions, mask)
        share = cost / mask.sum(dim=1)[:, None, None]
        expected = torch.where(
            share > 0, logs + torch.log(torch.clamp(share, min=1e-30)), torch.full_like(logs, _NEVER)
        )
        return value - log_z - torch.logsumexp(expected.flatten(1), dim=1)
    raise ModelError("there is no such objective for networks", got=objective)


def _weighed(emissions: Tensor, targets: Tensor, costs: Tensor) -> Tensor:
    """Return weight(t, y) × (score(t) − score(y)) where one label y is known; other tokens as they are."""
    if targets.dim() == 3 and targets.dtype != torch.bool:
        raise ModelError("the agreement objective needs a label per token, not probabilities", hint="Set soft=False")
    if targets.dim() == 3:
        targets = torch.where(targets.sum(dim=2) == 1, targets.int().argmax(dim=2), -1)
    codes = targets.clamp(min=0)
    own = emissions.gather(2, codes[:, :, None])
    return torch.where((targets >= 0)[:, :, None], (emissions - own) * costs.T[codes], emissions)


def _target_score(emissions: Tensor, transitions: Tensor, mask: Tensor, targets: Tensor) -> Tensor:
    """Return the score of the target: of one path, the log sum over allowed paths, or the expected score."""
    if targets.dim() == 2 and bool((targets[mask] >= 0).all()):
        return _path_score(emissions, transitions, mask, targets)
    if targets.dim() == 2 or targets.dtype == torch.bool:
        closed = torch.where(_allowed(targets, emissions.shape[2]), emissions, torch.full_like(emissions, _NEVER))
        return log_partition(closed, transitions, mask)
    kept = targets.to(emissions.dtype) * mask[:, :, None]
    moves = ((kept[:, :-1] @ transitions) * kept[:, 1:]).sum(dim=(1, 2))
    return (emissions * kept).sum(dim=(1, 2)) + moves


def _path_score(emissions: Tensor, transitions: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
    codes = labels.clamp(min=0)
    nodes = emissions.gather(2, codes[:, :, None])[:, :, 0] * mask
    moves = transitions[codes[:, :-1], codes[:, 1:]] * mask[:, 1:]
    return nodes.sum(dim=1) + moves.sum(dim=1)


def _allowed(targets: Tensor, n_labels: int) -> Tensor:
    """Return which labels each token may have; every one where it is unknown."""
    if targets.dtype == torch.bool:
        return targets
    return (targets[:, :, None] == torch.arange(n_labels)) | (targets[:, :, None] < 0)


def _cost_rows(targets: Tensor, costs: Tensor) -> Any:
    """Return the cost of each label at each token, (B, L, T); an allowed label costs nothing."""
    if targets.dim() == 3 and targets.dtype != torch.bool:
        return targets.to(costs.dtype) @ costs.T
    if targets.dim() == 2 and bool((targets >= 0).all()):
        return costs.T[targets]
    allowed = _allowed(targets, len(costs))
    dear = torch.where(allowed[:, :, None, :], costs, torch.full_like(costs, torch.inf)).amin(dim=3)
    return torch.where(allowed, torch.zeros_like(dear), dear)

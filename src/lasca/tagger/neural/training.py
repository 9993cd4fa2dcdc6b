"""The training loop of networks: AdamW, a rate that rises and falls, early stopping by held-out votes.

*The objectives* are those of `lasca.crf.objective`, in torch, for emissions that a network computes. A batch has
emissions (B, L, T), a mask (B, L) of the tokens that are there (each sequence begins at place 0) and transitions (T,
T). With score(z) = Σ_k emission_k(z_k) + Σ_k transition(z_{k−1}, z_k) the values are those of the NumPy objectives:
likelihood, cost-sensitive, softmax-margin, agreement; for hard labels (−1 = unknown: summed over), sets of allowed
labels (bool) and distributions per token (float), as there. Gradients come from torch; tests compare both to 1e-5.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from lasca.arrays import Array
from lasca.errors import ModelError
from lasca.estimator import Progress
from lasca.tagger.base import Examples

if TYPE_CHECKING:
    from lasca.tagger.neural.base import Network

__all__ = ["batches", "chain_values", "has_neighbours", "log_marginals", "log_partition", "train", "windows"]

_NEVER = -1e9
_WARM = 0.1  # share of steps in which the learning rate rises
_CLIP = 1.0
_SENTENCE = 25  # words of a sentence: whole abstracts in a batch would make few steps
_SORTED_TOGETHER = 20  # batches whose sentences are sorted by length before they are cut


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
    if objective == "agreement":
        emissions = _weighed(emissions, targets, costs.to(emissions.dtype))
    value = _target_score(emissions, transitions, mask, targets)
    if objective in ("likelihood", "agreement"):
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


def train(
    network: Network,
    sentences: list[list[str]],
    examples: Examples,
    *,
    objective: str,
    costs: Array,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    weight_decay: float,
    held_out: float,
    patience: int,
    context: int,
    seed: int,
    progress: Progress | None,
    proba: Callable[[Sequence[Sequence[str]], list[list[int]]], Array],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Train the network in place; return minus the mean objective per epoch, and the held-out scores.

    With held-out sequences the weights of the best epoch are kept, and training ends after `patience` epochs without a
    better one. The judges are the votes on those sequences (`VoteScore`); where there are none, their labels. With
    `context` neighbouring sequences of a document are read together, in windows that are cut anew in each epoch.
    """
    rng = np.random.default_rng(seed)
    keep = np.flatnonzero(np.diff(examples.offsets) > 0)
    order = rng.permutation(keep)
    n_aside = round(len(order) * held_out)
    aside, chosen = np.sort(order[:n_aside]), np.sort(order[n_aside:])
    if not len(chosen):
        raise ModelError("there is nothing left to learn from", got=f"{len(order)} sequences, held_out={held_out}")
    network.begin(examples, chosen)
    encoded = network.encode(sentences)
    weights = np.ones(len(sentences)) if examples.weights is None else examples.weights
    prices = torch.from_numpy(costs)
    groups = network.groups(learning_rate)
    optimiser = torch.optim.AdamW(groups, weight_decay=weight_decay, fused=True)
    rates = [group["lr"] for group in optimiser.param_groups]
    lengths, texts = np.diff(examples.offsets), examples.documents
    plan = [windows(lengths, texts, context, chosen=chosen, rng=rng) for _ in range(epochs)]
    steps, done = sum(-(-len(units) // _units(units, lengths, batch_size)) for units in plan), 0
    trace: list[float] = []
    scores: list[float] = []
    best: dict[str, Any] | None = None
    start = time.monotonic()
    for epoch in range(epochs):
        network.train()
        total = 0.0
        targets_now = _drawn(examples, rng)
        for units in batches(plan[epoch], lengths, batch_size, rng):
            batch = [i for unit in units for i in unit]
            rate = min((done + 1) / max(_WARM * steps, 1), (steps - done) / max((1 - _WARM) * steps, 1))
            for group, base in zip(optimiser.param_groups, rates):
                group["lr"] = base * rate
            emissions = network([encoded[i] for i in batch], [len(unit) for unit in units])
            mask, targets = _targets(examples.offsets, targets_now, batch, emissions.shape[1])
            values = chain_values(objective, emissions, network.transitions, mask, targets, prices)
            share = torch.from_numpy(weights[batch]).to(values.dtype)
            loss = -(values * share).sum() / len(batch)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
            torch.nn.utils.clip_grad_norm_([p for g in groups for p in g["params"]], _CLIP)
            optimiser.step()
            total += loss.item() * len(batch)
            done += 1
            if progress is not None:
                left = (time.monotonic() - start) / done * (steps - done)
                words = f"epoch {epoch + 1}, loss {loss.item():.2f}, about {left:.0f} s left"
                progress(done / steps, words + (f", held-out score {scores[-1]:.4f}" if scores else ""))
        trace.append(total / len(chosen))
        if not np.isfinite(trace[-1]):
            raise ModelError("training went astray: the loss is no number", hint="Try a smaller learning_rate")
        if len(aside):
            together = windows(lengths[aside], None if texts is None else texts[aside], context)
            scores.append(_held_out_score(examples, aside, proba([sentences[i] for i in aside], together)))
            if scores[-1] == max(scores):
                best = copy.deepcopy(network.state_dict())
            elif len(scores) - 1 - int(np.argmax(scores)) >= patience:
                break
    if best is not None:
        network.load_state_dict(best)
    return tuple(trace), tuple(scores)


def has_neighbours(documents: Array | None) -> bool:
    """Say whether there are sequences of one document behind each other."""
    return documents is not None and bool((documents[1:] == documents[:-1]).any())


def windows(
    lengths: Array,
    documents: Array | None,
    words: int,
    *,
    chosen: Array | None = None,
    rng: np.random.Generator | None = None,
) -> list[list[int]]:
    """Return which sequences are read together: neighbours of one document, about so many words; 0: each alone.

    A document that is longer is cut into equal parts; with a generator, the first cut is anywhere. Sequences without
    tokens, and those that are not chosen, are left out.
    """
    own = np.flatnonzero(lengths > 0) if chosen is None else chosen[lengths[chosen] > 0]
    if documents is None or not words or not len(own):
        return [[i] for i in own.tolist()]
    size, text = lengths[own], np.unique(documents[own], return_inverse=True)[1].reshape(-1)
    run = np.cumsum(np.append(0, text[1:] != text[:-1]))
    total = np.bincount(run, size)
    middle = np.cumsum(size) - size / 2 - (np.cumsum(total) - total)[run]
    parts = np.ceil(total / words)
    shift = np.zeros(len(total)) if rng is None else np.where(parts > 1, rng.random(len(total)), 0.0)
    part = np.floor(middle * (parts / total)[run] + shift[run])
    new = np.append(True, (run[1:] != run[:-1]) | (part[1:] != part[:-1]))
    return [found.tolist() for found in np.split(own, np.flatnonzero(new)[1:])]


def batches(
    units: list[list[int]], lengths: Array, size: int, rng: np.random.Generator | None = None
) -> list[list[list[int]]]:
    """Return windows in batches of about `size` sentences and equal length, in random order if there is a generator."""
    words = np.array([lengths[unit].sum() for unit in units], dtype=np.int64)
    per = _units(units, lengths, size)
    order = np.arange(len(units)) if rng is None else rng.permutation(len(units))
    sorted_together = len(units) if rng is None else per * _SORTED_TOGETHER
    found: list[list[list[int]]] = []
    for first in range(0, len(order), max(sorted_together, 1)):
        part = order[first : first + sorted_together]
        part = part[np.argsort(words[part], kind="stable")]
        found.extend([units[k] for k in part[i : i + per]] for i in range(0, len(part), per))
    return found if rng is None else [found[i] for i in rng.permutation(len(found))]


def _units(units: list[list[int]], lengths: Array, size: int) -> int:
    """Return how many windows make a batch of about `size` sentences; sequences that are longer count as several."""
    own = [i for unit in units for i in unit]
    return max(1, round(size * len(units) / max(len(own), lengths[own].sum() / _SENTENCE, 1)))


def _drawn(examples: Examples, rng: np.random.Generator) -> Array:
    """Return the targets of an epoch: where sequences have several paths, one of them by its weight."""
    paths = examples.paths
    if paths is None:
        return examples.targets
    out = examples.targets.copy()
    first = np.searchsorted(paths.owner, np.arange(examples.n_sequences + 1))
    for s in np.flatnonzero(np.diff(first) > 1).tolist():
        own = np.arange(first[s], first[s + 1])
        pick = int(rng.choice(own, p=paths.weights[own]))
        out[examples.offsets[s] : examples.offsets[s + 1]] = paths.labels[paths.offsets[pick] : paths.offsets[pick + 1]]
    return out


def _targets(offsets: Array, targets: Array, batch: list[int], width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return which places of a padded batch hold tokens, and their targets (0 or nothing known elsewhere)."""
    mask = np.zeros((len(batch), width), dtype=np.bool_)
    dtype = np.int64 if targets.ndim == 1 else targets.dtype
    padded = np.zeros((len(batch), width, *targets.shape[1:]), dtype=dtype)
    for row, i in enumerate(batch):
        n = int(offsets[i + 1] - offsets[i])
        mask[row, :n] = True
        padded[row, :n] = targets[offsets[i] : offsets[i + 1]]
    if padded.dtype == np.bool_:
        padded[~mask] = True
    return torch.from_numpy(mask), torch.from_numpy(padded)


def _held_out_score(examples: Examples, aside: Array, proba: Array) -> float:
    """Return the mean log score of the votes on held-out sequences, or of their labels."""
    offsets = examples.offsets
    rows = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in aside])
    if examples.votes is not None:
        full = np.zeros((int(offsets[-1]), proba.shape[1]), dtype=np.float32)
        full[rows] = proba
        chosen = np.zeros(len(full), dtype=np.bool_)
        chosen[rows] = True
        return examples.votes.mean(full, chosen)
    targets, own = examples.targets[rows], proba[:, examples.active]
    if targets.ndim == 1:
        targets = (targets[:, None] == np.arange(own.shape[1])).astype(np.float32)
    known = targets.sum(axis=1) > 0
    logs = np.log(np.maximum(own, 1e-6))
    return float((targets * logs)[known].sum() / max(targets[known].sum(), 1e-9))

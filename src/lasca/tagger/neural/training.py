"""The training loop of networks: AdamW, a rate that rises and falls, early stopping by held-out votes."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lasca.errors import ModelError
from lasca.estimator import Progress
from lasca.tagger.base import Examples
from lasca.tagger.neural.chain import chain_values

if TYPE_CHECKING:
    from lasca.tagger.neural.base import Network

__all__ = ["train"]

Array = np.ndarray[Any, Any]
_WARM = 0.1  # share of steps in which the learning rate rises
_CLIP = 1.0
_SORTED_TOGETHER = 20  # batches whose sentences are sorted by length before they are cut


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
    seed: int,
    progress: Progress | None,
    proba: Callable[[Sequence[Sequence[str]]], Array],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Train the network in place; return minus the mean objective per epoch, and the held-out scores.

    With held-out sequences the weights of the best epoch are kept, and training ends after `patience` epochs without a
    better one. The judges are the votes on those sequences (`VoteScore`); where there are none, their labels.
    """
    rng = np.random.default_rng(seed)
    keep = np.flatnonzero(np.diff(examples.offsets) > 0)
    order = rng.permutation(keep)
    n_aside = round(len(order) * held_out)
    aside, chosen = np.sort(order[:n_aside]), np.sort(order[n_aside:])
    if not len(chosen):
        raise ModelError("there is nothing left to learn from", got=f"{len(order)} sequences, held_out={held_out}")
    encoded = network.encode(sentences)
    weights = np.ones(len(sentences)) if examples.weights is None else examples.weights
    prices = torch.from_numpy(costs)
    groups = network.groups(learning_rate)
    optimiser = torch.optim.AdamW(groups, weight_decay=weight_decay, fused=True)
    rates = [group["lr"] for group in optimiser.param_groups]
    steps, done = epochs * -(-len(chosen) // batch_size), 0
    trace: list[float] = []
    scores: list[float] = []
    best: dict[str, Any] | None = None
    start = time.monotonic()
    for epoch in range(epochs):
        network.train()
        total = 0.0
        targets_now = _drawn(examples, rng)
        for batch in _batches(rng, chosen, np.diff(examples.offsets), batch_size):
            rate = min((done + 1) / max(_WARM * steps, 1), (steps - done) / max((1 - _WARM) * steps, 1))
            for group, base in zip(optimiser.param_groups, rates):
                group["lr"] = base * rate
            emissions = network([encoded[i] for i in batch])
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
            scores.append(_held_out_score(examples, aside, proba([sentences[i] for i in aside])))
            if scores[-1] == max(scores):
                best = copy.deepcopy(network.state_dict())
            elif len(scores) - 1 - int(np.argmax(scores)) >= patience:
                break
    if best is not None:
        network.load_state_dict(best)
    return tuple(trace), tuple(scores)


def _batches(rng: np.random.Generator, chosen: Array, lengths: Array, size: int) -> list[list[int]]:
    """Return the sequences of an epoch in random batches of about equal length."""
    order = rng.permutation(chosen)
    batches: list[list[int]] = []
    for first in range(0, len(order), size * _SORTED_TOGETHER):
        part = order[first : first + size * _SORTED_TOGETHER]
        part = part[np.argsort(lengths[part], kind="stable")]
        batches.extend(part[i : i + size].tolist() for i in range(0, len(part), size))
    return [batches[i] for i in rng.permutation(len(batches))]


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

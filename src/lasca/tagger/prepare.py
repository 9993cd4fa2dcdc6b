"""What a tagger makes of a corpus before it is trained, and of sentences before they are tagged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from lasca import schemes
from lasca.arrays import Array, borders
from lasca.corpus.votes import Votes, cut_into_blocks
from lasca.crf.decode import Constraint
from lasca.crf.objective import cost_matrix
from lasca.errors import ModelError, ParameterError
from lasca.schemes.tables import detect_in_pairs

if TYPE_CHECKING:
    from lasca.corpus import CrowdCorpus

__all__ = [
    "active_labels", "aligned_costs", "block_borders", "block_tokens", "blocks_of", "chosen_tokens", "chosen_weights",
    "constraint_of", "label_pairs", "labelled_sequences", "over_labels", "scheme_constraint", "targets_of",
]  # fmt: skip

BLOCK_TOKENS, MOST_BLOCKS = 500_000, 64
"""A block that a CRF learns from has at least so many tokens, and there are at most about so many blocks."""
_BLOCK = 200_000  # tokens that are tagged at a time


def targets_of(corpus: CrowdCorpus, truth: Any, soft: bool) -> Array:
    """Return the targets a tagger learns from: hard labels with −1 for unknown, or probabilities.

    Of a Truth, the labels of tokens that somebody labelled: the others have no truth.
    """
    if isinstance(truth, str):
        if truth not in corpus.golds:
            raise ParameterError("truth", truth, "a Truth or the name of a gold: " + ", ".join(corpus.golds))
        if soft:
            raise ParameterError("soft", soft, "False for a gold: it has no probabilities")
        found = np.asarray(corpus.golds[truth])
    elif not hasattr(truth, "labels") or not hasattr(truth, "proba"):
        raise ParameterError("truth", type(truth).__name__, "a Truth or the name of a gold")
    elif soft:
        found = np.asarray(truth.proba, dtype=np.float32)
    else:
        found = np.asarray(truth.codes if hasattr(truth, "codes") else truth.labels)
    n_tokens = int(corpus.offsets[-1])
    if len(found) != n_tokens:
        raise ModelError(f"the truth has labels for {len(found)} tokens, the corpus has {n_tokens}")
    return found


def labelled_sequences(targets: Array, offsets: Array) -> Array:
    """Return which sequences have any known label."""
    known = targets >= 0 if targets.ndim == 1 else np.ones(len(targets), dtype=np.bool_)
    return np.diff(borders(known)[offsets]) > 0


def chosen_tokens(tokens: Sequence[str], offsets: Array, used: Array) -> tuple[list[str], Array, Array]:
    """Return the tokens of some sequences, their offsets, and which of all tokens they are."""
    lengths = np.diff(offsets)
    rows = np.repeat(used, lengths)
    kept = list(tokens) if used.all() else [token for token, keep in zip(tokens, rows.tolist()) if keep]
    return kept, borders(lengths[used]), rows


def block_tokens(n_tokens: int) -> int:
    """Return about how many tokens a block has that one gradient is computed of (`lasca.crf.training`)."""
    return max(BLOCK_TOKENS, n_tokens // MOST_BLOCKS)


def block_borders(corpus: CrowdCorpus, used: Array) -> Array | None:
    """Return where blocks end among the sequences that are used; None where there is one only."""
    blocks = cut_into_blocks(Votes.of(corpus), block_tokens(corpus.n_tokens), by_tokens=True)
    if len(blocks) == 1:
        return None
    ends = np.searchsorted(corpus.offsets, [block.last for block in blocks], side="right") - 1
    return borders(used)[[0, *ends]]


def active_labels(targets: Array, n_labels: int) -> tuple[Array, Array]:
    """Return targets over the labels that occur, and which those are."""
    if targets.ndim == 2:
        active = np.flatnonzero(targets.max(axis=0) > 1e-6)
    else:
        active = np.unique(targets[targets >= 0]).astype(np.int64)
    return over_labels(targets, active, n_labels), active


def over_labels(targets: Array, active: Array, n_labels: int) -> Array:
    """Return targets over some of the labels."""
    if targets.ndim == 2:
        kept = targets[:, active]
        return np.asarray(kept / kept.sum(axis=1, keepdims=True))
    code = np.full(n_labels + 1, -1, dtype=np.int16)
    code[active] = np.arange(len(active))
    return code[targets]


def chosen_weights(weights: Array, used: Array) -> Array:
    """Return the weights of the sequences that are used."""
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != used.shape:
        raise ParameterError("sequence_weights", weights.shape, f"{len(used)} numbers, one per sequence")
    return weights[used]


def aligned_costs(confusion: Any, labels: tuple[str, ...], active: Array) -> Array:
    """Return the costs over the active labels; a LabelConfusion is matched by the names of its labels."""
    if confusion is None:
        return cost_matrix(None, len(active))
    own = getattr(confusion, "labels", None)
    matrix = np.asarray(getattr(confusion, "matrix", confusion), dtype=np.float64)
    if own is not None and tuple(own) != labels:
        if set(labels) - set(own):
            raise ModelError("the confusion matrix does not know all labels", got=sorted(set(labels) - set(own)))
        order = [list(own).index(name) for name in labels]
        matrix = matrix[np.ix_(order, order)]
    if matrix.shape != (len(labels), len(labels)):
        raise ModelError(f"the confusion matrix must be {len(labels)} x {len(labels)}", got=matrix.shape)
    return cost_matrix(matrix[np.ix_(active, active)], len(active))


def scheme_constraint(names: list[str], targets: Array, offsets: Array) -> Constraint | None:
    """Return what the labels' scheme allows; None without a scheme, or where the training labels do not keep to it."""
    return constraint_of(names, label_pairs(targets, offsets, len(names)))


def label_pairs(targets: Array, offsets: Array, n_labels: int) -> Array:
    """Return which labels follow each other, bool (n_labels + 1, n_labels + 1); the last: the border, or no label."""
    codes = (targets if targets.ndim == 1 else targets.argmax(axis=1)).astype(np.int64)
    codes = np.where(codes >= 0, codes, n_labels)
    before = np.append(n_labels, codes[:-1]) if len(codes) else codes
    before[offsets[:-1][np.diff(offsets) > 0]] = n_labels
    found = np.zeros((n_labels + 1, n_labels + 1), dtype=np.bool_)
    found[before, codes] = True
    return found


def constraint_of(names: list[str], pairs: Array) -> Constraint | None:
    """Return what the scheme of labels allows that follow each other so (`label_pairs`)."""
    name = [*names, None]
    scheme = detect_in_pairs(names, ((name[a], name[b]) for a, b in np.argwhere(pairs).tolist()))
    first, moves, last = schemes.transitions(names, scheme)
    if moves.all() and first.all() and last.all():
        return None
    return Constraint(np.asarray(moves), np.asarray(first), np.asarray(last))


def blocks_of(sentences: Sequence[Sequence[str]]) -> Iterable[tuple[list[str], Array]]:
    """Give the tokens of some hundred thousand tokens' worth of sentences at a time, with their offsets."""
    if isinstance(sentences, str) or any(isinstance(s, str) for s in sentences):
        raise ParameterError("sentences", sentences, "a list of sentences, each a list of tokens")
    lengths = np.array([len(s) for s in sentences], dtype=np.int64)
    ends = np.cumsum(lengths)
    begin = 0
    while begin < len(sentences):
        done = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, done + _BLOCK, side="right")))
        tokens = list(chain.from_iterable(sentences[begin:end]))
        if tokens and not all(type(t) is str or isinstance(t, str) for t in tokens):
            raise ParameterError("sentences", "a token that is no text", "lists of tokens that are text")
        yield tokens, borders(lengths[begin:end])
        begin = end

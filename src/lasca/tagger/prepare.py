"""What a tagger makes of a corpus and its truth before it is trained, and of sentences before they are tagged.

*Targets* are labels, or probabilities, over the labels that occur.

*Paths*: a truth as weighted label sequences, to learn from what a crowd is unsure of without tearing spans apart.
Probabilities per token lose how labels hang together: where a span of two tokens is there with probability one half,
independent tokens give half of their weight to halves of it. So the truth is read as a chain again: among all Markov
chains with the truth's own probabilities at every token, the one closest to how labels follow each other in the truth
as a whole. With φ_k the scores at token k and ρ(s, t) = log p(s, t) / (p(s) p(t)) counted over the inferred labels
(never, where the tag scheme forbids it), the chain is ∝ exp(Σ φ_k(z_k) + Σ ρ(z_{k−1}, z_k)); φ is found by iterative
scaling: φ ← φ + log p − log of the chain's marginals. Its best few paths, with their probabilities, are what is
learned from.

*Votes* judge taggers where there is no gold: by how well their probabilities foretell them. The score of probabilities
p for a token is the mean over its votes of log Σ_z p(z) Ψ^l_{z y}, with Ψ the annotators' confusion as the truth model
found it: a tagger is right to contradict an annotator who is often wrong. It is meant for sequences that the tagger was
not trained on; Ψ saw their votes, but is the same for all taggers that are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from lasca import schemes
from lasca.arrays import Array, borders, followers, ranges
from lasca.corpus.votes import Votes, cut_into_blocks
from lasca.crf.decode import Constraint, marginals, n_best
from lasca.crf.features import Features, Weights
from lasca.crf.objective import cost_matrix
from lasca.errors import ModelError, ParameterError
from lasca.schemes.tables import detect_in_pairs

if TYPE_CHECKING:
    from lasca.corpus import CrowdCorpus

__all__ = [
    "Paths", "VoteScore", "active_labels", "aligned_costs", "block_borders", "block_tokens", "blocks_of", "chain_of",
    "chosen_tokens", "chosen_weights", "constraint_of", "label_pairs", "labelled_sequences", "over_labels",
    "scheme_constraint", "targets_of", "vote_score_of", "weighted_paths",
]  # fmt: skip

BLOCK_TOKENS, MOST_BLOCKS = 500_000, 64
"""A block that a CRF learns from has at least so many tokens, and there are at most about so many blocks."""
_BLOCK = 200_000  # tokens that are tagged at a time
_ROUNDS = 60  # of iterative scaling
_FLOOR = 1e-4  # probabilities below this are raised to it before
_SURE = 0.98  # sequences whose tokens are all surer than this have one path
_LEAST = 1e-6  # no vote is impossible


# --- targets ----------------------------------------------------------------------------------------------------------


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


# --- tag schemes ------------------------------------------------------------------------------------------------------


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


# --- paths ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Paths:
    """Label sequences, one behind the other: whose they are, and how much each weighs (1 in all per sequence)."""

    owner: Array
    labels: Array
    offsets: Array
    weights: Array

    def repeat(self, features: Features) -> Features:
        """Return features with each sequence as often as it has paths; bundles are shared, so it costs little."""
        rows = ranges(features.offsets[self.owner], features.offsets[self.owner + 1])
        return Features(
            self.offsets, np.ascontiguousarray(features.slots[rows]), features.bundle_start, features.bundle_feature,
            features.n_features,
        )  # fmt: skip

    def followed_by(self, labels: Array, ends: Array) -> Paths:
        """Return the paths with further sequences behind them, of one path each, that end at `ends`."""
        n = int(self.owner.max(initial=-1)) + 1
        return Paths(
            np.concatenate([self.owner, n + np.arange(len(ends))]), np.concatenate([self.labels, labels]),
            np.concatenate([self.offsets, self.offsets[-1] + ends]), np.concatenate([self.weights, np.ones(len(ends))]),
        )  # fmt: skip


def chain_of(proba: Array, labels: Array, offsets: Array, constraint: Constraint | None) -> Weights:
    """Return the chain whose token probabilities are `proba`: scores of labels per token, and of moves."""
    n_labels = proba.shape[1]
    goal = np.maximum(proba, _FLOOR).astype(np.float64)
    logs = np.log(goal / goal.sum(axis=1, keepdims=True))
    moves = _association(labels, offsets, n_labels)
    if constraint is not None:
        moves = np.where(constraint.moves, moves, -30.0)
        starts = offsets[:-1][np.diff(offsets) > 0]
        logs[starts] = np.where(constraint.first, logs[starts], -30.0)
    features = Features.one_each(offsets)
    scores = logs.copy()
    place = np.arange(len(scores)) - np.repeat(offsets[:-1], np.diff(offsets))
    for turn in range(_ROUNDS):  # every third token at a time: neighbours that move together would overshoot
        found = np.maximum(marginals(features, Weights.of_scores(scores, moves)), 1e-9)
        own = place % 3 == turn % 3
        scores[own] += np.clip(logs[own] - np.log(found[own]), -5.0, 5.0)
    return Weights.of_scores(scores, moves)


def _association(labels: Array, offsets: Array, n_labels: int) -> Array:
    """Return log p(s, t) / (p(s) p(t)) of neighbours, with one half added to each count."""
    after = followers(offsets)
    after = after[(labels[after] >= 0) & (labels[after - 1] >= 0)]
    counts = np.full((n_labels, n_labels), 0.5)
    np.add.at(counts, (labels[after - 1], labels[after]), 1.0)
    share = counts / counts.sum()
    return np.asarray(np.log(share) - np.log(share.sum(axis=1))[:, None] - np.log(share.sum(axis=0))[None, :])


def weighted_paths(proba: Array, labels: Array, offsets: Array, n: int, constraint: Constraint | None = None) -> Paths:
    """Return up to n paths per sequence; `labels` are the inferred ones, −1 for tokens that have no truth.

    A token without a truth stays unknown (−1) in every path; paths that then are the same become one.
    """
    lengths = np.diff(offsets)
    unsure = np.where(labels >= 0, proba.max(axis=1) < _SURE, False)
    doubtful = np.flatnonzero(np.diff(borders(unsure)[offsets]))
    rows = np.repeat(np.isin(np.arange(len(lengths)), doubtful), lengths)
    own = borders(lengths[doubtful])
    weights_of_chain = chain_of(proba[rows], labels[rows], own, constraint)
    best = n_best(Features.one_each(own), weights_of_chain, n, constraint=constraint)
    found = dict(zip(doubtful.tolist(), best))
    owner: list[int] = []
    parts: list[Array] = []
    weights: list[float] = []
    for s, (begin, end) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist())):
        given = labels[begin:end].astype(np.int16)
        known: dict[bytes, float] = {}
        for path, value in found.get(s, ()):
            key = np.where(given >= 0, path, -1).astype(np.int16).tobytes()
            known[key] = known.get(key, 0.0) + float(np.exp(value))
        if not known or sum(known.values()) <= 0:
            known = {given.tobytes(): 1.0}
        total = sum(known.values())
        for key, weight in known.items():
            owner.append(s)
            parts.append(np.frombuffer(key, dtype=np.int16))
            weights.append(weight / total)
    ends = borders([len(p) for p in parts])
    flat = np.concatenate([np.zeros(0, dtype=np.int16), *parts])
    return Paths(np.array(owner, dtype=np.int64), flat, ends, np.array(weights))


# --- votes ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class VoteScore:
    """Votes on some tokens, who gave which label; and the annotators' confusion (annotators, labels, labels)."""

    token: Array
    annotator: Array
    label: Array
    confusion: Array

    def per_token(self, proba: Array, n_tokens: int) -> tuple[Array, Array]:
        """Return the sum of log scores and the number of votes, per token; `proba` is over all labels."""
        seen = np.einsum("vz,vz->v", proba[self.token], self.confusion[self.annotator, :, self.label])
        logs = np.log(np.maximum(seen, _LEAST))
        return np.bincount(self.token, logs, n_tokens), np.bincount(self.token, minlength=n_tokens)

    def mean(self, proba: Array, rows: Array) -> float:
        """Return the mean log score of the votes on the tokens chosen by `rows` (bool per token)."""
        total, n = self.per_token(proba, len(rows))
        return float(total[rows].sum() / max(n[rows].sum(), 1))


def vote_score_of(corpus: CrowdCorpus, truth: Any, rows: Array) -> VoteScore | None:
    """Return the votes on the tokens chosen by `rows` (bool per token of the corpus), numbered among those."""
    confusion = getattr(truth, "confusion", None)
    if confusion is None or not len(corpus.annotation_label) or len(confusion) != corpus.n_annotators:
        return None
    token = np.asarray(corpus.annotation_token)
    counted = rows[token] & np.asarray(corpus.votes, dtype=np.bool_)[corpus.annotation_annotator]
    if not counted.any():
        return None
    place = np.cumsum(rows) - 1
    annotator, label = corpus.annotation_annotator[counted], corpus.annotation_label[counted]
    return VoteScore(place[token[counted]], annotator, label, np.asarray(confusion, dtype=np.float32))


# --- sentences --------------------------------------------------------------------------------------------------------


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

"""The one learner of chain models: a Markov chain of hidden states, and any number of sources that speak of tokens.

    z_1 ~ Mult(π), z_i ~ Mult(A_{z_{i-1}})          over the states of a `StateSpace`; moves the scheme forbids are 0
    everything said of token i ~ p(· | z_i)         annotators, words, taggers: the sources (`evidence`)

States are labels; or labels at levels of difficulty (at a hard token annotators fail together – they all miss the same
name, or guess – which annotators who err each by themselves cannot explain); or, with `singles`, an IOB2 label B-X is
two states, S-X (the whole span) and B-X (I-X must follow): a name of one token is another thing than the beginning of
a longer one. Each state *shows* as a label.

q(z) q(parameters): a visit does the E step of a block – sources' log evidence, forward–backward with exp E log of the
chain – and returns expected counts; the update adds them to the priors. The objective, the log sum over all paths minus
KL(q || p) of the parameters (or plus their log prior density, where they are at their mode), never falls.

What is known rules states out (evidence −∞); it thus enters all statistics. A known path that the tag scheme forbids is
refused by name (`check_known`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lasca.arrays import Bools, Codes, Floats, Ints, Proba
from lasca.corpus import CrowdCorpus
from lasca.corpus.shards import ShardedCorpus
from lasca.corpus.votes import Block, Votes, cut_into_blocks
from lasca.errors import ModelError
from lasca.kernels import lattice
from lasca.kernels.tables import dirichlet_kl, expected_log
from lasca.schemes import detect, split_label, transitions
from lasca.truth.evidence import Source

__all__ = [
    "DECODERS", "Chain", "ChainLearner", "ChainState", "Local", "RuledOut", "Start", "StateSpace", "blocks_of",
    "check_known", "decoded", "with_words",
]  # fmt: skip

DECODERS = ("viterbi", "marginal")
NOISE = 0.5
"""How far a restart leaves the first start: the standard deviation of the noise on the log evidence."""


# --- states and their rules -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chain:
    """Weights of first states, moves and last states: probabilities, or exp E log of them; 0 forbids."""

    start: Floats
    move: Floats
    end: Floats


@dataclass(frozen=True)
class StateSpace:
    """The states of a chain, which label each shows as, and which may come first, follow which, and come last."""

    names: tuple[str, ...]
    n_labels: int
    shows: Ints
    first: Bools
    allowed: Bools
    last: Bools
    levels: int = 1
    """Levels of difficulty: states come level by level."""
    markov: bool = True
    """False: one distribution of states for all tokens."""

    @classmethod
    def of(
        cls,
        labels: Sequence[str],
        *,
        constrained: bool = True,
        singles: bool = False,
        levels: int = 1,
        markov: bool = True,
    ) -> StateSpace:
        """Return the states of labels, with the rules of the tag scheme, or none.

        `singles` is possible for IOB2 labels (BIOES labels have them apart already), with the scheme's rules, for the
        types that have both B and I; it changes nothing elsewhere.
        """
        T = len(labels)
        first, allowed, last = transitions(labels, "auto" if constrained and markov else None)
        names, shows = list(labels), np.arange(T)
        if singles and constrained and detect(labels) == "IOB2":
            part = [split_label(label) for label in labels]
            goes_on = [t for t, (letter, type_) in enumerate(part) if letter == "B" and ("I", type_) in part]
            shows = np.concatenate((shows, goes_on)).astype(np.int64)
            first, last, allowed = first[shows], last[shows], allowed[np.ix_(shows, shows)]
            for k, t in enumerate(goes_on, start=T):
                inside = part.index(("I", part[t][1]))
                names.append("S-" + part[t][1] if part[t][1] else "S")
                allowed[k, inside] = False  # the single one ends here
                allowed[t] = False  # the other one must go on
                allowed[t, inside] = True
                last[t] = False
        return cls(
            tuple(names) * levels,
            T,
            np.tile(shows, levels),
            np.tile(first, levels),
            np.tile(allowed, (levels, levels)),
            np.tile(last, levels),
            levels,
            markov,
        )

    def __len__(self) -> int:
        return len(self.shows)

    def by_label(self, proba: Floats) -> Floats:
        """Add up the columns of states that show as the same label."""
        if len(self) == self.n_labels:
            return proba
        out = np.zeros((len(proba), self.n_labels))
        for k, label in enumerate(self.shows):
            out[:, label] += proba[:, k]
        return out

    def flat(self) -> Chain:
        """Return a chain in which all that is allowed weighs the same."""
        return Chain(*(rule.astype(np.float64) for rule in (self.first, self.allowed, self.last)))

    def learned(self, starts: Floats, moves: Floats, prior: float, variational: bool) -> tuple[Chain, float]:
        """Return the weights after expected counts of first states and moves, and what they cost.

        `prior` is the pseudo-count of a label, shared by its levels. Variational: exp E log under the posterior, and
        its KL from the prior; else the mode under Dir(1 + prior), and minus its log prior density.
        """
        pseudo = prior / self.levels
        chain, penalty = self.flat(), 0.0
        for row, may, n in self.rows(chain, starts, moves):
            alpha = n[may] + pseudo
            if variational:
                row[may] = np.exp(expected_log(alpha))
                penalty += dirichlet_kl(alpha, np.full_like(alpha, pseudo))
            else:
                row[may] = alpha / alpha.sum()
                penalty -= pseudo * float(np.log(row[may]).sum())
        if not self.markov:
            chain.move[:] = chain.start
        return chain, penalty

    def rows(self, chain: Chain, starts: Floats, moves: Floats) -> list[tuple[Floats, Bools, Floats]]:
        """Return the rows of weights that are learned apart, what is allowed in each, and their counts."""
        if not self.markov:
            return [(chain.start, self.first, starts + moves.sum(axis=0))]
        return [(chain.start, self.first, starts), *zip(chain.move, self.allowed, moves)]


def check_known(corpus: CrowdCorpus, votes: Votes, space: StateSpace) -> None:
    """Refuse known labels that no path within the rules of the states can have."""
    if votes.known is None or not isinstance(votes, Votes):  # on disk: a visit refuses a block without a path
        return
    row = np.full(votes.n_tokens, -1)
    row[votes.known.token] = np.arange(len(votes.known))
    for s in np.unique(np.searchsorted(votes.offsets, votes.known.token, side="right") - 1):
        first, last = votes.offsets[s], votes.offsets[s + 1]
        may = space.first
        for i in range(first, last):
            may = may if i == first else np.asarray(space.allowed[may].any(axis=0))
            if row[i] >= 0:
                may = may & votes.known.allowed[row[i]][space.shows]
            if i == last - 1:
                may = may & space.last
            if not may.any():
                raise ModelError(
                    "what is known breaks the tag scheme",
                    where=f"sequence {corpus.sequence_ids[s]}, token {i - first + 1} ({corpus.tokens[int(i)]})",
                    got=" ".join(_known_names(corpus, votes.known.allowed, row[max(first, i - 2) : i + 1])),
                    hint="Correct the known labels; constrained=False, where a model has it, allows every move",
                )


def _known_names(corpus: CrowdCorpus, allowed: Bools, rows: Ints) -> list[str]:
    return ["?" if r < 0 else "/".join(np.array(corpus.labels)[allowed[r]]) for r in rows]


# --- the learner ----------------------------------------------------------------------------------------------------


class Start(Protocol):
    """Where a run begins (see `starts`)."""

    def evidence(self, block: Block, space: StateSpace) -> Proba:
        """Return log evidence on the states of a block's tokens."""


def with_words(corpus: Any, votes: Any) -> tuple[Any, int]:
    """Return votes that know the words of their tokens, and how many words there are."""
    if isinstance(corpus, ShardedCorpus):
        return votes, len(corpus.words)
    word, names = corpus.tokens.codes()
    return replace(votes, words=word), len(names)


@dataclass(frozen=True)
class ChainState:
    """What the next visit needs: the chain, a table for each source; at the start, where to begin."""

    chain: Chain
    tables: tuple[Any, ...]
    penalty: float
    start: Start | None = None
    noise: int | None = None
    """The key of the noise on the start, None for none."""


@dataclass(frozen=True)
class RuledOut:
    """States that some tokens of a block cannot be in, or only at a cost."""

    token: Ints
    row: npt.NDArray[np.integer]
    """The row of `states` of each token."""
    states: Bools
    """(n_rows, S): what is ruled out."""
    nats: float | Floats = np.inf
    """By how much, for all tokens alike or for each."""

    @classmethod
    def by_known(cls, block: Block, space: StateSpace, nats: float = np.inf) -> RuledOut:
        """Return what known labels rule out."""
        known = block.known
        if known is None:
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, len(space)), np.bool_))
        return cls(known.token, np.arange(len(known)), ~known.allowed[:, space.shows], nats)

    def subtract(self, rows: Floats) -> None:
        """Take it off the log evidence on states."""
        if len(self.token):
            nats = np.broadcast_to(self.nats, len(self.token))[:, None]
            rows[self.token] -= np.where(self.states[self.row], nats, 0.0)


@dataclass(frozen=True)
class Local:
    """What is kept of a block: its sequences, what each source says of it, and which states are ruled out where."""

    offsets: Ints
    views: tuple[Any, ...]
    ruled_out: tuple[RuledOut, ...]
    """By what is known first."""


@dataclass(frozen=True)
class ChainLearner:
    """A chain with its sources as a learner (see `lasca.learn`)."""

    space: StateSpace
    sources: tuple[Source, ...]
    first: Start
    transition_prior: float
    variational: bool = True
    """Whether the chain has a posterior, or is at its mode."""
    decode: str = "viterbi"
    """"viterbi": the most probable path of states; "marginal": the legal path with the most labels expected right."""
    rules: StateSpace | None = None
    """For "marginal": the rules for labels."""
    past: tuple[Any, ...] | None = None
    """Statistics of an earlier fit, without their log sum: they count as seen before, and the start is made of them."""

    def summarise(self, block: Block) -> tuple[Any, ...]:
        """Return nothing: the start is another learner's."""
        return ()

    def start(self, summary: tuple[Any, ...], rng: np.random.Generator | None) -> ChainState:
        """Begin with all moves alike, from the start, or from a noisy copy of it; with a past, where that ended."""
        if self.past is not None:
            return self._made(self.past, (None,) * len(self.sources))
        noise = None if rng is None else int(rng.integers(2**63))
        return ChainState(self.space.flat(), (None,) * len(self.sources), 0.0, self.first, noise)

    def visit(self, state: ChainState, block: Block, local: Any) -> tuple[tuple[Any, ...], Any]:
        """Return the log sum over all paths, expected first states and moves, and each source's expected counts."""
        local = local or self.look(block)
        rows = self.evidence(state, block, local)
        return self.counted(state, local, rows), local

    def update(self, state: ChainState, statistics: tuple[Any, ...]) -> tuple[ChainState, float]:
        """Add the counts to the priors; the objective is that of the state given."""
        log_sum, *counts = statistics
        for k, before in enumerate(self.past or ()):
            counts[k] += before
        return self._made(tuple(counts), state.tables), float(log_sum) - state.penalty

    def _made(self, counts: tuple[Any, ...], tables: tuple[Any, ...]) -> ChainState:
        """Return the state after these counts; `tables` are those they were made with."""
        starts, moves, *own = counts
        chain, penalty = self.space.learned(starts, moves, self.transition_prior, self.variational)
        made = []
        for source, n, table in zip(self.sources, own, tables):
            new, cost = source.update(n, table)
            made.append(new)
            penalty += cost
        if self.past is not None:  # what was seen before is part of the objective
            starts, moves, *own = self.past
            with np.errstate(divide="ignore"):
                logs = [np.log(chain.start), np.log(chain.move), *made]
            for before, log in zip([starts, moves, *(n.table() for n in own)], logs):
                penalty -= float((before[before > 0] * log[before > 0]).sum())
        return ChainState(chain, tuple(made), penalty)

    def describe(self, state: ChainState, block: Block, local: Any, out: Any) -> tuple[Codes | None, tuple[Any, ...]]:
        """Write the labels' probabilities to `out`; return the decoded labels, and the statistics."""
        local = local or self.look(block)
        rows, path = self.evidence(state, block, local), np.empty(len(block), np.int16)
        if self.decode == "viterbi":
            lattice.viterbi(local.offsets, rows, state.chain.start, state.chain.move, state.chain.end, path)
            path = self.space.shows.astype(np.int16)[path]
        statistics = self.counted(state, local, rows)
        labels = self.space.by_label(rows)
        out[:] = labels
        if self.decode == "marginal":
            assert self.rules is not None
            path = decoded(local.offsets, local.ruled_out[0].token, labels, self.rules)
        return path, statistics

    # --- the steps of a visit -----------------------------------------------------------------------------------------

    def look(self, block: Block) -> Local:
        """Ask every source for what it says of a block."""
        views = tuple(source.look(block) for source in self.sources)
        return Local(block.offsets, views, (RuledOut.by_known(block, self.space),))

    def evidence(self, state: ChainState, block: Block, local: Local) -> Floats:
        """Return the log evidence on the states of each token, (n_tokens, S)."""
        rows = np.zeros((len(block), len(self.space)))
        if state.start is not None:
            start = state.start.evidence(block, self.space)
            if state.noise is not None:
                draw = np.random.Generator(np.random.Philox(key=[state.noise, block.number]))
                noise = draw.standard_normal(start.shape, dtype=np.float32)
                start = np.maximum(start, np.float32(-5)) + noise * np.float32(NOISE)
            rows[:] = start
        else:
            for source, table, view in zip(self.sources, state.tables, local.views):
                source.evidence(table, view, rows)
        for ruled_out in local.ruled_out:
            ruled_out.subtract(rows)
        return rows

    def counted(self, state: ChainState, local: Local, rows: Floats) -> tuple[Any, ...]:
        """Make the states' posteriors of the evidence in `rows`; return the statistics."""
        return *self.pass_over(state, local, rows), *self.counts(state, local, rows)

    def pass_over(self, state: ChainState, local: Local, rows: Floats) -> tuple[float, Floats, Floats]:
        """Go forward and backward: the evidence in `rows` becomes the states' posteriors.

        Returns the log sum over all paths, expected first states and expected moves.
        """
        S, chain = len(self.space), state.chain
        starts, moves = np.zeros(S), np.zeros((S, S))
        log_sum = lattice.marginals(local.offsets, rows, chain.start, chain.move, chain.end, rows, starts, moves)
        if log_sum == -np.inf:
            raise ModelError("the tag scheme leaves a sequence no possible path", hint="Set constrained=False")
        return float(log_sum), starts, moves

    def counts(self, state: ChainState, local: Local, proba: Floats) -> list[Any]:
        """Return each source's expected counts under the states' posteriors."""
        return [
            source.expected(table, view, proba) for source, table, view in zip(self.sources, state.tables, local.views)
        ]


def decoded(offsets: Ints, known: Ints, labels: Floats, rules: StateSpace) -> Codes:
    """Return the legal path with the most tokens expected to be right; at `known` tokens labels need a probability."""
    gain, path, chain = labels.copy(), np.empty(len(labels), np.int16), rules.flat()
    gain[known] = np.where(gain[known] > 0, gain[known], -np.inf)
    lattice.viterbi(offsets, gain, chain.start, chain.move, chain.end, path)
    return path


def blocks_of(votes: Votes) -> list[Block]:
    """Cut votes into blocks whose posteriors fit into a cache; no more than a few hundred."""
    return cut_into_blocks(votes, max(20_000, votes.n_tokens // 256), by_tokens=True)

"""Chain models that a later fit can go on from (`history=`): what bsc and hmm-crowd share, and what they keep of a fit.

Kept are the expected counts that all parameters were made of: first states, moves, the rows of votes, and words. They
are matched by name – labels, annotators, words – and act as counts that were seen before (incremental EM, Neal & Hinton
1998): `ChainLearner.past`. New labels, annotators and words have no past.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lasca.arrays import Array, Floats, Ints
from lasca.corpus import CrowdCorpus
from lasca.corpus.shards import ShardedCorpus
from lasca.corpus.votes import Block, Votes
from lasca.errors import ModelError
from lasca.truth.annotator_models import VoteRows
from lasca.truth.base import Posterior, Progress, TruthModel
from lasca.truth.chain import ChainLearner, StateSpace, blocks_of, check_known, with_words
from lasca.truth.evidence import RowCounts
from lasca.truth.result import History, Truth

__all__ = ["ChainHistory", "ChainModel"]

SAME = ("annotator_model", "crowd", "words", "singles", "constrained")
"""Parameters that say what the counts are counts of."""


@dataclass(frozen=True)
class ChainHistory:
    """The counts of an earlier fit in the numbers of a corpus."""

    starts: Floats
    moves: Floats
    code: Ints
    """What each row of votes stands for (see `VoteRows`)."""
    rows: Floats
    vocabulary: list[str]
    """The words of the corpus, then those that only occurred before."""
    words: Floats

    @classmethod
    def of(cls, truth: Truth | None, corpus: Any, model: TruthModel, space: StateSpace) -> ChainHistory:
        """Match the statistics of a truth by name; without one, nothing was seen before."""
        S, T, settings = len(space), corpus.n_labels, model.get_params()
        names = corpus.words if isinstance(corpus, ShardedCorpus) else corpus.tokens.codes()[1]
        vocabulary = list(names) if settings["words"] else []
        if truth is None:
            empty = np.zeros(0, np.int64), np.zeros((0, S))
            return cls(np.zeros(S), np.zeros((S, S)), *empty, vocabulary, np.zeros((len(vocabulary), S)))
        past = History.of(truth, corpus, "moves")
        for name in SAME:
            if name in settings and truth.params.get(name) != settings[name]:
                raise ModelError(
                    f"the history was fitted with another {name}", got=truth.params.get(name), hint="Fit it alike"
                )
        kept, old_T = truth.statistics, len(truth.label_names)
        rules = {"singles": bool(settings.get("singles")), "constrained": bool(settings["constrained"])}
        old = StateSpace.of(truth.label_names, **rules)
        state = np.array([space.names.index(name) for name in old.names])
        starts, moves = np.zeros(S), np.zeros((S, S))
        starts[state] = kept["starts"]
        moves[np.ix_(state, state)] = kept["moves"]
        memory = settings.get("annotator_model") == "seq"
        rest, given = np.divmod(kept["codes"], old_T)
        annotator, before = np.divmod(rest, old_T + 2 if memory else 1)
        who = np.full(truth.annotators.num_rows, -1)
        who[past.old] = past.new
        here = who[annotator] >= 0
        contexts = np.concatenate((past.label, [T, T + 1])) if memory else np.zeros(1, np.int64)
        code = (who[annotator] * (T + 2 if memory else 1) + contexts[before]) * T + past.label[given]
        order = np.argsort(code[here], kind="stable")
        words = _words(kept)
        place = {name: i for i, name in enumerate(vocabulary)}
        at = np.array([place.setdefault(name, len(place)) for name in words], np.int64)
        counts = np.zeros((len(place), S))
        if words:
            counts[np.ix_(at, state)] = kept["words"]
        rows = np.zeros((len(order), S))
        rows[:, state] = kept["rows"][here][order]
        return cls(starts, moves, code[here][order], rows, list(place), counts)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was seen before."""
        return not self.starts.any()

    def counts(self, rows: VoteRows) -> tuple[Any, ...] | None:
        """Return the counts as a chain learner's statistics have them, without the log sum."""
        if self.is_empty:
            return None
        table = np.zeros((len(rows), len(self.starts)))
        table[np.searchsorted(rows.code, self.code)] = self.rows
        tables = (table, self.words) if len(self.words) else (table,)
        return self.starts, self.moves, *(RowCounts(len(one), np.arange(len(one)), one) for one in tables)

    def with_these(self, rows: VoteRows, statistics: tuple[Any, ...]) -> Mapping[str, Array]:
        """Return what is kept of a fit: its statistics and what was seen before."""
        past = self.counts(rows)
        _, starts, moves, votes, *words = statistics
        own = [starts, moves, votes.table(), *(counts.table() for counts in words)]
        if past is not None:
            own = [a + (b.table() if isinstance(b, RowCounts) else b) for a, b in zip(own, past)]
        seen = own[2].any(axis=1)
        kept = {"starts": own[0], "moves": own[1], "codes": rows.code[seen], "rows": own[2][seen]}
        if words:
            names = [name.encode() for name in self.vocabulary]
            kept |= {
                "words": own[3],
                "vocabulary": np.frombuffer(b"".join(names), np.uint8),
                "vocabulary_ends": np.cumsum([len(name) for name in names]),
            }
        return kept


def _words(kept: Mapping[str, Array]) -> list[str]:
    if "vocabulary" not in kept:
        return []
    text, ends = kept["vocabulary"].tobytes(), kept["vocabulary_ends"].tolist()
    return [text[a:b].decode() for a, b in zip([0, *ends], ends)]


class ChainModel(TruthModel):
    """A chain model that can go on from an earlier truth: one chain learner of annotators and, if asked, words."""

    restarts: int
    words: bool
    constrained: bool

    @abstractmethod
    def _space(self, corpus: CrowdCorpus) -> StateSpace:
        """Return the states of the chain."""

    @abstractmethod
    def _learner(
        self, corpus: CrowdCorpus, votes: Votes, blocks: Sequence[Block], space: StateSpace, history: ChainHistory
    ) -> ChainLearner:
        """Return the learner; its first source are the annotators."""

    def _infer(self, corpus: CrowdCorpus, votes: Votes, progress: Progress) -> Posterior:
        return self._fitted(corpus, votes, None, progress)

    def _update(self, corpus: CrowdCorpus, votes: Votes, history: Truth, progress: Progress) -> Posterior:
        self.restarts = 1  # of the copy that a fit runs on: there is one start, where the history ended
        return self._fitted(corpus, votes, history, progress)

    def _fitted(self, corpus: CrowdCorpus, votes: Votes, truth: Truth | None, progress: Progress) -> Posterior:
        space = self._space(corpus)
        check_known(corpus, votes, space)
        history = ChainHistory.of(truth, corpus, self, space)
        votes = with_words(corpus, votes)[0] if self.words else votes
        blocks = blocks_of(votes)
        learner = self._learner(corpus, votes, blocks, space, history)
        annotators: Any = learner.sources[0]
        learner = replace(learner, past=history.counts(annotators.rows))
        _, posterior, statistics = self._learned(learner, blocks, votes, progress, decodes=True, settle=True)
        return replace(
            posterior,
            confusion=annotators.confusion(statistics[3].table()),
            diagnostics={**posterior.diagnostics, "n_words": len(history.vocabulary)},
            statistics=history.with_these(annotators.rows, statistics),
        )

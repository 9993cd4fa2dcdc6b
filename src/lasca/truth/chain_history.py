"""What a chain model keeps of a fit, so that a later one can go on from it (`history=`).

Kept are the expected counts that all parameters were made of: first states, moves, the rows of votes, and words. They
are matched by name – labels, annotators, words – and act as counts that were seen before (incremental EM, Neal & Hinton
1998): `ChainLearner.past`. New labels, annotators and words have no past.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lasca.corpus.shards import ShardedCorpus
from lasca.corpus.votes import Block, Votes
from lasca.errors import ModelError
from lasca.truth.annotator_models import Annotators, VoteRows
from lasca.truth.base import Posterior, Progress, TruthModel
from lasca.truth.chain import ChainLearner, StateSpace
from lasca.truth.dawid_skene import matched
from lasca.truth.evidence import Floats, RowCounts
from lasca.truth.result import Truth

__all__ = ["ChainHistory", "fit_chain"]

SAME = ("annotator_model", "crowd", "words", "singles", "constrained")
"""Parameters that say what the counts are counts of."""


@dataclass(frozen=True)
class ChainHistory:
    """The counts of an earlier fit in the numbers of a corpus."""

    starts: Floats
    moves: Floats
    code: npt.NDArray[np.int64]
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
        label, people = matched(truth, corpus, "moves")
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
        for past, now in people:
            who[past] = now
        here = who[annotator] >= 0
        contexts = np.concatenate((label, [T, T + 1])) if memory else np.zeros(1, np.int64)
        code = (who[annotator] * (T + 2 if memory else 1) + contexts[before]) * T + label[given]
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

    def with_these(self, rows: VoteRows, statistics: tuple[Any, ...]) -> Mapping[str, npt.NDArray[Any]]:
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


def _words(kept: Mapping[str, npt.NDArray[Any]]) -> list[str]:
    if "vocabulary" not in kept:
        return []
    text, ends = kept["vocabulary"].tobytes(), kept["vocabulary_ends"].tolist()
    return [text[a:b].decode() for a, b in zip([0, *ends], ends)]


def fit_chain(
    model: TruthModel,
    learner: ChainLearner,
    annotators: Annotators,
    blocks: Sequence[Block],
    votes: Votes,
    progress: Progress,
    history: ChainHistory,
) -> Posterior:
    """Run a chain learner, whose first source are annotators, on the engine of a model."""
    learner = replace(learner, past=history.counts(annotators.rows))
    _, posterior, statistics = model._learned(learner, blocks, votes, progress, decodes=True, settle=True)
    return replace(
        posterior,
        confusion=annotators.confusion(statistics[3].table()),
        diagnostics={**posterior.diagnostics, "n_words": len(history.vocabulary)},
        statistics=history.with_these(annotators.rows, statistics),
    )

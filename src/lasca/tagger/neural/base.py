"""What taggers with a network share: training, labels for new sentences, saving and loading.

A network turns a batch of sentences into emissions (scores of labels per token); a CRF layer adds the scores of moves
from label to label. Everything random hangs on `seed` and leaves torch's own generator as it was; on a CPU the same
seed gives the same weights for the same number of `threads` (with another number sums are made in another order).
Labels and probabilities of new sentences come from the kernels of `lasca.crf`.

Of how a word is written networks see its case and kind, as one of a few dozen classes, and its characters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from lasca.arrays import Array, borders
from lasca.crf.decode import Constraint, marginals, viterbi
from lasca.crf.features import Features, Weights
from lasca.crf.fields import field_values
from lasca.crf.objective import OBJECTIVES
from lasca.estimator import Progress, choice, flag, number, other, whole
from lasca.files import whole_folder
from lasca.tagger.base import Examples, Tagger
from lasca.tagger.neural.training import batches, has_neighbours, train, windows
from lasca.tagger.prepare import aligned_costs, scheme_constraint
from lasca.tagger.store import VERSION, labels_of, opened, rule_of, rule_rows, write_card

__all__ = ["N_WRITINGS", "Network", "NeuralTagger", "padded", "writings"]

_CASES = ("lower", "title", "upper", "initial", "mixed", "none")
_KINDS = (
    "word", "punctuation", "code", "hyphened", "dotted", "figure",
    "number1", "number2", "number3", "number4", "number5",
)  # fmt: skip
N_WRITINGS = len(_CASES) * len(_KINDS) + 1
_AT_ONCE = 64  # sentences that are tagged at a time


def writings(words: Sequence[str]) -> list[int]:
    """Return the class of each word, from 1; 0 is left for padding."""
    cases, kinds = field_values("case", list(words)), field_values("kind", list(words))
    return [_CASES.index(str(c)) * len(_KINDS) + _KINDS.index(str(k)) + 1 for c, k in zip(cases, kinds)]


def padded(rows: Sequence[Sequence[int]]) -> torch.Tensor:
    """Return rows of numbers as one matrix, filled up with zeros."""
    width = max((len(row) for row in rows), default=0)
    return torch.tensor([[*row, *([0] * (width - len(row)))] for row in rows], dtype=torch.long)


class Network(nn.Module):
    """A network over sentences: `encode` once per sentence, `forward` per batch of what was encoded."""

    transitions: nn.Parameter

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[Any]:
        """Return what `forward` wants of each sentence."""
        raise NotImplementedError

    def forward(self, batch: Sequence[Any], windows: Sequence[int] | None = None) -> torch.Tensor:
        """Return emissions (B, L, T), L the length of the longest sentence of the batch.

        `windows` says how many sentences, one after the other, may be read together; None: each is read alone.
        """
        raise NotImplementedError

    def begin(self, examples: Examples, chosen: Array) -> None:
        """Choose weights to begin with, by the chosen sequences alone; without that they stay as they were made."""

    def groups(self, learning_rate: float) -> list[dict[str, Any]]:
        """Return the parameters with their learning rates, for the optimiser."""
        return [{"params": list(self.parameters()), "lr": learning_rate}]

    def describe(self) -> dict[str, Any]:
        """Return what must be known to build the network anew, as JSON has it."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Learned:
    """A fitted network with its labels; `active` are the labels it knows, `context` the words it reads together."""

    labels: tuple[str, ...]
    active: Array
    network: Network
    constraint: Constraint | None
    trace: tuple[float, ...]
    scores: tuple[float, ...]
    context: int = 0


class NeuralTagger(Tagger):
    """The base of BiLstmCrfTagger and TransformerTagger; `files` are those that a saved one cannot do without."""

    files: ClassVar[tuple[str, ...]]

    objective: str = choice("what is learned, as for CrfTagger", OBJECTIVES, default="likelihood")
    confusion: Any = other(
        "how confusable labels are, for the objectives with a cost", "a LabelConfusion or a matrix", default=None
    )
    soft: bool = flag("learn from the truth's probabilities instead of its labels, token by token", default=False)
    paths: int = whole(
        "learn from up to so many label sequences of each sequence, one drawn by its probability in each epoch; 0 for "
        "the one that was inferred",
        default=0,
        low=0,
        high=50,
    )
    certain: float = number("labels less probable than this are taken as unknown", default=0.0, low=0, high=1)
    dropout: float = number("share of inputs and states left out in training", default=0.5, low=0, high=0.9)
    epochs: int = whole("passes over the data", default=10, low=1)
    batch_size: int = whole(
        "sentences per step; sequences of more than 25 words, on average, count as several", default=8, low=1
    )
    learning_rate: float = number(
        "of AdamW; it rises over the first tenth of all steps and falls to 0", default=3e-3, low=0, open_low=True
    )
    weight_decay: float = number("of AdamW", default=1e-4, low=0)
    held_out: float = number(
        "share of sequences kept aside to stop early; votes on them are the judge", default=0.0, low=0, high=0.5
    )
    patience: int = whole("epochs without a better score before stopping", default=3, low=1)
    constrained: bool = flag("predict only label sequences the tag scheme allows", default=True)
    threads: int = whole("threads of torch; another number gives other sums in the last digits", default=1, low=1)
    seed: int = whole("for everything random", default=0, low=0)
    context: int = 0
    _model: Learned | None = None

    @property
    def reads_context(self) -> bool:  # type: ignore[override]
        """Whether it learned from neighbouring sentences of documents, and so reads them together."""
        return self._model is not None and self._model.context > 0

    @property
    def trace(self) -> tuple[float, ...]:
        """The mean value of the objective per sequence, negated, in each epoch."""
        return self._fitted().trace

    @property
    def held_out_scores(self) -> tuple[float, ...]:
        """The score on held-out sequences after each epoch: mean log score of their votes, or of their labels."""
        return self._fitted().scores

    def _network(self, sentences: list[list[str]], labels: Sequence[str]) -> Network:
        """Make a network for these sentences and labels."""
        raise NotImplementedError

    @classmethod
    def _rebuild(cls, description: dict[str, Any], folder: Path, n_labels: int) -> Network:
        """Make a network from its description; its weights are filled in afterwards."""
        raise NotImplementedError

    def _more_files(self, network: Network, folder: Path) -> dict[str, Any]:
        """Write what else the network needs; return what must be known of it, as JSON has it."""
        raise NotImplementedError

    def _learn(self, examples: Examples, progress: Progress | None) -> None:
        sentences = [examples.tokens[a:b] for a, b in pairwise(examples.offsets.tolist())]
        names = [examples.labels[a] for a in examples.active]
        constraint = scheme_constraint(names, examples.targets, examples.offsets) if self.constrained else None
        costs = aligned_costs(self.confusion, examples.labels, examples.active)
        context = self.context if has_neighbours(examples.documents) else 0
        with quiet_torch(self.seed, self.threads):
            network = self._network(sentences, names)
            found = train(
                network, sentences, examples, objective=self.objective, costs=costs, epochs=self.epochs,
                batch_size=self.batch_size, learning_rate=self.learning_rate, weight_decay=self.weight_decay,
                held_out=self.held_out, patience=self.patience, context=context, seed=self.seed, progress=progress,
                proba=lambda some, parts: _proba(network, some, parts, examples.active, len(examples.labels)),
            )  # fmt: skip
        network.eval()
        self._model = Learned(examples.labels, examples.active, network, constraint, *found, context)

    def _best(self, tokens: list[str], offsets: Array, documents: Array | None = None) -> Array:
        scores, moves = self._scores(tokens, offsets, documents)
        return viterbi(
            Features.one_each(offsets), Weights.of_scores(scores, moves), constraint=self._fitted().constraint
        )

    def _marginals(self, tokens: list[str], offsets: Array, documents: Array | None = None) -> Array:
        return marginals(Features.one_each(offsets), Weights.of_scores(*self._scores(tokens, offsets, documents)))

    def _scores(self, tokens: list[str], offsets: Array, documents: Array | None) -> tuple[Array, Array]:
        model: Learned = self._fitted()
        sentences = [tokens[a:b] for a, b in pairwise(offsets.tolist())]
        together = windows(np.diff(offsets), documents, model.context)
        with quiet_torch(self.seed, self.threads):
            return _emissions(model.network, sentences, together), _moves(model.network)

    def save(self, path: str | Path, *, overwrite: bool = False, card: str | None = None) -> None:
        """Write the fitted tagger into a folder: weights as safetensors, the rest as JSON; `card` as model-card.md."""
        model = self._fitted()
        header = {
            "lasca": "tagger",
            "kind": self.kind,
            "version": VERSION,
            "labels": list(model.labels),
            "active": model.active.tolist(),
            "constraint": rule_rows(model.constraint),
            "trace": list(model.trace),
            "held_out_scores": list(model.scores),
            "context": model.context,
            "parameters": self._plain(elsewhere=("confusion", "vectors", "model")),
        }
        with whole_folder(path, overwrite=overwrite) as folder:
            write_card(folder, card)
            arrays = {name: value.detach().contiguous().clone() for name, value in model.network.state_dict().items()}
            save_file(arrays, folder / "weights.safetensors")
            header["network"] = {**model.network.describe(), **self._more_files(model.network, folder)}
            text = json.dumps(header, ensure_ascii=True, indent=1, allow_nan=False)
            (folder / "tagger.json").write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Any:
        """Read a tagger that `save` wrote. Nothing in the folder can run code."""
        with opened(path, cls.kind, *cls.files) as (folder, header):
            labels, active = labels_of(header)
            constraint = rule_of(header, len(active))
            with quiet_torch(0, 1):
                network = cls._rebuild(header["network"], folder, len(active))
            network.load_state_dict(load_file(folder / "weights.safetensors"))
            network.eval()
            tagger = cls(**{k: v for k, v in dict(header["parameters"]).items() if k in cls._parameter_names()})
            tagger._model = Learned(
                labels, active, network, constraint, tuple(header["trace"]), tuple(header["held_out_scores"]),
                int(header.get("context", 0)),
            )  # fmt: skip
            return tagger


@contextmanager
def quiet_torch(seed: int, threads: int) -> Iterator[None]:
    """Give torch a seed and a number of threads, and put everything back as it was."""
    before = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def _emissions(network: Network, sentences: Sequence[Sequence[str]], together: list[list[int]]) -> Array:
    """Return the scores of labels of all tokens, (n_tokens, n_labels), one sentence behind the other.

    `together` are the sentences, by their numbers, that are read at once; those without tokens are in none.
    """
    lengths = np.array([len(s) for s in sentences], dtype=np.int64)
    offsets = borders(lengths)
    out = np.zeros((int(offsets[-1]), len(network.transitions)))
    training = network.training
    network.eval()
    with torch.no_grad():
        for batch in batches(together, lengths, _AT_ONCE):
            chosen = [i for window in batch for i in window]
            encoded = network.encode([sentences[i] for i in chosen])
            found = network(encoded, [len(window) for window in batch]).double().numpy()
            for row, i in zip(found, chosen):
                out[offsets[i] : offsets[i + 1]] = row[: lengths[i]]
    network.train(training)
    return out


def _moves(network: Network) -> Array:
    return np.asarray(network.transitions.detach().double().numpy())


def _proba(
    network: Network, sentences: Sequence[Sequence[str]], together: list[list[int]], active: Array, n_labels: int
) -> Array:
    """Return the probabilities of labels of all tokens of some sentences, over all labels."""
    offsets = borders([len(s) for s in sentences])
    full = np.zeros((int(offsets[-1]), n_labels), dtype=np.float32)
    weights = Weights.of_scores(_emissions(network, sentences, together), _moves(network))
    full[:, active] = marginals(Features.one_each(offsets), weights)
    return full

"""BiLstmCrfTagger: characters and words through a bidirectional LSTM, a CRF on top (Lample et al. 2016).

A word is its embedding (learned, or from a file of vectors and fine-tuned), what a small bidirectional LSTM makes of
its characters, and an embedding of how it is written. Words that occur once are taken for unknown every second time, so
that the embedding of unknown words learns something.

From few sentences a network learns less than a CRF whose features know affixes, shapes and neighbours. So the scores of
labels are a sum: what the LSTM says, and the weights of the features that `CrfTagger` has by default. These, and the
moves, begin as the CRF alone has them; then all is learned together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from lasca.arrays import Array
from lasca.crf.extract import Extractor
from lasca.crf.templates import templates_for
from lasca.crf.training import fit
from lasca.errors import FormatError, ParameterError, StoreError
from lasca.estimator import other, whole
from lasca.tagger.base import Examples
from lasca.tagger.crf_tagger import CrfTagger
from lasca.tagger.neural.base import N_WRITINGS, Network, NeuralTagger, padded, writings
from lasca.tagger.store import load_extractor, save_extractor

__all__ = ["BiLstmCrfTagger"]

_PAD, _UNKNOWN = 0, 1
_LONGEST = 30  # characters of a word that are read
_CHARACTERS, _CHARACTER_STATE, _WRITING = 25, 25, 10


class BiLstmCrfTagger(NeuralTagger):
    """A tagger with a bidirectional LSTM over words and characters and a CRF layer; needs the extra `torch`."""

    kind = "bilstm-crf"
    files = ("weights.safetensors", "features.safetensors")

    vectors: str | Path | Mapping[str, Sequence[float]] | None = other(
        "word vectors to start from", "a file (word and numbers, separated by spaces), a mapping, or None", default=None
    )
    word_size: int = whole("length of word embeddings, where there are no vectors", default=100, low=1, high=4096)
    state_size: int = whole("size of the LSTM's state in each direction", default=128, low=1, high=4096)

    def _network(self, sentences: list[list[str]], labels: Sequence[str]) -> Network:
        vectors = read_vectors(self.vectors)
        counts = Counter(token for row in sentences for token in row)
        words = list(dict.fromkeys([*counts, *vectors]))
        size = len(next(iter(vectors.values()))) if vectors else self.word_size
        characters = sorted({c for word in counts for c in word[:_LONGEST]})
        extractor = Extractor(templates=templates_for(labels))
        extractor.fit([w for s in sentences for w in s], np.cumsum([0, *map(len, sentences)]))
        network = BiLstm(words, characters, extractor, len(labels), size, self.state_size, self.dropout)
        network.rare = {word for word, n in counts.items() if n == 1 and word not in vectors}
        with torch.no_grad():
            for word, vector in vectors.items():
                network.words.weight[network.word_codes[word]] = torch.tensor(vector, dtype=torch.float32)
        return network

    @property
    def known_words(self) -> Collection[str]:
        """The words it has seen in training."""
        network = self._fitted().network
        assert isinstance(network, BiLstm)
        return network.word_codes.keys()

    @classmethod
    def _rebuild(cls, description: dict[str, Any], folder: Path, n_labels: int) -> Network:
        word_size, state_size = (int(description[name]) for name in ("word_size", "state_size"))
        if not 1 <= min(word_size, state_size) <= max(word_size, state_size) <= 4096:
            raise StoreError("the network has an impossible size", got=(word_size, state_size))
        words, characters = ([str(w) for w in description[name]] for name in ("words", "characters"))
        extractor = load_extractor(description["features"], folder / "features.safetensors")
        return BiLstm(words, characters, extractor, n_labels, word_size, state_size, float(description["dropout"]))

    def _more_files(self, network: Network, folder: Path) -> dict[str, Any]:
        assert isinstance(network, BiLstm)
        return {"features": save_extractor(network.extractor, folder / "features.safetensors", {})}


def read_vectors(source: str | Path | Mapping[str, Sequence[float]] | None) -> dict[str, list[float]]:
    """Read word vectors: lines of a word and its numbers, separated by spaces (a first line of two is skipped)."""
    if source is None:
        return {}
    if isinstance(source, Mapping):
        found = {str(word): [float(v) for v in vector] for word, vector in source.items()}
    else:
        found = {}
        try:
            with Path(source).open(encoding="utf-8") as lines:
                for number, line in enumerate(lines, 1):
                    word, *numbers = line.rstrip("\n").split(" ")
                    if number == 1 and len(numbers) == 1:
                        continue
                    found[word] = [float(v) for v in numbers if v]
        except (OSError, ValueError) as error:
            raise FormatError(f"cannot read the word vectors: {error}", path=source) from error
    sizes = {len(vector) for vector in found.values()}
    if len(sizes) != 1 or 0 in sizes:
        raise ParameterError("vectors", sorted(sizes)[:5], "vectors of one length")
    return found


class BiLstm(Network):
    """Words, characters and features to emissions."""

    def __init__(
        self,
        words: list[str],
        characters: list[str],
        extractor: Extractor,
        n_labels: int,
        word_size: int,
        state_size: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.sizes = {"word_size": word_size, "state_size": state_size, "dropout": dropout}
        self.word_codes = {word: i + 2 for i, word in enumerate(words)}
        self.character_codes = {c: i + 2 for i, c in enumerate(characters)}
        self.rare: set[str] = set()
        self.words = nn.Embedding(len(words) + 2, word_size, padding_idx=_PAD)
        nn.init.normal_(self.words.weight, std=0.1)
        self.characters = nn.Embedding(len(characters) + 2, _CHARACTERS, padding_idx=_PAD)
        self.spelling = nn.LSTM(_CHARACTERS, _CHARACTER_STATE, batch_first=True, bidirectional=True)
        self.writing = nn.Embedding(N_WRITINGS, _WRITING, padding_idx=_PAD)
        self.dropout = nn.Dropout(dropout)
        self.context = nn.LSTM(
            word_size + 2 * _CHARACTER_STATE + _WRITING, state_size, batch_first=True, bidirectional=True
        )
        self.head = nn.Linear(2 * state_size, n_labels)
        self.transitions = nn.Parameter(torch.zeros(n_labels, n_labels))
        self.extractor = extractor
        self.features = nn.EmbeddingBag(extractor.n_features, n_labels, mode="sum")
        nn.init.zeros_(self.features.weight)

    def describe(self) -> dict[str, Any]:
        return {**self.sizes, "words": list(self.word_codes), "characters": list(self.character_codes)}

    def begin(self, examples: Examples, chosen: Array) -> None:
        features = self.extractor.transform(examples.tokens, examples.offsets)
        usual = CrfTagger()
        found = fit(
            features, examples.targets, len(self.transitions), l2=usual.l2, tol=usual.tol, states=usual.states,
            sequences=chosen, sequence_weights=examples.weights,
        )  # fmt: skip
        with torch.no_grad():
            self.features.weight.copy_(torch.from_numpy(found.state()))
            self.transitions.copy_(torch.from_numpy(found.transitions))

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[Any]:
        """Return of each sentence the codes of words, writings and characters, the words, and the words' features."""
        offsets = np.cumsum([0, *map(len, sentences)])
        starts, features = self.extractor.transform([w for s in sentences for w in s], offsets).lists()
        sizes = np.diff(starts)
        return [
            (
                [self._word(w) for w in s], writings(s), [self._spelled(w) for w in s], list(s),
                sizes[a:b], features[starts[a] : starts[b]],
            )
            for s, (a, b) in zip(sentences, pairwise(offsets.tolist()))
        ]  # fmt: skip

    def _word(self, word: str) -> int:
        found = self.word_codes.get(word)
        return found if found is not None else self.word_codes.get(word.lower(), _UNKNOWN)

    def _spelled(self, word: str) -> tuple[int, ...]:
        return tuple(self.character_codes.get(c, _UNKNOWN) for c in word[:_LONGEST]) or (_UNKNOWN,)

    def forward(self, batch: Sequence[Any], windows: Sequence[int] | None = None) -> torch.Tensor:
        codes = padded([row[0] for row in batch])
        if self.training and self.rare:
            once = padded([[int(w in self.rare) for w in row[3]] for row in batch]).bool()
            codes = torch.where(once & (torch.rand(codes.shape) < 0.5), _UNKNOWN, codes)
        inputs = torch.cat(
            [self.words(codes), self._spell(batch), self.writing(padded([row[1] for row in batch]))], dim=2
        )
        lengths = torch.tensor([len(row[0]) for row in batch])
        packed = nn.utils.rnn.pack_padded_sequence(
            self.dropout(inputs), lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = nn.utils.rnn.pad_packed_sequence(self.context(packed)[0], batch_first=True)
        scores = self.head(self.dropout(states))
        return scores + self._by_features(batch, torch.zeros_like(scores))

    def _by_features(self, batch: Sequence[Any], out: torch.Tensor) -> torch.Tensor:
        """Write the sums of the weights of each token's features."""
        sizes, features = (torch.from_numpy(np.concatenate(rows)) for rows in list(zip(*batch))[4:])
        kept = self.dropout(torch.ones(len(features)))
        there = padded([[1] * len(row[0]) for row in batch]).bool()
        out[there] = self.features(features, sizes.cumsum(0) - sizes, per_sample_weights=kept)
        return out

    def _spell(self, batch: Sequence[Any]) -> torch.Tensor:
        """Return the last states of the LSTM over characters, once for each different word of the batch."""
        index: dict[tuple[int, ...], int] = {(): 0}
        places = padded([[index.setdefault(word, len(index)) for word in row[2]] for row in batch])
        words = [word or (_UNKNOWN,) for word in index]
        lengths = torch.tensor([len(word) for word in words])
        packed = nn.utils.rnn.pack_padded_sequence(
            self.characters(padded(words)), lengths, batch_first=True, enforce_sorted=False
        )
        _, (last, _) = self.spelling(packed)
        return torch.cat([last[0], last[1]], dim=1)[places]

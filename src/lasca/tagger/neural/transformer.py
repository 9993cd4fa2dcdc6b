"""TransformerTagger: a pretrained encoder, fine-tuned, with a CRF layer on the first piece of each word.

Any encoder that transformers knows will do: a folder (config.json, model.safetensors, tokenizer.json) or a name. Models
that read no capitals lose what names are made of: an embedding of how a word is written is added to the input of its
pieces (it starts at 0, so the pretrained model is not disturbed) and joined to the output. Where the documents of
sentences are known, neighbouring sentences are read together: what a name stands for is often said nearby. The table of
word pieces itself is not tuned: it is half of a small model, and few of its rows occur in training. Sentences that are
too long for the model are read in parts. A saved tagger holds the fine-tuned weights and the tokenizer, and needs
neither the folder it came from nor a network; no code of a model's folder is ever run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.utils import logging

from lasca.errors import ModelError, StoreError
from lasca.estimator import number, other, whole
from lasca.tagger.neural.base import N_WRITINGS, Network, NeuralTagger, padded, writings

__all__ = ["TransformerTagger"]

_WRITING = 16
_MOST_PIECES = 32  # pieces of one word that are read
_PART = 256  # pieces read at a time


class TransformerTagger(NeuralTagger):
    """A pretrained encoder with a CRF layer, fine-tuned on the truth; needs the extra `torch`."""

    kind = "transformer"
    files = ("weights.safetensors", "tokenizer.json")
    in_order = ("model",)
    usual = MappingProxyType(
        {"dropout": 0.1, "epochs": 3, "batch_size": 16, "learning_rate": 2e-4, "weight_decay": 0.01, "patience": 1}
    )

    model: str | Path = other("where to start", "the folder of a Hugging Face encoder, or its name there", default="")
    head_rate: float = number(
        "learning rate of what is new: head, moves, embeddings of how words are written",
        default=1e-3,
        low=0,
        open_low=True,
    )
    context: int = whole(
        "neighbouring sentences of a document are read together, about so many words at a time; 0: each alone",
        default=100,
        low=0,
    )

    def _check(self) -> None:
        super()._check()
        if not str(self.model):
            raise ModelError(
                "there is no model to start from", hint="Give model=, the folder of an encoder or its name"
            )

    def _network(self, sentences: list[list[str]], labels: Sequence[str]) -> Network:
        try:
            with _no_bar():
                encoder = AutoModel.from_pretrained(str(self.model))
            tokenizer = _tokenizer(Path(self.model))
        except (OSError, ValueError) as error:
            raise ModelError(f"the encoder cannot be loaded: {error}", where=str(self.model)) from error
        marked = sorted({word for sentence in sentences for word in sentence if not word.isalnum()})
        return Encoder(encoder, tokenizer, len(labels), self.dropout, self.head_rate / self.learning_rate, marked)

    @property
    def known_words(self) -> Collection[str]:
        """The words with punctuation that it has seen in training."""
        network = self._fitted().network
        assert isinstance(network, Encoder)
        return network.marked

    @classmethod
    def _rebuild(cls, description: dict[str, Any], folder: Path, n_labels: int) -> Network:
        try:
            config = AutoConfig.for_model(**description["encoder"])
            encoder = AutoModel.from_config(config)
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # tokenizers raises bare exceptions
            raise StoreError("the saved encoder is damaged", where=str(folder), got=str(error)) from error
        marked = [str(word) for word in description.get("words", ())]
        return Encoder(encoder, tokenizer, n_labels, float(description["dropout"]), 1.0, marked)

    def _more_files(self, network: Network, folder: Path) -> dict[str, Any]:
        assert isinstance(network, Encoder)
        network.tokenizer.save(str(folder / "tokenizer.json"))
        return {}


@contextmanager
def _no_bar() -> Iterator[None]:
    """Let transformers load weights without a bar of its own."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _tokenizer(folder: Path) -> Any:
    file = folder / "tokenizer.json"
    if file.is_file():
        return Tokenizer.from_file(str(file))
    found = AutoTokenizer.from_pretrained(str(folder))
    backend = getattr(found, "backend_tokenizer", None)
    if backend is None:
        raise ValueError("its tokenizer has no fast form (tokenizer.json)")
    return backend


class Encoder(Network):
    """Word pieces to emissions of words."""

    def __init__(
        self, encoder: Any, tokenizer: Any, n_labels: int, dropout: float, faster: float, marked: list[str]
    ) -> None:
        super().__init__()
        if hasattr(encoder, "pooler"):
            encoder.pooler = None
        self.encoder, self.tokenizer, self.faster, self.marked = encoder, tokenizer, faster, marked
        tokenizer.no_padding()
        tokenizer.no_truncation()
        size = int(encoder.config.hidden_size)
        pieces = encoder.get_input_embeddings()
        pieces.weight.requires_grad_(False)
        self.writing_in = nn.Embedding(N_WRITINGS, pieces.embedding_dim, padding_idx=0)
        nn.init.zeros_(self.writing_in.weight)
        self.writing_out = nn.Embedding(N_WRITINGS, _WRITING, padding_idx=0)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(size + _WRITING, n_labels)
        self.transitions = nn.Parameter(torch.zeros(n_labels, n_labels))
        self.before, self.after = _frame(tokenizer)
        most = int(getattr(encoder.config, "max_position_embeddings", 512) or 512)
        self.part = max(min(_PART, most - 2) - len(self.before) - len(self.after), _MOST_PIECES)
        self.spaced = "ByteLevel" in str(getattr(tokenizer, "pre_tokenizer", None))

    def describe(self) -> dict[str, Any]:
        config = {k: v for k, v in self.encoder.config.to_dict().items() if v is not None}
        return {"encoder": config, "dropout": self.dropout.p, "words": self.marked}

    def groups(self, learning_rate: float) -> list[dict[str, Any]]:
        old = [p for p in self.encoder.parameters() if p.requires_grad]
        known = {id(p) for p in old}
        new = [p for p in self.parameters() if p.requires_grad and id(p) not in known]
        return [{"params": old, "lr": learning_rate}, {"params": new, "lr": learning_rate * self.faster}]

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[Any]:
        """Return the pieces of each word of each sentence, and how the words are written."""
        words = list(dict.fromkeys(word for sentence in sentences for word in sentence))
        texts = [f" {word}" if self.spaced else word for word in words]
        found = self.tokenizer.encode_batch(texts, add_special_tokens=False)
        pieces = {word: code.ids[:_MOST_PIECES] for word, code in zip(words, found)}
        return [([pieces[w] for w in s], writings(s)) for s in sentences]

    def _parts(self, pieces: list[list[int]], kinds: list[int]) -> Iterator[tuple[list[int], list[int], list[int]]]:
        """Cut words into parts that the encoder can read: pieces, the writing of each piece's word, places of words.

        A word is where its first piece is; one without pieces points at the part's beginning.
        """
        ids, marks = list(self.before), [0] * len(self.before)
        places: list[int] = []
        for own, kind in zip(pieces, kinds):
            if len(ids) + len(own) > self.part + len(self.before):
                yield [*ids, *self.after], [*marks, *([0] * len(self.after))], places
                ids, marks, places = list(self.before), [0] * len(self.before), []
            places.append(len(ids) if own else 0)
            ids.extend(own)
            marks.extend([kind] * len(own))
        yield [*ids, *self.after], [*marks, *([0] * len(self.after))], places

    def forward(self, batch: Sequence[Any], windows: Sequence[int] | None = None) -> torch.Tensor:
        feed = iter(batch)
        parts: list[tuple[list[int], list[int], list[int]]] = []
        for size in [1] * len(batch) if windows is None else windows:
            run = list(islice(feed, size))
            parts.extend(self._parts([p for words, _ in run for p in words], [k for _, kinds in run for k in kinds]))
        ids, marks = padded([part[0] for part in parts]), padded([part[1] for part in parts])
        attention = padded([[1] * len(part[0]) for part in parts])
        embedded = self.encoder.get_input_embeddings()(ids) + self.writing_in(marks)
        hidden = self.encoder(inputs_embeds=embedded, attention_mask=attention).last_hidden_state
        kinds = padded([kind for _, kind in batch])
        rows = hidden.new_zeros(len(batch), kinds.shape[1], hidden.shape[2])
        rows[kinds > 0] = torch.cat([hidden[k, part[2]] for k, part in enumerate(parts)])
        joined = torch.cat([self.dropout(rows), self.writing_out(kinds)], dim=2)
        return self.head(joined)


def _frame(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return the special pieces that a tokenizer puts before and after a text."""
    plain = tokenizer.encode("a", add_special_tokens=False).ids
    framed = tokenizer.encode("a", add_special_tokens=True).ids
    for at in range(len(framed) - len(plain) + 1):
        if framed[at : at + len(plain)] == plain:
            return framed[:at], framed[at + len(plain) :]
    return [], []

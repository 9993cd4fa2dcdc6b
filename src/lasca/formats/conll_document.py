"""One document of a folder per annotator: all its files brought onto one tokenisation, labels carried over.

The tokens of a document are those of its gold or, without one, of what most annotators have, with the sequences that
only others have put where they stand there. A file that is another text is an error: every file must share at least
half of the characters of the shorter of the two. (All 1,964 files of the Mechanical Turk corpus share all of them; of
400 random pairs of different documents of it, 399 share less than 0.08 and one 0.87.)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate

from lasca.align import Alignment, align_sequences, transfer_labels
from lasca.errors import ParameterError, excerpt
from lasca.formats.base import Collector, SourceFile
from lasca.schemes import split_label

__all__ = ["Document", "DocumentReader", "Text", "typed_suffix"]

OUTSIDE = "O"
SAME_TEXT = 0.5  # share of the shorter text's characters


@dataclass
class Text:
    """One annotator's (or gold's) file of one document."""

    file: SourceFile
    sequences: list[list[tuple[str, str | None]]]  # token, label

    @property
    def words(self) -> list[list[str]]:
        """The tokens, by sequence."""
        return [[token for token, _ in sequence] for sequence in self.sequences]

    @property
    def tokens(self) -> list[str]:
        """The tokens of all sequences."""
        return [token for sequence in self.sequences for token, _ in sequence]

    @property
    def labels(self) -> list[str | None]:
        """The labels of all sequences."""
        return [label for sequence in self.sequences for _, label in sequence]


@dataclass
class Document:
    """One document: where it lies, and what everybody made of it."""

    folder: str
    name: str
    texts: dict[tuple[str, str], Text] = field(default_factory=dict)  # (role, name) -> text


def typed_suffix(documents: Iterable[Document]) -> re.Pattern[str] | None:
    """Return what finds a label typed behind a token, made of the types that occur as labels."""
    types: set[str] = set()
    for document in documents:
        for text in document.texts.values():
            for label in set(text.labels):
                try:
                    types.add(split_label(label or OUTSIDE)[1])
                except ParameterError:
                    return None
    types.discard("")
    if not types:
        return None
    return re.compile(rf"(?<=.)/((?:[BIES]-)?(?:{'|'.join(map(re.escape, sorted(types)))}))$", re.DOTALL)


class DocumentReader:
    """Brings all texts of one document onto one tokenisation."""

    def __init__(self, collector: Collector, typed: re.Pattern[str] | None, partial: str, typed_labels: bool) -> None:
        self.collector, self.typed, self.partial, self.typed_labels = collector, typed, partial, typed_labels

    def document(self, document: Document) -> None:
        """Tell the collector the sequences of a document and what everybody said of them."""
        self.collector.count("documents")
        reference = _reference(document)
        is_gold = any(text is reference for (role, _), text in document.texts.items() if role == "gold")
        sequences = reference.words if is_gold else self._merged(document, reference)
        bare = self._bare(sequences)
        if is_gold:
            changed = sum(a != b for x, y in zip(bare, sequences) for a, b in zip(x, y))
            self.collector.count("typed labels taken off gold tokens", changed, reference.file.shown)
        ids = ["/".join(filter(None, (document.folder, document.name, str(i)))) for i in range(len(bare))]
        metadata = {"document": document.name, "folder": document.folder}
        for id, tokens in zip(ids, bare):
            self.collector.sequence(id, tokens, metadata=metadata, where=reference.file.shown)
        for (role, name), text in sorted(document.texts.items()):
            own_gold = is_gold and text is reference
            labels = text.labels if own_gold else self._labels(role, text, sequences, bare, reference)
            start = 0
            for id, tokens in zip(ids, bare):
                own = labels[start : start + len(tokens)]
                if any(label is not None for label in own):
                    self.collector.annotate(id, name, own, role=role, where=text.file.shown)
                start += len(tokens)

    def _bare(self, sequences: list[list[str]]) -> list[list[str]]:
        """Return the tokens without the labels typed behind them."""
        typed = self.typed
        if typed is None:
            return sequences
        return [[typed.sub("", token) if "/" in token else token for token in tokens] for tokens in sequences]

    def _merged(self, document: Document, reference: Text) -> list[list[str]]:
        """Return the sequences of a document without gold: those of the reference, and what only others have."""
        merged, have = list(reference.words), set(self._keys(reference))
        rest = [text for _, text in sorted(document.texts.items()) if self._keys(text) != self._keys(reference)]
        while rest:  # next, what shares most with what is there
            text = max(rest, key=lambda text: sum(len(key) for key in self._keys(text) if key in have))
            rest.remove(text)
            found = self._alignment(text, self._bare(merged), reference)
            for i in reversed(range(len(text.words))):
                if not found.placed[i]:
                    merged.insert(found.behind[i] + 1, text.words[i])
                    self.collector.count(
                        "sequences that only some files have", 1, f"{text.file.shown}: {_shown(text, i)}"
                    )
            have.update(self._keys(text))
        return merged if len(merged) == len(reference.words) else self._used(document, merged, reference)

    def _used(self, document: Document, merged: list[list[str]], reference: Text) -> list[list[str]]:
        """Leave out the sequences that no text has any more: of repeated ones, some may have been added twice."""
        covered = [False] * sum(map(len, merged))
        for text in document.texts.values():
            found = self._alignment(text, self._bare(merged), reference)
            covered = [known or cover is not None for known, cover in zip(covered, found.covers)]
        ends = list(accumulate(map(len, merged)))
        return [tokens for tokens, end in zip(merged, ends) if any(covered[end - len(tokens) : end])]

    def _keys(self, text: Text) -> list[str]:
        return ["".join("".join(tokens).split()) for tokens in self._bare(text.words)]

    def _alignment(self, text: Text, target: list[list[str]], reference: Text) -> Alignment:
        """Lay a text upon the document, or say that it is another one."""
        bare = self._bare(text.words)
        found = align_sequences(bare, target)
        if found.share < SAME_TEXT and any(self._keys(text)):
            raise text.file.error(
                "this is another text than that of the same document elsewhere",
                1,
                got=" ".join(token for tokens in bare for token in tokens)[:80],
                hint=f"Compare it with {reference.file.shown}: they share {found.share:.0%} of their characters",
            )
        return found

    def _labels(
        self, role: str, text: Text, sequences: list[list[str]], bare: list[list[str]], reference: Text
    ) -> list[str | None]:
        """Return the labels of one text for the tokens of the document."""
        count, shown = self.collector.count, text.file.shown
        count("annotator files" if role != "gold" else "gold files")
        labels = self._with_typed(text)
        if text.tokens == [token for tokens in sequences for token in tokens]:
            count("files aligned exactly")
            return labels
        found = self._alignment(text, bare, reference)
        if found.part and not found.same:
            count("files with a part of the document", 1, shown)
        else:
            count("files tokenised differently", 1, shown)
        kind = "files aligned exactly" if found.part else "files aligned by nearest characters"
        count(kind, 1, None if found.part else shown)
        for i, placed in enumerate(found.placed):
            if not placed:
                count("sequences not in the document", 1, f"{shown}: {_shown(text, i)}")
        result = transfer_labels(labels, found.covers, partial=self.partial, count=lambda kind: count(kind, 1, shown))
        target = [token for tokens in bare for token in tokens]
        nobody = [i for i, cover in enumerate(found.covers) if cover is None]
        if nobody:
            count("tokens without label", len(nobody), f"{shown}: {target[nobody[0]]}")
        return result

    def _with_typed(self, text: Text) -> list[str | None]:
        """Count the labels typed into the text and, if wanted, give them to tokens labelled O."""
        labels = text.labels
        if self.typed is None:
            return labels
        last = ""
        for i, token in enumerate(text.tokens):
            match = self.typed.search(token) if "/" in token else None
            type_ = "" if match is None else match[1]
            if match is not None:
                self.collector.count("typed labels", 1, f"{text.file.shown}: {token}")
                if labels[i] == OUTSIDE:
                    self.collector.count("typed labels on O", 1, f"{text.file.shown}: {token}")
                    if self.typed_labels:
                        labels[i] = type_ if type_[:2] in ("B-", "I-") else f"{'I' if last == type_ else 'B'}-{type_}"
            last = type_
        return labels


def _shown(text: Text, i: int) -> str:
    return excerpt(" ".join(text.words[i]), 40)


def _reference(document: Document) -> Text:
    """Return the text whose tokens are the document's: the gold, else what most have, else the finest, by name."""
    golds = [text for (role, _), text in sorted(document.texts.items()) if role == "gold"]
    if golds:
        return golds[0]
    texts = [text for _, text in sorted(document.texts.items())]
    keys = [tuple(map(tuple, text.words)) for text in texts]
    votes = Counter(keys)
    best = max(range(len(texts)), key=lambda i: (votes[keys[i]], sum(map(len, keys[i])), keys[i], -i))
    return texts[best]

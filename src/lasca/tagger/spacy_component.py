"""A saved tagger as a component of a spaCy pipeline: `nlp.add_pipe("lasca_tagger", config={"path": "tagger"})`.

spaCy finds the factory by LASCA's entry point; nothing has to be imported. Labels of a tag scheme become `doc.ents`,
others (parts of speech) `token.tag_`. Sequences are the sentences where the pipeline has found them, else the whole
document; tokens of white space are passed over. A pipeline that is saved holds the tagger, and is
loaded wherever it is carried: the folder the tagger came from need not be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

from spacy.language import Language
from spacy.scorer import Scorer, get_ner_prf
from spacy.tokens import Doc, Span
from spacy.util import filter_spans, minibatch

from lasca import schemes
from lasca.errors import ModelError
from lasca.tagger.base import load_tagger
from lasca.tagger.use import label_spans

__all__ = ["LascaTagger", "make_component"]


@Language.factory("lasca_tagger", assigns=["doc.ents", "token.tag"], default_config={"path": "", "overwrite": False})
def make_component(nlp: Any, name: str, path: str, overwrite: bool) -> LascaTagger:
    """Make the component; `path` is a folder that `save` or `lasca train` wrote, `overwrite` replaces earlier ents."""
    return LascaTagger(path, overwrite)


class LascaTagger:
    """Tags documents of spaCy with a tagger of LASCA."""

    def __init__(self, path: str | Path = "", overwrite: bool = False) -> None:
        self.overwrite, self.path = overwrite, path
        self.tagger: Any = load_tagger(path) if str(path) and Path(path).exists() else None

    @property
    def labels(self) -> tuple[str, ...]:
        """What it may find: types of entities, or tags."""
        if self.tagger is None:
            return ()
        if not self._finds_entities():
            return tuple(self.tagger.labels)
        types = (schemes.split_label(name)[1] for name in self.tagger.labels)
        return tuple(dict.fromkeys(name for name in types if name))

    def _finds_entities(self) -> bool:
        return schemes.detect(self.tagger.labels) is not None

    def __call__(self, doc: Doc) -> Doc:
        """Tag a document."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Tag documents in batches."""
        if self.tagger is None:
            raise ModelError(
                "the component has no tagger", where=str(self.path) or None,
                hint='Give config={"path": FOLDER}, what `lasca train` wrote, or load a pipeline that holds one',
            )  # fmt: skip
        for docs in minibatch(stream, batch_size):
            rows = [(n, [t for t in part if not t.is_space]) for n, doc in enumerate(docs) for part in _sequences(doc)]
            rows = [(n, row) for n, row in rows if row]
            told = self.tagger.told_of([n for n, _ in rows])
            labels = self.tagger.predict([[t.text for t in row] for _, row in rows], **told)
            found: dict[int, list[tuple[Any, list[str]]]] = {}
            for (n, row), names in zip(rows, labels):
                found.setdefault(n, []).append((row, names))
            for n, doc in enumerate(docs):
                self._set(doc, found.get(n, []))
                yield doc

    def _set(self, doc: Doc, rows: list[tuple[Any, list[str]]]) -> None:
        if not self._finds_entities():
            for row, names in rows:
                for token, name in zip(row, names):
                    token.tag_ = name
            return
        spans = [
            Span(doc, row[first].i, row[last - 1].i + 1, label=name)
            for row, names in rows
            for first, last, name in label_spans(names, True)
        ]
        if not self.overwrite:
            taken = {token.i for span in doc.ents for token in span}
            spans = [*doc.ents, *(s for s in spans if not any(token.i in taken for token in s))]
        doc.set_ents(filter_spans(spans))

    def score(self, examples: Iterable[Any], **settings: Any) -> dict[str, Any]:
        """Score entities, or tags: what `nlp.evaluate` asks."""
        if self.tagger is not None and self._finds_entities():
            return dict(get_ner_prf(examples))
        return dict(Scorer.score_token_attr(examples, "tag"))

    def to_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> None:
        """Save the tagger with its pipeline."""
        if self.tagger is not None:
            self.tagger.save(path, overwrite=True)

    def from_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> LascaTagger:
        """Load the tagger with its pipeline."""
        self.tagger = load_tagger(path)
        return self

    def to_bytes(self, exclude: Iterable[str] = ()) -> bytes:
        """Return the saved tagger as a zip file."""
        buffer = BytesIO()
        with TemporaryDirectory(prefix="lasca-") as place, ZipFile(buffer, "w") as packed:
            folder = Path(place) / "tagger"
            self.to_disk(folder)
            for file in sorted(folder.glob("*")):
                packed.write(file, file.name)
        return buffer.getvalue()

    def from_bytes(self, data: bytes, exclude: Iterable[str] = ()) -> LascaTagger:
        """Load the tagger from what `to_bytes` gave."""
        with TemporaryDirectory(prefix="lasca-") as place, ZipFile(BytesIO(data)) as packed:
            packed.extractall(place)
            return self.from_disk(place) if packed.namelist() else self


def _sequences(doc: Doc) -> Iterable[Any]:
    return doc.sents if doc.has_annotation("SENT_START") else [doc]

"""CoNLL out: the inferred truth in two columns (with more behind them where there is more), or a whole corpus.

With `labels`: `token label` separated by a space, blank lines between sequences and nothing else, which conlleval,
seqeval, spaCy and the rest of the world read; a token with white space in it is written with `_` instead. With
`details=True` there is a header, tabs, and the columns `confidence`, `ambiguous` (1 or 0) and `candidates`
(`B-PER:0.61|B-ORG:0.39`), as far as they are known. The labels are the ones given (`legal=True` repairs tags).

Without: a header, a column per gold and annotator, `?` for a missing label, `# sent_id = …` and the metadata as
comments; annotators' tags stay as they are (repair them when reading). Cells are separated by tabs. A tab or line break
inside a token cannot be written: it becomes a space, with a warning; so does an empty sequence, which is left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lasca.corpus import CrowdCorpus
from lasca.errors import LascaWarning, StoreError, excerpt
from lasca.files import whole_file
from lasca.formats.outcome import Outcome, everybody

__all__ = ["write"]

MISSING = "?"
ROLES = ("gold", "model", "annotator")
RESERVED = ("_", "label", "confidence", "ambiguous", "candidates")


def write(
    corpus: CrowdCorpus, made: Outcome, path: str | Path, *, ids: bool | None = None, details: bool = False
) -> None:
    """Write a file of columns; `ids=True` writes `# sent_id` comments also before the truth, False nowhere.

    `details=True` writes how sure the truth is behind its labels; such a file is for LASCA and for people.
    """
    _check_names("label", corpus.labels)
    lines = _Lines(corpus, ids if ids is not None else made.names is None)
    if made.names is None:
        lines.corpus()
    else:
        lines.truth(made, made.names, details)
    lines.warn(path)
    with whole_file(path) as scratch:
        scratch.write_text("\n".join(lines.lines) + "\n", encoding="utf-8", newline="\n")


def _check_names(what: str, names: Any) -> None:
    for name in names:
        if name == MISSING or name != name.strip(" ") or any(ch in name for ch in "\t\n\r"):
            raise StoreError(
                f"the {what} {excerpt(name)!r} cannot be written as CoNLL", hint="Write JSONL or Parquet instead"
            )


class _Lines:
    """Gathers the lines of a file, and what could not be written as it was."""

    def __init__(self, corpus: CrowdCorpus, ids: bool) -> None:
        self.given, self.ids = corpus, ids
        self.lines: list[str] = []
        self.changed: dict[str, int] = {}
        self.begun = False

    def truth(self, made: Outcome, names: list[list[str | None]], details: bool) -> None:
        if not details:
            for s, _, tokens in self._sequences():
                for token, name in zip(tokens, names[s]):
                    self.lines.append(f"{self._one_word(token)} {self._one_word(MISSING if name is None else name)}")
            return
        confidence = made.confidence()
        header = ["token", "label"]
        header += ["confidence"] if confidence is not None else []
        header += ["ambiguous"] if made.ambiguous is not None else []
        header += ["candidates"] if made.candidates is not None else []
        if len(header) > 2:
            self.lines.append("\t".join(header))
        for s, start, tokens in self._sequences():
            for i, (token, name) in enumerate(zip(tokens, names[s]), start):
                cells = [self._clean("tokens", token), MISSING if name is None else name]
                if confidence is not None:
                    cells.append(f"{confidence[i]:.4f}")
                if made.ambiguous is not None:
                    cells.append("1" if made.ambiguous[i] else "0")
                if made.candidates is not None:
                    cells.append(_shown(made.candidates.get(i, [])))
                self.lines.append("\t".join(cells))

    def corpus(self) -> None:
        said = everybody(self.given)
        header = [_header(role, name) for role, name, _ in said]
        _check_names("name", header)
        self.lines.append("\t".join(["token", *(header or ["_"])]))
        for s, _, tokens in self._sequences():
            columns = [rows[s] for _, _, rows in said] or [[None] * len(tokens)]
            for i, token in enumerate(tokens):
                cells = [MISSING if (name := column[i]) is None else name for column in columns]
                self.lines.append("\t".join([self._clean("tokens", token), *cells]))

    def _sequences(self) -> Iterator[tuple[int, int, list[str]]]:
        corpus = self.given
        numbered = not self.ids or all(id == str(s) for s, id in enumerate(corpus.sequence_ids))
        for s in range(corpus.n_sequences):
            tokens = corpus.sequence(s)
            if not tokens:
                self.changed["empty sequences left out"] = self.changed.get("empty sequences left out", 0) + 1
                continue
            if self.begun:
                self.lines.append("")
            self.begun = True
            if not numbered:
                self.lines.append(f"# sent_id = {self._clean('ids', corpus.sequence_ids[s])}")
            if self.ids:
                self._metadata(s)
            yield s, int(corpus.offsets[s]), tokens

    def _metadata(self, s: int) -> None:
        for key, column in self.given.metadata.items():
            if not column[s]:
                continue
            if key == "sent_id" or not key or "=" in key or len(key.split()) != 1:
                self.changed[f"metadata {excerpt(key)!r} left out"] = self.given.n_sequences
                continue
            self.lines.append(f"# {key} = {self._clean('metadata', column[s])}")

    def _one_word(self, text: str) -> str:
        if text and not any(ch.isspace() for ch in text):
            return text
        kind = "tokens or labels with white space, now _"
        self.changed[kind] = self.changed.get(kind, 0) + 1
        return "_".join(text.split()) or "_"

    def _clean(self, what: str, text: str) -> str:
        if not any(ch in text for ch in "\t\n"):
            return text
        kind = f"{what} with a tab or line break, now a space"
        self.changed[kind] = self.changed.get(kind, 0) + 1
        return text.replace("\t", " ").replace("\n", " ")

    def warn(self, path: str | Path) -> None:
        for kind, n in self.changed.items():
            warnings.warn(LascaWarning(f"{path}: CoNLL cannot hold everything: {n} {kind}"), stacklevel=4)


def _header(role: str, name: str) -> str:
    looks_like_gold = name.lower().startswith("gold")
    prefixed = any(name.startswith(r + ":") for r in ROLES) or name in RESERVED
    if role == "annotator" and not looks_like_gold and not prefixed:
        return name
    if role == "gold" and looks_like_gold and not prefixed:
        return name
    return f"{role}:{name}"


def _shown(candidates: list[tuple[str, float | None]]) -> str:
    cells = [label if score is None else f"{label}:{score:.4g}" for label, score in candidates]
    return "|".join(cells) or "_"

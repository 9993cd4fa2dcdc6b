"""A token per line, `TOKEN|ANNOTATOR=LABEL|…`, a blank line between sequences; the first line is `#pipes`.

```
#pipes
Ada|ann=PER|bob=PER
runs|ann=O
```
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lasca.corpus import CrowdCorpus
from lasca.files import whole_file
from lasca.formats import SourceFile


def sniff(files: Sequence[SourceFile]) -> float:
    """Say how much this looks like pipes: 0 to 1."""
    return float(all(file.head(6) == b"#pipes" for file in files))


def read(files: Sequence[SourceFile]) -> CrowdCorpus:
    """Read the files one after the other."""
    tokens: list[list[str]] = []
    said: list[list[dict[str, str]]] = []
    for file in files:
        head, *lines = file.text().split("\n")
        if head != "#pipes":
            raise file.error("the first line must be #pipes", 1, got=head)
        for block in "\n".join(lines).strip("\n").split("\n\n"):
            rows = [line.split("|") for line in block.split("\n")]
            tokens.append([row[0] for row in rows])
            said.append([dict(cell.split("=", 1) for cell in row[1:]) for row in rows])
    names = sorted({name for sequence in said for cells in sequence for name in cells})
    labels = {name: [[cells.get(name) for cells in sequence] for sequence in said] for name in names}
    return CrowdCorpus.from_sequences(tokens, labels)


def write(corpus: CrowdCorpus, outcome: Any, path: str | Path) -> None:
    """Write what the annotators said, or the truth as one annotator named lasca."""
    lines = ["#pipes"]
    for s in range(corpus.n_sequences):
        for i, token in enumerate(corpus.sequence(s), int(corpus.offsets[s])):
            votes = range(int(corpus.token_start[i]), int(corpus.token_start[i + 1]))
            cells = [
                f"{corpus.annotators[corpus.annotation_annotator[j]]}={corpus.labels[corpus.annotation_label[j]]}"
                for j in votes
            ]
            if outcome.names is not None:
                label = outcome.names[s][i - int(corpus.offsets[s])]
                cells = [] if label is None else [f"lasca={label}"]
            lines.append("|".join([token, *cells]))
        lines.append("")
    with whole_file(path) as scratch:
        scratch.write_text("\n".join(lines), encoding="utf-8")
